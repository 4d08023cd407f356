//! Servers: what each has, who watches and waits there, and the connections to them.

use respool_wire::{RequestDecoder, RequestLimits, Step};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One connection to a server.
pub(super) struct End {
    pub(super) place: usize,
    id: u64,
    pub(super) received: Vec<u8>,
    pub(super) to_send: VecDeque<Vec<u8>>,
    /// What is queued of a transaction.
    block: Option<Vec<Vec<String>>>,
    /// Keys that are watched, with what they were when that began.
    watched: Vec<(String, u64)>,
}

/// A command that waits.
struct Waiting {
    place: usize,
    key: String,
    deadline_us: Option<u64>,
}

/// All servers.
#[derive(Default)]
pub(super) struct Servers {
    next_id: u64,
    lists: BTreeMap<(usize, String), VecDeque<u64>>,
    /// How often each key has changed.
    versions: BTreeMap<(usize, String), u64>,
    /// By the number of the connection; who came first has the least turn.
    waiting: BTreeMap<u64, (u64, Waiting)>,
    turns: u64,
    /// Replies to those who wait no more.
    woken: Vec<(u64, Vec<u8>)>,
    /// What is to be executed only while its key is watched.
    pub(super) watched: BTreeSet<u64>,
    /// Elements that have been in a list.
    pub(super) pushed: BTreeSet<u64>,
    /// What has been executed.
    pub(super) executed: BTreeSet<u64>,
}

impl End {
    /// The next whole request, unless one before it waits.
    pub(super) fn next_request(&mut self, servers: &Servers) -> Option<Vec<String>> {
        if servers.waiting.contains_key(&self.id) {
            return None;
        }
        let mut decoder = RequestDecoder::new();
        let Ok(Step::Request(request)) = decoder.decode(&self.received, &RequestLimits::default()) else { return None };
        let words = request.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let used = request.consumed;
        self.received.drain(..used);
        Some(words)
    }
}

fn element(key: &str, token: u64) -> Vec<u8> {
    let value = format!("t{token};");
    format!("*2\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n", key.len(), value.len()).into_bytes()
}

fn token_of(word: &str) -> u64 {
    super::client::tokens(word).next().expect("values name their tokens")
}

impl Servers {
    pub(super) fn connect(&mut self, place: usize) -> End {
        self.next_id += 1;
        let id = self.next_id;
        let (received, to_send) = (Vec::new(), VecDeque::new());
        End { place, id, received, to_send, block: None, watched: Vec::new() }
    }

    pub(super) fn forget(&mut self, end: End) {
        self.waiting.remove(&end.id);
        self.woken.retain(|(id, _)| *id != end.id);
    }

    /// Puts an element at the end of a list.
    pub(super) fn push(&mut self, place: usize, key: &str, token: u64) {
        self.pushed.insert(token);
        self.lists.entry((place, key.to_owned())).or_default().push_back(token);
        self.serve_list(place, key);
    }

    fn serve_list(&mut self, place: usize, key: &str) {
        let waits = |waiting: &Waiting| waiting.place == place && waiting.key == key;
        while let Some(list) = self.lists.get_mut(&(place, key.to_owned())).filter(|list| !list.is_empty()) {
            let first = self.waiting.iter().filter(|(_, (_, w))| waits(w)).min_by_key(|(_, (turn, _))| *turn);
            let Some(id) = first.map(|(id, _)| *id) else { return };
            self.waiting.remove(&id);
            let token = list.pop_front().expect("it is not empty");
            self.woken.push((id, element(key, token)));
        }
    }

