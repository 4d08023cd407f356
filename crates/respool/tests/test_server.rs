//! The server for other programs' tests: its clock, what it shows, and the faults that it makes.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use respool::test_server::{Data, Fault, Reply, Stored, StreamEntry, TestServer, TestServerBuilder};
use respool_testkit::{Address, Client, PATIENCE, TempDir, elements};

#[path = "../examples/test_server.rs"]
mod example;

/// Real time in which nothing must happen.
const A_MOMENT: Duration = Duration::from_millis(150);

/// In September 2020.
const START_S: u64 = 1_600_000_000;

fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(START_S)
}

/// A server whose clock stands at [`START_S`].
fn frozen() -> TestServerBuilder {
    TestServer::builder().at(start()).frozen()
}

fn try_connect(server: &TestServer) -> io::Result<Client> {
    let address = match server.port() {
        Some(_) => Address::Tcp(server.address().parse().expect("an address")),
        None => Address::Unix(server.address().into()),
    };
    Client::connect(&address)
}

fn connect(server: &TestServer) -> Client {
    try_connect(server).expect("it accepts")
}

/// The reply to a request, its line ends as blanks.
fn ask(client: &mut Client, request: &str) -> String {
    client.ask(request).expect("a reply").replace("\r\n", " ").trim_end().to_owned()
}

/// Sends a request of another client and waits for its reply elsewhere.
fn in_background(server: &TestServer, request: &str) -> JoinHandle<String> {
    let (mut client, request) = (connect(server), request.to_owned());
    thread::spawn(move || ask(&mut client, &request))
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[test]
fn the_example_runs() {
    example::main().expect("it runs");
}

#[test]
fn what_clients_see_of_time_follows_the_clock() {
    let server = frozen().set("slowlog_log_slower_than", 0).start();
    // The parameter is one of CONFIG, not of settings.
    assert!(server.is_err(), "settings that do not exist are errors");
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "CONFIG SET slowlog-log-slower-than 0 maxmemory-policy allkeys-lru"), "+OK");
    assert_eq!(ask(&mut client, "SET k v EX 100"), "+OK");
    assert_eq!(ask(&mut client, "XADD s * a 1"), "$15 1600000000000-0");
    assert_eq!(ask(&mut client, "HSET h f v"), ":1");
    assert_eq!(ask(&mut client, "HPEXPIRE h 50000 FIELDS 1 f"), "*1 :1");
    let before = ask(&mut client, "LASTSAVE");
    assert!(!server.wait_for(A_MOMENT, |_| false));
    assert_eq!(ask(&mut client, "TIME"), "*2 $10 1600000000 $1 0", "no time passes by itself");
    assert_eq!(ask(&mut client, "PTTL k"), ":100000");
    server.clock().advance(Duration::from_micros(40_000_007));
    assert_eq!(ask(&mut client, "TIME"), "*2 $10 1600000040 $1 7");
    assert_eq!(ask(&mut client, "PTTL k"), ":60000");
    assert_eq!(ask(&mut client, "PEXPIRETIME k"), ":1600000100000");
    assert_eq!(ask(&mut client, "HPTTL h FIELDS 1 f"), "*1 :10000");
    assert_eq!(ask(&mut client, "OBJECT IDLETIME k"), ":40");
    assert_eq!(ask(&mut client, "XADD s * a 2"), "$15 1600000040000-0");
    assert_eq!(ask(&mut client, "LASTSAVE"), before, "nothing was saved");
    assert!(ask(&mut client, "SLOWLOG GET 1").contains(":1600000040 "), "{}", ask(&mut client, "SLOWLOG GET 1"));
    assert_eq!(
        client.command(&["EVAL", "return redis.call('TIME')", "0"]).expect("a reply"),
        b"*2\r\n$10\r\n1600000040\r\n$1\r\n0\r\n"
    );
    server.clock().advance(ms(10_000));
    assert_eq!(ask(&mut client, "EXISTS h"), ":0", "its only field has expired");
    server.clock().set(start() + ms(99_999));
    assert_eq!(ask(&mut client, "PTTL k"), ":1");
    server.clock().advance(ms(1));
    assert_eq!(ask(&mut client, "DBSIZE"), ":1", "the stream is left");
    server.clock().run();
    assert!(!server.clock().is_frozen());
    let running = server.clock().now();
    assert!(server.wait_for(PATIENCE, |server| server.clock().now() > running), "it goes on");
}

