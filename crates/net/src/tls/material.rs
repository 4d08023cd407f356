//! Certificates, keys and lists of revoked certificates, read from PEM texts, and what may be wrong with them.

use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

pub(super) const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A certificate and its key, as the texts of two PEM files.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// The certificate, followed by those that lead to the authority's.
    pub certificate_pem: Vec<u8>,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1. Overwritten when it is given up.
    pub key_pem: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(hidden)")
    }
}

impl KeyPair {
    pub(super) fn parse(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let chain = certificates(&self.certificate_pem)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key_pem);
        Ok((chain, key.map_err(|error| TlsError::new(Part::Key, format!("no private key in PEM: {error}")))?))
    }
}

pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| TlsError::new(Part::Certificate, format!("not PEM: {error}")))?;
    match all.is_empty() {
        true => Err(TlsError::new(Part::Certificate, "there is no certificate in it".to_owned())),
        false => Ok(all),
    }
}

/// Why a certificate and its key cannot be shown. What rustls says of a certificate is meant for one that a peer has shown.
pub(super) fn own_fault(error: &rustls::Error) -> TlsError {
    match error {
        rustls::Error::InvalidCertificate(why) if format!("{why:?}").contains("UnsupportedCertVersion") => {
            let why = "it is of X.509 version 1, and TLS needs version 3: make it with extensions, such as the names it is for";
            TlsError::new(Part::Certificate, why.to_owned())
        }
        rustls::Error::InvalidCertificate(why) => TlsError::new(Part::Certificate, format!("it cannot be used: {why}")),
        rustls::Error::InconsistentKeys(_) => {
            TlsError::new(Part::Key, "it is not the key of the certificate".to_owned())
        }
        other => TlsError::new(Part::Key, other.to_string()),
    }
}

/// The authorities in a PEM text.
pub(super) fn authorities(pem: &[u8]) -> Result<rustls::RootCertStore, TlsError> {
    let mut roots = rustls::RootCertStore::empty();
    let as_authority = |error: TlsError| TlsError { part: Part::Authorities, ..error };
    let (added, _) = roots.add_parsable_certificates(certificates(pem).map_err(as_authority)?);
    match added {
        0 => Err(TlsError::new(Part::Authorities, "there is no certificate of an authority in it".to_owned())),
        _ => Ok(roots),
    }
}

/// The lists of revoked certificates in a PEM text.
pub(super) fn revocations(pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let all = CertificateRevocationListDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| TlsError::new(Part::Revocations, format!("not PEM: {error}")))?;
    match all.is_empty() {
        true => Err(TlsError::new(Part::Revocations, "there is no list of revoked certificates in it".to_owned())),
        false => Ok(all),
    }
}

/// Which of the texts is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The certificate, or what follows it.
    Certificate,
    /// The private key, or that it does not fit the certificate.
    Key,
    /// The authorities that the other side's certificate is checked against.
    Authorities,
    /// The lists of revoked certificates.
    Revocations,
    /// The name that the other side's certificate must have.
    ServerName,
}

/// Why something cannot be used for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// Which part.
    pub part: Part,
    why: String,
}

impl TlsError {
    pub(super) fn new(part: Part, why: String) -> Self {
        Self { part, why }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for TlsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::ServerConfig;

    fn made() -> (Vec<u8>, rcgen::KeyPair) {
        let key = rcgen::KeyPair::generate().expect("keys can be made");
        let params = rcgen::CertificateParams::new(vec!["x".to_owned()]).expect("a name");
        (params.self_signed(&key).expect("certificates can be made").der().to_vec(), key)
    }

    fn fault(certificate: Vec<u8>, key: &rcgen::KeyPair) -> TlsError {
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(VERSIONS);
        let builder = builder.expect("the versions are there").with_no_client_auth();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("it is a key");
        own_fault(&builder.with_single_cert(vec![certificate.into()], key).expect_err("it is no good"))
    }

    #[test]
    fn the_file_that_is_wrong_is_blamed_in_words() {
        let ((mut old, key), (_, other)) = (made(), made());
        let (good, version) = (old.clone(), [0xa0, 3, 2, 1, 2]);
        let place = old.windows(version.len()).position(|bytes| bytes == version).expect("it says its version");
        old[place + 4] = 0;
        for (certificate, key, part, words) in [
            (old, &key, Part::Certificate, "X.509 version 1"),
            (b"nonsense".to_vec(), &key, Part::Certificate, "it cannot be used"),
            (good, &other, Part::Key, "not the key of the certificate"),
        ] {
            let fault = fault(certificate, key);
            assert!(fault.part == part && fault.why.contains(words), "{fault:?}");
        }
    }
}
