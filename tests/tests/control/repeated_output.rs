//! Records out per record in: a job that writes its records again and again says so, one that works says 1.

use super::scene::Scene;

#[test]
fn a_job_that_writes_its_records_again_after_each_restart_warns_once_and_shows_the_ratio() {
    let scene = Scene::new();
    // No checkpoint is taken: each restart begins with the first number.
    let often = ["--checkpoint-interval", "600min", "--restart", "fixed-delay,attempts=1000,delay=100ms"];
    let mut job = scene.started(&[&often[..], &["--fail-every", "300", "--rate", "20000"]].concat());
    let warning = job.wait_for("repeated_output");
    let figure = |name: &str| warning[name].as_u64().unwrap();
    assert_eq!(warning["sinks"], "counts_sink");
    assert!(figure("repeated") > 0 && figure("written") >= figure("repeated"), "{warning}");
    assert_eq!(figure("window_ms"), 60_000);
    let mut restarts = 0;
    while restarts < 3 {
        let event = job.next_of(&["restarting", "repeated_output"]);
        assert_ne!(event["event"], "repeated_output", "once in a minute");
        restarts += 1;
    }
    let report = scene.json(&["list", "c/"]);
    assert!(report[0]["out_per_1000_in"].as_u64() > Some(1_050), "{report}");
    assert!(scene.words(&["list"]).contains("out/in"));
}

#[test]
fn a_job_that_does_not_fail_has_the_ratio_one() {
    let scene = Scene::new();
    let mut job = scene.started(&["--checkpoint-interval", "20ms"]);
    job.wait_for("checkpoint");
    job.wait_for("progress");
    job.wait_for("checkpoint");
    let report = scene.json(&["list", "c/"]);
    assert_eq!(report[0]["out_per_1000_in"].as_u64(), Some(1_000), "{report}");
}
