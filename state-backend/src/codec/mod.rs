//! Encoding: how values become bytes that last.
//!
//! The bytes are those of bincode 2 with fixed-size little-endian integers: a struct is its fields in turn, a list
//! a `u64` length and its items, an option a tag byte, an enum a `u32` index. Maps and sets without an order are
//! written in the order of their encoded keys, so equal values have equal bytes.
//!
//! Owns: [`StateType`] and its implementations, the [`Codec`] seam, the key hash.
//! Does not own: the schema tree (see [`crate::schema`]), file headers and checksums.
//! Runs on: anywhere; the key hash on the slot's thread for every record.

#[path = "codec.rs"]
mod codec_trait;
mod collections;
mod containers;
#[doc(hidden)]
pub mod derive_support;
mod error;
mod hash;
mod opaque;
mod primitives;
mod read;
mod state_type;
#[cfg(test)]
mod tests;
mod tuples;

pub use self::codec_trait::{BincodeCodec, Codec, CodecId};
pub use self::error::CodecError;
pub use self::hash::{hash_bytes, hash_str};
pub use self::state_type::StateType;

pub(crate) use self::read::{read_length, take, write_length};

/// Little endian, integers in their full size, no limit: the layout of everything that lasts.
pub(crate) const CONFIG: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Fixint,
    bincode::config::NoLimit,
> = bincode::config::legacy();
