//! The life of a reply: from a node's bytes to its place among a client's replies. And what happens instead when a node fails.

mod arrival;
pub(crate) mod large;
pub(crate) mod missed_select;
pub(crate) mod observer;
pub(crate) mod observers;
pub(crate) mod owner;
pub(crate) mod progress;
pub(crate) mod task;
pub(crate) mod tracked_keys_bound;

use crate::ended::Ended;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, Handle, LaneId};
use crate::interfaces::changed_keys::LostListener;
use crate::limits::{INTERNAL_REPLY_BYTES_MAX, PIECES_QUEUE_BYTES, THROTTLED_BYTES_MIN};
use crate::nodes::health_checks::End;
use crate::pool::{LaneEnd, LaneUse};
use crate::reply::missed_select::why_missed;
use crate::reply::owner::Owner;
use crate::reply::progress::LostReply;
use crate::reply::task::Tasks;
use crate::request::gathers::Scatters;
use crate::session::PauseReasons;
use crate::session::table::Clients;
use respool_command::Execute;
use respool_connection::Fault;

/// The client whose request a ticket stands for, if it is a client's.
fn client_of(owner: Owner, scatters: &Scatters, tasks: &Tasks) -> Option<ClientHandle> {
    match owner {
        Owner::Client { index, generation, .. } | Owner::Unanswered { index, generation } => {
            Some(Handle { index, generation })
        }
        Owner::Part { gather, generation, .. } => scatters.asker(Handle { index: gather, generation }),
        Owner::Task { task, generation, .. } => tasks.asker(Handle { index: task, generation }),
        Owner::Discard => None,
    }
}

/// Gives an error to the owner of a reply.
pub(crate) fn refuse(
    owner: Owner,
    loss: LostReply,
    error: &ErrorReply,
    clients: &mut Clients,
    scatters: &mut Scatters,
    tasks: &mut Tasks,
) {
    if loss == LostReply::Late {
        clients.note_late(client_of(owner, scatters, tasks));
    }
    match owner {
        Owner::Client { index, generation, seq } => clients.fail(Handle { index, generation }, seq, error),
        Owner::Part { gather, generation, part } => {
            scatters.fail(Handle { index: gather, generation }, part, error, clients);
        }
        Owner::Task { task, generation, step } => {
            tasks.fail(Handle { index: task, generation }, step, loss, error, clients);
        }
        Owner::Unanswered { index, generation } => clients.end_unanswered(Handle { index, generation }, 0),
        Owner::Discard => {}
    }
}

/// What has come of the reply that is arriving on a lane is dropped, its owner is told that it is too large, and the rest is swallowed.
pub(crate) fn abandon_partial<E>(env: &mut Env<E>, lane: LaneId) {
    let Env { lanes, clients, scatters, tasks, shared, .. } = env;
    let this = &mut lanes[lane];
    if !this.up.is_ready() {
        return;
    }
    if let Some(owner) = this.up.abandon_partial() {
        let error = error_text::reply_too_large(clients.output_hard);
        refuse(owner, LostReply::Unknown, &error, clients, scatters, tasks);
    }
    shared.ledger.account(std::mem::take(&mut this.accounted), 0);
}

