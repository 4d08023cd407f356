//! CLIENT TRACKING through the pool: what a client has stored and is not told of is what the node has.
//! Long because the sequences that are compared with redis-server make half of it.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, elements, wait_until};

use super::{addresses, proxy, pubsub::tell, redis_servers};

pub(super) const STORIES: &[&[(&str, usize)]] = &[
    &[
        ("CLIENT TRACKING", 1),
        ("CLIENT TRACKING NOSUCH", 1),
        ("CLIENT TRACKING ON NOSUCH", 1),
        ("CLIENT TRACKING ON PREFIX a", 1),
        ("CLIENT TRACKING ON BCAST OPTIN", 1),
        ("CLIENT TRACKING ON OPTIN OPTOUT", 1),
        ("CLIENT TRACKING ON REDIRECT 99999", 1),
        ("CLIENT TRACKING ON REDIRECT x", 1),
        ("CLIENT TRACKING ON BCAST PREFIX ab PREFIX a", 1),
        ("CLIENT TRACKING OFF BCAST", 1),
        ("CLIENT CACHING YES", 1),
        ("CLIENT CACHING NOSUCH", 1),
        ("CLIENT GETREDIR", 1),
        ("CLIENT TRACKINGINFO", 1),
    ],
    &[
        ("CLIENT TRACKING ON", 1),
        ("CLIENT GETREDIR", 1),
        ("CLIENT TRACKINGINFO", 1),
        ("CLIENT TRACKING ON BCAST", 1),
        ("CLIENT TRACKING ON OPTIN", 1),
        ("CLIENT TRACKING OFF", 1),
        ("CLIENT TRACKING ON BCAST PREFIX a PREFIX b NOLOOP", 1),
        ("CLIENT TRACKINGINFO", 1),
        ("CLIENT TRACKING ON BCAST PREFIX b", 1),
        ("CLIENT TRACKING ON BCAST PREFIX c", 1),
        ("CLIENT TRACKING ON", 1),
        ("CLIENT CACHING YES", 1),
        ("CLIENT TRACKING OFF", 1),
        ("CLIENT TRACKING ON OPTIN", 1),
        ("CLIENT CACHING NO", 1),
        ("CLIENT CACHING YES", 1),
        ("CLIENT TRACKINGINFO", 1),
        ("CLIENT TRACKING ON OPTOUT", 1),
        ("CLIENT TRACKING OFF", 1),
        ("CLIENT TRACKING ON OPTOUT", 1),
        ("CLIENT CACHING NO", 1),
        ("CLIENT TRACKINGINFO", 1),
        ("RESET", 1),
        ("CLIENT TRACKINGINFO", 1),
    ],
];

/// What is told of changes, which only RESP3 has a place for.
pub(super) const IN_RESP3: &[&[(&str, usize)]] = &[
    &[
        ("CLIENT TRACKING ON", 1),
        ("GET k", 1),
        ("!SET k 1", 1),
        ("!SET k 2", 0),
        ("GET k", 1),
        ("SET k 3", 2),
        ("MGET k {k}l", 1),
        ("!SET {k}l 1", 1),
        ("!DEL k", 1),
        ("GET k", 1),
        ("!FLUSHALL", 1),
        ("CLIENT TRACKING OFF", 1),
        ("GET k", 1),
        ("!SET k 9", 0),
        ("PING", 1),
    ],
    &[
        ("CLIENT TRACKING ON BCAST PREFIX k PREFIX q", 1),
        ("!SET k 1", 1),
        ("!SET x 1", 0),
        ("!SET q1 1", 1),
        ("!FLUSHALL", 1),
    ],
    &[
        ("CLIENT TRACKING ON OPTIN", 1),
        ("GET k", 1),
        ("!SET k 1", 0),
        ("CLIENT CACHING YES", 1),
        ("GET k", 1),
        ("!SET k 1", 1),
        ("CLIENT CACHING YES", 1),
        ("PING", 1),
        ("GET k", 1),
        ("!SET k 1", 0),
        ("CLIENT CACHING YES", 1),
        ("MULTI", 1),
        ("GET k", 1),
        ("EXEC", 1),
        ("!SET k 9", 1),
        ("PING", 1),
    ],
    &[
        ("CLIENT TRACKING ON OPTOUT", 1),
        ("CLIENT CACHING NO", 1),
        ("GET k", 1),
        ("!SET k 1", 0),
        ("GET k", 1),
        ("!SET k 1", 1),
        ("PING", 1),
    ],
];

