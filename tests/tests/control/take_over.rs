//! A second start on a folder: refused, or taking the job over.

use rustix::process::{Pid, Signal, kill_process};

use super::scene::{Job, Scene, stderr};

const OFTEN: [&str; 2] = ["--checkpoint-interval", "20ms"];

fn claims(scene: &Scene) -> usize {
    let entries = scene.json(&["checkpoint", "list", "c"]);
    entries["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "claim").count()
}

#[test]
fn a_second_start_is_refused_by_name_and_process_and_harms_nobody() {
    let scene = Scene::new();
    let mut first = scene.started(&OFTEN);
    let refused = scene.job(&OFTEN).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let words = stderr(&refused);
    let who = format!("job \"numbers\", process {}", first.pid());
    assert!(
        words.contains(&who) && words.contains("--take-over") && words.contains("tidegate cancel"),
        "{words}"
    );
    first.wait_for("checkpoint");
    assert_eq!(claims(&scene), 1, "nothing was claimed");
    scene.words(&["cancel", "c/"]);
    assert_eq!(first.end().0.code(), Some(0));
}

#[test]
fn a_job_that_is_taken_over_ends_as_fenced_and_starts_no_attempt_again() {
    let scene = Scene::new();
    // Whatever fails is restarted at once, for ever: being fenced is no failure.
    let restart = ["--restart", "fixed-delay,attempts=1000000,delay=1ms"];
    let mut first = scene.started(&[&OFTEN[..], &restart, &["--db", "out.sqlite"]].concat());
    first.wait_for("checkpoint");
    let mut second = scene.started(&[&OFTEN[..], &["--db", "out.sqlite", "--take-over"]].concat());
    let (status, words) = first.end();
    assert_eq!(status.code(), Some(3), "{words}");
    assert!(words.contains("was taken over"), "{words}");

    second.wait_for("checkpoint");
    assert_eq!(claims(&scene), 2, "one claim each");
    // The folder's socket is the second one's now.
    assert_eq!(scene.json(&["list", "c/"])[0]["pid"].as_u64(), Some(u64::from(second.pid())));
    scene.words(&["cancel", "c/"]);
    assert_eq!(second.end().0.code(), Some(0));
    scene.words(&["checkpoint", "fsck", "c"]);
}

#[test]
fn a_job_that_stood_still_while_it_was_taken_over_is_fenced_when_it_goes_on() {
    let scene = Scene::new();
    let mut first = scene.started(&OFTEN);
    first.wait_for("checkpoint");
    let pid = Pid::from_raw(first.pid() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // It says nothing, and is not taken for dead.
    let refused = scene.job(&OFTEN).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("is stopped by a signal"), "{}", stderr(&refused));

    let mut second = scene.started(&[&OFTEN[..], &["--take-over"]].concat());
    second.wait_for("checkpoint");
    kill_process(pid, Signal::CONT).unwrap();
    let (status, words) = first.end();
    assert_eq!(status.code(), Some(3), "{words}");
    second.wait_for("checkpoint");
    scene.words(&["cancel", "c/"]);
    assert_eq!(second.end().0.code(), Some(0));
}

#[test]
fn whoever_takes_over_a_folder_that_nobody_holds_just_starts() {
    let scene = Scene::new();
    let mut killed = scene.started(&OFTEN);
    killed.wait_for("checkpoint");
    killed.kill();
    let mut next = Job::spawn(scene.job(&[&OFTEN[..], &["--take-over"]].concat()));
    assert!(next.wait_for("started")["restored"].as_u64() >= Some(1));
}
