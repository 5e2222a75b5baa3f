//! Schemas: what was written, in names, so that a later program can read it or refuse with a reason.
//!
//! Each type that lasts can describe its encoding as a [`Schema`]. The schema is stored with the bytes; a restore
//! decodes by the *writer's* schema ([`StateType::decode_as`](crate::StateType::decode_as)) after
//! [`StateType::check`](crate::StateType::check) has found the two compatible.
//!
//! Owns: the schema tree, its byte encoding, its text, the skipping of values nobody wants.
//! Does not own: which types have which schema (see [`crate::codec`]).
//! Runs on: anywhere; only at snapshot and restore.

mod mismatch;
mod skip;
mod text;

use std::any::TypeId;
use std::cell::RefCell;

use serde::{Deserialize, Serialize};

pub use self::mismatch::SchemaMismatch;
pub use self::skip::skip;

use crate::codec::{CONFIG, CodecError};

/// The shape of an encoded value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Schema {
    /// A built-in scalar.
    Primitive(Primitive),
    /// One tag byte, then the value if the tag is 1.
    Option(Box<Schema>),
    /// A `u64` length, then the items: `Vec`, `VecDeque`, sets.
    List(Box<Schema>),
    /// A fixed number of items, without a length.
    Array(Box<Schema>, u64),
    /// A `u64` length, then key and value in turn.
    Map(Box<Schema>, Box<Schema>),
    /// The items in turn.
    Tuple(Vec<Schema>),
    /// The fields in turn.
    Struct(StructSchema),
    /// A `u32` index into the variants, then the fields of that variant.
    Enum(EnumSchema),
    /// A `u64` length, then bytes that only the foreign type of this name can read.
    Opaque {
        /// The type as its user spelled it.
        name: String,
    },
}

/// The built-in scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Primitive {
    /// No bytes.
    Unit,
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes; also `usize`.
    U64,
    /// Unsigned, 16 bytes.
    U128,
    /// Signed, 1 byte.
    I8,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes; also `isize`.
    I64,
    /// Signed, 16 bytes.
    I128,
    /// IEEE 754, 4 bytes.
    F32,
    /// IEEE 754, 8 bytes.
    F64,
    /// 1 to 4 bytes of UTF-8.
    Char,
    /// A `u64` length, then UTF-8.
    String,
}

/// A struct: its fields are matched by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StructSchema {
    /// The type's name, without path and generics.
    pub name: String,
    /// `#[state(version = N)]`, 1 unless given.
    pub version: u32,
    /// In the order in which they are written.
    pub fields: Vec<FieldSchema>,
}

/// One field of a struct or of a variant; those of tuples are named `0`, `1`, …
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FieldSchema {
    /// The field's name.
    pub name: String,
    /// What it holds.
    pub schema: Schema,
}

/// An enum: its variants are matched by name, whatever their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnumSchema {
    /// The type's name, without path and generics.
    pub name: String,
    /// `#[state(version = N)]`, 1 unless given.
    pub version: u32,
    /// In the order of their indices.
    pub variants: Vec<VariantSchema>,
}

/// One variant of an enum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VariantSchema {
    /// The variant's name.
    pub name: String,
    /// Its fields, as in a struct.
    pub fields: Vec<FieldSchema>,
}

impl Schema {
    /// The bytes in which a schema is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        bincode::serde::encode_to_vec(self, CONFIG).expect("a schema holds only names and numbers")
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// When the bytes are not exactly one schema.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        let (schema, used) = bincode::serde::decode_from_slice(bytes, CONFIG)
            .map_err(|source| CodecError::Value { of: "schema", source })?;
        if used != bytes.len() {
            return Err(CodecError::TrailingBytes { of: "schema".into(), left: bytes.len() - used });
        }
        Ok(schema)
    }
}

thread_local! {
    /// The types whose schema is being built on this thread, outermost first.
    static BUILDING: RefCell<Vec<TypeId>> = const { RefCell::new(Vec::new()) };
}

/// Builds the schema of `T`, refusing a type that contains itself.
///
/// # Panics
/// When `T` contains itself through other types (the derive already refuses a direct recursion).
#[doc(hidden)]
pub fn building<T: 'static>(build: impl FnOnce() -> Schema) -> Schema {
    let id = TypeId::of::<T>();
    BUILDING.with_borrow_mut(|types| {
        assert!(
            !types.contains(&id),
            "{} contains itself, and a recursive type has no finite schema; mark the field that closes the \
             circle #[state(opaque)]",
            std::any::type_name::<T>()
        );
        types.push(id);
    });
    let schema = build();
    BUILDING.with_borrow_mut(|types| types.pop());
    schema
}
