//! The common request by the shortest way: nothing rare about its row, its session or its lane, and one node that answers.
//!
//! `worker::dispatch` can do all of this and the rest. What is here only leaves out what cannot matter for such a request, so that
//! it stays small enough to be compiled into the loop over a client's requests: whatever is not plain is given back
//! untouched, and decided there.

use crate::env::Env;
use crate::ids::{ClientId, NodeId};
use crate::reply::owner::Owner;
use crate::reply::progress::ReplyMode;
use crate::session::Flow;
use respool_command::{Execute, lookup};
use respool_route::plan_at_once;
use respool_wire::Request;

/// What answers a client's plain requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    /// There are none: something about the client is rare.
    Neither,
    /// Nodes.
    Nodes,
    /// The engine in this process.
    Engine,
}

impl<E: Execute> Env<E> {
    /// What answers a client's next request if it is plain. Stays as it is while only plain requests are read.
    pub(crate) fn plain_way(&self, index: ClientId) -> Plain {
        match self.clients.sessions.at(index) {
            _ if !self.shared.has_plain_names => Plain::Neither,
            Some(session) if session.flags.is_none() && session.reply_mode == ReplyMode::On => match self.engine {
                None => Plain::Nodes,
                Some(_) => plain_at_engine(self),
            },
            _ => Plain::Neither,
        }
    }

    #[inline(always)]
    pub(crate) fn forward_plain(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        let row = lookup(request.args.name()).filter(|row| row.is_plain && row.accepts(request.args.len()))?;
        let raw = request.raw?;
        let Self { clients, lanes, config, now, .. } = self;
        let node = plan_at_once(row, request.args, &config.topology)?;
        let (session, generation) = clients.sessions.with_generation(index)?;
        let place = lanes.known(NodeId::of(node), session.class)?;
        let lane = lanes.all.get_mut(place).filter(|lane| lane.is_plain(config.budgets.queue_soft()))?;
        session.last_row = Some(row);
        let (outstanding, window) = (session.down.outstanding(), session.credit.window());
        let owner = Owner::Client { index, generation, seq: session.down.expect() };
        lane.up.send(owner, now.mono_us, &mut clients.pool, |out| out.extend_from_slice(raw));
        let has_much = lane.up.queued_bytes() > config.budgets.queue_soft() || outstanding > window;
        if !lane.is_listed {
            lane.is_listed = true;
            lanes.listed.push(place);
        }
        if has_much { Some(self.throttle(index, place, &request.args)) } else { Some(Flow::Next) }
    }
}

/// Something may look at each request before the engine does, or a debugger hold them back.
#[inline]
fn plain_at_engine<E>(env: &Env<E>) -> Plain {
    let is_seen = env.config.seeing.times_all() || !env.command_log.monitors.is_empty();
    if is_seen || env.debuggers.holds_others() { Plain::Neither } else { Plain::Engine }
}
