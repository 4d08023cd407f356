//! When the process holds more bytes than it may: first no new client is accepted and nothing more is read, which is enough
//! for clients that take their replies; then the largest client of all workers is disconnected, and the next largest.
//!
//! Workers agree on the largest client without asking each other: in every interval each bids the bytes of its largest client,
//! and in the next one the highest bidder disconnects it.
//!
//! What was asked before still comes, in milliseconds, and that cannot wait for such intervals. So clients whose connections are full are looked
//! at in every turn. While some may yet be reading, nodes are left unread ([`crate::lifecycle::node_reads`]). A client that has taken too little
//! for a while is disconnected in that turn, the largest first, until there is room.
//!
//! A kernel says that there is room once a third of its buffer is free, which is up to a megabyte: no sign of that is no sign that a client takes
//! nothing. So before a client is disconnected its connection is written once more ([`Action::TryWrite`]): the kernel takes as many bytes as
//! its client's side has acknowledged, with TLS and over unix sockets as well.
//!
//! ```text
//!                      too much is held, and                 one has taken too little for long,
//!                      connections of clients are full       and nothing now: it is disconnected
//!   [nodes are read] ---------------------------> [unread] ------------------------------.
//!         ^                                          |                                   |
//!         '------------------------------------------'-----------------------------------'
//!           there is room, none may be reading, or that has lasted for long
//! ```
//!
//! Workers tell each other in short intervals how large the largest of these clients are, and none disconnects one that is less than half as large.
//!
//! What is free is not held, and yet the process occupies it until the allocator gives it back. On the way up, where every buffer that
//! grows leaves its predecessor behind, and on the way down, where others fill what a client that was disconnected has left, that is as
//! much again. So it is given back in steps, as [`crate::limits::GIVE_BACK_DIVISOR`] says,
//! and not more often than [`crate::limits::GIVE_BACK_INTERVAL_US`].

use crate::env::Env;
use crate::ids::ClientId;
use crate::lifecycle::eviction_vote::{EvictionVote, SIZE_BITS};
use crate::limits::{
    PRESSURE_EXCESS_DIVISOR, PRESSURE_INTERVAL_US, PRESSURE_PATIENCE_US, PRESSURE_TAKER_EXCESS_DIVISOR,
    SHORT_INTERVAL_US, SHORT_TURN_NS_PER_CLIENT, SHORT_TURN_US, SPARED_DIVISOR, SPARED_PATIENCE_US, TAKES_ALL_US,
    TAKES_NOTHING_US, TRIED_WRITES_MAX, UNREAD_SHARE_DIVISOR,
};
use crate::session::disconnect_log::DisconnectReason;
use crate::session::reply_window::Taking;
use crate::session::{PauseReasons, Session};
use respool_command::Execute;
use respool_connection::Action;

/// What one worker knows of the pressure.
#[derive(Debug, Default)]
pub(crate) struct MemoryPressure {
    /// Since when too much has been held.
    since_us: Option<u64>,
    /// What this worker has bid: for its largest client, and for the largest that has said NO-EVICT.
    others: Bidder,
    spared: Bidder,
    /// With more than this it is looked at again what all clients hold and what is free.
    noted_bytes: usize,
    /// Clients that take nothing are not looked at again before then.
    look_at_us: u64,
    /// How often that was done.
    looks: u64,
    /// When that was last to be done, and for how long nodes were left unread of late.
    looked_us: u64,
    waited_us: u64,
}

impl MemoryPressure {
    /// To be called in every turn: looks at the memory of clients, and at what is free, where more is held than before.
    #[inline]
    pub(crate) fn note_growth(&mut self, env: &mut Env<impl Execute>) {
        let budgets = &env.config.budgets;
        let looked_at = self.noted_bytes.min(budgets.clients).min(budgets.process);
        if env.shared.ledger.held_bytes() > looked_at || env.node_reads.are_stopped() {
            env.check_client_memory();
            self.take_step(env);
            self.mind_unread(env);
        }
    }

