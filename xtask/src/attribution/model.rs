//! What one client may see: its requests, and which replies can be theirs.

use respool_testkit::{Rng, reply_length};

use super::states::State;

/// Keys that a client uses at a time; enough that all nodes have some.
pub(super) const KEYS: usize = 16;
/// One value in this many is long.
const LONG_VALUE_ONCE_IN: u64 = 97;

/// A request, and with it the reply that it expects.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Set { key: usize, seq: u64 },
    Get { key: usize },
    Mset { pairs: Vec<(usize, u64)> },
    Mget { keys: Vec<usize> },
    Del { keys: Vec<usize> },
    Echo { seq: u64 },
    Ping { seq: u64 },
    Unknown { seq: u64 },
    State { state: State, seq: u64 },
}

impl Step {
    /// How many replies belong to it.
    pub(super) fn replies(&self) -> usize {
        if let Step::State { state, .. } = self { state.replies() } else { 1 }
    }
}

/// What a reply turned out to be.
#[derive(Debug)]
pub(super) enum Verdict {
    Right,
    /// An error that can happen while nodes are in trouble: the request may have been carried out or not.
    Failed,
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
    /// Kills so far when the last write was sent.
    kills_at_write: u64,
}

/// The state of one client's own keys as its replies tell it.
#[derive(Clone)]
pub(super) struct Model {
    client: u64,
    /// Part of every key's name: with a new one all keys are known to be missing.
    generation: u64,
    seq: u64,
    keys: Vec<Key>,
    is_uncertain: bool,
    /// The client stays who it is.
    keeps_user: bool,
}

impl Model {
    pub(super) fn new(client: u64, keeps_user: bool) -> Model {
        Model { client, generation: 0, seq: 0, keys: vec![Key::default(); KEYS], is_uncertain: false, keeps_user }
    }

    /// Goes on with fresh keys if a request of unknown outcome may still change the present ones.
    pub(super) fn forget_uncertain(&mut self) {
        if std::mem::take(&mut self.is_uncertain) {
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
            7..=13 => Step::Set { key, seq },
            14 => Step::Mget { keys: some_keys(rng, true) },
            15 => Step::Mset { pairs: some_keys(rng, false).into_iter().map(|key| (key, seq)).collect() },
            16 => Step::Del { keys: some_keys(rng, false) },
            17 => Step::Echo { seq },
            18 => Step::Ping { seq },
            19 if rng.once_in(2) => Step::State { state: self.state(rng), seq },
            _ => Step::Unknown { seq },
        }
    }

