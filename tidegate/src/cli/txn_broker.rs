//! `tidegate txn list|commit|abort`: transactions of Tidegate jobs on Kafka brokers, and what an operator decides about those that were
//! left over.
//!
//! Owns: the table, the words about a decision. Does not own: the requests ([`TransactionAdmin`]). Runs on: the main thread.

use std::process::ExitCode;

use serde::Serialize;
use tidegate_connectors::kafka::{IdComponents, JobTransaction, TransactionAdmin};
use tidegate_engine::clock::{Clock, SystemClock};
use tidegate_engine::io::TokioIo;

use super::CliError;
use super::shown::span_us;
use super::table::{Column, table};
use crate::stdout;

#[derive(Debug, clap::Subcommand)]
pub(super) enum BrokerVerb {
    /// Show open transactions of Tidegate jobs.
    List {
        /// The brokers: host:port, several with commas.
        #[arg(long, value_name = "HOST:PORT")]
        kafka: String,
        /// Show every transactional id that the brokers know, also those without an open transaction.
        #[arg(long)]
        all: bool,
        /// Print a JSON array instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Commit an open transaction: its records are to be seen. A job that lists it finds it committed. One that is not prepared only with --force.
    Commit {
        #[command(flatten)]
        decision: Decision,
        /// Also a transaction that its writer has not closed: no checkpoint lists it, and the job writes its records again.
        #[arg(long)]
        force: bool,
    },
    /// Abort an open transaction: its records are not to be seen. A job that lists it finds it lost, and stops with that reason.
    Abort(Decision),
}

/// What is decided about.
#[derive(Debug, clap::Args)]
pub(super) struct Decision {
    /// The brokers: host:port, several with commas.
    #[arg(long, value_name = "HOST:PORT")]
    kafka: String,
    /// The transactional id, as `tidegate txn list` shows it.
    id: String,
    /// Print a JSON object instead of words.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    id: String,
    job: String,
    log_id: String,
    lineage: u64,
    uid: String,
    subtask: u32,
    slot: u32,
    attempt: u64,
    state: String,
    prepared: bool,
    age_ms: Option<u64>,
    timeout_ms: i32,
    partitions: Vec<String>,
}

impl Row {
    fn of(it: JobTransaction, now_ms: i64) -> Self {
        let prepared = it.is_open() && it.is_prepared();
        let IdComponents { job, log_id, lineage, uid, subtask, slot, attempt } = it.owner;
        Self {
            id: it.id,
            job,
            log_id,
            lineage: lineage.0,
            uid,
            subtask,
            slot,
            attempt: attempt.0,
            state: it.state,
            prepared,
            age_ms: it.started_ms.map(|started_ms| u64::try_from(now_ms - started_ms).unwrap_or(0)),
            timeout_ms: it.timeout_ms,
            partitions: it.partitions.iter().map(|(topic, number)| format!("{topic}-{number}")).collect(),
        }
    }
}

/// Exit status 0; 1 if there is nothing to decide about.
pub(super) fn run(verb: &BrokerVerb) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CliError::Runtime)?;
    runtime.block_on(async {
        let io = TokioIo::shared(tokio::runtime::Handle::current());
        let admin = |kafka: &str| TransactionAdmin::new(kafka, io.clone());
        match verb {
            BrokerVerb::List { kafka, all, json } => {
                let listed = admin(kafka).list(!*all).await.map_err(CliError::Connector)?;
                let now_ms = SystemClock::new().wall_ms();
                show(listed.into_iter().map(|it| Row::of(it, now_ms)).collect(), *json);
                Ok(ExitCode::SUCCESS)
            }
            BrokerVerb::Commit { decision: Decision { kafka, id, json }, force } => {
                let mut admin = admin(kafka);
                let it = known(&mut admin, id).await?;
                if it.is_open() && !it.is_prepared() && !force {
                    return Err(CliError::NotPrepared { id: id.clone() });
                }
                let done = admin.commit(id).await.map_err(CliError::Connector)?;
                Ok(told(done, id, "committed", *json))
            }
            BrokerVerb::Abort(Decision { kafka, id, json }) => {
                let mut admin = admin(kafka);
                known(&mut admin, id).await?;
                let done = admin.abort(id).await.map_err(CliError::Connector)?;
                Ok(told(done, id, "aborted", *json))
            }
        }
    })
}

