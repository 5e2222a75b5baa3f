//! Transactions of a job that stand in the servers and that nobody has decided.
//!
//! Owns: the figures, and that there must be none when a job has finished. Does not own: settling them (the job's recovery,
//! `tidegate xa`, `tidegate txn`). Runs on: the main thread.

use crate::address::SinkAddress;
use crate::ground::GroundError;
use crate::run_line::RunLine;

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Leftover {
    /// Prepared branches of the job in MySQL.
    pub(crate) branches: u64,
    /// Staging tables of Tidegate in the database.
    pub(crate) staging: u64,
    /// Partitions of Kafka's topics where an open transaction holds records back.
    pub(crate) held_back: u64,
}

impl Leftover {
    /// Asks the servers that a run writes to.
    ///
    /// # Errors
    /// [`GroundError`].
    pub(crate) fn of(line: &RunLine) -> Result<Self, GroundError> {
        #[cfg_attr(
            not(any(feature = "mysql", feature = "rdkafka")),
            allow(unused_mut, reason = "no server is asked")
        )]
        let mut left = Self::default();
        for sink in [Some(&line.sink), line.detail.as_ref()].into_iter().flatten() {
            match sink {
                #[cfg(feature = "mysql")]
                SinkAddress::Mysql(address) => {
                    use crate::database::{Session, leftover};
                    let mut session = Session::open(address)?;
                    if let Some(log_id) = line.checkpoints.as_deref().and_then(crate::log_id::log_id) {
                        left.branches += leftover::branches(&mut session, &log_id)?.len() as u64;
                    }
                    left.staging += leftover::staging_tables(&mut session)?.len() as u64;
                }
                #[cfg(feature = "rdkafka")]
                SinkAddress::Kafka(address) => left.held_back += crate::topic::admin::held_back(address)?,
                SinkAddress::Sqlite(_) | SinkAddress::Blackhole => {}
            }
        }
        Ok(left)
    }

    /// True when there is none.
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }

    /// For people.
    pub(crate) fn words(self) -> String {
        if self.is_none() {
            return "none".to_owned();
        }
        format!(
            "{} in XA RECOVER, {} staging tables, {} partitions with an open transaction",
            self.branches, self.staging, self.held_back
        )
    }
}
