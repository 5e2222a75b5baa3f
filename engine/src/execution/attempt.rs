//! One attempt in one process: its job master, its subtasks, and the I/O that the master's actions become.
//!
//! Owns: delivery of mail, reports and I/O results. Does not own: decisions. Runs on: the thread that steps it.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use tokio::sync::mpsc;

use super::delivery::{Packet, SharedDelivery};
use super::io_scope::IoScope;
use super::role::Role;
use crate::api::{ClaimWatch, ConnectorError};
use crate::checkpoint::commit_log::LogClient;
use crate::clock::{Moment, SharedClock};
use crate::error::EngineError;
use crate::fault::panic_text;
use crate::graph::node::JobIdentity;
use crate::graph::{InstantiateSetup, JobGraph, Mailboxes, SubtaskWiring, build_subtask, wire};
use crate::ids::SubtaskId;
use crate::io::{Io, NamedIo, Presence, SharedIo, Waker, unpanicked};
use crate::jobmanager::{
    AttemptEnd, Control, JobMaster, MasterAction, MasterEvent, MasterNotice, MasterSetup,
};
use crate::taskworker::mail::TaskReport;
use crate::taskworker::restore::Restored;
use crate::taskworker::slot_pool::{BuildSubtasks, Placement, SlotPool, SlotSubtask};
use crate::taskworker::slot_wake::SubtaskWake;
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
    pub restored: Arc<Restored>,
    /// Where subtasks run.
    pub slots: Slots,
    /// How messages go.
    pub delivery: SharedDelivery,
    /// The process's seam, clock and waker.
    pub io: SharedIo,
    /// Who is on the threads of the I/O side.
    pub presence: Arc<Presence>,
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

/// Where subtasks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// On the thread that steps the attempt, one step at a time: simulation.
    Inline,
    /// On this many threads of their own.
    Threads(usize),
}

enum Subtasks {
    Inline(Vec<Subtask>),
    Threads(SlotPool),
}

impl Subtasks {
    fn build(
        graph: &JobGraph,
        setup: &InstantiateSetup,
        slots: Slots,
        own: &Waker,
    ) -> Result<(Self, Mailboxes), EngineError> {
        let Slots::Threads(threads) = slots else {
            let (wirings, mailboxes) = wire(graph, setup.channel_credits, |_| Arc::clone(own));
            let subtasks =
                wirings.into_iter().map(|w| build_subtask(graph, setup, w)).collect::<Result<_, _>>()?;
            return Ok((Self::Inline(subtasks), mailboxes));
        };
        let placement = Placement::new(graph, threads);
        let mut pool = SlotPool::start(placement.threads(), &setup.clock)?;
        let plan = graph.plan();
        let wakes: HashMap<SubtaskId, Arc<SubtaskWake>> =
            plan.subtasks().map(|id| (id, pool.waker(placement.thread_of(id)))).collect();
        let waker = |id| Arc::clone(&wakes[&id]) as Waker;
        let (wirings, mailboxes) = wire(graph, setup.channel_credits, waker);
        let mut shares: Vec<Vec<(Arc<SubtaskWake>, SubtaskWiring)>> =
            (0..pool.len()).map(|_| Vec::new()).collect();
        for wiring in wirings {
            let wake = Arc::clone(&wakes[&wiring.id]);
            shares[placement.thread_of(wiring.id)].push((wake, wiring));
        }
        let work = shares.into_iter().map(|share| {
            let (graph, setup) = (graph.clone(), setup.clone());
            let build = move |(wake, wiring): (Arc<SubtaskWake>, SubtaskWiring)| {
                let id = wiring.id;
                // A panic of user code while it restores its state: it names the subtask, as every other one does.
                let built = catch_unwind(AssertUnwindSafe(|| build_subtask(&graph, &setup, wiring)));
                let subtask = built.unwrap_or_else(|panic| {
                    let operator = graph.plan().subtask_name(id);
                    let message = format!("while its state was restored: {}", panic_text(panic.as_ref()));
                    Err(EngineError::Connector { operator, message, restartable: true })
                })?;
                Ok(SlotSubtask::new(wake, subtask))
            };
            Box::new(move || share.into_iter().map(build).collect()) as BuildSubtasks
        });
        if let Err(error) = pool.build(work.collect()) {
            // Nothing has run yet: every thread returns at once.
            let _ = pool.stop(Duration::from_secs(10));
            return Err(error);
        }
        Ok((Self::Threads(pool), mailboxes))
    }
}

/// See the module.
pub struct Attempt {
    master: JobMaster,
    subtasks: Subtasks,
    mailboxes: Mailboxes,
    reports: Receiver<TaskReport>,
    /// Reports that have arrived, and the way by which messages go.
    arrived: VecDeque<TaskReport>,
    delivery: SharedDelivery,
    results_tx: mpsc::Sender<MasterEvent>,
    results: mpsc::Receiver<MasterEvent>,
    log: Option<LogClient>,
    manager_io: Arc<IoScope>,
    worker_io: Arc<IoScope>,
    has_manager: bool,
    clock: SharedClock,
    waker: Waker,
    notices: VecDeque<MasterNotice>,
    end: Option<AttemptEnd>,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("master", &self.master.is_over()).finish_non_exhaustive()
    }
}

