//! Nodes that break the protocol: each misbehaviour costs its own request, never another client's reply.

use std::io;
use std::time::Duration;

use respool_testkit::{Act, Address, Client, FakeBackend, Gate, Respool, proc_stats, request, usual_reply};

use super::{assert_error, bulk, proxy, value_of, wait_for_reply};

/// Short, so that tests of deadlines end soon, and longer than a busy machine makes a node that answers wait.
const DEADLINES: [&str; 6] = ["--request-timeout", "2s", "--connect-timeout", "2s", "--node-silence-timeout", "4s"];

fn behind(node: &FakeBackend) -> io::Result<Respool> {
    behind_address(&node.address())
}

fn behind_address(node: &Address) -> io::Result<Respool> {
    let mut arguments = DEADLINES.to_vec();
    arguments.extend(["--reconnect-min", "10ms", "--reconnect-max", "50ms"]);
    proxy(std::slice::from_ref(node), &arguments)
}

fn get(client: &mut Client, key: &str) -> io::Result<Vec<u8>> {
    client.command(&["GET", key])
}

/// Asks for a key that the node answers rightly until it does.
fn wait_until_well(client: &mut Client, key: &str) -> io::Result<()> {
    wait_for_reply(client, &["GET", key], &bulk(&value_of(key)))
}

/// A node that answers `GET bad` with these bytes: the request before it is right, it fails itself, what is behind it
/// on the same connection is right or an error, and all clients stay connected and are served rightly afterwards.
#[track_caller]
fn assert_costs_only_itself(what: &str, bad: Act) {
    costs_only_itself(what, bad).unwrap_or_else(|error| panic!("{what}: {error}"));
}

fn costs_only_itself(what: &str, bad: Act) -> io::Result<()> {
    let node = FakeBackend::start(move |request| if request.key() == b"bad" { bad.clone() } else { Act::Usual })?;
    let proxy = behind(&node)?;
    let (mut client, mut bystander) = (proxy.client()?, proxy.client()?);
    wait_until_well(&mut bystander, "start")?;
    client.send(&["before", "bad", "after"].map(|key| request(&["GET", key])).concat())?;
    assert_eq!(client.reply()?, bulk("value-of-before"), "{what}: before");
    assert_error(&client.reply()?, what);
    let after = client.reply()?;
    if after != bulk("value-of-after") {
        assert_error(&after, &format!("{what}: after"));
    }
    wait_until_well(&mut bystander, "bystander")?;
    wait_until_well(&mut client, "client")?;
    for number in 0..20 {
        let key = format!("key{number}");
        assert_eq!(get(&mut bystander, &key)?, bulk(&value_of(&key)), "{what}");
        assert_eq!(get(&mut client, &key)?, bulk(&value_of(&key)), "{what}");
    }
    Ok(())
}

#[test]
fn garbage() {
    for garbage in ["HTTP/1.1 400 Bad Request\r\n\r\n", "hello\r\n", "\x16\x03\x01\x02\0", "\r\n", "\0", ":12x\r\n"] {
        assert_costs_only_itself(garbage, Act::Bytes(garbage.into()));
    }
}

#[test]
fn types_of_the_other_dialect() {
    for reply in [
        "|1\r\n$3\r\nttl\r\n:3\r\n$2\r\nq1\r\n",
        "%1\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n~1\r\n:1\r\n",
        "_\r\n",
        ">1\r\n+x\r\n",
    ] {
        assert_costs_only_itself(reply, Act::Bytes(reply.into()));
    }
}

#[test]
fn impossible_lengths() {
    for length in ["$-5\r\n", "$9999999999999999999\r\n", "*2147483648000\r\n", "$12a\r\n", "%-3\r\n", "*-7\r\n"] {
        assert_costs_only_itself(length, Act::Bytes(length.into()));
    }
}

#[test]
fn a_body_that_does_not_end_where_it_said() {
    assert_costs_only_itself("long body", Act::Bytes(b"$3\r\nabcde\r\n".to_vec()));
}

#[test]
fn nesting_without_end() {
    assert_costs_only_itself("nesting", Act::Bytes(b"*1\r\n".repeat(50_000)));
}

#[test]
fn truncated_replies() {
    for part in ["$10\r\nval", "$", "*3\r\n:1\r\n", "+O", "-ERR half an err", ":12"] {
        assert_costs_only_itself(part, Act::BytesThenClose(part.into()));
    }
}

#[test]
fn a_closed_connection() {
    assert_costs_only_itself("close", Act::Close);
}

#[test]
fn silence() {
    assert_costs_only_itself("silence", Act::Silence);
}

