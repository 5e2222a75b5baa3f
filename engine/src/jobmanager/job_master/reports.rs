//! What subtasks report, sorted by kind.
//!
//! **Fencing** (law 8): a report of another attempt is refused, whatever it says.
//!
//! Owns: who has recovered, ended, gone. Does not own: what follows (see [`super::checkpoints`] and [`super::ending`]).
//! Runs on: the job manager. Pure.

use super::super::attempt_end::{AttemptEnd, AttemptFailure};
use super::{JobMaster, MasterNotice, Phase};
use crate::ids::SubtaskId;
use crate::mutation::{Mutation, on};
use crate::taskworker::mail::{TaskEvent, TaskFailure, TaskReport};

impl JobMaster {
    pub(super) fn report(&mut self, report: TaskReport) {
        let TaskReport { attempt, subtask, event } = report;
        let let_in = on(Mutation::OldAckAccepted) && matches!(event, TaskEvent::Acknowledge(_));
        if (attempt != self.attempt && !let_in) || !self.all.contains(&subtask) {
            tracing::debug!(%attempt, %subtask, "a report of another attempt is refused");
            return;
        }
        match event {
            TaskEvent::Recovered => self.subtask_recovered(subtask),
            TaskEvent::MailAcked { seq } => self.postbox.acked(subtask, seq),
            TaskEvent::Acknowledge(ack) => self.acknowledge(subtask, ack),
            TaskEvent::Decline { id, reason } => self.decline(subtask, id, reason),
            TaskEvent::Committed { uid, up_to, prepared, swept } => {
                let up_to = up_to.min(self.coordinator.newest_completed());
                self.commits.report(&uid, subtask, up_to, prepared, swept);
                if let Some(up_to) = self.commits.risen() {
                    self.notice(MasterNotice::Committed { up_to });
                }
            }
            TaskEvent::TransactionsRecovered { committed, rolled_back } => {
                self.transactions.0 += u64::from(committed);
                self.transactions.1 += u64::from(rolled_back);
            }
            TaskEvent::TransactionGivenUp(lost) => self.notice(MasterNotice::TransactionGivenUp(lost)),
            TaskEvent::Ended => self.subtask_ended(subtask),
            TaskEvent::Finished if self.phase == Phase::Finishing => {
                self.gone.insert(subtask);
            }
            TaskEvent::Canceled if matches!(self.phase, Phase::Canceling { .. }) => {
                self.gone.insert(subtask);
            }
            TaskEvent::Finished | TaskEvent::Canceled => {}
            TaskEvent::Progress { records_in, records_written, lag } => {
                self.lags.extend(lag.map(|lag| (subtask, lag)));
                self.progress.insert(subtask, (records_in, records_written));
                self.written.said(subtask, records_written);
                let (records_read, records_written) = self.progress();
                let prepared = self.commits.prepared();
                let lag = (!self.lags.is_empty()).then(|| self.lags.values().sum());
                self.notice(MasterNotice::Progress { records_read, records_written, prepared, lag });
            }
            TaskEvent::Failed(failure) => self.subtask_failed(subtask, failure),
        }
    }

    fn subtask_recovered(&mut self, subtask: SubtaskId) {
        if self.recovered.insert(subtask) && self.recovered.len() == self.all.len() {
            self.coordinator.recovered(self.now);
            let (committed, rolled_back) = self.transactions;
            self.notice(MasterNotice::Recovered { committed, rolled_back });
        }
    }

    fn subtask_ended(&mut self, subtask: SubtaskId) {
        if self.ended.insert(subtask) && self.all_ended() {
            self.notice(MasterNotice::AllEnded);
        }
    }

    pub(super) fn all_ended(&self) -> bool {
        self.ended.len() == self.all.len()
    }

    fn subtask_failed(&mut self, subtask: SubtaskId, failure: TaskFailure) {
        if let TaskFailure::Lost(lost) = failure {
            self.end(AttemptEnd::Lost(*lost));
        } else if self.phase == Phase::Finishing && self.has_log() {
            self.gone.insert(subtask); // `finished` stands in the log: nothing is left that could be lost
        } else if let TaskFailure::TakenOver { by, .. } = failure {
            tracing::warn!("{failure}");
            self.end(AttemptEnd::Fenced { at: by });
        } else {
            let name = self.plan.subtask_name(subtask);
            self.fail(AttemptFailure::Task { subtask, name, source: Box::new(failure) });
        }
    }
}
