//! Clients: what they ask, in pipelines, and what each reply says about it.
//!
//! A client has keys of its own in each shard: `x` is who wrote it and when, `n` counts, `log` has all that was appended. It knows what they
//! are until a request is in doubt, or a fault may have cost some of them; then it takes others. Queues and registers are shared.

use super::books::{Asked, Books, Fate, RANGE_END, elements, fates_of, judge};
use super::settings::{LARGE, SHARDS};
use respool_route::cluster::slot_of;
use respool_sim::Harm;
use respool_testkit::Rng;
use respool_wire::{ReplyLimits, ReplyScanner, Scan, Value, encode_request};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A reply without a fault comes within this and so many trips: a connection is dialled, greeted and tried first, and others are ahead.
const PROMPT_US: u64 = 60_000;
const TRIPS: u64 = 20;
/// Requests of a pipeline that are under way.
const DEPTH_MAX: usize = 20;

const SCRIPT: &str = "redis.call('rpush', KEYS[1], ARGV[1]) return {ARGV[1], redis.call('incr', KEYS[2])}";

/// The shard of a slot.
pub(super) fn shard_of(slot: u16) -> usize {
    ((2 * usize::from(slot) + 1) * SHARDS - 1) / 32_768
}

/// What all clients share: by shard, the hash tags of the queue and of the register.
pub(super) struct Commons {
    pub(super) queues: Vec<String>,
    registers: Vec<String>,
    /// What was pushed, by database and shard.
    pub(super) pushed: BTreeMap<(u32, usize), Vec<u64>>,
    /// What was appended, by database and hash tag.
    pub(super) logs: BTreeMap<(u32, String), Vec<u64>>,
    /// A node has been given the script by way of this process.
    is_script_known: bool,
    sha: String,
}

impl Commons {
    pub(super) fn new() -> Self {
        use sha1::Digest;
        let sha = sha1::Sha1::digest(SCRIPT).iter().map(|byte| format!("{byte:02x}")).collect();
        let tags = |kind: &str| (0..SHARDS).map(|shard| fresh_tag(kind, shard)).collect();
        Self {
            queues: tags("q"),
            registers: tags("w"),
            pushed: BTreeMap::new(),
            logs: BTreeMap::new(),
            is_script_known: false,
            sha,
        }
    }
}

/// A hash tag in a shard, whose name begins so.
fn fresh_tag(kind: &str, shard: usize) -> String {
    let tags = (0..).map(|number| format!("{{{kind}-{number}}}"));
    tags.into_iter().find(|tag| shard_of(slot_of(tag.as_bytes())) == shard).expect("numbers do not end")
}

/// Keys of one hash tag, and what they are.
struct Keys {
    tag: String,
    value: Option<u64>,
    count: i64,
    log: Vec<u64>,
    is_spoilt: bool,
}

impl Keys {
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.tag)
    }

    fn slot(&self) -> u16 {
        slot_of(self.tag.as_bytes())
    }
}

/// What a reply is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Ping(u64),
    Greet,
    Select,
    Set,
    Get,
    Count,
    Append,
    List,
    WritePair,
    ReadPair,
    /// MULTI and what is queued behind it.
    Step,
    Exec,
    Script,
    Watch,
    /// What is read under a watch, to be written over.
    Look,
    Unwatch,
    /// The end of a transaction that was to write over this.
    Swap(Option<u64>),
    Enqueue,
    Take,
}

impl Deed {
    /// Something is asked of the node first.
    fn is_prepared(self) -> bool {
        matches!(self, Self::Exec | Self::Swap(_) | Self::Select)
    }

    /// Whether an error of this kind is about such a request at all.
    fn may_hear(self, words: &str) -> bool {
        match words {
            "-UNBLOCKED " => self == Self::Take,
            "-NOSCRIPT " => self == Self::Script,
            "-EXECABORT " | "the transaction was not executed" => matches!(self, Self::Exec | Self::Swap(_)),
            _ => true,
        }
    }