/// Clients that are not to hear of their own changes, whatever they make them by.
const NOT_OWN: &[&[(&str, usize)]] = &[
    &[
        ("CLIENT TRACKING ON NOLOOP", 1),
        ("CLIENT TRACKINGINFO", 1),
        ("GET k", 1),
        ("SET k 1", 1),
        ("GET k", 1),
        ("!SET k 2", 1),
        ("GET k", 1),
        ("APPEND k 3", 1),
        ("!APPEND k 4", 0),
        ("MGET k {k}l", 1),
        ("MSET k 5 {k}l 5", 1),
        ("MGET k {k}l", 1),
        ("!MSET k 6 {k}l 6", 2),
        ("GET k", 1),
        ("MULTI", 1),
        ("INCR k", 1),
        ("GET k", 1),
        ("EXEC", 1),
        ("GET k", 1),
        ("!INCR k", 1),
        ("WATCH k", 1),
        ("GET k", 1),
        ("MULTI", 1),
        ("SET k 7", 1),
        ("EXEC", 1),
        ("GET k", 1),
        ("WATCH k", 1),
        ("!SET k 8", 1),
        ("MULTI", 1),
        ("SET k 9", 1),
        ("EXEC", 1),
        ("GET k", 1),
        ("EVAL \"return redis.call('set',KEYS[1],'10')\" 1 k", 1),
        ("GET k", 1),
        ("EVAL \"return redis.call('get',KEYS[1])\" 1 {k}s", 1),
        ("!SET {k}s 1", 1),
        ("DEL k", 1),
        ("GET k", 1),
        ("FLUSHALL", 2),
        ("GET k", 1),
        ("!FLUSHALL", 1),
        ("GET k", 1),
        ("CLIENT TRACKING OFF", 1),
        ("GET k", 1),
        ("!SET k 1", 0),
        ("GET k", 1),
    ],
    &[
        ("CLIENT TRACKING ON NOLOOP", 1),
        ("RPUSH l a", 1),
        ("LRANGE l 0 -1", 1),
        ("BLPOP l 0", 1),
        ("LRANGE l 0 -1", 1),
        ("BLPOP l 0", 0),
        ("!RPUSH l b", 2),
        ("LRANGE {l}to 0 -1", 1),
        ("BLMOVE l {l}to LEFT RIGHT 0", 0),
        ("!RPUSH l c", 1),
        ("LRANGE {l}to 0 -1", 1),
        ("!RPUSH {l}to d", 1),
        ("XADD s 1-1 f v", 1),
        ("XREAD BLOCK 0 STREAMS s 0", 1),
        ("XADD s 1-2 f v", 1),
        ("XREAD BLOCK 0 STREAMS s 0", 1),
        ("!XADD s 1-3 f v", 1),
        ("BLPOP none 0.01", 1),
        ("WAIT 0 1", 1),
        ("GET k", 1),
    ],
    &[
        ("CLIENT TRACKING ON BCAST PREFIX k PREFIX q NOLOOP", 1),
        ("CLIENT TRACKINGINFO", 1),
        ("SET k 1", 1),
        ("GET x", 1),
        ("!SET k 2", 1),
        ("!SET x 1", 0),
        ("SET q1 1", 1),
        ("GET x", 1),
        ("!SET q1 2", 1),
        ("MULTI", 1),
        ("SET k 3", 1),
        ("EXEC", 1),
        ("RPUSH kl 1", 1),
        ("BLPOP kl 0", 1),
        ("GET x", 1),
        ("!FLUSHALL", 1),
    ],
    &[
        ("CLIENT TRACKING ON OPTIN NOLOOP", 1),
        ("GET k", 1),
        ("!SET k 1", 0),
        ("CLIENT CACHING YES", 1),
        ("GET k", 1),
        ("SET k 2", 1),
        ("GET k", 1),
        ("!SET k 3", 0),
        ("CLIENT CACHING YES", 1),
        ("GET k", 1),
        ("!SET k 4", 1),
        ("GET k", 1),
        ("CLIENT CACHING YES", 1),
        ("MULTI", 1),
        ("GET k", 1),
        ("SET k 5", 1),
        ("GET k", 1),
        ("EXEC", 1),
        ("!SET k 6", 1),
        ("CLIENT CACHING YES", 1),
        ("PING", 1),
        ("GET k", 1),
        ("!SET k 7", 0),
        ("CLIENT CACHING YES", 1),
        ("EVAL \"return redis.call('get',KEYS[1])\" 1 k", 1),
        ("!SET k 8", 1),
        ("GET x", 1),
        ("CLIENT TRACKINGINFO", 1),
    ],
    &[
        ("CLIENT TRACKING ON OPTOUT NOLOOP", 1),
        ("CLIENT CACHING NO", 1),
        ("GET k", 1),
        ("!SET k 1", 0),
        ("GET k", 1),
        ("SET k 2", 1),
        ("GET k", 1),
        ("!SET k 3", 1),
        ("GET x", 1),
    ],
];

