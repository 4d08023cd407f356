//! The generator of scripts, tried on two servers that must agree: what differs here by nature would be blamed on
//! Respool elsewhere.

use std::io;

use respool_testkit::{Comparison, RedisServer, Script, Subset, compare, compare_all};

#[test]
fn two_redis_servers_agree() -> io::Result<()> {
    let (one, other) = (RedisServer::start()?, RedisServer::start()?);
    for (seed, protocol, subset) in [(1, 2, Subset::OneNode), (2, 3, Subset::OneNode), (3, 2, Subset::Spread)] {
        let comparison = Comparison { subset, protocol, requests: 5_000, seed };
        let errors = compare(&one.tcp(), &other.unix(), &comparison)?;
        assert!((500..3_500).contains(&errors), "a script should do more than fail: {errors} errors");
    }
    Ok(())
}

#[test]
fn a_server_that_answers_otherwise_is_found() -> io::Result<()> {
    let (one, other) = (RedisServer::start()?, RedisServer::start()?);
    other.client()?.ask("CONFIG SET set-max-intset-entries 0")?;
    let comparison = Comparison { subset: Subset::OneNode, protocol: 2, requests: 5_000, seed: 1 };
    let error = compare(&one.tcp(), &other.tcp(), &comparison).unwrap_err();
    assert!(error.to_string().contains("replies differ"), "{error}");
    Ok(())
}

#[test]
fn a_server_that_holds_something_else_is_found() -> io::Result<()> {
    let servers = [RedisServer::start()?, RedisServer::start()?];
    let difference = |words: &str| -> io::Result<Option<String>> {
        // Both have a list of the same elements, an equal set whose payloads differ, and a key that is about to expire.
        for (server, members) in servers.iter().zip([["SADD s 1 x y 2", "SADD s z"], ["SADD s z y 1", "SADD s x 2"]]) {
            let mut client = server.client()?;
            for words in ["SELECT 3", "FLUSHALL", "RPUSH l a b", members[0], members[1], "SET soon x PX 50"] {
                assert!(!client.ask(words)?.starts_with('-'), "{words}");
            }
        }
        let mut client = servers[1].client()?;
        client.ask("SELECT 3")?;
        assert!(!client.ask(words)?.starts_with('-'), "{words}");
        let comparison = Comparison { subset: Subset::OneNode, protocol: 2, requests: 0, seed: 1 };
        let compared = compare_all(&servers[0].tcp(), &servers[1].tcp(), &comparison, 1)?;
        Ok(compared.found.into_iter().next().map(|found| found.told))
    };
    assert_eq!(difference("PING")?, None);
    for words in ["LSET l 1 c", "LPUSH l c", "SREM s x", "EXPIRE l 1000", "SET more 1", "RENAME l l2"] {
        let told = difference(words)?.unwrap_or_default();
        assert!(told.starts_with("database 3, key "), "{words}: {told:?}");
    }
    Ok(())
}

#[test]
fn scripts_use_most_of_the_table() {
    let mut script = Script::new(1, Subset::OneNode);
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        names.insert(script.next_request().arguments[0].to_ascii_uppercase());
    }
    assert!(names.len() > 130, "{}", names.len());
}