    fn class(self) -> Option<&'static str> {
        Some(match self {
            Self::Ping(_) => "PING",
            Self::Greet | Self::Select | Self::Step | Self::Watch | Self::Unwatch => return None,
            Self::Set => "SET",
            Self::Get | Self::Look => "GETRANGE",
            Self::Count => "INCR",
            Self::Append | Self::Enqueue => "RPUSH",
            Self::List => "LRANGE",
            Self::WritePair => "MSET",
            Self::ReadPair => "MGET",
            Self::Exec => "EXEC",
            Self::Script => "EVAL",
            Self::Swap(_) => "WATCH",
            Self::Take => "BLPOP",
        })
    }
}

/// A request under way.
#[derive(Debug)]
struct Pending {
    deed: Deed,
    number: Option<u64>,
    at_us: u64,
    /// Its own keys that it is about, by their places.
    keys: Vec<usize>,
    /// The hash tags that it is about, and their slots.
    tags: BTreeSet<String>,
    slots: BTreeSet<u16>,
    /// With those of requests before it, whose replies come first, and when the first of them was asked.
    ahead_us: u64,
    tags_ahead: BTreeSet<String>,
    slots_ahead: BTreeSet<u16>,
    /// For how long it may wait at its node.
    waits_us: u64,
}

/// Where the transaction of a client is that watches a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Swap {
    shard: usize,
    is_watching: bool,
    /// When it was asked to be watched.
    since_us: u64,
}

pub(super) struct Client {
    pub(super) number: usize,
    pub(super) seat: usize,
    pub(super) next_us: u64,
    database: u32,
    is_resp3: bool,
    keys: Vec<Keys>,
    current: [usize; SHARDS],
    pending: VecDeque<Pending>,
    swap: Option<Swap>,
    received: Vec<u8>,
    /// When it was last answered.
    heard_us: u64,
    /// Its database could not be selected.
    pub(super) is_stranded: bool,
    out: Vec<u8>,
}

/// What a client needs to ask and to judge.
pub(super) struct Scene<'a> {
    pub(super) books: &'a mut Books,
    pub(super) commons: &'a mut Commons,
    pub(super) rng: &'a mut Rng,
    pub(super) now_us: u64,
    /// The longest time of a message to a node.
    pub(super) link_us: u64,
    /// The number of the settings that hold for the client.
    pub(super) epoch: usize,
}

impl Client {
    pub(super) fn new(number: usize, seat: usize, is_cluster: bool, scene: &mut Scene<'_>) -> Self {
        let mut this = Self {
            number,
            seat,
            next_us: scene.now_us,
            database: if is_cluster { 0 } else { scene.rng.below(2) as u32 },
            is_resp3: scene.rng.once_in(2),
            keys: Vec::new(),
            current: [0; SHARDS],
            pending: VecDeque::new(),
            swap: None,
            received: Vec::new(),
            heard_us: 0,
            is_stranded: false,
            out: Vec::new(),
        };
        (0..SHARDS).for_each(|shard| this.renew(shard));
        if this.is_resp3 {
            this.say(&["HELLO", "3"]);
            this.expect(Deed::Greet, None, &[], scene.now_us);
        }
        if this.database > 0 {
            this.say(&["SELECT", &this.database.to_string()]);
            // Any node may be asked whether it has the database.
            let any: Vec<String> = scene.commons.queues.clone();
            this.expect(Deed::Select, None, &any, scene.now_us);
        }
        this
    }

    /// Other keys of a shard from now on.
    fn renew(&mut self, shard: usize) {
        let tag = fresh_tag(&format!("c{}-{}", self.number, self.keys.len()), shard);
        self.current[shard] = self.keys.len();
        self.keys.push(Keys { tag, value: None, count: 0, log: Vec::new(), is_spoilt: false });
    }

    fn spoil(&mut self, place: usize) {
        self.keys[place].is_spoilt = true;
        if let Some(shard) = self.current.iter().position(|current| *current == place) {
            self.renew(shard);
        }
    }

