//! Transactional ids and ledger groups as Kafka sees them: text whose components can be told apart again.
//!
//! | name | text |
//! |---|---|
//! | transactional id | `tidegate.<job>.<log id>.<lineage>.<uid>.<subtask>.<slot>.<attempt>` |
//! | ledger group | `tidegate-ledger.<job>.<log id>.<lineage>.<uid>.<subtask>.<slot>` |
//! | an operator's decision | `tidegate-ledger.<job>.<log id>.<lineage>.<uid>.<subtask>.<slot>.decided` |
//! | what rights are tried with | `tidegate.<job>.trial`, `tidegate-ledger.<job>.trial` |
//!
//! Job, log id and uid are written with letters, digits, `_` and `-` as they are and every other byte as `%XX`, so that `.` only
//! separates. One longer than [`COMPONENT_BYTES_MAX`] is replaced by `~` and its xxh3 (128 bits, 32 hexadecimal digits): hashed,
//! never cut. Numbers are decimal without leading zeros. So names are compared component by component, and a right granted for the
//! prefix `tidegate.<job>.` covers one job.
//!
//! Owns: the spelling. Does not own: the components (see [`tidegate_engine::broker::slot`]). Runs on: plain data.

use std::fmt::Write as _;

use tidegate_engine::broker::{LedgerGroup, ProducerSlot};
use tidegate_engine::ids::{AttemptId, Lineage};
use tidegate_engine::operator::TransactionScope;
use xxhash_rust::xxh3::xxh3_128;

/// A component of a name is not longer than this as it is written.
pub const COMPONENT_BYTES_MAX: usize = 64;

const PREFIX: &str = "tidegate";
const LEDGER_PREFIX: &str = "tidegate-ledger";
const DECIDED: &str = "decided";

/// A transactional id of a job under which nothing is ever written, and the prefix that all ids of the job share.
pub fn trial_id(job: &str) -> (String, String) {
    let prefix = format!("{PREFIX}.{}.", component(job));
    (format!("{prefix}trial"), prefix)
}

/// A group of a job that is no ledger, and the prefix that all its ledgers share.
pub fn trial_ledger(job: &str) -> (String, String) {
    let prefix = format!("{LEDGER_PREFIX}.{}.", component(job));
    (format!("{prefix}trial"), prefix)
}

/// The group in which an operator's decision about a transaction is noted, with the attempt that wrote it. `None`: not one of our ids.
/// It is not the ledger: that moves with commits only.
pub fn decision_group(id: &str) -> Option<(String, AttemptId)> {
    let components = IdComponents::read(id)?;
    let (rest, _attempt) = id.strip_prefix(PREFIX)?.rsplit_once('.')?;
    Some((format!("{LEDGER_PREFIX}{rest}.{DECIDED}"), components.attempt))
}

/// Spells and reads the ids of one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionalIds {
    scope: TransactionScope,
    job: String,
    log_id: String,
    uid: String,
}

impl TransactionalIds {
    /// Ids of this job, log and sink, of any lineage.
    pub fn of(scope: &TransactionScope) -> Self {
        Self {
            job: component(&scope.job.0),
            log_id: component(&scope.log_id.0),
            uid: component(&scope.uid.0),
            scope: scope.clone(),
        }
    }

    /// A slot's transactional id.
    pub fn spell(&self, slot: &ProducerSlot) -> String {
        let Self { job, log_id, uid, .. } = self;
        let ProducerSlot { scope, subtask, slot, attempt } = slot;
        format!("{PREFIX}.{job}.{log_id}.{}.{uid}.{subtask}.{slot}.{attempt}", scope.lineage)
    }

    /// A slot's ledger group.
    pub fn spell_ledger(&self, ledger: &LedgerGroup) -> String {
        let Self { job, log_id, uid, .. } = self;
        let LedgerGroup { scope, subtask, slot } = ledger;
        format!("{LEDGER_PREFIX}.{job}.{log_id}.{}.{uid}.{subtask}.{slot}", scope.lineage)
    }

    /// Whether a listed group is a ledger of this sink, in whatever lineage.
    pub fn is_ledger(&self, group: &str) -> bool {
        let own = format!("{LEDGER_PREFIX}.{}.{}.", self.job, self.log_id);
        let Some(rest) = group.strip_prefix(&own) else { return false };
        let parts: Vec<&str> = rest.split('.').collect();
        let [lineage, uid, subtask, slot] = parts[..] else { return false };
        uid == self.uid && [lineage, subtask, slot].into_iter().all(|text| number(text).is_some())
    }

