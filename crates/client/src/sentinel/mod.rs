//! Servers that sentinels know: which one is the master now, or a replica to read from.
//!
//! ```text
//!   dial: ask a sentinel for the master -> connect -> ROLE says so -> used
//!            ^                                '- says otherwise: not connected, tried again
//!            '--- lost, or a sentinel has told +switch-master, or a reply was READONLY: the sockets of the old master are shut
//! ```
//!
//! Every connection of a client is made this way: the shared one, those beside it, and that of subscriptions. One thread hears what the
//! sentinels tell while there is a connection, or one is made.
//!
//! Sentinels may disagree: one that was cut off still names the master of before a failover. Each failover has a higher epoch than those
//! before, so the highest that was told holds.

mod address;
mod talk;
mod watcher;

use crate::Config;
use crate::core::{Failure, Link, Lookup, Peer, Socket};
use crate::limits::SENTINELS_MAX;
use crate::url::Address;
pub(crate) use address::SentinelAddress;
use respool_connection::{Credentials, Endpoint, Identity};
use respool_wire::Protocol;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use talk::Talk;

/// Which server a client of sentinels uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The master.
    #[default]
    Master,
    /// One of its replicas, which may be behind it; the master while there is none.
    Replica,
}

/// The sentinels of a client, and the sockets of servers that they have led to.
#[derive(Debug)]
pub(crate) struct Sentinels {
    name: String,
    pub(crate) role: Role,
    credentials: Option<Arc<Credentials>>,
    /// The way in which all are reached.
    template: Endpoint,
    known: Mutex<Vec<(String, u16)>>,
    /// Which of them has answered last.
    last: AtomicUsize,
    /// The epoch of the master that is used, if one was told.
    epoch: Mutex<Option<u64>>,
    sockets: Mutex<Sockets>,
}

/// Where the master is, as a sentinel says.
#[derive(Clone, Debug)]
struct Told {
    host: String,
    port: u16,
    /// The epoch of the sentinel's configuration, if it says one.
    epoch: Option<u64>,
}

/// The sockets of servers that sentinels have led to, and what was told of the servers meanwhile.
#[derive(Debug, Default)]
struct Sockets {
    open: Vec<(SocketAddr, Weak<Socket>)>,
    /// Connections that are being made, and have no socket here.
    dialling: usize,
    /// How often sockets were left. A connection that was begun before is compared with what was told last.
    generation: u64,
    /// The addresses that were told last.
    told: Vec<SocketAddr>,
    has_watcher: bool,
}

