//! Ten thousand clients that wait for elements, more than there may be connections to wait on: each is served or told.
//!
//! What they cost others is measured in rounds: for some seconds there are only those others, and then they are measured
//! from the moment when the first of the ten thousand connects until the last has its answer. In that time all of them
//! come, some are served, and those who are left see their time run out at the same moment. What is compared is the p99 of
//! the two parts of one round, and what counts is the median round: whatever else the machine does falls into one of them.
//!
//! The waiting clients come one by one at a pace, since ten thousand at once would show how long the machine takes to open
//! their connections. When all have their answers they leave, before the next round begins.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use std::{io, thread};

use respool_testkit::{Address, Client, Respool};

use super::bystanders::{self, P99};
use super::node::Pair;
use super::{Bench, Finding, Wanted};
use crate::command;

const ROUNDS: usize = 5;
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
/// How long the coming takes, and when after its beginning the time of all is over.
const ARRIVALS: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(8);
/// How much later each must have been told.
const GRACE: Duration = Duration::from_secs(5);
const ALONE: Duration = Duration::from_secs(4);
/// By when those who have left must be gone.
const LEAVING: Duration = Duration::from_secs(10);

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
    let (mut ends, mut connections, mut ratios) = (Ends::default(), 0, Vec::new());
    for round in 0..ROUNDS {
        let without = bystanders::alone(&pair.respool.tcp(), ALONE)?;
        let (with, most) = beside_blocked(&mut pair, round, &mut ends)?;
        connections = connections.max(most);
        println!("blocked: p99 {:?} without, {:?} with", without.0, with.0);
        ratios.push(with.ratio(without));
    }
    let mut left = 0;
    for list in 0..ROUNDS * LISTS {
        left += pair.number(&format!("LLEN {}", name(list)))? as usize;
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!(
        "blocked: {} served, {} timed out, {} refused, {} hung; {left} elements left; {:.2} to {:.2} x without",
        ends.served,
        ends.timed_out,
        ends.told,
        ends.hung,
        ratios[0],
        ratios[ROUNDS - 1]
    );
    ends.odd.iter().take(5).for_each(|reply| println!("blocked: odd reply {reply:?}"));
    let delivered = ends.elements.len();
    Ok(vec![
        Finding::new("blocked clients that are neither served nor told", ends.hung as f64, Wanted::Exactly(0.0), ""),
        Finding::new("odd replies to blocked clients", ends.odd.len() as f64, Wanted::Exactly(0.0), ""),
        Finding::new(
            "elements that were delivered twice or not at all",
            ((ROUNDS * ELEMENTS) as f64 - (delivered + left) as f64).abs() + (ends.served - delivered) as f64,
            Wanted::Exactly(0.0),
            "",
        ),
        Finding::new("blocked clients that were refused", ends.told as f64, Wanted::Exactly(0.0), ""),
        // For every element there was a client: none may be left, and all others have to be told that their time is over.
        Finding::new("elements that were left although clients wait", left as f64, Wanted::Exactly(0.0), ""),
        Finding::new(
            "blocked clients that were served",
            ends.served as f64,
            Wanted::Exactly((ROUNDS * ELEMENTS) as f64),
            "",
        ),
        Finding::new(
            "blocked clients whose time ran out",
            ends.timed_out as f64,
            Wanted::Exactly((ROUNDS * (CLIENTS - ELEMENTS)) as f64),
            "",
        ),
        Finding::new(
            format!("connections to the node with {CLIENTS} blocked clients"),
            connections as f64,
            Wanted::AtMost((CONNECTIONS_MAX + OTHER_CONNECTIONS_MAX) as f64),
            "",
        ),
        Finding::new(
            format!("p99 of {} clients beside blocked ones, median of {ROUNDS} rounds", bystanders::CLIENTS),
            ratios[ROUNDS / 2],
            Wanted::AtMost(2.0),
            "x without",
        ),
    ])
}

/// Has all of them wait, and gives what the others took meanwhile and how many connections to the node there were.
fn beside_blocked(pair: &mut Pair, round: usize, ends: &mut Ends) -> io::Result<(P99, u64)> {
    let address = pair.respool.tcp();
    let (with, (clients, connections)) = bystanders::measure(&address, || {
        let over = Instant::now() + PATIENCE;
        let mut clients = block(&address, round, over)?;
        let mut connections = pair.connections()?;
        feed(&pair.respool, round)?;
        connections = connections.max(pair.connections()?);
        gather(&mut clients, round, over + GRACE, ends)?;
        Ok((clients, connections.max(pair.connections()?)))
    })?;
    drop(clients);
    let mut control = pair.respool.client()?;
    let limit = Instant::now() + LEAVING;
    while control.figure("clients", "connected_clients")? > 1 {
        if Instant::now() > limit {
            return Err(io::Error::other("clients that have left are still counted"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok((with, connections))
}

fn name(list: usize) -> String {
    format!("list:{list}")
}

/// The list that a client of a round waits for, or that an element goes to.
fn list_of(round: usize, number: usize) -> String {
    name(round * LISTS + number % LISTS)
}

/// All of them ask, each for one list.
fn block(address: &Address, round: usize, over: Instant) -> io::Result<Vec<Client>> {
    let begin = Instant::now();
    (0..CLIENTS)
        .map(|number| {
            let due = begin + ARRIVALS * number as u32 / CLIENTS as u32;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut client = Client::connect(address)?;
            let timeout = over.saturating_duration_since(Instant::now()).as_secs_f64();
            client.send_command(&["BLPOP", &list_of(round, number), &format!("{timeout:.3}")])?;
            Ok(client)
        })
        .collect()
}

/// Pushes the elements, which all have names of their own.
fn feed(respool: &Respool, round: usize) -> io::Result<()> {
    let mut client = respool.client()?;
    for element in 0..ELEMENTS {
        let reply = client.command(&["RPUSH", &list_of(round, element), &format!("element:{round}:{element}")])?;
        if reply.first() != Some(&b':') {
            return Err(io::Error::other(format!("RPUSH got {:?}", String::from_utf8_lossy(&reply))));
        }
    }
    Ok(())
}

fn gather(clients: &mut [Client], round: usize, limit: Instant, ends: &mut Ends) -> io::Result<()> {
    for (number, client) in clients.iter_mut().enumerate() {
        client.set_timeout(limit.saturating_duration_since(Instant::now()).max(Duration::from_millis(10)))?;
        let Ok(reply) = client.reply() else {
            ends.hung += 1;
            continue;
        };
        let text = String::from_utf8_lossy(&reply).into_owned();
        let list = list_of(round, number);
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
    Ok(())
}
