//! What the process says it holds is what it holds, and it gives back what it does not hold any more.

use std::io;
use std::time::Duration;

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
