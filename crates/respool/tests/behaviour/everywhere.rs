//! Commands about all keys or all nodes, with four nodes behind the proxy.

use std::collections::BTreeSet;
use std::io;

use respool_testkit::{Client, elements};

use super::{Four, assert_error};

fn text(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).into_owned()
}

/// The content of a bulk string.
fn content(reply: &[u8]) -> String {
    text(reply).split_once("\r\n").map_or(String::new(), |(_, rest)| rest.trim_end_matches("\r\n").to_owned())
}

/// Walks over everything; gives the keys that were seen and how many steps it took.
fn walk(client: &mut Client, options: &[&str]) -> io::Result<(Vec<String>, usize)> {
    let (mut cursor, mut seen, mut steps) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = client.command(&[&["SCAN", &cursor], options].concat())?;
        let parts = elements(&reply);
        assert_eq!(parts.len(), 2, "{}", text(&reply));
        cursor = content(parts[0]);
        assert!(cursor.parse::<u64>().is_ok_and(|cursor| cursor < 1 << 53), "{cursor}");
        seen.extend(elements(parts[1]).iter().map(|key| content(key)));
        steps += 1;
        assert!(steps < 100_000, "a walk ends");
        if cursor == "0" {
            return Ok((seen, steps));
        }
    }
}

#[test]
fn a_walk_sees_every_key_of_every_node() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    client.ask("FLUSHALL")?;
    let keys: BTreeSet<String> = (0..2_000).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        client.command(&["SET", key, "x"])?;
    }
    client.ask("SADD other:set a")?;
    let (seen, steps) = walk(&mut client, &["COUNT", "100"])?;
    assert!(steps >= 20, "{steps}");
    let all: BTreeSet<String> = seen.into_iter().filter(|key| key.starts_with("key:")).collect();
    assert_eq!(all, keys);
    let (sets, _) = walk(&mut client, &["TYPE", "set", "COUNT", "1000"])?;
    assert_eq!(sets, ["other:set"]);
    let (matched, _) = walk(&mut client, &["MATCH", "key:199?", "COUNT", "1000"])?;
    assert_eq!(matched.into_iter().collect::<BTreeSet<_>>().len(), 10);
    // The other protocol, and keys that come and go while the walk is under way: those that stay are seen.
    client.ask("HELLO 3")?;
    let mut writer = four.proxy.client()?;
    let (mut cursor, mut seen) = ("0".to_owned(), BTreeSet::new());
    for step in 0.. {
        let reply = client.command(&["SCAN", &cursor, "COUNT", "50"])?;
        let parts = elements(&reply);
        cursor = content(parts[0]);
        seen.extend(elements(parts[1]).iter().map(|key| content(key)));
        for number in 0..20 {
            writer.command(&["SET", &format!("late:{step}:{number}"), "x"])?;
        }
        if cursor == "0" {
            break;
        }
    }
    assert!(keys.is_subset(&seen));
    assert_eq!(client.ask("SCAN nonsense")?, "-ERR invalid cursor\r\n");
    assert_eq!(client.ask("SCAN 0 COUNT 0")?, "-ERR syntax error\r\n");
    assert_eq!(client.ask("SCAN 65535")?, "*2\r\n$1\r\n0\r\n*0\r\n", "behind the last node");
    Ok(())
}

#[test]
fn a_random_key_is_found_wherever_it_is() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let mut found = BTreeSet::new();
    for _ in 0..200 {
        found.insert(content(&client.command(&["RANDOMKEY"])?));
    }
    assert_eq!(found, four.keys.iter().cloned().collect(), "each node has one");
    client.ask("FLUSHALL")?;
    assert_eq!(client.ask("RANDOMKEY")?, "$-1\r\n");
    client.ask("SET alone 1")?;
    for _ in 0..20 {
        assert_eq!(client.ask("RANDOMKEY")?, "$5\r\nalone\r\n");
    }
    Ok(())
}

#[test]
fn figures_of_all_nodes_are_one_reply() -> io::Result<()> {
    let mut four = Four::start(&["--admin-commands", "allow"])?;
    let mut client = four.proxy.client()?;
    let info = client.ask("INFO")?;
    assert!(
        info.contains("# Proxy\r\n") && info.contains("# Keyspace\r\ndb0:keys=4,expires=0,avg_ttl=0\r\n"),
        "{info}"
    );
    assert!(client.ask("INFO keyspace")?.contains("db0:keys=4"));
    assert!(!client.ask("INFO server")?.contains("Keyspace"));
    for (request, start) in [
        ("MEMORY STATS", "*"),
        ("MEMORY DOCTOR", "$"),
        ("MEMORY MALLOC-STATS", "$"),
        ("MEMORY PURGE", "+OK"),
        ("LATENCY LATEST", "*0"),
        ("LATENCY HISTORY command", "*0"),
        ("LATENCY RESET", ":0"),
        ("LATENCY DOCTOR", "$"),
        ("LATENCY HISTOGRAM set", "*2"),
        ("FUNCTION STATS", "*4"),
        ("FUNCTION LOAD #!lua~name=own\nredis.register_function('f',function()return'x'end)", "$3"),
        ("FUNCTION DELETE own", "+OK"),
        ("SCRIPT LOAD return", "$40"),
        ("SCRIPT EXISTS 0123", "*1\r\n:0"),
        ("SCRIPT FLUSH", "+OK"),
        ("CONFIG SET slowlog-log-slower-than 0", "+OK"),
        ("SLOWLOG LEN", ":"),
        ("SLOWLOG GET 3", "*3"),
        ("SLOWLOG RESET", "+OK"),
        ("CONFIG RESETSTAT", "+OK"),
        ("CONFIG GET maxmemory", "*2"),
        ("SWAPDB 0 1", "+OK"),
        ("DBSIZE", ":0"),
        ("SWAPDB 0 1", "+OK"),
        ("DBSIZE", ":4"),
        ("LASTSAVE", ":"),
        ("FLUSHDB ASYNC", "+OK"),
        ("DBSIZE", ":0"),
    ] {
        let arguments: Vec<String> = request.split(' ').map(|word| word.replace('~', " ")).collect();
        let reply = text(&client.command(&arguments)?);
        assert!(reply.starts_with(start), "{request}: {reply}");
    }
    // The newest of all nodes, each with the name of its own.
    client.ask("SLOWLOG RESET")?;
    for key in &four.keys {
        client.command(&["GET", key])?;
    }
    let log = text(&client.command(&["SLOWLOG", "GET", "-1"])?);
    for server in &four.servers {
        assert!(log.contains(&format!("\r\nnode={}\r\n", server.tcp())), "{log}");
    }
    assert!(client.ask("SLOWLOG GET 2")?.starts_with("*2\r\n*6\r\n"));
    assert_eq!(client.ask("SLOWLOG GET nonsense")?.lines().next().map(|line| line.starts_with('-')), Some(true));
    // A node that is down does not keep the proxy from telling what it knows.
    four.servers[1].kill()?;
    let info = client.ask("INFO")?;
    assert!(info.starts_with('$') && info.contains("# Proxy\r\n") && info.contains("# Keyspace\r\n"), "{info}");
    Ok(())
}

