//! A two-phase sink over the XA model, written as a connector for the real servers has to be.
//!
//! Owns: one branch per epoch, one session per branch; the ledger row in it; what 1397 means. Does not own: the server.
//! Runs on: the simulation's thread.

use std::future::Future;

use super::database::Row;
use super::line::{LATE_STATEMENT_US_MAX, Line};
use super::sink::{count_outcome, is_of};
use super::xa_client::{IDLE_TIMEOUT_US, SharedXa, XaClient, refused};
use super::xa_database::{Reply, Statement, XaError};
use crate::api::{Committer, ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter};
use crate::element::Batch;
use crate::operator::{CommitOutcome, TransactionName};

/// A committer looks so often for a ledger row that is locked.
const LEDGER_LOOKS: u32 = 8;
/// A rollback of a branch that is attached to a dying session is tried so often.
const ROLLBACK_TRIES: u32 = 400;
/// Between two looks.
const LOOK_US: u64 = 1_500;

/// See the module.
#[derive(Clone, Debug)]
pub struct XaSink {
    xa: SharedXa,
    line: Line,
    in_place: bool,
}

impl XaSink {
    /// A sink; `in_place`: its rows are updated in place, so that a prepared branch keeps them locked.
    pub fn new(xa: SharedXa, line: Line, in_place: bool) -> Self {
        Self { xa, line, in_place }
    }
}

/// Writer of [`XaSink`].
#[derive(Debug)]
pub struct XaWriter {
    sink: XaSink,
    open: Option<(TransactionName, XaClient)>,
}

/// Committer of [`XaSink`].
#[derive(Debug)]
pub struct XaCommitter {
    sink: XaSink,
    own: TransactionName,
    client: XaClient,
}

impl TwoPhaseSink for XaSink {
    type Record = Row;
    type Committable = u64;
    type Writer = XaWriter;
    type Committer = XaCommitter;

    fn holds_locks(&self) -> bool {
        self.in_place
    }

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<XaCommitter, ConnectorError>> + Send + use<> {
        let client = XaClient::connect(&self.xa, &self.line, &context.name);
        std::future::ready(Ok(XaCommitter { sink: self.clone(), own: context.name, client }))
    }

    fn open_writer(
        &self,
        _context: TwoPhaseContext,
    ) -> impl Future<Output = Result<XaWriter, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(XaWriter { sink: self.clone(), open: None }))
    }
}

impl TwoPhaseWriter for XaWriter {
    type Record = Row;
    type Committable = u64;

    async fn write(&mut self, name: &TransactionName, batch: Batch<Row>) -> Result<(), ConnectorError> {
        if self.open.is_none() {
            let mut client = XaClient::connect(&self.sink.xa, &self.sink.line, name);
            client.run(Statement::Start(name.clone())).await?;
            client.run(Statement::WriteLedger).await?;
            self.open = Some((name.clone(), client));
        }
        let Some((_, client)) = &mut self.open else { return Ok(()) };
        client.write(batch.values).await
    }

    async fn prepare(&mut self) -> Result<Option<u64>, ConnectorError> {
        let Some((_, mut client)) = self.open.take() else { return Ok(None) };
        client.run(Statement::End).await?;
        client.run(Statement::Prepare).await?;
        // The session ends here: on MariaDB nobody else could commit the branch while it lives.
        Ok(Some(0))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        let Some((name, mut client)) = self.open.take() else { return Ok(()) };
        client.run(Statement::End).await?;
        client.run(Statement::Rollback(name)).await
    }
}

impl XaCommitter {
    /// The session again, if the server has closed it for idleness.
    fn reconnect(&mut self) {
        self.client = XaClient::connect(&self.sink.xa, &self.sink.line, &self.own);
    }

    async fn call(
        &mut self,
        statement: Statement<TransactionName, Row>,
    ) -> Result<Reply<TransactionName>, ConnectorError> {
        let reply = self.client.call(statement.clone()).await?;
        if reply != Reply::Error(XaError::GONE) {
            return Ok(reply);
        }
        self.reconnect();
        self.client.call(statement).await
    }

    /// What 1397 means: the ledger row is there, or somebody holds it, or it is gone for good.
    async fn look_up(&mut self, name: &TransactionName) -> Result<CommitOutcome, ConnectorError> {
        for _ in 0..LEDGER_LOOKS {
            match self.call(Statement::ReadLedger(name.clone())).await? {
                Reply::Found(true) => return Ok(CommitOutcome::AlreadyCommitted),
                Reply::Found(false) => {
                    let reason = "it is neither prepared nor in the ledger".to_owned();
                    return Ok(CommitOutcome::Lost { reason });
                }
                Reply::Error(error) => return Err(refused(error)),
                Reply::Waits | Reply::Ok | Reply::Listed(_) => self.sink.line.sleep(LOOK_US).await,
            }
        }
        Ok(CommitOutcome::RetryAfter { ms: 2, reason: "it is attached to another session".to_owned() })
    }
}

impl Committer for XaCommitter {
    type Committable = u64;

    async fn commit(&mut self, item: &Prepared<u64>) -> Result<CommitOutcome, ConnectorError> {
        self.sink.xa.note_closed_by(&item.name, item.closed_by);
        let outcome = match self.call(Statement::Commit(item.name.clone())).await? {
            Reply::Error(XaError::NOT_A_BRANCH) => self.look_up(&item.name).await?,
            Reply::Error(XaError::ROLLED_BACK) => {
                CommitOutcome::Lost { reason: "the server has rolled it back (1402)".to_owned() }
            }
            Reply::Error(error) => return Err(refused(error)),
            Reply::Ok | Reply::Listed(_) | Reply::Found(_) | Reply::Waits => CommitOutcome::Committed,
        };
        count_outcome(&self.sink.line, &outcome);
        Ok(outcome)
    }

    /// Waits until sessions of lower attempts are gone, since what they have sent may still be executed.
    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        let until = self.sink.line.now() + IDLE_TIMEOUT_US + LATE_STATEMENT_US_MAX;
        while self.sink.xa.older_sessions(&self.own) && self.sink.line.now() < until {
            self.sink.line.sleep(LOOK_US).await;
        }
        match self.call(Statement::Recover).await? {
            Reply::Listed(names) => Ok(names.into_iter().filter(|n| is_of(n, &self.own)).collect()),
            Reply::Error(error) => Err(refused(error)),
            Reply::Ok | Reply::Found(_) | Reply::Waits => Ok(Vec::new()),
        }
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        for _ in 0..ROLLBACK_TRIES {
            match self.call(Statement::Rollback(name.clone())).await? {
                Reply::Error(XaError::NOT_A_BRANCH) if self.sink.xa.prepared().contains(name) => {
                    self.sink.line.sleep(LOOK_US).await;
                }
                Reply::Error(XaError::NOT_A_BRANCH) => return Ok(()),
                Reply::Error(error) => return Err(refused(error)),
                _ => return Ok(()),
            }
        }
        Err(ConnectorError::transient(format!("{name} stays attached to another session")))
    }
}
