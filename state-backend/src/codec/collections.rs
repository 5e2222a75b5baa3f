//! Collections of `std`: lists, sets and maps.
//!
//! Sets are written as lists. Hash sets and hash maps are written in the order of their encoded items or keys, so
//! that equal values have equal bytes whatever their hasher.
//!
//! Owns: [`StateType`] of collections that grow.
//! Does not own: keyed list and map state, which never holds one value this large (see [`crate::state`]).
//! Runs on: anywhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};

use super::read::reserve;
use super::{CodecError, StateType, read_length, write_length};
use crate::schema::{Schema, SchemaMismatch};

fn list_item(writer: &Schema, own: fn() -> Schema) -> Result<&Schema, SchemaMismatch> {
    match writer {
        Schema::List(item) => Ok(item),
        _ => Err(SchemaMismatch::between(writer, &own())),
    }
}

fn map_parts(writer: &Schema, own: fn() -> Schema) -> Result<(&Schema, &Schema), SchemaMismatch> {
    match writer {
        Schema::Map(key, value) => Ok((key, value)),
        _ => Err(SchemaMismatch::between(writer, &own())),
    }
}

/// Reads a length and as many items.
fn items<T, C: FromIterator<T>>(
    input: &mut &[u8],
    mut item: impl FnMut(&mut &[u8]) -> Result<T, CodecError>,
) -> Result<C, CodecError> {
    let length = read_length(input)?;
    (0..length).map(|_| item(input)).collect()
}

/// Writes `parts` in the order of their encoding.
fn encode_sorted<'p, P: 'p>(
    parts: impl ExactSizeIterator<Item = P>,
    out: &mut Vec<u8>,
    encode_key: impl Fn(&P, &mut Vec<u8>),
    encode_rest: impl Fn(&P, &mut Vec<u8>),
) {
    write_length(parts.len(), out);
    let mut encoded: Vec<(Vec<u8>, P)> = parts
        .map(|part| {
            let mut key = Vec::new();
            encode_key(&part, &mut key);
            (key, part)
        })
        .collect();
    encoded.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    for (key, part) in &encoded {
        out.extend_from_slice(key);
        encode_rest(part, out);
    }
}

macro_rules! decode_list {
    () => {
        fn schema() -> Schema {
            Schema::List(Box::new(T::schema()))
        }

        fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
            items(input, T::decode)
        }

        fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
            let item = list_item(writer, Self::schema)?;
            items(input, |input| T::decode_as(item, input))
        }

        fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
            let item = list_item(writer, Self::schema)?;
            T::check(item).map_err(|mismatch| mismatch.within("[]"))
        }
    };
}

macro_rules! decode_map {
    () => {
        fn schema() -> Schema {
            Schema::Map(Box::new(K::schema()), Box::new(V::schema()))
        }

        fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
            items(input, |input| Ok((K::decode(input)?, V::decode(input)?)))
        }

        fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
            let (key, value) = map_parts(writer, Self::schema)?;
            items(input, |input| Ok((K::decode_as(key, input)?, V::decode_as(value, input)?)))
        }

        fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
            let (key, value) = map_parts(writer, Self::schema)?;
            K::check(key).map_err(|mismatch| mismatch.within("{key}"))?;
            V::check(value).map_err(|mismatch| mismatch.within("{value}"))
        }
    };
}

impl<T: StateType> StateType for Vec<T> {
    fn schema() -> Schema {
        Schema::List(Box::new(T::schema()))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        self.iter().for_each(|item| item.encode(out));
    }

    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let length = read_length(input)?;
        let mut list = Vec::with_capacity(reserve(length, input));
        for _ in 0..length {
            list.push(T::decode(input)?);
        }
        Ok(list)
    }

    fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
        let item = list_item(writer, Self::schema)?;
        items(input, |input| T::decode_as(item, input))
    }

    fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
        let item = list_item(writer, Self::schema)?;
        T::check(item).map_err(|mismatch| mismatch.within("[]"))
    }
}

impl<T: StateType> StateType for VecDeque<T> {
    decode_list!();

    fn encode(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        self.iter().for_each(|item| item.encode(out));
    }
}

impl<T: StateType + Ord> StateType for BTreeSet<T> {
    decode_list!();

    fn encode(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        self.iter().for_each(|item| item.encode(out));
    }
}

impl<T, S> StateType for HashSet<T, S>
where
    T: StateType + Eq + Hash,
    S: BuildHasher + Default + Clone + Send + Sync + 'static,
{
    decode_list!();

    fn encode(&self, out: &mut Vec<u8>) {
        encode_sorted(self.iter(), out, |item, out| item.encode(out), |_, _| {});
    }
}

impl<K: StateType + Ord, V: StateType> StateType for BTreeMap<K, V> {
    decode_map!();

    fn encode(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        for (key, value) in self {
            key.encode(out);
            value.encode(out);
        }
    }
}

impl<K, V, S> StateType for HashMap<K, V, S>
where
    K: StateType + Eq + Hash,
    V: StateType,
    S: BuildHasher + Default + Clone + Send + Sync + 'static,
{
    decode_map!();

    fn encode(&self, out: &mut Vec<u8>) {
        encode_sorted(self.iter(), out, |part, out| part.0.encode(out), |part, out| part.1.encode(out));
    }
}
