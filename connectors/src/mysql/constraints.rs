//! What a table demands of its rows beside types and keys: CHECKs and foreign keys, and which of them staged rows can meet early.
//!
//! A fault that shows at the merge shows when the checkpoint is complete: the rows come again at every start, and the job stands. So
//! a staging table gets the CHECKs of its target. Both servers hold a row that is to be inserted against them also where its key is there
//! and it is only added (measured), so that nothing is refused that the merge would take. Left out are CHECKs that name a column which
//! is not written or, on MySQL, have letters outside ASCII, and all of them where a trigger may change a row before it is inserted. Foreign keys are not copied: a row that is
//! asked for may come in the same checkpoint, by another sink.
//!
//! Owns: reading them, the choice. Does not own: the staging table (see [`super::staging_table`]). Runs on: the I/O side; the choice is
//! pure.

use mysql_async::Value;

use super::table::{TableSpec, quoted};
use super::{Connection, MysqlError, ServerKind};

/// A table of `information_schema` that old servers do not have: they have no CHECKs either.
const NO_SUCH_TABLE_THERE: u16 = 1109;

/// A CHECK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: String,
    /// As SQL takes it.
    pub(crate) clause: String,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraints {
    /// CHECKs that a staging table can have.
    pub(crate) early: Vec<Check>,
    /// Those that show at the merge only.
    pub(crate) late: Vec<Check>,
    /// Foreign keys, as people read them.
    pub(crate) foreign_keys: Vec<String>,
}

impl Constraints {
    /// Of the target, as far as this user may see them.
    pub(crate) async fn read(connection: &mut Connection, spec: &TableSpec) -> Result<Self, MysqlError> {
        let checks = checks(connection, spec).await?;
        let foreign_keys = foreign_keys(connection, spec).await?;
        if checks.is_empty() {
            return Ok(Self { foreign_keys, ..Self::default() });
        }
        let doing = format!("looking at columns and triggers of the table {}", spec.name);
        let columns = "SELECT COLUMN_NAME FROM information_schema.COLUMNS \
                       WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
        let columns: Vec<String> = names(connection, &doing, columns, spec).await?;
        let triggers = "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() \
                        AND EVENT_OBJECT_TABLE = ? AND ACTION_TIMING = 'BEFORE' AND EVENT_MANIPULATION = 'INSERT'";
        let triggers = names(connection, &doing, triggers, spec).await?;
        let (server, changed) = (connection.server(), !triggers.is_empty());
        let (early, late) = chosen(spec, server, &columns, changed, checks);
        Ok(Self { early, late, foreign_keys })
    }

    /// What to tell people before a job runs, a line each.
    pub(crate) fn warnings(&self, spec: &TableSpec, server: &str) -> Vec<String> {
        let late = |what: String| {
            format!(
                "mysql table {} at {server}: {what} is looked at when a checkpoint's rows are merged, and that checkpoint is complete by \
                 then: a row against it stops the job until the table is mended; without staging (mode=xa) it is found while it is written",
                spec.name
            )
        };
        let keys = self.foreign_keys.iter().map(|key| late(format!("the foreign key {key}")));
        let checks = self.late.iter().map(|check| late(format!("the CHECK {}", check.name)));
        keys.chain(checks).collect()
    }
}

/// Which CHECKs a table of the written columns can have, and which not. `changed`: something changes rows before they are inserted.
/// (MySQL tells letters outside ASCII in a clause as other ones: a copy would refuse what the original takes.)
fn chosen(
    spec: &TableSpec,
    server: ServerKind,
    columns: &[String],
    changed: bool,
    checks: Vec<Check>,
) -> (Vec<Check>, Vec<Check>) {
    let is_written = |name: &str| spec.columns.iter().any(|c| c.name.to_lowercase() == name.to_lowercase());
    let absent: Vec<String> =
        columns.iter().filter(|name| !is_written(name)).map(|name| quoted(name).to_lowercase()).collect();
    checks.into_iter().partition(|check| {
        let clause = check.clause.to_lowercase();
        let told_right = server == ServerKind::MariaDb || clause.is_ascii();
        !changed && told_right && !absent.iter().any(|name| clause.contains(name))
    })
}

async fn names(
    connection: &mut Connection,
    doing: &str,
    sql: &str,
    spec: &TableSpec,
) -> Result<Vec<String>, MysqlError> {
    let rows = connection.rows(doing, sql, vec![Value::Bytes(spec.name.as_bytes().to_vec())]).await?;
    rows.into_iter()
        .map(|row| connection.only_row::<(String,)>(doing, vec![row]).map(|(name,)| name))
        .collect()
}

