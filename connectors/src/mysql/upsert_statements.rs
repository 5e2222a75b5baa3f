//! The statements that write reduced changes: multi-row upserts, then deletes by the whole key.
//!
//! Both kinds can be repeated any number of times. With a version column an upsert changes a row only if its version does not shrink, and
//! a delete takes only rows that are not newer.
//!
//! Owns: SQL text, grouping below the limits of the server. Does not own: running them (see [`super::upsert_session`]).
//! Runs on: plain data.

use mysql_async::Value;

use super::insert::insert_sql;
use super::limits::PACKET_ROOM_BYTES;
use super::table::{TableSpec, quoted};
use super::upsert_buffer::{Reduced, RowLayout};
use super::value::wire_bytes;
use super::{ColumnSpec, ServerKind};

/// Rows in one statement; more gain little.
const UPSERTS_PER_STATEMENT: usize = 500;
/// Keys in one statement: an optimizer looks each of them up by the key's index.
const DELETES_PER_STATEMENT: usize = 200;
/// The protocol counts placeholders in 16 bits.
const PLACEHOLDERS_MAX: usize = 65_535;
/// A statement's values take at most so much, however large a packet may be.
const STATEMENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A statement and its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpsertStatement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
    /// Of upserts, the first of their rows among all; deletes take any value.
    pub(crate) first_row: Option<usize>,
}

/// What statements depend on.
pub(crate) struct UpsertTable<'a> {
    pub(crate) spec: &'a TableSpec,
    pub(crate) layout: &'a RowLayout,
    pub(crate) server: ServerKind,
    /// Largest packet that the server takes.
    pub(crate) packet_bytes_max: usize,
}

