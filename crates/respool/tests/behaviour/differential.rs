//! The same script to a redis-server directly and to one behind Respool: the same bytes come back.

use std::path::Path;
use std::{env, io};

use respool_testkit::{
    Compared, Comparison, RedisServer, Respool, Subset, Theme, compare, compare_all, compare_engines, play_in_lock_step,
};

use super::{addresses, proxy, redis_servers};

/// `RESPOOL_DIFF_COMMANDS` and `RESPOOL_DIFF_SEED` make the comparison longer or other than usual.
fn comparison(subset: Subset, protocol: u8) -> Comparison {
    let number = |name| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let requests = number("RESPOOL_DIFF_COMMANDS").unwrap_or(4_000) as usize;
    let seed = number("RESPOOL_DIFF_SEED").unwrap_or(u64::from(protocol));
    Comparison { subset, protocol, requests, seed }
}

/// Scripts of each kind; `RESPOOL_DIFF_SCRIPTS` is another number of them.
fn scripts() -> u64 {
    env::var("RESPOOL_DIFF_SCRIPTS").map_or(20, |text| text.parse().expect("a number"))
}

#[test]
fn one_node_resp2() -> io::Result<()> {
    let (direct, behind) = (RedisServer::start()?, RedisServer::start()?);
    let proxy = proxy(&[behind.tcp()], &[])?;
    compare(&direct.tcp(), &proxy.tcp(), &comparison(Subset::OneNode, 2)).map(drop)
}

#[test]
fn one_node_resp3_over_unix_sockets() -> io::Result<()> {
    let (direct, behind) = (RedisServer::start()?, RedisServer::start()?);
    let proxy = proxy(&[behind.unix()], &[])?;
    compare(&direct.tcp(), &proxy.unix(), &comparison(Subset::OneNode, 3)).map(drop)
}

#[test]
fn four_nodes_where_the_meaning_is_the_same() -> io::Result<()> {
    let direct = RedisServer::start()?;
    let behind = redis_servers(4)?;
    let proxy = proxy(&addresses(&behind), &[])?;
    for protocol in [2, 3] {
        compare(&direct.tcp(), &proxy.tcp(), &comparison(Subset::Spread, protocol))?;
    }
    let sizes = behind.iter().map(|server| server.client()?.ask("DBSIZE")).collect::<io::Result<Vec<_>>>()?;
    assert!(sizes.iter().filter(|size| *size != ":0\r\n").count() > 1, "keys are on several nodes: {sizes:?}");
    Ok(())
}

/// No node behind it: the engine in the same process answers.
#[test]
fn the_embedded_server_answers_as_redis() -> io::Result<()> {
    let direct = RedisServer::start()?;
    for protocol in [2, 3] {
        let embedded = proxy(&[], &[])?;
        direct.client()?.ask("FLUSHALL")?;
        compare(&direct.tcp(), &embedded.tcp(), &comparison(Subset::Embedded, protocol))?;
    }
    Ok(())
}

/// The same with every command of the table that it has, transactions included, within the committed list of what it may say
/// differently. `cargo xtask differential --embedded` does the same at length.
#[test]
fn the_embedded_server_answers_every_command_that_it_has() -> io::Result<()> {
    for protocol in [2, 3] {
        let (direct, embedded) = (RedisServer::start()?, proxy(&[], &["--admin-commands", "allow"])?);
        let comparison = comparison(Subset::EmbeddedTable, protocol);
        let Compared { found, keys, .. } = compare_all(&direct.tcp(), &embedded.tcp(), &comparison, usize::MAX)?;
        let told: Vec<&str> = found.iter().filter(|one| !one.is_stale_error).map(|one| one.told.as_str()).collect();
        assert!(told.is_empty(), "{}", told.join("\n\n"));
        assert!(keys > 20, "{keys} values are too few to tell");
    }
    Ok(())
}

