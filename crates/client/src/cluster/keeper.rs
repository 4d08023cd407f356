//! The keeper: a thread that has nodes asked what the cluster looks like, and wakes calls whose pause is over.
//!
//! It never waits for a node. Each question has a thread of its own while it lasts; there are only a few at a time, and none while
//! nothing is wrong but one a minute.

use super::{News, Shared, State};
use crate::core::Ended;
use crate::run::Progress;
use crate::{Command, Event, Reply, cmd};
use respool_route::cluster::{Address, RefreshStep, Report};
use respool_wire::Value;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// What the keeper does, with the lock free.
pub(super) struct Turn {
    pub(super) news: News,
    /// This node is asked.
    pub(super) question: Option<(u64, Address)>,
    /// When it is called again, unless something happens.
    pub(super) until_us: u64,
}

impl Shared {
    /// Lets the keeper look again, which is begun if there is none.
    pub(super) fn wake_keeper(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.has_keeper, true) {
            drop(state);
            self.changed.notify_one();
            return;
        }
        // Without a thread the next call that needs it tries again.
        state.has_keeper = self.environment.begin_keeper(self);
    }

    /// The life of the thread.
    pub(super) fn keep(self: &Arc<Self>) {
        let mut state = self.lock();
        while !state.is_closed {
            let now_us = self.now_us();
            let turn = self.turn(&mut state, now_us);
            if turn.question.is_some() || !turn.news.is_empty() {
                drop(state);
                turn.news.tell(self);
                if let Some((number, address)) = turn.question {
                    self.begin_question(number, address);
                }
                state = self.lock();
                continue;
            }
            let left = Duration::from_micros(turn.until_us.saturating_sub(now_us)).min(Duration::from_secs(3600));
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.has_keeper = false;
    }

    /// What is due now: calls whose pause is over go on, and nodes are asked.
    pub(super) fn turn(&self, state: &mut State, now_us: u64) -> Turn {
        let polled = state.refresh.poll(now_us, self.chance());
        let mut news = polled.map.map(|map| self.install(state, map)).unwrap_or_default();
        let later = state.pauses.split_off(&(now_us + 1, 0));
        news.woken.extend(std::mem::replace(&mut state.pauses, later).into_values());
        let first_us = state.pauses.first_key_value().map_or(u64::MAX, |((first_us, _), _)| *first_us);
        match polled.step {
            RefreshStep::Ask { number, address } => Turn { news, question: Some((number, address)), until_us: now_us },
            RefreshStep::Wait(until_us) => Turn { news, question: None, until_us: until_us.min(first_us) },
        }
    }

    fn begin_question(self: &Arc<Self>, number: u64, address: Address) {
        let shared = Arc::clone(self);
        let asking = move || {
            let report = shared.ask(&address);
            if report.is_none() && !shared.is_closed() && shared.config.has_listener() {
                shared.config.tell(&Event::NotRefreshed { endpoint: &address.to_string() });
            }
            shared.take_report(number, report);
        };
        if std::thread::Builder::new().name("respool-ask".to_owned()).spawn(asking).is_err() {
            self.take_report(number, None);
        }
    }

    pub(super) fn take_report(self: &Arc<Self>, number: u64, report: Option<Report>) {
        let mut state = self.lock();
        let map = state.refresh.on_answer(number, report);
        let news = map.map(|map| self.install(&mut state, map)).unwrap_or_default();
        drop(state);
        self.changed.notify_one();
        news.tell(self);
    }

    /// What a node says that the cluster looks like.
    fn ask(&self, address: &Address) -> Option<Report> {
        let node = self.node_at(address);
        let limit = Duration::from_micros(self.config.refresh.answer_limit_us);
        let command = [cmd("CLUSTER SLOTS")];
        let mut progress = Progress::new(Some(limit));
        let result = progress.wait(&node.core, &command);
        progress.abandon(&node.core);
        result.ok()?;
        report_of(progress.ended.take()?, address)
    }
}

/// What a node has answered to `CLUSTER SLOTS`; `None` if that says nothing.
pub(super) fn report_of(ended: Ended, asked: &Address) -> Option<Report> {
    match ended {
        Ended::Reply(reply) => Report::from_slots(&value_of(reply)?, asked).ok(),
        Ended::Failed(..) => None,
    }
}

/// A reply in the form in which reports are read.
fn value_of(reply: Reply) -> Option<Value> {
    let mut bytes = Vec::new();
    reply.write(&mut bytes);
    Value::parse(&bytes).ok()
}

/// The request by which a connection says that the next one follows a redirect of a slot that is on its way.
pub(super) fn asking() -> Command {
    cmd("ASKING")
}
