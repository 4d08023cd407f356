//! Commands that wait: on connections of their own, in a fair queue, taken back from clients that leave.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use respool_testkit::{Client, PATIENCE, RedisServer, Rng, elements, figure, wait_until};

use super::transactions::{AS_PROXY, without_multi};
use super::{Four, assert_error, bulk, proxy};

fn pair(key: &str, element: &str) -> Vec<u8> {
    [b"*2\r\n".to_vec(), bulk(key), bulk(element)].concat()
}

/// Waits until so many clients wait at a server.
fn blocked(server: &RedisServer, count: usize) -> io::Result<()> {
    let mut client = server.client()?;
    wait_until("clients wait", PATIENCE, || {
        Ok(client.ask("INFO clients")?.contains(&format!("blocked_clients:{count}\r\n")))
    })
}

fn number_of(client: &mut Client) -> io::Result<String> {
    Ok(client.ask("CLIENT ID")?.trim_start_matches(':').trim_end().to_owned())
}

#[test]
fn every_command_that_waits_is_served() -> io::Result<()> {
    let server = RedisServer::start()?;
    // A connection with an outstanding health PING is not lent: another one would be dialled.
    let proxy = proxy(&[server.tcp()], &["--health-interval", "off"])?;
    let (mut waiter, mut other) = (proxy.client()?, proxy.client()?);
    other.ask("XGROUP CREATE stream group $ MKSTREAM")?;
    let list = "*2\r\n$1\r\nk\r\n$1\r\nv\r\n";
    let cases: [(&str, &str, &str); 9] = [
        ("BLPOP nokey k 0", "RPUSH k v", list),
        ("BRPOP k 0", "RPUSH k v", list),
        ("BLMOVE k other LEFT RIGHT 0", "RPUSH k v", "$1\r\nv\r\n"),
        ("BRPOPLPUSH k other 0", "RPUSH k v", "$1\r\nv\r\n"),
        ("BLMPOP 0 2 nokey k LEFT COUNT 2", "RPUSH k v w", "*2\r\n$1\r\nk\r\n*2\r\n$1\r\nv\r\n$1\r\nw\r\n"),
        ("BZPOPMIN z 0", "ZADD z 1 m", "*3\r\n$1\r\nz\r\n$1\r\nm\r\n$1\r\n1\r\n"),
        ("BZPOPMAX z 0", "ZADD z 1 m", "*3\r\n$1\r\nz\r\n$1\r\nm\r\n$1\r\n1\r\n"),
        ("BZMPOP 0 1 z MIN", "ZADD z 1 m", "*2\r\n$1\r\nz\r\n*1\r\n*2\r\n$1\r\nm\r\n$1\r\n1\r\n"),
        (
            "XREADGROUP GROUP group me BLOCK 0 STREAMS stream >",
            "XADD stream 9-9 f v",
            "*1\r\n*2\r\n$6\r\nstream\r\n*1\r\n*2\r\n$3\r\n9-9\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
        ),
    ];
    let dials = || proxy.client()?.figure("proxy", "dials");
    let mut at_first = 0;
    for (wait, push, expected) in cases {
        let words: Vec<&str> = wait.split(' ').collect();
        waiter.send_command(&words)?;
        // Behind it in the pipeline, and answered behind it.
        waiter.send_command(&["ECHO", wait])?;
        blocked(&server, 1)?;
        other.ask(push)?;
        assert_eq!(String::from_utf8_lossy(&waiter.reply()?), expected, "{wait}");
        assert_eq!(waiter.reply()?, bulk(wait));
        if at_first == 0 {
            // The shared one and a blocking one; a third, for a try, if the blocking one was not connected at once.
            at_first = dials()?;
            assert!(at_first <= 3, "{at_first}");
        }
    }
    waiter.send(b"XREAD BLOCK 0 STREAMS stream $\r\n")?;
    blocked(&server, 1)?;
    other.ask("XADD stream 10-1 f v")?;
    assert!(String::from_utf8_lossy(&waiter.reply()?).contains("10-1"));
    assert_eq!(proxy.client()?.figure("proxy", "blocked_clients")?, 0);
    assert_eq!(dials()?, at_first, "all wait on the same connection");
    Ok(())
}

