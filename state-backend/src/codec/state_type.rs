//! [`StateType`]: what may be kept as state, travel between processes, or serve as a key.
//!
//! Owns: the trait and the rules of evolution.
//! Does not own: its implementations (beside this file, and by derive).
//! Runs on: anywhere.

use super::{CodecError, hash};
use crate::schema::{Schema, SchemaMismatch};

/// A type whose values can be stored and read again, also by a later version of the program.
///
/// Primitives, tuples and the collections of `std` have it built in; structs and enums get it by
/// `#[derive(StateType)]`. A value is read by the schema of its *writer*:
///
/// - fields are matched by name: one that is no longer there is skipped, one that is new must be an `Option`
///   (reads as `None`) or be marked `#[state(default)]`; `#[state(renamed_from = "old")]` keeps a renamed one;
/// - variants are matched by name, whatever their order; one that is no longer there is refused;
/// - a type's name must stay, or be named by `#[state(renamed_from = "Old")]`; a `#[state(version = N)]` that is
///   lower than the writer's is refused;
/// - a scalar never changes its type silently: `i32` to `i64` is a mismatch.
///
/// `#[state(opaque)]` on a field keeps a foreign serde type as a blob with its name; it does not evolve.
///
/// ```
/// use tidegate_state::StateType;
///
/// #[derive(Clone, Debug, PartialEq, StateType)]
/// struct Totals {
///     orders: u64,
///     amount_cents: i64,
///     note: Option<String>,
/// }
///
/// let totals = Totals { orders: 2, amount_cents: 350, note: None };
/// let mut bytes = Vec::new();
/// totals.encode(&mut bytes);
/// assert_eq!(Totals::decode(&mut bytes.as_slice()).unwrap(), totals);
/// ```
///
/// Unions are refused:
///
/// ```compile_fail
/// #[derive(Clone, Copy, tidegate_state::StateType)]
/// union Both { whole: u32, parts: [u8; 4] }
/// ```
///
/// So is a type that contains itself, unless that field is opaque:
///
/// ```compile_fail
/// #[derive(Clone, tidegate_state::StateType)]
/// struct Tree { children: Vec<Tree> }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept as state",
    label = "does not implement `StateType`",
    note = "add `#[derive(StateType)]` to it, or mark the field `#[state(opaque)]` if it is a foreign serde type"
)]
pub trait StateType: Clone + Send + Sync + 'static {
    /// The shape of the bytes that [`encode`](Self::encode) writes.
    fn schema() -> Schema;

    /// Appends the value to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads a value that was written with [`Self::schema`], and moves `input` behind it.
    ///
    /// # Errors
    /// When the bytes are not such a value.
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError>;

    /// Reads a value that was written with the schema `writer`, and moves `input` behind it.
    ///
    /// # Errors
    /// When the bytes are not such a value, or [`Self::check`] would refuse the schema.
    fn decode_as(writer: &Schema, input: &mut &[u8]) -> Result<Self, CodecError>;

    /// May a value written with the schema `writer` be read as this type?
    ///
    /// # Errors
    /// The first place at which it may not.
    fn check(writer: &Schema) -> Result<(), SchemaMismatch>;

    /// The hash that serves routing, key group and table probe: xxh3, 64 bits, seed 0, of the encoding.
    #[inline]
    fn key_hash(&self) -> u64 {
        hash::hash_encoding(self)
    }

    /// What a field of this type reads as when the writer did not have it; `None` when there is no such value.
    #[doc(hidden)]
    fn absent() -> Option<Self> {
        None
    }
}
