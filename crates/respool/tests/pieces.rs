//! Large requests pass through in pieces: the memory of Respool stays small, and what breaks off harms no other client.

mod support;

use std::fs;
use std::thread;
use std::time::Duration;

use respool_testkit::{
    Act, Address, Client, FakeBackend, Gate, RedisServer, TempDir, request, usual_reply, wait_until,
};
use rustix::process::Signal;
use support::{LIMIT, Running, respool};

const LARGE: usize = 50 << 20;
/// What all of Respool may grow by while 50 MB pass.
const GROWTH_KB_MAX: u64 = 6 << 10;

fn proxy(address: &str, more: &[&str]) -> Running {
    let args = ["serve", "--listen", "127.0.0.1:0", "--node", address, "--workers", "1", "--reconnect-min", "5ms"];
    Running::start(respool(&args).args(more))
}

/// The most memory that a process has had, in kilobytes.
fn peak_kb(proxy: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.process.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn value(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[test]
fn fifty_megabytes_pass_without_being_held() {
    let node = RedisServer::start().expect("redis-server");
    let proxy = proxy(&node.tcp().to_string(), &[]);
    let mut client = proxy.client(0);
    assert_eq!(client.ask("SET small v").expect("a reply"), "+OK\r\n");
    let value = value(LARGE);
    let before = peak_kb(&proxy);
    // What is behind it in the same pipeline is done behind it, on whatever connection.
    let mut bytes = request(&[&b"SET"[..], b"k", &value, b"EX", b"1000"]);
    bytes.extend(request(&["STRLEN", "k"]));
    bytes.extend(request(&["APPEND", "k", "x"]));
    bytes.extend(request(&["STRLEN", "k"]));
    client.send(&bytes).expect("it is taken");
    assert_eq!(client.reply().expect("a reply"), b"+OK\r\n");
    assert_eq!(client.reply().expect("a reply"), format!(":{LARGE}\r\n").into_bytes());
    assert_eq!(client.reply().expect("a reply"), format!(":{}\r\n", LARGE + 1).into_bytes());
    assert_eq!(client.reply().expect("a reply"), format!(":{}\r\n", LARGE + 1).into_bytes());
    for words in [["RPUSH", "list"], ["APPEND", "other"], ["SETNX", "third"]] {
        client.send(&request(&[words[0].as_bytes(), words[1].as_bytes(), &value[..5 << 20]])).expect("it is taken");
        assert!(client.reply().expect("a reply").starts_with(b":"), "{words:?}");
    }
    let growth = peak_kb(&proxy) - before;
    assert!(growth < GROWTH_KB_MAX, "{growth} KB");
    eprintln!("memory grew by {growth} KB");
    assert_eq!(client.figure("proxy", "requests_in_pieces").expect("it is told"), 4);
    let mut straight = node.client().expect("it accepts");
    straight.send_command(&["GETRANGE", "k", "0", "-2"]).expect("it goes out");
    let stored = straight.reply().expect("a reply");
    assert!(stored.ends_with(&[&value[..], b"\r\n"].concat()), "every byte is in its place");
    assert_eq!(straight.ask("TTL small").expect("a reply"), ":-1\r\n");
    proxy.end();
}

#[test]
fn a_node_that_does_not_read_holds_up_its_client_and_no_memory() {
    let gate = Gate::new();
    let held = gate.clone();
    // It reads nothing more on a connection that asked it to wait.
    let node = FakeBackend::start(move |request| match request.key() {
        b"wait" => Act::Hold(held.clone()),
        _ => Act::Bytes(usual_reply(request)),
    })
    .expect("a port");
    let proxy = proxy(&node.address().to_string(), &["--node-silence-timeout", "60s", "--request-timeout", "60s"]);
    let mut client = proxy.client(0);
    assert_eq!(client.ask("GET a").expect("a reply"), "$10\r\nvalue-of-a\r\n");
    let before = peak_kb(&proxy);
    // Both go over the client's own connection, once it has one.
    client.send(&request(&[&b"SET"[..], b"first", &value(2 << 20)])).expect("it is taken");
    assert_eq!(client.reply().expect("a reply"), b"+OK\r\n");
    client.send(&request(&["GET", "wait"])).expect("it is taken");
    node.wait_for(b"wait").expect("it comes");
    let sender = thread::spawn(move || {
        client.set_timeout(LIMIT).expect("it can be set");
        client.send(&request(&[&b"SET"[..], b"second", &value(LARGE)])).expect("all is taken");
        client.replies(2).expect("both are answered")
    });
    let mut other = proxy.client(0);
    for _ in 0..50 {
        assert_eq!(other.ask("GET b").expect("a reply"), "$10\r\nvalue-of-b\r\n");
    }
    gate.open();
    assert_eq!(sender.join().expect("it ends"), [&b"$13\r\nvalue-of-wait\r\n"[..], b"+OK\r\n"]);
    let growth = peak_kb(&proxy) - before;
    assert!(growth < GROWTH_KB_MAX, "{growth} KB");
    proxy.end();
}

#[test]
fn leaving_half_way_ends_one_connection_and_runs_nothing() {
    let node = RedisServer::start().expect("redis-server");
    let proxy = proxy(&node.tcp().to_string(), &[]);
    let mut other = proxy.client(0);
    assert_eq!(other.ask("SET k before").expect("a reply"), "+OK\r\n");
    let connected = || {
        let shown = node.client()?.ask("INFO clients")?;
        Ok::<_, std::io::Error>(shown.lines().find(|line| line.starts_with("connected_clients:")).map(str::to_owned))
    };
    let before = connected().expect("it tells");
    let head = |key: &str| format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${LARGE}\r\n", key.len()).into_bytes();
    for half_closes in [false, true] {
        let mut leaver = proxy.client(0);
        let passed = other.figure("proxy", "requests_in_pieces").expect("it is told");
        leaver.send(&head("k")).expect("it is taken");
        leaver.send(&value(LARGE / 2)).expect("it is taken");
        wait_until("it is passed on", LIMIT, || Ok(other.figure("proxy", "requests_in_pieces")? == passed + 1))
            .expect("so");
        if half_closes {
            leaver.finish_sending().expect("it closes its side");
            // As at a server: what never was a request has no reply.
            assert_eq!(leaver.read_to_close().expect("it is closed"), b"");
        }
        drop(leaver);
        wait_until("its connection is gone", LIMIT, || Ok(connected()? == before)).expect("so");
        assert_eq!(other.ask("GET k").expect("a reply"), "$6\r\nbefore\r\n");
    }
    // Bytes that are no request end it as well.
    let mut liar = proxy.client(0);
    let rest = [&value(2 << 20)[..], b"xx"].concat();
    liar.send(&format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", 2 << 20).into_bytes()).expect("it is taken");
    liar.send(&rest).expect("it is taken");
    let said = String::from_utf8_lossy(&liar.read_to_close().expect("it is closed")).into_owned();
    assert_eq!(said, "-ERR Protocol error: bulk string not followed by CRLF\r\n");
    assert_eq!(other.ask("GET k").expect("a reply"), "$6\r\nbefore\r\n");
    proxy.end();
}

#[test]
fn a_node_that_dies_half_way_is_reported_the_client_goes_on() {
    let node = FakeBackend::start(|request| Act::Bytes(usual_reply(request))).expect("a port");
    let proxy = proxy(&node.address().to_string(), &[]);
    let mut client = proxy.client(0);
    let mut other = proxy.client(0);
    assert_eq!(client.ask("GET a").expect("a reply"), "$10\r\nvalue-of-a\r\n");
    client.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${LARGE}\r\n").as_bytes()).expect("it is taken");
    client.send(&value(1 << 20)).expect("it is taken");
    wait_until("it is passed on", LIMIT, || Ok(other.figure("proxy", "requests_in_pieces")? == 1)).expect("so");
    wait_until("it has a connection", LIMIT, || Ok(node.connections() == 2)).expect("so");
    // The node says no before it has heard everything; the rest is not waited for.
    node.blurt_on(1, b"-OOM command not allowed\r\n");
    assert_eq!(client.reply().expect("a reply"), b"-OOM command not allowed\r\n");
    client.send(&value(LARGE - (1 << 20))).expect("it is taken");
    client.send(b"\r\n").expect("it is taken");
    assert_eq!(client.ask("GET b").expect("a reply"), "$10\r\nvalue-of-b\r\n");
    assert_eq!(other.ask("GET c").expect("a reply"), "$10\r\nvalue-of-c\r\n");
    proxy.end();
}

#[test]
fn routes_and_rules_hold_for_large_requests() {
    let (first, second) = (RedisServer::start().expect("redis-server"), RedisServer::start().expect("redis-server"));
    let directory = respool_testkit::TempDir::new().expect("a directory");
    let file = directory.join("respool.toml");
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nworkers = 1\nnodes = [\"{}\"]\nlarge_request_bytes = \"64kb\"\n\
         [pools.other]\nnodes = [\"{}\"]\n\
         [[routes]]\nprefix = \"o:\"\nto = \"other\"\nstrip = true\n\
         [users.default]\nrules = [\"on\", \"nopass\", \"~o:*\", \"%W~w:*\", \"+@all\"]\n",
        first.tcp(),
        second.tcp()
    );
    fs::write(&file, text).expect("it is written");
    let config = file.to_str().expect("UTF-8");
    let proxy = Running::start(&mut respool(&["serve", "--config", config]));
    let mut client = proxy.client(0);
    let value = value(1 << 20);
    client.send(&request(&[&b"APPEND"[..], b"o:k", &value])).expect("it is taken");
    assert_eq!(client.reply().expect("a reply"), b":1048576\r\n");
    assert_eq!(client.figure("proxy", "requests_in_pieces").expect("it is told"), 1);
    let stored = second.client().expect("it accepts").ask("STRLEN k").expect("a reply");
    assert_eq!(stored, format!(":{}\r\n", 1 << 20));
    // The last reads what it replaces, which the user may not do; so it was collected, and judged as a whole.
    for (words, refused) in [
        (&["APPEND", "forbidden"][..], true),
        (&["RPUSH", "w:list"], false),
        (&["SET", "w:k"], false),
        (&["GETSET", "w:k"], true),
    ] {
        client.send(&request(&[words[0].as_bytes(), words[1].as_bytes(), &value])).expect("it is taken");
        let reply = String::from_utf8_lossy(&client.reply().expect("a reply")).into_owned();
        assert_eq!(reply.starts_with("-NOPERM"), refused, "{words:?}: {reply}");
    }
    assert_eq!(client.figure("proxy", "requests_in_pieces").expect("it is told"), 2);
    client.send(&request(&[&b"SET"[..], b"w:k", &value, b"GET"])).expect("it is taken");
    assert!(client.reply().expect("a reply").starts_with(b"-NOPERM"));
    proxy.end();
}

#[test]
fn the_deadline_counts_from_the_last_byte() {
    let node = RedisServer::start().expect("redis-server");
    let proxy = proxy(&node.tcp().to_string(), &["--request-timeout", "2s"]);
    let mut client = proxy.client(0);
    let mut other = proxy.client(0);
    client.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", 2 << 20).as_bytes()).expect("it is taken");
    client.send(&value(1 << 20)).expect("it is taken");
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_millis(2_500) {
        assert!(other.ask("PING").expect("a reply").starts_with("+PONG"));
    }
    client.send(&[&value(1 << 20)[..], b"\r\n"].concat()).expect("it is taken");
    assert_eq!(client.reply().expect("a reply"), b"+OK\r\n");
    proxy.end();
}

/// A process that is told to end, or is succeeded, while requests have come in part: what is answered is done whole, and nothing else is.
#[test]
fn an_end_between_the_parts_of_a_request_does_it_whole_or_not() {
    const PART: usize = 1 << 20;
    for is_succeeded in [false, true] {
        let directory = TempDir::new().expect("a directory");
        let (door, takeover) = (directory.join("door"), directory.join("takeover"));
        let (door, takeover) = (door.display().to_string(), takeover.display().to_string());
        let node = RedisServer::start().expect("redis-server");
        let address = node.tcp().to_string();
        let args = ["serve", "--listen", &door, "--node", &address, "--workers", "2", "--drain-timeout", "1s"];
        let args = [&args[..], &["--takeover-socket", &takeover]].concat();
        let mut proxy = Running::start(&mut respool(&args));
        let value = value(3 * PART);
        let connect = || Client::connect(&Address::Unix(door.clone().into())).expect("it accepts");
        let mut clients: Vec<Client> = (0..12).map(|_| connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            // Some have sent nearly all of it by then.
            let sent = [PART, 2 * PART, 3 * PART - 1][number % 3];
            client
                .send(format!("*3\r\n$3\r\nSET\r\n$2\r\n{number:02}\r\n${}\r\n", value.len()).as_bytes())
                .expect("so");
            client.send(&value[..sent]).expect("it is taken");
        }
        let mut observer = connect();
        wait_until("all are passed on", LIMIT, || Ok(observer.figure("proxy", "requests_in_pieces")? == 12))
            .expect("so");
        // These are whole just before.
        for client in clients.iter_mut().skip(2).step_by(3) {
            client.send(&[&value[3 * PART - 1..], b"\r\n"].concat()).expect("it is taken");
        }
        let mut straight = node.client().expect("it accepts");
        let mut is_there = |number: usize| straight.ask(&format!("EXISTS {number:02}"));
        wait_until("they are done", LIMIT, || {
            let done = [2, 5, 8, 11].map(&mut is_there).into_iter().collect::<Result<Vec<_>, _>>()?;
            Ok(done.iter().all(|done| done == ":1\r\n"))
        })
        .expect("they are");
        let mut next = is_succeeded.then(|| {
            let next = Running::start(respool(&args).args(["--take-over", &takeover]));
            std::mem::replace(&mut proxy, next)
        });
        if !is_succeeded {
            proxy.process.signal(Signal::TERM).expect("it is there");
        }
        let mut answered = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            client.set_timeout(LIMIT).expect("it can be set");
            let sent = [PART, 2 * PART, 3 * PART - 1][number % 3];
            // Some send the rest, and others never do.
            if number % 3 == 0 {
                let _ = client.send(&[&value[sent..], b"\r\n"].concat());
            }
            match client.reply() {
                Ok(reply) => {
                    assert_eq!(reply, b"+OK\r\n", "{number}");
                    answered.push(number);
                }
                Err(error) => {
                    let is_end = error.to_string().contains("closed after 0 bytes");
                    assert!(is_end || error.kind() == std::io::ErrorKind::ConnectionReset, "{number}: {error}");
                }
            }
        }
        // The former process, if there is another.
        next.as_mut().unwrap_or(&mut proxy).await_end();
        assert!(answered.len() >= 4 && !answered.iter().any(|number| number % 3 == 1), "{answered:?}");
        for number in 0..12 {
            let length = if answered.contains(&number) { value.len() } else { 0 };
            assert_eq!(straight.ask(&format!("STRLEN {number:02}")).expect("a reply"), format!(":{length}\r\n"));
        }
    }
}
