//! MIGRATE of the embedded server: keys go to other servers, and nothing is lost whatever those do.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{
    Act, Address, Client, ClosedPort, FakeBackend, Gate, PATIENCE, Received, RedisServer, Respool, elements, wait_until,
};

use rustix::process::Signal;

use super::{bulk, proxy};

/// An embedded server with one engine.
fn server() -> io::Result<Respool> {
    proxy(&[], &[])
}

fn port(address: &Address) -> String {
    let Address::Tcp(address) = address else { panic!("a TCP address") };
    address.port().to_string()
}

/// Sends MIGRATE of these keys to an address.
fn send_migrate(client: &mut Client, to: &Address, keys: &[&str], timeout: &str, options: &[&str]) -> io::Result<()> {
    let port = port(to);
    let mut words = vec!["MIGRATE", "127.0.0.1", &port, if let [key] = keys { key } else { "" }, "0", timeout];
    words.extend(options);
    if keys.len() != 1 {
        words.push("KEYS");
        words.extend(keys);
    }
    client.send_command(&words)
}

fn migrate(client: &mut Client, to: &Address, keys: &[&str], timeout: &str, options: &[&str]) -> io::Result<String> {
    send_migrate(client, to, keys, timeout, options)?;
    Ok(String::from_utf8_lossy(&client.reply()?).into_owned())
}

/// The first reply is read later, so that something can happen meanwhile.
fn reply(client: &mut Client) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&client.reply()?).into_owned())
}

fn restored(target: &FakeBackend) -> Vec<Received> {
    target.received().into_iter().filter(|request| request.command() == "RESTORE").collect()
}

/// Has values of every type stored, and gives their keys.
fn store(client: &mut Client) -> io::Result<Vec<&'static str>> {
    for request in [
        "SET {m}s value",
        "SET {m}e value PX 100000",
        "RPUSH {m}l a b 3",
        "HSET {m}h f v g 1",
        "SADD {m}i 1 2 3",
        "SADD {m}a x",
        "ZADD {m}z 1 one 2.5 two",
        "XADD {m}x 1-1 f v",
        "XGROUP CREATE {m}x g 0",
    ] {
        let reply = client.ask(request)?;
        assert!(!reply.starts_with('-'), "{request}: {reply}");
    }
    Ok(vec!["{m}s", "{m}e", "{m}l", "{m}h", "{m}i", "{m}a", "{m}z", "{m}x"])
}

fn check_moves(source: &mut Client, target: &mut Client, to: &Address, what: &str) -> io::Result<()> {
    source.ask("FLUSHALL")?;
    target.ask("FLUSHALL")?;
    let keys = store(source)?;
    let large = "v".repeat(3_000_000);
    assert_eq!(source.command(&["SET", "{m}large", &large])?, b"+OK\r\n");
    let dumps = |client: &mut Client| {
        keys.iter().map(|key| client.command(&["DUMP", key])).collect::<io::Result<Vec<Vec<u8>>>>()
    };
    let before = dumps(source)?;
    assert_eq!(migrate(source, to, &keys, "5000", &["COPY"])?, "+OK\r\n", "{what}");
    assert_eq!((dumps(source)?, dumps(target)?), (before.clone(), before.clone()), "{what}: they are at both");
    let refused = migrate(source, to, &keys, "5000", &[])?;
    let busy = "-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n";
    assert_eq!((refused.as_str(), dumps(source)?), (busy, before.clone()), "{what}: none has gone");
    assert_eq!(migrate(source, to, &keys, "5000", &["REPLACE"])?, "+OK\r\n", "{what}");
    assert_eq!(dumps(target)?, before, "{what}");
    assert!(dumps(source)?.iter().all(|dump| dump == b"$-1\r\n"), "{what}: they are there alone");
    let left: u64 = target.ask("PTTL {m}e")?.trim().trim_start_matches(':').parse().expect("a number");
    assert!((90_000..=100_000).contains(&left), "{what}: {left}");
    assert_eq!(target.ask("PTTL {m}s")?, ":-1\r\n");
    assert_eq!(migrate(source, to, &["{m}large", "{m}none"], "5000", &[])?, "+OK\r\n", "{what}");
    assert!(target.command(&["GET", "{m}large"])? == bulk(&large), "{what}: a large value");
    for none in [&["{m}large"][..], &["{m}s", "{m}none"], &[]] {
        assert_eq!(migrate(source, to, none, "5000", &[])?, "+NOKEY\r\n", "{what}: {none:?}");
    }
    Ok(())
}

