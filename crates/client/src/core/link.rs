//! The socket of a connection.
//!
//! A thread that reads waits in the kernel, a task never does, and nothing ever waits to write. The socket is in blocking mode until
//! the first task waits for it, so that a program of threads alone needs one system call to read.

use super::dial::Failure;
use super::lookup::Lookup;
#[cfg(feature = "tls")]
use super::session::Session;
use crate::Config;
use crate::limits::{KEEPALIVE_IDLE, KEEPALIVE_PAUSE, KEEPALIVE_PROBES};
use respool_connection::Endpoint;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, sendmsg,
    socket_with,
};
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long anything waits in the kernel at most, before it is begun again: longer times may not fit what the kernel counts in.
pub(super) const FOREVER: Duration = Duration::from_micros(FOREVER_US);

/// The same in microseconds.
pub(super) const FOREVER_US: u64 = 3_600_000_000;

/// Slices of one system call.
const SLICES_MAX: usize = 64;

/// Bytes after which a write of many slices leaves the rest to the thread that writes what did not fit, although the kernel takes more: a
/// server that reads as quickly as they come would keep the caller here, which may be a runtime's only thread.
const SEND_TURN_BYTES: usize = 1 << 20;

/// Nothing waits to write, and a lost connection is an error and no signal.
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Asks the kernel until it is not interrupted by a signal.
fn again<T>(mut ask: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match ask() {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Takes what has come, and waits for nothing.
#[cfg(feature = "tls")]
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    again(|| recv(socket, &mut *buffer, RecvFlags::DONTWAIT)).map(|(bytes, _)| bytes)
}

/// Gives the kernel as much as it takes at once.
pub(super) fn send_one(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    again(|| send(socket, bytes, SEND_FLAGS))
}

/// As [`send_one`], of several slices.
pub(super) fn send_many(socket: BorrowedFd<'_>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    again(|| sendmsg(socket, slices, &mut rustix::net::SendAncillaryBuffer::default(), SEND_FLAGS))
}

/// Waits until something can be read or written. Whether it can.
pub(super) fn wait_for(socket: BorrowedFd<'_>, what: PollFlags, limit: Duration) -> io::Result<bool> {
    let until = Instant::now() + limit.min(FOREVER);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(socket, what)], Some(&left)) {
            Err(Errno::INTR) => {}
            other => return Ok(other? > 0),
        }
    }
}

/// Waits until something can be read. Whether it can.
#[cfg(feature = "cache")]
pub(crate) fn wait_readable(socket: &impl AsFd, limit: Duration) -> io::Result<bool> {
    wait_for(socket.as_fd(), PollFlags::IN, limit)
}

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Arc<Socket>,
    /// What encrypts, if it is encrypted.
    #[cfg(feature = "tls")]
    session: Option<Session>,
    peer: Peer,
    /// By what it was dialled. What sentinels name is in no settings.
    endpoint: Endpoint,
    /// How long the kernel lets a read wait, in microseconds; 0 without end.
    read_timeout_us: AtomicU64,
    /// A runtime watches it.
    is_nonblocking: AtomicBool,
}

/// Where a connection leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A host may have several addresses, each of another server.
    Tcp(SocketAddr),
    /// The path is always that of the settings.
    Unix,
}

/// A socket of any kind.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(test)]
    Simulated(Arc<super::simulated::End>),
}

fn connect_tcp(
    lookup: &Lookup,
    (host, port): (&str, u16),
    peer: Option<Peer>,
    until: Instant,
) -> io::Result<TcpStream> {
    let addresses = match peer {
        Some(Peer::Tcp(address)) => vec![address],
        _ => lookup.addresses(host, port, left(until)?)?,
    };
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let share = left(until)? / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match TcpStream::connect_timeout(address, share.max(Duration::from_millis(1))) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                watch_idle(&socket)?;
                return Ok(socket);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Lets the kernel ask the other host whether it is there still while nothing comes. Calls without a deadline, as a `BLPOP` without end, wait by
/// this alone.
fn watch_idle(socket: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(socket, true)?;
    // There, the system's terms hold.
    #[cfg(not(any(target_os = "haiku", target_os = "nto", target_os = "openbsd", target_os = "redox")))]
    {
        sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(socket, KEEPALIVE_PAUSE)?;
        sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    }
    Ok(())
}

/// How long it is waited before a socket whose queue of connections is full is tried again: the kernel does not tell when it has room.
const UNIX_PAUSE: Duration = Duration::from_millis(5);

fn connect_unix(path: &Path, until: Instant) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN | Errno::INTR) => std::thread::sleep(left(until)?.min(UNIX_PAUSE)),
            Err(error) => return Err(error.into()),
        }
    }
    let socket = UnixStream::from(socket);
    socket.set_nonblocking(false)?;
    Ok(socket)
}

