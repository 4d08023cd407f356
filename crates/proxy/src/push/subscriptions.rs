//! The subscriptions of one worker's clients, and the state of their nodes.

use crate::config::Config;
use crate::ended::Ended;
use crate::env::Env;
use crate::ids::{ClientHandle, ClientId, Handle, NodeId, PerNode};
use crate::limits::TRACKED_UNACCOUNTED_MAX;
use crate::observe::counters::Counters;
use crate::push::lane::PushLane;
use crate::push::pending_changes::{FailedRequests, PendingChanges};
use crate::push::places::is_routed;
use crate::push::subscriber::Subscriber;
use crate::push::unsubscribing::PendingUnsubscribes;
use crate::session::marks::SessionSubscriber;
use crate::session::table::Clients;
use crate::slab::Slab;
use crate::workers::budget::ProcessBudget;
use respool_command::Execute;
use respool_connection::push::frame::Kind;
use respool_connection::push::node_ledger::{NodeLedger, Registries};
use respool_connection::push::registry::{PAIR_BYTES, Registry};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;

/// A client that has left, and what is still to be struck out of registries.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) id: u32,
    left: Vec<(Kind, u32)>,
    pub(crate) pending: VecDeque<Handle>,
}

/// The keys that clients track: they are told of over the same connections. What push lanes ask of the feature.
pub(crate) trait TrackedKeys: Debug + Sized {
    /// None yet. `seed` is for the hashes of keys.
    fn new(seed: u64) -> Self;

    /// Whether any client tracks keys, of which push lanes tell.
    fn is_any(&self) -> bool;

    /// Shows how much is tracked.
    fn show(&self, counters: &Counters);

    /// Bytes held.
    fn bytes(&self) -> usize;

    /// Keys that are not forgotten, and clients that are still to be told something.
    fn remains(&self) -> usize;

    /// Whether keys that are forgotten are still to be struck out.
    fn is_striking_out(&self) -> bool;

    /// Strikes out keys that have been forgotten, `most` at most.
    fn strike_out(&mut self, most: usize);

    /// Whether clients are to be told to forget what they have read, or others in their place.
    fn has_to_tell(&self) -> bool;

    /// The client is told of nothing any more. Returns whether it tracked anything.
    fn end(&mut self, subscriber: &mut Subscriber) -> bool;

    /// A request of a client is answered, with an error if it `has_failed`: it may have been one to track.
    fn note_answered(&mut self, client: ClientHandle, subscriber: &mut Subscriber, pending: Handle, has_failed: bool);

    /// A client tracks what it wanted, or what is wanted has changed.
    fn begin(subscriptions: &mut Subscriptions<Self>, subscriber: &mut Subscriber, wanted: Box<dyn Any + Send>);

    /// A node says that keys have changed; `None`: all, or it did not tell of changes before.
    fn handle_invalid(
        subscriptions: &mut Subscriptions<Self>,
        config: &Config,
        node: NodeId,
        keys: Option<&[u8]>,
        clients: &mut Clients,
    );

    /// A connection on which a client is told of changed keys has ended.
    fn handle_listener_ended(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>, ended: Ended);

    /// Clients are told to forget everything that have read something while no node told of changes.
    fn settle_doubts(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>);

    /// Passes on what is for clients that were named in place of others.
    fn pass_on_redirected(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>);

    /// Whether keys have to be evicted.
    fn is_too_large(&self, env: &Env<impl Execute>) -> bool;

    /// Looks at the connections that clients have to themselves because of what they track.
    fn check_lanes(subscriptions: &mut Subscriptions<Self>, env: &mut Env<impl Execute>);
}

