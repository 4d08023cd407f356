//! Sockets that listen.
//!
//! TCP: every worker has a listener of its own on the same address (SO_REUSEPORT), so the kernel spreads connections.
//! Unix: the kernel cannot share a path that way, so one worker accepts and hands the connections round. A socket file that
//! a dead process left is removed; one that still has a listener is not touched. The file never has a wider mode than
//! the one asked for, not even for an instant.
//!
//! A socket that listens already, of another process or of a service manager, is taken over with what waits in its queue.

use crate::TransportOptions;
use crate::tls::TlsServer;
use crate::transport::Socket;
use mio::net::{TcpListener, UnixListener};
use respool_connection::{Endpoint, Peer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket as RawSocket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// A listening socket of one worker.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: ListenerSocket,
    address: String,
    /// The address has a wildcard, so a connection's own end has to be asked for.
    is_wildcard: bool,
    /// Connections are handed round among the workers.
    pub(crate) is_shared: bool,
    file: Option<Arc<SocketFile>>,
    pub(crate) tls: Option<Arc<TlsServer>>,
    has_ended: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(crate) enum ListenerSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The file of a unix socket. It goes with the socket, unless another process listens on it by then.
#[derive(Debug)]
struct SocketFile {
    path: String,
    is_given_away: AtomicBool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_given_away.load(Ordering::SeqCst) {
            // The listener that ends removes its file; one that is gone already is as good.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A second hand on a listening socket, to give it to another process.
#[derive(Debug)]
pub struct ListenerHandle {
    socket: OwnedFd,
    file: Option<Weak<SocketFile>>,
    has_ended: Arc<AtomicBool>,
}

impl ListenerHandle {
    /// Another hand on the same socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        let (file, has_ended) = (self.file.clone(), Arc::clone(&self.has_ended));
        Ok(Self { socket: self.socket.try_clone()?, file, has_ended })
    }

    /// Has a TCP socket listen no more, so that its address is free for another at once. Connections in its queue are reset. Its worker
    /// closes it with [`crate::MailSender::close_ended`]: until then it listens where the system does not know this, which is an error.
    pub fn end(&self) -> io::Result<()> {
        self.has_ended.store(true, Ordering::SeqCst);
        SockRef::from(&self.socket).shutdown(Shutdown::Read)
    }

    /// From now on the socket is another process': its file stays when we stop listening.
    pub fn give_away(&self) {
        if let Some(file) = self.file.as_ref().and_then(Weak::upgrade) {
            file.is_given_away.store(true, Ordering::SeqCst);
        }
    }

    /// Has the file of a socket that came from elsewhere go with this process: no other process listens there any more.
    pub fn keep(&self) {
        if let Some(file) = self.file.as_ref().and_then(Weak::upgrade) {
            file.is_given_away.store(false, Ordering::SeqCst);
        }
    }
}

impl AsFd for ListenerHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Why an address cannot be listened on.
#[derive(Debug)]
pub struct ListenError {
    endpoint: String,
    cause: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}", self.endpoint, self.cause)
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Opens `endpoint` for `workers` workers: result `i` is worker `i`'s share. A host name that has several addresses is
/// listened on at all of them. `mode` is the permission bits of a unix socket. Call it before other threads make files:
/// away from Linux, the mode is guarded by the umask, which belongs to the whole process.
pub fn bind(
    endpoint: &Endpoint,
    workers: usize,
    backlog: i32,
    mode: u32,
    options: &TransportOptions,
) -> Result<Vec<Vec<Listener>>, ListenError> {
    let fail = |cause| ListenError { endpoint: endpoint.to_string(), cause };
    let mut shares: Vec<Vec<Listener>> = (0..workers.max(1)).map(|_| Vec::new()).collect();
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let mut port = *port;
            for address in addresses_of(host, port).map_err(fail)? {
                // Port 0 asks for any free one; all addresses of the name get the same.
                let address = SocketAddr::new(address.ip(), port);
                let bound = bind_tcp(address, &mut shares, backlog, options);
                match bound {
                    Ok(found) => port = found,
                    // There may be an address of a family that this machine does not use.
                    Err(error) if is_absent(&error) && !shares[0].is_empty() => {}
                    Err(error) => return Err(fail(error)),
                }
            }
            if shares[0].is_empty() {
                return Err(fail(io::Error::other("the host has no address")));
            }
        }
        Endpoint::Unix { path } => {
            let mut listener = unix_listener(bind_unix(path, backlog, mode).map_err(fail)?, path, true);
            listener.is_shared = workers > 1;
            shares[0].push(listener);
        }
        Endpoint::Embedded { .. } | Endpoint::Tls { .. } => {
            return Err(fail(io::Error::other("this is an address to dial, not to listen on")));
        }
    }
    Ok(shares)
}

