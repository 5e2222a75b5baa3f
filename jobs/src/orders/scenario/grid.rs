//! A table of figures with words in front.
//!
//! Owns: its three forms: text, JSON, HTML. Does not own: the figures.
//! Runs on: the main thread. Pure.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::demo::report::escaped;
use tidegate_jobs::digits::grouped;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Grid {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl Grid {
    /// No row yet.
    pub(crate) fn of(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Another row: as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Value>) {
        let row: Vec<_> = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    /// Columns side by side; words to the left, numbers to the right.
    pub(crate) fn to_text(&self) -> String {
        let texts: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(cell_text).collect()).collect();
        let width = |column: usize| {
            let cells = texts.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count());
            cells.chain([self.columns[column].chars().count()]).max().unwrap_or_default()
        };
        let is_number =
            |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(Value::is_number));
        let mut text = String::new();
        let mut line = |cells: &[String]| {
            let mut row = String::from(" ");
            for (column, cell) in cells.iter().enumerate() {
                let (blank, width) = (" ", width(column));
                let written = match is_number(column) {
                    true => write!(row, "{blank}{cell:>width$}{blank}"),
                    false => write!(row, "{blank}{cell:<width$}{blank}"),
                };
                written.expect("a String takes all text");
            }
            writeln!(text, "{}", row.trim_end()).expect("a String takes all text");
        };
        line(&self.columns.iter().map(|column| (*column).to_owned()).collect::<Vec<_>>());
        texts.iter().for_each(|row| line(row));
        text
    }

    /// One object a row.
    pub(crate) fn to_json(&self) -> Value {
        let object = |row: &Vec<Value>| {
            let key = |column: &str| column.replace([' ', '-'], "_").replace([',', '%'], "");
            self.columns.iter().map(|column| key(column)).zip(row.iter().cloned()).collect::<Map<_, _>>()
        };
        self.rows.iter().map(|row| Value::Object(object(row))).collect()
    }

    /// A table.
    pub(crate) fn to_html(&self) -> String {
        let cells = |tag: &str, texts: &mut dyn Iterator<Item = String>| {
            texts.map(|text| format!("<{tag}>{}</{tag}>", escaped(&text))).collect::<String>()
        };
        let head = cells("th", &mut self.columns.iter().map(|column| (*column).to_owned()));
        let mut html = format!("<table><tr>{head}</tr>\n");
        for row in &self.rows {
            let row = cells("td", &mut row.iter().map(cell_text));
            writeln!(html, "<tr>{row}</tr>").expect("a String takes all text");
        }
        html + "</table>"
    }
}

fn cell_text(cell: &Value) -> String {
    match cell {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => grouped(whole),
            None => format!("{:.1}", number.as_f64().unwrap_or_default()),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_grid_has_three_forms() {
        let mut grid = Grid::of(&["sink", "p99, ms", "ok"]);
        grid.row([json!("xa"), json!(1_234), json!(true)]);
        grid.row([json!("<plain>"), json!(1.25), json!(null)]);
        assert_eq!(
            grid.to_text(),
            "  sink     p99, ms  ok\n  xa         1,234  yes\n  <plain>      1.2  –\n"
        );
        assert_eq!(grid.to_json()[0], json!({"sink": "xa", "p99_ms": 1_234, "ok": true}));
        assert!(grid.to_html().contains("<td>&lt;plain&gt;</td>"));
    }
}
