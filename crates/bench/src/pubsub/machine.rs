//! One process of the experiment: connections that subscribe, connections that publish, and one to meet the other processes.
//!
//! ```text
//!   dial all -> subscribe everything -> count up, wait for all processes -> publish -> markers -> wait for the others' -> exit
//! ```

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use respool_connection::{
    Action, BufferPool, ConnId, DialFailure, Endpoint, Event, FlushPolicy, Machine, Now, Peer, Pushes, Service,
    ServiceAction, Upstream,
};
use respool_wire::{Part, ReplyKind, ReplyLimits, elements, encode_request, part};

use super::message::{CLASSES, EXIT, Ledger, Message, Payload, Publisher};
use super::plan::Plan;
use super::{Counted, Figures};
use crate::arrivals::{Arrivals, Spacing};
use crate::clock::monotonic_ns;
use crate::dial_failure::words_of;
use crate::keys::{Keys, Spread};
use crate::limits::{CONNECT_PATIENCE, LOOK_US, PATIENCE, READ_BYTES, SPIN_US};
use crate::target::Target;

/// The key that counts processes, and the channel on which the last one calls: the ancestor's names.
const COUNTER: &[u8] = b"nsubscribers";
const READY: &[u8] = b"ready";
/// Messages of one connection that are not acknowledged, at most.
const UNACKNOWLEDGED_MAX: usize = 100_000;
/// Publishing processes whose streams are followed to their end, at most.
const PROCESSES_MAX: usize = 1 << 20;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Hears when all processes are there, and counts them.
    Caller,
    /// Tells them.
    Teller,
    Subscriber(usize),
    Publisher(usize),
}

struct Connection {
    upstream: Upstream<Option<Asked>>,
    role: Role,
    is_listed: bool,
    ledger: Ledger,
    /// What is still to be subscribed, and how much of it is not confirmed.
    subjects: Option<std::iter::Peekable<Box<dyn Iterator<Item = String> + Send>>>,
    unconfirmed: usize,
    /// Of a publisher: messages of the batch that waits, and since when.
    gathered: usize,
    gathered_us: u64,
    /// Messages of each class so far.
    sent: Vec<u64>,
}

/// What was asked on a connection that is no subscriber's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Publish,
    Marker,
    Count,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Subscribing,
    Meeting,
    Running,
    /// This process has published everything; its markers are sent.
    Marking,
    /// The others' markers are waited for.
    Ending,
}

pub(super) struct Experiment {
    plan: Plan,
    endpoint: Arc<Endpoint>,
    connections: Vec<Connection>,
    /// The places of those that publish.
    publishers: Vec<usize>,
    stage: Stage,
    stage_us: u64,
    outputs: Vec<u32>,
    actions: VecDeque<Action<ServiceAction<()>>>,
    pool: BufferPool,
    buffer: Vec<u8>,
    limits: ReplyLimits,
    now: Now,
    arrivals: Option<Arrivals>,
    next_ns: u64,
    began_ns: u64,
    keys: Keys,
    next_publisher: usize,
    /// The text of the channel and the payload that are published next.
    channel: String,
    payload: Vec<u8>,
    is_stopped: Arc<AtomicBool>,
    counted: Counted,
    exits: u64,
    /// When the last end marker that is waited for came.
    exited_us: Option<u64>,
    /// Of each process that publishes, how many ends of streams it has, and how many have come.
    ends: HashMap<u32, (u64, u64)>,
    is_over: bool,
    report: Sender<Result<Counted, String>>,
    figures: Arc<Figures>,
}

