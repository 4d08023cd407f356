//! Periodic DNS lookups of the host names of open connections.
//!
//! Every dial resolves its host name, so new connections use the current addresses. This module resolves the names of open
//! connections at an interval and reports connections whose address is no longer among the answers:
//!
//! ```text
//!   [address among the answers] <-------------------------------.
//!        | an answer without it                                  | an answer with it
//!        v                                                       |
//!   [missed once] -- the next answer without it --> reported to the machine, and again while that goes on
//! ```
//!
//! One answer is no evidence: a name server may give another part of a long list each time, or a stale list. Errors, answers
//! without an address and the lookups of dials do not count. An address that returns soon after it was taken for gone shows
//! that the name is such a list: then it takes twice as many answers, see [`History`]. How long an answer holds (its TTL) the
//! system's resolver does not say; one that caches answers gives the same again until then.

use super::Worker;
use super::named::Named;
use crate::limits::{
    ADDRESSES_REMEMBERED_MAX, ANSWERS_CALM, ANSWERS_TO_RETURN, ANSWERS_WITHOUT_MAX, ANSWERS_WITHOUT_MIN,
    NAMES_CHECKED_AT_ONCE_MAX,
};
use crate::resolver::Name;
use respool_connection::{ConnId, DialFailure, Now, Service};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// What the answers for one name have been like.
struct History {
    answers: u64,
    /// The number of answers in a row from which an address must be missing.
    enough: u8,
    /// The answer with which that changed last.
    changed: u64,
    /// Addresses that were taken for gone, each with the answer that was the reason.
    gone: VecDeque<(IpAddr, u64)>,
}

impl Default for History {
    fn default() -> Self {
        Self { answers: 0, enough: ANSWERS_WITHOUT_MIN, changed: 0, gone: VecDeque::new() }
    }
}

impl History {
    /// Counts an answer with these addresses, which are sorted.
    fn hear(&mut self, addresses: &[IpAddr]) {
        self.answers += 1;
        let now = self.answers;
        self.gone.retain(|(_, at)| now - at <= ANSWERS_TO_RETURN);
        let before = self.gone.len();
        self.gone.retain(|(ip, _)| addresses.binary_search(ip).is_err());
        if self.gone.len() < before {
            self.enough = self.enough.saturating_mul(2).min(ANSWERS_WITHOUT_MAX);
            self.changed = now;
        } else if self.enough > ANSWERS_WITHOUT_MIN && now - self.changed > ANSWERS_CALM {
            self.enough /= 2;
            self.changed = now;
        }
    }

    /// Counts an answer with these addresses, which are sorted, for all connections to the name. Gives those whose addresses have
    /// gone. If one of them has, the others that are not in this answer have gone with it, unless answers are known to differ:
    /// some of them must not be used on without the others.
    fn hear_answer(&mut self, mut named: Vec<(usize, &mut Named)>, addresses: &[IpAddr]) -> Vec<usize> {
        self.hear(addresses);
        for (_, named) in &mut named {
            let is_among = addresses.binary_search(&named.ip).is_ok();
            if is_among && named.missing >= ANSWERS_WITHOUT_MIN {
                // They still come and go.
                self.changed = self.answers;
            }
            named.hear(is_among);
        }
        if !named.iter().any(|(_, named)| named.is_gone(self.enough)) {
            return Vec::new();
        }
        let enough = if self.enough > ANSWERS_WITHOUT_MIN { self.enough } else { 1 };
        let mut gone = Vec::new();
        for (place, named) in named.into_iter().filter(|(_, named)| named.is_gone(enough)) {
            // If it goes on, it is told again: a connection may have been made in between that seemed to say otherwise.
            named.missing = 0;
            self.note_gone(named.ip);
            gone.push(place);
        }
        gone
    }

    /// An address is taken for gone.
    fn note_gone(&mut self, ip: IpAddr) {
        if self.gone.iter().any(|(known, _)| *known == ip) {
            return;
        }
        if self.gone.len() >= ADDRESSES_REMEMBERED_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back((ip, self.answers));
    }
}

/// The host names that one worker resolves periodically.
#[derive(Default)]
pub(super) struct Names {
    interval: Option<Duration>,
    /// The time of the next round; `None` while no round is scheduled.
    due_us: Option<u64>,
    /// Names whose lookup has not begun.
    queue: VecDeque<Arc<Name>>,
    /// Names under lookup, by the number of the lookup. A lookup without an answer stays.
    asked: HashMap<u64, Arc<Name>>,
    /// Of names to which there are connections.
    histories: HashMap<Arc<Name>, History>,
}

