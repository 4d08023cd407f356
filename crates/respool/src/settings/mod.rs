//! Settings: what can be said, what was said, and what it means.
//!
//! ```text
//!  flags ──┐
//!  env   ──┤   said                meaning
//!  TOML  ──┼──► texts with their ──► one small struct per component
//!  rmux, ──┘   places, by setting
//!  redis-sharding
//! ```
//!
//! [`table`] holds one row per setting and is the only list of them. Collecting what was said ([`raw`], [`mod@file`]) never
//! judges a value; [`resolve`](resolve()) never asks where a value came from, except to say so when it is wrong ([`diagnostic`]);
//! [`config`] has the structs that components get.

pub mod address;
pub mod config;
pub mod diagnostic;
pub mod file;
pub mod page;
pub mod placement;
pub mod raw;
mod resolve;
pub mod routing;
pub mod row;
pub mod table;
pub mod tls;
pub mod unit;
pub mod users;
mod values;

pub use address::{Address, Door, NodeAddress};
pub use config::{
    AdminSettings, EngineSettings, Instance, LogSettings, NetSettings, NodeSettings, Process, ProxySettings,
};
pub use diagnostic::{Fault, Faults};
pub use raw::{Origin, Said};
pub use resolve::{ReadSecret, resolve};
pub use row::Secret;
pub use table::{AdminCommands, LogFormat, LogLevel, PoolMode, PublishReceivers, Setting, SlowSubscribers};

/// The environment variable that names the settings file.
pub const CONFIG_ENV: &str = "RESPOOL_CONFIG";

/// The candidate most like `text`, if any is like it at all.
#[must_use]
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A text of any length can come from a file; comparing costs its length times the candidate's.
    const COMPARED_BYTES_MAX: usize = 64;
    if text.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let text = text.to_ascii_lowercase();
    let likeness = |name: &'a str| (strsim::jaro_winkler(&text, name), name);
    let best = candidates.into_iter().map(likeness).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}
