//! Requests that `PROXY PAUSE` holds back, with redis-server as the node: replies during the pause, and clients in every
//! state.

use std::io;

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, wait_until};

/// A proxy with two workers, and an operator's connection to it.
fn operated(node: &RedisServer, arguments: &[&str]) -> io::Result<(Respool, Client)> {
    let all = [&["--workers", "2", "--admin-commands", "allow"], arguments].concat();
    let proxy = Respool::start(std::path::Path::new(env!("CARGO_BIN_EXE_respool")), &[node.tcp()], &all)?;
    let operator = client(&proxy)?;
    Ok((proxy, operator))
}

fn client(proxy: &Respool) -> io::Result<Client> {
    let client = proxy.client()?;
    client.set_timeout(PATIENCE)?;
    Ok(client)
}

#[test]
fn info_beside_a_node_that_hangs_tells_what_it_said_last() -> io::Result<()> {
    let node = RedisServer::start()?;
    // A worker without a connection keeps dialling.
    let (proxy, mut operator) = operated(&node, &["--connect-timeout", "30s"])?;
    let now = operator.ask("INFO")?;
    assert!(now.contains("redis_version:") && now.contains("# Keyspace") && !now.contains("Last_known"), "{now}");
    node.pause()?;
    // At each worker, and repeatedly.
    for _ in 0..8 {
        let mut other = client(&proxy)?;
        let told = other.ask("INFO")?;
        assert!(told.contains("redis_version:") && told.contains("# Last_known\r\nnode0:name="), "{told}");
        assert!(other.ask("INFO proxy")?.contains("workers:2\r\n"));
    }
    node.resume()?;
    wait_until("it is told of as it is", PATIENCE, || Ok(!operator.ask("INFO")?.contains("Last_known")))
}

#[test]
fn a_pause_finds_clients_in_every_state_and_loses_nothing() -> io::Result<()> {
    let node = RedisServer::start()?;
    let mut direct = node.client()?;
    let (proxy, mut operator) = operated(&node, &[])?;
    let [mut queueing, mut watching, mut waiting, mut listening, mut late] = [(); 5].map(|()| client(&proxy));
    let (queueing, watching, waiting) =
        (queueing.as_mut().unwrap(), watching.as_mut().unwrap(), waiting.as_mut().unwrap());
    let (listening, late) = (listening.as_mut().unwrap(), late.as_mut().unwrap());
    assert_eq!(queueing.ask("MULTI")?, "+OK\r\n");
    assert_eq!(queueing.ask("INCR counter")?, "+QUEUED\r\n");
    assert_eq!(watching.ask("WATCH watched")?, "+OK\r\n");
    waiting.send(b"BLPOP list 0\r\n")?;
    wait_until("it waits", PATIENCE, || Ok(operator.figure("clients", "blocked_clients")? == 1))?;
    assert!(listening.ask("SUBSCRIBE news")?.contains("subscribe"));
    assert_eq!(operator.ask("PROXY PAUSE WAIT")?, "+OK\r\n");
    queueing.send(b"EXEC\r\n")?;
    watching.send(b"MULTI\r\nSET watched 2\r\nEXEC\r\n")?;
    late.send(b"INCR counter\r\n")?;
    // The three held requests and the one that is blocked at the node.
    wait_until("they are held back", PATIENCE, || Ok(operator.figure("clients", "blocked_clients")? == 4))?;
    assert_eq!(direct.ask("GET counter")?, "$-1\r\n");
    // Messages and elements from other connections still reach clients, as during CLIENT PAUSE.
    assert_eq!(direct.ask("PUBLISH news x")?, ":1\r\n");
    assert!(String::from_utf8_lossy(&listening.reply()?).contains("message"));
    assert_eq!(direct.ask("RPUSH list element")?, ":1\r\n");
    assert_eq!(waiting.reply()?, b"*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n");
    assert_eq!(direct.ask("SET watched 1")?, "+OK\r\n");
    assert_eq!(operator.ask("PROXY RESUME")?, "+OK\r\n");
    assert_eq!(String::from_utf8_lossy(&watching.replies(3)?.concat()), "+OK\r\n+QUEUED\r\n*-1\r\n", "it has changed");
    let (exec, incr) = (queueing.reply()?, late.reply()?);
    assert!([(&b"*1\r\n:1\r\n"[..], &b":2\r\n"[..]), (b"*1\r\n:2\r\n", b":1\r\n")].contains(&(&exec[..], &incr[..])));
    assert_eq!(direct.ask("GET counter")?, "$1\r\n2\r\n");
    Ok(())
}

#[test]
fn what_is_held_longer_than_a_pause_may_hold_is_not_done() -> io::Result<()> {
    let node = RedisServer::start()?;
    let (proxy, mut operator) = operated(&node, &["--pause-timeout", "50ms"])?;
    assert_eq!(operator.ask("PROXY PAUSE")?, "+OK\r\n");
    let mut one = client(&proxy)?;
    let refused = one.ask("INCR counter")?;
    assert!(refused.starts_with("-ERR requests are paused") && refused.contains("was not sent"), "{refused}");
    assert_eq!(operator.ask("PROXY RESUME")?, "+OK\r\n");
    assert_eq!(one.ask("INCR counter")?, ":1\r\n");
    Ok(())
}

#[test]
fn clients_that_are_suspended_go_on_where_they_were() -> io::Result<()> {
    let node = RedisServer::start()?;
    let (proxy, mut operator) = operated(&node, &[])?;
    let mut clients: Vec<Client> = (0..20).map(|_| client(&proxy)).collect::<io::Result<_>>()?;
    for client in &mut clients {
        client.send(&b"INCR counter\r\n".repeat(100))?;
    }
    assert_eq!(operator.ask("PROXY SUSPEND")?, "+OK\r\n");
    let mut direct = node.client()?;
    let before = direct.ask("GET counter")?;
    for client in &mut clients {
        client.send(b"PING\r\n")?;
    }
    // Suspended clients that disconnect are not counted, although they are not read.
    clients.truncate(15);
    wait_until("five have left", PATIENCE, || Ok(operator.figure("clients", "connected_clients")? == 16))?;
    assert_eq!(direct.ask("GET counter")?, before);
    assert_eq!(operator.ask("PROXY RESUME")?, "+OK\r\n");
    for client in &mut clients {
        let replies = client.replies(101)?;
        assert!(replies[..100].iter().all(|reply| reply.starts_with(b":")) && replies[100] == b"+PONG\r\n");
    }
    Ok(())
}
