//! The names in a certificate: its subject's common names and its alternative names, as the bytes that stand there.
//!
//! Only certificates that were verified come here. Even so nothing is trusted: what does not read as a certificate ends the
//! reading with [`Malformed`], and both its size and the number of names are bounded.

use crate::limits::{CERTIFICATE_BYTES_MAX, CERTIFICATE_NAMES_MAX};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::{Any, ObjectIdentifier};
use x509_cert::der::{self, Decode, Tag, TagNumber, Tagged};

/// The certificate cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl From<der::Error> for Malformed {
    fn from(_: der::Error) -> Self {
        Self
    }
}

/// Kinds of strings in which a common name can be taken byte by byte.
const PLAIN_STRINGS: [Tag; 3] = [Tag::Utf8String, Tag::PrintableString, Tag::Ia5String];

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// Tags of alternative names.
pub(super) const EMAIL: TagNumber = TagNumber(1);
pub(super) const DNS: TagNumber = TagNumber(2);
pub(super) const URI: TagNumber = TagNumber(6);

/// Reads a certificate. Serial numbers and times are taken as they are: the verification has judged them.
fn parse(bytes: &[u8]) -> Result<CertificateInner<Raw>, Malformed> {
    if bytes.len() > CERTIFICATE_BYTES_MAX {
        return Err(Malformed);
    }
    Ok(CertificateInner::from_der(bytes)?)
}

/// The subject's common names, in order.
pub(super) fn common_names(certificate: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
    let certificate = parse(certificate)?;
    let mut names = Vec::new();
    for attribute in certificate.tbs_certificate().subject().iter().filter(|attribute| attribute.oid == COMMON_NAME) {
        if !PLAIN_STRINGS.contains(&attribute.value.tag()) {
            return Err(Malformed);
        }
        push(&mut names, attribute.value.value())?;
    }
    Ok(names)
}

/// The alternative names with that tag, in order.
pub(super) fn alternative_names(certificate: &[u8], wanted: TagNumber) -> Result<Vec<Vec<u8>>, Malformed> {
    let certificate = parse(certificate)?;
    let wanted = Tag::ContextSpecific { constructed: false, number: wanted };
    let mut names = Vec::new();
    let extensions = certificate.tbs_certificate().extensions().into_iter().flatten();
    for extension in extensions.filter(|extension| extension.extn_id == SUBJECT_ALT_NAME) {
        // Element by element: a kind of name that is not wanted need not be one that can be read.
        for name in Vec::<Any>::from_der(extension.extn_value.as_bytes())?.iter().filter(|name| name.tag() == wanted) {
            push(&mut names, name.value())?;
        }
    }
    Ok(names)
}

fn push(names: &mut Vec<Vec<u8>>, name: &[u8]) -> Result<(), Malformed> {
    if names.len() == CERTIFICATE_NAMES_MAX {
        return Err(Malformed);
    }
    names.push(name.to_vec());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn certificate(common_name: &str, dns: &[&str], uri: &str) -> Vec<u8> {
        let names: Vec<String> = dns.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::OrganizationName, "an organisation of a longer name than most, so that the length takes more than one byte to write, which is what happens above one hundred and twenty-seven");
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn names_come_as_the_bytes_that_stand_there() {
        let der = certificate("admin\0x", &["a.example", "b.example"], "spiffe://trust/alice");
        assert_eq!(common_names(&der), Ok(vec![b"admin\0x".to_vec()]));
        assert_eq!(alternative_names(&der, DNS), Ok(vec![b"a.example".to_vec(), b"b.example".to_vec()]));
        assert_eq!(alternative_names(&der, URI), Ok(vec![b"spiffe://trust/alice".to_vec()]));
        assert_eq!(alternative_names(&der, EMAIL), Ok(vec![]));
    }

    #[test]
    fn kinds_of_names_that_are_not_wanted_are_passed_over() {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        // 1.3.6.1.4.1.311.20.2.3, the name of a user in a Windows domain.
        let oid = vec![1, 3, 6, 1, 4, 1, 311, 20, 2, 3];
        params.subject_alt_names.push(SanType::OtherName((oid, "alice@corp".to_owned().into())));
        params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        params.subject_alt_names.push(SanType::Rfc822Name("a@a.example".try_into().unwrap()));
        params.serial_number = Some(vec![0x7f; 24].into());
        let der = params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec();
        assert_eq!(alternative_names(&der, DNS), Ok(vec![b"a.example".to_vec()]));
        assert_eq!(alternative_names(&der, EMAIL), Ok(vec![b"a@a.example".to_vec()]));
        assert_eq!(alternative_names(&der, URI), Ok(vec![]));
    }

    #[test]
    fn no_cut_and_no_flipped_byte_makes_it_panic() {
        let der = certificate("alice", &["a.example"], "urn:a");
        for length in 0..der.len() {
            assert_eq!(common_names(&der[..length]), Err(Malformed));
        }
        for at in 0..der.len() {
            for bit in 0..8 {
                let mut bad = der.clone();
                bad[at] ^= 1 << bit;
                let _ = (common_names(&bad), alternative_names(&bad, DNS));
            }
        }
    }
}
