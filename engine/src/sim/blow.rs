//! What strikes a simulated job, and when: crashes, pauses, orderly cancels, explicit restores.
//!
//! Owns: the drawing of a seed's schedule. Does not own: carrying it out (see [`super::striker`]). Runs on: plain data.

use tidegate_state::fault::FAULT_POINTS;

use super::rng::Rng;
use crate::execution::Role;

/// What happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// It dies.
    Crash,
    /// Only that part of it dies which is at work here, and the other one goes on for so long: subtasks without a job manager
    /// until they give up, a job manager without subtasks until it hears of it.
    Part {
        /// Which dies where neither is at work.
        part: Role,
        /// Until the other one is told, in microseconds.
        outlived_by_us: u64,
    },
    /// It stands still while a successor starts, and goes on after so many steps; `None`: never.
    Pause {
        /// Steps until it goes on.
        resume_after: Option<u64>,
    },
    /// It is canceled in order; whoever canceled it starts it again.
    Cancel,
}

/// The place at which a process is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between two steps, so many steps later.
    AfterSteps(u64),
    /// So many steps after every subtask has ended.
    AfterAllEnded(u64),
    /// At whatever fault point is passed after so many others.
    AfterPasses(u64),
    /// At this fault point, when it is passed for the nth time.
    At(&'static str, u64),
}

/// What the successor of a struck process restores, where it is not the newest checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplicitRestore {
    /// Nothing: a new lineage begins.
    None,
    /// The oldest checkpoint that may be named.
    Rewind,
}

/// One blow of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blow {
    /// What.
    pub strike: Strike,
    /// Where.
    pub place: Place,
    /// Whether a checkpoint must have completed since the blow before.
    pub after_checkpoint: bool,
    /// Whether it waits until the whole input is written: it may then fall near the end, or come too late.
    pub late: bool,
    /// What the next process restores.
    pub restore: Option<ExplicitRestore>,
}

/// Places that only a start passes: the process is killed first, and the blow falls on its successor.
const OF_A_START: [&str; 11] = [
    "commit_log.claim.before",
    "commit_log.claim.after",
    "restore.read.before",
    "restore.read.after",
    "sink.recover.before",
    "sink.recover.after",
    "sink.rollback.before",
    "sink.rollback.after",
    "sink.commit.between",
    "file_sink.sweep.before",
    "file_sink.sweep.after",
];

/// Places in which a standing attempt is most dangerous to its successor.
const OF_A_ZOMBIE: [&str; 23] = [
    "cleaner.entry.before",
    "cleaner.files.before",
    "commit_log.claim.before",
    "commit_log.claim.after",
    "commit_log.checkpoint.before",
    "commit_log.checkpoint.after",
    "restore.read.before",
    "restore.read.after",
    "sink.recover.before",
    "sink.rollback.before",
    "sink.rollback.after",
    "sink.commit.before",
    "sink.commit.after",
    "sink.prepare.before",
    "sink.prepare.after",
    "snapshot.upload.before",
    "storage.put.before",
    "ack.send.after",
    "file_sink.prepare.before",
    "file_sink.link.before",
    "file_sink.link.after",
    "file_sink.unlink.before",
    "file_sink.sweep.before",
];

/// Fault points that only a job with a file sink passes begin with this.
const OF_FILES: &str = "file_sink.";

/// Fault points that are passed only where several things come together; they are aimed at more often.
const RARE: [&str; 5] = [
    "commit_log.claim.after",
    "commit_log.claim.before",
    "sink.commit.between",
    "sink.rollback.after",
    "sink.rollback.before",
];

/// Fault points at the very end of a job.
const OF_THE_END: [&str; 2] = ["commit_log.finished.before", "commit_log.finished.after"];

