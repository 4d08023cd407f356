//! Cached reads of a cluster: slots that move, primaries that die, nodes that are no primaries any longer and do not say so.
#![cfg(all(feature = "cache", feature = "cluster"))]

use respool_client::{Caching, Client, Config, Reply, cmd, commands};
use respool_route::cluster::slot_of;
use respool_testkit::{Act, Address, FakeBackend, Received, RedisCluster, wait_until};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Long enough for whatever a slow machine does.
const DEADLINE: Duration = Duration::from_secs(60);

fn start(primaries: usize, replicas: usize, timeout_ms: &str) -> RedisCluster {
    RedisCluster::start(primaries, replicas, &["--cluster-node-timeout", timeout_ms]).unwrap()
}

fn client(cluster: &RedisCluster) -> Client {
    let url = format!("redis+cluster://{}", cluster.seeds(&[0, 1]));
    Client::with_config(Config::from_url(&url).unwrap().deadline(Some(DEADLINE)))
}

/// A long time without a word from a server, so that a slow machine is not taken for a dead one.
fn caching() -> Caching {
    Caching::new().silence(Duration::from_secs(600)).ttl(Duration::from_secs(600))
}

/// The node that has a slot when the cluster is new.
fn owner(slot: u16, primaries: usize) -> usize {
    (0..primaries).rfind(|number| usize::from(slot) >= number * 16_384 / primaries).unwrap()
}

#[test]
fn what_is_read_goes_with_its_slot() {
    let cluster = start(2, 0, "15000");
    let (client, other) = (client(&cluster), client(&cluster));
    let cache = client.cache(caching()).unwrap();
    let read = |key: &str| cache.call::<Option<String>>(commands::get(key)).wait().unwrap();
    // One that is there, and one that is not.
    let (old, new) = ("{t}old", "{t}new");
    let slot = slot_of(b"t");
    let home = owner(slot, 2);
    // What comes before the table is there is read without a cache.
    assert_eq!(read("other"), None);
    for round in 0..3 {
        other.set(old, round).wait().unwrap();
        wait_until("the change is told", DEADLINE, || Ok(read(old) == Some(round.to_string()))).unwrap();
        assert_eq!((read(new), read(new)), (None, None));
        // Behind a move nodes may tell old news for a while, and redirect.
        wait_until("it is kept where it is now", DEADLINE, || {
            let hits = cache.stats().hits;
            Ok(read(old) == Some(round.to_string()) && cache.stats().hits > hits)
        })
        .unwrap();
        let (from, to) = if round % 2 == 0 { (home, 1 - home) } else { (1 - home, home) };
        cluster
            .move_slot(slot, from, to, || {
                // While it is on its way, a key that is not there yet is written where it will be.
                other.set(new, round).wait().unwrap();
                assert_eq!(read(new), Some(round.to_string()));
            })
            .unwrap();
        // No call of this client was redirected since: nothing has told it that the slot has moved.
        assert_eq!((read(new), read(old)), (Some(round.to_string()), Some(round.to_string())));
        other.del(new).wait().unwrap();
        wait_until("the change is told", DEADLINE, || Ok(read(new).is_none())).unwrap();
    }
    // Both nodes have a part of the bound, and of what is read.
    for key in 0..40 {
        let key = format!("k{key}");
        client.set(&key, 1).wait().unwrap();
        assert_eq!((read(&key), read(&key)), (Some("1".to_owned()), Some("1".to_owned())));
    }
    assert!(cache.stats().entries >= 40, "{:?}", cache.stats());
    cache.forget(b"k1");
    assert!(cache.stats().entries >= 39);
    client.close();
    assert!(cache.call::<Reply>(commands::get("k2")).wait().is_err());
}

