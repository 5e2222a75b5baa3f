//! The example `file_sink` as a process that is killed with SIGKILL at each fault point of the file sink, and started again.
//!
//! Owns: kills of a real process, and what a reader finds. Does not own: schedules inside one process (the tests beside the sink).
//! Runs on: the test threads; each run is a process.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tidegate_connectors::file::FileSource;
use tidegate_engine::api::Source;
use tidegate_engine::checkpoint::commit_log::{LogClient, NonceSource};
use tidegate_engine::io::TokioIo;
use tidegate_state::CheckpointStorage;

const NUMBERS: u64 = 20_000;
const SIGKILL: i32 = 9;
/// The example's.
const ROLL_AT_BYTES: u64 = 16 * 1024;

#[derive(Clone, serde::Deserialize)]
struct Number {
    #[allow(dead_code, reason = "it is only counted")]
    number: u64,
}

/// Cargo builds the examples together with the tests, into the folder beside theirs.
fn run(folder: &Path, parallelism: u32, fault: Option<&str>) -> Output {
    let deps = std::env::current_exe().unwrap();
    let example = deps.parent().and_then(Path::parent).unwrap().join("examples/file_sink");
    let mut command = Command::new(example);
    command.current_dir(folder).args(["out", "checkpoints", &parallelism.to_string()]);
    if let Some(fault) = fault {
        command.env("TIDEGATE_FAULT", fault);
    }
    command.output().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn finished(folder: &Path) -> Vec<u64> {
    let mut numbers = Vec::new();
    for parity in ["even", "odd"] {
        for file in files(&folder.join("out").join(format!("parity={parity}"))) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.ends_with("\"}\n"), "{file:?} is empty or torn");
            for line in text.lines() {
                let (number, rest) = line.strip_prefix("{\"number\":").unwrap().split_once(',').unwrap();
                assert_eq!(rest, format!("\"parity\":\"{parity}\"}}"));
                numbers.push(number.parse().unwrap());
            }
        }
    }
    numbers.sort_unstable();
    numbers
}

fn staged(folder: &Path) -> Vec<PathBuf> {
    files(&folder.join("out/.tidegate"))
}

fn dies(folder: &Path, parallelism: u32, fault: &str) {
    let run = run(folder, parallelism, Some(fault));
    assert_eq!(run.status.signal(), Some(SIGKILL), "{fault}: {}", String::from_utf8_lossy(&run.stderr));
    let numbers = finished(folder);
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{fault}: something is there twice");
}

fn ends(folder: &Path, parallelism: u32) {
    let run = run(folder, parallelism, None);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(finished(folder), (0..NUMBERS).collect::<Vec<_>>());
    assert_eq!(staged(folder), Vec::<PathBuf>::new());
}

fn survives(fault: &str) {
    let folder = tempfile::tempdir().unwrap();
    dies(folder.path(), 3, fault);
    ends(folder.path(), 2);
}

#[test]
fn a_kill_around_a_flush_or_a_prepare_neither_loses_nor_doubles() {
    for fault in [
        "file_sink.flush.before:4",
        "file_sink.flush.after:7",
        "file_sink.prepare.before:9",
        "file_sink.prepare.after:12",
    ] {
        survives(fault);
    }
}

/// Files below a folder that are at least so large.
fn full_parts(files: &[PathBuf], bytes: u64) -> usize {
    files.iter().filter(|file| std::fs::metadata(file).unwrap().len() >= bytes).count()
}

#[test]
fn field_case_99_a_kill_loses_no_tail_that_is_smaller_than_a_part() {
    let folder = tempfile::tempdir().unwrap();
    // The checkpoint is complete, and its parts are pending; the last one of each subtask was cut by the barrier, not by its size.
    dies(folder.path(), 4, "commit_log.checkpoint.after:1");
    let tails = staged(folder.path());
    assert!(
        full_parts(&tails, ROLL_AT_BYTES) < tails.len() && finished(folder.path()).is_empty(),
        "{tails:?}"
    );
    ends(folder.path(), 3);
}

#[test]
fn field_case_71_parts_that_live_longer_than_the_retained_checkpoints_survive_restarts() {
    let folder = tempfile::tempdir().unwrap();
    // Three checkpoints are retained, and follow each other within 20 ms; a part would be cut after a minute.
    dies(folder.path(), 2, "commit_log.checkpoint.after:4");
    ends(folder.path(), 2);
}

