//! Records that are older than their topic keeps them.

use std::process::{Command, Stdio};

use crate::topic::{Topic, shared_broker};

/// Lines of the log of a job in three subtasks whose records have event times from `first_ms` on.
fn warnings(settings: &[(&str, &str)], first_ms: i64) -> Vec<String> {
    let (topic, folder) = (Topic::with(&shared_broker(), 3, settings), tempfile::tempdir().unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_kafka-numbers-job"))
        .args(["run", "--json", "--checkpoints", "c", "--checkpoint-interval", "100ms", "--parallelism", "3"])
        .args(["--count", "900", "--rate", "4000", "--kafka", &topic.bootstrap, "--topic", &topic.name])
        .args(["--first-ms", &first_ms.to_string()])
        .current_dir(folder.path())
        .env("TIDEGATE_RUNTIME_DIR", folder.path().join("runtime"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    topic.expect(0..900);
    log.lines().filter(|line| line.contains(&topic.name)).map(str::to_owned).collect()
}

/// In 2014.
const OLD_MS: i64 = 1_400_000_000_000;

#[test]
fn a_topic_that_deletes_records_of_such_an_age_is_told_of_once() {
    // The broker's own setting: seven days.
    let said = warnings(&[], OLD_MS);
    let [first, ..] = said.as_slice() else { panic!("nothing is said") };
    assert!(first.contains("WARN") && first.contains("604800000 ms"), "{said:?}");
    assert!(first.contains("14000000"), "the event time: {first}");
    let warned = said.iter().filter(|line| line.contains("deletes records")).count();
    assert_eq!(warned, 1, "once for all subtasks: {said:?}");
}

#[test]
fn nothing_is_told_where_event_times_delete_nothing_or_are_young_enough() {
    for settings in
        [("retention.ms", "-1"), ("message.timestamp.type", "LogAppendTime"), ("cleanup.policy", "compact")]
    {
        assert_eq!(warnings(&[settings], OLD_MS), [""; 0], "{settings:?}");
    }
    // A century is kept.
    assert_eq!(warnings(&[("retention.ms", "3155760000000")], OLD_MS), [""; 0]);
}
