//! Blocked requests: which keys each waits for, and in which order they are served.
//!
//! ```text
//!   parked --> waits for its keys --> a key becomes ready --> its requests are tried in order --> served, and forgotten
//!                                        (once in the queue)          '--> nothing for it: it goes on waiting
//! ```
//!
//! As in Redis, a key becomes ready when a list, sorted set or stream comes into being at it, with every entry added to a stream, and
//! when a stream or a group ends, which ends the requests that read it for a group. Nothing is served here: the engine does
//! that between requests, in the order in which keys became ready, and for each key first come, first served.
//!
//! A request waits for one type. Requests that wait for another type at the same key keep their order among themselves; Redis
//! moves those to the end of the key's queue that it finds before one it serves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use respool_command::{
    Command, KeyPositions, ListCommand as L, Row, SortedSetCommand as Z, StreamCommand as S, WaitId,
};
use respool_wire::{Args, ArgsBuf, Protocol};

use super::key::Kind;
use crate::number::integer;

/// The place of the group's name in a parked `XREADGROUP`.
const GROUP_AT: usize = 2;

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    List,
    SortedSet,
    /// Entries of a stream.
    Stream,
    /// Entries of a stream that its group has not delivered. Ends with the stream or the group.
    Group,
}

impl Awaited {
    fn of(row: &Row) -> Self {
        match row.command {
            Command::SortedSet(_) => Self::SortedSet,
            Command::Stream(S::Xreadgroup) => Self::Group,
            Command::Stream(_) => Self::Stream,
            _ => Self::List,
        }
    }

    /// What may be served while a key holds this.
    fn served_by(kind: Option<Kind>) -> &'static [Self] {
        match kind {
            Some(Kind::List) => &[Self::List],
            Some(Kind::SortedSet) => &[Self::SortedSet],
            Some(Kind::Stream) => &[Self::Stream, Self::Group],
            _ => &[],
        }
    }
}

/// A parked request.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) row: &'static Row,
    /// With ids in the place of `$`.
    pub(crate) args: ArgsBuf,
    pub(crate) database: u32,
    pub(crate) client_id: u64,
    pub(crate) protocol: Protocol,
    /// Its client has said CLIENT NO-TOUCH: its keys count no use, also when another client makes it ready.
    pub(crate) spares_uses: bool,
}

impl Blocked {
    /// The group that it reads for.
    fn group(&self) -> Option<&[u8]> {
        if Awaited::of(self.row) == Awaited::Group { self.args.as_args().get(GROUP_AT) } else { None }
    }

    /// The keys that it waits for. Where `BLMOVE` puts the element is none of them.
    fn keys(&self) -> Vec<Arc<[u8]>> {
        let mut positions = KeyPositions::default();
        if self.row.keys.positions(self.args.as_args(), &mut positions).is_err() {
            return Vec::new();
        }
        let is_move = matches!(self.row.command, Command::List(L::Blmove | L::Brpoplpush));
        let keys = positions.iter().filter_map(|key| self.args.as_args().get(key.index as usize));
        keys.take(if is_move { 1 } else { usize::MAX }).map(Arc::from).collect()
    }

    /// The request for one of its keys alone. As in Redis, the others have no part in serving it: not an earlier key that holds
    /// another type by now.
    pub(crate) fn for_key(&self, key: &[u8]) -> ArgsBuf {
        let (row, args) = (self.row, self.args.as_args());
        match row.command {
            Command::List(L::Blpop | L::Brpop) | Command::SortedSet(Z::Bzpopmin | Z::Bzpopmax) => {
                [args.at(0), key, args.at(args.len() - 1)].into_iter().collect()
            }
            Command::List(L::Blmpop) | Command::SortedSet(Z::Bzmpop) => {
                let keys = args.get(2).and_then(integer::parse).and_then(|keys| usize::try_from(keys).ok());
                let rest = keys.map_or(args.len(), |keys| keys.saturating_add(3));
                [args.at(0), args.at(1), b"1", key].into_iter().chain(args.from(rest).iter()).collect()
            }
            Command::Stream(_) => {
                // If a key is named twice, the first id counts.
                let Some((keys_at, keys)) = streams_of(row, args) else { return args.iter().collect() };
                let place = (0..keys).find(|number| args.get(keys_at + number) == Some(key)).unwrap_or(0);
                args.first(keys_at).iter().chain([key, args.at(keys_at + keys + place)]).collect()
            }
            _ => args.iter().collect(),
        }
    }
}

