//! Clients: what they ask, piece by piece, and what they may be answered.

use super::World;
use super::settings::LARGE;
use respool_wire::{ReplyLimits, ReplyScanner, Scan, encode_request};
use std::collections::VecDeque;

/// Some bytes of a client, and the tokens of the requests that are asked with them.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) tokens: Vec<u64>,
}

/// What a client waits for.
#[derive(Debug)]
pub(super) enum Expected {
    /// This, or an error.
    Reply(&'static str),
    /// The end of a transaction of these requests.
    Exec(Vec<u64>),
    /// Keys are watched, or an error.
    Watch,
    /// An element of this list, or nothing if there is a timeout.
    Element(String, bool),
}

/// One client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) to_send: VecDeque<Piece>,
    pub(super) expected: VecDeque<Expected>,
    received: Vec<u8>,
    /// A transaction that has not been ended: its requests so far.
    block: Option<Vec<u64>>,
    key: String,
    is_watching: bool,
    /// How much of what is sent next has been sent.
    pub(super) sent: usize,
    /// Its rights come and go.
    pub(super) is_guest: bool,
}

pub(super) fn request(words: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_request(&mut out, words.iter().map(|word| word.as_bytes()));
    out
}

/// The tokens that a word names.
pub(super) fn tokens(word: &str) -> impl Iterator<Item = u64> + '_ {
    word.split(['}', ';', ' ']).filter_map(|part| part.strip_prefix('t')?.parse().ok())
}

impl Client {
    pub(super) fn new(is_guest: bool) -> Self {
        let mut this = Self { is_guest, ..Self::default() };
        if is_guest {
            this.say(&["AUTH", "guest", "any"], Vec::new());
            this.expected.push_back(Expected::Reply("+OK\r\n"));
        }
        this
    }

    /// Whether it is in the middle of a request that comes in parts.
    pub(super) fn is_amid(&self) -> bool {
        self.sent > 0
    }

    fn say(&mut self, words: &[&str], tokens: Vec<u64>) {
        self.to_send.push_back(Piece { bytes: request(words), tokens });
    }

    /// The same of one key, perhaps by a script.
    fn say_or_run(&mut self, words: &[&str], tokens: Vec<u64>, world: &mut World) {
        match words {
            [name, key, rest @ ..] if world.chance.one_in(3) => {
                self.say(&[&["EVAL", name, "1", key], rest].concat(), tokens);
            }
            _ => self.say(words, tokens),
        }
    }

    /// Has the client ask for something.
    pub(super) fn ask(&mut self, world: &mut World) {
        if self.block.is_some() {
            return;
        }
        let key = format!("{}{{k{}}}", ["", "r"][world.chance.below(2)], world.chance.below(8));
        match world.chance.below(12) {
            0..=3 => {
                let token = world.token(&key);
                self.say_or_run(&["SET", &key, &format!("t{token};")], vec![token], world);
                self.expected.push_back(Expected::Reply("+OK\r\n"));
            }
            4 => {
                let token = world.token(&key);
                self.say_or_run(&["GET", &format!("{key}t{token};")], vec![token], world);
                self.expected.push_back(Expected::Reply("$-1\r\n"));
            }
            5 => {
                let value = "x".repeat(1 + world.chance.below(4 * LARGE));
                let token = world.token(&key);
                self.say(&["SET", &key, &format!("t{token};{value}")], vec![token]);
                self.expected.push_back(Expected::Reply("+OK\r\n"));
            }
            6 | 7 => {
                let list = format!("{key}list");
                let token = world.token(&list);
                self.say_or_run(&["RPUSH", &list, &format!("t{token};")], vec![token], world);
                self.expected.push_back(Expected::Reply(":1\r\n"));
            }
            8 | 9 => {
                let list = format!("{key}list");
                let token = world.token(&list);
                let timeout = ["0", "0.05", "1"][world.chance.below(3)];
                self.say(&["BLPOP", &list, &format!("{key}t{token};"), timeout], vec![token]);
                self.expected.push_back(Expected::Element(list, timeout != "0"));
            }
            what => {
                self.is_watching = what == 10;
                if self.is_watching {
                    let token = world.token(&key);
                    self.say(&["WATCH", &key, &format!("{key}t{token};")], vec![token]);
                    self.expected.push_back(Expected::Watch);
                }
                self.say(&["MULTI"], Vec::new());
                self.expected.push_back(Expected::Reply("+OK\r\n"));
                self.block = Some(Vec::new());
                self.key = key;
            }
        }
    }

