//! A server that goes away under a running job, that refuses a known user for a while, or forgets a prepared branch.

use std::sync::{Arc, Barrier, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tidegate::connectors::mysql::{Xid, prepared_branches};
use tidegate::engine::api::TwoPhaseSink;
use tidegate::engine::execution::ExecutionConfig;
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_jobs::tcp_proxy::Direction;

use super::chain::{
    Once, Phases, audit, config, holds_for, job, numbers, numbers_sink, numbers_table, run_job, run_watched,
};
use super::scene::{Scene, on_both, on_server};

const RECORDS: u64 = 6_000;

/// Pauses that double, as by default, so that a server that is away uses up no number of attempts.
fn patient() -> ExecutionConfig {
    let restart =
        RestartStrategy::ExponentialDelay { initial_ms: 100, max_ms: 2_000, reset_after_ms: 600_000 };
    ExecutionConfig { restart, ..config(100) }
}

/// How long a server is away.
const AWAY: Duration = Duration::from_secs(20);

/// A server of one's own that is killed when everyone is half through, and comes back after [`AWAY`].
struct Away {
    service: Arc<Mutex<Service>>,
    half_through: Barrier,
    coming: Mutex<Option<JoinHandle<()>>>,
}

impl Away {
    fn new(kind: ServiceKind, jobs: usize) -> Arc<Self> {
        let service = Arc::new(Mutex::new(Service::own(kind, "xa-away", &[]).unwrap()));
        Arc::new(Self { service, half_through: Barrier::new(jobs), coming: Mutex::new(None) })
    }

    fn url(&self) -> String {
        self.service.lock().unwrap().mysql_url().unwrap().to_owned()
    }

    /// Called by each job once.
    fn strike(&self) {
        if !self.half_through.wait().is_leader() {
            return;
        }
        self.service.lock().unwrap().kill().unwrap();
        let service = Arc::clone(&self.service);
        *self.coming.lock().unwrap() = Some(std::thread::spawn(move || {
            holds_for(AWAY, "the server is away", || true);
            service.lock().unwrap().start().unwrap();
        }));
    }

    /// Runs one of the jobs; `phases`: none upserts.
    async fn run(self: &Arc<Self>, scene: &Scene, phases: Option<Phases>) {
        numbers_table(scene).await;
        let strike = Once::new({
            let away = Arc::clone(self);
            move || away.strike()
        });
        let at = move |number| {
            if number == RECORDS / 2 {
                strike.run();
            }
        };
        let env = match phases {
            Some(phases) => job(&scene.url, phases, RECORDS, at),
            None => {
                scene.sql("ALTER TABLE w ADD PRIMARY KEY (n)").await;
                let env = StreamEnvironment::new();
                let by_number = numbers(&env, RECORDS, 3_000, at).key_by(|n| *n);
                let _ = by_number.sink("out", numbers_sink(&scene.url).upsert_by("n"));
                env
            }
        };
        let ended = run_job(scene, env, 2, patient());
        match phases {
            Some(_) => {
                ended.finished();
                assert!(ended.restarts.len() >= 5, "{ended:?}");
            }
            // Its retries last for so long.
            None => ended.unbroken(),
        }
        audit(scene, RECORDS).await;
    }
}

/// Every sink on both servers, at the same time: what takes time is the outage.
#[test]
fn a_server_killed_and_away_for_20_s_is_waited_for_and_each_row_is_there_once() {
    let sinks = [Some(Phases::Xa), Some(Phases::Staging), None];
    let servers = [ServiceKind::MariaDb, ServiceKind::MySql].map(|kind| Away::new(kind, sinks.len()));
    std::thread::scope(|threads| {
        for away in &servers {
            for phases in sinks {
                threads.spawn(move || {
                    on_server(&away.url(), |scene| async move { away.run(&scene, phases).await });
                });
            }
        }
    });
    for away in servers {
        away.coming.lock().unwrap().take().unwrap().join().unwrap();
    }
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