    /// Writes to these slots may be lost.
    pub(super) fn note_lost(&mut self, slots: &BTreeSet<u16>) {
        for shard in 0..SHARDS {
            let place = self.current[shard];
            if slots.contains(&self.keys[place].slot()) {
                self.spoil(place);
            }
        }
        self.keys.iter_mut().for_each(|keys| keys.is_spoilt |= slots.contains(&keys.slot()));
    }

    /// The slots of its keys.
    pub(super) fn slots(&self) -> Vec<u16> {
        self.current.iter().map(|place| self.keys[*place].slot()).collect()
    }

    fn say(&mut self, words: &[&str]) {
        encode_request(&mut self.out, words.iter().map(|word| word.as_bytes()));
    }

    /// A request about keys of its own.
    fn expect_own(&mut self, deed: Deed, number: Option<u64>, keys: &[usize], at_us: u64) {
        let tags: Vec<String> = keys.iter().map(|place| self.keys[*place].tag.clone()).collect();
        self.expect(deed, number, &tags, at_us);
        if let Some(pending) = self.pending.back_mut() {
            pending.keys = keys.to_vec();
        }
    }

    fn expect(&mut self, deed: Deed, number: Option<u64>, tags: &[String], at_us: u64) {
        let slots: BTreeSet<u16> = tags.iter().map(|tag| slot_of(tag.as_bytes())).collect();
        let tags: BTreeSet<String> = tags.iter().cloned().collect();
        let (mut slots_ahead, mut tags_ahead) = (slots.clone(), tags.clone());
        for before in &self.pending {
            slots_ahead.extend(&before.slots);
            tags_ahead.extend(before.tags.iter().cloned());
        }
        let ahead_us = self.pending.front().map_or(at_us, |first| first.at_us);
        let keys = Vec::new();
        self.pending.push_back(Pending {
            ahead_us,
            deed,
            number,
            at_us,
            keys,
            tags,
            slots,
            tags_ahead,
            slots_ahead,
            waits_us: 0,
        });
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.pending.iter().any(|pending| pending.deed == Deed::Take)
    }

    /// For how long the oldest request has been the next one without a reply, beyond the time that it may wait at its node. Requests that
    /// go over different connections wait for each other, and each has its deadline.
    pub(super) fn waited_us(&self, now_us: u64) -> u64 {
        self.pending.front().map_or(0, |first| now_us.saturating_sub(first.at_us.max(self.heard_us) + first.waits_us))
    }

    pub(super) fn first_pending(&self) -> String {
        format!("client {} at {}: {:?}", self.number, self.seat, self.pending.front())
    }

    /// Makes up to seven requests if the client waits for nothing else. Returns their bytes.
    pub(super) fn ask(&mut self, scene: &mut Scene<'_>) -> Vec<u8> {
        let is_free = self.swap.is_none() && !self.is_waiting() && self.pending.len() < DEPTH_MAX;
        if is_free {
            for _ in 0..1 + scene.rng.below(7) {
                self.ask_one(scene);
            }
            match scene.rng.below(16) {
                0 => self.take(scene),
                1 => self.begin_swap(scene),
                _ => {}
            }
        }
        self.next_us = scene.now_us + 1 + scene.rng.below(80_000) as u64;
        std::mem::take(&mut self.out)
    }

    /// It asks for nothing more.
    pub(super) fn rest(&mut self, now_us: u64) -> Vec<u8> {
        self.next_us = now_us + 100_000;
        Vec::new()
    }

    /// A number for a request whose parts are these, each of a shard.
    fn number(&self, scene: &mut Scene<'_>, parts: &[(usize, &[&str])], may_move: bool) -> u64 {
        let mut by_shard: BTreeMap<usize, Vec<Vec<String>>> = BTreeMap::new();
        for (shard, words) in parts {
            by_shard.entry(*shard).or_default().push(words.iter().map(|word| (*word).to_owned()).collect());
        }
        scene.books.number(Asked {
            seat: self.seat,
            at_us: scene.now_us,
            epoch: scene.epoch,
            database: self.database,
            parts: by_shard,
            fates: BTreeMap::new(),
            is_lost: false,
            may_move,
        })
    }

