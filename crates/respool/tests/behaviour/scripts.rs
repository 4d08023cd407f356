//! Scripts through a pool: nodes that forget them, nodes that are busy with them.

use std::io;
use std::time::{Duration, Instant};

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, request, wait_until};

use super::{addresses, proxy, redis_servers};

const HASH: &str = "d3c21d0c2b9ca22f82737626a27bcaf5d288f99f";

#[test]
fn a_script_that_a_node_forgot_is_brought_back() -> io::Result<()> {
    let servers = redis_servers(4)?;
    let proxy = proxy(&addresses(&servers), &[])?;
    let mut client = proxy.client()?;
    let hash = client.command(&["SCRIPT", "LOAD", "return redis.call('incr',KEYS[1])"])?;
    let hash = String::from_utf8_lossy(&hash).lines().nth(1).expect("a hash").to_owned();
    for number in 0..20 {
        for server in &servers {
            server.client()?.ask("SCRIPT FLUSH")?;
        }
        let key = format!("key{number}");
        assert_eq!(client.command(&["EVALSHA", &hash, "1", &key])?, b":1\r\n");
        assert_eq!(client.command(&["EVALSHA", &hash.to_uppercase(), "1", &key])?, b":2\r\n");
    }
    // What EVAL brought is remembered as well, and read-only runs of it are healed as such.
    client.command(&["EVAL", "return redis.call('get',KEYS[1])", "1", "key0"])?;
    let of_get = "fd758d1589d044dd850a6f05d52f2eefd27f033f";
    for server in &servers {
        server.client()?.ask("SCRIPT FLUSH")?;
    }
    assert_eq!(client.command(&["EVALSHA_RO", of_get, "1", "key0"])?, b"$1\r\n2\r\n");
    // A script that was never loaded stays unknown, and a flush through the proxy is one.
    let unknown = b"-NOSCRIPT No matching script. Please use EVAL.\r\n";
    assert_eq!(client.command(&["EVALSHA", HASH, "1", "key0"])?, unknown);
    // But not one that is refused, or was queued and not executed.
    for words in ["SCRIPT FLUSH NOW", "SCRIPT FLUSH SYNC SYNC", "MULTI", "SCRIPT FLUSH", "DISCARD"] {
        client.ask(words)?;
    }
    for server in &servers {
        server.client()?.ask("SCRIPT FLUSH")?;
    }
    assert!(client.command(&["EVALSHA", &hash, "1", "key0"])?.starts_with(b":"));
    client.ask("SCRIPT FLUSH")?;
    assert_eq!(client.command(&["EVALSHA", &hash, "1", "key0"])?, unknown);
    // In a transaction as well all nodes forget.
    client.command(&["SCRIPT", "LOAD", "return redis.call('incr',KEYS[1])"])?;
    for words in ["MULTI", "SET key0 1", "SCRIPT FLUSH"] {
        client.ask(words)?;
    }
    assert_eq!(client.ask("EXEC")?, "*2\r\n+OK\r\n+OK\r\n");
    for number in 0..20 {
        assert_eq!(client.command(&["EVALSHA", &hash, "1", &format!("key{number}")])?, unknown);
    }
    Ok(())
}

/// Behind a request that the node may have executed already nothing is executed that should have come before it.
#[test]
fn healing_never_changes_the_order_of_a_pipeline() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    let set = "return redis.call('set',KEYS[1],ARGV[1])";
    client.command(&["SCRIPT", "LOAD", set])?;
    let of_set = "c686f316aaf1eb01d5a4de1b0b63cd233010e63d";
    let mut healed = 0;
    for round in 0..50 {
        server.client()?.ask("SCRIPT FLUSH")?;
        let value = format!("value{round}");
        let pipeline = [request(&["EVALSHA", of_set, "1", "k", &value]), request(&["GET", "k"])].concat();
        client.command(&["SET", "k", "before"])?;
        client.send(&pipeline)?;
        let (ran, seen) = (client.reply()?, client.reply()?);
        if ran == b"+OK\r\n" {
            healed += 1;
            assert_eq!(seen, super::bulk(&value));
        } else {
            assert!(ran.starts_with(b"-NOSCRIPT"), "{}", ran.escape_ascii());
            assert_eq!(seen, super::bulk("before"));
            // The node has been given the script meanwhile.
            assert_eq!(client.command(&["EVALSHA", of_set, "1", "k", "again"])?, b"+OK\r\n");
        }
    }
    assert!(healed < 50, "a pipeline that is read at once is not healed");
    Ok(())
}

