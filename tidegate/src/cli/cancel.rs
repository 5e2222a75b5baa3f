//! `tidegate cancel`: stops a job in order, and waits until it is over.
//!
//! Owns: the words. Does not own: the cancel. Runs on: the main thread.

use std::process::ExitCode;

use super::list::unexpected;
use super::{CliError, target};
use crate::control::client;
use crate::control::protocol::{Answer, Ask};
use crate::control::report::EndReport;
use crate::stdout;

/// Arguments of `tidegate cancel`.
#[derive(Debug, clap::Args)]
pub(super) struct CancelArgs {
    /// The job: its checkpoint folder, the address of its --control, or its name; not needed if only one runs.
    job: Option<String>,
    /// Print a JSON object instead of words.
    #[arg(long)]
    json: bool,
}

/// Exit status 0 when the job has been canceled, or had finished by itself.
pub(super) fn run(args: &CancelArgs) -> Result<ExitCode, CliError> {
    let address = target::resolve(args.job.as_deref())?;
    match client::ask(&address, Ask::Cancel)? {
        Answer::Ended { end } => {
            if args.json {
                stdout::line(serde_json::to_string(&end).expect("strings"));
            } else {
                stdout::line(words(&end));
            }
            Ok(match end {
                EndReport::Finished | EndReport::Canceled { .. } => ExitCode::SUCCESS,
                EndReport::Fenced | EndReport::Failed { .. } => ExitCode::FAILURE,
            })
        }
        Answer::Refused { reason } => Err(CliError::Refused { reason }),
        other => Err(unexpected(&other)),
    }
}

/// How a job ended, in words.
pub(super) fn words(end: &EndReport) -> String {
    match end {
        EndReport::Finished => "the job had come to its end: everything is committed".to_owned(),
        EndReport::Canceled { settled: true } => {
            "canceled: what the newest checkpoint lists is committed, the rest is rolled back".to_owned()
        }
        EndReport::Canceled { settled: false } => {
            "canceled before it had begun: what an earlier run left prepared is settled by the next start"
                .to_owned()
        }
        EndReport::Fenced => "another process has taken the job over".to_owned(),
        EndReport::Failed { error } => format!("the job failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_had_not_begun_is_not_said_to_have_committed_anything() {
        assert!(words(&EndReport::Canceled { settled: true }).contains("is committed"));
        let unbegun = words(&EndReport::Canceled { settled: false });
        assert!(!unbegun.contains("is committed") && unbegun.contains("by the next start"), "{unbegun}");
    }
}
