//! What a claim does, and what a subtask does next.
//!
//! Owns: the recovery of one subtask. Does not own: the rules (the engine's are called). Runs on: the checker.

use std::collections::VecDeque;

use tidegate_engine::operator::CommitOutcome;
use tidegate_engine::operator::commit_driver::{owned, to_roll_back};

use super::super::server::Branch;
use super::world::{Attempt, Phase, Subtask, World, listed, own_branches};
use super::{Recovery, Step, Weakening};

impl Recovery {
    pub(super) fn claim(&self, world: &mut World, number: u8) {
        let restored: Vec<Branch> = match world.complete {
            1 => (0..self.parallelism[0]).map(listed).collect(),
            complete => own_branches(self, complete).collect(),
        };
        let parallelism = self.parallelism[usize::from(number) - 1];
        let subtask = |subtask| Subtask {
            phase: Phase::Committing,
            to_commit: self.part_of(world, &restored, number, subtask),
            has_prepared: false,
            has_checked: false,
        };
        let subtasks = (0..parallelism).map(subtask).collect();
        world.newest = number;
        world.attempts.push(Attempt { number, restored, subtasks });
    }

    /// What a subtask commits.
    fn part_of(&self, world: &World, restored: &[Branch], number: u8, subtask: u8) -> VecDeque<Branch> {
        if number == 2 && !world.split.is_empty() {
            let is_mine = |b: &&Branch| world.split[usize::from(b.subtask)] == subtask;
            return restored.iter().filter(is_mine).copied().collect();
        }
        let parallelism = self.parallelism[usize::from(number) - 1];
        let listed: Vec<_> = restored.iter().map(|branch| branch.prepared()).collect();
        owned(&listed, subtask.into(), parallelism.into()).into_iter().map(|p| p.committable).collect()
    }

    pub(super) fn steps_of(&self, world: &World, attempt: &Attempt, who: usize, mut push: impl FnMut(Step)) {
        let subtask = &attempt.subtasks[who];
        if self.weakening == Weakening::AcknowledgesBeforeRecovered && !subtask.has_prepared {
            push(Step::OpenAndPrepare);
        }
        match &subtask.phase {
            Phase::Committing if subtask.to_commit.is_empty() => push(Step::ListLeftOvers),
            Phase::Committing => push(Step::CommitNext),
            Phase::Sweeping { .. }
                if self.weakening == Weakening::StableIdsChecked && !subtask.has_checked =>
            {
                push(Step::Check);
            }
            Phase::Sweeping { .. } => push(Step::RollBackNext),
            Phase::Recovered if !subtask.has_prepared => push(Step::OpenAndPrepare),
            Phase::Recovered if world.complete == attempt.number => push(Step::CommitOwn),
            Phase::Recovered | Phase::Done => {}
        }
    }

    pub(super) fn step(&self, world: &mut World, number: u8, who: usize, step: Step) {
        let Some(at) = world.attempts.iter().position(|a| a.number == number) else { return };
        let mut subtask = world.attempts[at].subtasks[who].clone();
        let own = Branch { attempt: number, subtask: who as u8, closed_by: 2 };
        match step {
            Step::CommitNext => {
                if let Some(branch) = subtask.to_commit.pop_front() {
                    commit(world, number, branch, &mut subtask);
                }
            }
            Step::ListLeftOvers => subtask.phase = self.left_overs(world, &world.attempts[at], who as u8),
            Step::Check if world.newest == number => subtask.has_checked = true,
            Step::Check => subtask.phase = Phase::Done,
            Step::RollBackNext => roll_back_next(world, &mut subtask),
            Step::OpenAndPrepare => {
                world.server.prepare(own, 0);
                subtask.has_prepared = true;
            }
            Step::CommitOwn => {
                subtask.phase = Phase::Done;
                commit(world, number, own, &mut subtask);
            }
        }
        world.attempts[at].subtasks[who] = subtask;
    }

    fn left_overs(&self, world: &World, attempt: &Attempt, subtask: u8) -> Phase {
        let parallelism = self.parallelism[usize::from(attempt.number) - 1];
        let part = self.part_of(world, &attempt.restored, attempt.number, subtask);
        let is_mine = |b: &Branch| b.subtask % parallelism == subtask && b.attempt != attempt.number;
        let own = Branch { attempt: attempt.number, subtask, closed_by: 1 };
        let sweep = |listed: &[Branch]| {
            let names = world.server.prepared().map(Branch::name).collect();
            let listed: Vec<_> = listed.iter().map(|branch| branch.name()).collect();
            world.server.among(&to_roll_back(names, &listed, &own.name(), parallelism.into()))
        };
        let left = match self.weakening {
            Weakening::SplitListState if attempt.number == 2 => sweep(&Vec::from(part)),
            Weakening::SweepWithoutBound => {
                world.server.prepared().filter(|b| is_mine(b) && !attempt.restored.contains(b)).collect()
            }
            _ => sweep(&attempt.restored),
        };
        let ids = match self.weakening {
            Weakening::StableIds | Weakening::StableIdsChecked => (0..self.parallelism[0]
                .max(self.parallelism[2]))
                .filter(|id| id % parallelism == subtask)
                .collect(),
            _ => Vec::new(),
        };
        if left.is_empty() && ids.is_empty() { Phase::Recovered } else { Phase::Sweeping { left, ids } }
    }
}

fn commit(world: &mut World, number: u8, branch: Branch, subtask: &mut Subtask) {
    if matches!(world.server.commit(branch), CommitOutcome::Lost { .. }) {
        if world.newest == number {
            world.lost = Some(branch);
        }
        subtask.phase = Phase::Done; // the job fails
        subtask.to_commit.clear();
    }
}

fn roll_back_next(world: &mut World, subtask: &mut Subtask) {
    let Phase::Sweeping { left, ids } = &mut subtask.phase else { return };
    if left.is_empty() {
        let id = ids.remove(0);
        let held: Vec<_> = world.server.prepared().filter(|b| b.subtask == id && b.closed_by == 2).collect();
        held.into_iter().for_each(|branch| world.server.roll_back(branch));
    } else {
        world.server.roll_back(left.remove(0));
    }
    subtask.has_checked = false;
    if left.is_empty() && ids.is_empty() {
        subtask.phase = Phase::Recovered;
    }
}
