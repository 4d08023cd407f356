//! What is subscribed to by which subscriptions, and what the server has been told of it.
//!
//! Callers change what is wanted and wake the pump. The pump alone talks to the server: one request for each topic, so that each is
//! answered by one confirmation or one error, in order.
//!
//! ```text
//!   topic:  [new] --request queued--> [asked] --confirmed--> [held] --last subscription dropped--> removed, request queued
//!                                                   ^--------- connection lost: asked again on the next
//! ```
//!
//! A topic that is dropped before the server was asked for it is not asked for: what was queued for it is skipped.

use super::mailbox::{Bounds, Mailbox, Message};
use crate::cluster::Shared;
use crate::core::Waiter;
use crate::limits::{MOVED_RETRY_PAUSE, PUSH_ASKED_MAX};
use crate::{Config, Error, ErrorKind, Outcome, Reply, ServerError};
use bytes::Bytes;
use respool_route::cluster::{Redirect, slot_of};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// What a subscription is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Shard,
}

impl Kind {
    pub(super) fn subscribe(self) -> &'static [u8] {
        match self {
            Self::Channel => b"SUBSCRIBE",
            Self::Pattern => b"PSUBSCRIBE",
            Self::Shard => b"SSUBSCRIBE",
        }
    }

    pub(super) fn unsubscribe(self) -> &'static [u8] {
        match self {
            Self::Channel => b"UNSUBSCRIBE",
            Self::Pattern => b"PUNSUBSCRIBE",
            Self::Shard => b"SUNSUBSCRIBE",
        }
    }
}

type Key = (Kind, Bytes);

/// A SUBSCRIBE or UNSUBSCRIBE of one topic that has not been sent.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) key: Key,
    /// The number of the topic that is subscribed to; `None` if it is not wanted any longer.
    pub(super) topic: Option<u64>,
}

/// A request of the pump's that is not answered.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Topic(Work),
    /// Any answer shows that the server lives, a refusal as well.
    Ping,
}

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) number: u64,
    pub(super) listeners: Vec<Arc<Mailbox>>,
    /// The server was asked for it on the connection of now, and has not refused or ended it.
    pub(super) is_asked: bool,
    /// The server has confirmed it, on the connection of now.
    pub(super) is_held: bool,
}

impl Topic {
    /// Nothing listens to it, and the server does not know of it.
    pub(super) fn new(number: u64) -> Self {
        Self { number, listeners: Vec::new(), is_asked: false, is_held: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) topics: HashMap<Key, Topic>,
    pub(super) numbers: u64,
    /// Requests that have not been sent.
    pub(super) work: VecDeque<Work>,
    /// How many of them are for topics that were dropped meanwhile, at most.
    stale: usize,
    /// What it was told and has not answered.
    pub(super) asked: VecDeque<Asked>,
    /// Slots of sharded channels whose end was told before it was asked for, perhaps: then the request is refused beside.
    pub(super) ended: VecDeque<u16>,
    /// Subscriptions that are not confirmed, and when their callers give up.
    pub(super) pending: Vec<(Arc<Mailbox>, Instant)>,
    /// Topics that the node has sent elsewhere, or has refused for a while, and when they are asked for again.
    pub(super) astray: Vec<(Instant, Work)>,
    pub(super) has_pump: bool,
    /// It was rung since the pump has looked at what is wanted.
    pub(super) is_woken: bool,
    pub(super) is_closed: bool,
    /// Why the last attempt to connect has failed.
    pub(super) last_failure: Option<Arc<str>>,
}

/// Requests for dropped topics that are kept until they are skipped.
const STALE_MAX: usize = 64;

impl State {
    /// The current topic that a request is for.
    fn topic_of<'t>(topics: &'t mut HashMap<Key, Topic>, work: &Work) -> Option<&'t mut Topic> {
        topics.get_mut(&work.key).filter(|topic| Some(topic.number) == work.topic)
    }

    /// The request is about to be sent. Whether it is: what it subscribes to may have been dropped.
    pub(super) fn note_asked(&mut self, work: &Work) -> bool {
        if work.topic.is_none() {
            return true;
        }
        let Some(topic) = Self::topic_of(&mut self.topics, work) else {
            self.stale = self.stale.saturating_sub(1);
            return false;
        };
        topic.is_asked = true;
        true
    }

    /// Nothing listens to a topic any longer, which was taken out. Subscriptions may come and go many times before the next connection
    /// is there, so what is left of them is removed now and then.
    pub(super) fn give_up(&mut self, key: Key, was_asked: bool) {
        if was_asked {
            return self.work.push_back(Work { key, topic: None });
        }
        self.stale += 1;
        if self.stale > STALE_MAX && 2 * self.stale > self.work.len() {
            let Self { topics, work, .. } = self;
            work.retain(|work| work.topic.is_none() || Self::topic_of(topics, work).is_some());
            self.stale = 0;
        }
    }
}

