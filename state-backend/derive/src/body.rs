//! The fields of a struct or of one variant, together: pattern, constructor, encode, decode, check.
//!
//! Owns: code over all fields of one body.
//! Does not own: a single field's code (see `field`), nor the choice of a variant (see `generate`).
//! Runs on: the compiler.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Fields, Result};

use crate::field::Field;

/// The fields of a struct or variant.
pub(crate) struct Body {
    pub(crate) fields: Vec<Field>,
}

impl Body {
    pub(crate) fn new(fields: &Fields) -> Result<Self> {
        let fields = fields.iter().enumerate().map(|(index, field)| Field::new(index, field));
        Ok(Self { fields: fields.collect::<Result<_>>()? })
    }

    /// `{ a: field_0, 1: field_1 }`: serves as pattern and as constructor, for all three kinds of bodies.
    pub(crate) fn braces(&self) -> TokenStream {
        let members = self.fields.iter().map(|field| &field.member);
        let bindings = self.fields.iter().map(|field| &field.binding);
        quote!({ #(#members: #bindings),* })
    }

    pub(crate) fn schema(&self, library: &TokenStream) -> TokenStream {
        let fields = self.fields.iter().map(|field| {
            let (name, schema) = (&field.name, field.schema(library));
            quote!(#library::schema::FieldSchema { name: #name.into(), schema: #schema })
        });
        quote!(::std::vec![#(#fields),*])
    }

    pub(crate) fn encode(&self, library: &TokenStream) -> TokenStream {
        self.fields.iter().map(|field| field.encode(library)).collect()
    }

    /// Reads the fields in the reader's own order and builds `constructor`.
    pub(crate) fn decode(&self, library: &TokenStream, constructor: &TokenStream) -> TokenStream {
        let lets = self.fields.iter().map(|field| {
            let (binding, value) = (&field.binding, field.decode(library));
            quote!(let #binding = #value;)
        });
        let braces = self.braces();
        quote!({ #(#lets)* ::core::result::Result::Ok(#constructor #braces) })
    }

    /// Reads the fields in the writer's order (`fields`) and builds `constructor`.
    pub(crate) fn decode_as(
        &self,
        library: &TokenStream,
        constructor: &TokenStream,
        of: &str,
    ) -> TokenStream {
        let empty = self.fields.iter().map(|field| {
            let (binding, ty) = (&field.binding, &field.ty);
            quote!(let mut #binding: ::core::option::Option<#ty> = ::core::option::Option::None;)
        });
        let arms = self.fields.iter().map(|field| field.decode_arm(library));
        let filled = self.fields.iter().map(|field| field.or_absent(library, of));
        let braces = self.braces();
        quote!({
            #(#empty)*
            for written in fields {
                match written.name.as_str() {
                    #(#arms)*
                    _ => #library::codec::derive_support::skip(&written.schema, input)?,
                }
            }
            #(#filled)*
            ::core::result::Result::Ok(#constructor #braces)
        })
    }

    pub(crate) fn own(&self, library: &TokenStream) -> TokenStream {
        let fields = self.fields.iter().map(|field| field.own(library));
        quote!(&[#(#fields),*])
    }
}
