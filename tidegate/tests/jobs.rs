//! Jobs written against `tidegate` alone, run in this process: what an author meets.
//!
//! Owns: folders of other jobs, changed state types, missing uids.
//! Does not own: crashes, which need a process (see the tests of `orders`).
//! Runs on: the test thread.
#![allow(clippy::unwrap_used, reason = "a test program")]

use tempfile::TempDir;
use tidegate::clap::Parser;
use tidegate::prelude::*;
use tidegate::{JobOutcome, RunError, RunEvent, RunSettings, Watcher, error_text, run_job_watched};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: RunSettings,
}

#[derive(Default)]
struct Log(Vec<RunEvent>);

impl Watcher for Log {
    fn event(&mut self, event: &RunEvent) {
        self.0.push(event.clone());
    }
}

type Build<'a> = &'a dyn Fn(&StreamEnvironment) -> Result<()>;

fn run(folder: &TempDir, job: &str, more: &[&str], build: Build<'_>) -> (Result<JobOutcome, RunError>, Log) {
    let url = format!("file://{}", folder.path().display());
    let line = [&["job", "--checkpoints", &url, "--checkpoint-interval", "10ms"], more].concat();
    let settings = Line::parse_from(line).settings;
    let mut log = Log::default();
    (run_job_watched(job, &settings, |env| build(env), &mut log), log)
}

fn refusal(run: (Result<JobOutcome, RunError>, Log)) -> String {
    error_text(&run.0.unwrap_err())
}

/// `count` numbers, counted by their last digit in a state of type `S`; it fails at the number 5,000.
fn counting<S>(env: &StreamEnvironment, uid: &str, change: fn(&mut S)) -> Result<()>
where
    S: StateType + Default + Clone + Send + Sync,
{
    env.source("numbers", Datagen::new(|index| index).rate_per_second(20_000))
        .key_by(|number| number % 10)
        .process(uid, value::<S>("totals"), move |number: u64, totals, _, out: &mut Output<u64>| {
            if number == 5_000 {
                return Err(JobError::msg("five thousand").final_());
            }
            totals.update(change)?;
            out.emit(number);
            Ok(())
        })
        .sink("out", BlackholeSink::new());
    Ok(())
}

mod first {
    use super::*;
    #[derive(Clone, Default, StateType)]
    pub(crate) struct Totals {
        pub amount_cents: i32,
    }
}

mod wider {
    use super::*;
    #[derive(Clone, Default, StateType)]
    pub(crate) struct Totals {
        pub amount_cents: i64,
    }
}

mod longer {
    use super::*;
    #[derive(Clone, Default, StateType)]
    pub(crate) struct Totals {
        pub amount_cents: i32,
        pub note: Option<String>,
    }
}

fn interrupted() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let failed = refusal(run(&folder, "sums", &[], &|env| {
        counting::<first::Totals>(env, "sum", |totals| totals.amount_cents += 1)
    }));
    assert!(failed.contains("five thousand"), "{failed}");
    folder
}

#[test]
fn a_folder_belongs_to_one_job() {
    let folder = interrupted();
    let text = refusal(run(&folder, "others", &[], &|env| {
        counting::<first::Totals>(env, "sum", |totals| totals.amount_cents += 1)
    }));
    assert!(text.contains("belongs to job \"sums\", not to \"others\"") && text.contains("help"), "{text}");
}

#[test]
fn a_field_of_another_type_is_refused_by_state_field_was_and_is() {
    let folder = interrupted();
    let text = refusal(run(&folder, "sums", &[], &|env| {
        counting::<wider::Totals>(env, "sum", |totals| totals.amount_cents += 1)
    }));
    for word in ["sum", "totals", "amount_cents", "i32", "i64"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[test]
fn an_added_optional_field_is_restored_as_none() {
    let folder = interrupted();
    let (outcome, log) = run(&folder, "sums", &[], &|env| {
        counting::<longer::Totals>(env, "sum", |totals| assert_eq!(totals.note, None))
    });
    assert!(error_text(&outcome.unwrap_err()).contains("five thousand"));
    assert!(matches!(log.0[0], RunEvent::Started { restored: Some(_), .. }), "{:?}", log.0[0]);
}

#[test]
fn state_of_an_operator_that_is_gone_is_dropped_only_on_request() {
    let folder = interrupted();
    let renamed: Build<'_> = &|env| counting::<first::Totals>(env, "total", |_| ());
    let text = refusal(run(&folder, "sums", &[], renamed));
    assert!(text.contains("\"sum\"") && text.contains("--allow-non-restored-state"), "{text}");
    let (outcome, log) = run(&folder, "sums", &["--allow-non-restored-state"], renamed);
    assert!(error_text(&outcome.unwrap_err()).contains("five thousand"));
    assert!(matches!(log.0[0], RunEvent::Started { restored: Some(_), .. }), "{:?}", log.0[0]);
}

#[test]
fn an_operator_without_a_uid_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, _) = run(&folder, "sums", &[], &|env| {
        env.source("", Datagen::new(|index| index).bounded(1)).sink("out", BlackholeSink::new());
        Ok(())
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.exit_status(), 1);
    assert!(error.to_string().contains("uid"), "{error}");
}

#[test]
fn a_job_runs_to_its_end_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, log) = run(&folder, "few", &["--parallelism", "3"], &|env| {
        env.source("numbers", Datagen::new(|index| index).bounded(500))
            .map(|number| number * 2)
            .filter(|number| number % 3 == 0)
            .sink("out", BlackholeSink::new());
        Ok(())
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    assert!(matches!(log.0.last(), Some(RunEvent::Finished { records_in: 500, .. })), "{:?}", log.0);
}
