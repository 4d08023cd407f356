//! The name of a client, by its certificate.

use super::certificate::{DNS, EMAIL, Malformed, URI, alternative_names, common_names};
use std::collections::HashMap;
use std::fmt;

/// Which names of a certificate are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameField {
    /// The subject's common name.
    CommonName,
    /// Alternative names: host names.
    Dns,
    /// Alternative names: URIs, as SPIFFE has them.
    Uri,
    /// Alternative names: mail addresses.
    Email,
}

/// How a certificate's names become a user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRule {
    /// Which names count.
    pub field: NameField,
    /// The user of each name, byte for byte; a name that is not there is no user's. `None`: the first name is the user's.
    pub users: Option<HashMap<String, String>>,
}

/// Why a verified certificate names no user. The connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdentityError {
    /// It cannot be read.
    Malformed,
    /// A name has bytes that other programs may read as its end, or as nothing.
    UnfitName,
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the names in the client's certificate cannot be read",
            Self::UnfitName => "a name in the client's certificate has bytes that no name has",
        })
    }
}

impl From<Malformed> for IdentityError {
    fn from(Malformed: Malformed) -> Self {
        Self::Malformed
    }
}

impl IdentityRule {
    /// The user that a certificate names, if it names one.
    pub(crate) fn name_in(&self, certificate: &[u8]) -> Result<Option<String>, IdentityError> {
        let names = match self.field {
            NameField::CommonName => common_names(certificate)?,
            NameField::Dns => alternative_names(certificate, DNS)?,
            NameField::Uri => alternative_names(certificate, URI)?,
            NameField::Email => alternative_names(certificate, EMAIL)?,
        };
        // Every one has to be fit, not only the one that counts: such a certificate was made to be misread.
        let names = names.iter().map(|name| fit(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(match &self.users {
            Some(users) => names.iter().find_map(|name| users.get(*name).cloned()),
            None => names.first().map(|name| (*name).to_owned()),
        })
    }
}

/// A name without control characters, spaces around it or nothing in it.
fn fit(name: &[u8]) -> Result<&str, IdentityError> {
    let text = std::str::from_utf8(name).map_err(|_| IdentityError::UnfitName)?;
    let is_fit = !text.is_empty() && !text.chars().any(char::is_control) && text.trim() == text;
    is_fit.then_some(text).ok_or(IdentityError::UnfitName)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn certificate(common_name: &str, dns: &[&str]) -> Vec<u8> {
        let names: Vec<String> = dns.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn rule(field: NameField, users: Option<&[(&str, &str)]>) -> IdentityRule {
        let owned = |users: &[(&str, &str)]| users.iter().map(|(n, u)| ((*n).to_owned(), (*u).to_owned())).collect();
        IdentityRule { field, users: users.map(owned) }
    }

    #[test]
    fn a_name_with_a_nul_or_a_control_character_is_refused_whole() {
        for name in ["admin\0x", "admin\n", "\u{7f}", " admin", "", "admin\u{85}"] {
            let found = rule(NameField::CommonName, None).name_in(&certificate(name, &[]));
            assert_eq!(found, Err(IdentityError::UnfitName), "{name:?}");
        }
        let all = certificate("admin", &[]);
        assert_eq!(rule(NameField::CommonName, None).name_in(&all), Ok(Some("admin".to_owned())));
        assert_eq!(rule(NameField::Dns, None).name_in(&all), Ok(None));
    }

    #[test]
    fn users_are_found_byte_by_byte() {
        let users: &[(&str, &str)] = &[("b.example", "bob"), ("alice", "a")];
        let by_name = |certificate: &[u8]| rule(NameField::CommonName, Some(users)).name_in(certificate).unwrap();
        assert_eq!(by_name(&certificate("alice", &[])), Some("a".to_owned()));
        assert_eq!(by_name(&certificate("Alice", &[])), None);
        assert_eq!(by_name(&certificate("alice2", &[])), None);
        let host = rule(NameField::Dns, Some(users)).name_in(&certificate("x", &["a.example", "b.example"]));
        assert_eq!(host, Ok(Some("bob".to_owned())));
    }
}
