//! Lanes that are replaced while requests flow: because an operator says so, or because other nodes are configured.
//!
//! ```text
//!   [shared] --- to be renewed, and ready ---> a successor is dialled; [shared] goes on
//!       successor ready:  [shared] -> [leaving]     the successor takes its place in the table
//!       successor failed: [shared] goes on, another successor is tried later
//!   [shared] --- its node has gone, or it is not ready ---> [leaving]
//!   [leaving] --- nothing is queued or owed any more ---> closed
//! ```
//!
//! What was queued on a lane leaves on it and is answered on it; only what comes afterwards takes another way, and waits
//! until all of that is answered. Otherwise a GET could overtake the SET that the same client has sent before it.

use crate::config::{Config, NodeConfig};
use crate::lanes::{Lane, Lanes, NONE, Node, Purpose};
use crate::limits::{LANE_UNUSED_US, RENEW_US};
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::{Now, Phase};

impl Lanes {
    /// Takes a shared lane out of the table: it answers what it owes and is then closed.
    pub(crate) fn leave(&mut self, lane: usize) {
        let this = &mut self.all[lane];
        let place = this.class as usize * self.nodes.len() + this.node;
        this.purpose = Purpose::Leaving;
        this.is_stale = false;
        if self.table.get(place) == Some(&(lane as u32)) {
            self.table[place] = NONE;
        }
        self.shared.retain(|shared| *shared as usize != lane);
    }

    /// A lane in place of a shared one is ready: it takes over.
    pub(crate) fn succeed(&mut self, lane: usize) {
        let this = &self.all[lane];
        let place = this.class as usize * self.nodes.len() + this.node;
        let before = self.table[place];
        if before != NONE {
            self.leave(before as usize);
        }
        self.all[lane].purpose = Purpose::Shared;
        self.shared.push(lane as u32);
        self.table[place] = lane as u32;
        self.stand_behind(lane);
    }

    /// A lane has come into the table: what others in its place are still owed comes first.
    pub(crate) fn stand_behind(&mut self, lane: usize) {
        self.turns += 1;
        self.all[lane].turn = self.turns;
        let is_behind = self.is_anybody_ahead(lane);
        self.all[lane].is_behind = is_behind;
        self.has_behind |= is_behind;
    }

    fn is_anybody_ahead(&self, lane: usize) -> bool {
        let Lane { node, class, turn, .. } = self.all[lane];
        // One that has gone may be the same server by another name.
        let is_same = |other: usize| {
            other == node
                || self.nodes[other].is_gone && self.nodes[other].told.endpoint == self.nodes[node].told.endpoint
        };
        let is_ahead = |other: &Lane| {
            other.purpose == Purpose::Leaving
                && other.class == class
                && is_same(other.node)
                && other.turn < turn
                && !other.is_retired
                && !other.is_settled()
        };
        self.all.iter().any(is_ahead)
    }

    /// A lane that was leaving is owed nothing any more: those behind it may go on.
    #[cold]
    pub(crate) fn let_go_on(&mut self) {
        self.has_behind = false;
        for lane in 0..self.all.len() {
            if !self.all[lane].is_behind {
                continue;
            }
            if self.is_anybody_ahead(lane) {
                self.has_behind = true;
            } else {
                self.all[lane].is_behind = false;
                self.list(lane);
            }
        }
    }

    /// Marks the shared lanes of a node to be replaced. Those that are not connected have nothing to lose: they go at once.
    pub(crate) fn renew(&mut self, node: usize) -> usize {
        let lanes: Vec<usize> = self.shared_of(node).collect();
        for lane in &lanes {
            if self.all[*lane].up.is_ready() {
                self.all[*lane].is_stale = true;
            } else {
                self.leave(*lane);
            }
        }
        self.mark_apart(node);
        self.let_warm_go(node);
        lanes.len()
    }

    /// Takes the shared lanes of a node out of the table.
    pub(crate) fn leave_node(&mut self, node: usize) -> usize {
        let lanes: Vec<usize> = self.shared_of(node).collect();
        lanes.iter().for_each(|lane| self.leave(*lane));
        self.leave_own_lanes_to(node);
        self.mark_apart(node);
        self.let_warm_go(node);
        lanes.len()
    }

    /// Lanes of a node that clients have to themselves are not kept for others once they are given back.
    fn mark_apart(&mut self, node: usize) {
        let is_apart = |lane: &Lane| matches!(lane.purpose, Purpose::Private | Purpose::Own | Purpose::Blocking);
        self.all.iter_mut().filter(|lane| lane.node == node && is_apart(lane)).for_each(|lane| lane.is_stale = true);
    }

