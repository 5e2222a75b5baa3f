//! Brings the state of a checkpoint to the subtasks that start from it.
//!
//! Keyed state is restored by key-group range from every old file that overlaps it; operator list state is split or handed to
//! everyone (union). Types are checked against the *writer's* schema when a state is opened.
//!
//! Owns: reading files, redistribution, `ended`. Does not own: which checkpoint (the commit log), whether it fits
//! ([`crate::checkpoint::restore_check`]). Runs on: [`load`] on the I/O side, the rest on the slot's thread.

use std::collections::BTreeMap;

use bytes::Bytes;
use tidegate_state::{
    CheckpointStorage, CodecError, KeyGroupRange, Redistribution, StateDescriptor, StateError,
    StateFileReader, StateType, TIMERS_STATE, decode_list, fault_point,
};

use crate::checkpoint::commit_log::Claimed;
use crate::checkpoint::manifest::{KeyedStateHandle, Manifest, OperatorState, StateBlob};
use crate::ids::{AttemptId, CheckpointId, OperatorUid};
use crate::jobmanager::plan::JobPlan;
use crate::operator::TransactionName;

pub use super::restore_error::RestoreError;

/// Says whether states written with these descriptors can be read as an operator declares them.
pub type StateCheck = Box<dyn Fn(&[StateDescriptor]) -> Result<(), StateError> + Send + Sync>;

/// Everything a job's subtasks restore from; shared by all of them.
#[derive(Debug, Default)]
pub struct Restored {
    /// The checkpoint; 0 for a start without one.
    pub checkpoint: CheckpointId,
    /// The attempt that completed it; 0 for a start without one.
    pub attempt: AttemptId,
    operators: BTreeMap<OperatorUid, RestoredOperator>,
    /// For each sink: everything up to this checkpoint is known to be committed and is not asked again (law 5).
    committed: Vec<(OperatorUid, CheckpointId)>,
    /// Transactions that somebody decided to go on without, should they be lost.
    forgotten: Vec<TransactionName>,
    /// The newest attempt that went back on purpose; 0: none.
    rewound_at: AttemptId,
}

/// State of one operator over all its old subtasks.
#[derive(Debug, Default)]
struct RestoredOperator {
    files: Vec<(KeyedStateHandle, Bytes)>,
    /// By name: the framed list of each old subtask.
    lists: BTreeMap<String, (Redistribution, Vec<Vec<u8>>)>,
    ended: Vec<bool>,
}

/// Reads every file that `manifest` names.
///
/// # Errors
/// A file that is missing or cannot be read.
pub async fn load(storage: &CheckpointStorage, manifest: &Manifest) -> Result<Restored, RestoreError> {
    let mut operators = BTreeMap::new();
    for operator in &manifest.operators {
        fault_point!("restore.read.before");
        operators.insert(operator.uid.clone(), load_operator(storage, manifest.checkpoint, operator).await?);
        fault_point!("restore.read.after");
    }
    let (checkpoint, attempt) = (manifest.checkpoint, manifest.attempt);
    Ok(Restored { checkpoint, attempt, operators, ..Restored::default() })
}

async fn load_operator(
    storage: &CheckpointStorage,
    checkpoint: CheckpointId,
    operator: &OperatorState,
) -> Result<RestoredOperator, RestoreError> {
    let mut restored = RestoredOperator { ended: operator.ended.clone(), ..RestoredOperator::default() };
    for subtask in &operator.subtasks {
        if let Some(handle) = &subtask.keyed {
            let bytes = read(storage, checkpoint, &handle.path).await?;
            restored.files.push((handle.clone(), bytes));
        }
        for list in &subtask.lists {
            let bytes = match &list.blob {
                StateBlob::Inline(bytes) => bytes.clone(),
                StateBlob::File(path, _) => read(storage, checkpoint, path).await?.to_vec(),
            };
            let entry = restored.lists.entry(list.name.clone());
            entry.or_insert_with(|| (list.redistribution, Vec::new())).1.push(bytes);
        }
    }
    Ok(restored)
}

