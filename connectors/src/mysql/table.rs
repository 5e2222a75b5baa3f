//! A target table as a sink's author describes it, and the SQL that follows from that.
//!
//! Owns: definition, names in SQL, the clause of each mode. Does not own: the values, nor the table that is really there (see
//! [`super::table_check`]). Runs on: plain data.

use std::collections::BTreeSet;

use super::{ColumnSpec, MergeMode, ServerKind, TableRefusal};

/// Names of MySQL are at most so long.
const NAME_CHARS_MAX: usize = 64;
/// Names that begin so are the sink's own.
pub(crate) const RESERVED_PREFIX: &str = "tidegate_";

/// A target table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Its name.
    pub name: String,
    /// The columns that are written, in order.
    pub columns: Vec<ColumnSpec>,
    /// What becomes of a row whose key is there.
    pub mode: MergeMode,
}

/// A name as SQL takes it, whatever characters it has.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Names as a list in SQL.
pub(crate) fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

impl TableSpec {
    /// Appends to a table; no column yet.
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), columns: Vec::new(), mode: MergeMode::Append }
    }

    /// The key by which rows are merged; empty when appending.
    pub(crate) fn key(&self) -> &[String] {
        self.mode.key()
    }

    /// Whether rows that are there are changed: such a sink holds their locks.
    pub(crate) fn updates_in_place(&self) -> bool {
        self.mode != MergeMode::Append
    }

    /// Refuses what cannot work, whatever the server has.
    pub(crate) fn check(&self) -> Result<(), TableRefusal> {
        if self.columns.is_empty() {
            return Err(TableRefusal::NoColumns);
        }
        for name in self.columns.iter().map(|column| &column.name).chain([&self.name]) {
            let reserved = name.to_ascii_lowercase().starts_with(RESERVED_PREFIX);
            let bad = name.is_empty() || name.contains('\0') || name.ends_with(' ');
            if bad || reserved || name.chars().count() > NAME_CHARS_MAX {
                return Err(TableRefusal::BadName { name: name.clone() });
            }
        }
        let mut names = BTreeSet::new();
        for column in &self.columns {
            if !names.insert(column.name.to_lowercase()) {
                return Err(TableRefusal::DuplicateColumn { column: column.name.clone() });
            }
        }
        self.check_key()
    }

    fn check_key(&self) -> Result<(), TableRefusal> {
        if self.mode == MergeMode::Append {
            return Ok(());
        }
        if self.key().is_empty() {
            return Err(TableRefusal::EmptyKey);
        }
        for name in self.key() {
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
    pub(crate) fn values(&self) -> impl Iterator<Item = &ColumnSpec> {
        self.columns.iter().filter(|column| !self.key().contains(&column.name))
    }

    /// The names of all columns, as SQL takes them.
    pub(crate) fn column_names(&self) -> String {
        quoted_list(self.columns.iter().map(|column| column.name.as_str()))
    }

    /// What follows the values of a multi-row INSERT, by the mode. MySQL names the new row by an alias and calls `VALUES(column)`
    /// out of date; MariaDB has no alias.
    pub(crate) fn conflict_clause(&self, server: ServerKind) -> String {
        if self.mode == MergeMode::Append {
            return String::new();
        }
        let (alias, new): (&str, fn(&str) -> String) = match server {
            ServerKind::MySql => (" AS tidegate_new", |column| format!("tidegate_new.{column}")),
            ServerKind::MariaDb => ("", |column| format!("VALUES({column})")),
        };
        format!("{alias} ON DUPLICATE KEY UPDATE {}", self.assignments(new))
    }

    /// What follows `INSERT … SELECT … FROM source`, by the mode.
    pub(crate) fn merge_clause(&self, source: &str) -> String {
        if self.mode == MergeMode::Append {
            return String::new();
        }
        format!(" ON DUPLICATE KEY UPDATE {}", self.assignments(|column| format!("{source}.{column}")))
    }

    fn assignments(&self, new: impl Fn(&str) -> String) -> String {
        let table = quoted(&self.name);
        let assignment = |column: &ColumnSpec| {
            let name = quoted(&column.name);
            match self.mode {
                MergeMode::Add { .. } => format!("{table}.{name} = {table}.{name} + {}", new(&name)),
                MergeMode::Overwrite { .. } | MergeMode::Append => format!("{table}.{name} = {}", new(&name)),
            }
        };
        let mut set: Vec<String> = self.values().map(assignment).collect();
        if set.is_empty() {
            // A table that is all key: the row stays what it is.
            set.extend(self.key().first().map(|name| format!("{table}.{0} = {table}.{0}", quoted(name))));
        }
        set.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::ColumnKind;
    use super::*;

    fn spec(mode: MergeMode) -> TableSpec {
        let column = |name: &str, kind| ColumnSpec { name: name.to_owned(), kind, optional: false };
        let columns = vec![column("user_id", ColumnKind::Unsigned), column("to`tal", ColumnKind::Signed)];
        TableSpec { name: "t".to_owned(), columns, mode }
    }

    fn by(name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    #[test]
    fn each_mode_has_its_clause_on_each_server() {
        let add = spec(MergeMode::Add { by: by("user_id") });
        assert_eq!(
            add.conflict_clause(ServerKind::MariaDb),
            " ON DUPLICATE KEY UPDATE `t`.`to``tal` = `t`.`to``tal` + VALUES(`to``tal`)"
        );
        assert_eq!(
            add.conflict_clause(ServerKind::MySql),
            " AS tidegate_new ON DUPLICATE KEY UPDATE `t`.`to``tal` = `t`.`to``tal` + tidegate_new.`to``tal`"
        );
        let overwrite = spec(MergeMode::Overwrite { by: by("user_id") });
        assert_eq!(overwrite.merge_clause("s"), " ON DUPLICATE KEY UPDATE `t`.`to``tal` = s.`to``tal`");
        assert_eq!(spec(MergeMode::Append).conflict_clause(ServerKind::MySql), "");
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        assert_eq!(TableSpec::new("t").check(), Err(TableRefusal::NoColumns));
        assert_eq!(spec(MergeMode::Add { by: vec![] }).check(), Err(TableRefusal::EmptyKey));
        let unknown = spec(MergeMode::Add { by: by("x") }).check();
        assert_eq!(unknown, Err(TableRefusal::UnknownKeyColumn { column: "x".into() }));
        let mut text = spec(MergeMode::Add { by: by("user_id") });
        text.columns[1].kind = ColumnKind::Text;
        assert!(matches!(text.check(), Err(TableRefusal::NotAddable { .. })));
        text.mode = MergeMode::Append;
        assert_eq!(text.check(), Ok(()));
        for name in ["", "tidegate_ledger", "a\0", "x ", &"x".repeat(65)] {
            let mut named = spec(MergeMode::Append);
            named.name = name.to_owned();
            assert!(matches!(named.check(), Err(TableRefusal::BadName { .. })), "{name:?}");
        }
        let mut twice = spec(MergeMode::Append);
        twice.columns[1].name = "USER_ID".into();
        assert!(matches!(twice.check(), Err(TableRefusal::DuplicateColumn { .. })));
        let mut optional = spec(MergeMode::Overwrite { by: by("user_id") });
        optional.columns[0].optional = true;
        assert!(matches!(optional.check(), Err(TableRefusal::OptionalKey { .. })));
    }
}
