//! The session of an upsert writer: writes reduced changes, again and again until the server has them for certain.
//!
//! An answer that does not come says nothing: the server may have done it, may be about to, or will never. Changes can be repeated, but not
//! while the old session may still carry them out: it could do so *after* newer ones. Each session therefore holds a named lock of the
//! server (`GET_LOCK`), which the server frees when the session has ended and its transaction is rolled back. A new session takes the same
//! lock first and ends whoever still holds it. The first one of an attempt also ends those of every other attempt, whatever the
//! parallelism was, before it writes.
//!
//! The lock keeps away what is dead or still connected. A process that stood still while another one took its job over, ended its session
//! and came to its end finds the lock free again. So each new session, with the lock in its hand, asks the commit log whether its attempt
//! still holds the job, and only then writes (see [`ClaimWatch`]).
//!
//! Owns: the connection, its lock, repetition. Does not own: what is written and when. Runs on: the I/O side (tokio).

use std::sync::Arc;
use std::time::Duration;

use mysql_async::{Row, Value};
use tidegate_engine::api::ClaimWatch;
use tidegate_engine::clock::{Moment, SharedClock};
use tidegate_engine::io::SharedIo;
use tidegate_state::fault_point;

use super::insert::execute_watched;
use super::row_place::RowPlaces;
use super::table_check::check_table;
use super::upsert_buffer::{Reduced, RowLayout};
use super::upsert_lock::UpsertLock;
use super::upsert_retry::{Retries, Retry};
use super::upsert_statements::{UpsertStatement, UpsertTable};
use super::{Connection, MysqlError, MysqlUrl, SessionLimits, TableSpec};

/// Between two looks whether an old session has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// What is done meanwhile.
const FENCING: &str = "waiting for the end of an earlier session of this sink";

/// What a session is opened with.
#[derive(Clone)]
pub(crate) struct SessionSettings {
    pub(crate) url: MysqlUrl,
    pub(crate) limits: SessionLimits,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) layout: Arc<RowLayout>,
    pub(crate) lock: UpsertLock,
    pub(crate) retries_max: u32,
    pub(crate) clock: SharedClock,
    pub(crate) io: SharedIo,
    pub(crate) claim: ClaimWatch,
}

/// A session that comes back.
pub(crate) struct UpsertSession {
    settings: SessionSettings,
    connection: Option<Connection>,
    /// Of the last connection.
    packet_bytes_max: usize,
}

impl UpsertSession {
    /// Connects, fences what earlier attempts have left, and compares the table.
    pub(crate) async fn open(settings: SessionSettings) -> Result<Self, MysqlError> {
        let mut session = Self { settings, connection: None, packet_bytes_max: 0 };
        let mut retries = session.retries();
        while let Err(error) = session.begin().await {
            session.pause(&mut retries, error).await?;
        }
        Ok(session)
    }

    /// Largest packet that the server takes.
    pub(crate) fn packet_bytes_max(&self) -> usize {
        self.packet_bytes_max
    }

    /// Its table.
    pub(crate) fn table(&self) -> &str {
        &self.settings.spec.name
    }

    /// `host:port/database`.
    pub(crate) fn place(&self) -> String {
        self.settings.url.place()
    }

    async fn begin(&mut self) -> Result<(), MysqlError> {
        let settings = self.settings.clone();
        let connection = self.connected().await?;
        for question in settings.lock.of_all_writers() {
            end_others(connection, &settings, &question).await?;
        }
        check_table(connection, &settings.spec).await?;
        Ok(())
    }

    /// Writes `changes`; afterwards they are durable.
    pub(crate) async fn write(&mut self, changes: &Reduced) -> Result<(), MysqlError> {
        let mut retries = self.retries();
        while let Err(error) = self.try_write(changes).await {
            self.pause(&mut retries, error).await?;
        }
        Ok(())
    }

    fn retries(&self) -> Retries {
        Retries::new(self.settings.retries_max, self.settings.lock.seed())
    }

    /// Waits before another try, or tells why there is none.
    async fn pause(&mut self, retries: &mut Retries, error: MysqlError) -> Result<(), MysqlError> {
        let table = &self.settings.spec.name;
        match retries.after(&error) {
            Retry::Hopeless => Err(error),
            Retry::Spent => {
                let (table, tries) = (table.clone(), retries.tries());
                Err(MysqlError::RetriesSpent { table, tries, source: Box::new(error) })
            }
            Retry::After { pause, reconnect } => {
                let (tries, pause_ms) = (retries.tries(), pause.as_millis());
                tracing::warn!(table, tries, pause_ms, reconnect, "upsert: {error}; it is tried again");
                if reconnect {
                    self.connection = None;
                }
                self.settings.io.sleep(pause).await;
                Ok(())
            }
        }
    }

