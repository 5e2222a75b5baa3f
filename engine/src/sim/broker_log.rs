//! One partition of the broker model: records and markers in one log, and what a read_committed consumer sees of it.
//!
//! Owns: the order of records and markers, the last stable offset. Does not own: who may write (see [`super::broker`]).
//! Runs on: the simulation's thread; pure.

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry<R> {
    Record {
        producer_id: i64,
        record: R,
    },
    /// The producer's transaction ends here, as far as this partition has a part in it.
    Marker {
        producer_id: i64,
        commit: bool,
    },
}

/// See the module.
#[derive(Clone, Debug)]
pub struct PartitionLog<R> {
    entries: Vec<Entry<R>>,
}

impl<R> Default for PartitionLog<R> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<R> PartitionLog<R> {
    /// Records of a producer whose transaction is open.
    pub fn append(&mut self, producer_id: i64, records: impl IntoIterator<Item = R>) {
        self.entries.extend(records.into_iter().map(|record| Entry::Record { producer_id, record }));
    }

    /// A producer's transaction has ended.
    pub fn mark(&mut self, producer_id: i64, commit: bool) {
        self.entries.push(Entry::Marker { producer_id, commit });
    }

    /// Records of committed transactions in order, hidden ones too; the flag tells whether a read_committed consumer sees the record:
    /// it reads no further than the first record whose transaction is open.
    pub fn committed(&self) -> Vec<(&R, bool)> {
        let mut seen = Vec::new();
        let mut visible = true;
        for (at, entry) in self.entries.iter().enumerate() {
            let Entry::Record { producer_id, record } = entry else { continue };
            match self.fate(*producer_id, at) {
                Some(true) => seen.push((record, visible)),
                Some(false) => {}
                None => visible = false,
            }
        }
        seen
    }

    /// How the transaction of a record ended; `None`: it is open.
    fn fate(&self, of: i64, at: usize) -> Option<bool> {
        self.entries[at..].iter().find_map(|entry| match entry {
            Entry::Marker { producer_id, commit } if *producer_id == of => Some(*commit),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(log: &PartitionLog<u8>) -> Vec<u8> {
        log.committed().into_iter().filter(|(_, visible)| *visible).map(|(record, _)| *record).collect()
    }

    #[test]
    fn an_older_open_transaction_hides_a_newer_committed_one() {
        let mut log = PartitionLog::default();
        log.append(1, [1]);
        log.append(2, [2]);
        log.mark(2, true);
        assert_eq!((visible(&log), log.committed().len()), (vec![], 1));
        log.mark(1, false);
        assert_eq!(visible(&log), [2]);
    }

    #[test]
    fn a_producer_that_writes_again_begins_another_transaction() {
        let mut log = PartitionLog::default();
        log.append(1, [1, 2]);
        log.mark(1, true);
        log.append(1, [3]);
        assert_eq!(visible(&log), [1, 2]);
        log.mark(1, false);
        assert_eq!(visible(&log), [1, 2]);
    }
}