/// A request that waits without end holds up nothing that its client has to know.
#[test]
fn who_waits_is_told_of_changes_while_it_waits() -> io::Result<()> {
    let servers = redis_servers(3)?;
    let proxy = proxy(&[servers[1].tcp(), servers[2].tcp()], &[])?;
    let engines = super::proxy(&[], &["--engine-threads", "2"])?;
    let push = "+>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
    for address in [servers[0].tcp(), proxy.tcp(), engines.tcp()] {
        for tracking in ["CLIENT TRACKING ON", "CLIENT TRACKING ON BCAST", "CLIENT TRACKING ON NOLOOP"] {
            for wait in ["BLPOP q 0", "BLPOP w 0", "XREAD BLOCK 0 STREAMS s $"] {
                let (mut client, mut other) = (Client::connect(&address)?, Client::connect(&address)?);
                for words in ["HELLO 3", tracking, "GET k"] {
                    client.ask(words)?;
                }
                client.send(format!("{wait}\r\n").as_bytes())?;
                // It may be told of a change that was made before its request waits: what counts is that it is told at all.
                wait_until("it waits", PATIENCE, || Ok(other.ask("INFO clients")?.contains("blocked_clients:1\r\n")))?;
                other.ask("SET k 2")?;
                assert_eq!(String::from_utf8_lossy(&client.reply()?), &push[1..], "{address:?} {tracking} {wait}");
                let key = wait.split(' ').find(|word| word.len() == 1 && *word != "0").expect("a key");
                match key {
                    "s" => other.ask("XADD s * f v")?,
                    key => other.ask(&format!("RPUSH {key} e"))?,
                };
                drop(client);
                wait_until("it has gone", PATIENCE, || {
                    Ok(other.ask("INFO clients")?.contains("blocked_clients:0\r\n"))
                })?;
                other.ask("FLUSHALL")?;
            }
        }
    }
    Ok(())
}

