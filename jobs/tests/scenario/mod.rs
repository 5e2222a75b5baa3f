//! A folder with generated orders, the `orders` binary run on it, and the audit.
//!
//! Owns: flags that make a run short and still give it several checkpoints.
//! Does not own: what is done to the run.
//! Runs on: the test thread; each run is a process.
#![allow(dead_code, clippy::unwrap_used, reason = "a part of test programs, each of which uses some of it")]

pub(crate) mod running;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const ORDERS: u64 = 2_000;
const USERS: u64 = 70;
/// Slow enough for many checkpoints also on a busy machine; most runs die long before their end.
const RATE: u64 = 3_000;
const SIGKILL: i32 = 9;

/// See the module.
pub(crate) struct Scenario {
    folder: tempfile::TempDir,
}

impl Scenario {
    /// A folder whose `in` has the input.
    pub(crate) fn with_orders() -> Self {
        let scenario = Self { folder: tempfile::tempdir().unwrap() };
        let (orders, users) = (ORDERS.to_string(), USERS.to_string());
        let args = ["generate", "--orders", &orders, "--users", &users, "--partitions", "3", "--out", "in"];
        assert!(scenario.orders(&args).output().unwrap().status.success());
        scenario
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn orders(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orders"));
        command.current_dir(self.folder.path()).args(args).env_remove("TIDEGATE_FAULT");
        command
    }

    /// `orders run` from `in` to `out.sqlite`, with checkpoints every 20 ms in `checkpoints`.
    pub(crate) fn run(&self, parallelism: u32, more: &[&str]) -> Command {
        self.run_every("20ms", parallelism, more)
    }

    /// The same with another checkpoint interval.
    pub(crate) fn run_every(&self, interval: &str, parallelism: u32, more: &[&str]) -> Command {
        let mut command = self.orders(&["run", "--source", "files:in", "--sink", "sqlite:out.sqlite"]);
        command.args(["--checkpoints", "checkpoints", "--checkpoint-interval", interval, "--json"]);
        command.arg(format!("--parallelism={parallelism}")).args(more);
        command
    }

    /// A run slowed down to several checkpoints that dies at the `nth` pass through a fault point; a run that lives fails the test.
    pub(crate) fn run_and_die(&self, parallelism: u32, point: &str, nth: u32) {
        self.run_and_die_at(RATE, parallelism, point, nth);
    }

    /// As [`Self::run_and_die`], at so many orders a second.
    pub(crate) fn run_and_die_at(&self, rate: u64, parallelism: u32, point: &str, nth: u32) {
        let rate = format!("--rate={rate}");
        let mut command = self.run(parallelism, &[&rate]);
        let output = command.env("TIDEGATE_FAULT", format!("{point}:{nth}")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.signal(),
            Some(SIGKILL),
            "{point}:{nth} was never struck: {said}{}",
            stderr(&output)
        );
    }

    /// A run to the end of the input, and the audit: all zeros. Answers with what the run said.
    pub(crate) fn run_and_verify(&self, parallelism: u32) -> Vec<Value> {
        let output = self.run(parallelism, &[]).output().unwrap();
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        self.verify();
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn verify(&self) {
        let args = ["verify", "--source", "files:in", "--sink", "sqlite:out.sqlite", "--json"];
        let output = self.orders(&args).output().unwrap();
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    }

    /// The files below a folder, sorted.
    pub(crate) fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(&self.path(folder), &mut files);
        files.sort();
        files
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            collect(&entry.path(), files);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
