//! Writes rows into a staging table, one table per epoch.
//!
//! Owns: the open table and the rows that wait. Does not own: what becomes of it (see [`super::StagingCommitter`]). Runs on: the I/O
//! side.

use std::sync::Arc;

use tidegate_engine::api::{ConnectorError, TwoPhaseContext, TwoPhaseWriter};
use tidegate_engine::clock::Moment;
use tidegate_engine::element::Batch;
use tidegate_engine::operator::TransactionName;
use tidegate_state::{StateType, fault_point};

use super::columns::Columns;
use super::constraints::{Check, Constraints};
use super::held_rows::HeldRows;
use super::inserts_under_way::{Insert, InsertsUnderWay};
use super::sink::Target;
use super::table::TableSpec;
use super::writer_session::WriterSession;
use super::xid::Xid;
use super::{Connection, MysqlError, staging_table};

/// How servers refuse a CHECK: its words, a column or a function in it.
const CLAUSES_REFUSED: [u16; 10] = [1054, 1064, 1901, 3812, 3813, 3814, 3815, 3816, 3818, 3820];

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
    under_way: InsertsUnderWay,
    session: Option<WriterSession>,
    /// CHECKs of the target that staging tables get; read with the first one.
    checks: Option<Vec<Check>>,
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
        let (clock, doing) =
            (context.connector.clock.clone(), format!("staging rows for the table {}", target.spec.name));
        let held = HeldRows::new(&target, columns, clock, doing);
        let under_way = InsertsUnderWay::none(held.at().clone());
        Self { target, context, held, under_way, session: None, checks: None, open: None }
    }

    /// Hands rows that waited over to be staged; they are on disk once that is settled.
    async fn send_held(&mut self) -> Result<(), MysqlError> {
        self.held.refuse_broken()?;
        let Some(rows) = self.held.take() else { return Ok(()) };
        let Some(open) = &mut self.open else { return Ok(()) };
        open.rows += rows.len() as u64;
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(WriterSession::open(&self.target.url, &self.context).await?),
        };
        let table = match &open.table {
            Some(table) => table.clone(),
            None => {
                let mut connection = session.lock().await;
                let made =
                    make_table(&mut connection, &self.target.spec, &mut self.checks, &open.xid).await?;
                fault_point!("mysql.staging.create.after");
                open.table.insert(made).clone()
            }
        };
        let insert = Insert { spec: Arc::clone(&self.target.spec), table, plainly: true, rows };
        let handed_over = self.under_way.put(&self.context.connector.io, session.shared(), insert).await;
        handed_over.map_err(|error| self.explained(error))?;
        self.held.done();
        Ok(())
    }

    /// Waits for the rows that are being staged.
    async fn settled(&mut self) -> Result<(), MysqlError> {
        self.under_way.settled().await.map_err(|error| self.explained(error))
    }

    fn explained(&self, error: MysqlError) -> MysqlError {
        let table = self.open.as_ref().and_then(|open| open.table.as_deref()).unwrap_or_default();
        let checks = self.checks.as_deref().unwrap_or_default();
        staging_table::explained(error, table, checks)
    }
}

/// Makes a staging table with the CHECKs of its target, or without, where the server does not take them so.
async fn make_table(
    connection: &mut Connection,
    spec: &TableSpec,
    checks: &mut Option<Vec<Check>>,
    xid: &Xid,
) -> Result<String, MysqlError> {
    let known = match checks.take() {
        Some(known) => known,
        None => Constraints::read(connection, spec).await?.early,
    };
    let known = checks.insert(known);
    match staging_table::create(connection, spec, known, xid).await {
        Err(error)
            if !known.is_empty() && error.code().is_some_and(|code| CLAUSES_REFUSED.contains(&code)) =>
        {
            let (table, error) = (&spec.name, ConnectorError::from(error).full_text());
            tracing::warn!(table, error, "staging tables do not get its CHECKs: they show at the merge");
            known.clear();
            staging_table::create(connection, spec, known, xid).await
        }
        made => made,
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
        for record in batch.values {
            if self.held.hold(&record)? {
                self.send_held().await?;
            }
        }
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<StagedTable>, ConnectorError> {
        self.send_held().await?;
        self.held.begin();
        self.settled().await?;
        self.held.done();
        let open = self.open.take();
        Ok(open.and_then(|open| open.table.map(|table| StagedTable { table, rows: open.rows })))
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
