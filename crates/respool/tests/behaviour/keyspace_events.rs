//! Keyspace events of the embedded server, and messages of scripts: what is published, and in which order, is what a redis-server
//! publishes when several clients do the same.

use std::io;
use std::time::Duration;

use respool_testkit::{Address, Client, RedisServer, elements, wait_until};

use super::proxy;

const CLASSES: &str = "KEAmn";
/// Ends what is read of messages.
const END: &str = "end-of-step";

/// A server, the clients that speak to it in turn, and one that hears everything.
struct Stage {
    clients: Vec<Client>,
    listener: Client,
}

impl Stage {
    fn new(address: &Address) -> io::Result<Self> {
        let clients = (0..3).map(|_| Client::connect(address)).collect::<io::Result<Vec<_>>>()?;
        let mut listener = Client::connect(address)?;
        listener.ask("PSUBSCRIBE *")?;
        Ok(Self { clients, listener })
    }

    /// The messages since the last step.
    fn messages(&mut self) -> io::Result<Vec<String>> {
        self.clients[2].command(&["PUBLISH", END, ""])?;
        let mut messages = Vec::new();
        loop {
            let message = self.listener.reply()?;
            let parts = elements(&message);
            let text = |part: &[u8]| String::from_utf8_lossy(part).split("\r\n").nth(1).unwrap_or_default().to_owned();
            let [_, _, channel, payload] = parts.as_slice() else { panic!("{}", message.escape_ascii()) };
            if text(channel) == END {
                return Ok(messages);
            }
            messages.push(format!("{} {}", text(channel), text(payload)));
        }
    }
}

/// Who sends what. Behind `-` stands a request that blocks, and `<` is its reply; `;` stands between requests of which only the last is
/// answered.
const STEPS: &[(usize, &str)] = &[
    (0, "SET k v EX 100"),
    (0, "GET none"),
    (0, "SELECT 3"),
    (0, "LPUSH l a b"),
    (0, "DEL l"),
    (0, "SELECT 0"),
    // Transactions.
    (0, "MULTI"),
    (0, "SET k 1"),
    (0, "PUBLISH ch first"),
    (0, "INCR k"),
    (0, "SPUBLISH ch unheard"),
    (0, "EVAL return{redis.call('publish','ch','second'),redis.call('del','k'),redis.call('publish','ch','third')} 0"),
    (0, "EXEC"),
    // Scripts.
    (
        0,
        "EVAL redis.call('set','a',1)redis.call('publish','ch','m')redis.call('select',5)redis.call('set','b',2)return{redis.call('publish','ch','n')} 0",
    ),
    (0, "EVAL return{redis.call('pubsub','numpat'),redis.call('pubsub','channels'),redis.call('spublish','ch','m')} 0"),
    (0, "EVAL return{redis.pcall('publish','ch')} 0"),
    (0, "EVAL_RO return{redis.call('publish','ch','m')} 0"),
    (0, "EVAL redis.setresp(3)return{redis.call('publish','ch','m')} 0"),
    (
        0,
        "EVAL for\x20i=1,3000\x20do\x20redis.call('set','many','x')redis.call('append','many','y')end\x20return{redis.call('publish','ch','m')} 0",
    ),
    (0, "EVAL redis.call('publish','ch','m')error('end') 0"),
    // Keys whose time has come, met by reads and by writes.
    (0, "SET past 1 PXAT 1"),
    (0, "MGET past k"),
    (0, "SET past 1 PXAT 1"),
    (0, "LPUSH past a"),
    // Clients that wait.
    (0, "-BLPOP q 0"),
    (1, "RPUSH q a b"),
    (0, "<"),
    (0, "-BLMOVE from to LEFT RIGHT 0"),
    (1, "MULTI"),
    (1, "RPUSH from x"),
    (1, "SET k 5"),
    (1, "EXEC"),
    (0, "<"),
    (0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"),
    (0, "XGROUP CREATE s g $ MKSTREAM"),
    (0, "-XREADGROUP GROUP g c BLOCK 0 STREAMS s >"),
    (1, "XADD s 1-1 f v"),
    (0, "<"),
    (0, "-BZPOPMIN z 0"),
    (
        1,
        "EVAL redis.call('publish','ch','before')redis.call('zadd','z',1,'a',2,'b')redis.call('publish','ch','after')return{} 0",
    ),
    (0, "<"),
    (0, "CLIENT REPLY SKIP;SET unanswered 1;GET unanswered"),
    (0, "FLUSHALL"),
];

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.replace("\\x20", " ").into_bytes()).collect()
}

