//! `orders verify`: is what stands in the tables exactly what the input asks for?
//!
//! Owns: the flags, the order of the steps, and the exit status: 0 only when all four tables agree in every row.
//! Does not own: the plain loop over the input ([`expected`]), the reading of SQLite ([`actual`]), of MySQL (`mysql`) and of a
//! topic (`detail`), the comparison ([`tally`]), the result and its forms ([`verdict`]).
//! Runs on: the main thread.
//!
//! Nothing here uses a type of the engine, of the connectors or of the job: what is checked must not check itself.
//!
//! 1. [`expected`] reads every line of every partition file, or every record of the topic, and builds the tables that must come out.
//! 2. [`actual`] opens the database read-only and reads the four tables in one transaction, so that they belong
//!    to one moment. With a topic as input MySQL's `t_order_log` is compared place by place too: partition and offset of each row.
//! 3. [`tally`] counts, row by row: doubled, lost, wrong and unexpected rows, and by how many cents the amounts deviate.
//!    A deviation is the sum of absolute differences, per order where a table has orders and per user where it has
//!    totals. So one order lost and one doubled cannot cancel out, also when user and amount are the same: `t_order_log`
//!    has a row per applied order and no key that could hide it.

mod actual;
#[cfg(feature = "rdkafka")]
mod detail;
mod expected;
#[cfg(feature = "mysql")]
mod mysql;
mod tally;
#[cfg(test)]
mod tests;
pub(crate) mod verdict;

use std::io;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use self::actual::Database;
use self::expected::Expected;
pub(crate) use self::verdict::Verdict;
use crate::address::{SinkAddress, SourceAddress, parse_audited_sink, parse_audited_source};

/// How long a lock on the database is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Flags of `orders verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The input of the job: a folder of partition files, or a topic.
    #[arg(long, value_name = "files:DIR|kafka://HOST:PORT/TOPIC", value_parser = parse_audited_source)]
    pub(crate) source: SourceAddress,
    /// The output of the job: a database, or a topic.
    #[arg(long, value_name = "sqlite:FILE|mysql://…|kafka://…", value_parser = parse_audited_sink)]
    pub(crate) sink: SinkAddress,
    /// The job's second output, if it has one: the topic of orders as they are.
    #[arg(long, value_name = "kafka://HOST:PORT/TOPIC", value_parser = parse_detail)]
    pub(crate) detail: Option<SinkAddress>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can keep the tables from being compared at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    /// The input folder or one of its files cannot be read.
    #[error("cannot read {path}\n  help: --source names the folder of partition files that the job has read")]
    Input {
        /// Folder or file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The folder has no partition file.
    #[error(
        "there is no *.jsonl file in {folder}\n  help: make some with `orders generate` or `orders import`"
    )]
    NoInput {
        /// The folder.
        folder: PathBuf,
    },
    /// A line is not an order.
    #[error(
        "{file}:{line}: this is not an order\n  help: correct the line in the input; a job would stop at it too"
    )]
    Line {
        /// The file.
        file: PathBuf,
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// Two lines have one order id, so that nobody can say which rows must come out.
    #[error(
        "{file}:{line}: order {order_id} stands in the input twice\n  help: an order id must be unique in a data set"
    )]
    OrderTwice {
        /// The file of the second one.
        file: PathBuf,
        /// Its line, counted from 1.
        line: u64,
        /// The id.
        order_id: i64,
    },
    /// There is no database.
    #[error("there is no database {file}\n  help: --sink names the file that `orders run` has written")]
    NoDatabase {
        /// The file.
        file: PathBuf,
    },
    /// Somebody else holds the database.
    #[error(
        "{file} is locked by another process\n  help: wait until the job has ended, or stop what holds the file"
    )]
    Locked {
        /// The file.
        file: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// A table is missing.
    #[error(
        "{file} has no table {table}\n  help: let `orders run` finish a checkpoint first, or correct --sink"
    )]
    NoTable {
        /// The file.
        file: PathBuf,
        /// The table.
        table: &'static str,
    },
    /// A table cannot be read: a column is missing or has another type, or the file is damaged.
    #[error("cannot read {table} of {file}\n  help: expected are the columns {columns}")]
    Table {
        /// The file.
        file: PathBuf,
        /// The table.
        table: &'static str,
        /// Its columns, the id first.
        columns: &'static str,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// The database cannot be opened.
    #[error(
        "cannot open {file} as a SQLite database\n  help: --sink names the file that `orders run` has written"
    )]
    Open {
        /// The file.
        file: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// A record is not an order.
    #[cfg(feature = "rdkafka")]
    #[error(
        "{place}: this is not an order\n  help: the topic must hold orders as JSON, as `orders produce` writes them"
    )]
    Record {
        /// Topic, partition and offset.
        place: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// Two records have one order id.
    #[cfg(feature = "rdkafka")]
    #[error(
        "{place}: order {order_id} stands in the input twice\n  help: fill a new topic: an order id must be unique in it"
    )]
    RecordTwice {
        /// Topic, partition and offset of the second one.
        place: String,
        /// The id.
        order_id: i64,
    },
    /// The topic.
    #[cfg(feature = "rdkafka")]
    #[error(transparent)]
    Topic(#[from] crate::topic::TopicError),
    /// The database of a server.
    #[cfg(feature = "mysql")]
    #[error(transparent)]
    Database(#[from] crate::database::DatabaseError),
    /// A table of a server is missing.
    #[cfg(feature = "mysql")]
    #[error("{place} has no table {table}\n  help: make the tables with `orders tables`, or correct --sink")]
    NoServerTable {
        /// Server and database.
        place: String,
        /// The table.
        table: &'static str,
    },
    /// A row of a server has another form.
    #[cfg(feature = "mysql")]
    #[error(
        "a row of {table} in {place} has not the form of {columns}\n  help: the tables must be those of `orders tables`"
    )]
    ServerRow {
        /// Server and database.
        place: String,
        /// The table.
        table: &'static str,
        /// Its columns.
        columns: &'static str,
    },
    /// What cannot be audited; refused while flags are read.
    #[error("{address} cannot be audited\n  help: give a database or a topic")]
    NotAudited {
        /// As given.
        address: String,
    },
}

