//! [`Codec`]: the seam behind which the byte layout of values stands; every file header names the codec.
//!
//! Owns: the codec's identity and the whole-value entry points.
//! Does not own: the layout of each type (see [`StateType`]).
//! Runs on: anywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CodecError, StateType};
use crate::schema::Schema;

/// Which codec wrote some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CodecId(pub u16);

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BincodeCodec::ID => f.write_str("bincode-2-fixint-le (1)"),
            Self(other) => write!(f, "unknown codec ({other})"),
        }
    }
}

/// Turns values into bytes and back.
pub trait Codec: Clone + Send + Sync + 'static {
    /// The number that stands in file headers.
    fn id(&self) -> CodecId;

    /// Appends `value` to `out`.
    fn encode<T: StateType>(&self, value: &T, out: &mut Vec<u8>);

    /// Reads one value that was written with the schema `writer`, or with the type's own if `None`.
    ///
    /// # Errors
    /// When the bytes are not such a value.
    fn decode<T: StateType>(&self, writer: Option<&Schema>, input: &mut &[u8]) -> Result<T, CodecError>;
}

/// The layout of bincode 2 with fixed-size little-endian integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BincodeCodec;

impl BincodeCodec {
    /// Its number in file headers.
    pub const ID: CodecId = CodecId(1);
}

impl Codec for BincodeCodec {
    fn id(&self) -> CodecId {
        Self::ID
    }

    #[inline]
    fn encode<T: StateType>(&self, value: &T, out: &mut Vec<u8>) {
        value.encode(out);
    }

    #[inline]
    fn decode<T: StateType>(&self, writer: Option<&Schema>, input: &mut &[u8]) -> Result<T, CodecError> {
        match writer {
            None => T::decode(input),
            Some(writer) => T::decode_as(writer, input),
        }
    }
}
