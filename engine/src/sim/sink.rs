//! The two-phase sink of a simulation: every call of its database is late before and after.
//!
//! Owns: the way between the client and the database model. Does not own: the database. Runs on: the simulation's thread.

use std::future::Future;

use super::coverage::Area;
use super::database::Database;
use super::line::Line;
use crate::api::{Committer, ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter};
use crate::element::Batch;
use crate::operator::{CommitOutcome, TransactionName};

/// See the module.
#[derive(Debug)]
pub struct SimSink<R> {
    database: Database<R>,
    line: Line,
}

impl<R> Clone for SimSink<R> {
    fn clone(&self) -> Self {
        Self { database: self.database.clone(), line: self.line.clone() }
    }
}

impl<R> SimSink<R> {
    /// A sink into `database`.
    pub fn new(database: Database<R>, line: Line) -> Self {
        Self { database, line }
    }
}

/// Writer of [`SimSink`].
#[derive(Debug)]
pub struct SimWriter<R> {
    sink: SimSink<R>,
    open: Option<TransactionName>,
}

/// Committer of [`SimSink`].
#[derive(Debug)]
pub struct SimCommitter<R> {
    sink: SimSink<R>,
    context: TransactionName,
}

/// Rows on their way. If their client dies meanwhile they may arrive all the same.
struct RowsOnTheWay<'a, R: Send + 'static> {
    sink: &'a SimSink<R>,
    name: &'a TransactionName,
    rows: Vec<R>,
}

impl<R: Send + 'static> Drop for RowsOnTheWay<'_, R> {
    fn drop(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            let (database, name) = (self.sink.database.clone(), self.name.clone());
            self.sink.line.outlive(move || database.write_late(&name, rows));
        }
    }
}

/// Counts what a commit came to.
pub(super) fn count_outcome(line: &Line, outcome: &CommitOutcome) {
    let what = match outcome {
        CommitOutcome::Committed => "committed",
        CommitOutcome::AlreadyCommitted => "already committed",
        CommitOutcome::RetryAfter { .. } => "retry after",
        CommitOutcome::Lost { .. } => "lost",
    };
    line.coverage().count(Area::Commit, what);
}

/// Whether a left-over is one of the sink that asks.
pub(super) fn is_of(name: &TransactionName, own: &TransactionName) -> bool {
    let (a, b) = (&name.scope, &own.scope);
    a.job == b.job && a.log_id == b.log_id && a.uid == b.uid
}

impl<R: Clone + Send + 'static> TwoPhaseSink for SimSink<R> {
    type Record = R;
    type Committable = u64;
    type Writer = SimWriter<R>;
    type Committer = SimCommitter<R>;

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<SimCommitter<R>, ConnectorError>> + Send + use<R> {
        std::future::ready(Ok(SimCommitter { sink: self.clone(), context: context.name }))
    }

    fn open_writer(
        &self,
        _context: TwoPhaseContext,
    ) -> impl Future<Output = Result<SimWriter<R>, ConnectorError>> + Send + use<R> {
        std::future::ready(Ok(SimWriter { sink: self.clone(), open: None }))
    }
}

impl<R: Clone + Send + 'static> TwoPhaseWriter for SimWriter<R> {
    type Record = R;
    type Committable = u64;

    async fn write(&mut self, name: &TransactionName, batch: Batch<R>) -> Result<(), ConnectorError> {
        let open = self.open.get_or_insert_with(|| name.clone());
        let mut on_the_way = RowsOnTheWay { sink: &self.sink, name: open, rows: batch.values };
        self.sink.line.way_or_drop().await?;
        let rows = std::mem::take(&mut on_the_way.rows);
        if !self.sink.database.write(open, rows) {
            return Err(ConnectorError::fatal(format!("transaction {open} was taken before it was opened")));
        }
        self.sink.line.way().await;
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<u64>, ConnectorError> {
        let Some(open) = self.open.take() else { return Ok(None) };
        self.sink.line.way_or_drop().await?;
        if !self.sink.database.prepare(&open) {
            return Err(ConnectorError::transient(format!("transaction {open} is gone")));
        }
        self.sink.line.way().await;
        Ok(Some(self.sink.line.draw(1_000)))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        if let Some(open) = self.open.take() {
            self.sink.line.way().await;
            self.sink.database.roll_back(&open);
        }
        Ok(())
    }
}

impl<R: Clone + Send + 'static> Committer for SimCommitter<R> {
    type Committable = u64;

    async fn commit(&mut self, item: &Prepared<u64>) -> Result<CommitOutcome, ConnectorError> {
        let line = &self.sink.line;
        line.way_or_drop().await?;
        let outcome = match line.is_busy() {
            true => CommitOutcome::RetryAfter { ms: 1, reason: "the server is busy".to_owned() },
            false => self.sink.database.commit(&item.name, item.closed_by),
        };
        count_outcome(line, &outcome);
        line.way_or_drop().await?;
        Ok(outcome)
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        self.sink.line.way_or_drop().await?;
        let left_overs = self.sink.database.left_overs();
        self.sink.line.way().await;
        Ok(left_overs.into_iter().filter(|n| is_of(n, &self.context)).collect())
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        self.sink.line.way_or_drop().await?;
        self.sink.database.roll_back(name);
        self.sink.line.way().await;
        Ok(())
    }
}
