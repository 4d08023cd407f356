//! A node that keeps what it is told: registers, counters and lists, with transactions, watched keys and clients that wait.
//! Its data survives its connections and its death.

use respool_wire::{Args, RequestDecoder, RequestLimits, Step};
use std::collections::{BTreeMap, VecDeque};

/// What a key holds.
#[derive(Clone)]
enum Held {
    Text(Vec<u8>),
    List(VecDeque<Vec<u8>>),
}

#[derive(Default)]
pub(crate) struct Node {
    keys: BTreeMap<Vec<u8>, Held>,
    /// How often each key was written.
    versions: BTreeMap<Vec<u8>, u64>,
    /// Connections that wait for an element, in the order in which they came.
    waiting: Vec<Waiting>,
    pub(crate) is_up: bool,
    /// How many requests it has done that came with a connection that is gone.
    pub(crate) done_late: usize,
}

struct Waiting {
    link: u32,
    key: Vec<u8>,
    until_us: Option<u64>,
}

/// The node's end of one connection.
#[derive(Default)]
pub(crate) struct Link {
    pub(crate) node: usize,
    /// Its number, as CLIENT ID tells.
    pub(crate) id: u64,
    decoder: RequestDecoder,
    received: Vec<u8>,
    pub(crate) replies: VecDeque<Vec<u8>>,
    queue: Option<Vec<Vec<Vec<u8>>>>,
    watched: Vec<(Vec<u8>, u64)>,
    waits: bool,
}

impl Link {
    pub(crate) fn new(node: usize, id: u64) -> Link {
        Link { node, id, ..Link::default() }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next request, if it is whole and the one before it is done.
    fn request(&mut self) -> Option<Vec<Vec<u8>>> {
        if self.waits || self.received.is_empty() {
            return None;
        }
        let limits = RequestLimits::default();
        let (words, used) = match self.decoder.decode(&self.received, &limits).expect("canonical requests") {
            Step::Request(request) => (words(request.args), request.consumed),
            _ => return None,
        };
        self.received.drain(..used);
        Some(words)
    }
}

fn words(args: Args<'_>) -> Vec<Vec<u8>> {
    args.iter().map(<[u8]>::to_vec).collect()
}

pub(crate) fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

fn pair(key: &[u8], element: &[u8]) -> Vec<u8> {
    [b"*2\r\n".to_vec(), bulk(key), bulk(element)].concat()
}

const OK: &[u8] = b"+OK\r\n";
const NULL: &[u8] = b"*-1\r\n";

impl Node {
    pub(crate) fn new() -> Node {
        Node { is_up: true, ..Node::default() }
    }

    /// Does the next request of a connection; whether there was one.
    pub(crate) fn serve(&mut self, place: u32, links: &mut BTreeMap<u32, Link>, now_us: u64) -> bool {
        let Some(link) = links.get_mut(&place) else { return false };
        let Some(words) = link.request() else { return false };
        let name = words[0].to_ascii_uppercase();
        let reply = match (&*name, &mut link.queue) {
            (b"MULTI", None) => {
                link.queue = Some(Vec::new());
                Some(OK.to_vec())
            }
            (b"EXEC", Some(_)) => Some(self.execute(link)),
            (b"DISCARD", Some(_)) => {
                (link.queue, link.watched) = (None, Vec::new());
                Some(OK.to_vec())
            }
            (_, Some(queue)) => {
                queue.push(words);
                Some(b"+QUEUED\r\n".to_vec())
            }
            (b"WATCH", None) => {
                for key in &words[1..] {
                    let version = self.versions.get(key).copied().unwrap_or_default();
                    link.watched.push((key.clone(), version));
                }
                Some(OK.to_vec())
            }
            (b"UNWATCH", None) => {
                link.watched.clear();
                Some(OK.to_vec())
            }
            (b"BLPOP", None) => self.pop(&words[1]).map(|element| pair(&words[1], &element)).or_else(|| {
                let seconds: f64 = String::from_utf8_lossy(&words[2]).parse().expect("timeouts are numbers");
                let until_us = (seconds > 0.0).then(|| now_us + (seconds * 1e6) as u64);
                self.waiting.push(Waiting { link: place, key: words[1].clone(), until_us });
                link.waits = true;
                None
            }),
            (b"CLIENT", None) if words[1].eq_ignore_ascii_case(b"ID") => Some(format!(":{}\r\n", link.id).into_bytes()),
            (b"CLIENT", None) if words[1].eq_ignore_ascii_case(b"UNBLOCK") => {
                let id = String::from_utf8_lossy(&words[2]).parse::<u64>().expect("numbers are asked for");
                let was_waiting = self.unblock(id, links);
                Some(format!(":{}\r\n", u8::from(was_waiting)).into_bytes())
            }
            _ => Some(self.call(&words)),
        };
        if let Some(reply) = reply {
            links.get_mut(&place).expect("it is there").replies.push_back(reply);
        }
        self.feed(links);
        true
    }

