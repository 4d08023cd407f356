//! Scripts: Lua 5.1 as Redis runs it, on a stack of its own.
//!
//! ```text
//!   engine                         host                        vm (on the script's stack)
//!     |---- EVAL: run this --------->|---- Order::Run ---------->| compiled once, run
//!     |                              |<--- Report::Call ---------| redis.call: the arguments are in the exchange
//!     | runs the command             |                           |
//!     |------------------------------|---- Order::Go ----------->| the reply is in the exchange
//!     |<--- late: others first ------|<--- Report::Paused -------| a look every 100,000 instructions
//!     |---- next slice ------------->|---- Order::Go or Kill --->|
//!     |<--- the reply ---------------|<--- Report::Done ---------|
//! ```
//!
//! A script may have a debugger (`debugger`), which stops it (`stops`) and then waits for what its client says.
//!
//! The interpreter is C code that calls back in the middle of `pcall`, `sort` or `gsub`. Lua 5.1 cannot yield there, so a script is
//! left and gone on with by changing stacks: `redis.call` hands its request to the engine, which is borrowed by
//! nothing meanwhile, and a script that takes long is left while the engine answers others with `BUSY`.
//!
//! The vm knows nothing of keys, and the engine nothing of Lua. Nothing here is reached by what a script may name that it
//! could change for others: see `prelude.lua`.

mod api;
mod arguments;
mod bits;
mod cache;
mod chunk;
mod cjson;
mod cmsgpack;
mod collector;
mod compile;
mod convert;
mod debugger;
mod effort;
mod exchange;
mod functions;
mod help;
mod host;
mod library;
mod locals;
mod log;
mod memory;
mod numbers;
mod ownership;
mod pattern;
mod raise;
mod random;
mod reads;
mod run;
mod shebang;
mod state;
mod stops;
mod structs;
mod text;
mod vm;
mod watched;

pub use log::ScriptLogLevel;
pub(crate) use run::execute;
pub(crate) use state::{Desk, Scripts};
