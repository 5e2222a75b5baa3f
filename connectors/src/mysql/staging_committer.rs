//! Merges staged transactions into their table, lists undecided ones, drops them.
//!
//! The ledger row is written first in the merging transaction: of two committers the second one waits for the first and then finds the
//! key taken. A merged table is dropped after the transaction; one that is left by a crash in between is dropped by the next sweep.
//!
//! Owns: the transaction in which merge and ledger row happen together or not at all. Does not own: which transaction is merged or
//! dropped, and when. Runs on: the I/O side.

use std::time::Duration;

use tidegate_engine::api::{Committer, ConnectorError, Prepared, TwoPhaseContext};
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::operator::{CommitOutcome, TransactionName};
use tidegate_state::fault_point;

use super::ledger::{self, LedgerEntry};
use super::ledger_pruning::{LedgerPruning, bounded, prune};
use super::sink::Target;
use super::staging_writer::StagedTable;
use super::writer_session::end_older_writers;
use super::xid::Xid;
use super::{Connection, MysqlError, SessionLimits, staging_table};

/// Pause before a merge is asked for again.
const RETRY_MS: u64 = 100;
/// How often a list or a drop is tried on a server that is away.
const TRIES: u32 = 40;
/// Between two tries.
const TRY_PAUSE: Duration = Duration::from_millis(50);

/// Committer of a [`super::StagingMysqlSink`].
pub struct StagingCommitter {
    target: Target,
    context: TwoPhaseContext,
    connection: Option<Connection>,
    pruning: LedgerPruning,
}

impl StagingCommitter {
    /// Connects, makes the ledger if it is missing, and ends the sessions of older attempts' writers.
    pub(crate) async fn open(target: Target, context: TwoPhaseContext) -> Result<Self, MysqlError> {
        let mut committer = Self { target, context, connection: None, pruning: LedgerPruning::default() };
        let (name, parallelism) = (committer.context.name.clone(), committer.context.parallelism);
        let (subtask, io) = (committer.context.subtask, committer.context.connector.io.clone());
        let connection = committer.connected().await?;
        ledger::create(connection).await?;
        end_older_writers(connection, &io, &name.scope, subtask, parallelism).await?;
        Ok(committer)
    }

    async fn connected(&mut self) -> Result<&mut Connection, MysqlError> {
        let connection = match self.connection.take().filter(Connection::is_open) {
            Some(connection) => connection,
            None => {
                let connector = &self.context.connector;
                let limits = SessionLimits::below(connector.checkpoint_timeout);
                Connection::open_in_job(&self.target.url, limits, &connector.io).await?
            }
        };
        Ok(self.connection.insert(connection))
    }

    async fn try_commit(&mut self, item: &Prepared<StagedTable>) -> Result<CommitOutcome, MysqlError> {
        let (xid, place) = (Xid::of(&item.name), self.target.url.place());
        let (spec, now_ms) = (self.target.spec.clone(), self.context.connector.clock.wall_ms());
        let connection = self.connected().await?;
        if let Some(entry) = ledger::find(connection, &xid).await? {
            staging_table::drop_table(connection, &xid).await?;
            return Ok(entry.outcome());
        }
        let StagedTable { table, rows } = &item.committable;
        match staging_table::count(connection, table).await? {
            Some(there) if there == *rows => {}
            // Another committer may have merged and dropped it since.
            _ if ledger::find(connection, &xid).await?.is_some() => {
                return Ok(CommitOutcome::AlreadyCommitted);
            }
            Some(there) => {
                let reason = format!("its staging table {table} at {place} holds {there} rows of {rows}");
                return Ok(CommitOutcome::Lost { reason });
            }
            None => {
                let reason = format!(
                    "{place} has neither a staging table nor a ledger row for it: it was rolled back, or this is another server"
                );
                return Ok(CommitOutcome::Lost { reason });
            }
        }
        let doing = format!("merging {table} into the table {}", spec.name);
        connection.run(&doing, "START TRANSACTION").await?;
        fault_point!("mysql.staging.merge.before");
        let entry =
            LedgerEntry { target: spec.name.clone(), closed_by: item.closed_by, rows: *rows, note: None };
        let merged = async {
            match ledger::write(connection, &xid, &entry, now_ms).await {
                // Another committer was first: the next look finds its row.
                Err(MysqlError::DuplicateKey { .. }) => return Ok(false),
                written => written?,
            }
            fault_point!("mysql.staging.merge.between");
            staging_table::merge(connection, &spec, table).await?;
            connection.run(&doing, "COMMIT").await.map(|_| true)
        }
        .await;
        if !matches!(merged, Ok(true)) {
            // The connection goes, and the transaction with it, whatever state it is in.
            self.connection = None;
            let reason = "another committer is merging it".to_owned();
            return merged.map(|_| CommitOutcome::RetryAfter { ms: 1, reason });
        }
        fault_point!("mysql.staging.merge.after");
        let connection = self.connected().await?;
        staging_table::drop_table(connection, &xid).await?;
        if self.pruning.is_due(&self.context) {
            let context = self.context.clone();
            let pruned = bounded(&context, async { prune(self.connected().await?, &context).await }).await;
            self.pruning.told(pruned, &context);
        }
        Ok(CommitOutcome::Committed)
    }
}

/// Whether asking again later may help. A deadlock rolls back the merge and nothing else.
fn is_worth_another_try(error: &MysqlError) -> bool {
    error.is_away()
        || matches!(
            error,
            MysqlError::LockWait { .. } | MysqlError::Deadlock { .. } | MysqlError::ReadOnly { .. }
        )
}

impl Committer for StagingCommitter {
    type Committable = StagedTable;

    async fn commit(&mut self, item: &Prepared<StagedTable>) -> Result<CommitOutcome, ConnectorError> {
        match self.try_commit(item).await {
            Ok(outcome) => Ok(outcome),
            Err(error) if is_worth_another_try(&error) => {
                let reason = ConnectorError::from(error).full_text();
                Ok(CommitOutcome::RetryAfter { ms: RETRY_MS, reason })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        let scope = self.context.name.scope.clone();
        let mut tries = 0;
        loop {
            tries += 1;
            let listed = match self.connected().await {
                Ok(connection) => staging_table::list(connection, &scope).await,
                Err(error) => Err(error),
            };
            match listed {
                Ok(names) => return Ok(names),
                Err(error) if is_worth_another_try(&error) && tries < TRIES => {
                    self.context.connector.io.sleep(TRY_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        let xid = Xid::of(name);
        let mut tries = 0;
        loop {
            tries += 1;
            fault_point!("mysql.staging.drop.before");
            let dropped = match self.connected().await {
                Ok(connection) => staging_table::drop_table(connection, &xid).await,
                Err(error) => Err(error),
            };
            match dropped {
                Ok(()) => return Ok(()),
                Err(error) if is_worth_another_try(&error) && tries < TRIES => {
                    self.context.connector.io.sleep(TRY_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn newest_committed(&mut self, since: AttemptId) -> Result<Option<CheckpointId>, ConnectorError> {
        let own = self.context.name.clone();
        Ok(ledger::newest_committed(self.connected().await?, &own, since).await?)
    }
}