impl Experiment {
    pub(super) fn new(
        plan: Plan,
        target: &Target,
        is_stopped: Arc<AtomicBool>,
        figures: Arc<Figures>,
        report: Sender<Result<Counted, String>>,
    ) -> Self {
        let mut roles = vec![Role::Caller, Role::Teller];
        if plan.subscribes {
            roles.extend((0..plan.subscribing).map(Role::Subscriber));
        }
        if plan.publishes {
            roles.extend((0..plan.publishing).map(Role::Publisher));
        }
        let connection = |role| {
            let mut upstream = Upstream::new(target.identity.clone(), FlushPolicy::EachTurn);
            if matches!(role, Role::Subscriber(_) | Role::Caller) {
                upstream.set_pushes(Pushes::Only);
            }
            Connection {
                upstream,
                role,
                is_listed: false,
                ledger: Ledger::default(),
                subjects: None,
                unconfirmed: 0,
                gathered: 0,
                gathered_us: 0,
                sent: vec![0; CLASSES as usize],
            }
        };
        let arrivals = (plan.rate > 0.0).then(|| Arrivals::new(Spacing::Even, plan.rate, 0, plan.seed));
        Self {
            endpoint: Arc::clone(&target.nodes[0].endpoint),
            publishers: (0..roles.len()).filter(|&place| matches!(roles[place], Role::Publisher(_))).collect(),
            connections: roles.into_iter().map(connection).collect(),
            stage: Stage::Connecting,
            stage_us: 0,
            outputs: Vec::new(),
            actions: VecDeque::new(),
            pool: BufferPool::new(),
            buffer: vec![0; READ_BYTES],
            limits: ReplyLimits::default(),
            now: Now::default(),
            arrivals,
            next_ns: u64::MAX,
            began_ns: 0,
            keys: Keys::new(Spread::Uniform, plan.channels, plan.seed, u64::from(plan.process), 1),
            next_publisher: 0,
            channel: String::new(),
            payload: Vec::new(),
            is_stopped,
            counted: Counted::default(),
            exits: 0,
            exited_us: None,
            ends: HashMap::new(),
            is_over: false,
            report,
            figures,
            plan,
        }
    }

    fn list(&mut self, place: usize) {
        if !std::mem::replace(&mut self.connections[place].is_listed, true) {
            self.outputs.push(place as u32);
        }
    }

