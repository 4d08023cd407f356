//! Against nodes that only say that they are a cluster, and redirect requests as a test says: what is sent again, and what is not.

use respool_client::{Client, Config, ErrorKind, Event, Observer, Outcome, Overload, Reads, Reply, ServerError, cmd};
use respool_testkit::{Act, Address, FakeBackend, Gate, Received, wait_until};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Long enough for whatever a slow machine does.
const DEADLINE: Duration = Duration::from_secs(60);

/// What `CLUSTER SLOTS` answers: first slot, last slot, ports of the primary and of the replicas.
type Shards = Vec<(u16, u16, Vec<u16>)>;

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn slots(shards: &Shards) -> Act {
    let mut text = format!("*{}\r\n", shards.len());
    for (first, last, ports) in shards {
        text += &format!("*{}\r\n:{first}\r\n:{last}\r\n", 2 + ports.len());
        for port in ports {
            text += &format!("*3\r\n{}:{port}\r\n{}", bulk("127.0.0.1"), bulk(&format!("{port:040}")));
        }
    }
    Act::Bytes(text.into_bytes())
}

fn port(node: &FakeBackend) -> u16 {
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    address.port()
}

/// What the nodes say the cluster looks like.
#[derive(Clone, Default)]
struct Map(Arc<Mutex<Shards>>);

impl Map {
    fn node(&self, rule: impl Fn(&Received) -> Act + Send + Sync + 'static) -> FakeBackend {
        let map = self.clone();
        FakeBackend::start(move |request| match &*request.command() {
            "CLUSTER" => slots(&map.0.lock().unwrap()),
            "ASKING" | "READONLY" => Act::Bytes(b"+OK\r\n".to_vec()),
            _ => rule(request),
        })
        .unwrap()
    }

    fn is(&self, shards: Shards) {
        *self.0.lock().unwrap() = shards;
    }
}

fn config(node: &FakeBackend) -> Config {
    let url = format!("redis+cluster://127.0.0.1:{}", port(node));
    Config::from_url(&url).unwrap().deadline(Some(DEADLINE))
}

/// The names and keys of what a node was asked to do by callers.
fn executed(node: &FakeBackend) -> Vec<String> {
    let name = |request: &Received| format!("{} {}", request.command(), String::from_utf8_lossy(request.key()));
    let is_own = |request: &&Received| !matches!(&*request.command(), "CLUSTER" | "CLIENT" | "ASKING" | "READONLY");
    node.received().iter().filter(is_own).map(name).collect()
}

fn texts(replies: Vec<Result<Reply, ServerError>>) -> Vec<String> {
    let text = |reply: Result<Reply, ServerError>| match reply {
        Ok(Reply::Integer(number)) => number.to_string(),
        Ok(Reply::Status(text) | Reply::Bulk(text)) => String::from_utf8_lossy(&text).into_owned(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.code().to_owned(),
    };
    replies.into_iter().map(text).collect()
}

fn ok() -> Act {
    Act::Bytes(b"+OK\r\n".to_vec())
}

/// Does something the first time, and `later` from then on.
fn once(first: &'static str, later: Act) -> impl Fn() -> Act + Send + Sync {
    let count = AtomicUsize::new(0);
    move || match count.fetch_add(1, Ordering::Relaxed) {
        0 => Act::Bytes(format!("-{first}\r\n").into_bytes()),
        _ => later.clone(),
    }
}

#[test]
fn a_dedicated_batch_that_ran_in_part_is_not_sent_again() {
    let map = Map::default();
    let gone = once("TRYAGAIN on its way", Act::Usual);
    let node = map.node(move |request| match &*request.command() {
        "GET" => gone(),
        "INCR" => Act::Bytes(b":1\r\n".to_vec()),
        _ => Act::Usual,
    });
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node));
    let batch = [cmd("GET").key("{t}gone"), cmd("INCR").key("{t}a")];
    assert_eq!(texts(client.batch(batch).dedicated().wait().unwrap()), ["TRYAGAIN", "1"]);
    assert_eq!(executed(&node), ["GET {t}gone", "INCR {t}a"]);
}

