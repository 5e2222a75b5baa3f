//! A MySQL that ties prepared branches to their sessions, as before 8.0.29, or as `xa_detach_on_prepare=OFF` asks for.

use tidegate::connectors::mysql::ServerKind;
use tidegate::engine::api::Committer;
use tidegate::engine::operator::CommitOutcome;
use tidegate_jobs::services::{Service, ServiceKind};

use super::chain::{Once, Phases, audit, config, job, numbers_table, run_job};
use super::scene::{on_server, settle};

const RECORDS: u64 = 6_000;

#[test]
fn a_mysql_that_ties_branches_to_their_sessions_is_written_to_unbroken_and_after_a_fall() {
    let service =
        Service::own(ServiceKind::MySql, "xa-tied", &[("MYSQL8_OPTS", "--xa-detach-on-prepare=OFF")])
            .unwrap();
    on_server(service.mysql_url().unwrap(), async |scene| {
        let asked = scene.connect().await;
        assert_eq!((asked.server(), asked.ties_branches()), (ServerKind::MySql, true));
        asked.close().await;
        numbers_table(&scene).await;
        let unbroken = run_job(&scene, job(&scene.url, Phases::Xa, RECORDS, |_| ()), 2, config(50));
        unbroken.finished();
        assert_eq!(unbroken.restarts, Vec::<String>::new());
        audit(&scene, RECORDS).await;

        scene.sql("DROP TABLE w").await;
        numbers_table(&scene).await;
        let strike = Once::new(|| panic!("a planted fault"));
        let falls = job(&scene.url, Phases::Xa, RECORDS, move |number| {
            if number == RECORDS / 2 {
                strike.run();
            }
        });
        let fallen = run_job(&scene, falls, 2, config(50));
        fallen.finished();
        assert_eq!(fallen.restarts.len(), 1, "{fallen:?}");
        audit(&scene, RECORDS).await;

        // A writer that is gone has left its branch; one that lives is waited for, then ended.
        scene.table().await;
        let left = scene.prepared(0, &[(1, 10)]).await;
        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        assert_eq!(settle(&scene, &mut committer, &left).await, CommitOutcome::Committed);
        let sink = scene.sink("t");
        let mut writer = scene.writer(&sink, 3).await;
        let held = scene.prepare(&mut writer, &scene.name(1, 3), &[(2, 20)]).await;
        let first = committer.commit(&held).await.unwrap();
        assert!(matches!(first, CommitOutcome::RetryAfter { .. }), "{first:?}");
        assert_eq!(settle(&scene, &mut committer, &held).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await, [(1, 10), (2, 20)]);
    });
}
