//! The `orders` binary as a person or a script meets it: exit statuses, words on the right stream, files on disk.
//!
//! Owns: what holds for the process as a whole.
//! Does not own: the subcommands' details, which are tested beside them.
//! Runs on: the test thread; each test starts the binary a few times.

use std::path::Path;
use std::process::{Command, Output};

use rusqlite::Connection;

fn orders(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_orders"))
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the binary was built for this test")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const GENERATE: [&str; 10] =
    ["generate", "--orders", "100", "--users", "7", "--partitions", "3", "--out", "in", "--seed=1"];
const VERIFY: [&str; 6] = ["verify", "--source", "files:in", "--sink", "sqlite:out.sqlite", "--json"];

#[test]
fn wrong_usage_is_status_2_and_says_what_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["run", "--source", "files:in", "--checkpoints", "file:///c"], "--sink"),
        (&["run", "--source", "files:in", "--sink", "blackhole"], "--checkpoints"),
        (
            &[
                "run",
                "--source",
                "files:in",
                "--sink",
                "blackhole",
                "--mode",
                "none",
                "--restore",
                "none",
                "--rewind",
            ],
            "URL#id",
        ),
        (
            &["run", "--source", "files:in", "--sink", "blackhole", "--mode", "none", "--orders", "5"],
            "datagen",
        ),
        (&["run", "--source", "kafka:x", "--sink", "blackhole"], "Kafka"),
        (&["run", "--source", "folder", "--sink", "blackhole"], "datagen, files:DIR"),
        (&["generate", "--orders", "1", "--users", "0", "--out", "x"], "--users"),
        (&["verify", "--source", "datagen", "--sink", "sqlite:x"], "files:DIR"),
        (&["demo", "--checkpoint-interval", "200"], "200ms"),
        (&["torture", "--kills", "6"], "7 are needed"),
        (&["torture", "--mode", "none", "--kills", "2"], "with less than 3"),
    ];
    for (args, hint) in cases {
        let output = orders(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_failure_is_status_1_with_place_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    assert!(orders(folder.path(), &GENERATE).status.success());
    let again = orders(folder.path(), &GENERATE);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("part-0.jsonl") && stderr(&again).contains("--force"));
    let no_database = orders(folder.path(), &VERIFY);
    assert_eq!(no_database.status.code(), Some(1));
    assert!(stderr(&no_database).contains("out.sqlite") && no_database.stdout.is_empty());
}

#[test]
fn verify_is_status_0_only_when_all_tables_agree() {
    let folder = tempfile::tempdir().unwrap();
    assert!(orders(folder.path(), &GENERATE).status.success());
    let connection = Connection::open(folder.path().join("out.sqlite")).unwrap();
    connection
        .execute_batch(
            "PRAGMA synchronous = OFF;
             CREATE TABLE t_order_event (order_id, user_id, amount_cents, status, event_time_ms);
             CREATE TABLE t_order_log (order_id, user_id, amount_cents);
             CREATE TABLE t_order_stat (user_id, order_count, total_amount_cents);
             CREATE TABLE t_user_total (user_id, order_count, total_amount_cents);",
        )
        .unwrap();
    for part in 0..3 {
        let text = std::fs::read_to_string(folder.path().join(format!("in/part-{part}.jsonl"))).unwrap();
        for line in text.lines() {
            let insert = "INSERT INTO t_order_event SELECT ?1 ->> 'order_id', ?1 ->> 'user_id', ?1 ->> 'amount_cents', \
                          ?1 ->> 'status', ?1 ->> 'event_time_ms'";
            connection.execute(insert, [line]).unwrap();
        }
    }
    connection
        .execute_batch(
            "INSERT INTO t_order_log SELECT order_id, user_id, amount_cents FROM t_order_event;
             INSERT INTO t_order_stat SELECT user_id, count(*), sum(amount_cents) FROM t_order_event GROUP BY user_id;
             INSERT INTO t_user_total SELECT * FROM t_order_stat;",
        )
        .unwrap();

    let clean = orders(folder.path(), &VERIFY);
    assert_eq!(clean.status.code(), Some(0), "{}", String::from_utf8_lossy(&clean.stdout));
    let json: serde_json::Value = serde_json::from_slice(&clean.stdout).unwrap();
    assert_eq!((json["ok"].as_bool(), json["expected"].as_u64()), (Some(true), Some(100)));

    connection.execute("INSERT INTO t_order_log SELECT * FROM t_order_log WHERE order_id = 42", ()).unwrap();
    let doubled = orders(folder.path(), &VERIFY);
    assert_eq!(doubled.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&doubled.stdout).unwrap();
    assert_eq!((json["ok"].as_bool(), json["duplicates"].as_u64()), (Some(false), Some(1)));
}

#[test]
fn explain_shows_the_job_and_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert!(orders(folder.path(), &GENERATE).status.success());
    let job = ["explain", "--source", "files:in", "--sink", "sqlite:out.sqlite", "--checkpoints", "c"];
    let words = orders(folder.path(), &job);
    assert!(words.status.success(), "{}", stderr(&words));
    let words = String::from_utf8_lossy(&words.stdout).into_owned();
    for part in [
        "job \"orders\"",
        "totals (ValueState<Totals>)",
        "sink in two phases",
        "checkpoints ",
        "c   (flag)",
        "10s   (default)",
        "exponential-delay,",
    ] {
        assert!(words.contains(part), "no {part:?} in {words}");
    }
    let json = orders(folder.path(), &[&job[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json["job"].as_str(), json["key_groups"].as_u64()), (Some("orders"), Some(128)));
    assert!(!folder.path().join("out.sqlite").exists() && !folder.path().join("c").exists());
}
