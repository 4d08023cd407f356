//! What clients name and the process remembers for them: tracked keys, channels, prefixes. It is in a budget, and who fills that
//! goes, and others are served.

use std::io;

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, wait_until};

use super::proxy;

const NAME_BYTES: usize = 50_000;

fn name(number: usize) -> String {
    format!("{number:0NAME_BYTES$}")
}

/// Whether others are served, and more of them accepted.
fn is_served(proxy: &Respool, other: &mut Client) -> io::Result<bool> {
    let mut next = proxy.client()?;
    let answers = [other.ask("SET other 1"), next.ask("GET other")];
    Ok(answers
        .into_iter()
        .zip(["+OK\r\n", "$1\r\n1\r\n"])
        .all(|(answer, expected)| answer.is_ok_and(|it| it == expected)))
}

fn assert_served(proxy: &Respool, other: &mut Client) -> io::Result<()> {
    assert!(is_served(proxy, other)?);
    Ok(())
}

/// Has a client do something again and again, until it is refused or disconnected, `most` times at most. Returns whether it is still connected.
fn fill(client: &mut Client, most: usize, ask: impl Fn(&mut Client, usize) -> io::Result<Vec<u8>>) -> bool {
    for number in 0..most {
        match ask(client, number) {
            Ok(reply) if reply.starts_with(b"-") => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

fn held(observer: &mut Client) -> io::Result<u64> {
    observer.figure("proxy", "held_bytes")
}

#[test]
fn tracked_keys_are_a_share_of_what_the_process_may_hold() -> io::Result<()> {
    let server = RedisServer::start()?;
    for nodes in [vec![server.tcp()], Vec::new()] {
        let proxy = proxy(&nodes, &["--process-bytes", "16mb"])?;
        let mut other = proxy.client()?;
        let mut tracker = proxy.client()?;
        tracker.ask("HELLO 3")?;
        tracker.ask("CLIENT TRACKING ON")?;
        for number in 0..400 {
            tracker.send_command(&["GET", &name(number)])?;
            while tracker.reply()?.starts_with(b">") {}
        }
        // The oldest are told of as if they had changed.
        wait_until("keys are evicted", PATIENCE, || {
            Ok(other.figure("proxy", "tracked_keys")? < 100 && held(&mut other)? < 8 << 20)
        })?;
        assert_served(&proxy, &mut other)?;
        drop(tracker);
        wait_until("nothing is tracked", PATIENCE, || Ok(other.figure("proxy", "tracked_keys")? == 0))?;
    }
    Ok(())
}

#[test]
fn who_names_channels_beyond_what_may_be_held_is_refused() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--process-bytes", "16mb"])?;
    let mut other = proxy.client()?;
    let mut subscriber = proxy.client()?;
    fill(&mut subscriber, 400, |client, number| client.command(&["SUBSCRIBE", &name(number)]));
    assert_served(&proxy, &mut other)?;
    // The rest comes from others: who named most goes.
    let mut large = proxy.client()?;
    large.send(b"*2\r\n$4\r\nECHO\r\n$14000000\r\n")?;
    let part = vec![b'x'; 100_000];
    for _ in 0..139 {
        if large.send(&part).is_err() {
            break;
        }
    }
    wait_until("others are served", PATIENCE, || is_served(&proxy, &mut other))?;
    drop((subscriber, large));
    wait_until("what they had is given back", PATIENCE, || Ok(held(&mut other)? < 2 << 20))
}

#[test]
fn a_client_that_is_not_evicted_stops_no_other() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--process-bytes", "16mb"])?;
    let mut other = proxy.client()?;
    let mut spared = proxy.client()?;
    assert_eq!(spared.ask("CLIENT NO-EVICT ON")?, "+OK\r\n");
    let _: io::Result<()> =
        spared.send(b"*2\r\n$4\r\nPING\r\n$40000000\r\n").and_then(|()| spared.send(&vec![b'x'; 17_500_000]));
    wait_until("others are served", PATIENCE, || is_served(&proxy, &mut other))?;
    drop(spared);
    wait_until("what it had is given back", PATIENCE, || Ok(held(&mut other)? < 2 << 20))
}

#[test]
fn a_client_that_leaves_while_too_much_is_held_gives_it_back() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--process-bytes", "16mb"])?;
    let mut other = proxy.client()?;
    for number in 0..4 {
        let mut subscriber = proxy.client()?;
        subscriber.ask("CLIENT NO-EVICT ON")?;
        fill(&mut subscriber, 300, |client, channel| client.command(&["SUBSCRIBE", &name(1_000 * number + channel)]));
        // It sends on, and is not read while too much is held.
        let _: io::Result<()> = subscriber.send(&vec![b'x'; 60_000]);
        drop(subscriber);
        wait_until("it is forgotten", PATIENCE, || Ok(is_served(&proxy, &mut other)? && held(&mut other)? < 4 << 20))?;
    }
    Ok(())
}
