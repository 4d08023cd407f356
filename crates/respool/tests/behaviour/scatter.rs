//! Commands with keys on several nodes: split where that keeps the meaning, refused where it does not.

use std::io;

use respool_testkit::{Act, FakeBackend, RedisServer};

use super::{Four, assert_error, bulk, proxy, value_of};

#[test]
fn mget_keeps_order_and_duplicates() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let [a, b, c, d] = [0, 1, 2, 3].map(|node| four.keys[node].as_str());
    let reply = client.command(&["MGET", d, a, "missing", b, a, c, d, "missing", a])?;
    let [a, b, c, d] = [a, b, c, d].map(|key| bulk(&value_of(key)));
    let nil = b"$-1\r\n".to_vec();
    let expected = [b"*9\r\n".to_vec(), d.clone(), a.clone(), nil.clone(), b, a.clone(), c, d, nil, a].concat();
    assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string());
    Ok(())
}

#[test]
fn counts_are_added_up() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let keys: Vec<&str> = four.keys.iter().map(String::as_str).collect();
    let with = |name: &'static str, more: &[&'static str]| [&[name], &keys[..], more].concat();
    assert_eq!(client.command(&with("EXISTS", &["missing"]))?, b":4\r\n");
    assert_eq!(client.command(&["EXISTS", keys[0], keys[1], keys[0]])?, b":3\r\n");
    assert_eq!(client.command(&with("TOUCH", &[]))?, b":4\r\n");
    assert_eq!(client.ask("DBSIZE")?, ":4\r\n");
    assert_eq!(client.command(&["DEL", keys[0], keys[3], "missing"])?, b":2\r\n");
    assert_eq!(client.command(&with("UNLINK", &[]))?, b":2\r\n");
    assert_eq!(client.ask("DBSIZE")?, ":0\r\n");
    Ok(())
}

#[test]
fn mset_reaches_every_node_and_flushall_empties_them() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let [a, b, c, d] = [0, 1, 2, 3].map(|node| four.keys[node].as_str());
    assert_eq!(client.command(&["MSET", a, "1", b, "2", c, "3", d, "4", a, "5"])?, b"+OK\r\n");
    for (server, (key, value)) in four.servers.iter().zip([(a, "5"), (b, "2"), (c, "3"), (d, "4")]) {
        assert_eq!(server.client()?.command(&["GET", key])?, bulk(value), "the last of two values of a key stays");
    }
    assert_eq!(client.ask("FLUSHALL")?, "+OK\r\n");
    for server in &four.servers {
        assert_eq!(server.client()?.ask("DBSIZE")?, ":0\r\n");
    }
    Ok(())
}

#[test]
fn wrong_numbers_of_arguments_are_refused_before_sending() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let [a, b] = [0, 1].map(|node| four.keys[node].as_str());
    let error = |name: &str| format!("-ERR wrong number of arguments for '{name}' command\r\n").into_bytes();
    assert_eq!(client.command(&["MSET", a, "x", b])?, error("mset"));
    assert_eq!(client.command(&["MGET"])?, error("mget"));
    assert_eq!(client.command(&["DEL"])?, error("del"));
    assert_eq!(client.command(&["GET", a])?, bulk(&value_of(a)));
    Ok(())
}

#[test]
fn keys_that_must_share_a_node_and_do_not_are_named() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let [a, b, c] = [0, 1, 2].map(|node| four.keys[node].as_str());
    let refused: [&[&str]; 5] = [
        &["RENAME", a, b],
        &["MSETNX", a, "1", b, "2"],
        &["SINTERSTORE", a, a, b],
        &["LMOVE", a, b, "LEFT", "RIGHT"],
        &["ZUNIONSTORE", a, "2", b, c],
    ];
    for arguments in refused {
        let reply = client.command(arguments)?;
        assert_error(&reply, arguments[0]);
        let text = String::from_utf8_lossy(&reply).into_owned();
        assert!(text.starts_with("-CROSSSLOT "), "{arguments:?}: {text}");
        let named = [a, b, c].iter().filter(|key| text.contains(**key)).count();
        assert!(named >= 2, "{arguments:?} names the two keys: {text}");
    }
    assert_eq!(client.command(&["GET", a])?, bulk(&value_of(a)), "the connection goes on");
    assert_eq!(client.ask("MSETNX {tag}1 a {tag}2 b")?, ":1\r\n");
    assert_eq!(client.ask("RENAME {tag}1 {tag}3")?, "+OK\r\n");
    Ok(())
}

/// Per node one command with its keys in order, and none where one node has all keys.
#[test]
fn nodes_get_one_command_each() -> io::Result<()> {
    let nodes = [(); 4].map(|()| FakeBackend::start(|_| Act::Usual).expect("a node starts"));
    let proxy = proxy(&nodes.each_ref().map(FakeBackend::address), &[])?;
    let mut client = proxy.client()?;
    let keys: Vec<String> = (0..20).map(|number| format!("key{number}")).collect();
    let mut arguments = vec!["MGET"];
    arguments.extend(keys.iter().map(String::as_str));
    let expected: Vec<u8> = keys.iter().flat_map(|key| bulk(&value_of(key))).collect();
    assert_eq!(client.command(&arguments)?, [b"*20\r\n".as_slice(), &expected].concat());
    let mut seen = 0;
    for node in &nodes {
        let received = node.received();
        assert_eq!(received.len(), 1, "{received:?}");
        let own: Vec<&[u8]> = received[0].arguments[1..].iter().map(Vec::as_slice).collect();
        let in_order: Vec<&[u8]> = keys.iter().map(String::as_bytes).filter(|key| own.contains(key)).collect();
        assert_eq!(own, in_order);
        seen += own.len();
    }
    assert_eq!(seen, keys.len());

    let tagged = ["MGET", "{t}1", "{t}2", "{t}3"];
    client.command(&tagged)?;
    let last: Vec<_> = nodes.iter().filter_map(|node| node.received().get(1).cloned()).collect();
    assert_eq!(last.len(), 1, "one node got it");
    assert_eq!(last[0].arguments, tagged.map(|word| word.as_bytes().to_vec()), "untouched");
    Ok(())
}

#[test]
fn an_error_of_one_node_is_the_reply_to_the_whole() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let mut direct = four.servers[1].client()?;
    direct.ask("CONFIG SET maxmemory 1")?;
    let keys = &four.keys;
    let reply = client.command(&["MSET", &keys[0], "1", &keys[1], "2"])?;
    assert!(reply.starts_with(b"-OOM"), "{}", reply.escape_ascii());
    assert_eq!(client.command(&["GET", &keys[3]])?, bulk(&value_of(&keys[3])));
    Ok(())
}

#[test]
fn keyless_commands_go_to_the_default_node() -> io::Result<()> {
    let servers = [RedisServer::start()?, RedisServer::start()?];
    let proxy = proxy(&servers.each_ref().map(RedisServer::tcp), &[])?;
    let mut client = proxy.client()?;
    let reply = client.ask("LOLWUT")?;
    assert!(reply.contains("Redis ver."), "{reply}");
    let calls = |server: &RedisServer| server.client()?.ask("INFO commandstats");
    assert!(calls(&servers[0])?.contains("cmdstat_lolwut"));
    assert!(!calls(&servers[1])?.contains("cmdstat_lolwut"));
    Ok(())
}
