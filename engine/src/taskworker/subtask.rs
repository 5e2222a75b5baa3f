//! A subtask: a state machine with [`Subtask::step`].
//!
//! One step handles mail and control, or input up to one batch. **It never waits.** A blocked subtask takes no input, but is stepped
//! for mail and control: triggers, completions, aborts, cancel, barriers at the head of its inputs. Such a barrier is *noted*;
//! snapshot and forwarding wait until the element in hand, timers due and `on_end` are out (and, after the last input's end,
//! `EndOfData` is forwarded).
//!
//! Owns: the order of one step, numbered mail, what was reported. Does not own: the chain and its input ([`super::head`]), uploads
//! ([`super::subtask_checkpointer`]). Runs on: one slot's thread; it need not be `Send`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError};
use tidegate_state::fault_point;

use super::head::{Head, Taken};
use super::mail::{Mail, MailBody, TaskEvent, TaskFailure, TaskReport};
use super::subtask_checkpointer::{BarrierTimes, BeforeBarrier, CheckpointerSetup, SubtaskCheckpointer};
use crate::clock::{Moment, SharedClock};
use crate::element::CheckpointBarrier;
use crate::ids::{AttemptId, CheckpointId, SubtaskId};
use crate::io::Waker;
use crate::mutation::{self, Mutation};
use crate::operator::{Flow, OperatorPart, StageContext, StageControl, StageLimits};

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done: step again.
    Progress,
    /// Nothing can be done before a mail, an element, an event, or this moment.
    Blocked(Option<Moment>),
    /// Nothing will ever be done again.
    Finished,
}

/// Mail that fits into a subtask's mailbox: triggers, assignments and notifications; data never goes through it.
pub const MAIL_CAPACITY: usize = 64;
/// Reports of all subtasks that fit into the job manager's inbox.
pub const REPORT_CAPACITY: usize = 4_096;

/// Between two looks at an inbox that was full.
const REPORT_PAUSE: Duration = Duration::from_millis(1);

/// Between two reports of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(50);

/// What a subtask is made with.
pub struct SubtaskSetup {
    /// Who it is.
    pub id: SubtaskId,
    /// Name for people.
    pub name: String,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its input and chain.
    pub head: Box<dyn Head>,
    /// Whether it had forwarded `EndOfData` in the restored checkpoint.
    pub limits: StageLimits,
    /// From the job manager.
    pub mail: Receiver<Mail>,
    /// To the job manager.
    pub reports: Sender<TaskReport>,
    /// Wakes the job manager after a report.
    pub master: Waker,
    /// Time.
    pub clock: SharedClock,
    /// For its snapshots.
    pub checkpointer: CheckpointerSetup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Running,
    Canceling,
    Finishing,
    Done,
}

/// See the module.
pub struct Subtask {
    id: SubtaskId,
    name: String,
    attempt: AttemptId,
    head: Box<dyn Head>,
    mail: Receiver<Mail>,
    reports: Sender<TaskReport>,
    outbox: VecDeque<TaskReport>,
    master: Waker,
    clock: SharedClock,
    checkpointer: SubtaskCheckpointer,
    cx: StageContext,
    life: Life,
    last_seq: u64,
    recovered: bool,
    /// The last step found the chain blocked.
    blocked: bool,
    /// Under [`Mutation::EndedSetEarly`]: a snapshot was taken in front of the end.
    ended_early: bool,
    end_in_chain: bool,
    ended: bool,
    first_barrier: Option<Moment>,
    reported: (u64, u64),
    /// As it was reported last.
    lag: Option<u64>,
    reported_at: Moment,
}

impl std::fmt::Debug for Subtask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subtask").field("name", &self.name).field("life", &self.life).finish_non_exhaustive()
    }
}

impl Subtask {
    /// A subtask at its start.
    pub fn new(setup: SubtaskSetup) -> Self {
        Self {
            id: setup.id,
            name: setup.name,
            attempt: setup.attempt,
            head: setup.head,
            mail: setup.mail,
            reports: setup.reports,
            outbox: VecDeque::new(),
            master: setup.master,
            clock: setup.clock,
            checkpointer: SubtaskCheckpointer::new(setup.checkpointer),
            cx: StageContext::new(setup.limits),
            life: Life::Running,
            last_seq: 0,
            recovered: false,
            blocked: false,
            ended_early: false,
            end_in_chain: false,
            ended: false,
            first_barrier: None,
            reported: (0, 0),
            lag: None,
            reported_at: Moment::ZERO,
        }
    }

    /// Its name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who it is.
    pub fn id(&self) -> SubtaskId {
        self.id
    }