#[test]
fn messages_come_as_from_redis_in_the_same_order() -> io::Result<()> {
    let redis = RedisServer::start_with(&["--notify-keyspace-events", CLASSES])?;
    let embedded = proxy(&[], &["--notify-keyspace-events", CLASSES])?;
    let mut stages = [Stage::new(&redis.tcp())?, Stage::new(&embedded.tcp())?];
    for (client, line) in STEPS {
        let mut seen = Vec::new();
        for stage in &mut stages {
            let this = &mut stage.clients[*client];
            let reply = match line.strip_prefix('-') {
                Some(line) => {
                    this.send_command(&words(line))?;
                    // It waits before the next client is heard.
                    let observer = &mut stage.clients[2];
                    let is_blocked = || Ok(observer.figure("clients", "blocked_clients")? == 1);
                    wait_until("the client waits", Duration::from_secs(10), is_blocked)?;
                    Vec::new()
                }
                None => {
                    let requests = line.split(';').filter(|line| *line != "<");
                    requests.map(|line| this.send_command(&words(line))).collect::<io::Result<Vec<_>>>()?;
                    this.reply()?
                }
            };
            seen.push((reply.escape_ascii().to_string(), stage.messages()?));
        }
        assert_eq!(seen[0], seen[1], "{line}");
    }
    Ok(())
}

/// A client that subscribes to its own changes, in RESP3: each event stands before the reply to its command, and behind the whole reply
/// to a transaction.
#[test]
fn own_events_stand_before_the_reply_and_behind_exec() -> io::Result<()> {
    let embedded = proxy(&[], &["--notify-keyspace-events", "Eg$"])?;
    let mut client = embedded.client()?;
    client.ask("HELLO 3")?;
    client.ask("PSUBSCRIBE __keyevent@*")?;
    let push = |event: &str| {
        let channel = format!("__keyevent@0__:{event}");
        let length = channel.len();
        format!(">4\r\n$8\r\npmessage\r\n$12\r\n__keyevent@*\r\n${length}\r\n{channel}\r\n$1\r\nk\r\n")
    };
    client.send(b"SET k v\r\nMULTI\r\nSET k v\r\nDEL k\r\nEXEC\r\nGET k\r\n")?;
    let expected = [
        &push("set"),
        "+OK\r\n",
        "+OK\r\n",
        "+QUEUED\r\n",
        "+QUEUED\r\n",
        "*2\r\n+OK\r\n:1\r\n",
        &push("set"),
        &push("del"),
        "_\r\n",
    ];
    for expected in expected {
        assert_eq!(client.reply()?.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
    }
    Ok(())
}

/// The active cycle tells of keys that no client asks for.
#[test]
fn keys_that_expire_unasked_have_an_event() -> io::Result<()> {
    let embedded = proxy(&[], &["--notify-keyspace-events", "Kx"])?;
    let (mut client, mut listener) = (embedded.client()?, embedded.client()?);
    listener.ask("PSUBSCRIBE __key*")?;
    client.ask("SET k v PX 50")?;
    let message = listener.reply()?;
    assert!(message.ends_with(b"__keyspace@0__:k\r\n$7\r\nexpired\r\n"), "{}", message.escape_ascii());
    Ok(())
}

/// Engines behind a proxy are nodes that speak of their keys as servers do.
#[test]
fn embedded_nodes_publish_their_events() -> io::Result<()> {
    let server = proxy(&[], &["--nodes", "embedded:,embedded:", "--notify-keyspace-events", "E$"])?;
    let (mut client, mut listener) = (server.client()?, server.client()?);
    listener.ask("SUBSCRIBE __keyevent@0__:set")?;
    for number in 0..20 {
        let key = format!("key:{number:02}");
        client.command(&["SET", &key, "v"])?;
        let message = listener.reply()?;
        assert!(message.ends_with(format!("\r\n{key}\r\n").as_bytes()), "{}", message.escape_ascii());
    }
    Ok(())
}

#[test]
fn letters_that_are_no_classes_are_refused_at_the_start() {
    let error = proxy(&[], &["--notify-keyspace-events", "KEq"]).map(drop).expect_err("q is no class");
    assert!(error.to_string().contains("notify_keyspace_events"), "{error}");
}
