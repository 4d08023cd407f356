//! What connections over TLS demand and show: which authorities are trusted, which name a certificate must have, and the client's
//! own certificate.
//!
//! The texts are kept as they were given and understood once, before the first connection. One provider of cryptography is named;
//! the process' default is never asked for. TLS 1.2 and 1.3, no older one.

use crate::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

/// Largest file of certificates that is read: every authority that a system trusts is a tenth of it.
const PEM_BYTES_MAX: u64 = 4 << 20;

/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What connections over TLS demand and show. Unless told otherwise they trust the authorities of the system, in the file that the
/// variable `SSL_CERT_FILE` names or where systems keep it, demand a certificate for the host of the address, and show none.
///
/// ```no_run
/// use respool_client::{Client, Config, Tls};
///
/// # fn main() -> Result<(), respool_client::Error> {
/// let tls = Tls::new().ca_file("/etc/redis/ca.crt")?.certificate_files("/etc/app/app.crt", "/etc/app/app.key")?;
/// let client = Client::with_config(Config::from_url("rediss://db.example:6380")?.tls(tls)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Tls {
    trust: Trust,
    own: Option<Own>,
    server_name: Option<String>,
    /// What the texts say, once it was needed.
    ready: Arc<OnceLock<Result<Arc<ClientConfig>, Arc<str>>>>,
}

#[derive(Clone, Default)]
enum Trust {
    /// The authorities of the system.
    #[default]
    System,
    /// Those in this PEM text.
    Authorities(Vec<u8>),
    /// Any certificate.
    Anything,
}

#[derive(Clone)]
struct Own {
    certificate_pem: Vec<u8>,
    key_pem: Zeroizing<Vec<u8>>,
}

impl Tls {
    /// The authorities of the system, the host's name, and no certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the authorities in this PEM text and no others.
    #[must_use]
    pub fn ca(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { trust: Trust::Authorities(pem.into()), ..self }.anew()
    }

    /// As [`Self::ca`], from a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn ca_file(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let pem = read(path.as_ref(), "the file of authorities")?;
        Ok(self.ca(&pem[..]))
    }

    /// Shows this certificate to a server that asks for one: PEM texts, of the certificate with those that lead to the authority's, and
    /// of its private key.
    #[must_use]
    pub fn certificate(self, certificate_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        let own = Own { certificate_pem: certificate_pem.into(), key_pem: Zeroizing::new(key_pem.into()) };
        Self { own: Some(own), ..self }.anew()
    }

    /// As [`Self::certificate`], from files.
    ///
    /// # Errors
    ///
    /// One of the files cannot be read.
    pub fn certificate_files(self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, Error> {
        let certificate_pem = read(certificate.as_ref(), "the file of the certificate")?.to_vec();
        let key_pem = read(key.as_ref(), "the file of the private key")?;
        Ok(Self { own: Some(Own { certificate_pem, key_pem }), ..self }.anew())
    }

    /// The name or address that the server's certificate must be for, where that is not the host of the address.
    #[must_use]
    pub fn server_name(self, name: &str) -> Self {
        Self { server_name: Some(name.to_owned()), ..self }
    }

    /// Takes any certificate. Whatever is between the client and the server can read and change everything, passwords among it.
    #[must_use]
    pub fn insecure(self) -> Self {
        Self { trust: Trust::Anything, ..self }.anew()
    }

    /// Nothing that was understood before holds.
    fn anew(self) -> Self {
        Self { ready: Arc::default(), ..self }
    }

    /// What all that says.
    ///
    /// # Errors
    ///
    /// Which of the texts cannot be used, and why.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, Arc<str>> {
        self.ready.get_or_init(|| self.understand().map(Arc::new).map_err(Arc::from)).clone()
    }

    /// The name that is demanded of a server at `host`.
    pub(crate) fn name(&self, host: &str) -> Result<ServerName<'static>, String> {
        let name = self.server_name.as_deref().unwrap_or(host);
        ServerName::try_from(name.to_owned()).map_err(|_| format!("{name:?} can be no name in a certificate"))
    }

    fn understand(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(|error| error.to_string())?;
        let builder = match &self.trust {
            Trust::System => builder.with_root_certificates(system_authorities()?),
            Trust::Authorities(pem) => builder.with_root_certificates(authorities(pem)?),
            Trust::Anything => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider))),
        };
        let Some(own) = &self.own else { return Ok(builder.with_no_client_auth()) };
        let chain = certificates(&own.certificate_pem).map_err(|why| format!("the client's certificate: {why}"))?;
        let key = PrivateKeyDer::from_pem_slice(&own.key_pem)
            .map_err(|error| format!("the client's private key is none in PEM: {error}"))?;
        builder.with_client_auth_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => "the client's private key is not that of its certificate".to_owned(),
            other => format!("the client's certificate cannot be used: {other}"),
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trust = match &self.trust {
            Trust::System => "system",
            Trust::Authorities(_) => "authorities",
            Trust::Anything => "insecure",
        };
        let mut shown = f.debug_struct("Tls");
        shown.field("trust", &trust).field("server_name", &self.server_name);
        shown.field("has_certificate", &self.own.is_some()).finish()
    }
}

