//! An outcome as one JSON object.
//!
//! Shape: `benchmark`, `settings`, `candidates` (each with `group`, `name`, `records_per_s`, `ns_per_record`,
//! `cpu_ns_per_record` and each of its `notes` as `{min, median, max}`), the figures at the top level, `targets`, and `left_out`:
//! the peers that this program was built without.
//!
//! Owns: the shape. Does not own: figures. Runs on: plain data.

use serde_json::{Map, Value, json};

use crate::harness::{Measured, Outcome, Run, Spread};

/// The object.
pub(super) fn object(outcome: &Outcome) -> Value {
    let mut object = Map::new();
    object.insert("benchmark".to_owned(), Value::from(outcome.benchmark));
    object.insert("settings".to_owned(), Value::Object(outcome.settings.clone()));
    object.insert("candidates".to_owned(), outcome.measured.iter().map(candidate).collect());
    object.extend(outcome.figures.clone());
    let targets = outcome.targets.iter().map(|t| {
        let bound = if t.at_least { "at_least" } else { "at_most" };
        let reason = t.missed_because();
        json!({ "name": t.name, "is": t.is, bound: t.wanted, "reached": t.is_reached(), "reason": reason })
    });
    object.insert("targets".to_owned(), targets.collect());
    object.insert("left_out".to_owned(), Value::from(outcome.left_out.clone()));
    Value::Object(object)
}

fn candidate(measured: &Measured) -> Value {
    let notes: Map<String, Value> =
        measured.notes().into_iter().map(|(name, figure)| (name.to_owned(), spread(figure))).collect();
    json!({
        "group": measured.group,
        "name": measured.name,
        "rounds": measured.runs.len(),
        "records_per_s": spread(measured.spread(Run::rate)),
        "ns_per_record": spread(measured.spread(Run::ns)),
        "cpu_ns_per_record": spread(measured.spread(Run::cpu_ns)),
        "notes": notes,
    })
}

fn spread(spread: Spread) -> Value {
    json!({ "min": spread.min, "median": spread.median, "max": spread.max })
}
