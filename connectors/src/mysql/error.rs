//! What can go wrong with a MySQL server.
//!
//! Owns: the cases, their words, whether a restart may help, whether the server may have done what it was asked.
//! Does not own: retries. Runs on: plain data. Codes: MariaDB "Error Codes", MySQL "Server Error Message Reference".

use tidegate_engine::api::{ClaimError, ConnectorError};

use super::limits::{PACKET_ROOM_BYTES, packet_for_row};
use super::{MysqlUrlError, TableRefusal, ValueError};

/// An error that a server answered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("server error {code} ({state}): {message}")]
pub struct ServerAnswer {
    /// Its number.
    pub code: u16,
    /// SQLSTATE.
    pub state: String,
    /// Its text.
    pub message: String,
}

/// What was tried and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// What: "writing rows into t_order_event".
    pub doing: String,
    /// `host:port/database`.
    pub server: String,
}

/// A failure of a MySQL sink.
#[derive(Debug, thiserror::Error)]
pub enum MysqlError {
    /// An address that cannot be used.
    #[error(transparent)]
    Url(#[from] MysqlUrlError),
    /// Settings or a table that cannot work.
    #[error("mysql table {table} at {server}: {refusal}")]
    Refused {
        /// The table.
        table: String,
        /// `host:port/database`.
        server: String,
        /// Why.
        refusal: TableRefusal,
    },
    /// The server as a whole cannot be used.
    #[error("the server at {server} cannot be used: {why}\n  help: {remedy}")]
    Unusable {
        /// `host:port/database`.
        server: String,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// What an operator asked for by hand cannot be done so.
    #[error("{server}: {why}\n  help: {remedy}")]
    NotByHand {
        /// `host:port/database`.
        server: String,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// Another session writes for this subtask.
    #[error(
        "{} is still at work for subtask {subtask} of \"{uid}\" at {server}\n  help: it is ended at the next start; or does another job have this name and folder?",
        session.map_or_else(|| "another session".to_owned(), |id| format!("connection {id}"))
    )]
    WriterElsewhere {
        /// `host:port/database`.
        server: String,
        /// The sink.
        uid: String,
        /// Its subtask.
        subtask: u32,
        /// Which session, if the server tells.
        session: Option<u64>,
    },
    /// A value that no column holds.
    #[error("row {row} for the table {table}: column \"{column}\": {source}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The row, from 1, among those this subtask wrote in this attempt.
        row: u64,
        /// Why.
        source: ValueError,
    },
    /// A row above the server's limit on a packet: refused before it is sent.
    #[error(
        "row {row} for the table {table} has {row_bytes} bytes, and the server at {server} takes packets of at most {limit_bytes}, of which \
         {PACKET_ROOM_BYTES} are kept for the statement around a row\n  \
         help: SET GLOBAL max_allowed_packet = {}, or more", packet_for_row(*row_bytes)
    )]
    RowTooLarge {
        /// The table.
        table: String,
        /// `host:port/database`.
        server: String,
        /// The row, from 1, among those this subtask wrote in this attempt.
        row: u64,
        /// Its size.
        row_bytes: usize,
        /// The server's limit.
        limit_bytes: usize,
    },
    /// No connection came about.
    #[error("connecting to {server} failed\n  help: is the server running, and are host and port right?")]
    Unreachable {
        /// `host:port/database`.
        server: String,
        /// Why.
        #[source]
        source: Box<mysql_async::Error>,
    },
    /// No connection came about in time.
    #[error(
        "connecting to {server} had no answer for {waited_ms} ms\n  help: is the server overloaded or stopped, or does a firewall drop packets?"
    )]
    ConnectTimeout {
        /// `host:port/database`.
        server: String,
        /// How long.
        waited_ms: u64,
    },
    /// Wrong user or password.
    #[error("{} refuses user \"{user}\"\n  help: check user and password in the address, and that the user may use this database from this host", at.server)]
    AccessDenied {
        /// Where.
        at: Attempted,
        /// Who.
        user: String,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// A user is refused whom the server let in at submit.
    #[error("{} refuses user \"{user}\" while the job runs, and let it in before\n  help: a server that is starting learns its users late, so it is tried again; if password or rights were changed, change them back", at.server)]
    ShutOut {
        /// Where.
        at: Attempted,
        /// Who.
        user: String,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// The user lacks a right.
    #[error("{} at {}: a right is missing\n  help: {remedy}", at.doing, at.server)]
    Privilege {
        /// What and where.
        at: Attempted,
        /// Which right to grant.
        remedy: String,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// Database, table or column is not there.
    #[error("{} at {}: it is not there\n  help: create it, or name another one", at.doing, at.server)]
    Missing {
        /// What and where.
        at: Attempted,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// Two transactions waited for each other and this one was rolled back.
    #[error("{} at {}: rolled back in a deadlock\n  help: the rows are written again after a restart; key the stream by the table's key in front of the sink", at.doing, at.server)]
    Deadlock {
        /// What and where.
        at: Attempted,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// A row was locked for too long.
    #[error("{} at {}: a row stayed locked, held by {}\n  help: let its holder end; a prepared branch is settled by `tidegate xa`", at.doing, at.server, holder.as_deref().unwrap_or("another transaction"))]
    LockWait {
        /// What and where.
        at: Attempted,
        /// Who holds it, if the server tells.
        holder: Option<String>,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// A key that is there already.
    #[error("{} at {}: the key is there already\n  help: a sink that appends never replaces a row: let it overwrite by its key, or find out why the key comes twice", at.doing, at.server)]
    DuplicateKey {
        /// What and where.
        at: Attempted,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// A value that the column does not hold: too long, out of range, NULL, not of its kind, against a check.
    #[error("{} at {}: {} does not fit the table, and no row of the statement was written\n  help: widen the column (add the partition, mend the trigger), or mend the record in front of the sink", at.doing, at.server, row.as_deref().unwrap_or("a row"))]
    Unfit {
        /// What and where.
        at: Attempted,
        /// Which row, if the server tells: its number, from 1, among those this subtask wrote in this attempt, and its key.
        row: Option<String>,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// Rows of a complete checkpoint that their table does not take.
    #[error(
        "{} at {}: the table refuses rows of a checkpoint that is complete, so that they come again at every start; nothing is lost, \
         they are in {staging}\n  help: let the table take them (add the row that a foreign key asks for, remove the row whose key is \
         there, change the constraint), or mend them in {staging} without changing their number; then start the job again",
        at.doing, at.server
    )]
    Unmerged {
        /// What and where.
        at: Attempted,
        /// The staging table.
        staging: String,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// The statement is larger than the server takes.
    #[error("{} at {}: the statement is larger than max_allowed_packet\n  help: SET GLOBAL max_allowed_packet to more", at.doing, at.server)]
    PacketTooLarge {
        /// What and where.
        at: Attempted,
    },
    /// The server or this session only reads.
    #[error("{} at {}: the server is read-only\n  help: name the primary server", at.doing, at.server)]
    ReadOnly {
        /// What and where.
        at: Attempted,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
    /// The connection broke: the server may or may not have done it.
    #[error("{} at {}: the connection was lost, and whether the server has done it is not known", at.doing, at.server)]
    ConnectionLost {
        /// What and where.
        at: Attempted,
        /// Why.
        #[source]
        source: Box<mysql_async::Error>,
    },
    /// No answer in time: the server may or may not have done it.
    #[error("{} at {}: no answer for {waited_ms} ms, and whether the server has done it is not known", at.doing, at.server)]
    NoAnswer {
        /// What and where.
        at: Attempted,
        /// How long.
        waited_ms: u64,
    },
    /// An earlier statement failed: what it should have written is no longer held.
    #[error("{} at {}: the connection was given up after an earlier failure\n  help: restart from the last checkpoint", at.doing, at.server)]
    Broken {
        /// What and where.
        at: Attempted,
    },
    /// Before a new connection writes, the job must be known to be this attempt's.
    #[error("{} at {}: nothing was written by the new connection", at.doing, at.server)]
    Claim {
        /// What and where.
        at: Attempted,
        /// The job was taken over, or nobody can say so.
        #[source]
        source: ClaimError,
    },
    /// An upsert was tried again and again in vain.
    #[error(
        "upserting into the table {table} was given up after {tries} tries\n  help: let the cause below end, or raise `.max_retries(…)`"
    )]
    RetriesSpent {
        /// The table.
        table: String,
        /// How often it was tried.
        tries: u32,
        /// What the last try met.
        #[source]
        source: Box<MysqlError>,
    },
    /// Anything else that a server answers.
    #[error("{} at {} failed", at.doing, at.server)]
    Server {
        /// What and where.
        at: Attempted,
        /// What the server says.
        #[source]
        source: ServerAnswer,
    },
}

impl MysqlError {
    /// Sorts what a client says by what it asks people to do.
    pub(crate) fn of(at: Attempted, error: mysql_async::Error) -> Self {
        match error {
            mysql_async::Error::Server(answer) => {
                let (code, state, message) = (answer.code, answer.state, answer.message);
                Self::of_answer(at, ServerAnswer { code, state, message })
            }
            mysql_async::Error::Driver(mysql_async::DriverError::PacketTooLarge) => {
                Self::PacketTooLarge { at }
            }
            error => Self::ConnectionLost { at, source: Box::new(error) },
        }
    }

    /// Sorts an answer of the server.
    pub(crate) fn of_answer(at: Attempted, source: ServerAnswer) -> Self {
        match source.code {
            1044 => {
                let remedy = "the database may not be there (SHOW DATABASES as an administrator); if it is, GRANT rights on it to this user";
                Self::Privilege { at, remedy: remedy.to_owned(), source }
            }
            1142 | 1143 | 1227 | 1370 | 1410 | 1419 | 3879 => {
                let remedy = "GRANT the right that the server names below to this user".to_owned();
                Self::Privilege { at, remedy, source }
            }
            1401 => {
                let remedy = "GRANT XA_RECOVER_ADMIN ON *.* TO this user".to_owned();
                Self::Privilege { at, remedy, source }
            }
            1049 | 1146 | 1054 | 1051 => Self::Missing { at, source },
            1213 | 1614 => Self::Deadlock { at, source },
            1205 => Self::LockWait { at, holder: None, source },
            1062 | 1586 => Self::DuplicateKey { at, source },
            1048 | 1264 | 1265 | 1292 | 1364 | 1366 | 1367 | 1406 | 1411 | 1452 | 1690 | 3140 | 3819
            | 4025 | 1300 | 3988 => Self::Unfit { at, row: None, source },
            // No partition, a trigger's SIGNAL, no number left: the same row is refused again and again.
            167 | 1467 | 1526 | 1644 => Self::Unfit { at, row: None, source },
            1153 => Self::PacketTooLarge { at },
            1290 | 1836 | 1792 => Self::ReadOnly { at, source },
            _ => Self::Server { at, source },
        }
    }

    /// The number of the server's error, if it is one of the server.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::AccessDenied { source, .. }
            | Self::ShutOut { source, .. }
            | Self::Privilege { source, .. }
            | Self::Missing { source, .. }
            | Self::Deadlock { source, .. }
            | Self::LockWait { source, .. }
            | Self::DuplicateKey { source, .. }
            | Self::Unfit { source, .. }
            | Self::Unmerged { source, .. }
            | Self::ReadOnly { source, .. }
            | Self::Server { source, .. } => Some(source.code),
            _ => None,
        }
    }

    /// Whether the server may have done what it was asked.
    pub fn is_uncertain(&self) -> bool {
        let killed = self.code().is_some_and(|code| ENDED.contains(&code));
        killed || matches!(self, Self::ConnectionLost { .. } | Self::NoAnswer { .. })
    }

    /// Whether the server is away, or the connection to it, or the commit log: asking again on a new connection may help.
    pub fn is_away(&self) -> bool {
        let full = matches!(self.code(), Some(TOO_MANY_CONNECTIONS | TOO_MANY_OF_USER));
        let unreachable = matches!(
            self,
            Self::Unreachable { .. }
                | Self::ConnectTimeout { .. }
                | Self::ShutOut { .. }
                | Self::Broken { .. }
        );
        let unasked = matches!(self, Self::Claim { source, .. } if source.is_away());
        self.is_uncertain() || full || unreachable || unasked
    }

    /// The same error of a connection that a running job opens. Submit has shown that the user may come in, so a refusal is not taken
    /// for final: a server that has just been killed and started refuses known users for a moment.
    #[must_use]
    pub(crate) fn while_running(self, user: &str) -> Self {
        match self {
            Self::AccessDenied { at, user, source } => Self::ShutOut { at, user, source },
            Self::Privilege { at, source, .. } if source.code == NO_ACCESS_TO_DATABASE => {
                Self::ShutOut { at, user: user.to_owned(), source }
            }
            other => other,
        }
    }

    /// Whether a restart from the last checkpoint may help.
    pub fn is_restartable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::ConnectTimeout { .. }
            | Self::ShutOut { .. }
            | Self::Deadlock { .. }
            | Self::LockWait { .. }
            | Self::ReadOnly { .. }
            | Self::ConnectionLost { .. }
            | Self::NoAnswer { .. }
            | Self::Broken { .. }
            | Self::Claim { .. }
            | Self::RetriesSpent { .. }
            | Self::WriterElsewhere { .. }
            | Self::Server { .. } => true,
            Self::Url(_)
            | Self::Refused { .. }
            | Self::Unusable { .. }
            | Self::NotByHand { .. }
            | Self::Value { .. }
            | Self::RowTooLarge { .. }
            | Self::AccessDenied { .. }
            | Self::Privilege { .. }
            | Self::Missing { .. }
            | Self::DuplicateKey { .. }
            | Self::Unfit { .. }
            | Self::Unmerged { .. }
            | Self::PacketTooLarge { .. } => false,
        }
    }
}

/// `Access denied for user to database`.
const NO_ACCESS_TO_DATABASE: u16 = 1044;
/// `Too many connections`.
pub(crate) const TOO_MANY_CONNECTIONS: u16 = 1040;
/// `User has already more than 'max_user_connections' active connections`.
pub(crate) const TOO_MANY_OF_USER: u16 = 1203;
/// The session has ended, or is about to: whether what was asked last is done is not known.
const ENDED: [u16; 7] = [
    // `Connection was killed`; MySQL: `The session was killed`.
    1927, 3169, // `Query execution was interrupted`: by KILL, on MySQL.
    1317,
    // `Server shutdown in progress`; MySQL: `The server is currently in offline mode`, which ends the sessions of users.
    1053, 3032,
    // MySQL: the client was disconnected because of inactivity; MariaDB: idle transaction timeout.
    4031, 1159,
];

impl From<MysqlError> for ConnectorError {
    fn from(error: MysqlError) -> Self {
        let connector = if error.is_restartable() { Self::transient(&error) } else { Self::fatal(&error) };
        match error {
            MysqlError::AccessDenied { source, .. }
            | MysqlError::ShutOut { source, .. }
            | MysqlError::Privilege { source, .. }
            | MysqlError::Missing { source, .. }
            | MysqlError::Deadlock { source, .. }
            | MysqlError::LockWait { source, .. }
            | MysqlError::DuplicateKey { source, .. }
            | MysqlError::Unfit { source, .. }
            | MysqlError::Unmerged { source, .. }
            | MysqlError::ReadOnly { source, .. }
            | MysqlError::Server { source, .. } => connector.caused_by(source),
            MysqlError::Unreachable { source, .. } | MysqlError::ConnectionLost { source, .. } => {
                connector.caused_by(source)
            }
            MysqlError::RetriesSpent { source, .. } => connector.caused_by(source),
            MysqlError::Claim { source, .. } => source.while_doing(connector.message),
            _ => connector,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: u16) -> MysqlError {
        let at = Attempted { doing: "writing".into(), server: "h:1/d".into() };
        MysqlError::of_answer(at, ServerAnswer { code, state: "HY000".into(), message: "said".into() })
    }

    #[test]
    fn answers_are_sorted_by_what_helps() {
        assert!(matches!(answered(1213), MysqlError::Deadlock { .. }));
        assert!(answered(1213).is_restartable() && answered(1205).is_restartable());
        for bad_input in [1406, 1048, 1264, 1062, 1146, 1142, 1401] {
            assert!(!answered(bad_input).is_restartable(), "{bad_input}");
        }
        assert!(!answered(1213).is_uncertain());
        for ended in [1927, 3169, 1317, 1053, 3032, 4031, 1159] {
            assert!(answered(ended).is_away() && answered(ended).is_restartable(), "{ended}");
        }
        assert!(answered(1040).is_away());
    }

    #[test]
    fn a_login_that_is_refused_is_final_at_submit_and_not_while_the_job_runs() {
        let refused = |code| {
            let at = Attempted { doing: "connecting".into(), server: "h:1/d".into() };
            let source = ServerAnswer { code, state: "28000".into(), message: "said".into() };
            match code {
                1044 => MysqlError::of_answer(at, source),
                _ => MysqlError::AccessDenied { at, user: "u".into(), source },
            }
        };
        for code in [1045, 1044] {
            let at_submit = refused(code);
            assert!(!at_submit.is_restartable() && !at_submit.is_away(), "{code}");
            let running = refused(code).while_running("u");
            assert!(running.is_restartable() && running.is_away(), "{code}");
            let text = ConnectorError::from(running).full_text();
            assert!(text.contains("refuses user \"u\"") && text.contains("said"), "{text}");
        }
        assert!(!answered(1142).while_running("u").is_restartable(), "another right is missing for good");
    }

    #[test]
    fn the_servers_words_are_kept() {
        let text = ConnectorError::from(answered(1406)).full_text();
        assert!(
            text.contains("writing at h:1/d") && text.contains("1406") && text.contains("said"),
            "{text}"
        );
    }
}
