//! Blocked requests: several clients block and write in both stores, and after each request, transaction or release the same
//! clients must have the same replies.
//!
//! Each key is waited for by requests of one type, though values of every type come to it: see the order that
//! `keyspace::blocked` keeps where Redis moves requests. `SWAPDB` looks through the keys of Redis's table in the table's order, so
//! it is played only where one key is waited for.

use std::collections::BTreeMap;

use respool_command::{Execute, Outcome, SessionView, WaitId, resolve};
use respool_testkit::{Client, RedisServer, Rng};
use respool_wire::{ArgsBuf, Encoder, Protocol};

use super::redis;
use super::subject::{Subject, now, number_from};

/// Steps unless the environment says otherwise.
const STEPS: usize = 4_000;
/// Clients that may block. Client 0 never does.
const CLIENTS: usize = 8;

/// What several clients have been sent.
type Replies = BTreeMap<usize, Vec<u8>>;

/// One thing that a client does.
#[derive(Clone, Debug)]
enum Step {
    Request(usize, String),
    Transaction(usize, Vec<String>),
    /// Client 0 ends what another waits for.
    Unblock(usize),
}

struct Room {
    clients: Vec<Client>,
    ids: Vec<String>,
    subject: Subject,
    databases: Vec<u32>,
    waits: BTreeMap<WaitId, usize>,
    history: Vec<Step>,
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

impl Room {
    fn new(server: &RedisServer) -> Self {
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.client().expect("the server takes clients")).collect();
        let id = |client: &mut Client| {
            client.ask("CLIENT ID").expect("it answers").trim_matches([':', '\r', '\n']).to_owned()
        };
        let ids = clients.iter_mut().map(id).collect();
        let subject = Subject::new(Protocol::Resp2);
        Self { clients, ids, subject, databases: vec![0; CLIENTS], waits: BTreeMap::new(), history: Vec::new() }
    }

    fn is_blocked(&self, client: usize) -> bool {
        self.waits.values().any(|waiting| *waiting == client)
    }

    /// What the engine says to one request, before those are served that wait.
    fn engine(&mut self, client: usize, line: &str, is_in_transaction: bool, out: &mut Vec<u8>) {
        if let Some(database) = line.strip_prefix("SELECT ") {
            self.databases[client] = database.parse().expect("a number");
            out.extend_from_slice(b"+OK\r\n");
            return;
        }
        let args: ArgsBuf = words(line).into_iter().collect();
        let row = resolve(args.as_args()).expect("the test uses commands that exist");
        let (database, client_id) = (self.databases[client], client as u64);
        let now = now();
        let mut session = SessionView { database, now, client_id, is_in_transaction, ..SessionView::default() };
        let mut reply = Encoder::new(out, Protocol::Resp2);
        match self.subject.engine.execute(row, args.as_args(), &mut session, &mut reply) {
            Outcome::Done => {}
            Outcome::Parked(wait) => _ = self.waits.insert(wait, client),
            Outcome::Unfinished | Outcome::Stopped | Outcome::Asks => panic!("no script runs"),
        }
    }

    /// Serves the engine's clients that wait for what has come.
    fn serve(&mut self, replies: &mut Replies) {
        let mut out = Vec::new();
        while let Some(wait) = self.subject.engine.poll_ready(now(), &mut out) {
            let client = self.waits.remove(&wait).expect("it waits");
            replies.entry(client).or_default().append(&mut out);
        }
    }

