//! [`StateFileWriter`]: builds a state file, one section per state, its entries by key group.
//!
//! An entry is three strings of bytes, each after its length as an LEB128 number: key, namespace (nothing for a
//! value, the position of a list item, the map key, the time of a timer) and value.
//!
//! Owns: grouping, the index of blocks, checksums.
//! Does not own: the frame around it (see `format`).
//! Runs on: off the slot's thread.

use serde::{Deserialize, Serialize};

use super::format::{Frame, seal};
use crate::codec::hash_bytes;
use crate::descriptor::StateDescriptor;
use crate::key_group::{KeyGroup, KeyGroupRange, MaxParallelism, key_group_of};

/// The frame of state files.
pub(super) const STATE_FILE: Frame = Frame { magic: "TGST", version: 1 };

/// The header of a state file.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) operator_uid: String,
    pub(super) max_parallelism: MaxParallelism,
    pub(super) range: KeyGroupRange,
    pub(super) sections: Vec<Section>,
}

/// One state in the header.
#[derive(Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) descriptor: StateDescriptor,
    /// The blocks of the groups that have entries, by group. They follow each other in the body, section by
    /// section, without gaps.
    pub(super) blocks: Vec<Block>,
}

/// The entries of one state in one key group.
#[derive(Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) group: KeyGroup,
    pub(super) length: u64,
    pub(super) entries: u64,
    pub(super) checksum: u64,
}

/// Builds the state file of one subtask.
pub struct StateFileWriter {
    header: Header,
    /// The blocks, in the order of the header.
    body: Vec<Vec<u8>>,
}

impl StateFileWriter {
    /// An empty file.
    pub fn new(operator_uid: &str, range: KeyGroupRange, max_parallelism: MaxParallelism) -> Self {
        let operator_uid = operator_uid.to_owned();
        let header = Header { operator_uid, max_parallelism, range, sections: Vec::new() };
        Self { header, body: Vec::new() }
    }

    /// Begins the section of one state; nothing is added before it is finished.
    pub fn section(&mut self, descriptor: &StateDescriptor) -> SectionWriter<'_> {
        let groups = (0..self.header.range.len()).map(|_| GroupBuffer::default()).collect();
        SectionWriter { descriptor: descriptor.clone(), groups, file: self }
    }

    /// The bytes of the file.
    pub fn finish(self) -> Vec<u8> {
        seal(&STATE_FILE, &self.header, self.body)
    }
}

#[derive(Default)]
struct GroupBuffer {
    bytes: Vec<u8>,
    entries: u64,
}

/// Collects the entries of one state.
pub struct SectionWriter<'f> {
    file: &'f mut StateFileWriter,
    descriptor: StateDescriptor,
    groups: Vec<GroupBuffer>,
}

impl SectionWriter<'_> {
    /// Adds an entry of the key with this hash. The entries of one key keep their order.
    pub fn entry(
        &mut self,
        key_hash: u64,
        key: impl FnOnce(&mut Vec<u8>),
        namespace: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        let header = &self.file.header;
        let group = key_group_of(key_hash, header.max_parallelism);
        debug_assert!(header.range.contains(group), "a table holds only keys of its own groups");
        let buffer = &mut self.groups[usize::from(group.0 - header.range.start)];
        buffer.entries += 1;
        append(&mut buffer.bytes, key);
        append(&mut buffer.bytes, namespace);
        append(&mut buffer.bytes, value);
    }

    /// Adds the section to the file.
    pub fn finish(self) {
        let start = self.file.header.range.start;
        let mut blocks = Vec::new();
        for (index, buffer) in self.groups.into_iter().enumerate() {
            if buffer.entries > 0 {
                blocks.push(Block {
                    group: KeyGroup(start + index as u16),
                    length: buffer.bytes.len() as u64,
                    entries: buffer.entries,
                    checksum: hash_bytes(&buffer.bytes),
                });
                self.file.body.push(buffer.bytes);
            }
        }
        self.file.header.sections.push(Section { descriptor: self.descriptor, blocks });
    }
}

/// Appends what `fill` writes, after its length: in place where the length is one byte, which it mostly is.
fn append(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    fill(out);
    let mut length = out.len() - at - 1;
    let mut place = at;
    while length >= 0x80 {
        let low = (length as u8 & 0x7F) | 0x80;
        if place == at {
            out[at] = low
        } else {
            out.insert(place, low)
        }
        place += 1;
        length >>= 7;
    }
    if place == at { out[at] = length as u8 } else { out.insert(place, length as u8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_stands_in_front_of_what_was_written_whatever_its_size() {
        for size in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
            let mut out = vec![9, 9];
            append(&mut out, |out| out.extend(std::iter::repeat_n(7, size)));
            let (mut length, mut shift, mut at) = (0, 0, 2);
            loop {
                length |= usize::from(out[at] & 0x7F) << shift;
                at += 1;
                shift += 7;
                if out[at - 1] & 0x80 == 0 {
                    break;
                }
            }
            assert_eq!(length, size);
            assert_eq!(out[..2], [9, 9]);
            assert!(out.len() == at + size && out[at..].iter().all(|byte| *byte == 7));
        }
    }
}
