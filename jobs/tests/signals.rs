//! Ctrl-C and SIGTERM: in order at first, at once the second time.
//!
//! Owns: what the process does on signals. Does not own: orderly cancel itself.
//! Runs on: the test thread; each run is a process.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod scenario;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use scenario::Scenario;

const PATIENCE: Duration = Duration::from_secs(5);

/// A run slowed down, after its second checkpoint.
fn running(scenario: &Scenario) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut run =
        scenario.run(3, &["--rate=2000"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
    for _ in 0..2 {
        lines.find(|line| line.contains("\"event\":\"checkpoint\"")).unwrap();
    }
    (run, lines)
}

#[test]
fn a_signal_cancels_in_order_and_the_next_run_goes_on() {
    let scenario = Scenario::with_orders();
    for signal in [Signal::INT, Signal::TERM] {
        let (mut run, lines) = running(&scenario);
        kill_process(Pid::from_child(&run), signal).unwrap();
        let last = lines.last().unwrap();
        assert!(last.contains("\"event\":\"canceled\""), "{last}");
        assert_eq!(run.wait().unwrap().code(), Some(0));
    }
    let events = scenario.run_and_verify(3);
    assert!(events[0]["restored"].as_u64() >= Some(4), "{:?}", events[0]);
}

#[test]
fn a_second_ctrl_c_stops_at_once_and_loses_nothing() {
    let scenario = Scenario::with_orders();
    let mut run = scenario.run(3, &["--rate=300"]);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
    said.find(|line| line.contains("\"event\":\"checkpoint\"")).unwrap();
    // Whoever holds the database keeps the next checkpoint, and with it an orderly cancel, from coming to its end.
    let database = rusqlite::Connection::open(scenario.path("out.sqlite")).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..3 {
        said.find(|line| line.contains("\"event\":\"progress\"")).unwrap_or_else(|| {
            let status = run.wait();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut run.stderr.take().unwrap(), &mut text).unwrap();
            panic!("ended early: {status:?}\n{text}")
        });
    }
    let pid = Pid::from_child(&run);
    kill_process(pid, Signal::INT).unwrap();
    let mut warned = BufReader::new(run.stderr.as_mut().unwrap()).lines().map(Result::unwrap);
    warned.find(|line| line.contains("Ctrl-C again")).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    database.execute_batch("ROLLBACK").unwrap();
    scenario.run_and_verify(3);
}
