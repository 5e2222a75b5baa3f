//! The inserts that a writer has handed over: the server works on one while the next one waits and the rows of a third are made.
//!
//! A task of its own takes them one after the other, so that the next statement goes out as soon as the last one is answered, and not
//! when the writer is awake again. Rows stay in their order. That a statement's failure is known late costs nothing: nothing is sent
//! behind it, and the writer fails all the same, before anything is prepared.
//!
//! Owns: those statements, and that none is sent behind one that failed. Does not own: the transaction they are part of, the session
//! (whose lock is held for one statement at a time). Runs on: the I/O side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_engine::io::SharedIo;
use tidegate_state::fault_point;
use tokio::sync::{mpsc, oneshot};

use super::insert::{Rows, insert};
use super::writer_session::SharedConnection;
use super::{Attempted, MysqlError, TableSpec};

/// Statements that wait behind the one that the server works on.
const WAITING_MAX: usize = 1;

/// Rows, and where they go.
pub(crate) struct Insert {
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) table: String,
    /// Without the manner of the table's mode.
    pub(crate) plainly: bool,
    pub(crate) rows: Rows,
}

/// See the module.
pub(crate) struct InsertsUnderWay {
    task: Option<Task>,
    /// What the writer does, for the error when the task is gone.
    at: Attempted,
}

struct Task {
    queue: mpsc::Sender<Insert>,
    ended: oneshot::Receiver<Result<(), MysqlError>>,
    /// What still waits is not sent any more.
    given_up: Arc<AtomicBool>,
}

impl InsertsUnderWay {
    /// None.
    pub(crate) fn none(at: Attempted) -> Self {
        Self { task: None, at }
    }

    /// Hands one over; waits for its place behind the one that the server works on.
    ///
    /// # Errors
    /// That of a statement before it.
    pub(crate) async fn put(
        &mut self,
        io: &SharedIo,
        session: SharedConnection,
        insert: Insert,
    ) -> Result<(), MysqlError> {
        let task = match &mut self.task {
            Some(task) => task,
            none => none.insert(Task::start(io, session)),
        };
        if task.queue.send(insert).await.is_ok() {
            return Ok(());
        }
        // The task has ended without having been asked to.
        self.settled().await?;
        Err(MysqlError::Broken { at: self.at.clone() })
    }

    /// Waits for the answers to all of them.
    ///
    /// # Errors
    /// That of the first one that failed.
    pub(crate) async fn settled(&mut self) -> Result<(), MysqlError> {
        let Some(Task { queue, ended, .. }) = self.task.take() else { return Ok(()) };
        drop(queue);
        ended.await.unwrap_or_else(|_| Err(MysqlError::Broken { at: self.at.clone() }))
    }

    /// Waits for the answer to the one that the server works on; those behind it are thrown away.
    pub(crate) async fn given_up(&mut self) {
        if let Some(task) = &self.task {
            task.given_up.store(true, Ordering::Release);
        }
        let _ = self.settled().await;
    }
}

impl Task {
    fn start(io: &SharedIo, session: SharedConnection) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Insert>(WAITING_MAX);
        let (told, ended) = oneshot::channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&given_up);
        let run = async move {
            let (mut done, mut sent) = (Ok(()), 0_u64);
            while let Some(Insert { spec, table, plainly, rows }) = waiting.recv().await {
                if flag.load(Ordering::Acquire) {
                    break;
                }
                if sent > 0 {
                    fault_point!("mysql.insert.between");
                }
                sent += 1;
                // For this statement only: a session that waits for rows has its keeper.
                let mut connection = session.lock().await;
                done = insert(&mut connection, &spec, &table, plainly, rows).await;
                if done.is_err() {
                    break;
                }
            }
            // The session is free, and nothing more is taken, before anybody knows.
            drop((session, waiting));
            let _ = told.send(done);
        };
        drop(io.spawn("mysql inserts", Box::pin(run)));
        Self { queue, ended, given_up }
    }
}
