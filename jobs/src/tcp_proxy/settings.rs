//! What a proxy's owner has ordered, and what happened.
//!
//! Owns: settings, armed cuts, counters, the way of an order to the connections. Does not own: bytes.
//! Runs on: shared by the owner's threads and the proxy's.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc as sync_mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::armed_cut::{ArmedCut, CutMoment};

/// Orders to the listener that are not yet carried out.
const ORDERS_MAX: usize = 16;
/// How long the listener may take to open or close its port.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer = 0,
    /// From the server to the client.
    ToClient = 1,
}

/// What a proxy has done since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Connections of clients that were taken.
    pub connections: u64,
    /// Those of them that could not be forwarded, since the server refused.
    pub unreachable: u64,
    /// Those that are open now.
    pub open: u64,
    /// Connections cut, by [`super::TcpProxy::cut_all`] or by a pattern.
    pub cut: u64,
    /// Those of them cut by a pattern.
    pub cut_by_pattern: u64,
    /// Bytes forwarded to the server.
    pub to_server_bytes: u64,
    /// Bytes forwarded to clients.
    pub to_client_bytes: u64,
}

/// What holds for every connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    /// By [`Direction`].
    pub(super) delay: [Duration; 2],
    /// By [`Direction`].
    pub(super) held: [bool; 2],
    /// Connections of an older generation are cut.
    pub(super) generation: u64,
}

/// An order to the listener, and where it answers.
pub(super) struct ListenOrder {
    pub(super) open: bool,
    pub(super) done: sync_mpsc::SyncSender<io::Result<()>>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) settings: watch::Sender<Settings>,
    /// Asked for each chunk and changed by the owner; held for a search only.
    armed: Mutex<Vec<ArmedCut>>,
    orders: mpsc::Sender<ListenOrder>,
    /// The receiver, until the listener takes it.
    orders_rx: Mutex<Option<mpsc::Receiver<ListenOrder>>>,
    pub(super) counters: Counters,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) cut: AtomicU64,
    pub(super) cut_by_pattern: AtomicU64,
    /// By [`Direction`].
    pub(super) bytes: [AtomicU64; 2],
}

impl Shared {
    pub(super) fn new(address: SocketAddr, server: SocketAddr) -> Self {
        let (orders, orders_rx) = mpsc::channel(ORDERS_MAX);
        Self {
            address,
            server,
            settings: watch::Sender::new(Settings::default()),
            armed: Mutex::default(),
            orders,
            orders_rx: Mutex::new(Some(orders_rx)),
            counters: Counters::default(),
        }
    }

    pub(super) fn take_orders(&self) -> Option<mpsc::Receiver<ListenOrder>> {
        self.orders_rx.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.settings.send_modify(change);
    }

    pub(super) fn arm(&self, pattern: &[u8], moment: CutMoment, times: u32) {
        let cut = ArmedCut::new(pattern, moment, times);
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).push(cut);
    }

    pub(super) fn disarm(&self) {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Uses up the first armed cut whose pattern stands in `bytes` and reaches beyond the first `seen` of them.
    pub(super) fn cut_for(&self, bytes: &[u8], seen: usize) -> Option<CutMoment> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let moment = armed.iter_mut().find_map(|cut| cut.take_if_in(bytes, seen));
        armed.retain(|cut| cut.times > 0);
        moment
    }

    pub(super) fn listen(&self, open: bool) -> io::Result<()> {
        let (done, answer) = sync_mpsc::sync_channel(1);
        let gone = || io::Error::other("the proxy's thread does not answer");
        self.orders.try_send(ListenOrder { open, done }).map_err(|_| gone())?;
        answer.recv_timeout(LISTEN_TIMEOUT).map_err(|_| gone())?
    }

    pub(super) fn counts(&self) -> ProxyCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        let counters = &self.counters;
        ProxyCounts {
            connections: read(&counters.connections),
            unreachable: read(&counters.unreachable),
            open: read(&counters.open),
            cut: read(&counters.cut),
            cut_by_pattern: read(&counters.cut_by_pattern),
            to_server_bytes: read(&counters.bytes[Direction::ToServer as usize]),
            to_client_bytes: read(&counters.bytes[Direction::ToClient as usize]),
        }
    }
}
