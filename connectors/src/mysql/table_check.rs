//! Compares a target table with the one that is really there.
//!
//! Owns: reading `information_schema`, what fits and what does not. Does not own: the words (see [`super::TableRefusal`]), when it
//! runs (at submit). Runs on: the I/O side; the comparison itself is pure.

use mysql_async::{Row, Value};

use super::table::{TableSpec, quoted};
use super::{ColumnKind, ColumnSpec, Connection, MergeMode, MysqlError, TableRefusal};

/// A column as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThereColumn {
    pub(crate) name: String,
    /// `bigint`, `varchar`.
    pub(crate) data_type: String,
    /// `bigint(20) unsigned`, `varchar(40)`.
    pub(crate) full_type: String,
    pub(crate) nullable: bool,
    pub(crate) has_default: bool,
    pub(crate) generated: bool,
    pub(crate) auto_increment: bool,
    /// Digits of a second.
    pub(crate) second_digits: u64,
}

/// A unique key as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThereKey {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// Every column counts whole and cannot be NULL.
    pub(crate) whole: bool,
}

/// A table as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThereTable {
    /// `BASE TABLE`, `VIEW`.
    pub(crate) kind: String,
    pub(crate) engine: String,
    pub(crate) columns: Vec<ThereColumn>,
    pub(crate) keys: Vec<ThereKey>,
    pub(crate) triggers: Vec<String>,
}

/// Compares, on the server; warnings, a line each.
///
/// # Errors
/// [`MysqlError::Refused`] with the first thing that does not fit.
pub(crate) async fn check_table(
    connection: &mut Connection,
    spec: &TableSpec,
) -> Result<Vec<String>, MysqlError> {
    let there = read(connection, &spec.name).await?;
    let server = connection.url().place();
    let refused = |refusal| MysqlError::Refused { table: spec.name.clone(), server: server.clone(), refusal };
    let there = there.ok_or_else(|| refused(TableRefusal::NoTable { wanted: definition(spec) }))?;
    compare(spec, &there).map_err(refused)?;
    let warning = |trigger: &String| {
        format!(
            "mysql table {} at {server}: the trigger {trigger} runs with every row, inside the transaction",
            spec.name
        )
    };
    Ok(there.triggers.iter().map(warning).collect())
}

/// A definition that would do, for people.
pub(crate) fn definition(spec: &TableSpec) -> String {
    let mut parts: Vec<String> = spec.columns.iter().map(|column| column_definition(spec, column)).collect();
    if !spec.key().is_empty() {
        let key = super::table::quoted_list(spec.key().iter().map(String::as_str));
        parts.push(format!("PRIMARY KEY ({key})"));
    }
    parts.join(", ")
}

fn column_definition(spec: &TableSpec, column: &ColumnSpec) -> String {
    let key = spec.key().contains(&column.name);
    let kind = if key && column.kind == ColumnKind::Text { "varchar(255)" } else { column.kind.widest() };
    format!("{} {kind}{}", quoted(&column.name), if column.optional { "" } else { " NOT NULL" })
}

async fn read(connection: &mut Connection, table: &str) -> Result<Option<ThereTable>, MysqlError> {
    let doing = format!("looking at the table {table}");
    let name = || vec![Value::Bytes(table.as_bytes().to_vec())];
    let of_table = "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    let found = connection
        .rows(
            &doing,
            &format!("SELECT TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES {of_table}"),
            name(),
        )
        .await?;
    if found.is_empty() {
        return Ok(None);
    }
    let (kind, engine): (String, String) = connection.only_row(&doing, found)?;
    let columns = connection
        .rows(
            &doing,
            &format!(
                "SELECT COLUMN_NAME, DATA_TYPE, CAST(COLUMN_TYPE AS CHAR), IS_NULLABLE = 'YES', COLUMN_DEFAULT IS NOT NULL, \
                 EXTRA, COALESCE(DATETIME_PRECISION, 0) FROM information_schema.COLUMNS {of_table} ORDER BY ORDINAL_POSITION"
            ),
            name(),
        )
        .await?;
    let columns =
        columns.into_iter().map(|row| column_of(connection, &doing, row)).collect::<Result<_, _>>()?;
    let parts = connection
        .rows(
            &doing,
            &format!(
                "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART IS NULL AND NULLABLE <> 'YES' FROM information_schema.STATISTICS \
                 {of_table} AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX"
            ),
            name(),
        )
        .await?;
    let mut keys: Vec<ThereKey> = Vec::new();
    for row in parts {
        let (index, column, whole): (String, Option<String>, bool) =
            connection.only_row(&doing, vec![row])?;
        if keys.last().is_none_or(|key| key.name != index) {
            keys.push(ThereKey { name: index, columns: Vec::new(), whole: true });
        }
        if let Some(key) = keys.last_mut() {
            key.whole &= whole && column.is_some();
            key.columns.extend(column);
        }
    }
    let triggers = connection
        .rows(
            &doing,
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = ?",
            name(),
        )
        .await?;
    let triggers = triggers
        .into_iter()
        .map(|row| connection.only_row::<(String,)>(&doing, vec![row]).map(|(name,)| name))
        .collect::<Result<_, _>>()?;
    Ok(Some(ThereTable { kind, engine, columns, keys, triggers }))
}

