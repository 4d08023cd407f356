//! A large element for a request that waits: the client gets it as it comes, as any large reply.
//!
//! ```text
//!   [waits at node] -- a part of the reply, and it is large --> [answered in pieces] -- its end --> the connection is closed
//!          |                                                      read as fast as the client reads
//!          '-- its request has been cancelled: the reply is buffered as a whole, and the element is put back if the client has disconnected
//! ```
//!
//! What waits is answered by a task, which reads the reply before the client does and has it as a whole until then. That much memory would
//! be in no account, and connections on which requests wait are read on whatever memory there is. So the connection becomes one that its client
//! leaves: it answers what it owes and takes nothing more. An element of which the client has been given a part is not put back if the
//! client leaves, as a server that has begun to write it does not.

use crate::blocking::queue::Blocking;
use crate::blocking::request::{BlockedRequest, State, Target};
use crate::env::Env;
use crate::ids::{Asker, LaneHandle, LaneId};
use crate::pool::LaneUse;
use crate::reply::owner::Owner;
use respool_command::Execute;

impl Blocking {
    /// A part of a large reply to a request that waits has come.
    #[cold]
    pub(crate) fn hand_over(&mut self, env: &mut Env<impl Execute>, lane: LaneHandle) {
        let is_on_it = |this: &BlockedRequest| this.state == State::Sent(lane) && this.release.is_none();
        let mut sent = self.sent.iter().copied();
        let Some(blocked) = sent.find(|blocked| self.requests.get(*blocked).is_some_and(is_on_it)) else { return };
        let Some(BlockedRequest { target: Target::Client { asker }, node, .. }) = self.requests.get(blocked) else {
            return;
        };
        let (asker, node) = (*asker, *node);
        // What a question about it was answered is not known yet.
        let is_asked = self.connection(node, lane).is_none_or(|connection| connection.unblocks > 0);
        if is_asked || !env.leave_to_asker(lane, asker) {
            return;
        }
        self.at(node).connections.retain(|connection| connection.lane != lane);
        if let Some(this) = self.remove(blocked) {
            env.clients.forget_blocked(asker.session.index, blocked, this.held_bytes);
        }
        self.serve_queue(env, node);
    }
}

impl<E: Execute> Env<E> {
    /// The reply that a connection brings goes to this client as it comes, instead of to a task. `false`: it has to be kept as a whole.
    fn leave_to_asker(&mut self, lane: LaneHandle, asker: Asker) -> bool {
        let Some(place) = self.lanes.find(lane) else { return false };
        let this = &mut self.lanes[place];
        let is_fit = this.purpose == LaneUse::Blocking && this.beside.is_none() && !this.up.is_old();
        let Some(Owner::Task { task, generation, .. }) = this.up.tickets().front().copied() else { return false };
        if !is_fit
            || !asker.is_wanted
            || this.up.tickets().outstanding() != 1
            || !self.clients.has_room(asker.session, 0)
        {
            return false;
        }
        self.tasks.forget(crate::ids::Handle { index: task, generation });
        self.hand_lane_over(place, asker);
        true
    }

    fn hand_lane_over(&mut self, place: LaneId, asker: Asker) {
        let (session, now_us) = (asker.session, self.now.mono_us);
        let this = &mut self.lanes[place];
        this.up.readdress(Owner::Client { index: session.index, generation: session.generation, seq: asker.seq });
        this.lease.set_reader(Some(session));
        this.lease.note_flow(now_us);
        self.lanes.leave_to_its_reader(place);
        self.is_busy = true;
    }
}
