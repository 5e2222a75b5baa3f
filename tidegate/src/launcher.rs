//! From an author's function to a whole binary.
//!
//! Owns: the subcommands `run` and `explain`, and the exit status: 0 finished or canceled, 1 failed, 2 wrong usage, 3 taken over
//! by another process.
//! Does not own: the settings ([`RunSettings`]), the run ([`run_job`]).
//! Runs on: the main thread.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::engine::api::StreamEnvironment;
use crate::engine::error::JobError;
use crate::error::error_text;
use crate::explain::explain_job;
use crate::run_job::run_job;
use crate::settings::RunSettings;
use crate::stdout;
use crate::trace::log_to_stderr;
use crate::without_passwords::without_passwords;

#[derive(Debug, Parser)]
#[command(about = ABOUT, long_about = None, arg_required_else_help = true)]
struct Cli<A: clap::Args> {
    #[command(subcommand)]
    command: Command<A>,
}

/// What a job is whose author says nothing about it.
const ABOUT: &str = "A Tidegate job";
const RUN: &str = "Run the job in this process";
const EXPLAIN: &str = "Show what the job consists of and which settings hold, without running it";

#[derive(Debug, Subcommand)]
enum Command<A: clap::Args> {
    #[command(about = RUN, long_about = None)]
    Run(JobArgs<A>),
    #[command(about = EXPLAIN, long_about = None)]
    Explain(JobArgs<A>),
}

#[derive(Debug, clap::Args)]
struct JobArgs<A: clap::Args> {
    #[command(flatten)]
    job: A,
    #[command(flatten)]
    settings: RunSettings,
}

/// Makes a binary of a job: parses the command line, runs the job that `build` records, and answers with the exit status.
/// `A` is the job's own arguments; `()` when it has none. What its documentation says stands above the help.
pub fn launch<A, F>(name: &'static str, build: F) -> ExitCode
where
    A: clap::Args,
    F: Fn(&StreamEnvironment, &A) -> Result<(), JobError>,
{
    log_to_stderr();
    let mut command = command::<A>(name);
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let cli = match parsed.and_then(|matches| Cli::<A>::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => exit_for_usage(error.format(&mut command)),
    };
    let done = match &cli.command {
        Command::Run(args) => run_job(name, &args.settings, |env| build(env, &args.job)).map(drop),
        Command::Explain(args) => {
            explain_job(name, &args.settings, |env| build(env, &args.job)).map(stdout::text)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error_text(&error));
            ExitCode::from(error.exit_status())
        }
    }
}

/// Ends the process with what is wrong with its command line, or with the help that was asked for. A value that comes from a variable
/// is told as that: nobody typed the flag.
pub fn exit_for_usage(error: clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let text = usage_text(&error, &typed, |variable| std::env::var_os(variable).is_some());
    eprintln!("{}", without_passwords(&text));
    std::process::exit(error.exit_code());
}

fn usage_text(error: &clap::Error, typed: &[String], is_set: impl Fn(&str) -> bool) -> String {
    let text = error.to_string();
    let text = text.trim_end();
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        // What the parser did not say itself comes with the usage of the wrong command.
        let own = error.context().next().is_none();
        return text.split("\n\nUsage:").next().filter(|_| own).unwrap_or(text).to_owned();
    };
    let flag = argument.split([' ', '=', '[']).next().unwrap_or(argument);
    let variable = format!("TIDEGATE_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase());
    let was_typed = typed.iter().any(|word| word.split('=').next() == Some(flag));
    match !was_typed && is_set(&variable) {
        true => text.replacen(&format!("for '{argument}'"), &format!("for {variable}"), 1),
        false => text.to_owned(),
    }
}

/// The command line of a job, with what its author says about it: flattened arguments would lose that.
fn command<A: clap::Args>(name: &'static str) -> clap::Command {
    let version = concat!("(tidegate ", env!("CARGO_PKG_VERSION"), ")");
    let own = A::augment_args(clap::Command::new(name));
    let words = own.get_long_about().or(own.get_about()).map(ToString::to_string);
    let words = words.filter(|words| !words.is_empty());
    let above = |what: &str| match &words {
        Some(words) => format!("{words}\n\n{what}"),
        None => what.to_owned(),
    };
    Cli::<A>::command()
        .name(name)
        .bin_name(name)
        .version(version)
        .about(words.clone().unwrap_or_else(|| ABOUT.to_owned()))
        .mut_subcommand("run", |run| run.about(RUN).long_about(above(RUN)))
        .mut_subcommand("explain", |explain| explain.about(EXPLAIN).long_about(above(EXPLAIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums up what each user has ordered.
    #[derive(Debug, clap::Args)]
    struct Places {
        /// Folder of JSON lines.
        #[arg(long)]
        input: String,
    }

    fn help<A: clap::Args>(subcommand: &str) -> String {
        let help = command::<A>("totals").try_get_matches_from(["totals", subcommand, "--help"]);
        help.unwrap_err().to_string()
    }

    #[test]
    fn what_the_author_says_stands_above_the_help() {
        let top = command::<Places>("totals").render_help().to_string();
        assert!(top.starts_with("Sums up what each user has ordered"), "{top}");
        assert!(top.contains(RUN) && top.contains(EXPLAIN), "{top}");
        let run = help::<Places>("run");
        assert!(run.starts_with("Sums up what each user has ordered") && run.contains(RUN), "{run}");
        assert!(run.contains("--input") && run.contains("--checkpoint-interval"), "{run}");
        assert!(!run.contains("whichever layer"), "the settings' own words belong to the library: {run}");
    }

    fn told(args: &[&str], variable: Option<&str>) -> String {
        let mut command = command::<()>("totals");
        let words = [&["totals", "run"], args].concat();
        let error = match command.try_get_matches_from_mut(&words) {
            Ok(matches) => Cli::<()>::from_arg_matches(&matches).map(drop).unwrap_err(),
            Err(error) => error,
        };
        let typed: Vec<String> = args.iter().map(|&word| word.to_owned()).collect();
        usage_text(&error.format(&mut command), &typed, |name| variable == Some(name))
    }

    #[test]
    fn a_wrong_value_is_told_as_the_flags_or_the_variables() {
        let of_flag = told(&["--parallelism", "x"], Some("TIDEGATE_PARALLELISM"));
        assert!(of_flag.contains("for '--parallelism <N>'"), "{of_flag}");
        // The same error, as the parser makes it of a variable.
        let mut command = command::<()>("totals");
        let error = command.try_get_matches_from_mut(["totals", "run", "--parallelism=x"]).unwrap_err();
        let of_variable = usage_text(&error, &[], |name| name == "TIDEGATE_PARALLELISM");
        assert!(of_variable.contains("for TIDEGATE_PARALLELISM"), "{of_variable}");
    }

    #[test]
    fn what_the_parser_does_not_say_itself_comes_without_a_usage() {
        let text = told(&["--settings", "/nowhere.toml"], None);
        assert!(text.contains("/nowhere.toml") && !text.contains("Usage"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn a_job_without_words_has_ours() {
        assert!(command::<()>("totals").render_help().to_string().starts_with(ABOUT));
    }
}