#[test]
fn a_dedicated_batch_that_wrote_nothing_is_sent_again() {
    let map = Map::default();
    let gone = once("TRYAGAIN on its way", ok());
    let node = map.node(move |request| match &*request.command() {
        "SET" => gone(),
        "WAIT" => Act::Bytes(b":0\r\n".to_vec()),
        _ => Act::Usual,
    });
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node));
    let batch = [cmd("SET").key("k").arg("v"), cmd("WAIT").arg(1).arg(1)];
    assert_eq!(texts(client.batch(batch).dedicated().wait().unwrap()), ["OK", "0"]);
}

#[test]
fn what_was_overtaken_in_its_slot_is_not_sent_again() {
    let map = Map::default();
    let split = once("TRYAGAIN on its way", ok());
    let node = map.node(move |request| match &*request.command() {
        "MSET" => split(),
        "SET" => ok(),
        _ => Act::Usual,
    });
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node));
    let batch = [cmd("MSET").arg(["{t}a", "1", "{t}b", "1"]), cmd("SET").key("{t}a").arg(2)];
    assert_eq!(texts(client.batch(batch).wait().unwrap()), ["TRYAGAIN", "OK"]);
    assert_eq!(executed(&node), ["MSET {t}a", "SET {t}a"]);
}

#[test]
fn what_overtakes_nothing_in_its_slot_is_sent_again() {
    let map = Map::default();
    let split = once("TRYAGAIN on its way", ok());
    let node = map.node(move |request| match &*request.command() {
        "MSET" => split(),
        "SET" => ok(),
        _ => Act::Usual,
    });
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node));
    let set = |key: &str| cmd("SET").key(key).arg(2);
    let batch = [set("{t}c"), cmd("MSET").arg(["{t}a", "1", "{t}b", "1"]), set("{u}a"), cmd("GET").key("{t}x")];
    assert_eq!(texts(client.batch(batch).wait().unwrap()), ["OK", "OK", "OK", "value-of-{t}x"]);
}

#[test]
fn no_replica_answers_a_batch_that_writes_whatever_the_policy() {
    let map = Map::default();
    let replica = map.node(|_| Act::Usual);
    let primary = map.node(|request| if request.command() == "SET" { ok() } else { Act::Usual });
    map.is(vec![(0, 16_383, vec![port(&primary), port(&replica)])]);
    let client = Client::with_config(config(&primary).reads(Reads::ForcePreferReplicas));
    for _ in 0..20 {
        client.batch([cmd("SET").key("k").arg("v"), cmd("GET").key("k")]).wait().unwrap();
    }
    assert_eq!(executed(&replica), [""; 0]);
}

#[test]
fn a_batch_of_which_a_part_was_executed_is_in_doubt() {
    let map = Map::default();
    let other = map.node(|request| if request.command() == "SET" { ok() } else { Act::Usual });
    let refused = "NOAUTH no";
    let node = FakeBackend::start(move |request| match &*request.command() {
        "HELLO" | "AUTH" => Act::Bytes(format!("-{refused}\r\n").into_bytes()),
        _ => Act::Close,
    })
    .unwrap();
    map.is(vec![(0, 8_191, vec![port(&other)]), (8_192, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&other));
    let keys = ["b", "a"];
    assert!(respool_route::cluster::slot_of(b"b") < 8_192 && respool_route::cluster::slot_of(b"a") >= 8_192);
    let batch = client.batch(keys.map(|key| cmd("SET").key(key).arg(1)));
    let error = batch.wait().unwrap_err();
    assert_eq!(executed(&other), ["SET b"]);
    assert_eq!(error.outcome(), Outcome::MaybeExecuted, "{error}");
}

/// A node at which a request for the list waits, as `unblocked` says when it is let go for the first time.
fn letting_go(map: &Map, unblocked: &'static str) -> FakeBackend {
    let pop = once(unblocked, Act::Bytes(b"*2\r\n$4\r\nlist\r\n$1\r\na\r\n".to_vec()));
    map.node(move |request| match &*request.command() {
        "BLPOP" => pop(),
        "CLIENT" if request.key() == b"ID" => Act::Bytes(b":7\r\n".to_vec()),
        _ => Act::Usual,
    })
}

#[test]
fn a_request_that_a_demoted_node_lets_go_is_made_again() {
    let map = Map::default();
    let node = letting_go(
        &map,
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    );
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node));
    let popped: Option<(String, String)> = client.call(cmd("BLPOP").key("list").arg(0)).wait().unwrap();
    assert_eq!(popped.unwrap().1, "a");
}