#[test]
fn what_expires_is_gone_with_its_events() {
    const KEYS: usize = 10_000;
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    // More than the engine looks at in one turn, in two databases, and hashes with more fields than it removes at once.
    for database in [3, 0] {
        assert_eq!(ask(&mut client, &format!("SELECT {database}")), "+OK");
        let keys = (0..KEYS).map(|key| format!("SET k{key} v PX {}\r\n", 1_000 + key % 7));
        client.send(keys.collect::<String>().as_bytes()).expect("they are sent");
        client.replies(KEYS).expect("replies");
        let fields: Vec<String> = (0..9_000).map(|field| format!("f{field}")).collect();
        let pairs = fields.iter().flat_map(|field| [field.as_str(), "v"]);
        let database = server.database(database);
        database.run(["HSET", "h"].into_iter().chain(pairs).chain(["stays", "v"]));
        let expire = ["HPEXPIRE", "h", "1000", "FIELDS", "9000"].into_iter();
        database.run(expire.chain(fields.iter().map(String::as_str)));
    }
    let mut listener = connect(&server);
    assert_eq!(ask(&mut client, "CONFIG SET notify-keyspace-events Ex"), "+OK");
    assert_eq!(ask(&mut client, "SET last v PX 1007"), "+OK");
    assert_eq!(ask(&mut listener, "SUBSCRIBE __keyevent@0__:expired"), "*3 $9 subscribe $22 __keyevent@0__:expired :1");
    server.clock().advance(ms(1_006));
    // These look at no key: what is gone has been removed.
    assert_eq!(ask(&mut client, "DBSIZE"), ":2");
    assert_eq!(ask(&mut client, "HLEN h"), ":1");
    assert_eq!(ask(&mut client, "SELECT 3"), "+OK");
    assert_eq!(ask(&mut client, "DBSIZE"), ":1");
    let events: Vec<_> = listener.replies(KEYS).expect("an event for each key");
    assert!(events.iter().all(|event| elements(event).last().is_some_and(|key| key.contains(&b'k'))));
    server.clock().advance(ms(1));
    let last = listener.reply().expect("an event");
    assert_eq!(elements(&last).last(), Some(&&b"$4\r\nlast\r\n"[..]));
}

#[test]
fn keys_that_a_client_tracks_expire_at_once() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    ask(&mut client, "HELLO 3");
    assert_eq!(ask(&mut client, "CLIENT TRACKING on"), "+OK");
    assert_eq!(ask(&mut client, "SET k v PX 10"), "+OK");
    assert_eq!(ask(&mut client, "GET k"), "$1 v");
    server.clock().advance(ms(10));
    let told = client.reply().expect("an invalidation");
    assert_eq!(told, b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
}

#[test]
fn blocked_clients_time_out_by_the_clock_alone() {
    let server = frozen().start().expect("it starts");
    let requests =
        ["BLPOP l 0.05", "XREAD BLOCK 50 STREAMS s $", "BLMOVE a b LEFT LEFT 0.05", "BZPOPMIN z 0.05", "WAIT 1 50"];
    let waiting = requests.map(|request| in_background(&server, request));
    assert!(server.wait_for_blocked(waiting.len(), PATIENCE));
    assert!(!server.wait_for(A_MOMENT, |server| server.blocked_clients() < 5), "no real time counts");
    server.clock().advance(ms(49));
    assert_eq!(server.blocked_clients(), 5);
    server.clock().advance(ms(1));
    assert_eq!(server.blocked_clients(), 0, "when the call returns they are answered");
    let replies = waiting.map(|one| one.join().expect("it does not panic"));
    assert_eq!(replies, ["*-1", "*-1", "*-1", "*-1", ":0"]);
}

/// More than are answered in one turn.
#[test]
fn a_crowd_of_blocked_clients_times_out_together() {
    let server = frozen().start().expect("it starts");
    let mut crowd: Vec<Client> = (0..700).map(|_| connect(&server)).collect();
    crowd.iter_mut().for_each(|client| client.send_command(&["BLPOP", "l", "1"]).expect("it is sent"));
    assert!(server.wait_for_blocked(700, PATIENCE));
    let mut other = connect(&server);
    server.clock().advance(ms(1_000));
    assert_eq!(server.blocked_clients(), 0);
    assert_eq!(ask(&mut other, "RPUSH l a"), ":1", "a later request finds no waiting client");
    crowd.iter_mut().for_each(|client| assert_eq!(client.reply().expect("a reply"), b"*-1\r\n"));
    assert_eq!(server.database(0).get("l"), Some(Stored::List(vec![b"a".to_vec()])));
}

