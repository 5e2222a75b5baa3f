//! Rows into a table, many per statement.
//!
//! Owns: how rows are grouped into statements. Does not own: the SQL transaction around them. Runs on: the I/O side.

use rusqlite::types::Value;
use rusqlite::{Connection, Statement};
use tidegate_state::fault_point;

use super::table::{TableSpec, quoted};

/// Rows in one statement; more gain little.
const ROWS_PER_STATEMENT: usize = 64;
/// SQLite's limit on values in one statement.
const VALUES_PER_STATEMENT: usize = 32_766;

/// Rows as SQLite takes them: `width` values each, one after the other.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) values: Vec<Value>,
}

impl Rows {
    pub(crate) fn of_width(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }
}

/// Inserts rows of `spec` into `table`; `clause` follows the values.
pub(crate) fn insert(
    connection: &Connection,
    spec: &TableSpec,
    table: &str,
    clause: &str,
    rows: &Rows,
) -> rusqlite::Result<()> {
    let width = rows.width.max(1);
    let group = ROWS_PER_STATEMENT.min(VALUES_PER_STATEMENT / width).max(1);
    let sql = |count: usize| {
        let row = format!("({})", vec!["?"; width].join(","));
        let (table, columns, values) = (quoted(table), spec.column_names(), vec![row; count].join(","));
        format!("INSERT INTO {table} ({columns}) VALUES {values}{clause}")
    };
    let groups = rows.values.chunks_exact(group * width);
    let rest = groups.remainder();
    if groups.len() > 0 {
        let mut statement = connection.prepare(&sql(group))?;
        // Of one statement there is no half.
        let half = (groups.len() + usize::from(!rest.is_empty())) / 2;
        for (index, values) in groups.enumerate() {
            execute(&mut statement, values)?;
            if index + 1 == half {
                fault_point!("sqlite.insert.between");
            }
        }
    }
    if !rest.is_empty() {
        execute(&mut connection.prepare(&sql(rest.len() / width))?, rest)?;
    }
    Ok(())
}

fn execute(statement: &mut Statement<'_>, values: &[Value]) -> rusqlite::Result<()> {
    for (index, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, value)?;
    }
    statement.raw_execute().map(|_| ())
}
