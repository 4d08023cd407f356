//! The end of a worker: at once when the process is told to end, later when another process goes on with its listeners.
//!
//! ```text
//!   serving --Retire--> retiring: none is accepted, those that are there are served as ever
//!      |                   |  no client is there any more, or the drain's time is over
//!      +-----Drain---------+--> draining: none is read; a client that is owed nothing is closed, between two replies
//!                                  |  no client is there any more, and nodes have answered all that they were sent;
//!                                  |  or the drain's time is over (again)
//!                                  +--> the worker ends
//! ```
//!
//! A request that has been read is sent and its answer waited for, whether its client wants that or is still there at all: a
//! node drops what it has not read of a connection that is closed. What the drain's time cuts off is counted and told.

use crate::env::Env;
use crate::hooks::Event;
use crate::ids::ClientId;
use crate::limits::RETIRE_US_MIN;
use crate::pool::key_id::KeyOwner;
use crate::pool::{Lane, LaneUse, Lanes};
use crate::session::PauseReasons;
use crate::session::table::Clients;
use respool_command::Execute;
use respool_connection::{Action, ServiceAction};

/// What there is of a worker's end so far, in microseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DrainProgress {
    since_us: u64,
    until_us: Option<u64>,
}

impl DrainProgress {
    /// From now on no client is accepted; those that are there are served until the drain's time is over.
    pub(crate) fn begin_retirement(&mut self, env: &mut Env<impl Execute>) {
        if self.until_us.is_none() && env.drain_until_us.is_none() {
            self.begin(env.now.mono_us, env.config.timeouts.drain_us);
            env.actions.push_back(Action::Service(ServiceAction::StopAccepting));
            env.is_busy = true;
        }
    }

    fn begin(&mut self, since_us: u64, drain_us: u64) {
        *self = Self { since_us, until_us: Some(since_us + drain_us.max(RETIRE_US_MIN)) };
    }

    /// Whether another process goes on with this one's listeners.
    pub(crate) fn is_retiring(&self) -> bool {
        self.until_us.is_some()
    }

    /// Whether the worker retires and has served its clients, or its time is over.
    pub(crate) fn is_over(&self, env: &mut Env<impl Execute>) -> bool {
        env.is_busy |= self.is_retiring();
        self.is_over_at(env.now.mono_us, env.clients.sessions.is_empty())
    }

    fn is_over_at(&self, now_us: u64, is_without_clients: bool) -> bool {
        let Some(until_us) = self.until_us else { return false };
        // A client that was accepted at the last moment may still be on the way here from another worker.
        now_us >= until_us || is_without_clients && now_us >= self.since_us + RETIRE_US_MIN
    }
}

impl<E: Execute> Env<E> {
    /// From now on no client is accepted. `false`: that is so already.
    pub(crate) fn begin_drain(&mut self) -> bool {
        if self.drain_until_us.is_some() {
            return false;
        }
        self.drain_until_us = Some(self.now.mono_us + self.config.timeouts.drain_us);
        self.actions.push_back(Action::Service(ServiceAction::StopAccepting));
        self.is_busy = true;
        true
    }

    /// Closes the clients that are owed nothing, or all once the time is over. Returns whether it is; `None`: there is no drain.
    pub(crate) fn close_drained(&mut self) -> Option<bool> {
        let until_us = self.drain_until_us?;
        self.is_busy = true;
        let is_over = self.now.mono_us >= until_us;
        let sessions = self.clients.sessions.iter();
        let done: Vec<(ClientId, bool)> = sessions
            .map(|(index, s)| (index, s.is_owed_nothing()))
            .filter(|(_, is_owed_nothing)| is_over || *is_owed_nothing)
            .collect();
        for (index, is_owed_nothing) in done {
            match is_owed_nothing {
                true => self.finish_client(index),
                false => self.close_client(index),
            }
        }
        Some(is_over)
    }

