//! Settings of the upsert sink.
//!
//! Owns: the builder, what `validate` refuses. Does not own: writing (see [`UpsertWriter`]), the look at the server
//! (see [`super::upsert_preflight`]). Runs on: built on the author's thread, opened on the I/O side.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{ConnectorContext, ConnectorError, PreflightContext, PreflightResult, Sink};
use tidegate_engine::element::{Change, RowKind};
use tidegate_engine::operator::TransactionName;

use super::upsert_buffer::RowLayout;
use super::upsert_lock::UpsertLock;
use super::upsert_preflight::preflight;
use super::upsert_session::{SessionSettings, UpsertSession};
use super::upsert_writer::{UpsertWriter, WriterSettings};
use super::{
    ColumnKind, Columns, KeyColumns, MergeMode, MysqlError, MysqlUrl, MysqlUrlError, SessionLimits,
    TableRefusal, TableSpec,
};

/// Keys that wait, at most, if not set.
const BATCH_ROWS: usize = 1_000;
/// Memory of what waits, at most, if not set.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// How long a row waits, at most, if not set.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// How often a write is tried again, if not set: with the pauses between, for about 40 s.
const RETRIES_MAX: u32 = 11;

/// Takes a record apart: what happens, and to which row.
type Split<T, R> = for<'r> fn(&'r R) -> (RowKind, &'r T);

/// Rows into a table of MySQL or MariaDB, each over the one with the same key: at least once, and without harm when a row is written
/// again. Rows become visible as they are written, not with a checkpoint. Made by [`super::MysqlSink::upsert_by`].
///
/// ```
/// use tidegate_connectors::mysql::MysqlSink;
///
/// struct User { id: u64, name: String, changed_us: i64 }
///
/// let sink = MysqlSink::table("mysql://user:password@host:3306/shop", "users")
///     .column("id", |user: &User| user.id)
///     .text("name", |user| &user.name)
///     .column("changed_us", |user| user.changed_us)
///     .upsert_by("id")
///     .version_column("changed_us");
/// let changelog = sink.changes(); // takes `Change<User>`: +I, -U, +U, -D
/// ```
pub struct UpsertSink<T, R = T> {
    url: Result<MysqlUrl, MysqlUrlError>,
    columns: Columns<T>,
    spec: TableSpec,
    /// The mode that was asked for before upserting.
    was_adding: bool,
    version: Option<String>,
    batch_rows: usize,
    batch_bytes: usize,
    flush_interval: Duration,
    retries_max: u32,
    split: Split<T, R>,
    /// Where it stands; known when it is opened.
    place: Option<TransactionName>,
}

impl<T> UpsertSink<T> {
    /// Upserts into `table` by its `key`; one that was to add is refused when it is checked.
    pub(crate) fn of(
        url: Result<MysqlUrl, MysqlUrlError>,
        table: &str,
        columns: Columns<T>,
        key: impl KeyColumns,
        was_adding: bool,
    ) -> Self {
        let mut spec = TableSpec::new(table);
        spec.columns.clone_from(&columns.specs);
        spec.mode = MergeMode::Overwrite { by: key.into_names() };
        Self {
            url,
            columns,
            spec,
            was_adding,
            version: None,
            batch_rows: BATCH_ROWS,
            batch_bytes: BATCH_BYTES,
            flush_interval: FLUSH_INTERVAL,
            retries_max: RETRIES_MAX,
            split: |row| (RowKind::UpdateAfter, row),
            place: None,
        }
    }

    /// Takes changes instead of rows: `+I` and `+U` write a row, `-D` deletes it by its whole key, `-U` does so only if the `+U` that
    /// follows has another key.
    pub fn changes(self) -> UpsertSink<T, Change<T>> {
        UpsertSink {
            url: self.url,
            columns: self.columns,
            spec: self.spec,
            was_adding: self.was_adding,
            version: self.version,
            batch_rows: self.batch_rows,
            batch_bytes: self.batch_bytes,
            flush_interval: self.flush_interval,
            retries_max: self.retries_max,
            split: |change| (change.kind, &change.row),
            place: self.place,
        }
    }
}

impl<T, R> UpsertSink<T, R> {
    /// A row changes only if its value in this column does not shrink, so that rows that come late or again never undo newer ones. (A row
    /// that was deleted remembers no version.)
    #[must_use]
    pub fn version_column(mut self, column: &str) -> Self {
        self.version = Some(column.to_owned());
        self
    }

    /// Writes when so many keys wait; 1,000 if not set.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows;
        self
    }

    /// Writes when what waits takes so much memory; 4 MiB if not set.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// Writes when a row has waited so long; 1 s if not set. (A checkpoint always writes what waits.)
    #[must_use]
    pub fn flush_interval(mut self, interval: Duration) -> Self {
        self.flush_interval = interval;
        self
    }

    /// How often a write is tried again while the server is away or a row is locked, with pauses from 0 and 100 ms up to 10 s; 11 if not
    /// set, which bears about 40 s. Then the job restarts from its last checkpoint. Deadlocks have a limit of their own.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retries_max = retries;
        self
    }

    fn refused(&self, refusal: TableRefusal) -> MysqlError {
        let server = self.url.as_ref().map_or_else(|_| "?".to_owned(), MysqlUrl::place);
        MysqlError::Refused { table: self.spec.name.clone(), server, refusal }
    }

    fn check(&self) -> Result<&MysqlUrl, MysqlError> {
        let url = self.url.as_ref().map_err(|error| MysqlError::Url(error.clone()))?;
        if self.was_adding {
            return Err(self.refused(TableRefusal::UpsertAdds));
        }
        self.spec.check().map_err(|refusal| self.refused(refusal))?;
        let is_float = |name: &&String| {
            self.spec.columns.iter().any(|c| c.name == **name && c.kind == ColumnKind::Double)
        };
        if let Some(column) = self.spec.key().iter().find(is_float) {
            return Err(self.refused(TableRefusal::FloatKey { column: column.clone() }));
        }
        if let Some(column) = &self.version
            && let Some(why) = self.why_no_version(column)
        {
            return Err(self.refused(TableRefusal::VersionColumn { column: column.clone(), why }));
        }
        let zeros = [
            ("batch_rows", self.batch_rows == 0),
            ("batch_bytes", self.batch_bytes == 0),
            ("flush_interval", self.flush_interval.is_zero()),
        ];
        match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((setting, _)) => Err(self.refused(TableRefusal::ZeroLimit { setting })),
            None => Ok(url),
        }
    }

    fn why_no_version(&self, name: &str) -> Option<&'static str> {
        let Some(column) = self.spec.columns.iter().find(|column| column.name == name) else {
            return Some("is not among the columns");
        };
        if self.spec.key().iter().any(|key| key == name) {
            return Some("is in the key");
        }
        if column.optional {
            return Some("may be NULL");
        }
        match column.kind {
            ColumnKind::Text | ColumnKind::Bytes => Some("is neither a number nor a date"),
            _ => None,
        }
    }
}

