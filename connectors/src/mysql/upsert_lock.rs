//! The named locks of one upsert writer at the server.
//!
//! | lock | name |
//! |---|---|
//! | of the writer: the same in every attempt of the job, and in no other sink | `tidegate_`, 32 hexadecimal digits of the xxh3-128 of (job, log id, sink uid, table), `_`, the subtask |
//! | of the attempt: its sessions are told from older ones by it | the same with the attempt behind the table |
//!
//! Each of what is hashed has its length in front. At most 52 of the 64 characters that servers allow. A session takes its attempt's
//! lock first: whoever holds a writer's lock without that of an attempt is no session of that attempt.
//!
//! Owns: the names, the SQL around them. Does not own: asking (see [`super::upsert_session`]). Runs on: plain data.

use tidegate_engine::operator::TransactionName;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Subtasks that one question asks for.
const SUBTASKS_PER_QUESTION: u32 = 256;
/// Highest parallelism whose left-overs are looked for.
const SUBTASKS_MAX: u32 = 1_024;

/// Whose locks they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpsertLock {
    sink: String,
    attempt: String,
    subtask: u32,
}

impl UpsertLock {
    /// Of a placed sink.
    pub(crate) fn of(name: &TransactionName, table: &str) -> Self {
        let scope = &name.scope;
        let sink = [scope.job.as_str(), scope.log_id.as_str(), scope.uid.as_str(), table];
        let attempt = name.attempt.0.to_string();
        Self {
            sink: hashed(&sink),
            attempt: hashed(&[&sink[..], &[attempt.as_str()]].concat()),
            subtask: name.subtask,
        }
    }

    fn of_writer(&self, subtask: u32) -> String {
        format!("{}_{subtask}", self.sink)
    }

    fn of_attempt(&self, subtask: u32) -> String {
        format!("{}_{subtask}", self.attempt)
    }

    /// Differs between subtasks and sinks.
    pub(crate) fn seed(&self) -> u64 {
        xxh3_64(self.of_writer(self.subtask).as_bytes())
    }

    /// Asks for both locks, in this order: 1 for each if it was had, and who has the writer's.
    pub(crate) fn take_sql(&self) -> String {
        let (attempt, writer) = (self.of_attempt(self.subtask), self.of_writer(self.subtask));
        format!("SELECT GET_LOCK('{attempt}', 0), GET_LOCK('{writer}', 0), IS_USED_LOCK('{writer}')")
    }

    /// Ask, for every subtask that there may have been, who holds the writer's lock and who that of this attempt: two sessions in
    /// turn. Where they are not the same one, the first is of another attempt.
    pub(crate) fn of_all_writers(&self) -> Vec<String> {
        let pair = |subtask: u32| {
            let (writer, attempt) = (self.of_writer(subtask), self.of_attempt(subtask));
            format!("IS_USED_LOCK('{writer}'), IS_USED_LOCK('{attempt}')")
        };
        let subtasks: Vec<u32> = (0..SUBTASKS_MAX).collect();
        let questions = subtasks.chunks(SUBTASKS_PER_QUESTION as usize);
        questions
            .map(|part| {
                let pairs: Vec<String> = part.iter().map(|subtask| pair(*subtask)).collect();
                format!("SELECT {}", pairs.join(", "))
            })
            .collect()
    }
}

fn hashed(parts: &[&str]) -> String {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    format!("tidegate_{:032x}", xxh3_128(&bytes))
}

#[cfg(test)]
mod tests {
    use tidegate_engine::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};
    use tidegate_engine::operator::TransactionScope;

    use super::*;

    fn lock(job: &str, subtask: u32, attempt: u64) -> UpsertLock {
        let scope = TransactionScope {
            job: JobName::from(job),
            log_id: LogId::from("f".repeat(32).as_str()),
            lineage: Lineage(1),
            uid: OperatorUid::from("sink"),
        };
        let name =
            TransactionName { scope, subtask, opened_after: CheckpointId(0), attempt: AttemptId(attempt) };
        UpsertLock::of(&name, "t")
    }

    #[test]
    fn the_writers_lock_is_one_in_every_attempt_and_another_one_in_every_job() {
        let name = |lock: UpsertLock| lock.of_writer(lock.subtask);
        assert_eq!(name(lock("orders", 3, 1)), name(lock("orders", 3, 9)));
        assert_ne!(name(lock("orders", 3, 1)), name(lock("order", 3, 1)));
        assert_ne!(name(lock("orders", 3, 1)), name(lock("orders", 2, 1)));
        assert_ne!(lock("orders", 3, 1).of_attempt(3), lock("orders", 3, 9).of_attempt(3));
        assert!(lock("orders", u32::MAX, u64::MAX).of_attempt(u32::MAX).len() <= 64);
    }

    #[test]
    fn every_subtask_of_any_parallelism_is_looked_for_by_each() {
        for subtask in [0, 7] {
            let asked = lock("orders", subtask, 1).of_all_writers().join(" ");
            for other in 0..SUBTASKS_MAX {
                let name = lock("orders", other, 5).of_writer(other);
                assert_eq!(asked.matches(&format!("('{name}')")).count(), 1, "{other}");
            }
        }
    }
}
