//! The thread that talks to the server for a cache. It asks for what is missing, with the time that the key has left to live in front
//! of each request, and hears of changes in the order in which the server has made them.

use super::book::FetchId;
use super::shared::{Shared, Work};
use crate::core::{Failure, Link, Lookup, Wait, Waiter, greet, wait_readable};
use crate::limits::{CACHE_ASKED_MAX, LATE_MAX, READ_BYTES};
use crate::{ErrorKind, Event as Told, Reply};
use bytes::Bytes;
use respool_connection::{BufferPool, DialAdvice, Event, Pushes, Reconnect, Segments, Ticket, Upstream};
use respool_wire::ReplyLimits;
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{TryRecvError, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Attempts to connect that fail before calls without a deadline end.
const FAILURES_MAX: u32 = 5;

/// How long the thread waits for a connection before it looks again, also if it is not woken.
const LOOK: Duration = Duration::from_millis(100);

/// What a reply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Nothing that is wanted.
    Nothing,
    /// Whether it lives.
    Ping,
    /// Whether a node of a cluster still has a key that was read there.
    Key,
    /// What the key of the next has left to live.
    Left,
    Value(FetchId),
}

impl Ticket for Asked {
    fn tombstone() -> Self {
        Self::Nothing
    }

    fn takes_pieces(&self) -> bool {
        *self == Self::Nothing
    }
}

/// One connection, while it lasts.
struct Pump {
    upstream: Upstream<Asked, Segments<Bytes>>,
    pool: BufferPool,
    /// The keys of fetches that are sent, in order.
    sent: VecDeque<Bytes>,
    /// What was said of the key of the next value: how long it lives; `None` if the server may not tell of its changes.
    left_us: Option<u64>,
    /// The server has shown that it tells of changes, since it was looked.
    is_proved: bool,
}