    /// The time of some is over.
    pub(super) fn pass_time(&mut self, now_us: u64, ends: &mut BTreeMap<u32, End>) {
        let over = self.waiting.iter().filter(|(_, (_, w))| w.deadline_us.is_some_and(|at| at <= now_us));
        for id in over.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.waiting.remove(&id);
            self.woken.push((id, b"*-1\r\n".to_vec()));
        }
        self.wake(ends);
    }

    /// Those who wait no more have their replies.
    pub(super) fn wake(&mut self, ends: &mut BTreeMap<u32, End>) {
        self.woken.retain(|(id, reply)| match ends.values_mut().find(|end| end.id == *id) {
            Some(end) => {
                end.to_send.push_back(reply.clone());
                false
            }
            None => true,
        });
    }

    /// Does what a request asks.
    pub(super) fn serve(&mut self, end: &mut End, words: &[String], now_us: u64) {
        let reply = match (words[0].as_str(), &mut end.block) {
            ("EXEC", Some(_)) => self.exec(end),
            (_, Some(block)) => {
                block.push(words.to_vec());
                b"+QUEUED\r\n".to_vec()
            }
            ("MULTI", None) => {
                end.block = Some(Vec::new());
                b"+OK\r\n".to_vec()
            }
            ("WATCH", None) => {
                for key in &words[1..] {
                    end.watched.push((key.clone(), self.version(end.place, key)));
                }
                b"+OK\r\n".to_vec()
            }
            ("UNWATCH", None) => {
                end.watched.clear();
                b"+OK\r\n".to_vec()
            }
            ("BLPOP", None) => match self.pop(end.place, &words[1]) {
                Some(reply) => reply,
                None => {
                    let seconds: f64 = words.last().and_then(|word| word.parse().ok()).expect("timeouts are numbers");
                    let deadline_us = (seconds > 0.0).then(|| now_us + (seconds * 1e6) as u64);
                    self.turns += 1;
                    let waiting = Waiting { place: end.place, key: words[1].clone(), deadline_us };
                    self.waiting.insert(end.id, (self.turns, waiting));
                    return;
                }
            },
            ("CLIENT", None) if words[1] == "ID" => format!(":{}\r\n", end.id).into_bytes(),
            ("CLIENT", None) => {
                let id = words[2].parse().expect("numbers are asked for");
                let has_waited = self.waiting.remove(&id).is_some();
                if has_waited {
                    self.woken.push((id, b"*-1\r\n".to_vec()));
                }
                format!(":{}\r\n", u8::from(has_waited)).into_bytes()
            }
            _ => self.run(end.place, words),
        };
        end.to_send.push_back(reply);
    }

    fn version(&self, place: usize, key: &str) -> u64 {
        self.versions.get(&(place, key.to_owned())).copied().unwrap_or(0)
    }

    fn exec(&mut self, end: &mut End) -> Vec<u8> {
        let block = end.block.take().expect("it has begun");
        let watched = std::mem::take(&mut end.watched);
        let is_watched = |words: &Vec<String>| words[0] == "SET" && self.watched.contains(&token_of(&words[2]));
        assert!(!watched.is_empty() || !block.iter().any(is_watched), "{block:?} is executed where nothing is watched");
        if watched.iter().any(|(key, version)| self.version(end.place, key) != *version) {
            return b"*-1\r\n".to_vec();
        }
        let replies: Vec<Vec<u8>> = block.iter().map(|words| self.run(end.place, words)).collect();
        [format!("*{}\r\n", replies.len()).into_bytes(), replies.concat()].concat()
    }

    fn pop(&mut self, place: usize, key: &str) -> Option<Vec<u8>> {
        let token = self.lists.get_mut(&(place, key.to_owned()))?.pop_front()?;
        Some(element(key, token))
    }

    fn run(&mut self, place: usize, words: &[String]) -> Vec<u8> {
        match words[0].as_str() {
            "SET" => {
                *self.versions.entry((place, words[1].clone())).or_default() += 1;
                self.executed.insert(token_of(&words[2]));
                b"+OK\r\n".to_vec()
            }
            "MSET" => {
                for pair in words[1..].chunks(2) {
                    *self.versions.entry((place, pair[0].clone())).or_default() += 1;
                }
                b"+OK\r\n".to_vec()
            }
            "RPUSH" => {
                self.push(place, &words[1], token_of(&words[2]));
                b":1\r\n".to_vec()
            }
            "LPUSH" => {
                let list = self.lists.entry((place, words[1].clone())).or_default();
                list.push_front(token_of(&words[2]));
                self.serve_list(place, &words[1]);
                b":1\r\n".to_vec()
            }
            "BLPOP" => self.pop(place, &words[1]).unwrap_or_else(|| b"*-1\r\n".to_vec()),
            "GET" => b"$-1\r\n".to_vec(),
            "PING" => b"+PONG\r\n".to_vec(),
            // A script of one command, which is its text.
            "EVAL" => self.run(place, &[&words[1..2], &words[3..]].concat()),
            "AUTH" | "SELECT" => b"+OK\r\n".to_vec(),
            other => panic!("no client asks for {other}"),
        }
    }

    /// The elements that are left.
    pub(super) fn left(&self) -> BTreeSet<u64> {
        self.lists.values().flatten().copied().collect()
    }
}
