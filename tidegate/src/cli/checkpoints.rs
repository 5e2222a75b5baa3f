//! `tidegate checkpoints`: the last checkpoints of a running job; of one of them, every subtask, the slow one first.
//!
//! Owns: the tables and their order. Does not own: the numbers. Runs on: the main thread.

use std::cmp::Reverse;
use std::process::ExitCode;

use clap::ValueEnum;

use super::list::unexpected;
use super::shown::{bytes, moment, number, span_us};
use super::table::{Column, table};
use super::{CliError, target};
use crate::control::client;
use crate::control::protocol::{Answer, Ask};
use crate::control::{CheckpointReport, SubtaskReport};
use crate::stdout;

/// Arguments of `tidegate checkpoints`.
#[derive(Debug, clap::Args)]
pub(super) struct CheckpointsArgs {
    /// The job: its checkpoint folder, the address of its --control, or its name; not needed if only one runs.
    job: Option<String>,
    /// Show every subtask's part of one checkpoint: of the newest, or of this one.
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true)]
    subtasks: Option<Option<u64>>,
    /// What the rows are sorted by: the largest first. Checkpoints are sorted by their slowest subtask.
    #[arg(long, value_enum, value_name = "WHAT")]
    sort: Option<Sort>,
    /// Print a JSON array of checkpoints, each with its subtasks, instead of a table.
    #[arg(long)]
    json: bool,
}

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// From the trigger to the subtask's acknowledgement.
    Duration,
    /// On the slot's thread.
    Sync,
    /// Off it, until everything was stored and prepared.
    Async,
    /// From the first to the last barrier.
    Alignment,
    /// The longest step between snapshot and acknowledgement.
    Step,
    /// From the trigger to the first barrier.
    StartDelay,
    /// Bytes of state.
    Size,
    /// The checkpoint's id, or the subtask's name.
    Id,
}

impl Sort {
    fn of(self, part: &SubtaskReport) -> u64 {
        match self {
            Self::Duration => part.duration_us,
            Self::Sync => part.sync_us,
            Self::Async => part.async_us,
            Self::Alignment => part.alignment_us,
            Self::Step => part.longest_step_us,
            Self::StartDelay => part.start_delay_us,
            Self::Size => part.size_bytes,
            Self::Id => 0,
        }
    }
}

/// Exit status 0.
pub(super) fn run(args: &CheckpointsArgs) -> Result<ExitCode, CliError> {
    let address = target::resolve(args.job.as_deref())?;
    let mut checkpoints = match client::ask(&address, Ask::Checkpoints)? {
        Answer::Checkpoints { checkpoints } => checkpoints,
        Answer::Refused { reason } => return Err(CliError::Refused { reason }),
        other => return Err(unexpected(&other)),
    };
    if let Some(id) = args.subtasks {
        checkpoints = vec![one(checkpoints, id)?];
    }
    sort(&mut checkpoints, args.sort);
    if args.json {
        stdout::line(serde_json::to_string_pretty(&checkpoints).expect("numbers and strings"));
    } else if checkpoints.is_empty() {
        stdout::line("no checkpoint has ended yet");
    } else if args.subtasks.is_some() {
        checkpoints.iter().for_each(|checkpoint| stdout::text(with_subtasks(checkpoint)));
    } else {
        stdout::text(shown(&checkpoints));
    }
    Ok(ExitCode::SUCCESS)
}

/// The checkpoint with this id, or the newest.
fn one(checkpoints: Vec<CheckpointReport>, id: Option<u64>) -> Result<CheckpointReport, CliError> {
    let mut known: Vec<u64> = checkpoints.iter().map(|checkpoint| checkpoint.id).collect();
    known.sort_unstable();
    let found = match id {
        Some(id) => checkpoints.into_iter().find(|checkpoint| checkpoint.id == id),
        None => checkpoints.into_iter().next(),
    };
    found.ok_or_else(|| CliError::NoSuchCheckpoint { id: id.unwrap_or(0), known })
}

/// Newest first without a wish; subtasks always have one.
fn sort(checkpoints: &mut [CheckpointReport], by: Option<Sort>) {
    for checkpoint in checkpoints.iter_mut() {
        match by.unwrap_or(Sort::Duration) {
            Sort::Id => checkpoint.subtasks.sort_by(|one, other| one.subtask.cmp(&other.subtask)),
            by => checkpoint.subtasks.sort_by_key(|part| Reverse(by.of(part))),
        }
    }
    match by {
        None => {}
        Some(Sort::Id) => checkpoints.sort_by_key(|checkpoint| Reverse(checkpoint.id)),
        Some(by) => {
            let most =
                |checkpoint: &CheckpointReport| checkpoint.subtasks.iter().map(|part| by.of(part)).max();
            checkpoints.sort_by_key(|checkpoint| Reverse(most(checkpoint)));
        }
    }
}

fn status(checkpoint: &CheckpointReport) -> String {
    if checkpoint.complete { "complete" } else { "failed" }.to_owned()
}

