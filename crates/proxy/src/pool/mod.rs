//! All connections of one worker to nodes: which request shares which, when they are dialled, and when they end.
//!
//! A shared lane is named by its node and its class: the database and the dialect that all its clients share. Lanes for
//! other purposes stand in the same table of places, outside the table of classes, and are known by handles: their places
//! are used again once they have ended and the loop has been told.

mod dial_queue;
pub(crate) mod dial_turns;
mod key;
pub(crate) mod key_id;
pub(crate) mod lane_reset;
pub(crate) mod large_reply;
pub(crate) mod lease;
pub(crate) mod lending;
mod read_pacing;
pub(crate) mod replace;
pub(crate) mod session_mode;
mod unshare;

use crate::config::{Config, NodeConfig};
use crate::error_reply::ErrorReply;
use crate::ids::{ClientId, Handle, LaneHandle, LaneId, LaneKeyId, LaneTable, NodeId, PerKey, PerNode};
use crate::interfaces::known_scripts::LoadedScripts;
use crate::lifecycle::loop_lag::LoopLag;
use crate::limits::CLASSES_MAX;
use crate::nodes::entry::Entry;
use crate::nodes::kinds::NodeMismatch;
use crate::nodes::multi::Multi;
use crate::observe::histogram::Histogram;
use crate::pool::dial_turns::DialQueue;
use crate::pool::key_id::{KeyOwner, LaneGrid, LaneKey, LaneKeyUse, ScriptClasses};
use crate::pool::lease::Lease;
use crate::reply::observers::ReplyObservers;
use crate::reply::owner::Owner;
use crate::request::streamed_request::StreamedRequest;
use crate::session::selecting::Selecting;
use crate::workers::shared::Shared;
use respool_connection::echo_check::EchoCheck;
use respool_connection::flush::Held;
use respool_connection::node_health::NodeHealth;
use respool_connection::{BufferPool, Credentials, DialFailure, Endpoint, Fault, FlushPolicy, Identity, Now, Upstream};
use respool_wire::Protocol;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// What a worker knows of one node.
#[derive(Debug)]
pub(crate) struct Node {
    /// The name in messages.
    pub(crate) name: String,
    /// Health as observed by this worker.
    pub(crate) health: NodeHealth<LaneKey>,
    /// Its configuration.
    pub(crate) told: NodeConfig,
    /// An operator holds requests to it back.
    pub(crate) is_paused: bool,
    /// An operator has drained it.
    pub(crate) is_drained: bool,
    /// Round trips, once one was measured.
    pub(crate) latency: Option<Arc<Histogram>>,
    /// Removed from the configuration; kept until its lanes have drained.
    pub(crate) is_removed: bool,
    /// Whether it has accepted the configured credentials and address.
    pub(crate) entry: Entry,
    /// Since when its name has resolved without the address of connections to it, while none is ready at another.
    pub(crate) leads_away_us: Option<u64>,
    /// When its name was last found to resolve to another address: dials that began before may lead to the former one.
    pub(crate) renamed_us: u64,
    /// The address of the last connection, if a host name had to be resolved.
    pub(crate) address: String,
    /// It closes connections on which it is identified (HELLO, INFO).
    pub(crate) shuns_questions: bool,
    /// The misfit that this worker saw last, with the count of changes at that time.
    pub(crate) misfit_seen: Option<(NodeMismatch, u64)>,
}

impl Node {
    /// A node that nothing is known of but what is configured.
    pub(crate) fn new(told: &NodeConfig) -> Self {
        Self {
            name: told.name.clone(),
            health: NodeHealth::default(),
            told: told.clone(),
            is_paused: false,
            is_drained: false,
            is_removed: false,
            latency: None,
            entry: Entry::default(),
            leads_away_us: None,
            renamed_us: 0,
            address: String::new(),
            shuns_questions: false,
            misfit_seen: None,
        }
    }

    /// Where its round trips are counted.
    #[inline]
    pub(crate) fn latency_of(&mut self, shared: &Shared) -> &Histogram {
        self.latency.get_or_insert_with(|| shared.histogram("node", &self.name))
    }

    /// Failing, suspect or drained: failover applies, where the settings provide for it.
    pub(crate) fn is_unhealthy(&self) -> bool {
        self.is_drained || self.health.is_in_doubt()
    }
}

