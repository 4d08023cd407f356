//! The thread that talks to the server for all subscriptions of a client. It lives while there are any.

use super::hub::{Asked, Hub, State};
use crate::core::{Link, Lookup, SlotId, Wait, Waiter, greet};
use crate::limits::{LATE_MAX, PING_AFTER, PUSH_ASKED_MAX};
use crate::{Config, Event as Told, Reply};
use respool_connection::{DialAdvice, Event, Pushes, Reconnect, Segments, Upstream};
use respool_wire::{ReplyLimits, encode_request};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Bytes that one read takes.
const READ_BYTES: usize = 64 * 1024;

/// The longest time that is counted.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long the thread waits at most before it looks whether the client is still there.
const LOOK: Duration = Duration::from_secs(1);

/// One connection, while it lasts.
struct Pump {
    hub: Arc<Hub>,
    upstream: Upstream<SlotId, Segments<bytes::Bytes>>,
    /// What is not written.
    out: Vec<u8>,
    began: Instant,
}

/// The life of the thread.
pub(super) fn run(weak: &Weak<Hub>) {
    let Some(hub) = weak.upgrade() else { return };
    let mut reconnect = Reconnect::new(hub.config.reconnect);
    let lookup = Lookup::default();
    let began = Instant::now();
    let Ok(bell) = hub.bell() else {
        hub.lock().has_pump = false;
        return hub.fail_all("no pipe can be made");
    };
    drop(hub);
    loop {
        let Some(hub) = weak.upgrade() else { return };
        {
            let mut state = hub.lock();
            if Hub::is_idle(&state) {
                return Hub::end_pump(&mut state);
            }
        }
        let now_us = began.elapsed().as_micros() as u64;
        let next = hub.end_late(Instant::now());
        match reconnect.poll(now_us) {
            DialAdvice::Dial => {
                let (failures, place) = (reconnect.failures(), hub.place());
                // Empty if nothing is told.
                let endpoint = &*place.told_endpoint().unwrap_or_default();
                match Pump::connect(&hub, &place, &lookup, began) {
                    Ok((mut pump, link)) => {
                        reconnect.note_ready();
                        hub.lock().last_failure = None;
                        hub.config.tell(&Told::Connected { endpoint, failures });
                        if let Err(how) = pump.serve(&link, &bell) {
                            let unanswered = hub.lock().asked.len();
                            hub.config.tell(&Told::Lost { endpoint, how: &how, unanswered });
                            hub.lock().last_failure = Some(how.into());
                        }
                    }
                    Err(why) => {
                        hub.config.tell(&Told::NotConnected { endpoint, why: &why });
                        hub.lock().last_failure = Some(why.into());
                    }
                }
                hub.begin_anew();
                hub.note_lost();
                reconnect.note_lost(began.elapsed().as_micros() as u64, crate::core::chance());
            }
            DialAdvice::Wait(until_us) => {
                let pause = Duration::from_micros(until_us.saturating_sub(now_us)).min(LOOK);
                let left = next.map_or(pause, |next| pause.min(next.saturating_duration_since(Instant::now())));
                drop(hub);
                std::thread::sleep(left.max(Duration::from_millis(1)));
            }
            DialAdvice::Nothing => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

impl Pump {
    fn connect(hub: &Arc<Hub>, place: &Config, lookup: &Lookup, began: Instant) -> Result<(Self, Link), String> {
        let until = Instant::now() + hub.config.connect_limit.min(LONGEST);
        let link = Link::connect(place, lookup, until).map_err(|error| error.to_string())?;
        let greeted = greet(&link, hub.config.identity.clone(), until);
        let (mut upstream, _) = greeted.map_err(|failure| failure.to_string())?;
        upstream.set_pushes(Pushes::Only);
        Ok((Self { hub: Arc::clone(hub), upstream, out: Vec::new(), began }, link))
    }

    /// Talks to the server until there is nothing more to say. An error says how the connection was lost.
    fn serve(&mut self, link: &Link, bell: &UnixStream) -> Result<(), String> {
        let mut buffer = vec![0; READ_BYTES];
        let (mut heard, mut has_pinged) = (Instant::now(), false);
        let mut ended = heard;
        loop {
            {
                let hub = Arc::clone(&self.hub);
                let mut state = hub.lock();
                // Under the lock under which it is looked: what is wanted later rings.
                state.is_woken = false;
                Hub::retry_astray(&mut state, Instant::now());
                if Hub::is_idle(&state) && self.out.is_empty() {
                    // The thread ends: what is wanted from here on begins another.
                    state.asked.clear();
                    return Ok(());
                }
                self.tell(&mut state);
            }
            while !self.out.is_empty() || !link.is_flushed() {
                match link.send(std::iter::once(&self.out[..]).filter(|out| !out.is_empty())) {
                    Ok(bytes) => drop(self.out.drain(..bytes)),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
            if self.read(link, &mut buffer)? {
                (heard, has_pinged) = (Instant::now(), false);
                if heard.saturating_duration_since(ended) >= LATE_MAX {
                    ended = heard;
                    self.hub.end_late(heard);
                }
                continue;
            }
            let now = Instant::now();
            let next = self.hub.end_late(now);
            let silent = now.saturating_duration_since(heard);
            if silent >= PING_AFTER * 2 {
                return Err("the server is silent".to_owned());
            }
            if silent >= PING_AFTER && !std::mem::replace(&mut has_pinged, true) {
                encode_request(&mut self.out, [&b"PING"[..]].into_iter());
                self.hub.lock().asked.push_back(Asked::Ping);
                continue;
            }
            let until = next.map_or(PING_AFTER, |next| next.saturating_duration_since(now)).min(PING_AFTER);
            let wants_write = !self.out.is_empty() || !link.is_flushed();
            let waited = link.wait_any(wants_write, bell, until.max(Duration::from_millis(1)));
            waited.map_err(|error| error.to_string())?;
            Hub::silence(bell);
        }
    }

    /// Takes what has come. Whether there was anything.
    fn read(&mut self, link: &Link, buffer: &mut [u8]) -> Result<bool, String> {
        let read = match link.recv(buffer, Wait::Not) {
            Ok(0) => return Err("closed by the server".to_owned()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        let limits = ReplyLimits::default();
        let mut waiters: Vec<Waiter> = Vec::new();
        let mut input = &buffer[..read];
        let now_us = self.began.elapsed().as_micros() as u64;
        let mut result = Ok(true);
        loop {
            match self.upstream.next_event(&mut input, &limits, now_us) {
                Ok(None) => break,
                Ok(Some(Event::Push { bytes, .. })) => {
                    let taken = Reply::copied(bytes).ok_or("a push cannot be read");
                    if let Err(how) = taken.and_then(|reply| self.hub.take(reply, &mut waiters)) {
                        result = Err(how.to_owned());
                        break;
                    }
                }
                Ok(Some(_)) => {}
                Err(fault) => {
                    result = Err(fault.to_string());
                    break;
                }
            }
        }
        waiters.into_iter().for_each(Waiter::wake);
        result
    }

    /// Asks for what is wanted.
    fn tell(&mut self, state: &mut State) {
        while state.asked.len() < PUSH_ASKED_MAX
            && let Some(ask) = state.work.pop_front()
        {
            if !state.note_asked(&ask) {
                continue;
            }
            let verb = if ask.topic.is_some() { ask.key.0.subscribe() } else { ask.key.0.unsubscribe() };
            encode_request(&mut self.out, [verb, &ask.key.1[..]].into_iter());
            state.asked.push_back(Asked::Topic(ask));
        }
    }
}