    /// Disconnects clients that take nothing while too much is held, or leaves nodes unread while that is not known of all.
    #[cold]
    fn mind_unread(&mut self, env: &mut Env<impl Execute>) {
        let (now_us, budget) = (env.now.mono_us, env.config.budgets.process);
        note_unread_time(env);
        let is_short = |env: &Env<_>| env.shared.ledger.held_bytes() > budget;
        let passed_us = now_us - std::mem::replace(&mut self.looked_us, now_us);
        self.waited_us = match env.node_reads.are_stopped() {
            true => self.waited_us + passed_us,
            false => self.waited_us.saturating_sub(passed_us / UNREAD_SHARE_DIVISOR),
        };
        if !is_short(env) {
            // A client that takes has made room: the patience with the largest begins anew.
            self.since_us = None;
            return read_nodes_on(env);
        }
        if now_us < self.look_at_us {
            return;
        }
        let all_us = if self.waited_us < PRESSURE_PATIENCE_US { u64::MAX } else { TAKES_ALL_US };
        let mut full = full_clients(env);
        self.look_at_us = now_us + SHORT_TURN_US + full.len() as u64 * SHORT_TURN_NS_PER_CLIENT / 1_000;
        self.looks += 1;
        let interval = now_us / SHORT_INTERVAL_US % (1 << (64 - SIZE_BITS));
        env.shared.ledger.full.bid(interval, full.first().map_or(0, |(bytes, ..)| *bytes));
        let largest = env.shared.ledger.full.highest(interval).max(1);
        // What messages of subscribers take is given back behind this turn, so that the ledger does not say yet when enough are disconnected.
        let mut excess = env.shared.ledger.held_bytes().saturating_sub(budget);
        let mut tries = TRIED_WRITES_MAX;
        full.retain(|(bytes, taking, index)| {
            // The smaller, the later: that it was known of a smaller one earlier says nothing against it.
            let nothing_us = TAKES_NOTHING_US * largest as u64 / (*bytes).max(1) as u64;
            let may_go = *bytes >= largest / 2 && taking.is_slow(now_us, nothing_us, all_us) && excess > 0;
            let goes = may_go && has_been_tried(env, *index, self.looks, &mut tries);
            if goes {
                env.cut_off(*index, DisconnectReason::Memory);
                excess = excess.saturating_sub(*bytes);
            }
            !goes
        });
        if full.is_empty() || !is_short(env) {
            read_nodes_on(env);
        } else if env.node_reads.stop(now_us) {
            env.counters.nodes_left_unread.add(1);
        }
    }

    /// Gives back what is free, if it is time, and says when to look again.
    fn take_step(&mut self, env: &Env<impl Execute>) {
        let (ledger, budget) = (&env.shared.ledger, env.config.budgets.process);
        if ledger.takes_step(budget, env.now.mono_us) {
            env.shared.hooks.give_back();
        }
        self.noted_bytes = ledger.next_step(budget);
    }

    /// Reads clients again that had to wait for memory, or disconnects the largest. `held_bytes`: what tables of features hold.
    /// Returns whether there is too little memory.
    pub(crate) fn relieve(&mut self, env: &mut Env<impl Execute>, held_bytes: usize) -> bool {
        let budget = env.config.budgets.process;
        if env.shared.ledger.held_bytes() > budget {
            // Spare buffers go first.
            env.clients.pool.empty();
            env.shared.last_words().forget();
            env.account_tables(held_bytes);
        }
        self.take_step(env);
        let held = env.shared.ledger.held_bytes();
        if held <= budget {
            self.since_us = None;
            (self.others, self.spared) = Default::default();
            let waiting = env.clients.sessions.places(|session| session.pause.has(PauseReasons::PRESSURE));
            waiting.into_iter().for_each(|index| env.clients.unpause(index, PauseReasons::PRESSURE));
            return false;
        }
        if self.is_over_patience(env.now.mono_us, held - budget, budget) {
            let is_large = held - budget > budget / PRESSURE_TAKER_EXCESS_DIVISOR;
            self.disconnect_largest(env, is_large);
        }
        true
    }

