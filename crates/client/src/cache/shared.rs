//! What the callers of a cache and the thread that reads for it share: the book, the callers that wait, and the requests that are
//! to be sent.

use super::book::{Book, FetchId, Found, Tick};
use super::{CacheStats, Caching};
use crate::cluster::Shared as Cluster;
use crate::core::Waiter;
use crate::limits::CLUSTER_SILENCE;
use crate::{Config, Error, ErrorKind, Outcome as Sent, Reply, ServerError};
use bytes::Bytes;
use respool_route::cluster::{Address, Redirect, Trigger};
use respool_wire::Protocol;
use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What a caller that waits is told.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Reply(Reply),
    /// The key has changed since the request was sent, and the caller came later than that: it reads again.
    Overtaken,
    /// The connection was lost; how. It may read again.
    Lost(Arc<str>),
    Failed(ErrorKind, Sent),
}

/// Where one caller waits.
#[derive(Debug)]
pub(super) struct Seat {
    tick: Tick,
    until: Option<Instant>,
    state: Mutex<(Waiter, Option<Outcome>)>,
}

impl Seat {
    /// What the caller was told, or it waits.
    pub(super) fn take(&self, waiter: impl Fn() -> Waiter) -> Option<Outcome> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = state.1.take() {
            return Some(outcome);
        }
        let old = std::mem::replace(&mut state.0, waiter());
        drop(state);
        drop(old);
        None
    }

    fn tell(&self, outcome: Option<Outcome>) -> Waiter {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.is_some() {
            state.1 = outcome;
        }
        std::mem::take(&mut state.0)
    }
}

/// A request that has not been sent.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) id: FetchId,
    pub(super) key: Bytes,
    pub(super) request: Bytes,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) book: Book<Reply>,
    seats: HashMap<FetchId, Vec<Arc<Seat>>>,
    pub(super) work: VecDeque<Work>,
    /// When a caller's time is over next, as far as it was looked.
    next_late: Option<Instant>,
    has_pump: bool,
    /// The thread was woken since it last looked at the queue of requests.
    pub(super) is_woken: bool,
    is_closed: bool,
    last_failure: Option<Arc<str>>,
    stats: CacheStats,
}

/// The node of a cluster that a cache is of.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) cluster: Weak<Cluster>,
    pub(crate) address: Address,
}

impl Membership {
    /// What the node's error asks for, if it did not serve the slot.
    pub(super) fn redirect(&self, error: &ServerError) -> Option<Redirect> {
        Redirect::parse(error.bytes(), &self.address)
    }
}

/// A cache of one server.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) config: Config,
    pub(super) caching: Caching,
    /// Of a node that may lose its slots: it tells nothing of keys that have gone to another then.
    pub(super) membership: Option<Membership>,
    state: Mutex<State>,
    began: Instant,
    /// When the server was last heard, in microseconds; 0 while there is no connection.
    pub(super) heard_us: AtomicU64,
    /// When the last attempt to connect to a node of a cluster failed, or was not over in time, in microseconds; 0 once there is a connection.
    out_us: AtomicU64,
    /// A byte in the first wakes the thread, which listens at the second.
    bell: Option<(UnixStream, Arc<UnixStream>)>,
}

fn bell() -> std::io::Result<(UnixStream, Arc<UnixStream>)> {
    let (rings, listens) = UnixStream::pair()?;
    rings.set_nonblocking(true)?;
    listens.set_nonblocking(true)?;
    Ok((rings, Arc::new(listens)))
}

