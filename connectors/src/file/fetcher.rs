//! Reads one file from a position, on the I/O side, and sends chunks of records.
//!
//! Owns: blocks, lines, the proof at every read that the file still is the one it was, and parsing. Does not own: the position that
//! counts (the reader's, behind the last record handed out). Runs on: a future per split; each block in blocking work.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tidegate_engine::io::{SharedIo, Waker, blocking};
use tokio::sync::mpsc::Sender;

use super::chunk::{Chunk, Fetched, LineEnd};
use super::enumerator::FOLLOW_INTERVAL;
use super::source::{BrokenLine, FileSettings};
use super::split::{TAIL_BYTES, tail_hash};
use super::{FileError, FileSplit};

/// Bytes read at once.
const BLOCK_BYTES: usize = 256 * 1024;
/// A longer line is refused.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lines in a chunk, at most.
const CHUNK_LINES: usize = 1_024;

/// A file and how far it was read ahead.
pub(crate) struct Fetcher {
    settings: Arc<FileSettings>,
    file: PathBuf,
    position: FileSplit,
    block_bytes: usize,
}

/// What one read brought.
struct Step<T> {
    chunks: Vec<Chunk<T>>,
    then: Then,
}

enum Then {
    More,
    /// Nothing new now.
    CaughtUp,
    End,
    Failed(FileError),
}

/// Bytes of the file: `tail` before the position, then what is new.
struct Block {
    bytes: Vec<u8>,
    tail: usize,
    /// Nothing lies behind it (now, or within the bound).
    is_last: bool,
}

impl Fetcher {
    /// Goes on from `split`.
    pub(crate) fn new(settings: Arc<FileSettings>, split: &FileSplit) -> Self {
        let file = settings.folder.join(&split.path);
        let mut position = split.clone();
        if settings.follow {
            position.end = None;
        }
        Self { settings, file, position, block_bytes: BLOCK_BYTES }
    }

    /// Reads until the end, a failure, or until nobody listens any more.
    pub(crate) async fn run<T: DeserializeOwned + Send + 'static>(
        mut self,
        io: SharedIo,
        chunks: Sender<Fetched<T>>,
        waker: Waker,
    ) {
        loop {
            let file = self.file.clone();
            let read = blocking(&io, move || {
                let step = self.step::<T>();
                (self, step)
            });
            let step = match read.await {
                Ok((fetcher, step)) => {
                    self = fetcher;
                    step
                }
                Err(source) => {
                    let _ = chunks.send(Fetched::Failed(FileError::CutShort { file, source })).await;
                    waker.wake();
                    return;
                }
            };
            for chunk in step.chunks {
                if chunks.send(Fetched::Lines(chunk)).await.is_err() {
                    return;
                }
                waker.wake();
            }
            let last = match step.then {
                Then::More => continue,
                Then::CaughtUp => {
                    io.sleep(FOLLOW_INTERVAL).await;
                    if chunks.is_closed() {
                        return;
                    }
                    continue;
                }
                Then::End => Fetched::End,
                Then::Failed(error) => Fetched::Failed(error),
            };
            let _ = chunks.send(last).await;
            waker.wake();
            return;
        }
    }

    fn step<T: DeserializeOwned>(&mut self) -> Step<T> {
        let mut step = Step { chunks: Vec::new(), then: Then::More };
        match self.read_block() {
            Ok(block) => step.then = self.cut(&block, &mut step.chunks).unwrap_or_else(Then::Failed),
            Err(error) => step.then = Then::Failed(error),
        }
        step
    }

    /// Reads from a little before the position and checks that the file still is what it was.
    fn read_block(&mut self) -> Result<Block, FileError> {
        let failed = |doing| {
            let file = self.file.clone();
            move |source| FileError::Io { doing, file, source }
        };
        let mut file = File::open(&self.file).map_err(|source| self.open_failed(source))?;
        let length = file.metadata().map_err(failed("looking at the size"))?.len();
        let FileSplit { offset, line, .. } = self.position;
        // A bounded split without a noted end was followed before: it ends where the file ends now.
        if self.position.end.is_none() && !self.settings.follow {
            self.position.end = Some(length);
        }
        let expected = self.position.end.unwrap_or(0).max(offset);
        if length < expected {
            return Err(FileError::Truncated { file: self.file.clone(), length, expected });
        }
        let end = self.position.end.unwrap_or(length).max(offset);
        let tail = usize::try_from(offset).unwrap_or(usize::MAX).min(TAIL_BYTES);
        let new = usize::try_from(end - offset).unwrap_or(usize::MAX).min(self.block_bytes);
        file.seek(SeekFrom::Start(offset - tail as u64)).map_err(failed("reading"))?;
        let mut bytes = Vec::with_capacity(tail + new);
        file.take((tail + new) as u64).read_to_end(&mut bytes).map_err(failed("reading"))?;
        if bytes.len() < tail + new {
            // It shrank between the two looks.
            let length = offset - tail as u64 + bytes.len() as u64;
            return Err(FileError::Truncated { file: self.file.clone(), length, expected: end });
        }
        if tail_hash(&bytes[..tail]) != self.position.tail_hash {
            return Err(FileError::Replaced { file: self.file.clone(), line, offset, window: tail });
        }
        Ok(Block { bytes, tail, is_last: offset + new as u64 >= end })
    }

    fn open_failed(&self, source: io::Error) -> FileError {
        if source.kind() == io::ErrorKind::NotFound {
            let FileSplit { line, offset, .. } = self.position;
            return FileError::Vanished { file: self.file.clone(), line, offset };
        }
        let file = self.file.clone();
        match source.kind() {
            io::ErrorKind::PermissionDenied => FileError::NotReadable { path: file, source },
            _ => FileError::Io { doing: "opening", file, source },
        }
    }

    /// Cuts a block into chunks of parsed lines and moves the position behind its last whole line.
    fn cut<T: DeserializeOwned>(
        &mut self,
        block: &Block,
        chunks: &mut Vec<Chunk<T>>,
    ) -> Result<Then, FileError> {
        let new = &block.bytes[block.tail..];
        let whole = block.tail + new.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let progress = whole > block.tail;
        let mut cutter = Cutter { fetcher: self, block, at: block.tail, line: self.position.line };
        while cutter.at < whole {
            let (chunk, broken) = cutter.chunk(whole);
            chunks.push(chunk);
            if let Some(error) = broken {
                return Err(error);
            }
        }
        let line = cutter.line;
        if progress {
            self.position.line = line;
            self.position.offset += (whole - block.tail) as u64;
            self.position.tail_hash = tail_hash(&block.bytes[..whole]);
            self.block_bytes = BLOCK_BYTES;
        }
        self.after_block(block, block.bytes.len() - whole, progress)
    }

    fn after_block(&mut self, block: &Block, half: usize, progress: bool) -> Result<Then, FileError> {
        if !block.is_last {
            if !progress {
                if self.block_bytes >= LINE_BYTES_MAX {
                    return Err(FileError::LineTooLong {
                        file: self.file.clone(),
                        line: self.position.line + 1,
                        limit_bytes: LINE_BYTES_MAX,
                    });
                }
                self.block_bytes *= 2;
            }
            return Ok(Then::More);
        }
        if self.settings.follow {
            return Ok(Then::CaughtUp);
        }
        if half > 0 {
            self.settings.counters.count_half_line();
            tracing::warn!(
                file = %self.file.display(), line = self.position.line + 1, bytes = half,
                "the last line has no newline: it is not a record and is left out"
            );
        }
        Ok(Then::End)
    }
}

