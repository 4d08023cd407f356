//! Where a peer listens, and a blocking stream to it over TCP or a unix socket.

use std::fmt;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::PATIENCE;

/// A kind of stream socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP over the loopback interface.
    Tcp,
    /// A unix socket.
    Unix,
}

/// Where a peer listens. Displayed as Respool's settings write it: `127.0.0.1:6379` or `unix:/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A TCP socket.
    Tcp(SocketAddr),
    /// A unix stream socket.
    Unix(PathBuf),
}

impl Address {
    /// A TCP address on the loopback interface.
    pub fn loopback(port: u16) -> Address {
        Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// Connects and, on TCP, switches Nagle's algorithm off.
    pub fn connect(&self) -> io::Result<Stream> {
        match self {
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, PATIENCE)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A connected blocking stream of either kind.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// How long a read may wait; `None` is for ever.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// How long a write may wait; `None` is for ever.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Whether reads and writes fail instead of waiting.
    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(is_nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(is_nonblocking),
        }
    }

    /// A second handle to the same connection, so that one thread can write while another reads.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// Closes one direction or both.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(how),
            Stream::Unix(stream) => stream.shutdown(how),
        }
    }
}

impl Read for Stream {
    /// Reads on where the process was stopped and continued, which ends a read that has a time limit.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let outcome = match self {
                Stream::Tcp(stream) => stream.read(buffer),
                Stream::Unix(stream) => stream.read(buffer),
            };
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A TCP port that was free a moment ago, for programs that cannot be asked to pick one themselves.
///
/// It lies below the range from which the system gives ports to those who ask for any, and to connections. So a server that
/// ends and starts again finds its port free. Another test may still ask for it here before the program takes it,
/// so the caller starts the program again with another one.
pub fn free_port() -> io::Result<u16> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768);
    let end = Some(end).filter(|end| *end > FREE_PORTS_START).unwrap_or(u16::MAX);
    for _ in 0..1_000 {
        let random = RandomState::new().hash_one(std::process::id());
        let port = FREE_PORTS_START + (random % u64::from(end - FREE_PORTS_START)) as u16;
        match TcpListener::bind(("127.0.0.1", port)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound.map(|_| port),
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Below it are the ports of well-known services.
const FREE_PORTS_START: u16 = 10_000;

/// A TCP port on the loopback interface at which nothing listens, kept so for as long as this lives: a connection
/// is refused, and no other program gets the port.
///
/// A port that was bound and given back does not serve: the next listener of any test may get it.
#[derive(Debug)]
pub struct ClosedPort {
    address: SocketAddr,
    // Bound and not listening, which keeps the port from others.
    _socket: Socket,
}

impl ClosedPort {
    /// Takes a port.
    pub fn take() -> io::Result<ClosedPort> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
        let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(ClosedPort { address, _socket: socket })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_refuses_and_is_not_given_away() {
        let port = ClosedPort::take().unwrap();
        assert_eq!(TcpStream::connect(port.address()).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(TcpListener::bind(port.address()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
