//! Everything there is: the log, a put in flight, files, the server, and the starts.
//!
//! Owns: the state of the model. Does not own: how it changes. Runs on: plain data; parts are shared between states.

use std::fmt;
use std::sync::Arc;

use super::super::server::{Branch, Server};
use super::attempt::{Attempt, Phase};
use super::log::{Entry, Log};
use super::{CommitLog, Weakening};

/// What the starts are called.
pub(super) const NAMES: [&str; 3] = ["A", "B", "C"];

/// One state.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct World {
    pub(super) log: Arc<Log>,
    pub(super) in_flight: Option<Arc<Entry>>,
    /// Entry numbers of checkpoints whose files are deleted, as a bit mask.
    pub(super) files_gone: u32,
    /// Only with [`Weakening::FilesWithoutAttempt`]: which attempt wrote the files of a checkpoint id last.
    pub(super) written_by: Vec<(u8, u8)>,
    pub(super) server: Arc<Server>,
    /// A listed transaction that the newest attempt was told is lost.
    pub(super) lost: Option<Branch>,
    pub(super) attempts: Vec<Arc<Attempt>>,
}

impl World {
    pub(super) fn new(starts: usize) -> Self {
        Self {
            log: Arc::new(Log::of(Vec::new())),
            in_flight: None,
            files_gone: 0,
            written_by: Vec::new(),
            server: Arc::default(),
            lost: None,
            attempts: (0..starts).map(|n| Arc::new(Attempt::idle(n))).collect(),
        }
    }

    pub(super) fn take(&self, who: usize) -> Attempt {
        Attempt::clone(&self.attempts[who])
    }

    pub(super) fn put_back(&mut self, who: usize, attempt: Attempt) {
        self.attempts[who] = Arc::new(attempt);
    }

    pub(super) fn server_mut(&mut self) -> &mut Server {
        Arc::make_mut(&mut self.server)
    }

    pub(super) fn is_running(&self, who: usize) -> bool {
        self.attempts[who].phase == Phase::Running
    }

    pub(super) fn has_completed(&self, id: u8) -> bool {
        self.log.entries.last().and_then(Entry::snapshot).is_some_and(|s| s.id == id)
    }

    /// Deletes an entry, then its files.
    pub(super) fn delete(&mut self, number: u8) {
        let entries = self.log.entries.iter().filter(|e| e.number != number).cloned().collect();
        self.log = Arc::new(Log::of(entries));
        self.files_gone |= 1 << number;
    }
}

impl CommitLog {
    /// Whether create-if-absent would create.
    pub(super) fn can_put(&self, world: &World, number: u8) -> bool {
        self.weakening == Weakening::RenameReplaces || world.log.get(number).is_none()
    }

    /// Create-if-absent; `false` if something stands there.
    pub(super) fn put(&self, world: &mut World, entry: Arc<Entry>) -> bool {
        if !self.can_put(world, entry.number) {
            return false;
        }
        let others = world.log.entries.iter().filter(|e| e.number != entry.number).cloned();
        world.log = Arc::new(Log::of(others.chain([Entry::clone(&entry)]).collect()));
        true
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log{} · server{}", self.log, self.server)
    }
}
