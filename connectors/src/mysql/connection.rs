//! One dedicated connection to a server.
//!
//! Not from a pool: a branch belongs to its session. Every session runs READ COMMITTED (under REPEATABLE READ gap locks stall
//! neighbours), strict (a value that does not fit is an error, never cut), in UTC, without the safe mode that refuses a DELETE which
//! tries a right, with the limits of [`SessionLimits`]. An answer
//! that does not come in time is an error, never a hang; after such an error, or a broken connection, the session is given up.
//!
//! Owns: set-up and limits of a session, sorting its errors. Does not own: what is asked. Runs on: the I/O side (tokio).

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Params, Row, Value};
use tidegate_engine::api::{ClaimError, ClaimWatch};
use tidegate_engine::ids::{CheckpointId, OperatorUid};
use tidegate_engine::io::SharedIo;

use super::error::{Attempted, ServerAnswer};
use super::{MysqlError, MysqlUrl, ServerKind, ServerVersion, SessionLimits};

/// How a session treats values and time.
const SQL_MODE: &str =
    "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
/// Where no error is answered, a value that was rounded or cut shows as a warning of such a number.
const WARNINGS_OF_LOSS: [u16; 7] = [1048, 1264, 1265, 1292, 1366, 1406, 1411];
/// The server does not know the connection that shall be ended.
const UNKNOWN_THREAD: u16 = 1094;
/// Not allowed in.
const DENIED: [u16; 4] = [1045, 1130, 1251, 1698];
/// What is done when the claim is asked for.
const ASKING: &str = "asking the commit log about the job";
/// Rows of warnings that are looked at.
const WARNINGS_MAX: usize = 64;

/// An open session.
pub struct Connection {
    /// `None`: given up.
    conn: Option<Conn>,
    url: MysqlUrl,
    limits: SessionLimits,
    io: SharedIo,
    id: u64,
    version: ServerVersion,
    ties_branches: bool,
    packet_bytes_max: usize,
}

