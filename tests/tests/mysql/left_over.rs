//! What an operator sees of transactions that are left over, and decides about them by hand.

use tidegate::connectors::mysql::{
    Connection, HandDecision, HandOutcome, LeftOver, LeftOverKind, left_overs, settle_by_hand,
};
use tidegate::engine::api::{Committer, Prepared, TwoPhaseSink, TwoPhaseWriter};
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::engine::element::Batch;
use tidegate::engine::ids::CheckpointId;
use tidegate::engine::operator::CommitOutcome;

use super::chain::staging_tables;
use super::scene::{Scene, on_both, settle};

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
        // Their sessions are just ending.
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
            settle_by_hand(&mut hand, left, decision, false, 5).await.unwrap();
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
        let refused =
            settle_by_hand(&mut hand, &seen[1], HandDecision::RollBack, false, 5).await.unwrap_err();
        assert!(refused.to_string().contains("cancel that job"), "{refused}");
        drop(writer);
        hand.close().await;
        scene.alone().await;
        let mut hand = scene.connect().await;
        let seen = find(&mut hand).await;
        assert_eq!(seen[1].writer_session, None);
        let refused = settle_by_hand(&mut hand, &seen[1], HandDecision::Commit, false, 5).await.unwrap_err();
        assert!(refused.to_string().contains("start the job again"), "{refused}");
        settle_by_hand(&mut hand, &seen[1], HandDecision::RollBack, false, 5).await.unwrap();
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
        settle_by_hand(&mut hand, &seen[0], HandDecision::RollBack, false, 5).await.unwrap();
        assert_eq!(committer.commit(&merged).await.unwrap(), CommitOutcome::AlreadyCommitted);
        assert_eq!((scene.rows("t").await, staging_tables(&scene).await), (vec![(1, 1)], 0));
    });
}

/// What a start prepares, under this name.
async fn prepare_trial(start: &mut Connection, bqual: &str, ms: i64) {
    let xid = format!("'tidegate-trial','{bqual}',{}", tidegate::connectors::mysql::FORMAT_ID);
    let row =
        format!("INSERT INTO tidegate_ledger VALUES ('tidegate-trial', '{bqual}', 't', 0, 0, {ms}, NULL)");
    for sql in [&format!("XA START {xid}"), &row, &format!("XA END {xid}"), &format!("XA PREPARE {xid}")] {
        start.run("trying", sql).await.unwrap();
    }
}

/// Numbers of sessions begin anew with a server.
#[test]
fn a_trial_whose_session_number_another_session_has_now_is_swept_or_rolled_back_and_that_session_lives() {
    on_both(async |scene| {
        scene.table().await;
        drop(scene.committer(&scene.sink("t"), 1).await);
        let mut other = scene.connect().await;
        let old_ms = SystemClock::new().wall_ms() - 120_000;
        let mut trials = Vec::new();
        for ms in [old_ms, old_ms + 1] {
            let bqual = format!("{}.{ms}", other.id());
            let mut start = scene.connect().await;
            prepare_trial(&mut start, &bqual, ms).await;
            start.close().await;
            trials.push(format!("tidegate-trial/{bqual}"));
        }
        scene.io.sleep(std::time::Duration::from_millis(300)).await;
        let mut hand = scene.connect().await;
        let find = async |hand: &mut Connection| {
            let mut seen = left_overs(hand).await.unwrap();
            seen.retain(|left| trials.contains(&left.xid.to_string()));
            seen
        };
        // A start of another test may have swept them already.
        if let Some(trial) = find(&mut hand).await.first() {
            assert_eq!(trial.writer_session, None);
            settle_by_hand(&mut hand, trial, HandDecision::RollBack, true, old_ms + 120_000).await.unwrap();
        }
        scene.sink("t").preflight(scene.preflight(1)).await.unwrap();
        assert_eq!(find(&mut hand).await, []);
        other.run("looking whether it lives", "DO 0").await.unwrap();
    });
}