/// The place of the first stream name in `XREAD` or `XREADGROUP`, and the number of names. As many ids follow.
fn streams_of(row: &Row, args: Args<'_>) -> Option<(usize, usize)> {
    let mut positions = KeyPositions::default();
    row.keys.positions(args, &mut positions).ok()?;
    let first = positions.iter().next()?.index as usize;
    Some((first, args.len().checked_sub(first)? / 2))
}

/// The requests that wait for one key of a database.
#[derive(Debug, Default)]
struct Waiting {
    /// By [`Awaited`], in the order in which they came.
    queues: [BTreeSet<WaitId>; 4],
    /// The key is in the queue of those that are ready.
    is_ready: bool,
}

/// The key that is being served.
#[derive(Debug)]
struct Serving {
    database: usize,
    key: Arc<[u8]>,
    /// By [`Awaited`], the last request that was tried.
    tried: [Option<WaitId>; 4],
    /// Groups of which one request has got nothing: there is nothing for the others.
    spent: BTreeSet<Vec<u8>>,
}

/// A parked request, and the keys under which it is listed.
#[derive(Debug)]
struct Parked {
    blocked: Blocked,
    keys: Vec<Arc<[u8]>>,
}

/// All parked requests.
#[derive(Debug, Default)]
pub(crate) struct BlockedRequests {
    requests: BTreeMap<WaitId, Parked>,
    /// By database.
    waiting: BTreeMap<usize, BTreeMap<Arc<[u8]>, Waiting>>,
    /// Keys that have become ready, in that order.
    ready: VecDeque<(usize, Arc<[u8]>)>,
    serving: Option<Serving>,
    parked: u64,
}

impl BlockedRequests {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many keys are waited for.
    pub(crate) fn keys(&self) -> usize {
        self.waiting.values().map(BTreeMap::len).sum()
    }

    /// A request waits from now on.
    pub(crate) fn park(&mut self, blocked: Blocked) -> WaitId {
        self.parked += 1;
        let wait = WaitId(self.parked);
        let of_database = self.waiting.entry(blocked.database as usize).or_default();
        let mut keys = blocked.keys();
        for key in &mut keys {
            // Requests that wait for the same key share its name.
            if let Some((known, _)) = of_database.get_key_value(&**key) {
                *key = Arc::clone(known);
            }
            let waiting = of_database.entry(Arc::clone(key)).or_default();
            waiting.queues[Awaited::of(blocked.row) as usize].insert(wait);
        }
        self.requests.insert(wait, Parked { blocked, keys });
        wait
    }

    /// A request waits no longer.
    pub(crate) fn forget(&mut self, wait: WaitId) {
        let Some(Parked { blocked, keys }) = self.requests.remove(&wait) else { return };
        let database = blocked.database as usize;
        let Some(of_database) = self.waiting.get_mut(&database) else { return };
        for key in keys {
            let Some(waiting) = of_database.get_mut(&key) else { continue };
            waiting.queues[Awaited::of(blocked.row) as usize].remove(&wait);
            if waiting.queues.iter().all(BTreeSet::is_empty) {
                of_database.remove(&key);
            }
        }
        if of_database.is_empty() {
            self.waiting.remove(&database);
        }
    }

    /// A key has become ready for requests that wait for something of this kind.
    pub(super) fn signal(&mut self, database: usize, key: &[u8], kind: Kind) {
        let Some(of_database) = self.waiting.get_mut(&database) else { return };
        let Some((key, _)) = of_database.get_key_value(key) else { return };
        let key = Arc::clone(key);
        let Some(waiting) = of_database.get_mut(&key) else { return };
        let is_awaited = |awaited: &Awaited| !waiting.queues[*awaited as usize].is_empty();
        if !waiting.is_ready && Awaited::served_by(Some(kind)).iter().any(is_awaited) {
            waiting.is_ready = true;
            self.ready.push_back((database, key));
        }
    }

