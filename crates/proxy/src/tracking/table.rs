//! Which client has read which key.

use crate::config::Config;
use crate::ended::Ended;
use crate::env::Env;
use crate::ids::{ClientHandle, Handle, NodeId};
use crate::observe::counters::Counters;
use crate::push::subscriber::Subscriber;
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use crate::session::table::Clients;
use crate::slab::Slab;
use crate::tracking::state::{Changed, Mode, Redirected, Tracking, TrackingClient, TrackingOptions};
use respool_command::Execute;
use respool_connection::push::id_map::{IdTable, Ids};
use respool_connection::push::registry::{PAIR_BYTES, Registry};
use std::any::Any;
use std::collections::BTreeMap;

/// Tracked keys of a client that no longer tracks them, still to be removed from the table: a client may have read a million.
#[derive(Debug)]
struct UntrackedKeys {
    /// The number of the former reader. It is not reused before the last of the keys is removed.
    reader: u32,
    pub(crate) keys: Ids<()>,
}

/// What all tracking clients of a worker have in common.
#[derive(Debug)]
pub(crate) struct TrackingTable {
    pub(crate) keys: Registry,
    /// Clients that have read keys. One that is to forget them all has another number with the next.
    readers: Slab<ClientHandle>,
    forgotten: Vec<UntrackedKeys>,
    /// Numbers of subscribers that are told of what push lanes tell.
    pub(crate) clients: IdTable<()>,
    /// Of those that nodes tell on connections of their own.
    pub(crate) noloop: IdTable<()>,
    /// Pairs of client and key.
    pub(crate) pairs: usize,
    /// Prefixes, with how many clients want each.
    pub(crate) prefixes: BTreeMap<Box<[u8]>, usize>,
    /// Bytes of the prefixes, here and with their clients.
    prefix_bytes: usize,
    /// Where the next key is looked for when there are too many.
    cursor: u32,
    /// Clients that have read something while a lane was missing.
    pub(crate) doubtful: Vec<ClientHandle>,
    /// Clients whose NOLOOP lanes may be released: their request to track has failed, or they share again.
    pub(crate) parting: Vec<ClientHandle>,
    /// Invalidations for clients that others named in their place.
    pub(super) redirected: Vec<Redirected>,
    /// What the engine in this process has changed, and for which client.
    pub(super) changed: Vec<Changed>,
}

impl TrackingTable {
    /// Strikes a key out of a client's.
    pub(crate) fn forget(&mut self, subscriber: &mut Subscriber, key: u32) {
        let Some(tracking) = Tracking::of_subscriber_mut(subscriber) else { return };
        if let Some(reader) = tracking.reader
            && tracking.keys.remove(key, self.keys.mix()).is_some()
        {
            self.strike(key, reader);
        }
    }

    /// The client has read nothing. Its keys are struck out a part at a time.
    pub(crate) fn forget_all(&mut self, subscriber: &mut Subscriber) {
        let Some(tracking) = Tracking::of_subscriber_mut(subscriber) else { return };
        let keys = std::mem::take(&mut tracking.keys).into_ids();
        if let Some(reader) = tracking.reader.take() {
            self.readers.retire(reader);
            self.forgotten.push(UntrackedKeys { reader, keys });
        }
    }

    /// The client with this reader number; `None` if it has left, and its entries are removed.
    pub(crate) fn reader(&self, number: u32) -> Option<ClientHandle> {
        self.readers.at(number).copied()
    }

    /// Strikes out that a key has been read. It may have been done before.
    pub(crate) fn strike(&mut self, key: u32, reader: u32) {
        if self.keys.has(key, reader) {
            self.pairs -= 1;
            self.keys.leave(key, reader);
        }
    }

