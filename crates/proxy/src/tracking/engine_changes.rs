//! Changes that the engine in this process makes: the client of each is known, so NOLOOP needs nothing more.
//!
//! What has changed is asked of the engine behind each request, and clients are told behind the reply; of what a transaction
//! changes, behind the reply to the whole. The engine's keyspace events come the same way, and are published at once
//! (`pubsub/keyspace_events.rs`).

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::interfaces::engine_changes::EngineChanges;
use crate::push::subscriber::Subscriber;
use crate::push::subscriptions::TrackedKeys;
use crate::session::Session;
use crate::session::table::Clients;
use crate::tracking::Subscriptions;
use crate::tracking::state::{Changed, Readers, Tracking};
use respool_command::{Change, Execute, PubsubCommand, Row, Wanted};
use respool_wire::{Args, Encoder};
use std::collections::BTreeMap;

impl Subscriptions {
    /// Whether a client does not want to hear of a change, because it is its own.
    fn is_own(&self, handle: ClientHandle, by: Option<ClientHandle>, clients: &mut Clients) -> bool {
        let tracking = clients.sessions.get_mut(handle).and_then(|session| Tracking::of(&session.subscriber));
        by == Some(handle) && tracking.is_some_and(|tracking| tracking.is_noloop)
    }

    /// The clients that have read keys and want to hear of their change. As in Redis, they have to read a key again to be told of it
    /// again, also where the change is their own.
    fn take_readers(&mut self, by: Option<ClientHandle>, keys: &[Box<[u8]>], clients: &mut Clients) -> Readers {
        let mut told = Readers::new();
        for key in keys {
            let Some(id) = self.tracked.keys.find(key) else { continue };
            self.tracked.keys.retain(id);
            let readers: Vec<u32> = self.tracked.keys.subscribers(id).collect();
            for handle in readers.into_iter().filter_map(|number| self.tracked.reader(number)).collect::<Vec<_>>() {
                let is_own = self.is_own(handle, by, clients);
                let Some(session) = clients.sessions.get_mut(handle) else { continue };
                if let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) {
                    self.tracked.forget(subscriber, id);
                }
                if !is_own {
                    told.push((handle, key.clone()));
                }
            }
            self.tracked.keys.release(id);
        }
        told
    }

    /// Tells clients of keys that begin as they have said. As from Redis, each prefix has one push for all keys that were changed
    /// together, in the order of their names.
    fn tell_broadcast(&mut self, changed: BTreeMap<Box<[u8]>, Option<ClientHandle>>, clients: &mut Clients) {
        if changed.is_empty() {
            return;
        }
        let keys: Vec<&[u8]> = changed.keys().map(|key| &**key).collect();
        for handle in self.broadcast_clients(clients) {
            if self.is_own(handle, Some(handle), clients) {
                let others = changed.iter().filter(|(_, by)| **by != Some(handle));
                self.tell_by_prefix(handle, &others.map(|(key, _)| &**key).collect::<Vec<_>>(), clients);
            } else {
                self.tell_by_prefix(handle, &keys, clients);
            }
        }
    }

    #[cold]
    fn tell_collected(&mut self, env: &mut Env<impl Execute>) {
        let Env { clients, .. } = env;
        let mut sessions = self.tracked.changed.iter().filter_map(|changed| clients.sessions.get(changed.by?));
        if sessions.any(Session::is_amid_exec_reply) {
            return;
        }
        let is_broadcast = !self.tracked.prefixes.is_empty();
        let mut broadcast = BTreeMap::new();
        for Changed { by, keys, readers } in std::mem::take(&mut self.tracked.changed) {
            note_for_script(by, keys.as_deref(), clients);
            let Some(keys) = keys else {
                self.tell_broadcast(std::mem::take(&mut broadcast), clients);
                self.invalidate_all(clients);
                continue;
            };
            let readers = readers.unwrap_or_else(|| self.take_readers(by, &keys, clients));
            for (handle, key) in readers {
                self.tell_invalid(handle, Some(vec![key]), clients);
            }
            if is_broadcast {
                // Of several changes to a key the last one counts.
                broadcast.extend(keys.into_iter().map(|key| (key, by)));
            }
        }
        self.tell_broadcast(broadcast, clients);
        self.tracked.show(&env.counters);
    }
}

