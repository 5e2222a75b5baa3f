//! The tables that must come out, made of the input by a plain loop.
//!
//! Owns: the reading of the partition files, by a struct of its own.
//! Does not own: the job's way to the same result; nothing is shared with it on purpose.
//! Runs on: the main thread of `verify`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::VerifyError;
use super::tally::Row;

/// One input line. Numbers are those that SQLite can hold.
#[derive(Debug, Deserialize)]
struct InputLine {
    order_id: i64,
    user_id: i64,
    amount_cents: i64,
    status: String,
    event_time_ms: i64,
}

/// A row of `t_order_event`, without its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRow {
    /// Column `user_id`.
    pub(crate) user_id: i64,
    /// Column `amount_cents`.
    pub(crate) amount_cents: i64,
    /// Column `status`.
    pub(crate) status: String,
    /// Column `event_time_ms`.
    pub(crate) event_time_ms: i64,
}

/// A row of `t_order_log`, without its order id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogRow {
    /// Column `user_id`.
    pub(crate) user_id: i64,
    /// Column `amount_cents`.
    pub(crate) amount_cents: i64,
}

/// A row of `t_order_stat` or `t_user_total`, without its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TotalRow {
    /// Column `order_count`.
    pub(crate) order_count: i64,
    /// Column `total_amount_cents`.
    pub(crate) total_amount_cents: i64,
}

impl Row for EventRow {
    fn cents(&self) -> i64 {
        self.amount_cents
    }
}

impl Row for LogRow {
    fn cents(&self) -> i64 {
        self.amount_cents
    }
}

impl Row for TotalRow {
    fn cents(&self) -> i64 {
        self.total_amount_cents
    }
}

/// What must stand in the four tables.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// `t_order_event`, by order.
    pub(crate) events: BTreeMap<i64, EventRow>,
    /// `t_order_log`, by order.
    pub(crate) log: BTreeMap<i64, LogRow>,
    /// `t_order_stat` and `t_user_total`, by user.
    pub(crate) totals: BTreeMap<i64, TotalRow>,
    /// Where each order stood in the topic, by [`place_id`]; empty for files.
    #[cfg(feature = "rdkafka")]
    pub(crate) places: BTreeMap<i64, LogRow>,
}

/// A place in a topic as one number.
#[cfg(feature = "rdkafka")]
pub(crate) fn place_id(partition: i64, offset: i64) -> i64 {
    use super::verdict::OFFSET_BITS;
    (partition << OFFSET_BITS) | (offset & ((1 << OFFSET_BITS) - 1))
}

impl Expected {
    /// Reads all `*.jsonl` files of `folder`, hidden ones left out. A last line without line end is not yet a record.
    ///
    /// # Errors
    /// [`VerifyError`] with file and line.
    pub(crate) fn of_folder(folder: &Path) -> Result<Self, VerifyError> {
        let files = partition_files(folder)?;
        if files.is_empty() {
            return Err(VerifyError::NoInput { folder: folder.into() });
        }
        let mut expected = Self::default();
        for file in files {
            expected.add_file(&file)?;
        }
        Ok(expected)
    }

    /// Reads all of a topic, committed records only. A record without a value is not yet an order.
    ///
    /// # Errors
    /// [`VerifyError`] with partition and offset.
    #[cfg(feature = "rdkafka")]
    pub(crate) fn of_topic(address: &crate::address::servers::KafkaAddress) -> Result<Self, VerifyError> {
        let mut expected = Self::default();
        crate::topic::read::each_record(address, |record| {
            let Some(value) = record.value else { return Ok(()) };
            let place = || format!("{address} partition {} offset {}", record.partition, record.offset);
            let order: InputLine = serde_json::from_slice(value)
                .map_err(|source| VerifyError::Record { place: place(), source })?;
            let row = LogRow { user_id: order.user_id, amount_cents: order.amount_cents };
            expected.places.insert(place_id(record.partition.into(), record.offset), row);
            expected.add(order).map_err(|order_id| VerifyError::RecordTwice { place: place(), order_id })
        })?;
        Ok(expected)
    }

    fn add_file(&mut self, file: &Path) -> Result<(), VerifyError> {
        let unreadable = |source| VerifyError::Input { path: file.into(), source };
        let mut reader = BufReader::new(File::open(file).map_err(unreadable)?);
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            reader.read_until(b'\n', &mut text).map_err(unreadable)?;
            if text.last() != Some(&b'\n') {
                break;
            }
            let order = serde_json::from_slice(&text).map_err(|source| VerifyError::Line {
                file: file.into(),
                line,
                source,
            })?;
            self.add(order).map_err(|order_id| VerifyError::OrderTwice {
                file: file.into(),
                line,
                order_id,
            })?;
        }
        Ok(())
    }

    /// Fails with the order id when it is there already.
    fn add(&mut self, order: InputLine) -> Result<(), i64> {
        let InputLine { order_id, user_id, amount_cents, status, event_time_ms } = order;
        let Entry::Vacant(place) = self.events.entry(order_id) else {
            return Err(order_id);
        };
        place.insert(EventRow { user_id, amount_cents, status, event_time_ms });
        self.log.insert(order_id, LogRow { user_id, amount_cents });
        let total = self.totals.entry(user_id).or_default();
        total.order_count += 1;
        // At the limit of the column the sums differ from what a database could hold, and the comparison says no.
        total.total_amount_cents = total.total_amount_cents.saturating_add(amount_cents);
        Ok(())
    }
}

fn partition_files(folder: &Path) -> Result<Vec<PathBuf>, VerifyError> {
    let unreadable = |source| VerifyError::Input { path: folder.into(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
        if hidden || path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        // Folders, pipes and links that lead nowhere are no parts: opening a pipe would wait for ever.
        match path.metadata() {
            Ok(metadata) if metadata.is_file() => files.push(path),
            Ok(_) => {}
            Err(source) if source.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(VerifyError::Input { path, source }),
        }
    }
    files.sort();
    Ok(files)
}