async fn checks(connection: &mut Connection, spec: &TableSpec) -> Result<Vec<Check>, MysqlError> {
    let doing = format!("looking at the CHECKs of the table {}", spec.name);
    let server = connection.server();
    let sql = match server {
        ServerKind::MySql => {
            "SELECT c.CONSTRAINT_NAME, c.CHECK_CLAUSE FROM information_schema.TABLE_CONSTRAINTS t \
             JOIN information_schema.CHECK_CONSTRAINTS c \
             ON c.CONSTRAINT_SCHEMA = t.CONSTRAINT_SCHEMA AND c.CONSTRAINT_NAME = t.CONSTRAINT_NAME \
             WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = ? AND t.CONSTRAINT_TYPE = 'CHECK' AND t.ENFORCED = 'YES' ORDER BY 1"
        }
        ServerKind::MariaDb => {
            "SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS \
             WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY 1"
        }
    };
    let rows = match connection.rows(&doing, sql, vec![Value::Bytes(spec.name.as_bytes().to_vec())]).await {
        Err(error) if error.code() == Some(NO_SUCH_TABLE_THERE) => return Ok(Vec::new()),
        rows => rows?,
    };
    rows.into_iter()
        .map(|row| {
            let (name, clause): (String, String) = connection.only_row(&doing, vec![row])?;
            let clause = if server == ServerKind::MySql { unescaped(&clause) } else { clause };
            Ok(Check { name, clause })
        })
        .collect()
}

/// MySQL tells a clause with quotes and backslashes escaped once more.
fn unescaped(told: &str) -> String {
    let (mut clause, mut chars) = (String::with_capacity(told.len()), told.chars());
    while let Some(c) = chars.next() {
        if c != '\\' {
            clause.push(c);
            continue;
        }
        clause.push(match chars.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('0') => '\0',
            Some('Z') => '\u{1a}',
            Some(other) => other,
            None => c,
        });
    }
    clause
}

async fn foreign_keys(connection: &mut Connection, spec: &TableSpec) -> Result<Vec<String>, MysqlError> {
    let doing = format!("looking at the foreign keys of the table {}", spec.name);
    let sql = "SELECT CONCAT(CONSTRAINT_NAME, ' (', GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION SEPARATOR ', '), ') into ', \
               REFERENCED_TABLE_NAME) FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? \
               AND REFERENCED_TABLE_NAME IS NOT NULL GROUP BY CONSTRAINT_NAME, REFERENCED_TABLE_NAME ORDER BY 1";
    names(connection, &doing, sql, spec).await
}

#[cfg(test)]
mod tests {
    use super::super::{ColumnKind, ColumnSpec, MergeMode};
    use super::*;

    fn check(name: &str, clause: &str) -> Check {
        Check { name: name.into(), clause: clause.into() }
    }

    #[test]
    fn a_check_that_names_a_column_that_is_not_written_is_left_to_the_merge() {
        let column = |name: &str| ColumnSpec { name: name.into(), kind: ColumnKind::Signed, optional: false };
        let columns = ["user_id", "cents"].map(column).to_vec();
        let spec = TableSpec { name: "t".into(), columns, mode: MergeMode::Append };
        let there = ["User_Id", "cents", "Most"].map(str::to_owned);
        let own = check("own", "`cents` >= 0 and `User_Id` > 0");
        let other = check("other", "`cents` < `most`");
        let both = || vec![own.clone(), other.clone()];
        let chosen = |server, changed, checks| chosen(&spec, server, &there, changed, checks);
        for server in [ServerKind::MariaDb, ServerKind::MySql] {
            assert_eq!(chosen(server, false, both()), (vec![own.clone()], vec![other.clone()]));
            assert_eq!(chosen(server, true, both()), (vec![], both()), "a trigger may mend the row");
        }
        let umlaut = || vec![check("umlaut", "`cents` <> 'ü'")];
        assert_eq!(chosen(ServerKind::MariaDb, false, umlaut()), (umlaut(), vec![]));
        assert_eq!(chosen(ServerKind::MySql, false, umlaut()), (vec![], umlaut()));
        let found = Constraints {
            early: vec![own.clone()],
            late: vec![other.clone()],
            foreign_keys: vec!["k (a) into p".into()],
        };
        let said = found.warnings(&spec, "h:1/d");
        assert!(said.len() == 2 && said[0].contains("k (a) into p") && said[1].contains("other"), "{said:?}");
        assert!(said.iter().all(|line| line.contains("mode=xa")), "{said:?}");
    }

    #[test]
    fn what_mysql_has_escaped_once_more_is_a_clause_again() {
        let told = r"(`st` in (_utf8mb4\'a\\\\b\',_utf8mb4\'it\\\'s\',_utf8mb4\'n\\nl\'))";
        let clause = r"(`st` in (_utf8mb4'a\\b',_utf8mb4'it\'s',_utf8mb4'n\nl'))";
        assert_eq!(unescaped(told), clause);
    }
}