/// The subscriptions of a client.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(super) config: Config,
    /// The cluster that it is of.
    pub(super) cluster: Option<Weak<Shared>>,
    /// It is to any node of that cluster, and not to one.
    is_anywhere: bool,
    state: Mutex<State>,
    /// A byte in it wakes the pump.
    bell: Mutex<Option<(UnixStream, Arc<UnixStream>)>>,
}

impl Hub {
    pub(crate) fn new(config: Config, cluster: Option<Weak<Shared>>) -> Arc<Self> {
        Arc::new(Self { config, cluster, is_anywhere: false, state: Mutex::default(), bell: Mutex::default() })
    }

    /// For all nodes of a cluster: what is published at one comes from any.
    pub(crate) fn anywhere(config: Config, cluster: Weak<Shared>) -> Arc<Self> {
        let (state, bell) = (Mutex::default(), Mutex::default());
        Arc::new(Self { config, cluster: Some(cluster), is_anywhere: true, state, bell })
    }

    /// Where the next connection leads to.
    pub(super) fn place(&self) -> Config {
        let cluster = self.cluster.as_ref().filter(|_| self.is_anywhere).and_then(Weak::upgrade);
        cluster.map_or_else(|| self.config.clone(), |cluster| cluster.any_node())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the pump listens to beside the server.
    pub(super) fn bell(&self) -> std::io::Result<Arc<UnixStream>> {
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, listens)) = &*bell {
            return Ok(Arc::clone(listens));
        }
        let (rings, listens) = UnixStream::pair()?;
        rings.set_nonblocking(true)?;
        listens.set_nonblocking(true)?;
        let listens = Arc::new(listens);
        *bell = Some((rings, Arc::clone(&listens)));
        Ok(listens)
    }

    /// The pump looks again: before it waits, or now.
    fn ring(&self) {
        let bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((rings, _)) = &*bell {
            // A pipe that is full wakes as well.
            let _ = (&mut &*rings).write(b"!");
        }
    }

    /// Empties the pipe that has woken the pump.
    pub(super) fn silence(bell: &UnixStream) {
        let mut some = [0; 64];
        while matches!((&mut &*bell).read(&mut some), Ok(bytes) if bytes > 0) {}
    }

    /// Subscribes. The caller is woken by its mailbox.
    pub(crate) fn add(self: &Arc<Self>, kind: Kind, names: &[Bytes], bounds: Bounds, until: Instant) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::new(bounds));
        let mut state = self.lock();
        if state.is_closed {
            drop(state);
            mailbox.end(Some(Error::new(ErrorKind::Closed, Outcome::NotSent)));
            return mailbox;
        }
        let mut unconfirmed = 0;
        for name in names {
            let key = (kind, name.clone());
            let number = state.numbers + 1;
            let is_new = !state.topics.contains_key(&key);
            if is_new {
                state.numbers = number;
                state.topics.insert(key.clone(), Topic::new(number));
                state.work.push_back(Work { key: key.clone(), topic: Some(number) });
            }
            if let Some(topic) = state.topics.get_mut(&key)
                && !topic.listeners.iter().any(|listener| Arc::ptr_eq(listener, &mailbox))
            {
                topic.listeners.push(Arc::clone(&mailbox));
                unconfirmed += usize::from(!topic.is_held);
            }
        }
        mailbox.expect(unconfirmed);
        if unconfirmed > 0 {
            state.pending.push((Arc::clone(&mailbox), until));
        }
        self.wake(state);
        mailbox
    }

    /// A subscription to these is dropped. What others are subscribed to is not looked at.
    pub(crate) fn remove(self: &Arc<Self>, kind: Kind, names: &[Bytes], mailbox: &Arc<Mailbox>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if !mailbox.was_confirmed() {
            state.pending.retain(|(pending, _)| !Arc::ptr_eq(pending, mailbox));
        }
        for name in names {
            let Entry::Occupied(mut topic) = state.topics.entry((kind, name.clone())) else { continue };
            topic.get_mut().listeners.retain(|listener| !Arc::ptr_eq(listener, mailbox));
            if topic.get().listeners.is_empty() {
                let (key, topic) = topic.remove_entry();
                state.give_up(key, topic.is_asked);
            }
        }
        if !guard.work.is_empty() && guard.has_pump {
            self.wake(guard);
        }
    }

    pub(super) fn wake(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let begins = !std::mem::replace(&mut state.has_pump, true);
        let rings = !std::mem::replace(&mut state.is_woken, true);
        drop(state);
        if begins {
            let hub = Arc::downgrade(self);
            let begun =
                std::thread::Builder::new().name("respool-push".to_owned()).spawn(move || super::pump::run(&hub));
            if let Err(error) = begun {
                self.lock().has_pump = false;
                self.fail_all(&error.to_string());
            }
        } else if rings {
            self.ring();
        }
    }

    /// Ends all subscriptions, for good.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.fail_all("the client is closed");
        self.ring();
    }

    /// All subscriptions end.
    pub(super) fn fail_all(&self, why: &str) {
        let mut state = self.lock();
        let topics = std::mem::take(&mut state.topics);
        state.pending.clear();
        state.work.clear();
        state.astray.clear();
        let kind = if state.is_closed { ErrorKind::Closed } else { ErrorKind::Lost(why.into()) };
        drop(state);
        for listener in topics.into_values().flat_map(|topic| topic.listeners) {
            listener.end(Some(Error::new(kind.clone(), Outcome::NotSent).of(b"SUBSCRIBE"))).wake();
        }
    }

    /// Topics that were sent elsewhere and are still here are asked for again.
    pub(super) fn retry_astray(state: &mut State, now: Instant) {
        for (_, work) in state.astray.extract_if(.., |(due, _)| *due <= now) {
            if State::topic_of(&mut state.topics, &work).is_some() {
                state.work.push_back(work);
            }
        }
    }

    /// Whether the pump has anything to do. Requests for topics of which none is left are nothing.
    pub(super) fn is_idle(state: &State) -> bool {
        let has_work = || state.work.iter().any(|work| work.topic.is_none());
        state.is_closed || state.topics.is_empty() && state.asked.is_empty() && !has_work()
    }

    /// The pump has nothing to do and ends: what is wanted from here on begins another.
    pub(super) fn end_pump(state: &mut State) {
        (state.has_pump, state.stale) = (false, 0);
        state.work.clear();
    }

    /// A connection was made or lost: all topics are subscribed again.
    pub(super) fn begin_anew(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.asked.clear();
        state.ended.clear();
        state.work.clear();
        state.stale = 0;
        state.astray.clear();
        for (key, topic) in &mut state.topics {
            state.work.push_back(Work { key: key.clone(), topic: Some(topic.number) });
            topic.is_asked = false;
            if std::mem::take(&mut topic.is_held) {
                topic.listeners.iter().for_each(|listener| listener.lose(1));
            }
        }
    }

    /// Ends subscriptions whose time is over. Returns when the next one's is.
    pub(super) fn end_late(&self, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        let why = state.last_failure.clone();
        let mut late = Vec::new();
        state.pending.retain(|(mailbox, until)| {
            let is_late = *until <= now;
            if is_late {
                late.push(Arc::clone(mailbox));
            }
            !is_late && mailbox.is_pending()
        });
        let astray = state.astray.iter().map(|(due, _)| *due);
        let next = state.pending.iter().map(|(_, until)| *until).chain(astray).min();
        drop(state);
        for mailbox in late {
            if mailbox.is_pending() {
                mailbox.end(Some(lateness(why.clone()))).wake();
            }
        }
        next
    }

    /// Why a subscription fails whose time is over.
    pub(super) fn why_late(&self) -> Error {
        lateness(self.lock().last_failure.clone())
    }

    /// Something has come from the server. An error ends the connection.
    pub(super) fn take(&self, reply: Reply, waiters: &mut Vec<Waiter>) -> Result<(), &'static str> {
        let elements = match reply {
            Reply::Error(error) => return self.take_refusal(&error, waiters),
            Reply::Status(_) => {
                self.take_pong();
                return Ok(());
            }
            reply => reply.into_elements().map_err(|_| "a reply that nothing asked for")?,
        };
        let mut words = elements.map(|element| match element {
            Reply::Bulk(word) | Reply::Status(word) => Some(word),
            _ => None,
        });
        let mut next = || words.next().flatten();
        let Some(verb) = next() else { return Err("a push without a name") };
        match &*verb {
            b"message" | b"smessage" => {
                let (Some(channel), Some(payload)) = (next(), next()) else { return Err("half a message") };
                let kind = if *verb == b"message"[..] { Kind::Channel } else { Kind::Shard };
                self.publish(&(kind, channel.clone()), Message { channel, pattern: None, payload }, waiters);
            }
            b"pmessage" => {
                let (Some(pattern), Some(channel), Some(payload)) = (next(), next(), next()) else {
                    return Err("half a message");
                };
                let message = Message { channel, pattern: Some(pattern.clone()), payload };
                self.publish(&(Kind::Pattern, pattern), message, waiters);
            }
            b"subscribe" | b"psubscribe" | b"ssubscribe" => return self.take_confirmation(next(), true, waiters),
            b"unsubscribe" | b"punsubscribe" => return self.take_confirmation(next(), false, waiters),
            b"sunsubscribe" => return self.take_shard_end(next(), waiters),
            // As RESP2 answers PING among subscriptions.
            b"pong" => _ = self.take_pong(),
            // Pushes of other kinds.
            _ => {}
        }
        Ok(())
    }

    /// The server has answered, perhaps PING: whether it was that.
    fn take_pong(&self) -> bool {
        let mut state = self.lock();
        let is_pong = matches!(state.asked.front(), Some(Asked::Ping));
        if is_pong {
            state.asked.pop_front();
        }
        is_pong
    }

    fn publish(&self, key: &Key, message: Message, waiters: &mut Vec<Waiter>) {
        let state = self.lock();
        let Some(topic) = state.topics.get(key) else { return };
        for listener in &topic.listeners {
            waiters.push(listener.put(message.clone()));
        }
    }

    fn take_confirmation(
        &self,
        name: Option<Bytes>,
        is_subscribed: bool,
        waiters: &mut Vec<Waiter>,
    ) -> Result<(), &'static str> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(Asked::Topic(asked)) = state.asked.pop_front() else {
            return Err("a confirmation that nothing asked for");
        };
        if asked.topic.is_some() != is_subscribed || name.is_none_or(|name| name != asked.key.1) {
            return Err("confirmations out of order");
        }
        if let Some(topic) = State::topic_of(&mut state.topics, &asked)
            && !std::mem::replace(&mut topic.is_held, true)
        {
            waiters.extend(topic.listeners.iter().map(|listener| listener.confirm()));
        }
        Ok(())
    }

    /// A slot has moved away, or a request was answered.
    fn take_shard_end(&self, name: Option<Bytes>, waiters: &mut Vec<Waiter>) -> Result<(), &'static str> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let is_answer = matches!(state.asked.front(), Some(Asked::Topic(asked))
            if asked.topic.is_none() && asked.key.0 == Kind::Shard && Some(&asked.key.1) == name.as_ref());
        if is_answer {
            if self.cluster.is_some()
                && let Some(name) = &name
            {
                // All that is refused so late is among what was asked for.
                if state.ended.len() >= PUSH_ASKED_MAX {
                    state.ended.pop_front();
                }
                state.ended.push_back(slot_of(name));
            }
            drop(guard);
            return self.take_confirmation(name, false, waiters);
        }
        let Some(name) = name else { return Err("half a confirmation") };
        let key = (Kind::Shard, name);
        if let Some(topic) = state.topics.get_mut(&key)
            && std::mem::take(&mut topic.is_held)
        {
            topic.is_asked = false;
            topic.listeners.iter().for_each(|listener| listener.lose(1));
            state.work.push_back(Work { topic: Some(topic.number), key });
        }
        Ok(())
    }

    /// Whether an error answers a request to end a sharded channel whose end was told already: its slot has gone, and it is none that
    /// the next request could be refused for.
    fn is_refused_end(&self, state: &mut State, error: &ServerError) -> bool {
        if state.ended.is_empty() {
            return false;
        }
        let redirect = self.config.address().and_then(|address| Redirect::parse(error.bytes(), &address));
        let moved = match redirect {
            Some(Redirect::Moved { slot, .. }) => Some(slot),
            _ => None,
        };
        let is_of_next = match state.asked.front() {
            None => false,
            Some(Asked::Topic(next)) if next.key.0 == Kind::Shard => {
                moved.is_none_or(|slot| slot == slot_of(&next.key.1))
            }
            Some(_) => moved.is_none(),
        };
        let place = state.ended.iter().position(|slot| moved.is_none_or(|moved| moved == *slot));
        !is_of_next && place.is_some_and(|place| state.ended.remove(place).is_some())
    }

    /// Those whose subscription ends since the server refuses its topic: all that listen to it. If the server will take it a little later, it
    /// is asked again for those that had it before the connection was lost.
    fn take_refused(state: &mut State, asked: &Work, error: &ServerError) -> Vec<Arc<Mailbox>> {
        let topic = state.topics.get_mut(&asked.key).filter(|topic| Some(topic.number) == asked.topic);
        let Some(topic) = topic else { return Vec::new() };
        let passes = matches!(error.code(), "BUSY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN");
        let refused = topic.listeners.extract_if(.., |listener| !passes || !listener.was_confirmed()).collect();
        if topic.listeners.is_empty() {
            state.topics.remove(&asked.key);
        } else {
            state.astray.push((Instant::now() + MOVED_RETRY_PAUSE, asked.clone()));
        }
        refused
    }

    /// The server does not want to do what it was asked for first.
    fn take_refusal(&self, error: &ServerError, waiters: &mut Vec<Waiter>) -> Result<(), &'static str> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if self.is_refused_end(state, error) {
            return Ok(());
        }
        let asked = match state.asked.pop_front() {
            Some(Asked::Topic(asked)) => asked,
            Some(Asked::Ping) => return Ok(()),
            None => return Err("an error that nothing asked for"),
        };
        let topic = State::topic_of(&mut state.topics, &asked);
        let is_current = topic.map(|topic| topic.is_asked = false).is_some();
        if is_current && self.cluster.is_some() {
            drop(guard);
            if self.follow_refusal(&asked, error) {
                return Ok(());
            }
            guard = self.lock();
        }
        let refused = Self::take_refused(&mut guard, &asked, error);
        drop(guard);
        for listener in refused {
            let error = Error::new(ErrorKind::Server(error.clone()), Outcome::Replied);
            waiters.push(listener.end(Some(error.of(asked.key.0.subscribe()))));
        }
        Ok(())
    }
}

