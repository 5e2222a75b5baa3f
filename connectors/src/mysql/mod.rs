//! Sinks for MySQL and MariaDB.
//!
//! | sink | made by | promise |
//! |---|---|---|
//! | [`MysqlSink`] | `MysqlSink::table(url, name)` | exactly once, by XA (docs/rfcs/0009) |
//! | [`StagingMysqlSink`] | `.staging()` | exactly once, by a staging table per checkpoint |
//! | [`UpsertSink`] | `.upsert_by(key)` | at least once, and without harm: each row over the one with its key (docs/rfcs/0010) |
//! | [`PlainMysqlSink`] | `.plain()` | none: what is written stays, also when the job goes back |
//!
//! Owns: the sinks and what they share: address, sessions, tables, columns. Does not own: when anything is committed (the engine's
//! driver). Runs on: the I/O side; a tokio runtime is needed.

mod civil;
mod columns;
mod connection;
mod constraints;
mod error;
mod held_rows;
mod insert;
mod inserts_under_way;
mod ledger;
mod ledger_pruning;
mod left_over;
mod limits;
mod lock_holder;
mod plain;
mod preflight;
mod prepared_sessions;
mod recover;
mod refusal;
mod rights;
mod row_place;
mod server;
mod session_end;
mod session_room;
mod sink;
mod staging;
mod staging_committer;
mod staging_table;
mod staging_writer;
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
mod writer_session;
mod xa_committer;
mod xa_writer;
mod xid;

pub use crate::key_columns::KeyColumns;
pub use crate::merge_mode::MergeMode;
pub use civil::{Date, DateTime};
pub use columns::{ColumnSpec, Columns, MysqlValues};
pub use connection::Connection;
pub use error::{Attempted, MysqlError, ServerAnswer};
pub use ledger::{LEDGER_TABLE, LedgerEntry, entries as ledger_entries};
pub use left_over::{HandDecision, HandOutcome, LeftOver, LeftOverKind, left_overs, settle_by_hand};
pub use limits::SessionLimits;
pub use plain::{PlainMysqlSink, PlainMysqlWriter};
pub use recover::prepared_branches;
pub use refusal::TableRefusal;
pub use server::{ServerKind, ServerVersion};
pub use sink::MysqlSink;
pub use staging::StagingMysqlSink;
pub use staging_committer::StagingCommitter;
pub use staging_writer::{StagedTable, StagingWriter};
pub use table::TableSpec;
pub use upsert_sink::UpsertSink;
pub use upsert_writer::UpsertWriter;
pub use url::{IntoMysqlUrl, MysqlUrl, MysqlUrlError};
pub use value::{ColumnKind, Decimal, IntoMysqlValue, ValueError};
pub use xa_committer::XaCommitter;
pub use xa_writer::{XaBranch, XaWriter};
pub use xid::{FORMAT_ID, Xid, XidParts};
