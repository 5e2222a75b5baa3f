//! Sources and sinks of Tidegate.
//!
//! Owns: datagen, files, Kafka, MySQL and SQLite (one cargo feature each), and the small sinks print, blackhole and collect.
//! Does not own: when a source is polled or a transaction committed: the engine's drivers decide that.
//! Runs on: source readers on their slot's thread, everything that waits on the I/O side ([`tidegate_engine::io::Io`]).
//!
//! | feature | source | sink |
//! |---|---|---|
//! | `datagen` | [`datagen::Datagen`], [`changes::ChangeScript`] | |
//! | `file` | [`file::FileSource`] | [`file::FileSink`] in two phases |
//! | `mysql` | | `mysql::MysqlSink` in two phases by XA, `mysql::StagingMysqlSink` by staging tables, `mysql::PlainMysqlSink` in one |
//! | `rdkafka` | `kafka::KafkaSource` | `kafka::KafkaSink` in two phases, `kafka::AtLeastOnceKafkaSink` in one |
//! | `sqlite` | | [`sqlite::SqliteSink`] in two phases, [`sqlite::PlainSqliteSink`] in one |
//! | always | | [`blackhole::BlackholeSink`], [`print::PrintSink`], [`collect::CollectSink`] |

pub mod blackhole;
#[cfg(feature = "datagen")]
pub mod changes;
pub mod collect;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod columns;
#[cfg(feature = "datagen")]
pub mod datagen;
#[cfg(feature = "file")]
pub mod file;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod key_columns;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod merge_mode;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod print;
#[cfg(any(feature = "datagen", feature = "file", feature = "rdkafka"))]
mod rate;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod state_kind;
#[cfg(test)]
mod testing;

pub use state_kind::state_kind;
