//! The session in which one writer writes.
//!
//! It holds the writer's lock (`GET_LOCK`) of its sink's subtask for as long as it lives. So at most one session writes for a subtask:
//! a new attempt first ends that of an older one, of which a statement might still be executed, and can tell whose session it is. A
//! server closes a session that says nothing (`wait_timeout`, below the checkpoint timeout), which ends those of dead clients; a
//! living one says something now and then, also when no record comes.
//!
//! Owns: opening such a session, keeping it awake, taking the lock from an older one. Does not own: what is written. Runs on: the I/O
//! side.

use std::sync::{Arc, Weak};

use mysql_async::Value;
use tidegate_engine::api::TwoPhaseContext;
use tidegate_engine::io::{SharedIo, SpawnedIo};
use tidegate_engine::operator::TransactionScope;
use tokio::sync::{Mutex, MutexGuard};

use super::session_end::wait_until_gone;
use super::xid::{Xid, branch_lock, writer_lock};
use super::{Connection, MysqlError, MysqlUrl, SessionLimits};

/// A session is asked for a sign of life so often within its idle timeout.
const SIGNS_OF_LIFE: u32 = 3;
/// Subtasks of an older, higher parallelism that are looked at.
const SUBTASKS_MAX: u32 = 1_024;
/// Locks that are asked for in one statement.
const LOCKS_PER_STATEMENT: usize = 128;

/// A mutex, since the keeper and the task that inserts ask the session too; held for one statement at a time, over its await: whoever
/// waits for it waits for the server.
pub(crate) type SharedConnection = Arc<Mutex<Connection>>;

/// See the module.
pub(crate) struct WriterSession {
    connection: SharedConnection,
    /// Name of the lock it holds.
    lock: String,
    keeper: Box<dyn SpawnedIo>,
}

impl WriterSession {
    /// Opens a session and takes the lock of the context's subtask.
    pub(crate) async fn open(url: &MysqlUrl, context: &TwoPhaseContext) -> Result<Self, MysqlError> {
        let (io, limits) =
            (&context.connector.io, SessionLimits::below(context.connector.checkpoint_timeout));
        let mut connection = Connection::open_in_job(url, limits, io).await?;
        let lock = writer_lock(&context.name.scope, context.subtask);
        let doing = "taking the lock of this subtask's writer";
        let wait_secs = limits.lock_wait.as_secs();
        let asked = Value::Bytes(lock.clone().into_bytes());
        let rows =
            connection.rows(doing, "SELECT GET_LOCK(?, ?)", vec![asked, Value::UInt(wait_secs)]).await?;
        let (taken,): (Option<i64>,) = connection.only_row(doing, rows)?;
        if taken != Some(1) {
            let session = holder_of(&mut connection, &lock).await?;
            let (server, uid) = (url.place(), context.name.scope.uid.to_string());
            return Err(MysqlError::WriterElsewhere { server, uid, subtask: context.subtask, session });
        }
        // An older attempt whose process stood still finds the lock free now and then: what it prepared would lock rows that this job
        // needs, and nobody would roll it back before the next start.
        connection.check_claim(&context.connector.claim).await?;
        let connection = Arc::new(Mutex::new(connection));
        let keeper =
            io.spawn("mysql session keeper", Box::pin(keep(Arc::downgrade(&connection), io.clone(), limits)));
        Ok(Self { connection, lock, keeper })
    }

    /// The session, for one or several statements.
    pub(crate) async fn lock(&mut self) -> MutexGuard<'_, Connection> {
        self.connection.lock().await
    }

    /// The session, for a task beside the writer.
    pub(crate) fn shared(&self) -> SharedConnection {
        Arc::clone(&self.connection)
    }

    /// Goes over from the writer's lock to that of the branch it has prepared: another session may write now.
    pub(crate) async fn hold_branch(&mut self, xid: &Xid) -> Result<(), MysqlError> {
        let swap = format!("DO GET_LOCK('{}', 0), RELEASE_LOCK('{}')", branch_lock(xid), self.lock);
        self.lock().await.run("releasing a writer's lock", &swap).await.map(drop)
    }

    /// Says goodbye.
    pub(crate) async fn close(self) {
        self.keeper.abort();
        let Self { connection, keeper, .. } = self;
        drop(keeper);
        if let Ok(connection) = Arc::try_unwrap(connection) {
            connection.into_inner().close().await;
        }
    }
}

async fn keep(connection: Weak<Mutex<Connection>>, io: SharedIo, limits: SessionLimits) {
    loop {
        io.sleep(limits.idle / SIGNS_OF_LIFE).await;
        let Some(connection) = connection.upgrade() else { return };
        // A writer at work needs no keeper.
        let Ok(mut connection) = connection.try_lock() else { continue };
        if connection.run("keeping the session awake", "DO 0").await.is_err() {
            return;
        }
    }
}

/// The session that holds a lock.
pub(crate) async fn holder_of(connection: &mut Connection, lock: &str) -> Result<Option<u64>, MysqlError> {
    let doing = "asking whose a writer's lock is";
    let name = vec![Value::Bytes(lock.as_bytes().to_vec())];
    let rows = connection.rows(doing, "SELECT IS_USED_LOCK(?)", name).await?;
    connection.only_row::<(Option<u64>,)>(doing, rows).map(|(holder,)| holder)
}

/// Ends the sessions of older attempts' writers of these subtasks: `subtask`, and of a higher parallelism `subtask + parallelism`,
/// and so on. Their open branches are rolled back with them, and no statement of theirs is executed any more. Called by recovery,
/// before this attempt has a writer; when it returns, they are gone, and what they have prepared can be listed.
pub(crate) async fn end_older_writers(
    connection: &mut Connection,
    io: &SharedIo,
    scope: &TransactionScope,
    subtask: u32,
    parallelism: u32,
) -> Result<usize, MysqlError> {
    let doing = "looking for writers of older attempts";
    let step = usize::try_from(parallelism.max(1)).unwrap_or(1);
    let locks: Vec<String> = (subtask..SUBTASKS_MAX.max(subtask + 1))
        .step_by(step)
        .map(|subtask| format!("IS_USED_LOCK('{}')", writer_lock(scope, subtask)))
        .collect();
    let mut ended = Vec::new();
    for part in locks.chunks(LOCKS_PER_STATEMENT) {
        let asked = part.join(" UNION ALL SELECT ");
        for row in connection.rows(doing, &format!("SELECT {asked}"), Vec::new()).await? {
            if let (Some(session),) = connection.only_row::<(Option<u64>,)>(doing, vec![row])? {
                connection.kill(session).await?;
                ended.push(session);
            }
        }
    }
    if let Some(session) = wait_until_gone(connection, io, &ended).await? {
        let (server, uid) = (connection.url().place(), scope.uid.to_string());
        return Err(MysqlError::WriterElsewhere { server, uid, subtask, session: Some(session) });
    }
    Ok(ended.len())
}