/// One row for each checkpoint, with the costs of the subtask that comes first.
fn shown(checkpoints: &[CheckpointReport]) -> String {
    let columns = [
        Column::Right("id"),
        Column::Left("status"),
        Column::Right("end to end"),
        Column::Right("size"),
        Column::Left("slowest subtask"),
        Column::Right("after"),
        Column::Right("alignment"),
        Column::Right("sync"),
        Column::Right("async"),
        Column::Left("note"),
    ];
    let rows: Vec<_> = checkpoints
        .iter()
        .map(|checkpoint| {
            let first = checkpoint.subtasks.first();
            let cost =
                |of: fn(&SubtaskReport) -> u64| first.map_or_else(|| "–".to_owned(), |p| span_us(of(p)));
            [
                checkpoint.id.to_string(),
                status(checkpoint),
                span_us(checkpoint.end_to_end_us),
                bytes(checkpoint.size_bytes),
                first.map_or_else(|| "–".to_owned(), |part| part.subtask.clone()),
                cost(|part| part.duration_us),
                cost(|part| part.alignment_us),
                cost(|part| part.sync_us),
                cost(|part| part.async_us),
                checkpoint.reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    table(columns, &rows)
}

/// Everything about one checkpoint.
pub(super) fn with_subtasks(checkpoint: &CheckpointReport) -> String {
    let CheckpointReport { id, attempt, asked, .. } = checkpoint;
    let ended = moment(checkpoint.ended_at_ms);
    let mut text = format!(
        "checkpoint {id} of attempt {attempt}: {} after {}, {ended} UTC, {}, {} of {asked} subtasks acknowledged\n",
        status(checkpoint),
        span_us(checkpoint.end_to_end_us),
        bytes(checkpoint.size_bytes),
        checkpoint.subtasks.len(),
    );
    if checkpoint.complete {
        text.push_str(&format!("  its entry in the commit log is {}\n", number(checkpoint.entry)));
    }
    if let Some(reason) = &checkpoint.reason {
        text.push_str(&format!("  {reason}\n"));
    }
    let columns = [
        Column::Left("subtask"),
        Column::Right("after"),
        Column::Right("start delay"),
        Column::Right("alignment"),
        Column::Right("sync"),
        Column::Right("async"),
        Column::Right("longest step"),
        Column::Right("size"),
    ];
    let row = |part: &SubtaskReport| {
        let spans = [
            part.duration_us,
            part.start_delay_us,
            part.alignment_us,
            part.sync_us,
            part.async_us,
            part.longest_step_us,
        ];
        let [after, start_delay, alignment, sync, async_, step] = spans.map(span_us);
        [part.subtask.clone(), after, start_delay, alignment, sync, async_, step, bytes(part.size_bytes)]
    };
    let missing = checkpoint.missing.iter().map(|name| {
        let dash = || "–".to_owned();
        [name.clone(), "not at all".to_owned(), dash(), dash(), dash(), dash(), dash(), dash()]
    });
    let rows: Vec<_> = missing.chain(checkpoint.subtasks.iter().map(row)).collect();
    text + &table(columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(subtask: &str, duration_us: u64, sync_us: u64) -> SubtaskReport {
        let subtask = subtask.to_owned();
        SubtaskReport {
            subtask,
            duration_us,
            start_delay_us: 0,
            alignment_us: 0,
            sync_us,
            async_us: 0,
            longest_step_us: 0,
            size_bytes: 0,
        }
    }

    fn checkpoint(id: u64, subtasks: Vec<SubtaskReport>, reason: Option<&str>) -> CheckpointReport {
        CheckpointReport {
            id,
            attempt: 1,
            complete: reason.is_none(),
            reason: reason.map(str::to_owned),
            entry: reason.is_none().then_some(id + 1),
            ended_at_ms: 0,
            end_to_end_us: 48_000,
            size_bytes: 1_258_291,
            asked: 3,
            subtasks,
            missing: reason.iter().map(|_| "sink[1]".to_owned()).collect(),
        }
    }

    fn two() -> Vec<CheckpointReport> {
        vec![
            checkpoint(8, vec![part("a[0]", 10, 9), part("b[1]", 30_000, 1)], None),
            checkpoint(7, vec![part("a[0]", 90_000, 2)], Some("expired: no acknowledgement from sink[1]")),
        ]
    }

    #[test]
    fn the_slow_subtask_is_seen_at_a_glance() {
        let mut checkpoints = two();
        sort(&mut checkpoints, None);
        let text = shown(&checkpoints);
        let first = text.lines().nth(1).unwrap();
        for cell in ["8   complete", "48 ms", "1.2 MiB", "b[1]", "30 ms"] {
            assert!(first.contains(cell), "no {cell:?} in {text}");
        }
        assert!(text.lines().nth(2).unwrap().ends_with("expired: no acknowledgement from sink[1]"), "{text}");
        sort(&mut checkpoints, Some(Sort::Duration));
        assert_eq!(checkpoints[0].id, 7, "its slowest subtask took longest");
        sort(&mut checkpoints, Some(Sort::Sync));
        assert_eq!((checkpoints[0].id, checkpoints[0].subtasks[0].subtask.as_str()), (8, "a[0]"));
    }

    #[test]
    fn one_checkpoint_is_shown_with_every_subtask_and_those_that_are_missing() {
        let failed = one(two(), Some(7)).unwrap();
        let text = with_subtasks(&failed);
        assert!(
            text.contains("1 of 3 subtasks acknowledged") && text.contains("sink[1]   not at all"),
            "{text}"
        );
        assert_eq!(one(two(), None).unwrap().id, 8);
        assert!(one(two(), Some(3)).unwrap_err().to_string().contains("(7 to 8)"));
    }
}
