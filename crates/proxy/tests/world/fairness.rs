//! Who waits first is served first, in whatever order the connections come to be on which they wait; and however many wait,
//! all others are served between any few of them.

use super::support::{NoEngine, config, settle};
use respool_connection::{Action, ConnId, Machine, Now, Peer, Service, WorkerId};
use respool_proxy::{Budgets, Config, LaneLimits, ProcessBudget, ProcessFacts, Shared, Worker, WorkerSetup, limits};
use respool_wire::encode_request;
use std::sync::Arc;

/// A worker with one node, whose dials are answered by hand.
struct Bench {
    worker: Worker<NoEngine>,
    now_us: u64,
    dialled: Vec<ConnId>,
    /// What has been written, by connection.
    written: Vec<(ConnId, String)>,
}

impl Bench {
    fn new(connections: usize) -> Self {
        let config = config(1, 1);
        // No request is answered here, and clients still have room for many.
        let budgets = Budgets { client_output_soft: 4 << 20, ..config.budgets };
        let lanes = LaneLimits { blocking_max: connections, ..LaneLimits::default() };
        let config = Config { lanes, budgets, ..config };
        let worker = Worker::new(WorkerSetup {
            config: Arc::new(config),
            shared: Arc::new(Shared::new(1, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default()))),
            number: WorkerId::FIRST,
            engine: None,
            entropy: 1,
        });
        Self { worker, now_us: 1_000_000, dialled: Vec::new(), written: Vec::new() }
    }

    /// Time passes before the next turn, which is not late.
    fn wait(&mut self, us: u64) {
        self.now_us += us;
        self.worker.skip_time();
    }

    /// One turn, in which `events` happen.
    fn turn(&mut self, events: impl FnOnce(&mut Worker<NoEngine>)) {
        self.now_us += 10;
        self.worker.begin_turn(Now::of_clocks(self.now_us, self.now_us));
        events(&mut self.worker);
        self.worker.end_turn();
        settle(
            self,
            |this| &mut this.worker,
            |this, action| {
                if let Action::Dial { conn, .. } = action {
                    this.dialled.push(conn);
                }
            },
            |this, conn| {
                let bytes = this.worker.output(conn).to_vec();
                this.worker.handle_written(conn, bytes.len());
                this.written.push((conn, String::from_utf8_lossy(&bytes).into_owned()));
            },
        );
    }

    fn say(&mut self, conn: ConnId, bytes: &[u8]) {
        self.turn(|worker| {
            let buffer = worker.read_buffer(conn).expect("it is read");
            buffer[..bytes.len()].copy_from_slice(bytes);
            worker.handle_read(conn, bytes.len());
        });
    }

    fn accept(&mut self) -> ConnId {
        let mut accepted = None;
        self.turn(|worker| accepted = worker.handle_accept(Peer::default()).ok());
        accepted.expect("there is room")
    }

    fn ask(&mut self, client: ConnId, words: &[&str]) {
        let mut request = Vec::new();
        encode_request(&mut request, words.iter().map(|word| word.as_bytes()));
        self.say(client, &request);
    }

    /// A client that waits for this key.
    fn waits_for(&mut self, key: &str) -> ConnId {
        let client = self.accept();
        self.ask(client, &["BLPOP", key, "0"]);
        client
    }

    /// How often something was said to a peer, or to all clients, since the beginning.
    fn count(&self, to: impl Fn(ConnId) -> bool, words: &str) -> usize {
        self.written.iter().filter(|(conn, _)| to(*conn)).map(|(_, said)| said.matches(words).count()).sum()
    }

    /// What has been tried on that connection since then was in vain. Gives how many requests that were.
    fn refuse_tries(&mut self, shared: ConnId, since: usize) -> usize {
        let tries = self.count(|conn| conn == shared, "EXEC") - since;
        if tries > 0 {
            self.say(shared, &b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n".repeat(tries));
        }
        tries
    }

    /// A crowd that waits although there is only one connection to wait on, each for its own key and as long as is said.
    /// Gives the connection on which they are tried.
    fn crowd(&mut self, count: usize, seconds: &str) -> ConnId {
        let first = self.waits_for("taken");
        self.connect(self.dialled[0], 1);
        assert!(self.key_on(self.dialled[0]).is_some(), "{first:?} waits at the node");
        let mut shared = None;
        // With nothing between MULTI and EXEC, to see whether the node takes it.
        let mut tried = 1;
        for number in 0..count {
            let client = self.accept();
            self.ask(client, &["BLPOP", &format!("key:{number}"), seconds]);
            let shared = *shared.get_or_insert_with(|| {
                let dialled = self.dialled[1];
                self.turn(|worker| worker.handle_connected(dialled));
                self.say(dialled, b"+PONG\r\n");
                self.say(dialled, b"+OK\r\n*0\r\n");
                dialled
            });
            tried += self.refuse_tries(shared, tried);
        }
        shared.expect("the crowd is not empty")
    }

    /// A dial succeeds, and the node answers what it is asked first.
    fn connect(&mut self, conn: ConnId, id: usize) {
        self.turn(|worker| worker.handle_connected(conn));
        self.say(conn, b"+PONG\r\n");
        self.say(conn, format!(":{id}\r\n").as_bytes());
    }

    /// The key that is waited for on a connection.
    fn key_on(&self, conn: ConnId) -> Option<&str> {
        let lines = self.written.iter().filter(|(to, _)| *to == conn).flat_map(|(_, said)| said.split("\r\n"));
        lines.skip_while(|line| *line != "BLPOP").nth(2)
    }
}

