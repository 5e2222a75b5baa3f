//! The upsert sink's look at its server before a job runs.
//!
//! Owns: what is asked and warned of. Does not own: the comparison of the table (see [`super::table_check`]). Runs on: the I/O side.

use mysql_async::Value;
use tidegate_engine::api::PreflightContext;

use super::table::TableSpec;
use super::table_check::check_table;
use super::upsert_buffer::RowLayout;
use super::upsert_statements::UpsertTable;
use super::{Connection, MysqlError, MysqlUrl, SessionLimits};

/// Looks at table, key, triggers, rights and the way keys are compared; warnings, a line each.
///
/// # Errors
/// The server is away, or the sink cannot work on this table.
pub(crate) async fn preflight(
    url: &MysqlUrl,
    spec: &TableSpec,
    layout: &RowLayout,
    context: &PreflightContext,
) -> Result<Vec<String>, MysqlError> {
    let limits = SessionLimits::below(context.checkpoints.timeout());
    let mut connection = Connection::open(url, limits, &context.io).await?;
    let mut warnings = check_table(&mut connection, spec).await?;
    let (server, packet_bytes_max) = (connection.server(), connection.packet_bytes_max());
    let table = UpsertTable { spec, layout, server, packet_bytes_max };
    for sql in table.rights_statements() {
        connection.run(&format!("trying the rights on the table {}", spec.name), &sql).await?;
    }
    warnings.extend(folding_keys(&mut connection, spec).await?);
    connection.close().await;
    Ok(warnings)
}

/// Warns of key columns that take different texts for one key: the sink does not know which ones, so it cannot tell which comes last.
async fn folding_keys(connection: &mut Connection, spec: &TableSpec) -> Result<Vec<String>, MysqlError> {
    let doing = format!("looking at the key of the table {}", spec.name);
    let rows = connection
        .rows(
            &doing,
            "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COLLATION_NAME IS NOT NULL",
            vec![Value::Bytes(spec.name.as_bytes().to_vec())],
        )
        .await?;
    let server = connection.url().place();
    let mut warnings = Vec::new();
    for row in rows {
        let (column, collation): (String, String) = connection.only_row(&doing, vec![row])?;
        let is_key = spec.key().iter().any(|name| name.to_lowercase() == column.to_lowercase());
        if is_key && !collation.ends_with("_bin") {
            warnings.push(format!(
                "mysql table {} at {server}: the key column \"{column}\" is compared by {collation}, for which different texts can be one key: \
                 which of them is written last is not defined within a batch\n  help: COLLATE utf8mb4_bin, or fold the key in the job",
                spec.name
            ));
        }
    }
    Ok(warnings)
}
