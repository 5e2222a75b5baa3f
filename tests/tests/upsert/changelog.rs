//! Inserts, updates and deletes: the table is what the changes say, also after kills.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::connectors::changes::{ChangeScript, VersionedRow};
use tidegate::connectors::mysql::{Columns, MysqlSink};
use tidegate::engine::element::Change;
use tidegate::prelude::*;
use tidegate_jobs::services::ServiceKind;

use crate::scene::{Database, Killer, config, rows_sink, run_job, until};

fn row(key: u64, value: u64) -> VersionedRow {
    VersionedRow { key, value, version: 0 }
}

/// Runs `script` through a sink.
fn written(database: &mut Database, changes: Vec<Change<VersionedRow>>) -> BTreeMap<u64, VersionedRow> {
    let env = StreamEnvironment::new();
    let source = ChangeScript::of(changes).source();
    let _ = env.source("changes", source).parallelism(1).sink("rows", rows_sink(&database.url()).changes());
    run_job(env, 1, config()).unbroken();
    database.table()
}

#[test]
fn insert_delete_insert_of_one_key_in_one_batch_leaves_the_row() {
    // flink#12803, clickhouse-java#63 and #88.
    let mut database = Database::with_rows(ServiceKind::MariaDb);
    let changes = vec![Change::insert(row(1, 10)), Change::delete(row(1, 10)), Change::insert(row(1, 20))];
    assert_eq!(written(&mut database, changes), BTreeMap::from([(1, row(1, 20))]));
    let gone = vec![Change::insert(row(1, 30)), Change::delete(row(1, 30))];
    assert_eq!(written(&mut database, gone), BTreeMap::new());
}

#[test]
fn an_update_that_changes_the_key_leaves_only_the_new_row() {
    let mut database = Database::with_rows(ServiceKind::MariaDb);
    let moved = vec![
        Change::insert(row(1, 10)),
        Change::insert(row(2, 20)),
        Change::update_before(row(1, 10)),
        Change::update_after(row(7, 10)),
        Change::update_before(row(2, 20)),
        Change::update_after(row(2, 21)),
    ];
    assert_eq!(written(&mut database, moved), BTreeMap::from([(2, row(2, 21)), (7, row(7, 10))]));
}

#[test]
fn a_delete_by_a_composite_key_takes_the_right_row_in_any_order_of_columns() {
    // flink#13594.
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run(
        "CREATE TABLE order_line (note VARCHAR(20) NOT NULL, line INT NOT NULL, orders BIGINT NOT NULL, PRIMARY KEY (orders, line))",
    );
    type Line = (i64, i32, String);
    let line = |order: i64, line: i32| (order, line, format!("{order}/{line}"));
    for key in [["orders", "line"], ["line", "orders"]] {
        let columns =
            Columns::new().text("note", |l: &Line| &l.2).column("orders", |l| l.0).column("line", |l| l.1);
        let sink =
            MysqlSink::table(database.url(), "order_line").columns(|_| columns).upsert_by(key).changes();
        let mut changes: Vec<Change<Line>> =
            (1..=3).flat_map(|order| (1..=3).map(move |l| Change::insert(line(order, l)))).collect();
        changes.extend([Change::delete(line(1, 2)), Change::delete(line(3, 1))]);
        let env = StreamEnvironment::new();
        // One key a batch: a delete of its own.
        let source = env.source("changes", ChangeScript::of(changes).source()).parallelism(1);
        let _ = source.sink("lines", sink.batch_rows(1));
        run_job(env, 1, config()).unbroken();
        let there = database.rows::<(i64, i32)>("SELECT orders, line FROM order_line ORDER BY orders, line");
        assert_eq!(there, [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3)], "{key:?}");
        database.run("DELETE FROM order_line");
    }
}

/// A changelog through a job of two subtasks that is killed a few times.
fn survives_kills(kind: ServiceKind, seed: u64, guarded: bool) {
    let mut database = Database::with_rows(kind);
    let script = ChangeScript::seeded(seed, 200, 6_000);
    let killer = Killer::new(1_700, 4);
    let sink = rows_sink(&database.url()).batch_rows(64).flush_interval(Duration::from_millis(20));
    let sink = if guarded { sink.version_column("version") } else { sink };
    let env = StreamEnvironment::new();
    let passing = killer.clone();
    let changes = env.source("changes", script.source().rate_per_second(30_000)).parallelism(1);
    let changes = changes.map(move |change: Change<VersionedRow>| {
        passing.pass();
        change
    });
    let _ = changes
        .parallelism(1)
        .key_by(|change: &Change<VersionedRow>| change.row.key)
        .sink("rows", sink.changes());
    let ended = run_job(env, 2, config());
    ended.finished();
    assert_eq!((killer.kills_left(), ended.restarts.len()), (0, 4), "seed {seed}: {:?}", ended.restarts);
    assert_eq!(database.table(), script.final_table(|row| row.key), "seed {seed}");
}

#[test]
fn after_kills_the_table_is_what_the_changelog_says() {
    for seed in 1..=3 {
        println!("seed {seed}");
        survives_kills(ServiceKind::MariaDb, seed, seed % 2 == 0);
    }
}

#[test]
fn after_kills_the_table_is_what_the_changelog_says_on_mysql_too() {
    println!("seed 4");
    survives_kills(ServiceKind::MySql, 4, false);
    println!("seed 5");
    survives_kills(ServiceKind::MySql, 5, true);
}

#[test]
fn rows_that_are_there_already_are_written_again_without_a_key_error() {
    // risingwave#10251.
    let mut database = Database::with_rows(ServiceKind::MariaDb);
    for _ in 0..2 {
        let env = StreamEnvironment::new();
        let rows = Datagen::new(|index| row(index % 100, index)).bounded(1_000);
        let _ = env.source("made", rows).sink("rows", rows_sink(&database.url()));
        run_job(env, 1, config()).unbroken();
    }
    let expected: BTreeMap<u64, VersionedRow> =
        (900..1_000).map(|index| (index % 100, row(index % 100, index))).collect();
    assert_eq!(database.table(), expected);
}

#[test]
fn a_row_becomes_visible_after_the_flush_interval_although_none_follows() {
    let database = Arc::new(Mutex::new(Database::with_rows(ServiceKind::MariaDb)));
    let looked = Arc::clone(&database);
    let env = StreamEnvironment::new();
    // The second row passes when the first one is visible; no checkpoint is due before that.
    let rows = Datagen::new(|index| row(index, index)).bounded(2).rate_per_second(5);
    let rows = env.source("made", rows).map(move |row: VersionedRow| {
        if row.key == 1 {
            until("the first row is visible", || looked.lock().unwrap().table().contains_key(&0));
        }
        row
    });
    let sink = rows_sink(&database.lock().unwrap().url()).flush_interval(Duration::from_millis(50));
    let _ = rows.blocking().sink("rows", sink);
    let mut config = config();
    config.checkpoints.interval_ms = 120_000;
    run_job(env, 1, config).unbroken();
    assert_eq!(database.lock().unwrap().table().len(), 2);
}