/// Others are told of what a late script has changed while it goes on: its client has to hear of it as well, but later.
fn note_for_script(by: Option<ClientHandle>, keys: Option<&[Box<[u8]>]>, clients: &mut Clients) {
    let session = by.and_then(|by| clients.sessions.get_mut(by));
    let tracking = session.and_then(|session| Tracking::of_mut(&mut session.subscriber));
    if let Some(tracking) = tracking.filter(|tracking| tracking.script_keys.is_some()) {
        tracking.script_changes.add(keys);
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
        let session = by.and_then(|by| env.clients.sessions.get(by));
        let is_in_transaction = session.is_some_and(Session::is_amid_exec_reply);
        // What it changes it may have read before, which is known once it has ended.
        let tracking = session.and_then(|session| Tracking::of(&session.subscriber));
        let runs_script = tracking.is_some_and(|tracking| tracking.script_keys.is_some());
        let mut note = |by, keys: Option<Vec<Box<[u8]>>>| {
            let is_told_later = keys.as_deref().filter(|_| is_in_transaction && !runs_script);
            let readers = is_told_later.map(|keys| self.take_readers(by, keys, &mut env.clients));
            self.tracked.changed.push(Changed { by, keys, readers });
        };
        if !lost.is_empty() {
            // Keys that made room or have expired are no change of the client.
            note(None, Some(lost));
        }
        if !keys.is_empty() || is_everything {
            note(by, (!is_everything).then_some(keys));
        }
    }

    /// Tells clients what has changed, unless a transaction is under way whose reply comes first.
    #[inline]
    fn tell_changes(&mut self, env: &mut Env<impl Execute>) {
        if !self.tracked.changed.is_empty() {
            self.tell_collected(env);
        }
    }

    fn keep_script_reads(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let is_wanted = env.clients.tracking(index).is_some_and(|tracking| tracking.script_keys.is_some());
        if let Some(engine) = &mut env.engine {
            engine.keep_script_reads(is_wanted);
        }
    }

    /// A script of the engine in this process has ended. As in Valkey, and in Redis since 7.2, its client has read what its commands have
    /// read; Redis 7.0 takes the keys that the request names instead.
    fn track_script(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let Some(handle) = env.clients.sessions.handle(index) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        let Some(tracking) = Tracking::of_mut(&mut session.subscriber) else { return };
        let Some(named) = tracking.script_keys.take() else { return };
        let told = tracking.script_changes.take();
        if env.slices.script.is_some() {
            // It was refused: what the engine keeps is read by the script that is late.
            return;
        }
        let Some(read) = env.engine.as_mut().and_then(Execute::script_reads) else {
            self.tracked.doubtful.push(handle);
            return;
        };
        // Under routes a client knows keys by other names than the engine: those that it has said.
        let keys = if self.is_routed && !read.is_empty() { named } else { read };
        self.remember_all(env, index, handle, &keys);
        match told {
            None => self.tracked.doubtful.push(handle),
            Some(told) if told.is_empty() => {}
            Some(told) => {
                let readers = self.take_readers(Some(handle), &told, &mut env.clients);
                // Clients in BCAST mode have been told of these.
                self.tracked.changed.push(Changed { by: Some(handle), keys: Some(Vec::new()), readers: Some(readers) });
            }
        }
        let mut changed = std::mem::take(&mut self.tracked.changed);
        for Changed { by, keys, readers } in &mut changed {
            if let (Some(keys), None) = (keys, &readers) {
                *readers = Some(self.take_readers(*by, keys, &mut env.clients));
            }
        }
        self.tracked.changed = changed;
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
