//! Planted faults: `verify` must see each of them, and nothing where nothing is wrong.
//!
//! Owns: a small input, the tables that belong to it, and one way to spoil them per test.
//! Does not own: the counting rules (tested beside [`super::tally`]).
//! Runs on: the test thread, with a database in a temporary folder.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

/// Orders 1 and 3 have the same user and the same amount; order 4 is worth nothing.
const ORDERS: [(i64, i64, i64); 5] = [(1, 7, 250), (2, 8, 100), (3, 7, 250), (4, 9, 0), (5, 8, 31)];

struct Planted {
    folder: TempDir,
}

impl Planted {
    fn clean() -> Self {
        let planted = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(planted.input()).unwrap();
        let line = |(order, user, cents): (i64, i64, i64)| {
            format!(
                "{{\"order_id\":{order},\"user_id\":{user},\"amount_cents\":{cents},\"status\":\"paid\",\"event_time_ms\":{order}}}\n"
            )
        };
        let (first, second) = ORDERS.split_at(2);
        fs::write(planted.input().join("part-0.jsonl"), first.iter().copied().map(line).collect::<String>())
            .unwrap();
        fs::write(planted.input().join("part-1.jsonl"), second.iter().copied().map(line).collect::<String>())
            .unwrap();
        planted.sql(
            "PRAGMA synchronous = OFF;
             BEGIN;
             CREATE TABLE t_order_event (order_id INTEGER PRIMARY KEY, user_id INTEGER, amount_cents INTEGER, status TEXT, event_time_ms INTEGER);
             CREATE TABLE t_order_log (order_id INTEGER, user_id INTEGER, amount_cents INTEGER);
             CREATE TABLE t_order_stat (user_id INTEGER PRIMARY KEY, order_count INTEGER, total_amount_cents INTEGER);
             CREATE TABLE t_user_total (user_id INTEGER PRIMARY KEY, order_count INTEGER, total_amount_cents INTEGER);
             INSERT INTO t_order_log VALUES (1, 7, 250), (2, 8, 100), (3, 7, 250), (4, 9, 0), (5, 8, 31);
             INSERT INTO t_order_event SELECT order_id, user_id, amount_cents, 'paid', order_id FROM t_order_log;
             INSERT INTO t_order_stat SELECT user_id, count(*), sum(amount_cents) FROM t_order_log GROUP BY user_id;
             INSERT INTO t_user_total SELECT * FROM t_order_stat;
             COMMIT;",
        );
        planted
    }

    fn spoiled_by(sql: &str) -> Verdict {
        let planted = Self::clean();
        planted.sql(sql);
        planted.audit().unwrap()
    }

    fn input(&self) -> PathBuf {
        self.folder.path().join("in")
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("out.sqlite")
    }

    fn sql(&self, sql: &str) {
        Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }

    fn audit(&self) -> Result<Verdict, VerifyError> {
        audit_with_patience(&SourceAddress::Files(self.input()), &sqlite(self), Duration::ZERO)
    }
}

fn sqlite(planted: &Planted) -> SinkAddress {
    SinkAddress::Sqlite(planted.database())
}

#[test]
fn tables_as_they_must_be_are_ok() {
    let verdict = Planted::clean().audit().unwrap();
    assert!(verdict.ok(), "{}", verdict.to_text());
    assert_eq!(
        (verdict.table("t_order_log").unwrap().expected, verdict.table("t_user_total").unwrap().expected),
        (5, 3)
    );
    assert_eq!(verdict.to_json()["ok"], true);
}

#[test]
fn one_order_lost_and_one_doubled_of_the_same_user_and_amount_is_seen() {
    let verdict = Planted::spoiled_by("UPDATE t_order_log SET order_id = 1 WHERE order_id = 3");
    assert!(!verdict.ok());
    assert!(
        verdict.table("t_order_stat").unwrap().ok() && verdict.table("t_user_total").unwrap().ok(),
        "the totals cannot see it"
    );
    let json = verdict.to_json();
    assert_eq!((json["expected"].as_u64(), json["actual"].as_u64()), (Some(5), Some(5)));
    assert_eq!((json["duplicates"].as_u64(), json["lost"].as_u64()), (Some(1), Some(1)));
    assert_eq!((json["duplicate_rate"].as_f64(), json["loss_rate"].as_f64()), (Some(0.2), Some(0.2)));
    assert_eq!(json["deviation_cents"], 500);
    assert_eq!(json["ok"], false);
    assert_eq!(json["tables"]["t_order_log"]["duplicates"], 1);
    let text = verdict.to_text();
    assert!(text.contains("duplicate 1") && text.contains("lost 3"), "{text}");
}

#[test]
fn a_lost_order_worth_nothing_is_seen() {
    let verdict = Planted::spoiled_by("DELETE FROM t_order_event WHERE order_id = 4");
    assert_eq!(
        (
            verdict.table("t_order_event").unwrap().lost,
            verdict.table("t_order_event").unwrap().deviation_cents
        ),
        (1, 0)
    );
    assert!(!verdict.ok());
}

#[test]
fn a_wrong_amount_is_seen_in_each_table() {
    let cases = [
        "UPDATE t_order_event SET amount_cents = 251 WHERE order_id = 3",
        "UPDATE t_order_log SET amount_cents = 251 WHERE order_id = 3",
        "UPDATE t_order_stat SET total_amount_cents = 501 WHERE user_id = 7",
        "UPDATE t_user_total SET total_amount_cents = 499 WHERE user_id = 7",
    ];
    for sql in cases {
        let verdict = Planted::spoiled_by(sql);
        assert_eq!(verdict.to_json()["deviation_cents"], 1, "{sql}");
        assert_eq!(verdict.to_json()["wrong"], 1, "{sql}");
        assert!(!verdict.ok(), "{sql}");
    }
}

