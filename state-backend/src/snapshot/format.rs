//! The frame of every state file and blob: magic, version, codec, lengths, header, checksum, body.
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 4 | magic |
//! | 4 | 2 | format version, u16 LE |
//! | 6 | 2 | codec, u16 LE |
//! | 8 | 8 | header length H, u64 LE |
//! | 16 | 8 | body length B, u64 LE |
//! | 24 | H | header, bincode |
//! | 24 + H | 8 | xxh3 of all bytes before, u64 LE |
//! | 32 + H | B | body |
//!
//! Owns: the frame and its checks.
//! Does not own: what header and body hold.
//! Runs on: anywhere.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{BincodeCodec, CONFIG, CodecError, CodecId, hash_bytes};
use crate::error::{FileDefect, StateError};

const PREFIX: usize = 24;
const CHECKSUM: usize = 8;

/// A kind of file: its magic and the newest version that is written and read.
pub(crate) struct Frame {
    pub(crate) magic: &'static str,
    pub(crate) version: u16,
}

/// Puts header and body into one file; the parts of the body are let go one by one.
pub(crate) fn seal<H: Serialize>(frame: &Frame, header: &H, body: Vec<Vec<u8>>) -> Vec<u8> {
    let body_length: usize = body.iter().map(Vec::len).sum();
    let header =
        bincode::serde::encode_to_vec(header, CONFIG).expect("a header holds only names and numbers");
    let mut file = Vec::with_capacity(PREFIX + header.len() + CHECKSUM + body_length);
    file.extend_from_slice(frame.magic.as_bytes());
    file.extend_from_slice(&frame.version.to_le_bytes());
    file.extend_from_slice(&BincodeCodec::ID.0.to_le_bytes());
    file.extend_from_slice(&(header.len() as u64).to_le_bytes());
    file.extend_from_slice(&(body_length as u64).to_le_bytes());
    file.extend_from_slice(&header);
    file.extend_from_slice(&hash_bytes(&file).to_le_bytes());
    body.into_iter().for_each(|part| file.extend_from_slice(&part));
    file
}

/// Takes a file apart after checking its frame; the body is not yet checked.
pub(crate) fn unseal<'a, H: DeserializeOwned>(
    frame: &Frame,
    file: &str,
    bytes: &'a [u8],
) -> Result<(H, &'a [u8]), StateError> {
    open(frame, bytes).map_err(|source| StateError::DamagedFile {
        file: file.into(),
        section: "header".into(),
        source: Box::new(source),
    })
}

fn open<'a, H: DeserializeOwned>(frame: &Frame, bytes: &'a [u8]) -> Result<(H, &'a [u8]), FileDefect> {
    let found = bytes.len() as u64;
    if bytes.is_empty() {
        return Err(FileDefect::Empty);
    }
    let magic = frame.magic.as_bytes();
    if !bytes.starts_with(&magic[..magic.len().min(bytes.len())]) {
        return Err(FileDefect::WrongMagic { expected: frame.magic });
    }
    if bytes.len() < PREFIX + CHECKSUM {
        return Err(FileDefect::WrongLength { expected: (PREFIX + CHECKSUM) as u64, found });
    }
    let version = u16::from_le_bytes(array(bytes, 4));
    if version > frame.version {
        return Err(FileDefect::NewerFormat { found: version, newest: frame.version });
    }
    let (header, body) = (u64::from_le_bytes(array(bytes, 8)), u64::from_le_bytes(array(bytes, 16)));
    let expected = header.saturating_add(body).saturating_add((PREFIX + CHECKSUM) as u64);
    if expected != found {
        return Err(FileDefect::WrongLength { expected, found });
    }
    // Both lengths fit, since their sum is that of the bytes in hand.
    let end = PREFIX + header as usize;
    verify(&bytes[..end], u64::from_le_bytes(array(bytes, end)))?;
    let codec = CodecId(u16::from_le_bytes(array(bytes, 6)));
    if codec != BincodeCodec::ID {
        return Err(FileDefect::UnknownCodec { found: codec, known: BincodeCodec::ID });
    }
    let header = &bytes[PREFIX..end];
    let (parsed, used) = bincode::serde::decode_from_slice(header, CONFIG)
        .map_err(|source| unparsable(CodecError::Value { of: "header", source }))?;
    if used != header.len() {
        let left = header.len() - used;
        return Err(unparsable(CodecError::TrailingBytes { of: "header".into(), left }));
    }
    Ok((parsed, &bytes[end + CHECKSUM..]))
}

/// Compares bytes with the checksum that was written for them.
pub(crate) fn verify(bytes: &[u8], expected: u64) -> Result<(), FileDefect> {
    let found = hash_bytes(bytes);
    if found == expected { Ok(()) } else { Err(FileDefect::WrongChecksum { expected, found }) }
}

fn unparsable(source: CodecError) -> FileDefect {
    FileDefect::Unparsable { source }
}

/// The `N` bytes at `offset`, which lies within a prefix that was checked to be there.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}