#[test]
fn a_pause_of_clients_ends_by_the_clock_alone() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "SET k v PX 20"), "+OK");
    assert_eq!(ask(&mut client, "CLIENT PAUSE 50 WRITE"), "+OK");
    let held = in_background(&server, "SET held v");
    assert!(server.wait_for_blocked(1, PATIENCE));
    assert!(!server.wait_for(A_MOMENT, |server| server.blocked_clients() == 0), "no real time counts");
    server.clock().advance(ms(49));
    assert_eq!(server.blocked_clients(), 1);
    assert_eq!(ask(&mut client, "EXISTS k"), ":0", "it has expired");
    assert_eq!(ask(&mut client, "DBSIZE"), ":1", "and is kept as long as clients pause, as in Redis");
    server.clock().advance(ms(1));
    assert_eq!(ask(&mut client, "GET held"), "$1 v", "what was held back goes before any later request");
    assert_eq!(held.join().expect("it does not panic"), "+OK");
    assert_eq!(ask(&mut client, "DBSIZE"), ":1");
    assert_eq!(server.last_commands(2).iter().map(ToString::to_string).collect::<Vec<_>>(), ["GET held", "DBSIZE"]);
    let all = server.last_commands(99);
    assert_eq!(all.iter().filter(|seen| seen.to_string() == "SET held v").count(), 1, "it is seen once: {all:?}");
}

#[test]
fn a_clock_that_is_set_back_takes_nothing_away() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "SET k v EX 100"), "+OK");
    assert_eq!(ask(&mut client, "XADD s * a 1"), "$15 1600000000000-0");
    let waiting = in_background(&server, "BLPOP l 10");
    assert!(server.wait_for_blocked(1, PATIENCE));
    server.clock().advance(ms(4_000));
    server.clock().set(start() - Duration::from_secs(1_000));
    assert_eq!(server.clock().now(), start() - Duration::from_secs(1_000));
    assert_eq!(ask(&mut client, "TTL k"), ":1100");
    assert_eq!(ask(&mut client, "XADD s * a 2"), "$15 1600000000000-1", "ids only grow");
    assert_eq!(ask(&mut client, "OBJECT IDLETIME k"), ":16776216", "as in Redis, whose clock for that has 24 bits");
    server.clock().advance(ms(5_999));
    assert_eq!(server.blocked_clients(), 1, "6 s were left to it");
    server.clock().advance(ms(1));
    assert_eq!(waiting.join().expect("it does not panic"), "*-1");
    for time in [UNIX_EPOCH, UNIX_EPOCH + Duration::from_millis(1), start()] {
        server.clock().set(time);
        assert_eq!(ask(&mut client, "GET k"), "$1 v");
        assert_eq!(ask(&mut client, "SET other v PX 5"), "+OK");
        server.clock().advance(ms(5));
        assert_eq!(ask(&mut client, "EXISTS other"), ":0");
        assert!(ask(&mut client, "INFO").starts_with('$'));
    }
}

#[test]
fn a_clock_that_jumps_over_years_breaks_nothing() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    let mut idle = connect(&server);
    assert_eq!(ask(&mut idle, "PING"), "+PONG");
    assert_eq!(ask(&mut client, "CONFIG SET timeout 5"), "+OK");
    assert_eq!(ask(&mut client, "SET k v EX 2000000000"), "+OK");
    let waiting = in_background(&server, "BLPOP l 0");
    assert!(server.wait_for_blocked(1, PATIENCE));
    for years in [1, 10, 50] {
        server.clock().advance(YEAR * years);
        assert_eq!(ask(&mut client, "EXISTS k"), ":1");
    }
    server.clock().advance(YEAR * 10);
    assert_eq!(ask(&mut client, "EXISTS k"), ":0");
    server.clock().advance(YEAR * 1_000_000);
    assert_eq!(ask(&mut client, "TIME"), "*2 $12 253402300799 $6 999999", "the end of the year 9999");
    server.clock().advance(Duration::MAX);
    assert_eq!(ask(&mut client, "SET k v PX 5"), "+OK");
    assert!(ask(&mut client, "XADD s * a 1").starts_with("$17 253402300799999-"));
    assert!(ask(&mut client, "INFO").starts_with('$'));
    assert_eq!(ask(&mut idle, "PING"), "+PONG", "how long it is idle is real time");
    assert_eq!(server.blocked_clients(), 1, "who waits for ever does so");
    assert_eq!(ask(&mut client, "RPUSH l a"), ":1");
    assert_eq!(waiting.join().expect("it does not panic"), "*2 $1 l $1 a");
}