#[test]
fn noloop_clients_are_not_told_of_their_own_changes() -> io::Result<()> {
    let servers = redis_servers(2)?;
    let proxy = proxy(&[servers[1].tcp()], &[])?;
    let modes = redis_servers(1)?;
    let sessions = super::proxy(&[modes[0].tcp()], &["--pool-mode", "session"])?;
    for story in NOT_OWN {
        let wanted = tell(&servers[0].tcp(), "3", story)?;
        for (what, address) in [("sharing", proxy.tcp()), ("a session", sessions.tcp())] {
            let told = tell(&address, "3", story)?;
            for (told, wanted) in told.iter().zip(&wanted) {
                assert_eq!(told, wanted, "{what}");
            }
        }
    }
    // Nothing is left behind.
    for server in [&servers[1], &modes[0]] {
        let mut direct = server.client()?;
        wait_until("no connection tracks any more", PATIENCE, || {
            Ok(direct.ask("INFO clients")?.contains("tracking_clients:0\r\n"))
        })?;
    }
    Ok(())
}

#[test]
fn tracking_clients_are_told_what_redis_tells_them() -> io::Result<()> {
    let servers = redis_servers(2)?;
    let proxy = proxy(&[servers[1].tcp()], &[])?;
    for (version, stories) in [("2", STORIES), ("3", STORIES), ("3", IN_RESP3)] {
        for story in stories {
            let wanted = tell(&servers[0].tcp(), version, story)?;
            let told = tell(&proxy.tcp(), version, story)?;
            for (told, wanted) in told.iter().zip(&wanted) {
                assert_eq!(told, wanted, "RESP{version}");
            }
        }
    }
    Ok(())
}

/// A client's own store of what it has read, kept as pushes and replies come.
struct Store {
    client: Client,
    values: HashMap<String, Vec<u8>>,
    flushes: usize,
    invalidations: usize,
}

impl Store {
    fn read(&mut self, key: &str) -> io::Result<()> {
        self.client.send_command(&["GET", key])?;
        loop {
            let frame = self.client.reply()?;
            if !self.take(&frame) {
                self.values.insert(key.to_owned(), frame);
                return Ok(());
            }
        }
    }

    /// Forgets what an invalidation names. `false`: it is none.
    fn take(&mut self, frame: &[u8]) -> bool {
        if !frame.starts_with(b">2\r\n$10\r\ninvalidate\r\n") {
            return false;
        }
        match elements(frame)[1] {
            b"_\r\n" => {
                self.values.clear();
                self.flushes += 1;
            }
            keys => {
                for key in elements(keys) {
                    let text = String::from_utf8_lossy(key).into_owned();
                    let key = text.split("\r\n").nth(1).unwrap_or_default();
                    self.values.remove(key);
                    self.invalidations += 1;
                }
            }
        }
        true
    }
}

