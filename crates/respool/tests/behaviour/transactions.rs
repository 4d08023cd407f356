//! MULTI, EXEC, DISCARD and WATCH: what a client sees is what a redis-server shows it, whichever clients share its connections.

use std::io;

use respool_testkit::{Act, Address, Client, FakeBackend, PATIENCE, RedisServer, wait_until};

use super::{Four, assert_error, bulk, proxy};

const END: &[u8] = b"$12\r\nend-of-lines\r\n";

/// All that a peer answers to these lines, sent at once.
fn answers(address: &Address, lines: &[&str]) -> io::Result<String> {
    let mut client = Client::connect(address)?;
    let mut said = lines.join("\r\n");
    said.push_str("\r\nECHO end-of-lines\r\n");
    client.send(said.as_bytes())?;
    let mut all = Vec::new();
    while !all.ends_with(END) {
        match client.reply() {
            Ok(reply) => all.extend(reply),
            Err(_) => break,
        }
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// What happens inside and around transactions, as lines of one connection each.
const SCRIPTS: &[&[&str]] = &[
    &["MULTI", "SET a 1", "INCR a", "GET a", "EXEC", "GET a"],
    &["MULTI", "EXEC", "EXEC", "DISCARD"],
    &["MULTI", "SET b 1", "DISCARD", "GET b", "EXEC"],
    &["MULTI", "MULTI", "WATCH a", "SET a 3", "EXEC", "GET a"],
    &["MULTI", "NOSUCH x", "SET a 4", "EXEC", "GET a"],
    &["MULTI", "GET", "SET a 5", "EXEC", "MULTI", "GET a", "EXEC"],
    &["MULTI", "EXEC a", "EXEC", "MULTI", "DISCARD a", "DISCARD", "DISCARD", "MULTI a", "EXEC"],
    &["MULTI", "MULTI x", "EXEC", "WATCH", "UNWATCH x"],
    &["MULTI", "LPUSH a x", "SET c 1", "LLEN c", "EXEC", "GET c"],
    &[
        "MULTI",
        "PING",
        "PING hello",
        "PING a b",
        "ECHO x",
        "CLIENT GETNAME",
        "CLIENT SETNAME ann",
        "CLIENT GETNAME",
        "EXEC",
    ],
    &[
        "SELECT 2",
        "MULTI",
        "SET d two",
        "SELECT 3",
        "SET d three",
        "SELECT 99",
        "GET d",
        "EXEC",
        "GET d",
        "SELECT 2",
        "GET d",
    ],
    &["MULTI", "SELECT 5", "SELECT x", "EXEC", "SET e five", "SELECT 0", "GET e"],
    &["MULTI", "SELECT 5", "DISCARD", "SET f zero", "SELECT 5", "GET f"],
    &["MULTI", "BLPOP nolist 0", "BRPOPLPUSH nolist other 0", "XREAD BLOCK 0 STREAMS s $", "WAIT 0 0", "EXEC", "PING"],
    &["MULTI", "AUTH x", "UNWATCH", "ASKING", "READONLY", "EXEC", "PING"],
    &["MULTI", "SHUTDOWN", "EXEC", "MULTI", "SYNC", "EXEC", "MULTI", "CLIENT FOO", "EXEC"],
    &["MULTI", "GET nokey", "HELLO 4", "GET nokey", "EXEC", "PING"],
    &["HELLO 3 SETNAME bo", "MULTI", "HSET h f v", "HGETALL h", "GET nokey", "EXEC", "DEL h"],
    &["CLIENT REPLY SKIP", "MULTI", "SET a 6", "EXEC", "GET a"],
    &["MULTI", "SET a 7", "CLIENT REPLY SKIP", "EXEC", "PING", "GET a"],
    &["MULTI", "CLIENT REPLY OFF", "SET a 8", "EXEC", "GET a", "CLIENT REPLY ON", "GET a"],
    &["CLIENT REPLY OFF", "MULTI", "SET a 9", "CLIENT GETNAME", "EXEC", "CLIENT REPLY ON", "GET a"],
    &["MULTI", "SET a 10", "RESET", "EXEC", "GET a"],
    &["MULTI", "SET a 11", "QUIT"],
    &["WATCH a", "GET a", "MULTI", "SET a 12", "EXEC", "GET a"],
    &["WATCH a", "SET a 13", "MULTI", "SET a 14", "EXEC", "GET a", "MULTI", "GET a", "EXEC"],
    &["WATCH a b c", "UNWATCH", "SET a 15", "MULTI", "GET a", "EXEC"],
    &["WATCH a", "SET a 16", "MULTI", "GET a", "DISCARD", "MULTI", "GET a", "EXEC"],
    &["WATCH a", "SET a 17", "MULTI", "EXEC", "MULTI", "EXEC", "WATCH a", "MULTI", "EXEC"],
    &["WATCH a", "SET a 18", "MULTI", "NOSUCH", "EXEC", "MULTI", "GET a", "EXEC"],
    &["WATCH a", "SET a 19", "RESET", "MULTI", "GET a", "EXEC"],
    &["WATCH a", "DISCARD", "SET a 20", "MULTI", "PING", "EXEC", "EXEC"],
    &["WATCH nokey", "WATCH a", "SET nokey 1", "DEL nokey", "MULTI", "PING", "EXEC"],
    &["SELECT 5", "SET x 30", "WATCH x", "SELECT 1", "SET x 10", "SELECT 5", "MULTI", "PING", "EXEC", "DEL x"],
    &["WATCH a", "MULTI", "SELECT 7", "SET a seven", "CLIENT GETNAME", "EXEC", "GET a", "SELECT 0", "GET a"],
    &["HELLO 3", "WATCH a", "SET a 21", "MULTI", "GET a", "EXEC", "MULTI", "GET a", "EXEC"],
    &["MULTI", "EVAL 'return\\ 1' 0", "SCRIPT EXISTS abc", "DBSIZE", "TYPE a", "EXEC"],
    &["MULTI", "TIME x", "CLIENT REPLY", "EXEC", "MULTI", "PING", "EXEC"],
];

#[track_caller]
fn same(script: &[&str], expected: &str, got: &str) {
    assert_eq!(got.replace("\r\n", " | "), expected.replace("\r\n", " | "), "{script:?}");
}

/// Numbers that belong to the connection and not to the answer.
fn without_id(answers: &str) -> String {
    let mut out = String::new();
    let mut parts = answers.split("$2\r\nid\r\n");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str("$2\r\nid\r\n:n");
        out.push_str(part.split_once("\r\n").map_or("", |(_, rest)| rest));
    }
    out
}

#[test]
fn every_transaction_looks_as_it_does_at_a_server() -> io::Result<()> {
    let (direct, behind) = (RedisServer::start()?, RedisServer::start()?);
    let proxy = proxy(&[behind.tcp()], &[])?;
    for script in SCRIPTS {
        let expected = without_id(&answers(&direct.tcp(), script)?);
        same(script, &expected, &without_id(&answers(&proxy.tcp(), script)?));
    }
    assert_eq!(behind.client()?.ask("DBSIZE")?, direct.client()?.ask("DBSIZE")?);
    Ok(())
}

#[test]
fn transactions_look_the_same_without_a_node_behind() -> io::Result<()> {
    let direct = RedisServer::start()?;
    let embedded = proxy(&[], &[])?;
    for script in SCRIPTS {
        // What the engine has not learnt yet.
        if script.iter().any(|line| line.contains("XREAD") || line.contains("EVAL")) {
            continue;
        }
        let expected = without_id(&answers(&direct.tcp(), script)?);
        same(script, &expected, &without_id(&answers(&embedded.tcp(), script)?));
    }
    let (mut one, mut other) = (embedded.client()?, embedded.client()?);
    for (change, reply) in
        [("SET w x", "*-1\r\n"), ("SET v x", "*1\r\n"), ("LPUSH w x", "*1\r\n"), ("FLUSHDB", "*-1\r\n")]
    {
        one.ask("SET w 1")?;
        assert_eq!(one.ask("WATCH w")?, "+OK\r\n");
        other.ask(change)?;
        one.send(b"MULTI\r\nGET w\r\nEXEC\r\n")?;
        let exec = String::from_utf8(one.replies(3)?.pop().unwrap()).unwrap();
        assert!(exec.starts_with(reply), "{change}: {exec}");
    }
    // A key whose time has come is not what was watched.
    one.send(b"SET w 1 PX 20\r\nWATCH w\r\n")?;
    one.replies(2)?;
    wait_until("it has expired", PATIENCE, || Ok(other.ask("EXISTS w")? == ":0\r\n"))?;
    one.send(b"MULTI\r\nPING\r\nEXEC\r\n")?;
    assert_eq!(one.replies(3)?.pop().unwrap(), b"*-1\r\n");
    Ok(())
}

#[test]
fn what_changes_nothing_breaks_no_watch_without_a_node_behind() -> io::Result<()> {
    let (direct, embedded) = (RedisServer::start()?, proxy(&[], &[])?);
    let exec = |server: &Address, lines: &[&str]| -> io::Result<String> {
        let (mut watcher, mut other, mut waiter) =
            (Client::connect(server)?, Client::connect(server)?, Client::connect(server)?);
        for line in ["FLUSHALL", "SET lock owner", "SADD set a", "ZADD z 1 a", "WATCH lock set z l none"] {
            watcher.ask(line)?;
        }
        for line in lines {
            match line.strip_prefix("waits: ") {
                Some(line) => {
                    waiter.send(format!("{line}\r\n").as_bytes())?;
                    wait_until("it waits", PATIENCE, || Ok(other.ask("INFO clients")?.contains("blocked_clients:1")))?;
                }
                None => _ = other.ask(line)?,
            }
        }
        watcher.send(b"MULTI\r\nPING\r\nEXEC\r\n")?;
        let reply = watcher.replies(3)?.pop().unwrap_or_default();
        Ok(if reply.starts_with(b"*-1") { "stopped".to_owned() } else { "ran".to_owned() })
    };
    for (lines, expected) in [
        // Those who wait for a lock ask for it again and again, and its owner gives it back if it is still its own.
        (&["SETNX lock other", "SET lock other NX", "GETEX lock", "MSETNX lock other"][..], "ran"),
        (&["SADD set a", "SREM set b", "ZADD z 1 a", "ZADD z NX 2 a", "COPY lock copy", "SWAPDB 3 4"], "ran"),
        (&["DEL none", "LPOP none", "EXPIRE none 1", "INCR lock", "PERSIST lock", "BLPOP none 0.01"], "ran"),
        (&["MULTI", "SETNX lock other", "EXEC"], "ran"),
        (&["MULTI", "SET lock other", "EXEC"], "stopped"),
        (&["SELECT 1", "SET lock other", "FLUSHDB"], "ran"),
        (&["SELECT 1", "SET lock other", "SWAPDB 0 1"], "stopped"),
        (&["RENAME lock lock"], "ran"),
        (&["RENAME set none"], "stopped"),
        (&["waits: BLMOVE source target LEFT RIGHT 0", "RPUSH source a"], "ran"),
        (&["waits: BLMOVE source l LEFT RIGHT 0", "RPUSH source a"], "stopped"),
        (&["waits: BLPOP l 0", "RPUSH l a"], "stopped"),
    ] {
        for server in [direct.tcp(), embedded.tcp()] {
            assert_eq!(exec(&server, lines)?, expected, "{lines:?} at {server:?}");
        }
    }
    Ok(())
}

#[test]
fn every_pool_mode_gives_the_same_answers() -> io::Result<()> {
    let (direct, behind) = (RedisServer::start()?, RedisServer::start()?);
    let proxy = proxy(&[behind.tcp()], &["--pool-mode", "transaction"])?;
    for script in SCRIPTS {
        let expected = without_id(&answers(&direct.tcp(), script)?);
        same(script, &expected, &without_id(&answers(&proxy.tcp(), script)?));
    }
    Ok(())
}

#[test]
fn a_transaction_is_one_piece_on_a_shared_connection() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let address = proxy.tcp();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let address = address.clone();
            std::thread::spawn(move || -> io::Result<()> {
                let mut client = Client::connect(&address)?;
                for round in 0..200 {
                    let key = format!("own:{number}");
                    let lines = format!(
                        "MULTI\r\nINCR shared\r\nSET {key} {round}\r\nGET {key}\r\nINCR shared\r\nEXEC\r\nGET {key}\r\n"
                    );
                    client.send(lines.as_bytes())?;
                    let mut replies = client.replies(7)?;
                    let value = bulk(&round.to_string());
                    assert_eq!(replies.pop().unwrap(), value);
                    let exec = String::from_utf8(replies.pop().unwrap()).unwrap();
                    let first: u64 = exec.split("\r\n").nth(1).unwrap()[1..].parse().unwrap();
                    let value = String::from_utf8(value).unwrap();
                    assert_eq!(exec, format!("*4\r\n:{first}\r\n+OK\r\n{value}:{}\r\n", first + 1));
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("the clients find nothing wrong")?;
    }
    assert_eq!(server.client()?.ask("GET shared")?, "$4\r\n3200\r\n");
    Ok(())
}

#[test]
fn transactions_need_no_new_connections() -> io::Result<()> {
    let server = RedisServer::start()?;
    // A connection with an outstanding health PING is not lent: another one would be dialled.
    let proxy = proxy(&[server.tcp()], &["--health-interval", "off"])?;
    let mut clients = (0..10).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    let round = |clients: &mut Vec<Client>| -> io::Result<()> {
        for client in clients.iter_mut() {
            client.send(b"MULTI\r\nINCR n\r\nEXEC\r\nWATCH n\r\nMULTI\r\nINCR m\r\nEXEC\r\n")?;
        }
        clients.iter_mut().try_for_each(|client| client.replies(7).map(drop))
    };
    round(&mut clients)?;
    // As many as can be needed: all watch at the same time.
    for client in &mut clients {
        assert_eq!(client.ask("WATCH n")?, "+OK\r\n");
    }
    clients.iter_mut().try_for_each(|client| client.ask("UNWATCH").map(drop))?;
    let before = proxy.client()?.figure("proxy", "dials")?;
    for _ in 0..30 {
        round(&mut clients)?;
    }
    // Clients that come and go borrow what others have given back.
    for _ in 0..50 {
        let mut client = proxy.client()?;
        client.send(b"WATCH a\r\nGET a\r\nMULTI\r\nGET b\r\nEXEC\r\n")?;
        client.replies(5)?;
    }
    assert_eq!(proxy.client()?.figure("proxy", "dials")?, before);
    assert_eq!(server.client()?.ask("GET n")?, "$3\r\n310\r\n");
    Ok(())
}

#[test]
fn a_watched_key_that_is_changed_stops_the_transaction() -> io::Result<()> {
    let four = Four::start(&[])?;
    let (mut one, mut other) = (four.proxy.client()?, four.proxy.client()?);
    for key in &four.keys {
        assert_eq!(one.command(&["WATCH", key])?, b"+OK\r\n");
        assert_eq!(other.command(&["SET", key, "changed"])?, b"+OK\r\n");
        assert_eq!(one.ask("MULTI")?, "+OK\r\n");
        assert_eq!(one.command(&["SET", key, "lost"])?, b"+QUEUED\r\n");
        assert_eq!(one.ask("EXEC")?, "*-1\r\n");
        assert_eq!(one.command(&["GET", key])?, bulk("changed"));
        // Compare and set, as clients do it, with no other client in between.
        one.command(&["WATCH", key])?;
        one.ask("MULTI")?;
        one.command(&["SET", key, "won"])?;
        assert_eq!(one.ask("EXEC")?, "*1\r\n+OK\r\n");
        assert_eq!(other.command(&["GET", key])?, bulk("won"));
    }
    Ok(())
}

#[test]
fn counters_that_are_compared_and_set_lose_no_increment() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let address = proxy.tcp();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let address = address.clone();
            std::thread::spawn(move || -> io::Result<()> {
                let mut client = Client::connect(&address)?;
                let mut done = 0;
                while done < 100 {
                    client.ask("WATCH counter")?;
                    let value = client.ask("GET counter")?;
                    let value: u64 = value.split("\r\n").nth(1).and_then(|v| v.parse().ok()).unwrap_or(0);
                    client.send(format!("MULTI\r\nSET counter {}\r\nEXEC\r\n", value + 1).as_bytes())?;
                    match client.replies(3)?.pop().as_deref() {
                        Some(b"*1\r\n+OK\r\n") => done += 1,
                        Some(b"*-1\r\n") => {}
                        other => panic!("{other:?}"),
                    }
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("the clients find nothing wrong")?;
    }
    assert_eq!(server.client()?.ask("GET counter")?, "$3\r\n400\r\n");
    Ok(())
}

#[test]
fn keys_of_a_transaction_share_a_node_or_are_named() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let [a, b] = [0, 1].map(|node| four.keys[node].as_str());
    client.ask("MULTI")?;
    assert_eq!(client.ask("PING")?, "+QUEUED\r\n");
    assert_eq!(client.command(&["SET", a, "new"])?, b"+QUEUED\r\n");
    let refused = String::from_utf8(client.command(&["SET", b, "new"])?).unwrap();
    assert!(refused.starts_with("-CROSSSLOT ") && refused.contains(a) && refused.contains(b), "{refused}");
    assert_eq!(client.ask("EXEC")?, "-EXECABORT Transaction discarded because of previous errors.\r\n");
    for words in [vec!["MGET", a, b], vec!["FLUSHALL"]] {
        client.ask("MULTI")?;
        assert_error(&client.command(&words)?, "over several nodes");
        assert!(client.ask("EXEC")?.starts_with("-EXECABORT"));
    }
    assert_ne!(client.command(&["GET", a])?, bulk("new"));
    // Watched keys and the transaction's as well.
    client.command(&["WATCH", a, b])?;
    client.ask("MULTI")?;
    client.command(&["SET", a, "new"])?;
    assert!(client.ask("EXEC")?.starts_with("-CROSSSLOT Watched keys"));
    assert_eq!(client.ask("EXEC")?, "-ERR EXEC without MULTI\r\n");
    assert_ne!(client.command(&["GET", a])?, bulk("new"));
    Ok(())
}

#[test]
fn a_vanished_client_leaves_nothing_on_the_next_ones_connection() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--health-interval", "off"])?;
    let states: [&[u8]; 5] = [
        b"WATCH k\r\n",
        b"MULTI\r\n",
        b"MULTI\r\nSET k bad\r\n",
        b"WATCH k\r\nMULTI\r\nSET k bad\r\n",
        b"MULTI\r\nSET other 1\r\nEXEC\r\n",
    ];
    for round in 0..60 {
        let state = states[round % states.len()];
        let mut leaver = proxy.client()?;
        leaver.send(state)?;
        if round % 2 == 0 {
            leaver.reply()?;
        }
        drop(leaver);
        let mut next = proxy.client()?;
        next.send(b"SET k good\r\nGET k\r\nWATCH k\r\nMULTI\r\nGET k\r\nEXEC\r\nPING\r\n")?;
        let expected: [&[u8]; 7] = [
            b"+OK\r\n",
            b"$4\r\ngood\r\n",
            b"+OK\r\n",
            b"+OK\r\n",
            b"+QUEUED\r\n",
            b"*1\r\n$4\r\ngood\r\n",
            b"+PONG\r\n",
        ];
        assert_eq!(next.replies(7)?, expected);
    }
    wait_until("nothing is pinned any more", PATIENCE, || {
        Ok(proxy.client()?.ask("INFO proxy")?.contains("pinned:0\r\n"))
    })?;
    assert!(proxy.client()?.figure("proxy", "dials")? < 10, "what was given back was used again");
    Ok(())
}

#[test]
fn a_node_that_dies_under_a_watch_fails_that_transaction_alone() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    client.ask("WATCH k")?;
    let mut direct = server.client()?;
    direct.ask("CLIENT KILL TYPE normal SKIPME yes")?;
    client.ask("MULTI")?;
    assert_eq!(client.ask("SET k v")?, "+QUEUED\r\n");
    let refused = client.ask("EXEC")?;
    assert!(refused.starts_with("-ERR the connection on which keys were watched is lost"), "{refused}");
    super::wait_for_reply(&mut client, &["GET", "k"], b"$-1\r\n")?;
    client.send(b"WATCH k\r\nMULTI\r\nSET k v\r\nEXEC\r\n")?;
    assert_eq!(client.replies(4)?.pop().unwrap(), b"*1\r\n+OK\r\n");
    Ok(())
}

