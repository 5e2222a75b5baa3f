//! What a blow does to a process: it dies, loses a part, stands still, is canceled; and what follows when its time has come.
//!
//! Owns: deaths, pauses, heirs. Does not own: when a blow falls (see [`super::striker`]). Runs on: the simulation's thread.

use super::blow::Strike;
use super::coverage::{Area, BETWEEN_STEPS};
use super::process::{Process, Standing};
use super::simulation::Simulation;
use super::striker::Fall;
use crate::execution::Role;
use crate::jobmanager::Control;

/// Processes alive at once.
const ALIVE_MAX: usize = 3;

impl Simulation<'_> {
    pub(super) fn fall(&mut self, fall: Fall, on: Option<u32>) {
        let newest = self.newest_leader();
        let Some(id) = on.or(newest) else { return };
        self.disturbed_at = self.world.clock.micros();
        self.striker.note_completed(self.report.completed);
        self.next_restore = fall.blow.restore.filter(|_| self.world.subject.may_restore_explicitly());
        match fall.blow.strike {
            Strike::Crash => self.kill(id, fall.place),
            Strike::Part { .. } if self.processes.len() >= ALIVE_MAX => self.kill(id, fall.place),
            Strike::Part { part, outlived_by_us } => self.lose(id, part, fall.place, outlived_by_us),
            Strike::Pause { .. } if self.processes.len() >= ALIVE_MAX => self.kill(id, fall.place),
            Strike::Pause { resume_after } => self.pause(id, fall.place, resume_after),
            Strike::Cancel => self.cancel(id),
        }
    }

    /// Somebody asks a process to stop in order; its end is judged like the job's.
    fn cancel(&mut self, id: u32) {
        self.say(Some(id), "is asked to stop in order".to_owned());
        let Some(process) = self.processes.iter_mut().find(|p| p.id == id) else { return };
        process.canceled = true;
        if process.execution.control(Control::Cancel).is_some() {
            // Nothing was claimed yet.
            self.remove(id);
        }
    }

    pub(super) fn kill_newest(&mut self, place: &'static str) {
        if let Some(id) = self.newest_leader() {
            self.kill(id, place);
        }
    }

    fn kill(&mut self, id: u32, place: &'static str) {
        self.say(Some(id), format!("dies {place}"));
        self.report.crashes += 1;
        self.unrecovered.push(place);
        self.remove(id);
        self.strike_by_hand();
    }

    /// Takes a process away; what was on its way to it comes to its successor.
    pub(super) fn remove(&mut self, id: u32) {
        let Some(at) = self.processes.iter().position(|p| p.id == id) else { return };
        let process = self.processes.remove(at);
        self.parallelism_before = process.parallelism();
        self.excused.extend(process.attempts.iter().copied());
        self.striker.disarm_thread();
        process.die();
        self.striker.arm_thread();
        let heir = self.processes.last().map_or(self.next_id(), |p| p.id);
        self.world.network.inherit(id, heir);
        self.idle = 0;
    }

    fn pause(&mut self, id: u32, place: &'static str, resume_after: Option<u64>) {
        let step = self.report.steps;
        let Some(process) = self.processes.iter_mut().find(|p| p.id == id) else { return };
        process.standing = resume_after.map_or(Standing::ForEver, |steps| Standing::Until(step + steps));
        self.parallelism_before = process.parallelism();
        self.report.pauses += 1;
        if resume_after.is_none() {
            self.count(Area::Event, "an attempt paused for ever");
        }
        self.say(Some(id), format!("stands still {place}, for {resume_after:?} steps"));
    }

    /// One part of a process dies. Where a crash has unwound out of one, it is that one.
    fn lose(&mut self, id: u32, part: Role, place: &'static str, outlived_by_us: u64) {
        let told_at = self.world.clock.micros() + outlived_by_us;
        let Some(process) = self.processes.iter_mut().find(|p| p.id == id) else { return };
        let part = if place == BETWEEN_STEPS { Some(part) } else { process.at_work() };
        self.striker.disarm_thread();
        let lost = part.filter(|part| process.leads() && process.lose(*part, told_at));
        self.striker.arm_thread();
        let Some(part) = lost else { return self.kill(id, place) };
        self.parallelism_before = process.parallelism();
        self.report.crashes += 1;
        self.unrecovered.push(place);
        self.idle = 0;
        let (what, text) = match part {
            Role::JobManager => ("a job manager died, and its worker went on", "job manager"),
            Role::Worker => ("a worker died, and its job manager went on", "worker"),
        };
        self.count(Area::Event, what);
        self.say(Some(id), format!("its {text} dies {place}; the rest goes on for {outlived_by_us} us"));
    }

    /// A worker gives up without its job manager; a job manager hears that its worker is gone.
    pub(super) fn tell_bereft(&mut self) {
        let now = self.world.clock.micros();
        let mut told = Vec::new();
        for process in self.processes.iter_mut().filter(|p| p.runs()) {
            told.extend(process.take_bereft(now).map(|lost| (process.id, lost)));
        }
        for (id, (attempt, lost)) in told {
            self.disturbed_at = now;
            match lost {
                Role::JobManager => {
                    if self.processes.iter().any(|p| p.id != id && p.leads() && p.has_begun()) {
                        self.count(
                            Area::Event,
                            "a worker without a job manager went on beside the next attempt",
                        );
                    }
                    self.say(Some(id), "its worker gives up".to_owned());
                    self.remove(id);
                }
                Role::Worker => {
                    self.say(Some(id), "its job manager hears that the worker is gone".to_owned());
                    if let Some(process) = self.processes.iter_mut().find(|p| p.id == id) {
                        process.tell_worker_is_gone(attempt);
                    }
                }
            }
        }
    }

    fn newest_leader(&self) -> Option<u32> {
        self.processes.iter().filter(|p| p.leads()).map(|p| p.id).max()
    }

    pub(super) fn resume_due(&mut self) {
        let step = self.report.steps;
        let due = |p: &Process| matches!(p.standing, Standing::Until(at) if at <= step);
        for index in 0..self.processes.len() {
            if due(&self.processes[index]) {
                self.processes[index].standing = Standing::No;
                self.disturbed_at = self.world.clock.micros();
                if self.processes.iter().filter(|p| p.runs()).count() > 1 {
                    self.count(Area::Event, "a paused attempt went on beside its successor");
                }
                self.say(Some(self.processes[index].id), "goes on".to_owned());
            }
        }
    }
}
