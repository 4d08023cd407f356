//! A whole server: one worker with the engine in it, and hostile clients. A script says who sends which requests or bytes, who reads
//! slowly, who leaves and how much time passes. Nothing may panic; what clients are sent is RESP; and once all
//! clients have left, no byte is held for them.
//!
//! The first byte of a script says how the server is set up; the rest is steps. Bytes may be anything; so that scripts get far, clients
//! also say any command with words that mean something to some command, and what is in [`SAID`].
#![no_main]

use libfuzzer_sys::fuzz_target;
use respool_command::{Command, EventClasses, Row, ServerCommand, all};
use respool_connection::{Action, ConnId, FlushPolicy, Machine, Now, Peer, Service, ServiceAction, WorkerId};
use respool_engine::{Engine, EngineConfig, EvictionPolicy};
use respool_proxy::{
    Access, AccessRules, Budgets, Config, IntegrityTerms, LaneLimits, Mail, PoolMode, ProcessBudget, ProcessFacts,
    Reconnects, Shared, Timeouts, UserLimits, Worker, WorkerSetup,
};
use respool_route::{Node, Pool, Routes, Scheme, Topology};
use respool_wire::{ReplyError, ReplyLimits, ReplyScanner, RequestLimits, Scan};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// What clients say by the number of its line: what their connections and the engine's states are made of.
const SAID: &str = "SET k v
GET k
SET k v PX 30
HSET h a 1 b 2
HPEXPIRE h 20 FIELDS 1 a
RPUSH l a b c
SADD s 1 2 a
ZADD z 1 a 2 b
XADD x * f v
XGROUP CREATE x g $ MKSTREAM
XREADGROUP GROUP g c BLOCK 0 STREAMS x >
XREAD BLOCK 0 STREAMS x $
BLPOP l 0
BLPOP l m 0.02
BLMOVE l m LEFT RIGHT 0
BZPOPMIN z 0
BLMPOP 0 2 l m LEFT
WAIT 1 10
MULTI
EXEC
DISCARD
WATCH k l
UNWATCH
SELECT 1
SELECT 0
SWAPDB 0 1
FLUSHALL
FLUSHDB
HELLO 3
HELLO 2
AUTH ann secret
AUTH ann wrong
RESET
QUIT
SUBSCRIBE c
PSUBSCRIBE c* __key*
SSUBSCRIBE s
UNSUBSCRIBE
PUBLISH c m
CLIENT TRACKING ON
CLIENT TRACKING ON BCAST PREFIX k
CLIENT TRACKING ON OPTIN NOLOOP
CLIENT CACHING YES
CLIENT TRACKING OFF
CLIENT REPLY OFF
CLIENT REPLY ON
CLIENT REPLY SKIP
CLIENT PAUSE 20 WRITE
CLIENT PAUSE 20
CLIENT UNPAUSE
CLIENT LIST
CLIENT KILL TYPE normal
CLIENT UNBLOCK 1 ERROR
CLIENT NO-TOUCH ON
MONITOR
CONFIG RESETSTAT
INFO everything
SLOWLOG GET
LATENCY HISTOGRAM
ACL SETUSER ann -get
ACL SETUSER ann +@all
ACL LOG
SCRIPT KILL
SCRIPT FLUSH
FUNCTION FLUSH
FUNCTION KILL
EVAL redis.call(ARGV[1],KEYS[1],ARGV[2]) 1 k SET v
EVAL return{redis.call(ARGV[1],KEYS[1]),redis.pcall(ARGV[2],KEYS[1])} 1 k GET LPOP
EVAL while(true)do(redis.call)(ARGV[1])end 0 PING
EVAL while(true)do(redis.pcall)(ARGV[1],KEYS[1],1)end 1 k SET
EVAL redis.call(ARGV[1],ARGV[2],ARGV[3]) 0 PUBLISH c m
EVAL_RO return(redis.call(ARGV[1],KEYS[1])) 1 l LLEN
PROXY PAUSE
PROXY RESUME
PROXY SHOW CLIENTS";

