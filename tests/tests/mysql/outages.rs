//! A server that goes away under a running job, that refuses a known user for a while, or forgets a prepared branch.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::connectors::mysql::{Xid, prepared_branches};
use tidegate::engine::api::TwoPhaseSink;
use tidegate::engine::execution::ExecutionConfig;
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_jobs::tcp_proxy::Direction;

use super::chain::{
    Once, Phases, audit, config, holds_for, job, numbers_sink, numbers_table, run_job, run_watched,
};
use super::scene::{Scene, on_both, on_server};

const RECORDS: u64 = 6_000;

/// Pauses that double, as by default, so that a server that is away uses up no number of attempts.
fn patient() -> ExecutionConfig {
    let restart =
        RestartStrategy::ExponentialDelay { initial_ms: 100, max_ms: 2_000, reset_after_ms: 600_000 };
    ExecutionConfig { restart, ..config(100) }
}

#[test]
fn a_server_killed_and_away_for_20_s_is_waited_for_and_each_row_is_there_once() {
    let service = Service::own(ServiceKind::MariaDb, "xa-away", &[]).unwrap();
    let url = service.mysql_url().unwrap().to_owned();
    let service = Arc::new(Mutex::new(service));
    on_server(&url, |scene| {
        let service = Arc::clone(&service);
        async move {
            numbers_table(&scene).await;
            let coming = Arc::new(Mutex::new(None));
            let strike = Once::new({
                let (service, coming) = (Arc::clone(&service), Arc::clone(&coming));
                move || {
                    service.lock().unwrap().kill().unwrap();
                    *coming.lock().unwrap() = Some(std::thread::spawn(move || {
                        holds_for(Duration::from_secs(20), "the server is away", || true);
                        service.lock().unwrap().start().unwrap();
                    }));
                }
            });
            let env = job(&scene.url, Phases::Xa, RECORDS, move |number| {
                if number == RECORDS / 2 {
                    strike.run();
                }
            });
            let ended = run_job(&scene, env, 2, patient());
            coming.lock().unwrap().take().unwrap().join().unwrap();
            ended.finished();
            assert!(ended.restarts.len() >= 5, "{ended:?}");
            audit(&scene, RECORDS).await;
        }
    });
}

/// After a kill a server can answer before it has read its users.
#[test]
fn a_login_that_is_refused_for_a_while_under_a_running_job_is_tried_again() {
    let service = Arc::new(Service::own(ServiceKind::MariaDb, "xa-shut", &[]).unwrap());
    on_server(service.mysql_url().unwrap(), async |scene| {
        for phases in [Phases::Xa, Phases::Staging] {
            scene.sql("DROP TABLE IF EXISTS w").await;
            numbers_table(&scene).await;
            shut_out(&scene, &service, phases).await;
        }
    });
}

async fn shut_out(scene: &Arc<Scene>, service: &Arc<Service>, phases: Phases) {
    let (proxy, url) = scene.proxy();
    let strike = Once::new({
        let (service, proxy) = (Arc::clone(service), Arc::clone(&proxy));
        move || {
            set_password(&service, "another");
            proxy.cut_all();
        }
    });
    let env = job(&url, phases, RECORDS, move |number| {
        if number == RECORDS / 2 {
            strike.run();
        }
    });
    let storage = CheckpointStorage::open("memory://").unwrap();
    let ended = run_watched(scene, env, 2, patient(), storage, |restart| {
        if restart == 3 {
            set_password(service, "tidegate");
        }
    });
    ended.finished();
    let refused = |cause: &&String| cause.contains("refuses user \"tidegate\" while the job runs");
    assert!(ended.restarts.iter().filter(refused).count() >= 2, "{ended:?}");
    audit(scene, RECORDS).await;
}

fn set_password(service: &Service, password: &str) {
    let sql = format!("SET PASSWORD FOR tidegate@'%' = PASSWORD('{password}')");
    service.run("root", &["-e", &sql]).unwrap();
}

/// MySQL bugs 12161, 75204: the branch went with its client. Here another session rolls it back in that moment.
#[test]
fn a_server_that_forgets_a_prepared_branch_when_its_client_leaves_is_refused_at_submit() {
    on_both(async |scene| {
        numbers_table(&scene).await;
        let (proxy, url) = scene.proxy();
        proxy.delay(Direction::ToServer, Duration::from_millis(100));
        let forgetting = tokio::spawn({
            let (scene, proxy) = (Arc::clone(&scene), Arc::clone(&proxy));
            async move {
                forget_the_trial(&scene, || proxy.delay(Direction::ToServer, Duration::from_millis(600)))
                    .await
            }
        });
        let through = numbers_sink(&url);
        let refused = through.preflight(scene.preflight(1)).await.unwrap_err();
        forgetting.await.unwrap();
        let said = refused.full_text();
        assert!(
            !refused.restartable && said.contains("forgets a prepared XA branch when its client leaves"),
            "{said}"
        );
        assert!(said.contains("or the staging mode"), "the remedy: {said}");
    });
}

/// Waits for the trial branch of a session in this scene's database, and rolls it back as soon as that session has left.
async fn forget_the_trial(scene: &Scene, on_seen: impl FnOnce()) {
    let mut hand = scene.connect().await;
    let sessions =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()";
    let mut seen = Some(on_seen);
    let mut trial: Option<(u64, Xid)> = None;
    for _ in 0..6_000 {
        let rows = hand.rows("looking for sessions", sessions, Vec::new()).await.unwrap();
        let ids: Vec<u64> = rows.into_iter().map(|row| mysql_async::from_row::<(u64,)>(row).0).collect();
        if let Some((session, xid)) = &trial {
            if !ids.contains(session) {
                scene.io.sleep(Duration::from_millis(200)).await;
                hand.run("forgetting", &format!("XA ROLLBACK {}", xid.sql())).await.unwrap();
                return;
            }
        } else {
            let listed = prepared_branches(&mut hand).await.unwrap();
            trial = ids.into_iter().find_map(|id| {
                let of_session = format!("tidegate-trial/{id}.");
                listed
                    .iter()
                    .find(|xid| xid.to_string().starts_with(&of_session))
                    .map(|xid| (id, xid.clone()))
            });
            if let Some(seen) = seen.take_if(|_| trial.is_some()) {
                seen();
            }
        }
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    panic!("no trial branch was seen");
}
