//! Prunes the ledger while the job runs.
//!
//! A row may go when nobody can ask for it: every checkpoint that a start could restore knows this sink's transactions to be committed
//! up to a later one, and the row is a week old besides, for savepoints, which stand in no log. It runs behind a commit, of one subtask,
//! a few rows at a time; that it fails is no reason for a job to fail. Rows are deleted by their whole key: a condition that scans would
//! wait for the rows of branches that are prepared.
//!
//! Owns: when, and how many. Does not own: the statements (see [`super::ledger`]), how far the log is committed
//! ([`tidegate_engine::api::ClaimWatch::committed_for_good`]). Runs on: the I/O side.

use std::time::Duration;

use tidegate_engine::api::{ConnectorError, TwoPhaseContext};
use tidegate_engine::clock::Moment;

use super::{Connection, MysqlError, ledger};

/// Rows that are deleted at a time.
const ROWS_MAX: usize = 500;
/// Until the next look, where rows were left.
const PAUSE_AT_WORK: Duration = Duration::from_secs(5);
/// Until the next look, where none were.
const PAUSE: Duration = Duration::from_secs(600);
/// Rows stay at least so long.
const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LedgerPruning {
    /// `None`: with the next commit.
    due: Option<Moment>,
}

impl LedgerPruning {
    /// Called behind each commit.
    pub(crate) async fn after_commit(&mut self, connection: &mut Connection, context: &TwoPhaseContext) {
        let now = context.connector.clock.now();
        if context.subtask != 0 || self.due.is_some_and(|due| now < due) {
            return;
        }
        let pause = match prune(connection, context).await {
            Ok(ROWS_MAX..) => PAUSE_AT_WORK,
            Ok(_) => PAUSE,
            Err(error) => {
                let error = ConnectorError::from(error).full_text();
                tracing::warn!(error, "old rows of {} stay for now", ledger::LEDGER_TABLE);
                PAUSE
            }
        };
        self.due = Some(now + pause);
    }
}

/// How many rows went.
async fn prune(connection: &mut Connection, context: &TwoPhaseContext) -> Result<usize, MysqlError> {
    let connector = &context.connector;
    let up_to = connection.committed_for_good(&connector.claim, &context.name.scope.uid).await?;
    let Some(up_to) = up_to else { return Ok(0) };
    let before_ms = connector.clock.wall_ms().saturating_sub(KEPT_MS);
    let old = ledger::old_rows(connection, &context.name, up_to, before_ms, ROWS_MAX).await?;
    for xid in &old {
        ledger::delete(connection, xid).await?;
    }
    Ok(old.len())
}