impl Attempt {
    /// Builds subtasks and master. Inline subtasks run as they are stepped; those on threads at once.
    ///
    /// # Errors
    /// State that does not fit.
    pub fn build(setup: AttemptSetup<'_>) -> Result<Self, EngineError> {
        let presence = setup.presence;
        let of_manager = NamedIo::shared(Arc::clone(&setup.io), Arc::clone(&presence), "the job manager");
        let (manager_io, worker_io) = (IoScope::new(of_manager), IoScope::new(setup.io));
        let (reports_tx, reports) = crossbeam_channel::bounded(REPORT_CAPACITY);
        let (results_tx, results) = mpsc::channel(RESULTS_MAX);
        let own = setup.identity.attempt;
        let claim = setup.log.clone().map_or_else(ClaimWatch::unclaimed, |log| ClaimWatch::of(log, own));
        let build = InstantiateSetup {
            identity: Arc::new(setup.identity),
            clock: Arc::clone(&setup.clock),
            io: Arc::clone(&worker_io) as Arc<dyn Io>,
            presence,
            limits: setup.config.limits(),
            channel_credits: setup.config.channel_batches,
            places: setup.places,
            checkpoint_timeout: setup.config.checkpoints.timeout(),
            claim,
            storage: setup.storage,
            restored: setup.restored,
            reports: reports_tx,
            master: Arc::clone(&setup.waker),
        };
        let built = Subtasks::build(setup.graph, &build, setup.slots, &setup.waker);
        let (subtasks, mailboxes) = built.inspect_err(|_| worker_io.abort_all())?;
        let mut attempt = Self {
            master: JobMaster::new(setup.master),
            subtasks,
            mailboxes,
            reports,
            arrived: VecDeque::new(),
            delivery: setup.delivery,
            results_tx,
            results,
            log: setup.log,
            manager_io,
            worker_io,
            has_manager: true,
            clock: setup.clock,
            waker: setup.waker,
            notices: VecDeque::new(),
            end: None,
        };
        attempt.tell(MasterEvent::Start);
        Ok(attempt)
    }

    /// How many subtasks there are to be stepped here; none if they run on threads.
    pub fn subtasks(&self) -> usize {
        match &self.subtasks {
            Subtasks::Inline(subtasks) => subtasks.len(),
            Subtasks::Threads(_) => 0,
        }
    }

    /// One step of one inline subtask.
    pub fn step_subtask(&mut self, index: usize) -> Step {
        match &mut self.subtasks {
            Subtasks::Inline(subtasks) => subtasks[index].step(),
            Subtasks::Threads(_) => Step::Blocked(None),
        }
    }

    /// Ends the slots' threads. `false`: one did not return in time, and the process cannot go on.
    #[must_use]
    pub fn stop_slots(&mut self, patience: Duration) -> bool {
        match &mut self.subtasks {
            Subtasks::Inline(_) => true,
            Subtasks::Threads(pool) => pool.stop(patience),
        }
    }

    /// What did not return when the slots' threads were told to end.
    pub fn stuck_slots(&self) -> &[String] {
        match &self.subtasks {
            Subtasks::Inline(_) => &[],
            Subtasks::Threads(pool) => pool.stuck(),
        }
    }

    /// One step of the job manager: one report, one result, or what is due. `true` if there was anything.
    pub fn step_master(&mut self) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.receive();
        if !self.has_manager {
            return self.arrived.pop_front().is_some();
        }
        if let Some(report) = self.arrived.pop_front() {
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
        self.has_manager.then(|| self.master.next_timer()).flatten()
    }

    /// Calls of subtasks that blocked a thread of the I/O side and have not returned.
    pub fn worker_io(&self) -> Arc<IoScope> {
        Arc::clone(&self.worker_io)
    }

    /// One part dies without the other, as two processes of a cluster may; nothing tells the other one. Only inline subtasks.
    pub fn lose(&mut self, role: Role) {
        match role {
            Role::JobManager => {
                self.has_manager = false;
                self.manager_io.abort_all();
            }
            Role::Worker => {
                self.subtasks = Subtasks::Inline(Vec::new());
                self.mailboxes.clear();
                self.worker_io.abort_all();
            }
        }
    }

    /// Somebody else than a subtask or the job manager says something, as the transport does when a worker is gone.
    pub fn deliver(&mut self, packet: Packet) {
        self.arrive(packet);
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

    /// Takes in what has been on its way, and one report.
    fn receive(&mut self) {
        let delivery = Arc::clone(&self.delivery);
        delivery.arrivals(self.clock.now(), &mut |packet| self.arrive(packet));
        if self.arrived.is_empty()
            && let Ok(report) = self.reports.try_recv()
        {
            delivery.carry(Packet::Report(report), &mut |packet| self.arrive(packet));
        }
    }

    fn arrive(&mut self, packet: Packet) {
        match packet {
            Packet::Report(report) => self.arrived.push_back(report),
            Packet::Mail(to, mail) => {
                if let Some((mailbox, slot)) = self.mailboxes.get(&to) {
                    // A full mailbox loses the mail, as a network may: the master says it again.
                    let _ = mailbox.try_send(mail);
                    slot.wake();
                }
            }
        }
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
                let delivery = Arc::clone(&self.delivery);
                delivery.carry(Packet::Mail(to, mail), &mut |packet| self.arrive(packet));
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
                let manager_io: SharedIo = Arc::clone(&self.manager_io) as Arc<dyn Io>;
                let Some(discovery) = self.master.discover(vertex, &manager_io) else { return };
                self.run("discovery", async move {
                    let found = unpanicked(discovery).await;
                    let result = found.unwrap_or_else(|panic| Err(ConnectorError::transient(panic)));
                    MasterEvent::Found { vertex, result }
                });
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
        self.manager_io.spawn(name, Box::pin(future));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _ = self.stop_slots(Duration::ZERO);
        self.manager_io.abort_all();
        self.worker_io.abort_all();
    }
}
