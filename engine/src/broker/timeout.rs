//! How long a broker has to keep an open transaction for nobody.
//!
//! A transaction is open from its first record until the commit that follows its checkpoint. In between, checkpoints may fail as often
//! as is tolerated, each after its timeout, and the job may be away. A broker that gives up earlier makes the transaction *lost*; it
//! refuses a timeout above its own maximum. Both are checked at submit.
//!
//! Owns: the bound. Does not own: the settings. Runs on: the submit check. Pure.

use crate::checkpoint::CheckpointConfig;

/// A transaction timeout that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionTimeout {
    /// Milliseconds, for the producer's setting.
    pub ms: u64,
}

/// Why a transaction timeout is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeoutRefusal {
    /// The broker would abort a transaction that is still wanted.
    #[error(
        "a transaction timeout of {asked_ms} ms is too short: a transaction may stay open for {needed_ms} ms\n  \
         (tolerable failures + 1) × (interval + checkpoint timeout) + the longest outage of the job\n  \
         help: raise it above that, or shorten the checkpoint timeout, or tolerate fewer failures"
    )]
    TooShort {
        /// What was asked for.
        asked_ms: u64,
        /// What the settings need.
        needed_ms: u64,
    },
    /// The broker would refuse it.
    #[error(
        "a transaction timeout of {asked_ms} ms is above the broker's maximum of {maximum_ms} ms\n  \
         help: raise transaction.max.timeout.ms on the brokers, or lower the timeout"
    )]
    AboveMaximum {
        /// What was asked for.
        asked_ms: u64,
        /// The broker's `transaction.max.timeout.ms`.
        maximum_ms: u64,
    },
}

impl TransactionTimeout {
    /// The shortest time for which a transaction must be kept, under these settings and outages of the job up to `outage_ms`.
    pub fn needed_ms(checkpoints: &CheckpointConfig, outage_ms: u64) -> u64 {
        // Between two barriers lie the interval, or a timeout and the pause after it.
        let pause_ms = checkpoints.interval_ms.max(checkpoints.min_pause_ms);
        let round_ms = pause_ms.saturating_add(checkpoints.timeout_ms);
        let rounds = u64::from(checkpoints.tolerable_failures).saturating_add(1);
        round_ms.saturating_mul(rounds).saturating_add(outage_ms)
    }

    /// Checks what was asked for.
    ///
    /// # Errors
    /// [`TimeoutRefusal`], with the remedy.
    pub fn check(
        asked_ms: u64,
        checkpoints: &CheckpointConfig,
        outage_ms: u64,
        maximum_ms: u64,
    ) -> Result<Self, TimeoutRefusal> {
        let needed_ms = Self::needed_ms(checkpoints, outage_ms);
        if asked_ms <= needed_ms {
            return Err(TimeoutRefusal::TooShort { asked_ms, needed_ms });
        }
        if asked_ms > maximum_ms {
            return Err(TimeoutRefusal::AboveMaximum { asked_ms, maximum_ms });
        }
        Ok(Self { ms: asked_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_outlives_every_tolerated_failure_and_the_outage() {
        let checkpoints = CheckpointConfig {
            interval_ms: 10,
            timeout_ms: 90,
            tolerable_failures: 2,
            ..CheckpointConfig::default()
        };
        assert_eq!(TransactionTimeout::needed_ms(&checkpoints, 50), 350);
        let check = |asked, maximum| TransactionTimeout::check(asked, &checkpoints, 50, maximum);
        assert_eq!(check(350, 900), Err(TimeoutRefusal::TooShort { asked_ms: 350, needed_ms: 350 }));
        assert_eq!(check(351, 900), Ok(TransactionTimeout { ms: 351 }));
        assert_eq!(check(901, 900), Err(TimeoutRefusal::AboveMaximum { asked_ms: 901, maximum_ms: 900 }));
    }

    #[test]
    fn settings_without_end_do_not_overflow() {
        let checkpoints = CheckpointConfig {
            timeout_ms: u64::MAX,
            tolerable_failures: u32::MAX,
            ..CheckpointConfig::default()
        };
        assert_eq!(TransactionTimeout::needed_ms(&checkpoints, 1), u64::MAX);
    }
}
