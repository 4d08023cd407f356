//! Runs against servers: real ones, and ones that misbehave on purpose.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use respool_bench::arrivals::Spacing;
use respool_bench::keys::Spread;
use respool_bench::plan::{Pace, Plan};
use respool_bench::run::{Measured, run};
use respool_bench::target::{Session, Target};
use respool_bench::values::Sizes;
use respool_bench::work::{Shape, Test, Work};
use respool_connection::Endpoint;
use respool_testkit::{Act, Address, FakeBackend, Gate, RedisCluster, RedisServer, figure};

fn shape(is_verified: bool) -> Shape {
    let sizes = Sizes::one(if is_verified { 64 } else { 3 });
    Shape { keys: Some(1000), spread: Spread::Uniform, sizes, is_verified, is_tagged: false }
}

fn target(address: &Address) -> Target {
    let endpoint = match address {
        Address::Tcp(address) => Endpoint::Tcp { host: address.ip().to_string(), port: address.port() },
        Address::Unix(path) => Endpoint::Unix { path: path.display().to_string() },
    };
    Target::one("server", endpoint, Session::default().identity())
}

fn measure(plan: &Plan, work: Work, address: &Address) -> Result<Measured, String> {
    run(plan, &Arc::new(work), &Arc::new(target(address)), &AtomicBool::new(false), |_| {})
}

fn test(name: &str) -> Work {
    Work::of_test(Test::named(name).unwrap(), &shape(false))
}

fn plan(requests: u64) -> Plan {
    Plan { requests: Some(requests), connections: 10, ..Plan::default() }
}

#[test]
fn a_server_gets_exactly_the_requests_of_a_run() {
    let server = RedisServer::start().unwrap();
    for (address, plan) in [
        (server.tcp(), Plan { threads: 3, pipeline: 16, ..plan(5_000) }),
        (server.unix(), Plan { connections: 7, ..plan(1_001) }),
        (server.tcp(), Plan { pace: Pace::Open { rate: 20_000.0, spacing: Spacing::Poisson }, ..plan(2_000) }),
    ] {
        let mut client = server.client().unwrap();
        client.ask("CONFIG RESETSTAT").unwrap();
        let measured = measure(&plan, test("set"), &address).unwrap();
        let stats = client.ask("INFO commandstats").unwrap();
        let requests = plan.requests.unwrap();
        assert!(stats.contains(&format!("cmdstat_set:calls={requests},")), "{stats}");
        let tally = &measured.tally;
        assert_eq!((tally.replies, tally.sent, tally.all().count()), (requests, requests, requests));
        assert_eq!(tally.timeline.intervals.iter().map(|interval| interval.replies).sum::<u64>(), requests);
        assert!(measured.own_processor_s > 0.0 && tally.rate() > 0.0);
    }
}

#[test]
fn without_keep_alive_every_batch_has_its_own_connection() {
    let server = RedisServer::start().unwrap();
    let mut client = server.client().unwrap();
    client.ask("CONFIG RESETSTAT").unwrap();
    measure(&Plan { is_kept: false, pipeline: 2, ..plan(200) }, test("get"), &server.tcp()).unwrap();
    let stats = client.ask("INFO stats").unwrap();
    let connections = figure(&stats, "total_connections_received").unwrap();
    assert!((100..=110).contains(&connections), "{connections}");
}

#[test]
fn every_value_of_a_real_server_proves_its_key() {
    let server = RedisServer::start().unwrap();
    let mix = Work::of_mix("set=1,get=1", &shape(true)).unwrap();
    let measured = measure(&Plan { pipeline: 8, ..plan(4_000) }, mix, &server.tcp()).unwrap();
    let wrongs = &measured.tally.wrongs;
    assert_eq!((wrongs.mismatches, wrongs.errors), (0, 0), "{wrongs:?}");
    let gets = measured.tally.latencies[1].count();
    assert!(gets > wrongs.misses, "some keys were there: {gets} {wrongs:?}");
}

