//! A record that a topic does not take: which one it is, why, and what helps.
//!
//! A broker refuses a whole batch, and librdkafka hands on a code only. What the topic allows is asked for when a writer opens, so that the
//! reason can be told with its number.
//!
//! Owns: what identifies a record to people, the words. Does not own: when it is refused (the broker, librdkafka).
//! Runs on: plain data.

use std::collections::BTreeMap;
use std::fmt;

use rdkafka::error::RDKafkaErrorCode;
use tidegate_engine::element::EventTime;

/// Settings of a topic that refuse records.
pub(super) const AHEAD: &str = "message.timestamp.after.max.ms";
pub(super) const BEHIND: &str = "message.timestamp.before.max.ms";
pub(super) const RECORD_BYTES: &str = "max.message.bytes";
/// Bytes of a key that are shown.
const KEY_SHOWN: usize = 64;

/// What a topic allows, as it tells; `None`: it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TopicLimits {
    ahead_max_ms: Option<i64>,
    behind_max_ms: Option<i64>,
    batch_bytes_max: Option<u64>,
}

impl TopicLimits {
    pub(super) fn of(settings: &BTreeMap<String, String>) -> Self {
        let told = |name| settings.get(name).map(String::as_str);
        Self {
            ahead_max_ms: told(AHEAD).and_then(|text| text.parse().ok()),
            behind_max_ms: told(BEHIND).and_then(|text| text.parse().ok()),
            batch_bytes_max: told(RECORD_BYTES).and_then(|text| text.parse().ok()),
        }
    }
}

/// The timestamp that a record goes out with. `None`: that of the moment when it is written. The lowest event time is that of a record
/// without one, the highest that of a function's last words: neither is a moment.
pub(super) fn timestamp_ms(time: Option<EventTime>) -> Option<i64> {
    time.filter(|time| *time != EventTime::MIN && *time != EventTime::MAX).map(|time| time.0)
}

/// A record, as people can find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusedRecord {
    /// From 1, among those this subtask wrote in this attempt.
    pub(super) number: u64,
    pub(super) key: Option<Vec<u8>>,
    pub(super) time_ms: Option<i64>,
    pub(super) bytes: usize,
}

impl fmt::Display for RefusedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} (", self.number)?;
        match &self.key {
            Some(key) => {
                let shown = String::from_utf8_lossy(&key[..key.len().min(KEY_SHOWN)]);
                write!(f, "key {shown:?}{}, ", if key.len() > KEY_SHOWN { ".." } else { "" })?;
            }
            None => f.write_str("no key, ")?,
        }
        write!(f, "{} bytes", self.bytes)?;
        match self.time_ms {
            Some(ms) => write!(f, ", event time {ms})"),
            None => f.write_str(")"),
        }
    }
}

/// Where, under which limits, and when.
pub(super) struct Refusing<'a> {
    pub(super) topic: &'a str,
    pub(super) limits: TopicLimits,
    /// Milliseconds since 1970.
    pub(super) now_ms: i64,
}

