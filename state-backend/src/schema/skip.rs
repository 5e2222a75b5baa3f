//! Skipping: stepping over an encoded value by its schema alone, for fields that the reader no longer has.
//!
//! Owns: the length of every encoded shape.
//! Does not own: decoding (see [`crate::codec`]).
//! Runs on: anywhere; only at restore.

use super::{FieldSchema, Primitive, Schema};
use crate::codec::{CodecError, StateType, read_length, take};

/// Steps over one value that was written with `schema`.
///
/// # Errors
/// When the bytes end before the value does, or a tag is not one of the schema's.
pub fn skip(schema: &Schema, input: &mut &[u8]) -> Result<(), CodecError> {
    match schema {
        Schema::Primitive(primitive) => skip_primitive(*primitive, input),
        Schema::Option(inner) => match u8::decode(input)? {
            0 => Ok(()),
            1 => skip(inner, input),
            tag => Err(CodecError::UnknownTag { of: schema.to_string(), tag: u32::from(tag) }),
        },
        Schema::List(item) => {
            for _ in 0..read_length(input)? {
                skip(item, input)?;
            }
            Ok(())
        }
        Schema::Array(item, length) => (0..*length).try_for_each(|_| skip(item, input)),
        Schema::Map(key, value) => {
            for _ in 0..read_length(input)? {
                skip(key, input)?;
                skip(value, input)?;
            }
            Ok(())
        }
        Schema::Tuple(items) => items.iter().try_for_each(|item| skip(item, input)),
        Schema::Struct(of) => skip_fields(&of.fields, input),
        Schema::Enum(of) => {
            let index = u32::decode(input)?;
            let variant = of
                .variants
                .get(index as usize)
                .ok_or_else(|| CodecError::UnknownTag { of: of.name.clone(), tag: index })?;
            skip_fields(&variant.fields, input)
        }
        Schema::Opaque { .. } => {
            let length = read_length(input)?;
            take(input, length, "opaque value").map(drop)
        }
    }
}

/// Steps over the fields of a struct or variant.
pub(crate) fn skip_fields(fields: &[FieldSchema], input: &mut &[u8]) -> Result<(), CodecError> {
    fields.iter().try_for_each(|field| skip(&field.schema, input))
}

fn skip_primitive(primitive: Primitive, input: &mut &[u8]) -> Result<(), CodecError> {
    let size = match primitive {
        Primitive::Unit => 0,
        Primitive::Bool | Primitive::U8 | Primitive::I8 => 1,
        Primitive::U16 | Primitive::I16 => 2,
        Primitive::U32 | Primitive::I32 | Primitive::F32 => 4,
        Primitive::U64 | Primitive::I64 | Primitive::F64 => 8,
        Primitive::U128 | Primitive::I128 => 16,
        Primitive::Char => return char::decode(input).map(drop),
        Primitive::String => read_length(input)?,
    };
    take(input, size, "skipped field").map(drop)
}
