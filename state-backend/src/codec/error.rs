//! [`CodecError`]: why bytes could not be decoded.
//!
//! Owns: the reasons.
//! Does not own: which file, state or record they were in (the caller adds it).
//! Runs on: anywhere.

use crate::schema::SchemaMismatch;

/// Why bytes could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end inside a value.
    #[error("the bytes end inside a value: {of} needs {needed} bytes, {left} are left")]
    UnexpectedEnd {
        /// What was being read.
        of: &'static str,
        /// How many bytes it takes.
        needed: u64,
        /// How many there are.
        left: usize,
    },
    /// The bytes are not those of a value of the built-in type.
    #[error("the bytes are not a valid {of}")]
    Value {
        /// The type.
        of: &'static str,
        /// What bincode found.
        #[source]
        source: bincode::error::DecodeError,
    },
    /// Text that is not UTF-8.
    #[error("the bytes of a String are not UTF-8")]
    Utf8 {
        /// Where it goes wrong.
        #[source]
        source: std::str::Utf8Error,
    },
    /// A tag or variant index that the schema does not have.
    #[error("{of} has no variant with index {tag}")]
    UnknownTag {
        /// The enum or option.
        of: String,
        /// The index found.
        tag: u32,
    },
    /// A field that the writer did not have and that has no default here.
    #[error("field {field} of {of} was not written; make it an Option or mark it #[state(default)]")]
    MissingField {
        /// The struct or variant.
        of: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The writer's schema does not fit the type.
    #[error("the bytes were written as another type")]
    Mismatch {
        /// Where, what was, what is.
        #[from]
        source: SchemaMismatch,
    },
    /// Bytes of a foreign type that this type does not read.
    #[error("the opaque bytes are not a valid {of}")]
    Opaque {
        /// The foreign type.
        of: &'static str,
        /// What bincode found.
        #[source]
        source: bincode::error::DecodeError,
    },
    /// Bytes after the value.
    #[error("{left} bytes follow the {of}")]
    TrailingBytes {
        /// What had been read.
        of: String,
        /// How many follow.
        left: usize,
    },
}
