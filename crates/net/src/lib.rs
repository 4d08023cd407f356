//! The only room that touches the kernel.
//!
//! One [`Worker`] is one readiness loop on one thread. It owns listeners and sockets and drives a pure
//! [`respool_connection::Machine`]: it reads into the buffers that the machine offers, tells it the time once per turn, and
//! at the end of the turn writes each outbox with one call. It knows nothing of RESP.
#![forbid(unsafe_code)]

mod clock;
pub mod handover;
pub mod limits;
mod linger;
mod listener;
mod mailbox;
mod peer_liveness;
mod readiness;
mod resolver;
mod sockets;
#[cfg(test)]
mod testing;
mod timerfd;
pub mod tls;
mod transport;
mod worker;
mod yielding;

pub use clock::{MovableClock, monotonic_us};
pub use listener::{Callers, ControlSocket, ListenError, Listener, ListenerHandle, adopt, bind};
pub use mailbox::{Inbox, MailSender, mailbox};
pub use sockets::Sockets;
pub use transport::TransportOptions;
pub use worker::{EngineDialer, Setup, Worker};
