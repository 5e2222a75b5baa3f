//! Does a checkpoint fit this job? Asked before the claim is written, since a refusal must leave the log as it was.
//!
//! Owns: the rules about operators, key groups, parallelism, ends of data and pending transactions. Does not own: schemas of keyed
//! state, which stand in the state files and are compared where those are read. Runs on: pure.
//!
//! **Partly ended** (law 7): a checkpoint in which a vertex with `on_end` has ended only in part restores only at that vertex's
//! parallelism, and behind vertices of the same parallelism. The part that has ended called `on_end` and must not call it again; the
//! other part must still do so; at another parallelism no rule is right for both. And if a vertex in front of it is rescaled, records
//! can be routed to a subtask that has called `on_end` already (found by the simulation).

use crate::checkpoint::manifest::{ListStateHandle, Manifest, OperatorState, StateBlob};
use crate::ids::{CheckpointId, OperatorUid};
use crate::jobmanager::plan::{JobPlan, OperatorKind, OperatorPlan, VertexPlan};

/// How many items an encoded list has, if it can be read.
pub type ListLen = fn(&[u8]) -> Option<u64>;

/// What the person who starts the job has decided, and what else is known of the checkpoint.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Drop state that no operator of this job claims (`--allow-non-restored-state`).
    pub allow_non_restored_state: bool,
    /// For each sink: everything up to this checkpoint is known to be committed.
    pub committed: Vec<(OperatorUid, CheckpointId)>,
    /// How many items an operator list of these bytes has; without it every list counts as not empty.
    pub list_len: Option<ListLen>,
}

impl RestoreOptions {
    /// A list in a file of its own is never empty: it is over [`crate::checkpoint::manifest::INLINE_STATE_BYTES_MAX`].
    fn is_empty(&self, list: &ListStateHandle) -> bool {
        match (&list.blob, self.list_len) {
            (StateBlob::Inline(bytes), Some(list_len)) => list_len(bytes) == Some(0),
            _ => false,
        }
    }
}

/// What a restore will not bring back, for people; nothing of it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreNote {
    /// State that is dropped, as decided.
    Dropped {
        /// Its operator.
        uid: OperatorUid,
        /// How much, in bytes.
        size_bytes: u64,
    },
    /// An operator that begins without state.
    New {
        /// It.
        uid: OperatorUid,
    },
}

/// Why a checkpoint cannot be restored into this job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreRefusal {
    /// More subtasks than key groups.
    #[error(
        "operator \"{operator}\" cannot run with {parallelism} subtasks\n\n  max parallelism   {max}\n\n  \
         help: lower the parallelism to {max}, or, for a job that starts without restore, raise the max parallelism"
    )]
    ParallelismOverMax {
        /// Name of the vertex.
        operator: String,
        /// What was asked for.
        parallelism: u32,
        /// The bound.
        max: u16,
    },
    /// The number of key groups differs, so keys would be looked for in the wrong place.
    #[error(
        "the state of operator \"{uid}\" does not fit this job\n\n  max parallelism\n  was        {was}    (checkpoint {checkpoint})\n  is         {is}\n\n  \
         help: set its max parallelism to {was}; it is fixed by the first start"
    )]
    MaxParallelismDiffers {
        /// The operator.
        uid: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// In the checkpoint.
        was: u16,
        /// In the job.
        is: u16,
    },
    /// The checkpoint has state of an operator that this job has not.
    #[error(
        "checkpoint {checkpoint} has state of operator \"{uid}\", and this job has no such operator\n\n  \
         state      {size_bytes} bytes in {subtasks} subtasks\n  operators  {}\n\n  \
         help: give the operator its uid \"{uid}\" back, or start without its state:\n        \
         --allow-non-restored-state drops it",
        names(known)
    )]
    OperatorMissing {
        /// The operator.
        uid: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// How much state.
        size_bytes: u64,
        /// From how many subtasks.
        subtasks: usize,
        /// Uids that this job has.
        known: Vec<OperatorUid>,
    },
    /// A sink that is gone, or is another kind of sink now, has transactions that only it could commit.
    #[error(
        "sink \"{uid}\" has transactions that checkpoint {checkpoint} lists and that may not be committed yet, and this job has no \
         two-phase sink of this uid\n\n  help: give the sink its uid back; start, and stop the job in order (Ctrl-C), which commits \
         them; then remove the sink"
    )]
    PendingSinkRemoved {
        /// The sink.
        uid: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Some subtasks had ended and called `on_end`, others had not.
    #[error(
        "operator \"{uid}\" cannot be restored with another parallelism from checkpoint {checkpoint}\n\n  \
         was        {was}, of which {ended} had ended and emitted their last records\n  is         {is}\n\n  \
         help: start with parallelism {was} for it; once the job has ended, or from a checkpoint before its input ended, \
         another one is possible"
    )]
    PartlyEnded {
        /// The operator.
        uid: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Its parallelism there.
        was: usize,
        /// How many of them had ended.
        ended: usize,
        /// Its parallelism in the job.
        is: u32,
    },
}

