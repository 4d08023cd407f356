//! Time: deadlines, idle clients, silent nodes, and the engine's own clock.
//!
//! Nothing here is on the way of a request. Timers are looked at every few milliseconds while anything is outstanding and
//! once a second otherwise.

use crate::engine_changes::EngineChanges;
use crate::env::Env;
use crate::limits::{CRON_BUSY_US_MAX, CRON_IDLE_US, CRON_SHARE, CRON_US_MIN, LEAVING_SILENCE_US};
use crate::pool::{LaneEnd, LaneUse};
use crate::session::Session;
use crate::session::id::ClientId;
use crate::worker::Worker;
use respool_command::{Execute, Millis};
use respool_connection::limits::TOMBSTONES_MAX;
use respool_connection::{DialFailure, Phase};

impl<E: Execute> Worker<E> {
    /// Called at the end of every turn; does something only when its time has come.
    #[inline]
    pub(crate) fn run_timers(&mut self) {
        self.env.lanes.dialling.look_again();
        if self.env.lag.puts_off() {
            return self.env.lag.put_off(self.env.now.mono_us + self.env.busy_interval_us());
        }
        if self.env.engine_at_us > 0 && self.env.now.mono_us >= self.env.engine_at_us || self.env.cron_at_us == 0 {
            self.tick_engine();
        }
        if self.subscriptions.subscriptions_are_due(&self.env) {
            self.come_due(|this| this.subscriptions.check_push_lanes(&mut this.env));
        }
        if self.blocking.next_due_us().is_some_and(|at| self.env.now.mono_us >= at) {
            self.come_due(|this| this.blocking.handle_blocked_deadlines(&mut this.env));
        }
        if self.blocking.has_stood_in(&self.env) {
            self.come_due(|this| this.blocking.recall_from_stand_ins(&mut this.env));
        }
        if self.env.scatters.words_due_us().is_some_and(|at| self.env.now.mono_us >= at) {
            self.come_due(|this| this.env.end_waits_for_words());
        }
        let is_due = self.env.now.mono_us >= self.env.cron_at_us;
        if is_due
            || self.env.is_cron_slow
                && self.env.is_busy
                && self.env.cron_at_us > self.env.now.mono_us + self.env.busy_interval_us()
        {
            self.come_due(|this| this.run_cron(is_due));
        }
    }

    /// Runs what is due. What replies of this turn lead to comes first: a request that is outstanding, or a connection that is free.
    #[cold]
    fn come_due(&mut self, run: impl FnOnce(&mut Self)) {
        self.conclude_tasks();
        run(self);
        self.tell_ended();
    }

    /// The next turn is not late, however much time passes before it: for tests, whose time moves in steps.
    #[doc(hidden)]
    pub fn skip_time(&mut self) {
        self.env.lag.plan(u64::MAX);
    }

    fn run_cron(&mut self, is_due: bool) {
        self.check_client_pause();
        if is_due {
            self.env.dial_ahead();
            self.env.note_figures();
            self.env.is_busy = self.env.check_lanes();
            self.tell_ended();
            self.env.is_busy |= self.dedicated.handle_timer(&mut self.env);
            self.env.is_busy |= self.blocking.check_queues(&mut self.env);
            self.env.is_busy |= self.blocking.check_returns(&mut self.env);
            self.env.is_busy |= self.env.check_health();
            self.env.is_busy |= self.env.mind_nodes();
            self.env.is_busy |= self.expire_queries();
            self.env.is_busy |= self.env.check_held();
            self.env.is_busy |= self.learnings.check_learnings(&mut self.env);
            self.env.is_busy |= self.subscriptions.expire_subscriptions(&mut self.env);
            self.follow_names();
            self.env.is_busy |= self.env.renew_lanes();
            self.tell_ended();
            self.env.try_entries();
            self.env.leave_unused();
            self.env.check_clients();
            self.env.is_busy |= self.env.check_permits();
            self.account_tables();
            self.tidy_tables();
            self.env.is_busy |= self.relieve_pressure();
            self.env.is_busy |= self.admin.mind_settling(&mut self.env);
            self.check_drain();
            self.env.counters.dials_waiting.set(self.env.lanes.dialling.waiting() as u64);
        }
        let mut interval = if self.env.is_busy { self.env.busy_interval_us() } else { CRON_IDLE_US };
        if !self.env.is_busy {
            self.env.clients.pool.shrink();
        }
        if let Some(probe_us) = self.env.next_probe_us() {
            interval = interval.min(probe_us.saturating_sub(self.env.now.mono_us).max(self.env.busy_interval_us()));
        }
        if let Some(try_us) = self.env.next_try_us() {
            interval = interval.min(try_us - self.env.now.mono_us).max(CRON_US_MIN);
        }
        self.env.cron_at_us = self.env.now.mono_us + interval;
        self.env.is_cron_slow = interval > self.env.busy_interval_us();
        self.env.lag.plan(self.env.cron_at_us + self.env.busy_interval_us());
        self.env.schedule_client_pause();
    }