    /// A request of one shard, as it is sent.
    fn ask_of(&mut self, deed: Deed, shard: usize, words: &[&str], scene: &mut Scene<'_>) -> u64 {
        let place = self.current[shard];
        let number = self.number(scene, &[(shard, words)], false);
        self.say(words);
        self.expect_own(deed, Some(number), &[place], scene.now_us);
        number
    }

    fn ask_one(&mut self, scene: &mut Scene<'_>) {
        let shard = scene.rng.below(SHARDS);
        let place = self.current[shard];
        let keys = &self.keys[place];
        let (x, n, log) = (keys.key("x"), keys.key("n"), keys.key("log"));
        let value = format!("t{};", scene.books.next_number());
        // Some values come in several parts, on a connection of the client's own.
        let padding = if scene.rng.once_in(6) { scene.rng.between(LARGE, 6 * LARGE) } else { 0 };
        let long = format!("{value}{}", "x".repeat(padding));
        let end = (RANGE_END + scene.books.next_number()).to_string();
        let logged = |this: &Self| (this.database, this.keys[place].tag.clone());
        match scene.rng.below(12) {
            0 => _ = self.ask_of(Deed::Set, shard, &["SET", &x, &long], scene),
            1 | 2 => _ = self.ask_of(Deed::Get, shard, &["GETRANGE", &x, "0", &end], scene),
            3 => {
                self.say(&["INCR", &n]);
                self.expect_own(Deed::Count, None, &[place], scene.now_us);
            }
            4 => {
                let number = self.ask_of(Deed::Append, shard, &["RPUSH", &log, &long], scene);
                scene.commons.logs.entry(logged(self)).or_default().push(number);
            }
            5 => _ = self.ask_of(Deed::List, shard, &["LRANGE", &log, "0", &end], scene),
            6 | 7 => self.ask_pair(shard, (shard + 1) % SHARDS, scene),
            8 => {
                let parts: [(usize, &[&str]); 2] = [(shard, &["SET", &x, &value]), (shard, &["RPUSH", &log, &value])];
                let number = self.number(scene, &parts, true);
                scene.commons.logs.entry(logged(self)).or_default().push(number);
                for words in [&["MULTI"][..], parts[0].1, parts[1].1, &["INCR", &n]] {
                    self.say(words);
                    self.expect_own(Deed::Step, None, &[place], scene.now_us);
                }
                self.say(&["EXEC"]);
                self.expect_own(Deed::Exec, Some(number), &[place], scene.now_us);
            }
            9 => {
                let sha = scene.commons.sha.clone();
                let is_by_hash = scene.commons.is_script_known && scene.rng.once_in(2);
                let (verb, script) = if is_by_hash { ("EVALSHA", sha.as_str()) } else { ("EVAL", SCRIPT) };
                let number = self.ask_of(Deed::Script, shard, &[verb, script, "2", &log, &n, &value], scene);
                scene.commons.logs.entry(logged(self)).or_default().push(number);
            }
            10 => {
                let queue = format!("{}q", scene.commons.queues[shard]);
                let number = self.number(scene, &[(shard, &["RPUSH", &queue, &long])], false);
                self.say(&["RPUSH", &queue, &long]);
                self.expect(Deed::Enqueue, Some(number), &[scene.commons.queues[shard].clone()], scene.now_us);
                scene.commons.pushed.entry((self.database, shard)).or_default().push(number);
            }
            _ => {
                let number = scene.rng.next_u64() >> 1;
                self.say(&["PING", &number.to_string()]);
                self.expect(Deed::Ping(number), None, &[], scene.now_us);
            }
        }
    }

