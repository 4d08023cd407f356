//! The end of a worker: what each feature still has to do.

use crate::hooks::Event;
use crate::lifecycle::drain::DrainProgress;
use crate::limits::RETIRE_US_MIN;
use crate::pool::key_id::KeyOwner;
use crate::session::id::ClientId;
use crate::session::{Flow, Pause};
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::{Action, ServiceAction};

impl<E: Execute> Worker<E> {
    /// From now on no client is accepted; those that are there are served until the drain's time is over.
    pub(crate) fn begin_retirement(&mut self) {
        if self.retirement.until_us.is_none() && self.env.drain_until_us.is_none() {
            let since_us = self.env.now.mono_us;
            let until_us = Some(since_us + self.env.config.timeouts.drain_us.max(RETIRE_US_MIN));
            self.retirement = DrainProgress { since_us, until_us };
            self.env.actions.push_back(Action::Service(ServiceAction::StopAccepting));
            self.env.is_busy = true;
        }
    }

    /// Whether another process goes on with this one's listeners.
    pub(crate) fn is_retiring(&self) -> bool {
        self.retirement.until_us.is_some()
    }

    /// From now on no client is accepted, what has been asked is still answered, and then the worker ends.
    pub(crate) fn begin_drain(&mut self) {
        if self.env.drain_until_us.is_none() {
            self.env.drain_until_us = Some(self.env.now.mono_us + self.env.config.timeouts.drain_us);
            self.env.actions.push_back(Action::Service(ServiceAction::StopAccepting));
            // Who waits for what may never come would hold the end up until its limit.
            self.blocking.unblock_all(&mut self.env);
            self.dedicated.end_all(&mut self.env);
            self.admin.end_waits(&mut self.env);
            self.env.is_busy = true;
            // A client that is read on is never owed nothing. What it has sent and what was not begun is not done at all.
            let all: Vec<ClientId> = self.env.clients.sessions.iter().map(|(index, _)| index).collect();
            for index in all {
                self.ask_for_what_was_read(index);
                if let Some(session) = self.env.clients.sessions.at_mut(index) {
                    session.pause.add(Pause::CLOSING);
                    session.input = None;
                    self.env.clients.list(index);
                    // Nor are requests that have been received or executed in part.
                    self.env.abandon_pieces(index);
                    self.subscriptions.abandon_names(&mut self.env, index);
                }
            }
            self.go_on_draining();
        }
    }

    /// A client that is owed as much as it may be has requests that were read and only wait for that.
    fn ask_for_what_was_read(&mut self, index: ClientId) {
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return };
        if session.pause == Pause::OUTSTANDING && session.input.is_some() {
            session.pause.remove(Pause::OUTSTANDING);
            session.credit.lift();
            // What stands behind a transaction comes behind all of its reply.
            if self.continue_exec_reply(index) == Flow::Next {
                self.read_input(index);
            }
        }
    }

    /// Looks at the time, and at who is still there.
    pub(crate) fn check_drain(&mut self) {
        if self.env.drain_until_us.is_some() {
            self.go_on_draining();
        } else if let Some(until_us) = self.retirement.until_us {
            self.env.is_busy = true;
            // A client that was accepted at the last moment may still be on the way here from another worker.
            let is_left_alone = self.env.clients.sessions.is_empty()
                && self.env.now.mono_us >= self.retirement.since_us + RETIRE_US_MIN;
            if is_left_alone || self.env.now.mono_us >= until_us {
                self.begin_drain();
            }
        }
    }

    fn go_on_draining(&mut self) {
        let Some(until_us) = self.env.drain_until_us else { return };
        self.env.is_busy = true;
        let is_over = self.env.now.mono_us >= until_us;
        let sessions = self.env.clients.sessions.iter();
        let done: Vec<(ClientId, bool)> = sessions
            .map(|(index, s)| (index, s.is_owed_nothing()))
            .filter(|(_, is_owed_nothing)| is_over || *is_owed_nothing)
            .collect();
        for (index, is_owed_nothing) in done {
            match is_owed_nothing {
                true => self.env.finish_client(index),
                false => self.env.close_client(index),
            }
        }
        self.tell_ended();
        if !self.env.clients.sessions.is_empty() {
            return;
        }
        let requests = self.env.unanswered_requests();
        let is_settled = requests == 0 && self.env.tasks.through.is_empty() && self.blocking.returns.len() == 0;
        if is_over {
            self.blocking.give_up_returns(&mut self.env);
        }
        if is_over && !is_settled {
            self.env.counters.requests_cut_off.add(requests as u64);
            self.env.shared.hooks.tell(&Event::DrainCutOff { worker: self.env.number, requests });
        }
        if is_over || is_settled {
            // It is not to be told twice.
            self.env.drain_until_us = Some(u64::MAX);
            self.env.actions.push_back(Action::Service(ServiceAction::Exit));
        }
    }

    /// Everything that is still waited for or held, by kind, with how much of it there is.
    pub fn remains(&self) -> Vec<(&'static str, usize)> {
        let owners = self.env.lanes.owners.iter().filter(|owner| matches!(owner, KeyOwner::Client(_))).count();
        let lanes = self.env.lanes.all.iter();
        let outstanding = lanes.map(|lane| lane.up.tickets().len() + lane.selects.len() + lane.throttled.len()).sum();
        let [queued, taken] = self.blocking.waiting();
        let [asked_for, held] = self.learnings.counts();
        let all = [
            ("clients", self.env.clients.sessions.len()),
            ("clients to go on with", self.env.clients.resuming.len() + self.env.clients.doomed.len()),
            ("clients expected to ask again", self.env.clients.awaited.count()),
            ("requests in parts", self.env.scatters.len()),
            ("tasks", self.env.tasks.len()),
            ("requests that may wait", self.blocking.requests.len()),
            ("elements to put back", self.blocking.returns.len()),
            ("places in queues", queued),
            ("connections on which a client waits", taken),
            ("keys of an engine that a client waits for", self.env.awaited_keys()),
            ("queries that workers have not answered", self.queries.len()),
            ("orders whose reply waits", self.admin.waits()),
            ("subscribers", self.subscriptions.remains()),
            ("commands asked for", asked_for),
            ("clients whose turn to ask for a command has not come", held),
            ("clients with connections of their own", owners),
            ("replies that are owed", outstanding),
            ("clients with connections for good", self.dedicated.len()),
            ("ends that features have not heard of", self.env.ended.len()),
            ("connections that are lent", self.env.lanes.lent()),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}
