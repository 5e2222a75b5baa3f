//! A writer that lost its session asks the commit log, with the lock in its hand, before it writes again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use object_store::path::Path;
use tidegate::connectors::changes::VersionedRow;
use tidegate::connectors::mysql::UpsertWriter;
use tidegate::engine::api::{ClaimWatch, ConnectorContext, ConnectorError, Sink, Writer};
use tidegate::engine::checkpoint::commit_log::{ClaimBase, ClaimOutcome, LogClient, LogError, NonceSource};
use tidegate::engine::clock::SystemClock;
use tidegate::engine::element::Batch;
use tidegate::engine::ids::{AttemptId, CheckpointId, EntryNumber, JobName, Lineage};
use tidegate::engine::io::{NoWake, SharedIo, TokioIo};
use tidegate::engine::operator::{TransactionName, TransactionScope};
use tidegate::state::CheckpointStorage;
use tidegate::state::storage::{FaultAction, FaultyStore, StoreFaults, StoreOp};
use tidegate_jobs::services::ServiceKind;

use crate::scene::{Database, PATIENCE, rows_sink, until};

type RowWriter = UpsertWriter<VersionedRow, VersionedRow>;

/// A store that can be away for so many listings.
#[derive(Debug, Default)]
struct Away {
    listings: AtomicU32,
}

impl StoreFaults for Away {
    fn before(&self, op: StoreOp, _path: &Path) -> BoxFuture<'static, FaultAction> {
        let left = |left: u32| left.checked_sub(1);
        let fails = op == StoreOp::List
            && self.listings.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok();
        Box::pin(async move { if fails { FaultAction::Fail } else { FaultAction::Proceed } })
    }
}

/// A job's log and the table it writes into, without the job.
struct Job {
    database: Database,
    runtime: tokio::runtime::Runtime,
    io: SharedIo,
    away: Arc<Away>,
    log: LogClient,
    claims: u32,
}

impl Job {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let io = TokioIo::shared(runtime.handle().clone());
        let away = Arc::new(Away::default());
        let store = FaultyStore::new(Arc::new(InMemory::new()), Arc::clone(&away) as _);
        let storage = CheckpointStorage::over(Arc::new(store), "memory://claims");
        let database = Database::with_rows(ServiceKind::MariaDb);
        // Locks are the server's, named after job and log: each test has its own.
        let job = JobName::from(database.name.as_str());
        let mut nonces = NonceSource::new(1);
        let log = LogClient::open(storage, Arc::clone(&io), job, &mut nonces);
        let log = runtime.block_on(log).unwrap();
        Self { database, runtime, io, away, log, claims: 0 }
    }

    /// Somebody claims the job.
    fn claim(&mut self) -> AttemptId {
        self.claims += 1;
        let mut nonces = NonceSource::new(1_000 + u128::from(self.claims));
        let claimed = self.log.claim_checked::<LogError>(ClaimBase::Latest, &mut nonces, |_| Ok(()));
        match self.runtime.block_on(claimed).unwrap() {
            ClaimOutcome::Claimed(claimed) => claimed.attempt,
            outcome => panic!("{outcome:?}"),
        }
    }

    /// The only writer of an attempt.
    fn writer(&self, attempt: AttemptId, max_retries: u32) -> Result<RowWriter, ConnectorError> {
        self.writer_of(attempt, 0, 1, max_retries)
    }

    /// One writer of several.
    fn writer_of(
        &self,
        attempt: AttemptId,
        subtask: u32,
        parallelism: u32,
        max_retries: u32,
    ) -> Result<RowWriter, ConnectorError> {
        let mut sink = rows_sink(&self.database.url()).max_retries(max_retries);
        let scope = TransactionScope {
            job: self.log.job().clone(),
            log_id: self.log.log_id().clone(),
            lineage: Lineage(1),
            uid: "rows".into(),
        };
        sink.placed(&TransactionName { scope, subtask, opened_after: CheckpointId(0), attempt }, parallelism);
        let context = ConnectorContext {
            clock: SystemClock::shared(),
            io: Arc::clone(&self.io),
            waker: Arc::new(NoWake),
            checkpoint_timeout: PATIENCE,
            claim: ClaimWatch::of(self.log.clone(), attempt),
        };
        self.runtime.block_on(sink.open(context, subtask))
    }

    /// Writes the one row of the table.
    fn write(&self, writer: &mut RowWriter, value: u64) -> Result<(), ConnectorError> {
        self.runtime.block_on(async {
            writer.write(Batch::of(vec![VersionedRow { key: 0, value, version: 0 }])).await?;
            writer.flush().await
        })
    }

    /// Sessions in the database beside that of this test.
    fn sessions(&mut self) -> Vec<u64> {
        self.database.rows(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()",
        )
    }

    fn end_sessions(&mut self) {
        for id in self.sessions() {
            // One that has just ended by itself is fine.
            drop(self.database.try_run(&format!("KILL {id}")));
        }
        until("the sessions have ended", || self.database.sessions() == 0);
    }

    fn value(&mut self) -> Option<u64> {
        self.database.table().get(&0).map(|row| row.value)
    }
}

