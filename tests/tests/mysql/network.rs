//! Connections that are cut in a statement, in PREPARE or in COMMIT, and answers that come late: each row is there once, and nothing
//! is left prepared or staged.

use std::sync::Arc;
use std::time::Duration;

use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::ServiceKind;
use tidegate_jobs::tcp_proxy::{CutMoment, Direction, TcpProxy};
use tidegate_tests::Ended;

use super::chain::{
    Once, Phases, audit, bytes_of, config, config_of_one_attempt, holds_for, job, numbers_table, run_job,
    run_watched, until,
};
use super::scene::{Scene, on};

const RECORDS: u64 = 3_000;
const MOMENTS: [CutMoment; 3] =
    [CutMoment::BeforeForwarding, CutMoment::AfterForwarding, CutMoment::AfterAnswer];

/// Every sink in two phases on every server.
fn on_all<F: Future<Output = ()>>(scenario: impl Fn(Arc<Scene>, Phases) -> F) {
    for phases in [Phases::Xa, Phases::Staging] {
        for kind in [ServiceKind::MariaDb, ServiceKind::MySql] {
            println!("{phases:?} on {kind:?}");
            on(kind, |scene| scenario(scene, phases));
        }
    }
}

/// What a sink's commit looks like on the network: a query of its own.
fn commit_of(phases: Phases) -> &'static [u8] {
    match phases {
        Phases::Xa => b"\x03XA COMMIT",
        Phases::Staging => b"\x03COMMIT",
    }
}

async fn run_through(scene: &Scene, phases: Phases, arm: impl FnOnce(&TcpProxy)) -> (Arc<TcpProxy>, Ended) {
    numbers_table(scene).await;
    let (proxy, url) = scene.proxy();
    arm(&proxy);
    let ended = run_job(scene, job(&url, phases, RECORDS, |_| ()), 2, config(50));
    (proxy, ended)
}

#[test]
fn a_statement_that_is_cut_in_the_middle_is_written_once_after_a_restart() {
    on_all(async |scene, phases| {
        let (proxy, ended) = run_through(&scene, phases, |proxy| {
            for (number, moment) in [600, 1_300, 2_100].into_iter().zip(MOMENTS) {
                proxy.cut_on(bytes_of(number), moment, 1);
            }
        })
        .await;
        ended.finished();
        assert_eq!(proxy.counts().cut_by_pattern, 3);
        assert!(ended.restarts.iter().all(|cause| cause.contains("the connection was lost")), "{ended:?}");
        assert!(!ended.restarts.is_empty(), "{ended:?}");
        audit(&scene, RECORDS).await;
    });
}

#[test]
fn a_first_phase_that_is_cut_off_at_any_moment_is_done_anew_after_a_restart() {
    on_all(async |scene, phases| {
        // Of a branch of the job (`tidegate.`), not of the trial at submit (`tidegate-`).
        let of_a_branch = |verb| format!("\x03XA {verb} X'74696465676174652e");
        let steps = match phases {
            Phases::Xa => ["START", "END", "PREPARE"].map(of_a_branch).to_vec(),
            Phases::Staging => vec!["\x03CREATE TABLE `tidegate_staging".to_owned()],
        };
        let (proxy, ended) = run_through(&scene, phases, |proxy| {
            for (step, moment) in steps.iter().flat_map(|step| MOMENTS.map(|moment| (step, moment))) {
                proxy.cut_on(step, moment, 1);
            }
        })
        .await;
        ended.finished();
        let armed = u64::try_from(steps.len() * MOMENTS.len()).unwrap();
        assert_eq!(proxy.counts().cut_by_pattern, armed);
        // Two subtasks may be cut in one attempt.
        assert!(ended.restarts.len() as u64 >= armed / 2, "{ended:?}");
        audit(&scene, RECORDS).await;
    });
}

#[test]
fn a_commit_that_is_cut_off_at_any_moment_is_repeated_without_a_restart() {
    on_all(async |scene, phases| {
        let (proxy, ended) = run_through(&scene, phases, |proxy| {
            for moment in MOMENTS {
                proxy.cut_on(commit_of(phases), moment, 2);
            }
        })
        .await;
        ended.unbroken();
        assert_eq!(proxy.counts().cut_by_pattern, 6);
        audit(&scene, RECORDS).await;
    });
}

/// `seatunnel#11569`: the error of a commit was swallowed.
#[test]
fn commits_that_are_cut_off_for_5_s_are_tried_again_with_pauses_and_the_job_waits_for_them() {
    on_all(async |scene, phases| {
        numbers_table(&scene).await;
        let (proxy, url) = scene.proxy();
        proxy.cut_on(commit_of(phases), CutMoment::BeforeForwarding, u32::MAX);
        let ended = std::thread::scope(|threads| {
            let watch = threads.spawn(|| {
                until("no commit was tried", || proxy.counts().cut_by_pattern > 0);
                holds_for(Duration::from_secs(5), "the commits go through", || {
                    proxy.counts().cut_by_pattern > 0
                });
                // One try after the other, of two subtasks, at least 100 ms apart.
                let tries = proxy.counts().cut_by_pattern;
                assert!((10..=110).contains(&tries), "{tries} tries in 5 s");
                proxy.disarm();
                tries
            });
            let ended = run_job(&scene, job(&url, phases, RECORDS, |_| ()), 2, config_of_one_attempt(50));
            assert!(watch.is_finished(), "the job ended while no commit could hold: {ended:?}");
            watch.join().unwrap();
            ended
        });
        ended.unbroken();
        audit(&scene, RECORDS).await;
    });
}

