//! Whether nodes are there: what clients are told, how fast connections are made, and that no healthy node loses its requests.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, PATIENCE, RedisServer, Respool, request, wait_until};

use super::proxy;

#[test]
fn pong_is_the_word_of_the_only_node() -> io::Result<()> {
    let mut server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--request-timeout", "300ms"])?;
    let mut client = proxy.client()?;
    assert_eq!(client.ask("PING")?, "+PONG\r\n");
    server.pause()?;
    wait_until("what was heard of it is old", PATIENCE, || {
        Ok(client.ask("PING")?.contains("did not answer within 300 ms"))
    })?;
    server.resume()?;
    wait_until("it answers again", PATIENCE, || Ok(client.ask("PING")? == "+PONG\r\n"))?;
    server.kill()?;
    wait_until("it is missed", PATIENCE, || Ok(client.ask("PING")?.contains("is not available")))?;
    server.restart()?;
    wait_until("it is back", PATIENCE, || Ok(client.ask("PING")? == "+PONG\r\n"))
}

/// One server that is many nodes, each by an address of its own.
fn nodes_of(server: &RedisServer, count: u8) -> Vec<Address> {
    let ips = (1..=count).map(|last| std::net::Ipv4Addr::new(127, 0, 0, last));
    ips.map(|ip| Address::Tcp((ip, server.port()).into())).collect()
}

/// All clients send at once; none is answered with an error.
fn all_are_served(clients: &mut [Client], requests: usize) -> io::Result<()> {
    for client in &mut *clients {
        let all: Vec<u8> = (0..requests).flat_map(|key| request(&["GET", &key.to_string()])).collect();
        client.send(&all)?;
    }
    for client in &mut *clients {
        for _ in 0..requests {
            assert_eq!(String::from_utf8_lossy(&client.reply()?), "$-1\r\n");
        }
    }
    Ok(())
}

/// 256 connections are wanted at once, and again when all of them are cut.
#[cfg(target_os = "linux")]
#[test]
fn a_herd_of_connections_is_made_without_an_error() -> io::Result<()> {
    let ips = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
    let server = RedisServer::start_with(&[&["--bind"], &ips[..]].concat())?;
    // More threads than the machine has cores, so a dial may take long.
    let arguments = ["--workers", "16", "--health-interval", "off", "--connect-timeout", "10s"];
    let proxy = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &nodes_of(&server, 4), &arguments)?;
    let mut clients = (0..256).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&format!("SELECT {}", number / 16 % 4))?, "+OK\r\n");
    }
    all_are_served(&mut clients, 32)?;
    let mut direct = server.client()?;
    let connections = clients[0].figure("proxy", "upstreams")?;
    assert!(connections > 164, "{connections}");
    // Older than a connection that is only made again after a pause.
    let began = Instant::now();
    wait_until("they are of age", PATIENCE, || Ok(began.elapsed() > Duration::from_millis(1_100)))?;
    direct.ask("CLIENT KILL TYPE normal")?;
    wait_until("they are lost", PATIENCE, || Ok(clients[0].figure("proxy", "upstream_losses")? >= connections))?;
    all_are_served(&mut clients, 32)?;
    assert_eq!(clients[0].figure("proxy", "nodes_ejected")?, 0);
    Ok(())
}

#[test]
fn a_crowd_that_wants_connections_of_its_own_gets_them() -> io::Result<()> {
    let server = RedisServer::start()?;
    for mode in ["multiplex", "session"] {
        let proxy = proxy(&[server.tcp()], &["--private-connections-max", "300", "--pool-mode", mode])?;
        let mut clients = (0..300).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
        for client in &mut clients {
            client.send_command(&["WATCH", "key"])?;
        }
        for client in &mut clients {
            assert_eq!(String::from_utf8_lossy(&client.reply()?), "+OK\r\n", "{mode}");
        }
    }
    Ok(())
}

/// Where other nodes take the writes of one that is out, a healthy one must not be taken for that.
#[test]
fn no_write_goes_elsewhere_while_its_node_is_well() -> io::Result<()> {
    let servers = [RedisServer::start()?, RedisServer::start()?];
    let nodes = [servers[0].tcp(), servers[1].tcp()];
    let proxy = proxy(&nodes, &["--dead-node", "next", "--reconnect-max", "100ms"])?;
    let mut client = proxy.client()?;
    for key in 0..200 {
        assert_eq!(client.ask(&format!("SET key{key} before"))?, "+OK\r\n");
    }
    let mut direct = [servers[0].client()?, servers[1].client()?];
    let before = [direct[0].ask("DBSIZE")?, direct[1].ask("DBSIZE")?];
    let full = usize::from(direct[1].ask("EXISTS key1")? == ":1\r\n");
    direct[full].ask("CONFIG SET maxclients 2")?;
    for round in 0..20 {
        // It has no room for the connections that these need.
        assert!(proxy.client()?.ask("WATCH key1")?.starts_with("-ERR node"));
        proxy.client()?.ask("BLPOP {key1} 0.01")?;
        for key in 0..200 {
            assert_eq!(client.ask(&format!("SET key{key} {round}"))?, "+OK\r\n");
        }
    }
    assert_eq!(
        [direct[0].ask("DBSIZE")?, direct[1].ask("DBSIZE")?],
        before,
        "every key is where it was, and only there"
    );
    assert_eq!(client.figure("proxy", "requests_moved")?, 0);
    direct[full].ask("CONFIG SET maxclients 1000")?;
    wait_until("there is room again", PATIENCE, || Ok(proxy.client()?.ask("WATCH key1")? == "+OK\r\n"))
}

/// Its snapshots fail: it takes no writes, answers PING with the same error, and is read from as before.
#[test]
fn a_node_that_cannot_save_is_read_from_over_new_connections() -> io::Result<()> {
    let servers = [RedisServer::start()?, RedisServer::start()?];
    let mut direct = [servers[0].client()?, servers[1].client()?];
    for (server, client) in servers.iter().zip(&mut direct) {
        // There is something else under the name of the file.
        std::fs::create_dir(server.directory().join("dump.rdb"))?;
        let set = client.command(&["CONFIG", "SET", "save", "3600 1"])?;
        assert_eq!(set, b"+OK\r\n");
    }
    let nodes = [servers[0].tcp(), servers[1].tcp()];
    let before = proxy(&nodes, &[])?;
    assert_eq!(before.client()?.ask("SET key value")?, "+OK\r\n");
    let has_key = usize::from(direct[1].ask("EXISTS key")? == ":1\r\n");
    direct[has_key].ask("BGSAVE")?;
    wait_until("the snapshot has failed", PATIENCE, || Ok(direct[has_key].ask("PING")?.starts_with("-MISCONF")))?;
    // Another process has no connection to it.
    let proxy = proxy(&nodes, &["--dead-node", "next"])?;
    for words in ["HELLO 2", "HELLO 3", "SELECT 0", "WATCH key"] {
        let mut client = proxy.client()?;
        client.ask(words)?;
        assert_eq!(client.ask("GET key")?, "$5\r\nvalue\r\n", "{words}");
        assert!(client.ask("SET key other")?.starts_with("-MISCONF"), "{words}");
    }
    assert_eq!(proxy.client()?.figure("proxy", "nodes_ejected")?, 0);
    assert_eq!(direct[1 - has_key].ask("DBSIZE")?, ":0\r\n", "nothing was written elsewhere");
    Ok(())
}
