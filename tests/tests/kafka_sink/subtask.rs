//! One subtask of a sink without its job: attempts begin, recover as the driver does, write, prepare and commit.
//!
//! Owns: the order of recovery (commit what is listed, sweep, then a writer). Does not own: the sink. Runs on: the test's runtime.

use std::sync::Arc;

use tidegate::connectors::kafka::{KafkaCommitter, KafkaSink, KafkaWriter};
use tidegate::engine::api::{
    ClaimWatch, Committer, ConnectorContext, ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink,
    TwoPhaseWriter,
};
use tidegate::engine::broker::BrokerCommittable;
use tidegate::engine::clock::SystemClock;
use tidegate::engine::element::Batch;
use tidegate::engine::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};
use tidegate::engine::io::{NoWake, TokioIo};
use tidegate::engine::operator::commit_driver::{owned, to_roll_back};
use tidegate::engine::operator::{CommitOutcome, TransactionName, TransactionScope};

use crate::topic::Topic;

/// Transactions that each subtask may hold here.
pub(crate) const PLACES: usize = 4;

pub(crate) type Transaction = Prepared<BrokerCommittable>;

/// See the module.
pub(crate) struct Subtask {
    pub(crate) context: TwoPhaseContext,
    pub(crate) writer: KafkaWriter<u64>,
    pub(crate) committer: KafkaCommitter,
    /// What recovery came to.
    pub(crate) recovered: Vec<CommitOutcome>,
    /// How many left-overs were rolled back.
    pub(crate) rolled_back: usize,
}

/// The sink of most tests.
pub(crate) fn sink(topic: &Topic) -> KafkaSink<u64> {
    KafkaSink::<u64>::json(&topic.bootstrap, &topic.name).property("linger.ms", "0")
}

fn context(
    topic: &Topic,
    subtask: u32,
    parallelism: u32,
    attempt: u64,
    restored: &[Transaction],
) -> TwoPhaseContext {
    let scope = TransactionScope {
        // A job of each topic's own: nothing of another test is listed.
        job: JobName::from(topic.name.as_str()),
        log_id: LogId::from("0b8d"),
        lineage: Lineage(1),
        uid: OperatorUid::from("sink"),
    };
    let newest = restored.iter().map(|transaction| transaction.closed_by).max();
    TwoPhaseContext {
        connector: ConnectorContext {
            claim: ClaimWatch::unclaimed(),
            checkpoint_timeout: std::time::Duration::from_secs(60),
            clock: SystemClock::shared(),
            io: TokioIo::shared(tokio::runtime::Handle::current()),
            waker: Arc::new(NoWake),
        },
        subtask,
        parallelism,
        places: PLACES,
        restored_attempt: restored.iter().map(|it| it.name.attempt).max().unwrap_or(AttemptId(0)),
        name: TransactionName {
            scope,
            subtask,
            opened_after: newest.unwrap_or(CheckpointId(0)),
            attempt: AttemptId(attempt),
        },
    }
}

impl Subtask {
    /// The only subtask of an attempt that restores nothing.
    pub(crate) async fn first(topic: &Topic) -> Self {
        Self::recover(sink(topic), topic, (0, 1), 1, &[]).await.unwrap()
    }

    /// `place`: subtask and parallelism.
    pub(crate) async fn recover(
        sink: KafkaSink<u64>,
        topic: &Topic,
        place: (u32, u32),
        attempt: u64,
        restored: &[Transaction],
    ) -> Result<Self, ConnectorError> {
        let context = context(topic, place.0, place.1, attempt, restored);
        let mut committer = sink.open_committer(context.clone()).await?;
        let mut recovered = Vec::new();
        for item in owned(restored, place.0, place.1) {
            recovered.push(settle(&mut committer, &item).await?);
        }
        let listed: Vec<_> = restored.iter().map(|it| it.name.clone()).collect();
        let names = to_roll_back(committer.list().await?, &listed, &context.name, place.1);
        for name in &names {
            committer.roll_back(name).await?;
        }
        let writer = sink.open_writer(context.clone()).await?;
        Ok(Self { context, writer, committer, recovered, rolled_back: names.len() })
    }

    pub(crate) async fn write(
        &mut self,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<(), ConnectorError> {
        let batch = Batch::of(numbers.into_iter().collect());
        self.writer.write(&self.context.name, batch).await
    }

    /// The barrier of checkpoint `id`.
    pub(crate) async fn prepare(&mut self, id: u64) -> Result<Option<Transaction>, ConnectorError> {
        let closed_by = CheckpointId(id);
        self.writer.closing(closed_by);
        let committable = self.writer.prepare().await?;
        let name = self.context.name.clone();
        self.context.name.opened_after = closed_by;
        Ok(committable.map(|committable| Prepared { name, closed_by, committable }))
    }

    /// Writes and prepares.
    pub(crate) async fn prepared(&mut self, id: u64, numbers: impl IntoIterator<Item = u64>) -> Transaction {
        self.write(numbers).await.unwrap();
        self.prepare(id).await.unwrap().unwrap()
    }

    pub(crate) async fn commit(&mut self, item: &Transaction) -> CommitOutcome {
        settle(&mut self.committer, item).await.unwrap()
    }
}

/// As the driver does: again for as long as it is not decided.
async fn settle(committer: &mut KafkaCommitter, item: &Transaction) -> Result<CommitOutcome, ConnectorError> {
    loop {
        match committer.commit(item).await? {
            CommitOutcome::RetryAfter { ms, .. } => {
                let io = TokioIo::shared(tokio::runtime::Handle::current());
                io.sleep(std::time::Duration::from_millis(ms)).await;
            }
            outcome => return Ok(outcome),
        }
    }
}
