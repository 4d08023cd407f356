//! Requests on connections of their own: those that wait on the server, and those whose connection has a state.
//!
//! A request that waits would make all others wait on a shared connection. It gets one of a few that are opened when they are
//! needed, kept for a while, and used by one caller at a time.

mod dedicated;
mod lane;
mod shelf;
mod watch;

pub use dedicated::DedicatedBatch;
pub(crate) use dedicated::{Kind, LaneCall};
pub(crate) use lane::Lane;
pub(crate) use shelf::{Lease, Shelf};
pub use watch::{Exec, Watch, Watched};

use crate::Config;
use crate::cluster::Shared;
use crate::core::Core;
use crate::pubsub::Hub;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

/// What a client has beside its shared connection.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) core: Arc<Core>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) hub: Arc<Hub>,
    /// Replies that came for callers that had left, of requests that have taken something.
    pub(crate) orphans: AtomicU64,
}

impl Side {
    pub(crate) fn new(core: &Arc<Core>, config: &Config, cluster: Option<Weak<Shared>>) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(core),
            shelf: Shelf::new(config.clone()),
            hub: Hub::new(config.clone(), cluster),
            orphans: AtomicU64::new(0),
        })
    }

    /// Ends everything, for good.
    pub(crate) fn close(&self) {
        self.shelf.close();
        self.hub.close();
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.close();
    }
}
