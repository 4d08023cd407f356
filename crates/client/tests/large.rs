//! Large requests and replies beside small ones. The node withholds the rest of a large reply until the test sends it, so nothing here
//! depends on how long anything takes.

use respool_client::{Client, Config, Error, ErrorKind, cmd};
use respool_testkit::{Act, Address, FakeBackend, Received, RedisServer, Rng, wait_until};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Long enough for whatever a slow machine does.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of the large value.
const LARGE: usize = 300_000;

/// What is sent of a reply before the rest is withheld: more than is read at a time.
const SENT_AT_ONCE: usize = 100_000;

fn large_reply() -> Vec<u8> {
    let value: Vec<u8> = (0..LARGE).map(|place| b'a' + (place % 23) as u8).collect();
    [format!("${LARGE}\r\n").as_bytes(), &value, b"\r\n"].concat()
}

/// A node whose key `big` has a large value, of which it withholds the end once it is told to.
struct Node {
    backend: FakeBackend,
    withholds: Arc<AtomicBool>,
    /// How often it has begun to do so.
    withheld: Arc<AtomicUsize>,
    port: Arc<OnceLock<u16>>,
}

impl Node {
    fn start(other: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Self {
        let (withholds, port) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let (is_withholding, own_port) = (Arc::clone(&withholds), Arc::clone(&port));
        let withheld = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&withheld);
        let backend = FakeBackend::start(move |request| match (&*request.command(), request.key()) {
            ("GET", b"big") if is_withholding.load(Ordering::SeqCst) => {
                counted.fetch_add(1, Ordering::SeqCst);
                Act::Skip
            }
            ("GET", b"big") => Act::Bytes(large_reply()),
            ("CLUSTER", _) => {
                let port = own_port.get().unwrap();
                let node = format!("*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{port:040}\r\n");
                Act::Bytes(format!("*1\r\n*3\r\n:0\r\n:16383\r\n{node}").into_bytes())
            }
            _ => other(request),
        });
        let backend = backend.unwrap();
        let Address::Tcp(address) = backend.address() else { panic!("no TCP") };
        port.set(address.port()).unwrap();
        Self { backend, withholds, withheld, port }
    }

    fn config(&self, scheme: &str) -> Config {
        let url = format!("{scheme}://127.0.0.1:{}", self.port.get().unwrap());
        Config::from_url(&url).unwrap().deadline(Some(PATIENCE))
    }

    fn client(&self) -> Client {
        Client::with_config(self.config("redis"))
    }

    /// The connections by which this was asked for, in order.
    fn asked(&self, command: &str, key: &[u8]) -> Vec<usize> {
        let is_it = |request: &&Received| request.command() == command && request.key() == key;
        self.backend.received().iter().filter(is_it).map(|request| request.connection).collect()
    }

    /// Sends the first part of the large reply that it withholds, which it had done so often before. Returns the connection.
    fn begin_large_reply(&self, before: usize) -> usize {
        let is_withheld = || Ok(self.withheld.load(Ordering::SeqCst) > before);
        wait_until("the reply is withheld", PATIENCE, is_withheld).unwrap();
        let connection = *self.asked("GET", b"big").last().unwrap();
        self.backend.blurt_on(connection, &large_reply()[..SENT_AT_ONCE]);
        connection
    }

    /// Waits until it has been asked so often.
    fn wait_for(&self, command: &str, key: &[u8], count: usize) {
        let is_asked = || Ok(self.asked(command, key).len() >= count);
        wait_until("the node is asked", PATIENCE, is_asked).unwrap();
    }
}

fn get(client: &Client, key: &str) -> Result<Vec<u8>, Error> {
    client.call(cmd("GET").key(key)).wait()
}

/// Reads the large value until it comes by another connection than small ones.
fn learn(node: &Node, client: &Client) {
    let has_learnt = || {
        assert_eq!(get(client, "big").unwrap().len(), LARGE);
        get(client, "k").unwrap();
        Ok(node.asked("GET", b"big").last() != node.asked("GET", b"k").last())
    };
    wait_until("there is a second connection", PATIENCE, has_learnt).unwrap();
}

