//! The places around each durable step at which a torture run must strike.
//!
//! Owns: the list, the words for each, and how many passes through its fault point lie between two checkpoints.
//! Does not own: the fault points (`tidegate::state::fault`), the order of the strikes ([`super::schedule`]).
//! Runs on: the main thread. Pure.

use crate::address::SinkAddress;
use tidegate_jobs::random::SplitMix64;

/// Sinks of the orders job: each subtask has one writer and one committer of each.
const SINKS: u64 = 4;
/// Batches of one subtask of one sink, after which a kill falls at the earliest; on a busy machine they are few and large.
const BATCHES: u64 = 5;
/// Statements of a subtask and sink in a little more than a checkpoint interval, at the least.
const STATEMENTS: u64 = 20;
/// So many more at the latest, on an idle one about an interval between two checkpoints.
const BATCHES_MORE: u64 = 15;

/// A place between two durable steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A writer has taken records that are on no disk yet.
    Buffered,
    /// A batch is half inserted.
    HalfBatch,
    /// A transaction is prepared, and its checkpoint is not complete.
    Prepared,
    /// The log says complete, and nothing is committed.
    Logged,
    /// A transaction is merged and not yet in the ledger.
    InCommit,
    /// One of several transactions is committed.
    BetweenCommits,
    /// A start settles what another process has left.
    InRecovery,
}

impl Place {
    /// Every place; each must be struck.
    pub(crate) const ALL: [Self; 7] = [
        Self::Buffered,
        Self::HalfBatch,
        Self::Prepared,
        Self::Logged,
        Self::InCommit,
        Self::BetweenCommits,
        Self::InRecovery,
    ];

    /// For people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Buffered => "record in the buffer",
            Self::HalfBatch => "half of a batch written",
            Self::Prepared => "batch written, checkpoint not complete",
            Self::Logged => "log entry written, not committed",
            Self::InCommit => "during the commit",
            Self::BetweenCommits => "between two commits",
            Self::InRecovery => "during recovery",
        }
    }
}

/// Points that are inside the connector of the sink, where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SinkPoints {
    /// A part of a batch is written, the rest is not.
    pub(crate) half_batch: &'static str,
    /// A transaction is being committed.
    pub(crate) in_commit: &'static str,
    /// Sinks of the job.
    pub(crate) sinks: u64,
}

impl SinkPoints {
    /// Between two inserts of a batch; between merge and ledger.
    pub(crate) const SQLITE: Self =
        Self { half_batch: "sqlite.insert.between", in_commit: "sqlite.merge.between", sinks: SINKS };
    /// Between two statements of a branch; the server has committed, and nobody has taken note.
    #[cfg(feature = "mysql")]
    pub(crate) const XA: Self =
        Self { half_batch: "mysql.insert.between", in_commit: "mysql.xa.commit.after", sinks: SINKS };
    /// Between two statements into a staging table; between its merge and the ledger.
    #[cfg(feature = "mysql")]
    pub(crate) const STAGING: Self =
        Self { half_batch: "mysql.insert.between", in_commit: "mysql.staging.merge.between", sinks: SINKS };
    /// The transaction has some of its batches and not the next one; the broker has committed, and nobody has taken note.
    #[cfg(feature = "rdkafka")]
    pub(crate) const KAFKA: Self =
        Self { half_batch: "sink.write.before", in_commit: "sink.commit.after", sinks: 1 };

    /// Those of this sink.
    pub(crate) fn of(sink: &SinkAddress) -> Self {
        match sink {
            #[cfg(feature = "mysql")]
            SinkAddress::Mysql(address) if address.mode == crate::address::servers::MysqlMode::Staging => {
                Self::STAGING
            }
            #[cfg(feature = "mysql")]
            SinkAddress::Mysql(_) => Self::XA,
            #[cfg(feature = "rdkafka")]
            SinkAddress::Kafka(_) => Self::KAFKA,
            _ => Self::SQLITE,
        }
    }
}

/// A fault point, and the pass that strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultPass {
    /// Around which step.
    pub(crate) place: Place,
    /// The point.
    pub(crate) point: &'static str,
    /// Which pass through it.
    pub(crate) nth: u64,
}

impl FaultPass {
    /// A pass that a run of this parallelism comes to between its first and its third checkpoint, or, in recovery, at once; batches
    /// are counted and not foreseen, so that a kill with a record in the buffer may come earlier.
    pub(crate) fn draw(
        place: Place,
        point: &'static str,
        (parallelism, sinks): (u32, u64),
        random: &mut SplitMix64,
    ) -> Self {
        let a_checkpoint = sinks * u64::from(parallelism);
        let nth = match place {
            // Passed by each batch.
            Place::HalfBatch if point == "sink.write.before" => {
                a_checkpoint * (BATCHES + random.below(BATCHES_MORE))
            }
            Place::Buffered => a_checkpoint * (BATCHES + random.below(BATCHES_MORE)),
            // By each statement but the first of a transaction.
            Place::HalfBatch if point.starts_with("mysql.") => {
                a_checkpoint * (STATEMENTS + random.below(BATCHES_MORE))
            }
            // Passed once by each transaction.
            Place::HalfBatch | Place::InCommit => a_checkpoint + 1 + random.below(a_checkpoint),
            Place::Prepared if point.starts_with("sink.") => a_checkpoint + 1 + random.below(a_checkpoint),
            // Passed once by each checkpoint.
            Place::Prepared | Place::Logged => 2 + random.below(2),
            Place::BetweenCommits | Place::InRecovery => 1,
        };
        Self { place, point, nth }
    }

    /// As `TIDEGATE_FAULT` takes it.
    pub(crate) fn variable(&self) -> String {
        format!("{}:{}", self.point, self.nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strike_outside_recovery_lets_a_checkpoint_pass() {
        let mut random = SplitMix64::seeded(1);
        for _ in 0..100 {
            let pass = FaultPass::draw(Place::Prepared, "sink.prepare.after", (3, SINKS), &mut random);
            assert!((13..=24).contains(&pass.nth), "{pass:?}");
            let pass = FaultPass::draw(Place::Logged, "commit_log.checkpoint.after", (3, SINKS), &mut random);
            assert!((2..=3).contains(&pass.nth), "{pass:?}");
        }
        let pass = FaultPass::draw(Place::InRecovery, "sink.recover.after", (3, SINKS), &mut random);
        assert_eq!(pass.variable(), "sink.recover.after:1");
    }
}
