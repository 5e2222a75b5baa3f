//! The chain as a whole job: datagen → steps → blackhole, run as production runs it.
//!
//! Owns: the two graphs. Does not own: running them. Runs on: the main thread.

use tidegate_connectors::blackhole::BlackholeSink;
use tidegate_connectors::datagen::Datagen;
use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::operator::pipe::map;

use super::records::{ChainRecord, kept};
use crate::error::BenchError;
use crate::harness::Run;
use crate::job::{JobSetup, run_job};

/// map → filter → map as three operators.
pub(super) fn three_operators<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    let (env, sink) = (StreamEnvironment::new(), BlackholeSink::<R>::new());
    let source = env.source("records", Datagen::new(R::make).bounded(records));
    source.map(R::first).filter(R::keep).map(R::second).sink("blackhole", sink.clone());
    run_job(env, setup("three operators"), records, kept::<R>(records), || sink.records())
}

/// The same steps as one operator.
pub(super) fn one_pipe<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    let (env, sink) = (StreamEnvironment::new(), BlackholeSink::<R>::new());
    let source = env.source("records", Datagen::new(R::make).bounded(records));
    source.pipe(map(R::first).filter(R::keep).map(R::second)).sink("blackhole", sink.clone());
    run_job(env, setup("one pipe"), records, kept::<R>(records), || sink.records())
}

fn setup(candidate: &'static str) -> JobSetup {
    JobSetup { candidate, parallelism: 1, checkpoint_every: None }
}
