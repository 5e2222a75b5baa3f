//! Asks a job, and reads its answer.
//!
//! Owns: how long is waited, and the words when nobody answers. Does not own: whom to ask. Runs on: the command line's thread.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use super::ControlAddress;
use super::protocol::{Answer, Ask, Sealed, write_question};
use super::stream::Stream;

/// Who does not answer a quick question within this is stuck, or no job.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longer answers are cut off, and then not understood.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// No answer came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ClientError {
    /// Nobody is there.
    #[error("no job answers at {address}\n  help: `tidegate list` shows the jobs that run on this machine")]
    Nobody {
        /// Where.
        address: ControlAddress,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It hung up, or said nothing.
    #[error("the process at {address} gave no answer: it ended, or is stuck")]
    NoAnswer {
        /// Where.
        address: ControlAddress,
        /// What the system says.
        #[source]
        source: io::Error,
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

/// Asks, and waits: for as long as it takes where the answer is the end of something.
pub(crate) fn ask(address: &ControlAddress, ask: Ask) -> Result<Answer, ClientError> {
    let patience = match ask {
        Ask::Status | Ask::Checkpoints => Some(PATIENCE),
        Ask::TriggerCheckpoint | Ask::Cancel => None,
    };
    ask_within(address, ask, patience)
}

/// Asks, and waits so long.
pub(crate) fn ask_within(
    address: &ControlAddress,
    ask: Ask,
    patience: Option<Duration>,
) -> Result<Answer, ClientError> {
    let connected = Stream::connect(address, patience.unwrap_or(PATIENCE));
    let stream = connected.map_err(|source| ClientError::Nobody { address: address.clone(), source })?;
    let no_answer = |source| ClientError::NoAnswer { address: address.clone(), source };
    let line = exchange(&stream, ask, patience).map_err(no_answer)?;
    if line.is_empty() {
        return Err(no_answer(io::ErrorKind::UnexpectedEof.into()));
    }
    let sealed: Sealed = serde_json::from_slice(&line)
        .map_err(|source| ClientError::Gibberish { address: address.clone(), source })?;
    Ok(sealed.answer)
}

fn exchange(stream: &Stream, ask: Ask, patience: Option<Duration>) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    { stream }.write_all(&write_question(ask))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut line)?;
    Ok(line)
}
