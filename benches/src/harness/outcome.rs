//! What a benchmark has to say in the end.
//!
//! Owns: the measured candidates, the figures drawn from them, the targets. Does not own: their display. Runs on: plain data.

use serde_json::{Map, Value};

use super::{Measured, Run, Spread};

/// A figure beside what it should be. It is shown, never asserted.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What.
    pub(crate) name: String,
    /// What it is.
    pub(crate) is: f64,
    /// What it should be.
    pub(crate) wanted: f64,
    /// Whether more is better.
    pub(crate) at_least: bool,
    /// Why it is missed, where that is known: shown only then.
    pub(crate) reason: Option<&'static str>,
}

impl Target {
    /// Why it is missed, if it is and that is known.
    pub(crate) fn missed_because(&self) -> Option<&'static str> {
        self.reason.filter(|_| !self.is_reached())
    }

    /// Whether it is reached.
    pub(crate) fn is_reached(&self) -> bool {
        if self.at_least { self.is >= self.wanted } else { self.is <= self.wanted }
    }
}

/// What a table and a page show of each candidate.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// How many records a second went through.
    Rates,
    /// Its notes; a page draws bars for these.
    Notes(Vec<&'static str>),
}

/// The result of one benchmark.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Its name on the command line.
    pub(crate) benchmark: &'static str,
    /// What it was run with.
    pub(crate) settings: Map<String, Value>,
    /// Candidates in order.
    pub(crate) measured: Vec<Measured>,
    /// Figures drawn from them.
    pub(crate) figures: Map<String, Value>,
    /// Figures beside their targets.
    pub(crate) targets: Vec<Target>,
    /// What is shown of each candidate.
    pub(crate) shown: Shown,
    /// Candidates that this program was built without.
    pub(crate) left_out: Vec<&'static str>,
}

impl Outcome {
    /// An outcome without figures yet.
    pub(crate) fn new(benchmark: &'static str, measured: Vec<Measured>) -> Self {
        let (settings, figures, targets) = (Map::new(), Map::new(), Vec::new());
        let (shown, left_out) = (Shown::Rates, Vec::new());
        Self { benchmark, settings, measured, figures, targets, shown, left_out }
    }

    /// Shows notes instead of rates, and draws bars for these.
    pub(crate) fn showing(mut self, plotted: &[&'static str]) -> Self {
        self.shown = Shown::Notes(plotted.to_vec());
        self
    }

    /// Says which peers are missing, if this program was built without them.
    pub(crate) fn with_peers(mut self, peers: &[&'static str]) -> Self {
        if cfg!(not(feature = "peers")) {
            self.left_out.extend(peers);
        }
        self
    }

    /// Adds a setting.
    pub(crate) fn setting(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(name.to_owned(), value.into());
        self
    }

    /// The median of a figure of one candidate, if it was run.
    pub(crate) fn median(&self, group: &str, name: &str, figure: impl Fn(&Run) -> f64) -> Option<f64> {
        let candidate = self.measured.iter().find(|m| m.group == group && m.name == name)?;
        Some(candidate.spread(figure).median)
    }

    /// A note of one candidate, if it was run and has it.
    pub(crate) fn note(&self, group: &str, name: &str, note: &str) -> Option<Spread> {
        self.measured.iter().find(|m| m.group == group && m.name == name)?.note(note)
    }

    /// Adds a figure, where it could be drawn.
    pub(crate) fn figure(&mut self, name: &str, figure: Option<f64>) {
        if let Some(figure) = figure {
            self.figures.insert(name.to_owned(), Value::from(figure));
        }
    }

    /// Adds a target, where its figure could be drawn.
    pub(crate) fn at_least(&mut self, name: &str, is: Option<f64>, wanted: f64) {
        self.target(name, is, wanted, true);
    }

    /// Adds a target that should not be exceeded.
    pub(crate) fn at_most(&mut self, name: &str, is: Option<f64>, wanted: f64) {
        self.target(name, is, wanted, false);
    }

    /// Says why the target of this name is missed, should it be.
    pub(crate) fn because(&mut self, name: &str, reason: &'static str) {
        for target in self.targets.iter_mut().filter(|t| t.name == name) {
            target.reason = Some(reason);
        }
    }

    fn target(&mut self, name: &str, is: Option<f64>, wanted: f64, at_least: bool) {
        let target = is.map(|is| Target { name: name.to_owned(), is, wanted, at_least, reason: None });
        self.targets.extend(target);
    }
}

/// `a / b`, where both are known.
pub(crate) fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b.filter(|b| *b != 0.0)?)
}
