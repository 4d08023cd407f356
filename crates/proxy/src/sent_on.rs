//! Requests that waited for a connection to a node that turns out not to be there, where another node stands in for it.
//!
//! ```text
//!   connection lost -> dialled at once, requests wait -> dial fails, node out -> `dead_node = "next"`: they go to the next node
//!                                                     '-> dial succeeds: they go to their node
//! ```
//!
//! From the loss of a connection to the end of the next dial nothing says that the node is gone, so requests go nowhere else; and
//! what has not been sent need not fail when it is. They leave in their order, before anything that is read later, and in the
//! bytes that they would have been sent in. Only what is about one key of that node is sent on: what names a node, or is asked of all
//! nodes, gets the error, and so does what a client asks that watches keys.

use crate::lanes::Purpose;
use crate::limits::WAITING_BYTES_SENT_ON_MAX;
use crate::session::Special;
use crate::slab::Handle;
use crate::worker::Worker;
use respool_command::{Execute, Lane as Kind, resolve};
use respool_connection::Owner;
use respool_route::{DeadNode, Plan, plan};
use respool_wire::{Args, RequestDecoder, RequestLimits, Step, Strictness};

impl<E: Execute> Worker<E> {
    /// The requests that wait on a shared lane that has not been ready, in case that its node is not there. Asked before they are
    /// given up.
    pub(crate) fn waiting_on(&self, lane: usize) -> Option<Vec<u8>> {
        let this = &self.lanes.all[lane];
        let is_shared = this.purpose == Purpose::Shared && this.sending.is_none() && this.beside.is_none();
        let waiting = this.up.queued();
        let is_small = !waiting.is_empty() && waiting.len() <= WAITING_BYTES_SENT_ON_MAX;
        let is_wanted = is_shared && !this.up.is_ready() && is_small && self.next_of(this.node).is_some();
        is_wanted.then(|| waiting.to_vec())
    }

    /// The node that stands in for another one whatever the route is.
    fn next_of(&self, node: usize) -> Option<usize> {
        let routes = &self.config.routes;
        let number = routes.pools().iter().position(|pool| pool.places().contains(&node))?;
        let pool = &routes.pools()[number];
        let leads_here = |(_, route): &(usize, &respool_route::Route)| route.pool == number;
        let mut all = routes.routes().iter().enumerate().filter(leads_here);
        let is_next =
            pool.dead_node == DeadNode::Next && all.all(|(route, _)| routes.dead_node(route as u16) == DeadNode::Next);
        if is_next { self.live_next(pool, node).filter(|next| *next != node) } else { None }
    }

    /// A lane has ended before it was ready. Sends on what may go elsewhere; gives those whose requests may not.
    pub(crate) fn send_on(&mut self, lane: usize, waiting: &[u8], orphans: Vec<(Owner, bool)>) -> Vec<(Owner, bool)> {
        let (node, class) = (self.lanes.all[lane].node, self.lanes.all[lane].class);
        if node >= self.config.nodes.len() || !self.lanes.nodes[node].health.is_out() {
            return orphans;
        }
        let Some(next) = self.next_of(node) else { return orphans };
        let other = self.lanes.lane(&self.config, next, class);
        let limits = RequestLimits { bulk_bytes_max: usize::MAX, ..RequestLimits::authenticated(Strictness::Strict) };
        let (mut rest, mut left) = (waiting, Vec::new());
        for (owner, was_sent) in orphans {
            let mut decoder = RequestDecoder::new();
            let Ok(Step::Request(request)) = decoder.decode(rest, &limits) else {
                rest = &[];
                left.push((owner, was_sent));
                continue;
            };
            let bytes;
            (bytes, rest) = rest.split_at(request.consumed);
            let is_moved = !was_sent && self.may_go_elsewhere(owner, node, request.args) && {
                let Self { lanes, clients, config, now, .. } = self;
                lanes.send(other, owner, config, *now, &mut clients.pool, |out| out.extend_from_slice(bytes)).is_ok()
            };
            match is_moved {
                true => self.counters.requests_moved.add(1),
                false => left.push((owner, was_sent)),
            }
        }
        left
    }

    fn may_go_elsewhere(&mut self, owner: Owner, node: usize, args: Args<'_>) -> bool {
        let asker = match owner {
            Owner::Client { index, generation, .. } | Owner::Unanswered { index, generation } => {
                Some(Handle { index, generation })
            }
            // Of what is split by keys this is the node's part, of what is asked of all nodes it has no key.
            Owner::Part { gather, generation, .. } => self.scatters.asker(Handle { index: gather, generation }),
            _ => None,
        };
        let session = asker.and_then(|asker| self.clients.sessions.get(asker));
        let is_free = session.is_some_and(|session| !session.special.has(Special::PINNED));
        let Ok(row) = resolve(args) else { return false };
        if !is_free || row.lane(args) != Kind::Shared || row.keys.first(args).is_none() {
            return false;
        }
        let Some(pool) = self.config.routes.pools().iter().find(|pool| pool.places().contains(&node)) else {
            return false;
        };
        match plan(row, args, &pool.topology, &mut self.scratch) {
            Ok(Plan::One(place)) => pool.place(place) == node,
            _ => false,
        }
    }
}
