//! The entry of a checkpoint: put, and read back when its fate is uncertain.
//!
//! Owns: the way from an acknowledged checkpoint to a complete one. Does not own: whose entry it is (the engine decides).
//! Runs on: the checker.

use std::sync::Arc;

use tidegate_engine::checkpoint::commit_log::{PutAnswer, ReadBack, decide_after_put, read_back};
use tidegate_engine::ids::CheckpointId;

use super::action::PutFate;
use super::attempt::{Attempt, Phase};
use super::log::{Body, Entry, Snapshot};
use super::world::World;
use super::{CommitLog, Weakening};

impl CommitLog {
    /// Where the entry goes.
    pub(super) fn number_of_checkpoint(&self, world: &World, attempt: &Attempt, snapshot: &Snapshot) -> u8 {
        match self.weakening {
            Weakening::NumbersFromListing => world.log.highest() + 1,
            Weakening::NoLog => snapshot.id,
            _ => attempt.last + 1,
        }
    }

    pub(super) fn put_checkpoint(&self, world: &mut World, attempt: &mut Attempt, fate: PutFate) {
        let Phase::Acknowledged { snapshot } = attempt.phase.clone() else { return };
        let number = self.number_of_checkpoint(world, attempt, &snapshot);
        let entry = Arc::new(self.entry(attempt, number, &snapshot));
        let answer = match fate {
            PutFate::InFlight => PutAnswer::Error,
            PutFate::Answered if self.put(world, entry.clone()) => PutAnswer::Created,
            PutFate::Answered => PutAnswer::AlreadyExists,
            PutFate::AppliedWithError | PutFate::AppliedAndInFlight => {
                self.put(world, entry.clone());
                PutAnswer::Error
            }
        };
        if matches!(fate, PutFate::InFlight | PutFate::AppliedAndInFlight) {
            world.in_flight = Some(entry);
        }
        attempt.phase = Phase::Uncertain { snapshot, number };
        match (decide_after_put(answer), answer) {
            (None, _) if self.weakening == Weakening::ErrorMeansFailure => self.give_up(world, attempt),
            (Some(settled), _) => self.settle(world, attempt, settled),
            (None, PutAnswer::AlreadyExists) => self.read_back_checkpoint(world, attempt),
            (None, _) => {}
        }
    }

    pub(super) fn read_back_checkpoint(&self, world: &mut World, attempt: &mut Attempt) {
        let Phase::Uncertain { number, .. } = attempt.phase else { return };
        let found = world.log.get(number).map(Entry::real);
        let settled = read_back(Entry::nonce_of(attempt.start, number), found.as_ref());
        self.settle(world, attempt, settled);
    }

    fn settle(&self, world: &mut World, attempt: &mut Attempt, settled: ReadBack) {
        let Phase::Uncertain { snapshot, number } = attempt.phase.clone() else { return };
        match settled {
            ReadBack::Ours => self.complete(world, attempt, &snapshot, number),
            ReadBack::Foreign => attempt.stop(),
            ReadBack::Absent => {
                // Put again; that this one too may be uncertain shows nothing new.
                self.put(world, Arc::new(self.entry(attempt, number, &snapshot)));
                self.complete(world, attempt, &snapshot, number);
            }
        }
    }

    fn entry(&self, attempt: &Attempt, number: u8, snapshot: &Snapshot) -> Entry {
        let body = Body::Checkpoint { snapshot: snapshot.clone(), retained: self.retained(attempt) };
        Entry { number, attempt: attempt.number, start: attempt.start, body }
    }

    fn retained(&self, attempt: &Attempt) -> Vec<u8> {
        attempt.kept[attempt.kept.len().saturating_sub(self.older)..].to_vec()
    }

    fn complete(&self, world: &World, attempt: &mut Attempt, snapshot: &Snapshot, number: u8) {
        attempt.last = number;
        attempt.completed = snapshot.id;
        attempt.driver.on_complete(CheckpointId(u64::from(snapshot.id)));
        self.hand_over(attempt);
        attempt.phase = Phase::Running;
        let retained = self.retained(attempt);
        if self.cleaning {
            self.plan(world, attempt, number, &retained);
        }
        attempt.kept = retained;
        attempt.kept.push(number);
    }

    /// [`Weakening::ErrorMeansFailure`]: the job aborts the checkpoint, rolls everything pending back, and ends.
    fn give_up(&self, world: &mut World, attempt: &mut Attempt) {
        for branch in world.server.among(&attempt.driver.take_uncommitted()) {
            world.server_mut().roll_back(branch);
        }
        attempt.at_committer.clear();
        attempt.stop();
    }
}