#[test]
fn a_branch_that_its_job_has_settled_meanwhile_is_gone_and_no_failure() {
    on_both(async |scene| {
        scene.table().await;
        let item = scene.prepared(0, &[(1, 1)]).await;
        let mut hand = scene.connect().await;
        let mut seen = left_overs(&mut hand).await.unwrap();
        seen.retain(|left| is_of(left, &scene));
        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        for decision in [HandDecision::Commit, HandDecision::RollBack] {
            let settled = settle_by_hand(&mut hand, &seen[0], decision, false, 5).await.unwrap();
            assert_eq!(settled, HandOutcome::Gone);
        }
        assert_eq!(scene.rows("t").await, [(1, 1)]);
    });
}

/// On a server that ties branches, the writer is at work on the next one in another session.
#[test]
fn a_forced_branch_that_nobody_holds_is_settled_and_its_writer_goes_on() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut writer = scene.writer(&sink, 1).await;
        let first = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 1)]).await;
        let mut hand = scene.connect().await;
        let mut seen = left_overs(&mut hand).await.unwrap();
        seen.retain(|left| is_of(left, &scene));
        writer.write(&scene.name(1, 1), Batch::of(vec![(2, 2); 1_000])).await.unwrap();
        if hand.ties_branches() {
            hand.kill(seen[0].writer_session.unwrap()).await.unwrap();
            scene.io.sleep(std::time::Duration::from_millis(500)).await;
        }
        let settled = settle_by_hand(&mut hand, &seen[0], HandDecision::Commit, true, 5).await.unwrap();
        assert_eq!(settled, HandOutcome::Settled);
        writer.write(&scene.name(1, 1), Batch::of(vec![(3, 3); 1_000])).await.unwrap();
        writer.closing(CheckpointId(2));
        let second = writer.prepare().await.unwrap().unwrap();
        let second = Prepared { name: scene.name(1, 1), closed_by: CheckpointId(2), committable: second };
        let mut committer = sink.open_committer(scene.context(scene.name(0, 1))).await.unwrap();
        assert_eq!(settle(&scene, &mut committer, &first).await, CommitOutcome::AlreadyCommitted);
        assert_eq!(settle(&scene, &mut committer, &second).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await.len(), 2_001);
    });
}

#[test]
fn a_trial_branch_that_a_dead_start_has_left_is_shown_and_rolled_back() {
    on_both(async |scene| {
        scene.table().await;
        let mut writer = scene.writer(&scene.sink("t"), 1).await;
        writer.write(&scene.name(0, 1), Batch::default()).await.unwrap();
        let mut start = scene.connect().await;
        // The present time: a start beside this one would sweep an older branch.
        let (session, now_ms) = (start.id(), SystemClock::new().wall_ms());
        let (gtrid, bqual) = ("tidegate-trial", format!("{session}.{now_ms}"));
        prepare_trial(&mut start, &bqual, now_ms).await;
        drop(start);
        drop(writer);
        scene.alone().await;
        let mut hand = scene.connect().await;
        let seen = left_overs(&mut hand).await.unwrap();
        let trial = seen.iter().find(|left| left.xid.to_string() == format!("{gtrid}/{bqual}")).unwrap();
        assert_eq!((&trial.kind, trial.target.as_deref()), (&LeftOverKind::Trial, Some("t")));
        assert_eq!((trial.since_ms, trial.writer_session), (Some(now_ms), None));
        let refused = settle_by_hand(&mut hand, trial, HandDecision::Commit, false, 5).await.unwrap_err();
        assert!(refused.to_string().contains("holds no rows"), "{refused}");
        let decision = HandDecision::RollBack;
        let refused = settle_by_hand(&mut hand, trial, decision, false, now_ms + 59_000).await.unwrap_err();
        assert!(refused.to_string().contains("younger than a minute"), "{refused}");
        settle_by_hand(&mut hand, trial, decision, false, now_ms + 60_000).await.unwrap();
        assert!(!left_overs(&mut hand).await.unwrap().contains(trial));
        assert_eq!(scene.ask::<(u64,)>("SELECT COUNT(*) FROM tidegate_ledger").await, [(0,)]);
    });
}

