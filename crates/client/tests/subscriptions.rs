//! Subscriptions: against a redis-server, and one that breaks off.

use futures_core::Stream;
use respool_client::ReconnectTerms;
use respool_client::{Client, Config, ErrorKind, Event, Message, Notice, Observer, Subscription, cmd};
use respool_testkit::{Act, Address, FakeBackend, Gate, RedisServer, wait_until};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn config(url: &str) -> Config {
    let terms =
        ReconnectTerms { backoff_min_us: 1_000, backoff_max_us: 5_000, dials_per_second: 1_000, dials_burst: 100 };
    Config::from_url(url).unwrap().reconnect(terms).deadline(Some(LIMIT))
}

fn client(server: &RedisServer, protocol: u8) -> Client {
    Client::with_config(config(&format!("redis://127.0.0.1:{}?protocol={protocol}", server.port())))
}

fn publish(client: &Client, channel: &str, payload: &str) -> i64 {
    client.call(cmd("PUBLISH").key(channel).arg(payload)).wait().unwrap()
}

#[track_caller]
fn next(subscription: &mut Subscription) -> Notice {
    subscription.recv_timeout(LIMIT).unwrap().expect("the subscription goes on")
}

#[track_caller]
fn message(subscription: &mut Subscription) -> (String, String) {
    let Notice::Message(Message { channel, payload, .. }) = next(subscription) else { panic!("no message") };
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    (text(channel), text(payload))
}

fn pair(channel: &str, payload: &str) -> (String, String) {
    (channel.to_owned(), payload.to_owned())
}

#[test]
fn messages_come_in_both_dialects_and_to_all_subscriptions() {
    let server = RedisServer::start().unwrap();
    for protocol in [2, 3] {
        let client = client(&server, protocol);
        let mut channels = client.subscribe(["a", "b"]).wait().unwrap();
        let mut again = client.subscribe("a").wait().unwrap();
        let mut patterns = client.subscribe_patterns("a*").wait().unwrap();
        let mut sharded = client.subscribe_sharded("a").wait().unwrap();
        assert_eq!(publish(&client, "a", "one"), 2);
        assert_eq!(publish(&client, "b", "two"), 1);
        assert_eq!(client.call::<i64>(cmd("SPUBLISH").key("a").arg("three")).wait().unwrap(), 1);
        assert_eq!(message(&mut channels), pair("a", "one"));
        assert_eq!(message(&mut channels), pair("b", "two"));
        assert_eq!(message(&mut again), pair("a", "one"));
        let Notice::Message(found) = next(&mut patterns) else { panic!("no message") };
        assert_eq!((&*found.channel, found.pattern.as_deref()), (&b"a"[..], Some(&b"a*"[..])));
        assert_eq!(message(&mut sharded), pair("a", "three"));
        // What no subscription wants any longer is given up.
        drop((channels, patterns));
        let counts = || client.call::<BTreeMap<String, i64>>(cmd("PUBSUB NUMSUB").arg(["a", "b"])).wait().unwrap();
        let is_given_up = || Ok(counts() == BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 0)]));
        wait_until("channels are given up", LIMIT, is_given_up).unwrap();
        assert_eq!(publish(&client, "a", "four"), 1);
        assert_eq!(message(&mut again), pair("a", "four"));
        client.close();
        assert_eq!(again.next(), None);
    }
}

#[test]
fn a_gap_is_told_and_messages_go_on() {
    let mut server = RedisServer::start().unwrap();
    for protocol in [2, 3] {
        let client = client(&server, protocol);
        let mut subscription = client.subscribe(["a", "b"]).wait().unwrap();
        publish(&client, "a", "before");
        assert_eq!(message(&mut subscription), pair("a", "before"));
        server.restart().unwrap();
        assert_eq!(next(&mut subscription), Notice::Gap);
        // What may be sent twice finds out that the connection of calls is gone, too.
        client.call::<()>(cmd("GET").key("k")).wait().unwrap();
        assert_eq!((publish(&client, "a", "after"), publish(&client, "b", "after")), (1, 1));
        assert_eq!(message(&mut subscription), pair("a", "after"));
        assert_eq!(message(&mut subscription), pair("b", "after"));
    }
}

#[test]
fn tasks_take_messages_as_a_stream() {
    let server = RedisServer::start().unwrap();
    let client = client(&server, 3);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut subscription = client.subscribe("a").await.unwrap();
        let publishing = tokio::spawn({
            let client = client.clone();
            async move {
                for round in 0..100 {
                    client.call::<()>(cmd("PUBLISH").key("a").arg(round)).await.unwrap();
                }
            }
        });
        for round in 0..100 {
            let notice = if round % 2 == 0 {
                subscription.recv().await
            } else {
                std::future::poll_fn(|cx| Pin::new(&mut subscription).poll_next(cx)).await
            };
            let Some(Notice::Message(message)) = notice else { panic!("{notice:?}") };
            assert_eq!(message.payload, round.to_string());
        }
        publishing.await.unwrap();
    });
}

