//! From the engine's notices to what a run says.
//!
//! Owns: the counts over all attempts of this process, and how often progress is said.
//! Does not own: the events' form ([`RunEvent`]), nor where they go ([`Watcher`]).
//! Runs on: the thread that runs the job.

use std::sync::Arc;
use std::time::Duration;

use crate::control::ControlAddress;
use crate::engine::checkpoint::failure_manager::FailureReason;
use crate::engine::checkpoint::stats::{CheckpointOutcome, CheckpointStats};
use crate::engine::clock::{Moment, SharedClock};
use crate::engine::execution::output_meter::OUTPUT_WINDOW;
use crate::engine::execution::{ExecutionNotice, JobOutcome};
use crate::engine::jobmanager::MasterNotice;
use crate::engine::jobmanager::plan::JobPlan;
use crate::run_event::{RunEvent, Watcher};

/// Progress is said no more often than this.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// An attempt that has begun, and whose recovery is not done yet.
struct Beginning {
    attempt: u64,
    restored: Option<u64>,
    after: Duration,
    at: Moment,
}

/// See the module.
pub(crate) struct Reporter<'a> {
    watcher: &'a mut dyn Watcher,
    clock: SharedClock,
    plan: Arc<JobPlan>,
    began: Moment,
    beginning: Option<Beginning>,
    records_in: u64,
    records_total: Option<u64>,
    checkpoints: u64,
    prepared: u64,
    said: Option<Said>,
}

/// The last progress that was said.
struct Said {
    at: Moment,
    records_in: u64,
    prepared: u64,
}

impl<'a> Reporter<'a> {
    /// Nothing has happened yet.
    pub(crate) fn new(
        watcher: &'a mut dyn Watcher,
        clock: SharedClock,
        records_total: Option<u64>,
        plan: Arc<JobPlan>,
    ) -> Self {
        let began = clock.now();
        Self {
            watcher,
            clock,
            plan,
            began,
            beginning: None,
            records_in: 0,
            records_total,
            checkpoints: 0,
            prepared: 0,
            said: None,
        }
    }

    /// The run answers where it was asked to.
    pub(crate) fn listening(&mut self, control: &ControlAddress) {
        self.watcher.listening(&control.to_string());
    }

    /// Takes in a notice.
    pub(crate) fn notice(&mut self, notice: &ExecutionNotice) {
        match notice {
            ExecutionNotice::Started { attempt, restored, after } => {
                let (attempt, restored) = (attempt.0, restored.map(|id| id.0));
                self.beginning = Some(Beginning { attempt, restored, after: *after, at: self.clock.now() });
            }
            ExecutionNotice::Master(notice) => self.master_notice(notice),
            ExecutionNotice::RepeatedOutput(figures) => self.say(&RunEvent::RepeatedOutput {
                sinks: figures.sinks.clone(),
                written: figures.written,
                repeated: figures.repeated,
                window_ms: ms(OUTPUT_WINDOW),
                in_transactions: figures.in_transactions,
            }),
            ExecutionNotice::Restarting { cause, after } => {
                self.progress(true);
                self.say(&RunEvent::Restarting { cause: cause.clone(), after_ms: ms(*after) });
            }
        }
    }

    fn master_notice(&mut self, notice: &MasterNotice) {
        match notice {
            MasterNotice::Recovered { committed, rolled_back } => self.recovered(*committed, *rolled_back),
            MasterNotice::TransactionGivenUp(lost) => self.say(&RunEvent::GivenUp {
                transaction: lost.name.to_string(),
                sink: lost.name.scope.uid.to_string(),
                after: lost.name.opened_after.0,
                up_to: lost.closed_by.0,
                reason: lost.reason.clone(),
            }),
            MasterNotice::CheckpointCompleted(stats) | MasterNotice::CheckpointFailed(stats) => {
                self.checkpoint(stats);
            }
            // What recovery commits is said by `started`.
            MasterNotice::Committed { .. } if self.beginning.is_some() => {}
            MasterNotice::Committed { up_to } => self.say(&RunEvent::Committed { id: up_to.0 }),
            MasterNotice::AllEnded => self.progress(true),
            MasterNotice::Progress { records_read, prepared, .. } => {
                self.records_in = *records_read;
                self.prepared = u64::from(*prepared);
                self.progress(false);
            }
        }
    }

    fn recovered(&mut self, committed: u64, rolled_back: u64) {
        let Some(Beginning { attempt, restored, after, at }) = self.beginning.take() else { return };
        let restore_ms = ms(after + self.clock.now().saturating_sub(at));
        self.say(&RunEvent::Started { attempt, restored, restore_ms, committed, rolled_back });
    }