impl Shared {
    pub(crate) fn new(mut config: Config, caching: Caching, membership: Option<Membership>) -> Arc<Self> {
        let mut request = Vec::new();
        let mut words: Vec<&[u8]> = vec![b"CLIENT", b"TRACKING", b"ON"];
        if let Some(prefixes) = &caching.prefixes {
            words.push(b"BCAST");
            prefixes.iter().for_each(|prefix| words.extend([&b"PREFIX"[..], prefix]));
        }
        respool_wire::encode_request(&mut request, words.into_iter());
        config.identity.tracking = Some(request.into());
        config.identity.protocol = Protocol::Resp3;
        let ttl_us = u64::try_from(caching.ttl.as_micros()).unwrap_or(u64::MAX);
        let state = State {
            book: Book::new(caching.bytes_max, ttl_us),
            seats: HashMap::new(),
            work: VecDeque::new(),
            next_late: None,
            has_pump: false,
            is_woken: false,
            is_closed: false,
            last_failure: None,
            stats: CacheStats::default(),
        };
        Arc::new(Self {
            config,
            caching,
            membership,
            state: Mutex::new(state),
            began: Instant::now(),
            heard_us: AtomicU64::new(0),
            out_us: AtomicU64::new(0),
            bell: bell().ok(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the cache was made, and one.
    pub(super) fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64 + 1
    }

    pub(super) fn is_observed(&self) -> bool {
        self.config.observer.0.is_some()
    }

    /// For how long a call waits here at most, beside its own limit: a node of a cluster that is silent is not waited for as long as a call may
    /// take. `None`: a connection cannot be made, and the call does not wait at all. Now and then one asks for its value nevertheless, for
    /// which an attempt is made while it goes on elsewhere.
    pub(super) fn patience(&self) -> Option<Duration> {
        if self.membership.is_none() {
            return Some(Duration::MAX);
        }
        match self.out_us.load(Ordering::Acquire) {
            0 => Some(CLUSTER_SILENCE),
            out_us => {
                let since = Duration::from_micros(self.now_us().saturating_sub(out_us));
                (since >= CLUSTER_SILENCE && self.lock().work.is_empty()).then_some(Duration::ZERO)
            }
        }
    }

    /// A call has waited for as long as it may. If there is no connection, the next ones do not wait for one.
    pub(super) fn note_waited(&self) {
        // Under the lock under which a connection is noted: what is out stays so until there is one.
        let _state = self.lock();
        if self.membership.is_some() && self.heard_us.load(Ordering::Acquire) == 0 {
            self.out_us.store(self.now_us(), Ordering::Release);
        }
    }

    /// A reader begins.
    pub(super) fn begin(&self) -> Tick {
        self.lock().book.begin()
    }

    /// Whether the server was heard lately, so that it would have told of a change.
    fn is_heard(&self, now_us: u64) -> bool {
        let silence_us = u64::try_from(self.caching.silence.as_micros()).unwrap_or(u64::MAX);
        let heard_us = self.heard_us.load(Ordering::Acquire);
        heard_us > 0 && now_us.saturating_sub(heard_us) < silence_us
    }

    /// Looks for a value. Without one the caller has a seat.
    pub(super) fn find(
        self: &Arc<Self>,
        tick: Tick,
        (key, request): (&Bytes, &Bytes),
        until: Option<Instant>,
    ) -> Result<(Found<Reply>, Option<Arc<Seat>>), ErrorKind> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.is_closed {
            return Err(ErrorKind::Closed);
        }
        let now_us = self.now_us();
        if !self.is_heard(now_us) {
            // The thread will see that as well, and make the connection anew.
            state.book.forget_values();
        }
        let found = state.book.find(key, request, now_us);
        // What is there, or is asked for by another, is given however much is being read.
        if let Found::Missing(id) = &found
            && state.book.fetches() > self.config.requests_max
        {
            state.book.cancel(*id);
            return Err(ErrorKind::Overloaded);
        }
        let id = match &found {
            Found::Cached(_) => {
                state.stats.hits += 1;
                return Ok((found, None));
            }
            Found::Awaited(id) => {
                state.stats.joined += 1;
                *id
            }
            Found::Missing(id) => {
                state.stats.misses += 1;
                state.work.push_back(Work { id: *id, key: key.clone(), request: request.clone() });
                *id
            }
        };
        let seat = Arc::new(Seat { tick, until, state: Mutex::default() });
        let seats = state.seats.entry(id).or_default();
        if seats.len() == seats.capacity() {
            // Callers that have left.
            seats.retain(|seat| Arc::strong_count(seat) > 1);
        }
        seats.push(Arc::clone(&seat));
        let is_sooner = until.is_some_and(|until| state.next_late.is_none_or(|next| until < next));
        if is_sooner {
            state.next_late = until;
        }
        let is_missing = matches!(found, Found::Missing(_));
        let begins = !std::mem::replace(&mut state.has_pump, true);
        let rings = (is_missing || is_sooner) && !std::mem::replace(&mut state.is_woken, true);
        drop(guard);
        if begins {
            let weak = Arc::downgrade(self);
            let begun = std::thread::Builder::new().name("respool-cache".to_owned());
            if let Err(error) = begun.spawn(move || super::pump::run(&weak)) {
                self.give_up(&error.to_string().into());
            }
        } else if rings {
            self.ring();
        }
        Ok((found, Some(seat)))
    }

    pub(super) fn ring(&self) {
        if let Some((rings, _)) = &self.bell {
            // A pipe that is full wakes as well.
            let _ = (&mut &*rings).write(b"!");
        }
    }

    pub(super) fn listens(&self) -> Option<Arc<UnixStream>> {
        self.bell.as_ref().map(|(_, listens)| Arc::clone(listens))
    }

    pub(super) fn silence(bell: &UnixStream) {
        let mut some = [0; 64];
        while matches!((&mut &*bell).read(&mut some), Ok(bytes) if bytes > 0) {}
    }

    /// What the server's word of how long a key lives comes to.
    pub(super) fn left_us(&self, told: Option<Reply>) -> Option<u64> {
        match told {
            // A time in the past has no part of the value's life left.
            Some(Reply::Integer(left_ms @ 0..)) => Some((left_ms as u64).saturating_mul(1000)),
            Some(Reply::Integer(-1)) => Some(u64::MAX),
            // There is no such key, or the node does not say whether there is: a node that gives a slot away tells of the keys that go with it,
            // and not that another comes into being elsewhere.
            _ if self.membership.is_some() => None,
            _ => Some(u64::MAX),
        }
    }

    /// A fetch has its reply. `left_us` is what its key has left to live; `None` if the server may not tell of its changes.
    pub(super) fn end(&self, id: FetchId, key: &[u8], reply: Reply, left_us: Option<u64>, waiters: &mut Vec<Waiter>) {
        let is_kept = !matches!(reply, Reply::Error(_)) && self.caching.covers(key) && left_us.is_some();
        let value = is_kept.then(|| (reply.clone(), reply.bytes()));
        let mut state = self.lock();
        let seats = state.seats.remove(&id).unwrap_or_default();
        let Some(over) = state.book.end(id, value, left_us.unwrap_or_default(), self.now_us()) else { return };
        drop(state);
        for seat in seats {
            // What the server tells nothing of is for those alone whose call had begun.
            let is_for = if is_kept { over.is_for(seat.tick) } else { over.is_of_before(seat.tick) };
            let outcome = if is_for { Outcome::Reply(reply.clone()) } else { Outcome::Overtaken };
            waiters.push(seat.tell(Some(outcome)));
        }
    }

    /// The server has told that keys have changed; without a list, all.
    pub(super) fn invalidate(&self, keys: Option<&[Bytes]>) {
        let mut state = self.lock();
        match keys {
            Some(keys) => {
                state.stats.invalidations += keys.len() as u64;
                for key in keys {
                    state.book.invalidate(key);
                }
            }
            None => {
                state.stats.flushes += 1;
                state.book.invalidate_all();
            }
        }
        drop(state);
        if self.is_observed() {
            self.config.tell(&crate::Event::Invalidated { keys: keys.map(<[Bytes]>::len) });
        }
    }

    /// The program changes a key.
    pub(crate) fn forget(&self, key: &[u8]) {
        self.lock().book.invalidate(key);
    }

    /// All keys may be changed by the program.
    pub(crate) fn forget_all(&self) {
        self.lock().book.invalidate_all();
    }

    /// Of other keys than those that `is_kept` says the server does not tell any longer whether they change.
    #[cfg(feature = "cluster")]
    pub(crate) fn retain(&self, is_kept: impl Fn(&[u8]) -> bool) {
        self.lock().book.retain(is_kept);
    }

    /// How many bytes the values may have from now on.
    #[cfg(feature = "cluster")]
    pub(crate) fn resize(&self, bytes_max: usize) {
        self.lock().book.resize(bytes_max);
    }

    /// What is kept of a node of a cluster is right for as long as the node has its slots: the others are asked often enough whether it has.
    pub(super) fn rely_on_table(&self) {
        let Some(membership) = &self.membership else { return };
        if self.lock().book.size().0 == 0 {
            return;
        }
        if let Some(cluster) = membership.cluster.upgrade() {
            cluster.rely_on_table(self.caching.silence);
        }
    }

    /// A key of a value that is kept, if the server may have lost it without a word.
    pub(super) fn key_in_doubt(&self) -> Option<Bytes> {
        let state = self.lock();
        self.membership.as_ref().and_then(|_| state.book.last_used().cloned())
    }

    /// The node has answered with an error. Whether that shows that it serves what was asked for.
    pub(super) fn note_error(&self, error: &ServerError) -> bool {
        let Some(membership) = &self.membership else { return true };
        // Rights are judged before slots are, so an error of another kind says nothing about the slot.
        let Some(redirect) = membership.redirect(error) else { return false };
        let cluster = membership.cluster.upgrade();
        match &redirect {
            Redirect::Ask { .. } | Redirect::TryAgain => return true,
            // What was read of the slot is forgotten with the next table.
            Redirect::Moved { slot, to } => {
                if let Some(cluster) = cluster {
                    cluster.note_moved(*slot, to);
                }
            }
            _ => {
                // It is cut off, or begins anew: writes may go to another node.
                self.forget_all();
                if let Some(cluster) = cluster {
                    cluster.trigger(Trigger::Stuck);
                }
            }
        }
        false
    }

    /// There is a connection, which the test plays.
    #[cfg(test)]
    pub(super) fn play(&self) {
        self.lock().has_pump = true;
        self.note_connected();
    }

    /// The next request in the queue of the connection that reads for the cache.
    #[cfg(test)]
    pub(super) fn next_work(&self) -> Option<Work> {
        self.lock().work.pop_front()
    }

    /// The connection is gone, or was not made: what was read on it is not known any longer.
    pub(super) fn lose(&self, how: &Arc<str>, ends: Option<&ErrorKind>) {
        self.heard_us.store(0, Ordering::Release);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.last_failure = Some(Arc::clone(how));
        let is_connected = ends.is_none();
        state.stats.flushes += u64::from(is_connected);
        state.work.clear();
        let seats: Vec<Arc<Seat>> = state.book.lose().iter().flat_map(|id| state.seats.remove(id)).flatten().collect();
        state.seats.clear();
        drop(guard);
        let outcome = match ends {
            None => Outcome::Lost(Arc::clone(how)),
            Some(kind) => Outcome::Failed(kind.clone(), Sent::NotSent),
        };
        seats.iter().map(|seat| seat.tell(Some(outcome.clone()))).for_each(Waiter::wake);
        if is_connected && self.is_observed() {
            self.config.tell(&crate::Event::Invalidated { keys: None });
        }
    }

    /// An attempt to connect has failed, and another is made. If it is hopeless, calls without a deadline end. Those of a cluster end in any
    /// case, and go on elsewhere.
    pub(super) fn note_failure(&self, how: &Arc<str>, is_hopeless: bool) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.last_failure = Some(Arc::clone(how));
        // Callers that have left: their requests would all be sent once there is a connection.
        let State { work, seats, book, .. } = state;
        work.retain(|work| {
            let is_wanted =
                seats.get(&work.id).is_some_and(|seats| seats.iter().any(|seat| Arc::strong_count(seat) > 1));
            if !is_wanted {
                seats.remove(&work.id);
                book.cancel(work.id);
            }
            is_wanted
        });
        let is_member = self.membership.is_some();
        if is_member {
            self.out_us.store(self.now_us(), Ordering::Release);
        }
        let endless = state.seats.values().flatten().filter(|seat| is_member || is_hopeless && seat.until.is_none());
        let ended: Vec<Waiter> = endless
            .map(|seat| seat.tell(Some(Outcome::Failed(ErrorKind::Lost(Arc::clone(how)), Sent::NotSent))))
            .collect();
        drop(guard);
        ended.into_iter().for_each(Waiter::wake);
    }

    /// Something has come from the server.
    pub(super) fn note_heard(&self) {
        self.heard_us.store(self.now_us(), Ordering::Release);
    }

    /// The thread ends, and so do the calls that wait. The next call begins another.
    pub(super) fn give_up(&self, how: &Arc<str>) {
        // In front of the failures: a call that begins behind them would wait for a thread that has ended.
        self.lock().has_pump = false;
        self.lose(how, Some(&ErrorKind::Lost(Arc::clone(how))));
    }

    /// It will look at what was asked for: what comes later rings.
    pub(super) fn note_awake(&self) {
        self.lock().is_woken = false;
    }

    /// There is no connection. Whether the thread ends, since nothing waits for one.
    pub(super) fn retire(&self) -> bool {
        let mut state = self.lock();
        let is_idle = state.is_closed || state.work.is_empty() && state.seats.is_empty();
        if is_idle {
            state.has_pump = false;
        }
        is_idle
    }

    /// There is a connection.
    pub(super) fn note_connected(&self) {
        let mut state = self.lock();
        state.last_failure = None;
        self.out_us.store(0, Ordering::Release);
        self.heard_us.store(self.now_us(), Ordering::Release);
    }

    fn fail_all(&self, kind: &ErrorKind) {
        self.lose(&kind_words(kind), Some(kind));
    }

    /// Ends it, for good.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.fail_all(&ErrorKind::Closed);
        self.ring();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Wakes callers whose time is over. Returns when the next one's is.
    pub(super) fn wake_late(&self, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        if state.next_late.is_none_or(|next| now < next) {
            return state.next_late;
        }
        let mut late = Vec::new();
        let mut next: Option<Instant> = None;
        for seat in state.seats.values().flatten() {
            match seat.until {
                Some(until) if until <= now => late.push(seat.tell(None)),
                Some(until) => next = Some(next.map_or(until, |next| next.min(until))),
                None => {}
            }
        }
        state.next_late = next;
        drop(state);
        late.into_iter().for_each(Waiter::wake);
        next
    }

    /// Why a call fails whose time is over.
    pub(super) fn why_late(&self) -> Error {
        match self.lock().last_failure.clone() {
            Some(how) => Error::new(ErrorKind::Lost(how), Sent::NotSent),
            None => Error::new(ErrorKind::Timeout(None), Sent::MaybeExecuted),
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.lock();
        let (entries, bytes) = state.book.size();
        CacheStats { entries, bytes, ..state.stats }
    }

    /// How long the thread waits at most before it looks again.
    pub(super) fn look(&self) -> Duration {
        (self.caching.silence / 4).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}

fn kind_words(kind: &ErrorKind) -> Arc<str> {
    match kind {
        ErrorKind::Lost(how) | ErrorKind::Refused(how) => Arc::clone(how),
        _ => "the client is closed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Arc<Shared> {
        let config = Config::from_url("redis://127.0.0.1:1").unwrap();
        Shared::new(config.limits(1, 1 << 20), Caching::new(), None)
    }

    fn find(shared: &Arc<Shared>, key: &'static [u8]) -> Result<(Found<Reply>, Option<Arc<Seat>>), ErrorKind> {
        let key = Bytes::from_static(key);
        shared.find(shared.begin(), (&key, &key), None)
    }

    #[test]
    fn many_fetches_refuse_neither_hits_nor_callers_that_join() {
        let shared = shared();
        // No thread begins, and the server was heard just now.
        shared.play();
        let Ok((Found::Missing(id), _)) = find(&shared, b"a") else { panic!("it is there") };
        assert!(matches!(find(&shared, b"b"), Err(ErrorKind::Overloaded)));
        assert!(matches!(find(&shared, b"a"), Ok((Found::Awaited(_), Some(_)))));
        shared.end(id, b"a", Reply::Integer(1), Some(u64::MAX), &mut Vec::new());
        assert!(
            matches!(find(&shared, b"b"), Ok((Found::Missing(_), Some(_)))),
            "what was refused leaves no place behind"
        );
        assert!(matches!(find(&shared, b"a"), Ok((Found::Cached(Reply::Integer(1)), None))));
    }

    #[test]
    fn without_a_pipe_every_call_ends() {
        let mut shared = shared();
        Arc::get_mut(&mut shared).unwrap().bell = None;
        for _ in 0..2 {
            let (_, seat) = find(&shared, b"a").unwrap();
            let seat = seat.unwrap();
            respool_testkit::wait_until("the call ends", Duration::from_secs(60), || {
                Ok(matches!(seat.take(|| Waiter::Thread(crate::core::current())), Some(Outcome::Failed(..))))
            })
            .unwrap();
        }
    }
}