#[test]
fn a_request_that_an_operator_lets_go_is_not_made_again() {
    let map = Map::default();
    let node = letting_go(&map, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node));
    let error = client.call::<()>(cmd("BLPOP").key("list").arg(0)).wait().unwrap_err();
    assert_eq!(error.server().unwrap().code(), "UNBLOCKED");
    assert_eq!(executed(&node), ["BLPOP list"]);
}

#[test]
fn each_shard_is_asked_once_though_slots_move() {
    let map = Map::default();
    let gate = Gate::new();
    let (passes, asked) = (gate.clone(), AtomicUsize::new(0));
    let size = || Act::Bytes(b":2\r\n".to_vec());
    let target = map.node(move |request| if request.command() == "DBSIZE" { size() } else { Act::Usual });
    let to = port(&target);
    let source = map.node(move |request| match &*request.command() {
        "DBSIZE" if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
            passes.pass();
            Act::Close
        }
        "DBSIZE" => Act::Bytes(b":1\r\n".to_vec()),
        "WATCH" => Act::Bytes(format!("-MOVED 0 127.0.0.1:{to}\r\n").into_bytes()),
        _ => Act::Usual,
    });
    map.is(vec![(0, 8_191, vec![port(&source)]), (8_192, 16_383, vec![to])]);
    let client = Client::with_config(config(&source));
    let sizes = std::thread::spawn({
        let client = client.clone();
        move || texts(client.each_shard(cmd("DBSIZE")).wait().unwrap())
    });
    wait_until("the shard is asked", DEADLINE, || Ok(executed(&source).contains(&"DBSIZE ".to_owned()))).unwrap();
    // Its first slot goes to the other shard, and then its connection is lost.
    assert_eq!(respool_route::cluster::slot_of(b"06S"), 0);
    map.is(vec![(1, 8_191, vec![port(&source)]), (0, 0, vec![to]), (8_192, 16_383, vec![to])]);
    drop(client.watch("06S").wait().unwrap());
    gate.open();
    assert_eq!(sizes.join().unwrap(), ["1", "2"]);
    let count = |node| executed(node).iter().filter(|what| *what == "DBSIZE ").count();
    assert_eq!((count(&source), count(&target)), (2, 1));
}

/// Asks for the sizes of all shards, of which one goes over to the other while it is asked.
fn sizes_while_a_shard_empties(ask: impl Fn(&Client) -> Vec<String> + Send + 'static) -> Vec<String> {
    let map = Map::default();
    let gate = Gate::new();
    let passes = gate.clone();
    let target = map.node(|request| match &*request.command() {
        "DBSIZE" => Act::Bytes(b":2\r\n".to_vec()),
        _ => Act::Usual,
    });
    let to = port(&target);
    let source = map.node(move |request| match &*request.command() {
        "DBSIZE" => {
            passes.pass();
            Act::Close
        }
        "WATCH" => Act::Bytes(format!("-MOVED 0 127.0.0.1:{to}\r\n").into_bytes()),
        _ => Act::Usual,
    });
    map.is(vec![(0, 8_191, vec![port(&source)]), (8_192, 16_383, vec![to])]);
    let client = Client::with_config(config(&source));
    let sizes = std::thread::spawn({
        let client = client.clone();
        move || ask(&client)
    });
    wait_until("the shard is asked", DEADLINE, || Ok(executed(&source).contains(&"DBSIZE ".to_owned()))).unwrap();
    map.is(vec![(0, 16_383, vec![to])]);
    drop(client.watch("06S").wait().unwrap());
    let names = (0..).map(|number| format!("k{number}"));
    let other = names.into_iter().find(|name| (1..8_192).contains(&respool_route::cluster::slot_of(name.as_bytes())));
    let other = other.unwrap();
    let is_known = || {
        client.call::<Reply>(cmd("GET").key(&other)).wait().map_err(std::io::Error::other)?;
        Ok(executed(&target).contains(&format!("GET {other}")))
    };
    wait_until("all slots are known to have moved", DEADLINE, is_known).unwrap();
    gate.open();
    let sizes = sizes.join().unwrap();
    let count = |node| executed(node).iter().filter(|what| *what == "DBSIZE ").count();
    assert_eq!((count(&source), count(&target)), (1, 1));
    sizes
}

