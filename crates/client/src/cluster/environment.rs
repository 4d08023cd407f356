//! What the cluster takes from outside: time, chance, and exchanges with nodes.
//!
//! All that is decided about a cluster is decided by what is polled with these three. So a test can put a world of its own in their place,
//! whose time passes only when nothing else is left to do.

use super::Shared;
use crate::core::{Core, Ended};
use crate::run::Progress;
use crate::topology::Node;
use crate::{Command, Error, ErrorKind, Outcome};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What is around a cluster.
pub(crate) trait Environment: fmt::Debug + Send + Sync {
    /// Microseconds since the client was made.
    fn now_us(&self) -> u64;

    /// A random number.
    fn chance(&self) -> u64;

    /// Begins to call [`Shared::turn`] when it is due and when [`Shared::changed`] is told. Whether something does.
    fn begin_keeper(&self, shared: &Arc<Shared>) -> bool;

    /// Requests for one node, which follow each other on its shared connection; for a replica, on the one that it answers reads on. Nothing is
    /// sent before it is polled or waited for.
    fn exchange(
        &self,
        node: &Arc<Node>,
        is_replica: bool,
        commands: Vec<Command>,
        limit: Duration,
    ) -> Box<dyn Exchange>;
}

/// Requests that are at one node. What is dropped is not waited for any longer.
pub(crate) trait Exchange: Send + Sync {
    /// Goes on in a task. It is over when each of the requests has ended, or with an error: that its time is over, which leaves it where it is if
    /// it was sent, or that it was not sent.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// As [`Self::poll`], in this thread.
    fn wait(&mut self) -> Result<(), Error>;

    /// Whether its requests were queued, and no reply was taken.
    fn is_sent(&self) -> bool;

    /// It may take so long from now on, and is polled again.
    fn extend(&mut self, limit: Duration);

    /// Its requests are about to be sent elsewhere, and must not arrive here behind that: the connection ends with all that is on its way. Not if
    /// something has come on it since they were queued, or since this was called before: it lives, and they may be executed at any time. Whether it
    /// has ended.
    fn forsake(&mut self) -> bool;

    /// How each of the requests has ended, in order, when it is over.
    fn take_ended(&mut self) -> Vec<Ended>;

    /// Each request has ended like this, by a reply of its own: how large replies are is learnt from it.
    fn note_sizes(&self, ended: &[Ended]);
}

/// The threads, sockets and clocks of the process.
#[derive(Debug)]
pub(super) struct Process {
    began: Instant,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { began: Instant::now() }
    }
}

impl Environment for Process {
    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn chance(&self) -> u64 {
        crate::core::chance()
    }

    fn begin_keeper(&self, shared: &Arc<Shared>) -> bool {
        let shared = Arc::clone(shared);
        std::thread::Builder::new().name("respool-cluster".to_owned()).spawn(move || shared.keep()).is_ok()
    }

    fn exchange(
        &self,
        node: &Arc<Node>,
        is_replica: bool,
        commands: Vec<Command>,
        limit: Duration,
    ) -> Box<dyn Exchange> {
        let core = connection_of(node, is_replica, &commands);
        let mut progress = Progress::new(Some(limit));
        (progress.is_last_time, progress.keeps_place) = (true, true);
        Box::new(OnConnection::new(core, progress, commands))
    }
}

/// The shared connection of a node that requests go by.
#[inline]
pub(super) fn connection_of(node: &Arc<Node>, is_replica: bool, commands: &[Command]) -> Arc<Core> {
    let core = if is_replica { node.reader() } else { &node.core };
    Arc::clone(core.lane_of(commands))
}

/// An exchange on a connection that callers share.
pub(super) struct OnConnection {
    core: Arc<Core>,
    progress: Progress,
    commands: Vec<Command>,
}

impl OnConnection {
    /// `progress` is not made again by itself, and keeps its place when its time is over.
    pub(super) fn new(core: Arc<Core>, progress: Progress, commands: Vec<Command>) -> Self {
        Self { core, progress, commands }
    }
}

impl Exchange for OnConnection {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.progress.poll(&self.core, &self.commands, cx)
    }

    fn wait(&mut self) -> Result<(), Error> {
        self.progress.wait(&self.core, &self.commands)
    }

    fn is_sent(&self) -> bool {
        self.progress.is_sent()
    }

    fn extend(&mut self, limit: Duration) {
        self.progress.extend(&self.core, limit);
    }

    fn forsake(&mut self) -> bool {
        self.progress.forsake(&self.core)
    }

    fn take_ended(&mut self) -> Vec<Ended> {
        let missing = || Ended::Failed(ErrorKind::Closed, Outcome::MaybeExecuted);
        let mut all = std::mem::take(&mut self.progress.ended_before);
        all.push(self.progress.ended.take().unwrap_or_else(missing));
        all
    }

    fn note_sizes(&self, ended: &[Ended]) {
        self.core.note_sizes(self.commands.iter(), ended.iter());
    }
}

impl Drop for OnConnection {
    fn drop(&mut self) {
        self.progress.abandon(&self.core);
    }
}
