//! The control socket of a checkpoint folder: who runs a job there answers on it.
//!
//! A start that gets an answer is refused unless it takes over. This spares people a mistake; it is not what keeps two
//! processes apart: that is the commit log, which fences the older one at its next put.
//!
//! Owns: `control.sock` in the folder, or, where its path is too long for a socket, one under the temporary folder named by the
//! hash of the path.
//! Does not own: the folder.
//! Runs on: a thread of its own that answers, for as long as the [`ControlSocket`] lives.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Name of the socket in the folder.
const NAME: &str = "control.sock";
/// Longer paths do not fit into a socket's address (108 bytes with its end on Linux, 104 elsewhere).
const PATH_BYTES_MAX: usize = 100;
/// Who does not answer within this is taken to be alive and not talkative.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longer questions and answers are cut off.
const LINE_BYTES_MAX: u64 = 512;

/// Another process runs a job on the folder.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// It has answered.
    #[error(
        "{who} is running on the checkpoint folder {}\n  help: stop it first; or start with --take-over, and it ends at \
         its next checkpoint without publishing anything more",
        folder.display()
    )]
    Alive {
        /// The folder.
        folder: PathBuf,
        /// Job and process.
        who: String,
    },
}

/// Answers for this process until it is dropped.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    served: Option<Served>,
}

#[derive(Debug)]
struct Served {
    path: PathBuf,
    file: (u64, u64),
    over: Arc<AtomicBool>,
}

impl ControlSocket {
    /// Takes the folder for `job`.
    ///
    /// # Errors
    /// [`ControlError::Alive`] when somebody answers and `take_over` is not set.
    pub(crate) fn take(folder: &Path, job: &str, take_over: bool) -> Result<Self, ControlError> {
        let path = socket_path(folder);
        if let Some(who) = ask(&path)
            && !take_over
        {
            return Err(ControlError::Alive { folder: folder.to_owned(), who });
        }
        // A folder in which no socket can be made is no reason to refuse: the log is what fences.
        let served = serve(path, format!("job \"{job}\", process {}", std::process::id()));
        let served = served.inspect_err(|error| {
            tracing::warn!(%error, folder = %folder.display(), "no control socket: a second start will not be noticed early");
        });
        Ok(Self { served: served.ok() })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let Some(Served { path, file, over }) = self.served.take() else { return };
        over.store(true, Ordering::Release);
        // Whoever has taken over has a socket of its own under this name: it is left alone.
        if identity(&path).is_ok_and(|now| now == file) {
            let _ = UnixStream::connect(&path);
            let _ = fs::remove_file(&path);
        }
    }
}

fn socket_path(folder: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let path = folder.join(NAME);
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return path;
    }
    let hash = xxhash_rust::xxh3::xxh3_64(folder.as_os_str().as_bytes());
    std::env::temp_dir().join(format!("tidegate-{hash:016x}.sock"))
}

/// Who answers on the socket, if anybody does.
fn ask(path: &Path) -> Option<String> {
    let stream = UnixStream::connect(path).ok()?;
    let answer = || -> io::Result<String> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        (&stream).write_all(b"ping\n")?;
        let mut line = String::new();
        BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    match answer() {
        // The socket was closed between the two: nobody is there any more.
        Ok(line) if line.is_empty() => None,
        Ok(line) => Some(line),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Some("a process that does not say its name".to_owned())
        }
        Err(_) => None,
    }
}

fn serve(path: PathBuf, answer: String) -> io::Result<Served> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    let file = identity(&path)?;
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let thread = std::thread::Builder::new().name("tidegate-control".to_owned());
    thread.spawn(move || {
        for stream in listener.incoming() {
            if stop.load(Ordering::Acquire) {
                return;
            }
            // One that asks badly or hangs up does not concern the others.
            let _ = stream.and_then(|stream| reply(stream, &answer));
        }
    })?;
    Ok(Served { path, file, over })
}

fn reply(stream: UnixStream, answer: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = String::new();
    BufReader::new((&stream).take(LINE_BYTES_MAX)).read_line(&mut question)?;
    match question.trim_end() {
        "ping" => writeln!(&stream, "{answer}"),
        _ => writeln!(&stream, "unknown question"),
    }
}

/// Device and number of a file: a socket of the same name made later is another one.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_start_is_refused_until_the_first_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = ControlSocket::take(folder.path(), "orders", false).unwrap();
        let refused = ControlSocket::take(folder.path(), "orders", false).unwrap_err().to_string();
        assert!(refused.contains("job \"orders\", process ") && refused.contains("--take-over"), "{refused}");
        drop(first);
        assert!(!folder.path().join(NAME).exists());
        ControlSocket::take(folder.path(), "orders", false).unwrap();
    }

    #[test]
    fn who_takes_over_keeps_the_socket_when_the_other_goes() {
        let folder = tempfile::tempdir().unwrap();
        let first = ControlSocket::take(folder.path(), "orders", false).unwrap();
        let _second = ControlSocket::take(folder.path(), "orders", true).unwrap();
        drop(first);
        assert!(ControlSocket::take(folder.path(), "orders", false).is_err());
    }

    #[test]
    fn what_a_killed_process_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        drop(UnixListener::bind(folder.path().join(NAME)).unwrap());
        assert!(folder.path().join(NAME).exists());
        let socket = ControlSocket::take(folder.path(), "orders", false).unwrap();
        assert!(socket.served.is_some());
    }

    #[test]
    fn a_folder_with_a_long_path_has_its_socket_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120));
        fs::create_dir(&long).unwrap();
        let _first = ControlSocket::take(&long, "orders", false).unwrap();
        assert!(ControlSocket::take(&long, "orders", false).is_err());
    }
}
