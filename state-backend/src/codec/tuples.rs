//! Tuples of up to six items: the items in turn.
//!
//! Owns: [`StateType`] of tuples.
//! Does not own: tuple structs (by derive).
//! Runs on: anywhere.

use super::{CodecError, StateType};
use crate::schema::{Schema, SchemaMismatch};

/// The items of a tuple schema of the right length.
fn items(writer: &Schema, length: usize, own: fn() -> Schema) -> Result<&[Schema], SchemaMismatch> {
    match writer {
        Schema::Tuple(items) if items.len() == length => Ok(items),
        _ => Err(SchemaMismatch::between(writer, &own())),
    }
}

macro_rules! tuple {
    ($length:literal: $($item:ident $index:tt),*) => {
        impl<$($item: StateType),*> StateType for ($($item,)*) {
            fn schema() -> Schema {
                Schema::Tuple(vec![$($item::schema()),*])
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$index.encode(out);)*
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
                Ok(($($item::decode(input)?,)*))
            }

            fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError> {
                let items = items(writer, $length, Self::schema)?;
                Ok(($($item::decode_as(&items[$index], input)?,)*))
            }

            fn check(writer: &Schema) -> Result<(), SchemaMismatch> {
                let items = items(writer, $length, Self::schema)?;
                $($item::check(&items[$index]).map_err(|mismatch| mismatch.within(stringify!($index)))?;)*
                Ok(())
            }
        }
    };
}

tuple!(1: A 0);
tuple!(2: A 0, B 1);
tuple!(3: A 0, B 1, C 2);
tuple!(4: A 0, B 1, C 2, D 3);
tuple!(5: A 0, B 1, C 2, D 3, E 4);
tuple!(6: A 0, B 1, C 2, D 3, E 4, F 5);