/// Words that mean something to some command. None makes a value of more than some kilobytes.
const WORDS: &str = "k|l|s|h|z|x|m|a|b|c|g|*|-|+|(1|[a|$|>|0-1|1-1|5-0|0|1|-1|2|3|7|100|1000|-1000|4096|1.5|inf|-inf|nan|\
    9223372036854775807|-9223372036854775808|NX|XX|GT|LT|CH|GET|INCR|EX|PX|EXAT|PXAT|KEEPTTL|PERSIST|LIMIT|COUNT|MATCH|TYPE|\
    WITHSCORES|WITHVALUES|WEIGHTS|AGGREGATE|MIN|MAX|BYSCORE|BYLEX|REV|LEFT|RIGHT|BEFORE|AFTER|RANK|MAXLEN|MINID|~|=|BY|STORE|\
    ALPHA|DESC|IDX|LEN|AND|NOT|BIT|u8|i64|SAT|FAIL|OVERFLOW|INCRBY|SET|REPLACE|DB|ASYNC|ABSTTL|FREQ|IDLETIME|FIELDS|IDS|GROUP|\
    BLOCK|STREAMS|NOACK|FORCE|JUSTID|IDLE|FULL|FROMMEMBER|BYRADIUS|BYBOX|KM|ASC|ANY|WITHCOORD|RESET|GETUSER|on|off|>pw|~k*|+@all|\
    -get|ann|default|maxmemory|hash-max-listpack-entries|notify-keyspace-events|KEA|return 1|return redis.call('incr','k')|\
    #!lua name=l redis.register_function('f', function(k, a) return a end)||\u{0}|a\r\nb";

/// More scripts than a transaction of one input has requests.
const SCRIPTS_MAX: usize = 2_000;

static LINES: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| SAID.lines().map(|line| line.split(' ').collect()).collect());
static CHOICES: LazyLock<Vec<&str>> = LazyLock::new(|| WORDS.split('|').collect());
static ROWS: LazyLock<Vec<&Row>> = LazyLock::new(|| all().filter(|row| !row.is_container()).collect());

fn config(shape: u8) -> Config {
    // Without nodes nothing is placed on them.
    let topology = Arc::new(Topology::new(Scheme::default(), vec![Node::new("none")]).expect("it can be placed on"));
    let classes = if shape & 1 == 0 { "" } else { "KEA" };
    Config {
        keyspace_events: EventClasses::parse(classes.as_bytes()).expect("they are classes"),
        nodes: Vec::new(),
        routes: Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&topology)))),
        topology,
        request_limits: RequestLimits { bulk_bytes_max: 1 << 20, ..RequestLimits::default() },
        reply_limits: ReplyLimits::default(),
        timeouts: Timeouts {
            connect_us: 30_000,
            response_us: 50_000,
            silence_us: 200_000,
            client_idle_us: 5_000_000,
            drain_us: 100_000,
            probe_idle_us: 20_000,
            probe_patience_us: 40_000,
            pause_us: if shape & 2 == 0 { 0 } else { 60_000 },
            slow_start_us: 10_000,
        },
        reconnects: Reconnects { backoff_min_us: 100, backoff_max_us: 10_000, redials_per_second: 100 },
        budgets: Budgets {
            client_output_soft: 2_000,
            client_output_hard: 200_000,
            clients: if shape & 4 == 0 { usize::MAX } else { 100_000 },
            soft_limits: Default::default(),
            upstream_queue: 4_000,
            request_whole: if shape & 8 == 0 { 1 << 20 } else { 100 },
            process: 1 << 20,
        },
        clients_max: 8,
        databases: 4,
        seeing: Default::default(),
        dials_ahead: false,
        integrity: IntegrityTerms::default(),
        flush: FlushPolicy::Immediate,
        allows_admin: true,
        is_server: false,
        trusts_clients: false,
        subscriptions: Default::default(),
        lanes: LaneLimits {
            mode: PoolMode::ALL[0].0,
            transaction_bytes_max: 1_000,
            transaction_commands_max: 20,
            private_max: 3,
            private_warm_max: 1,
            session_max: 4,
            blocking_max: 2,
            blocked_commands_max: 5,
        },
        access: AccessRules::default(),
    }
}