fn entry(attempt: AttemptId) -> Option<EntryNumber> {
    Some(EntryNumber(attempt.0))
}

#[test]
fn a_writer_whose_job_was_taken_over_while_it_had_no_session_writes_nothing() {
    let mut job = Job::new();
    let first = job.claim();
    let mut writer = job.writer(first, 11).unwrap();
    job.write(&mut writer, 1).unwrap();
    job.end_sessions();
    job.write(&mut writer, 2).unwrap();
    assert_eq!(job.value(), Some(2), "nobody has claimed the job: it goes on");

    let second = job.claim();
    let mut successor = job.writer(second, 0).unwrap();
    job.write(&mut successor, 9).unwrap();
    drop(successor);
    job.end_sessions();
    let error = job.write(&mut writer, 3).unwrap_err();
    assert_eq!(error.fenced_by, entry(second), "{}", error.full_text());
    assert!(error.full_text().contains("nothing was written by the new connection"), "{}", error.full_text());
    assert_eq!(job.value(), Some(9));
    assert_eq!(job.writer(first, 11).map(drop).unwrap_err().fenced_by, entry(second), "nor from the start");
}

#[test]
fn a_predecessor_that_goes_on_does_not_disturb_its_successor() {
    let mut job = Job::new();
    let first = job.claim();
    let mut writer = job.writer(first, 11).unwrap();
    job.write(&mut writer, 1).unwrap();
    let second = job.claim();
    let mut successor = job.writer(second, 0).unwrap();
    job.write(&mut successor, 2).unwrap();
    until("only the successor has a session", || job.sessions().len() == 1);
    let before = job.sessions();
    assert_eq!(job.write(&mut writer, 3).unwrap_err().fenced_by, entry(second));
    // It has no tries: its session must be the same still.
    job.write(&mut successor, 4).unwrap();
    until("the predecessor's connection is gone", || job.sessions() == before);
    assert_eq!(job.value(), Some(4));
}

#[test]
fn each_subtask_of_a_later_attempt_ends_all_sessions_of_an_earlier_one_and_none_of_its_own() {
    let mut job = Job::new();
    let first = job.claim();
    let mut earlier: Vec<RowWriter> =
        (0..2).map(|subtask| job.writer_of(first, subtask, 2, 11).unwrap()).collect();
    assert_eq!(job.sessions().len(), 2);
    let second = job.claim();
    // It comes in the place of neither.
    let mut third = job.writer_of(second, 2, 4, 0).unwrap();
    let own = job.sessions();
    assert_eq!(own.len(), 1, "nothing older can come after what is written now");
    let _fourth = job.writer_of(second, 3, 4, 0).unwrap();
    job.write(&mut third, 7).unwrap();
    assert!(job.sessions().contains(&own[0]), "a sibling was disturbed");
    for writer in &mut earlier {
        assert_eq!(job.write(writer, 1).unwrap_err().fenced_by, entry(second));
    }
    assert_eq!(job.value(), Some(7));
}

#[test]
fn while_the_log_cannot_be_asked_nothing_is_written_and_it_is_asked_again() {
    let mut job = Job::new();
    let first = job.claim();
    let mut writer = job.writer(first, 3).unwrap();
    job.write(&mut writer, 1).unwrap();
    job.away.listings.store(3, Ordering::SeqCst);
    job.end_sessions();
    // The first try meets the session that was ended.
    let error = job.write(&mut writer, 2).unwrap_err();
    let text = error.full_text();
    assert!(
        text.contains("given up after 4 tries") && text.contains("in the checkpoint folder memory://claims")
    );
    assert!(error.restartable && error.fenced_by.is_none(), "{text}");
    assert_eq!(job.value(), Some(1));

    job.away.listings.store(2, Ordering::SeqCst);
    job.write(&mut writer, 3).unwrap();
    assert_eq!((job.away.listings.load(Ordering::SeqCst), job.value()), (0, Some(3)));
}
