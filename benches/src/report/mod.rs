//! How an outcome is shown: a table, one JSON object, a page with bars.
//!
//! Owns: which of them are wanted. Does not own: figures. Runs on: the main thread, after the last round.

mod html;
mod json;
mod text;

use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::harness::Outcome;

/// Prints the table, then (with `json`) the object as the last line, and writes the page.
///
/// # Errors
/// A page that cannot be written.
pub(crate) fn show(outcome: &Outcome, json: bool, page: Option<&Path>) -> Result<(), BenchError> {
    print!("{}", text::table(outcome));
    if let Some(path) = page {
        std::fs::write(path, html::page(outcome))
            .map_err(|source| BenchError::Report { path: PathBuf::from(path), source })?;
        println!("report: {}", path.display());
    }
    if json {
        println!("{}", json::object(outcome));
    }
    Ok(())
}