/// The life of the thread.
pub(super) fn run(weak: &Weak<Shared>) {
    let Some(shared) = weak.upgrade() else { return };
    let mut reconnect = Reconnect::new(shared.config.reconnect);
    let lookup = Lookup::default();
    let began = Instant::now();
    let Some(bell) = shared.listens() else { return shared.give_up(&"no pipe can be made".into()) };
    drop(shared);
    loop {
        let Some(shared) = weak.upgrade() else { return };
        if shared.retire() {
            return;
        }
        let now_us = began.elapsed().as_micros() as u64;
        let next = shared.wake_late(Instant::now());
        match reconnect.poll(now_us) {
            DialAdvice::Dial => {
                let failures = reconnect.failures();
                let endpoint = shared.config.told_endpoint();
                match dial(&shared, &lookup, &bell) {
                    Ok((mut pump, link)) => {
                        reconnect.note_ready();
                        shared.note_connected();
                        if let Some(endpoint) = &endpoint {
                            shared.config.tell(&Told::Connected { endpoint, failures });
                        }
                        drop(shared);
                        let how = pump.serve(weak, &link, &bell);
                        link.shut();
                        let Some(shared) = weak.upgrade() else { return };
                        shared.lose(&how.as_str().into(), None);
                        if let Some(endpoint) = &endpoint {
                            let unanswered = pump.sent.len();
                            shared.config.tell(&Told::Lost { endpoint, how: &how, unanswered });
                        }
                    }
                    Err(failure) => {
                        let why: Arc<str> = failure.to_string().into();
                        if let Failure::Refused(_) = failure {
                            shared.lose(&why, Some(&ErrorKind::Refused(Arc::clone(&why))));
                        } else {
                            shared.note_failure(&why, failures + 1 >= FAILURES_MAX);
                        }
                        if let Some(endpoint) = &endpoint {
                            shared.config.tell(&Told::NotConnected { endpoint, why: &why });
                        }
                    }
                }
                // The pause begins now: an attempt may take long.
                reconnect.note_lost(began.elapsed().as_micros() as u64, crate::core::chance());
            }
            DialAdvice::Wait(until_us) => {
                let pause = Duration::from_micros(until_us.saturating_sub(now_us)).min(Duration::from_millis(100));
                let left = next.map_or(pause, |next| pause.min(next.saturating_duration_since(Instant::now())));
                drop(shared);
                std::thread::sleep(left.max(Duration::from_millis(1)));
            }
            DialAdvice::Nothing => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Connects, in a thread of its own, so that calls whose time is over meanwhile are woken.
fn dial(shared: &Arc<Shared>, lookup: &Lookup, bell: &UnixStream) -> Result<(Pump, Link), Failure> {
    let (tells, told) = channel();
    let (dials, lookup) = (Arc::clone(shared), lookup.clone());
    let begun = std::thread::Builder::new().name("respool-dial".to_owned()).spawn(move || {
        let dialled = Pump::connect(&dials, &lookup);
        let _ = tells.send(dialled);
        dials.ring();
    });
    begun.map_err(Failure::from)?;
    loop {
        // In front of the look: what is wanted later rings.
        shared.note_awake();
        match told.try_recv() {
            Ok(dialled) => return dialled,
            Err(TryRecvError::Disconnected) => {
                return Err(Failure::Lost("the attempt to connect has ended".to_owned()));
            }
            Err(TryRecvError::Empty) if shared.is_closed() => {
                return Err(Failure::Lost("the client is closed".to_owned()));
            }
            Err(TryRecvError::Empty) => {}
        }
        let now = Instant::now();
        let left = shared.wake_late(now).map_or(LOOK, |next| LOOK.min(next.saturating_duration_since(now)));
        if wait_readable(bell, left.max(Duration::from_millis(1))).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Shared::silence(bell);
    }
}

impl Pump {
    fn connect(shared: &Shared, lookup: &Lookup) -> Result<(Self, Link), Failure> {
        let until = Instant::now() + shared.config.connect_limit.min(Duration::from_secs(3600));
        let link = Link::connect(&shared.config, lookup, until)?;
        let (mut upstream, pool) = greet(&link, shared.config.identity.clone(), until)?;
        if upstream.is_old() {
            // It has taken the request for changes to be told, and would tell of none.
            return Err(Failure::Refused("a cache needs RESP3, which this server does not speak".to_owned()));
        }
        upstream.set_pushes(Pushes::Delivered);
        let new = Self { upstream, pool, sent: VecDeque::new(), left_us: Some(u64::MAX), is_proved: false };
        Ok((new, link))
    }

    /// Talks to the server until the cache is gone, or the connection is lost; how.
    fn serve(&mut self, weak: &Weak<Shared>, link: &Link, bell: &UnixStream) -> String {
        let mut buffer = vec![0; READ_BYTES];
        let (mut heard, mut has_pinged) = (Instant::now(), false);
        let (mut looked, mut woken) = (heard, heard);
        loop {
            let Some(shared) = weak.upgrade() else { return "the cache is gone".to_owned() };
            if shared.is_closed() {
                return "the client is closed".to_owned();
            }
            let silence = shared.caching.silence;
            // Also while there is always something to read.
            if looked.elapsed() >= shared.look() {
                looked = Instant::now();
                shared.rely_on_table();
            }
            self.ask(&shared);
            if let Err(error) = self.write(link) {
                return error.to_string();
            }
            match self.read(&shared, link, &mut buffer) {
                Ok(true) => {
                    let now = Instant::now();
                    if std::mem::take(&mut self.is_proved) {
                        (heard, has_pinged) = (now, false);
                    }
                    // Also while there is always something to read.
                    if now.saturating_duration_since(woken) >= LATE_MAX {
                        woken = now;
                        shared.wake_late(now);
                    }
                    continue;
                }
                Ok(false) => {}
                Err(how) => return how,
            }
            let now = Instant::now();
            let next = shared.wake_late(now);
            let silent = now.saturating_duration_since(heard);
            if silent >= silence {
                return "the server is silent".to_owned();
            }
            if silent >= silence / 2 && !std::mem::replace(&mut has_pinged, true) {
                self.ask_for_life(&shared);
                continue;
            }
            let left = (if has_pinged { silence } else { silence / 2 }).saturating_sub(silent);
            let left = next.map_or(left, |next| left.min(next.saturating_duration_since(now))).min(shared.look());
            drop(shared);
            let wants_write = self.upstream.queued_bytes() > 0 || !link.is_flushed();
            if let Err(error) = link.wait_any(wants_write, bell, left.max(Duration::from_millis(1))) {
                return error.to_string();
            }
            Shared::silence(bell);
        }
    }

    fn request(&mut self, asked: Asked, request: &[u8]) {
        let Self { upstream, pool, .. } = self;
        upstream.send(asked, 0, pool, |out| out.extend_from_slice(request));
    }

    /// Asks the server for a sign that it tells of changes.
    fn ask_for_life(&mut self, shared: &Shared) {
        match shared.key_in_doubt() {
            Some(key) => self.request(Asked::Key, &time_left(&key)),
            None => self.request(Asked::Ping, b"*1\r\n$4\r\nPING\r\n"),
        }
    }

    /// Takes the fetches that wait, and queues their requests on the connection.
    fn ask(&mut self, shared: &Shared) {
        let room = CACHE_ASKED_MAX.saturating_sub(self.sent.len());
        let mut state = shared.lock();
        // Under the lock under which it is taken: what is wanted later rings.
        state.is_woken = false;
        let count = room.min(state.work.len());
        let work: Vec<Work> = state.work.drain(..count).collect();
        let now_us = shared.now_us();
        work.iter().for_each(|work| state.book.note_sent(work.id, now_us));
        drop(state);
        for Work { id, key, request } in work {
            self.request(Asked::Left, &time_left(&key));
            self.request(Asked::Value(id), &request);
            self.sent.push_back(key);
        }
    }

    fn write(&mut self, link: &Link) -> std::io::Result<()> {
        while self.upstream.queued_bytes() > 0 || !link.is_flushed() {
            let slices: Vec<_> = self.upstream.output_slices().collect();
            let sent = link.send(slices.iter().map(|slice| &**slice));
            drop(slices);
            match sent {
                Ok(bytes) => self.upstream.handle_written(bytes, 0, &mut self.pool),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what has come. Whether there was anything.
    fn read(&mut self, shared: &Shared, link: &Link, buffer: &mut [u8]) -> Result<bool, String> {
        let read = match link.recv(buffer, Wait::Not) {
            Ok(0) => return Err("closed by the server".to_owned()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        let mut waiters = Vec::new();
        // What a node of a cluster says shows nothing unless it is asked for a key: it may have lost its slots, and tell of nothing.
        self.is_proved |= shared.membership.is_none();
        let taken = self.take(shared, &buffer[..read], &mut waiters);
        if self.is_proved {
            shared.note_heard();
        }
        waiters.into_iter().for_each(Waiter::wake);
        taken.map(|()| true)
    }

    /// The server has answered a request for a key: it tells of changes, unless it does not serve the key.
    fn note_served(&mut self, shared: &Shared, reply: &Reply) {
        self.is_proved |= match reply {
            Reply::Error(error) => shared.note_error(error),
            _ => true,
        };
    }

    fn take(&mut self, shared: &Shared, mut input: &[u8], waiters: &mut Vec<Waiter>) -> Result<(), String> {
        let limits = ReplyLimits::default();
        loop {
            let event = self.upstream.next_event(&mut input, &limits, 0).map_err(|fault| fault.to_string())?;
            match event {
                None => return Ok(()),
                Some(Event::Piece { .. }) => {}
                Some(Event::Push { bytes, .. }) => take_push(shared, bytes)?,
                Some(Event::Reply { ticket, bytes, .. }) => match ticket {
                    Asked::Nothing => {}
                    // Of a node of a cluster nothing is kept then.
                    Asked::Ping => self.is_proved = true,
                    Asked::Key => {
                        let reply = Reply::copied(bytes).ok_or("a reply cannot be read")?;
                        self.note_served(shared, &reply);
                    }
                    Asked::Left => self.left_us = shared.left_us(Reply::copied(bytes)),
                    Asked::Value(id) => {
                        let reply = Reply::copied(bytes).ok_or("a reply cannot be read")?;
                        let key = self.sent.pop_front().ok_or("a reply that nothing asked for")?;
                        self.note_served(shared, &reply);
                        shared.end(id, &key, reply, self.left_us.replace(u64::MAX), waiters);
                    }
                },
            }
        }
    }
}

/// How long a key has left to live.
fn time_left(key: &[u8]) -> Vec<u8> {
    let mut request = Vec::with_capacity(key.len() + 32);
    respool_wire::encode_request(&mut request, [&b"PTTL"[..], key].into_iter());
    request
}

/// The server tells of something. What cannot be read may have been a change: the connection is given up with all that was read on it.
fn take_push(shared: &Shared, bytes: &[u8]) -> Result<(), String> {
    let unreadable = "a push cannot be read";
    let mut elements = Reply::copied(bytes).and_then(|push| push.into_elements().ok()).ok_or(unreadable)?;
    let (Some(Reply::Bulk(verb) | Reply::Status(verb)), what) = (elements.next(), elements.next()) else {
        return Err(unreadable.to_owned());
    };
    if *verb != b"invalidate"[..] {
        return Ok(());
    }
    let keys = match what {
        Some(Reply::Null) => None,
        Some(Reply::Array(keys)) => {
            let keys = keys.map(|key| match key {
                Reply::Bulk(key) | Reply::Status(key) => Some(key),
                _ => None,
            });
            Some(keys.collect::<Option<Vec<Bytes>>>().ok_or(unreadable)?)
        }
        _ => return Err(unreadable.to_owned()),
    };
    shared.invalidate(keys.as_deref());
    Ok(())
}
