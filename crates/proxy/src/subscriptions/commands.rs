//! SUBSCRIBE and its kin, as clients say them, and what a client with subscriptions may say in RESP2.

use super::frame::{Kind, Verb};
use super::places::{Scope, scope_of};
use super::wait::{Item, Wait};
use crate::limits::{PENDING_NAMES_MAX, SUBSCRIPTIONS_PER_CLIENT_MAX};
use crate::session::{Flow, Special};
use crate::text;
use crate::worker::Worker;
use respool_command::{Command, ConnectionCommand, Execute, PubsubCommand, Row, text as texts};
use respool_wire::{Args, Protocol, Request};

impl<E: Execute> Worker<E> {
    /// Deals with a request of the push lane, or one about it.
    pub(crate) fn handle_pubsub(&mut self, index: u32, row: &'static Row, request: &Request<'_>) -> Flow {
        use PubsubCommand as P;
        let args = request.args;
        let Command::Pubsub(command) = row.command else {
            return self.refuse_unsupported(index, row, "it changes what its connection receives");
        };
        match command {
            P::Subscribe => self.subscribe(index, Kind::Channel, args.from(1)),
            P::Psubscribe => self.subscribe(index, Kind::Pattern, args.from(1)),
            P::Ssubscribe => self.subscribe(index, Kind::Shard, args.from(1)),
            P::Unsubscribe => self.unsubscribe(index, Kind::Channel, args.from(1)),
            P::Punsubscribe => self.unsubscribe(index, Kind::Pattern, args.from(1)),
            P::Sunsubscribe => self.unsubscribe(index, Kind::Shard, args.from(1)),
            P::Publish => self.publish(index, Kind::Channel, row, request),
            P::Spublish => self.publish(index, Kind::Shard, row, request),
            _ => self.ask_about_channels(index, command, row, args),
        }
    }

    /// A RESP2 client with subscriptions asks for something. `None`: it may.
    pub(crate) fn ask_subscribed(&mut self, index: u32, row: &'static Row, args: Args<'_>) -> Option<Flow> {
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
        if self.has_pending_subscriptions(index) && self.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        if !self.clients.sessions.at(index)?.special.has(Special::SUBSCRIBED) {
            return None;
        }
        if matches!(row.command, Command::Connection(ConnectionCommand::Ping)) {
            if args.len() > 2 {
                return None;
            }
            self.answer(index, |reply| {
                reply.array(2);
                reply.bulk(b"pong");
                reply.bulk(args.get(1).unwrap_or_default());
            });
            return Some(Flow::Next);
        }
        let mut words = Vec::new();
        texts::not_while_subscribed(row, &mut words);
        Some(self.refuse(index, &words))
    }

    fn has_pending_subscriptions(&self, index: u32) -> bool {
        let subscriber = self.clients.sessions.at(index).and_then(|s| s.subscriber.as_ref());
        subscriber.is_some_and(|s| !s.pending.is_empty())
    }

    /// Whether its requests that wait would name more channels than may wait at a time.
    fn has_many_pending(&self, index: u32, more: usize) -> bool {
        let subscriber = self.clients.sessions.at(index).and_then(|s| s.subscriber.as_ref());
        subscriber.is_some_and(|s| !s.pending.is_empty() && s.pending_names + more > PENDING_NAMES_MAX)
    }

    /// Whether messages are this client's reason to be connected.
    pub(crate) fn is_subscriber(&self, index: u32) -> bool {
        let subscriber = self.clients.sessions.at(index).and_then(|s| s.subscriber.as_ref());
        subscriber.is_some_and(|s| s.is_subscribed())
    }

    fn subscribe(&mut self, index: u32, kind: Kind, names: Args<'_>) -> Flow {
        if self.shared.ledger.held_bytes() > self.config.budgets.process {
            return self.refuse(index, text::words(text::OUT_OF_MEMORY));
        }
        // A node that takes its time is not waited for with any number of names.
        if self.has_many_pending(index, names.len()) && self.settle_before(index).is_none() {
            return Flow::Again;
        }
        let Some(handle) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let this = &mut self.subscriptions;
        let scope = if this.has_ways() { scope_of(session) } else { Scope::default() };
        let subscriber = this.subscriber(&mut session.subscriber, handle);
        if subscriber.counts().iter().sum::<usize>() + names.len() > SUBSCRIPTIONS_PER_CLIENT_MAX {
            return self.refuse(index, text::TOO_MANY_SUBSCRIPTIONS.as_bytes());
        }
        if !subscriber.take_scope(&scope) {
            return self.refuse(index, text::TOO_MANY_SCOPES.as_bytes());
        }
        let mut items = Vec::with_capacity(names.len());
        let mut nodes = Vec::new();
        for name in names.iter() {
            let id = this.number(subscriber, &scope, kind, name);
            let registry = &mut this.registries[kind as usize];
            // Held until the request is answered, so that the number outlives what else happens.
            registry.hold(id);
            let is_change = subscriber.sets[kind as usize].insert(id, (), registry.mix());
            items.push(Item { id, is_change });
            if is_change {
                let unsettled = subscriber.unsettled.get_or_insert_default();
                unsettled[kind as usize].insert(id, (), this.registries[kind as usize].mix());
                this.join(&self.config, subscriber.id, kind, id);
            }
            this.each_spot(&self.config, kind, id, |node, told| {
                if !this.books[node].is_confirmed(this.told(), kind, told) && !nodes.contains(&node) {
                    nodes.push(node);
                }
            });
        }
        self.begin_wait(index, kind, Verb::Subscribe, items, &nodes)
    }

