//! Connections that are cut in a statement or a commit, answers that come late, and a server that goes away.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::connectors::changes::{ChangeScript, VersionedRow};
use tidegate::engine::element::Change;
use tidegate::engine::execution::{ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_jobs::tcp_proxy::{CutMoment, Direction, TcpProxy};

use crate::scene::{Database, config, rows_sink, run_job};

/// A changelog through the proxy; `at` is called with the number of each change. One attempt only.
fn through(
    proxy: &Arc<TcpProxy>,
    database: &mut Database,
    script: &ChangeScript<VersionedRow>,
    at: impl Fn(u64) + Clone + Send + 'static,
) {
    let env = StreamEnvironment::new();
    let counted = Arc::new(Mutex::new(0));
    let changes = env.source("changes", script.source().rate_per_second(20_000)).parallelism(1);
    let changes = changes.map(move |change: Change<VersionedRow>| {
        let mut count = counted.lock().unwrap();
        at(*count);
        *count += 1;
        change
    });
    let sink =
        rows_sink(&proxy.in_url(&database.url())).batch_rows(50).flush_interval(Duration::from_millis(20));
    let _ = changes.sink("rows", sink.changes());
    let mut config = config();
    config.restart = RestartStrategy::None;
    run_job(env, 1, config).unbroken();
    assert_eq!(database.table(), script.final_table(|row| row.key));
}

#[test]
fn a_commit_that_is_cut_off_at_any_moment_is_repeated_without_harm() {
    for moment in [CutMoment::BeforeForwarding, CutMoment::AfterForwarding, CutMoment::AfterAnswer] {
        let mut database = Database::with_rows(ServiceKind::MariaDb);
        let proxy = database.proxy();
        // As a query of its own: the session is READ COMMITTED.
        proxy.cut_on(b"\x03COMMIT", moment, 5);
        through(&proxy, &mut database, &ChangeScript::seeded(21, 300, 3_000), |_| ());
        assert_eq!(proxy.counts().cut_by_pattern, 5, "{moment:?}");
    }
}

#[test]
fn a_statement_that_is_cut_off_at_any_moment_is_repeated_without_harm() {
    // The values of a statement stand in its bytes: those of some rows, little endian.
    for moment in [CutMoment::BeforeForwarding, CutMoment::AfterForwarding, CutMoment::AfterAnswer] {
        let mut database = Database::with_rows(ServiceKind::MySql);
        let proxy = database.proxy();
        let script = ChangeScript::seeded(22, 300, 3_000);
        let rows = script.changes().iter().filter(|change| change.kind.is_addition());
        for change in rows.step_by(600) {
            proxy.cut_on(change.row.value.to_le_bytes(), moment, 1);
        }
        through(&proxy, &mut database, &script, |_| ());
        assert!(proxy.counts().cut_by_pattern >= 2, "{moment:?}: {:?}", proxy.counts());
    }
}

#[test]
fn connections_cut_again_and_again_lose_nothing() {
    let mut database = Database::with_rows(ServiceKind::MariaDb);
    let proxy = database.proxy();
    let cutting = Arc::clone(&proxy);
    through(&proxy, &mut database, &ChangeScript::seeded(23, 300, 4_000), move |count| {
        if count % 700 == 350 {
            cutting.cut_all();
        }
    });
    assert!(proxy.counts().cut >= 3, "{:?}", proxy.counts());
}

#[test]
fn answers_that_come_a_second_late_lose_nothing() {
    let mut database = Database::with_rows(ServiceKind::MariaDb);
    let proxy = database.proxy();
    let delaying = Arc::clone(&proxy);
    let script = ChangeScript::seeded(24, 100, 600);
    through(&proxy, &mut database, &script, move |count| match count {
        200 => delaying.delay(Direction::ToClient, Duration::from_millis(1_000)),
        500 => delaying.delay(Direction::ToClient, Duration::ZERO),
        _ => {}
    });
}

#[test]
fn a_server_that_is_killed_in_the_middle_and_comes_back_is_waited_for() {
    let service = Arc::new(Mutex::new(Service::own(ServiceKind::MariaDb, "upsert-away", &[]).unwrap()));
    let mut database = Database::of(&service.lock().unwrap());
    database.run(crate::scene::ROWS_TABLE);
    let (script, url) = (ChangeScript::seeded(25, 300, 4_000), database.url());
    let env = StreamEnvironment::new();
    let striking = Arc::clone(&service);
    let seen = Arc::new(Mutex::new(0));
    let back = Arc::new(Mutex::new(None));
    let coming = Arc::clone(&back);
    let changes = env.source("changes", script.source().rate_per_second(20_000)).parallelism(1);
    let changes = changes.map(move |change: Change<VersionedRow>| {
        let mut seen = seen.lock().unwrap();
        *seen += 1;
        if *seen == 2_000 {
            striking.lock().unwrap().kill().unwrap();
            let starting = Arc::clone(&striking);
            // It comes back while the sink is trying.
            *coming.lock().unwrap() =
                Some(std::thread::spawn(move || starting.lock().unwrap().start().unwrap()));
        }
        change
    });
    let _ = changes.sink("rows", rows_sink(&url).batch_rows(50).changes());
    let mut config = config();
    config.restart = RestartStrategy::None;
    let ended = run_job(env, 1, config);
    back.lock().unwrap().take().unwrap().join().unwrap();
    ended.unbroken();
    database.reconnect();
    assert_eq!(database.table(), script.final_table(|row| row.key));
}

#[test]
fn a_server_that_stays_away_restarts_the_job_which_loses_nothing() {
    let mut database = Database::with_rows(ServiceKind::MariaDb);
    let proxy = database.proxy();
    let script = ChangeScript::seeded(26, 300, 3_000);
    let env = StreamEnvironment::new();
    let (cutting, seen) = (Arc::clone(&proxy), Arc::new(Mutex::new(0)));
    let changes = env.source("changes", script.source().rate_per_second(20_000)).parallelism(1);
    let changes = changes.map(move |change: Change<VersionedRow>| {
        let mut seen = seen.lock().unwrap();
        *seen += 1;
        if *seen == 1_500 {
            cutting.refuse().unwrap();
            cutting.cut_all();
        }
        change
    });
    let sink = rows_sink(&proxy.in_url(&database.url())).batch_rows(50).max_retries(2);
    let _ = changes.sink("rows", sink.changes());
    let storage = CheckpointStorage::open("memory://").unwrap();
    let mut runner =
        LocalRunner::new(env.into_graph("upsert", 1, 128).unwrap(), config(), Some(storage)).unwrap();
    let mut causes = Vec::new();
    let opening = Arc::clone(&proxy);
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Restarting { cause, .. } = notice {
            causes.push(cause.clone());
            opening.accept().unwrap();
        }
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    assert!(causes[0].contains("given up after 3 tries") && causes[0].contains("connecting"), "{causes:?}");
    let expected: BTreeMap<u64, VersionedRow> = script.final_table(|row| row.key);
    assert_eq!(database.table(), expected);
}
