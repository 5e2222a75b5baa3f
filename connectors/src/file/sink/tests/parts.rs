//! How parts are cut: by size, by age, by bucket, by barrier; and that there is never an empty one.

use std::time::Duration;

use super::*;

fn contents(parts: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<&str> {
    parts.values().map(|content| std::str::from_utf8(content).unwrap()).collect()
}

#[test]
fn an_epoch_without_records_makes_no_committable_and_no_file() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.sink()).await;
        assert_eq!(writer.prepare().await.unwrap(), None);
        writer.write(&name(0, 1), Batch::default()).await.unwrap();
        assert_eq!(writer.prepare().await.unwrap(), None);
        assert!(files_below(&scene.out()).is_empty());
        writer.write(&name(1, 1), Batch::of(vec![1])).await.unwrap();
        assert!(writer.prepare().await.unwrap().is_some());
        assert_eq!(writer.prepare().await.unwrap(), None);
    });
}

#[test]
fn a_part_is_closed_with_the_record_that_fills_it_and_none_is_empty() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.sink().roll_at_bytes(4);
        let item = scene.prepared(&sink, name(0, 1), &[1, 2, 3, 4, 500]).await;
        let sizes: Vec<_> = item.committable.parts.iter().map(|part| (part.bytes, part.records)).collect();
        assert_eq!(sizes, [(4, 2), (4, 2), (4, 1)], "nothing is opened behind the last record");
        assert_eq!(scene.commit(&item).await, CommitOutcome::Committed);
        assert_eq!(contents(&finished_files(&scene.out())), ["1\n2\n", "3\n4\n", "500\n"]);
    });
}

#[test]
fn a_part_is_closed_by_the_engines_clock_when_it_is_old() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.sink().roll_after(Duration::from_secs(5));
        let mut writer = scene.writer(&sink).await;
        for record in 0..4 {
            writer.write(&name(0, 1), Batch::of(vec![record])).await.unwrap();
            scene.bench.clock.advance(Duration::from_secs(3));
        }
        let parts = writer.prepare().await.unwrap().unwrap().parts;
        assert_eq!(parts.iter().map(|part| part.records).collect::<Vec<_>>(), [2, 2]);
    });
}

#[test]
fn each_bucket_is_a_folder_and_too_many_close_the_one_written_to_longest_ago() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.sink().bucket_by(|n| format!("mod={}", n % 3)).open_buckets_max(2);
        let item = scene.prepared(&sink, name(0, 1), &[0, 1, 3, 2, 5, 4]).await;
        assert_eq!(item.committable.parts.len(), 4, "bucket 1 was closed for 2, and 0 for 1 again");
        assert_eq!(scene.commit(&item).await, CommitOutcome::Committed);
        let files = finished_files(&scene.out());
        let folders: Vec<_> = files.keys().map(|path| path.parent().unwrap().to_str().unwrap()).collect();
        assert_eq!(folders, ["mod=0", "mod=1", "mod=1", "mod=2"]);
        assert_eq!(contents(&files), ["0\n3\n", "1\n", "4\n", "2\n5\n"]);
        assert!(staged_files(&scene.out()).is_empty());
    });
}

#[test]
fn discarding_leaves_nothing_open_or_closed() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.sink().roll_at_bytes(4).bucket_by(|n| format!("mod={}", n % 2));
        let mut writer = scene.writer(&sink).await;
        writer.write(&name(0, 1), Batch::of((0..9).collect())).await.unwrap();
        assert!(!staged_files(&scene.out()).is_empty());
        writer.discard().await.unwrap();
        assert!(files_below(&scene.out()).is_empty());
        assert_eq!(writer.prepare().await.unwrap(), None);
    });
}

#[test]
fn long_lines_are_written_before_the_barrier_and_stay_open() {
    testing::run(async {
        let scene = Scene::new();
        let sink = FileSink::text::<String>(scene.out());
        let mut writer = sink.open_writer(scene.context(name(0, 1), 1)).await.unwrap();
        writer.write(&name(0, 1), Batch::of(vec!["x".repeat(70_000)])).await.unwrap();
        assert_eq!(staged_files(&scene.out()), ["1~0~0~1~0.open"]);
        writer.write(&name(0, 1), Batch::of(vec!["y".to_owned()])).await.unwrap();
        let parts = writer.prepare().await.unwrap().unwrap().parts;
        assert_eq!((parts.len(), parts[0].bytes, parts[0].records), (1, 70_003, 2));
    });
}

#[test]
fn a_name_that_is_taken_in_the_staging_folder_is_never_written_over() {
    testing::run(async {
        let scene = Scene::new();
        let staging = scene.out().join(".tidegate/numbers/0123456789abcdef0123456789abcdef/sink");
        fs::create_dir_all(&staging).unwrap();
        fs::write(staging.join("1~0~0~1~0.open"), "old").unwrap();
        let mut writer = scene.writer(&scene.sink()).await;
        writer.write(&name(0, 1), Batch::of(vec![1])).await.unwrap();
        let error = writer.prepare().await.unwrap_err().full_text();
        assert!(error.contains("1~0~0~1~0.open failed") && error.contains("exists"), "{error}");
        let again = writer.prepare().await.unwrap_err().full_text();
        assert!(again.contains("failed before; their records are gone"), "{again}");
        assert_eq!(fs::read(staging.join("1~0~0~1~0.open")).unwrap(), b"old");
    });
}

#[test]
fn a_writer_whose_files_were_swept_prepares_nothing() {
    testing::run(async {
        let scene = Scene::new();
        let sink = FileSink::text::<String>(scene.out());
        let mut zombie = sink.open_writer(scene.context(name(0, 1), 1)).await.unwrap();
        zombie.write(&name(0, 1), Batch::of(vec!["x".repeat(70_000)])).await.unwrap();
        scene.committer().await.roll_back(&name(0, 1)).await.unwrap();
        zombie.write(&name(0, 1), Batch::of(vec!["y".repeat(70_000)])).await.unwrap();
        assert!(zombie.prepare().await.is_err());
        assert!(files_below(&scene.out()).is_empty());
    });
}
