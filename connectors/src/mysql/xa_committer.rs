//! Commits prepared branches, lists and rolls back what is left over, on a connection of its own.
//!
//! 1397 (`XAER_NOTA`) to a commit is no proof of anything: the branch may be committed, rolled back, or (on a server that ties it) attached to the
//! session that prepared it, if that still lives. The ledger row written inside the branch tells them apart, by a *locking* read: it
//! waits for whoever is committing right now. There: already committed. Locked, or listed by `XA RECOVER`: attached elsewhere, and
//! the session that prepared it is ended. Neither: lost.
//!
//! Owns: the connection, what each answer means. Does not own: which branch is committed or rolled back, and when.
//! Runs on: the I/O side.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_engine::api::{Committer, ConnectorError, Prepared, TwoPhaseContext};
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::operator::{CommitOutcome, TransactionName};
use tidegate_state::fault_point;

use super::ledger_pruning::{LedgerPruning, bounded, prune};
use super::recover::{NOT_A_BRANCH, prepared_branches};
use super::session_end::{lives, wait_until_detached};
use super::sink::Target;
use super::writer_session::{end_older_writers, holder_of};
use super::xa_writer::XaBranch;
use super::xid::{Xid, branch_lock, writer_lock};
use super::{Connection, MysqlError, SessionLimits, ledger};

/// Pause before a commit is asked for again.
const RETRY_MS: u64 = 100;
/// Pause before a commit is asked for again while a session that is ending holds the branch.
const ATTACHED_RETRY_MS: u64 = 10;
/// A session that prepared a branch ends by itself within so many looks; then it is ended.
const LOOKS_BEFORE_KILL: u32 = 5;
/// A session that is ending is shown for so many looks at most; one that is shown longer is another one of the same number.
const LOOKS_AT_AN_ENDING: u32 = 100;
/// A committer waits for a ledger row so long, and then knows that the branch is still prepared.
const LEDGER_WAIT: Duration = Duration::from_secs(1);
/// How often a list or a rollback is tried on a server that is away, or whose sessions are ending.
const TRIES: u32 = 40;
/// Between two tries.
const TRY_PAUSE: Duration = Duration::from_millis(50);
/// Sessions that are remembered as gone.
const LEFT_MAX: usize = 1_000;
/// The server has rolled the branch back (1402), because of a deadlock (1614), a timeout (1613).
const ROLLED_BACK: [u16; 3] = [1402, 1613, 1614];

/// Committer of a [`super::MysqlSink`].
pub struct XaCommitter {
    target: Target,
    context: TwoPhaseContext,
    connection: Option<Connection>,
    /// The branch that was last found attached, and how often.
    attached: Option<(TransactionName, u32)>,
    /// Sessions that have left their branches for certain.
    left: BTreeSet<u64>,
    pruning: LedgerPruning,
}

/// Who has a branch that was prepared by another process, or another attempt.
enum Holder {
    /// Nobody: it can be committed.
    Nobody,
    /// The session that prepared it is at work.
    Session(u64),
    /// There is a session of the number that prepared it, without the branch's lock: it is ending, or another one.
    Ending(u64),
}

impl XaCommitter {
    /// Connects, makes the ledger if it is missing, and ends the sessions of older attempts' writers.
    pub(crate) async fn open(target: Target, context: TwoPhaseContext) -> Result<Self, MysqlError> {
        let mut committer = Self {
            target,
            context,
            connection: None,
            attached: None,
            left: BTreeSet::new(),
            pruning: LedgerPruning::default(),
        };
        let (name, parallelism) = (committer.context.name.clone(), committer.context.parallelism);
        let (subtask, io) = (committer.context.subtask, committer.context.connector.io.clone());
        let connection = committer.connected().await?;
        ledger::create(connection).await?;
        let ended = end_older_writers(connection, &io, &name.scope, subtask, parallelism).await?;
        let left_over =
            prepared_branches(connection).await?.iter().any(|xid| xid.read(&name.scope).is_some());
        // Sessions that have just died are still letting their branches go.
        if ended > 0 || left_over {
            wait_until_detached(connection, &io).await;
        }
        Ok(committer)
    }

    /// The connection, a new one if the last was lost.
    async fn connected(&mut self) -> Result<&mut Connection, MysqlError> {
        let open = self.connection.take().filter(Connection::is_open);
        let connection = match open {
            Some(connection) => connection,
            None => {
                let connector = &self.context.connector;
                let mut limits = SessionLimits::below(connector.checkpoint_timeout);
                limits.lock_wait = limits.lock_wait.min(LEDGER_WAIT);
                Connection::open_in_job(&self.target.url, limits, &connector.io).await?
            }
        };
        Ok(self.connection.insert(connection))
    }