#[test]
fn what_the_server_refuses_ends_that_subscription_alone() {
    let server = RedisServer::start().unwrap();
    let admin = client(&server, 3);
    let rule = ["ann", "on", ">word", "+@all", "~*", "resetchannels", "&a"];
    admin.call::<()>(cmd("ACL SETUSER").arg(rule.to_vec())).wait().unwrap();
    for protocol in [2, 3] {
        let url = format!("redis://ann:word@127.0.0.1:{}?protocol={protocol}", server.port());
        let client = Client::with_config(config(&url));
        let mut allowed = client.subscribe("a").wait().unwrap();
        let error = client.subscribe("secret").wait().unwrap_err();
        assert!(error.server().is_some_and(|error| error.code() == "NOPERM"), "{error:?}");
        publish(&client, "a", "one");
        assert_eq!(message(&mut allowed), pair("a", "one"));
    }
    let error = admin.subscribe(Vec::<String>::new()).wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unfit(_)), "{error:?}");
}

#[test]
fn subscriptions_come_and_go_while_others_stay() {
    let server = RedisServer::start().unwrap();
    let client = client(&server, 3);
    let mut stays = client.subscribe("stays").wait().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..50 {
                    // Each thread's own channel, and one that all subscribe to and give up.
                    let own = format!("own:{thread}");
                    let mut subscription = client.subscribe([&own, "shared"]).wait().unwrap();
                    let payload = round.to_string();
                    assert_eq!(publish(client, &own, &payload), 1);
                    loop {
                        let (channel, found) = message(&mut subscription);
                        if channel == own {
                            break assert_eq!(found, payload);
                        }
                    }
                    publish(client, "shared", "x");
                }
            });
        }
    });
    publish(&client, "stays", "last");
    assert_eq!(message(&mut stays), pair("stays", "last"));
}

#[test]
fn a_server_out_of_step_is_left_and_a_late_one_not_waited_for() {
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    let node = FakeBackend::start(|request| {
        let confirm = |name: &str| format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{name}\r\n:1\r\n", name.len()).into_bytes();
        match (&*request.command(), request.key()) {
            ("SUBSCRIBE", b"silent") => Act::Skip,
            ("SUBSCRIBE", _) if ROUND.fetch_add(1, Ordering::Relaxed) == 0 => Act::Bytes(confirm("other")),
            ("SUBSCRIBE", key) => {
                let mut bytes = confirm(&String::from_utf8_lossy(key));
                bytes.extend(b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n");
                Act::Bytes(bytes)
            }
            _ => Act::Usual,
        }
    })
    .unwrap();
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    let client = Client::with_config(config(&format!("redis://{address}")));
    let mut subscription = client.subscribe("a").wait().unwrap();
    assert_eq!(message(&mut subscription), pair("a", "hi"));
    let error = client.subscribe("silent").deadline(Duration::from_millis(50)).wait().unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
}

#[test]
fn confirmations_and_messages_may_come_byte_by_byte() {
    let node = FakeBackend::start(|request| match &*request.command() {
        "SUBSCRIBE" => {
            // Names as short as can be, and the shortest message.
            let bytes = b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$0\r\n\r\n";
            Act::Slowly(bytes.to_vec(), Duration::ZERO)
        }
        _ => Act::Usual,
    })
    .unwrap();
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    let client = Client::with_config(config(&format!("redis://{address}")));
    let mut subscription = client.subscribe("a").wait().unwrap();
    assert_eq!(message(&mut subscription), pair("a", ""));
    assert_eq!(node.connections(), 1);
}

#[test]
fn a_subscription_does_not_wait_for_an_attempt_to_connect() {
    // Connections are taken by the kernel, and no handshake is answered.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let limit = Duration::from_secs(120);
    let client = Client::with_config(config(&listener.local_addr().unwrap().to_string()).connect_limit(limit));
    let (ended, ends) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(client.subscribe("a").deadline(Duration::from_millis(50)).wait().map(drop)));
    let error = ends.recv_timeout(LIMIT).expect("it ends").unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
}

/// Answers as a server that is alone with a slow script does when it is subscribed to again, `busy` times.
#[test]
fn a_server_that_is_busy_for_a_while_ends_no_subscription() {
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    let node = FakeBackend::start(|request| {
        if &*request.command() != "SUBSCRIBE" {
            return Act::Usual;
        }
        let confirmed = ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n";
        let message = ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n";
        match ROUND.fetch_add(1, Ordering::Relaxed) {
            // And is out of step behind that, so that its connection is left.
            0 => Act::Bytes(format!("{confirmed}{message}$5\r\nfirst\r\n-ERR unasked\r\n").into_bytes()),
            1..4 => Act::Bytes(b"-BUSY Redis is busy running a script.\r\n".to_vec()),
            _ => Act::Bytes(format!("{confirmed}{message}$6\r\nsecond\r\n").into_bytes()),
        }
    })
    .unwrap();
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    let client = Client::with_config(config(&format!("redis://{address}")));
    let mut subscription = client.subscribe("a").wait().unwrap();
    assert_eq!(message(&mut subscription), pair("a", "first"));
    assert_eq!(next(&mut subscription), Notice::Gap);
    assert_eq!(message(&mut subscription), pair("a", "second"));
    assert_eq!(ROUND.load(Ordering::Relaxed), 5);
}