#[test]
fn keys_move_between_servers_of_all_kinds() -> io::Result<()> {
    let redis = RedisServer::start()?;
    let (one, other) = (server()?, server()?);
    let several = proxy(&[], &["--engine-threads", "2"])?;
    check_moves(&mut one.client()?, &mut redis.client()?, &redis.tcp(), "respool to redis")?;
    check_moves(&mut redis.client()?, &mut one.client()?, &one.tcp(), "redis to respool")?;
    check_moves(&mut one.client()?, &mut other.client()?, &other.tcp(), "respool to respool")?;
    check_moves(&mut several.client()?, &mut redis.client()?, &redis.tcp(), "several engines to redis")?;
    check_moves(&mut other.client()?, &mut several.client()?, &several.tcp(), "respool to several engines")?;
    let mut client = several.client()?;
    for key in ["a", "b", "c", "d"] {
        client.command(&["SET", key, "1"])?;
    }
    assert!(migrate(&mut client, &redis.tcp(), &["a", "b", "c", "d"], "5000", &[])?.starts_with("-CROSSSLOT"));
    Ok(())
}

#[test]
fn errors_are_those_of_redis() -> io::Result<()> {
    let (redis, respool) = (RedisServer::start()?, server()?);
    let target = RedisServer::start()?;
    let guarded = RedisServer::start_with(&["--requirepass", "secret"])?;
    let closed = ClosedPort::take()?;
    let silent = FakeBackend::start(|_| Act::Silence)?;
    let closes = FakeBackend::start(|_| Act::Close)?;
    let midway = FakeBackend::start(|request| match request.key() {
        b"c" => Act::Close,
        _ => Act::Usual,
    })?;
    let [target, guarded, silent, closes, midway] =
        [target.tcp(), guarded.tcp(), silent.address(), closes.address(), midway.address()].map(|to| port(&to));
    let closed = closed.address().port().to_string();
    let mut guard = guarded_client(&guarded)?;
    guard.ask("ACL SETUSER mover on >pw allkeys +restore +select")?;
    let requests = [
        format!("MIGRATE 127.0.0.1 {target} a 0"),
        format!("MIGRATE 127.0.0.1 {target} a 0 10 NOSUCH"),
        format!("MIGRATE 127.0.0.1 {target} a 0 10 AUTH"),
        format!("MIGRATE 127.0.0.1 {target} a 0 10 AUTH2 user"),
        format!("MIGRATE 127.0.0.1 {target} a x 10"),
        format!("MIGRATE 127.0.0.1 {target} a 0 x"),
        format!("MIGRATE 127.0.0.1 {target} a 0 1.5"),
        format!("MIGRATE 127.0.0.1 {target} a 0 10 KEYS a b"),
        format!("MIGRATE 127.0.0.1 {target} none x 10"),
        format!("MIGRATE 127.0.0.1 {target} none 0 10"),
        format!("MIGRATE 127.0.0.1 {closed} none 0 10"),
        format!("MIGRATE 127.0.0.1 {closed} a 0 1000"),
        "MIGRATE 127.0.0.1 nonsense a 0 1000".to_owned(),
        format!("MIGRATE 127.0.0.1 {target} a 99 1000"),
        format!("MIGRATE 127.0.0.1 {target} a 0 1000 AUTH nonsense"),
        format!("MIGRATE 127.0.0.1 {guarded} a 0 1000"),
        format!("MIGRATE 127.0.0.1 {guarded} a 0 1000 AUTH nonsense"),
        format!("MIGRATE 127.0.0.1 {guarded} a 0 1000 AUTH2 missing pw"),
        format!("MIGRATE 127.0.0.1 {silent} a 0 50"),
        format!("MIGRATE 127.0.0.1 {closes} a 0 1000"),
        "EXISTS a".to_owned(),
        format!("MIGRATE 127.0.0.1 {guarded} a 0 1000 copy Replace AUTH secret"),
        format!("MIGRATE 127.0.0.1 {guarded} a 0 1000 REPLACE AUTH2 mover pw"),
        "EXISTS a".to_owned(),
    ];
    let mut clients = [redis.client()?, respool.client()?];
    for client in &mut clients {
        client.ask("SET a 1")?;
        client.ask("SET b 2")?;
        client.ask("SET c 3")?;
        client.ask("SET d 4")?;
    }
    for request in &requests {
        let replies = clients.each_mut().map(|client| client.ask(request));
        let [of_redis, of_respool] = replies;
        assert_eq!(of_respool?, of_redis?, "{request}");
    }
    let several = format!("MIGRATE 127.0.0.1 {midway} \"\" 0 1000 KEYS b c d");
    let words: Vec<&str> = several.split(' ').map(|word| if word == "\"\"" { "" } else { word }).collect();
    for client in &mut clients {
        let reply = client.command(&words)?;
        assert_eq!(String::from_utf8_lossy(&reply), "-IOERR error or timeout reading to target instance\r\n");
        let left: Vec<String> =
            ["b", "c", "d"].map(|key| client.ask(&format!("EXISTS {key}"))).into_iter().collect::<io::Result<_>>()?;
        assert_eq!(left, [":0\r\n", ":1\r\n", ":1\r\n"], "what was acknowledged has gone");
    }
    Ok(())
}

