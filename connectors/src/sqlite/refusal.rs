//! Tables that cannot be: refused before anything runs.
//!
//! Owns: the cases and their words. Does not own: the checks (see `table`). Runs on: plain data.

/// Why a sink's settings are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableRefusal {
    /// A table without columns.
    #[error("no columns are given; add some with `.column(name, |record| …)`")]
    NoColumns,
    /// A name that is empty, holds a NUL, or is kept for the sink itself.
    #[error(
        "the name \"{name}\" cannot be used: names are not empty, hold no NUL, and do not begin with `tidegate_` or `sqlite_`"
    )]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two columns of one name; SQLite does not tell upper from lower case.
    #[error("the column \"{column}\" is given twice (upper and lower case are the same to SQLite)")]
    DuplicateColumn {
        /// The column.
        column: String,
    },
    /// A key column that is not there.
    #[error("the key column \"{column}\" is not among the columns; add it, or name another one")]
    UnknownKeyColumn {
        /// The column.
        column: String,
    },
    /// A key that may be NULL: NULLs never meet in a key.
    #[error(
        "the key column \"{column}\" may be NULL, and NULLs are never equal; make it a value that is always there"
    )]
    OptionalKey {
        /// The column.
        column: String,
    },
    /// An upsert by other columns than the primary key.
    #[error(
        "rows are merged by ({by}), but the primary key is ({key}); leave the primary key away, or name the same columns"
    )]
    TwoKeys {
        /// The primary key.
        key: String,
        /// The key of the mode.
        by: String,
    },
    /// A merge by key without key columns.
    #[error("overwriting or adding needs at least one key column")]
    EmptyKey,
    /// Adding what is not a number, or may be missing.
    #[error(
        "the column \"{column}\" cannot be added up: it is {kind}{}; only numbers that are always there can",
        if *optional { " and may be NULL" } else { "" }
    )]
    NotAddable {
        /// The column.
        column: String,
        /// Its type.
        kind: super::ColumnType,
        /// Whether it may be NULL.
        optional: bool,
    },
}
