//! An outcome as a table for people.
//!
//! Owns: the columns. Does not own: figures. Runs on: plain data.

use std::fmt::Write;

use crate::harness::{Outcome, Run};

/// The table, its figures and targets.
pub(super) fn table(outcome: &Outcome) -> String {
    let mut text = String::new();
    let settings: Vec<String> =
        outcome.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let _ = writeln!(text, "{} · {}\n", outcome.benchmark, settings.join(" · "));
    let widest = outcome.measured.iter().map(|m| m.name.chars().count()).max().unwrap_or(0);
    let mut group = "";
    for measured in &outcome.measured {
        if measured.group != group {
            group = measured.group;
            let head = "million records/s min  median     max   ns/record   CPU ns";
            let _ = writeln!(text, "  {group:<widest$}  {head}");
        }
        let (rate, ns, cpu) =
            (measured.spread(Run::rate), measured.spread(Run::ns), measured.spread(Run::cpu_ns));
        let _ = write!(
            text,
            "    {:<widest$}  {:>19.2} {:>7.2} {:>7.2} {:>11.2} {:>8.2}",
            measured.name,
            rate.min / 1e6,
            rate.median / 1e6,
            rate.max / 1e6,
            ns.median,
            cpu.median,
        );
        for (name, figure) in measured.notes() {
            let _ = write!(text, "   {name} {figure:.2}");
        }
        text.push('\n');
    }
    for target in &outcome.targets {
        let bound = if target.at_least { "at least" } else { "at most" };
        let verdict = if target.is_reached() { "reached" } else { "missed" };
        let _ = write!(
            text,
            "\n  {}: {:.3} (target: {bound} {}, {verdict})",
            target.name, target.is, target.wanted
        );
    }
    text.push('\n');
    text
}