/// Checks a job on its own.
///
/// # Errors
/// [`RestoreRefusal::ParallelismOverMax`].
pub fn check_plan(plan: &JobPlan) -> Result<(), RestoreRefusal> {
    match plan.vertices.iter().find(|v| v.parallelism > u32::from(v.max_parallelism)) {
        None => Ok(()),
        Some(v) => Err(RestoreRefusal::ParallelismOverMax {
            operator: v.name.clone(),
            parallelism: v.parallelism,
            max: v.max_parallelism,
        }),
    }
}

/// Checks a checkpoint against a job.
///
/// # Errors
/// The first reason why it cannot be restored.
pub fn check_restore(
    manifest: &Manifest,
    plan: &JobPlan,
    options: &RestoreOptions,
) -> Result<Vec<RestoreNote>, RestoreRefusal> {
    check_plan(plan)?;
    let mut notes = Vec::new();
    for state in &manifest.operators {
        let now = plan.operators().find(|(_, o)| o.uid.as_ref() == Some(&state.uid));
        check_pending(manifest, state, now.map(|(_, o)| o), options)?;
        match now {
            Some((vertex, _)) => check_operator(manifest, state, vertex)?,
            None if size_of(state) == 0 => {}
            None if options.allow_non_restored_state => {
                notes.push(RestoreNote::Dropped { uid: state.uid.clone(), size_bytes: size_of(state) });
            }
            None => return Err(missing(manifest, state, plan)),
        }
    }
    let uids = plan.operators().filter_map(|(_, o)| o.uid.as_ref());
    notes.extend(
        uids.filter(|uid| manifest.operator(uid).is_none()).map(|uid| RestoreNote::New { uid: uid.clone() }),
    );
    Ok(notes)
}

/// A sink keeps its pending committables as a list; an empty one means that nothing is pending.
fn check_pending(
    manifest: &Manifest,
    state: &OperatorState,
    now: Option<&OperatorPlan>,
    options: &RestoreOptions,
) -> Result<(), RestoreRefusal> {
    let settled = options.committed.iter().any(|(uid, m)| *uid == state.uid && *m >= manifest.checkpoint);
    let lists_any = state.subtasks.iter().flat_map(|s| &s.lists).any(|l| !options.is_empty(l));
    let remains = now.is_some_and(|o| o.kind == OperatorKind::TwoPhaseSink);
    if !state.two_phase || settled || !lists_any || remains {
        return Ok(());
    }
    Err(RestoreRefusal::PendingSinkRemoved { uid: state.uid.clone(), checkpoint: manifest.checkpoint })
}

fn check_operator(
    manifest: &Manifest,
    state: &OperatorState,
    vertex: &VertexPlan,
) -> Result<(), RestoreRefusal> {
    let checkpoint = manifest.checkpoint;
    if state.max_parallelism != vertex.max_parallelism {
        return Err(RestoreRefusal::MaxParallelismDiffers {
            uid: state.uid.clone(),
            checkpoint,
            was: state.max_parallelism,
            is: vertex.max_parallelism,
        });
    }
    let (was, ended) = (state.subtasks.len(), state.ended.iter().filter(|ended| **ended).count());
    let partly = state.has_on_end && ended > 0 && ended < was;
    if partly && (was != vertex.parallelism as usize || state.upstream != vertex.upstream) {
        let (uid, is) = (state.uid.clone(), vertex.parallelism);
        return Err(RestoreRefusal::PartlyEnded { uid, checkpoint, was, ended, is });
    }
    Ok(())
}

fn missing(manifest: &Manifest, state: &OperatorState, plan: &JobPlan) -> RestoreRefusal {
    RestoreRefusal::OperatorMissing {
        uid: state.uid.clone(),
        checkpoint: manifest.checkpoint,
        size_bytes: size_of(state),
        subtasks: state.subtasks.len(),
        known: plan.operators().filter_map(|(_, o)| o.uid.clone()).collect(),
    }
}

fn size_of(state: &OperatorState) -> u64 {
    let lists = state.subtasks.iter().flat_map(|s| &s.lists).map(|l| match &l.blob {
        StateBlob::Inline(bytes) => bytes.len() as u64,
        StateBlob::File(_, size_bytes) => *size_bytes,
    });
    let keyed = state.subtasks.iter().filter_map(|s| s.keyed.as_ref()).map(|k| k.size_bytes);
    let enumerator = state.enumerator.as_ref().map_or(0, |e| e.len() as u64);
    lists.sum::<u64>() + keyed.sum::<u64>() + enumerator
}

fn names(uids: &[OperatorUid]) -> String {
    uids.iter().map(OperatorUid::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
