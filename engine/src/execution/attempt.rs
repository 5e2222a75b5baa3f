//! One attempt in one process: its job master, its subtasks, and the I/O that the master's actions become.
//!
//! Owns: delivery of mail, reports and I/O results. Does not own: decisions. Runs on: the thread that steps it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::mpsc;

use super::io_scope::IoScope;
use crate::api::ConnectorContext;
use crate::checkpoint::commit_log::LogClient;
use crate::clock::{Moment, SharedClock};
use crate::error::EngineError;
use crate::graph::node::JobIdentity;
use crate::graph::{InstantiateSetup, JobGraph, instantiate};
use crate::ids::SubtaskId;
use crate::io::{Io, SharedIo, Waker};
use crate::jobmanager::{
    AttemptEnd, Control, JobMaster, MasterAction, MasterEvent, MasterNotice, MasterSetup,
};
use crate::taskworker::mail::{Mail, TaskReport};
use crate::taskworker::restore::Restored;
use crate::taskworker::subtask::{REPORT_CAPACITY, Step, Subtask};

/// Results of the master's I/O that wait for it.
const RESULTS_MAX: usize = 64;

/// What an attempt is made with.
pub struct AttemptSetup<'a> {
    /// The graph.
    pub graph: &'a JobGraph,
    /// For the master.
    pub master: MasterSetup,
    /// Who the attempt is.
    pub identity: JobIdentity,
    /// The log; `None` without checkpoints.
    pub log: Option<LogClient>,
    /// What is restored.
    pub restored: &'a Restored,
    /// The process's seam, clock and waker.
    pub io: SharedIo,
    /// Time.
    pub clock: SharedClock,
    /// Wakes the thread that steps.
    pub waker: Waker,
    /// The rest of what subtasks are built with.
    pub config: &'a super::ExecutionConfig,
    /// Where state goes.
    pub storage: Option<tidegate_state::CheckpointStorage>,
    /// Transactions a sink may hold.
    pub places: usize,
}

/// See the module.
pub struct Attempt {
    master: JobMaster,
    subtasks: Vec<Subtask>,
    mailboxes: HashMap<SubtaskId, Sender<Mail>>,
    reports: Receiver<TaskReport>,
    results_tx: mpsc::Sender<MasterEvent>,
    results: mpsc::Receiver<MasterEvent>,
    log: Option<LogClient>,
    scope: Arc<IoScope>,
    io: SharedIo,
    clock: SharedClock,
    waker: Waker,
    notices: VecDeque<MasterNotice>,
    end: Option<AttemptEnd>,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("subtasks", &self.subtasks.len()).finish_non_exhaustive()
    }
}

impl Attempt {
    /// Builds subtasks and master; the attempt runs as it is stepped.
    ///
    /// # Errors
    /// State that does not fit.
    pub fn build(setup: AttemptSetup<'_>) -> Result<Self, EngineError> {
        let scope = IoScope::new(setup.io);
        let io: SharedIo = Arc::clone(&scope) as Arc<dyn Io>;
        let (reports_tx, reports) = crossbeam_channel::bounded(REPORT_CAPACITY);
        let (results_tx, results) = mpsc::channel(RESULTS_MAX);
        let connector =
            ConnectorContext { clock: setup.clock.clone(), io: Arc::clone(&io), waker: setup.waker.clone() };
        let instance = instantiate(
            setup.graph,
            &InstantiateSetup {
                identity: &setup.identity,
                connector,
                limits: setup.config.limits(),
                channel_credits: setup.config.channel_batches,
                places: setup.places,
                storage: setup.storage,
                restored: setup.restored,
                reports: reports_tx,
            },
        );
        let instance = instance.inspect_err(|_| scope.abort_all())?;
        let mut attempt = Self {
            master: JobMaster::new(setup.master),
            subtasks: instance.subtasks,
            mailboxes: instance.mail,
            reports,
            results_tx,
            results,
            log: setup.log,
            scope,
            io,
            clock: setup.clock,
            waker: setup.waker,
            notices: VecDeque::new(),
            end: None,
        };
        attempt.tell(MasterEvent::Start);
        Ok(attempt)
    }

    /// How many subtasks there are.
    pub fn subtasks(&self) -> usize {
        self.subtasks.len()
    }

    /// One step of one subtask.
    pub fn step_subtask(&mut self, index: usize) -> Step {
        self.subtasks[index].step()
    }

    /// One step of the job manager: one report, one result, or what is due. `true` if there was anything.
    pub fn step_master(&mut self) -> bool {
        if self.end.is_some() {
            return false;
        }
        if let Ok(report) = self.reports.try_recv() {
            self.tell(MasterEvent::Task(report));
            return true;
        }
        if let Ok(result) = self.results.try_recv() {
            self.tell(result);
            return true;
        }
        if self.master.next_timer().is_some_and(|due| due <= self.clock.now()) {
            self.tell(MasterEvent::Tick);
            return true;
        }
        false
    }

    /// When the master wants to be stepped if nothing happens before.
    pub fn next_timer(&self) -> Option<Moment> {
        self.master.next_timer()
    }

    /// Asks something of the job.
    pub fn control(&mut self, control: Control) {
        self.tell(MasterEvent::Control(control));
    }

    /// How the attempt has ended, once.
    pub fn take_end(&mut self) -> Option<AttemptEnd> {
        self.end.take()
    }

    /// What people may want to see.
    pub fn take_notice(&mut self) -> Option<MasterNotice> {
        self.notices.pop_front()
    }

    /// The master, to look at.
    pub fn master(&self) -> &JobMaster {
        &self.master
    }

    fn tell(&mut self, event: MasterEvent) {
        let actions = self.master.handle(self.clock.now(), self.clock.wall_ms(), event);
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: MasterAction) {
        match action {
            MasterAction::Mail { to, mail } => {
                if let Some(mailbox) = self.mailboxes.get(&to) {
                    // A full mailbox loses the mail, as a network may: the master says it again.
                    let _ = mailbox.try_send(mail);
                    self.waker.wake();
                }
            }
            MasterAction::Append { number, entry } => {
                let Some(log) = self.log.clone() else { return };
                self.run("log entry", async move {
                    let outcome = log.append(number, entry).await;
                    MasterEvent::EntrySettled { number, outcome }
                });
            }
            MasterAction::Clean(plan) => {
                let Some(log) = self.log.clone() else { return };
                self.run("cleaner", async move { MasterEvent::Cleaned { entries: log.clean(plan).await } });
            }
            MasterAction::Discover { vertex } => {
                let Some(discovery) = self.master.discover(vertex, &self.io) else { return };
                self.run("discovery", async move { MasterEvent::Found { vertex, result: discovery.await } });
            }
            MasterAction::End(end) => self.end = Some(end),
            MasterAction::Notice(notice) => self.keep_notice(notice),
        }
    }

    fn keep_notice(&mut self, notice: MasterNotice) {
        let is_progress = |n: &MasterNotice| matches!(n, MasterNotice::Progress { .. });
        match self.notices.back_mut() {
            Some(last) if is_progress(last) && is_progress(&notice) => *last = notice,
            _ => self.notices.push_back(notice),
        }
    }

    fn run(&self, name: &'static str, work: impl Future<Output = MasterEvent> + Send + 'static) {
        let (results, waker) = (self.results_tx.clone(), self.waker.clone());
        let future = async move {
            let result = work.await;
            let _ = results.send(result).await;
            waker.wake();
        };
        self.io.spawn(name, Box::pin(future));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.scope.abort_all();
    }
}