/// Listens for `workers` workers on sockets of `endpoint` that listen already, as [`bind`] would on new ones. Whatever waits
/// in their queues is accepted. The file of a unix socket stays the other process' until [`ListenerHandle::keep`].
pub fn adopt(
    endpoint: &Endpoint,
    sockets: Vec<OwnedFd>,
    workers: usize,
    backlog: i32,
    mode: u32,
    options: &TransportOptions,
) -> Result<Vec<Vec<Listener>>, ListenError> {
    let fail = |cause| ListenError { endpoint: endpoint.to_string(), cause };
    let workers = workers.max(1);
    let mut shares: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
    match endpoint {
        Endpoint::Tcp { .. } => {
            // A name or a wildcard can have several addresses, and each has its sockets.
            let mut by_address: Vec<(SocketAddr, Vec<RawSocket>)> = Vec::new();
            for socket in sockets.into_iter().map(RawSocket::from) {
                let address = adopted_address(&socket, backlog).map_err(fail)?;
                options.apply(SockRef::from(&socket)).map_err(fail)?;
                match by_address.iter_mut().find(|(known, _)| *known == address) {
                    Some((_, sockets)) => sockets.push(socket),
                    None => by_address.push((address, vec![socket])),
                }
            }
            for (address, mut sockets) in by_address {
                // More workers than queues: several wake up for one, and all but the first find it empty.
                for extra in sockets.len()..workers {
                    sockets.push(sockets[extra % sockets.len()].try_clone().map_err(fail)?);
                }
                for (place, socket) in sockets.into_iter().enumerate() {
                    shares[place % workers].push(tcp_listener(socket, address));
                }
            }
        }
        Endpoint::Unix { path } => {
            for socket in sockets.into_iter().map(RawSocket::from) {
                is_listening(&socket, backlog).map_err(fail)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(fail)?;
                let mut listener = unix_listener(socket, path, false);
                listener.is_shared = workers > 1;
                shares[0].push(listener);
            }
        }
        Endpoint::Embedded { .. } | Endpoint::Tls { .. } => {
            return Err(fail(io::Error::other("this is an address to dial, not to listen on")));
        }
    }
    Ok(shares)
}

/// Checks that a socket listens for TCP, with the backlog asked for, and says where.
fn adopted_address(socket: &RawSocket, backlog: i32) -> io::Result<SocketAddr> {
    is_listening(socket, backlog)?;
    let address = socket.local_addr()?.as_socket();
    address.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the socket that was taken over is not of TCP"))
}

fn is_listening(socket: &RawSocket, backlog: i32) -> io::Result<()> {
    if socket.r#type()? != Type::STREAM {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket that was taken over does not listen"));
    }
    socket.set_nonblocking(true)?;
    socket.set_cloexec(true)?;
    socket.listen(backlog)
}

fn tcp_listener(socket: RawSocket, address: SocketAddr) -> Listener {
    Listener {
        socket: ListenerSocket::Tcp(TcpListener::from_std(socket.into())),
        address: address.to_string(),
        is_wildcard: address.ip().is_unspecified(),
        is_shared: false,
        file: None,
        tls: None,
        has_ended: Arc::default(),
    }
}

