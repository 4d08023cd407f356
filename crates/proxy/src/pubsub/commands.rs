//! SUBSCRIBE and its kin, as clients say them, and what a client with subscriptions may say in RESP2.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, Handle, NodeId};
use crate::interfaces::call::Call;
use crate::limits::{
    NAMES_PER_TURN_MAX, NAMES_TURNS_MAX, PATTERNS_PER_CLIENT_MAX, PENDING_NAMES_MAX, SUBSCRIPTIONS_PER_CLIENT_MAX,
};
use crate::pubsub::query::PubsubStep;
use crate::push::pending_changes::{Item, PendingChange};
use crate::push::routing::scope_of;
use crate::push::subscriber::{PartialSubscribe, Subscriber};
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use crate::push::unsubscribing::PendingUnsubscribe;
use crate::reply::progress::ReplyMode;
use crate::session::marks::SessionSubscriber;
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, Session, SessionFlags};
use respool_access::User;
use respool_command::{Command, ConnectionCommand, Execute, PubsubCommand, Row, text as texts};
use respool_connection::push::frame::{Kind, Verb};
use respool_connection::push::registry::PAIR_BYTES;
use respool_connection::push::scope::Scope;
use respool_wire::{Args, Protocol};

/// The number of names processed per turn, of `names` in all.
fn names_per_turn(names: usize) -> usize {
    NAMES_PER_TURN_MAX.max(names.div_ceil(NAMES_TURNS_MAX))
}

/// What a request changes.
struct Change {
    kind: Kind,
    verb: Verb,
    items: Vec<Item>,
    departures: Vec<PendingUnsubscribe>,
    /// The client is told nothing of it.
    is_silent: bool,
}

impl<T: TrackedKeys> Subscriptions<T> {
    /// Deals with a request of the push lane, or one about it.
    pub(crate) fn handle_request(&mut self, env: &mut Env<impl Execute>, call: Call<'_>) -> PubsubStep {
        let Call { index, row, request } = call;
        use PubsubCommand as P;
        let args = request.args;
        let Command::Pubsub(command) = row.command else {
            return PubsubStep::Done(env.refuse_unsupported(index, row, "it changes what its connection receives"));
        };
        match command {
            P::Subscribe => PubsubStep::Done(self.subscribe(env, index, Kind::Channel, args.from(1))),
            P::Psubscribe => PubsubStep::Done(self.subscribe(env, index, Kind::Pattern, args.from(1))),
            P::Ssubscribe => PubsubStep::Done(self.subscribe(env, index, Kind::Shard, args.from(1))),
            P::Unsubscribe => PubsubStep::Done(self.unsubscribe(env, index, Kind::Channel, args.from(1))),
            P::Punsubscribe => PubsubStep::Done(self.unsubscribe(env, index, Kind::Pattern, args.from(1))),
            P::Sunsubscribe => PubsubStep::Done(self.unsubscribe(env, index, Kind::Shard, args.from(1))),
            P::Publish => self.publish(env, call, Kind::Channel),
            P::Spublish => self.publish(env, call, Kind::Shard),
            _ => env.ask_about_channels(index, command, row, args),
        }
    }

    /// Abandons a request that is executed in slices: its remaining names are not subscribed to, and the earlier ones are
    /// given up.
    pub(crate) fn abandon_names(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        if let Some(pending) = env.clients.begun(index).and_then(|begun| begun.pending) {
            self.fail(pending, &error_text::DRAINING.into(), &mut env.clients, &env.config);
        }
    }

