//! One client: sends batches of requests in its manner and checks what comes back.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Client, Rng, Stream, reply_length, request};

use super::conversation::{Meanwhile, is_aside};
use super::faults::Whereabouts;
use super::layout::PHASE;
use super::model::{Model, Span, Step, Verdict};
use super::states::{OWNER, State};
use super::tally::Tally;
use super::world::World;

/// A reply that takes longer never comes.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);
/// Time within which everything has to work again once the nodes are back.
const RECOVERY_LIMIT: Duration = Duration::from_secs(15);
const BATCH_MAX: usize = 64;
/// One client in so many is in pool mode `session` as long as it is connected. An odd number, so that some come by each listener.
const OWNER_ONCE_IN: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Odd pieces, slow reading, vanishing, while all nodes are well.
    WarmUp,
    /// The same while nodes are in trouble.
    Hostile,
    /// All nodes are back: every key must work soon.
    Recovered,
    /// The process is succeeded by another, and that one ends: connections are closed, but never within a reply.
    Leaving,
}

struct Connection<'a> {
    world: &'a World,
    number: u64,
    /// It is in pool mode `session` from the beginning.
    is_owner: bool,
    stream: Option<Stream>,
    whereabouts: Whereabouts,
    /// How many connections it has closed before.
    connections: u32,
    /// Bytes received, and how many of them belong to replies that were taken.
    received: Vec<u8>,
    taken: usize,
    /// Connections on which it has come to be in that mode.
    owned: u64,
    /// It is there when the process goes away.
    is_last: bool,
    /// The last attempt to connect has failed.
    is_refused: bool,
    /// A reply has come on the present connection.
    is_served: bool,
    /// Replies of the present step that have come.
    partial: Vec<Vec<u8>>,
    /// What one read can bring.
    piece: Box<[u8]>,
}

/// What a connection gets that is accepted when the process has been told to end.
const TURNED_AWAY: &[u8] = b"-ERR the server is shutting down\r\n";

/// Pieces in which a batch is sent or read: more of a few bytes would only heat the kernel.
const PIECES_MAX: usize = 40;
/// So much of a table of the proxy is shown.
const DESCRIBED_CHARS_MAX: usize = 60_000;
const READ_BYTES: usize = 16 << 10;

/// How the replies of one batch are read.
#[derive(Clone, Copy)]
enum Reading {
    Fast,
    /// Few bytes at a time, with pauses, so many times.
    Slow {
        piece: usize,
        left: usize,
    },
    /// So many bytes, then the connection is dropped.
    Vanish(usize),
    /// All of them, after the client has said that it will send nothing more.
    HalfClosed,
}

