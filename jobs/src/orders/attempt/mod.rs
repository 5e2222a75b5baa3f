//! One run of `orders run` as a child process, watched from outside and, when wanted, killed at a given place.
//!
//! Owns: the loop over the child's events, the kill, and the judgement of how the run ended.
//! Does not own: the process and its pipes (`tidegate_jobs::child`), where to kill ([`KillPoint`]), what is shown
//! ([`Observer`]).
//! Runs on: the watcher's thread.
//!
//! What counts is what the child had *said* when it died: after the kill its pipe is read to the end, so that a
//! checkpoint completed in the last moment is known, and a run that finished before the signal came is not taken
//! for a killed one.

mod position;

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

pub(crate) use self::position::{KillPoint, Position};
use tidegate::RunEvent;
use tidegate_jobs::child::{Child, ChildError, Ending};

/// A run that reports nothing for so long is taken for hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody who wants to see how it goes.
pub(crate) trait Observer {
    /// The child has said `event`, and now stands at `position`.
    fn event(&mut self, event: &RunEvent, position: &Position);
}

/// What can go wrong with a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    /// The process or its output.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// The run was over before it came to the place of its kill, or before the kill came.
    #[error(
        "the run finished before it could be killed ({records_in} orders, {checkpoints} checkpoints)\n  help: give it \
         more orders, or a shorter --checkpoint-interval"
    )]
    FinishedBeforeKill {
        /// Orders read.
        records_in: u64,
        /// Checkpoints completed.
        checkpoints: u64,
    },
    /// The run said itself that it has failed.
    #[error("the run failed: {error}{}", shown(error_output))]
    Failed {
        /// In its own words.
        error: String,
        /// The last lines of its error output.
        error_output: Vec<String>,
    },
    /// The run ended with neither `finished` nor `failed`.
    #[error("the run ended unexpectedly ({status}){}", shown(error_output))]
    Died {
        /// Exit code or signal.
        status: ExitStatus,
        /// The last lines of its error output.
        error_output: Vec<String>,
    },
}

/// Error output, each line behind a bar.
fn shown(error_output: &[String]) -> String {
    error_output.iter().map(|line| format!("\n  | {line}")).collect()
}

/// Runs `command` until `point` is reached, kills it there, and answers where it stood.
///
/// # Errors
/// [`AttemptError`] for every ending but this one.
pub(crate) fn run_and_kill(
    command: Command,
    point: KillPoint,
    observer: &mut dyn Observer,
) -> Result<Position, AttemptError> {
    run_and_kill_when(command, &|position| point.is_reached(position), observer)
}

/// Runs `command` until an event after which `is_time` says so, kills it there, and answers where it stood.
///
/// # Errors
/// [`AttemptError`] for every ending but this one.
pub(crate) fn run_and_kill_when(
    command: Command,
    is_time: &dyn Fn(&Position) -> bool,
    observer: &mut dyn Observer,
) -> Result<Position, AttemptError> {
    died(watch(command, Some(is_time), observer)?)
}

/// Runs `command`, which has been told to die by itself at a fault point, and answers where it stood.
///
/// # Errors
/// [`AttemptError`] for every ending but this one.
pub(crate) fn run_and_die(command: Command, observer: &mut dyn Observer) -> Result<Position, AttemptError> {
    died(watch(command, None, observer)?)
}

fn died(run: Watched) -> Result<Position, AttemptError> {
    match run.last_word {
        None if run.ending.was_killed() => Ok(run.position),
        Some(RunEvent::Finished { records_in, .. }) => {
            Err(AttemptError::FinishedBeforeKill { records_in, checkpoints: run.position.checkpoints })
        }
        other => Err(failure(other, run.ending)),
    }
}

/// Runs `command` until it has finished, and answers where it stood then.
///
/// # Errors
/// [`AttemptError`] for every ending but this one.
pub(crate) fn run_to_the_end(
    command: Command,
    observer: &mut dyn Observer,
) -> Result<Position, AttemptError> {
    let run = watch(command, None, observer)?;
    match run.last_word {
        Some(RunEvent::Finished { .. }) if run.ending.status.success() => Ok(run.position),
        other => Err(failure(other, run.ending)),
    }
}

fn failure(last_word: Option<RunEvent>, ending: Ending) -> AttemptError {
    let Ending { status, error_output } = ending;
    match last_word {
        Some(RunEvent::Failed { error }) => AttemptError::Failed { error, error_output },
        _ => AttemptError::Died { status, error_output },
    }
}

/// A run that has ended, one way or another.
struct Watched {
    position: Position,
    last_word: Option<RunEvent>,
    ending: Ending,
}