#[test]
fn what_a_blocked_client_is_given_counts_as_written() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let (mut waiter, mut watcher, mut other) = (server.client()?, server.client()?, server.client()?);
    watcher.ask("WATCH to")?;
    waiter.send(b"BLMOVE from to LEFT LEFT 0\r\n")?;
    wait_until("it waits", PATIENCE, || Ok(other.figure("proxy", "blocked_clients")? == 1))?;
    other.ask("RPUSH from v")?;
    assert_eq!(waiter.reply()?, bulk("v"));
    for request in ["MULTI", "LRANGE to 0 -1"] {
        watcher.ask(request)?;
    }
    assert_eq!(watcher.ask("EXEC")?, "*-1\r\n", "what it watches has been written to");
    Ok(())
}

#[test]
fn embedded_watches_are_in_the_clients_account() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let mut client = server.client()?;
    let memory = |client: &mut Client| -> io::Result<usize> {
        let line = client.ask("CLIENT INFO")?;
        let figure = line.split(' ').find_map(|field| field.strip_prefix("tot-mem="));
        Ok(figure.and_then(|figure| figure.parse().ok()).expect("it is told"))
    };
    let before = memory(&mut client)?;
    let key = |number: usize| format!("{number:01000}");
    for _ in 0..3 {
        let keys: Vec<String> = (0..500).map(key).collect();
        let words: Vec<&str> = std::iter::once("WATCH").chain(keys.iter().map(String::as_str)).collect();
        client.send_command(&words)?;
        assert_eq!(client.reply()?, b"+OK\r\n");
    }
    let watching = memory(&mut client)?;
    assert!((500_000..1_000_000).contains(&(watching - before)), "{before} and then {watching}");
    client.ask("UNWATCH")?;
    assert!(memory(&mut client)? < before + 100_000);
    Ok(())
}

#[test]
fn an_embedded_server_lets_clients_wait() -> io::Result<()> {
    // By itself, and as a node behind the proxy.
    let alone = proxy(&[], &[])?;
    let behind = proxy(&[], &["--node", "embedded:"])?;
    for (server, question) in [(&alone, "INFO clients"), (&behind, "PROXY NODE embedded-1 INFO clients")] {
        let mut clients = (0..4).map(|_| server.client()).collect::<io::Result<Vec<_>>>()?;
        let mut other = server.client()?;
        // The order of arrival at the node is certain only if the node itself counts the blocked clients.
        let waiting = |count: u64| {
            wait_until("they wait", PATIENCE, || {
                Ok(figure(&server.client()?.ask(question)?, "blocked_clients")? == count)
            })
        };
        clients[0].send(b"BLPOP a b 0\r\n")?;
        waiting(1)?;
        clients[1].send(b"BLPOP b 0\r\nPING\r\n")?;
        waiting(2)?;
        clients[2].send(b"BLMOVE b c LEFT LEFT 0\r\n")?;
        waiting(3)?;
        clients[3].send(b"BRPOP c 0\r\n")?;
        waiting(4)?;
        // First come, first served; and what the third moves serves the fourth.
        assert_eq!(other.ask("RPUSH b 1 2 3")?, ":3\r\n");
        assert_eq!(clients[0].reply()?, pair("b", "1"));
        assert_eq!(clients[1].replies(2)?, [pair("b", "2"), b"+PONG\r\n".to_vec()]);
        assert_eq!(clients[2].reply()?, bulk("3"));
        assert_eq!(clients[3].reply()?, pair("c", "3"));
        // A transaction is over before any client is served.
        clients[0].send(b"BLPOP t 0\r\n")?;
        waiting(1)?;
        other.send(b"MULTI\r\nRPUSH t x\r\nLPOP t\r\nRPUSH t y\r\nBLPOP nothing 0\r\nEXEC\r\n")?;
        assert_eq!(other.replies(6)?.pop().unwrap(), b"*4\r\n:1\r\n$1\r\nx\r\n:1\r\n*-1\r\n");
        assert_eq!(clients[0].reply()?, pair("t", "y"));
        clients[0].send(b"BZPOPMIN z 0\r\n")?;
        waiting(1)?;
        other.ask("ZADD z 1 m")?;
        assert_eq!(clients[0].reply()?, b"*3\r\n$1\r\nz\r\n$1\r\nm\r\n$1\r\n1\r\n");
        let began = Instant::now();
        assert_eq!(clients[0].ask("BLPOP nothing 0.1")?, "*-1\r\n");
        assert!(began.elapsed() >= Duration::from_millis(95), "{:?}", began.elapsed());
        // Who leaves takes nothing along, and who is unblocked is told so.
        clients[0].send(b"BLPOP k 0\r\n")?;
        waiting(1)?;
        drop(clients.remove(0));
        waiting(0)?;
        assert_eq!(other.ask("RPUSH k v")?, ":1\r\n");
        assert_eq!(other.ask("LLEN k")?, ":1\r\n");
        let id = number_of(&mut clients[0])?;
        clients[0].send(b"BLPOP nothing 0\r\n")?;
        waiting(1)?;
        assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id} ERROR"))?, ":1\r\n");
        assert!(clients[0].reply()?.starts_with(b"-UNBLOCKED "));
    }
    Ok(())
}

