//! Settings of the MySQL sinks.
//!
//! Owns: the builder, the ways to the other sinks. Does not own: writing and committing. Runs on: built on the author's thread, opened
//! on the I/O side.

use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{
    ConnectorError, PreflightContext, PreflightResult, TwoPhaseContext, TwoPhaseSink,
};
use tidegate_engine::ids::{AttemptId, CheckpointId};

use super::columns::Columns;
use super::insert::ROWS_PER_STATEMENT;
use super::prepared_sessions::PreparedSessions;
use super::refusal::TableRefusal;
use super::table::TableSpec;
use super::xa_committer::XaCommitter;
use super::xa_writer::{XaBranch, XaWriter};
use super::{
    IntoMysqlUrl, IntoMysqlValue, MysqlError, MysqlUrl, MysqlUrlError, PlainMysqlSink, SessionLimits,
    StagingMysqlSink, UpsertSink, ledger, preflight,
};
use crate::columns::column_methods;
use crate::key_columns::KeyColumns;
use crate::merge_mode::MergeMode;

/// Rows into a table of a MySQL or MariaDB server, exactly once: one XA branch per checkpoint and subtask. The table must be there.
///
/// ```
/// use tidegate_connectors::mysql::{Columns, MysqlSink};
///
/// struct Order { order_id: u64, user_id: u64, cents: i64, status: String }
///
/// fn order_columns(columns: Columns<Order>) -> Columns<Order> {
///     columns.column("order_id", |o: &Order| o.order_id).column("cents", |o| o.cents).text("status", |o| &o.status)
/// }
///
/// let url = "mysql://tidegate:secret@127.0.0.1:3306/shop";
/// let events = MysqlSink::table(url, "t_order_event").columns(order_columns);
/// let sums = MysqlSink::table(url, "t_order_stat")
///     .column("user_id", |o: &Order| o.user_id)
///     .column("order_count", |_| 1_i64)
///     .column("total_amount_cents", |o| o.cents)
///     .add_by("user_id");
/// ```
#[derive(Debug)]
pub struct MysqlSink<T> {
    url: Result<MysqlUrl, MysqlUrlError>,
    columns: Columns<T>,
    spec: TableSpec,
    batches: Batches,
    prepared: PreparedSessions,
}

/// How rows are sent within a transaction; its boundary is the checkpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batches {
    /// Rows of a statement.
    pub(crate) rows: usize,
    /// A row waits for its statement so long at most; `None`: until the checkpoint.
    pub(crate) interval: Option<Duration>,
}

impl<T> MysqlSink<T> {
    /// Appends to `table` at `url` (`mysql://user:password@host:port/database`). A bad address is told when the job is checked.
    pub fn table(url: impl IntoMysqlUrl, table: &str) -> Self {
        let (columns, spec) = (Columns::new(), TableSpec::new(table));
        let batches = Batches { rows: ROWS_PER_STATEMENT, interval: None };
        Self { url: url.into_mysql_url(), columns, spec, batches, prepared: PreparedSessions::default() }
    }

    column_methods!(IntoMysqlValue);

    /// A row replaces the one with the same key, which is a primary or unique key of the table; in one transaction the last one wins.
    /// Key the stream by the same columns in front of the sink.
    #[must_use]
    pub fn overwrite_by(mut self, key: impl KeyColumns) -> Self {
        self.spec.mode = MergeMode::Overwrite { by: key.into_names() };
        self
    }

    /// The numbers of a row are added to those with the same key, which is a primary or unique key of the table. Deliberately not
    /// idempotent: an input that is counted twice shows. Key the stream by the same columns in front of the sink.
    #[must_use]
    pub fn add_by(mut self, key: impl KeyColumns) -> Self {
        self.spec.mode = MergeMode::Add { by: key.into_names() };
        self
    }

