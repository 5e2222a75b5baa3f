//! [`Io`] in a simulation: futures are polled one at a time, when the scheduler picks them.
//!
//! Owns: the futures of the simulated process. Does not own: the order (the scheduler does). Runs on: the simulation's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::clock::SimClock;
use crate::io::{BoxFuture, Io, SpawnedIo};

/// See the module.
pub struct SimIo {
    clock: Arc<SimClock>,
    /// Guards the list of futures; never held while one is polled, since polling may start another.
    tasks: Mutex<Vec<Task>>,
}

struct Task {
    name: &'static str,
    future: BoxFuture<()>,
    state: Arc<TaskState>,
}

impl Task {
    fn is_woken(&self) -> bool {
        self.state.woken.load(Ordering::Relaxed)
    }
}

struct TaskState {
    woken: AtomicBool,
    aborted: AtomicBool,
    finished: AtomicBool,
}

impl Wake for TaskState {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
    }
}

impl SpawnedIo for Arc<TaskState> {
    fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        self.woken.store(true, Ordering::Relaxed);
    }

    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }
}

impl SimIo {
    /// No future yet.
    pub fn new(clock: Arc<SimClock>) -> Arc<Self> {
        Arc::new(Self { clock, tasks: Mutex::default() })
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many futures can go on.
    pub fn ready(&self) -> usize {
        self.tasks().iter().filter(|task| task.is_woken()).count()
    }

    /// The position of the nth future that can go on.
    pub fn nth_ready(&self, nth: usize) -> Option<usize> {
        self.tasks().iter().enumerate().filter(|(_, task)| task.is_woken()).nth(nth).map(|(at, _)| at)
    }

    /// Of the future at this position.
    pub fn name(&self, index: usize) -> &'static str {
        self.tasks()[index].name
    }

    /// Polls one future that can go on.
    pub fn poll(&self, index: usize) {
        let mut task = self.tasks().swap_remove(index);
        task.state.woken.store(false, Ordering::Relaxed);
        let done = if task.state.aborted.load(Ordering::Relaxed) {
            true
        } else {
            let waker = Waker::from(Arc::clone(&task.state));
            task.future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(())
        };
        if done {
            task.state.finished.store(true, Ordering::Relaxed);
        } else {
            self.tasks().push(task);
        }
    }

    /// The process dies: every future is gone.
    pub fn crash(&self) {
        let tasks = std::mem::take(&mut *self.tasks());
        drop(tasks);
        // Dropping one may have started another in a clean-up; a dead process cleans nothing up.
        self.tasks().clear();
    }

    /// Names of the futures that are waiting, for a report.
    pub fn names(&self) -> Vec<&'static str> {
        self.tasks().iter().map(|t| t.name).collect()
    }
}

impl Io for SimIo {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        let state = Arc::new(TaskState {
            woken: AtomicBool::new(true),
            aborted: AtomicBool::new(false),
            finished: AtomicBool::new(false),
        });
        self.tasks().push(Task { name, future, state: Arc::clone(&state) });
        Box::new(state)
    }

    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        Box::pin(self.clock.sleep(span))
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        Box::pin(async move { work() })
    }
}
