//! Connections that serve one client for good: MONITOR, and what replicas ask for.

use std::io;

use respool_testkit::{Address, Client, PATIENCE, RedisServer, Respool, proc_stats, wait_until};

use super::{Four, proxy};

fn server() -> io::Result<RedisServer> {
    RedisServer::start_with(&["--repl-diskless-sync-delay", "0", "--repl-timeout", "20"])
}

fn allowing(nodes: &[Address]) -> io::Result<Respool> {
    proxy(nodes, &["--admin-commands", "allow"])
}

fn ask(address: &Address, words: &str) -> io::Result<String> {
    Client::connect(address)?.ask(words)
}

/// What comes up to the next line break.
fn line(client: &mut Client) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&client.reply()?).trim_end().to_owned())
}

/// The answer to what a client asks that is shown lines as well, by the proxy's own PINGs for instance.
fn answer(monitor: &mut Client, words: &str) -> io::Result<String> {
    monitor.send(format!("{words}\r\n").as_bytes())?;
    loop {
        let said = line(monitor)?;
        if !said.starts_with("+1") {
            return Ok(said);
        }
    }
}

/// How many connections of a kind a server has.
fn connections(server: &RedisServer, kind: &str) -> io::Result<usize> {
    let list = ask(&server.tcp(), &format!("CLIENT LIST TYPE {kind}"))?;
    Ok(list.lines().filter(|line| line.contains("addr=")).count())
}

#[test]
fn a_real_replica_follows_its_node_through_the_proxy() -> io::Result<()> {
    let primary = server()?;
    let proxy = allowing(&[primary.tcp()])?;
    let mut client = proxy.client()?;
    for number in 0..500 {
        client.ask(&format!("SET before:{number} {number}"))?;
    }
    let Address::Tcp(address) = proxy.tcp() else { return Err(io::Error::other("the proxy listens on TCP")) };
    let port = address.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port])?;
    wait_until("the replica follows", PATIENCE, || {
        Ok(ask(&replica.tcp(), "INFO replication")?.contains("master_link_status:up"))
    })?;
    client.ask("SET after 1")?;
    wait_until("what is written afterwards arrives", PATIENCE, || {
        Ok(ask(&replica.tcp(), "GET after")? == "$1\r\n1\r\n")
    })?;
    assert_eq!(ask(&replica.tcp(), "DBSIZE")?, ":501\r\n");
    // Its acknowledgements reach the primary, or else this would run out of time.
    assert_eq!(ask(&primary.tcp(), "WAIT 1 10000")?, ":1\r\n");
    assert!(proxy.client()?.ask("PROXY SHOW PINS")?.contains("replica"));
    assert!(proxy.client()?.ask("CLIENT LIST TYPE replica")?.contains(" flags=S "));
    assert!(!proxy.client()?.ask("CLIENT LIST TYPE normal")?.contains(" flags=S "));
    // No other client notices, and nothing is left when it closes.
    assert_eq!(client.ask("GET before:499")?, "$3\r\n499\r\n");
    drop(replica);
    wait_until("its connection is closed", PATIENCE, || Ok(connections(&primary, "replica")? == 0))?;
    assert!(!proxy.client()?.ask("PROXY SHOW PINS")?.contains("replica"));
    Ok(())
}

#[test]
fn a_snapshot_and_the_stream_behind_it_pass_as_they_are() -> io::Result<()> {
    let primary = server()?;
    let proxy = allowing(&[primary.tcp()])?;
    let mut client = proxy.client()?;
    client.ask("SET a 1")?;
    let (mut stream, _) = proxy.client()?.into_parts();
    let mut read = {
        use std::io::{Read, Write};
        stream.write_all(b"SYNC\r\n")?;
        move |count: usize| -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; count];
            stream.read_exact(&mut bytes)?;
            Ok(bytes)
        }
    };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n") {
        head.extend(read(1)?);
    }
    let head = String::from_utf8_lossy(&head).trim().to_owned();
    let length = head.strip_prefix('$').and_then(|length| length.parse().ok());
    let snapshot = read(length.ok_or_else(|| io::Error::other(head))?)?;
    assert!(snapshot.starts_with(b"REDIS0"));
    client.ask("SET b 2")?;
    let stream = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n";
    let mut seen = read(14)?;
    if seen == b"*1\r\n$4\r\nPING\r\n" {
        seen.clear();
    }
    seen.extend(read(stream.len() - seen.len())?);
    assert_eq!(String::from_utf8_lossy(&seen), String::from_utf8_lossy(stream));
    Ok(())
}

