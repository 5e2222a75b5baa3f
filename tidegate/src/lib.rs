//! The front door of Tidegate: the one dependency of a job author, besides `serde`.
//!
//! A job is a function that records sources, operators and sinks in a [`StreamEnvironment`](engine::api::StreamEnvironment);
//! [`launch`] turns it into a whole binary with `run`, `explain`, `--help` and `--version`. Every setting is a flag, an environment
//! variable and a key of a settings file ([`RunSettings`]). While a job runs, `tidegate` ([`cli`]) asks and steers it.
//!
//! ```no_run
//! use tidegate::prelude::*;
//!
//! #[derive(Clone, Deserialize)]
//! struct Order { user_id: u64, amount_cents: i64 }
//!
//! #[derive(Clone, Default, StateType)]
//! struct Totals { orders: u64, amount_cents: i64 }
//!
//! #[derive(Debug, Args)]
//! struct Places {
//!     /// Folder of JSON lines.
//!     #[arg(long)]
//!     input: PathBuf,
//!     /// Database file.
//!     #[arg(long)]
//!     db: PathBuf,
//! }
//!
//! fn build(env: &StreamEnvironment, places: &Places) -> Result<()> {
//!     env.source("orders", FileSource::json_lines::<Order>(&places.input))
//!         .key_by(|order| order.user_id)
//!         .process("user_total", value::<Totals>("totals"), |order: Order, totals, ctx, out: &mut Output<(u64, i64)>| {
//!             let before = totals.get()?.map_or(0, |t| t.amount_cents);
//!             let amount_cents = before.checked_add(order.amount_cents).ok_or_else(|| JobError::msg("the total is too large").final_())?;
//!             let totals = totals.update(|t| { t.orders += 1; t.amount_cents = amount_cents; })?;
//!             out.emit((*ctx.key(), totals.amount_cents));
//!             Ok(())
//!         })
//!         .sink(
//!             "user_total_sink",
//!             SqliteSink::table(&places.db, "t_user_total")
//!                 .column("user_id", |total: &(u64, i64)| total.0)
//!                 .column("amount_cents", |total| total.1)
//!                 .overwrite_by("user_id"),
//!         );
//!     Ok(())
//! }
//!
//! fn main() -> ExitCode { tidegate::launch("totals", build) }
//! ```
//!
//! Owns: settings, launching, what is shown meanwhile, exit statuses, control of a running job, the `tidegate` command line.
//! Does not own: the engine, state and connectors, which it re-exports.
//! Runs on: the main thread; signals and the control socket have a task and a thread beside it.

extern crate self as tidegate;

pub mod cli;
mod control;
mod display;
mod duration;
mod error;
mod explain;
mod launcher;
mod nearest;
mod reporter;
mod run_event;
mod run_job;
mod settings;
mod signals;
mod trace;
mod without_passwords;

pub mod prelude;
pub mod stdout;

pub use clap;
pub use tidegate_connectors as connectors;
pub use tidegate_engine as engine;
pub use tidegate_state as state;

use tidegate_engine::quoted;

pub use control::{
    AddressError, CheckpointReport, ControlAddress, ControlError, JobReport, JobState, SubtaskReport,
};
pub use display::{JsonLines, PlainLines, TerminalBar};
pub use duration::{DurationError, millis, parse_duration, seconds};
pub use error::{RunError, error_text};
pub use explain::explain_job;
pub use launcher::{exit_for_usage, launch};
pub use run_event::{RunEvent, Watcher};
pub use run_job::{run_job, run_job_watched};
pub use settings::{
    Backend, EffectiveSetting, Mode, Origin, Restart, RestartError, Restore, RestoreError, RunSettings,
    SettingValues, SettingsError, SettingsFileError,
};
pub use tidegate_engine::execution::JobOutcome;
pub use tidegate_engine::operator::pipe;
pub use tidegate_engine::testkit;
pub use trace::log_to_stderr;
