//! Requests on a connection of their own, wherever that is.

use super::{Kind, LaneCall, Lease, Side};
use crate::cluster::Roams;
use crate::core::Ended;
use crate::topology::Via;
use crate::{Command, Config, Error, ErrorKind, Outcome};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Requests on a connection of their own.
pub(crate) enum Lane {
    /// Of one server.
    One(Box<LaneCall>),
    /// Of a cluster.
    Roams(Box<Roams>),
    /// Of several servers, and not for one of them; why.
    Refused(Box<(Config, Vec<Command>, ErrorKind)>),
}

impl Lane {
    /// `explicit` is how long it may take if its caller has said so.
    pub(crate) fn new(via: Via<'_>, commands: Vec<Command>, explicit: Option<Duration>, kind: Kind) -> Self {
        let side = match via {
            Via::Cluster(cluster) => return Self::Roams(Box::new(Roams::new(cluster, commands, explicit, kind))),
            Via::Node(_, side) => Ok(side),
            Via::Shards(shards) => shards.one_of(&commands).map(|node| &node.side),
            Via::Watched(watched) => watched.check(&commands).map(|()| watched.side()),
        };
        match side {
            Ok(side) => Self::One(Box::new(LaneCall::new(side, commands, explicit, kind))),
            Err(why) => Self::Refused(Box::new((via.config().clone(), commands, why))),
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self {
            Self::One(call) => call.poll(cx),
            Self::Roams(roams) => roams.poll(cx),
            Self::Refused(refused) => Poll::Ready(Err(Error::new(refused.2.clone(), Outcome::NotSent))),
        }
    }

    /// Waits in this thread.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        match self {
            Self::One(call) => call.wait(),
            Self::Roams(roams) => roams.wait(),
            Self::Refused(refused) => Err(Error::new(refused.2.clone(), Outcome::NotSent)),
        }
    }

    /// The replies, in order, once it is over.
    pub(crate) fn take_ended(&mut self) -> Vec<Ended> {
        match self {
            Self::One(call) => call.take_ended().collect(),
            Self::Roams(roams) => roams.take_ended(),
            Self::Refused(_) => Vec::new(),
        }
    }

    /// Its connection, which is not free again yet, and what else there is at its node.
    pub(crate) fn take_lease(&mut self) -> Option<(Lease, Arc<Side>)> {
        let take = |call: &mut LaneCall| Some((call.take_lease()?, Arc::clone(call.side())));
        match self {
            Self::One(call) => take(call),
            Self::Roams(roams) => roams.call().and_then(take),
            Self::Refused(_) => None,
        }
    }

    /// Its requests are over, or may have been executed.
    pub(crate) fn note_written(&self) {
        match self {
            Self::One(call) => call.side().core.config.note_written(call.commands()),
            Self::Roams(roams) => roams.config().note_written(roams.commands()),
            Self::Refused(_) => {}
        }
    }

    /// The settings of its client, and its requests.
    pub(crate) fn subject(&self) -> (&Config, &[Command]) {
        match self {
            Self::One(call) => (&call.side().core.config, call.commands()),
            Self::Roams(roams) => (roams.config(), roams.commands()),
            Self::Refused(refused) => (&refused.0, &refused.1),
        }
    }

    /// Says of an error where its requests were.
    #[cold]
    pub(crate) fn locate(&self, error: Error) -> Error {
        match self {
            Self::One(call) => error.at(Some(call.shown()), None),
            Self::Roams(roams) => roams.locate(error),
            Self::Refused(_) => error,
        }
    }

    /// The name of the first request.
    pub(crate) fn name(&self) -> &[u8] {
        match self {
            Self::One(call) => call.name(),
            Self::Roams(roams) => roams.commands().first().map_or(&b""[..], Command::name),
            Self::Refused(refused) => refused.1.first().map_or(&b""[..], Command::name),
        }
    }
}
