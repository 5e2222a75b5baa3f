//! Opaque fields: a foreign serde type as a blob with its name.
//!
//! Owns: the frame (`u64` length, then bincode's serde bytes).
//! Does not own: any evolution; another type name is a mismatch.
//! Runs on: anywhere.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CONFIG, CodecError, StateType, read_length, take};
use crate::schema::{Schema, SchemaMismatch};

/// Appends a foreign value as a blob.
///
/// # Panics
/// When the type's own `Serialize` fails: such a value has no bytes.
#[doc(hidden)]
pub fn encode_opaque<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    let start = out.len();
    0u64.encode(out);
    bincode::serde::encode_into_std_write(value, out, CONFIG)
        .expect("the Serialize of an opaque field gives its bytes");
    let length = (out.len() - start - 8) as u64;
    out[start..start + 8].copy_from_slice(&length.to_le_bytes());
}

/// Reads a foreign value from its blob.
#[doc(hidden)]
pub fn decode_opaque<T: DeserializeOwned>(of: &'static str, input: &mut &[u8]) -> Result<T, CodecError> {
    let length = read_length(input)?;
    let blob = take(input, length, "opaque value")?;
    let (value, used) = bincode::serde::decode_from_slice(blob, CONFIG)
        .map_err(|source| CodecError::Opaque { of, source })?;
    if used != blob.len() {
        return Err(CodecError::TrailingBytes { of: of.into(), left: blob.len() - used });
    }
    Ok(value)
}

/// Refuses every schema but the blob of the same type.
#[doc(hidden)]
pub fn check_opaque(of: &'static str, writer: &Schema) -> Result<(), SchemaMismatch> {
    match writer {
        Schema::Opaque { name } if name == of => Ok(()),
        _ => Err(SchemaMismatch::between(writer, &opaque_schema(of))),
    }
}

/// The schema of a blob.
#[doc(hidden)]
pub fn opaque_schema(of: &'static str) -> Schema {
    Schema::Opaque { name: of.into() }
}
