//! Scalars and text: the bytes are bincode's.
//!
//! Owns: [`StateType`] of integers, floats, `bool`, `char`, `()` and `String`.
//! Does not own: anything with parts.
//! Runs on: anywhere.

use xxhash_rust::xxh3::xxh3_64;

use super::{CONFIG, CodecError, StateType, hash, read_length, take, write_length};
use crate::schema::{Primitive, Schema, SchemaMismatch};

#[inline]
fn write(value: impl bincode::Encode, out: &mut Vec<u8>) {
    bincode::encode_into_std_write(value, out, CONFIG).expect("a vector takes every byte");
}

#[inline]
fn read<T: bincode::Decode<()>>(of: &'static str, input: &mut &[u8]) -> Result<T, CodecError> {
    let (value, used) =
        bincode::decode_from_slice(input, CONFIG).map_err(|source| CodecError::Value { of, source })?;
    *input = &input[used..];
    Ok(value)
}

/// Refuses every schema but the type's own: scalars do not change silently.
pub(super) fn check_same(writer: &Schema, own: Primitive) -> Result<(), SchemaMismatch> {
    match writer {
        Schema::Primitive(primitive) if *primitive == own => Ok(()),
        _ => Err(SchemaMismatch::between(writer, &Schema::Primitive(own))),
    }
}

macro_rules! scalar {
    ($($type:ty => $primitive:ident $(, hash $hash:expr)?;)*) => {$(
        impl StateType for $type {
            #[inline]
            fn schema() -> Schema {
                Schema::Primitive(Primitive::$primitive)
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                write(*self, out);
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                read(stringify!($type), input)
            }

            #[inline]
            fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
                check_same(writer, Primitive::$primitive)?;
                Self::decode(input)
            }

            fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
                check_same(writer, Primitive::$primitive)
            }

            $(#[inline]
            fn key_hash(&self) -> u64 {
                let hash: fn($type) -> u64 = $hash;
                hash(*self)
            })?
        }
    )*};
}

scalar! {
    u8 => U8, hash |key| xxh3_64(&key.to_le_bytes());
    u16 => U16, hash |key| xxh3_64(&key.to_le_bytes());
    u32 => U32, hash |key| xxh3_64(&key.to_le_bytes());
    u64 => U64, hash |key| xxh3_64(&key.to_le_bytes());
    u128 => U128, hash |key| xxh3_64(&key.to_le_bytes());
    usize => U64, hash |key| xxh3_64(&(key as u64).to_le_bytes());
    i8 => I8, hash |key| xxh3_64(&key.to_le_bytes());
    i16 => I16, hash |key| xxh3_64(&key.to_le_bytes());
    i32 => I32, hash |key| xxh3_64(&key.to_le_bytes());
    i64 => I64, hash |key| xxh3_64(&key.to_le_bytes());
    i128 => I128, hash |key| xxh3_64(&key.to_le_bytes());
    isize => I64, hash |key| xxh3_64(&(key as i64).to_le_bytes());
    bool => Bool, hash |key| xxh3_64(&[u8::from(key)]);
    f32 => F32;
    f64 => F64;
    char => Char;
    () => Unit;
}

impl StateType for String {
    fn schema() -> Schema {
        Schema::Primitive(Primitive::String)
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let length = read_length(input)?;
        let bytes = take(input, length, "String")?;
        Ok(std::str::from_utf8(bytes).map_err(|source| CodecError::Utf8 { source })?.to_owned())
    }

    fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
        check_same(writer, Primitive::String)?;
        Self::decode(input)
    }

    fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
        check_same(writer, Primitive::String)
    }

    #[inline]
    fn key_hash(&self) -> u64 {
        hash::hash_str(self)
    }
}