/// `work`, or `None` when it takes longer.
pub(crate) async fn within<T>(io: &SharedIo, span: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), io.sleep(span)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Connection {
    /// Connects and sets the session up.
    ///
    /// # Errors
    /// [`MysqlError`].
    pub async fn open(url: &MysqlUrl, limits: SessionLimits, io: &SharedIo) -> Result<Self, MysqlError> {
        let options = OptsBuilder::default()
            .ip_or_hostname(url.host())
            .tcp_port(url.port())
            .user(Some(url.user()))
            .pass(Some(url.password()))
            .db_name(Some(url.database()))
            // What goes through a proxy stays there.
            .prefer_socket(false)
            .client_found_rows(true);
        let conn = match within(io, limits.connect, Conn::new(options)).await {
            Some(Ok(conn)) => conn,
            Some(Err(error)) => return Err(refused_at_the_door(url, error)),
            None => {
                let (server, waited_ms) = (url.place(), millis(limits.connect));
                return Err(MysqlError::ConnectTimeout { server, waited_ms });
            }
        };
        let mut open = Self {
            id: u64::from(conn.id()),
            conn: Some(conn),
            url: url.clone(),
            limits,
            io: io.clone(),
            version: ServerVersion::of(""),
            ties_branches: true,
            packet_bytes_max: 0,
        };
        open.set_up().await?;
        Ok(open)
    }

    /// Connects for a job that runs: a user who is refused is tried again, since submit has let it in.
    ///
    /// # Errors
    /// [`MysqlError`].
    pub(crate) async fn open_in_job(
        url: &MysqlUrl,
        limits: SessionLimits,
        io: &SharedIo,
    ) -> Result<Self, MysqlError> {
        Self::open(url, limits, io).await.map_err(|error| error.while_running(url.user()))
    }

    async fn set_up(&mut self) -> Result<(), MysqlError> {
        let doing = "setting the session up";
        let asked = self
            .rows(
                doing,
                "SELECT VERSION(), @@SESSION.max_allowed_packet, CONNECTION_ID(), @@SESSION.max_error_count",
                Vec::new(),
            )
            .await?;
        let (version, packet_bytes, id, warnings_max): (String, u64, u64, u64) =
            self.only_row(doing, asked)?;
        (self.version, self.id) = (ServerVersion::of(&version), id);
        self.packet_bytes_max = usize::try_from(packet_bytes).unwrap_or(usize::MAX);
        self.ties_branches = self.asked_whether_it_ties_branches().await?;
        let (lock_wait, idle) = (self.limits.lock_wait.as_secs(), self.limits.idle.as_secs());
        self.run(doing, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
        self.run(
            doing,
            &format!(
                "SET autocommit = 1, time_zone = '+00:00', sql_mode = '{SQL_MODE}', innodb_lock_wait_timeout = {lock_wait}, \
                 lock_wait_timeout = {lock_wait}, wait_timeout = {idle}, sql_notes = 1, sql_safe_updates = 0"
            ),
        )
        .await?;
        // A server may have been told to keep warnings back; a value that it rounded would go in unseen.
        if warnings_max == 0 {
            self.run(doing, &format!("SET max_error_count = {WARNINGS_MAX}")).await?;
        }
        Ok(())
    }

    /// MariaDB always does; MySQL does before 8.0.29, and later where an administrator said so.
    async fn asked_whether_it_ties_branches(&mut self) -> Result<bool, MysqlError> {
        if self.version.kind == ServerKind::MariaDb {
            return Ok(true);
        }
        let doing = "asking what becomes of prepared branches";
        let rows = self.rows(doing, "SHOW SESSION VARIABLES LIKE 'xa_detach_on_prepare'", Vec::new()).await?;
        if rows.is_empty() {
            return Ok(true);
        }
        let (_, value): (String, String) = self.only_row(doing, rows)?;
        Ok(value != "ON")
    }

    /// What was tried, for an error.
    pub fn attempted(&self, doing: &str) -> Attempted {
        Attempted { doing: doing.to_owned(), server: self.url.place() }
    }

    /// Which server it is.
    pub fn server(&self) -> ServerKind {
        self.version.kind
    }

    /// Kind and version.
    pub fn version(&self) -> &ServerVersion {
        &self.version
    }

    /// Whether a prepared branch belongs to the session that prepared it for as long as that lives: it can do nothing else meanwhile,
    /// and no other session can commit the branch.
    pub fn ties_branches(&self) -> bool {
        self.ties_branches
    }

    /// The session's number at the server.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where it leads.
    pub fn url(&self) -> &MysqlUrl {
        &self.url
    }

    /// Largest packet that the server takes.
    pub fn packet_bytes_max(&self) -> usize {
        self.packet_bytes_max
    }

    /// How long it waits for what.
    pub(crate) fn limits(&self) -> SessionLimits {
        self.limits
    }

    /// Where its futures run.
    pub(crate) fn io(&self) -> &SharedIo {
        &self.io
    }

    /// What another session needs in order to ask about this one.
    pub(crate) fn whereabouts(&self) -> (MysqlUrl, SessionLimits, SharedIo, u64) {
        (self.url.clone(), self.limits, self.io.clone(), self.id)
    }

    /// Whether it can be asked.
    pub fn is_open(&self) -> bool {
        self.conn.is_some()
    }

    /// Asks within the statement limit. Meanwhile the client is held here, so that a future that is dropped half-way leaves no
    /// session that waits for the answer to an old question.
    async fn ask<T>(
        &mut self,
        doing: &str,
        question: impl for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, mysql_async::Result<T>>,
    ) -> Result<T, MysqlError> {
        let Some(mut conn) = self.conn.take() else {
            return Err(MysqlError::Broken { at: self.attempted(doing) });
        };
        let answer = within(&self.io, self.limits.statement, question(&mut conn)).await;
        match answer {
            Some(Ok(answer)) => {
                self.conn = Some(conn);
                Ok(answer)
            }
            Some(Err(error)) => {
                let sorted = MysqlError::of(self.attempted(doing), error);
                if !sorted.is_uncertain() {
                    self.conn = Some(conn);
                }
                Err(sorted)
            }
            None => {
                let (at, waited_ms) = (self.attempted(doing), millis(self.limits.statement));
                Err(MysqlError::NoAnswer { at, waited_ms })
            }
        }
    }

    /// Runs a statement without values; rows affected.
    ///
    /// # Errors
    /// [`MysqlError`].
    pub async fn run(&mut self, doing: &str, sql: &str) -> Result<u64, MysqlError> {
        let sql = sql.to_owned();
        self.ask(doing, move |conn| conn.query_drop(sql)).await?;
        Ok(self.affected())
    }

    /// Asks for rows. Without values the statement goes as text.
    ///
    /// # Errors
    /// [`MysqlError`].
    pub async fn rows(&mut self, doing: &str, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, MysqlError> {
        let sql = sql.to_owned();
        if values.is_empty() {
            return self.ask(doing, move |conn| conn.query(sql)).await;
        }
        self.ask(doing, move |conn| conn.exec(sql, Params::Positional(values))).await
    }

    /// Runs a prepared statement, which is kept for the next time; rows affected. A value that was stored otherwise than it was given
    /// is an error, also where the server only warns.
    ///
    /// # Errors
    /// [`MysqlError`].
    pub async fn execute(&mut self, doing: &str, sql: &str, values: Vec<Value>) -> Result<u64, MysqlError> {
        let sql = sql.to_owned();
        let params = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        self.ask(doing, move |conn| conn.exec_drop(sql, params)).await?;
        let affected = self.affected();
        if self.conn.as_ref().is_some_and(|conn| conn.get_warnings() > 0) {
            self.refuse_losses(doing).await?;
        }
        Ok(affected)
    }

    async fn refuse_losses(&mut self, doing: &str) -> Result<(), MysqlError> {
        let warnings =
            self.rows("reading warnings", &format!("SHOW WARNINGS LIMIT {WARNINGS_MAX}"), Vec::new()).await?;
        for row in warnings {
            let (_, code, message): (String, u16, String) = self.only_row(doing, vec![row])?;
            if WARNINGS_OF_LOSS.contains(&code) {
                let source = ServerAnswer { code, state: "01000".to_owned(), message };
                return Err(MysqlError::Unfit { at: self.attempted(doing), row: None, source });
            }
        }
        Ok(())
    }

    fn affected(&self) -> u64 {
        self.conn.as_ref().map_or(0, Conn::affected_rows)
    }

    /// The first row in parts.
    ///
    /// # Errors
    /// There is none, or it is not as expected.
    pub(crate) fn only_row<T: mysql_async::prelude::FromRow>(
        &self,
        doing: &str,
        rows: Vec<Row>,
    ) -> Result<T, MysqlError> {
        let row = rows.into_iter().next().map(mysql_async::from_row_opt::<T>);
        match row {
            Some(Ok(parts)) => Ok(parts),
            Some(Err(_)) | None => {
                let message = "the answer is not what was asked for".to_owned();
                let source = ServerAnswer { code: 0, state: "HY000".to_owned(), message };
                Err(MysqlError::Server { at: self.attempted(doing), source })
            }
        }
    }

    /// Asks the commit log whether the job is still this attempt's: before this session writes, with a lock in its hand that a
    /// successor would have to take away first.
    pub(crate) async fn check_claim(&self, claim: &ClaimWatch) -> Result<(), MysqlError> {
        self.of_the_log(claim.check()).await
    }

    /// Asks the commit log up to which checkpoint this sink's transactions are committed for good.
    pub(crate) async fn committed_for_good(
        &self,
        claim: &ClaimWatch,
        uid: &OperatorUid,
    ) -> Result<Option<CheckpointId>, MysqlError> {
        self.of_the_log(claim.committed_for_good(uid)).await
    }

    async fn of_the_log<T>(
        &self,
        question: impl Future<Output = Result<T, ClaimError>>,
    ) -> Result<T, MysqlError> {
        let limit = self.limits.statement;
        let answer = within(&self.io, limit, question).await;
        let answer = answer.unwrap_or(Err(ClaimError::NoAnswer { waited_ms: millis(limit) }));
        answer.map_err(|source| MysqlError::Claim { at: self.attempted(ASKING), source })
    }

    /// Ends another session; one that is gone is fine.
    ///
    /// # Errors
    /// [`MysqlError`]: the right is missing, say.
    pub async fn kill(&mut self, id: u64) -> Result<(), MysqlError> {
        match self.run(&format!("ending connection {id}"), &format!("KILL CONNECTION {id}")).await {
            Err(error) if error.code() == Some(UNKNOWN_THREAD) => Ok(()),
            ended => ended.map(drop),
        }
    }

    /// Says goodbye. Whether the server heard it does not matter: it notices the closed socket as well.
    pub async fn close(mut self) {
        if let Some(conn) = self.conn.take() {
            let _ = within(&self.io, self.limits.connect, conn.disconnect()).await;
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "connection {} to {} ({})", self.id, self.url, self.version)
    }
}

fn refused_at_the_door(url: &MysqlUrl, error: mysql_async::Error) -> MysqlError {
    let at = Attempted { doing: "connecting".to_owned(), server: url.place() };
    match error {
        mysql_async::Error::Server(answer) if DENIED.contains(&answer.code) => {
            let (code, state, message) = (answer.code, answer.state, answer.message);
            let source = ServerAnswer { code, state, message };
            MysqlError::AccessDenied { at, user: url.user().to_owned(), source }
        }
        error @ mysql_async::Error::Server(_) => MysqlError::of(at, error),
        error => MysqlError::Unreachable { server: url.place(), source: Box::new(error) },
    }
}
