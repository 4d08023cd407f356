//! What the process says it holds is what it holds, and it gives back what it does not hold any more.

use std::io;
#[cfg(target_os = "linux")]
use std::io::Read;
#[cfg(target_os = "linux")]
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::thread;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, proc_stats, request, wait_until};

use super::proxy;

/// A node that does not answer for as long as a test takes is still waited for.
const PATIENT: [&str; 4] = ["--request-timeout", "60s", "--node-silence-timeout", "60s"];

/// How soon memory is given back.
const GIVEN_BACK: Duration = Duration::from_secs(10);

/// Has `burden` done and compares what the process says of its memory with what the kernel says.
fn assert_counted(proxy: &Respool, what: &str, burden: impl FnOnce() -> io::Result<Vec<Client>>) -> io::Result<()> {
    let mut observer = proxy.client()?;
    observer.ask("PING")?;
    let before = proc_stats::resident_bytes(proxy.pid())?;
    let counted_before = observer.figure("proxy", "held_bytes")?;
    let clients = burden()?;
    let (mut counted, mut grown) = (0, 0);
    // Tables are counted several times a second.
    wait_until(&format!("{what}: what is held is counted"), PATIENCE, || {
        grown = proc_stats::resident_bytes(proxy.pid())?.saturating_sub(before);
        counted = observer.figure("proxy", "held_bytes")?.saturating_sub(counted_before);
        Ok(grown.abs_diff(counted) * 4 <= grown.max(counted))
    })
    .map_err(|error| io::Error::other(format!("{error}: {counted} bytes are counted and {grown} held")))?;
    assert!(grown > 8 << 20, "{what}: {grown} bytes are too few to compare");
    drop(clients);
    Ok(())
}

fn wait_for_requests(observer: &mut Client, count: u64) -> io::Result<()> {
    wait_until("all requests are read", PATIENCE, || Ok(observer.figure("proxy", "requests")? >= count))
}

#[test]
fn tiny_replies_behind_one_that_is_late_are_counted() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &PATIENT)?;
    let mut observer = proxy.client()?;
    observer.ask("GET k")?;
    let (crowd, pings) = (40, 50_000);
    server.pause()?;
    assert_counted(&proxy, "small replies", || {
        let mut clients = Vec::new();
        for _ in 0..crowd {
            let mut client = proxy.client()?;
            client.send(&request(&["GET", "k"]))?;
            client.send(&request(&["ECHO", "PONG"]).repeat(pings))?;
            clients.push(client);
        }
        wait_for_requests(&mut observer, (crowd * (pings + 1)) as u64)?;
        Ok(clients)
    })?;
    server.resume()
}

#[test]
fn large_replies_that_are_not_read_are_counted() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--client-output-soft-bytes", "16mb"])?;
    let mut observer = proxy.client()?;
    observer.command(&["SETRANGE", "large", &(600_000 - 1).to_string(), "x"])?;
    assert_counted(&proxy, "large replies", || {
        let mut clients = Vec::new();
        for _ in 0..4 {
            let mut client = proxy.client()?;
            client.send(&request(&["GET", "large"]).repeat(20))?;
            clients.push(client);
        }
        wait_until("all has come", PATIENCE, || Ok(observer.figure("proxy", "upstream_bytes_in")? > 4 * 20 * 600_000))?;
        Ok(clients)
    })
}

#[test]
fn messages_that_are_not_read_are_counted() -> io::Result<()> {
    let server = RedisServer::start()?;
    for (what, bytes, count) in [("short messages", 10, 200_000_usize), ("long messages", 10_000, 3_000)] {
        let proxy = proxy(&[server.tcp()], &["--tcp-user-timeout", "off"])?;
        let mut observer = proxy.client()?;
        assert_counted(&proxy, what, || {
            let mut clients = Vec::new();
            for _ in 0..5 {
                let mut client = proxy.client()?;
                client.ask("SUBSCRIBE channel")?;
                clients.push(client);
            }
            let publish = request(&["PUBLISH", "channel", &"x".repeat(bytes)]);
            for _ in 0..count / 1_000 {
                observer.send(&publish.repeat(1_000))?;
                observer.replies(1_000)?;
            }
            Ok(clients)
        })?;
    }
    Ok(())
}

/// What the program touches of itself once clients ask, and the kernel's pages of what is being copied to a larger place, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OF_ITS_OWN: u64 = 4 << 20;

/// For so long more has to be occupied to count. Where the process has to share its processors, what it gives back may take so long to go.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SUSTAINED: Duration = Duration::from_millis(500);

