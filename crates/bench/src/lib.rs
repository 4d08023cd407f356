//! The load generator, and the publish/subscribe experiment.
//!
//! Everything that is asked, counted and reported is pure: [`arrivals`] says when requests are due, [`keys`] and [`values`] what they
//! name and hold, [`work`] what they are, [`tally`] what came of them. `load` drives connections by
//! the loop of `respool-net` and the machine of `respool-connection`: the same code that carries requests through the proxy.
//!
//! ```text
//!   cli -> Plan, Work, Target -> run -> threads of Load -> Tally -> Measured -> report (text, CSV, JSON, HTML)
//! ```
#![forbid(unsafe_code)]

pub mod arrivals;
mod ask;
pub mod cli;
mod clock;
mod cluster;
mod dial_failure;
pub mod keys;
pub mod limits;
mod load;
pub mod plan;
mod processes;
pub mod pubsub;
pub mod report;
pub mod run;
mod session;
pub mod tally;
pub mod target;
pub mod template;
pub mod values;
pub mod work;

pub use clock::own_processor_ns;
pub use processes::Used;
pub use session::bench;
