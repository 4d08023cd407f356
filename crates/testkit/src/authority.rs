//! An authority that makes certificates for one test. What fails panics: it is the test's own set-up.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::TempDir;

/// An authority, and the directory its files are in.
pub struct Authority {
    /// Where its files are.
    pub directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub certificate: CertificateDer<'static>,
    issued: AtomicU64,
}

/// A certificate with its key.
pub struct Identity {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
    serial: SerialNumber,
    certificate_pem: String,
    key_pem: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// An authority with a key of its own, whose certificate is in `ca.crt`.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "an authority for a test");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let directory = TempDir::new().expect("a directory");
        fs::write(directory.join("ca.crt"), certificate.pem()).expect("a file");
        Self {
            directory,
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            issued: AtomicU64::new(1),
        }
    }

    /// A certificate for a host name or address, or for no host, with a common name.
    pub fn issue(&self, host: &str, common_name: &str) -> Identity {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        match host.parse() {
            Ok(address) => params.subject_alt_names.push(SanType::IpAddress(address)),
            Err(_) if host.is_empty() => {}
            Err(_) => params.subject_alt_names.push(SanType::DnsName(host.try_into().expect("a host name"))),
        }
        params.distinguished_name.push(DnType::CommonName, common_name);
        let serial = SerialNumber::from(self.issued.fetch_add(1, Ordering::Relaxed));
        params.serial_number = Some(serial.clone());
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            serial,
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// Writes `ca.crl`, which is good until that year, with the certificates of these identities in it.
    pub fn revoke(&self, revoked: &[&Identity], next_update_year: i32) {
        let of = |identity: &&Identity| RevokedCertParams {
            serial_number: identity.serial.clone(),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(next_update_year, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.iter().map(of).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).expect("a list");
        fs::write(self.path("ca.crl"), list.pem().expect("it is PEM")).expect("a file");
    }

    /// Writes an identity's files, `NAME.crt` and `NAME.key`; files of that name are replaced.
    pub fn write(&self, name: &str, identity: &Identity) {
        fs::write(self.path(&format!("{name}.crt")), &identity.certificate_pem).expect("a file");
        fs::write(self.path(&format!("{name}.key")), &identity.key_pem).expect("a file");
    }

    /// The path of one of its files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A listener of 127.0.0.1 that shows `NAME.crt`.
    pub fn listener(&self, name: &str, words: &str) -> String {
        let file = |suffix: &str| self.path(&format!("{name}.{suffix}")).display().to_string();
        let ca = self.path("ca.crt").display().to_string();
        format!("tls:127.0.0.1:0 cert={} key={} ca={ca} {words}", file("crt"), file("key"))
    }
}
