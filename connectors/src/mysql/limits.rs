//! How long a session waits for what.
//!
//! Owns: the limits, as they follow from the checkpoint timeout. Does not own: waiting. Runs on: plain data.

use std::time::Duration;

use super::{MysqlError, MysqlUrl};

/// Limits of one session. Every wait on the server is below the checkpoint timeout, so that a job learns why before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Until a connection is there.
    pub connect: Duration,
    /// Until a statement has its answer.
    pub statement: Duration,
    /// Until a row or table lock is there (`innodb_lock_wait_timeout`, `lock_wait_timeout`); whole seconds.
    pub lock_wait: Duration,
    /// A session that says nothing for so long is closed by the server (`wait_timeout`); whole seconds.
    pub idle: Duration,
}

/// Room in a packet for all but the values.
pub(crate) const PACKET_ROOM_BYTES: usize = 1_024;
/// Servers round the limit on packets down to multiples of this.
const PACKET_STEP_BYTES: usize = 1_024;

/// The smallest limit on packets (`max_allowed_packet`) with which a row of this size is taken.
pub(crate) fn packet_for_row(row_bytes: usize) -> usize {
    row_bytes.saturating_add(PACKET_ROOM_BYTES).next_multiple_of(PACKET_STEP_BYTES)
}

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for a lock: what InnoDB's default is.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(50);
/// Shortest that the servers know.
const SECOND: Duration = Duration::from_secs(1);
/// A statement has at least so much longer than its wait for a lock: the answer that the lock did not come has to come too.
const ANSWER_ROOM: Duration = Duration::from_millis(500);
/// Below this checkpoint timeout the servers' second is too long a step.
const CHECKPOINT_TIMEOUT_MIN: Duration = Duration::from_secs(2);
/// Sessions outlive such a pause.
const IDLE_MAX: Duration = Duration::from_secs(600);

impl SessionLimits {
    /// The limits of a job whose checkpoints are given up after `checkpoint_timeout`.
    pub fn below(checkpoint_timeout: Duration) -> Self {
        let part = |eighths: u32, longest: Duration| {
            let whole = Duration::from_secs((checkpoint_timeout * eighths / 8).as_secs());
            whole.clamp(SECOND, longest)
        };
        let (lock_wait, idle) = (part(3, LOCK_WAIT_MAX), part(6, IDLE_MAX));
        Self {
            connect: part(4, CONNECT_MAX),
            statement: (checkpoint_timeout * 7 / 8).max(lock_wait + ANSWER_ROOM),
            lock_wait,
            idle,
        }
    }

    /// Refuses a checkpoint timeout below which nothing on the server at `url` can be waited for.
    pub(crate) fn check(checkpoint_timeout: Duration, url: &MysqlUrl) -> Result<(), MysqlError> {
        if checkpoint_timeout >= CHECKPOINT_TIMEOUT_MIN {
            return Ok(());
        }
        let is_ms = checkpoint_timeout.as_millis();
        Err(MysqlError::Unusable {
            server: url.place(),
            why: format!(
                "the checkpoint timeout is {is_ms} ms, and a wait for a lock, which must be shorter, takes at least 1 s there"
            ),
            remedy: format!(
                "set the checkpoint timeout (`--checkpoint-timeout`) to at least {} ms",
                CHECKPOINT_TIMEOUT_MIN.as_millis()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_is_named_for_a_large_row_is_one_that_takes_it() {
        for row_bytes in [1, 1_023, 1_024, 1_047_553, 1_048_576] {
            let limit = packet_for_row(row_bytes);
            assert!(limit.is_multiple_of(1_024) && row_bytes <= limit - PACKET_ROOM_BYTES, "{row_bytes}");
            assert!(row_bytes > limit - 1_024 - PACKET_ROOM_BYTES, "{row_bytes}: and no larger than needed");
        }
    }

    #[test]
    fn every_wait_is_below_the_checkpoint_timeout() {
        let url = MysqlUrl::parse("mysql://u:p@h:1/d").unwrap();
        for secs in [2, 3, 10, 120, 3_600] {
            let timeout = Duration::from_secs(secs);
            SessionLimits::check(timeout, &url).unwrap();
            let limits = SessionLimits::below(timeout);
            for span in [limits.connect, limits.statement, limits.lock_wait, limits.idle] {
                assert!(span < timeout && span >= SECOND, "{secs}: {limits:?}");
            }
            assert!(limits.lock_wait < limits.statement);
        }
    }
    #[test]
    fn a_checkpoint_timeout_below_the_servers_shortest_wait_is_refused_with_both_numbers() {
        let url = MysqlUrl::parse("mysql://u:p@h:1/d").unwrap();
        let said = SessionLimits::check(Duration::from_millis(1_999), &url).unwrap_err().to_string();
        for part in ["h:1/d", "1999 ms", "at least 1 s", "at least 2000 ms"] {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
    }
}
