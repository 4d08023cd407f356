//! A call of a client: on the connection of its server, by a cluster, or on those of several servers.

use super::{Progress, Step};
use crate::cluster::{Cluster, Direct, Routed, slot_of_keys};
use crate::core::{Core, Ended};
use crate::parts::Kind;
use crate::shards::{Spread, Way};
use crate::topology::Via;
use crate::trace::Trace;
use crate::{Command, Error, ErrorKind, Outcome};
use respool_connection::Endpoint;
use respool_route::cluster::Address;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A call of a client: on its connection, by a cluster, or on several connections.
pub(crate) struct Run<'c> {
    via: Via<'c>,
    /// The first connection of a call that was steered to the second.
    first: Option<&'c Arc<Core>>,
    pub(crate) progress: Progress,
    /// How its requests hang together.
    pub(crate) kind: Kind,
    /// A call of a cluster, as long as it is nothing but `progress` at one node.
    direct: Option<Direct>,
    /// Any other call of a cluster.
    routed: Option<Box<Routed>>,
    /// The node of a cluster that the one part of such a call was at last.
    at: Option<Box<Address>>,
    /// A call of several servers, or why it goes to none.
    spread: Option<Box<Result<Spread<'c>, ErrorKind>>>,
    pub(crate) trace: Trace,
    /// When it began, by which calls of several nodes are observed.
    began: Option<Instant>,
}

impl<'c> Run<'c> {
    #[inline]
    pub(crate) fn new(via: Via<'c>) -> Self {
        let progress = Progress::new(via.config().deadline);
        Self {
            via,
            first: None,
            progress,
            kind: Kind::Each,
            direct: None,
            routed: None,
            at: None,
            spread: None,
            trace: Trace::default(),
            began: None,
        }
    }

