//! A request with one key on its way to the node that has it, as long as nothing special happens to it.
//!
//! Most calls are this, and they cost what a call of one server costs: the request stays where its caller has it, and nothing is kept for a
//! redirect or a lost connection. Any other end than a plain reply makes it a [`Routed`] call, which goes on from there.

use super::environment::{Exchange, OnConnection};
use super::plan::target;
use super::unit::{Sent, Target, Together, Unit};
use super::{Cluster, Routed, connection_of};
use crate::core::{Core, Ended};
use crate::limits::CLUSTER_SILENCE;
use crate::parts::Kind;
use crate::run::Progress;
use crate::topology::Node;
use crate::{Command, Error, Reply};
use respool_route::cluster::Address;
use std::sync::Arc;
use std::time::Duration;

/// Where it goes by the table.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) node: Arc<Node>,
    pub(super) is_replica: bool,
    slot: u16,
    may_be_replica: bool,
}

impl Place {
    /// `None` if there is no table yet, or if the requests are not one that goes to one slot as it is.
    #[inline]
    pub(super) fn of(cluster: &Arc<Cluster>, kind: Kind, commands: &[Command]) -> Option<Self> {
        let [command] = commands else { return None };
        if kind != Kind::Each {
            return None;
        }
        let reads = cluster.policy.get();
        let Target::Slot(slot, may_be_replica) = target(command, reads)? else { return None };
        let table = cluster.table();
        let shard = table.shard_of(slot)?;
        let (node, is_replica) =
            if may_be_replica { shard.reader(reads, cluster.chance()) } else { (&shard.primary, false) };
        Some(Self { node: Arc::clone(node), is_replica, slot, may_be_replica })
    }

    /// The call goes on as one that may be redirected and sent again. It has come to this in `exchange`.
    pub(super) fn resume(
        self,
        cluster: &Arc<Cluster>,
        command: &Command,
        until_us: Option<u64>,
        exchange: Box<dyn Exchange>,
        result: Result<(), Error>,
    ) -> Routed {
        let targets = vec![Target::Slot(self.slot, self.may_be_replica)];
        let unit = Unit::new(cluster, vec![command.clone()], targets, Together::Each, until_us);
        let sent = Sent { node: self.node, is_replica: self.is_replica, exchange, which: vec![0], is_asking: false };
        Routed::resumed(cluster, until_us, unit.resumed(sent, result))
    }
}

/// A call on the shared connection of its node.
#[derive(Debug)]
pub(crate) struct Direct {
    core: Arc<Core>,
    place: Place,
    /// How long the call may take.
    limit: Option<Duration>,
}

impl Direct {
    /// Begins it, if the requests are fit for it: `progress`, in which nothing has happened yet, is for its connection from now on.
    #[inline]
    pub(crate) fn begin(
        cluster: &Arc<Cluster>,
        kind: Kind,
        commands: &[Command],
        progress: &mut Progress,
    ) -> Option<Self> {
        let place = Place::of(cluster, kind, commands)?;
        let core = connection_of(&place.node, place.is_replica, commands);
        let limit = progress.limit;
        progress.limit = Some(limit.map_or(CLUSTER_SILENCE, |limit| limit.min(CLUSTER_SILENCE)));
        (progress.is_last_time, progress.keeps_place) = (true, true);
        Some(Self { core, place, limit })
    }

    /// The connection.
    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Where its node is.
    #[cold]
    pub(crate) fn address(&self) -> Address {
        self.place.node.address()
    }

    /// Whether that was all: a reply came, and it is no error.
    #[inline]
    pub(crate) fn is_over(&self, commands: &[Command], progress: &Progress, result: &Result<(), Error>) -> bool {
        let is_plain = matches!(&progress.ended, Some(Ended::Reply(reply)) if !matches!(reply, Reply::Error(_)));
        if result.is_err() || !is_plain {
            return false;
        }
        self.core.note_sizes(commands.iter(), progress.ended.iter());
        true
    }

    /// The call goes on as one that may be redirected and sent again.
    #[cold]
    pub(crate) fn into_routed(
        self,
        cluster: &Arc<Cluster>,
        commands: &[Command],
        progress: &mut Progress,
        result: Result<(), Error>,
    ) -> Routed {
        let Self { core, place, limit } = self;
        // Its time began with its first step, by the clock of the connection.
        let spent = progress.spent(&core);
        let left = |limit: Duration| u64::try_from(limit.saturating_sub(spent).as_micros()).unwrap_or(u64::MAX);
        let until_us = limit.map(|limit| cluster.now_us().saturating_add(left(limit)));
        let progress = std::mem::replace(progress, Progress::new(limit));
        let exchange = Box::new(OnConnection::new(core, progress, commands.to_vec()));
        place.resume(cluster, &commands[0], until_us, exchange, result)
    }
}
