//! Requests for several servers, which are all sent at once.

use crate::core::{Ended, standing};
use crate::parts::Join;
use crate::run::Run;
use crate::topology::{Node, Via};
use crate::trace::Trace;
use crate::{Command, Error};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Requests for several servers.
pub(crate) struct Spread<'c> {
    parts: Vec<Part<'c>>,
    join: Option<Join>,
}

/// What is for one of them.
struct Part<'c> {
    run: Run<'c>,
    commands: Vec<Command>,
    ended: Option<Vec<Ended>>,
}

impl<'c> Spread<'c> {
    /// These, whose replies become those of the call by `join`.
    pub(super) fn new(parts: impl Iterator<Item = (&'c Arc<Node>, Vec<Command>)>, join: Join) -> Self {
        let part = |(node, commands): (&'c Arc<Node>, Vec<Command>)| {
            let mut run = Run::new(Via::Node(&node.core, &node.side));
            // The call has one for all of them.
            run.trace = Trace::none();
            Part { run, commands, ended: None }
        };
        Self { parts: parts.map(part).collect(), join: Some(join) }
    }

    /// How long it may take.
    pub(crate) fn limit(&mut self, limit: Option<Duration>) {
        self.parts.iter_mut().for_each(|part| part.run.progress.limit = limit);
    }

    /// Goes on in a task.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Ended>, Error>> {
        let mut is_over = true;
        for part in &mut self.parts {
            is_over &= part.poll(cx);
        }
        let Some(join) = self.join.take_if(|_| is_over) else { return Poll::Pending };
        let ended = self.parts.iter_mut().map(|part| part.ended.take().unwrap_or_default()).collect();
        Poll::Ready(join.join(ended))
    }

    /// Waits in this thread, as a task does: it reads for several connections.
    pub(crate) fn wait(&mut self) -> Result<Vec<Ended>, Error> {
        standing::wait(|cx| self.poll(cx))
    }
}

impl Part<'_> {
    /// Whether it is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if self.ended.is_none()
            && let Poll::Ready(result) = self.run.poll(&self.commands, cx)
        {
            self.ended = Some(self.run.take_all(&self.commands, result));
        }
        self.ended.is_some()
    }
}
