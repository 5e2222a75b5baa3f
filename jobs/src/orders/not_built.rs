//! Subcommands that need a client which this binary was built without.
//!
//! Owns: the words that say how to build one. Does not own: the subcommands.
//! Runs on: the main thread.

use clap::Args;

/// Takes whatever is given.
#[derive(Debug, Args)]
pub(crate) struct NotBuiltArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    _given: Vec<String>,
}

/// The subcommand is not in this binary.
#[derive(Debug, thiserror::Error)]
#[error(
    "orders {command} is not in this build\n  help: build it with cargo build -p tidegate-jobs --features {features}"
)]
pub(crate) struct NotBuilt {
    /// The subcommand.
    pub(crate) command: &'static str,
    /// What it needs.
    pub(crate) features: &'static str,
}
