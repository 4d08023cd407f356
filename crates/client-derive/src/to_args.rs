//! A struct or an enum as arguments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, FieldsNamed, FieldsUnnamed, Index, Result, TypeParamBound, parse_quote};

use crate::attributes::{bounded, case_of, fields_of, refuse_all};
use crate::choice;

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    // Named fields and variants are one argument each, which a parameter must be as well.
    let arguments: TypeParamBound = parse_quote!(::respool_client::ToArgs);
    let value: TypeParamBound = parse_quote!(::respool_client::derived::ToValue);
    let (body, bound, is_one) = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => (named(input, fields)?, value, false),
            Fields::Unnamed(fields) => (unnamed(input, fields)?, arguments, false),
            Fields::Unit => {
                return Err(syn::Error::new_spanned(&input.ident, "a struct without fields has no arguments"));
            }
        },
        Data::Enum(data) if data.variants.is_empty() => {
            return Err(syn::Error::new_spanned(&input.ident, "an enum without variants has no arguments"));
        }
        Data::Enum(data) => (choice::to_args(input, data)?, arguments, true),
        Data::Union(_) => return Err(syn::Error::new_spanned(&input.ident, "a union has no arguments")),
    };
    let name = &input.ident;
    let generics = bounded(&input.generics, &bound);
    let (of, parameters, conditions) = generics.split_for_impl();
    let one = is_one.then(|| {
        quote! {
            #[automatically_derived]
            impl #of ::respool_client::commands::ToArg for #name #parameters #conditions {}
        }
    });
    // One field is the struct in everything, two are a pair.
    let value = match &input.data {
        Data::Struct(data) if matches!(data.fields, Fields::Unnamed(_)) && data.fields.len() <= 2 => {
            data.fields.len().checked_sub(1).map(Index::from)
        }
        _ => None,
    };
    let absent = value.map(|value| {
        quote! {
            fn is_absent(&self) -> bool {
                ::respool_client::ToArgs::is_absent(&self.#value)
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #of ::respool_client::ToArgs for #name #parameters #conditions {
            fn write_args(&self, command: &mut ::respool_client::Command) {
                #body
            }
            #absent
        }
        #one
    })
}

fn named(input: &DeriveInput, fields: &FieldsNamed) -> Result<TokenStream> {
    let fields = fields_of(fields, case_of(&input.attrs)?)?;
    let written = fields.iter().filter(|field| !field.is_skipped).map(|field| {
        let (identifier, name) = (field.identifier, &field.name);
        quote!(::respool_client::derived::ToValue::write_named(&self.#identifier, #name, command);)
    });
    Ok(quote!(#(#written)*))
}

fn unnamed(input: &DeriveInput, fields: &FieldsUnnamed) -> Result<TokenStream> {
    refuse_all(&input.attrs)?;
    fields.unnamed.iter().try_for_each(|field| refuse_all(&field.attrs))?;
    let places = (0..fields.unnamed.len()).map(Index::from);
    Ok(quote!(#(::respool_client::ToArgs::write_args(&self.#places, command);)*))
}
