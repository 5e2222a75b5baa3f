//! The errors of the `orders` command line.
//!
//! Owns: the sum of the errors of the subcommands, and the exit status of each.
//! Does not own: the single failures: each subcommand has an enum of its own.
//! Runs on: the main thread.

use crate::demo::DemoError;
use crate::import::ImportError;
use crate::torture::TortureError;
use crate::verify::VerifyError;
use tidegate::RunError;
use tidegate_jobs::output_folder::OutputError;

/// What ended a subcommand with an exit status other than 0.
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
    /// `orders torture`.
    #[error(transparent)]
    Torture(#[from] TortureError),
    /// `orders produce`.
    #[cfg(feature = "rdkafka")]
    #[error(transparent)]
    Topic(#[from] crate::topic::TopicError),
    /// `orders tables`.
    #[cfg(feature = "mysql")]
    #[error(transparent)]
    Database(#[from] crate::database::DatabaseError),
    /// `orders scenario`.
    #[cfg(all(feature = "mysql", feature = "rdkafka"))]
    #[error(transparent)]
    Scenario(#[from] crate::scenario::ScenarioError),
    /// A subcommand that needs a client.
    #[cfg(not(all(feature = "mysql", feature = "rdkafka")))]
    #[error(transparent)]
    NotBuilt(#[from] crate::not_built::NotBuilt),
}

impl OrdersError {
    /// The exit status of the process.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Run(error) => error.exit_status(),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::error_text;

    #[test]
    fn an_error_shows_its_place_its_remedy_and_its_causes() {
        let error = OrdersError::from(OutputError::Io {
            action: "write to",
            path: "out/part-0.jsonl".into(),
            source: std::io::Error::other("no space left"),
        });
        let text = error_text(&error);
        assert!(text.starts_with("error: cannot write to out/part-0.jsonl"), "{text}");
        assert!(text.contains("help: "), "{text}");
        assert!(text.ends_with("because: no space left"), "{text}");
    }
}
