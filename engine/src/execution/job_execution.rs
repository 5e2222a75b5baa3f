//! A job over all its attempts in this process.
//!
//! Every attempt, also a restart inside one process, starts with a claim. Fenced, lost and finished are never followed by another
//! attempt; a failure is, if the restart strategy says so and the cause is not final.
//!
//! Owns: starting → running → waiting → over. Does not own: the steps inside an attempt. Runs on: the thread that steps it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tidegate_state::CheckpointStorage;
use tokio::sync::oneshot;

use super::attempt::{Attempt, Slots};
use super::config::ExecutionConfig;
use super::delivery::{SharedDelivery, Straight};
use super::io_scope::IoScope;
use super::output_meter::{OutputFigures, OutputMeter};
use super::start::{OwnClaims, Started};
use crate::checkpoint::commit_log::{LogClient, LogError, NonceSource};
use crate::clock::{Moment, SharedClock};
use crate::error::{EngineError, Recovery};
use crate::graph::JobGraph;
use crate::ids::{AttemptId, CheckpointId};
use crate::io::{Presence, SharedIo, SpawnedIo, Waker};
use crate::jobmanager::plan::{JobPlan, OperatorKind};
use crate::jobmanager::{AttemptEnd, Control, MasterNotice, RestartDecision, Restarts};
use crate::quoted::folder_of;
use crate::taskworker::subtask::Step;

/// What a job is run with.
pub struct ExecutionSetup {
    /// The graph.
    pub graph: JobGraph,
    /// Settings.
    pub config: ExecutionConfig,
    /// The checkpoint folder; needed unless checkpoints are off.
    pub storage: Option<CheckpointStorage>,
    /// Where futures run.
    pub io: SharedIo,
    /// Time.
    pub clock: SharedClock,
    /// Wakes the thread that steps.
    pub waker: Waker,
    /// Where subtasks run.
    pub slots: Slots,
    /// Seed of nonces and of the log id: random in production.
    pub seed: u128,
}

/// A failed attempt's blocking calls (a commit under way) are waited for so long before the next attempt recovers.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks at them.
const JOIN_PAUSE: Duration = Duration::from_millis(5);
/// After a cancel, in order or not, slots and I/O side are waited for so long in any case.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);

/// How a job ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// All input is read and everything is committed.
    Finished,
    /// Stopped in order.
    Canceled,
    /// Canceled before an attempt of this process had begun: it has done nothing, and settled nothing of what earlier ones left prepared.
    CanceledUnbegun,
}

/// What a step came to.
#[derive(Debug)]
pub enum ExecutionStep {
    /// Step again.
    Progress,
    /// Nothing can be done before something arrives, or this moment.
    Idle(Option<Moment>),
    /// The job is over.
    Over(Result<JobOutcome, EngineError>),
}

/// Something people may want to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionNotice {
    /// An attempt has restored its state and runs.
    Started {
        /// Which.
        attempt: AttemptId,
        /// From which checkpoint.
        restored: Option<CheckpointId>,
        /// From the start of the attempt to here.
        after: Duration,
    },
    /// What the job master says.
    Master(MasterNotice),
    /// An attempt failed, and another one follows.
    Restarting {
        /// Why.
        cause: String,
        /// The pause.
        after: Duration,
    },
    /// The sinks of a vertex have written more than is new, by more than is usual (see [`super::output_meter`]). Said once in a window.
    RepeatedOutput(OutputFigures),
}

pub(super) enum State {
    Starting {
        result: oneshot::Receiver<Result<Started, EngineError>>,
        task: Box<dyn SpawnedIo>,
        since: Moment,
    },
    Running(Box<Attempt>),
    Waiting {
        until: Moment,
        /// The failed attempt's I/O: a commit under way is waited for, bounded, before recovery begins.
        before: Option<Arc<IoScope>>,
    },
    /// The attempt has ended in order; files that no entry names are being deleted.
    Sweeping {
        done: oneshot::Receiver<()>,
        outcome: JobOutcome,
    },
    Over,
}

/// See the module.
pub struct JobExecution {
    pub(super) setup: ExecutionSetup,
    pub(super) delivery: SharedDelivery,
    pub(super) plan: Arc<JobPlan>,
    pub(super) nonces: NonceSource,
    pub(super) restarts: Restarts,
    /// The log of the newest claim.
    pub(super) log: Option<(LogClient, AttemptId)>,
    pub(super) attempts: u32,
    pub(super) claimed_once: bool,
    /// Somebody has canceled the job, and the end is orderly until then; an attempt that begins now only commits and rolls back.
    cancel_by: Option<Moment>,
    pub(super) previous: Option<AttemptId>,
    pub(super) own_claims: OwnClaims,
    pub(super) state: State,
    pub(super) notices: VecDeque<ExecutionNotice>,
    output: OutputMeter,
    /// Who is on the threads of the I/O side.
    pub(super) presence: Arc<Presence>,
    /// Why the last attempt failed.
    failure: String,
}