    fn checkpoint(&mut self, stats: &CheckpointStats) {
        // What was in flight when the job was asked to end is given up in order: that is no failure.
        if matches!(stats.outcome, CheckpointOutcome::Failed(FailureReason::Canceling)) {
            return;
        }
        let id = stats.id.0;
        let event = match &stats.outcome {
            CheckpointOutcome::Complete { .. } => {
                self.checkpoints += 1;
                RunEvent::Checkpoint { id, duration_ms: ms(stats.end_to_end), bytes: stats.size_bytes }
            }
            CheckpointOutcome::Failed(reason) => {
                RunEvent::CheckpointFailed { id, reason: reason.in_words(&self.plan) }
            }
        };
        self.say(&event);
    }

    fn progress(&mut self, at_once: bool) {
        let now = self.clock.now();
        let due = self.said.as_ref().is_none_or(|said| match at_once {
            true => said.records_in != self.records_in,
            // That something is prepared is true only for a few milliseconds of each checkpoint: it is said at once.
            false => {
                now.saturating_sub(said.at) >= PROGRESS_EVERY || (said.prepared == 0 && self.prepared > 0)
            }
        });
        // Before recovery is done a run has not begun to say anything.
        if !due || self.beginning.is_some() {
            return;
        }
        self.said = Some(Said { at: now, records_in: self.records_in, prepared: self.prepared });
        self.say(&RunEvent::Progress {
            records_in: self.records_in,
            records_total: self.records_total,
            checkpoints: self.checkpoints,
            prepared: self.prepared,
        });
    }

    /// The run has ended well.
    pub(crate) fn ended(&mut self, outcome: JobOutcome) {
        self.progress(true);
        let (records_in, checkpoints) = (self.records_in, self.checkpoints);
        let elapsed_ms = ms(self.clock.now().saturating_sub(self.began));
        self.say(&match outcome {
            JobOutcome::Finished => RunEvent::Finished { records_in, checkpoints, elapsed_ms },
            JobOutcome::Canceled => RunEvent::Canceled { settled: true, records_in, checkpoints, elapsed_ms },
            JobOutcome::CanceledUnbegun => {
                RunEvent::Canceled { settled: false, records_in, checkpoints, elapsed_ms }
            }
        });
    }

    fn say(&mut self, event: &RunEvent) {
        self.watcher.event(event);
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::ManualClock;
    use crate::engine::ids::{AttemptId, CheckpointId};

    #[derive(Default)]
    struct Log(Vec<RunEvent>);

    impl Watcher for Log {
        fn event(&mut self, event: &RunEvent) {
            self.0.push(event.clone());
        }
    }

    fn progress(records_read: u64) -> ExecutionNotice {
        ExecutionNotice::Master(MasterNotice::Progress {
            records_read,
            records_written: 0,
            prepared: 1,
            lag: None,
        })
    }

    #[test]
    fn a_start_is_said_when_recovery_is_done_and_progress_a_few_times_a_second() {
        let (mut log, clock) = (Log::default(), ManualClock::shared());
        let plan = Arc::new(JobPlan { job: "orders".into(), vertices: Vec::new() });
        let mut reporter = Reporter::new(&mut log, clock.clone(), Some(100), plan);
        let (attempt, restored) = (AttemptId(4), Some(CheckpointId(3)));
        reporter.notice(&ExecutionNotice::Started { attempt, restored, after: Duration::from_millis(7) });
        reporter.notice(&progress(1));
        clock.advance(Duration::from_millis(5));
        reporter.notice(&ExecutionNotice::Master(MasterNotice::Recovered { committed: 2, rolled_back: 1 }));
        for records in 10..=50 {
            clock.advance(Duration::from_millis(5));
            reporter.notice(&progress(records));
        }
        reporter.ended(JobOutcome::Finished);
        let started =
            RunEvent::Started { attempt: 4, restored: Some(3), restore_ms: 12, committed: 2, rolled_back: 1 };
        assert_eq!(log.0[0], started);
        let said: Vec<u64> = log
            .0
            .iter()
            .filter_map(|event| match event {
                RunEvent::Progress { records_in, .. } => Some(*records_in),
                _ => None,
            })
            .collect();
        assert_eq!(said, [10, 20, 30, 40, 50]);
        assert!(
            matches!(log.0.last(), Some(RunEvent::Finished { records_in: 50, elapsed_ms: 210, .. })),
            "{log:?}",
            log = log.0
        );
    }
}
