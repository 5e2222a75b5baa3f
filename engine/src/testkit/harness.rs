//! [`JobHarness`]: a whole job on the test's thread.
//!
//! Owns: exchanging sources and sinks, stepping until nothing moves. Does not own: the steps. Runs on: the test's thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::script::{CollectedSink, Script, ScriptedSource};
use crate::api::StreamEnvironment;
use crate::checkpoint::{CheckpointConfig, CheckpointMode};
use crate::clock::ManualClock;
use crate::error::{EngineError, JobError};
use crate::execution::{ExecutionConfig, ExecutionSetup, ExecutionStep, JobExecution, Slots};
use crate::graph::NodeInfo;
use crate::io::{NoWake, TokioIo};
use crate::jobmanager::RestartStrategy;
use crate::jobmanager::plan::OperatorKind;

/// So many steps in which nothing moves, and nothing will.
const QUIET_STEPS: u32 = 16;
/// After each step futures get so many turns.
const FUTURES_TURNS: u32 = 8;
/// A job that still moves after so many steps never comes to rest.
const STEPS_MAX: u32 = 10_000_000;

/// A job whose sources are fed by hand and whose sinks are looked into. It runs at parallelism 1, but for operators that have their own.
///
/// ```
/// use tidegate_engine::testkit::JobHarness;
/// # use tidegate_engine::api::StreamEnvironment;
/// # use tidegate_engine::testkit::{CollectedSink, ScriptedSource};
/// # fn build(env: &StreamEnvironment, _: &()) -> tidegate_engine::error::Result<()> {
/// #     env.source("numbers", ScriptedSource::<u64>::default()).map(|n| n * 2).sink("doubled", CollectedSink::default());
/// #     Ok(())
/// # }
/// # fn main() -> Result<(), tidegate_engine::error::JobError> {
/// let mut job = JobHarness::of(build, &())?;
/// job.source("numbers").push(21_u64);
/// job.run_until_idle()?;
/// assert_eq!(job.sink::<u64>("doubled").last(), Some(42));
/// # Ok(())
/// # }
/// ```
pub struct JobHarness {
    execution: JobExecution,
    runtime: tokio::runtime::Runtime,
    clock: Arc<ManualClock>,
    sources: Scripts,
    sinks: Scripts,
    over: bool,
}

/// By uid.
type Scripts = BTreeMap<String, Script>;

impl std::fmt::Debug for JobHarness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobHarness").field("execution", &self.execution).finish_non_exhaustive()
    }
}

impl JobHarness {
    /// The job that `build` records. Its own sources and sinks are not opened.
    ///
    /// # Errors
    /// What `build` returns, or a graph that cannot run.
    pub fn of<A>(
        build: impl FnOnce(&StreamEnvironment, &A) -> Result<(), JobError>,
        args: &A,
    ) -> Result<Self, JobError> {
        let env = StreamEnvironment::new();
        build(&env, args)?;
        let (sources, sinks) = exchange(&env);
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let clock = ManualClock::shared();
        let config = ExecutionConfig {
            batch_age_ms: 0,
            checkpoints: CheckpointConfig { mode: CheckpointMode::None, ..CheckpointConfig::default() },
            restart: RestartStrategy::None,
            ..ExecutionConfig::default()
        };
        let execution = JobExecution::new(ExecutionSetup {
            graph: env.into_graph("harness", 1, crate::api::environment::DEFAULT_MAX_PARALLELISM)?,
            config,
            storage: None,
            io: TokioIo::shared(runtime.handle().clone()),
            clock: Arc::clone(&clock) as _,
            waker: Arc::new(NoWake),
            slots: Slots::Inline,
            seed: 0,
        })?;
        Ok(Self { execution, runtime, clock, sources, sinks, over: false })
    }

    /// Feeds the source with this uid.
    ///
    /// # Panics
    /// If there is none, or its records are of another type: the message says what there is.
    pub fn source<T: 'static>(&self, uid: &str) -> ScriptedSource<T> {
        script::<ScriptedSource<T>>(&self.sources, "source", uid).clone()
    }

    /// Looks into the sink with this uid.
    ///
    /// # Panics
    /// As [`JobHarness::source`].
    pub fn sink<T: 'static>(&self, uid: &str) -> CollectedSink<T> {
        script::<CollectedSink<T>>(&self.sinks, "sink", uid).clone()
    }

    /// Steps until nothing moves any more: everything that was pushed has come as far as it can.
    ///
    /// # Errors
    /// The job failed.
    ///
    /// # Panics
    /// If the job never comes to rest.
    pub fn run_until_idle(&mut self) -> Result<(), EngineError> {
        let mut quiet = 0;
        for _ in 0..STEPS_MAX {
            if quiet >= QUIET_STEPS || self.over {
                return Ok(());
            }
            match self.execution.step() {
                ExecutionStep::Progress => quiet = 0,
                ExecutionStep::Idle(_) => quiet += 1,
                ExecutionStep::Over(result) => {
                    self.over = true;
                    return result.map(drop);
                }
            }
            while self.execution.take_notice().is_some() {}
            self.runtime.block_on(async {
                for _ in 0..FUTURES_TURNS {
                    tokio::task::yield_now().await;
                }
            });
        }
        panic!("the job still moves after {STEPS_MAX} steps: it never comes to rest");
    }

    /// Moves the clock on, and runs what is due then.
    ///
    /// # Errors
    /// The job failed.
    pub fn advance(&mut self, by: Duration) -> Result<(), EngineError> {
        self.clock.advance(by);
        self.run_until_idle()
    }

    /// Ends every source, and runs the job to its end: timers of event time fire, last words are spoken.
    ///
    /// # Errors
    /// The job failed.
    pub fn finish(&mut self) -> Result<(), EngineError> {
        self.sources.values().for_each(|source| (source.end)());
        self.run_until_idle()
    }
}

/// Exchanges sources and sinks for scripts.
fn exchange(env: &StreamEnvironment) -> (Scripts, Scripts) {
    let (mut sources, mut sinks) = (Scripts::new(), Scripts::new());
    for node in &mut env.recorded.borrow_mut().nodes {
        let scripts = match node.info.kind {
            OperatorKind::Source => &mut sources,
            OperatorKind::Sink | OperatorKind::TwoPhaseSink => &mut sinks,
            OperatorKind::Stateless | OperatorKind::Function | OperatorKind::Keyed => continue,
        };
        let Some(uid) = node.info.uid.clone() else { continue };
        let (scripted, script) = node.node.scripted(&uid);
        node.node = scripted;
        if node.info.kind != OperatorKind::Source {
            node.info = NodeInfo { kind: OperatorKind::Sink, holds_locks: false, ..node.info.clone() };
        }
        scripts.insert(uid.to_string(), script);
    }
    (sources, sinks)
}

/// The script of a source or sink.
fn script<'a, S: 'static>(scripts: &'a Scripts, what: &str, uid: &str) -> &'a S {
    let Some(script) = scripts.get(uid) else {
        let there: Vec<&str> = scripts.keys().map(String::as_str).collect();
        panic!("the job has no {what} \"{uid}\"; it has {}", there.join(", "));
    };
    let found = script.of.downcast_ref::<S>();
    found.unwrap_or_else(|| panic!("the records of {what} \"{uid}\" are of type {}", script.record))
}
