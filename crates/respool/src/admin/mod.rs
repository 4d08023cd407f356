//! The side of the process that operators look at: metrics over HTTP, health and readiness. On a thread of its own, and
//! never on a request's path: it asks for counters when somebody asks for them.

mod end;
pub mod http;
pub mod metrics;
pub mod process;
pub mod statsd;

pub use end::End;
pub use metrics::{Family, Histogram, Labels, Metrics, Reading, Sample, Source};