    /// Whether a client has to go: the excess is large, or has lasted.
    fn is_over_patience(&mut self, now_us: u64, excess: usize, budget: usize) -> bool {
        let since_us = *self.since_us.get_or_insert(now_us);
        excess > budget / PRESSURE_EXCESS_DIVISOR || now_us - since_us >= PRESSURE_PATIENCE_US
    }

    /// Disconnects the largest client of all workers. One that takes what waits for it, and so makes room, goes only for a very large excess;
    /// no smaller one goes in its place. One that has said NO-EVICT goes only if no other of any worker would help.
    fn disconnect_largest(&mut self, env: &mut Env<impl Execute>, is_large: bool) {
        let queues = env.lanes.queues_of_clients();
        let queue_of = |index| env.clients.sessions.handle(index).and_then(|handle| queues.get(&handle)).copied();
        let held_by = |(index, s): (ClientId, &Session)| (s.eviction_bytes() + queue_of(index).unwrap_or(0), index);
        let sessions = env.clients.sessions.iter().filter(|(_, session)| session.departure().is_none());
        let held = sessions.map(|one @ (_, session)| (held_by(one), session.details.is_no_evict));
        let (spared, others): (Vec<_>, Vec<_>) = held.partition(|(_, is_spared)| *is_spared);
        let largest = |held: Vec<((usize, ClientId), bool)>| held.into_iter().map(|(held, _)| held).max();
        let (now_us, ledger) = (env.now.mono_us, &env.shared.ledger);
        let winner = |bidder: &mut Bidder, vote: &EvictionVote, of: Option<(usize, ClientId)>| {
            of.filter(|(bytes, _)| *bytes > 0 && bidder.has_won(vote, now_us, *bytes)).map(|(_, index)| index)
        };
        let other = winner(&mut self.others, &ledger.auction, largest(others));
        let spared = winner(&mut self.spared, &ledger.spared, largest(spared));
        // Where no other's going would help, all would go one after the other and none be served.
        let interval = interval_at(now_us);
        let others_help = ledger.auction.highest(interval) >= ledger.spared.highest(interval) / SPARED_DIVISOR;
        let has_lasted = self.since_us.is_some_and(|since_us| now_us - since_us >= SPARED_PATIENCE_US);
        let goes = if others_help { other } else { spared.filter(|_| has_lasted) };
        if let Some(index) = goes.filter(|index| is_large || !makes_room(env, *index)) {
            env.cut_off(index, DisconnectReason::Memory);
        }
    }
}

/// The number of an interval. The monotonic clock is the same for all workers.
fn interval_at(now_us: u64) -> u64 {
    now_us / PRESSURE_INTERVAL_US % (1 << (64 - SIZE_BITS))
}

/// What one worker has bid for one kind of clients.
#[derive(Debug, Default)]
struct Bidder {
    /// The last bid: interval and bytes.
    last: Option<(u64, usize)>,
}

impl Bidder {
    /// Whether the bid of the interval before was the highest of all workers. If not, `bytes` are bid in this one, once.
    fn has_won(&mut self, auction: &EvictionVote, now_us: u64, bytes: usize) -> bool {
        let interval = interval_at(now_us);
        if let Some((before, bid)) = self.last.filter(|(before, _)| *before != interval) {
            self.last = None;
            if before + 1 == interval && auction.is_highest(before, bid) {
                return true;
            }
        }
        if self.last.is_none() {
            auction.bid(interval, bytes);
            self.last = Some((interval, bytes));
        }
        false
    }
}

/// As in Redis, CLIENT NO-EVICT keeps a client connected however much is held for it. One that has left goes by itself.
fn may_go((_, session): &(ClientId, &Session)) -> bool {
    !session.details.is_no_evict && session.departure().is_none()
}

