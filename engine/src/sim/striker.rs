//! Carries a schedule of blows out: arms the thread's fault points, and says when a blow falls between two steps.
//!
//! Owns: which blow is armed. Does not own: what a blow does to a process (see [`super::simulation`]).
//! Runs on: the simulation's thread, whose fault handler it sets.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::panic::resume_unwind;
use std::rc::Rc;

use super::blow::{Blow, Place};
use super::coverage::BETWEEN_STEPS;
use crate::fault::{SimulatedCrash, set_handler};

/// A blow at a named point falls between two steps if the point is not passed within so many steps.
const PATIENCE_STEPS: u64 = 12_000;

/// See the module.
#[derive(Debug)]
pub struct Striker {
    waiting: VecDeque<Blow>,
    armed: Option<Armed>,
    trigger: Rc<RefCell<Trigger>>,
    completed_before: u64,
    fallen: u64,
    normal: u64,
}

#[derive(Debug)]
struct Armed {
    blow: Blow,
    /// It falls between two steps here, if it has not fallen before; `None`: only where it is named.
    at_step: Option<u64>,
}

#[derive(Debug)]
enum Trigger {
    Off,
    Armed {
        point: Option<&'static str>,
        passes_left: u64,
        crash: bool,
    },
    /// A process shall be paused after the step in which it passed this point.
    Struck(&'static str),
}

/// A blow that falls now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fall {
    /// It.
    pub blow: Blow,
    /// Where it falls, for the coverage.
    pub place: &'static str,
}

/// What has to be done about the schedule before the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Step,
    /// This one falls.
    Fall(Fall),
    /// Kill the newest process, so that the armed blow can fall on its successor's start.
    KillFirst,
}

impl Striker {
    /// A schedule without the blows at `spared` positions.
    pub fn new(blows: Vec<Blow>, spared: &BTreeSet<usize>) -> Self {
        let kept = blows.into_iter().enumerate().filter(|(at, _)| !spared.contains(at)).map(|(_, blow)| blow);
        let waiting: VecDeque<_> = kept.collect();
        let normal = waiting.iter().filter(|b| !b.late).count() as u64;
        Self {
            waiting,
            armed: None,
            trigger: Rc::new(RefCell::new(Trigger::Off)),
            completed_before: 0,
            fallen: 0,
            normal,
        }
    }

    /// Arms the thread.
    pub fn arm_thread(&self) {
        let trigger = Rc::clone(&self.trigger);
        set_handler(Some(Box::new(move |passed| {
            let mut trigger = trigger.borrow_mut();
            let Trigger::Armed { point, passes_left, crash } = &mut *trigger else { return };
            if point.is_some_and(|p| p != passed) {
                return;
            }
            if *passes_left > 0 {
                *passes_left -= 1;
                return;
            }
            if *crash {
                *trigger = Trigger::Off;
                drop(trigger);
                resume_unwind(Box::new(SimulatedCrash { point: passed }));
            }
            *trigger = Trigger::Struck(passed);
        })));
    }

    /// Takes the thread's handler away.
    pub fn disarm_thread(&self) {
        set_handler(None);
    }

    /// Nothing falls any more.
    pub fn disarm_for_good(&mut self) {
        *self.trigger.borrow_mut() = Trigger::Off;
        self.armed = None;
        self.waiting.clear();
    }

    /// What falls before this step. `all_written`: the whole input is there, so that late blows may be armed.
    pub fn next(&mut self, step: u64, completed: u64, all_written: bool) -> Next {
        if let Some(armed) = &self.armed {
            return match armed.at_step {
                Some(at) if step >= at => self.fall(BETWEEN_STEPS),
                _ => Next::Step,
            };
        }
        let Some(blow) = self.waiting.front().copied() else { return Next::Step };
        let waits =
            (blow.after_checkpoint && completed == self.completed_before) || (blow.late && !all_written);
        if waits {
            return Next::Step;
        }
        self.waiting.pop_front();
        self.arm(blow, step);
        if blow.is_of_a_start() { Next::KillFirst } else { Next::Step }
    }

    fn arm(&mut self, blow: Blow, step: u64) {
        let crash = blow.strike.is_crash();
        let (trigger, at_step) = match blow.place {
            Place::AfterSteps(steps) => (Trigger::Off, Some(step + steps)),
            Place::AfterAllEnded(_) => (Trigger::Off, None),
            Place::AfterPasses(passes_left) => {
                (Trigger::Armed { point: None, passes_left, crash }, Some(step + PATIENCE_STEPS))
            }
            Place::At(point, nth) => {
                let passes_left = nth.saturating_sub(1);
                let at_step = (!blow.late).then_some(step + PATIENCE_STEPS);
                (Trigger::Armed { point: Some(point), passes_left, crash }, at_step)
            }
        };
        *self.trigger.borrow_mut() = trigger;
        self.armed = Some(Armed { blow, at_step });
    }

    fn fall(&mut self, place: &'static str) -> Next {
        *self.trigger.borrow_mut() = Trigger::Off;
        self.fallen += 1;
        match self.armed.take() {
            Some(armed) => Next::Fall(Fall { blow: armed.blow, place }),
            None => Next::Step,
        }
    }

    /// Every subtask of an attempt has ended.
    pub fn note_all_ended(&mut self, step: u64) {
        if let Some(Armed { blow: Blow { place: Place::AfterAllEnded(steps), .. }, at_step }) =
            &mut self.armed
        {
            at_step.get_or_insert(step + *steps);
        }
    }

    /// The armed blow, whose crash has just unwound out of `place`.
    pub fn crashed_at(&mut self, place: &'static str) -> Next {
        self.fall(place)
    }

    /// The armed blow, if the step before has passed its point and its process is to be paused.
    pub fn paused_at(&mut self) -> Next {
        let place = match *self.trigger.borrow() {
            Trigger::Struck(place) => place,
            _ => return Next::Step,
        };
        self.fall(place)
    }

    /// Remembers how many checkpoints have completed at a fall.
    pub fn note_completed(&mut self, completed: u64) {
        self.completed_before = completed;
    }

    /// How many blows have fallen, and how many there are besides late ones.
    pub fn fallen(&self) -> (u64, u64) {
        (self.fallen, self.normal)
    }

    /// Whether every blow but late ones has fallen.
    pub fn normal_done(&self) -> bool {
        self.fallen >= self.normal
    }

    /// Whether every blow has fallen.
    pub fn all_done(&self) -> bool {
        self.armed.is_none() && self.waiting.is_empty()
    }
}
