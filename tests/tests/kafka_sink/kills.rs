//! `kill -9` of the job's process around the commit, and a start over.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::topic::Topic;

pub(crate) struct Run<'a> {
    pub(crate) topic: &'a Topic,
    pub(crate) folder: &'a Path,
    pub(crate) parallelism: u32,
    /// Numbers come from this topic.
    pub(crate) from: Option<&'a Topic>,
}

impl Run<'_> {
    /// Runs the job, with a fault or to its end.
    pub(crate) fn output(&self, count: u64, fault: &str) -> Output {
        self.output_with(count, fault, &[])
    }

    /// The same with more arguments.
    pub(crate) fn output_with(&self, count: u64, fault: &str, more: &[&str]) -> Output {
        let Self { topic, folder, parallelism, from } = self;
        Command::new(env!("CARGO_BIN_EXE_kafka-numbers-job"))
            .args(["run", "--json", "--checkpoints", "c", "--checkpoint-interval", "100ms"])
            .args([
                "--count",
                &count.to_string(),
                "--rate",
                "4000",
                "--parallelism",
                &parallelism.to_string(),
            ])
            .args(["--kafka", &topic.bootstrap, "--topic", &topic.name])
            .args(from.iter().flat_map(|from| ["--from", &from.name]))
            .args(more)
            .current_dir(folder)
            .env("TIDEGATE_RUNTIME_DIR", folder.join("runtime"))
            .env("TIDEGATE_FAULT", fault)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The same. Whether it ended well.
    pub(crate) fn run(&self, count: u64, fault: &str) -> bool {
        let output = self.output(count, fault);
        if !output.status.success() && fault.is_empty() {
            panic!(
                "{}\n{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        output.status.success()
    }
}

fn killed_at(fault: &str, parallelisms: [u32; 2]) {
    let (topic, folder) = (Topic::new(3), tempfile::tempdir().unwrap());
    let run = |parallelism| Run { topic: &topic, folder: folder.path(), parallelism, from: None };
    let count = 2_000;
    assert!(!run(parallelisms[0]).run(count, fault), "{fault} does not strike");
    assert!(run(parallelisms[1]).run(count, ""));
    topic.expect(0..count);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

#[test]
fn a_process_killed_before_its_commit_loses_and_doubles_nothing() {
    killed_at("sink.commit.before:2", [1, 1]);
}

#[test]
fn a_process_killed_after_its_commit_loses_and_doubles_nothing() {
    killed_at("sink.commit.after:2", [2, 2]);
}

#[test]
fn a_process_killed_between_flush_and_checkpoint_loses_and_doubles_nothing() {
    killed_at("sink.prepare.after:3", [2, 3]);
}

#[test]
fn a_process_killed_before_its_first_checkpoint_and_started_with_lower_parallelism_hides_nothing() {
    let (topic, folder) = (Topic::new(1), tempfile::tempdir().unwrap());
    let run = |parallelism| Run { topic: &topic, folder: folder.path(), parallelism, from: None };
    assert!(!run(3).run(500, "sink.prepare.after:1"));
    assert!(run(1).run(500, ""));
    topic.expect(0..500);
    assert_eq!(topic.open_transactions(), [""; 0]);
}
