//! Names of part files by the recovery law: one component for each of job, log, lineage, sink, subtask, checkpoint, attempt and part.
//!
//! ```text
//! open      .tidegate/<job>/<log>/<uid>/<lineage>~<subtask>~<opened after>~<attempt>~<part>.open
//! pending   the same, ending in .pending
//! finished  [<bucket>/]part~<job>~<uid>~<log>~<lineage>~<subtask>~<opened after>~<attempt>~<part>.<extension>
//! ```
//!
//! `~` stands in no component: a text keeps letters, digits, `_`, `-` and `.`, and everything else is escaped. So names are taken
//! apart and compared component by component, and `…~1` never means `…~11`. A text that is too long is hashed, never cut.
//!
//! Owns: spelling and reading of names. Does not own: which of them exist. Runs on: anywhere. Pure.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_128;

use crate::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};
use crate::operator::{TransactionName, TransactionScope};

/// The folder of open and pending files, inside the output folder.
pub const STAGING: &str = ".tidegate";
/// What a finished file's name begins with.
const FINISHED: &str = "part";
/// Together with the longest numbers and an extension of 16 bytes, a finished name has at most 252 bytes of 255.
const JOB_BYTES_MAX: usize = 48;
const UID_BYTES_MAX: usize = 64;
const LOG_BYTES_MAX: usize = 34;

/// Where a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartStage {
    /// It is being written.
    Open,
    /// It is closed and durable.
    Pending,
}

impl PartStage {
    fn ending(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Pending => "pending",
        }
    }
}

/// Name of one part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartName {
    /// The transaction it belongs to.
    pub transaction: TransactionName,
    /// Counts the parts of the transaction, from 0.
    pub part: u32,
}

impl PartName {
    /// The staging folder of a sink in one log of a job.
    pub fn staging_folder(scope: &TransactionScope) -> String {
        let (job, log, uid) = components(scope);
        format!("{STAGING}/{job}/{log}/{uid}")
    }

    /// Where the part lies at a stage.
    pub fn staged(&self, stage: PartStage) -> String {
        let folder = Self::staging_folder(&self.transaction.scope);
        format!("{folder}/{}.{}", self.numbers(), stage.ending())
    }

    /// Where the part lies once it is published; `bucket` may be empty.
    pub fn finished(&self, bucket: &str, extension: &str) -> String {
        let (job, log, uid) = components(&self.transaction.scope);
        let slash = if bucket.is_empty() { "" } else { "/" };
        format!("{bucket}{slash}{FINISHED}~{job}~{uid}~{log}~{}.{extension}", self.numbers())
    }

    fn numbers(&self) -> String {
        let TransactionName { scope, subtask, opened_after, attempt } = &self.transaction;
        format!("{}~{subtask}~{opened_after}~{attempt}~{}", scope.lineage, self.part)
    }

    /// Takes the name of a file in the staging folder of `scope` apart; `None`: it is none of ours. The lineage is the file's.
    pub fn of_staged(scope: &TransactionScope, file: &str) -> Option<(Self, PartStage)> {
        let (numbers, ending) = file.rsplit_once('.')?;
        let stage = [PartStage::Open, PartStage::Pending].into_iter().find(|s| s.ending() == ending)?;
        Some((Self::of_numbers(scope, numbers)?, stage))
    }