/// Blocked readers of streams are served as by Redis: by an entry, or by an error if the group or the stream is deleted.
#[test]
fn an_embedded_server_lets_readers_of_streams_wait() -> io::Result<()> {
    let redis = RedisServer::start()?;
    let (alone, behind) = (proxy(&[], &[])?, proxy(&[], &["--node", "embedded:"])?);
    // The blocking request, the requests of which the last one ends it, and its reply. The stream has entry 5-1, and group `g` has read
    // everything.
    let cases = [
        ("XREAD BLOCK 0 STREAMS s $", "XADD s 6-1 f v", "6-1"),
        ("XREAD BLOCK 0 COUNT 1 STREAMS other s 0 5-1", "XADD s 6-1 f v", "6-1"),
        ("XREAD BLOCK 0 STREAMS other $", "XADD other 1-1 f v", "1-1"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "XADD s 6-1 f v", "6-1"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "XGROUP DESTROY s g", "-NOGROUP the consumer group"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "DEL s", "-UNBLOCKED the stream key"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "SET s text", "-UNBLOCKED the stream key"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "PEXPIRE s 1", "-UNBLOCKED the stream key"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "FLUSHALL", "-UNBLOCKED the stream key"),
        ("XREADGROUP GROUP block streams BLOCK 0 STREAMS s >", "XADD s 6-1 f v", "6-1"),
        ("XREAD BLOCK 0 STREAMS s $", "XSETID s 9-1; XACK s g 5-1; XADD s 10-1 f v", "10-1"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "XGROUP SETID s g 0; XADD s 6-1 f v", "6-1"),
        ("XREAD BLOCK 0 STREAMS s $", "XSETID s 9-1; EXPIRE s 1000; PERSIST s; XADD s 10-1 f v", "10-1"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "XGROUP SETID s g 0; PEXPIRE s 99999; XADD s 6-1 f v", "6-1"),
        ("XREADGROUP GROUP g me BLOCK 0 STREAMS s >", "EXPIRE s -1", "-UNBLOCKED the stream key"),
        ("XREADGROUP GROUP g me BLOCK 20 STREAMS s >", "PING", "*-1"),
    ];
    for (wait, end, expected) in cases {
        let mut replies = Vec::new();
        // That the proxy holds the client does not say that its node has the request yet.
        let of_node = "PROXY NODE embedded-1 INFO clients";
        for (server, question) in
            [(redis.tcp(), "INFO clients"), (alone.tcp(), "INFO clients"), (behind.tcp(), of_node)]
        {
            let (mut client, mut other) = (Client::connect(&server)?, Client::connect(&server)?);
            other.ask("FLUSHALL")?;
            for request in ["XADD s 5-1 f v", "XGROUP CREATE s g $", "XGROUP CREATE s block $"] {
                other.ask(request)?;
            }
            client.send_command(&wait.split(' ').collect::<Vec<_>>())?;
            if end != "PING" {
                wait_until("it waits", PATIENCE, || Ok(other.ask(question)?.contains("blocked_clients:1\r\n")))?;
            }
            for request in end.split("; ") {
                other.ask(request)?;
            }
            replies.push(String::from_utf8_lossy(&client.reply()?).into_owned());
        }
        assert!(replies[0].contains(expected), "{wait} / {end}: {replies:?}");
        assert!(replies.iter().all(|reply| *reply == replies[0]), "{wait} / {end}: {replies:?}");
    }
    Ok(())
}