fn guarded_client(port: &str) -> io::Result<Client> {
    let mut client = Client::connect(&Address::loopback(port.parse().expect("a port")))?;
    assert_eq!(client.ask("AUTH secret")?, "+OK\r\n");
    Ok(client)
}

#[test]
fn others_are_served_and_what_they_change_is_sent_again() -> io::Result<()> {
    let server = server()?;
    let gate = Gate::new();
    let first = AtomicUsize::new(0);
    let held = gate.clone();
    let target = FakeBackend::start(move |request| {
        let is_first = request.command() == "RESTORE" && first.fetch_add(1, Ordering::SeqCst) < 4;
        if is_first { Act::Hold(held.clone()) } else { Act::Usual }
    })?;
    let (mut mover, mut other) = (server.client()?, server.client()?);
    for key in ["changed", "gone", "kept", "replaced"] {
        other.command(&["SET", key, "before"])?;
    }
    send_migrate(&mut mover, &target.address(), &["changed", "gone", "kept", "replaced"], "20000", &[])?;
    mover.send_command(&["PING"])?;
    target.wait_for(b"changed")?;
    assert_eq!(other.ask("SET changed after")?, "+OK\r\n", "others are served");
    assert_eq!(other.ask("DEL gone")?, ":1\r\n");
    assert_eq!(other.ask("DEL replaced")?, ":1\r\n");
    assert_eq!(other.ask("SET replaced anew")?, "+OK\r\n");
    let after = other.command(&["DUMP", "changed"])?;
    gate.open();
    assert_eq!(reply(&mut mover)?, "+OK\r\n");
    assert_eq!(reply(&mut mover)?, "+PONG\r\n", "replies come in the order of the requests");
    assert_eq!(other.ask("EXISTS changed gone kept replaced")?, ":0\r\n");
    let sent: Vec<String> = target
        .received()
        .iter()
        .map(|request| format!("{} {}", request.command(), String::from_utf8_lossy(request.key())))
        .collect();
    let first = ["RESTORE changed", "RESTORE gone", "RESTORE kept", "RESTORE replaced"];
    assert_eq!(sent, [&first[..], &["RESTORE changed", "DEL gone", "RESTORE replaced"]].concat());
    let again = &restored(&target)[4];
    assert_eq!(again.arguments[4], b"REPLACE", "over what was sent before");
    assert!(after.windows(again.arguments[3].len()).any(|part| part == again.arguments[3]), "as it is now");
    Ok(())
}

#[test]
fn groups_that_change_on_their_way_are_sent_again() -> io::Result<()> {
    let redis = RedisServer::start()?;
    for flags in [&[][..], &["--engine-threads", "2"]] {
        let server = proxy(&[], flags)?;
        let gate = Gate::new();
        let first = AtomicUsize::new(0);
        let held = gate.clone();
        let target = FakeBackend::start(move |request| {
            let is_first = request.command() == "RESTORE" && first.fetch_add(1, Ordering::SeqCst) == 0;
            if is_first { Act::Hold(held.clone()) } else { Act::Usual }
        })?;
        let (mut mover, mut other) = (server.client()?, server.client()?);
        for line in ["XADD s 1-1 f v", "XADD s 2-1 f v", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0"] {
            assert!(!other.ask(line)?.starts_with('-'), "{line}");
        }
        send_migrate(&mut mover, &target.address(), &["s"], "20000", &[])?;
        target.wait_for(b"s")?;
        for (line, reply) in [
            ("XGROUP CREATE s late $", "+OK"),
            ("XREADGROUP GROUP g c COUNT 2 STREAMS s >", "*1"),
            ("XACK s g 1-1", ":1"),
            ("XGROUP SETID s h 2-1", "+OK"),
            ("XSETID s 9-9", "+OK"),
        ] {
            assert!(other.ask(line)?.starts_with(reply), "{line}");
        }
        gate.open();
        assert_eq!(reply(&mut mover)?, "+OK\r\n");
        assert_eq!(other.ask("EXISTS s")?, ":0\r\n");
        let sent = restored(&target);
        assert_eq!(sent.len(), 2, "{flags:?}: it is sent as it is now");
        let mut there = redis.client()?;
        there.ask("FLUSHALL")?;
        let last: Vec<&[u8]> =
            [&b"RESTORE"[..]].into_iter().chain(sent[1].arguments.iter().skip(1).map(Vec::as_slice)).collect();
        assert_eq!(there.command(&last)?, b"+OK\r\n");
        for (line, reply) in [
            ("XPENDING s g", "*4\r\n:1\r\n$3\r\n2-1"),
            ("XREADGROUP GROUP h c STREAMS s >", "*-1"),
            ("XREADGROUP GROUP late c STREAMS s >", "*-1"),
            ("XADD s 9-9 f v", "-ERR"),
        ] {
            let found = there.ask(line)?;
            assert!(found.starts_with(reply), "{flags:?}: {line}: {found}");
        }
    }
    Ok(())
}

