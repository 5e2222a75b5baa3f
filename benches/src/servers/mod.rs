//! Benchmarks against real servers, each beside the loop that one would write by hand with the same client library.
//!
//! Owns: where the servers are, and their start where nobody said. Does not own: a benchmark. Runs on: the main thread.

#[cfg(all(feature = "mysql", feature = "rdkafka"))]
pub(crate) mod chain_latency;
#[cfg(feature = "rdkafka")]
pub(crate) mod kafka_sink;
#[cfg(feature = "rdkafka")]
pub(crate) mod kafka_source;
#[cfg(feature = "mysql")]
pub(crate) mod mysql_sink;
mod order;
#[cfg(feature = "mysql")]
mod tables;
#[cfg(feature = "rdkafka")]
mod topic;

use clap::Args;
use tidegate_jobs::services::{Service, ServiceKind};

use crate::error::BenchError;

pub(crate) use order::Order;

/// Where the servers are.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerOptions {
    /// A Kafka broker; without it one is started by scripts/services
    #[cfg(feature = "rdkafka")]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) kafka: Option<String>,
    /// A MariaDB or MySQL, with a database in which tables may be made and dropped; without it a MariaDB is started by
    /// scripts/services
    #[cfg(feature = "mysql")]
    #[arg(long, value_name = "mysql://USER:PASSWORD@HOST:PORT/DATABASE")]
    pub(crate) mysql: Option<String>,
}

/// An address, and the server that was started for it, which ends with this.
pub(crate) struct Server {
    /// `host:port`, or a URL.
    pub(crate) address: String,
    _started: Option<Service>,
}

impl Server {
    /// The broker that was named, or one that is started.
    ///
    /// # Errors
    /// One that cannot be started.
    #[cfg(feature = "rdkafka")]
    pub(crate) fn kafka(options: &ServerOptions) -> Result<Self, BenchError> {
        Self::given_or(options.kafka.as_ref(), ServiceKind::Kafka, |service| {
            service.bootstrap().map(str::to_owned)
        })
    }

    /// The database that was named, or one that is started.
    ///
    /// # Errors
    /// One that cannot be started.
    #[cfg(feature = "mysql")]
    pub(crate) fn mysql(options: &ServerOptions) -> Result<Self, BenchError> {
        Self::given_or(options.mysql.as_ref(), ServiceKind::MariaDb, |service| {
            service.mysql_url().map(str::to_owned)
        })
    }

    fn given_or(
        given: Option<&String>,
        kind: ServiceKind,
        address: impl Fn(&Service) -> Result<String, tidegate_jobs::services::ServiceError>,
    ) -> Result<Self, BenchError> {
        if let Some(given) = given {
            return Ok(Self { address: given.clone(), _started: None });
        }
        eprintln!("starting a server by scripts/services");
        let failed = |source| BenchError::Service { source };
        let service = Service::own(kind, "benches", &[]).map_err(failed)?;
        Ok(Self { address: address(&service).map_err(failed)?, _started: Some(service) })
    }
}

/// For futures of client libraries, on the calling thread.
#[cfg(feature = "mysql")]
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| BenchError::Folder { source })?;
    Ok(runtime.block_on(future))
}