impl std::fmt::Debug for JobExecution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobExecution").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

impl JobExecution {
    /// Checks settings; the first attempt starts with the first step.
    ///
    /// # Errors
    /// [`EngineError::Settings`].
    pub fn new(setup: ExecutionSetup) -> Result<Self, EngineError> {
        setup.config.validate()?;
        let plan = Arc::new(setup.graph.plan());
        let has_log = setup.config.has_checkpoints();
        if has_log && setup.storage.is_none() {
            let message = "a folder or URL is needed; or turn checkpoints off with mode none".to_owned();
            return Err(EngineError::Settings { setting: "checkpoints", message });
        }
        let two_phase = plan.operators().find(|(_, o)| o.kind == OperatorKind::TwoPhaseSink);
        if let (Some((_, sink)), false) = (two_phase, has_log) {
            let message = format!(
                "sink \"{}\" commits with checkpoints, and they are off: nothing would ever be committed\n  \
                 help: --mode exactly-once; or a sink without transactions (of MySQL: .plain() or .upsert_by(..), of Kafka: .at_least_once())",
                sink.name
            );
            return Err(EngineError::Settings { setting: "mode", message });
        }
        let now = setup.clock.now();
        Ok(Self {
            nonces: NonceSource::new(setup.seed),
            restarts: Restarts::new(setup.config.restart),
            output: OutputMeter::new(&plan),
            plan,
            log: None,
            attempts: 0,
            claimed_once: false,
            cancel_by: None,
            previous: None,
            own_claims: OwnClaims::default(),
            state: State::Waiting { until: now, before: None },
            notices: VecDeque::new(),
            delivery: Arc::new(Straight),
            presence: Arc::default(),
            failure: String::new(),
            setup,
        })
    }

    /// Sends messages another way than straight: for simulation.
    #[must_use]
    pub fn with_delivery(self, delivery: SharedDelivery) -> Self {
        Self { delivery, ..self }
    }

    /// The job as the job manager sees it.
    pub fn plan(&self) -> &Arc<JobPlan> {
        &self.plan
    }

    /// Whether the job takes checkpoints at all.
    pub fn has_checkpoints(&self) -> bool {
        self.setup.config.has_checkpoints()
    }

