//! Threads that step subtasks.
//!
//! Subtask *i* of every vertex shares slot *i*; slot *s* runs on thread *s mod T*, which builds its subtasks, steps in turn those for
//! which something has arrived or whose moment has come, and parks when none can move. Against twice as many threads slots cost about a tenth in raw speed, and buy determinism, half the
//! threads and no context switches. A function that was declared as blocking gets a thread of its own ([`Placement`]).
//!
//! Owns: the threads of one attempt and their end. Does not own: what a step does. Runs on: started and joined by the attempt.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use super::slot_wake::{SlotWake, SubtaskWake};
use super::subtask::{Step, Subtask};
use crate::clock::{Moment, SharedClock};
use crate::error::EngineError;
use crate::graph::JobGraph;
use crate::ids::SubtaskId;
use crate::io::Wake;

/// The longest park, and the longest time without a step of every subtask: bounds what any mistake in waking could cost.
const PARK_MAX: Duration = Duration::from_millis(500);

impl Wake for SubtaskWake {
    fn wake(&self) {
        self.notify();
    }
}

/// Which thread steps which subtask.
#[derive(Clone, Debug)]
pub struct Placement {
    slot_threads: usize,
    /// Subtasks whose functions may block: one thread each, behind the slots' threads.
    blocking: Vec<SubtaskId>,
}

impl Placement {
    /// Slot *s* on thread *s mod T*; each subtask that may block on a thread of its own.
    pub fn new(graph: &JobGraph, slot_threads: usize) -> Self {
        let blocking = graph.vertices.iter().filter(|v| v.blocking);
        let subtasks =
            blocking.flat_map(|v| (0..v.parallelism).map(|index| SubtaskId { vertex: v.id, index }));
        Self { slot_threads: slot_threads.max(1), blocking: subtasks.collect() }
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.slot_threads + self.blocking.len()
    }

    /// The thread of a subtask.
    pub fn thread_of(&self, id: SubtaskId) -> usize {
        match self.blocking.iter().position(|b| *b == id) {
            Some(own) => self.slot_threads + own,
            None => id.index as usize % self.slot_threads,
        }
    }
}

/// A subtask with what wakes its thread for it.
pub struct SlotSubtask {
    wake: Arc<SubtaskWake>,
    subtask: Subtask,
    /// It was in the middle of something.
    again: bool,
    /// It wants to be stepped then, whether anything has arrived or not.
    deadline: Option<Moment>,
}

impl SlotSubtask {
    /// A subtask that was not stepped yet.
    pub fn new(wake: Arc<SubtaskWake>, subtask: Subtask) -> Self {
        Self { wake, subtask, again: false, deadline: None }
    }

    fn is_due(&self, now: Moment) -> bool {
        // Taken in any case: what has arrived is seen by this step.
        self.wake.take() || self.again || self.deadline.is_some_and(|at| now >= at)
    }

    fn step(&mut self) {
        let step = self.subtask.step();
        self.again = step == Step::Progress;
        self.deadline = match step {
            Step::Blocked(deadline) => deadline,
            // Kept until the attempt ends: its channels stay open.
            Step::Progress | Step::Finished => None,
        };
    }
}

/// Builds the subtasks of one thread on that thread.
pub type BuildSubtasks = Box<dyn FnOnce() -> Result<Vec<SlotSubtask>, EngineError> + Send>;

/// The thread of some slots, before its subtasks are known: its waker can be handed to those who send to it.
pub struct SlotThread {
    wake: Arc<SlotWake>,
    build: mpsc::SyncSender<BuildSubtasks>,
    built: mpsc::Receiver<Result<(), EngineError>>,
    thread: JoinHandle<()>,
    stepped: Arc<Stepped>,
}

/// Which of its subtasks a thread is stepping, for people when it does not return.
#[derive(Debug, Default)]
struct Stepped {
    names: OnceLock<Vec<String>>,
    /// 1 + the index in `names`; 0: none.
    now: AtomicUsize,
}

impl Stepped {
    fn name(&self) -> Option<&str> {
        let index = self.now.load(Ordering::Relaxed).checked_sub(1)?;
        self.names.get()?.get(index).map(String::as_str)
    }
}

/// All threads of an attempt.
pub struct SlotPool {
    threads: Vec<SlotThread>,
    stop: Arc<AtomicBool>,
    clock: SharedClock,
    stuck: Vec<String>,
}