impl<E: Execute> Env<E> {
    /// A lane's connection is gone. Every owner of an outstanding reply hears of it, the features that used the lane hear of it
    /// by [`Ended`], and the lane may be dialled anew.
    pub(crate) fn end_lane(&mut self, lane: LaneId, ending: LaneEnd) {
        if self.is_asked_in_vain(lane, &ending) || self.falls_back(lane, &ending) {
            return;
        }
        let Some(this) = self.lanes.all.get_mut(lane).filter(|l| !l.is_retired) else { return };
        let node = this.node;
        let is_unshared = !matches!(this.purpose, LaneUse::Shared | LaneUse::Push);
        let was_ready = this.up.is_ready();
        let owed_since_us = this.up.tickets().oldest_us().map(|since_us| since_us.max(this.up.last_heard_us()));
        let hearer = self.lanes.lost_listener_of(lane, &ending);
        let Some(this) = self.lanes.all.get_mut(lane) else { return };
        let follower = this.lease.reader().filter(|_| this.purpose == LaneUse::Dedicated);
        let orphans = this.up.reset(&mut self.clients.pool);
        let selects = std::mem::take(&mut this.selects);
        this.sending = None;
        this.given = Default::default();
        this.multi = Default::default();
        this.is_blocked = false;
        this.late_since_us = None;
        (this.at, this.is_elsewhere) = (None, false);
        self.shared.ledger.account(std::mem::take(&mut this.accounted), 0);
        self.lanes.end_dial(lane);
        let refusal = match &ending {
            LaneEnd::Fault(Fault::Refused(words) | Fault::NoDatabase(words)) => Some(words.clone()),
            LaneEnd::DialRefusal(hopeless) => hopeless.words.clone(),
            _ => None,
        };
        let cause = ending.to_string();
        if was_ready {
            self.counters.upstream_losses.add(1);
            self.counters.upstreams.set(self.counters.upstreams.value().saturating_sub(1));
        } else if matches!(ending, LaneEnd::NotDialled) {
            self.counters.dials_expired.add(1);
        } else if !matches!(ending, LaneEnd::GivenUp | LaneEnd::DialRefusal(_)) {
            self.counters.dial_failures.add(1);
        }
        self.lanes.account_queue(&self.shared, lane);
        let is_given_up = matches!(ending, LaneEnd::GivenUp);
        let is_push = self.lanes[lane].purpose == LaneUse::Push;
        if is_push
            && refusal.as_ref().is_some_and(|words| self.lanes.lower_push_lane(&self.config, self.now, lane, words))
        {
            return;
        }
        let number = self.lanes[lane].class;
        // That the node cannot tell of changed keys is its client's matter.
        let is_about_tracking = hearer.as_ref().is_some_and(|hearer| hearer.refusal.is_some());
        if !is_about_tracking {
            self.note_end(lane, End { ending: &ending, cause: &cause, owed_since_us });
        }
        self.lanes[lane].ready_us = 0;
        let name = &self.lanes.nodes[node].name;
        let (sent, unsent) = (error_text::broken_off(name, &cause), error_text::not_sent(name, &cause));
        self.end_beside(lane, &sent);
        for (owner, was_sent) in orphans {
            self.counters.node_errors.add(u64::from(owner != Owner::Discard));
            let (loss, error) = if was_sent { (LostReply::Unknown, &sent) } else { (LostReply::Unsent, &unsent) };
            refuse(owner, loss, error, &mut self.clients, &mut self.scatters, &mut self.tasks);
        }
        if is_push {
            self.lanes[lane].is_stale = false;
            self.ended.push_back(Ended::PushLane { node, was_ready, is_given_up, error: unsent.clone() });
        }
        self.release_throttled(lane);
        self.is_busy = true;
        // A script may have held up this connection alone.
        let is_vouched_for = self.lanes.is_at_its_node(lane) && !self.lanes.nodes[node].health.is_in_doubt();
        if matches!(ending, LaneEnd::Silent) && !is_unshared && !is_vouched_for {
            self.ended.push_back(Ended::SilentNode { node });
        }
        if is_unshared {
            self.lanes.retire(lane);
            // Otherwise its place is free once the loop has closed its connection.
            if !self.lanes[lane].is_closing {
                self.lanes.release(lane);
            }
        }
        if let Some(LostListener { reader, is_listener, refusal }) = hearer {
            self.ended.push_back(Ended::Listener { reader, node, is_listener, was_ready, refusal });
        }
        if let Some(reader) = follower {
            let error = if was_ready { sent } else { unsent.clone() };
            self.ended.push_back(Ended::Dedicated { reader, error });
        }
        for selecting in selects {
            let (is_certain, error) = why_missed(&ending, &unsent);
            self.ended.push_back(Ended::Select { selecting, class: number, is_certain, error });
        }
        if was_ready && !is_unshared && !is_given_up {
            self.dial_again(lane);
        }
    }

