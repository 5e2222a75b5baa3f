//! The report of all scenarios: one HTML file that needs nothing else.
//!
//! Owns: the page. Does not own: the drawing and the tables in it ([`crate::demo`]).
//! Runs on: the main thread.

use std::path::Path;

use super::grid::Grid;
use super::outcome::Outcome;
use crate::demo::chart::chart;
use crate::demo::report::{STYLE, escaped, tables_html};
use tidegate_jobs::output_folder::{OutputError, write_file};

/// Writes the page.
///
/// # Errors
/// [`OutputError::Io`].
pub(crate) fn write(path: &Path, outcomes: &[Outcome]) -> Result<(), OutputError> {
    write_file(path, to_html(outcomes).as_bytes())
}

fn to_html(outcomes: &[Outcome]) -> String {
    let title = "Tidegate orders: exactly once on Kafka and MySQL";
    let sections: String = outcomes.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}\
         ul{{list-style:none;padding:0}}section{{margin:2.5rem 0}}h2{{font-size:1.05rem}}</style></head>\n\
         <body><h1>{title}</h1>\n{sections}</body></html>\n"
    )
}

fn list(items: &str) -> String {
    if items.is_empty() { String::new() } else { format!("<ul>{items}</ul>") }
}

fn section(outcome: &Outcome) -> String {
    let verdict = if outcome.ok() { "yes" } else { "no" };
    let lines: String = outcome.lines.iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    let checks: String = outcome
        .checks
        .iter()
        .map(|check| {
            let class = if check.ok { "yes" } else { "no" };
            format!(
                "<li class=\"{class}\">{class} · {}: {}</li>\n",
                escaped(&check.what),
                escaped(&check.found)
            )
        })
        .collect();
    let latencies = outcome.drawing.as_deref().unwrap_or_default();
    let drawing = outcome
        .timeline
        .as_ref()
        .map(|(timeline, orders)| chart(timeline.notes(), *orders))
        .unwrap_or_default();
    let runs: String = outcome
        .timelines
        .iter()
        .map(|(name, timeline, orders)| {
            let drawn = chart(timeline.notes(), *orders);
            format!("<details><summary>{}</summary>{drawn}</details>\n", escaped(name))
        })
        .collect();
    let grid = outcome.grid.as_ref().map(Grid::to_html).unwrap_or_default();
    let tables = outcome.verdict.as_ref().map(tables_html).unwrap_or_default();
    format!(
        "<section><h2 class=\"{verdict}\">{} · {}</h2>\n{drawing}{latencies}\n{}\n{grid}\n{runs}{tables}\n{}</section>\n",
        outcome.name,
        escaped(&outcome.title),
        list(&lines),
        list(&checks)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_which_checks_do_not_hold() {
        let mut outcome = Outcome::of("B", "killed <here>".to_owned());
        outcome.check("nothing is left", false, "3 branches");
        let html = to_html(&[outcome]);
        assert!(
            html.contains("killed &lt;here&gt;") && html.contains("no · nothing is left: 3 branches"),
            "{html}"
        );
        assert!(!html.contains("http://") && !html.contains("https://"), "self-contained");
    }
}
