//! `tidegate cancel`: stops a job in order, and waits until it is over.
//!
//! Owns: the words. Does not own: the cancel. Runs on: the main thread.

use std::process::ExitCode;

use serde_json::Value;

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
    let (address, unnamed) = target::resolve_or_name(args.job.as_deref())?;
    match client::ask(&address, Ask::Cancel)? {
        Answer::Ended { end } => {
            if args.json {
                stdout::line(as_json(unnamed.as_deref(), &end));
            } else {
                stdout::line(in_words(unnamed.as_deref(), &end));
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

/// Whoever did not name the job learns which one it was.
fn in_words(unnamed: Option<&str>, end: &EndReport) -> String {
    match unnamed {
        Some(job) => format!("{job}: {}", words(end)),
        None => words(end),
    }
}

fn as_json(unnamed: Option<&str>, end: &EndReport) -> Value {
    let mut json = serde_json::to_value(end).expect("strings");
    if let (Some(job), Some(fields)) = (unnamed, json.as_object_mut()) {
        fields.insert("job".to_owned(), job.into());
    }
    json
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
    fn a_job_that_was_not_named_is_named_by_the_answer() {
        let end = EndReport::Canceled { settled: true };
        assert!(in_words(Some("totals"), &end).starts_with("totals: canceled"));
        assert_eq!(in_words(None, &end), words(&end));
        let json = as_json(Some("totals"), &end);
        assert_eq!((&json["job"], &json["outcome"]), (&Value::from("totals"), &Value::from("canceled")));
        assert_eq!(as_json(None, &end).get("job"), None);
    }

    #[test]
    fn a_job_that_had_not_begun_is_not_said_to_have_committed_anything() {
        assert!(words(&EndReport::Canceled { settled: true }).contains("is committed"));
        let unbegun = words(&EndReport::Canceled { settled: false });
        assert!(!unbegun.contains("is committed") && unbegun.contains("by the next start"), "{unbegun}");
    }
}
