//! Sessions, routes and nodes: the proxy as one pure machine per worker.
//!
//! ```text
//!   client bytes                                                            node bytes
//!       |                                                                       |
//!   [Input / RequestDecoder]   what is one request?             [ReplyScanner]  what is one reply?
//!       |                                                                       |
//!   [session]   does it change the session? answer here         [Tickets]   whose is it?
//!       |                                                                       |
//!   [route::plan]   which node has its keys?                    [Gather]   a part? wait for the others
//!       |                                                                       |
//!   [lane]   outbox + ticket  ----- one write per turn ---->    [Ring]   in request order
//!                                                                               |
//!                                                               client's outbox, one write per turn
//! ```
//!
//! Read `worker` for the seam to the loop, `request::dispatch` for the way down, `worker::replies` for the way up, `worker::timers` for time.
//! ARCHITECTURE.md says what each folder owns.
//! A worker knows no socket, file, clock, thread or randomness; a loop of `respool-net` drives it, and so can a test.
#![forbid(unsafe_code)]

// The machine, and what every part of it may name.
pub mod config;
mod ended;
mod env;
mod error_reply;
mod error_text;
pub mod hooks;
mod ids;
mod integer;
mod interfaces;
pub mod limits;
mod mail;
mod slab;
#[cfg(test)]
mod testing;
mod worker;

// The way of a request and of its reply.
mod flush;
mod nodes;
mod pool;
mod reply;
mod request;
mod session;

// Features: requests that are more than one way down and one way up.
mod admin;
mod auth;
mod blocking;
mod client_pause;
mod command_log;
mod commands;
mod dedicated;
mod engines;
mod migrate;
mod parameters;
mod pubsub;
mod push;
mod scripts;
mod tracking;
mod transaction;

// The process.
mod lifecycle;
pub mod observe;
mod users;
mod visits;
mod workers;

pub use admin::inquiry::{Inquiry, NodeOrder, Report, ReportCell, ReportTable};
pub use config::{
    Budgets, Config, LaneLimits, NodeConfig, PublishReceivers, Reconnects, SlowSubscribers, SoftLimit, SoftLimits,
    SubscriptionTerms, Timeouts,
};
pub use env::WorkerSetup;
pub use ids::ClientNumber;
pub use interfaces::transfer::{Transfer, TransferEnd, TransferFailure, TransferOutcome, TransferTarget};
pub use mail::{FeatureMail, Mail};
pub use push::subscriber::Message;
pub use respool_connection::echo_check::IntegrityTerms;
pub use respool_route::PoolMode;
pub use users::access::{Access, AccessRules, AclStore};
pub use users::process_workers::{PostMail, ProcessWorkers};
pub use users::quota::UserLimits;
pub use visits::{Visit, Visited};
pub use worker::Worker;
pub use workers::budget::ProcessBudget;
pub use workers::late_scripts::LateScripts;
pub use workers::operator_state::ServerPause;
pub use workers::shared::{Measured, NodeReach, ProcessFacts, Shared};
