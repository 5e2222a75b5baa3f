//! The tables as they stand in a MySQL database.
//!
//! Owns: the queries, and that all tables are read as of one moment. Does not own: the connection ([`crate::database`]).
//! Runs on: the main thread of `verify`. A branch that is prepared and not committed does not show.

use mysql_async::Row as Columns;
use mysql_async::prelude::FromValue;

use super::VerifyError;
use super::actual::{ORDER_EVENT, ORDER_LOG, ORDER_STAT, Table, USER_TOTAL};
use super::expected::{EventRow, Expected, LogRow, TotalRow};
use super::tally::{Row, Tally};
use super::verdict::{TableVerdict, Verdict};
use crate::address::servers::MysqlAddress;
use crate::database::{DatabaseError, Session};

/// The server's word for a table that is not there.
const NO_SUCH_TABLE: u16 = 1146;
#[cfg(feature = "rdkafka")]
const PLACES: Table = Table {
    name: super::verdict::BY_OFFSET,
    columns: "source_partition, source_offset, user_id, amount_cents",
};

/// Reads all tables as of one moment and compares them.
///
/// # Errors
/// [`VerifyError`].
pub(super) fn compare(address: &MysqlAddress, expected: &Expected) -> Result<Verdict, VerifyError> {
    let mut session = Session::open(address)?;
    session.run("isolate a reader", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    session.run("begin to read", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
    let total = |row: &Columns| Some(TotalRow { order_count: at(row, 1)?, total_amount_cents: at(row, 2)? });
    let event = read(&mut session, ORDER_EVENT, Tally::against(&expected.events), first, |row| {
        let (user_id, amount_cents) = (at(row, 1)?, at(row, 2)?);
        Some(EventRow { user_id, amount_cents, status: at(row, 3)?, event_time_ms: at(row, 4)? })
    })?;
    let log = read(&mut session, ORDER_LOG, Tally::against(&expected.log), first, |row| {
        Some(LogRow { user_id: at(row, 1)?, amount_cents: at(row, 2)? })
    })?;
    let stat = read(&mut session, ORDER_STAT, Tally::against(&expected.totals), first, total)?;
    let user = read(&mut session, USER_TOTAL, Tally::against(&expected.totals), first, total)?;
    let verdicts =
        [(ORDER_EVENT.name, event), (ORDER_LOG.name, log), (ORDER_STAT.name, stat), (USER_TOTAL.name, user)];
    #[cfg(feature = "rdkafka")]
    if !expected.places.is_empty() {
        let place = |row: &Columns| Some(super::expected::place_id(at(row, 0)?, at(row, 1)?));
        let places = read(&mut session, PLACES, Tally::against(&expected.places), place, |row| {
            Some(LogRow { user_id: at(row, 2)?, amount_cents: at(row, 3)? })
        })?;
        return Ok(Verdict::of(verdicts.into_iter().chain([(PLACES.name, places)])));
    }
    Ok(Verdict::of(verdicts))
}

fn read<R: Row>(
    session: &mut Session,
    table: Table,
    mut tally: Tally<'_, R>,
    id: impl Fn(&Columns) -> Option<i64>,
    row: impl Fn(&Columns) -> Option<R>,
) -> Result<TableVerdict, VerifyError> {
    let mut broken = false;
    let name = table.name.split(' ').next().unwrap_or(table.name);
    let query = format!("SELECT {} FROM {name}", table.columns);
    let asked = session.each_row("read the table", &query, |columns| match id(&columns).zip(row(&columns)) {
        Some((id, row)) => tally.add(id, &row),
        None => broken = true,
    });
    let place = session.place().to_owned();
    match asked {
        Err(error) if error.code() == Some(NO_SUCH_TABLE) => {
            Err(VerifyError::NoServerTable { place, table: table.name })
        }
        Err(error @ DatabaseError::Statement { .. }) if error.code().is_some() => Err(error.into()),
        Err(error) => Err(error.into()),
        Ok(()) if broken => Err(VerifyError::ServerRow { place, table: table.name, columns: table.columns }),
        Ok(()) => Ok(tally.finish()),
    }
}

fn first(row: &Columns) -> Option<i64> {
    at(row, 0)
}

fn at<T: FromValue>(row: &Columns, column: usize) -> Option<T> {
    row.get_opt(column)?.ok()
}
