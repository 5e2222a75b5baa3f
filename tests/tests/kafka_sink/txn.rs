//! `tidegate txn`: what an operator sees, and decides.

use std::process::{Command, Output};

use serde_json::Value;
use tidegate::engine::operator::CommitOutcome;

use crate::subtask::Subtask;
use crate::topic::Topic;

pub(crate) fn txn(topic: &Topic, verb: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate-cli"))
        .args(["txn", verb, "--kafka", &topic.bootstrap])
        .args(args)
        .output()
        .unwrap()
}

/// Ids of this topic's job, with their states.
fn listed(topic: &Topic) -> Vec<(String, String)> {
    let output = txn(topic, "list", &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let own = rows.iter().filter(|row| row["job"] == topic.name.as_str() && row["state"] == "Ongoing");
    own.map(|row| {
        assert!(row["age_ms"].is_u64() && row["uid"] == "sink" && row["attempt"] == 1, "{row}");
        assert!(
            row["partitions"].as_array().unwrap().contains(&Value::from(format!("{}-0", topic.name))),
            "{row}"
        );
        (text(row, "id"), text(row, "state"))
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_over_is_listed_with_its_owner_and_ended_as_an_operator_decides() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    let (seen, unseen) = (subtask.prepared(1, [1]).await, subtask.prepared(2, [2]).await);
    let id = |slot: u32| format!("tidegate.{}.0b8d.1.sink.0.{slot}.1", topic.name);
    let (seen_id, unseen_id) = (id(seen.committable.slot), id(unseen.committable.slot));
    let ids: Vec<String> = listed(&topic).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [seen_id.clone(), unseen_id.clone()]);
    assert!(txn(&topic, "abort", &[&unseen_id]).status.success());
    assert!(txn(&topic, "commit", &[&seen_id]).status.success());
    assert_eq!(listed(&topic), []);
    topic.expect([1]);
    assert_eq!(txn(&topic, "commit", &[&unseen_id]).status.code(), Some(1), "nothing is open there");
    let other = txn(&topic, "abort", &["somebodys.id"]);
    assert!(!other.status.success(), "another's id is left alone");
    // A job that lists them finds the one committed and the other lost.
    assert_eq!(subtask.commit(&seen).await, CommitOutcome::AlreadyCommitted);
    assert!(matches!(subtask.commit(&unseen).await, CommitOutcome::Lost { .. }));
}
