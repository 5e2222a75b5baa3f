//! One session of a simulated client with the XA model.
//!
//! A session ends with its handle; a statement that is on its way then may still be executed, and a server takes a while to notice
//! that a client is gone.
//!
//! Owns: latency and death of a session. Does not own: the server (see [`super::xa_database`]). Runs on: the simulation's thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::database::{CommittedRows, Row};
use super::line::Line;
use super::xa_database::{Flavor, Reply, SessionId, Statement, XaError, XaServer};
use crate::api::ConnectorError;
use crate::ids::{AttemptId, CheckpointId, OperatorUid};
use crate::operator::TransactionName;

/// A session that has said nothing for so long is closed by the server: below every checkpoint timeout.
pub const IDLE_TIMEOUT_US: u64 = 950_000;
/// A server notices within this time that a client is gone.
const DETACH_US_MAX: u64 = 5_000;
/// A writer waits so long for a row, as the server's default is.
const LOCK_WAIT_US: u64 = 50_000_000;
/// Whoever waits for a lock looks again after so long.
const LOCK_LOOK_US: u64 = 300;

/// The server, as all clients of a simulation share it.
#[derive(Clone, Debug)]
pub struct SharedXa {
    /// Guards the server; one thread uses it.
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    server: XaServer<TransactionName, Row>,
    /// Whose each session is.
    owners: BTreeMap<SessionId, (OperatorUid, AttemptId)>,
    /// By which checkpoint's barrier a committed branch was closed: for the oracle only, the server does not know it.
    closed_by: BTreeMap<TransactionName, CheckpointId>,
}

impl SharedXa {
    /// An empty server.
    pub fn new(flavor: Flavor) -> Self {
        let server = XaServer::new(flavor, IDLE_TIMEOUT_US);
        let inner = Inner { server, owners: BTreeMap::new(), closed_by: BTreeMap::new() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time has passed.
    pub fn settle(&self, now: u64) {
        self.lock().server.close_idle(now);
    }

    /// When the server does something by itself.
    pub fn next_due(&self) -> Option<u64> {
        self.lock().server.next_idle()
    }

    /// Names of all branches.
    pub fn left_overs(&self) -> Vec<TransactionName> {
        self.lock().server.branches()
    }

    /// Names of prepared branches.
    pub fn prepared(&self) -> Vec<TransactionName> {
        self.lock().server.prepared()
    }

    /// Somebody rolls a prepared branch back by hand.
    pub fn roll_back_by_hand(&self, name: &TransactionName) -> bool {
        self.lock().server.roll_back_by_hand(name)
    }

    /// Remembers for the oracle what closed a branch.
    pub fn note_closed_by(&self, name: &TransactionName, closed_by: CheckpointId) {
        self.lock().closed_by.insert(name.clone(), closed_by);
    }

    /// Everything committed, in order.
    pub fn committed(&self) -> Vec<CommittedRows> {
        let inner = self.lock();
        let rows = inner.server.committed().iter().map(|(name, rows)| CommittedRows {
            name: name.clone(),
            closed_by: inner.closed_by.get(name).copied().unwrap_or_default(),
            rows: rows.clone(),
        });
        rows.collect()
    }

    /// Whether a session of a lower attempt of this sink is open.
    pub fn older_sessions(&self, own: &TransactionName) -> bool {
        let inner = self.lock();
        let older =
            |(uid, attempt): &(OperatorUid, AttemptId)| *uid == own.scope.uid && *attempt < own.attempt;
        inner.owners.iter().any(|(session, owner)| older(owner) && inner.server.is_open(*session))
    }
}

/// See the module.
#[derive(Debug)]
pub struct XaClient {
    xa: SharedXa,
    line: Line,
    session: SessionId,
    on_the_way: Option<Statement<TransactionName, Row>>,
}

impl XaClient {
    /// Connects for a sink's attempt.
    pub fn connect(xa: &SharedXa, line: &Line, owner: &TransactionName) -> Self {
        let mut inner = xa.lock();
        let session = inner.server.connect(line.now());
        inner.owners.insert(session, (owner.scope.uid.clone(), owner.attempt));
        drop(inner);
        Self { xa: xa.clone(), line: line.clone(), session, on_the_way: None }
    }

    /// One statement there and its reply back.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn call(
        &mut self,
        statement: Statement<TransactionName, Row>,
    ) -> Result<Reply<TransactionName>, ConnectorError> {
        self.on_the_way = Some(statement);
        self.line.way_or_drop().await?;
        let Some(statement) = self.on_the_way.take() else { return Ok(Reply::Ok) };
        let reply = self.xa.lock().server.execute(self.session, statement, self.line.now());
        self.line.way().await;
        Ok(reply)
    }

    /// A statement that must be done; waits for locks.
    ///
    /// # Errors
    /// The connection was lost, the server refused, or the lock wait took too long (1205).
    pub async fn run(&mut self, statement: Statement<TransactionName, Row>) -> Result<(), ConnectorError> {
        let since = self.line.now();
        loop {
            match self.call(statement.clone()).await? {
                Reply::Waits if self.line.now() > since + LOCK_WAIT_US => return Err(refused(XaError(1205))),
                Reply::Waits => self.line.sleep(LOCK_LOOK_US).await,
                Reply::Error(error) => return Err(refused(error)),
                Reply::Ok | Reply::Listed(_) | Reply::Found(_) => return Ok(()),
            }
        }
    }

    /// Writes rows with one statement; each may wait for its lock.
    ///
    /// # Errors
    /// As for [`XaClient::run`].
    pub async fn write(&mut self, rows: Vec<Row>) -> Result<(), ConnectorError> {
        self.line.way_or_drop().await?;
        let since = self.line.now();
        for row in rows {
            let lock = match &row {
                Row::Add { key, .. } => Some(*key),
                _ => None,
            };
            loop {
                let statement = Statement::Write(lock, row.clone());
                let reply = self.xa.lock().server.execute(self.session, statement, self.line.now());
                match reply {
                    Reply::Waits if self.line.now() > since + LOCK_WAIT_US => {
                        return Err(refused(XaError(1205)));
                    }
                    Reply::Waits => self.line.sleep(LOCK_LOOK_US).await,
                    Reply::Error(error) => return Err(refused(error)),
                    Reply::Ok | Reply::Listed(_) | Reply::Found(_) => break,
                }
            }
        }
        self.line.way().await;
        Ok(())
    }
}

/// What a refused statement does to its sink.
pub fn refused(error: XaError) -> ConnectorError {
    ConnectorError::transient("the database refused a statement").caused_by(error)
}

impl Drop for XaClient {
    fn drop(&mut self) {
        let (xa, session) = (self.xa.clone(), self.session);
        let late = self.on_the_way.take().and_then(|statement| {
            let (xa, line) = (self.xa.clone(), self.line.clone());
            self.line.outlive(move || {
                let now = line.now();
                xa.lock().server.execute(session, statement, now) == Reply::Ok
            })
        });
        let notices = self.line.now() + self.line.draw(DETACH_US_MAX);
        self.line.at(late.map_or(notices, |due| due.max(notices)), move || xa.lock().server.close(session));
    }
}
