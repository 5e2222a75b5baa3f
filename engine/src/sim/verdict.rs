//! What the scheduler makes of what processes tell and how they end.
//!
//! Owns: notices, ends, the conclusion of a run. Does not own: the comparison with the input (see [`super::judge`]).
//! Runs on: the simulation's thread.

use std::collections::BTreeSet;

use super::coverage::Area;
use super::judge::{Cut, cuts, finisher, history, orphans};
use super::line::LATE_STATEMENT_US_MAX;
use super::process::Standing;
use super::simulation::{Hand, Simulation};
use crate::checkpoint::commit_log::{EntryBody, LogError};
use crate::checkpoint::failure_manager::FailureReason;
use crate::checkpoint::stats::{CheckpointOutcome, CheckpointStats};
use crate::error::EngineError;
use crate::execution::{ExecutionNotice, JobOutcome};
use crate::ids::AttemptId;
use crate::jobmanager::MasterNotice;
use crate::operator::LostTransaction;
use crate::taskworker::restore::RestoreError;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A process reported that the job has finished.
    Finished {
        /// Whether it saw its own end; otherwise it found the entry of another one.
        own: bool,
    },
    /// The planted loss was reported.
    Lost(Box<LostTransaction>),
}

impl Simulation<'_> {
    pub(super) fn take_notice(&mut self, id: u32, notice: ExecutionNotice) -> Result<(), String> {
        match notice {
            ExecutionNotice::Started { attempt, restored, .. } => {
                self.say(Some(id), format!("attempt {attempt} restores {restored:?}"));
                let Some(process) = self.processes.iter_mut().find(|p| p.id == id) else { return Ok(()) };
                process.failed_before = false;
                let first = process.attempts.is_empty();
                process.attempts.insert(attempt);
                if process.explicit.is_some() && first {
                    self.cuts.push(Cut { below: attempt, up_to: restored.unwrap_or_default() });
                }
            }
            ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) => self.completed(id, &stats),
            ExecutionNotice::Master(MasterNotice::CheckpointFailed(stats)) => self.failed(id, &stats),
            ExecutionNotice::Master(MasterNotice::Recovered { committed, rolled_back }) => {
                self.recovered(id, committed, rolled_back);
            }
            ExecutionNotice::Master(MasterNotice::AllEnded) => {
                self.say(Some(id), "all subtasks have ended".to_owned());
                self.excused.clear();
                self.striker.note_all_ended(self.report.steps);
            }
            // Nobody decides here to go on without one.
            ExecutionNotice::Master(MasterNotice::TransactionGivenUp(lost)) => return Err(lost.to_string()),
            ExecutionNotice::Master(MasterNotice::Progress { .. } | MasterNotice::Committed { .. }) => {}
            ExecutionNotice::RepeatedOutput(_) => {}
            ExecutionNotice::Restarting { cause, after } => {
                self.report.restarts += 1;
                self.count(Area::Event, "restart inside the process");
                self.world.network.replay_acks(id);
                self.say(Some(id), format!("restarts after {after:?}: {cause}"));
                if cause.contains("panicked") {
                    return Err(cause);
                }
            }
        }
        Ok(())
    }

    fn completed(&mut self, id: u32, stats: &CheckpointStats) {
        self.report.completed += 1;
        self.say(Some(id), format!("checkpoint {} is complete", stats.id));
        let Some(process) = self.processes.iter_mut().find(|p| p.id == id) else { return };
        let (after_failure, worker_is_gone) =
            (std::mem::take(&mut process.failed_before), process.lacks_worker());
        if after_failure {
            self.count(Area::Event, "a checkpoint completed after one that failed");
        }
        if worker_is_gone {
            self.count(Area::Event, "a checkpoint completed after its worker had died");
        }
    }

    fn failed(&mut self, id: u32, stats: &CheckpointStats) {
        self.report.failed += 1;
        self.say(Some(id), format!("checkpoint {}: {:?}", stats.id, stats.outcome));
        if let Some(process) = self.processes.iter_mut().find(|p| p.id == id) {
            process.failed_before = true;
        }
        if let CheckpointOutcome::Failed(reason) = &stats.outcome {
            let what = match reason {
                FailureReason::Expired { .. } => "expired",
                FailureReason::Declined { .. } => "declined",
                FailureReason::Subsumed { .. } => "subsumed",
                FailureReason::Canceling => "canceling",
            };
            self.count(Area::FailedCheckpoint, what);
        }
    }

    fn recovered(&mut self, id: u32, committed: u64, rolled_back: u64) {
        self.say(Some(id), format!("recovered: {committed} committed, {rolled_back} rolled back"));
        for place in std::mem::take(&mut self.unrecovered) {
            self.count(Area::Recovered, place);
        }
        if committed > 0 {
            self.count(Area::Event, "a committed entry whose transactions recovery committed");
            let now = self.processes.iter().find(|p| p.id == id).map(super::process::Process::parallelism);
            if now.is_some_and(|now| now != self.parallelism_before) {
                self.count(Area::Event, "rescaled with pending transactions");
            }
        }
    }

    /// Somebody rolls a prepared transaction back that the newest entry lists.
    pub(super) fn strike_by_hand(&mut self) {
        if self.hand != Hand::Waiting {
            return;
        }
        let history = history(&self.world.objects);
        let Some(newest) = history.checkpoints().last() else { return };
        let (id, attempt) = (newest.id(), newest.manifest.attempt);
        let prepared = self.world.subject.prepared();
        let listed = prepared.into_iter().find(|n| n.attempt == attempt && n.opened_after < id);
        if let Some(name) = listed {
            self.world.subject.roll_back_by_hand(&name);
            self.say(None, format!("somebody rolls back {name}"));
            self.hand = Hand::Done(name);
        }
    }

    /// A process has come to its end.
    pub(super) fn over(
        &mut self,
        id: u32,
        result: Result<JobOutcome, EngineError>,
    ) -> Result<Option<End>, String> {
        // A zombie may have completed another checkpoint between the decision to rewind and the look at the log.
        let target = self.processes.iter().find(|p| p.id == id).and_then(|p| p.rewind);
        let restorable = history(&self.world.objects).restorable();
        let raced = target.is_some_and(|target| restorable.iter().all(|c| c.id() != target));
        let text = result.as_ref().map_or_else(|e| crate::error::chain_text(e), |o| format!("{o:?}"));
        self.say(Some(id), format!("ends: {text}"));
        match result {
            // Somebody had begun the job anew after the entry `finished`: the job goes on.
            Ok(JobOutcome::Finished) if self.is_begun_anew() => {
                self.count(Area::Event, "begun anew after its end")
            }
            Ok(JobOutcome::Finished) => return Ok(Some(self.finished(id, true))),
            Ok(JobOutcome::Canceled) => self.canceled(id)?,
            Ok(JobOutcome::CanceledUnbegun) => {}
            Err(EngineError::Fenced { .. }) => self.count(Area::Event, "a fenced attempt"),
            Err(EngineError::Lost { lost, .. }) => return self.lost(id, lost),
            Err(EngineError::Log(error)) => match *error {
                // The process died between the entry `finished` and its own end.
                LogError::AlreadyFinished { .. } => return Ok(Some(self.finished(id, false))),
                LogError::Store { .. } => {}
                LogError::UnknownCheckpoint { .. }
                | LogError::NotOnTheLine { .. }
                | LogError::NotRetained { .. }
                    if raced => {}
                other => return Err(format!("the job ended with: {other}")),
            },
            // The store failed: whoever started the process starts it again.
            Err(EngineError::Storage(_)) => {}
            Err(EngineError::Restore(error)) if matches!(*error, RestoreError::Storage { .. }) => {}
            // What fails while it is being canceled is not restarted: the next process goes on.
            Err(EngineError::JobFailed { .. }) if self.is_canceled(id) => {}
            Err(_) => return Err(format!("the job ended with: {text}")),
        }
        self.remove(id);
        Ok(None)
    }

    /// Whether a claim stands above the entry `finished`.
    fn is_begun_anew(&self) -> bool {
        let log = history(&self.world.objects);
        let finished =
            log.iter().find(|(_, e)| matches!(e.body, EntryBody::Finished)).map(|(number, _)| number);
        finished.is_some_and(|number| log.above(number).any(|(_, e)| e.is_claim()))
    }

    fn is_canceled(&self, id: u32) -> bool {
        self.processes.iter().any(|p| p.id == id && p.canceled)
    }

    /// At CANCELED nothing of the process's own is left, and nothing of the attempts before it that it could know of.
    fn canceled(&mut self, id: u32) -> Result<(), String> {
        if !self.is_canceled(id) {
            return Err("the job was canceled by nobody".to_owned());
        }
        let (own, others): (Vec<_>, Vec<_>) = self.processes.iter().partition(|p| p.id == id);
        let mut excused: BTreeSet<AttemptId> = self.excused.iter().copied().collect();
        excused.extend(others.iter().flat_map(|p| p.attempts.iter().copied()));
        own.iter().flat_map(|p| &p.attempts).for_each(|attempt| {
            excused.remove(attempt);
        });
        self.check_left_overs(&excused).map_err(|what| format!("at CANCELED: {what}"))?;
        self.count(Area::Event, "canceled in order");
        Ok(())
    }

    fn finished(&mut self, id: u32, own: bool) -> End {
        for place in std::mem::take(&mut self.unrecovered) {
            self.count(Area::Recovered, place);
        }
        self.remove(id);
        End::Finished { own }
    }

    fn lost(&mut self, id: u32, lost: Box<LostTransaction>) -> Result<Option<End>, String> {
        match &self.hand {
            Hand::Done(name) if *name == lost.name && lost.closed_by > lost.name.opened_after => {
                self.count(Area::Event, "a transaction rolled back by hand was reported lost");
                self.report.ended_in_loss = true;
                self.remove(id);
                Ok(Some(End::Lost(lost)))
            }
            // A zombie asks for what a rewind, or a start without restore, has passed over: the job goes on without that.
            _ if self.is_passed_over(id, &lost) => {
                self.count(Area::Event, "a zombie asked for a transaction that was passed over");
                self.remove(id);
                Ok(None)
            }
            _ => Err(format!("the job ended with: {lost}")),
        }
    }

    fn is_passed_over(&self, id: u32, lost: &LostTransaction) -> bool {
        let process = self.processes.iter().find(|p| p.id == id);
        let Some(newest) = process.and_then(|p| p.attempts.last().copied()) else { return false };
        let mut all = cuts(&history(&self.world.objects));
        all.extend(self.cuts.iter().copied());
        all.iter().any(|cut| newest < cut.below && lost.closed_by > cut.up_to)
    }

    /// Judges what is there; then lets zombies go on to their end, and judges again.
    pub(super) fn conclude(&mut self, end: End) -> Result<(), String> {
        let own = match end {
            End::Lost(_) => return Ok(()),
            End::Finished { own } => own,
        };
        if let Hand::Done(name) = &self.hand {
            return Err(format!(
                "{name} was rolled back by hand, and the job has finished as if nothing had happened"
            ));
        }
        let calm = self.world.is_calm();
        let history = history(&self.world.objects);
        let finisher = finisher(&history).ok_or("the job has finished, and no entry says so")?;
        let mut excused: BTreeSet<AttemptId> = self.excused.iter().copied().collect();
        excused.extend(self.processes.iter().flat_map(|p| p.attempts.iter().copied()));
        excused.remove(&finisher);
        self.world.advance(2 * LATE_STATEMENT_US_MAX, &mut self.rng);
        self.check_output()?;
        self.check_left_overs(&excused)?;
        // While the store still fails, the last sweep may fail as often as it is tried.
        let files = orphans(&self.world.objects, &excused);
        if own && calm && !files.is_empty() {
            return Err(format!("files that no entry names at FINISHED: {files:?}"));
        }
        self.drain()?;
        self.check_output().map_err(|what| format!("after the zombies have ended: {what}"))?;
        self.check_readable()
    }

    /// What zombies have left open is given up by the server in time; then readers see all that was committed.
    fn check_readable(&mut self) -> Result<(), String> {
        let Some(within_us) = self.world.subject.hides_for_us() else { return Ok(()) };
        self.world.advance(within_us + 2 * LATE_STATEMENT_US_MAX, &mut self.rng);
        self.world.advance(LATE_STATEMENT_US_MAX, &mut self.rng);
        match self.world.subject.hidden() {
            0 => Ok(()),
            hidden => Err(format!("{hidden} committed records stay hidden behind an open transaction")),
        }
    }

    fn check_output(&self) -> Result<(), String> {
        let mut all = cuts(&history(&self.world.objects));
        all.extend(self.cuts.iter().copied());
        self.world.subject.check(&all)
    }

    fn check_left_overs(&self, excused: &BTreeSet<AttemptId>) -> Result<(), String> {
        let left = self.world.subject.left_overs();
        let left: Vec<_> =
            left.iter().filter(|n| !excused.contains(&n.attempt)).map(ToString::to_string).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("left over: {left:?}")) }
    }

    /// Every process that still stands or runs must end as fenced, or find that the job has finished.
    fn drain(&mut self) -> Result<(), String> {
        self.draining = true;
        self.world.calm.store(true, std::sync::atomic::Ordering::Relaxed);
        self.striker.disarm_for_good();
        for process in &mut self.processes {
            process.standing = Standing::No;
        }
        while !self.processes.is_empty() {
            match self.turn() {
                Ok(Some(End::Lost(_)) | None | Some(End::Finished { .. })) => {}
                Err(what) => return Err(format!("while zombies went on after FINISHED: {what}")),
            }
        }
        Ok(())
    }
}
