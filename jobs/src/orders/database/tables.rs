//! `orders tables`: the four tables in MySQL. The job writes into them and never makes them.
//!
//! Owns: their columns and keys. Does not own: what is written ([`crate::job`]), what must stand there ([`crate::verify`]).
//! Runs on: the main thread.
//!
//! `t_order_log` has no key of an order, so that it cannot hide a duplicate: only a number that the server gives. Written by upsert
//! it must have one: there the last row of an order stands.

use std::process::ExitCode;

use clap::Args;

use super::{DatabaseError, Session};
use crate::address::servers::{MysqlAddress, MysqlMode};
use tidegate::stdout;

/// Names of the tables, in the order in which they are shown.
pub(crate) const TABLES: [&str; 4] = ["t_order_event", "t_order_log", "t_order_stat", "t_user_total"];

/// How long an old table is waited for: its holder is a job or what one left, and neither ends soon.
const LOCK_WAIT_S: u64 = 2;
/// `Lock wait timeout exceeded`.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// The right to lock tables is missing.
const NOT_ALLOWED: [u16; 2] = [1044, 1142];

const ORDER_EVENT: &str = "CREATE TABLE t_order_event (
  order_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  user_id BIGINT UNSIGNED NOT NULL,
  amount_cents BIGINT NOT NULL,
  status VARCHAR(32) NOT NULL,
  event_time_ms BIGINT NOT NULL
) ENGINE=InnoDB";
const ORDER_LOG: &str = "CREATE TABLE t_order_log (
  log_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_id BIGINT UNSIGNED NOT NULL,
  user_id BIGINT UNSIGNED NOT NULL,
  amount_cents BIGINT NOT NULL,
  source_partition INT NOT NULL,
  source_offset BIGINT NOT NULL
) ENGINE=InnoDB";
const ORDER_LOG_BY_KEY: &str = "CREATE TABLE t_order_log (
  order_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  user_id BIGINT UNSIGNED NOT NULL,
  amount_cents BIGINT NOT NULL,
  source_partition INT NOT NULL,
  source_offset BIGINT NOT NULL
) ENGINE=InnoDB";
const ORDER_STAT: &str = "CREATE TABLE t_order_stat (
  user_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  order_count BIGINT NOT NULL,
  total_amount_cents BIGINT NOT NULL
) ENGINE=InnoDB";
const USER_TOTAL: &str = "CREATE TABLE t_user_total (
  user_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  order_count BIGINT NOT NULL,
  total_amount_cents BIGINT NOT NULL
) ENGINE=InnoDB";

/// Flags of `orders tables`.
#[derive(Debug, Args)]
pub(crate) struct TablesArgs {
    /// The database. With ?mode=upsert t_order_log gets the order as its key.
    #[arg(long, value_name = "mysql://USER:PASSWORD@HOST:PORT/DATABASE")]
    pub(crate) mysql: MysqlAddress,
    /// Drop tables of these names that are there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the statements and run none.
    #[arg(long)]
    pub(crate) print: bool,
}

/// Makes the tables and says so.
///
/// # Errors
/// [`DatabaseError`], for one when a table is there and `--force` is not given.
pub(crate) fn tables(args: &TablesArgs) -> Result<ExitCode, DatabaseError> {
    if args.print {
        statements(args.mysql.mode).iter().for_each(|statement| stdout::line(format_args!("{statement};")));
        return Ok(ExitCode::SUCCESS);
    }
    create(&args.mysql, args.force)?;
    stdout::line(format_args!("{} in {}", TABLES.join(", "), args.mysql));
    Ok(ExitCode::SUCCESS)
}

/// What makes them.
fn statements(mode: MysqlMode) -> [&'static str; 4] {
    let log = if mode == MysqlMode::Upsert { ORDER_LOG_BY_KEY } else { ORDER_LOG };
    [ORDER_EVENT, log, ORDER_STAT, USER_TOTAL]
}

