//! A process that a signal has stopped answers nobody: it is named, and nobody waits for it.

use rustix::process::{Pid, Signal, kill_process};

use super::scene::{Job, Scene, poll, stderr};

fn send(job: &Job, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(job.pid()).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn a_stopped_process_is_named_with_the_remedy_by_every_command_and_by_a_second_start() {
    let scene = Scene::new();
    let job = scene.started(&["--checkpoint-interval", "600min"]);
    send(&job, Signal::STOP);
    poll(|| (scene.json(&["list"])[0]["state"] == "stopped").then_some(()));
    assert_eq!(scene.json(&["list"])[0]["pid"].as_u64(), Some(u64::from(job.pid())));
    let pid = job.pid();
    for args in [["cancel", "./c"], ["checkpoint", "numbers"], ["checkpoints", "./c"], ["list", "./c"]] {
        let refused = scene.tidegate(&args);
        assert_eq!(refused.status.code(), Some(1));
        let said = stderr(&refused);
        assert!(
            said.contains(&format!("process {pid} ")) && said.contains("is stopped by a signal"),
            "{args:?}: {said}"
        );
        assert!(said.contains(&format!("kill -CONT {pid}")), "{args:?}: {said}");
    }
    let second = scene.job(&[]).output().unwrap();
    assert!(stderr(&second).contains(&format!("kill -CONT {pid}")), "{}", stderr(&second));

    send(&job, Signal::CONT);
    scene.words(&["cancel", "./c"]);
    assert_eq!(job.end().0.code(), Some(0));
}

#[test]
fn a_stopped_process_whose_job_was_taken_over_hides_nobody() {
    let scene = Scene::new();
    let old = scene.started(&["--checkpoint-interval", "600min"]);
    send(&old, Signal::STOP);
    let new = scene.started(&["--take-over", "--checkpoint-interval", "600min"]);
    let states = scene.json(&["list"]);
    let of = |pid: u32| {
        let mut jobs = states.as_array().unwrap().iter();
        jobs.find(|job| job["pid"].as_u64() == Some(u64::from(pid))).map(|job| job["state"].clone())
    };
    assert_eq!(
        (of(old.pid()).unwrap(), of(new.pid()).unwrap()),
        ("stopped".into(), "running".into()),
        "{states}"
    );
    scene.words(&["cancel", "./c"]);
    assert_eq!(new.end().0.code(), Some(0));
}
