//! Where channels are. Without routes a channel is in the one pool there is, and nodes call it what clients do. Under routes:
//!
//! ```text
//!   as clients call them                           as nodes call them
//!   [user, database] name  --- the routes' way ---> [pool] name --> one node, or all for patterns --> book
//!        |  subscribers: clients                       |  subscribers: the numbers on the left
//!   PUBSUB, ACL, acknowledgements               what nodes are told, what messages come for
//! ```
//!
//! A channel of a client is remembered with the user and the database by which it was led there, so other routes can be asked
//! anew, and clients that are led alike share it. What several of those mean at nodes is told to a node once. A message
//! comes back the same way: it goes to each number on the left under the name that its clients use.
//!
//! What nodes are asked for a pattern may match more than the pattern does, and one message may come by several. The first
//! route that leads the client to the channel decides whether it is meant, what it is called, and by which it is taken.

use crate::config::Config;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientId, Handle, NodeId, NodeRange};
use crate::push::delivery::Recipients;
use crate::push::places::{ChannelPlace, ChannelRoute, is_about_keys, is_everywhere, is_routed, user_text};
use crate::push::subscriber::Subscriber;
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use crate::session::Session;
use crate::session::table::Clients;
use respool_command::{Command, PubsubCommand, Row, glob, lookup};
use respool_connection::push::frame;
use respool_connection::push::frame::{Kind, Verb};
use respool_connection::push::node_ledger::{NodeLedger, OutOfStep, Refusal, Registries};
use respool_connection::push::scope::{Scope, behind, scope, split};
use respool_route::{Pool, Routes, Subject};
use respool_wire::{Args, Protocol};
use std::borrow::Cow;

/// Bytes of the number of a database in a scope.
const DATABASE_BYTES: usize = size_of::<u32>();

/// A client's scope.
pub(crate) fn scope_of(session: &Session) -> Scope {
    scope(&[&session.database.to_be_bytes(), session.user_name()])
}

fn subject<'a>(scoped: &'a [u8], row: &'static Row) -> Subject<'a> {
    let (scope, _) = split(scoped);
    let (database, user) = scope.split_at_checked(DATABASE_BYTES).unwrap_or_default();
    let database = database.try_into().map_or(0, u32::from_be_bytes);
    Subject { user: user_text(user), database, row }
}

/// The command that subscribes: routes are asked about it.
pub(crate) fn row_of(kind: Kind) -> &'static Row {
    lookup(kind.word(Verb::Subscribe)).expect("the table has a command for each kind")
}

impl Clients {
    /// Where the channels are that a request subscribes to or publishes on, each once for every pool.
    pub(crate) fn channels_named(
        &self,
        config: &Config,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
    ) -> Vec<ChannelPlace> {
        use PubsubCommand as P;
        let Command::Pubsub(command) = row.command else { return Vec::new() };
        let (kind, named) = match command {
            P::Publish => (Kind::Channel, 1..2),
            P::Spublish => (Kind::Shard, 1..2),
            P::Subscribe => (Kind::Channel, 1..args.len()),
            P::Psubscribe => (Kind::Pattern, 1..args.len()),
            P::Ssubscribe => (Kind::Shard, 1..args.len()),
            _ => return Vec::new(),
        };
        let is_publish = matches!(command, P::Publish | P::Spublish);
        let database = self.sessions.at(index).map_or(0, |session| session.database);
        let (routes, subject) = (&config.routes, Subject { user: self.user_of(index), database, row });
        let place = |name: &[u8], way: ChannelRoute| {
            // One message is on one node, whatever its channel is for subscribers.
            let nodes = if is_publish { way.nodes(routes, Kind::Shard) } else { way.nodes(routes, kind) };
            ChannelPlace { name: name.into(), way, nodes: nodes.collect() }
        };
        let ways_of = |name: &[u8]| match is_publish {
            true => vec![ChannelRoute::of(routes, routes.channel(subject, name))],
            false => ways(routes, subject, kind, name),
        };
        let names = named.filter_map(|at| args.get(at));
        names.flat_map(|name| ways_of(name).into_iter().map(move |way| place(name, way))).collect()
    }
}

