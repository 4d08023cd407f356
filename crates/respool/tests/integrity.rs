//! Integrity mode before nodes that leave out replies, send one too many or in another order: no client gets another's.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use respool_testkit::{Act, Client, FakeBackend, Received, TempDir, request, usual_reply, wait_until};
use rustix::process::Signal;
use support::{LIMIT, Running, respool};

/// A node that keeps to the rules but for what is asked of these keys: it answers `drop` with nothing, `twice` twice, and
/// `late` one reply later. `busy` makes it refuse everything from then on.
fn node() -> FakeBackend {
    let late: Mutex<Option<Vec<u8>>> = Mutex::new(None);
    let busy = Mutex::new(false);
    FakeBackend::start(move |request: &Received| {
        let mut late = late.lock().expect("no test panics");
        let mut busy = busy.lock().expect("no test panics");
        if request.key() == b"busy" {
            *busy = true;
        }
        if *busy && !matches!(&*request.command(), "PING" | "HELLO") {
            return Act::Bytes(b"-BUSY a script runs\r\n".to_vec());
        }
        match request.key() {
            b"drop" => Act::Skip,
            b"twice" => Act::Bytes([usual_reply(request), usual_reply(request)].concat()),
            b"late" => {
                *late = Some(usual_reply(request));
                Act::Skip
            }
            _ => Act::Bytes([usual_reply(request), late.take().unwrap_or_default()].concat()),
        }
    })
    .expect("a port")
}

fn proxy(node: &FakeBackend, more: &[&str]) -> Running {
    // Longer than a busy machine makes a node that answers wait.
    proxy_with_deadline(node, "2s", more)
}

fn proxy_with_deadline(node: &FakeBackend, deadline: &str, more: &[&str]) -> Running {
    let address = node.address().to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--node", &address, "--workers", "1", "--reconnect-min", "5ms"];
    let args = [&args[..], &["--health-interval", "off", "--request-timeout", deadline]].concat();
    Running::start(respool(&args).args(more))
}

/// What a client gets for GETs that it sends at once.
fn get(client: &mut Client, keys: &[&str]) -> Vec<String> {
    let requests: Vec<u8> = keys.iter().flat_map(|key| request(&["GET", key])).collect();
    client.send(&requests).expect("they are taken");
    keys.iter().map(|_| String::from_utf8_lossy(&client.reply().expect("a reply")).into_owned()).collect()
}

fn value(key: &str) -> String {
    format!("${}\r\nvalue-of-{key}\r\n", key.len() + 9)
}

fn is_right(reply: &str, key: &str) -> bool {
    reply == value(key) || reply.starts_with("-ERR node ")
}

fn until_served(client: &mut Client) {
    wait_until("it is served", LIMIT, || {
        let reply = get(client, &["k"]).remove(0);
        assert!(is_right(&reply, "k"), "{reply}");
        Ok(reply == value("k"))
    })
    .expect("it is");
}

#[test]
fn one_reply_too_few_or_too_many_costs_batch_and_connection() {
    for (rule, run) in [("drop", "off"), ("twice", "off"), ("drop", "1"), ("twice", "2"), ("late", "1")] {
        let node = node();
        let proxy = proxy(&node, &["--integrity-check", "1", "--integrity-run", run]);
        let mut client = proxy.client(0);
        until_served(&mut client);
        let before = node.connections();
        let keys = ["a", "b", rule, "c", "d"];
        for (reply, key) in get(&mut client, &keys).iter().zip(keys) {
            assert!(is_right(reply, key), "{rule} {run}: {key} got {reply}");
            // What has been proved before it left has left.
            let is_before = run != "off" && ["a", "b"].contains(&key);
            assert!(reply.starts_with('-') != is_before, "{rule} {run}: {key} got {reply}");
        }
        until_served(&mut client);
        assert!(node.connections() > before, "{rule} {run}: the connection is burnt");
        assert_eq!(client.figure("proxy", "integrity_faults").expect("it is told"), 1, "{rule} {run}");
        let log = proxy.end();
        assert!(log.iter().any(|line| line.contains("that are not those to its requests")), "{log:?}");
    }
}

#[test]
fn clients_of_an_erring_node_get_their_own_replies_or_errors() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let node = FakeBackend::start(move |request| {
        let count = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        // Further apart than a batch of all clients is long: one too few and one too many behind it would look right.
        match count % 97 {
            13 if request.command() == "GET" => Act::Skip,
            61 => Act::Bytes([usual_reply(request), usual_reply(request)].concat()),
            _ => Act::Usual,
        }
    })
    .expect("a port");
    let proxy = proxy_with_deadline(&node, "500ms", &["--integrity-check", "1"]);
    let mut clients: Vec<Client> = (0..8).map(|_| proxy.client(0)).collect();
    let (mut served, mut failed) = (0, 0);
    for round in 0..60 {
        let keys = |client: usize| (0..4).map(|n| format!("{client}-{round}-{n}")).collect::<Vec<_>>();
        for (number, client) in clients.iter_mut().enumerate() {
            let requests: Vec<u8> = keys(number).iter().flat_map(|key| request(&["GET", key])).collect();
            client.send(&requests).expect("they are taken");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            for key in keys(number) {
                let reply = String::from_utf8_lossy(&client.reply().expect("a reply")).into_owned();
                assert!(is_right(&reply, &key), "{key} got {reply}");
                if reply.starts_with('-') { failed += 1 } else { served += 1 }
            }
        }
    }
    assert!(served > 0 && failed > 0, "{served} served, {failed} failed");
    assert!(clients[0].figure("proxy", "integrity_faults").expect("it is told") > 1);
    proxy.end();
}