impl<T: Clone + Send + 'static, R: Clone + Send + 'static> Sink for UpsertSink<T, R> {
    type Record = R;
    type Writer = UpsertWriter<T, R>;

    fn validate(&self) -> Result<(), ConnectorError> {
        self.check()?;
        Ok(())
    }

    fn preflight(
        &self,
        context: PreflightContext,
    ) -> impl Future<Output = PreflightResult> + Send + use<T, R> {
        let url = self.check().cloned();
        let (spec, layout) = (self.spec.clone(), RowLayout::of(&self.spec, self.version.as_deref()));
        async move { Ok(preflight(&url?, &spec, &layout, &context).await?) }
    }

    fn placed(&mut self, name: &TransactionName, _parallelism: u32) {
        self.place = Some(name.clone());
    }

    fn open(
        &self,
        context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<UpsertWriter<T, R>, ConnectorError>> + Send + use<T, R> {
        let url = self.check().cloned();
        let layout = RowLayout::of(&self.spec, self.version.as_deref());
        let settings = WriterSettings {
            layout: layout.clone(),
            batch_rows: self.batch_rows,
            batch_bytes: self.batch_bytes,
            flush_interval: self.flush_interval,
        };
        let (columns, split, place) = (self.columns.clone(), self.split, self.place.clone());
        let (spec, retries_max) = (Arc::new(self.spec.clone()), self.retries_max);
        async move {
            let name = place.ok_or_else(|| {
                ConnectorError::fatal("mysql upsert sink: it was opened before it was placed in a job")
            })?;
            let session = SessionSettings {
                url: url?,
                limits: SessionLimits::below(context.checkpoint_timeout),
                lock: UpsertLock::of(&name, &spec.name),
                spec: Arc::clone(&spec),
                layout: Arc::new(layout),
                retries_max,
                clock: Arc::clone(&context.clock),
                io: Arc::clone(&context.io),
                claim: context.claim.clone(),
            };
            let session = UpsertSession::open(session).await?;
            Ok(UpsertWriter::new(settings, session, columns, split, context.clock))
        }
    }
}

impl<T, R> Clone for UpsertSink<T, R> {
    fn clone(&self) -> Self {
        Self {
            url: self.url.clone(),
            columns: self.columns.clone(),
            spec: self.spec.clone(),
            was_adding: self.was_adding,
            version: self.version.clone(),
            batch_rows: self.batch_rows,
            batch_bytes: self.batch_bytes,
            flush_interval: self.flush_interval,
            retries_max: self.retries_max,
            split: self.split,
            place: self.place.clone(),
        }
    }
}

impl<T, R> fmt::Debug for UpsertSink<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpsertSink")
            .field("spec", &self.spec)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::MysqlSink;
    use super::*;

