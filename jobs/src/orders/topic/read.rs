//! Reads a topic from its first record to its end, as a consumer that sees committed records only.
//!
//! Owns: that each partition is read to where it ends when asked, and that nothing is waited for without end.
//! Does not own: what the records mean. Runs on: the calling thread.

use std::collections::BTreeSet;

use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::TopicError;
use super::admin::{PATIENCE, consumer, offsets, partitions};
use crate::address::servers::KafkaAddress;

/// One record, where it stands and what it says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Its partition.
    pub(crate) partition: i32,
    /// Its offset.
    pub(crate) offset: i64,
    /// Its value; a tombstone has none.
    pub(crate) value: Option<&'a [u8]>,
}

/// Hands each record to `take`, partition by partition in order; the first error of `take` ends it.
///
/// # Errors
/// [`TopicError`], or that of `take`.
pub(crate) fn each_record<E: From<TopicError>>(
    address: &KafkaAddress,
    mut take: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let consumer = consumer(&address.bootstrap)?;
    let count =
        partitions(&consumer, address)?.ok_or_else(|| TopicError::NoTopic { address: address.clone() })?;
    let refused = |action, source| TopicError::Refused { action, address: address.clone(), source };
    let mut assignment = TopicPartitionList::new();
    let mut open = BTreeSet::new();
    for partition in 0..i32::try_from(count).unwrap_or(i32::MAX) {
        let (first, end) = offsets(&consumer, address, partition)?;
        if first < end {
            open.insert(partition);
            assignment
                .add_partition_offset(&address.topic, partition, Offset::Beginning)
                .map_err(|source| refused("read", source))?;
        }
    }
    consumer.assign(&assignment).map_err(|source| refused("read", source))?;
    let mut reached = vec![0_i64; count];
    while let Some(&first_open) = open.first() {
        match consumer.poll(PATIENCE) {
            Some(Ok(message)) => {
                let (partition, offset) = (message.partition(), message.offset());
                if let Some(place) = usize::try_from(partition).ok().and_then(|index| reached.get_mut(index))
                {
                    *place = offset + 1;
                }
                take(Record { partition, offset, value: message.payload() })?;
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
            Some(Err(source)) => return Err(refused("read", source).into()),
            None => {
                let offset = usize::try_from(first_open).ok().and_then(|index| reached.get(index).copied());
                let (_, end) = offsets(&consumer, address, first_open)?;
                let offset = offset.unwrap_or_default();
                let stuck =
                    TopicError::Stuck { address: address.clone(), partition: first_open, offset, end };
                return Err(stuck.into());
            }
        }
    }
    Ok(())
}

/// How many records committed readers see; none where there is no topic.
///
/// # Errors
/// [`TopicError`].
pub(crate) fn count(address: &KafkaAddress) -> Result<u64, TopicError> {
    let mut records = 0;
    let counted = each_record(address, |_| {
        records += 1;
        Ok(())
    });
    match counted {
        Err(TopicError::NoTopic { .. }) => Ok(0),
        counted => counted.map(|()| records),
    }
}
