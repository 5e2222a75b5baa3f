//! Schemas as text: close to how the type was written in Rust.
//!
//! Owns: [`Display`](fmt::Display) of schemas.
//! Does not own: their byte encoding.
//! Runs on: anywhere; only for messages.

use std::fmt::{self, Write};

use super::{FieldSchema, Primitive, Schema};

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unit => "()",
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I128 => "i128",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Char => "char",
            Self::String => "String",
        })
    }
}

impl Schema {
    /// The schema as a type's name, without what is inside a struct or enum.
    pub fn short(&self) -> String {
        match self {
            Self::Struct(of) => of.name.clone(),
            Self::Enum(of) => of.name.clone(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(primitive) => primitive.fmt(f),
            Self::Option(inner) => write!(f, "Option<{inner}>"),
            Self::List(item) => write!(f, "List<{item}>"),
            Self::Array(item, length) => write!(f, "[{item}; {length}]"),
            Self::Map(key, value) => write!(f, "Map<{key}, {value}>"),
            Self::Tuple(items) => {
                f.write_char('(')?;
                separated(f, items.iter())?;
                f.write_char(')')
            }
            Self::Struct(of) => {
                f.write_str(&of.name)?;
                fields(f, &of.fields)
            }
            Self::Enum(of) => {
                write!(f, "{} {{ ", of.name)?;
                for (index, variant) in of.variants.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { " | " })?;
                    f.write_str(&variant.name)?;
                    fields(f, &variant.fields)?;
                }
                f.write_str(" }")
            }
            Self::Opaque { name } => write!(f, "opaque {name}"),
        }
    }
}

fn fields(f: &mut fmt::Formatter<'_>, fields: &[FieldSchema]) -> fmt::Result {
    if fields.is_empty() {
        return Ok(());
    }
    f.write_str(" { ")?;
    separated(f, fields.iter().map(|field| format!("{}: {}", field.name, field.schema)))?;
    f.write_str(" }")
}

fn separated(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = impl fmt::Display>) -> fmt::Result {
    for (index, item) in items.enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        item.fmt(f)?;
    }
    Ok(())
}
