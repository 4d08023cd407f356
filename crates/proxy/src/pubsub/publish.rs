//! PUBLISH and SPUBLISH.
//!
//! The node that a channel lives on gets the message and counts the connections that it passes it on to. All clients of a
//! worker share one of those, so that count is not what a client asked for: each of our own lanes in it is replaced by the
//! clients behind it. What becomes of it behind other proxies is not known here: each counts as one.
//! Without nodes the message goes to the workers, which deliver it and say to how many.

use super::query::{Publishing, PubsubQuery, PubsubStep};
use crate::config::{Config, PublishReceivers};
use crate::env::Env;
use crate::ids::{ClientId, NodeId};
use crate::interfaces::call::Call;
use crate::push::delivery::Recipients;
use crate::push::routing::MessageSource;
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use crate::reply::progress::ReplyMode;
use crate::session::Flow;
use crate::session::table::Clients;
use respool_command::{Execute, Row, glob};
use respool_connection::limits::POOLED_BUFFER_BYTES_MAX;
use respool_connection::push::frame;
use respool_connection::push::frame::Kind;
use respool_route::Subject;
use respool_wire::{Protocol, Request, encode_request};
use std::borrow::Cow;
use std::sync::Arc;

/// What a message has besides its channel and its text: the heads of these, its first word and ends of lines.
const MESSAGE_HEADS_BYTES: usize = 64;

impl<T: TrackedKeys> Subscriptions<T> {
    pub(super) fn publish(&mut self, env: &mut Env<impl Execute>, call: Call<'_>, kind: Kind) -> PubsubStep {
        let args = call.request.args;
        match env.engine {
            Some(_) => {
                PubsubStep::Ask(PubsubQuery::Publish { kind, channel: args.at(1).into(), payload: args.at(2).into() })
            }
            None => PubsubStep::Done(self.publish_at_node(env, call, kind)),
        }
    }

    fn publish_at_node(&mut self, env: &mut Env<impl Execute>, call: Call<'_>, kind: Kind) -> Flow {
        let Call { index, row, request: &Request { args, .. } } = call;
        let (channel, payload) = (args.at(1), args.at(2));
        // The message and the client's own subscriptions use different connections, and whether the client receives it
        // depends on their order.
        if env.clients.has_pending_subscriptions(index) && env.clients.settle_before(index).is_none() {
            return Flow::Again;
        }
        if let Some(session) = env.clients.sessions.at_mut(index) {
            session.details.has_published = true;
        }
        let (node, channel) = self.place_of_channel(env, index, row, channel);
        let channel = &*channel;
        let is_wanted = env.clients.sessions.at(index).is_some_and(|s| s.reply_mode == ReplyMode::On);
        let is_exact = env.config.subscriptions.receivers == PublishReceivers::Clients;
        if !is_wanted || !is_exact || env.shared.sum(|c| c.subscriptions.value()) == 0 {
            return env
                .send_to(index, node, args, |out| encode_request(out, [args.at(0), channel, payload].into_iter()));
        }
        if let Some(flow) = env.wait_for_room_at(index, node) {
            return flow;
        }
        let Some(class) = env.clients.sessions.at(index).map(|session| session.class) else { return Flow::Stop };
        let Some(asker) = env.clients.expect(index) else { return Flow::Stop };
        let task = Publishing { asker, kind, channel: channel.into(), node, count: None };
        let task = env.tasks.begin(task);
        let lane = env.lanes.lane(&env.config, node, class);
        let write = |out: &mut Vec<u8>| encode_request(out, [args.at(0), channel, payload].into_iter());
        if !env.send_for_task(task, 0, lane, write) {
            return Flow::Next;
        }
        env.keep_pace(index, lane, args)
    }

    /// The node of a channel, and what it is called there.
    fn place_of_channel<'a>(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        row: &'static Row,
        channel: &'a [u8],
    ) -> (NodeId, Cow<'a, [u8]>) {
        if !self.has_ways() {
            return (NodeId::of(env.config.topology.place(channel)), Cow::Borrowed(channel));
        }
        let routes = Arc::clone(&env.config.routes);
        let database = env.clients.sessions.at(index).map_or(0, |session| session.database);
        let led = routes.channel(Subject { user: env.clients.user_of(index), database, row }, channel);
        env.note_route(led.route);
        let pool = routes.pool_of(led.route);
        (NodeId::at(pool.place(pool.topology.place(&led.name))), Cow::Owned(led.name))
    }

    /// Delivers a message to this worker's clients. Returns to how many.
    pub(super) fn deliver_here(
        &mut self,
        env: &mut Env<impl Execute>,
        kind: Kind,
        channel: &[u8],
        payload: &[u8],
    ) -> i64 {
        let Env { clients, config, shared, counters, .. } = env;
        counters.messages_received.add(1);
        let mut to = Recipients { clients, ledger: &shared.ledger, settings: &config.subscriptions };
        let mut bytes = std::mem::take(&mut self.encoded);
        bytes.reserve(channel.len() + payload.len() + MESSAGE_HEADS_BYTES);
        frame::message(&mut bytes, Protocol::Resp2, kind, None, channel, payload);
        let mut count = self.deliver(kind, channel, &bytes, &mut to);
        if kind == Kind::Channel {
            for id in self.patterns_of(channel).collect::<Vec<_>>() {
                let pattern = self.registries[Kind::Pattern as usize].name(id);
                bytes.clear();
                frame::message(&mut bytes, Protocol::Resp2, Kind::Pattern, Some(pattern), channel, payload);
                count += self.deliver(Kind::Pattern, pattern, &bytes, &mut to);
            }
        }
        if bytes.capacity() <= POOLED_BUFFER_BYTES_MAX {
            bytes.clear();
            self.encoded = bytes;
        }
        count as i64
    }

    /// The patterns that match a channel, as nodes call both.
    fn patterns_of(&self, channel: &[u8]) -> impl Iterator<Item = u32> {
        let patterns = &self.told()[Kind::Pattern as usize];
        patterns.active_from(0).filter(|id| glob::matches(patterns.name(*id), channel))
    }

    /// By how much the clients of this worker that a node reaches with a message exceed the lanes it counts for them.
    pub(super) fn surplus(&self, config: &Config, kind: Kind, channel: &[u8], node: NodeId) -> i64 {
        let told = self.told();
        let of = |kind: Kind, id: u32| {
            let is_confirmed = self.books.get(node).is_some_and(|b| b.is_confirmed(told, kind, id));
            let from = MessageSource { node, kind, name: told[kind as usize].name(id) };
            match is_confirmed {
                true if self.has_ways() => self.count_meant(config, from, channel) as i64 - 1,
                true => self.registries[kind as usize].count(id) as i64 - 1,
                false => 0,
            }
        };
        let own = self.number_told(config, MessageSource { node, kind, name: channel }).map_or(0, |id| of(kind, id));
        let patterns = self.patterns_of(channel).filter(|_| kind == Kind::Channel);
        own + patterns.map(|id| of(Kind::Pattern, id)).sum::<i64>()
    }
}

impl Clients {
    /// Whether a PUBLISH of a client may be outstanding, which a change of its subscriptions would overtake.
    pub(super) fn has_messages_under_way(&mut self, index: ClientId) -> bool {
        let Some(session) = self.sessions.at_mut(index) else { return false };
        session.details.has_published &= !session.down.is_settled();
        session.details.has_published
    }
}