impl Blow {
    /// A seed's schedule: two to five blows, two of them crashes, perhaps an orderly cancel, and perhaps a late one.
    pub fn draw_all(rng: &mut Rng) -> Vec<Self> {
        let count = rng.between(2, 5);
        let explicit = rng.one_in(5).then(|| rng.below(count));
        let mut blows: Vec<_> = (0..count)
            .map(|index| {
                let strike = match rng.below(3) {
                    _ if index < 2 => Strike::Crash,
                    0 => Strike::Crash,
                    1 => Strike::draw_part(rng),
                    _ => Strike::draw_pause(rng),
                };
                let place = Place::draw(rng, strike);
                let restore = (explicit == Some(index)).then(|| match rng.one_in(3) {
                    true => ExplicitRestore::None,
                    false => ExplicitRestore::Rewind,
                });
                Self { strike, place, after_checkpoint: !rng.one_in(4), late: false, restore }
            })
            .collect();
        if rng.one_in(4) {
            let place = Place::AfterSteps(rng.between(1, 4_000));
            let after_checkpoint = !rng.one_in(3);
            blows.push(Self { strike: Strike::Cancel, place, after_checkpoint, late: false, restore: None });
        }
        // Pauses and cancels may come before, between and after the crashes.
        for index in (1..blows.len()).rev() {
            blows.swap(index, usize::try_from(rng.below(index as u64 + 1)).unwrap_or(0));
        }
        for _ in 0..rng.below(3) {
            let strike = match rng.below(4) {
                0 => Strike::draw_pause(rng),
                1 => Strike::draw_part(rng),
                _ => Strike::Crash,
            };
            let place = match rng.below(3) {
                0 => Place::AfterAllEnded(rng.between(1, 400)),
                1 => Place::At(OF_THE_END[usize::try_from(rng.below(2)).unwrap_or(0)], 1),
                _ => Place::AfterSteps(rng.between(1, 5_000)),
            };
            blows.push(Self { strike, place, after_checkpoint: false, late: true, restore: None });
        }
        blows.iter_mut().for_each(|blow| blow.late |= blow.is_of_the_end());
        blows.sort_by_key(|blow| (blow.late, blow.is_of_the_end()));
        blows
    }

    /// Points of the file sink are struck in seeds that have one, half of which aim at one of them; in others they give way to points
    /// that are passed.
    pub fn aim_all(blows: &mut [Self], has_files: bool, rng: &mut Rng) {
        let pick = |rng: &mut Rng, of_files: bool| {
            let points = FAULT_POINTS.iter().copied().filter(|p| p.starts_with(OF_FILES) == of_files);
            let points: Vec<_> = points.filter(|p| !OF_THE_END.contains(p)).collect();
            points[usize::try_from(rng.below(points.len() as u64)).unwrap_or(0)]
        };
        if has_files
            && rng.one_in(2)
            && let Some(blow) = blows.iter_mut().find(|b| b.strike == Strike::Crash && !b.late)
        {
            blow.place = Place::At(pick(rng, true), rng.between(1, 3));
        }
        for blow in blows.iter_mut().filter(|_| !has_files) {
            if matches!(blow.place, Place::At(point, _) if point.starts_with(OF_FILES)) {
                blow.place = Place::At(pick(rng, false), rng.between(1, 3));
            }
        }
    }

    /// Whether it can fall only when all records are read.
    fn is_of_the_end(&self) -> bool {
        matches!(self.place, Place::At(point, _) if OF_THE_END.contains(&point))
    }

    /// Whether the process that runs now cannot pass its place: a start has to follow.
    pub fn is_of_a_start(&self) -> bool {
        matches!(self.place, Place::At(point, _) if OF_A_START.contains(&point))
    }
}

impl Strike {
    /// Whether what it strikes dies on the spot.
    pub fn is_crash(self) -> bool {
        matches!(self, Self::Crash | Self::Part { .. })
    }

    fn draw_part(rng: &mut Rng) -> Self {
        let part = if rng.one_in(2) { Role::JobManager } else { Role::Worker };
        let outlived_by_us = match rng.below(3) {
            0 => rng.between(1, 10_000),
            1 => rng.between(10_000, 200_000),
            _ => rng.between(200_000, 3_000_000),
        };
        Self::Part { part, outlived_by_us }
    }

    fn draw_pause(rng: &mut Rng) -> Self {
        let resume_after = (!rng.one_in(6)).then(|| match rng.below(3) {
            0 => rng.between(20, 400),
            1 => rng.between(400, 6_000),
            _ => rng.between(6_000, 30_000),
        });
        Self::Pause { resume_after }
    }
}

impl Place {
    fn draw(rng: &mut Rng, strike: Strike) -> Self {
        let pick = |rng: &mut Rng, points: &[&'static str]| {
            points[usize::try_from(rng.below(points.len() as u64)).unwrap_or(0)]
        };
        match (rng.below(4), strike) {
            (0, _) => Self::AfterSteps(rng.between(1, 2_500)),
            (1, _) => Self::AfterPasses(rng.below(120)),
            (_, Strike::Crash | Strike::Part { .. }) => {
                let point = if rng.one_in(6) { pick(rng, &RARE) } else { pick(rng, FAULT_POINTS) };
                match OF_THE_END.contains(&point) {
                    true => Self::AfterPasses(rng.below(40)),
                    false => Self::At(point, rng.between(1, 3)),
                }
            }
            (_, Strike::Pause { .. } | Strike::Cancel) => {
                Self::At(pick(rng, &OF_A_ZOMBIE), rng.between(1, 3))
            }
        }
    }
}
