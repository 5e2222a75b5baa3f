//! Rows into a table, many per statement.
//!
//! Owns: rows that wait, how they are grouped into statements below every limit of the server. Does not own: the transaction around
//! them. Runs on: the I/O side.

use std::pin::pin;

use futures::future::{Either, select};
use mysql_async::Value;
use tidegate_state::fault_point;

use super::limits::PACKET_ROOM_BYTES;
use super::lock_holder::lock_holder;
use super::row_place::RowPlaces;
use super::table::{TableSpec, quoted};
use super::value::wire_bytes;
use super::{Connection, MysqlError};

/// Rows in one statement, where nothing is set; more gain little.
pub(crate) const ROWS_PER_STATEMENT: usize = 1_000;
/// The protocol counts placeholders in 16 bits.
const PLACEHOLDERS_MAX: usize = 65_535;
/// A statement's values take at most so much of a packet, however large that is: a server that takes a gigabyte should not get one.
const STATEMENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows that wait: `width` values each, one after the other.
#[derive(Debug)]
pub(crate) struct Rows {
    width: usize,
    /// Rows of one statement.
    rows_max: usize,
    pub(crate) values: Vec<Value>,
    /// Values whose bytes are counted, and these bytes.
    counted: (usize, usize),
    /// Rows that went before these.
    before: u64,
}

