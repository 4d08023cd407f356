//! The same script of several clients, step by step, to a redis-server and to what has to answer like it.
//!
//! What waits, watches, subscribes or has no reply cannot be compared by one connection that sends and reads. So a script is
//! played to the redis-server first, one step at a time: what every client has been sent by the end of each step is written
//! down. Then it is played to the subject, and each step begins when all that was written down for the one before has come.
//!
//! ```text
//! script --step--> redis-server --> bytes of every client, clients that wait there
//!        --step--> subject      --> the same, in the end not a byte more
//! ```
//!
//! Pushes of RESP3 and replies are compared apart: a message may overtake a reply of the same client, which comes another way.
//! Of keys that have changed a client may be told more often than by the server, and earlier: a proxy remembers a read when it
//! sends it on, so what has changed just before that is told as if it had come after it. But of each change that the server tells
//! of, the client has to be told once it has been sent the reply to its last read of that key.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Address, Client, RedisServer, Rng, elements, reply_length, request};

/// Clients of a script.
const CLIENTS: usize = 3;
/// Steps of a script.
const STEPS: usize = 40;
/// How long the subject may take for a step.
const STEP_LIMIT: Duration = Duration::from_secs(10);
/// Steps that are told of before one that differs.
const HISTORY_MAX: usize = 25;

/// What a script is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// `WATCH`, `MULTI`, `EXEC` of clients that write to the same keys.
    Transactions,
    /// Commands that wait for elements.
    Blocking,
    /// Channels, patterns and messages.
    Messages,
    /// `CLIENT REPLY` in its modes.
    Silence,
    /// `CLIENT TRACKING`.
    Tracking,
    /// `MULTI` with messages, with several keys in one request and with requests that the proxy answers.
    Blocks,
}

impl Theme {
    /// All of them.
    pub const ALL: [Theme; 6] =
        [Theme::Transactions, Theme::Blocking, Theme::Messages, Theme::Silence, Theme::Tracking, Theme::Blocks];
}

/// Something that one client does.
#[derive(Debug, Clone)]
enum Step {
    /// Sends requests in one piece.
    Send(usize, Vec<String>),
    /// Closes its connection and makes another.
    Leave(usize),
    /// Closes its side, reads to the end and makes another connection.
    HalfClose(usize),
}

/// What has come by the end of a step.
#[derive(Debug, Clone)]
struct After {
    step: Step,
    /// What all connections of each client have been sent, one behind the other.
    heard: Vec<Heard>,
    figures: Figures,
}

/// What a server says of all of its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Figures {
    waiting: u64,
    channels: usize,
    patterns: String,
    sharded_channels: usize,
}

