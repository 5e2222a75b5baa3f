//! Finds the files of a directory and hands each of them out once.
//!
//! Owns: which files were handed out, in which order. Does not own: positions (the readers' state). Runs on: the job manager;
//! listing runs on the I/O side.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{Assignment, ConnectorError, SplitEnumerator};
use tidegate_engine::io::{BoxFuture, SharedIo, blocking};
use tidegate_state::StateType;

use super::listing::{FoundFile, list_files};
use super::source::FileSettings;
use super::{FileError, FileSplit};

/// How often an unbounded source looks for new files and new lines.
pub(crate) const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Hands file *i* (in order of their names; later ones go on counting) to subtask *i* mod parallelism.
#[derive(Debug)]
pub struct FileEnumerator {
    settings: Arc<FileSettings>,
    parallelism: u32,
    assigned: FilesAssigned,
    known: BTreeSet<String>,
}

/// What the enumerator remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, StateType)]
pub struct FilesAssigned {
    /// Names of the files handed out, in the order in which they were.
    pub names: Vec<String>,
    /// Whether the directory was listed: a bounded source does that once.
    pub listed: bool,
}

impl FileEnumerator {
    pub(crate) fn new(settings: Arc<FileSettings>, parallelism: u32) -> Self {
        Self {
            settings,
            parallelism: parallelism.max(1),
            assigned: FilesAssigned::default(),
            known: BTreeSet::new(),
        }
    }

    fn refuse_vanished(&self, found: &[FoundFile]) -> Result<(), ConnectorError> {
        let there: BTreeSet<&str> = found.iter().map(|file| file.name.as_str()).collect();
        match self.known.iter().find(|name| !there.contains(name.as_str())) {
            Some(name) => Err(ConnectorError::fatal(format_args!(
                "{} is gone, but it was handed out for reading; put it back, or start without restoring",
                self.settings.folder.join(name).display()
            ))),
            None => Ok(()),
        }
    }

    fn assign(&mut self, file: FoundFile) -> Assignment<FileSplit> {
        let index = u64::try_from(self.assigned.names.len()).unwrap_or(u64::MAX);
        let subtask = u32::try_from(index % u64::from(self.parallelism)).unwrap_or(0);
        let end = (!self.settings.follow).then_some(file.length_bytes);
        self.assigned.names.push(file.name.clone());
        self.known.insert(file.name.clone());
        Assignment { subtask, splits: vec![FileSplit::from_start(file.name, end)] }
    }
}

impl SplitEnumerator for FileEnumerator {
    type Split = FileSplit;
    type Found = Vec<FoundFile>;
    type State = FilesAssigned;

    fn restore(&mut self, state: FilesAssigned, parallelism: u32) -> Result<(), ConnectorError> {
        self.known = state.names.iter().cloned().collect();
        self.assigned = state;
        self.parallelism = parallelism.max(1);
        Ok(())
    }

    fn discover(&mut self, io: &SharedIo) -> Option<BoxFuture<Result<Vec<FoundFile>, ConnectorError>>> {
        if self.is_complete() {
            return None;
        }
        let folder = self.settings.folder.clone();
        let io = Arc::clone(io);
        Some(Box::pin(async move {
            let place = folder.clone();
            let found = blocking(&io, move || list_files(&folder))
                .await
                .map_err(|source| FileError::CutShort { file: place, source })?;
            Ok(found?)
        }))
    }

    fn on_found(&mut self, found: Vec<FoundFile>) -> Result<Vec<Assignment<FileSplit>>, ConnectorError> {
        if self.is_complete() {
            return Ok(Vec::new());
        }
        self.refuse_vanished(&found)?;
        self.assigned.listed = true;
        let new = found.into_iter().filter(|file| !self.known.contains(&file.name)).collect::<Vec<_>>();
        Ok(new.into_iter().map(|file| self.assign(file)).collect())
    }

    fn interval(&self) -> Option<Duration> {
        self.settings.follow.then_some(FOLLOW_INTERVAL)
    }

    fn is_complete(&self) -> bool {
        self.assigned.listed && !self.settings.follow
    }

    fn snapshot(&self) -> FilesAssigned {
        self.assigned.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::FileSource;
    use tidegate_engine::api::Source;

    fn found(names: &[&str]) -> Vec<FoundFile> {
        names.iter().map(|name| FoundFile { name: (*name).to_owned(), length_bytes: 9 }).collect()
    }

    fn plan(assignments: &[Assignment<FileSplit>]) -> Vec<(u32, &str)> {
        assignments.iter().map(|a| (a.subtask, a.splits[0].path.as_str())).collect()
    }

    fn enumerator(follow: bool, parallelism: u32) -> FileEnumerator {
        let source = FileSource::json_lines::<u32>("nowhere");
        let source = if follow { source.unbounded() } else { source };
        source.enumerator(parallelism)
    }

    #[test]
    fn files_are_dealt_out_in_turn_and_new_ones_go_on() {
        let mut files = enumerator(true, 2);
        let first = files.on_found(found(&["a", "b", "c"])).unwrap();
        assert_eq!(plan(&first), [(0, "a"), (1, "b"), (0, "c")]);
        assert!(!files.is_complete());
        let mut restored = enumerator(true, 3);
        restored.restore(files.snapshot(), 3).unwrap();
        assert!(restored.on_found(found(&["a", "b", "c"])).unwrap().is_empty());
        let later = restored.on_found(found(&["a", "aa", "b", "c", "d"])).unwrap();
        assert_eq!(plan(&later), [(0, "aa"), (1, "d")]);
    }

    #[test]
    fn a_file_that_was_handed_out_may_not_vanish() {
        let mut files = enumerator(true, 1);
        files.on_found(found(&["a", "b"])).unwrap();
        let error = files.on_found(found(&["b"])).unwrap_err();
        assert!(error.message.contains("nowhere/a is gone"), "{}", error.message);
        assert!(!error.restartable);
    }

    #[test]
    fn a_bounded_source_lists_once_and_notes_the_sizes() {
        let mut files = enumerator(false, 1);
        let first = files.on_found(found(&["a"])).unwrap();
        assert_eq!(first[0].splits[0].end, Some(9));
        assert!(files.is_complete());
        let mut restored = enumerator(false, 1);
        restored.restore(files.snapshot(), 1).unwrap();
        assert!(restored.is_complete());
        assert!(restored.on_found(found(&["a", "b"])).unwrap().is_empty());
    }
}