    fn state(&self, rng: &mut Rng) -> State {
        loop {
            let state = State::any(rng);
            if !(self.keeps_user && state.leaves_user()) {
                return state;
            }
        }
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
            Step::State { state, seq } => state.encode(&self.state_token(*seq), out),
        }
    }

    /// A request whose reply a client does not wait for.
    pub(super) fn leave_waiting(&mut self) -> Step {
        self.seq += 1;
        Step::State { state: State::LeftWaiting, seq: self.seq }
    }

    /// The error in a step's reply, or in the first of its replies that is one.
    pub(super) fn error_of<'a>(&self, step: &Step, reply: &'a [u8]) -> &'a [u8] {
        let Step::State { state, seq } = step else { return reply };
        state.error(&self.state_token(*seq), reply).unwrap_or_default()
    }

    /// Judges a reply and learns from it. `kills` is the count of kills when the request was sent and when its reply
    /// was there.
    pub(super) fn check(&mut self, step: &Step, reply: &[u8], kills: (u64, u64)) -> Verdict {
        if let Step::State { state, seq } = step {
            let token = self.state_token(*seq);
            let error = state.error(&token, reply);
            let is_troubled = error.is_some() || kills.0 != kills.1;
            if !state.is_right(&token, reply, is_troubled) {
                return self.describe(step, reply);
            }
            return error.map_or(Verdict::Right, |error| self.check_error(step, error));
        }
        if reply.first() == Some(&b'-') {
            return self.check_error(step, reply);
        }
        let is_right = match step {
            Step::Set { key, seq } => {
                self.write(*key, Some(*seq), kills.0);
                reply == b"+OK\r\n"
            }
            Step::Mset { pairs } => {
                pairs.iter().for_each(|&(key, seq)| self.write(key, Some(seq), kills.0));
                reply == b"+OK\r\n"
            }
            Step::Del { keys } => {
                let is_right = self.is_count(reply, keys, kills.1);
                keys.iter().for_each(|&key| self.write(key, None, kills.0));
                is_right
            }
            Step::Get { key } => self.is_content(*key, reply, kills.1),
            Step::Mget { keys } => self.are_contents(keys, reply, kills.1),
            Step::Echo { seq } | Step::Ping { seq } => is_bulk(reply, &self.token(*seq)),
            Step::Unknown { .. } | Step::State { .. } => false,
        };
        if is_right { Verdict::Right } else { self.describe(step, reply) }
    }

    /// Notes that nobody will ever know how this request ended.
    pub(super) fn abandon(&mut self, step: &Step) {
        self.is_uncertain = true;
        match step {
            Step::Set { key, seq } => self.keys[*key].unknown.push(Some(*seq)),
            Step::Mset { pairs } => pairs.iter().for_each(|&(key, seq)| self.keys[key].unknown.push(Some(seq))),
            Step::Del { keys } => keys.iter().for_each(|&key| self.keys[key].unknown.push(None)),
            Step::Get { .. } | Step::Mget { .. } | Step::Echo { .. } | Step::Ping { .. } | Step::Unknown { .. } => {}
            // What it leaves behind has a name that is never used again.
            Step::State { .. } => {}
        }
    }

    fn check_error(&mut self, step: &Step, reply: &[u8]) -> Verdict {
        if let Step::Unknown { seq } = step {
            // Only a node knows, and it may be away.
            if reply.starts_with(b"-TRYAGAIN the nodes could not be asked") {
                return Verdict::Failed;
            }
            let shown = [b"'", self.token(*seq).as_slice(), b"'"].concat();
            let is_right = reply.starts_with(b"-ERR unknown command") && contains(reply, &shown);
            return if is_right { Verdict::Right } else { self.describe(step, reply) };
        }
        // Answers to something else than what was asked; trouble with nodes never sounds like this.
        const FOREIGN: [&[u8]; 5] =
            [b"-ERR unknown", b"-ERR wrong number", b"-ERR syntax", b"-ERR Protocol", b"-WRONGTYPE"];
        let is_local = matches!(step, Step::Echo { .. } | Step::Ping { .. });
        if is_local || FOREIGN.iter().any(|start| reply.starts_with(start)) {
            return self.describe(step, reply);
        }
        self.abandon(step);
        Verdict::Failed
    }

    fn write(&mut self, key: usize, content: Content, kills: u64) {
        let key = &mut self.keys[key];
        key.known = content;
        key.kills_at_write = kills;
    }

    fn may_be(&self, key: usize, content: Content, kills: u64) -> bool {
        let key = &self.keys[key];
        let is_lost = content.is_none() && kills != key.kills_at_write;
        key.known == content || is_lost || key.unknown.contains(&content)
    }

    fn may_exist(&self, key: usize) -> bool {
        let key = &self.keys[key];
        key.known.is_some() || key.unknown.iter().any(Option::is_some)
    }

    fn is_content(&self, key: usize, bulk: &[u8], kills: u64) -> bool {
        if bulk == b"$-1\r\n" {
            return self.may_be(key, None, kills);
        }
        // A value names its key and the request that wrote it: make that request's value again and compare.
        let written = written_by(bulk);
        written.is_some_and(|seq| is_bulk(bulk, &self.value(key, seq)) && self.may_be(key, Some(seq), kills))
    }

    fn are_contents(&self, keys: &[usize], reply: &[u8], kills: u64) -> bool {
        let head = format!("*{}\r\n", keys.len());
        let Some(mut rest) = reply.strip_prefix(head.as_bytes()) else { return false };
        keys.iter().all(|&key| {
            let Ok(Some(length)) = reply_length(rest) else { return false };
            let (element, after) = rest.split_at(length);
            rest = after;
            element.starts_with(b"-") || self.is_content(key, element, kills)
        })
    }

    fn is_count(&self, reply: &[u8], keys: &[usize], kills: u64) -> bool {
        let count = reply.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b"\r\n"));
        let count = count.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<usize>().ok());
        let surely = keys.iter().filter(|&&key| !self.may_be(key, None, kills)).count();
        let possibly = keys.iter().filter(|&&key| self.may_exist(key)).count();
        count.is_some_and(|count| (surely..=possibly).contains(&count))
    }

    fn describe(&mut self, step: &Step, reply: &[u8]) -> Verdict {
        self.is_uncertain = true;
        let shown = String::from_utf8_lossy(&reply[..reply.len().min(120)]).into_owned();
        let keys = match step {
            Step::Get { key } | Step::Set { key, .. } => vec![*key],
            Step::Mget { keys } | Step::Del { keys } => keys.clone(),
            _ => vec![],
        };
        let known: Vec<_> = keys.iter().map(|&key| &self.keys[key]).collect();
        let Model { client, generation, .. } = self;
        Verdict::Wrong(format!("client {client} generation {generation} {step:?} got {shown:?}; known {known:?}"))
    }

    fn name(&self, key: usize) -> Vec<u8> {
        format!("c{}:g{}:k{key}", self.client, self.generation).into_bytes()
    }

    /// Names everything about the request that wrote it; its length and filling follow from that too.
    fn value(&self, key: usize, seq: u64) -> Vec<u8> {
        let mut value = format!("{seq}:c{}:g{}:k{key}:", self.client, self.generation).into_bytes();
        let mix = Rng::part(seq, self.client).next_u64();
        let filling = if mix.is_multiple_of(LONG_VALUE_ONCE_IN) { mix >> 32 & 0x3FFF } else { mix >> 32 & 0x3F };
        let letter = b'a' + (mix >> 48) as u8 % 26;
        value.resize(value.len() + filling as usize, letter);
        value
    }

    fn token(&self, seq: u64) -> Vec<u8> {
        format!("{seq}:c{}", self.client).into_bytes()
    }

    fn state_token(&self, seq: u64) -> String {
        format!("{seq}:c{}:g{}", self.client, self.generation)
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

    #[test]
    fn only_the_last_value_of_the_own_key_is_right() {
        let mut model = Model::new(7, false);
        let get = Step::Get { key: 3 };
        assert!(is_right(model.check(&get, b"$-1\r\n", (0, 0))));
        assert!(is_right(model.check(&Step::Set { key: 3, seq: 1 }, b"+OK\r\n", (0, 0))));
        assert!(is_right(model.check(&Step::Set { key: 3, seq: 2 }, b"+OK\r\n", (0, 0))));
        assert!(is_right(model.check(&get, &bulk(&model.value(3, 2)), (0, 0))));
        assert!(is_wrong(model.check(&get, &bulk(&model.value(3, 1)), (0, 0))), "an older value");
        assert!(is_wrong(model.check(&get, &bulk(&model.value(4, 2)), (0, 0))), "another key's value");
        assert!(
            is_wrong(model.check(&get, &bulk(&Model::new(8, false).value(3, 2)), (0, 0))),
            "another client's value"
        );
        assert!(is_wrong(model.check(&get, b"+OK\r\n", (0, 0))), "another request's reply");
        assert!(is_wrong(model.check(&get, b"$-1\r\n", (0, 0))), "nothing was lost");
        assert!(is_right(model.check(&get, b"$-1\r\n", (0, 1))), "a node was killed since");
    }

    #[test]
    fn after_an_error_both_outcomes_are_possible_until_keys_change() {
        let mut model = Model::new(7, false);
        let set = Step::Set { key: 3, seq: 1 };
        assert!(matches!(model.check(&set, b"-ERR node is down\r\n", (0, 0)), Verdict::Failed));
        let get = Step::Get { key: 3 };
        assert!(is_right(model.check(&get, b"$-1\r\n", (0, 0))));
        assert!(is_right(model.check(&get, &bulk(&model.value(3, 1)), (0, 0))));
        let old = model.value(3, 1);
        model.forget_uncertain();
        assert!(is_wrong(model.check(&get, &bulk(&old), (0, 0))));
    }

    #[test]
    fn errors_of_other_requests_are_wrong() {
        let mut model = Model::new(7, false);
        let get = Step::Get { key: 3 };
        assert!(is_wrong(model.check(
            &get,
            b"-ERR unknown command 'NOSUCH7', with args beginning with: '1:c7' \r\n",
            (0, 0)
        )));
        let unknown = Step::Unknown { seq: 4 };
        assert!(is_wrong(model.check(
            &unknown,
            b"-ERR unknown command 'NOSUCH7', with args beginning with: '4:c8' \r\n",
            (0, 0)
        )));
        assert!(is_right(model.check(
            &unknown,
            b"-ERR unknown command 'NOSUCH7', with args beginning with: '4:c7' \r\n",
            (0, 0)
        )));
        assert!(is_wrong(model.check(&Step::Ping { seq: 1 }, b"-ERR node is down\r\n", (0, 0))), "answered locally");
    }

    #[test]
    fn joined_replies_are_checked_element_by_element() {
        let mut model = Model::new(7, false);
        let pairs = vec![(1, 5), (2, 5)];
        assert!(is_right(model.check(&Step::Mset { pairs }, b"+OK\r\n", (0, 0))));
        let (first, second) = (bulk(&model.value(1, 5)), bulk(&model.value(2, 5)));
        let mget = Step::Mget { keys: vec![1, 2, 1] };
        let reply = |elements: &[&[u8]]| [b"*3\r\n".as_slice(), &elements.concat()].concat();
        assert!(is_right(model.check(&mget, &reply(&[&first, &second, &first]), (0, 0))));
        assert!(is_wrong(model.check(&mget, &reply(&[&second, &first, &first]), (0, 0))));
        let del = Step::Del { keys: vec![1, 2, 3] };
        assert!(is_wrong(model.clone().check(&del, b":1\r\n", (0, 0))));
        assert!(is_wrong(model.clone().check(&del, b":3\r\n", (0, 0))));
        assert!(is_right(model.check(&del, b":2\r\n", (0, 0))));
        assert!(is_right(model.check(&Step::Get { key: 1 }, b"$-1\r\n", (0, 0))));
    }
}
