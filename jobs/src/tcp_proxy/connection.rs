//! One connection through a proxy: two sockets, and a pump for each direction.
//!
//! Owns: the sockets, what is on its way, the end of both. Does not own: what was ordered (see [`super::settings`]).
//! Runs on: the proxy's thread.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::armed_cut::{CutMoment, PATTERN_BYTES_MAX};
use super::settings::{Direction, Settings, Shared};

/// Largest piece read at once.
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces of one direction that are on their way; more wait in the sender's socket.
const PIECES_MAX: usize = 256;

/// Why a connection ends.
enum End {
    /// One of the two sides went away.
    Closed,
    /// An armed cut.
    Pattern,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

/// Bytes and when they are due. (Delays are real ones: a proxy belongs to the world outside, not to a simulation.)
struct Piece {
    bytes: Vec<u8>,
    due: Instant,
}

/// Forwards until either side closes or a cut comes; then both sides are closed.
pub(super) async fn run(client: TcpStream, generation: u64, shared: Arc<Shared>) {
    let Ok(server) = TcpStream::connect(shared.server).await else {
        shared.counters.unreachable.fetch_add(1, Ordering::SeqCst);
        return;
    };
    shared.counters.open.fetch_add(1, Ordering::SeqCst);
    let mut settings = shared.settings.subscribe();
    let cut = settings.wait_for(|settings| settings.generation != generation);
    let end = tokio::select! {
        // A cut that was ordered goes before bytes that are ready.
        biased;
        _ = cut => Some(None),
        end = forward(client, server, &shared) => end.err().map(Some),
    };
    if let Some(None | Some(End::Pattern)) = end {
        shared.counters.cut.fetch_add(1, Ordering::SeqCst);
    }
    if let Some(Some(End::Pattern)) = end {
        shared.counters.cut_by_pattern.fetch_add(1, Ordering::SeqCst);
    }
    shared.counters.open.fetch_sub(1, Ordering::SeqCst);
}

async fn forward(client: TcpStream, server: TcpStream, shared: &Shared) -> Result<(), End> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_rx, client_tx) = client.into_split();
    let (server_rx, server_tx) = server.into_split();
    let answer_is_cut = AtomicBool::new(false);
    let to_server = Pump { direction: Direction::ToServer, shared, answer_is_cut: &answer_is_cut };
    let to_client = Pump { direction: Direction::ToClient, shared, answer_is_cut: &answer_is_cut };
    tokio::try_join!(to_server.run(client_rx, server_tx), to_client.run(server_rx, client_tx))?;
    Ok(())
}

/// Moves the bytes of one direction.
struct Pump<'a> {
    direction: Direction,
    shared: &'a Shared,
    /// The next bytes of the server are not passed on: they cut the connection.
    answer_is_cut: &'a AtomicBool,
}

impl Pump<'_> {
    async fn run(&self, from: OwnedReadHalf, to: OwnedWriteHalf) -> Result<(), End> {
        let (tx, rx) = mpsc::channel(PIECES_MAX);
        tokio::try_join!(self.read(from, tx), self.write(to, rx))?;
        Ok(())
    }

    async fn read(&self, mut from: OwnedReadHalf, pieces: mpsc::Sender<Piece>) -> Result<(), End> {
        loop {
            let mut bytes = vec![0; PIECE_BYTES];
            let count = from.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            bytes.truncate(count);
            let delay = self.shared.settings.borrow().delay[self.direction as usize];
            let piece = Piece { bytes, due: Instant::now() + delay };
            pieces.send(piece).await.map_err(|_| End::Closed)?;
        }
    }

    async fn write(&self, mut to: OwnedWriteHalf, mut pieces: mpsc::Receiver<Piece>) -> Result<(), End> {
        let mut settings = self.shared.settings.subscribe();
        let mut past = VecDeque::with_capacity(PATTERN_BYTES_MAX);
        while let Some(piece) = pieces.recv().await {
            tokio::time::sleep_until(piece.due).await;
            self.until_released(&mut settings).await?;
            let cut = self.cut_for(&mut past, &piece.bytes);
            match cut {
                Some(CutMoment::BeforeForwarding) => return Err(End::Pattern),
                Some(CutMoment::AfterAnswer) => self.answer_is_cut.store(true, Ordering::SeqCst),
                Some(CutMoment::AfterForwarding) | None => {}
            }
            to.write_all(&piece.bytes).await?;
            let count = piece.bytes.len() as u64;
            self.shared.counters.bytes[self.direction as usize].fetch_add(count, Ordering::SeqCst);
            if cut == Some(CutMoment::AfterForwarding) {
                return Err(End::Pattern);
            }
        }
        // One side has nothing more to say; the other may.
        to.shutdown().await?;
        Ok(())
    }

    async fn until_released(&self, settings: &mut watch::Receiver<Settings>) -> Result<(), End> {
        let free = settings.wait_for(|settings| !settings.held[self.direction as usize]).await;
        free.map(|_| ()).map_err(|_| End::Closed)
    }

    /// Whether these bytes, with what came right before them, cut the connection.
    fn cut_for(&self, past: &mut VecDeque<u8>, bytes: &[u8]) -> Option<CutMoment> {
        if self.direction == Direction::ToClient {
            let is_cut = self.answer_is_cut.load(Ordering::SeqCst);
            return is_cut.then_some(CutMoment::BeforeForwarding);
        }
        let seen = past.len();
        past.extend(bytes);
        let moment = self.shared.cut_for(past.make_contiguous(), seen);
        past.drain(..past.len().saturating_sub(PATTERN_BYTES_MAX - 1));
        moment
    }
}