async fn read(
    storage: &CheckpointStorage,
    checkpoint: CheckpointId,
    path: &str,
) -> Result<Bytes, RestoreError> {
    let found = storage.get(path).await;
    let found = found.map_err(|source| RestoreError::Storage {
        checkpoint,
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    found.ok_or_else(|| RestoreError::Missing {
        checkpoint,
        path: path.to_owned(),
        url: storage.url().to_owned(),
    })
}

impl Restored {
    /// Adds what the log says: which transactions are committed already, which may be lost, which attempt was the last to go back on
    /// purpose.
    #[must_use]
    pub fn with_log(self, claimed: &Claimed) -> Self {
        let (committed, forgotten) = (claimed.committed.clone(), claimed.forgotten.clone());
        Self { committed, forgotten, rewound_at: claimed.listing.rewound_at(), ..self }
    }

    /// For a process that began with an explicit base: what is committed behind it counts in no look.
    #[must_use]
    pub fn whatever_is_behind(self) -> Self {
        Self { rewound_at: AttemptId(u64::MAX), ..self }
    }

    /// The newest attempt that went back on purpose; 0: none.
    pub fn rewound_at(&self) -> AttemptId {
        self.rewound_at
    }

    /// Transactions of `uid` that somebody decided to go on without, should they be lost.
    pub fn forgotten(&self, uid: &OperatorUid) -> Vec<TransactionName> {
        self.forgotten.iter().filter(|name| name.scope.uid == *uid).cloned().collect()
    }

    /// Everything of `uid` up to this checkpoint is known to be committed.
    pub fn committed_up_to(&self, uid: &OperatorUid) -> CheckpointId {
        let known = self.committed.iter().filter(|(sink, _)| sink == uid).map(|(_, up_to)| *up_to);
        known.max().unwrap_or_default()
    }

    /// Checks all keyed state: that no file is damaged, and that each state can be read as `checks` declare it.
    ///
    /// # Errors
    /// The first file or state that does not fit.
    pub fn check_keyed(&self, checks: &[(OperatorUid, StateCheck)]) -> Result<(), RestoreError> {
        for (uid, operator) in &self.operators {
            let check = checks.iter().find(|(checked, _)| checked == uid).map(|(_, check)| check);
            for (handle, bytes) in &operator.files {
                let opened = StateFileReader::open_named(&handle.path, bytes);
                let fits = opened.and_then(|file| {
                    file.verify()?;
                    let descriptors: Vec<_> = file.descriptors().cloned().collect();
                    check.map_or(Ok(()), |check| check(&descriptors))
                });
                fits.map_err(|e| self.state_error(uid, &handle.path, e))?;
            }
        }
        Ok(())
    }

    /// Checks that every state with entries is declared by its operator. Operators that are gone were judged before.
    ///
    /// # Errors
    /// [`RestoreError::Undeclared`] names the first one that would be dropped.
    pub fn check_declared(&self, plan: &JobPlan) -> Result<(), RestoreError> {
        for (uid, operator) in &self.operators {
            let Some((_, declared)) = plan.operators().find(|(_, o)| o.uid.as_ref() == Some(uid)) else {
                continue;
            };
            let known: Vec<&str> = declared.states.iter().map(|s| s.name.as_str()).collect();
            for (handle, bytes) in &operator.files {
                let file = StateFileReader::open_named(&handle.path, bytes);
                let file = file.map_err(|e| self.state_error(uid, &handle.path, e))?;
                let unknown = file.descriptors().find(|d| {
                    d.name != TIMERS_STATE
                        && !known.contains(&d.name.as_str())
                        && file.entries_of(&d.name) > 0
                });
                if let Some(unknown) = unknown {
                    return Err(RestoreError::Undeclared {
                        operator: uid.clone(),
                        checkpoint: self.checkpoint,
                        state: unknown.name.as_str().into(),
                        entries: file.entries_of(&unknown.name),
                        known: known.join(", ").into(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Opens the state files of `uid` that overlap `range`.
    ///
    /// # Errors
    /// A damaged file.
    pub fn keyed_files(
        &self,
        uid: &OperatorUid,
        range: KeyGroupRange,
    ) -> Result<Vec<StateFileReader<'_>>, RestoreError> {
        let Some(operator) = self.operators.get(uid) else { return Ok(Vec::new()) };
        let overlapping =
            operator.files.iter().filter(|(handle, _)| !handle.range.intersect(&range).is_empty());
        overlapping
            .map(|(handle, bytes)| {
                StateFileReader::open_named(&handle.path, bytes)
                    .map_err(|e| self.state_error(uid, &handle.path, e))
            })
            .collect()
    }

    /// The elements of an operator list state that fall to one subtask.
    ///
    /// # Errors
    /// Damaged bytes, or elements that cannot be read as `T`.
    pub fn list<T: StateType>(
        &self,
        uid: &OperatorUid,
        name: &str,
        subtask: u32,
        parallelism: u32,
    ) -> Result<Vec<T>, RestoreError> {
        let Some((mode, blobs)) = self.operators.get(uid).and_then(|o| o.lists.get(name)) else {
            return Ok(Vec::new());
        };
        let unchanged = blobs.len() == parallelism as usize && *mode == Redistribution::Split;
        let mut elements = Vec::new();
        for (old, blob) in blobs.iter().enumerate() {
            if unchanged && old != subtask as usize {
                continue;
            }
            let list =
                decode_list::<T>(blob).map_err(|e| self.state_error(uid, &format!("list \"{name}\""), e))?;
            elements.extend(list);
        }
        if *mode == Redistribution::Split && !unchanged {
            elements = elements.into_iter().skip(subtask as usize).step_by(parallelism as usize).collect();
        }
        Ok(elements)
    }

    /// Whether subtask `subtask` had ended. After a rescale only a vertex of which *all* subtasks had ended counts as ended.
    pub fn ended(&self, uid: &OperatorUid, subtask: u32, parallelism: u32) -> bool {
        let Some(operator) = self.operators.get(uid) else { return false };
        if operator.ended.len() == parallelism as usize {
            operator.ended.get(subtask as usize).copied().unwrap_or(false)
        } else {
            !operator.ended.is_empty() && operator.ended.iter().all(|e| *e)
        }
    }

    /// A state error with its place.
    pub fn state_error(&self, uid: &OperatorUid, place: &str, source: StateError) -> RestoreError {
        let (operator, checkpoint) = (uid.clone(), self.checkpoint);
        let mismatch = |state: String, field: &str, was: &str, is: &str| RestoreError::Mismatch {
            operator: operator.clone(),
            checkpoint,
            state: state.into(),
            field: field.into(),
            was: was.into(),
            is: is.into(),
        };
        match &source {
            StateError::SchemaMismatch { state, kind, field, was, is, .. } => {
                return mismatch(format!("{state} ({kind})"), field, was, is);
            }
            StateError::Undecodable { source, .. } => {
                if let CodecError::Mismatch { source } = &**source {
                    if let Some((was, is)) = type_name(&source.was).zip(type_name(&source.is))
                        && was != is
                    {
                        let (state, was, is) = (place.into(), was.into(), is.into());
                        return RestoreError::AnotherKind { operator, checkpoint, state, was, is };
                    }
                    return mismatch(place.to_owned(), &source.field, &source.was, &source.is);
                }
            }
            _ => {}
        }
        RestoreError::State { operator, checkpoint, place: place.to_owned(), source: Box::new(source) }
    }
}

/// The name of a struct or an enum, from the words of its schema: `XaBranch { connection_id: u64 }`.
fn type_name(schema: &str) -> Option<&str> {
    let (name, _) = schema.split_once(" {")?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some(name)
}