#[test]
fn a_shard_that_empties_meanwhile_is_not_asked_twice() {
    let each = |client: &Client| texts(client.each_shard(cmd("DBSIZE")).wait().unwrap());
    assert_eq!(sizes_while_a_shard_empties(each), ["2"]);
    let sum = |client: &Client| vec![client.call::<usize>(cmd("DBSIZE")).wait().unwrap().to_string()];
    assert_eq!(sizes_while_a_shard_empties(sum), ["2"]);
}

#[test]
fn a_node_that_has_left_the_cluster_is_not_waited_for() {
    let map = Map::default();
    let stays = map.node(|request| if request.command() == "CONFIG" { ok() } else { Act::Usual });
    let leaves = map.node(|_| Act::Usual);
    map.is(vec![(0, 16_383, vec![port(&stays), port(&leaves)])]);
    let client = Client::with_config(config(&stays).deadline(Some(DEADLINE)));
    client.call::<String>(cmd("GET").key("k")).wait().unwrap();
    // The client has not heard of it when it asks all nodes.
    map.is(vec![(0, 16_383, vec![port(&stays)])]);
    drop(leaves);
    client.call::<()>(cmd("CONFIG").arg("RESETSTAT")).wait().unwrap();
    assert_eq!(executed(&stays), ["GET k", "CONFIG RESETSTAT"]);
}

#[test]
fn a_replica_that_was_down_is_read_from_again() {
    let map = Map::default();
    let greeted = AtomicUsize::new(0);
    let replica = map.node(move |request| match &*request.command() {
        "HELLO" if greeted.fetch_add(1, Ordering::Relaxed) < 2 => Act::Close,
        _ => Act::Usual,
    });
    let primary = map.node(|_| Act::Usual);
    map.is(vec![(0, 16_383, vec![port(&primary), port(&replica)])]);
    let client = Client::with_config(config(&primary).reads(Reads::PreferReplicas));
    let is_read_from = || {
        client.call::<String>(cmd("GET").key("k")).wait().map_err(std::io::Error::other)?;
        Ok(executed(&replica).contains(&"GET k".to_owned()))
    };
    wait_until("the replica is read from", DEADLINE, is_read_from).unwrap();
}

#[test]
fn what_a_silent_replica_does_not_answer_its_primary_does() {
    let map = Map::default();
    let replica = map.node(|request| if request.command() == "GET" { Act::Skip } else { Act::Usual });
    let primary = map.node(|_| Act::Usual);
    map.is(vec![(0, 16_383, vec![port(&primary), port(&replica)])]);
    let client = Client::with_config(config(&primary).reads(Reads::PreferReplicas));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for key in ["thread", "task"] {
        let asked = || executed(&replica).contains(&format!("GET {key}"));
        while !asked() {
            let call = client.call::<String>(cmd("GET").key(key));
            let reply = if key == "task" { runtime.block_on(call) } else { call.wait() };
            assert_eq!(reply.unwrap(), format!("value-of-{key}"));
        }
        let batch = client.batch(["a", "b"].map(|name| cmd("GET").key(format!("{{{key}}}{name}"))));
        assert_eq!(texts(batch.wait().unwrap()), ["a", "b"].map(|name| format!("value-of-{{{key}}}{name}")));
    }
}

/// Keys of so many slots among these.
fn keys_in(slots: std::ops::Range<u16>, count: usize) -> Vec<String> {
    let names = (0..).map(|number| format!("k{number}"));
    let mut found = std::collections::BTreeMap::new();
    for name in names {
        let slot = respool_route::cluster::slot_of(name.as_bytes());
        if slots.contains(&slot) {
            found.entry(slot).or_insert(name);
        }
        if found.len() == count {
            break;
        }
    }
    found.into_values().collect()
}

/// Waits until nothing but what was given up waits for replies, and as many requests as that.
fn wait_for_in_flight(client: &Client, count: usize) {
    wait_until("requests wait for replies", DEADLINE, || Ok(client.stats().in_flight == count)).unwrap();
}

