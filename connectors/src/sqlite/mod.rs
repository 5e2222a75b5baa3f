//! SQLite as a sink: exactly once by a staging table per transaction, or plain.
//!
//! A two-phase transaction is a table of its own: rows are staged in it, a commit merges it into the target, notes the transaction in
//! `tidegate_ledger` and drops it, all in one SQL transaction. So a commit can be asked for any number of times, by any process.
//! The protocol and what each crash leaves stand in `docs/rfcs/0005-sqlite-sink.md`.
//!
//! Owns: the tables, the staging protocol, names in SQL. Does not own: when anything is prepared, committed or rolled back (the
//! engine's sink driver). Runs on: the I/O side; every statement in blocking work. All sinks of a process that write to one file share
//! one connection ([`database`]).

mod columns;
mod committer;
mod database;
mod error;
mod holder;
mod insert;
mod plain;
mod refusal;
mod sink;
mod staging;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod writer;

pub use crate::key_columns::KeyColumns;
pub use crate::merge_mode::MergeMode;
pub use columns::{Columns, SqliteValues};
pub use committer::SqliteCommitter;
pub use error::SqliteError;
pub use holder::LockHolder;
pub use plain::{PlainSqliteSink, PlainSqliteWriter};
pub use refusal::TableRefusal;
pub use sink::SqliteSink;
pub use staging::StagedRows;
pub use value::{ColumnType, IntoSqlValue, ValueError};
pub use writer::SqliteWriter;
