//! What one client may see: its requests, and which replies can be theirs.

use std::sync::Arc;

use respool_testkit::{Rng, reply_length};

use super::conversation::{Conversation, Meanwhile, Outcome};
use super::faults::Unexplained;
use super::layout::{Layout, MOVED, NODES, Nodes};
use super::ledger::{Fate, Id, Ledger};
use super::states::State;

/// Keys that a client uses at a time; enough that all nodes have some.
pub(super) const KEYS: usize = 16;
/// One value in this many is long.
const LONG_VALUE_ONCE_IN: u64 = 97;

/// A request, and with it the reply that it expects.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Set {
        key: usize,
        seq: u64,
    },
    /// The same, which gives the value before.
    Swap {
        key: usize,
        seq: u64,
    },
    Get {
        key: usize,
    },
    Mset {
        pairs: Vec<(usize, u64)>,
    },
    Mget {
        keys: Vec<usize>,
    },
    Del {
        keys: Vec<usize>,
    },
    Echo {
        seq: u64,
    },
    Ping {
        seq: u64,
    },
    Unknown {
        seq: u64,
    },
    State {
        state: State,
        conversation: Arc<Conversation>,
    },
}

impl Step {
    /// How many replies belong to it.
    pub(super) fn replies(&self) -> usize {
        if let Step::State { conversation, .. } = self { conversation.replies() } else { 1 }
    }

    pub(super) fn state(&self) -> Option<State> {
        if let Step::State { state, .. } = self { Some(*state) } else { None }
    }

    /// Whether it may wait for something that does not come.
    pub(super) fn waits(&self) -> bool {
        self.state().is_some_and(State::waits)
    }

    /// Whether it ends with a blocking pop whose reply is nil or an error.
    pub(super) fn has_waited_in_vain(&self, reply: &[u8]) -> bool {
        let of_pop = match self.state() {
            Some(State::InVain | State::LeftWaiting | State::Popping) => reply,
            // The reply of its push is one line.
            Some(State::Served) => {
                let end_of_push = reply.iter().position(|byte| *byte == b'\n').unwrap_or(0);
                &reply[end_of_push + 1..]
            }
            _ => return false,
        };
        of_pop.starts_with(b"-") || of_pop == b"*-1\r\n"
    }

    /// The nodes that it goes to.
    fn nodes(&self) -> Nodes {
        let of_key = |key: &usize| Nodes::one(node_of(*key));
        let of_all = |nodes: &mut dyn Iterator<Item = Nodes>| nodes.fold(Nodes::NONE, Nodes::and);
        match self {
            Step::Set { key, .. } | Step::Swap { key, .. } | Step::Get { key } => of_key(key),
            Step::Mset { pairs } => of_all(&mut pairs.iter().map(|(key, _)| of_key(key))),
            Step::Mget { keys } | Step::Del { keys } => of_all(&mut keys.iter().map(of_key)),
            // Which node is asked for a name is not said.
            Step::Unknown { .. } => Nodes::ALL,
            Step::Echo { .. } | Step::Ping { .. } => Nodes::NONE,
            Step::State { conversation, .. } => conversation.nodes,
        }
    }
}

/// The node of a key with this number.
fn node_of(key: usize) -> usize {
    key % NODES
}

/// What a reply turned out to be.
#[derive(Debug)]
pub(super) enum Verdict {
    Right,
    /// An error that can happen while nodes are in trouble.
    Failed(Vec<u8>),
    /// An error that says that something took too long, and nothing says why it did.
    Late(String),
    Wrong(String),
}

/// A key's content: nothing, or what the request with this number wrote.
type Content = Option<u64>;

#[derive(Debug, Clone, Default)]
struct Key {
    /// What the last request that succeeded left.
    known: Content,
    /// What requests of unknown outcome may have left, before or after it.
    unknown: Vec<Content>,
    /// How often nodes had been replaced when the last write was sent.
    moves_at_write: u64,
    /// The client's connection by which that was.
    connection_at_write: u32,
    /// What writes by other connections had left that were sent since as many replacements.
    elsewhere: Vec<Content>,
}