/// Bytes that a process occupies, looked at again and again.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
struct Occupied {
    pid: u32,
    before: u64,
    looks: Vec<(Instant, u64)>,
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
impl Occupied {
    fn new(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, before: proc_stats::resident_bytes(pid)?, looks: Vec::new() })
    }

    fn look(&mut self) -> io::Result<()> {
        let more = proc_stats::resident_bytes(self.pid)?.saturating_sub(self.before);
        self.looks.push((Instant::now(), more));
        Ok(())
    }

    /// What was occupied more than before, at every look for that long.
    fn sustained(&self) -> u64 {
        let last = self.looks.last().map_or_else(Instant::now, |look| look.0);
        let is_whole = |(_, (since, _)): &(usize, &(Instant, u64))| last - *since >= SUSTAINED;
        let least = |(first, (since, _)): (usize, &(Instant, u64))| {
            let during = self.looks[first..].iter().take_while(|(at, _)| *at - *since < SUSTAINED);
            during.map(|(_, bytes)| *bytes).min()
        };
        self.looks.iter().enumerate().filter(is_whole).filter_map(least).max().unwrap_or_default()
    }

    fn assert_within(&self, bound: u64, what: &str) {
        let (sustained, peak) = (self.sustained(), self.looks.iter().map(|look| look.1).max());
        let allowed = bound * 5 / 4 + OF_ITS_OWN;
        assert!(
            sustained <= allowed,
            "{what}: {sustained} bytes are occupied for long, {peak:?} at most, {allowed} are allowed"
        );
    }
}

/// Has a crowd ask for as long as it is read, while its node does not answer, with a bound of so many bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn assert_bounded(bound: u64, what: &str, asked: &[u8]) -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[&PATIENT[..], &["--process-bytes", &bound.to_string()]].concat())?;
    let mut observer = proxy.client()?;
    let mut clients = (0..60).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut clients {
        client.ask("GET k")?;
    }
    let mut occupied = Occupied::new(proxy.pid())?;
    server.pause()?;
    thread::scope(|scope| -> io::Result<()> {
        for client in &mut clients {
            client.set_timeout(Duration::from_secs(2))?;
            client.send(&request(&["GET", "k"]))?;
            // One that is not read any more sends no more, and one that is cut off cannot.
            scope.spawn(move || (0..10).try_for_each(|_| client.send(asked)));
        }
        let (mut held, mut felt) = (0, None);
        wait_until("the bound is felt", PATIENCE, || {
            occupied.look()?;
            held = held.max(observer.figure("proxy", "held_bytes")?);
            let is_felt = observer.figure("proxy", "clients_cut_off_for_memory")? > 2 || held * 10 > bound * 9;
            // What it comes to is seen a while later.
            Ok(is_felt && felt.get_or_insert_with(Instant::now).elapsed() > 2 * SUSTAINED)
        })
        .map_err(|error| io::Error::other(format!("{error}: {held} bytes are held at most")))
    })?;
    occupied.assert_within(bound, what);
    server.resume()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn the_process_stays_near_its_bound_with_small_replies() -> io::Result<()> {
    for (bound, bytes) in [(16 << 20, 4), (32 << 20, 4), (64 << 20, 100)] {
        let echoes = request(&["ECHO", &"x".repeat(bytes)]).repeat(20_000);
        assert_bounded(bound, &format!("replies of {bytes} bytes"), &echoes)?;
    }
    Ok(())
}

/// Large replies that no client reads, of which it is known how large they are only once they come; and a client that reads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn the_process_stays_near_its_bound_with_large_replies() -> io::Result<()> {
    const BOUND: u64 = 32 << 20;
    const BYTES: usize = 200_000;
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[&PATIENT[..], &["--process-bytes", &BOUND.to_string()]].concat())?;
    let mut observer = proxy.client()?;
    observer.command(&["SETRANGE", "large", &(BYTES - 1).to_string(), "x"])?;
    let mut clients = (0..60).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    let mut reader = proxy.client()?;
    let mut occupied = Occupied::new(proxy.pid())?;
    for client in &mut clients {
        client.send(&request(&["GET", "large"]).repeat(100))?;
    }
    let mut come = (Instant::now(), 0);
    wait_until("nothing comes any more", PATIENCE, || {
        occupied.look()?;
        reader.send(&request(&["STRLEN", "large"]).repeat(2))?;
        for reply in reader.replies(2)? {
            assert_eq!(reply, format!(":{BYTES}\r\n").as_bytes(), "who reads is answered");
        }
        let bytes = observer.figure("proxy", "upstream_bytes_in")?;
        let cut_off = observer.figure("proxy", "clients_cut_off_for_memory")?;
        if bytes > come.1 + BYTES as u64 {
            come = (Instant::now(), bytes);
        }
        Ok(cut_off > 0 && come.0.elapsed() > 2 * SUSTAINED)
    })?;
    occupied.assert_within(BOUND, "large replies");
    let held = observer.figure("proxy", "held_bytes")?;
    assert!(held <= BOUND, "{held} bytes are held of {BOUND}");
    assert!(occupied.sustained() > BOUND / 2, "{} bytes are too few to tell", occupied.sustained());
    Ok(())
}

