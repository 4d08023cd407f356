//! Periodic DNS lookups of the host names of open connections.
//!
//! Every dial resolves its host name, so new connections use the current addresses. This module resolves the names of open
//! connections at an interval and reports connections whose address is no longer among the answers:
//!
//! ```text
//!   [address among the answers] <-------------------------------.
//!        | an answer without it                                  | an answer with it
//!        v                                                       |
//!   [missed once] -- the next answer without it --> reported to the machine, once
//! ```
//!
//! One answer is no evidence: a name server may give another part of a long list each time, or a stale list. Errors, answers
//! without an address and the lookups of dials do not count.

use super::Worker;
use crate::limits::{ANSWERS_WITHOUT_MAX, NAMES_CHECKED_AT_ONCE_MAX};
use crate::resolver::Name;
use respool_connection::{ConnId, DialFailure, Machine, Now};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The host name by which a connection was dialled, and its address.
pub(super) struct Named {
    name: Arc<Name>,
    ip: IpAddr,
    /// Answers in a row without this address.
    missing: u8,
}

impl Named {
    pub(super) fn new(name: Arc<Name>, ip: IpAddr) -> Self {
        Self { name, ip, missing: 0 }
    }

    /// Counts an answer. Returns whether the address has just been missing from enough answers.
    fn hear(&mut self, addresses: &[SocketAddr]) -> bool {
        if addresses.iter().any(|address| address.ip() == self.ip) {
            self.missing = 0;
            return false;
        }
        let was_told = self.missing >= ANSWERS_WITHOUT_MAX;
        self.missing = self.missing.saturating_add(1);
        !was_told && self.missing >= ANSWERS_WITHOUT_MAX
    }
}

/// The host names that one worker resolves periodically.
#[derive(Default)]
pub(super) struct Names {
    interval: Option<Duration>,
    /// The time of the next round; `None` while no round is scheduled.
    due_us: Option<u64>,
    /// Names of this round whose lookup has not begun.
    queue: Vec<Arc<Name>>,
    /// Names under lookup, by the number of the lookup. A lookup without an answer stays.
    asked: HashMap<u64, Arc<Name>>,
}

impl Names {
    pub(super) fn set_interval(&mut self, interval: Option<Duration>) {
        (self.interval, self.due_us) = (interval, None);
    }

    pub(super) fn due_us(&self) -> Option<u64> {
        self.due_us
    }

    /// Schedules a round, as a connection was dialled by a host name.
    pub(super) fn plan(&mut self, now: Now) {
        if let (None, Some(interval)) = (self.due_us, self.interval) {
            self.due_us = Some(now.mono_us + u64::try_from(interval.as_micros()).unwrap_or(u64::MAX));
        }
    }

    /// Begins a round with these names; what is left of the one before is not asked for.
    fn begin(&mut self, names: impl Iterator<Item = Arc<Name>>) {
        self.due_us = None;
        self.queue.clear();
        for name in names {
            if !self.queue.contains(&name) && !self.asked.values().any(|asked| *asked == name) {
                self.queue.push(name);
            }
        }
    }

    /// The next to be asked for.
    fn next(&mut self) -> Option<Arc<Name>> {
        if self.asked.len() >= NAMES_CHECKED_AT_ONCE_MAX { None } else { self.queue.pop() }
    }
}

impl<M: Machine> Worker<M> {
    /// Looks all names up again to which connections stand.
    #[cold]
    pub(super) fn look_names_up(&mut self, now: Now) {
        let named = self.upstreams.iter().flatten().filter_map(|connection| connection.named.as_ref());
        self.names.begin(named.map(|named| Arc::clone(&named.name)));
        if !self.names.queue.is_empty() || !self.names.asked.is_empty() {
            self.names.plan(now);
        }
        self.ask_for_names();
    }

    fn ask_for_names(&mut self) {
        while let Some(name) = self.names.next() {
            let number = self.next_resolution;
            self.next_resolution += 1;
            let (host, port) = &*name;
            if self.resolver.as_ref().is_some_and(|resolver| resolver.ask(number, host, *port)) {
                self.names.asked.insert(number, name);
            }
        }
    }

    /// A name has been looked up, for a dial or to compare.
    pub(super) fn take_resolution(&mut self, number: u64, answer: Result<Vec<SocketAddr>, DialFailure>) {
        if let Some(name) = self.names.asked.remove(&number) {
            if let Ok(addresses) = answer {
                self.compare(&name, &addresses);
            }
            self.ask_for_names();
            return;
        }
        let Some(resolving) = self.resolving.remove(&number) else { return };
        match answer {
            Ok(addresses) => self.dial_tcp(resolving.conn, self.silences.ways(resolving, addresses)),
            Err(failure) => self.machine.handle_dial_failed(resolving.conn, failure),
        }
    }

