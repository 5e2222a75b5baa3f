//! Weaker forms of the laws, each as somebody might build it, to show that these schedules would notice.

use std::sync::Arc;

use bytes::Bytes;

use super::super::bytes::{ENTRY_MAGIC, seal};
use super::super::entry::path_of;
use super::super::{
    Claimed, EntryBody, LogClient, LogEntry, LogStore, NonceSource, PutResult, ReadBack, Survey,
};
use super::attempt::Attempt;
use super::store::ScheduledStore;
use crate::ids::{AttemptId, EntryNumber};

/// A weaker form of the laws, as somebody might build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weakness {
    /// Each entry goes at highest listed + 1.
    NumbersFromListing,
    /// The claimant does not look again after its put.
    NoSecondListing,
    /// A put that reports an error, or "already exists", has failed.
    ErrorMeansFailure,
    /// The cleaner deletes everything below the newest checkpoint, whatever it names.
    CleanerKeepsTheNewest,
    /// An aborted checkpoint rolls its transaction back.
    RollbackOnAbort,
    /// A snapshot lists only the transaction of its own checkpoint.
    ListsOnlyOwnCheckpoint,
    /// Recovery rolls back whatever is not listed, of higher attempts too.
    SweepWithoutBound,
}

impl Weakness {
    pub(super) const ALL: [Self; 7] = [
        Self::NumbersFromListing,
        Self::NoSecondListing,
        Self::ErrorMeansFailure,
        Self::CleanerKeepsTheNewest,
        Self::RollbackOnAbort,
        Self::ListsOnlyOwnCheckpoint,
        Self::SweepWithoutBound,
    ];
}

/// Claims and takes what it listed before for what is there.
pub(super) async fn claim_blindly(
    client: &LogClient<ScheduledStore>,
    survey: &Survey,
    nonces: &mut NonceSource,
) -> Option<Claimed> {
    let (own, nonce) = (survey.listing.highest().next(), nonces.draw());
    let body = EntryBody::Claim { base: survey.base, stores: Vec::new() };
    let entry = LogEntry { attempt: AttemptId(own.0), nonce, body };
    if !matches!(client.put_once(own, &entry).await, Ok(ReadBack::Ours)) {
        return None;
    }
    let known = survey.listing.iter().map(|(number, entry)| (number, Arc::new(entry.clone())));
    client.begun(own, nonce, known.chain([(own, Arc::new(entry))]).collect()).ok()
}

impl Attempt {
    /// Takes anything but "created" for a failure: the job rolls back and ends.
    pub(super) async fn append_or_give_up(&mut self, number: EntryNumber, entry: &LogEntry) -> bool {
        let bytes = Bytes::from(seal(ENTRY_MAGIC, entry));
        if let Ok(PutResult::Created) = self.store.create(&path_of(number), bytes).await {
            self.last = number;
            return true;
        }
        for branch in std::mem::take(&mut self.listed) {
            self.world.lock().unwrap().roll_back(branch);
        }
        false
    }
}
