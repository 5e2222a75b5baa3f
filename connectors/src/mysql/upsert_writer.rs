//! Writes rows over those with the same key, many at a time.
//!
//! Owns: when what waits is written: at a limit, after the flush interval, and before a checkpoint is acknowledged. Does not own: the
//! reduction (see [`super::upsert_buffer`]), repetition (see [`super::upsert_session`]). Runs on: the I/O side.

use std::time::Duration;

use tidegate_engine::api::{ConnectorError, Writer};
use tidegate_engine::clock::{Moment, SharedClock};
use tidegate_engine::element::{Batch, RowKind};

use super::columns::RowEncoder;
use super::limits::PACKET_ROOM_BYTES;
use super::upsert_buffer::{RowLayout, UpsertBuffer};
use super::upsert_session::UpsertSession;
use super::value::wire_bytes;
use super::{Columns, MysqlError};

/// Limits of one writer.
#[derive(Clone, Debug)]
pub(crate) struct WriterSettings {
    pub(crate) layout: RowLayout,
    pub(crate) batch_rows: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) flush_interval: Duration,
}

/// Writer of an [`super::UpsertSink`].
pub struct UpsertWriter<T, R> {
    settings: WriterSettings,
    session: UpsertSession,
    encoder: RowEncoder<T>,
    split: for<'r> fn(&'r R) -> (RowKind, &'r T),
    buffer: UpsertBuffer,
    clock: SharedClock,
    due: Option<Moment>,
}

impl<T, R> UpsertWriter<T, R> {
    pub(crate) fn new(
        settings: WriterSettings,
        session: UpsertSession,
        columns: Columns<T>,
        split: for<'r> fn(&'r R) -> (RowKind, &'r T),
        clock: SharedClock,
    ) -> Self {
        let encoder = RowEncoder::new(columns, session.table());
        let buffer = UpsertBuffer::new(settings.layout.clone());
        Self { settings, session, encoder, split, buffer, clock, due: None }
    }

    fn put(&mut self, record: &R) -> Result<(), MysqlError> {
        let (kind, record) = (self.split)(record);
        let mut row = Vec::with_capacity(self.settings.layout.kinds.len());
        self.encoder.encode(record, &mut row)?;
        let row_bytes = row.iter().map(wire_bytes).sum::<usize>();
        let limit_bytes = self.session.packet_bytes_max();
        if row_bytes > limit_bytes.saturating_sub(PACKET_ROOM_BYTES) {
            let (table, server) = (self.session.table().to_owned(), self.session.place());
            return Err(MysqlError::RowTooLarge {
                table,
                server,
                row: self.encoder.rows(),
                row_bytes,
                limit_bytes,
            });
        }
        self.buffer.put(kind, row);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.buffer.len() >= self.settings.batch_rows || self.buffer.bytes() >= self.settings.batch_bytes
    }

    async fn write_out(&mut self, all: bool) -> Result<(), MysqlError> {
        let changes = self.buffer.take(all);
        if !changes.is_empty() {
            self.session.write(&changes).await?;
        }
        self.due = None;
        self.set_due();
        Ok(())
    }

    fn set_due(&mut self) {
        if self.due.is_none() && !self.buffer.is_empty() {
            self.due = Some(self.clock.now() + self.settings.flush_interval);
        }
    }
}

impl<T: Send + 'static, R: Send + 'static> Writer for UpsertWriter<T, R> {
    type Record = R;

    async fn write(&mut self, batch: Batch<R>) -> Result<(), ConnectorError> {
        for record in batch.values {
            self.put(&record)?;
            if self.is_full() {
                drop(record);
                self.write_out(false).await?;
            }
        }
        self.set_due();
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(self.write_out(true).await?)
    }

    fn due(&self) -> Option<Moment> {
        self.due
    }

    async fn on_due(&mut self) -> Result<(), ConnectorError> {
        Ok(self.write_out(false).await?)
    }
}