/// All ways of a channel or pattern.
pub(crate) fn ways(routes: &Routes, subject: Subject<'_>, kind: Kind, name: &[u8]) -> Vec<ChannelRoute> {
    let as_it_is = |pool: usize| {
        let route = routes.routes().iter().position(|route| route.pool == pool).unwrap_or_default();
        ChannelRoute { route: route as u16, pool: pool as u16, name: name.to_vec() }
    };
    let of = |led| ChannelRoute::of(routes, led);
    if kind != Kind::Pattern {
        return match is_everywhere(kind, name) {
            true => routes.pools_for(subject).into_iter().map(as_it_is).collect(),
            false => vec![of(routes.channel(subject, name))],
        };
    }
    let mut all: Vec<ChannelRoute> = Vec::new();
    let as_they_are = is_about_keys(name).then(|| routes.pools_for(subject));
    let led = routes.pattern(subject, name).into_iter().map(of);
    for way in led.chain(as_they_are.into_iter().flatten().map(as_it_is)) {
        if !all.iter().any(|known| (known.pool, &known.name) == (way.pool, &way.name)) {
            all.push(way);
        }
    }
    all
}

fn scoped_ways(routes: &Routes, kind: Kind, scoped: &[u8]) -> Vec<ChannelRoute> {
    ways(routes, subject(scoped, row_of(kind)), kind, behind(scoped))
}

/// The pool of a channel as nodes call it.
fn pool_of(told: &[u8]) -> usize {
    split(told).0.try_into().map_or(0, |pool| usize::from(u16::from_be_bytes(pool)))
}

/// The nodes of a channel as nodes call it.
pub(crate) fn nodes_of_told(config: &Config, kind: Kind, told: &[u8], is_scoped: bool) -> NodeRange {
    if is_scoped {
        let way = ChannelRoute { route: 0, pool: pool_of(told) as u16, name: behind(told).to_vec() };
        return way.nodes(&config.routes, kind);
    }
    if is_everywhere(kind, told) {
        return config.topology_ids();
    }
    NodeRange::one(NodeId::of(config.topology.place(told)))
}

/// A message of a node, and what it came by.
#[derive(Clone, Copy)]
pub(crate) struct MessageSource<'a> {
    pub(crate) node: NodeId,
    pub(crate) kind: Kind,
    /// The name by which the node was told.
    pub(crate) name: &'a [u8],
}

impl<T: TrackedKeys> Subscriptions<T> {
    /// Whether routes say where channels are.
    pub(crate) fn has_ways(&self) -> bool {
        self.at_nodes.is_some()
    }

    /// Channels by the numbers by which nodes are told of them.
    pub(crate) fn told(&self) -> &Registries {
        self.at_nodes.as_deref().unwrap_or(&self.registries)
    }

    /// What a node was told, with the channels by those numbers.
    pub(crate) fn book(&mut self, node: NodeId) -> (&mut NodeLedger<Handle>, &mut Registries) {
        (&mut self.books[node], self.at_nodes.as_deref_mut().unwrap_or(&mut self.registries))
    }

    /// A node has refused what is due next of it.
    pub(crate) fn refuse(&mut self, node: NodeId) -> Result<Refusal, OutOfStep> {
        let (book, registries) = self.book(node);
        book.refuse(registries)
    }

    /// The node gave a channel up on its own account.
    pub(crate) fn retract(&mut self, config: &Config, from: MessageSource<'_>) {
        let MessageSource { node, kind, name } = from;
        let pool = config.routes.pool_at(node.place()).filter(|_| self.has_ways());
        let told = pool.map(|pool| ChannelRoute { route: 0, pool: pool as u16, name: name.to_vec() }.told());
        let (book, registries) = self.book(node);
        book.retract(registries, kind, told.as_deref().unwrap_or(name));
        self.has_pending_updates = true;
    }

