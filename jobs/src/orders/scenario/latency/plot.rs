//! The drawing of latencies: a dot for each order (or every few), when it was sent and how long it took to be seen.
//!
//! Owns: the scales and the marks, as inline SVG. Does not own: the page around it. Runs on: the main thread. Pure.

use std::fmt::Write;

use crate::demo::chart::ticks;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
/// Room for labels at the left, right, top and bottom.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 36.0;
/// More dots than this are thinned out.
const DOTS_MAX: usize = 500;
const COLORS: [&str; 4] = ["#17743b", "#2f7fd1", "#d98200", "#b3261e"];

/// The orders of one way to write.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// In the legend.
    pub(super) name: &'static str,
    /// Sent, and seen later by, in microseconds.
    pub(super) dots: Vec<(u64, u64)>,
    /// When the process was killed.
    pub(super) killed_us: u64,
}

/// Draws all of them over one another.
pub(super) fn plot(series: &[Series]) -> String {
    let dots = || series.iter().flat_map(|series| &series.dots);
    let end_us = dots().map(|dot| dot.0).max().unwrap_or(1).max(1);
    let top_us = dots().map(|dot| dot.1).max().unwrap_or(1).max(1);
    let x = |sent: u64| LEFT + (WIDTH - LEFT - RIGHT) * sent as f64 / end_us as f64;
    let y = |took: u64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * took as f64 / top_us as f64;
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-size=\"12\" fill=\"#5a6675\">\n");
    let mut put = |element: String| writeln!(svg, "{element}").expect("a String takes all text");
    for took_ms in ticks(top_us / 1_000) {
        let (at, right) = (y(took_ms * 1_000), WIDTH - RIGHT);
        put(format!("<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e4e9ef\"/>"));
        let (at_x, at_y) = (LEFT - 6.0, at + 4.0);
        put(format!("<text x=\"{at_x}\" y=\"{at_y:.1}\" text-anchor=\"end\">{took_ms} ms</text>"));
    }
    for sent_ms in ticks(end_us / 1_000) {
        let (at_x, at_y, seconds) = (x(sent_ms * 1_000), HEIGHT - 14.0, sent_ms as f64 / 1_000.0);
        put(format!("<text x=\"{at_x:.1}\" y=\"{at_y}\" text-anchor=\"middle\">{seconds} s</text>"));
    }
    for (index, (series, color)) in series.iter().zip(COLORS.into_iter().cycle()).enumerate() {
        let step = series.dots.len().div_ceil(DOTS_MAX).max(1);
        for (sent, took) in series.dots.iter().step_by(step) {
            put(format!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.6\" fill=\"{color}\"/>",
                x(*sent),
                y(*took)
            ));
        }
        let killed = x(series.killed_us.min(end_us));
        let bottom = HEIGHT - BOTTOM;
        put(format!(
            "<line x1=\"{killed:.1}\" x2=\"{killed:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"{color}\" stroke-dasharray=\"4 3\"/>"
        ));
        let legend = LEFT + 220.0 * index as f64;
        put(format!(
            "<text x=\"{legend:.1}\" y=\"{}\" fill=\"{color}\">● {} ┆ its kill</text>",
            TOP - 12.0,
            series.name
        ));
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_its_dots_and_its_kill() {
        let dots: Vec<_> = (0..1_200).map(|order| (order * 1_000, 5_000 + order)).collect();
        let series = |name| Series { name, dots: dots.clone(), killed_us: 600_000 };
        let svg = plot(&[series("xa"), series("plain")]);
        assert_eq!(svg.matches("<circle").count(), 800, "every third");
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert!(svg.contains("● xa ┆ its kill") && plot(&[]).ends_with("</svg>"));
    }
}
