//! Orders spread over partition files: order `n` goes to part `n mod P`.
//!
//! Owns: the partition rule and the form of a line.
//! Does not own: the folder and its files (`tidegate_jobs::output_folder`).
//! Runs on: the main thread of `generate`, `import` and `produce`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::order::Order;
use tidegate_jobs::output_folder::{OutputError, OutputFolder};

/// The most partitions a data set may have.
pub(crate) const MAX_PARTITIONS: i64 = 1_024;

/// The partition files of one data set, open for writing.
#[derive(Debug)]
pub(crate) struct Partitions {
    folder: OutputFolder,
    count: u64,
    line: Vec<u8>,
}

impl Partitions {
    /// Opens `count` parts in `folder`.
    ///
    /// # Errors
    /// [`OutputError`], for one when the folder holds files and `force` is not set.
    pub(crate) fn create(folder: &Path, count: u32, force: bool) -> Result<Self, OutputError> {
        let folder = OutputFolder::create(folder, count, force)?;
        Ok(Self { folder, count: u64::from(count), line: Vec::with_capacity(160) })
    }

    /// Writes `order` to the end of its part.
    ///
    /// # Errors
    /// [`OutputError::Io`].
    pub(crate) fn append(&mut self, order: &Order) -> Result<(), OutputError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, order).expect("an order has only numbers and a string");
        self.line.push(b'\n');
        let part = usize::try_from(order.order_id % self.count).expect("there are at most 1,024 parts");
        self.folder.append(part, &self.line)
    }

    /// Makes all parts appear.
    ///
    /// # Errors
    /// [`OutputError::Io`].
    pub(crate) fn publish(self) -> Result<(), OutputError> {
        self.folder.publish()
    }
}

/// All orders of a folder that [`Partitions`] has written, by their id.
///
/// # Errors
/// A file that cannot be read, or a line that is no order.
#[cfg_attr(not(feature = "rdkafka"), expect(dead_code, reason = "`produce` needs a client"))]
pub(crate) fn orders_of_folder(folder: &Path) -> io::Result<Vec<Order>> {
    let mut orders = Vec::new();
    for part in 0.. {
        let file = folder.join(format!("part-{part}.jsonl"));
        if part > 0 && !file.exists() {
            break;
        }
        for line in BufReader::new(File::open(&file)?).lines() {
            orders.push(serde_json::from_str(&line?)?);
        }
    }
    orders.sort_by_key(|order: &Order| order.order_id);
    Ok(orders)
}
