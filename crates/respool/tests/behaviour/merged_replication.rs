//! Replicas and tools that follow all nodes through the proxy as if they were one server.

use std::io::{self, Read, Write};

use respool_testkit::{Address, Client, PATIENCE, RedisServer, Respool, wait_until};

use super::{addresses, proxy};

/// Three nodes, none of them without a key, and a proxy. Nodes fork for nothing but replicas, and say nothing into their streams
/// by the clock.
fn three() -> io::Result<(Vec<RedisServer>, Respool)> {
    let arguments = ["--enable-debug-command", "yes", "--repl-ping-replica-period", "3600"];
    let nodes = (0..3).map(|_| RedisServer::start_with(&arguments)).collect::<io::Result<Vec<_>>>()?;
    let proxy = proxy(&addresses(&nodes), &["--admin-commands", "allow"])?;
    Ok((nodes, proxy))
}

fn follower_of(proxy: &Respool) -> io::Result<RedisServer> {
    let Address::Tcp(address) = proxy.tcp() else { return Err(io::Error::other("the proxy listens on TCP")) };
    let port = address.port().to_string();
    RedisServer::start_with(&["--replicaof", "127.0.0.1", &port, "--enable-debug-command", "yes"])
}

fn ask(server: &RedisServer, words: &str) -> io::Result<String> {
    server.client()?.ask(words)
}

fn wait_for_link(replica: &RedisServer, state: &str) -> io::Result<()> {
    let line = format!("master_link_status:{state}");
    wait_until(&format!("the replica's link is {state}"), PATIENCE, || {
        Ok(ask(replica, "INFO replication")?.contains(&line))
    })
}

/// The digest of all keys. For one database it is made of its keys' digests by exclusive or, so that those of three nodes
/// make the digest of a server with all their keys.
fn digest(servers: &[&RedisServer]) -> io::Result<Vec<u8>> {
    let mut sum = vec![0; 20];
    for server in servers {
        let text = ask(server, "DEBUG DIGEST")?;
        let digits = text.trim().trim_start_matches('+');
        for (at, byte) in sum.iter_mut().enumerate() {
            *byte ^= u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(io::Error::other)?;
        }
    }
    Ok(sum)
}

fn wait_for_equality(nodes: &[RedisServer], replica: &RedisServer) -> io::Result<()> {
    let all: Vec<_> = nodes.iter().collect();
    wait_until("the replica has what the nodes have", PATIENCE, || Ok(digest(&all)? == digest(&[replica])?))
}

/// The proxy's name for the client that follows. Another one has synchronized anew.
fn follower_id(proxy: &Respool) -> io::Result<String> {
    let list = proxy.client()?.ask("CLIENT LIST TYPE replica")?;
    Ok(list.split_whitespace().find(|word| word.starts_with("id=")).unwrap_or_default().to_owned())
}

/// Writes of every kind, `round` of them different from those of other rounds.
fn write(client: &mut Client, round: usize) -> io::Result<()> {
    for number in 0..40 {
        let key = format!("{}", number % 17);
        client.ask(&format!("SET s:{key} {round}:{number}"))?;
        client.ask(&format!("RPUSH l:{key} {round}"))?;
        client.ask(&format!("HSET h:{key} f{number} {round}"))?;
        client.ask(&format!("EXPIRE h:{key} 10000"))?;
        client.ask(&format!("DEL s:{}", (number + 7) % 17))?;
        client.ask("MULTI")?;
        client.ask(&format!("INCR {{t{key}}}a"))?;
        client.ask(&format!("INCR {{t{key}}}b"))?;
        client.ask("EXEC")?;
    }
    client.command(&["SET", &format!("large:{}", round % 5), &"x".repeat(700_000 + round)])?;
    Ok(())
}

#[test]
fn a_replica_has_what_all_nodes_have_under_writes() -> io::Result<()> {
    let (nodes, proxy) = three()?;
    let mut client = proxy.client()?;
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert_eq!(client.command(&["FUNCTION", "LOAD", library])?, b"$3\r\nlib\r\n");
    for number in 0..300 {
        client.ask(&format!("SET before:{number} {number}"))?;
    }
    // Larger than what is held of a node, so that one snapshot has to wait for another.
    for number in 0..20 {
        client.command(&["SET", &format!("big:{number}"), &"y".repeat(400_000)])?;
    }
    let replica = follower_of(&proxy)?;
    let mut round = 0;
    while !ask(&replica, "INFO replication")?.contains("master_link_status:up") {
        round += 1;
        write(&mut client, round)?;
        assert!(round < 3_000, "the replica never has its snapshot");
    }
    let id = follower_id(&proxy)?;
    for round in round..round + 5 {
        write(&mut client, round)?;
    }
    wait_for_equality(&nodes, &replica)?;
    assert!(ask(&replica, "FUNCTION LIST")?.contains("lib"));
    // What concerns all nodes is done once, and what they have been given behind it is kept.
    assert_eq!(client.ask("FUNCTION DELETE lib")?, "+OK\r\n");
    assert_eq!(client.ask("FLUSHALL")?, "+OK\r\n");
    write(&mut client, 0)?;
    wait_for_equality(&nodes, &replica)?;
    assert_eq!(ask(&replica, "FUNCTION LIST")?, "*0\r\n");
    // Another database of the same nodes.
    let mut other = proxy.client()?;
    assert_eq!(other.ask("SELECT 3")?, "+OK\r\n");
    for number in 0..20 {
        other.ask(&format!("SET k{number} 3"))?;
        client.ask(&format!("SET k{number} 0"))?;
    }
    wait_until("both databases have all keys", PATIENCE, || {
        let keyspace = ask(&replica, "INFO keyspace")?;
        Ok(keyspace.contains("db3:keys=20,"))
    })?;
    let mut reader = replica.client()?;
    assert_eq!(reader.ask("SELECT 3")?, "+OK\r\n");
    assert!((0..20).all(|number| reader.ask(&format!("GET k{number}")).is_ok_and(|reply| reply == "$1\r\n3\r\n")));
    assert_eq!(follower_id(&proxy)?, id, "all of that on one connection");
    // Its acknowledgements are each node's.
    for node in &nodes {
        assert_eq!(ask(node, "WAIT 1 10000")?, ":1\r\n");
    }
    Ok(())
}

