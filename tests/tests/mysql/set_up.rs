//! A MySQL that is set up otherwise than most: in safe mode, and with a performance schema.

use std::time::Duration;

use tidegate::engine::api::{Committer, TwoPhaseSink};
use tidegate::engine::operator::CommitOutcome;
use tidegate_jobs::services::{Service, ServiceKind};

use super::scene::{on_server, settle};

#[test]
fn a_server_in_safe_mode_is_written_to_and_one_with_a_performance_schema_tells_who_holds_a_row() {
    let service =
        Service::own(ServiceKind::MySql, "xa-setup", &[("MYSQL8_OPTS", "--performance-schema=ON")]).unwrap();
    for sql in ["SET GLOBAL sql_safe_updates = 1", "GRANT SELECT ON performance_schema.* TO 'tidegate'@'%'"] {
        service.run("root", &["-e", sql]).unwrap();
    }
    on_server(service.mysql_url().unwrap(), async |scene| {
        scene.table().await;
        scene.keyed_table().await;
        scene.sink("t").preflight(scene.preflight(1)).await.unwrap();
        let sink = scene.sink("s").add_by("user_id").staging();
        sink.preflight(scene.preflight(1)).await.unwrap();
        scene.sql("INSERT INTO s VALUES (1, 0)").await;

        let mut hand = scene.connect().await;
        for sql in ["START TRANSACTION", "UPDATE s SET cents = cents + 1 WHERE user_id = 1"] {
            hand.run("taking a row", sql).await.unwrap();
        }
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 1)]).await;
        let mut context = scene.context(scene.name(0, 1));
        context.connector.checkpoint_timeout = Duration::from_secs(3);
        let mut committer = sink.open_committer(context).await.unwrap();
        let waited = committer.commit(&item).await.unwrap();
        let CommitOutcome::RetryAfter { reason, .. } = waited else {
            panic!("it was merged over a locked row")
        };
        let held = format!("a row stayed locked, held by connection {}", hand.id());
        assert!(reason.contains(&held), "{reason}");
        hand.close().await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("s").await, [(1, 1)]);
    });
}