#[test]
fn every_value_of_one_mset_proves_its_own_key() {
    let server = RedisServer::start().unwrap();
    let mix = Work::of_mix("mset=1,get=9", &shape(true)).unwrap();
    let measured = measure(&plan(4_000), mix, &server.tcp()).unwrap();
    let wrongs = &measured.tally.wrongs;
    assert_eq!((wrongs.mismatches, wrongs.errors), (0, 0), "{wrongs:?}");
    assert!(measured.tally.latencies[1].count() > wrongs.misses, "some keys were there: {wrongs:?}");
}

/// Connections are spread over the masters, each asks for keys of its own slots, and a key is where it was set.
#[test]
fn a_clusters_keys_are_asked_of_their_primaries_and_found() {
    let cluster = RedisCluster::start(3, 0, &[]).unwrap();
    let mut target = target(&cluster.nodes[0].tcp());
    target.find_cluster().unwrap();
    assert_eq!(target.nodes.len(), 3);
    let target = Arc::new(target);
    let ask = |mix: &str| {
        let shape = Shape { keys: Some(40), is_tagged: true, ..shape(true) };
        let work = Arc::new(Work::of_mix(mix, &shape).unwrap());
        // Where a node has little of the processor, connections to the others take most of the requests.
        let plan = Plan { pipeline: 4, threads: 2, ..plan(20_000) };
        let measured = run(&plan, &work, &target, &AtomicBool::new(false), |_| {}).unwrap();
        let wrongs = &measured.tally.wrongs;
        assert_eq!((wrongs.mismatches, wrongs.errors), (0, 0), "{mix}: {wrongs:?}");
        assert!(mix == "set" || wrongs.misses == 0, "{mix}: what was set is there: {wrongs:?}");
    };
    ask("set");
    for number in 0..3 {
        let keys = String::from_utf8(cluster.ask(number, "DBSIZE").unwrap()).unwrap();
        assert_eq!(keys, ":40\r\n", "node {number} has each key once");
    }
    ask("get");
    ask("mset=1,get=9");
}

