//! Whether a server has room for the sessions of a job.
//!
//! Sinks of one job on one server need their sessions at the same time, so what they need is summed.
//!
//! Owns: the question, the sum, the words. Does not own: how many sessions a sink needs. Runs on: the I/O side, at submit.

use tidegate_engine::api::PreflightContext;

use super::{Connection, MysqlError};

/// Refuses what can never fit; warns where others take the room now. Warnings, a line each.
///
/// # Errors
/// [`MysqlError::Unusable`]: the server takes fewer sessions than this job needs.
pub(crate) async fn check_room(
    connection: &mut Connection,
    context: &PreflightContext,
    per_subtask: u64,
) -> Result<Vec<String>, MysqlError> {
    let doing = "asking how many sessions the server takes";
    let sql = "SELECT @@GLOBAL.max_connections, @@SESSION.max_user_connections";
    let rows = connection.rows(doing, sql, Vec::new()).await?;
    let (of_all, of_user): (u64, u64) = connection.only_row(doing, rows)?;
    let own = u64::from(context.parallelism) * per_subtask;
    let (url, place) = (connection.url(), connection.url().place());
    let server = format!("{}:{}", url.host(), url.port());
    let by_all = context.needs.add(&format!("mysql sessions of {server}"), own);
    let by_user = context.needs.add(&format!("mysql sessions of {} at {server}", url.user()), own);
    let mut needs =
        format!("this sink needs up to {own} ({per_subtask} for each of {} subtasks)", context.parallelism);
    if by_all > own {
        needs = format!("{needs}, with other sinks of this job on that server {by_all}");
    }
    let limits = [("max_connections", of_all, by_all), ("max_user_connections", of_user, by_user)];
    for (name, limit, needed) in limits.into_iter().filter(|(_, limit, _)| *limit > 0) {
        if needed > limit {
            return Err(MysqlError::Unusable {
                server: place,
                why: format!("it takes {limit} sessions ({name}), and {needs}"),
                remedy: format!("raise {name}, or lower the parallelism"),
            });
        }
    }
    let rows = connection.rows(doing, "SHOW GLOBAL STATUS LIKE 'Threads_connected'", Vec::new()).await?;
    let (_, connected): (String, String) = connection.only_row(doing, rows)?;
    let connected = connected.parse::<u64>().unwrap_or(0);
    if connected + by_all <= of_all {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "{place} takes {of_all} sessions (max_connections), {connected} are open, and {needs}\n  help: raise max_connections"
    )])
}
