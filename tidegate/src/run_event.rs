//! What a run says, to people and, with `--json`, to programs: one object per line.
//!
//! Owns: the events and their fields, for the writer and the reader alike; [`Watcher`], who hears them.
//! Does not own: when they are said ([`crate::reporter`]).
//! Runs on: both sides of the pipe.

use serde::{Deserialize, Serialize};

/// Somebody who wants to see how a run goes.
pub trait Watcher {
    /// The run has something to say.
    fn event(&mut self, event: &RunEvent);

    /// The job answers `tidegate` where `--control` said: the port is the one that was chosen. Said at most once, before any event.
    fn listening(&mut self, control: &str) {
        let _ = control;
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The attempt runs: recovery is done.
    Started {
        /// The attempt's number: that of its claim.
        attempt: u64,
        /// The checkpoint restored, if there was one.
        restored: Option<u64>,
        /// From the start of the attempt until every transaction of earlier ones was settled.
        restore_ms: u64,
        /// Transactions of earlier attempts that recovery committed.
        committed: u64,
        /// Transactions of earlier attempts that recovery rolled back.
        rolled_back: u64,
    },
    /// A transaction that the restored checkpoint lists is lost, and the job goes on without its records, as somebody had decided
    /// (`tidegate txn forget`). Said before `started`.
    GivenUp {
        /// Its name.
        transaction: String,
        /// The sink.
        sink: String,
        /// The records that are missing in the output were read after this checkpoint.
        after: u64,
        /// And up to this one.
        up_to: u64,
        /// What the server says.
        reason: String,
    },
    /// Where the job stands; a few times a second.
    Progress {
        /// Records read so far, those before the restored checkpoint included.
        records_in: u64,
        /// Records there are, when the input is bounded.
        records_total: Option<u64>,
        /// Checkpoints completed by this process.
        checkpoints: u64,
        /// Transactions that are prepared and not yet committed, as the sinks last said.
        prepared: u64,
    },
    /// A checkpoint is complete.
    Checkpoint {
        /// Its id.
        id: u64,
        /// From its trigger to its entry in the commit log.
        duration_ms: u64,
        /// Its size.
        bytes: u64,
    },
    /// The sinks have committed what this checkpoint and those before it list: others see it from now on.
    Committed {
        /// The checkpoint's id.
        id: u64,
    },
    /// A checkpoint was given up; the job goes on.
    CheckpointFailed {
        /// Its id.
        id: u64,
        /// Why.
        reason: String,
    },
    /// Sinks have written more than 5 % of their records again in the last minute. Said once in that time.
    RepeatedOutput {
        /// Their names: those that share subtasks are counted together.
        sinks: String,
        /// Records they have written, in every attempt of this process.
        written: u64,
        /// Of them: records that an attempt before had written already, behind its newest completed checkpoint.
        repeated: u64,
        /// The time over which this was counted.
        window_ms: u64,
        /// All these sinks write in transactions: what was written before was rolled back, and the output has it once. A job that restarts
        /// so often is worth a look all the same.
        in_transactions: bool,
    },
    /// An attempt has failed, and another one follows in this process.
    Restarting {
        /// Why.
        cause: String,
        /// The pause.
        after_ms: u64,
    },
    /// The input is at its end and everything is committed.
    Finished {
        /// Records read.
        records_in: u64,
        /// Checkpoints completed by this process.
        checkpoints: u64,
        /// How long this process ran the job.
        elapsed_ms: u64,
    },
    /// The job was stopped; a start on its checkpoints goes on from here.
    Canceled {
        /// In order: what the newest checkpoint lists is committed. Else it had not begun, and the next start settles what an earlier run
        /// left prepared.
        settled: bool,
        /// Records read.
        records_in: u64,
        /// Checkpoints completed by this process.
        checkpoints: u64,
        /// How long this process ran the job.
        elapsed_ms: u64,
    },
    /// The job has failed; the process ends with a status other than 0.
    Failed {
        /// Why, in the words of the error.
        error: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_have_the_documented_form() {
        let started =
            RunEvent::Started { attempt: 2, restored: None, restore_ms: 61, committed: 2, rolled_back: 1 };
        let line = r#"{"event":"started","attempt":2,"restored":null,"restore_ms":61,"committed":2,"rolled_back":1}"#;
        assert_eq!(serde_json::to_string(&started).unwrap(), line);
        let failed = r#"{"event":"checkpoint_failed","id":3,"reason":"expired"}"#;
        let expected = RunEvent::CheckpointFailed { id: 3, reason: "expired".into() };
        assert_eq!(serde_json::from_str::<RunEvent>(failed).unwrap(), expected);
    }
}
