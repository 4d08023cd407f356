//! The names in a certificate: its subject's common names and its alternative names, as the bytes that stand there.
//!
//! Only certificates that were verified come here. Even so nothing is trusted: whatever does not read as DER with definite
//! lengths ends the reading with [`Malformed`], no byte is looked at twice, and nothing is allocated for a declared length.

use crate::limits::{CERTIFICATE_BYTES_MAX, CERTIFICATE_NAMES_MAX};

/// The certificate cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Kinds of strings in which a common name can be taken byte by byte: UTF-8, printable and IA5.
const PLAIN_STRINGS: [u8; 3] = [0x0c, 0x13, 0x16];

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.29.17
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// Tags of alternative names.
pub(super) const EMAIL: u8 = 0x81;
pub(super) const DNS: u8 = 0x82;
pub(super) const URI: u8 = 0x86;

/// What is left to read.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next element: its tag and its contents.
    fn next(&mut self) -> Result<(u8, &'a [u8]), Malformed> {
        let (&tag, rest) = self.0.split_first().ok_or(Malformed)?;
        let (&first, mut rest) = rest.split_first().ok_or(Malformed)?;
        let length = match first {
            0..=0x7f => usize::from(first),
            // No certificate that passes the limit needs more than three bytes of length.
            0x81..=0x83 => {
                let (bytes, behind) = rest.split_at_checked(usize::from(first & 0x7f)).ok_or(Malformed)?;
                rest = behind;
                bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
            }
            _ => return Err(Malformed),
        };
        let (contents, behind) = rest.split_at_checked(length).ok_or(Malformed)?;
        self.0 = behind;
        Ok((tag, contents))
    }

    /// The contents of the next element, which must have that tag.
    fn expect(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        self.next().and_then(|(found, contents)| if found == tag { Ok(contents) } else { Err(Malformed) })
    }

    /// The contents of the next element if it has that tag; otherwise nothing is taken.
    fn accept(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Malformed> {
        if self.0.first() == Some(&tag) { self.expect(tag).map(Some) } else { Ok(None) }
    }
}

/// The parts of a certificate that have names in them.
struct Certificate<'a> {
    subject: Der<'a>,
    extensions: Option<Der<'a>>,
}

impl<'a> Certificate<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() > CERTIFICATE_BYTES_MAX {
            return Err(Malformed);
        }
        let mut signed = Der(Der(bytes).expect(SEQUENCE)?);
        let mut body = Der(signed.expect(SEQUENCE)?);
        body.accept(VERSION)?;
        body.expect(INTEGER)?;
        // Algorithm, issuer, validity.
        for _ in 0..3 {
            body.expect(SEQUENCE)?;
        }
        let subject = Der(body.expect(SEQUENCE)?);
        let mut extensions = None;
        while !body.is_empty() {
            let (tag, contents) = body.next()?;
            if tag == EXTENSIONS {
                extensions = Some(Der(Der(contents).expect(SEQUENCE)?));
            }
        }
        Ok(Self { subject, extensions })
    }
}

/// The subject's common names, in order.
pub(super) fn common_names(certificate: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let mut subject = Certificate::parse(certificate)?.subject;
    let mut names = Vec::new();
    while !subject.is_empty() {
        let mut set = Der(subject.expect(SET)?);
        while !set.is_empty() {
            let mut attribute = Der(set.expect(SEQUENCE)?);
            if attribute.expect(OBJECT_ID)? == COMMON_NAME {
                let (tag, name) = attribute.next()?;
                if !PLAIN_STRINGS.contains(&tag) {
                    return Err(Malformed);
                }
                push(&mut names, name)?;
            }
        }
    }
    Ok(names)
}

/// The alternative names with that tag, in order.
pub(super) fn alternative_names(certificate: &[u8], wanted: u8) -> Result<Vec<&[u8]>, Malformed> {
    let mut names = Vec::new();
    let Some(mut extensions) = Certificate::parse(certificate)?.extensions else { return Ok(names) };
    while !extensions.is_empty() {
        let mut extension = Der(extensions.expect(SEQUENCE)?);
        if extension.expect(OBJECT_ID)? != SUBJECT_ALT_NAME {
            continue;
        }
        // Whether it is critical.
        extension.accept(0x01)?;
        let mut all = Der(Der(extension.expect(OCTET_STRING)?).expect(SEQUENCE)?);
        while !all.is_empty() {
            let (tag, name) = all.next()?;
            if tag == wanted {
                push(&mut names, name)?;
            }
        }
    }
    Ok(names)
}

fn push<'a>(names: &mut Vec<&'a [u8]>, name: &'a [u8]) -> Result<(), Malformed> {
    if names.len() == CERTIFICATE_NAMES_MAX {
        return Err(Malformed);
    }
    names.push(name);
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
        assert_eq!(common_names(&der), Ok(vec![&b"admin\0x"[..]]));
        assert_eq!(alternative_names(&der, DNS), Ok(vec![&b"a.example"[..], b"b.example"]));
        assert_eq!(alternative_names(&der, URI), Ok(vec![&b"spiffe://trust/alice"[..]]));
        assert_eq!(alternative_names(&der, EMAIL), Ok(vec![]));
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
