//! What a new attempt finds and does.

use std::time::Duration;

use tidegate::connectors::mysql::{Connection, MysqlSink, SessionLimits, Xid};
use tidegate::engine::api::{ClaimWatch, Committer, TwoPhaseSink, TwoPhaseWriter};
use tidegate::engine::checkpoint::commit_log::{ClaimBase, ClaimOutcome, LogClient, LogError, NonceSource};
use tidegate::engine::element::Batch;
use tidegate::engine::ids::{AttemptId, CheckpointId, EntryNumber, JobName, Lineage};
use tidegate::engine::operator::CommitOutcome;
use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::{Service, ServiceKind};

use super::scene::{CHECKPOINT_TIMEOUT, Pair, on_both, on_server, settle};

#[test]
fn a_branch_committed_or_rolled_back_by_hand_is_told_apart() {
    on_both(async |scene| {
        scene.table().await;
        let (kept, dropped) = (scene.prepared(0, &[(1, 1)]).await, scene.prepared(1, &[(2, 2)]).await);
        scene.alone().await;
        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        for (verb, item) in [("COMMIT", &kept), ("ROLLBACK", &dropped)] {
            let mut hand = scene.connect().await;
            let sql = format!("XA {verb} {}", Xid::of(&item.name).sql());
            for _ in 0..100 {
                if hand.run("by hand", &sql).await.is_ok() {
                    break;
                }
                scene.io.sleep(Duration::from_millis(20)).await;
            }
        }
        assert_eq!(settle(&scene, &mut committer, &kept).await, CommitOutcome::AlreadyCommitted);
        let lost = settle(&scene, &mut committer, &dropped).await;
        assert!(matches!(lost, CommitOutcome::Lost { .. }), "{lost:?}");
        assert_eq!(scene.rows("t").await, [(1, 1)]);
    });
}

#[test]
fn listing_finds_left_overs_of_any_attempt_and_only_of_this_sink() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut names = vec![scene.name(3, 1), scene.name(3, 2), scene.name(9, 1)];
        names[2].scope.lineage = Lineage(2);
        names[2].subtask = 5;
        let mut foreign = vec![scene.name(3, 1); 2];
        foreign[0].scope.uid = "sink2".into();
        foreign[1].scope.job = "orders2".into();
        let mut writer = scene.writer(&sink, 2).await;
        for name in names.iter().chain(&foreign) {
            scene.prepare(&mut writer, name, &[(1, 1)]).await;
        }
        drop(writer);
        let mut committer = scene.committer(&sink, 3).await;
        assert_eq!(committer.list().await.unwrap(), names);
        committer.roll_back(&names[0]).await.unwrap();
        assert_eq!(committer.list().await.unwrap(), names[1..]);
        for name in names[1..].iter().chain(&foreign) {
            committer.roll_back(name).await.unwrap();
        }
        assert_eq!(scene.rows("t").await, []);
    });
}

#[test]
fn a_new_attempt_ends_the_writer_of_an_older_one_before_it_sweeps() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut zombie = scene.writer(&sink, 1).await;
        zombie.write(&scene.name(0, 1), Batch::of(vec![(1, 1); 1_200])).await.unwrap();
        let mut committer = scene.committer(&sink, 2).await;
        assert_eq!(committer.list().await.unwrap(), []);
        // The zombie can neither write nor prepare: its session is gone, and its branch with it.
        let error = zombie.prepare().await.unwrap_err();
        assert!(error.restartable, "{}", error.full_text());
        let mut writer = sink.open_writer(scene.context(scene.name(0, 2))).await.unwrap();
        let item = scene.prepare(&mut writer, &scene.name(0, 2), &[(2, 2)]).await;
        settle(&scene, &mut committer, &item).await;
        assert_eq!(scene.rows("t").await, [(2, 2)]);
    });
}

/// KILL returns before a statement in execution is over, and what that prepares would be in no list.
#[test]
fn a_new_attempt_waits_until_the_sessions_that_it_ended_are_gone() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut zombie = scene.writer(&sink, 1).await;
        // Rolling so many rows back takes the server a while, and the last statement is still being executed.
        let rows: Vec<Pair> = (0..150_000).map(|n| (n, 1)).collect();
        zombie.write(&scene.name(0, 1), Batch::of(rows)).await.unwrap();
        let sessions =
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()";
        let older: Vec<(u64,)> = scene.ask(sessions).await;
        let committer = scene.committer(&sink, 2).await;
        let living: Vec<(u64,)> = scene.ask(sessions).await;
        assert!(!older.is_empty() && !older.iter().any(|id| living.contains(id)), "{older:?} {living:?}");
        assert_eq!(scene.rows("t").await, []);
        drop((committer, zombie));
    });
}

/// A server that was started again gives the numbers of its sessions anew.
#[test]
fn a_session_that_only_has_the_number_of_the_one_that_prepared_is_neither_waited_for_nor_ended() {
    on_both(async |scene| {
        scene.table().await;
        let mut innocent = scene.connect().await;
        let mut committer = scene.committer(&scene.sink("t"), 1).await;
        let mut elsewhere = Connection::open(
            &scene.url.clone().with_database("information_schema"),
            SessionLimits::below(CHECKPOINT_TIMEOUT),
            &scene.io,
        )
        .await
        .unwrap();
        for (after, session) in [innocent.id(), elsewhere.id()].into_iter().enumerate() {
            let mut item = scene.prepared(after as u64, &[(7, 7)]).await;
            item.committable.connection_id = session;
            assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
            for other in [&mut innocent, &mut elsewhere] {
                other.run("saying something", "DO 0").await.unwrap();
            }
        }
        assert_eq!(scene.rows("t").await, [(7, 7), (7, 7)]);
    });
}

