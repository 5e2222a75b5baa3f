//! A process that stands still in the middle of an upsert or of XA transactions, while another one takes its job over, and then goes on.
//!
//! Owns: the strike, which hits a statement that waits. Does not own: the servers (`scripts/services`), the audit (`orders verify`).
//! Runs on: the test thread; each run is a process.
#![cfg(feature = "mysql")]
#![allow(clippy::unwrap_used, reason = "a test program")]

mod scenario;

use std::process::Command;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use rustix::process::Signal;
use scenario::running::Running;
use scenario::{Scenario, stderr};
use tidegate_jobs::services::{Service, ServiceKind};
use tokio::runtime::{Builder, Runtime};

const FENCED: Option<i32> = Some(3);

/// A database that is dropped at the end, and a session in it.
struct Database {
    name: String,
    url: String,
    runtime: Runtime,
    session: Conn,
}

impl Database {
    /// `of` tells apart tests that run at the same time.
    fn on(kind: ServiceKind, of: &str) -> Self {
        let service = Service::shared(kind).unwrap();
        let server = service.mysql_url().unwrap();
        let name = format!("tidegate_take_over_{of}_{}_{}", kind as u8, std::process::id());
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let session = runtime.block_on(Conn::new(Opts::from_url(server).unwrap())).unwrap();
        let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
        let mut database = Self { name: name.clone(), url, runtime, session };
        for sql in [format!("CREATE DATABASE {name}"), format!("USE {name}")] {
            assert!(database.run(&sql), "{sql}");
        }
        database
    }

    /// Whether the server has done it.
    fn run(&mut self, sql: &str) -> bool {
        self.runtime.block_on(self.session.query_drop(sql)).is_ok()
    }

    fn count(&mut self, sql: &str) -> u64 {
        self.runtime.block_on(self.session.query_first(sql)).unwrap().unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE IF EXISTS {}", self.name);
        let _ = self.run("ROLLBACK") && self.run(&sql);
    }
}

/// Asks until it holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("never: {what}");
}

/// The job from files into the tables.
fn run(scenario: &Scenario, sink: &str, more: &[&str]) -> Command {
    let mut command = scenario.orders(&["run", "--source", "files:in", "--sink", sink, "--json"]);
    command.args(["--checkpoints", "checkpoints", "--checkpoint-interval", "200ms", "--parallelism", "2"]);
    command.args(more);
    command
}

/// Every table has what the input asks for.
fn verify(scenario: &Scenario, sink: &str, when: &str) {
    let output =
        scenario.orders(&["verify", "--source", "files:in", "--sink", sink, "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{when}: {said}{}", stderr(&output));
}

/// A run that stands still with a batch of totals in its hand, of which the server has not done the transaction.
fn stopped(scenario: &Scenario, database: &mut Database, more: &[&str]) -> Running {
    let sink = format!("{}?mode=upsert", database.url);
    let mut first = Running::start(run(scenario, &sink, &[&["--rate=100"], more].concat()));
    first.until("checkpoint");
    until("totals are in the table", || database.count("SELECT COUNT(*) FROM t_user_total") > 0);
    // Its next batch waits for the rows of this session.
    until("this session has all rows", || {
        database.run("BEGIN") && database.run("SELECT * FROM t_user_total FOR UPDATE")
    });
    until("a batch waits", || {
        let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() \
                       AND INFO LIKE 'INSERT INTO%t_user_total%'";
        database.count(waiting) > 0
    });
    first.stop();
    assert!(database.run("ROLLBACK"));
    first
}

fn is_fenced_and_changes_nothing(kind: ServiceKind, more: &[&str]) {
    let (scenario, mut database) = (Scenario::with_orders(), Database::on(kind, "upsert"));
    let sink = format!("{}?mode=upsert", database.url);
    let made = scenario.orders(&["tables", "--mysql", &sink]).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let first = stopped(&scenario, &mut database, more);

    let second = run(&scenario, &sink, &["--take-over"]).output().unwrap();
    assert!(second.status.success(), "{}", stderr(&second));
    verify(&scenario, &sink, "after the successor");

    first.signal(Signal::CONT);
    let (last, status, text) = first.end();
    verify(&scenario, &sink, "after the predecessor went on");
    assert_eq!(status.code(), FENCED, "{last:?} {text}");
    assert_eq!(last.unwrap()["event"], "failed");
}

/// Branches that the predecessor prepares now would lock sums that the successor adds to, until they are rolled back by a next start.
#[test]
fn a_process_that_stood_still_in_xa_transactions_leaves_no_branch_in_its_successors_way() {
    let (scenario, database) = (Scenario::with_orders(), Database::on(ServiceKind::MariaDb, "xa"));
    let sink = database.url.clone();
    let made = scenario.orders(&["tables", "--mysql", &sink]).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let mut first = Running::start(run(&scenario, &sink, &["--rate=500"]));
    first.until("committed");
    first.stop();
    let mut second = Running::start(run(&scenario, &sink, &["--take-over", "--rate=300"]));
    second.until("committed");
    first.signal(Signal::CONT);
    let (last, status, text) = first.end();
    assert_eq!(status.code(), FENCED, "{last:?} {text}");
    while let Some(event) = second.next() {
        assert_ne!(event["event"], "restarting", "{event}");
    }
    let (_, status, text) = second.end();
    assert!(status.success(), "{text}");
    verify(&scenario, &sink, "after both");
}

#[test]
fn a_process_that_stood_still_in_an_upsert_while_another_took_over_and_finished_changes_nothing() {
    is_fenced_and_changes_nothing(ServiceKind::MariaDb, &[]);
}

#[test]
fn a_process_that_stood_still_in_an_upsert_on_mysql_is_fenced_also_where_no_restart_is_allowed() {
    is_fenced_and_changes_nothing(ServiceKind::MySql, &["--restart", "none"]);
}