#[test]
fn what_a_node_refuses_to_queue_fails_the_transaction() -> io::Result<()> {
    let full = FakeBackend::start(|request| match request.command().as_str() {
        "MULTI" => Act::Bytes(b"+OK\r\n".to_vec()),
        "SET" => Act::Bytes(b"-OOM command not allowed\r\n".to_vec()),
        "EXEC" => Act::Bytes(b"-EXECABORT Transaction discarded because of previous errors.\r\n".to_vec()),
        _ => Act::Usual,
    })?;
    let proxy = proxy(&[full.address()], &[])?;
    let mut client = proxy.client()?;
    client.send(b"MULTI\r\nSET a 1\r\nEXEC\r\nPING\r\n")?;
    let replies = client.replies(4)?;
    // The client saw it queued, as it would have been by a node that refuses EXEC itself.
    assert_eq!(replies[2], b"-EXECABORT Transaction discarded because of: OOM command not allowed\r\n");
    assert_eq!(replies[3], b"+PONG\r\n");
    Ok(())
}

#[test]
fn a_block_whose_keys_moved_runs_where_they_are() -> io::Result<()> {
    let there = RedisServer::start()?;
    let address = there.tcp().to_string();
    let line = format!("-MOVED 42 {address}\r\n").into_bytes();
    let here = FakeBackend::start(move |request| match request.command().as_str() {
        "MULTI" => Act::Bytes(b"+OK\r\n".to_vec()),
        "SET" | "GET" => Act::Bytes(line.clone()),
        "EXEC" => Act::Bytes(b"-EXECABORT Transaction discarded because of previous errors.\r\n".to_vec()),
        _ => Act::Usual,
    })?;
    let proxy = proxy(&[here.address(), there.tcp()], &[])?;
    let mut client = proxy.client()?;
    for number in 0..20 {
        let key = format!("k{number}");
        client.send(format!("MULTI\r\nSET {key} v\r\nGET {key}\r\nEXEC\r\n").as_bytes())?;
        assert_eq!(client.replies(4)?.pop().unwrap(), b"*2\r\n+OK\r\n$1\r\nv\r\n");
    }
    Ok(())
}

