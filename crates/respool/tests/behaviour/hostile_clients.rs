//! Bytes that confuse lenient servers: the proxy takes them apart strictly, and nothing doubtful is passed on.

use std::io;

use std::path::Path;
use std::time::Duration;

use respool_testkit::{Act, Client, FakeBackend, Gate, PATIENCE, Respool, proc_stats, request, wait_until};

use super::{proxy, wait_for_reply};

struct Stage {
    node: FakeBackend,
    proxy: Respool,
}

impl Stage {
    fn set() -> io::Result<Stage> {
        let node = FakeBackend::start(|_| Act::Usual)?;
        let proxy = proxy(&[node.address()], &[])?;
        wait_for_reply(&mut proxy.client()?, &["GET", "first"], b"$14\r\nvalue-of-first\r\n")?;
        Ok(Stage { node, proxy })
    }

    /// All that comes back for `bytes` until Respool closes the connection.
    fn last_words(&self, bytes: &[u8]) -> io::Result<String> {
        let mut client = self.proxy.client()?;
        client.send(bytes)?;
        client.read_to_close().map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// The node saw the first GET and nothing else.
    fn assert_nothing_passed(&self, what: &[u8]) {
        assert_eq!(self.node.received().len(), 1, "{}: {:?}", what.escape_ascii(), self.node.received());
    }
}

#[test]
fn malformed_requests_end_the_connection_and_nothing_runs_after() -> io::Result<()> {
    let stage = Stage::set()?;
    let set = "*3\r\n$3\r\nSET\r\n$6\r\ncanary\r\n$1\r\n1\r\n";
    for bad in [
        "*1\r\n$4\r\nPINGxx",
        "*2147483648\r\n",
        "*1\r\n$536870913\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$+4\r\nPING\r\n",
        "*01\r\n$4\r\nPING\r\n",
        "* 1\r\n$4\r\nPING\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*1\r\n",
        "*1\r\n$04\r\nPING\r\n",
        "SET a \"b\r\n",
        "*1048577000000000000000000\r\n",
    ] {
        let bytes = [bad, set].concat();
        let words = stage.last_words(bytes.as_bytes()).unwrap_or_else(|error| panic!("{bad:?}: {error}"));
        assert!(words.starts_with("-ERR Protocol error: "), "{bad:?} got {words:?}");
        assert_eq!(words.matches("\r\n").count(), 1, "{bad:?} got {words:?}");
        stage.assert_nothing_passed(bad.as_bytes());
    }
    Ok(())
}

#[test]
fn other_protocols_are_cut_off_without_a_word() -> io::Result<()> {
    let stage = Stage::set()?;
    let body = "SET canary 1\r\n";
    for bad in [
        format!("POST / HTTP/1.1\r\nHost: x\r\n\r\n{body}"),
        format!("post / HTTP/1.1\r\n{body}"),
        format!("GET / HTTP/1.1\r\nHost: x\r\n\r\n{body}"),
        format!("host: x\r\n{body}"),
        format!("*2\r\n$4\r\nPOST\r\n$1\r\n/\r\n{body}"),
    ] {
        let words = stage.last_words(bad.as_bytes())?;
        assert!(!words.contains("OK") && !words.contains("value-of-canary"), "{bad:?} got {words:?}");
        let commands: Vec<String> = stage.node.received().iter().map(|request| request.command()).collect();
        assert!(!commands.contains(&"SET".to_owned()), "{bad:?} ran {commands:?}");
    }
    Ok(())
}

#[test]
fn a_nul_byte_hangs_no_other_client() -> io::Result<()> {
    let stage = Stage::set()?;
    let mut odd = stage.proxy.client()?;
    odd.send(b"\0PING\r\n")?;
    let mut good = stage.proxy.client()?;
    assert_eq!(good.ask("GET k")?, "$10\r\nvalue-of-k\r\n");
    assert!(stage.node.received().iter().all(|request| request.command() == "GET"));
    Ok(())
}

#[test]
fn requests_without_a_reply_get_none() -> io::Result<()> {
    let stage = Stage::set()?;
    let mut client = stage.proxy.client()?;
    client.send(b"*0\r\n*-1\r\n*-5\r\n\r\n   \r\nGET a\r\n*0\r\nPING\nPING\r\n")?;
    assert_eq!(client.replies(3)?, [&b"$10\r\nvalue-of-a\r\n"[..], b"+PONG\r\n", b"+PONG\r\n"]);
    Ok(())
}

/// Respool counts a request per reply only if it sends every request in one form.
#[test]
fn inline_requests_reach_the_node_as_arrays() -> io::Result<()> {
    let stage = Stage::set()?;
    let mut client = stage.proxy.client()?;
    client.send(b"set  \"a b\" '\\'x' \r\nSET \"\\x41\\x4\" v\n")?;
    client.replies(2)?;
    let received = stage.node.received();
    assert_eq!(received[1].arguments, [&b"set"[..], b"a b", b"'x"]);
    assert_eq!(received[2].arguments, [&b"SET"[..], b"Ax4", b"v"]);
    Ok(())
}

#[test]
fn line_ends_in_names_and_arguments_stay_inside_one_reply() -> io::Result<()> {
    let stage = Stage::set()?;
    let mut client = stage.proxy.client()?;
    for arguments in [&["NO\r\n+OK\r\nSUCH", "a\r\n$1\r\nb"][..], &["CLIENT", "SET\r\n+OK"], &["GET", "a\r\nb", "c"]] {
        client.send(&[request(arguments), request(&["PING"])].concat())?;
        let reply = client.reply()?;
        assert!(reply.starts_with(b"-"), "{}", reply.escape_ascii());
        assert_eq!(client.reply()?, b"+PONG\r\n", "{arguments:?}");
    }
    let key = "a\r\n*1\r\n$4\r\nPING";
    client.command(&["GET", key])?;
    assert_eq!(stage.node.received().last().map(|request| request.key().to_vec()), Some(key.as_bytes().to_vec()));
    Ok(())
}

/// Memory follows the bytes that came, not the numbers that were declared.
#[test]
fn declared_lengths_cost_nothing() -> io::Result<()> {
    let stage = Stage::set()?;
    let before = proc_stats::resident_bytes(stage.proxy.pid())?;
    let mut clients: Vec<Client> = Vec::new();
    for number in 0..100 {
        let mut client = stage.proxy.client()?;
        client.send(if number % 2 == 0 { b"*1048576\r\n" } else { b"*2\r\n$3\r\nGET\r\n$500000000\r\nab" })?;
        clients.push(client);
    }
    let mut good = stage.proxy.client()?;
    assert_eq!(good.ask("GET k")?, "$10\r\nvalue-of-k\r\n");
    let grown = proc_stats::resident_bytes(stage.proxy.pid())?.saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes for a hundred idle promises");
    Ok(())
}

/// Sends as much as fits without reading; what was taken is on its way.
fn shout(client: &mut Client, bytes: &[u8]) {
    // It may well be cut off in the midst of it.
    let _ = client.send(bytes);
}

/// T-AMP: a request of twenty bytes may have a reply of a megabyte, and many of them come at once.
#[test]
fn no_replies_are_made_for_clients_that_do_not_take_them() -> io::Result<()> {
    let server = Respool::start(
        Path::new(env!("CARGO_BIN_EXE_respool")),
        &[],
        &["--workers", "1", "--client-output-soft-bytes", "4mb", "--client-output-hard-bytes", "32mb"],
    )?;
    let mut good = server.client()?;
    good.command(&["SET", "big", &"x".repeat(1 << 20)])?;
    let before = proc_stats::resident_bytes(server.pid())?;
    let gets = request(&["GET", "big"]).repeat(500);
    let mut crowd: Vec<Client> = (0..10).map(|_| server.client()).collect::<io::Result<_>>()?;
    crowd.iter_mut().for_each(|client| shout(client, &gets));
    wait_until("all of them are paused", PATIENCE, || {
        Ok(good.ask("PROXY SHOW CLIENTS")?.matches("output\r\n").count() >= 10)
    })?;
    let grown = proc_stats::peak_resident_bytes(server.pid())?.saturating_sub(before);
    assert!(grown < 10 * (6 << 20), "{} MB for ten clients that may have 4 MB each", grown >> 20);
    // A client that begins to read gets everything that it asked for.
    assert_eq!(crowd[0].replies(500)?.len(), 500);
    assert_eq!(good.ask("PING")?, "+PONG\r\n");
    Ok(())
}

/// The same of what workers know of each other's clients.
#[test]
fn questions_about_all_clients_are_answered_one_at_a_time() -> io::Result<()> {
    let node = FakeBackend::start(|_| Act::Usual)?;
    let arguments = ["--workers", "2", "--client-output-soft-bytes", "1mb", "--client-output-hard-bytes", "64mb"];
    let proxy = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[node.address()], &arguments)?;
    let _others: Vec<Client> = (0..300).map(|_| proxy.client()).collect::<io::Result<_>>()?;
    let mut curious = proxy.client()?;
    curious.ask("PING")?;
    let before = proc_stats::resident_bytes(proxy.pid())?;
    for asked in [&["CLIENT", "LIST"][..], &["PROXY", "SHOW", "CLIENTS"]] {
        curious.send(&request(asked).repeat(500))?;
        assert_eq!(curious.replies(500)?.len(), 500);
    }
    let grown = proc_stats::peak_resident_bytes(proxy.pid())?.saturating_sub(before);
    assert!(grown < 16 << 20, "{} MB for one client that may have 1 MB", grown >> 20);
    Ok(())
}

