//! A head that reads splits.
//!
//! Mail with splits and triggers is one ordered queue: splits assigned after the enumerator's snapshot *n* wait behind trigger
//! *n*, so they are in the reader's state only from snapshot *n + 1* on (the split law, [`crate::api::source`]).
//!
//! Owns: the reader, that queue, the end of data. Does not own: the enumerator. Runs on: the slot's thread.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_state::{Redistribution, decode_list, encode_list, fault_point};

use super::head::{Head, Taken};
use crate::api::{ConnectorError, ReadStatus, SourceOutput, SplitReader};
use crate::element::{CheckpointBarrier, SplitNotes, SplitRun, SplitStanding, WHOLE_INPUT};
use crate::ids::{CheckpointId, OperatorUid};
use crate::mutation::{self, Mutation};
use crate::operator::{AnyStage, OperatorPart, Stage, StageContext, StageElement};
use crate::taskworker::mail::{MailBody, TaskFailure};

/// Name of the operator list state that holds a reader's splits.
pub const SPLITS: &str = "splits";

/// Head of a subtask that starts with a source.
pub struct SourceHead<R: SplitReader> {
    name: Arc<str>,
    uid: OperatorUid,
    reader: R,
    chain: Box<dyn Stage<R::Record>>,
    mail: VecDeque<MailBody>,
    newest_trigger: CheckpointId,
    no_more_splits: bool,
    ended: bool,
    records_in: u64,
    /// Somebody in the chain makes watermarks of each split.
    hears_splits: bool,
    /// A sink of the chain wants to know where the reader stands at a barrier.
    takes_position: bool,
    /// The last poll brought nothing.
    waited: bool,
}

impl<R: SplitReader> std::fmt::Debug for SourceHead<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceHead").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<R: SplitReader> SourceHead<R> {
    /// Puts `chain` behind `reader`, which has its restored splits already.
    pub fn new(name: Arc<str>, uid: OperatorUid, reader: R, chain: Box<dyn Stage<R::Record>>) -> Self {
        let records_in = reader.restored_records();
        let (hears_splits, takes_position) = (chain.hears_splits(), chain.takes_position());
        Self {
            name,
            uid,
            reader,
            chain,
            mail: VecDeque::new(),
            newest_trigger: CheckpointId(0),
            no_more_splits: false,
            ended: false,
            records_in,
            hears_splits,
            takes_position,
            waited: false,
        }
    }

    fn failure(&self, error: &ConnectorError) -> TaskFailure {
        TaskFailure::of_connector(&self.name, error)
    }

    /// Tells the chain how the splits stand. `true`: it has something in hand now.
    fn note_splits(
        &mut self,
        mut notes: SplitNotes,
        records: usize,
        status: ReadStatus,
        cx: &mut StageContext,
    ) -> bool {
        (notes.now, notes.waited) = (cx.now, self.waited);
        if !self.reader.tells_splits() {
            let is_quiet = records == 0 && status != ReadStatus::More;
            let standing = if is_quiet { SplitStanding::CaughtUp } else { SplitStanding::Reading };
            notes.splits = vec![(WHOLE_INPUT, standing)];
            notes.runs = vec![SplitRun { split: WHOLE_INPUT, records }];
        }
        debug_assert_eq!(
            notes.runs.iter().map(|run| run.records).sum::<usize>(),
            records,
            "a reader told the splits of some records only"
        );
        self.chain.note_splits(&notes, cx)
    }

    /// Applies assignments that no trigger stands in front of.
    fn apply_mail(&mut self) -> Result<(), TaskFailure> {
        while let Some(mail) = self.mail.pop_front() {
            match mail {
                MailBody::AssignSplits { splits } => {
                    let added = decode_list::<R::Split>(&splits)
                        .map_err(|e| {
                            ConnectorError::fatal("splits sent by the job manager cannot be read")
                                .caused_by(e)
                        })
                        .and_then(|splits| self.reader.add_splits(splits));
                    added.map_err(|e| self.failure(&e))?;
                }
                MailBody::NoMoreSplits => self.no_more_splits = true,
                trigger => {
                    self.mail.push_front(trigger);
                    break;
                }
            }
        }
        Ok(())
    }
}