    /// One request for keys of two shards.
    fn ask_pair(&mut self, first: usize, second: usize, scene: &mut Scene<'_>) {
        let places = [self.current[first], self.current[second]];
        let number = scene.books.next_number();
        let value = format!("t{number};");
        let [x, y] = places.map(|place| self.keys[place].key("x"));
        // Keys that there are not, which give a read its number.
        let [no, nothing] = places.map(|place| self.keys[place].key(&value));
        let (deed, words, parts): (_, Vec<&str>, [Vec<&str>; 2]) = if scene.rng.once_in(2) {
            (
                Deed::WritePair,
                vec!["MSET", &x, &value, &y, &value],
                [vec!["MSET", &x, &value], vec!["MSET", &y, &value]],
            )
        } else {
            (Deed::ReadPair, vec!["MGET", &x, &no, &y, &nothing], [vec!["MGET", &x, &no], vec!["MGET", &y, &nothing]])
        };
        self.number(scene, &[(first, &parts[0]), (second, &parts[1])], false);
        self.say(&words);
        self.expect_own(deed, Some(number), &places, scene.now_us);
    }

    fn take(&mut self, scene: &mut Scene<'_>) {
        let tag = scene.commons.queues[scene.rng.below(SHARDS)].clone();
        let (timeout, waits_us) = *scene.rng.pick(&[("0.05", 50_000), ("0.4", 400_000), ("2", 2_000_000)]);
        self.say(&["BLPOP", &format!("{tag}q"), timeout]);
        self.expect(Deed::Take, None, &[tag], scene.now_us);
        if let Some(pending) = self.pending.back_mut() {
            pending.waits_us = waits_us;
        }
    }

    /// The register of a shard, and its hash tag.
    fn register(scene: &Scene<'_>, shard: usize) -> (String, [String; 1]) {
        let tag = &scene.commons.registers[shard];
        (format!("{tag}w"), [tag.clone()])
    }

    fn begin_swap(&mut self, scene: &mut Scene<'_>) {
        let shard = scene.rng.below(SHARDS);
        let (key, tags) = Self::register(scene, shard);
        self.swap = Some(Swap { shard, is_watching: false, since_us: scene.now_us });
        self.say(&["WATCH", &key]);
        self.expect(Deed::Watch, None, &tags, scene.now_us);
        let end = (RANGE_END + scene.books.next_number()).to_string();
        let words = ["GETRANGE", &key, "0", &end];
        let number = self.number(scene, &[(shard, &words)], false);
        self.say(&words);
        self.expect(Deed::Look, Some(number), &tags, scene.now_us);
    }

    /// What was watched is known, or it cannot be known.
    fn end_swap(&mut self, swap: Swap, seen: Option<Option<u64>>, scene: &mut Scene<'_>) {
        let (key, tags) = Self::register(scene, swap.shard);
        let Some(seen) = seen.filter(|_| swap.is_watching) else {
            self.say(&["UNWATCH"]);
            self.expect(Deed::Unwatch, None, &tags, scene.now_us);
            return;
        };
        let value = format!("t{};", scene.books.next_number());
        let words = ["SET", &key, &value, "GET"];
        let number = self.number(scene, &[(swap.shard, &words)], false);
        for words in [&["MULTI"][..], &words] {
            self.say(words);
            self.expect(Deed::Step, None, &tags, scene.now_us);
        }
        self.say(&["EXEC"]);
        self.expect(Deed::Swap(seen), Some(number), &tags, scene.now_us);
    }

    /// Bytes have come. Returns what the client says to that.
    pub(super) fn hear(&mut self, bytes: &[u8], scene: &mut Scene<'_>) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        self.heard_us = scene.now_us;
        while let Ok(Scan::Complete { consumed, .. }) =
            ReplyScanner::default().scan(&self.received, &ReplyLimits::default())
        {
            let reply: Vec<u8> = self.received.drain(..consumed).collect();
            let pending = self.pending.pop_front();
            let context = format!("{}, client {} at {}", scene.books.context, self.number, scene.now_us);
            let pending =
                pending.unwrap_or_else(|| panic!("{context}: {:?} too many", String::from_utf8_lossy(&reply)));
            self.judge(&pending, &reply, scene);
        }
        std::mem::take(&mut self.out)
    }

