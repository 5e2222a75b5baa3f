//! The control group: what the same kills do to a job that restarts without its checkpoints.
//!
//! Owns: the script of the kills, the two ways to restart badly, and how much damage must show.
//! Does not own: the job ([`crate::run`]), the audit ([`crate::verify`]).
//! Runs on: the main thread; the job runs in child processes.
//!
//! The script: the input lasts for several checkpoint intervals, and each kill falls 0.8 of an interval after a checkpoint was
//! complete, or, where there are no checkpoints, would have been. A proof that could not show damage would prove nothing: a
//! control without it fails.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use super::display::Display;
use super::error::TortureError;
use super::run_watch::RunWatch;
use super::schedule::{Spot, Strike};
use crate::address::{SinkAddress, SourceAddress};
use crate::attempt::{AttemptError, KillPoint, run_and_kill, run_to_the_end};
use crate::run_line::RunLine;
use crate::verify::{Verdict, audit};
use crate::work_folder::WorkFolder;
use tidegate_jobs::digits::grouped;

/// Tenths of an interval between a completion and its kill.
const BEHIND_TENTHS: u64 = 8;
/// Orders a second, at most; a longer input gets longer intervals.
const RATE_MAX: u64 = 10_000;
/// How often a part is run before a machine counts as too slow for it.
const TRIES_MAX: u32 = 5;
/// The shortest interval: in it a checkpoint has time to complete, also on a busy machine.
const INTERVAL_MS_MIN: u64 = 500;

/// `--mode` of the control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BadRestart {
    /// No checkpoints: a restart begins at the beginning.
    None,
    /// A restart begins where the dead process had read to, whatever had become of it.
    AtMostOnce,
}

/// When the kills fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Script {
    /// How many.
    pub(crate) kills: u32,
    /// Orders in one checkpoint interval.
    per_interval: u64,
    /// Orders a second.
    pub(crate) rate: u64,
    /// The checkpoint interval.
    pub(crate) interval: Duration,
}

impl Script {
    /// The script for an input of so many orders: it lasts for one interval more than there are kills and 0.6 of another one;
    /// where each kill skips what was read, for 2.2 intervals a kill.
    pub(crate) fn new(restart: BadRestart, kills: u32, orders: u64, interval: Option<Duration>) -> Self {
        let tenths = match restart {
            BadRestart::None => u64::from(kills) * 10 + 16,
            BadRestart::AtMostOnce => u64::from(kills) * 22,
        };
        let per_interval = (orders * 10 / tenths).max(1);
        let shortest = Duration::from_millis((per_interval * 1_000 / RATE_MAX).max(INTERVAL_MS_MIN));
        let interval = interval.unwrap_or(shortest);
        let rate = (u128::from(per_interval) * 1_000 / interval.as_millis().max(1)).max(1);
        Self { kills, per_interval, rate: u64::try_from(rate).unwrap_or(u64::MAX), interval }
    }

    /// The same script at half the speed: the kills fall at the same orders, and everything between them has twice the time.
    fn slower(self) -> Self {
        Self { rate: (self.rate / 2).max(1), interval: self.interval * 2, ..self }
    }

    fn behind(self) -> u64 {
        self.per_interval * BEHIND_TENTHS / 10
    }

    /// The same kills for the job as it should be.
    pub(crate) fn strikes(self, parallelism: u32) -> Vec<Strike> {
        let strike = Strike::alone(Spot::Behind { records: self.behind() }, parallelism);
        vec![strike; usize::try_from(self.kills).unwrap_or(0)]
    }
}

/// How the control ended.
#[derive(Debug)]
pub(crate) struct Control {
    /// How it restarted.
    pub(crate) restart: BadRestart,
    /// For each kill: orders read by the process that died. All of them are read again, or those not yet committed never.
    pub(crate) read: Vec<u64>,
    /// The audit.
    pub(crate) verdict: Verdict,
}