    /// The client has read a key.
    pub(crate) fn remember(&mut self, subscriber: &mut Subscriber, client: ClientHandle, key: &[u8]) {
        let Some(tracking) = Tracking::of_subscriber_mut(subscriber) else { return };
        let reader = *tracking.reader.get_or_insert_with(|| self.readers.insert(client).index);
        let id = self.keys.intern(key);
        if tracking.keys.insert(id, (), self.keys.mix()) {
            self.pairs += 1;
            self.keys.join(id, reader);
        }
    }

    /// Bytes of keys and of the references to their readers.
    pub(super) fn key_bytes(&self) -> usize {
        self.keys.bytes() + self.pairs * PAIR_BYTES
    }

    /// A key that has to be forgotten, if there are too many or they take too much.
    pub(super) fn next_victim(&mut self, bounds: TableBounds) -> Option<u32> {
        if !self.is_over_bounds(bounds) {
            return None;
        }
        let victim = self.keys.active_from(self.cursor).next().or_else(|| self.keys.active_from(0).next())?;
        self.cursor = victim + 1;
        Some(victim)
    }
}

/// What the table of one worker may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableBounds {
    pub(super) keys_max: usize,
    pub(super) bytes_max: usize,
}

/// What a prefix takes beside its bytes, in the table and with its client.
const PREFIX_BYTES: usize = 2 * size_of::<Box<[u8]>>() + size_of::<usize>();

impl TrackedKeys for TrackingTable {
    fn new(seed: u64) -> Self {
        Self {
            keys: Registry::new(seed),
            readers: Slab::default(),
            forgotten: Vec::new(),
            clients: IdTable::default(),
            noloop: IdTable::default(),
            pairs: 0,
            prefixes: BTreeMap::new(),
            prefix_bytes: 0,
            cursor: 0,
            doubtful: Vec::new(),
            parting: Vec::new(),
            redirected: Vec::new(),
            changed: Vec::new(),
        }
    }

    fn is_any(&self) -> bool {
        !self.clients.is_empty()
    }

    fn show(&self, counters: &Counters) {
        counters.tracking_clients.set((self.clients.len() + self.noloop.len()) as u64);
        counters.tracked_keys.set(self.keys.len() as u64);
        counters.tracked_items.set(self.pairs as u64);
        counters.tracked_prefixes.set(self.prefixes.len() as u64);
    }

    fn bytes(&self) -> usize {
        self.key_bytes() + self.prefix_bytes
    }

    fn remains(&self) -> usize {
        self.forgotten.len() + self.pairs + self.redirected.len()
    }

    fn is_striking_out(&self) -> bool {
        !self.forgotten.is_empty()
    }

    fn strike_out(&mut self, most: usize) {
        let mut room = most;
        while room > 0
            && let Some(mut forgotten) = self.forgotten.pop()
        {
            while room > 0 {
                let Some(key) = forgotten.keys.next() else { break };
                self.strike(key, forgotten.reader);
                room -= 1;
            }
            match room {
                // It may have been the last.
                0 => self.forgotten.push(forgotten),
                _ => self.readers.release(forgotten.reader),
            }
        }
    }

    fn has_to_tell(&self) -> bool {
        !(self.doubtful.is_empty() && self.parting.is_empty() && self.redirected.is_empty())
    }

    fn end(&mut self, subscriber: &mut Subscriber) -> bool {
        self.forget_all(subscriber);
        let tracking = TrackingClient::of_mut(subscriber).and_then(|client| client.tracking.take());
        let Some(tracking) = tracking else { return false };
        self.prefix_bytes -= std::mem::take(&mut subscriber.prefix_bytes);
        for prefix in tracking.prefixes {
            match self.prefixes.get_mut(&prefix) {
                Some(wanted) if *wanted > 1 => *wanted -= 1,
                _ => drop(self.prefixes.remove(&prefix)),
            }
        }
        self.clients.remove(subscriber.id, self.keys.mix());
        self.noloop.remove(subscriber.id, self.keys.mix());
        true
    }

