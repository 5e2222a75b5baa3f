//! A record of a topic, as a deserializer sees it.
//!
//! Owns: the view. Does not own: the bytes (librdkafka's, until the next record is asked for). Runs on: the consumer's thread.

use super::batch_consumer::FetchedMessage;

/// A view of one record.
#[derive(Clone, Copy, Debug)]
pub struct KafkaRecord<'a> {
    /// The topic.
    pub topic: &'a str,
    /// Number of the partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Milliseconds since 1970 that its producer or broker gave it; the event time, unless the job assigns another one.
    pub timestamp_ms: Option<i64>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value. `None` is a tombstone: the key was deleted.
    pub value: Option<&'a [u8]>,
    message: Option<FetchedMessage<'a>>,
}

impl<'a> KafkaRecord<'a> {
    pub(super) fn of(topic: &'a str, message: FetchedMessage<'a>) -> Self {
        Self {
            topic,
            partition: message.partition(),
            offset: message.offset(),
            timestamp_ms: message.timestamp_ms(),
            key: message.key(),
            value: message.value(),
            message: Some(message),
        }
    }

    /// A record without headers, for tests of a deserializer.
    pub fn new(
        topic: &'a str,
        partition: i32,
        offset: i64,
        key: Option<&'a [u8]>,
        value: Option<&'a [u8]>,
    ) -> Self {
        Self { topic, partition, offset, timestamp_ms: None, key, value, message: None }
    }

    /// Its headers, in order; a name may come twice, a value may be missing. Read from the record at each call.
    pub fn headers(&self) -> Vec<(&'a str, Option<&'a [u8]>)> {
        self.message.as_ref().map_or_else(Vec::new, FetchedMessage::headers)
    }
}