#[test]
fn a_key_that_never_rests_stays_here() -> io::Result<()> {
    let server = server()?;
    let changer = Mutex::new(server.client()?);
    let target = FakeBackend::start(move |request| {
        if request.command() == "RESTORE" {
            let mut changer = changer.lock().expect("no test panics with it");
            changer.ask("INCR counter").expect("the server answers");
        }
        Act::Usual
    })?;
    let mut client = server.client()?;
    let begun = Instant::now();
    client.ask("SET counter 0")?;
    let said = migrate(&mut client, &target.address(), &["counter"], "300", &[])?;
    assert!(said.starts_with("-IOERR keys were changed again and again"), "{said}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let sent = restored(&target).len();
    assert!(sent > 1);
    assert_eq!(
        client.ask("GET counter")?,
        String::from_utf8(bulk(&sent.to_string())).expect("text"),
        "nothing is lost"
    );
    Ok(())
}

#[test]
fn a_target_that_misbehaves_takes_nothing() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    let on_restore = |bytes: &'static [u8]| {
        FakeBackend::start(move |request| match &*request.command() {
            "RESTORE" => Act::Bytes(bytes.to_vec()),
            _ => Act::Usual,
        })
    };
    client.ask("SET k v")?;
    let early = FakeBackend::start_with_greeting(b"+OK\r\n+OK\r\n+OK\r\n", |_| Act::Silence)?;
    let others = [on_restore(b"+QUEUED\r\n")?, on_restore(b"$-1\r\n")?, on_restore(b"HTTP/1.1 200 OK\r\n\r\n")?];
    for target in others.iter().chain([&early]) {
        let said = migrate(&mut client, &target.address(), &["k"], "500", &[])?;
        assert!(said.starts_with("-IOERR error or timeout "), "{said}");
        assert_eq!(client.ask("GET k")?, "$1\r\nv\r\n");
    }
    let endless = FakeBackend::start(|request| match &*request.command() {
        "RESTORE" => Act::Bytes(vec![b'-'; 1 << 20]),
        _ => Act::Usual,
    })?;
    let said = migrate(&mut client, &endless.address(), &["k"], "5000", &[])?;
    assert_eq!(said, "-IOERR error or timeout reading to target instance\r\n");
    let slow = FakeBackend::start(|request| match &*request.command() {
        "RESTORE" => Act::Slowly(b"+OK\r\n".to_vec(), Duration::from_millis(100)),
        _ => Act::Usual,
    })?;
    let said = migrate(&mut client, &slow.address(), &["k"], "200", &[])?;
    assert_eq!(said, "-IOERR error or timeout reading to target instance\r\n", "a reply has its time as a whole");
    assert_eq!(client.ask("GET k")?, "$1\r\nv\r\n");
    // What says too much is believed, and its connection is not used again.
    let talks = on_restore(b"+OK\r\n+OK\r\n")?;
    for round in 1..=2 {
        client.ask("SET k v")?;
        assert_eq!(migrate(&mut client, &talks.address(), &["k"], "5000", &[])?, "+OK\r\n");
        assert_eq!(talks.connections(), round);
    }
    Ok(())
}

#[test]
fn a_refused_database_gets_no_key() -> io::Result<()> {
    let (server, target) = (server()?, RedisServer::start_with(&["--databases", "2"])?);
    let mut client = server.client()?;
    client.ask("SET k v")?;
    let port = target.port().to_string();
    // To redis-server 7.0 the database -1 is the one of a new connection.
    for database in ["2", "-1"] {
        let said = client.ask(&format!("MIGRATE 127.0.0.1 {port} k {database} 5000"))?;
        assert_eq!(said, "-ERR Target instance replied with error: ERR DB index is out of range\r\n");
    }
    assert_eq!(
        (client.ask("EXISTS k")?, target.client()?.ask("EXISTS k")?),
        (":1\r\n".to_owned(), ":0\r\n".to_owned())
    );
    assert_eq!(client.ask(&format!("MIGRATE 127.0.0.1 {port} k 1 5000"))?, "+OK\r\n");
    let mut there = target.client()?;
    there.ask("SELECT 1")?;
    assert_eq!(there.ask("GET k")?, "$1\r\nv\r\n");
    Ok(())
}

