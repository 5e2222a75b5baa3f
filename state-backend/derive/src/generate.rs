//! The implementation as a whole: struct or enum, bounds of generics, refusals.
//!
//! Owns: the five methods and the shape of the `impl`.
//! Does not own: the code over fields (see `body`).
//! Runs on: the compiler.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::visit::Visit;
use syn::{Data, DataEnum, DeriveInput, Error, Generics, Ident, Result, parse_quote};

use crate::attributes::{Place, Settings};
use crate::body::Body;
use crate::root::library;

/// The five methods of one type.
struct Methods {
    schema: TokenStream,
    encode: TokenStream,
    decode: TokenStream,
    decode_as: TokenStream,
    check: TokenStream,
}

pub(crate) fn state_type(input: &DeriveInput) -> Result<TokenStream> {
    let library = library();
    let settings = Settings::read(&input.attrs, Place::Type)?;
    let methods = match &input.data {
        Data::Struct(of) => {
            let body = Body::new(&of.fields)?;
            refuse_recursion(&input.ident, &body)?;
            struct_methods(&library, &input.ident, &body)
        }
        Data::Enum(of) => enum_methods(&library, &input.ident, of)?,
        Data::Union(of) => {
            return Err(Error::new(
                of.union_token.span,
                "a union cannot be state: nothing says which of its fields is alive; use an enum",
            ));
        }
    };
    Ok(implementation(&library, input, &settings, &methods))
}

fn implementation(
    library: &TokenStream,
    input: &DeriveInput,
    settings: &Settings,
    methods: &Methods,
) -> TokenStream {
    let ident = &input.ident;
    let generics = bounded(library, &input.generics);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let names = settings.names(ident.to_string().trim_start_matches("r#"));
    let version = settings.version.unwrap_or(1);
    let Methods { schema, encode, decode, decode_as, check } = methods;
    let own_type = quote! {
        #[allow(unused_variables)]
        let own_type = #library::codec::derive_support::OwnType {
            names: &[#(#names),*],
            version: #version,
            schema: <Self as #library::StateType>::schema,
        };
    };
    let name = &names[0];
    quote! {
        #[automatically_derived]
        #[allow(clippy::all, unused_mut, unused_variables, unreachable_code, non_snake_case)]
        impl #impl_generics #library::StateType for #ident #type_generics #where_clause {
            fn schema() -> #library::Schema {
                #library::codec::derive_support::building::<Self>(|| {
                    let name = ::std::string::String::from(#name);
                    let version = #version;
                    #schema
                })
            }

            #[inline]
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                #encode
            }

            #[inline]
            fn decode(input: &mut &[u8]) -> ::core::result::Result<Self, #library::CodecError> {
                #decode
            }

            fn decode_as(
                writer: &#library::Schema,
                input: &mut &[u8],
            ) -> ::core::result::Result<Self, #library::CodecError> {
                #own_type
                #decode_as
            }

            fn check(writer: &#library::Schema) -> ::core::result::Result<(), #library::SchemaMismatch> {
                #own_type
                #check
            }
        }
    }
}

fn struct_methods(library: &TokenStream, ident: &Ident, body: &Body) -> Methods {
    let (braces, fields, own) = (body.braces(), body.schema(library), body.own(library));
    let (encode, of) = (body.encode(library), ident.to_string());
    let decode_as = body.decode_as(library, &quote!(Self), &of);
    Methods {
        schema: quote! {
            #library::Schema::Struct(#library::schema::StructSchema { name, version, fields: #fields })
        },
        encode: quote!(let Self #braces = self; #encode),
        decode: body.decode(library, &quote!(Self)),
        decode_as: quote!(let fields = own_type.struct_fields(writer)?; #decode_as),
        check: quote! {
            let fields = own_type.struct_fields(writer)?;
            #library::codec::derive_support::check_fields(fields, #own)
        },
    }
}

fn enum_methods(library: &TokenStream, ident: &Ident, of: &DataEnum) -> Result<Methods> {
    let support = quote!(#library::codec::derive_support);
    let enum_name = ident.to_string();
    let (mut schemas, mut encodes, mut decodes, mut decodes_as, mut owns) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, variant) in of.variants.iter().enumerate() {
        let settings = Settings::read(&variant.attrs, Place::Variant)?;
        let body = Body::new(&variant.fields)?;
        refuse_recursion(ident, &body)?;
        let (variant, index) = (&variant.ident, index as u32);
        let names = settings.names(variant.to_string().trim_start_matches("r#"));
        let (name, constructor) = (&names[0], quote!(Self::#variant));
        let (braces, fields, encode) = (body.braces(), body.schema(library), body.encode(library));
        schemas.push(quote!(#library::schema::VariantSchema { name: #name.into(), fields: #fields }));
        encodes.push(quote! {
            Self::#variant #braces => { <u32 as #library::StateType>::encode(&#index, out); #encode }
        });
        let decode = body.decode(library, &constructor);
        decodes.push(quote!(#index => #decode));
        let decode_as = body.decode_as(library, &constructor, &format!("{enum_name}::{variant}"));
        decodes_as.push(quote!(#(#names)|* => { let fields = &written.fields; #decode_as }));
        let own = body.own(library);
        owns.push(quote!(#support::OwnVariant { names: &[#(#names),*], fields: #own }));
    }
    let unknown = quote! {
        ::core::result::Result::Err(#library::CodecError::UnknownTag { of: #enum_name.into(), tag: index })
    };
    let encode =
        if encodes.is_empty() { quote!(match *self {}) } else { quote!(match self { #(#encodes),* }) };
    Ok(Methods {
        schema: quote! {
            #library::Schema::Enum(#library::schema::EnumSchema {
                name, version, variants: ::std::vec![#(#schemas),*],
            })
        },
        encode,
        decode: quote! {
            let index = <u32 as #library::StateType>::decode(input)?;
            match index { #(#decodes,)* _ => #unknown }
        },
        decode_as: quote! {
            let variants = own_type.enum_variants(writer)?;
            let (index, written) = #support::read_variant(#enum_name, variants, input)?;
            match written.name.as_str() { #(#decodes_as,)* _ => #unknown }
        },
        check: quote! {
            let variants = own_type.enum_variants(writer)?;
            #support::check_variants(variants, &[#(#owns),*])
        },
    })
}

/// Adds `T: StateType` for each type parameter.
fn bounded(library: &TokenStream, generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#library::StateType));
    }
    generics
}

/// Refuses a field whose type names the type itself: its schema would have no end.
fn refuse_recursion(ident: &Ident, body: &Body) -> Result<()> {
    struct Names<'i>(&'i Ident, bool);
    impl Visit<'_> for Names<'_> {
        fn visit_path(&mut self, path: &syn::Path) {
            let own = |name: &Ident| name == self.0 || name == "Self";
            self.1 |= path.segments.last().is_some_and(|last| own(&last.ident)) && path.segments.len() == 1;
            syn::visit::visit_path(self, path);
        }
    }
    for field in body.fields.iter().filter(|field| !field.settings.opaque) {
        let mut names = Names(ident, false);
        names.visit_type(&field.ty);
        if names.1 {
            return Err(Error::new_spanned(
                field.ty.to_token_stream(),
                format!(
                    "{ident} contains itself, and a recursive type has no finite schema; \
                    mark this field #[state(opaque)]"
                ),
            ));
        }
    }
    Ok(())
}