/// The time that is left to connect.
pub(super) fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::Error::new(io::ErrorKind::TimedOut, "not connected in time")) } else { Ok(left) }
}

impl Link {
    /// Connects, to the first address of the host that takes a connection. Each address gets its part of the time that is left.
    pub(crate) fn connect(config: &Config, lookup: &Lookup, until: Instant) -> Result<Self, Failure> {
        Self::connect_beside(None, config, lookup, until)
    }

    /// As [`Self::connect`], to the very server that another connection leads to, if one is given.
    pub(crate) fn connect_beside(
        other: Option<&Self>,
        config: &Config,
        lookup: &Lookup,
        until: Instant,
    ) -> Result<Self, Failure> {
        if let Some(sentinels) = &config.sentinels {
            return sentinels.connect(other, config, lookup, until);
        }
        Ok(Self::connect_directly(other.map(Self::peer), config, lookup, until)?)
    }

    fn connect_directly(peer: Option<Peer>, config: &Config, lookup: &Lookup, until: Instant) -> io::Result<Self> {
        #[cfg(test)]
        if let Some(end) = super::simulated::connect() {
            return Ok(Self::simulated(end?, config));
        }
        let socket = match &config.endpoint {
            Endpoint::Tcp { host, port } => Socket::Tcp(connect_tcp(lookup, (host, *port), peer, until)?),
            Endpoint::Unix { path } => Socket::Unix(connect_unix(path.as_ref(), until)?),
            #[cfg(feature = "tls")]
            Endpoint::Tls { host, port, .. } => Socket::Tcp(connect_tcp(lookup, (host, *port), peer, until)?),
            other => return Err(io::Error::new(io::ErrorKind::Unsupported, format!("{other} cannot be dialled here"))),
        };
        #[cfg(feature = "tls")]
        let session = match &config.endpoint {
            Endpoint::Tls { server_name, .. } => {
                Some(Session::connect(&config.tls, server_name, socket.as_fd(), until)?)
            }
            _ => None,
        };
        let peer = match &socket {
            Socket::Tcp(socket) => Peer::Tcp(socket.peer_addr()?),
            Socket::Unix(_) => Peer::Unix,
            #[cfg(test)]
            Socket::Simulated(_) => Peer::Unix,
        };
        Ok(Self {
            socket: Arc::new(socket),
            #[cfg(feature = "tls")]
            session,
            peer,
            endpoint: config.endpoint.clone(),
            read_timeout_us: AtomicU64::new(0),
            is_nonblocking: AtomicBool::new(false),
        })
    }

    #[cfg(test)]
    fn simulated(end: Arc<super::simulated::End>, config: &Config) -> Self {
        Self {
            socket: Arc::new(Socket::Simulated(end)),
            #[cfg(feature = "tls")]
            session: None,
            peer: Peer::Unix,
            endpoint: config.endpoint.clone(),
            read_timeout_us: AtomicU64::new(0),
            is_nonblocking: AtomicBool::new(false),
        }
    }

    /// The socket, if a script has it.
    #[cfg(test)]
    pub(super) fn end(&self) -> Option<&Arc<super::simulated::End>> {
        if let Socket::Simulated(end) = &*self.socket { Some(end) } else { None }
    }

    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// By what it was dialled.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The socket and where it leads to, for what may shut it.
    pub(crate) fn socket_of(&self) -> Option<(SocketAddr, Weak<Socket>)> {
        match self.peer {
            Peer::Tcp(peer) => Some((peer, Arc::downgrade(&self.socket))),
            Peer::Unix => None,
        }
    }