#[test]
fn a_wrong_column_beside_a_right_amount_is_seen() {
    let cases = [
        "UPDATE t_order_event SET status = 'open' WHERE order_id = 3",
        "UPDATE t_order_event SET event_time_ms = 0 WHERE order_id = 3",
        "UPDATE t_order_event SET user_id = 8 WHERE order_id = 3",
        "UPDATE t_order_log SET user_id = 8 WHERE order_id = 3",
        "UPDATE t_order_stat SET order_count = 3 WHERE user_id = 7",
        "UPDATE t_user_total SET order_count = 1 WHERE user_id = 7",
    ];
    for sql in cases {
        let verdict = Planted::spoiled_by(sql);
        assert_eq!(verdict.to_json()["wrong"], 1, "{sql}");
        assert!(!verdict.ok(), "{sql}");
    }
}

#[test]
fn a_row_that_nobody_ordered_is_seen_in_each_table() {
    let cases = [
        "INSERT INTO t_order_event VALUES (99, 7, 0, 'paid', 0)",
        "INSERT INTO t_order_log VALUES (99, 7, 0)",
        "INSERT INTO t_order_stat VALUES (99, 0, 0)",
        "INSERT INTO t_user_total VALUES (-1, 0, 0)",
    ];
    for sql in cases {
        let verdict = Planted::spoiled_by(sql);
        assert_eq!(verdict.to_json()["unexpected"], 1, "{sql}");
        assert!(!verdict.ok(), "{sql}");
    }
}

#[test]
fn totals_moved_from_one_user_to_another_do_not_cancel() {
    let verdict = Planted::spoiled_by(
        "UPDATE t_order_stat SET total_amount_cents = total_amount_cents + 5 WHERE user_id = 7;
         UPDATE t_order_stat SET total_amount_cents = total_amount_cents - 5 WHERE user_id = 8",
    );
    assert_eq!(verdict.table("t_order_stat").unwrap().deviation_cents, 10);
}

#[test]
fn a_missing_table_is_named() {
    let planted = Planted::clean();
    planted.sql("DROP TABLE t_order_log");
    let error = planted.audit().unwrap_err();
    assert!(matches!(error, VerifyError::NoTable { table: "t_order_log", .. }), "{error:?}");
}

#[test]
fn a_missing_column_and_an_empty_cell_are_named() {
    for sql in
        ["ALTER TABLE t_user_total DROP COLUMN order_count", "UPDATE t_user_total SET order_count = NULL"]
    {
        let planted = Planted::clean();
        planted.sql(sql);
        let error = planted.audit().unwrap_err();
        assert!(matches!(error, VerifyError::Table { table: "t_user_total", .. }), "{error:?}");
    }
}

#[test]
fn a_missing_database_is_not_created() {
    let planted = Planted::clean();
    fs::remove_file(planted.database()).unwrap();
    assert!(matches!(planted.audit(), Err(VerifyError::NoDatabase { .. })));
    assert!(!planted.database().exists());
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let planted = Planted::clean();
    fs::write(
        planted.database(),
        "this is a text file, and a long one, so that it has a header to look at\n".repeat(20),
    )
    .unwrap();
    assert!(matches!(planted.audit(), Err(VerifyError::Open { .. })));
}

#[test]
fn a_locked_database_is_said_to_be_locked() {
    let planted = Planted::clean();
    let other = Connection::open(planted.database()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = planted.audit().unwrap_err();
    assert!(matches!(error, VerifyError::Locked { .. }), "{error:?}");
}

#[test]
fn broken_input_is_named_with_file_and_line() {
    let planted = Planted::clean();
    let file = planted.input().join("part-2.jsonl");
    let good = r#"{"order_id":6,"user_id":1,"amount_cents":1,"status":"paid","event_time_ms":1}"#;
    fs::write(&file, format!("{good}\n{{\"order_id\":7}}\n")).unwrap();
    let error = planted.audit().unwrap_err();
    assert!(matches!(error, VerifyError::Line { line: 2, .. }), "{error:?}");
    fs::write(&file, format!("{good}\n{good}\n")).unwrap();
    let error = planted.audit().unwrap_err();
    assert!(matches!(error, VerifyError::OrderTwice { line: 2, order_id: 6, .. }), "{error:?}");
}

#[test]
fn a_last_line_without_its_end_is_not_yet_an_order() {
    let planted = Planted::clean();
    fs::write(planted.input().join("part-2.jsonl"), "{\"order_id\":6").unwrap();
    assert!(planted.audit().unwrap().ok());
}

#[test]
fn a_folder_without_input_is_refused() {
    let planted = Planted::clean();
    let empty = planted.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let error = audit(&SourceAddress::Files(empty), &sqlite(&planted)).unwrap_err();
    assert!(matches!(error, VerifyError::NoInput { .. }), "{error:?}");
    let error =
        audit(&SourceAddress::Files(planted.folder.path().join("none")), &sqlite(&planted)).unwrap_err();
    assert!(matches!(error, VerifyError::Input { .. }), "{error:?}");
}

#[test]
fn folders_pipes_and_links_that_lead_nowhere_are_no_input() {
    let planted = Planted::clean();
    fs::create_dir(planted.input().join("part-7.jsonl")).unwrap();
    fs::write(planted.input().join("_part-8.jsonl"), "not an order\n").unwrap();
    std::os::unix::fs::symlink("nowhere", planted.input().join("part-9.jsonl")).unwrap();
    let made =
        std::process::Command::new("mkfifo").arg(planted.input().join("part-10.jsonl")).status().unwrap();
    assert!(made.success());
    assert!(planted.audit().unwrap().ok());
}
