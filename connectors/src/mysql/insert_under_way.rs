//! The insert that the server works on while the writer makes the rows of the next one.
//!
//! A writer waits for the answer before it sends another statement, and before it prepares; so at most one is under way, and rows stay in
//! their order. What a statement's failure is known late costs nothing: the writer fails all the same, before anything is prepared.
//!
//! Owns: that statement. Does not own: the transaction it is part of, the session (whose lock it holds meanwhile). Runs on: the I/O
//! side, in a task of its own.

use std::sync::Arc;

use tidegate_engine::io::SharedIo;
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::insert::{Rows, insert};
use super::{Attempted, Connection, MysqlError, TableSpec};

/// Rows, and where they go.
pub(crate) struct Insert {
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) table: String,
    /// Without the manner of the table's mode.
    pub(crate) plainly: bool,
    pub(crate) rows: Rows,
}

/// See the module.
pub(crate) struct InsertUnderWay {
    answer: Option<oneshot::Receiver<Result<(), MysqlError>>>,
    /// What the writer does, for the error when the task is gone.
    at: Attempted,
}

impl InsertUnderWay {
    /// None.
    pub(crate) fn none(at: Attempted) -> Self {
        Self { answer: None, at }
    }

    /// Begins one; the last one is settled.
    pub(crate) fn begin(&mut self, io: &SharedIo, mut session: OwnedMutexGuard<Connection>, work: Insert) {
        let (told, answer) = oneshot::channel();
        self.answer = Some(answer);
        let run = async move {
            let Insert { spec, table, plainly, rows } = work;
            let done = insert(&mut session, &spec, &table, plainly, rows).await;
            // The session is free before anybody knows.
            drop(session);
            let _ = told.send(done);
        };
        drop(io.spawn("mysql insert", Box::pin(run)));
    }

    /// Waits for the answer to the one that is under way, if there is one.
    pub(crate) async fn settled(&mut self) -> Result<(), MysqlError> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let done = answer.await;
        self.answer = None;
        done.unwrap_or_else(|_| Err(MysqlError::Broken { at: self.at.clone() }))
    }
}
