//! `orders import`: the real purchases as orders.
//!
//! Owns: the walk over the file, the order ids (line number without the header), and the refusal of broken lines.
//! Does not own: how a line is read ([`purchase`]), nor the output files ([`crate::partitions`]).
//! Runs on: the main thread.

mod calendar;
mod purchase;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use self::purchase::{BrokenPurchase, parse_purchase};
use crate::partitions::{MAX_PARTITIONS, Partitions};
use tidegate::stdout;
use tidegate_jobs::digits::grouped;
use tidegate_jobs::output_folder::OutputError;

/// The first column's name in the header line.
const HEADER_START: &str = "customer_id";

/// Flags of `orders import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The purchases: a header line, then customer id, date, number of CDs, dollar value.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Number of partition files.
    #[arg(long, value_name = "P", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=MAX_PARTITIONS))]
    pub(crate) partitions: u32,
    /// The folder to write to: new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace the part files that an earlier call wrote there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// What can go wrong with an import. No part appears then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// The input cannot be read.
    #[error(
        "cannot read {file}\n  help: give the path of the purchases; a clone has them in jobs/data/cdnow_purchases.txt"
    )]
    Read {
        /// The input.
        file: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The first line is not the header, so that the order ids would be off by one.
    #[error(
        "{file}:1: the header line is missing\n  help: the first line names the columns: customer_id date number_of_cds dollar_value"
    )]
    Header {
        /// The input.
        file: PathBuf,
    },
    /// A line is not a purchase.
    #[error(
        "{file}:{line}: this is not a purchase\n  help: correct the line or take it out; nothing has been written"
    )]
    Line {
        /// The input.
        file: PathBuf,
        /// Counted from 1, the header included, as editors do.
        line: u64,
        /// What is wrong with it.
        #[source]
        source: BrokenPurchase,
    },
    /// The output.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// What was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Imported {
    /// Orders written.
    pub(crate) orders: u64,
    /// Sum of their amounts.
    pub(crate) amount_cents: i64,
}

/// Writes the files and says so.
///
/// # Errors
/// [`ImportError`].
pub(crate) fn import(args: &ImportArgs) -> Result<ExitCode, ImportError> {
    let imported = import_purchases(&args.file, args.partitions, &args.out, args.force)?;
    stdout::line(format_args!(
        "{} orders worth {} cents in {} parts: {}",
        grouped(imported.orders),
        grouped(imported.amount_cents.unsigned_abs()),
        args.partitions,
        args.out.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Writes the files without a word.
///
/// # Errors
/// [`ImportError`].
pub(crate) fn import_purchases(
    file: &Path,
    partitions: u32,
    out: &Path,
    force: bool,
) -> Result<Imported, ImportError> {
    let unreadable = |source| ImportError::Read { file: file.into(), source };
    let mut lines = BufReader::new(File::open(file).map_err(unreadable)?).lines();
    let header = lines.next().transpose().map_err(unreadable)?.unwrap_or_default();
    if !header.trim_start().starts_with(HEADER_START) {
        return Err(ImportError::Header { file: file.into() });
    }
    let mut parts = Partitions::create(out, partitions, force)?;
    let mut imported = Imported { orders: 0, amount_cents: 0 };
    for line in lines {
        let order_id = imported.orders + 1;
        let order = parse_purchase(order_id, &line.map_err(unreadable)?)
            .map_err(|source| ImportError::Line { file: file.into(), line: order_id + 1, source })?;
        imported = Imported {
            orders: order_id,
            amount_cents: imported.amount_cents.saturating_add(order.amount_cents),
        };
        parts.append(&order)?;
    }
    parts.publish()?;
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::order::Order;

    const HEADER: &str = " customer_id  date number_of_cds  dollar_value\r\n";

    fn import_text(text: &str) -> (tempfile::TempDir, Result<Imported, ImportError>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("purchases.txt");
        fs::write(&file, text).unwrap();
        let outcome = import_purchases(&file, 2, &folder.path().join("out"), false);
        (folder, outcome)
    }

    #[test]
    fn a_line_becomes_the_order_of_its_number() {
        let (folder, outcome) =
            import_text(&format!("{HEADER} 00001 19970101  1   11.77\r\n 00002 19970112  5   77.00\r\n"));
        assert_eq!(outcome.unwrap(), Imported { orders: 2, amount_cents: 8_877 });
        let line = fs::read_to_string(folder.path().join("out/part-1.jsonl")).unwrap();
        let order: Order = serde_json::from_str(&line).unwrap();
        assert_eq!((order.order_id, order.user_id, order.amount_cents), (1, 1, 1_177));
        assert_eq!((order.status.as_str(), order.event_time_ms), ("paid", 852_076_800_000));
    }

    #[test]
    fn a_broken_line_is_named_and_nothing_appears() {
        let (folder, outcome) =
            import_text(&format!("{HEADER} 00001 19970101  1   11.77\r\n 00002 19971301  5   77.00\r\n"));
        let error = outcome.unwrap_err();
        assert!(matches!(error, ImportError::Line { line: 3, .. }), "{error:?}");
        assert!(error.to_string().contains("purchases.txt:3:"));
        assert!(!folder.path().join("out/part-0.jsonl").exists());
    }

    #[test]
    fn a_file_without_header_is_refused() {
        let (_folder, outcome) = import_text(" 00001 19970101  1   11.77\r\n");
        assert!(matches!(outcome, Err(ImportError::Header { .. })));
    }

    #[test]
    fn the_real_purchases_have_the_known_sum() {
        let out = tempfile::tempdir().unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cdnow_purchases.txt");
        let imported = import_purchases(&file, 3, out.path(), false).unwrap();
        assert_eq!(imported, Imported { orders: 69_659, amount_cents: 250_031_563 });
    }
}