impl Figures {
    fn ask(observer: &mut Client) -> io::Result<Figures> {
        Ok(Figures {
            waiting: observer.figure("clients", "blocked_clients")?,
            // INFO counts a channel once for each worker of a proxy.
            channels: elements(&observer.command(&["PUBSUB", "CHANNELS"])?).len(),
            patterns: observer.ask("PUBSUB NUMPAT")?,
            sharded_channels: elements(&observer.command(&["PUBSUB", "SHARDCHANNELS"])?).len(),
        })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Heard {
    replies: Vec<u8>,
    pushes: Vec<u8>,
    unread: Vec<u8>,
    /// Number of `replies`.
    count: usize,
    /// The keys that pushes named as changed, each with the number of replies that came before; null stands for all keys.
    changed: Vec<(usize, Vec<u8>)>,
}

impl Heard {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unread.extend_from_slice(bytes);
        while let Some(length) = reply_length(&self.unread)? {
            let frame: Vec<u8> = self.unread.drain(..length).collect();
            if frame.starts_with(b">") {
                let keys = elements(&frame).last().map_or_else(Vec::new, |list| elements(list));
                self.changed.extend(keys.into_iter().map(|key| (self.count, key.to_vec())));
                self.pushes.extend_from_slice(&frame);
            } else {
                self.count += 1;
                self.replies.extend_from_slice(&frame);
            }
        }
        Ok(())
    }
}

/// What one client has read and been told of, key by key.
#[derive(Debug, Clone, Default)]
struct Knowledge {
    /// The number of replies with which the last read of a key was answered.
    read: BTreeMap<Vec<u8>, usize>,
    /// It is told of each change, whether it has read the key or not.
    hears_all: bool,
    /// How many of the changes that it was told of have been looked for then.
    used: BTreeMap<Vec<u8>, usize>,
    /// How many changes the server had told of before this step.
    wanted: usize,
}

impl Knowledge {
    /// The client has asked for keys, perhaps; what it was told before the reply says nothing of what that says.
    fn read(&mut self, requests: &[String], replies_before: usize) {
        self.hears_all |= requests.iter().any(|one| one.starts_with("CLIENT TRACKING ON BCAST"));
        let is_block = requests.iter().any(|one| one == "EXEC");
        // A write is not a read: it does not make the key tracked again after an earlier invalidation.
        let reads =
            |one: &str| ["GET ", "MGET ", "TYPE ", "LRANGE ", "ZRANGE "].iter().any(|name| one.starts_with(name));
        for (at, request) in requests.iter().enumerate().filter(|(_, request)| reads(request)) {
            let answered = replies_before + if is_block { requests.len() } else { at + 1 };
            for word in request.split(' ').skip(1) {
                self.read.insert(format!("${}\r\n{word}\r\n", word.len()).into_bytes(), answered);
            }
        }
    }

    fn forget(&mut self) {
        self.read.clear();
        self.hears_all = false;
    }

    /// Where the client has been told of the change of a key that it might still think it knows.
    fn told(&self, key: &[u8], heard: &Heard) -> Option<usize> {
        let of = |numbers: &BTreeMap<Vec<u8>, usize>| numbers.get(key).copied().unwrap_or(0);
        let (used, read) = if self.hears_all { (of(&self.used), 0) } else { (0, of(&self.read)) };
        let is_it = |(replies, changed): &(usize, Vec<u8>)| *replies >= read && (changed == key || changed == b"_\r\n");
        heard.changed.iter().skip(used).position(is_it).map(|at| used + at)
    }

    /// Whether it was told of all that the server tells of in this step.
    fn is_told(&self, heard: &Heard, wanted: &Heard) -> bool {
        wanted.changed[self.wanted..].iter().all(|(_, key)| self.told(key, heard).is_some())
    }

    fn end_step(&mut self, heard: &Heard, wanted: &Heard) {
        for (_, key) in &wanted.changed[self.wanted..] {
            if let Some(at) = self.told(key, heard) {
                self.used.insert(key.clone(), at + 1);
            }
        }
        self.wanted = wanted.changed.len();
    }
}

/// The clients of one server.
struct Players {
    address: Address,
    speaks_resp3: [bool; CLIENTS],
    clients: Vec<Client>,
    heard: Vec<Heard>,
}

impl Players {
    fn connect(address: &Address, speaks_resp3: [bool; CLIENTS]) -> io::Result<Players> {
        let heard = vec![Heard::default(); CLIENTS];
        let mut players = Players { address: address.clone(), speaks_resp3, clients: Vec::new(), heard };
        for client in 0..CLIENTS {
            let connection = players.one(client)?;
            players.clients.push(connection);
        }
        Ok(players)
    }

    fn one(&self, client: usize) -> io::Result<Client> {
        let mut connection = Client::connect(&self.address)?;
        if self.speaks_resp3[client] {
            // The numbers of connections differ.
            connection.ask("HELLO 3")?;
        }
        Ok(connection)
    }

    fn play(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Send(client, requests) => {
                let words = |one: &String| request(&one.split(' ').collect::<Vec<_>>());
                self.clients[*client].send(&requests.iter().flat_map(words).collect::<Vec<u8>>())
            }
            Step::Leave(client) => {
                let next = self.one(*client)?;
                std::mem::replace(&mut self.clients[*client], next).close()
            }
            Step::HalfClose(client) => {
                self.clients[*client].finish_sending()?;
                let rest = self.clients[*client].read_to_close()?;
                self.heard[*client].add(&rest)?;
                let next = self.one(*client)?;
                std::mem::replace(&mut self.clients[*client], next).close()
            }
        }
    }

