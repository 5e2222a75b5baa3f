//! The upsert sink's look at its server before a job runs.
//!
//! Owns: what is asked and warned of. Does not own: the comparison of the table (see [`super::table_check`]). Runs on: the I/O side.

use mysql_async::Value;
use tidegate_engine::api::PreflightContext;

use super::session_room::check_room;
use super::table::TableSpec;
use super::table_check::check_table;
use super::upsert_buffer::RowLayout;
use super::{ColumnKind, Connection, MysqlError, MysqlUrl, ServerKind, SessionLimits, rights};

/// Sessions of one subtask: its writer's, and one that ends older ones.
const SESSIONS: u64 = 2;

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
    SessionLimits::check(context.checkpoints.timeout(), url)?;
    let limits = SessionLimits::below(context.checkpoints.timeout());
    let mut connection = Connection::open(url, limits, &context.io).await?;
    let mut warnings = check_table(&mut connection, spec).await?;
    let asked: Vec<&str> =
        layout.key.iter().chain(&layout.version).map(|column| spec.columns[*column].name.as_str()).collect();
    rights::try_writing(&mut connection, spec).await?;
    rights::try_deleting(&mut connection, spec, &asked).await?;
    warnings.extend(check_room(&mut connection, context, SESSIONS).await?);
    warnings.extend(folding_keys(&mut connection, spec).await?);
    connection.close().await;
    Ok(warnings)
}

/// Warns of key columns that take different values for one key: the sink does not know which ones, so it cannot tell which comes last.
async fn folding_keys(connection: &mut Connection, spec: &TableSpec) -> Result<Vec<String>, MysqlError> {
    let doing = format!("looking at the key of the table {}", spec.name);
    let rows = connection
        .rows(
            &doing,
            "SELECT COLUMN_NAME, DATA_TYPE, COALESCE(COLLATION_NAME, '') FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?",
            vec![Value::Bytes(spec.name.as_bytes().to_vec())],
        )
        .await?;
    let (server, exact) = (connection.url().place(), exact_collation(connection.server()));
    let mut warnings = Vec::new();
    for row in rows {
        let (column, data_type, collation): (String, String, String) =
            connection.only_row(&doing, vec![row])?;
        let is_this = |name: &str| name.to_lowercase() == column.to_lowercase();
        if !spec.key().iter().any(|name| is_this(name)) {
            continue;
        }
        let written = spec.columns.iter().find(|written| is_this(&written.name));
        let why = written.and_then(|written| why_folded(written.kind, &data_type, &collation));
        warnings.extend(why.map(|why| {
            format!(
                "mysql table {} at {server}: the key column \"{column}\" {why}: which of such rows is written last is not defined \
                 within a batch\n  help: a varbinary, or a varchar with COLLATE {exact}, or fold the key in the job",
                spec.name
            )
        }));
    }
    Ok(warnings)
}

/// A collation for which no two texts are equal, blanks at the end included. (`utf8mb4_bin` pads with blanks, on both servers.)
fn exact_collation(server: ServerKind) -> &'static str {
    match server {
        ServerKind::MariaDb => "utf8mb4_nopad_bin",
        ServerKind::MySql => "utf8mb4_0900_bin",
    }
}

/// Why several values of this kind can be one key of such a column; `None`: they cannot.
fn why_folded(kind: ColumnKind, data_type: &str, collation: &str) -> Option<String> {
    let data_type = data_type.to_ascii_lowercase();
    match (kind, data_type.as_str()) {
        (ColumnKind::Text | ColumnKind::Bytes, "binary") => {
            Some("is a binary, which is filled up with zero bytes".to_owned())
        }
        (ColumnKind::Text, "char") => Some("is a char, which takes no blanks at its end".to_owned()),
        (ColumnKind::Text, "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob") => None,
        (ColumnKind::Text, _) if collation.is_empty() || data_type == "enum" => {
            Some(format!("is a {data_type}, for which different texts can be one value"))
        }
        (ColumnKind::Text, _) if collation.ends_with("_nopad_bin") || collation.ends_with("_0900_bin") => {
            None
        }
        (ColumnKind::Text, _) if collation.ends_with("_bin") => {
            Some(format!("is compared by {collation}, for which blanks at the end do not count"))
        }
        (ColumnKind::Text, _) => {
            Some(format!("is compared by {collation}, for which different texts can be one key"))
        }
        _ => None,
    }
}