impl Names {
    pub(super) fn set_interval(&mut self, interval: Option<Duration>) {
        // A reload that leaves it as it is puts off no round.
        if self.interval != interval {
            (self.interval, self.due_us) = (interval, None);
        }
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

    /// Begins a round with the names to which there are connections. Names for which there was no time in the round before are
    /// the first of this one.
    fn begin(&mut self, standing: HashSet<Arc<Name>>) {
        self.due_us = None;
        self.histories.retain(|name, _| standing.contains(name));
        self.queue.retain(|name| standing.contains(name));
        let known: HashSet<Arc<Name>> = self.queue.iter().chain(self.asked.values()).cloned().collect();
        self.queue.extend(standing.into_iter().filter(|name| !known.contains(name)));
    }

    /// The next to be asked for.
    fn next(&mut self) -> Option<Arc<Name>> {
        if self.asked.len() >= NAMES_CHECKED_AT_ONCE_MAX { None } else { self.queue.pop_front() }
    }
}

impl<M: Service> Worker<M> {
    /// Looks all names up again to which connections stand.
    #[cold]
    pub(super) fn look_names_up(&mut self, now: Now) {
        let named = self.connections.nodes.iter().flatten().filter_map(|connection| connection.named.as_ref());
        self.names.begin(named.map(|named| Arc::clone(&named.name)).collect());
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

    /// Counts an answer for all connections to a name.
    fn compare(&mut self, name: &Arc<Name>, addresses: &[SocketAddr]) {
        let mut found: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        found.sort_unstable();
        let history = self.names.histories.entry(Arc::clone(name)).or_default();
        let all = self.connections.nodes.iter_mut().enumerate();
        let named = all.filter_map(|(place, connection)| Some((place, connection.as_mut()?.named.as_deref_mut()?)));
        let named = named.filter(|(_, named)| named.name == *name).collect();
        let gone = history.hear_answer(named, &found);
        if gone.is_empty() {
            return;
        }
        let list = addresses.iter().take(NAMES_CHECKED_AT_ONCE_MAX).map(SocketAddr::to_string);
        let list = list.collect::<Vec<_>>().join(", ");
        for place in gone {
            self.machine.handle_moved(ConnId::upstream(place as u32), &list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox;
    use crate::resolver::{LookUp, Resolver};
    use crate::testing::{Reacts, alone};
    use respool_connection::{Action, Endpoint, ServiceAction};
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Dials names once, and ends when one of their connections has moved.
    struct Follower {
        actions: Vec<Action<ServiceAction<()>>>,
        moved: Arc<Mutex<Vec<(ConnId, String)>>>,
    }

    impl Reacts for Follower {
        fn actions(&mut self) -> &mut Vec<Action<ServiceAction<()>>> {
            &mut self.actions
        }

        fn handle_moved(&mut self, conn: ConnId, addresses: &str) {
            self.moved.lock().unwrap().push((conn, addresses.to_owned()));
            self.actions.push(Action::Service(ServiceAction::Exit));
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
        let (mail_sender, inbox) = mailbox();
        let moved: Arc<Mutex<Vec<(ConnId, String)>>> = Arc::default();
        let machine = Follower { actions: hosts.iter().enumerate().map(dial).collect(), moved: Arc::clone(&moved) };
        let mut setup = alone(machine, (mail_sender.clone(), inbox), Vec::new());
        setup.transport.names_interval = Some(Duration::from_millis(1));
        let mut worker = Worker::new(setup).unwrap();
        worker.resolver = Some(Resolver::with(mail_sender, look_up));
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

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn an_answer_with_the_address_begins_anew() {
        let mut named = Named::new(Arc::new(("a".to_owned(), 7)), ip(1));
        let told = [false, true, false, true, false, false, false, true, false, false].map(|is_among| {
            named.hear(is_among);
            let is_gone = named.is_gone(ANSWERS_WITHOUT_MIN);
            if is_gone {
                named.missing = 0;
            }
            is_gone
        });
        assert_eq!(told, [false, false, false, false, false, true, false, false, false, true]);
    }

    /// How often a connection is replaced in so many answers, each time by one to the first address of the answer.
    fn replaced(answers: impl Iterator<Item = Vec<IpAddr>>) -> usize {
        let name = Arc::new(("a".to_owned(), 7));
        let (mut history, mut count, mut named) = (History::default(), 0, None::<Named>);
        for mut answer in answers {
            let first = answer[0];
            answer.sort_unstable();
            let this = named.get_or_insert_with(|| Named::new(Arc::clone(&name), first));
            if !history.hear_answer(vec![(0, this)], &answer).is_empty() {
                named = Some(Named::new(Arc::clone(&name), first));
                count += 1;
            }
            assert!(history.gone.len() <= ADDRESSES_REMEMBERED_MAX);
        }
        count
    }

    #[test]
    fn addresses_that_take_turns_are_no_move() {
        let day = 0..5_760_u32;
        // All of them in another order, and one of many in turn.
        let ordered = day.clone().map(|n| vec![ip((n % 3) as u8), ip(((n + 1) % 3) as u8), ip(((n + 2) % 3) as u8)]);
        assert_eq!(replaced(ordered), 0);
        for many in [2_u8, 3, 4, 8] {
            let count = replaced(day.clone().map(|n| vec![ip((n % u32::from(many)) as u8)]));
            assert!(count <= 4, "of {many}: {count}");
        }
        // Eight by chance of a hundred.
        let mut chance = 1_u64;
        let mut some = |_| {
            let mut next = || {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ip(((chance >> 33) % 100) as u8)
            };
            (0..8).map(|_| next()).collect::<Vec<_>>()
        };
        let count = replaced(day.map(&mut some));
        assert!(count <= 40, "{count}");
    }

    #[test]
    fn a_name_that_leads_back_and_forth_is_followed() {
        // Each way it stays for a long time.
        assert_eq!(replaced((0..1_000_u32).map(|n| vec![ip((n / 100 % 2) as u8)])), 9);
        // Two failovers of a day do not make the next one late.
        let mut history = History::default();
        for n in 0..1_000_u32 {
            history.hear(&[ip(u8::from((10..20).contains(&n)))]);
            if n == 11 {
                history.note_gone(ip(0));
            }
            assert!(n < 20 || n > 20 + ANSWERS_CALM as u32 || history.enough == 2 * ANSWERS_WITHOUT_MIN);
        }
        assert_eq!(history.enough, ANSWERS_WITHOUT_MIN);
    }

    #[test]
    fn every_name_has_its_turn_when_there_are_many() {
        let all = || (0..100).map(|number| Arc::new((format!("node-{number}"), 7))).collect::<HashSet<_>>();
        let (mut names, mut asked) = (Names::default(), HashSet::new());
        // Each round ends before it is through with them.
        for _ in 0..20 {
            names.begin(all());
            for number in 0..5 {
                let name = names.next().expect("they are not all asked for");
                names.asked.insert(number, Arc::clone(&name));
                asked.insert(name);
                names.asked.clear();
            }
        }
        assert_eq!(asked.len(), 100);
        names.begin(HashSet::new());
        assert!(names.next().is_none(), "what nothing is connected to is not looked up");
    }

    #[test]
    fn all_connections_to_an_address_have_gone_together() {
        let name = Arc::new(("a".to_owned(), 7));
        // The second was made one answer later, the third leads to where the name does now.
        let mut all = [1, 1, 2].map(|last| Named::new(Arc::clone(&name), ip(last)));
        let mut history = History::default();
        let mut hear = |places: &[usize], history: &mut History| {
            let named = all.iter_mut().enumerate().filter(|(place, _)| places.contains(place));
            history.hear_answer(named.collect(), &[ip(2)])
        };
        let none = [] as [usize; 0];
        assert_eq!(hear(&[0], &mut history), none);
        assert_eq!(hear(&[0, 1, 2], &mut history), [0, 1]);
        assert_eq!(hear(&[0, 1, 2], &mut history), none);
        assert_eq!(hear(&[0, 1, 2], &mut history), [0, 1], "they are told again");
        // Where addresses come and go each is counted for itself.
        history.enough = 4;
        (all[0].missing, all[1].missing) = (3, 2);
        let named = all.iter_mut().enumerate();
        assert_eq!(history.hear_answer(named.collect(), &[ip(2)]), [0]);
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
