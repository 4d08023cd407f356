//! A stream that is encrypted: a rustls session over a non-blocking socket, driven by the worker's loop.
//!
//! ```text
//!   accepted / dialled --> shaking --shake() is true--> open --> the peer's close_notify or end --> reads give 0
//!                             |                           |
//!                             +-- error, alert sent <-----+
//! ```
//!
//! Reads and writes keep the contract of the plain transports. A read that does not fill its buffer has emptied the socket
//! *and* the session, or says so by [`TlsSocket::holds_more`]: no edge comes for bytes that were decrypted already. A write
//! counts plaintext only once its last encrypted byte is with the kernel, so that what waits here is still in the machine's
//! budgets; at most one flight of [`TLS_FLIGHT_BYTES`] is ever encrypted ahead.

use crate::limits::{HANDSHAKE_BYTES_MAX, TLS_FLIGHT_BYTES, TLS_READ_BYTES_MAX};
use crate::transport::retry;
use mio::net::TcpStream;
use rustls::Connection;
use rustls_pki_types::CertificateDer;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

/// The first byte of every record of a handshake.
const HANDSHAKE_RECORD: u8 = 22;

/// One encrypted connection.
#[derive(Debug)]
pub(crate) struct TlsSocket {
    stream: TcpStream,
    session: Connection,
    /// Bytes of the machine's outbox that are encrypted, and of which a part has not left yet.
    committed: usize,
    /// Bytes received before the handshake was over.
    greeted_bytes: usize,
    /// The last read left something behind: the end, or records beyond its budget.
    holds_more: bool,
    has_said_goodbye: bool,
}

impl TlsSocket {
    pub(crate) fn new(stream: TcpStream, mut session: Connection) -> Self {
        // One flight at a time is written into it; a bound of its own would only cut that in two.
        session.set_buffer_limit(None);
        Self { stream, session, committed: 0, greeted_bytes: 0, holds_more: false, has_said_goodbye: false }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    pub(crate) fn holds_more(&self) -> bool {
        self.holds_more
    }

    /// The certificate that the peer has shown and that was verified.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.peer_certificates()?.first()
    }

    /// Goes on with the handshake: `Ok(true)` when it is over, `Ok(false)` when it waits for the peer.
    pub(crate) fn shake(&mut self) -> io::Result<bool> {
        loop {
            self.flush()?;
            if !self.session.is_handshaking() {
                return Ok(true);
            }
            let is_first = self.greeted_bytes == 0;
            let mut metered = Metered { stream: &mut self.stream, first: None };
            match self.session.read_tls(&mut metered) {
                // The end of the stream, or the peer's close_notify.
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the peer broke off the TLS handshake"));
                }
                Ok(bytes) => self.greeted_bytes += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if is_first && metered.first != Some(HANDSHAKE_RECORD) {
                // Whoever does not speak TLS could not read an alert either.
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer does not speak TLS"));
            }
            self.process()?;
            if self.greeted_bytes > HANDSHAKE_BYTES_MAX && self.session.is_handshaking() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the TLS handshake is too long"));
            }
        }
    }

    /// As of any socket: `Ok(0)` is the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut filled, mut received) = (0, 0);
        self.holds_more = false;
        loop {
            match self.session.reader().read(&mut buffer[filled..]) {
                Ok(0) => return Ok(self.end(filled)),
                Ok(bytes) => {
                    filled += bytes;
                    if filled == buffer.len() {
                        return Ok(filled);
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without close_notify. Nothing that RESP calls whole can have been cut off unseen.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(self.end(filled)),
                Err(error) => return Err(error),
            }
            if received >= TLS_READ_BYTES_MAX {
                self.holds_more = true;
                break;
            }
            match retry(|| self.session.read_tls(&mut self.stream)) {
                Ok(bytes) => received += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            self.process()?;
        }
        if self.session.wants_write() {
            self.flush()?;
        }
        if filled == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(filled) }
    }

    /// The peer will send nothing more. Behind bytes that were read, the next read tells.
    fn end(&mut self, filled: usize) -> usize {
        self.holds_more = filled > 0;
        filled
    }

    /// Decrypts what was received. A peer that breaks the protocol is told by an alert, if there is room.
    fn process(&mut self) -> io::Result<()> {
        let outcome = self.session.process_new_packets();
        outcome.map(|_| ()).map_err(|error| {
            // The connection is given up either way.
            let _ = self.flush();
            io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}"))
        })
    }

    /// As of any socket, with one thing more: until they are counted, `bytes` must begin with what they began with in the
    /// last call.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while self.flush()? {
            written += std::mem::take(&mut self.committed);
            let Some(rest) = bytes.get(written..) else {
                return Err(io::Error::other("bytes that wait to be written have been changed"));
            };
            if rest.is_empty() {
                return Ok(written);
            }
            let flight = &rest[..rest.len().min(TLS_FLIGHT_BYTES)];
            self.committed = self.session.writer().write(flight)?;
        }
        if written == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(written) }
    }

    /// Writes what is encrypted. `Ok(false)`: the kernel takes no more for now.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        while self.session.wants_write() {
            match retry(|| self.session.write_tls(&mut self.stream)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Tells the peer that nothing more will be written, if there is room for it: behind half a record it would be noise.
    pub(crate) fn say_goodbye(&mut self) {
        if !std::mem::replace(&mut self.has_said_goodbye, true) && matches!(self.flush(), Ok(true)) {
            self.session.send_close_notify();
            // The peer sees the end of the stream in any case.
            let _ = self.flush();
        }
    }
}

/// Remembers the first byte that comes.
struct Metered<'a> {
    stream: &'a mut TcpStream,
    first: Option<u8>,
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = retry(|| self.stream.read(buffer))?;
        self.first = self.first.or_else(|| buffer[..bytes].first().copied());
        Ok(bytes)
    }
}
