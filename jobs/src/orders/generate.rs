//! `orders generate`: made-up orders, the same for the same seed.
//!
//! Owns: what a made-up order looks like ([`order_of`] is a pure function of seed and id).
//! Does not own: the files ([`crate::partitions`]).
//! Runs on: the main thread.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::order::{Order, PAID, Place};
use crate::partitions::{MAX_PARTITIONS, Partitions};
use tidegate::stdout;
use tidegate_jobs::digits::grouped;
use tidegate_jobs::output_folder::OutputError;
use tidegate_jobs::random::SplitMix64;

/// 2026-01-01 00:00 UTC.
const FIRST_EVENT_TIME_MS: i64 = 1_767_225_600_000;
/// Between one order and the next.
const STEP_MS: i64 = 10;
/// An order may be this much older than its place in the file says, so that event time has some disorder.
const DISORDER_MS: u64 = 2_000;
/// Amounts are below this.
const AMOUNT_BOUND_CENTS: u64 = 50_000;

/// Flags of `orders generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Number of orders; their ids are 1..N.
    #[arg(long, value_name = "N")]
    pub(crate) orders: u64,
    /// Number of users; their ids are 1..U.
    #[arg(long, value_name = "U", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// Number of partition files.
    #[arg(long, value_name = "P", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=MAX_PARTITIONS))]
    pub(crate) partitions: u32,
    /// Another seed gives other orders.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The folder to write to: new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace the part files that an earlier call wrote there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Writes the files and says so.
///
/// # Errors
/// [`OutputError`]; then no part has appeared, or the error says which file was in the way.
pub(crate) fn generate(args: &GenerateArgs) -> Result<ExitCode, OutputError> {
    write_orders(args)?;
    stdout::line(format_args!(
        "{} orders in {} parts: {}",
        grouped(args.orders),
        args.partitions,
        args.out.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Writes the files without a word.
///
/// # Errors
/// As [`generate`].
pub(crate) fn write_orders(args: &GenerateArgs) -> Result<(), OutputError> {
    let mut partitions = Partitions::create(&args.out, args.partitions, args.force)?;
    for order_id in 1..=args.orders {
        partitions.append(&order_of(args.seed, order_id, args.users))?;
    }
    partitions.publish()
}

/// Order `order_id` of the data set with this seed and number of users.
pub(crate) fn order_of(seed: u64, order_id: u64, users: u64) -> Order {
    let mut random = SplitMix64::for_item(seed, order_id);
    let due_ms = FIRST_EVENT_TIME_MS.saturating_add((order_id.cast_signed() - 1).saturating_mul(STEP_MS));
    Order {
        order_id,
        user_id: 1 + random.below(users),
        amount_cents: random.below(AMOUNT_BOUND_CENTS).cast_signed(),
        status: PAID.to_owned(),
        event_time_ms: due_ms - random.below(DISORDER_MS + 1).cast_signed(),
        place: Place::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    fn args(out: PathBuf, seed: u64) -> GenerateArgs {
        GenerateArgs { orders: 300, users: 10, partitions: 3, seed, out, force: false }
    }

    fn parts(args: &GenerateArgs) -> Vec<String> {
        (0..args.partitions)
            .map(|part| fs::read_to_string(args.out.join(format!("part-{part}.jsonl"))).unwrap())
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        let folder = tempfile::tempdir().unwrap();
        let [first, again, other] = [("first", 1), ("again", 1), ("other", 2)]
            .map(|(name, seed)| args(folder.path().join(name), seed));
        for args in [&first, &again, &other] {
            write_orders(args).unwrap();
        }
        assert_eq!(parts(&first), parts(&again));
        assert_ne!(parts(&first), parts(&other));
    }

    #[test]
    fn every_id_stands_once_and_in_its_partition() {
        let folder = tempfile::tempdir().unwrap();
        let args = args(folder.path().join("out"), 1);
        write_orders(&args).unwrap();
        let mut ids = BTreeSet::new();
        for (part, text) in (0..).zip(parts(&args)) {
            for line in text.lines() {
                let order: Order = serde_json::from_str(line).unwrap();
                assert_eq!(order.order_id % 3, part);
                assert!((1..=10).contains(&order.user_id));
                assert_eq!(order, order_of(1, order.order_id, 10));
                assert!(ids.insert(order.order_id));
            }
        }
        assert_eq!(ids, (1..=300).collect());
    }

    #[test]
    fn the_line_has_the_documented_form() {
        let order = Order {
            order_id: 1,
            user_id: 2,
            amount_cents: 3,
            status: PAID.into(),
            event_time_ms: 4,
            place: Place { partition: 5, offset: 6 },
        };
        let line = r#"{"order_id":1,"user_id":2,"amount_cents":3,"status":"paid","event_time_ms":4}"#;
        assert_eq!(serde_json::to_string(&order).unwrap(), line);
    }
}
