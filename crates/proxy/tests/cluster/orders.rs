//! An operator who has requests for a node held back, and lets them go on.

use super::client::shard_of;
use super::seat::Seat;
use super::settings::{SHARDS, name_of};
use super::{MS, Run, SECOND};
use respool_sim::Fault;
use respool_testkit::Rng;
use respool_wire::encode_request;

/// A node was held back from one time to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) shard: usize,
    /// When the order was answered, and when it was taken back.
    pub(super) answered_us: u64,
    pub(super) resumed_us: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    /// It has been told to hold a node of this shard back.
    Asked(usize),
    Holds(usize),
    Resuming,
}

/// The operator.
pub(super) struct Orders {
    rng: Rng,
    next_us: u64,
    /// Its connection: at which worker, and which client it is there.
    place: Option<(usize, u32)>,
    state: State,
}

impl Orders {
    pub(super) fn new(seed: u64) -> Self {
        Self { rng: Rng::part(seed, 3), next_us: 2 * SECOND, place: None, state: State::Idle }
    }

    /// When it has something to do, unless it waits for an answer.
    pub(super) fn next_us(&self) -> u64 {
        if matches!(self.state, State::Asked(_) | State::Resuming) { u64::MAX } else { self.next_us }
    }

    pub(super) fn place(&self) -> Option<(usize, u32)> {
        self.place
    }

    pub(super) fn is(&self, place: (usize, u32)) -> bool {
        self.place == Some(place)
    }
}

fn say(seat: &mut Seat, client: u32, verb: &str, shard: usize) {
    let mut request = Vec::new();
    let name = name_of(shard);
    encode_request(&mut request, ["PROXY", verb, &name].iter().map(|word| word.as_bytes()));
    seat.hear_client(client, &request);
}

impl Run {
    /// The operator does what it has to do, if it is time.
    pub(super) fn order(&mut self) {
        let now_us = self.now();
        if self.orders.next_us() > now_us {
            return;
        }
        let workers = self.seats.len();
        let place = self.orders.place.unwrap_or_else(|| {
            let seat = self.orders.rng.below(workers);
            (seat, self.seats[seat].accept(now_us))
        });
        self.orders.place = Some(place);
        let seat = &mut self.seats[place.0];
        match self.orders.state {
            State::Holds(shard) => {
                let hold = self.books.holds.last_mut().expect("it holds");
                hold.resumed_us = Some(now_us);
                say(seat, place.1, "RESUME", shard);
                self.orders.state = State::Resuming;
            }
            _ if !self.faults.are_on() => self.orders.next_us = u64::MAX,
            _ => {
                let shard = self.orders.rng.below(SHARDS);
                say(seat, place.1, "PAUSE", shard);
                self.orders.state = State::Asked(shard);
                // Until it goes on, and what waited has been done.
                let slots = (0..16_384).filter(|slot| shard_of(*slot) == shard).collect();
                self.books
                    .windows
                    .note(now_us, Fault::Slow(0, 0, SECOND), |_| std::collections::BTreeSet::clone(&slots));
            }
        }
    }

    /// The operator has its answer.
    pub(super) fn note_ordered(&mut self, reply: &[u8]) {
        assert_eq!(reply, b"+OK\r\n", "{}: {}", self.books.context, String::from_utf8_lossy(reply));
        let now_us = self.now();
        let (state, wait_us) = match self.orders.state {
            State::Asked(shard) => {
                self.books.holds.push(Hold { shard, answered_us: now_us, resumed_us: None });
                (State::Holds(shard), self.orders.rng.between(1_000, 150_000) as u64)
            }
            _ => (State::Idle, self.orders.rng.between(300_000, 1_500_000) as u64),
        };
        self.books.seen.orders += 1;
        (self.orders.state, self.orders.next_us) = (state, now_us + wait_us.max(MS));
    }
}