/// Keys are changed behind the proxy's back, at any rate, and the connections that tell of it are cut again and again.
#[test]
fn what_is_stored_is_what_the_node_has() -> io::Result<()> {
    let servers = redis_servers(2)?;
    let proxy = proxy(&addresses(&servers), &["--reconnect-min", "1ms", "--reconnect-max", "20ms"])?;
    for mode in [
        "CLIENT TRACKING ON",
        "CLIENT TRACKING ON BCAST",
        "CLIENT TRACKING ON NOLOOP",
        "CLIENT TRACKING ON BCAST NOLOOP",
        "CLIENT TRACKING ON OPTOUT NOLOOP",
    ] {
        let mut store = Store { client: proxy.client()?, values: HashMap::new(), flushes: 0, invalidations: 0 };
        store.client.ask("HELLO 3")?;
        assert_eq!(store.client.ask(mode)?, "+OK\r\n");
        // Each key's owner is found by asking through the proxy; who writes goes there directly.
        let mut owners = HashMap::new();
        let mut asking = proxy.client()?;
        for number in 0..40 {
            let key = format!("key{number}");
            asking.command(&["SET", &key, "0"])?;
            let owner = servers.iter().position(|server| {
                server.client().and_then(|mut c| c.command(&["EXISTS", &key])).is_ok_and(|reply| reply == b":1\r\n")
            });
            owners.insert(key, owner.expect("a node has it"));
        }
        std::thread::scope(|scope| -> io::Result<()> {
            let writers: Vec<_> = (0..servers.len())
                .map(|number| {
                    let (server, owners) = (&servers[number], &owners);
                    scope.spawn(move || -> io::Result<()> {
                        let mut direct = server.client()?;
                        let own: Vec<&String> =
                            owners.iter().filter(|(_, owner)| **owner == number).map(|(key, _)| key).collect();
                        for round in 0..3_000 {
                            direct.command(&["SET", own[round * 7 % own.len()], &round.to_string()])?;
                            if round % 500 == 250 {
                                direct.ask("CLIENT KILL TYPE normal SKIPME yes")?;
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            let mut round = 0;
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                round += 1;
                // A node that has just cut its connections may refuse; an error is nothing to store.
                let key = format!("key{}", round * 11 % 40);
                store.read(&key)?;
                store.values.retain(|_, value| !value.starts_with(b"-"));
            }
            writers.into_iter().try_for_each(|writer| writer.join().expect("a writer does not panic"))
        })?;
        let of_node = |number| owners.iter().find(|(_, owner)| **owner == number).map(|(key, _)| key).expect("a key");
        let of_nodes: Vec<&String> = (0..servers.len()).map(of_node).collect();
        wait_until("all nodes tell of changes again", PATIENCE, || {
            of_nodes.iter().try_for_each(|key| store.read(key))?;
            store.values.retain(|_, value| !value.starts_with(b"-"));
            store.client.send_command(&["ECHO", "x"])?;
            loop {
                let frame = store.client.reply()?;
                if !store.take(&frame) {
                    return Ok(of_nodes.iter().all(|key| store.values.contains_key(*key)));
                }
            }
        })?;
        // What is stored by now stays; the rest is read once more, so that there is something of everything.
        for key in owners.keys() {
            if !store.values.contains_key(key) {
                store.read(key)?;
            }
        }
        // Each node's last word: what it tells comes in order.
        for (server, key) in servers.iter().zip(&of_nodes) {
            server.client()?.command(&["SET", key, "end"])?;
            while store.values.contains_key(*key) {
                let frame = store.client.reply()?;
                assert!(store.take(&frame), "{}", frame.escape_ascii());
            }
        }
        for (key, value) in &store.values {
            let held = servers[owners[key]].client()?.command(&["GET", key])?;
            assert_eq!(value.escape_ascii().to_string(), held.escape_ascii().to_string(), "{mode}: {key}");
        }
        assert!(store.flushes > 0, "{mode}: connections were cut");
        assert!(store.values.len() > 20, "{mode}: something was stored");
    }
    Ok(())
}

/// A RESP2 client has another one told, wherever that is connected.
#[test]
fn redirect_tells_another_client() -> io::Result<()> {
    let server = RedisServer::start()?;
    let binary = Path::new(env!("CARGO_BIN_EXE_respool"));
    let proxy = Respool::start(binary, &[server.tcp()], &["--workers", "3"])?;
    let mut direct = server.client()?;
    // Several, so that workers differ.
    for _ in 0..6 {
        let (mut reader, mut listener) = (proxy.client()?, proxy.client()?);
        listener.ask("SUBSCRIBE __redis__:invalidate")?;
        let mut modern = proxy.client()?;
        modern.ask("HELLO 3")?;
        let list = modern.ask("CLIENT LIST")?;
        let newest =
            list.lines().filter(|line| line.contains(" sub=1 ")).filter_map(id_of).max().expect("the listener");
        assert_eq!(reader.ask(&format!("CLIENT TRACKING ON REDIRECT {newest}"))?, "+OK\r\n");
        assert_eq!(reader.ask("CLIENT GETREDIR")?, format!(":{newest}\r\n"));
        reader.ask("GET k")?;
        direct.ask("SET k 1")?;
        assert_eq!(
            listener.reply()?.escape_ascii().to_string(),
            "*3\\r\\n$7\\r\\nmessage\\r\\n$20\\r\\n__redis__:invalidate\\r\\n*1\\r\\n$1\\r\\nk\\r\\n"
        );
        reader.ask("GET k")?;
        direct.ask("FLUSHALL")?;
        assert!(listener.reply()?.ends_with(b"\r\n*-1\r\n"));
        drop(listener);
        wait_until("the listener is missed", PATIENCE, || {
            reader.ask("GET k")?;
            direct.ask("SET k 1")?;
            Ok(reader.ask("CLIENT TRACKINGINFO")?.contains("broken_redirect"))
        })?;
    }
    Ok(())
}

/// The node tells a connection of the reader alone, and that passes it on to the client that the reader has named.
#[test]
fn redirect_tells_another_client_of_changes_by_others() -> io::Result<()> {
    let servers = redis_servers(3)?;
    let binary = Path::new(env!("CARGO_BIN_EXE_respool"));
    let nodes = addresses(&servers[1..]);
    let proxy = Respool::start(binary, &nodes, &["--workers", "3"])?;
    let mut keys = Vec::new();
    for server in &servers[1..] {
        let owned = (0..100).map(|number| format!("key{number}")).find(|key| {
            let is_set = proxy.client().and_then(|mut client| client.command(&["SET", key, "0"]));
            let is_there = server.client().and_then(|mut client| client.command(&["EXISTS", key]));
            is_set.is_ok() && is_there.is_ok_and(|reply| reply == b":1\r\n")
        });
        keys.push(owned.expect("one of a hundred keys"));
    }
    for mode in ["", "BCAST", "OPTOUT"] {
        let mut told = Vec::new();
        for address in [servers[0].tcp(), proxy.tcp()] {
            let (mut reader, mut listener) = (Client::connect(&address)?, Client::connect(&address)?);
            let mut other = Client::connect(&address)?;
            let id = listener.ask("CLIENT ID")?.trim().trim_start_matches(':').to_owned();
            listener.ask("SUBSCRIBE __redis__:invalidate")?;
            let request = format!("CLIENT TRACKING ON REDIRECT {id} NOLOOP {mode}");
            assert_eq!(reader.ask(request.trim())?, "+OK\r\n");
            let mut frames = Vec::new();
            for key in &keys {
                reader.command(&["GET", key])?;
                reader.command(&["SET", key, "1"])?;
                reader.command(&["GET", key])?;
                other.command(&["SET", key, "2"])?;
                frames.push(listener.reply()?.escape_ascii().to_string());
            }
            reader.ask("MULTI")?;
            reader.command(&["SET", &keys[0], "3"])?;
            reader.ask("EXEC")?;
            other.command(&["SET", &keys[1], "4"])?;
            reader.command(&["GET", &keys[1]])?;
            other.command(&["SET", &keys[1], "5"])?;
            let mut rest = listener.replies(if mode == "BCAST" { 2 } else { 1 })?;
            frames.extend(rest.drain(..).map(|frame| frame.escape_ascii().to_string()));
            assert_eq!(reader.ask("CLIENT TRACKING OFF")?, "+OK\r\n");
            told.push(frames);
        }
        assert_eq!(told[1], told[0], "{mode}");
    }
    for server in &servers[1..] {
        let mut direct = server.client()?;
        wait_until("no connection tracks any more", PATIENCE, || {
            Ok(direct.ask("INFO clients")?.contains("tracking_clients:0\r\n"))
        })?;
    }
    Ok(())
}

const KEY_K: &str = ">2\\r\\n$10\\r\\ninvalidate\\r\\n*1\\r\\n$1\\r\\nk\\r\\n";
const FORGET_ALL: &str = ">2\\r\\n$10\\r\\ninvalidate\\r\\n_\\r\\n";

/// Another database or dialect means other connections: what was read before is in doubt, and what is read then is told of.
#[test]
fn own_connections_change_with_database_and_dialect() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    let mut direct = server.client()?;
    assert_eq!(client.ask("CLIENT TRACKING ON NOLOOP")?, "+OK\r\n");
    client.ask("HELLO 3")?;
    // Nothing is told before the connections are there; until then each reading is in doubt.
    let mut told = |client: &mut Client, key: &str| -> io::Result<()> {
        let invalid = format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len());
        wait_until("the node tells of changes", PATIENCE, || {
            client.send_command(&["GET", key])?;
            while client.reply()?.starts_with(b">") {}
            direct.command(&["SET", key, "1"])?;
            let frame = client.reply()?;
            assert!(frame == invalid.as_bytes() || frame.escape_ascii().to_string() == FORGET_ALL, "{frame:?}");
            Ok(frame == invalid.as_bytes())
        })
    };
    told(&mut client, "first")?;
    // HELLO changes what is spoken there: nodes go on knowing what the client has read, in RESP2 it is told nothing.
    let connections = |direct: &mut Client| -> io::Result<Vec<String>> {
        let all = direct.ask("CLIENT LIST")?;
        Ok(all.lines().filter_map(|line| Some(line.split_once(" addr=")?.0.to_owned())).collect())
    };
    let mut other = server.client()?;
    client.ask("GET kept")?;
    let before = connections(&mut other)?;
    assert!(client.ask("HELLO 2")?.starts_with("*14\r\n"));
    assert_eq!(client.ask("GET kept-too")?, "$-1\r\n", "replies are those of the dialect");
    other.ask("SET kept-too 1")?;
    assert!(client.ask("HELLO 3")?.starts_with("%7\r\n"));
    assert_eq!(client.ask("GET nothing")?, "_\r\n");
    assert_eq!(connections(&mut other)?, before);
    other.ask("SET kept 1")?;
    assert_eq!(client.reply()?, b">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\nkept\r\n");
    for (database, key) in [("3", "second"), ("0", "third")] {
        client.send_command(&["SELECT", database])?;
        let mut frames = Vec::new();
        while frames.last().is_none_or(|frame| frame != "+OK\\r\\n") {
            frames.push(client.reply()?.escape_ascii().to_string());
        }
        assert!(frames.iter().any(|frame| frame == FORGET_ALL), "{frames:?}");
        told(&mut client, key)?;
    }
    // Who wants to hear of its own changes again shares connections again.
    let mut client = proxy.client()?;
    client.ask("HELLO 3")?;
    client.ask("CLIENT TRACKING ON NOLOOP")?;
    client.ask("GET k")?;
    for (request, push) in [("CLIENT TRACKING ON", FORGET_ALL), ("SET k 1", KEY_K)] {
        client.send(format!("{request}\r\n").as_bytes())?;
        let frames: Vec<String> = client.replies(2)?.iter().map(|frame| frame.escape_ascii().to_string()).collect();
        assert!(frames.contains(&push.to_owned()) && frames.contains(&"+OK\\r\\n".to_owned()), "{request}: {frames:?}");
        client.ask("GET k")?;
    }
    Ok(())
}

/// Who cannot have connections of its own is told so, and may ask again.
#[test]
fn own_connections_of_trackers_are_bounded() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--session-connections-max", "2"])?;
    let mut clients = (0..3).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut clients {
        client.ask("HELLO 3")?;
    }
    for client in &mut clients[..2] {
        assert_eq!(client.ask("CLIENT TRACKING ON NOLOOP")?, "+OK\r\n");
    }
    let refusal = clients[2].ask("CLIENT TRACKING ON NOLOOP")?;
    assert!(refusal.contains("too many clients have connections to it to themselves"), "{refusal}");
    assert_eq!(clients[2].ask("SET k 1")?, "+OK\r\n");
    assert!(clients[2].ask("CLIENT TRACKINGINFO")?.contains("off"));
    assert_eq!(clients[0].ask("CLIENT TRACKING OFF")?, "+OK\r\n");
    wait_until("there is room again", PATIENCE, || Ok(clients[2].ask("CLIENT TRACKING ON NOLOOP")? == "+OK\r\n"))?;
    let refusal = clients[0].ask("CLIENT TRACKING ON NOLOOP BCAST")?;
    assert!(refusal.starts_with("-ERR node "), "{refusal}");
    assert_eq!(clients[0].ask("RESET")?, "+RESET\r\n");
    Ok(())
}

/// What is taken for a client that has gone is put back, on a connection of its own as on others.
#[test]
fn trackers_that_vanish_while_they_wait_take_nothing_with_them() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut pusher = proxy.client()?;
    let mut direct = server.client()?;
    let mut blocked = |wanted: &str| {
        wait_until("as many wait as should", PATIENCE, || {
            Ok(direct.ask("INFO clients")?.contains(&format!("blocked_clients:{wanted}\r\n")))
        })
    };
    for round in 0..40 {
        let mut client = proxy.client()?;
        client.ask("HELLO 3")?;
        assert_eq!(client.ask("CLIENT TRACKING ON NOLOOP")?, "+OK\r\n");
        client.send_command(&["BLPOP", "queue", "0"])?;
        if round % 2 == 0 {
            blocked("1")?;
        }
        drop(client);
        blocked("0")?;
        wait_until("it has left", PATIENCE, || Ok(pusher.ask("INFO clients")?.contains("connected_clients:1\r\n")))?;
        assert_eq!(pusher.ask("RPUSH queue element")?, ":1\r\n");
        assert!(pusher.ask("BLPOP queue 0")?.contains("element"));
    }
    wait_until("no client waits or tracks", PATIENCE, || {
        let clients = server.client()?.ask("INFO clients")?;
        Ok(clients.contains("blocked_clients:0\r\n") && clients.contains("tracking_clients:0\r\n"))
    })
}

fn id_of(line: &str) -> Option<u64> {
    line.split_once("id=")?.1.split(' ').next()?.parse().ok()
}

#[test]
fn no_invalidations_are_sent_once_no_client_tracks() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    client.ask("HELLO 3")?;
    client.ask("CLIENT TRACKING ON")?;
    let mut direct = server.client()?;
    assert!(direct.ask("INFO clients")?.contains("tracking_clients:1\r\n"));
    drop(client);
    wait_until("the node does not have to tell any more", PATIENCE, || {
        Ok(direct.ask("INFO clients")?.contains("tracking_clients:0\r\n"))
    })
}

