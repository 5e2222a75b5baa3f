//! Another parallelism, an older checkpoint, a start at an awkward moment: what a restart may be asked for.
//!
//! Owns: the scenarios. Does not own: kills at fault points (`faults.rs`), refusals of states (`tidegate-tests`).
//! Runs on: the test thread; each run is a process.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod scenario;

use std::fs::OpenOptions;
use std::io::Write;

use rusqlite::Connection;
use rustix::process::Signal;
use scenario::running::Running;
use scenario::{Scenario, stderr};
use serde_json::Value;

/// Dies right behind a log entry, with its transactions pending, and comes back at another parallelism, again and again.
fn rescales(steps: &[u32]) {
    let scenario = Scenario::with_orders();
    let (last, before) = steps.split_last().unwrap();
    for (index, parallelism) in before.iter().enumerate() {
        // Each run restores the entry at which the one before died.
        scenario.run_and_die_at(400, *parallelism, "commit_log.checkpoint.after", 3);
        let restored = 3 * (index as u64 + 1);
        assert_eq!(entries(&scenario).last(), Some(&restored));
    }
    let events = scenario.run_and_verify(*last);
    assert_eq!(events[0]["restored"].as_u64(), Some(3 * before.len() as u64), "{}", events[0]);
    assert!(events[0]["committed"].as_u64() > Some(0), "transactions were pending: {}", events[0]);
}