/// What a lane is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneUse {
    /// Requests of all clients.
    Shared,
    /// One client's at a time, see [`crate::pool::lending`].
    Private,
    /// One client's for all of its requests to a node, see [`crate::pool::session_mode`].
    Own,
    /// Requests that may wait on the node.
    Blocking,
    /// Subscriptions, and what the node tells of them.
    Push,
    /// To take the place of a push lane as soon as it is ready.
    PushSuccessor,
    /// What the node tells one client of changed keys, see [`crate::tracking::noloop`].
    Listen,
    /// One client's for good, see `dedicated`.
    Dedicated,
    /// To take the place of a shared one as soon as it is ready, see [`crate::pool::replace`].
    Successor,
    /// To answer what it owes and then end.
    Leaving,
}

/// One connection to a node.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) up: Upstream<Owner, respool_connection::Copied>,
    pub(crate) purpose: LaneUse,
    /// Generation of its place, for handles.
    pub(crate) generation: u32,
    /// It has ended for good; its place is free, or will be once the loop has closed its connection.
    pub(crate) is_retired: bool,
    /// The loop has been told to close its connection and has not done so yet: nothing more is heard of it.
    pub(crate) is_closing: bool,
    /// It is to be replaced, or not to be kept.
    pub(crate) is_stale: bool,
    /// A successor is not tried before then.
    pub(crate) renew_at_us: u64,
    /// Generation among the lanes of its key and node; orders a successor after its predecessors.
    pub(crate) turn: u64,
    /// One before it is still owed replies: nothing leaves on it until then.
    pub(crate) is_behind: bool,
    pub(crate) node: NodeId,
    pub(crate) class: LaneKeyId,
    /// It is in the list of those to be written.
    pub(crate) is_listed: bool,
    /// The lease of the client that uses it alone, if one does.
    pub(crate) lease: Lease,
    /// When a read last took as much as one may: more has come.
    pub(crate) filled_us: u64,
    /// Readable, and left unread for now, see [`crate::lifecycle::node_reads`].
    pub(crate) is_left: bool,
    /// It is one client's, and a blocking request of that client is outstanding on it.
    pub(crate) is_waiting: bool,
    /// The node's number for it, if it was asked.
    pub(crate) number: Option<i64>,
    /// What waits to be written is held for clients that are about to send more.
    pub(crate) is_for_clients: bool,
    /// The last write was cut short; the loop says when there is room.
    pub(crate) is_blocked: bool,
    /// Requests wait for its turn to be dialled, see [`crate::pool::dial_queue`].
    pub(crate) wants_dial: bool,
    /// Since when they do.
    pub(crate) waits_since_us: u64,
    /// It is being dialled, or shakes hands.
    pub(crate) is_dialled: bool,
    /// When the dial in progress began.
    pub(crate) dial_began_us: u64,
    /// When it became ready; 0 if it is not.
    pub(crate) ready_us: u64,
    /// Where it was dialled to last.
    pub(crate) endpoint: Option<Arc<Endpoint>>,
    /// The address that it is connected to, if it is known.
    pub(crate) at: Option<Box<str>>,
    /// The name of its node no longer resolves to that address, see `nodes::address_change`.
    pub(crate) is_elsewhere: bool,
    /// Set while every reply arrives past its deadline: since when.
    pub(crate) late_since_us: Option<u64>,
    /// When the PING was sent that has not been answered; 0 if none is out.
    pub(crate) probed_us: u64,
    /// When its node last answered BUSY; 0: never.
    pub(crate) busy_us: u64,
    /// Clients whose `SELECT` waits for the lane's handshake.
    pub(crate) selects: Vec<Selecting>,
    /// Clients that are not read until less waits for the node.
    pub(crate) throttled: Vec<ClientId>,
    /// Bytes of the beginning of a reply that are in the account of the process.
    pub(crate) accounted: usize,
    /// Bytes of what waits to be written that are.
    pub(crate) queue_accounted: usize,
    /// Whether its node takes MULTI on it.
    pub(crate) multi: Multi,
    /// The scripts that its node has been given over it for transactions.
    pub(crate) given: LoadedScripts,
    /// A request is being passed on over it that has not come as a whole.
    pub(crate) sending: Option<Box<StreamedRequest>>,
    /// What is known of its replies beyond their tickets, if anything is.
    pub(crate) beside: Option<Box<ReplyObservers>>,
}

