//! The way of an invalidation: from a node's push to the clients that have read the key, or to those they named instead.

use super::routed_keys;
use super::state::{LostRedirect, Mode, Redirected};
use crate::config::Config;
use crate::env::Env;
use crate::ids::{ClientHandle, NodeId};
use crate::push::places::user_text;
use crate::push::subscriber::Subscriber;
use crate::session::table::Clients;
use crate::tracking::Subscriptions;
use crate::tracking::state::Tracking;
use respool_command::Execute;
use respool_connection::WorkerId;
use respool_connection::push::frame::bulk;
use respool_wire::{Encoder, Protocol, elements};

/// What a RESP2 client that invalidations are redirected to has to subscribe to.
const CHANNEL: &[u8] = b"__redis__:invalidate";

impl Subscriptions {
    /// A node tells of changed keys; `None`: of all.
    pub(super) fn invalidate(&mut self, config: &Config, node: NodeId, keys: Option<&[u8]>, clients: &mut Clients) {
        let Some(keys) = keys else { return self.invalidate_node(config, node, clients) };
        let keys: Vec<&[u8]> = elements(keys).into_iter().flatten().filter_map(bulk).collect();
        if self.is_routed {
            return self.invalidate_routed(&config.routes, node, &keys, clients);
        }
        for key in &keys {
            if let Some(id) = self.tracked.keys.find(key) {
                self.invalidate_key(id, clients);
            }
        }
        for handle in self.broadcast_clients(clients) {
            self.tell_by_prefix(handle, &keys, clients);
        }
    }

    /// The clients that push lanes tell of keys that begin in some way. All others have nothing to do with a change of a key that they have not read.
    pub(super) fn broadcast_clients(&self, clients: &mut Clients) -> Vec<ClientHandle> {
        if self.tracked.prefixes.is_empty() {
            return Vec::new();
        }
        let is_broadcast = |handle: &ClientHandle| {
            let tracking = clients.sessions.get_mut(*handle).and_then(|session| Tracking::of(&session.subscriber));
            tracking.is_some_and(|tracking| tracking.mode == Mode::Broadcast)
        };
        self.tracking_clients().into_iter().filter(is_broadcast).collect()
    }

    /// Keys have changed: a client is told of those that begin as it has said, if it has.
    pub(super) fn tell_by_prefix(&mut self, handle: ClientHandle, keys: &[&[u8]], clients: &mut Clients) {
        let tracking = clients.sessions.get_mut(handle).and_then(|session| Tracking::of(&session.subscriber));
        let Some(tracking) = tracking.filter(|t| t.mode == Mode::Broadcast) else { return };
        // As from Redis, each prefix has a push of its own.
        let begun =
            |prefix: &[u8]| keys.iter().filter(move |key| key.starts_with(prefix)).map(|key| Box::from(*key)).collect();
        let meant: Vec<Vec<Box<[u8]>>> = tracking.prefixes.iter().map(|prefix| begun(prefix)).collect();
        for keys in meant.into_iter().filter(|keys| !keys.is_empty()) {
            self.tell_invalid(handle, Some(keys), clients);
        }
    }

