//! A blocking client that speaks TLS, and can be made to speak it badly.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use respool_testkit::reply_length;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::LIMIT;
use respool_testkit::{Authority, Identity};

/// A connection. The handshake is done with the first bytes.
pub(crate) struct Encrypted {
    pub(crate) stream: StreamOwned<ClientConnection, TcpStream>,
    buffer: Vec<u8>,
}

/// Settings that trust `authority` and show `own`.
pub(crate) fn config(authority: &Authority, own: Option<&Identity>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.clone()).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    Arc::new(match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = vec![own.certificate.clone()];
            builder.with_client_auth_cert(chain, own.key.clone_key()).expect("a certificate and its key")
        }
    })
}

/// A session with the server called `name`, without a connection.
pub(crate) fn session(config: &Arc<ClientConfig>, name: &str) -> ClientConnection {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a session")
}

impl Encrypted {
    pub(crate) fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: StreamOwned::new(session(config, &address.ip().to_string()), stream), buffer: Vec::new() })
    }

    /// Does the handshake and nothing more.
    pub(crate) fn shake(&mut self) -> io::Result<()> {
        while self.stream.conn.is_handshaking() {
            self.stream.conn.complete_io(&mut self.stream.sock)?;
        }
        Ok(())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends an inline request and returns its reply.
    pub(crate) fn ask(&mut self, words: &str) -> io::Result<String> {
        self.send(format!("{words}\r\n").as_bytes())?;
        self.reply().map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// The bytes of the next whole reply.
    pub(crate) fn reply(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; 64 << 10];
        loop {
            if let Some(length) = reply_length(&self.buffer)? {
                return Ok(self.buffer.drain(..length).collect());
            }
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.buffer.extend_from_slice(&piece[..count]),
            }
        }
    }
}
