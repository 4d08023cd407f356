//! Clients that close their side with requests under way: what is answered, what runs, and what does not. Redis is asked the
//! same.

use std::io;

use respool_testkit::{Client, PATIENCE, RedisServer, wait_until};

use super::{Four, proxy};

/// Pipelines that wait at some point for what never comes.
const WAITING: &[&str] = &[
    "BLPOP l 0",
    "BLPOP l 0|SET ran yes",
    "BLPOP l 5|ECHO after|SET ran yes",
    "BRPOP l 0|SET ran yes",
    "BLMOVE l to LEFT LEFT 0|SET ran yes",
    "BRPOPLPUSH l to 0|SET ran yes",
    "BLMPOP 0 1 l LEFT|SET ran yes",
    "BZPOPMIN z 0|SET ran yes",
    "BZPOPMAX z 0|SET ran yes",
    "BZMPOP 0 1 z MIN|SET ran yes",
    "XREAD BLOCK 0 STREAMS s $|SET ran yes",
    "XREAD BLOCK 0 STREAMS s 0|SET ran yes",
    "XREADGROUP GROUP g me BLOCK 0 STREAMS stream >|SET ran yes",
    "SET a 1|WAIT 1 0|SET ran yes",
    "SET a 1|WAIT 1 5000|ECHO after|SET ran yes",
    "ECHO before|SET a 1|BLPOP l 0|ECHO after|SET ran yes",
    "BLPOP l 0|BLPOP l 0|BLPOP l 0|SET ran yes",
    "RPUSH l x|BLPOP l 0|BLPOP l 0|SET ran yes",
    "BLPOP l 0|MULTI|SET ran yes|EXEC",
    "BLPOP l 0|WATCH a|MULTI|SET ran yes|EXEC",
    "MULTI|SET a 1|EXEC|BLPOP l 0|SET ran yes",
    "CLIENT REPLY OFF|SET a 1|BLPOP l 0|SET ran yes",
    "CLIENT REPLY SKIP|BLPOP l 0|ECHO after|SET ran yes",
    "CLIENT REPLY SKIP|SET a 1|BLPOP l 0|SET ran yes",
    "CLIENT REPLY SKIP|WAIT 1 0|SET ran yes",
    "HELLO 3|BLPOP l 0|SET ran yes",
    "SELECT 1|BLPOP l 0|SET ran yes",
];

/// Pipelines that have no need to wait, although they might.
const SERVED: &[&str] = &[
    "RPUSH l x y|BLPOP l 0|SET ran yes|ECHO after",
    "RPUSH l x y|BRPOP l 0|BLMOVE l to LEFT LEFT 0|SET ran yes",
    "ZADD z 1 m|BZPOPMIN z 0|SET ran yes",
    "RPUSH l x|BLPOP l 0|MULTI|SET ran yes|EXEC",
    "CLIENT REPLY OFF|RPUSH l x|BLPOP l 0|SET ran yes",
    "SET l text|BLPOP l 0|SET ran yes",
    "BLPOP l x|SET ran yes",
    "WAIT 0 0|SET ran yes",
    "XADD s 1-1 f v|XREAD BLOCK 0 STREAMS s 0|SET ran yes",
    "MULTI|BLPOP l 0|SET ran yes|EXEC",
];

fn bytes_of(pipeline: &str) -> Vec<u8> {
    format!("{}\r\n", pipeline.replace('|', "\r\n")).into_bytes()
}

/// What a server has now, and is empty afterwards.
fn take_state(client: &mut Client) -> io::Result<String> {
    let mut state = String::new();
    for question in ["EXISTS ran", "LRANGE l 0 -1", "LRANGE to 0 -1", "ZRANGE z 0 -1", "EXISTS a s"] {
        state += &client.ask(question)?;
    }
    for database in ["1", "0"] {
        client.ask(&format!("SELECT {database}"))?;
        state += &client.ask("DBSIZE")?;
        client.ask("FLUSHDB")?;
    }
    Ok(state)
}

