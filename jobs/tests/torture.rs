//! `orders torture` end to end, small: every named place is struck and nothing is lost or doubled; the control group is
//! damaged by the same kills.
//!
//! Owns: that both hold, at parallelism 1 and 3, and that a torture which cannot strike a place fails.
//! Does not own: the schedule and the reports, which are tested beside them.
//! Runs on: the test thread; the job runs in processes.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod scenario;

use scenario::{Scenario, stderr};
use serde_json::Value;

fn torture(args: &[&str]) -> Value {
    let scenario = Scenario::with_orders();
    let mut command = scenario.orders(&["torture", "--json", "--dir", "torture"]);
    let output = command.args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{args:?}: {said}{}", stderr(&output));
    serde_json::from_str(&said).unwrap()
}

fn is_clean(report: &Value) {
    for figure in ["duplicates", "lost", "wrong", "unexpected", "deviation_cents"] {
        assert_eq!(report[figure], 0, "{report}");
    }
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["checkpoint_folder"]["ok"], true, "{report}");
}

fn survives(parallelism: &str, seed: &str) {
    let report = torture(&["--kills", "8", "--seed", seed, "--parallelism", parallelism]);
    is_clean(&report);
    assert_eq!(report["places_not_struck"], Value::Array(Vec::new()));
    let kills = report["list"].as_array().unwrap();
    assert_eq!((report["kills"].as_u64(), kills.len()), (Some(8), 8));
    let places: std::collections::BTreeSet<_> =
        kills.iter().map(|kill| kill["place"].as_str().unwrap()).collect();
    assert_eq!(places.len(), 8, "seven places, and by progress: {places:?}");
    for kill in kills {
        assert!(kill["checkpoint"].as_u64() >= Some(1), "{kill}");
        assert!(kill["records_in"].as_u64() < report["expected"].as_u64(), "{kill}");
    }
    assert!(kills.iter().any(|kill| kill["transactions_prepared"].as_u64() > Some(0)), "{kills:?}");
    assert!(kills.iter().any(|kill| kill["committed"].as_u64() > Some(0)), "{kills:?}");
    assert!(kills.iter().any(|kill| kill["rolled_back"].as_u64() > Some(0)), "{kills:?}");
}

#[test]
fn a_tortured_job_of_one_subtask_counts_each_order_once() {
    survives("1", "11");
}

#[test]
fn a_tortured_job_of_three_subtasks_counts_each_order_once() {
    survives("3", "12");
}

#[test]
fn the_same_kills_double_orders_where_restarts_begin_at_the_beginning() {
    let report = torture(&["--mode", "none"]);
    assert!(report["duplicate_rate"].as_f64() > Some(0.4), "{report}");
    assert_eq!((report["ok"].as_bool(), report["lost"].as_u64()), (Some(false), Some(0)), "{report}");
    is_clean(&report["exactly_once"]);
    assert_eq!(report["exactly_once"]["kills"], report["kills"]);
}

#[test]
fn the_same_kills_lose_orders_where_restarts_begin_at_the_position_last_read() {
    let report = torture(&["--mode", "at-most-once"]);
    assert!(report["loss_rate"].as_f64() > Some(0.3), "{report}");
    assert_eq!(report["duplicates"], 0, "{report}");
    is_clean(&report["exactly_once"]);
}

#[test]
fn a_torture_that_cannot_strike_a_place_fails_and_names_it() {
    let scenario = Scenario::with_orders();
    // A batch of so few orders is one statement: it is never half written. On a busy machine another place may be missed first.
    let args = ["torture", "--kills", "7", "--orders", "1000", "--checkpoint-interval", "20ms", "--dir", "t"];
    let output = scenario.orders(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let text = stderr(&output);
    let is_named = text.contains(") was not made") || text.contains(") does not count");
    assert!(text.contains("error: kill ") && is_named && text.contains("--orders"), "{text}");
}
