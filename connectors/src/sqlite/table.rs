//! A target table: what it must look like, and the SQL that follows from that.
//!
//! Owns: definition, check of a table that is there already, names in SQL, the merge clause of each mode. Does not own: the values.
//! Runs on: the I/O side.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use rusqlite::Connection;

use super::columns::ColumnSpec;
use super::{MergeMode, SqliteError, TableRefusal};

/// Name of the column that keeps the order of staged rows.
pub(crate) const SEQUENCE_COLUMN: &str = "tidegate_seq";

impl fmt::Display for ColumnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let null = if self.optional { "" } else { " NOT NULL" };
        write!(f, "{} {}{null}", quoted(&self.name), self.kind)
    }
}

/// A target table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableSpec {
    pub(crate) name: String,
    pub(crate) columns: Vec<ColumnSpec>,
    /// Columns of the primary key; empty if there is none.
    pub(crate) key: Vec<String>,
    pub(crate) mode: MergeMode,
}

/// A name as SQL takes it, whatever characters it has.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Names as a list in SQL.
pub(crate) fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

impl TableSpec {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<(), TableRefusal> {
        if self.columns.is_empty() {
            return Err(TableRefusal::NoColumns);
        }
        let mut names = BTreeSet::new();
        for name in self.columns.iter().map(|column| &column.name).chain([&self.name]) {
            let lower = name.to_ascii_lowercase();
            if name.is_empty()
                || name.contains('\0')
                || lower.starts_with("tidegate_")
                || lower.starts_with("sqlite_")
            {
                return Err(TableRefusal::ReservedName { name: name.clone() });
            }
        }
        for column in &self.columns {
            if !names.insert(column.name.to_ascii_lowercase()) {
                return Err(TableRefusal::DuplicateColumn { column: column.name.clone() });
            }
        }
        self.check_key()
    }

    fn check_key(&self) -> Result<(), TableRefusal> {
        let by = if self.mode == MergeMode::Append { self.key.as_slice() } else { self.mode.key() };
        if by.is_empty() && self.mode != MergeMode::Append {
            return Err(TableRefusal::EmptyKey);
        }
        if by != self.key {
            return Err(TableRefusal::TwoKeys { key: self.key.join(", "), by: by.join(", ") });
        }
        for name in by {
            match self.columns.iter().find(|column| column.name == *name) {
                None => return Err(TableRefusal::UnknownKeyColumn { column: name.clone() }),
                Some(column) if column.optional => {
                    return Err(TableRefusal::OptionalKey { column: name.clone() });
                }
                Some(_) => {}
            }
        }
        let fits = |column: &&ColumnSpec| column.kind.is_number() && !column.optional;
        match (&self.mode, self.values().find(|column| !fits(column))) {
            (MergeMode::Add { .. }, Some(column)) => Err(TableRefusal::NotAddable {
                column: column.name.clone(),
                kind: column.kind,
                optional: column.optional,
            }),
            _ => Ok(()),
        }
    }

    /// The columns that are not in the key.
    fn values(&self) -> impl Iterator<Item = &ColumnSpec> {
        self.columns.iter().filter(|column| !self.key.contains(&column.name))
    }

    pub(crate) fn column_names(&self) -> String {
        quoted_list(self.columns.iter().map(|column| column.name.as_str()))
    }