    /// The keys of a database that are waited for.
    pub(super) fn keys_of(&self, database: usize) -> Vec<Arc<[u8]>> {
        self.waiting.get(&database).map_or_else(Vec::new, |keys| keys.keys().cloned().collect())
    }

    /// The key that is being served, or the next that is ready.
    pub(crate) fn ready_key(&mut self) -> Option<(usize, Arc<[u8]>)> {
        if self.serving.is_none() {
            let (database, key) = self.ready.pop_front()?;
            if let Some(waiting) = self.waiting.get_mut(&database).and_then(|keys| keys.get_mut(&key)) {
                // What serves its requests may make it ready again.
                waiting.is_ready = false;
            }
            self.serving = Some(Serving { database, key, tried: [None; 4], spent: BTreeSet::new() });
        }
        self.serving.as_ref().map(|serving| (serving.database, Arc::clone(&serving.key)))
    }

    /// The next request to try for the key that is being served, which holds this. `None`: the key is done.
    pub(crate) fn next(&mut self, kind: Option<Kind>) -> Option<(WaitId, &Blocked)> {
        let Self { requests, waiting, serving, .. } = self;
        let Serving { database, key, tried, spent } = serving.as_mut()?;
        let wait = loop {
            let found = waiting.get(database).and_then(|keys| keys.get(key)).and_then(|waiting| {
                let behind = |awaited: &Awaited| {
                    let (queue, last) = (&waiting.queues[*awaited as usize], tried[*awaited as usize]);
                    let wait = queue.range(WaitId(last.map_or(0, |last| last.0 + 1))..).next();
                    wait.map(|wait| (*wait, *awaited))
                };
                // What reads for a group is told that there is none, behind those that get what there is instead.
                let served = Awaited::served_by(kind).iter().filter_map(behind).min_by_key(|(wait, _)| *wait);
                served.or_else(|| behind(&Awaited::Group))
            });
            let Some((wait, awaited)) = found else { break None };
            tried[awaited as usize] = Some(wait);
            let group = requests.get(&wait).and_then(|parked| parked.blocked.group());
            if group.is_none_or(|group| kind != Some(Kind::Stream) || !spent.contains(group)) {
                break Some(wait);
            }
        };
        let found = wait.and_then(|wait| Some((wait, &requests.get(&wait)?.blocked)));
        if found.is_none() {
            self.serving = None;
        }
        found
    }

