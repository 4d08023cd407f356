//! What a crowd can do to one who behaves: many that are slow or rude, many that wait, and nodes that die under counters.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Client, PATIENCE, RedisServer, Respool, Rng, request, wait_until};

use super::proxy;

/// How long a GET takes while something else goes on: the median and the 99th of a hundred.
fn latencies(client: &mut Client, count: usize) -> io::Result<(Duration, Duration)> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        client.ask("GET k")?;
        all.push(started.elapsed());
    }
    all.sort_unstable();
    Ok((all[count / 2], all[count * 99 / 100]))
}

/// T-SLOW: connections that send a byte now and then and never authenticate, and others that send garbage and come again,
/// cost the good ones little; those that never say who they are are gone after their time.
#[test]
fn slow_and_rude_clients_do_not_hold_up_others() -> io::Result<()> {
    const SLOW: usize = 300;
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--requirepass", "secret", "--auth-timeout", "4s"])?;
    let mut good = proxy.client()?;
    assert_eq!(good.ask("AUTH secret")?, "+OK\r\n");
    latencies(&mut good, 200)?;
    let (alone, _) = latencies(&mut good, 500)?;
    let mut slow: Vec<Client> = (0..SLOW).map(|_| proxy.client()).collect::<io::Result<_>>()?;
    let is_over = AtomicBool::new(false);
    let address = proxy.tcp();
    let (beside, garbage) = thread::scope(|scope| {
        let rude = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::SeqCst) {
                let rude = Client::connect(&address).and_then(|mut client| {
                    client.send(b"*1\r\n$x\r\n")?;
                    client.read_to_close()
                });
                count += usize::from(rude.is_ok_and(|words| words.starts_with(b"-ERR Protocol error")));
            }
            count
        });
        let drip = request(&["AUTH", "secret"]);
        for byte in drip.iter().take(8) {
            for client in &mut slow {
                // Some may be gone already.
                let _ = client.send(&[*byte]);
            }
        }
        let beside = latencies(&mut good, 500);
        is_over.store(true, Ordering::SeqCst);
        (beside, rude.join().expect("it does not panic"))
    });
    let (median, _) = beside?;
    assert!(garbage > 10, "{garbage} rude clients were told so");
    // The cores are shared with the programs that make the noise and with whatever else runs, so this is generous: a loop that
    // is held up takes seconds.
    assert!(median < alone * 20 + Duration::from_millis(500), "{alone:?} alone, {median:?} beside {SLOW} others");
    wait_until("unauthenticated clients are closed after auth_timeout", PATIENCE, || {
        Ok(good.ask("INFO proxy")?.contains("clients:1\r\n"))
    })?;
    assert!(slow.iter_mut().all(|client| client.read_to_close().is_ok()));
    assert_eq!(good.ask("PING")?, "+PONG\r\n");
    Ok(())
}

