//! Both ends of a RESP connection as state machines.
//!
//! [`Downstream`] is the end that faces a client: it hands out places for replies and lets them leave in request order.
//! [`Upstream`] is the end that faces a node: it shakes hands, keeps a ticket for every request that is owed a reply and
//! gives each reply to its ticket; [`Reconnect`] says when a lost one is dialled again; [`push`] is what many subscribe to over one
//! connection. None of them knows a socket, a clock or a thread: bytes and the time are arguments, and what they want done is left in their outboxes or returned. [`Machine`] is
//! how a loop drives what is built of them, and [`Service`] what a server needs beside that. Without a loop, a client is a page
//! or two: see `examples/blocking_client.rs`.
#![forbid(unsafe_code)]

mod buffer;
mod downstream;
pub mod echo_check;
mod endpoint;
pub mod flush;
mod handshake;
mod identity;
mod in_flight;
mod input;
pub mod limits;
mod machine;
pub mod node_health;
mod outbox;
pub mod push;
mod reconnect;
mod ring;
mod server;
mod service;
mod slow_start;
mod tickets;
mod upstream;

pub use buffer::{BufferPool, Output, occupied_bytes};
pub use downstream::{AnswerPosition, Downstream};
pub use endpoint::Endpoint;
pub use flush::FlushPolicy;
pub use handshake::{Handshake, Pacing, Step};
pub use identity::{ClientInfo, Credentials, Identity};
pub use in_flight::InFlight;
pub use input::Input;
pub use machine::{Action, ConnId, DialFailure, Machine, Now, Role, Wait};
pub use outbox::{Copied, Outbox, Segments};
pub use reconnect::{Backoff, DialAdvice, DialRate, Reconnect, ReconnectTerms};
pub use ring::{Ring, Seq};
pub use server::Server;
pub use service::{Peer, Service, ServiceAction, WorkerId};
pub use tickets::{Ticket, Tickets};
pub use upstream::{Event, Fault, Phase, Pushes, Shake, Upstream};
