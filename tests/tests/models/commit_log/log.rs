//! The log of the model: small entries, and the engine's [`Listing`] of them, built anew only when an entry comes or goes.
//!
//! Owns: entries and their translation. Does not own: the walks (the engine's listing does). Runs on: plain data.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tidegate_engine::checkpoint::commit_log::{ClaimBase, EntryBody, Listing, LogEntry, Nonce, RestorePoint};
use tidegate_engine::checkpoint::manifest::Manifest;
use tidegate_engine::element::CheckpointKind;
use tidegate_engine::ids::{AttemptId, CheckpointId, EntryNumber};

use super::super::server::Branch;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) number: u8,
    pub(super) attempt: u8,
    /// Which start put it: stands for its nonce.
    pub(super) start: usize,
    pub(super) body: Body,
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Body {
    Claim(Base),
    Checkpoint { snapshot: Snapshot, retained: Vec<u8> },
}

/// What a claim restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    Latest,
    Nothing,
    Entry(u8),
}

/// What a checkpoint holds: the source's position and the sink's list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Snapshot {
    pub(super) id: u8,
    pub(super) position: u8,
    pub(super) listed: Vec<Branch>,
    /// The claim of the start without restore that this history goes back to, or 0: output of lower attempts is none of its business.
    pub(super) since: u8,
}

impl Entry {
    /// The nonce of whatever this start puts at this number.
    pub(super) fn nonce_of(start: usize, number: u8) -> Nonce {
        Nonce(start as u128 + 1).of_entry(EntryNumber(u64::from(number)))
    }

    /// The engine's entry.
    pub(super) fn real(&self) -> LogEntry {
        let body = match &self.body {
            Body::Claim(base) => {
                let base = match base {
                    Base::Latest => ClaimBase::Latest,
                    Base::Nothing => ClaimBase::None,
                    Base::Entry(number) => ClaimBase::Entry(EntryNumber(u64::from(*number))),
                };
                EntryBody::Claim { base, stores: Vec::new() }
            }
            Body::Checkpoint { snapshot, retained } => EntryBody::Checkpoint {
                manifest: manifest(snapshot.id, self.attempt),
                retained: retained.iter().map(|n| EntryNumber(u64::from(*n))).collect(),
                committed: Vec::new(),
            },
        };
        let attempt = AttemptId(u64::from(self.attempt));
        LogEntry { attempt, nonce: Self::nonce_of(self.start, self.number), body }
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        match &self.body {
            Body::Checkpoint { snapshot, .. } => Some(snapshot),
            Body::Claim(_) => None,
        }
    }
}

/// A manifest of this checkpoint. What it holds stands beside it, in the model's [`Snapshot`].
pub(super) fn manifest(id: u8, attempt: u8) -> Manifest {
    let (job, log_id, lineage) = Default::default();
    Manifest {
        job,
        log_id,
        lineage,
        checkpoint: CheckpointId(u64::from(id)),
        attempt: AttemptId(u64::from(attempt)),
        kind: CheckpointKind::Checkpoint,
        completed_at_ms: 0,
        operators: Vec::new(),
    }
}

/// Every entry that stands, lowest first, and what the engine reads in them. Two logs are equal when their entries are.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) entries: Vec<Entry>,
    pub(super) listing: Listing,
    /// What a start that claimed now would restore.
    pub(super) restart: RestorePoint,
}

impl Log {
    pub(super) fn of(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|e| e.number);
        let real = |e: &Entry| (EntryNumber(u64::from(e.number)), Arc::new(e.real()));
        let listing: Listing = entries.iter().map(real).collect();
        let restart = listing.restore_point(listing.highest());
        Self { entries, listing, restart }
    }

    pub(super) fn get(&self, number: u8) -> Option<&Entry> {
        self.entries.iter().find(|e| e.number == number)
    }

    pub(super) fn highest(&self) -> u8 {
        self.entries.last().map_or(0, |e| e.number)
    }

    pub(super) fn claims(&self) -> impl DoubleEndedIterator<Item = (&Entry, Base)> {
        self.entries.iter().filter_map(|e| match &e.body {
            Body::Claim(base) => Some((e, *base)),
            Body::Checkpoint { .. } => None,
        })
    }

    pub(super) fn checkpoints(&self) -> impl DoubleEndedIterator<Item = (&Entry, &Snapshot)> {
        self.entries.iter().filter_map(|e| Some((e, e.snapshot()?)))
    }

    /// The claim whose attempt the job is.
    pub(super) fn newest_claim(&self) -> u8 {
        self.claims().next_back().map_or(0, |(e, _)| e.number)
    }

    /// The highest checkpoint entry, and what it names as retained: all that no cleaner of any attempt deletes.
    pub(super) fn safe_from_cleaners(&self) -> Vec<u8> {
        let Some((highest, _)) = self.checkpoints().next_back() else { return Vec::new() };
        let mut safe = self.retained_with(highest.number);
        safe.push(highest.number);
        safe
    }

    /// What the checkpoint entry at `number` names as retained, as far as it stands.
    pub(super) fn retained_with(&self, number: u8) -> Vec<u8> {
        let retained = self.listing.retained_with(EntryNumber(u64::from(number)));
        retained.iter().map(|c| c.number.0 as u8).collect()
    }

    /// What the newest entry *of the line* names, newest first: the weaker form of what a rewind may name. After a rewind that completed
    /// nothing that is not the newest entry of the log, and whoever wrote that one may be about to delete what it does not name.
    pub(super) fn retained_by_the_line(&self) -> Vec<u8> {
        let line: Vec<u8> = self.listing.line().iter().map(|n| n.0 as u8).collect();
        let Some(newest) = line.first().copied() else { return Vec::new() };
        let retained = self.retained_with(newest);
        line.into_iter().filter(|n| *n == newest || retained.contains(n)).collect()
    }

    /// The newest start without restore that holds, at or below `from`.
    pub(super) fn began_anew(&self, from: u8) -> u8 {
        let is_void = |e: &Entry| self.listing.is_void(EntryNumber(u64::from(e.number)));
        let mut anew =
            self.claims().rev().filter(|(e, base)| *base == Base::Nothing && e.number <= from && !is_void(e));
        anew.next().map_or(0, |(e, _)| e.number)
    }
}

impl PartialEq for Log {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Hash for Log {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entries.hash(state);
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let name = super::world::NAMES[entry.start];
            match &entry.body {
                Body::Claim(Base::Latest) => write!(f, " {}:claim({name})", entry.number)?,
                Body::Claim(Base::Nothing) => write!(f, " {}:claim({name}, none)", entry.number)?,
                Body::Claim(Base::Entry(base)) => write!(f, " {}:claim({name}, base {base})", entry.number)?,
                Body::Checkpoint { snapshot, .. } => {
                    write!(
                        f,
                        " {}:checkpoint {}({name}, at {}",
                        entry.number, snapshot.id, snapshot.position
                    )?;
                    snapshot.listed.iter().try_for_each(|b| write!(f, ", {b}"))?;
                    write!(f, ")")?;
                }
            }
        }
        Ok(())
    }
}