#[test]
fn a_kill_around_a_link_or_an_unlink_neither_loses_nor_doubles() {
    for fault in [
        "file_sink.link.before:5",
        "file_sink.link.after:8",
        "file_sink.unlink.before:5",
        "file_sink.unlink.after:3",
    ] {
        survives(fault);
    }
}

#[test]
fn a_kill_in_the_sweep_after_a_kill_neither_loses_nor_doubles() {
    for fault in ["file_sink.sweep.before", "file_sink.sweep.after"] {
        let folder = tempfile::tempdir().unwrap();
        dies(folder.path(), 2, "file_sink.prepare.after:10");
        dies(folder.path(), 3, fault);
        ends(folder.path(), 1);
    }
}

#[test]
fn pending_files_are_published_by_their_owners_after_4_become_3() {
    let folder = tempfile::tempdir().unwrap();
    dies(folder.path(), 4, "file_sink.link.before:1");
    assert!(finished(folder.path()).is_empty());
    assert!(!staged(folder.path()).is_empty());
    dies(folder.path(), 2, "file_sink.link.after:3");
    ends(folder.path(), 3);
}

#[test]
fn a_pending_file_removed_by_hand_is_lost_and_named_with_its_range() {
    let folder = tempfile::tempdir().unwrap();
    dies(folder.path(), 1, "file_sink.link.before:1");
    let pending: Vec<_> = staged(folder.path())
        .into_iter()
        .filter(|path| {
            path.to_str().unwrap().ends_with("~1~0.pending") && path.to_str().unwrap().contains("/1~0~0~")
        })
        .collect();
    assert_eq!(pending.len(), 1, "the first part of the first epoch: {:?}", staged(folder.path()));
    std::fs::remove_file(&pending[0]).unwrap();
    let run = run(folder.path(), 1, None);
    assert_eq!(run.status.code(), Some(1));
    let text = String::from_utf8_lossy(&run.stderr);
    for words in [
        "transaction lost: numbers/",
        "is neither pending nor finished",
        "records of \"parts\" after checkpoint 0 up to checkpoint 1 are not in the output",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(finished(folder.path()).is_empty(), "the other parts of that transaction are not published");
}

#[test]
fn a_lost_transaction_that_was_given_up_is_missing_whole_and_the_job_goes_on_without_it() {
    let folder = tempfile::tempdir().unwrap();
    dies(folder.path(), 1, "file_sink.link.before:1");
    let first_epoch = |path: &PathBuf| path.to_str().unwrap().contains("/1~0~0~");
    let pending: Vec<_> = staged(folder.path()).into_iter().filter(first_epoch).collect();
    assert!(pending.len() > 1, "several parts: {pending:?}");
    std::fs::remove_file(&pending[0]).unwrap();
    let text = String::from_utf8(run(folder.path(), 1, None).stderr).unwrap();
    let command = text.split_once("tidegate txn forget ").unwrap().1.split_once(" '").unwrap().1;
    let name = command.split_once('\'').unwrap().0;
    forget(folder.path(), name);
    // Said once, it holds for each start until a checkpoint follows.
    dies(folder.path(), 1, "sink.recover.after:1");
    let end = run(folder.path(), 2, None);
    assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
    let numbers = finished(folder.path());
    let first = numbers[0];
    assert!(first > 0 && first < NUMBERS / 2, "the records of one checkpoint are missing: up to {first}");
    assert_eq!(numbers, (first..NUMBERS).collect::<Vec<_>>(), "and no others");
    assert_eq!(staged(folder.path()), Vec::<PathBuf>::new(), "its other parts are removed");
}

fn forget(folder: &Path, name: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let storage = CheckpointStorage::open(folder.join("checkpoints").to_str().unwrap()).unwrap();
        let log = LogClient::open_existing(storage, TokioIo::shared(runtime.handle().clone())).await.unwrap();
        log.forget(name, &mut NonceSource::new(0x0f0e_9e77)).await.unwrap();
    });
}

#[test]
fn what_was_written_is_read_back_by_the_file_source() {
    let folder = tempfile::tempdir().unwrap();
    ends(folder.path(), 2);
    let even = FileSource::json_lines::<Number>(folder.path().join("out/parity=even"));
    assert_eq!(even.total_records(), Some(NUMBERS / 2));
}