#[test]
fn a_kept_connection_is_used_again_unless_it_is_lost() -> io::Result<()> {
    for arguments in [&[][..], &["--engine-threads", "2"]] {
        let server = proxy(&[], arguments)?;
        let target = RedisServer::start()?;
        let mut client = server.client()?;
        let mut there = target.client()?;
        let kept = |client: &mut Client| client.figure("stats", "migrate_cached_sockets");
        assert_eq!(kept(&mut client)?, 0);
        for round in 0..3 {
            client.ask(&format!("SET k {round}"))?;
            assert_eq!(migrate(&mut client, &target.tcp(), &["k"], "5000", &["REPLACE"])?, "+OK\r\n");
            assert_eq!(kept(&mut client)?, 1);
            assert_eq!(there.figure("clients", "connected_clients")?, 2, "one connection does it all");
        }
        there.ask("CLIENT KILL TYPE normal SKIPME yes")?;
        client.ask("SET k killed")?;
        assert_eq!(migrate(&mut client, &target.tcp(), &["k"], "5000", &["REPLACE"])?, "+OK\r\n", "on another one");
        assert_eq!(there.ask("GET k")?, "$6\r\nkilled\r\n");
    }
    Ok(())
}

#[test]
fn a_lost_connection_is_tried_once_more_before_any_reply() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    let asked = AtomicUsize::new(0);
    let target = FakeBackend::start(move |request| match &*request.command() {
        "RESTORE" if asked.fetch_add(1, Ordering::SeqCst) == 0 => Act::Close,
        _ => Act::Usual,
    })?;
    client.ask("SET k v")?;
    assert_eq!(migrate(&mut client, &target.address(), &["k"], "5000", &[])?, "+OK\r\n");
    assert_eq!((restored(&target).len(), target.connections()), (2, 2));
    let closes = FakeBackend::start(|request| if request.command() == "RESTORE" { Act::Close } else { Act::Usual })?;
    client.ask("SET k v")?;
    let said = migrate(&mut client, &closes.address(), &["k"], "5000", &[])?;
    assert_eq!((said.as_str(), restored(&closes).len()), ("-IOERR error or timeout reading to target instance\r\n", 2));
    Ok(())
}

#[test]
fn many_and_large_keys_are_moved_in_parts() -> io::Result<()> {
    let (server, target) = (server()?, server()?);
    let mut client = server.client()?;
    let mut keys: Vec<String> = (0..12_000).map(|number| format!("key{number}")).collect();
    for part in keys.chunks(1_000) {
        let mut words = vec!["MSET"];
        words.extend(part.iter().flat_map(|key| [key.as_str(), "value"]));
        assert_eq!(client.command(&words)?, b"+OK\r\n");
    }
    let large = "x".repeat(9 << 20);
    for number in 0..4 {
        let key = format!("large{number}");
        client.command(&["SET", &key, &large])?;
        keys.push(key);
    }
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(migrate(&mut client, &target.tcp(), &names, "20000", &[])?, "+OK\r\n");
    assert_eq!(
        (client.ask("DBSIZE")?, target.client()?.ask("DBSIZE")?),
        (":0\r\n".to_owned(), ":12004\r\n".to_owned())
    );
    Ok(())
}

