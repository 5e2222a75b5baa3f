//! What a benchmark has to say in the end.
//!
//! Owns: the measured candidates, the figures drawn from them, the targets. Does not own: their display. Runs on: plain data.

use serde_json::{Map, Value};

use super::{Measured, Run};

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
}

impl Target {
    /// Whether it is reached.
    pub(crate) fn is_reached(&self) -> bool {
        if self.at_least { self.is >= self.wanted } else { self.is <= self.wanted }
    }
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
}

impl Outcome {
    /// An outcome without figures yet.
    pub(crate) fn new(benchmark: &'static str, measured: Vec<Measured>) -> Self {
        let (settings, figures, targets) = (Map::new(), Map::new(), Vec::new());
        Self { benchmark, settings, measured, figures, targets }
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

    /// Adds a figure, where it could be drawn.
    pub(crate) fn figure(&mut self, name: &str, figure: Option<f64>) {
        if let Some(figure) = figure {
            self.figures.insert(name.to_owned(), Value::from(figure));
        }
    }

    /// Adds a target, where its figure could be drawn.
    pub(crate) fn at_least(&mut self, name: &str, is: Option<f64>, wanted: f64) {
        let target = is.map(|is| Target { name: name.to_owned(), is, wanted, at_least: true });
        self.targets.extend(target);
    }

    /// Adds a target that should not be exceeded.
    pub(crate) fn at_most(&mut self, name: &str, is: Option<f64>, wanted: f64) {
        let target = is.map(|is| Target { name: name.to_owned(), is, wanted, at_least: false });
        self.targets.extend(target);
    }
}

/// `a / b`, where both are known.
pub(crate) fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b.filter(|b| *b != 0.0)?)
}
