//! A TCP proxy before the broker that loses one answer: the request is executed, the connection breaks.
//!
//! Owns: the connections that go through it. Does not own: which listener leads clients here (`scripts/services/kafka.sh`).
//! Runs on: threads that end with their connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// `InitProducerId`.
pub(crate) const INIT_PRODUCER_ID: i16 = 22;

/// Loses the answer to the first request with `key`, among those that come to `listen` for `target`. It listens until the test's
/// process ends.
pub(crate) fn lose_first_answer(listen: &str, target: &str, key: i16) -> Arc<AtomicBool> {
    let (listener, target) = (TcpListener::bind(listen).unwrap(), target.to_owned());
    let lost = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&lost);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            if let Ok(broker) = TcpStream::connect(&target) {
                carry(client, broker, key, &lost);
            }
        }
    });
    told
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
