//! One subtask's part of the checkpoints in flight: uploads what was frozen, waits for what comes later, acknowledges.
//!
//! "Acknowledge" has one meaning: all state of this subtask is uploaded and every pending committable ≤ *n* is flushed and prepared.
//!
//! Owns: parts that are not complete yet, upload futures. Does not own: freezing (operators do), the decision that a checkpoint
//! is complete (the commit log's entry is). Runs on: the slot's thread; uploads run on [`crate::io::Io`].

use std::sync::Arc;

use bytes::Bytes;
use tidegate_state::{CheckpointStorage, fault_point, write_state_file};
use tokio::sync::mpsc;

use crate::checkpoint::manifest::{
    INLINE_STATE_BYTES_MAX, KeyedStateHandle, ListStateHandle, Manifest, OperatorSubtaskState, StateBlob,
};
use crate::clock::Moment;
use crate::element::CheckpointBarrier;
use crate::ids::{AttemptId, CheckpointId, OperatorUid};
use crate::io::{SharedIo, Waker, blocking};
use crate::mutation::{self, Mutation};
use crate::operator::{FrozenKeyedState, OperatorPart};
use crate::taskworker::mail::{SubtaskAck, SubtaskCheckpointStats, TaskEvent};

/// Uploads of one subtask that have not been taken note of.
const UPLOADS_MAX: usize = 64;

/// What the checkpointer is made with.
pub struct CheckpointerSetup {
    /// Index of the subtask: part of its file names.
    pub subtask: u32,
    /// The attempt: part of the folder.
    pub attempt: AttemptId,
    /// Where state goes; `None` where checkpoints are off.
    pub storage: Option<CheckpointStorage>,
    /// Runs uploads.
    pub io: SharedIo,
    /// Wakes the slot when an upload is done.
    pub waker: Waker,
}

/// See the module.
pub struct SubtaskCheckpointer {
    setup: CheckpointerSetup,
    in_flight: Vec<InFlight>,
    uploads_tx: mpsc::Sender<Uploaded>,
    uploads: mpsc::Receiver<Uploaded>,
}

impl std::fmt::Debug for SubtaskCheckpointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubtaskCheckpointer")
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

struct InFlight {
    id: CheckpointId,
    operators: Vec<OperatorSubtaskState>,
    /// Uploads and late parts that are still out.
    outstanding: usize,
    ended: bool,
    records_written: u64,
    stats: SubtaskCheckpointStats,
    sync_done: Moment,
}

struct Uploaded {
    id: CheckpointId,
    uid: OperatorUid,
    what: UploadedWhat,
}

enum UploadedWhat {
    Keyed(KeyedStateHandle),
    List(ListStateHandle),
    Failed(String),
    /// After [`Mutation::AckBeforeUpload`]: nobody waits for it any more.
    Late,
}

/// What is known of a barrier besides its parts.
#[derive(Clone, Copy, Debug)]
pub struct BarrierTimes {
    /// When the step that took the snapshot began.
    pub step: Moment,
    /// When the first barrier came.
    pub first: Moment,
    /// When the last one came.
    pub aligned: Moment,
    /// When the frozen parts were complete.
    pub frozen: Moment,
}

/// What of a subtask's life lies in front of a barrier.
#[derive(Clone, Copy, Debug)]
pub struct BeforeBarrier {
    /// Whether it had forwarded `EndOfData`.
    pub ended: bool,
    /// Records that its sinks had written in this attempt.
    pub records_written: u64,
}

impl SubtaskCheckpointer {
    /// Nothing in flight.
    pub fn new(setup: CheckpointerSetup) -> Self {
        let (uploads_tx, uploads) = mpsc::channel(UPLOADS_MAX);
        Self { setup, in_flight: Vec::new(), uploads_tx, uploads }
    }

