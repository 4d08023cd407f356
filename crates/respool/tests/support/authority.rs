//! An authority that makes certificates for one test.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use respool_testkit::TempDir;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// An authority, and the directory its files are in.
pub(crate) struct Authority {
    pub(crate) directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: CertificateDer<'static>,
}

/// A certificate with its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
    certificate_pem: String,
    key_pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority for a test");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let directory = TempDir::new().expect("a directory");
        fs::write(directory.join("ca.crt"), certificate.pem()).expect("a file");
        Self { directory, certificate: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    /// A certificate for a host name or address, or for nobody's host, with a common name.
    pub(crate) fn issue(&self, host: &str, common_name: &str) -> Identity {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        match host.parse() {
            Ok(address) => params.subject_alt_names.push(SanType::IpAddress(address)),
            Err(_) if host.is_empty() => {}
            Err(_) => params.subject_alt_names.push(SanType::DnsName(host.try_into().expect("a host name"))),
        }
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// Writes an identity's files, `NAME.crt` and `NAME.key`; files of that name are replaced.
    pub(crate) fn write(&self, name: &str, identity: &Identity) {
        fs::write(self.path(&format!("{name}.crt")), &identity.certificate_pem).expect("a file");
        fs::write(self.path(&format!("{name}.key")), &identity.key_pem).expect("a file");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A listener of 127.0.0.1 that shows `NAME.crt`.
    pub(crate) fn listener(&self, name: &str, words: &str) -> String {
        let file = |suffix: &str| self.path(&format!("{name}.{suffix}")).display().to_string();
        let ca = self.path("ca.crt").display().to_string();
        format!("tls:127.0.0.1:0 cert={} key={} ca={ca} {words}", file("crt"), file("key"))
    }
}
