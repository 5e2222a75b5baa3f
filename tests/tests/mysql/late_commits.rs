//! Commits that come late beside a short interval, and many short epochs at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::connectors::mysql::MysqlSink;
use tidegate::engine::api::{
    Committer, ConnectorError, PreflightContext, PreflightResult, Prepared, TwoPhaseContext, TwoPhaseSink,
};
use tidegate::engine::ids::CheckpointId;
use tidegate::engine::io::SharedIo;
use tidegate::engine::operator::{CommitOutcome, TransactionName};
use tidegate::prelude::*;
use tidegate_jobs::services::ServiceKind;

use super::chain::{
    Progress, audit, config_of_one_attempt, numbers, numbers_sink, numbers_table, run_job, until,
};
use super::scene::{Pair, on, on_both};

/// How late a commit comes.
const LATE: Duration = Duration::from_secs(2);

/// A sink whose first commits come late.
#[derive(Clone)]
struct LateCommits<S> {
    sink: S,
    late: Arc<Mutex<u32>>,
    /// Which checkpoints' transactions were committed, in order.
    committed: Arc<Mutex<Vec<CheckpointId>>>,
}

impl<S> LateCommits<S> {
    fn of(sink: S, late: u32) -> Self {
        Self { sink, late: Arc::new(Mutex::new(late)), committed: Arc::default() }
    }
}

impl<S: TwoPhaseSink + Sync> TwoPhaseSink for LateCommits<S> {
    type Record = S::Record;
    type Committable = S::Committable;
    type Writer = S::Writer;
    type Committer = LateCommitter<S::Committer>;

    fn validate(&self) -> Result<(), ConnectorError> {
        self.sink.validate()
    }

    fn preflight(&self, context: PreflightContext) -> impl Future<Output = PreflightResult> + Send + use<S> {
        self.sink.preflight(context)
    }

    fn holds_locks(&self) -> bool {
        self.sink.holds_locks()
    }

    fn merges_by_key(&self) -> bool {
        self.sink.merges_by_key()
    }

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self::Committer, ConnectorError>> + Send + use<S> {
        let (late, committed) = (Arc::clone(&self.late), Arc::clone(&self.committed));
        let io = Arc::clone(&context.connector.io);
        let opening = self.sink.open_committer(context);
        async move { Ok(LateCommitter { committer: opening.await?, io, late, committed }) }
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<S> {
        self.sink.open_writer(context)
    }
}

struct LateCommitter<C> {
    committer: C,
    io: SharedIo,
    late: Arc<Mutex<u32>>,
    committed: Arc<Mutex<Vec<CheckpointId>>>,
}

impl<C: Committer> Committer for LateCommitter<C> {
    type Committable = C::Committable;

    async fn commit(&mut self, item: &Prepared<C::Committable>) -> Result<CommitOutcome, ConnectorError> {
        let is_late = {
            let mut late = self.late.lock().unwrap();
            let is_late = *late > 0;
            *late = late.saturating_sub(1);
            is_late
        };
        if is_late {
            self.io.sleep(LATE).await;
        }
        let outcome = self.committer.commit(item).await?;
        if outcome == CommitOutcome::Committed {
            self.committed.lock().unwrap().push(item.closed_by);
        }
        Ok(outcome)
    }

    fn list(&mut self) -> impl Future<Output = Result<Vec<TransactionName>, ConnectorError>> + Send {
        self.committer.list()
    }