/// As Redis does, an embedded server serves by the key that was written and only with what the client waits for.
#[test]
fn an_embedded_server_serves_by_the_key_that_was_written() -> io::Result<()> {
    for is_embedded in [false, true] {
        let (redis, embedded) = (RedisServer::start()?, proxy(&[], &[])?);
        let connect = || if is_embedded { embedded.client() } else { redis.client() };
        let section = if is_embedded { "proxy" } else { "clients" };
        let (mut waiter, mut other) = (connect()?, connect()?);
        let wait = |waiter: &mut Client, request: &str| {
            waiter.send_command(&request.split(' ').collect::<Vec<_>>())?;
            wait_until("it waits", PATIENCE, || Ok(connect()?.figure(section, "blocked_clients")? == 1))
        };
        // What is of another type is not what the client waits for, now or behind it.
        for (request, other_type, right_type, expected) in [
            ("BLPOP first k 0", "SET k text", "RPUSH k v", pair("k", "v")),
            ("BLPOP first k 0", "ZADD first 1 m", "RPUSH k v", pair("k", "v")),
            ("BZPOPMIN k 0", "RPUSH k v", "ZADD k 1 m", b"*3\r\n$1\r\nk\r\n$1\r\nm\r\n$1\r\n1\r\n".to_vec()),
            ("BLMOVE k to LEFT LEFT 0", "SADD k m", "RPUSH k v", bulk("v")),
        ] {
            wait(&mut waiter, request)?;
            other.ask(other_type)?;
            assert_eq!(other.ask("DEL k")?.len(), 4);
            other.ask(right_type)?;
            assert_eq!(String::from_utf8_lossy(&waiter.reply()?), String::from_utf8_lossy(&expected), "{request}");
            other.ask("FLUSHALL")?;
        }
        // The key that was written first, not the one that is named first.
        wait(&mut waiter, "BLMPOP 0 2 a b LEFT COUNT 2")?;
        other.send(b"MULTI\r\nRPUSH b 1 2 3\r\nRPUSH a x\r\nEXEC\r\n")?;
        other.replies(4)?;
        assert_eq!(waiter.reply()?, b"*2\r\n$1\r\nb\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
        assert_eq!(other.ask("LRANGE a 0 -1")?, "*1\r\n$1\r\nx\r\n");
        // Where the element is to go may hold something else: that is told once there is one.
        wait(&mut waiter, "BLMOVE from to LEFT LEFT 0")?;
        other.ask("SET to text")?;
        other.ask("RPUSH from 1")?;
        assert_error(&waiter.reply()?, "WRONGTYPE");
        assert_eq!(other.ask("LLEN from")?, ":1\r\n");
        other.send(b"MULTI\r\nBLMOVE no no LEFT LEFT 0\r\nBRPOPLPUSH no no 0\r\nBLMPOP 0 1 no LEFT\r\nEXEC\r\n")?;
        assert_eq!(other.replies(5)?.pop().unwrap(), b"*3\r\n$-1\r\n$-1\r\n*-1\r\n");
    }
    Ok(())
}

/// What those waited for who have left is not kept, whether or not others wait after them.
#[test]
fn an_embedded_server_forgets_what_was_waited_for() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let figure = |name: &str| server.client()?.figure("proxy", name);
    let mut client = server.client()?;
    client.send(b"BLPOP a b c 0\r\n")?;
    wait_until("it waits", PATIENCE, || Ok(figure("keys_waited_for")? == 3))?;
    drop(client);
    wait_until("it has left", PATIENCE, || Ok(figure("blocked_clients")? == 0))?;
    wait_until("its keys are forgotten", PATIENCE, || Ok(figure("keys_waited_for")? == 0))
}

#[test]
fn nothing_comes_for_those_whose_time_runs_out() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut direct = server.client()?;
    let mut client = proxy.client()?;
    for hello in ["HELLO 2", "HELLO 3"] {
        client.ask(hello)?;
        direct.ask(hello)?;
        for words in [
            "BLPOP a 0.05",
            "BRPOP a b 0.05",
            "BLMOVE a b LEFT LEFT 0.05",
            "BLMPOP 0.05 1 a LEFT",
            "BZPOPMIN a 0.05",
            "BZMPOP 0.05 1 a MIN",
            "XREAD BLOCK 50 STREAMS s $",
            "WAIT 0 0",
            "WAIT 1 50",
            "BLPOP a x",
            "BLPOP a -1",
            "XREAD BLOCK x STREAMS s 0",
            "WAIT x 0",
        ] {
            assert_eq!(client.ask(words)?, direct.ask(words)?, "{words}");
        }
    }
    Ok(())
}