/// How often nodes had been replaced by other servers before a request was sent, and when it was answered.
type Moves = (u64, u64);

/// What may have happened between a request and its reply.
#[derive(Clone, Copy)]
pub(super) struct Span<'f> {
    pub(super) meanwhile: Meanwhile<'f>,
    pub(super) moves: Moves,
}

/// The state of one client's own keys as its replies tell it.
pub(super) struct Model {
    client: u64,
    layout: Arc<Layout>,
    states: Arc<[State]>,
    /// Part of every key's name: with a new one all keys are known to be missing.
    generation: u64,
    seq: u64,
    keys: Vec<Key>,
    is_uncertain: bool,
    /// The client stays who it is.
    keeps_user: bool,
    /// How often nodes had been replaced when its keys were new.
    moves: u64,
    /// What it was told of its writes.
    pub(super) ledger: Ledger,
}

impl Model {
    pub(super) fn new(client: u64, keeps_user: bool, layout: Arc<Layout>, states: Arc<[State]>) -> Model {
        let keys = vec![Key::default(); KEYS];
        let ledger = Ledger::default();
        Model { client, layout, states, generation: 0, seq: 0, keys, is_uncertain: false, keeps_user, moves: 0, ledger }
    }

    /// Goes on with fresh keys if a request of unknown outcome may still change the present ones, or if a node was replaced by
    /// another server.
    pub(super) fn forget_uncertain(&mut self, moves: u64) {
        if std::mem::take(&mut self.is_uncertain) || std::mem::replace(&mut self.moves, moves) != moves {
            self.generation += 1;
            self.keys.fill(Key::default());
        }
    }

    /// A random request.
    pub(super) fn step(&mut self, rng: &mut Rng) -> Step {
        self.seq += 1;
        let (key, seq) = (rng.below(KEYS), self.seq);
        match rng.below(20) {
            0..=6 => Step::Get { key },
            7..=9 => Step::Set { key, seq },
            10..=13 => Step::Swap { key, seq },
            14 => Step::Mget { keys: some_keys(rng, true) },
            15 => Step::Mset { pairs: some_keys(rng, false).into_iter().map(|key| (key, seq)).collect() },
            16 => Step::Del { keys: some_keys(rng, false) },
            17 => Step::Echo { seq },
            18 => Step::Ping { seq },
            19 if rng.once_in(2) => self.enter(self.state(rng), seq),
            _ => Step::Unknown { seq },
        }
    }

    fn state(&self, rng: &mut Rng) -> State {
        loop {
            let state = State::any(rng, &self.states);
            if state.suits(self.keeps_user) {
                return state;
            }
        }
    }

    fn enter(&self, state: State, seq: u64) -> Step {
        let conversation = Arc::new(state.conversation(self.client, self.generation, seq, &self.layout));
        Step::State { state, conversation }
    }

    /// A write of and then a look at every key.
    pub(super) fn survey(&mut self) -> Vec<Step> {
        self.seq += 1;
        let seq = self.seq;
        let writes = (0..KEYS).map(|key| Step::Set { key, seq });
        writes.chain((0..KEYS).map(|key| Step::Get { key })).collect()
    }

