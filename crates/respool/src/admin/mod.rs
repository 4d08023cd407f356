//! The side of the process that operators look at: metrics over HTTP, health and readiness. On a thread of its own, and
//! never on a request's path: counters are read when they are requested.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use respool_net::MailSender;
use respool_proxy::{Mail, Shared};

use crate::settings::Address;

#[cfg(feature = "admin-http")]
mod dashboard;
mod end;
#[cfg(feature = "admin-http")]
pub mod http;
#[cfg(not(feature = "admin-http"))]
#[path = "http_absent.rs"]
pub mod http;
pub mod metrics;
pub mod process;
pub(crate) mod readiness;
pub mod statsd;

pub use end::End;
pub use metrics::{Family, Histogram, Labels, Metrics, Reading, Sample, Source};

/// The workers of one instance, for what operators ask and order.
#[derive(Clone, Debug)]
pub struct InstanceWorkers {
    /// The instance's name.
    pub name: String,
    /// What the workers have counted.
    pub shared: Arc<Shared>,
    /// Their mailboxes.
    pub workers: Vec<MailSender<Mail>>,
    /// The mailboxes of engines that have threads of their own.
    pub engines: Vec<MailSender<Mail>>,
}

/// A server of metrics that runs.
#[derive(Debug)]
pub struct Running {
    /// The address really listened on.
    pub address: Address,
    /// A second hand on the listening socket, which keeps it listening.
    pub socket: OwnedFd,
    /// When the server has stopped listening.
    pub end: End,
}
