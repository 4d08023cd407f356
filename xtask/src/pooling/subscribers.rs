//! A thousand clients subscribed to the same ten thousand channels, and a node that is restarted again and again.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, Stream, proc_stats, request, wait_until};

use super::node::Pair;
use super::{Bench, Finding, Wanted};
use crate::command;

const CLIENTS: usize = 1_000;
const CHANNELS: usize = 10_000;
const WORKERS: usize = 2;
const RESTARTS: usize = 100;
/// Messages are sent after every so many restarts, and every client must get each.
const PUBLISH_EVERY: usize = 10;
const MESSAGES: usize = 20;
const RESTORE_LIMIT: Duration = Duration::from_secs(30);
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    command::allow_open_files(CLIENTS as u64 + 1_000)?;
    let mut pair = Pair::start(bench, &["--workers", &WORKERS.to_string()])?;
    let started = Instant::now();
    let mut clients = subscribe(&pair.respool.tcp())?;
    let subscriptions = pair.subscriptions()?;
    let resident = proc_stats::resident_bytes(pair.respool.pid())? as f64 / (1 << 20) as f64;
    println!(
        "subscribers: {CLIENTS} x {CHANNELS} in {:.1} s, {subscriptions} subscriptions upstream, {resident:.0} MB resident",
        started.elapsed().as_secs_f64()
    );
    let mut lost = publish(&pair, &mut clients, 0)?;
    let mut unrestored = 0;
    let started = Instant::now();
    for restart in 1..=RESTARTS {
        pair.server.restart()?;
        pair.reconnect()?;
        let restored =
            wait_until("subscriptions are restored", RESTORE_LIMIT, || Ok(pair.subscriptions()? >= subscriptions));
        unrestored += usize::from(restored.is_err());
        if restart % PUBLISH_EVERY == 0 {
            lost += publish(&pair, &mut clients, restart)?;
        }
    }
    println!("subscribers: {RESTARTS} restarts in {:.1} s", started.elapsed().as_secs_f64());
    Ok(vec![
        Finding::new(
            format!("subscriptions upstream for {CLIENTS} clients of {CHANNELS} channels, {WORKERS} workers"),
            subscriptions as f64,
            Wanted::AtMost((WORKERS * CHANNELS) as f64),
            "",
        ),
        Finding::new(
            "channels with subscriptions upstream",
            subscriptions as f64,
            Wanted::AtLeast(CHANNELS as f64),
            "",
        ),
        Finding::new("restarts after which subscriptions were missing", unrestored as f64, Wanted::Exactly(0.0), ""),
        Finding::new("messages that a subscriber did not get", lost as f64, Wanted::Exactly(0.0), ""),
    ])
}

fn channel(number: usize) -> String {
    format!("channel:{number}")
}

/// Subscribes them one after the other and checks all that is said to it.
fn subscribe(address: &Address) -> io::Result<Vec<Stream>> {
    let names: Vec<String> = (0..CHANNELS).map(channel).collect();
    let mut command = vec!["SUBSCRIBE"];
    command.extend(names.iter().map(String::as_str));
    let asked = request(&command);
    let mut expected = Vec::new();
    for (number, name) in names.iter().enumerate() {
        write!(expected, "*3\r\n$9\r\nsubscribe\r\n${}\r\n{name}\r\n:{}\r\n", name.len(), number + 1)?;
    }
    let mut received = vec![0; expected.len()];
    (0..CLIENTS)
        .map(|number| {
            let mut stream = address.connect()?;
            stream.set_read_timeout(Some(SILENCE_LIMIT))?;
            stream.set_write_timeout(Some(SILENCE_LIMIT))?;
            stream.write_all(&asked)?;
            stream.read_exact(&mut received)?;
            if received == expected {
                return Ok(stream);
            }
            let place = received.iter().zip(&expected).position(|(one, other)| one != other).unwrap_or_default();
            let shown = String::from_utf8_lossy(&received[place..received.len().min(place + 100)]).into_owned();
            Err(io::Error::other(format!("client {number} was told {shown:?} at byte {place}")))
        })
        .collect()
}

/// Publishes to some channels and counts what clients did not get.
fn publish(pair: &Pair, clients: &mut [Stream], round: usize) -> io::Result<usize> {
    let mut publisher = Client::connect(&pair.respool.tcp())?;
    let mut expected = Vec::new();
    for message in 0..MESSAGES {
        let (name, text) = (channel((round * 7_919 + message * 499) % CHANNELS), format!("{round}:{message}"));
        let reply = publisher.command(&["PUBLISH", &name, &text])?;
        // Not how many there are: the node counts connections of Respool's.
        if !reply.starts_with(b":") || reply == b":0\r\n" {
            return Err(io::Error::other(format!("PUBLISH got {:?}", String::from_utf8_lossy(&reply))));
        }
        write!(expected, "*3\r\n$7\r\nmessage\r\n${}\r\n{name}\r\n${}\r\n{text}\r\n", name.len(), text.len())?;
    }
    let mut received = vec![0; expected.len()];
    let mut lost = 0;
    for stream in clients {
        let is_whole = stream.read_exact(&mut received).is_ok() && received == expected;
        lost += usize::from(!is_whole);
    }
    Ok(lost)
}