/// Sends a pipeline and the end behind it, at once or when it waits. Gives all that is answered, and what it leaves behind.
fn half_close(
    connect: &dyn Fn() -> io::Result<Client>,
    pipeline: &str,
    is_at_once: bool,
) -> io::Result<(String, String)> {
    let mut other = connect()?;
    if pipeline.contains("stream") {
        other.ask("XGROUP CREATE stream g $ MKSTREAM")?;
    }
    let mut client = connect()?;
    client.send(&bytes_of(pipeline))?;
    if !is_at_once {
        wait_until(pipeline, PATIENCE, || Ok(other.ask("CLIENT LIST")?.contains("flags=b")))?;
    }
    client.finish_sending()?;
    let heard = client.read_to_close()?;
    wait_until("nothing waits", PATIENCE, || Ok(!other.ask("CLIENT LIST")?.contains("flags=b")))?;
    let heard = String::from_utf8_lossy(&heard).into_owned();
    // The greeting is each server's own.
    let greeting_ends = heard.find("modules\r\n*0\r\n").filter(|_| pipeline.starts_with("HELLO"));
    let heard = heard[greeting_ends.unwrap_or(0)..].to_owned();
    Ok((heard, take_state(&mut other)?))
}

fn compare(name: &str, connect: &dyn Fn() -> io::Result<Client>, redis: &RedisServer) -> io::Result<()> {
    for (pipelines, is_waiting) in [(WAITING, true), (SERVED, false)] {
        for pipeline in pipelines {
            for is_at_once in [true, false] {
                if !is_at_once && !is_waiting {
                    continue;
                }
                let expected = half_close(&|| redis.client(), pipeline, is_at_once)?;
                let found = half_close(connect, pipeline, is_at_once)?;
                assert_eq!(found, expected, "{name}: {}, at once: {is_at_once}", pipeline);
            }
        }
    }
    Ok(())
}

#[test]
fn what_stands_behind_a_blocked_request_is_not_run() -> io::Result<()> {
    let redis = RedisServer::start()?;
    for mode in ["multiplex", "transaction", "session"] {
        let node = RedisServer::start()?;
        let proxy = proxy(&[node.tcp()], &["--pool-mode", mode])?;
        compare(mode, &|| proxy.client(), &redis)?;
    }
    Ok(())
}

#[test]
fn an_embedded_server_runs_nothing_behind_one_either() -> io::Result<()> {
    let redis = RedisServer::start()?;
    let (alone, behind) = (proxy(&[], &[])?, proxy(&[], &["--node", "embedded:"])?);
    compare("embedded", &|| alone.client(), &redis)?;
    compare("embedded", &|| behind.client(), &redis)
}

#[test]
fn where_no_connection_is_free_it_is_the_same() -> io::Result<()> {
    let (redis, node) = (RedisServer::start()?, RedisServer::start()?);
    let proxy = proxy(&[node.tcp()], &["--blocking-connections-max", "1"])?;
    let mut other = proxy.client()?;
    other.send(b"BLPOP nothing 0\r\n")?;
    wait_until("it waits", PATIENCE, || Ok(proxy.client()?.ask("CLIENT LIST")?.contains("flags=b")))?;
    for pipeline in ["BLPOP l 0|SET ran yes", "RPUSH l x|BLPOP l 0|SET ran yes", "SET l text|BLPOP l 0|SET ran yes"] {
        let run = |connect: &dyn Fn() -> io::Result<Client>| -> io::Result<(Vec<u8>, String)> {
            let mut client = connect()?;
            client.send(&bytes_of(pipeline))?;
            client.finish_sending()?;
            Ok((client.read_to_close()?, take_state(&mut connect()?)?))
        };
        assert_eq!(run(&|| proxy.client())?, run(&|| redis.client())?, "{pipeline}");
    }
    Ok(())
}

#[test]
fn one_of_several_nodes_that_would_wait_is_enough() -> io::Result<()> {
    let four = Four::start(&[])?;
    for skip in ["", "CLIENT REPLY SKIP\r\n"] {
        let mut client = four.proxy.client()?;
        client.send(format!("ECHO before\r\n{skip}WAIT 1 0\r\nSET ran yes\r\n").as_bytes())?;
        client.finish_sending()?;
        assert_eq!(client.read_to_close()?, super::bulk("before"));
        assert_eq!(four.proxy.client()?.ask("EXISTS ran")?, ":0\r\n");
    }
    Ok(())
}