    /// Reads a listed id. `None`: it is not one of this sink, whoever's it is.
    pub fn read(&self, id: &str) -> Option<ProducerSlot> {
        let mut parts = id.split('.');
        let mut next = || parts.next();
        let ours = [next()? == PREFIX, next()? == self.job, next()? == self.log_id];
        let lineage = number(next()?)?;
        let uid = next()? == self.uid;
        let (subtask, slot) = (number(next()?)?, number(next()?)?);
        let attempt = number(next()?)?;
        if next().is_some() || !uid || ours.contains(&false) {
            return None;
        }
        let scope = TransactionScope { lineage: Lineage(lineage), ..self.scope.clone() };
        let (subtask, slot) = (u32::try_from(subtask).ok()?, u32::try_from(slot).ok()?);
        Some(ProducerSlot { scope, subtask, slot, attempt: AttemptId(attempt) })
    }
}

/// An id's components as they are written, for people: of any job, log and sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdComponents {
    /// The job; `~` and a hash, if its name is long.
    pub job: String,
    /// Its commit log.
    pub log_id: String,
    /// The claim that began the lineage.
    pub lineage: Lineage,
    /// The sink; `~` and a hash, if its name is long.
    pub uid: String,
    /// The subtask that wrote.
    pub subtask: u32,
    /// Its slot.
    pub slot: u32,
    /// Its attempt.
    pub attempt: AttemptId,
}

impl IdComponents {
    /// Reads an id of any Tidegate job. `None`: it is none.
    pub fn read(id: &str) -> Option<Self> {
        let parts: Vec<&str> = id.split('.').collect();
        let [PREFIX, job, log_id, lineage, uid, subtask, slot, attempt] = parts[..] else { return None };
        Some(Self {
            job: shown(job)?,
            log_id: shown(log_id)?,
            lineage: Lineage(number(lineage)?),
            uid: shown(uid)?,
            subtask: u32::try_from(number(subtask)?).ok()?,
            slot: u32::try_from(number(slot)?).ok()?,
            attempt: AttemptId(number(attempt)?),
        })
    }
}

/// A component as it was before it was written. `None`: it is not written as components are.
fn shown(written: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), written.bytes());
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// A number as it is spelled here, and in no other way.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

