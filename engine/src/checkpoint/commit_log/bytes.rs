//! Bytes of the objects in the log folder.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | magic: `TGLG` for an entry, `TGLI` for `log/id` |
//! | 4 | 2 | format version, little endian: 1 |
//! | 6 | 2 | codec of the body, little endian: 1 = bincode 2, fixed-width little-endian integers |
//! | 8 | 8 | length of the body in bytes, little endian |
//! | 16 | 8 | xxh3-64 of bytes 0..16 followed by the body, little endian |
//! | 24 | … | body |
//!
//! Owns: the envelope and its checks. Does not own: the shape of the body (see [`super::entry`]). Runs on: pure.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

/// Magic of a log entry.
pub(super) const ENTRY_MAGIC: [u8; 4] = *b"TGLG";
/// Magic of `log/id`.
pub(super) const IDENTITY_MAGIC: [u8; 4] = *b"TGLI";

const FORMAT_VERSION: u16 = 1;
const CODEC_BINCODE: u16 = 1;
const HEADER_BYTES: usize = 24;

/// What is wrong with the bytes of one object.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Nothing was stored: how a file looks whose content was lost with the power.
    #[error("it is empty")]
    Empty,
    /// The end is missing, or there is something behind it.
    #[error("it is torn: {is} bytes where {should} belong")]
    Torn {
        /// Bytes there.
        is: usize,
        /// Bytes that the header tells of (or the header itself takes).
        should: u64,
    },
    /// It begins with something else.
    #[error("it does not begin like a file of the commit log")]
    Magic,
    /// Written by a newer version.
    #[error("it has format version {is}; this version reads {FORMAT_VERSION}")]
    Version {
        /// The version there.
        is: u16,
    },
    /// Written by another codec.
    #[error("its body has codec {is}; this version reads {CODEC_BINCODE}")]
    Codec {
        /// The codec there.
        is: u16,
    },
    /// A bit has flipped.
    #[error("its checksum is {is:016x} where {should:016x} is written: a byte has changed")]
    Checksum {
        /// Of the bytes there.
        is: u64,
        /// As written.
        should: u64,
    },
    /// The checksum is right and the body cannot be read all the same.
    #[error("its body cannot be decoded")]
    Body(#[source] bincode::error::DecodeError),
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding()
}

/// Puts a body into its envelope.
pub(super) fn seal(magic: [u8; 4], body: &impl Serialize) -> Vec<u8> {
    let body =
        bincode::serde::encode_to_vec(body, config()).expect("log bodies hold no type that bincode refuses");
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    out.extend_from_slice(&magic);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&CODEC_BINCODE.to_le_bytes());
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    let checksum = checksum(&out, &body);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&body);
    out
}

/// Takes a body out of its envelope.
pub(super) fn open<T: DeserializeOwned>(magic: [u8; 4], bytes: &[u8]) -> Result<T, EnvelopeError> {
    if bytes.is_empty() {
        return Err(EnvelopeError::Empty);
    }
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(EnvelopeError::Torn { is: bytes.len(), should: HEADER_BYTES as u64 });
    };
    if header[..4] != magic {
        return Err(EnvelopeError::Magic);
    }
    match half(header, 4) {
        FORMAT_VERSION => {}
        is => return Err(EnvelopeError::Version { is }),
    }
    let length = word(header, 8);
    if length != body.len() as u64 {
        return Err(EnvelopeError::Torn {
            is: bytes.len(),
            should: length.saturating_add(HEADER_BYTES as u64),
        });
    }
    let (is, should) = (checksum(&header[..16], body), word(header, 16));
    if is != should {
        return Err(EnvelopeError::Checksum { is, should });
    }
    match half(header, 6) {
        CODEC_BINCODE => {}
        is => return Err(EnvelopeError::Codec { is }),
    }
    match bincode::serde::decode_from_slice(body, config()) {
        Ok((value, read)) if read == body.len() => Ok(value),
        Ok((_, read)) => Err(EnvelopeError::Torn { is: body.len(), should: read as u64 }),
        Err(error) => Err(EnvelopeError::Body(error)),
    }
}

fn checksum(header: &[u8], body: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(header);
    hasher.update(body);
    hasher.digest()
}

fn word(header: &[u8], at: usize) -> u64 {
    header[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

fn half(header: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([header[at], header[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::commit_log::{ClaimBase, EntryBody, LogEntry, Nonce};
    use crate::ids::{AttemptId, EntryNumber};

    fn entry() -> LogEntry {
        LogEntry {
            attempt: AttemptId(3),
            nonce: Nonce(u128::MAX - 5),
            body: EntryBody::Claim {
                base: ClaimBase::Entry(EntryNumber(2)),
                stores: vec!["file:///x".into()],
            },
        }
    }

    #[test]
    fn an_entry_comes_back_as_it_was() {
        let bytes = seal(ENTRY_MAGIC, &entry());
        assert_eq!(open::<LogEntry>(ENTRY_MAGIC, &bytes).unwrap(), entry());
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        let bytes = seal(ENTRY_MAGIC, &entry());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert!(open::<LogEntry>(ENTRY_MAGIC, &flipped).is_err(), "byte {at} flipped");
            assert!(open::<LogEntry>(ENTRY_MAGIC, &bytes[..at]).is_err(), "cut at {at}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(matches!(open::<LogEntry>(ENTRY_MAGIC, &longer), Err(EnvelopeError::Torn { .. })));
        assert!(matches!(open::<LogEntry>(ENTRY_MAGIC, &[]), Err(EnvelopeError::Empty)));
    }
}
