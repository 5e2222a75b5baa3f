//! `tidegate xa list | commit | rollback`: what is left prepared or staged on a MySQL server, and an operator's decision about it.
//!
//! Owns: the table, the confirmation. Does not own: listing and settling (the connector's). Runs on: the main thread.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::CliError;
use super::shown::{counted, moment, number, span_us};
use super::table::{Column, table};
use crate::connectors::mysql::{
    Connection, HandDecision, HandOutcome, LeftOver, LeftOverKind, MysqlError, MysqlUrl, SessionLimits,
    left_overs, settle_by_hand,
};
use crate::engine::clock::{Clock, SystemClock};
use crate::engine::io::TokioIo;
use crate::stdout;

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
    /// Show what Tidegate's jobs have left: prepared branches of the whole server, staging tables of the database; whose they are, how
    /// old, and whether their writer still lives.
    List(ListArgs),
    /// Commit branches: their rows appear. A job that still lists them goes on. (A staging table is merged by its job only.)
    Commit(SettleArgs),
    /// Roll branches back and drop staging tables: their rows are thrown away. A job that still lists them fails and names them.
    Rollback(SettleArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// The database: mysql://user:password@host:port/database.
    url: String,
    /// Of this job only. Finds it also where its name did not fit into a branch's and is shown as `~` and a hash.
    #[arg(long)]
    job: Option<String>,
    /// Print a JSON array instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct SettleArgs {
    /// The database: mysql://user:password@host:port/database.
    url: String,
    /// A branch or staging table, as `tidegate xa list` names it; may be given several times.
    #[arg(long, value_name = "XID", required_unless_present = "all")]
    xid: Vec<String>,
    /// All of this database, of every job; of `commit`: every branch. Branches of other databases of the server stay.
    #[arg(long, conflicts_with = "xid", requires = "yes")]
    all: bool,
    /// With --all: of this job only.
    #[arg(long, requires = "all")]
    job: Option<String>,
    /// Print a JSON array instead of words: each transaction with what became of it.
    #[arg(long)]
    json: bool,
    /// Yes, all of them; or, with --xid, also a branch that writes into another database, whose ledger then does not learn of it.
    #[arg(long)]
    yes: bool,
    /// Also a branch whose job is at work, or a start's trial that is younger than a minute. Where the server ties it to a session that still
    /// holds it, that session is ended first.
    #[arg(long)]
    force: bool,
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
    let mut found = runtime.block_on(async {
        let mut connection = connect(&args.url, runtime).await?;
        left_overs(&mut connection).await
    })?;
    found.retain(|left| is_of(left, args.job.as_ref()));
    let now_ms = SystemClock::new().wall_ms();
    if args.json {
        let rows: Vec<_> = found.iter().map(as_json).collect();
        stdout::line(serde_json::to_string_pretty(&rows).expect("numbers and strings"));
    } else if let (true, Some(job)) = (found.is_empty(), &args.job) {
        stdout::line(format_args!("nothing is left of a job {job:?}"));
    } else if found.is_empty() {
        stdout::line(
            "nothing is left: no prepared branch of a Tidegate job on this server, and no staging table in this database",
        );
    } else {
        stdout::text(shown(&found, now_ms));
    }
    Ok(ExitCode::SUCCESS)
}

