//! Locked, full and read-only files, and the one connection of a process.

use super::*;

#[test]
fn another_process_that_holds_the_file_means_retry_for_a_commit_and_a_restart_for_a_writer() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.log(), 0, &[(1, 10)]).await;
        let mut committer = scene.committer(&scene.log()).await;
        let mut writer = scene.writer(&scene.log()).await;
        let mut other = Connection::open(scene.file()).unwrap();
        let lock = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        let CommitOutcome::RetryAfter { reason, .. } = committer.commit(&item).await.unwrap() else {
            panic!()
        };
        assert!(reason.contains("another process has the file locked"), "{reason}");
        writer.write(&name(5, 1), Batch::of(vec![(1, 1)])).await.unwrap();
        assert!(writer.prepare().await.unwrap_err().restartable);
        drop(lock);
        assert_eq!(committer.commit(&item).await.unwrap(), CommitOutcome::Committed);
    });
}

#[test]
fn a_full_disk_is_clear_and_may_be_mended() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        let database = database::Database::open(&scene.file(), Duration::ZERO).unwrap();
        let pages: i64 = database
            .with_connection(|c| c.query_row("PRAGMA max_page_count = 9", [], |row| row.get(0)))
            .unwrap();
        assert!(pages <= 20, "{pages}");
        let error = writer.write(&name(0, 1), Batch::of(vec![(1, 1); 50_000])).await.unwrap_err();
        assert!(error.restartable);
        assert!(error.message.contains("the disk is full"), "{}", error.message);
        assert_eq!(staging_tables(&scene.file()), 0, "nothing is left behind");
    });
}

#[test]
fn a_file_that_cannot_be_written_is_clear_and_may_be_mended() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        let database = database::Database::open(&scene.file(), Duration::ZERO).unwrap();
        database.with_connection(|c| c.pragma_update(None, "query_only", true)).unwrap();
        let error = writer.write(&name(0, 1), Batch::of(vec![(1, 1); 1_024])).await.unwrap_err();
        assert!(error.restartable);
        assert!(error.message.contains("cannot be written; change its permissions"), "{}", error.message);
    });
}

#[test]
fn sinks_of_one_process_share_one_connection_by_any_spelling_of_the_path() {
    let scene = Scene::new();
    let one = database::Database::open(&scene.file(), Duration::ZERO).unwrap();
    let other = scene.folder.path().join(".").join("out.db");
    let two = database::Database::open(&other, Duration::ZERO).unwrap();
    assert!(std::sync::Arc::ptr_eq(&one, &two));
    let settings = one
        .read("looking", |c| {
            Ok((
                c.query_row("PRAGMA journal_mode", [], |r| r.get::<_, String>(0))?,
                c.query_row("PRAGMA synchronous", [], |r| r.get::<_, i64>(0))?,
            ))
        })
        .unwrap();
    assert_eq!(settings, ("wal".to_owned(), 2), "WAL and synchronous=FULL");
}
