//! Transactions that stand in a MySQL server and are not decided.
//!
//! Owns: what `XA RECOVER` and the staging tables show, for the whole server and this database.
//! Does not own: settling them (`tidegate xa`, and the job's own recovery). Runs on: the main thread.

use mysql_async::{Row, Value};

use super::{DatabaseError, Session};

/// What Tidegate's names of XA branches and staging tables begin with.
const PREFIX: &str = "tidegate";
/// The server's answer to who may not ask for prepared branches.
const NO_XA_RECOVER: u16 = 1401;

/// One prepared branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its number of a format.
    pub(crate) format: i64,
    /// Its global part.
    pub(crate) gtrid: Vec<u8>,
    /// Its branch part.
    pub(crate) bqual: Vec<u8>,
}

impl Branch {
    /// As SQL takes it.
    pub(crate) fn literal(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("X'{}',X'{}',{}", hex(&self.gtrid), hex(&self.bqual), self.format)
    }
}

/// Prepared branches of Tidegate in the whole server.
///
/// # Errors
/// [`DatabaseError`]; a user who may not ask is told which privilege is missing by the server itself.
pub(crate) fn branches(session: &mut Session) -> Result<Vec<Branch>, DatabaseError> {
    let mut found = Vec::new();
    let asked = session.each_row("list its prepared branches (XA RECOVER)", "XA RECOVER", |row| {
        found.extend(branch_of(row).filter(|branch| branch.gtrid.starts_with(PREFIX.as_bytes())));
    });
    match asked {
        Err(error) if error.code() == Some(NO_XA_RECOVER) => Err(error),
        other => other.map(|()| found),
    }
}

fn branch_of(row: Row) -> Option<Branch> {
    let format = row.get_opt::<i64, _>(0)?.ok()?;
    let [gtrid, bqual] = [1, 2].map(|column| row.get_opt::<usize, _>(column).and_then(Result::ok));
    let data = match row.as_ref(3)? {
        Value::Bytes(bytes) => bytes,
        _ => return None,
    };
    let (gtrid, rest) = data.split_at_checked(gtrid?)?;
    Some(Branch { format, gtrid: gtrid.to_vec(), bqual: rest.get(..bqual?)?.to_vec() })
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

/// Rolls a prepared branch back by hand, as an operator would.
///
/// # Errors
/// [`DatabaseError`].
pub(crate) fn roll_back(session: &mut Session, branch: &Branch) -> Result<(), DatabaseError> {
    session.run("roll the branch back", &format!("XA ROLLBACK {}", branch.literal()))
}
