//! What was taken for a client that has left goes back to where it was.
//!
//! ```text
//!   taken, its client gone --> [asked of the node] -- a number ------------------------> back
//!                                  |          ^
//!        not sent, or not just now |          | tried again
//!                                  '-> [waits] --- its time or the room is over -----.
//!                                                                                     v
//!                                  sent and not answered, or refused for good ------> lost, counted and told
//! ```
//!
//! What was sent and not answered is not sent again: it may have arrived, and nothing is done twice. Nor is there a way back to
//! a key that holds another type by now, or to a node that is not configured any more. All others are tried until
//! [`RETURN_US_MAX`] has passed, which a pause of the node does not count against. An element is back at the end of its list from which it was taken; who else waits for it gets
//! it as if it had just been pushed.

use crate::blocking::queue::Blocking;
use crate::blocking::request::BlockedRequest;
use crate::blocking::returns::{Outcome, Return, Returning};
use crate::env::Env;
use crate::hooks::Event;
use crate::ids::NodeId;
use crate::limits::{RETURN_AGAIN_US, RETURN_US_MAX, RETURNS_BYTES_MAX, RETURNS_MAX};
use respool_command::Execute;
use respool_wire::encode_request;

/// Why an element is lost that does not fit beside others.
pub(crate) const TOO_MUCH: &[u8] = b"too much waits to be put back";

impl Blocking {
    /// The client left before it could get what was taken for it. `false`: there is nothing to put back.
    pub(crate) fn put_back(&mut self, env: &mut Env<impl Execute>, blocked: &BlockedRequest, reply: &[u8]) -> bool {
        let Some(request) = blocked.undo(reply) else { return false };
        let bytes = size_of::<Return>() + request.as_args().iter().map(|arg| arg.len() + 16).sum::<usize>();
        let until_us = env.now.mono_us + RETURN_US_MAX;
        let what = Return { node: blocked.node, class: blocked.class.clone(), request, bytes, until_us };
        let returns = &mut self.returns;
        if returns.count >= RETURNS_MAX || returns.bytes + bytes > RETURNS_BYTES_MAX {
            self.lose(env, what.node, TOO_MUCH);
            return true;
        }
        returns.count += 1;
        returns.bytes += bytes;
        env.shared.ledger.account(0, bytes);
        self.bring_back(env, what);
        true
    }

    fn bring_back(&mut self, env: &mut Env<impl Execute>, mut what: Return) {
        if env.lanes.nodes.get(what.node).is_none() {
            return self.give_up_return(env, &what, b"its node is not configured any more");
        }
        let (node, class) = (what.node, what.class.id());
        if env.client_pause.is_some() || env.is_all_paused || env.lanes.nodes[node].is_paused {
            // What is taken back while a node is exchanged must not go to the one that is left behind. Its time begins behind the pause.
            what.until_us = env.now.mono_us + RETURN_US_MAX;
            return self.try_later(env, what);
        }
        let lane = env.lanes.lane_for_aftermath(&env.config, env.now, node, class);
        let mut request = Vec::new();
        encode_request(&mut request, what.request.as_args().iter());
        let task = env.tasks.begin(Returning { what, outcome: Outcome::Asked });
        env.send_for_task(task, 0, lane, |out| out.extend_from_slice(&request));
    }

    /// A node has been asked.
    pub(crate) fn conclude_return(&mut self, env: &mut Env<impl Execute>, returning: Returning) {
        let Returning { what, outcome } = returning;
        match outcome {
            Outcome::Back => {
                self.forget_return(env, &what);
                env.counters.elements_put_back.add(1);
            }
            Outcome::NotNow(error) if env.now.mono_us >= what.until_us => {
                self.give_up_return(env, &what, error.words());
            }
            Outcome::NotNow(_) => self.try_later(env, what),
            Outcome::Lost(error) => self.give_up_return(env, &what, error.words()),
            Outcome::Asked => self.give_up_return(env, &what, b"no answer came"),
        }
    }

    fn try_later(&mut self, env: &mut Env<impl Execute>, what: Return) {
        self.returns.again_us = env.now.mono_us + RETURN_AGAIN_US;
        self.returns.waiting.push_back(what);
        env.is_busy = true;
    }

    /// Tries those again that could not be brought back. Returns whether any waits.
    pub(crate) fn check_returns(&mut self, env: &mut Env<impl Execute>) -> bool {
        if !self.returns.waiting.is_empty() && env.now.mono_us >= self.returns.again_us {
            for what in std::mem::take(&mut self.returns.waiting) {
                self.bring_back(env, what);
            }
        }
        !self.returns.waiting.is_empty()
    }

    /// The worker ends: what is not back by now is lost.
    pub(crate) fn give_up_returns(&mut self, env: &mut Env<impl Execute>) {
        for what in std::mem::take(&mut self.returns.waiting) {
            self.give_up_return(env, &what, b"the process ends");
        }
    }

    fn forget_return(&mut self, env: &mut Env<impl Execute>, what: &Return) {
        let returns = &mut self.returns;
        returns.count = returns.count.saturating_sub(1);
        returns.bytes = returns.bytes.saturating_sub(what.bytes);
        env.shared.ledger.account(what.bytes, 0);
    }

    fn give_up_return(&mut self, env: &mut Env<impl Execute>, what: &Return, why: &[u8]) {
        self.forget_return(env, what);
        self.lose(env, what.node, why);
    }

    /// What was taken at a node is lost.
    pub(crate) fn lose(&mut self, env: &mut Env<impl Execute>, node: NodeId, why: &[u8]) {
        env.counters.elements_lost.add(1);
        let Some(untold) = self.returns.lines.may_tell(env.now.mono_us) else { return };
        let node = env.lanes.nodes.get(node).map_or_else(String::new, |node| node.name.clone());
        let why = String::from_utf8_lossy(why).into_owned();
        env.shared.hooks.tell(&Event::ElementLost { node, worker: env.number, why, untold });
    }
}