/// Makes the tables.
///
/// # Errors
/// As [`tables`].
pub(crate) fn create(address: &MysqlAddress, force: bool) -> Result<(), DatabaseError> {
    let mut session = Session::open(address)?;
    let mut old = Vec::new();
    for table in TABLES {
        let Some(rows) = rows_of(&mut session, table)? else { continue };
        if !force {
            return Err(DatabaseError::TableThere { place: session.place().to_owned(), table, rows });
        }
        old.push(table);
    }
    drop_all(&mut session, &old)?;
    for statement in statements(address.mode) {
        session.run("create the table", statement)?;
    }
    Ok(())
}

/// Drops all of them, or none: a branch that is prepared on one of them holds its rows until it is settled. Each is locked first. (The
/// lock of the table waits for sessions, and without autocommit also for rows.)
fn drop_all(session: &mut Session, tables: &[&'static str]) -> Result<(), DatabaseError> {
    if tables.is_empty() {
        return Ok(());
    }
    session.run(
        "limit its waits",
        &format!(
            "SET SESSION lock_wait_timeout = {LOCK_WAIT_S}, innodb_lock_wait_timeout = {LOCK_WAIT_S}, \
             innodb_table_locks = 1, autocommit = 0"
        ),
    )?;
    match lock(session, tables) {
        // Who may drop and not lock sees what is held while dropping.
        Err(error) if error.code().is_some_and(|code| NOT_ALLOWED.contains(&code)) => {}
        Err(error) if error.code() == Some(LOCK_WAIT_TIMEOUT) => {
            // Of all that are locked together the server does not say which one made it wait.
            for &table in tables {
                lock(session, &[table]).map_err(|error| held(error, table))?;
            }
            return Err(held(error, tables[0]));
        }
        locked => locked?,
    }
    for &table in tables {
        session.run("drop the old table", &format!("DROP TABLE {table}"))?;
    }
    session.run("let go of its locks", "UNLOCK TABLES")?;
    session.run("commit by itself again", "SET SESSION autocommit = 1")
}

fn lock(session: &mut Session, tables: &[&str]) -> Result<(), DatabaseError> {
    let all: Vec<String> = tables.iter().map(|table| format!("{table} WRITE")).collect();
    session.run("lock its old tables", &format!("LOCK TABLES {}", all.join(", ")))
}

/// The error of a table that somebody holds.
fn held(error: DatabaseError, table: &'static str) -> DatabaseError {
    match error {
        DatabaseError::Statement { place, what: _, source } if is_lock_wait(&source) => {
            DatabaseError::TableHeld { place, table, source }
        }
        other => other,
    }
}

fn is_lock_wait(error: &mysql_async::Error) -> bool {
    matches!(error, mysql_async::Error::Server(answer) if answer.code == LOCK_WAIT_TIMEOUT)
}

/// Rows of a table; none: it is not there.
///
/// # Errors
/// [`DatabaseError`].
pub(crate) fn rows_of(session: &mut Session, table: &'static str) -> Result<Option<u64>, DatabaseError> {
    let there = format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{table}'"
    );
    if session.number("list its tables", &there)? == Some(0) {
        return Ok(None);
    }
    let count = session.number("count the rows", &format!("SELECT COUNT(*) FROM {table}"))?;
    Ok(Some(count.unwrap_or_default().unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_log_written_by_upsert_has_the_order_as_its_key() {
        for mode in [MysqlMode::Xa, MysqlMode::Staging, MysqlMode::Plain] {
            assert!(statements(mode)[1].contains("AUTO_INCREMENT"));
        }
        assert!(!statements(MysqlMode::Upsert)[1].contains("AUTO_INCREMENT"));
        for (table, statement) in TABLES.iter().zip(statements(MysqlMode::Xa)) {
            assert!(statement.starts_with(&format!("CREATE TABLE {table} (")));
        }
    }
}