fn read(path: &Path, what: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut pem = Zeroizing::new(Vec::new());
    let file = std::fs::File::open(path);
    let taken = file.and_then(|file| file.take(PEM_BYTES_MAX + 1).read_to_end(&mut pem));
    match taken {
        Ok(bytes) if bytes as u64 <= PEM_BYTES_MAX => Ok(pem),
        Ok(_) => Err(Error::config(format!("{what} is larger than {PEM_BYTES_MAX} bytes"))),
        Err(error) => Err(Error::config(format!("{what} cannot be read: {error}"))),
    }
}

fn system_authorities() -> Result<rustls::RootCertStore, String> {
    let named = std::env::var_os("SSL_CERT_FILE");
    let mut places: Vec<&Path> = SYSTEM_AUTHORITIES.iter().map(Path::new).collect();
    if let Some(named) = &named {
        places = vec![Path::new(named)];
    }
    let found = places.into_iter().find(|path| path.is_file());
    let Some(found) = found else {
        return Err("this system has no file of trusted authorities: name one".to_owned());
    };
    let pem = read(found, "the system's file of authorities").map_err(|error| error.to_string())?;
    authorities(&pem)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| format!("not PEM: {error}"))?;
    if all.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(all) }
}

fn authorities(pem: &[u8]) -> Result<rustls::RootCertStore, String> {
    let mut roots = rustls::RootCertStore::empty();
    let all = certificates(pem).map_err(|why| format!("the authorities: {why}"))?;
    let (added, _) = roots.add_parsable_certificates(all);
    if added == 0 { Err("the authorities: there is no certificate of one in it".to_owned()) } else { Ok(roots) }
}

/// Why TLS has failed, in words.
pub(crate) fn words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => certificate_words(why),
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => "the server demands a certificate of the client".to_owned(),
            AlertDescription::UnknownCA => "the server does not trust the client's certificate".to_owned(),
            AlertDescription::ProtocolVersion => "the server speaks no TLS 1.2 or 1.3".to_owned(),
            other => format!("the server ends TLS with the alert {other:?}"),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS at this port".to_owned()
        }
        other => format!("TLS: {other}"),
    }
}

fn certificate_words(why: &CertificateError) -> String {
    use CertificateError as Why;
    match why {
        // The second is of another authority of the same name.
        Why::UnknownIssuer | Why::BadSignature => {
            "the server's certificate is of no authority that is trusted here".to_owned()
        }
        Why::Expired | Why::ExpiredContext { .. } => "the server's certificate has expired".to_owned(),
        Why::NotValidYet | Why::NotValidYetContext { .. } => "the server's certificate is not valid yet".to_owned(),
        Why::NotValidForName => "the server's certificate is for another name".to_owned(),
        Why::NotValidForNameContext { expected, presented } => {
            let names = if presented.is_empty() { "none".to_owned() } else { presented.join(", ") };
            format!("the server's certificate is not for {}: its names are {names}", expected.to_str())
        }
        Why::Revoked => "the server's certificate was revoked".to_owned(),
        other => format!("the server's certificate cannot be used: {other}"),
    }
}

/// Takes any certificate, where the check is switched off. That the peer has its key is still checked.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
