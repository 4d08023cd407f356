//! Many clients that pop from one list and change their minds: whatever they do, no element may get lost.
//!
//! A client gives up in one of two ways, after each of which it is known what it got: it lets a short timeout pass, or it
//! says that it will send nothing more and reads what still comes until its connection is closed. (One that closes its
//! end at once cannot know what was under way to it, with or without a pooler.)

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, Rng};

use super::node::Pair;
use super::{Bench, Finding, Wanted};

const POPPERS: usize = 200;
const ITEMS: usize = 100_000;
/// Pushed at a time, with a rest between, so that the list is empty most of the time.
const BATCH: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// Poppers stop when nothing has come for so long after the last item was pushed.
const QUIET: Duration = Duration::from_secs(2);
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
const KEY: &str = "queue";

#[derive(Default)]
struct Taken {
    items: Vec<usize>,
    timeouts: usize,
    departures: usize,
    refused: usize,
}

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    let mut pair = Pair::start(bench, &["--workers", "2"])?;
    let address = pair.respool.tcp();
    let pushed = AtomicUsize::new(0);
    let taken = thread::scope(|scope| {
        let poppers: Vec<_> = (0..POPPERS as u64)
            .map(|number| {
                scope.spawn({
                    let (address, pushed) = (&address, &pushed);
                    move || popper(address, number, pushed)
                })
            })
            .collect();
        let fed = feed(&address, &pushed);
        pushed.store(ITEMS, Ordering::Relaxed);
        let mut all = Vec::new();
        for popper in poppers {
            all.push(popper.join().expect("a popper does not panic")?);
        }
        fed.map(|()| all)
    })?;
    let left = pair.number(&format!("LLEN {KEY}"))? as usize;
    let mut seen: HashMap<usize, usize> = HashMap::new();
    taken.iter().flat_map(|taken| &taken.items).for_each(|&item| *seen.entry(item).or_default() += 1);
    let twice = seen.values().filter(|&&count| count > 1).count();
    let sum = |count: fn(&Taken) -> usize| taken.iter().map(count).sum::<usize>();
    println!(
        "poppers: {} items, {} timeouts, {} departures, {} refused; {left} left",
        seen.len(),
        sum(|taken| taken.timeouts),
        sum(|taken| taken.departures),
        sum(|taken| taken.refused)
    );
    Ok(vec![
        Finding::new(
            "items lost on the way to clients that give up",
            ITEMS as f64 - (seen.len() + left) as f64,
            Wanted::Exactly(0.0),
            "",
        ),
        Finding::new("items delivered twice", twice as f64, Wanted::Exactly(0.0), ""),
        // Without these two, a pooler that refuses every pop would lose nothing.
        Finding::new("pops that were refused", sum(|taken| taken.refused) as f64, Wanted::Exactly(0.0), ""),
        Finding::new("items that were left although clients wait for them", left as f64, Wanted::Exactly(0.0), ""),
        Finding::new("pops whose time ran out", sum(|taken| taken.timeouts) as f64, Wanted::AtLeast(1_000.0), ""),
        Finding::new("clients that left", sum(|taken| taken.departures) as f64, Wanted::AtLeast(1_000.0), ""),
    ])
}

fn feed(address: &Address, pushed: &AtomicUsize) -> io::Result<()> {
    let mut client = Client::connect(address)?;
    for first in (0..ITEMS).step_by(BATCH) {
        let items: Vec<String> = (first..first + BATCH).map(|item| item.to_string()).collect();
        let mut command = vec!["RPUSH", KEY];
        command.extend(items.iter().map(String::as_str));
        let reply = client.command(&command)?;
        if reply.first() != Some(&b':') {
            return Err(io::Error::other(format!("RPUSH got {:?}", String::from_utf8_lossy(&reply))));
        }
        pushed.fetch_add(BATCH, Ordering::Relaxed);
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn popper(address: &Address, number: u64, pushed: &AtomicUsize) -> io::Result<Taken> {
    let mut rng = Rng::part(9, number);
    let mut taken = Taken::default();
    let mut last = Instant::now();
    let connect = || -> io::Result<Client> {
        let client = Client::connect(address)?;
        client.set_timeout(SILENCE_LIMIT)?;
        Ok(client)
    };
    let mut client = connect()?;
    while pushed.load(Ordering::Relaxed) < ITEMS || last.elapsed() < QUIET {
        let timeout = if rng.once_in(2) { "0.02" } else { "1" };
        client.send_command(&["BLPOP", KEY, timeout])?;
        if rng.once_in(20) {
            thread::sleep(Duration::from_micros(rng.below(20_000) as u64));
            client.finish_sending()?;
            // A reply that came before the end was taken in.
            if let Some(item) = item(&client.read_to_close()?, &mut taken)? {
                taken.items.push(item);
                last = Instant::now();
            }
            taken.departures += 1;
            client = connect()?;
            continue;
        }
        if let Some(item) = item(&client.reply()?, &mut taken)? {
            taken.items.push(item);
            last = Instant::now();
        }
    }
    Ok(taken)
}

/// The item in a reply, if it has one.
fn item(reply: &[u8], taken: &mut Taken) -> io::Result<Option<usize>> {
    let text = String::from_utf8_lossy(reply);
    let head = format!("*2\r\n${}\r\n{KEY}\r\n$", KEY.len());
    if let Some(rest) = text.strip_prefix(&head) {
        let item = rest.lines().nth(1).and_then(|line| line.parse().ok());
        return item.map(Some).ok_or_else(|| io::Error::other(format!("BLPOP got {text:?}")));
    }
    match &*text {
        "*-1\r\n" => taken.timeouts += 1,
        "" => {}
        error if error.starts_with('-') => taken.refused += 1,
        odd => return Err(io::Error::other(format!("BLPOP got {odd:?}"))),
    }
    Ok(None)
}