/// Reads in the background, so many bytes in a second, until it is dropped or the connection ends.
#[cfg(target_os = "linux")]
fn read_slowly(client: &Client, bytes_per_s: u64, is_over: Arc<AtomicBool>) -> io::Result<thread::JoinHandle<()>> {
    let (mut stream, begin, mut got, mut piece) = (client.writer()?, Instant::now(), 0, [0; 4_096]);
    Ok(thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let due = begin.elapsed().as_millis() as u64 * bytes_per_s / 1_000;
            let wanted = due.saturating_sub(got).min(piece.len() as u64) as usize;
            match wanted {
                0 => thread::sleep(Duration::from_millis(5)),
                _ => match stream.read(&mut piece[..wanted]) {
                    Ok(0) | Err(_) => return,
                    Ok(bytes) => got += bytes as u64,
                },
            }
        }
    }))
}

/// Clients that are owed more than the process may hold, over sockets of both kinds: who reads slowly stays, and who takes nothing, or
/// next to nothing, does not.
#[cfg(target_os = "linux")]
#[test]
fn slow_readers_stay_and_those_that_take_nothing_go() -> io::Result<()> {
    const BYTES: usize = 100_000;
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[&PATIENT[..], &["--process-bytes", "16mb"]].concat())?;
    let mut observer = proxy.client()?;
    observer.command(&["SETRANGE", "large", &(BYTES - 1).to_string(), "x"])?;
    let is_over = Arc::new(AtomicBool::new(false));
    let slow = [100_000, 200_000, 600_000].into_iter().cycle().take(24);
    // Clients are accepted only while there is room.
    let connect = |(number, pace): (usize, u64)| {
        let mut client = if number % 2 == 1 { Client::connect(&proxy.unix())? } else { proxy.client()? };
        assert_eq!(client.ask(&format!("CLIENT SETNAME reads-{pace}-{number}"))?, "+OK\r\n");
        Ok((client, pace))
    };
    let paces = [0; 6].into_iter().chain([1; 6]).chain(slow).enumerate();
    let mut clients = paces.map(connect).collect::<io::Result<Vec<_>>>()?;
    let mut readers = Vec::new();
    for (number, (client, pace)) in clients.iter_mut().enumerate() {
        if number == 12 {
            // What kernels hold for those that take nothing is not to be waited for below.
            wait_until("connections are full", PATIENCE, || Ok(observer.figure("proxy", "held_bytes")? > 8 << 20))?;
        }
        client.send(&request(&["GET", "large"]).repeat(300))?;
        readers.push(read_slowly(client, *pace, Arc::clone(&is_over))?);
    }
    let begin = Instant::now();
    let mut left = Vec::new();
    wait_until("those that take nothing have gone", PATIENCE, || {
        let list = observer.ask("CLIENT LIST")?;
        let named = |word: &str| word.strip_prefix("name=reads-").map(str::to_owned);
        left = list.split_whitespace().filter_map(named).collect();
        let slow = left.iter().filter(|name| !name.starts_with("0-") && !name.starts_with("1-")).count();
        assert_eq!(slow, 24, "after {:?} there are {left:?}", begin.elapsed());
        // For as long a slow one could be taken for one that takes nothing.
        Ok(left.len() == slow && begin.elapsed() > Duration::from_secs(8))
    })
    .map_err(|error| io::Error::other(format!("{error}: {left:?}")))?;
    assert!(observer.figure("proxy", "nodes_left_unread")? > 0, "memory was not short");
    is_over.store(true, Ordering::Relaxed);
    drop(clients);
    drop(proxy);
    readers.into_iter().for_each(|reader| reader.join().expect("a reader does not panic"));
    Ok(())
}

/// Where the allocator is the system's, it may keep what it likes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn memory_is_given_back_soon_after_a_burst() -> io::Result<()> {
    let servers = [RedisServer::start()?, RedisServer::start()?];
    let proxy = proxy(&[servers[0].tcp(), servers[1].tcp()], &[])?;
    let mut observer = proxy.client()?;
    let names: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();
    for name in &names {
        observer.command(&["SET", name, &"x".repeat(1_000)])?;
    }
    let before = proc_stats::resident_bytes(proxy.pid())?;
    proc_stats::reset_peak(proxy.pid())?;
    let all: Vec<&str> = std::iter::once("MGET").chain(names.iter().map(String::as_str)).collect();
    let mut pipeline: Vec<u8> = names.iter().flat_map(|name| request(&["GET", name])).collect();
    pipeline.extend(request(&all).repeat(10));
    let mut clients = (0..600).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut clients {
        client.send(&pipeline)?;
    }
    for client in &mut clients {
        client.replies(names.len() + 10)?;
    }
    let peak = proc_stats::peak_resident_bytes(proxy.pid())?;
    assert!(peak * 2 > before * 3, "{before} bytes before and {peak} at the peak are too few to compare");
    drop(clients);
    let mut after = 0;
    wait_until("memory is given back", GIVEN_BACK, || {
        after = proc_stats::resident_bytes(proxy.pid())?;
        Ok(after * 2 <= before * 3)
    })
    .map_err(|error| io::Error::other(format!("{error}: {before} bytes before, {peak} at the peak, {after} after")))
}
