//! `orders scenario`: exactly-once on real Kafka and real MySQL, shown by experiments, each beside what it is compared with.
//!
//! Owns: the list of the scenarios, their order, and the exit status: 0 only when every check of every one holds.
//! Does not own: the servers ([`servers`]), the job on them ([`stage`]), the single scenarios (one file each), what is printed
//! ([`outcome`], [`grid`], [`page`]).
//! Runs on: the main thread; the job runs in child processes.
//!
//! | scenario | what is shown |
//! |---|---|
//! | [`a`] | no fault: the tables are what a plain loop makes of the topic |
//! | [`b`] | killed inside a transaction and restored: nothing counts twice; and what hangs when nobody restores |
//! | [`c`] | killed twice: the set of offsets against the set of rows, both ways |
//! | [`positions`] | a kill at each of four places, written by XA, staging tables and upsert |
//! | [`control`] | the same kills without checkpoints: more than 40 percent of the orders twice |
//! | [`latency`] | exactly-once beside at-least-once: latency, recovery, and what a reader sees twice |

mod a;
mod args;
mod b;
mod c;
mod control;
mod error;
mod grid;
mod latency;
mod notes;
mod outcome;
mod page;
mod positions;
mod servers;
mod settle;
mod stage;

use std::io::Write;
use std::process::ExitCode;

pub(crate) use self::args::ScenarioArgs;
use self::args::Which;
pub(crate) use self::error::ScenarioError;
use self::outcome::Outcome;
use self::servers::Servers;
use self::stage::Set;
use crate::address::SinkAddress;
use crate::ground;
use crate::work_folder::WorkFolder;
use tidegate::engine::error::chain_text;
use tidegate::stdout;
use tidegate_jobs::stopwatch::Stopwatch;

/// Runs the scenarios that were asked for, and prints what came out.
///
/// # Errors
/// [`ScenarioError`] when a scenario could not be played; the ones behind it are played, and what came out is printed first. One whose checks do
/// not hold is no error but exit status 1.
pub(crate) fn scenario(args: &ScenarioArgs) -> Result<ExitCode, ScenarioError> {
    let servers = Servers::of(args)?;
    ground::empty(&SinkAddress::Mysql(servers.mysql.clone()), args.parallelism, args.force)?;
    // A call that is refused leaves the report of the one before it.
    let folder = WorkFolder::fresh(&args.dir, "scenario")?;
    let set = Set { servers: &servers, folder: &folder, args };
    let (mut outcomes, mut unplayed) = (Vec::new(), None);
    for which in args.which.each() {
        let watch = Stopwatch::started();
        say(true, &format!("playing {which}\n"));
        match play(which, &set) {
            Ok(mut outcome) => {
                outcome.took_ms = watch.elapsed_ms();
                say(args.json, &outcome.to_text());
                outcomes.push(outcome);
            }
            Err(error) => {
                // The first one's reason is the last thing that is printed.
                let reason =
                    unplayed.as_ref().map_or_else(String::new, |_| format!(": {}", chain_text(&error)));
                say(true, &format!("{which} could not be played{reason}\n"));
                unplayed.get_or_insert(error);
            }
        }
    }
    if outcomes.is_empty()
        && let Some(error) = unplayed
    {
        return Err(error);
    }
    let all_hold = unplayed.is_none() && outcomes.iter().all(Outcome::ok);
    let report = args.report.clone().unwrap_or_else(|| folder.report());
    page::write(&report, &outcomes)?;
    let verdict = if all_hold { "yes" } else { "no" };
    say(args.json, &format!("  all as it must be: {verdict:<34}details: {}\n", report.display()));
    if args.json {
        stdout::line(outcome::to_json(&outcomes));
    }
    match unplayed {
        Some(error) => Err(error),
        None => Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
    }
}

fn play(which: Which, set: &Set<'_>) -> Result<Outcome, ScenarioError> {
    match which {
        Which::A => a::play(set),
        Which::B => b::play(set),
        Which::C => c::play(set),
        Which::Positions => positions::play(set),
        Which::Control => control::play(set),
        Which::Latency => latency::play(set),
        Which::All => Ok(Outcome::default()),
    }
}

/// To standard error where something else has the output. A reader that has seen enough closes the pipe: the exit status still tells.
fn say(json: bool, text: &str) {
    match json {
        true => drop(std::io::stderr().write_all(text.as_bytes())),
        false => stdout::text(text),
    }
}