#[test]
fn each_part_of_a_split_request_counts_to_the_bound() {
    let map = Map::default();
    let node = map.node(|request| if request.command() == "MGET" { Act::Skip } else { Act::Usual });
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node).limits(4, 1 << 20).overload(Overload::Fail));
    client.call::<String>(cmd("GET").key("k")).wait().unwrap();
    wait_for_in_flight(&client, 0);
    let keys = keys_in(0..16_384, 7);
    // Three parts. They are given up, and count until they are answered, which they never are.
    let late = client.call::<()>(cmd("MGET").key(&keys[..3])).deadline(Duration::from_millis(200)).wait();
    assert!(late.unwrap_err().is_timeout());
    assert_eq!((client.stats().in_flight, client.stats().callers), (3, 0));
    // Two more would be five.
    let refused = client.call::<()>(cmd("MGET").key(&keys[3..5])).wait().unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Overloaded), "{refused:?}");
    assert_eq!((refused.outcome(), client.stats().in_flight), (Outcome::NotSent, 3));
    // One is four.
    let late = client.call::<()>(cmd("MGET").key(&keys[5..6])).deadline(Duration::from_millis(200)).wait();
    assert!(late.unwrap_err().is_timeout());
    let refused = client.call::<String>(cmd("GET").key(&keys[6])).wait().unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Overloaded), "{refused:?}");
    assert_eq!(client.stats().in_flight, 4);
}

#[test]
fn parts_wait_for_room_and_one_without_it_fails_the_whole() {
    let map = Map::default();
    let gate = Gate::new();
    let held = gate.clone();
    let full = map.node(move |request| match &*request.command() {
        "MGET" => {
            held.pass();
            Act::Bytes(b"*1\r\n$1\r\nv\r\n".to_vec())
        }
        "DEL" => Act::Bytes(b":1\r\n".to_vec()),
        _ => Act::Usual,
    });
    let free = map.node(|request| if request.command() == "DEL" { Act::Bytes(b":1\r\n".to_vec()) } else { Act::Usual });
    map.is(vec![(0, 8_191, vec![port(&full)]), (8_192, 16_383, vec![port(&free)])]);
    let of_full = keys_in(0..8_192, 12);
    let both = [of_full[0].clone(), keys_in(8_192..16_384, 1).remove(0)];
    let clients = [Overload::Fail, Overload::Wait]
        .map(|overload| Client::with_config(config(&full).limits(4, 1 << 20).overload(overload)));
    for (client, key) in clients.iter().zip(&both).chain(clients.iter().zip(both.iter().rev())) {
        client.call::<String>(cmd("GET").key(key)).wait().unwrap();
    }
    fn mget(client: &Client, keys: &[String]) -> Result<Vec<String>, respool_client::Error> {
        client.call(cmd("MGET").key(keys)).wait()
    }
    let of_full = &of_full;
    std::thread::scope(|scope| {
        let [fails, waits] = &clients;
        // Each client has four parts at the node, which answers none.
        let held: Vec<_> = clients.iter().map(|client| scope.spawn(move || mget(client, &of_full[..4]))).collect();
        clients.iter().for_each(|client| wait_for_in_flight(client, 4));
        // A part was executed where there was room, and the other was not sent: what became of the request is in doubt.
        let error = fails.call::<i64>(cmd("DEL").key(&both[..])).wait().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Overloaded), "{error:?}");
        assert_eq!(error.outcome(), Outcome::MaybeExecuted, "{error:?}");
        assert_eq!(executed(&free).iter().filter(|what| what.starts_with("DEL")).count(), 1);
        // Three requests of four parts each: at no time are more than four under way.
        let more: Vec<_> = of_full.chunks(4).map(|keys| scope.spawn(move || mget(waits, keys))).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let late = waits.call::<()>(cmd("MGET").key(&of_full[..2])).deadline(Duration::from_millis(200));
        let late = runtime.block_on(late).unwrap_err();
        assert_eq!((late.outcome(), waits.stats().in_flight), (Outcome::NotSent, 4), "{late:?}");
        gate.open();
        for mget in held.into_iter().chain(more) {
            assert_eq!(mget.join().unwrap().unwrap(), ["v"; 4]);
        }
        assert_eq!((waits.stats().in_flight, waits.stats().callers), (0, 0));
    });
}