#[test]
fn a_script_sees_one_time_however_the_clock_is_moved() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "CONFIG SET busy-reply-threshold 20"), "+OK");
    assert_eq!(ask(&mut client, "SET k v PX 100"), "+OK");
    let script = "local before = redis.call('TIME')[1] local n = 0 \
        while redis.call('EXISTS', 'k') == 1 and n < 200000 do n = n + 1 end \
        return {redis.call('TIME')[1] - before, redis.call('EXISTS', 'k')}";
    let mut other = connect(&server);
    let running = thread::spawn(move || other.command(&["EVAL", script, "1", "k"]).expect("a reply"));
    let is_eval = |server: &TestServer| server.last_commands(1).iter().any(|seen| seen.to_string().starts_with("EVAL"));
    assert!(server.wait_for(PATIENCE, is_eval));
    while !running.is_finished() {
        server.clock().advance(ms(50));
    }
    assert_eq!(running.join().expect("it does not panic"), b"*2\r\n:0\r\n:1\r\n");
    server.clock().advance(ms(100));
    assert_eq!(ask(&mut client, "DBSIZE"), ":0", "it expires behind the script");
}

#[test]
fn transactions_meet_a_clock_that_is_moved() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "SET k v PX 100"), "+OK");
    assert_eq!(ask(&mut client, "WATCH k"), "+OK");
    assert_eq!(ask(&mut client, "MULTI"), "+OK");
    assert_eq!(ask(&mut client, "BLPOP l 10"), "+QUEUED");
    assert_eq!(ask(&mut client, "TIME"), "+QUEUED");
    server.clock().advance(ms(99));
    assert_eq!(ask(&mut client, "EXEC"), "*2 *-1 *2 $10 1600000000 $5 99000", "in MULTI nothing waits");
    assert_eq!(ask(&mut client, "WATCH k"), "+OK");
    server.clock().advance(ms(1));
    assert_eq!(ask(&mut client, "MULTI"), "+OK");
    assert_eq!(ask(&mut client, "PING"), "+QUEUED");
    assert_eq!(ask(&mut client, "EXEC"), "*-1", "what was watched has expired");
}

#[test]
fn several_engines_have_one_clock() {
    let server = frozen().set("engine_threads", 3).set("workers", 2).start().expect("it starts");
    let mut client = connect(&server);
    for key in 0..300 {
        assert_eq!(ask(&mut client, &format!("SET k{key} v PX 100")), "+OK");
    }
    let waiting: Vec<_> = (0..12).map(|list| in_background(&server, &format!("BLPOP l{list} 0.1"))).collect();
    assert!(server.wait_for_blocked(12, PATIENCE));
    assert_eq!(server.database(0).len(), 300);
    assert!(!server.wait_for(ms(600), |server| server.blocked_clients() < 12), "no real time counts");
    server.clock().advance(ms(99));
    assert_eq!((server.blocked_clients(), ask(&mut client, "DBSIZE")), (12, ":300".to_owned()));
    server.clock().advance(ms(1));
    assert_eq!(ask(&mut client, "DBSIZE"), ":0");
    assert_eq!(server.blocked_clients(), 0, "when the call returns they are answered");
    waiting.into_iter().for_each(|one| assert_eq!(one.join().expect("it does not panic"), "*-1"));
    let waiting = in_background(&server, "BLPOP l 1");
    assert!(server.wait_for_blocked(1, PATIENCE));
    server.clock().advance(YEAR);
    assert_eq!(waiting.join().expect("it does not panic"), "*-1");
    assert_eq!(ask(&mut client, "CLIENT PAUSE 50"), "+OK");
    let held = in_background(&server, "SET held v");
    assert!(server.wait_for_blocked(1, PATIENCE));
    server.clock().advance(ms(50));
    assert_eq!(held.join().expect("it does not panic"), "+OK");
    assert!(matches!(server.database(0).run(["GET", "held"]), Reply::Error(_)), "it would have to find its engine");
    assert_eq!(server.database(0).string("held").as_deref(), Some("v"));
    server.restart(Data::Kept).expect("it starts again");
    assert_eq!(ask(&mut connect(&server), "GET held"), "$1 v");
}

