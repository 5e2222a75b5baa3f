//! Several writers, sessions that end, and sessions that do not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::connectors::changes::VersionedRow;
use tidegate::connectors::mysql::{Columns, MysqlSink};
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate_jobs::services::ServiceKind;

use crate::scene::{Database, config, rows_sink, run_job, until};

/// Four subtasks write the same keys in any order, each row with its version.
fn four_writers(kind: ServiceKind, batch_rows: usize) {
    const KEYS: u64 = 40;
    const ROWS: u64 = 12_000;
    let mut database = Database::with_rows(kind);
    let made = seeded(11, |index, random| VersionedRow {
        key: random.below(KEYS),
        value: random.next_u64() >> 1,
        version: index,
    });
    let mut expected = BTreeMap::new();
    for row in (0..ROWS).map(&made) {
        expected.insert(row.key, row);
    }
    let env = StreamEnvironment::new();
    let sink = rows_sink(&database.url()).version_column("version").batch_rows(batch_rows);
    let _ = env.source("made", Datagen::new(made).bounded(ROWS)).sink("rows", sink);
    let mut config = config();
    config.restart = RestartStrategy::None;
    run_job(env, 4, config).unbroken();
    assert_eq!(database.table(), expected);
}

#[test]
fn four_writers_over_the_same_keys_are_never_broken_and_the_newest_rows_stay() {
    // kafka-connect-jdbc#385, risingwave#10117. Keys are written in their order, so that deadlocks are few; one that happens for certain
    // is a test of the MySQL sinks (`row_locks`).
    four_writers(ServiceKind::MariaDb, 25);
}

#[test]
fn four_writers_over_the_same_keys_on_mysql_too() {
    four_writers(ServiceKind::MySql, 25);
}

#[test]
fn a_session_that_the_server_closed_for_silence_is_replaced_without_a_restart() {
    // streampark#919, flink#12427.
    let database = Arc::new(Mutex::new(Database::with_rows(ServiceKind::MariaDb)));
    let looked = Arc::clone(&database);
    let env = StreamEnvironment::new();
    let rows =
        Datagen::new(|index| VersionedRow { key: index, value: 0, version: 0 }).bounded(2).rate_per_second(5);
    let rows = env.source("made", rows).map(move |row: VersionedRow| {
        if row.key == 1 {
            until("the first row is visible", || looked.lock().unwrap().table().contains_key(&0));
            until("the server has closed the silent session", || looked.lock().unwrap().sessions() == 0);
        }
        row
    });
    let sink = rows_sink(&database.lock().unwrap().url()).flush_interval(Duration::from_millis(20));
    let _ = rows.blocking().sink("rows", sink);
    let mut config = config();
    config.restart = RestartStrategy::None;
    config.checkpoints.interval_ms = 120_000;
    // The session's idle limit follows from this: 2 s.
    config.checkpoints.timeout_ms = 3_000;
    run_job(env, 1, config).unbroken();
    assert_eq!(database.lock().unwrap().table().len(), 2);
}

#[test]
fn what_an_old_session_has_left_undone_is_not_done_after_newer_rows() {
    let database = Arc::new(Mutex::new(Database::with_rows(ServiceKind::MariaDb)));
    let proxy = database.lock().unwrap().proxy();
    database.lock().unwrap().run("INSERT INTO t VALUES (0, 0, 0)");
    let (looked, cutting) = (Arc::clone(&database), Arc::clone(&proxy));
    let env = StreamEnvironment::new();
    let rows =
        Datagen::new(|index| VersionedRow { key: 0, value: index, version: 0 }).bounded(2).rate_per_second(5);
    let rows = env.source("made", rows).map(move |row: VersionedRow| {
        let mut database = looked.lock().unwrap();
        if row.value == 0 {
            // The row of the test's own session keeps the writer waiting inside its statement.
            database.run("BEGIN");
            database.run("SELECT * FROM t WHERE id = 0 FOR UPDATE");
        } else {
            let waiting =
                "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'INSERT%'";
            let mut ids = Vec::new();
            until("the writer waits for the row", || {
                ids = database.rows::<u64>(waiting);
                !ids.is_empty()
            });
            cutting.cut_all();
            until("another session waits in the place of the old one", || {
                let now = database.rows::<u64>(waiting);
                assert!(now.len() <= 1, "never two at a time: {now:?}");
                !now.is_empty() && now != ids
            });
            database.run("COMMIT");
        }
        row
    });
    let url = proxy.in_url(&database.lock().unwrap().url());
    let _ = rows.blocking().sink("rows", rows_sink(&url).flush_interval(Duration::from_millis(20)));
    let mut config = config();
    config.restart = RestartStrategy::None;
    config.checkpoints.interval_ms = 120_000;
    run_job(env, 1, config).unbroken();
    assert_eq!(database.lock().unwrap().table()[&0].value, 1);
}

#[test]
fn sessions_of_an_attempt_with_more_subtasks_are_ended_before_anything_is_written() {
    let mut database = Database::with_rows(ServiceKind::MariaDb);
    let url = database.url();
    let job = |parallelism: u32, killed: bool| {
        let env = StreamEnvironment::new();
        let rows = Datagen::new(move |index: u64| {
            assert!(!(killed && index == 900), "killed");
            VersionedRow { key: index, value: 0, version: 0 }
        });
        let _ = env.source("made", rows.bounded(1_000)).sink("rows", rows_sink(&url).batch_rows(10));
        let mut config = config();
        config.restart = RestartStrategy::None;
        run_job(env, parallelism, config)
    };
    assert!(job(4, true).failure().contains("killed"));
    job(1, false).unbroken();
    assert_eq!(database.table().len(), 1_000);
    until("no session is left", || database.sessions() == 0);
}

#[test]
fn a_table_that_is_all_key_takes_its_rows_once() {
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run("CREATE TABLE seen (a BIGINT UNSIGNED, b VARCHAR(10), PRIMARY KEY (a, b))");
    let env = StreamEnvironment::new();
    let columns = Columns::new().column("a", |n: &u64| n % 10).column("b", |n| (n % 3).to_string());
    let sink = MysqlSink::table(database.url(), "seen").columns(|_| columns).upsert_by(["a", "b"]);
    let _ = env.source("numbers", Datagen::new(|index| index).bounded(300)).sink("seen", sink);
    run_job(env, 2, config()).unbroken();
    assert_eq!(database.rows::<u64>("SELECT COUNT(*) FROM seen"), [30]);
}
