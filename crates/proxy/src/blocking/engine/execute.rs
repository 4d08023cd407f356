//! Requests that the engine in this process answers at once, and what they mean to those that wait for it.

use crate::blocking::engine::EngineSide;
use crate::env::Env;
use crate::ids::ClientId;
use crate::interfaces::call::Call;
use crate::interfaces::engine_changes::EngineChanges;
use crate::reply::progress::ReplyMode;
use crate::session::Flow;
use respool_command::{Execute, Flags, Millis, Outcome, SessionView, lookup};
use respool_wire::{Encoder, Request};

impl<E: Execute, C: EngineChanges> EngineSide<'_, E, C> {
    /// The engine in this process answers at once.
    #[inline]
    pub(crate) fn execute(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        if !self.blocking.parking.is_empty() && (row.flags.has(Flags::WRITE) || self.blocking.parking.is_told) {
            return self.execute_watched(call);
        }
        let now = self.env.engine_now();
        let Some(engine) = &mut self.env.engine else { return Flow::Stop };
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
        let is_in_transaction = session.is_amid_exec_reply();
        let (database, client_id) = (session.database, session.id.get());
        let mut view = SessionView { database, now, client_id, is_in_transaction, ..SessionView::default() };
        let protocol = session.protocol;
        if session.reply_mode != ReplyMode::On {
            let mut unwanted = Vec::new();
            let _: Outcome = engine.execute(row, request.args, &mut view, &mut Encoder::new(&mut unwanted, protocol));
            session.reply_mode.pass();
            self.env.command_log.unwanted = unwanted;
            self.serve_after(index);
            return Flow::Next;
        }
        self.env.clients.answer(index, |out| {
            // What may wait does not come here, so nothing is ever parked.
            let _: Outcome = engine.execute(row, request.args, &mut view, &mut Encoder::new(out, protocol));
        });
        self.serve_after(index);
        self.env.keep_room(index, Flow::Next)
    }

    /// A request that may be plain. `None`: it is not, and nothing has been done.
    #[inline(always)]
    pub(crate) fn execute_plain(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        let args = request.args;
        let row = lookup(args.name()).filter(|row| row.is_quick && row.accepts(args.len()))?;
        let is_watched = !self.blocking.parking.is_empty();
        if is_watched && (row.flags.has(Flags::WRITE) || self.blocking.parking.publishes_events()) {
            return None;
        }
        let Env { clients, engine, config, now, command_log, .. } = &mut *self.env;
        let engine = engine.as_mut()?;
        let session = clients.sessions.at_mut(index)?;
        if !command_log.calls.begin_plain(row) {
            return None;
        }
        session.last_row = Some(row);
        let mut view = SessionView {
            database: session.database,
            now: Millis(now.unix_us / 1000),
            client_id: session.id.get(),
            ..SessionView::default()
        };
        let protocol = session.protocol;
        let mut reply_bytes = 0;
        session.down.answer(&mut clients.pool, |out| {
            let before = out.len();
            // What may wait is not plain, so nothing is ever parked.
            let _: Outcome = engine.execute(row, args, &mut view, &mut Encoder::new(out, protocol));
            reply_bytes = out.len() - before;
            if out.get(before) == Some(&b'-') {
                command_log.calls.fail_plain(row, &out[before..]);
            }
        });
        if !session.is_listed {
            session.is_listed = true;
            clients.listed.push(index);
        }
        let has_much = session.down.waiting_bytes() > config.budgets.client_output_soft;
        if reply_bytes as u64 >= config.seeing.large_replies.bytes_min {
            self.env.note_large_reply(index, row, args, reply_bytes);
        }
        if is_watched {
            // A stream that has expired.
            self.serve_ready();
        }
        if has_much { Some(self.env.keep_room(index, Flow::Next)) } else { Some(Flow::Next) }
    }
}
