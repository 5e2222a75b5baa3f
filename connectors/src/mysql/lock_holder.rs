//! Who holds the row that a session waits for.
//!
//! Owns: the question, on both servers, as far as the user's rights reach. Does not own: waiting. Runs on: the I/O side. Best effort:
//! what cannot be known is left out of the message.

use mysql_async::Value;
use tidegate_engine::io::SharedIo;

use super::recover::prepared_branches;
use super::{Connection, MysqlUrl, ServerKind, SessionLimits};

/// Branches that are named in a message.
const NAMED_MAX: usize = 4;

/// Asks, on a connection of its own, whom the session `waiting` waits for right now.
pub(crate) async fn lock_holder(
    url: &MysqlUrl,
    limits: SessionLimits,
    io: &SharedIo,
    waiting: u64,
) -> Option<String> {
    let mut side = Connection::open(url, limits, io).await.ok()?;
    let holder = match blocking_session(&mut side, waiting).await {
        Some(session) if session > 0 => Some(format!("connection {session}")),
        // No session: a branch that was prepared and left. (Or the user may not know.)
        _ => named_branches(&mut side).await,
    };
    side.close().await;
    holder
}

async fn blocking_session(side: &mut Connection, waiting: u64) -> Option<u64> {
    let sql = match side.server() {
        ServerKind::MariaDb => {
            "SELECT COALESCE(b.trx_mysql_thread_id, 0) FROM information_schema.INNODB_LOCK_WAITS w \
             JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
             JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id WHERE r.trx_mysql_thread_id = ? LIMIT 1"
        }
        ServerKind::MySql => {
            "SELECT COALESCE(b.PROCESSLIST_ID, 0) FROM performance_schema.data_lock_waits w \
             JOIN performance_schema.threads r ON r.THREAD_ID = w.REQUESTING_THREAD_ID \
             LEFT JOIN performance_schema.threads b ON b.THREAD_ID = w.BLOCKING_THREAD_ID WHERE r.PROCESSLIST_ID = ? LIMIT 1"
        }
    };
    let doing = "asking who holds a lock";
    let rows = side.rows(doing, sql, vec![Value::UInt(waiting)]).await.ok()?;
    side.only_row::<(u64,)>(doing, rows).ok().map(|(session,)| session)
}

async fn named_branches(side: &mut Connection) -> Option<String> {
    let branches = prepared_branches(side).await.ok()?;
    if branches.is_empty() {
        return None;
    }
    let named: Vec<String> = branches.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = if branches.len() > NAMED_MAX { ", …" } else { "" };
    Some(format!("a prepared branch that no connection holds: {}{more}", named.join(", ")))
}
