//! Changes that the engine in this process makes: the client of each is known, so NOLOOP needs nothing more.
//!
//! What has changed is asked of the engine behind each request, and clients are told behind the reply; of what a transaction
//! changes, behind the reply to the whole. The engine's keyspace events come the same way, and are published at once
//! (`pubsub/keyspace_events.rs`).

use crate::env::Env;
use crate::interfaces::engine_changes::EngineChanges;
use crate::pubsub::Subscriptions;
use crate::session::id::{ClientHandle, ClientId};
use crate::session::table::Clients;
use crate::tracking::state::Changed;
use respool_command::{Change, Execute, PubsubCommand, Row, Wanted};
use respool_wire::{Args, Encoder};
use std::collections::BTreeMap;

impl Subscriptions {
    /// Whether a client does not want to hear of a change, because it is its own.
    fn is_own(&self, handle: ClientHandle, by: Option<ClientHandle>, clients: &mut Clients) -> bool {
        let session = clients.sessions.get_mut(handle);
        let tracking = session.and_then(|s| s.subscriber.as_ref()).and_then(|s| s.tracking.as_ref());
        by == Some(handle) && tracking.is_some_and(|tracking| tracking.is_noloop)
    }

    /// Tells clients of keys that they have read.
    fn tell_readers(
        &mut self,
        by: Option<ClientHandle>,
        is_in_transaction: bool,
        keys: &[Box<[u8]>],
        clients: &mut Clients,
    ) {
        for key in keys {
            let Some(id) = self.tracked.keys.find(key) else { continue };
            self.tracked.keys.retain(id);
            let readers: Vec<u32> = self.tracked.keys.subscribers(id).collect();
            for handle in readers.into_iter().filter_map(|number| self.tracked.reader(number)).collect::<Vec<_>>() {
                let is_own = self.is_own(handle, by, clients);
                let Some(session) = clients.sessions.get_mut(handle) else { continue };
                // As in Redis, what a client changes itself it has to read again to be told of it.
                if let Some(subscriber) = session.subscriber.as_deref_mut().filter(|_| !(is_own && is_in_transaction)) {
                    self.tracked.forget(subscriber, id);
                }
                if !is_own {
                    self.tell_invalid(handle, Some(vec![key.clone()]), clients);
                }
            }
            self.tracked.keys.release(id);
        }
    }

    /// Tells clients of keys that begin as they have said. As from Redis, each prefix has one push for all keys that were changed
    /// together, in the order of their names.
    fn tell_broadcast(&mut self, changed: BTreeMap<Box<[u8]>, Option<ClientHandle>>, clients: &mut Clients) {
        if changed.is_empty() {
            return;
        }
        for number in self.tracked.clients.ids().collect::<Vec<_>>() {
            let Some(handle) = self.subscribers.at(number).copied() else { continue };
            let keys = changed.iter().filter(|(_, by)| !self.is_own(handle, **by, clients));
            let keys: Vec<Box<[u8]>> = keys.map(|(key, _)| key.clone()).collect();
            self.tell_by_prefix(handle, &keys, clients);
        }
    }

    #[cold]
    fn tell_collected(&mut self, env: &mut Env<impl Execute>) {
        let is_in_transaction = |by: ClientHandle, clients: &mut Clients| {
            let session = clients.sessions.get_mut(by);
            session.and_then(|session| session.pins.as_ref()).is_some_and(|pins| pins.exec_reply.is_some())
        };
        let Env { clients, .. } = env;
        if self.changed.iter().any(|changed| changed.by.is_some_and(|by| is_in_transaction(by, clients))) {
            return;
        }
        let is_broadcast = self.tracked.has_prefixes();
        let mut broadcast = BTreeMap::new();
        for Changed { by, is_in_transaction, keys } in std::mem::take(&mut self.changed) {
            let Some(keys) = keys else {
                self.tell_broadcast(std::mem::take(&mut broadcast), clients);
                self.invalidate_all(clients);
                continue;
            };
            self.tell_readers(by, is_in_transaction, &keys, clients);
            if is_broadcast {
                // Of several changes to a key the last one counts.
                broadcast.extend(keys.into_iter().map(|key| (key, by)));
            }
        }
        self.tell_broadcast(broadcast, clients);
        self.tracked.show(&env.counters);
    }
}

impl EngineChanges for Subscriptions {
    /// Asks the engine what has changed, and has it go on noting what is `wanted`. Events are published at once.
    fn collect_changes(&mut self, env: &mut Env<impl Execute>, wanted: Wanted, by: Option<ClientHandle>) {
        let Some(engine) = &mut env.engine else { return };
        let (mut keys, mut is_everything, mut lost) = (Vec::new(), false, Vec::new());
        let mut events = Vec::new();
        engine.changes(wanted, &mut |change| match change {
            Change::Lost(key) => lost.push(Box::from(key)),
            Change::Key(key) => keys.push(Box::from(key)),
            Change::Everything => is_everything = true,
            Change::Event { database, key, event } => events.push((database, Box::from(key), event)),
        });
        self.publish_events(env, &events);
        if !lost.is_empty() {
            // Keys that made room or have expired are no change of the client.
            self.changed.push(Changed { by: None, is_in_transaction: false, keys: Some(lost) });
        }
        if keys.is_empty() && !is_everything {
            return;
        }
        let session = by.and_then(|by| env.clients.sessions.get_mut(by));
        let is_in_transaction =
            session.and_then(|session| session.pins.as_ref()).is_some_and(|pins| pins.exec_reply.is_some());
        let keys = (!is_everything).then_some(keys);
        self.changed.push(Changed { by, is_in_transaction, keys });
    }

    /// Tells clients what has changed, unless a transaction is under way whose reply comes first.
    #[inline]
    fn tell_changes(&mut self, env: &mut Env<impl Execute>) {
        if !self.changed.is_empty() {
            self.tell_collected(env);
        }
    }

    /// A script of the engine in this process has ended. As in Redis, its client has read the keys that the request names if it has
    /// called a command that reads.
    fn track_script(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let Some(handle) = env.clients.sessions.handle(index) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        let Some(subscriber) = session.subscriber.as_deref_mut() else { return };
        let Some(tracking) = subscriber.tracking.as_deref_mut() else { return };
        let keys = std::mem::take(&mut tracking.script_keys);
        if keys.is_empty() || !env.engine.as_ref().is_some_and(Execute::has_script_read) {
            return;
        }
        keys.iter().for_each(|key| self.tracked.remember(subscriber, handle, key));
        let keys_max = env.tracked_keys_max();
        self.evict(keys_max, keys.len(), &mut env.clients);
        self.tracked.show(&env.counters);
    }

    fn pubsub_for_script(
        &mut self,
        env: &mut Env<impl Execute>,
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
        reply: &mut Encoder<'_>,
    ) {
        self.answer_for_script(env, command, row, args, reply);
    }
}
