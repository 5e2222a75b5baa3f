//! Spans, sizes and moments as people read them.
//!
//! Owns: the words. Does not own: the numbers. Runs on: the main thread. Pure.

use chrono::DateTime;

/// `0.4 ms`, `48 ms`, `1.2 s`, `2.0 min`.
pub(super) fn span_us(us: u64) -> String {
    match us {
        0..10_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        10_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..120_000_000 => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
        _ => format!("{}.{} min", us / 60_000_000, us % 60_000_000 / 6_000_000),
    }
}

/// `12 B`, `1.2 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut scaled = bytes as f64 / 1_024.0;
    let mut unit = "KiB";
    for larger in ["MiB", "GiB", "TiB"] {
        if scaled < 1_024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1_024.0, larger);
    }
    format!("{scaled:.1} {unit}")
}

/// `2026-11-29 21:04:07` in UTC, from milliseconds since 1970.
pub(super) fn moment(ms: i64) -> String {
    match DateTime::from_timestamp_millis(ms) {
        Some(at) => at.format("%Y-%m-%d %H:%M:%S").to_string(),
        None => format!("{ms} ms after 1970"),
    }
}

/// A number, or a dash.
pub(super) fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), |number| number.to_string())
}

/// `1.05` from thousandths, or a dash.
pub(super) fn ratio(per_mille: Option<u64>) -> String {
    per_mille.map_or_else(|| "–".to_owned(), |n| format!("{}.{:02}", n / 1_000, n % 1_000 / 10))
}

/// `1 file`, `2 files`.
pub(super) fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_sizes_and_moments_have_the_unit_that_fits() {
        let spans = [400, 9_999, 48_000, 1_250_000, 120_000_000, 100_000_000].map(span_us);
        assert_eq!(spans, ["0.4 ms", "9.9 ms", "48 ms", "1.2 s", "2.0 min", "100.0 s"]);
        assert_eq!([12, 1_536, 1_258_291].map(bytes), ["12 B", "1.5 KiB", "1.2 MiB"]);
        assert_eq!(moment(1_796_000_000_123), "2026-11-30 00:53:20");
        assert_eq!([Some(1_000), Some(1_057), None].map(ratio), ["1.00", "1.05", "–"]);
        assert_eq!([counted(1, "file"), counted(2, "file")], ["1 file", "2 files"]);
    }
}
