//! The only room that touches the kernel.
//!
//! One [`Worker`] is one readiness loop on one thread. It owns listeners and sockets and drives a pure
//! [`respool_connection::Machine`]: it reads into the buffers that the machine offers, tells it the time once per turn, and
//! at the end of the turn writes each outbox with one call. It knows nothing of RESP.
#![forbid(unsafe_code)]

mod alarm;
mod clock;
mod glance;
pub mod handover;
mod handshakes;
pub mod limits;
mod lingering;
mod listener;
mod mailbox;
mod readiness;
mod resolver;
mod sockets;
#[cfg(test)]
mod testing;
pub mod tls;
mod transport;
mod vigil;
mod worker;

pub use clock::monotonic_us;
pub use listener::{Callers, ControlSocket, ListenError, Listener, ListenerHandle, adopt, bind};
pub use mailbox::{Inbox, Postbox, mailbox};
pub use sockets::Sockets;
pub use transport::TransportOptions;
pub use worker::{EngineDoor, Setup, Worker};