#[test]
fn a_block_has_limits() -> io::Result<()> {
    let server = RedisServer::start()?;
    let limits = ["--transaction-bytes-max", "4kb", "--transaction-commands-max", "10"];
    let proxy = proxy(&[server.tcp()], &limits)?;
    let mut client = proxy.client()?;
    client.ask("MULTI")?;
    (0..10).try_for_each(|_| client.ask("INCR n").map(|reply| assert_eq!(reply, "+QUEUED\r\n")))?;
    assert_eq!(client.ask("INCR n")?, "-ERR transaction too long: more than 10 commands\r\n");
    assert!(client.ask("EXEC")?.starts_with("-EXECABORT"));
    client.ask("MULTI")?;
    let refused = client.command(&["SET", "a", &"x".repeat(5_000)])?;
    assert_eq!(refused, b"-ERR transaction too large: its commands have more than 4096 bytes\r\n");
    assert!(client.ask("EXEC")?.starts_with("-EXECABORT"));
    assert_eq!(client.ask("GET n")?, "$-1\r\n");
    Ok(())
}

/// A user at the node who may do everything but begin a transaction.
pub(super) fn without_multi() -> io::Result<RedisServer> {
    let server = RedisServer::start()?;
    let rules = ["ACL", "SETUSER", "proxy", "on", ">pw", "~*", "&*", "+@all", "-multi"];
    assert_eq!(server.client()?.command(&rules)?, b"+OK\r\n");
    Ok(server)
}