#[test]
fn the_first_ready_connection_serves_the_first_request() {
    let mut bench = Bench::new(3);
    for key in ["first", "second", "third"] {
        bench.waits_for(key);
    }
    let dialled = bench.dialled.clone();
    assert_eq!(dialled.len(), 3, "one for each");
    for (id, conn) in dialled.iter().rev().enumerate() {
        assert_eq!(bench.key_on(*conn), None);
        bench.connect(*conn, id);
    }
    let keys: Vec<_> = dialled.iter().rev().map(|conn| bench.key_on(*conn)).collect();
    assert_eq!(keys, [Some("first"), Some("second"), Some("third")]);
}

#[test]
fn later_requests_do_not_overtake_on_a_ready_connection() {
    let mut bench = Bench::new(2);
    bench.waits_for("first");
    let there = bench.dialled[0];
    bench.connect(there, 1);
    bench.waits_for("second");
    bench.waits_for("third");
    // The connection that is there becomes free while another is being dialled.
    bench.say(there, b"*2\r\n$5\r\nfirst\r\n$1\r\nv\r\n");
    let keys: Vec<&str> = bench
        .written
        .iter()
        .filter(|(conn, said)| *conn == there && said.contains("BLPOP"))
        .flat_map(|(_, said)| said.split("\r\n"))
        .filter(|line| ["first", "second", "third"].contains(line))
        .collect();
    assert_eq!(keys, ["first", "second"]);
}

/// Both connections become free at once: what is written first reaches the node first.
#[test]
fn who_came_first_is_written_first_where_several_are_sent_on() {
    let mut bench = Bench::new(2);
    bench.waits_for("one");
    bench.connect(bench.dialled[0], 1);
    bench.waits_for("two");
    bench.connect(bench.dialled[1], 2);
    for key in ["first", "second"] {
        bench.waits_for(key);
    }
    let lanes = [bench.dialled[0], bench.dialled[1]];
    for order in [lanes, [lanes[1], lanes[0]]] {
        let since = bench.written.len();
        let reply = b"*2\r\n$1\r\nk\r\n$1\r\nv\r\n";
        bench.turn(|worker| {
            for lane in order {
                let buffer = worker.read_buffer(lane).expect("it is read");
                buffer[..reply.len()].copy_from_slice(reply);
                worker.handle_read(lane, reply.len());
            }
        });
        let sent = bench.written[since..].iter().filter(|(conn, said)| lanes.contains(conn) && said.contains("BLPOP"));
        let sent: Vec<bool> = sent.map(|(_, said)| said.contains("first")).collect();
        assert_eq!(sent, [true, false]);
        for key in ["first", "second"] {
            bench.waits_for(key);
        }
    }
}

