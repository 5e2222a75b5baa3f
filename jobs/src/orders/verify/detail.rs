//! A topic that holds each order as it is: the job's output, read as any consumer would.
//!
//! Owns: the comparison, record by record. Does not own: the reading ([`crate::topic`]).
//! Runs on: the main thread of `verify`. What a transaction holds back that is neither committed nor aborted does not show.

use serde::Deserialize;

use super::VerifyError;
use super::expected::{EventRow, Expected};
use super::tally::Tally;
use super::verdict::Verdict;
use crate::address::servers::KafkaAddress;
use crate::topic::read::each_record;

/// Its name among the tables.
const NAME: &str = "topic";

/// A record's value, by a struct of its own.
#[derive(Debug, Deserialize)]
struct DetailRecord {
    order_id: i64,
    user_id: i64,
    amount_cents: i64,
    status: String,
    event_time_ms: i64,
}

/// Reads all of the topic and compares it.
///
/// # Errors
/// [`VerifyError`].
pub(super) fn compare(address: &KafkaAddress, expected: &Expected) -> Result<Verdict, VerifyError> {
    let mut tally = Tally::against(&expected.events);
    each_record(address, |record| {
        let Some(value) = record.value else { return Ok(()) };
        let DetailRecord { order_id, user_id, amount_cents, status, event_time_ms } =
            serde_json::from_slice(value).map_err(|source| {
                let place = format!("{address} partition {} offset {}", record.partition, record.offset);
                VerifyError::Record { place, source }
            })?;
        tally.add(order_id, &EventRow { user_id, amount_cents, status, event_time_ms });
        Ok::<_, VerifyError>(())
    })?;
    Ok(Verdict::of([(NAME, tally.finish())]))
}