#[test]
fn small_calls_do_not_wait_behind_a_large_reply() {
    for scheme in ["redis", "redis+cluster"] {
        let node = Node::start(|_| Act::Usual);
        let client = Client::with_config(node.config(scheme));
        learn(&node, &client);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for is_task in [false, true] {
            node.withholds.store(true, Ordering::SeqCst);
            let before = node.asked("GET", b"big").len();
            let withheld = node.withheld.load(Ordering::SeqCst);
            let other = client.clone();
            let large = thread::spawn(move || {
                let call = other.call::<Vec<u8>>(cmd("GET").key("big"));
                let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                if is_task { runtime().block_on(call) } else { call.wait() }
            });
            node.wait_for("GET", b"big", before + 1);
            let connection = node.begin_large_reply(withheld);
            for key in ["a", "b", "c"] {
                let expected = format!("value-of-{key}").into_bytes();
                assert_eq!(get(&client, key).unwrap(), expected);
                let found: Vec<u8> = runtime.block_on(async { client.call(cmd("GET").key(key)).await }).unwrap();
                assert_eq!(found, expected);
            }
            assert!(!large.is_finished());
            node.withholds.store(false, Ordering::SeqCst);
            node.backend.blurt_on(connection, &large_reply()[SENT_AT_ONCE..]);
            let value = large.join().unwrap().unwrap();
            assert_eq!(value[..], large_reply()[format!("${LARGE}\r\n").len()..][..LARGE]);
        }
    }
}

#[test]
fn a_reader_of_a_large_reply_lets_other_tasks_run() {
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    client.call::<()>(cmd("SET").key("big").arg(vec![b'v'; 64 << 20].as_slice())).wait().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let value: bytes::Bytes = client.call(cmd("GET").key("big")).await.unwrap();
        assert_eq!(value.len(), 64 << 20);
        // It is read by a thousand reads, however quickly it comes.
        assert!(turns.load(Ordering::Relaxed) > 100, "{turns:?}");
        other.abort();
    });
}

#[test]
fn a_large_request_goes_by_the_second_connection() {
    let node = Node::start(|_| Act::Usual);
    let client = node.client();
    let value = bytes::Bytes::from(vec![b'v'; LARGE]);
    let goes_beside = || {
        client.call::<()>(cmd("SET").key("big").arg(&value)).wait()?;
        client.call::<()>(cmd("SET").key("k").arg("v")).wait()?;
        Ok::<_, Error>(node.asked("SET", b"big").last() != node.asked("SET", b"k").last())
    };
    wait_until("a request goes beside", PATIENCE, || goes_beside().map_err(std::io::Error::other)).unwrap();
    // Small ones that are large together.
    let part = vec![b'v'; LARGE / 100];
    let batch = (0..100).map(|_| cmd("SET").key("part").arg(part.as_slice()));
    client.batch(batch).wait().unwrap();
    assert!(node.asked("SET", b"part").iter().all(|connection| Some(connection) == node.asked("SET", b"big").last()));
    assert_eq!(client.stats().connections, 2);
}

#[test]
fn a_key_whose_value_became_small_is_read_with_the_others() {
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    let by = |key: &str| {
        // The connection of a request is seen by what the second one has been asked.
        let before = client.stats().large;
        client.call::<Option<bytes::Bytes>>(cmd("GET").key(key)).wait().unwrap();
        client.stats().large - before
    };
    client.call::<()>(cmd("SET").key("page").arg(vec![b'v'; LARGE].as_slice())).wait().unwrap();
    wait_until("it goes beside", PATIENCE, || Ok(by("page") == 1)).unwrap();
    client.call::<()>(cmd("SET").key("page").arg("short")).wait().unwrap();
    assert_eq!(by("other"), 0);
    wait_until("it goes with the others", PATIENCE, || Ok(by("page") == 0)).unwrap();
    assert_eq!(by("page"), 0);
}

