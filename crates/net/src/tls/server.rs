//! The side that accepts: certificate, key, and what is asked of clients.

use super::identity::{IdentityError, IdentityRule};
use super::material::{KeyPair, Part, TlsError, VERSIONS, authorities, own_fault, provider, revocations};
use crate::transport::TlsSocket;
use mio::net::TcpStream;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{ServerConfig, ServerConnection};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// No client is asked for one.
    Off,
    /// A client may show one, which must be good then.
    Optional,
    /// Clients without one are refused.
    Required,
}

/// What a listener shows and demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// What is shown to clients.
    pub own: KeyPair,
    /// The authorities of clients' certificates, in PEM. Needed if clients are asked for one.
    pub client_authorities_pem: Option<Vec<u8>>,
    /// Lists of revoked certificates of clients and of their authorities, in PEM. If there are any, an authority that has
    /// none here vouches for no certificate, and neither does one whose list has run out.
    pub client_revocations_pem: Option<Vec<u8>>,
    /// Whether clients are asked for one.
    pub clients: ClientCertificates,
    /// Which name of a client's certificate is its user.
    pub identity: Option<IdentityRule>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
}

/// A listener's TLS, shared by the workers. It can be replaced while connections are open.
#[derive(Debug)]
pub struct TlsServer {
    current: Mutex<Arc<Current>>,
}

#[derive(Debug)]
pub(crate) struct Current {
    config: Arc<ServerConfig>,
    identity: Option<IdentityRule>,
    pub(crate) handshake_timeout: Duration,
}

impl TlsServer {
    /// Checks everything and makes it ready.
    pub fn new(tls: &ServerTls) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self { current: Mutex::new(Arc::new(Current::new(tls)?)) }))
    }

    /// From now on, new connections are met as `other` would meet them. Those that are open stay as they are.
    pub fn become_like(&self, other: &Self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = other.current();
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Current {
    fn new(tls: &ServerTls) -> Result<Self, TlsError> {
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(VERSIONS);
        let builder = builder.map_err(|error| TlsError::new(Part::Certificate, error.to_string()))?;
        let builder = match tls.clients {
            ClientCertificates::Off => builder.with_no_client_auth(),
            ClientCertificates::Optional | ClientCertificates::Required => {
                let missing = || TlsError::new(Part::Authorities, "clients' certificates need an authority".to_owned());
                let roots = authorities(tls.client_authorities_pem.as_ref().ok_or_else(missing)?)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match &tls.client_revocations_pem {
                    Some(pem) => verifier.with_crls(revocations(pem)?).enforce_revocation_expiration(),
                    None => verifier,
                };
                let verifier = match tls.clients {
                    ClientCertificates::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build().map_err(|error| match error {
                    VerifierBuilderError::InvalidCrl(why) => TlsError::new(Part::Revocations, format!("{why:?}")),
                    error => TlsError::new(Part::Authorities, error.to_string()),
                })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, key) = tls.own.parse()?;
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(|error| own_fault(&error))?;
        // Tickets are sealed with keys that change every few hours and are made anew with every replacement, so that no
        // session outlives what let it in. Nothing is kept per session.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if let Ok(ticketer) = rustls::crypto::aws_lc_rs::Ticketer::new() {
            config.ticketer = ticketer;
        }
        let handshake_timeout = tls.handshake_timeout;
        Ok(Self { config: Arc::new(config), identity: tls.identity.clone(), handshake_timeout })
    }

    pub(crate) fn accept(&self, stream: TcpStream) -> io::Result<TlsSocket> {
        let session = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        Ok(TlsSocket::new(stream, session.into()))
    }

    /// The name of the peer of a finished handshake.
    pub(crate) fn identify(&self, socket: &TlsSocket) -> Result<Option<String>, IdentityError> {
        match (&self.identity, socket.peer_certificate()) {
            (Some(rule), Some(certificate)) => rule.name_in(certificate),
            _ => Ok(None),
        }
    }
}
