//! The `tidegate` command line.
//!
//! Owns: nothing. Does not own: the subcommands ([`tidegate::cli`]). Runs on: the main thread.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate::cli::main()
}
