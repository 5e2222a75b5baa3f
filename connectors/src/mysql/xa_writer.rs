//! Writes rows into an XA branch, one branch per epoch.
//!
//! Rows wait here until a statement is worth its while; the branch is opened with the first statement. At the barrier the rest goes
//! out, then the ledger row, `XA END`, `XA PREPARE`. On MariaDB (and some MySQL) a prepared branch belongs to its session until that ends,
//! and the session can do nothing else; so the session is kept for the commit, and the next branch gets another. While the server works on a
//! statement, the rows of the next one are made. A failed statement fails the subtask:
//! after a deadlock the branch is gone, and after an uncertain answer recovery decides.
//!
//! Owns: the open branch and the rows that wait. Does not own: what becomes of a prepared one (see [`super::XaCommitter`]).
//! Runs on: the I/O side.

use std::sync::Arc;

use tidegate_engine::api::{ConnectorError, TwoPhaseContext, TwoPhaseWriter};
use tidegate_engine::clock::Moment;
use tidegate_engine::element::Batch;
use tidegate_engine::ids::CheckpointId;
use tidegate_engine::operator::TransactionName;
use tidegate_state::{StateType, fault_point};

use super::columns::Columns;
use super::held_rows::HeldRows;
use super::inserts_under_way::{Insert, InsertsUnderWay};
use super::ledger::{self, LedgerEntry};
use super::sink::Target;
use super::writer_session::WriterSession;
use super::xid::Xid;
use super::{Attempted, MysqlError};

/// A prepared branch, as the sink's state lists it beside its name.
#[derive(Clone, Debug, PartialEq, Eq, StateType)]
pub struct XaBranch {
    /// The session that prepared it: while that lives, a server that ties branches to their sessions lets nobody else commit it.
    pub connection_id: u64,
    /// Rows in it.
    pub rows: u64,
    /// Kind and version of the server that holds it.
    pub server: String,
}

/// Writer of a [`super::MysqlSink`].
pub struct XaWriter<T> {
    target: Target,
    context: TwoPhaseContext,
    held: HeldRows<T>,
    under_way: InsertsUnderWay,
    session: Option<WriterSession>,
    open: Option<OpenBranch>,
    closing: CheckpointId,
}

struct OpenBranch {
    xid: Xid,
    started: bool,
    rows: u64,
}

impl<T> XaWriter<T> {
    pub(crate) fn new(target: Target, columns: Columns<T>, context: TwoPhaseContext) -> Self {
        let (clock, doing) =
            (context.connector.clock.clone(), format!("writing rows into the table {}", target.spec.name));
        let held = HeldRows::new(&target, columns, clock, doing);
        let under_way = InsertsUnderWay::none(held.at().clone());
        Self { target, context, held, under_way, session: None, open: None, closing: CheckpointId(0) }
    }

    /// Hands rows that waited over to be inserted; opens the branch if this is its first statement.
    async fn send_held(&mut self) -> Result<(), MysqlError> {
        self.held.refuse_broken()?;
        let (Some(open), Some(rows)) = (&mut self.open, self.held.take()) else { return Ok(()) };
        open.rows += rows.len() as u64;
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(WriterSession::open(&self.target.url, &self.context).await?),
        };
        if !open.started {
            let mut connection = session.lock().await;
            fault_point!("mysql.xa.start.before");
            let doing = format!("opening the branch {}", open.xid);
            connection.run(&doing, &format!("XA START {}", open.xid.sql())).await?;
            fault_point!("mysql.xa.start.after");
            open.started = true;
        }
        let (spec, table) = (Arc::clone(&self.target.spec), self.target.spec.name.clone());
        let insert = Insert { spec, table, plainly: false, rows };
        self.under_way.put(&self.context.connector.io, session.shared(), insert).await?;
        self.held.done();
        Ok(())
    }

    /// Ledger row, END, PREPARE.
    async fn prepare_branch(&mut self, open: OpenBranch) -> Result<XaBranch, MysqlError> {
        self.held.begin();
        self.under_way.settled().await?;
        let Some(mut session) = self.session.take() else {
            let doing = format!("preparing the branch {}", open.xid);
            return Err(MysqlError::Broken { at: Attempted { doing, server: self.target.url.place() } });
        };
        let (xid, rows) = (&open.xid, open.rows);
        let mut connection = session.lock().await;
        let target = self.target.spec.name.clone();
        let entry = LedgerEntry { target, closed_by: self.closing, rows, note: None };
        ledger::write(&mut connection, xid, &entry, self.context.connector.clock.wall_ms()).await?;
        fault_point!("mysql.xa.end.before");
        connection.run(&format!("ending the branch {xid}"), &format!("XA END {}", xid.sql())).await?;
        fault_point!("mysql.xa.prepare.before");
        connection.run(&format!("preparing the branch {xid}"), &format!("XA PREPARE {}", xid.sql())).await?;
        fault_point!("mysql.xa.prepare.after");
        let (connection_id, server) = (connection.id(), connection.version().to_string());
        let stays = !connection.ties_branches();
        drop(connection);
        if stays {
            self.session = Some(session);
        } else {
            session.hold_branch(&open.xid).await?;
            self.target.prepared.keep(open.xid.clone(), session);
        }
        self.held.done();
        Ok(XaBranch { connection_id, rows, server })
    }
}

impl<T: Clone + Send + 'static> TwoPhaseWriter for XaWriter<T> {
    type Record = T;
    type Committable = XaBranch;

    async fn write(&mut self, name: &TransactionName, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.held.refuse_broken()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.open.get_or_insert_with(|| OpenBranch { xid: Xid::of(name), started: false, rows: 0 });
        for record in batch.values {
            if self.held.hold(&record)? {
                self.send_held().await?;
            }
        }
        Ok(())
    }

    fn closing(&mut self, barrier: CheckpointId) {
        self.closing = barrier;
    }

    async fn prepare(&mut self) -> Result<Option<XaBranch>, ConnectorError> {
        self.send_held().await?;
        let Some(open) = self.open.take() else { return Ok(None) };
        Ok(Some(self.prepare_branch(open).await?))
    }

    fn due(&self) -> Option<Moment> {
        self.held.due()
    }

    async fn on_due(&mut self) -> Result<(), ConnectorError> {
        Ok(self.send_held().await?)
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.held.discard();
        self.under_way.given_up().await;
        let (open, session) = (self.open.take(), self.session.take());
        if let Some(mut session) = session {
            // What is not prepared is rolled back with its session, whatever state it is in.
            if open.is_some_and(|open| open.started) {
                let mut connection = session.lock().await;
                let id = connection.id();
                let _ = connection.kill(id).await;
            }
            session.close().await;
        }
        Ok(())
    }
}
