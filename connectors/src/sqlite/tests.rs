//! The promises of the SQLite sink, each as a test. A crash is everything dropped and the file opened anew.

mod faults;
mod modes;
mod plain;
mod refusals;
mod sharing;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tidegate_engine::api::{
    Committer, ConnectorError, Prepared, Sink, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter, Writer,
};
use tidegate_engine::element::Batch;
use tidegate_engine::ids::{AttemptId, CheckpointId, Lineage};
use tidegate_engine::operator::{CommitOutcome, TransactionName, TransactionScope};

use super::*;
use crate::testing::{self, Bench};

type Pair = (u64, i64);

struct Scene {
    bench: Bench,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { bench: Bench::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("out.db")
    }

    /// Two columns without a key.
    fn log(&self) -> SqliteSink<Pair> {
        SqliteSink::table(self.file(), "t")
            .column("user_id", |pair: &Pair| pair.0)
            .column("cents", |pair: &Pair| pair.1)
            .busy_timeout(Duration::ZERO)
    }

    fn context(&self, name: TransactionName) -> TwoPhaseContext {
        TwoPhaseContext {
            connector: self.bench.context(),
            subtask: name.subtask,
            parallelism: 1,
            places: 4,
            restored_attempt: AttemptId(0),
            name,
        }
    }

    async fn committer(&self, sink: &SqliteSink<Pair>) -> SqliteCommitter {
        sink.open_committer(self.context(name(0, 1))).await.unwrap()
    }

    async fn writer(&self, sink: &SqliteSink<Pair>) -> SqliteWriter<Pair> {
        sink.open_writer(self.context(name(0, 1))).await.unwrap()
    }

    /// Prepares one transaction and lets everything go.
    async fn prepared(&self, sink: &SqliteSink<Pair>, after: u64, rows: &[Pair]) -> Prepared<StagedRows> {
        let mut writer = self.writer(sink).await;
        writer.write(&name(after, 1), Batch::of(rows.to_vec())).await.unwrap();
        let committable = writer.prepare().await.unwrap().unwrap();
        Prepared { name: name(after, 1), closed_by: CheckpointId(after + 1), committable }
    }

    async fn commit(&self, sink: &SqliteSink<Pair>, item: &Prepared<StagedRows>) -> CommitOutcome {
        self.committer(sink).await.commit(item).await.unwrap()
    }

    fn rows(&self) -> Vec<Pair> {
        rows_of(&self.file(), "SELECT user_id, cents FROM t ORDER BY rowid")
    }
}

fn rows_of(file: &Path, sql: &str) -> Vec<Pair> {
    let connection = Connection::open(file).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows =
        statement.query_map([], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn count(file: &Path, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    Connection::open(file).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap()
}

fn staging_tables(file: &Path) -> i64 {
    count(file, "sqlite_schema WHERE name LIKE 'tidegate_staging_%' AND type = 'table'")
}

fn name(opened_after: u64, attempt: u64) -> TransactionName {
    TransactionName {
        scope: TransactionScope {
            job: "orders".into(),
            log_id: "0123456789abcdef0123456789abcdef".into(),
            lineage: Lineage(1),
            uid: "sink".into(),
        },
        subtask: 0,
        opened_after: CheckpointId(opened_after),
        attempt: AttemptId(attempt),
    }
}

fn text(error: ConnectorError) -> String {
    error.full_text()
}

#[test]
fn a_prepared_transaction_survives_a_crash_and_is_committed_by_the_next_process() {
    testing::run(async {
        let (scene, sink) = (Scene::new(), Scene::log);
        let item = scene.prepared(&sink(&scene), 0, &[(1, 10), (2, 20)]).await;
        assert!(scene.rows().is_empty(), "nothing is visible before the commit");
        assert_eq!(scene.commit(&sink(&scene), &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows(), [(1, 10), (2, 20)]);
        assert_eq!((staging_tables(&scene.file()), count(&scene.file(), "tidegate_staging")), (0, 0));
        assert_eq!(
            count(&scene.file(), "tidegate_ledger WHERE closed_by = 1 AND rows = 2 AND attempt = 1"),
            1
        );
    });
}

#[test]
fn a_second_commit_changes_nothing() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().add_by("user_id");
        let item = scene.prepared(&sink, 0, &[(1, 10), (1, 5)]).await;
        assert_eq!(scene.commit(&sink, &item).await, CommitOutcome::Committed);
        for _ in 0..3 {
            assert_eq!(scene.commit(&sink, &item).await, CommitOutcome::AlreadyCommitted);
        }
        assert_eq!(scene.rows(), [(1, 15)]);
    });
}