/// A server that confirms subscriptions. From its second connection of them on it does not answer a handshake before the gate is open.
fn confirming(gate: &Gate) -> FakeBackend {
    let gate = gate.clone();
    FakeBackend::start(move |request| {
        let name = String::from_utf8_lossy(request.key()).into_owned();
        let confirm =
            |verb: &str| format!(">3\r\n${}\r\n{verb}\r\n${}\r\n{name}\r\n:1\r\n", verb.len(), name.len()).into_bytes();
        match &*request.command() {
            "HELLO" if request.connection > 0 => Act::Hold(gate.clone()),
            "SUBSCRIBE" => Act::Bytes(confirm("subscribe")),
            "UNSUBSCRIBE" => Act::Bytes(confirm("unsubscribe")),
            _ => Act::Usual,
        }
    })
    .unwrap()
}

/// What was asked for on connections from this one on.
fn asked_from(node: &FakeBackend, connection: usize) -> Vec<String> {
    let asked = node.received().into_iter().filter(|request| request.connection >= connection);
    let shown = asked.map(|request| format!("{} {}", request.command(), String::from_utf8_lossy(request.key())));
    shown.filter(|shown| shown.contains("SUBSCRIBE")).collect()
}

#[test]
fn what_is_dropped_without_a_connection_is_not_asked_for_again() {
    let gate = Gate::new();
    let node = confirming(&gate);
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    let client = Client::with_config(config(&format!("redis://{address}")));
    let mut stays = client.subscribe(["stays", "shared"]).wait().unwrap();
    let goes = client.subscribe(["goes", "shared"]).wait().unwrap();
    assert_eq!(asked_from(&node, 0).len(), 3);
    // Out of step, so that the connection is left. The next one is there, and its handshake is not over.
    node.blurt_on(0, b"-ERR unasked\r\n");
    wait_until("the server is dialled again", LIMIT, || Ok(node.connections() == 2)).unwrap();
    drop(goes);
    // One that was begun and is given up meanwhile.
    let mut begun = Box::pin(client.subscribe("begun"));
    assert!(begun.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
    drop(begun);
    gate.open();
    assert_eq!(next(&mut stays), Notice::Gap);
    let sorted = || {
        let mut asked = asked_from(&node, 1);
        asked.sort();
        asked
    };
    assert_eq!(sorted(), ["SUBSCRIBE shared", "SUBSCRIBE stays"]);
    // What was dropped is no longer there to be in the way.
    let again = client.subscribe(["goes", "begun"]).wait().unwrap();
    drop(again);
    wait_until("channels are given up", LIMIT, || Ok(sorted().len() == 6)).unwrap();
    let whole = ["begun", "goes"].map(|name| format!("SUBSCRIBE {name}"));
    assert!(whole.iter().all(|asked| sorted().contains(asked)), "{:?}", sorted());
    assert_eq!(node.connections(), 2);
}

#[test]
fn all_that_is_dropped_without_a_connection_asks_for_nothing() {
    let gate = Gate::new();
    let node = confirming(&gate);
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    let client = Client::with_config(config(&format!("redis://{address}")));
    let goes = client.subscribe("goes").wait().unwrap();
    node.blurt_on(0, b"-ERR unasked\r\n");
    wait_until("the server is dialled again", LIMIT, || Ok(node.connections() == 2)).unwrap();
    drop(goes);
    gate.open();
    // Behind the end of the thread that had been about to subscribe, or before it.
    let other = client.subscribe("other").wait().unwrap();
    assert_eq!(asked_from(&node, 1), ["SUBSCRIBE other"]);
    drop(other);
}

#[test]
fn an_observer_is_told_of_connections_of_subscriptions() {
    #[derive(Default)]
    struct Heard(Mutex<Vec<&'static str>>);
    impl Observer for Heard {
        fn event(&self, event: &Event<'_>) {
            let word = match event {
                Event::Connected { .. } => "connected",
                Event::NotConnected { .. } => return,
                Event::Lost { .. } => "lost",
                _ => "other",
            };
            self.0.lock().unwrap().push(word);
        }
    }
    let mut server = RedisServer::start().unwrap();
    let heard = Arc::new(Heard::default());
    let observed = config(&format!("redis://127.0.0.1:{}", server.port())).observer(Arc::clone(&heard) as _);
    let client = Client::with_config(observed);
    let mut subscription = client.subscribe("a").wait().unwrap();
    server.restart().unwrap();
    assert_eq!(next(&mut subscription), Notice::Gap);
    drop(subscription);
    let now = || heard.0.lock().unwrap().clone();
    assert_eq!(now(), ["connected", "lost", "connected"]);
}
