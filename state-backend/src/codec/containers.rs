//! `Option`, `Box` and arrays.
//!
//! Owns: [`StateType`] of containers with a fixed number of places.
//! Does not own: collections that grow (see `collections`).
//! Runs on: anywhere.

use super::{CodecError, StateType};
use crate::schema::{Schema, SchemaMismatch};

impl<T: StateType> StateType for Option<T> {
    fn schema() -> Schema {
        Schema::Option(Box::new(T::schema()))
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                value.encode(out);
            }
        }
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        decode_option(input, T::decode)
    }

    fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
        match writer {
            Schema::Option(inner) => decode_option(input, |input| T::decode_as(inner, input)),
            _ => Err(SchemaMismatch::between(writer, &Self::schema()).into()),
        }
    }

    fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
        match writer {
            Schema::Option(inner) => T::check(inner),
            _ => Err(SchemaMismatch::between(writer, &Self::schema())),
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

fn decode_option<T>(
    input: &mut &[u8],
    value: impl FnOnce(&mut &[u8]) -> Result<T, CodecError>,
) -> Result<Option<T>, CodecError> {
    match u8::decode(input)? {
        0 => Ok(None),
        1 => value(input).map(Some),
        tag => Err(CodecError::UnknownTag { of: "Option".into(), tag: u32::from(tag) }),
    }
}

impl<T: StateType> StateType for Box<T> {
    fn schema() -> Schema {
        T::schema()
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        T::encode(self, out);
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        T::decode(input).map(Box::new)
    }

    fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
        T::decode_as(writer, input).map(Box::new)
    }

    fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
        T::check(writer)
    }

    #[inline]
    fn key_hash(&self) -> u64 {
        T::key_hash(self)
    }

    fn absent() -> Option<Self> {
        T::absent().map(Box::new)
    }
}

impl<T: StateType, const N: usize> StateType for [T; N] {
    fn schema() -> Schema {
        Schema::Array(Box::new(T::schema()), N as u64)
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        for item in self {
            item.encode(out);
        }
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        decode_array(|| T::decode(input))
    }

    fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
        match writer {
            Schema::Array(item, length) if *length == N as u64 => decode_array(|| T::decode_as(item, input)),
            _ => Err(SchemaMismatch::between(writer, &Self::schema()).into()),
        }
    }

    fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
        match writer {
            Schema::Array(item, length) if *length == N as u64 => {
                T::check(item).map_err(|mismatch| mismatch.within("[]"))
            }
            _ => Err(SchemaMismatch::between(writer, &Self::schema())),
        }
    }
}

fn decode_array<T, const N: usize>(
    mut item: impl FnMut() -> Result<T, CodecError>,
) -> Result<[T; N], CodecError> {
    let items = (0..N).map(|_| item()).collect::<Result<Vec<_>, _>>()?;
    Ok(items.try_into().unwrap_or_else(|_| unreachable!("exactly N items were collected")))
}