fn lateness(failure: Option<Arc<str>>) -> Error {
    let kind = failure.map_or(ErrorKind::Timeout(None), ErrorKind::Lost);
    Error::new(kind, Outcome::MaybeExecuted).of(b"SUBSCRIBE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox_bounds() -> Bounds {
        Bounds { messages: 9, bytes: 100, overflow: super::super::Overflow::DropOldest }
    }

    fn hub() -> (Arc<Hub>, Arc<Mailbox>) {
        let hub = Hub::new(Config::from_url("localhost").unwrap(), None);
        // Nothing is begun that would talk to a server.
        hub.lock().has_pump = true;
        let names = [Bytes::from_static(b"a")];
        let mailbox =
            hub.add(Kind::Channel, &names, mailbox_bounds(), Instant::now() + std::time::Duration::from_secs(60));
        (hub, mailbox)
    }

    /// The next request is sent.
    fn ask(hub: &Hub, is_ping: bool) {
        let mut state = hub.lock();
        let asked = if is_ping { Asked::Ping } else { Asked::Topic(state.work.pop_front().unwrap()) };
        assert!(!matches!(&asked, Asked::Topic(work) if !state.note_asked(work)));
        state.asked.push_back(asked);
    }

    /// Sends all requests. What is subscribed to by them, and what is not any longer.
    fn ask_all(hub: &Hub) -> Vec<(bool, String)> {
        let mut state = hub.lock();
        let mut asked = Vec::new();
        while let Some(work) = state.work.pop_front() {
            if state.note_asked(&work) {
                asked.push((work.topic.is_some(), String::from_utf8(work.key.1.to_vec()).unwrap()));
                state.asked.push_back(Asked::Topic(work));
            }
        }
        asked
    }

    fn take(hub: &Hub, bytes: &[u8]) -> Result<(), &'static str> {
        hub.take(Reply::copied(bytes).unwrap(), &mut Vec::new())
    }

    const CONFIRMED: &[u8] = b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n";

    fn is_confirmed(mailbox: &Mailbox) -> Option<bool> {
        mailbox.confirmed_or_wait(|| Waiter::None).map(|result| result.is_ok())
    }

    #[test]
    fn any_answer_to_a_ping_is_one() {
        for answer in [&b"-NOPERM no ping\r\n"[..], b"+PONG\r\n", b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"] {
            let (hub, mailbox) = hub();
            ask(&hub, true);
            ask(&hub, false);
            assert_eq!(take(&hub, answer), Ok(()));
            assert_eq!(is_confirmed(&mailbox), None);
            assert_eq!(take(&hub, CONFIRMED), Ok(()));
            assert_eq!(is_confirmed(&mailbox), Some(true));
            assert!(take(&hub, b"-ERR unasked\r\n").is_err());
        }
    }

    #[test]
    fn a_confirmed_subscription_survives_a_lost_connection() {
        let (hub, mailbox) = hub();
        ask(&hub, false);
        take(&hub, CONFIRMED).unwrap();
        hub.begin_anew();
        hub.end_late(Instant::now() + std::time::Duration::from_secs(120));
        assert_eq!(is_confirmed(&mailbox), Some(true));
    }

    #[test]
    fn what_is_dropped_before_it_is_asked_for_is_not_asked_for() {
        let (hub, mailbox) = hub();
        let name = [Bytes::from_static(b"a")];
        let (bounds, until) = (mailbox_bounds(), Instant::now() + std::time::Duration::from_secs(60));
        // Before there is a connection, and then again by another.
        hub.remove(Kind::Channel, &name, &mailbox);
        assert!(Hub::is_idle(&hub.lock()), "nothing is wanted: no connection is made for it");
        let again = hub.add(Kind::Channel, &name, bounds, until);
        assert_eq!(ask_all(&hub), [(true, "a".to_owned())]);
        // Asked for and not confirmed: it is not wanted behind that.
        hub.remove(Kind::Channel, &name, &again);
        assert!(!Hub::is_idle(&hub.lock()));
        assert_eq!(ask_all(&hub), [(false, "a".to_owned())]);
        take(&hub, CONFIRMED).unwrap();
        take(&hub, b">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n").unwrap();
        assert!(Hub::is_idle(&hub.lock()));
        // Held, and dropped while there is no connection.
        let held = hub.add(Kind::Channel, &name, bounds, until);
        let other = hub.add(Kind::Channel, &[Bytes::from_static(b"b")], bounds, until);
        assert_eq!(ask_all(&hub).len(), 2);
        take(&hub, CONFIRMED).unwrap();
        hub.begin_anew();
        hub.remove(Kind::Channel, &name, &held);
        assert_eq!(ask_all(&hub), [(true, "b".to_owned())]);
        hub.remove(Kind::Channel, &[Bytes::from_static(b"b")], &other);
        hub.end_late(Instant::now());
        let state = hub.lock();
        assert!(state.topics.is_empty() && state.pending.is_empty());
    }

    #[test]
    fn topics_that_come_and_go_without_a_connection_leave_nothing() {
        let (hub, _stays) = hub();
        let until = Instant::now() + std::time::Duration::from_secs(60);
        for round in 0..10_000 {
            let name = [Bytes::from(format!("{round}"))];
            let mailbox = hub.add(Kind::Channel, &name, mailbox_bounds(), until);
            hub.remove(Kind::Channel, &name, &mailbox);
        }
        let state = hub.lock();
        assert!(state.work.len() <= 2 * STALE_MAX, "{}", state.work.len());
        assert_eq!((state.topics.len(), state.pending.len()), (1, 1));
        drop(state);
        assert_eq!(ask_all(&hub), [(true, "a".to_owned())]);
    }

    #[test]
    fn a_channel_that_ends_before_it_is_asked_may_be_refused() {
        let hub = Hub::new(Config::from_url("localhost").unwrap(), Some(Weak::new()));
        hub.lock().has_pump = true;
        let until = Instant::now() + std::time::Duration::from_secs(60);
        let add = |name| hub.add(Kind::Shard, &[Bytes::from_static(name)], mailbox_bounds(), until);
        let gone = add(b"a");
        ask(&hub, false);
        take(&hub, b">3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n").unwrap();
        hub.remove(Kind::Shard, &[Bytes::from_static(b"a")], &gone);
        let other = add(b"b");
        ask(&hub, false);
        ask(&hub, false);
        let moved = format!("-MOVED {} 127.0.0.1:1\r\n", slot_of(b"a"));
        take(&hub, b">3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n").unwrap();
        assert_eq!(take(&hub, moved.as_bytes()), Ok(()));
        assert_eq!(is_confirmed(&other), None);
        take(&hub, b">3\r\n$10\r\nssubscribe\r\n$1\r\nb\r\n:1\r\n").unwrap();
        assert_eq!(is_confirmed(&other), Some(true));
        assert!(take(&hub, moved.as_bytes()).is_err());
    }

    #[test]
    fn a_subscription_dropped_on_the_way_is_not_taken_in() {
        let (hub, mailbox) = hub();
        mailbox.end(None);
        let listeners = vec![Arc::clone(&mailbox)];
        let name = Bytes::from_static(b"s");
        let woken = hub.adopt(super::super::Moving { kind: Kind::Shard, name, listeners, pending: Vec::new() });
        assert!(woken.is_empty());
        assert!(!hub.lock().topics.keys().any(|(kind, _)| *kind == Kind::Shard));
    }
}