    /// The attempt that runs now.
    pub fn attempt(&mut self) -> Option<&mut Attempt> {
        match &mut self.state {
            State::Running(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Asks something of the job. A job of which no attempt has run yet is canceled at once, and leaves to the next start what processes
    /// before it left prepared ([`JobOutcome::CanceledUnbegun`]). After one has failed, checkpoints may list transactions that nobody has
    /// committed: another attempt settles them, in order and without a pause.
    pub fn control(&mut self, control: Control) -> Option<JobOutcome> {
        if control == Control::Cancel {
            let by = self.setup.clock.now() + self.orderly_cancel();
            self.cancel_by.get_or_insert(by);
        }
        match &mut self.state {
            State::Running(attempt) => attempt.control(control),
            State::Over | State::Sweeping { .. } => {}
            State::Starting { .. } | State::Waiting { .. } if control != Control::Cancel => {}
            State::Starting { .. } | State::Waiting { .. } if !self.claimed_once => {
                self.stop();
                // Without a log nobody has left anything.
                let nothing_left = !self.has_checkpoints();
                return Some(if nothing_left { JobOutcome::Canceled } else { JobOutcome::CanceledUnbegun });
            }
            State::Starting { .. } => {}
            State::Waiting { until, .. } => *until = self.setup.clock.now(),
        }
        None
    }

    /// Stops at once, in whatever state: like a process that dies.
    pub fn stop(&mut self) {
        if let State::Starting { task, .. } = &self.state {
            task.abort();
        }
        self.state = State::Over;
    }

    /// How long what no longer has anything to do may hold a thread.
    pub fn cancellation_timeout(&self) -> Duration {
        self.setup.config.cancellation_timeout()
    }

    /// How long a cancel waits for an orderly end.
    fn orderly_cancel(&self) -> Duration {
        self.setup.config.orderly_cancel()
    }

    /// Whether somebody has canceled the job.
    pub fn is_canceling(&self) -> bool {
        self.cancel_by.is_some()
    }

    /// Whether a cancel has had the time for an orderly end.
    pub fn cancel_is_late(&self) -> bool {
        self.cancel_by.is_some_and(|by| self.setup.clock.now() >= by)
    }

    /// How long the slots' threads have for coming back.
    fn slots_patience(&self) -> Duration {
        let left = self.cancel_by.map(|by| by.saturating_sub(self.setup.clock.now()).max(LAST_WORDS));
        left.map_or(self.cancellation_timeout(), |left| left.min(self.cancellation_timeout()))
    }

    /// An orderly cancel has not ended in time: stops at once. What is prepared is settled by the next start.
    pub fn give_up_cancel(&mut self) -> EngineError {
        let job = self.plan.job.clone();
        let waiting = self.attempt().map_or_else(Vec::new, |attempt| attempt.master().not_canceled());
        if let State::Running(attempt) = &mut self.state {
            let _ = attempt.stop_slots(Duration::ZERO);
        }
        self.stop();
        EngineError::CancelTimedOut { job, after: self.orderly_cancel(), waiting: waiting.join(", ") }
    }

    /// Who is on the threads of the I/O side.
    pub fn presence(&self) -> &Arc<Presence> {
        &self.presence
    }

    /// Connectors hold threads of the I/O side although their attempt is over since `after`: the process has to end.
    pub fn io_stuck(&self, after: Duration, who: &[String], blocks_poll: bool, cause: String) -> EngineError {
        EngineError::IoStuck { job: self.plan.job.clone(), after, who: who.join(", "), cause, blocks_poll }
    }

    /// What people may want to see.
    pub fn take_notice(&mut self) -> Option<ExecutionNotice> {
        if let State::Running(attempt) = &mut self.state {
            let mut progress = false;
            while let Some(notice) = attempt.take_notice() {
                progress |= matches!(notice, MasterNotice::Progress { .. });
                self.notices.push_back(ExecutionNotice::Master(notice));
            }
            if progress {
                self.output.written(self.setup.clock.now(), &attempt.master().written());
                self.tell_repeated_output();
            }
        }
        self.notices.pop_front()
    }

    fn tell_repeated_output(&mut self) {
        let alarms = self.output.alarms(self.setup.clock.now());
        self.notices.extend(alarms.into_iter().map(ExecutionNotice::RepeatedOutput));
    }

    /// What the sinks have written in the last minute, of the vertex that has written most of it again; `None`: nothing.
    pub fn output(&mut self) -> Option<OutputFigures> {
        self.output.highest(self.setup.clock.now())
    }

    /// One step of everything: the job manager, and each subtask once.
    pub fn step(&mut self) -> ExecutionStep {
        match &mut self.state {
            State::Over => ExecutionStep::Idle(None),
            State::Waiting { until, before } => {
                let (now, until) = (self.setup.clock.now(), *until);
                let under_way = before.as_ref().is_some_and(|scope| scope.blocking_calls() > 0);
                if now < until {
                    return ExecutionStep::Idle(Some(until));
                }
                if under_way && now < until + JOIN_TIMEOUT {
                    return ExecutionStep::Idle(Some(now + JOIN_PAUSE));
                }
                // A poll that does not return holds a thread that the next attempt would need.
                let polling = self.presence.polling();
                let after = self.cancellation_timeout();
                if !polling.is_empty() && now < until + after {
                    return ExecutionStep::Idle(Some(now + JOIN_PAUSE));
                }
                if !polling.is_empty() {
                    let cause = std::mem::take(&mut self.failure);
                    return self.over(Err(self.io_stuck(after, &polling, true, cause)));
                }
                self.begin();
                ExecutionStep::Progress
            }
            State::Starting { result, since, .. } => {
                let since = *since;
                match result.try_recv() {
                    Err(oneshot::error::TryRecvError::Empty) => ExecutionStep::Idle(None),
                    Err(oneshot::error::TryRecvError::Closed) => {
                        let source = std::io::Error::other("the I/O runtime is gone");
                        self.over(Err(EngineError::System { tried: "starting the job", source }))
                    }
                    Ok(Err(error)) => self.start_failed(error),
                    Ok(Ok(started)) => self.started(started, since),
                }
            }
            State::Running(_) => self.step_attempt(),
            State::Sweeping { done, outcome } => match done.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => ExecutionStep::Idle(None),
                Ok(()) | Err(oneshot::error::TryRecvError::Closed) => {
                    let outcome = *outcome;
                    self.over(Ok(outcome))
                }
            },
        }
    }

    fn step_attempt(&mut self) -> ExecutionStep {
        let State::Running(attempt) = &mut self.state else { return ExecutionStep::Progress };
        let mut progress = attempt.step_master();
        let mut deadline = attempt.next_timer();
        for index in 0..attempt.subtasks() {
            match attempt.step_subtask(index) {
                Step::Progress => progress = true,
                Step::Blocked(Some(moment)) => deadline = Some(deadline.map_or(moment, |d| d.min(moment))),
                Step::Blocked(None) | Step::Finished => {}
            }
        }
        if let Some(end) = attempt.take_end() {
            return self.ended(end);
        }
        if progress { ExecutionStep::Progress } else { ExecutionStep::Idle(deadline) }
    }

    /// How the attempt has ended, if it has: for a scheduler that steps its parts one by one.
    pub fn settle_end(&mut self) -> Option<ExecutionStep> {
        let State::Running(attempt) = &mut self.state else { return None };
        let end = attempt.take_end()?;
        Some(self.ended(end))
    }

    fn ended(&mut self, end: AttemptEnd) -> ExecutionStep {
        let after = self.slots_patience();
        if let State::Running(attempt) = &mut self.state
            && !attempt.stop_slots(after)
        {
            let (job, stuck) = (self.plan.job.clone(), attempt.stuck_slots().join(", "));
            return self.over(Err(EngineError::SlotStuck { job, after, stuck }));
        }
        while let State::Running(attempt) = &mut self.state {
            let Some(notice) = attempt.take_notice() else { break };
            self.notices.push_back(ExecutionNotice::Master(notice));
        }
        match end {
            AttemptEnd::Finished => self.sweep_files(JobOutcome::Finished),
            AttemptEnd::Canceled => self.sweep_files(JobOutcome::Canceled),
            AttemptEnd::Fenced { at } => {
                let detail = format!("entry {at} of the commit log belongs to another attempt");
                self.over(Err(EngineError::Fenced { job: self.plan.job.clone(), detail }))
            }
            AttemptEnd::Replaced { found } => {
                let folder = self.setup.storage.as_ref().map_or_else(String::new, |s| s.url().to_owned());
                let job = self.plan.job.clone();
                self.over(Err(LogError::FolderReplaced { folder, job, found }.into()))
            }
            AttemptEnd::Lost(lost) => {
                let folder =
                    self.setup.storage.as_ref().map_or_else(String::new, |storage| folder_of(storage.url()));
                self.over(Err(EngineError::Lost { lost: Box::new(lost), folder }))
            }
            AttemptEnd::Failed { cause } => {
                let restartable = cause.restartable();
                self.failed(cause.to_string(), restartable, None)
            }
        }
    }

    /// After an orderly end no file is left that no entry names: those of checkpoints that were given up go. What fails is left for
    /// the next claimant.
    fn sweep_files(&mut self, outcome: JobOutcome) -> ExecutionStep {
        let Some((log, own)) = self.log.take() else { return self.over(Ok(outcome)) };
        let (tx, done) = oneshot::channel();
        let waker = Arc::clone(&self.setup.waker);
        // The attempt goes first: with it its uploads.
        self.state = State::Sweeping { done, outcome };
        let sweep = async move {
            if let Err(error) = log.sweep_own(own).await {
                tracing::warn!(%error, "files that no entry names were left in place");
            }
            let _ = tx.send(());
            waker.wake();
        };
        self.setup.io.spawn("last sweep", Box::pin(sweep));
        ExecutionStep::Progress
    }

    pub(super) fn start_failed(&mut self, error: EngineError) -> ExecutionStep {
        let restartable = self.claimed_once && error.recovery() == Recovery::RestartFromCheckpoint;
        self.failed(crate::error::chain_text(&error), restartable, Some(error))
    }

    fn failed(&mut self, cause: String, restartable: bool, error: Option<EngineError>) -> ExecutionStep {
        let now = self.setup.clock.now();
        if restartable
            && !self.is_canceling()
            && let RestartDecision::RestartAfter(after) = self.restarts.failed(now)
        {
            self.failure.clone_from(&cause);
            self.notices.push_back(ExecutionNotice::Restarting { cause, after });
            let written = self.attempt().map(|attempt| attempt.master().written());
            self.output.attempt_failed(now, &written.unwrap_or_default());
            self.tell_repeated_output();
            let before = self.attempt().map(|attempt| attempt.worker_io());
            self.state = State::Waiting { until: now + after, before };
            return ExecutionStep::Progress;
        }
        let job = self.plan.job.clone();
        let failed = EngineError::JobFailed { job, attempts: self.attempts, cause };
        self.over(Err(error.unwrap_or(failed)))
    }

    fn over(&mut self, result: Result<JobOutcome, EngineError>) -> ExecutionStep {
        self.state = State::Over;
        ExecutionStep::Over(result)
    }
}
