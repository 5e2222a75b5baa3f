//! Sinks for MySQL and MariaDB.
//!
//! Owns: what the sinks of this folder share: address, sessions, tables, columns. Does not own: when anything is committed (the
//! engine's driver). Runs on: the I/O side; a tokio runtime is needed.

mod civil;
mod columns;
mod connection;
mod error;
mod insert;
mod limits;
mod refusal;
mod server;
mod table;
mod table_check;
mod upsert_buffer;
mod upsert_key;
mod upsert_lock;
mod upsert_preflight;
mod upsert_retry;
mod upsert_session;
mod upsert_sink;
mod upsert_statements;
mod upsert_writer;
mod url;
mod value;

pub use civil::{Date, DateTime};
pub use columns::{Columns, KeyColumns};
pub use connection::Connection;
pub use error::{Attempted, MysqlError, ServerAnswer};
pub use limits::SessionLimits;
pub use refusal::TableRefusal;
pub use server::{ServerKind, ServerVersion};
pub use table::{ColumnSpec, TableSpec, WriteMode};
pub use upsert_sink::UpsertSink;
pub use upsert_writer::UpsertWriter;
pub use url::{IntoMysqlUrl, MysqlUrl, MysqlUrlError};
pub use value::{ColumnKind, Decimal, IntoMysqlValue, ValueError};
