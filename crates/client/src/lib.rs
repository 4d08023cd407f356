//! A Redis and Valkey client: implicit pipelining that costs a lone caller nothing.
//!
//! Any number of threads and tasks share one connection through a [`Client`]. A lone caller writes its request and reads its reply
//! itself, with the same system calls as a program with a socket. Several callers share writes and reads. No timer decides which
//! it is.
//!
//! ```no_run
//! use respool_client::{Client, cmd};
//!
//! # async fn run() -> Result<(), respool_client::Error> {
//! let client = Client::open("redis://localhost")?;
//! client.call::<()>(cmd("SET").key("greeting").arg("hello")).await?;
//! let greeting: Option<String> = client.call(cmd("GET").key("greeting")).await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod call;
mod client;
mod command;
pub mod commands;
mod config;
mod core;
mod error;
mod fitness;
mod from_reply;
pub mod limits;
mod reply;
mod run;
mod to_args;

pub use call::{Batch, Call, Transaction};
pub use client::{Client, Stats};
pub use command::{Command, cmd};
pub use config::{Config, Overload};
pub use error::{DecodeError, Error, ErrorKind, Outcome, ServerError};
pub use from_reply::FromReply;
pub use reply::{Elements, Reply};
pub use to_args::ToArgs;