#[test]
fn servers_beside_each_other_share_nothing() {
    let servers: Vec<TestServer> =
        (0..12).map(|n| frozen().at(start() + YEAR * n).start().expect("it starts")).collect();
    let mut clients: Vec<Client> = servers.iter().map(connect).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(ask(client, &format!("SET k {number} EX 10")), "+OK");
    }
    servers[3].clock().advance(Duration::from_secs(10));
    for (number, (server, client)) in servers.iter().zip(&mut clients).enumerate() {
        let expected = if number == 3 { None } else { Some(number.to_string()) };
        assert_eq!(server.database(0).string("k"), expected);
        let late_s = if number == 3 { 10 } else { 0 };
        let seconds = START_S + (YEAR * u32::try_from(number).expect("small")).as_secs() + late_s;
        assert_eq!(ask(client, "TIME"), format!("*2 $10 {seconds} $1 0"));
        assert_eq!(server.commands_seen(), 2);
    }
}

#[test]
fn a_server_that_is_dropped_waits_for_no_client() {
    let server = TestServer::start().expect("it starts");
    let waiting: Vec<Client> = (0..3)
        .map(|_| {
            let mut client = connect(&server);
            client.send_command(&["BLPOP", "l", "0"]).expect("it is sent");
            client
        })
        .collect();
    let _ = server.inject(Fault::hang().on("GET"));
    let mut hung = connect(&server);
    hung.send_command(&["GET", "k"]).expect("it is sent");
    assert!(server.wait_for_blocked(4, PATIENCE));
    let (address, began) = (server.address(), Instant::now());
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    for mut client in waiting.into_iter().chain([hung]) {
        assert_eq!(client.read_to_close().expect("an end"), b"");
    }
    let address = Address::Tcp(address.parse().expect("an address"));
    assert!(Client::connect(&address).is_err(), "nothing listens there");
}

#[test]
fn a_restart_keeps_the_data_or_loses_it() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    let requests = [
        "SET string v",
        "SET dying v PX 5000",
        "RPUSH list a b",
        "SADD set a b",
        "SADD ints 1 2",
        "HSET hash f v g w",
        "HPEXPIRE hash 700 FIELDS 1 g",
        "ZADD zset 1.5 a",
        "XADD stream 5-1 f v",
        "XGROUP CREATE stream group 0",
        "PFADD hll a",
        "SELECT 7",
        "SET seventh v",
        "SCRIPT LOAD return",
    ];
    requests.iter().for_each(|request| assert!(!ask(&mut client, request).starts_with('-'), "{request}"));
    let library = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    assert_eq!(client.command(&["FUNCTION", "LOAD", library]).expect("a reply"), b"$3\r\nlib\r\n");
    let before = server.dump();
    let address = server.address();
    server.restart(Data::Kept).expect("it starts again");
    assert_eq!((server.dump(), server.address()), (before, address));
    assert_eq!(client.read_to_close().expect("an end"), b"", "connections end");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "FCALL f 0"), ":7");
    assert_eq!(ask(&mut client, "HPTTL hash FIELDS 2 f g"), "*2 :-1 :700");
    assert_eq!(ask(&mut client, "PFCOUNT hll"), ":1");
    assert!(ask(&mut client, "XINFO GROUPS stream").contains("group"));
    server.stop();
    assert!(!server.is_running() && try_connect(&server).is_err() && server.clients() == 0);
    server.clock().advance(ms(5_000));
    server.stop();
    server.restart(Data::Kept).expect("it starts again");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "EXISTS dying"), ":0", "it has expired meanwhile");
    assert_eq!(ask(&mut client, "HLEN hash"), ":1");
    server.restart(Data::Lost).expect("it starts again");
    assert_eq!(server.dump(), "there are no keys\n");
}

