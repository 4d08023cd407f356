//! Derives of the Respool client: a struct or an enum as the arguments of a request and as a reply.
//!
//! Used through `respool-client` with its feature `derive`, where the traits and the derives have one name each.
//!
//! | type | as arguments (`ToArgs`) | from a reply (`FromReply`) |
//! |---|---|---|
//! | struct with named fields | name and value of each field, in their order | a map, by the names; other names are passed over |
//! | tuple struct of one field | the field | the field |
//! | tuple struct of several fields | the fields, in their order | an array of exactly as many elements |
//! | enum without fields | the variant's name; one argument (`ToArg`) | a text that is a variant's name |
//!
//! `#[respool(...)]` on a type:
//!
//! * `rename_all = "..."`: the case of all names: `lowercase`, `UPPERCASE`, `camelCase`, `PascalCase`, `snake_case`,
//!   `SCREAMING_SNAKE_CASE`, `kebab-case`, `SCREAMING-KEBAB-CASE`.
//!
//! On a named field or a variant:
//!
//! * `rename = "..."`: its name;
//! * `default` (fields): [`Default`] if the reply has no such name. An `Option` is `None` without it;
//! * `skip` (fields): not written, and [`Default`] when it is read.
//!
//! A named field is one argument; an `Option` that is `None` is left out with its name, and so is a tuple struct of two fields whose second is
//! `None` where it is one of several elements. An error names the field that it is about. A map
//! without entries is how a server answers for a key that does not exist: `Option<Struct>` makes it `None`.
#![forbid(unsafe_code)]

mod attributes;
mod choice;
mod from_reply;
mod to_args;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a value of a reply. See the [crate](self).
#[proc_macro_derive(FromReply, attributes(respool))]
pub fn derive_from_reply(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    from_reply::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes arguments of a value. See the [crate](self).
#[proc_macro_derive(ToArgs, attributes(respool))]
pub fn derive_to_args(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    to_args::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
