//! Transactions that stand in a MySQL server and are not decided.
//!
//! Owns: what `XA RECOVER` and the staging tables show. A branch is named `tidegate.<job>.<log id>` in its global part.
//! Does not own: settling them (`tidegate xa`, and the job's own recovery). Runs on: the main thread.

use mysql_async::{Row, Value};

use super::{DatabaseError, Session};

/// What Tidegate's names of XA branches and staging tables begin with.
const PREFIX: &str = "tidegate";

/// One prepared branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its global part.
    pub(crate) gtrid: Vec<u8>,
    /// Its branch part.
    pub(crate) bqual: Vec<u8>,
}

impl Branch {
    fn is_of(&self, log_id: &str) -> bool {
        let mut parts = self.gtrid.split(|byte| *byte == b'.');
        parts.next() == Some(PREFIX.as_bytes()) && parts.any(|part| part == log_id.as_bytes())
    }
}

/// Prepared branches of the job whose log has this id. The server's list is of all databases and jobs.
///
/// # Errors
/// [`DatabaseError`]; a user who may not ask is told which privilege is missing by the server itself.
pub(crate) fn branches(session: &mut Session, log_id: &str) -> Result<Vec<Branch>, DatabaseError> {
    let mut found = Vec::new();
    let asked = session.each_row("list its prepared branches (XA RECOVER)", "XA RECOVER", |row| {
        found.extend(branch_of(row).filter(|branch| branch.is_of(log_id)));
    });
    asked.map(|()| found)
}

fn branch_of(row: Row) -> Option<Branch> {
    let [gtrid, bqual] = [1, 2].map(|column| row.get_opt::<usize, _>(column).and_then(Result::ok));
    let data = match row.as_ref(3)? {
        Value::Bytes(bytes) => bytes,
        _ => return None,
    };
    let (gtrid, rest) = data.split_at_checked(gtrid?)?;
    Some(Branch { gtrid: gtrid.to_vec(), bqual: rest.get(..bqual?)?.to_vec() })
}

/// Staging tables of Tidegate in this database.
///
/// # Errors
/// [`DatabaseError`].
pub(crate) fn staging_tables(session: &mut Session) -> Result<Vec<String>, DatabaseError> {
    let mut found = Vec::new();
    let sql = format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE \
         '{PREFIX}\\_%' AND table_name <> '{PREFIX}_ledger'"
    );
    session.each_row("list its tables", &sql, |mut row| {
        found.extend(row.take_opt::<String, _>(0).and_then(Result::ok));
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_belongs_to_the_log_in_its_name() {
        let branch = |gtrid: &str| Branch { gtrid: gtrid.into(), bqual: b"1.x.0.1.1".to_vec() };
        assert!(branch("tidegate.orders.ab12").is_of("ab12"));
        assert!(!branch("tidegate.orders.ab12").is_of("ab1"));
        assert!(!branch("other.orders.ab12").is_of("ab12"));
    }
}