#[test]
fn clients_that_connect_again_meet_a_restart() {
    let server = TestServer::start().expect("it starts");
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                let server = &server;
                scope.spawn(move || {
                    let mut acknowledged = 0;
                    let mut client = None;
                    while acknowledged < 200 {
                        let connected = match client.as_mut() {
                            Some(connected) => connected,
                            None => match try_connect(server) {
                                Ok(fresh) => client.insert(fresh),
                                Err(_) => continue,
                            },
                        };
                        // Not done, or done and not known: it is asked again, which changes nothing.
                        match connected.ask(&format!("HSET h{worker} f{acknowledged} v")) {
                            Ok(reply) if reply.starts_with(':') => acknowledged += 1,
                            _ => client = None,
                        }
                    }
                })
            })
            .collect();
        for _ in 0..15 {
            let seen = server.commands_seen();
            let is_over = || workers.iter().all(|worker| worker.is_finished());
            assert!(server.wait_for(PATIENCE, |server| server.commands_seen() >= seen + 10 || is_over()));
            server.restart(Data::Kept).expect("it starts again");
        }
    });
    for worker in 0..4 {
        let Some(Stored::Hash(hash)) = server.database(0).get(format!("h{worker}")) else {
            panic!("{}", server.dump())
        };
        assert_eq!(hash.len(), 200, "what was acknowledged is there");
    }
}

#[test]
fn requests_fail_as_often_as_the_test_says() {
    let server = TestServer::start().expect("it starts");
    let mut client = connect(&server);
    let fault = server.inject(Fault::error("LOADING Redis is loading").on("get").after(1).times(2));
    let replies: Vec<String> = (0..5).map(|_| ask(&mut client, "GET k")).collect();
    assert_eq!(replies, ["$-1", "-LOADING Redis is loading", "-LOADING Redis is loading", "$-1", "$-1"]);
    assert_eq!((fault.met(), ask(&mut client, "SET k v").as_str()), (2, "+OK"));
    let key = server.inject(Fault::error("ERR it is broken").with_argument("broken"));
    assert_eq!(ask(&mut client, "SET broken v"), "-ERR it is broken");
    assert_eq!(ask(&mut client, "SET whole v"), "+OK");
    assert_eq!(ask(&mut client, "MULTI"), "+OK");
    assert_eq!(ask(&mut client, "DEL broken"), "-ERR it is broken");
    assert!(ask(&mut client, "EXEC").starts_with("-EXECABORT"));
    assert!(key.wait_for(2, PATIENCE) && !key.wait_for(3, ms(1)));
    key.lift();
    assert_eq!(ask(&mut client, "SET broken v"), "+OK");
    // The first that is for a request meets it.
    let (first, second) =
        (server.inject(Fault::error("A first").times(1)), server.inject(Fault::error("B second").times(1)));
    assert_eq!([(); 3].map(|()| ask(&mut client, "PING")), ["-A first", "-B second", "+PONG"]);
    assert_eq!((first.met(), second.met()), (1, 1));
    // An error cannot be more than one line.
    let _ = server.inject(Fault::error("X a\r\n+OK\r\n").times(1));
    let reply = client.command(&["PING"]).expect("a reply");
    assert_eq!(reply.iter().filter(|byte| **byte == b'\n').count(), 1, "{}", reply.escape_ascii());
    assert_eq!(ask(&mut client, "PING"), "+PONG");
}

#[test]
fn connections_are_closed_and_refused() {
    let server = TestServer::start().expect("it starts");
    let (mut one, mut other) = (connect(&server), connect(&server));
    assert_eq!(ask(&mut other, "PING"), "+PONG");
    let fault = server.inject(Fault::close().on("INCR").times(1));
    one.send(b"SET k 1\r\nINCR k\r\nINCR k\r\n").expect("it is sent");
    let last = one.read_to_close().expect("an end");
    assert!(b"+OK\r\n".starts_with(&last), "{}", last.escape_ascii());
    assert_eq!(
        (fault.met(), server.database(0).string("k").as_deref()),
        (1, Some("1")),
        "nothing behind it is executed"
    );
    server.refuse_connections(true);
    assert_eq!(connect(&server).read_to_close().expect("an end"), b"-ERR connection refused by policy\r\n");
    assert_eq!(ask(&mut other, "INCR k"), ":2", "who is there stays");
    server.lift_all_faults();
    let mut waiting = connect(&server);
    waiting.send_command(&["BLPOP", "l", "0"]).expect("it is sent");
    assert!(server.wait_for_blocked(1, PATIENCE));
    assert_eq!(server.close_connections(), 2);
    assert_eq!(server.clients(), 0);
    for client in [&mut other, &mut waiting] {
        assert_eq!(client.read_to_close().expect("an end"), b"");
    }
    assert_eq!(ask(&mut connect(&server), "RPUSH l a"), ":1", "no client waits any more");
}