fn users() -> Arc<Access> {
    let access = Access::default();
    let rules: &[&[u8]] = &[b"on", b">secret", b"~k*", b"~l", b"&c*", b"+@all", b"-@dangerous"];
    access.change(|users| users.with_rules(b"ann", rules).map(|users| (users, ()))).expect("they are rules");
    let all: &[&[u8]] = &[b"on", b">secret", b"~*", b"&*", b"+@all"];
    access.change(|users| users.with_rules(b"operator", all).map(|users| (users, ()))).expect("they are rules");
    let limits = UserLimits { requests_per_second: Some(20), ..UserLimits::default() };
    access.set_limits([(b"ann".as_slice().into(), limits)].into_iter());
    Arc::new(access)
}

/// An engine with little memory, whose scripts are late after a few looks.
fn engine(shape: u8) -> Engine {
    let asked = Arc::new(AtomicU64::new(0));
    let clock = move || asked.fetch_add(1_000, Ordering::Relaxed);
    let config = EngineConfig {
        databases: 4,
        memory_bytes_max: (shape & 16 != 0).then_some(3 << 20),
        eviction: if shape & 32 == 0 { EvictionPolicy::AllkeysLru } else { EvictionPolicy::NoEviction },
        ..EngineConfig::default()
    };
    Engine::new(config, [1, 2]).with_script_clock(clock)
}

/// A client's end: what it is sent is read as RESP.
#[derive(Default)]
struct ClientEnd {
    scanner: ReplyScanner,
    /// It may subscribe inside of a transaction, which in RESP3 is answered by a push inside of the reply to EXEC, as Redis does.
    is_raw: bool,
    /// How what it was sent began.
    said: Vec<u8>,
}

struct World {
    worker: Worker<Engine>,
    shared: Arc<Shared>,
    now_us: u64,
    clients: BTreeMap<u32, ClientEnd>,
    is_over: bool,
    /// A client was refused although none was there, as is right only for a worker that ends.
    is_ending: bool,
    /// It was ended amid a script that had written.
    was_stopped: bool,
    shape: u8,
}

impl World {
    fn deliver(&mut self, client: u32, mut bytes: &[u8]) {
        let conn = ConnId::client(client);
        while !bytes.is_empty() && self.clients.contains_key(&client) {
            let Some(buffer) = self.worker.read_buffer(conn) else { return };
            let taken = bytes.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&bytes[..taken]);
            self.worker.handle_read(conn, taken);
            bytes = &bytes[taken..];
            self.act();
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.worker.poll_action() {
            match action {
                Action::Dial { .. } => panic!("there is nothing to dial"),
                Action::Close { conn } | Action::Finish { conn } => {
                    self.clients.remove(&(conn.index() as u32)).expect("only what is open is closed");
                }
                Action::Service(ServiceAction::Exit) => self.is_over = true,
                Action::TryWrite { conn } => self.worker.handle_writable(conn),
                Action::Resume { .. } | Action::Service(ServiceAction::StopAccepting) => {}
                // There is one worker, so it can only be its own.
                Action::Service(ServiceAction::Post { mail, .. }) => self.worker.handle_mail(mail),
            }
        }
    }

    /// What the loop does at the end of a turn, until the machine wants nothing more.
    fn settle(&mut self, share: usize) {
        self.worker.end_turn();
        for _ in 0..64 {
            self.act();
            let Some(conn) = self.worker.poll_output() else { break };
            let bytes = self.worker.output(conn).to_vec();
            assert!(!bytes.is_empty(), "only what wants to be written is listed");
            let taken = bytes.len().min(share);
            let end = self.clients.get_mut(&(conn.index() as u32)).expect("only what is open is written to");
            end.read(&bytes[..taken]);
            self.worker.handle_written(conn, taken);
            if taken < bytes.len() {
                self.worker.handle_writable(conn);
            }
        }
        self.act();
    }