/// Sends `requests` requests in all, and adds what happened to the world's tally.
pub(super) fn run(world: &World, number: u64, requests: u64, behaviour: Behaviour) {
    // Keys and numbers of the phases must not meet.
    let client = number + PHASE * behaviour as u64;
    let mut rng = Rng::part(world.seed, client);
    let is_owner = number.is_multiple_of(OWNER_ONCE_IN);
    let mut model = Model::new(client, is_owner, Arc::clone(&world.layout), Arc::clone(&world.states));
    let mut tally = Tally::default();
    let piece = vec![0; READ_BYTES].into_boxed_slice();
    let mut connection = Connection {
        world,
        number,
        is_owner,
        stream: None,
        whereabouts: Whereabouts::new(),
        connections: 0,
        received: Vec::new(),
        taken: 0,
        owned: 0,
        is_last: behaviour == Behaviour::Leaving,
        is_refused: false,
        is_served: false,
        partial: Vec::new(),
        piece,
    };
    match behaviour {
        Behaviour::WarmUp | Behaviour::Hostile | Behaviour::Leaving => {
            let mut left = requests;
            let mut is_welcome = true;
            while left > 0 && tally.silent == 0 && is_welcome {
                let batch = batch_size(&mut rng).min(left as usize);
                let mut steps: Vec<Step> = (0..batch).map(|_| model.step(&mut rng)).collect();
                // A client that reads when it has sent all would wait for ever with more than is held for it.
                let mut large = 0;
                steps.retain(|step| {
                    large += usize::from(matches!(step, Step::State { state: State::Large, .. }));
                    large <= 1 || !matches!(step, Step::State { state: State::Large, .. })
                });
                let mut reading = reading(&mut rng);
                let is_listed = world.states.contains(&State::Endless);
                let is_hostile = behaviour != Behaviour::WarmUp;
                let is_doubtful = |step: &Step| is_hostile || step.waits() || step.state() == Some(State::Large);
                if matches!(reading, Reading::HalfClosed) && !is_listed && steps.iter().any(is_doubtful) {
                    reading = Reading::Fast;
                }
                let leave = match reading {
                    Reading::Vanish(_) if rng.once_in(2) => Some(State::LeftWaiting),
                    Reading::HalfClosed if rng.once_in(2) => Some(State::Endless),
                    _ => None,
                };
                if let Some(state) = leave.filter(|state| world.states.contains(state)) {
                    steps.push(model.leave(state));
                    tally.entered(state);
                }
                model.ledger.connection = connection.connections;
                let failed = connection.batch(&mut model, &steps, reading, &mut rng, &mut tally);
                if world.is_calm && behaviour != Behaviour::Leaving {
                    tally.needless += failed;
                }
                // A process that has ended takes no connections.
                is_welcome = behaviour != Behaviour::Leaving || !connection.is_refused;
                model.forget_uncertain(world.moves.load(Ordering::SeqCst));
                left -= batch as u64;
                world.requests_done.fetch_add(batch as u64, Ordering::Relaxed);
            }
            // What is left when the client gave up must not hold up the schedule.
            world.requests_done.fetch_add(left, Ordering::Relaxed);
        }
        Behaviour::Recovered => recover(&mut connection, &mut model, &mut rng, &mut tally),
    }
    tally.owned += connection.owned;
    world.tally.lock().expect("no client panics").add(tally);
    world.ledger.lock().expect("no client panics").add(model.ledger);
}

