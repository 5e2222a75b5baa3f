//! Whether a user has the rights that a sink needs, before a job runs.
//!
//! Each right is tried by a statement that needs it and changes nothing: what was granted, to which role and on which level, only the
//! server can tell.
//!
//! Owns: the statements. Does not own: which sink tries which. Runs on: the I/O side.

use super::table::{TableSpec, quoted, quoted_list};
use super::{Connection, LEDGER_TABLE, MysqlError};

/// A table that nobody makes: a staging table's name ends in digits.
const NO_TABLE: &str = "tidegate_staging_none";
/// There is no such table.
const NO_SUCH_TABLE: u16 = 1146;

/// Writing rows into the target, by its mode.
pub(crate) async fn try_writing(connection: &mut Connection, spec: &TableSpec) -> Result<(), MysqlError> {
    let (table, columns) = (quoted(&spec.name), spec.column_names());
    let names = || spec.columns.iter().map(|column| quoted(&column.name));
    let nulls: Vec<String> = names().map(|name| format!("NULL AS {name}")).collect();
    let values: Vec<String> = names().map(|name| format!("tidegate_new.{name}")).collect();
    let sql = format!(
        "INSERT INTO {table} ({columns}) SELECT {} FROM (SELECT {}) AS tidegate_new WHERE FALSE{}",
        values.join(", "),
        nulls.join(", "),
        spec.merge_clause("tidegate_new")
    );
    attempt(connection, &spec.name, &sql).await
}

/// Deleting rows of the target by `columns`.
pub(crate) async fn try_deleting(
    connection: &mut Connection,
    spec: &TableSpec,
    columns: &[&str],
) -> Result<(), MysqlError> {
    let asked: Vec<String> = columns.iter().map(|name| format!(" AND {} IS NULL", quoted(name))).collect();
    let sql = format!("DELETE FROM {} WHERE FALSE{}", quoted(&spec.name), asked.concat());
    attempt(connection, &spec.name, &sql).await
}

/// Writing into the ledger and pruning it. It is there, and can be read.
pub(crate) async fn try_ledger(connection: &mut Connection) -> Result<(), MysqlError> {
    let columns =
        quoted_list(["gtrid", "bqual", "target", "closed_by", "rows_written", "written_ms", "note"]);
    for sql in [
        format!("INSERT INTO {LEDGER_TABLE} ({columns}) SELECT {columns} FROM {LEDGER_TABLE} WHERE FALSE"),
        format!("DELETE FROM {LEDGER_TABLE} WHERE FALSE"),
    ] {
        attempt(connection, LEDGER_TABLE, &sql).await?;
    }
    Ok(())
}

/// Making staging tables as the target is, filling, reading and dropping them.
pub(crate) async fn try_staging(connection: &mut Connection, spec: &TableSpec) -> Result<(), MysqlError> {
    let read = format!("SELECT {} FROM {} WHERE FALSE", spec.column_names(), quoted(&spec.name));
    attempt(connection, &spec.name, &read).await?;
    let doing = "trying the rights on staging tables";
    // The ledger is there, so nothing is made.
    for sql in [
        format!("CREATE TABLE IF NOT EXISTS {LEDGER_TABLE} (x INT)"),
        format!("DROP TABLE IF EXISTS {NO_TABLE}"),
    ] {
        connection.run(doing, &sql).await?;
    }
    // Rights are looked at before the table, which nobody makes.
    let fill = format!("INSERT INTO {NO_TABLE} (x) SELECT x FROM {NO_TABLE}");
    match connection.run(doing, &fill).await {
        Err(error) if error.code() != Some(NO_SUCH_TABLE) => Err(error),
        _ => Ok(()),
    }
}

async fn attempt(connection: &mut Connection, table: &str, sql: &str) -> Result<(), MysqlError> {
    connection.run(&format!("trying the rights on the table {table}"), sql).await.map(drop)
}
