//! The state machine of one attempt, from "claimed and restored" to its end.
//!
//! 1. *Start*: enumerators are restored; discoveries begin; splits go out as numbered mail.
//! 2. *Recovered* by every subtask: from now on checkpoints are triggered.
//! 3. A checkpoint: enumerators' snapshots, then the trigger behind all earlier mail (law 3); acknowledgements; the entry at own
//!    last + 1; and only when it stands, the completion.
//! 4. *Ended* by every subtask: the last checkpoint, repeated until complete; every sink reports it committed and has swept; the
//!    entry `finished`; only then `Finish` (law 7).
//! 5. Or a cancel, in order; or a failure; or an entry of another attempt, after which nothing more is said.
//!
//! Owns: the order of these. Does not own: its decisions about checkpoints (see [`crate::checkpoint::coordinator`]), the carrying
//! out of [`MasterAction`]s, what follows the end. Runs on: the job manager's loop. Pure: events and facts in, actions out.

mod checkpoints;
mod commits;
mod ending;
mod event;
mod log_writer;
mod postbox;
mod repeats;
mod reports;
mod setup;
mod sources;
mod written;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use event::{Control, MasterAction, MasterEvent, MasterNotice};
pub use setup::MasterSetup;

use self::commits::CommitTracker;
use self::log_writer::LogWriter;
use self::postbox::Postbox;
use self::repeats::Repeats;
use self::sources::Sources;
use self::written::Written;
use super::attempt_end::{AttemptEnd, AttemptFailure};
use super::plan::JobPlan;
use crate::checkpoint::cleaner::CleanPlan;
use crate::checkpoint::coordinator::CheckpointCoordinator;
use crate::checkpoint::stats::CheckpointHistory;
use crate::checkpoint::{CheckpointConfig, CheckpointMode};
use crate::clock::Moment;
use crate::ids::{AttemptId, CheckpointId, SubtaskId, VertexId};
use crate::io::{BoxFuture, SharedIo};
use crate::taskworker::mail::{Mail, MailBody};

/// One attempt of a job.
pub struct JobMaster {
    plan: Arc<JobPlan>,
    config: CheckpointConfig,
    attempt: AttemptId,
    all: BTreeSet<SubtaskId>,
    phase: Phase,
    cancel_wanted: bool,
    recovered: BTreeSet<SubtaskId>,
    ended: BTreeSet<SubtaskId>,
    gone: BTreeSet<SubtaskId>,
    coordinator: CheckpointCoordinator,
    log: LogWriter,
    commits: CommitTracker,
    sources: Sources,
    postbox: Postbox,
    repeats: Repeats,
    history: CheckpointHistory,
    progress: BTreeMap<SubtaskId, (u64, u64)>,
    /// Of sources that tell it.
    lags: BTreeMap<SubtaskId, u64>,
    written: Written,
    transactions: (u64, u64),
    cleaning: bool,
    /// What a completion has asked to be cleaned while another cleaning was under way.
    clean_next: CleanPlan,
    held_end: Option<AttemptEnd>,
    now: Moment,
    wall_ms: i64,
    actions: Vec<MasterAction>,
}

/// Where the attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Created, not started.
    Created,
    /// Recovering, then running, then waiting for the last checkpoint.
    Running,
    /// The last checkpoint is complete; the sinks commit.
    Committing {
        /// It.
        last: CheckpointId,
    },
    /// The entry `finished` is being put.
    WritingFinished,
    /// `Finish` was said; who has finished is in `gone`.
    Finishing,
    /// `Cancel` was said; who has canceled is in `gone`.
    Canceling {
        /// What it said.
        newest_completed: CheckpointId,
    },
    /// Nothing more is said.
    Over,
}

impl JobMaster {
    /// An attempt that has claimed the job and whose subtasks are being built. Send it [`MasterEvent::Start`].
    pub fn new(setup: MasterSetup) -> Self {
        setup.build()
    }

