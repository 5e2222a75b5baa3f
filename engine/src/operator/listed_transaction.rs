//! A transaction that a checkpoint lists, without its connector's part: for those who know the log and not the job.
//!
//! Owns: reading names from the state of any two-phase sink. Does not own: that state ([`super::sink_operator`]).
//! Runs on: plain data.

use tidegate_state::{StateError, decode_list};

use super::transaction::{StoredParts, TransactionName};
use crate::ids::CheckpointId;

/// A pending transaction as a checkpoint lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedTransaction {
    /// The checkpoint whose barrier closed it.
    pub closed_by: CheckpointId,
    /// Its name.
    pub name: TransactionName,
}

/// [`super::sink_operator::StoredCommittable`] without the connector's part, which is skipped.
#[derive(Clone, Debug, tidegate_state::StateType)]
#[state(renamed_from = "StoredCommittable")]
struct StoredName {
    job: String,
    log_id: String,
    lineage: u64,
    uid: String,
    subtask: u32,
    opened_after: u64,
    attempt: u64,
    closed_by: u64,
}

impl From<StoredName> for ListedTransaction {
    fn from(stored: StoredName) -> Self {
        let StoredName { job, log_id, lineage, uid, subtask, opened_after, attempt, closed_by } = stored;
        let parts = StoredParts { job, log_id, lineage, uid, subtask, opened_after, attempt };
        Self { closed_by: CheckpointId(closed_by), name: parts.into() }
    }
}

impl ListedTransaction {
    /// Reads the list state [`super::sink_operator::COMMITTABLES`] of one subtask of any sink.
    ///
    /// # Errors
    /// Damaged bytes, or those of another state.
    pub fn read_list(bytes: &[u8]) -> Result<Vec<Self>, StateError> {
        Ok(decode_list::<StoredName>(bytes)?.into_iter().map(Self::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use tidegate_state::encode_list;

    use super::*;
    use crate::api::Prepared;
    use crate::ids::{AttemptId, Lineage};
    use crate::operator::TransactionScope;
    use crate::operator::sink_operator::StoredCommittable;

    #[test]
    fn names_are_read_whatever_the_connector_stores_beside_them() {
        let scope = TransactionScope {
            job: "orders".into(),
            log_id: "feed".into(),
            lineage: Lineage(3),
            uid: "sink".into(),
        };
        let name = |subtask| TransactionName {
            scope: scope.clone(),
            subtask,
            opened_after: CheckpointId(7),
            attempt: AttemptId(4),
        };
        let prepared = |subtask, committable: Vec<(String, u64)>| {
            let closed_by = CheckpointId(8);
            StoredCommittable::from(Prepared { name: name(subtask), closed_by, committable })
        };
        let bytes = encode_list(&[prepared(0, vec![("part".to_owned(), 7)]), prepared(2, Vec::new())]);
        let listed = ListedTransaction::read_list(&bytes).unwrap();
        let expected = |subtask| ListedTransaction { closed_by: CheckpointId(8), name: name(subtask) };
        assert_eq!(listed, [expected(0), expected(2)]);
        assert!(ListedTransaction::read_list(&encode_list(&[7_u64])).is_err());
    }
}