    /// What a step leads to in the engine.
    fn in_engine(&mut self, step: &Step) -> Replies {
        let mut replies = Replies::new();
        match step {
            Step::Request(client, line) => {
                let mut out = Vec::new();
                self.engine(*client, line, false, &mut out);
                replies.insert(*client, out);
            }
            Step::Transaction(client, lines) => {
                let mut out = format!("+OK\r\n{}*{}\r\n", "+QUEUED\r\n".repeat(lines.len()), lines.len()).into_bytes();
                lines.iter().for_each(|line| self.engine(*client, line, true, &mut out));
                replies.insert(*client, out);
            }
            Step::Unblock(client) => {
                let wait = self.waits.iter().find(|(_, waiting)| *waiting == client).map(|(wait, _)| *wait);
                let wait = wait.expect("it waits");
                self.subject.engine.cancel(wait);
                self.waits.remove(&wait);
                replies.insert(0, b":1\r\n".to_vec());
                replies.insert(*client, b"*-1\r\n".to_vec());
            }
        }
        self.serve(&mut replies);
        replies.retain(|_, reply| !reply.is_empty());
        replies
    }

    /// What it leads to in the server.
    fn in_redis(&mut self, step: &Step) -> Replies {
        let sent = match step {
            Step::Request(client, line) => self.clients[*client].send_command(&words(line)),
            Step::Transaction(client, lines) => {
                let lines = std::iter::once("MULTI").chain(lines.iter().map(String::as_str)).chain(["EXEC"]);
                let mut request = Vec::new();
                lines.for_each(|line| respool_wire::encode_request(&mut request, words(line).into_iter()));
                self.clients[*client].send(&request)
            }
            Step::Unblock(client) => {
                let line = format!("CLIENT UNBLOCK {}", self.ids[*client]);
                self.clients[0].send_command(&words(&line))
            }
        };
        sent.expect("the server reads");
        let mut replies = Replies::new();
        // Two turns of the server's loop: whatever the first led to has been written in the second.
        for _ in 0..2 {
            self.clients[0].send_command(&["PING"]).expect("the server reads");
            loop {
                let reply = self.clients[0].reply().expect("the server answers");
                if reply == b"+PONG\r\n" {
                    break;
                }
                replies.entry(0).or_default().extend(reply);
            }
        }
        for (number, client) in self.clients.iter_mut().enumerate().skip(1) {
            let arrived = client.take_arrived().expect("the server is there");
            if !arrived.is_empty() {
                replies.insert(number, arrived);
            }
        }
        replies
    }

    fn play(&mut self, step: Step) {
        self.history.push(step.clone());
        let (expected, said) = (self.in_redis(&step), self.in_engine(&step));
        let shown = |replies: &Replies| -> Vec<String> {
            replies.iter().map(|(client, reply)| format!("{client}: {}", reply.escape_ascii())).collect()
        };
        if expected != said {
            let from = self.history.len().saturating_sub(40);
            let history: Vec<_> = self.history[from..].iter().map(|step| format!("{step:?}")).collect();
            panic!("{}\nredis  {:#?}\nengine {:#?}", history.join("\n"), shown(&expected), shown(&said));
        }
    }

    /// Plays lines, each `client request`; `client multi a; b` is a transaction.
    fn play_lines(&mut self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (client, rest) = line.split_once(' ').expect("a line is client request");
            let client = client.parse().expect("a number");
            let step = match rest.strip_prefix("multi ") {
                Some(rest) => Step::Transaction(client, rest.split("; ").map(str::to_owned).collect()),
                None if rest == "unblock" => Step::Unblock(client),
                None => Step::Request(client, rest.to_owned()),
            };
            self.play(step);
        }
    }
}

