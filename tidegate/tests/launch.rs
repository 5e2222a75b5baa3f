//! A binary made by `launch`, as its user meets it: the example `totals`.
//!
//! Owns: subcommands, settings from the environment, exit statuses.
//! Does not own: the job.
//! Runs on: the test thread; each run is a process.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::path::Path;
use std::process::{Command, Output};

/// Cargo builds the examples together with the tests, into the folder beside theirs.
fn totals(folder: &Path, args: &[&str], checkpoints: Option<&str>) -> Output {
    let deps = std::env::current_exe().unwrap();
    let example = deps.parent().and_then(Path::parent).unwrap().join("examples/totals");
    let mut command = Command::new(example);
    command.current_dir(folder).args(args);
    if let Some(checkpoints) = checkpoints {
        command.env("TIDEGATE_CHECKPOINTS", checkpoints);
    }
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const PLACES: [&str; 4] = ["--input", "in", "--db", "totals.sqlite"];

#[test]
fn a_binary_runs_explains_and_helps() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    let lines = "{\"user_id\":7,\"amount_cents\":250}\n{\"user_id\":7,\"amount_cents\":100}\n";
    std::fs::write(folder.path().join("in/part-0.jsonl"), lines).unwrap();

    let run = totals(folder.path(), &[&["run"], &PLACES[..]].concat(), Some("checkpoints"));
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(text(&run.stdout).contains("totals: finished after"), "{}", text(&run.stdout));
    assert!(folder.path().join("checkpoints/log").is_dir());

    let explain = totals(folder.path(), &[&["explain"], &PLACES[..]].concat(), None);
    assert!(explain.status.success(), "{}", text(&explain.stderr));
    for word in ["job \"totals\"", "user_total", "state: totals"] {
        assert!(text(&explain.stdout).contains(word), "no {word:?} in {}", text(&explain.stdout));
    }
    let help = totals(folder.path(), &["run", "--help"], None);
    assert!(text(&help.stdout).contains("--input") && text(&help.stdout).contains("--checkpoint-interval"));
    let version = totals(folder.path(), &["--version"], None);
    assert!(text(&version.stdout).starts_with("totals (tidegate "), "{}", text(&version.stdout));
}

#[test]
fn wrong_usage_is_status_2_and_a_failure_is_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let run = [&["run"], &PLACES[..]].concat();
    let usage = totals(folder.path(), &run, None);
    assert_eq!(usage.status.code(), Some(2));
    assert!(text(&usage.stderr).contains("--checkpoints"), "{}", text(&usage.stderr));
    assert_eq!(totals(folder.path(), &["run", "--input"], None).status.code(), Some(2));
    let failure = totals(folder.path(), &run, Some("checkpoints"));
    assert_eq!(failure.status.code(), Some(1));
    assert!(
        text(&failure.stderr).contains("the input folder in does not exist"),
        "{}",
        text(&failure.stderr)
    );
}
