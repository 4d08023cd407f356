//! Visits of another thread: what has to be done before one, and behind it.

use crate::ids::ClientId;
use crate::interfaces::engine_calls::EngineCalls;
use crate::session::Flow;
use crate::visits::{Purpose, Visit, Visited};
use crate::worker::Worker;
use respool_command::Execute;
use respool_wire::replies;

impl<E: Execute> Worker<E> {
    /// A client has moved the clock: it is answered once all that is over by now has ended.
    #[cold]
    pub(super) fn answer_behind_time(&mut self, index: ClientId) -> Flow {
        let Some(asker) = self.env.clients.expect_behind_barrier(index) else { return Flow::Stop };
        self.visits.expect(Visit::answering(asker), self.env.counters.turns.value());
        if self.env.clients.is_leaving(index) { Flow::Stop } else { Flow::Pause }
    }

    /// Receives the visits whose letters came before this turn, once all that is over by now has ended.
    #[cold]
    pub(super) fn receive_visits(&mut self) {
        self.functions.check_client_pause(&mut self.env, &mut self.blocking);
        let is_overdue = self.blocking.next_due_us(&self.env).is_some_and(|at| at <= self.env.now.mono_us);
        // Some may be left: so many are answered in a turn, and none in one that is late.
        let ready = if is_overdue { Vec::new() } else { self.visits.take_ready(self.env.counters.turns.value()) };
        if !ready.is_empty() {
            let now = self.env.engine_now();
            self.env.engine.iter_mut().for_each(|engine| engine.expire_due(now));
            self.engine_side().tick_engine();
        }
        for purpose in ready.iter().filter_map(|visit| visit.receive()) {
            match purpose {
                Purpose::Look(look) => {
                    let now = self.env.engine_now();
                    look(Visited { engine: self.env.engine.as_mut().map(|engine| engine as &mut dyn Execute), now });
                    self.engine_side().collect_expired();
                    self.engine_side().note_script_run(None);
                }
                Purpose::Answer(asker) => self.env.clients.reply(asker, |reply| reply.raw(replies::OK)),
                Purpose::CloseClients(done) => {
                    let all = self.env.clients.sessions.places(|_| true);
                    all.iter().for_each(|index| self.env.close_client(*index));
                    self.tell_ended();
                    done(all.len());
                }
            }
        }
        if !self.visits.is_empty() {
            // The next turn begins at once, and looks at everything that time concerns.
            self.env.cron_at_us = 0;
        }
    }
}