/// A random request that may block.
fn blocking(rng: &mut Rng) -> String {
    let several = |rng: &mut Rng, of: &[&'static str]| {
        let count = rng.between(1, 3);
        (0..count).map(|_| *rng.pick(of)).collect::<Vec<_>>()
    };
    const LISTS: &[&str] = &["l1", "l2", "l3", "l4"];
    const SETS: &[&str] = &["z1", "z2", "z3"];
    const STREAMS: &[&str] = &["s1", "s2", "s3"];
    let side = |rng: &mut Rng| *rng.pick(&["LEFT", "RIGHT"]);
    match rng.below(10) {
        0..=2 => format!("{} {} 0", rng.pick(&["BLPOP", "BRPOP"]), several(rng, LISTS).join(" ")),
        3 => {
            let keys = several(rng, LISTS);
            format!("BLMPOP 0 {} {} {} COUNT {}", keys.len(), keys.join(" "), side(rng), rng.between(1, 3))
        }
        4 => {
            let to = rng.pick(&["l1", "l2", "l3", "l4", "z1"]).to_owned();
            format!("BLMOVE {} {to} {} {} 0", rng.pick(LISTS), side(rng), side(rng))
        }
        5 => format!("BRPOPLPUSH {} {} 0", rng.pick(LISTS), rng.pick(LISTS)),
        6 => format!("{} {} 0", rng.pick(&["BZPOPMIN", "BZPOPMAX"]), several(rng, SETS).join(" ")),
        7 => {
            let keys = several(rng, SETS);
            format!("BZMPOP 0 {} {} {} COUNT 2", keys.len(), keys.join(" "), rng.pick(&["MIN", "MAX"]))
        }
        8 => {
            let keys = several(rng, STREAMS);
            let ids = vec![*rng.pick(&["$", "0", "50-1"]); keys.len()];
            format!("XREAD BLOCK 0 STREAMS {} {}", keys.join(" "), ids.join(" "))
        }
        _ => {
            let keys = several(rng, STREAMS);
            let ids = vec![">"; keys.len()];
            let group = rng.pick(&["g", "h"]);
            format!("XREADGROUP GROUP {group} c BLOCK 0 STREAMS {} {}", keys.join(" "), ids.join(" "))
        }
    }
}

/// A random request that may serve some that are blocked. `number` grows from one to the next.
fn write(rng: &mut Rng, number: usize) -> String {
    const KEYS: &[&str] = &["l1", "l2", "l3", "l4", "z1", "z2", "z3", "s1", "s2", "s3"];
    let (list, set, stream) = (rng.pick(&KEYS[..4]), rng.pick(&KEYS[4..7]), rng.pick(&KEYS[7..]));
    let (key, other) = (rng.pick(KEYS), rng.pick(KEYS));
    match rng.below(26) {
        0..=4 => format!("{} {list} a{number} b", rng.pick(&["LPUSH", "RPUSH"])),
        5 => format!("RPUSH {list} a{number}"),
        6..=8 => format!("ZADD {set} {number} a{number} 1 b"),
        9..=12 => format!("XADD {stream} {number}-1 f v"),
        13 => format!("XGROUP CREATE {stream} g $ MKSTREAM"),
        14 => format!("XGROUP CREATE {stream} h 0 MKSTREAM"),
        15 => format!("XGROUP DESTROY {stream} {}", rng.pick(&["g", "h"])),
        16 => format!("XGROUP SETID {stream} g 0"),
        17 => format!("DEL {key} {other}"),
        18 => format!("RENAME {key} {other}"),
        19 => format!("COPY {key} {other} REPLACE"),
        20 => format!("MOVE {key} {}", rng.below(2)),
        21 => format!("SET {key} v"),
        22 => format!("PEXPIREAT {key} 1"),
        23 => format!("RPUSH {key} x"),
        24 => format!("LPOP {list} 2"),
        _ => rng.pick(&["FLUSHDB", "FLUSHALL", "XTRIM s1 MAXLEN 0", "SADD l1 m"]).to_string(),
    }
}

#[test]
fn blocked_clients_are_served_in_redis_order() {
    let Some((server, _control)) = redis() else { return };
    let mut room = Room::new(&server);
    let mut rng = Rng::new(number_from("RESPOOL_TEST_SEED", 1));
    room.play_lines("6 SELECT 1\n7 SELECT 1");
    for number in 1..=number_from("RESPOOL_TEST_REQUESTS", STEPS as u64) as usize {
        let client = rng.below(CLIENTS);
        let step = if room.is_blocked(client) {
            if !rng.once_in(4) {
                continue;
            }
            Step::Unblock(client)
        } else if client > 0 && !rng.once_in(3) {
            Step::Request(client, blocking(&mut rng))
        } else if rng.once_in(4) {
            let count = rng.between(1, 5);
            let lines = (0..count)
                .map(|part| if rng.once_in(6) { blocking(&mut rng) } else { write(&mut rng, 10 * number + part) });
            Step::Transaction(client, lines.collect())
        } else {
            Step::Request(client, write(&mut rng, 10 * number))
        };
        room.play(step);
    }
}