#[test]
fn what_was_rolled_back_is_lost_and_says_so() {
    testing::run(async {
        let (scene, other) = (Scene::new(), Scene::new());
        let item = scene.prepared(&scene.log(), 0, &[(1, 10)]).await;
        scene.committer(&scene.log()).await.roll_back(&item.name).await.unwrap();
        assert_eq!((staging_tables(&scene.file()), count(&scene.file(), "tidegate_staging")), (0, 0));
        for place in [&scene, &other] {
            let CommitOutcome::Lost { reason } = place.commit(&place.log(), &item).await else {
                panic!("not lost")
            };
            assert!(reason.contains("neither a staging table nor a ledger row"), "{reason}");
        }
        scene.committer(&scene.log()).await.roll_back(&item.name).await.unwrap();
    });
}

#[test]
fn a_staging_table_with_rows_missing_is_lost_and_not_merged() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.log(), 0, &[(1, 10), (2, 20)]).await;
        let sql = format!("DELETE FROM {} WHERE user_id = 1", item.committable.table);
        Connection::open(scene.file()).unwrap().execute(&sql, []).unwrap();
        let CommitOutcome::Lost { reason } = scene.commit(&scene.log(), &item).await else { panic!() };
        assert!(reason.contains("holds 1 rows of 2"), "{reason}");
        assert!(scene.rows().is_empty());
    });
}

#[test]
fn an_epoch_without_records_makes_no_committable_and_no_table() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        writer.write(&name(0, 1), Batch::default()).await.unwrap();
        assert_eq!(writer.prepare().await.unwrap(), None);
        writer.write(&name(1, 1), Batch::of(vec![(1, 1)])).await.unwrap();
        assert!(writer.prepare().await.unwrap().is_some());
        assert_eq!(writer.prepare().await.unwrap(), None);
        assert_eq!(staging_tables(&scene.file()), 1);
    });
}

#[test]
fn discarding_leaves_nothing() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        writer.write(&name(0, 1), Batch::of(vec![(1, 1); 2_000])).await.unwrap();
        assert_eq!(staging_tables(&scene.file()), 1, "full batches are staged at once");
        writer.write(&name(0, 1), Batch::of(vec![(1, 1)])).await.unwrap();
        writer.discard().await.unwrap();
        assert_eq!((staging_tables(&scene.file()), count(&scene.file(), "tidegate_staging")), (0, 0));
        assert_eq!(writer.prepare().await.unwrap(), None);
    });
}

#[test]
fn listing_finds_left_overs_of_any_attempt_and_only_of_this_sink() {
    testing::run(async {
        let scene = Scene::new();
        let mut names = vec![name(3, 1), name(3, 2), name(9, 1)];
        names[2].scope.lineage = Lineage(2);
        names[2].subtask = 5;
        let mut foreign = vec![name(3, 1); 3];
        foreign[0].scope.uid = "sink2".into();
        foreign[1].scope.job = "orders2".into();
        foreign[2].scope.log_id = "0123".into();
        let mut writer = scene.writer(&scene.log()).await;
        for name in names.iter().chain(&foreign) {
            writer.write(name, Batch::of(vec![(1, 1)])).await.unwrap();
            writer.prepare().await.unwrap();
        }
        drop(writer);
        let mut committer = scene.committer(&scene.log()).await;
        assert_eq!(committer.list().await.unwrap(), names);
        committer.roll_back(&names[0]).await.unwrap();
        assert_eq!(committer.list().await.unwrap(), names[1..]);
        assert_eq!(staging_tables(&scene.file()), 5);
    });
}

#[test]
fn names_that_would_meet_as_text_stay_apart() {
    let (mut a, mut b) = (name(0, 1), name(0, 1));
    (a.scope.job, a.scope.uid) = ("ab".into(), "c".into());
    (b.scope.job, b.scope.uid) = ("a".into(), "bc".into());
    assert_ne!(staging::table_name(&a), staging::table_name(&b));
    assert_ne!(staging::table_name(&name(1, 11)), staging::table_name(&name(11, 1)));
}

#[test]
fn a_staging_table_that_is_there_already_is_never_taken_over() {
    testing::run(async {
        let scene = Scene::new();
        scene.prepared(&scene.log(), 0, &[(1, 1)]).await;
        let mut writer = scene.writer(&scene.log()).await;
        writer.write(&name(0, 1), Batch::of(vec![(2, 2)])).await.unwrap();
        let error = text(writer.prepare().await.unwrap_err());
        assert!(error.contains("already exists"), "{error}");
        let again = text(writer.prepare().await.unwrap_err());
        assert!(again.contains("failed before"), "{again}");
    });
}
