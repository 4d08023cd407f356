//! A TLS session over the socket of a connection.
//!
//! Nothing here waits in the kernel while it holds the session: one caller reads and another writes at the same time. A read takes
//! all that has come, as far as its buffer has room for whole records, so that nothing that was decrypted waits for an event of
//! the socket that does not come. Where that cannot be, [`Session::holds_more`] says so.

use super::link::{left, receive, send_many, send_one, wait_for};
use crate::limits::{TLS_FLIGHT_BYTES, TLS_RECORD_BYTES};
use crate::tls::{Tls, words};
use rustix::event::PollFlags;
use rustls::ClientConnection;
use std::fmt;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A session. The socket is brought to every call.
#[derive(Debug)]
pub(super) struct Session {
    connection: Mutex<ClientConnection>,
    /// The last read left something behind: bytes that were decrypted, the end, or records that it had no room for.
    holds_more: AtomicBool,
    /// Encrypted bytes wait for the kernel.
    is_unflushed: AtomicBool,
}

/// Why the two sides do not agree. Another attempt would end alike.
#[derive(Debug)]
pub(crate) struct Disagreement(String);

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Disagreement {}

fn disagreement(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Disagreement(words))
}

/// The socket, of which nothing is waited for.
struct Wire<'a>(BorrowedFd<'a>);

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        receive(self.0, buffer)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send_one(self.0, bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        send_many(self.0, slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn would_block<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Writes what is encrypted. Whether the kernel took all of it.
fn flush(connection: &mut ClientConnection, socket: BorrowedFd<'_>) -> io::Result<bool> {
    while connection.wants_write() {
        let written = connection.write_tls(&mut Wire(socket));
        if would_block(&written) {
            return Ok(false);
        }
        if written? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    Ok(true)
}

/// Decrypts what was received. A peer that breaks the protocol is told by an alert, if there is room.
fn process(connection: &mut ClientConnection, socket: BorrowedFd<'_>) -> io::Result<()> {
    let outcome = connection.process_new_packets();
    outcome.map(drop).map_err(|error| {
        // The connection is given up either way.
        let _ = flush(connection, socket);
        disagreement(words(&error))
    })
}

/// Receives and decrypts. An error of before is met again.
fn pull(connection: &mut ClientConnection, socket: BorrowedFd<'_>) -> io::Result<()> {
    process(connection, socket)?;
    connection.read_tls(&mut Wire(socket))?;
    process(connection, socket)
}

impl Session {
    /// Shakes hands over a connected socket with the server at `host`.
    pub(super) fn connect(tls: &Tls, host: &str, socket: BorrowedFd<'_>, until: Instant) -> io::Result<Self> {
        let config = tls.config().map_err(|why| disagreement(why.to_string()))?;
        let name = tls.name(host).map_err(disagreement)?;
        let mut connection = ClientConnection::new(config, name).map_err(|error| disagreement(words(&error)))?;
        // Of one flight at a time; a bound of its own would cut that in two.
        connection.set_buffer_limit(None);
        let late = |_| {
            let how = "the server does not answer the TLS handshake in time: does it speak TLS at this port?";
            io::Error::new(io::ErrorKind::TimedOut, how)
        };
        loop {
            while !flush(&mut connection, socket)? {
                wait_for(socket, PollFlags::OUT, left(until).map_err(late)?)?;
            }
            if !connection.is_handshaking() {
                break;
            }
            match connection.read_tls(&mut Wire(socket)) {
                Ok(0) => {
                    let how = "closed by the server within the TLS handshake";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, how));
                }
                Ok(_) => process(&mut connection, socket)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(socket, PollFlags::IN, left(until).map_err(late)?)?;
                }
                Err(error) => return Err(error),
            }
        }
        // Something may have come behind the handshake.
        let holds_more = AtomicBool::new(true);
        Ok(Self { connection: Mutex::new(connection), holds_more, is_unflushed: AtomicBool::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, ClientConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a read may find something although the socket has nothing new.
    pub(super) fn holds_more(&self) -> bool {
        self.holds_more.load(Ordering::Acquire)
    }

    /// Whether all that was taken to be sent is with the kernel.
    pub(super) fn is_flushed(&self) -> bool {
        !self.is_unflushed.load(Ordering::Acquire)
    }

    /// Reads what there is, or waits until there is something: `limit` at most, and not at all without one. `Ok(0)` is the end.
    pub(super) fn recv(&self, socket: BorrowedFd<'_>, buffer: &mut [u8], limit: Option<Duration>) -> io::Result<usize> {
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let waits = limit.is_some() && !self.holds_more();
            if waits {
                let left = until.map_or(super::link::FOREVER, |until| until.saturating_duration_since(Instant::now()));
                if !wait_for(socket, PollFlags::IN, left)? {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            }
            let taken = self.take(socket, buffer);
            // A part of a record, or what is none of the program's.
            if limit.is_some() && would_block(&taken) {
                continue;
            }
            return taken;
        }
    }

    fn take(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        let mut connection = self.lock();
        self.holds_more.store(true, Ordering::Release);
        let mut filled = 0;
        loop {
            match connection.reader().read(&mut buffer[filled..]) {
                Ok(0) => return Ok(filled),
                Ok(bytes) => {
                    filled += bytes;
                    if filled == buffer.len() {
                        return Ok(filled);
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without close_notify. Nothing that RESP calls whole can have been cut off unseen.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(filled),
                Err(error) => return Err(error),
            }
            if filled > 0 && buffer.len() - filled < TLS_RECORD_BYTES {
                return Ok(filled);
            }
            match pull(&mut connection, socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.holds_more.store(false, Ordering::Release);
                    break;
                }
                // What came in front of it is read first, also if both came at once. The error is met again.
                Err(_) if filled > 0 => return Ok(filled),
                Err(error) => {
                    let behind = connection.reader().read(buffer);
                    return behind.ok().filter(|&bytes| bytes > 0).ok_or(error);
                }
                Ok(()) => {}
            }
        }
        self.flush(&mut connection, socket)?;
        if filled == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(filled) }
    }

    fn flush(&self, connection: &mut ClientConnection, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let is_flushed = flush(connection, socket)?;
        self.is_unflushed.store(!is_flushed, Ordering::Release);
        Ok(is_flushed)
    }

    /// Encrypts as much as the kernel takes at once, and what remains of a flight. All that it counts is not given to it again.
    pub(super) fn send<'a>(&self, socket: BorrowedFd<'_>, slices: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut connection = self.lock();
        let mut taken = 0;
        let mut is_flushed = self.flush(&mut connection, socket)?;
        let mut flight = 0;
        'all: for slice in slices {
            for piece in slice.chunks(TLS_FLIGHT_BYTES) {
                if flight + piece.len() > TLS_FLIGHT_BYTES {
                    is_flushed = self.flush(&mut connection, socket)?;
                    flight = 0;
                }
                if !is_flushed {
                    break 'all;
                }
                connection.writer().write_all(piece)?;
                taken += piece.len();
                flight += piece.len();
            }
        }
        if flight > 0 {
            is_flushed = self.flush(&mut connection, socket)?;
        }
        if taken == 0 && !is_flushed { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Whether a connection on which nothing is owed cannot be used any longer, see [`super::Link::is_spoilt`].
    pub(super) fn is_spoilt(&self, socket: BorrowedFd<'_>) -> bool {
        let mut connection = self.lock();
        loop {
            match connection.reader().fill_buf() {
                Ok([]) => return true,
                Ok(bytes) => {
                    // It is read with the next reply.
                    self.holds_more.store(true, Ordering::Release);
                    return bytes[0] != b'>';
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return true,
            }
            match pull(&mut connection, socket) {
                Ok(()) => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Tells the server that nothing more will be written, if there is room for it: behind half a record it would be noise.
    pub(super) fn say_goodbye(&self, socket: BorrowedFd<'_>) {
        let mut connection = self.lock();
        if matches!(flush(&mut connection, socket), Ok(true)) {
            connection.send_close_notify();
            let _ = flush(&mut connection, socket);
        }
    }
}
