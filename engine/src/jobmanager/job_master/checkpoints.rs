//! From the trigger to the completion.
//!
//! **The commit point**: a completion is told when the checkpoint's entry stands in the log, and never before (laws 4 and 5).
//!
//! Owns: the order of snapshot, trigger, entry, completion. Does not own: the decisions (see
//! [`crate::checkpoint::coordinator`]). Runs on: the job manager. Pure.

use super::super::attempt_end::{AttemptEnd, AttemptFailure};
use super::{JobMaster, MasterAction, MasterNotice, Phase};
use crate::checkpoint::cleaner::CleanPlan;
use crate::checkpoint::commit_log::{EntryBody, Settled};
use crate::checkpoint::coordinator::{Completion, FailedCheckpoint};
use crate::checkpoint::failure_manager::Verdict;
use crate::checkpoint::pending::{AckOutcome, Purpose};
use crate::checkpoint::trigger_decider::TriggerDecision;
use crate::clock::Moment;
use crate::ids::{CheckpointId, EntryNumber, SubtaskId};
use crate::mutation::{Mutation, on};
use crate::taskworker::mail::{MailBody, SubtaskAck};

impl JobMaster {
    pub(super) fn takes_checkpoints(&self) -> bool {
        self.phase == Phase::Running && self.has_log() && !self.cancel_wanted
    }

    pub(super) fn checkpoint_timer(&self) -> Option<Moment> {
        if !self.takes_checkpoints() {
            return None;
        }
        let trigger = match self.coordinator.decide(self.now, self.all_ended()) {
            TriggerDecision::WaitUntil(moment) => Some(moment),
            TriggerDecision::TriggerNow(_) | TriggerDecision::NoPlaceLeft => Some(self.now),
            TriggerDecision::WaitForEvent => None,
        };
        trigger.into_iter().chain(self.coordinator.next_expiry()).min()
    }

    pub(super) fn trigger(&mut self) {
        while self.takes_checkpoints() {
            match self.coordinator.decide(self.now, self.all_ended()) {
                TriggerDecision::TriggerNow(purpose) => self.trigger_now(purpose),
                TriggerDecision::WaitUntil(_) | TriggerDecision::WaitForEvent => return,
                TriggerDecision::NoPlaceLeft => {
                    let barriers = self.config.barrier_places();
                    return self.fail(AttemptFailure::NoTransactionPlace { barriers });
                }
            }
        }
    }

    /// The enumerators' snapshots first; then the trigger, behind all mail that was posted before and in front of all that will be.
    fn trigger_now(&mut self, purpose: Purpose) {
        let enumerators = self.sources.snapshot();
        let barrier = self.coordinator.trigger(self.now, purpose, enumerators);
        for to in self.coordinator.plan().triggered() {
            self.postbox.post(*to, MailBody::Trigger(barrier));
        }
        self.repeats.forget_abort();
    }

    pub(super) fn acknowledge(&mut self, subtask: SubtaskId, ack: SubtaskAck) {
        let (id, records_written) = (ack.id, ack.records_written);
        match self.coordinator.acknowledge(self.now, subtask, ack) {
            AckOutcome::Recorded => self.written.acknowledged(id, subtask, records_written),
            outcome => tracing::debug!(%id, %subtask, ?outcome, "an acknowledgement changes nothing"),
        }
    }

    pub(super) fn decline(&mut self, subtask: SubtaskId, id: CheckpointId, reason: String) {
        if let Some(failed) = self.coordinator.decline(self.now, id, subtask, reason) {
            self.given_up(failed);
        }
    }

    pub(super) fn expire(&mut self) {
        while self.phase == Phase::Running {
            let Some(failed) = self.coordinator.expire(self.now) else { return };
            self.given_up(failed);
        }
    }

    pub(super) fn given_up(&mut self, failed: FailedCheckpoint) {
        let FailedCheckpoint { id, reason, stats, verdict } = failed;
        self.written.given_up(id);
        self.history.push(stats.clone());
        self.notice(MasterNotice::CheckpointFailed(stats));
        self.mail_all(MailBody::NotifyAbort { id });
        self.repeats.remember_abort(id);
        if let Verdict::Exceeded { failures } = verdict {
            let tolerable = self.config.tolerable_failures;
            self.fail(AttemptFailure::CheckpointsFailed { failures, tolerable, last: reason });
        }
    }

    /// Puts the entry of a checkpoint that all have acknowledged.
    pub(super) fn write(&mut self) {
        if !self.takes_checkpoints() {
            return;
        }
        let (Some(id), Some(number)) = (self.coordinator.ready_to_write(), self.log.next()) else { return };
        if on(Mutation::CommitBeforeCompletion) {
            self.mail_all(MailBody::NotifyComplete { id });
        }
        let committed = self.commits.per_sink();
        if let Some(body) = self.coordinator.begin_write(number, self.wall_ms, committed) {
            #[cfg(feature = "mutations")]
            if on(Mutation::CleanerBeforeEntry) {
                self.actions.push(MasterAction::Clean(self.coordinator.plan_early()));
            }
            self.append(body);
        }
    }

    pub(super) fn append(&mut self, body: EntryBody) {
        let (number, entry) = self.log.begin(body);
        self.actions.push(MasterAction::Append { number, entry });
    }

    pub(super) fn entry_settled(&mut self, number: EntryNumber, outcome: Settled) {
        if !self.log.awaits(number) {
            return;
        }
        if outcome == Settled::Fenced {
            return self.end(AttemptEnd::Fenced { at: number });
        }
        if let Settled::Replaced { found } = outcome {
            return self.end(AttemptEnd::Replaced { found });
        }
        #[cfg(feature = "mutations")]
        if outcome == Settled::TakenAsFailed {
            self.log.failed();
            match self.coordinator.give_up_writing(self.now) {
                Some(failed) => self.given_up(failed),
                None if self.phase == Phase::WritingFinished => self.append(EntryBody::Finished),
                None => {}
            }
            return;
        }
        self.log.stands();
        if self.phase == Phase::WritingFinished {
            return self.say_finish();
        }
        if let Some(completion) = self.coordinator.written(self.now) {
            self.completed(completion);
        }
    }

    /// Cleans now, or when the cleaning under way is done: a later plan has everything that an earlier one had.
    pub(super) fn clean(&mut self, plan: CleanPlan) {
        if plan.delete.is_empty() {
            return;
        }
        if self.cleaning {
            self.clean_next = plan;
            return;
        }
        self.cleaning = true;
        self.actions.push(MasterAction::Clean(plan));
    }

    fn completed(&mut self, completion: Completion) {
        let Completion { completed, purpose, stats, subsumed, clean } = completion;
        let id = completed.id();
        self.written.completed(id);
        self.history.push(stats.clone());
        self.notice(MasterNotice::CheckpointCompleted(stats));
        self.mail_all(MailBody::NotifyComplete { id });
        for failed in subsumed {
            self.given_up(failed);
        }
        self.clean(clean);
        if purpose == Purpose::Last {
            self.phase = Phase::Committing { last: id };
        }
    }
}