/// The subscriptions of one worker's clients.
#[derive(Debug)]
pub(crate) struct Subscriptions<T> {
    /// Channels as clients call them.
    pub(crate) registries: Registries,
    /// Channels as nodes call them, with the former's numbers for subscribers. `None`: nodes call them the same.
    pub(crate) at_nodes: Option<Box<Registries>>,
    /// By node of the first pool; none if an engine in this process answers.
    pub(crate) books: PerNode<NodeLedger<Handle>>,
    pub(crate) lanes: PerNode<Option<PushLane>>,
    /// Whose the numbers of subscribers are.
    pub(crate) subscribers: Slab<ClientHandle>,
    pub(crate) pending: PendingChanges,
    /// Requests that are to fail, and are answered in slices.
    pub(crate) failing: FailedRequests,
    /// Channels that were given up, while their last messages are on their way.
    pub(crate) departing: PendingUnsubscribes,
    pub(crate) leaving: Vec<Leaving>,
    pub(crate) tracked: T,
    /// Nodes have to tell of changed keys.
    pub(crate) is_tracking_wanted: bool,
    /// Keys have other names at nodes, or are where the topology does not say.
    pub(crate) is_routed: bool,
    /// Pairs of client and channel.
    pub(crate) pairs: usize,
    pub(crate) accounted: usize,
    /// What of it is tracked keys.
    tracked_accounted: usize,
    /// Subscription changes are pending for some node.
    pub(crate) has_pending_updates: bool,
    /// Clients with messages waiting and room for them.
    pub(crate) refilling: Vec<ClientId>,
    /// Room for a message that is made here.
    pub(crate) encoded: Vec<u8>,
    /// When the push lanes are to be looked at next; 0 while there are none.
    pub(crate) check_at_us: u64,
}

