//! Settings as they come from flags and files. (Variables are tested with processes: they belong to all threads of one.)
//!
//! Owns: the cases. Does not own: what it tests. Runs on: the test's thread.

use clap::Parser;

use super::*;
use crate::duration::{millis, seconds};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    settings: RunSettings,
}

fn parse(args: &[&str]) -> Result<RunSettings, String> {
    let line = Line::try_parse_from([&["job"], args].concat());
    line.map(|line| line.settings).map_err(|error| error.to_string())
}

fn check(args: &[&str]) -> Result<(), SettingsError> {
    parse(args).unwrap().check()
}

fn with_file(text: &str, args: &[&str]) -> Result<RunSettings, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.toml");
    std::fs::write(&file, text).unwrap();
    parse(&[&["--settings", file.to_str().unwrap()], args].concat())
}

#[test]
fn settings_are_checked_against_each_other() {
    assert_eq!(check(&["--checkpoints", "c"]), Ok(()));
    assert_eq!(check(&["--mode", "none"]), Ok(()));
    assert_eq!(check(&[]), Err(SettingsError::NoCheckpoints));
    assert_eq!(check(&["--checkpoints", ""]), Err(SettingsError::NoCheckpoints));
    assert_eq!(check(&["--mode", "none", "--checkpoints", "c"]), Err(SettingsError::CheckpointsWithoutMode));
    assert_eq!(check(&["--checkpoints", "memory://"]), Err(SettingsError::CheckpointsInMemory));
    assert_eq!(check(&["--checkpoints", "c", "--rewind"]), Err(SettingsError::RewindWithoutCheckpoint));
    assert_eq!(check(&["--mode", "none", "--restore", "c#1"]), Err(SettingsError::RestoreWithoutMode));
    let restart = ["--mode", "none", "--restart", "fixed-delay"];
    assert_eq!(check(&restart), Err(SettingsError::RestartWithoutMode));
    assert_eq!(check(&["--mode", "none", "--restart", "none"]), Ok(()));
    let named = |more: &[&str]| check(&[&["--checkpoints", "file:///a/b/", "--restore"], more].concat());
    assert_eq!(named(&["file:///a/b#3", "--rewind"]), Ok(()));
    assert_eq!(named(&["/a/b#3", "--rewind"]), Ok(()));
    assert!(matches!(named(&["/a/b#3"]), Err(SettingsError::CheckpointWithoutRewind { id: 3, .. })));
    assert!(matches!(named(&["/a/c#3", "--rewind"]), Err(SettingsError::OtherFolder { .. })));
}

#[test]
fn the_job_answers_only_on_this_machine_unless_asked() {
    let control = |more: &[&str]| check(&[&["--mode", "none", "--control"], more].concat());
    for local in ["127.0.0.1:0", "[::1]:0", "localhost:7000", "unix:/tmp/x.sock"] {
        assert_eq!(control(&[local]), Ok(()), "{local}");
    }
    assert!(matches!(control(&["0.0.0.0:7000"]), Err(SettingsError::ControlBeyondLoopback { .. })));
    assert_eq!(control(&["0.0.0.0:7000", "--control-remote"]), Ok(()));
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let text = "checkpoints = \"c\"\nparallelism = 3\ncheckpoint-interval = \"50ms\"\njson = true\n\
                [restart]\nstrategy = \"failure-rate\"\nfailures = 5\n";
    let settings = with_file(text, &["--parallelism", "4", "--json=false"]).unwrap();
    assert_eq!((settings.parallelism, settings.checkpoint_interval), (4, millis(50)));
    assert_eq!((settings.json, settings.checkpoint_timeout), (false, seconds(120)));
    let strategy = RestartStrategy::FailureRate { max_failures: 5, interval_ms: 60_000, delay_ms: 1_000 };
    assert_eq!(settings.execution().restart, strategy);
    let from = |name: &str| settings.effective().iter().find(|s| s.name == name).unwrap();
    assert_eq!((from("parallelism").from, from("parallelism").value.as_deref()), (Origin::Flag, Some("4")));
    assert_eq!(from("checkpoints").from, Origin::File);
    let timeout = from("checkpoint-timeout");
    assert_eq!((timeout.from, timeout.value.as_deref()), (Origin::Default, Some("2min")));
    assert_eq!(settings.check(), Ok(()));
}

#[test]
fn what_a_file_has_wrong_is_named_with_the_file() {
    let error = |text: &str| with_file(text, &[]).unwrap_err();
    let unknown = error("paralellism = 3");
    assert!(
        unknown.contains("job.toml:1: \"paralellism\"") && unknown.contains("\"parallelism\""),
        "{unknown}"
    );
    let zero = error("parallelism = 0");
    assert!(zero.contains("job.toml: parallelism = \"0\": each operator needs at least 1"), "{zero}");
    let mode = error("mode = \"twice\"");
    assert!(mode.contains("exactly-once"), "{mode}");
    assert!(error("settings = \"other.toml\"").contains("is no setting"));
    assert!(parse(&["--settings", "nowhere.toml"]).unwrap_err().contains("nowhere.toml cannot be read"));
}

#[test]
fn values_that_make_no_sense_are_refused_in_words() {
    let error = |args: &[&str]| parse(args).unwrap_err();
    assert!(error(&["--parallelism", "0"]).contains("each operator needs at least 1 subtask"));
    assert!(error(&["--parallelism=-1"]).contains("parallelism"));
    assert!(error(&["--retained", "0"]).contains("always kept"));
    assert!(error(&["--restart", "never"]).contains("there are none, fixed-delay"));
}

#[test]
fn a_file_in_the_place_of_the_folder_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let settings = parse(&["--checkpoints", path]).unwrap();
    assert_eq!(settings.check_folder(), Err(SettingsError::NoFolder { url: path.to_owned() }));
    let folder = tempfile::tempdir().unwrap();
    let settings = parse(&["--checkpoints", folder.path().join("new").to_str().unwrap()]).unwrap();
    assert_eq!(settings.check_folder(), Ok(()));
}

#[test]
fn a_setting_that_is_true_or_false_is_nothing_else() {
    assert!(parse(&["--json=yes"]).unwrap_err().contains("write true or false"));
    assert!(with_file("rewind = \"yes\"", &[]).unwrap_err().contains("write true or false"));
    assert!(parse(&["--json=1"]).unwrap().json);
}

#[test]
fn flags_without_a_value_are_true() {
    let settings = parse(&["--json", "--rewind", "--checkpoints", "c", "--restore", "c#1"]).unwrap();
    assert!(settings.json && settings.rewind && !settings.take_over);
}

#[test]
fn a_variable_that_looks_like_a_setting_is_noticed() {
    let names = [
        "TIDEGATE_PARALELISM",
        "TIDEGATE_MODE",
        "TIDEGATE_LOG",
        "TIDEGATE_FAULT",
        "PATH",
        "TIDEGATE_OF_MY_OWN",
    ];
    let mistyped = RunSettings::mistyped_variables(names.into_iter().map(str::to_owned));
    assert_eq!(mistyped, [("TIDEGATE_PARALELISM".to_owned(), "TIDEGATE_PARALLELISM".to_owned())]);
}