/// A client may ask again and again for more beginnings of keys; every change is compared with all of them.
#[test]
fn prefixes_are_bounded_over_all_requests_of_a_client() -> io::Result<()> {
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &[])?;
    let mut client = proxy.client()?;
    client.ask("HELLO 3")?;
    for number in 0..128 {
        let prefix = format!("p{number}:");
        assert_eq!(client.command(&["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", &prefix])?, b"+OK\r\n");
    }
    let reply = client.ask("CLIENT TRACKING ON BCAST PREFIX more:")?;
    assert_eq!(reply, "-ERR too many prefixes of one connection\r\n");
    Ok(())
}

#[test]
fn keys_that_make_room_are_told_of_before_the_reply() -> io::Result<()> {
    let (redis, own) = (RedisServer::start()?, proxy(&[], &[])?);
    for mut client in [redis.client()?, own.client()?] {
        let most = client.figure("memory", "used_memory")? + 500_000;
        client.ask("HELLO 3")?;
        for request in ["CLIENT TRACKING ON", "CONFIG SET maxmemory-policy volatile-random", "SET gone x EX 10000"] {
            assert_eq!(client.ask(request)?, "+OK\r\n", "{request}");
        }
        assert_eq!(client.ask("GET gone")?, "$1\r\nx\r\n");
        assert_eq!(client.ask(&format!("CONFIG SET maxmemory {most}"))?, "+OK\r\n");
        // A megabyte: the next request begins without room.
        client.send(b"SETBIT large 8000000 0\r\nGETBIT large 0\r\n")?;
        let told = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\ngone\r\n";
        let replies: Vec<String> =
            client.replies(3)?.iter().map(|reply| String::from_utf8_lossy(reply).into_owned()).collect();
        assert_eq!(replies, [":0\r\n", told, ":0\r\n"]);
    }
    Ok(())
}
