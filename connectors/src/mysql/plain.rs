//! The MySQL sink without transactions of the job: the control group.
//!
//! Each batch is one transaction of the server, straight into the table: at-least-once at best, and nothing at all is promised for a
//! sink that adds. It shows what the two-phase sinks are for.
//!
//! Owns: the one-phase sink and writer. Does not own: settings and table (shared with [`super::MysqlSink`]). Runs on: the I/O side.

use tidegate_engine::api::{
    ConnectorContext, ConnectorError, PreflightContext, PreflightResult, Sink, Writer,
};
use tidegate_engine::element::Batch;

use super::columns::RowEncoder;
use super::insert::{Rows, insert};
use super::sink::Target;
use super::{Connection, MysqlError, MysqlSink, SessionLimits, preflight};

/// Rows into a table, a transaction of the server per batch. Made by [`MysqlSink::plain`].
#[derive(Debug)]
pub struct PlainMysqlSink<T> {
    sink: MysqlSink<T>,
}

impl<T> PlainMysqlSink<T> {
    pub(crate) fn of(sink: MysqlSink<T>) -> Self {
        Self { sink }
    }
}

impl<T> Clone for PlainMysqlSink<T> {
    fn clone(&self) -> Self {
        Self { sink: self.sink.clone() }
    }
}

impl<T: Clone + Send + 'static> Sink for PlainMysqlSink<T> {
    type Record = T;
    type Writer = PlainMysqlWriter<T>;

    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(self.sink.target().map(drop)?)
    }

    fn preflight(&self, context: PreflightContext) -> impl Future<Output = PreflightResult> + Send + use<T> {
        let target = self.sink.target();
        async move {
            let target = target?;
            SessionLimits::check(context.checkpoints.timeout(), &target.url)?;
            Ok(preflight::look_at_table(&target, &context).await?)
        }
    }

    fn open(
        &self,
        context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<PlainMysqlWriter<T>, ConnectorError>> + Send + use<T> {
        let (target, columns) = (self.sink.target(), self.sink.getters());
        async move {
            let target = target?;
            let encoder = RowEncoder::new(columns, &target.spec.name);
            Ok(PlainMysqlWriter { target, context, encoder, connection: None })
        }
    }
}

/// Writer of a [`PlainMysqlSink`].
pub struct PlainMysqlWriter<T> {
    target: Target,
    context: ConnectorContext,
    encoder: RowEncoder<T>,
    connection: Option<Connection>,
}

impl<T> PlainMysqlWriter<T> {
    async fn connected(&mut self) -> Result<&mut Connection, MysqlError> {
        let connection = match self.connection.take().filter(Connection::is_open) {
            Some(connection) => connection,
            None => {
                let limits = SessionLimits::below(self.context.checkpoint_timeout);
                Connection::open_in_job(&self.target.url, limits, &self.context.io).await?
            }
        };
        Ok(self.connection.insert(connection))
    }
}

impl<T: Clone + Send + 'static> Writer for PlainMysqlWriter<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        let spec = self.target.spec.clone();
        let mut rows = Rows::of_width(spec.columns.len(), self.target.batches.rows);
        for record in &batch.values {
            self.encoder.encode(record, &mut rows.values)?;
        }
        let doing = format!("writing rows into the table {}", spec.name);
        let connection = self.connected().await?;
        connection.run(&doing, "START TRANSACTION").await?;
        insert(connection, &spec, &spec.name, false, rows).await?;
        connection.run(&doing, "COMMIT").await?;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        // Every batch is committed.
        Ok(())
    }
}
