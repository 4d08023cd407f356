//! Typed commands: a function for each, made from the command table.
//!
//! What a command needs are parameters, so that the compiler asks for it; what may be left out are methods. The reply is made
//! into the type that the table knows, which options may change; `cast` asks for another. A [`Client`](crate::Client) has a method
//! for each function: what that makes is awaited, or waited for in a thread.
//!
//! ```
//! # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
//! # on::a_server(async |url| {
//! use respool_client::Client;
//!
//! let client = Client::open(&url)?;   // "redis://localhost"
//! let was_set: bool = client.set("greeting", "hello").ex(60).nx().await?;
//! let greeting = client.get("greeting").cast::<Option<String>>().await?;
//! let best = client.zrange("board", 0, 9).rev().withscores().await?;
//! let visits: i64 = client.incr("visits").wait()?;
//! assert_eq!((was_set, greeting.as_deref(), best.len(), visits), (true, Some("hello"), 0, 1));
//! # Ok(()) });
//! ```
//!
//! The functions make requests that no client has yet: for batches and transactions.
//!
//! ```
//! use respool_client::{Command, commands};
//!
//! let set = commands::set("greeting", "hello").ex(60).nx();
//! assert_eq!(Command::from(set).arguments(), 6);
//! let add = commands::zadd("board", [(1.5, "a"), (2.0, "b")]).gt().ch();
//! assert_eq!(Command::from(add).arguments(), 8);
//! ```

mod arg;
mod pairs;
mod table;
mod typed;

pub use arg::{Exclusive, ToArg, ToDouble, ToInteger};
pub use pairs::Pairs;
pub use table::*;
pub use typed::Typed;
pub(crate) use typed::{builder, words};
