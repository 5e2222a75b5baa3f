//! Sessions that have prepared a branch and still hold it.
//!
//! On MariaDB a prepared branch belongs to its session until that ends, and *while the session is ending* the branch must be left
//! alone: between the server's XA cache letting it go and InnoDB doing so, an `XA COMMIT` from elsewhere answers 1397 and takes the
//! branch out of the list, which leaves its rows locked, and nobody able to commit it, until the server restarts (measured on 10.11).
//! So the session stays open and its branch is committed on it; another session does that only when this one is certainly gone.
//!
//! Owns: open sessions by branch, of all subtasks and attempts in this process. Does not own: what is done on them. Runs on: the I/O
//! side.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::writer_session::WriterSession;
use super::xid::Xid;

/// Shared by a sink's writers and committers. Bounded by the transactions that a subtask may hold.
#[derive(Clone, Default)]
pub(crate) struct PreparedSessions {
    /// Guards the map only, for one look; a mutex, since a session goes from the writer of one future to the committer of another,
    /// also across a restart.
    sessions: Arc<Mutex<BTreeMap<Xid, WriterSession>>>,
}

impl PreparedSessions {
    /// Keeps the session of a branch.
    pub(crate) fn keep(&self, xid: Xid, session: WriterSession) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(xid, session);
    }

    /// Hands the session of a branch out.
    pub(crate) fn take(&self, xid: &Xid) -> Option<WriterSession> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(xid)
    }
}

impl std::fmt::Debug for PreparedSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("prepared sessions")
    }
}
