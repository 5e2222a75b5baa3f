//! How an attempt begins: survey, claim, look again, restore.
//!
//! Owns: the claim protocol of the model. Does not own: its decisions (the engine's are called). Runs on: the checker.

use std::sync::Arc;

use tidegate_engine::checkpoint::commit_log::{AfterClaim, RestorePoint, decide_after_claim};
use tidegate_engine::ids::EntryNumber;
use tidegate_engine::operator::commit_driver::owned;

use super::action::Wish;
use super::attempt::{Attempt, Phase};
use super::log::{Base, Body, Entry, Log, Snapshot};
use super::world::World;
use super::{CommitLog, Weakening};

impl CommitLog {
    pub(super) fn survey(&self, world: &World, attempt: &mut Attempt, wish: Wish) {
        attempt.wish = wish;
        let base = match wish {
            Wish::Latest => Base::Latest,
            Wish::Nothing => Base::Nothing,
            Wish::Rewind => match self.rewind_target(&world.log) {
                Some(older) => Base::Entry(older),
                None => return attempt.stop(), // refused before anything is written
            },
        };
        if self.weakening == Weakening::NoLog {
            attempt.number = attempt.start as u8 + 1;
            attempt.phase = Phase::Claimed { base };
            return;
        }
        attempt.phase = Phase::Surveyed { claim_at: world.log.highest() + 1, base };
    }

    pub(super) fn put_claim(&self, world: &mut World, attempt: &mut Attempt) {
        let Phase::Surveyed { claim_at: number, base } = attempt.phase else { return };
        if !self.put(world, Arc::new(self.claim(attempt, number, base))) {
            return self.survey(world, attempt, attempt.wish);
        }
        attempt.number = number;
        attempt.last = number;
        attempt.phase = Phase::Claimed { base };
    }

    /// The oldest checkpoint that a rewind may name, if it is not what would be restored anyway.
    pub(super) fn rewind_target(&self, log: &Log) -> Option<u8> {
        let restorable = match self.weakening {
            Weakening::RewindToWhatTheLineRetains => log.retained_by_the_line(),
            _ => log.listing.restorable().iter().map(|c| c.number.0 as u8).collect(),
        };
        restorable.iter().skip(1).next_back().copied()
    }

    fn claim(&self, attempt: &Attempt, number: u8, base: Base) -> Entry {
        let said = if self.weakening == Weakening::BaseNotInLog { Base::Latest } else { base };
        Entry { number, attempt: number, start: attempt.start, body: Body::Claim(said) }
    }

    /// The claim may still appear; it is like one of a start that died.
    pub(super) fn lose_claim(&self, world: &mut World, attempt: &mut Attempt) {
        let Phase::Surveyed { claim_at: number, base } = attempt.phase else { return };
        world.in_flight = Some(Arc::new(self.claim(attempt, number, base)));
        attempt.stop();
    }

    pub(super) fn look_again(&self, world: &World, attempt: &mut Attempt) {
        let Phase::Claimed { base } = attempt.phase else { return };
        if !matches!(self.weakening, Weakening::NoSecondListing | Weakening::NoLog) {
            match decide_after_claim(EntryNumber(u64::from(attempt.number)), &world.log.listing) {
                AfterClaim::Claimed => {}
                AfterClaim::Fenced { .. } => return attempt.stop(),
                AfterClaim::ClaimAgain => return self.survey(world, attempt, attempt.wish),
            }
        }
        match self.restore_point(world, attempt, base) {
            RestorePoint::Nothing => {
                let since = match self.weakening {
                    Weakening::BaseNotInLog if base == Base::Nothing => attempt.number,
                    _ => world.log.began_anew(attempt.number),
                };
                self.restore(
                    world,
                    attempt,
                    None,
                    Snapshot { id: 0, position: 0, listed: Vec::new(), since },
                );
            }
            RestorePoint::Checkpoint(EntryNumber(number)) => {
                let number = number as u8;
                match world.log.get(number).and_then(Entry::snapshot) {
                    Some(snapshot) if world.files_gone >> number & 1 == 0 => {
                        self.restore(world, attempt, Some(number), snapshot.clone());
                    }
                    _ => attempt.stop(), // its files are gone
                }
            }
            RestorePoint::Missing { .. } | RestorePoint::Finished(_) => attempt.stop(),
        }
    }

    fn restore_point(&self, world: &World, attempt: &Attempt, base: Base) -> RestorePoint {
        let listing = &world.log.listing;
        match (self.weakening, base) {
            (Weakening::NoLog, _) => listing.restore_point(listing.highest()),
            (Weakening::BaseNotInLog, Base::Nothing) => RestorePoint::Nothing,
            (Weakening::BaseNotInLog, Base::Entry(number)) => {
                RestorePoint::Checkpoint(EntryNumber(u64::from(number)))
            }
            _ => listing.restore_point(EntryNumber(u64::from(attempt.number))),
        }
    }

    fn restore(&self, world: &World, attempt: &mut Attempt, entry: Option<u8>, from: Snapshot) {
        let listed: Vec<_> = from.listed.iter().map(|branch| branch.prepared()).collect();
        attempt.phase = Phase::Recovering;
        attempt.since = from.since;
        attempt.position = from.position;
        attempt.completed = from.id;
        attempt.driver = Attempt::driver(from.id);
        attempt.at_committer = owned(&listed, 0, 1).into_iter().map(|p| p.committable).collect();
        attempt.restored = from.listed;
        attempt.next_id = world.log.listing.next_checkpoint().0 as u8;
        attempt.kept = entry.map(|number| self.kept_with(&world.log, number)).unwrap_or_default();
        if self.cleaning {
            attempt.known = world.log.checkpoints().map(|(e, _)| e.number).collect();
        }
        if self.weakening == Weakening::AttemptsCountWithinLineage {
            let lower =
                world.log.claims().filter(|(e, _)| e.number >= from.since && e.number < attempt.number);
            attempt.within_lineage = 1 + lower.count() as u8;
        }
    }

    /// What the attempt that restores the entry at `number` may name as retained.
    fn kept_with(&self, log: &Log, number: u8) -> Vec<u8> {
        let safe = log.safe_from_cleaners();
        let mut kept = log.retained_with(number);
        kept.retain(|n| self.weakening == Weakening::RetainsWhatTheRestoredRetains || safe.contains(n));
        kept.push(number);
        kept
    }
}