#[test]
fn what_hangs_goes_on_in_its_order() {
    let server = TestServer::start().expect("it starts");
    let (mut client, mut other) = (connect(&server), connect(&server));
    let fault = server.inject(Fault::hang().on("SET").times(2));
    client.send(b"PING\r\nSET k 1\r\nGET k\r\n").expect("it is sent");
    assert!(fault.wait_for(1, PATIENCE));
    assert_eq!(client.reply().expect("a reply"), b"+PONG\r\n");
    assert_eq!(ask(&mut other, "GET k"), "$-1", "others go on");
    // What is about something else has those that hang asked about again, and they hang on.
    let unrelated = server.inject(Fault::error("ERR x").on("PING"));
    unrelated.lift();
    assert_eq!(ask(&mut other, "GET k"), "$-1");
    assert!(client.take_arrived().expect("it is open").is_empty());
    assert_eq!((fault.met(), server.blocked_clients()), (1, 1));
    fault.lift();
    assert_eq!(client.replies(2).expect("replies"), [b"+OK\r\n".to_vec(), b"$1\r\n1\r\n".to_vec()]);
    assert_eq!(ask(&mut other, "SET k 2"), "+OK");
    let seen: Vec<String> = server.last_commands(99).iter().map(ToString::to_string).collect();
    assert_eq!(seen.iter().filter(|seen| *seen == "SET k 1").count(), 1, "{seen:?}");
    // Who gives up while it hangs has not done it.
    let fault = server.inject(Fault::hang().on("INCR"));
    client.send_command(&["INCR", "k"]).expect("it is sent");
    assert!(fault.wait_for(1, PATIENCE));
    drop(client);
    assert!(server.wait_for(PATIENCE, |server| server.clients() == 1));
    server.lift_all_faults();
    assert_eq!(ask(&mut other, "GET k"), "$1 2");
}

#[test]
fn several_threads_stop_a_server_and_start_it_again() {
    let server = TestServer::start().expect("it starts");
    server.database(0).run(["SET", "k", "v"]);
    for round in 0..20 {
        let _clients = [connect(&server), connect(&server)];
        thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(|| server.stop())));
        assert!(!server.is_running(), "{round}");
        let start = || server.restart(Data::Kept).expect("it starts");
        thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(start)));
        assert_eq!(ask(&mut connect(&server), "GET k"), "$1 v", "{round}");
    }
}

/// Over a unix socket all have the same address, and the next one has the descriptor of the one that went.
#[test]
fn a_hang_ends_with_its_client() {
    let folder = TempDir::new().expect("a folder");
    let server = TestServer::builder().unix_socket(folder.join("r.sock")).start().expect("it starts");
    let fault = server.inject(Fault::hang().on("GET"));
    for lifts in [false, true] {
        let mut client = connect(&server);
        assert_eq!(ask(&mut client, "PING"), "+PONG", "it is for GET alone");
        let met = fault.met();
        client.send_command(&["GET", "k"]).expect("it is sent");
        assert!(fault.wait_for(met + 1, PATIENCE));
        drop(client);
        assert!(server.wait_for(PATIENCE, |server| server.clients() == 0));
        if lifts {
            fault.lift();
        }
    }
    // And what was lifted lets none pass that another fault is for.
    server.inject(Fault::error("ERR broken").on("SET"));
    assert_eq!(ask(&mut connect(&server), "SET k v"), "-ERR broken");
    assert_eq!(server.last_commands(1)[0].to_string(), "SET k v");
}

