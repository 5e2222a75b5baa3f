//! What a job is written with: `use tidegate::prelude::*`.
//!
//! Owns: the list. Does not own: the items.
//! Runs on: nowhere.
//!
//! [`Result`] stands in for the standard one: its error is [`JobError`], into which every error converts with `?`.
//! `clap` is here because `#[derive(Args)]` names it.

pub use std::path::{Path, PathBuf};
pub use std::process::ExitCode;

pub use clap::{self, Args};
pub use serde::{Deserialize, Serialize};

pub use crate::connectors::blackhole::BlackholeSink;
pub use crate::connectors::collect::CollectSink;
pub use crate::connectors::datagen::{Datagen, seeded};
pub use crate::connectors::file::{BrokenLine, FileSink, FileSource};
#[cfg(feature = "rdkafka")]
pub use crate::connectors::kafka::{BadRecord, KafkaSink, KafkaSource, StartingOffsets, StoppingOffsets};
#[cfg(feature = "mysql")]
pub use crate::connectors::mysql::MysqlSink;
pub use crate::connectors::print::PrintSink;
pub use crate::connectors::sqlite::{Columns, SqliteSink};
pub use crate::duration::{millis, seconds};
pub use crate::engine::api::{
    ConnectorContext, ConnectorError, DataStream, KeyedStream, Sink, StreamEnvironment, Writer,
};
pub use crate::engine::element::Batch;
pub use crate::engine::error::{JobError, Result};
pub use crate::engine::operator::Output;
pub use crate::engine::operator::keyed_process::{KeyedContext, KeyedFunction};
pub use crate::engine::operator::process_function::ProcessFunction;
pub use crate::engine::operator::watermarks::Watermarks;
pub use crate::state::{
    ListDeclaration, ListState, MapDeclaration, MapState, StateType, ValueDeclaration, ValueState, list, map,
    value,
};
