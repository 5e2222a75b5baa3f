//! A TCP proxy for tests: what a network can do to a client and its server, done on purpose.
//!
//! It stands between the two, and delays, holds, cuts or refuses their connections. Tests give the client [`TcpProxy::address`]
//! instead of the server's address.
//!
//! Owns: a listening socket, the connections through it, and a thread that moves their bytes. Does not own: the server (see
//! [`crate::services`]), nor any knowledge of a protocol: it looks for byte patterns.
//! Runs on: a thread of its own; the methods may be called from anywhere, and come back at once.

mod armed_cut;
mod connection;
mod listener;
mod settings;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

pub use armed_cut::{CutMoment, PATTERN_BYTES_MAX};
pub use settings::{Direction, ProxyCounts};

use settings::Shared;

/// A running proxy. It ends, with all its connections, when it is dropped.
///
/// ```no_run
/// use tidegate_jobs::tcp_proxy::{CutMoment, Direction, TcpProxy};
///
/// let proxy = TcpProxy::start("127.0.0.1:3306".parse()?)?;
/// let url = proxy.in_url("mysql://user:password@127.0.0.1:3306/shop"); // the same server, through the proxy
/// proxy.cut_on("XA COMMIT", CutMoment::AfterAnswer, 1);                // done by the server, and the client never learns
/// proxy.delay(Direction::ToClient, std::time::Duration::from_millis(1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Taken in `drop` only.
    runtime: Option<Runtime>,
}

impl TcpProxy {
    /// Listens on a free port of 127.0.0.1 and forwards to `server`.
    ///
    /// # Errors
    /// No free port, or no thread.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), server)
    }

    /// Listens on `address` and forwards to `server`: for servers that tell their clients an address of their own.
    ///
    /// # Errors
    /// The address is taken, or there is no thread.
    pub fn start_at(address: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tcp-proxy")
            .enable_all()
            .build()?;
        let listener = listener::bound(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(address, server));
        runtime.spawn(listener::run(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL with its `host:port` replaced by this proxy's address; user, password and path stay.
    pub fn in_url(&self, url: &str) -> String {
        let Some((scheme, rest)) = url.split_once("://") else { return self.address.to_string() };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let user = authority.rsplit_once('@').map_or(String::new(), |(user, _)| format!("{user}@"));
        format!("{scheme}://{user}{}{path}", self.address)
    }

    /// From now on everything in this direction arrives so much later, in order; 0: no delay. It is a latency: what follows closely
    /// is not held up twice.
    pub fn delay(&self, direction: Direction, by: Duration) {
        self.shared.change(|settings| settings.delay[direction as usize] = by);
    }

    /// From now on nothing arrives in this direction, while connections stay open: a silent network.
    pub fn hold(&self, direction: Direction) {
        self.shared.change(|settings| settings.held[direction as usize] = true);
    }

    /// What was held arrives, and what comes after it.
    pub fn release(&self, direction: Direction) {
        self.shared.change(|settings| settings.held[direction as usize] = false);
    }

    /// Closes all connections now, to both sides. New ones are welcome.
    pub fn cut_all(&self) {
        self.shared.change(|settings| settings.generation += 1);
    }

    /// Cuts the next `times` connections whose client sends these bytes, at this moment. Several may be armed; the first that fits
    /// is used.
    ///
    /// # Panics
    /// If the pattern is empty or longer than [`PATTERN_BYTES_MAX`].
    pub fn cut_on(&self, pattern: impl AsRef<[u8]>, moment: CutMoment, times: u32) {
        self.shared.arm(pattern.as_ref(), moment, times);
    }

    /// Forgets every armed cut.
    pub fn disarm(&self) {
        self.shared.disarm();
    }

    /// New connections are refused until [`accept`](Self::accept); those that are open stay. The port is closed when this comes
    /// back.
    ///
    /// # Errors
    /// The proxy's thread did not answer in time.
    pub fn refuse(&self) -> io::Result<()> {
        self.shared.listen(false)
    }

    /// New connections are welcome again. The port is open when this comes back.
    ///
    /// # Errors
    /// The port was taken by another program meanwhile, or the proxy's thread did not answer in time.
    pub fn accept(&self) -> io::Result<()> {
        self.shared.listen(true)
    }

    /// What happened so far.
    pub fn counts(&self) -> ProxyCounts {
        self.shared.counts()
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Not by its own drop: that would wait, which an async test may not.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
