//! The dialling side: the authorities it trusts, and the certificate it shows.

use super::material::{KeyPair, Part, TlsError, VERSIONS, authorities, own_fault, provider};
use crate::transport::TlsSocket;
use mio::net::TcpStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

/// What a dial shows and demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// The authorities that a node's certificate is checked against, in PEM. `None`: it is not checked at all, and any peer that
    /// is in the way can read and change everything.
    pub authorities_pem: Option<Vec<u8>>,
    /// What the node is shown, if it asks.
    pub own: Option<KeyPair>,
}

/// The ways in which nodes are dialled, by the name that [`respool_connection::Endpoint::Tls`] has for them. Shared by the
/// workers; what is replaced holds for later dials.
#[derive(Debug, Default)]
pub struct TlsClients {
    profiles: RwLock<HashMap<String, Arc<ClientConfig>>>,
}

impl TlsClients {
    /// Makes `tls` what `profile` stands for. If it is no good, everything stays as it is.
    pub fn set(&self, profile: &str, tls: &ClientTls) -> Result<(), TlsError> {
        let config = Arc::new(config(tls)?);
        self.profiles.write().unwrap_or_else(PoisonError::into_inner).insert(profile.to_owned(), config);
        Ok(())
    }

    /// From now on, nodes are dialled as `other` would dial them.
    pub fn become_like(&self, other: &Self) {
        let theirs = other.profiles.read().unwrap_or_else(PoisonError::into_inner).clone();
        *self.profiles.write().unwrap_or_else(PoisonError::into_inner) = theirs;
    }

    /// Begins a session over a stream that need not be connected yet.
    pub(crate) fn wrap(&self, profile: &str, server_name: &str, stream: TcpStream) -> io::Result<TlsSocket> {
        let profiles = self.profiles.read().unwrap_or_else(PoisonError::into_inner);
        let known = profiles.get(profile).cloned();
        drop(profiles);
        let unknown =
            || io::Error::new(io::ErrorKind::NotFound, format!("there are no TLS settings named {profile:?}"));
        let name = server_name_of(server_name).map_err(io::Error::other)?;
        let session = ClientConnection::new(known.ok_or_else(unknown)?, name).map_err(io::Error::other)?;
        Ok(TlsSocket::new(stream, session.into()))
    }
}

/// A TLS session over a socket of the standard library: for tools, which have one connection and no loop.
#[derive(Debug)]
pub struct TlsStream(StreamOwned<ClientConnection, std::net::TcpStream>);

impl TlsStream {
    /// Shakes hands with the server. The stream must be connected and block; its timeouts hold.
    ///
    /// # Errors
    /// What is wrong with `tls`, and whatever fails the handshake.
    pub fn open(tls: &ClientTls, server_name: &str, stream: std::net::TcpStream) -> io::Result<Self> {
        let name = server_name_of(server_name).map_err(io::Error::other)?;
        let config = Arc::new(config(tls).map_err(io::Error::other)?);
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut this = StreamOwned::new(session, stream);
        while this.conn.is_handshaking() {
            this.conn.complete_io(&mut this.sock)?;
        }
        Ok(Self(this))
    }

    /// The socket below.
    pub fn socket(&self) -> &std::net::TcpStream {
        &self.0.sock
    }

    /// Whether bytes that were written still have to go to the socket.
    pub fn wants_write(&self) -> bool {
        self.0.conn.wants_write()
    }
}

impl io::Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            // The peer has closed the socket and did not say so in TLS first, as many do.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

impl io::Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A name or address as it can stand in a certificate.
pub(crate) fn server_name_of(text: &str) -> Result<ServerName<'static>, TlsError> {
    let name = ServerName::try_from(text.to_owned());
    name.map_err(|_| TlsError::new(Part::ServerName, format!("{text:?} can be no name in a certificate")))
}

fn config(tls: &ClientTls) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(VERSIONS);
    let builder = builder.map_err(|error| TlsError::new(Part::Certificate, error.to_string()))?;
    let builder = match &tls.authorities_pem {
        Some(pem) => builder.with_root_certificates(authorities(pem)?),
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider))),
    };
    match &tls.own {
        None => Ok(builder.with_no_client_auth()),
        Some(own) => {
            let (chain, key) = own.parse()?;
            builder.with_client_auth_cert(chain, key).map_err(|error| own_fault(&error))
        }
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
