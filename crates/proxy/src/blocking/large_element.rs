//! A large element for a request that waits: the client gets it as it comes, as any large reply.
//!
//! ```text
//!   [waits at node] -- a part of the reply, and it is large --> [answered in pieces] -- its end --> the connection is closed
//!          |                                                      read as fast as the client reads
//!          '-- its request has been cancelled, or its reply is proved, converted or not wanted: it is collected, within bounds
//!                                            |                        '-- too much: the connection is closed, the element is lost
//!                                            '-- whole: answered, or put back if the client has disconnected
//! ```
//!
//! What waits is answered by a task, which reads the reply before the client does and has it as a whole until then. That much memory would
//! be in no account, and connections on which requests wait are read on whatever memory there is. So the connection becomes one that its client
//! leaves: it answers what it owes and takes nothing more. An element of which the client has been given a part is not put back if the
//! client leaves, as a server that has begun to write it does not.

use crate::blocking::put_back::TOO_MUCH;
use crate::blocking::queue::Blocking;
use crate::blocking::request::{BlockedRequest, Target};
use crate::env::Env;
use crate::ids::{Asker, Handle, LaneHandle, LaneId};
use crate::limits::INTERNAL_REPLY_BYTES_MAX;
use crate::pool::LaneUse;
use crate::reply::abandon_partial;
use crate::reply::owner::Owner;
use respool_command::Execute;

impl Blocking {
    /// A part of a large reply has come on a connection on which requests wait.
    #[cold]
    pub(crate) fn take_large_part(&mut self, env: &mut Env<impl Execute>, lane: LaneHandle) {
        let Some(blocked) = self.sent.get(&lane).copied() else { return bound_number(env, lane) };
        if !self.hand_over(env, lane, blocked) {
            self.bound_collected(env, lane, blocked);
        }
    }

    /// The client of a request gets what comes as it comes, if it can be.
    fn hand_over(&mut self, env: &mut Env<impl Execute>, lane: LaneHandle, blocked: Handle) -> bool {
        let Some(this) = self.requests.get(blocked).filter(|this| this.release.is_none()) else { return false };
        let BlockedRequest { target: Target::Client { asker }, node, .. } = this else { return false };
        let (asker, node) = (*asker, *node);
        // What a question about it was answered is not known yet.
        let is_asked = self.connection(node, lane).is_none_or(|connection| connection.unblocks > 0);
        if is_asked || !env.leave_to_asker(lane, asker) {
            return false;
        }
        self.at(node).connections.retain(|connection| connection.lane != lane);
        if let Some(this) = self.remove(blocked) {
            env.clients.forget_blocked(asker.session.index, blocked, this.held_bytes);
        }
        self.serve_queue(env, node);
        true
    }

    /// Bounds what is collected of a reply: for a client that gets it by what may be held for that client, for one that has left by what may
    /// be on its way back. What no client gets and nothing undoes is not kept.
    fn bound_collected(&mut self, env: &mut Env<impl Execute>, lane: LaneHandle, blocked: Handle) {
        let (Some(place), Some(this)) = (env.lanes.find(lane), self.requests.get(blocked)) else { return };
        let (node, bytes) = (this.node, env.lanes[place].up.partial_bytes());
        let can_be_undone = this.can_be_undone();
        let (is_fit, is_lost) = match this.target {
            Target::Client { asker } if env.clients.sessions.get(asker.session).is_some() && !this.is_put_back() => {
                (asker.is_wanted && env.clients.has_room(asker.session, bytes), asker.is_wanted && can_be_undone)
            }
            _ => (can_be_undone && self.returns.note_arriving(lane, bytes), can_be_undone),
        };
        if is_fit {
            return;
        }
        if is_lost {
            self.lose(env, node, TOO_MUCH);
        }
        abandon_partial(env, place);
    }
}

/// Bounds what a node says its number of a connection is.
fn bound_number(env: &mut Env<impl Execute>, lane: LaneHandle) {
    let Some(place) = env.lanes.find(lane) else { return };
    if env.lanes[place].up.partial_bytes() > INTERNAL_REPLY_BYTES_MAX {
        abandon_partial(env, place);
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
        self.tasks.forget(Handle { index: task, generation });
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
