//! How other threads reach a worker: a channel, and a waker for the worker's loop.

use crate::TransportOptions;
use crate::listener::Listener;
use crate::sockets::Permit;
use crate::transport::Socket;
use mio::Waker;
use respool_connection::{DialFailure, Peer};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

/// What a worker's channel carries.
#[derive(Debug)]
pub(crate) enum Message<Mail> {
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

/// The sending half of a worker's channel. Cheap to clone; the worker need not run yet.
#[derive(Debug)]
pub struct MailSender<Mail> {
    sender: Sender<Message<Mail>>,
    waker: Arc<OnceLock<Waker>>,
}

impl<Mail> Clone for MailSender<Mail> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }
}

impl<Mail> MailSender<Mail> {
    /// Sends mail to the worker's machine and wakes the worker. `false`: the worker has ended.
    pub fn post(&self, mail: Mail) -> bool {
        self.put(Message::Mail(mail))
    }

    /// Has connections that come from now on get other options: those of clients, and those that are dialled. `false`: the
    /// worker has ended.
    pub fn set_options(&self, of_clients: TransportOptions, of_nodes: TransportOptions) -> bool {
        self.put(Message::Options(of_clients, of_nodes))
    }

    /// Has the worker accept from these sockets as well. `false`: it has ended.
    pub fn listen(&self, listeners: Vec<Listener>) -> bool {
        self.put(Message::Listen(listeners))
    }

    /// Has the worker close the listeners that were ended by [`crate::ListenerHandle::end`]. `false`: it has ended itself.
    pub fn close_ended(&self) -> bool {
        self.put(Message::CloseEnded)
    }

    pub(crate) fn put(&self, message: Message<Mail>) -> bool {
        let is_alive = self.sender.send(message).is_ok();
        if let Some(waker) = self.waker.get() {
            // A waker that fails belongs to a loop that has ended; the message is lost with it.
            return is_alive && waker.wake().is_ok();
        }
        is_alive
    }

    pub(crate) fn set_waker(&self, waker: Waker) {
        // A second waker would mean two loops on one channel, which `mailbox` does not allow.
        let _ = self.waker.set(waker);
    }
}

/// A channel that has no worker yet: the sending half, and the receiving half for [`crate::Setup`].
pub fn mailbox<Mail>() -> (MailSender<Mail>, Inbox<Mail>) {
    let (sender, receiver) = channel();
    (MailSender { sender, waker: Arc::new(OnceLock::new()) }, Inbox { receiver })
}

/// The receiving half of a worker's channel.
#[derive(Debug)]
pub struct Inbox<Mail> {
    receiver: Receiver<Message<Mail>>,
}

impl<Mail> Inbox<Mail> {
    pub(crate) fn take(&self) -> Option<Message<Mail>> {
        self.receiver.try_recv().ok()
    }
}