    /// Takes the frozen parts of a checkpoint and starts its uploads.
    pub fn begin(
        &mut self,
        barrier: &CheckpointBarrier,
        parts: Vec<OperatorPart>,
        before: BeforeBarrier,
        times: BarrierTimes,
    ) {
        let stats = SubtaskCheckpointStats {
            start_delay_us: micros(times.first).saturating_sub(barrier.triggered_at_us),
            alignment_us: micros(times.aligned.saturating_sub(times.first)),
            sync_us: micros(times.frozen.saturating_sub(times.aligned)),
            async_us: 0,
            size_bytes: 0,
            longest_step_us: micros(times.frozen.saturating_sub(times.step)),
        };
        self.in_flight.push(InFlight {
            id: barrier.id,
            operators: Vec::new(),
            outstanding: 0,
            ended: before.ended,
            records_written: before.records_written,
            stats,
            sync_done: times.frozen,
        });
        for part in parts {
            self.add_part(barrier.id, part, true);
        }
    }

    /// A part that was announced with `comes_later`.
    pub fn late_part(&mut self, id: CheckpointId, part: OperatorPart) {
        if let Some(entry) = self.in_flight.iter_mut().find(|e| e.id == id) {
            entry.outstanding -= 1;
            self.add_part(id, part, false);
        }
    }

    /// Forgets a checkpoint: it was given up, or a newer one is complete.
    pub fn forget_up_to(&mut self, id: CheckpointId) {
        self.in_flight.retain(|e| e.id > id);
    }

