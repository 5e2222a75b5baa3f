//! A table for one run.
//!
//! Owns: its making, counting, dropping, and statements by hand. Does not own: the server. Runs on: the main thread.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

use super::block_on;
use crate::error::BenchError;

/// A table of orders that is dropped with this.
pub(super) struct Table {
    pub(super) url: String,
    pub(super) name: String,
}

/// For `map_err` on what the client says.
pub(super) fn mysql(tried: &'static str) -> impl Fn(mysql_async::Error) -> BenchError {
    move |source| BenchError::Server { tried, said: source.to_string() }
}

impl Table {
    /// Makes an empty table.
    pub(super) fn make(url: &str, name: &str) -> Result<Self, BenchError> {
        let table = Self { url: url.to_owned(), name: name.to_owned() };
        table.ask(&format!("DROP TABLE IF EXISTS {name}"))?;
        table.ask(&format!(
            "CREATE TABLE {name} (order_id BIGINT UNSIGNED NOT NULL, user_id BIGINT UNSIGNED NOT NULL, amount_cents BIGINT NOT NULL, \
             status VARCHAR(20) NOT NULL, event_time_ms BIGINT NOT NULL, PRIMARY KEY (order_id)) ENGINE=InnoDB"
        ))?;
        Ok(table)
    }

    /// Empties it.
    pub(super) fn empty(&self) -> Result<(), BenchError> {
        self.ask(&format!("TRUNCATE TABLE {}", self.name))
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> Result<u64, BenchError> {
        let (url, query) = (self.url.clone(), format!("SELECT count(*) FROM {}", self.name));
        block_on(async move {
            let mut conn = connect(&url).await?;
            let counted: Option<u64> = conn.query_first(query).await.map_err(mysql("counting rows"))?;
            conn.disconnect().await.map_err(mysql("counting rows"))?;
            Ok(counted.unwrap_or(0))
        })?
    }

    fn ask(&self, statement: &str) -> Result<(), BenchError> {
        let (url, statement) = (self.url.clone(), statement.to_owned());
        block_on(async move {
            let mut conn = connect(&url).await?;
            conn.query_drop(statement).await.map_err(mysql("making a table"))?;
            conn.disconnect().await.map_err(mysql("making a table"))
        })?
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Err(error) = self.ask(&format!("DROP TABLE IF EXISTS {}", self.name)) {
            eprintln!("note: the table {} is left: {error}", self.name);
        }
    }
}

/// A connection by hand.
pub(super) async fn connect(url: &str) -> Result<Conn, BenchError> {
    let opts = Opts::from_url(url)
        .map_err(|error| BenchError::Server { tried: "reading the URL", said: error.to_string() })?;
    Conn::new(opts).await.map_err(mysql("connecting"))
}