    fn judge(&mut self, pending: &Pending, reply: &[u8], scene: &mut Scene<'_>) {
        let about = format!(
            "{}, client {}: {pending:?}: {:?}",
            scene.books.context,
            self.number,
            String::from_utf8_lossy(reply)
        );
        self.check_time(pending, &about, scene);
        let is_error = reply.starts_with(b"-");
        if let Some(class) = pending.deed.class() {
            scene.books.note_class(class, is_error);
        }
        if is_error {
            self.take_error(pending, &String::from_utf8_lossy(reply), reply, &about, scene);
        } else {
            let value = Value::parse(reply).expect("the scanner has found its end");
            self.take_reply(pending, &value, reply, &about, scene);
        }
        for place in &pending.keys {
            if !self.keys[*place].is_spoilt && scene.books.foreign.contains(&self.keys[*place].tag) {
                self.spoil(*place);
            }
        }
    }

    fn check_time(&self, pending: &Pending, about: &str, scene: &mut Scene<'_>) {
        let (from_us, now_us) = (pending.at_us, scene.now_us);
        let took_us = now_us.saturating_sub(from_us + pending.waits_us);
        let harms = [Harm::Fails, Harm::Delays];
        let is_excused = |slots: &BTreeSet<u16>, tags: &BTreeSet<String>, from_us: u64| {
            scene.books.had(&harms, slots, from_us, now_us) || scene.books.was_half_open(tags.iter(), from_us)
        };
        let is_in_time = took_us <= PROMPT_US + TRIPS * scene.link_us;
        assert!(
            is_in_time || is_excused(&pending.slots_ahead, &pending.tags_ahead, pending.ahead_us),
            "late by {took_us} us without a fault, at {now_us}: {about}"
        );
        let is_strict = !pending.slots.is_empty() && !is_excused(&pending.slots, &pending.tags, from_us);
        scene.books.seen.all += u64::from(!pending.slots.is_empty());
        scene.books.seen.unexcused += u64::from(is_strict);
        scene.books.seen.longest_us = scene.books.seen.longest_us.max(took_us);
    }

    fn take_error(&mut self, pending: &Pending, error: &str, reply: &[u8], about: &str, scene: &mut Scene<'_>) {
        let Some((words, fate)) = judge(error) else { panic!("no client may get this: {about}") };
        scene.books.note_error(words);
        let is_moved = pending.slots.iter().any(|slot| scene.books.moved.contains(slot));
        let is_redirect = is_moved && matches!(words, "-MOVED " | "-ASK " | "-TRYAGAIN " | "-EXECABORT ");
        // The script is brought to a node by who sent it, unless more was sent behind it.
        let is_unknown_script = words == "-NOSCRIPT " && pending.deed == Deed::Script && !self.pending.is_empty();
        let is_in_window = scene.books.had(&[Harm::Fails], &pending.slots, pending.at_us, scene.now_us);
        let had_fault = is_in_window
            || scene.books.was_half_open(pending.tags.iter(), pending.at_us)
            || pending.deed.is_prepared() && scene.books.was_half_open_before(&pending.slots, pending.at_us);
        assert!(had_fault || is_redirect || is_unknown_script, "failed without a fault, at {}: {about}", scene.now_us);
        scene.books.seen.by_half_open += u64::from(!is_in_window && had_fault && pending.deed.class().is_some());
        let may_say = scene.books.may_say(words, pending.at_us) && pending.deed.may_hear(words);
        assert!(may_say, "no fault makes this an answer to that, at {}: {about}", scene.now_us);
        let is_of_node =
            error.starts_with('-') && words.starts_with('-') && words != "-EXECABORT " && words != "-UNBLOCKED ";
        if let Some(number) = pending.number {
            let shards: Vec<usize> = scene.books.asked[&number].parts.keys().copied().collect();
            let fates = fates_of(shards.into_iter(), error, fate);
            let is_plain = is_of_node && !matches!(pending.deed, Deed::Exec | Deed::Swap(_));
            let is_late = error.contains("did not answer within");
            scene.books.asked.get_mut(&number).expect("it was asked").is_lost = fate == Fate::Unknown && !is_late;
            let is_in_doubt = fates.values().any(|fate| *fate == Fate::Unknown);
            scene.books.tell(number, fates, Some(reply).filter(|_| is_plain));
            if is_in_doubt || is_redirect {
                pending.keys.iter().for_each(|place| self.spoil(*place));
            }
        } else if fate == Fate::Unknown || is_redirect {
            pending.keys.iter().for_each(|place| self.spoil(*place));
        }
        match pending.deed {
            Deed::Greet | Deed::Ping(_) => panic!("what the proxy answers itself has failed: {about}"),
            Deed::Select => self.is_stranded = true,
            Deed::Look => {
                let swap = self.swap.expect("it has begun");
                self.end_swap(swap, None, scene);
            }
            Deed::Swap(_) | Deed::Unwatch => self.swap = None,
            _ => {}
        }
    }