    async fn try_write(&mut self, changes: &Reduced) -> Result<(), MysqlError> {
        let (spec, layout) = (Arc::clone(&self.settings.spec), Arc::clone(&self.settings.layout));
        let connection = self.connected().await?;
        let (server, packet_bytes_max) = (connection.server(), connection.packet_bytes_max());
        let table = UpsertTable { spec: &spec, layout: &layout, server, packet_bytes_max };
        let written = run(connection, &spec, changes, table.statements(changes)).await;
        if let Err(error) = &written
            && !error.is_away()
        {
            // Also where it is over already: nothing of it must be left in the session.
            connection.run("rolling back", "ROLLBACK").await?;
        }
        written
    }

    /// The connection; a new one comes with the lock, and with the certainty that the job is still this attempt's. In this order: whoever
    /// claims the job after the answer has to end this session before it writes.
    async fn connected(&mut self) -> Result<&mut Connection, MysqlError> {
        if !self.connection.as_ref().is_some_and(Connection::is_open) {
            self.connection = None;
            let settings = &self.settings;
            let mut opened = Connection::open_in_job(&settings.url, settings.limits, &settings.io).await?;
            take_lock(&mut opened, settings).await?;
            opened.check_claim(&settings.claim).await?;
            self.packet_bytes_max = opened.packet_bytes_max();
            self.connection = Some(opened);
        }
        Ok(self.connection.as_mut().expect("it was just made"))
    }
}

/// Runs the statements as one transaction. (Also a single one: a value that the server stored otherwise than it was given shows only
/// after its statement.)
async fn run(
    connection: &mut Connection,
    spec: &TableSpec,
    changes: &Reduced,
    statements: Vec<UpsertStatement>,
) -> Result<(), MysqlError> {
    let doing = format!("upserting into the table {}", spec.name);
    fault_point!("mysql.upsert.write.before");
    connection.run(&doing, "START TRANSACTION").await?;
    for (index, statement) in statements.into_iter().enumerate() {
        if index > 0 {
            fault_point!("mysql.upsert.write.between");
        }
        let written = execute_watched(connection, &doing, &statement.sql, statement.values).await;
        written.map_err(|error| match statement.first_row {
            Some(first) => RowPlaces::of(spec, None, &changes.upserts[first..].concat()).named(error),
            None => error,
        })?;
    }
    connection.run(&doing, "COMMIT").await?;
    fault_point!("mysql.upsert.write.after");
    Ok(())
}

/// Takes the lock; a session that still holds it is ended, and waited for.
async fn take_lock(connection: &mut Connection, settings: &SessionSettings) -> Result<(), MysqlError> {
    let mut patience = Patience::new(settings);
    let mut may_end = false;
    loop {
        let answer = connection.rows(FENCING, &settings.lock.take_sql(), Vec::new()).await?;
        let (marked, taken, holder): (Option<u64>, Option<u64>, Option<u64>) =
            connection.only_row(FENCING, answer)?;
        if (marked, taken) == (Some(1), Some(1)) {
            return Ok(());
        }
        if let Some(id) = holder.filter(|id| *id != connection.id()) {
            if !may_end {
                // It may be the successor's, who would have to connect again.
                connection.check_claim(&settings.claim).await?;
                may_end = true;
            }
            connection.kill(id).await?;
        }
        patience.pause(connection).await?;
    }
}

/// Ends the sessions of other attempts among those that `question` asks for, and waits until they have ended. Every subtask ends all
/// of them before it writes: with another parallelism keys have gone from any subtask to any other.
async fn end_others(
    connection: &mut Connection,
    settings: &SessionSettings,
    question: &str,
) -> Result<(), MysqlError> {
    let mut patience = Patience::new(settings);
    loop {
        let answer = connection.rows(FENCING, question, Vec::new()).await?;
        let sessions: Vec<Option<u64>> = answer.into_iter().flat_map(Row::unwrap).map(session_id).collect();
        let of_others = sessions.chunks(2).filter(|pair| pair.first() != pair.last());
        let others: Vec<u64> = of_others.filter_map(|pair| pair[0]).collect();
        if others.is_empty() {
            return Ok(());
        }
        for id in others {
            connection.kill(id).await?;
        }
        patience.pause(connection).await?;
    }
}

fn session_id(value: Value) -> Option<u64> {
    mysql_async::from_value_opt::<Option<u64>>(value).ok().flatten()
}

/// How long the end of an old session is waited for.
struct Patience<'a> {
    settings: &'a SessionSettings,
    started: Moment,
}

impl<'a> Patience<'a> {
    fn new(settings: &'a SessionSettings) -> Self {
        Self { settings, started: settings.clock.now() }
    }

    async fn pause(&mut self, connection: &Connection) -> Result<(), MysqlError> {
        let waited = self.settings.clock.now().saturating_sub(self.started);
        if waited >= self.settings.limits.statement {
            let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            return Err(MysqlError::NoAnswer { at: connection.attempted(FENCING), waited_ms });
        }
        self.settings.io.sleep(LOOK_PAUSE).await;
        Ok(())
    }
}
