//! Large replies: no other client waits behind them, they are held only as far as their budget goes, and order is kept.

use std::io;
use std::time::Duration;

use respool_testkit::{PATIENCE, RedisServer, proc_stats, request, wait_until};

use super::{Four, proxy};

const LARGE: usize = 24 << 20;

/// The first large reply begins on the shared connection, because its size is not known before; from then on that is the
/// client's own.
fn make_large(client: &mut respool_testkit::Client, key: &str) -> io::Result<()> {
    client.command(&["SETRANGE", key, &(LARGE - 1).to_string(), "x"])?;
    assert!(client.command(&["GET", key])?.len() > LARGE);
    Ok(())
}

#[test]
fn a_large_reply_to_a_slow_reader_stays_in_the_node() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--client-output-soft-bytes", "1mb"])?;
    let mut other = proxy.client()?;
    other.ask("SET small v")?;
    let mut client = proxy.client()?;
    let before = proc_stats::resident_bytes(proxy.pid())?;
    make_large(&mut client, "large")?;
    assert_eq!(proxy.client()?.figure("proxy", "clients_large")?, 1);
    // Measured from what the process had before: the pages of the program itself are as many as a large reply in a debug build.
    let mut idle = 0;
    wait_until("the first reply's memory is given back", PATIENCE, || {
        idle = proc_stats::resident_bytes(proxy.pid())?;
        Ok(idle < before + (LARGE / 4) as u64)
    })?;
    client.send(&request(&["GET", "large"]).repeat(4))?;
    for _ in 0..2_000 {
        assert_eq!(other.ask("GET small")?, "$1\r\nv\r\n");
    }
    let held = proc_stats::resident_bytes(proxy.pid())?.saturating_sub(idle);
    assert!(held < 6 << 20, "{held} bytes are held of a reply that is not read");
    for reply in client.replies(4)? {
        assert_eq!(reply.len(), LARGE + 13);
    }
    Ok(())
}

#[test]
fn a_slow_reader_has_no_deadline_while_it_reads() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--client-output-soft-bytes", "64kb", "--request-timeout", "2s"])?;
    let mut client = proxy.client()?;
    make_large(&mut client, "large")?;
    client.send(&request(&["GET", "large"]))?;
    let mut other = proxy.client()?;
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(2_500) {
        assert_eq!(other.ask("PING")?, "+PONG\r\n");
    }
    assert_eq!(client.replies(1)?[0].len(), LARGE + 13);
    assert_eq!(client.ask("PING")?, "+PONG\r\n");
    Ok(())
}

/// Requests of one client that go partly over its own and partly over shared connections keep their order.
#[test]
fn order_is_kept_between_own_and_shared_connections() -> io::Result<()> {
    let four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let (key, far) = (&four.keys[0], &four.keys[1]);
    let large = format!("{{{key}}}large");
    make_large(&mut client, &large)?;
    client.command(&["SET", key, "0"])?;
    client.command(&["SET", far, "0"])?;
    let rounds = 50;
    let mut batch = Vec::new();
    for round in 1..=rounds {
        let round = round.to_string();
        batch.extend(request(&["STRLEN", &large]));
        batch.extend(request(&["INCR", key]));
        batch.extend(request(&["INCR", far]));
        batch.extend(request(&["MGET", key, far]));
        batch.extend(request(&["MSET", key, &round, far, &round]));
        batch.extend(request(&["GET", key]));
        batch.extend(request(&["PING", &round]));
    }
    client.send(&batch)?;
    let replies = client.replies(rounds * 7)?;
    for (round, replies) in (1..).zip(replies.chunks(7)) {
        let number = format!("${}\r\n{round}\r\n", round.to_string().len());
        let expected = [
            format!(":{LARGE}\r\n"),
            format!(":{round}\r\n"),
            format!(":{round}\r\n"),
            format!("*2\r\n{number}{number}"),
            "+OK\r\n".to_owned(),
            number.clone(),
            number,
        ];
        let got: Vec<_> = replies.iter().map(|r| String::from_utf8_lossy(r).into_owned()).collect();
        assert_eq!(got, expected, "round {round}");
    }
    assert_eq!(four.proxy.client()?.figure("proxy", "clients_large")?, 1);
    Ok(())
}