#[test]
fn a_reply_for_another_key_is_found() {
    let last: Mutex<Vec<u8>> = Mutex::new(b"$-1\r\n".to_vec());
    // Every GET is answered with the value of the SET before it.
    let server = FakeBackend::start(move |request| match &*request.command() {
        "SET" => {
            let value = &request.arguments[2];
            *last.lock().unwrap() = [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
            Act::Usual
        }
        "GET" => Act::Bytes(last.lock().unwrap().clone()),
        _ => Act::Usual,
    })
    .unwrap();
    let mix = Work::of_mix("set=1,get=1", &shape(true)).unwrap();
    let measured = measure(&Plan { connections: 2, ..plan(400) }, mix, &server.address()).unwrap();
    let wrongs = &measured.tally.wrongs;
    assert!(wrongs.mismatches > 100, "{wrongs:?}");
    assert!(wrongs.first_mismatch.as_ref().is_some_and(|first| first.contains("the reply for key 0000")), "{wrongs:?}");
}

#[test]
fn latency_of_an_open_loop_counts_from_when_a_request_was_due() {
    let gate = Gate::new();
    let held = gate.clone();
    let seen = Mutex::new(0);
    // No request is answered before the last one has come, which is due 99 ms after the first.
    let server = FakeBackend::start(move |request| {
        if request.command() != "GET" {
            return Act::Usual;
        }
        let mut seen = seen.lock().unwrap();
        *seen += 1;
        if *seen == 100 {
            gate.open();
        }
        Act::Hold(held.clone())
    })
    .unwrap();
    let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
    let measured = measure(&Plan { pace, connections: 100, ..plan(100) }, test("get"), &server.address()).unwrap();
    let all = measured.tally.all();
    assert_eq!(all.count(), 100);
    assert!(all.max_ms() >= 98.9, "the first waited for the last: {} ms", all.max_ms());
    assert!(all.percentile_ms(50.0) >= 49.0, "{} ms", all.percentile_ms(50.0));
}

#[test]
fn what_is_sent_in_a_warm_up_is_not_counted() {
    let server = RedisServer::start().unwrap();
    let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
    let plan = Plan {
        pace,
        requests: None,
        duration: Some(Duration::from_millis(100)),
        warm_up: Duration::from_millis(50),
        ..plan(0)
    };
    let measured = measure(&plan, test("get"), &server.tcp()).unwrap();
    assert_eq!(measured.tally.sent, 149, "they are due after 1 to 149 ms");
    assert_eq!(measured.tally.replies, 100);
}

#[test]
fn an_error_ends_a_run_unless_it_is_to_go_on() {
    let server = FakeBackend::start(|request| match &*request.command() {
        "GET" => Act::Bytes(b"-WRONGTYPE no\r\n".to_vec()),
        _ => Act::Usual,
    })
    .unwrap();
    let error = measure(&plan(100), test("get"), &server.address()).unwrap_err();
    assert_eq!(error, "Error from server: WRONGTYPE no");
    let measured = measure(&Plan { goes_on: true, ..plan(100) }, test("get"), &server.address()).unwrap();
    assert_eq!((measured.tally.wrongs.errors, measured.tally.replies), (100, 100));
    assert_eq!(measured.tally.wrongs.first_error.as_deref(), Some("WRONGTYPE no"));
}

#[test]
fn a_lost_connection_is_made_again_where_the_run_goes_on() {
    for goes_on in [true, false] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let server = FakeBackend::start(move |request| {
            if request.command() != "GET" {
                return Act::Usual;
            }
            let mut seen = seen.lock().unwrap();
            seen.push(request.connection);
            if seen.len() == 50 { Act::Close } else { Act::Usual }
        })
        .unwrap();
        // There is only this connection: the run can only go on with another in its place.
        let lossy = Plan { connections: 1, goes_on, ..plan(200) };
        let measured = measure(&lossy, test("get"), &server.address());
        if !goes_on {
            let error = measured.unwrap_err();
            assert!(error.starts_with("lost the connection to 127.0.0.1:"), "{error}");
            continue;
        }
        let tally = measured.unwrap().tally;
        let wrongs = &tally.wrongs;
        assert_eq!((wrongs.lost_connections, wrongs.unanswered, wrongs.errors), (1, 1, 0), "{wrongs:?}");
        assert_eq!((tally.sent, tally.replies, tally.all().count()), (200, 199, 199));
        let asked = asked.lock().unwrap();
        let on = |connection: usize| asked.iter().filter(|&&other| other == connection).count();
        assert_eq!((on(0), on(1)), (50, 150));
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let path = "/nonexistent/respool-bench.sock";
    let error = measure(&plan(10), test("get"), &Address::Unix(path.into())).unwrap_err();
    assert!(error.starts_with(&format!("could not connect to unix:{path}: ")), "{error}");
}

#[test]
fn a_server_that_asks_for_a_password_is_told_it() {
    let server = RedisServer::start_with(&["--requirepass", "secret"]).unwrap();
    let error = measure(&plan(10), test("get"), &server.tcp()).unwrap_err();
    assert!(error.contains("NOAUTH"), "{error}");
    let session = Session { password: Some("secret".to_owned()), is_resp3: true, database: 3, ..Session::default() };
    let target = Target { identity: session.identity(), ..target(&server.tcp()) };
    let target = Arc::new(target);
    let measured = run(&plan(10), &Arc::new(test("set")), &target, &AtomicBool::new(false), |_| {}).unwrap();
    assert_eq!(measured.tally.replies, 10);
}

#[test]
fn a_run_that_is_stopped_gives_what_it_has() {
    let server = RedisServer::start().unwrap();
    let is_stopped = AtomicBool::new(false);
    let target = Arc::new(target(&server.tcp()));
    let endless = Plan { requests: None, duration: None, ..plan(0) };
    let measured = run(&endless, &Arc::new(test("get")), &target, &is_stopped, |progress| {
        is_stopped.store(progress.replies > 100, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(measured.unwrap().tally.replies > 100);
}