/// What the proxy needs to be that user.
pub(super) const AS_PROXY: [&str; 4] = ["--node-username", "proxy", "--node-password", "pw"];

#[test]
fn a_node_that_refuses_multi_runs_nothing_of_a_transaction() -> io::Result<()> {
    let server = without_multi()?;
    for mode in ["multiplex", "transaction", "session"] {
        let arguments = [&AS_PROXY[..], &["--pool-mode", mode]].concat();
        let proxy = proxy(&[server.tcp()], &arguments)?;
        let mut client = proxy.client()?;
        for watched in [false, true, false] {
            if watched {
                assert_eq!(client.ask("WATCH n")?, "+OK\r\n");
            }
            client.send(b"MULTI\r\nINCR n\r\nINCR n\r\nEXEC\r\nGET n\r\n")?;
            let replies: Vec<u8> = client.replies(5)?.concat();
            let expected = "+OK\r\n+QUEUED\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: NOPERM this user has no \
                 permissions to run the 'multi' command\r\n$-1\r\n";
            assert_eq!(String::from_utf8_lossy(&replies), expected, "{mode}");
        }
        // The right is given, and taken away again.
        let rules = |rule: &str| server.client()?.command(&["ACL", "SETUSER", "proxy", rule]);
        rules("+multi")?;
        assert_eq!(
            answers(&proxy.tcp(), &["MULTI", "PING", "EXEC"])?,
            format!("+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n{}", String::from_utf8_lossy(END))
        );
        rules("-multi")?;
        assert!(server.client()?.ask("GET n")?.starts_with("$-1"), "{mode}");
    }
    Ok(())
}