    /// A reply that has to be read as a whole before its client gets it is becoming large: if it is more than may be held for
    /// that client, the client is told so, and the rest is swallowed.
    #[cold]
    pub(crate) fn bound_partial(&mut self, lane: LaneId) {
        let this = &self.lanes[lane];
        if this.up.is_push_arriving() {
            // What is next to be answered has nothing of it.
            return;
        }
        if this.purpose == LaneUse::Blocking {
            self.ended.push_back(Ended::Wait { lane: self.lanes.handle(lane) });
            return;
        }
        let Self { lanes, clients, scatters, tasks, .. } = self;
        let this = &mut lanes[lane];
        let mut bytes_max = None;
        let asker = match this.up.tickets().front().copied() {
            Some(Owner::Part { gather, generation, .. }) => {
                let gather = Handle { index: gather, generation };
                bytes_max = scatters.reply_bytes_max(gather);
                scatters.asker(gather)
            }
            Some(Owner::Task { task, generation, .. }) => {
                let task = Handle { index: task, generation };
                bytes_max = tasks.reply_bytes_max(task);
                tasks.asker(task)
            }
            // Replies to convert are collected whole for any owner; of all others the parts were passed on as they came.
            Some(Owner::Client { index, generation, .. } | Owner::Unanswered { index, generation })
                if this.up.is_old() =>
            {
                Some(Handle { index, generation })
            }
            _ => None,
        };
        let bytes = this.up.partial_bytes();
        let is_fit = match (asker, bytes_max) {
            (_, Some(bytes_max)) => bytes <= bytes_max,
            (Some(asker), None) => clients.has_room(asker, bytes),
            // It is for no client in particular, or for one that has been let go of.
            (None, None) => bytes <= INTERNAL_REPLY_BYTES_MAX,
        };
        if !is_fit {
            abandon_partial(self, lane);
        }
    }

    /// Requests whose deadline has passed are answered with an error; their replies will be swallowed.
    pub(crate) fn expire_requests(&mut self, lane: LaneId) {
        let Self { lanes, clients, scatters, tasks, config, counters, now, lag, .. } = self;
        let this = &mut lanes.all[lane];
        let Some(due_us) = this.due_us(lag, now.mono_us, config.timeouts.response_us) else { return };
        if this.is_paced() && this.lease.has_flowed_since(due_us) {
            return;
        }
        if this.up.tickets().oldest_live_us().is_none_or(|oldest| oldest > due_us) {
            return;
        }
        let error = error_text::timed_out(&lanes.nodes[this.node].name, config.timeouts.response_us);
        this.up.expire(due_us, |owner| {
            counters.timeouts.add(1);
            refuse(owner, LostReply::Late, &error, clients, scatters, tasks);
            if tasks.follows(owner) { owner } else { Owner::Discard }
        });
        this.late_since_us.get_or_insert(now.mono_us);
        if this.beside.is_some() {
            self.expire_beside(lane, &error);
        }
    }

    /// Lets clients be read again that wait for a lane to have less to do: in their order, and as many as bring what there is room for. The others
    /// would be read and planned only to be put back again.
    pub(crate) fn release_throttled(&mut self, lane: LaneId) {
        let this = &mut self.lanes[lane];
        let limit = match this.sending {
            Some(_) => PIECES_QUEUE_BYTES / 4,
            None => self.config.budgets.queue_soft() / 2,
        };
        if this.throttled.is_empty() || this.up.queued_bytes() > limit {
            return;
        }
        let room = self.config.budgets.queue_soft().saturating_sub(this.up.queued_bytes());
        let brings = |index: &ClientId| {
            let input = self.clients.sessions.at(*index).and_then(|session| session.input.as_ref());
            input.map_or(0, |input| input.len()) + THROTTLED_BYTES_MIN
        };
        let brought = this.throttled.iter().scan(0, |sum, index| {
            *sum += brings(index);
            Some(*sum)
        });
        let count = 1 + brought.take_while(|sum| *sum < room).count();
        let count = count.min(this.throttled.len());
        let released: Vec<ClientId> = this.throttled.drain(..count).collect();
        released.into_iter().for_each(|index| self.clients.unpause(index, PauseReasons::LANE));
    }
}