    /// The worker ends. `requests`: what nodes have not answered; unless all `is_settled` that is cut off.
    pub(crate) fn end_drain(&mut self, requests: usize, is_settled: bool) {
        if !is_settled {
            self.counters.requests_cut_off.add(requests as u64);
            self.shared.hooks.tell(&Event::DrainCutOff { worker: self.number, requests });
        }
        // It is not to be told twice.
        self.drain_until_us = Some(u64::MAX);
        self.actions.push_back(Action::Service(ServiceAction::Exit));
    }

    /// What is waited for or held, by kind, that is no feature's own.
    pub(crate) fn remains(&self) -> [(&'static str, usize); 11] {
        let owners = self.lanes.owners.iter().filter(|owner| matches!(owner, KeyOwner::Client(_))).count();
        let lanes = self.lanes.all.iter();
        let outstanding = lanes.map(|lane| lane.up.tickets().len() + lane.selects.len() + lane.throttled.len()).sum();
        [
            ("clients", self.clients.sessions.len()),
            ("clients whose connections are full", self.clients.full.len()),
            ("clients to go on with", self.clients.resuming.len() + self.clients.doomed.len()),
            ("clients expected to ask again", self.clients.arrivals.returning()),
            ("requests in parts", self.scatters.len()),
            ("tasks", self.tasks.len()),
            ("keys of an engine that a client waits for", self.awaited_keys()),
            ("clients with connections of their own", owners),
            ("replies that are owed", outstanding),
            ("ends that features have not heard of", self.ended.len()),
            ("connections that are lent", self.lanes.lent()),
        ]
    }
}

impl Clients {
    /// A client that is owed as much as it may be, or whose node has enough to do, has requests that were read and only wait for that: they
    /// are done now. Returns whether it has any.
    pub(crate) fn asks_for_what_was_read(&mut self, index: ClientId) -> bool {
        let Some(session) = self.sessions.at_mut(index) else { return false };
        let mut others = session.pause;
        others.remove(PauseReasons::OUTSTANDING);
        others.remove(PauseReasons::LANE);
        let has_read = others.is_none() && !session.pause.is_none() && session.input.is_some();
        if has_read {
            session.pause = others;
            session.credit.lift();
        }
        has_read
    }
}

impl Lanes {
    /// How many requests nodes have been sent, or will be, and have not answered. A PING of our own is none.
    pub(crate) fn unanswered_requests(&self) -> usize {
        let asks = |lane: &&Lane| {
            !lane.is_retired && !matches!(lane.purpose, LaneUse::Push | LaneUse::Listen | LaneUse::Dedicated)
        };
        let owed = |lane: &Lane| lane.up.tickets().len().saturating_sub(usize::from(lane.probed_us > 0));
        self.all.iter().filter(asks).map(owed).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{DrainProgress, RETIRE_US_MIN};

    #[test]
    fn a_worker_retires_without_clients_but_not_at_once() {
        let mut retirement = DrainProgress::default();
        assert!(!retirement.is_over_at(u64::MAX, true), "it does not retire");
        let drain_us = 10 * RETIRE_US_MIN;
        retirement.begin(5, drain_us);
        assert!(retirement.is_retiring());
        assert!(!retirement.is_over_at(4 + RETIRE_US_MIN, true), "a client may be on its way");
        assert!(retirement.is_over_at(5 + RETIRE_US_MIN, true));
        assert!(!retirement.is_over_at(4 + drain_us, false), "its clients are served");
        assert!(retirement.is_over_at(5 + drain_us, false));
    }

    #[test]
    fn a_short_drain_leaves_time_for_clients_on_their_way() {
        let mut retirement = DrainProgress::default();
        retirement.begin(0, 0);
        assert!(!retirement.is_over_at(RETIRE_US_MIN - 1, true));
        assert!(retirement.is_over_at(RETIRE_US_MIN, false));
    }
}
