//! `#[derive(StateType)]`: codec, schema and decoding by the writer's schema for structs and enums.
//!
//! Owns: the generated code and its compile errors.
//! Does not own: the trait and the rules of evolution (`tidegate_state::StateType`), nor the matching of names,
//! which the generated code calls in `tidegate_state::codec::derive_support`.
//! Runs on: the compiler.

mod attributes;
mod body;
mod field;
mod generate;
mod root;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `StateType` for a struct or an enum.
///
/// On the type and on variants and fields: `#[state(renamed_from = "old")]`; on the type `#[state(version = N)]`;
/// on fields `#[state(default)]` and `#[state(opaque)]`.
#[proc_macro_derive(StateType, attributes(state))]
pub fn derive_state_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    generate::state_type(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