impl Lane {
    /// What was written then or before has not been answered in time; `None`: all was.
    pub(crate) fn due_us(&self, lag: &LoopLag, now_us: u64, response_us: u64) -> Option<u64> {
        let due_us = lag.due_us(now_us, response_us)?;
        // Replies that came during a stall are read in several turns, for which they have as much time again. A reply that is
        // large keeps others waiting as ever.
        let is_catching_up = self.filled_us == now_us && self.up.streamed_bytes() == 0 && lag.was_late_since(due_us);
        if is_catching_up { due_us.checked_sub(response_us) } else { Some(due_us) }
    }

    /// Since when its node owes a reply and has said nothing.
    pub(crate) fn silent_since_us(&self) -> Option<u64> {
        self.up.tickets().oldest_us().map(|since_us| since_us.max(self.up.last_heard_us()))
    }

    /// Whether nothing is queued on it and no reply is owed.
    pub(crate) fn is_settled(&self) -> bool {
        self.up.queued_bytes() == 0 && self.up.tickets().is_empty()
    }

    /// Requests that have no reply, whether they have been written or wait for that, with those that have timed out.
    pub(crate) fn unanswered(&self) -> usize {
        self.up.tickets().len()
    }

    /// Whether a request waits here that has not been given up.
    pub(crate) fn is_owed(&self) -> bool {
        self.up.queued_bytes() > 0 || self.up.tickets().oldest_live_us().is_some()
    }

    /// Whether it is connected to a former address of its node. A push lane is dialled again in its place and stays the node's.
    pub(crate) fn leads_away(&self) -> bool {
        self.is_elsewhere && self.purpose != LaneUse::Push
    }

    /// Whether a request can be appended to what waits here, of which there is no more than `queue_max`, and nothing else is
    /// to be done.
    #[inline(always)]
    pub(crate) fn is_plain(&self, queue_max: usize) -> bool {
        self.up.is_ready() && self.beside.is_none() && self.up.queued_bytes() <= queue_max
    }
}

/// All lanes of one worker.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) all: LaneTable<Lane>,
    pub(crate) nodes: PerNode<Node>,
    classes: PerKey<LaneKey>,
    /// The owner of each class.
    pub(crate) owners: PerKey<KeyOwner>,
    /// What features have been given by [`Lanes::use_class`].
    uses: PerKey<Arc<()>>,
    /// Those of them that are for scripts, by the class beside which they are.
    pub(crate) script_classes: ScriptClasses,
    /// Credentials of users that nodes know by their own names.
    node_users: Vec<Arc<Credentials>>,
    /// The lane of each class and node.
    pub(crate) table: LaneGrid,
    /// Lanes with something to write, each once.
    pub(crate) listed: Vec<LaneId>,
    /// Lanes whose bytes are held.
    pub(crate) unflushed: Vec<LaneId>,
    /// What they wait for, as was decided in this turn.
    pub(crate) held: Held,
    /// Lanes that are to be dialled, and those that are.
    pub(crate) dialling: DialQueue,
    /// Some lane is behind another.
    pub(crate) has_behind: bool,
    /// A lane that others wait behind may have drained.
    pub(crate) may_go_on: bool,
    pub(crate) turns: u64,
    /// Shared lanes: the only ones whose replies are waited for before clients are looked at.
    pub(crate) shared: Vec<LaneId>,
    /// Clients' own lanes to nodes that have gone, as far as they still owe something.
    pub(crate) left: Vec<LaneId>,
    /// Private lanes that are clean and free.
    pub(crate) warm: Vec<LaneId>,
    /// For each class, since when no client has been in it; 0 if one is.
    pub(crate) unused_since_us: PerKey<u64>,
    /// Places of lanes that have ended.
    free: Vec<LaneId>,
    /// Nodes are identified (HELLO, INFO) on the shared connections of the first class.
    pub(crate) asks: bool,
    entropy: u64,
}

