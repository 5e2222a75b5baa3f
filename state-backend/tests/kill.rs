//! An armed fault point ends the process with SIGKILL, at the pass that was asked for.
//!
//! Owns: striking in a child process (this test binary itself, told to run `child`).
//! Does not own: what the engine's recovery makes of it.
//! Runs on: a child process.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use tidegate_state::{fault, fault_point};

/// Runs only as a child: passes a point three times, saying so each time.
#[test]
#[ignore = "the child of the tests below"]
fn child() {
    if let Err(error) = fault::arm_from_env() {
        eprintln!("{error}");
        return;
    }
    for pass in 1..=3 {
        fault_point!("storage.put.before");
        eprintln!("passed {pass}");
    }
}

fn run_child(fault: &str) -> Output {
    Command::new(std::env::current_exe().expect("a running test has a path"))
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(fault::FAULT_VARIABLE, fault)
        .output()
        .expect("the test binary can be run again")
}

#[test]
fn the_nth_pass_kills() {
    let output = run_child("storage.put.before:2");
    assert_eq!(output.status.signal(), Some(9));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("passed 1") && !text.contains("passed 2"), "{text}");
}

#[test]
fn a_point_that_is_not_passed_does_not_kill() {
    let output = run_child("ack.send.before");
    assert!(output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("passed 3"));
}

#[test]
fn an_unknown_name_is_answered_with_the_list() {
    let output = run_child("storage.putt");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("no fault point storage.putt; there are: storage.put.before"), "{text}");
}
