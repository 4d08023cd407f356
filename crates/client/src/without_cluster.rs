//! In place of `cluster` in a client that is built without it: types of which there are no values. So the compiler leaves out what is done
//! with them, and the rest of the crate need not know.

use crate::core::{Core, Ended};
use crate::lanes::{Kind as LaneKind, LaneCall};
use crate::parts::Kind;
use crate::pubsub::{Bounds, Hub, Mailbox};
use crate::run::Progress;
use crate::{Command, Config, Error, ErrorKind};
use bytes::Bytes;
use respool_route::cluster::{Address, Trigger};
use std::ops::Deref;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A cluster.
#[derive(Debug)]
pub(crate) enum Cluster {}

/// What callers share of a cluster.
#[derive(Debug)]
pub(crate) enum Shared {}

/// A call at one node of a cluster.
pub(crate) enum Direct {}

/// Any other call of a cluster.
pub(crate) enum Routed {}

/// A call of a cluster on a connection of its own.
pub(crate) enum Roams {}

/// A walk over the keys of a cluster.
#[derive(Debug)]
pub(crate) enum Walk {}

impl Cluster {
    /// None: an address of a cluster is refused.
    pub(crate) fn of(_: &Config) -> Option<Arc<Self>> {
        None
    }

    pub(crate) fn config(&self) -> &Config {
        match *self {}
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        match *self {}
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        match *self {}
    }
}

impl Deref for Cluster {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Self::Target {
        match *self {}
    }
}

impl Shared {
    pub(crate) fn any_node(&self) -> Config {
        match *self {}
    }

    pub(crate) fn trigger(&self, _: Trigger) {
        match *self {}
    }

    #[cfg(feature = "cache")]
    pub(crate) fn rely_on_table(&self, _: Duration) {
        match *self {}
    }

    pub(crate) fn note_moved(&self, _: u16, _: &Address) {
        match *self {}
    }

    pub(crate) fn add_channels(&self, _: &[Bytes], _: Bounds, _: Instant) -> Arc<Mailbox> {
        match *self {}
    }

    pub(crate) fn remove_channels(&self, _: &[Bytes], _: &Arc<Mailbox>) {
        match *self {}
    }

    pub(crate) fn add_stats(&self, _: &mut crate::Stats) {
        match *self {}
    }

    pub(crate) fn close(&self) {
        match *self {}
    }
}

impl Direct {
    pub(crate) fn begin(cluster: &Arc<Cluster>, _: Kind, _: &[Command], _: &mut Progress) -> Option<Self> {
        match **cluster {}
    }

    pub(crate) fn address(&self) -> Address {
        match *self {}
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        match *self {}
    }

    pub(crate) fn is_over(&self, _: &[Command], _: &Progress, _: &Result<(), Error>) -> bool {
        match *self {}
    }

    pub(crate) fn into_routed(self, _: &Arc<Cluster>, _: &[Command], _: &mut Progress, _: Result<(), Error>) -> Routed {
        match self {}
    }
}

impl Routed {
    pub(crate) fn new(cluster: &Arc<Cluster>, _: &[Command], _: Kind, _: Option<Duration>) -> Self {
        match **cluster {}
    }

    pub(crate) fn poll(&mut self, _: &mut Context<'_>) -> Poll<Result<Vec<Ended>, Error>> {
        match *self {}
    }

    pub(crate) fn wait(&mut self) -> Result<Vec<Ended>, Error> {
        match *self {}
    }

    pub(crate) fn address(&self) -> Option<Address> {
        match *self {}
    }
}

impl Roams {
    pub(crate) fn new(cluster: &Arc<Cluster>, _: Vec<Command>, _: Option<Duration>, _: LaneKind) -> Self {
        match **cluster {}
    }

    pub(crate) fn poll(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match *self {}
    }

    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn take_ended(&mut self) -> Vec<Ended> {
        match *self {}
    }

    pub(crate) fn call(&mut self) -> Option<&mut LaneCall> {
        match *self {}
    }

    pub(crate) fn config(&self) -> &Config {
        match *self {}
    }

    pub(crate) fn commands(&self) -> &[Command] {
        match *self {}
    }

    pub(crate) fn locate(&self, _: Error) -> Error {
        match *self {}
    }
}

impl Walk {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Self {
        match **cluster {}
    }

    pub(crate) fn slot(&mut self) -> Option<(u16, bool)> {
        match *self {}
    }

    pub(crate) fn turn(&mut self, _: u64) -> Result<Option<u64>, Error> {
        match *self {}
    }
}

/// The slot of a request's keys.
pub(crate) fn slot_of_keys(cluster: &Cluster, _: &Command) -> Option<u16> {
    match *cluster {}
}

/// No request is for several nodes.
pub(crate) fn refuse_for_all(_: &[Command]) -> Result<(), ErrorKind> {
    Ok(())
}

/// The caches of a cluster.
#[cfg(feature = "cache")]
#[derive(Debug)]
pub(crate) enum Caches {}

#[cfg(feature = "cache")]
impl Caches {
    pub(crate) fn new(cluster: &Arc<Cluster>, _: crate::Caching) -> Arc<Self> {
        match **cluster {}
    }

    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        match *self {}
    }

    pub(crate) fn of(&self, _: &[u8]) -> Option<Arc<crate::cache::Shared>> {
        match *self {}
    }

    pub(crate) fn each(&self) -> Vec<Arc<crate::cache::Shared>> {
        match *self {}
    }

    pub(crate) fn stats(&self) -> crate::CacheStats {
        match *self {}
    }
}
