//! Subscriptions: what clients see is what Redis says, byte for byte, while nodes see one subscription per worker.

use std::io;
use std::path::Path;
use std::time::Duration;

use respool_testkit::{Act, Address, Client, FakeBackend, PATIENCE, RedisServer, Respool, usual_reply, wait_until};

use super::{Four, addresses, assert_error, bulk, proxy, redis_servers};

/// What the subscriber says and how many frames it then gets; with `!`, what another client says first.
type Step = (&'static str, usize);

const STORY: &[Step] = &[
    ("SUBSCRIBE a b a", 3),
    ("PSUBSCRIBE a* b*", 2),
    ("SSUBSCRIBE s1 s2", 2),
    ("PING", 1),
    ("PING x", 1),
    ("PING x y", 1),
    ("NOSUCH x", 1),
    ("CLIENT NOSUCH", 1),
    ("GET", 1),
    ("!PUBLISH a hi", 2),
    ("!SPUBLISH s1 hi", 1),
    ("!PUBLISH s1 hi", 0),
    ("!PUBSUB CHANNELS a*", 0),
    ("!PUBSUB NUMSUB a b c", 0),
    ("!PUBSUB NUMPAT", 0),
    ("!PUBSUB SHARDNUMSUB s1 s3", 0),
    ("!PUBSUB CHANNELS x y", 0),
    ("UNSUBSCRIBE nope", 1),
    ("UNSUBSCRIBE a", 1),
    ("!PUBLISH a again", 1),
    ("UNSUBSCRIBE", 1),
    ("UNSUBSCRIBE", 1),
    ("PUNSUBSCRIBE a*", 1),
    ("PUNSUBSCRIBE", 1),
    ("PUNSUBSCRIBE", 1),
    ("SUNSUBSCRIBE s1", 1),
    ("SUNSUBSCRIBE", 1),
    ("SUNSUBSCRIBE", 1),
    ("GET nothing", 1),
    ("SUBSCRIBE a\r\nSUBSCRIBE b\r\nUNSUBSCRIBE a\r\nSUBSCRIBE c\r\nUNSUBSCRIBE b c\r\nGET nothing", 7),
    ("SUBSCRIBE", 1),
    ("CLIENT REPLY SKIP\r\nSUBSCRIBE a\r\nPING", 2),
    ("RESET", 1),
    ("!PUBLISH a lost", 0),
    ("PING", 1),
    ("SUBSCRIBE last", 1),
    ("QUIT", 1),
];

/// What only a connection in RESP2 is told once it subscribes.
const IN_RESP2: &[Step] = &[
    ("SUBSCRIBE a", 1),
    ("GET x", 1),
    ("CLIENT ID", 1),
    ("HELLO 3", 1),
    ("EXEC", 1),
    ("MULTI", 1),
    ("PUBLISH a b", 1),
];

/// What only a connection in RESP3 may do.
const IN_RESP3: &[Step] =
    &[("SUBSCRIBE a", 1), ("GET x", 1), ("ECHO x", 1), ("PUBLISH other x", 1), ("MULTI", 1), ("PING", 1), ("EXEC", 1)];

pub(super) fn tell(address: &Address, version: &str, story: &[Step]) -> io::Result<Vec<String>> {
    let mut client = Client::connect(address)?;
    let mut other = Client::connect(address)?;
    if version == "3" {
        client.ask("HELLO 3")?;
    }
    let mut told = Vec::new();
    for (words, frames) in story {
        match words.strip_prefix('!') {
            Some(words) => told.push(format!("{words}: {}", other.ask(words)?)),
            None => client.send(format!("{words}\r\n").as_bytes())?,
        }
        for frame in client.replies(*frames)? {
            told.push(format!("{words}: {}", frame.escape_ascii()));
        }
    }
    Ok(told)
}

#[test]
fn clients_are_told_what_redis_tells_them() -> io::Result<()> {
    let servers = redis_servers(4)?;
    let one = proxy(&[servers[0].tcp()], &[])?;
    let binary = Path::new(env!("CARGO_BIN_EXE_respool"));
    let several = Respool::start(binary, &addresses(&servers[1..]), &["--workers", "2"])?;
    let own = proxy(&[], &[])?;
    for (version, stories) in [("2", [STORY, IN_RESP2]), ("3", [STORY, IN_RESP3])] {
        for story in stories {
            let wanted = tell(&servers[0].tcp(), version, story)?;
            for (what, address) in [("one node", one.tcp()), ("three nodes", several.tcp()), ("an engine", own.tcp())] {
                let told = tell(&address, version, story)?;
                for (told, wanted) in told.iter().zip(&wanted) {
                    assert_eq!(told, wanted, "RESP{version}, {what}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_node_has_one_subscription_however_many_clients_have_it() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let channels: Vec<String> = (0..200).map(|number| format!("channel{number}")).collect();
    let mut request = vec!["SUBSCRIBE"];
    request.extend(channels.iter().map(String::as_str));
    let mut clients = (0..30).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut clients {
        client.send_command(&request)?;
    }
    for client in &mut clients {
        assert_eq!(client.replies(channels.len())?.len(), channels.len());
    }
    let mut direct = server.client()?;
    assert_eq!(direct.ask("PUBSUB NUMSUB channel7")?, "*2\r\n$8\r\nchannel7\r\n:1\r\n");
    let list = direct.ask("CLIENT LIST TYPE pubsub")?;
    assert_eq!((list.matches(" flags=P ").count(), list.matches("sub=200 ").count()), (1, 1), "{list}");
    let mut publisher = proxy.client()?;
    assert_eq!(publisher.ask("PUBLISH channel7 x")?, ":30\r\n", "clients are counted, not connections");
    assert!(publisher.ask("CLIENT LIST TYPE pubsub")?.contains("sub=200 psub=0"));
    assert!(publisher.ask("INFO stats")?.contains("pubsub_channels:200\r\n"));
    for client in &mut clients {
        assert_eq!(client.reply()?, b"*3\r\n$7\r\nmessage\r\n$8\r\nchannel7\r\n$1\r\nx\r\n");
    }
    drop(clients);
    wait_until("the node is told that all have left", PATIENCE, || Ok(direct.ask("PUBSUB CHANNELS")? == "*0\r\n"))?;
    assert_eq!(publisher.ask("PUBLISH channel7 x")?, ":0\r\n");
    Ok(())
}

/// A hundred losses of the node, each tenth a restart of its process.
#[test]
fn a_hundred_restarts_lose_no_subscription() -> io::Result<()> {
    let mut server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--reconnect-min", "1ms", "--reconnect-max", "20ms"])?;
    let channels: Vec<String> = (0..500).map(|number| format!("channel{number}")).collect();
    let mut request = vec!["SUBSCRIBE"];
    request.extend(channels.iter().map(String::as_str));
    let (mut one, mut other) = (proxy.client()?, proxy.client()?);
    one.send_command(&request)?;
    one.replies(channels.len())?;
    other.send_command(&["PSUBSCRIBE", "channel1*", "nothing*"])?;
    other.replies(2)?;
    for round in 0..100 {
        if round % 10 == 9 {
            server.restart()?;
        } else {
            assert_eq!(server.client()?.ask("CLIENT KILL TYPE pubsub")?, ":1\r\n");
        }
        let mut direct = server.client()?;
        wait_until("everything is subscribed again", PATIENCE, || {
            Ok(direct.ask("PUBSUB NUMPAT")? == ":2\r\n" && direct.ask("PUBSUB CHANNELS")?.starts_with("*500\r\n"))
        })?;
        let payload = round.to_string();
        assert_eq!(direct.command(&["PUBLISH", "channel123", &payload])?, b":2\r\n");
        let message = one.reply()?;
        assert!(message.starts_with(b"*3\r\n$7\r\nmessage\r\n$10\r\nchannel123\r\n"), "{}", message.escape_ascii());
        assert!(message.ends_with(format!("\r\n{payload}\r\n").as_bytes()));
        assert!(other.reply()?.starts_with(b"*4\r\n$8\r\npmessage\r\n$9\r\nchannel1*\r\n"));
    }
    Ok(())
}

#[test]
fn keys_are_spoken_of_by_every_node() -> io::Result<()> {
    let servers = redis_servers(3)?;
    let proxy = proxy(&addresses(&servers), &[])?;
    let mut client = proxy.client()?;
    for server in &servers {
        server.client()?.ask("CONFIG SET notify-keyspace-events KEA")?;
    }
    client.ask("SUBSCRIBE __keyevent@0__:set")?;
    for server in &servers {
        server.client()?.ask("SET k v")?;
        assert_eq!(client.reply()?, b"*3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:set\r\n$1\r\nk\r\n");
    }
    Ok(())
}

/// A node from before RESP3: it is spoken to in RESP2.
#[test]
fn a_node_without_resp3_is_subscribed_to_as_well() -> io::Result<()> {
    let node = FakeBackend::start(|request| match &*request.command() {
        "HELLO" => Act::Bytes(b"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n".to_vec()),
        "SUBSCRIBE" => {
            let name = request.key();
            let frame = |word: &str, last: &[u8]| {
                [format!("*3\r\n${}\r\n{word}\r\n${}\r\n", word.len(), name.len()).as_bytes(), name, b"\r\n", last]
                    .concat()
            };
            Act::Bytes([frame("subscribe", b":1\r\n"), frame("message", b"$2\r\nhi\r\n")].concat())
        }
        _ => Act::Usual,
    })?;
    let proxy = proxy(&[node.address()], &[])?;
    let mut client = proxy.client()?;
    client.ask("HELLO 2")?;
    assert_eq!(client.ask("SUBSCRIBE news")?, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    assert_eq!(client.reply()?, b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
    Ok(())
}

#[test]
fn a_node_that_is_down_or_silent_fails_the_request_alone() -> io::Result<()> {
    let mut server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--request-timeout", "300ms"])?;
    let mut client = proxy.client()?;
    server.kill()?;
    let reply = client.ask("SUBSCRIBE a")?;
    assert_error(reply.as_bytes(), "SUBSCRIBE at a node that is down");
    assert!(client.ask("GET x")?.starts_with("-ERR node"), "it is not subscribed");
    server.restart()?;
    wait_until("the node is back", PATIENCE, || Ok(client.ask("SUBSCRIBE a")?.starts_with("*3")))?;
    server.pause()?;
    let mut other = proxy.client()?;
    let reply = other.ask("SUBSCRIBE b")?;
    assert!(reply.contains("did not answer within 300 ms"), "{reply}");
    assert_eq!(other.ask("ECHO x")?, "$1\r\nx\r\n");
    server.resume()?;
    let mut direct = server.client()?;
    wait_until("what failed is undone, what did not is restored", PATIENCE, || {
        Ok(direct.ask("PUBSUB CHANNELS")? == "*1\r\n$1\r\na\r\n")
    })?;
    assert_eq!(direct.ask("PUBLISH a x")?, ":1\r\n");
    assert_eq!(client.reply()?, b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n");
    Ok(())
}

/// A node that is busy, or stopped, for a while is there all the same: what is published in the end reaches all subscribers.
#[test]
fn a_node_that_is_silent_for_a_while_keeps_its_push_lane() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut subscriber = proxy.client()?;
    subscriber.ask("SUBSCRIBE a")?;
    let mut direct = server.client()?;
    server.pause()?;
    direct.send_command(&["PUBLISH", "a", "late"])?;
    let begun = std::time::Instant::now();
    let mut watcher = proxy.client()?;
    wait_until("it was silent for long", PATIENCE, || {
        Ok(watcher.ask("ECHO x")? == "$1\r\nx\r\n" && begun.elapsed() > Duration::from_millis(2_500))
    })?;
    server.resume()?;
    assert_eq!(direct.reply()?, b":1\r\n", "the lane is still there");
    assert_eq!(subscriber.reply()?, b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$4\r\nlate\r\n");
    Ok(())
}

/// The connection is open, and its other end does not read.
#[test]
fn a_push_lane_that_stays_silent_is_replaced() -> io::Result<()> {
    let node = FakeBackend::start(|request| match (&*request.command(), request.connection) {
        // The handshake's PING is answered, the one into the silence is not.
        ("SUBSCRIBE", _) => Act::Silence,
        _ => Act::Bytes(usual_reply(request)),
    })?;
    let proxy = proxy(&[node.address()], &["--request-timeout", "1s", "--node-silence-timeout", "1s"])?;
    let mut client = proxy.client()?;
    client.send_command(&["SUBSCRIBE", "a"])?;
    wait_until("another connection is made", PATIENCE, || Ok(node.connections() >= 2))
}

#[test]
fn a_slow_subscriber_is_disconnected_or_loses_the_oldest() -> io::Result<()> {
    let server = RedisServer::start()?;
    let payload = "x".repeat(100_000);
    let publish = |rounds: u32| -> io::Result<()> {
        let mut direct = server.client()?;
        for round in 0..rounds {
            direct.command(&["PUBLISH", "a", &format!("{round:06}{payload}")])?;
        }
        Ok(())
    };
    let strict = proxy(&[server.tcp()], &["--subscriber-output-bytes", "1mb"])?;
    let lenient = proxy(&[server.tcp()], &["--subscriber-output-bytes", "1mb", "--slow-subscribers", "drop-oldest"])?;
    let (mut cut, mut kept) = (strict.client()?, lenient.client()?);
    cut.ask("SUBSCRIBE a")?;
    kept.ask("SUBSCRIBE a")?;
    // More than sockets hold.
    publish(300)?;
    let mut watcher = strict.client()?;
    wait_until("the slow subscriber is gone", PATIENCE, || {
        Ok(watcher.ask("INFO proxy")?.contains("subscribers_cut_off:1\r\n"))
    })?;
    assert!(cut.read_to_close()?.len() < 300 * payload.len());
    let told = |line: &String| line.contains("is disconnected: it does not keep up with its messages");
    assert_eq!(strict.output().iter().filter(|line| told(line)).count(), 1);
    let mut last = None;
    let mut count = 0;
    while last != Some(299) {
        let message = kept.reply()?;
        let number = message.rsplit(|b| *b == b'\n').nth(1).and_then(|line| line.get(..6)).map(|digits| {
            std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok()).expect("six digits")
        });
        assert!(number > last, "messages keep their order: {number:?} after {last:?}");
        last = number;
        count += 1;
    }
    assert!(count < 300, "some were dropped");
    assert_eq!(kept.ask("PING")?, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "it is still connected");
    Ok(())
}

/// As in Redis, a publisher that is told of a receiver has reached it.
#[test]
fn what_was_published_before_a_channel_is_given_up_is_heard() -> io::Result<()> {
    let servers = redis_servers(2)?;
    let proxy = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &addresses(&servers), &["--workers", "2"])?;
    let (mut keeper, mut publisher) = (proxy.client()?, proxy.client()?);
    keeper.ask("HELLO 3")?;
    for round in 0..150 {
        let channel = format!("channel{round}");
        let mut leaver = proxy.client()?;
        leaver.command(&["SUBSCRIBE", &channel])?;
        if round % 2 == 0 {
            keeper.command(&["SUBSCRIBE", &channel])?;
        }
        let receivers = publisher.command(&["PUBLISH", &channel, "m"])?;
        assert_eq!(receivers, format!(":{}\r\n", 2 - round % 2).into_bytes());
        let message = [b"*3\r\n".to_vec(), bulk("message"), bulk(&channel), bulk("m")].concat();
        let (request, farewell) = match round % 3 {
            0 => {
                ("UNSUBSCRIBE", [b"*3\r\n".to_vec(), bulk("unsubscribe"), bulk(&channel), b":0\r\n".to_vec()].concat())
            }
            1 => ("RESET", b"+RESET\r\n".to_vec()),
            _ => ("QUIT", b"+OK\r\n".to_vec()),
        };
        leaver.send_command(&[request])?;
        assert_eq!(leaver.reply()?.escape_ascii().to_string(), message.escape_ascii().to_string(), "{round} {request}");
        assert_eq!(leaver.reply()?, farewell, "{round}");
        if round % 2 == 0 {
            keeper.reply()?;
        }
    }
    Ok(())
}

fn message(channel: &str, text: &str) -> Vec<u8> {
    [b"*3\r\n".to_vec(), bulk("message"), bulk(channel), bulk(text)].concat()
}

#[test]
fn a_transactions_message_reaches_subscribers_wherever_keys_are() -> io::Result<()> {
    let four = Four::start(&[])?;
    let (mut listener, mut client) = (four.proxy.client()?, four.proxy.client()?);
    // Channels are placed as keys are, so these are at all nodes.
    for channel in &four.keys {
        listener.command(&["SUBSCRIBE", channel])?;
    }
    for key in &four.keys {
        for channel in &four.keys {
            client
                .send(format!("MULTI\r\nSET {key} v\r\nPUBLISH {channel} {key}\r\nGET {key}\r\nEXEC\r\n").as_bytes())?;
            let replies = client.replies(5)?;
            assert_eq!(String::from_utf8_lossy(&replies[4]), "*3\r\n+OK\r\n:1\r\n$1\r\nv\r\n", "{key}, {channel}");
            assert_eq!(listener.reply()?, message(channel, key));
        }
    }
    // What does not run publishes nothing.
    client.ask(&format!("WATCH {}", four.keys[0]))?;
    client.ask(&format!("SET {} other", four.keys[0]))?;
    let (key, channel) = (&four.keys[0], &four.keys[1]);
    client.send(
        format!("MULTI\r\nGET {key}\r\nPUBLISH {channel} never\r\nEXEC\r\nPUBLISH {channel} now\r\n").as_bytes(),
    )?;
    assert_eq!(client.replies(5)?[3], b"*-1\r\n");
    assert_eq!(listener.reply()?, message(channel, "now"));
    Ok(())
}

/// The node that runs a script publishes by itself: who listens elsewhere is not told. The page on subscriptions says so.
#[test]
fn a_script_reaches_who_listens_at_its_own_node() -> io::Result<()> {
    let four = Four::start(&[])?;
    let (mut listener, mut client) = (four.proxy.client()?, four.proxy.client()?);
    let mut publish = |key: &str, channel: &str, text: &str| {
        client.command(&["EVAL", "return redis.call('PUBLISH', ARGV[1], ARGV[2])", "1", key, channel, text])
    };
    let (here, there) = (&four.keys[0], &four.keys[1]);
    listener.command(&["SUBSCRIBE", here])?;
    assert_eq!(publish(there, here, "from elsewhere")?, b":0\r\n", "and it says so");
    assert_eq!(publish(here, here, "from here")?, b":1\r\n");
    assert_eq!(listener.reply()?, message(here, "from here"));
    // A common tag is a common node, and patterns are told to all.
    listener.command(&["SUBSCRIBE", "{order:7}:events"])?;
    assert_eq!(publish("{order:7}:state", "{order:7}:events", "paid")?, b":1\r\n");
    assert_eq!(listener.reply()?, message("{order:7}:events", "paid"));
    listener.command(&["PSUBSCRIBE", "stock:*"])?;
    for key in &four.keys {
        assert_eq!(publish(key, "stock:3", key)?, b":1\r\n");
        let reply = listener.reply()?;
        assert!(reply.ends_with(&bulk(key)) && reply.starts_with(b"*4\r\n$8\r\npmessage"), "{key}");
    }
    Ok(())
}