#[test]
fn an_endless_script_is_stopped_past_the_shared_connection() -> io::Result<()> {
    let servers = [
        RedisServer::start_with(&["--busy-reply-threshold", "50"])?,
        RedisServer::start_with(&["--busy-reply-threshold", "50"])?,
    ];
    let proxy = proxy(&addresses(&servers), &[])?;
    for command in ["SCRIPT", "FUNCTION"] {
        let mut idle = proxy.client()?;
        let idle_reply = idle.command(&[command, "KILL"])?;
        assert!(
            idle_reply.starts_with(b"-NOTBUSY No scripts in execution right now."),
            "{}",
            idle_reply.escape_ascii()
        );
        let library = "#!lua name=own\nredis.register_function('spin', function() while true do end end)";
        idle.command(&["FUNCTION", "LOAD", "REPLACE", library])?;
        let mut runner = proxy.client()?;
        match command {
            "SCRIPT" => runner.send_command(&["EVAL", "while true do end", "1", "k"])?,
            _ => runner.send_command(&["FCALL", "spin", "1", "k"])?,
        }
        let mut other = proxy.client()?;
        wait_until("the script is stopped", PATIENCE, || {
            let reply = other.command(&[command, "KILL"])?;
            Ok(reply == b"+OK\r\n")
        })?;
        let ended = runner.reply()?;
        assert!(ended.starts_with(b"-ERR "), "{}", ended.escape_ascii());
        assert_eq!(other.ask("SET k v")?, "+OK\r\n");
    }
    Ok(())
}

/// A server that says BUSY after 200 ms of a script, and a proxy in front of it.
struct Busy {
    _server: RedisServer,
    proxy: Respool,
    /// A client whose script does not end.
    runner: Client,
    /// One that waited for an element before that.
    waiting: Client,
}

fn busy(arguments: &[&str]) -> io::Result<Busy> {
    let server = RedisServer::start_with(&["--busy-reply-threshold", "200"])?;
    let proxy = proxy(&[server.tcp()], arguments)?;
    let mut runner = proxy.client()?;
    assert_eq!(runner.ask("SET k v")?, "+OK\r\n");
    let mut waiting = proxy.client()?;
    waiting.send_command(&["BLPOP", "queue", "0"])?;
    wait_until("it waits at the node", PATIENCE, || {
        Ok(server.client()?.ask("INFO clients")?.contains("blocked_clients:1"))
    })?;
    runner.send_command(&["EVAL", "while true do end", "1", "k"])?;
    wait_until("the node says that it is busy", PATIENCE, || Ok(server.client()?.ask("GET k")?.starts_with("-BUSY")))?;
    Ok(Busy { _server: server, proxy, runner, waiting })
}

#[test]
fn others_are_told_that_a_node_is_busy_with_a_script() -> io::Result<()> {
    let mut busy = busy(&[])?;
    let mut other = busy.proxy.client()?;
    // The script does not end by itself: each reply came beside it.
    for request in ["GET k", "SET k w", "EVAL return 0", "SCRIPT LOAD x", "FCALL f 0", "MGET k l"] {
        let words: Vec<&str> = match request {
            "EVAL return 0" => vec!["EVAL", "return 1", "0"],
            _ => request.split(' ').collect(),
        };
        let reply = other.command(&words)?;
        assert!(reply.starts_with(b"-BUSY Redis is busy running a script."), "{request}: {}", reply.escape_ascii());
    }
    other.send(b"MULTI\r\nGET k\r\nEXEC\r\n")?;
    let replies = [other.reply()?, other.reply()?, other.reply()?].concat();
    let expected = b"+OK\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: BUSY";
    assert!(replies.starts_with(expected), "{}", replies.escape_ascii());
    // That something was heard of the node a moment ago says nothing: it was just this.
    for _ in 0..3 {
        let reply = other.ask("PING")?;
        assert!(reply.starts_with("-BUSY"), "{reply}");
    }
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK\r\n");
    let ended = busy.runner.reply()?;
    assert!(ended.starts_with(b"-ERR Script killed by user"), "{}", ended.escape_ascii());
    assert_eq!(other.ask("GET k")?, "$1\r\nv\r\n");
    assert_eq!(busy.runner.ask("GET k")?, "$1\r\nv\r\n");
    assert_eq!(other.command(&["EVAL", "return 1", "0"])?, b":1\r\n");
    Ok(())
}

/// However long it runs: its connection is silent, and others speak for the node.
#[test]
fn a_script_that_runs_long_takes_no_node_out_of_use() -> io::Result<()> {
    let mut busy = busy(&["--request-timeout", "1500ms", "--node-silence-timeout", "2s"])?;
    let mut other = busy.proxy.client()?;
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        let reply = other.ask("GET k")?;
        assert!(reply.starts_with("-BUSY"), "{reply}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = String::from_utf8_lossy(&busy.runner.reply()?).into_owned();
    assert!(ended.contains("did not answer within 1500 ms"), "{ended}");
    assert_eq!(other.ask("SCRIPT KILL")?, "+OK\r\n");
    // It ends at its next look at whether it may go on.
    wait_until("the script has ended", PATIENCE, || Ok(other.ask("GET k")? == "$1\r\nv\r\n"))?;
    assert_eq!(other.command(&["RPUSH", "queue", "one"])?, b":1\r\n");
    assert_eq!(busy.waiting.reply()?, b"*2\r\n$5\r\nqueue\r\n$3\r\none\r\n", "it has waited on");
    Ok(())
}
