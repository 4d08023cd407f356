//! The common request by the shortest way: nothing rare about its row, its session or its lane, and one node that answers.
//!
//! [`crate::request::dispatch`] can do all of this and the rest. What is here only leaves out what cannot matter for such a request, so that
//! it stays small enough to be compiled into the loop over a client's requests: whatever is not plain is given back
//! untouched, and decided there.

use crate::env::Env;
use crate::limits::LOGGED_REPLY_BYTES;
use crate::nodes::id::NodeId;
use crate::reply::owner::Owner;
use crate::session::id::ClientId;
use crate::session::{Flow, ReplyMode};
use crate::worker::Worker;
use respool_command::{Execute, Flags, Millis, Outcome, SessionView, lookup};
use respool_route::plan_at_once;
use respool_wire::{Encoder, Request};

/// Who answers a client's plain requests.
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
    /// Who answers a client's next request if it is plain. Stays as it is while only plain requests are read.
    pub(crate) fn plain_way(&self, index: ClientId) -> Plain {
        match self.clients.sessions.at(index) {
            Some(session) if session.flags.is_none() && session.reply_mode == ReplyMode::On => match self.engine {
                None => Plain::Nodes,
                Some(_) if self.config.seeing.times_all() => Plain::Neither,
                Some(_) => Plain::Engine,
            },
            _ => Plain::Neither,
        }
    }

    #[inline(always)]
    fn forward_plain(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        let row = lookup(request.args.name()).filter(|row| row.is_plain && row.accepts(request.args.len()))?;
        let raw = request.raw?;
        let Self { clients, lanes, config, now, .. } = self;
        let node = plan_at_once(row, request.args, &config.topology)?;
        let (session, generation) = clients.sessions.with_generation(index)?;
        let place = lanes.known(NodeId::of(node), session.class)?;
        let lane = lanes.all.get_mut(place).filter(|lane| lane.is_plain(config.budgets.upstream_queue))?;
        session.last_row = Some(row);
        let (outstanding, window) = (session.down.outstanding(), session.credit.window());
        let owner = Owner::Client { index, generation, seq: session.down.expect() };
        lane.up.send(owner, now.mono_us, &mut clients.pool, |out| out.extend_from_slice(raw));
        let has_much = lane.up.queued_bytes() > config.budgets.queue_soft() || outstanding > window;
        if !lane.is_listed {
            lane.is_listed = true;
            lanes.listed.push(place);
        }
        if has_much { Some(self.throttle(index, place)) } else { Some(Flow::Next) }
    }
}

impl<E: Execute> Worker<E> {
    /// Does a request if it is plain. `None`: it is not, and nothing has been done.
    #[inline(always)]
    pub(crate) fn do_plain(&mut self, way: Plain, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        match way {
            Plain::Neither => None,
            Plain::Nodes => self.env.forward_plain(index, request),
            Plain::Engine => self.execute_plain(index, request),
        }
    }

    #[inline(always)]
    fn execute_plain(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        let args = request.args;
        let row = lookup(args.name()).filter(|row| row.is_quick && row.accepts(args.len()))?;
        let is_watched = !self.blocking.parking.is_empty();
        if is_watched && (row.flags.has(Flags::WRITE) || self.blocking.parking.publishes_events()) {
            return None;
        }
        let Env { clients, engine, config, now, .. } = &mut self.env;
        let engine = engine.as_mut()?;
        let session = clients.sessions.at_mut(index)?;
        session.last_row = Some(row);
        let mut view = SessionView {
            database: session.database,
            now: Millis(now.unix_us / 1000),
            client_id: session.id,
            ..SessionView::default()
        };
        let protocol = session.protocol;
        let mut reply_bytes = 0;
        session.down.answer(&mut clients.pool, |out| {
            let before = out.len();
            // What may wait is not plain, so nothing is ever parked.
            let _: Outcome = engine.execute(row, args, &mut view, &mut Encoder::new(out, protocol));
            reply_bytes = out.len() - before;
        });
        if !session.is_listed {
            session.is_listed = true;
            clients.listed.push(index);
        }
        let has_much = session.down.waiting_bytes() > config.budgets.client_output_soft;
        if reply_bytes > LOGGED_REPLY_BYTES {
            self.env.note_large_reply(index, row, args, reply_bytes);
        }
        if is_watched {
            // A stream that has expired.
            self.blocking.serve_ready(&mut self.env, &mut self.subscriptions);
        }
        if has_much { Some(self.env.keep_room(index, Flow::Next)) } else { Some(Flow::Next) }
    }
}
