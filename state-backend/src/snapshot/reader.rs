//! [`StateFileReader`]: reads a state file, only the key groups that are wanted.
//!
//! Owns: finding and checking blocks, cutting them into entries.
//! Does not own: decoding keys and values (see `restore`).
//! Runs on: at a start, off the slot's thread or on it before records flow.

use super::format::{unseal, verify};
use super::writer::{Block, Header, STATE_FILE, Section};
use crate::codec::{CodecError, take};
use crate::descriptor::StateDescriptor;
use crate::error::{FileDefect, StateError};
use crate::key_group::{KeyGroup, KeyGroupRange, MaxParallelism};

/// How a file is called whose name was not given.
const UNNAMED: &str = "the state file";

/// The smallest entry: three lengths of nothing.
const ENTRY_BYTES_MIN: u64 = 3;

/// A state file whose header has been checked; blocks are checked when they are read.
pub struct StateFileReader<'a> {
    file: String,
    header: Header,
    body: &'a [u8],
}

/// One entry, still encoded.
pub(super) struct RawEntry<'a> {
    pub(super) key: &'a [u8],
    pub(super) namespace: &'a [u8],
    pub(super) value: &'a [u8],
}

/// The entries of one state in one key group, checked against their checksum.
pub(super) struct OpenBlock<'a> {
    pub(super) group: KeyGroup,
    pub(super) section: String,
    rest: &'a [u8],
    left: u64,
}

impl<'a> StateFileReader<'a> {
    /// Opens a file whose name does not matter; see [`Self::open_named`].
    ///
    /// # Errors
    /// When it is empty, torn, changed, of a newer format or another codec.
    pub fn open(bytes: &'a [u8]) -> Result<Self, StateError> {
        Self::open_named(UNNAMED, bytes)
    }

    /// Opens a file; `file` stands in errors.
    ///
    /// # Errors
    /// When it is empty, torn, changed, of a newer format or another codec.
    pub fn open_named(file: &str, bytes: &'a [u8]) -> Result<Self, StateError> {
        let (header, body) = unseal::<Header>(&STATE_FILE, file, bytes)?;
        let reader = Self { file: file.to_owned(), header, body };
        let blocks = reader.header.sections.iter().flat_map(|section| &section.blocks);
        let expected = blocks.fold(0u64, |sum, block| sum.saturating_add(block.length));
        if expected != body.len() as u64 {
            let found = body.len() as u64;
            return Err(reader.damaged("header".into(), FileDefect::WrongLength { expected, found }));
        }
        Ok(reader)
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The operator whose state it is.
    pub fn operator_uid(&self) -> &str {
        &self.header.operator_uid
    }

    /// The number of key groups of the job that wrote it.
    pub fn max_parallelism(&self) -> MaxParallelism {
        self.header.max_parallelism
    }

    /// The key groups that it covers.
    pub fn range(&self) -> KeyGroupRange {
        self.header.range
    }

    /// The states in it.
    pub fn descriptors(&self) -> impl Iterator<Item = &StateDescriptor> {
        self.header.sections.iter().map(|section| &section.descriptor)
    }

    /// How many entries of `state` it has, over all key groups.
    pub fn entries_of(&self, state: &str) -> u64 {
        self.section(state).map_or(0, |section| section.blocks.iter().map(|block| block.entries).sum())
    }

    /// How many entries of `state` it has in the key groups of `range`: never more than its bytes can hold.
    pub(super) fn entries_in(&self, state: &str, range: KeyGroupRange) -> usize {
        let blocks = self.section(state).into_iter().flat_map(|section| &section.blocks);
        let in_range = blocks.filter(|block| range.contains(block.group));
        in_range.map(|block| block.entries.min(block.length / ENTRY_BYTES_MIN) as usize).sum()
    }

    /// Checks every block.
    ///
    /// # Errors
    /// The first one that has changed.
    pub fn verify(&self) -> Result<(), StateError> {
        for section in &self.header.sections {
            for block in self.blocks(&section.descriptor.name, self.header.range) {
                block?;
            }
        }
        Ok(())
    }

    pub(super) fn section(&self, state: &str) -> Option<&Section> {
        self.header.sections.iter().find(|section| section.descriptor.name == state)
    }

    /// The blocks of `state` in `range`, each checked.
    pub(super) fn blocks(
        &self,
        state: &str,
        range: KeyGroupRange,
    ) -> impl Iterator<Item = Result<OpenBlock<'a>, StateError>> {
        let mut offset = 0;
        let mut wanted = Vec::new();
        for section in &self.header.sections {
            for block in &section.blocks {
                if section.descriptor.name == state && range.contains(block.group) {
                    wanted.push((offset, block));
                }
                offset += block.length as usize;
            }
        }
        let state = state.to_owned();
        wanted.into_iter().map(move |(offset, block)| self.open_block(&state, offset, block))
    }

    fn open_block(&self, state: &str, offset: usize, block: &Block) -> Result<OpenBlock<'a>, StateError> {
        // The sum of all lengths was checked against the body when the file was opened.
        let bytes = &self.body[offset..offset + block.length as usize];
        let section = format!("state \"{state}\", key group {}", block.group.0);
        match verify(bytes, block.checksum) {
            Ok(()) => Ok(OpenBlock { group: block.group, section, rest: bytes, left: block.entries }),
            Err(defect) => Err(self.damaged(section, defect)),
        }
    }

    pub(super) fn damaged(&self, section: String, source: FileDefect) -> StateError {
        StateError::DamagedFile {
            file: self.file.as_str().into(),
            section: section.into(),
            source: Box::new(source),
        }
    }
}

impl<'a> OpenBlock<'a> {
    /// The next entry; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<RawEntry<'a>>, CodecError> {
        if self.left == 0 {
            return match self.rest.len() {
                0 => Ok(None),
                left => Err(CodecError::TrailingBytes { of: "last entry".into(), left }),
            };
        }
        self.left -= 1;
        let key = part(&mut self.rest)?;
        let namespace = part(&mut self.rest)?;
        let value = part(&mut self.rest)?;
        Ok(Some(RawEntry { key, namespace, value }))
    }
}

/// A length as an LEB128 number, and as many bytes.
fn part<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], CodecError> {
    let mut length = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(input, 1, "length")?[0];
        length |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let needed = usize::try_from(length).unwrap_or(usize::MAX);
    take(input, needed, "entry")
}