    fn begin(&mut self, passed_us: u64) {
        // What it is asked says what is held; a loop that does not say how long it waited has no message held.
        let _ = self.worker.wait();
        if self.worker.measures_waits() {
            self.worker.handle_waited(passed_us);
        }
        self.now_us += passed_us;
        let unix_us = 1_700_000_000_000_000 + self.now_us;
        self.worker.begin_turn(Now::of_clocks(self.now_us, unix_us));
        // Clients may have been closed with it: they hold too much.
        self.act();
    }

    fn step(&mut self, verb: u8, who: u8, bytes: &[u8]) {
        self.begin(u64::from(who) * 10);
        let client = self.clients.keys().copied().nth(usize::from(who) % self.clients.len().max(1));
        match (verb % 16, client) {
            (0 | 1, Some(client)) => self.deliver(client, bytes),
            (2..=6, Some(client)) => {
                let mut said = Vec::new();
                for line in bytes {
                    let words = &LINES[usize::from(*line) % LINES.len()];
                    respool_wire::encode_request(&mut said, words.iter().map(|word| word.as_bytes()));
                }
                self.deliver(client, &said);
            }
            (7..=10, Some(client)) => {
                let mut said = Vec::new();
                for request in bytes.chunks(10) {
                    write_request(request, &mut said);
                }
                self.deliver(client, &said);
            }
            (11, _) => {
                if let Ok(conn) = self.worker.handle_accept(Peer::default()) {
                    self.clients.insert(conn.index() as u32, ClientEnd::default());
                }
            }
            (12, Some(client)) if who.is_multiple_of(3) => self.worker.handle_ended(ConnId::client(client)),
            (12, Some(client)) => {
                self.clients.remove(&client);
                self.worker.handle_broken(ConnId::client(client), "gone");
            }
            (13, _) => self.begin(u64::from(who) * 4_000),
            (14, _) if bytes.len() == 3 => self.worker.handle_mail(Mail::Drain),
            (14, _) => {
                self.shape ^= who & 15;
                self.worker.handle_mail(Mail::Reload(Arc::new(config(self.shape))));
            }
            _ => {}
        }
        self.settle(if who > 200 { 7 } else { usize::MAX });
    }

    /// Every client leaves, and time passes until nothing that was asked is awaited any more.
    fn end(&mut self) {
        self.begin(1);
        for client in std::mem::take(&mut self.clients).into_keys() {
            self.worker.handle_broken(ConnId::client(client), "gone");
        }
        self.settle(usize::MAX);
        self.stop_script();
        if self.was_stopped {
            return;
        }
        for _ in 0..24 {
            self.begin(250_000);
            self.settle(usize::MAX);
        }
    }

    /// A script that has no end may still run, and an operator ends it. One that has written cannot be killed, and goes with the worker.
    /// Pauses would hold this order too, so they end first.
    fn stop_script(&mut self) {
        self.end_pauses();
        let Ok(conn) = self.worker.handle_accept(Peer::default()) else {
            self.is_ending = true;
            return;
        };
        let client = conn.index() as u32;
        self.clients.insert(client, ClientEnd::default());
        let entered = self.ask(client, b"AUTH operator secret\r\n");
        let is_entered = entered == b"+OK\r\n";
        assert!(is_entered || entered.starts_with(b"-WRONGPASS "), "a password got {}", entered.escape_ascii());
        // A transaction may have more scripts without an end behind the first.
        let is_ended = (0..SCRIPTS_MAX).any(|_| {
            // A transaction that goes on may pause all clients, this one as well.
            self.end_pauses();
            let said = self.ask(client, b"SCRIPT KILL\r\n");
            let begins = |words: &str| said.starts_with(words.as_bytes());
            // Clients may have come upon the operator's name, and changed that user.
            if begins("-UNKILLABLE ") || begins("-NOPERM ") || begins("-NOAUTH ") && !is_entered {
                self.worker.handle_mail(Mail::Stop);
                self.settle(usize::MAX);
                assert!(self.is_over, "a worker is kept from ending");
                self.was_stopped = true;
            }
            let is_killed = begins("+OK\r\n");
            assert!(
                is_killed || self.was_stopped || begins("-NOTBUSY "),
                "an order to end a script got {}",
                said.escape_ascii()
            );
            self.begin(1);
            !is_killed
        });
        assert!(is_ended, "there is always one more script");
        if self.was_stopped {
            return;
        }
        self.begin(1);
        self.deliver(client, b"QUIT\r\n");
        self.settle(usize::MAX);
        if self.clients.remove(&client).is_some() {
            self.worker.handle_broken(conn, "gone");
        }
        self.settle(usize::MAX);
    }

