//! A folder, jobs that run in it, and commands about them.
//!
//! Owns: processes, which die with their test; waiting with a deadline. Does not own: the scenarios. Runs on: the test's thread, and a
//! thread for each job that reads its lines.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidegate::engine::clock::{Clock, SystemClock};

/// Nothing here takes as long, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("TIDEGATE_RUNTIME_DIR", self.path("runtime"));
        command
    }

    /// The job, with its checkpoints in `c` and JSON lines.
    pub(crate) fn job(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_numbers-job"));
        command.args(["run", "--checkpoints", "c", "--json"]).args(args);
        command
    }

    /// The job's binary, with nothing but these arguments.
    pub(crate) fn job_binary(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_numbers-job"));
        command.args(args);
        command
    }

    /// A job that has begun to work.
    pub(crate) fn started(&self, args: &[&str]) -> Job {
        let mut job = Job::spawn(self.job(args));
        job.wait_for("started");
        job
    }

    pub(crate) fn tidegate_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_tidegate-cli"));
        command.args(args);
        command
    }

    pub(crate) fn tidegate(&self, args: &[&str]) -> Output {
        self.tidegate_command(args).output().unwrap()
    }

    /// A command that has to succeed, and its words.
    pub(crate) fn words(&self, args: &[&str]) -> String {
        let output = self.tidegate(args);
        assert!(output.status.success(), "{args:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    /// A command that has to succeed, and its JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let words = self.words(&[args, &["--json"]].concat());
        serde_json::from_str(&words).unwrap_or_else(|error| panic!("{error}: {words}"))
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running job; it is killed with its test.
pub(crate) struct Job {
    child: Child,
    lines: Receiver<Value>,
}

impl Job {
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (to_test, lines) = sync_channel(100_000);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = to_test.send(serde_json::from_str(&line).unwrap_or(Value::String(line)));
            }
        });
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next event of this kind.
    pub(crate) fn wait_for(&mut self, event: &str) -> Value {
        self.next_of(&[event])
    }

    /// The next event of one of these kinds.
    pub(crate) fn next_of(&mut self, events: &[&str]) -> Value {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if events.iter().any(|event| line["event"] == *event) => return line,
                Ok(_) => {}
                Err(_) => {
                    let _ = self.child.kill();
                    let mut said = String::new();
                    if let Some(mut errors) = self.child.stderr.take() {
                        let _ = std::io::Read::read_to_string(&mut errors, &mut said);
                    }
                    panic!("no {events:?}: {said}");
                }
            }
        }
    }

    /// How it ended, and its error output.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = poll(|| self.child.try_wait().unwrap());
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        (status, said)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again until there is something.
pub(crate) fn poll<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let clock = SystemClock::new();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock.now() < PATIENCE, "nothing came of it in {} s", PATIENCE.as_secs());
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The files below a folder, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
