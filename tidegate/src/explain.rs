//! `explain`: what a job consists of and which settings hold, without running it.
//!
//! Owns: the words, and the same as JSON. Does not own: the graph, the settings.
//! Runs on: the main thread. Pure.

use std::fmt::Write;

use serde::Serialize;

use crate::engine::api::StreamEnvironment;
use crate::engine::error::JobError;
use crate::engine::graph::JobGraph;
use crate::engine::jobmanager::plan::{OperatorKind, OperatorPlan};
use crate::error::RunError;
use crate::run_job::graph;
use crate::settings::{EffectiveSetting, Origin, RunSettings};
use crate::state::StateDescriptor;

/// What the job that `build` records consists of, in words; as one JSON object with `--json`.
///
/// # Errors
/// As for a run, as far as it is checked before anything starts.
pub fn explain_job<F>(name: &str, settings: &RunSettings, build: F) -> Result<String, RunError>
where
    F: FnOnce(&StreamEnvironment) -> Result<(), JobError>,
{
    RunSettings::warn_of_mistyped_variables();
    let graph = graph(name, settings, build)?;
    let explained = Explained::of(&graph, settings.effective());
    Ok(match settings.json {
        true => {
            let json = serde_json::to_string_pretty(&explained).expect("names and numbers");
            format!("{json}\n")
        }
        false => explained.in_words(),
    })
}

#[derive(Debug, Serialize)]
struct Explained<'a> {
    job: String,
    key_groups: u16,
    subtasks: u32,
    vertices: Vec<ExplainedVertex>,
    settings: &'a [EffectiveSetting],
}

#[derive(Debug, Serialize)]
struct ExplainedVertex {
    id: u32,
    name: String,
    parallelism: u32,
    /// Vertices whose output it reads.
    inputs: Vec<u32>,
    operators: Vec<ExplainedOperator>,
}

#[derive(Debug, Serialize)]
struct ExplainedOperator {
    name: String,
    uid: Option<String>,
    kind: &'static str,
    states: Vec<ExplainedState>,
}

#[derive(Debug, Serialize)]
struct ExplainedState {
    name: String,
    kind: String,
    /// As its author knows it: `totals (ValueState<Totals>)`.
    #[serde(rename = "type")]
    of: String,
}

impl<'a> Explained<'a> {
    fn of(graph: &JobGraph, settings: &'a [EffectiveSetting]) -> Self {
        let plan = graph.plan();
        let vertices = plan.vertices.iter().zip(&graph.vertices).map(|(vertex, chained)| {
            let mut inputs: Vec<u32> =
                graph.inputs(chained.nodes[0]).map(|edge| graph.vertex_of(edge.from).id.0).collect();
            inputs.sort_unstable();
            inputs.dedup();
            ExplainedVertex {
                id: vertex.id.0,
                name: vertex.name.clone(),
                parallelism: vertex.parallelism,
                inputs,
                operators: vertex.operators.iter().map(ExplainedOperator::of).collect(),
            }
        });
        let vertices: Vec<_> = vertices.collect();
        Self {
            job: plan.job.to_string(),
            key_groups: graph.max_parallelism.get(),
            subtasks: vertices.iter().map(|vertex| vertex.parallelism).sum(),
            vertices,
            settings,
        }
    }

    /// One line for each vertex, and below it one for each operator; then the settings that hold, and who gave them.
    fn in_words(&self) -> String {
        let mut text = format!(
            "job \"{}\": {} vertices, {} subtasks, {} key groups\n",
            self.job,
            self.vertices.len(),
            self.subtasks,
            self.key_groups
        );
        for vertex in &self.vertices {
            let inputs: Vec<String> = vertex.inputs.iter().map(|id| format!("[{id}]")).collect();
            let inputs =
                if inputs.is_empty() { String::new() } else { format!("   from {}", inputs.join(", ")) };
            put(&mut text, &format!("  [{}] {} × {}{inputs}", vertex.id, vertex.name, vertex.parallelism));
            for operator in &vertex.operators {
                put(&mut text, &operator.in_words());
            }
        }
        for (index, setting) in self.settings.iter().enumerate() {
            if index == 0 {
                put(&mut text, "settings");
            }
            let from = match setting.from {
                Origin::Flag => "flag",
                Origin::Environment => "environment",
                Origin::File => "settings file",
                Origin::Default => "default",
            };
            let value = setting.value.as_deref().unwrap_or("–");
            put(&mut text, &format!("  {:<26} {value}   ({from})", setting.name));
        }
        text
    }
}

impl ExplainedOperator {
    fn of(operator: &OperatorPlan) -> Self {
        Self {
            name: operator.name.clone(),
            uid: operator.uid.as_ref().map(ToString::to_string),
            kind: kind_in_words(operator.kind),
            states: operator.states.iter().map(ExplainedState::of).collect(),
        }
    }

    fn in_words(&self) -> String {
        let uid = self.uid.as_deref().unwrap_or("–");
        let states: Vec<&str> = self.states.iter().map(|state| state.of.as_str()).collect();
        let states =
            if states.is_empty() { String::new() } else { format!("   state: {}", states.join(", ")) };
        format!("      {:<24} {:<22} uid: {uid}{states}", self.name, self.kind)
    }
}

impl ExplainedState {
    fn of(state: &StateDescriptor) -> Self {
        Self { name: state.name.clone(), kind: state.kind.to_string(), of: state.to_string() }
    }
}

fn kind_in_words(kind: OperatorKind) -> &'static str {
    match kind {
        OperatorKind::Source => "source",
        OperatorKind::Stateless => "stateless",
        OperatorKind::Function => "with operator state",
        OperatorKind::Keyed => "with keyed state",
        OperatorKind::Sink => "sink in one phase",
        OperatorKind::TwoPhaseSink => "sink in two phases",
    }
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes all text");
}