/// A HELLO changes what the rest of its transaction is answered in, whether a node or the proxy executes it.
const HELLO_SCRIPTS: &[&[&str]] = &[
    &["HSET h f v", "MULTI", "HGETALL h", "GET {h}no", "HELLO 3", "HGETALL h", "GET {h}no", "EXEC", "HGETALL h"],
    &[
        "MULTI",
        "HELLO 3 SETNAME bo",
        "ZADD {h}z 1.5 m",
        "ZSCORE {h}z m",
        "ZRANGE {h}z 0 -1 WITHSCORES",
        "CLIENT GETNAME",
        "EXEC",
    ],
    &["MULTI", "HELLO 4", "HELLO x", "HGETALL h", "HELLO 3 SETNAME", "HGETALL h", "EXEC", "HGETALL h"],
    &["MULTI", "HELLO 3", "GET {h}no", "HELLO 2", "HGETALL h", "GET {h}no", "EXEC", "GET {h}no"],
    &["MULTI", "HELLO", "HELLO 2", "HGETALL h", "BLPOP {h}no 0", "EXEC", "HELLO 3", "GET {h}no"],
    &["WATCH h", "MULTI", "HELLO 3", "HGETALL h", "EXEC", "HGETALL h"],
    &["WATCH h", "HSET h f w", "MULTI", "HELLO 3", "HGETALL h", "EXEC", "HGETALL h"],
    &["MULTI", "HELLO 3", "NOSUCH", "EXEC", "HGETALL h", "MULTI", "HELLO 3", "DISCARD", "HGETALL h"],
    &["MULTI", "HELLO 3", "RESET", "EXEC", "HGETALL h"],
    &["MULTI", "HELLO 3 AUTH default any", "HGETALL h", "ACL WHOAMI", "EXEC", "HGETALL h"],
    &["CLIENT REPLY OFF", "MULTI", "HELLO 3", "HGETALL h", "EXEC", "CLIENT REPLY ON", "HGETALL h"],
];

#[test]
fn hello_in_a_transaction_holds_for_the_rest_of_it() -> io::Result<()> {
    let (direct, behind) = (RedisServer::start()?, RedisServer::start()?);
    let arguments = [
        (Some(&behind), ["--pool-mode", "multiplex"]),
        (Some(&behind), ["--pool-mode", "transaction"]),
        (Some(&behind), ["--pool-mode", "session"]),
        (None, ["--admin-commands", "allow"]),
        (None, ["--engine-threads", "3"]),
    ];
    for (node, arguments) in arguments {
        for server in [&direct, &behind] {
            server.client()?.ask("FLUSHALL")?;
        }
        let respool = proxy(&node.map(RedisServer::tcp).into_iter().collect::<Vec<_>>(), &arguments)?;
        for script in HELLO_SCRIPTS {
            let expected = without_id(&answers(&direct.tcp(), script)?);
            same(script, &expected, &without_id(&answers(&respool.tcp(), script)?));
        }
    }
    Ok(())
}
