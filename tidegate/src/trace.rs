//! Log events on standard error.
//!
//! Owns: the filter `TIDEGATE_LOG` and its default. Does not own: the events.
//! Runs on: the main thread, once at start.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// The variable that says what is logged, as in `info` or `tidegate_engine=debug`.
const LOG_VARIABLE: &str = "TIDEGATE_LOG";
/// Without rdkafka's own lines: clients that need them write their own, and the end of a partition is an error to it.
const DEFAULT_FILTER: &str = "warn,rdkafka=off";

/// Logs to standard error what `TIDEGATE_LOG` asks for; warnings and errors without it. A second call changes nothing.
pub fn log_to_stderr() {
    let asked = std::env::var(LOG_VARIABLE).ok().filter(|filter| !filter.is_empty());
    let filter = asked.map_or_else(|| Ok(EnvFilter::new(DEFAULT_FILTER)), EnvFilter::try_new);
    let filter = filter.unwrap_or_else(|error| {
        eprintln!("{LOG_VARIABLE} is not a filter ({error}); {DEFAULT_FILTER} is used");
        EnvFilter::new(DEFAULT_FILTER)
    });
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
