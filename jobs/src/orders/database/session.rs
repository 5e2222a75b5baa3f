//! One connection to a MySQL server, used by a thread that waits for each answer.
//!
//! Owns: the connection, the runtime it lives on, and that no answer is waited for without end.
//! Does not own: the statements. Runs on: the calling thread.

use std::io;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Row};
use tokio::runtime::{Builder, Runtime};

use crate::address::servers::MysqlAddress;

/// An answer that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(60);
/// A server that lets nobody in within this time is away: as long as `tidegate xa` and the sinks wait.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// What can go wrong with a database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// No thread for the client.
    #[error("cannot speak to {place}: no thread for it can be had")]
    Runtime {
        /// Server and database.
        place: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The address is not one of this client's.
    #[error(
        "{place} is not an address of a database\n  help: write mysql://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Address {
        /// Server and database.
        place: String,
        /// Why not.
        #[source]
        source: mysql_async::UrlError,
    },
    /// The server is away or does not let us in.
    #[error("cannot connect to {place}\n  help: check that the server runs, and user, password and database")]
    Connect {
        /// Server and database.
        place: String,
        /// Why not.
        #[source]
        source: mysql_async::Error,
    },
    /// No connection came about in time.
    #[error(
        "connecting to {place} had no answer for {waited_ms} ms\n  help: is the server overloaded or stopped, or does a firewall drop packets?"
    )]
    ConnectTimeout {
        /// Server and database.
        place: String,
        /// How long.
        waited_ms: u128,
    },
    /// A statement failed.
    #[error("{place} does not {what}")]
    Statement {
        /// Server and database.
        place: String,
        /// What was tried.
        what: &'static str,
        /// Why not.
        #[source]
        source: mysql_async::Error,
    },
    /// No answer.
    #[error("{place} did not {what} in {} s\n  help: see with SHOW PROCESSLIST and XA RECOVER who holds what", PATIENCE.as_secs())]
    Silent {
        /// Server and database.
        place: String,
        /// What was tried.
        what: &'static str,
    },
    /// A table that somebody holds.
    #[error(
        "{place}: the table {table} cannot be dropped, somebody holds it or rows of it; nothing was dropped\n  help: cancel the job that \
         writes there; what a dead one left is shown by `tidegate xa list ADDRESS`, and thrown away by `tidegate xa rollback ADDRESS --all \
         --yes`, with ADDRESS = mysql://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    TableHeld {
        /// Server and database.
        place: String,
        /// Its name.
        table: &'static str,
        /// The server's word.
        #[source]
        source: mysql_async::Error,
    },
    /// A table is there already.
    #[error(
        "{place} has a table {table} already, with {rows} rows\n  help: give another database, or --force to drop the tables of orders"
    )]
    TableThere {
        /// Server and database.
        place: String,
        /// Its name.
        table: &'static str,
        /// Its rows.
        rows: u64,
    },
}

impl DatabaseError {
    /// The server's number of the error, if it was the server that refused.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Statement { source: mysql_async::Error::Server(error), .. }
            | Self::Connect { source: mysql_async::Error::Server(error), .. } => Some(error.code),
            _ => None,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    runtime: Runtime,
    connection: Conn,
    place: String,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn open(address: &MysqlAddress) -> Result<Self, DatabaseError> {
        Self::open_within(address, CONNECT_PATIENCE)
    }

    fn open_within(address: &MysqlAddress, patience: Duration) -> Result<Self, DatabaseError> {
        let place = address.to_string();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| DatabaseError::Runtime { place: place.clone(), source })?;
        let options = Opts::from_url(&address.url)
            .map_err(|source| DatabaseError::Address { place: place.clone(), source })?;
        let connected = runtime.block_on(async { tokio::time::timeout(patience, Conn::new(options)).await });
        let connection = connected
            .map_err(|_| DatabaseError::ConnectTimeout {
                place: place.clone(),
                waited_ms: patience.as_millis(),
            })?
            .map_err(|source| DatabaseError::Connect { place: place.clone(), source })?;
        Ok(Self { runtime, connection, place })
    }

    /// Server and database, for people.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Runs a statement without rows. `what` says in words what it is for: "create the table".
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn run(&mut self, what: &'static str, sql: &str) -> Result<(), DatabaseError> {
        let answer = self.connection.query_drop(sql);
        let answered = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
        match answered {
            Err(_) => Err(DatabaseError::Silent { place: self.place.clone(), what }),
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(DatabaseError::Statement { place: self.place.clone(), what, source }),
        }
    }

    /// Hands each row of a query to `take`, without holding them all.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn each_row(
        &mut self,
        what: &'static str,
        sql: &str,
        mut take: impl FnMut(Row),
    ) -> Result<(), DatabaseError> {
        let connection = &mut self.connection;
        let answer = async {
            let mut rows = connection.query_iter(sql).await?;
            while let Some(row) = rows.next().await? {
                take(row);
            }
            rows.drop_result().await
        };
        let answered = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
        match answered {
            Err(_) => Err(DatabaseError::Silent { place: self.place.clone(), what }),
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(DatabaseError::Statement { place: self.place.clone(), what, source }),
        }
    }

    /// One whole number; none: no row, or NULL.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn number(&mut self, what: &'static str, sql: &str) -> Result<Option<i64>, DatabaseError> {
        let mut number = None;
        self.each_row(what, sql, |mut row| number = row.take_opt(0).and_then(Result::ok))?;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_takes_a_connection_and_says_nothing_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("mysql://u:s3cret@{}/d", silent.local_addr().unwrap()).parse().unwrap();
        let error = Session::open_within(&address, Duration::from_millis(20)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("had no answer for 20 ms") && said.contains("/d"), "{said}");
        assert!(said.contains("help: ") && !said.contains("s3cret"), "{said}");
    }
}