#[test]
fn errors_of_the_node_are_passed_on_as_they_are() -> io::Result<()> {
    let errors = [
        "-MOVED 3999 127.0.0.1:6381\r\n",
        "-ASK 3999 127.0.0.1:6381\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    ];
    for error in errors {
        let bad = Act::Bytes(error.into());
        let node = FakeBackend::start(move |request| if request.key() == b"bad" { bad.clone() } else { Act::Usual })?;
        let proxy = behind(&node)?;
        let mut client = proxy.client()?;
        client.send(&["before", "bad", "after"].map(|key| request(&["GET", key])).concat())?;
        let expected = [bulk("value-of-before"), error.into(), bulk("value-of-after")];
        assert_eq!(client.replies(3)?, expected, "{error}");
        assert_eq!(node.connections(), 1, "{error} is no reason to reconnect");
    }
    Ok(())
}

/// One reply too many, with nothing else under way: it must not become the answer to what comes next.
#[test]
fn an_extra_reply() -> io::Result<()> {
    let node = FakeBackend::start(|request| match request.key() {
        b"twice" => Act::Bytes(usual_reply(request).repeat(2)),
        _ => Act::Usual,
    })?;
    let proxy = behind(&node)?;
    let mut client = proxy.client()?;
    for _ in 0..10 {
        // The first reply may be handed out before the second shows that something is wrong.
        let reply = get(&mut client, "twice")?;
        assert!(reply == bulk("value-of-twice") || reply.starts_with(b"-"), "{}", reply.escape_ascii());
        wait_until_well(&mut client, "next")?;
    }
    assert!(node.connections() > 1, "a connection in doubt is not used on");
    Ok(())
}

/// A reply that never comes: its request fails at the deadline. What is asked next is answered in its place and
/// swallowed, and so on; a connection that stays behind is given up, and all is well again.
#[test]
fn a_missing_reply() -> io::Result<()> {
    let node = FakeBackend::start(|request| if request.key() == b"none" { Act::Skip } else { Act::Usual })?;
    let proxy = behind(&node)?;
    let (mut client, mut bystander) = (proxy.client()?, proxy.client()?);
    wait_until_well(&mut bystander, "start")?;
    assert_error(&get(&mut client, "none")?, "missing");
    wait_until_well(&mut bystander, "bystander")?;
    for number in 0..20 {
        wait_until_well(&mut client, &format!("key{number}"))?;
    }
    assert!(node.connections() > 1, "the connection was given up");
    Ok(())
}

#[test]
fn replies_without_a_request() -> io::Result<()> {
    for words in ["+OK\r\n", "-ERR max number of clients reached\r\n", "$5\r\nhello\r\n", ">2\r\n+message\r\n+x\r\n"] {
        let node = FakeBackend::start(|_| Act::Usual)?;
        let proxy = behind(&node)?;
        let mut client = proxy.client()?;
        wait_until_well(&mut client, "start")?;
        node.blurt(words.as_bytes());
        for number in 0..20 {
            wait_until_well(&mut client, &format!("key{number}"))?;
        }
    }
    Ok(())
}

#[test]
fn a_node_that_greets_with_an_error() -> io::Result<()> {
    for greeting in ["-ERR max number of clients reached\r\n", "-LOADING Redis is loading\r\n", "+OK\r\n"] {
        let node = FakeBackend::start_with_greeting(greeting.as_bytes(), |_| Act::Usual)?;
        let proxy = behind(&node)?;
        let mut client = proxy.client()?;
        for _ in 0..3 {
            let reply = get(&mut client, "key")?;
            assert_error(&reply, greeting);
        }
        assert_eq!(client.ask("ECHO x")?, "$1\r\nx\r\n", "the client stays connected");
        assert!(node.received().is_empty(), "nothing is sent before the greeting is understood");
    }
    Ok(())
}

#[test]
fn a_node_that_accepts_and_says_nothing() -> io::Result<()> {
    let node = FakeBackend::start(|request| if request.command() == "PING" { Act::Silence } else { Act::Usual })?;
    let proxy = behind(&node)?;
    let mut client = proxy.client()?;
    assert_error(&get(&mut client, "key")?, "mute node");
    Ok(())
}

#[test]
fn slow_bytes_arrive_whole_and_delay_only_what_is_behind_them() -> io::Result<()> {
    let node = FakeBackend::start(|request| match request.key() {
        b"slow" => Act::Slowly(usual_reply(request), Duration::from_millis(1)),
        _ => Act::Usual,
    })?;
    let proxy = behind(&node)?;
    let mut client = proxy.client()?;
    client.send(&["before", "slow", "after"].map(|key| request(&["GET", key])).concat())?;
    assert_eq!(client.replies(3)?, ["before", "slow", "after"].map(|key| bulk(&value_of(key))));
    Ok(())
}

/// A reply that comes after its request was given up is swallowed, and the connection stays in use.
#[test]
fn a_late_reply_is_swallowed() -> io::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let node = FakeBackend::start(move |request| match request.key() {
        b"late" => Act::Hold(held.clone()),
        _ => Act::Usual,
    })?;
    let proxy = behind(&node)?;
    let (mut client, mut bystander) = (proxy.client()?, proxy.client()?);
    wait_until_well(&mut bystander, "start")?;
    client.send_command(&["GET", "late"])?;
    node.wait_for(b"late")?;
    assert_error(&client.reply()?, "late");
    gate.open();
    for number in 0..20 {
        let key = format!("key{number}");
        wait_until_well(&mut bystander, &key)?;
        wait_until_well(&mut client, &key)?;
    }
    Ok(())
}