/// Surveys all keys until not one request fails, or the time is over.
fn recover(connection: &mut Connection<'_>, model: &mut Model, rng: &mut Rng, tally: &mut Tally) {
    let started = Instant::now();
    loop {
        let steps = model.survey();
        let failed = connection.batch(model, &steps, Reading::Fast, rng, tally);
        model.forget_uncertain(connection.world.moves.load(Ordering::SeqCst));
        if failed == 0 {
            return;
        }
        if started.elapsed() > RECOVERY_LIMIT {
            tally.needless += failed;
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

impl Connection<'_> {
    /// Sends one batch and reads its replies; returns how many requests failed.
    fn batch(&mut self, model: &mut Model, steps: &[Step], reading: Reading, rng: &mut Rng, tally: &mut Tally) -> u64 {
        let world = self.world;
        let since = Instant::now();
        let moves_before = world.moves.load(Ordering::SeqCst);
        let mut bytes = Vec::new();
        steps.iter().for_each(|step| model.encode(step, &mut bytes));
        let mut failed = 0;
        let mut answered = 0;
        let mut has_waited_in_vain = false;
        let mut is_turned_away = false;
        let outcome = self.send(&bytes, rng).and_then(|()| {
            if matches!(reading, Reading::HalfClosed) {
                self.stream()?.shutdown(Shutdown::Write)?;
            }
            let mut allowance = if let Reading::Vanish(allowance) = reading { allowance } else { usize::MAX };
            let mut reading = reading;
            for step in steps {
                let was_served = self.is_served;
                let Some(reply) = self.replies(step.replies(), &mut reading, &mut allowance)? else { break };
                if !was_served && reply == TURNED_AWAY && world.is_ending.load(Ordering::SeqCst) {
                    is_turned_away = true;
                    break;
                }
                let moves = (moves_before, world.moves.load(Ordering::SeqCst));
                let meanwhile =
                    Meanwhile { faults: &world.faults, since, has_moved: moves.0 != moves.1 || moves.1 % 2 == 1 };
                answered += 1;
                self.whereabouts.note_answer(since);
                has_waited_in_vain = step.has_waited_in_vain(&reply);
                tally.replies += step.replies() as u64;
                if let Step::State { state, .. } = step {
                    tally.entered(*state);
                }
                match model.check(step, &reply, Span { meanwhile, moves }) {
                    Verdict::Right => {}
                    Verdict::Failed(error) => {
                        failed += 1;
                        tally.error(&error);
                    }
                    Verdict::Late(description) => {
                        failed += 1;
                        tally.late(description);
                    }
                    Verdict::Wrong(description) => tally.wrong(description),
                }
            }
            Ok(())
        });
        let unanswered = &steps[answered..];
        if is_turned_away {
            // Nothing of what it has sent is read, and nothing follows.
            unanswered.iter().for_each(|step| model.renounce(step));
            match self.rest() {
                // What it has sent and was not read resets the connection.
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                    tally.wrong(format!("client {} was turned away and then: {error}", self.number));
                }
                _ => {}
            }
            tally.turned_away += 1;
            self.close();
            return failed;
        }
        let is_end =
            matches!(&outcome, Err(error) if error.kind() == io::ErrorKind::UnexpectedEof) && self.unread().is_empty();
        let is_waiting = matches!(unanswered.first(), Some(Step::State { state, .. }) if state.waits());
        // The process may have gone instead, with requests that it had begun: nothing is known of those then.
        let handover = world.faults.may_be_left(&self.whereabouts).filter(|_| !self.is_last);
        let is_leaving = self.is_leaving() || handover.is_some();
        let state = unanswered.first().and_then(Step::state);
        if is_end
            && matches!(reading, Reading::HalfClosed)
            && is_waiting
            && ends_by_itself(state, self.partial.is_empty(), is_leaving)
        {
            // What waits may end with its client, as in Redis, and what is behind it is not done then.
            let state = unanswered[0].state().expect("a state waits");
            // An order may hold back the requests behind it: they are not executed.
            if !state.may_end_behind(&self.partial) && !world.faults.were_held(since) {
                let replies: Vec<_> = self.partial.iter().map(|reply| String::from_utf8_lossy(reply)).collect();
                tally.wrong(format!("client {} got {replies:?} of {state:?} and then the end", self.number));
            }
            let (first, behind) = unanswered.split_first().expect("one waits");
            match first {
                Step::State { state: State::Endless, .. } => model.renounce(first),
                _ => model.abandon(first),
            }
            behind.iter().for_each(|step| model.renounce(step));
            self.close();
            tally.half_closed += 1;
            return failed;
        }
        let is_not_done = !is_leaving && (has_waited_in_vain || world.faults.were_held(since));
        if is_end && matches!(reading, Reading::HalfClosed) && !unanswered.is_empty() && is_not_done {
            // Held requests of a half-closed client are not executed, nor are those behind them, nor those behind a
            // blocking pop that has ended with its client.
            for (place, step) in unanswered.iter().enumerate() {
                match step {
                    // Its first requests may have been answered.
                    Step::State { .. } if place == 0 => model.abandon(step),
                    _ => model.renounce(step),
                }
            }
            self.close();
            tally.half_closed += 1;
            return failed;
        }
        unanswered.iter().for_each(|step| model.abandon(step));
        match outcome {
            Ok(()) if matches!(reading, Reading::Vanish(_)) => {
                tally.vanished += 1;
                tally.abandoned += unanswered.len() as u64;
                self.close();
            }
            Ok(()) if matches!(reading, Reading::HalfClosed) => {
                // Every request is answered; nothing more may come but the end.
                let rest = self.rest();
                match rest {
                    Ok(()) => tally.half_closed += 1,
                    Err(error) => {
                        tally.wrong(format!(
                            "client {} had closed its side, got all replies and then: {error}",
                            self.number
                        ));
                    }
                }
                self.close();
            }
            Ok(()) if self.unread().is_empty() => {}
            Ok(()) => {
                let unread = self.unread();
                let shown = String::from_utf8_lossy(&unread[..unread.len().min(120)]).into_owned();
                tally.wrong(format!("client {} got {shown:?} without having asked", self.number));
                self.close();
            }
            Err(error) if is_leaving && is_end_of_process(&error) && self.may_end_here() => {
                // One that has closed its side may have ended because a request of it waits, or is held: the next may be with the former
                // process still.
                let may_end_for_that = is_waiting || has_waited_in_vain || world.faults.were_held(since);
                let leaves = !(matches!(reading, Reading::HalfClosed) && may_end_for_that);
                handover.iter().filter(|_| leaves).for_each(|handover| self.whereabouts.leave(*handover));
                *(if handover.is_some() { &mut tally.handed_over } else { &mut tally.succeeded }) += 1;
                self.close();
            }
            Err(error) => {
                failed += unanswered.len() as u64;
                let is_silence = is_silence(&error);
                let first = unanswered.first();
                let is_large = matches!(first, Some(Step::State { state: State::Large, .. }));
                if is_large && !is_silence && !world.is_calm && !self.unread().is_empty() {
                    // Its node died in the midst of a reply whose beginning had been passed on.
                    tally.broken_off += 1;
                } else {
                    *(if is_silence { &mut tally.silent } else { &mut tally.cut_off }) += 1;
                    let kinds: Vec<_> = steps.iter().filter_map(Step::state).collect();
                    let first = first.map(|step| format!("{step:?}").chars().take(400).collect::<String>());
                    tally.describe(format!(
                        "client {} waited for {first:?} among {kinds:?}, {}, with {} of its replies and {} bytes of the next: {error}",
                        self.number,
                        reading.name(),
                        self.partial.len(),
                        self.unread().len()
                    ));
                    if is_silence {
                        self.describe_proxy(tally);
                    }
                }
                self.close();
            }
        }
        failed
    }

    /// What the proxy says of itself while this client gets no answer.
    fn describe_proxy(&self, tally: &mut Tally) {
        for table in ["CLIENTS", "NODES", "PINS"] {
            let asked = Client::connect(&self.world.addresses[0]).and_then(|mut client| {
                client.set_timeout(Duration::from_secs(5))?;
                client.ask(&format!("PROXY SHOW {table}"))
            });
            let said = asked.unwrap_or_else(|error| error.to_string());
            tally.describe(format!(
                "{table}: {}",
                said.replace("\r\n", " ").chars().take(DESCRIBED_CHARS_MAX).collect::<String>()
            ));
        }
    }

    /// Whether the process goes away: what is closed between two replies is as it should be.
    fn is_leaving(&self) -> bool {
        self.is_last && self.world.is_leaving.load(Ordering::SeqCst)
    }

    /// Whether a connection whose process goes away may end where it is: between two replies, or never begun if nothing takes its place.
    fn may_end_here(&self) -> bool {
        if self.is_refused { self.is_last } else { self.unread().is_empty() }
    }

    /// Nothing but the end of the connection.
    fn rest(&mut self) -> io::Result<()> {
        let mut one = [0];
        let is_end = self.unread().is_empty() && self.stream()?.read(&mut one)? == 0;
        if is_end { Ok(()) } else { Err(io::Error::other("more bytes")) }
    }

    fn close(&mut self) {
        self.stream = None;
        self.is_served = false;
        self.connections += 1;
        self.received.clear();
        self.taken = 0;
    }

    fn unread(&self) -> &[u8] {
        &self.received[self.taken..]
    }

    fn stream(&mut self) -> io::Result<&mut Stream> {
        if self.stream.is_none() {
            self.whereabouts.open();
            let connected = self.world.addresses[self.number as usize % 2].connect();
            self.is_refused = connected.is_err();
            let mut stream = connected?;
            stream.set_read_timeout(Some(SILENCE_LIMIT))?;
            stream.set_write_timeout(Some(SILENCE_LIMIT))?;
            if self.is_owner {
                stream.write_all(&request(&["AUTH", OWNER[0], OWNER[1]]))?;
                let mut reply = vec![0; 5];
                stream.read_exact(&mut reply)?;
                let is_ending = self.world.is_ending.load(Ordering::SeqCst);
                if is_ending && TURNED_AWAY.starts_with(&reply) {
                    reply.resize(TURNED_AWAY.len(), 0);
                    // An end in the midst of an error is no end of the process.
                    stream.read_exact(&mut reply[5..]).map_err(io::Error::other)?;
                    if reply == TURNED_AWAY {
                        return Err(io::Error::new(io::ErrorKind::ConnectionReset, "turned away"));
                    }
                }
                if reply != b"+OK\r\n" {
                    let why = format!("the owner of connections is told {:?}", String::from_utf8_lossy(&reply));
                    return Err(io::Error::other(why));
                }
                self.owned += 1;
            }
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().expect("it was just connected"))
    }

    /// Writes at once or in pieces of random sizes.
    fn send(&mut self, mut bytes: &[u8], rng: &mut Rng) -> io::Result<()> {
        let stream = self.stream()?;
        if !rng.once_in(3) {
            return stream.write_all(bytes);
        }
        let piece_max = *rng.pick(&[3, 20, 500, 5_000]);
        let mut pieces = PIECES_MAX;
        while !bytes.is_empty() {
            let piece = if pieces == 0 { bytes.len() } else { rng.between(1, piece_max).min(bytes.len()) };
            stream.write_all(&bytes[..piece])?;
            bytes = &bytes[piece..];
            pieces = pieces.max(1) - 1;
        }
        Ok(())
    }

    /// The next replies one behind the other, with what came between them, or `None` when fewer are read.
    fn replies(&mut self, count: usize, reading: &mut Reading, allowance: &mut usize) -> io::Result<Option<Vec<u8>>> {
        let mut replies = Vec::new();
        let mut left = count;
        self.partial.clear();
        while left > 0 {
            let Some(length) = self.reply(reading, allowance)? else { return Ok(None) };
            let reply = &self.unread()[..length];
            let is_reply = !is_aside(reply);
            left -= usize::from(is_reply);
            replies.extend_from_slice(reply);
            let reply = is_reply.then(|| reply.to_vec());
            self.partial.extend(reply);
            self.taken += length;
            self.is_served = true;
        }
        Ok(Some(replies))
    }

    /// The length of the next reply, or `None` when as many bytes were received as the client waits for.
    fn reply(&mut self, reading: &mut Reading, allowance: &mut usize) -> io::Result<Option<usize>> {
        loop {
            if let Some(length) = reply_length(self.unread())? {
                return Ok(Some(length));
            }
            if *allowance == 0 {
                return Ok(None);
            }
            self.received.drain(..std::mem::take(&mut self.taken));
            let mut size = READ_BYTES.min(*allowance);
            if let Reading::Slow { piece, left } = reading {
                thread::sleep(Duration::from_micros(200));
                size = *piece;
                *left -= 1;
                if *left == 0 {
                    *reading = Reading::Fast;
                }
            }
            self.stream()?;
            let Connection { stream: Some(stream), received, piece, .. } = self else { continue };
            let count = stream.read(&mut piece[..size])?;
            if count == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
            }
            received.extend_from_slice(&piece[..count]);
            *allowance -= count;
        }
    }
}

