//! Whether, and after what pause, a write is tried again.
//!
//! Owns: the decision and its limits. Does not own: waiting, nor what is tried. Runs on: the I/O side; pure, no clock.

use std::time::Duration;

use super::MysqlError;

/// Longest pause between two tries while a server is away.
const AWAY_PAUSE_MAX: Duration = Duration::from_secs(10);
/// First pause while a server is away.
const AWAY_PAUSE_FIRST: Duration = Duration::from_millis(100);
/// How often a write that lost in a deadlock is tried again. Each time somebody else got through.
const DEADLOCKS_MAX: u32 = 100;
/// Longest pause after a deadlock.
const DEADLOCK_PAUSE_MAX: Duration = Duration::from_millis(50);

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Try again after a pause; on a new connection if the old one is of no use.
    After {
        /// How long to wait first.
        pause: Duration,
        /// Whether the connection is given up.
        reconnect: bool,
    },
    /// Trying again would not help.
    Hopeless,
    /// It was tried often enough.
    Spent,
}

/// Tries of one write.
#[derive(Clone, Debug)]
pub(crate) struct Retries {
    retries_max: u32,
    /// Tells writers apart, so that two that met in a deadlock do not meet again.
    seed: u64,
    retries: u32,
    deadlocks: u32,
}

impl Retries {
    pub(crate) fn new(retries_max: u32, seed: u64) -> Self {
        Self { retries_max, seed, retries: 0, deadlocks: 0 }
    }

    /// How often it was tried, the first time included.
    pub(crate) fn tries(&self) -> u32 {
        1 + self.retries + self.deadlocks
    }

    /// Decides after an error.
    pub(crate) fn after(&mut self, error: &MysqlError) -> Retry {
        if let MysqlError::Deadlock { .. } = error {
            if self.deadlocks == DEADLOCKS_MAX {
                return Retry::Spent;
            }
            self.deadlocks += 1;
            return Retry::After { pause: self.deadlock_pause(), reconnect: false };
        }
        let is_locked = matches!(error, MysqlError::LockWait { .. });
        // A server that only reads is one that was the primary: its successor answers at the same address.
        let is_away = error.is_away() || matches!(error, MysqlError::ReadOnly { .. });
        if !is_locked && !is_away {
            return Retry::Hopeless;
        }
        if self.retries == self.retries_max {
            return Retry::Spent;
        }
        self.retries += 1;
        // A lock was waited for already; a connection that was closed while nobody used it is replaced at once.
        let pause = if is_locked { Duration::ZERO } else { self.away_pause() };
        Retry::After { pause, reconnect: is_away }
    }

    /// 0, then 100 ms, doubled each time.
    fn away_pause(&self) -> Duration {
        let Some(doublings) = self.retries.checked_sub(2) else { return Duration::ZERO };
        AWAY_PAUSE_FIRST.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(AWAY_PAUSE_MAX)
    }

    fn deadlock_pause(&self) -> Duration {
        let longest = (2_u64 << self.deadlocks.min(5)).min(DEADLOCK_PAUSE_MAX.as_millis() as u64);
        let mixed = (self.seed ^ (u64::from(self.deadlocks) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Duration::from_millis((mixed >> 33) % longest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::{Attempted, ServerAnswer};
    use super::*;

    fn answered(code: u16) -> MysqlError {
        let at = Attempted { doing: "writing".into(), server: "h:1/d".into() };
        MysqlError::of_answer(at, ServerAnswer { code, state: "HY000".into(), message: String::new() })
    }

    fn away() -> MysqlError {
        MysqlError::ConnectTimeout { server: "h:1/d".into(), waited_ms: 1 }
    }

    #[test]
    fn a_server_that_is_away_is_asked_again_at_once_and_then_ever_later() {
        let mut retries = Retries::new(12, 0);
        let pauses: Vec<u128> = std::iter::from_fn(|| match retries.after(&away()) {
            Retry::After { pause, reconnect: true } => Some(pause.as_millis()),
            _ => None,
        })
        .collect();
        assert_eq!(pauses, [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 10_000]);
        assert_eq!(retries.after(&away()), Retry::Spent);
        assert_eq!(retries.tries(), 13);
    }

    #[test]
    fn a_deadlock_does_not_use_up_the_retries_and_keeps_the_connection() {
        let mut retries = Retries::new(0, 7);
        for _ in 0..DEADLOCKS_MAX {
            let Retry::After { pause, reconnect: false } = retries.after(&answered(1213)) else {
                panic!("a deadlock is retried")
            };
            assert!(pause < DEADLOCK_PAUSE_MAX);
        }
        assert_eq!(retries.after(&answered(1213)), Retry::Spent);
    }

    #[test]
    fn a_value_that_does_not_fit_never_will() {
        for code in [1406, 1048, 1264, 1062, 1146, 1142] {
            assert_eq!(Retries::new(5, 0).after(&answered(code)), Retry::Hopeless, "{code}");
        }
    }

    #[test]
    fn a_lock_that_was_waited_for_is_tried_again_on_the_same_connection() {
        let again = Retry::After { pause: Duration::ZERO, reconnect: false };
        let mut retries = Retries::new(1, 0);
        assert_eq!(retries.after(&answered(1205)), again);
        assert_eq!(retries.after(&answered(1205)), Retry::Spent);
    }

    #[test]
    fn a_user_that_was_let_in_before_is_not_given_up_at_once() {
        let denied = || {
            let at = Attempted { doing: "connecting".into(), server: "h:1/d".into() };
            let source = ServerAnswer { code: 1045, state: "28000".into(), message: String::new() };
            MysqlError::AccessDenied { at, user: "u".into(), source }
        };
        assert_eq!(Retries::new(5, 0).after(&denied()), Retry::Hopeless);
        let running = denied().while_running("u");
        assert!(matches!(Retries::new(5, 0).after(&running), Retry::After { reconnect: true, .. }));
    }
}