#[test]
fn a_program_reads_what_it_writes_while_slots_move() {
    let cluster = start(2, 0, "15000");
    let client = client(&cluster);
    let cache = client.cache(caching()).unwrap();
    let (is_over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let slots: Vec<u16> = (0..4).map(|number| slot_of(format!("k{number}").as_bytes())).collect();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (client, cache, is_over, rounds) = (&client, &cache, &is_over, &rounds);
            scope.spawn(move || {
                let key = format!("{{k{number}}}");
                let read = |name: &str| cache.call::<Option<u64>>(commands::get(name)).wait().unwrap();
                for written in 0_u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    client.set(&key, written).wait().unwrap();
                    assert_eq!((read(&key), read(&key)), (Some(written), Some(written)));
                    // A key that is there every other time.
                    let fleeting = format!("{key}{}", written / 2 % 8);
                    if written % 2 == 0 {
                        client.set(&fleeting, written).wait().unwrap();
                    } else {
                        client.del(&fleeting).wait().unwrap();
                    }
                    let expected = (written % 2 == 0).then_some(written);
                    assert_eq!((read(&fleeting), read(&fleeting)), (expected, expected));
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        struct Ending<'a>(&'a AtomicBool);
        impl Drop for Ending<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _ending = Ending(&is_over);
        for round in 0..3 {
            for slot in &slots {
                let home = owner(*slot, 2);
                let (from, to) = if round % 2 == 0 { (home, 1 - home) } else { (1 - home, home) };
                cluster.move_slot(*slot, from, to, || {}).unwrap();
            }
            let aim = rounds.load(Ordering::Relaxed) + 40;
            wait_until("more is written", DEADLINE, || Ok(rounds.load(Ordering::Relaxed) >= aim)).unwrap();
        }
    });
    let stats = cache.stats();
    assert!(stats.hits > 20, "{stats:?}");
}

#[test]
fn what_was_read_of_a_primary_that_is_killed_is_read_again() {
    let mut cluster = start(3, 1, "2000");
    let client = client(&cluster);
    let cache = client.cache(caching()).unwrap();
    let read = |key: &str| cache.call::<Option<i64>>(commands::get(key)).wait().unwrap();
    let keys: Vec<String> = (0..30).map(|key| format!("k{key}")).collect();
    for key in &keys {
        client.batch([cmd("SET").key(key).arg(1), cmd("WAIT").arg(1).arg(20_000)]).dedicated().wait().unwrap();
        assert_eq!((read(key), read(key)), (Some(1), Some(1)));
    }
    cluster.nodes[0].kill().unwrap();
    for key in &keys {
        // What the dead one had is read at its replica once that has taken over, and changes there are told.
        assert_eq!(read(key), Some(1));
        client.incr(key).wait().unwrap();
        assert_eq!((read(key), read(key)), (Some(2), Some(2)));
    }
}

type Shards = Vec<(u16, u16, u16)>;

fn port(node: &FakeBackend) -> u16 {
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    address.port()
}

/// What a node says of the slots from and up to these.
fn slots(shards: &Mutex<Shards>) -> Act {
    let shards = shards.lock().unwrap();
    let shard = |(first, last, port): &(u16, u16, u16)| {
        format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{port:040}\r\n")
    };
    let text: String = shards.iter().map(shard).collect();
    Act::Bytes(format!("*{}\r\n{text}", shards.len()).into_bytes())
}

/// A node that says that the slots from and up to these are at these ports.
fn node(shards: &Arc<Mutex<Shards>>, rule: impl Fn(&Received) -> Act + Send + Sync + 'static) -> FakeBackend {
    let shards = Arc::clone(shards);
    FakeBackend::start(move |request| match &*request.command() {
        "CLUSTER" => slots(&shards),
        "PTTL" | "GET" => rule(request),
        _ => Act::Usual,
    })
    .unwrap()
}

fn answer(request: &Received, value: &str) -> Act {
    match &*request.command() {
        "PTTL" => Act::Bytes(b":-1\r\n".to_vec()),
        _ => Act::Bytes(format!("${}\r\n{value}\r\n", value.len()).into_bytes()),
    }
}

