//! `explain`: what a job consists of, without running it.
//!
//! Owns: the words. Does not own: the graph.
//! Runs on: the main thread. Pure.

use std::fmt::Write;

use crate::engine::graph::JobGraph;

/// One line for each vertex, and below it one for each operator with state.
pub(crate) fn explained(graph: &JobGraph) -> String {
    let plan = graph.plan();
    let subtasks: u32 = plan.vertices.iter().map(|vertex| vertex.parallelism).sum();
    let mut text = format!(
        "job \"{}\": {} vertices, {subtasks} subtasks, {} key groups\n",
        plan.job,
        plan.vertices.len(),
        graph.max_parallelism.get()
    );
    for vertex in &plan.vertices {
        put(&mut text, &format!("  [{}] {} × {}", vertex.id, vertex.name, vertex.parallelism));
        for operator in &vertex.operators {
            let uid = operator.uid.as_ref().map_or("–", |uid| uid.as_str());
            let states: Vec<&str> = operator.states.iter().map(|state| state.name.as_ref()).collect();
            let states =
                if states.is_empty() { String::new() } else { format!("   state: {}", states.join(", ")) };
            put(&mut text, &format!("      {:<24} {:?}   uid: {uid}{states}", operator.name, operator.kind));
        }
    }
    text
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes all text");
}
