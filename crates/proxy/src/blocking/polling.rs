//! Connections on which queued requests are tried, in case what they wait for is there already: one for each node and class with
//! a queue, borrowed from the private ones and given back with the end of the queue.
//!
//! A look is the request between MULTI and EXEC, where nothing waits. It is not sent before the node has been seen to take MULTI
//! on that connection, and never on one that others use: if the node ceases to take MULTI in just that moment, the request
//! waits there for its shortest time and holds up no other.

use crate::blocking::queue::{Blocking, Look};
use crate::env::Env;
use crate::ids::{LaneId, LaneKeyId, NodeId};
use crate::limits::LOOK_AGAIN_US;
use crate::nodes::multi::Multi;
use crate::pool::lane_reset::ResetNeeded;
use respool_command::Execute;

impl Blocking {
    /// The connection on which queued requests of a node are tried, once the node has been seen to take MULTI on it.
    pub(crate) fn lane_to_look(
        &mut self,
        env: &mut Env<impl Execute>,
        node: NodeId,
        class: LaneKeyId,
    ) -> Option<LaneId> {
        let now_us = env.now.mono_us;
        let known = self.at(node).looks.iter().position(|look| look.class == class);
        let mut lane = known.and_then(|at| env.lanes.find(self.nodes[node].looks[at].lane));
        if let Some(stale) = lane.filter(|lane| env.lanes[*lane].is_stale) {
            if !env.lanes[stale].up.tickets().is_empty() {
                return None;
            }
            env.close_lane(stale);
            lane = None;
        }
        let Some((at, lane)) = known.zip(lane) else {
            if let Some(at) = known {
                self.nodes[node].looks.swap_remove(at);
            }
            let lane = env.lanes.borrow(&env.config, node, class, env.now).ok()?;
            self.at(node).looks.push(Look { class, lane, again_us: 0 });
            let place = env.lanes.find(lane)?;
            return env.look_on(place);
        };
        let look = &mut self.nodes[node].looks[at];
        if matches!(env.lanes[lane].multi, Multi::Refused(_)) {
            if look.again_us == 0 {
                look.again_us = now_us + LOOK_AGAIN_US;
            } else if look.again_us <= now_us {
                look.again_us = 0;
                env.lanes[lane].multi.doubt();
            }
        }
        env.look_on(lane)
    }

    /// No request queues for a node any more: the connections on which they were tried are for others.
    pub(crate) fn stop_looking(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        let list = self.at(node);
        if list.queue.is_empty() {
            for look in std::mem::take(&mut list.looks) {
                env.give_back(look.lane, ResetNeeded::default());
            }
        }
    }
}

impl<E: Execute> Env<E> {
    fn look_on(&mut self, lane: LaneId) -> Option<LaneId> {
        let this = &self.lanes[lane];
        let is_unknown = this.multi == Multi::Unknown && this.up.tickets().is_empty();
        if is_unknown && self.lanes.admit(lane, &self.config, self.now).is_ok() {
            self.try_multi(lane, None);
        }
        self.lanes[lane].multi.is_taken().then_some(lane)
    }
}
