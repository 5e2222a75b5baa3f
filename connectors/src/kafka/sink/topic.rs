//! Whether the sink's topic is still the topic it was.
//!
//! A topic that was deleted and made again has lost what was committed into it, and nothing else tells: records are sent by its name.
//! So its id, which no other topic gets, is looked at when a writer opens, when records were confirmed, and before a restored
//! transaction is committed.
//!
//! Owns: the looks and what follows from them. Does not own: what becomes of a lost transaction (the engine). Runs on: the I/O side.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::KafkaSinkError;
use crate::kafka::wire::{TOPIC_DENIED, TopicDescription, WireClient, WireError, topic_id_text};

/// A topic must be missing so often before it is called gone: a broker that has just started may not know it yet.
const LOOKS_MAX: u32 = 4;
/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// The id that a sink's topic had when a writer of this process opened first; its subtasks and attempts share it.
pub(super) type KnownId = Arc<OnceLock<u128>>;

/// What a look came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The topic that it was.
    Same,
    /// Another one of the same name.
    Another { is: u128 },
    /// No broker told, or none knows the topic now.
    Untold { reason: String },
}

fn look(was: u128, found: Result<Option<TopicDescription>, WireError>) -> Look {
    match found {
        Ok(Some(found)) if found.id_number == was => Look::Same,
        Ok(Some(found)) => Look::Another { is: found.id_number },
        Ok(None) => Look::Untold { reason: "the cluster does not know the topic".to_owned() },
        Err(error) => Look::Untold { reason: error.to_string() },
    }
}

/// The topic; one that is missing is looked for again.
pub(super) async fn find(
    wire: &mut WireClient,
    bootstrap: &str,
    topic: &str,
) -> Result<TopicDescription, KafkaSinkError> {
    let doing = || format!("looking for the topic {topic}");
    let mut looks = 0;
    loop {
        looks += 1;
        let found = wire.describe_topic(topic).await;
        let found = found.map_err(|source| match source.code() {
            Some(TOPIC_DENIED) => KafkaSinkError::NotAllowed {
                topic: topic.to_owned(),
                what: "see the topic".to_owned(),
                rule: format!("--operation write --topic {topic}"),
            },
            _ => KafkaSinkError::Wire { doing: doing(), source },
        })?;
        match found.filter(|found| !found.leaders.is_empty()) {
            Some(found) => return Ok(found),
            None if looks < LOOKS_MAX => wire.sleep(LOOK_PAUSE).await,
            None => {
                let (bootstrap, topic) = (bootstrap.to_owned(), topic.to_owned());
                return Err(KafkaSinkError::NoTopic { bootstrap, topic });
            }
        }
    }
}

/// How many partitions the topic has, and its id, which is the one that a writer of this process found before, if there was one.
pub(super) async fn describe(
    wire: &mut WireClient,
    bootstrap: &str,
    topic: &str,
    known: &KnownId,
) -> Result<(u32, u128), KafkaSinkError> {
    let found = find(wire, bootstrap, topic).await?;
    let (was, is) = (*known.get_or_init(|| found.id_number), found.id_number);
    if was != is {
        return Err(recreated(topic, was, is));
    }
    Ok((u32::try_from(found.leaders.len()).unwrap_or(u32::MAX), is))
}

/// After records were confirmed: they are in the topic of this id. (An id never comes back: if it is the same now, it was all the time.)
/// Where nobody tells, the work goes on: what comes next asks the same brokers.
pub(super) async fn refuse_another(
    wire: &mut WireClient,
    topic: &str,
    was: u128,
) -> Result<(), KafkaSinkError> {
    match look(was, wire.describe_topic(topic).await) {
        Look::Same => Ok(()),
        Look::Another { is } => Err(recreated(topic, was, is)),
        Look::Untold { reason } => {
            tracing::debug!(topic, reason, "whether the topic is the same is not known now");
            Ok(())
        }
    }
}

/// Before a restored transaction is committed; a topic that is missing is looked for again.
pub(super) async fn look_again(wire: &mut WireClient, topic: &str, was: u128) -> Look {
    let mut looks = 0;
    loop {
        looks += 1;
        match look(was, wire.describe_topic(topic).await) {
            Look::Untold { .. } if looks < LOOKS_MAX => wire.sleep(LOOK_PAUSE).await,
            // The sink may have been given another topic since.
            Look::Another { is } => return elsewhere(is, wire.has_topic(was).await),
            found => return found,
        }
    }
}

/// `is`: what has the name now. `there`: whether the topic that it was is there, under another name.
fn elsewhere(is: u128, there: Result<bool, WireError>) -> Look {
    match there {
        Ok(false) => Look::Another { is },
        // A broker that cannot be asked so: what the transaction comes to is told by its commit.
        Ok(true) | Err(WireError::NotOffered { .. }) => Look::Same,
        Err(error) => Look::Untold { reason: error.to_string() },
    }
}

/// Why a restored transaction is lost.
pub(super) fn lost(topic: &str, was: u128, is: u128) -> String {
    format!(
        "the topic {topic} was deleted and created again: its id was {} and is {}; with the old topic went everything that was committed \
         into it",
        topic_id_text(was),
        topic_id_text(is)
    )
}

fn recreated(topic: &str, was: u128, is: u128) -> KafkaSinkError {
    let (topic, was, is) = (topic.to_owned(), topic_id_text(was), topic_id_text(is));
    KafkaSinkError::TopicRecreated { topic, was, is }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;

    use super::*;

    #[test]
    fn a_topic_is_another_one_only_if_a_broker_tells_another_id() {
        let found = |id_number| {
            let (id, leaders) = (topic_id_text(id_number), BTreeMap::new());
            Ok(Some(TopicDescription { id, id_number, leaders }))
        };
        assert_eq!(look(7, found(7)), Look::Same);
        assert_eq!(look(7, found(8)), Look::Another { is: 8 });
        assert!(matches!(look(7, Ok(None)), Look::Untold { .. }));
        let source = io::Error::from(io::ErrorKind::TimedOut);
        let away = WireError::NoAnswer { request: "Metadata", address: "h:1".into(), source };
        assert!(matches!(look(7, Err(away)), Look::Untold { .. }));
        assert_eq!(elsewhere(8, Ok(true)), Look::Same, "the sink writes into another topic now");
        assert_eq!(elsewhere(8, Ok(false)), Look::Another { is: 8 });
        assert!(lost("orders", 7, 8).contains("orders"));
    }
}