    #[cold]
    fn tick_engine(&mut self) {
        let now = self.env.engine_now();
        let Some(engine) = &mut self.env.engine else {
            self.env.engine_at_us = 0;
            return;
        };
        let begun_us = self.env.shared.hooks.monotonic_us();
        self.env.engine_at_us = match engine.tick(now) {
            Some(Millis(next)) => self.env.now.mono_us + next.saturating_sub(now.0).max(1) * 1000,
            None => 0,
        };
        let ended_us = self.env.shared.hooks.monotonic_us();
        if let Some((begun_us, ended_us)) = begun_us.zip(ended_us) {
            self.env.note_latency("expire-cycle", ended_us.saturating_sub(begun_us));
        }
        self.blocking.serve_ready(&mut self.env, &mut self.subscriptions);
        if self.blocking.parking.is_told {
            self.collect_changes(None);
            self.subscriptions.tell_changes(&mut self.env);
        }
    }
}

impl<E: Execute> Env<E> {
    /// Returns whether anything is outstanding.
    fn check_lanes(&mut self) -> bool {
        let mut is_busy = false;
        let (timeouts, now_us) = (self.config.timeouts, self.now.mono_us);
        let due_us = |age_us: u64| self.lag.due_us(now_us, age_us);
        let response_due_us = due_us(timeouts.response_us);
        let connect_due_us = due_us(timeouts.connect_us);
        let silence_due_us = due_us(timeouts.silence_us);
        let leaving_due_us = due_us(timeouts.silence_us.min(LEAVING_SILENCE_US));
        let is_over = |since_us: u64, due_us: Option<u64>| due_us.is_some_and(|due_us| since_us <= due_us);
        for lane in self.lanes.all.ids() {
            let this = &self.lanes[lane];
            if this.is_retired {
                continue;
            }
            if this.is_paced() {
                self.mind_paced(lane);
            }
            let this = &self.lanes[lane];
            match this.up.phase() {
                Phase::Idle if this.wants_dial => {
                    is_busy = true;
                    // That its turn does not come says nothing of the node.
                    if is_over(this.waits_since_us, response_due_us) {
                        self.end_lane(lane, LaneEnd::NotDialled);
                    }
                }
                Phase::Idle => {}
                Phase::Dialing | Phase::Shaking(_) => {
                    is_busy = true;
                    if is_over(this.dial_began_us, connect_due_us) {
                        self.close_upstream(lane);
                        self.end_lane(lane, LaneEnd::Dial(DialFailure::TimedOut));
                    }
                }
                // Its reader takes its time.
                Phase::Ready if this.is_unread => is_busy = true,
                // Its deadline begins with the request's last byte.
                Phase::Ready if this.sending.is_some() => {
                    is_busy = true;
                    self.check_sender(lane);
                }
                // Who waits there has its own time.
                Phase::Ready if this.purpose == LaneUse::Blocking || this.is_waiting => {}
                // It may say nothing for as long as it likes, once it has agreed.
                Phase::Ready if this.purpose == LaneUse::Dedicated => {}
                Phase::Ready => {
                    let owes = this.up.tickets().oldest_us();
                    is_busy |= owes.is_some() || this.up.queued_bytes() > 0;
                    let tickets = this.up.tickets();
                    let silent_since = owes.map(|since| since.max(this.up.last_heard_us()));
                    // A node that left a reply out answers on, each reply in the place of the one before: its
                    // connection is never silent, but everything it says comes too late.
                    let late_since = this.late_since_us.filter(|_| tickets.outstanding() > 0);
                    // Requests on its successor wait for a connection that leaves.
                    let is_waited_for = this.purpose == LaneUse::Leaving && tickets.oldest_live_us().is_none();
                    let due_us = if is_waited_for { leaving_due_us } else { silence_due_us };
                    let is_over = |since_us: u64| is_over(since_us, due_us);
                    let ending = if silent_since.is_some_and(is_over) {
                        Some(LaneEnd::Silent)
                    } else if late_since.is_some_and(is_over) || tickets.expired() > TOMBSTONES_MAX {
                        Some(LaneEnd::Late)
                    } else {
                        None
                    };
                    if let Some(ending) = ending {
                        self.close_upstream(lane);
                        self.end_lane(lane, ending);
                    } else {
                        self.lanes[lane].late_since_us = late_since;
                        self.expire_requests(lane);
                    }
                }
            }
        }
        is_busy
    }

    /// Disconnects idle clients.
    fn check_clients(&mut self) {
        let idle_us = self.config.timeouts.client_idle_us;
        if idle_us == 0 {
            return;
        }
        let now_us = self.now.mono_us;
        let is_idle = |s: &Session| {
            // As in Redis, who subscribes is there to listen.
            let listens = s.subscriber.as_ref().is_some_and(|s| s.is_subscribed());
            !listens && s.down.is_settled() && now_us.saturating_sub(s.last_active_us) > idle_us
        };
        let idle = self.clients.sessions.iter().filter(|(_, s)| is_idle(s));
        let idle: Vec<ClientId> = idle.map(|(index, _)| index).collect();
        idle.into_iter().for_each(|index| self.close_client(index));
    }

    fn busy_interval_us(&self) -> u64 {
        (self.config.timeouts.response_us / CRON_SHARE).clamp(CRON_US_MIN, CRON_BUSY_US_MAX)
    }
}