    fn subscribe(&mut self, env: &mut Env<impl Execute>, index: ClientId, kind: Kind, names: Args<'_>) -> Flow {
        let begun = match env.clients.begun(index) {
            Some(begun) => begun,
            None => match self.begin_subscribing(env, index, kind, names) {
                Ok(begun) => begun,
                Err(flow) => return flow,
            },
        };
        // If it has failed by now, its client has been told so, and the rest is not done.
        let has_failed = |pending| self.pending.all.get(pending).is_none_or(|pending| pending.failure.is_some());
        let Some(pending) = begun.pending.filter(|pending| !has_failed(*pending)) else { return Flow::Next };
        let rest = names.from(begun.done);
        let part = rest.first(rest.len().min(env.names_at_once(index, names.len())));
        let nodes = self.subscribe_to(env, index, kind, part, pending, begun.number);
        self.await_nodes(env, pending, &nodes);
        // In RESP2 it may do little else from now on.
        if let Some(session) = env.clients.sessions.handle(index) {
            self.answer(session, &mut env.clients);
        }
        self.account_subscriptions(env);
        if rest.len() > part.len() {
            return env.go_on_behind(index, PartialSubscribe { done: begun.done + part.len(), ..begun });
        }
        self.progress(pending, &mut env.clients);
        env.counters.requests_local.add(1);
        env.clients.keep_outstanding(index)
    }

    /// Takes a place for the reply to a request that subscribes, which waits for the last of its names.
    fn begin_subscribing(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        kind: Kind,
        names: Args<'_>,
    ) -> Result<PartialSubscribe, Flow> {
        let added: usize = names.iter().map(|name| name.len() + PAIR_BYTES).sum();
        if env.shared.ledger.held_bytes().saturating_add(added) > env.config.budgets.process {
            return Err(env.refuse(index, error_text::OUT_OF_MEMORY));
        }
        // A node that takes its time is not waited for with any number of names, and a channel that is being given up has
        // its last messages first. Nor may it receive messages that the client has published before.
        let has_to_wait = env.clients.has_many_pending(index, names.len())
            || env.clients.has_pending_departures(index)
            || env.clients.has_messages_under_way(index);
        if has_to_wait && env.clients.settle_before(index).is_none() {
            return Err(Flow::Again);
        }
        let Some(handle) = env.clients.sessions.handle(index) else { return Err(Flow::Stop) };
        let Some(session) = env.clients.sessions.at_mut(index) else { return Err(Flow::Stop) };
        let scope = if self.has_ways() { scope_of(session) } else { Scope::default() };
        let Some(subscriber) = self.subscriber(&mut session.subscriber, handle) else { return Err(Flow::Stop) };
        if subscriber.counts().iter().sum::<usize>() + names.len() > SUBSCRIPTIONS_PER_CLIENT_MAX {
            return Err(env.refuse(index, error_text::TOO_MANY_SUBSCRIPTIONS));
        }
        if kind == Kind::Pattern && subscriber.count(kind) + names.len() > PATTERNS_PER_CLIENT_MAX {
            return Err(env.refuse(index, error_text::too_many_patterns(PATTERNS_PER_CLIENT_MAX)));
        }
        if !subscriber.take_scope(&scope) {
            return Err(env.refuse(index, error_text::TOO_MANY_SCOPES));
        }
        let number = subscriber.next_pending();
        // A message may not overtake the reply that announces it, whether or not other replies are wanted: as in Redis,
        // acknowledgements are sent to clients that want no replies.
        let is_wanted = session.reply_mode == ReplyMode::On;
        session.reply_mode.pass();
        let change =
            Change { kind, verb: Verb::Subscribe, items: Vec::new(), departures: Vec::new(), is_silent: false };
        let pending = self.queue_change(env, index, handle, change, is_wanted, 1);
        Ok(PartialSubscribe { pending, number, done: 0 })
    }