fn watch(
    mut command: Command,
    kill: Option<&dyn Fn(&Position) -> bool>,
    observer: &mut dyn Observer,
) -> Result<Watched, AttemptError> {
    command.stdin(Stdio::null());
    let mut child = Child::<RunEvent>::start(command)?;
    let mut position = Position::default();
    let mut last_word = None;
    let mut killed = false;
    while let Some(event) = next_event(&mut child, killed)? {
        position.advance(&event);
        observer.event(&event, &position);
        if !killed && kill.is_some_and(|is_time| is_time(&position)) {
            child.kill()?;
            killed = true;
        }
        if matches!(event, RunEvent::Finished { .. } | RunEvent::Failed { .. }) {
            last_word = Some(event);
        }
    }
    Ok(Watched { position, last_word, ending: child.wait()? })
}

/// The next event; a line that the kill cut off counts as not said.
fn next_event(child: &mut Child<RunEvent>, killed: bool) -> Result<Option<RunEvent>, ChildError> {
    match child.next_event(PATIENCE) {
        Err(ChildError::Line { .. }) if killed => Ok(None),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(Vec<RunEvent>);

    impl Observer for Log {
        fn event(&mut self, event: &RunEvent, _position: &Position) {
            self.0.push(event.clone());
        }
    }

    const PROGRESS: &str =
        r#"echo '{"event":"progress","records_in":50,"records_total":100,"checkpoints":1,"prepared":2}';"#;
    const FINISHED: &str = r#"echo '{"event":"finished","records_in":100,"checkpoints":3,"elapsed_ms":9}';"#;
    const CHECKPOINT: &str = r#"echo '{"event":"checkpoint","id":7,"duration_ms":1,"bytes":1}';"#;
    /// Stands still until it is killed.
    const STOP: &str = "kill -STOP $$;";
    const KILL: KillPoint =
        KillPoint { records_in: 40, records_in_at_last: 40, checkpoints: 1, records_after_checkpoint: 0 };

    fn run(script: &[&str], kill: Option<KillPoint>) -> (Result<Position, AttemptError>, usize) {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script.concat());
        let mut log = Log::default();
        let outcome = match kill {
            Some(point) => run_and_kill(command, point, &mut log),
            None => run_to_the_end(command, &mut log),
        };
        (outcome, log.0.len())
    }

    #[test]
    fn a_run_left_alone_finishes() {
        let (outcome, events) = run(&[PROGRESS, CHECKPOINT, FINISHED], None);
        assert!(matches!(outcome, Ok(Position { records_in: 100, .. })), "{outcome:?}");
        assert_eq!(events, 3);
    }

    #[test]
    fn a_run_is_killed_at_its_place_and_its_last_words_are_heard() {
        let (outcome, _) = run(&[CHECKPOINT, PROGRESS, STOP], Some(KILL));
        let position = outcome.unwrap();
        assert_eq!((position.records_in, position.prepared, position.newest_checkpoint), (50, 2, Some(7)));
    }

    #[test]
    fn a_run_without_a_completed_checkpoint_is_not_killed() {
        let script = PROGRESS.replace(r#""checkpoints":1"#, r#""checkpoints":0"#);
        let (outcome, _) = run(&[&script, FINISHED], Some(KILL));
        assert!(matches!(outcome, Err(AttemptError::FinishedBeforeKill { .. })), "{outcome:?}");
    }

    #[test]
    fn a_run_that_finishes_while_the_kill_is_under_way_is_not_taken_for_killed() {
        // One write for both lines, so that the kill cannot fall between them.
        let [progress, finished] =
            [PROGRESS, FINISHED].map(|line| line.trim_start_matches("echo ").trim_end_matches(';'));
        let both = format!("printf '%s\\n%s\\n' {progress} {finished};");
        let (outcome, _) = run(&[&both, STOP], Some(KILL));
        assert!(
            matches!(outcome, Err(AttemptError::FinishedBeforeKill { records_in: 100, .. })),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_run_that_dies_by_itself_is_heard_to_its_last_words() {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg([CHECKPOINT, PROGRESS, "kill -KILL $$"].concat());
        let position = run_and_die(command, &mut Log::default()).unwrap();
        assert_eq!((position.records_in, position.newest_checkpoint), (50, Some(7)));
        let mut finishes = Command::new("/bin/sh");
        finishes.arg("-c").arg(FINISHED);
        let outcome = run_and_die(finishes, &mut Log::default());
        assert!(matches!(outcome, Err(AttemptError::FinishedBeforeKill { .. })), "{outcome:?}");
    }

    #[test]
    fn a_run_that_fails_or_dies_says_why() {
        let failed = r#"echo '{"event":"failed","error":"disk full"}'; echo more >&2; exit 1"#;
        let (outcome, _) = run(&[failed], None);
        assert_eq!(outcome.unwrap_err().to_string(), "the run failed: disk full\n  | more");
        let (outcome, _) = run(&["echo oh no >&2; exit 101"], Some(KILL));
        assert!(matches!(outcome, Err(AttemptError::Died { .. })), "{outcome:?}");
    }
}