fn rows(scenario: &Scenario, table: &str) -> i64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(scenario.path("out.sqlite"), flags).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Ids of the checkpoints that have files.
fn entries(scenario: &Scenario) -> Vec<u64> {
    let mut ids: Vec<u64> = scenario
        .files("checkpoints")
        .iter()
        .filter_map(|file| {
            let folder = file.strip_prefix(scenario.path("checkpoints")).unwrap().components().next()?;
            folder.as_os_str().to_str()?.split_once('-')?.0.parse().ok()
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn a_job_with_pending_transactions_goes_from_1_to_4_to_3_subtasks() {
    rescales(&[1, 4, 3]);
}

#[test]
fn field_case_64_a_job_goes_from_4_to_3_to_5_to_1_subtasks_and_sums_are_equal() {
    rescales(&[4, 3, 5, 1]);
}

#[test]
fn field_case_13_what_a_job_left_before_its_first_checkpoint_is_rolled_back_at_a_lower_parallelism() {
    let scenario = Scenario::with_orders();
    // All four sinks of three subtasks have a transaction; the first checkpoint is not complete.
    scenario.run_and_die(3, "commit_log.checkpoint.before", 1);
    let events = scenario.run_and_verify(1);
    assert_eq!(events[0]["restored"], Value::Null, "{}", events[0]);
    assert!(events[0]["rolled_back"].as_u64() > Some(0), "{}", events[0]);
    assert_eq!(events[0]["committed"], 0);
}

#[test]
fn field_case_36_a_job_killed_while_it_finishes_finishes_once() {
    for (point, finished) in [("commit_log.finished.before", false), ("commit_log.finished.after", true)] {
        let scenario = Scenario::with_orders();
        scenario.run_and_die(3, point, 1);
        scenario.verify();
        let again = scenario.run(3, &[]).output().unwrap();
        assert_eq!(again.status.success(), !finished, "{point}: {}", stderr(&again));
        scenario.verify();
        let third = scenario.run(3, &[]).output().unwrap();
        assert!(stderr(&third).contains("has finished"), "{point}: {}", stderr(&third));
    }
}

#[test]
fn field_case_30_checkpoints_without_a_record_are_restored_and_commits_go_on() {
    let scenario = Scenario::with_orders();
    let mut idle = Running::start(scenario.run(2, &["--follow"]));
    idle.until("checkpoint");
    while rows(&scenario, "t_order_log") != 2_000 {
        idle.until("checkpoint");
    }
    let newest = (0..6).map(|_| idle.until("checkpoint")["id"].as_u64()).max().unwrap();
    idle.signal(Signal::KILL);
    idle.end();
    scenario.verify();

    let args = ["generate", "--orders", "2100", "--users", "70", "--partitions", "3", "--out", "more"];
    assert!(scenario.orders(&args).output().unwrap().status.success());
    for part in 0..3 {
        // The same seed: the longer input begins with the shorter one.
        let text = std::fs::read(scenario.path(&format!("more/part-{part}.jsonl"))).unwrap();
        let path = scenario.path(&format!("in/part-{part}.jsonl"));
        let there = std::fs::metadata(&path).unwrap().len() as usize;
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&text[there..]).unwrap();
    }
    let events = scenario.run_and_verify(2);
    assert!(events[0]["restored"].as_u64() >= newest, "{} after {newest:?}", events[0]);
    let audit = scenario.orders(&["verify", "--source=files:in", "--sink=sqlite:out.sqlite", "--json"]);
    let audit: Value = serde_json::from_slice(&{ audit }.output().unwrap().stdout).unwrap();
    assert_eq!(audit["expected"], 2_100);
}

#[test]
fn going_back_needs_a_will_and_puts_out_twice_exactly_what_came_after() {
    let scenario = Scenario::with_orders();
    scenario.run_and_die_at(1_000, 3, "commit_log.checkpoint.before", 8);
    let checkpoint = |id: u64| format!("--restore=checkpoints#{id}");

    let unwilling = scenario.run(3, &[&checkpoint(6)]).output().unwrap();
    assert_eq!(unwilling.status.code(), Some(2), "{}", stderr(&unwilling));
    assert!(stderr(&unwilling).contains("--rewind"), "{}", stderr(&unwilling));
    let gone = scenario.run(3, &[&checkpoint(1), "--rewind"]).output().unwrap();
    assert_eq!(gone.status.code(), Some(1), "{}", stderr(&gone));
    assert!(stderr(&gone).contains("checkpoint 1"), "{}", stderr(&gone));

    let before = rows(&scenario, "t_order_log");
    let back = scenario.run(3, &[&checkpoint(6), "--rewind"]).output().unwrap();
    assert!(back.status.success(), "{}", stderr(&back));
    let first: Value =
        serde_json::from_slice(back.stdout.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    assert_eq!(first["restored"], 6, "{first}");
    assert!(before > 0);
    let audit = scenario.orders(&["verify", "--source=files:in", "--sink=sqlite:out.sqlite", "--json"]);
    let audit: Value = serde_json::from_slice(&{ audit }.output().unwrap().stdout).unwrap();
    let table = |name: &str, figure: &str| audit["tables"][name][figure].as_u64().unwrap();
    assert!(table("t_order_log", "duplicates") > 0, "what came after checkpoint 6 is there twice: {audit}");
    assert_eq!((table("t_order_log", "lost"), table("t_order_event", "lost")), (0, 0), "{audit}");
    assert_eq!(audit["tables"]["t_user_total"]["ok"], true, "state went back too: {audit}");
    assert_eq!(audit["tables"]["t_order_event"]["ok"], true, "what is overwritten shows nothing: {audit}");
}

#[test]
fn going_back_to_the_newest_checkpoint_puts_out_nothing_twice() {
    let scenario = Scenario::with_orders();
    scenario.run_and_die_at(1_000, 3, "commit_log.checkpoint.after", 5);
    let newest = entries(&scenario).pop().unwrap();
    let restore = format!("--restore=file://{}#{newest}", scenario.path("checkpoints").display());
    let output = scenario.run(1, &[&restore, "--rewind"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    scenario.verify();
}

#[test]
fn an_old_copy_of_the_folder_is_refused_before_it_puts_out_anything_twice() {
    let scenario = Scenario::with_orders();
    scenario.run_and_die_at(1_000, 3, "commit_log.checkpoint.after", 3);
    let old = scenario.path("old");
    for file in scenario.files("checkpoints") {
        let copy = old.join(file.strip_prefix(scenario.path("checkpoints")).unwrap());
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(&file, copy).unwrap();
    }
    scenario.run_and_verify(3);
    std::fs::rename(scenario.path("checkpoints"), scenario.path("newest")).unwrap();
    std::fs::rename(&old, scenario.path("checkpoints")).unwrap();

    let refused = scenario.run(3, &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let said = stderr(&refused);
    assert!(said.contains("would be there twice") && said.contains("--rewind"), "{said}");
    scenario.verify();
}