    fn definition(&self) -> String {
        let mut parts: Vec<String> = self.columns.iter().map(ToString::to_string).collect();
        if !self.key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", quoted_list(self.key.iter().map(String::as_str))));
        }
        parts.join(", ")
    }

    /// SQL that makes the table where it is missing.
    pub(crate) fn create_sql(&self) -> String {
        format!("CREATE TABLE IF NOT EXISTS {} ({}) STRICT", quoted(&self.name), self.definition())
    }

    /// SQL that makes a staging table: the same columns, no key, in the order of insertion. It must not be there yet.
    pub(crate) fn create_staging_sql(&self, staging: &str) -> String {
        let columns: Vec<String> = self.columns.iter().map(ToString::to_string).collect();
        let columns = columns.join(", ");
        format!("CREATE TABLE {} ({SEQUENCE_COLUMN} INTEGER PRIMARY KEY, {columns}) STRICT", quoted(staging))
    }

    /// SQL that merges a staging table into this one, in order.
    pub(crate) fn merge_sql(&self, staging: &str) -> String {
        let (table, columns, staging) = (quoted(&self.name), self.column_names(), quoted(staging));
        // `WHERE true` keeps the parser from reading ON CONFLICT as a join's condition.
        format!(
            "INSERT INTO {table} ({columns}) SELECT {columns} FROM {staging} WHERE true ORDER BY {SEQUENCE_COLUMN}{}",
            self.conflict_clause()
        )
    }

    /// What follows an INSERT, by the mode.
    pub(crate) fn conflict_clause(&self) -> String {
        let assignment: fn(&str, &str) -> String = match &self.mode {
            MergeMode::Append => return String::new(),
            MergeMode::Overwrite { .. } => |_, column| format!("{column} = excluded.{column}"),
            MergeMode::Add { .. } => {
                |table, column| format!("{column} = {table}.{column} + excluded.{column}")
            }
        };
        let table = quoted(&self.name);
        let key = quoted_list(self.key.iter().map(String::as_str));
        let set: Vec<String> =
            self.values().map(|column| assignment(&table, &quoted(&column.name))).collect();
        if set.is_empty() {
            return format!(" ON CONFLICT ({key}) DO NOTHING");
        }
        format!(" ON CONFLICT ({key}) DO UPDATE SET {}", set.join(", "))
    }

    /// Compares with the table that is in the file; one that is not there is fine.
    pub(crate) fn check_existing(&self, connection: &Connection, file: &Path) -> Result<(), SqliteError> {
        let Some(existing) = Existing::read(connection, &self.name)
            .map_err(|e| SqliteError::of(file, format!("looking at the table {}", self.name), e))?
        else {
            return Ok(());
        };
        let wanted = Existing {
            columns: self.columns.iter().map(ToString::to_string).collect(),
            key: self.key.clone(),
        };
        if existing.folded() == wanted.folded() {
            return Ok(());
        }
        Err(SqliteError::TableMismatch {
            file: file.to_owned(),
            table: self.name.clone(),
            was: existing.to_string(),
            is: wanted.to_string(),
        })
    }
}

/// A table as it stands in a file.
struct Existing {
    columns: Vec<String>,
    key: Vec<String>,
}

impl Existing {
    fn read(connection: &Connection, table: &str) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection
            .prepare("SELECT name, upper(type), \"notnull\", pk FROM pragma_table_info(?1) ORDER BY cid")?;
        let mut rows = statement.query([table])?;
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let (name, kind): (String, String) = (row.get(0)?, row.get(1)?);
            let (not_null, position): (bool, u32) = (row.get(2)?, row.get(3)?);
            columns.push(format!("{} {kind}{}", quoted(&name), if not_null { " NOT NULL" } else { "" }));
            if position > 0 {
                key.push((position, name));
            }
        }
        key.sort();
        let key = key.into_iter().map(|(_, name)| name).collect();
        Ok((!columns.is_empty()).then_some(Self { columns, key }))
    }

    /// For comparison: case does not count, nor the order of columns.
    fn folded(&self) -> (BTreeSet<String>, Vec<String>) {
        let lower = |name: &String| name.to_ascii_lowercase();
        (self.columns.iter().map(lower).collect(), self.key.iter().map(lower).collect())
    }
}

impl fmt::Display for Existing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({})", self.columns.join(", "))?;
        if self.key.is_empty() {
            return f.write_str(" without key");
        }
        write!(f, " with the key ({})", self.key.join(", "))
    }
}