/// Whether nothing came for so long that nothing will.
fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Reading {
    fn name(self) -> &'static str {
        match self {
            Reading::Fast => "in haste",
            Reading::Slow { .. } => "slowly",
            Reading::Vanish(_) => "to vanish",
            Reading::HalfClosed => "having closed its side",
        }
    }
}

/// Whether a connection that fails so may have lost its process. A reply that is not as it should be is none of that.
fn is_end_of_process(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionRefused | BrokenPipe | NotFound)
}

/// Whether a half-closed connection that ends has ended because of what waits there, and not because the process goes away: that ends
/// any connection between two replies once the time of its drain is over, and what it had begun may be done. Only behind a pop that
/// is never answered nothing is.
fn ends_by_itself(waiting: Option<State>, has_told_nothing: bool, is_leaving: bool) -> bool {
    !is_leaving || waiting == Some(State::Endless) && has_told_nothing
}

/// Mostly a few, often one, sometimes many.
fn batch_size(rng: &mut Rng) -> usize {
    let most = *rng.pick(&[1, 1, 8, 20, BATCH_MAX]);
    rng.between(1, most)
}

fn reading(rng: &mut Rng) -> Reading {
    match rng.below(40) {
        0 => Reading::Vanish(rng.below(200)),
        1 => Reading::Slow { piece: rng.between(1, 40), left: PIECES_MAX },
        2 => Reading::Slow { piece: rng.between(100, 2_000), left: PIECES_MAX },
        3 => Reading::HalfClosed,
        _ => Reading::Fast,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_the_processes_where_that_goes_away() {
        // Behind the +OK of a WATCH, at the end of the drain.
        assert!(!ends_by_itself(Some(State::QuietApart), false, true));
        assert!(!ends_by_itself(Some(State::Served), true, true), "its push may be done");
        assert!(ends_by_itself(Some(State::Endless), true, true));
        assert!(!ends_by_itself(Some(State::Endless), false, true));
        for state in [State::QuietApart, State::Served, State::Endless] {
            assert!(ends_by_itself(Some(state), false, false), "{state:?}: no other end is right");
        }
    }
}
