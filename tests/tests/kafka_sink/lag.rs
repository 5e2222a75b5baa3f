//! How far a job is behind its topic, as an operator sees it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::topic::{Topic, eventually};

const NUMBERS: u64 = 3_000;

struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("TIDEGATE_RUNTIME_DIR", folder.join("runtime"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn the_lag_of_a_running_job_is_listed_and_falls_as_it_reads() {
    let (source, topic, folder) = (Topic::new(2), Topic::new(1), tempfile::tempdir().unwrap());
    source.fill(NUMBERS);
    let job = command(env!("CARGO_BIN_EXE_kafka-numbers-job"), folder.path())
        .args(["run", "--json", "--checkpoints", "c", "--checkpoint-interval", "100ms", "--parallelism", "2"])
        .args(["--count", "1", "--rate", "300", "--kafka", &topic.bootstrap, "--topic", &topic.name])
        .args(["--from", &source.name])
        .spawn()
        .unwrap();
    let _job = Job(job);
    let listed = |args: &[&str]| {
        let mut list = command(env!("CARGO_BIN_EXE_tidegate-cli"), folder.path());
        let output = list.args(args).stdout(Stdio::piped()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let report = || serde_json::from_str::<Value>(&listed(&["list", "c/", "--json"])).ok();
    let figures = || {
        let report = report()?;
        Some((report[0]["records_in"].as_u64()?, report[0]["lag"].as_u64()?))
    };
    let mut first = (0, 0);
    // The ends of the partitions are told once a second.
    eventually("a lag", || {
        first = figures().unwrap_or_default();
        first.1 > 0
    });
    assert!(first.0 + first.1 <= NUMBERS, "{first:?}");
    eventually("it falls", || figures().is_some_and(|(read, lag)| read > first.0 && lag < first.1));
    assert!(listed(&["list"]).contains("lag"));
}