#[test]
fn a_commit_that_never_holds_fails_the_job_and_the_next_start_commits_it() {
    on_all(async |scene, phases| {
        numbers_table(&scene).await;
        let (proxy, url) = scene.proxy();
        proxy.cut_on(commit_of(phases), CutMoment::BeforeForwarding, u32::MAX);
        let folder = tempfile::tempdir().unwrap();
        let storage = || CheckpointStorage::open(folder.path().to_str().unwrap()).unwrap();
        let mut short = config_of_one_attempt(50);
        short.checkpoints.timeout_ms = 3_000;
        let failed = run_watched(&scene, job(&url, phases, 500, |_| ()), 1, short.clone(), storage(), |_| ());
        let said = failed.failure();
        assert!(said.contains("was tried for the checkpoint timeout (3000 ms) in vain"), "{said}");
        assert!(said.contains("the connection was lost"), "the cause is named: {said}");
        assert!(scene.ask::<(u64,)>("SELECT n FROM w").await.is_empty());
        proxy.disarm();
        run_watched(&scene, job(&url, phases, 500, |_| ()), 1, short, storage(), |_| ()).unbroken();
        audit(&scene, 500).await;
    });
}

/// `seatunnel#10459`: the branch is prepared, its session is gone, and so is the way to the server.
#[test]
fn a_branch_whose_prepare_was_not_answered_and_a_server_that_refuses_next_fail_the_job_visibly() {
    on_all(async |scene, phases| {
        numbers_table(&scene).await;
        let (proxy, url) = scene.proxy();
        let (step, doing): (&[u8], _) = match phases {
            Phases::Xa => (b"\x03XA PREPARE", "preparing the branch"),
            Phases::Staging => (b"\x03CREATE TABLE `tidegate_staging", "making the staging table"),
        };
        let env = job(&url, phases, RECORDS, {
            let arm = Once::new({
                let proxy = Arc::clone(&proxy);
                move || proxy.cut_on(step, CutMoment::AfterAnswer, 1)
            });
            move |number| {
                if number == RECORDS / 2 {
                    arm.run();
                }
            }
        });
        let storage = CheckpointStorage::open("memory://").unwrap();
        let ended = run_watched(&scene, env, 2, config(50), storage, |restart| match restart {
            1 => proxy.refuse().unwrap(),
            2 => proxy.accept().unwrap(),
            _ => {}
        });
        ended.finished();
        assert!(ended.restarts[0].contains(doing), "{ended:?}");
        assert!(ended.restarts[1].contains("connecting to"), "{ended:?}");
        audit(&scene, RECORDS).await;
    });
}

#[test]
fn answers_that_come_a_second_late_lose_nothing_and_break_nothing() {
    for phases in [Phases::Xa, Phases::Staging] {
        on(ServiceKind::MariaDb, async |scene| {
            numbers_table(&scene).await;
            let (proxy, url) = scene.proxy();
            let late = Once::new({
                let proxy = Arc::clone(&proxy);
                move || {
                    proxy.delay(Direction::ToClient, Duration::from_millis(1_000));
                    std::thread::spawn(move || {
                        holds_for(Duration::from_secs(12), "a span of late answers", || true);
                        proxy.delay(Direction::ToClient, Duration::ZERO);
                    });
                }
            });
            let env = job(&url, phases, RECORDS, move |number| {
                if number == RECORDS / 3 {
                    late.run();
                }
            });
            run_job(&scene, env, 2, config(100)).unbroken();
            audit(&scene, RECORDS).await;
        });
    }
}

#[test]
fn connections_that_are_all_cut_again_and_again_lose_nothing() {
    on_all(async |scene, phases| {
        numbers_table(&scene).await;
        let (proxy, url) = scene.proxy();
        let cuts: Vec<(u64, Once)> = (1..6)
            .map(|cut| {
                let proxy = Arc::clone(&proxy);
                (cut * RECORDS / 6, Once::new(move || proxy.cut_all()))
            })
            .collect();
        let env = job(&url, phases, RECORDS, move |number| {
            for (_, cut) in cuts.iter().filter(|(at, _)| *at == number) {
                cut.run();
            }
        });
        run_job(&scene, env, 2, config(50)).finished();
        assert!(proxy.counts().cut >= 5, "{:?}", proxy.counts());
        audit(&scene, RECORDS).await;
    });
}
