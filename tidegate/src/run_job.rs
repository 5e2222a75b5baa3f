//! One run of one job in this process, from settings to outcome.
//!
//! Owns: the order of the steps below. Does not own: any of them.
//! Runs on: the calling thread, which then steps the job.
//!
//! 1. Signals are listened for. Settings are checked against each other; a fault is armed.
//! 2. The author's function records the job; the graph is checked.
//! 3. The checkpoint folder is opened, and refused while another process runs a job on it.
//! 4. The job runs, under the questions of `tidegate`, and everything it says goes to the watcher.

use std::path::Path;
use std::sync::Arc;

use crate::control::registry::{self, Registered};
use crate::control::{ControlAddress, ControlError, ControlServer, JobHost, folder_socket};
use crate::display;
use crate::engine::api::StreamEnvironment;
use crate::engine::clock::{SharedClock, SystemClock};
use crate::engine::error::{EngineError, JobError};
use crate::engine::execution::{JobOutcome, LocalRunner};
use crate::engine::fault;
use crate::engine::graph::JobGraph;
use crate::error::{RunError, error_text};
use crate::reporter::Reporter;
use crate::run_event::{RunEvent, Watcher};
use crate::settings::{Mode, RunSettings, SettingValues};
use crate::signals::Signals;
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
    // First: what comes while the job is being built, or its folder opened, cancels it in order too.
    let signals = Signals::listen(name).map_err(RunError::Signals)?;
    settings.check()?;
    RunSettings::warn_of_mistyped_variables();
    fault::arm_from_env()?;
    let graph = graph(name, settings, build)?;
    settings.check_folder()?;
    let storage = match (&settings.checkpoints, settings.mode) {
        (Some(url), Mode::ExactlyOnce | Mode::AtLeastOnce) => {
            Some(CheckpointStorage::open(url).map_err(EngineError::from)?)
        }
        _ => None,
    };
    let folder = storage.as_ref().and_then(|storage| crate::settings::local_folder(storage.url()));
    if let Some(folder) = &folder {
        match folder_socket::refuse_if_alive(folder) {
            Err(ControlError::Alive { .. }) if settings.take_over => {}
            answer => answer?,
        }
    }

    let (clock, plan) = (SystemClock::shared(), Arc::new(graph.plan()));
    let mut reporter = Reporter::new(watcher, Arc::clone(&clock), graph.total_records(), plan);
    let mut runner = LocalRunner::new(graph, settings.execution(), storage)?;
    signals.cancels(runner.cancel_handle());
    // Dropped before the runner: an answer under way goes out first.
    let doors = Doors::open(name, settings, folder.as_deref(), &runner, &clock)?;
    if let Some(control) = doors.asked_for {
        reporter.listening(&control);
    }
    let outcome = runner.run(|notice| reporter.notice(notice))?;
    reporter.ended(outcome);
    Ok(outcome)
}

/// Where this run answers `tidegate`.
struct Doors {
    _server: Option<ControlServer>,
    _registered: Option<Registered>,
    /// That of `--control`, with its port.
    asked_for: Option<ControlAddress>,
}

impl Doors {
    /// Opens the folder's door and that of `--control`. A folder in which no socket can be made is no reason to refuse: the log is
    /// what fences.
    fn open(
        name: &str,
        settings: &SettingValues,
        folder: Option<&Path>,
        runner: &LocalRunner,
        clock: &SharedClock,
    ) -> Result<Self, ControlError> {
        let usual = folder.map(folder_socket::address_of).or_else(|| registry::socket().ok());
        let host = || JobHost {
            handle: runner.control_handle(),
            job: name.to_owned(),
            checkpoint_folder: settings.checkpoints.clone(),
            since_ms: clock.wall_ms(),
        };
        let both: Vec<_> = settings.control.iter().chain(&usual).cloned().collect();
        let server = match ControlServer::open(&both, host()) {
            Err((address, error)) if Some(&address) == usual.as_ref() => {
                tracing::warn!(%error, %address, "no control socket: a second start will not be noticed early");
                let asked_for: Vec<_> = settings.control.iter().cloned().collect();
                ControlServer::open(&asked_for, host())
            }
            opened => opened,
        };
        let server = server.map_err(|(address, source)| ControlError::Door { address, source })?;
        let asked_for = settings.control.as_ref().and_then(|_| server.addresses().first().cloned());
        let registered = server.addresses().last().map(|address| registry::register(name, address));
        let registered = registered.and_then(|registered| {
            registered
                .inspect_err(|error| tracing::debug!(%error, "`tidegate list` will not show this job"))
                .ok()
        });
        Ok(Self { _server: Some(server), _registered: registered, asked_for })
    }
}

/// Records and checks the job.
pub(crate) fn graph<F>(name: &str, settings: &SettingValues, build: F) -> Result<JobGraph, RunError>
where
    F: FnOnce(&StreamEnvironment) -> Result<(), JobError>,
{
    let env = StreamEnvironment::new();
    build(&env).map_err(|cause| RunError::Build { job: name.to_owned(), cause })?;
    Ok(env.into_graph(name, settings.parallelism, settings.max_parallelism)?)
}
