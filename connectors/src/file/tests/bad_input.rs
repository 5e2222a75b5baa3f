//! Files that changed, lines that are no records, folders that are not there.

use super::*;
use crate::testing::read_to_error;

#[test]
fn a_truncated_file_stops_with_the_reason() {
    let folder = folder_of(&[("a.jsonl", &lines(0..100))]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()));
        let mut reader = started(&bench, &source).await;
        read_some(&mut reader, 50, 50).await.unwrap();
        let state = reader.snapshot();
        std::fs::write(folder.path().join("a.jsonl"), lines(0..20)).unwrap();
        let (records, error) = read_to_error(&mut reader_of(&bench, &source, state)).await;
        assert!(records.is_empty());
        assert!(error.contains("a.jsonl was truncated: it has 50 bytes, but had at least 290"), "{error}");
    });
}

#[test]
fn a_replaced_file_stops_with_the_reason() {
    let folder = folder_of(&[("a.jsonl", &lines(100..200))]);
    testing::run(async {
        for source in [numbers_in(folder.path()), numbers_in(folder.path()).unbounded()] {
            let bench = Bench::new();
            std::fs::write(folder.path().join("a.jsonl"), lines(100..200)).unwrap();
            let mut reader = started(&bench, &source).await;
            read_some(&mut reader, 50, 50).await.unwrap();
            let state = reader.snapshot();
            std::fs::write(folder.path().join("a.jsonl"), lines(300..400)).unwrap();
            let (_, error) = read_to_error(&mut reader_of(&bench, &source, state)).await;
            assert!(
                error.contains("a.jsonl was replaced: the 200 bytes before line 51 (byte 200)"),
                "{error}"
            );
        }
    });
}

#[test]
fn a_file_replaced_while_it_is_followed_is_noticed() {
    let folder = folder_of(&[("a.jsonl", &lines(100..110))]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()).unbounded());
        let mut reader = started(&bench, &source).await;
        read_some(&mut reader, 10, 10).await.unwrap();
        std::fs::write(folder.path().join("b.tmp"), lines(200..230)).unwrap();
        std::fs::rename(folder.path().join("b.tmp"), folder.path().join("a.jsonl")).unwrap();
        let (records, error) = read_to_error(&mut reader).await;
        assert!(records.is_empty() && error.contains("was replaced"), "{records:?} {error}");
    });
}

#[test]
fn a_vanished_file_stops_with_the_reason() {
    let folder = folder_of(&[("a.jsonl", &lines(0..10))]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()));
        let mut reader = started(&bench, &source).await;
        read_some(&mut reader, 3, 3).await.unwrap();
        let state = reader.snapshot();
        std::fs::remove_file(folder.path().join("a.jsonl")).unwrap();
        let (_, error) = read_to_error(&mut reader_of(&bench, &source, state)).await;
        assert!(error.contains("a.jsonl is gone, but it was read up to line 3 (byte 6)"), "{error}");
    });
}

#[test]
fn a_broken_line_fails_with_its_place_also_after_a_restore() {
    let text = format!("{}\"x\"\n{}", lines(0..2_500), lines(0..3));
    let folder = folder_of(&[("a.jsonl", &text)]);
    testing::run(async {
        let (bench, source) = (Bench::new(), numbers_in(folder.path()));
        let mut reader = started(&bench, &source).await;
        let before = read_some(&mut reader, 1_700, 333).await.unwrap();
        let state = reader.snapshot();
        for reader in [&mut reader, &mut reader_of(&bench, &source, state)] {
            let (records, error) = read_to_error(reader).await;
            assert_eq!(before.len() + records.len(), 2_500, "everything before it is handed out");
            assert!(error.contains("a.jsonl:2501:3: not a record: invalid type: string \"x\""), "{error}");
            assert!(!error.contains("at line 1"), "{error}");
        }
    });
}

#[test]
fn broken_lines_are_skipped_and_counted_if_that_is_the_policy() {
    let folder = folder_of(&[("a.jsonl", "x\n1\n\n{}\n2\nx\n")]);
    testing::run(async {
        let bench = Bench::new();
        let source = numbers_in(folder.path()).on_broken_line(BrokenLine::Skip);
        let mut reader = started(&bench, &source).await;
        assert_eq!(read_to_end(&mut reader, 1).await, [1, 2]);
        assert_eq!(source.counters().broken_lines(), 4);
        let end = reader.snapshot();
        assert_eq!((end[0].offset, end[0].line), (12, 6), "skipped lines at the end are behind the position");
    });
}

#[test]
fn a_missing_or_empty_folder_is_refused() {
    let folder = folder_of(&[(".hidden", "1\n")]);
    let refusal = |path: &Path| numbers_in(path).validate().unwrap_err().message;
    assert!(refusal(folder.path()).contains("holds no file"));
    assert!(refusal(&folder.path().join("nowhere")).contains("does not exist"));
    assert!(refusal(&folder.path().join(".hidden")).contains("is not a folder"));
    assert!(numbers_in(folder.path()).rate_per_second(0).validate().is_err());
}

#[test]
fn a_failure_of_one_file_loses_nothing_of_another() {
    let folder = folder_of(&[("a.jsonl", &lines(0..5)), ("b.jsonl", "x\n")]);
    testing::run(async {
        let (records, error) =
            read_to_error(&mut started(&Bench::new(), &numbers_in(folder.path())).await).await;
        assert!(error.contains("b.jsonl:1:1"), "{error}");
        assert!(records.is_empty() || records == [0, 1, 2, 3, 4]);
    });
}