#[test]
fn a_replica_synchronizes_again_when_a_node_has_ended() -> io::Result<()> {
    let (mut nodes, proxy) = three()?;
    let mut client = proxy.client()?;
    write(&mut client, 1)?;
    let replica = follower_of(&proxy)?;
    wait_for_link(&replica, "up")?;
    wait_for_equality(&nodes, &replica)?;
    nodes[1].kill()?;
    wait_for_link(&replica, "down")?;
    let mut asker = proxy.client()?;
    assert!(asker.ask("SYNC")?.starts_with("-ERR node "));
    nodes[1].restart()?;
    wait_for_link(&replica, "up")?;
    let mut client = proxy.client()?;
    wait_until("the proxy uses the node again", PATIENCE, || {
        Ok(client.ask("MGET a b c d e f g h i")?.starts_with('*'))
    })?;
    write(&mut client, 2)?;
    wait_for_equality(&nodes, &replica)
}

/// The snapshot that a client is given, and the connection.
fn snapshot(client: Client, asking: &[u8]) -> io::Result<(Vec<u8>, impl Read + Write + use<>)> {
    let (mut stream, _) = client.into_parts();
    stream.write_all(asking)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).trim().to_owned();
    let length = head.strip_prefix('$').and_then(|length| length.parse().ok()).ok_or_else(|| io::Error::other(head))?;
    let mut snapshot = vec![0; length];
    stream.read_exact(&mut snapshot)?;
    Ok((snapshot, stream))
}

#[test]
fn empty_nodes_make_an_empty_snapshot_and_one_stream() -> io::Result<()> {
    let (_nodes, proxy) = three()?;
    let (snapshot, mut stream) = snapshot(proxy.client()?, b"SYNC\r\n")?;
    assert!(snapshot.starts_with(b"REDIS00") && snapshot.ends_with(b"\xff\0\0\0\0\0\0\0\0"));
    assert_eq!(snapshot.windows(10).filter(|word| word == b"redis-bits").count(), 1, "the fields of one node");
    let mut client = proxy.client()?;
    let mut expected = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n".to_vec();
    for key in ["a", "b", "c", "d", "e"] {
        client.ask(&format!("SET {key} 1"))?;
        expected.extend(format!("*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n$1\r\n1\r\n").into_bytes());
    }
    let mut seen = vec![0; expected.len()];
    stream.read_exact(&mut seen)?;
    // Which node's command comes first is a matter of arrival.
    let sorted = |bytes: &[u8]| {
        let mut all: Vec<_> = String::from_utf8_lossy(bytes).split('*').map(str::to_owned).collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&seen), sorted(&expected));
    assert!(seen.starts_with(b"*2\r\n$6\r\nSELECT\r\n"));
    Ok(())
}

#[test]
fn the_snapshot_alone_ends_with_the_connection() -> io::Result<()> {
    let (_nodes, proxy) = three()?;
    write(&mut proxy.client()?, 1)?;
    let mut client = proxy.client()?;
    assert_eq!(client.ask("REPLCONF capa eof rdb-only 1")?, "+OK\r\n");
    let (_, mut stream) = snapshot(client, b"SYNC\r\n")?;
    assert_eq!(stream.read_to_end(&mut Vec::new())?, 0);
    let mut client = proxy.client()?;
    assert_eq!(client.ask("REPLCONF nonsense 1")?, "-ERR Unrecognized REPLCONF option: nonsense\r\n");
    assert_eq!(client.ask("REPLCONF capa")?, "-ERR syntax error\r\n");
    assert!(
        client.ask("REPLCONF rdb-filter-only functions")?.starts_with("-ERR REPLCONF rdb-filter-only is not supported")
    );
    assert!(client.ask("GET a")?.starts_with('$'));
    Ok(())
}

#[test]
fn where_a_key_may_be_on_two_nodes_no_replica_follows_all() -> io::Result<()> {
    let nodes = [RedisServer::start()?, RedisServer::start()?];
    let proxy = proxy(&addresses(&nodes), &["--admin-commands", "allow", "--dead-node", "next"])?;
    let mut client = proxy.client()?;
    let error = client.ask("SYNC")?;
    assert!(error.starts_with("-ERR SYNC is not supported here: with dead_node = next"), "{error}");
    Ok(())
}