fn unix_listener(socket: RawSocket, path: &str, is_ours: bool) -> Listener {
    Listener {
        socket: ListenerSocket::Unix(UnixListener::from_std(socket.into())),
        address: format!("{path}:0"),
        is_wildcard: false,
        is_shared: false,
        file: Some(Arc::new(SocketFile { path: path.to_owned(), is_given_away: AtomicBool::new(!is_ours) })),
        tls: None,
        has_ended: Arc::default(),
    }
}

/// A unix socket at which other processes ask for something, outside every worker.
#[derive(Debug)]
pub struct ControlSocket {
    listener: StdUnixListener,
    file: Arc<SocketFile>,
}

impl ControlSocket {
    /// Opens it for the process' own user alone, or goes on with one that listens at `path` already.
    pub fn open(path: &str, adopted: Option<OwnedFd>) -> Result<Self, ListenError> {
        const BACKLOG: i32 = 16;
        const MODE: u32 = 0o600;
        let fail = |cause| ListenError { endpoint: format!("unix:{path}"), cause };
        let is_ours = adopted.is_none();
        let socket = match adopted {
            Some(socket) => {
                let socket = RawSocket::from(socket);
                is_listening(&socket, BACKLOG).map_err(fail)?;
                socket
            }
            None => bind_unix(path, BACKLOG, MODE).map_err(fail)?,
        };
        socket.set_nonblocking(false).map_err(fail)?;
        let file = SocketFile { path: path.to_owned(), is_given_away: AtomicBool::new(!is_ours) };
        Ok(Self { listener: StdUnixListener::from(OwnedFd::from(socket)), file: Arc::new(file) })
    }

    /// A second hand on the socket, for a thread that waits for connections, and what ends that wait by being dropped. The
    /// file goes with `self`.
    pub fn callers(&self) -> io::Result<(Callers, StdUnixStream)> {
        let (end, over) = StdUnixStream::pair()?;
        Ok((Callers { listener: self.listener.try_clone()?, over }, end))
    }

    /// A second hand on the socket, to give it to another process.
    pub fn handle(&self) -> io::Result<ListenerHandle> {
        let socket = self.listener.as_fd().try_clone_to_owned()?;
        Ok(ListenerHandle { socket, file: Some(Arc::downgrade(&self.file)), has_ended: Arc::default() })
    }
}

/// The connections to a [`ControlSocket`], one after the other.
#[derive(Debug)]
pub struct Callers {
    listener: StdUnixListener,
    /// Closed by the other side when no connection is waited for any more.
    over: StdUnixStream,
}

impl Iterator for Callers {
    type Item = io::Result<StdUnixStream>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut both = [PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.over, PollFlags::IN)];
        loop {
            match poll(&mut both, None) {
                Err(Errno::INTR) => {}
                Err(error) => return Some(Err(error.into())),
                Ok(_) if !both[1].revents().is_empty() => return None,
                Ok(_) => return Some(self.listener.accept().map(|(stream, _)| stream)),
            }
        }
    }
}

impl From<OwnedFd> for ListenerHandle {
    fn from(socket: OwnedFd) -> Self {
        Self { socket, file: None, has_ended: Arc::default() }
    }
}

