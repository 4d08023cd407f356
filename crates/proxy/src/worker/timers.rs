//! What is due, in its order, for every feature.

use crate::interfaces::engine_calls::EngineCalls;
use crate::lifecycle::timers::hasten_engine;
use crate::visits::{Purpose, Visited};
use crate::worker::Worker;
use crate::worker::dispatch::with_migrations;
use crate::workers::ask::expire_queries;
use respool_command::Execute;
use respool_wire::replies;

impl<E: Execute> Worker<E> {
    /// Receives visits, if any are expected.
    #[inline]
    pub(crate) fn receive_visits(&mut self) {
        if !self.visits.is_empty() {
            receive_all(self);
        }
    }

    /// Called at the end of every turn; does something only when its time has come.
    #[inline]
    pub(crate) fn run_timers(&mut self) {
        self.env.lanes.dialling.look_again();
        hasten_engine(&mut self.env);
        if self.env.lag.puts_off() {
            return self.env.lag.put_off(self.env.now.mono_us + self.env.config.busy_interval_us());
        }
        if self.env.engine_at_us > 0 && self.env.now.mono_us >= self.env.engine_at_us || self.env.cron_at_us == 0 {
            self.engine_side().tick_engine();
        }
        if self.subscriptions.subscriptions_are_due(&self.env) {
            come_due(self, |this| this.subscriptions.check_push_lanes(&mut this.env));
        }
        if self.blocking.next_due_us(&self.env).is_some_and(|at| self.env.now.mono_us >= at) {
            come_due(self, |this| this.blocking.handle_blocked_deadlines(&mut this.env));
        }
        if self.blocking.has_stood_in(&self.env) {
            come_due(self, |this| this.blocking.recall_from_stand_ins(&mut this.env));
        }
        if self.env.scatters.words_due_us().is_some_and(|at| self.env.now.mono_us >= at) {
            come_due(self, |this| this.env.end_waits_for_words());
        }
        let is_due = self.env.now.mono_us >= self.env.cron_at_us;
        if is_due
            || self.env.is_cron_slow
                && self.env.is_busy
                && self.env.cron_at_us > self.env.now.mono_us + self.env.config.busy_interval_us()
        {
            come_due(self, |this| this.run_cron(is_due));
        }
    }

    /// The next turn is not late, however much time passes before it: for tests, whose time moves in steps.
    #[doc(hidden)]
    pub fn skip_time(&mut self) {
        self.env.lag.plan(u64::MAX);
    }

    fn run_cron(&mut self, is_due: bool) {
        self.functions.check_client_pause(&mut self.env, &mut self.blocking);
        if self.migrations.has_put_off() {
            with_migrations(self, |migrations, side| migrations.take_put_off(side));
        }
        if is_due {
            self.env.begin_cron();
            self.tell_ended();
            self.env.is_busy |= self.migrations.has_put_off() | self.dedicated.handle_timer(&mut self.env);
            self.env.is_busy |= self.blocking.check_queues(&mut self.env);
            self.env.is_busy |= self.blocking.check_returns(&mut self.env);
            self.env.check_nodes();
            self.env.is_busy |= expire_queries(self);
            self.env.is_busy |= self.env.check_held();
            self.env.is_busy |= self.learnings.check_learnings(&mut self.env);
            self.env.is_busy |= self.subscriptions.expire_subscriptions(&mut self.env);
            self.follow_names();
            self.env.is_busy |= self.env.renew_lanes();
            self.tell_ended();
            self.env.check_connections();
            self.env.account_tables(self.queries.held_bytes());
            if self.tidying.comes_due(self.env.now.mono_us) {
                self.env.shrink_tables();
                self.blocking.requests.shrink();
                self.subscriptions.shrink();
            }
            self.env.is_busy |= self.pressure.relieve(&mut self.env, self.queries.held_bytes());
            self.env.is_busy |= self.admin.mind_settling(&mut self.env);
            self.check_drain();
        }
        self.env.plan_cron();
    }
}

/// Runs what is due. What replies of this turn lead to comes first: a request that is outstanding, or a connection that is free.
#[cold]
fn come_due<E: Execute>(this: &mut Worker<E>, run: impl FnOnce(&mut Worker<E>)) {
    this.conclude_tasks();
    run(this);
    this.tell_ended();
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