    #[inline]
    pub(crate) fn via(&self) -> Via<'c> {
        self.via
    }

    /// Whether something is told how it has ended.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.via.config().observer.0.is_some()
    }

    /// Tells how it has ended.
    #[cold]
    pub(crate) fn tell_done(&self, commands: &[Command], received_bytes: usize, error: Option<&Error>) {
        let took = match (self.began, self.via) {
            (Some(began), _) => began.elapsed(),
            (None, Via::Node(core, _)) => self.progress.spent(core),
            (None, Via::Cluster(_) | Via::Shards(_) | Via::Watched(_)) => Duration::ZERO,
        };
        self.via.config().tell_done(commands, took, received_bytes, error);
    }

    /// Says of an error where its request was.
    #[cold]
    pub(crate) fn locate(&self, error: Error, commands: &[Command]) -> Error {
        match self.via {
            Via::Node(core, _) => error.at(Some(core.shown()), None),
            Via::Cluster(cluster) => {
                let slot = if let [command] = commands { slot_of_keys(cluster, command) } else { None };
                error.at(self.at.as_ref().map(ToString::to_string), slot)
            }
            Via::Shards(_) | Via::Watched(_) => error,
        }
    }

    /// The server has answered with an error.
    #[cold]
    pub(crate) fn note_error(&self, error: &crate::ServerError) {
        if let Via::Node(core, _) = self.via {
            self.progress.note_error(core, error);
        }
    }

    /// Requests are over, or may have been executed.
    #[inline]
    pub(crate) fn note_written(&self, commands: &[Command]) {
        self.via.config().note_written(commands);
    }

    /// The call is made, on a connection of its own.
    pub(crate) fn begin_dedicated(&mut self, commands: &[Command]) {
        self.begin_span(commands);
        if self.is_observed() {
            self.began.get_or_insert_with(Instant::now);
        }
    }

    /// The call is made.
    #[inline]
    fn begin_span(&mut self, commands: &[Command]) {
        self.trace.begin(self.via.config(), commands, self.kind);
    }

    /// The call is over.
    #[inline]
    pub(crate) fn end_span(&mut self, error: Option<&Error>) {
        if self.trace.is_heard() {
            self.place_span(error);
        }
        self.trace.end(error);
    }

    /// Says where the server is that was asked, if that was not known before.
    #[cold]
    fn place_span(&self, error: Option<&Error>) {
        match self.via {
            Via::Node(core, _) if core.config.sentinels.is_some() => {
                match core.link().map(|link| link.endpoint().clone()) {
                    Some(Endpoint::Tcp { host, port } | Endpoint::Tls { host, port, .. }) => {
                        self.trace.place(&host, Some(port))
                    }
                    _ => self.trace.place(&core.shown(), None),
                }
            }
            Via::Cluster(_) => match (&self.at, error.and_then(Error::address)) {
                (Some(at), _) => self.trace.place(at.host(), Some(at.port())),
                // On a connection of its own.
                (None, Some(address)) => self.trace.place_by(address),
                (None, None) => {}
            },
            Via::Node(..) | Via::Shards(_) | Via::Watched(_) => {}
        }
    }

    /// Decides by which connection the requests go.
    #[inline]
    fn choose(&mut self, commands: &[Command]) {
        if matches!(self.via, Via::Shards(_) | Via::Watched(_)) {
            self.place(commands);
        }
        self.begin_span(commands);
        if let Via::Node(core, side) = self.via
            && self.progress.is_new()
        {
            let lane = core.lane_of(commands);
            if !Arc::ptr_eq(lane, core) {
                (self.first, self.progress.may_go_back) = (Some(core), true);
                self.via = Via::Node(lane, side);
            }
        }
    }

    /// Decides which of the servers the requests go to. From then on a call of one of them is nothing else.
    fn place(&mut self, commands: &[Command]) {
        if self.spread.is_some() || self.progress.is_over() || commands.is_empty() {
            return;
        }
        let way = match self.via {
            Via::Shards(shards) => shards.way(self.kind, commands),
            Via::Watched(watched) => watched.check(commands).map(|()| Way::One(watched.node())),
            Via::Node(..) | Via::Cluster(_) => return,
        };
        let spread = match way {
            Ok(Way::One(node)) => return self.via = node,
            Ok(Way::Several(mut spread)) => {
                spread.limit(self.progress.limit);
                Ok(spread)
            }
            Err(kind) => Err(kind),
        };
        self.began = self.is_observed().then(Instant::now);
        self.spread = Some(Box::new(spread));
    }

    /// How each request has ended, of a part of a call that has come to this.
    pub(crate) fn take_all(&mut self, commands: &[Command], result: Result<(), Error>) -> Vec<Ended> {
        if let Err(error) = result {
            return vec![Ended::Failed(error.kind().clone(), error.outcome()); commands.len()];
        }
        self.note_sizes(commands);
        if let Via::Node(core, _) = self.via {
            self.progress.note_errors(core);
        }
        let mut all = std::mem::take(&mut self.progress.ended_before);
        all.extend(self.progress.ended.take());
        all
    }

    /// Whether the call goes by the first connection from now on, as the second is gone. Its time goes on: both have one clock.
    #[cold]
    fn goes_back(&mut self) -> bool {
        let goes_back = std::mem::take(&mut self.progress.goes_back);
        if goes_back && let (Via::Node(_, side), Some(first)) = (self.via, self.first.take()) {
            self.via = Via::Node(first, side);
        }
        goes_back
    }

    /// The replies are there, each to one of the requests.
    #[inline]
    pub(crate) fn note_sizes(&self, commands: &[Command]) {
        if let Via::Node(core, _) = self.via
            && self.kind == Kind::Each
        {
            core.note_sizes(commands.iter(), self.progress.ended_before.iter().chain(&self.progress.ended));
        }
    }

    /// See [`Progress::wait`].
    #[inline]
    pub(crate) fn wait(&mut self, commands: &[Command]) -> Result<(), Error> {
        self.choose(commands);
        match self.via {
            Via::Node(core, _) => match self.progress.wait(core, commands) {
                Err(_) if self.goes_back() => self.wait(commands),
                ended => ended,
            },
            Via::Cluster(cluster) if !commands.is_empty() => {
                if self.is_direct(cluster, commands)
                    && let Some(direct) = &self.direct
                {
                    let result = self.progress.wait(direct.core(), commands);
                    if self.end_direct(cluster, commands, result) {
                        return Ok(());
                    }
                }
                let ended = self.routed(cluster, commands).wait();
                self.take_routed(ended)
            }
            Via::Cluster(_) => Ok(()),
            Via::Shards(_) | Via::Watched(_) => match self.spread.as_deref_mut() {
                None => Ok(()),
                Some(Err(kind)) => Err(Error::new(kind.clone(), Outcome::NotSent)),
                Some(Ok(spread)) => {
                    let ended = spread.wait();
                    self.take_routed(ended)
                }
            },
        }
    }

    /// See [`Progress::poll`].
    #[inline]
    pub(crate) fn poll(&mut self, commands: &[Command], cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.choose(commands);
        match self.via {
            Via::Node(core, _) => match self.progress.poll(core, commands, cx) {
                Poll::Ready(Err(_)) if self.goes_back() => self.poll(commands, cx),
                polled => polled,
            },
            Via::Cluster(cluster) if !commands.is_empty() && !self.progress.is_over() => {
                if self.is_direct(cluster, commands)
                    && let Some(direct) = &self.direct
                {
                    let result = std::task::ready!(self.progress.poll(direct.core(), commands, cx));
                    if self.end_direct(cluster, commands, result) {
                        return Poll::Ready(Ok(()));
                    }
                }
                let ended = std::task::ready!(self.routed(cluster, commands).poll(cx));
                Poll::Ready(self.take_routed(ended))
            }
            Via::Cluster(_) if commands.is_empty() => Poll::Ready(Ok(())),
            // It was over before: nothing comes any more.
            Via::Cluster(_) => Poll::Pending,
            Via::Shards(_) | Via::Watched(_) if self.progress.is_over() => Poll::Pending,
            Via::Shards(_) | Via::Watched(_) => match self.spread.as_deref_mut() {
                None => Poll::Ready(Ok(())),
                Some(Err(kind)) => Poll::Ready(Err(Error::new(kind.clone(), Outcome::NotSent))),
                Some(Ok(spread)) => {
                    let ended = std::task::ready!(spread.poll(cx));
                    Poll::Ready(self.take_routed(ended))
                }
            },
        }
    }

    /// Whether the call of a cluster is at one node, and nothing else is known of it. It begins so if it can.
    #[inline]
    fn is_direct(&mut self, cluster: &Arc<Cluster>, commands: &[Command]) -> bool {
        if self.routed.is_some() || self.direct.is_some() {
            return self.direct.is_some();
        }
        if self.began.is_none() && cluster.config().observer.0.is_some() {
            self.began = Some(Instant::now());
        }
        self.direct = Direct::begin(cluster, self.kind, commands, &mut self.progress);
        self.direct.is_some()
    }

    /// What has come at the one node. `false`: the call goes on by [`Self::routed`].
    #[inline]
    fn end_direct(&mut self, cluster: &Arc<Cluster>, commands: &[Command], result: Result<(), Error>) -> bool {
        let Some(direct) = self.direct.take() else { return false };
        let is_over = direct.is_over(commands, &self.progress, &result);
        if is_over && self.trace.is_heard() {
            self.at = Some(Box::new(direct.address()));
        }
        if !is_over {
            self.routed = Some(Box::new(direct.into_routed(cluster, commands, &mut self.progress, result)));
        }
        is_over
    }

    fn routed(&mut self, cluster: &Arc<Cluster>, commands: &[Command]) -> &mut Routed {
        let (kind, limit) = (self.kind, self.progress.limit);
        self.routed.get_or_insert_with(|| Box::new(Routed::new(cluster, commands, kind, limit)))
    }

    fn take_routed(&mut self, ended: Result<Vec<Ended>, Error>) -> Result<(), Error> {
        self.at = self.routed.take().and_then(|routed| routed.address()).map(Box::new);
        self.progress.step = Step::Over;
        self.progress.ended_before = ended?;
        self.progress.ended = self.progress.ended_before.pop();
        Ok(())
    }
}

impl Drop for Run<'_> {
    #[inline]
    fn drop(&mut self) {
        match (self.via, &self.direct) {
            (Via::Node(core, _), _) => self.progress.abandon(core),
            (Via::Cluster(_), Some(direct)) => self.progress.abandon(direct.core()),
            (Via::Cluster(_), None) | (Via::Shards(_) | Via::Watched(_), _) => {}
        }
    }
}
