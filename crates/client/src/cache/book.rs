//! What is cached, what is being fetched, and what the server has said of it since. No clock and no connection: the caller says what
//! happened and when.
//!
//! ```text
//!   request:  [unknown] --begin--> [fetched by one, waited for by others] --reply--> [cached] --until its time--> [unknown]
//!                                         |  its key has changed                        |  its key has changed, room is wanted
//!                                         v                                             v
//!                                    [overtaken] --reply: given, not kept-->        [unknown]
//! ```
//!
//! A fetch has its place before its request is sent. So a change that the server tells of always meets the place or the value,
//! whichever is there, and what was read before a change that is known is never kept. A reader who began before the fetch did may have
//! an overtaken reply, as it may have that of a request of its own. One that began later reads again.

use super::table::Table;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};

/// What an entry costs beside its bytes: its places in the tables, which have up to twice the room that they need, and what the allocator
/// keeps for each of the pieces that its key, request and value are. Counted by `tests/cache_memory.rs`.
const ENTRY_BYTES: usize = 500;

/// What a table costs beside its places: the end of its control bytes, and what the allocator keeps for it.
const TABLE_BYTES: usize = 32;

/// The table of keys is not made smaller than for so many: one that is filled and emptied in turns would be made anew each time.
const KEYS_FEW: usize = 64;

/// A fetch. Numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FetchId(u64);

/// When something began, among all that did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u64);

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<V> {
    /// A value.
    Cached(V),
    /// Another reader has asked for it.
    Awaited(FetchId),
    /// No entry: the caller sends the request.
    Missing(FetchId),
}

/// A fetch that is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    began: Tick,
    is_overtaken: bool,
}

impl Fetched {
    /// Whether a reader that began at `tick` may have the reply.
    pub(crate) fn is_for(&self, tick: Tick) -> bool {
        !self.is_overtaken || self.is_of_before(tick)
    }

    /// Whether a reader that began at `tick` did so before the fetch, as with a request of its own.
    pub(crate) fn is_of_before(&self, tick: Tick) -> bool {
        tick <= self.began
    }
}

#[derive(Debug)]
struct Fetch {
    request: Bytes,
    key: Bytes,
    began: Tick,
    sent_us: u64,
    is_overtaken: bool,
}

#[derive(Debug)]
enum Place<V> {
    Fetched(FetchId),
    Cached { value: V, bytes: usize, until_us: u64, used: u64 },
}

/// The places of the requests that read one key. Most keys are read by one, which needs no table of its own.
#[derive(Debug)]
enum Requests<V> {
    One(Bytes, Place<V>),
    /// Of two requests or more.
    Many(Table<Place<V>>),
}

impl<V> Requests<V> {
    fn get_mut(&mut self, request: &Bytes) -> Option<&mut Place<V>> {
        match self {
            Self::One(one, place) => (one == request).then_some(place),
            Self::Many(many) => many.map.get_mut(request),
        }
    }

    /// Sets the place of a request, with those of the others.
    fn with(self, request: Bytes, place: Place<V>) -> Self {
        let mut many = match self {
            Self::One(one, _) if one == request => return Self::One(one, place),
            Self::One(one, its) => Table { map: HashMap::from([(one, its)]), room: 0 },
            Self::Many(many) => many,
        };
        many.insert(request, place);
        Self::Many(many)
    }

    /// Removes the place of a request, unless it is the only one.
    fn remove_of_many(&mut self, request: &Bytes) -> Option<Place<V>> {
        let Self::Many(many) = self else { return None };
        let place = many.map.remove(request)?;
        if many.map.len() > 1 {
            many.shrink(0);
            return Some(place);
        }
        let last = many.map.drain().next();
        if let Some((request, last)) = last {
            *self = Self::One(request, last);
        }
        Some(place)
    }