/// A node whose values are read from memory stops to serve its slots in this way, and tells of nothing. What it does to a request is by the port
/// of the node that has its slots then, which the client learns from the cluster if it `is_told`.
fn leave_with(is_told: bool, acts: impl Fn(u16, &Received) -> Act + Send + Sync + 'static) {
    let (shards, has_left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let new = node(&shards, |request| answer(request, "new"));
    let (left, new_port) = (Arc::clone(&has_left), port(&new));
    let old = node(&shards, move |request| match left.load(Ordering::Relaxed) {
        true => acts(new_port, request),
        false => answer(request, "old"),
    });
    *shards.lock().unwrap() = vec![(0, 16_382, port(&old)), (16_383, 16_383, new_port)];
    let config = Config::from_url(&format!("redis+cluster://127.0.0.1:{}", port(&old))).unwrap();
    let client = Client::with_config(config.deadline(Some(DEADLINE)));
    let cache = client.cache(Caching::new().silence(Duration::from_millis(400)).ttl(DEADLINE)).unwrap();
    let read = || cache.call::<String>(commands::get("k")).wait().unwrap();
    assert_eq!((read(), read()), ("old".to_owned(), "old".to_owned()));
    if is_told {
        *shards.lock().unwrap() = vec![(0, 16_383, new_port)];
    }
    has_left.store(true, Ordering::Relaxed);
    // Sooner than a value's time is over, or than the cluster is asked without a reason what it looks like.
    wait_until("the other node is read", DEADLINE / 2, || Ok(read() == "new")).unwrap();
    for _ in 0..3 {
        assert_eq!(read(), "new");
    }
    if !is_told {
        return;
    }
    wait_until("it is kept", DEADLINE, || {
        let hits = cache.stats().hits;
        Ok(read() == "new" && cache.stats().hits > hits)
    })
    .unwrap();
}

fn moved(port: u16) -> Act {
    error(&format!("MOVED {} 127.0.0.1:{port}", slot_of(b"k")))
}

fn error(text: &str) -> Act {
    Act::Bytes(format!("-{text}\r\n").into_bytes())
}

#[test]
fn a_node_that_is_cut_off_from_the_others_is_not_believed() {
    leave_with(true, |_, _| error("CLUSTERDOWN The cluster is down"));
}

#[test]
fn a_node_that_is_a_replica_by_now_is_not_believed() {
    leave_with(true, |port, _| moved(port));
}

#[test]
fn a_node_that_refuses_for_want_of_rights_is_not_believed() {
    // Rights are judged before slots are, so this says nothing of the slot.
    leave_with(false, |port, request| match &*request.command() {
        "PTTL" => error("NOPERM this user has no permissions to run the 'pttl' command"),
        _ => moved(port),
    });
}

#[test]
fn cached_values_of_a_slot_that_was_taken_by_hand_expire_soon() {
    let (shards, is_taken) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let new = node(&shards, |request| answer(request, "new"));
    let (taken, new_port) = (Arc::clone(&is_taken), port(&new));
    // It answers for its other slots as before, and tells of nothing.
    let old = node(&shards, move |request| match taken.load(Ordering::Relaxed) && request.key() == b"k" {
        true => moved(new_port),
        false => answer(request, "old"),
    });
    *shards.lock().unwrap() = vec![(0, 16_382, port(&old)), (16_383, 16_383, new_port)];
    let config = Config::from_url(&format!("redis+cluster://127.0.0.1:{}", port(&old))).unwrap();
    let client = Client::with_config(config.deadline(Some(DEADLINE)));
    let cache = client.cache(Caching::new().silence(Duration::from_millis(800)).ttl(DEADLINE)).unwrap();
    let read = |key: &str| cache.call::<String>(commands::get(key)).wait().unwrap();
    wait_until("both are kept", DEADLINE, || {
        let hits = cache.stats().hits;
        assert_eq!((read("k"), read("other")), ("old".to_owned(), "old".to_owned()));
        Ok(cache.stats().hits == hits + 2)
    })
    .unwrap();
    // The first report is confirmed by another soon.
    wait_until("the table is confirmed", DEADLINE, || {
        let asked =
            |node: &FakeBackend| node.received().iter().filter(|request| *request.command() == *"CLUSTER").count();
        Ok(asked(&old) + asked(&new) >= 2)
    })
    .unwrap();
    let slot = slot_of(b"k");
    *shards.lock().unwrap() = vec![
        (0, slot - 1, port(&old)),
        (slot, slot, new_port),
        (slot + 1, 16_382, port(&old)),
        (16_383, 16_383, new_port),
    ];
    is_taken.store(true, Ordering::Relaxed);
    // The other key is the one that was used last, so the node shows that it lives by that. The cluster is asked without such a reason after 54
    // seconds at the earliest.
    wait_until("the other node is read", DEADLINE / 2, || {
        let found = read("k");
        assert_eq!(read("other"), "old");
        Ok(found == "new")
    })
    .unwrap();
}

#[test]
fn what_may_not_be_asked_how_long_it_lives_is_not_kept() {
    let shards = Arc::new(Mutex::new(Vec::new()));
    let node = node(&shards, |request| match &*request.command() {
        "PTTL" => error("NOPERM this user has no permissions to run the 'pttl' command"),
        _ => Act::Bytes(b"$-1\r\n".to_vec()),
    });
    *shards.lock().unwrap() = vec![(0, 16_383, port(&node))];
    let config = Config::from_url(&format!("redis+cluster://127.0.0.1:{}", port(&node))).unwrap();
    let client = Client::with_config(config.deadline(Some(DEADLINE)));
    let cache = client.cache(caching()).unwrap();
    // The first may be made before there is a table, without a cache.
    for _ in 0..4 {
        assert_eq!(cache.call::<Option<String>>(commands::get("k")).wait().unwrap(), None);
    }
    let stats = cache.stats();
    assert!(stats.misses > 0 && (stats.entries, stats.hits) == (0, 0), "{stats:?}");
}

#[test]
fn a_node_that_is_silent_is_not_believed() {
    leave_with(true, |_, _| Act::Silence);
}

#[test]
fn a_key_on_its_way_is_read_where_it_goes_and_not_kept() {
    let shards = Arc::new(Mutex::new(Vec::new()));
    let new = node(&shards, |request| answer(request, "new"));
    let new_port = port(&new);
    let old = node(&shards, move |_| error(&format!("ASK {} 127.0.0.1:{new_port}", slot_of(b"k"))));
    *shards.lock().unwrap() = vec![(0, 16_383, port(&old))];
    let config = Config::from_url(&format!("redis+cluster://127.0.0.1:{}", port(&old))).unwrap();
    let client = Client::with_config(config.deadline(Some(DEADLINE)));
    let cache = client.cache(caching()).unwrap();
    for _ in 0..3 {
        assert_eq!(cache.call::<String>(commands::get("k")).wait().unwrap(), "new");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(cache.call::<String>(commands::get("k"))).unwrap(), "new");
    assert_eq!((cache.stats().entries, cache.stats().hits), (0, 0));
    // Each behind ASKING, on the connection that all share.
    let asked = new.received().iter().filter(|request| *request.command() == *"ASKING").count();
    assert_eq!(asked, 4);
}

#[test]
fn a_cache_that_cannot_connect_makes_no_further_read_wait() {
    let (shards, is_mute) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(true)));
    let (told, mute) = (Arc::clone(&shards), Arc::clone(&is_mute));
    let node = FakeBackend::start(move |request| match &*request.command() {
        "CLUSTER" => slots(&told),
        "CLIENT" if request.key() == b"TRACKING" && mute.load(Ordering::Relaxed) => Act::Silence,
        "PTTL" | "GET" => answer(request, "value"),
        _ => Act::Usual,
    })
    .unwrap();
    *shards.lock().unwrap() = vec![(0, 16_383, port(&node))];
    let config = Config::from_url(&format!("redis+cluster://127.0.0.1:{}", port(&node))).unwrap();
    let client = Client::with_config(config.deadline(Some(DEADLINE)));
    let cache = client.cache(caching()).unwrap();
    let read = || assert_eq!(cache.call::<String>(commands::get("k")).wait().unwrap(), "value");
    let mut slow = 0;
    for _ in 0..15 {
        let began = Instant::now();
        read();
        // As long as a node of a cluster may be silent.
        slow += usize::from(began.elapsed() >= Duration::from_millis(900));
        std::thread::sleep(Duration::from_millis(300));
    }
    // One finds out, and another may begin while that is not known yet.
    assert!((1..=2).contains(&slow), "{slow} of 15 reads have waited");
    // Reads go on trying, without waiting for it.
    is_mute.store(false, Ordering::Relaxed);
    wait_until("values are kept", DEADLINE, || {
        read();
        Ok(cache.stats().hits > 0)
    })
    .unwrap();
}