impl Rows {
    /// None yet, of `width` values each, at most `rows_max` in one statement.
    pub(crate) fn of_width(width: usize, rows_max: usize) -> Self {
        Self { width: width.max(1), rows_max, values: Vec::new(), counted: (0, 0), before: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Rows that one statement takes, as far as their number goes.
    fn per_statement(&self) -> usize {
        self.rows_max.min(PLACEHOLDERS_MAX / self.width).max(1)
    }

    /// Whether they fill a statement, by their number or by their bytes; asked after each row. A statement of fewer costs the way to the
    /// server and back all the same, and each number of rows is one more statement for the server to prepare.
    pub(crate) fn fill_a_statement(&mut self) -> bool {
        let (values, bytes) = &mut self.counted;
        *bytes += self.values[*values..].iter().map(wire_bytes).sum::<usize>();
        *values = self.values.len();
        *bytes >= STATEMENT_BYTES_MAX || self.len() >= self.per_statement()
    }

    /// Takes the rows out.
    pub(crate) fn take(&mut self) -> Self {
        let (before, room) = (self.before, Vec::with_capacity(self.values.len()));
        self.before += self.len() as u64;
        self.counted = (0, 0);
        let values = std::mem::replace(&mut self.values, room);
        Self { width: self.width, rows_max: self.rows_max, values, counted: (0, 0), before }
    }
}

/// The statement that inserts `rows` rows of `spec` into `table`.
pub(crate) fn insert_sql(spec: &TableSpec, table: &str, clause: &str, rows: usize) -> String {
    let row = format!("({})", vec!["?"; spec.columns.len()].join(","));
    let (table, columns, values) = (quoted(table), spec.column_names(), vec![row.as_str(); rows].join(","));
    format!("INSERT INTO {table} ({columns}) VALUES {values}{clause}")
}

/// How many of the first rows go into one statement.
fn group(rows: &Rows, from: usize, packet_bytes_max: usize) -> Result<usize, (usize, usize)> {
    let packet = packet_bytes_max.saturating_sub(PACKET_ROOM_BYTES);
    let (mut bytes, mut count) = (0, 0);
    for row in rows.values[from * rows.width..].chunks_exact(rows.width).take(rows.per_statement()) {
        let row_bytes: usize = row.iter().map(wire_bytes).sum();
        if count == 0 && row_bytes > packet {
            return Err((from, row_bytes));
        }
        if count > 0 && bytes + row_bytes > packet.min(STATEMENT_BYTES_MAX) {
            break;
        }
        (bytes, count) = (bytes + row_bytes, count + 1);
    }
    Ok(count)
}

/// Inserts rows of `spec` into `table`, in the manner of its mode (`plainly`: without it).
pub(crate) async fn insert(
    connection: &mut Connection,
    spec: &TableSpec,
    table: &str,
    plainly: bool,
    rows: Rows,
) -> Result<(), MysqlError> {
    let clause = if plainly { String::new() } else { spec.conflict_clause(connection.server()) };
    let doing = format!("writing rows into the table {}", spec.name);
    let (total, mut rest, mut done) = (rows.len(), rows, 0);
    while done < total {
        let count = group(&rest, 0, connection.packet_bytes_max()).map_err(|(row, row_bytes)| {
            MysqlError::RowTooLarge {
                table: spec.name.clone(),
                server: connection.url().place(),
                row: rest.before + (done + row) as u64 + 1,
                row_bytes,
                limit_bytes: connection.packet_bytes_max(),
            }
        })?;
        let later = rest.values.split_off(count * rest.width);
        let values = std::mem::replace(&mut rest.values, later);
        let places = RowPlaces::of(spec, Some(rest.before + done as u64), &values);
        let written =
            execute_watched(connection, &doing, &insert_sql(spec, table, &clause, count), values).await;
        written.map_err(|error| places.named(error))?;
        done += count;
        if done < total {
            fault_point!("mysql.insert.between");
        }
    }
    Ok(())
}

/// Runs a statement; when it waits for a row, finds out for whom before the wait ends, since nobody can tell afterwards.
pub(crate) async fn execute_watched(
    connection: &mut Connection,
    doing: &str,
    sql: &str,
    values: Vec<Value>,
) -> Result<(), MysqlError> {
    let (url, limits, io, id) = connection.whereabouts();
    let mut written = pin!(connection.execute(doing, sql, values));
    let holder = match select(&mut written, io.sleep(limits.lock_wait * 3 / 4)).await {
        Either::Left((written, _)) => return written.map(drop),
        Either::Right(_) => lock_holder(&url, limits, &io, id).await,
    };
    match written.await {
        Err(MysqlError::LockWait { at, source, .. }) => Err(MysqlError::LockWait { at, holder, source }),
        written => written.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(width: usize, sizes: &[usize]) -> Rows {
        let mut rows = Rows::of_width(width, ROWS_PER_STATEMENT);
        for size in sizes {
            rows.values.push(Value::Bytes(vec![0; *size]));
            rows.values.extend(vec![Value::NULL; width - 1]);
        }
        rows
    }

    #[test]
    fn a_statement_stays_below_rows_placeholders_and_bytes() {
        assert_eq!(group(&rows(2, &[1; 2_000]), 0, 1 << 24), Ok(ROWS_PER_STATEMENT));
        assert_eq!(group(&rows(200, &[1; 400]), 0, 1 << 24), Ok(327));
        assert_eq!(group(&rows(1, &[40_000; 10]), 0, 100_000), Ok(2));
        assert_eq!(group(&rows(1, &[40_000, 10]), 1, 100_000), Ok(1));
    }

    #[test]
    fn rows_fill_a_statement_by_their_number_or_by_their_bytes() {
        assert!(!rows(2, &[1; ROWS_PER_STATEMENT - 1]).fill_a_statement());
        let mut held = rows(2, &[1; ROWS_PER_STATEMENT]);
        assert!(held.fill_a_statement());
        assert_eq!((held.take().before, held.len()), (0, 0));
        assert!(!held.fill_a_statement());
        assert!(!rows(1, &[1_000_000; 4]).fill_a_statement());
        assert!(rows(1, &[1_000_000; 5]).fill_a_statement());
        assert!(rows(200, &[1; 327]).fill_a_statement(), "placeholders count too");
        held.values.extend(vec![Value::NULL; 4]);
        assert_eq!(
            (held.take().before, held.take().before),
            (ROWS_PER_STATEMENT as u64, ROWS_PER_STATEMENT as u64 + 2)
        );
    }

    #[test]
    fn a_row_above_the_packet_is_named() {
        assert_eq!(group(&rows(1, &[10, 200_000]), 1, 100_000), Err((1, 200_013)));
    }

    #[test]
    fn a_statement_has_a_placeholder_for_each_value() {
        let mut spec = TableSpec::new("t");
        spec.columns = ["a", "b"]
            .map(|name| super::super::ColumnSpec {
                name: name.into(),
                kind: super::super::ColumnKind::Text,
                optional: true,
            })
            .to_vec();
        assert_eq!(insert_sql(&spec, "t", "", 2), "INSERT INTO `t` (`a`, `b`) VALUES (?,?),(?,?)");
    }
}
