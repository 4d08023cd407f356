//! Making connections: names are resolved, addresses dialled one after the other, engines of this process reached.

use super::dial_addresses::{Alternatives, Resolving};
use super::named::Named;
use super::{Connection, Worker, token_of};
use crate::limits::RESOLUTIONS_MAX;
use crate::resolver::Resolver;
use crate::sockets::{Permit, Side};
use crate::transport::Socket;
use mio::Interest;
use mio::net::{TcpStream, UnixStream};
use mio::unix::SourceFd;
use respool_connection::{ConnId, DialFailure, Endpoint, Peer, Service};
use rustix::io::Errno;
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

impl<M: Service> Worker<M> {
    pub(super) fn dial(&mut self, conn: ConnId, endpoint: Arc<Endpoint>) {
        match &*endpoint {
            Endpoint::Tcp { host, port } => self.dial_host(conn, host, *port, None),
            Endpoint::Tls { host, port, .. } => self.dial_host(conn, host, *port, Some(Arc::clone(&endpoint))),
            Endpoint::Unix { path } => {
                let Some(permit) = self.permit_to_dial(conn) else { return };
                let dialled = UnixStream::connect(path).map(Socket::Unix);
                self.begin_dial(conn, permit, dialled, Alternatives::default());
            }
            Endpoint::Embedded { index } => self.dial_engine(conn, *index),
        }
    }

    fn dial_host(&mut self, conn: ConnId, host: &str, port: u16, tls: Option<Arc<Endpoint>>) {
        match host.parse::<IpAddr>() {
            Ok(ip) => self.dial_tcp(conn, Alternatives::only(SocketAddr::new(ip, port), tls)),
            Err(_) => self.resolve(conn, host, port, tls),
        }
    }

    fn resolve(&mut self, conn: ConnId, host: &str, port: u16, tls: Option<Arc<Endpoint>>) {
        if self.resolver.is_none() {
            self.resolver = self.workers.get(self.number.get()).cloned().map(Resolver::new);
        }
        let dial = self.next_resolution;
        self.next_resolution += 1;
        let has_room = self.resolving.len() < RESOLUTIONS_MAX;
        if has_room && self.resolver.as_ref().is_some_and(|r| r.ask(dial, host, port)) {
            self.resolving.insert(dial, Resolving { conn, tls, host: host.into(), port });
        } else {
            let failure = DialFailure::Unresolvable(format!("'{host}': too many names wait to be resolved"));
            self.machine.handle_dial_failed(conn, failure);
        }
    }

    /// A dial is given up; if its name is being resolved, nothing waits for that any more.
    pub(super) fn forget_resolution(&mut self, conn: ConnId) {
        let resolver = self.resolver.as_ref();
        self.resolving.retain(|dial, waiting| {
            let is_it = waiting.conn == conn;
            if let Some(resolver) = resolver.filter(|_| is_it) {
                resolver.forget(*dial);
            }
            !is_it
        });
    }

    pub(super) fn dial_tcp(&mut self, conn: ConnId, mut ways: Alternatives) {
        if ways.addresses.is_empty() {
            self.machine.handle_dial_failed(conn, DialFailure::Refused("no address is left to try".to_owned()));
            return;
        }
        let Some(permit) = self.permit_to_dial(conn) else { return };
        let address = ways.addresses.remove(0);
        let dialled = TcpStream::connect(address).and_then(|stream| {
            self.transport.apply_dialled(SockRef::from(&stream))?;
            match ways.tls.as_deref() {
                Some(Endpoint::Tls { server_name, profile, .. }) => {
                    Ok(Socket::Tls(Box::new(self.tls.wrap(profile, server_name, stream)?)))
                }
                _ => Ok(Socket::Tcp(stream)),
            }
        });
        self.begin_dial(conn, permit, dialled, ways);
    }

    fn dial_engine(&mut self, conn: ConnId, index: usize) {
        let Some(permit) = self.permit_to_dial(conn) else { return };
        let Some(permit_there) = self.permit_to_dial(conn) else { return };
        let pair = UnixStream::pair().and_then(|(ours, theirs)| {
            let address = "embedded:0".to_owned();
            let peer = Peer { address: address.clone(), local_address: address, is_unix: true, fd: 0, identity: None };
            match self.engines.get(index) {
                Some(dialer) if (dialer.0)(Socket::Unix(theirs), peer, permit_there) => Ok(Socket::Unix(ours)),
                _ => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "there is no such embedded engine")),
            }
        });
        self.begin_dial(conn, permit, pair, Alternatives::default());
    }

    /// Room for one more socket; without it, the dial has failed.
    fn permit_to_dial(&mut self, conn: ConnId) -> Option<Permit> {
        let permit = self.sockets.take(Side::Node);
        if permit.is_none() {
            self.machine.handle_dial_failed(conn, DialFailure::NoDescriptor);
        }
        permit
    }

    fn begin_dial(&mut self, conn: ConnId, permit: Permit, dialled: io::Result<Socket>, alternatives: Alternatives) {
        let registered = dialled.and_then(|mut socket| {
            socket.register(self.poll.registry(), token_of(conn))?;
            // Only ever asked whether something is readable; what it is, the other poll says.
            let fd = socket.fd();
            self.nodes_poll.registry().register(&mut SourceFd(&fd), token_of(conn), Interest::READABLE)?;
            Ok(socket)
        });
        match registered {
            Ok(socket) => {
                let open = Connection::open(socket, permit);
                self.connections.keep(conn, Connection { is_dialing: true, is_writable: false, alternatives, ..open });
            }
            Err(error) if has_no_descriptor(&error) => self.machine.handle_dial_failed(conn, DialFailure::NoDescriptor),
            Err(_) if !alternatives.addresses.is_empty() => {
                // The socket is closed: the dial of the next address takes its place, which may be the last one.
                drop(permit);
                self.dial_tcp(conn, alternatives);
            }
            Err(error) => self.machine.handle_dial_failed(conn, DialFailure::Refused(error.to_string())),
        }
    }

    /// The kernel has something to say about a dial.
    pub(super) fn answer_dial(&mut self, conn: ConnId) {
        let Some(connection) = self.connection(conn) else { return };
        match connection.socket.is_connected() {
            Ok(false) => {}
            Ok(true) => {
                connection.is_dialing = false;
                connection.is_writable = true;
                let name = std::mem::take(&mut connection.alternatives).name;
                let address = connection.socket.tcp().and_then(|stream| stream.peer_addr().ok());
                if let (Some(name), Some(address)) = (name, address) {
                    connection.named = Some(Box::new(Named::new(name, address.ip())));
                    let now = self.clock.now();
                    self.names.plan(now);
                }
                self.watch(conn);
                if let Some(address) = address {
                    self.machine.handle_address(conn, &address.to_string());
                }
                self.machine.handle_connected(conn);
                // Bytes may have come with the edge that told of the connection.
                self.list_again(conn);
            }
            Err(error) => {
                let Some(failed) = self.connections.forget(conn) else { return };
                let Connection { alternatives, socket, permit, .. } = failed;
                // The dial of the next address takes its place, which may be the last one.
                drop((socket, permit));
                if alternatives.addresses.is_empty() {
                    self.machine.handle_dial_failed(conn, DialFailure::Refused(error.to_string()));
                } else {
                    self.dial_tcp(conn, alternatives);
                }
            }
        }
    }
}

/// Whether the process, or the system, has as many files open as it may.
fn has_no_descriptor(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
