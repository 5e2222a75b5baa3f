//! Numbered mail to source subtasks: in order, sent again until acknowledged.
//!
//! Triggers and assignments of one subtask share *one* sequence, so that an assignment made after the enumerator's snapshot is
//! always behind the trigger (law 3).
//!
//! Owns: numbers, what is not acknowledged yet, when it is sent again. Does not own: delivery. Runs on: the job manager. Pure.

use std::collections::{BTreeMap, VecDeque};

use super::MAIL_REPEAT;
use crate::clock::Moment;
use crate::ids::SubtaskId;
use crate::taskworker::mail::MailBody;

/// How many unacknowledged mails of one subtask may be on their way; later ones wait here.
const MAIL_WINDOW: usize = 16;

#[derive(Debug)]
pub(super) struct Postbox {
    sequences: BTreeMap<SubtaskId, Sequence>,
}

#[derive(Debug, Default)]
struct Sequence {
    last: u64,
    unacked: VecDeque<Numbered>,
}

#[derive(Debug)]
struct Numbered {
    seq: u64,
    body: MailBody,
    sent_at: Option<Moment>,
}

impl Postbox {
    pub(super) fn new(subtasks: &[SubtaskId]) -> Self {
        Self { sequences: subtasks.iter().map(|s| (*s, Sequence::default())).collect() }
    }

    /// Adds a mail behind all earlier ones to this subtask.
    pub(super) fn post(&mut self, to: SubtaskId, body: MailBody) {
        let Some(sequence) = self.sequences.get_mut(&to) else { return };
        sequence.last += 1;
        sequence.unacked.push_back(Numbered { seq: sequence.last, body, sent_at: None });
    }

    /// Mail up to `seq` was handled.
    pub(super) fn acked(&mut self, from: SubtaskId, seq: u64) {
        if let Some(sequence) = self.sequences.get_mut(&from) {
            sequence.unacked.retain(|m| m.seq > seq);
        }
    }

    /// What is to be sent now: what never was, and what was not acknowledged in time.
    pub(super) fn due(&mut self, now: Moment) -> Vec<(SubtaskId, u64, MailBody)> {
        let mut due = Vec::new();
        for (to, sequence) in &mut self.sequences {
            for mail in sequence.unacked.iter_mut().take(MAIL_WINDOW) {
                if mail.sent_at.is_none_or(|at| now >= at + MAIL_REPEAT) {
                    mail.sent_at = Some(now);
                    due.push((*to, mail.seq, mail.body.clone()));
                }
            }
        }
        due
    }

    /// When something is to be sent again.
    pub(super) fn next_due(&self) -> Option<Moment> {
        let window = self.sequences.values().flat_map(|s| s.unacked.iter().take(MAIL_WINDOW));
        window.map(|m| m.sent_at.map_or(Moment::ZERO, |at| at + MAIL_REPEAT)).min()
    }
}