#[test]
fn a_node_that_refuses_is_heard_and_the_client_goes_on() -> io::Result<()> {
    // A replica without its primary cannot be followed.
    let orphan = RedisServer::start_with(&["--replicaof", "127.0.0.1", "1"])?;
    let proxy = allowing(&[orphan.tcp()])?;
    let mut client = proxy.client()?;
    assert_eq!(client.ask("REPLCONF capa eof capa psync2")?, "+OK\r\n");
    assert_eq!(client.ask("REPLCONF nonsense")?, "-ERR syntax error\r\n");
    client.send(b"REPLCONF ACK 0\r\nPING\r\n")?;
    assert_eq!(client.reply()?, b"+PONG\r\n", "what only those say who follow is not answered");
    assert!(client.ask("PSYNC ? -1")?.starts_with("-NOMASTERLINK "));
    assert!(client.ask("SYNC")?.starts_with("-NOMASTERLINK "));
    assert_eq!(client.ask("GET k")?, "$-1\r\n");
    assert!(proxy.client()?.ask("PROXY SHOW PINS")?.contains("replconf"));
    assert_eq!(client.ask("RESET")?, "+RESET\r\n");
    assert!(!proxy.client()?.ask("PROXY SHOW PINS")?.contains("replconf"));
    Ok(())
}

#[test]
fn what_replicas_ask_for_needs_the_admin_plane() -> io::Result<()> {
    let node = RedisServer::start()?;
    let refusing = proxy(&[node.tcp()], &[])?;
    let mut client = refusing.client()?;
    for words in ["MONITOR", "SYNC", "PSYNC ? -1", "REPLCONF capa eof"] {
        assert!(client.ask(words)?.starts_with("-NOPERM "), "{words}");
    }
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    for words in ["MONITOR", "SYNC", "PSYNC ? -1", "REPLCONF capa eof"] {
        assert!(client.ask(words)?.starts_with("-NOPERM "), "{words}");
    }
    let four = Four::start(&["--admin-commands", "allow"])?;
    let mut client = four.proxy.client()?;
    assert!(client.ask("SCRIPT DEBUG YES")?.starts_with("-ERR SCRIPT DEBUG is not supported here"));
    Ok(())
}