    fn take_reply(&mut self, pending: &Pending, value: &Value, reply: &[u8], about: &str, scene: &mut Scene<'_>) {
        let is_ok = *value == Value::Simple(b"OK".to_vec());
        let is_null = matches!(value, Value::Null | Value::NullArray | Value::NullBulk);
        match pending.deed {
            Deed::Ping(number) => assert_eq!(*value, Value::Bulk(number.to_string().into_bytes()), "{about}"),
            Deed::Greet => assert!(matches!(value, Value::Map(_)), "{about}"),
            Deed::Step => assert!(is_ok || *value == Value::Simple(b"QUEUED".to_vec()), "{about}"),
            Deed::Select => assert!(is_ok, "{about}"),
            Deed::Watch => {
                assert!(is_ok, "{about}");
                self.swap.as_mut().expect("it has begun").is_watching = true;
            }
            Deed::Unwatch => {
                assert!(is_ok, "{about}");
                self.swap = None;
            }
            Deed::Look => {
                let swap = self.swap.expect("it has begun");
                self.tell_once(pending, Some(reply), scene);
                self.end_swap(swap, Some(number_of(value)), scene);
            }
            Deed::Swap(seen) => {
                let swap = self.swap.take().expect("it has begun");
                if is_null {
                    let (key, _) = Self::register(scene, swap.shard);
                    let is_touched = scene.books.was_touched(self.database, &key, swap.since_us);
                    assert!(is_touched, "nothing has changed since it was watched at {}: {about}", swap.since_us);
                    scene.books.seen.undone += 1;
                    return self.tell_all(pending, Fate::Never, None, scene);
                }
                let Value::Array(replies) = value else { panic!("{about}") };
                assert_eq!(replies.len(), 1, "{about}");
                assert_eq!(number_of(&replies[0]), seen, "it was changed since it was watched: {about}");
                self.tell_once(pending, None, scene);
            }
            Deed::Take if is_null => {
                let due_us = pending.at_us + pending.waits_us;
                assert!(scene.now_us >= due_us, "empty {} us too early: {about}", due_us - scene.now_us);
            }
            Deed::Take => {
                let elements = elements(reply);
                assert_eq!(elements.len(), 1, "{about}");
                scene.books.note_got(elements[0], self.number);
            }
            Deed::Enqueue => {
                assert!(matches!(value, Value::Integer(1..)), "{about}");
                self.tell_once(pending, Some(reply), scene);
            }
            _ => self.take_own(pending, value, reply, about, scene),
        }
    }

    fn tell_once(&self, pending: &Pending, reply: Option<&[u8]>, scene: &mut Scene<'_>) {
        self.tell_all(pending, Fate::Once, reply, scene);
    }