#[test]
fn a_test_sees_every_type_of_value() {
    let server = frozen().databases(3).start().expect("it starts");
    let database = server.database(1);
    let requests: [&[&str]; 8] = [
        &["SET", "string", "a\r\nb"],
        &["RPUSH", "list", "a", "b"],
        &["SADD", "set", "b", "a"],
        &["HSET", "hash", "f", "v"],
        &["ZADD", "zset", "2.5", "b", "-inf", "a"],
        &["XADD", "stream", "5-1", "f", "v", "f", "w"],
        &["SET", "n", "7"],
        &["PEXPIRE", "hash", "1500"],
    ];
    requests.iter().for_each(|request| assert!(!matches!(database.run(*request), Reply::Error(_)), "{request:?}"));
    let of = |text: &str| text.as_bytes().to_vec();
    assert_eq!(database.get("string"), Some(Stored::String(of("a\r\nb"))));
    assert_eq!(database.get("list"), Some(Stored::List(vec![of("a"), of("b")])));
    assert_eq!(database.get("set"), Some(Stored::Set([of("a"), of("b")].into())));
    assert_eq!(database.get("hash"), Some(Stored::Hash([(of("f"), of("v"))].into())));
    assert_eq!(database.get("zset"), Some(Stored::SortedSet(vec![(of("a"), f64::NEG_INFINITY), (of("b"), 2.5)])));
    let entry = StreamEntry { id: "5-1".to_owned(), fields: vec![(of("f"), of("v")), (of("f"), of("w"))] };
    assert_eq!(database.get("stream"), Some(Stored::Stream(vec![entry])));
    assert_eq!(
        (database.string("n").as_deref(), database.string("list"), database.get("none")),
        (Some("7"), None, None)
    );
    assert_eq!((database.ttl("hash"), database.ttl("n"), database.ttl("none")), (Some(ms(1_500)), None, None));
    assert_eq!(database.expires_at("hash"), Some(start() + ms(1_500)));
    assert_eq!((database.len(), database.contains("n"), server.database(0).is_empty()), (7, true, true));
    assert_eq!(
        server.dump(),
        "database 1\n  \"hash\" hash \"f\": \"v\", expires in 1.5s\n  \"list\" list \"a\", \"b\"\n  \"n\" string \"7\"\n  \
         \"set\" set \"a\", \"b\"\n  \"stream\" stream 5-1 \"f\": \"v\" \"f\": \"w\"\n  \"string\" string \"a\\r\\nb\"\n  \
         \"zset\" sorted set \"a\": -inf, \"b\": 2.5\n"
    );
    assert!(matches!(server.database(3).run(["GET", "k"]), Reply::Error(_)), "there are three");
    assert!(matches!(database.run(["NOSUCH"]), Reply::Error(_)) && matches!(database.run(["GET"]), Reply::Error(_)));
    assert!(matches!(database.run(["EVAL", "return 1", "0"]), Reply::Error(_)), "scripts need a connection");
}

#[test]
fn to_look_at_a_key_is_no_use_of_it() {
    let server = frozen().start().expect("it starts");
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "SET k v"), "+OK");
    server.clock().advance(Duration::from_secs(77));
    assert_eq!(server.database(0).string("k").as_deref(), Some("v"));
    let _ = server.dump();
    assert_eq!(ask(&mut client, "OBJECT IDLETIME k"), ":77");
}

#[test]
fn what_a_test_writes_serves_those_who_wait() {
    let server = frozen().start().expect("it starts");
    let waiting = in_background(&server, "BLPOP l 0");
    assert!(server.wait_for_blocked(1, PATIENCE));
    assert_eq!(server.database(0).run(["RPUSH", "l", "a"]), Reply::Integer(1));
    assert_eq!(waiting.join().expect("it does not panic"), "*2 $1 l $1 a");
    assert_eq!(server.database(0).run(["BLPOP", "l", "0"]), Reply::Null, "nothing that a test runs waits");
    assert_eq!(server.blocked_clients(), 0);
}

#[test]
fn a_server_is_told_where_it_listens_and_for_which_users() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.join("r.sock");
    let server = TestServer::builder()
        .unix_socket(&path)
        .password("s p@ce")
        .user("app", "on >word ~app:* +@all")
        .start()
        .expect("it starts");
    assert_eq!(server.url(), format!("unix://:s%20p%40ce@{}", path.display()));
    assert_eq!((server.port(), server.address()), (None, path.display().to_string()));
    let mut client = connect(&server);
    assert!(ask(&mut client, "GET k").starts_with("-NOAUTH"));
    assert_eq!(client.command(&["AUTH", "s p@ce"]).expect("a reply"), b"+OK\r\n");
    assert_eq!(ask(&mut client, "AUTH app word"), "+OK");
    assert!(ask(&mut client, "GET k").starts_with("-NOPERM"));
    server.restart(Data::Lost).expect("it starts again");
    assert!(ask(&mut connect(&server), "GET k").starts_with("-NOAUTH"), "settings stay");
    drop(server);
    let server = TestServer::start().expect("it starts");
    let port = server.port().expect("it has one");
    assert_eq!(server.url(), format!("redis://127.0.0.1:{port}"));
    let taken = TestServer::builder().port(port).start().expect_err("the port is taken");
    assert!(taken.message.contains("in use"), "{}", taken.message);
}