    /// The number by which a node is told of a channel that it calls so.
    pub(crate) fn number_told(&self, config: &Config, from: MessageSource<'_>) -> Option<u32> {
        let MessageSource { node, kind, name } = from;
        match &self.at_nodes {
            None => self.registries[kind as usize].find(name),
            Some(at_nodes) => {
                let pool = config.routes.pool_at(node.place())? as u16;
                at_nodes[kind as usize].find(&ChannelRoute { route: 0, pool, name: name.to_vec() }.told())
            }
        }
    }

    /// The channels of clients that a node is told of by this number.
    pub(crate) fn called(&self, kind: Kind, told: u32) -> Vec<u32> {
        match &self.at_nodes {
            Some(at_nodes) => at_nodes[kind as usize].subscribers(told).collect(),
            None => vec![told],
        }
    }

    /// The number of a channel that a client names: that of its subscription, if it has one, by whatever way.
    pub(crate) fn number(&mut self, subscriber: &Subscriber, scope: &Scope, kind: Kind, name: &[u8]) -> u32 {
        let registry = &mut self.registries[kind as usize];
        let held = |scope: &Scope| {
            let id = registry.find(&[scope, name].concat())?;
            subscriber.sets[kind as usize].contains(id, registry.mix()).then_some(id)
        };
        if let Some(id) = subscriber.scopes.iter().find_map(held) {
            return id;
        }
        if scope.is_empty() { registry.intern(name) } else { registry.intern(&[scope, name].concat()) }
    }

    /// How many subscriptions the nodes of a pool hold for this worker.
    pub(crate) fn told_to(&self, pool: &Pool) -> usize {
        NodeId::of_pool(pool).filter_map(|node| self.books.get(node)).map(NodeLedger::told).sum()
    }

    /// Where a channel of clients is: for each node, by which number that is told of it.
    pub(crate) fn each_spot(&self, config: &Config, kind: Kind, id: u32, mut visit: impl FnMut(NodeId, u32)) {
        if self.books.is_empty() {
            return;
        }
        let Some(at_nodes) = &self.at_nodes else {
            let name = self.registries[kind as usize].name(id);
            return nodes_of_told(config, kind, name, false).for_each(|node| visit(node, id));
        };
        for way in scoped_ways(&config.routes, kind, self.registries[kind as usize].full_name(id)) {
            if let Some(told) = at_nodes[kind as usize].find(&way.told()) {
                way.nodes(&config.routes, kind).for_each(|node| visit(node, told));
            }
        }
    }

    /// The nodes that have to be told of a channel.
    pub(crate) fn nodes_of(&self, config: &Config, kind: Kind, told: u32) -> NodeRange {
        if self.books.is_empty() {
            return NodeRange::none();
        }
        nodes_of_told(config, kind, self.told()[kind as usize].full_name(told), self.has_ways())
    }

    /// A channel of clients has got its first subscriber.
    pub(crate) fn begin(&mut self, config: &Config, kind: Kind, id: u32) {
        if self.at_nodes.is_none() {
            return self.note(config, kind, id);
        }
        let ways = scoped_ways(&config.routes, kind, self.registries[kind as usize].full_name(id));
        self.join_ways(config, kind, id, &ways.iter().collect::<Vec<_>>());
    }

    /// A channel of clients, which is held, has lost its last.
    pub(crate) fn end(&mut self, config: &Config, kind: Kind, id: u32) {
        if self.at_nodes.is_none() {
            return self.note(config, kind, id);
        }
        let ways = scoped_ways(&config.routes, kind, self.registries[kind as usize].full_name(id));
        self.leave_ways(config, kind, id, &ways.iter().collect::<Vec<_>>());
    }