    /// Takes what has come.
    fn listen(&mut self) -> io::Result<()> {
        for (client, heard) in self.clients.iter_mut().zip(&mut self.heard) {
            heard.add(&client.take_arrived()?)?;
        }
        Ok(())
    }
}

/// Plays one script to the redis-server and then to the subject; `node` is the redis-server behind the subject, if that is a
/// proxy. Gives the number of replies and pushes that were compared, or fails with the first difference.
pub fn play_in_lock_step(
    direct: &RedisServer,
    subject: &Address,
    node: Option<&RedisServer>,
    theme: Theme,
    seed: u64,
) -> io::Result<usize> {
    let mut rng = Rng::new(seed);
    let speaks_resp3 = [(); CLIENTS].map(|()| theme == Theme::Tracking || rng.once_in(2));
    // The embedded server has no WAIT yet.
    let author = Author { theme, has_wait: node.is_some(), speaks_resp3, states: Default::default(), entry: 0 };
    let script = record(direct, author, &mut rng)?;
    let mut players = Players::connect(subject, speaks_resp3)?;
    let mut observer = node.map_or_else(|| Client::connect(subject), RedisServer::client)?;
    let mut knowledge = vec![Knowledge::default(); CLIENTS];
    for (at, after) in script.iter().enumerate() {
        let differs = |what: String| {
            let before = script[at.saturating_sub(HISTORY_MAX)..=at].iter().map(|one| shown(&one.step));
            let history: String = before.collect::<Vec<_>>().join("\n  ");
            io::Error::other(format!("{theme:?}, seed {seed}, step {at}: {what}\n  {history}"))
        };
        let counts: Vec<usize> = players.heard.iter().map(|heard| heard.count).collect();
        players.play(&after.step).map_err(|error| differs(error.to_string()))?;
        let since = Instant::now();
        loop {
            players.listen().map_err(|error| differs(error.to_string()))?;
            let is_told = |client: usize| {
                let (heard, wanted) = (&players.heard[client], &after.heard[client]);
                let is_told = match theme {
                    Theme::Tracking => knowledge[client].is_told(heard, wanted),
                    _ => heard.pushes.len() >= wanted.pushes.len(),
                };
                is_told && heard.replies.len() >= wanted.replies.len()
            };
            let figures = Figures::ask(&mut observer)?;
            if (0..CLIENTS).all(is_told) && figures == after.figures {
                break;
            }
            if since.elapsed() > STEP_LIMIT {
                let told = difference(&players.heard, &after.heard);
                return Err(differs(format!("{figures:?} instead of {:?}; {told}", after.figures)));
            }
            thread::sleep(Duration::from_micros(100));
        }
        let is_same = |(heard, wanted): (&Heard, &Heard)| {
            let are_same = theme == Theme::Tracking || heard.pushes == wanted.pushes;
            are_same && heard.replies == wanted.replies && heard.unread.is_empty()
        };
        if !players.heard.iter().zip(&after.heard).all(is_same) {
            return Err(differs(difference(&players.heard, &after.heard)));
        }
        for (client, known) in knowledge.iter_mut().enumerate() {
            known.end_step(&players.heard[client], &after.heard[client]);
        }
        match &after.step {
            Step::Send(client, requests) => knowledge[*client].read(requests, counts[*client]),
            // Its next connection knows nothing.
            Step::Leave(client) | Step::HalfClose(client) => knowledge[*client].forget(),
        }
    }
    drop(players);
    Client::connect(subject)?.ask("FLUSHALL")?;
    direct.client()?.ask("FLUSHALL")?;
    settle(&mut observer, 0)?;
    let last = script.last().map_or(&[][..], |after| &after.heard[..]);
    Ok(last.iter().map(|heard| heard.count + frames(&heard.pushes)).sum())
}

