//! Ten thousand clients that wait for elements, more than there may be connections to wait on: each is served or told.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, Respool};

use super::beside;
use super::node::Pair;
use super::{Bench, Finding, Wanted};
use crate::command;

const CLIENTS: usize = 10_000;
const WORKERS: u64 = 2;
/// Connections to the node that may be used for waiting, by all workers together.
const CONNECTIONS_MAX: u64 = 64;
/// Connections for everything else: a shared one for each dialect and worker, and one that watches the node.
const OTHER_CONNECTIONS_MAX: u64 = 8;
/// Lists that the clients wait for.
const LISTS: usize = 500;
/// Elements that are pushed meanwhile, evenly over the lists: not enough for all clients.
const ELEMENTS: usize = 4_000;
/// How long a client is willing to wait, and how much later it must have been told.
const TIMEOUT_SECONDS: u64 = 20;
const GRACE: Duration = Duration::from_secs(5);
const ALONE: Duration = Duration::from_secs(6);

/// How the waiting ended.
#[derive(Default, Debug)]
struct Ends {
    served: usize,
    timed_out: usize,
    told: usize,
    hung: usize,
    odd: Vec<String>,
    elements: HashSet<String>,
}

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    command::allow_open_files(CLIENTS as u64 + 1_000)?;
    let (workers, each) = (WORKERS.to_string(), (CONNECTIONS_MAX / WORKERS).to_string());
    let arguments = ["--workers", &workers, "--blocking-connections-max", &each, "--max-clients", "12000"];
    let mut pair = Pair::start(bench, &arguments)?;
    let address = pair.respool.tcp();
    let without = beside::alone(&address, ALONE)?;
    let (mut ends, mut connections) = (Ends::default(), 0);
    let (with, ()) = beside::measure(&address, || {
        let mut clients = block(&address)?;
        connections = connections.max(pair.connections()?);
        feed(&pair.respool)?;
        connections = connections.max(pair.connections()?);
        ends = gather(&mut clients)?;
        connections = connections.max(pair.connections()?);
        Ok(())
    })?;
    let mut left = 0;
    for list in 0..LISTS {
        let length = pair.ask(&format!("LLEN {}", name(list)))?;
        left += length.trim_start_matches(':').trim().parse::<usize>().unwrap_or_default();
    }
    println!(
        "blocked: {} served, {} timed out, {} refused, {} hung; {left} elements left; p99 {:?} without, {:?} with",
        ends.served, ends.timed_out, ends.told, ends.hung, without.0, with.0
    );
    ends.odd.iter().take(5).for_each(|reply| println!("blocked: odd reply {reply:?}"));
    Ok(vec![
        Finding::new("blocked clients that are neither served nor told", ends.hung as f64, Wanted::Exactly(0.0), ""),
        Finding::new("odd replies to blocked clients", ends.odd.len() as f64, Wanted::Exactly(0.0), ""),
        Finding::new(
            "elements that were delivered twice or not at all",
            (ELEMENTS as f64 - (ends.elements.len() + left) as f64).abs() + (ends.served - ends.elements.len()) as f64,
            Wanted::Exactly(0.0),
            "",
        ),
        Finding::new(
            format!("connections to the node with {CLIENTS} blocked clients"),
            connections as f64,
            Wanted::AtMost((CONNECTIONS_MAX + OTHER_CONNECTIONS_MAX) as f64),
            "",
        ),
        Finding::new("p99 of 50 clients beside blocked ones", with.ratio(without), Wanted::AtMost(2.0), "x without"),
    ])
}

fn name(list: usize) -> String {
    format!("list:{list}")
}

/// All of them ask, each for one list.
fn block(address: &Address) -> io::Result<Vec<(Client, Instant)>> {
    (0..CLIENTS)
        .map(|number| {
            let mut client = Client::connect(address)?;
            client.send_command(&["BLPOP", &name(number % LISTS), &TIMEOUT_SECONDS.to_string()])?;
            Ok((client, Instant::now()))
        })
        .collect()
}

/// Pushes the elements, which all have names of their own.
fn feed(respool: &Respool) -> io::Result<()> {
    let mut client = respool.client()?;
    for element in 0..ELEMENTS {
        let reply = client.command(&["RPUSH", &name(element % LISTS), &format!("element:{element}")])?;
        if reply.first() != Some(&b':') {
            return Err(io::Error::other(format!("RPUSH got {:?}", String::from_utf8_lossy(&reply))));
        }
    }
    Ok(())
}

fn gather(clients: &mut [(Client, Instant)]) -> io::Result<Ends> {
    let mut ends = Ends::default();
    for (number, (client, asked)) in clients.iter_mut().enumerate() {
        let limit = Duration::from_secs(TIMEOUT_SECONDS) + GRACE;
        client.set_timeout(limit.saturating_sub(asked.elapsed()).max(Duration::from_millis(10)))?;
        let Ok(reply) = client.reply() else {
            ends.hung += 1;
            continue;
        };
        let text = String::from_utf8_lossy(&reply).into_owned();
        let list = name(number % LISTS);
        let start = format!("*2\r\n${}\r\n{list}\r\n$", list.len());
        match text.strip_prefix(&start) {
            Some(rest) => {
                ends.served += 1;
                ends.elements.insert(rest.lines().nth(1).unwrap_or_default().to_owned());
            }
            None if text == "*-1\r\n" => ends.timed_out += 1,
            None if text.starts_with('-') => ends.told += 1,
            None => ends.odd.push(text),
        }
    }
    Ok(ends)
}