    fn shared_of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.shared.iter().map(|lane| *lane as usize).filter(move |lane| self.all[*lane].node == node)
    }

    /// Private lanes of a node that nobody has are of no use any more.
    fn let_warm_go(&mut self, node: usize) {
        let is_its = |lane: &u32| self.all[*lane as usize].node == node;
        let gone: Vec<u32> = self.warm.iter().copied().filter(is_its).collect();
        self.warm.retain(|lane| !gone.contains(lane));
        for lane in gone {
            self.all[lane as usize].purpose = Purpose::Leaving;
        }
    }

    /// Takes over other nodes. Nodes are told apart by their names: one that keeps its name keeps its place in the table
    /// and what is known of it; its lanes are renewed if it is elsewhere now. Returns, for each node before, where it is
    /// now; nodes that have gone stay behind the others until nothing is owed by them.
    pub(crate) fn take_nodes(&mut self, config: &Config) -> Vec<usize> {
        let mut before = std::mem::take(&mut self.nodes);
        let in_use = |node: usize| self.all.iter().any(|lane| lane.node == node && !lane.is_retired);
        let mut nodes: Vec<Node> = Vec::with_capacity(config.nodes.len());
        let mut moved = vec![usize::MAX; before.len()];
        let mut is_renewed = Vec::new();
        for (place, told) in config.nodes.iter().enumerate() {
            let known = before.iter().position(|node| !node.is_gone && node.name == told.name);
            let mut node = Node::new(told);
            if let Some(known) = known {
                moved[known] = place;
                let is_elsewhere = !is_same(&before[known].told, told);
                if is_elsewhere {
                    is_renewed.push(place);
                } else {
                    node = std::mem::replace(&mut before[known], Node::new(told));
                }
            }
            nodes.push(node);
        }
        for (place, mut node) in before.into_iter().enumerate() {
            if moved[place] != usize::MAX || !in_use(place) {
                continue;
            }
            moved[place] = nodes.len();
            node.is_gone = true;
            nodes.push(node);
        }
        self.nodes = nodes;
        self.place_anew(&moved);
        for node in config.nodes.len()..self.nodes.len() {
            self.leave_node(node);
        }
        for node in is_renewed {
            self.renew(node);
        }
        moved
    }

    /// The table for other places of nodes.
    fn place_anew(&mut self, moved: &[usize]) {
        for lane in self.all.iter_mut().filter(|lane| !lane.is_retired) {
            lane.node = moved[lane.node];
        }
        // Places that are free point to no node; they are filled before they are looked at.
        for lane in self.all.iter_mut().filter(|lane| lane.is_retired) {
            lane.node = 0;
        }
        self.table = vec![NONE; self.classes_len() * self.nodes.len()];
        for lane in &self.shared {
            let this = &self.all[*lane as usize];
            self.table[this.class as usize * self.nodes.len() + this.node] = *lane;
        }
        self.move_own(moved);
    }

    /// Has the shared lanes of classes leave that have been unused for long.
    fn leave_classes(&mut self, is_used: &[bool], now_us: u64) {
        self.unused_since_us.resize(is_used.len(), 0);
        for (class, is_used) in is_used.iter().enumerate() {
            let since_us = &mut self.unused_since_us[class];
            if *is_used {
                *since_us = 0;
            } else if *since_us == 0 {
                *since_us = now_us;
            } else if now_us.saturating_sub(*since_us) > LANE_UNUSED_US {
                let of_class = |lane: &&u32| usize::from(self.all[**lane as usize].class) == class;
                let lanes: Vec<u32> = self.shared.iter().filter(of_class).copied().collect();
                lanes.into_iter().for_each(|lane| self.leave(lane as usize));
            }
        }
    }

    /// Dials a successor for a lane that is to be replaced, unless one is under way.
    fn begin_renewal(&mut self, lane: usize, config: &Config, now: Now) {
        let this = &mut self.all[lane];
        this.renew_at_us = now.mono_us + RENEW_US;
        let (node, class) = (this.node, this.class);
        if config.nodes.get(node).is_none() {
            return;
        }
        let has_one = |other: &Lane| {
            other.purpose == Purpose::Successor && !other.is_retired && other.node == node && other.class == class
        };
        if self.all.iter().any(has_one) {
            return;
        }
        let successor = self.make_apart(config, node, class, Purpose::Successor);
        if self.prepare(successor, config, now).is_err() {
            self.release(successor);
        }
    }
}

/// Whether two nodes are reached and entered in the same way.
fn is_same(one: &NodeConfig, other: &NodeConfig) -> bool {
    let entry = |node: &NodeConfig| {
        node.credentials.as_ref().map(|credentials| (credentials.username.clone(), credentials.password.clone()))
    };
    one.endpoint == other.endpoint && entry(one) == entry(other)
}

impl<E: Execute> Worker<E> {
    /// Replaces what is to be replaced, and closes what has answered all it owed. Returns whether there is more to do.
    pub(crate) fn renew_lanes(&mut self) -> bool {
        let mut is_busy = false;
        for lane in 0..self.lanes.all.len() {
            let this = &self.lanes.all[lane];
            if this.is_retired {
                continue;
            }
            match this.purpose {
                Purpose::Shared if this.is_stale => {
                    is_busy = true;
                    if !this.up.is_ready() {
                        self.lanes.renew(this.node);
                    } else if self.now.mono_us >= this.renew_at_us {
                        self.lanes.begin_renewal(lane, &self.config, self.now);
                    }
                }
                // Nothing is owed on it, and its client's next request has another dialled.
                Purpose::Own if this.is_stale && this.is_settled() && !self.is_watched_on(lane) => {
                    self.close_lane(lane)
                }
                // Nobody waits on it, and nobody is to wait on a connection to where the node was before.
                Purpose::Blocking if this.is_stale && this.up.tickets().is_empty() => self.close_lane(lane),
                Purpose::Leaving => {
                    is_busy = true;
                    let is_idle = matches!(this.up.phase(), Phase::Idle) && !this.wants_dial;
                    if is_idle || this.is_settled() && this.waiters.is_empty() {
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