/// Makes a script up while it is played to a redis-server, and writes down what that says.
fn record(direct: &RedisServer, mut author: Author, rng: &mut Rng) -> io::Result<Vec<After>> {
    // Data written to a unix socket has arrived at once, so the server reads the observer's request after it.
    let mut observer = Client::connect(&direct.unix())?;
    let mut players = Players::connect(&direct.unix(), author.speaks_resp3)?;
    let mut script = Vec::new();
    let mut waiting = settle(&mut observer, 0)?;
    for at in 0..STEPS + 2 * CLIENTS {
        let step = tagged(author.step(at, rng));
        let before: Vec<usize> = players.heard.iter().map(|heard| heard.count).collect();
        players.play(&step)?;
        // A wait that ends by itself does so before the next step.
        let ends = matches!(&step, Step::Send(_, requests) if requests.iter().any(|one| one.ends_with(" 0.01")));
        waiting = if ends { settle(&mut observer, waiting)? } else { barrier(&mut observer)? };
        players.listen()?;
        for (client, state) in author.states.iter_mut().enumerate() {
            state.is_blocked &= players.heard[client].count == before[client];
            state.has_more &= state.is_blocked;
        }
        if let Step::Send(client, requests) = &step {
            let is_owed = players.heard[*client].count < before[*client] + requests.len();
            author.states[*client].is_blocked |= is_owed && requests.last().is_some_and(|one| may_wait(one));
        }
        script.push(After { step, heard: players.heard.clone(), figures: Figures::ask(&mut observer)? });
    }
    drop(players);
    settle(&mut observer, 0)?;
    Ok(script)
}

/// What was sent before is done, and what comes of it has been sent, when the second question is answered.
fn barrier(observer: &mut Client) -> io::Result<u64> {
    observer.ask("PING")?;
    observer.figure("clients", "blocked_clients")
}