    /// Subscribes to some of the names of the request that `pending` stands for. Gives the nodes that have to do their part.
    fn subscribe_to(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        kind: Kind,
        names: Args<'_>,
        pending: Handle,
        number: u32,
    ) -> Vec<NodeId> {
        let Some(session) = env.clients.sessions.at_mut(index) else { return Vec::new() };
        let scope = if self.has_ways() { scope_of(session) } else { Scope::default() };
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return Vec::new() };
        let mut items = Vec::with_capacity(names.len());
        let (mut nodes, mut untold) = (Vec::new(), Vec::new());
        for name in names.iter() {
            let id = self.number(subscriber, &scope, kind, name);
            let registry = &mut self.registries[kind as usize];
            // Held until the request is answered, so that the number outlives what else happens.
            registry.retain(id);
            let is_change = subscriber.take_channel(kind, id, registry);
            items.push(Item { id, is_change });
            if is_change {
                let unsettled = subscriber.unsettled.get_or_insert_default();
                unsettled[kind as usize].insert(id, number, self.registries[kind as usize].mix());
                self.join(&env.config, subscriber.id, kind, id);
            }
            let mut is_waited_for = false;
            self.each_spot(&env.config, kind, id, |node, told| {
                let is_confirmed = self.books[node].is_confirmed(self.told(), kind, told);
                is_waited_for |= !is_confirmed;
                if !is_confirmed && !nodes.contains(&node) {
                    nodes.push(node);
                }
                if !is_confirmed && !self.books[node].is_told(self.told(), kind, told) {
                    untold.push((node, told));
                }
            });
            // A node that is back is told of channels a part at a time. What is waited for, it is told of now.
            for (node, told) in untold.drain(..) {
                let (book, registries) = self.book(node);
                book.note(registries, kind, told);
            }
            // It may fail with another request, or because a node refuses it now.
            let begun = subscriber.unsettled.as_ref();
            let begun = begun.and_then(|begun| begun[kind as usize].get(id, self.registries[kind as usize].mix()));
            let is_relying = if begun.is_some() { begun != Some(number) } else { is_waited_for };
            if !is_change && is_relying {
                let relying = subscriber.relying.entry((kind, id)).or_default();
                if relying.last() != Some(&number) {
                    relying.push(number);
                }
            }
        }
        subscriber.pending_names += items.len();
        self.pending.extend(pending, items, nodes.len(), env.now.mono_us);
        nodes
    }

    /// Gives up the channels named, or all.
    fn unsubscribe(&mut self, env: &mut Env<impl Execute>, index: ClientId, kind: Kind, names: Args<'_>) -> Flow {
        let done = env.clients.begun(index).map_or(0, |begun| begun.done);
        let rest = names.from(done);
        let at_once = env.names_at_once(index, names.len());
        let part = rest.first(rest.len().min(at_once));
        // It must be certain which channels are given up, and they still receive the messages that the client has published
        // before.
        let has_to_wait = env.clients.has_pending_begun(index)
            || env.clients.has_many_pending(index, part.len())
            || env.clients.has_messages_under_way(index);
        if has_to_wait && env.clients.settle_before(index).is_none() {
            let session = env.clients.sessions.at_mut(index);
            if let Some(subscriber) =
                session.and_then(|session| Subscriber::of_mut(&mut session.subscriber)).filter(|_| done > 0)
            {
                subscriber.begun = Some(PartialSubscribe { pending: None, number: 0, done });
            }
            return Flow::Again;
        }
        let Some(handle) = env.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = env.clients.sessions.at_mut(index) else { return Flow::Stop };
        let scope = if self.has_ways() { scope_of(session) } else { Scope::default() };
        let Some(subscriber) = self.subscriber(&mut session.subscriber, handle) else { return Flow::Stop };
        let mut named: Vec<u32> = part
            .iter()
            .map(|name| {
                let id = self.number(subscriber, &scope, kind, name);
                self.registries[kind as usize].retain(id);
                id
            })
            .collect();
        let registry = &mut self.registries[kind as usize];
        if names.is_empty() {
            named.extend(subscriber.sets[kind as usize].ids().take(at_once));
            named.iter().for_each(|id| registry.retain(*id));
        }
        let mut items = Vec::with_capacity(named.len());
        let (mut nodes, mut departures) = (Vec::new(), Vec::new());
        for id in named {
            let is_change = subscriber.drop_channel(kind, id, &self.registries[kind as usize]);
            items.push(Item { id, is_change });
            if !is_change {
                continue;
            }
            // What was published before is on its way, if the node is there.
            self.each_spot(&env.config, kind, id, |node, told| {
                if !self.books[node].is_live() {
                    return;
                }
                departures.push(PendingUnsubscribe { kind, told, subscriber: subscriber.id, id });
                if !nodes.contains(&node) {
                    nodes.push(node);
                }
            });
            self.leave(&env.config, subscriber.id, kind, id);
        }
        let is_all = names.is_empty() && subscriber.count(kind) == 0;
        // Each of them is acknowledged by itself, so each part may be.
        let change = Change { kind, verb: Verb::Unsubscribe, items, departures, is_silent: false };
        let flow = self.begin_change(env, index, change, &nodes);
        if flow == Flow::Stop || is_all || !names.is_empty() && rest.len() == part.len() {
            return flow;
        }
        env.go_on_behind(index, PartialSubscribe { pending: None, number: 0, done: done + part.len() })
    }

    /// The request is answered once these nodes have done their part; at once if there are none.
    fn begin_change(&mut self, env: &mut Env<impl Execute>, index: ClientId, change: Change, nodes: &[NodeId]) -> Flow {
        let Some(session) = env.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(this) = env.clients.sessions.at_mut(index) else { return Flow::Stop };
        // It is acknowledged as a subscription is.
        let is_wanted = this.reply_mode == ReplyMode::On;
        this.reply_mode.pass();
        let Some(pending) = self.queue_change(env, index, session, change, is_wanted, nodes.len()) else {
            return Flow::Stop;
        };
        env.counters.requests_local.add(1);
        self.await_nodes(env, pending, nodes);
        self.answer(session, &mut env.clients);
        self.account_subscriptions(env);
        env.clients.keep_outstanding(index)
    }

    /// Takes a place for the reply to a request that changes subscriptions.
    fn queue_change(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        session: ClientHandle,
        change: Change,
        is_wanted: bool,
        missing: usize,
    ) -> Option<Handle> {
        let Change { kind, verb, items, departures, is_silent } = change;
        let this = env.clients.sessions.at_mut(index)?;
        let subscriber = Subscriber::of_mut(&mut this.subscriber)?;
        let seq = this.down.expect();
        match verb {
            Verb::Subscribe => subscriber.after = Some(seq),
            Verb::Unsubscribe => subscriber.pending_departures += 1,
        }
        subscriber.pending_names += items.len();
        let asked_us = env.now.mono_us;
        let (failure, tracking) = (None, None);
        let departures = self.depart(departures);
        let pending = PendingChange {
            session,
            seq,
            kind,
            verb,
            items,
            missing,
            asked_us,
            failure,
            tracking,
            departures,
            is_silent,
            is_wanted,
        };
        let pending = self.pending.insert(pending);
        subscriber.pending.push_back(pending);
        Some(pending)
    }

    /// Has nodes do their part of what a request waits for.
    fn await_nodes(&mut self, env: &mut Env<impl Execute>, pending: Handle, nodes: &[NodeId]) {
        let Some((verb, kind)) = self.change_of(pending) else { return };
        for node in nodes {
            self.has_pending_updates = true;
            let book = &mut self.books[*node];
            match verb {
                Verb::Unsubscribe => book.await_word(pending, kind),
                Verb::Subscribe => {
                    book.await_acknowledgements(pending, kind);
                    if let Err(error) = self.prepare_push_lane(env, *node) {
                        self.fail(pending, &error, &mut env.clients, &env.config);
                    }
                }
            }
        }
        env.is_busy |= !nodes.is_empty();
    }

    /// The client is about to end all of its subscriptions (RESET) or to leave (QUIT): what was published before comes before
    /// the reply. `None`: it has come.
    pub(crate) fn hear_out(&mut self, env: &mut Env<impl Execute>, index: ClientId) -> Option<Flow> {
        let session = env.clients.sessions.handle(index)?;
        let this = env.clients.sessions.at_mut(index)?;
        let subscriber = Subscriber::of_mut(&mut this.subscriber).filter(|subscriber| subscriber.is_subscribed())?;
        if std::mem::take(&mut subscriber.has_heard_out) {
            return None;
        }
        if env.clients.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        let live = |node: &NodeId| self.books[*node].is_live();
        let nodes: Vec<NodeId> = self.books.ids().filter(live).collect();
        let this = env.clients.sessions.at_mut(index)?;
        if nodes.is_empty() {
            return None;
        }
        Subscriber::of_mut(&mut this.subscriber)?.has_heard_out = true;
        this.pause.add(PauseReasons::BARRIER);
        let (kind, verb) = (Kind::Channel, Verb::Unsubscribe);
        let change = Change { kind, verb, items: Vec::new(), departures: Vec::new(), is_silent: true };
        let pending = self.queue_change(env, index, session, change, false, nodes.len())?;
        self.await_nodes(env, pending, &nodes);
        Some(Flow::Again)
    }

    /// Shows in account and counters what is subscribed to.
    pub(crate) fn account_subscriptions(&mut self, env: &mut Env<impl Execute>) {
        self.account(&env.shared.ledger);
        let [channels, patterns, shards] = self.counts();
        env.counters.pubsub_channels.set(channels as u64);
        env.counters.pubsub_patterns.set(patterns as u64);
        env.counters.pubsub_shard_channels.set(shards as u64);
        env.counters.subscriptions.set(self.pairs as u64);
        self.tracked.show(&env.counters);
    }

    /// Whether a client has a subscription that its user is no longer permitted. The remaining names of a request
    /// that is executed in slices are not checked again, so a client in the middle of one counts as such.
    pub(crate) fn has_forbidden_subscription(&self, env: &Env<impl Execute>, index: ClientId, user: &User) -> bool {
        if env.clients.is_amid_names(index) {
            return true;
        }
        let subscriber = env.clients.subscriber_at(index);
        subscriber.is_some_and(|subscriber| {
            self.names(subscriber).any(|(name, is_pattern)| !user.may_subscribe(name, is_pattern))
        })
    }

    /// Forgets all that a client subscribes to.
    pub(crate) fn reset_subscriptions(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        env.leave_noloop(index);
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        session.flags.remove(SessionFlags::SUBSCRIBED);
        session.flags.remove(SessionFlags::TRACKING);
        self.forget(session.subscriber.take());
    }
}