fn settle(runtime: &Runtime, args: &SettleArgs, decision: HandDecision) -> Result<ExitCode, CliError> {
    runtime.block_on(async {
        let mut connection = connect(&args.url, runtime).await?;
        let found = left_overs(&mut connection).await?;
        let chosen = chosen(args, decision, &found)?;
        let clock = SystemClock::new();
        let (mut done, mut failed, mut rows) = (Vec::new(), 0, Vec::new());
        for left in chosen {
            let settled = settle_by_hand(&mut connection, left, decision, args.force, clock.wall_ms()).await;
            rows.push(settled_as_json(left, decision, &settled));
            match settled {
                Ok(HandOutcome::Settled) => done.push(&left.kind),
                Ok(HandOutcome::Gone) => {
                    // Of all, those that are left: with the others nothing had to be done.
                    failed += u32::from(!args.all);
                    eprintln!("{}: settled meanwhile, by its job or somebody else", left.xid);
                }
                Err(error) => {
                    failed += 1;
                    eprintln!("{}: {}", left.xid, crate::error::error_text(&error));
                }
            }
        }
        if args.json {
            stdout::line(serde_json::to_string_pretty(&rows).expect("numbers and strings"));
        } else {
            stdout::line(summary(&done, decision));
        }
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// What has become of them, by kind.
fn summary(done: &[&LeftOverKind], decision: HandDecision) -> String {
    let count = |of: fn(&LeftOverKind) -> bool| done.iter().filter(|kind| of(kind)).count() as u64;
    let branches = count(|kind| *kind == LeftOverKind::Branch);
    let staged = count(|kind| matches!(kind, LeftOverKind::StagingTable { .. }));
    let trials = count(|kind| *kind == LeftOverKind::Trial);
    let word = if decision == HandDecision::Commit { "committed" } else { "rolled back" };
    let plural = if branches == 1 { "branch" } else { "branches" };
    let noted = [
        (branches > 0).then(|| format!("{branches} {plural} {word}")),
        (staged > 0).then(|| format!("{} dropped", counted(staged, "staging table"))),
    ];
    let noted = noted.into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let noted = (!noted.is_empty()).then(|| format!("{noted}, noted in tidegate_ledger"));
    let trials = (trials > 0).then(|| format!("{} of a start rolled back", counted(trials, "trial")));
    let parts: Vec<String> = [noted, trials].into_iter().flatten().collect();
    if parts.is_empty() { format!("nothing is {word}") } else { parts.join("; ") }
}

fn settled_as_json(
    left: &LeftOver,
    decision: HandDecision,
    settled: &Result<HandOutcome, MysqlError>,
) -> serde_json::Value {
    let outcome = match (settled, decision, &left.kind) {
        (Err(_), ..) => "failed",
        (Ok(HandOutcome::Gone), ..) => "settled_meanwhile",
        (Ok(HandOutcome::Settled), HandDecision::Commit, _) => "committed",
        (Ok(HandOutcome::Settled), HandDecision::RollBack, LeftOverKind::StagingTable { .. }) => "dropped",
        (Ok(HandOutcome::Settled), HandDecision::RollBack, _) => "rolled_back",
    };
    json!({
        "kind": kind_of(left).0,
        "xid": left.xid.to_string(),
        "outcome": outcome,
        "error": settled.as_ref().err().map(|error| crate::engine::error::chain_text(error)),
    })
}

/// Whether it is of this job, if one is asked for.
fn is_of(left: &LeftOver, job: Option<&String>) -> bool {
    job.is_none_or(|job| left.xid.is_of_job(job))
}

/// The ones that are meant; each one that is named must be there. `commit --all` means those that can be committed by hand.
fn chosen<'a>(
    args: &SettleArgs,
    decision: HandDecision,
    found: &'a [LeftOver],
) -> Result<Vec<&'a LeftOver>, CliError> {
    if args.all {
        let can_be =
            |left: &LeftOver| decision == HandDecision::RollBack || left.kind == LeftOverKind::Branch;
        let meant: Vec<_> =
            found.iter().filter(|left| is_of(left, args.job.as_ref()) && can_be(left)).collect();
        let here: Vec<_> = meant.iter().copied().filter(|left| left.is_of_this_database()).collect();
        if here.len() < meant.len() {
            let others = counted((meant.len() - here.len()) as u64, "transaction");
            eprintln!(
                "{others} of other databases of this server left alone: name that database in the address"
            );
        }
        return match (&args.job, meant.is_empty()) {
            (Some(job), true) => Err(CliError::NothingOfJob { job: job.clone() }),
            _ => Ok(here),
        };
    }
    let find = |xid: &String| {
        let there = found.iter().find(|left| left.xid.to_string() == *xid);
        let left = there.ok_or_else(|| CliError::NoSuchBranch { xid: xid.clone() })?;
        match left.is_of_this_database() || args.yes {
            true => Ok(left),
            false => Err(CliError::OtherDatabase { xid: xid.clone() }),
        }
    };
    args.xid.iter().map(find).collect()
}

/// What it is, in a word; and the table in which its rows are now, if it is one of ours.
fn kind_of(left: &LeftOver) -> (&'static str, Option<&String>) {
    match &left.kind {
        LeftOverKind::Branch => ("branch", None),
        LeftOverKind::StagingTable { table } => ("staging table", Some(table)),
        LeftOverKind::Trial => ("trial of a start", None),
    }
}

fn as_json(left: &LeftOver) -> serde_json::Value {
    let owner = left.owner.as_ref();
    let (kind, staging_table) = kind_of(left);
    json!({
        "kind": kind,
        "xid": left.xid.to_string(),
        "job": owner.map(|o| &o.job),
        "log_id": owner.map(|o| &o.log_id),
        "lineage": owner.map(|o| o.lineage.0),
        "uid": owner.map(|o| &o.uid),
        "subtask": owner.map(|o| o.subtask),
        "opened_after": owner.map(|o| o.opened_after.0),
        "attempt": owner.map(|o| o.attempt.0),
        "closed_by": left.closed_by.map(|id| id.0),
        "table": left.target,
        "staging_table": staging_table,
        "rows": left.rows,
        "prepared_ms": left.since_ms,
        "writer_session": left.writer_session,
    })
}

fn shown(found: &[LeftOver], now_ms: i64) -> String {
    let columns = [
        Column::Left("kind"),
        Column::Left("job"),
        Column::Left("sink"),
        Column::Right("subtask"),
        Column::Right("attempt"),
        Column::Right("closed by"),
        Column::Left("table"),
        Column::Right("rows"),
        Column::Left("since (UTC)"),
        Column::Right("age"),
        Column::Right("writer"),
        Column::Left("xid"),
    ];
    let dash = || "–".to_owned();
    let row = |left: &LeftOver| {
        let owner = left.owner.as_ref();
        let (kind, staging_table) = kind_of(left);
        let age =
            |ms: i64| span_us(u64::try_from(now_ms.saturating_sub(ms)).unwrap_or(0).saturating_mul(1_000));
        [
            kind.to_owned(),
            owner.map_or_else(dash, |o| o.job.clone()),
            owner.map_or_else(dash, |o| o.uid.clone()),
            number(owner.map(|o| u64::from(o.subtask))),
            number(owner.map(|o| o.attempt.0)),
            number(left.closed_by.map(|id| id.0)),
            match staging_table.or(left.target.as_ref()) {
                Some(table) => table.clone(),
                None if left.is_of_this_database() => dash(),
                None => "(another database)".to_owned(),
            },
            number(left.rows),
            left.since_ms.map_or_else(dash, moment),
            left.since_ms.map_or_else(dash, age),
            number(left.writer_session),
            left.xid.to_string(),
        ]
    };
    table(columns, &found.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_settled_is_counted_by_kind_and_only_what_was_noted_is_said_to_be() {
        let table = LeftOverKind::StagingTable { table: "s".into() };
        let all = [&LeftOverKind::Branch, &table, &LeftOverKind::Branch, &LeftOverKind::Trial];
        let rolled_back = summary(&all, HandDecision::RollBack);
        let expected = "2 branches rolled back and 1 staging table dropped, noted in tidegate_ledger; 1 trial of a start rolled back";
        assert_eq!(rolled_back, expected);
        assert_eq!(summary(&all[..1], HandDecision::Commit), "1 branch committed, noted in tidegate_ledger");
        assert_eq!(summary(&[], HandDecision::Commit), "nothing is committed");
    }
}