    /// A request was tried, and there is nothing for it.
    pub(crate) fn leave_waiting(&mut self, wait: WaitId) {
        let group = self.requests.get(&wait).and_then(|parked| parked.blocked.group());
        if let (Some(serving), Some(group)) = (&mut self.serving, group) {
            serving.spent.insert(group.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Script;
    use respool_command::{Execute, resolve};

    fn blocked(line: &str) -> Blocked {
        let args: ArgsBuf = line.split(' ').collect();
        let row = resolve(args.as_args()).expect("it exists");
        Blocked { row, args, database: 0, client_id: 1, protocol: Protocol::Resp2, spares_uses: false }
    }

    #[test]
    fn a_request_is_tried_for_one_of_its_keys() {
        for (line, key, expected) in [
            ("BLPOP a b 0", "b", "BLPOP b 0"),
            ("BZPOPMAX a b 1.5", "a", "BZPOPMAX a 1.5"),
            ("BLMPOP 0 2 a b LEFT COUNT 3", "b", "BLMPOP 0 1 b LEFT COUNT 3"),
            ("BZMPOP 0 1 a MIN", "a", "BZMPOP 0 1 a MIN"),
            ("BLMOVE a b LEFT RIGHT 0", "a", "BLMOVE a b LEFT RIGHT 0"),
            ("XREAD COUNT 5 BLOCK 0 STREAMS a b a 1-1 2-1 3-1", "a", "XREAD COUNT 5 BLOCK 0 STREAMS a 1-1"),
            ("XREADGROUP GROUP g c BLOCK 0 STREAMS a b > >", "b", "XREADGROUP GROUP g c BLOCK 0 STREAMS b >"),
        ] {
            let words = blocked(line).for_key(key.as_bytes());
            let words: Vec<_> = words.as_args().iter().map(String::from_utf8_lossy).collect();
            assert_eq!(words.join(" "), expected, "{line}");
        }
        let keys = |line| blocked(line).keys().iter().map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>();
        assert_eq!(keys("BLMOVE a b LEFT RIGHT 0"), ["a"]);
        assert_eq!(keys("BLPOP a b a 0"), ["a", "b", "a"]);
    }

    #[test]
    fn of_a_crowd_of_one_group_one_in_vain_is_tried() {
        let mut requests = BlockedRequests::default();
        for number in 0..5_000 {
            let group = if number % 2 == 0 { "g" } else { "h" };
            requests.park(blocked(&format!("XREADGROUP GROUP {group} c BLOCK 0 STREAMS s >")));
        }
        requests.signal(0, b"s", Kind::Stream);
        requests.signal(0, b"s", Kind::Stream);
        assert!(requests.ready_key().is_some());
        let mut tried = Vec::new();
        while let Some((wait, _)) = requests.next(Some(Kind::Stream)) {
            tried.push(wait.0);
            requests.leave_waiting(wait);
        }
        assert_eq!(tried, [1, 2]);
        assert_eq!(requests.ready_key(), None, "a key is in the queue once");
        requests.signal(0, b"s", Kind::List);
        assert_eq!(requests.ready_key(), None, "no request waits for a list");
    }

    #[test]
    fn each_type_is_served_in_the_order_of_arrival() {
        let mut script = Script::new();
        for line in ["BZPOPMIN k 0", "BLPOP k 0", "BZPOPMIN k 0", "BRPOP k 0", "BLPOP other k 0"] {
            assert_eq!(script.say(line), "", "{line}");
        }
        script.say("RPUSH k a b");
        assert_eq!(script.served(), Some((2, "*2 $1 k $1 a".to_owned())));
        assert_eq!(script.served(), Some((4, "*2 $1 k $1 b".to_owned())));
        assert_eq!(script.served(), None);
        script.say("ZADD k 1 x 2 y");
        assert_eq!(script.served(), Some((1, "*3 $1 k $1 x $1 1".to_owned())));
        assert_eq!(script.served(), Some((3, "*3 $1 k $1 y $1 2".to_owned())));
        script.say("RPUSH k c");
        assert_eq!(script.served(), Some((5, "*2 $1 k $1 c".to_owned())));
        assert_eq!((script.served(), script.engine.awaited_keys()), (None, 0));
    }

    #[test]
    fn a_stream_that_expires_ends_its_group_readers() {
        let mut script = Script::new();
        for key in ["s", "t"] {
            script.say(&format!("XGROUP CREATE {key} g $ MKSTREAM"));
            assert_eq!(script.say(&format!("XREADGROUP GROUP g c BLOCK 0 STREAMS {key} >")), "");
            script.say(&format!("PEXPIRE {key} 100"));
        }
        assert_eq!(script.say("XREAD BLOCK 0 STREAMS s $"), "");
        script.session.now.0 += 101;
        assert_eq!(script.served(), None, "the keys have not been met");
        script.say("GET t");
        let gone = "-UNBLOCKED the stream key no longer exists".to_owned();
        assert_eq!(script.served(), Some((2, gone.clone())));
        script.engine.tick(script.session.now);
        assert_eq!((script.served(), script.served()), (Some((1, gone)), None));
        script.say("XADD s 1-1 f v");
        assert_eq!(script.served().map(|(wait, _)| wait), Some(3));
    }

    #[test]
    fn what_is_cancelled_leaves_nothing() {
        let mut script = Script::new();
        assert_eq!(script.say("BLPOP a b a 0"), "");
        assert_eq!(script.say("BLPOP b 0"), "");
        script.say("RPUSH a x");
        script.engine.cancel(WaitId(1));
        assert_eq!((script.served(), script.engine.awaited_keys()), (None, 1));
        script.engine.cancel(WaitId(1));
        script.say("RENAME a b");
        assert_eq!(script.served(), Some((2, "*2 $1 b $1 x".to_owned())));
        assert_eq!(script.engine.awaited_keys(), 0);
        assert_eq!(script.say("EXISTS a b"), ":0");
    }
}
