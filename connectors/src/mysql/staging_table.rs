//! Staging tables: one per transaction, with its name.
//!
//! A table's name is a hash, since a name of MySQL is short; the transaction's name stands in its comment, so that the table and the
//! knowledge whose it is come and go together. Columns are those of the target, without keys, and a number that keeps the order; CHECKs
//! of the target are the staging table's too, where they can be.
//!
//! Owns: the statements. Does not own: what is staged, when it is merged. Runs on: the I/O side.

use mysql_async::Value;
use tidegate_engine::operator::{TransactionName, TransactionScope};

use super::constraints::Check;
use super::insert::execute_watched;
use super::table::{TableSpec, quoted};
use super::xid::{FORMAT_ID, Xid, staging_table};
use super::{Connection, MysqlError};

/// Name of the column that keeps the order of staged rows.
const SEQUENCE_COLUMN: &str = "tidegate_seq";

/// Makes the staging table of a transaction. One that is there already is an error: it is never taken over.
pub(crate) async fn create(
    connection: &mut Connection,
    spec: &TableSpec,
    checks: &[Check],
    xid: &Xid,
) -> Result<String, MysqlError> {
    let table = staging_table(xid);
    let doing = format!("making the staging table {table}");
    let (staging, target) = (quoted(&table), quoted(&spec.name));
    let checks: String = (1..)
        .zip(checks)
        .map(|(number, check)| {
            format!(", CONSTRAINT {} CHECK ({})", quoted(&check_name(&table, number)), check.clause)
        })
        .collect();
    // No row: the columns are made as the target has them, without its keys.
    let sql = format!(
        "CREATE TABLE {staging} ({SEQUENCE_COLUMN} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY{checks}) ENGINE=InnoDB \
         COMMENT='{xid}' AS SELECT {} FROM {target} WHERE FALSE",
        spec.column_names()
    );
    connection.run(&doing, &sql).await?;
    Ok(table)
}

/// Names of CHECKs are unique in a whole database of MySQL.
fn check_name(table: &str, number: usize) -> String {
    format!("{table}_chk_{number}")
}

/// The error of a statement that wrote into a staging table; of a CHECK with the one of the target that it is a copy of.
pub(crate) fn explained(error: MysqlError, table: &str, checks: &[Check]) -> MysqlError {
    let MysqlError::Unfit { mut at, row, source } = error else { return error };
    let meant = |number: usize| {
        let name = check_name(table, number);
        [format!("'{name}'"), quoted(&name)].iter().any(|name| source.message.contains(name))
    };
    if let Some((_, check)) = (1..).zip(checks).find(|(number, _)| meant(*number)) {
        at.doing = format!("{} (its CHECK {}: {})", at.doing, check.name, check.clause);
    }
    MysqlError::Unfit { at, row, source }
}

/// Drops the staging table of a transaction; one that is gone is fine.
pub(crate) async fn drop_table(connection: &mut Connection, xid: &Xid) -> Result<(), MysqlError> {
    let table = staging_table(xid);
    let sql = format!("DROP TABLE IF EXISTS {}", quoted(&table));
    connection.run(&format!("dropping the staging table {table}"), &sql).await.map(drop)
}

/// Rows in a staging table; `None`: it is not there.
pub(crate) async fn count(connection: &mut Connection, table: &str) -> Result<Option<u64>, MysqlError> {
    let doing = format!("counting the rows of {table}");
    match connection.rows(&doing, &format!("SELECT COUNT(*) FROM {}", quoted(table)), Vec::new()).await {
        Ok(rows) => connection.only_row::<(u64,)>(&doing, rows).map(|(count,)| Some(count)),
        Err(MysqlError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Merges a staging table into its target, in the order in which it was written.
pub(crate) async fn merge(
    connection: &mut Connection,
    spec: &TableSpec,
    table: &str,
) -> Result<(), MysqlError> {
    let (target, staging, columns) = (quoted(&spec.name), quoted(table), spec.column_names());
    let from: Vec<String> =
        spec.columns.iter().map(|column| format!("tidegate_new.{}", quoted(&column.name))).collect();
    let sql = format!(
        "INSERT INTO {target} ({columns}) SELECT {} FROM {staging} AS tidegate_new ORDER BY tidegate_new.{SEQUENCE_COLUMN}{}",
        from.join(", "),
        spec.merge_clause("tidegate_new")
    );
    let doing = format!("merging {table} into the table {}", spec.name);
    execute_watched(connection, &doing, &sql, Vec::new()).await.map_err(|error| match error {
        MysqlError::DuplicateKey { at, source } | MysqlError::Unfit { at, source, .. } => {
            MysqlError::Unmerged { at, staging: table.to_owned(), source }
        }
        other => other,
    })
}

/// When a staging table was made, by the server's clock: milliseconds since 1970.
pub(crate) async fn made_ms(connection: &mut Connection, table: &str) -> Result<Option<i64>, MysqlError> {
    let doing = format!("asking for the age of {table}");
    let sql = "SELECT CAST(UNIX_TIMESTAMP(CREATE_TIME) * 1000 AS SIGNED) FROM information_schema.TABLES \
               WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    let rows = connection.rows(&doing, sql, vec![Value::Bytes(table.as_bytes().to_vec())]).await?;
    let made = rows.into_iter().next().map(|row| connection.only_row::<(Option<i64>,)>(&doing, vec![row]));
    Ok(made.transpose()?.and_then(|(ms,)| ms))
}

/// Staging tables of a job, log and sink.
pub(crate) async fn list(
    connection: &mut Connection,
    scope: &TransactionScope,
) -> Result<Vec<TransactionName>, MysqlError> {
    let all = tables(connection).await?;
    let mut names: Vec<TransactionName> = all.iter().filter_map(|(_, xid)| xid.read(scope)).collect();
    names.sort();
    Ok(names)
}

/// Staging tables of whatever job in this database, by name and transaction.
pub(crate) async fn tables(connection: &mut Connection) -> Result<Vec<(String, Xid)>, MysqlError> {
    let doing = "listing staging tables";
    let sql = "SELECT TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
               AND TABLE_NAME LIKE 'tidegate\\_staging\\_%'";
    let mut found = Vec::new();
    for row in connection.rows(doing, sql, Vec::new()).await? {
        let (table, comment): (String, String) = connection.only_row(doing, vec![row])?;
        let Some((gtrid, bqual)) = comment.split_once('/') else { continue };
        let xid = Xid { gtrid: gtrid.into(), bqual: bqual.into(), format_id: FORMAT_ID };
        found.extend(Some((table, xid)).filter(|(_, xid)| xid.is_ours()));
    }
    Ok(found)
}