#[test]
fn monitor_shows_what_all_nodes_are_asked_until_reset() -> io::Result<()> {
    let four = Four::start(&["--admin-commands", "allow"])?;
    let mut client = four.proxy.client()?;
    let mut monitor = four.proxy.client()?;
    client.ask("PING")?;
    assert_eq!(monitor.ask("MONITOR")?, "+OK\r\n");
    let mut expected: Vec<String> = four.keys.iter().map(|key| format!("\"get\" \"{key}\"")).collect();
    for key in &four.keys {
        client.ask(&format!("get {key}"))?;
    }
    while !expected.is_empty() {
        let line = line(&mut monitor)?;
        assert!(line.starts_with('+') && line.contains(" [0 "), "{line}");
        expected.retain(|seen| !line.ends_with(seen.as_str()));
    }
    // What we answer ourselves at other times is seen now, too.
    assert_eq!(client.ask("PING seen")?, "$4\r\nseen\r\n");
    for _ in &four.servers {
        while !line(&mut monitor)?.ends_with("\"PING\" \"seen\"") {}
    }
    // Unless a node would keep the client waiting.
    let mut operator = four.proxy.client()?;
    assert_eq!(operator.ask("PROXY PAUSE")?, "+OK\r\n");
    assert_eq!(client.ask("PING unseen")?, "$6\r\nunseen\r\n");
    assert_eq!(operator.ask("PROXY RESUME")?, "+OK\r\n");
    assert_eq!(client.ask("ECHO end")?, "$3\r\nend\r\n");
    loop {
        let line = line(&mut monitor)?;
        assert!(!line.contains("unseen"), "{line}");
        if line.ends_with("\"ECHO\" \"end\"") {
            break;
        }
    }
    let key = &four.keys[0];
    assert_eq!(answer(&mut monitor, &format!("GET {key}"))?, "-ERR Replica can't interact with the keyspace");
    assert_eq!(answer(&mut monitor, "EVAL x 0")?, "-ERR Replica can't interact with the keyspace");
    assert_eq!(answer(&mut monitor, "PING")?, "+PONG");
    // As in Redis there is no second answer, and no third.
    assert_eq!(answer(&mut monitor, "MONITOR\r\nSYNC\r\nRESET")?, "+RESET");
    assert!(monitor.ask(&format!("GET {key}"))?.starts_with('$'));
    assert_eq!(monitor.ask("MULTI")?, "+OK\r\n");
    assert_eq!(monitor.ask("MONITOR")?, "+QUEUED\r\n");
    assert_eq!(monitor.ask("EXEC")?, "*1\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n");
    for server in &four.servers {
        wait_until("no node shows anything any more", PATIENCE, || {
            Ok(!ask(&server.tcp(), "CLIENT LIST")?.contains(" flags=O "))
        })?;
    }
    Ok(())
}

#[test]
fn the_end_of_a_monitored_node_disconnects_its_monitors_alone() -> io::Result<()> {
    let mut four = Four::start(&["--admin-commands", "allow"])?;
    let mut client = four.proxy.client()?;
    let mut monitor = four.proxy.client()?;
    assert_eq!(monitor.ask("MONITOR")?, "+OK\r\n");
    assert!(four.proxy.client()?.ask("PROXY SHOW PINS")?.contains("monitor"));
    drop(four.servers.remove(0));
    monitor.read_to_close()?;
    assert!(client.ask(&format!("GET {}", four.keys[1]))?.starts_with('$'));
    let error = four.proxy.client()?.ask("MONITOR")?;
    assert!(error.starts_with("-ERR node ") && error.ends_with("the command was not sent\r\n"), "{error}");
    wait_until("the other nodes' connections are closed", PATIENCE, || {
        Ok(!ask(&four.servers[0].tcp(), "CLIENT LIST")?.contains(" flags=O "))
    })
}

#[test]
fn a_monitor_that_does_not_read_holds_no_more_than_its_budget() -> io::Result<()> {
    let node = RedisServer::start()?;
    let settings = ["--admin-commands", "allow", "--client-output-soft-bytes", "256kb"];
    let proxy = proxy(&[node.tcp()], &settings)?;
    let mut client = proxy.client()?;
    let mut monitor = proxy.client()?;
    assert_eq!(monitor.ask("MONITOR")?, "+OK\r\n");
    let value = "x".repeat(60_000);
    client.command(&["SET", "k", &value])?;
    let before = proc_stats::resident_bytes(proxy.pid())?;
    for _ in 0..300 {
        client.command(&["SET", "k", &value])?;
    }
    let held = proc_stats::resident_bytes(proxy.pid())?.saturating_sub(before);
    assert!(held < 8 << 20, "{held} bytes are held of 18 MB that are not read");
    // All of it is still there, whole and in order.
    let mut shown = 0;
    while shown <= 300 {
        let line = monitor.reply()?;
        shown += usize::from(line.windows(5).any(|word| word == b"\"SET\""));
    }
    Ok(())
}