#[test]
fn a_transaction_moves_keys_as_a_whole() -> io::Result<()> {
    for arguments in [&[][..], &["--engine-threads", "2"]] {
        let (server, target) = (proxy(&[], arguments)?, RedisServer::start()?);
        let (mut client, mut watcher) = (server.client()?, server.client()?);
        client.ask("SET {k}a 1")?;
        watcher.ask("WATCH {k}a")?;
        client.ask("MULTI")?;
        client.ask("SET {k}b 2")?;
        let port = target.port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS", "{k}a", "{k}b", "{k}none"];
        assert_eq!(client.command(&words)?, b"+QUEUED\r\n");
        client.ask("EXISTS {k}a {k}b")?;
        assert_eq!(client.ask("EXEC")?, "*3\r\n+OK\r\n+OK\r\n:0\r\n", "{arguments:?}");
        assert_eq!(target.client()?.ask("MGET {k}a {k}b")?, "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
        watcher.ask("MULTI")?;
        watcher.ask("PING")?;
        assert_eq!(watcher.ask("EXEC")?, "*-1\r\n", "what it has watched has gone");
        client.ask("SET {k}a 1")?;
        client.ask("MULTI")?;
        client.ask(&format!("MIGRATE 127.0.0.1 {port} {{k}}a 0 5000"))?;
        client.ask("GET {k}a")?;
        let busy = "-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n";
        assert_eq!(client.ask("EXEC")?, format!("*2\r\n{busy}$1\r\n1\r\n"));
    }
    Ok(())
}

#[test]
fn who_watches_tracks_or_listens_hears_of_moved_keys() -> io::Result<()> {
    let server = proxy(&[], &["--notify-keyspace-events", "KEA"])?;
    let target = RedisServer::start()?;
    let (mut client, mut watcher, mut tracker, mut listener) =
        (server.client()?, server.client()?, server.client()?, server.client()?);
    client.ask("SET k v")?;
    watcher.ask("WATCH k")?;
    tracker.ask("HELLO 3")?;
    tracker.ask("CLIENT TRACKING ON")?;
    tracker.ask("GET k")?;
    listener.ask("SUBSCRIBE __keyevent@0__:del")?;
    client.ask("HELLO 3")?;
    assert_eq!(migrate(&mut client, &target.tcp(), &["k"], "5000", &["COPY"])?, "+OK\r\n");
    assert_eq!(migrate(&mut client, &target.tcp(), &["k"], "5000", &["REPLACE"])?, "+OK\r\n");
    let heard = reply(&mut listener)?;
    assert_eq!(heard, "*3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:del\r\n$1\r\nk\r\n");
    assert_eq!(reply(&mut tracker)?, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
    watcher.ask("MULTI")?;
    assert_eq!(watcher.ask("EXEC")?, "*-1\r\n");
    Ok(())
}

#[test]
fn no_password_is_shown_and_calls_are_counted() -> io::Result<()> {
    let server = server()?;
    let mut client = server.client()?;
    let mut monitor = server.client()?;
    monitor.ask("MONITOR")?;
    client.ask("CONFIG SET slowlog-log-slower-than 0")?;
    client.ask("SET k v")?;
    let port = port(&FakeBackend::start(|_| Act::Usual)?.address());
    let gone = client.ask(&format!("MIGRATE 127.0.0.1 {port} k 0 500 AUTH2 user canary"))?;
    assert!(gone.starts_with("-IOERR"), "{gone}");
    client.ask("MIGRATE 127.0.0.1 1 none 0 500 AUTH canary")?;
    wait_until("the monitor has both", PATIENCE, || {
        let line = reply(&mut monitor)?;
        assert!(!line.contains("canary"), "{line}");
        Ok(line.contains("\"none\""))
    })?;
    let log = client.ask("SLOWLOG GET 10")?;
    assert!(log.contains("MIGRATE") && !log.contains("canary"), "{log}");
    let stats = client.ask("INFO commandstats")?;
    let line = stats.lines().find(|line| line.starts_with("cmdstat_migrate:")).expect("it is counted");
    assert!(line.contains("calls=2,") && line.contains("rejected_calls=0,failed_calls=1"), "{line}");
    assert!(client.ask("INFO errorstats")?.contains("errorstat_IOERR:count=1"));
    Ok(())
}

#[test]
fn rules_hold_for_all_keys_that_are_moved() -> io::Result<()> {
    let (server, target) = (server()?, RedisServer::start()?);
    let mut client = server.client()?;
    client.ask("MSET mine:1 a mine:2 b other c")?;
    client.ask("ACL SETUSER mover on >pw ~mine:* +migrate")?;
    let mut mover = server.client()?;
    mover.ask("AUTH mover pw")?;
    for keys in [&["other"][..], &["mine:1", "other"]] {
        assert!(migrate(&mut mover, &target.tcp(), keys, "5000", &[])?.starts_with("-NOPERM"));
    }
    assert_eq!(migrate(&mut mover, &target.tcp(), &["mine:1", "mine:2"], "5000", &[])?, "+OK\r\n");
    assert_eq!(client.ask("DBSIZE")?, ":1\r\n");
    Ok(())
}

#[test]
fn a_key_is_on_its_way_once() -> io::Result<()> {
    let server = server()?;
    let gate = Gate::new();
    let target = FakeBackend::start_holding("RESTORE", &gate)?;
    let mut clients = [server.client()?, server.client()?, server.client()?];
    let [first, second, third] = &mut clients;
    first.ask("MSET a 1 b 2")?;
    send_migrate(first, &target.address(), &["a", "a"], "20000", &["REPLACE"])?;
    target.wait_for(b"a")?;
    send_migrate(second, &target.address(), &["a", "b"], "20000", &["REPLACE"])?;
    third.ask("MULTI")?;
    migrate(third, &target.address(), &["a"], "20000", &[])?;
    let refused = third.ask("EXEC")?;
    assert!(refused.starts_with("*1\r\n-IOERR a key is on its way"), "{refused}");
    assert_eq!(third.ask("EXISTS a b")?, ":2\r\n");
    gate.open();
    assert_eq!((reply(first)?, reply(second)?), ("+OK\r\n".to_owned(), "+OK\r\n".to_owned()));
    let sent: Vec<Vec<u8>> = restored(&target).iter().map(|request| request.key().to_vec()).collect();
    assert_eq!(sent, [&b"a"[..], b"a", b"b"], "the second request finds only the other key");
    assert!(target.received().iter().all(|request| request.command() != "DEL"));
    assert_eq!(third.ask("DBSIZE")?, ":0\r\n");
    Ok(())
}

#[test]
fn a_client_that_leaves_changes_nothing() -> io::Result<()> {
    for arguments in [&[][..], &["--engine-threads", "2"]] {
        let server = proxy(&[], arguments)?;
        let gate = Gate::new();
        let held = gate.clone();
        let target = FakeBackend::start(move |request| match &*request.command() {
            "RESTORE" => Act::Hold(held.clone()),
            _ => Act::Usual,
        })?;
        let (mut mover, mut half, mut other) = (server.client()?, server.client()?, server.client()?);
        other.ask("SET moved v")?;
        other.ask("SET half v")?;
        send_migrate(&mut mover, &target.address(), &["moved"], "20000", &[])?;
        target.wait_for(b"moved")?;
        send_migrate(&mut half, &target.address(), &["half"], "20000", &[])?;
        target.wait_for(b"half")?;
        half.finish_sending()?;
        mover.close()?;
        assert_eq!(other.ask("GET moved")?, "$1\r\nv\r\n");
        gate.open();
        assert_eq!(reply(&mut half)?, "+OK\r\n", "{arguments:?}: who only ends its requests is answered");
        assert_eq!(half.read_to_close()?, b"");
        wait_until("the key has moved", PATIENCE, || Ok(other.ask("EXISTS moved")? == ":0\r\n"))?;
    }
    Ok(())
}

#[test]
fn a_target_that_stalls_keeps_no_server_from_ending() -> io::Result<()> {
    for arguments in [&["--drain-timeout", "300ms"][..], &["--drain-timeout", "300ms", "--engine-threads", "2"]] {
        let mut server = proxy(&[], arguments)?;
        let target = FakeBackend::start(|_| Act::Silence)?;
        let mut client = server.client()?;
        client.ask("SET k v")?;
        send_migrate(&mut client, &target.address(), &["k"], "600000", &[])?;
        wait_until("it has begun", PATIENCE, || Ok(target.connections() == 1))?;
        let status = server.terminate(Duration::from_secs(10))?;
        assert!(status.success(), "{arguments:?}: {status}");
    }
    Ok(())
}

#[test]
fn a_second_signal_ends_a_server_in_a_transaction() -> io::Result<()> {
    for arguments in [&[][..], &["--engine-threads", "2"]] {
        let mut server = proxy(&[], arguments)?;
        let target = FakeBackend::start(|_| Act::Silence)?;
        let mut client = server.client()?;
        client.ask("SET k v")?;
        client.ask("MULTI")?;
        migrate(&mut client, &target.address(), &["k"], "600000", &[])?;
        client.send_command(&["EXEC"])?;
        wait_until("it has begun", PATIENCE, || Ok(target.connections() == 1))?;
        server.process().signal(Signal::TERM)?;
        server.process().wait_for_line("signal", PATIENCE)?;
        server.process().signal(Signal::TERM)?;
        server.process().wait(Duration::from_secs(10))?;
    }
    Ok(())
}

#[test]
fn a_script_that_is_late_holds_back_the_deletion() -> io::Result<()> {
    let server = proxy(&[], &["--busy-reply-threshold", "50ms"])?;
    let gate = Gate::new();
    let target = FakeBackend::start_holding("RESTORE", &gate)?;
    let (mut mover, mut script, mut other) = (server.client()?, server.client()?, server.client()?);
    other.ask("SET k v")?;
    send_migrate(&mut mover, &target.address(), &["k"], "20000", &[])?;
    target.wait_for(b"k")?;
    script.send_command(&["EVAL", "while true do end", "0"])?;
    wait_until("the script is late", PATIENCE, || Ok(other.ask("PING")?.starts_with("-BUSY")))?;
    gate.open();
    assert!(other.ask("GET k")?.starts_with("-BUSY"));
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK\r\n");
    assert_eq!(reply(&mut mover)?, "+OK\r\n");
    assert_eq!(other.ask("EXISTS k")?, ":0\r\n");
    let refused = other.command(&["EVAL", "return redis.call('MIGRATE', 'h', '1', 'k', '0', '1')", "1", "k"])?;
    assert!(String::from_utf8_lossy(&refused).contains("MIGRATE is refused in scripts"));
    Ok(())
}

/// Under CLIENT PAUSE nothing changes: a key that the target has acknowledged is deleted behind the pause, whether that ends by itself or not.
#[test]
fn a_pause_of_clients_holds_back_the_deletion() -> io::Result<()> {
    let one: &[&str] = &[];
    for (pause, is_ended, arguments) in [
        ("CLIENT PAUSE 60000 WRITE", true, one),
        ("CLIENT PAUSE 60000", true, one),
        ("CLIENT PAUSE 1500 WRITE", false, one),
        ("CLIENT PAUSE 60000 WRITE", true, &["--engine-threads", "2"]),
        ("CLIENT PAUSE 1500 WRITE", false, &["--engine-threads", "2"]),
    ] {
        let server = proxy(&[], arguments)?;
        let gate = Gate::new();
        let held = gate.clone();
        let target = FakeBackend::start(move |request| match &*request.command() {
            "RESTORE" => Act::Hold(held.clone()),
            _ => Act::Usual,
        })?;
        let (mut mover, mut other) = (server.client()?, server.client()?);
        other.ask("SET k v")?;
        send_migrate(&mut mover, &target.address(), &["k"], "20000", &[])?;
        target.wait_for(b"k")?;
        assert_eq!(other.ask(pause)?, "+OK\r\n");
        gate.open();
        if pause.ends_with("WRITE") {
            // The target's reply is there long before the last of these.
            for _ in 0..100 {
                assert_eq!(other.ask("EXISTS k")?, ":1\r\n", "{pause}");
                thread::sleep(Duration::from_millis(2));
            }
        }
        if is_ended {
            assert_eq!(other.ask("CLIENT UNPAUSE")?, "+OK\r\n");
        }
        assert_eq!(reply(&mut mover)?, "+OK\r\n", "{pause}");
        assert_eq!(other.ask("EXISTS k")?, ":0\r\n", "{pause}");
    }
    Ok(())
}

#[test]
fn replies_are_counted_where_none_is_wanted() -> io::Result<()> {
    let (server, target) = (server()?, RedisServer::start()?);
    let mut client = server.client()?;
    client.ask("SET k v")?;
    client.send_command(&["CLIENT", "REPLY", "OFF"])?;
    send_migrate(&mut client, &target.tcp(), &["k"], "5000", &[])?;
    client.send_command(&["CLIENT", "REPLY", "ON"])?;
    assert_eq!(reply(&mut client)?, "+OK\r\n", "to the last request alone");
    assert_eq!(client.ask("EXISTS k")?, ":0\r\n");
    assert_eq!(elements(&target.client()?.command(&["KEYS", "*"])?).len(), 1);
    Ok(())
}

/// Adds one to a counter if it is there, and says whether it was.
fn count_up(client: &mut Client, key: &str) -> io::Result<bool> {
    let script = "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('INCR', KEYS[1]) end return false";
    let reply = client.command(&["EVAL", script, "1", key])?;
    assert!(!reply.starts_with(b"-"), "{}", String::from_utf8_lossy(&reply));
    Ok(reply.starts_with(b":"))
}

/// Moves counters one by one while they are counted up and the other server closes connections, and has each that is not through tried again.
fn move_counters(source: &Respool, target: &RedisServer, keys: &[String]) -> io::Result<Vec<u64>> {
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let counting = scope.spawn(|| -> io::Result<Vec<u64>> {
            let mut client = source.client()?;
            let mut counts = vec![0; keys.len()];
            let mut left: Vec<usize> = (0..keys.len()).collect();
            while !left.is_empty() {
                for place in std::mem::take(&mut left) {
                    if count_up(&mut client, &keys[place])? {
                        counts[place] += 1;
                        left.push(place);
                    }
                }
            }
            Ok(counts)
        });
        let closing = scope.spawn(|| -> io::Result<()> {
            let mut client = target.client()?;
            while !is_over.load(Ordering::SeqCst) {
                client.ask("CLIENT KILL TYPE normal SKIPME yes")?;
            }
            Ok(())
        });
        let mut movers = Vec::new();
        for part in keys.chunks(keys.len().div_ceil(3)) {
            movers.push(scope.spawn(move || -> io::Result<()> {
                let mut client = source.client()?;
                let names: Vec<&str> = part.iter().map(String::as_str).collect();
                // Each goes alone first, as the others change; what is left goes together.
                for keys in names.chunks(1).chain([&names[..]]) {
                    loop {
                        let said = migrate(&mut client, &target.tcp(), keys, "5000", &["REPLACE"])?;
                        if matches!(&*said, "+OK\r\n" | "+NOKEY\r\n") {
                            break;
                        }
                        assert!(said.starts_with("-IOERR"), "{said}");
                    }
                }
                Ok(())
            }));
        }
        let mut movers = movers.into_iter();
        let moved = movers.try_for_each(|mover| mover.join().expect("it does not panic"));
        is_over.store(true, Ordering::SeqCst);
        closing.join().expect("it does not panic")?;
        moved?;
        counting.join().expect("it does not panic")
    })
}

#[test]
fn no_change_is_lost_while_connections_are() -> io::Result<()> {
    for arguments in [&[][..], &["--engine-threads", "2"]] {
        let (source, target) = (proxy(&[], arguments)?, RedisServer::start()?);
        let keys: Vec<String> = (0..30).map(|number| format!("{{c}}{number}")).collect();
        let mut client = source.client()?;
        for key in &keys {
            client.command(&["SET", key, "0"])?;
        }
        let counted = move_counters(&source, &target, &keys)?;
        assert_eq!(client.ask("DBSIZE")?, ":0\r\n");
        let mut there = target.client()?;
        for (key, count) in keys.iter().zip(&counted) {
            assert_eq!(there.command(&["GET", key])?, bulk(&count.to_string()), "{arguments:?}: {key}");
        }
        assert!(counted.iter().sum::<u64>() > 0, "something was changed meanwhile");
    }
    Ok(())
}