#[test]
fn who_came_first_is_tried_first() {
    let mut bench = Bench::new(1);
    let look = bench.crowd(1, "60");
    // Others come one by one. Each is tried when it comes, and then together with those who are there.
    for key in ["key:1", "key:2", "key:3"] {
        let mut since = bench.written.len();
        bench.waits_for(key);
        for round in 0..4 {
            let said = bench.written[since..].iter().filter(|(conn, _)| *conn == look).map(|(_, said)| said.as_str());
            let said: String = said.collect();
            let keys: Vec<&str> = said.split("\r\n").filter(|line| line.starts_with("key:")).collect();
            assert!(keys.is_sorted() && (round == 0) == (keys.len() == 1), "round {round}: {keys:?}");
            bench.say(look, &b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n".repeat(keys.len()));
            since = bench.written.len();
            if round < 3 {
                bench.wait(limits::TRY_US);
                bench.turn(|_| ());
            }
        }
    }
}

/// The keys of the requests tried on a connection since `since`.
fn tried(bench: &Bench, look: ConnId, since: usize) -> Vec<&str> {
    let said = bench.written[since..].iter().filter(|(conn, _)| *conn == look).flat_map(|(_, said)| said.split("\r\n"));
    said.filter(|line| ["a", "b", "key:0"].contains(line)).collect()
}

const TRIED_IN_VAIN: &str = "+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n";
const SERVED: &str = "+OK\r\n+QUEUED\r\n*1\r\n*2\r\n$1\r\na\r\n$1\r\nv\r\n";

#[test]
fn what_comes_goes_to_the_client_that_waited_longest() {
    let mut bench = Bench::new(1);
    let look = bench.crowd(1, "60");
    let first = bench.waits_for("a");
    bench.say(look, TRIED_IN_VAIN.as_bytes());
    // An element may have been added by now: later requests must not take it.
    let since = bench.written.len();
    let (second, third) = (bench.waits_for("a"), bench.waits_for("a"));
    assert_eq!(tried(&bench, look, since), [""; 0]);
    bench.wait(limits::TRY_US);
    bench.turn(|_| ());
    assert_eq!(tried(&bench, look, since), ["key:0", "a"]);
    let since = bench.written.len();
    bench.say(look, [TRIED_IN_VAIN, SERVED].concat().as_bytes());
    assert_eq!((bench.count(|conn| conn == first, "v"), bench.count(|conn| conn == second, "v")), (1, 0));
    assert_eq!(tried(&bench, look, since), ["a"], "there may be another one, for the second");
    bench.say(look, SERVED.as_bytes());
    bench.say(look, TRIED_IN_VAIN.as_bytes());
    assert_eq!((bench.count(|conn| conn == second, "v"), bench.count(|conn| conn == third, "v")), (1, 0));
    // A request for another key as well does not wait for ever behind the first.
    let (since, other) = (bench.written.len(), bench.accept());
    bench.ask(other, &["BLPOP", "a", "b", "0"]);
    assert_eq!(tried(&bench, look, since), ["a", "b"]);
    bench.say(look, TRIED_IN_VAIN.as_bytes());
}

#[test]
fn a_waiter_whose_time_ends_is_tried_behind_older_ones() {
    let mut bench = Bench::new(1);
    let look = bench.crowd(1, "60");
    let (first, second) = (bench.waits_for("a"), bench.accept());
    bench.say(look, TRIED_IN_VAIN.as_bytes());
    bench.ask(second, &["BLPOP", "a", "0.05"]);
    let since = bench.written.len();
    bench.wait(60_000);
    bench.turn(|_| ());
    let tries = tried(&bench, look, since);
    assert_eq!(tries.iter().filter(|key| **key == "a").count(), 2, "{tries:?}");
    let replies: Vec<&str> = tries
        .iter()
        .enumerate()
        .map(|(at, key)| match *key {
            "a" if !tries[..at].contains(&"a") => SERVED,
            _ => TRIED_IN_VAIN,
        })
        .collect();
    bench.say(look, replies.concat().as_bytes());
    assert_eq!((bench.count(|conn| conn == first, "v"), bench.count(|conn| conn == second, "*-1")), (1, 1));
}

/// More than are answered, or tried, in one turn.
const CROWD: usize = 400;

#[test]
fn many_timeouts_are_told_in_slices_and_others_served_between() {
    let mut bench = Bench::new(1);
    bench.crowd(CROWD, "60");
    let other = bench.accept();
    bench.ask(other, &["GET", "first"]);
    let shared = bench.dialled[2];
    bench.turn(|worker| worker.handle_connected(shared));
    bench.say(shared, b"+PONG\r\n");
    bench.say(shared, b"$-1\r\n");
    bench.wait(61_000_000);
    let (mut told, mut turns) = (0, 0);
    while told < CROWD {
        let before = bench.count(|conn| conn == shared, "$3\r\nGET\r\n");
        bench.ask(other, &["GET", "plain"]);
        assert_eq!(bench.count(|conn| conn == shared, "$3\r\nGET\r\n"), before + 1, "it is asked for in this turn");
        let now = bench.count(|conn| !conn.is_upstream(), "*-1\r\n");
        assert!((1..=limits::TIMEOUTS_PER_TURN_MAX).contains(&(now - told)), "{} in one turn", now - told);
        told = now;
        turns += 1;
        let is_due = bench.worker.next_wakeup_us().is_some_and(|at| at <= bench.now_us);
        assert!(told == CROWD || is_due, "those who are left are told at once");
    }
    assert_eq!(turns, CROWD.div_ceil(limits::TIMEOUTS_PER_TURN_MAX));
}

#[test]
fn a_crowd_is_tried_a_few_at_a_time_and_each_comes_round() {
    let mut bench = Bench::new(1);
    let shared = bench.crowd(CROWD, "0");
    let mut tried = bench.count(|conn| conn == shared, "EXEC");
    let begun = bench.written.len();
    let all = |bench: &Bench| -> usize {
        let said: String = bench.written[begun..].iter().map(|(_, said)| said.as_str()).collect();
        (0..CROWD).filter(|number| said.contains(&format!("\r\nkey:{number}\r\n"))).count()
    };
    let begun_us = bench.now_us;
    while all(&bench) < CROWD {
        bench.wait(limits::TRY_US);
        bench.turn(|_| {});
        let now = bench.count(|conn| conn == shared, "EXEC");
        assert!((1..=limits::TRIES_AT_ONCE).contains(&(now - tried)), "{} at once", now - tried);
        // Time alone does not bring more: a node that is slow has enough to do.
        bench.wait(limits::TRY_US);
        bench.turn(|_| {});
        assert_eq!(bench.count(|conn| conn == shared, "EXEC"), now);
        tried += bench.refuse_tries(shared, tried);
    }
    let rounds = (bench.now_us - begun_us) / (2 * limits::TRY_US);
    assert!(rounds <= CROWD.div_ceil(limits::TRIES_AT_ONCE) as u64 + 2, "{rounds} rounds");
}

#[test]
fn a_request_tried_at_its_timeout_is_told_the_outcome() {
    for (reply, heard) in
        [("*1\r\n*-1\r\n", "*-1\r\n"), ("*1\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n", "*2\r\n$1\r\nk\r\n$1\r\nv\r\n")]
    {
        let mut bench = Bench::new(1);
        let shared = bench.crowd(1, "0");
        let client = bench.accept();
        bench.ask(client, &["BLPOP", "k", "0.1"]);
        bench.wait(200_000);
        bench.turn(|_| {});
        assert!(!bench.written.iter().any(|(to, _)| *to == client), "nothing yet");
        assert!(bench.worker.next_wakeup_us().is_none_or(|at| at > bench.now_us), "nothing is to be done meanwhile");
        bench.say(shared, b"+OK\r\n+QUEUED\r\n");
        bench.say(shared, reply.as_bytes());
        let said: String =
            bench.written.iter().filter(|(to, _)| *to == client).map(|(_, said)| said.as_str()).collect();
        assert_eq!(said, heard);
    }
}
