//! Settings: the list of them, what each source says, and the structs that components get.
//!
//! ```text
//!  flags ──┐
//!  env   ──┤   raw                     config
//!  TOML  ──┼──► texts with their ──► one small struct per component
//!  rmux, ──┘   places, by setting
//!  redis-sharding
//! ```
//!
//! [`table`] holds one row per setting and is the only list of them. Reading the sources ([`raw`], [`mod@file`]) never checks a
//! value; [`resolve`](resolve()) does not know the source of a value, except to name it when it is wrong ([`diagnostic`]);
//! [`config`] has the structs that components get.

pub mod address;
mod admin;
pub mod choices;
pub mod config;
pub mod diagnostic;
pub mod file;
mod nodes;
pub mod page;
pub mod placement;
pub mod raw;
mod resolve;
mod resolver;
pub mod routing;
pub mod row;
mod suggestion;
pub mod table;
pub mod tls;
pub mod unit;
pub mod users;
mod values;

pub use address::{Address, ListenSpec, NodeAddress};
pub use choices::{AdminCommands, LogFormat, LogLevel};
pub use config::{
    AdminSettings, DashboardSettings, EngineSettings, Instance, LogSettings, NetSettings, NodeSettings, Process,
    ProxySettings,
};
pub use diagnostic::{Fault, Faults};
pub use raw::{CONFIG_ENV, Origin, RawSettings};
pub use resolve::resolve;
pub use resolver::ReadSecret;
pub use row::Secret;
pub use suggestion::nearest;
pub use table::Setting;
