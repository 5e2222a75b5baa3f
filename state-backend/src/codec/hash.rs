//! The one hash of Tidegate: xxh3 (64 bits, seed 0) of a key's encoding.
//!
//! Owns: the hash and a reusable buffer per thread, so that hashing a key does not allocate.
//! Does not own: what the hash is used for (key groups, routing, probing).
//! Runs on: the slot's thread, once per record.

use std::cell::Cell;

use xxhash_rust::xxh3::xxh3_64;

use super::StateType;

/// Strings up to this many bytes are hashed from the stack.
const SHORT_BYTES: usize = 120;

thread_local! {
    /// Taken while in use, so that a nested call makes its own.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The hash of bytes that are already an encoding.
#[inline]
pub fn hash_bytes(encoding: &[u8]) -> u64 {
    xxh3_64(encoding)
}

/// The hash of a `String` key with this text, without owning it.
#[inline]
pub fn hash_str(text: &str) -> u64 {
    let length = (text.len() as u64).to_le_bytes();
    if text.len() <= SHORT_BYTES {
        let mut short = [0u8; 8 + SHORT_BYTES];
        short[..8].copy_from_slice(&length);
        short[8..8 + text.len()].copy_from_slice(text.as_bytes());
        return xxh3_64(&short[..8 + text.len()]);
    }
    with_buffer(|buffer| {
        buffer.extend_from_slice(&length);
        buffer.extend_from_slice(text.as_bytes());
    })
}

/// The hash of a value's encoding.
#[inline]
pub(super) fn hash_encoding<T: StateType>(value: &T) -> u64 {
    with_buffer(|buffer| value.encode(buffer))
}

fn with_buffer(fill: impl FnOnce(&mut Vec<u8>)) -> u64 {
    let mut buffer = BUFFER.take();
    buffer.clear();
    fill(&mut buffer);
    let hash = xxh3_64(&buffer);
    BUFFER.set(buffer);
    hash
}
