//! The `respool` program as a library. A program of your own runs the proxy or the embedded server in its process with a
//! [`Builder`]. The modules are the program's parts: settings, command line, the front ends that stand in for other programs,
//! logs, metrics and signals; `main.rs` only calls [`cli::main`].
//!
//! ```
//! let server = respool::Builder::new().listen("127.0.0.1:0").start()?;
//! println!("redis-cli -p {}", server.addresses()[0].port().unwrap_or_default());
//! server.shut_down()?;
//! # Ok::<(), respool::Failure>(())
//! ```
#![forbid(unsafe_code)]

pub mod admin;
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
pub mod allocator;
#[cfg(feature = "cli")]
pub mod banner;
mod builder;
#[cfg(feature = "cli")]
pub mod cli;
pub mod control;
pub mod failure;
#[cfg(feature = "cli")]
pub mod frontend;
#[cfg(feature = "cli")]
pub mod logging;
#[cfg(feature = "cli")]
pub mod output;
pub mod parameters;
pub mod serve;
pub mod settings;
#[cfg(feature = "cli")]
pub mod signals;
#[cfg(feature = "cli")]
pub mod systemd;
#[cfg(feature = "test-server")]
pub mod test_server;

pub use builder::{Builder, Server};
pub use failure::Failure;
pub use respool_command::{Categories, Row};
pub use respool_connection::{Peer, WorkerId};
pub use respool_proxy::ClientNumber;
pub use respool_proxy::hooks::Event;
pub use respool_wire::Args;
pub use settings::Address;
