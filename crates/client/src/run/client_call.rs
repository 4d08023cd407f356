//! A call of a client: on the connection of its server, or by a cluster.

use super::{Progress, Step};
use crate::cluster::{Cluster, Kind, Routed};
use crate::core::{Core, Ended};
use crate::events::Done;
use crate::topology::Via;
use crate::trace::Trace;
use crate::{Command, Error, Outcome};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A call of a client: on its connection, or by a cluster.
pub(crate) struct Run<'c> {
    via: Via<'c>,
    /// The first connection of a call that was steered to the second.
    first: Option<&'c Arc<Core>>,
    pub(crate) progress: Progress,
    /// How its requests hang together.
    pub(crate) kind: Kind,
    routed: Option<Box<Routed>>,
    trace: Trace,
    /// Microseconds of a clock that only cluster calls are observed by.
    began: Option<Instant>,
}

impl<'c> Run<'c> {
    #[inline]
    pub(crate) fn new(via: Via<'c>) -> Self {
        let progress = Progress::new(via.config().deadline);
        Self { via, first: None, progress, kind: Kind::Each, routed: None, trace: Trace::default(), began: None }
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
    pub(crate) fn tell_done(&self, commands: &[Command], error: Option<&Error>) {
        let Some(observer) = &self.via.config().observer.0 else { return };
        let name = commands.first().map_or(&b""[..], Command::name);
        let took = match self.via {
            Via::Node(core, _) => {
                let began_us = self.progress.began_us.unwrap_or_else(|| core.now_us());
                Duration::from_micros(core.now_us().saturating_sub(began_us))
            }
            Via::Cluster(_) => self.began.map_or(Duration::ZERO, |began| began.elapsed()),
        };
        observer.done(&Done {
            command: &String::from_utf8_lossy(name),
            requests: commands.len(),
            took,
            sent_bytes: commands.iter().map(Command::sent_bytes).sum(),
            outcome: error.map_or(Outcome::Replied, Error::outcome),
            is_error: error.is_some(),
        });
    }

    /// The server has answered with an error.
    #[cold]
    pub(crate) fn note_error(&self, error: &crate::ServerError) {
        if let Via::Node(core, _) = self.via
            && core.config.sentinels.is_some()
        {
            self.progress.note_error(core, error);
        }
    }

    /// Requests are over, or may have been executed.
    #[inline]
    pub(crate) fn note_written(&self, commands: &[Command]) {
        self.via.config().note_written(commands);
    }

    /// The call is made, on a connection that others use or on one of its own.
    #[inline]
    pub(crate) fn begin_span(&mut self, commands: &[Command]) {
        self.trace.begin(self.via.config(), commands, self.kind);
    }

    /// The call is over.
    #[inline]
    pub(crate) fn end_span(&mut self, error: Option<&Error>) {
        self.trace.end(error);
    }

    /// Decides by which connection the requests go.
    #[inline]
    fn choose(&mut self, commands: &[Command]) {
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
                let ended = self.routed(cluster, commands).wait();
                self.take_routed(ended)
            }
            Via::Cluster(_) => Ok(()),
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
                let ended = std::task::ready!(self.routed(cluster, commands).poll(cx));
                Poll::Ready(self.take_routed(ended))
            }
            Via::Cluster(_) if commands.is_empty() => Poll::Ready(Ok(())),
            // It was over before: nothing comes any more.
            Via::Cluster(_) => Poll::Pending,
        }
    }

    fn routed(&mut self, cluster: &Arc<Cluster>, commands: &[Command]) -> &mut Routed {
        let (kind, limit) = (self.kind, self.progress.limit);
        if self.began.is_none() && cluster.config.observer.0.is_some() {
            self.began = Some(Instant::now());
        }
        self.routed.get_or_insert_with(|| Box::new(Routed::new(cluster, commands, kind, limit)))
    }

    fn take_routed(&mut self, ended: Result<Vec<Ended>, Error>) -> Result<(), Error> {
        self.routed = None;
        self.progress.step = Step::Over;
        self.progress.ended_before = ended?;
        self.progress.ended = self.progress.ended_before.pop();
        Ok(())
    }
}

impl Drop for Run<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Via::Node(core, _) = self.via {
            self.progress.abandon(core);
        }
    }
}
