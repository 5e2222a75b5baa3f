//! `tidegate xa list | commit | rollback`: what is left prepared on a MySQL server, and an operator's decision about it.
//!
//! Owns: the table, the confirmation. Does not own: listing and settling (the connector's). Runs on: the main thread.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::CliError;
use super::shown::{moment, number};
use super::table::{Column, table};
use crate::connectors::mysql::{
    Connection, HandDecision, LeftOverBranch, MysqlError, MysqlUrl, SessionLimits, left_over_branches,
    settle_by_hand,
};
use crate::engine::clock::{Clock, SystemClock};
use crate::engine::io::TokioIo;

/// A statement of this tool waits at most so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `tidegate xa`.
#[derive(Debug, clap::Args)]
pub(super) struct XaArgs {
    #[command(subcommand)]
    command: XaCommand,
}

#[derive(Debug, clap::Subcommand)]
enum XaCommand {
    /// Show prepared branches of Tidegate's jobs: whose they are, how old, and whether their writer still lives.
    List(ListArgs),
    /// Commit branches: their rows appear. A job that still lists them goes on.
    Commit(SettleArgs),
    /// Roll branches back: their rows are thrown away. A job that still lists them fails and names them.
    Rollback(SettleArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// The database: mysql://user:password@host:port/database.
    url: String,
    /// Print a JSON array instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct SettleArgs {
    /// The database: mysql://user:password@host:port/database.
    url: String,
    /// A branch, as `tidegate xa list` names it; may be given several times.
    #[arg(long, value_name = "XID", required_unless_present = "all")]
    xid: Vec<String>,
    /// Every branch of this job.
    #[arg(long, conflicts_with = "xid", requires = "yes")]
    all: bool,
    /// With --all: of this job only.
    #[arg(long, requires = "all")]
    job: Option<String>,
    /// With --all: yes, all of them.
    #[arg(long)]
    yes: bool,
}

/// Exit status 0 when what was asked is done; 1 when a branch could not be settled; 2 when one that was named is not there.
pub(super) fn run(args: &XaArgs) -> Result<ExitCode, CliError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    match &args.command {
        XaCommand::List(args) => list(&runtime, args),
        XaCommand::Commit(args) => settle(&runtime, args, HandDecision::Commit),
        XaCommand::Rollback(args) => settle(&runtime, args, HandDecision::RollBack),
    }
}

async fn connect(url: &str, runtime: &Runtime) -> Result<Connection, MysqlError> {
    let io = TokioIo::shared(runtime.handle().clone());
    Connection::open(&MysqlUrl::parse(url)?, SessionLimits::below(PATIENCE), &io).await
}

fn list(runtime: &Runtime, args: &ListArgs) -> Result<ExitCode, CliError> {
    let found = runtime.block_on(async {
        let mut connection = connect(&args.url, runtime).await?;
        left_over_branches(&mut connection).await
    })?;
    let now_ms = SystemClock::new().wall_ms();
    if args.json {
        let rows: Vec<_> = found.iter().map(as_json).collect();
        println!("{}", serde_json::to_string_pretty(&rows).expect("numbers and strings"));
    } else if found.is_empty() {
        println!("no branch of a Tidegate job is prepared on this server");
    } else {
        print!("{}", shown(&found, now_ms));
    }
    Ok(ExitCode::SUCCESS)
}

fn settle(runtime: &Runtime, args: &SettleArgs, decision: HandDecision) -> Result<ExitCode, CliError> {
    runtime.block_on(async {
        let mut connection = connect(&args.url, runtime).await?;
        let found = left_over_branches(&mut connection).await?;
        let chosen = chosen(args, &found)?;
        let clock = SystemClock::new();
        let (mut done, mut failed) = (0, 0);
        for branch in chosen {
            match settle_by_hand(&mut connection, &branch.xid, decision, clock.wall_ms()).await {
                Ok(()) => done += 1,
                Err(error) => {
                    failed += 1;
                    eprintln!("{}: {}", branch.xid, crate::error::error_text(&error));
                    if let Some(session) = branch.writer_session {
                        eprintln!("  help: it may belong to connection {session}, whose job is at work: cancel that job first");
                    }
                }
            }
        }
        let word = if decision == HandDecision::Commit { "committed" } else { "rolled back" };
        let things = if done == 1 { "branch" } else { "branches" };
        println!("{done} {things} {word}, and noted in tidegate_ledger");
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The branches that are meant; each one that is named must be there.
fn chosen<'a>(args: &SettleArgs, found: &'a [LeftOverBranch]) -> Result<Vec<&'a LeftOverBranch>, CliError> {
    if args.all {
        let meant = |branch: &&LeftOverBranch| args.job.as_ref().is_none_or(|job| branch.parts.job == *job);
        return Ok(found.iter().filter(meant).collect());
    }
    let find = |xid: &String| {
        let there = found.iter().find(|branch| branch.xid.to_string() == *xid);
        there.ok_or_else(|| CliError::NoSuchBranch { xid: xid.clone() })
    };
    args.xid.iter().map(find).collect()
}

fn as_json(branch: &LeftOverBranch) -> serde_json::Value {
    let (parts, entry) = (&branch.parts, &branch.entry);
    json!({
        "xid": branch.xid.to_string(),
        "job": parts.job,
        "log_id": parts.log_id,
        "lineage": parts.lineage.0,
        "uid": parts.uid,
        "subtask": parts.subtask,
        "opened_after": parts.opened_after.0,
        "attempt": parts.attempt.0,
        "closed_by": entry.as_ref().map(|e| e.closed_by.0),
        "table": entry.as_ref().map(|e| &e.target),
        "rows": entry.as_ref().map(|e| e.rows),
        "prepared_ms": branch.written_ms,
        "writer_session": branch.writer_session,
    })
}

fn shown(found: &[LeftOverBranch], now_ms: i64) -> String {
    let columns = [
        Column::Left("job"),
        Column::Left("sink"),
        Column::Right("subtask"),
        Column::Right("attempt"),
        Column::Right("closed by"),
        Column::Left("table"),
        Column::Right("rows"),
        Column::Left("prepared (UTC)"),
        Column::Right("age"),
        Column::Right("writer"),
        Column::Left("xid"),
    ];
    let rows: Vec<_> = found
        .iter()
        .map(|branch| {
            let (parts, entry) = (&branch.parts, branch.entry.as_ref());
            let dash = || "–".to_owned();
            let age = |ms: i64| format!("{} s", now_ms.saturating_sub(ms) / 1_000);
            [
                parts.job.clone(),
                parts.uid.clone(),
                parts.subtask.to_string(),
                parts.attempt.to_string(),
                number(entry.map(|e| e.closed_by.0)),
                entry.map_or_else(dash, |e| e.target.clone()),
                number(entry.map(|e| e.rows)),
                branch.written_ms.map_or_else(dash, moment),
                branch.written_ms.map_or_else(dash, age),
                number(branch.writer_session),
                branch.xid.to_string(),
            ]
        })
        .collect();
    table(columns, &rows)
}
