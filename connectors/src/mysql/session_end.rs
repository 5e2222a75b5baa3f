//! Whether a session has ended, and certainly let go of what it held.
//!
//! `KILL` returns before the session is gone: a statement in execution, also an `XA PREPARE`, may still be carried out. So whoever ends
//! a session waits until the server shows it no more. On MariaDB even that is not the end: for a moment longer its prepared branch is
//! still attached, and whoever touches the branch then breaks it (see [`super::prepared_sessions`]).
//!
//! Owns: the looks and the waiting. Does not own: which sessions are ended. Runs on: the I/O side.

use std::time::Duration;

use mysql_async::Value;
use tidegate_engine::io::SharedIo;

use super::writer_session::holder_of;
use super::{Connection, MysqlError};

/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// A session that the server no longer shows has let its branch go after so long.
pub(crate) const ENDING: Duration = Duration::from_millis(200);

/// Whether a session of this number is there, as far as this user may see: without the right PROCESS, its own ones. Numbers begin anew
/// when a server restarts: it need not be the session that once had this number.
pub(crate) async fn lives(connection: &mut Connection, session: u64) -> Result<bool, MysqlError> {
    let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID = ?";
    let found = connection.rows("looking for a session", sql, vec![Value::UInt(session)]).await?;
    Ok(!found.is_empty())
}

/// Waits until sessions that were ended are gone, for as long as a statement may take; the first one that is not.
pub(crate) async fn wait_until_gone(
    connection: &mut Connection,
    io: &SharedIo,
    sessions: &[u64],
) -> Result<Option<u64>, MysqlError> {
    let patience = connection.limits().statement;
    let mut waited = Duration::ZERO;
    for session in sessions {
        while lives(connection, *session).await? {
            if waited >= patience {
                return Ok(Some(*session));
            }
            io.sleep(LOOK_PAUSE).await;
            waited += LOOK_PAUSE;
        }
    }
    Ok(None)
}

/// Waits until a lock that an ended session held is nobody's, for as long as a statement may take; else who holds it.
pub(crate) async fn wait_until_released(
    connection: &mut Connection,
    io: &SharedIo,
    lock: &str,
) -> Result<Option<u64>, MysqlError> {
    let patience = connection.limits().statement;
    let mut waited = Duration::ZERO;
    while let Some(holder) = holder_of(connection, lock).await? {
        if waited >= patience {
            return Ok(Some(holder));
        }
        io.sleep(LOOK_PAUSE).await;
        waited += LOOK_PAUSE;
    }
    Ok(None)
}

/// For sessions that the server shows no more: waits until their branches are anybody's.
pub(crate) async fn wait_until_detached(connection: &Connection, io: &SharedIo) {
    if connection.ties_branches() {
        io.sleep(ENDING).await;
    }
}
