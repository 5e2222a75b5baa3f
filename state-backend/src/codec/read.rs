//! The two steps that all decoding is made of: take some bytes, read a length.
//!
//! Owns: the checks that bytes do not end inside a value.
//! Does not own: what the bytes mean.
//! Runs on: anywhere.

use super::{CodecError, StateType};

/// Takes `needed` bytes off the front of `input`.
#[inline]
pub(crate) fn take<'i>(
    input: &mut &'i [u8],
    needed: usize,
    of: &'static str,
) -> Result<&'i [u8], CodecError> {
    match input.split_at_checked(needed) {
        Some((taken, rest)) => {
            *input = rest;
            Ok(taken)
        }
        None => Err(CodecError::UnexpectedEnd { of, needed: needed as u64, left: input.len() }),
    }
}

/// Reads the length of a list, a map, a text or an opaque blob.
#[inline]
pub(crate) fn read_length(input: &mut &[u8]) -> Result<usize, CodecError> {
    let length = u64::decode(input)?;
    usize::try_from(length).map_err(|_| CodecError::UnexpectedEnd {
        of: "length",
        needed: length,
        left: input.len(),
    })
}

/// Writes the length of a list, a map, a text or an opaque blob.
#[inline]
pub(crate) fn write_length(length: usize, out: &mut Vec<u8>) {
    (length as u64).encode(out);
}

/// How much to reserve for `length` items of which none is decoded yet: a broken length must not exhaust memory.
#[inline]
pub(super) fn reserve(length: usize, input: &[u8]) -> usize {
    length.min(input.len())
}