fn column_of(connection: &Connection, doing: &str, row: Row) -> Result<ThereColumn, MysqlError> {
    let (name, data_type, full_type, nullable, has_default, extra, second_digits): (
        String,
        String,
        String,
        bool,
        bool,
        String,
        u64,
    ) = connection.only_row(doing, vec![row])?;
    let extra = extra.to_ascii_lowercase();
    let computed = extra.contains("generated") && !extra.contains("default_generated");
    Ok(ThereColumn {
        name,
        data_type: data_type.to_ascii_lowercase(),
        full_type: full_type.to_ascii_lowercase(),
        nullable,
        has_default: has_default || extra.contains("default_generated"),
        generated: computed,
        auto_increment: extra.contains("auto_increment"),
        second_digits,
    })
}

/// The comparison. Names of columns are the same in upper and lower case.
pub(crate) fn compare(spec: &TableSpec, there: &ThereTable) -> Result<(), TableRefusal> {
    if there.kind != "BASE TABLE" {
        return Err(TableRefusal::NotATable { kind: there.kind.clone() });
    }
    if !there.engine.eq_ignore_ascii_case("innodb") {
        return Err(TableRefusal::Engine { engine: there.engine.clone() });
    }
    for column in &spec.columns {
        let Some(found) = there.columns.iter().find(|c| is_same(&c.name, &column.name)) else {
            let names: Vec<&str> = there.columns.iter().map(|c| c.name.as_str()).collect();
            let (there, wanted) = (names.join(", "), column_definition(spec, column));
            return Err(TableRefusal::NoColumn { column: column.name.clone(), there, wanted });
        };
        compare_column(column, found)?;
    }
    let is_written = |found: &ThereColumn| spec.columns.iter().any(|c| is_same(&c.name, &found.name));
    let needs = |c: &&ThereColumn| {
        !c.nullable && !c.has_default && !c.generated && !c.auto_increment && !is_written(c)
    };
    if let Some(found) = there.columns.iter().find(needs) {
        return Err(TableRefusal::NotWritten { column: found.name.clone() });
    }
    if spec.mode == MergeMode::Append { Ok(()) } else { compare_key(spec, there) }
}

fn is_same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

fn compare_column(column: &ColumnSpec, there: &ThereColumn) -> Result<(), TableRefusal> {
    if there.generated {
        return Err(TableRefusal::Generated { column: column.name.clone() });
    }
    if let Some(why) = unfit(column.kind, there) {
        return Err(TableRefusal::ColumnType {
            column: column.name.clone(),
            is: there.full_type.clone(),
            kind: column.kind,
            why,
            widest: column.kind.widest(),
        });
    }
    if column.optional && !there.nullable {
        return Err(TableRefusal::NotNull { column: column.name.clone() });
    }
    Ok(())
}

/// Why a kind of values and a column cannot go together; `None`: they can, as far as is known before a value is there.
fn unfit(kind: ColumnKind, there: &ThereColumn) -> Option<&'static str> {
    let of = |types: &[&str]| types.contains(&there.data_type.as_str());
    let (ints, texts) = (
        of(&["tinyint", "smallint", "mediumint", "int", "bigint"]),
        of(&["char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "json", "uuid"]),
    );
    let bytes = of(&["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"]);
    let fits = match kind {
        ColumnKind::Signed | ColumnKind::Unsigned if of(&["year"]) => {
            return Some("1 to 99 would become other years");
        }
        ColumnKind::Signed | ColumnKind::Unsigned => ints || of(&["decimal", "bit"]),
        ColumnKind::Double if of(&["float"]) => return Some("digits would be lost"),
        ColumnKind::Double => of(&["double"]),
        ColumnKind::Decimal if of(&["float", "double"]) => return Some("digits would be lost"),
        ColumnKind::Decimal => of(&["decimal"]),
        ColumnKind::Text if of(&["set"]) => return Some("a text of digits would be taken for a set of bits"),
        ColumnKind::Text => texts || bytes || of(&["decimal"]),
        ColumnKind::Bytes => bytes,
        ColumnKind::DateTime if of(&["datetime", "timestamp"]) && there.second_digits < 6 => {
            return Some("microseconds would be rounded");
        }
        ColumnKind::DateTime => of(&["datetime", "timestamp"]),
        ColumnKind::Date => of(&["date", "datetime"]),
    };
    (!fits).then_some("they do not go together")
}

fn compare_key(spec: &TableSpec, there: &ThereTable) -> Result<(), TableRefusal> {
    let folded = |names: &[String]| {
        let mut names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        names.sort();
        names
    };
    let by = folded(spec.key());
    let shown = |key: &ThereKey| format!("{} ({})", key.name, key.columns.join(", "));
    if !there.keys.iter().any(|key| key.whole && folded(&key.columns) == by) {
        let keys: Vec<String> = there.keys.iter().map(shown).collect();
        let keys = if keys.is_empty() { "no unique key".to_owned() } else { keys.join("; ") };
        return Err(TableRefusal::NoSuchKey { by: spec.key().join(", "), keys });
    }
    // A key that holds the named one as a part meets only where that one meets; a number that the server gives never meets.
    let harmless = |key: &&ThereKey| {
        let columns = folded(&key.columns);
        let given = there.columns.iter().any(|c| {
            c.auto_increment
                && columns == [c.name.to_lowercase()]
                && !spec.columns.iter().any(|s| is_same(&s.name, &c.name))
        });
        given || by.iter().all(|name| columns.contains(name))
    };
    match there.keys.iter().find(|key| !harmless(key)) {
        Some(other) => Err(TableRefusal::SecondKey { other: shown(other) }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