    /// A key has changed, or is forgotten: its readers are told once.
    pub(super) fn invalidate_key(&mut self, id: u32, clients: &mut Clients) {
        let key = self.tracked.keys.name(id);
        let key: Box<[u8]> = if self.is_routed { routed_keys::name(key).into() } else { key.into() };
        self.tracked.keys.retain(id);
        let numbers: Vec<u32> = self.tracked.keys.subscribers(id).collect();
        for number in numbers {
            let reader = self.tracked.reader(number);
            if let Some(handle) = reader
                && let Some(session) = clients.sessions.get_mut(handle)
                && let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber)
            {
                self.tracked.forget(subscriber, id);
                self.tell_invalid(handle, Some(vec![key.clone()]), clients);
            } else {
                self.tracked.strike(id, number);
            }
        }
        self.tracked.keys.release(id);
    }

    /// Everything that clients have read may have changed.
    pub(super) fn invalidate_all(&mut self, clients: &mut Clients) {
        self.tracking_clients().into_iter().for_each(|client| self.invalidate_client(client, clients));
    }

    /// The clients that track anything.
    pub(super) fn tracking_clients(&self) -> Vec<ClientHandle> {
        self.tracked.clients.ids().filter_map(|number| self.subscribers.at(number).copied()).collect()
    }

    /// Everything that clients have read from a node may have changed.
    pub(super) fn invalidate_node(&mut self, config: &Config, node: NodeId, clients: &mut Clients) {
        for handle in self.tracking_clients() {
            let Some(session) = clients.sessions.get_mut(handle) else { continue };
            if !self.is_routed || config.routes.nodes_for(user_text(session.user_name())).contains(&node.place()) {
                self.invalidate_client(handle, clients);
            }
        }
    }

    /// A node is up at another address: what was read where its name led may be other values now, wherever the node tells of changes
    /// from. `told`: clients that it has told of changes on connections of their own.
    pub(crate) fn leave_address(&mut self, env: &mut Env<impl Execute>, node: NodeId, told: Vec<ClientHandle>) {
        self.invalidate_node(&env.config, node, &mut env.clients);
        for client in told {
            if env.clients.sessions.get(client).is_some() && env.clients.has_noloop_lanes(client.index) {
                self.restart_noloop(env, client.index);
            }
        }
    }

    /// Everything that one client has read may have changed.
    pub(super) fn invalidate_client(&mut self, handle: ClientHandle, clients: &mut Clients) {
        let Some(session) = clients.sessions.get_mut(handle) else { return };
        if let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) {
            self.tracked.forget_all(subscriber);
            self.tell_invalid(handle, None, clients);
        }
    }

    pub(super) fn tell_invalid(&mut self, handle: ClientHandle, keys: Option<Vec<Box<[u8]>>>, clients: &mut Clients) {
        let Some(session) = clients.sessions.get_mut(handle) else { return };
        let Some(tracking) = Tracking::of_mut(&mut session.subscriber) else { return };
        clients.counters.invalidations.add(1);
        if let Some(to) = tracking.redirect {
            if !tracking.is_redirect_broken {
                self.tracked.redirected.push(Redirected { to, from_worker: WorkerId::FIRST, from: handle, keys });
            }
            return;
        }
        if session.protocol == Protocol::Resp3 {
            let (after, again) = (tracking.after, tracking.told_again(&session.down, keys.as_deref()));
            session.down.push(after, &mut clients.pool, |out| write(out, Protocol::Resp3, keys.as_deref()));
            if let Some((place, keys)) = again {
                session.down.push(Some(place), &mut clients.pool, |out| write(out, Protocol::Resp3, keys.as_deref()));
            }
            clients.list(handle.index);
        }
    }
}

/// An invalidation as a client gets it: a push, or a message of the channel that a RESP2 client subscribes to for it.
fn write(out: &mut Vec<u8>, protocol: Protocol, keys: Option<&[Box<[u8]>]>) {
    let mut out = Encoder::new(out, protocol);
    match protocol {
        Protocol::Resp3 => {
            out.push(2);
            out.bulk(b"invalidate");
        }
        Protocol::Resp2 => {
            out.push(3);
            out.bulk(b"message");
            out.bulk(CHANNEL);
        }
    }
    match keys {
        None => out.null_array(),
        Some(keys) => {
            out.array(keys.len());
            keys.iter().for_each(|key| out.bulk(key));
        }
    }
}

impl<E: Execute> Env<E> {
    /// An invalidation is for a client of this worker.
    pub(crate) fn take_redirected(&mut self, redirected: Redirected) {
        let Redirected { to, from_worker, from, keys } = redirected;
        let Some(session) = self.clients.sessions.get_mut(to.session) else {
            if from_worker == self.number {
                return self.clients.break_redirection(LostRedirect { session: from, id: to.id });
            }
            return self.post(from_worker, LostRedirect { session: from, id: to.id });
        };
        let protocol = session.protocol;
        if protocol == Protocol::Resp2 && !session.subscriber.as_ref().is_some_and(|s| s.is_subscribed()) {
            return;
        }
        let after = Subscriber::of(&session.subscriber).and_then(|s| s.after);
        session.down.push(after, &mut self.clients.pool, |out| write(out, protocol, keys.as_deref()));
        self.clients.list(to.session.index);
    }
}

impl Clients {
    /// The client that another named in its place has gone.
    pub(crate) fn break_redirection(&mut self, broken: LostRedirect) {
        let LostRedirect { session: of, id } = broken;
        let Some(session) = self.sessions.get_mut(of) else { return };
        let Some(tracking) = Tracking::of_mut(&mut session.subscriber) else { return };
        if tracking.is_redirect_broken || tracking.redirect.is_none_or(|r| r.id != id) {
            return;
        }
        tracking.is_redirect_broken = true;
        if session.protocol == Protocol::Resp3 {
            let after = tracking.after;
            session.down.push(after, &mut self.pool, |out| {
                let mut out = Encoder::new(out, Protocol::Resp3);
                out.push(2);
                out.bulk(b"tracking-redir-broken");
                out.integer(id.get() as i64);
            });
            self.list(of.index);
        }
    }
}