    /// Queues a request that is answered by a reply.
    fn ask(&mut self, place: usize, asked: Asked, words: &[&[u8]]) {
        let (now_us, pool) = (self.now.mono_us, &mut self.pool);
        let upstream = &mut self.connections[place].upstream;
        upstream.send(Some(asked), now_us, pool, |out| encode_request(out, words.iter().copied()));
        self.list(place);
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.stage_us) = (stage, self.now.mono_us);
        match stage {
            Stage::Connecting => {}
            Stage::Subscribing => {
                for place in 0..self.connections.len() {
                    if let Role::Subscriber(number) = self.connections[place].role {
                        self.connections[place].subjects = Some(self.plan.subjects_of(number).peekable());
                        self.subscribe_more(place);
                    }
                }
                self.look_at_subscriptions();
            }
            Stage::Meeting => self.meet(),
            Stage::Running => {
                self.began_ns = monotonic_ns();
                self.figures.began_ns.store(self.began_ns, Ordering::Relaxed);
                self.next_arrival();
            }
            Stage::Marking => self.mark(),
            Stage::Ending => {}
        }
    }

    /// The next chunk of a connection's channels, when the one before is confirmed.
    fn subscribe_more(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        let Some(subjects) = &mut connection.subjects else { return };
        let chunk: Vec<String> = subjects.by_ref().take(self.plan.chunk.max(1)).collect();
        if chunk.is_empty() {
            connection.subjects = None;
            return;
        }
        connection.unconfirmed = chunk.len();
        let verb = self.plan.subscribe();
        let slot_by_slot = self.plan.is_sharded;
        connection.upstream.tell(self.now.mono_us, &mut self.pool, |out| match slot_by_slot {
            // Channels of different slots are refused in one request.
            true => chunk.iter().for_each(|subject| {
                encode_request(out, [verb, subject.as_bytes()].into_iter());
            }),
            false => {
                let words: Vec<&[u8]> = std::iter::once(verb).chain(chunk.iter().map(String::as_bytes)).collect();
                encode_request(out, words.into_iter());
            }
        });
        self.list(place);
    }

    fn look_at_subscriptions(&mut self) {
        let is_left = |connection: &Connection| connection.subjects.is_some() || connection.unconfirmed > 0;
        if self.stage == Stage::Subscribing && !self.connections.iter().any(is_left) {
            self.counted.subscribed_s = (self.now.mono_us - self.stage_us) as f64 / 1e6;
            self.enter(Stage::Meeting);
        }
    }

    /// Counts this process in; the last one calls the others.
    fn meet(&mut self) {
        if self.plan.resets {
            self.ask(1, Asked::Other, &[b"DEL", COUNTER]);
        }
        if self.plan.processes == 0 {
            return self.enter(Stage::Running);
        }
        // The call is heard from before this process is counted: it cannot be missed.
        let now_us = self.now.mono_us;
        let caller = &mut self.connections[0];
        caller.unconfirmed = 1;
        caller.upstream.tell(now_us, &mut self.pool, |out| encode_request(out, [&b"SUBSCRIBE"[..], READY].into_iter()));
        self.list(0);
    }

    fn take_count(&mut self, reply: &[u8]) {
        let count = std::str::from_utf8(reply).ok().and_then(|text| text.trim().strip_prefix(':')?.parse::<u64>().ok());
        match count {
            Some(count) if count == self.plan.processes => {
                self.ask(1, Asked::Other, &[b"DEL", COUNTER]);
                self.ask(1, Asked::Other, &[b"PUBLISH", READY, b"go"]);
            }
            Some(count) if count > self.plan.processes => self.fail(format!(
                "{count} processes are there instead of {}: an earlier run has left its count behind (-c sets it back)",
                self.plan.processes
            )),
            Some(_) => {}
            None => self.fail(format!("the processes cannot be counted: {}", String::from_utf8_lossy(reply).trim())),
        }
    }

    fn next_arrival(&mut self) {
        self.next_ns = match &mut self.arrivals {
            Some(arrivals) => self.began_ns + arrivals.next_ns(),
            None => self.began_ns,
        };
    }

    /// Publishes what is due by now, and writes batches that are full or have waited long enough.
    fn publish_due(&mut self) {
        let now_ns = monotonic_ns();
        let publishers = self.publishers.len();
        // With a rate everything is sent that is due before the end, however late this thread is.
        let end_ns = self.plan.duration.map_or(u64::MAX, |length| self.began_ns + length.as_nanos() as u64);
        let is_up = if self.arrivals.is_some() { self.next_ns >= end_ns } else { now_ns >= end_ns };
        if publishers == 0 || is_up || self.has_sent_all() || self.is_stopped.load(Ordering::Relaxed) {
            for number in 0..publishers {
                self.flush(self.publishers[number]);
            }
            return self.enter(Stage::Marking);
        }
        // Without a rate as many as fit, one batch for each connection and turn.
        let mut room = if self.arrivals.is_some() { usize::MAX } else { publishers * self.plan.batch };
        while self.next_ns <= now_ns && self.next_ns < end_ns && room > 0 && !self.has_sent_all() {
            let place = self.publishers[self.next_publisher % publishers];
            self.next_publisher += 1;
            room -= 1;
            if self.arrivals.is_some() {
                match self.connections[place].upstream.tickets().len() < UNACKNOWLEDGED_MAX {
                    true => self.publish(place, self.next_ns),
                    false => self.counted.unsent += 1,
                }
                self.next_arrival();
            } else if self.has_room(place) {
                self.publish(place, now_ns);
            }
        }
        let oldest_us = self.now.mono_us.saturating_sub(self.plan.flush.as_micros() as u64);
        for number in 0..publishers {
            let connection = &self.connections[self.publishers[number]];
            if connection.gathered > 0 && connection.gathered_us <= oldest_us {
                self.flush(self.publishers[number]);
            }
        }
    }

    fn has_sent_all(&self) -> bool {
        self.plan.messages.is_some_and(|messages| self.counted.sent >= messages)
    }

    /// Without a rate: whether a publisher's next message may be sent before more are acknowledged.
    fn has_room(&self, place: usize) -> bool {
        self.connections[place].upstream.tickets().len() < self.plan.batch * 2
    }

    /// How long nothing is due to be published unless something is read, in microseconds.
    fn idle_us(&self) -> u64 {
        let flush_us = self.plan.flush.as_micros() as u64;
        if self.arrivals.is_some() {
            return (self.next_ns.saturating_sub(monotonic_ns()) / 1000).saturating_sub(SPIN_US).min(flush_us);
        }
        // Acknowledgements make room, and they are read.
        if self.publishers.iter().any(|&place| self.has_room(place)) { 0 } else { flush_us.max(1_000) }
    }

    fn publish(&mut self, place: usize, due_ns: u64) {
        let channel = self.keys.next_key();
        let class = (channel % CLASSES) as usize;
        let connection = &mut self.connections[place];
        let Role::Publisher(number) = connection.role else { return };
        let publisher = Publisher { process: self.plan.process, connection: number as u16 };
        let message = Message { publisher, number: connection.sent[class], due_ns };
        connection.sent[class] += 1;
        let payload = &mut self.payload;
        payload.clear();
        message.write(payload, self.plan.payload);
        self.channel.clear();
        let _ = write!(self.channel, "{channel}");
        let words = [self.plan.publish(), self.channel.as_bytes(), payload];
        connection.upstream.send(Some(Asked::Publish), self.now.mono_us, &mut self.pool, |out| {
            encode_request(out, words.into_iter());
        });
        if connection.gathered == 0 {
            connection.gathered_us = self.now.mono_us;
        }
        connection.gathered += 1;
        let is_full = connection.gathered >= self.plan.batch.max(1);
        self.counted.sent += 1;
        if is_full {
            self.flush(place);
        }
    }

    /// What a publisher has gathered is written in this turn.
    fn flush(&mut self, place: usize) {
        if std::mem::take(&mut self.connections[place].gathered) > 0 {
            self.list(place);
        }
    }

    /// Every publisher says of each class how many messages it has sent, behind the last of them.
    fn mark(&mut self) {
        self.counted.published_s = (monotonic_ns() - self.began_ns) as f64 / 1e9;
        for place in self.publishers.clone() {
            let Role::Publisher(number) = self.connections[place].role else { continue };
            for class in 0..CLASSES.min(self.plan.channels) {
                let publisher = Publisher { process: self.plan.process, connection: number as u16 };
                // In the place of a time: how many connections have such markers.
                let due_ns = self.plan.publishing as u64;
                let end = Message { publisher, number: self.connections[place].sent[class as usize], due_ns };
                let mut payload = Vec::new();
                end.write_end(&mut payload);
                let channel = class.to_string();
                self.ask(place, Asked::Marker, &[self.plan.publish(), channel.as_bytes(), &payload]);
            }
        }
        self.look_at_acknowledgements();
    }

    /// When all that was published is acknowledged, the process says that it has ended.
    fn look_at_acknowledgements(&mut self) {
        let is_owed = |connection: &Connection| {
            matches!(connection.role, Role::Publisher(_)) && !connection.upstream.tickets().is_empty()
        };
        if self.stage == Stage::Marking && !self.connections.iter().any(is_owed) {
            if self.plan.publishes {
                self.ask(1, Asked::Other, &[self.plan.publish(), b"0", EXIT]);
            }
            self.enter(Stage::Ending);
        }
    }

    /// Whether everything that is waited for has come, or is not waited for any longer.
    fn look_at_end(&mut self) {
        let is_told = self.connections[1].upstream.tickets().is_empty();
        let waited_us = self.now.mono_us.saturating_sub(self.stage_us);
        let patience_us = PATIENCE.as_micros() as u64;
        let is_asked_to_end = self.is_stopped.load(Ordering::Relaxed);
        let has_all = !self.plan.subscribes || self.has_heard_all();
        // A process that only listens waits for the publishers for as long as they take.
        let is_patient = self.plan.publishes || is_asked_to_end;
        if is_told && (has_all || (is_patient && waited_us > patience_us)) {
            self.finish();
        }
    }

    /// Whether every process has ended, and every stream of them has come to its end. The ancestor's processes have streams
    /// without ends: what is under way of them is waited for a while.
    fn has_heard_all(&self) -> bool {
        if self.plan.publishers == 0 || self.exits < self.plan.publishers {
            return false;
        }
        let whole = self.ends.values().filter(|(wanted, come)| come >= wanted).count() as u64;
        let since_us = self.exited_us.map_or(0, |at| self.now.mono_us.saturating_sub(at));
        whole >= self.plan.publishers || since_us > PATIENCE.as_micros() as u64
    }

    fn finish(&mut self) {
        let mut counted = std::mem::take(&mut self.counted);
        for connection in &self.connections {
            counted.missing = counted.missing.saturating_add(connection.ledger.missing);
            counted.reordered += connection.ledger.reordered;
            counted.duplicates += connection.ledger.duplicates;
        }
        counted.exits = self.exits;
        self.end(Ok(counted));
    }

    fn fail(&mut self, why: String) {
        self.end(Err(why));
    }

    fn end(&mut self, ended: Result<Counted, String>) {
        if !std::mem::replace(&mut self.is_over, true) {
            let _ = self.report.send(ended);
            self.actions.push_back(Action::Service(ServiceAction::Exit));
        }
    }

    /// Takes what one read brought.
    fn take(&mut self, place: usize, bytes: usize) -> Result<(), String> {
        let read_ns = monotonic_ns();
        let buffer = std::mem::take(&mut self.buffer);
        let mut input = &buffer[..bytes];
        let mut outcome = Ok(());
        loop {
            let connection = &mut self.connections[place];
            let event = connection.upstream.next_event(&mut input, &self.limits, self.now.mono_us);
            match event {
                Ok(None) => break,
                Err(fault) => {
                    outcome = Err(fault.to_string());
                    break;
                }
                Ok(Some(Event::Push { bytes, kind })) => {
                    if matches!(kind, ReplyKind::Error) {
                        outcome = Err(format!("the server says {}", String::from_utf8_lossy(bytes).trim()));
                        break;
                    }
                    let news = News::read(bytes);
                    let (ledger, unconfirmed) = (&mut connection.ledger, &mut connection.unconfirmed);
                    match news {
                        News::Confirmed => *unconfirmed = unconfirmed.saturating_sub(1),
                        News::Published { channel, payload } => {
                            let is_mine = matches!(connection.role, Role::Subscriber(_));
                            if is_mine {
                                let own = self.plan.process;
                                let is_complete = self.plan.processes > 0;
                                let payload = Payload::read(payload);
                                self.counted.take(channel, &payload, read_ns, own, ledger, is_complete);
                                match payload {
                                    Payload::Exit => {
                                        self.exits += 1;
                                        self.exited_us = Some(self.now.mono_us);
                                    }
                                    Payload::End(end) if self.ends.len() < PROCESSES_MAX => {
                                        let classes = CLASSES.min(self.plan.channels);
                                        let wanted = end.due_ns.saturating_mul(classes);
                                        self.ends.entry(end.publisher.process).or_insert((wanted, 0)).1 += 1;
                                    }
                                    _ => {}
                                }
                            } else if self.stage == Stage::Meeting {
                                self.enter(Stage::Running);
                            }
                            continue;
                        }
                        News::Other => continue,
                    }
                    if *unconfirmed == 0 {
                        self.note_confirmed(place);
                    }
                }
                Ok(Some(Event::Reply { ticket, bytes, kind })) => {
                    let is_error = matches!(kind, ReplyKind::Error);
                    match ticket {
                        Some(Asked::Count) => {
                            let reply = bytes.to_vec();
                            self.take_count(&reply);
                        }
                        _ if is_error => {
                            outcome = Err(format!("the server says {}", String::from_utf8_lossy(bytes).trim()));
                            break;
                        }
                        Some(Asked::Publish) => self.counted.acknowledged += 1,
                        _ => {}
                    }
                }
                Ok(Some(Event::Piece { .. })) => {}
            }
        }
        self.buffer = buffer;
        outcome
    }

    fn note_confirmed(&mut self, place: usize) {
        match self.connections[place].role {
            Role::Subscriber(_) => {
                self.subscribe_more(place);
                self.look_at_subscriptions();
            }
            // The call can be heard: now this process counts.
            _ => self.ask(1, Asked::Count, &[b"INCR", COUNTER]),
        }
    }
}

