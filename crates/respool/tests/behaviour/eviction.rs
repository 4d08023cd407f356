//! Keys that an embedded server evicts to make room, as clients see it.

use std::io;
use std::time::{Duration, Instant};

use respool_testkit::{Client, PATIENCE, RedisServer, wait_until};

use super::proxy;

/// Sets keys of 100 KB until as many have been evicted; every request is taken.
fn fill(client: &mut Client, evicted: u64) -> io::Result<()> {
    let mut number = 0;
    while client.figure("stats", "evicted_keys")? < evicted {
        assert!(number < 1_000, "keys are evicted");
        assert_eq!(client.ask(&format!("SET key:{number} {}", "x".repeat(100_000)))?, "+OK\r\n");
        number += 1;
    }
    Ok(())
}

#[test]
fn keys_that_make_room_have_changed_for_clients() -> io::Result<()> {
    let server = proxy(&[], &["--maxmemory", "4mb", "--maxmemory-policy", "volatile-ttl"])?;
    let (mut tracker, mut watcher, mut other) = (server.client()?, server.client()?, server.client()?);
    let value = "x".repeat(200_000);
    assert_eq!(other.ask(&format!("SET soon {value} EX 1000"))?, "+OK\r\n");
    assert!(tracker.ask("HELLO 3")?.starts_with('%'));
    // The key is none of the client's changes, though its own request makes room.
    assert_eq!(tracker.ask("CLIENT TRACKING ON NOLOOP")?, "+OK\r\n");
    assert_eq!(tracker.ask("GET soon")?, format!("$200000\r\n{value}\r\n"));
    assert_eq!(watcher.ask("WATCH soon")?, "+OK\r\n");
    let mut told = None;
    for number in 0..100 {
        let reply = tracker.ask(&format!("SET key:{number} {}", "x".repeat(100_000)))?;
        if reply.starts_with('>') {
            told = Some(reply);
            break;
        }
        assert_eq!(reply, "+OK\r\n");
        tracker.send_command(&["PING"])?;
        let reply = tracker.reply()?;
        if reply.starts_with(b">") {
            told = Some(String::from_utf8_lossy(&reply).into_owned());
            break;
        }
    }
    assert_eq!(told.as_deref(), Some(">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\nsoon\r\n"));
    assert_eq!(watcher.ask("MULTI")?, "+OK\r\n");
    assert_eq!(watcher.ask("GET key:0")?, "+QUEUED\r\n");
    assert_eq!(watcher.ask("EXEC")?, "*-1\r\n");
    assert_eq!(other.ask("GET soon")?, "$-1\r\n");
    assert_eq!(other.figure("stats", "evicted_keys")?, 1);
    Ok(())
}

#[test]
fn a_transaction_runs_whole_or_is_refused_for_want_of_room() -> io::Result<()> {
    const COMMANDS: usize = 2_000;
    let server = proxy(&[], &["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"])?;
    let mut client = server.client()?;
    fill(&mut client, 3)?;
    assert_eq!(client.ask("MULTI")?, "+OK\r\n");
    let value = "x".repeat(1_000);
    for number in 0..COMMANDS {
        assert_eq!(client.ask(&format!("SET block:{number} {value}"))?, "+QUEUED\r\n");
    }
    let reply = client.ask("EXEC")?;
    assert_eq!(reply, format!("*{COMMANDS}\r\n{}", "+OK\r\n".repeat(COMMANDS)));

    let server = proxy(&[], &["--maxmemory", "1mb"])?;
    let mut client = server.client()?;
    assert_eq!(client.ask("MULTI")?, "+OK\r\n");
    assert_eq!(client.ask("SET a 1")?, "+QUEUED\r\n");
    let (mut other, mut frugal) = (server.client()?, server.client()?);
    assert_eq!(frugal.ask("MULTI")?, "+OK\r\n");
    assert_eq!(frugal.ask("DEL large")?, "+QUEUED\r\n");
    assert_eq!(other.ask(&format!("SET large {}", "x".repeat(1_100_000)))?, "+OK\r\n");
    assert_eq!(
        client.ask("EXEC")?,
        "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.\r\n"
    );
    assert_eq!(client.ask("EXISTS a")?, ":0\r\n");
    // One that adds nothing runs.
    assert_eq!(frugal.ask("EXEC")?, "*1\r\n:1\r\n");
    assert_eq!(client.ask("SET a 1")?, "+OK\r\n");
    Ok(())
}

