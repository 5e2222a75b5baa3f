//! Switches that soften one law each, so that the simulation can show that it would notice.
//!
//! Owns: which laws are soft now, per thread. Does not own: the laws; each switch is asked in the file that owns its law.
//! Runs on: the simulation's thread. Without the cargo feature `mutations`, [`on`] is a constant `false`.

macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A law that a test may soften.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        impl Mutation {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

mutations! {
    /// A subtask acknowledges before its state is uploaded.
    AckBeforeUpload,
    /// Completion is told when every subtask has acknowledged, before the log entry exists.
    CommitBeforeCompletion,
    /// A channel whose barrier has come does not wait for the others.
    AlignmentSkipped,
    /// An aborted checkpoint rolls its transactions back.
    RollbackOnAbort,
    /// A sink's state lists only the transaction of its own checkpoint.
    ListsOnlyOwnCheckpoint,
    /// Recovery sweeps before it commits what is listed.
    SweepBeforeCommit,
    /// Pending committables are dealt out at a restore instead of given to everybody.
    SplitListInRecovery,
    /// The names of transactions do not tell attempts apart.
    NameWithoutAttempt,
    /// A sweep takes transactions of every other attempt, later ones too.
    SweepWithoutAttemptBound,
    /// One conditional put per checkpoint id: entries of others, claims too, do not fence.
    PutPerId,
    /// A put that was answered with an error counts as not done.
    UncertainPutIsFailure,
    /// Splits assigned after the enumerator's snapshot overtake the trigger.
    AssignmentAfterSnapshot,
    /// Acknowledgements of an older attempt are accepted.
    OldAckAccepted,
    /// A channel that has ended takes no part in alignment: its barriers are dropped.
    EndedChannelNotAligned,
    /// A blocked subtask does not read its mail.
    MailUnreadWhileBlocked,
    /// A committable is no longer pending when it is handed to the committer.
    PendingEndsAtHandOver,
    /// A claim does not say that it restores something else than the newest checkpoint.
    ExplicitRestoreNotInLog,
    /// A claimant does not list again after its put.
    NoSecondListing,
    /// Every entry goes at the highest listed number + 1.
    NumbersFromListing,
    /// The cleaner keeps the highest entries of a listing.
    CleanerByListing,
    /// The cleaner deletes what the next entry will not name before that entry stands.
    CleanerBeforeEntry,
    /// Files of a checkpoint lie under its id alone.
    FilesWithoutAttempt,
    /// An operator counts as ended when the end has come in, and its subtask takes a snapshot before `on_end`.
    EndedSetEarly,
    /// A restored subtask that had ended speaks its last word again.
    OnEndAgain,
    /// A part file that is finished and no longer pending does not count as committed.
    FinishedFileNotCommitted,
    /// A broker's transactional ids do not tell attempts apart.
    SlotNameWithoutAttempt,
    /// A starting subtask fences the ids of lower attempts before it commits what is listed.
    FenceBeforeRecovery,
    /// "Invalid transaction state" is taken as "committed", without a look at the ledger.
    InvalidStateIsCommitted,
    /// A broker gives an open transaction up before the longest outage is over.
    ShortTransactionTimeout,
    /// A slot is used again while its transaction is not settled.
    SlotReusedUnsettled,
    /// A subtask has one slot: its next transaction waits until the former one is settled.
    TooFewSlots,
    /// One producer writes one transaction after the other under the same epoch.
    ProducerKept,
    /// The initialisation of a slot for a new transaction is asked for again when no answer came.
    OpeningAskedAgain,
}

impl Mutation {
    /// Laws that mask this one: it can be noticed only when they are soft too.
    pub const fn masked_by(self) -> &'static [Self] {
        match self {
            // Given up, yet its transactions stay pending and go with the next one: nothing is lost by it alone.
            Self::UncertainPutIsFailure => &[Self::RollbackOnAbort],
            _ => &[],
        }
    }
}

#[cfg(feature = "mutations")]
mod switch {
    use std::cell::Cell;

    use super::Mutation;

    thread_local! {
        static SOFT: Cell<u64> = const { Cell::new(0) };
    }

    /// Softens one law on this thread together with those that mask it, or none.
    pub fn set(mutation: Option<Mutation>) {
        let soft = mutation.into_iter().flat_map(|m| m.masked_by().iter().copied().chain([m]));
        SOFT.set(soft.fold(0, |bits, m| bits | 1 << m as u64));
    }

    /// Whether this law is soft on this thread.
    pub fn on(mutation: Mutation) -> bool {
        SOFT.get() & (1 << mutation as u64) != 0
    }
}

#[cfg(feature = "mutations")]
pub use switch::{on, set};

/// Whether this law is soft: never, in a build without the feature `mutations`.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub const fn on(_mutation: Mutation) -> bool {
    false
}
