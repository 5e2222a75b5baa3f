//! Answers questions on one or more sockets for as long as it lives.
//!
//! Owns: the doors, a thread for each of them and for each connection, and that an answer under way goes out before the process ends.
//! Does not own: the answers ([`Host`]). Runs on: threads of its own.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::ControlAddress;
use super::protocol::{Answer, Ask, read_question, write_answer};
use super::stream::{Listener, Stream};

/// Who says nothing for so long, or takes up no answer, is hung up on.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer questions are cut off, and then refused.
const QUESTION_BYTES_MAX: u64 = 4_096;
/// More connections than these are hung up on at once.
const CONNECTIONS_MAX: usize = 32;
/// How long the end of the process is held up for answers under way.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// After a connection that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// Whoever has the answers. A call may block until something has happened.
pub(crate) trait Host: Send + Sync + 'static {
    /// Answers a question; `control` is where this process answers.
    fn answer(&self, ask: Ask, control: &[String]) -> Answer;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ControlServer {
    doors: Vec<Door>,
    at: Vec<ControlAddress>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Door {
    address: ControlAddress,
    /// Of a unix socket: which file it is. A socket of the same name made later is another one.
    file: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    /// Connections, and how many of them an answer is owed to. A mutex and no message: counted by threads that block on sockets, and
    /// waited on by the one that ends.
    count: Mutex<Count>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    connections: usize,
    owed: usize,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Count)) {
        change(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner));
        self.answered.notify_all();
    }
}

impl ControlServer {
    /// Opens the doors. A socket that stands there already is replaced: whoever asked before calling this knows that nobody answers, or
    /// takes over.
    ///
    /// # Errors
    /// The address that cannot be opened, and why.
    pub(crate) fn open(
        wanted: &[ControlAddress],
        host: impl Host,
    ) -> Result<Self, (ControlAddress, io::Error)> {
        let shared = Arc::new(Shared::default());
        let mut opened = Vec::new();
        let mut server = Self { doors: Vec::new(), at: Vec::new(), shared };
        for address in wanted {
            let (listener, at, file) = bind(address).map_err(|error| (address.clone(), error))?;
            server.doors.push(Door { address: at.clone(), file });
            server.at.push(at);
            opened.push(listener);
        }
        let at: Arc<Vec<String>> = Arc::new(server.at.iter().map(ToString::to_string).collect());
        let host = Arc::new(host);
        for (listener, address) in opened.into_iter().zip(wanted) {
            let (shared, host, at) = (Arc::clone(&server.shared), Arc::clone(&host), Arc::clone(&at));
            let thread = std::thread::Builder::new().name("tidegate-control".to_owned());
            let spawned = thread.spawn(move || serve(&listener, &shared, &host, &at));
            spawned.map_err(|error| (address.clone(), error))?;
        }
        Ok(server)
    }

    /// Where it answers.
    pub(crate) fn addresses(&self) -> &[ControlAddress] {
        &self.at
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        let owed = shared.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(shared.answered.wait_timeout_while(owed, LAST_WORDS, |count| count.owed > 0));
        shared.over.store(true, Ordering::Release);
        for Door { address, file } in &self.doors {
            match (address, file) {
                // Whoever has taken over has a socket of its own under this name: it is left alone.
                (ControlAddress::Unix(path), Some(file)) => {
                    if identity(path).is_ok_and(|now| now == *file) {
                        let _ = Stream::connect(address, PATIENCE);
                        let _ = fs::remove_file(path);
                    }
                }
                _ => drop(Stream::connect(address, PATIENCE)),
            }
        }
    }
}

type Bound = (Listener, ControlAddress, Option<(u64, u64)>);

fn bind(address: &ControlAddress) -> io::Result<Bound> {
    if let ControlAddress::Unix(path) = address {
        refuse_other_files(path)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let (listener, at) = Listener::bind(address)?;
    let file = match &at {
        ControlAddress::Unix(path) => Some(identity(path)?),
        ControlAddress::Tcp(_) => None,
    };
    Ok((listener, at, file))
}

/// What is no socket was not made by us.
fn refuse_other_files(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket has this name"))
        }
        _ => Ok(()),
    }
}

/// Device and number of a file.
fn identity(path: &PathBuf) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn serve<H: Host>(listener: &Listener, shared: &Arc<Shared>, host: &Arc<H>, at: &Arc<Vec<String>>) {
    loop {
        let accepted = listener.accept();
        if shared.over.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = accepted else {
            // One that hangs up while it comes in does not concern the others; a process without free files has to wait.
            std::thread::park_timeout(ACCEPT_AGAIN);
            continue;
        };
        let mut admitted = false;
        shared.change(|count| {
            admitted = count.connections < CONNECTIONS_MAX;
            count.connections += usize::from(admitted);
        });
        if !admitted {
            continue;
        }
        let (for_thread, host, at) = (Arc::clone(shared), Arc::clone(host), Arc::clone(at));
        let spawned = std::thread::Builder::new().name("tidegate-control".to_owned()).spawn(move || {
            let _ = converse(&stream, &for_thread, &*host, &at);
            stream.close();
            for_thread.change(|count| count.connections -= 1);
        });
        if spawned.is_err() {
            shared.change(|count| count.connections -= 1);
        }
    }
}

/// Questions and answers, until the other side hangs up.
fn converse(stream: &Stream, shared: &Shared, host: &dyn Host, at: &[String]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(QUESTION_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        // Whoever goes on after so long a line cannot be answered line by line.
        let whole = line.len() < QUESTION_BYTES_MAX as usize || line.ends_with(b"\n");
        shared.change(|count| count.owed += 1);
        let answer = match read_question(String::from_utf8_lossy(&line).trim_end()) {
            _ if !whole => Answer::Refused {
                reason: format!("a question is one line of at most {QUESTION_BYTES_MAX} bytes"),
            },
            Ok(ask) => host.answer(ask, at),
            Err(reason) => Answer::Refused { reason },
        };
        let written = { stream }.write_all(&write_answer(answer));
        shared.change(|count| count.owed -= 1);
        written?;
        if !whole {
            return Ok(());
        }
    }
}
