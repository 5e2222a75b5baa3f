//! A small job around the sink: records by number, subtasks, barriers that complete or do not, crashes at fault points, zombies. What
//! is decided, the engine's own functions decide: the commit driver, the owner rule, the sweep rule.
//!
//! Owns: attempts and the log that outlives them. Does not own: schedules. Runs on: the test's thread.

use std::cell::Cell;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use tidegate_engine::api::ConnectorError;
use tidegate_engine::fault::{SimulatedCrash, set_handler};
use tidegate_engine::operator::commit_driver::{CommitDriver, owned, to_roll_back};

use super::*;

/// Places of the commit driver: enough that no schedule runs out of them.
const PLACES: usize = 10_000;

/// What a completed checkpoint says.
#[derive(Clone, Default)]
pub(super) struct Checkpoint {
    id: CheckpointId,
    position: u64,
    pending: Vec<Prepared<WrittenParts>>,
}

pub(super) struct World {
    pub(super) scene: Scene,
    pub(super) records: u64,
    pub(super) buckets: u64,
    pub(super) part_bytes: u64,
    pub(super) completed: Checkpoint,
    pub(super) attempts: u64,
    barriers: u64,
    /// Attempts that stand still beside their successors.
    pub(super) zombies: Vec<Attempt>,
    /// Finished files as they were first seen: inode and content.
    seen: BTreeMap<PathBuf, (u64, Vec<u8>)>,
}

pub(super) struct Attempt {
    number: u64,
    writers: Vec<FileSinkWriter<u64, TextLines>>,
    committers: Vec<FileSinkCommitter>,
    drivers: Vec<CommitDriver<WrittenParts>>,
    position: u64,
    last_barrier: CheckpointId,
}