#[test]
fn a_late_call_of_a_cluster_says_what_it_waited_behind() {
    let map = Map::default();
    let node = map.node(|request| if request.key() == b"none" { Act::Silence } else { Act::Usual });
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let client = Client::with_config(config(&node));
    client.call::<String>(cmd("GET").key("k")).wait().unwrap();
    // Longer and shorter than the silence after which other nodes are asked.
    for (at_least, millis) in [(0, 200), (1, 1_500)] {
        let late = client.call::<String>(cmd("GET").key("none")).deadline(Duration::from_millis(millis)).wait();
        let late = late.unwrap_err();
        assert_eq!(late.outcome(), Outcome::MaybeExecuted, "{late}");
        // The node is asked what the cluster looks like as well.
        let in_front = late.waited().unwrap().in_front;
        assert!((at_least..=2 * at_least).contains(&in_front), "{late}");
    }
}

#[test]
fn an_error_says_where_its_request_was() {
    let map = Map::default();
    let node = map.node(|request| match (&*request.command(), request.key()) {
        ("GET", b"moves") => Act::Bytes(b"-ASK 4012 :7001\r\n".to_vec()),
        ("GET" | "BLPOP", _) => Act::Bytes(b"-WRONGTYPE no\r\n".to_vec()),
        ("CLIENT", b"ID") => Act::Bytes(b":1\r\n".to_vec()),
        ("WATCH", _) => ok(),
        _ => Act::Usual,
    });
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let address = format!("127.0.0.1:{}", port(&node));
    let client = Client::with_config(config(&node));
    let of_cluster = client.call::<String>(cmd("GET").key("k")).wait().unwrap_err();
    let in_lane = client.call::<Reply>(cmd("BLPOP").key("k").arg(1)).cast::<String>().wait().unwrap_err();
    for error in [of_cluster, in_lane] {
        assert_eq!((error.address(), error.slot(), error.redirect()), (Some(&*address), Some(7629), None), "{error:?}");
        assert!(error.to_string().contains(&address), "{error}");
    }
    // What a slot on its way answers to a connection that watches is the caller's. The node means its own host.
    let watched = client.watch("moves").wait().unwrap();
    let error = watched.call::<String>(cmd("GET").key("moves")).wait().unwrap_err();
    let redirect = error.redirect().unwrap();
    assert_eq!((redirect.slot, &*redirect.address, redirect.is_ask), (4012, "127.0.0.1:7001", true));
    let single = Client::with_config(Config::from_url(&format!("redis://{address}")).unwrap());
    let error = single.call::<String>(cmd("GET").key("k")).wait().unwrap_err();
    assert_eq!((error.address(), error.slot()), (Some(&*address), None));
    // A failure without a reply, too.
    let gone = Config::from_url("redis://127.0.0.1:1").unwrap().deadline(Some(Duration::from_millis(50)));
    let error = Client::with_config(gone).call::<String>(cmd("GET").key("k")).wait().unwrap_err();
    assert_eq!((error.address(), error.outcome()), (Some("127.0.0.1:1"), Outcome::NotSent));
}

#[test]
fn a_transaction_whose_keys_move_amid_it_is_sent_again_whole() {
    let map = Map::default();
    // The first key moves behind the request for it, so that EXEC is redirected as the second request was.
    let new = map.node(|request| match &*request.command() {
        "MULTI" => ok(),
        "SET" => Act::Bytes(b"+QUEUED\r\n".to_vec()),
        "EXEC" => Act::Bytes(b"*2\r\n+OK\r\n+OK\r\n".to_vec()),
        _ => Act::Usual,
    });
    let ask =
        Act::Bytes(format!("-ASK {} 127.0.0.1:{}\r\n", respool_route::cluster::slot_of(b"t"), port(&new)).into_bytes());
    let old = map.node(move |request| match &*request.command() {
        "MULTI" => ok(),
        "SET" if request.key() == b"{t}x" => Act::Bytes(b"+QUEUED\r\n".to_vec()),
        "SET" | "EXEC" => ask.clone(),
        _ => Act::Usual,
    });
    map.is(vec![(0, 16_383, vec![port(&old)])]);
    let client = Client::with_config(config(&old));
    let pair = [cmd("SET").key("{t}x").arg(1), cmd("SET").key("{t}y").arg(1)];
    assert_eq!(texts(client.transaction(pair).wait().unwrap()), ["OK", "OK"]);
    assert_eq!(executed(&new), ["MULTI ", "SET {t}x", "SET {t}y", "EXEC "]);
}

