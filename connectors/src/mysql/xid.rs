//! Names of branches as XA takes them, and their way back.
//!
//! | part | text, at most 64 bytes |
//! |---|---|
//! | gtrid | `tidegate.<job>.<log id>` |
//! | bqual | `<lineage>.<uid>.<subtask>.<opened after>.<attempt>` |
//!
//! Job, log id and uid are written with letters, digits, `_` and `-` as they are and every other byte as `%XX`, so that `.` only
//! separates; numbers in base 36 without leading zeros. Where a part would not fit, its text components are replaced by `~` and a
//! hash (xxh3): hashed, never cut. The format id is [`FORMAT_ID`], which is part of the identity on MySQL and is ignored by MariaDB.
//!
//! Owns: the spelling, reading it back, the name of a writer's lock. Does not own: the components. Runs on: plain data.

use std::fmt;

use tidegate_engine::ids::{AttemptId, CheckpointId, Lineage};
use tidegate_engine::operator::{TransactionName, TransactionScope};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// `TG` in ASCII.
pub const FORMAT_ID: u32 = 0x5447;
/// Both servers' limit on either part.
const PART_BYTES_MAX: usize = 64;
const PREFIX: &str = "tidegate";

/// A branch as the server names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xid {
    /// Job and log.
    pub gtrid: Vec<u8>,
    /// The rest.
    pub bqual: Vec<u8>,
    /// Format.
    pub format_id: u32,
}

impl Xid {
    /// The branch of a transaction.
    pub fn of(name: &TransactionName) -> Self {
        let TransactionScope { lineage, uid, .. } = &name.scope;
        let gtrid = gtrid_of(&name.scope);
        let numbers = [u64::from(name.subtask), name.opened_after.0, name.attempt.0].map(base_36).join(".");
        let (lineage, uid) = (base_36(lineage.0), escaped(uid.as_str()));
        let mut bqual = format!("{lineage}.{uid}.{numbers}");
        if bqual.len() > PART_BYTES_MAX {
            // At most 13 + 1 + 14 + 1 + 7 + 1 + 13 + 1 + 13.
            bqual = format!("{lineage}.{}.{numbers}", hashed_uid(&uid));
        }
        Self { gtrid: gtrid.into_bytes(), bqual: bqual.into_bytes(), format_id: FORMAT_ID }
    }

    /// As statements name it.
    pub fn sql(&self) -> String {
        format!("X'{}',X'{}',{}", hex(&self.gtrid), hex(&self.bqual), self.format_id)
    }

    /// Whether it is one of Tidegate's, of whatever job.
    pub fn is_ours(&self) -> bool {
        self.format_id == FORMAT_ID && self.parts().is_some()
    }

    /// Its components, for people.
    pub fn parts(&self) -> Option<XidParts> {
        let gtrid = std::str::from_utf8(&self.gtrid).ok()?;
        let mut texts = gtrid.split('.');
        let (prefix, job, log_id) = (texts.next()?, texts.next()?, texts.next()?);
        if prefix != PREFIX || texts.next().is_some() {
            return None;
        }
        let bqual = std::str::from_utf8(&self.bqual).ok()?;
        let mut texts = bqual.split('.');
        let (lineage, uid) = (number(texts.next()?)?, texts.next()?);
        let (subtask, opened_after) = (number(texts.next()?)?, number(texts.next()?)?);
        let attempt = number(texts.next()?)?;
        if texts.next().is_some() {
            return None;
        }
        Some(XidParts {
            job: unescaped(job),
            log_id: unescaped(log_id),
            lineage: Lineage(lineage),
            uid: unescaped(uid),
            subtask: u32::try_from(subtask).ok()?,
            opened_after: CheckpointId(opened_after),
            attempt: AttemptId(attempt),
        })
    }

    /// Whether it is one of the job of this name, also where the name did not fit.
    pub fn is_of_job(&self, job: &str) -> bool {
        let gtrid = String::from_utf8_lossy(&self.gtrid);
        let (escaped, written) = (escaped(job), gtrid.split('.').nth(1));
        self.is_ours() && written.is_some_and(|text| text == escaped || text == hashed_128(&escaped))
    }

    /// The transaction, if it is one of this job, log and sink, of whatever lineage, subtask and attempt.
    pub fn read(&self, scope: &TransactionScope) -> Option<TransactionName> {
        let parts = self.parts()?;
        let scope = TransactionScope { lineage: parts.lineage, ..scope.clone() };
        let (subtask, opened_after, attempt) = (parts.subtask, parts.opened_after, parts.attempt);
        let name = TransactionName { scope, subtask, opened_after, attempt };
        // Component by component: what this scope would be called with these numbers.
        (Self::of(&name) == *self).then_some(name)
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gtrid, bqual) = (String::from_utf8_lossy(&self.gtrid), String::from_utf8_lossy(&self.bqual));
        write!(f, "{gtrid}/{bqual}")
    }
}