impl<E: Execute> Env<E> {
    /// A RESP2 client with subscriptions asks for something. `None`: it may.
    pub(crate) fn ask_subscribed(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        match row.command {
            Command::Pubsub(
                PubsubCommand::Subscribe
                | PubsubCommand::Psubscribe
                | PubsubCommand::Ssubscribe
                | PubsubCommand::Unsubscribe
                | PubsubCommand::Punsubscribe
                | PubsubCommand::Sunsubscribe,
            )
            | Command::Connection(ConnectionCommand::Quit | ConnectionCommand::Reset) => return None,
            _ => {}
        }
        // Whether it is subscribed is not certain before a node has said so.
        if self.clients.has_pending_subscriptions(index) && self.clients.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        if !self.clients.sessions.at(index)?.flags.has(SessionFlags::SUBSCRIBED) {
            return None;
        }
        if matches!(row.command, Command::Connection(ConnectionCommand::Ping)) {
            if args.len() > 2 {
                return None;
            }
            return Some(self.ping_of_subscriber(index, args));
        }
        Some(self.refuse(index, ErrorReply::of(|words| texts::not_while_subscribed(row, words))))
    }

    /// How many names of a request, of `names` in all, are processed before others are served. The engine of this process executes a
    /// transaction as a whole, and `transaction_bytes_max` bounds the names in one.
    fn names_at_once(&self, index: ClientId, names: usize) -> usize {
        let is_amid_exec = || self.clients.sessions.at(index).is_some_and(Session::is_amid_exec_reply);
        if self.engine.is_some() && is_amid_exec() { usize::MAX } else { names_per_turn(names) }
    }

