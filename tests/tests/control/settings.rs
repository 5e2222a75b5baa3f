//! Settings from flags, environment and file, and what follows a failure.

use std::fs;

use super::scene::{Job, Scene, stderr, stdout};

const EXPLAIN: [&str; 3] = ["explain", "--settings", "job.toml"];

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let scene = Scene::new();
    let text = "parallelism = 2\nmax-parallelism = 16\ncheckpoint-interval = \"3s\"\ncheckpoints = \"c\"\n";
    fs::write(scene.path("job.toml"), text).unwrap();
    let mut command = scene.job_binary(&[&EXPLAIN[..], &["--parallelism", "5"]].concat());
    command.env("TIDEGATE_PARALLELISM", "4").env("TIDEGATE_MAX_PARALLELISM", "8").env("TIDEGATE_JSON", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let explained: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((explained["key_groups"].as_u64(), explained["job"].as_str()), (Some(8), Some("numbers")));
    assert_eq!(explained["vertices"][0]["parallelism"], 5);
    let setting = |name: &str| {
        let all = explained["settings"].as_array().unwrap();
        let found = all.iter().find(|setting| setting["name"] == name).unwrap();
        (found["value"].as_str().unwrap_or("").to_owned(), found["from"].as_str().unwrap().to_owned())
    };
    let is = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    assert_eq!(setting("parallelism"), is("5", "flag"));
    assert_eq!(setting("max-parallelism"), is("8", "environment"));
    assert_eq!(setting("checkpoint-interval"), is("3s", "file"));
    assert_eq!(setting("retained"), is("3", "default"));
    assert_eq!(setting("json"), is("1", "environment"));
    let restart = "exponential-delay,initial=100ms,max=1min,reset-after=10min";
    assert_eq!(setting("restart"), is(restart, "default"));
}

#[test]
fn explain_says_what_there_is_in_words_and_no_name_of_the_code() {
    let scene = Scene::new();
    let output = scene.job_binary(&["explain", "--db", "out.sqlite", "--parallelism", "3"]).output().unwrap();
    let words = stdout(&output);
    for part in [
        "job \"numbers\": 2 vertices, 6 subtasks, 128 key groups",
        "[1] count → counts_sink × 3   from [0]",
        "with keyed state",
        "counts (ValueState<Count>)",
        "sink in two phases",
        "parallelism                3   (flag)",
    ] {
        assert!(words.contains(part), "no {part:?} in {words}");
    }
    for name in ["TwoPhaseSink", "Keyed ", "Stateless"] {
        assert!(!words.contains(name), "{name:?} in {words}");
    }
}

#[test]
fn an_unknown_key_is_refused_by_name_with_the_one_that_looks_like_it() {
    let scene = Scene::new();
    fs::write(scene.path("job.toml"), "checkpoints = \"c\"\nchekpoint-interval = \"1s\"\n").unwrap();
    let refused = scene.job_binary(&EXPLAIN).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let words = stderr(&refused);
    assert!(words.contains("job.toml:2: \"chekpoint-interval\" is no setting"), "{words}");
    assert!(words.contains("did you mean \"checkpoint-interval\"?"), "{words}");
}

#[test]
fn what_follows_a_failure_is_set_by_flag_environment_and_file() {
    let fails = ["--fail-every", "50"];
    let scene = Scene::new();
    let none = scene.job(&[&fails[..], &["--restart", "none"]].concat()).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("failed after 1 attempt: "), "{}", stderr(&none));

    let scene = Scene::new();
    let mut fixed = scene.job(&fails);
    let fixed = fixed.env("TIDEGATE_RESTART", "fixed-delay,attempts=2,delay=1ms").output().unwrap();
    assert!(stderr(&fixed).contains("failed after 3 attempts: "), "{}", stderr(&fixed));

    let scene = Scene::new();
    let text =
        "[restart]\nstrategy = \"failure-rate\"\nfailures = 3\ninterval = \"10min\"\ndelay = \"1ms\"\n";
    fs::write(scene.path("job.toml"), text).unwrap();
    let rate = scene.job(&[&fails[..], &["--settings", "job.toml"]].concat()).output().unwrap();
    assert!(stderr(&rate).contains("failed after 4 attempts: "), "{}", stderr(&rate));

    let scene = Scene::new();
    let often = ["--restart", "exponential-delay,initial=1ms,max=2ms"];
    let mut job = Job::spawn(scene.job(&[&fails[..], &often].concat()));
    for _ in 0..5 {
        job.wait_for("restarting");
    }
    let state = scene.json(&["list", "c/"]);
    let failure = state[0]["last_failure"].as_str().unwrap();
    assert!(failure.contains("is not wanted"), "{state}");
    scene.words(&["cancel", "c/"]);
}