impl BadRestart {
    /// As on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::AtMostOnce => "at-most-once",
        }
    }

    /// What share of the orders must be damaged, in percent.
    pub(crate) fn damage_percent_min(self) -> u64 {
        match self {
            Self::None => 40,
            Self::AtMostOnce => 30,
        }
    }
}

impl Control {
    /// Rows too many, or orders too few.
    pub(crate) fn damaged(&self) -> u64 {
        match self.restart {
            BadRestart::None => self.verdict.orders().duplicates,
            BadRestart::AtMostOnce => self.verdict.orders().lost,
        }
    }

    /// Whether as much damage shows as the script must do.
    pub(crate) fn proves(&self) -> bool {
        let orders = u128::from(self.verdict.orders().expected);
        u128::from(self.damaged()) * 100 > orders * u128::from(self.restart.damage_percent_min())
    }
}

/// Runs a part of the proof, and once more at half the speed where it had finished before it could be killed: kills fall at numbers of
/// orders and checkpoints at times, so that a busy machine can be late for a kill. `run` is called with the part's name and script.
///
/// # Errors
/// [`TortureError`]; also that it was too late in every try.
pub(crate) fn in_time<T>(
    part: &str,
    script: Script,
    display: &Display,
    mut run: impl FnMut(&str, Script) -> Result<T, TortureError>,
) -> Result<T, TortureError> {
    let (mut script, mut name) = (script, part.to_owned());
    for again in 2..=TRIES_MAX {
        match run(&name, script) {
            Err(TortureError::NotKilled { source: AttemptError::FinishedBeforeKill { .. }, .. }) => {
                script = script.slower();
                name = format!("{part}-{again}");
                let interval = script.interval.as_millis();
                display.line(&format!(
                    "  the machine is busy, and the run had finished before a kill: once more, at half the speed \
                     (checkpoints every {interval} ms)"
                ));
            }
            done => return done,
        }
    }
    run(&name, script)
}

/// Runs the control in its folder; the input stands in `input`.
///
/// # Errors
/// [`TortureError`].
pub(crate) fn run(
    restart: BadRestart,
    script: Script,
    line: &RunLine,
    folder: &WorkFolder,
    sink: SinkAddress,
    display: &Display,
) -> Result<Control, TortureError> {
    let mut line = RunLine {
        sink,
        checkpoints: (restart == BadRestart::AtMostOnce).then(|| folder.checkpoints()),
        ..line.clone()
    };
    let whole_input = line.source.clone();
    let mut read = Vec::new();
    for number in 1..=script.kills {
        let watch = &mut RunWatch::started();
        let command = line.command().map_err(TortureError::Program)?;
        let died = run_and_kill(command, kill_point(restart, script), watch).map_err(|source| {
            let place = "control".to_owned();
            TortureError::NotKilled { number: read.len() + 1, place, source }
        })?;
        read.push(died.records_in);
        let orders = grouped(died.records_in);
        match restart {
            BadRestart::None => {
                display.line(&format!("  kill {number:>4}   at {orders} orders, which are read again"));
            }
            BadRestart::AtMostOnce => {
                let left = folder.input_left(number);
                cut(&line.source, died.records_in, &left)?;
                line = RunLine { source: SourceAddress::Files(left), restore: "none", ..line };
                display.line(&format!(
                    "  kill {number:>4}   at {orders} orders; what was not committed of them is not read again"
                ));
            }
        }
        display.killed();
    }
    line.rate = None;
    let command = line.command().map_err(TortureError::Program)?;
    run_to_the_end(command, &mut RunWatch::started()).map_err(TortureError::LastRun)?;
    Ok(Control { restart, read, verdict: audit(&whole_input, &line.sink)? })
}

fn kill_point(restart: BadRestart, script: Script) -> KillPoint {
    match restart {
        BadRestart::None => {
            let records_in = script.per_interval + script.behind();
            KillPoint {
                records_in,
                records_in_at_last: records_in,
                checkpoints: 0,
                records_after_checkpoint: 0,
            }
        }
        BadRestart::AtMostOnce => KillPoint {
            records_in: 0,
            records_in_at_last: 0,
            checkpoints: 1,
            records_after_checkpoint: script.behind(),
        },
    }
}