#[test]
fn the_queue_is_fair_and_counts_time_from_arrival() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--blocking-connections-max", "2"])?;
    let mut clients = (0..6).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    let mut direct = server.client()?;
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(b"BLPOP q 0\r\n")?;
        // One after the other, so that the order is known: connections that are dialled at once may be there in any.
        blocked(&server, (number + 1).min(2))?;
        let name = number_of(&mut proxy.client()?)?;
        assert!(!name.is_empty());
    }
    wait_until("all wait", PATIENCE, || Ok(proxy.client()?.figure("proxy", "blocked_clients")? == 6))?;
    for (number, client) in clients.iter_mut().enumerate() {
        direct.command(&["RPUSH", "q", &number.to_string()])?;
        assert_eq!(client.reply()?, pair("q", &number.to_string()));
    }
    // Two wait for ever, so these do not get further than the queue.
    for client in &mut clients[..2] {
        client.send(b"BLPOP q 0\r\n")?;
    }
    blocked(&server, 2)?;
    let began = Instant::now();
    clients[2].send(b"BLPOP other 0.3\r\n")?;
    clients[3].send(b"BLMOVE other some LEFT LEFT 0.3\r\n")?;
    assert_eq!(clients[2].reply()?, b"*-1\r\n");
    assert_eq!(clients[3].reply()?, b"*-1\r\n");
    // Their time did not begin at a connection, which none of them got.
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(295), "{waited:?}");
    // But what is there they get, and what is not possible they are told.
    clients[4].send(b"BLPOP there 0\r\n")?;
    wait_until("it stands in the queue", PATIENCE, || Ok(proxy.client()?.figure("proxy", "blocked_clients")? == 3))?;
    direct.ask("RPUSH there x")?;
    assert_eq!(clients[4].reply()?, pair("there", "x"));
    clients[4].send(b"XREAD BLOCK 0 STREAMS s $\r\n")?;
    assert_error(&clients[4].reply()?, "its place is now or never");
    direct.ask("SET wrong type")?;
    clients[5].send(b"BLPOP wrong 0\r\n")?;
    assert!(clients[5].reply()?.starts_with(b"-WRONGTYPE"));
    Ok(())
}

#[test]
fn too_many_that_wait_are_told_so() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--blocked-commands-max", "3", "--blocking-connections-max", "1"])?;
    let mut clients = (0..4).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut clients[..3] {
        client.send(b"BLPOP q 0\r\n")?;
    }
    wait_until("three wait", PATIENCE, || Ok(proxy.client()?.figure("proxy", "blocked_clients")? == 3))?;
    assert_eq!(clients[3].ask("BLPOP q 0")?, "-ERR too many clients wait already; the command was not sent\r\n");
    assert_eq!(clients[3].ask("PING")?, "+PONG\r\n");
    Ok(())
}

