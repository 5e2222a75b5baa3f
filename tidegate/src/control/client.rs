//! Asks a job, and reads its answer.
//!
//! Owns: how long is waited, and the words when nobody answers. Does not own: whom to ask. Runs on: the command line's thread.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use super::ControlAddress;
use super::process::Asked;
use super::protocol::{Answer, Ask, Sealed, write_question};
use super::registry;
use super::stream::Stream;

/// Who does not answer a quick question within this is stuck, or no job.
const PATIENCE: Duration = Duration::from_secs(15);
/// Whoever waits for the end of something asks so often whether the job is still there.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Longer answers are cut off, and then not understood.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// No answer came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ClientError {
    /// Nobody is there.
    #[error(
        "no job answers at {address}\n  help: `tidegate list` shows the jobs that run on this machine; `tidegate checkpoint list URL` looks into a checkpoint folder without a job"
    )]
    Nobody {
        /// Where.
        address: ControlAddress,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It hung up, or said nothing.
    #[error(
        "{} gave no answer: it ended, or is stuck\n  \
         help: if it is still there, end it with kill -9; the next start goes on from its newest checkpoint",
        pid.map_or_else(|| format!("the process at {address}"), |pid| format!("process {pid} at {address}"))
    )]
    NoAnswer {
        /// Where.
        address: ControlAddress,
        /// Who, if it is in the list of jobs.
        pid: Option<u32>,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It is there, and cannot answer.
    #[error(
        "process {pid} at {address} is stopped by a signal, and answers nobody\n  \
         help: let it go on (kill -CONT {pid}), or end it (kill -9 {pid}); the next start goes on from its newest checkpoint"
    )]
    Stopped {
        /// Where.
        address: ControlAddress,
        /// Who.
        pid: u32,
    },
    /// It answered something else.
    #[error("what answers at {address} does not speak this version of the control protocol")]
    Gibberish {
        /// Where.
        address: ControlAddress,
        /// What is wrong with the answer.
        #[source]
        source: serde_json::Error,
    },
}

/// Asks, and waits: for as long as the job lives and answers where the answer is the end of something.
pub(crate) fn ask(address: &ControlAddress, ask: Ask) -> Result<Answer, ClientError> {
    match ask {
        Ask::Status | Ask::Checkpoints => ask_within(address, ask, PATIENCE),
        Ask::TriggerCheckpoint | Ask::Cancel => ask_while_alive(address, ask, LOOK_EVERY, PATIENCE),
    }
}

/// Asks, and waits so long.
pub(crate) fn ask_within(
    address: &ControlAddress,
    ask: Ask,
    patience: Duration,
) -> Result<Answer, ClientError> {
    converse(address, ask, patience, Err)
}

/// Asks, and waits for as long as the job says within `patience` how it stands whenever `every` has passed without an answer.
fn ask_while_alive(
    address: &ControlAddress,
    ask: Ask,
    every: Duration,
    patience: Duration,
) -> Result<Answer, ClientError> {
    converse(address, ask, every, |_| ask_within(address, Ask::Status, patience).map(drop))
}

/// `silent` is called whenever nothing has come for so long, and says whether it is waited on.
fn converse(
    address: &ControlAddress,
    ask: Ask,
    patience: Duration,
    mut silent: impl FnMut(ClientError) -> Result<(), ClientError>,
) -> Result<Answer, ClientError> {
    refuse_if_stopped(address)?;
    let connected = Stream::connect(address, PATIENCE);
    let stream = connected.map_err(|source| ClientError::Nobody { address: address.clone(), source })?;
    let pid = registry::processes_at(address).last().copied();
    let no_answer = |source| ClientError::NoAnswer { address: address.clone(), pid, source };
    let sent = stream.set_read_timeout(Some(patience)).and_then(|()| {
        stream.set_write_timeout(Some(PATIENCE))?;
        { &stream }.write_all(&write_question(ask))
    });
    sent.map_err(no_answer)?;
    let (mut line, mut reader) = (Vec::new(), BufReader::new((&stream).take(ANSWER_BYTES_MAX)));
    loop {
        match reader.read_until(b'\n', &mut line) {
            Ok(_) if line.is_empty() => return Err(no_answer(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => break,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                refuse_if_stopped(address)?;
                silent(no_answer(error))?;
            }
            Err(error) => return Err(no_answer(error)),
        }
    }
    let sealed: Sealed = serde_json::from_slice(&line)
        .map_err(|source| ClientError::Gibberish { address: address.clone(), source })?;
    Ok(sealed.answer)
}

/// A stopped process takes up the connection, as the system does it in its place, and never answers.
fn refuse_if_stopped(address: &ControlAddress) -> Result<(), ClientError> {
    let there: Vec<Asked> = registry::processes_at(address).into_iter().map(Asked::of).collect();
    match there.last() {
        Some(last) if there.iter().all(|asked| asked.stopped) => {
            Err(ClientError::Stopped { address: address.clone(), pid: last.pid })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn every_question_is_given_up_when_nobody_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _silent = UnixListener::bind(&path).unwrap();
        let address = ControlAddress::Unix(path);
        for ask in [Ask::Cancel, Ask::TriggerCheckpoint, Ask::Status, Ask::Checkpoints] {
            let (every, patience) = (Duration::from_millis(5), Duration::from_millis(20));
            let error = ask_while_alive(&address, ask, every, patience).unwrap_err();
            assert!(matches!(error, ClientError::NoAnswer { .. }), "{ask:?}: {error}");
        }
    }
}