impl Sockets {
    /// Whether there is no connection, and none is made.
    fn is_idle(&mut self) -> bool {
        self.open.retain(|(_, socket)| socket.strong_count() > 0);
        self.dialling == 0 && self.open.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sentinels {
    /// The sentinels of an address, and what the address says beside.
    pub(crate) fn of(address: SentinelAddress) -> (Address, Arc<Self>) {
        let sentinels = Self {
            name: address.name,
            role: address.role,
            credentials: address.credentials.map(Arc::new),
            template: address.rest.endpoint.clone(),
            known: Mutex::new(address.sentinels),
            last: AtomicUsize::new(0),
            epoch: Mutex::default(),
            sockets: Mutex::default(),
        };
        (address.rest, Arc::new(sentinels))
    }

    /// The same sentinels, for servers of this role.
    pub(crate) fn of_role(&self, role: Role) -> Arc<Self> {
        Arc::new(Self {
            name: self.name.clone(),
            role,
            credentials: self.credentials.clone(),
            template: self.template.clone(),
            known: Mutex::new(lock(&self.known).clone()),
            last: AtomicUsize::new(0),
            epoch: Mutex::default(),
            sockets: Mutex::default(),
        })
    }

    /// What an observer is told in the place of an address.
    pub(crate) fn shown(&self) -> String {
        let role = if self.role == Role::Master { "master" } else { "replica" };
        format!("{role} {} of sentinels", self.name)
    }

    /// The settings of a connection to a sentinel.
    fn settings(&self, config: &Config, host: &str, port: u16) -> Config {
        let identity = Identity {
            credentials: self.credentials.clone(),
            protocol: Protocol::Resp2,
            pacing: config.identity.pacing,
            ..Identity::default()
        };
        Config {
            endpoint: SentinelAddress::at(&self.template, host, port),
            identity,
            sentinels: None,
            ..config.clone()
        }
    }

    /// Asks the sentinels, one after the other and each within its part of the time, until `ask` has an answer.
    fn ask<T>(
        &self,
        config: &Config,
        lookup: &Lookup,
        until: Instant,
        mut ask: impl FnMut(&mut Talk) -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let known = lock(&self.known).clone();
        let first = self.last.load(Ordering::Relaxed);
        let mut why = "none of the sentinels knows it".to_owned();
        for tried in 0..known.len() {
            let place = (first + tried) % known.len();
            let (host, port) = &known[place];
            let now = Instant::now();
            let share = until.saturating_duration_since(now) / u32::try_from(known.len() - tried).unwrap_or(u32::MAX);
            let settings = self.settings(config, host, *port);
            let asked = Talk::connect(&settings, lookup, now + share).and_then(|mut talk| ask(&mut talk));
            match asked {
                Ok(Some(answer)) => {
                    self.last.store(place, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(None) => {}
                Err(failure) => why = failure.to_string(),
            }
        }
        Err(Failure::Lost(format!("no sentinel tells of {}: {why}", self.shown())))
    }

    /// Where the master is, as one sentinel says.
    fn master(&self, talk: &mut Talk) -> Result<Option<Told>, Failure> {
        // A failover between the two answers makes the epoch too low, and the sentinel is passed over. The other way round an old
        // address would be believed.
        let state = talk.ask_if_it_may(&[b"SENTINEL", b"MASTER", self.name.as_bytes()])?;
        let state = state.map(talk::entry).unwrap_or_default();
        let epoch = state.get("config-epoch").and_then(|epoch| epoch.parse().ok());
        let reply = talk.ask(&[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", self.name.as_bytes()])?;
        let mut words = talk::words(reply);
        let place = words.next().zip(words.next().and_then(|port| port.parse().ok()));
        Ok(place.map(|(host, port)| Told { host, port, epoch }))
    }

    /// Whether a sentinel knows of a later master, or of the same, than all that was told before.
    fn note_epoch(&self, told: &Told) -> bool {
        let mut epoch = lock(&self.epoch);
        let is_current = told.epoch.is_none() || told.epoch >= *epoch;
        if is_current {
            *epoch = told.epoch.max(*epoch);
        }
        is_current
    }

    /// Where the master is. At first the latest is meant that a majority of the sentinels knows of; then none that is older than what was told,
    /// unless no sentinel knows of a later one, as when they were set up anew. One that reaches no majority of them has not been set up anew: it
    /// has missed a failover.
    fn find_master(&self, config: &Config, lookup: &Lookup, until: Instant) -> Result<Told, Failure> {
        let is_first = lock(&self.epoch).is_none();
        let majority = lock(&self.known).len() / 2 + 1;
        let (mut latest, mut answers): (Option<Told>, usize) = (None, 0);
        let asked = self.ask(config, lookup, until, |talk| {
            let Some(told) = self.master(talk)? else { return Ok(None) };
            answers += 1;
            let has_epoch = told.epoch.is_some();
            let is_current = self.note_epoch(&told);
            if !is_first && !is_current && talk.is_cut_off(&self.name)? {
                return Ok(None);
            }
            if latest.as_ref().is_none_or(|latest| told.epoch > latest.epoch) {
                latest = Some(told);
            }
            let is_enough = if is_first && has_epoch { answers >= majority } else { is_current };
            Ok(latest.clone().filter(|_| is_enough))
        });
        asked.or_else(|failure| {
            let latest = latest.ok_or(failure)?;
            *lock(&self.epoch) = latest.epoch;
            Ok(latest)
        })
    }

    /// Where replicas are that are up, as one sentinel says.
    fn replicas(&self, talk: &mut Talk) -> Result<Vec<(String, u16)>, Failure> {
        let reply = talk.ask(&[b"SENTINEL", b"REPLICAS", self.name.as_bytes()])?;
        let is_up = |flags: &str| !["down", "disconnected"].iter().any(|word| flags.contains(word));
        let entries = talk::entries(reply);
        let up = entries.filter(|entry| entry.get("flags").is_none_or(|flags| is_up(flags)));
        let up = up.filter(|entry| entry.get("master-link-status").is_none_or(|status| status == "ok"));
        Ok(up.filter_map(|entry| entry.get("ip").cloned().zip(entry.get("port")?.parse().ok())).collect())
    }

    /// Learns of other sentinels.
    fn learn(&self, talk: &mut Talk) -> Result<(), Failure> {
        let reply = talk.ask(&[b"SENTINEL", b"SENTINELS", self.name.as_bytes()])?;
        let mut known = lock(&self.known);
        for entry in talk::entries(reply) {
            let place = entry.get("ip").cloned().zip(entry.get("port").and_then(|port| port.parse().ok()));
            if let Some(place) = place.filter(|place| known.len() < SENTINELS_MAX && !known.contains(place)) {
                known.push(place);
            }
        }
        Ok(())
    }

    /// Connects to the server of the role: that of another connection, if one is given.
    pub(crate) fn connect(
        self: &Arc<Self>,
        other: Option<&Link>,
        config: &Config,
        lookup: &Lookup,
        until: Instant,
    ) -> Result<Link, Failure> {
        let generation = self.begin_dial(config);
        let dialled = self.dial(other, config, lookup, until);
        let mut sockets = lock(&self.sockets);
        sockets.dialling -= 1;
        let link = dialled?;
        let socket = link.socket_of();
        let is_told = socket.as_ref().is_some_and(|(peer, _)| sockets.told.contains(peer));
        if sockets.generation != generation && !is_told {
            // What was left meanwhile did not include this socket, and the server may say that it is a master for a while.
            return Err(Failure::Lost("another server has become the master meanwhile".to_owned()));
        }
        sockets.open.retain(|(_, socket)| socket.strong_count() > 0);
        sockets.open.extend(socket);
        Ok(link)
    }

    fn dial(&self, other: Option<&Link>, config: &Config, lookup: &Lookup, until: Instant) -> Result<Link, Failure> {
        let endpoint = match other {
            Some(other) => other.endpoint().clone(),
            None => self.find(config, lookup, until)?,
        };
        let settings = Config { endpoint, sentinels: None, ..config.clone() };
        let mut link = Link::connect_beside(other, &settings, lookup, until)?;
        let role = Talk::over(&settings, &mut link, until)?.role()?;
        if self.role == Role::Master && role.is_some_and(|role| role != "master") {
            return Err(Failure::Lost("the server that a sentinel has named is no master".to_owned()));
        }
        Ok(link)
    }

    /// Where a server of the role is, as the sentinels say.
    fn find(&self, config: &Config, lookup: &Lookup, until: Instant) -> Result<Endpoint, Failure> {
        // Half of the time is for the server, at least.
        let now = Instant::now();
        let asked_until = now + until.saturating_duration_since(now) / 2;
        if self.role == Role::Master {
            let Told { host, port, .. } = self.find_master(config, lookup, asked_until)?;
            return Ok(SentinelAddress::at(&self.template, &host, port));
        }
        let (host, port) = self.ask(config, lookup, asked_until, |talk| {
            let Some(master) = self.master(talk)?.map(|told| (told.host, told.port)) else { return Ok(None) };
            let replicas = self.replicas(talk)?;
            let chosen = crate::core::chance() as usize % replicas.len().max(1);
            Ok(Some(replicas.get(chosen).cloned().unwrap_or(master)))
        })?;
        Ok(SentinelAddress::at(&self.template, &host, port))
    }

    /// Shuts the sockets to other servers than that at `told`; without an address, to all.
    fn leave(&self, told: Vec<SocketAddr>) {
        let mut sockets = lock(&self.sockets);
        let open = std::mem::take(&mut sockets.open);
        let (stay, go): (Vec<_>, Vec<_>) = open.into_iter().partition(|(peer, _)| told.contains(peer));
        sockets.open = stay;
        sockets.generation += 1;
        sockets.told = told;
        drop(sockets);
        for socket in go.into_iter().filter_map(|(_, socket)| socket.upgrade()) {
            // What reads there sees the end, and asks the sentinels again.
            socket.shut();
        }
    }

    /// The server at `peer` has refused to write: it is no master any longer. A replica refuses always.
    pub(crate) fn note_refused(&self, peer: Peer) {
        let Peer::Tcp(peer) = peer else { return };
        if self.role != Role::Master {
            return;
        }
        let mut sockets = lock(&self.sockets);
        let (go, stay): (Vec<_>, Vec<_>) = sockets.open.drain(..).partition(|(other, _)| *other == peer);
        sockets.open = stay;
        drop(sockets);
        go.into_iter().filter_map(|(_, socket)| socket.upgrade()).for_each(|socket| socket.shut());
    }

    /// A connection is being made, while which is heard what the sentinels tell. Returns the generation.
    fn begin_dial(self: &Arc<Self>, config: &Config) -> u64 {
        let mut sockets = lock(&self.sockets);
        sockets.dialling += 1;
        let generation = sockets.generation;
        if std::mem::replace(&mut sockets.has_watcher, true) {
            return generation;
        }
        drop(sockets);
        let sentinels = Arc::downgrade(self);
        let config = Config { sentinels: None, ..config.clone() };
        let begun = std::thread::Builder::new().name("respool-sentinel".to_owned());
        if begun.spawn(move || watcher::run(&sentinels, &config)).is_err() {
            lock(&self.sockets).has_watcher = false;
        }
        generation
    }

    /// Whether the thread ends: there is no connection, and none is made. The next one begins another.
    fn retire(&self) -> bool {
        let mut sockets = lock(&self.sockets);
        let is_idle = sockets.is_idle();
        sockets.has_watcher &= !is_idle;
        is_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_master_with_several_addresses_is_not_left() {
        let parsed = SentinelAddress::parse("redis+sentinel://127.0.0.1:1/main").unwrap().unwrap();
        let (_, sentinels) = Sentinels::of(parsed);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let socket = Arc::new(Socket::Tcp(TcpStream::connect(peer).unwrap()));
        let is_open = || !lock(&sentinels.sockets).open.is_empty();
        lock(&sentinels.sockets).open.push((peer, Arc::downgrade(&socket)));
        let other = SocketAddr::from(([127, 0, 0, 2], peer.port()));
        sentinels.leave(vec![other, peer]);
        assert!(is_open());
        sentinels.leave(vec![other]);
        assert!(!is_open());
    }
}