fn addresses_of(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if host.is_empty() {
        let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        return Ok(any.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    Ok((host, port).to_socket_addrs()?.collect())
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

/// One listener for each worker on the same address. Returns the port.
fn bind_tcp(
    mut address: SocketAddr,
    shares: &mut [Vec<Listener>],
    backlog: i32,
    options: &TransportOptions,
) -> io::Result<u16> {
    let is_shared_port = shares.len() > 1;
    if is_shared_port && address.port() != 0 {
        // A process that shares the port gets a share of the clients, and the kernel would let another process of ours in.
        tcp_socket(address)?.bind(&SockAddr::from(address))?;
    }
    for share in shares {
        let socket = tcp_socket(address)?;
        if is_shared_port {
            socket.set_reuse_port(true)?;
        }
        options.apply(SockRef::from(&socket))?;
        socket.bind(&SockAddr::from(address))?;
        socket.listen(backlog)?;
        address = socket.local_addr()?.as_socket().unwrap_or(address);
        share.push(tcp_listener(socket, address));
    }
    Ok(address.port())
}

fn tcp_socket(address: SocketAddr) -> io::Result<RawSocket> {
    let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_cloexec(true)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

fn bind_unix(path: &str, backlog: i32, mode: u32) -> io::Result<RawSocket> {
    remove_stale(path)?;
    let socket = RawSocket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_cloexec(true)?;
    bind_with_mode(&socket, path, mode)?;
    socket.listen(backlog)?;
    Ok(socket)
}

/// On Linux a socket's own mode bounds that of its file from the start; the umask may have taken more away, which is put
/// back afterwards.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_with_mode(socket: &RawSocket, path: &str, mode: u32) -> io::Result<()> {
    rustix::fs::fchmod(socket, rustix::fs::Mode::from_raw_mode(mode))?;
    socket.bind(&SockAddr::unix(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Elsewhere only the umask bounds the mode. It belongs to the whole process: nothing else may make files meanwhile.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_with_mode(socket: &RawSocket, path: &str, mode: u32) -> io::Result<()> {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode((!mode & 0o777) as _));
    let bound = socket.bind(&SockAddr::unix(path)?);
    rustix::process::umask(mask);
    bound
}

/// Removes a socket file without a listener. Anything else at `path` is left for `bind` to complain about.
fn remove_stale(path: &str) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket is in the way"));
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process answers on that socket")),
    }
}

impl Listener {
    /// The address as it came to be: with the port that was found if any free one was asked for.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// From now on, what it accepts has to speak TLS. Only for TCP.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<TlsServer>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// A second hand on the socket. It keeps the socket listening, so it must go when we stop.
    pub fn handle(&self) -> io::Result<ListenerHandle> {
        let socket = match &self.socket {
            ListenerSocket::Tcp(socket) => socket.as_fd().try_clone_to_owned()?,
            ListenerSocket::Unix(socket) => socket.as_fd().try_clone_to_owned()?,
        };
        let (file, has_ended) = (self.file.as_ref().map(Arc::downgrade), Arc::clone(&self.has_ended));
        Ok(ListenerHandle { socket, file, has_ended })
    }

    /// Whether it was told to listen no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// What it accepts from now on has these options.
    pub(crate) fn set_options(&self, options: &TransportOptions) -> io::Result<()> {
        match &self.socket {
            ListenerSocket::Tcp(socket) => options.apply(SockRef::from(socket)),
            ListenerSocket::Unix(_) => Ok(()),
        }
    }

    /// The TCP port listened on, or `None` for a unix socket.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            ListenerSocket::Tcp(socket) => socket.local_addr().ok().map(|address| address.port()),
            ListenerSocket::Unix(_) => None,
        }
    }

    pub(crate) fn accept(&self) -> io::Result<(Socket, Peer)> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                let local_address = match self.is_wildcard {
                    true => stream.local_addr().map_or_else(|_| self.address.clone(), |a| a.to_string()),
                    false => self.address.clone(),
                };
                let fd = stream.as_raw_fd();
                let peer = Peer { address: address.to_string(), local_address, is_unix: false, fd, identity: None };
                Ok((Socket::Tcp(stream), peer))
            }
            ListenerSocket::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                let fd = stream.as_raw_fd();
                let (address, local_address) = (self.address.clone(), self.address.clone());
                Ok((Socket::Unix(stream), Peer { address, local_address, is_unix: true, fd, identity: None }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &str, mode: u32) -> Result<Vec<Vec<Listener>>, ListenError> {
        bind(&Endpoint::Unix { path: path.to_owned() }, 2, 16, mode, &TransportOptions::default())
    }

    #[test]
    fn a_unix_socket_has_its_mode_is_shared_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s").to_str().unwrap().to_owned();
        let listeners = open(&path, 0o640).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(listeners[0].iter().all(|l| l.is_shared));
        assert_eq!((listeners[0].len(), listeners[1].len()), (1, 0));
        drop(listeners);
        assert!(!std::fs::exists(&path).unwrap());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_living_one_or_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s").to_str().unwrap().to_owned();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let living = open(&path, 0o600).unwrap();
        assert!(open(&path, 0o600).unwrap_err().to_string().contains("another process answers"));
        drop(living);
        std::fs::write(&path, "precious").unwrap();
        assert!(open(&path, 0o600).unwrap_err().to_string().contains("no socket"));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn callers_come_one_by_one_until_the_wait_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s").to_str().unwrap().to_owned();
        let socket = ControlSocket::open(&path, None).unwrap();
        let (mut callers, end) = socket.callers().unwrap();
        let _one = StdUnixStream::connect(&path).unwrap();
        assert!(callers.next().is_some_and(|caller| caller.is_ok()));
        let waiting = std::thread::spawn(move || callers.next().is_none());
        drop(end);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn a_port_is_shared_with_no_other_process() {
        let endpoint = |port| Endpoint::Tcp { host: "127.0.0.1".to_owned(), port };
        let listeners = bind(&endpoint(0), 2, 16, 0, &TransportOptions::default()).unwrap();
        let port = listeners[0][0].port().unwrap();
        for workers in [1, 2] {
            let refused = bind(&endpoint(port), workers, 16, 0, &TransportOptions::default()).unwrap_err();
            assert_eq!(refused.cause.kind(), io::ErrorKind::AddrInUse, "{workers} workers: {refused}");
        }
        drop(listeners);
        assert!(bind(&endpoint(port), 2, 16, 0, &TransportOptions::default()).is_ok());
    }

    #[test]
    fn a_listener_that_is_ended_leaves_its_address_at_once() {
        let endpoint = |host: &str, port| Endpoint::Tcp { host: host.to_owned(), port };
        let open = |host: &str, port| bind(&endpoint(host, port), 1, 16, 0, &TransportOptions::default());
        let every = open("0.0.0.0", 0).unwrap().remove(0).remove(0);
        let (port, handle) = (every.port().unwrap(), every.handle().unwrap());
        let connect = || std::net::TcpStream::connect(("127.0.0.1", port));
        assert!(open("127.0.0.1", port).is_err() && connect().is_ok());
        assert!(!every.has_ended());
        handle.end().unwrap();
        assert!(every.has_ended() && connect().is_err(), "nothing listens");
        let one = open("127.0.0.1", port).expect("the address is free");
        assert!(connect().is_ok());
        drop(one);
        let _again = open("0.0.0.0", port).expect("it is free for the same address as well");
        assert!(connect().is_ok());
    }

    #[test]
    fn accepted_sockets_inherit_the_options_of_a_shared_port() {
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 0 };
        let listeners = bind(&endpoint, 2, 16, 0, &TransportOptions::default()).unwrap();
        let addresses: Vec<_> = listeners.iter().flatten().map(Listener::address).collect();
        assert_eq!(addresses.len(), 2);
        assert_eq!(addresses[0], addresses[1]);
        let _client = std::net::TcpStream::connect(addresses[0]).unwrap();
        let accepted = loop {
            match listeners.iter().flatten().find_map(|l| l.accept().ok()) {
                Some((Socket::Tcp(stream), _)) => break stream,
                Some(_) => panic!("a TCP listener accepts TCP"),
                None => std::thread::yield_now(),
            }
        };
        let options = SockRef::from(&accepted);
        assert!(options.tcp_nodelay().unwrap());
        assert!(options.keepalive().unwrap());
        assert_eq!(options.tcp_user_timeout().unwrap(), TransportOptions::default().user_timeout);
        assert_eq!(options.tcp_notsent_lowat().unwrap(), crate::limits::UNSENT_BYTES_MAX);
    }
}
