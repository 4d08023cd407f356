//! Values that the server says are still right: replies are kept in the program, and the server tells which keys have changed.
//!
//! A cache has a connection of its own, which a thread reads all the time, so that it hears of changes while no call waits. Hits are
//! served by their callers alone. Of several servers each has a cache, see [`servers`].

mod book;
mod caches;
mod pump;
mod servers;
mod shared;
#[cfg(all(test, feature = "cluster"))]
mod simulated;
mod table;

use crate::call::convert;
use crate::cluster::{Cluster, Routed};
use crate::core::{Ended, Waiter};
use crate::fitness::read_key;
use crate::limits::{CACHE_BYTES, CACHE_SILENCE, CACHE_TTL, REPEATS_MAX};
use crate::parts::Kind;
use crate::topology::Topology;
use crate::{Command, Error, ErrorKind, Event, FromReply, Outcome, Reply};
use book::{Found, Tick};
use bytes::Bytes;
pub(crate) use caches::Caches;
use servers::{Place, Servers};
#[cfg(feature = "cluster")]
pub(crate) use shared::Membership;
pub(crate) use shared::Shared;
use shared::{Outcome as Told, Seat};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What a cache holds and for how long, and which changes the server tells of.
#[derive(Clone, Debug)]
pub struct Caching {
    bytes_max: usize,
    ttl: Duration,
    silence: Duration,
    /// Of broadcast mode; `None` otherwise.
    prefixes: Option<Vec<Bytes>>,
}

impl Default for Caching {
    fn default() -> Self {
        Self { bytes_max: CACHE_BYTES, ttl: CACHE_TTL, silence: CACHE_SILENCE, prefixes: None }
    }
}

impl Caching {
    /// 64 MiB, each value for a minute at most, and the server remembers which keys were read.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes the values may have, with their keys, requests and what they cost beside. The least recently used make room. Of several
    /// servers, or primaries of a cluster, each has an equal part.
    #[must_use]
    pub fn bytes(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// How long a value is kept at most, from when it was asked for. It is never kept for longer than its key has left to live.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// For how long values are given out without a word from the server. It is asked whether it lives after half of that; after all of
    /// it nothing that is kept is given out, and the connection is made anew. So a value is stale for this long at most if the network
    /// drops everything.
    #[must_use]
    pub fn silence(mut self, limit: Duration) -> Self {
        self.silence = limit.max(Duration::from_millis(10));
        self
    }

    /// The server tells of all changes of keys that begin with one of these, and remembers nothing of this client. Other keys are read
    /// without being kept. Without a prefix it tells of every change.
    #[must_use]
    pub fn broadcast<P: AsRef<[u8]>>(mut self, prefixes: impl IntoIterator<Item = P>) -> Self {
        self.prefixes = Some(prefixes.into_iter().map(|prefix| Bytes::copy_from_slice(prefix.as_ref())).collect());
        self
    }

    /// Whether a server takes it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let prefixes = self.prefixes.as_deref().unwrap_or_default();
        let overlaps = |(at, prefix): (usize, &Bytes)| {
            prefixes.iter().enumerate().any(|(other, begins)| other != at && prefix.starts_with(begins))
        };
        match prefixes.iter().enumerate().any(overlaps) {
            true => Err(Error::config("a prefix of a cache begins with another, which holds for it as well")),
            false => Ok(()),
        }
    }

    /// How many bytes each of so many servers has.
    pub(crate) fn share(&self, servers: usize) -> usize {
        self.bytes_max / servers.max(1)
    }

    /// Whether the server tells of changes of this key.
    fn covers(&self, key: &[u8]) -> bool {
        match &self.prefixes {
            Some(prefixes) if !prefixes.is_empty() => prefixes.iter().any(|prefix| key.starts_with(prefix)),
            _ => true,
        }
    }
}

/// What a cache has done, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Calls that found their value.
    pub hits: u64,
    /// Calls whose request was sent.
    pub misses: u64,
    /// Calls that waited for the request of another.
    pub joined: u64,
    /// Keys of which the server has told that they have changed.
    pub invalidations: u64,
    /// How often everything was forgotten: the connection was lost, or the server has told so.
    pub flushes: u64,
    /// Values that it holds.
    pub entries: usize,
    /// Bytes that they count as.
    pub bytes: usize,
}

