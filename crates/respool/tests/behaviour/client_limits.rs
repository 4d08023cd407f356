//! What clients of an embedded server may be owed for a time, and hold together.

use std::io;
use std::path::Path;

use respool_testkit::{Client, PATIENCE, Respool, wait_until};

use super::proxy;

fn named(server: &Respool, name: &str) -> io::Result<Client> {
    let mut client = server.client()?;
    assert_eq!(client.command(&["CLIENT", "SETNAME", name])?, b"+OK\r\n");
    Ok(client)
}

/// Sends so many bytes of a request that does not end with them.
fn begin_request(client: &mut Client, bytes: usize) -> io::Result<()> {
    client.send(b"*2\r\n$3\r\nGET\r\n$100000000\r\n")?;
    client.send(&vec![b'x'; bytes])
}

#[test]
fn a_subscriber_beyond_its_soft_limit_goes_in_time() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let mut client = server.client()?;
    client.command(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 100000 1"])?;
    let mut subscribers = [named(&server, "slow")?, named(&server, "quick")?];
    for subscriber in &mut subscribers {
        subscriber.ask("SUBSCRIBE channel")?;
    }
    let [_slow, quick] = &mut subscribers;
    let message = "x".repeat(64 * 1024);
    wait_until("the subscriber that does not read is disconnected", PATIENCE, || {
        client.command(&["PUBLISH", "channel", &message])?;
        quick.reply()?;
        Ok(!client.ask("CLIENT LIST")?.contains("name=slow"))
    })?;
    assert!(client.ask("CLIENT LIST")?.contains("name=quick"));
    Ok(())
}

#[test]
fn those_that_hold_most_go_when_all_hold_too_much() -> io::Result<()> {
    let server = proxy(&[], &[])?;
    let mut client = server.client()?;
    client.command(&["CONFIG", "SET", "maxmemory-clients", "16mb"])?;
    let (mut large, mut small) = (named(&server, "large")?, named(&server, "small")?);
    // Buffers have room for more than is in them: up to three times as much counts.
    begin_request(&mut small, 3_000_000)?;
    wait_until("the first part is there", PATIENCE, || Ok(client.ask("CLIENT LIST")?.contains("qbuf=3000025 ")))?;
    assert_eq!(client.figure("stats", "evicted_clients")?, 0);
    // It may be disconnected while it still sends.
    match begin_request(&mut large, 14_000_000) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => return Err(error),
        _ => {}
    }
    wait_until("the largest is disconnected", PATIENCE, || Ok(!client.ask("CLIENT LIST")?.contains("name=large")))?;
    assert!(client.ask("CLIENT LIST")?.contains("name=small"));
    assert_eq!(client.figure("stats", "evicted_clients")?, 1);

    let mut kept = named(&server, "kept")?;
    assert_eq!(kept.ask("CLIENT NO-EVICT on")?, "+OK\r\n");
    begin_request(&mut kept, 14_000_000)?;
    wait_until("the next one is disconnected", PATIENCE, || Ok(!client.ask("CLIENT LIST")?.contains("name=small")))?;
    assert!(client.ask("CLIENT LIST")?.contains("name=kept"));
    Ok(())
}

#[test]
fn every_worker_counts_clients_disconnected_for_memory() -> io::Result<()> {
    let binary = Path::new(env!("CARGO_BIN_EXE_respool"));
    let server = Respool::start(binary, &[], &["--workers", "2", "--admin-commands", "allow"])?;
    let mut client = server.client()?;
    client.command(&["CONFIG", "SET", "maxmemory-clients", "4mb"])?;
    let mut large = named(&server, "large")?;
    match begin_request(&mut large, 14_000_000) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => return Err(error),
        _ => {}
    }
    wait_until("it is disconnected", PATIENCE, || Ok(!client.ask("CLIENT LIST")?.contains("name=large")))?;
    // Connections are spread over the workers.
    let mut askers = (0..8).map(|_| server.client()).collect::<io::Result<Vec<_>>>()?;
    for asker in &mut askers {
        assert_eq!(asker.figure("stats", "evicted_clients")?, 1);
    }
    Ok(())
}