fn component(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => written.push(char::from(byte)),
            // Writing into a string does not fail.
            _ => drop(write!(written, "%{byte:02X}")),
        }
    }
    if written.len() <= COMPONENT_BYTES_MAX {
        written
    } else {
        format!("~{:032x}", xxh3_128(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_engine::ids::{JobName, LogId, OperatorUid};

    use super::*;

    fn scope(job: &str, uid: &str, lineage: u64) -> TransactionScope {
        TransactionScope {
            job: JobName::from(job),
            log_id: LogId::from("0b8d"),
            lineage: Lineage(lineage),
            uid: OperatorUid::from(uid),
        }
    }

    fn slot(scope: TransactionScope) -> ProducerSlot {
        ProducerSlot { scope, subtask: 2, slot: 1, attempt: AttemptId(17) }
    }

    #[test]
    fn an_id_has_all_components_and_its_ledger_all_but_the_attempt() {
        let slot = slot(scope("orders", "order_event_sink", 3));
        let ids = TransactionalIds::of(&slot.scope);
        assert_eq!(ids.spell(&slot), "tidegate.orders.0b8d.3.order_event_sink.2.1.17");
        assert_eq!(ids.spell_ledger(&slot.ledger()), "tidegate-ledger.orders.0b8d.3.order_event_sink.2.1");
    }

    #[test]
    fn a_ledger_is_told_from_a_decision_a_trial_and_the_ledgers_of_others() {
        let slot = slot(scope("orders", "sink", 3));
        let ids = TransactionalIds::of(&slot.scope);
        assert!(ids.is_ledger(&ids.spell_ledger(&slot.ledger())));
        let (decided, attempt) = decision_group(&ids.spell(&slot)).unwrap();
        assert_eq!(
            (decided.as_str(), attempt),
            ("tidegate-ledger.orders.0b8d.3.sink.2.1.decided", AttemptId(17))
        );
        assert_eq!(decision_group("somebodys.id"), None);
        let (id, of_ids) = trial_id("orders");
        assert!(ids.spell(&slot).starts_with(&of_ids) && ids.read(&id).is_none());
        assert_eq!(IdComponents::read(&id), None);
        let (group, of_groups) = trial_ledger("orders");
        assert!(ids.spell_ledger(&slot.ledger()).starts_with(&of_groups));
        // A start without a checkpoint begins a new lineage, and asks for what was committed before it.
        let earlier = scope("orders", "sink", 4);
        assert!(ids.is_ledger(&TransactionalIds::of(&earlier).spell_ledger(&self::slot(earlier).ledger())));
        let others = [scope("orders", "sink_2", 3), scope("order", "sink", 3)];
        let others =
            others.map(|scope| TransactionalIds::of(&scope).spell_ledger(&self::slot(scope).ledger()));
        for no_ledger in others.iter().chain([&decided, &group]) {
            assert!(!ids.is_ledger(no_ledger), "{no_ledger}");
        }
    }

    #[test]
    fn names_are_told_apart_by_component_not_by_prefix() {
        let of = |job, uid| TransactionalIds::of(&scope(job, uid, 1));
        let id = of("a.b", "c").spell(&slot(scope("a.b", "c", 1)));
        assert_eq!(id, "tidegate.a%2Eb.0b8d.1.c.2.1.17");
        assert_eq!(of("a", "b.c").read(&id), None);
        assert_eq!(of("a", "c").read(&id), None);
        let longer = of("orders", "sink_2").spell(&slot(scope("orders", "sink_2", 1)));
        assert_eq!(of("orders", "sink").read(&longer), None);
        assert!(of("orders", "sink_2").read(&longer).is_some());
    }

    #[test]
    fn an_id_of_another_lineage_is_read_with_that_lineage() {
        let old = slot(scope("orders", "sink", 1));
        let ids = TransactionalIds::of(&scope("orders", "sink", 9));
        assert_eq!(ids.read(&ids.spell(&old)), Some(old));
    }

    #[test]
    fn an_id_of_any_job_is_read_for_people() {
        let slot = slot(scope("a.b/ü", "c", 9));
        let id = TransactionalIds::of(&slot.scope).spell(&slot);
        let read = IdComponents::read(&id).unwrap();
        assert_eq!((read.job.as_str(), read.uid.as_str(), read.attempt), ("a.b/ü", "c", AttemptId(17)));
        for bad in ["", "tidegate.j.0b8d.1.u.2.1", "other.j.0b8d.1.u.2.1.17", "tidegate.%2.0b8d.1.u.2.1.17"] {
            assert_eq!(IdComponents::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_only_looks_like_an_id_is_not_read() {
        let ids = TransactionalIds::of(&scope("j", "u", 1));
        let good = ids.spell(&slot(scope("j", "u", 1)));
        assert!(ids.read(&good).is_some());
        let bad = [
            "",
            "tidegate",
            "tidegate.j.0b8d.1.u.2.1",
            "tidegate.j.0b8d.1.u.2.1.17.0",
            "tidegate.j.0b8d.01.u.2.1.17",
        ];
        for id in
            bad.into_iter().chain(["tidegate.j.0b8d.1.u.-2.1.17", "tidegate.j.0b8d.1.u.99999999999.1.17"])
        {
            assert_eq!(ids.read(id), None, "{id}");
        }
    }

    #[test]
    fn a_long_component_is_hashed_and_two_that_share_a_beginning_stay_apart() {
        let (a, b) = ("x".repeat(65), format!("{}y", "x".repeat(64)));
        let spelled = |job: &str| TransactionalIds::of(&scope(job, "u", 1)).spell(&slot(scope(job, "u", 1)));
        assert_ne!(spelled(&a), spelled(&b));
        assert!(spelled(&a).len() < 120, "{}", spelled(&a));
        assert_eq!(component(&"x".repeat(64)).len(), 64);
    }

    proptest! {
        #[test]
        fn every_name_is_read_back_by_its_own_sink_only(
            jobs in proptest::array::uniform2(".{0,80}"), uids in proptest::array::uniform2(".{0,80}"),
            lineage: u64, subtask: u32, number: u32, attempt: u64,
        ) {
            let own = scope(&jobs[0], &uids[0], lineage);
            let slot = ProducerSlot { scope: own.clone(), subtask, slot: number, attempt: AttemptId(attempt) };
            let ids = TransactionalIds::of(&own);
            let text = ids.spell(&slot);
            prop_assert_eq!(ids.read(&text), Some(slot));
            let other = scope(&jobs[1], &uids[1], lineage);
            let is_same = other == own;
            prop_assert_eq!(TransactionalIds::of(&other).read(&text).is_some(), is_same);
        }
    }
}