    /// The rest is for the next turn.
    fn go_on_behind(&mut self, index: ClientId, begun: PartialSubscribe) -> Flow {
        let session = self.clients.sessions.at_mut(index);
        if let Some(subscriber) = session.and_then(|session| Subscriber::of_mut(&mut session.subscriber)) {
            subscriber.begun = Some(begun);
        }
        self.end_slice(index);
        Flow::Again
    }
}

impl Clients {
    fn subscriber_at(&self, index: ClientId) -> Option<&Subscriber> {
        Subscriber::of(&self.sessions.at(index)?.subscriber)
    }

    /// Whether a client has subscription changes that its nodes have not acknowledged.
    pub(super) fn has_pending_subscriptions(&self, index: ClientId) -> bool {
        self.subscriber_at(index).is_some_and(|s| !s.pending.is_empty())
    }

    /// Whether some of its requests that wait begin subscriptions, which may still fail.
    fn has_pending_begun(&self, index: ClientId) -> bool {
        self.subscriber_at(index).is_some_and(|s| s.pending.len() > s.pending_departures)
    }

    /// Whether some of them give subscriptions up.
    fn has_pending_departures(&self, index: ClientId) -> bool {
        self.subscriber_at(index).is_some_and(|s| s.pending_departures > 0)
    }