/// A client that leaves in the middle of a large reply takes its connection along; the next client gets a fresh one.
#[test]
fn a_reader_that_leaves_takes_its_connection_along() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--client-output-soft-bytes", "1mb"])?;
    let mut control = server.client()?;
    let mut connections = || -> io::Result<usize> { Ok(control.ask("CLIENT LIST")?.matches("id=").count()) };
    let before = {
        let mut client = proxy.client()?;
        make_large(&mut client, "large")?;
        connections()?
    };
    for _ in 0..5 {
        let mut client = proxy.client()?;
        assert!(client.command(&["GET", "large"])?.len() > LARGE);
        client.send(&request(&["GET", "large"]).repeat(2))?;
        wait_until("its own connection is there", PATIENCE, || Ok(connections()? > before))?;
        drop(client);
        wait_until("its own connection is gone", PATIENCE, || Ok(connections()? <= before + 1))?;
    }
    let mut client = proxy.client()?;
    assert_eq!(client.ask("STRLEN large")?, format!(":{LARGE}\r\n"));
    Ok(())
}

/// Reads `count` replies of `bytes` each as fast as they come, at most `speed` bytes a second.
fn read_at(client: respool_testkit::Client, speed: usize, whole: usize) -> io::Result<usize> {
    use std::io::Read;
    let (mut stream, begun) = client.into_parts();
    stream.set_read_timeout(Some(PATIENCE))?;
    let (started, mut received, mut piece) = (std::time::Instant::now(), begun.len(), vec![0; 64 << 10]);
    while received < whole {
        let due = Duration::from_micros((received as u64) * 1_000_000 / speed as u64);
        std::thread::sleep(due.saturating_sub(started.elapsed()));
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => received += count,
            Err(error) => return Err(io::Error::new(error.kind(), format!("{error}, after {received} bytes"))),
        }
    }
    Ok(received)
}

/// Neither the first large reply of a client nor many of them at once are held, however slowly they are read.
#[test]
fn large_replies_are_read_as_fast_as_their_client_reads() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--client-output-hard-bytes", "8mb", "--request-timeout", "5s"])?;
    let mut other = proxy.client()?;
    other.command(&["SETRANGE", "large", &(LARGE - 1).to_string(), "x"])?;
    other.ask("SET small v")?;
    let idle = proc_stats::resident_bytes(proxy.pid())?;
    proc_stats::reset_peak(proxy.pid())?;
    for count in [1, 3] {
        let mut client = proxy.client()?;
        client.send(&request(&["GET", "large"]).repeat(count))?;
        let whole = count * (LARGE + 13);
        assert_eq!(read_at(client, 10 << 20, whole)?, whole);
        assert_eq!(other.ask("GET small")?, "$1\r\nv\r\n");
    }
    let peak = proc_stats::peak_resident_bytes(proxy.pid())?.saturating_sub(idle);
    assert!(peak < 10 << 20, "{peak} bytes were held");
    assert_eq!(other.figure("proxy", "clients_cut_off")?, 0);
    Ok(())
}

#[test]
fn a_client_that_reads_nothing_holds_up_no_other() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--tcp-user-timeout", "off"])?;
    let mut other = proxy.client()?;
    other.command(&["SETRANGE", "large", "99999", "x"])?;
    other.ask("SET small v")?;
    let idle = proc_stats::resident_bytes(proxy.pid())?;
    let mut greedy = proxy.client()?;
    // It is read no further long before the end of that.
    let pipeline = request(&["GET", "large"]).repeat(20_000);
    let mut writer = greedy.writer()?;
    let sender = std::thread::spawn(move || io::Write::write_all(&mut writer, &pipeline));
    for _ in 0..300 {
        assert_eq!(other.ask("GET small")?, "$1\r\nv\r\n");
        std::thread::sleep(Duration::from_millis(2));
    }
    let held = proc_stats::resident_bytes(proxy.pid())?.saturating_sub(idle);
    assert!(held < 16 << 20, "{held} bytes are held for one client");
    for _ in 0..1_000 {
        assert_eq!(greedy.reply()?.len(), 100_011);
    }
    drop(greedy);
    // It is cut off by our leaving.
    let _ = sender.join();
    assert_eq!(other.figure("proxy", "nodes_ejected")?, 0);
    Ok(())
}

/// A client may pause for longer than its connection may be silent: its kernel says that it is there.
#[test]
fn a_reader_that_pauses_behind_a_full_window_is_not_given_up() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--tcp-user-timeout", "300ms"])?;
    let mut client = proxy.client()?;
    client.command(&["SETRANGE", "large", &(LARGE - 1).to_string(), "x"])?;
    client.send(&request(&["GET", "large"]))?;
    let mut other = proxy.client()?;
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(2_500) {
        assert_eq!(other.ask("PING")?, "+PONG\r\n");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.reply()?.len(), LARGE + 13);
    assert_eq!(client.ask("PING")?, "+PONG\r\n");
    Ok(())
}