impl World {
    pub(super) fn new(records: u64) -> Self {
        Self {
            scene: Scene::in_memory(),
            records,
            buckets: 1,
            part_bytes: 100,
            completed: Checkpoint::default(),
            attempts: 0,
            barriers: 0,
            zombies: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    fn sink(&self) -> Sink {
        let sink = self.scene.sink().roll_at_bytes(self.part_bytes);
        match self.buckets {
            1 => sink,
            buckets => sink.bucket_by(move |n| format!("b{}", n % buckets)).open_buckets_max(2),
        }
    }

    /// Starts an attempt: recovery in the order of the recovery law, subtask by subtask.
    pub(super) async fn start(&mut self, parallelism: u32) -> Result<Attempt, ConnectorError> {
        self.attempts += 1;
        let restored = self.completed.clone();
        let listed: Vec<_> = restored.pending.iter().map(|p| p.name.clone()).collect();
        let (mut writers, mut committers, mut drivers) = (Vec::new(), Vec::new(), Vec::new());
        for subtask in 0..parallelism {
            let mut own = name(restored.id.0, self.attempts);
            own.subtask = subtask;
            let mut committer =
                self.sink().open_committer(self.scene.context(own.clone(), parallelism)).await?;
            for item in owned(&restored.pending, subtask, parallelism) {
                let outcome = committer.commit(&item).await?;
                let is_there = matches!(outcome, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted);
                assert!(is_there, "{} at recovery: {outcome:?}", item.name);
            }
            let left = committer.list().await?;
            for name in to_roll_back(left, &listed, &own, parallelism) {
                committer.roll_back(&name).await?;
            }
            writers.push(self.sink().open_writer(self.scene.context(own, parallelism)).await?);
            committers.push(committer);
            drivers.push(CommitDriver::new(restored.id, PLACES));
        }
        let (position, last_barrier) = (restored.position, restored.id);
        Ok(Attempt { number: self.attempts, writers, committers, drivers, position, last_barrier })
    }

    /// A barrier through every subtask. It completes, which a log entry says, or it does not.
    pub(super) async fn barrier(
        &mut self,
        attempt: &mut Attempt,
        completes: bool,
    ) -> Result<(), ConnectorError> {
        self.barriers += 1;
        let id = CheckpointId(self.barriers);
        let mut pending = Vec::new();
        for (subtask, writer) in attempt.writers.iter_mut().enumerate() {
            let mut own = name(attempt.last_barrier.0, attempt.number);
            own.subtask = u32::try_from(subtask).unwrap();
            let driver = &mut attempt.drivers[subtask];
            driver.on_barrier(id, self.completed.id).unwrap();
            let committable = writer.prepare().await?;
            let prepared = committable.map(|c| Prepared { name: own, closed_by: id, committable: c });
            pending.extend(driver.on_prepared(id, prepared));
        }
        attempt.last_barrier = id;
        if completes {
            self.completed = Checkpoint { id, position: attempt.position, pending };
        }
        Ok(())
    }

    /// Tells every subtask what is complete; each commits what is due.
    pub(super) async fn commit(&self, attempt: &mut Attempt) -> Result<(), ConnectorError> {
        for (driver, committer) in attempt.drivers.iter_mut().zip(&mut attempt.committers) {
            driver.on_complete(self.completed.id);
            for item in driver.next_commits() {
                let outcome = committer.commit(&item).await?;
                driver.on_outcome(&item.name, outcome).unwrap_or_else(|lost| panic!("{lost}"));
            }
        }
        Ok(())
    }

    /// The last sweep of a job that has ended.
    pub(super) async fn sweep(&self, attempt: &mut Attempt) -> Result<(), ConnectorError> {
        let parallelism = u32::try_from(attempt.writers.len()).unwrap();
        for (subtask, committer) in attempt.committers.iter_mut().enumerate() {
            let mut own = name(attempt.last_barrier.0, attempt.number);
            own.subtask = u32::try_from(subtask).unwrap();
            let left = committer.list().await?;
            for name in to_roll_back(left, &attempt.drivers[subtask].pending_names(), &own, parallelism) {
                committer.roll_back(&name).await?;
            }
        }
        Ok(())
    }

    /// What a reader of finished files may see at any moment: nothing twice, nothing changed, nothing gone.
    pub(super) fn check(&mut self) {
        let numbers = self.scene.finished();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "twice: {numbers:?}");
        let now = finished_files(&self.scene.out());
        for (path, (inode, content)) in &self.seen {
            let metadata = self.scene.out().join(path).metadata().unwrap();
            assert_eq!(metadata.ino(), *inode, "{path:?} is another file");
            assert_eq!(now.get(path), Some(content), "{path:?} has changed");
        }
        for (path, content) in now {
            let inode = self.scene.out().join(&path).metadata().unwrap().ino();
            self.seen.entry(path).or_insert((inode, content));
        }
    }

    /// Everything once, and nothing staged.
    pub(super) fn check_end(&mut self) {
        self.check();
        assert_eq!(self.scene.finished(), (0..self.records).collect::<Vec<_>>());
        assert_eq!(staged_files(&self.scene.out()), Vec::<String>::new());
    }
}

impl Attempt {
    /// Writes the next records, each in the subtask of its number.
    pub(super) async fn write(&mut self, records: u64) -> Result<(), ConnectorError> {
        let parallelism = self.writers.len() as u64;
        let mut batches = vec![Vec::new(); self.writers.len()];
        for record in self.position..self.position + records {
            batches[usize::try_from(record % parallelism).unwrap()].push(record);
        }
        self.position += records;
        for (subtask, batch) in batches.into_iter().enumerate() {
            let mut own = name(self.last_barrier.0, self.number);
            own.subtask = u32::try_from(subtask).unwrap();
            self.writers[subtask].write(&own, Batch::of(batch)).await?;
        }
        Ok(())
    }

    /// How many records are left of so many.
    pub(super) fn left(&self, of: u64) -> u64 {
        of.saturating_sub(self.position)
    }

    /// What a process does that wakes up beside its successor. It may fail.
    pub(super) async fn wake(&mut self) {
        let _ = self.write(3).await;
        for writer in &mut self.writers {
            let _ = writer.prepare().await;
        }
    }
}

/// Where a process dies: at the nth pass of a point, or of any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Death {
    pub(super) point: Option<&'static str>,
    pub(super) nth: u32,
}

/// Runs until the end or the death. `Err`: the point it died at.
pub(super) fn mortal<T>(death: Option<Death>, run: impl Future<Output = T>) -> Result<T, &'static str> {
    let passes = Rc::new(Cell::new(0));
    if let Some(death) = death {
        set_handler(Some(Box::new(move |passed| {
            if death.point.is_none_or(|point| point == passed) {
                passes.set(passes.get() + 1);
                if passes.get() == death.nth {
                    resume_unwind(Box::new(SimulatedCrash { point: passed }));
                }
            }
        })));
    }
    let result = catch_unwind(AssertUnwindSafe(|| testing::run(run)));
    set_handler(None);
    result.map_err(|panic| match panic.downcast::<SimulatedCrash>() {
        Ok(crash) => crash.point,
        Err(panic) => resume_unwind(panic),
    })
}
