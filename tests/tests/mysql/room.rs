//! A server that takes too few sessions for the sinks of a job is refused at submit.

use tidegate::connectors::mysql::MysqlUrl;
use tidegate::engine::api::{Sink, TwoPhaseSink};
use tidegate::prelude::*;
use tidegate_jobs::services::{Service, ServiceKind};

use super::chain::{config, run_job};
use super::scene::{Pair, Scene, on_server};

/// So many numbers into the table `t`, by `sinks` XA sinks side by side.
fn job(scene: &Scene, urls: &[&MysqlUrl]) -> StreamEnvironment {
    let env = StreamEnvironment::new();
    let pairs = env.source("pairs", Datagen::new(|n| n).bounded(10)).map(|n| -> Pair { (n, 1) });
    for (number, url) in urls.iter().enumerate() {
        let _ = pairs.sink(&format!("out{number}"), scene.sink_at(url, "t"));
    }
    env
}

#[test]
fn sinks_that_need_more_sessions_together_than_their_server_takes_are_refused_at_submit() {
    let service =
        Service::own(ServiceKind::MariaDb, "xa-few", &[("MYSQL_OPTS", "--max-connections=20")]).unwrap();
    on_server(service.mysql_url().unwrap(), async |scene| {
        scene.table().await;
        // Four places, a committer, one that asks who holds a lock: 6 for each subtask.
        let refused = scene.sink("t").preflight(scene.preflight(8)).await.unwrap_err();
        let said = refused.full_text();
        assert!(!refused.restartable, "{said}");
        for words in
            ["takes 20 sessions (max_connections)", "up to 48 (6 for each of 8", "raise max_connections"]
        {
            assert!(said.contains(words), "\"{words}\" is not in: {said}");
        }
        // Without branches that are tied to their sessions: 3, and 2 without transactions.
        for parallelism in [1, 4] {
            let staging = scene.sink("t").staging().preflight(scene.preflight(parallelism)).await.unwrap();
            let plain = scene.sink("t").plain().preflight(scene.preflight(parallelism)).await.unwrap();
            assert_eq!((staging, plain), (Vec::new(), Vec::new()));
        }
        let plain = scene.sink("t").plain().preflight(scene.preflight(11)).await.unwrap_err().full_text();
        assert!(plain.contains("up to 22 (2 for each of 11"), "{plain}");
        // It would fit, were nobody else there.
        let mut others = Vec::new();
        for _ in 0..8 {
            others.push(scene.connect().await);
        }
        let warnings = scene.sink("t").preflight(scene.preflight(2)).await.unwrap();
        assert!(
            warnings.len() == 1 && warnings[0].contains("are open, and this sink needs up to 12"),
            "{warnings:?}"
        );
        for other in others {
            other.close().await;
        }
        scene.alone().await;

        // Sinks of one job: one fits, two do not, if they are on one server.
        let one = run_job(&scene, job(&scene, &[&scene.url]), 2, config(50));
        one.finished();
        let two = run_job(&scene, job(&scene, &[&scene.url, &scene.url]), 2, config(50));
        let said = two.failure();
        assert_eq!(two.restarts, Vec::<String>::new(), "{said}");
        for words in [
            "takes 20 sessions",
            "this sink needs up to 16",
            "with other sinks of this job on that server 32",
        ] {
            assert!(said.contains(words), "\"{words}\" is not in: {said}");
        }
        let (_proxy, elsewhere) = scene.proxy();
        run_job(&scene, job(&scene, &[&scene.url, &elsewhere]), 2, config(50)).finished();
    });
}