async fn known(admin: &mut TransactionAdmin, id: &str) -> Result<JobTransaction, CliError> {
    let found = admin.describe(id).await.map_err(CliError::Connector)?;
    found.ok_or_else(|| CliError::NoSuchTransaction { id: id.to_owned() })
}

fn told(done: bool, id: &str, verb: &str, json: bool) -> ExitCode {
    stdout::line(answer(done, id, verb, json));
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn answer(done: bool, id: &str, verb: &str, json: bool) -> String {
    match (json, done) {
        (true, _) => {
            serde_json::json!({"id": id, "outcome": if done { verb } else { "not_open" }}).to_string()
        }
        (false, true) => format!("{id} is {verb}"),
        (false, false) => format!("{id} has no open transaction: nothing is {verb}"),
    }
}

fn show(rows: Vec<Row>, json: bool) {
    if json {
        stdout::line(serde_json::to_string_pretty(&rows).expect("numbers and strings"));
    } else if rows.is_empty() {
        stdout::line("no transaction of a Tidegate job is open");
    } else {
        stdout::text(shown(&rows));
    }
}

fn shown(rows: &[Row]) -> String {
    let columns = [
        Column::Left("transactional id"),
        Column::Left("job"),
        Column::Left("sink"),
        Column::Right("subtask"),
        Column::Right("slot"),
        Column::Right("attempt"),
        Column::Left("state"),
        Column::Left("prepared"),
        Column::Right("age"),
        Column::Left("partitions"),
    ];
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            [
                row.id.clone(),
                row.job.clone(),
                row.uid.clone(),
                row.subtask.to_string(),
                row.slot.to_string(),
                row.attempt.to_string(),
                row.state.clone(),
                if row.prepared { "yes" } else { "no" }.to_owned(),
                row.age_ms.map_or_else(String::new, |ms| span_us(ms.saturating_mul(1_000))),
                row.partitions.join(" "),
            ]
        })
        .collect();
    table(columns, &rows)
}

#[cfg(test)]
mod tests {
    use tidegate_engine::ids::{AttemptId, Lineage};

    use super::*;

    #[test]
    fn a_decision_is_told_in_words_or_as_json() {
        assert_eq!(answer(true, "a.1", "committed", true), r#"{"id":"a.1","outcome":"committed"}"#);
        assert_eq!(answer(false, "a.1", "aborted", true), r#"{"id":"a.1","outcome":"not_open"}"#);
        assert_eq!(answer(true, "a.1", "aborted", false), "a.1 is aborted");
        assert!(answer(false, "a.1", "aborted", false).contains("nothing is aborted"));
    }

    #[test]
    fn a_row_tells_whose_a_transaction_is_and_how_old() {
        let owner = IdComponents {
            job: "orders".to_owned(),
            log_id: "0b8d".to_owned(),
            lineage: Lineage(3),
            uid: "sink".to_owned(),
            subtask: 2,
            slot: 1,
            attempt: AttemptId(17),
        };
        let it = JobTransaction {
            id: "tidegate.orders.0b8d.3.sink.2.1.17".to_owned(),
            owner,
            state: "Ongoing".to_owned(),
            started_ms: Some(1_000),
            timeout_ms: 900_000,
            partitions: vec![("events".to_owned(), 0)],
        };
        assert!(!it.is_prepared());
        let ledger = ("__consumer_offsets".to_owned(), 3);
        assert!(JobTransaction { partitions: vec![ledger], ..it.clone() }.is_prepared());
        let text = shown(&[Row::of(it, 3_500)]);
        for part in ["tidegate.orders.0b8d.3.sink.2.1.17", "Ongoing", "2.5", "events-0"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
