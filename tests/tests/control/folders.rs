//! `tidegate checkpoint list|verify|fsck` on folders that real jobs have written, ended, left and damaged.

use std::fs;

use super::scene::{Job, Scene, files, stderr, stdout};

const OFTEN: [&str; 4] = ["--checkpoint-interval", "20ms", "--parallelism", "2"];

/// A job that has come to its end after a few checkpoints.
fn finished() -> Scene {
    let scene = Scene::new();
    let job = Job::spawn(scene.job(&[&OFTEN[..], &["--count", "400"]].concat()));
    let (status, words) = job.end();
    assert_eq!(status.code(), Some(0), "{words}");
    scene
}

/// A job that dies when its state is stored and its checkpoint is not complete.
fn dead() -> Scene {
    let scene = Scene::new();
    let mut command = scene.job(&OFTEN);
    let dead = command.env("TIDEGATE_FAULT", "commit_log.checkpoint.before:5").output().unwrap();
    assert!(!dead.status.success());
    scene
}

#[test]
fn a_finished_job_leaves_exactly_what_its_retained_checkpoints_refer_to() {
    let scene = finished();
    let listed = scene.json(&["checkpoint", "list", "c"]);
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!((entries[0]["kind"].as_str(), entries[0]["attempt"].as_u64()), (Some("claim"), Some(1)));
    assert_eq!(entries.last().unwrap()["kind"], "finished");
    let retained: Vec<_> = entries.iter().filter(|entry| entry["retained"] == true).collect();
    assert_eq!(retained.len(), 3, "{listed}");
    assert!(scene.words(&["checkpoint", "list", "c"]).contains("job \"numbers\""));

    let verified = scene.json(&["checkpoint", "verify", "c"]);
    assert_eq!((verified["clean"].as_bool(), verified["running"].as_bool()), (Some(true), Some(false)));
    let named: u64 = retained.iter().map(|entry| entry["files"].as_u64().unwrap()).sum();
    assert_eq!(verified["files"].as_u64(), Some(named));
    let checked = scene.json(&["checkpoint", "fsck", "c"]);
    assert_eq!((checked["clean"].as_bool(), checked["files"].as_u64()), (Some(true), Some(named)));
    let state = files(&scene.path("c")).into_iter().filter(|f| !f.starts_with(scene.path("c/log"))).count();
    assert_eq!(state as u64, named, "no other file is there");
}

#[test]
fn what_a_killed_job_leaves_is_found_and_goes_on_request_or_with_the_next_start() {
    let scene = dead();
    let found = scene.tidegate(&["checkpoint", "fsck", "c"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(stdout(&found).contains("that no entry names"), "{}", stdout(&found));
    assert_eq!(
        scene.tidegate(&["checkpoint", "verify", "c"]).status.code(),
        Some(0),
        "what is retained is whole"
    );

    // What a put that is cut short leaves on local disk is hidden from the store's own listing.
    let half = scene.path("c/log/00000000000000000099#1");
    fs::write(&half, "half").unwrap();
    let deleted = scene.tidegate(&["checkpoint", "fsck", "c", "--delete"]);
    assert_eq!(deleted.status.code(), Some(1), "{}", stderr(&deleted));
    assert!(stdout(&deleted).contains("(deleted)") && !half.exists(), "{}", stdout(&deleted));
    assert!(scene.words(&["checkpoint", "fsck", "c"]).ends_with("clean\n"));
    assert!(!scene.path("c/control.sock").exists(), "the folder is let go");

    let scene = dead();
    assert_eq!(scene.tidegate(&["checkpoint", "fsck", "c"]).status.code(), Some(1));
    let mut next = scene.started(&OFTEN);
    next.wait_for("checkpoint");
    scene.words(&["cancel", "c/"]);
    next.end();
    scene.words(&["checkpoint", "fsck", "c"]);
}

#[test]
fn nothing_is_deleted_beside_a_running_job_and_what_it_has_under_way_is_no_finding() {
    let scene = Scene::new();
    let mut job = scene.started(&OFTEN);
    for _ in 0..3 {
        job.wait_for("checkpoint");
        let checked = scene.json(&["checkpoint", "fsck", "c"]);
        assert_eq!((checked["clean"].as_bool(), checked["running"].as_bool()), (Some(true), Some(true)));
        scene.words(&["checkpoint", "verify", "c"]);
    }
    let refused = scene.tidegate(&["checkpoint", "fsck", "c", "--delete"]);
    assert_eq!(refused.status.code(), Some(1));
    let who = format!("process {}", job.pid());
    assert!(stderr(&refused).contains(&who), "{}", stderr(&refused));
    job.wait_for("checkpoint");
}

#[test]
fn damage_is_found_and_named_and_never_deleted() {
    let scene = finished();
    let state = files(&scene.path("c")).into_iter().find(|f| !f.starts_with(scene.path("c/log"))).unwrap();
    let whole = fs::read(&state).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(&state, &flipped).unwrap();
    for command in ["verify", "fsck"] {
        let damaged = scene.tidegate(&["checkpoint", command, "c", "--json"]);
        assert_eq!(damaged.status.code(), Some(1), "{command}");
        let json: serde_json::Value = serde_json::from_slice(&damaged.stdout).unwrap();
        assert_eq!(json["findings"][0]["finding"], "damaged_state", "{json}");
    }
    fs::write(&state, &whole[..whole.len() - 1]).unwrap();
    assert!(stdout(&scene.tidegate(&["checkpoint", "verify", "c"])).contains("torn"));
    fs::remove_file(&state).unwrap();
    assert!(stdout(&scene.tidegate(&["checkpoint", "verify", "c"])).contains("missing"));
    fs::create_dir_all(state.parent().unwrap()).unwrap();
    fs::write(&state, &whole).unwrap();

    let entry = files(&scene.path("c/log")).into_iter().rev().find(|f| !f.ends_with("id")).unwrap();
    fs::write(&entry, "").unwrap();
    let orphan = scene.path("c/7-1/left");
    fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    fs::write(&orphan, "left").unwrap();
    let empty = scene.tidegate(&["checkpoint", "fsck", "c", "--delete"]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(stdout(&empty).contains("the entry is empty"), "{}", stdout(&empty));
    assert!(entry.exists() && orphan.exists(), "the empty entry might have named it");
    let listed = scene.tidegate(&["checkpoint", "list", "c"]);
    assert!(listed.status.code() == Some(1) && stdout(&listed).contains("damaged"), "{}", stdout(&listed));
}

#[test]
fn a_folder_that_is_none_is_named_and_not_made() {
    let scene = Scene::new();
    let nowhere = scene.tidegate(&["checkpoint", "list", "nowhere"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("there is no folder nowhere") && !scene.path("nowhere").exists());
    fs::create_dir(scene.path("empty")).unwrap();
    let empty = scene.tidegate(&["checkpoint", "fsck", "empty"]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(stderr(&empty).contains("no checkpoint folder"), "{}", stderr(&empty));
}