    type Weight = (u64, f64);

    fn table(url: &str) -> MysqlSink<Weight> {
        MysqlSink::table(url, "t").column("id", |r: &Weight| r.0).column("weight", |r| r.1)
    }

    fn sink() -> UpsertSink<Weight> {
        table("mysql://u:p@127.0.0.1:1/d").upsert_by("id")
    }

    fn refusal(sink: &UpsertSink<Weight>) -> String {
        sink.validate().unwrap_err().full_text()
    }

    #[test]
    fn limits_that_were_set_before_upserting_hold() {
        let sink = table("mysql://u:p@127.0.0.1:1/d").batch_rows(7).flush_interval(Duration::from_secs(9));
        let upserts = sink.upsert_by("id");
        assert_eq!((upserts.batch_rows, upserts.flush_interval), (7, Duration::from_secs(9)));
        let plain = table("mysql://u:p@127.0.0.1:1/d").upsert_by("id");
        assert_eq!((plain.batch_rows, plain.flush_interval), (BATCH_ROWS, FLUSH_INTERVAL));
    }

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_remedy() {
        let url = "mysql://u:p@127.0.0.1:1/d";
        assert!(sink().validate().is_ok());
        assert!(refusal(&table(url).add_by("id").upsert_by("id")).contains("added twice"));
        assert!(refusal(&table(url).upsert_by("weight")).contains("is a float"));
        for (column, why) in [("x", "not among"), ("id", "in the key")] {
            assert!(refusal(&sink().version_column(column)).contains(why));
        }
        let optional = table(url).column("v", |r| Some(r.0)).upsert_by("id").version_column("v");
        assert!(refusal(&optional).contains("may be NULL"));
        let text = table(url).column("v", |r| r.0.to_string()).upsert_by("id").version_column("v");
        assert!(refusal(&text).contains("neither a number nor a date"));
        assert!(refusal(&sink().batch_rows(0)).contains("batch_rows is 0"));
        assert!(refusal(&sink().flush_interval(Duration::ZERO)).contains("flush_interval is 0"));
        assert!(sink().version_column("weight").changes().validate().is_ok());
    }

    #[test]
    fn a_bad_address_is_told_without_its_password() {
        let text = refusal(&table("mysql://u:secret@h:x/d").upsert_by("id"));
        assert!(text.contains("port") && !text.contains("secret"), "{text}");
    }
}