    /// Another handle of the socket, for a runtime. Reads do not wait in the kernel any longer.
    #[cfg(feature = "tokio")]
    pub(super) fn copy_for_tasks(&self) -> io::Result<Socket> {
        self.is_nonblocking.store(true, Ordering::Release);
        Ok(match &*self.socket {
            Socket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Socket::Tcp(socket.try_clone()?)
            }
            Socket::Unix(socket) => {
                socket.set_nonblocking(true)?;
                Socket::Unix(socket.try_clone()?)
            }
            #[cfg(test)]
            Socket::Simulated(end) => Socket::Simulated(Arc::clone(end)),
        })
    }

    /// Whether a read may find something although the socket has nothing new.
    #[cfg(feature = "tokio")]
    pub(crate) fn holds_more(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.session.as_ref().is_some_and(Session::holds_more);
        #[cfg(not(feature = "tls"))]
        false
    }

    /// Reads what there is, or waits until there is something, at most for `wait`.
    pub(crate) fn recv(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        #[cfg(test)]
        if let Socket::Simulated(end) = &*self.socket {
            return end.recv(buffer, wait);
        }
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            let limit = match wait {
                Wait::Not => None,
                Wait::Forever => Some(Duration::MAX),
                Wait::For { left_us, .. } => Some(Duration::from_micros(left_us)),
            };
            return session.recv(self.as_fd(), buffer, limit);
        }
        let flags = match wait {
            Wait::Not => RecvFlags::DONTWAIT,
            Wait::Forever if self.is_nonblocking.load(Ordering::Acquire) => {
                self.wait_readable(FOREVER)?;
                RecvFlags::DONTWAIT
            }
            Wait::Forever => RecvFlags::empty(),
            Wait::For { usual_us, left_us } => {
                let (usual_us, left_us) = (usual_us.min(FOREVER_US), left_us.min(FOREVER_US));
                // The kernel takes no time at all for time without end.
                let is_short = usual_us == 0 || left_us < usual_us - usual_us / 16;
                if is_short || self.is_nonblocking.load(Ordering::Acquire) {
                    if !self.wait_readable(Duration::from_micros(left_us))? {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                } else if self.read_timeout_us.load(Ordering::Relaxed) != usual_us {
                    self.set_read_timeout(usual_us)?;
                }
                RecvFlags::empty()
            }
        };
        again(|| recv(self, &mut *buffer, flags)).map(|(bytes, _)| bytes)
    }

    #[cold]
    fn set_read_timeout(&self, usual_us: u64) -> io::Result<()> {
        self.read_timeout_us.store(usual_us, Ordering::Relaxed);
        let limit = Some(Duration::from_micros(usual_us));
        match &*self.socket {
            Socket::Tcp(socket) => socket.set_read_timeout(limit),
            Socket::Unix(socket) => socket.set_read_timeout(limit),
            #[cfg(test)]
            Socket::Simulated(_) => Ok(()),
        }
    }

    /// Writes as much as the kernel takes at once, or some of it if that is a lot.
    pub(crate) fn send<'a>(&self, mut slices: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        #[cfg(test)]
        if let Socket::Simulated(end) = &*self.socket {
            return end.send(slices);
        }
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.send(self.as_fd(), slices);
        }
        let Some(first) = slices.next() else { return Ok(0) };
        match slices.next() {
            None => send_one(self.as_fd(), first),
            Some(second) => self.send_slices([first, second].into_iter().chain(slices)),
        }
    }

    fn send_slices<'a>(&self, mut slices: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut sent = 0;
        loop {
            let mut some = [IoSlice::new(&[]); SLICES_MAX];
            let (mut count, mut bytes) = (0, 0);
            for (place, slice) in some.iter_mut().zip(&mut slices) {
                *place = IoSlice::new(slice);
                count += 1;
                bytes += slice.len();
            }
            if count == 0 {
                return Ok(sent);
            }
            let taken = match send_many(self.as_fd(), &some[..count]) {
                Ok(taken) => taken,
                // It is found again with the rest.
                Err(_) if sent > 0 => return Ok(sent),
                Err(error) => return Err(error),
            };
            sent += taken;
            if taken < bytes || sent >= SEND_TURN_BYTES {
                return Ok(sent);
            }
        }
    }

    /// Waits until something can be read. Whether it can.
    fn wait_readable(&self, limit: Duration) -> io::Result<bool> {
        self.wait(PollFlags::IN, limit)
    }

    /// Whether something has come that was not read, or the end has.
    pub(crate) fn has_unread(&self) -> bool {
        self.wait_readable(Duration::ZERO).unwrap_or(false)
    }

    /// Waits until something can be written. Whether it can.
    pub(crate) fn wait_writable(&self, limit: Duration) -> io::Result<bool> {
        self.wait(PollFlags::OUT, limit)
    }

    fn wait(&self, what: PollFlags, limit: Duration) -> io::Result<bool> {
        #[cfg(test)]
        if let Socket::Simulated(end) = &*self.socket {
            return Ok(if what == PollFlags::IN { end.is_readable() } else { end.is_writable() });
        }
        wait_for(self.as_fd(), what, limit)
    }

    /// Whether everything that was taken to be sent is with the kernel.
    pub(crate) fn is_flushed(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.session.as_ref().is_none_or(Session::is_flushed);
        #[cfg(not(feature = "tls"))]
        true
    }

    /// Waits until something can be read here or from `other`, or written here if that is wanted.
    pub(crate) fn wait_any(&self, wants_write: bool, other: &impl AsFd, limit: Duration) -> io::Result<()> {
        let wanted = if wants_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let limit = limit.min(FOREVER);
        let limit = Timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() };
        let mut watched = [PollFd::new(self, wanted), PollFd::new(other, PollFlags::IN)];
        match poll(&mut watched, Some(&limit)) {
            Err(Errno::INTR) => Ok(()),
            other => other.map(drop).map_err(io::Error::from),
        }
    }

    /// Ends both directions: a thread that waits in [`Self::recv`] returns.
    pub(crate) fn shut(&self) {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            session.say_goodbye(self.as_fd());
        }
        self.socket.shut();
    }

    /// When the socket is closed, what the peer has not confirmed is not sent any more. The peer of a local socket has it already.
    pub(crate) fn reset_when_closed(&self) {
        #[cfg(test)]
        if let Socket::Simulated(end) = &*self.socket {
            end.reset_when_closed();
        }
        if let Socket::Tcp(socket) = &*self.socket {
            let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
    }

    /// Whether the peer has ended the connection, or the kernel has. What has come before may not have been read.
    pub(crate) fn has_ended(&self) -> bool {
        #[cfg(test)]
        if let Socket::Simulated(end) = &*self.socket {
            return end.has_ended();
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let ends = PollFlags::RDHUP;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let ends = PollFlags::HUP;
        match poll(&mut [PollFd::new(self, ends)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(ended) => ended > 0,
            // It is not known, so it may have.
            Err(_) => true,
        }
    }

    /// Whether [`Self::is_spoilt`] takes what has come from the socket.
    pub(crate) fn is_encrypted(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.session.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }

    /// Whether a connection on which nothing is owed cannot be used any longer: the peer has closed its side, or has sent something that
    /// is no push.
    pub(crate) fn is_spoilt(&self) -> bool {
        #[cfg(feature = "tls")]
        if let Some(session) = &self.session {
            return session.is_spoilt(self.as_fd());
        }
        #[cfg(test)]
        if let Socket::Simulated(end) = &*self.socket {
            return end.is_spoilt();
        }
        let mut first = [0_u8; 1];
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        match recv(self, &mut first[..], flags) {
            Ok((bytes, _)) => bytes == 0 || first != *b">",
            Err(error) => error != Errno::AGAIN && error != Errno::INTR,
        }
    }
}

/// How long a read waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    Not,
    /// Until there is something.
    Forever,
    /// For the time that is left of the usual, in microseconds.
    For {
        /// How long calls of this kind wait. The kernel is told once.
        usual_us: u64,
        /// How long this one may still wait.
        left_us: u64,
    },
}

impl Socket {
    /// Ends both directions.
    pub(crate) fn shut(&self) {
        let _ = match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Both),
            Self::Unix(socket) => socket.shutdown(Shutdown::Both),
            #[cfg(test)]
            Self::Simulated(end) => {
                end.shut();
                Ok(())
            }
        };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
            #[cfg(test)]
            Self::Simulated(_) => unreachable!("a script's socket is no file of the kernel"),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A connection, and its other side.
    fn pair() -> (Link, UnixStream) {
        let (socket, other) = UnixStream::pair().unwrap();
        let link = Link {
            socket: Arc::new(Socket::Unix(socket)),
            #[cfg(feature = "tls")]
            session: None,
            peer: Peer::Unix,
            endpoint: Endpoint::Unix { path: "/none".into() },
            read_timeout_us: AtomicU64::new(0),
            is_nonblocking: AtomicBool::new(false),
        };
        (link, other)
    }

    #[test]
    fn small_writes_are_not_held_back_by_the_kernel() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let config = Config::from_url(&listener.local_addr().unwrap().to_string()).unwrap();
        let link = Link::connect(&config, &Lookup::default(), Instant::now() + Duration::from_secs(60)).unwrap();
        assert!(rustix::net::sockopt::tcp_nodelay(&link).unwrap());
    }

    #[test]
    fn a_host_that_has_gone_is_found_while_nothing_is_said() {
        use rustix::net::sockopt;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let config = Config::from_url(&listener.local_addr().unwrap().to_string()).unwrap();
        let link = Link::connect(&config, &Lookup::default(), Instant::now() + Duration::from_secs(60)).unwrap();
        assert!(sockopt::socket_keepalive(&link).unwrap());
        let probing = sockopt::tcp_keepintvl(&link).unwrap() * sockopt::tcp_keepcnt(&link).unwrap();
        assert!(sockopt::tcp_keepidle(&link).unwrap() + probing <= Duration::from_secs(60));
    }

    #[test]
    fn a_write_of_slices_is_not_cut_while_the_kernel_takes_more() {
        let (link, mut other) = pair();
        let words: Vec<String> = (0..1_000).map(|number| format!("{number};")).collect();
        let bytes = link.send(words.iter().map(String::as_bytes)).unwrap();
        let mut seen = vec![0; bytes];
        other.read_exact(&mut seen).unwrap();
        assert_eq!(String::from_utf8(seen).unwrap(), words.concat());
    }

    #[test]
    fn a_write_ends_where_the_kernel_takes_no_more() {
        let (link, mut other) = pair();
        // Of a prime length, so that no two places of the stream are alike for long.
        let word: Vec<u8> = (0..30_011_u32).map(|at| (at % 251) as u8).collect();
        let all = word.repeat(1_000);
        let mut sent = 0;
        while sent < all.len() {
            let slices = all[sent..].chunks(word.len());
            match link.send(slices) {
                Ok(bytes) => sent += bytes,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        assert!((1..all.len()).contains(&sent), "{sent}");
        let mut seen = vec![0; sent];
        other.read_exact(&mut seen).unwrap();
        assert!(seen == all[..sent]);
        drop(other);
        assert_eq!(link.send(all.chunks(word.len())).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_server_that_reads_quickly_keeps_no_caller_at_its_write() {
        let (link, mut other) = pair();
        let reader = std::thread::spawn(move || io::copy(&mut other, &mut io::sink()).unwrap());
        let value = vec![b'v'; 4 * 1024];
        let bytes = link.send(std::iter::repeat_n(&value[..], 100_000)).unwrap();
        assert!(bytes <= SEND_TURN_BYTES + SLICES_MAX * value.len(), "{bytes}");
        link.shut();
        assert_eq!(reader.join().unwrap(), bytes as u64);
    }

    #[test]
    fn nothing_arrives_of_a_silent_connection_that_was_ended() {
        let read_after = |ends: fn(&Link)| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let config = Config::from_url(&listener.local_addr().unwrap().to_string()).unwrap();
            let until = Instant::now() + Duration::from_secs(60);
            let Ok(link) = Link::connect(&config, &Lookup::default(), until) else { panic!("not connected") };
            let (mut other, _) = listener.accept().unwrap();
            let (part, mut sent) = ([b'v'; 64 * 1024], 0);
            while let Ok(bytes) = link.send(std::iter::once(&part[..])) {
                sent += bytes;
            }
            ends(&link);
            link.shut();
            drop(link);
            let mut read = Vec::new();
            (other.read_to_end(&mut read).map(|_| read.len() == sent).map_err(|error| error.kind()), sent)
        };
        // All of it arrives otherwise, also behind the end.
        assert_eq!(read_after(|_| {}).0, Ok(true));
        let (read, sent) = read_after(Link::reset_when_closed);
        assert_eq!(read, Err(io::ErrorKind::ConnectionReset), "of {sent} bytes");
    }

    #[test]
    fn a_socket_whose_queue_is_full_costs_an_attempt_its_time() {
        let path =
            std::env::temp_dir().join(format!("respool-full-{}-{:x}", std::process::id(), super::super::chance()));
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let limit = || Instant::now() + Duration::from_millis(50);
        let queued: Vec<UnixStream> = std::iter::from_fn(|| connect_unix(&path, limit()).ok()).take(100).collect();
        assert!((1..100).contains(&queued.len()), "{}", queued.len());
        let error = connect_unix(&path, limit()).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