    /// What they cost beside [`ENTRY_BYTES`] of each: their table, less the room in the table of keys that is counted with each and that all but
    /// one do not take. It is up to twice a place there.
    fn table_bytes(&self) -> usize {
        let Self::Many(many) = self else { return 0 };
        // A table is seven eighths full at most.
        let slots = (many.room * 8 / 7).next_power_of_two();
        let table = slots * (size_of::<(Bytes, Place<V>)>() + 1) + TABLE_BYTES;
        table.saturating_sub(2 * size_of::<(Bytes, Self)>() * (many.map.len() - 1))
    }

    fn into_places(self) -> impl Iterator<Item = Place<V>> {
        let (one, many) = match self {
            Self::One(_, place) => (Some(place), None),
            Self::Many(many) => (None, Some(many.map.into_values())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    #[cfg(test)]
    fn iter(&self) -> Vec<(&Bytes, &Place<V>)> {
        match self {
            Self::One(request, place) => vec![(request, place)],
            Self::Many(many) => many.map.iter().collect(),
        }
    }
}

/// The entries, their order of use, and the fetches.
#[derive(Debug)]
pub(crate) struct Book<V> {
    bytes_max: usize,
    ttl_us: u64,
    /// By key, then by request: a change of a key is that of all its requests.
    places: Table<Requests<V>>,
    /// Of cached entries, the least recently used first: the key and the request.
    order: BTreeMap<u64, (Bytes, Bytes)>,
    fetches: HashMap<FetchId, Fetch>,
    bytes: usize,
    ticks: u64,
}

impl<V: Clone> Book<V> {
    pub(crate) fn new(bytes_max: usize, ttl_us: u64) -> Self {
        Self {
            bytes_max,
            ttl_us,
            places: Table::default(),
            order: BTreeMap::new(),
            fetches: HashMap::new(),
            bytes: 0,
            ticks: 0,
        }
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// A reader begins.
    pub(crate) fn begin(&mut self) -> Tick {
        Tick(self.tick())
    }

    /// What there is of `request`, which reads `key`.
    pub(crate) fn find(&mut self, key: &Bytes, request: &Bytes, now_us: u64) -> Found<V> {
        let now = self.tick();
        let place = self.places.map.get_mut(key).and_then(|requests| requests.get_mut(request));
        match place {
            Some(Place::Fetched(id)) => return Found::Awaited(*id),
            Some(Place::Cached { value, until_us, used, .. }) if now_us < *until_us => {
                let names = self.order.remove(used).unwrap_or_default();
                *used = now;
                self.order.insert(now, names);
                return Found::Cached(value.clone());
            }
            Some(Place::Cached { .. }) => self.remove(key, request),
            None => {}
        }
        let id = FetchId(now);
        let fetch = Fetch {
            request: request.clone(),
            key: key.clone(),
            began: Tick(now),
            sent_us: now_us,
            is_overtaken: false,
        };
        self.fetches.insert(id, fetch);
        self.put(key.clone(), request.clone(), Place::Fetched(id));
        Found::Missing(id)
    }

    fn put(&mut self, key: Bytes, request: Bytes, place: Place<V>) {
        let requests = match self.places.map.remove(&key) {
            None => Requests::One(request, place),
            Some(requests) => {
                self.bytes -= requests.table_bytes();
                requests.with(request, place)
            }
        };
        self.bytes += requests.table_bytes();
        self.places.insert(key, requests);
    }

    /// Forgets a value or leaves the place of a fetch.
    fn remove(&mut self, key: &Bytes, request: &Bytes) {
        let Some(requests) = self.places.map.get_mut(key) else { return };
        let before = requests.table_bytes();
        let place = match requests {
            Requests::One(one, _) if one == request => {
                let requests = self.places.map.remove(key);
                self.places.shrink(KEYS_FEW);
                requests.and_then(|requests| requests.into_places().next())
            }
            requests => {
                let place = requests.remove_of_many(request);
                self.bytes = self.bytes + requests.table_bytes() - before;
                place
            }
        };
        if let Some(place) = place {
            self.forget(&place);
        }
    }

    /// The request of a fetch is about to be sent: what it reads is of this time or later.
    pub(crate) fn note_sent(&mut self, id: FetchId, now_us: u64) {
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.sent_us = now_us;
        }
    }

    /// A fetch has its reply. `value` is kept if there is one, for `left_us` after it was sent at most: what is left of the time of its
    /// key. `bytes` are those of the value.
    pub(crate) fn end(&mut self, id: FetchId, value: Option<(V, usize)>, left_us: u64, now_us: u64) -> Option<Fetched> {
        let fetch = self.fetches.remove(&id)?;
        let over = Fetched { began: fetch.began, is_overtaken: fetch.is_overtaken };
        if fetch.is_overtaken {
            return Some(over);
        }
        let until_us = fetch.sent_us.saturating_add(self.ttl_us.min(left_us));
        let value = value.filter(|_| now_us < until_us);
        let counted =
            value.map(|(value, bytes)| (value, bytes + fetch.key.len() + 2 * fetch.request.len() + ENTRY_BYTES));
        let Some((value, bytes)) = counted.filter(|(_, bytes)| *bytes <= self.bytes_max) else {
            self.remove(&fetch.key, &fetch.request);
            return Some(over);
        };
        let used = self.tick();
        self.bytes += bytes;
        self.order.insert(used, (fetch.key.clone(), fetch.request.clone()));
        // In place of the fetch.
        self.put(fetch.key, fetch.request, Place::Cached { value, bytes, until_us, used });
        self.make_room();
        Some(over)
    }

    /// The least recently used values make room for what is too much.
    fn make_room(&mut self) {
        while self.bytes > self.bytes_max {
            let Some((_, (key, request))) = self.order.first_key_value() else { break };
            let (key, request) = (key.clone(), request.clone());
            self.remove(&key, &request);
        }
    }

    /// How many bytes the values may have from now on.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn resize(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.make_room();
    }

    /// Of other keys than those that `is_kept` says it is not known whether they have changed.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&[u8]) -> bool) {
        let gone: Vec<Bytes> = self.places.map.keys().filter(|key| !is_kept(key)).cloned().collect();
        for key in gone {
            self.invalidate(&key);
        }
    }

    /// A fetch is not made: its request was not sent, and nothing waits for it.
    pub(crate) fn cancel(&mut self, id: FetchId) {
        if let Some(fetch) = self.fetches.remove(&id)
            && !fetch.is_overtaken
        {
            self.remove(&fetch.key, &fetch.request);
        }
    }

    /// A key has changed. Returns how many values and fetches it was.
    pub(crate) fn invalidate(&mut self, key: &[u8]) -> usize {
        let Some(requests) = self.places.map.remove(key) else { return 0 };
        self.places.shrink(KEYS_FEW);
        self.bytes -= requests.table_bytes();
        let mut count = 0;
        for place in requests.into_places() {
            count += 1;
            if let Place::Fetched(id) = place
                && let Some(fetch) = self.fetches.get_mut(&id)
            {
                fetch.is_overtaken = true;
            }
            self.forget(&place);
        }
        count
    }

    /// What was cached at a place counts no longer.
    fn forget(&mut self, place: &Place<V>) {
        if let Place::Cached { bytes, used, .. } = place {
            self.bytes -= bytes;
            self.order.remove(used);
        }
    }

    /// Forgets all values. Fetches go on.
    pub(crate) fn forget_values(&mut self) {
        while let Some((_, (key, request))) = self.order.first_key_value() {
            let (key, request) = (key.clone(), request.clone());
            self.remove(&key, &request);
        }
    }

    /// All keys may have changed.
    pub(crate) fn invalidate_all(&mut self) {
        self.places = Table::default();
        self.order.clear();
        self.bytes = 0;
        for fetch in self.fetches.values_mut() {
            fetch.is_overtaken = true;
        }
    }

    /// The connection is gone: nothing that was read on it is known any longer, and no fetch has a reply.
    pub(crate) fn lose(&mut self) -> Vec<FetchId> {
        self.invalidate_all();
        let mut lost: Vec<FetchId> = self.fetches.drain().map(|(id, _)| id).collect();
        lost.sort_unstable();
        lost
    }

    /// The key of the value that was used last.
    pub(crate) fn last_used(&self) -> Option<&Bytes> {
        self.order.last_key_value().map(|(_, (key, _))| key)
    }

    /// Values, and the bytes that they count as.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.order.len(), self.bytes)
    }

