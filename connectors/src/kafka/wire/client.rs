//! A client of a cluster: connections by address, coordinators by what they coordinate.
//!
//! Owns: connections and found coordinators, until one fails; the time limit of a request. Does not own: the requests
//! ([`super::transactions`], [`super::ledger`], [`super::cluster`]), asking again. Runs on: tokio, behind the I/O seam's clock.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use kafka_protocol::messages::FindCoordinatorRequest;
use kafka_protocol::protocol::StrBytes;
use tidegate_engine::broker::BrokerCode;
use tidegate_engine::io::SharedIo;

use super::connection::{Connection, OfferedVersions};
use super::{WireError, WireRequest};

/// A request without an answer ends its connection after so long.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Making a connection, with the question what the broker offers.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// What a coordinator coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorKind {
    /// A consumer group.
    Group,
    /// A transactional id.
    Transaction,
}

impl CoordinatorKind {
    const fn key_type(self) -> i8 {
        match self {
            Self::Group => 0,
            Self::Transaction => 1,
        }
    }
}

/// See the module.
pub struct WireClient {
    bootstrap: Vec<String>,
    /// Brokers of the cluster beside those, as metadata told last: they answer when those are away.
    told: Vec<String>,
    io: SharedIo,
    /// By `host:port`.
    connections: HashMap<String, Connection>,
    coordinators: HashMap<(CoordinatorKind, String), String>,
}

impl WireClient {
    /// Of the cluster behind `bootstrap` (`host:port,host:port`). Connects with the first request.
    pub fn new(bootstrap: &str, io: SharedIo) -> Self {
        let bootstrap = bootstrap.split(',').map(str::trim).filter(|address| !address.is_empty());
        Self {
            bootstrap: bootstrap.map(str::to_owned).collect(),
            told: Vec::new(),
            io,
            connections: HashMap::new(),
            coordinators: HashMap::new(),
        }
    }

    /// Keeps where the cluster's brokers are.
    pub(super) fn note_brokers(&mut self, addresses: impl IntoIterator<Item = String>) {
        let told: Vec<String> = addresses.into_iter().collect();
        if !told.is_empty() {
            self.told = told.into_iter().filter(|address| !self.bootstrap.contains(address)).collect();
        }
    }

    /// Lets time pass.
    pub async fn sleep(&self, span: Duration) {
        self.io.sleep(span).await;
    }

    /// Asks the broker at `address`, in the newest version of `known` that it offers.
    ///
    /// # Errors
    /// [`WireError`]; an error code inside the answer is the caller's to find.
    pub async fn call<R: WireRequest>(
        &mut self,
        address: &str,
        known: RangeInclusive<i16>,
        request: &R,
    ) -> Result<R::Response, WireError> {
        // Taken out, so that a connection whose request failed, or was given up by the caller, is not used again.
        let mut connection = match self.connections.remove(address) {
            Some(connection) => connection,
            None => self.limited("connecting", address, CONNECT_LIMIT, Connection::open(address)).await?,
        };
        let Some(version) = connection.offered.choose(R::KEY, &known) else {
            self.connections.insert(address.to_owned(), connection);
            let (request, address) = (R::NAME, address.to_owned());
            return Err(WireError::NotOffered {
                request,
                address,
                oldest: *known.start(),
                newest: *known.end(),
            });
        };
        let asked = connection.call(request, version);
        let answer = self.limited(R::NAME, address, REQUEST_LIMIT, asked).await?;
        self.connections.insert(address.to_owned(), connection);
        Ok(answer)
    }

    /// Asks any broker, first those that are connected, last those that only metadata told of.
    ///
    /// # Errors
    /// [`WireError`]: that of the last one, if none answers.
    pub async fn call_any<R: WireRequest>(
        &mut self,
        known: RangeInclusive<i16>,
        request: &R,
    ) -> Result<R::Response, WireError> {
        let mut addresses: Vec<String> = self.bootstrap.iter().chain(&self.told).cloned().collect();
        addresses.sort_by_key(|address| !self.connections.contains_key(address));
        let (last, none) = (io::ErrorKind::AddrNotAvailable, "no address is given");
        let mut failed = WireError::NoAnswer {
            request: R::NAME,
            address: "(none)".to_owned(),
            source: io::Error::new(last, none),
        };
        for address in addresses {
            match self.call(&address, known.clone(), request).await {
                Err(error @ WireError::NoAnswer { .. }) => failed = error,
                answered => return answered,
            }
        }
        Err(failed)
    }

    /// What the broker at `address` offers.
    ///
    /// # Errors
    /// [`WireError::NoAnswer`].
    pub async fn offered(&mut self, address: &str) -> Result<OfferedVersions, WireError> {
        if let Some(connection) = self.connections.get(address) {
            return Ok(connection.offered.clone());
        }
        let connection =
            self.limited("connecting", address, CONNECT_LIMIT, Connection::open(address)).await?;
        let offered = connection.offered.clone();
        self.connections.insert(address.to_owned(), connection);
        Ok(offered)
    }

    /// Where a coordinator is: as it was found before, if nothing spoke against it since.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn coordinator(&mut self, kind: CoordinatorKind, key: &str) -> Result<String, WireError> {
        if let Some(address) = self.coordinators.get(&(kind, key.to_owned())) {
            return Ok(address.clone());
        }
        let mut request = FindCoordinatorRequest::default();
        request.key = StrBytes::from_string(key.to_owned());
        request.key_type = kind.key_type();
        // From version 4 on a request asks for several at once.
        let found = self.call_any(1..=3, &request).await?;
        if found.error_code != 0 {
            let (request, address) = ("FindCoordinator", self.bootstrap.join(","));
            return Err(WireError::Refused { request, address, code: BrokerCode(found.error_code) });
        }
        let address = format!("{}:{}", found.host, found.port);
        // As many as there are ids in use; one that is not used again is forgotten with the client.
        self.coordinators.insert((kind, key.to_owned()), address.clone());
        Ok(address)
    }

    /// Asks a coordinator. `code` finds the error code in its answer; whatever speaks against the coordinator makes it be looked for
    /// again at the next request.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn call_coordinator<R: WireRequest>(
        &mut self,
        kind: CoordinatorKind,
        key: &str,
        known: RangeInclusive<i16>,
        request: &R,
        code: impl FnOnce(&R::Response) -> i16,
    ) -> Result<R::Response, WireError> {
        let address = self.coordinator(kind, key).await?;
        let answered = self.call(&address, known, request).await.and_then(|answer| {
            let code = BrokerCode(code(&answer));
            if code == BrokerCode::NONE {
                return Ok(answer);
            }
            Err(WireError::Refused { request: R::NAME, address: address.clone(), code })
        });
        if answered.as_ref().is_err_and(WireError::is_transient) {
            self.coordinators.remove(&(kind, key.to_owned()));
        }
        answered
    }

    async fn limited<T>(
        &self,
        request: &'static str,
        address: &str,
        limit: Duration,
        work: impl Future<Output = Result<T, WireError>>,
    ) -> Result<T, WireError> {
        let late = Arc::clone(&self.io).sleep(limit);
        match select(std::pin::pin!(work), late).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => {
                let reason = format!("no answer within {} ms", limit.as_millis());
                let source = io::Error::new(io::ErrorKind::TimedOut, reason);
                Err(WireError::NoAnswer { request, address: address.to_owned(), source })
            }
        }
    }
}

impl std::fmt::Debug for WireClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireClient").field("bootstrap", &self.bootstrap).finish_non_exhaustive()
    }
}
