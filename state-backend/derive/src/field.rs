//! One field: what is generated for it in each method.
//!
//! Owns: the difference between a plain and an opaque field.
//! Does not own: the methods around it (see `body` and `generate`).
//! Runs on: the compiler.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, Result, Type};

use crate::attributes::{Place, Settings};

/// One field of a struct or variant.
pub(crate) struct Field {
    /// How it is named in the schema.
    pub(crate) name: String,
    /// The variable it is bound to in generated code.
    pub(crate) binding: Ident,
    /// How it is named in patterns and constructors (`a`, `0`).
    pub(crate) member: syn::Member,
    pub(crate) ty: Type,
    pub(crate) settings: Settings,
}

impl Field {
    pub(crate) fn new(index: usize, field: &syn::Field) -> Result<Self> {
        let settings = Settings::read(&field.attrs, Place::Field)?;
        let (name, member) = match &field.ident {
            Some(ident) => (ident.to_string(), syn::Member::Named(ident.clone())),
            None => (index.to_string(), syn::Member::Unnamed(index.into())),
        };
        let name = name.trim_start_matches("r#").to_owned();
        let binding = format_ident!("field_{index}", span = Span::mixed_site());
        Ok(Self { name, binding, member, ty: field.ty.clone(), settings })
    }

    /// The foreign type as its user spelled it, without spaces.
    fn spelled(&self) -> String {
        self.ty.to_token_stream().to_string().replace(' ', "")
    }

    pub(crate) fn schema(&self, library: &TokenStream) -> TokenStream {
        let (ty, spelled) = (&self.ty, self.spelled());
        match self.settings.opaque {
            true => quote!(#library::codec::derive_support::opaque_schema(#spelled)),
            false => quote!(<#ty as #library::StateType>::schema()),
        }
    }

    pub(crate) fn encode(&self, library: &TokenStream) -> TokenStream {
        let (ty, binding) = (&self.ty, &self.binding);
        match self.settings.opaque {
            true => quote!(#library::codec::derive_support::encode_opaque::<#ty>(#binding, out);),
            false => quote!(<#ty as #library::StateType>::encode(#binding, out);),
        }
    }

    pub(crate) fn decode(&self, library: &TokenStream) -> TokenStream {
        let (ty, spelled) = (&self.ty, self.spelled());
        match self.settings.opaque {
            true => quote!(#library::codec::derive_support::decode_opaque::<#ty>(#spelled, input)?),
            false => quote!(<#ty as #library::StateType>::decode(input)?),
        }
    }

    /// The arm of the match over the writer's field names.
    pub(crate) fn decode_arm(&self, library: &TokenStream) -> TokenStream {
        let (ty, spelled, binding) = (&self.ty, self.spelled(), &self.binding);
        let names = self.settings.names(&self.name);
        let value = match self.settings.opaque {
            true => quote!({
                #library::codec::derive_support::check_opaque(#spelled, &written.schema)?;
                #library::codec::derive_support::decode_opaque::<#ty>(#spelled, input)?
            }),
            false => quote!(<#ty as #library::StateType>::decode_as(&written.schema, input)?),
        };
        quote!(#(#names)|* => #binding = ::core::option::Option::Some(#value),)
    }

    /// The value of the field after all of the writer's fields are read.
    pub(crate) fn or_absent(&self, library: &TokenStream, of: &str) -> TokenStream {
        let (ty, binding, name) = (&self.ty, &self.binding, &self.name);
        let missing = quote!(#library::CodecError::MissingField { of: #of, field: #name });
        let absent = match (self.settings.default, self.settings.opaque) {
            (true, _) => quote!(<#ty as ::core::default::Default>::default()),
            (false, true) => quote!(return ::core::result::Result::Err(#missing)),
            (false, false) => quote! {
                match <#ty as #library::StateType>::absent() {
                    ::core::option::Option::Some(value) => value,
                    ::core::option::Option::None => return ::core::result::Result::Err(#missing),
                }
            },
        };
        quote! {
            let #binding: #ty = match #binding {
                ::core::option::Option::Some(value) => value,
                ::core::option::Option::None => #absent,
            };
        }
    }

    /// The `OwnField` that the checks use.
    pub(crate) fn own(&self, library: &TokenStream) -> TokenStream {
        let (ty, spelled) = (&self.ty, self.spelled());
        let names = self.settings.names(&self.name);
        let (check, may_be_absent) = match self.settings.opaque {
            true => (
                quote!(|writer| #library::codec::derive_support::check_opaque(#spelled, writer)),
                quote!(false),
            ),
            false => (
                quote!(<#ty as #library::StateType>::check),
                quote!(<#ty as #library::StateType>::absent().is_some()),
            ),
        };
        let may_be_absent = if self.settings.default { quote!(true) } else { may_be_absent };
        let schema = self.schema(library);
        quote! {
            #library::codec::derive_support::OwnField {
                names: &[#(#names),*],
                check: #check,
                schema: || #schema,
                may_be_absent: #may_be_absent,
            }
        }
    }
}
