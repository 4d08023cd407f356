//! A connected stream of any transport, and the options that both ends get.

mod tls;

pub(crate) use tls::TlsSocket;

#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::limits::UNSENT_BYTES_MAX;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::{RecvFlags, SendFlags};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

/// Options of TCP connections, the same on both sides of the proxy.
#[derive(Clone, Copy, Debug)]
pub struct TransportOptions {
    /// Idle time before the kernel probes a peer; `None` leaves probing off.
    pub keepalive: Option<Duration>,
    /// How long sent bytes may stay unacknowledged before the connection is given up (Linux). Peers that were dialled may
    /// take their time to read: of them it is how long they may acknowledge nothing at all.
    pub user_timeout: Option<Duration>,
    /// How often the names of dialled peers are looked up again while connections to them stand; `None`: never.
    pub names_interval: Option<Duration>,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            keepalive: Some(Duration::from_secs(300)),
            user_timeout: Some(Duration::from_secs(30)),
            names_interval: None,
        }
    }
}

impl TransportOptions {
    /// Sets them, TCP_NODELAY, and how much the kernel holds unsent, on a TCP socket. On Linux, what a listener accepts inherits
    /// all of them.
    pub(crate) fn apply(&self, socket: SockRef<'_>) -> io::Result<()> {
        self.apply_common(&socket, 3)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            socket.set_tcp_user_timeout(self.user_timeout)?;
            socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
        }
        Ok(())
    }

    /// The same on a socket that is about to be dialled. See `peer_liveness` for the timeout; what it does not watch, idle
    /// connections, the kernel gives up after as many probes as it would with it.
    pub(crate) fn apply_dialled(&self, socket: SockRef<'_>) -> io::Result<()> {
        let probes = match (self.user_timeout, self.keepalive) {
            (Some(timeout), Some(idle)) => timeout.as_millis() / probe_interval(idle).as_millis(),
            _ => 3,
        };
        self.apply_common(&socket, u32::try_from(probes.clamp(1, 100)).unwrap_or(1))
    }

    fn apply_common(&self, socket: &SockRef<'_>, probes: u32) -> io::Result<()> {
        socket.set_tcp_nodelay(true)?;
        let Some(idle) = self.keepalive else { return socket.set_keepalive(false) };
        let keepalive = TcpKeepalive::new().with_time(idle).with_interval(probe_interval(idle));
        socket.set_tcp_keepalive(&keepalive.with_retries(probes))
    }
}

/// The time between two probes of a peer that has been idle for so long.
fn probe_interval(idle: Duration) -> Duration {
    idle.checked_div(3).unwrap_or(idle).max(Duration::from_secs(1))
}

/// A stream.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Boxed, so that connections without TLS stay as small as they are.
    Tls(Box<TlsSocket>),
}

/// What is waited for of a stream. An urgent byte is told of where that can be asked for.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE);

impl Socket {
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.source().register(registry, token, INTEREST)
    }

    /// The same under another number. An edge that came before comes again.
    pub(crate) fn reregister(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.source().reregister(registry, token, INTEREST)
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
            Self::Tls(socket) => socket.stream(),
        }
    }

    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        retry(|| match self {
            Self::Tcp(stream) => receive(stream, buffer),
            Self::Unix(stream) => receive(stream, buffer),
            Self::Tls(socket) => socket.read(buffer),
        })
    }

    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        retry(|| match self {
            Self::Tcp(stream) => send(stream, bytes),
            Self::Unix(stream) => send(stream, bytes),
            Self::Tls(socket) => socket.write(bytes),
        })
    }

    pub(crate) fn fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Tls(socket) => socket.fd(),
        }
    }

    /// The TCP connection below, if there is one.
    pub(crate) fn tcp(&mut self) -> Option<&mut TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Unix(_) => None,
            Self::Tls(socket) => Some(socket.stream()),
        }
    }

    /// After a read that did not fill its buffer: whether another one would bring something although no edge says so.
    #[inline]
    pub(crate) fn holds_more(&self) -> bool {
        matches!(self, Self::Tls(socket) if socket.holds_more())
    }

    /// There is room to write: what a transport has of its own to send leaves first.
    #[inline]
    pub(crate) fn handle_writable(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(socket) => socket.flush().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Whether a dial that was begun has succeeded: `Ok(false)` means not yet.
    pub(crate) fn is_connected(&mut self) -> io::Result<bool> {
        match self {
            Self::Tcp(stream) => is_through(stream.take_error()?, || stream.peer_addr().map(|_| ())),
            Self::Unix(stream) => is_through(stream.take_error()?, || stream.peer_addr().map(|_| ())),
            Self::Tls(socket) => {
                let stream = socket.stream();
                match is_through(stream.take_error()?, || stream.peer_addr().map(|_| ()))? {
                    true => socket.shake(),
                    false => Ok(false),
                }
            }
        }
    }

    /// Tells the peer that nothing more will be written. What it still sends may be read.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
            Self::Tls(socket) => {
                socket.say_goodbye();
                socket.stream().shutdown(Shutdown::Write)
            }
        }
    }

    /// The connection is closed on purpose: a transport that tells its peer so does, if there is room.
    #[inline]
    pub(crate) fn say_goodbye(&mut self) {
        if let Self::Tls(socket) = self {
            socket.say_goodbye();
        }
    }
}

/// Whether a connect that was begun is through: `Ok(false)` means not yet.
fn is_through(error: Option<io::Error>, peer: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
    match error.map_or_else(peer, Err) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// A peer that has closed its side is an error of the write and no signal. Where the flag is unknown the socket itself says so.
#[cfg(not(target_vendor = "apple"))]
const QUIETLY: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const QUIETLY: SendFlags = SendFlags::empty();

/// The kernel is called directly. The functions of the C library of the same names are points at which a thread may be
/// cancelled, and to say so before and after each call takes some 60 instructions.
#[inline]
fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (bytes, _) = rustix::net::recv(socket, buffer, RecvFlags::empty())?;
    Ok(bytes)
}

#[inline]
fn send(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, QUIETLY)?)
}

#[inline(always)]
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
