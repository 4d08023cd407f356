//! A client's own state: database, protocol, name. Kept by Respool, never left on a shared connection.

use std::io;

use respool_testkit::{Act, Client, FakeBackend, PATIENCE, RedisServer, wait_until};

use super::{assert_error, proxy};

#[test]
fn a_selected_database_belongs_to_its_session() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let (mut one, mut other) = (proxy.client()?, proxy.client()?);
    one.ask("SET k zero")?;
    assert_eq!(one.ask("SELECT 9")?, "+OK\r\n");
    for round in 0..200 {
        assert_eq!(one.ask(&format!("SET k nine{round}"))?, "+OK\r\n");
        assert_eq!(other.ask("GET k")?, "$4\r\nzero\r\n");
    }
    assert_eq!(other.ask("SELECT 99")?, "-ERR DB index is out of range\r\n");
    assert_eq!(other.ask("SELECT x")?, "-ERR value is not an integer or out of range\r\n");
    assert_eq!(other.ask("GET k")?, "$4\r\nzero\r\n", "a failed SELECT changes nothing");
    assert_eq!(one.ask("RESET")?, "+RESET\r\n");
    assert_eq!(one.ask("GET k")?, "$4\r\nzero\r\n");
    let mut direct = server.client()?;
    direct.ask("SELECT 9")?;
    assert_eq!(direct.ask("GET k")?, "$7\r\nnine199\r\n");
    Ok(())
}

/// The first of two nodes is gone. Databases are the sessions' own; nothing ends up in another than was asked for.
#[test]
fn a_node_that_is_down_does_not_keep_clients_from_selecting() -> io::Result<()> {
    let (mut first, second) = (RedisServer::start()?, RedisServer::start()?);
    let proxy = proxy(&[first.tcp(), second.tcp()], &[])?;
    let mut old = proxy.client()?;
    let mut key = None;
    for number in 0..100 {
        let name = format!("k{number}");
        old.command(&["SET", &name, "zero"])?;
        if second.client()?.command(&["EXISTS", &name])? == b":1\r\n" {
            key = Some(name);
            break;
        }
    }
    let key = key.expect("a hundred keys reach both nodes");
    first.kill()?;
    let mut client = proxy.client()?;
    for database in ["5", "5", "3", "7"] {
        assert_eq!(client.ask(&format!("SELECT {database}"))?, "+OK\r\n");
    }
    // As libraries connect: SELECT and what follows in one write.
    let mut other = proxy.client()?;
    other.send(format!("SELECT 9\r\nSET {key} nine\r\nSELECT 99\r\nGET {key}\r\n").as_bytes())?;
    let replies: Vec<u8> = other.replies(4)?.concat();
    let expected = "+OK\r\n+OK\r\n-ERR DB index is out of range\r\n$4\r\nnine\r\n";
    assert_eq!(String::from_utf8_lossy(&replies), expected);
    let mut direct = second.client()?;
    assert_eq!(direct.ask(&format!("GET {key}"))?, "$4\r\nzero\r\n", "number 0 is as it was");
    direct.ask("SELECT 9")?;
    assert_eq!(direct.ask(&format!("GET {key}"))?, "$4\r\nnine\r\n");
    Ok(())
}

#[test]
fn each_client_speaks_its_own_protocol() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let (mut two, mut three) = (proxy.client()?, proxy.client()?);
    let hello = three.ask("HELLO 3")?;
    assert!(hello.starts_with('%') && hello.contains("proto"), "{hello}");
    two.ask("HSET h f v")?;
    for _ in 0..50 {
        assert_eq!(three.ask("HGETALL h")?, "%1\r\n$1\r\nf\r\n$1\r\nv\r\n");
        assert_eq!(two.ask("HGETALL h")?, "*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
        assert_eq!(three.ask("GET missing")?, "_\r\n");
        assert_eq!(two.ask("GET missing")?, "$-1\r\n");
    }
    assert!(three.ask("HELLO 2")?.starts_with('*'));
    assert_eq!(three.ask("GET missing")?, "$-1\r\n");
    assert!(two.ask("HELLO 4")?.starts_with("-NOPROTO"));
    Ok(())
}

