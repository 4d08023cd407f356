//! Many connections to nodes that are wanted at the same moment: after a start, after all of them are cut, and by clients that want
//! them to themselves. No healthy node may look dead for that, so no request may be answered with an error.

use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, RedisServer, Respool, request, wait_until};

use super::{Bench, Finding, Wanted};

const NODES: u8 = 16;
const WORKERS: &str = "16";
const DATABASES: usize = 4;
/// Enough that nearly every worker has clients in every database.
const CLIENTS: usize = 320;
const REQUESTS: usize = 60;
const WATCHERS: usize = 1_000;
const OWNERS: usize = 500;
/// Connections that end sooner are made again only after a pause.
const AGE: Duration = Duration::from_millis(1_100);
const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    let mut findings = nodes_and_workers(bench)?;
    findings.push(of_their_own(bench, WATCHERS, "multiplex", "WATCH k")?);
    findings.push(of_their_own(bench, OWNERS, "session", "GET k")?);
    Ok(findings)
}

/// One server that is many nodes, behind many workers.
fn nodes_and_workers(bench: &Bench) -> io::Result<Vec<Finding>> {
    let ips: Vec<String> = (1..=NODES).map(|last| Ipv4Addr::new(127, 0, 0, last).to_string()).collect();
    let bind: Vec<&str> = std::iter::once("--bind").chain(ips.iter().map(String::as_str)).collect();
    let server = RedisServer::start_with(&bind)?;
    let nodes: Vec<Address> =
        (1..=NODES).map(|last| Address::Tcp((Ipv4Addr::new(127, 0, 0, last), server.port()).into())).collect();
    let respool = Respool::start(&bench.respool, &nodes, &["--workers", WORKERS, "--health-interval", "off"])?;
    let mut clients = (0..CLIENTS).map(|_| respool.client()).collect::<io::Result<Vec<_>>>()?;
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("SELECT {}", number % DATABASES))?;
    }
    let (at_start, took_at_start) = all_ask(&mut clients)?;
    let connections = clients[0].figure("proxy", "upstreams")?;
    let began = Instant::now();
    wait_until("connections are of age", LIMIT, || Ok(began.elapsed() > AGE))?;
    server.client()?.ask("CLIENT KILL TYPE normal")?;
    wait_until("all are lost", LIMIT, || Ok(clients[0].figure("proxy", "upstream_losses")? >= connections))?;
    let (after_cut, took_after_cut) = all_ask(&mut clients)?;
    let ejected = clients[0].figure("proxy", "nodes_ejected")?;
    println!(
        "herd: {connections} connections; all served after {} ms, and {} ms after a cut",
        took_at_start.as_millis(),
        took_after_cut.as_millis()
    );
    let none = Wanted::Exactly(0.0);
    Ok(vec![
        Finding::new("errors while all connections are made at once", at_start as f64, none, ""),
        Finding::new("errors after all connections were cut at once", after_cut as f64, none, ""),
        Finding::new("all served again", took_after_cut.as_millis() as f64, Wanted::AtMost(500.0), "ms"),
        Finding::new("nodes taken for dead", ejected as f64, none, ""),
    ])
}

/// All clients ask at once. How many replies are errors, and how long it took.
fn all_ask(clients: &mut [Client]) -> io::Result<(usize, Duration)> {
    let all: Vec<u8> = (0..REQUESTS).flat_map(|key| request(&["GET", &key.to_string()])).collect();
    let began = Instant::now();
    for client in &mut *clients {
        client.send(&all)?;
    }
    let mut errors = 0;
    for client in &mut *clients {
        errors += client.replies(REQUESTS)?.iter().filter(|reply| reply.starts_with(b"-")).count();
    }
    Ok((errors, began.elapsed()))
}

/// Clients that want connections to themselves, all at once.
fn of_their_own(bench: &Bench, count: usize, mode: &str, words: &str) -> io::Result<Finding> {
    let server = RedisServer::start()?;
    let arguments = ["--workers", "2", "--pool-mode", mode, "--private-connections-max", "1000"];
    let respool = Respool::start(&bench.respool, &[server.tcp()], &arguments)?;
    let mut clients = (0..count).map(|_| respool.client()).collect::<io::Result<Vec<_>>>()?;
    let began = Instant::now();
    for client in &mut clients {
        client.send(format!("{words}\r\n").as_bytes())?;
    }
    let mut errors = 0;
    for client in &mut clients {
        errors += usize::from(client.reply()?.starts_with(b"-"));
    }
    println!("herd: {count} clients with connections to themselves ({words}) after {} ms", began.elapsed().as_millis());
    Ok(Finding::new(
        format!("errors of {count} clients that say {words} at once"),
        errors as f64,
        Wanted::Exactly(0.0),
        "",
    ))
}
