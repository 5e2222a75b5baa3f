//! An outcome as one page: bars for each candidate's rate or notes, drawn from the median, with a line from min to max.
//!
//! The page needs nothing from elsewhere: no script, no font, no picture.
//!
//! Owns: the page. Does not own: figures. Runs on: plain data.

use std::fmt::Write;

use crate::harness::{Measured, Outcome, Shown, Spread};

const BAR: u32 = 18;
const ROW: u32 = 26;
const LABELS: u32 = 330;
const PLOT: u32 = 480;
const FIGURES: u32 = 130;

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733}\
h2{font-size:1rem;margin-top:2rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}\
svg text{font:12px system-ui,sans-serif;fill:#1c2733}";

/// The page.
pub(super) fn page(outcome: &Outcome) -> String {
    let mut page = String::new();
    let name = escape(outcome.benchmark);
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>benches {name}</title>\
         <style>{STYLE}</style></head><body><h1>benches {name}</h1><p>"
    );
    for (setting, value) in &outcome.settings {
        let _ = write!(page, "{} <b>{}</b> &nbsp; ", escape(setting), escape(&value.to_string()));
    }
    page.push_str("</p>");
    let mut groups: Vec<&str> = outcome.measured.iter().map(|m| m.group).collect();
    groups.dedup();
    for group in groups {
        let members = || outcome.measured.iter().filter(|m| m.group == group);
        match &outcome.shown {
            Shown::Rates => {
                let millions = |m: &Measured| m.spread(|run| run.rate() / 1e6);
                let bars = bars(members().map(|m| (m.name.as_str(), millions(m))).collect());
                let _ = write!(page, "<h2>{}: million records per second</h2>{bars}", escape(group));
            }
            Shown::Notes(plotted) => {
                for note in plotted {
                    let rows: Vec<_> =
                        members().filter_map(|m| Some((m.name.as_str(), m.note(note)?))).collect();
                    if !rows.is_empty() {
                        let _ = write!(page, "<h2>{}: {}</h2>{}", escape(group), escape(note), bars(rows));
                    }
                }
            }
        }
    }
    if !outcome.targets.is_empty() {
        page.push_str("<h2>Targets</h2><table><tr><th></th><th>is</th><th>wanted</th><th></th></tr>");
        for target in &outcome.targets {
            let bound = if target.at_least { "at least" } else { "at most" };
            let verdict = if target.is_reached() { "met" } else { "missed" };
            let reason = target.missed_because().unwrap_or_default();
            let _ = write!(
                page,
                "<tr><td>{}</td><td>{:.3}</td><td>{bound} {}</td><td>{verdict}</td><td>{}</td></tr>",
                escape(&target.name),
                target.is,
                target.wanted,
                escape(reason)
            );
        }
        page.push_str("</table>");
    }
    if !outcome.left_out.is_empty() {
        let peers = escape(&outcome.left_out.join(", "));
        let _ = write!(page, "<p>Left out: {peers} (built without the feature <code>peers</code>).</p>");
    }
    page.push_str("</body></html>\n");
    page
}

fn bars(rows: Vec<(&str, Spread)>) -> String {
    let most = rows.iter().map(|(_, r)| r.max).fold(f64::MIN_POSITIVE, f64::max);
    let height = ROW * u32::try_from(rows.len()).unwrap_or(1);
    let mut svg = format!("<svg width=\"{}\" height=\"{height}\" role=\"img\">", LABELS + PLOT + FIGURES);
    for (row, (name, figure)) in (0..).zip(rows) {
        let (top, x) = (row * ROW, |figure: f64| f64::from(LABELS) + figure / most * f64::from(PLOT));
        let (base, middle) = (top + BAR - 4, top + BAR / 2);
        let (low, mid, high) = (x(figure.min), x(figure.median), x(figure.max));
        let width = mid - f64::from(LABELS);
        let colour = if name.contains("tidegate") { "#1f7a8c" } else { "#a9b8c4" };
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{base}\">{}</text><rect x=\"{LABELS}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" \
             fill=\"{colour}\"/><line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{middle}\" y2=\"{middle}\" \
             stroke=\"#1c2733\"/><text x=\"{:.1}\" y=\"{base}\">{:.2}</text>",
            escape(name),
            high + 6.0,
            figure.median
        );
    }
    svg.push_str("</svg>");
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
