//! How other threads reach a worker: a queue and a bell.

use crate::TransportOptions;
use crate::listener::Listener;
use crate::sockets::Permit;
use crate::transport::Socket;
use mio::Waker;
use respool_connection::{DialFailure, Peer};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

/// What may lie in a worker's mailbox.
#[derive(Debug)]
pub(crate) enum Letter<Mail> {
    /// For the machine.
    Mail(Mail),
    /// A connection that another thread accepted or made for this worker.
    Socket(Socket, Peer, Permit),
    /// More sockets to accept from.
    Listen(Vec<Listener>),
    /// The worker closes the listeners that [`crate::ListenerHandle::end`] has ended.
    CloseEnded,
    /// Options of connections that come from now on: of clients, and of nodes.
    Options(TransportOptions, TransportOptions),
    /// The addresses of a host name, for the dial with this number.
    Resolved(u64, Result<Vec<SocketAddr>, DialFailure>),
}

/// The slot by which others reach a worker. Cheap to clone; the worker need not run yet.
#[derive(Debug)]
pub struct Postbox<Mail> {
    sender: Sender<Letter<Mail>>,
    bell: Arc<OnceLock<Waker>>,
}

impl<Mail> Clone for Postbox<Mail> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<Mail> Postbox<Mail> {
    /// Puts mail for the worker's machine into its box and wakes it. `false`: the worker has ended.
    pub fn post(&self, mail: Mail) -> bool {
        self.put(Letter::Mail(mail))
    }

    /// Has connections that come from now on get other options: those of clients, and those that are dialled. `false`: the
    /// worker has ended.
    pub fn set_options(&self, of_clients: TransportOptions, of_nodes: TransportOptions) -> bool {
        self.put(Letter::Options(of_clients, of_nodes))
    }

    /// Has the worker accept from these sockets as well. `false`: it has ended.
    pub fn listen(&self, listeners: Vec<Listener>) -> bool {
        self.put(Letter::Listen(listeners))
    }

    /// Has the worker close the listeners that were ended by [`crate::ListenerHandle::end`]. `false`: it has ended itself.
    pub fn close_ended(&self) -> bool {
        self.put(Letter::CloseEnded)
    }

    pub(crate) fn put(&self, letter: Letter<Mail>) -> bool {
        let is_alive = self.sender.send(letter).is_ok();
        if let Some(bell) = self.bell.get() {
            // A bell that cannot ring belongs to a loop that is gone; the letter is lost with it.
            return is_alive && bell.wake().is_ok();
        }
        is_alive
    }

    pub(crate) fn hang_bell(&self, waker: Waker) {
        // A second bell would mean two loops on one mailbox, which `mailbox` does not allow.
        let _ = self.bell.set(waker);
    }
}

/// A mailbox that has no worker yet: its slot, and its inside for [`crate::Setup`].
pub fn mailbox<Mail>() -> (Postbox<Mail>, Inbox<Mail>) {
    let (sender, receiver) = channel();
    (Postbox { sender, bell: Arc::new(OnceLock::new()) }, Inbox { receiver })
}

/// The inside of a mailbox.
#[derive(Debug)]
pub struct Inbox<Mail> {
    receiver: Receiver<Letter<Mail>>,
}

impl<Mail> Inbox<Mail> {
    pub(crate) fn take(&self) -> Option<Letter<Mail>> {
        self.receiver.try_recv().ok()
    }
}
