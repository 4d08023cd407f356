//! The generator of scripts, tried on two servers that must agree: what differs here by nature would be blamed on
//! Respool elsewhere.

use std::io;

use respool_testkit::{Comparison, RedisServer, Script, Subset, compare};

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
fn scripts_use_most_of_the_table() {
    let mut script = Script::new(1, Subset::OneNode);
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        names.insert(script.next_request().arguments[0].to_ascii_uppercase());
    }
    assert!(names.len() > 130, "{}", names.len());
}