#[test]
fn a_branch_whose_job_is_at_work_is_refused_and_stays_whole_unless_it_is_forced() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut writer = scene.writer(&sink, 1).await;
        let first = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 1)]).await;
        let forced = scene.prepare(&mut writer, &scene.name(1, 1), &[(2, 2)]).await;
        writer.write(&scene.name(2, 1), Batch::of(vec![(3, 3); 1_000])).await.unwrap();
        let mut hand = scene.connect().await;
        let mut seen = left_overs(&mut hand).await.unwrap();
        seen.retain(|left| is_of(left, &scene));
        assert_eq!(seen.len(), 2);
        for decision in [HandDecision::Commit, HandDecision::RollBack] {
            for left in &seen {
                let refused =
                    settle_by_hand(&mut hand, left, decision, false, 5).await.unwrap_err().to_string();
                let session = left.writer_session.unwrap();
                assert!(refused.contains(&format!("connection {session} is at work")), "{refused}");
                assert!(refused.contains("cancel that job") && refused.contains("--force"), "{refused}");
            }
        }
        settle_by_hand(&mut hand, &seen[1], HandDecision::Commit, true, 5).await.unwrap();
        let third = writer.prepare().await.unwrap().unwrap();
        let third = Prepared { name: scene.name(2, 1), closed_by: CheckpointId(3), committable: third };
        let mut committer = sink.open_committer(scene.context(scene.name(0, 1))).await.unwrap();
        assert_eq!(settle(&scene, &mut committer, &first).await, CommitOutcome::Committed);
        assert_eq!(settle(&scene, &mut committer, &forced).await, CommitOutcome::AlreadyCommitted);
        assert_eq!(settle(&scene, &mut committer, &third).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await.len(), 1_002);
    });
}

/// Both names are hashed in the branch's.
#[test]
fn a_job_whose_name_did_not_fit_is_found_by_it_and_left_alone_while_it_is_at_work() {
    let (job, uid) =
        ("a-job-whose-name-has-more-than-22-bytes-ä", "a sink whose uid has more than 40 bytes as well");
    on_both(async |scene| {
        scene.table().await;
        let name = |opened_after: u64| {
            let mut name = scene.name(opened_after, 1);
            (name.scope.job, name.scope.uid) = (job.into(), uid.into());
            name
        };
        let xa = scene.sink("t");
        let staging = scene.sink("t").staging();
        let mut staged = staging.open_writer(scene.context(name(0))).await.unwrap();
        let kept_rows = scene.prepare(&mut staged, &name(0), &[(1, 1)]).await;
        let mut hand = scene.connect().await;
        let of_job = async |hand: &mut Connection| {
            let mut seen = left_overs(hand).await.unwrap();
            seen.retain(|left| left.xid.is_of_job(job) && is_of(left, &scene));
            seen
        };
        let seen = of_job(&mut hand).await;
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert!(seen[0].owner.as_ref().unwrap().job.starts_with('~') && !seen[0].xid.is_of_job("a-job"));
        let refused =
            settle_by_hand(&mut hand, &seen[0], HandDecision::RollBack, false, 5).await.unwrap_err();
        assert!(refused.to_string().contains("cancel that job"), "{refused}");
        let mut committer = staging.open_committer(scene.context(name(0))).await.unwrap();
        assert_eq!(committer.list().await.unwrap(), [name(0)]);
        assert_eq!(committer.commit(&kept_rows).await.unwrap(), CommitOutcome::Committed);
        drop((staged, committer));

        let mut writer = xa.open_writer(scene.context(name(1))).await.unwrap();
        let prepared = scene.prepare(&mut writer, &name(1), &[(2, 2)]).await;
        writer.write(&name(2), Batch::of(vec![(3, 3); 1_000])).await.unwrap();
        let seen = of_job(&mut hand).await;
        assert_eq!(seen.len(), 1, "{seen:?}");
        let refused =
            settle_by_hand(&mut hand, &seen[0], HandDecision::RollBack, false, 5).await.unwrap_err();
        assert!(refused.to_string().contains("is at work"), "{refused}");
        let mut committer = xa.open_committer(scene.context(name(1))).await.unwrap();
        assert_eq!(committer.list().await.unwrap(), [name(1)]);
        assert_eq!(settle(&scene, &mut committer, &prepared).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await, [(1, 1), (2, 2)]);
    });
}