impl CacheStats {
    /// Of both.
    pub(crate) fn with(self, other: &Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            joined: self.joined + other.joined,
            invalidations: self.invalidations + other.invalidations,
            flushes: self.flushes + other.flushes,
            entries: self.entries + other.entries,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Reads that are answered in the program while the server has not told of a change, made by [`Client::cache`](crate::Client::cache). Copies
/// share what is kept.
///
/// ```
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// use respool_client::{Caching, Client, commands};
/// use std::time::Duration;
///
/// let client = Client::open(&url)?;   // "redis://localhost"
/// let cache = client.cache(Caching::new().bytes(16 << 20).ttl(Duration::from_secs(30)))?;
/// let name: Option<String> = cache.call(commands::get("user:1:name")).await?;   // asks the server
/// let name: Option<String> = cache.call(commands::get("user:1:name")).await?;   // does not
/// assert_eq!((name, cache.stats().hits), (None, 1));
/// # Ok(()) });
/// ```
///
/// Requests that read one key and change nothing are kept, each by all its arguments. Others are refused: their replies depend on
/// what the server tells nothing of.
///
/// Of a cluster, and of servers among which keys are spread, each has a connection of its own. Cached reads are made at primaries. A key that
/// is not there is not kept in a cluster, and while a slot is on its way its keys are read as without a cache.
#[derive(Clone)]
pub struct Cache {
    servers: Servers,
}

impl Cache {
    pub(crate) fn new(topology: &Topology, caching: Caching) -> Self {
        Self { servers: Servers::of(topology, caching) }
    }

    /// A call of `command`, whose reply is made into `T`. Of calls that ask for the same at the same time one is sent.
    pub fn call<T: FromReply>(&self, command: impl Into<Command>) -> CachedCall<T> {
        CachedCall {
            servers: self.servers.clone(),
            limit: self.servers.config().deadline,
            command: command.into(),
            began: None,
            waiting: None,
            plain: None,
            is_told: false,
            repeats: 0,
            output: PhantomData,
        }
    }

    /// Forgets what was read of a key.
    pub fn forget(&self, key: &[u8]) {
        self.servers.each().iter().for_each(|cache| cache.forget(key));
    }

    /// What it has done.
    pub fn stats(&self) -> CacheStats {
        self.servers.stats()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// When a call began, and what it asks for.
struct Began {
    until: Option<Instant>,
    key: Bytes,
    request: Bytes,
}

/// Where a call waits.
struct Waiting {
    cache: Arc<Shared>,
    /// When it began, among all events of that cache.
    tick: Tick,
    /// Where it is told of the reply; `None` if it looks first.
    seat: Option<Arc<Seat>>,
    /// How long it waits there.
    until: Option<Instant>,
}

/// A read that waits for its value: as a future, or by [`Self::wait`] in a thread. Nothing is looked up before.
#[must_use = "nothing is looked up before it is awaited"]
pub struct CachedCall<T> {
    servers: Servers,
    limit: Option<Duration>,
    command: Command,
    began: Option<Began>,
    waiting: Option<Waiting>,
    /// The same call of the cluster, if the node of the key has not served it.
    plain: Option<Box<Routed>>,
    /// The observer was told of it.
    is_told: bool,
    repeats: u32,
    output: PhantomData<fn() -> T>,
}

/// What a call does next.
enum Next {
    Over(Result<Reply, Error>),
    /// It waits to be woken, until this time at most.
    Waits(Option<Instant>),
    /// It goes on as a call of the cluster.
    Plain,
}

impl<T: FromReply> CachedCall<T> {
    /// How long the call may take, instead of what the client's settings say.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Waits in this thread.
    pub fn wait(mut self) -> Result<T, Error> {
        loop {
            match self.look(|| Waiter::Thread(crate::core::current())) {
                Next::Over(result) => return self.finish(result),
                Next::Waits(Some(until)) => {
                    std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
                }
                Next::Waits(None) => std::thread::park(),
                Next::Plain => {
                    let ended = self.plain.as_mut().map(|plain| plain.wait());
                    return self.finish_plain(ended);
                }
            }
        }
    }

    fn finish(&self, result: Result<Reply, Error>) -> Result<T, Error> {
        let address = || {
            let config = self.waiting.as_ref().map_or(self.servers.config(), |waiting| &waiting.cache.config);
            Some(config.endpoint.to_string()).filter(|_| config.sentinels.is_none())
        };
        let slot = || self.began.as_ref().and_then(|began| self.servers.slot(&began.key));
        result.and_then(convert).map_err(|error| error.of(self.command.name()).at(address(), slot()))
    }

    fn finish_plain(&self, ended: Option<Result<Vec<Ended>, Error>>) -> Result<T, Error> {
        let closed = || Err(Error::new(ErrorKind::Closed, Outcome::MaybeExecuted));
        let result = match ended.unwrap_or_else(closed).map(|mut ended| ended.pop()) {
            Ok(Some(Ended::Reply(reply))) => Ok(reply),
            Ok(Some(Ended::Failed(kind, outcome))) => Err(Error::new(kind, outcome)),
            Ok(None) => closed().map(|_: Vec<Ended>| Reply::Null),
            Err(error) => Err(error),
        };
        let address = self.plain.as_ref().and_then(|plain| plain.address()).map(|address| address.to_string());
        self.finish(result.map_err(|error| error.at(address, None)))
    }

    fn begin(&mut self) -> Result<(), Error> {
        let unfit = |why| Error::new(ErrorKind::Unfit(why), Outcome::NotSent);
        let key = read_key(&self.command).map_err(unfit)?;
        let until = self.limit.and_then(|limit| Instant::now().checked_add(limit));
        self.began = Some(Began { until, key, request: self.command.encoded() });
        Ok(())
    }

    /// Goes on without a cache, if its server is a node of a cluster.
    fn turn_plain(&mut self) -> bool {
        let (Servers::Cluster(caches), Some(began)) = (&self.servers, &self.began) else { return false };
        let cluster: &Arc<Cluster> = caches.cluster();
        let left = began.until.map(|until| until.saturating_duration_since(Instant::now()));
        let Some(slot) = self.servers.slot(&began.key) else { return false };
        // At the primary, as what is cached.
        let commands = std::slice::from_ref(&self.command);
        self.plain = Some(Box::new(Routed::new(cluster, commands, Kind::At(slot), left)));
        self.waiting = None;
        true
    }

    /// Looks what there is. Otherwise it waits to be woken by `waiter`.
    fn look(&mut self, waiter: impl Fn() -> Waiter) -> Next {
        if self.began.is_none()
            && let Err(error) = self.begin()
        {
            return Next::Over(Err(error));
        }
        loop {
            if self.plain.is_some() {
                return Next::Plain;
            }
            let Some(began) = &self.began else { return Next::Waits(None) };
            let Some(waiting) = &mut self.waiting else {
                match self.servers.place(&began.key) {
                    Place::Cache(cache) => match cache.patience() {
                        Some(patience) => self.waiting = Some(Waiting::new(cache, began.until, patience)),
                        None if self.turn_plain() => {}
                        None => return Next::Over(Err(Error::new(ErrorKind::Closed, Outcome::NotSent))),
                    },
                    Place::Plain if self.turn_plain() => {}
                    Place::Plain => return Next::Over(Err(Error::new(ErrorKind::Closed, Outcome::NotSent))),
                }
                continue;
            };
            if let Some(seat) = &waiting.seat {
                let told = match seat.take(&waiter) {
                    Some(told) => told,
                    None if waiting.until.is_none_or(|until| Instant::now() < until) => {
                        return Next::Waits(waiting.until);
                    }
                    None => {
                        waiting.seat = None;
                        waiting.cache.note_waited();
                        let is_late = began.until.is_some_and(|until| Instant::now() >= until);
                        if !is_late && self.turn_plain() {
                            continue;
                        }
                        return Next::Over(Err(self.why_late()));
                    }
                };
                waiting.seat = None;
                match told {
                    Told::Reply(reply) if Servers::is_redirected(&waiting.cache, &reply) && self.turn_plain() => {}
                    Told::Reply(reply) => return Next::Over(Ok(reply)),
                    // Another node may have the slot by now.
                    Told::Failed(ErrorKind::Lost(_), Outcome::NotSent) | Told::Lost(_) if self.turn_plain() => {}
                    Told::Failed(kind, outcome) => return Next::Over(Err(Error::new(kind, outcome))),
                    Told::Lost(how) if self.repeats >= REPEATS_MAX => {
                        return Next::Over(Err(Error::new(ErrorKind::Lost(how), Outcome::MaybeExecuted)));
                    }
                    Told::Lost(_) => self.repeats += 1,
                    Told::Overtaken => {}
                }
                continue;
            }
            let asked = (&began.key, &began.request);
            let (found, seat) = match waiting.cache.find(waiting.tick, asked, waiting.until) {
                Ok(found) => found,
                Err(kind) => return Next::Over(Err(Error::new(kind, Outcome::NotSent))),
            };
            waiting.seat = seat;
            let is_hit = matches!(found, Found::Cached(_));
            if !std::mem::replace(&mut self.is_told, true) && waiting.cache.is_observed() {
                let name = String::from_utf8_lossy(self.command.name());
                waiting.cache.config.tell(&Event::CachedRead { command: &name, is_hit });
            }
            if let Found::Cached(reply) = found {
                return Next::Over(Ok(reply));
            }
        }
    }

    /// Why it fails when its time is over.
    fn why_late(&self) -> Error {
        let late = || Error::new(ErrorKind::Timeout(None), Outcome::MaybeExecuted);
        self.waiting.as_ref().map_or_else(late, |waiting| waiting.cache.why_late())
    }
}

impl Waiting {
    /// A call that began in front of it, and may take until then, waits for `patience`.
    fn new(cache: Arc<Shared>, until: Option<Instant>, patience: Duration) -> Self {
        let until = until.into_iter().chain(Instant::now().checked_add(patience)).min();
        Self { tick: cache.begin(), cache, seat: None, until }
    }
}

impl<T: FromReply> Future for CachedCall<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.look(|| Waiter::Task(cx.waker().clone())) {
            Next::Over(result) => Poll::Ready(this.finish(result)),
            Next::Waits(_) => Poll::Pending,
            Next::Plain => {
                let Some(plain) = &mut this.plain else { return Poll::Pending };
                let ended = std::task::ready!(plain.poll(cx));
                Poll::Ready(this.finish_plain(Some(ended)))
            }
        }
    }
}

impl<T> fmt::Debug for CachedCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedCall").field("command", &self.command).finish_non_exhaustive()
    }
}
