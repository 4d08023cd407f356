//! Who waits first is served first, in whatever order the connections come to be on which they wait.

use super::support::{NoEngine, config};
use respool_connection::{Action, ConnId, Machine, Now, Peer};
use respool_proxy::{About, Config, LaneLimits, Ledger, Shared, Worker, WorkerSetup};
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
        let config =
            Config { lanes: LaneLimits { blocking_max: connections, ..LaneLimits::default() }, ..config(1, 1) };
        let worker = Worker::new(WorkerSetup {
            config: Arc::new(config),
            shared: Arc::new(Shared::new(1, 0, About::default(), Arc::new(Ledger::default()))),
            number: 0,
            engine: None,
            entropy: 1,
        });
        Self { worker, now_us: 1_000_000, dialled: Vec::new(), written: Vec::new() }
    }

    /// One turn, in which `events` happen.
    fn turn(&mut self, events: impl FnOnce(&mut Worker<NoEngine>)) {
        self.now_us += 10;
        self.worker.begin_turn(Now { mono_us: self.now_us, unix_us: self.now_us });
        events(&mut self.worker);
        self.worker.end_turn();
        loop {
            let mut is_settled = true;
            while let Some(action) = self.worker.poll_action() {
                is_settled = false;
                if let Action::Dial { conn, .. } = action {
                    self.dialled.push(conn);
                }
            }
            while let Some(conn) = self.worker.poll_output() {
                is_settled = false;
                let bytes = self.worker.output(conn).to_vec();
                self.worker.handle_written(conn, bytes.len());
                self.written.push((conn, String::from_utf8_lossy(&bytes).into_owned()));
            }
            if is_settled {
                return;
            }
        }
    }

    fn say(&mut self, conn: ConnId, bytes: &[u8]) {
        self.turn(|worker| {
            let buffer = worker.read_buffer(conn).expect("it is read");
            buffer[..bytes.len()].copy_from_slice(bytes);
            worker.handle_read(conn, bytes.len());
        });
    }

    /// A client that waits for this key.
    fn waits_for(&mut self, key: &str) {
        let mut accepted = None;
        self.turn(|worker| accepted = worker.handle_accept(Peer::default()).ok());
        let mut request = Vec::new();
        encode_request(&mut request, ["BLPOP", key, "0"].iter().map(|word| word.as_bytes()));
        self.say(accepted.expect("there is room"), &request);
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
fn the_first_connection_that_is_ready_is_for_whoever_came_first() {
    let mut bench = Bench::new(3);
    ["first", "second", "third"].into_iter().for_each(|key| bench.waits_for(key));
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
fn whoever_comes_later_does_not_overtake_on_a_connection_that_is_there() {
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