#[test]
fn what_cannot_be_split_is_refused_and_nothing_of_it_is_done() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let (here, there) = (four.keys[0].as_str(), four.keys[1].as_str());
    client.command(&["DEL", here, there])?;
    client.command(&["SADD", here, "a"])?;
    client.command(&["SADD", there, "b"])?;
    let before = client.ask("DBSIZE")?;
    for request in [
        &["MSETNX", "fresh{a}", "1", "fresh{b}", "2", "fresh{c}", "3", "fresh{d}", "4"][..],
        &["SUNIONSTORE", here, here, there],
        &["SINTERSTORE", there, here, there],
        &["ZUNIONSTORE", here, "2", here, there],
        &["RENAME", here, there],
        &["COPY", here, there],
        &["SMOVE", here, there, "a"],
        &["LMOVE", here, there, "LEFT", "RIGHT"],
        &["SORT", here, "ALPHA", "STORE", there],
        &["BITOP", "OR", here, here, there],
        &["PFMERGE", here, there],
        &["GEOSEARCHSTORE", here, there, "FROMLONLAT", "1", "1", "BYRADIUS", "1", "km"],
        &["EVAL", "return redis.call('del',KEYS[1])", "2", here, there],
        &["XREAD", "STREAMS", here, there, "0", "0"],
        &["LMPOP", "2", here, there, "LEFT"],
    ] {
        let reply = client.command(request)?;
        assert!(text(&reply).starts_with("-CROSSSLOT "), "{request:?}: {}", text(&reply));
        assert_error(&reply, "a refusal");
    }
    assert_eq!(client.ask("DBSIZE")?, before);
    assert_eq!(client.command(&["SMEMBERS", here])?, b"*1\r\n$1\r\na\r\n");
    Ok(())
}

/// What servers do not tell of as keys, or as everywhere, is so all the same.
#[test]
fn scripts_and_settings_are_those_of_the_nodes_they_are_about() -> io::Result<()> {
    let four = Four::start(&["--admin-commands", "allow"])?;
    let mut client = four.proxy.client()?;
    // A script that one node has is brought to the others.
    client.command(&["EVAL", "return 41", "1", four.keys[0].as_str()])?;
    let hash = "1a0b2c3d4e5f60718293a4b5c6d7e8f901234567";
    let own = content(&client.command(&["SCRIPT", "LOAD", "return 42"])?);
    let begun = client.command(&["EVAL", "return redis.sha1hex('return 41')", "0"])?;
    let begun = content(&begun);
    assert_eq!(client.command(&["SCRIPT", "EXISTS", &begun])?, b"*1\r\n:1\r\n");
    for key in &four.keys {
        assert_eq!(client.command(&["EVALSHA", &begun, "1", key.as_str()])?, b":41\r\n", "as it was told");
    }
    assert_eq!(client.command(&["SCRIPT", "EXISTS", &own, &begun])?, b"*2\r\n:1\r\n:1\r\n");
    assert_eq!(client.command(&["SCRIPT", "EXISTS", hash])?, b"*1\r\n:0\r\n");
    // Each script is answered for itself.
    assert_eq!(client.command(&["SCRIPT", "EXISTS", hash, &own, hash, &begun])?, b"*4\r\n:0\r\n:1\r\n:0\r\n:1\r\n");
    client.command(&["EVAL", "this is no script", "0"])?;
    let none = content(&client.command(&["EVAL", "return redis.sha1hex('this is no script')", "0"])?);
    assert_eq!(client.command(&["SCRIPT", "EXISTS", &none])?, b"*1\r\n:0\r\n", "no node has it");
    client.command(&["SCRIPT", "FLUSH"])?;
    assert_eq!(client.command(&["SCRIPT", "EXISTS", &begun])?, b"*1\r\n:0\r\n");
    let before = four.servers[1].client()?.ask("CONFIG GET dir")?;
    for request in ["CONFIG SET port 7", "CONFIG SET maxmemory 0 DIR /", "CONFIG SET dbfilename x"] {
        let reply = client.ask(request)?;
        assert!(reply.starts_with("-ERR CONFIG SET failed") && reply.contains("PROXY NODE"), "{request}: {reply}");
    }
    assert_eq!(four.servers[1].client()?.ask("CONFIG GET dir")?, before);
    Ok(())
}
