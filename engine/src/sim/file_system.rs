//! A file system in memory, as far as part files need one; it outlives the simulated processes.
//!
//! Names are links to files, so a file that is open can be written to after its name is gone, and two names can be of one file.
//! What was written stays when its process dies: power loss is not modelled.
//!
//! Owns: names and files. Does not own: what they mean to the protocol (see [`crate::parts`]), latency (see [`super::file_folder`]).
//! Runs on: the simulation's thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::database::{CommittedRows, Row};
use crate::ids::{CheckpointId, JobName, LogId, OperatorUid};
use crate::operator::{TransactionName, TransactionScope};
use crate::parts::{PartName, PartStage, Published, STAGING};

/// A file, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(u64);

/// See the module. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FileSystem {
    /// Guards names and files; one thread uses it.
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    names: BTreeMap<String, FileId>,
    files: BTreeMap<FileId, Vec<u8>>,
    made: u64,
    /// By which checkpoint's barrier a transaction was closed: for the oracle only, no file says it.
    closed_by: BTreeMap<TransactionName, CheckpointId>,
}

impl FileSystem {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty file of a new name; `None`: the name is taken.
    pub fn create(&self, path: &str) -> Option<FileId> {
        let mut inner = self.lock();
        if inner.names.contains_key(path) {
            return None;
        }
        inner.made += 1;
        let file = FileId(inner.made);
        inner.names.insert(path.to_owned(), file);
        inner.files.insert(file, Vec::new());
        Some(file)
    }

    /// Writes at the end.
    pub fn append(&self, file: FileId, bytes: &[u8]) {
        if let Some(content) = self.lock().files.get_mut(&file) {
            content.extend_from_slice(bytes);
        }
    }

    /// Another name in place of this one. `false`: there is no such name.
    pub fn rename(&self, from: &str, to: &str) -> bool {
        let mut inner = self.lock();
        let Some(file) = inner.names.remove(from) else { return false };
        inner.names.insert(to.to_owned(), file);
        true
    }

    /// Length of the file of this name.
    pub fn length(&self, path: &str) -> Option<u64> {
        let inner = self.lock();
        let file = inner.names.get(path)?;
        inner.files.get(file).map(|content| content.len() as u64)
    }

    /// Whether both names are of files with the same bytes; `None`: one is gone.
    pub fn is_same(&self, one: &str, other: &str) -> Option<bool> {
        let inner = self.lock();
        let content = |path: &str| inner.files.get(inner.names.get(path)?);
        Some(content(one)? == content(other)?)
    }

    /// Another name beside this one.
    pub fn link(&self, from: &str, to: &str) -> Published {
        let mut inner = self.lock();
        let Some(file) = inner.names.get(from).copied() else { return Published::Gone };
        if inner.names.contains_key(to) {
            return Published::Taken;
        }
        inner.names.insert(to.to_owned(), file);
        Published::Done
    }

    /// Takes a name away. `false`: it was gone.
    pub fn remove(&self, path: &str) -> bool {
        self.lock().names.remove(path).is_some()
    }