#[test]
fn clients_unblock_each_other() -> io::Result<()> {
    let server = RedisServer::start()?;
    for connections in ["1", "2"] {
        let proxy = proxy(&[server.tcp()], &["--blocking-connections-max", connections])?;
        let mut first = proxy.client()?;
        first.send(b"BLPOP nothing 0\r\n")?;
        let (mut waiter, mut other) = (proxy.client()?, proxy.client()?);
        let id = number_of(&mut waiter)?;
        assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id}"))?, ":0\r\n");
        for (reason, expected) in
            [("", "*-1\r\n"), (" TIMEOUT", "*-1\r\n"), (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")]
        {
            waiter.send(b"BLPOP k 0\r\n")?;
            wait_until("it is unblocked", PATIENCE, || {
                Ok(other.ask(&format!("CLIENT UNBLOCK {id}{reason}"))? == ":1\r\n")
            })?;
            assert_eq!(String::from_utf8_lossy(&waiter.reply()?), expected);
            assert_eq!(other.ask("RPUSH k v")?, ":1\r\n", "no client waits for it");
            assert_eq!(other.ask("LPOP k")?, "$1\r\nv\r\n");
        }
        assert!(other.ask(&format!("CLIENT UNBLOCK {id} WHY"))?.starts_with("-ERR CLIENT UNBLOCK reason"));
        assert!(other.ask("CLIENT LIST")?.contains("flags=b"), "the first still waits");
    }
    Ok(())
}

/// Poppers that are cancelled at random: some close their side and read on, some just vanish while nothing is pushed.
#[test]
fn cancelled_poppers_lose_nothing() -> io::Result<()> {
    const ITEMS: usize = 20_000;
    let server = RedisServer::start()?;
    let proxy = Arc::new(proxy(&[server.tcp()], &["--blocking-connections-max", "32"])?);
    let got = Arc::new(Mutex::new(Vec::new()));
    let is_over = Arc::new(AtomicUsize::new(0));
    let poppers: Vec<_> = (0..200u64)
        .map(|number| {
            let (proxy, got, is_over) = (Arc::clone(&proxy), Arc::clone(&got), Arc::clone(&is_over));
            std::thread::spawn(move || -> io::Result<()> {
                let mut rng = Rng::new(number + 1);
                let mut own = Vec::new();
                while is_over.load(Ordering::Relaxed) == 0 {
                    let mut client = proxy.client()?;
                    for _ in 0..rng.below(40) {
                        client.send(b"BLPOP items 0.2\r\n")?;
                        own.extend(element(&client.reply()?));
                    }
                    // Cancelled while it waits: whatever is said afterwards has been taken for it.
                    client.send(b"BLPOP items 0\r\n")?;
                    client.finish_sending()?;
                    own.extend(element(&client.read_to_close()?));
                }
                got.lock().unwrap().extend(own);
                Ok(())
            })
        })
        .collect();
    let mut pusher = proxy.client()?;
    for from in (0..ITEMS).step_by(20) {
        let items: Vec<String> = (from..from + 20).map(|n| n.to_string()).collect();
        let words: Vec<&str> = ["RPUSH", "items"].into_iter().chain(items.iter().map(String::as_str)).collect();
        assert!(pusher.command(&words)?.starts_with(b":"));
    }
    let mut direct = server.client()?;
    wait_until("most items are taken", PATIENCE, || Ok(direct.ask("LLEN items")? == ":0\r\n"))?;
    is_over.store(1, Ordering::Relaxed);
    for popper in poppers {
        popper.join().expect("no popper sees anything wrong")?;
    }
    let mut all = std::mem::take(&mut *got.lock().unwrap());
    let left = direct.command(&["LRANGE", "items", "0", "-1"])?;
    all.extend(elements(&left).iter().filter_map(|e| text(e)));
    all.sort_unstable();
    let expected: Vec<usize> = (0..ITEMS).collect();
    assert_eq!(all.len(), ITEMS, "lost or doubled; {} put back", proxy.client()?.figure("proxy", "elements_put_back")?);
    assert_eq!(all, expected);
    Ok(())
}

/// The element of a reply to BLPOP.
fn element(reply: &[u8]) -> Option<usize> {
    if !reply.starts_with(b"*2\r\n") {
        return None;
    }
    elements(reply).get(1).and_then(|e| text(e))
}

fn text(bulk: &[u8]) -> Option<usize> {
    std::str::from_utf8(bulk).ok()?.split("\r\n").nth(1)?.parse().ok()
}

/// The test pushes after every disconnect was noticed. A blocking pop that is read after the push takes the element even if its
/// client has disconnected, by redis-server as well.
#[test]
fn a_client_that_vanishes_takes_nothing_with_it() -> io::Result<()> {
    const LEAVERS: u64 = 6;
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--blocking-connections-max", "4", "--health-interval", "off"])?;
    let mut watcher = proxy.client()?;
    for round in 0..40 {
        let accepted = watcher.figure("proxy", "clients_accepted")?;
        let mut leavers = (0..LEAVERS).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
        for client in &mut leavers {
            client.send(b"BLPOP k 0\r\n")?;
        }
        if round % 2 == 0 {
            blocked(&server, 4)?;
        }
        drop(leavers);
        wait_until("all have come and left", PATIENCE, || {
            let has_come = watcher.figure("proxy", "clients_accepted")? == accepted + LEAVERS;
            Ok(has_come && watcher.figure("proxy", "clients")? == 1)
        })?;
        blocked(&server, 0)?;
        assert_eq!(watcher.figure("proxy", "blocked_clients")?, 0);
        assert_eq!(watcher.ask("RPUSH k v")?, ":1\r\n");
        assert_eq!(watcher.ask("BLPOP k 0")?, "*2\r\n$1\r\nk\r\n$1\r\nv\r\n");
    }
    assert!(watcher.figure("proxy", "dials")? < 40, "connections that were let go are used again");
    Ok(())
}

#[test]
fn a_node_that_dies_tells_those_who_wait_for_it() -> io::Result<()> {
    let mut server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--blocking-connections-max", "2"])?;
    let mut clients = (0..4).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut clients {
        client.send(b"BLPOP k 0\r\n")?;
    }
    wait_until("all wait", PATIENCE, || Ok(proxy.client()?.figure("proxy", "blocked_clients")? == 4))?;
    server.kill()?;
    for client in &mut clients {
        assert_error(&client.reply()?, "the node is gone");
    }
    server.restart()?;
    super::wait_for_reply(&mut clients[0], &["RPUSH", "k", "v"], b":1\r\n")?;
    super::wait_for_reply(&mut clients[0], &["BLPOP", "k", "0"], b"*2\r\n$1\r\nk\r\n$1\r\nv\r\n")?;
    Ok(())
}

#[test]
fn wait_counts_the_replicas_that_have_what_the_client_wrote() -> io::Result<()> {
    let primary = RedisServer::start()?;
    let port = primary.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port])?;
    let proxy = proxy(&[primary.tcp()], &[])?;
    let mut client = proxy.client()?;
    wait_until("the replica is there", PATIENCE, || {
        client.ask("SET k v")?;
        Ok(client.ask("WAIT 1 500")? == ":1\r\n")
    })?;
    // A replica that does not answer has not got what is written now, though it is connected.
    replica.pause()?;
    client.send(b"SET k w\r\nWAIT 1 200\r\nPING\r\n")?;
    assert_eq!(client.replies(3)?, [&b"+OK\r\n"[..], b":0\r\n", b"+PONG\r\n"]);
    let mut other = proxy.client()?;
    other.send(b"SET k x\r\nWAIT 1 0\r\n")?;
    assert_eq!(other.reply()?, b"+OK\r\n");
    assert_eq!(client.ask("GET k")?, "$1\r\nx\r\n", "no other client waits");
    replica.resume()?;
    assert_eq!(other.reply()?, b":1\r\n");
    Ok(())
}

