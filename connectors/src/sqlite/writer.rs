//! Stages rows, one staging table per transaction.
//!
//! Owns: the open transaction and the rows not yet staged. Does not own: what becomes of a prepared one (see
//! [`super::SqliteCommitter`]). Runs on: the I/O side.

use tidegate_engine::api::{ConnectorError, TwoPhaseWriter};
use tidegate_engine::element::Batch;
use tidegate_engine::operator::TransactionName;

use super::columns::{Columns, RowEncoder};
use super::database::on_database;
use super::insert::{Rows, insert};
use super::sink::Target;
use super::{SqliteError, StagedRows, staging};

/// Rows held back, so that a SQL transaction (and its fsync) is worth its while. The rest goes out at prepare.
const ROWS_HELD_MAX: usize = 1_024;

/// Writer of a [`super::SqliteSink`].
pub struct SqliteWriter<T> {
    target: Target,
    encoder: RowEncoder<T>,
    held: Rows,
    open: Option<OpenTransaction>,
    /// A statement failed or was cut short: its rows are no longer held.
    broken: bool,
}

struct OpenTransaction {
    name: TransactionName,
    /// Rows in its staging table; 0: the table is not made yet.
    staged: u64,
}

impl<T> SqliteWriter<T> {
    pub(crate) fn new(target: Target, columns: Columns<T>) -> Self {
        let encoder = RowEncoder::new(columns, &target.spec.name);
        let held = Rows::of_width(target.spec.columns.len());
        Self { target, encoder, held, open: None, broken: false }
    }

    fn refuse_broken(&self) -> Result<(), SqliteError> {
        if self.broken {
            return Err(SqliteError::WriterBroken { table: self.target.spec.name.clone() });
        }
        Ok(())
    }

    /// Stages the rows held back. Afterwards they are on disk.
    async fn flush(&mut self) -> Result<(), SqliteError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if self.held.len() == 0 {
            return Ok(());
        }
        let width = self.held.width;
        let rows = std::mem::replace(&mut self.held, Rows::of_width(width));
        let count = rows.len() as u64;
        let (spec, name, is_new) = (self.target.spec.clone(), open.name.clone(), open.staged == 0);
        // Until the answer is in: a future dropped here leaves a writer that prepares nothing.
        self.broken = true;
        on_database(&self.target.io, &self.target.database, move |database| {
            let doing = format!("staging rows for the table {}", spec.name);
            database.write(&doing, |transaction| {
                let table = staging::table_name(&name);
                let staged = if is_new { staging::open(transaction, &spec, &name) } else { Ok(()) };
                staged
                    .and_then(|()| insert(transaction, &spec, &table, "", &rows))
                    .map_err(|e| SqliteError::of(database.file(), &doing, e))
            })
        })
        .await?;
        self.broken = false;
        open.staged += count;
        Ok(())
    }
}

impl<T: Clone + Send + 'static> TwoPhaseWriter for SqliteWriter<T> {
    type Record = T;
    type Committable = StagedRows;

    async fn write(&mut self, name: &TransactionName, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.refuse_broken()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.open.get_or_insert_with(|| OpenTransaction { name: name.clone(), staged: 0 });
        for record in &batch.values {
            self.encoder.encode(record, &mut self.held.values)?;
        }
        if self.held.len() >= ROWS_HELD_MAX {
            self.flush().await?;
        }
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<StagedRows>, ConnectorError> {
        self.refuse_broken()?;
        self.flush().await?;
        let staged =
            |open: OpenTransaction| StagedRows { table: staging::table_name(&open.name), rows: open.staged };
        Ok(self.open.take().map(staged))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.held.values.clear();
        self.broken = false;
        let Some(open) = self.open.take() else { return Ok(()) };
        let dropped = on_database(&self.target.io, &self.target.database, move |database| {
            let doing = "dropping an open transaction";
            database.write(doing, |transaction| {
                staging::drop(transaction, &open.name).map_err(|e| SqliteError::of(database.file(), doing, e))
            })
        });
        Ok(dropped.await?)
    }
}