impl Lanes {
    /// Lanes for the nodes of `config`. `entropy` seeds the jitter of reconnects.
    pub(crate) fn new(config: &Config, entropy: u64) -> Self {
        let plain = LaneKey { database: 0, protocol: Protocol::Resp2, node_user: 0 };
        Self {
            nodes: PerNode::new(config.nodes.iter().map(Node::new)),
            classes: PerKey::new([plain]),
            owners: PerKey::new([KeyOwner::Shared]),
            uses: PerKey::new([Arc::default()]),
            table: LaneGrid::new(1, config.nodes.len()),
            entropy: entropy | 1,
            ..Self::default()
        }
    }

    /// The number of the class with this state. `None`: the worker has as many as it may.
    pub(crate) fn class(&mut self, class: LaneKey) -> Option<LaneKeyId> {
        let is_known = |(c, owner): (&LaneKey, &KeyOwner)| *c == class && matches!(owner, KeyOwner::Shared);
        if let Some(known) = self.classes.ids().find(|known| is_known((&self.classes[*known], &self.owners[*known]))) {
            return Some(known);
        }
        let count = self.owners.iter().filter(|owner| matches!(owner, KeyOwner::Shared)).count();
        if count >= CLASSES_MAX {
            return None;
        }
        self.put_class(class, KeyOwner::Shared)
    }

    /// The configured node of a node's name: the node itself, or the one in the place of one that has gone.
    pub(crate) fn namesake_of(&self, node: NodeId) -> Option<NodeId> {
        let this = &self.nodes[node];
        if !this.is_removed {
            return Some(node);
        }
        self.nodes.position(|other| !other.is_removed && other.name == this.name)
    }

    /// For what waits in a class without a client that is in it.
    pub(crate) fn use_class(&self, class: LaneKeyId) -> LaneKeyUse {
        LaneKeyUse::new(class, &self.uses[class])
    }

    /// Takes a number for a class.
    pub(crate) fn put_class(&mut self, class: LaneKey, owner: KeyOwner) -> Option<LaneKeyId> {
        if let Some(free) = self.owners.position(|owner| matches!(owner, KeyOwner::Free)) {
            self.classes[free] = class;
            self.owners[free] = owner;
            self.uses[free] = Arc::default();
            return Some(free);
        }
        if self.classes.len() == LaneKeyId::COUNT_MAX {
            return None;
        }
        let number = self.classes.push(class);
        self.owners.push(owner);
        self.uses.push(Arc::default());
        self.table.resize(self.classes.len());
        Some(number)
    }

    /// What the users of a class share.
    pub(crate) fn state_of(&self, class: LaneKeyId) -> LaneKey {
        self.classes[class]
    }

    /// Changes the key of a lane class in place.
    pub(crate) fn set_state_of(&mut self, class: LaneKeyId, state: LaneKey) {
        self.classes[class] = state;
    }

    /// The number of the node user of this name. `None`: there are as many as there may be.
    pub(crate) fn node_user(&mut self, credentials: Option<&Arc<Credentials>>) -> Option<u16> {
        let Some(credentials) = credentials else { return Some(0) };
        let known = self.node_users.iter().position(|known| known == credentials);
        let place = match known {
            Some(known) => known,
            None if self.node_users.len() < CLASSES_MAX => {
                self.node_users.push(Arc::clone(credentials));
                self.node_users.len() - 1
            }
            // No class has this node user any more.
            None => {
                let free = (0..self.node_users.len()).find(|place| !self.is_node_user_used(*place as u16 + 1))?;
                self.node_users[free] = Arc::clone(credentials);
                self.nodes.iter_mut().for_each(|node| node.health.forget_keys(|key| key.node_user == free as u16 + 1));
                free
            }
        };
        Some(place as u16 + 1)
    }

    /// Whether some class has this node user.
    fn is_node_user_used(&self, node_user: u16) -> bool {
        let classes = self.classes.iter().zip(self.owners.iter());
        classes.filter(|(_, owner)| !matches!(owner, KeyOwner::Free)).any(|(class, _)| class.node_user == node_user)
    }

    /// The node user of a class.
    pub(crate) fn node_user_of(&self, class: LaneKeyId) -> u16 {
        self.classes[class].node_user
    }

    /// How many connections clients have to themselves.
    pub(crate) fn lent(&self) -> usize {
        let is_lent = |(place, lane): &(LaneId, &Lane)| {
            !lane.is_retired
                && match lane.purpose {
                    LaneUse::Private => !self.warm.contains(place),
                    LaneUse::Own | LaneUse::Listen | LaneUse::Dedicated => true,
                    LaneUse::Shared | LaneUse::Blocking | LaneUse::Push | LaneUse::PushSuccessor => false,
                    LaneUse::Successor | LaneUse::Leaving => false,
                }
        };
        self.all.entries().filter(is_lent).count()
    }

