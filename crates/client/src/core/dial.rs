//! Making the connection, by a thread that lives until it is there.
//!
//! Callers wait outside meanwhile. A refusal by the server's own words ends all calls that wait; anything else is tried again, as
//! often as their time allows.

use super::link::{FOREVER, FOREVER_US, left};
use super::system::{Job, Step};
use super::{Core, Leader, Link, ReadHalf, State, Wait, Wakes, WriteHalf, system};
use crate::ErrorKind;
use crate::limits::READ_BYTES;
use bytes::Bytes;
use respool_connection::{BufferPool, DialAdvice, Fault, FlushPolicy, Identity, Segments, Shake, Ticket, Upstream};
use respool_wire::ReplyLimits;
use std::io;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How long the thread sleeps at most before it looks whether the client is still there.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Failures in a row after which calls without a deadline end.
const FAILURES_MAX: u32 = 5;

/// Why a dial has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It may succeed another time.
    Lost(String),
    /// The server refuses.
    Refused(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(words) | Self::Refused(words) => f.write_str(words),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        #[cfg(feature = "tls")]
        if error.get_ref().is_some_and(|inner| inner.is::<super::Disagreement>()) {
            return Self::Refused(error.to_string());
        }
        Self::Lost(error.to_string())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(words) | Fault::NoDatabase(words) if is_passing(&words) => {
                Self::Lost(without_arguments(words))
            }
            Fault::Refused(words) | Fault::NoDatabase(words) => Self::Refused(without_arguments(words)),
            other => Self::Lost(other.to_string()),
        }
    }
}

/// A server that does not know a command repeats its arguments, and a password is one of them.
fn without_arguments(mut words: String) -> String {
    if let Some(end) = words.find(", with args beginning with") {
        words.truncate(end);
    }
    words
}

/// Whether a server that says so will let us in later.
fn is_passing(words: &str) -> bool {
    ["LOADING", "MASTERDOWN", "BUSY", "ERR max number of clients"].iter().any(|start| words.starts_with(start))
}

/// One end of a handshake.
trait Greeted {
    /// The unwritten bytes of the handshake. They may hold a password, and are [`gathered`].
    fn greeting(&mut self) -> Zeroizing<Vec<u8>>;

    /// So many bytes of it were written.
    fn written(&mut self, bytes: usize);

    /// This has come.
    fn heard(&mut self, bytes: &[u8]) -> Result<Shake, Fault>;
}

/// The bytes of slices, of which no copy is left behind: the room is made at once, and is wiped in the end.
fn gathered<'s, I: Iterator<Item = io::IoSlice<'s>>>(slices: impl Fn() -> I) -> Zeroizing<Vec<u8>> {
    let mut all = Zeroizing::new(Vec::with_capacity(slices().map(|slice| slice.len()).sum()));
    slices().for_each(|slice| all.extend_from_slice(&slice));
    all
}

impl Greeted for &Core {
    fn greeting(&mut self) -> Zeroizing<Vec<u8>> {
        let state = self.lock();
        gathered(|| state.upstream.output_slices())
    }

    fn written(&mut self, bytes: usize) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.upstream.handle_written(bytes, self.now_us(), &mut state.pool);
    }

    fn heard(&mut self, bytes: &[u8]) -> Result<Shake, Fault> {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.upstream.shake(bytes, &ReplyLimits::default(), self.now_us(), &mut state.pool)
    }
}

/// A connection that no lock holds.
struct Alone<'u, T>(&'u mut Upstream<T, Segments<Bytes>>, &'u mut BufferPool);

impl<T: Ticket> Greeted for Alone<'_, T> {
    fn greeting(&mut self) -> Zeroizing<Vec<u8>> {
        gathered(|| self.0.output_slices())
    }

    fn written(&mut self, bytes: usize) {
        self.0.handle_written(bytes, 0, self.1);
    }

    fn heard(&mut self, bytes: &[u8]) -> Result<Shake, Fault> {
        self.0.shake(bytes, &ReplyLimits::default(), 0, self.1)
    }
}

/// A connection behind its handshake, for what has it to itself, over a link that is there.
pub(crate) fn greet<T: Ticket>(
    link: &Link,
    identity: Identity,
    until: Instant,
) -> Result<(Upstream<T, Segments<Bytes>>, BufferPool), Failure> {
    let (mut upstream, mut pool) = (Upstream::new(identity, FlushPolicy::EachTurn), BufferPool::new());
    upstream.begin_dial();
    upstream.handle_connected(0, &mut pool);
    shake_hands(link, until, &mut Alone(&mut upstream, &mut pool))?;
    Ok((upstream, pool))
}