#[test]
fn a_full_server_queues_nothing_for_a_transaction() -> io::Result<()> {
    const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let server = proxy(&[], &["--maxmemory", "1mb"])?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    assert_eq!(client.ask("MULTI")?, "+OK\r\n");
    assert_eq!(client.ask("SET a 1")?, "+QUEUED\r\n");
    assert_eq!(other.ask(&format!("SET large {}", "x".repeat(1_100_000)))?, "+OK\r\n");
    // What queues takes memory, whatever it is.
    for request in ["SET b 2", "GET a", "PING", "EVAL return(1) 0"] {
        assert_eq!(client.ask(request)?, OOM, "{request}");
    }
    assert_eq!(other.ask("DEL large")?, ":1\r\n");
    assert_eq!(client.ask("SET c 3")?, "+QUEUED\r\n");
    assert_eq!(client.ask("EXEC")?, "-EXECABORT Transaction discarded because of previous errors.\r\n");
    assert_eq!(client.ask("EXISTS a b c")?, ":0\r\n");
    // The ways out of a transaction are open, and a command that is wrong there is told so first.
    assert_eq!(other.ask(&format!("SET large {}", "x".repeat(1_100_000)))?, "+OK\r\n");
    for request in ["MULTI", "DISCARD", "MULTI"] {
        assert_eq!(client.ask(request)?, "+OK\r\n");
    }
    assert_eq!(client.ask("SHUTDOWN")?, "-ERR Command not allowed inside a transaction\r\n");
    assert_eq!(client.ask("UNWATCH")?, "+QUEUED\r\n");
    assert_eq!(client.ask("PING")?, OOM);
    assert_eq!(client.ask("RESET")?, "+RESET\r\n");
    Ok(())
}

#[test]
fn a_script_in_a_transaction_goes_by_the_room_at_its_beginning() -> io::Result<()> {
    let server = proxy(&[], &["--maxmemory", "1mb"])?;
    let mut client = server.client()?;
    let queue = |client: &mut Client, script: &str| -> io::Result<()> {
        for request in ["MULTI", &format!("SET large {}", "x".repeat(1_100_000)), script] {
            assert!(!client.ask(request)?.starts_with('-'), "{script}");
        }
        Ok(())
    };
    queue(&mut client, "EVAL redis.call('SET',KEYS[1],'1') 1 key")?;
    assert_eq!(client.ask("EXEC")?, "*2\r\n+OK\r\n$-1\r\n");
    assert_eq!(client.ask("GET key")?, "$1\r\n1\r\n");

    let server = proxy(&[], &["--maxmemory", "1mb", "--maxmemory-policy", "allkeys-lru"])?;
    let mut client = server.client()?;
    assert_eq!(client.ask("SET first 1")?, "+OK\r\n");
    queue(&mut client, "EVAL return(redis.call('DBSIZE')) 0")?;
    assert_eq!(client.ask("EXEC")?, "*2\r\n+OK\r\n:2\r\n", "nothing goes between two requests of a transaction");
    Ok(())
}

#[test]
fn keys_beyond_a_new_limit_go_without_another_request() -> io::Result<()> {
    let redis = RedisServer::start()?;
    let engines = |count| proxy(&[], &["--engine-threads", count]);
    let (one, four) = (engines("1")?, engines("4")?);
    for mut client in [redis.client()?, one.client()?, four.client()?] {
        for number in 0..40 {
            assert_eq!(client.ask(&format!("SET key:{number} v"))?, "+OK\r\n");
        }
        assert_eq!(client.ask("CONFIG SET maxmemory-policy allkeys-lru maxmemory 1")?, "+OK\r\n");
        assert_eq!(client.ask("DBSIZE")?, ":0\r\n");
        assert_eq!(client.figure("stats", "evicted_keys")?, 40);
    }
    // More of them than go at once: the rest goes by itself.
    let mut client = one.client()?;
    assert_eq!(client.ask("CONFIG SET maxmemory 0")?, "+OK\r\n");
    for number in 0..20_000 {
        client.send(format!("SET key:{number} v\r\n").as_bytes())?;
    }
    client.replies(20_000)?;
    assert_eq!(client.ask("CONFIG SET maxmemory 1")?, "+OK\r\n");
    wait_until("all keys have gone", PATIENCE, || Ok(client.figure("stats", "evicted_keys")? == 20_040))
}

