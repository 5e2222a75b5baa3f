//! An operator's decision about branches that are left over: what `tidegate xa rollback` does, by the same functions.
//!
//! Owns: which branches. Does not own: how one is settled and recorded (the connector). Runs on: the main thread.

use std::time::Duration;

use tidegate::connectors::mysql::{
    Connection, HandDecision, MysqlError, MysqlUrl, SessionLimits, left_overs, settle_by_hand,
};
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::engine::io::TokioIo;

use super::ScenarioError;
use crate::address::servers::MysqlAddress;
use crate::database::leftover::Branch;

/// A statement waits at most so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Rolls these branches back, and answers how many it were.
///
/// # Errors
/// [`ScenarioError::Settle`].
pub(super) fn roll_back(tables: &MysqlAddress, branches: &[Branch]) -> Result<usize, ScenarioError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ScenarioError::Program)?;
    let io = TokioIo::shared(runtime.handle().clone());
    let settled = runtime.block_on(async {
        let url = MysqlUrl::parse(&tables.url)?;
        let mut connection = Connection::open(&url, SessionLimits::below(PATIENCE), &io).await?;
        let found = left_overs(&mut connection).await?;
        let (clock, mut settled) = (SystemClock::new(), 0);
        for left in found {
            let is_ours = |branch: &Branch| branch.gtrid == left.xid.gtrid && branch.bqual == left.xid.bqual;
            if branches.iter().any(is_ours) {
                settle_by_hand(&mut connection, &left, HandDecision::RollBack, false, clock.wall_ms())
                    .await?;
                settled += 1;
            }
        }
        Ok::<_, MysqlError>(settled)
    });
    Ok(settled?)
}