    /// As orders end that another process leaves.
    fn end_pauses(&mut self) {
        self.shared.go_on_with_orders("", self.now_us).expect("there are none");
        self.begin(100_000);
        self.worker.handle_mail(Mail::Orders);
        self.settle(usize::MAX);
    }

    /// How the answer to a request begins.
    fn ask(&mut self, client: u32, request: &[u8]) -> Vec<u8> {
        self.clients.entry(client).or_default().said.clear();
        self.deliver(client, request);
        self.settle(usize::MAX);
        self.clients.get(&client).map(|end| end.said.clone()).unwrap_or_default()
    }
}

/// A request of the row that the first byte names, with the words that the others name.
fn write_request(choices: &[u8], out: &mut Vec<u8>) {
    let [low, high, number, words @ ..] = choices else { return };
    let row = ROWS[usize::from(u16::from_le_bytes([*low, *high])) % ROWS.len()];
    if row.command == Command::Server(ServerCommand::Shutdown) {
        return;
    }
    let mut request: Vec<&[u8]> = row.name.split(' ').map(str::as_bytes).collect();
    let needed = usize::from(row.arity.unsigned_abs());
    let wanted = if row.arity < 0 { needed + usize::from(number % 6) } else { needed };
    let mut words = words.iter().cycle();
    while request.len() < wanted {
        let Some(word) = words.next() else { return };
        request.push(CHOICES[usize::from(*word) % CHOICES.len()].as_bytes());
    }
    respool_wire::encode_request(out, request.into_iter());
}

impl ClientEnd {
    fn read(&mut self, mut bytes: &[u8]) {
        if self.said.is_empty() {
            self.said.extend_from_slice(&bytes[..bytes.len().min(16)]);
        }
        while !bytes.is_empty() && !self.is_raw {
            match self.scanner.scan(bytes, &ReplyLimits::default()) {
                Ok(Scan::Complete { consumed, .. }) => bytes = &bytes[consumed..],
                Ok(Scan::Partial) => break,
                Err(ReplyError::NestedPush) => self.is_raw = true,
                Err(error) => panic!("a client is sent what is no RESP: {error}"),
            }
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let [shape, script @ ..] = script else { return };
    let shared = Shared::new(1, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default())).with_access(users());
    let shared = Arc::new(shared);
    let setup = WorkerSetup {
        config: Arc::new(config(*shape)),
        shared: Arc::clone(&shared),
        number: WorkerId::FIRST,
        engine: Some(engine(*shape)),
        entropy: 7,
    };
    let mut world = World {
        worker: Worker::new(setup),
        shared: Arc::clone(&shared),
        now_us: 1_000_000,
        clients: BTreeMap::new(),
        is_over: false,
        is_ending: false,
        was_stopped: false,
        shape: *shape,
    };
    let mut rest = script;
    while let [verb, who, length, tail @ ..] = rest {
        let (bytes, next) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = next;
        world.step(*verb, *who, bytes);
        if world.is_over {
            return;
        }
    }
    world.end();
    assert!(world.is_over || !world.is_ending, "a client is refused for ever");
    if world.was_stopped {
        return;
    }
    assert_eq!((shared.ledger.clients(), shared.ledger.held_bytes()), (0, 0), "still accounted");
    assert_eq!(world.worker.remains(), [], "not forgotten");
});