    /// Whether its requests that wait would name more channels than may wait at a time.
    fn has_many_pending(&self, index: ClientId, more: usize) -> bool {
        self.subscriber_at(index).is_some_and(|s| !s.pending.is_empty() && s.pending_names + more > PENDING_NAMES_MAX)
    }

    /// Whether messages are this client's reason to be connected.
    pub(crate) fn is_subscriber(&self, index: ClientId) -> bool {
        let subscriber = self.sessions.at(index).and_then(|session| session.subscriber.as_ref());
        subscriber.is_some_and(|subscriber| subscriber.is_subscribed())
    }

    /// Whether a request is being read again of which a part has been done: it goes on, whatever holds for others by now.
    pub(crate) fn is_amid_names(&self, index: ClientId) -> bool {
        self.subscriber_at(index).is_some_and(|subscriber| subscriber.begun.is_some())
    }

    fn begun(&mut self, index: ClientId) -> Option<PartialSubscribe> {
        Subscriber::of_mut(&mut self.sessions.at_mut(index)?.subscriber)?.begun.take()
    }

    /// The client speaks another dialect from now on: in RESP2 it may do little else than listen.
    pub(crate) fn review_subscribed(&mut self, index: ClientId) {
        let is_subscribed = self.is_subscriber(index);
        let Some(session) = self.sessions.at_mut(index) else { return };
        if is_subscribed && session.protocol == Protocol::Resp2 {
            session.flags.add(SessionFlags::SUBSCRIBED);
        } else {
            session.flags.remove(SessionFlags::SUBSCRIBED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_names_there_are_they_take_few_turns() {
        for names in [0, 1, NAMES_PER_TURN_MAX, NAMES_PER_TURN_MAX + 1, 319_999, 320_001, 1_048_576, usize::MAX] {
            let turns = names.div_ceil(names_per_turn(names));
            assert!(turns <= NAMES_TURNS_MAX, "{names} in {turns} turns");
        }
        assert_eq!(names_per_turn(100_000), NAMES_PER_TURN_MAX, "others wait for no more where that is enough");
    }
}
