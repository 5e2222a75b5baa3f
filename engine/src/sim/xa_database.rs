//! A model of MySQL's XA transactions, as measured on MariaDB 10.11 and MySQL 9.7.
//!
//! A prepared branch survives its client. Its rows are invisible and stay locked; whoever needs one waits. An unprepared branch is
//! rolled back when its session ends. One of many committers wins, and the others get 1397, which is no proof of "committed":
//! the branch may as well be attached to a living session (MariaDB) or have been rolled back. A ledger row written inside the
//! branch tells them apart. Statements of a dead client may still execute for a while.
//!
//! Owns: sessions, branches, locks, committed rows. Does not own: latency, time-outs of lock waits (the client counts them),
//! names. Runs on: the simulation's thread; pure: statements in, replies out; time is given.

use std::collections::{BTreeMap, BTreeSet};

/// Whose manners it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// MariaDB 10.11.
    MariaDb,
    /// MySQL 9.7.
    MySql,
}

/// An error code of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("server error {0}")]
pub struct XaError(pub u16);

impl XaError {
    /// The session is gone.
    pub const GONE: Self = Self(2006);
    /// `XAER_NOTA`: attached elsewhere, rolled back, committed, or never there.
    pub const NOT_A_BRANCH: Self = Self(1397);
    /// `XAER_RMFAIL`: not in this state of the session.
    pub const WRONG_STATE: Self = Self(1399);
    /// `XAER_OUTSIDE`: inside another branch, and MariaDB says so.
    pub const OUTSIDE: Self = Self(1400);
    /// `XA_RBROLLBACK`: the branch was rolled back.
    pub const ROLLED_BACK: Self = Self(1402);
    /// `XAER_DUPID`: there is such a branch.
    pub const DUPLICATE: Self = Self(1440);
    /// `XA_RBDEADLOCK`: the branch was rolled back because of a deadlock (MySQL).
    pub const DEADLOCKED: Self = Self(1614);
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement<X, R> {
    /// `XA START`.
    Start(X),
    /// A write of one row, which locks this key; `None`: no other writer can need it.
    Write(Option<u64>, R),
    /// A write of the branch's ledger row.
    WriteLedger,
    /// `XA END`.
    End,
    /// `XA PREPARE`.
    Prepare,
    /// `XA COMMIT`.
    Commit(X),
    /// `XA ROLLBACK`.
    Rollback(X),
    /// `XA RECOVER`.
    Recover,
    /// A locking read of a branch's ledger row.
    ReadLedger(X),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<X> {
    /// Done.
    Ok,
    /// Prepared branches.
    Listed(Vec<X>),
    /// Whether the ledger has the row.
    Found(bool),
    /// It waits for a lock: ask again.
    Waits,
    /// Refused.
    Error(XaError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SessionState<X> {
    Idle,
    Active(X),
    Ended(X),
    /// MariaDB: bound to its prepared branch until it closes.
    Bound,
    /// The branch died in a deadlock: only a rollback works.
    Doomed(X),
}

#[derive(Clone, Debug)]
struct Session<X> {
    state: SessionState<X>,
    used_at: u64,
}

#[derive(Clone, Debug)]
struct Branch<R> {
    prepared: bool,
    attached: Option<SessionId>,
    ledger: bool,
    locks: BTreeSet<u64>,
    rows: Vec<R>,
}

/// See the module. `X` names branches, `R` is a row.
#[derive(Clone, Debug)]
pub struct XaServer<X, R> {
    flavor: Flavor,
    idle_timeout: u64,
    sessions: BTreeMap<SessionId, Session<X>>,
    branches: BTreeMap<X, Branch<R>>,
    committed: Vec<(X, Vec<R>)>,
    ledger: BTreeSet<X>,
    opened: u64,
}

impl<X: Ord + Clone, R> XaServer<X, R> {
    /// An empty server that closes sessions after so many microseconds without a statement.
    pub fn new(flavor: Flavor, idle_timeout: u64) -> Self {
        Self {
            flavor,
            idle_timeout,
            sessions: BTreeMap::new(),
            branches: BTreeMap::new(),
            committed: Vec::new(),
            ledger: BTreeSet::new(),
            opened: 0,
        }
    }

    /// A new session.
    pub fn connect(&mut self, now: u64) -> SessionId {
        self.opened += 1;
        let id = SessionId(self.opened);
        self.sessions.insert(id, Session { state: SessionState::Idle, used_at: now });
        id
    }

    /// The session ends: by its client, by KILL, or because its client died. What it has not prepared is rolled back.
    pub fn close(&mut self, session: SessionId) {
        let Some(closed) = self.sessions.remove(&session) else { return };
        if let SessionState::Active(x) | SessionState::Ended(x) | SessionState::Doomed(x) = closed.state {
            self.branches.remove(&x);
        }
        for branch in self.branches.values_mut().filter(|b| b.attached == Some(session)) {
            branch.attached = None;
        }
    }

    /// Closes sessions that have been idle for too long.
    pub fn close_idle(&mut self, now: u64) {
        let idle = |s: &Session<X>| now > s.used_at + self.idle_timeout;
        let ids: Vec<_> = self.sessions.iter().filter(|(_, s)| idle(s)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.close(id));
    }

    /// When the next idle session is closed.
    pub fn next_idle(&self) -> Option<u64> {
        self.sessions.values().map(|s| s.used_at + self.idle_timeout + 1).min()
    }

    /// The server rolls this session's branch back in a deadlock (1213).
    pub fn deadlock(&mut self, session: SessionId) {
        let Some(found) = self.sessions.get_mut(&session) else { return };
        if let SessionState::Active(x) = &found.state {
            let x = x.clone();
            found.state = SessionState::Doomed(x.clone());
            if let Some(branch) = self.branches.get_mut(&x) {
                (branch.ledger, branch.locks, branch.rows) = (false, BTreeSet::new(), Vec::new());
            }
        }
    }

    /// Executes one statement.
    pub fn execute(&mut self, session: SessionId, statement: Statement<X, R>, now: u64) -> Reply<X> {
        let Some(found) = self.sessions.get_mut(&session) else { return Reply::Error(XaError::GONE) };
        found.used_at = now;
        let state = found.state.clone();
        let done = match statement {
            Statement::Start(x) => self.start(session, &state, x),
            Statement::Write(lock, row) => return self.write(&state, lock, row),
            Statement::WriteLedger => self.write_ledger(&state),
            Statement::End => self.end(session, state),
            Statement::Prepare => self.prepare(session, state),
            Statement::Commit(x) => self.commit(session, &state, &x),
            Statement::Rollback(x) => self.roll_back(session, state, &x),
            Statement::Recover => return Reply::Listed(self.prepared()),
            Statement::ReadLedger(x) => return self.read_ledger(&state, &x),
        };
        match done {
            Ok(()) => Reply::Ok,
            Err(error) => Reply::Error(error),
        }
    }

    fn set(&mut self, session: SessionId, state: SessionState<X>) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.state = state;
        }
    }

    fn start(&mut self, session: SessionId, state: &SessionState<X>, x: X) -> Result<(), XaError> {
        if *state != SessionState::Idle {
            return Err(XaError::WRONG_STATE);
        }
        if self.branches.contains_key(&x) {
            return Err(XaError::DUPLICATE);
        }
        let branch = Branch {
            prepared: false,
            attached: Some(session),
            ledger: false,
            locks: BTreeSet::new(),
            rows: Vec::new(),
        };
        self.branches.insert(x.clone(), branch);
        self.set(session, SessionState::Active(x));
        Ok(())
    }

    fn write(&mut self, state: &SessionState<X>, lock: Option<u64>, row: R) -> Reply<X> {
        let SessionState::Active(x) = state else { return Reply::Error(XaError::WRONG_STATE) };
        if lock.is_some_and(|key| self.branches.iter().any(|(o, b)| o != x && b.locks.contains(&key))) {
            return Reply::Waits;
        }
        let Some(branch) = self.branches.get_mut(x) else { return Reply::Error(XaError::NOT_A_BRANCH) };
        branch.locks.extend(lock);
        branch.rows.push(row);
        Reply::Ok
    }

    fn write_ledger(&mut self, state: &SessionState<X>) -> Result<(), XaError> {
        let SessionState::Active(x) = state else { return Err(XaError::WRONG_STATE) };
        self.branches.get_mut(x).ok_or(XaError::NOT_A_BRANCH)?.ledger = true;
        Ok(())
    }

    fn end(&mut self, session: SessionId, state: SessionState<X>) -> Result<(), XaError> {
        match state {
            SessionState::Active(x) => {
                self.set(session, SessionState::Ended(x));
                Ok(())
            }
            SessionState::Doomed(_) if self.flavor == Flavor::MySql => Err(XaError::DEADLOCKED),
            _ => Err(XaError::WRONG_STATE),
        }
    }

    fn prepare(&mut self, session: SessionId, state: SessionState<X>) -> Result<(), XaError> {
        let SessionState::Ended(x) = state else { return Err(XaError::WRONG_STATE) };
        let branch = self.branches.get_mut(&x).ok_or(XaError::NOT_A_BRANCH)?;
        branch.prepared = true;
        let next = match self.flavor {
            Flavor::MariaDb => SessionState::Bound,
            Flavor::MySql => {
                branch.attached = None;
                SessionState::Idle
            }
        };
        self.set(session, next);
        Ok(())
    }

    fn commit(&mut self, session: SessionId, state: &SessionState<X>, x: &X) -> Result<(), XaError> {
        match state {
            SessionState::Idle | SessionState::Bound => {}
            SessionState::Active(_) if self.flavor == Flavor::MariaDb => return Err(XaError::OUTSIDE),
            SessionState::Active(_) | SessionState::Ended(_) | SessionState::Doomed(_) => {
                return Err(XaError::WRONG_STATE);
            }
        }
        let branch = self.branches.get(x).ok_or(XaError::NOT_A_BRANCH)?;
        if !branch.prepared || branch.attached.is_some_and(|s| s != session) {
            return Err(XaError::NOT_A_BRANCH);
        }
        let own = branch.attached == Some(session);
        let branch = self.branches.remove(x).ok_or(XaError::NOT_A_BRANCH)?;
        if own {
            self.set(session, SessionState::Idle);
        }
        if !own && branch.rows.is_empty() && !branch.ledger && self.flavor == Flavor::MariaDb {
            return Err(XaError::ROLLED_BACK);
        }
        if branch.ledger {
            self.ledger.insert(x.clone());
        }
        self.committed.push((x.clone(), branch.rows));
        Ok(())
    }

    fn roll_back(&mut self, session: SessionId, state: SessionState<X>, x: &X) -> Result<(), XaError> {
        match state {
            SessionState::Ended(own) | SessionState::Doomed(own) if own == *x => {
                self.branches.remove(x);
                self.set(session, SessionState::Idle);
                return Ok(());
            }
            SessionState::Idle | SessionState::Bound => {}
            _ => return Err(XaError::WRONG_STATE),
        }
        let branch = self.branches.get(x).ok_or(XaError::NOT_A_BRANCH)?;
        if !branch.prepared || branch.attached.is_some_and(|s| s != session) {
            return Err(XaError::NOT_A_BRANCH);
        }
        if branch.attached == Some(session) {
            self.set(session, SessionState::Idle);
        }
        self.branches.remove(x);
        Ok(())
    }

    fn read_ledger(&self, state: &SessionState<X>, x: &X) -> Reply<X> {
        if *state == SessionState::Bound {
            return Reply::Error(XaError::WRONG_STATE);
        }
        match self.branches.get(x) {
            Some(branch) if branch.ledger => Reply::Waits,
            _ => Reply::Found(self.ledger.contains(x)),
        }
    }

    /// Names of prepared branches, attached or not.
    pub fn prepared(&self) -> Vec<X> {
        self.branches.iter().filter(|(_, b)| b.prepared).map(|(x, _)| x.clone()).collect()
    }

    /// Names of all branches.
    pub fn branches(&self) -> Vec<X> {
        self.branches.keys().cloned().collect()
    }

    /// Somebody rolls a prepared branch back by hand. `false`: there is none.
    pub fn roll_back_by_hand(&mut self, x: &X) -> bool {
        let prepared = self.branches.get(x).is_some_and(|b| b.prepared);
        prepared && self.branches.remove(x).is_some()
    }

    /// What was committed, in order.
    pub fn committed(&self) -> &[(X, Vec<R>)] {
        &self.committed
    }

    /// Whether the session is open.
    pub fn is_open(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }
}

#[cfg(test)]
mod tests;
