//! The commit log: the one place that says which checkpoints are complete, and who may write the next one.
//!
//! **Commit log law** (law 4), in short; RFC 0001 tells it whole, with the schedules that break weaker forms.
//!
//! 1. A folder has one log with a random id and belongs to one job. Entries are `log/<20 digits>`, each made by
//!    create-if-absent and never changed.
//! 2. A claim goes at highest listed + 1; **the attempt is the number of its claim**. Every later entry of that attempt goes at
//!    exactly its own last entry + 1, never at a number taken from a listing.
//! 3. After its put a claimant lists again: a claim above it means fenced; another entry above it means that the claim is void,
//!    claim again. Whatever can be refused is refused before the claim is written.
//! 4. Restore walks down from the own claim: the first checkpoint is restored; a claim with an explicit base that comes first
//!    hands on that base.
//! 5. Checkpoint *n* is complete when its entry exists. A put that meets a foreign entry means fenced.
//! 6. After an uncertain put the writer reads back: own nonce = complete, foreign = fenced, absent = put again.
//!
//! Owns: entries, their bytes, the decisions, the client that carries them out. Does not own: what stands in a manifest, when a
//! checkpoint is taken. Runs on: decisions anywhere; [`LogClient`] on the I/O side of the job manager.

mod bytes;
mod claim;
mod client;
mod decide;
mod entry;
mod error;
mod forget;
mod forget_error;
mod gaps;
mod identity;
mod listing;
mod retry;
mod rewind;
mod store;

#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod forget_tests;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod taken_over_tests;

pub use bytes::EnvelopeError;
pub use claim::{ClaimOutcome, Claimed, Survey};
pub use client::{LogClient, Settled};
pub use decide::{AfterClaim, PutAnswer, ReadBack, decide_after_claim, decide_after_put, read_back};
#[cfg(test)]
pub(crate) use entry::sealed;
pub use entry::{ClaimBase, EntryBody, LogEntry, Nonce, NonceSource, entry_in, read_entry};
pub(crate) use entry::{FOLDER, number_in, path_of};
pub use error::LogError;
pub use forget::Forgotten;
pub use forget_error::ForgetError;
pub use gaps::{Gap, Witness};
pub use identity::{IDENTITY_PATH, read_identity};
pub use listing::{Listing, RestorePoint};
pub use rewind::{DoubledOutput, Rewind};
pub use store::{LogStore, PutResult, StoreError};