/// Requests that several nodes answer wait like others when a node says nothing.
#[test]
fn pipelines_over_several_nodes_are_held_back_with_their_nodes() -> io::Result<()> {
    let gate = Gate::new();
    let stuck = || {
        let gate = gate.clone();
        FakeBackend::start(move |request| match request.command().as_str() {
            "MSET" => Act::Hold(gate.clone()),
            _ => Act::Usual,
        })
    };
    let nodes = [stuck()?, stuck()?];
    let addresses = [nodes[0].address(), nodes[1].address()];
    let patient = ["--request-timeout", "30s", "--node-silence-timeout", "1m"];
    let link = ["--node-tcp-user-timeout", "off", "--tcp-user-timeout", "1m"];
    let proxy = proxy(
        &addresses,
        &[&["--node-queue-bytes", "1mb", "--client-output-soft-bytes", "64mb"][..], &patient[..], &link[..]].concat(),
    )?;
    let mut client = proxy.client()?;
    let value = "x".repeat(1_000);
    let keys: Vec<String> = (0..8).map(|number| format!("k{number}")).collect();
    let mut words = vec!["MSET"];
    keys.iter().for_each(|key| words.extend([key.as_str(), value.as_str()]));
    let request = request(&words);
    client.set_timeout(Duration::from_secs(3))?;
    // Far more than all buffers on the way take.
    let is_held_back = (0..10_000).any(|_| client.send(&request).is_err());
    assert!(is_held_back, "eighty megabytes were read for nodes that take none");
    client.set_timeout(PATIENCE)?;
    let clients = proxy.client()?.ask("PROXY SHOW CLIENTS")?;
    assert!(clients.contains("paused_for\r\n$4\r\nnode\r\n"), "{clients}");
    gate.open();
    assert_eq!(client.reply()?, b"+OK\r\n", "nothing was refused for want of room");
    Ok(())
}
