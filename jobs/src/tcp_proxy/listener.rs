//! The proxy's door: takes connections while it is open.
//!
//! Owns: the listening socket. Does not own: a connection once it is taken (see [`super::connection`]). Runs on: the proxy's thread.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::net::{TcpListener, TcpStream};

use super::connection;
use super::settings::Shared;

/// A socket that listens on `address`.
pub(super) fn bound(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    // std sets SO_REUSEADDR on Unix: a port whose last connections still linger can be had again.
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Takes connections and orders until the runtime ends.
pub(super) async fn run(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let (Ok(listener), Some(mut orders)) = (TcpListener::from_std(listener), shared.take_orders()) else {
        return;
    };
    let mut listener = Some(listener);
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(order) = order else { return };
                let opened = match (order.open, &listener) {
                    (true, None) => bound(shared.address).and_then(TcpListener::from_std).map(Some),
                    (true, Some(_)) => { let _ = order.done.send(Ok(())); continue }
                    (false, _) => Ok(None),
                };
                let answer = opened.map(|opened| listener = opened);
                let _ = order.done.send(answer);
            }
            client = accept(listener.as_ref()) => {
                if let Ok(client) = client {
                    shared.counters.connections.fetch_add(1, Ordering::SeqCst);
                    let generation = shared.settings.borrow().generation;
                    tokio::spawn(connection::run(client, generation, Arc::clone(&shared)));
                }
            }
        }
    }
}

/// The next connection; none comes through a closed door.
async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}