    /// Fetches that are under way.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.len()
    }

    /// Everything that is counted is what is there.
    #[cfg(test)]
    fn check(&self) {
        let mut cached = 0;
        let mut bytes = 0;
        assert!(self.places.room <= (4 * self.places.map.len()).max(2 * KEYS_FEW));
        for (key, requests) in &self.places.map {
            assert_eq!(requests.iter().len() > 1, matches!(requests, Requests::Many(_)));
            bytes += requests.table_bytes();
            if let Requests::Many(many) = requests {
                assert!(many.map.capacity() <= many.room && many.room <= (4 * many.map.len()).max(3));
            }
            for (request, place) in requests.iter() {
                match place {
                    Place::Fetched(id) => {
                        let fetch = &self.fetches[id];
                        assert!(!fetch.is_overtaken && fetch.key == *key && fetch.request == *request);
                    }
                    Place::Cached { bytes: own, used, .. } => {
                        cached += 1;
                        bytes += own;
                        assert_eq!(self.order[used], (key.clone(), request.clone()));
                    }
                }
            }
        }
        assert_eq!((cached, bytes), (self.order.len(), self.bytes));
        assert!(self.bytes <= self.bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_testkit::Rng;
    use std::collections::VecDeque;

    const SECOND: u64 = 1_000_000;

    fn book() -> Book<u64> {
        Book::new(10_000, 60 * SECOND)
    }

    fn name(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn missing(found: Found<u64>) -> FetchId {
        match found {
            Found::Missing(id) => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_between_request_and_reply_wins() {
        let (mut book, k) = (book(), name("k"));
        let first = book.begin();
        let id = missing(book.find(&k, &k, 0));
        let later = book.begin();
        assert_eq!(book.find(&k, &k, 0), Found::Awaited(id));
        assert_eq!(book.invalidate(b"k"), 1);
        let after = book.begin();
        let next = missing(book.find(&k, &k, 1));
        let over = book.end(id, Some((1, 1)), u64::MAX, 2).unwrap();
        assert_eq!((over.is_for(first), over.is_for(later), over.is_for(after)), (true, false, false));
        assert_eq!(book.find(&k, &k, 3), Found::Awaited(next));
        let over = book.end(next, Some((2, 1)), u64::MAX, 4).unwrap();
        assert!(over.is_for(later) && over.is_for(after));
        assert_eq!(book.find(&k, &k, 5), Found::Cached(2));
        book.check();
    }

    #[test]
    fn a_value_lives_no_longer_than_its_key_and_its_limit() {
        let (mut book, k) = (book(), name("k"));
        let id = missing(book.find(&k, &k, 0));
        book.note_sent(id, 10);
        book.end(id, Some((1, 1)), 100, 50);
        assert_eq!(book.find(&k, &k, 109), Found::Cached(1));
        let id = missing(book.find(&k, &k, 110));
        book.end(id, Some((1, 1)), u64::MAX, 120);
        assert_eq!(book.find(&k, &k, 110 + 60 * SECOND - 1), Found::Cached(1));
        let id = missing(book.find(&k, &k, 110 + 60 * SECOND));
        // Its time was over before it came.
        book.end(id, Some((1, 1)), 5, 200 * SECOND);
        missing(book.find(&k, &k, 200 * SECOND));
        book.check();
    }

    #[test]
    fn the_least_recently_used_makes_room() {
        let mut book = Book::new(3 * (ENTRY_BYTES + 3 + 10), 60 * SECOND);
        for (at, key) in ["a", "b", "c"].into_iter().enumerate() {
            let id = missing(book.find(&name(key), &name(key), 0));
            book.end(id, Some((at as u64, 10)), u64::MAX, 0);
        }
        assert_eq!(book.find(&name("a"), &name("a"), 0), Found::Cached(0));
        let id = missing(book.find(&name("d"), &name("d"), 0));
        book.end(id, Some((3, 10)), u64::MAX, 0);
        missing(book.find(&name("b"), &name("b"), 0));
        assert_eq!(book.find(&name("a"), &name("a"), 0), Found::Cached(0));
        let id = missing(book.find(&name("large"), &name("large"), 0));
        book.end(id, Some((9, 100_000)), u64::MAX, 0);
        assert_eq!(book.size().0, 3, "what is larger than all of it makes none of the others go");
        book.check();
    }

    #[test]
    fn nothing_that_was_read_on_a_lost_connection_is_found() {
        let (mut book, k, l) = (book(), name("k"), name("l"));
        let id = missing(book.find(&k, &k, 0));
        book.end(id, Some((1, 1)), u64::MAX, 0);
        let id = missing(book.find(&l, &l, 0));
        assert_eq!(book.lose(), [id]);
        missing(book.find(&k, &k, 0));
        assert_eq!(book.end(id, Some((1, 1)), u64::MAX, 0), None);
        book.check();
    }

    #[test]
    fn a_fetch_that_is_not_made_leaves_nothing_behind() {
        let (mut book, k) = (book(), name("k"));
        let first = missing(book.find(&k, &k, 0));
        book.invalidate(b"k");
        let second = missing(book.find(&k, &k, 0));
        book.cancel(first);
        assert_eq!(book.find(&k, &k, 0), Found::Awaited(second));
        book.cancel(second);
        assert_eq!((book.fetches(), book.size()), (0, (0, 0)));
        book.check();
    }

    #[test]
    fn keys_that_are_gone_leave_no_room_behind() {
        let mut book = Book::new(10_000 * ENTRY_BYTES, 60 * SECOND);
        let fill = |book: &mut Book<u64>| {
            for number in 0..5_000 {
                let key = name(&number.to_string());
                let id = missing(book.find(&key, &key, 0));
                book.end(id, Some((number, 1)), u64::MAX, 0);
            }
            assert!(book.places.room >= 5_000);
        };
        fill(&mut book);
        for number in 10..5_000 {
            assert_eq!(book.invalidate(number.to_string().as_bytes()), 1);
            if number % 100 == 0 {
                book.check();
            }
        }
        assert!(book.places.room <= 2 * KEYS_FEW, "{}", book.places.room);
        book.forget_values();
        fill(&mut book);
        book.resize(10 * ENTRY_BYTES);
        assert!(book.places.room <= 2 * KEYS_FEW && book.bytes <= 10 * ENTRY_BYTES);
        book.invalidate_all();
        assert_eq!(book.places.room, 0);
    }

    #[test]
    fn what_is_not_retained_is_as_changed() {
        let mut book = book();
        for key in ["a1", "a2", "b1"] {
            let id = missing(book.find(&name(key), &name(key), 0));
            book.end(id, Some((1, 1)), u64::MAX, 0);
        }
        let fetched = missing(book.find(&name("b2"), &name("b2"), 0));
        let later = book.begin();
        book.retain(|key| key.starts_with(b"a"));
        assert!(!book.end(fetched, Some((1, 1)), u64::MAX, 0).unwrap().is_for(later));
        assert_eq!(book.find(&name("a1"), &name("a1"), 0), Found::Cached(1));
        missing(book.find(&name("b1"), &name("b1"), 0));
        missing(book.find(&name("b2"), &name("b2"), 0));
        assert_eq!(book.size().0, 2);
        book.check();
    }

    #[test]
    fn a_key_of_many_requests_counts_the_table_that_it_has() {
        let mut rng = Rng::new(7);
        let mut below = move |limit: usize| (rng.next_u64() % limit as u64) as usize;
        let mut book = Book::new(200 * ENTRY_BYTES, 60 * SECOND);
        let mut shrunk = 0;
        for turn in 0..20_000 {
            // As many requests of one key as there is room for, in turns with one of them and a few of each of many other keys.
            let (key, request) = match (turn % 2_000 < 1_000, below(4)) {
                (true, 1..) => (name("many"), below(1_000)),
                (false, 0) => (name("many"), 0),
                _ => (name(&format!("k{}", below(200))), below(4)),
            };
            let request = name(&format!("{request}"));
            let room = |book: &Book<u64>| match book.places.map.get(&b"many"[..]) {
                Some(Requests::Many(many)) => many.room,
                _ => 0,
            };
            let before = room(&book);
            match (below(1_000), book.find(&key, &request, turn * SECOND / 10)) {
                (0, _) => drop(book.invalidate(&key)),
                (1..100, Found::Missing(id)) => book.cancel(id),
                (_, Found::Missing(id)) => {
                    let value = (below(8) > 0).then_some((turn, below(500)));
                    book.end(id, value, u64::MAX, turn * SECOND / 10);
                }
                _ => {}
            }
            shrunk += usize::from(room(&book) < before && room(&book) > 0);
            book.check();
            assert!(book.bytes <= book.bytes_max);
        }
        assert!(shrunk > 5, "{shrunk}");
        book.forget_values();
        assert_eq!((book.size(), book.places.map.len()), ((0, 0), 0));
    }

    /// What a server sends to the connection of the cache, in order.
    enum Sent {
        Reply(FetchId, u64),
        Change(Option<usize>),
    }

    /// A reader that waits: when it began, and its key.
    struct Reader {
        tick: Tick,
        /// The same as the test counts.
        step: usize,
        key: usize,
        /// The newest version of its key at the server when the reader began.
        version: u64,
        /// The newest version that the cache had been told of when the reader began.
        told: u64,
    }

    /// A fetch, when it began, and the readers that wait for it.
    type Waiting = Vec<(FetchId, usize, Vec<Reader>)>;

    /// A server that counts up, a connection that delays at will and lets word of changes overtake replies, and readers. What a reader has
    /// is never older than a change that the cache had heard of when the reader began. Nor is what the cache gives from its memory, or
    /// by a fetch that was there before the reader, older than a change that it has heard of at all.
    fn play(seed: u64) {
        let mut rng = Rng::new(seed);
        let mut below = move |limit: usize| (rng.next_u64() % limit as u64) as usize;
        let keys: Vec<Bytes> = (0..3).map(|key| name(&format!("key{key}"))).collect();
        let mut book: Book<u64> = Book::new(if below(2) == 0 { 2 * ENTRY_BYTES + 200 } else { 100_000 }, 50);
        let (mut versions, mut told) = ([1_u64; 3], [0_u64; 3]);
        let mut tracked = [false; 3];
        let mut requests: VecDeque<(FetchId, usize)> = VecDeque::new();
        let mut sent: VecDeque<Sent> = VecDeque::new();
        let mut waiting: Waiting = Vec::new();
        // Versions that keys had when a change of theirs was sent: what is older is stale behind it.
        let mut changes: VecDeque<[u64; 3]> = VecDeque::new();
        let is_broadcast = below(2) == 0;
        let mut now_us = 0;
        // Where word of a change is put: behind that of the one before, and in front of replies that were made earlier.
        let place = |sent: &VecDeque<Sent>, below: &mut dyn FnMut(usize) -> usize| {
            let first = sent.iter().rposition(|sent| matches!(sent, Sent::Change(_))).map_or(0, |last| last + 1);
            first + below(sent.len() - first + 1)
        };
        for step in 0..400 {
            now_us += below(10) as u64;
            match below(10) {
                // A reader comes.
                0..=3 => {
                    let key = below(3);
                    let reader = Reader { tick: book.begin(), step, key, version: versions[key], told: told[key] };
                    look(&mut book, &keys, reader, (now_us, step), &told, &mut requests, &mut waiting);
                }
                // The server executes a request.
                4 | 5 => {
                    if let Some((id, key)) = requests.pop_front() {
                        tracked[key] = true;
                        sent.push_back(Sent::Reply(id, versions[key]));
                    }
                }
                // A key changes.
                6 => {
                    let key = below(3);
                    versions[key] += 1;
                    if tracked[key] || is_broadcast {
                        tracked[key] = false;
                        changes.push_back(versions);
                        sent.insert(place(&sent, &mut below), Sent::Change(Some(key)));
                    }
                }
                7 if below(10) == 0 => {
                    versions.iter_mut().for_each(|version| *version += 1);
                    tracked = [false; 3];
                    changes.push_back(versions);
                    sent.insert(place(&sent, &mut below), Sent::Change(None));
                }
                // The connection is lost with all that is on its way.
                8 if below(10) == 0 => {
                    (requests, sent, tracked) = (VecDeque::new(), VecDeque::new(), [false; 3]);
                    changes.clear();
                    let lost = book.lose();
                    assert_eq!(book.size(), (0, 0));
                    let again = std::mem::take(&mut waiting);
                    assert!(again.iter().all(|(id, ..)| lost.contains(id)));
                    for reader in again.into_iter().flat_map(|(.., readers)| readers) {
                        look(&mut book, &keys, reader, (now_us, step), &told, &mut requests, &mut waiting);
                    }
                }
                // The client reads.
                _ => match sent.pop_front() {
                    Some(Sent::Change(key)) => {
                        let at = changes.pop_front().unwrap();
                        match key {
                            Some(key) => {
                                told[key] = told[key].max(at[key]);
                                book.invalidate(&keys[key]);
                            }
                            None => {
                                told = at;
                                book.invalidate_all();
                            }
                        }
                    }
                    Some(Sent::Reply(id, version)) => {
                        let left_us = if below(4) == 0 { below(40) as u64 } else { u64::MAX };
                        let value = (below(8) > 0).then_some((version, 50));
                        let over = book.end(id, value, left_us, now_us).unwrap();
                        let place = waiting.iter().position(|(waited, ..)| *waited == id).unwrap();
                        let (_, began, readers) = waiting.remove(place);
                        for reader in readers {
                            if over.is_for(reader.tick) {
                                assert!(version >= reader.told, "{seed}: older than what was known");
                                let is_of_before = reader.step <= began;
                                assert!(is_of_before || version >= told[reader.key], "{seed}: overtaken");
                            } else {
                                look(&mut book, &keys, reader, (now_us, step), &told, &mut requests, &mut waiting);
                            }
                        }
                    }
                    None => {}
                },
            }
            book.check();
        }
        // Nothing waits for ever.
        while !waiting.is_empty() {
            while let Some((id, key)) = requests.pop_front() {
                sent.push_back(Sent::Reply(id, versions[key]));
            }
            while let Some(next) = sent.pop_front() {
                match next {
                    Sent::Change(Some(key)) => drop(book.invalidate(&keys[key])),
                    Sent::Change(None) => book.invalidate_all(),
                    Sent::Reply(id, version) => {
                        let over = book.end(id, Some((version, 50)), u64::MAX, now_us).unwrap();
                        let place = waiting.iter().position(|(waited, ..)| *waited == id).unwrap();
                        for reader in waiting.remove(place).2 {
                            if !over.is_for(reader.tick) {
                                look(&mut book, &keys, reader, (now_us, 400), &[0; 3], &mut requests, &mut waiting);
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(book.fetches(), 0);
    }

    fn look(
        book: &mut Book<u64>,
        keys: &[Bytes],
        reader: Reader,
        (now_us, step): (u64, usize),
        told: &[u64; 3],
        requests: &mut VecDeque<(FetchId, usize)>,
        waiting: &mut Waiting,
    ) {
        let key = reader.key;
        match book.find(&keys[key], &keys[key], now_us) {
            Found::Cached(version) => {
                assert!(version >= told[key], "older than a change that was heard of");
                assert!(version >= reader.told && reader.version > 0);
            }
            Found::Awaited(id) => {
                let place = waiting.iter_mut().find(|(waited, ..)| *waited == id).unwrap();
                place.2.push(reader);
            }
            Found::Missing(id) => {
                book.note_sent(id, now_us);
                requests.push_back((id, key));
                waiting.push((id, step, vec![reader]));
            }
        }
    }

    #[test]
    fn no_order_of_events_gives_a_value_older_than_a_known_change() {
        for seed in 0..2_000 {
            play(seed);
        }
    }
}
