//! Bad input gets a clear error that names the place and the remedy, its exit status, and loses nothing.
//!
//! Owns: what holds for the process. Does not own: the words of each error, which are tested beside it.
//! Runs on: the test thread; each run is a process.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod scenario;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use scenario::{Scenario, stderr};

/// Runs, and asserts exit status and words of the error.
fn refused(mut command: Command, status: i32, words: &[&str]) {
    let output = command.output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{error}");
    words.iter().for_each(|word| assert!(error.contains(word), "no {word:?} in {error}"));
}

fn flip_the_middle(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

/// A folder with a run that was killed after its fourth checkpoint.
fn interrupted() -> Scenario {
    let scenario = Scenario::with_orders();
    scenario.run_and_die(1, "commit_log.checkpoint.after", 4);
    scenario
}

#[test]
fn a_broken_line_is_named_and_once_mended_the_job_goes_on() {
    let scenario = Scenario::with_orders();
    let part = scenario.path("in/part-1.jsonl");
    let whole = std::fs::read_to_string(&part).unwrap();
    let broken: Vec<_> = whole
        .lines()
        .enumerate()
        .map(|(index, line)| if index == 99 { "{\"order_id\":oops" } else { line })
        .collect();
    std::fs::write(&part, broken.join("\n") + "\n").unwrap();
    refused(scenario.run(3, &[]), 1, &["part-1.jsonl:100:13", "--broken-lines skip"]);

    let output = scenario
        .orders(&["run", "--source=files:in", "--sink=blackhole", "--mode=none", "--broken-lines=skip"])
        .output()
        .unwrap();
    assert!(output.status.success() && stderr(&output).contains("1 line left out"), "{}", stderr(&output));

    std::fs::write(&part, whole).unwrap();
    scenario.run_and_verify(3);
}

#[test]
fn a_flipped_byte_in_the_newest_entry_is_found_and_never_skipped() {
    let scenario = interrupted();
    let log = scenario.files("checkpoints/log");
    let newest = log.iter().rfind(|file| file.file_name().is_some_and(|name| name != "id")).unwrap();
    let name = newest.file_name().unwrap().to_str().unwrap();
    let whole = std::fs::read(newest).unwrap();
    flip_the_middle(newest);
    refused(scenario.run(1, &[]), 1, &[name, "checksum", "another checkpoint folder"]);
    std::fs::write(newest, "").unwrap();
    refused(scenario.run(1, &[]), 1, &[name, "it is empty", "another checkpoint folder"]);
    std::fs::write(newest, whole).unwrap();
    scenario.run_and_verify(1);
}

#[test]
fn a_flipped_byte_in_a_state_file_is_found_and_once_mended_the_job_goes_on() {
    let scenario = interrupted();
    let files = scenario.files("checkpoints");
    let state = files.iter().rfind(|file| file.extension().is_some_and(|end| end == "state")).unwrap();
    let whole = std::fs::read(state).unwrap();
    flip_the_middle(state);
    refused(scenario.run(1, &[]), 1, &["user_total", "checksum"]);
    std::fs::write(state, whole).unwrap();
    scenario.run_and_verify(1);
}

#[test]
fn a_folder_that_cannot_be_one_is_named() {
    let scenario = Scenario::with_orders();
    std::fs::write(scenario.path("file"), "x").unwrap();
    let run =
        |url: &str| scenario.orders(&["run", "--source=files:in", "--sink=blackhole", "--checkpoints", url]);
    refused(run("file"), 2, &["file is a file", "name another place"]);
    refused(run("file/below"), 1, &["file/below", "choose another place"]);
    refused(run("hdfs://x"), 2, &["hdfs", "file://"]);
    // A file where the log's folder must be: nothing can be written, also not by root.
    std::fs::create_dir(scenario.path("half")).unwrap();
    std::fs::write(scenario.path("half/log"), "x").unwrap();
    refused(run("half"), 1, &["half"]);
}

#[test]
fn other_state_than_the_job_has_is_refused_before_anything_is_claimed() {
    let scenario = interrupted();
    let entries = scenario.files("checkpoints/log");
    let other_source =
        ["run", "--source=datagen", "--orders=5", "--sink=sqlite:out.sqlite", "--checkpoints=checkpoints"];
    refused(scenario.orders(&other_source), 1, &["orders", "splits", "FileSplit", "DatagenSplit"]);
    let other_sink = ["run", "--source=files:in", "--sink=blackhole", "--checkpoints=checkpoints"];
    refused(scenario.orders(&other_sink), 1, &["may not be committed yet"]);
    assert!(scenario.files("checkpoints/log").len() <= entries.len() + 1);
    scenario.run_and_verify(1);
}

#[test]
fn settings_out_of_range_are_wrong_usage() {
    let scenario = Scenario::with_orders();
    refused(scenario.run(200, &[]), 2, &["200", "128 key groups"]);
    refused(scenario.run(1, &["--max-parallelism=100000"]), 2, &["100000"]);
    refused(scenario.run(1, &["--restore=checkpoints#1"]), 2, &["--rewind"]);
    refused(scenario.run(1, &["--restore=elsewhere#1", "--rewind"]), 2, &["elsewhere"]);
    let mut unknown = scenario.run(1, &[]);
    unknown.env("TIDEGATE_FAULT", "sink.explode");
    refused(unknown, 2, &["sink.explode", "sink.commit.before"]);
    assert!(!scenario.path("checkpoints").exists(), "wrong usage leaves nothing behind");
}

#[test]
fn going_back_needs_a_checkpoint_that_is_there() {
    let scenario = interrupted();
    refused(
        scenario.run(1, &["--restore=checkpoints#77", "--rewind"]),
        1,
        &["no checkpoint 77", "restorable are: 4"],
    );
    let back = scenario.run(1, &["--restore=checkpoints#3", "--rewind"]).output().unwrap();
    assert!(back.status.success(), "{}", stderr(&back));
    assert!(String::from_utf8_lossy(&back.stdout).contains("\"restored\":3"));
    assert!(stderr(&back).contains("twice"), "{}", stderr(&back));
}

#[test]
fn a_folder_whose_job_answers_is_refused_without_take_over() {
    let scenario = Scenario::with_orders();
    // Slow enough to be alive when the others come.
    let mut first = scenario.run(1, &["--rate=500"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(first.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    assert!(line.contains("started"), "{line}");
    let who = format!("process {}", first.id());
    refused(scenario.run(1, &[]), 1, &[&who, "--take-over"]);

    let second = scenario.run(1, &["--take-over"]).output().unwrap();
    assert!(second.status.success(), "{}", stderr(&second));
    assert_eq!(first.wait().unwrap().code(), Some(3), "who was taken over ends as fenced");
    scenario.verify();
}

#[test]
fn a_socket_that_nobody_answers_on_is_no_obstacle() {
    let scenario = Scenario::with_orders();
    std::fs::create_dir(scenario.path("checkpoints")).unwrap();
    drop(UnixListener::bind(scenario.path("checkpoints/control.sock")).unwrap());
    scenario.run_and_verify(1);
}