/// A server with this many engines.
fn engines(number: &str) -> io::Result<Respool> {
    let arguments = ["--admin-commands", "allow", "--workers", "2", "--engine-threads", number];
    Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments)
}

/// Three engines that share the keys answer as one does, but for what they refuse because it is not in one of them.
#[test]
fn three_engines_answer_every_command_as_one() -> io::Result<()> {
    for protocol in [2, 3] {
        let (one, three) = (engines("1")?, engines("3")?);
        let comparison = comparison(Subset::Engines, protocol);
        let (found, _) = compare_engines(&one.tcp(), &three.tcp(), &comparison, 30)?;
        let told: Vec<&str> = found.iter().map(|one| one.told.as_str()).collect();
        assert!(told.is_empty(), "{}", told.join("\n\n"));
    }
    Ok(())
}

#[test]
fn clients_of_three_engines_in_lock_step_are_told_the_same() -> io::Result<()> {
    let (direct, three) = (RedisServer::start()?, engines("3")?);
    for theme in Theme::ALL {
        for seed in 0..scripts() {
            play_in_lock_step(&direct, &three.tcp(), None, theme, seed)?;
        }
    }
    Ok(())
}

/// A node from before RESP3, asked by clients that speak it: every reply has the shape that a newer node gives it.
#[test]
fn one_node_without_hello() -> io::Result<()> {
    let direct = RedisServer::start()?;
    let behind = RedisServer::start_without_hello()?;
    let proxy = proxy(&[behind.tcp()], &["--admin-commands", "allow"])?;
    for subset in [Subset::OneNode, Subset::Table] {
        let Compared { found, .. } = compare_all(&direct.tcp(), &proxy.tcp(), &comparison(subset, 3), usize::MAX)?;
        let told: Vec<&str> = found.iter().filter(|one| !one.is_lost_by_resp2).map(|one| one.told.as_str()).collect();
        assert!(told.is_empty(), "{}", told.join("\n\n"));
        direct.client()?.ask("FLUSHALL")?;
        behind.client()?.ask("FLUSHALL")?;
    }
    Ok(())
}

/// Every command of the table, within the committed list of what two equal servers may say differently.
/// `cargo xtask differential` does the same at length.
#[test]
fn one_node_every_command() -> io::Result<()> {
    for protocol in [2, 3] {
        let (direct, behind) = (RedisServer::start()?, RedisServer::start()?);
        let proxy = proxy(&[behind.tcp()], &["--admin-commands", "allow"])?;
        let comparison = comparison(Subset::Table, protocol);
        let Compared { found, .. } = compare_all(&direct.tcp(), &proxy.tcp(), &comparison, usize::MAX)?;
        let told: Vec<&str> = found.iter().map(|one| one.told.as_str()).collect();
        assert!(found.is_empty(), "{}", told.join("\n\n"));
    }
    Ok(())
}

/// What waits, watches, subscribes or is not answered: several clients in lock step, each script to a redis-server first.
/// `cargo xtask differential` plays more of them.
#[test]
fn clients_in_lock_step_are_told_the_same() -> io::Result<()> {
    let direct = RedisServer::start()?;
    for mode in ["multiplex", "transaction", "session"] {
        let behind = RedisServer::start()?;
        let proxy = proxy(&[behind.tcp()], &["--pool-mode", mode])?;
        for theme in Theme::ALL {
            for seed in 0..scripts() {
                play_in_lock_step(&direct, &proxy.tcp(), Some(&behind), theme, seed)
                    .map_err(|error| io::Error::other(format!("{mode}: {error}")))?;
            }
        }
    }
    Ok(())
}

#[test]
fn embedded_clients_in_lock_step_are_told_the_same() -> io::Result<()> {
    let (direct, embedded) = (RedisServer::start()?, proxy(&[], &[])?);
    for theme in Theme::ALL {
        for seed in 0..scripts() {
            play_in_lock_step(&direct, &embedded.tcp(), None, theme, seed)?;
        }
    }
    Ok(())
}
