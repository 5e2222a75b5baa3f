//! The folder of part files goes bad under a running job, and comes to its senses again: a disk that is full, folders that cannot be written.
//!
//! Owns: the scenarios. What this machine does not permit (mounting, `chattr`) is skipped with a word on standard error.
//! Does not own: kills (the tests of the connectors), the same strikes on the checkpoint folder (the tests of the orders job).
//! Runs on: the test's thread and the job's.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tidegate::connectors::file::FileSink;
use tidegate::engine::checkpoint::stats::CheckpointOutcome;
use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::{MasterNotice, RestartStrategy};
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::checkpoints_every;

const NUMBERS: u64 = 20_000;

/// What a reader finds who leaves hidden folders alone, sorted.
fn finished(out: &Path) -> Vec<u64> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(out).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "txt") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.ends_with('\n'), "{path:?} is empty or torn");
            numbers.extend(text.lines().map(|line| line.parse::<u64>().unwrap()));
        }
    }
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a reader sees a number twice");
    numbers
}

/// Where the sink keeps what is not finished: a folder for each job, log and sink, one in the other.
fn staging(out: &Path) -> PathBuf {
    let mut folder = out.join(".tidegate");
    for _ in 0..3 {
        folder = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    }
    folder
}

/// Spoils the folder at the second checkpoint, and mends it when the job has said what is wrong: the next checkpoint completes, and the
/// job finishes with every number once.
fn goes_on(out: &Path, spoil: impl FnOnce(), words: &[&str], mend: impl FnOnce()) {
    let checkpoints = tempfile::tempdir().unwrap();
    let storage = CheckpointStorage::open(checkpoints.path().to_str().unwrap()).unwrap();
    let env = StreamEnvironment::new();
    let numbers = env.source("numbers", Datagen::new(|n| n).bounded(NUMBERS).rate_per_second(8_000));
    let _ = numbers.rebalance().sink("parts", FileSink::text(out));
    let graph = env.into_graph("scenario", 3, 128).unwrap();
    let restart = RestartStrategy::ExponentialDelay { initial_ms: 20, max_ms: 200, reset_after_ms: 600_000 };
    let config = ExecutionConfig { restart, ..checkpoints_every(100) };
    let mut runner = LocalRunner::new(graph, config, Some(storage)).unwrap();
    let (mut completed, mut completed_after, mut said) = (0, 0, Vec::new());
    let (mut spoil, mut mend) = (Some(spoil), Some(mend));
    let outcome = runner.run(|notice| {
        let reason = match notice {
            ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) => {
                completed += 1;
                completed_after += u32::from(mend.is_none());
                if completed == 2 {
                    spoil.take().into_iter().for_each(|spoil| spoil());
                }
                return;
            }
            ExecutionNotice::Master(MasterNotice::CheckpointFailed(stats)) => match &stats.outcome {
                CheckpointOutcome::Failed(reason) => reason.to_string(),
                CheckpointOutcome::Complete { .. } => return,
            },
            ExecutionNotice::Restarting { cause, .. } => cause.clone(),
            _ => return,
        };
        said.push(reason.clone());
        if spoil.is_none() && words.iter().any(|words| reason.contains(words)) {
            finished(out);
            mend.take().into_iter().for_each(|mend| mend());
        }
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    assert!(mend.is_none(), "the job never said {words:?}: {said:?}");
    assert!(completed_after > 0, "no checkpoint completed after that");
    assert_eq!(finished(out), (0..NUMBERS).collect::<Vec<_>>());
    assert_eq!(fs::read_dir(staging(out)).unwrap().count(), 0, "nothing is left behind");
}

/// A command that undoes a strike, also when the test fails.
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
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            eprintln!("skipped: {what} is not permitted here: {}", words.trim());
            false
        }
        Err(error) => {
            eprintln!("skipped: {what} is not possible here: {error}");
            false
        }
    }
}

#[test]
fn a_disk_that_is_full_for_a_while_is_named_and_readers_of_finished_parts_see_exactly_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&disk).output();
    if !permitted(mounted, "mounting a small file system") {
        return;
    }
    let _mounted = Undone { command: "umount", args: vec!["-l".into(), disk.clone()] };
    let ballast = disk.join("ballast");
    let fill = || {
        let mut bytes = 1024 * 1024;
        while bytes > 0 {
            let grown = fs::OpenOptions::new().append(true).create(true).open(&ballast);
            if grown.and_then(|mut file| file.write_all(&vec![0; bytes])).is_err() {
                bytes /= 2;
            }
        }
    };
    goes_on(&disk.join("out"), fill, &["the disk is full"], || fs::remove_file(&ballast).unwrap());
}

fn change(flag: &str, folder: &Path) -> std::io::Result<Output> {
    Command::new("chattr").arg(flag).arg(folder).output()
}

/// A folder of the sink becomes immutable for a while.
fn unwritable(place: fn(&Path) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trial = folder.path().join("trial");
    fs::create_dir(&trial).unwrap();
    if !permitted(change("+i", &trial), "chattr +i") || !permitted(change("-i", &trial), "chattr -i") {
        return;
    }
    let out = folder.path().join("out");
    let _writable = Undone { command: "chattr", args: vec!["-R".into(), "-i".into(), out.clone()] };
    let lock = || assert!(change("+i", &place(&out)).unwrap().status.success());
    let unlock = || assert!(change("-i", &place(&out)).unwrap().status.success());
    goes_on(&out, lock, &["cannot be written by this user"], unlock);
}

#[test]
fn an_output_folder_that_cannot_be_written_for_a_while_is_named_and_nothing_is_lost_or_doubled() {
    unwritable(Path::to_owned);
}

#[test]
fn a_staging_folder_that_cannot_be_written_for_a_while_is_named_and_nothing_is_lost_or_doubled() {
    unwritable(staging);
}
