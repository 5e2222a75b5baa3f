//! Messages of a simulation: mail and reports that are late, lost, doubled, or come from a process that should be dead.
//!
//! What may be lost is what the protocol repeats: mail of every kind, acknowledgements of mail and of checkpoints, declines, what a
//! sink has committed, progress. That a subtask has recovered, ended, failed, finished or canceled is said once over a connection
//! whose loss ends the attempt; such reports come late or twice, never not at all.
//!
//! Owns: messages on their way. Does not own: what is said. Runs on: the simulation's thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::SimClock;
use super::coverage::{Area, SharedCoverage};
use super::rng::Rng;
use crate::clock::Moment;
use crate::execution::{Delivery, Packet};
use crate::taskworker::mail::TaskEvent;

/// A late message takes so many microseconds at most.
const LATE_US_MAX: u64 = 600_000;

/// Acknowledgements that are remembered.
const ACKS_MAX: usize = 8;
/// Each of them comes so often to a later attempt,
const REPLAYS: u32 = 4;
/// within this time.
const REPLAY_US_MAX: u64 = 160_000;

/// All messages on their way.
#[derive(Debug)]
pub struct Network {
    clock: Arc<SimClock>,
    calm: Arc<AtomicBool>,
    coverage: SharedCoverage,
    /// One message in so many is lost; as many are doubled, and late; 0: none.
    fault_one_in: u64,
    /// Guards what only one thread uses.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    late: Vec<Late>,
    /// The newest acknowledgements, which may come to a later attempt.
    acks: VecDeque<Packet>,
}

#[derive(Debug)]
struct Late {
    process: u32,
    due: u64,
    packet: Packet,
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Straight,
    Lost,
    Doubled,
    Late,
}

impl Network {
    /// Nothing on its way.
    pub fn new(
        clock: Arc<SimClock>,
        rng: Rng,
        fault_one_in: u64,
        calm: Arc<AtomicBool>,
        coverage: SharedCoverage,
    ) -> Arc<Self> {
        let state = Mutex::new(State { rng, late: Vec::new(), acks: VecDeque::new() });
        Arc::new(Self { clock, calm, coverage, fault_one_in, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the next late message of a process arrives.
    pub fn next_due(&self, process: u32) -> Option<u64> {
        self.state().late.iter().filter(|l| l.process == process).map(|l| l.due).min()
    }

    /// A process is gone, or stands still: some of what was on its way to it comes to `heir`, as from the dead.
    pub fn inherit(&self, process: u32, heir: u32) {
        let mut state = self.state();
        for late in state.late.iter_mut().filter(|l| l.process == process) {
            late.process = heir;
            let what = match late.packet {
                Packet::Mail(..) => "mail of another process",
                Packet::Report(_) => "report of another process",
            };
            self.coverage.count(Area::Injected, what);
        }
        drop(state);
        self.replay_acks(heir);
    }

    /// The newest acknowledgements come once more, to a process that has another attempt by then.
    pub fn replay_acks(&self, process: u32) {
        if self.fault_one_in == 0 || self.calm.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        for packet in std::mem::take(&mut state.acks) {
            for _ in 0..REPLAYS {
                let due = self.clock.micros() + state.rng.below(REPLAY_US_MAX);
                state.late.push(Late { process, due, packet: packet.clone() });
            }
        }
    }

    fn remember(&self, packet: &Packet) {
        let is_ack =
            |p: &Packet| matches!(p, Packet::Report(r) if matches!(r.event, TaskEvent::Acknowledge(_)));
        if self.fault_one_in > 0 && is_ack(packet) {
            let mut state = self.state();
            state.acks.push_back(packet.clone());
            if state.acks.len() > ACKS_MAX {
                state.acks.pop_front();
            }
        }
    }

    fn fate(&self, packet: &Packet) -> Fate {
        if self.fault_one_in == 0 || self.calm.load(Ordering::Relaxed) {
            return Fate::Straight;
        }
        match self.state().rng.below(self.fault_one_in) {
            0 if may_be_lost(packet) => Fate::Lost,
            1 => Fate::Doubled,
            2 => Fate::Late,
            _ => Fate::Straight,
        }
    }

    fn count(&self, fate: Fate, packet: &Packet) {
        let what = match (fate, packet) {
            (Fate::Straight, _) => return,
            (Fate::Lost, Packet::Mail(..)) => "mail lost",
            (Fate::Lost, Packet::Report(_)) => "report lost",
            (Fate::Doubled, Packet::Mail(..)) => "mail doubled",
            (Fate::Doubled, Packet::Report(_)) => "report doubled",
            (Fate::Late, Packet::Mail(..)) => "mail late",
            (Fate::Late, Packet::Report(_)) => "report late",
        };
        self.coverage.count(Area::Injected, what);
    }

    fn later(&self, process: u32, packet: Packet) {
        let mut state = self.state();
        let due = self.clock.micros() + state.rng.below(LATE_US_MAX);
        state.late.push(Late { process, due, packet });
    }
}

fn may_be_lost(packet: &Packet) -> bool {
    match packet {
        Packet::Mail(..) => true,
        Packet::Report(report) => match report.event {
            TaskEvent::MailAcked { .. }
            | TaskEvent::Acknowledge(_)
            | TaskEvent::Decline { .. }
            | TaskEvent::Committed { .. }
            | TaskEvent::Progress { .. } => true,
            TaskEvent::Recovered
            | TaskEvent::TransactionsRecovered { .. }
            | TaskEvent::TransactionGivenUp(_)
            | TaskEvent::Ended
            | TaskEvent::Finished
            | TaskEvent::Canceled
            | TaskEvent::Failed(_) => false,
        },
    }
}

/// The network as one process sees it.
#[derive(Clone, Debug)]
pub struct ProcessNetwork {
    /// All messages.
    pub network: Arc<Network>,
    /// Whose.
    pub process: u32,
}

impl Delivery for ProcessNetwork {
    fn carry(&self, packet: Packet, arrive: &mut dyn FnMut(Packet)) {
        self.network.remember(&packet);
        let fate = self.network.fate(&packet);
        self.network.count(fate, &packet);
        match fate {
            Fate::Straight => arrive(packet),
            Fate::Lost => {}
            Fate::Doubled => {
                self.network.later(self.process, packet.clone());
                arrive(packet);
            }
            Fate::Late => self.network.later(self.process, packet),
        }
    }

    fn arrivals(&self, now: Moment, arrive: &mut dyn FnMut(Packet)) {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        loop {
            let mut state = self.network.state();
            let due = state.late.iter().position(|l| l.process == self.process && l.due <= now);
            let Some(at) = due else { return };
            let late = state.late.remove(at);
            drop(state);
            arrive(late.packet);
        }
    }
}
