//! One run of one job in this process, from settings to outcome.
//!
//! Owns: the order of the steps below. Does not own: any of them.
//! Runs on: the calling thread, which then steps the job.
//!
//! 1. Settings are checked against each other; a fault is armed.
//! 2. The author's function records the job; the graph is checked.
//! 3. The checkpoint folder is opened, and refused while another process runs a job on it.
//! 4. The job runs, under Ctrl-C, and everything it says goes to the watcher.

use crate::control_socket::ControlSocket;
use crate::display;
use crate::engine::api::StreamEnvironment;
use crate::engine::clock::SystemClock;
use crate::engine::error::{EngineError, JobError};
use crate::engine::execution::{JobOutcome, LocalRunner};
use crate::engine::fault;
use crate::engine::graph::JobGraph;
use crate::error::{RunError, error_text};
use crate::reporter::Reporter;
use crate::run_event::{RunEvent, Watcher};
use crate::settings::{Mode, RunSettings};
use crate::signals::cancel_on_signals;
use crate::state::CheckpointStorage;

/// Runs the job that `build` records, and shows how it goes as the settings say.
///
/// # Errors
/// [`RunError`]; its [`RunError::exit_status`] is what the process should end with.
pub fn run_job<F>(name: &str, settings: &RunSettings, build: F) -> Result<JobOutcome, RunError>
where
    F: FnOnce(&StreamEnvironment) -> Result<(), JobError>,
{
    let mut display = display::for_run(name, settings.json);
    run_job_watched(name, settings, build, &mut *display)
}

/// Runs the job that `build` records, and tells `watcher` how it goes.
///
/// # Errors
/// As [`run_job`]; the watcher has heard it as [`RunEvent::Failed`].
pub fn run_job_watched<F>(
    name: &str,
    settings: &RunSettings,
    build: F,
    watcher: &mut dyn Watcher,
) -> Result<JobOutcome, RunError>
where
    F: FnOnce(&StreamEnvironment) -> Result<(), JobError>,
{
    let outcome = run(name, settings, build, watcher);
    if let Err(error) = &outcome {
        let text = error_text(error);
        watcher.event(&RunEvent::Failed { error: text.trim_start_matches("error: ").to_owned() });
    }
    outcome
}

fn run<F>(
    name: &str,
    settings: &RunSettings,
    build: F,
    watcher: &mut dyn Watcher,
) -> Result<JobOutcome, RunError>
where
    F: FnOnce(&StreamEnvironment) -> Result<(), JobError>,
{
    settings.check()?;
    fault::arm_from_env()?;
    let graph = graph(name, settings, build)?;
    let storage = match (&settings.checkpoints, settings.mode) {
        (Some(url), Mode::ExactlyOnce | Mode::AtLeastOnce) => {
            Some(CheckpointStorage::open(url).map_err(EngineError::from)?)
        }
        _ => None,
    };
    let folder = storage.as_ref().and_then(|storage| crate::settings::local_folder(storage.url()));
    let _socket = folder.map(|folder| ControlSocket::take(&folder, name, settings.take_over)).transpose()?;

    let mut reporter = Reporter::new(watcher, SystemClock::shared(), graph.total_records());
    let mut runner = LocalRunner::new(graph, settings.execution(), storage)?;
    cancel_on_signals(runner.runtime(), runner.cancel_handle()).map_err(RunError::Signals)?;
    let outcome = runner.run(|notice| reporter.notice(notice))?;
    reporter.ended(outcome);
    Ok(outcome)
}

/// Records and checks the job.
pub(crate) fn graph<F>(name: &str, settings: &RunSettings, build: F) -> Result<JobGraph, RunError>
where
    F: FnOnce(&StreamEnvironment) -> Result<(), JobError>,
{
    let env = StreamEnvironment::new();
    build(&env).map_err(|cause| RunError::Build { job: name.to_owned(), cause })?;
    Ok(env.into_graph(name, settings.parallelism, settings.max_parallelism)?)
}
