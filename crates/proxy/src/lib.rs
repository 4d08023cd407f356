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
//! Read `worker` for the seam to the loop, `dispatch` for the way down, `replies` for the way up, `cron` for time.
//! A worker knows no socket, file, clock, thread or randomness; a loop of `respool-net` drives it, and so can a test.
#![forbid(unsafe_code)]

mod admin;
mod auth;
mod blocking;
mod commands;
pub mod config;
mod dedicated;
mod flush;
pub mod hooks;
mod internal_request;
mod lifecycle;
pub mod limits;
mod nodes;
pub mod observe;
mod pool;
mod pubsub;
mod push;
mod reply;
mod request;
mod scripts;
mod session;
mod slab;
mod text;
mod tracking;
mod transaction;
mod worker;
mod workers;

pub use admin::Letter;
pub use auth::quota::UserLimits;
pub use auth::users::{Access, AccessRules, Outside};
pub use config::{
    Budgets, Config, LaneLimits, NodeConfig, Receivers, Reconnects, SlowSubscribers, SubscriptionTerms, Timeouts,
};
pub use pubsub::{Message, SubscriptionAnswer, SubscriptionInquiry};
pub use reply::integrity::IntegrityTerms;
pub use respool_route::PoolMode;
pub use tracking::{Broken, Redirected};
pub use worker::{Worker, WorkerSetup};
pub use workers::mail::{Answer, Inquiry, Mail};
pub use workers::shared::{About, Ledger, Measured, NodeReach, Shared};