#[test]
fn clients_have_names_and_numbers_and_can_be_killed() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let (mut one, mut other) = (proxy.client()?, proxy.client()?);
    assert_eq!(one.ask("CLIENT SETNAME ann")?, "+OK\r\n");
    assert_eq!(one.ask("CLIENT GETNAME")?, "$3\r\nann\r\n");
    assert_eq!(other.ask("CLIENT GETNAME")?, "$-1\r\n");
    let number = |client: &mut Client| -> io::Result<String> {
        Ok(client.ask("CLIENT ID")?.trim_start_matches(':').trim_end().to_owned())
    };
    let (first, second) = (number(&mut one)?, number(&mut other)?);
    assert_ne!(first, second);
    let list = other.ask("CLIENT LIST")?;
    assert!(list.contains(&format!("id={first} ")) && list.contains("name=ann"), "{list}");
    assert_eq!(other.ask(&format!("CLIENT KILL ID {first}"))?, ":1\r\n");
    assert!(one.read_to_close()?.is_empty());
    assert_eq!(other.ask("PING")?, "+PONG\r\n");
    assert!(!server.client()?.ask("CLIENT LIST")?.contains("name=ann"), "the name stays with the session");
    Ok(())
}

#[test]
fn replies_can_be_switched_off() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    client.send(b"CLIENT REPLY OFF\r\nSET a 1\r\nPING\r\nCLIENT REPLY ON\r\nGET a\r\n")?;
    assert_eq!(client.replies(2)?, [&b"+OK\r\n"[..], b"$1\r\n1\r\n"]);
    client.send(b"CLIENT REPLY SKIP\r\nSET a 2\r\nGET a\r\n")?;
    assert_eq!(client.reply()?, b"$1\r\n2\r\n");
    Ok(())
}

/// What would change a shared connection's state for all is refused, and no node ever sees it.
#[test]
fn what_changes_a_connection_never_reaches_a_node() -> io::Result<()> {
    let node = FakeBackend::start(|_| Act::Usual)?;
    let proxy = proxy(&[node.address()], &[])?;
    let mut client = proxy.client()?;
    let refused =
        ["EXEC", "MONITOR", "READONLY", "ASKING", "SYNC", "PSYNC ? -1", "REPLCONF listening-port 1", "SHUTDOWN"];
    for words in refused {
        let reply = client.ask(words)?;
        assert_error(reply.as_bytes(), words);
    }
    assert_eq!(client.ask("GET k")?, "$10\r\nvalue-of-k\r\n");
    let received: Vec<String> = node.received().iter().map(|request| request.command()).collect();
    assert_eq!(received, ["GET"]);
    Ok(())
}

#[test]
fn clients_are_disconnected_by_how_long_they_are_there() -> io::Result<()> {
    let proxy = proxy(&[], &[])?;
    let (mut old, mut client) = (proxy.client()?, proxy.client()?);
    old.ask("PING")?;
    assert_eq!(client.ask("CLIENT KILL MAXAGE 0")?, "-ERR maxage should be greater than 0\r\n");
    assert_eq!(client.ask("CLIENT KILL MAXAGE x")?, "-ERR maxage is not an integer or out of range\r\n");
    for seconds in [1_000_000, i64::MAX] {
        assert_eq!(client.ask(&format!("CLIENT KILL MAXAGE {seconds} SKIPME no"))?, ":0\r\n");
    }
    wait_until("the other client is a second old", PATIENCE, || {
        Ok(client.ask("CLIENT KILL MAXAGE 1 SKIPME yes")? == ":1\r\n")
    })?;
    assert!(old.ask("PING").is_err());
    assert_eq!(client.ask("PING")?, "+PONG\r\n");
    Ok(())
}