/// What a subscriber is told.
#[derive(Debug, PartialEq, Eq)]
enum News<'a> {
    Confirmed,
    Published { channel: &'a [u8], payload: &'a [u8] },
    Other,
}

impl<'a> News<'a> {
    /// Reads a message in either dialect: `message`, its channel and its payload, and with patterns the pattern in front of these.
    fn read(bytes: &'a [u8]) -> Self {
        let mut words = [&b""[..]; 4];
        let mut count = 0;
        let Some(elements) = elements(bytes) else { return Self::Other };
        for (place, element) in elements.take(4).enumerate() {
            if let Some(Part::Leaf(_, word)) = part(element) {
                words[place] = word;
            }
            count = place + 1;
        }
        match (words[0], count) {
            (b"message" | b"smessage", 3) => Self::Published { channel: words[1], payload: words[2] },
            (b"pmessage", 4) => Self::Published { channel: words[2], payload: words[3] },
            (b"subscribe" | b"psubscribe" | b"ssubscribe", _) => Self::Confirmed,
            _ => Self::Other,
        }
    }
}

impl Machine for Experiment {
    type ServiceAction = ServiceAction<()>;

    fn begin_turn(&mut self, now: Now) {
        if self.stage_us == 0 {
            self.stage_us = now.mono_us;
            for place in 0..self.connections.len() {
                self.connections[place].upstream.begin_dial();
                let (conn, endpoint) = (ConnId::upstream(place as u32), Arc::clone(&self.endpoint));
                self.actions.push_back(Action::Dial { conn, endpoint });
            }
        }
        self.now = now;
    }