    fn roll_back(
        &mut self,
        name: &TransactionName,
    ) -> impl Future<Output = Result<(), ConnectorError>> + Send {
        self.committer.roll_back(name)
    }
}

/// `apache/flink#15584`, `#15636`: one branch per connection, and intake stood still while a commit was late.
#[test]
fn intake_goes_on_while_a_commit_is_2_s_late_and_no_more_branches_wait_than_there_are_places() {
    on_both(async |scene| {
        const RECORDS: u64 = 2_000;
        numbers_table(&scene).await;
        let sink = LateCommits::of(numbers_sink(&scene.url), 2);
        let (env, progress) = (StreamEnvironment::new(), Progress::default());
        let passing = progress.clone();
        let _ = numbers(&env, RECORDS, 500, move |n| passing.pass(n)).sink("out", sink.clone());
        let config = config_of_one_attempt(100);
        let places = config.checkpoints.barrier_places() as usize + 2;
        let seen = Mutex::new((0, 0));
        let runtime = tokio::runtime::Handle::current();
        let ended = std::thread::scope(|threads| {
            threads.spawn(|| {
                // How many wait prepared, and how far intake has come, until the first commit is in.
                until("no commit", || {
                    let prepared = runtime.block_on(scene.branches()).len();
                    let mut seen = seen.lock().unwrap();
                    *seen = (seen.0.max(prepared), progress.seen());
                    !sink.committed.lock().unwrap().is_empty()
                });
            });
            run_job(&scene, env, 1, config)
        });
        ended.unbroken();
        let (prepared, numbers) = *seen.lock().unwrap();
        assert!((4..=places).contains(&prepared), "{prepared} branches were prepared, of {places} places");
        // Four epochs of 50 records at least, and not all: the writer waits for a place.
        assert!((200..RECORDS).contains(&numbers), "{numbers} of {RECORDS} were taken in");
        let committed = sink.committed.lock().unwrap().clone();
        assert!(committed.is_sorted(), "{committed:?}");
        audit(&scene, RECORDS).await;
    });
}

#[test]
fn one_users_row_is_right_when_each_commit_is_2_s_late_and_no_lock_wait_ends_the_job() {
    on_both(async |scene| {
        const RECORDS: u64 = 1_000;
        scene.keyed_table().await;
        let sink = LateCommits::of(scene.sink("s").add_by("user_id"), 4);
        let env = StreamEnvironment::new();
        let one_user = numbers(&env, RECORDS, 500, |_| ()).map(|_| -> Pair { (7, 1) });
        let _ = one_user.sink("out", sink.clone());
        run_job(&scene, env, 1, config_of_one_attempt(100)).unbroken();
        assert_eq!(*sink.late.lock().unwrap(), 0, "fewer than four commits");
        assert_eq!(scene.rows("s").await, [(7, i64::try_from(RECORDS).unwrap())]);
    });
}

/// `seatunnel#10449`, `#10459`: two writers made the same xid in one checkpoint.
#[test]
fn two_sinks_of_four_subtasks_each_never_name_two_branches_alike() {
    on(ServiceKind::MariaDb, async |scene| {
        const RECORDS: u64 = 8_000;
        numbers_table(&scene).await;
        scene.sql("CREATE TABLE w2 LIKE w").await;
        let env = StreamEnvironment::new();
        let stream = numbers(&env, RECORDS, 2_000, |_| ());
        let _ = stream.sink("out", numbers_sink(&scene.url));
        let second = MysqlSink::table(&scene.url, "w2").column("n", |n: &u64| *n).text("pad", |_| "");
        let _ = stream.sink("out2", second);
        run_job(&scene, env, 4, config_of_one_attempt(50)).unbroken();
        let rows: Vec<(u64, u64)> = scene.ask("SELECT COUNT(*), COUNT(DISTINCT n) FROM w2").await;
        assert_eq!(rows, [(RECORDS, RECORDS)]);
        // A ledger row is a branch: its key is the xid, and it counts the rows of the branch.
        let branches: Vec<(String, u64, u64)> = scene
            .ask("SELECT target, COUNT(*), CAST(SUM(rows_written) AS UNSIGNED) FROM tidegate_ledger GROUP BY target ORDER BY target")
            .await;
        println!("{branches:?}");
        for ((table, branches, rows), expected) in branches.iter().zip(["w", "w2"]) {
            assert_eq!((table.as_str(), *rows), (expected, RECORDS));
            assert!(*branches >= 40, "{branches} branches: too few checkpoints to show anything");
        }
        audit(&scene, RECORDS).await;
    });
}
