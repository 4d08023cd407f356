//! Lanes that are replaced while requests flow: because an operator says so, or because other nodes are configured.
//!
//! ```text
//!   [shared] --- to be renewed, and ready ---> a successor is dialled; [shared] goes on
//!       successor ready:  [shared] -> [leaving]     the successor takes its place in the table
//!       successor failed: [shared] goes on, another successor is tried later
//!   [shared] --- its node has gone or is elsewhere, or it is not ready ---> [leaving]
//!   [leaving] --- nothing is queued or owed any more ---> closed
//! ```
//!
//! What was queued on a lane leaves on it and is answered on it; only what comes afterwards takes another way, and waits
//! until all of that is answered. Otherwise a GET could overtake the SET that the same client has sent before it.
//!
//! A node in the table is one server as the settings describe it: its name and its address. If the address changes, the
//! node has gone, and another of the same name stands in its place (its credentials may change, see
//! [`crate::nodes::rollover`]). So a lane
//! belongs to one server for its whole life, and every lane to a node that has gone is stale at once: the settings do not
//! name that server any more, and no request that is read after the reload may reach it. Each feature that holds a lane or
//! a node is told by a walk over what it holds.

use crate::config::{Config, NodeConfig};
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientHandle, LaneId, LaneKeyId, NodeId, PerKey, PerNode};
use crate::limits::{LANE_UNUSED_US, RENEW_US};
use crate::nodes::moves::Moves;
use crate::pool::key_id::LaneGrid;
use crate::pool::{Lane, LaneUse, Lanes, Node};
use respool_command::Execute;
use respool_connection::{Now, Phase};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Lanes {
    /// Takes a shared lane out of the table: it answers what it owes and is then closed.
    pub(crate) fn leave(&mut self, lane: LaneId) {
        let this = &mut self.all[lane];
        this.purpose = LaneUse::Leaving;
        this.is_stale = false;
        self.table.take_out(this.node, this.class, lane);
        self.shared.retain(|shared| *shared != lane);
    }

    /// A lane in place of a shared one is ready: it takes over.
    pub(crate) fn succeed(&mut self, lane: LaneId) {
        let (node, class) = (self.all[lane].node, self.all[lane].class);
        if let Some(before) = self.table.get(node, class) {
            self.leave(before);
        }
        self.all[lane].purpose = LaneUse::Shared;
        self.shared.push(lane);
        self.table.put(node, class, Some(lane));
        self.wait_for_predecessors(lane);
    }

    /// Holds a new lane of the table back until its predecessors have drained.
    pub(crate) fn wait_for_predecessors(&mut self, lane: LaneId) {
        self.turns += 1;
        self.all[lane].turn = self.turns;
        let is_behind = self.all.iter().any(|other| self.is_ahead(other, &self.all[lane]));
        self.all[lane].is_behind = is_behind;
        self.has_behind |= is_behind;
    }

    /// Whether the requests of `other` come before those of `lane`.
    fn is_ahead(&self, other: &Lane, lane: &Lane) -> bool {
        let (before, this) = (&self.nodes[other.node], &self.nodes[lane.node]);
        // A removed node may be the same server by another name, or by another address.
        let is_at_same = other.node == lane.node || before.is_removed && before.told.endpoint == this.told.endpoint;
        let is_called_same = before.is_removed && before.name == this.name;
        other.purpose == LaneUse::Leaving
            && other.class == lane.class
            // Another client may have had the class to itself before.
            && other.lease.reader() == lane.lease.reader()
            && other.turn < lane.turn
            && !other.is_retired
            // A server that was left because it does not answer holds others up until its requests have been given up.
            && (is_at_same && !other.is_settled() || is_called_same && other.is_owed())
    }

    /// Lets lanes go on whose predecessors have drained. Each lane is compared only with those that it can be behind, since
    /// there may be very many. Returns the number of comparisons.
    #[cold]
    pub(crate) fn let_go_on(&mut self) -> usize {
        (self.has_behind, self.may_go_on) = (false, false);
        let mut ahead: BTreeMap<(LaneKeyId, Option<ClientHandle>, Option<NodeId>), Vec<LaneId>> = BTreeMap::new();
        for (place, lane) in self.all.entries() {
            if lane.purpose == LaneUse::Leaving && !lane.is_retired {
                // A lane may be behind those of a removed node of another number.
                let node = (!self.nodes[lane.node].is_removed).then_some(lane.node);
                ahead.entry((lane.class, lane.lease.reader(), node)).or_default().push(place);
            }
        }
        let mut compared = 0;
        for lane in self.all.ids() {
            let this = &self.all[lane];
            if !this.is_behind {
                continue;
            }
            let groups = [Some(this.node), None].map(|node| ahead.get(&(this.class, this.lease.reader(), node)));
            let is_behind = groups.into_iter().flatten().flatten().any(|other| {
                compared += 1;
                self.is_ahead(&self.all[*other], this)
            });
            if is_behind {
                self.has_behind = true;
            } else {
                self.all[lane].is_behind = false;
                self.list(lane);
            }
        }
        compared
    }

    /// Marks the shared lanes of a node to be replaced. Those that are not connected have nothing to lose: they go at once.
    pub(crate) fn renew(&mut self, node: NodeId) -> usize {
        let lanes: Vec<LaneId> = self.shared_of(node).collect();
        for lane in &lanes {
            if self.all[*lane].up.is_ready() {
                self.all[*lane].is_stale = true;
            } else {
                self.leave(*lane);
            }
        }
        self.mark_exclusive_stale(node);
        self.let_warm_go(node);
        lanes.len()
    }

    /// Has the lanes of a node that requests share or one client has leave, so that it is sent nothing more.
    pub(crate) fn leave_node(&mut self, node: NodeId) -> usize {
        let lanes: Vec<LaneId> = self.shared_of(node).collect();
        lanes.iter().for_each(|lane| self.leave(*lane));
        let is_successor =
            |lane: &&mut Lane| matches!(lane.purpose, LaneUse::Successor | LaneUse::PushSuccessor) && lane.node == node;
        self.all.iter_mut().filter(is_successor).for_each(|lane| lane.purpose = LaneUse::Leaving);
        self.leave_own_lanes_to(node);
        self.mark_exclusive_stale(node);
        self.let_warm_go(node);
        lanes.len()
    }

    /// Lanes of a node that clients have to themselves are not kept for others once they are given back.
    fn mark_exclusive_stale(&mut self, node: NodeId) {
        let is_exclusive = |lane: &Lane| matches!(lane.purpose, LaneUse::Private | LaneUse::Own | LaneUse::Blocking);
        self.all
            .iter_mut()
            .filter(|lane| lane.node == node && is_exclusive(lane))
            .for_each(|lane| lane.is_stale = true);
    }

    fn shared_of(&self, node: NodeId) -> impl Iterator<Item = LaneId> + '_ {
        self.shared.iter().copied().filter(move |lane| self.all[*lane].node == node)
    }

    /// Free private lanes of a node are of no use any more.
    fn let_warm_go(&mut self, node: NodeId) {
        let is_its = |lane: &LaneId| self.all[*lane].node == node;
        let gone: Vec<LaneId> = self.warm.iter().copied().filter(is_its).collect();
        self.warm.retain(|lane| !gone.contains(lane));
        for lane in gone {
            self.all[lane].purpose = LaneUse::Leaving;
        }
    }

    /// Takes over other nodes. They are told apart by their names. One with the same address keeps its state. One with
    /// another address is a new node of that name; the former one has gone. A node that has gone stays behind the others
    /// until nothing is owed by it: its lanes take nothing more. If the name of a node resolves to another address (`left`),
    /// this holds for those of its lanes that are connected to the former one.
    pub(crate) fn take_nodes(
        &mut self,
        config: &Config,
        left: Option<NodeId>,
        is_waited_at: impl Fn(NodeId) -> bool,
    ) -> Moves {
        let mut before = std::mem::take(&mut self.nodes);
        let leaves = |lane: &Lane| left != Some(lane.node) || lane.leads_away();
        let has_lanes =
            |node: NodeId| self.all.iter().any(|lane| lane.node == node && !lane.is_retired && leaves(lane));
        let in_use = |node: NodeId| has_lanes(node) || is_waited_at(node);
        let mut nodes: PerNode<Node> = PerNode::default();
        let gone = || PerNode::new(before.iter().map(|_| NodeId::NONE));
        let count = config.nodes.len();
        let (place, named) = (gone(), gone());
        let mut moves = Moves { place, named, entered_anew: Vec::new(), left, lanes: BTreeMap::new(), count };
        for (place, told) in config.node_ids().zip(&config.nodes) {
            let known = |fits: &dyn Fn(&NodeConfig) -> bool| {
                let is_known = |(known, node): &(NodeId, &Node)| {
                    !node.is_removed
                        && moves.named[*known] == NodeId::NONE
                        && node.name == told.name
                        && fits(&node.told)
                };
                before.entries().find(is_known).map(|(known, _)| known)
            };
            // Names need not be unique under every placement.
            let same = known(&|other| is_same(other, told)).or_else(|| known(&|other| other.endpoint == told.endpoint));
            let known = same.or_else(|| known(&|_| true));
            let mut node = Node::new(told);
            if let Some(known) = known {
                moves.named[known] = place;
                let this = &mut before[known];
                match same.is_some() {
                    true => {
                        if left != Some(known) {
                            moves.place[known] = place;
                        }
                        node = std::mem::replace(this, Node::new(told));
                        if node.told.credentials != told.credentials {
                            node.entry.keep_former(node.told.credentials.as_ref());
                            moves.entered_anew.push(place);
                        }
                        node.told = told.clone();
                    }
                    false => node.latency = this.latency.clone(),
                }
            }
            nodes.push(node);
        }
        for (place, mut node) in before.into_entries() {
            if moves.place[place] != NodeId::NONE || !in_use(place) {
                continue;
            }
            node.is_removed = true;
            node.is_paused = false;
            node.leads_away_us = None;
            moves.place[place] = nodes.push(node);
        }
        self.nodes = nodes;
        if let Some(left) = left {
            self.part(left, &mut moves);
        }
        self.place_anew(&moves);
        for node in self.nodes.ids().filter(|node| !config.has_node(*node)) {
            self.leave_node(node);
        }
        moves
    }

    /// Gives each lane of a node whose name resolves to another address its node. Each former address becomes a node that has
    /// gone, and is dialled by that address: what is still to be sent there must not reach the server that has the name now.
    fn part(&mut self, left: NodeId, moves: &mut Moves) {
        let mut gone: Vec<(Option<Box<str>>, NodeId)> = Vec::new();
        for place in self.all.ids() {
            let lane = &self.all[place];
            if lane.is_retired || lane.node != left {
                continue;
            }
            let handle = self.handle(place);
            if !lane.leads_away() {
                moves.lanes.insert(handle, moves.named[left]);
                continue;
            }
            let at = lane.at.clone();
            let known = gone.iter().find(|(known, _)| *known == at).map(|(_, node)| *node);
            let node = known.unwrap_or_else(|| {
                let known = Some(moves.place[left]).filter(|_| gone.is_empty());
                let node = known.unwrap_or_else(|| {
                    let namesake = Node { is_removed: true, ..Node::new(&self.nodes[moves.named[left]].told) };
                    self.nodes.push(namesake)
                });
                if let Some(at) = &at {
                    let told = &mut self.nodes[node].told;
                    told.endpoint = Arc::new(told.endpoint.at(at));
                }
                gone.push((at, node));
                node
            });
            moves.lanes.insert(handle, node);
            let lane = &mut self.all[place];
            lane.endpoint = Some(Arc::clone(&self.nodes[node].told.endpoint));
            if std::mem::take(&mut lane.is_dialled) {
                self.dialling.leave_in_flight(left);
            }
        }
    }

    /// The table for other places of nodes.
    fn place_anew(&mut self, moves: &Moves) {
        for place in self.all.ids() {
            if !self.all[place].is_retired {
                self.all[place].node = moves.place_on(self.all[place].node, self.handle(place));
            }
        }
        // Places that are free point to no node; they are filled before they are looked at.
        for lane in self.all.iter_mut().filter(|lane| lane.is_retired) {
            lane.node = NodeId::nth(0);
        }
        self.table = LaneGrid::new(self.classes_len(), self.nodes.len());
        for lane in &self.shared {
            let this = &self.all[*lane];
            self.table.put(this.node, this.class, Some(*lane));
        }
        self.move_own(moves);
        // Lanes that wait to be dialled will be dialled by the name.
        let queue = |node: NodeId| if moves.left == Some(node) { moves.named[node] } else { moves.place_of(node) };
        self.dialling.place_anew(queue);
    }

    /// Has the shared lanes of classes leave that have been unused for long.
    fn leave_classes(&mut self, is_used: &PerKey<bool>, now_us: u64) {
        self.unused_since_us.resize(is_used.len());
        for (class, is_used) in is_used.entries() {
            let since_us = &mut self.unused_since_us[class];
            if *is_used {
                *since_us = 0;
            } else if *since_us == 0 {
                *since_us = now_us;
            } else if now_us.saturating_sub(*since_us) > LANE_UNUSED_US {
                let of_class = |lane: &&LaneId| self.all[**lane].class == class;
                let lanes: Vec<LaneId> = self.shared.iter().filter(of_class).copied().collect();
                lanes.into_iter().for_each(|lane| self.leave(lane));
            }
        }
    }

    /// Dials the successor of a stale lane, unless a dial is under way.
    fn begin_renewal(&mut self, lane: LaneId, config: &Config, now: Now) {
        let this = &mut self.all[lane];
        this.renew_at_us = now.mono_us + RENEW_US;
        let (node, class) = (this.node, this.class);
        if config.node(node).is_none() {
            return;
        }
        let has_one = |other: &Lane| {
            other.purpose == LaneUse::Successor && !other.is_retired && other.node == node && other.class == class
        };
        if self.all.iter().any(has_one) {
            return;
        }
        // Another is tried later, if there is no hope for now.
        let _: Result<LaneId, ErrorReply> = self.dial_unshared(config, node, class, LaneUse::Successor, now);
    }

    /// A lane for what is left to be said to a node to which nothing else is sent any more: one of those that leave, or another
    /// that ends once it has been answered.
    fn parting_lane(&mut self, config: &Config, node: NodeId, class: LaneKeyId, now: Now) -> LaneId {
        let fits = |lane: &Lane| {
            lane.purpose == LaneUse::Leaving
                && (lane.node, lane.class) == (node, class)
                && !(lane.is_retired || lane.is_closing || lane.lease.is_unread())
                && (lane.wants_dial || !matches!(lane.up.phase(), Phase::Idle))
        };
        if let Some(known) = self.all.position(fits) {
            return known;
        }
        let lane = self.add_unshared(config, node, class, LaneUse::Leaving);
        self.want_dial(lane, now);
        lane
    }

    /// The lane of a request that follows from an earlier one at its node: it ends the wait of a blocked request, or puts an element
    /// back. It is sent to nodes that were removed or drained, too.
    pub(crate) fn lane_for_aftermath(&mut self, config: &Config, now: Now, node: NodeId, class: LaneKeyId) -> LaneId {
        let known = &self.nodes[node];
        match known.is_removed || known.is_drained {
            true => self.parting_lane(config, node, class, now),
            false => self.lane(config, node, class),
        }
    }
}

