//! An enum without fields: each variant is its name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Result};

use crate::attributes::{case_of, variants_of};

/// The variant of a text.
pub(crate) fn from_reply(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let variants = variants_of(data.variants.iter(), case_of(&input.attrs)?)?;
    let arms = variants.iter().map(|(variant, name)| quote!(#name => ::core::result::Result::Ok(Self::#variant),));
    let expected = format!("one of {}", variants.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", "));
    Ok(quote! {
        let text = <::std::string::String as ::respool_client::FromReply>::from_reply(reply)?;
        match text.as_str() {
            #(#arms)*
            _ => ::core::result::Result::Err(::respool_client::DecodeError::Invalid(#expected)),
        }
    })
}

/// The name of a variant.
pub(crate) fn to_args(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let variants = variants_of(data.variants.iter(), case_of(&input.attrs)?)?;
    let arms = variants.iter().map(|(variant, name)| quote!(Self::#variant => #name,));
    Ok(quote! {
        let name: &str = match *self { #(#arms)* };
        command.push(name.as_bytes());
    })
}