/// Walks through the lines of a block.
struct Cutter<'a> {
    fetcher: &'a Fetcher,
    block: &'a Block,
    /// Index into the block's bytes: behind the last line taken.
    at: usize,
    /// Lines of the file up to there.
    line: u64,
}

impl Cutter<'_> {
    /// The next lines below `whole`, and the broken line at which it stopped, if that is the policy.
    fn chunk<T: DeserializeOwned>(&mut self, whole: usize) -> (Chunk<T>, Option<FileError>) {
        let start = self.at.saturating_sub(TAIL_BYTES);
        let (mut records, mut record_ends) = (Vec::new(), Vec::new());
        let mut broken = None;
        for text in self.block.bytes[self.at..whole].split_inclusive(|byte| *byte == b'\n').take(CHUNK_LINES)
        {
            match serde_json::from_slice(text) {
                Ok(record) => {
                    self.pass(text);
                    records.push(record);
                    record_ends.push(LineEnd { at: self.at - start, line: self.line });
                }
                Err(problem) if self.fetcher.settings.broken_line == BrokenLine::Fail => {
                    broken = Some(self.broken_line(text, &problem));
                    break;
                }
                Err(problem) => {
                    let so_far = self.fetcher.settings.counters.count_broken_line();
                    if so_far.is_power_of_two() {
                        let (file, line) = (self.fetcher.file.display(), self.line + 1);
                        let (column, problem) = where_it_breaks(text, &problem);
                        tracing::warn!(%file, line, column, problem, so_far, "left out: not a record");
                    }
                    self.pass(text);
                }
            }
        }
        let end = LineEnd { at: self.at - start, line: self.line };
        let bytes = self.block.bytes[start..self.at].to_vec();
        let block_offset = self.fetcher.position.offset - self.block.tail as u64;
        (Chunk { records, record_ends, bytes, bytes_offset: block_offset + start as u64, end }, broken)
    }

    fn pass(&mut self, text: &[u8]) {
        self.at += text.len();
        self.line += 1;
    }

    fn broken_line(&self, line: &[u8], problem: &serde_json::Error) -> FileError {
        let (column, problem) = where_it_breaks(line, problem);
        FileError::BrokenLine { file: self.fetcher.file.clone(), line: self.line + 1, column, problem }
    }
}

/// The column, from 1, and what is wrong there.
fn where_it_breaks(line: &[u8], problem: &serde_json::Error) -> (usize, String) {
    let place = format!(" at line {} column {}", problem.line(), problem.column());
    let said = problem.to_string();
    let said = said.strip_suffix(&place).unwrap_or(&said);
    let written = line.trim_ascii_end();
    // The parser counts the line's end too, and sees the end of its input in the line below.
    let column = if problem.line() > 1 { written.len() + 1 } else { problem.column().max(1) };
    let words = match written {
        [] => "the line is empty".to_owned(),
        [0xef, 0xbb, 0xbf, ..] => {
            format!("{said} (it begins with a byte order mark: remove these three bytes)")
        }
        _ => said.to_owned(),
    };
    (column, words)
}

#[cfg(test)]
mod breaks {
    use super::where_it_breaks;

    #[test]
    fn a_broken_line_is_told_where_it_breaks() {
        for (line, column, words) in [
            ("\n", 1, "the line is empty"),
            ("{\"order_id\":2,\"user_id\":\n", 25, "EOF while parsing a value"),
            ("{\"order_id\" 2}\n", 13, "expected `:`"),
            ("\u{feff}{}\n", 1, "byte order mark"),
        ] {
            let problem = serde_json::from_str::<serde_json::Value>(line).unwrap_err();
            let (at, said) = where_it_breaks(line.as_bytes(), &problem);
            assert!(at == column && said.contains(words), "{line:?}: {at}: {said}");
        }
    }
}