/// Components of a branch's name; texts that did not fit are still hashed and begin with `~`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidParts {
    /// The job.
    pub job: String,
    /// Its log.
    pub log_id: String,
    /// The claim that began the lineage.
    pub lineage: Lineage,
    /// The sink.
    pub uid: String,
    /// The subtask that wrote it.
    pub subtask: u32,
    /// The last barrier seen when it was opened.
    pub opened_after: CheckpointId,
    /// The attempt that wrote it.
    pub attempt: AttemptId,
}

/// Name of the lock that a writer's session holds: at most one session of a sink's subtask writes, and whose it is can be asked.
pub(crate) fn writer_lock(scope: &TransactionScope, subtask: u32) -> String {
    lock_of_writer(&gtrid_of(scope), &escaped(scope.uid.as_str()), subtask)
}

/// The same, of the writer that wrote a branch: also of one whose name holds hashes only. `None`: it is none of ours.
pub(crate) fn writer_lock_of(xid: &Xid) -> Option<String> {
    let parts = xid.parts()?;
    let (gtrid, bqual) = (std::str::from_utf8(&xid.gtrid).ok()?, std::str::from_utf8(&xid.bqual).ok()?);
    Some(lock_of_writer(gtrid, bqual.split('.').nth(1)?, parts.subtask))
}