impl std::fmt::Debug for SlotPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlotPool").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl SlotPool {
    /// Starts `threads` threads that wait for their subtasks.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(threads: usize, clock: &SharedClock) -> Result<Self, EngineError> {
        let stop = Arc::new(AtomicBool::new(false));
        let threads =
            (0..threads.max(1)).map(|index| start_thread(index, clock, &stop)).collect::<Result<_, _>>()?;
        Ok(Self { threads, stop, clock: Arc::clone(clock), stuck: Vec::new() })
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Wakes a thread for one subtask.
    pub fn waker(&self, thread: usize) -> Arc<SubtaskWake> {
        Arc::new(SubtaskWake::new(Arc::clone(&self.threads[thread].wake)))
    }

    /// Hands each thread its subtasks to build, and waits until all are built.
    ///
    /// # Errors
    /// The first subtask that could not be built.
    pub fn build(&self, work: Vec<BuildSubtasks>) -> Result<(), EngineError> {
        for (thread, build) in self.threads.iter().zip(work) {
            let _ = thread.build.send(build);
        }
        let gone = || EngineError::System {
            tried: "building subtasks",
            source: std::io::Error::other("a slot's thread ended"),
        };
        let results: Vec<_> =
            self.threads.iter().map(|t| t.built.recv().unwrap_or_else(|_| Err(gone()))).collect();
        results.into_iter().collect()
    }

    /// What did not return when it was told to stop: each subtask whose function runs, with its thread.
    pub fn stuck(&self) -> &[String] {
        &self.stuck
    }

    /// Tells every thread to stop and waits for them, at most for `patience`. `false`: a slot did not return (see [`SlotPool::stuck`]).
    #[must_use]
    pub fn stop(&mut self, patience: Duration) -> bool {
        self.stop.store(true, Ordering::Release);
        let deadline = self.clock.now() + patience;
        for SlotThread { wake, build, built, thread, stepped } in self.threads.drain(..) {
            drop((build, built));
            wake.notify();
            while !thread.is_finished() && self.clock.now() < deadline {
                wake.notify();
                std::thread::park_timeout(Duration::from_millis(1));
            }
            if !thread.is_finished() {
                let subtask = stepped.name().unwrap_or("a subtask");
                let name = thread.thread().name().unwrap_or("a slot's thread").to_owned();
                self.stuck.push(format!("{subtask} (thread {name})"));
                continue;
            }
            let _ = thread.join();
        }
        self.stuck.is_empty()
    }
}

fn start_thread(
    index: usize,
    clock: &SharedClock,
    stop: &Arc<AtomicBool>,
) -> Result<SlotThread, EngineError> {
    let (build, work) = mpsc::sync_channel::<BuildSubtasks>(1);
    let (built_tx, built) = mpsc::sync_channel(1);
    let (wake_tx, wake_rx) = mpsc::sync_channel(1);
    let (clock, stop) = (Arc::clone(clock), Arc::clone(stop));
    let stepped = Arc::<Stepped>::default();
    let shown = Arc::clone(&stepped);
    let run = move || {
        let wake = Arc::new(SlotWake::of_current_thread());
        let _ = wake_tx.send(Arc::clone(&wake));
        let Ok(build) = work.recv() else { return };
        match build() {
            Ok(subtasks) => {
                let names = subtasks.iter().map(|s: &SlotSubtask| s.subtask.name().to_owned());
                let _ = shown.names.set(names.collect());
                let _ = built_tx.send(Ok(()));
                step_all(subtasks, &shown, &wake, &clock, &stop);
            }
            Err(error) => {
                let _ = built_tx.send(Err(error));
            }
        }
    };
    let system = |source| EngineError::System { tried: "starting a slot's thread", source };
    let thread =
        std::thread::Builder::new().name(format!("tidegate-slot-{index}")).spawn(run).map_err(system)?;
    let wake = wake_rx.recv().map_err(|_| system(std::io::Error::other("it ended at once")))?;
    Ok(SlotThread { wake, build, built, thread, stepped })
}

/// Steps in turn those that are due; parks when a whole round brought nothing.
fn step_all(
    mut subtasks: Vec<SlotSubtask>,
    stepped: &Stepped,
    wake: &SlotWake,
    clock: &SharedClock,
    stop: &AtomicBool,
) {
    let mut all_stepped_at = clock.now();
    while !stop.load(Ordering::Acquire) {
        let now = clock.now();
        let all = now >= all_stepped_at + PARK_MAX;
        if all {
            all_stepped_at = now;
        }
        let (mut progress, mut until) = (false, all_stepped_at + PARK_MAX);
        for (index, subtask) in subtasks.iter_mut().enumerate() {
            if subtask.is_due(now) || all {
                stepped.now.store(index + 1, Ordering::Relaxed);
                subtask.step();
                stepped.now.store(0, Ordering::Relaxed);
            }
            progress |= subtask.again;
            until = subtask.deadline.map_or(until, |at| at.min(until));
        }
        if !progress {
            wake.park(until.saturating_sub(clock.now()));
        }
    }
}
