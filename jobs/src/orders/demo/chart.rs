//! The drawing in the report: orders read over time, each checkpoint, its commit, and the kill.
//!
//! Owns: the scales and the marks, as inline SVG.
//! Does not own: the page around it.
//! Runs on: the main thread. Pure.

use std::fmt::Write;

use super::timeline::{Moment, Note};
use tidegate_jobs::digits::grouped;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
/// Room for labels at the left, right, top and bottom.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 52.0;
/// Lines of the grid beyond the first, at most.
const TICKS_MAX: u64 = 6;
/// A label is about so wide: nearer than this to a side it stands on the other side of its line.
const LABEL_WIDTH: f64 = 190.0;

const READ: &str = "#1c2530";
const COMPLETE: &str = "#2f7fd1";
const COMMITTED: &str = "#17743b";
const FAILED: &str = "#d98200";

/// From milliseconds and orders to places in the drawing.
struct Scale {
    end_ms: u64,
    orders: u64,
}

impl Scale {
    fn x(&self, at_ms: u64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * at_ms as f64 / self.end_ms.max(1) as f64
    }

    fn y(&self, records: u64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * records as f64 / self.orders.max(1) as f64
    }
}

/// Draws the notes; `orders` is the height of the scale.
pub(crate) fn chart(notes: &[Note], orders: u64) -> String {
    let scale = Scale { end_ms: notes.last().map_or(1, |note| note.at_ms), orders };
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-size=\"12\" fill=\"#5a6675\">\n");
    grid(&mut svg, &scale);
    checkpoints(&mut svg, &scale, notes);
    for run in runs(notes) {
        curve(&mut svg, &scale, run);
    }
    moments(&mut svg, &scale, notes);
    legend(&mut svg, notes);
    svg + "</svg>"
}

/// Each run has a curve of its own: it begins with `Started`.
fn runs(notes: &[Note]) -> impl Iterator<Item = &[Note]> {
    notes.chunk_by(|_, next| !matches!(next.moment, Moment::Started { .. }))
}

fn grid(svg: &mut String, scale: &Scale) {
    for records in ticks(scale.orders) {
        let (x, y) = (WIDTH - RIGHT, scale.y(records));
        put(svg, &format!("<line x1=\"{LEFT}\" x2=\"{x}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e4e9ef\"/>"));
        let (x, y, label) = (LEFT - 6.0, y + 4.0, grouped(records));
        put(svg, &format!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>"));
    }
    for at_ms in ticks(scale.end_ms) {
        let (x, y, seconds) = (scale.x(at_ms), HEIGHT - BOTTOM + 18.0, at_ms as f64 / 1_000.0);
        put(svg, &format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{seconds} s</text>"));
    }
}

/// From 0 to `end` at steps of 1, 2 or 5 times a power of ten, at most [`TICKS_MAX`] of them beyond the first.
pub(crate) fn ticks(end: u64) -> impl Iterator<Item = u64> {
    let powers = (0..19).map(|exponent| 10_u64.pow(exponent));
    let mut steps = powers.flat_map(|power| [1, 2, 5].map(|times| power.saturating_mul(times)));
    let step = steps.find(|step| end / step <= TICKS_MAX).unwrap_or(u64::MAX);
    (0..=end / step).map(move |tick| tick * step)
}

fn checkpoints(svg: &mut String, scale: &Scale, notes: &[Note]) {
    for note in notes {
        let (color, title) = match note.moment {
            Moment::Checkpoint { id, duration_ms, .. } => {
                (COMPLETE, format!("checkpoint {id}: {duration_ms} ms"))
            }
            Moment::CheckpointFailed { id } => (FAILED, format!("checkpoint {id} failed")),
            Moment::Committed { id } => (COMMITTED, format!("committed up to checkpoint {id}")),
            _ => continue,
        };
        let x = scale.x(note.at_ms);
        // Commits stand on top of the checkpoints.
        let foot = if matches!(note.moment, Moment::Committed { .. }) { 12.0 } else { 0.0 };
        let (from, to) = (HEIGHT - BOTTOM - foot, HEIGHT - BOTTOM - foot - 12.0);
        put(
            svg,
            &format!(
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from}\" y2=\"{to}\" stroke=\"{color}\" stroke-width=\"2\"><title>{title}</title></line>"
            ),
        );
    }
}

fn legend(svg: &mut String, notes: &[Note]) {
    let failed = notes.iter().any(|note| matches!(note.moment, Moment::CheckpointFailed { .. }));
    let marks = [
        (READ, "orders read, over time"),
        (COMPLETE, "checkpoint complete"),
        (COMMITTED, "committed: others see it"),
        (FAILED, "checkpoint failed"),
    ];
    for (index, (color, words)) in marks.into_iter().take(if failed { 4 } else { 3 }).enumerate() {
        let (x, y) = (LEFT + 190.0 * index as f64, HEIGHT - 4.0);
        put(svg, &format!("<text x=\"{x}\" y=\"{y}\" fill=\"{color}\">▎{words}</text>"));
    }
}

fn curve(svg: &mut String, scale: &Scale, run: &[Note]) {
    let points: String = run
        .iter()
        .filter(|note| matches!(note.moment, Moment::Progress | Moment::Killed | Moment::Finished))
        .map(|note| format!("{:.1},{:.1} ", scale.x(note.at_ms), scale.y(note.records_in)))
        .collect();
    put(
        svg,
        &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{READ}\" stroke-width=\"2\"/>",
            points.trim_end()
        ),
    );
}

