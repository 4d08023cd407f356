//! The socket of the one connection: TCP, TLS or a unix socket, never blocking but in [`Link::wait`].

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use respool_connection::Endpoint;
use respool_net::tls::{ClientTls, TlsStream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::limits::{CONNECT_LIMIT, WAIT_MAX};

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

/// What is ready.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    /// The other file that was waited for.
    pub(crate) is_input: bool,
}

impl Link {
    /// Connects, to the first address of the host that takes a connection.
    pub(crate) fn dial(endpoint: &Endpoint, tls: Option<&ClientTls>) -> io::Result<Self> {
        let link = match endpoint {
            Endpoint::Tcp { host, port } => Self::Tcp(connect(host, *port)?),
            Endpoint::Tls { host, port, server_name, .. } => {
                let stream = connect(host, *port)?;
                stream.set_read_timeout(Some(CONNECT_LIMIT))?;
                stream.set_write_timeout(Some(CONNECT_LIMIT))?;
                let tls = tls.ok_or_else(|| io::Error::other("there are no TLS settings"))?;
                Self::Tls(Box::new(TlsStream::open(tls, server_name, stream)?))
            }
            Endpoint::Unix { path } => Self::Unix(UnixStream::connect(path)?),
            Endpoint::Embedded { .. } => return Err(io::ErrorKind::Unsupported.into()),
        };
        match &link {
            Self::Tcp(socket) => socket.set_nonblocking(true)?,
            Self::Unix(socket) => socket.set_nonblocking(true)?,
            Self::Tls(stream) => stream.socket().set_nonblocking(true)?,
        }
        Ok(link)
    }

    /// Reads what there is. `None`: nothing yet. Zero bytes: the server has closed the connection.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        unless_blocked(match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        })
    }

    /// Writes what fits. `None`: nothing does.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        unless_blocked(match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        })
    }

    /// Pushes on what is in the middle of being encrypted. Whether it is all on its way.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(true),
            Self::Tls(stream) => {
                unless_blocked(stream.flush())?;
                Ok(!stream.wants_write())
            }
        }
    }

    /// Waits until the socket can be read, or written if `is_writing`, or `input` can be read; a signal or the time ends the wait too. No wait
    /// is longer than [`WAIT_MAX`].
    pub(crate) fn wait(&self, is_writing: bool, input: Option<BorrowedFd<'_>>, limit: Duration) -> io::Result<Ready> {
        let events = if is_writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let socket = PollFd::from_borrowed_fd(self.as_fd(), events);
        let mut waited = vec![socket];
        waited.extend(input.map(|input| PollFd::from_borrowed_fd(input, PollFlags::IN)));
        let limit = Timespec::try_from(limit.min(WAIT_MAX)).unwrap_or_default();
        match poll(&mut waited, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Ready { is_input: waited.get(1).is_some_and(|input| !input.revents().is_empty()) })
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
            Self::Tls(stream) => stream.socket().as_fd(),
        }
    }
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn unless_blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}
