//! `tidegate list`: the jobs that run on this machine, or those at the places that are named.
//!
//! Owns: the table. Does not own: the list ([`registry`]). Runs on: the main thread.

use std::process::ExitCode;

use indicatif::HumanCount;

use super::shown::{number, ratio};
use super::table::{Column, table};
use super::{CliError, target};
use crate::control::client;
use crate::control::process::Asked;
use crate::control::protocol::{Answer, Ask};
use crate::control::registry::{self, Listed};
use crate::control::{self, ControlAddress, JobReport};
use crate::stdout;

/// Arguments of `tidegate list`.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Checkpoint folders, addresses or names; without any, the jobs that this user has started on this machine.
    jobs: Vec<String>,
    /// Print a JSON array instead of a table.
    #[arg(long)]
    json: bool,
}

/// Exit status 0, also when no job runs.
pub(super) fn run(args: &ListArgs) -> Result<ExitCode, CliError> {
    let reports = if args.jobs.is_empty() { everybody()? } else { named(&args.jobs)? };
    if args.json {
        stdout::line(serde_json::to_string_pretty(&reports).expect("numbers and strings"));
    } else if reports.is_empty() {
        stdout::line("no job runs on this machine, as far as this user started it");
    } else {
        stdout::text(shown(&reports));
    }
    Ok(ExitCode::SUCCESS)
}

/// A job that goes away meanwhile is left out; so is a process whose socket another one has taken over.
fn everybody() -> Result<Vec<JobReport>, CliError> {
    let listed = registry::listed().map_err(CliError::Registry)?;
    let report = |job: &Listed| {
        if Asked::of(job.pid).stopped {
            return Some(control::stopped(job));
        }
        let report = status(&job.control.parse().ok()?).ok()?;
        (report.pid == job.pid).then_some(report)
    };
    Ok(listed.iter().filter_map(report).collect())
}

fn named(jobs: &[String]) -> Result<Vec<JobReport>, CliError> {
    jobs.iter().map(|job| status(&target::resolve(Some(job))?)).collect()
}

pub(super) fn status(address: &ControlAddress) -> Result<JobReport, CliError> {
    match client::ask(address, Ask::Status)? {
        Answer::Status { job } => Ok(job),
        Answer::Refused { reason } => Err(CliError::Refused { reason }),
        other => Err(unexpected(&other)),
    }
}

/// An answer to another question.
pub(super) fn unexpected(answer: &Answer) -> CliError {
    CliError::Refused { reason: format!("the job answered something else than was asked: {answer:?}") }
}

fn shown(reports: &[JobReport]) -> String {
    let columns = [
        Column::Left("job"),
        Column::Right("process"),
        Column::Left("state"),
        Column::Right("attempt"),
        Column::Right("records"),
        Column::Right("lag"),
        Column::Right("out/in"),
        Column::Right("checkpoints"),
        Column::Right("newest"),
        Column::Left("answers at"),
    ];
    let rows: Vec<_> = reports
        .iter()
        .map(|report| {
            [
                report.job.clone(),
                report.pid.to_string(),
                report.state.word().to_owned(),
                number(report.attempt),
                HumanCount(report.records_in).to_string(),
                report.lag.map_or_else(String::new, |lag| HumanCount(lag).to_string()),
                ratio(report.out_per_1000_in),
                report.checkpoints.to_string(),
                number(report.newest_checkpoint),
                report.control.join(", "),
            ]
        })
        .collect();
    table(columns, &rows)
}