/// `--detail`: a topic.
pub(crate) fn parse_detail(text: &str) -> Result<SinkAddress, crate::address::AddressError> {
    match text.strip_prefix("kafka:") {
        Some(_) => text.parse(),
        None => {
            Err(crate::address::AddressError::Sink { text: text.into(), expected: "kafka://HOST:PORT/TOPIC" })
        }
    }
}

/// Compares and prints.
///
/// # Errors
/// [`VerifyError`] when the comparison is not possible. That the tables differ is no error but exit status 1.
pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, VerifyError> {
    let verdict = audit_all(&args.source, &args.sink, args.detail.as_ref())?;
    let text = match args.json {
        true => format!("{}\n", verdict.to_json()),
        false => format!("{}  exactly once: {}\n", verdict.to_text(), verdict.yes_or_no()),
    };
    // A reader that has seen enough closes the pipe: the exit status still tells.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if verdict.ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares without a word.
///
/// # Errors
/// [`VerifyError`].
pub(crate) fn audit(source: &SourceAddress, sink: &SinkAddress) -> Result<Verdict, VerifyError> {
    audit_with_patience(source, sink, LOCK_PATIENCE)
}

/// Compares one output or two.
///
/// # Errors
/// [`VerifyError`].
pub(crate) fn audit_all(
    source: &SourceAddress,
    sink: &SinkAddress,
    detail: Option<&SinkAddress>,
) -> Result<Verdict, VerifyError> {
    let expected = expected_of(source)?;
    let verdict = compare(sink, &expected, LOCK_PATIENCE)?;
    match detail {
        #[cfg(feature = "rdkafka")]
        Some(detail) => Ok(verdict.and(compare(detail, &expected, LOCK_PATIENCE)?)),
        _ => Ok(verdict),
    }
}

fn audit_with_patience(
    source: &SourceAddress,
    sink: &SinkAddress,
    patience: Duration,
) -> Result<Verdict, VerifyError> {
    compare(sink, &expected_of(source)?, patience)
}

fn expected_of(source: &SourceAddress) -> Result<Expected, VerifyError> {
    match source {
        SourceAddress::Files(folder) => Expected::of_folder(folder),
        #[cfg(feature = "rdkafka")]
        SourceAddress::Kafka(address) => Expected::of_topic(address),
        SourceAddress::Datagen => Err(VerifyError::NotAudited { address: source.to_string() }),
    }
}

fn compare(sink: &SinkAddress, expected: &Expected, patience: Duration) -> Result<Verdict, VerifyError> {
    match sink {
        SinkAddress::Sqlite(file) => Database::open(file, patience)?.compare(expected),
        #[cfg(feature = "mysql")]
        SinkAddress::Mysql(address) => mysql::compare(address, expected),
        #[cfg(feature = "rdkafka")]
        SinkAddress::Kafka(address) => detail::compare(address, expected),
        SinkAddress::Blackhole => Err(VerifyError::NotAudited { address: sink.to_string() }),
    }
}