/// A process that stood still (SIGSTOP) while another one took its job over, and whose session the other has ended: a branch that it
/// prepared now would lock rows, and nobody would roll it back before the next start.
#[test]
fn a_writer_whose_job_was_taken_over_opens_no_branch_and_leaves_the_lock_to_its_successor() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let (storage, io) = (CheckpointStorage::open("memory://").unwrap(), scene.io.clone());
        let mut nonces = NonceSource::new(1);
        let log = LogClient::open(storage, io, JobName::from("taken"), &mut nonces).await.unwrap();
        for _ in 0..2 {
            let claimed = log.claim_checked::<LogError>(ClaimBase::Latest, &mut nonces, |_| Ok(())).await;
            assert!(matches!(claimed.unwrap(), ClaimOutcome::Claimed(_)));
        }
        for staging in [false, true] {
            let mut context = scene.context(scene.name(0, 1));
            context.connector.claim = ClaimWatch::of(log.clone(), AttemptId(1));
            let name = scene.name(0, 1);
            let error = if staging {
                let mut writer = sink.clone().staging().open_writer(context).await.unwrap();
                writer.write(&name, Batch::of(vec![(1, 1)])).await.unwrap();
                writer.prepare().await.unwrap_err()
            } else {
                let mut writer = sink.open_writer(context).await.unwrap();
                writer.write(&name, Batch::of(vec![(1, 1)])).await.unwrap();
                writer.prepare().await.unwrap_err()
            };
            assert_eq!(error.fenced_by, Some(EntryNumber(2)), "{}", error.full_text());
        }
        assert_eq!(scene.branches().await.len(), 0);
        let mut writer = scene.writer(&sink, 2).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 2), &[(2, 2)]).await;
        let mut committer = scene.committer(&sink, 2).await;
        settle(&scene, &mut committer, &item).await;
        assert_eq!(scene.rows("t").await, [(2, 2)]);
    });
}

/// A start that finds no checkpoint begins a new lineage; what an operator has committed by hand before it is in the output all the same.
#[test]
fn what_was_committed_in_an_earlier_lineage_is_known_to_a_start_without_a_checkpoint() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let item = scene.prepared(0, &[(1, 1)]).await;
        settle(&scene, &mut scene.committer(&sink, 1).await, &item).await;
        let mut own = scene.name(0, 2);
        own.scope.lineage = Lineage(2);
        let mut committer = sink.open_committer(scene.context(own.clone())).await.unwrap();
        assert_eq!(committer.newest_committed(AttemptId(0)).await.unwrap(), Some(CheckpointId(1)));
        let mut staging = sink.clone().staging().open_committer(scene.context(own)).await.unwrap();
        assert_eq!(staging.newest_committed(AttemptId(0)).await.unwrap(), Some(CheckpointId(1)));
        // Somebody has decided to begin anew with attempt 2.
        assert_eq!(committer.newest_committed(AttemptId(2)).await.unwrap(), None);
    });
}

#[test]
fn a_killed_session_fails_the_writer_and_leaves_nothing() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut writer = scene.writer(&sink, 1).await;
        writer.write(&scene.name(0, 1), Batch::of(vec![(1, 1); 1_200])).await.unwrap();
        let open: Vec<(u64,)> = scene
            .ask("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()")
            .await;
        let mut other = scene.connect().await;
        for (session,) in open {
            other.kill(session).await.unwrap();
        }
        let error = writer.prepare().await.unwrap_err();
        assert!(error.restartable, "{}", error.full_text());
        let again = writer.prepare().await.unwrap_err().full_text();
        assert!(again.contains("given up after an earlier failure"), "{again}");
        assert_eq!(scene.rows("t").await, []);
    });
}

/// The server is killed while a branch is prepared and its commit is due.
fn survives_a_killed_server(kind: ServiceKind) {
    let mut service = Service::own(kind, "xa-kill", &[]).unwrap();
    let url = service.mysql_url().unwrap().to_owned();
    let service = std::sync::Mutex::new(&mut service);
    on_server(&url, |scene| {
        let service = &service;
        async move {
            scene.table().await;
            let item = scene.prepared(0, &[(1, 10)]).await;
            let mut committer = scene.committer(&scene.sink("t"), 1).await;
            tokio::task::block_in_place(|| service.lock().unwrap().kill().unwrap());
            let away = committer.commit(&item).await.unwrap();
            assert!(matches!(away, CommitOutcome::RetryAfter { .. }), "{away:?}");
            tokio::task::block_in_place(|| service.lock().unwrap().start().unwrap());
            assert_eq!(scene.branches().await.len(), 1);
            assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
            assert_eq!(scene.rows("t").await, [(1, 10)]);
        }
    });
}

#[test]
fn a_prepared_branch_survives_kill_9_of_mariadb_and_commits() {
    survives_a_killed_server(ServiceKind::MariaDb);
}

#[test]
fn a_prepared_branch_survives_kill_9_of_mysql_and_commits() {
    survives_a_killed_server(ServiceKind::MySql);
}

#[test]
fn preflight_leaves_nothing_behind_and_takes_a_good_server() {
    on_both(async |scene| {
        scene.table().await;
        let warnings = scene.sink("t").preflight(scene.preflight(2)).await.unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let sinks: MysqlSink<Pair> = scene.sink("t");
        assert!(!sinks.holds_locks());
        let mut connection = scene.connect().await;
        let left = tidegate::connectors::mysql::prepared_branches(&mut connection).await.unwrap();
        assert!(!left.iter().any(|xid| xid.to_string().starts_with("tidegate-trial/")), "{left:?}");
        let ledger: Vec<(u64,)> = scene.ask("SELECT COUNT(*) FROM tidegate_ledger").await;
        assert_eq!(ledger, [(0,)]);
    });
}
