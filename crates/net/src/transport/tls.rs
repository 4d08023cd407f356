//! A stream that is encrypted: a rustls session over a non-blocking socket, driven by the worker's loop.
//!
//! ```text
//!   accepted / dialled --> shaking --shake() is true--> open --> the peer's close_notify or end --> reads give 0
//!                             |                           |
//!                             +-- error, alert sent <-----+
//! ```
//!
//! Reads and writes keep the contract of the plain transports. A read that does not fill its buffer has emptied the socket
//! *and* the session, or says so by [`TlsSocket::holds_more`]: no edge comes for bytes that were decrypted already. Where the connection is
//! broken behind them, they are read first and the next read tells. A write
//! counts plaintext only once its last encrypted byte is with the kernel, so that what waits here is still in the machine's
//! budgets; at most one flight of [`TLS_FLIGHT_BYTES`] is ever encrypted ahead. Of a flight that has begun one byte counts at
//! once: its first records may have arrived, and the machine must not take requests for unsent that a node may execute.

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
    /// The last read left something behind: the end, an error, or records beyond its budget.
    holds_more: bool,
    /// Why the connection is broken, until what came before has been read.
    failure: Option<io::Error>,
    has_said_goodbye: bool,
}

impl TlsSocket {
    pub(crate) fn new(stream: TcpStream, mut session: Connection) -> Self {
        // One flight at a time is written into it; a bound of its own would only cut that in two.
        session.set_buffer_limit(None);
        Self {
            stream,
            session,
            committed: 0,
            greeted_bytes: 0,
            holds_more: false,
            failure: None,
            has_said_goodbye: false,
        }
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
                // A peer that does not speak TLS could not read an alert either.
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer does not speak TLS"));
            }
            self.process()?;
            if self.greeted_bytes > HANDSHAKE_BYTES_MAX && self.session.is_handshaking() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the TLS handshake is too long"));
            }
        }
    }

    /// As of any socket: `Ok(0)` is the end. What was decrypted before the connection broke is read before its error is met.
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
                Err(error) => self.failure = Some(error),
            }
            if self.failure.is_some() {
                break;
            }
            if received >= TLS_READ_BYTES_MAX {
                self.holds_more = true;
                break;
            }
            match retry(|| self.session.read_tls(&mut self.stream)) {
                Ok(bytes) => received += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => self.failure = Some(error),
            }
            if self.failure.is_none() {
                // Records in front of one that breaks the protocol have been decrypted.
                self.failure = self.process().err();
            }
        }
        if self.failure.is_none() && self.session.wants_write() {
            self.failure = self.flush().err();
        }
        if filled > 0 {
            self.holds_more |= self.failure.is_some();
            return Ok(filled);
        }
        Err(self.failure.take().unwrap_or_else(|| io::ErrorKind::WouldBlock.into()))
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
        let (mut written, mut has_begun) = (0, false);
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
            has_begun = true;
        }
        if written == 0 && has_begun && self.committed > 1 {
            self.committed -= 1;
            written = 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tls_server;
    use crate::tls::{ClientTls, TlsClients};
    use std::net::TcpListener;

    /// Both ends of a connection whose handshake is over. The first has room for two records and no more on its way out.
    fn pair() -> (TlsSocket, TlsSocket) {
        let clients = TlsClients::default();
        clients.set("", &ClientTls { authorities_pem: None, own: None }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialled = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        socket2::SockRef::from(&dialled).set_send_buffer_size(16 * 1024).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        socket2::SockRef::from(&accepted).set_recv_buffer_size(16 * 1024).unwrap();
        [&dialled, &accepted].into_iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
        let mut ours = clients.wrap("", "x", TcpStream::from_std(dialled)).unwrap();
        let mut theirs = tls_server().current().accept(TcpStream::from_std(accepted)).unwrap();
        while !(ours.shake().unwrap() & theirs.shake().unwrap()) {}
        (ours, theirs)
    }

    /// What has come, as far as it has.
    fn read_on(socket: &mut TlsSocket, seen: &mut Vec<u8>) {
        let mut buffer = vec![0; 64 * 1024];
        match socket.read(&mut buffer) {
            Ok(bytes) => seen.extend_from_slice(&buffer[..bytes]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
    }

    #[test]
    fn what_may_have_arrived_is_not_told_to_wait() {
        let (mut ours, mut theirs) = pair();
        let sent: Vec<u8> = (0..3 * TLS_FLIGHT_BYTES as u32).map(|at| (at / 7) as u8).collect();
        let mut written = match ours.write(&sent[..TLS_FLIGHT_BYTES]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            written => written.unwrap(),
        };
        assert!(written < TLS_FLIGHT_BYTES, "there is no room for all of it");
        let mut seen = Vec::new();
        while seen.is_empty() {
            read_on(&mut theirs, &mut seen);
        }
        assert!(written > 0, "the peer has {} bytes, and none is told to have left", seen.len());
        while seen.len() < sent.len() {
            match ours.write(&sent[written..]) {
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
                Ok(bytes) => written += bytes,
            }
            read_on(&mut theirs, &mut seen);
        }
        assert_eq!(ours.write(&sent[written..]).unwrap(), sent.len() - written);
        assert!(seen == sent, "what is counted at once is not sent twice");
    }

    /// All that can be read, in pieces of so many bytes, and why there is no more.
    fn read_all(socket: &mut TlsSocket, piece: usize) -> (Vec<u8>, io::Error) {
        let (mut seen, mut buffer) = (Vec::new(), vec![0; piece]);
        loop {
            match socket.read(&mut buffer) {
                Ok(bytes) => {
                    assert!(bytes > 0, "it has broken, not ended");
                    seen.extend_from_slice(&buffer[..bytes]);
                    assert!(bytes == piece || socket.holds_more(), "nothing else would have it read again");
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => return (seen, error),
            }
        }
    }

    #[test]
    fn what_came_before_a_reset_is_read() {
        for (length, piece) in [(10, 100), (10, 4), (10, 10), (9_000, 64 * 1024), (9_000, 1_000)] {
            let (mut ours, mut theirs) = pair();
            let sent: Vec<u8> = (0..length).map(|at: u32| (at / 7) as u8).collect();
            assert_eq!(ours.write(&sent).unwrap(), sent.len());
            socket2::SockRef::from(&*ours.stream()).set_linger(Some(std::time::Duration::ZERO)).unwrap();
            // The kernel of the same machine has both at once.
            drop(ours);
            let (seen, error) = read_all(&mut theirs, piece);
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
            assert!(seen == sent, "{length} in pieces of {piece}: {} were read", seen.len());
        }
    }

    #[test]
    fn what_came_before_a_broken_record_is_read() {
        for piece in [100, 4, 10] {
            let (mut ours, mut theirs) = pair();
            ours.stream().set_nodelay(true).unwrap();
            assert_eq!(ours.write(b"0123456789").unwrap(), 10);
            ours.stream().write_all(b"\x17\x03\x03\x00\x20 this was never encrypted at all").unwrap();
            let (seen, error) = read_all(&mut theirs, piece);
            assert_eq!((&seen[..], error.kind()), (&b"0123456789"[..], io::ErrorKind::InvalidData), "{piece}: {error}");
        }
    }
}