/// `uid` as it is written in a name: whether it is hashed there depends on the numbers beside it, so here it always is.
fn lock_of_writer(gtrid: &str, uid: &str, subtask: u32) -> String {
    let uid = if uid.starts_with('~') { uid.to_owned() } else { hashed_uid(uid) };
    let mut bytes = Vec::new();
    for text in [gtrid, &uid] {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(&subtask.to_le_bytes());
    format!("{PREFIX}.{:032x}", xxh3_128(&bytes))
}

/// How a sink is written in the names of its branches: which of the two depends on the numbers beside it.
pub(crate) fn uid_spellings(scope: &TransactionScope) -> [String; 2] {
    let plain = escaped(scope.uid.as_str());
    let hashed = hashed_uid(&plain);
    [plain, hashed]
}

/// The first part of the names of a job and log.
fn gtrid_of(scope: &TransactionScope) -> String {
    let (job, log_id) = (escaped(scope.job.as_str()), escaped(scope.log_id.as_str()));
    let gtrid = format!("{PREFIX}.{job}.{log_id}");
    if gtrid.len() <= PART_BYTES_MAX {
        return gtrid;
    }
    // 9 + 21 + 1 + at most 32: a log id has 32 digits. One that does not is hashed as well.
    let log_id = if log_id.len() > 32 { hashed_128(&log_id) } else { log_id };
    format!("{PREFIX}.{}.{log_id}", hashed_128(&job))
}

/// Name of the lock that the session holds which has prepared a branch, for as long as it holds the branch.
pub(crate) fn branch_lock(xid: &Xid) -> String {
    format!("{PREFIX}-xa.{:032x}", hash_of(xid))
}

fn hash_of(xid: &Xid) -> u128 {
    let mut bytes = (xid.gtrid.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(&xid.gtrid);
    bytes.extend_from_slice(&xid.bqual);
    xxh3_128(&bytes)
}

/// Name of the staging table of a transaction.
pub(crate) fn staging_table(xid: &Xid) -> String {
    format!("tidegate_staging_{:032x}", hash_of(xid))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 80 bits of a hash, in 21 characters.
fn hashed_128(text: &str) -> String {
    format!("~{:020x}", xxh3_128(text.as_bytes()) >> 48)
}

/// 64 bits of a hash, in at most 14 characters. No text that is escaped begins so.
fn hashed_uid(escaped: &str) -> String {
    format!("~{}", base_36(xxh3_64(escaped.as_bytes())))
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let written = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(written).collect()
}

/// For people: what is no escape stays as it is.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = code.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn base_36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(u32::try_from(number % 36).unwrap_or(0), 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// A number as it is spelled here, and in no other way.
fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 36).ok().filter(|number| base_36(*number) == text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_engine::ids::{JobName, LogId, OperatorUid};

    use super::*;

    fn name(job: &str, uid: &str, numbers: (u64, u32, u64, u64)) -> TransactionName {
        let log_id = LogId::from("0123456789abcdef0123456789abcdef");
        let (job, uid) = (JobName::from(job), OperatorUid::from(uid));
        let scope = TransactionScope { job, log_id, lineage: Lineage(numbers.0), uid };
        let (opened_after, attempt) = (CheckpointId(numbers.2), AttemptId(numbers.3));
        TransactionName { scope, subtask: numbers.1, opened_after, attempt }
    }

    #[test]
    fn a_branch_is_named_by_its_components() {
        let xid = Xid::of(&name("orders", "order_event_sink", (3, 2, 40, 17)));
        assert_eq!(
            xid.to_string(),
            "tidegate.orders.0123456789abcdef0123456789abcdef/3.order_event_sink.2.14.h"
        );
        assert!(
            xid.sql().starts_with("X'7469646567617465") && xid.sql().ends_with(",21575"),
            "{}",
            xid.sql()
        );
        let parts = xid.parts().unwrap();
        assert_eq!((parts.job.as_str(), parts.uid.as_str()), ("orders", "order_event_sink"));
        assert_eq!((parts.subtask, parts.opened_after, parts.attempt), (2, CheckpointId(40), AttemptId(17)));
    }

    #[test]
    fn a_sink_is_written_in_one_of_two_ways_whatever_the_numbers_beside_it() {
        let uid = "a-sink-whose-uid-has-some-fifty-bytes-of-text-in-it";
        let written = |numbers| {
            let bqual = String::from_utf8(Xid::of(&name("j", uid, numbers)).bqual).unwrap();
            bqual.split('.').nth(1).unwrap().to_owned()
        };
        let spelled = uid_spellings(&name("j", uid, (1, 0, 0, 1)).scope);
        assert_eq!([written((1, 0, 0, 1)), written((1, 0, u64::MAX, u64::MAX))], spelled);
    }

    #[test]
    fn names_are_told_apart_by_component_not_by_prefix() {
        let xid = Xid::of(&name("a.b", "c", (1, 0, 0, 1)));
        for (job, uid) in [("a", "b.c"), ("a", "c"), ("a.b", "c2"), ("a%2Eb", "c")] {
            assert_eq!(xid.read(&name(job, uid, (1, 0, 0, 1)).scope), None, "{job} {uid}");
        }
        let other = TransactionName { subtask: 11, attempt: AttemptId(1), ..name("a", "c", (1, 1, 0, 11)) };
        assert_ne!(Xid::of(&other), Xid::of(&name("a", "c", (1, 1, 0, 11))));
    }

    #[test]
    fn what_does_not_fit_is_hashed_and_two_that_share_a_beginning_stay_apart() {
        let (a, b) = ("x".repeat(80), format!("{}y", "x".repeat(79)));
        let of = |text: &str| Xid::of(&name(text, text, (u64::MAX, u32::MAX, u64::MAX, u64::MAX)));
        assert!(of(&a).gtrid != of(&b).gtrid && of(&a).bqual != of(&b).bqual);
        assert!(of(&a).gtrid.len() <= PART_BYTES_MAX && of(&a).bqual.len() <= PART_BYTES_MAX, "{}", of(&a));
    }

    #[test]
    fn what_only_looks_like_a_branch_is_not_read() {
        let good = Xid::of(&name("j", "u", (1, 2, 3, 4)));
        assert!(good.is_ours());
        for bqual in ["1.u.2.3", "1.u.2.3.4.5", "01.u.2.3.4", "1.u.-2.3.4", "1.u.2.3.", "1.u.2.3.A"] {
            let bad = Xid { bqual: bqual.into(), ..good.clone() };
            assert_eq!(bad.read(&name("j", "u", (1, 0, 0, 0)).scope), None, "{bqual}");
        }
        for gtrid in ["tidegate", "tidegate.j", "x.j.0", "tidegate.j.0.1", "\u{fffd}"] {
            assert_eq!(Xid { gtrid: gtrid.into(), ..good.clone() }.parts(), None, "{gtrid}");
        }
        assert!(!Xid { format_id: 1, ..good }.is_ours());
    }

    proptest! {
        #[test]
        fn every_branch_is_read_back_by_its_own_sink_only(
            jobs in proptest::array::uniform2(".{0,40}"), uids in proptest::array::uniform2(".{0,40}"),
            numbers: (u64, u32, u64, u64),
        ) {
            let own = name(&jobs[0], &uids[0], numbers);
            let xid = Xid::of(&own);
            prop_assert!(xid.gtrid.len() <= PART_BYTES_MAX && xid.bqual.len() <= PART_BYTES_MAX);
            prop_assert!(xid.is_ours());
            prop_assert_eq!(xid.read(&own.scope), Some(own.clone()));
            // What an operator's tool knows is the name only.
            prop_assert_eq!(writer_lock_of(&xid), Some(writer_lock(&own.scope, numbers.1)));
            prop_assert!(xid.is_of_job(&jobs[0]));
            prop_assert_eq!(xid.is_of_job(&jobs[1]), jobs[0] == jobs[1]);
            let other = name(&jobs[1], &uids[1], numbers);
            let is_same = other.scope == own.scope;
            prop_assert_eq!(writer_lock(&other.scope, 0) == writer_lock(&own.scope, 0), is_same);
            prop_assert_eq!(xid.read(&other.scope).is_some(), other == own);
        }

        #[test]
        fn any_bytes_are_read_without_harm(gtrid: Vec<u8>, bqual: Vec<u8>) {
            let xid = Xid { gtrid, bqual, format_id: FORMAT_ID };
            prop_assert_eq!(xid.read(&name("j", "u", (1, 1, 1, 1)).scope), None);
        }
    }
}