    fn compare(&mut self, name: &Arc<Name>, addresses: &[SocketAddr]) {
        let mut moved = Vec::new();
        for (place, connection) in self.upstreams.iter_mut().enumerate() {
            let named = connection.as_mut().and_then(|connection| connection.named.as_mut());
            if named.is_some_and(|named| named.name == *name && named.hear(addresses)) {
                moved.push(ConnId::upstream(place as u32));
            }
        }
        if moved.is_empty() {
            return;
        }
        let list = addresses.iter().take(NAMES_CHECKED_AT_ONCE_MAX).map(SocketAddr::to_string);
        let list = list.collect::<Vec<_>>().join(", ");
        moved.into_iter().for_each(|conn| self.machine.handle_moved(conn, &list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox;
    use crate::resolver::{LookUp, Resolver};
    use crate::testing::{Reacts, alone};
    use respool_connection::{Action, Endpoint};
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Dials names once, and ends when one of their connections has moved.
    struct Follower {
        actions: Vec<Action<()>>,
        moved: Arc<Mutex<Vec<(ConnId, String)>>>,
    }

    impl Reacts for Follower {
        fn actions(&mut self) -> &mut Vec<Action<()>> {
            &mut self.actions
        }

        fn handle_moved(&mut self, conn: ConnId, addresses: &str) {
            self.moved.lock().unwrap().push((conn, addresses.to_owned()));
            self.actions.push(Action::Exit);
        }

        fn handle_dial_failed(&mut self, _: ConnId, failure: DialFailure) {
            panic!("{failure:?}");
        }
    }

    /// What moved when these names were dialled and looked up every millisecond.
    fn follow(hosts: &[&str], port: u16, look_up: LookUp) -> Vec<(ConnId, String)> {
        let dial = |(place, host): (usize, &&str)| Action::Dial {
            conn: ConnId::upstream(place as u32),
            endpoint: Arc::new(Endpoint::Tcp { host: (*host).to_owned(), port }),
        };
        let (postbox, inbox) = mailbox();
        let moved: Arc<Mutex<Vec<(ConnId, String)>>> = Arc::default();
        let machine = Follower { actions: hosts.iter().enumerate().map(dial).collect(), moved: Arc::clone(&moved) };
        let mut setup = alone(machine, (postbox.clone(), inbox), Vec::new());
        setup.transport.names_interval = Some(Duration::from_millis(1));
        let mut worker = Worker::new(setup).unwrap();
        worker.resolver = Some(Resolver::with(postbox, look_up));
        worker.run().unwrap();
        let moved = moved.lock().unwrap();
        moved.clone()
    }

    #[test]
    fn an_address_has_gone_when_two_answers_are_without_it() {
        let node = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = node.local_addr().unwrap().port();
        let [here, there] = [1, 2].map(|last| SocketAddr::from(([127, 0, 0, last], port)));
        let none = || Err(std::io::Error::other("the name server is away"));
        let answers = move |number: usize| match number {
            // The dial's own, and then all that says nothing of this address, or that it is still there.
            0 => Ok(vec![here]),
            1 | 4 => none(),
            2 => Ok(Vec::new()),
            3 | 5 => Ok(vec![there]),
            _ => panic!("it was told after the second"),
        };
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let moved = follow(&["node.example"], port, Arc::new(move |_| answers(count.fetch_add(1, Ordering::SeqCst))));
        assert_eq!(moved, [(ConnId::upstream(0), there.to_string())]);
        assert_eq!(asked.load(Ordering::SeqCst), 6, "an error between two answers takes nothing back");
    }

    #[test]
    fn an_answer_with_the_address_begins_anew() {
        let here = IpAddr::from([10, 0, 0, 1]);
        let [with, without] = [[1, 2], [3, 2]].map(|hosts| hosts.map(|host| SocketAddr::from(([10, 0, 0, host], 7))));
        let mut named = Named::new(Arc::new(("a".to_owned(), 7)), here);
        let heard = [without, with, without, with, without, without, without, with, without, without];
        let told = heard.map(|addresses| named.hear(&addresses));
        assert_eq!(told, [false, false, false, false, false, true, false, false, false, true]);
    }

    #[test]
    fn names_that_are_never_answered_stop_no_other() {
        let node = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = node.local_addr().unwrap().port();
        let [here, there] = [1, 2].map(|last| SocketAddr::from(([127, 0, 0, last], port)));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Mutex::new(held);
        let counts: Mutex<HashMap<String, usize>> = Mutex::default();
        let look_up: LookUp = Arc::new(move |(host, _): &Name| {
            let count = {
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(host.clone()).or_default();
                *count += 1;
                *count
            };
            if count > 1 && host != "moves" {
                // Until the test is over.
                _ = held.lock().unwrap().recv();
            }
            Ok(vec![if count > 1 { there } else { here }])
        });
        let hosts = ["moves", "hangs", "hangs too", "and this"];
        assert!(hosts.len() <= NAMES_CHECKED_AT_ONCE_MAX);
        assert_eq!(follow(&hosts, port, look_up), [(ConnId::upstream(0), there.to_string())]);
        drop(release);
    }
}
