//! `tidegate txn`: what an operator decides about transactions; here the decision to go on without a lost one.
//!
//! Owns: the verbs, the words about that decision, and that it is not put into the log beside a running job. Does not own: the log
//! ([`LogClient::forget`]), the verbs that speak with brokers ([`super::txn_broker`]). Runs on: the main thread, with a small
//! runtime.

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;

use super::CliError;
use super::folder::Place;
#[cfg(feature = "rdkafka")]
use super::txn_broker::{self, BrokerVerb};
use crate::engine::checkpoint::commit_log::{Forgotten, LogClient, NonceSource};
use crate::engine::io::TokioIo;
use crate::stdout;

/// Arguments of `tidegate txn`.
#[derive(Debug, clap::Args)]
pub(super) struct TxnArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    #[cfg(feature = "rdkafka")]
    #[command(flatten)]
    Broker(BrokerVerb),
    /// Put into the log of a job that failed with "transaction lost" that it goes on without that transaction: its records will not be
    /// in the output.
    Forget(ForgetArgs),
}

#[derive(Debug, clap::Args)]
struct ForgetArgs {
    /// The checkpoint folder: a path, file:///path, or s3://bucket/prefix.
    url: String,
    /// The transaction, in the words of the error that the job ended with.
    transaction: String,
    /// Print a JSON object instead of words.
    #[arg(long)]
    json: bool,
}

/// Exit status 0; 1 if there is nothing to decide about.
pub(super) fn run(args: &TxnArgs) -> Result<ExitCode, CliError> {
    match &args.verb {
        #[cfg(feature = "rdkafka")]
        Verb::Broker(verb) => txn_broker::run(verb),
        Verb::Forget(args) => forget(args),
    }
}

fn forget(args: &ForgetArgs) -> Result<ExitCode, CliError> {
    let place = Place::open(&args.url)?;
    if let Some(who) = place.who() {
        return Err(CliError::JobRuns { url: place.url, who: who.words() });
    }
    let forgotten = place.runtime.block_on(async {
        let io = TokioIo::shared(tokio::runtime::Handle::current());
        let log = LogClient::open_existing(place.storage.clone(), io).await?;
        // No job starts on the folder until the decision stands.
        let _held = place.hold(log.job().as_str())?;
        let mut nonces = NonceSource::new(random_seed());
        Ok::<_, CliError>(log.forget(&args.transaction, &mut nonces).await?)
    })?;
    if args.json {
        stdout::line(serde_json::to_string_pretty(&as_json(&forgotten)).expect("numbers and strings"));
    } else {
        stdout::line(in_words(&forgotten));
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells this process's entries from all others.
fn random_seed() -> u128 {
    let random = || u128::from(RandomState::new().hash_one(std::process::id()));
    (random() << 64) | random()
}

fn as_json(it: &Forgotten) -> serde_json::Value {
    serde_json::json!({
        "transaction": it.transaction.name.to_string(),
        "sink": it.transaction.name.scope.uid.to_string(),
        "after": it.transaction.name.opened_after.0,
        "up_to": it.transaction.closed_by.0,
        "checkpoint": it.checkpoint.0,
        "entry": it.entry.map(|entry| entry.0),
    })
}

fn in_words(it: &Forgotten) -> String {
    let name = &it.transaction.name;
    let stands = it.entry.map_or_else(
        || "it had been decided before".to_owned(),
        |entry| format!("entry {entry} of the log says so"),
    );
    format!(
        "the next start goes on without {name}, if it is still lost: {stands}\nrecords of \"{}\" after checkpoint {} up to checkpoint {} will \
         not be in the output; the start restores checkpoint {}",
        name.scope.uid, name.opened_after, it.transaction.closed_by, it.checkpoint
    )
}