    /// Goes on with a transaction, in its own time.
    pub(super) fn finish(&mut self, world: &mut World, is_calm: bool) {
        let Some(mut block) = self.block.take() else { return };
        match world.chance.below(if is_calm { 1 } else { 40 }) {
            0 => {
                self.say(&["EXEC"], block.clone());
                self.expected.push_back(Expected::Exec(block));
                return;
            }
            1..=8 => {
                let token = world.token(&self.key);
                block.push(token);
                if self.is_watching {
                    world.servers.watched.insert(token);
                }
                let (key, value) = (self.key.clone(), format!("t{token};"));
                self.say_or_run(&["SET", &key, &value], Vec::new(), world);
                self.expected.push_back(Expected::Reply("+QUEUED\r\n"));
            }
            _ => {}
        }
        self.block = Some(block);
    }

    /// The list for which it waits without end.
    pub(super) fn waits_for(&self) -> Option<String> {
        match self.expected.front()? {
            Expected::Element(key, false) => Some(key.clone()),
            _ => None,
        }
    }

    /// Replies have come.
    pub(super) fn hear(&mut self, bytes: &[u8], world: &mut World) {
        self.received.extend_from_slice(bytes);
        while let Ok(Scan::Complete { consumed, .. }) =
            ReplyScanner::default().scan(&self.received, &ReplyLimits::default())
        {
            let reply: Vec<u8> = self.received.drain(..consumed).collect();
            let reply = String::from_utf8_lossy(&reply).into_owned();
            let expected = self.expected.pop_front().unwrap_or_else(|| panic!("{reply:?} was not asked for"));
            self.check(expected, &reply, world);
        }
    }

    fn check(&mut self, expected: Expected, reply: &str, world: &mut World) {
        let is_error = reply.starts_with('-');
        world.seen.refused += usize::from(is_error);
        world.seen.forbidden += usize::from(reply.starts_with("-NOPERM "));
        match expected {
            Expected::Reply(right) => assert!(is_error || reply == right, "{reply:?} where {right:?} is right"),
            Expected::Watch if reply == "+OK\r\n" => {}
            // It reads that before it sends what comes behind: that watches nothing, and is not meant to.
            Expected::Watch if self.to_send.len() == self.expected.len() => {
                assert!(is_error, "{reply:?}");
                self.is_watching = false;
                let ended = self.expected.iter().find_map(|expected| match expected {
                    Expected::Exec(block) => Some(block),
                    _ => None,
                });
                let block = self.block.as_ref().or(ended).into_iter().flatten();
                block.for_each(|token| _ = world.servers.watched.remove(token));
            }
            Expected::Watch => assert!(is_error, "{reply:?}"),
            Expected::Exec(block) => {
                let has_run = |world: &World| block.iter().any(|token| world.servers.executed.contains(token));
                if reply == "*-1\r\n" || is_error {
                    assert!(!has_run(world), "a transaction was answered {reply:?} and has been executed");
                    world.seen.touched += usize::from(!is_error);
                    world.seen.aborted += usize::from(is_error);
                } else {
                    assert!(reply.starts_with(&format!("*{}\r\n", block.len())), "{reply:?}");
                    assert!(block.is_empty() || has_run(world), "a transaction was answered and not executed");
                    world.seen.executed += 1;
                }
            }
            Expected::Element(key, may_be_none) => match tokens(reply.rsplit("\r\n").nth(1).unwrap_or("")).next() {
                Some(token) if !is_error => {
                    assert!(reply.contains(&key), "{reply:?} is of another list than {key}");
                    assert!(world.popped.insert(token), "{reply:?} was given twice");
                    world.seen.served += 1;
                }
                _ => {
                    assert!(is_error || may_be_none && reply == "*-1\r\n", "{reply:?}");
                    world.seen.unblocked += usize::from(is_error);
                }
            },
        }
    }
}
