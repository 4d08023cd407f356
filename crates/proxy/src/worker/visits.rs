//! Visits of another thread: what has to be done before one, and behind it.

use crate::ids::ClientId;
use crate::interfaces::engine_calls::EngineCalls;
use crate::session::Flow;
use crate::visits::{Purpose, Visit, Visited};
use crate::worker::Worker;
use respool_command::Execute;
use respool_wire::replies;

/// A client has moved the clock: it is answered once all that is over by now has ended.
#[cold]
pub(super) fn answer_behind_time<E: Execute>(this: &mut Worker<E>, index: ClientId) -> Flow {
    let Some(asker) = this.env.clients.expect_behind_barrier(index) else { return Flow::Stop };
    this.visits.expect(Visit::answering(asker), this.env.counters.turns.value());
    if this.env.clients.is_leaving(index) { Flow::Stop } else { Flow::Pause }
}

/// Receives visits, if any are expected.
#[inline]
pub(super) fn receive_visits<E: Execute>(this: &mut Worker<E>) {
    if !this.visits.is_empty() {
        receive_all(this);
    }
}

/// Receives the visits whose letters came before this turn, once all that is over by now has ended.
#[cold]
fn receive_all<E: Execute>(this: &mut Worker<E>) {
    this.functions.check_client_pause(&mut this.env, &mut this.blocking);
    let is_overdue = this.blocking.next_due_us(&this.env).is_some_and(|at| at <= this.env.now.mono_us);
    // Some may be left: so many are answered in a turn, and none in one that is late.
    let ready = if is_overdue { Vec::new() } else { this.visits.take_ready(this.env.counters.turns.value()) };
    if !ready.is_empty() {
        let now = this.env.engine_now();
        this.env.engine.iter_mut().for_each(|engine| engine.expire_due(now));
        this.engine_side().tick_engine();
    }
    for purpose in ready.iter().filter_map(|visit| visit.receive()) {
        match purpose {
            Purpose::Look(look) => {
                let now = this.env.engine_now();
                look(Visited { engine: this.env.engine.as_mut().map(|engine| engine as &mut dyn Execute), now });
                this.engine_side().collect_expired();
                this.engine_side().note_run_apart(None);
            }
            Purpose::Answer(asker) => this.env.clients.reply(asker, |reply| reply.raw(replies::OK)),
            Purpose::CloseClients(done) => {
                let all = this.env.clients.sessions.places(|_| true);
                all.iter().for_each(|index| this.env.close_client(*index));
                this.tell_ended();
                done(all.len());
            }
        }
    }
    if !this.visits.is_empty() {
        // The next turn begins at once, and looks at everything that time concerns.
        this.env.cron_at_us = 0;
    }
}