    fn join_ways(&mut self, config: &Config, kind: Kind, id: u32, ways: &[&ChannelRoute]) {
        for way in ways {
            let Some(at_nodes) = &mut self.at_nodes else { return };
            let told = at_nodes[kind as usize].intern(&way.told());
            if at_nodes[kind as usize].join(told, id) {
                self.note(config, kind, told);
            }
        }
    }

    fn leave_ways(&mut self, config: &Config, kind: Kind, id: u32, ways: &[&ChannelRoute]) {
        for way in ways {
            let Some(at_nodes) = &mut self.at_nodes else { return };
            let Some(told) = at_nodes[kind as usize].find(&way.told()) else { continue };
            at_nodes[kind as usize].retain(told);
            if at_nodes[kind as usize].leave(told, id) {
                self.note(config, kind, told);
            }
            if let Some(at_nodes) = &mut self.at_nodes {
                at_nodes[kind as usize].release(told);
            }
        }
    }

    /// Channels are elsewhere than before, or nodes know of none: all nodes are told again, and none has been told.
    pub(crate) fn begin_all(&mut self, config: &Config, clients: &mut Clients) {
        let is_routed = is_routed(config);
        // Channels have other numbers: what is still on its way is lost, as everything is that is said meanwhile.
        self.departing.clear();
        self.pending.iter_mut().for_each(|pending| pending.departures.clear());
        if is_routed != self.has_ways() {
            self.rename_all(is_routed, clients);
        }
        self.at_nodes = is_routed.then(|| Box::new([0, 1, 2].map(|kind| self.registries[kind].emptied(true))));
        for kind in Kind::ALL {
            let active: Vec<u32> = self.registries[kind as usize].active_from(0).collect();
            active.into_iter().for_each(|id| self.begin(config, kind, id));
        }
    }

    /// Channels get scopes, those of their clients as they are now, or lose them.
    fn rename_all(&mut self, is_scoped: bool, clients: &mut Clients) {
        // Clients that are leaving have nothing to be struck out any more.
        for leaving in std::mem::take(&mut self.leaving) {
            leaving.pending.into_iter().for_each(|pending| _ = self.end_change(pending));
            self.subscribers.release(leaving.id);
        }
        let mixes = [0, 1, 2].map(|kind: usize| self.registries[kind].mix());
        let emptied = [0, 1, 2].map(|kind: usize| self.registries[kind].emptied(is_scoped));
        let old = std::mem::replace(&mut self.registries, emptied);
        self.pairs = 0;
        for (_, session) in clients.sessions.iter_mut() {
            let scope = if is_scoped { scope_of(session) } else { Scope::default() };
            let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { continue };
            subscriber.scopes = if is_scoped { vec![scope.clone()] } else { Vec::new() };
            for of_kind in Kind::ALL {
                let kind = of_kind as usize;
                let number = |registries: &mut Registries, id: u32| {
                    registries[kind].intern(&[&scope, old[kind].name(id)].concat())
                };
                for id in subscriber.take_channels(of_kind, &old[kind]) {
                    let id = number(&mut self.registries, id);
                    // Two ways may have led to one name.
                    if subscriber.take_channel(of_kind, id, &self.registries[kind]) {
                        self.registries[kind].join(id, subscriber.id);
                        self.pairs += 1;
                    }
                }
                if let Some(unsettled) = &mut subscriber.unsettled {
                    for (id, begun) in std::mem::take(&mut unsettled[kind]).iter() {
                        let id = number(&mut self.registries, id);
                        unsettled[kind].insert(id, begun, mixes[kind]);
                    }
                }
            }
            for ((kind, id), numbers) in std::mem::take(&mut subscriber.relying) {
                let name = [&scope, old[kind as usize].name(id)].concat();
                let id = self.registries[kind as usize].intern(&name);
                subscriber.relying.insert((kind, id), numbers);
            }
        }
        for pending in self.pending.iter_mut() {
            let scope = clients.sessions.get(pending.session).filter(|_| is_scoped).map(scope_of).unwrap_or_default();
            for item in &mut pending.items {
                let name = old[pending.kind as usize].name(item.id);
                item.id = self.registries[pending.kind as usize].intern(&[&scope, name].concat());
                self.registries[pending.kind as usize].retain(item.id);
            }
        }
    }

