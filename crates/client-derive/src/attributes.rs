//! What `#[respool(...)]` says, and the names that follow from it.

use std::collections::BTreeMap;

use heck::{ToKebabCase, ToLowerCamelCase, ToPascalCase, ToShoutyKebabCase, ToShoutySnakeCase, ToSnakeCase};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Fields, FieldsNamed, Generics, Ident, LitStr, Result, Type, TypeParamBound, Variant};

/// A case that names are written in.
type Case = fn(&str) -> String;

/// In the order in which an error lists them.
const CASES: [(&str, Case); 8] = [
    ("lowercase", |name| name.to_lowercase()),
    ("UPPERCASE", |name| name.to_uppercase()),
    ("camelCase", |name| name.to_lower_camel_case()),
    ("PascalCase", |name| name.to_pascal_case()),
    ("snake_case", |name| name.to_snake_case()),
    ("SCREAMING_SNAKE_CASE", |name| name.to_shouty_snake_case()),
    ("kebab-case", |name| name.to_kebab_case()),
    ("SCREAMING-KEBAB-CASE", |name| name.to_shouty_kebab_case()),
];

/// A named field of a struct.
pub(crate) struct Field<'a> {
    pub(crate) identifier: &'a Ident,
    pub(crate) of: &'a Type,
    pub(crate) name: String,
    pub(crate) has_default: bool,
    pub(crate) is_skipped: bool,
}

/// What one field or variant is given.
#[derive(Debug, Default)]
struct Given {
    rename: Option<String>,
    has_default: bool,
    is_skipped: bool,
}

/// The case of a type's names; as they are written in Rust if nothing is said.
pub(crate) fn case_of(attributes: &[Attribute]) -> Result<Option<Case>> {
    let mut case = None;
    each(attributes, |meta| {
        if !meta.path.is_ident("rename_all") {
            return Err(meta.error("`rename_all` is known here"));
        }
        let text: LitStr = meta.value()?.parse()?;
        let known = CASES.iter().find(|(name, _)| *name == text.value());
        let names = || CASES.map(|(name, _)| name).join(", ");
        let (_, found) = known.ok_or_else(|| syn::Error::new(text.span(), format!("one of: {}", names())))?;
        if case.replace(*found).is_some() {
            return Err(meta.error("`rename_all` is given twice"));
        }
        Ok(())
    })?;
    Ok(case)
}

/// The named fields of a struct. Two of one name are an error.
pub(crate) fn fields_of(fields: &FieldsNamed, case: Option<Case>) -> Result<Vec<Field<'_>>> {
    let mut seen = BTreeMap::new();
    let mut all = Vec::new();
    for field in &fields.named {
        let given = given_to(&field.attrs, &["rename", "default", "skip"])?;
        let Some(identifier) = &field.ident else { continue };
        let name = name_of(identifier, given.rename, case);
        if !given.is_skipped {
            refuse_twice(&mut seen, &name, identifier)?;
        }
        let Given { has_default, is_skipped, .. } = given;
        all.push(Field { identifier, of: &field.ty, name, has_default, is_skipped });
    }
    if seen.is_empty() {
        return Err(syn::Error::new_spanned(fields, "a struct without fields has no form as arguments or a reply"));
    }
    Ok(all)
}

/// The variants of an enum and their names.
pub(crate) fn variants_of<'a>(
    variants: impl Iterator<Item = &'a Variant>,
    case: Option<Case>,
) -> Result<Vec<(&'a Ident, String)>> {
    let mut seen = BTreeMap::new();
    let mut all = Vec::new();
    for variant in variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(variant, "a variant with fields has no form as arguments or a reply"));
        }
        let given = given_to(&variant.attrs, &["rename"])?;
        let name = name_of(&variant.ident, given.rename, case);
        refuse_twice(&mut seen, &name, &variant.ident)?;
        all.push((&variant.ident, name));
    }
    Ok(all)
}

/// A tuple struct and its fields take nothing: they have no names.
pub(crate) fn refuse_all(attributes: &[Attribute]) -> Result<()> {
    each(attributes, |meta| Err(meta.error("what has no names takes no attribute")))
}

/// With `bound` on every type parameter.
pub(crate) fn bounded(generics: &Generics, bound: &TypeParamBound) -> Generics {
    let mut generics = generics.clone();
    generics.type_params_mut().for_each(|parameter| parameter.bounds.push(bound.clone()));
    generics
}

fn given_to(attributes: &[Attribute], known: &[&str]) -> Result<Given> {
    let mut given = Given::default();
    each(attributes, |meta| {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let is_new = match name.as_str() {
            _ if !known.contains(&name.as_str()) => {
                return Err(meta.error(format!("known here: {}", known.join(", "))));
            }
            "rename" => given.rename.replace(meta.value()?.parse::<LitStr>()?.value()).is_none(),
            "default" => !std::mem::replace(&mut given.has_default, true),
            _ => !std::mem::replace(&mut given.is_skipped, true),
        };
        if is_new { Ok(()) } else { Err(meta.error(format!("`{name}` is given twice"))) }
    })?;
    Ok(given)
}

fn each(attributes: &[Attribute], mut take: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    let ours = attributes.iter().filter(|attribute| attribute.path().is_ident("respool"));
    ours.into_iter().try_for_each(|attribute| attribute.parse_nested_meta(&mut take))
}

fn name_of(identifier: &Ident, renamed: Option<String>, case: Option<Case>) -> String {
    let plain = identifier.unraw().to_string();
    renamed.unwrap_or_else(|| case.map_or(plain.clone(), |case| case(&plain)))
}

fn refuse_twice<'a>(seen: &mut BTreeMap<String, &'a Ident>, name: &str, identifier: &'a Ident) -> Result<()> {
    match seen.insert(name.to_owned(), identifier) {
        None => Ok(()),
        Some(first) => Err(syn::Error::new_spanned(identifier, format!("`{first}` has the name \"{name}\" already"))),
    }
}
