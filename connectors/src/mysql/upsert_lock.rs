//! The named lock of one upsert writer at the server.
//!
//! Name: `tidegate_`, 32 hexadecimal digits of the xxh3-128 of (job, log id, sink uid, table; each with its length in front), `_`, the
//! subtask. At most 53 of the 64 characters that servers allow. It is the same in every attempt of the job and in no other sink.
//!
//! Owns: the name, the SQL around it. Does not own: asking (see [`super::upsert_session`]). Runs on: plain data.

use tidegate_engine::operator::TransactionName;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Locks that one question asks for.
const LOCKS_PER_QUESTION: u32 = 512;
/// Highest parallelism whose left-overs are looked for.
const SUBTASKS_MAX: u32 = 1_024;

/// Whose lock it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpsertLock {
    sink: String,
    subtask: u32,
    parallelism: u32,
}

impl UpsertLock {
    /// Of a placed sink.
    pub(crate) fn of(name: &TransactionName, parallelism: u32, table: &str) -> Self {
        let scope = &name.scope;
        let parts =
            [scope.job.to_string(), scope.log_id.to_string(), scope.uid.to_string(), table.to_owned()];
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part.as_bytes());
        }
        let sink = format!("tidegate_{:032x}", xxh3_128(&bytes));
        Self { sink, subtask: name.subtask, parallelism: parallelism.max(1) }
    }

    fn name_of(&self, subtask: u32) -> String {
        format!("{}_{subtask}", self.sink)
    }

    /// Differs between subtasks and sinks.
    pub(crate) fn seed(&self) -> u64 {
        xxh3_64(self.name_of(self.subtask).as_bytes())
    }

    /// Asks for the lock: 1 if it was had, and who has it.
    pub(crate) fn take_sql(&self) -> String {
        let name = self.name_of(self.subtask);
        format!("SELECT GET_LOCK('{name}', 0), IS_USED_LOCK('{name}')")
    }

    /// Ask which sessions hold the locks of subtasks of earlier attempts that this one stands in for: those that are this one modulo the
    /// parallelism. The own one is not among them.
    pub(crate) fn of_earlier_attempts(&self) -> Vec<String> {
        let step = usize::try_from(self.parallelism).unwrap_or(usize::MAX);
        let later: Vec<u32> = (self.subtask..SUBTASKS_MAX).step_by(step).skip(1).collect();
        let question = |subtasks: &[u32]| {
            let asked: Vec<String> = subtasks
                .iter()
                .map(|subtask| format!("IS_USED_LOCK('{}')", self.name_of(*subtask)))
                .collect();
            format!("SELECT {}", asked.join(", "))
        };
        later.chunks(LOCKS_PER_QUESTION as usize).map(question).collect()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_engine::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};
    use tidegate_engine::operator::TransactionScope;

    use super::*;

    fn lock(job: &str, subtask: u32, parallelism: u32, attempt: u64) -> UpsertLock {
        let scope = TransactionScope {
            job: JobName::from(job),
            log_id: LogId::from("f".repeat(32).as_str()),
            lineage: Lineage(1),
            uid: OperatorUid::from("sink"),
        };
        let name =
            TransactionName { scope, subtask, opened_after: CheckpointId(0), attempt: AttemptId(attempt) };
        UpsertLock::of(&name, parallelism, "t")
    }

    #[test]
    fn the_lock_is_one_in_every_attempt_and_another_one_in_every_job() {
        assert_eq!(lock("orders", 3, 4, 1), lock("orders", 3, 4, 9));
        assert_ne!(lock("orders", 3, 4, 1).take_sql(), lock("order", 3, 4, 1).take_sql());
        assert_ne!(lock("orders", 3, 4, 1).take_sql(), lock("orders", 2, 4, 1).take_sql());
        assert!(lock("orders", u32::MAX, 4, 1).name_of(u32::MAX).len() <= 64);
    }

    #[test]
    fn every_subtask_of_a_higher_parallelism_is_looked_for_by_exactly_one() {
        let mut found = std::collections::BTreeMap::new();
        for subtask in 0..3 {
            let asked = lock("orders", subtask, 3, 1).of_earlier_attempts().join(" ");
            for earlier in 0..SUBTASKS_MAX {
                let name = lock("orders", earlier, 3, 1).name_of(earlier);
                *found.entry(earlier).or_insert(0) += u32::from(asked.contains(&format!("'{name}'")));
            }
        }
        assert!(found.iter().all(|(earlier, times)| *times == u32::from(*earlier >= 3)), "{found:?}");
    }
}