    /// Whether a lane is shared by all clients, or the successor of such a lane.
    pub(crate) fn is_for_all(&self, lane: LaneId) -> bool {
        matches!(self.all[lane].purpose, LaneUse::Shared | LaneUse::Successor)
    }

    /// How many classes there are.
    pub(crate) fn classes_len(&self) -> usize {
        self.classes.len()
    }

    /// The one of two lanes that has more in its queue.
    pub(crate) fn fuller(&self, one: Option<LaneId>, other: LaneId) -> LaneId {
        let queued = |lane: LaneId| self.all[lane].up.queued_bytes();
        one.filter(|one| queued(*one) >= queued(other)).unwrap_or(other)
    }

    /// The database that a lane has selected.
    pub(crate) fn class_database(&self, lane: LaneId) -> u32 {
        self.classes[self.all[lane].class].database
    }

    /// The lane of a node and class; made if there is none.
    #[inline]
    pub(crate) fn lane(&mut self, config: &Config, node: NodeId, class: LaneKeyId) -> LaneId {
        match self.table.get(node, class) {
            Some(lane) => lane,
            None => self.make(config, node, class),
        }
    }

    /// The lane of a node and class, if there is one.
    #[inline(always)]
    pub(crate) fn known(&self, node: NodeId, class: LaneKeyId) -> Option<LaneId> {
        self.table.get(node, class)
    }

    #[cold]
    fn make(&mut self, config: &Config, node: NodeId, class: LaneKeyId) -> LaneId {
        if let KeyOwner::Client(owner) = &self.owners[class] {
            return match owner.has(node) {
                true => self.make_own(config, node, class),
                false => self.lane(config, node, self.sharing(class)),
            };
        }
        let made = self.build(config, node, class, LaneUse::Shared);
        let lane = self.all.push(made);
        self.shared.push(lane);
        self.table.put(node, class, Some(lane));
        self.wait_for_predecessors(lane);
        lane
    }

    fn build(&self, config: &Config, node: NodeId, class: LaneKeyId, purpose: LaneUse) -> Lane {
        let LaneKey { database, protocol, node_user } = self.classes[class];
        let own = usize::from(node_user).checked_sub(1).and_then(|place| self.node_users.get(place));
        let credentials = own.or(self.nodes[node].told.credentials.as_ref()).cloned();
        let is_shared = matches!(purpose, LaneUse::Shared | LaneUse::Successor);
        let policy = if is_shared { config.flush } else { FlushPolicy::EachTurn };
        let proof = EchoCheck::new(config.integrity, self.entropy_of(self.all.next_id()));
        let told = &self.nodes[node];
        let is_elsewhere = !matches!(*told.told.endpoint, Endpoint::Embedded { .. });
        let is_asked = self.asks && class == LaneKeyId::PLAIN && is_shared && is_elsewhere && !told.shuns_questions;
        let identity = Identity { database, protocol, credentials, is_asked, ..Identity::default() };
        let mut up = Upstream::new(identity, policy);
        if config.seeing.is_anything_seen() {
            up.keep_records();
        }
        Lane {
            up,
            purpose,
            generation: 0,
            is_retired: false,
            is_closing: false,
            is_stale: false,
            renew_at_us: 0,
            turn: 0,
            is_behind: false,
            node,
            class,
            is_listed: false,
            lease: Lease::default(),
            filled_us: 0,
            is_waiting: false,
            number: None,
            is_for_clients: false,
            is_blocked: false,
            is_left: false,
            wants_dial: false,
            waits_since_us: 0,
            is_dialled: false,
            dial_began_us: 0,
            ready_us: 0,
            endpoint: None,
            at: None,
            is_elsewhere: false,
            late_since_us: None,
            probed_us: 0,
            busy_us: 0,
            selects: Vec::new(),
            throttled: Vec::new(),
            accounted: 0,
            queue_accounted: 0,
            multi: Multi::default(),
            given: LoadedScripts::default(),
            sending: None,
            beside: if is_shared { ReplyObservers::proving(proof) } else { None },
        }
    }

