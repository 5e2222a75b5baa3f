//! The two orderly ends: end of data and cancel.
//!
//! **End of data** (law 7): the last checkpoint is complete, every sink reports it committed and has swept once more, `finished`
//! stands in the log, and only then the partitions end.
//! **Orderly cancel**: first the put in flight is settled; then everything the newest completed checkpoint lists is committed and
//! the rest is rolled back, by the sinks; then the attempt is canceled.
//!
//! Owns: these orders. Does not own: commits and sweeps. Runs on: the job manager. Pure.

use super::super::attempt_end::AttemptEnd;
use super::{JobMaster, Phase};
use crate::checkpoint::commit_log::EntryBody;
use crate::ids::CheckpointId;
use crate::taskworker::mail::MailBody;

impl JobMaster {
    /// Goes on towards the end, as far as it can.
    pub(super) fn finish(&mut self) {
        match self.phase {
            Phase::Running if !self.has_log() && self.all_ended() && !self.cancel_wanted => self.say_finish(),
            Phase::Committing { last } if self.may_write_finished(last) => {
                self.phase = Phase::WritingFinished;
                self.append(EntryBody::Finished);
            }
            Phase::Finishing if self.all_gone() => self.held_end = Some(AttemptEnd::Finished),
            Phase::Canceling { .. } if self.all_gone() => self.held_end = Some(AttemptEnd::Canceled),
            _ => {}
        }
        // A cleaning under way is let come to its end, so that an orderly end leaves no files that nothing names.
        if !self.cleaning
            && let Some(end) = self.held_end.take()
        {
            self.end(end);
        }
    }

    fn may_write_finished(&self, last: CheckpointId) -> bool {
        self.log.next().is_some() && !self.cancel_wanted && self.commits.unsettled(last).is_empty()
    }

    fn all_gone(&self) -> bool {
        self.gone.len() == self.all.len()
    }

    pub(super) fn say_finish(&mut self) {
        self.phase = Phase::Finishing;
        self.gone.clear();
        self.mail_all(MailBody::Finish);
    }

    /// Says `Cancel` as soon as no put is in flight. Once `finished` is being put the job ends by itself.
    pub(super) fn cancel(&mut self) {
        let may = matches!(self.phase, Phase::Running | Phase::Committing { .. });
        if !self.cancel_wanted || !may || self.log.next().is_none() {
            return;
        }
        for failed in self.coordinator.abort_all(self.now) {
            self.given_up(failed);
        }
        let newest_completed = self.coordinator.newest_completed();
        self.phase = Phase::Canceling { newest_completed };
        self.repeats.forget_abort();
        self.gone.clear();
        self.mail_all(MailBody::Cancel { newest_completed });
    }
}