    /// One step. A panic of user code is caught here and becomes the subtask's failure.
    pub fn step(&mut self) -> Step {
        if self.life == Life::Done {
            return if self.send_reports() { Step::Finished } else { self.wait_for_master(None) };
        }
        self.cx.now = self.clock.now();
        self.cx.next_deadline = None;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.try_step()));
        let step = match outcome {
            Ok(Ok(step)) => step,
            Ok(Err(failure)) => self.fail(failure),
            Err(panic) if panic.is::<crate::fault::SimulatedCrash>() => std::panic::resume_unwind(panic),
            Err(panic) => self.fail(self.panicked(panic.as_ref())),
        };
        if self.checkpointer.is_busy() {
            self.checkpointer.note_step(self.clock.now().saturating_sub(self.cx.now));
        }
        match step {
            _ if self.send_reports() => step,
            Step::Blocked(deadline) => self.wait_for_master(deadline),
            Step::Progress | Step::Finished => step,
        }
    }

    /// The job manager's inbox is full; it wakes nobody when there is room again.
    fn wait_for_master(&self, deadline: Option<Moment>) -> Step {
        let again = self.clock.now() + REPORT_PAUSE;
        Step::Blocked(Some(deadline.map_or(again, |at| at.min(again))))
    }

    fn panicked(&self, panic: &(dyn std::any::Any + Send)) -> TaskFailure {
        TaskFailure::Operator {
            operator: self.cx.operator.to_string(),
            message: crate::fault::panic_text(panic),
            restartable: true,
        }
    }

    fn fail(&mut self, failure: TaskFailure) -> Step {
        self.life = Life::Done;
        let (records_in, records_written) = (self.head.records_in(), self.cx.records_written);
        self.report(TaskEvent::Progress { records_in, records_written, lag: self.lag });
        self.report(TaskEvent::Failed(failure));
        Step::Progress
    }

    fn try_step(&mut self) -> Result<Step, TaskFailure> {
        let unread = self.blocked && mutation::on(Mutation::MailUnreadWhileBlocked);
        let mut progress = !unread && self.take_mail()?;
        progress |= self.head.chain().poll(&mut self.cx)?;
        progress |= self.head.note();
        self.note_barrier_time();
        for id in self.head.take_declined() {
            progress = true;
            self.report(TaskEvent::Decline {
                id,
                reason: format!("a later barrier came while {id} was being aligned"),
            });
        }
        progress |= self.step_chain()?;
        self.collect();
        self.report_status();
        Ok(if self.life == Life::Done || progress {
            Step::Progress
        } else {
            Step::Blocked(self.cx.next_deadline)
        })
    }

    /// What is in hand, then a barrier, then input.
    fn step_chain(&mut self) -> Result<bool, TaskFailure> {
        if mutation::on(Mutation::EndedSetEarly) && self.end_in_chain && !self.ended && !self.ended_early {
            let Some(barrier) = self.head.take_barrier() else { return Ok(false) };
            self.ended_early = true;
            return self.snapshot(&barrier).map(|()| true);
        }
        let flow = self.head.chain().resume(&mut self.cx)?;
        self.blocked = flow == Flow::Blocked;
        match flow {
            Flow::More => return Ok(true),
            Flow::Blocked => return Ok(false),
            Flow::Idle => {}
        }
        if self.end_in_chain && !self.ended {
            self.ended = true;
            self.report(TaskEvent::Ended);
        }
        if let Some(barrier) = self.head.take_barrier() {
            self.snapshot(&barrier)?;
            return Ok(true);
        }
        // No input before recovery is done: no writer may open a transaction.
        if self.life != Life::Running && self.life != Life::Finishing || !self.recovered {
            return Ok(false);
        }
        let taken = self.head.take_input(&mut self.cx)?;
        self.end_in_chain |= taken == Taken::EndOfData;
        if taken == Taken::Nothing {
            return Ok(false);
        }
        if !(self.end_in_chain && mutation::on(Mutation::EndedSetEarly)) {
            self.head.chain().resume(&mut self.cx)?;
        }
        Ok(true)
    }

    fn note_barrier_time(&mut self) {
        if self.first_barrier.is_none() && self.head.awaits_barrier() {
            self.first_barrier = Some(self.cx.now);
        }
    }

    /// The way of one barrier through a subtask: freeze head and chain, send the barrier on, start uploads.
    fn snapshot(&mut self, barrier: &CheckpointBarrier) -> Result<(), TaskFailure> {
        let aligned = self.clock.now();
        self.notify_complete(barrier.newest_completed)?;
        fault_point!("snapshot.freeze.before");
        let mut parts: Vec<OperatorPart> = self.head.freeze(barrier, &mut self.cx).into_iter().collect();
        self.head.chain().snapshot(barrier, &mut parts, &mut self.cx)?;
        self.cx.source_position = None;
        fault_point!("snapshot.freeze.after");
        let first = self.first_barrier.take().unwrap_or(aligned);
        let times = BarrierTimes { step: self.cx.now, first, aligned, frozen: self.clock.now() };
        let before = BeforeBarrier { ended: self.ended, records_written: self.cx.records_written };
        self.checkpointer.begin(barrier, parts, before, times);
        Ok(())
    }

    fn notify_complete(&mut self, id: CheckpointId) -> Result<(), TaskFailure> {
        if id > CheckpointId(0) {
            self.checkpointer.forget_up_to(id);
            self.head.notify_complete(id);
            self.head.chain().control(StageControl::NotifyComplete(id), &mut self.cx)?;
        }
        Ok(())
    }

    fn take_mail(&mut self) -> Result<bool, TaskFailure> {
        let mut any = false;
        while let Ok(mail) = self.mail.try_recv() {
            any = true;
            if mail.attempt == self.attempt {
                self.on_mail(mail)?;
            }
        }
        Ok(any)
    }

    fn on_mail(&mut self, mail: Mail) -> Result<(), TaskFailure> {
        if let Some(seq) = mail.seq {
            if seq == self.last_seq + 1 {
                self.last_seq = seq;
                self.head.source_mail(mail.body)?;
            }
            // One that came before its turn is sent again; one that came twice is acknowledged again.
            self.report(TaskEvent::MailAcked { seq: self.last_seq });
            return Ok(());
        }
        match mail.body {
            MailBody::NotifyComplete { id } => self.notify_complete(id),
            MailBody::NotifyAbort { id } => {
                self.head.chain().control(StageControl::NotifyAbort(id), &mut self.cx)
            }
            MailBody::Cancel { newest_completed } => {
                if self.life == Life::Running {
                    self.life = Life::Canceling;
                    self.head.chain().control(StageControl::Cancel(newest_completed), &mut self.cx)?;
                }
                Ok(())
            }
            MailBody::Finish => {
                if self.life == Life::Running && self.ended {
                    self.life = Life::Finishing;
                    self.head.chain().control(StageControl::Finish, &mut self.cx)?;
                }
                Ok(())
            }
            MailBody::Trigger(_) | MailBody::AssignSplits { .. } | MailBody::NoMoreSplits => Ok(()),
        }
    }

    /// Gathers what the chain and the uploads have to report.
    fn collect(&mut self) {
        for (id, part) in std::mem::take(&mut self.cx.late_parts) {
            self.checkpointer.late_part(id, part);
        }
        for event in self.checkpointer.poll(self.cx.now) {
            fault_point!("ack.send.before");
            self.report(event);
            fault_point!("ack.send.after");
        }
        for event in std::mem::take(&mut self.cx.events) {
            self.report(event);
        }
    }

    fn report_status(&mut self) {
        let status = self.head.chain().status();
        if status.recovered && !self.recovered {
            self.recovered = true;
            self.report(TaskEvent::Recovered);
        }
        self.report_progress((self.head.records_in(), self.cx.records_written));
        if self.life == Life::Canceling && status.canceled {
            self.life = Life::Done;
            self.report(TaskEvent::Canceled);
        }
        if self.life == Life::Finishing && status.finished && self.head.is_closed() {
            self.life = Life::Done;
            self.report(TaskEvent::Finished);
        }
    }

    /// Progress is only for people: said now and then, and at once when nothing else is left to do.
    fn report_progress(&mut self, now: (u64, u64)) {
        let due = self.reported_at + PROGRESS_PAUSE;
        let is_early = self.cx.now < due && !self.ended;
        // How far a source is behind changes by itself; it wakes nobody.
        if now == self.reported && (is_early || self.head.lag() == self.lag) {
            return;
        }
        if is_early {
            self.cx.wake_at(due);
            return;
        }
        (self.reported, self.reported_at, self.lag) = (now, self.cx.now, self.head.lag());
        let (records_in, records_written) = now;
        self.report(TaskEvent::Progress { records_in, records_written, lag: self.lag });
    }

    fn report(&mut self, event: TaskEvent) {
        self.outbox.push_back(TaskReport { attempt: self.attempt, subtask: self.id, event });
    }

    /// Sends what waits in the outbox; `true` if nothing is left.
    fn send_reports(&mut self) -> bool {
        if self.outbox.is_empty() {
            return true;
        }
        while let Some(report) = self.outbox.pop_front() {
            if let Err(TrySendError::Full(report)) = self.reports.try_send(report) {
                self.outbox.push_front(report);
                self.master.wake();
                return false;
            }
        }
        self.master.wake();
        true
    }
}

#[cfg(test)]
mod tests;