/// Whether a client may be left to make room by taking what waits for it, which is most of what it holds: its connection is full, and
/// [`MemoryPressure::mind_unread`] sees to it, or it has taken enough lately.
fn makes_room<E>(env: &Env<E>, index: ClientId) -> bool {
    let Some(session) = env.clients.sessions.at(index) else { return false };
    let is_minded = session.is_blocked && !session.details.is_no_evict;
    let is_slow = || session.details.taking.is_slow(env.now.mono_us, TAKES_NOTHING_US, u64::MAX);
    let waiting =
        session.reply_bytes() + session.subscriber.as_ref().map_or(0, |subscriber| subscriber.backlog_bytes());
    waiting >= session.eviction_bytes() / 2 && (is_minded || !is_slow())
}

/// Whether a client's connection was written at the look before, although nothing said that there was room. If not, that is done now.
fn has_been_tried<E>(env: &mut Env<E>, index: ClientId, look: u64, tries: &mut usize) -> bool {
    let Some(session) = env.clients.sessions.at_mut(index).filter(|_| *tries > 0) else { return false };
    if session.details.taking.was_tried_before(look) {
        return true;
    }
    *tries -= 1;
    env.actions.push_back(Action::TryWrite { conn: index.conn() });
    false
}

/// Clients whose connections are full: what is held for each, how it takes it, and which it is. The largest comes first.
fn full_clients<E>(env: &Env<E>) -> Vec<(usize, Taking, ClientId)> {
    let sessions = &env.clients.sessions;
    let clients = env.clients.full.iter().filter_map(|index| Some((*index, sessions.at(*index)?)));
    let clients = clients.filter(|(_, session)| session.is_blocked).filter(may_go);
    let mut full: Vec<_> =
        clients.map(|(index, session)| (session.eviction_bytes(), session.details.taking, index)).collect();
    full.sort_unstable_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
    full
}

/// What nodes may have said while they were left unread is not late. Less than an interval of the timers makes no difference.
fn note_unread_time(env: &mut Env<impl Execute>) {
    let now_us = env.now.mono_us;
    if let Some(unread_us) = env.node_reads.take_unread_time(now_us, env.config.busy_interval_us()) {
        env.lag.note_unread(now_us.saturating_sub(unread_us), now_us);
    }
}

