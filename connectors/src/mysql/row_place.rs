//! Which row of a statement a server's refusal is about.
//!
//! A server says "Data too long for column 'x' at row 3": the third of the statement, which tells nothing to people. Here it becomes the
//! row's number among those that were written, and the values of its key; of a table without one, those of its first columns.
//!
//! Owns: finding the row, its words. Does not own: the refusal (see [`MysqlError::Unfit`]). Runs on: plain data.

use mysql_async::Value;

use super::MysqlError;
use super::table::TableSpec;

/// Columns that name a row of a table without a key.
const COLUMNS_WITHOUT_KEY: usize = 2;
/// A text or bytes are told up to so many characters.
const SHOWN_CHARS_MAX: usize = 40;

/// The rows of one statement, as far as they are needed to name one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowPlaces<'a> {
    spec: &'a TableSpec,
    /// Rows that were written before; `None`: they are not written in the order in which they came.
    before: Option<u64>,
    shown: Vec<usize>,
    /// Of each row those that are shown.
    values: Vec<Value>,
}

/// The columns that name a row.
fn shown_columns(spec: &TableSpec) -> Vec<usize> {
    let key: Vec<usize> =
        spec.key().iter().filter_map(|key| spec.columns.iter().position(|c| c.name == *key)).collect();
    if key.is_empty() { (0..spec.columns.len().min(COLUMNS_WITHOUT_KEY)).collect() } else { key }
}

/// The beginning of a value.
fn beginning(value: &Value) -> Value {
    let Value::Bytes(bytes) = value else { return value.clone() };
    // A character has at most four bytes; what is cut off in its middle is left away.
    let most = &bytes[..bytes.len().min(SHOWN_CHARS_MAX * 4)];
    let text = match std::str::from_utf8(most) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&most[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Value::Bytes(bytes[..bytes.len().min(SHOWN_CHARS_MAX / 2)].to_vec()),
    };
    Value::Bytes(text.chars().take(SHOWN_CHARS_MAX).collect::<String>().into_bytes())
}

/// The number behind "at row", from 1, at the end of what a server says: a value that is quoted before may have these words in it.
fn row_in(message: &str) -> Option<usize> {
    let (_, number) = message.rsplit_once(" at row ")?;
    number.parse().ok().filter(|number| *number > 0)
}

impl<'a> RowPlaces<'a> {
    /// Of rows that stand one after the other in `values`.
    pub(crate) fn of(spec: &'a TableSpec, before: Option<u64>, values: &[Value]) -> Self {
        let shown = shown_columns(spec);
        let rows = values.chunks_exact(spec.columns.len().max(1));
        let values = rows.flat_map(|row| shown.iter().map(|column| beginning(&row[*column]))).collect();
        Self { spec, before, shown, values }
    }

    /// The error with the row that the server speaks of.
    pub(crate) fn named(&self, error: MysqlError) -> MysqlError {
        match error {
            MysqlError::Unfit { at, row: None, source } => {
                let row = row_in(&source.message).and_then(|number| self.row(number));
                MysqlError::Unfit { at, row, source }
            }
            other => other,
        }
    }

    fn row(&self, number: usize) -> Option<String> {
        let width = self.shown.len();
        let values = self.values.chunks_exact(width.max(1)).nth(number - 1)?;
        let shown: Vec<String> = self
            .shown
            .iter()
            .zip(values)
            .map(|(column, value)| format!("{} = {}", self.spec.columns[*column].name, value.as_sql(true)))
            .collect();
        let number = self.before.map_or_else(String::new, |before| format!(" {}", before + number as u64));
        Some(format!("row{number} ({})", shown.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::{Attempted, ServerAnswer};
    use super::super::{ColumnKind, ColumnSpec, MergeMode};
    use super::*;

    fn spec(mode: MergeMode) -> TableSpec {
        let column = |name: &str| ColumnSpec { name: name.into(), kind: ColumnKind::Text, optional: false };
        TableSpec { name: "t".into(), columns: ["a", "b", "c"].map(column).to_vec(), mode }
    }

    fn rows() -> Vec<Value> {
        (0..9).map(|n| if n == 5 { Value::from("é".repeat(200)) } else { Value::UInt(n) }).collect()
    }

    fn named(spec: &TableSpec, before: Option<u64>, message: &str) -> String {
        let at = Attempted { doing: "writing".into(), server: "h:1/d".into() };
        let source = ServerAnswer { code: 1406, state: "22001".into(), message: message.into() };
        let error = MysqlError::Unfit { at, row: None, source };
        RowPlaces::of(spec, before, &rows()).named(error).to_string()
    }

    #[test]
    fn a_row_is_named_by_its_number_and_its_key() {
        let by_b = spec(MergeMode::Overwrite { by: vec!["b".into()] });
        let said = named(&by_b, Some(500), "Data too long for column 'c' at row 2");
        assert!(said.starts_with("writing at h:1/d: row 502 (b = 4) does not fit the table"), "{said}");
        let said = named(&by_b, None, "Data too long for column 'c' at row 3");
        assert!(said.contains(": row (b = 7) does not fit"), "{said}");
    }

    #[test]
    fn a_table_without_a_key_names_a_row_by_its_first_columns_and_no_more_of_them_than_people_read() {
        let spec = spec(MergeMode::Append);
        let said = named(&spec, Some(0), "Out of range value for column 'c' at row 1");
        assert!(said.contains("row 1 (a = 0, b = 1)"), "{said}");
        let by_c = super::super::TableSpec { mode: MergeMode::Overwrite { by: vec!["c".into()] }, ..spec };
        let said = named(&by_c, Some(0), "Data truncated at row 2");
        assert!(said.contains(&format!("row 2 (c = '{}')", "é".repeat(SHOWN_CHARS_MAX))), "{said}");
    }

    #[test]
    fn a_server_that_names_no_row_of_the_statement_is_not_made_to() {
        let spec = spec(MergeMode::Append);
        for message in [
            "Check constraint 'x' is violated.",
            "at row",
            "too long at row 0",
            "too long at row 4",
            "value: 'x at row 1'",
        ] {
            assert!(named(&spec, Some(0), message).contains(": a row does not fit"), "{message}");
        }
    }
}
