//! `benches mysql-sink`: rows written into a table in XA transactions, one a second, beside a bare loop of multi-row inserts committed as
//! often, and the same loop in XA branches.
//!
//! Owns: the candidates. Does not own: the sink. Runs on: the main thread.

use std::time::Duration;

use clap::Args;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Value};
use tidegate_connectors::datagen::Datagen;
use tidegate_connectors::mysql::MysqlSink;
use tidegate_engine::api::StreamEnvironment;

use super::tables::{Table, connect, mysql};
use super::{Order, Server, ServerOptions, block_on};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, ratio};
use crate::job::{JobSetup, run_job};
use crate::options::{CommonOptions, machine_load};
use crate::stopwatch::Stopwatch;

/// Flags of `benches mysql-sink`.
#[derive(Clone, Debug, Args)]
pub(crate) struct MysqlSinkOptions {
    /// Rows of each run
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// From one commit to the next
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) commit_interval_ms: u64,
    #[command(flatten)]
    pub(crate) servers: ServerOptions,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const GROUP: &str = "one subtask, rows of a hundred bytes";
const BY_HAND: &str = "multi-row inserts by hand";
const XA_BY_HAND: &str = "the same in XA branches by hand";
const XA: &str = "tidegate XA sink";
const STAGING: &str = "tidegate staging sink";
const PLAIN: &str = "tidegate plain sink";
/// Rows of one statement, by hand.
const ROWS: u64 = 1_000;

/// Runs it.
///
/// # Errors
/// The first candidate that fails, or a server that does.
pub(crate) fn run(options: &MysqlSinkOptions) -> Result<Outcome, BenchError> {
    let server = Server::mysql(&options.servers)?;
    let table = Table::make(&server.address, &format!("bench_sink_{}", std::process::id()))?;
    let (load, every) = (machine_load(), Duration::from_millis(options.commit_interval_ms));
    let table = &table;
    let candidates = vec![
        Candidate::new(GROUP, BY_HAND, move |records| by_hand(table, every, records, Commits::Plainly)),
        Candidate::new(GROUP, XA_BY_HAND, move |records| {
            by_hand(table, every, records, Commits::InTwoPhases)
        }),
        Candidate::new(GROUP, XA, move |records| job(table, XA, every, records)),
        Candidate::new(GROUP, STAGING, move |records| job(table, STAGING, every, records)),
        Candidate::new(GROUP, PLAIN, move |records| job(table, PLAIN, every, records)),
    ];
    let measured = options.common.rounds(options.records).measure(candidates)?;
    let mut outcome = options
        .common
        .outcome("mysql-sink", measured, load)
        .setting("records", options.records)
        .setting("commit_interval_ms", options.commit_interval_ms);
    let over = |name: &str| {
        let rate = |name: &str| outcome.median(GROUP, name, Run::rate);
        ratio(rate(name), rate(BY_HAND))
    };
    let (xa_by_hand, xa, staging, plain) = (over(XA_BY_HAND), over(XA), over(STAGING), over(PLAIN));
    outcome.figure("XA by hand over by hand", xa_by_hand);
    outcome.figure("staging over by hand", staging);
    outcome.figure("plain over by hand", plain);
    outcome.figure("xa over by hand", xa);
    outcome.at_least("XA sink over inserts by hand", xa, 0.9);
    Ok(outcome)
}

fn job(table: &Table, candidate: &'static str, every: Duration, records: u64) -> Result<Run, BenchError> {
    table.empty()?;
    let env = StreamEnvironment::new();
    let orders = env.source("orders", Datagen::new(Order::make).bounded(records));
    let sink = MysqlSink::table(&table.url, &table.name)
        .column("order_id", |order: &Order| order.order_id)
        .column("user_id", |order| order.user_id)
        .column("amount_cents", |order| order.amount_cents)
        .text("status", |order| &order.status)
        .column("event_time_ms", |order| order.event_time_ms)
        .append();
    match candidate {
        STAGING => drop(orders.sink("table", sink.staging())),
        PLAIN => drop(orders.sink("table", sink.plain())),
        _ => drop(orders.sink("table", sink)),
    }
    let setup = JobSetup { candidate, parallelism: 1, checkpoint_every: Some(every) };
    let mut run = run_job(env, setup, records, records, || records)?;
    let got = table.rows()?;
    if got != records {
        return Err(BenchError::WrongResult { candidate: candidate.to_owned(), got, expected: records });
    }
    run = run.note("rows", got as f64);
    Ok(run)
}

/// How a loop by hand commits.
#[derive(Clone, Copy)]
enum Commits {
    Plainly,
    /// `XA PREPARE`, then `XA COMMIT`, on the same session: what the protocol costs, without anything of ours.
    InTwoPhases,
}

impl Commits {
    fn begin(self) -> &'static str {
        match self {
            Self::Plainly => "START TRANSACTION",
            Self::InTwoPhases => "XA START 'by-hand'",
        }
    }

    fn end(self) -> &'static [&'static str] {
        match self {
            Self::Plainly => &["COMMIT"],
            Self::InTwoPhases => &["XA END 'by-hand'", "XA PREPARE 'by-hand'", "XA COMMIT 'by-hand'"],
        }
    }
}

fn by_hand(table: &Table, every: Duration, records: u64, commits: Commits) -> Result<Run, BenchError> {
    table.empty()?;
    let watch = Stopwatch::start();
    block_on(async {
        let failed = mysql("inserting by hand");
        let mut conn = connect(&table.url).await?;
        conn.query_drop(commits.begin()).await.map_err(&failed)?;
        let mut committed_at = watch.elapsed();
        let mut first = 0;
        while first < records {
            let rows = ROWS.min(records - first);
            let (statement, values) = insert(&table.name, first, rows);
            conn.exec_drop(statement, Params::Positional(values)).await.map_err(&failed)?;
            first += rows;
            if watch.elapsed() - committed_at >= every {
                for statement in commits.end() {
                    conn.query_drop(*statement).await.map_err(&failed)?;
                }
                conn.query_drop(commits.begin()).await.map_err(&failed)?;
                committed_at = watch.elapsed();
            }
        }
        for statement in commits.end() {
            conn.query_drop(*statement).await.map_err(&failed)?;
        }
        conn.disconnect().await.map_err(&failed)
    })??;
    Ok(watch.stop(records))
}

fn insert(table: &str, first: u64, rows: u64) -> (String, Vec<Value>) {
    let places = vec!["(?,?,?,?,?)"; usize::try_from(rows).unwrap_or(0)].join(",");
    let columns = "order_id, user_id, amount_cents, status, event_time_ms";
    let mut values = Vec::new();
    for index in first..first + rows {
        let order = Order::make(index);
        values.push(Value::from(order.order_id));
        values.push(Value::from(order.user_id));
        values.push(Value::from(order.amount_cents));
        values.push(Value::from(order.status));
        values.push(Value::from(order.event_time_ms));
    }
    (format!("INSERT INTO {table} ({columns}) VALUES {places}"), values)
}