    /// Gives up the channels named, or all.
    fn unsubscribe(&mut self, index: u32, kind: Kind, names: Args<'_>) -> Flow {
        // What is given up must be certain.
        if self.has_pending_subscriptions(index) && self.settle_before(index).is_none() {
            return Flow::Again;
        }
        let Some(handle) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let this = &mut self.subscriptions;
        let scope = if this.has_ways() { scope_of(session) } else { Scope::default() };
        let subscriber = this.subscriber(&mut session.subscriber, handle);
        // What came before it was given up is still delivered, before the client hears that nothing more will.
        subscriber.backlog.flush(&mut session.down, subscriber.after, &mut self.clients.pool, session.protocol);
        let mut named: Vec<u32> = names
            .iter()
            .map(|name| {
                let id = this.number(subscriber, &scope, kind, name);
                this.registries[kind as usize].hold(id);
                id
            })
            .collect();
        let registry = &mut this.registries[kind as usize];
        if names.is_empty() {
            named.extend(subscriber.sets[kind as usize].ids());
            named.iter().for_each(|id| registry.hold(*id));
        }
        let mut items = Vec::with_capacity(named.len());
        let mut nodes = Vec::new();
        for id in named {
            let mix = this.registries[kind as usize].mix();
            let is_change = subscriber.sets[kind as usize].remove(id, mix).is_some();
            items.push(Item { id, is_change });
            if !is_change {
                continue;
            }
            this.leave(&self.config, subscriber.id, kind, id);
            if this.registries[kind as usize].count(id) == 0 {
                this.each_spot(&self.config, kind, id, |node, told| {
                    if this.told()[kind as usize].count(told) == 0 && this.books[node].is_live() {
                        nodes.push(node);
                    }
                });
                nodes.sort_unstable();
                nodes.dedup();
            }
        }
        self.begin_wait(index, kind, Verb::Unsubscribe, items, &nodes)
    }

    /// The request is answered once these nodes have done their part; at once if there are none.
    fn begin_wait(&mut self, index: u32, kind: Kind, verb: Verb, items: Vec<Item>, nodes: &[usize]) -> Flow {
        let Some(session) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(this) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        // A message may not overtake the reply that announces it, whether or not other replies are wanted: as in Redis,
        // acknowledgements are sent to clients that want no replies.
        this.reply_mode.pass();
        let seq = this.down.expect();
        let Some(subscriber) = &mut this.subscriber else { return Flow::Stop };
        subscriber.after = Some(seq);
        subscriber.pending_names += items.len();
        let wait = Wait {
            session,
            seq,
            kind,
            verb,
            items,
            missing: nodes.len(),
            asked_us: self.now.mono_us,
            failure: None,
            tracking: None,
        };
        let wait = self.subscriptions.waits.insert(wait);
        subscriber.pending.push_back(wait);
        self.counters.requests_local.add(1);
        for node in nodes {
            self.subscriptions.books[*node].wait(wait);
            self.subscriptions.has_news = true;
            if verb == Verb::Subscribe
                && let Err(error) = self.prepare_push_lane(*node)
            {
                self.subscriptions.fail(wait, &error, &mut self.clients, &self.config);
            }
        }
        self.is_busy |= !nodes.is_empty();
        self.subscriptions.answer(session, &mut self.clients);
        self.account_subscriptions();
        self.keep_outstanding(index)
    }

    /// Shows in account and counters what is subscribed to.
    pub(super) fn account_subscriptions(&mut self) {
        self.subscriptions.account(&self.shared.ledger);
        let [channels, patterns, shards] = self.subscriptions.counts();
        self.counters.pubsub_channels.set(channels as u64);
        self.counters.pubsub_patterns.set(patterns as u64);
        self.counters.pubsub_shard_channels.set(shards as u64);
        self.counters.subscriptions.set(self.subscriptions.pairs as u64);
        self.subscriptions.tracked.show(&self.counters);
    }

    /// Forgets all that a client subscribes to.
    pub(crate) fn reset_subscriptions(&mut self, index: u32) {
        self.leave_apart(index);
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.special.remove(Special::SUBSCRIBED);
        session.special.remove(Special::TRACKING);
        if let Some(subscriber) = session.subscriber.take() {
            self.subscriptions.forget(*subscriber);
        }
    }

    /// The client speaks another dialect from now on: in RESP2 it may do little else than listen.
    pub(crate) fn review_subscribed(&mut self, index: u32) {
        let is_subscribed = self.is_subscriber(index);
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        if is_subscribed && session.protocol == Protocol::Resp2 {
            session.special.add(Special::SUBSCRIBED);
        } else {
            session.special.remove(Special::SUBSCRIBED);
        }
    }
}
