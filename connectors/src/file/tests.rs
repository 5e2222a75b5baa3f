//! The promises of the file source, each as a test.

mod bad_input;

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_engine::api::{ReadStatus, Source, SourceOutput, SplitEnumerator, SplitReader};

use super::*;
use crate::testing::{self, Bench, read_some, read_to_end};

fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn lines(numbers: impl IntoIterator<Item = u64>) -> String {
    numbers.into_iter().map(|number| format!("{number}\n")).collect()
}

fn numbers_in(folder: &Path) -> FileSource<u64> {
    FileSource::json_lines(folder)
}

async fn discovered(bench: &Bench, source: &FileSource<u64>) -> Vec<FileSplit> {
    let mut enumerator = source.enumerator(1);
    let found = enumerator.discover(&bench.io).unwrap().await.unwrap();
    enumerator.on_found(found).unwrap().into_iter().flat_map(|a| a.splits).collect()
}

fn reader_of(bench: &Bench, source: &FileSource<u64>, splits: Vec<FileSplit>) -> FileReader<u64> {
    let mut reader = source.reader(bench.context(), 0);
    reader.add_splits(splits).unwrap();
    reader
}

async fn started(bench: &Bench, source: &FileSource<u64>) -> FileReader<u64> {
    let splits = discovered(bench, source).await;
    reader_of(bench, source, splits)
}

#[test]
fn ten_rows_are_read_and_then_it_ends() {
    let folder = folder_of(&[("a.jsonl", &lines(0..10))]);
    testing::run(async {
        let source = numbers_in(folder.path());
        source.validate().unwrap();
        assert_eq!(source.total_records(), Some(10));
        let mut reader = started(&Bench::new(), &source).await;
        assert_eq!(read_to_end(&mut reader, 1_024).await, (0..10).collect::<Vec<u64>>());
        let end = reader.snapshot();
        assert_eq!((end[0].offset, end[0].line), (20, 10));
    });
}

#[test]
fn bounded_reading_ends_with_one_record_a_poll_and_at_the_size_found_at_the_start() {
    let folder = folder_of(&[("a.jsonl", &lines(0..3)), ("b.jsonl", ""), ("c.jsonl", &lines(3..5))]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()));
        let splits = discovered(&bench, &source).await;
        std::fs::write(folder.path().join("a.jsonl"), lines(0..30)).unwrap();
        let mut reader = reader_of(&bench, &source, splits);
        let mut records = read_to_end(&mut reader, 1).await;
        records.sort_unstable();
        assert_eq!(records, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_last_line_without_newline_is_not_a_record() {
    let folder = folder_of(&[("a.jsonl", "1\n2\n34")]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()));
        let mut reader = started(&bench, &source).await;
        assert_eq!(read_to_end(&mut reader, 10).await, [1, 2]);
        assert_eq!(source.counters().half_lines(), 1);
        assert_eq!(reader.snapshot()[0].offset, 4);
    });
}

#[test]
fn followed_files_give_new_lines_when_they_are_whole() {
    let folder = folder_of(&[("a.jsonl", "1\n2")]);
    let file = folder.path().join("a.jsonl");
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()).unbounded());
        let mut reader = started(&bench, &source).await;
        assert_eq!(read_some(&mut reader, 1, 10).await.unwrap(), [1]);
        for _ in 0..50 {
            let mut output = SourceOutput::with_room(10);
            assert_eq!(
                reader.poll(&mut output).unwrap(),
                ReadStatus::Pending(None),
                "half a line is no record"
            );
            tokio::task::yield_now().await;
        }
        std::fs::write(&file, "1\n23\n4\n").unwrap();
        assert_eq!(read_some(&mut reader, 2, 10).await.unwrap(), [23, 4]);
        assert_eq!(source.total_records(), None);
    });
}

#[test]
fn a_new_file_is_found_when_unbounded() {
    let folder = folder_of(&[]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()).unbounded());
        source.validate().unwrap();
        let mut enumerator = source.enumerator(2);
        for (name, subtask) in [("a", 0), ("b", 1), ("c", 0)] {
            std::fs::write(folder.path().join(name), "1\n").unwrap();
            let found = enumerator.discover(&bench.io).unwrap().await.unwrap();
            let assignments = enumerator.on_found(found).unwrap();
            assert_eq!(assignments.len(), 1);
            assert_eq!((assignments[0].subtask, assignments[0].splits[0].path.as_str()), (subtask, name));
        }
        assert_eq!(enumerator.interval(), Some(Duration::from_millis(200)));
    });
}

#[test]
fn lines_longer_than_a_block_are_read() {
    let long = format!("\"{}\"", "y".repeat(700_000));
    let folder = folder_of(&[("a.jsonl", &format!("\"a\"\n{long}\n\"b\"\n"))]);
    testing::run(async {
        let (bench, source) = (Bench::new(), FileSource::json_lines::<String>(folder.path()));
        let mut enumerator = source.enumerator(1);
        let found = enumerator.discover(&bench.io).unwrap().await.unwrap();
        let mut reader = source.reader(bench.context(), 0);
        reader.add_splits(enumerator.on_found(found).unwrap().remove(0).splits).unwrap();
        let lengths: Vec<usize> = read_to_end(&mut reader, 5).await.iter().map(String::len).collect();
        assert_eq!(lengths, [1, 700_000, 1]);
    });
}

#[test]
fn the_rate_holds_over_all_readers() {
    let folder = folder_of(&[("a.jsonl", &lines(0..3_000)), ("b.jsonl", &lines(0..3_000))]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()).rate_per_second(1_000));
        bench.clock.advance(Duration::from_secs(3));
        let splits = discovered(&bench, &source).await;
        let mut readers: Vec<_> =
            splits.into_iter().map(|split| reader_of(&bench, &source.clone(), vec![split])).collect();
        let mut records = 0;
        for _ in 0..1_000 {
            for reader in &mut readers {
                let mut output = SourceOutput::with_room(1_024);
                reader.poll(&mut output).unwrap();
                records += output.take().len();
            }
            tokio::task::yield_now().await;
            bench.clock.advance(Duration::from_millis(1));
        }
        assert!((980..=1_010).contains(&records), "{records}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_cuts_and_restores_give_every_line_once(
        sizes in prop::collection::vec(0_usize..2_600, 1..4),
        cuts in prop::collection::vec((1_usize..1_500, 1_usize..1_100), 0..6),
        half in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        for (file, size) in sizes.iter().enumerate() {
            let numbers: Vec<u64> = (0..*size).map(|line| (file * 1_000_000 + line) as u64).collect();
            let mut text = lines(numbers.iter().copied());
            if half {
                text.push_str("77");
            }
            std::fs::write(folder.path().join(format!("{file}.jsonl")), text).unwrap();
            expected.extend(numbers);
        }
        let records = testing::run(async {
            let (bench, source) = (Bench::new(), numbers_in(folder.path()));
            let mut reader = started(&bench, &source).await;
            let mut records = Vec::new();
            for (count, room) in cuts {
                let count = count.min(expected.len() - records.len());
                records.extend(read_some(&mut reader, count, room).await.unwrap());
                // What was fetched ahead goes down with this reader.
                let state = reader.snapshot();
                reader = reader_of(&bench, &source, state);
            }
            records.extend(read_to_end(&mut reader, 1_024).await);
            records
        });
        let mut sorted = records;
        sorted.sort_unstable();
        prop_assert_eq!(sorted, expected);
    }
}