    /// Appends the request's bytes.
    pub(super) fn encode(&self, step: &Step, out: &mut Vec<u8>) {
        match step {
            Step::Set { key, seq } => encode(out, &[b"SET", &self.name(*key), &self.value(*key, *seq)]),
            Step::Swap { key, seq } => encode(out, &[b"SET", &self.name(*key), &self.value(*key, *seq), b"GET"]),
            Step::Get { key } => encode(out, &[b"GET", &self.name(*key)]),
            Step::Mget { keys } => self.encode_keys(b"MGET", keys, out),
            Step::Del { keys } => self.encode_keys(b"DEL", keys, out),
            Step::Mset { pairs } => {
                let mut arguments = vec![b"MSET".to_vec()];
                for &(key, seq) in pairs {
                    arguments.extend([self.name(key), self.value(key, seq)]);
                }
                encode(out, &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
            Step::Echo { seq } => encode(out, &[b"ECHO", &self.token(*seq)]),
            Step::Ping { seq } => encode(out, &[b"PING", &self.token(*seq)]),
            Step::Unknown { seq } => encode(out, &[&self.unknown_command(), &self.token(*seq)]),
            Step::State { conversation, .. } => conversation.encode(out),
        }
    }

    /// Requests of which a client does not wait for all replies.
    pub(super) fn leave(&mut self, state: State) -> Step {
        self.seq += 1;
        self.enter(state, self.seq)
    }

    /// Judges a reply and learns from it.
    pub(super) fn check(&mut self, step: &Step, reply: &[u8], span: Span<'_>) -> Verdict {
        if let Step::State { state, conversation } = step {
            let hear = |aside: &[u8]| state.may_hear(conversation, aside);
            return match conversation.check(reply, hear, span.meanwhile, &mut self.ledger) {
                Outcome::Right => Verdict::Right,
                Outcome::Failed(error) => {
                    self.is_uncertain = true;
                    Verdict::Failed(error)
                }
                Outcome::Late(why) => Verdict::Late(self.told(step, &why)),
                Outcome::Wrong(why) => Verdict::Wrong(self.told(step, &why)),
            };
        }
        if reply.first() == Some(&b'-') {
            return self.check_error(step, reply, span);
        }
        let is_right = match step {
            Step::Set { key, seq } => {
                self.write(*key, Some(*seq), span.moves.0);
                reply == b"+OK\r\n"
            }
            Step::Swap { key, seq } => {
                let is_right = self.is_content(*key, reply, span.moves);
                self.write(*key, Some(*seq), span.moves.0);
                is_right
            }
            Step::Mset { pairs } => {
                pairs.iter().for_each(|&(key, seq)| self.write(key, Some(seq), span.moves.0));
                reply == b"+OK\r\n"
            }
            Step::Del { keys } => {
                let is_right = self.is_count(reply, keys, span.moves);
                keys.iter().for_each(|&key| self.write(key, None, span.moves.0));
                is_right
            }
            Step::Get { key } => self.is_content(*key, reply, span.moves),
            Step::Mget { keys } => self.are_contents(keys, reply, span.moves),
            Step::Echo { seq } | Step::Ping { seq } => is_bulk(reply, &self.token(*seq)),
            Step::Unknown { .. } | Step::State { .. } => false,
        };
        self.note(step, Fate::Done);
        if is_right { Verdict::Right } else { self.describe(step, reply) }
    }

    /// Notes that the outcome of this request will never be known.
    pub(super) fn abandon(&mut self, step: &Step) {
        self.is_uncertain = true;
        self.note(step, Fate::Unknown);
        match step {
            Step::Set { key, seq } | Step::Swap { key, seq } => self.keys[*key].unknown.push(Some(*seq)),
            Step::Mset { pairs } => pairs.iter().for_each(|&(key, seq)| self.keys[key].unknown.push(Some(seq))),
            Step::Del { keys } => keys.iter().for_each(|&key| self.keys[key].unknown.push(None)),
            Step::Get { .. } | Step::Mget { .. } | Step::Echo { .. } | Step::Ping { .. } | Step::Unknown { .. } => {}
            // What it leaves behind has a name that is never used again.
            Step::State { conversation, .. } => conversation.abandon(&mut self.ledger),
        }
    }

    /// Notes that this request was not carried out, and must not be.
    pub(super) fn renounce(&mut self, step: &Step) {
        self.note(step, Fate::NotDone);
        if let Step::State { conversation, .. } = step {
            conversation.end_all(Fate::NotDone, &mut self.ledger);
        }
    }

    fn note(&mut self, step: &Step, fate: Fate) {
        let Model { client, ledger, .. } = self;
        let mut write = |key: usize, seq: u64| {
            let id = Id { client: *client, seq, part: key as u16 };
            ledger.note(id, node_of(key) as u8, 0, fate);
        };
        match step {
            Step::Set { key, seq } | Step::Swap { key, seq } => write(*key, *seq),
            Step::Mset { pairs } => pairs.iter().for_each(|&(key, seq)| write(key, seq)),
            _ => {}
        }
    }

    fn check_error(&mut self, step: &Step, reply: &[u8], span: Span<'_>) -> Verdict {
        if let Step::Unknown { seq } = step
            && !reply.starts_with(b"-TRYAGAIN ")
        {
            let shown = [b"'", self.token(*seq).as_slice(), b"'"].concat();
            let is_right = reply.starts_with(b"-ERR unknown command") && contains(reply, &shown);
            return if is_right { Verdict::Right } else { self.describe(step, reply) };
        }
        let (fate, verdict) = match span.meanwhile.faults.judge(reply, step.nodes(), span.meanwhile.since) {
            Ok(fate) => (fate, Verdict::Failed(reply.to_vec())),
            Err(why) => {
                let told = format!("{}: {}", why.why(), self.description(step, reply));
                match why {
                    Unexplained::Late(_, fate) => (fate, Verdict::Late(told)),
                    Unexplained::Wrong(_) => (Fate::Unknown, Verdict::Wrong(told)),
                }
            }
        };
        // Of a request that was split one part may have been carried out.
        let is_split = matches!(step, Step::Mset { .. } | Step::Mget { .. } | Step::Del { .. });
        if fate == Fate::NotDone && !is_split {
            self.is_uncertain = true;
            self.note(step, Fate::NotDone);
        } else {
            self.abandon(step);
        }
        verdict
    }

    fn write(&mut self, key: usize, content: Content, moves: u64) {
        let connection_at_write = self.ledger.connection;
        let key = &mut self.keys[key];
        let mut elsewhere = std::mem::take(&mut key.elsewhere);
        match key.moves_at_write == moves {
            true if key.connection_at_write != connection_at_write => elsewhere.push(key.known),
            true => {}
            false => elsewhere.clear(),
        }
        let unknown = std::mem::take(&mut key.unknown);
        *key = Key { known: content, moves_at_write: moves, connection_at_write, unknown, elsewhere };
    }

    /// Whether another server than the one that the last write reached may answer: while a node is replaced, each worker takes the new
    /// settings in its turn, and a client that has connected again may be with another worker. A connection whose worker takes them
    /// later than another finds `found` there: what was written by that one.
    fn may_be_elsewhere(&self, number: usize, moves: Moves, found: impl Fn(&Content) -> bool) -> bool {
        let key = &self.keys[number];
        // Before the request was sent or when it was answered: it may have been done at either time.
        let is_moving = [moves.0, moves.1].iter().any(|moves| !moves.is_multiple_of(2) && *moves == key.moves_at_write);
        let may_differ = self.ledger.connection != key.connection_at_write || key.elsewhere.iter().any(found);
        node_of(number) == MOVED && is_moving && may_differ
    }

    fn may_be(&self, number: usize, content: Content, moves: Moves) -> bool {
        let key = &self.keys[number];
        let is_moving = !moves.1.is_multiple_of(2);
        let is_lost = content.is_none() && node_of(number) == MOVED && (moves.1 != key.moves_at_write || is_moving);
        let is_older = content.is_some_and(|seq| key.known.is_none_or(|known| seq < known));
        let is_elsewhere = is_older && self.may_be_elsewhere(number, moves, |found| *found == content);
        key.known == content || is_lost || is_elsewhere || key.unknown.contains(&content)
    }

    fn may_exist(&self, key: usize) -> bool {
        let key = &self.keys[key];
        key.known.is_some() || key.unknown.iter().any(Option::is_some)
    }

    fn is_content(&self, key: usize, bulk: &[u8], moves: Moves) -> bool {
        if bulk == b"$-1\r\n" {
            return self.may_be(key, None, moves);
        }
        // A value names its key and the request that wrote it: make that request's value again and compare.
        let written = written_by(bulk);
        written.is_some_and(|seq| is_bulk(bulk, &self.value(key, seq)) && self.may_be(key, Some(seq), moves))
    }

    fn are_contents(&self, keys: &[usize], reply: &[u8], moves: Moves) -> bool {
        let head = format!("*{}\r\n", keys.len());
        let Some(mut rest) = reply.strip_prefix(head.as_bytes()) else { return false };
        keys.iter().all(|&key| {
            let Ok(Some(length)) = reply_length(rest) else { return false };
            let (element, after) = rest.split_at(length);
            rest = after;
            self.is_content(key, element, moves)
        })
    }

    fn is_count(&self, reply: &[u8], keys: &[usize], moves: Moves) -> bool {
        let count = reply.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b"\r\n"));
        let count = count.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<usize>().ok());
        let surely = keys.iter().filter(|&&key| !self.may_be(key, None, moves)).count();
        let possibly = keys
            .iter()
            .filter(|&&key| self.may_exist(key) || self.may_be_elsewhere(key, moves, Option::is_some))
            .count();
        count.is_some_and(|count| (surely..=possibly).contains(&count))
    }

    fn describe(&mut self, step: &Step, reply: &[u8]) -> Verdict {
        self.is_uncertain = true;
        Verdict::Wrong(self.description(step, reply))
    }

    fn description(&self, step: &Step, reply: &[u8]) -> String {
        let shown = String::from_utf8_lossy(&reply[..reply.len().min(120)]).into_owned();
        let keys = match step {
            Step::Get { key } | Step::Set { key, .. } | Step::Swap { key, .. } => vec![*key],
            Step::Mget { keys } | Step::Del { keys } => keys.clone(),
            _ => vec![],
        };
        let known: Vec<_> = keys.iter().map(|&key| &self.keys[key]).collect();
        let Model { client, generation, .. } = self;
        let connection = self.ledger.connection;
        format!(
            "client {client} connection {connection} generation {generation} {step:?} got {shown:?}; known {known:?}"
        )
    }

    /// What a conversation is told to have come to.
    fn told(&mut self, step: &Step, why: &str) -> String {
        self.is_uncertain = true;
        let Step::State { state, conversation } = step else { return why.to_owned() };
        let Conversation { seq, node, .. } = **conversation;
        format!("client {} request {seq} node {node} {state:?}: {why}", self.client)
    }

    fn name(&self, key: usize) -> Vec<u8> {
        let tag = &self.layout.tags[node_of(key)];
        format!("{{{tag}}}c{}:g{}:k{key}", self.client, self.generation).into_bytes()
    }

    /// Names everything about the request that wrote it; its length and filling follow from that too.
    fn value(&self, key: usize, seq: u64) -> Vec<u8> {
        let mut value = Id { client: self.client, seq, part: key as u16 }.mark().into_bytes();
        value.extend_from_slice(format!("g{}:", self.generation).as_bytes());
        let mix = Rng::part(seq, self.client).next_u64();
        let filling = if mix.is_multiple_of(LONG_VALUE_ONCE_IN) { mix >> 32 & 0x3FFF } else { mix >> 32 & 0x3F };
        let letter = b'a' + (mix >> 48) as u8 % 26;
        value.resize(value.len() + filling as usize, letter);
        value
    }

    fn token(&self, seq: u64) -> Vec<u8> {
        format!("{seq}:c{}", self.client).into_bytes()
    }

    /// A few names, so that nodes are asked for each only now and then: a client that makes names up has to wait.
    fn unknown_command(&self) -> Vec<u8> {
        format!("NOSUCH{}", self.client % 8).into_bytes()
    }

    fn encode_keys(&self, name: &[u8], keys: &[usize], out: &mut Vec<u8>) {
        let mut arguments = vec![name.to_vec()];
        arguments.extend(keys.iter().map(|&key| self.name(key)));
        encode(out, &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
}

fn some_keys(rng: &mut Rng, may_repeat: bool) -> Vec<usize> {
    let count = rng.between(1, 6);
    let mut keys: Vec<usize> = (0..count).map(|_| rng.below(KEYS)).collect();
    if !may_repeat {
        keys.sort_unstable();
        keys.dedup();
    }
    keys
}

fn encode(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    out.extend_from_slice(&respool_testkit::request(arguments));
}

fn is_bulk(reply: &[u8], content: &[u8]) -> bool {
    let body = reply.strip_prefix(format!("${}\r\n", content.len()).as_bytes());
    body.and_then(|body| body.strip_suffix(b"\r\n")) == Some(content)
}

/// The number at the start of a value in a bulk reply.
fn written_by(bulk: &[u8]) -> Option<u64> {
    let body = bulk.iter().position(|&byte| byte == b'\n')? + 1;
    let digits = bulk[body..].split(|&byte| byte == b':').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::excuses::DEATH;
    use super::super::faults::Faults;
    use super::super::watch::Watch;
    use super::*;

    fn bulk(value: &[u8]) -> Vec<u8> {
        [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
    }

    fn is_right(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Right)
    }

    fn is_wrong(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Wrong(_))
    }

    /// A model, and faults of which there are none yet.
    struct Bench {
        model: Model,
        faults: Faults,
        moves: u64,
    }

    impl Bench {
        fn new(client: u64) -> Bench {
            let faults = Faults::new((0..NODES).map(|node| format!("node{node}")).collect(), Watch::default());
            Bench {
                model: Model::new(client, false, Arc::new(Layout::for_tests()), State::ALL.into()),
                faults,
                moves: 0,
            }
        }

        fn check(&mut self, step: &Step, reply: &[u8]) -> Verdict {
            let meanwhile = Meanwhile { faults: &self.faults, since: Instant::now(), has_moved: self.moves > 0 };
            self.model.check(step, reply, Span { meanwhile, moves: (self.moves, self.moves) })
        }

        fn value(&self, key: usize, seq: u64) -> Vec<u8> {
            bulk(&self.model.value(key, seq))
        }
    }

    #[test]
    fn only_the_last_value_of_the_own_key_is_right() {
        let mut bench = Bench::new(7);
        let get = Step::Get { key: 3 };
        assert!(is_right(bench.check(&get, b"$-1\r\n")));
        assert!(is_right(bench.check(&Step::Set { key: 3, seq: 1 }, b"+OK\r\n")));
        let first = bench.value(3, 1);
        assert!(is_right(bench.check(&Step::Swap { key: 3, seq: 2 }, &first)));
        let second = bench.value(3, 2);
        assert!(is_right(bench.check(&get, &second)));
        assert!(is_wrong(bench.check(&get, &first)), "an older value");
        assert!(is_wrong(bench.check(&Step::Swap { key: 3, seq: 4 }, &first)), "an older value");
        let other = bench.value(4, 2);
        assert!(is_wrong(bench.check(&get, &other)), "another key's value");
        assert!(is_wrong(bench.check(&get, &Bench::new(8).value(3, 2))), "another client's value");
        assert!(is_wrong(bench.check(&get, b"+OK\r\n")), "another request's reply");
        assert!(is_wrong(bench.check(&get, b"$-1\r\n")), "nothing was lost");
        bench.moves = 1;
        assert!(is_right(bench.check(&get, b"$-1\r\n")), "another server is the node since");
    }

    #[test]
    fn another_connection_may_see_the_former_server_during_a_move() {
        let mut bench = Bench::new(7);
        bench.moves = 1;
        let get = Step::Get { key: 3 };
        assert!(is_right(bench.check(&Step::Set { key: 3, seq: 1 }, b"+OK\r\n")));
        bench.model.ledger.connection = 1;
        assert!(is_right(bench.check(&Step::Set { key: 3, seq: 2 }, b"+OK\r\n")));
        let (first, second) = (bench.value(3, 1), bench.value(3, 2));
        assert!(is_right(bench.check(&get, &first)), "its worker takes the settings later than the one before");
        assert!(is_right(bench.check(&Step::Set { key: 3, seq: 3 }, b"+OK\r\n")));
        assert!(is_wrong(bench.check(&get, &second)), "it has written that itself, and a worker does not go back");
        bench.model.ledger.connection = 2;
        assert!(is_right(bench.check(&get, &first)) && is_right(bench.check(&get, &second)));
        let later = bench.value(3, 4);
        assert!(is_wrong(bench.check(&get, &later)), "no request has written it");
        assert!(is_right(bench.check(&Step::Set { key: 2, seq: 5 }, b"+OK\r\n")));
        assert!(is_right(bench.check(&Step::Set { key: 2, seq: 6 }, b"+OK\r\n")));
        bench.model.ledger.connection = 3;
        let older = bench.value(2, 5);
        assert!(is_wrong(bench.check(&Step::Get { key: 2 }, &older)), "its node is not replaced");
        bench.moves = 2;
        assert!(is_wrong(bench.check(&get, &first)), "all workers have the new settings");
        bench.moves = 3;
        assert!(is_wrong(bench.check(&get, &first)), "nothing was written in this move");
    }

    #[test]
    fn after_an_error_both_outcomes_are_possible_until_keys_change() {
        let mut bench = Bench::new(7);
        let set = Step::Set { key: 3, seq: 1 };
        let late = b"-ERR node node3 did not answer within 250 ms; the command may or may not have been executed\r\n";
        assert!(matches!(bench.check(&set, late), Verdict::Late(_)), "nothing was done to the node");
        bench.model.forget_uncertain(0);
        bench.faults.begin("kills of nodes", Nodes::one(3), DEATH);
        assert!(matches!(bench.check(&set, late), Verdict::Failed(_)));
        let get = Step::Get { key: 3 };
        assert!(is_right(bench.check(&get, b"$-1\r\n")));
        let old = bench.value(3, 1);
        assert!(is_right(bench.check(&get, &old)));
        bench.model.forget_uncertain(0);
        assert!(is_wrong(bench.check(&get, &old)));
        let down = b"-ERR node node3 is not available: refused; the command was not sent\r\n";
        assert!(is_wrong(bench.check(&Step::Set { key: 2, seq: 3 }, down)), "an error of another node");
        assert!(matches!(bench.check(&Step::Set { key: 3, seq: 4 }, down), Verdict::Failed(_)));
        assert_eq!(bench.model.ledger.writes.last().map(|write| write.fate), Some(Fate::NotDone));
    }

    #[test]
    fn errors_of_other_requests_are_wrong() {
        let mut bench = Bench::new(7);
        bench.faults.begin("kills of nodes", Nodes::ALL, DEATH);
        let get = Step::Get { key: 3 };
        let unknown_words =
            |token: &str| format!("-ERR unknown command 'NOSUCH7', with args beginning with: '{token}' \r\n");
        assert!(is_wrong(bench.check(&get, unknown_words("1:c7").as_bytes())));
        let unknown = Step::Unknown { seq: 4 };
        assert!(is_wrong(bench.check(&unknown, unknown_words("4:c8").as_bytes())));
        assert!(is_right(bench.check(&unknown, unknown_words("4:c7").as_bytes())));
        assert!(is_wrong(bench.check(&Step::Ping { seq: 1 }, b"-ERR node node1 is down\r\n")), "answered locally");
    }

    #[test]
    fn joined_replies_are_checked_element_by_element() {
        let mut bench = Bench::new(7);
        let pairs = vec![(1, 5), (2, 5)];
        assert!(is_right(bench.check(&Step::Mset { pairs }, b"+OK\r\n")));
        let (first, second) = (bench.value(1, 5), bench.value(2, 5));
        let mget = Step::Mget { keys: vec![1, 2, 1] };
        let reply = |elements: &[&[u8]]| [b"*3\r\n".as_slice(), &elements.concat()].concat();
        assert!(is_right(bench.check(&mget, &reply(&[&first, &second, &first]))));
        assert!(is_wrong(bench.check(&mget, &reply(&[&second, &first, &first]))));
        let is_count = |bench: &Bench, reply: &[u8]| bench.model.is_count(reply, &[1, 2, 3], (0, 0));
        assert!(!is_count(&bench, b":1\r\n") && !is_count(&bench, b":3\r\n"));
        assert!(is_right(bench.check(&Step::Del { keys: vec![1, 2, 3] }, b":2\r\n")));
        assert!(is_right(bench.check(&Step::Get { key: 1 }, b"$-1\r\n")));
    }
}
