//! A table of text: columns as wide as they need to be, and no lines.
//!
//! Owns: the layout. Does not own: what stands in it. Runs on: the main thread. Pure.

/// A column's heading, and to which side it is set.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    /// Words.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Left(heading) | Self::Right(heading) => heading,
        }
    }
}

/// Lays rows out below their headings.
pub(super) fn table<const N: usize>(columns: [Column; N], rows: &[[String; N]]) -> String {
    let headings = columns.map(|column| column.heading().to_owned());
    let all = || std::iter::once(&headings).chain(rows);
    let width = |at: usize| all().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in all() {
        let cells = row.iter().zip(columns).zip(widths).map(|((cell, column), width)| match column {
            Column::Left(_) => format!("{cell:<width$}"),
            Column::Right(_) => format!("{cell:>width$}"),
        });
        let line = format!("  {}", cells.collect::<Vec<_>>().join("   "));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let columns = [Column::Right("id"), Column::Left("status"), Column::Left("note")];
        let rows = [["7", "complete", ""], ["123", "failed", "é"]].map(|row| row.map(str::to_owned));
        let expected = "   id   status     note\n    7   complete\n  123   failed     é\n";
        assert_eq!(table(columns, &rows), expected);
    }
}