    /// Random seed for what belongs to no lane.
    pub(crate) fn entropy_of_all(&self) -> u64 {
        0x9e37_79b9_7f4a_7c15 ^ self.entropy
    }

    /// Random seed for the lane at a place.
    pub(crate) fn entropy_of(&self, place: LaneId) -> u64 {
        (u64::from(place.number()) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.entropy
    }

    /// Makes a lane that is not in the table of classes. It is not dialled yet.
    pub(crate) fn add_unshared(&mut self, config: &Config, node: NodeId, class: LaneKeyId, purpose: LaneUse) -> LaneId {
        let made = self.build(config, node, class, purpose);
        let Some(place) = self.free.pop() else {
            return self.all.push(made);
        };
        let before = &self.all[place];
        // It may still be in the list of those to be written; that is looked at there.
        let (generation, is_listed) = (before.generation, before.is_listed);
        self.all[place] = Lane { generation, is_listed, ..made };
        place
    }

    /// The handle of the lane at a place.
    pub(crate) fn handle(&self, lane: LaneId) -> LaneHandle {
        Handle { index: lane, generation: self.all[lane].generation }
    }

    /// The place of a lane, unless it has ended for good.
    pub(crate) fn find(&self, lane: LaneHandle) -> Option<LaneId> {
        let this = self.all.get(lane.index)?;
        (this.generation == lane.generation && !this.is_retired).then_some(lane.index)
    }

    /// A lane outside the table of classes has ended for good: its handles are void.
    pub(crate) fn retire(&mut self, lane: LaneId) {
        let this = &mut self.all[lane];
        debug_assert!(this.purpose != LaneUse::Shared && !this.is_retired, "it ends once");
        this.is_retired = true;
        this.wants_dial = false;
        this.lease.count_no_more();
        if this.purpose == LaneUse::Own {
            self.table.take_out(this.node, this.class, lane);
        }
        this.generation = this.generation.wrapping_add(1);
        self.warm.retain(|warm| *warm != lane);
    }

    /// Gives the place of a lane free that the loop knows nothing of, or nothing any more.
    pub(crate) fn release(&mut self, lane: LaneId) {
        if !self.all[lane].is_retired {
            self.retire(lane);
        }
        debug_assert!(!self.free.contains(&(lane)), "a place is given free once");
        self.free.push(lane);
    }

    /// The loop has closed a lane's connection.
    pub(crate) fn note_closed(&mut self, lane: LaneId) {
        let Some(this) = self.all.get_mut(lane) else { return };
        this.is_closing = false;
        if this.is_retired {
            self.release(lane);
        }
    }

    /// Queues one request for a lane. `Err` is what its client is told instead.
    #[inline]
    pub(crate) fn send(
        &mut self,
        lane: LaneId,
        owner: Owner,
        config: &Config,
        now: Now,
        pool: &mut BufferPool,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ErrorReply> {
        self.admit(lane, config, now)?;
        self.push(lane, owner, now, pool, write);
        Ok(())
    }

    /// Whether a lane takes requests. `Err` is what the client is told instead.
    #[inline]
    pub(crate) fn admit(&mut self, lane: LaneId, config: &Config, now: Now) -> Result<(), ErrorReply> {
        let this = &self.all[lane];
        if !this.up.is_ready() || this.up.queued_bytes() > config.budgets.upstream_queue {
            self.prepare(lane, config, now)?;
        }
        Ok(())
    }

    /// Queues one request for a lane that takes requests. What is queued together is written together.
    #[inline]
    pub(crate) fn push(
        &mut self,
        lane: LaneId,
        owner: Owner,
        now: Now,
        pool: &mut BufferPool,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let this = &mut self.all[lane];
        let queued = this.up.queued_bytes();
        this.up.send(owner, now.mono_us, pool, write);
        let has_beside = this.beside.is_some();
        if !this.is_listed {
            this.is_listed = true;
            self.listed.push(lane);
        }
        if has_beside {
            self.note_beside(lane, queued, now, pool);
        }
    }

    /// The next random number.
    pub(crate) fn next_chance(&mut self) -> u64 {
        self.entropy ^= self.entropy << 13;
        self.entropy ^= self.entropy >> 7;
        self.entropy ^= self.entropy << 17;
        self.entropy
    }

    /// Shared connections write by another policy from now on.
    pub(crate) fn set_flush_policy(&mut self, policy: FlushPolicy) {
        let is_shared = |lane: &&mut Lane| matches!(lane.purpose, LaneUse::Shared | LaneUse::Successor);
        self.all.iter_mut().filter(is_shared).for_each(|lane| lane.up.set_policy(policy));
    }

    /// The turn ends: puts the lanes with output into the order in which they are written. Returns how many there are.
    pub(crate) fn begin_writing(&mut self) -> usize {
        if self.may_go_on {
            self.let_go_on();
        }
        // Taken from its end: what was asked first on several connections to a node is written first, behind what nodes
        // are told of subscriptions.
        if self.listed.len() > 1 {
            self.listed.reverse();
        }
        // Held bytes are looked at again: their replies may have come in this turn, or their time.
        self.list_unflushed();
        self.listed.len()
    }

    /// What was held back is looked at again.
    pub(crate) fn list_unflushed(&mut self) {
        while let Some(lane) = self.unflushed.pop() {
            self.list(lane);
        }
    }

    /// Lanes are written from the list's end. Those that have come into it since it had `before` are written behind the others, and
    /// in the order in which they came: of two requests that wait, the first is to reach the node first.
    pub(crate) fn write_last(&mut self, before: usize) {
        if let Some(new) = self.listed.get_mut(before..) {
            new.reverse();
            let new = new.len();
            self.listed.rotate_right(new);
        }
    }

    /// Has the lanes listed since the list had `before` written before the others, in the order in which they were listed.
    #[inline]
    pub(crate) fn write_first(&mut self, before: usize) {
        if self.listed.len() > before + 1 {
            self.listed[before..].reverse();
        }
    }

    /// Has a lane looked at when this turn's outboxes are written.
    #[inline]
    pub(crate) fn list(&mut self, lane: LaneId) {
        let this = &mut self.all[lane];
        if !this.is_listed {
            this.is_listed = true;
            self.listed.push(lane);
        }
    }
}

impl Index<LaneId> for Lanes {
    type Output = Lane;

    #[inline(always)]
    fn index(&self, lane: LaneId) -> &Lane {
        &self.all[lane]
    }
}

impl IndexMut<LaneId> for Lanes {
    #[inline(always)]
    fn index_mut(&mut self, lane: LaneId) -> &mut Lane {
        &mut self.all[lane]
    }
}

/// Why a lane is not dialled, as others have found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DialRefusal {
    pub(crate) why: String,
    /// The node's own words, if it refused this database or user.
    pub(crate) words: Option<String>,
}

/// Why a lane ended, as its clients are told.
#[derive(Debug)]
pub(crate) enum LaneEnd {
    /// The dial failed.
    Dial(DialFailure),
    /// It was not dialled: its turn did not come in time.
    NotDialled,
    /// It was not dialled: what happened to others is enough to know that there is no hope.
    DialRefusal(DialRefusal),
    /// The node refused the handshake, or sent what it must not.
    Fault(Fault),
    /// The connection broke, with the kernel's words if there were any.
    Lost(Option<String>),
    /// It owed replies and said nothing for too long.
    Silent,
    /// All its replies have come too late for too long: it may have left one out.
    Late,
    /// It is not needed any more, or cannot be trusted any more.
    GivenUp,
}

impl std::fmt::Display for LaneEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dial(DialFailure::Unresolvable(why)) => write!(f, "could not be resolved ({why})"),
            Self::Dial(DialFailure::Refused(why)) => write!(f, "could not be reached ({why})"),
            Self::Dial(DialFailure::TimedOut) => f.write_str("could not be reached in time"),
            Self::Dial(DialFailure::NoDescriptor) => {
                f.write_str("could not be connected to: this process may have no more files open")
            }
            Self::NotDialled => f.write_str("could not be dialled in time, because other connections were before it"),
            Self::DialRefusal(DialRefusal { why, .. }) => f.write_str(why),
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::Lost(Some(why)) => write!(f, "broke the connection ({why})"),
            Self::Lost(None) => f.write_str("closed the connection"),
            Self::Silent => f.write_str("has been silent for too long"),
            Self::GivenUp => f.write_str("was not asked any further"),
            Self::Late => f.write_str("has been late with its replies for too long"),
        }
    }
}
