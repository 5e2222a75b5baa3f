//! The command line of a run that another command starts and watches.
//!
//! Owns: which flags such a run is given.
//! Does not own: the flags ([`crate::run`]), the process ([`crate::attempt`]).
//! Runs on: the main thread.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tidegate::state::fault::FAULT_VARIABLE;

use crate::address::{SinkAddress, SourceAddress};

/// What a watched run is told.
#[derive(Debug, Clone)]
pub(crate) struct RunLine {
    /// The orders.
    pub(crate) source: SourceAddress,
    /// The tables.
    pub(crate) sink: SinkAddress,
    /// A second output: each order as it is.
    pub(crate) detail: Option<SinkAddress>,
    /// The checkpoints; none: `--mode none`.
    pub(crate) checkpoints: Option<PathBuf>,
    /// Between the triggers of two checkpoints.
    pub(crate) interval: Duration,
    /// Subtasks of each operator.
    pub(crate) parallelism: u32,
    /// Orders a second.
    pub(crate) rate: Option<u64>,
    /// It goes on behind the end of the input.
    pub(crate) follow: bool,
    /// `exactly-once` or `at-least-once`, where there are checkpoints.
    pub(crate) mode: &'static str,
    /// `latest` or `none`.
    pub(crate) restore: &'static str,
}

impl RunLine {
    /// The command; its program is this one.
    ///
    /// # Errors
    /// The path of this program is unknown.
    pub(crate) fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .env_remove(FAULT_VARIABLE)
            .arg("run")
            .arg(format!("--source={}", self.source))
            .arg(format!("--sink={}", self.sink))
            .args(self.detail.as_ref().map(|detail| format!("--detail={detail}")))
            .arg(format!("--parallelism={}", self.parallelism))
            .args(self.rate.map(|rate| format!("--rate={rate}")))
            .args(self.follow.then_some("--follow"))
            .args(["--backend=hashmap", "--json"]);
        match &self.checkpoints {
            None => command.arg("--mode=none"),
            Some(folder) => command
                .arg(format!("--mode={}", self.mode))
                .arg(format!("--checkpoints={}", folder.display()))
                .arg(format!("--checkpoint-interval={}ms", self.interval.as_millis()))
                .arg(format!("--restore={}", self.restore)),
        };
        Ok(command)
    }
}
