//! What the proxy sees of requests without looking at each: slow ones, and samples of all.
//!
//! Once for each read from a node, two numbers are compared: how long its first reply was waited for, and a countdown. Only
//! if one of them says so is the request looked up that the reply belongs to, among the batches that the connection keeps
//! until they are answered. A request that is not sampled costs nothing.

use crate::env::Env;
use crate::ids::{Handle, LaneId};
use crate::limits::SAMPLED_REQUESTS_MAX;
use crate::observe::samples::{Flight, each_request, length_of};
use crate::observe::slow_log;
use crate::observe::slow_log::Slow;
use crate::pool::LaneUse;
use crate::reply::owner::Owner;
use respool_command::{Execute, resolve};
use respool_connection::InFlight;

impl<E: Execute> Env<E> {
    /// Bytes have come from a node: what is of note in them, or of their request.
    #[inline]
    pub(crate) fn look_at(&mut self, lane: LaneId, bytes: &[u8]) {
        if self.is_worth_a_look(lane) {
            self.look(lane, bytes);
        }
        if bytes.first() == Some(&b'-') {
            self.look_at_error(lane, bytes);
        }
    }

    /// Whether the request that the next reply belongs to is worth looking at.
    #[inline]
    fn is_worth_a_look(&mut self, lane: LaneId) -> bool {
        self.seen.countdown = self.seen.countdown.saturating_sub(1);
        let Some(since_us) = self.lanes[lane].up.waiting_since_us() else { return false };
        self.seen.countdown == 0 || self.now.mono_us - since_us.min(self.now.mono_us) > self.config.seeing.slow_us
    }

    /// Looks at the request that the next reply belongs to, and whose beginning is in `bytes`.
    #[cold]
    fn look(&mut self, lane: LaneId, bytes: &[u8]) {
        let terms = self.config.seeing;
        let is_sampled = self.seen.countdown == 0;
        if is_sampled {
            self.seen.begin_countdown(terms);
        }
        let this = &self.lanes[lane];
        if matches!(this.purpose, LaneUse::Push | LaneUse::Listen) || !this.up.is_ready() {
            return;
        }
        let (Some(flight), Some(since_us)) = (this.up.in_flight(), this.up.waiting_since_us()) else { return };
        let now_us = self.now.mono_us;
        let is_slow = now_us.saturating_sub(since_us) > terms.slow_us;
        let upstream_us = now_us.saturating_sub(flight.written_us.max(since_us));
        let slow = is_slow.then(|| self.describe_slow(lane, &flight, upstream_us));
        if is_sampled && terms.sample_every > 0 {
            let reply_bytes = if this.up.partial_bytes() == 0 { length_of(bytes) } else { None };
            let flight_of = Flight { batch: flight.batch.to_vec(), number: flight.number };
            self.sample(&flight_of, upstream_us, reply_bytes);
        }
        if let Some(slow) = slow {
            self.counters.slow_requests.add(1);
            self.seen.slow.note(slow, terms.slow_entries);
        }
    }

    fn describe_slow(&self, lane: LaneId, flight: &InFlight<'_>, upstream_us: u64) -> Slow {
        let this = &self.lanes[lane];
        let asker = match this.up.tickets().front().copied() {
            Some(Owner::Client { index, generation, .. } | Owner::Unanswered { index, generation }) => {
                Some(Handle { index, generation })
            }
            _ => None,
        };
        let session = asker.and_then(|asker| self.clients.sessions.get(asker).map(|session| (asker.index, session)));
        let mut command = "(not kept)".to_owned();
        let mut at = 0;
        each_request(flight.batch, |args| {
            if at == flight.number {
                command = match resolve(args) {
                    Ok(row) => slow_log::shown(row, args),
                    Err(_) => args.name().escape_ascii().to_string(),
                };
            }
            at += 1;
            at <= flight.number
        });
        Slow {
            unix_us: self.now.unix_us,
            queue_us: flight.written_us.saturating_sub(flight.queued_us),
            upstream_us,
            total_us: self.now.mono_us.saturating_sub(flight.queued_us),
            node: self.lanes.nodes[this.node].name.clone(),
            client: session.map_or_else(String::new, |(_, session)| session.details.peer.address.clone()),
            client_name: session.map_or_else(String::new, |(_, session)| session.details.name.to_string()),
            user: session.map_or_else(String::new, |(index, _)| self.clients.user_of(index).to_owned()),
            command,
        }
    }

    /// Counts the keys of a batch whose first reply is due, or of one request, and the time that it took.
    fn sample(&mut self, flight: &Flight, upstream_us: u64, reply_bytes: Option<usize>) {
        let mut at = 0;
        let (number, seen) = (flight.number, &mut self.seen);
        let shared = &self.shared;
        each_request(&flight.batch, |args| {
            if at >= number
                && let Ok(row) = resolve(args)
            {
                let is_next = at == number;
                if is_next {
                    seen.latency_of(row, |name| shared.histogram("command", name)).record(upstream_us);
                }
                seen.note_keys(row, args, reply_bytes.filter(|_| is_next));
            }
            at += 1;
            at < number + SAMPLED_REQUESTS_MAX
        });
    }
}
