//! `tidegate txn`: what an operator sees, and decides.

use std::process::{Command, Output};

use serde_json::Value;
use tidegate::connectors::kafka::TransactionAdmin;
use tidegate::engine::io::TokioIo;
use tidegate::engine::operator::CommitOutcome;

use crate::kills::Run;
use crate::subtask::Subtask;
use crate::topic::{Topic, apart, eventually};

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
    assert_eq!(other.status.code(), Some(2), "another's id is left alone");
    // A job that lists them finds the one committed and the other lost.
    assert_eq!(subtask.commit(&seen).await, CommitOutcome::AlreadyCommitted);
    let CommitOutcome::Lost { reason } = subtask.commit(&unseen).await else { panic!("it was aborted") };
    assert!(reason.contains("aborted by hand (tidegate txn)"), "{reason}");
}

/// Commits by hand what was opened last.
fn commit_newest(topic: &Topic) {
    let open = apart(async {
        let io = TokioIo::shared(tokio::runtime::Handle::current());
        TransactionAdmin::new(&topic.bootstrap, io).list(true).await.unwrap()
    });
    let own = open.into_iter().filter(|it| it.partitions.iter().any(|(name, _)| *name == topic.name));
    let newest = own.max_by_key(|it| it.started_ms).unwrap().id;
    assert!(txn(topic, "commit", &[&newest]).status.success());
}

#[test]
fn a_start_that_is_behind_what_somebody_has_committed_by_hand_is_refused() {
    let (topic, folder) = (Topic::new(1), tempfile::tempdir().unwrap());
    let run = Run { topic: &topic, folder: folder.path(), parallelism: 1, from: None };
    // The third transaction is prepared, and its checkpoint never completes.
    assert!(!run.run(2_000, "sink.prepare.after:3"));
    commit_newest(&topic);
    let before = topic.numbers();
    let refused = run.output(2_000, "");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("somebody committed a transaction by hand that no checkpoint lists"), "{said}");
    assert_eq!(topic.numbers(), before, "nothing is written twice");
}

#[test]
fn a_start_by_the_remedy_writes_again_what_was_committed_by_hand_and_loses_nothing_of_it() {
    let (topic, folder) = (Topic::new(1), tempfile::tempdir().unwrap());
    let run = Run { topic: &topic, folder: folder.path(), parallelism: 1, from: None };
    assert!(!run.run(2_000, "sink.commit.after:2"));
    // The first transaction of this attempt, as of the one below: both have slot 0, and the same checkpoint closes them.
    assert!(!run.run(2_000, "sink.prepare.after:1"));
    let before = topic.numbers();
    commit_newest(&topic);
    eventually("it is committed", || topic.numbers().len() > before.len());
    let by_hand: Vec<u64> = topic.numbers().split_off(before.len());
    let refused = run.output(2_000, "");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let (_, remedy) = said.split_once("`--restore ").unwrap();
    let (place, _) = remedy.split_once(" --rewind`").unwrap();
    let rewound = run.output_with(2_000, "", &["--restore", place.trim_matches('\''), "--rewind"]);
    assert!(rewound.status.success(), "{}", String::from_utf8_lossy(&rewound.stderr));
    let mut expected: Vec<u64> = (0..2_000).chain(by_hand).collect();
    expected.sort_unstable();
    topic.expect(expected);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

/// Each start would be a higher attempt than the one before it, and its recovery would fence what lower attempts have left.
#[test]
fn starts_of_an_old_copy_are_refused_and_touch_nothing_that_the_right_folder_lists() {
    let (topic, folder) = (Topic::new(2), tempfile::tempdir().unwrap());
    let (right, old) = (folder.path().join("right"), folder.path().join("old"));
    std::fs::create_dir(&right).unwrap();
    let of = |folder| Run { topic: &topic, folder, parallelism: 2, from: None };
    assert!(!of(&right).run(2_000, "commit_log.checkpoint.after:2"));
    assert!(Command::new("cp").arg("-a").args([&right, &old]).status().unwrap().success());
    // Its last checkpoint is in the log, and its transactions are not committed.
    assert!(!of(&right).run(2_000, "commit_log.checkpoint.after:3"));
    let open = topic.open_transactions();
    assert!(!open.is_empty());
    for _ in 0..4 {
        let refused = of(&old).output(2_000, "");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("the folder is an old copy"), "{said}");
        assert_eq!(topic.open_transactions(), open);
    }
    assert!(of(&right).run(2_000, ""));
    topic.expect(0..2_000);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_not_prepared_is_committed_by_force_only() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    subtask.write([1]).await.unwrap();
    let (id, _) = listed(&topic).pop().unwrap();
    let refused = txn(&topic, "commit", &[&id]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("is not prepared") && said.contains("tidegate txn abort"), "{said}");
    assert_eq!(listed(&topic).len(), 1);
    assert!(txn(&topic, "commit", &[&id, "--force"]).status.success());
    assert_eq!(listed(&topic), []);
}