/// Shakes hands within one limit: a server that answers a byte now and then is given up like a silent one.
fn shake_hands(link: &Link, until: Instant, greeted: &mut impl Greeted) -> Result<(), Failure> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let greeting = greeted.greeting();
        let mut rest = &greeting[..];
        while !rest.is_empty() || !link.is_flushed() {
            let late = || Failure::Lost("the server takes no handshake".to_owned());
            let left = left(until).map_err(|_| late())?;
            let sent = match link.send(std::iter::once(rest).filter(|rest| !rest.is_empty())) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    link.wait_writable(left)?;
                    0
                }
                sent => sent?,
            };
            rest = &rest[sent..];
            greeted.written(sent);
        }
        let late = || Failure::Lost("the server does not answer the handshake in time".to_owned());
        let left = left(until).map_err(|_| late())?;
        let wait = Wait::For { usual_us: FOREVER_US, left_us: left.as_micros() as u64 };
        let read = match link.recv(&mut buffer, wait) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            read => read?,
        };
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if greeted.heard(&buffer[..read])? == Shake::Ready {
            return Ok(());
        }
    }
}

impl Core {
    /// Begins to connect.
    pub(super) fn begin_dial(core: &Arc<Self>) {
        if let Err(error) = system::spawn(Job::Dial(Arc::downgrade(core))) {
            core.end_dial(Err(Failure::Refused(error.to_string())));
        }
    }

    /// Whether there is a connection. If not, it is begun to be made though no call waits for it.
    pub(super) fn begin_early(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        if state.link.is_some() || state.is_closed {
            return state.link.is_some();
        }
        if !std::mem::replace(&mut state.is_dialling, true) {
            drop(state);
            Self::begin_dial(self);
        }
        false
    }

    /// Connects and shakes hands, both within one limit.
    fn dial(&self) -> Result<Link, Failure> {
        let until = Instant::now() + self.config.connect_limit.min(FOREVER);
        self.lock().upstream.begin_dial();
        let link = match self.first() {
            None => Link::connect(&self.config, &self.lookup, until)?,
            // What is read by both is of one server.
            Some(first) => {
                let other = first.upgrade().and_then(|first| first.link());
                let other = other.ok_or_else(|| Failure::Lost("the connection beside it is lost".to_owned()))?;
                Link::connect_beside(Some(&other), &self.config, &self.lookup, until)?
            }
        };
        {
            let mut guard = self.lock();
            let state = &mut *guard;
            state.upstream.handle_connected(self.now_us(), &mut state.pool);
        }
        shake_hands(&link, until, &mut &*self)?;
        Ok(link)
    }

    /// There is a connection, or this attempt has failed. Whether another is made.
    fn end_dial(self: &Arc<Self>, dialled: Result<Link, Failure>) -> bool {
        let mut wakes = Wakes::default();
        let failure = dialled.as_ref().err().map(|failure| failure.to_string());
        let mut guard = self.lock();
        let state = &mut *guard;
        let failures = state.reconnect.failures();
        let goes_on = match dialled {
            Ok(link) if !state.is_closed => {
                state.begin(Arc::new(link));
                false
            }
            Ok(_) => {
                state.upstream.reset(&mut state.pool).for_each(drop);
                false
            }
            Err(failure) => {
                state.upstream.reset(&mut state.pool).for_each(drop);
                state.reconnect.note_lost(self.now_us(), super::chance());
                let (words, is_refused) = match failure {
                    Failure::Lost(words) => (words, false),
                    Failure::Refused(words) => (words, true),
                };
                let words: Arc<str> = words.into();
                // A call of a cluster does not wait for one node.
                let is_hopeless = is_refused || self.config.is_member() || state.reconnect.failures() >= FAILURES_MAX;
                state.refusal = is_refused.then(|| ErrorKind::Refused(Arc::clone(&words)));
                state.last_failure = Some(words);
                if is_hopeless {
                    state.failed_dials += 1;
                }
                !is_hopeless && !state.is_closed && !state.lobby.is_empty()
            }
        };
        if !goes_on {
            state.is_dialling = false;
            state.open_lobby(&mut wakes);
        }
        drop(guard);
        if let Some(endpoint) = self.config.told_endpoint() {
            match failure {
                None => self.config.tell(&crate::Event::Connected { endpoint: &endpoint, failures }),
                Some(why) if goes_on => self.tell_beside(endpoint, why),
                Some(why) => self.config.tell(&crate::Event::NotConnected { endpoint: &endpoint, why: &why }),
            }
        }
        // Behind the observer, which is told of a connection before the calls that waited for it end. Not within the lock: it may make
        // calls itself.
        wakes.run();
        goes_on
    }
}

