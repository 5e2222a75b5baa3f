//! Where reading begins and ends, resolved to numbers once.
//!
//! "Latest" is a number as soon as the partition is found, and that number is in the state: a job that is stopped before the first
//! record comes reads it when it comes, and does not look for a new "latest".
//!
//! Owns: the choices, the rule from facts to numbers. Does not own: asking the cluster (see [`super::topic`]). Runs on: plain data.

use std::collections::BTreeMap;

use super::KafkaSourceError;

/// Where a partition that is there at the first start is read from. Partitions that are found later are read from their beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StartingOffsets {
    /// From the oldest record that is kept.
    #[default]
    Earliest,
    /// What comes after the start. A transaction that is open then, and committed later, is read.
    Latest,
    /// Where the group named by [`super::KafkaSource::group`] stands; from the beginning where it has committed nothing. Asked once,
    /// at a start without restored state.
    Group,
    /// The first record with this time (milliseconds since 1970) or a later one, by the order of offsets; behind the newest if
    /// there is none.
    Timestamp(i64),
    /// By partition; those that are left out are read from the beginning.
    Explicit(BTreeMap<i32, i64>),
}

/// Where bounded reading of a partition ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoppingOffsets {
    /// In front of what came after the start: behind the newest record that no open transaction stands before.
    Latest,
    /// By partition, the first offset that is not read; those that are left out end as with [`Self::Latest`].
    Explicit(BTreeMap<i32, i64>),
}

/// What a cluster says about a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OffsetRange {
    pub(super) earliest: i64,
    pub(super) latest: i64,
}

/// Facts about the partitions that are resolved now.
#[derive(Clone, Debug, Default)]
pub(super) struct OffsetFacts {
    pub(super) ranges: BTreeMap<i32, OffsetRange>,
    /// [`StartingOffsets::Group`]: what the group has committed. [`StartingOffsets::Timestamp`]: the first offset at that time.
    pub(super) asked: BTreeMap<i32, i64>,
}

impl StartingOffsets {
    /// The number for one partition.
    pub(super) fn resolve(
        &self,
        topic: &str,
        partition: i32,
        facts: &OffsetFacts,
    ) -> Result<i64, KafkaSourceError> {
        let Some(range) = facts.ranges.get(&partition) else {
            return Err(KafkaSourceError::PartitionMissing { topic: topic.to_owned(), partition });
        };
        let told = match self {
            Self::Earliest => return Ok(range.earliest),
            Self::Latest => return Ok(range.latest),
            Self::Timestamp(_) => return Ok(facts.asked.get(&partition).copied().unwrap_or(range.latest)),
            Self::Group => facts.asked.get(&partition),
            Self::Explicit(offsets) => offsets.get(&partition),
        };
        match told {
            None => Ok(range.earliest),
            Some(offset) if (range.earliest..=range.latest).contains(offset) => Ok(*offset),
            Some(offset) => Err(KafkaSourceError::StartOutOfRange {
                topic: topic.to_owned(),
                partition,
                offset: *offset,
                earliest: range.earliest,
                latest: range.latest,
                said_by: if matches!(self, Self::Group) { "the consumer group" } else { "the job" },
            }),
        }
    }
}

impl StoppingOffsets {
    /// The number for one partition.
    pub(super) fn resolve(&self, partition: i32, range: OffsetRange) -> i64 {
        match self {
            Self::Latest => range.latest,
            Self::Explicit(offsets) => offsets.get(&partition).copied().unwrap_or(range.latest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(earliest: i64, latest: i64, asked: Option<i64>) -> OffsetFacts {
        OffsetFacts {
            ranges: BTreeMap::from([(0, OffsetRange { earliest, latest })]),
            asked: asked.map(|offset| (0, offset)).into_iter().collect(),
        }
    }

    fn start(starting: &StartingOffsets, facts: &OffsetFacts) -> Result<i64, String> {
        starting.resolve("t", 0, facts).map_err(|error| error.to_string())
    }

    #[test]
    fn each_choice_becomes_a_number() {
        assert_eq!(start(&StartingOffsets::Earliest, &facts(3, 9, None)), Ok(3));
        assert_eq!(start(&StartingOffsets::Latest, &facts(3, 9, None)), Ok(9));
        assert_eq!(
            start(&StartingOffsets::Latest, &facts(0, 0, None)),
            Ok(0),
            "an empty partition has a latest too"
        );
        assert_eq!(start(&StartingOffsets::Timestamp(1), &facts(3, 9, Some(5))), Ok(5));
        assert_eq!(start(&StartingOffsets::Timestamp(1), &facts(3, 9, None)), Ok(9));
        assert_eq!(start(&StartingOffsets::Group, &facts(3, 9, Some(7))), Ok(7));
        assert_eq!(start(&StartingOffsets::Group, &facts(3, 9, None)), Ok(3));
        let explicit = StartingOffsets::Explicit(BTreeMap::from([(0, 9)]));
        assert_eq!(start(&explicit, &facts(3, 9, None)), Ok(9));
    }

    #[test]
    fn an_offset_that_is_not_there_is_refused_with_what_is() {
        for offset in [2, 10] {
            let explicit = StartingOffsets::Explicit(BTreeMap::from([(0, offset)]));
            let error = start(&explicit, &facts(3, 9, None)).unwrap_err();
            assert!(error.contains("t[0]") && error.contains("from 3 to 9"), "{error}");
        }
        let error = start(&StartingOffsets::Group, &facts(3, 9, Some(1))).unwrap_err();
        assert!(error.contains("the consumer group"), "{error}");
    }

    #[test]
    fn reading_stops_where_it_is_told_or_at_the_latest() {
        let range = OffsetRange { earliest: 3, latest: 9 };
        assert_eq!(StoppingOffsets::Latest.resolve(0, range), 9);
        let explicit = StoppingOffsets::Explicit(BTreeMap::from([(1, 4)]));
        assert_eq!((explicit.resolve(0, range), explicit.resolve(1, range)), (9, 4));
    }
}