/// T-RETRY: what may have been executed is never sent again. A counter is as large as the successes, or larger by what
/// that are not known.
#[test]
fn nothing_is_done_twice_while_connections_break() -> io::Result<()> {
    const CLIENTS: usize = 6;
    const EACH: usize = 400;
    let node = RedisServer::start()?;
    let proxy = proxy(&[node.tcp()], &["--reconnect-min", "1ms", "--reconnect-max", "5ms"])?;
    let (successes, unknowns) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| -> io::Result<()> {
        let breaker = scope.spawn(|| -> io::Result<usize> {
            let mut direct = node.client()?;
            let mut breaks = 0;
            while !is_over.load(Ordering::SeqCst) {
                let killed = direct.ask("CLIENT KILL TYPE normal SKIPME yes")?;
                breaks += usize::from(killed != ":0\r\n");
                thread::yield_now();
            }
            Ok(breaks)
        });
        let counting: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| -> io::Result<()> {
                    let mut client = proxy.client()?;
                    for _ in 0..EACH {
                        let reply = client.ask("INCR counter")?;
                        if reply.starts_with(':') {
                            successes.fetch_add(1, Ordering::SeqCst);
                        } else if reply.contains("may or may not have been executed") {
                            unknowns.fetch_add(1, Ordering::SeqCst);
                        } else {
                            assert!(reply.contains("was not sent"), "{reply}");
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let counted: io::Result<Vec<()>> =
            counting.into_iter().map(|one| one.join().expect("it does not panic")).collect();
        is_over.store(true, Ordering::SeqCst);
        let breaks = breaker.join().expect("it does not panic")?;
        counted?;
        assert!(breaks > 0, "no connection was broken");
        Ok(())
    })?;
    let (successes, unknowns) = (successes.into_inner(), unknowns.into_inner());
    let reply = node.client()?.ask("GET counter")?;
    let counter: usize = reply.split("\r\n").nth(1).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    assert!(counter >= successes && counter <= successes + unknowns, "{successes} <= {counter} <= +{unknowns}");
    Ok(())
}

/// T-BLK: a crowd waits for one key while it becomes something else and comes back, clients are killed, and others push.
#[test]
fn many_waiters_are_served_or_told_whatever_becomes_of_the_key() -> io::Result<()> {
    const WAITING: usize = 200;
    let node = RedisServer::start()?;
    let arguments = ["--workers", "2", "--blocking-connections-max", "16"];
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_respool"));
    let proxy = Respool::start(binary, &[node.tcp()], &arguments)?;
    let mut rng = Rng::new(5);
    let mut crowd: Vec<Client> = (0..WAITING).map(|_| proxy.client()).collect::<io::Result<_>>()?;
    for (number, client) in crowd.iter_mut().enumerate() {
        if number % 4 == 0 {
            client.send_command(&["XREAD", "BLOCK", "3000", "STREAMS", "s", "0"])?;
        } else {
            client.send_command(&["BLPOP", "l", "3"])?;
        }
    }
    let mut boss = proxy.client()?;
    wait_until("they all wait", PATIENCE, || {
        Ok(boss.ask("INFO proxy")?.contains(&format!("blocked_clients:{WAITING}\r\n")))
    })?;
    let ids: Vec<String> = boss
        .ask("CLIENT LIST")?
        .lines()
        .filter(|line| line.contains("cmd=blpop"))
        .filter_map(|line| Some(line.split_once("id=")?.1.split_once(' ')?.0.to_owned()))
        .collect();
    let mut pushed = 0;
    let mut killed = 0;
    for round in 0..100 {
        match rng.below(5) {
            0 => {
                boss.ask("SET l text")?;
                boss.ask("DEL l")?;
            }
            1 if round < 60 => {
                let id = rng.pick(&ids).clone();
                killed += usize::from(boss.command(&["CLIENT", "KILL", "ID", &id])? == b":1\r\n");
            }
            2 => _ = boss.ask("XADD s * f v")?,
            _ => {
                boss.ask("RPUSH l element")?;
                pushed += 1;
            }
        }
    }
    let (mut served, mut told, mut gone) = (0, 0, 0);
    for client in &mut crowd {
        match client.reply() {
            Ok(reply) if reply.starts_with(b"*2\r\n$1\r\nl") => served += 1,
            Ok(_) => told += 1,
            Err(_) => gone += 1,
        }
    }
    // Who was killed behind its reply has it.
    assert!(served + told + gone == WAITING && gone <= killed, "{served} served, {told} told, {gone} of {killed} gone");
    let left = boss.ask("LLEN l")?;
    assert_eq!(format!(":{}\r\n", pushed - served), left, "{pushed} pushed, {served} served: none is lost");
    assert!(boss.ask("INFO proxy")?.contains("blocked_clients:0\r\n"));
    Ok(())
}

/// An embedded server, or node, holds what it may and no more; what is there can be read and removed.
#[test]
fn an_embedded_server_holds_what_it_may() -> io::Result<()> {
    for node in [&[][..], &["--node", "embedded:"]] {
        let server = proxy(&[], &[&["--maxmemory", "4mb"], node].concat())?;
        let mut client = server.client()?;
        let mut refusal = String::new();
        let mut kept = 0;
        while refusal.is_empty() && kept < 100 {
            match client.ask(&format!("SET k{kept} {}", "x".repeat(100_000)))? {
                reply if reply == "+OK\r\n" => kept += 1,
                reply => refusal = reply,
            }
        }
        assert_eq!(refusal, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        assert!((35..=45).contains(&kept), "{kept} values of 100 KB");
        assert_eq!(client.ask("STRLEN k0")?, ":100000\r\n");
        assert_eq!(client.ask("DEL k0 k1 k2")?, ":3\r\n");
        assert_eq!(client.ask("SET k0 v")?, "+OK\r\n");
    }
    Ok(())
}

/// An embedded node has no limits of its own that a worker would not know of: to refuse is to end a connection that clients share.
#[test]
fn what_a_worker_lets_pass_an_embedded_node_takes() -> io::Result<()> {
    let proxy = proxy(&[], &["--node", "embedded:", "--request-elements-max", "2000000"])?;
    let (mut client, mut other) = (proxy.client()?, proxy.client()?);
    other.command(&["SET", "k", "1"])?;
    let mut words = vec!["x"; 1_200_000];
    words[0] = "EXISTS";
    client.send(&request(&words))?;
    other.send_command(&["GET", "k"])?;
    assert_eq!(client.reply()?, b":0\r\n");
    assert_eq!(other.reply()?, b"$1\r\n1\r\n");
    client.send(b"*2000001\r\n")?;
    assert!(client.read_to_close()?.starts_with(b"-ERR Protocol error"));
    assert_eq!(other.command(&["GET", "k"])?, b"$1\r\n1\r\n");
    Ok(())
}