impl Core {
    /// Tells the observer in another thread that an attempt has failed: a call that it makes waits for the attempts of this one. What fails while it
    /// is being told is told behind that, the last of it alone.
    fn tell_beside(self: &Arc<Self>, endpoint: String, why: String) {
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Telling::Now(next) = &mut *telling {
            *next = Some(why);
            return;
        }
        *telling = Telling::Now(None);
        drop(telling);
        let (core, config) = (Arc::downgrade(self), self.config.clone());
        let mut why = why;
        let tell = move || {
            loop {
                config.tell(&crate::Event::NotConnected { endpoint: &endpoint, why: &why });
                let Some(core) = core.upgrade() else { return };
                let mut telling = core.telling.lock().unwrap_or_else(PoisonError::into_inner);
                let next = if let Telling::Now(next) = &mut *telling { next.take() } else { None };
                let Some(next) = next else { return *telling = Telling::Not };
                why = next;
            }
        };
        if std::thread::Builder::new().name("respool-told".to_owned()).spawn(tell).is_err() {
            // It is not told of this one.
            *self.telling.lock().unwrap_or_else(PoisonError::into_inner) = Telling::Not;
        }
    }
}

/// Whether the observer is being told of attempts that have failed while others follow.
#[derive(Debug, Default)]
pub(super) enum Telling {
    /// No.
    #[default]
    Not,
    /// It is, and of this one next.
    Now(Option<String>),
}

impl State {
    /// The connection is there.
    fn begin(&mut self, link: Arc<Link>) {
        self.epoch += 1;
        self.leader = Leader::None;
        self.read_half = Some(ReadHalf::new(Arc::clone(&link), self.epoch));
        self.write_half = Some(WriteHalf::new(Arc::clone(&link), self.epoch));
        self.link = Some(link);
        (self.last_failure, self.refusal) = (None, None);
        self.reconnect.note_ready();
        self.counts.connections += 1;
        debug_assert!(
            self.upstream.tickets().is_empty() && self.write_half.as_ref().is_some_and(|half| half.is_empty())
        );
    }
}

/// What the thread does, until there is a connection.
pub(super) fn step(core: &Weak<Core>) -> Step {
    let Some(core) = core.upgrade() else { return Step::Over };
    let now_us = core.now_us();
    let advice = core.lock().reconnect.poll(now_us);
    match advice {
        DialAdvice::Dial => {
            let dialled = core.dial();
            if core.end_dial(dialled) { Step::Next } else { Step::Over }
        }
        DialAdvice::Wait(until_us) => {
            Step::Pause(Duration::from_micros(until_us.saturating_sub(now_us)).min(SLEEP_MAX))
        }
        DialAdvice::Nothing => Step::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_repeats_no_password() {
        let words = "ERR unknown command 'AUTH', with args beginning with: 'ann' 'word' ";
        let failure = Failure::from(Fault::Refused(words.to_owned()));
        assert_eq!(failure.to_string(), "ERR unknown command 'AUTH'");
    }

    #[test]
    fn a_server_that_is_busy_is_tried_again_whatever_it_was_asked() {
        let words = || "BUSY Redis is busy running a script.".to_owned();
        for fault in [Fault::Refused(words()), Fault::NoDatabase(words())] {
            assert!(matches!(Failure::from(fault), Failure::Lost(_)));
        }
        let none = Fault::NoDatabase("ERR DB index is out of range".to_owned());
        assert!(matches!(Failure::from(none), Failure::Refused(_)));
    }

    #[test]
    fn a_greeting_is_gathered_without_growing() {
        let (one, two) = ([1_u8; 100], [2_u8; 300]);
        let all = gathered(|| [&one[..], &two].into_iter().map(io::IoSlice::new));
        assert_eq!((&all[..], all.capacity()), (&[&one[..], &two].concat()[..], 400));
    }
}
