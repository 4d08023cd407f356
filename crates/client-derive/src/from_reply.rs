//! A reply as a struct or an enum.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, FieldsNamed, FieldsUnnamed, Result, parse_quote};

use crate::attributes::{bounded, case_of, fields_of, refuse_all};
use crate::choice;

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let (body, also) = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => (named(input, fields)?, absent_if_empty()),
            Fields::Unnamed(fields) => unnamed(input, fields)?,
            Fields::Unit => return Err(syn::Error::new_spanned(&input.ident, "a struct without fields has no reply")),
        },
        Data::Enum(data) if data.variants.is_empty() => {
            return Err(syn::Error::new_spanned(&input.ident, "an enum without variants has no reply"));
        }
        Data::Enum(data) => (choice::from_reply(input, data)?, TokenStream::new()),
        Data::Union(_) => return Err(syn::Error::new_spanned(&input.ident, "a union has no reply")),
    };
    let name = &input.ident;
    let generics = bounded(&input.generics, &parse_quote!(::respool_client::FromReply));
    let (of, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #of ::respool_client::FromReply for #name #arguments #conditions {
            fn from_reply(
                reply: ::respool_client::Reply,
            ) -> ::core::result::Result<Self, ::respool_client::DecodeError> {
                #body
            }
            #also
        }
    })
}

/// A record without fields is none: a server answers so for a key that does not exist.
fn absent_if_empty() -> TokenStream {
    quote! {
        fn is_absent(reply: &::respool_client::Reply) -> bool {
            ::respool_client::derived::is_no_record(reply)
        }
    }
}

fn named(input: &DeriveInput, fields: &FieldsNamed) -> Result<TokenStream> {
    let fields = fields_of(fields, case_of(&input.attrs)?)?;
    let read: Vec<_> = fields.iter().filter(|field| !field.is_skipped).collect();
    let places: Vec<_> = read.iter().map(|field| format_ident!("field_{}", field.identifier)).collect();
    let types = read.iter().map(|field| field.of);
    let arms = read.iter().zip(&places).map(|(field, place)| {
        let name = &field.name;
        let bytes = proc_macro2::Literal::byte_string(name.as_bytes());
        quote!(#bytes => ::respool_client::derived::read(&mut #place, #name, value)?,)
    });
    let mut taken = read.iter().zip(&places);
    let values = fields.iter().map(|field| {
        let (identifier, name) = (field.identifier, &field.name);
        let Some((_, place)) = (!field.is_skipped).then(|| taken.next()).flatten() else {
            return quote!(#identifier: ::core::default::Default::default(),);
        };
        let value = if field.has_default {
            quote!(#place.unwrap_or_default())
        } else {
            quote!(::respool_client::derived::present(#name, #place)?)
        };
        quote!(#identifier: #value,)
    });
    let values: Vec<_> = values.collect();
    Ok(quote! {
        #(let mut #places: ::core::option::Option<#types> = ::core::option::Option::None;)*
        for entry in ::respool_client::derived::entries(reply) {
            let (name, value) = entry?;
            match &name[..] {
                #(#arms)*
                _ => {}
            }
        }
        ::core::result::Result::Ok(Self { #(#values)* })
    })
}

fn unnamed(input: &DeriveInput, fields: &FieldsUnnamed) -> Result<(TokenStream, TokenStream)> {
    refuse_all(&input.attrs)?;
    fields.unnamed.iter().try_for_each(|field| refuse_all(&field.attrs))?;
    let types: Vec<_> = fields.unnamed.iter().map(|field| &field.ty).collect();
    if let [of] = &types[..] {
        let body = quote!(::core::result::Result::Ok(Self(<#of as ::respool_client::FromReply>::from_reply(reply)?)));
        let also = quote! {
            const TAKES_ERRORS: bool = <#of as ::respool_client::FromReply>::TAKES_ERRORS;

            fn from_absent() -> ::core::option::Option<Self> {
                ::core::option::Option::map(<#of as ::respool_client::FromReply>::from_absent(), Self)
            }

            fn is_absent(reply: &::respool_client::Reply) -> bool {
                <#of as ::respool_client::FromReply>::is_absent(reply)
            }
        };
        return Ok((body, also));
    }
    let count = types.len();
    let body = quote! {
        let mut elements = ::respool_client::derived::elements_of(reply, #count)?;
        ::core::result::Result::Ok(Self(#(::respool_client::derived::next::<#types>(&mut elements)?),*))
    };
    Ok((body, TokenStream::new()))
}