#[test]
fn what_one_caller_awaits_is_executed_in_order() {
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let work = |caller: u64, is_task: bool| {
        let client = client.clone();
        async move {
            let mut rng = Rng::new(caller);
            for turn in 0..100_u8 {
                let size = if rng.below(3) == 0 { LARGE } else { 10 };
                let (key, value) = (format!("key:{caller}"), bytes::Bytes::from(vec![turn; size]));
                let set = client.call::<()>(cmd("SET").key(&key).arg(&value));
                let get = client.call::<bytes::Bytes>(cmd("GET").key(&key));
                let found = if is_task { set.await.and(get.await) } else { set.wait().and_then(|()| get.wait()) };
                assert_eq!(found.unwrap(), value);
            }
        }
    };
    thread::scope(|scope| {
        for caller in 0..2 {
            let work = work(caller, false);
            scope.spawn(|| tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work));
        }
        runtime.block_on(async {
            let tasks: Vec<_> = (2..6).map(|caller| tokio::spawn(work(caller, true))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
    let stats = client.stats();
    assert_eq!((stats.connections, stats.in_flight, stats.callers), (2, 0, 0), "{stats:?}");
}

#[test]
fn a_server_that_takes_one_connection_answers_large_calls_by_it() {
    let full = FakeBackend::start(|request| match (request.connection, &*request.command()) {
        (0, "GET") => Act::Bytes(large_reply()),
        (0, _) => Act::Usual,
        _ => Act::BytesThenClose(b"-ERR max number of clients reached\r\n".to_vec()),
    });
    let full = full.unwrap();
    let Address::Tcp(address) = full.address() else { panic!("no TCP") };
    let client = Client::with_config(Config::from_url(&address.to_string()).unwrap().deadline(Some(PATIENCE)));
    let is_refused = || {
        assert_eq!(get(&client, "big").unwrap().len(), LARGE);
        Ok(full.connections() > 1)
    };
    wait_until("a second connection is refused", PATIENCE, is_refused).unwrap();
    for _ in 0..20 {
        assert_eq!(get(&client, "big").unwrap().len(), LARGE);
    }
    assert_eq!(client.stats().connections, 1);
}

#[test]
fn without_a_limit_everything_goes_by_one_connection() {
    let node = Node::start(|_| Act::Usual);
    let client = Client::with_config(node.config("redis").large(None));
    for _ in 0..20 {
        get(&client, "big").unwrap();
        client.call::<()>(cmd("SET").key("big").arg(vec![b'v'; LARGE].as_slice())).wait().unwrap();
    }
    assert_eq!((node.backend.connections(), client.stats().connections), (1, 1));
}

#[test]
fn a_closed_client_ends_large_calls() {
    let node = Node::start(|_| Act::Usual);
    let client = node.client();
    learn(&node, &client);
    node.withholds.store(true, Ordering::SeqCst);
    let before = node.asked("GET", b"big").len();
    let large = thread::spawn({
        let client = client.clone();
        move || get(&client, "big")
    });
    node.wait_for("GET", b"big", before + 1);
    client.close();
    assert!(matches!(large.join().unwrap().unwrap_err().kind(), ErrorKind::Closed));
    assert!(matches!(get(&client, "big").unwrap_err().kind(), ErrorKind::Closed));
}

#[test]
fn a_large_call_whose_connection_is_lost_is_made_again() {
    let breaks = Arc::new(AtomicBool::new(false));
    let breaking = Arc::clone(&breaks);
    let node = FakeBackend::start(move |request| match &*request.command() {
        "GET" if request.key() != b"big" => Act::Usual,
        "GET" if breaking.swap(false, Ordering::SeqCst) => Act::BytesThenClose(large_reply()[..SENT_AT_ONCE].to_vec()),
        "GET" => Act::Bytes(large_reply()),
        _ => Act::Usual,
    });
    let node = node.unwrap();
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    let client = Client::with_config(Config::from_url(&address.to_string()).unwrap().deadline(Some(PATIENCE)));
    let has_two = || Ok(get(&client, "big").is_ok() && client.stats().connections == 2);
    wait_until("there is a second connection", PATIENCE, has_two).unwrap();
    for _ in 0..5 {
        breaks.store(true, Ordering::SeqCst);
        assert_eq!(get(&client, "big").unwrap().len(), LARGE);
        assert_eq!(get(&client, "k").unwrap(), b"value-of-k");
    }
    assert!(client.stats().connections > 2);
}

#[test]
fn a_large_call_goes_by_the_first_while_the_second_is_refused() {
    let (breaks, is_full) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (breaking, refusing) = (Arc::clone(&breaks), Arc::clone(&is_full));
    let node = FakeBackend::start(move |request| match &*request.command() {
        "GET" if request.key() == b"big" && breaking.swap(false, Ordering::SeqCst) => {
            refusing.store(true, Ordering::SeqCst);
            Act::BytesThenClose(large_reply()[..SENT_AT_ONCE].to_vec())
        }
        "GET" if request.key() == b"big" => Act::Bytes(large_reply()),
        "GET" => Act::Usual,
        _ if request.connection > 1 && refusing.load(Ordering::SeqCst) => {
            Act::BytesThenClose(b"-ERR max number of clients reached\r\n".to_vec())
        }
        _ => Act::Usual,
    });
    let node = node.unwrap();
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    for is_task in [false, true] {
        is_full.store(false, Ordering::SeqCst);
        let client = Client::with_config(Config::from_url(&address.to_string()).unwrap().deadline(Some(PATIENCE)));
        let has_two = || Ok(get(&client, "big").is_ok() && client.stats().large > 0);
        wait_until("there is a second connection", PATIENCE, has_two).unwrap();
        breaks.store(true, Ordering::SeqCst);
        let began = std::time::Instant::now();
        let call = client.call::<Vec<u8>>(cmd("GET").key("big"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let value = if is_task { runtime.block_on(call) } else { call.wait() };
        assert_eq!(value.unwrap().len(), LARGE);
        assert!(is_full.load(Ordering::SeqCst) && began.elapsed() < PATIENCE / 2);
    }
}
