//! `tidegate txn forget`: a job whose transactions are lost goes on without them when somebody has decided so, and not before.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::kills::Run;
use crate::topic::Topic;
use crate::txn::txn;

const COUNT: u64 = 2_000;

pub(crate) fn forget(folder: &Path, transaction: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate-cli"))
        .args(["txn", "forget", "c", transaction])
        .current_dir(folder)
        .output()
        .unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name that is not listed is refused, with those that are; to decide twice is to decide once.
fn decide(folder: &Path, transaction: &str) {
    let other = forget(folder, &format!("{transaction}0"));
    let refusal = text(&other.stderr);
    assert!(other.status.code() == Some(2) && refusal.contains(transaction), "{refusal}");
    for _ in 0..2 {
        let decided = forget(folder, transaction);
        assert!(decided.status.success(), "{}", text(&decided.stderr));
        assert!(text(&decided.stdout).contains("will not be in the output"), "{}", text(&decided.stdout));
    }
}

/// The transaction in the remedy that a failed run names.
pub(crate) fn remedy(run: &Output) -> String {
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stdout));
    let error = text(&run.stderr);
    let command = error.lines().find_map(|line| line.trim_start().strip_prefix("tidegate txn forget "));
    let named = command.and_then(|words| words.split_once(" '")).and_then(|(_, rest)| rest.split_once('\''));
    named.unwrap_or_else(|| panic!("no remedy: {error}")).0.to_owned()
}

fn goes_on_without_what_is_lost(fault: &str, parallelism: u32) {
    let (topic, folder) = (Topic::new(3), tempfile::tempdir().unwrap());
    let run = Run { topic: &topic, folder: folder.path(), parallelism, from: None };
    assert!(!run.run(COUNT, fault), "{fault} does not strike");
    for id in topic.open_transactions() {
        assert!(txn(&topic, "abort", &[&id]).status.success());
    }
    let mut given_up = Vec::new();
    let end = loop {
        let output = run.output(COUNT, "");
        if output.status.success() {
            break output;
        }
        given_up.push(remedy(&output));
        assert!(given_up.len() <= parallelism as usize, "one of each subtask: {given_up:?}");
        decide(folder.path(), given_up.last().unwrap());
    };
    assert!(!given_up.is_empty(), "what is lost stops the job");
    let events = text(&end.stdout);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = events.filter(|event| event["event"] == "given_up");
    let mut said: Vec<String> = said.map(|event| event["transaction"].as_str().unwrap().to_owned()).collect();
    said.sort();
    given_up.sort();
    assert_eq!(said, given_up);
    let numbers = topic.numbers();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "nothing is there twice");
    let missing = COUNT - numbers.len() as u64;
    assert!(0 < missing && missing < COUNT / 2, "{missing} are missing");
    assert_eq!(topic.open_transactions(), [""; 0]);
}

#[test]
fn a_lost_transaction_stops_the_job_until_somebody_gives_it_up_and_nothing_else_is_missing() {
    goes_on_without_what_is_lost("sink.commit.before:1", 1);
}

#[test]
fn each_lost_transaction_of_a_parallel_job_is_given_up_by_its_own_decision() {
    // The first of three subtasks is about to commit: the transactions of all of them are listed and open.
    goes_on_without_what_is_lost("sink.commit.before:1", 3);
}