#[test]
fn keys_to_wait_for_are_on_one_node_and_wait_asks_all() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let [a, b] = [0, 1].map(|node| four.keys[node].as_str());
    assert!(client.command(&["BLPOP", a, b, "0"])?.starts_with(b"-CROSSSLOT"));
    assert_eq!(client.ask("WAIT 0 0")?, ":0\r\n");
    client.command(&["DEL", a])?;
    client.send_command(&["BLPOP", a, "0"])?;
    blocked(&four.servers[0], 1)?;
    four.proxy.client()?.command(&["RPUSH", a, "v"])?;
    assert_eq!(client.reply()?, pair(a, "v"));
    Ok(())
}

/// All connections to wait on are taken, and the node does not take MULTI, in which nothing would wait.
#[test]
fn a_blocked_request_without_multi_holds_up_no_other() -> io::Result<()> {
    let server = without_multi()?;
    let arguments = [&AS_PROXY[..], &["--blocking-connections-max", "1"]].concat();
    let proxy = proxy(&[server.tcp()], &arguments)?;
    let (mut first, mut second, mut other) = (proxy.client()?, proxy.client()?, proxy.client()?);
    first.send_command(&["BLPOP", "q1", "0"])?;
    blocked(&server, 1)?;
    second.send_command(&["BLPOP", "q2", "0"])?;
    wait_until("it is tried", PATIENCE, || Ok(server.client()?.ask("INFO errorstats")?.contains("errorstat_NOPERM")))?;
    assert_eq!(other.ask("SET k v")?, "+OK\r\n");
    blocked(&server, 1)?;
    other.ask("RPUSH q1 a")?;
    assert_eq!(first.reply()?, pair("q1", "a"));
    blocked(&server, 1)?;
    other.ask("RPUSH q2 b")?;
    assert_eq!(second.reply()?, pair("q2", "b"));
    Ok(())
}
