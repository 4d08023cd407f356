//! What tests of the loop share: a machine that does nothing by itself, what a worker needs to run it, and a TLS
//! server.

use crate::mailbox::{Inbox, MailSender};
use crate::tls::{ClientCertificates, KeyPair, ServerTls, TlsServer};
use crate::worker::Setup;
use crate::{Listener, TransportOptions};
use respool_connection::{Action, ConnId, DialFailure, Machine, Now, Peer, Service, ServiceAction, WorkerId};
use std::sync::Arc;
use std::time::Duration;

/// What a test's machine does; the rest does nothing.
pub(crate) trait Reacts {
    fn actions(&mut self) -> &mut Vec<Action<ServiceAction<()>>>;
    fn begin_turn(&mut self, _: Now) {}
    fn is_accepting(&self) -> bool {
        true
    }
    fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
        Err(Vec::new())
    }
    fn read_buffer(&mut self) -> Option<&mut [u8]> {
        None
    }
    fn handle_read(&mut self, _: ConnId, _: usize) {}
    fn handle_hung_up(&mut self, _: ConnId) {}
    fn handle_ended(&mut self, _: ConnId) {}
    fn handle_connected(&mut self, _: ConnId) {}
    fn handle_dial_failed(&mut self, _: ConnId, _: DialFailure) {}
    fn handle_moved(&mut self, _: ConnId, _: &str) {}
    fn handle_mail(&mut self) {}
    fn end_turn(&mut self) {}
    fn next_wakeup_us(&self) -> Option<u64> {
        None
    }
}

/// A machine that writes nothing and does what its test says.
pub(crate) struct Reacting<R>(R);

impl<R: Reacts> Machine for Reacting<R> {
    type ServiceAction = ServiceAction<()>;

    fn begin_turn(&mut self, now: Now) {
        self.0.begin_turn(now);
    }
    fn read_buffer(&mut self, _: ConnId) -> Option<&mut [u8]> {
        self.0.read_buffer()
    }
    fn handle_read(&mut self, conn: ConnId, bytes: usize) {
        self.0.handle_read(conn, bytes);
    }
    fn handle_ended(&mut self, conn: ConnId) {
        self.0.handle_ended(conn);
    }
    fn handle_hung_up(&mut self, conn: ConnId) {
        self.0.handle_hung_up(conn);
    }
    fn handle_broken(&mut self, _: ConnId, _: &str) {}
    fn handle_connected(&mut self, conn: ConnId) {
        self.0.handle_connected(conn);
    }
    fn handle_dial_failed(&mut self, conn: ConnId, failure: DialFailure) {
        self.0.handle_dial_failed(conn, failure);
    }
    fn handle_moved(&mut self, conn: ConnId, addresses: &str) {
        self.0.handle_moved(conn, addresses);
    }
    fn end_turn(&mut self) {
        self.0.end_turn();
    }
    fn poll_action(&mut self) -> Option<Action<ServiceAction<()>>> {
        self.0.actions().pop()
    }
    fn poll_output(&mut self) -> Option<ConnId> {
        None
    }
    fn output(&self, _: ConnId) -> &[u8] {
        &[]
    }
    fn handle_written(&mut self, _: ConnId, _: usize) {}
    fn handle_writable(&mut self, _: ConnId) {}
    fn next_wakeup_us(&self) -> Option<u64> {
        self.0.next_wakeup_us()
    }
}

impl<R: Reacts> Service for Reacting<R> {
    type Mail = ();

    fn is_accepting(&self) -> bool {
        self.0.is_accepting()
    }
    fn handle_accept(&mut self, peer: Peer) -> Result<ConnId, Vec<u8>> {
        self.0.handle_accept(peer)
    }
    fn handle_mail(&mut self, (): ()) {
        self.0.handle_mail();
    }
}

/// The only worker of a process, whose machine does what its test says.
pub(crate) fn alone<R: Reacts>(
    reacts: R,
    mail: (MailSender<()>, Inbox<()>),
    listeners: Vec<Listener>,
) -> Setup<Reacting<R>> {
    alone_with(Reacting(reacts), mail, listeners)
}

/// The only worker of a process.
pub(crate) fn alone_with<M: Service<Mail = ()>>(
    machine: M,
    (mail_sender, inbox): (MailSender<()>, Inbox<()>),
    listeners: Vec<Listener>,
) -> Setup<M> {
    Setup {
        machine,
        inbox,
        workers: vec![mail_sender],
        number: WorkerId::FIRST,
        listeners,
        engines: Vec::new(),
        transport: TransportOptions::default(),
        tls: Arc::default(),
        sockets: Arc::default(),
    }
}

/// A server for `x` that asks no client for a certificate.
pub(crate) fn tls_server() -> Arc<TlsServer> {
    let key = rcgen::KeyPair::generate().expect("keys can be made");
    let certificate = rcgen::CertificateParams::new(vec!["x".to_owned()]).and_then(|params| params.self_signed(&key));
    let certificate_pem = certificate.expect("certificates can be made").pem().into();
    let server = TlsServer::new(&ServerTls {
        own: KeyPair { certificate_pem, key_pem: key.serialize_pem().into_bytes().into() },
        client_authorities_pem: None,
        client_revocations_pem: None,
        clients: ClientCertificates::Off,
        identity: None,
        handshake_timeout: Duration::from_secs(1),
    });
    server.expect("the certificate is good")
}