    /// Sends a statement when so many rows wait; 1,000 if not set, and fewer where they would not fit a packet. It is a step inside the
    /// transaction: what the checkpoint closes becomes visible together, however many statements it took.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batches.rows = rows;
        self
    }

    /// Sends a statement when a row has waited so long; if not set, rows wait until there are enough, or the checkpoint comes. With long
    /// checkpoint intervals and few rows it leaves less to do at the barrier. ([`Self::plain`] holds nothing back.)
    #[must_use]
    pub fn flush_interval(mut self, interval: Duration) -> Self {
        self.batches.interval = Some(interval);
        self
    }

    /// The same table without transactions of the job: each batch is committed as it comes, and what is written stays, also when the
    /// job goes back to an older checkpoint. It shows what the others are for.
    pub fn plain(self) -> PlainMysqlSink<T> {
        PlainMysqlSink::of(self)
    }

    /// The same table in two phases without XA: rows go into a staging table per checkpoint, which is merged on completion.
    pub fn staging(self) -> StagingMysqlSink<T> {
        StagingMysqlSink::of(self)
    }

    /// The same table in one phase: a row is written over the one with the same key, which is a primary or unique key of the table, and
    /// written again after a restart without harm. Rows are visible as they are written. A sink that adds is refused.
    pub fn upsert_by(self, key: impl KeyColumns) -> UpsertSink<T> {
        let was_adding = matches!(self.spec.mode, MergeMode::Add { .. });
        let sink = UpsertSink::of(self.url, &self.spec.name, self.columns, key, was_adding);
        let sink = sink.batch_rows(self.batches.rows);
        match self.batches.interval {
            Some(interval) => sink.flush_interval(interval),
            None => sink,
        }
    }

    pub(crate) fn updates_in_place(&self) -> bool {
        self.spec.updates_in_place()
    }

    pub(crate) fn getters(&self) -> Columns<T> {
        self.columns.clone()
    }

    /// The server, and the table, if the settings can work at all.
    pub(crate) fn target(&self) -> Result<Target, MysqlError> {
        let url = self.url.clone()?;
        let refused =
            |refusal| MysqlError::Refused { table: self.spec.name.clone(), server: url.place(), refusal };
        self.spec.check().map_err(refused)?;
        let zeros = [
            ("batch_rows", self.batches.rows == 0),
            ("flush_interval", self.batches.interval.is_some_and(|i| i.is_zero())),
        ];
        if let Some((setting, _)) = zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(refused(TableRefusal::ZeroLimit { setting }));
        }
        let (spec, prepared) = (Arc::new(self.spec.clone()), self.prepared.clone());
        Ok(Target { url, spec, batches: self.batches, prepared })
    }
}

impl<T> Clone for MysqlSink<T> {
    fn clone(&self) -> Self {
        Self {
            url: self.url.clone(),
            columns: self.columns.clone(),
            spec: self.spec.clone(),
            batches: self.batches,
            prepared: self.prepared.clone(),
        }
    }
}

/// What writer and committer share.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: MysqlUrl,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) batches: Batches,
    /// Of the XA sink: sessions that still hold their branches.
    pub(crate) prepared: PreparedSessions,
}

impl<T: Clone + Send + 'static> TwoPhaseSink for MysqlSink<T> {
    type Record = T;
    type Committable = XaBranch;
    type Writer = XaWriter<T>;
    type Committer = XaCommitter;

    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(self.target().map(drop)?)
    }

    fn preflight(&self, context: PreflightContext) -> impl Future<Output = PreflightResult> + Send + use<T> {
        let target = self.target();
        async move {
            let target = target?;
            SessionLimits::check(context.checkpoints.timeout(), &target.url)?;
            Ok(preflight::look_for_xa(&target, &context).await?)
        }
    }

    fn holds_locks(&self) -> bool {
        self.spec.updates_in_place()
    }

    fn merges_by_key(&self) -> bool {
        self.spec.updates_in_place()
    }

    fn newest_committed(
        &self,
        context: TwoPhaseContext,
        since: AttemptId,
    ) -> impl Future<Output = Result<Option<CheckpointId>, ConnectorError>> + Send + use<T> {
        let target = self.target();
        async move { Ok(ledger::newest_before_start(&target?.url, &context, since).await?) }
    }

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<XaCommitter, ConnectorError>> + Send + use<T> {
        let target = self.target();
        async move { Ok(XaCommitter::open(target?, context).await?) }
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<XaWriter<T>, ConnectorError>> + Send + use<T> {
        let (target, columns) = (self.target(), self.getters());
        async move { Ok(XaWriter::new(target?, columns, context)) }
    }
}
