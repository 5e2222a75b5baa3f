//! A run that is watched while it runs.
//!
//! Owns: the process, its events, and that it does not outlive its test.
//! Does not own: what is done to it.
//! Runs on: the test thread, with a thread that reads.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Nothing said for so long: something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Running {
    process: Child,
    events: Receiver<Value>,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (said, events) = sync_channel(100_000);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Ok(event) = serde_json::from_str(&line) else { return };
                if said.send(event).is_err() {
                    return;
                }
            }
        });
        Self { process, events }
    }

    /// The next event; `None` at the end.
    pub(crate) fn next(&self) -> Option<Value> {
        match self.events.recv_timeout(PATIENCE) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing was said for {PATIENCE:?}"),
        }
    }

    /// The next event of this kind.
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            if event["event"] == kind {
                return event;
            }
            seen.push(event);
        }
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        panic!("ended without {kind:?}: {seen:?}\n{text}")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Sends SIGSTOP and returns when every thread stands still; the signal alone is on its way when it is sent.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid());
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        for _ in 0..60_000 {
            if std::fs::read_dir(&tasks).unwrap().all(is_stopped) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        panic!("process {} does not stop", self.pid());
    }

    /// Its last event, its exit status, and what it wrote to standard error.
    pub(crate) fn end(mut self) -> (Option<Value>, ExitStatus, String) {
        let mut last = None;
        while let Some(event) = self.next() {
            last = Some(event);
        }
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (last, self.process.wait().unwrap(), text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
