//! Restore: does a stored state fit the declared one, and if so, its entries as typed values.
//!
//! A key must have the very type it was written with: its bytes decide its key group. Map keys and values are read
//! by the writer's schema.
//!
//! Owns: the checks of kind, schemas and key groups; decoding.
//! Does not own: the tables that the entries go into.
//! Runs on: at a start; the checks also where a job is submitted.

use std::marker::PhantomData;

use super::reader::{RawEntry, StateFileReader};
use crate::backend::HeapBackend;
use crate::codec::{CodecError, StateType};
use crate::descriptor::{StateDescriptor, StateKind};
use crate::error::{FileDefect, StateError};
use crate::key_group::{KeyGroupRange, key_group_of};
use crate::schema::{Schema, SchemaMismatch};

/// May the state `stored` be read as the declared one, whose types are `K`, `N` (the namespace) and `V`?
///
/// # Errors
/// [`StateError::KindMismatch`] or [`StateError::SchemaMismatch`].
pub fn check_stored<K: StateType, N: StateType, V: StateType>(
    operator: &str,
    stored: &StateDescriptor,
    declared: &StateDescriptor,
) -> Result<(), StateError> {
    let state = declared.name.as_str().into();
    if stored.kind != declared.kind {
        let (was, is) = (stored.kind, declared.kind);
        return Err(StateError::KindMismatch { operator: operator.into(), state, was, is });
    }
    let refuse = |mismatch: SchemaMismatch| StateError::SchemaMismatch {
        operator: operator.into(),
        state: declared.name.as_str().into(),
        kind: declared.kind,
        field: mismatch.field.into(),
        was: mismatch.was.into(),
        is: mismatch.is.into(),
    };
    check_key::<K>(&stored.key_schema).map_err(|mismatch| refuse(mismatch.within("(key)")))?;
    if let (StateKind::Map, Some(map_key)) = (stored.kind, &stored.map_key_schema) {
        N::check(map_key).map_err(|mismatch| refuse(mismatch.within("(map key)")))?;
    }
    V::check(&stored.value_schema).map_err(refuse)
}

/// A key may not change at all: its encoding decides its hash, and with it the group in which it was stored.
fn check_key<K: StateType>(stored: &Schema) -> Result<(), SchemaMismatch> {
    K::check(stored)?;
    let own = K::schema();
    if own == *stored { Ok(()) } else { Err(SchemaMismatch::between(stored, &own)) }
}

/// Decodes values of one type: by their own schema when the writer had the same, by the writer's otherwise.
struct ByWriter<T> {
    writer: Option<Schema>,
    of: PhantomData<fn() -> T>,
}

impl<T: StateType> ByWriter<T> {
    fn new(writer: &Schema) -> Self {
        Self { writer: (T::schema() != *writer).then(|| writer.clone()), of: PhantomData }
    }

    fn decode(&self, mut bytes: &[u8], of: &'static str) -> Result<T, CodecError> {
        let value = match &self.writer {
            None => T::decode(&mut bytes)?,
            Some(writer) => T::decode_as(writer, &mut bytes)?,
        };
        if bytes.is_empty() {
            return Ok(value);
        }
        Err(CodecError::TrailingBytes { of: of.into(), left: bytes.len() })
    }
}

/// The entries of one state in a file, as typed values.
pub(crate) struct RestoreDecoder<'r, 'a, K, N, V> {
    file: &'r StateFileReader<'a>,
    state: &'r str,
    backend: HeapBackend,
    key: ByWriter<K>,
    namespace: ByWriter<N>,
    value: ByWriter<V>,
}

impl<'r, 'a, K: StateType, N: StateType, V: StateType> RestoreDecoder<'r, 'a, K, N, V> {
    /// `None` if the file does not have the state: it is new.
    pub(crate) fn new(
        file: &'r StateFileReader<'a>,
        declared: &'r StateDescriptor,
        backend: HeapBackend,
    ) -> Result<Option<Self>, StateError> {
        let Some(section) = file.section(&declared.name) else {
            return Ok(None);
        };
        let stored = &section.descriptor;
        if file.max_parallelism() != backend.max_parallelism {
            return Err(StateError::MaxParallelismMismatch {
                operator: file.operator_uid().into(),
                was: file.max_parallelism().get(),
                is: backend.max_parallelism.get(),
            });
        }
        check_stored::<K, N, V>(file.operator_uid(), stored, declared)?;
        let namespace = stored.map_key_schema.clone().unwrap_or_else(N::schema);
        Ok(Some(Self {
            file,
            state: &declared.name,
            backend,
            key: ByWriter::new(&stored.key_schema),
            namespace: ByWriter::new(&namespace),
            value: ByWriter::new(&stored.value_schema),
        }))
    }

    /// How many entries [`Self::each`] will give.
    pub(crate) fn entries(&self, range: KeyGroupRange) -> usize {
        self.file.entries_in(self.state, range.intersect(&self.backend.range))
    }

    /// Gives each entry whose key group lies in `range` and in the table's own to `take`, with its key's hash.
    pub(crate) fn each(
        &self,
        range: KeyGroupRange,
        mut take: impl FnMut(&K, u64, N, V),
    ) -> Result<(), StateError> {
        for block in self.file.blocks(self.state, range.intersect(&self.backend.range)) {
            let mut block = block?;
            let (group, section) = (block.group, block.section.clone());
            let undecodable = |source| StateError::Undecodable {
                file: self.file.file().into(),
                section: section.as_str().into(),
                source: Box::new(source),
            };
            // The entries of one key follow each other: it is decoded and hashed once.
            let mut last: Option<(&[u8], K, u64)> = None;
            while let Some(entry) = block.next().map_err(undecodable)? {
                let RawEntry { key: bytes, namespace, value } = entry;
                if last.as_ref().is_none_or(|(same, ..)| *same != bytes) {
                    let key = self.key.decode(bytes, "key").map_err(undecodable)?;
                    let hash = key.key_hash();
                    let own = key_group_of(hash, self.backend.max_parallelism);
                    if own != group {
                        let stray = FileDefect::StrayKey { group: own.0 };
                        return Err(self.file.damaged(section.clone(), stray));
                    }
                    last = Some((bytes, key, hash));
                }
                let (_, key, hash) = last.as_ref().expect("the entry's key has just been decoded");
                let namespace = self.namespace.decode(namespace, "namespace").map_err(undecodable)?;
                take(key, *hash, namespace, self.value.decode(value, "value").map_err(undecodable)?);
            }
        }
        Ok(())
    }
}
