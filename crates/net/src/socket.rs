//! A connected stream of either transport, and the options that both ends get.

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Options of TCP connections, the same on both sides of the proxy.
#[derive(Clone, Copy, Debug)]
pub struct TransportOptions {
    /// Idle time before the kernel probes a peer; `None` leaves probing off.
    pub keepalive: Option<Duration>,
    /// How long sent bytes may stay unacknowledged before the connection is given up (Linux).
    pub user_timeout: Option<Duration>,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self { keepalive: Some(Duration::from_secs(300)), user_timeout: Some(Duration::from_secs(30)) }
    }
}

impl TransportOptions {
    /// Sets them, and TCP_NODELAY, on a TCP socket. On Linux, what a listener accepts inherits all of them.
    pub(crate) fn apply(&self, socket: SockRef<'_>) -> io::Result<()> {
        socket.set_tcp_nodelay(true)?;
        if let Some(idle) = self.keepalive {
            let probe = idle.checked_div(3).unwrap_or(idle).max(Duration::from_secs(1));
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle).with_interval(probe).with_retries(3))?;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(timeout) = self.user_timeout {
            socket.set_tcp_user_timeout(Some(timeout))?;
        }
        Ok(())
    }
}

/// A stream.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.source().register(registry, token, Interest::READABLE | Interest::WRITABLE)
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        retry(|| match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        })
    }

    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        retry(|| match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        })
    }

    pub(crate) fn fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }

    /// Whether a connect that was begun has succeeded: `Ok(false)` means not yet.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        let error = match self {
            Self::Tcp(stream) => stream.take_error()?,
            Self::Unix(stream) => stream.take_error()?,
        };
        if let Some(error) = error {
            return Err(error);
        }
        let peer = match self {
            Self::Tcp(stream) => stream.peer_addr().map(|_| ()),
            Self::Unix(stream) => stream.peer_addr().map(|_| ()),
        };
        match peer {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[inline]
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