impl<R: SplitReader> Head for SourceHead<R> {
    fn chain(&mut self) -> &mut dyn AnyStage {
        &mut *self.chain
    }

    fn note(&mut self) -> bool {
        false
    }

    fn awaits_barrier(&self) -> bool {
        matches!(self.mail.front(), Some(MailBody::Trigger(_)))
    }

    fn take_barrier(&mut self) -> Option<CheckpointBarrier> {
        while let Some(MailBody::Trigger(barrier)) = self.mail.front() {
            let barrier = *barrier;
            self.mail.pop_front();
            if barrier.id > self.newest_trigger {
                self.newest_trigger = barrier.id;
                return Some(barrier);
            }
        }
        None
    }

    fn take_declined(&mut self) -> Vec<CheckpointId> {
        Vec::new()
    }

    fn take_input(&mut self, cx: &mut StageContext) -> Result<Taken, TaskFailure> {
        self.apply_mail()?;
        if self.ended {
            return Ok(Taken::Nothing);
        }
        cx.operator = Arc::clone(&self.name);
        let room = cx.limits.batch_records;
        let mut output =
            if self.hears_splits { SourceOutput::with_notes(room) } else { SourceOutput::with_room(room) };
        let status = self.reader.poll(&mut output).map_err(|e| self.failure(&e))?;
        let notes = output.take_notes();
        let batch = output.take();
        debug_assert!(
            batch.len() <= cx.limits.batch_records,
            "a reader emitted more than there was room for"
        );
        let noted = notes.is_some_and(|notes| self.note_splits(notes, batch.len(), status, cx));
        self.waited = batch.is_empty() && status != ReadStatus::More;
        if !batch.is_empty() {
            self.records_in += batch.len() as u64;
            self.chain.push(StageElement::Records(batch), cx)?;
            return Ok(Taken::Element);
        }
        match status {
            ReadStatus::Idle if self.no_more_splits => {
                self.ended = true;
                self.chain.push(StageElement::EndOfData, cx)?;
                Ok(Taken::EndOfData)
            }
            ReadStatus::Pending(Some(moment)) => {
                cx.wake_at(moment);
                Ok(if noted { Taken::Element } else { Taken::Nothing })
            }
            ReadStatus::More => Ok(Taken::Element),
            ReadStatus::Pending(None) | ReadStatus::Idle => {
                Ok(if noted { Taken::Element } else { Taken::Nothing })
            }
        }
    }

    fn freeze(&mut self, barrier: &CheckpointBarrier, cx: &mut StageContext) -> Option<OperatorPart> {
        fault_point!("source.snapshot.before");
        let splits = encode_list(&self.reader.snapshot());
        cx.source_position = if self.takes_position { self.reader.position() } else { None };
        if cx.source_position.is_none() {
            self.reader.note_snapshot(barrier.id);
        }
        fault_point!("source.snapshot.after");
        let lists = vec![(SPLITS.to_owned(), Redistribution::Split, splits)];
        Some(OperatorPart { uid: self.uid.clone(), keyed: None, lists, ended: false, comes_later: false })
    }

    fn source_mail(&mut self, mail: MailBody) -> Result<(), TaskFailure> {
        match (&mail, mutation::on(Mutation::AssignmentAfterSnapshot)) {
            (MailBody::AssignSplits { .. }, true) => self.mail.push_front(mail),
            _ => self.mail.push_back(mail),
        }
        self.apply_mail()
    }

    fn is_source(&self) -> bool {
        true
    }

    fn is_closed(&self) -> bool {
        self.ended
    }

    fn notify_complete(&mut self, id: CheckpointId) {
        self.reader.notify_complete(id);
    }

    fn records_in(&self) -> u64 {
        self.records_in
    }

    fn lag(&self) -> Option<u64> {
        self.reader.lag()
    }
}