/// Waits until no more clients wait than `most`.
fn settle(observer: &mut Client, most: u64) -> io::Result<u64> {
    let since = Instant::now();
    loop {
        let waiting = barrier(observer)?;
        if waiting <= most {
            return Ok(waiting);
        }
        if since.elapsed() > STEP_LIMIT {
            return Err(io::Error::other(format!("{waiting} clients still wait, {most} should at most")));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// What a client is in, as far as the next step depends on it.
#[derive(Debug, Default, Clone)]
struct State {
    is_blocked: bool,
    /// It has sent more behind what it waits for.
    has_more: bool,
    is_in_block: bool,
    is_tracking: bool,
    /// Commands that it has subscribed with, and to what.
    subscriptions: Vec<(&'static str, &'static str)>,
}

/// Makes up what comes next.
struct Author {
    theme: Theme,
    has_wait: bool,
    speaks_resp3: [bool; CLIENTS],
    states: [State; CLIENTS],
    /// Of the last entry added to a stream.
    entry: u32,
}

const LISTS: [&str; 3] = ["l1", "l2", "l3"];
const SORTED: [&str; 2] = ["z1", "z2"];
const ANY: [&str; 7] = ["l1", "l2", "l3", "z1", "z2", "s1", "n1"];
const CHANNELS: [&str; 3] = ["x", "y", "xy"];
const PATTERNS: [&str; 3] = ["x*", "?", "*y"];

impl Author {
    /// The next step. At the end each client sends a request whose reply is known exactly, and half-closes: no further byte may
    /// arrive.
    fn step(&mut self, at: usize, rng: &mut Rng) -> Step {
        if at < STEPS { self.next(rng) } else { self.farewell(at - STEPS) }
    }

    fn farewell(&mut self, last: usize) -> Step {
        let client = last % CLIENTS;
        if last >= CLIENTS || self.states[client].is_blocked {
            self.states[client] = State::default();
            return Step::HalfClose(client);
        }
        let ends_block = matches!(self.theme, Theme::Transactions | Theme::Blocking).then(|| "DISCARD".to_owned());
        Step::Send(client, ends_block.into_iter().chain([format!("PING end:{client}")]).collect())
    }

    fn next(&mut self, rng: &mut Rng) -> Step {
        let client = rng.below(CLIENTS);
        if rng.once_in(if self.states[client].is_blocked { 6 } else { 40 }) {
            self.states[client] = State::default();
            return if rng.once_in(2) { Step::HalfClose(client) } else { Step::Leave(client) };
        }
        if !self.states[client].is_blocked {
            return self.act(client, rng);
        }
        // It goes on behind what it waits for, now and then; else another one acts.
        if rng.once_in(4) {
            self.states[client].has_more = true;
            return Step::Send(client, vec![plain(rng)]);
        }
        match (0..CLIENTS).find(|other| !self.states[*other].is_blocked) {
            Some(other) => self.act(other, rng),
            None => {
                self.states[client] = State::default();
                Step::Leave(client)
            }
        }
    }

    fn act(&mut self, client: usize, rng: &mut Rng) -> Step {
        let mut requests = match self.theme {
            Theme::Transactions => self.transaction(client, rng),
            Theme::Blocking => self.blocking(client, rng),
            Theme::Messages => self.messages(client, rng),
            Theme::Silence => silence(rng),
            Theme::Tracking => self.tracking(client, rng),
            Theme::Blocks => self.block(client, rng),
        };
        // What stands behind a wait that ends now, and what follows here, are done in one order or the other.
        let is_in_block = requests.iter().any(|one| one == "MULTI" || one == "EXEC");
        if self.states.iter().any(|state| state.has_more) && !is_in_block {
            requests.truncate(1);
        }
        Step::Send(client, requests)
    }

    fn transaction(&mut self, client: usize, rng: &mut Rng) -> Vec<String> {
        let state = &mut self.states[client];
        let mut requests = Vec::new();
        for _ in 0..rng.between(1, 3) {
            let one = match (state.is_in_block, rng.below(10)) {
                (false, 0..=2) => format!("WATCH {}", several(rng, &ANY)),
                (false, 3..=5) => "MULTI".into(),
                (false, 6) => rng.pick(&["UNWATCH", "DISCARD", "EXEC"]).to_string(),
                (true, 0..=2) => "EXEC".into(),
                (true, 3) => rng.pick(&["DISCARD", "MULTI", "WATCH s1", "UNWATCH", "GET", "NOSUCH x"]).to_string(),
                (true, 4) => waiting(rng, "0"),
                _ => plain(rng),
            };
            match one.as_str() {
                "MULTI" => state.is_in_block = true,
                "EXEC" | "DISCARD" => state.is_in_block = false,
                _ => {}
            }
            requests.push(one);
        }
        requests
    }

    fn blocking(&mut self, client: usize, rng: &mut Rng) -> Vec<String> {
        let state = &mut self.states[client];
        if std::mem::take(&mut state.is_in_block) {
            return vec![plain(rng), waiting(rng, "0"), pushing(rng), "EXEC".into()];
        }
        match rng.below(15) {
            0..=3 => vec![waiting(rng, "0")],
            4 => vec![waiting(rng, "0.01")],
            5 => vec![plain(rng), waiting(rng, "0")],
            6 | 10 => {
                self.entry += 1;
                vec![format!("XADD t1 {}-1 f v", self.entry)]
            }
            7 => vec![format!("XREAD BLOCK 0 STREAMS t1 {}", rng.pick(&["$", "0", "3-1"]))],
            11 => vec![format!("XREADGROUP GROUP g c{client} BLOCK 0 STREAMS t1 >")],
            12 => {
                let changes =
                    ["XGROUP CREATE t1 g $ MKSTREAM", "XGROUP CREATE t1 g $ MKSTREAM", "XGROUP DESTROY t1 g", "DEL t1"];
                vec![rng.pick(&changes).to_string()]
            }
            8 => {
                state.is_in_block = true;
                vec!["MULTI".into(), pushing(rng)]
            }
            9 if self.has_wait => vec!["WAIT 0 0".into()],
            _ => (0..rng.between(1, 3)).map(|_| pushing(rng)).collect(),
        }
    }

    fn messages(&mut self, client: usize, rng: &mut Rng) -> Vec<String> {
        let is_resp3 = self.speaks_resp3[client];
        let subscriptions = &mut self.states[client].subscriptions;
        let kinds = [("SUBSCRIBE", &CHANNELS), ("PSUBSCRIBE", &PATTERNS), ("SSUBSCRIBE", &CHANNELS)];
        let (command, names) = *rng.pick(&kinds);
        match rng.below(10) {
            0..=2 => {
                // A message that several patterns match comes in the order of a table.
                let pattern = subscriptions.iter().find(|(kind, _)| command == "PSUBSCRIBE" && *kind == command);
                let name = pattern.map_or_else(|| *rng.pick(names), |(_, name)| name);
                if !subscriptions.contains(&(command, name)) {
                    subscriptions.push((command, name));
                }
                vec![format!("{command} {name}")]
            }
            3 => {
                // Without names they are told of in an order of their own; of one there is only one order.
                let name = *rng.pick(names);
                let of_kind = subscriptions.iter().filter(|(kind, _)| *kind == command).count();
                let leave = command.replace("SUB", "UNSUB");
                if of_kind <= 1 && rng.once_in(2) {
                    subscriptions.retain(|(kind, _)| *kind != command);
                    vec![leave]
                } else {
                    subscriptions.retain(|one| *one != (command, name));
                    vec![format!("{leave} {name}")]
                }
            }
            4 => vec!["PING".into()],
            5 if subscriptions.is_empty() && !is_resp3 => vec!["RESET".into(), "PING a".into()],
            6 if !subscriptions.is_empty() && !is_resp3 => vec!["GET s1".into()],
            6 => vec![format!("PUBSUB NUMSUB {}", CHANNELS.join(" ")), "PUBSUB NUMPAT".into()],
            _ if subscriptions.is_empty() || is_resp3 => {
                let publish = *rng.pick(&["PUBLISH", "SPUBLISH"]);
                (0..rng.between(1, 3)).map(|n| format!("{publish} {} m{n}", rng.pick(&CHANNELS))).collect()
            }
            _ => vec!["PING b".into()],
        }
    }

    fn block(&mut self, client: usize, rng: &mut Rng) -> Vec<String> {
        let (is_resp3, channel) = (self.speaks_resp3[client], *rng.pick(&CHANNELS));
        let state = &mut self.states[client];
        if let Some((_, known)) = state.subscriptions.first().copied().filter(|_| !is_resp3 || rng.once_in(3)) {
            // In RESP2 a subscriber may send few other commands.
            state.subscriptions.retain(|(_, name)| *name != known);
            return vec![format!("UNSUBSCRIBE {known}")];
        }
        let mut requests = vec!["MULTI".to_owned()];
        for number in 0..rng.between(1, 5) {
            requests.push(match rng.below(10) {
                // A server writes a message to its own sender within the reply to EXEC.
                0..=2 if state.subscriptions.is_empty() => format!("PUBLISH {} m{number}", rng.pick(&CHANNELS)),
                3 | 4 => several_keys(rng),
                5 => rng.pick(&["ECHO a", "PING", "PING b", "CLIENT GETNAME", "CLIENT REPLY ON"]).to_string(),
                6 => format!("CLIENT SETNAME c{}", rng.below(3)),
                7 => rng.pick(&["PUBSUB NUMSUB x y xy", "PUBSUB NUMPAT", "UNSUBSCRIBE none"]).to_string(),
                _ => plain(rng),
            });
        }
        // The sender may receive its own message if it subscribes after it and another client has the channel.
        let is_sent_to = requests.iter().any(|one| one.starts_with(&format!("PUBLISH {channel} ")));
        if rng.once_in(4) && !is_sent_to {
            requests.push(format!("SUBSCRIBE {channel}"));
        }
        match rng.below(8) {
            0 => requests.push("DISCARD".into()),
            1 => requests.extend(["GET".into(), "EXEC".into()]),
            _ => {
                requests.push("EXEC".into());
                let subscribes = requests.iter().any(|one| one.starts_with("SUBSCRIBE"));
                state.subscriptions.extend(subscribes.then_some(("SUBSCRIBE", channel)));
            }
        }
        requests
    }

    fn tracking(&mut self, client: usize, rng: &mut Rng) -> Vec<String> {
        if !std::mem::replace(&mut self.states[client].is_tracking, true) {
            // Once in a connection's life: a server goes on with what was read before it was switched off and on.
            let modes = ["", " NOLOOP", " OPTIN", " OPTOUT", " BCAST PREFIX s", " BCAST"];
            return vec![format!("CLIENT TRACKING ON{}", rng.pick(&modes))];
        }
        match rng.below(8) {
            0 => vec!["CLIENT GETREDIR".into()],
            1 => vec!["CLIENT CACHING YES".into(), plain(rng), "GET s1".into()],
            2 => vec![format!("MGET {}", several(rng, &ANY))],
            3 => vec!["MULTI".into(), "GET s1".into(), plain(rng), "EXEC".into()],
            4 => vec!["CLIENT TRACKINGINFO".into()],
            _ => (0..rng.between(1, 2)).map(|_| plain(rng)).collect(),
        }
    }
}

/// Requests without replies, and some at their end that have one, so that all is done when they come.
fn silence(rng: &mut Rng) -> Vec<String> {
    let mut requests = Vec::new();
    match rng.below(4) {
        0 => {
            requests.push("CLIENT REPLY OFF".into());
            requests.extend((0..rng.between(0, 4)).map(|_| plain(rng)));
            if rng.once_in(3) {
                requests.extend(["MULTI".into(), plain(rng), "EXEC".into()]);
            }
            if rng.once_in(4) {
                requests.push("CLIENT REPLY SKIP".into());
            }
            requests.push("CLIENT REPLY ON".into());
        }
        1 => requests.extend(["CLIENT REPLY SKIP".into(), plain(rng)]),
        2 => requests.extend(["CLIENT REPLY SKIP".into(), "CLIENT REPLY SKIP".into(), plain(rng), plain(rng)]),
        _ => {
            // Not SKIP or OFF: with them a server sends fewer elements than it has announced.
            let amid = rng.pick(&["CLIENT REPLY ON", "PING"]).to_string();
            requests.extend(["MULTI".into(), plain(rng), amid, plain(rng), "EXEC".into(), "CLIENT REPLY ON".into()]);
        }
    }
    requests.extend([plain(rng), "GET s1".into()]);
    requests
}

/// One request for several keys.
fn several_keys(rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => format!("MSET s1 v{} n1 {}", rng.below(4), rng.below(9)),
        1 => format!("MSETNX s1 w n1 {}", rng.below(9)),
        2 => format!("DEL {}", several(rng, &ANY)),
        3 => format!("EXISTS s1 n1 {}", several(rng, &ANY)),
        4 => format!("SUNION {}", several(rng, &ANY)),
        _ => format!("MGET {} s1 n1", rng.pick(&ANY)),
    }
}

fn several(rng: &mut Rng, names: &[&str]) -> String {
    (0..rng.between(1, 2)).map(|_| *rng.pick(names)).collect::<Vec<_>>().join(" ")
}

/// Something that neither waits nor changes what the connection is.
fn plain(rng: &mut Rng) -> String {
    let any = *rng.pick(&ANY);
    match rng.below(13) {
        0 => format!("SET s1 v{}", rng.below(4)),
        1 => "GET s1".into(),
        2 => "INCR n1".into(),
        3 => format!("DEL {}", several(rng, &ANY)),
        4 => format!("TYPE {any}"),
        5 => format!("RENAME {any} {}", rng.pick(&ANY)),
        6 => format!("LRANGE {} 0 -1", rng.pick(&LISTS)),
        7 => format!("ZRANGE {} 0 -1 WITHSCORES", rng.pick(&SORTED)),
        8 => format!("SET {any} w"),
        9 => format!("COPY {any} {} REPLACE", rng.pick(&ANY)),
        10 => format!("EXPIRE {any} {}", rng.pick(&["100", "-1"])),
        _ => pushing(rng),
    }
}

/// Something that may serve a client that waits.
fn pushing(rng: &mut Rng) -> String {
    match rng.below(8) {
        0..=2 => format!("{} {} a{}", rng.pick(&["LPUSH", "RPUSH"]), rng.pick(&LISTS), rng.below(5)),
        3 => format!("RPUSH {} b c", rng.pick(&LISTS)),
        4 | 5 => format!("ZADD {} {} m{}", rng.pick(&SORTED), rng.below(3), rng.below(4)),
        6 => format!("LMOVE {} {} LEFT RIGHT", rng.pick(&LISTS), rng.pick(&LISTS)),
        _ => format!("RENAME {} {}", rng.pick(&ANY), rng.pick(&["l1", "z1"])),
    }
}

/// Something that waits, unless there is what it waits for.
fn waiting(rng: &mut Rng, time: &str) -> String {
    let (list, sorted) = (several(rng, &LISTS), several(rng, &SORTED));
    match rng.below(7) {
        0 => format!("BLPOP {list} {time}"),
        1 => format!("BRPOP {list} {time}"),
        2 => format!("BLMOVE {} {} LEFT RIGHT {time}", rng.pick(&LISTS), rng.pick(&LISTS)),
        3 => format!("BRPOPLPUSH {} {} {time}", rng.pick(&LISTS), rng.pick(&LISTS)),
        4 => format!("BZPOPMIN {sorted} {time}"),
        5 => format!("BZPOPMAX {sorted} {time}"),
        // Its time comes first, and a wait that ends by itself is told by its last word.
        _ if time == "0" => format!("BLMPOP 0 {} {list} LEFT COUNT 2", list.split(' ').count()),
        _ => format!("BLPOP {list} {time}"),
    }
}

fn may_wait(request: &str) -> bool {
    request.starts_with('B') || request.starts_with("XREAD")
}

fn frames(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Ok(Some(length)) = reply_length(bytes) {
        bytes = &bytes[length..];
        count += 1;
    }
    count
}

fn shown(step: &Step) -> String {
    match step {
        Step::Send(client, requests) => format!("{client}: {}", requests.join("; ")),
        Step::Leave(client) => format!("{client} leaves"),
        Step::HalfClose(client) => format!("{client} closes its side"),
    }
}

/// All keys with one tag: wherever a server has which keys, these are in one place.
fn tagged(step: Step) -> Step {
    let Step::Send(client, requests) = step else { return step };
    let word = |word: &str| match word {
        // Of the prefix that keys are tracked by.
        "s" | "t1" => format!("{{t}}{word}"),
        key if ANY.contains(&key) => format!("{{t}}{key}"),
        other => other.to_owned(),
    };
    let tagged = |one: &String| one.split(' ').map(word).collect::<Vec<_>>().join(" ");
    Step::Send(client, requests.iter().map(tagged).collect())
}

/// What each client has been sent and should have been, from where they differ.
fn difference(heard: &[Heard], wanted: &[Heard]) -> String {
    let mut told = Vec::new();
    for (client, (heard, wanted)) in heard.iter().zip(wanted).enumerate() {
        for (what, heard, wanted) in
            [("replies", &heard.replies, &wanted.replies), ("pushes", &heard.pushes, &wanted.pushes)]
        {
            if heard != wanted {
                let same = heard.iter().zip(wanted).take_while(|(one, other)| one == other).count();
                let from = same.saturating_sub(30);
                let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[from..]).escape_debug().to_string();
                told.push(format!("{what} of client {client}: {} instead of {}", text(heard), text(wanted)));
            }
        }
        if heard.unread != wanted.unread {
            told.push(format!("client {client} has a part of a reply: {:?}", heard.unread));
        }
    }
    told.join("; ")
}