    /// Takes the name of a finished file apart, in whatever bucket; `None`: it is no such name, or one with escaped or hashed texts.
    pub fn of_finished(path: &str) -> Option<Self> {
        let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
        let mut parts = file.strip_prefix(FINISHED)?.strip_prefix('~')?.splitn(4, '~');
        let (job, uid, log, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if [job, uid, log].iter().any(|text| text.is_empty() || text.contains('%')) {
            return None;
        }
        let scope = TransactionScope {
            job: JobName::from(job),
            log_id: LogId::from(log),
            lineage: Lineage(0),
            uid: OperatorUid::from(uid),
        };
        Self::of_numbers(&scope, rest.split_once('.')?.0)
    }

    fn of_numbers(scope: &TransactionScope, numbers: &str) -> Option<Self> {
        let mut each = numbers.split('~');
        let mut number = || whole(each.next()?);
        let (lineage, subtask, opened_after, attempt, part) =
            (number()?, number()?, number()?, number()?, number()?);
        let none_left = each.next().is_none();
        let scope = TransactionScope { lineage: Lineage(lineage), ..scope.clone() };
        let transaction = TransactionName {
            scope,
            subtask: u32::try_from(subtask).ok()?,
            opened_after: CheckpointId(opened_after),
            attempt: AttemptId(attempt),
        };
        none_left.then_some(Self { transaction, part: u32::try_from(part).ok()? })
    }
}

/// A number as we spell it: no sign, no leading zero. So each name has one spelling.
fn whole(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn components(scope: &TransactionScope) -> (String, String, String) {
    (
        component(scope.job.as_str(), JOB_BYTES_MAX),
        component(scope.log_id.as_str(), LOG_BYTES_MAX),
        component(scope.uid.as_str(), UID_BYTES_MAX),
    )
}

/// A text as one component of a path. No two texts have the same.
fn component(text: &str, bytes_max: usize) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && at > 0);
        match plain {
            true => escaped.push(char::from(byte)),
            false => write!(escaped, "%{byte:02X}").expect("a String takes all text"),
        }
    }
    match escaped.len() {
        0 => "%".to_owned(),
        // No escape has an `h` behind its sign.
        length if length > bytes_max => format!("%h{:032x}", xxh3_128(text.as_bytes())),
        _ => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(attempt: u64, part: u32) -> PartName {
        let scope = TransactionScope {
            job: "orders".into(),
            log_id: "0123456789abcdef0123456789abcdef".into(),
            lineage: Lineage(1),
            uid: "event.log".into(),
        };
        let transaction =
            TransactionName { scope, subtask: 2, opened_after: CheckpointId(7), attempt: AttemptId(attempt) };
        PartName { transaction, part }
    }

    #[test]
    fn the_three_names_of_a_part_are_these() {
        let folder = ".tidegate/orders/0123456789abcdef0123456789abcdef/event.log";
        let part = name(3, 11);
        assert_eq!(part.staged(PartStage::Open), format!("{folder}/1~2~7~3~11.open"));
        assert_eq!(part.staged(PartStage::Pending), format!("{folder}/1~2~7~3~11.pending"));
        let finished = "part~orders~event.log~0123456789abcdef0123456789abcdef~1~2~7~3~11.jsonl";
        assert_eq!(part.finished("", "jsonl"), finished);
        assert_eq!(part.finished("day=1", "jsonl"), format!("day=1/{finished}"));
    }

    #[test]
    fn names_are_read_back_component_by_component() {
        let part = name(3, 11);
        let scope = TransactionScope { lineage: Lineage(99), ..part.transaction.scope.clone() };
        assert_eq!(
            PartName::of_staged(&scope, "1~2~7~3~11.pending"),
            Some((part.clone(), PartStage::Pending))
        );
        assert_eq!(
            PartName::of_staged(&scope, "1~2~7~3~1.open"),
            Some((name(3, 1), PartStage::Open)),
            "1 is not 11"
        );
        assert_eq!(PartName::of_finished(&part.finished("day=1", "json.gz")), Some(part));
    }

    #[test]
    fn what_is_spelled_in_another_way_is_none_of_ours() {
        let scope = name(1, 0).transaction.scope;
        for foreign in [
            "1~2~7~3.open",
            "1~2~7~3~0",
            "1~2~7~3~0.tmp",
            "1~2~7~3~00.open",
            "1~2~7~3~+1.open",
            "1~2~7~3~0~0.open",
            "~2~7~3~0.open",
            ".open",
        ] {
            assert_eq!(PartName::of_staged(&scope, foreign), None, "{foreign}");
        }
        for foreign in [
            "part~a~b~c~1~0~1~1.jsonl",
            "other~a~b~c~1~0~1~1~0.jsonl",
            "part~a%2Fb~b~c~1~0~1~1~0.jsonl",
            "part~a~b~c~1~0~1~1~0",
        ] {
            assert_eq!(PartName::of_finished(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn texts_that_no_path_can_hold_are_escaped_or_hashed_and_stay_apart() {
        assert_eq!(component("../a~b", 48), "%2E./a~b".replace('/', "%2F").replace('~', "%7E"));
        assert_eq!(component("", 48), "%");
        let (a, b) = ("x".repeat(49), format!("{}y", "x".repeat(48)));
        let (a, b) = (component(&a, 48), component(&b, 48));
        assert_ne!(a, b);
        assert_eq!((a.len(), &a[..2]), (34, "%h"));
        assert!(component(&"é".repeat(40), 48).starts_with("%h"));
    }

    #[test]
    fn the_longest_name_fits_a_directory_entry() {
        let mut longest = name(u64::MAX, u32::MAX);
        let TransactionName { scope, subtask, opened_after, .. } = &mut longest.transaction;
        (scope.job, scope.uid) = (JobName("j".repeat(48)), OperatorUid("u".repeat(64)));
        (scope.lineage, *subtask, *opened_after) = (Lineage(u64::MAX), u32::MAX, CheckpointId(u64::MAX));
        assert!(longest.finished("", &"e".repeat(16)).len() <= 255);
    }
}
