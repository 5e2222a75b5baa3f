//! The errors of the `orders` command line, and how one is shown.
//!
//! Owns: the sum of the errors of the subcommands, and their form on the terminal.
//! Does not own: the single failures: each subcommand has an enum of its own.
//! Runs on: the main thread.

use std::error::Error;

use crate::demo::DemoError;
use crate::import::ImportError;
use crate::run::RunError;
use crate::verify::VerifyError;
use tidegate_jobs::output_folder::OutputError;

/// What ended a subcommand with exit status 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrdersError {
    /// `orders generate`.
    #[error(transparent)]
    Generate(#[from] OutputError),
    /// `orders import`.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// `orders run`.
    #[error(transparent)]
    Run(#[from] RunError),
    /// `orders verify`.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// `orders demo`.
    #[error(transparent)]
    Demo(#[from] DemoError),
}

/// `error: what was tried`, then the help, then one indented line for each cause below it.
pub(crate) fn described(error: &dyn Error) -> String {
    let mut text = format!("error: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!("\n  because: {inner}"));
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_place_its_remedy_and_its_causes() {
        let error = OrdersError::from(OutputError::Io {
            action: "write to",
            path: "out/part-0.jsonl".into(),
            source: std::io::Error::other("no space left"),
        });
        let text = described(&error);
        assert!(text.starts_with("error: cannot write to out/part-0.jsonl"), "{text}");
        assert!(text.contains("help: "), "{text}");
        assert!(text.ends_with("because: no space left"), "{text}");
    }
}