fn moments(svg: &mut String, scale: &Scale, notes: &[Note]) {
    for note in notes {
        let (color, label) = match note.moment {
            Moment::Killed => ("#b3261e", format!("kill -9 at {}", grouped(note.records_in))),
            Moment::Started { restored: Some(id) } => ("#17743b", format!("restored from checkpoint {id}")),
            _ => continue,
        };
        let x = scale.x(note.at_ms);
        let (bottom, killed) = (HEIGHT - BOTTOM, note.moment == Moment::Killed);
        let before = if killed { x - LABEL_WIDTH > LEFT } else { x + LABEL_WIDTH > WIDTH };
        let (anchor, label_x) = if before { ("end", x - 4.0) } else { ("start", x + 4.0) };
        put(
            svg,
            &format!(
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"{color}\" stroke-dasharray=\"4 3\"/>"
            ),
        );
        // A restart follows its kill closely: each has a row of its own.
        let y = if killed { TOP - 26.0 } else { TOP - 8.0 };
        put(
            svg,
            &format!(
                "<text x=\"{label_x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{color}\">{label}</text>"
            ),
        );
    }
}

fn put(svg: &mut String, element: &str) {
    writeln!(svg, "{element}").expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_curve_and_the_marks_stand_in_the_picture() {
        let note = |at_ms, records_in, moment| Note { at_ms, records_in, moment };
        let notes = [
            note(0, 0, Moment::Started { restored: None }),
            note(100, 10, Moment::Progress),
            note(150, 10, Moment::Checkpoint { id: 1, duration_ms: 2, bytes: 3 }),
            note(180, 15, Moment::Committed { id: 1 }),
            note(200, 20, Moment::Killed),
            note(300, 0, Moment::Started { restored: Some(1) }),
            note(500, 100, Moment::Finished),
        ];
        let svg = chart(&notes, 100);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("<title>checkpoint 1: 2 ms</title>"));
        assert!(svg.contains("<title>committed up to checkpoint 1</title>"));
        assert!(svg.contains("kill -9 at 20") && svg.contains("restored from checkpoint 1"));
        assert!(
            svg.contains(&format!("{:.1},{TOP:.1}\"", WIDTH - RIGHT)),
            "the end stands at the upper right: {svg}"
        );
    }

    #[test]
    fn steps_of_the_axes_are_round_and_few() {
        assert_eq!(ticks(2_600).collect::<Vec<_>>(), [0, 500, 1_000, 1_500, 2_000, 2_500]);
        assert_eq!(ticks(79_999).collect::<Vec<_>>(), [0, 20_000, 40_000, 60_000]);
        assert_eq!(ticks(0).collect::<Vec<_>>(), [0]);
        assert!((1..5_000).all(|end| ticks(end).count() <= 7));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_grid() {
        assert!(chart(&[], 0).ends_with("</svg>"));
    }
}