    /// The connection, and it answers. Where each branch is committed in its own session nobody else asks this one, and the server closes
    /// what is silent for so long.
    async fn awake(&mut self) -> Result<&mut Connection, MysqlError> {
        if let Some(connection) = &mut self.connection {
            // One that does not answer is given up, and a new one opened.
            let _ = connection.run("seeing whether the connection is there", "DO 0").await;
        }
        self.connected().await
    }

    async fn prune(&mut self) {
        let context = self.context.clone();
        let pruned = bounded(&context, async { prune(self.awake().await?, &context).await }).await;
        self.pruning.told(pruned, &context);
    }

    async fn try_commit(
        &mut self,
        item: &Prepared<XaBranch>,
        xid: &Xid,
    ) -> Result<CommitOutcome, MysqlError> {
        let doing = format!("committing {xid}");
        let sql = format!("XA COMMIT {}", xid.sql());
        if let Some(mut session) = self.target.prepared.take(xid) {
            fault_point!("mysql.xa.commit.before");
            let asked = session.lock().await.run(&doing, &sql).await;
            session.close().await;
            fault_point!("mysql.xa.commit.after");
            return match asked {
                Ok(_) => Ok(CommitOutcome::Committed),
                // Asked anew on a connection of its own, once the session is gone.
                Err(error) => {
                    let reason = ConnectorError::from(error).full_text();
                    Ok(CommitOutcome::RetryAfter { ms: RETRY_MS, reason })
                }
            };
        }
        match self.holder(item, xid).await? {
            Holder::Nobody => {}
            holder => return self.detach(item, holder).await,
        }
        let connection = self.connected().await?;
        fault_point!("mysql.xa.commit.before");
        let asked = connection.run(&doing, &sql).await;
        fault_point!("mysql.xa.commit.after");
        match asked {
            Ok(_) => Ok(CommitOutcome::Committed),
            Err(error) if error.code() == Some(NOT_A_BRANCH) => self.look_up(item, xid).await,
            Err(error) if error.code().is_some_and(|code| ROLLED_BACK.contains(&code)) => {
                Ok(CommitOutcome::Lost { reason: ConnectorError::from(error).full_text() })
            }
            Err(error) => Err(error),
        }
    }

    /// What 1397 means.
    async fn look_up(&mut self, item: &Prepared<XaBranch>, xid: &Xid) -> Result<CommitOutcome, MysqlError> {
        let place = self.target.url.place();
        let connection = self.connected().await?;
        let still_prepared = match ledger::find(connection, xid).await {
            Ok(Some(entry)) => return Ok(entry.outcome()),
            Ok(None) => prepared_branches(connection).await?.contains(xid),
            Err(MysqlError::LockWait { .. }) => true,
            Err(error) => return Err(error),
        };
        if still_prepared {
            self.left.remove(&item.committable.connection_id);
            let reason = "another session holds it just now".to_owned();
            return Ok(CommitOutcome::RetryAfter { ms: RETRY_MS, reason });
        }
        // It may have been committed between the two looks.
        if let Some(entry) = ledger::find(connection, xid).await? {
            return Ok(entry.outcome());
        }
        let reason = format!(
            "{} ({}) neither lists it as prepared nor has a row of it in {}: it was rolled back, or this is another server",
            place,
            connection.version(),
            ledger::LEDGER_TABLE
        );
        Ok(CommitOutcome::Lost { reason })
    }

    /// The branch belongs to the session that prepared it. That session ends at once, if all is well; if not, it is ended.
    async fn detach(
        &mut self,
        item: &Prepared<XaBranch>,
        holder: Holder,
    ) -> Result<CommitOutcome, MysqlError> {
        let looks = match &self.attached {
            Some((name, looks)) if *name == item.name => looks + 1,
            _ => 1,
        };
        self.attached = Some((item.name.clone(), looks));
        let (session, reason) = match holder {
            Holder::Session(session) if looks >= LOOKS_BEFORE_KILL => {
                self.connected().await?.kill(session).await?;
                self.attached = None;
                (session, "; ended that")
            }
            Holder::Session(session) => (session, ""),
            Holder::Ending(session) => {
                if looks >= LOOKS_AT_AN_ENDING {
                    self.remember_as_left(session);
                }
                (session, ", which is ending")
            }
            Holder::Nobody => (item.committable.connection_id, ""),
        };
        let reason = format!("it is attached to connection {session}, which prepared it{reason}");
        Ok(CommitOutcome::RetryAfter { ms: ATTACHED_RETRY_MS, reason })
    }

    /// Ends the session of an older attempt that still holds a branch, and waits until it has let it go.
    async fn end_holder(&mut self, xid: &Xid) -> Result<(), MysqlError> {
        let lock = branch_lock(xid);
        let mut ended = false;
        for _ in 0..TRIES {
            let connection = self.connected().await?;
            let Some(session) = holder_of(connection, &lock).await? else { break };
            connection.kill(session).await?;
            ended = true;
            self.pause().await;
        }
        if ended {
            let io = self.context.connector.io.clone();
            wait_until_detached(self.connected().await?, &io).await;
        }
        Ok(())
    }