#[test]
fn no_key_goes_while_clients_pause() -> io::Result<()> {
    let (redis, server) = (RedisServer::start()?, proxy(&[], &[])?);
    let mut clients = [redis.client()?, server.client()?];
    for client in &mut clients {
        assert_eq!(client.ask("SET key v")?, "+OK\r\n");
        assert_eq!(client.ask("CLIENT PAUSE 100000 WRITE")?, "+OK\r\n");
        assert_eq!(client.ask("CONFIG SET maxmemory-policy allkeys-lru maxmemory 1")?, "+OK\r\n");
    }
    // Longer than the engine ever goes without a look at the time.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_200) {
        for client in &mut clients {
            assert_eq!(client.ask("DBSIZE")?, ":1\r\n");
        }
    }
    for mut client in clients {
        // None of these waits for the pause.
        for request in
            ["MULTI", "GET key", "EXEC", "EVAL_RO return(1) 0", "CONFIG RESETSTAT", "CONFIG GET maxmemory", "DBSIZE"]
        {
            client.send(format!("{request}\r\n").as_bytes())?;
        }
        let replies = client.replies(7)?;
        let expected: [&[u8]; 4] = [b"+OK\r\n", b"+QUEUED\r\n", b"*1\r\n$1\r\nv\r\n", b":1\r\n"];
        assert_eq!(replies[..4], expected);
        assert_eq!(replies[6], b":1\r\n");
        assert_eq!(client.ask("CLIENT UNPAUSE")?, "+OK\r\n");
        wait_until("it goes then", PATIENCE, || Ok(client.ask("DBSIZE")? == ":0\r\n"))?;
    }
    Ok(())
}

#[test]
fn no_key_expires_while_clients_pause() -> io::Result<()> {
    let (redis, server) = (RedisServer::start()?, proxy(&[], &[])?);
    for mut client in [redis.client()?, server.client()?] {
        for request in ["MULTI", "SET a 1 PX 10", "SET b 1 PX 10", "CLIENT PAUSE 100000 WRITE", "EXEC"] {
            client.send(format!("{request}\r\n").as_bytes())?;
        }
        client.replies(5)?;
        wait_until("their time has come", PATIENCE, || Ok(client.ask("MGET a b")? == "*2\r\n$-1\r\n$-1\r\n"))?;
        // Longer than the engine ever goes without a look at the time.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1_200) {
            assert_eq!(client.ask("DBSIZE")?, ":2\r\n");
        }
        assert_eq!(client.figure("stats", "expired_keys")?, 0);
        assert_eq!(client.ask("CLIENT UNPAUSE")?, "+OK\r\n");
        assert_eq!(client.ask("EXISTS a b")?, ":0\r\n");
        assert_eq!(client.figure("stats", "expired_keys")?, 2);
    }
    Ok(())
}

#[test]
fn a_limit_that_is_not_taken_makes_no_key_go() -> io::Result<()> {
    let (redis, server) = (RedisServer::start()?, proxy(&[], &[])?);
    for mut client in [redis.client()?, server.client()?] {
        assert_eq!(client.ask("SET key v")?, "+OK\r\n");
        assert_eq!(client.ask("CONFIG SET maxmemory-policy allkeys-lru")?, "+OK\r\n");
        assert!(client.ask("CONFIG SET maxmemory 1 dir /nonexistent")?.starts_with("-ERR CONFIG SET failed"));
        assert_eq!(client.ask("DBSIZE")?, ":1\r\n");
    }
    Ok(())
}

#[test]
fn a_limit_that_is_set_in_a_transaction_cuts_it_nowhere() -> io::Result<()> {
    let server = proxy(&[], &["--maxmemory-policy", "allkeys-lru"])?;
    let mut client = server.client()?;
    for request in ["MULTI", "SET a 1", "CONFIG SET maxmemory 1", "GET a", "EXEC"] {
        client.send(format!("{request}\r\n").as_bytes())?;
    }
    assert_eq!(client.replies(5)?[4], b"*3\r\n+OK\r\n+OK\r\n$1\r\n1\r\n");
    wait_until("it goes behind the transaction", PATIENCE, || Ok(client.ask("DBSIZE")? == ":0\r\n"))
}

#[test]
fn a_limit_below_all_memory_evicts_as_redis_does() -> io::Result<()> {
    for (policy, left) in [("allkeys-lru", 0), ("volatile-ttl", 20), ("noeviction", 40)] {
        let (redis, server) = (RedisServer::start()?, proxy(&[], &[])?);
        for mut client in [redis.client()?, server.client()?] {
            for number in 0..20 {
                assert_eq!(client.ask(&format!("SET volatile:{number} v EX 1000"))?, "+OK\r\n");
                assert_eq!(client.ask(&format!("SET lasting:{number} v"))?, "+OK\r\n");
            }
            assert_eq!(client.ask(&format!("CONFIG SET maxmemory-policy {policy} maxmemory 1"))?, "+OK\r\n");
            for request in ["SET a b", "EVAL return(redis.call('SET',KEYS[1],'b')) 1 a"] {
                assert!(client.ask(request)?.contains("OOM "), "{policy}: {request}");
            }
            assert_eq!(client.ask("DBSIZE")?, format!(":{left}\r\n"), "{policy}");
            assert_eq!(client.figure("stats", "evicted_keys")?, 40 - left, "{policy}");
        }
    }
    Ok(())
}