impl Refusing<'_> {
    /// What is said behind the record and its topic, help included.
    pub(super) fn advice(&self, record: &RefusedRecord, code: Option<RDKafkaErrorCode>) -> String {
        match code {
            Some(RDKafkaErrorCode::InvalidTimestamp) if record.time_ms.is_some() => self.of_time(record),
            // A batch with several bad records tells this of each.
            Some(RDKafkaErrorCode::InvalidRecord) if self.is_ahead(record) || self.is_behind(record) => {
                self.of_time(record)
            }
            Some(RDKafkaErrorCode::InvalidRecord) if record.key.is_none() => {
                ": the broker calls it invalid; a topic with cleanup.policy=compact takes no record without a key\n  help: give the \
                 sink a .key(..), or write into a topic that is not compacted"
                    .to_owned()
            }
            Some(
                RDKafkaErrorCode::InvalidTimestamp
                | RDKafkaErrorCode::InvalidRecord
                | RDKafkaErrorCode::InvalidDifferentRecord,
            ) => self.of_any_reason(),
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => self.of_size(record),
            Some(RDKafkaErrorCode::MessageBatchTooLarge) => {
                let topic = self.topic;
                format!(
                    ": its batch is larger than a segment of the topic\n  help: a smaller .property(\"batch.size\", ..), or \
                     kafka-configs.sh --alter --topic {topic} --add-config segment.bytes=.."
                )
            }
            Some(RDKafkaErrorCode::PolicyViolation) => {
                ": a policy of the cluster forbids it\n  help: ask who runs the cluster which policy that is".to_owned()
            }
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::TransactionalIdAuthorizationFailed,
            ) => "\n  help: the job needs the right to write into the topic, and with its transactional ids".to_owned(),
            _ => "; it and what follows are written again after a restart".to_owned(),
        }
    }

    fn is_ahead(&self, record: &RefusedRecord) -> bool {
        record
            .time_ms
            .zip(self.limits.ahead_max_ms)
            .is_some_and(|(ms, max)| ms.saturating_sub(self.now_ms) > max)
    }

    fn is_behind(&self, record: &RefusedRecord) -> bool {
        record
            .time_ms
            .zip(self.limits.behind_max_ms)
            .is_some_and(|(ms, max)| self.now_ms.saturating_sub(ms) > max)
    }

    fn of_time(&self, record: &RefusedRecord) -> String {
        let (topic, time_ms) = (self.topic, record.time_ms.unwrap_or(self.now_ms));
        let (setting, limit, distance, side) = if time_ms < self.now_ms {
            (BEHIND, self.limits.behind_max_ms, self.now_ms.saturating_sub(time_ms), "before")
        } else {
            (AHEAD, self.limits.ahead_max_ms, time_ms.saturating_sub(self.now_ms), "after")
        };
        let limit = limit.map_or_else(String::new, |ms| format!(", which is {ms}"));
        format!(
            ": its event time lies {distance} ms {side} now, and the topic allows no more than its {setting}{limit}\n  help: \
             kafka-configs.sh --alter --topic {topic} --add-config {setting}=.., or message.timestamp.type=LogAppendTime; or let the \
             operator before the sink drop or mend such records"
        )
    }

    /// librdkafka does not tell the time of a record that was refused, nor what the broker says of it beside the code.
    fn of_any_reason(&self) -> String {
        let topic = self.topic;
        let limit = self.limits.ahead_max_ms.map_or_else(String::new, |ms| format!(", which is {ms},"));
        format!(
            ": the broker calls it, or another one of its batch, invalid: an event time that lies further ahead of now than the topic's \
             {AHEAD}{limit} allows is (and one further behind than its {BEHIND}); its log says which\n  help: \
             kafka-configs.sh --alter --topic {topic} --add-config {AHEAD}=.., or message.timestamp.type=LogAppendTime; or let the \
             operator before the sink drop or mend such records"
        )
    }

    fn of_size(&self, record: &RefusedRecord) -> String {
        let (topic, bytes) = (self.topic, record.bytes as u64);
        let limit = self.limits.batch_bytes_max.map_or_else(String::new, |max| format!(", which is {max},"));
        let batch = match self.limits.batch_bytes_max {
            Some(max) if bytes < max => {
                "; it would fit alone, so that a smaller .property(\"batch.size\", ..) helps too"
            }
            _ => "",
        };
        format!(
            ": it, or the batch that it went in, is larger than the client's message.max.bytes or the topic's {RECORD_BYTES}{limit} allow{batch}\n  \
             help: .property(\"message.max.bytes\", ..) for the client, kafka-configs.sh --alter --topic {topic} --add-config \
             {RECORD_BYTES}=.. for the topic; or let the operator before the sink drop or split such records"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn record(time_ms: Option<i64>, bytes: usize) -> RefusedRecord {
        RefusedRecord { number: 7, key: Some(b"user-3".to_vec()), time_ms, bytes }
    }

    fn advice(record: &RefusedRecord, code: RDKafkaErrorCode) -> String {
        let settings = [(AHEAD, "3600000"), (BEHIND, "9223372036854775807"), (RECORD_BYTES, "100000")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let limits = TopicLimits::of(&settings);
        Refusing { topic: "orders", limits, now_ms: NOW_MS }.advice(record, Some(code))
    }

    #[test]
    fn what_is_no_moment_goes_out_without_a_timestamp() {
        assert_eq!(timestamp_ms(None), None);
        assert_eq!(timestamp_ms(Some(EventTime::MIN)), None);
        assert_eq!(timestamp_ms(Some(EventTime::MAX)), None);
        assert_eq!(timestamp_ms(Some(EventTime(5))), Some(5));
    }

    #[test]
    fn a_time_too_far_ahead_is_told_with_distance_limit_and_remedy() {
        let record = record(Some(NOW_MS + 7_200_000), 10);
        assert_eq!(record.to_string(), "record 7 (key \"user-3\", 10 bytes, event time 1700007200000)");
        for code in [RDKafkaErrorCode::InvalidTimestamp, RDKafkaErrorCode::InvalidRecord] {
            let said = advice(&record, code);
            for part in
                ["7200000 ms after now", "message.timestamp.after.max.ms, which is 3600000", "LogAppendTime"]
            {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    }

    #[test]
    fn a_record_without_a_key_is_told_of_compaction_and_others_of_the_brokers_log() {
        let keyless = RefusedRecord { key: None, ..record(None, 10) };
        assert!(advice(&keyless, RDKafkaErrorCode::InvalidRecord).contains("cleanup.policy=compact"));
        for code in [RDKafkaErrorCode::InvalidRecord, RDKafkaErrorCode::InvalidTimestamp] {
            let said = advice(&record(None, 10), code);
            assert!(said.contains("its log says which") && !said.contains("0 ms"), "{said}");
        }
    }

    #[test]
    fn a_batch_of_records_that_fit_alone_is_told_apart_from_a_record_that_does_not() {
        let alone = advice(&record(None, 200_000), RDKafkaErrorCode::MessageSizeTooLarge);
        assert!(alone.contains("max.message.bytes, which is 100000, allow\n"), "{alone}");
        assert!(alone.contains("message.max.bytes") && !alone.contains("batch.size"), "{alone}");
        assert!(advice(&record(None, 200), RDKafkaErrorCode::MessageSizeTooLarge).contains("batch.size"));
    }
}