    /// Other routes to the same pools hold: nodes are told what differs. A client that waits for a channel that is elsewhere now is
    /// told to ask again.
    pub(crate) fn take_routes(&mut self, old: &Config, new: &Config, error: &ErrorReply, clients: &mut Clients) {
        if self.at_nodes.is_none() || old.routes.routes() == new.routes.routes() {
            return;
        }
        let mut moved = Vec::new();
        for kind in Kind::ALL {
            let active: Vec<u32> = self.registries[kind as usize].active_from(0).collect();
            for id in active {
                let full = self.registries[kind as usize].full_name(id);
                let [before, now] = [old, new].map(|config| scoped_ways(&config.routes, kind, full));
                let come: Vec<&ChannelRoute> = now.iter().filter(|way| !is_among(&before, way)).collect();
                let gone: Vec<&ChannelRoute> = before.iter().filter(|way| !is_among(&now, way)).collect();
                if !come.is_empty() || !gone.is_empty() {
                    self.join_ways(new, kind, id, &come);
                    self.leave_ways(old, kind, id, &gone);
                    moved.push((kind, id));
                }
            }
        }
        for (kind, id) in moved {
            for pending in self.pending_of_channel(kind, id, clients) {
                self.fail(pending, error, clients, new);
            }
        }
    }

    /// A message that a node has sent. Returns to how many clients it went.
    pub(crate) fn deliver_from(
        &self,
        config: &Config,
        from: MessageSource<'_>,
        message: &[u8],
        to: &mut Recipients<'_>,
    ) -> usize {
        let MessageSource { kind, name, .. } = from;
        if self.at_nodes.is_none() {
            return self.deliver(kind, name, message, to);
        }
        let Some((channel, payload)) = frame::parts(message) else { return 0 };
        let mut count = 0;
        let mut renamed = Vec::new();
        let mut deliver = |id: u32, called: &[u8], last: Option<u32>| {
            let own = self.registries[kind as usize].name(id);
            let message = if own == name && called == channel {
                message
            } else {
                renamed.clear();
                let pattern = (kind == Kind::Pattern).then_some(own);
                frame::message(&mut renamed, Protocol::Resp3, kind, pattern, called, payload);
                &renamed
            };
            count += match last {
                None => self.deliver_to(kind, id, message, to),
                Some(subscriber) => self.deliver_each(std::iter::once(subscriber), (kind, id), message, to),
            };
        };
        self.each_meant(config, from, channel, |id, called| deliver(id, called, None));
        if !self.departing.is_empty()
            && let Some((told, pool)) = self.number_told(config, from).zip(config.routes.pool_at(from.node.place()))
        {
            for departure in self.departing.of(kind, told) {
                if let Some(called) = self.name_for(config, pool, from, channel, departure.id) {
                    deliver(departure.id, &called, Some(departure.subscriber));
                }
            }
        }
        count
    }

    /// Names the channels of clients that a message of a node is for, each with what its clients call the message's channel.
    /// `channel` is the node's name of that.
    fn each_meant(&self, config: &Config, from: MessageSource<'_>, channel: &[u8], mut visit: impl FnMut(u32, &[u8])) {
        let MessageSource { node, kind, .. } = from;
        let Some(told) = self.number_told(config, from) else { return };
        let Some((at_nodes, pool)) = self.at_nodes.as_ref().zip(config.routes.pool_at(node.place())) else {
            return visit(told, channel);
        };
        // What comes before the node has confirmed is left of an earlier subscription: routes went away and came back.
        if !self.books.get(node).is_some_and(|book| book.is_confirmed(at_nodes, kind, told)) {
            return;
        }
        for id in at_nodes[kind as usize].subscribers(told) {
            if let Some(called) = self.name_for(config, pool, from, channel, id) {
                visit(id, &called);
            }
        }
    }

