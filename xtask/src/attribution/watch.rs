//! Which server was silent when: over own connections to each, one small request is sent after the other.
//!
//! An error that no fault explains is the proxy's, the server's or the machine's doing. A server that did not answer here either
//! at that time was silent for everything else that asked it, as if it had been stopped: the machine had no time for it. A pause between two requests that took long is the machine's: this
//! process was not scheduled either. What the kernel says of lost packets and of processors is noted here as well.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, RedisServer};

use super::layout::Nodes;
use super::packet_loss::{self, PacketLoss};
use super::processors::Processors;

/// Requests are so far apart.
const INTERVAL: Duration = Duration::from_millis(10);
/// A server that does not answer for so long is asked on another connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so long the proxy says that a node did not answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_millis(250);
/// A silence like that of a server that was stopped, and a time without a processor that makes an answer late: half of that.
const PAUSE_MIN: Duration = Duration::from_millis(REQUEST_TIMEOUT.as_millis() as u64 / 2);
/// A silence that is noted.
const NOTED_MIN: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct Silences {
    over: Vec<(Instant, Instant)>,
    /// Pauses between requests that were that much longer than they were to be.
    overslept: Vec<(Instant, Duration)>,
    /// A request is under way since then.
    asked: Option<Instant>,
}

#[derive(Debug)]
struct Subject {
    name: String,
    nodes: Nodes,
    address: Address,
    silences: Mutex<Silences>,
}

/// All servers that are watched.
#[derive(Debug, Default)]
pub(super) struct Watch {
    subjects: Vec<Subject>,
    pub(super) packet_loss: PacketLoss,
    pub(super) processors: Processors,
    is_over: AtomicBool,
}

impl Watch {
    /// Of servers, and of the nodes that they are.
    pub(super) fn new<'s>(servers: impl Iterator<Item = (&'s RedisServer, Nodes)>) -> Watch {
        // Over both transports: what the proxy sends over TCP waits for the kernel's network stack too, which is a task of its own.
        let subjects = |(number, (server, nodes)): (usize, (&RedisServer, Nodes))| {
            [server.unix(), server.tcp()].map(|address| Subject {
                name: format!(
                    "server {number} over {}",
                    if matches!(address, Address::Tcp(_)) { "TCP" } else { "unix" }
                ),
                nodes,
                address,
                silences: Mutex::default(),
            })
        };
        Watch { subjects: servers.enumerate().flat_map(subjects).collect(), ..Watch::default() }
    }

    /// Watches until [`Watch::end`].
    pub(super) fn begin<'s>(&'s self, scope: &'s thread::Scope<'s, '_>) {
        for subject in &self.subjects {
            scope.spawn(|| subject.watch(&self.is_over));
        }
        scope.spawn(|| {
            while !self.is_over.load(Ordering::Relaxed) {
                self.packet_loss.sample();
                self.processors.sample();
                thread::sleep(packet_loss::INTERVAL);
            }
        });
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether one of the servers of these nodes answered no request for long, until then or later.
    pub(super) fn were_paused(&self, nodes: Nodes, since: Instant) -> bool {
        self.subjects.iter().any(|subject| subject.nodes.meets(nodes) && subject.was_paused(since))
    }

    /// Whether one of the servers of these nodes, or the proxy, had no processor for half of the time that an answer may take.
    pub(super) fn had_no_processor(&self, nodes: Nodes, since: Instant) -> bool {
        self.processors.sample();
        self.processors.longest(nodes, since, REQUEST_TIMEOUT) >= PAUSE_MIN
    }

    /// How long each server of these nodes was silent at most between then and now.
    pub(super) fn told(&self, nodes: Nodes, since: Instant) -> String {
        let of_nodes = self.subjects.iter().filter(|subject| subject.nodes.meets(nodes));
        let each = of_nodes.map(|subject| {
            let (longest, overslept) = (subject.longest(since), subject.overslept(since));
            format!("{} for {} ms, this process for {} ms", subject.name, longest.as_millis(), overslept.as_millis())
        });
        let each: Vec<_> = each.collect();
        let waited = self.processors.longest(nodes, since, REQUEST_TIMEOUT);
        format!(
            "{}; without a processor for {} ms; {} packets lost in all",
            each.join(", "),
            waited.as_millis(),
            self.packet_loss.packets()
        )
    }
}

impl Subject {
    fn watch(&self, is_over: &AtomicBool) {
        let mut client = None;
        while !is_over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            self.silences.lock().expect("no client panics").asked = Some(asked);
            if client.is_none() {
                client = Client::connect(&self.address).ok().filter(|client| client.set_timeout(PATIENCE).is_ok());
            }
            let reply = client.as_mut().and_then(|client| client.ask("PING").ok());
            if reply.as_deref() != Some("+PONG\r\n") {
                client = None;
            }
            let mut silences = self.silences.lock().expect("no client panics");
            silences.asked = None;
            if asked.elapsed() >= NOTED_MIN {
                silences.over.push((asked, Instant::now()));
            }
            drop(silences);
            let slept = Instant::now();
            thread::sleep(INTERVAL);
            let overslept = slept.elapsed().saturating_sub(INTERVAL);
            if overslept >= NOTED_MIN {
                self.silences.lock().expect("no client panics").overslept.push((Instant::now(), overslept));
            }
        }
    }

    /// Whether it answered no request for long, until then or later.
    fn was_paused(&self, since: Instant) -> bool {
        self.longest(since) >= PAUSE_MIN
    }

    /// The longest silence of which a part is after then.
    fn longest(&self, since: Instant) -> Duration {
        let silences = self.silences.lock().expect("no client panics");
        let over = silences.over.iter().rev().take_while(|(_, end)| *end >= since).map(|(begin, end)| *end - *begin);
        over.chain(silences.asked.map(|asked| asked.elapsed())).max().unwrap_or_default()
    }

    /// The longest time that this process was not scheduled for, of which a part is after then.
    fn overslept(&self, since: Instant) -> Duration {
        let silences = self.silences.lock().expect("no client panics");
        let since_then = silences.overslept.iter().rev().take_while(|(end, _)| *end >= since);
        since_then.map(|(_, overslept)| *overslept).max().unwrap_or_default()
    }
}

#[cfg(test)]
impl Watch {
    /// Of one server, which was silent then.
    pub(super) fn of_silence(nodes: Nodes, begin: Instant, end: Instant) -> Watch {
        let silences = Mutex::new(Silences { over: vec![(begin, end)], ..Silences::default() });
        let subject = Subject { name: "server".into(), nodes, address: Address::loopback(1), silences };
        Watch { subjects: vec![subject], ..Watch::default() }
    }
}
