//! A Redis and Valkey client: implicit pipelining that costs a lone caller nothing.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the connection that uses it is not there yet")]

mod command;
pub mod commands;
mod error;
mod from_reply;
pub mod limits;
mod reply;
mod to_args;

pub use command::{Command, cmd};
pub use error::{DecodeError, Error, ErrorKind, Outcome, ServerError};
pub use from_reply::FromReply;
pub use reply::{Elements, Reply};
pub use to_args::ToArgs;