    /// Names in a folder.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let inside = |path: &String| {
            path.strip_prefix(folder)?.strip_prefix('/').filter(|f| !f.contains('/')).map(str::to_owned)
        };
        self.lock().names.keys().filter_map(inside).collect()
    }

    /// Remembers for the oracle what closed a transaction.
    pub fn note_closed_by(&self, name: &TransactionName, closed_by: CheckpointId) {
        self.lock().closed_by.insert(name.clone(), closed_by);
    }

    /// What a reader sees who looks at finished files only.
    pub fn committed(&self) -> Vec<CommittedRows> {
        let inner = self.lock();
        let is_finished = |path: &&String| !path.starts_with(STAGING);
        let finished = inner.names.keys().filter(is_finished);
        let read = finished.filter_map(|path| {
            let name = PartName::of_finished(path)?.transaction;
            let closed_by = inner.closed_by.get(&name).copied().unwrap_or_default();
            let content = inner.files.get(inner.names.get(path)?)?;
            let rows =
                content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(row_of).collect();
            Some(CommittedRows { name, closed_by, rows })
        });
        read.collect()
    }

    fn staged(&self) -> Vec<(String, PartName, PartStage)> {
        let inner = self.lock();
        let staged = inner.names.keys().filter_map(|path| {
            let [_, job, log, uid, file] = path.split('/').collect::<Vec<_>>().try_into().ok()?;
            let scope = TransactionScope {
                job: JobName::from(job),
                log_id: LogId::from(log),
                lineage: crate::ids::Lineage(0),
                uid: OperatorUid::from(uid),
            };
            let (part, stage) = PartName::of_staged(&scope, file).filter(|_| path.starts_with(STAGING))?;
            Some((path.clone(), part, stage))
        });
        staged.collect()
    }

    /// Transactions that have open or pending files.
    pub fn left_overs(&self) -> Vec<TransactionName> {
        let mut names: Vec<_> = self.staged().into_iter().map(|(_, part, _)| part.transaction).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Transactions that have pending files only, none of them published.
    pub fn prepared(&self) -> Vec<TransactionName> {
        let staged = self.staged();
        let is_open = |name: &TransactionName| {
            staged.iter().any(|(_, part, stage)| part.transaction == *name && *stage == PartStage::Open)
        };
        let published: Vec<_> = self.committed().into_iter().map(|c| c.name).collect();
        self.left_overs().into_iter().filter(|name| !is_open(name) && !published.contains(name)).collect()
    }

    /// Somebody removes one pending file of a transaction.
    pub fn remove_by_hand(&self, name: &TransactionName) {
        if let Some((path, ..)) = self.staged().into_iter().rfind(|(_, part, _)| part.transaction == *name) {
            self.remove(&path);
        }
    }
}

/// A row as a line.
pub fn line_of(row: &Row) -> String {
    match row {
        Row::Event { id } => format!("event {id}"),
        Row::Total { key, count, sum } => format!("total {key} {count} {sum}"),
        Row::Tally { records } => format!("tally {records}"),
        Row::Timer { key, at } => format!("timer {key} {at}"),
        Row::Add { key, value } => format!("add {key} {value}"),
    }
}

/// A line as a row. A line that is none is a torn one: the oracle finds it as an event that nobody sent.
fn row_of(line: &[u8]) -> Row {
    let torn = Row::Event { id: u64::MAX };
    let Ok(text) = std::str::from_utf8(line) else { return torn };
    let words: Vec<&str> = text.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(u64::MAX);
    match words.first() {
        Some(&"event") => Row::Event { id: number(1) },
        Some(&"total") => Row::Total { key: number(1), count: number(2), sum: number(3) },
        Some(&"tally") => Row::Tally { records: number(1) },
        Some(&"timer") => {
            Row::Timer { key: number(1), at: words.get(2).and_then(|w| w.parse().ok()).unwrap_or(i64::MIN) }
        }
        Some(&"add") => Row::Add { key: number(1), value: number(2) },
        _ => torn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let rows = [
            Row::Event { id: 7 },
            Row::Total { key: 1, count: 2, sum: 3 },
            Row::Tally { records: 4 },
            Row::Timer { key: 5, at: -6 },
            Row::Add { key: 8, value: 9 },
        ];
        for row in rows {
            assert_eq!(row_of(line_of(&row).as_bytes()), row);
        }
        assert_eq!(row_of(b"tota"), Row::Event { id: u64::MAX });
    }

    #[test]
    fn links_never_overwrite_and_a_file_outlives_its_names() {
        let files = FileSystem::default();
        let file = files.create("a/x").unwrap();
        assert_eq!(files.create("a/x"), None);
        files.append(file, b"12");
        assert_eq!(files.link("a/x", "b"), Published::Done);
        assert_eq!(files.link("a/x", "b"), Published::Taken);
        assert_eq!(files.is_same("a/x", "b"), Some(true));
        assert!(files.remove("a/x") && !files.remove("a/x"));
        files.append(file, b"3");
        assert_eq!((files.length("a/x"), files.length("b")), (None, Some(3)));
        assert_eq!(files.link("a/x", "c"), Published::Gone);
        assert!(!files.rename("a/x", "a/y") && files.rename("b", "a/y"));
        assert_eq!(files.list("a"), ["y"]);
    }
}
