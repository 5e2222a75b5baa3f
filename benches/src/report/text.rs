//! An outcome as a table for people.
//!
//! Owns: the columns. Does not own: figures. Runs on: plain data.

use std::fmt::Write;

use crate::harness::{Measured, Outcome, Run, Shown};

/// The table, its figures and targets.
pub(super) fn table(outcome: &Outcome) -> String {
    let mut text = String::new();
    let settings: Vec<String> =
        outcome.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let _ = writeln!(text, "{} · {}\n", outcome.benchmark, settings.join(" · "));
    match outcome.shown {
        Shown::Rates => rates(&mut text, &outcome.measured),
        Shown::Notes(_) => notes(&mut text, &outcome.measured),
    }
    for target in &outcome.targets {
        let bound = if target.at_least { "at least" } else { "at most" };
        let verdict = if target.is_reached() { "met" } else { "missed" };
        let _ = write!(
            text,
            "\n  {}: {:.3} (target: {bound} {}, {verdict})",
            target.name, target.is, target.wanted
        );
        if let Some(reason) = target.missed_because() {
            let _ = write!(text, "\n      {reason}");
        }
    }
    let setting = |name: &str| outcome.settings.get(name).and_then(serde_json::Value::as_f64);
    if let (Some(load), Some(cores)) = (setting("load_before"), setting("cores"))
        && load > cores
    {
        let _ = write!(
            text,
            "\n  note: load {load} on {cores} cores before this run: what is measured on the wall says little"
        );
    }
    if !outcome.left_out.is_empty() {
        let peers = outcome.left_out.join(", ");
        let _ = write!(text, "\n  left out: {peers} (this program was built without --features peers)");
    }
    text.push('\n');
    text
}

fn widest<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0)
}

fn rates(text: &mut String, all: &[Measured]) {
    let widest = widest(all.iter().map(|m| m.name.as_str()));
    let mut group = "";
    for measured in all {
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
            let _ = write!(text, "   {name} {:.2} (max {:.2})", figure.median, figure.max);
        }
        text.push('\n');
    }
}

fn notes(text: &mut String, all: &[Measured]) {
    let widest = widest(all.iter().flat_map(|m| m.notes()).map(|(name, _)| name));
    for measured in all {
        let head = format!("{} · {}", measured.group, measured.name);
        let rounds = measured.runs.len();
        let _ = writeln!(
            text,
            "  {head} ({rounds} rounds)\n    {:<widest$}  {:>12} {:>12} {:>12}",
            "", "min", "median", "max"
        );
        for (name, figure) in measured.notes() {
            let _ = writeln!(
                text,
                "    {name:<widest$}  {:>12.3} {:>12.3} {:>12.3}",
                figure.min, figure.median, figure.max
            );
        }
    }
}