#[test]
fn blocked_clients_see_what_redis_shows_in_corners() {
    let Some((server, _control)) = redis() else { return };
    for lines in [
        // Chains of moves, the last into a key that the first waits for no more.
        "1 BLMOVE a b LEFT RIGHT 0
         2 BLMOVE b c LEFT RIGHT 0
         3 BLMOVE c a LEFT RIGHT 0
         4 BLPOP a 0
         0 RPUSH a x
         0 LRANGE a 0 -1",
        // A list is turned once for each that waits.
        "1 BLMOVE a a LEFT RIGHT 0
         2 BLMOVE a a LEFT RIGHT 0
         0 RPUSH a x y z
         0 LRANGE a 0 -1",
        // What came first in a transaction is served first, and what is gone by its end is not.
        "1 BLPOP a b 0
         2 BLPOP b a 0
         0 multi RPUSH b x; RPUSH a y; DEL b; RPUSH b z
         3 BLPOP a 0
         0 multi RPUSH a x; DEL a",
        // Streams that go, come again or become something else.
        "0 XGROUP CREATE s g $ MKSTREAM
         1 XREADGROUP GROUP g c BLOCK 0 STREAMS s >
         2 XREADGROUP GROUP g c BLOCK 0 STREAMS s >
         3 XREADGROUP GROUP h c BLOCK 0 STREAMS s >
         0 XADD s 1-1 f v
         0 multi DEL s; RPUSH s x",
        "0 XGROUP CREATE s g $ MKSTREAM
         1 XREADGROUP GROUP g c BLOCK 0 STREAMS s >
         0 SET s x
         0 XGROUP CREATE t g $ MKSTREAM
         1 XREADGROUP GROUP g c BLOCK 0 STREAMS t >
         0 XGROUP DESTROY t g
         0 XGROUP CREATE t g $
         1 XREADGROUP GROUP g c BLOCK 0 STREAMS t >
         0 multi DEL t; XGROUP CREATE t g $ MKSTREAM
         0 XADD t 2-1 f v",
        "1 BLPOP a 0
         0 SELECT 1
         0 RPUSH a x
         0 SWAPDB 0 1
         0 SELECT 0
         1 BLPOP a 0
         0 SWAPDB 0 1
         0 FLUSHALL",
        "0 XGROUP CREATE s g $ MKSTREAM
         1 XREADGROUP GROUP g c BLOCK 0 STREAMS s >
         2 XREAD BLOCK 0 STREAMS s $
         0 SWAPDB 0 1
         0 FLUSHALL
         0 XADD s 1-1 f v",
        "0 XGROUP CREATE s g $ MKSTREAM
         1 XREADGROUP GROUP g c BLOCK 0 STREAMS s >
         0 RENAME s t
         0 XADD s 1-1 f v
         2 XREAD BLOCK 0 STREAMS s t 9-9 $
         0 MOVE s 1
         0 RENAME t s
         0 XADD s 9-8 f v
         0 XADD s 9-10 f v",
        // The target holds something else.
        "1 BLMOVE a b LEFT RIGHT 0
         2 BLPOP a 0
         0 SET b x
         0 RPUSH a 1
         1 BLMOVE a b LEFT RIGHT 0
         1 unblock
         0 RPUSH a 2
         3 multi BLPOP a 0; BLPOP a 0; BLMOVE a b LEFT RIGHT 0; BZPOPMIN z 0; XREAD BLOCK 0 STREAMS s $",
    ] {
        let mut room = Room::new(&server);
        room.play_lines("0 FLUSHALL");
        room.play_lines(lines);
    }
}
