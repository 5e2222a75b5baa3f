//! Settings of the SQLite sink.
//!
//! Owns: the builder, what `validate` refuses, opening. Does not own: writing and committing (see [`SqliteWriter`],
//! [`SqliteCommitter`]). Runs on: built on the author's thread, opened on the I/O side.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{Committer, ConnectorError, TwoPhaseContext, TwoPhaseSink};
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::io::{SharedIo, blocking};

use super::columns::Columns;
use super::database::{Database, canonical, refuse_unwritable};
use super::table::TableSpec;
use super::{IntoSqlValue, PlainSqliteSink, SqliteCommitter, SqliteError, SqliteWriter, StagedRows, staging};
use crate::columns::column_methods;
use crate::key_columns::KeyColumns;
use crate::merge_mode::MergeMode;

/// How long a statement waits for another process that has the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Rows into a table of a SQLite file, exactly once. The table is made if it is missing; one with other columns is refused.
///
/// ```
/// use tidegate_connectors::sqlite::{Columns, SqliteSink};
///
/// struct Order { order_id: u64, user_id: u64, cents: i64, status: String }
///
/// fn order_columns(columns: Columns<Order>) -> Columns<Order> {
///     columns.column("order_id", |o: &Order| o.order_id).column("cents", |o| o.cents).text("status", |o| &o.status)
/// }
///
/// let events = SqliteSink::table("orders.db", "t_order_event").columns(order_columns).primary_key("order_id");
/// let sums = SqliteSink::table("orders.db", "t_order_stat")
///     .column("user_id", |o: &Order| o.user_id)
///     .column("order_count", |_| 1_i64)
///     .column("total_amount_cents", |o| o.cents)
///     .add_by("user_id");
/// ```
#[derive(Debug)]
pub struct SqliteSink<T> {
    path: PathBuf,
    columns: Columns<T>,
    spec: TableSpec,
    busy_timeout: Duration,
}

impl<T> SqliteSink<T> {
    /// Appends to `table` in the file at `path`, which is made if it is missing (its folder is not).
    pub fn table(path: impl AsRef<Path>, table: &str) -> Self {
        let spec = TableSpec {
            name: table.to_owned(),
            columns: Vec::new(),
            key: Vec::new(),
            mode: MergeMode::Append,
        };
        Self { path: path.as_ref().to_owned(), columns: Columns::new(), spec, busy_timeout: BUSY_TIMEOUT }
    }

    column_methods!(IntoSqlValue);

    /// Gives the table a primary key: one column name, or an array of them. When appending, a key that comes twice fails the job.
    #[must_use]
    pub fn primary_key(mut self, key: impl KeyColumns) -> Self {
        self.spec.key = key.into_names();
        self
    }

    /// A row replaces the one with the same key, which becomes the primary key; in one transaction the last one wins.
    #[must_use]
    pub fn overwrite_by(mut self, key: impl KeyColumns) -> Self {
        let by = key.into_names();
        self.take_key(&by);
        self.spec.mode = MergeMode::Overwrite { by };
        self
    }

    /// The numbers of a row are added to those with the same key, which becomes the primary key. Deliberately not idempotent: an
    /// input that is counted twice shows.
    #[must_use]
    pub fn add_by(mut self, key: impl KeyColumns) -> Self {
        let by = key.into_names();
        self.take_key(&by);
        self.spec.mode = MergeMode::Add { by };
        self
    }

    fn take_key(&mut self, by: &[String]) {
        if self.spec.key.is_empty() {
            self.spec.key = by.to_vec();
        }
    }

    /// How long a statement waits for another process that has the file locked; 5 s if not set. The first sink to open a file in a
    /// process decides for all of them.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// The same table without transactions: each batch is a plain SQL transaction, and what is written stays, also when the job
    /// goes back to an older checkpoint.
    pub fn plain(self) -> PlainSqliteSink<T> {
        PlainSqliteSink::of(self)
    }
}

impl<T> Clone for SqliteSink<T> {
    fn clone(&self) -> Self {
        Self {
            path: self.path.clone(),
            columns: self.columns.clone(),
            spec: self.spec.clone(),
            busy_timeout: self.busy_timeout,
        }
    }
}

/// An opened target: what writer and committer share.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) database: Arc<Database>,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) io: SharedIo,
}

impl<T> SqliteSink<T> {
    pub(crate) fn getters(&self) -> Columns<T> {
        self.columns.clone()
    }

    /// Refuses settings that cannot work, and a table that is there with other columns.
    pub(crate) fn check(&self) -> Result<(), ConnectorError> {
        self.spec.check().map_err(|refusal| SqliteError::Refused {
            file: self.path.clone(),
            table: self.spec.name.clone(),
            refusal,
        })?;
        let file = canonical(&self.path)?;
        refuse_unwritable(&file)?;
        if file.exists() {
            let database = Database::open(&file, self.busy_timeout)?;
            database.with_connection(|connection| self.spec.check_existing(connection, &file))?;
        }
        Ok(())
    }

    /// Opens the file and makes what is missing: the table, and for transactions registry and ledger.
    pub(crate) fn open_target(
        &self,
        io: SharedIo,
        transactions: bool,
    ) -> impl Future<Output = Result<Target, SqliteError>> + Send + use<T> {
        let (path, busy_timeout) = (self.path.clone(), self.busy_timeout);
        let spec = Arc::new(self.spec.clone());
        let wanted = Arc::clone(&spec);
        async move {
            let place = path.clone();
            let opened = blocking(&io, move || {
                let database = Database::open(&path, busy_timeout)?;
                database.write("making the tables", |transaction| {
                    wanted.check_existing(transaction, database.file())?;
                    let made = transaction.execute_batch(&wanted.create_sql()).and_then(|()| {
                        if transactions { staging::create_tables(transaction) } else { Ok(()) }
                    });
                    made.map_err(|e| SqliteError::of(database.file(), "making the tables", e))
                })?;
                Ok(database)
            });
            let database = opened.await.map_err(|source| SqliteError::CutShort { file: place, source })??;
            Ok(Target { database, spec, io })
        }
    }
}

impl<T: Clone + Send + 'static> TwoPhaseSink for SqliteSink<T> {
    type Record = T;
    type Committable = StagedRows;
    type Writer = SqliteWriter<T>;
    type Committer = SqliteCommitter;

    fn validate(&self) -> Result<(), ConnectorError> {
        self.check()
    }

    fn newest_committed(
        &self,
        context: TwoPhaseContext,
        since: AttemptId,
    ) -> impl Future<Output = Result<Option<CheckpointId>, ConnectorError>> + Send + use<T> {
        // To open it ends nothing: readers and writers of others go on.
        let opening = self.open_committer(context);
        async move { opening.await?.newest_committed(since).await }
    }

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<SqliteCommitter, ConnectorError>> + Send + use<T> {
        let target = self.open_target(Arc::clone(&context.connector.io), true);
        async move { Ok(SqliteCommitter::new(target.await?, context.name.scope, context.connector.clock)) }
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<SqliteWriter<T>, ConnectorError>> + Send + use<T> {
        let target = self.open_target(context.connector.io, true);
        let columns = self.getters();
        async move { Ok(SqliteWriter::new(target.await?, columns)) }
    }
}
