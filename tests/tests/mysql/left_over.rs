//! What an operator sees of transactions that are left over, and decides about them by hand.

use std::time::Duration;

use tidegate::connectors::mysql::{HandDecision, LeftOver, LeftOverKind, left_overs, settle_by_hand};
use tidegate::engine::api::{Committer, TwoPhaseWriter};
use tidegate::engine::element::Batch;
use tidegate::engine::operator::CommitOutcome;

use super::chain::staging_tables;
use super::scene::{Scene, on_both};

/// Whether it is one of this scene: others share the server.
fn is_of(left: &LeftOver, scene: &Scene) -> bool {
    left.owner.as_ref().is_some_and(|owner| owner.log_id == scene.name(0, 1).scope.log_id.0)
}

#[test]
fn what_an_operator_decides_about_a_left_branch_is_noted_and_believed() {
    on_both(async |scene| {
        scene.table().await;
        let (kept, dropped) =
            (scene.prepared(0, &[(1, 1)]).await, scene.prepared(1, &[(2, 2), (3, 3)]).await);
        scene.alone().await;
        let mut hand = scene.connect().await;
        let seen = left_overs(&mut hand).await.unwrap();
        let mine: Vec<_> = seen.iter().filter(|left| is_of(left, &scene)).cloned().collect();
        assert_eq!(mine.len(), 2, "{seen:?}");
        let left = &mine[1];
        assert_eq!(
            (left.target.as_deref(), left.rows, left.closed_by),
            (Some("t"), Some(2), Some(dropped.closed_by))
        );
        assert!(left.since_ms.unwrap() > 1_700_000_000_000);
        for (left, decision) in mine.iter().zip([HandDecision::Commit, HandDecision::RollBack]) {
            let mut settled = settle_by_hand(&mut hand, left, decision, 5).await;
            for _ in 0..100 {
                if settled.is_ok() {
                    break;
                }
                scene.io.sleep(Duration::from_millis(20)).await;
                settled = settle_by_hand(&mut hand, left, decision, 5).await;
            }
            settled.unwrap();
        }
        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        assert_eq!(committer.commit(&kept).await.unwrap(), CommitOutcome::AlreadyCommitted);
        let lost = committer.commit(&dropped).await.unwrap();
        let CommitOutcome::Lost { reason } = lost else { panic!("{lost:?}") };
        assert!(reason.contains("rolled back by hand, user tidegate"), "{reason}");
        assert_eq!(scene.rows("t").await, [(1, 1)]);
    });
}

#[test]
fn a_left_staging_table_is_shown_and_thrown_away_by_hand_and_its_job_learns_it() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").staging();
        let mut writer = scene.writer(&sink, 1).await;
        let (merged, dropped) = (
            scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 1)]).await,
            scene.prepare(&mut writer, &scene.name(1, 1), &[(2, 2), (3, 3)]).await,
        );
        let mut hand = scene.connect().await;
        let find = async |hand: &mut _| {
            let mut seen = left_overs(hand).await.unwrap();
            seen.retain(|left| is_of(left, &scene));
            seen
        };
        let seen = find(&mut hand).await;
        let table = dropped.committable.table.clone();
        assert_eq!((seen.len(), &seen[1].kind), (2, &LeftOverKind::StagingTable { table }));
        assert_eq!((seen[1].rows, seen[1].owner.as_ref().unwrap().job.as_str()), (Some(2), "orders"));
        assert!(seen[1].since_ms.unwrap() > 1_700_000_000_000);
        // Its writer lives: only the job itself may drop it.
        assert!(seen[1].writer_session.is_some());
        let refused = settle_by_hand(&mut hand, &seen[1], HandDecision::RollBack, 5).await.unwrap_err();
        assert!(refused.to_string().contains("cancel that job"), "{refused}");
        drop(writer);
        hand.close().await;
        scene.alone().await;
        let mut hand = scene.connect().await;
        let seen = find(&mut hand).await;
        assert_eq!(seen[1].writer_session, None);
        let refused = settle_by_hand(&mut hand, &seen[1], HandDecision::Commit, 5).await.unwrap_err();
        assert!(refused.to_string().contains("start the job again"), "{refused}");
        settle_by_hand(&mut hand, &seen[1], HandDecision::RollBack, 5).await.unwrap();
        assert_eq!(staging_tables(&scene).await, 1);
        let mut committer = scene.committer(&sink, 2).await;
        let lost = committer.commit(&dropped).await.unwrap();
        let CommitOutcome::Lost { reason } = lost else { panic!("{lost:?}") };
        assert!(reason.contains("rolled back by hand, user tidegate"), "{reason}");
        assert_eq!(committer.commit(&merged).await.unwrap(), CommitOutcome::Committed);
        // One that was merged, and left by a crash right after it, is dropped and stays merged.
        scene
            .sql(&format!("CREATE TABLE {} (x INT) COMMENT '{}'", merged.committable.table, seen[0].xid))
            .await;
        settle_by_hand(&mut hand, &seen[0], HandDecision::RollBack, 5).await.unwrap();
        assert_eq!(committer.commit(&merged).await.unwrap(), CommitOutcome::AlreadyCommitted);
        assert_eq!((scene.rows("t").await, staging_tables(&scene).await), (vec![(1, 1)], 0));
    });
}

#[test]
fn a_trial_branch_that_a_dead_start_has_left_is_shown_and_rolled_back() {
    on_both(async |scene| {
        scene.table().await;
        let mut writer = scene.writer(&scene.sink("t"), 1).await;
        writer.write(&scene.name(0, 1), Batch::default()).await.unwrap();
        let mut start = scene.connect().await;
        let (session, now_ms) = (start.id(), 1_796_000_000_000_i64);
        let (gtrid, bqual) = ("tidegate-trial", format!("{session}.{now_ms}"));
        let xid = format!("'{gtrid}','{bqual}',{}", tidegate::connectors::mysql::FORMAT_ID);
        let row =
            format!("INSERT INTO tidegate_ledger VALUES ('{gtrid}', '{bqual}', 't', 0, 0, {now_ms}, NULL)");
        for sql in [&format!("XA START {xid}"), &row, &format!("XA END {xid}"), &format!("XA PREPARE {xid}")]
        {
            start.run("trying", sql).await.unwrap();
        }
        drop(start);
        drop(writer);
        scene.alone().await;
        let mut hand = scene.connect().await;
        let seen = left_overs(&mut hand).await.unwrap();
        let trial = seen.iter().find(|left| left.xid.to_string() == format!("{gtrid}/{bqual}")).unwrap();
        assert_eq!((&trial.kind, trial.target.as_deref()), (&LeftOverKind::Trial, Some("t")));
        assert_eq!((trial.since_ms, trial.writer_session), (Some(now_ms), None));
        let refused = settle_by_hand(&mut hand, trial, HandDecision::Commit, 5).await.unwrap_err();
        assert!(refused.to_string().contains("holds no rows"), "{refused}");
        settle_by_hand(&mut hand, trial, HandDecision::RollBack, 5).await.unwrap();
        assert!(!left_overs(&mut hand).await.unwrap().contains(trial));
        assert_eq!(scene.ask::<(u64,)>("SELECT COUNT(*) FROM tidegate_ledger").await, [(0,)]);
    });
}