/// A program that dies takes its connection with it: nothing of what it had sent behind runs, and nothing is taken for it.
#[test]
fn a_client_that_dies_while_it_waits_leaves_all_as_it_was() -> io::Result<()> {
    let node = RedisServer::start()?;
    let (tcp, alone) = (proxy(&[node.tcp()], &[])?, proxy(&[], &[])?);
    for server in [&tcp, &alone] {
        let mut other = server.client()?;
        for is_reset in [false, true] {
            let mut client = server.client()?;
            // What is unread when a socket is closed resets the connection.
            client.send(if is_reset {
                b"ECHO unread\r\nBLPOP l 0\r\nSET ran yes\r\n"
            } else {
                b"BLPOP l 0\r\nSET ran yes\r\n"
            })?;
            wait_until("it waits", PATIENCE, || Ok(other.ask("CLIENT LIST")?.contains("flags=b")))?;
            drop(client);
            wait_until("it has gone", PATIENCE, || Ok(!other.ask("CLIENT LIST")?.contains("flags=b")))?;
            assert_eq!(other.ask("RPUSH l x")?, ":1\r\n");
            assert_eq!(other.ask("EXISTS ran")?, ":0\r\n");
            assert_eq!(other.ask("LPOP l")?, "$1\r\nx\r\n");
        }
        let mut client = server.client()?;
        let id = client.ask("CLIENT ID")?;
        client.send(b"BLPOP l 0\r\nSET ran yes\r\n")?;
        wait_until("it waits", PATIENCE, || Ok(other.ask("CLIENT LIST")?.contains("flags=b")))?;
        assert_eq!(other.ask(&format!("CLIENT KILL ID {}", id.trim_start_matches(':').trim_end()))?, ":1\r\n");
        assert_eq!(other.ask("EXISTS ran")?, ":0\r\n");
    }
    Ok(())
}

/// The end of a client is seen behind all that it has sent, and costs it no reply that it has earned.
#[test]
fn the_end_is_seen_behind_much_that_waits() -> io::Result<()> {
    let node = RedisServer::start()?;
    for server in [proxy(&[node.tcp()], &[])?, proxy(&[], &[])?] {
        let mut other = server.client()?;
        let before = "SET before 1\r\n".repeat(1_000);
        let behind = format!("SET ran {}\r\n", "x".repeat(1_000)).repeat(3_000);
        for is_served in [false, true] {
            let mut client = server.client()?;
            client.send(format!("{before}BLPOP l 0\r\n{behind}").as_bytes())?;
            wait_until("it waits", PATIENCE, || Ok(other.ask("CLIENT LIST")?.contains("flags=b")))?;
            if is_served {
                // What has been read ahead is done in its turn.
                other.ask("RPUSH l x")?;
                let heard = client.replies(4_001)?;
                assert_eq!(heard[1_000], b"*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
                assert!(heard.iter().enumerate().all(|(at, reply)| at == 1_000 || reply == b"+OK\r\n"));
            } else {
                client.finish_sending()?;
                let heard = client.read_to_close()?;
                assert_eq!(heard, b"+OK\r\n".repeat(1_000));
            }
            assert_eq!(other.ask("EXISTS ran")?, format!(":{}\r\n", u8::from(is_served)));
        }
    }
    Ok(())
}

#[test]
fn requests_that_are_held_back_go_with_their_client() -> io::Result<()> {
    let node = RedisServer::start()?;
    for server in [proxy(&[node.tcp()], &[])?, proxy(&[], &[])?] {
        let mut other = server.client()?;
        for is_at_once in [true, false] {
            other.ask("CLIENT PAUSE 100000 WRITE")?;
            let mut client = server.client()?;
            client.send(b"ECHO before\r\nSET ran yes\r\nECHO after\r\n")?;
            if !is_at_once {
                assert_eq!(client.reply()?, super::bulk("before"));
            }
            client.finish_sending()?;
            let expected = if is_at_once { super::bulk("before") } else { Vec::new() };
            assert_eq!(client.read_to_close()?, expected);
            other.ask("CLIENT UNPAUSE")?;
            assert_eq!(other.ask("EXISTS ran")?, ":0\r\n");
            assert_eq!(server.client()?.figure("proxy", "blocked_clients")?, 0);
        }
    }
    Ok(())
}