    fn tell_all(&self, pending: &Pending, fate: Fate, reply: Option<&[u8]>, scene: &mut Scene<'_>) {
        let number = pending.number.expect("it has one");
        let fates = scene.books.asked[&number].parts.keys().map(|shard| (*shard, fate)).collect();
        scene.books.tell(number, fates, reply);
    }

    /// A reply about keys of its own.
    fn take_own(&mut self, pending: &Pending, value: &Value, reply: &[u8], about: &str, scene: &mut Scene<'_>) {
        let is_split = matches!(pending.deed, Deed::WritePair | Deed::ReadPair);
        match pending.deed {
            Deed::Count => {}
            _ => self.tell_once(pending, Some(reply).filter(|_| !is_split && pending.deed != Deed::Exec), scene),
        }
        scene.commons.is_script_known |= pending.deed == Deed::Script;
        let is_known = |this: &Self, place: &usize| {
            !this.keys[*place].is_spoilt && !scene.books.foreign.contains(&this.keys[*place].tag)
        };
        if let (Deed::ReadPair, Value::Array(values)) = (pending.deed, value) {
            assert_eq!(values.len(), 4, "{about}");
            for (place, found) in pending.keys.iter().zip([&values[0], &values[2]]) {
                assert!(!is_known(self, place) || number_of(found) == self.keys[*place].value, "{about}");
            }
            return;
        }
        let known: Vec<usize> = pending.keys.iter().copied().filter(|place| is_known(self, place)).collect();
        for place in known {
            self.keys[place].take(pending, value, about);
        }
    }

    /// The client has gone: what of its requests was not answered, it does not know.
    pub(super) fn leave(&self, books: &mut Books) {
        books.seen.vanished += 1;
    }
}

/// The number of the request that has written a value; `None`: there is none.
fn number_of(value: &Value) -> Option<u64> {
    match value {
        Value::Bulk(text) if !text.is_empty() => {
            Some(super::books::numbers(text).next().expect("values name their requests"))
        }
        Value::Bulk(_) | Value::Null | Value::NullBulk => None,
        other => panic!("{other:?} is no value"),
    }
}

impl Keys {
    fn take(&mut self, pending: &Pending, value: &Value, about: &str) {
        let number = pending.number.unwrap_or_default();
        let expect = |found: &Value, wanted: i64| {
            assert_eq!(*found, Value::Integer(wanted), "{} where {wanted} is right: {about}", self.tag)
        };
        match (pending.deed, value) {
            (Deed::Set | Deed::WritePair, value) => {
                assert_eq!(*value, Value::Simple(b"OK".to_vec()), "{about}");
                self.value = Some(number);
            }
            (Deed::Get, value) => assert_eq!(number_of(value), self.value, "{about}"),
            (Deed::Count, value) => {
                expect(value, self.count + 1);
                self.count += 1;
            }
            (Deed::Append, value) => {
                expect(value, self.log.len() as i64 + 1);
                self.log.push(number);
            }
            (Deed::List, Value::Array(found)) => {
                let found: Vec<Option<u64>> = found.iter().map(number_of).collect();
                assert!(
                    found.iter().copied().eq(self.log.iter().copied().map(Some)),
                    "{:?} is right: {about}",
                    self.log
                );
            }
            (Deed::Exec, Value::Array(replies)) => {
                assert_eq!(replies.len(), 3, "{about}");
                assert_eq!(replies[0], Value::Simple(b"OK".to_vec()), "{about}");
                expect(&replies[1], self.log.len() as i64 + 1);
                expect(&replies[2], self.count + 1);
                self.value = Some(number);
                self.log.push(number);
                self.count += 1;
            }
            (Deed::Script, Value::Array(replies)) => {
                assert_eq!(replies.len(), 2, "{about}");
                assert_eq!(number_of(&replies[0]), Some(number), "{about}");
                expect(&replies[1], self.count + 1);
                self.log.push(number);
                self.count += 1;
            }
            _ => panic!("{about}"),
        }
    }
}
