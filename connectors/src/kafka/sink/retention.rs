//! Tells people when records go into a topic that deletes them for their age.
//!
//! A record's timestamp is its event time, and retention goes by it: what is older than `retention.ms` may be deleted as soon as it is
//! written, committed or not. No preflight can know the times of an input, and old ones may be wanted; so the first record that is
//! too old is told of, once for each sink of a process.
//!
//! Owns: which settings of a topic delete by event time, the warning; asking for what it refuses (see [`super::refused_record`]).
//! Does not own: when a broker deletes. Runs on: the I/O side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_engine::clock::SharedClock;
use tidegate_engine::element::EventTime;

use super::refused_record::{AHEAD, BEHIND, RECORD_BYTES, TopicLimits};
use crate::kafka::wire::WireClient;

const RETENTION: &str = "retention.ms";
const CLEANUP: &str = "cleanup.policy";
const TIMESTAMPS: &str = "message.timestamp.type";

/// Whether a sink of this process has warned; its subtasks and attempts share it.
pub(super) type Warned = Arc<AtomicBool>;

/// See the module.
#[derive(Clone)]
pub(super) struct RetentionWatch {
    topic: Arc<str>,
    /// `None`: event times delete nothing, or the topic does not tell.
    retention_ms: Option<i64>,
    limits: TopicLimits,
    clock: SharedClock,
    warned: Warned,
}

/// How long a topic keeps a record behind its event time. `None`: event times delete nothing.
fn kept_ms(settings: &BTreeMap<String, String>) -> Option<i64> {
    let told = |name| settings.get(name).map(String::as_str);
    let deletes = told(CLEANUP)?.split(',').any(|policy| policy.trim() == "delete");
    let by_event_time = told(TIMESTAMPS)? == "CreateTime";
    let retention_ms: i64 = told(RETENTION)?.parse().ok()?;
    (deletes && by_event_time && retention_ms >= 0).then_some(retention_ms)
}

/// What to tell people about the oldest of these times, if it is too old.
fn warning(topic: &str, times: &[EventTime], retention_ms: i64, now_ms: i64) -> Option<String> {
    // A record without a time of its own has the lowest one.
    let oldest = times.iter().filter(|time| **time != EventTime::MIN).min()?.0;
    let age_ms = now_ms.saturating_sub(oldest);
    (age_ms > retention_ms).then(|| {
        format!(
            "the topic {topic} deletes records {retention_ms} ms after their timestamps ({RETENTION}), and one with the event time {oldest} \
             is {age_ms} ms old: it and others like it may be deleted as soon as they are written, although they are committed\n  help: \
             kafka-configs.sh --alter --topic {topic} --add-config {RETENTION}=-1, or {TIMESTAMPS}=LogAppendTime; leave it if they may go"
        )
    })
}

impl RetentionWatch {
    /// Asks the topic. One that does not tell is not watched: nothing rests on it.
    pub(super) async fn of(
        wire: &mut WireClient,
        topic: &Arc<str>,
        clock: SharedClock,
        warned: Warned,
    ) -> Self {
        let names = [RETENTION, CLEANUP, TIMESTAMPS, AHEAD, BEHIND, RECORD_BYTES];
        let told = wire.topic_settings(topic, &names).await;
        let retention_ms = told.as_ref().ok().and_then(kept_ms);
        let limits = told.as_ref().map(TopicLimits::of).unwrap_or_default();
        if let Err(error) = told {
            tracing::debug!(%topic, %error, "the topic does not tell for how long it keeps records");
        }
        Self { topic: Arc::clone(topic), retention_ms, limits, clock, warned }
    }

    /// What the topic refuses.
    pub(super) fn limits(&self) -> TopicLimits {
        self.limits
    }

    /// Milliseconds since 1970.
    pub(super) fn now_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    /// Warns, the first time that one of these times is too old.
    pub(super) fn look(&self, times: &[EventTime]) {
        let Some(retention_ms) = self.retention_ms else { return };
        if times.is_empty() || self.warned.load(Ordering::Relaxed) {
            return;
        }
        if let Some(warning) = warning(&self.topic, times, retention_ms, self.clock.wall_ms())
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("{warning}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(retention: &str, cleanup: &str, timestamps: &str) -> Option<i64> {
        let settings = [(RETENTION, retention), (CLEANUP, cleanup), (TIMESTAMPS, timestamps)];
        kept_ms(&settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    #[test]
    fn only_a_finite_retention_by_event_time_deletes_by_event_time() {
        assert_eq!(kept("604800000", "delete", "CreateTime"), Some(604_800_000));
        assert_eq!(kept("5", "compact,delete", "CreateTime"), Some(5));
        for (retention, cleanup, timestamps) in
            [("-1", "delete", "CreateTime"), ("5", "compact", "CreateTime"), ("5", "delete", "LogAppendTime")]
        {
            assert_eq!(kept(retention, cleanup, timestamps), None, "{retention} {cleanup} {timestamps}");
        }
        assert_eq!(kept_ms(&BTreeMap::new()), None, "a topic that does not tell");
    }

    #[test]
    fn the_oldest_time_of_a_batch_is_told_with_topic_retention_and_remedy() {
        let times = [EventTime(99_000), EventTime(40_000), EventTime::MIN, EventTime(70_000)];
        let said = warning("orders", &times, 50_000, 100_000).unwrap();
        for part in ["orders", "50000 ms", "40000", "60000 ms old", "retention.ms=-1", "LogAppendTime"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(warning("orders", &times, 60_000, 100_000), None, "as old as is kept");
        assert_eq!(warning("orders", &[EventTime::MIN], 50_000, 100_000), None, "no event time");
    }
}