    fn read_buffer(&mut self, _: ConnId) -> Option<&mut [u8]> {
        Some(&mut self.buffer)
    }

    fn handle_read(&mut self, conn: ConnId, bytes: usize) {
        let place = conn.index();
        let upstream = &mut self.connections[place].upstream;
        if upstream.is_ready() {
            if let Err(why) = self.take(place, bytes) {
                self.fail(why);
            }
            return;
        }
        let shake = upstream.shake(&self.buffer[..bytes], &self.limits, self.now.mono_us, &mut self.pool);
        match shake {
            Ok(_) => self.list(place),
            Err(fault) => return self.fail(fault.to_string()),
        }
        if self.stage == Stage::Connecting && self.connections.iter().all(|other| other.upstream.is_ready()) {
            self.enter(Stage::Subscribing);
        }
    }

    fn handle_ended(&mut self, _: ConnId) {
        self.fail("the server closed a connection (of a subscriber that was too slow?)".to_owned());
    }

    fn handle_broken(&mut self, _: ConnId, error: &str) {
        self.fail(format!("a connection was lost: {error}"));
    }

    fn handle_connected(&mut self, conn: ConnId) {
        let place = conn.index();
        self.connections[place].upstream.handle_connected(self.now.mono_us, &mut self.pool);
        self.list(place);
    }