/// Reads nodes again that had been left unread.
fn read_nodes_on(env: &mut Env<impl Execute>) {
    let now_us = env.now.mono_us;
    let unread = env.node_reads.go_on(now_us);
    note_unread_time(env);
    for lane in unread {
        // Another may be in its place by now, which has not been left.
        if let Some(this) = env.lanes.all.get_mut(lane)
            && std::mem::take(&mut this.is_left)
        {
            this.up.note_heard(now_us);
            env.actions.push_back(Action::Resume { conn: lane.conn() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Bidder, EvictionVote, MemoryPressure, PRESSURE_EXCESS_DIVISOR, PRESSURE_INTERVAL_US, PRESSURE_PATIENCE_US,
    };
    use crate::env::Env;
    use crate::hooks::Hooks;
    use crate::ids::ClientId;
    use crate::testing::env_with_node;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// How often memory is given back while so much is held for a millisecond each, at each turn and at each look at the timers of two
    /// workers, by turns.
    fn given_back(held: impl Iterator<Item = usize>, budget: usize) -> usize {
        let given = Arc::new(AtomicUsize::new(0));
        let mut env = env_with_node();
        let shared = Arc::get_mut(&mut env.shared).expect("it is this worker's alone");
        let counted = Arc::clone(&given);
        shared.hooks = Hooks::default().with_allocator(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        Arc::make_mut(&mut env.config).budgets.process = budget;
        let mut workers = [MemoryPressure::default(), MemoryPressure::default()];
        for held in held {
            env.now.mono_us += 1_000;
            env.shared.ledger.account(env.shared.ledger.held_bytes(), held);
            for pressure in &mut workers {
                pressure.note_growth(&mut env);
                pressure.relieve(&mut env, 0);
            }
        }
        given.load(Ordering::Relaxed)
    }

    #[test]
    fn giving_memory_back_takes_a_bounded_share_of_the_time() {
        let (budget, time_ms) = (32 << 20, 1_000);
        let swings = (0..time_ms).map(|at| if at % 2 == 0 { 17 << 20 } else { 12 << 20 });
        let short = (0..time_ms).map(|_| budget + budget / PRESSURE_EXCESS_DIVISOR / 2);
        for given in [given_back(swings, budget), given_back(short, budget)] {
            assert!((90..=100).contains(&given), "{given} times in a second");
        }
    }

    #[test]
    fn only_the_highest_bidder_disconnects_in_the_next_interval() {
        let auction = EvictionVote::default();
        let [mut small, mut large] = [Bidder::default(), Bidder::default()];
        let at = |interval: u64| interval * PRESSURE_INTERVAL_US;
        for worker in [&mut small, &mut large] {
            assert!(!worker.has_won(&auction, at(4), 2 << 20), "nothing was bid before");
        }
        assert!(!large.has_won(&auction, at(4) + 1, 9 << 20), "one bid in an interval");
        assert!(!small.has_won(&auction, at(6), 3 << 20), "a bid that is older than an interval does not count");
        assert!(!large.has_won(&auction, at(6), 5 << 20));
        assert!(!small.has_won(&auction, at(7), 3 << 20), "another worker has bid more");
        assert!(large.has_won(&auction, at(7), 5 << 20));
        assert!(!large.has_won(&auction, at(7), 5 << 20), "one client in an interval");
    }

    /// Two workers, in the first of which a client has said NO-EVICT and holds so much, as one of the second does. Whether each is there in
    /// the end.
    fn who_stays(spared_bytes: usize, other_bytes: usize) -> [bool; 2] {
        let mut workers = [(env_with_node(), MemoryPressure::default()), (env_with_node(), MemoryPressure::default())];
        workers[1].0.shared = Arc::clone(&workers[0].0.shared);
        let clients = [spared_bytes, other_bytes].into_iter().zip(&mut workers).map(|(bytes, (env, _))| {
            let client = env.test_client();
            Arc::make_mut(&mut env.config).budgets.process = (spared_bytes + other_bytes) * 15 / 16;
            env.answer(client, |reply| reply.bulk(&vec![b'x'; bytes]));
            let Env { clients, shared, .. } = env;
            clients.sessions.at_mut(client).expect("it has just come").account(&shared.ledger);
            client
        });
        let clients: Vec<ClientId> = clients.collect();
        workers[0].0.test_session(clients[0]).details.is_no_evict = true;
        for _ in 0..20 * (PRESSURE_PATIENCE_US / PRESSURE_INTERVAL_US) {
            for (env, pressure) in &mut workers {
                env.now.mono_us += PRESSURE_INTERVAL_US / 2;
                pressure.relieve(env, 0);
            }
            let now_us = workers.each_ref().map(|(env, _)| env.now.mono_us).into_iter().max().unwrap_or(0);
            workers.iter_mut().for_each(|(env, _)| env.now.mono_us = now_us);
        }
        [0, 1].map(|worker| workers[worker].0.clients.sessions.at(clients[worker]).is_some())
    }

    #[test]
    fn who_says_no_evict_is_spared_for_a_client_of_another_worker() {
        assert_eq!(who_stays(8 << 20, 2 << 20), [true, false], "the other's going helps");
        assert_eq!(who_stays(8 << 20, 100 << 10), [false, true], "it would not");
    }

    #[test]
    fn a_small_excess_is_borne_for_a_while_and_a_large_one_is_not() {
        let budget = 1 << 20;
        let excess = budget / PRESSURE_EXCESS_DIVISOR;
        let mut pressure = MemoryPressure::default();
        assert!(!pressure.is_over_patience(5, excess, budget));
        assert!(!pressure.is_over_patience(4 + PRESSURE_PATIENCE_US, excess, budget));
        assert!(pressure.is_over_patience(5 + PRESSURE_PATIENCE_US, excess, budget));
        assert!(MemoryPressure::default().is_over_patience(5, excess + 1, budget));
    }
}