#[test]
fn a_proof_that_does_not_come_is_reported_at_the_deadline() {
    let node = FakeBackend::start(|request| if request.command() == "ECHO" { Act::Skip } else { Act::Usual });
    let node = node.expect("a port");
    let proxy = proxy(&node, &["--integrity-check", "1"]);
    let mut client = proxy.client(0);
    let reply = get(&mut client, &["a"]).remove(0);
    assert!(reply.contains("did not answer within 2000 ms"), "{reply}");
    proxy.end();
}

#[test]
fn a_node_that_refuses_everything_keeps_its_connection() {
    let node = node();
    let proxy = proxy(&node, &["--integrity-check", "1"]);
    let mut client = proxy.client(0);
    until_served(&mut client);
    let before = node.connections();
    let replies = get(&mut client, &["a", "busy", "b"]);
    assert_eq!(replies[1], "-BUSY a script runs\r\n");
    assert_eq!(replies[2], "-BUSY a script runs\r\n");
    assert!(replies[0].contains("failed the integrity check (BUSY a script runs)"), "{}", replies[0]);
    assert_eq!(node.connections(), before);
    proxy.end();
}

#[test]
fn a_reply_too_large_to_hold_is_an_error_its_neighbours_not() {
    let node = FakeBackend::start(|request| match request.key() {
        b"large" => Act::Bytes(format!("$200000\r\n{}\r\n", "x".repeat(200_000)).into_bytes()),
        _ => Act::Usual,
    })
    .expect("a port");
    let proxy = proxy(&node, &["--integrity-check", "1", "--integrity-bytes", "100kb"]);
    let mut client = proxy.client(0);
    until_served(&mut client);
    let replies = get(&mut client, &["a", "large", "b"]);
    assert_eq!([&replies[0], &replies[2]], [&value("a"), &value("b")]);
    assert!(replies[1].contains("too large for the integrity check"), "{}", replies[1]);
    assert_eq!(client.figure("proxy", "integrity_withheld").expect("it is told"), 1);
    proxy.end();
}

#[test]
fn an_old_node_and_a_sample_of_batches_work_as_well() {
    let node = respool_testkit::RedisServer::start_without_hello().expect("redis-server");
    let address = node.tcp().to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--node", &address, "--workers", "1", "--integrity-check", "2"];
    let proxy = Running::start(&mut respool(&args));
    let mut client = proxy.client(0);
    assert!(client.ask("HELLO 3").expect("a reply").starts_with('%'));
    for n in 0..200 {
        assert_eq!(client.ask(&format!("SET k {n}")).expect("a reply"), "+OK\r\n");
        assert_eq!(get(&mut client, &["k", "k"]), vec![format!("${}\r\n{n}\r\n", n.to_string().len()); 2]);
    }
    assert_eq!(client.ask("GET nothing").expect("a reply"), "_\r\n");
    for line in ["MULTI", "INCR n", "GET k"] {
        client.ask(line).expect("a reply");
    }
    assert_eq!(client.ask("EXEC").expect("a reply"), "*2\r\n:1\r\n$3\r\n199\r\n");
    assert_eq!(client.figure("proxy", "integrity_faults").expect("it is told"), 0);
    proxy.end();
}

/// Switched on and off while requests flow: no client gets another's reply, and only while it is on is a shifted connection
/// found out before its replies leave.
#[test]
fn a_reload_switches_it_on_and_off_while_clients_are_served() {
    let node = node();
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("r.toml");
    let write = |terms: &str| {
        let text =
            format!("listen = \"127.0.0.1:0\"\nnodes = \"{}\"\nhealth_interval = \"off\"\n{terms}", node.address());
        std::fs::write(&file, text).expect("a file");
    };
    write("");
    let proxy = Running::start(respool(&["serve", "--workers", "1", "--config"]).arg(&file));
    let mut client = proxy.client(0);
    let echoes = || node.received().iter().filter(|request| &*request.command() == "ECHO").count();
    // One that is in the midst of a pipeline all the time.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut busy = proxy.client(0);
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                let keys: Vec<String> = (0..200).map(|number| format!("b{number}")).collect();
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                for (key, reply) in keys.iter().zip(get(&mut busy, &keys)) {
                    assert_eq!(reply, value(key));
                }
            }
        });
        for (terms, is_on) in [
            ("integrity_check = 1\n", true),
            ("", false),
            ("integrity_check = 1\nintegrity_run = 1\n", true),
            ("integrity_check = 1\nintegrity_run = 3\n", true),
            ("", false),
        ] {
            write(terms);
            proxy.process.signal(Signal::HUP).expect("it is there");
            wait_until("it has taken effect", LIMIT, || {
                let before = echoes();
                assert_eq!(get(&mut client, &["k"]), [value("k")]);
                Ok((echoes() > before) == is_on)
            })
            .expect("it does");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    write("integrity_check = 1\nintegrity_run = 1\n");
    proxy.process.signal(Signal::HUP).expect("it is there");
    wait_until("it has taken effect", LIMIT, || {
        let before = echoes();
        assert_eq!(get(&mut client, &["k"]), [value("k")]);
        Ok(echoes() > before)
    })
    .expect("it does");
    let keys = ["x1", "drop", "x2", "x3"];
    for (key, reply) in keys.iter().zip(get(&mut client, &keys)) {
        assert!(is_right(&reply, key), "{key}: {reply}");
    }
    assert_eq!(client.figure("proxy", "integrity_faults").expect("it is told"), 1);
    until_served(&mut client);
    proxy.end();
}
