//! Strikes that are no single `kill -9`: a whole process group, a process that stands still and goes on beside its
//! successor, a full disk, a folder that cannot be written for a while.
//!
//! Owns: the scenarios. What this machine does not permit (mounting, `chattr`) is skipped with a word on standard error.
//! Does not own: kills at fault points (`faults.rs`), many kills in a row (`torture.rs`).
//! Runs on: the test thread; each run is a process.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod scenario;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process_group};
use scenario::running::Running;
use scenario::{Scenario, stderr};

const FENCED: Option<i32> = Some(3);

fn is_being_written(database: &Path) -> bool {
    let connection = Connection::open(database).unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err()
}

/// A run that stands still, inside a write transaction of SQLite or outside of any.
fn stopped(scenario: &Scenario, inside: bool) -> Running {
    let mut run = Running::start(scenario.run(3, &["--rate=500"]));
    run.until("checkpoint");
    run.until("checkpoint");
    for _ in 0..10_000 {
        run.stop();
        if is_being_written(&scenario.path("out.sqlite")) == inside {
            return run;
        }
        run.signal(Signal::CONT);
        std::thread::park_timeout(Duration::from_micros(300));
    }
    panic!("never found {} a write transaction", if inside { "inside" } else { "outside" });
}

fn take_over(scenario: &Scenario) -> Command {
    scenario.run(3, &["--take-over"])
}

#[test]
fn a_process_that_stood_still_while_another_took_over_is_fenced_and_changes_nothing() {
    let scenario = Scenario::with_orders();
    let first = stopped(&scenario, false);
    let refused = scenario.run(3, &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--take-over"), "{}", stderr(&refused));

    let second = take_over(&scenario).output().unwrap();
    assert!(second.status.success(), "{}", stderr(&second));
    scenario.verify();

    first.signal(Signal::CONT);
    let (last, status, text) = first.end();
    assert_eq!(status.code(), FENCED, "{last:?} {text}");
    assert_eq!(last.unwrap()["event"], "failed");
    scenario.verify();
}

#[test]
fn who_waits_for_a_process_that_stands_still_in_a_write_names_it() {
    let scenario = Scenario::with_orders();
    let first = stopped(&scenario, true);
    let mut second = Running::start(take_over(&scenario));
    let cause = second.until("restarting")["cause"].as_str().unwrap().to_owned();
    assert!(cause.contains(&format!("process {} (", first.pid())), "{cause}");
    assert!(cause.contains("which is stopped, has the file locked"), "{cause}");

    first.signal(Signal::CONT);
    let (last, status, text) = second.end();
    assert!(status.success(), "{last:?} {text}");
    let (last, status, text) = first.end();
    assert_eq!(status.code(), FENCED, "{last:?} {text}");
    scenario.verify();
}

#[test]
fn a_second_run_is_refused_while_the_first_answers_and_a_take_over_ends_the_first() {
    let scenario = Scenario::with_orders();
    let mut first = Running::start(scenario.run(3, &["--rate=500"]));
    first.until("checkpoint");
    let refused = scenario.run(3, &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains(&format!("process {}", first.pid())) && text.contains("--take-over"), "{text}");
    first.until("checkpoint");

    let second = take_over(&scenario).output().unwrap();
    assert!(second.status.success(), "{}", stderr(&second));
    let (last, status, text) = first.end();
    assert_eq!(status.code(), FENCED, "no restart strategy brings it back: {last:?} {text}");
    scenario.verify();
}

#[test]
fn a_kill_of_the_whole_process_group_loses_and_doubles_nothing() {
    let scenario = Scenario::with_orders();
    // A shell that would start the job again, in a group of its own.
    let run = scenario.run(3, &["--rate=1000"]);
    let mut shell = Command::new("/bin/sh");
    let words = std::iter::once(run.get_program()).chain(run.get_args());
    shell.args(["-c", "while :; do \"$@\"; done", "sh"]).args(words);
    let mut shell = {
        shell.current_dir(scenario.path("")).process_group(0);
        Running::start(shell)
    };
    shell.until("checkpoint");
    shell.until("checkpoint");
    kill_process_group(Pid::from_raw(shell.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    let (last, _, _) = shell.end();
    assert!(last.is_none_or(|event| event["event"] != "finished"));
    let events = scenario.run_and_verify(3);
    assert!(events[0]["restored"].as_u64() >= Some(2), "{:?}", events[0]);
}

/// A folder whose state can be undone also when the test fails.
struct Undone {
    command: &'static str,
    args: Vec<PathBuf>,
}

impl Drop for Undone {
    fn drop(&mut self) {
        let _ = Command::new(self.command).args(&self.args).stderr(Stdio::null()).status();
    }
}

fn permitted(output: std::io::Result<Output>, what: &str) -> bool {
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("skipped: {what} is not permitted here: {}", stderr(&output).trim());
            false
        }
        Err(error) => {
            eprintln!("skipped: {what} is not possible here: {error}");
            false
        }
    }
}

/// Declined with this reason, then mended, then the next checkpoint completes and the job finishes.
fn declines_and_goes_on(scenario: &Scenario, spoil: impl FnOnce(), reasons: &[&str], mend: impl FnOnce()) {
    let mut run = Running::start(scenario.run_every("200ms", 3, &["--rate=500"]));
    run.until("checkpoint");
    spoil();
    let declined = run.until("checkpoint_failed");
    mend();
    let reason = declined["reason"].as_str().unwrap();
    assert!(reason.contains("declined by") && reasons.iter().any(|words| reason.contains(words)), "{reason}");
    let failed = declined["id"].as_u64();
    let complete = run.until("checkpoint");
    assert!(complete["id"].as_u64() > failed, "{complete} after {declined}");
    let (last, status, text) = run.end();
    assert!(status.success(), "{last:?} {text}");
    scenario.verify();
}

#[test]
fn a_full_disk_declines_a_checkpoint_and_the_job_goes_on() {
    let scenario = Scenario::with_orders();
    let folder = scenario.path("checkpoints");
    fs::create_dir(&folder).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(&folder).output();
    if !permitted(mounted, "mounting a small file system") {
        return;
    }
    let _mounted = Undone { command: "umount", args: vec!["-l".into(), folder.clone()] };
    let ballast = folder.join("ballast");
    let fill = || {
        let mut bytes = 256 * 1024;
        while bytes > 0 {
            let grown = fs::OpenOptions::new().append(true).create(true).open(&ballast);
            let written = grown.and_then(|mut file| std::io::Write::write_all(&mut file, &vec![0; bytes]));
            if written.is_err() {
                bytes /= 2;
            }
        }
    };
    let empty = || fs::remove_file(&ballast).unwrap();
    declines_and_goes_on(&scenario, fill, &["No space left"], empty);
}

#[test]
fn a_folder_that_cannot_be_written_for_a_while_declines_a_checkpoint_and_the_job_goes_on() {
    let scenario = Scenario::with_orders();
    let folder = scenario.path("checkpoints");
    fs::create_dir(&folder).unwrap();
    let change = |flag: &str| Command::new("chattr").arg(flag).arg(&folder).output();
    if !permitted(change("+i"), "chattr +i") || !permitted(change("-i"), "chattr -i") {
        return;
    }
    let _writable = Undone { command: "chattr", args: vec!["-i".into(), folder.clone()] };
    let lock = || assert!(change("+i").unwrap().status.success());
    let unlock = || assert!(change("-i").unwrap().status.success());
    declines_and_goes_on(&scenario, lock, &["Operation not permitted", "Permission denied"], unlock);
}