    fn note_answered(&mut self, client: ClientHandle, subscriber: &mut Subscriber, pending: Handle, has_failed: bool) {
        if has_failed {
            self.parting.push(client);
        }
        let noloop = TrackingClient::of_mut(subscriber).and_then(|client| client.noloop.as_mut());
        if let Some(noloop) = noloop.filter(|noloop| noloop.pending == Some(pending)) {
            noloop.pending = None;
        }
    }

    fn begin(subscriptions: &mut Subscriptions<Self>, subscriber: &mut Subscriber, wanted: Box<dyn Any + Send>) {
        let Ok(wanted) = wanted.downcast() else { return };
        let TrackingOptions { mode, is_noloop, redirect, prefixes, .. } = *wanted;
        let Some(TrackingClient { tracking, noloop }) = TrackingClient::begun(subscriber) else { return };
        let has_read = tracking.as_ref().is_some_and(|tracking| tracking.has_read());
        let has_noloop = is_noloop && noloop.is_some();
        let tracking = tracking.get_or_insert_default();
        tracking.mode = mode.unwrap_or_default();
        tracking.is_noloop = is_noloop;
        tracking.redirect = redirect;
        tracking.is_redirect_broken = false;
        let is_new = !tracking.prefixes.iter().any(|prefix| prefix.is_empty());
        let is_for_all = tracking.mode == Mode::Broadcast && prefixes.is_empty() && is_new;
        let mut added = 0;
        for prefix in prefixes.into_iter().chain(is_for_all.then(Box::default)) {
            added += 2 * prefix.len() + PREFIX_BYTES;
            *subscriptions.tracked.prefixes.entry(prefix.clone()).or_default() += 1;
            tracking.prefixes.push(prefix);
        }
        subscriptions.tracked.prefix_bytes += added;
        subscriber.prefix_bytes += added;
        let mix = subscriptions.tracked.keys.mix();
        let had_noloop = subscriptions.tracked.noloop.contains(subscriber.id, mix);
        if let Some(handle) = subscriptions.subscribers.at(subscriber.id) {
            let is_other =
                had_noloop != has_noloop && (had_noloop || subscriptions.tracked.clients.contains(subscriber.id, mix));
            if is_other && has_read {
                // What it has read before is remembered elsewhere.
                subscriptions.tracked.doubtful.push(*handle);
            }
            if had_noloop && !has_noloop {
                subscriptions.tracked.parting.push(*handle);
            }
        }
        let (table, other) = match has_noloop {
            true => (&mut subscriptions.tracked.noloop, &mut subscriptions.tracked.clients),
            false => (&mut subscriptions.tracked.clients, &mut subscriptions.tracked.noloop),
        };
        table.insert(subscriber.id, (), mix);
        other.remove(subscriber.id, mix);
    }

    fn handle_invalid(
        subscriptions: &mut Subscriptions<Self>,
        config: &Config,
        node: NodeId,
        keys: Option<&[u8]>,
        clients: &mut Clients,
    ) {
        subscriptions.invalidate(config, node, keys, clients);
    }

    fn handle_listener_ended(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>, ended: Ended) {
        subscriptions.end_hearing(env, ended);
    }

    fn settle_doubts(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>) {
        subscriptions.part(env);
        for handle in std::mem::take(&mut subscriptions.tracked.doubtful) {
            subscriptions.invalidate_client(handle, &mut env.clients);
        }
    }

    fn pass_on_redirected(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>) {
        for redirected in std::mem::take(&mut subscriptions.tracked.redirected) {
            let redirected = Redirected { from_worker: env.number, ..redirected };
            let worker = redirected.to.worker;
            if worker == env.number {
                env.take_redirected(redirected);
            } else {
                env.post(worker, redirected);
            }
        }
    }

    fn is_too_large(&self, env: &Env<impl Execute>) -> bool {
        !self.keys.is_empty() && self.is_over_bounds(env.shared.table_bounds(&env.config))
    }

    fn check_lanes(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>) {
        subscriptions.check_noloop(env);
    }
}