    /// Who has the branch. On MariaDB, whoever touches a branch while its session is ending breaks it (see
    /// [`super::prepared_sessions`]), so the session must be gone for a while. Its number alone does not tell that it lives: numbers
    /// begin anew when a server restarts. As long as it is at work, it has the branch's lock, or still the writer's.
    async fn holder(&mut self, item: &Prepared<XaBranch>, xid: &Xid) -> Result<Holder, MysqlError> {
        let session = item.committable.connection_id;
        if self.left.contains(&session) {
            return Ok(Holder::Nobody);
        }
        let io = self.context.connector.io.clone();
        let connection = self.connected().await?;
        if !connection.ties_branches() {
            return Ok(Holder::Nobody);
        }
        if let Some(holder) = holder_of(connection, &branch_lock(xid)).await? {
            return Ok(Holder::Session(holder));
        }
        let writer = writer_lock(&item.name.scope, item.name.subtask);
        if session != connection.id() && lives(connection, session).await? {
            let is_writer = holder_of(connection, &writer).await? == Some(session);
            return Ok(if is_writer { Holder::Session(session) } else { Holder::Ending(session) });
        }
        wait_until_detached(connection, &io).await;
        self.remember_as_left(session);
        Ok(Holder::Nobody)
    }

    fn remember_as_left(&mut self, session: u64) {
        if self.left.len() >= LEFT_MAX {
            self.left.clear();
        }
        self.left.insert(session);
    }

    async fn try_roll_back(&mut self, xid: &Xid) -> Result<bool, MysqlError> {
        let (doing, sql) = (format!("rolling {xid} back"), format!("XA ROLLBACK {}", xid.sql()));
        if let Some(mut session) = self.target.prepared.take(xid) {
            fault_point!("mysql.xa.rollback.before");
            let asked = session.lock().await.run(&doing, &sql).await;
            session.close().await;
            fault_point!("mysql.xa.rollback.after");
            // Not done: asked anew on a connection of its own, once the session is gone.
            return Ok(asked.is_ok());
        }
        self.end_holder(xid).await?;
        let connection = self.connected().await?;
        fault_point!("mysql.xa.rollback.before");
        let asked = connection.run(&doing, &sql).await;
        fault_point!("mysql.xa.rollback.after");
        match asked {
            Ok(_) => Ok(true),
            Err(error) if error.code().is_some_and(|code| ROLLED_BACK.contains(&code)) => Ok(true),
            // Gone, or attached to a session that is ending.
            Err(error) if error.code() == Some(NOT_A_BRANCH) => {
                Ok(!prepared_branches(connection).await?.contains(xid))
            }
            Err(error) => Err(error),
        }
    }

    async fn pause(&self) {
        self.context.connector.io.sleep(TRY_PAUSE).await;
    }
}

/// Whether asking again later may help the committer.
fn is_worth_another_try(error: &MysqlError) -> bool {
    error.is_away() || matches!(error, MysqlError::LockWait { .. } | MysqlError::ReadOnly { .. })
}

impl Committer for XaCommitter {
    type Committable = XaBranch;

    async fn commit(&mut self, item: &Prepared<XaBranch>) -> Result<CommitOutcome, ConnectorError> {
        match self.try_commit(item, &Xid::of(&item.name)).await {
            Ok(outcome) => {
                if outcome == CommitOutcome::Committed && self.pruning.is_due(&self.context) {
                    self.prune().await;
                }
                Ok(outcome)
            }
            // After an uncertain answer the server is asked again: 1397 and the ledger tell what has become of it.
            Err(error) if is_worth_another_try(&error) => {
                let reason = ConnectorError::from(error).full_text();
                Ok(CommitOutcome::RetryAfter { ms: RETRY_MS, reason })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let listed = match self.connected().await {
                Ok(connection) => prepared_branches(connection).await,
                Err(error) => Err(error),
            };
            match listed {
                Ok(found) => {
                    let scope = &self.context.name.scope;
                    let mut names: Vec<_> = found.iter().filter_map(|xid| xid.read(scope)).collect();
                    names.sort();
                    return Ok(names);
                }
                Err(error) if is_worth_another_try(&error) && tries < TRIES => self.pause().await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        let xid = Xid::of(name);
        for _ in 0..TRIES {
            match self.try_roll_back(&xid).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if is_worth_another_try(&error) => {}
                Err(error) => return Err(error.into()),
            }
            self.pause().await;
        }
        Err(ConnectorError::transient(format!(
            "the branch {xid} at {} cannot be rolled back now: a session that still lives holds it, or the server is away\n  help: \
             it is tried again after a restart; `tidegate xa list` shows it",
            self.target.url.place()
        )))
    }

    async fn newest_committed(&mut self, since: AttemptId) -> Result<Option<CheckpointId>, ConnectorError> {
        let own = self.context.name.clone();
        Ok(ledger::newest_committed(self.connected().await?, &own, since).await?)
    }
}
