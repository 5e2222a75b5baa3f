//! Prunes the ledger while the job runs.
//!
//! A row may go when nobody can ask for it: every checkpoint that a start could restore knows this sink's transactions to be committed
//! up to a later one, and the row is a week old besides, for savepoints, which stand in no log. It runs behind a commit, of one subtask,
//! a few rows at a time and for a short while, since the commit's answer waits for it; that it fails is no reason for a job to fail. Rows are deleted by their whole key: a condition that scans would
//! wait for the rows of branches that are prepared.
//!
//! Owns: when, and how many. Does not own: the statements (see [`super::ledger`]), how far the log is committed
//! ([`tidegate_engine::api::ClaimWatch::committed_for_good`]). Runs on: the I/O side.

use std::future::Future;
use std::time::Duration;

use tidegate_engine::api::{ConnectorError, TwoPhaseContext};
use tidegate_engine::clock::Moment;

use super::connection::within;
use super::{Connection, MysqlError, ledger};

/// Rows that are deleted at a time.
const ROWS_MAX: usize = 500;
/// Until the next look, where rows were left.
const PAUSE_AT_WORK: Duration = Duration::from_secs(5);
/// Until the next look, where none were.
const PAUSE: Duration = Duration::from_secs(600);
/// Rows stay at least so long.
const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// A commit's answer waits for no more of it than this.
const SHARE_OF_A_COMMIT: Duration = Duration::from_secs(2);
/// Deleting stops after so long, and goes on with a later commit.
const DELETING: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LedgerPruning {
    /// `None`: with the next commit.
    due: Option<Moment>,
    /// Whether it was told that rows stay.
    is_told: bool,
}

impl LedgerPruning {
    /// Whether the commit that has just been made is one to prune behind.
    pub(crate) fn is_due(&self, context: &TwoPhaseContext) -> bool {
        let now = context.connector.clock.now();
        context.subtask == 0 && self.due.is_none_or(|due| now >= due)
    }

    /// What came of it.
    pub(crate) fn told(&mut self, pruned: Result<AreLeft, String>, context: &TwoPhaseContext) {
        let pause = match pruned {
            Ok(are_left) => {
                self.is_told = false;
                if are_left { PAUSE_AT_WORK } else { PAUSE }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_told, true) {
                    tracing::warn!(error, "old rows of {} stay for now", ledger::LEDGER_TABLE);
                } else {
                    tracing::debug!(error, "old rows of {} still stay", ledger::LEDGER_TABLE);
                }
                PAUSE
            }
        };
        self.due = Some(context.connector.clock.now() + pause);
    }
}

/// A share of the pruning that a commit's answer can wait for: a store or a server that hangs is left to itself.
pub(crate) async fn bounded(
    context: &TwoPhaseContext,
    pruning: impl Future<Output = Result<AreLeft, MysqlError>>,
) -> Result<AreLeft, String> {
    match within(&context.connector.io, SHARE_OF_A_COMMIT, pruning).await {
        Some(pruned) => pruned.map_err(|error| ConnectorError::from(error).full_text()),
        None => Err(format!("it took longer than {} ms", SHARE_OF_A_COMMIT.as_millis())),
    }
}

/// Whether rows may be left that can go.
type AreLeft = bool;

/// Deletes as many rows as may go, and as there is time for.
pub(crate) async fn prune(
    connection: &mut Connection,
    context: &TwoPhaseContext,
) -> Result<AreLeft, MysqlError> {
    let connector = &context.connector;
    let up_to = connection.committed_for_good(&connector.claim, &context.name.scope.uid).await?;
    let Some(up_to) = up_to else { return Ok(false) };
    let before_ms = connector.clock.wall_ms().saturating_sub(KEPT_MS);
    let old = ledger::old_rows(connection, &context.name, up_to, before_ms, ROWS_MAX).await?;
    let begun = connector.clock.now();
    for xid in &old {
        if connector.clock.now().saturating_sub(begun) >= DELETING {
            return Ok(true);
        }
        ledger::delete(connection, xid).await?;
    }
    Ok(old.len() == ROWS_MAX)
}