    /// What the clients of a channel or pattern call the channel of a message that came from a node of this pool; `None` if
    /// it is not for them.
    fn name_for<'a>(
        &'a self,
        config: &Config,
        pool: usize,
        from: MessageSource<'_>,
        channel: &'a [u8],
        id: u32,
    ) -> Option<Cow<'a, [u8]>> {
        let MessageSource { kind, name, .. } = from;
        let (registry, routes) = (&self.registries[kind as usize], &config.routes);
        let own = registry.name(id);
        if kind != Kind::Pattern {
            return Some(Cow::Borrowed(own));
        }
        if is_everywhere(Kind::Channel, channel) && is_about_keys(own) {
            return (own == name).then_some(Cow::Borrowed(channel));
        }
        let subject = subject(registry.full_name(id), row_of(kind));
        let led = routes.channel_name(subject, pool, channel, |name| glob::matches(own, name))?;
        // It may come by other patterns as well; it is taken once.
        let is_taken = routes.pattern_under(led.route, own).is_some_and(|asked| asked == name);
        is_taken.then_some(Cow::Owned(led.name))
    }

    /// How many clients of this worker get what a node sends for what it was told by this name.
    pub(crate) fn count_meant(&self, config: &Config, from: MessageSource<'_>, channel: &[u8]) -> usize {
        let (registry, mut count) = (&self.registries[from.kind as usize], 0);
        self.each_meant(config, from, channel, |id, _| count += registry.count(id));
        count
    }

    /// The channels that have subscribers, by the names that a client of this scope has for them.
    pub(crate) fn names_for(
        &self,
        config: &Config,
        scope: &[u8],
        kind: Kind,
        is_asked: impl Fn(&[u8]) -> bool,
    ) -> Vec<Box<[u8]>> {
        let Some(at_nodes) = &self.at_nodes else {
            let registry = &self.registries[kind as usize];
            let all = registry.active_from(0).map(|id| registry.name(id));
            return all.filter(|name| is_asked(name)).map(Into::into).collect();
        };
        let subject = subject(scope, row_of(kind));
        let pools = config.routes.pools_for(subject);
        let registry = &at_nodes[kind as usize];
        let called = |told: u32| -> Option<Box<[u8]>> {
            let (pool, name) = (pool_of(registry.full_name(told)), registry.name(told));
            if is_everywhere(kind, name) {
                return (pools.contains(&pool) && is_asked(name)).then(|| name.into());
            }
            config.routes.channel_name(subject, pool, name, &is_asked).map(|led| led.name.into())
        };
        registry.active_from(0).filter_map(called).collect()
    }

    /// How many clients subscribe to what a client of this scope calls so.
    pub(crate) fn count_for(&self, config: &Config, scope: &[u8], kind: Kind, name: &[u8]) -> usize {
        let registry = &self.registries[kind as usize];
        let Some(at_nodes) = &self.at_nodes else {
            return registry.find(name).map_or(0, |id| registry.count(id));
        };
        let all = ways(&config.routes, subject(scope, row_of(kind)), kind, name).into_iter();
        let told = all.filter_map(|way| at_nodes[kind as usize].find(&way.told()));
        let mut ids: Vec<u32> = told.flat_map(|told| at_nodes[kind as usize].subscribers(told)).collect();
        // Several ways may lead to the same.
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().map(|id| registry.count(id)).sum()
    }
}

fn is_among(ways: &[ChannelRoute], way: &ChannelRoute) -> bool {
    ways.iter().any(|other| (other.pool, &other.name) == (way.pool, &way.name))
}