    /// What to do about `event`. Moments never go back.
    pub fn handle(&mut self, now: Moment, wall_ms: i64, event: MasterEvent) -> Vec<MasterAction> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        (self.now, self.wall_ms) = (now, wall_ms);
        match event {
            MasterEvent::Start => self.start(),
            MasterEvent::Task(report) => self.report(report),
            MasterEvent::EntrySettled { number, outcome } => self.entry_settled(number, outcome),
            MasterEvent::Found { vertex, result } => self.found(vertex, result),
            MasterEvent::Control(Control::Cancel) => self.cancel_wanted = true,
            MasterEvent::Control(Control::TriggerCheckpoint) => self.coordinator.request(),
            MasterEvent::Cleaned { entries } => {
                self.cleaning = false;
                self.coordinator.cleaned(&entries);
                let mut next = std::mem::take(&mut self.clean_next);
                next.delete.retain(|checkpoint| !entries.contains(&checkpoint.number));
                self.clean(next);
            }
            MasterEvent::Tick => {}
        }
        self.advance();
        std::mem::take(&mut self.actions)
    }

    /// When to send [`MasterEvent::Tick`], if nothing happens before.
    pub fn next_timer(&self) -> Option<Moment> {
        if matches!(self.phase, Phase::Created | Phase::Over) {
            return None;
        }
        let timers = [
            self.checkpoint_timer(),
            self.repeats.due_at(),
            self.postbox.next_due().filter(|_| self.phase == Phase::Running),
            self.sources.next_due().filter(|_| self.phase == Phase::Running),
        ];
        timers.into_iter().flatten().min()
    }

    /// The discovery that [`MasterAction::Discover`] asks for. Its result comes back as [`MasterEvent::Found`]; `None` means
    /// that there is nothing to look for now.
    pub fn discover(
        &mut self,
        vertex: VertexId,
        io: &SharedIo,
    ) -> Option<BoxFuture<Result<crate::api::source::AnyFound, crate::api::source::ConnectorError>>> {
        self.sources.discover(self.now, vertex, io)
    }

    /// The last checkpoints, for people.
    pub fn history(&self) -> &CheckpointHistory {
        &self.history
    }

    /// Which attempt it leads.
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// The newest completed checkpoint; 0 if there is none.
    pub fn newest_completed(&self) -> CheckpointId {
        self.coordinator.newest_completed()
    }

    /// The id of the checkpoint that would be triggered next; `None` when none will be: there is no log, or the attempt is ending.
    pub fn next_checkpoint(&self) -> Option<CheckpointId> {
        self.takes_checkpoints().then(|| self.coordinator.next_id())
    }

    /// How many checkpoints are in flight.
    pub fn checkpoints_in_flight(&self) -> u32 {
        self.coordinator.in_flight()
    }

    /// Whether the attempt is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// How many records the sources have read, and how many the sinks have written, in this attempt.
    pub fn progress(&self) -> (u64, u64) {
        let is_source = |s: &SubtaskId| self.plan.vertex(s.vertex).is_some_and(|v| v.is_source);
        let read = self.progress.iter().filter(|(s, _)| is_source(s)).map(|(_, (read, _))| read).sum();
        (read, self.progress.values().map(|(_, written)| written).sum())
    }

    /// Records that the sinks of each vertex have written in this attempt, and how many of them no completed checkpoint covers.
    pub fn written(&self) -> BTreeMap<VertexId, (u64, u64)> {
        self.written.by_vertex()
    }

    /// Names of the subtasks that have not said that they are canceled or finished, for people.
    pub fn not_canceled(&self) -> Vec<String> {
        self.all.difference(&self.gone).map(|subtask| self.plan.subtask_name(*subtask)).collect()
    }

    /// How many transactions the sinks hold prepared, as they last said.
    pub fn prepared_transactions(&self) -> u32 {
        self.commits.prepared()
    }

    fn start(&mut self) {
        if self.phase != Phase::Created {
            return;
        }
        self.phase = Phase::Running;
        let restored = self.sources.restore();
        self.act_on_sources(restored);
    }

    /// Whatever can be done now that was not possible before this event.
    fn advance(&mut self) {
        if self.phase == Phase::Created {
            return;
        }
        self.expire();
        self.write();
        self.cancel();
        self.finish();
        self.trigger();
        if self.phase == Phase::Running {
            let due = self.sources.due(self.now);
            self.act_on_sources(Ok(due));
        }
        self.repeat();
    }

    fn has_log(&self) -> bool {
        self.config.mode != CheckpointMode::None
    }

    fn fail(&mut self, cause: AttemptFailure) {
        let cause = match self.cancel_wanted {
            true => AttemptFailure::WhileCanceling(Box::new(cause)),
            false => cause,
        };
        self.end(AttemptEnd::Failed { cause });
    }

    fn end(&mut self, end: AttemptEnd) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.actions.push(MasterAction::End(end));
        }
    }

    fn mail(&mut self, to: SubtaskId, body: MailBody) {
        let mail = Mail { attempt: self.attempt, seq: None, body };
        self.actions.push(MasterAction::Mail { to, mail });
    }

    fn mail_all(&mut self, body: MailBody) {
        for to in self.all.clone() {
            self.mail(to, body.clone());
        }
    }

    fn notice(&mut self, notice: MasterNotice) {
        self.actions.push(MasterAction::Notice(notice));
    }
}

/// Mail that nobody has answered is said again after this.
const MAIL_REPEAT: Duration = Duration::from_millis(500);
