//! The publish/subscribe experiment against a real server.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use respool_bench::pubsub::plan::Plan;
use respool_bench::pubsub::{Counted, Output, experiment};
use respool_bench::target::{Session, Target};
use respool_connection::Endpoint;
use respool_testkit::RedisServer;

fn run(server: &RedisServer, plan: &Plan, session: &Session) -> Result<Counted, String> {
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: server.port() };
    let target = Target::one("server", endpoint, session.identity());
    experiment(plan, &target, &Output::default(), &mut Vec::new(), &Arc::new(AtomicBool::new(false)))
}

fn plan() -> Plan {
    Plan {
        channels: 1234,
        rate: 0.0,
        batch: 8,
        messages: Some(2000),
        subscribing: 5,
        publishing: 3,
        processes: 1,
        ..Plan::default()
    }
}

#[test]
fn one_process_hears_all_that_it_publishes() {
    let server = RedisServer::start().unwrap();
    for (plan, session) in [
        (plan(), Session::default()),
        (plan(), Session { is_resp3: true, ..Session::default() }),
        (Plan { has_patterns: true, ..plan() }, Session::default()),
        (Plan { is_sharded: true, channels: 300, ..plan() }, Session::default()),
    ] {
        let counted = run(&server, &plan, &session).unwrap();
        assert_eq!((counted.sent, counted.acknowledged, counted.received, counted.own), (2000, 2000, 2000, 2000));
        assert_eq!((counted.missing, counted.reordered, counted.duplicates), (0, 0, 0));
        assert_eq!((counted.foreign, counted.exits), (0, 1));
        assert_eq!(counted.own_latencies.count(), 2000);
    }
    assert_eq!(server.client().unwrap().ask("EXISTS nsubscribers").unwrap(), ":0\r\n", "the next run finds no count");
}

#[test]
fn processes_begin_together_and_hear_each_other() {
    let server = RedisServer::start().unwrap();
    let counted: Vec<Counted> = std::thread::scope(|scope| {
        let process = |process| {
            let plan = Plan { process, processes: 2, publishers: 2, ..plan() };
            let server = &server;
            scope.spawn(move || run(server, &plan, &Session::default()).unwrap())
        };
        [process(1), process(2)].map(|thread| thread.join().unwrap()).into()
    });
    for one in counted {
        assert_eq!((one.sent, one.received, one.own), (2000, 4000, 2000));
        assert_eq!((one.missing, one.reordered, one.other_latencies.count()), (0, 0, 2000));
    }
}

#[test]
fn channels_are_subscribed_in_few_requests() {
    let server = RedisServer::start().unwrap();
    let listener = Plan { publishes: false, processes: 0, channels: 20_000, publishers: 1, ..plan() };
    let is_stopped = Arc::new(AtomicBool::new(false));
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: server.port() };
    let target = Target::one("server", endpoint, Session::default().identity());
    let counted = std::thread::scope(|scope| {
        let hearing =
            scope.spawn(|| experiment(&listener, &target, &Output::default(), &mut Vec::new(), &is_stopped).unwrap());
        let mut client = server.client().unwrap();
        // All of them: the connection that subscribes the last channel may be ahead of the others.
        let is_there = || Ok(client.ask("INFO stats")?.contains("\r\npubsub_channels:20000\r\n"));
        respool_testkit::wait_until("all channels are subscribed", Duration::from_secs(30), is_there).unwrap();
        let stats = server.client().unwrap().ask("INFO commandstats").unwrap();
        let calls = stats.split("cmdstat_subscribe:calls=").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        assert!(calls.parse::<u64>().unwrap() <= 25, "{calls}");
        let publisher = Plan { subscribes: false, channels: 20_000, processes: 0, process: 9, ..plan() };
        assert_eq!(run(&server, &publisher, &Session::default()).unwrap().sent, 2000);
        hearing.join().unwrap()
    });
    assert_eq!((counted.received, counted.own, counted.exits), (2000, 0, 1));
    assert_eq!((counted.missing, counted.reordered), (0, 0));
}

#[test]
fn the_last_messages_of_a_batch_are_not_left_behind() {
    let server = RedisServer::start().unwrap();
    // No batch is ever full, and none is due to be flushed before the end.
    let plan = Plan { batch: 1000, messages: Some(7), flush: Duration::from_secs(60), ..plan() };
    let counted = run(&server, &plan, &Session::default()).unwrap();
    assert_eq!((counted.sent, counted.received, counted.missing), (7, 7, 0));
}

#[test]
fn a_rate_is_kept_exactly() {
    let server = RedisServer::start().unwrap();
    let plan = Plan { rate: 2000.0, messages: None, duration: Some(Duration::from_millis(500)), batch: 4, ..plan() };
    let counted = run(&server, &plan, &Session::default()).unwrap();
    // They are due after 0.5, 1.0 ... 499.5 ms.
    assert_eq!((counted.sent, counted.unsent), (999, 0));
    assert_eq!(counted.received, counted.sent);
}

#[test]
fn a_subscriber_that_is_cut_off_is_told() {
    let server = RedisServer::start_with(&["--client-output-buffer-limit", "pubsub 1 1 0"]).unwrap();
    let huge = Plan { payload: 100_000, messages: Some(500), batch: 500, publishing: 1, ..plan() };
    let error = run(&server, &huge, &Session::default()).unwrap_err();
    assert!(error.contains("closed a connection") || error.contains("was lost"), "{error}");
}
