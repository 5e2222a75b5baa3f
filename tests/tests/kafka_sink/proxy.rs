//! The place in front of the shared broker where proxies stand, and one that loses an answer: the request is executed, the connection
//! breaks.
//!
//! Owns: who stands there; the connections that go through it. Does not own: which listener leads clients here (`scripts/services/kafka.sh`).
//! Runs on: threads that end with their connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tidegate_jobs::services::{Service, ServiceKind};
use tokio::sync::{Mutex, MutexGuard};

/// `Produce`.
pub(crate) const PRODUCE: i16 = 0;
/// `InitProducerId`.
pub(crate) const INIT_PRODUCER_ID: i16 = 22;
/// `AddOffsetsToTxn`.
pub(crate) const ADD_OFFSETS_TO_TXN: i16 = 25;
/// `EndTxn`.
pub(crate) const END_TXN: i16 = 26;
/// `TxnOffsetCommit`.
pub(crate) const TXN_OFFSET_COMMIT: i16 = 28;

/// The one place in front of the shared broker where a proxy can stand: one test has it at a time.
static PLACE: Mutex<()> = Mutex::const_new(());

/// A place in front of the shared broker.
pub(crate) struct Place {
    /// Where clients come to.
    pub(crate) listen: SocketAddr,
    /// What is behind it.
    pub(crate) target: SocketAddr,
    _taken: MutexGuard<'static, ()>,
}

impl Place {
    /// Waits until it is free.
    pub(crate) async fn take() -> Self {
        let taken = PLACE.lock().await;
        let broker = Service::shared(ServiceKind::Kafka).unwrap();
        let address = |name| broker.variable(name).unwrap().parse().unwrap();
        let (listen, target) = (address("KAFKA_PROXY_LISTEN"), address("KAFKA_PROXY_TARGET"));
        Self { listen, target, _taken: taken }
    }
}

/// A proxy that loses the answer to the first request of a kind. It ends when it is dropped.
pub(crate) struct LossyProxy {
    place: Place,
    lost: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl LossyProxy {
    /// Loses the answer to the first request with this key.
    pub(crate) fn at(place: Place, key: i16) -> Self {
        let (listener, target) = (TcpListener::bind(place.listen).unwrap(), place.target);
        let (lost, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (loses, ends) = (Arc::clone(&lost), Arc::clone(&ended));
        let listening = thread::spawn(move || {
            let clients = listener.incoming().map_while(Result::ok);
            for client in clients.take_while(|_| !ends.load(Ordering::SeqCst)) {
                if let Ok(broker) = TcpStream::connect(target) {
                    carry(client, broker, key, &loses);
                }
            }
        });
        Self { place, lost, ended, listening: Some(listening) }
    }

    /// Whether one was lost.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }
}

impl Drop for LossyProxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // It looks when somebody comes.
        drop(TcpStream::connect(self.place.listen));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn carry(client: TcpStream, broker: TcpStream, key: i16, lost: &Arc<AtomicBool>) {
    let (Ok(from_broker), Ok(to_client)) = (broker.try_clone(), client.try_clone()) else { return };
    let (lost, cut) = (Arc::clone(lost), Arc::new(AtomicBool::new(false)));
    let cut_here = Arc::clone(&cut);
    thread::spawn(move || {
        let end = frames(&client, &broker, |frame| {
            if frame[..2] == key.to_be_bytes() && !lost.swap(true, Ordering::SeqCst) {
                cut_here.store(true, Ordering::SeqCst);
            }
            true
        });
        drop(end);
        drop((broker.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both)));
    });
    thread::spawn(move || {
        drop(frames(&from_broker, &to_client, |_| !cut.load(Ordering::SeqCst)));
        drop((from_broker.shutdown(Shutdown::Both), to_client.shutdown(Shutdown::Both)));
    });
}

/// Carries messages as long as `goes_on` says so.
fn frames(
    mut from: &TcpStream,
    mut to: &TcpStream,
    mut goes_on: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap_or(0)];
        from.read_exact(&mut frame)?;
        if !goes_on(&frame) {
            return Ok(());
        }
        to.write_all(&length)?;
        to.write_all(&frame)?;
    }
}