    fn execute(&mut self, link: &mut Link) -> Vec<u8> {
        let queue = link.queue.take().expect("a transaction was begun");
        let watched = std::mem::take(&mut link.watched);
        let is_stale =
            |(key, version): &(Vec<u8>, u64)| self.versions.get(key).copied().unwrap_or_default() != *version;
        if watched.iter().any(is_stale) {
            return NULL.to_vec();
        }
        let mut reply = format!("*{}\r\n", queue.len()).into_bytes();
        for words in queue {
            reply.extend(self.call(&words));
        }
        reply
    }

    fn write(&mut self, key: &[u8], held: Option<Held>) -> Option<Held> {
        *self.versions.entry(key.to_vec()).or_default() += 1;
        match held {
            Some(held) => self.keys.insert(key.to_vec(), held),
            None => self.keys.remove(key),
        }
    }

    fn pop(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let Some(Held::List(mut list)) = self.keys.get(key).cloned() else { return None };
        let element = list.pop_front();
        self.write(key, (!list.is_empty()).then_some(Held::List(list)));
        element
    }

    /// One request that answers at once.
    fn call(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let name = words[0].to_ascii_uppercase();
        let text = |held: Option<Held>| match held {
            Some(Held::Text(value)) => bulk(&value),
            Some(Held::List(_)) => b"-WRONGTYPE\r\n".to_vec(),
            None => b"$-1\r\n".to_vec(),
        };
        match &*name {
            b"PING" => b"+PONG\r\n".to_vec(),
            // A script of one command, which is its text.
            b"EVAL" => self.call(&[&words[1..2], &words[3..]].concat()),
            b"SELECT" => OK.to_vec(),
            b"ECHO" => bulk(&words[1]),
            b"GET" => text(self.keys.get(&words[1]).cloned()),
            b"SET" => {
                let before = self.write(&words[1], Some(Held::Text(words[2].clone())));
                if words.len() > 3 { text(before) } else { OK.to_vec() }
            }
            b"INCR" => {
                let count = match self.keys.get(&words[1]) {
                    Some(Held::Text(text)) => String::from_utf8_lossy(text).parse().unwrap_or(0),
                    _ => 0_u64,
                } + 1;
                self.write(&words[1], Some(Held::Text(count.to_string().into_bytes())));
                format!(":{count}\r\n").into_bytes()
            }
            b"RPUSH" | b"LPUSH" => {
                let mut list = match self.keys.get(&words[1]).cloned() {
                    Some(Held::List(list)) => list,
                    _ => VecDeque::new(),
                };
                match &*name {
                    b"RPUSH" => list.push_back(words[2].clone()),
                    _ => list.push_front(words[2].clone()),
                }
                let length = list.len();
                self.write(&words[1], Some(Held::List(list)));
                format!(":{length}\r\n").into_bytes()
            }
            b"BLPOP" => self.pop(&words[1]).map_or_else(|| NULL.to_vec(), |element| pair(&words[1], &element)),
            other => panic!("the node got {}", String::from_utf8_lossy(other)),
        }
    }

    /// Gives elements to those that wait, the first first.
    fn feed(&mut self, links: &mut BTreeMap<u32, Link>) {
        let mut place = 0;
        while place < self.waiting.len() {
            let key = self.waiting[place].key.clone();
            match self.pop(&key) {
                Some(element) => {
                    let waiting = self.waiting.remove(place);
                    wake(links, waiting.link, pair(&key, &element));
                }
                None => place += 1,
            }
        }
    }

    fn unblock(&mut self, id: u64, links: &mut BTreeMap<u32, Link>) -> bool {
        let is_it = |waiting: &Waiting| links.get(&waiting.link).is_some_and(|link| link.id == id);
        let Some(place) = self.waiting.iter().position(is_it) else { return false };
        let waiting = self.waiting.remove(place);
        wake(links, waiting.link, NULL.to_vec());
        true
    }

    /// Those that have waited long enough are told.
    pub(crate) fn pass_time(&mut self, now_us: u64, links: &mut BTreeMap<u32, Link>) {
        let (over, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|w| w.until_us.is_some_and(|until| now_us >= until));
        self.waiting = waiting;
        let over: Vec<Waiting> = over;
        over.into_iter().for_each(|waiting| wake(links, waiting.link, NULL.to_vec()));
    }

    /// A connection has ended. What had come may still be done: the node finds out later.
    pub(crate) fn end(&mut self, place: u32, links: &mut BTreeMap<u32, Link>, is_done: bool, now_us: u64) {
        self.waiting.retain(|waiting| waiting.link != place);
        while is_done && self.serve(place, links, now_us) {
            self.done_late += 1;
        }
        self.waiting.retain(|waiting| waiting.link != place);
        links.remove(&place);
    }
}

fn wake(links: &mut BTreeMap<u32, Link>, place: u32, reply: Vec<u8>) {
    if let Some(link) = links.get_mut(&place) {
        link.waits = false;
        link.replies.push_back(reply);
    }
}