/// A client that goes away while its request is under way leaves a reply behind that belongs to no client.
#[test]
fn the_reply_to_a_client_that_left_is_swallowed() -> io::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let node = FakeBackend::start(move |request| match request.key() {
        b"left" => Act::Hold(held.clone()),
        _ => Act::Usual,
    })?;
    let proxy = behind(&node)?;
    let mut bystander = proxy.client()?;
    wait_until_well(&mut bystander, "start")?;
    let mut client = proxy.client()?;
    client.send_command(&["GET", "left"])?;
    node.wait_for(b"left")?;
    drop(client);
    bystander.send_command(&["GET", "own"])?;
    gate.open();
    assert_eq!(bystander.reply()?, bulk("value-of-own"));
    assert_eq!(node.connections(), 1, "the connection is shared on");
    Ok(())
}

/// A reply that was being handed through when the node broke off cannot be completed: that client is disconnected.
#[test]
fn a_long_reply_that_breaks_off() -> io::Result<()> {
    let part = [b"$8000000\r\n".as_slice(), &vec![b'x'; 4_000_000]].concat();
    let sent = part.clone();
    let node = FakeBackend::start(move |request| match request.key() {
        b"long" => Act::BytesThenClose(sent.clone()),
        _ => Act::Usual,
    })?;
    let proxy = behind(&node)?;
    let (mut client, mut bystander) = (proxy.client()?, proxy.client()?);
    wait_until_well(&mut bystander, "start")?;
    client.send_command(&["GET", "long"])?;
    match client.reply() {
        Ok(reply) => assert_error(&reply, "a reply that was kept back until it was whole"),
        Err(error) => {
            assert!(matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset), "{error}")
        }
    }
    wait_until_well(&mut bystander, "bystander")?;
    Ok(())
}

#[test]
fn promised_lengths_cost_no_memory() -> io::Result<()> {
    let node = FakeBackend::start(|request| match request.key() {
        b"huge" => Act::Bytes(b"$500000000\r\nabc".to_vec()),
        b"many" => Act::Bytes(b"*1000000\r\n".to_vec()),
        _ => Act::Usual,
    })?;
    let proxy = behind(&node)?;
    let mut client = proxy.client()?;
    wait_until_well(&mut client, "start")?;
    let before = proc_stats::resident_bytes(proxy.pid())?;
    for key in ["huge", "many"] {
        assert_error(&get(&mut client, key)?, key);
        wait_until_well(&mut client, "next")?;
    }
    let grown = proc_stats::resident_bytes(proxy.pid())?.saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes");
    Ok(())
}

/// One node of two misbehaves: the other one's keys know nothing of it.
#[test]
fn keys_of_other_nodes_are_not_touched() -> io::Result<()> {
    let good = FakeBackend::start(|_| Act::Usual)?;
    let bad = FakeBackend::start(|_| Act::Bytes(b"garbage\r\n".to_vec()))?;
    let mut arguments = DEADLINES.to_vec();
    arguments.extend(["--reconnect-min", "10ms", "--reconnect-max", "50ms"]);
    let proxy = proxy(&[good.address(), bad.address()], &arguments)?;
    let mut client = proxy.client()?;
    let keys: Vec<String> = (0..60).map(|number| format!("key{number}")).collect();
    for _ in 0..5 {
        let pipeline: Vec<u8> = keys.iter().flat_map(|key| request(&["GET", key])).collect();
        client.send(&pipeline)?;
        let mut right = 0;
        for key in &keys {
            let reply = client.reply()?;
            if reply == bulk(&value_of(key)) {
                right += 1;
            } else {
                assert_error(&reply, key);
            }
        }
        assert!((10..60).contains(&right), "{right} of {} keys are on the good node", keys.len());
    }
    Ok(())
}
