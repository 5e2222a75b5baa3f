//! The report: one HTML file that needs nothing else, with a drawing of the two runs and the table of the comparison.
//!
//! Owns: the page.
//! Does not own: the drawing ([`super::chart`]), the figures.
//! Runs on: the main thread.

use std::fmt::Write;
use std::path::Path;

use super::chart::chart;
use super::timeline::{Moment, Timeline};
use crate::verify::Verdict;
use tidegate_jobs::digits::grouped;
use tidegate_jobs::output_folder::{OutputError, write_file};

/// How a page looks.
pub(crate) const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2530}\
h1{font-size:1.2rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:right;font-variant-numeric:tabular-nums}\
td:first-child,th:first-child{text-align:left}tr+tr{border-top:1px solid #dde3ea}.yes{color:#17743b}.no{color:#b3261e}\
svg{width:100%;height:auto}details{margin:1rem 0}";

/// What the report shows.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    /// The first line of the demo.
    pub(crate) title: &'a str,
    /// Orders in the input.
    pub(crate) orders: u64,
    /// What happened when.
    pub(crate) timeline: &'a Timeline,
    /// The comparison.
    pub(crate) verdict: &'a Verdict,
}

impl Report<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// [`OutputError::Io`].
    pub(crate) fn write(&self, path: &Path) -> Result<(), OutputError> {
        write_file(path, self.to_html().as_bytes())
    }

    fn to_html(&self) -> String {
        let title = escaped(self.title);
        let verdict = self.verdict.yes_or_no();
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
             <body><h1>{title}</h1>\n{}\n<h2 class=\"{verdict}\">exactly once: {verdict}</h2>\n{}\n{}</body></html>\n",
            chart(self.timeline.notes(), self.orders),
            self.tables(),
            self.checkpoints()
        )
    }

    fn tables(&self) -> String {
        tables_html(self.verdict)
    }

    fn checkpoints(&self) -> String {
        let mut html = String::from(
            "<details><summary>checkpoints</summary><table><tr><th>id</th><th>complete at, ms</th><th>orders</th>\
             <th>duration, ms</th><th>bytes</th></tr>\n",
        );
        for note in self.timeline.notes() {
            if let Moment::Checkpoint { id, duration_ms, bytes } = note.moment {
                let cells: String = [note.at_ms, note.records_in, duration_ms, bytes]
                    .iter()
                    .map(|&figure| format!("<td>{}</td>", grouped(figure)))
                    .collect();
                writeln!(html, "<tr><td>{id}</td>{cells}</tr>").expect("a String takes all text");
            }
        }
        html + "</table></details>\n"
    }
}

/// The comparison as a table.
pub(crate) fn tables_html(verdict: &Verdict) -> String {
    let mut html = String::from(
        "<table><tr><th>table</th><th>expected</th><th>actual</th><th>duplicates</th><th>lost</th><th>wrong</th>\
             <th>unexpected</th><th>deviation, cents</th></tr>\n",
    );
    for (name, table) in verdict.tables() {
        let figures = [
            table.expected,
            table.actual,
            table.duplicates,
            table.lost,
            table.wrong,
            table.unexpected,
            table.deviation_cents,
        ];
        let cells: String = figures.iter().map(|&figure| format!("<td>{}</td>", grouped(figure))).collect();
        writeln!(html, "<tr><td>{}</td>{cells}</tr>", escaped(name)).expect("a String takes all text");
    }
    html + "</table>"
}

/// Text that cannot be taken for markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Position;
    use crate::verify::verdict::TableVerdict;
    use tidegate::RunEvent;

    #[test]
    fn the_page_has_the_drawing_the_figures_and_no_foreign_markup() {
        let mut timeline = Timeline::started();
        let checkpoint = RunEvent::Checkpoint { id: 14, duration_ms: 3, bytes: 1_200 };
        timeline.note(&checkpoint, &Position::default());
        timeline.mark(Moment::Killed, 31_204);
        let lossy = TableVerdict { expected: 2, actual: 1, lost: 1, ..TableVerdict::default() };
        let verdict = Verdict::of([("t_order_event", lossy.clone()), ("t_order_log", lossy)]);
        let report = Report { title: "<b>&", orders: 69_659, timeline: &timeline, verdict: &verdict };
        let html = report.to_html();
        assert!(html.contains("&lt;b&gt;&amp;") && !html.contains("<b>"), "{html}");
        assert!(html.contains("<svg") && html.contains("kill -9") && html.contains("exactly once: no"));
        assert!(html.contains("<tr><td>14</td>") && html.contains("1,200"));
        assert!(!html.contains("http://") && !html.contains("https://"), "self-contained");
    }
}
