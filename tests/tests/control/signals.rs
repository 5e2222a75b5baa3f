//! Ctrl-C and SIGTERM are obeyed by every process, also by one whose connector blocks all threads of the I/O side.

use std::time::Duration;

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use tidegate::engine::clock::{Clock, SystemClock};

use super::scene::{Job, Scene, poll, stdout};

/// What a cancel may take, whatever stands in its way.
const CANCEL_MAX: Duration = Duration::from_secs(10);

fn send(job: &Job, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(job.pid()).unwrap()).unwrap(), signal).unwrap();
}

/// A job all of whose sinks block their threads.
fn blocked(scene: &Scene) -> Job {
    const EXPIRES: [&str; 6] =
        ["--checkpoint-interval", "50ms", "--checkpoint-timeout", "1s", "--tolerable-failures", "1000"];
    let mut job = scene.started(&[&["--block-sink", "--parallelism", "4"], &EXPIRES[..]].concat());
    // It waits for the sinks.
    job.wait_for("checkpoint_failed");
    job
}

#[test]
fn a_second_ctrl_c_stops_a_job_at_once_although_its_sinks_block_the_io_side() {
    let scene = Scene::new();
    let job = blocked(&scene);
    send(&job, Signal::INT);
    // The two must not melt into one.
    poll(|| {
        scene.json(&["list"])[0]["state"].as_str().is_some_and(|state| state == "canceling").then_some(())
    });
    send(&job, Signal::INT);
    let (status, said) = job.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("canceling in order"), "{said}");
}

#[test]
fn a_cancel_and_sigterm_end_a_job_whose_sinks_block_the_io_side_with_status_4_and_their_name() {
    let scenes = [Scene::new(), Scene::new()];
    let [first, second] = scenes.each_ref().map(blocked);
    send(&second, Signal::TERM);
    let canceled = scenes[0].tidegate(&["cancel", "numbers"]);
    assert_eq!(canceled.status.code(), Some(1));
    assert!(stdout(&canceled).contains("counts_sink["), "{}", stdout(&canceled));
    for job in [first, second] {
        let (status, said) = job.end();
        assert_eq!(status.code(), Some(4), "{said}");
        assert!(said.contains("was not canceled in order") && said.contains("counts_sink["), "{said}");
    }
}

/// Eight subtasks take turns at one connection, and each of them waits 5 s for the file: if the first that gives up fails the attempt,
/// the others are not waited for.
#[test]
fn a_cancel_beside_a_database_that_another_process_holds_ends_in_time_and_loses_nothing() {
    let scene = Scene::new();
    let args = ["--db", "counts.sqlite", "--parallelism", "8", "--checkpoint-interval", "50ms"];
    let mut job = scene.started(&args);
    job.wait_for("committed");
    let other = Connection::open(scene.path("counts.sqlite")).unwrap();
    other.busy_timeout(super::scene::PATIENCE).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let clock = SystemClock::new();
    send(&job, Signal::INT);
    let (status, said) = job.end();
    let took = clock.now();
    assert!(took < CANCEL_MAX, "{took:?}: {said}");
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("counts_sink["), "{said}");
    drop(other);
    let mut next = scene.started(&args);
    next.wait_for("committed");
    send(&next, Signal::INT);
    let (status, said) = next.end();
    assert_eq!(status.code(), Some(0), "{said}");
}

#[test]
fn a_signal_while_the_job_is_being_built_cancels_it_in_order() {
    let scene = Scene::new();
    let building = scene.path("building");
    let job = Job::spawn(scene.job(&["--build-while", "building"]));
    poll(|| building.exists().then_some(()));
    send(&job, Signal::TERM);
    std::fs::remove_file(&building).unwrap();
    let (status, said) = job.end();
    assert_eq!(status.code(), Some(0), "{said}");
}
