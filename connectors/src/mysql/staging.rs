//! The MySQL sink in two phases without XA: for servers, proxies and users that have none.
//!
//! The rows of an epoch go into a table of their own, committed as they come; on completion they are merged into the target, in one
//! transaction with the ledger row. Row locks are held for the merge only.
//!
//! Owns: the sink's settings. Does not own: writing and merging. Runs on: built on the author's thread, opened on the I/O side.

use tidegate_engine::api::{
    ConnectorError, PreflightContext, PreflightResult, TwoPhaseContext, TwoPhaseSink,
};
use tidegate_engine::ids::{AttemptId, CheckpointId};

use super::staging_committer::StagingCommitter;
use super::staging_writer::{StagedTable, StagingWriter};
use super::{MysqlSink, SessionLimits, preflight};

/// Rows into a table, exactly once, by a staging table per checkpoint and subtask. Made by [`MysqlSink::staging`].
#[derive(Debug)]
pub struct StagingMysqlSink<T> {
    sink: MysqlSink<T>,
}

impl<T> StagingMysqlSink<T> {
    pub(crate) fn of(sink: MysqlSink<T>) -> Self {
        Self { sink }
    }
}

impl<T> Clone for StagingMysqlSink<T> {
    fn clone(&self) -> Self {
        Self { sink: self.sink.clone() }
    }
}

impl<T: Clone + Send + 'static> TwoPhaseSink for StagingMysqlSink<T> {
    type Record = T;
    type Committable = StagedTable;
    type Writer = StagingWriter<T>;
    type Committer = StagingCommitter;

    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(self.sink.target().map(drop)?)
    }

    fn preflight(&self, context: PreflightContext) -> impl Future<Output = PreflightResult> + Send + use<T> {
        let target = self.sink.target();
        async move {
            let target = target?;
            SessionLimits::check(context.checkpoints.timeout(), &target.url)?;
            Ok(preflight::look_for_staging(&target, &context).await?)
        }
    }

    fn merges_by_key(&self) -> bool {
        self.sink.updates_in_place()
    }

    fn newest_committed(
        &self,
        context: TwoPhaseContext,
        since: AttemptId,
    ) -> impl Future<Output = Result<Option<CheckpointId>, ConnectorError>> + Send + use<T> {
        // The ledger is one for both.
        self.sink.newest_committed(context, since)
    }

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<StagingCommitter, ConnectorError>> + Send + use<T> {
        let target = self.sink.target();
        async move { Ok(StagingCommitter::open(target?, context).await?) }
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<StagingWriter<T>, ConnectorError>> + Send + use<T> {
        let (target, columns) = (self.sink.target(), self.sink.getters());
        async move { Ok(StagingWriter::new(target?, columns, context)) }
    }
}
