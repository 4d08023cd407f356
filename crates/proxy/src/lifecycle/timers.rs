//! Time: deadlines, idle clients, silent nodes, and the engine's own clock.
//!
//! Nothing here is on the way of a request. Timers are looked at every few milliseconds while anything is outstanding and
//! once a second otherwise.

use crate::config::Config;
use crate::env::Env;
use crate::ids::ClientId;
use crate::limits::{CRON_BUSY_US_MAX, CRON_IDLE_US, CRON_SHARE, CRON_US_MIN, LEAVING_SILENCE_US, SHORT_LOOK_US};
use crate::nodes::stats::note_stats;
use crate::pool::{LaneEnd, LaneUse};
use crate::request::dispatch::release_overdue;
use respool_command::{Execute, Millis};
use respool_connection::limits::TOMBSTONES_MAX;
use respool_connection::{DialFailure, Phase};

/// What requests have set since the engine's clock went on last may be due before it was to go on next.
#[inline]
pub(crate) fn hasten_engine<E: Execute>(env: &mut Env<E>) {
    let Some(engine) = &env.engine else { return };
    let now = env.engine_now();
    if let Some(Millis(at)) = engine.sooner_tick(now) {
        let at_us = env.now.mono_us + at.saturating_sub(now.0).saturating_mul(1000);
        env.engine_at_us = env.engine_at_us.min(at_us);
    }
}

impl<E: Execute> Env<E> {
    /// The timers run: what comes before all that features have to do.
    pub(crate) fn begin_cron(&mut self) {
        self.dial_ahead();
        note_stats(&self.config, &self.lanes, &self.shared, self.number);
        self.rates.note(self.now.mono_us, self.shared.traffic());
        self.is_busy = self.check_lanes();
    }

    /// Looks at what is known of nodes.
    pub(crate) fn check_nodes(&mut self) {
        self.is_busy |= self.check_health();
        self.is_busy |= self.mind_nodes();
    }

    /// Looks at connections to nodes that may be left, and at clients that may stay no longer.
    pub(crate) fn check_connections(&mut self) {
        self.lanes.try_entries(&self.config, self.now);
        self.leave_unused();
        self.check_clients();
        self.check_soft_limits();
        self.is_busy |= self.check_permits();
    }

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
            if !self.lanes[lane].throttled.is_empty() {
                // Clients that were let go on may have left since, and brought nothing that others are let go on behind.
                is_busy = true;
                self.release_throttled(lane);
                release_overdue(self, lane);
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
                // Its reader takes its time, or there is no room for what it brings.
                Phase::Ready if this.lease.is_unread() || this.is_left => is_busy = true,
                // Its deadline begins with the request's last byte.
                Phase::Ready if this.sending.is_some() => {
                    is_busy = true;
                    self.check_sender(lane);
                }
                // A request that is blocked there has its own deadline.
                Phase::Ready if this.purpose == LaneUse::Blocking || this.is_waiting => {}
                // It may say nothing for as long as it likes, once it has agreed.
                Phase::Ready if this.purpose == LaneUse::Dedicated => {}
                Phase::Ready => {
                    let owes = this.up.tickets().oldest_us();
                    is_busy |= owes.is_some() || this.up.queued_bytes() > 0;
                    let tickets = this.up.tickets();
                    let silent_since = this.silent_since_us();
                    // A node that left a reply out answers on, each reply in the place of the one before: its
                    // connection is never silent, but everything it says comes too late.
                    let late_since = this.late_since_us.filter(|_| tickets.outstanding() > 0);
                    // Requests on its successor wait for a connection that leaves.
                    let is_waited_for = this.purpose == LaneUse::Leaving && tickets.oldest_live_us().is_none();
                    let due_us = if is_waited_for { leaving_due_us } else { silence_due_us };
                    let is_over = |since_us: u64| is_over(since_us, due_us);
                    let ending = if silent_since.is_some_and(is_over) {
                        Some(LaneEnd::Silent)
                    } else if late_since.is_some_and(is_over) && !this.up.is_arriving()
                        || tickets.expired() > TOMBSTONES_MAX
                    {
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
        let all = self.clients.sessions.iter_mut();
        let idle: Vec<ClientId> =
            all.filter_map(|(index, session)| session.is_idle(now_us, idle_us).then_some(index)).collect();
        idle.into_iter().for_each(|index| self.close_client(index));
    }

    /// When this worker has something to do next, although nothing comes, beside what features have.
    pub(crate) fn next_due_us(&self) -> u64 {
        let mut due_us = if self.slices.is_empty() { self.cron_at_us } else { self.now.mono_us };
        if self.engine_at_us > 0 {
            due_us = due_us.min(self.engine_at_us);
        }
        if let Some(at) = self.scatters.words_due_us() {
            due_us = due_us.min(at);
        }
        if self.node_reads.are_stopped() && self.shared.ledger.held_bytes() <= self.config.budgets.process {
            due_us = self.now.mono_us;
        }
        self.flush_due_us(due_us)
    }

    /// The timers have run: when they do next.
    pub(crate) fn plan_cron(&mut self) {
        self.counters.dials_waiting.set(self.lanes.dialling.waiting() as u64);
        let mut interval = if self.is_busy { self.config.busy_interval_us() } else { CRON_IDLE_US };
        if !self.is_busy {
            self.clients.pool.shrink();
        }
        if let Some(probe_us) = self.lanes.next_probe_us(&self.config) {
            interval = interval.min(probe_us.saturating_sub(self.now.mono_us).max(self.config.busy_interval_us()));
        }
        if let Some(try_us) = self.lanes.next_try_us(self.now) {
            interval = interval.min(try_us - self.now.mono_us).max(CRON_US_MIN);
        }
        if self.shared.ledger.held_bytes() > self.config.budgets.process {
            interval = interval.min(SHORT_LOOK_US);
        }
        self.cron_at_us = self.now.mono_us + interval;
        self.is_cron_slow = interval > self.config.busy_interval_us();
        self.lag.plan(self.cron_at_us + self.config.busy_interval_us());
        self.schedule_client_pause();
    }
}

impl Config {
    pub(crate) fn busy_interval_us(&self) -> u64 {
        (self.timeouts.response_us / CRON_SHARE).clamp(CRON_US_MIN, CRON_BUSY_US_MAX)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{env_of, env_with_node, roomy_config};

    #[test]
    fn idle_clients_go_unless_they_are_owed_something() {
        let mut config = roomy_config();
        config.timeouts.client_idle_us = 100;
        let mut env = env_of(config, None);
        let [idle, owed] = [(), ()].map(|()| env.test_client());
        env.test_asker(owed);
        env.now.mono_us += 100;
        env.check_clients();
        assert_eq!(env.clients.sessions.len(), 2, "their time is not over");
        env.now.mono_us += 1;
        env.check_clients();
        assert!(env.clients.sessions.at(idle).is_none() && env.clients.sessions.at(owed).is_some());
    }

    #[test]
    fn timers_run_often_while_anything_is_outstanding() {
        let mut env = env_with_node();
        env.is_busy = true;
        env.plan_cron();
        let busy_us = env.cron_at_us - env.now.mono_us;
        env.is_busy = false;
        env.plan_cron();
        assert!(busy_us < env.cron_at_us - env.now.mono_us && env.is_cron_slow);
        assert_eq!(env.next_due_us(), env.cron_at_us);
        let client = env.test_client();
        env.end_slice(client);
        assert_eq!(env.next_due_us(), env.now.mono_us, "a slice goes on at once");
    }
}