/// Whether two nodes are reached and entered in the same way.
fn is_same(one: &NodeConfig, other: &NodeConfig) -> bool {
    one.endpoint == other.endpoint && one.credentials == other.credentials
}

impl<E: Execute> Env<E> {
    /// Replaces what is to be replaced, and closes what has answered all it owed. Returns whether there is more to do.
    pub(crate) fn renew_lanes(&mut self) -> bool {
        let mut is_busy = false;
        for lane in self.lanes.all.ids() {
            let this = &self.lanes[lane];
            if this.is_retired {
                continue;
            }
            match this.purpose {
                LaneUse::Shared if this.is_stale => {
                    is_busy = true;
                    if !this.up.is_ready() {
                        self.lanes.leave(lane);
                    } else if self.now.mono_us >= this.renew_at_us {
                        self.lanes.begin_renewal(lane, &self.config, self.now);
                    }
                }
                LaneUse::Push if this.is_stale => {
                    is_busy = true;
                    self.lanes.renew_push_lane(&self.config, self.now, lane);
                }
                // Nothing is owed on it, and its client's next request has another dialled.
                LaneUse::Own
                    if this.is_stale && this.is_settled() && !self.lanes.is_watched_on(&self.clients, lane) =>
                {
                    self.close_lane(lane)
                }
                // It is free, and no request may wait on a connection to the former address.
                LaneUse::Blocking if this.is_stale && this.up.tickets().is_empty() => self.close_lane(lane),
                LaneUse::Leaving => {
                    is_busy = true;
                    if this.lease.reader().is_some_and(|reader| self.clients.sessions.get(reader).is_none()) {
                        self.read_on(lane);
                    }
                    let this = &self.lanes[lane];
                    let is_idle = matches!(this.up.phase(), Phase::Idle) && !this.wants_dial;
                    if is_idle || this.is_settled() && this.selects.is_empty() {
                        self.counters.lanes_renewed.add(1);
                        self.close_lane(lane);
                    }
                }
                _ => {}
            }
        }
        if self.lanes.has_behind {
            self.lanes.let_go_on();
        }
        is_busy
    }

