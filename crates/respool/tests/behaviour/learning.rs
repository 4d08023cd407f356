//! Commands that the table does not know: a redis-server that calls some of its own by other names.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use respool_testkit::{RedisServer, request};

use super::{addresses, bulk, proxy};

/// More than a client may have nodes asked for at once.
const NAMES: usize = 60;

/// A server on which commands have names that the table does not have.
fn server() -> io::Result<RedisServer> {
    RedisServer::start_with(&[
        "--rename-command",
        "GETDEL",
        "MY.GETDEL",
        "--rename-command",
        "MGET",
        "MY.MGET",
        "--rename-command",
        "SORT",
        "MY.SORT",
        "--rename-command",
        "BLPOP",
        "MY.BLPOP",
    ])
}

#[test]
fn a_command_that_only_the_node_knows_is_learnt() -> io::Result<()> {
    let server = server()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    client.ask("SET k v")?;
    assert_eq!(client.ask("my.getdel k")?, "$1\r\nv\r\n");
    assert_eq!(client.ask("MY.GETDEL k")?, "$-1\r\n");
    assert_eq!(client.ask("MY.GETDEL")?, "-ERR wrong number of arguments for 'my.getdel' command\r\n");
    // In a pipeline everything keeps its place, whichever clients ask for the same at the same time.
    let mut others = (0..5).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut others {
        let pipeline = [
            request(&["SET", "a", "1"]),
            request(&["MY.MGET", "a", "b"]),
            request(&["GET", "a"]),
            request(&["MY.NOTHING", "x"]),
            request(&["PING"]),
        ];
        client.send(&pipeline.concat())?;
    }
    for client in &mut others {
        assert_eq!(client.reply()?, b"+OK\r\n");
        assert_eq!(client.reply()?, b"*2\r\n$1\r\n1\r\n$-1\r\n");
        assert_eq!(client.reply()?, bulk("1"));
        assert_eq!(client.reply()?, b"-ERR unknown command 'MY.NOTHING', with args beginning with: 'x' \r\n");
        assert_eq!(client.reply()?, b"+PONG\r\n");
    }
    // In a transaction as well, and what may wait does not get to a shared connection.
    assert_eq!(client.ask("MULTI")?, "+OK\r\n");
    assert_eq!(client.ask("MY.GETDEL a")?, "+QUEUED\r\n");
    assert_eq!(client.ask("EXEC")?, "*1\r\n$1\r\n1\r\n");
    let waits = client.ask("MY.BLPOP l 0")?;
    assert!(waits.starts_with('-'), "{waits}");
    assert_eq!(proxy.client()?.ask("GET a")?, "$-1\r\n");
    Ok(())
}

#[test]
fn keys_of_learnt_commands_are_where_the_node_says() -> io::Result<()> {
    let servers = [server()?, server()?, server()?];
    let proxy = proxy(&addresses(&servers), &[])?;
    let mut client = proxy.client()?;
    for number in 0..50 {
        let (key, value) = (format!("key{number}"), format!("value{number}"));
        client.command(&["SET", &key, &value])?;
        assert_eq!(client.command(&["MY.GETDEL", &key])?, bulk(&value));
        assert_eq!(client.command(&["EXISTS", &key])?, b":0\r\n");
    }
    let apart = client.command(&["MY.MGET", "a", "b", "c", "d", "e"])?;
    assert!(apart.starts_with(b"-CROSSSLOT "), "{}", apart.escape_ascii());
    assert_eq!(client.command(&["MY.MGET", "{t}a", "{t}b"])?, b"*2\r\n$-1\r\n$-1\r\n");
    let hidden = client.command(&["MY.SORT", "l"])?;
    assert_eq!(hidden, b"-ERR 'my.sort' is not supported over several nodes\r\n");
    let told = client.ask("COMMAND INFO my.getdel my.nothing")?;
    assert!(told.starts_with("*2\r\n*10\r\n$9\r\nmy.getdel\r\n:2\r\n") && told.ends_with("$-1\r\n"), "{told}");
    assert!(client.ask("COMMAND LIST")?.contains("my.mget"));
    Ok(())
}

/// A client that makes names up cannot make nodes busy, and is told nothing that no node has said.
#[test]
fn unknown_names_are_asked_for_at_a_limited_rate() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    let mut texts = BTreeSet::new();
    let begun = Instant::now();
    for number in 0..NAMES {
        let reply = client.ask(&format!("NOSUCH{number}"))?;
        texts.insert(reply.replace(&format!("NOSUCH{number}"), "X"));
    }
    assert_eq!(texts.len(), 1, "{texts:?}");
    let stats = server.client()?.ask("INFO commandstats")?;
    let asked = stats.lines().find_map(|line| line.strip_prefix("cmdstat_command|info:calls=")).unwrap_or("0,");
    let asked: usize = asked.split(',').next().and_then(|count| count.parse().ok()).expect("a number");
    assert_eq!(asked, NAMES);
    // 32 at once, and 20 a second from then on.
    let waited = Duration::from_millis(50) * (NAMES as u32 - 33);
    assert!(begun.elapsed() >= waited, "{:?}", begun.elapsed());
    Ok(())
}