impl UpsertTable<'_> {
    /// The statements for `changes`, in order.
    pub(crate) fn statements(&self, changes: &Reduced) -> Vec<UpsertStatement> {
        let (clause, mut next) = (self.conflict_clause(), 0);
        let upserts = self.groups(&changes.upserts, UPSERTS_PER_STATEMENT).map(|rows| {
            let sql = insert_sql(self.spec, &self.spec.name, &clause, rows.len());
            let first_row = Some(next);
            next += rows.len();
            UpsertStatement { sql, values: rows.concat(), first_row }
        });
        let deletes = self.groups(&changes.deletes, DELETES_PER_STATEMENT).map(|rows| {
            let parts = self.layout.key.iter().chain(&self.layout.version);
            let value =
                |row: &Vec<Value>| parts.clone().map(|column| row[*column].clone()).collect::<Vec<_>>();
            UpsertStatement {
                sql: self.delete_sql(rows.len()),
                values: rows.iter().flat_map(value).collect(),
                first_row: None,
            }
        });
        upserts.chain(deletes).collect()
    }

    /// Rows in groups that fit a statement each. (That a single row fits a packet was looked at before.)
    fn groups<'r>(&self, rows: &'r [Vec<Value>], most: usize) -> impl Iterator<Item = &'r [Vec<Value>]> {
        let most = most.min(PLACEHOLDERS_MAX / self.spec.columns.len().max(1)).max(1);
        let bytes_max = self.packet_bytes_max.saturating_sub(PACKET_ROOM_BYTES).min(STATEMENT_BYTES_MAX);
        let mut rest = rows;
        std::iter::from_fn(move || {
            let mut bytes = 0;
            let fits = |row: &&Vec<Value>| {
                bytes += row.iter().map(wire_bytes).sum::<usize>();
                bytes <= bytes_max
            };
            let count = rest.iter().take(most).take_while(fits).count().max(1).min(rest.len());
            let (group, later) = rest.split_at(count);
            rest = later;
            (!group.is_empty()).then_some(group)
        })
    }

    /// What becomes of a row that is there. Assignments are done from left to right, so the version, on which the others depend, is last.
    fn conflict_clause(&self) -> String {
        let (alias, new): (&str, fn(&str) -> String) = match self.server {
            ServerKind::MySql => (" AS tidegate_new", |column| format!("tidegate_new.{column}")),
            ServerKind::MariaDb => ("", |column| format!("VALUES({column})")),
        };
        let table = quoted(&self.spec.name);
        let version = self.layout.version.map(|column| &self.spec.columns[column]);
        let guard = version.map(|column| {
            let name = quoted(&column.name);
            format!("COALESCE({} >= {table}.{name}, TRUE)", new(&name))
        });
        let assignment = |column: &ColumnSpec| {
            let name = quoted(&column.name);
            match &guard {
                Some(guard) => format!("{table}.{name} = IF({guard}, {}, {table}.{name})", new(&name)),
                None => format!("{table}.{name} = {}", new(&name)),
            }
        };
        let is_version = |column: &&ColumnSpec| version.is_some_and(|version| version.name == column.name);
        let mut set: Vec<String> = self.spec.values().filter(|c| !is_version(c)).map(assignment).collect();
        set.extend(version.map(assignment));
        if set.is_empty() {
            // A table that is all key: the row stays what it is.
            set.extend(
                self.spec.key().first().map(|name| format!("{table}.{0} = {table}.{0}", quoted(name))),
            );
        }
        format!("{alias} ON DUPLICATE KEY UPDATE {}", set.join(", "))
    }

    fn delete_sql(&self, rows: usize) -> String {
        let name = |column: &usize| quoted(&self.spec.columns[*column].name);
        let table = quoted(&self.spec.name);
        if let ([only], None) = (self.layout.key.as_slice(), self.layout.version) {
            return format!("DELETE FROM {table} WHERE {} IN ({})", name(only), vec!["?"; rows].join(","));
        }
        let mut parts: Vec<String> =
            self.layout.key.iter().map(|column| format!("{} = ?", name(column))).collect();
        if let Some(version) = &self.layout.version {
            parts.push(format!("COALESCE({} <= ?, TRUE)", name(version)));
        }
        let row = format!("({})", parts.join(" AND "));
        format!("DELETE FROM {table} WHERE {}", vec![row; rows].join(" OR "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ColumnKind, MergeMode};
    use super::*;

    fn spec(key: &[&str]) -> TableSpec {
        let column =
            |name: &str| ColumnSpec { name: name.into(), kind: ColumnKind::Unsigned, optional: false };
        let by = key.iter().map(|name| (*name).to_owned()).collect();
        TableSpec {
            name: "t".into(),
            columns: ["a", "b", "v"].map(column).to_vec(),
            mode: MergeMode::Overwrite { by },
        }
    }

    fn statements(
        key: &[&str],
        version: Option<&str>,
        server: ServerKind,
        changes: &Reduced,
    ) -> Vec<UpsertStatement> {
        let spec = spec(key);
        let layout = RowLayout::of(&spec, version);
        UpsertTable { spec: &spec, layout: &layout, server, packet_bytes_max: 1 << 24 }.statements(changes)
    }

    fn row(a: u64, b: u64, v: u64) -> Vec<Value> {
        [a, b, v].map(Value::UInt).to_vec()
    }

    #[test]
    fn upserts_come_before_deletes() {
        let changes = Reduced { upserts: vec![row(1, 2, 3), row(4, 5, 6)], deletes: vec![row(7, 8, 9)] };
        let statements = statements(&["a"], None, ServerKind::MariaDb, &changes);
        assert_eq!(
            statements[0].sql,
            "INSERT INTO `t` (`a`, `b`, `v`) VALUES (?,?,?),(?,?,?) ON DUPLICATE KEY UPDATE `t`.`b` = VALUES(`b`), `t`.`v` = VALUES(`v`)"
        );
        assert_eq!(statements[0].values.len(), 6);
        assert_eq!(statements[1].sql, "DELETE FROM `t` WHERE `a` IN (?)");
        assert_eq!(statements[1].values, [Value::UInt(7)]);
    }

    #[test]
    fn a_delete_names_the_whole_key_whatever_the_order_of_its_columns() {
        let changes = Reduced { upserts: vec![], deletes: vec![row(1, 2, 3), row(4, 5, 6)] };
        let both = statements(&["b", "a"], None, ServerKind::MySql, &changes);
        assert_eq!(both[0].sql, "DELETE FROM `t` WHERE (`b` = ? AND `a` = ?) OR (`b` = ? AND `a` = ?)");
        assert_eq!(both[0].values, [2, 1, 5, 4].map(Value::UInt));
    }

    #[test]
    fn a_version_guards_every_column_and_is_set_last() {
        let changes = Reduced { upserts: vec![row(1, 2, 3)], deletes: vec![row(4, 5, 6)] };
        let guarded = statements(&["a"], Some("v"), ServerKind::MySql, &changes);
        assert!(
            guarded[0].sql.ends_with(
                " AS tidegate_new ON DUPLICATE KEY UPDATE \
                 `t`.`b` = IF(COALESCE(tidegate_new.`v` >= `t`.`v`, TRUE), tidegate_new.`b`, `t`.`b`), \
                 `t`.`v` = IF(COALESCE(tidegate_new.`v` >= `t`.`v`, TRUE), tidegate_new.`v`, `t`.`v`)"
            ),
            "{}",
            guarded[0].sql
        );
        assert_eq!(guarded[1].sql, "DELETE FROM `t` WHERE (`a` = ? AND COALESCE(`v` <= ?, TRUE))");
        assert_eq!(guarded[1].values, [4, 6].map(Value::UInt));
    }

    #[test]
    fn a_table_that_is_all_key_keeps_its_row() {
        let changes = Reduced { upserts: vec![row(1, 2, 3)], deletes: vec![] };
        let all = statements(&["a", "b", "v"], None, ServerKind::MariaDb, &changes);
        assert!(all[0].sql.ends_with("ON DUPLICATE KEY UPDATE `t`.`a` = `t`.`a`"), "{}", all[0].sql);
    }

    #[test]
    fn statements_stay_below_rows_and_bytes() {
        let many = Reduced { upserts: vec![row(1, 2, 3); 1_201], deletes: vec![row(1, 2, 3); 401] };
        let sizes = |statements: Vec<UpsertStatement>| -> Vec<usize> {
            statements.iter().map(|statement| statement.values.len()).collect()
        };
        assert_eq!(
            sizes(statements(&["a"], None, ServerKind::MariaDb, &many)),
            [1_500, 1_500, 603, 200, 200, 1]
        );

        let spec = spec(&["a"]);
        let layout = RowLayout::of(&spec, None);
        let wide = |bytes| vec![Value::UInt(1), Value::Bytes(vec![0; bytes]), Value::NULL];
        let table = UpsertTable {
            spec: &spec,
            layout: &layout,
            server: ServerKind::MariaDb,
            packet_bytes_max: 100_000,
        };
        let changes = Reduced {
            upserts: vec![wide(40_000), wide(40_000), wide(40_000), wide(98_000)],
            deletes: vec![],
        };
        assert_eq!(sizes(table.statements(&changes)), [6, 3, 3]);
    }
}