/// What is told of a cluster.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn event(&self, event: &Event<'_>) {
        let words = match event {
            Event::SlotsChanged { primaries } => format!("{primaries} primaries"),
            Event::Redirected { to, is_asking } => format!("to {to}, asking {is_asking}"),
            Event::NotRefreshed { endpoint } => format!("nothing from {endpoint}"),
            _ => return,
        };
        self.0.lock().unwrap().push(words);
    }
}

fn set_is_ok(request: &Received) -> Act {
    if request.command() == "SET" { ok() } else { Act::Usual }
}

impl Heard {
    fn has(&self, words: &str) -> bool {
        self.0.lock().unwrap().iter().any(|heard| heard == words)
    }
}

#[test]
fn what_happens_to_a_cluster_is_told_and_counted() {
    let map = Map::default();
    let new = map.node(set_is_ok);
    let ask = format!("-ASK 12539 127.0.0.1:{}\r\n", port(&new));
    let moved = format!("-MOVED 12182 127.0.0.1:{}\r\n", port(&new));
    let old = map.node(move |request| match request.key() {
        b"hello" => Act::Bytes(ask.clone().into_bytes()),
        b"foo" => Act::Bytes(moved.clone().into_bytes()),
        _ => set_is_ok(request),
    });
    map.is(vec![(0, 16_383, vec![port(&old)])]);
    let heard = Arc::new(Heard::default());
    let client = Client::with_config(config(&old).observer(Arc::clone(&heard) as Arc<dyn Observer>));
    client.set("other", 1).cast::<()>().wait().unwrap();
    // Callers are woken before observers are told, and on another thread.
    wait_until("the table is told of", DEADLINE, || Ok(heard.has("1 primaries"))).unwrap();
    assert_eq!((client.stats().redirects, client.stats().reconnects), (0, 0));
    client.set("hello", 1).cast::<()>().wait().unwrap();
    client.set("foo", 1).cast::<()>().wait().unwrap();
    let to = format!("to 127.0.0.1:{}", port(&new));
    assert!(heard.has(&format!("{to}, asking true")) && heard.has(&format!("{to}, asking false")));
    wait_until("the slot has moved", DEADLINE, || Ok(heard.has("2 primaries"))).unwrap();
    assert_eq!(client.stats().redirects, 2);
    // Nodes are asked again, and say nothing that is a table.
    map.is(Vec::new());
    let asked = format!("nothing from 127.0.0.1:{}", port(&new));
    wait_until("a node says nothing", DEADLINE, || Ok(heard.has(&asked))).unwrap();
}

#[test]
fn nodes_are_asked_again_as_often_as_is_wanted() {
    let map = Map::default();
    let node = map.node(set_is_ok);
    map.is(vec![(0, 16_383, vec![port(&node)])]);
    let questions = || node.received().iter().filter(|request| request.command() == "CLUSTER").count();
    let client = Client::with_config(config(&node).refresh_period(Some(Duration::from_secs(1))));
    client.set("k", 1).cast::<()>().wait().unwrap();
    let first = questions();
    wait_until("it is asked twice more", DEADLINE, || Ok(questions() >= first + 2)).unwrap();
}

#[test]
fn redirects_are_followed_at_once_as_often_as_is_wanted() {
    let redirects = |redirects_max: Option<u8>| {
        let map = Map::default();
        let ports = Arc::new(Mutex::new((0, 0)));
        let told = Arc::clone(&ports);
        // Each sends the request to the other.
        let to = move |is_first: bool| {
            let told = Arc::clone(&told);
            move |request: &Received| {
                if request.command() != "SET" {
                    return Act::Usual;
                }
                let (first, second) = *told.lock().unwrap();
                let port = if is_first { second } else { first };
                Act::Bytes(format!("-ASK 12539 127.0.0.1:{port}\r\n").into_bytes())
            }
        };
        let (first, second) = (map.node(to(true)), map.node(to(false)));
        *ports.lock().unwrap() = (port(&first), port(&second));
        map.is(vec![(0, 16_383, vec![port(&first)])]);
        let config = config(&first).deadline(Some(Duration::from_secs(2)));
        let client = Client::with_config(match redirects_max {
            Some(redirects_max) => config.redirects(redirects_max),
            None => config,
        });
        client.set("hello", 1).cast::<()>().wait().unwrap_err();
        client.stats().redirects
    };
    assert_eq!((redirects(Some(0)), redirects(Some(2)), redirects(None)), (0, 2, 5));
}
