//! Where the generated code finds the library: directly, or through the crate that the user depends on.
//!
//! Owns: the search order.
//! Does not own: the re-exports it relies on.
//! Runs on: the compiler.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The path of the crate whose root has `StateType`.
pub(crate) fn library() -> TokenStream {
    let candidates: [(&str, &str, TokenStream); 3] = [
        ("tidegate-state", "tidegate_state", quote!()),
        ("tidegate", "tidegate", quote!(::state)),
        ("tidegate-engine", "tidegate_engine", quote!(::state)),
    ];
    for (package, library, inside) in candidates {
        match crate_name(package) {
            Ok(FoundCrate::Itself) => {
                let library = format_ident!("{library}");
                return quote!(::#library #inside);
            }
            Ok(FoundCrate::Name(name)) => {
                let name = format_ident!("{name}");
                return quote!(::#name #inside);
            }
            Err(_) => {}
        }
    }
    quote!(::tidegate_state)
}