/// Writes what stands behind the first `lines` lines of the only file of `input` into the folder `left`.
fn cut(source: &SourceAddress, lines: u64, left: &Path) -> Result<(), TortureError> {
    const PART: &str = "part-0.jsonl";
    let SourceAddress::Files(input) = source else {
        return Err(TortureError::NotCut { source_address: source.to_string() });
    };
    let from = input.join(PART);
    let copy = || {
        fs::create_dir(left)?;
        let mut to = BufWriter::new(File::create(left.join(PART))?);
        let skipped = usize::try_from(lines).unwrap_or(usize::MAX);
        for line in BufReader::new(File::open(&from)?).lines().skip(skipped) {
            writeln!(to, "{}", line?)?;
        }
        to.flush()
    };
    copy().map_err(|source| TortureError::Cut { path: from.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_replays_more_than_half_of_the_run() {
        for kills in 3..20 {
            let script = Script::new(BadRestart::None, kills, 20_000, None);
            assert!(script.behind() * u64::from(kills) * 2 >= 20_000, "{script:?}");
            assert!(script.per_interval * 4 <= 20_000, "the run is at least four intervals long: {script:?}");
            assert!(script.rate <= RATE_MAX, "{script:?}");
        }
    }

    #[test]
    fn a_run_that_finished_before_its_kill_is_run_again_at_half_the_speed_with_the_kills_at_the_same_orders()
    {
        let display = Display::new(true, 3);
        let script = Script::new(BadRestart::None, 3, 20_000, None);
        let late = || TortureError::NotKilled {
            number: 3,
            place: "control".to_owned(),
            source: AttemptError::FinishedBeforeKill { records_in: 20_000, checkpoints: 3 },
        };
        let mut runs = Vec::new();
        let done = in_time("control", script, &display, |name, script| {
            runs.push((name.to_owned(), script));
            if runs.len() < 3 { Err(late()) } else { Ok(runs.len()) }
        });
        assert_eq!(done.unwrap(), 3);
        assert_eq!((runs[0].0.as_str(), runs[2].0.as_str()), ("control", "control-3"));
        assert_eq!(runs[2].1.interval, script.interval * 4);
        assert!(runs[2].1.rate <= script.rate / 4 + 1 && runs[2].1.strikes(1) == script.strikes(1));

        let mut tries = 0;
        let never = in_time("control", script, &display, |_, _| -> Result<(), _> {
            tries += 1;
            Err(late())
        });
        assert!(never.is_err() && tries == TRIES_MAX);
        let other = in_time("control", script, &display, |_, _| -> Result<(), _> {
            tries += 1;
            Err(TortureError::Program(std::io::Error::other("gone")))
        });
        assert!(matches!(other, Err(TortureError::Program(_))) && tries == TRIES_MAX + 1);
    }

    #[test]
    fn a_cut_leaves_what_stands_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let (input, left) = (folder.path().join("in"), folder.path().join("left"));
        fs::create_dir(&input).unwrap();
        fs::write(input.join("part-0.jsonl"), "a\nb\nc\n").unwrap();
        cut(&SourceAddress::Files(input), 2, &left).unwrap();
        assert_eq!(fs::read_to_string(left.join("part-0.jsonl")).unwrap(), "c\n");
    }

    #[test]
    fn a_control_without_damage_proves_nothing() {
        let control = |duplicates| {
            let log = crate::verify::verdict::TableVerdict {
                expected: 100,
                actual: 100 + duplicates,
                duplicates,
                ..Default::default()
            };
            let verdict = Verdict::of([("t_order_log", log)]);
            Control { restart: BadRestart::None, read: Vec::new(), verdict }
        };
        assert!(!control(40).proves(), "40 percent is not above 40 percent");
        assert!(control(41).proves());
    }
}
