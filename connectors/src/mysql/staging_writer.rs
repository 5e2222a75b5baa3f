//! Writes rows into a staging table, one table per epoch.
//!
//! Owns: the open table and the rows that wait. Does not own: what becomes of it (see [`super::StagingCommitter`]). Runs on: the I/O
//! side.

use std::sync::Arc;

use tidegate_engine::api::{ConnectorError, TwoPhaseContext, TwoPhaseWriter};
use tidegate_engine::element::Batch;
use tidegate_engine::operator::TransactionName;
use tidegate_state::{StateType, fault_point};

use super::columns::Columns;
use super::held_rows::HeldRows;
use super::insert::Rows;
use super::insert_under_way::{Insert, InsertUnderWay};
use super::sink::Target;
use super::writer_session::WriterSession;
use super::xid::Xid;
use super::{MysqlError, staging_table};

/// A staged transaction, as the sink's state lists it beside its name.
#[derive(Clone, Debug, PartialEq, Eq, StateType)]
pub struct StagedTable {
    /// The staging table.
    pub table: String,
    /// How many rows it holds.
    pub rows: u64,
}

/// Writer of a [`super::StagingMysqlSink`].
pub struct StagingWriter<T> {
    target: Target,
    context: TwoPhaseContext,
    held: HeldRows<T>,
    under_way: InsertUnderWay,
    session: Option<WriterSession>,
    open: Option<OpenTable>,
}

struct OpenTable {
    xid: Xid,
    /// `None`: not made yet.
    table: Option<String>,
    rows: u64,
}

impl<T> StagingWriter<T> {
    pub(crate) fn new(target: Target, columns: Columns<T>, context: TwoPhaseContext) -> Self {
        let held =
            HeldRows::new(&target, columns, format!("staging rows for the table {}", target.spec.name));
        let under_way = InsertUnderWay::none(held.at().clone());
        Self { target, context, held, under_way, session: None, open: None }
    }

    /// Begins to stage rows that waited; they are on disk once that is settled.
    async fn send(&mut self, rows: Option<Rows>) -> Result<(), MysqlError> {
        let (Some(open), Some(rows)) = (&mut self.open, rows) else { return Ok(()) };
        self.under_way.settled().await?;
        open.rows += rows.len() as u64;
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(WriterSession::open(&self.target.url, &self.context).await?),
        };
        let mut connection = session.lock_owned().await;
        let table = match &open.table {
            Some(table) => table.clone(),
            None => {
                let made = staging_table::create(&mut connection, &self.target.spec, &open.xid).await?;
                fault_point!("mysql.staging.create.after");
                open.table.insert(made).clone()
            }
        };
        let insert = Insert { spec: Arc::clone(&self.target.spec), table, plainly: true, rows };
        self.under_way.begin(&self.context.connector.io, connection, insert);
        self.held.done();
        Ok(())
    }
}

impl<T: Clone + Send + 'static> TwoPhaseWriter for StagingWriter<T> {
    type Record = T;
    type Committable = StagedTable;

    async fn write(&mut self, name: &TransactionName, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.held.refuse_broken()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.open.get_or_insert_with(|| OpenTable { xid: Xid::of(name), table: None, rows: 0 });
        self.held.hold(&batch)?;
        let rows = self.held.take_statements();
        Ok(self.send(rows).await?)
    }

    async fn prepare(&mut self) -> Result<Option<StagedTable>, ConnectorError> {
        self.held.refuse_broken()?;
        let rows = self.held.take_all();
        self.send(rows).await?;
        self.held.begin();
        self.under_way.settled().await?;
        self.held.done();
        let open = self.open.take();
        Ok(open.and_then(|open| open.table.map(|table| StagedTable { table, rows: open.rows })))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.held.discard();
        let _ = self.under_way.settled().await;
        let (open, session) = (self.open.take(), self.session.take());
        let Some(mut session) = session else { return Ok(()) };
        let dropped = match open {
            Some(open) => staging_table::drop_table(&mut *session.lock().await, &open.xid).await,
            None => Ok(()),
        };
        // Released whether or not the table could be dropped: the sweep drops what is left.
        session.close().await;
        Ok(dropped?)
    }
}
