//! Mail that is said again because nobody has answered.
//!
//! Completions until each two-phase sink reports *committed ≤ n*; `Finish` and `Cancel` until each subtask is gone; the newest
//! abort a few times, since it has no answer. Numbered mail has its own clock (see [`super::postbox`]).
//!
//! Owns: when. Does not own: what the receivers do with it: all of it is idempotent. Runs on: the job manager. Pure.

use super::{JobMaster, MAIL_REPEAT, MasterAction, Phase};
use crate::clock::Moment;
use crate::ids::{CheckpointId, SubtaskId};
use crate::taskworker::mail::{Mail, MailBody};

/// How often an abort is said again, unless a later checkpoint is triggered before.
const ABORT_REPEATS: u8 = 3;

#[derive(Debug, Default)]
pub(super) struct Repeats {
    at: Option<Moment>,
    abort: Option<(CheckpointId, u8)>,
}

impl Repeats {
    pub(super) fn due_at(&self) -> Option<Moment> {
        self.at
    }

    pub(super) fn remember_abort(&mut self, id: CheckpointId) {
        self.abort = Some((id, ABORT_REPEATS));
    }

    /// A later barrier tells it too.
    pub(super) fn forget_abort(&mut self) {
        self.abort = None;
    }

    fn take_abort(&mut self) -> Option<CheckpointId> {
        let (id, left) = self.abort?;
        self.abort = (left > 1).then_some((id, left - 1));
        Some(id)
    }
}

impl JobMaster {
    pub(super) fn repeat(&mut self) {
        self.post();
        let unanswered = self.unanswered();
        if unanswered.is_empty() && self.repeats.abort.is_none() {
            self.repeats.at = None;
        } else if self.repeats.at.is_none_or(|at| self.now >= at) {
            let first = self.repeats.at.is_none(); // it was said just now
            self.repeats.at = Some(self.now + MAIL_REPEAT);
            if !first {
                self.say_again(unanswered);
            }
        }
    }

    /// Numbered mail goes out while the job runs: later no subtask needs it any more.
    fn post(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        for (to, seq, body) in self.postbox.due(self.now) {
            let mail = Mail { attempt: self.attempt, seq: Some(seq), body };
            self.actions.push(MasterAction::Mail { to, mail });
        }
    }

    fn say_again(&mut self, unanswered: Vec<(SubtaskId, MailBody)>) {
        for (to, body) in unanswered {
            self.mail(to, body);
        }
        if let Some(id) = self.repeats.take_abort() {
            self.mail_all(MailBody::NotifyAbort { id });
        }
    }

    fn unanswered(&self) -> Vec<(SubtaskId, MailBody)> {
        let all = |subtasks: Vec<SubtaskId>, body: MailBody| {
            subtasks.into_iter().map(|to| (to, body.clone())).collect::<Vec<_>>()
        };
        let here = || self.all.difference(&self.gone).copied().collect();
        match self.phase {
            Phase::Created | Phase::WritingFinished | Phase::Over => Vec::new(),
            Phase::Finishing => all(here(), MailBody::Finish),
            Phase::Canceling { newest_completed } => all(here(), MailBody::Cancel { newest_completed }),
            Phase::Committing { last } => {
                all(self.commits.unsettled(last), MailBody::NotifyComplete { id: last })
            }
            Phase::Running if self.recovered.len() < self.all.len() => Vec::new(),
            Phase::Running => {
                let id = self.coordinator.newest_completed();
                all(self.commits.behind(id), MailBody::NotifyComplete { id })
            }
        }
    }
}