    /// Whether any checkpoint is in flight here.
    pub fn is_busy(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// A step of the subtask has taken so long, the one that froze included.
    pub fn note_step(&mut self, took: Moment) {
        for entry in &mut self.in_flight {
            entry.stats.longest_step_us = entry.stats.longest_step_us.max(micros(took));
        }
    }

    fn add_part(&mut self, id: CheckpointId, part: OperatorPart, first: bool) {
        let Some(entry) = self.in_flight.iter_mut().find(|e| e.id == id) else { return };
        if first {
            let state = OperatorSubtaskState {
                uid: part.uid.clone(),
                ended: part.ended,
                ..OperatorSubtaskState::default()
            };
            entry.operators.push(state);
        }
        entry.outstanding += usize::from(part.comes_later);
        if let Some(frozen) = part.keyed {
            self.upload_keyed(id, &part.uid, frozen);
        }
        for (name, redistribution, bytes) in part.lists {
            let mut list = ListStateHandle { name, redistribution, blob: StateBlob::Inline(Vec::new()) };
            if bytes.len() <= INLINE_STATE_BYTES_MAX {
                list.blob = StateBlob::Inline(bytes);
                self.add_list(id, &part.uid, list);
            } else {
                self.upload_list(id, &part.uid, list, bytes);
            }
        }
    }

    fn add_list(&mut self, id: CheckpointId, uid: &OperatorUid, list: ListStateHandle) {
        let Some(entry) = self.in_flight.iter_mut().find(|e| e.id == id) else { return };
        entry.stats.size_bytes += match &list.blob {
            StateBlob::Inline(bytes) => bytes.len() as u64,
            StateBlob::File(_, size) => *size,
        };
        if let Some(operator) = entry.operators.iter_mut().find(|o| o.uid == *uid) {
            operator.lists.push(list);
        }
    }

    fn path(&self, id: CheckpointId, uid: &OperatorUid, kind: &str) -> String {
        let folder = Manifest::folder(id, self.setup.attempt);
        format!("{folder}/{uid}-{}.{kind}", self.setup.subtask)
    }

    fn upload_keyed(&mut self, id: CheckpointId, uid: &OperatorUid, frozen: FrozenKeyedState) {
        let path = self.path(id, uid, "state");
        let (io, operator) = (Arc::clone(&self.setup.io), uid.to_string());
        let range = frozen.range;
        if mutation::on(Mutation::AckBeforeUpload) {
            // The softened law: the handle is acknowledged although nothing is stored yet.
            let handle = KeyedStateHandle { path: path.clone(), size_bytes: 0, range };
            self.spawn_upload(id, uid, path, keyed_bytes(io, operator, frozen), |_| UploadedWhat::Late);
            self.on_uploaded(Uploaded { id, uid: uid.clone(), what: UploadedWhat::Keyed(handle) });
            return;
        }
        let done_path = path.clone();
        self.spawn_upload(id, uid, path, keyed_bytes(io, operator, frozen), move |size_bytes| {
            UploadedWhat::Keyed(KeyedStateHandle { path: done_path, size_bytes, range })
        });
    }

    fn upload_list(&mut self, id: CheckpointId, uid: &OperatorUid, list: ListStateHandle, bytes: Vec<u8>) {
        let path = self.path(id, uid, &list.name);
        let done_path = path.clone();
        self.spawn_upload(id, uid, path, async move { Ok(bytes) }, move |size| {
            UploadedWhat::List(ListStateHandle { blob: StateBlob::File(done_path, size), ..list })
        });
    }

    fn spawn_upload(
        &mut self,
        id: CheckpointId,
        uid: &OperatorUid,
        path: String,
        bytes: impl Future<Output = Result<Vec<u8>, String>> + Send + 'static,
        done: impl FnOnce(u64) -> UploadedWhat + Send + 'static,
    ) {
        if let Some(entry) = self.in_flight.iter_mut().find(|e| e.id == id) {
            entry.outstanding += 1;
        }
        let (uid, tx, waker) = (uid.clone(), self.uploads_tx.clone(), Arc::clone(&self.setup.waker));
        let storage = self.setup.storage.clone();
        let upload = async move {
            let what = match upload(storage, &path, bytes).await {
                Ok(size) => done(size),
                Err(reason) => UploadedWhat::Failed(reason),
            };
            let _ = tx.send(Uploaded { id, uid, what }).await;
            waker.wake();
        };
        self.setup.io.spawn("state upload", Box::pin(upload));
    }

    fn on_uploaded(&mut self, uploaded: Uploaded) -> Option<TaskEvent> {
        let Uploaded { id, uid, what } = uploaded;
        if matches!(what, UploadedWhat::Late) {
            return None;
        }
        let entry = self.in_flight.iter_mut().find(|e| e.id == id)?;
        entry.outstanding = entry.outstanding.saturating_sub(1);
        match what {
            UploadedWhat::Keyed(handle) => {
                entry.stats.size_bytes += handle.size_bytes;
                let operator = entry.operators.iter_mut().find(|o| o.uid == uid);
                operator.into_iter().for_each(|o| o.keyed = Some(handle.clone()));
            }
            UploadedWhat::List(list) => self.add_list(id, &uid, list),
            UploadedWhat::Late => {}
            UploadedWhat::Failed(reason) => {
                self.in_flight.retain(|e| e.id != id);
                return Some(TaskEvent::Decline { id, reason });
            }
        }
        None
    }

    /// Takes note of finished uploads; returns what is to be reported.
    pub fn poll(&mut self, now: Moment) -> Vec<TaskEvent> {
        let mut events = Vec::new();
        while let Ok(uploaded) = self.uploads.try_recv() {
            events.extend(self.on_uploaded(uploaded));
        }
        let (done, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.in_flight).into_iter().partition(|e| e.outstanding == 0);
        self.in_flight = waiting;
        events.extend(done.into_iter().map(|mut entry| {
            entry.stats.async_us = micros(now.saturating_sub(entry.sync_done));
            let InFlight { id, operators, ended, records_written, stats, .. } = entry;
            TaskEvent::Acknowledge(SubtaskAck { id, operators, ended, records_written, stats })
        }));
        events
    }
}

async fn keyed_bytes(io: SharedIo, operator: String, frozen: FrozenKeyedState) -> Result<Vec<u8>, String> {
    let FrozenKeyedState { range, max_parallelism, tables } = frozen;
    blocking(&io, move || write_state_file(&operator, range, max_parallelism, tables))
        .await
        .map_err(|e| e.to_string())
}

async fn upload(
    storage: Option<CheckpointStorage>,
    path: &str,
    bytes: impl Future<Output = Result<Vec<u8>, String>>,
) -> Result<u64, String> {
    let bytes = bytes.await?;
    let size = bytes.len() as u64;
    let Some(storage) = storage else {
        return Err("checkpoints are off: there is no place for state".to_owned());
    };
    fault_point!("snapshot.upload.before");
    storage.put(path, Bytes::from(bytes)).await.map_err(|e| crate::error::chain_text(&e))?;
    fault_point!("snapshot.upload.after");
    Ok(size)
}

fn micros(moment: Moment) -> u64 {
    u64::try_from(moment.as_micros()).unwrap_or(u64::MAX)
}
