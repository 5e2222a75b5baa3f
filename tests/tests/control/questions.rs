//! Questions to a running job: how it stands, its checkpoints, one now, an orderly end.

use super::scene::{Job, Scene, poll, stderr, stdout};

/// No checkpoint but those that are asked for.
const SELDOM: [&str; 2] = ["--checkpoint-interval", "600min"];

#[test]
fn a_running_job_is_listed_and_takes_a_checkpoint_when_asked() {
    let scene = Scene::new();
    let job = scene.started(&[&SELDOM[..], &["--parallelism", "2"]].concat());
    let pid = u64::from(job.pid());

    let jobs = scene.json(&["list"]);
    assert_eq!((jobs[0]["job"].as_str(), jobs[0]["pid"].as_u64()), (Some("numbers"), Some(pid)), "{jobs}");
    assert_eq!((jobs[0]["state"].as_str(), jobs[0]["newest_checkpoint"].as_u64()), (Some("running"), None));
    assert!(scene.words(&["list"]).contains("numbers"), "{}", scene.words(&["list"]));
    assert_eq!(scene.words(&["checkpoints"]).trim(), "no checkpoint has ended yet");

    // By folder, by name, by the word trigger, and by nothing at all, since only one job runs.
    for (id, args) in [
        (1, &["checkpoint", "c/"][..]),
        (2, &["checkpoint", "numbers"]),
        (3, &["checkpoint", "trigger", "./c"]),
        (4, &["checkpoint"]),
    ] {
        let report = scene.json(args);
        assert_eq!((report["id"].as_u64(), report["complete"].as_bool()), (Some(id), Some(true)), "{report}");
        assert_eq!(report["subtasks"].as_array().unwrap().len(), report["asked"].as_u64().unwrap() as usize);
    }
    let words = scene.words(&["checkpoint", "c/"]);
    assert!(
        words.starts_with("checkpoint 5 of attempt 1: complete after") && words.contains("count"),
        "{words}"
    );

    let table = scene.words(&["checkpoints", "numbers", "--sort", "async"]);
    for heading in ["id", "end to end", "slowest subtask", "alignment", "sync", "async", "note"] {
        assert!(table.lines().next().unwrap().contains(heading), "{table}");
    }
    assert_eq!(table.lines().count(), 6, "{table}");
    let one = scene.words(&["checkpoints", "--subtasks=3"]);
    assert!(one.starts_with("checkpoint 3 of attempt 1"), "{one}");
    assert_eq!(scene.tidegate(&["checkpoints", "--subtasks=99"]).status.code(), Some(2));

    let canceled = scene.words(&["cancel", "numbers"]);
    assert!(canceled.starts_with("canceled"), "{canceled}");
    let (status, _) = job.end();
    assert_eq!(status.code(), Some(0));
    assert_eq!(scene.json(&["list"]), serde_json::json!([]));
    assert!(!scene.path("c/control.sock").exists());
}

#[test]
fn a_job_answers_on_a_loopback_port_that_it_names() {
    let scene = Scene::new();
    let mut job = Job::spawn(scene.job(&[&SELDOM[..], &["--control", "127.0.0.1:0"]].concat()));
    let at = job.wait_for("listening")["control"].as_str().unwrap().to_owned();
    job.wait_for("started");
    let jobs = scene.json(&["list", &at]);
    assert_eq!(jobs[0]["pid"].as_u64(), Some(u64::from(job.pid())));
    assert_eq!(scene.json(&["checkpoint", &at])["id"], 1);
    assert_eq!(scene.json(&["cancel", &at])["outcome"], "canceled");
    assert_eq!(job.end().0.code(), Some(0));
    let gone = scene.tidegate(&["cancel", &at]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("no job answers at"), "{}", stderr(&gone));

    let remote = scene.job(&["--control", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(remote.status.code(), Some(2));
    assert!(stderr(&remote).contains("--control-remote"), "{}", stderr(&remote));
}

#[test]
fn a_job_without_a_folder_answers_too_and_says_that_it_takes_no_checkpoints() {
    let scene = Scene::new();
    let mut job = Job::spawn(scene.job_binary(&["run", "--mode", "none", "--json"]));
    job.wait_for("started");
    let none = scene.tidegate(&["checkpoint", "numbers"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("--mode none"), "{}", stderr(&none));
    let canceled = scene.words(&["cancel"]);
    assert!(canceled.starts_with("numbers: canceled"), "{canceled}");
    assert_eq!(job.end().0.code(), Some(0));
}

#[test]
fn two_jobs_are_told_apart_by_their_folders() {
    let scene = Scene::new();
    let first = scene.started(&SELDOM);
    let mut second = scene.job_binary(&["run", "--checkpoints", "other", "--json"]);
    second.args(SELDOM);
    let mut second = Job::spawn(second);
    second.wait_for("started");
    for args in [&["cancel"][..], &["cancel", "numbers"]] {
        let which = scene.tidegate(args);
        assert_eq!(which.status.code(), Some(2), "{}", stderr(&which));
        assert!(stderr(&which).contains("several jobs"), "{}", stderr(&which));
    }
    assert_eq!(scene.tidegate(&["cancel", "nobody"]).status.code(), Some(2));
    scene.words(&["cancel", "other/"]);
    assert_eq!(second.end().0.code(), Some(0));
    assert_eq!(scene.json(&["list"])[0]["pid"].as_u64(), Some(u64::from(first.pid())));
}

#[test]
fn a_job_that_was_killed_is_not_listed_and_its_folder_says_that_nobody_answers() {
    let scene = Scene::new();
    let mut job = scene.started(&SELDOM);
    job.kill();
    assert_eq!(scene.json(&["list"]), serde_json::json!([]));
    let nobody = scene.tidegate(&["checkpoints", "./c"]);
    assert!(stderr(&nobody).contains("no job answers at"), "{}", stderr(&nobody));
    let _again = scene.started(&SELDOM);
}

#[test]
fn a_failed_checkpoint_is_told_with_its_reason_in_words() {
    let scene = Scene::new();
    // Nothing is acknowledged in a millisecond: a state file has to be synced.
    let mut job = Job::spawn(scene.job(&[&SELDOM[..], &["--checkpoint-timeout", "1ms"]].concat()));
    job.wait_for("started");
    let failed = poll(|| {
        let output = scene.tidegate(&["checkpoint", "./c"]);
        (!output.status.success()).then_some(output)
    });
    assert_eq!(failed.status.code(), Some(1));
    let words = stdout(&failed);
    assert!(words.contains("expired: no acknowledgement from ") && words.contains("not at all"), "{words}");
    let table = scene.words(&["checkpoints"]);
    assert!(table.contains("failed") && table.contains("expired: no acknowledgement from"), "{table}");
}

#[test]
fn a_finished_job_is_over_for_who_asks_too_late() {
    let scene = Scene::new();
    let job = Job::spawn(scene.job(&["--count", "100"]));
    assert_eq!(job.end().0.code(), Some(0));
    let late = scene.tidegate(&["checkpoint", "./c"]);
    assert_eq!(late.status.code(), Some(1));
    assert!(stderr(&late).contains("no job answers at"), "{}", stderr(&late));
}
