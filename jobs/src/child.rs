//! A child process that reports one JSON object per line, watched and, when wanted, killed.
//!
//! Owns: the process, the thread that reads its lines, the last lines of its error output, and the promise that no
//! child outlives its watcher: a dropped [`Child`] is killed.
//! Does not own: what the lines mean (the type parameter says it), nor when to kill.
//! Runs on: the watcher's thread, with two reader threads that end with the child's pipes.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::de::DeserializeOwned;

/// Lines read ahead of the watcher; the child waits when it is further ahead.
const LINES_AHEAD: usize = 1_024;
/// Lines of error output that are kept to be shown when the child fails.
const ERROR_LINES_KEPT: usize = 20;

/// What can go wrong with a child.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It could not be started.
    #[error("cannot start {program}\n  help: check that the file exists and may be executed")]
    Start {
        /// The program.
        program: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It wrote a line that is not one of the objects expected.
    #[error("process {pid} wrote a line that is not an event: {line}")]
    Line {
        /// Its process id.
        pid: u32,
        /// The line.
        line: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// It said nothing for too long.
    #[error("process {pid} reported nothing for {} s\n  help: run it by hand with --json to see where it stands", .silence.as_secs())]
    Silent {
        /// Its process id.
        pid: u32,
        /// How long was waited.
        silence: Duration,
    },
    /// A read, a wait or a signal failed.
    #[error("cannot {action} process {pid}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Its process id.
        pid: u32,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// How a child ended.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// The last lines of its error output.
    pub error_output: Vec<String>,
}

impl Ending {
    /// True when it was ended by SIGKILL.
    pub fn was_killed(&self) -> bool {
        self.status.signal() == Some(rustix::process::Signal::KILL.as_raw())
    }
}

/// A running child whose lines are events of type `E`.
#[derive(Debug)]
pub struct Child<E> {
    process: Process,
    lines: Receiver<io::Result<String>>,
    errors: Option<JoinHandle<Vec<String>>>,
    events: PhantomData<fn() -> E>,
}

impl<E: DeserializeOwned> Child<E> {
    /// Starts `command` with both outputs piped to this process.
    ///
    /// # Errors
    /// [`ChildError::Start`].
    pub fn start(mut command: Command) -> Result<Self, ChildError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|source| ChildError::Start { program, source })?;
        let (to_watcher, lines) = sync_channel(LINES_AHEAD);
        if let Some(output) = process.stdout.take() {
            std::thread::spawn(move || forward_lines(output, &to_watcher));
        }
        let errors = process.stderr.take().map(|output| std::thread::spawn(move || last_lines(output)));
        Ok(Self { process, lines, errors, events: PhantomData })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The next event, or `None` when the child has closed its output.
    ///
    /// # Errors
    /// [`ChildError::Silent`] after `patience` without a line; [`ChildError::Line`]; [`ChildError::Io`].
    pub fn next_event(&mut self, patience: Duration) -> Result<Option<E>, ChildError> {
        let pid = self.pid();
        let line = match self.lines.recv_timeout(patience) {
            Ok(line) => {
                line.map_err(|source| ChildError::Io { action: "read the output of", pid, source })?
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => return Err(ChildError::Silent { pid, silence: patience }),
        };
        match serde_json::from_str(&line) {
            Ok(event) => Ok(Some(event)),
            Err(source) => Err(ChildError::Line { pid, line, source }),
        }
    }

    /// Sends SIGKILL: the child gets no chance to finish anything. What it had written before can still be read.
    ///
    /// # Errors
    /// [`ChildError::Io`].
    pub fn kill(&mut self) -> Result<(), ChildError> {
        let id = rustix::process::Pid::from_child(&self.process);
        match rustix::process::kill_process(id, rustix::process::Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(ChildError::Io { action: "kill", pid: self.pid(), source: errno.into() }),
        }
    }

    /// Waits for the end. Lines not yet read are dropped.
    ///
    /// # Errors
    /// [`ChildError::Io`].
    pub fn wait(mut self) -> Result<Ending, ChildError> {
        let pid = self.pid();
        // A child that waits for room in its pipe would never end: what it still has to say is read away.
        while self.lines.recv().is_ok() {}
        let status =
            self.process.wait().map_err(|source| ChildError::Io { action: "wait for", pid, source })?;
        let error_output = self.errors.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Ok(Ending { status, error_output })
    }
}

impl<E> Drop for Child<E> {
    fn drop(&mut self) {
        // After `wait` both calls find nothing to do; before it they keep the child from outliving its watcher.
        if !matches!(self.process.try_wait(), Ok(Some(_))) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// Ends with the output, or when the watcher has gone.
fn forward_lines(output: impl Read, watcher: &SyncSender<io::Result<String>>) {
    for line in BufReader::new(output).lines() {
        let failed = line.is_err();
        if watcher.send(line).is_err() || failed {
            return;
        }
    }
}

fn last_lines(output: impl Read) -> Vec<String> {
    let mut kept = VecDeque::with_capacity(ERROR_LINES_KEPT);
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if kept.len() == ERROR_LINES_KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Child<u32> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).stdin(Stdio::piped());
        Child::start(command).unwrap()
    }

    #[test]
    fn events_come_in_order_and_then_the_end_with_the_last_words() {
        let mut child = shell("echo 1; echo 2; echo oh no >&2; exit 3");
        assert_eq!(child.next_event(PATIENCE).unwrap(), Some(1));
        assert_eq!(child.next_event(PATIENCE).unwrap(), Some(2));
        assert_eq!(child.next_event(PATIENCE).unwrap(), None);
        let ending = child.wait().unwrap();
        assert_eq!(ending.status.code(), Some(3));
        assert_eq!(ending.error_output, ["oh no"]);
        assert!(!ending.was_killed());
    }

    #[test]
    fn a_killed_child_ends_by_the_signal() {
        let mut child = shell("echo 1; read never");
        assert_eq!(child.next_event(PATIENCE).unwrap(), Some(1));
        child.kill().unwrap();
        assert_eq!(child.next_event(PATIENCE).unwrap(), None);
        assert!(child.wait().unwrap().was_killed());
    }

    #[test]
    fn a_line_that_is_no_event_and_a_silence_are_errors() {
        let mut child = shell("echo hello; read never");
        assert!(matches!(child.next_event(PATIENCE), Err(ChildError::Line { .. })));
        assert!(matches!(child.next_event(Duration::from_millis(1)), Err(ChildError::Silent { .. })));
    }

    #[test]
    fn a_child_more_talkative_than_its_watcher_still_ends() {
        let child = shell("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done");
        assert!(child.wait().unwrap().status.success());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Child::<u32>::start(Command::new("/nowhere/orders")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/orders"));
    }
}
