//! What a completed checkpoint consists of; stands inside its log entry.
//!
//! Owns: the shape of the manifest. Does not own: its bytes in the log (see [`super::commit_log`]), nor the state files it names.
//! Runs on: plain data.

use serde::{Deserialize, Serialize};
use tidegate_state::{KeyGroupRange, Redistribution};

use crate::element::CheckpointKind;
use crate::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};
use crate::mutation::{self, Mutation};

/// A completed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The job that wrote it.
    pub job: JobName,
    /// The log it was written in.
    pub log_id: LogId,
    /// The lineage of the attempt that wrote it.
    pub lineage: Lineage,
    /// Its id.
    pub checkpoint: CheckpointId,
    /// The attempt that wrote it.
    pub attempt: AttemptId,
    /// What it was for.
    pub kind: CheckpointKind,
    /// Wall clock at completion, in milliseconds since 1970.
    pub completed_at_ms: i64,
    /// Every operator with a uid.
    pub operators: Vec<OperatorState>,
}

/// State of one operator over all its subtasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorState {
    /// Its uid.
    pub uid: OperatorUid,
    /// Number of key groups it was written with.
    pub max_parallelism: u16,
    /// Whether it is a two-phase sink.
    pub two_phase: bool,
    /// Whether it emits at end of data.
    pub has_on_end: bool,
    /// By subtask index; the length is the parallelism.
    pub subtasks: Vec<OperatorSubtaskState>,
    /// By subtask index: whether it had forwarded `EndOfData`.
    pub ended: Vec<bool>,
    /// Parallelism of every vertex in front of it: a partly ended vertex restores only behind the same ones, since
    /// otherwise records could come to a subtask that has spoken its last word.
    pub upstream: Vec<u32>,
    /// State of the source's enumerator, taken before the trigger was sent.
    pub enumerator: Option<Vec<u8>>,
}

/// State of one operator in one subtask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorSubtaskState {
    /// The operator.
    pub uid: OperatorUid,
    /// Keyed state: one full file.
    pub keyed: Option<KeyedStateHandle>,
    /// Operator list states.
    pub lists: Vec<ListStateHandle>,
    /// Whether this operator has forwarded `EndOfData`, in this attempt or in one before it.
    pub ended: bool,
}

/// A file of keyed state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedStateHandle {
    /// Path below the checkpoint folder, under `<id>-<attempt>/`.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// The key groups in it.
    pub range: KeyGroupRange,
}

/// One operator list state of one subtask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListStateHandle {
    /// Its name.
    pub name: String,
    /// How it is handed out after a rescale.
    pub redistribution: Redistribution,
    /// Framed by `tidegate_state::encode_list`.
    pub blob: StateBlob,
}

/// Bytes of operator state: inline up to [`INLINE_STATE_BYTES_MAX`], else a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateBlob {
    /// In the acknowledgement and the manifest.
    Inline(Vec<u8>),
    /// Path below the checkpoint folder, and size in bytes.
    File(String, u64),
}

/// Operator state up to this size travels in the acknowledgement.
pub const INLINE_STATE_BYTES_MAX: usize = 20 * 1024;

impl Manifest {
    /// The folder of a checkpoint's own files; the attempt is in it (law 8).
    pub fn folder(id: CheckpointId, attempt: AttemptId) -> String {
        match mutation::on(Mutation::FilesWithoutAttempt) {
            true => format!("{id}"),
            false => format!("{id}-{attempt}"),
        }
    }

    /// Every file it names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.operators.iter().flat_map(|o| &o.subtasks).flat_map(OperatorSubtaskState::files)
    }

    /// Bytes of state, in files and inline.
    pub fn size_bytes(&self) -> u64 {
        self.operators.iter().flat_map(|o| &o.subtasks).map(OperatorSubtaskState::size_bytes).sum()
    }

    /// The state of this operator.
    pub fn operator(&self, uid: &OperatorUid) -> Option<&OperatorState> {
        self.operators.iter().find(|o| o.uid == *uid)
    }
}

impl OperatorSubtaskState {
    fn size_bytes(&self) -> u64 {
        let lists = self.lists.iter().map(|list| match &list.blob {
            StateBlob::Inline(bytes) => bytes.len() as u64,
            StateBlob::File(_, size_bytes) => *size_bytes,
        });
        self.keyed.iter().map(|keyed| keyed.size_bytes).chain(lists).sum()
    }

    /// Every file it names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let lists = self.lists.iter().filter_map(|l| match &l.blob {
            StateBlob::File(path, _) => Some(path.as_str()),
            StateBlob::Inline(_) => None,
        });
        self.keyed.iter().map(|k| k.path.as_str()).chain(lists)
    }
}
