//! What came out of a scenario.
//!
//! Owns: its checks and whether all of them hold, as text and as JSON. Does not own: how it was played.
//! Runs on: the main thread. Pure.

use std::fmt::Write;

use serde_json::{Value, json};

use super::grid::Grid;
use crate::demo::timeline::Timeline;
use crate::leftover::Leftover;
use crate::verify::Verdict;

/// One thing that must be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// What must be.
    pub(crate) what: String,
    /// Whether it is.
    pub(crate) ok: bool,
    /// What was found.
    pub(crate) found: String,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// `A`, `B` and so on.
    pub(crate) name: &'static str,
    /// What was played, in a line.
    pub(crate) title: String,
    /// What happened, line by line.
    pub(crate) lines: Vec<String>,
    /// The audit, where there is one.
    pub(crate) verdict: Option<Verdict>,
    /// Figures.
    pub(crate) grid: Option<Grid>,
    /// What must be so.
    pub(crate) checks: Vec<Check>,
    /// What happened when, with the number of orders.
    pub(crate) timeline: Option<(Timeline, u64)>,
    /// The same of each of several runs, with its name.
    pub(crate) timelines: Vec<(String, Timeline, u64)>,
    /// Another drawing, as SVG.
    pub(crate) drawing: Option<String>,
    /// How long it took.
    pub(crate) took_ms: u64,
}

impl Outcome {
    /// Nothing came out yet.
    pub(crate) fn of(name: &'static str, title: String) -> Self {
        Self { name, title, ..Self::default() }
    }

    /// Something happened.
    pub(crate) fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Something must be so.
    pub(crate) fn check(&mut self, what: impl Into<String>, ok: bool, found: impl Into<String>) {
        self.checks.push(Check { what: what.into(), ok, found: found.into() });
    }

    /// The audit must be all zeros.
    pub(crate) fn audited(&mut self, verdict: Verdict) {
        let found = figures(&verdict);
        self.check("every output is exactly what the topic asks for", verdict.ok(), found);
        self.verdict = Some(verdict);
    }

    /// Nothing may be left undecided.
    pub(crate) fn nothing_left(&mut self, left: Leftover) {
        self.check("no transaction is left undecided", left.is_none(), left.words());
    }

    /// True when every check holds, and there is one.
    pub(crate) fn ok(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.ok)
    }

    /// For people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut put = |line: &str| writeln!(text, "{line}").expect("a String takes all text");
        put(&format!("{} · {}", self.name, self.title));
        self.lines.iter().for_each(|line| put(&format!("  {line}")));
        if let Some(grid) = &self.grid {
            put("");
            put(grid.to_text().trim_end());
        }
        if let Some(verdict) = &self.verdict {
            put("");
            put(verdict.to_text().trim_end());
        }
        put("");
        for check in &self.checks {
            let word = if check.ok { "yes" } else { "NO " };
            put(&format!("  {word}  {}: {}", check.what, check.found));
        }
        put(&format!("  {}.{} s\n", self.took_ms / 1_000, self.took_ms % 1_000 / 100));
        text
    }

    fn to_json(&self) -> Value {
        let checks: Vec<_> = self
            .checks
            .iter()
            .map(|check| json!({"what": check.what, "ok": check.ok, "found": check.found}))
            .collect();
        json!({
            "scenario": self.name,
            "title": self.title,
            "ok": self.ok(),
            "checks": checks,
            "lines": self.lines,
            "table": self.grid.as_ref().map(Grid::to_json),
            "audit": self.verdict.as_ref().map(Verdict::to_json),
            "took_ms": self.took_ms,
        })
    }
}

/// `duplicates 0, lost 0, wrong 0, unexpected 0`, over all tables.
pub(crate) fn figures(verdict: &Verdict) -> String {
    let sum = |figure: fn(&crate::verify::verdict::TableVerdict) -> u64| {
        verdict.tables().map(|(_, table)| figure(table)).sum::<u64>()
    };
    format!(
        "duplicates {}, lost {}, wrong {}, unexpected {}, deviation {} cents",
        sum(|table| table.duplicates),
        sum(|table| table.lost),
        sum(|table| table.wrong),
        sum(|table| table.unexpected),
        sum(|table| table.deviation_cents)
    )
}

/// All of them as one object.
pub(crate) fn to_json(outcomes: &[Outcome]) -> Value {
    json!({
        "ok": outcomes.iter().all(Outcome::ok),
        "scenarios": outcomes.iter().map(Outcome::to_json).collect::<Vec<_>>(),
    })
}