impl<T: TrackedKeys> Subscriptions<T> {
    /// What a session has subscribed to, with a number of its own from the first time on.
    pub(crate) fn subscriber<'s>(
        &mut self,
        place: &'s mut Option<Box<dyn SessionSubscriber>>,
        session: ClientHandle,
    ) -> Option<&'s mut Subscriber> {
        place.get_or_insert_with(|| Box::new(Subscriber::new(self.subscribers.insert(session).index)));
        Subscriber::of_mut(place)
    }

    /// None yet. `entropy` seeds the hashes of names.
    pub(crate) fn new(config: &Config, entropy: u64) -> Self {
        let nodes = config.nodes_listened_to();
        let seed =
            |place: u64| entropy.wrapping_add(place).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ entropy.rotate_left(29);
        let is_routed = is_routed(config);
        let registries = [1, 2, 3].map(|place| Registry::new(seed(place)).emptied(is_routed));
        Self {
            at_nodes: is_routed.then(|| Box::new([5, 6, 7].map(|place| Registry::new(seed(place)).emptied(true)))),
            registries,
            books: PerNode::new((0..nodes).map(|_| NodeLedger::default())),
            lanes: PerNode::new((0..nodes).map(|_| None)),
            subscribers: Slab::default(),
            pending: PendingChanges::default(),
            failing: FailedRequests::default(),
            departing: PendingUnsubscribes::default(),
            leaving: Vec::new(),
            tracked: T::new(seed(4)),
            is_tracking_wanted: false,
            is_routed: !config.routes.are_plain(),
            pairs: 0,
            accounted: 0,
            tracked_accounted: 0,
            has_pending_updates: false,
            refilling: Vec::new(),
            encoded: Vec::new(),
            check_at_us: 0,
        }
    }

    /// Whether any client subscribes to anything.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.pairs > 0
    }

    /// How many different channels, patterns and sharded channels there are.
    pub(crate) fn counts(&self) -> [usize; 3] {
        Kind::ALL.map(|kind| match kind {
            Kind::Pattern => self.registries[kind as usize].len(),
            Kind::Channel | Kind::Shard => self.told()[kind as usize].len(),
        })
    }

    /// A channel has got its first subscriber or lost its last, by the number by which nodes are told of it.
    pub(crate) fn note(&mut self, config: &Config, kind: Kind, told: u32) {
        let is_wanted = self.told()[kind as usize].count(told) > 0;
        for node in self.nodes_of(config, kind, told) {
            let (book, registries) = self.book(node);
            book.note(registries, kind, told);
            book.count(is_wanted);
            self.has_pending_updates = true;
        }
    }

    /// Enters a subscription that the client had not.
    pub(crate) fn join(&mut self, config: &Config, subscriber: u32, kind: Kind, id: u32) {
        self.pairs += 1;
        if self.registries[kind as usize].join(id, subscriber) {
            self.begin(config, kind, id);
        }
    }

    /// Strikes a subscription out.
    pub(crate) fn leave(&mut self, config: &Config, subscriber: u32, kind: Kind, id: u32) {
        self.pairs -= 1;
        self.registries[kind as usize].retain(id);
        if self.registries[kind as usize].leave(id, subscriber) {
            self.end(config, kind, id);
        }
        self.registries[kind as usize].release(id);
    }

    /// What a client subscribes to, and whether that is a pattern.
    pub(crate) fn names<'a>(&'a self, subscriber: &'a Subscriber) -> impl Iterator<Item = (&'a [u8], bool)> {
        Kind::ALL.into_iter().zip(&subscriber.sets).flat_map(move |(kind, set)| {
            set.ids().map(move |id| (self.registries[kind as usize].name(id), matches!(kind, Kind::Pattern)))
        })
    }

    /// A client has gone, or has reset its connection. Its many subscriptions are struck out a part at a time.
    pub(crate) fn forget(&mut self, subscriber: Option<Box<dyn SessionSubscriber>>) {
        let Some(subscriber) = subscriber else { return };
        let subscriber: Box<dyn Any> = subscriber;
        let Ok(mut subscriber) = subscriber.downcast::<Subscriber>() else { return };
        self.has_pending_updates |= self.tracked.end(&mut subscriber);
        self.subscribers.retire(subscriber.id);
        let all = Kind::ALL.into_iter().zip(&subscriber.sets);
        let left = all.flat_map(|(kind, set)| set.ids().map(move |id| (kind, id))).collect();
        self.leaving.push(Leaving { id: subscriber.id, left, pending: subscriber.pending });
    }

    /// Strikes out subscriptions of clients that have left, and keys that are forgotten, `most` at most. Returns whether there are
    /// more subscriptions.
    pub(crate) fn strike_out(&mut self, config: &Config, most: usize) -> bool {
        let mut room = most;
        while room > 0
            && let Some(mut leaving) = self.leaving.pop()
        {
            while room > 0
                && let Some(pending) = leaving.pending.pop_front()
            {
                room = room.saturating_sub(1 + self.end_change(pending));
            }
            while room > 0
                && let Some((kind, id)) = leaving.left.pop()
            {
                self.leave(config, leaving.id, kind, id);
                room -= 1;
            }
            if leaving.left.is_empty() && leaving.pending.is_empty() {
                self.subscribers.release(leaving.id);
            } else {
                self.leaving.push(leaving);
            }
        }
        self.tracked.strike_out(room);
        !self.leaving.is_empty()
    }

    /// Makes tables smaller of which most is unused.
    pub(crate) fn shrink(&mut self) {
        self.subscribers.shrink();
        self.pending.shrink();
    }

    /// Whether a client that has left is still to be struck out, or keys are, or requests are to fail.
    #[inline]
    pub(crate) fn is_striking_out(&self) -> bool {
        !self.leaving.is_empty() || !self.failing.is_empty() || self.tracked.is_striking_out()
    }

    /// Clients, channels and keys that are not forgotten.
    pub(crate) fn remains(&self) -> usize {
        let channels: usize = self.counts().iter().sum();
        let held_up = self.pending.len() + self.leaving.len() + self.departing.len() + self.failing.len();
        self.subscribers.len() + held_up + self.pairs + channels + self.tracked.remains()
    }

    /// Tells the process's account what is held here.
    pub(crate) fn account(&mut self, ledger: &ProcessBudget) {
        let at_nodes = self.at_nodes.iter().flat_map(|registries| registries.iter());
        let names = self.registries.iter().chain(at_nodes).map(Registry::bytes).sum::<usize>();
        let now = names + self.pairs * PAIR_BYTES;
        self.tracked_accounted = self.tracked.bytes();
        let now = now + self.tracked_accounted;
        ledger.account(self.accounted, now);
        self.accounted = now;
    }

    /// Whether tracked keys have come or gone that are not in the account yet, and more than a few.
    #[inline]
    pub(crate) fn is_account_stale(&self) -> bool {
        self.tracked.bytes().abs_diff(self.tracked_accounted) > TRACKED_UNACCOUNTED_MAX
    }
}
