//! Values that the server says are still right: replies are kept in the program, and the server tells which keys have changed.
//!
//! A cache has a connection of its own, which a thread reads all the time, so that it hears of changes while no call waits. Hits are
//! served by their callers alone.

mod book;
mod caches;
mod pump;
mod shared;

use crate::call::convert;
use crate::core::Waiter;
use crate::fitness::read_key;
use crate::limits::{CACHE_BYTES, CACHE_SILENCE, CACHE_TTL, REPEATS_MAX};
use crate::{Command, Config, Error, ErrorKind, Event, FromReply, Outcome, Reply};
use book::{Found, Tick};
use bytes::Bytes;
pub(crate) use caches::Caches;
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

    /// How many bytes the values may have, with their keys, requests and what they cost beside. The least recently used make room.
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
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

impl Cache {
    pub(crate) fn new(config: Config, caching: Caching) -> Self {
        Self { shared: Shared::new(config, caching) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A call of `command`, whose reply is made into `T`. Of calls that ask for the same at the same time one is sent.
    pub fn call<T: FromReply>(&self, command: impl Into<Command>) -> CachedCall<T> {
        let command = command.into();
        CachedCall {
            shared: Arc::clone(&self.shared),
            limit: self.shared.config.deadline,
            command,
            began: None,
            seat: None,
            repeats: 0,
            output: PhantomData,
        }
    }

    /// Forgets what was read of a key.
    pub fn forget(&self, key: &[u8]) {
        self.shared.forget(key);
    }

    /// What it has done.
    pub fn stats(&self) -> CacheStats {
        self.shared.stats()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// When a call began: by the clock, and among all events of the cache.
struct Began {
    until: Option<Instant>,
    tick: Tick,
    key: Bytes,
    request: Bytes,
}

/// A read that waits for its value: as a future, or by [`Self::wait`] in a thread. Nothing is looked up before.
#[must_use = "nothing is looked up before it is awaited"]
pub struct CachedCall<T> {
    shared: Arc<Shared>,
    limit: Option<Duration>,
    command: Command,
    began: Option<Began>,
    /// Where it is told of the reply, while it waits.
    seat: Option<Arc<Seat>>,
    repeats: u32,
    output: PhantomData<fn() -> T>,
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
            if let Some(result) = self.step(|| Waiter::Thread(std::thread::current())) {
                return result;
            }
            match self.began.as_ref().and_then(|began| began.until) {
                Some(until) => std::thread::park_timeout(until.saturating_duration_since(Instant::now())),
                None => std::thread::park(),
            }
        }
    }

    /// Looks what there is. Otherwise it waits to be woken by `waiter`.
    fn step(&mut self, waiter: impl Fn() -> Waiter) -> Option<Result<T, Error>> {
        let result = self.look(waiter)?;
        let result = result.and_then(convert);
        let address =
            || Some(self.shared.config.endpoint.to_string()).filter(|_| self.shared.config.sentinels.is_none());
        Some(result.map_err(|error| error.of(self.command.name()).at(address(), None)))
    }

    fn begin(&mut self) -> Result<(), Error> {
        let unfit = |why| Error::new(ErrorKind::Unfit(why), Outcome::NotSent);
        let key = read_key(&self.command).map_err(unfit)?;
        let until = self.limit.and_then(|limit| Instant::now().checked_add(limit));
        let request = self.command.encoded();
        self.began = Some(Began { until, tick: self.shared.begin(), key, request });
        Ok(())
    }

    fn look(&mut self, waiter: impl Fn() -> Waiter) -> Option<Result<Reply, Error>> {
        if self.began.is_none()
            && let Err(error) = self.begin()
        {
            return Some(Err(error));
        }
        let began = self.began.as_ref()?;
        loop {
            if let Some(seat) = &self.seat {
                match seat.take(&waiter) {
                    Some(Told::Reply(reply)) => return Some(Ok(reply)),
                    Some(Told::Failed(kind, outcome)) => return Some(Err(Error::new(kind, outcome))),
                    Some(Told::Lost(how)) if self.repeats >= REPEATS_MAX => {
                        return Some(Err(Error::new(ErrorKind::Lost(how), Outcome::MaybeExecuted)));
                    }
                    Some(Told::Lost(_)) => self.repeats += 1,
                    Some(Told::Overtaken) => {}
                    None if began.until.is_some_and(|until| Instant::now() >= until) => {
                        self.seat = None;
                        return Some(Err(self.shared.why_late()));
                    }
                    None => return None,
                }
                self.seat = None;
            }
            let is_first = self.repeats == 0;
            let (found, seat) = match self.shared.find(began.tick, (&began.key, &began.request), began.until) {
                Ok(found) => found,
                Err(kind) => return Some(Err(Error::new(kind, Outcome::NotSent))),
            };
            if is_first && self.shared.is_observed() {
                let is_hit = matches!(found, Found::Cached(_));
                let name = String::from_utf8_lossy(self.command.name());
                self.shared.config.tell(&Event::CachedRead { command: &name, is_hit });
            }
            match found {
                Found::Cached(reply) => return Some(Ok(reply)),
                Found::Awaited(_) | Found::Missing(_) => self.seat = seat,
            }
        }
    }
}

impl<T: FromReply> Future for CachedCall<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.step(|| Waiter::Task(cx.waker().clone())).map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> fmt::Debug for CachedCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedCall").field("command", &self.command).finish_non_exhaustive()
    }
}