    /// Has lanes leave whose database and dialect no client has been in for long.
    pub(crate) fn leave_unused(&mut self) {
        let classes = self.lanes.classes_len();
        if classes == 1 {
            return;
        }
        let is_used = self.used_classes();
        let now_us = self.now.mono_us;
        self.lanes.leave_classes(&is_used, now_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::key_id::KeyOwner;
    use crate::pool::key_id::LaneKey;
    use crate::reply::owner::Owner;
    use respool_connection::BufferPool;

    #[test]
    fn lanes_are_compared_with_those_alone_that_they_can_be_behind() {
        const MANY: usize = 1_000;
        let config = crate::testing::config();
        let mut lanes = Lanes::new(&config, 1);
        let mut pool = BufferPool::new();
        let mut left = Vec::new();
        for _ in 0..MANY {
            let class = LaneKey { database: 1, ..lanes.state_of(LaneKeyId::PLAIN) };
            let class = lanes.put_class(class, KeyOwner::Shared).expect("there are numbers for so many");
            let lane = lanes.lane(&config, NodeId::nth(0), class);
            lanes.push(lane, Owner::Discard, Now::default(), &mut pool, |out| out.push(b'x'));
            lanes.leave(lane);
            left.push(lane);
            let behind = lanes.lane(&config, NodeId::nth(0), class);
            assert!(lanes[behind].is_behind);
        }
        assert_eq!(lanes.let_go_on(), MANY);
        assert!(lanes.has_behind && lanes.all.iter().filter(|lane| lane.is_behind).count() == MANY);
        left.iter().for_each(|lane| drop(lanes[*lane].up.reset(&mut pool)));
        assert!(lanes.let_go_on() <= MANY);
        assert!(!lanes.has_behind && lanes.all.iter().all(|lane| !lane.is_behind));
    }

    #[test]
    fn a_node_that_moves_again_and_again_is_forgotten_where_it_was() {
        let config = crate::testing::config();
        let mut lanes = Lanes::new(&config, 1);
        for round in 0..100 {
            let at = |number: u32| Some(format!("10.0.{round}.{number}:6379").into());
            let all = [1, 2, 2].map(|number| {
                let lane = lanes.add_unshared(&config, NodeId::nth(0), LaneKeyId::PLAIN, LaneUse::Private);
                (lanes[lane].at, lanes[lane].is_elsewhere) = (at(number), true);
                lane
            });
            let stays = lanes.add_unshared(&config, NodeId::nth(0), LaneKeyId::PLAIN, LaneUse::Private);
            let handles = all.map(|lane| lanes.handle(lane));
            let moves = lanes.take_nodes(&config, Some(NodeId::nth(0)), |_| false);
            assert!(
                handles.iter().all(|lane| moves.has_left_on(NodeId::nth(0), *lane)) && moves.has_left(NodeId::nth(0))
            );
            assert!(!moves.has_left_on(NodeId::nth(0), lanes.handle(stays)) && lanes[stays].node == NodeId::nth(0));
            let node = all.map(|lane| lanes[lane].node);
            assert!(node[0] != node[1] && node[1] == node[2]);
            assert!(lanes.nodes[node[0]].is_removed && !lanes.nodes[NodeId::nth(0)].is_removed);
            assert_eq!(lanes.nodes.len(), config.nodes.len() + 2, "what was left before is forgotten");
            all.into_iter().chain([stays]).for_each(|lane| lanes.release(lane));
        }
    }
}