    fn handle_dial_failed(&mut self, _: ConnId, failure: DialFailure) {
        self.fail(format!("could not connect to {}: {}", self.endpoint, words_of(failure)));
    }

    fn end_turn(&mut self) {
        if self.is_over {
            return;
        }
        match self.stage {
            Stage::Connecting => {
                if self.now.mono_us - self.stage_us > CONNECT_PATIENCE.as_micros() as u64 {
                    self.fail(format!("not all connections were there after {CONNECT_PATIENCE:?}"));
                }
            }
            Stage::Running => self.publish_due(),
            Stage::Marking => self.look_at_acknowledgements(),
            Stage::Subscribing | Stage::Meeting if self.is_stopped.load(Ordering::Relaxed) => self.finish(),
            Stage::Subscribing | Stage::Meeting => {}
            Stage::Ending => self.look_at_end(),
        }
        self.figures.tell(&self.counted);
    }

    fn poll_action(&mut self) -> Option<Action<ServiceAction<()>>> {
        self.actions.pop_front()
    }

    fn poll_output(&mut self) -> Option<ConnId> {
        loop {
            let place = self.outputs.pop()?;
            let connection = &mut self.connections[place as usize];
            connection.is_listed = false;
            if connection.upstream.wants_write(self.now.mono_us) {
                return Some(ConnId::upstream(place));
            }
        }
    }

    fn output(&self, conn: ConnId) -> &[u8] {
        self.connections[conn.index()].upstream.output()
    }

    fn handle_written(&mut self, conn: ConnId, bytes: usize) {
        self.connections[conn.index()].upstream.handle_written(bytes, self.now.mono_us, &mut self.pool);
    }

    fn handle_writable(&mut self, conn: ConnId) {
        self.list(conn.index());
    }

    fn next_wakeup_us(&self) -> Option<u64> {
        let look_us = self.now.mono_us + LOOK_US;
        if self.stage != Stage::Running || !self.plan.publishes || self.is_over {
            return Some(look_us);
        }
        Some(self.now.mono_us + self.idle_us().min(LOOK_US))
    }
}

impl Service for Experiment {
    type Mail = ();

    fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
        Err(Vec::new())
    }

    fn handle_mail(&mut self, (): ()) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_both_dialects_and_of_patterns_are_read() {
        let published = News::Published { channel: b"7", payload: b"exit" };
        for text in [
            "*3\r\n$7\r\nmessage\r\n$1\r\n7\r\n$4\r\nexit\r\n",
            ">3\r\n$8\r\nsmessage\r\n$1\r\n7\r\n$4\r\nexit\r\n",
            "*4\r\n$8\r\npmessage\r\n$2\r\n*7\r\n$1\r\n7\r\n$4\r\nexit\r\n",
        ] {
            assert_eq!(News::read(text.as_bytes()), published, "{text}");
        }
        assert_eq!(News::read(b"*3\r\n$9\r\nsubscribe\r\n$1\r\n7\r\n:1\r\n"), News::Confirmed);
        assert_eq!(News::read(b"+PONG\r\n"), News::Other);
    }
}
