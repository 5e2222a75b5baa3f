//! The SQLite sink without transactions of its own.
//!
//! Each batch is one SQL transaction straight into the target: at-least-once at best, and nothing at all is promised for a sink that
//! adds. It shows what the two-phase sink is for.
//!
//! Owns: the one-phase writer. Does not own: settings and tables (shared with [`super::SqliteSink`]). Runs on: the I/O side.

use std::sync::Arc;

use rusqlite::{Connection, types::Value};
use tidegate_engine::api::{ConnectorContext, ConnectorError, Sink, Writer};
use tidegate_engine::element::Batch;

use super::columns::RowEncoder;
use super::committer::{is_taken_key, key_text};
use super::database::on_database;
use super::insert::{Rows, insert};
use super::sink::Target;
use super::table::{TableSpec, quoted};
use super::{SqliteError, SqliteSink};

/// Rows into a table of a SQLite file, a plain SQL transaction per batch. Made by [`SqliteSink::plain`].
#[derive(Debug)]
pub struct PlainSqliteSink<T> {
    sink: SqliteSink<T>,
}

impl<T> PlainSqliteSink<T> {
    pub(crate) fn of(sink: SqliteSink<T>) -> Self {
        Self { sink }
    }
}

impl<T> Clone for PlainSqliteSink<T> {
    fn clone(&self) -> Self {
        Self { sink: self.sink.clone() }
    }
}

impl<T: Clone + Send + 'static> Sink for PlainSqliteSink<T> {
    type Record = T;
    type Writer = PlainSqliteWriter<T>;

    fn validate(&self) -> Result<(), ConnectorError> {
        self.sink.check()
    }

    fn open(
        &self,
        context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<PlainSqliteWriter<T>, ConnectorError>> + Send + use<T> {
        let target = self.sink.open_target(Arc::clone(&context.io), false);
        let columns = self.sink.getters();
        async move {
            let target = target.await?;
            let encoder = RowEncoder::new(columns, &target.spec.name);
            Ok(PlainSqliteWriter { target, encoder })
        }
    }
}

/// Writer of a [`PlainSqliteSink`].
pub struct PlainSqliteWriter<T> {
    target: Target,
    encoder: RowEncoder<T>,
}

impl<T: Clone + Send + 'static> Writer for PlainSqliteWriter<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        let spec = Arc::clone(&self.target.spec);
        let mut rows = Rows::of_width(spec.columns.len());
        for record in &batch.values {
            self.encoder.encode(record, &mut rows.values)?;
        }
        let written = on_database(&self.target.io, &self.target.database, move |database| {
            let doing = format!("writing to the table {}", spec.name);
            database.write(&doing, |transaction| {
                let inserted = insert(transaction, &spec, &spec.name, &spec.conflict_clause(), &rows);
                inserted.map_err(|e| match taken_key(transaction, &spec, &rows, &e) {
                    Some(key) => {
                        let (file, table) = (database.file().to_owned(), spec.name.clone());
                        SqliteError::KeyTaken { file, table, key, source: Box::new(e) }
                    }
                    None => SqliteError::of(database.file(), &doing, e),
                })
            })
        });
        Ok(written.await?)
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        // Every batch was committed with synchronous=FULL.
        Ok(())
    }
}

/// The first key of `rows` that is in the table. The failed statement is undone, those before it in the SQL transaction are not, so
/// that a key that comes twice in one batch is found too, unless both stand in one statement.
fn taken_key(
    connection: &Connection,
    spec: &TableSpec,
    rows: &Rows,
    error: &rusqlite::Error,
) -> Option<String> {
    if !is_taken_key(error) || spec.key.is_empty() {
        return None;
    }
    let key: Vec<usize> = spec
        .key
        .iter()
        .filter_map(|name| spec.columns.iter().position(|column| column.name == *name))
        .collect();
    let same: Vec<String> = spec.key.iter().map(|name| format!("{} = ?", quoted(name))).collect();
    let sql = format!("SELECT 1 FROM {} WHERE {}", quoted(&spec.name), same.join(" AND "));
    let mut statement = connection.prepare(&sql).ok()?;
    let values_of = |row: &[Value]| key.iter().map(|column| row[*column].clone()).collect::<Vec<Value>>();
    let keys = rows.values.chunks_exact(rows.width.max(1)).map(values_of);
    let found =
        keys.into_iter().find(|values| statement.exists(rusqlite::params_from_iter(values)).unwrap_or(false));
    Some(key_text(spec, &found.unwrap_or_default()))
}
