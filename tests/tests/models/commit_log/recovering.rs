//! Recovery and commits: what is listed is committed, then what lower attempts left is rolled back.
//!
//! Owns: the steps at the server. Does not own: the rules (the engine's are called). Runs on: the checker.

use tidegate_engine::operator::CommitOutcome;
use tidegate_engine::operator::commit_driver::to_roll_back;

use super::super::server::Branch;
use super::attempt::{Attempt, Phase};
use super::world::World;
use super::{CommitLog, Weakening};

impl CommitLog {
    pub(super) fn commit_next(&self, world: &mut World, attempt: &mut Attempt) {
        let Some(branch) = attempt.at_committer.pop_front() else { return };
        let outcome = world.server_mut().commit(branch);
        if matches!(outcome, CommitOutcome::Lost { .. }) {
            if self.is_newest(world, attempt) {
                world.lost = Some(branch);
            }
            attempt.at_committer.clear();
            return attempt.stop(); // the job fails
        }
        // What was restored is not in the driver: it takes no notice.
        let settled = attempt.driver.on_outcome(&branch.name(), outcome);
        debug_assert!(settled.is_ok());
        if attempt.at_committer.is_empty() {
            self.hand_over(attempt);
        }
        if attempt.phase == Phase::Stopped {
            attempt.stop();
        }
    }

    /// Hands to the committer what is complete.
    pub(super) fn hand_over(&self, attempt: &mut Attempt) {
        attempt.at_committer.extend(attempt.driver.next_commits().into_iter().map(|p| p.committable));
    }

    fn is_newest(&self, world: &World, attempt: &Attempt) -> bool {
        match self.weakening {
            Weakening::NoLog => world.attempts.iter().all(|other| other.number <= attempt.number),
            _ => world.log.newest_claim() == attempt.number,
        }
    }

    pub(super) fn list_left_overs(&self, world: &World, attempt: &mut Attempt) {
        let own = Branch { attempt: attempt.number, subtask: 0, closed_by: attempt.completed };
        let listed = &attempt.restored;
        let unlisted = world.server.prepared().filter(|branch| !listed.contains(branch));
        let left: Vec<Branch> = match self.weakening {
            Weakening::SweepWithoutBound => {
                unlisted.filter(|branch| branch.attempt != attempt.number).collect()
            }
            Weakening::AttemptsCountWithinLineage => {
                unlisted.filter(|branch| is_lower_or_of_another_lineage(world, attempt, *branch)).collect()
            }
            _ => {
                let names = world.server.prepared().map(Branch::name).collect();
                let listed: Vec<_> = listed.iter().map(|branch| branch.name()).collect();
                world.server.among(&to_roll_back(names, &listed, &own.name(), 1))
            }
        };
        attempt.restored.clear();
        attempt.phase = if left.is_empty() { Phase::Running } else { Phase::Sweeping { left } };
    }

    pub(super) fn roll_back_next(&self, world: &mut World, attempt: &mut Attempt) {
        let Phase::Sweeping { left } = &mut attempt.phase else { return };
        world.server_mut().roll_back(left.remove(0));
        if left.is_empty() {
            attempt.phase = Phase::Running;
        }
    }
}

/// [`Weakening::AttemptsCountWithinLineage`]: numbers compare only within a lineage, so a start without restore takes everything of
/// another lineage for old.
fn is_lower_or_of_another_lineage(world: &World, attempt: &Attempt, branch: Branch) -> bool {
    let Some(writer) = world.attempts.iter().find(|other| other.number == branch.attempt) else {
        return false;
    };
    match writer.since == attempt.since {
        true => writer.within_lineage < attempt.within_lineage,
        false => attempt.since == attempt.number,
    }
}
