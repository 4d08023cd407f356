//! Nodes that vanish, freeze or lose step while they are idle.

mod support;

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use respool_testkit::{Act, Address, Client, FakeBackend, Gate, TempDir, usual_reply, wait_until};
use rustix::process::Signal;
use support::{LIMIT, Running, respool, serve};

/// Runs a command of the system; `false` if it cannot.
fn does(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let command = words.next().map(Command::new);
    let output = command.map(|mut command| command.args(words).output());
    output.is_some_and(|output| output.is_ok_and(|output| output.status.success()))
}

/// Two network namespaces with a cable between them. They go when this goes.
struct Cable {
    here: String,
    there: String,
}

impl Cable {
    /// `None`: this system does not let us.
    fn lay() -> Option<Self> {
        let id = std::process::id();
        let cable = Self { here: format!("respool-{id}-a"), there: format!("respool-{id}-b") };
        let Self { here, there } = &cable;
        let commands = [
            format!("ip netns add {here}"),
            format!("ip netns add {there}"),
            format!("ip link add rsp0 netns {here} type veth peer name rsp1 netns {there}"),
            format!("ip -n {here} addr add 10.99.0.1/24 dev rsp0"),
            format!("ip -n {there} addr add 10.99.0.2/24 dev rsp1"),
            format!("ip -n {here} link set rsp0 up"),
            format!("ip -n {there} link set rsp1 up"),
            format!("ip -n {here} link set lo up"),
        ];
        commands.iter().all(|command| does(command)).then_some(cable)
    }

    fn set(&self, state: &str) {
        assert!(does(&format!("ip -n {} link set rsp1 {state}", self.there)), "the cable is ours");
    }

    fn serve(&self, namespace: &str, args: &[&str]) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_respool"), "serve"]).args(args);
        Running::start(&mut command)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        does(&format!("ip netns del {}", self.here));
        does(&format!("ip netns del {}", self.there));
    }
}

/// The state of the only node.
fn state(client: &mut Client) -> String {
    let shown = client.ask("PROXY SHOW NODES").expect("a reply");
    let words = ["suspect", "down", "idle", "up"];
    let is_in = |word: &&str| shown.lines().any(|line| line.split_whitespace().any(|part| part == *word));
    words.into_iter().find(is_in).unwrap_or_else(|| panic!("{shown}")).to_owned()
}

/// Without them only the kernel can say that a node has vanished. It says so within two seconds, which no test can hold a
/// machine to that has other things to do.
const NO_DEADLINES: [&str; 4] = ["--request-timeout", "off", "--node-silence-timeout", "off"];

#[test]
fn a_node_that_vanishes_is_found_by_the_kernel() {
    let Some(cable) = Cable::lay() else {
        eprintln!("skipped: this system does not let us make network namespaces");
        return;
    };
    let node = cable.serve(&cable.there, &["--listen", "10.99.0.2:0", "--protected-mode", "no"]);
    let directory = TempDir::new().expect("a directory");
    let socket = directory.join("s");
    let address = node.addresses()[0].to_string();
    let listen = ["--listen", socket.to_str().expect("UTF-8"), "--node", &address, "--workers", "1"];
    let proxy = cable.serve(&cable.here, &[&listen[..], &NO_DEADLINES].concat());
    let mut client = Client::connect(&Address::Unix(socket.clone())).expect("it accepts");
    for is_asked in [false, true] {
        wait_until("the node is there", LIMIT, || Ok(client.ask("SET k v")? == "+OK\r\n")).expect("it is");
        assert_eq!(state(&mut client), "up");
        cable.set("down");
        if is_asked {
            let reply = client.ask("SET k w").expect("a reply");
            assert!(reply.starts_with('-'), "{reply}");
        }
        wait_until("the node is missed", LIMIT, || Ok(state(&mut client) == "down")).expect("it is");
        cable.set("up");
    }
    wait_until("the node is back", LIMIT, || Ok(client.ask("GET k")?.starts_with('$'))).expect("it is");
    proxy.end();
    node.end();
}

/// The same without a network of our own: here the node's kernel stops to acknowledge one connection.
#[cfg(target_os = "linux")]
#[test]
fn a_connection_that_is_dead_at_the_other_end_is_found() {
    for (is_asked, is_watched) in [(true, true), (false, true), (true, false)] {
        let node = FakeBackend::start(|_| Act::Usual).expect("a port");
        let address = node.address().to_string();
        let health = if is_watched { "250ms" } else { "off" };
        let args = ["--health-interval", health, "--reconnect-min", "10ms", "--workers", "1"];
        let mut program = respool(&["serve", "--listen", "127.0.0.1:0", "--node", &address]);
        let proxy = Running::start(program.args(args).args(NO_DEADLINES));
        let mut client = proxy.client(0);
        assert_eq!(client.ask("GET a").expect("a reply"), "$10\r\nvalue-of-a\r\n");
        let began = Instant::now();
        node.vanish().expect("a filter");
        if is_asked {
            let reply = client.ask("GET b").expect("a reply");
            assert!(reply.starts_with("-ERR") && reply.contains("broke the connection"), "{reply}");
        }
        wait_until("it is dialled again", LIMIT, || Ok(node.connections() >= 2)).expect("it is");
        // Not so soon that one lost packet would do.
        assert!(began.elapsed() > Duration::from_millis(900), "{is_asked} {is_watched}: {:?}", began.elapsed());
        wait_until("it is served", LIMIT, || Ok(client.ask("GET c")? == "$10\r\nvalue-of-c\r\n")).expect("it is");
        proxy.end();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_reload_says_how_long_nodes_may_be_silent() {
    let node = FakeBackend::start(|_| Act::Usual).expect("a port");
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("r.toml");
    let write = |timeout: &str| {
        let text = format!(
            "listen = \"127.0.0.1:0\"\nnodes = \"{}\"\nnode_tcp_user_timeout = \"{timeout}\"\n",
            node.address()
        );
        std::fs::write(&file, text + "request_timeout = \"off\"\nnode_silence_timeout = \"off\"\n").expect("a file");
    };
    write("1h");
    let proxy = Running::start(respool(&["serve", "--workers", "1", "--config"]).arg(&file));
    let (mut client, mut other) = (proxy.client(0), proxy.client(0));
    assert_eq!(client.ask("GET a").expect("a reply"), "$10\r\nvalue-of-a\r\n");
    node.vanish().expect("a filter");
    client.send(b"GET b\r\n").expect("it is taken");
    let began = Instant::now();
    wait_until("the nodes are in use", LIMIT, || {
        assert_eq!(state(&mut other), "up");
        Ok(began.elapsed() > Duration::from_millis(1_500))
    })
    .expect("time passes");
    write("900ms");
    proxy.process.signal(Signal::HUP).expect("it is there");
    proxy.says("node_tcp_user_timeout of pool main is now 900ms");
    assert!(client.reply().expect("a reply").starts_with(b"-ERR node "));
    proxy.end();
}

#[test]
fn a_node_that_is_busy_behind_a_full_window_loses_nothing() {
    let gate = Gate::new();
    let held = gate.clone();
    let node = FakeBackend::start(move |request| match request.key() {
        b"long" => Act::Hold(held.clone()),
        _ => Act::Usual,
    })
    .expect("a port");
    let address = node.address().to_string();
    let proxy = serve(&["--listen", "127.0.0.1:0", "--node", &address, "--workers", "1"]);
    let (mut client, mut other, mut operator) = (proxy.client(0), proxy.client(0), proxy.client(0));
    other.send(b"GET long\r\n").expect("it is taken");
    node.wait_for(b"long").expect("it comes");
    let began = Instant::now();
    const REQUESTS: usize = 400;
    std::thread::scope(|scope| {
        let value = "v".repeat(20_000);
        let mut writer = client.writer().expect("a second hand");
        scope.spawn(move || {
            // Far more than the window and both kernels' buffers take.
            for _ in 0..REQUESTS {
                writer.write_all(&respool_testkit::request(&["SET", "k", &value])).expect("they are taken");
            }
        });
        // Four times what a node that has vanished is given.
        wait_until("it has been busy for long", LIMIT, || {
            assert_eq!(state(&mut operator), "up");
            Ok(began.elapsed() > Duration::from_millis(3_600))
        })
        .expect("time passes");
        assert!(node.received().len() < REQUESTS);
        gate.open();
        assert_eq!(other.reply().expect("a reply"), b"$13\r\nvalue-of-long\r\n");
        for _ in 0..REQUESTS {
            assert_eq!(client.reply().expect("a reply"), b"+OK\r\n");
        }
    });
    assert_eq!(node.connections(), 1);
    proxy.end();
}

#[test]
fn a_node_that_is_frozen_is_suspect_and_keeps_its_connection() {
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let address = node.addresses()[0].to_string();
    let args = ["--health-interval", "50ms", "--health-timeout", "100ms", "--workers", "1"];
    let proxy = serve(&[&["--listen", "127.0.0.1:0", "--node", &address][..], &args].concat());
    let mut client = proxy.client(0);
    assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");
    node.process.signal(Signal::STOP).expect("it is there");
    wait_until("it is suspect", LIMIT, || Ok(state(&mut client) == "suspect")).expect("it becomes so");
    client.send(b"GET k\r\n").expect("it is taken");
    node.process.signal(Signal::CONT).expect("it is there");
    assert_eq!(client.reply().expect("a reply"), b"$1\r\nv\r\n");
    wait_until("it is trusted again", LIMIT, || Ok(state(&mut client) == "up")).expect("it becomes so");
    let clients = node.client(0).ask("INFO stats").expect("a reply");
    // Our own connection, and the one that was there all the time.
    assert!(clients.contains("total_connections_received:2\r\n"), "{clients}");
    proxy.end();
    node.end();
}

#[test]
fn a_false_answer_to_ping_costs_the_connection_alone() {
    let is_out_of_step = std::sync::atomic::AtomicUsize::new(0);
    let node = FakeBackend::start(move |request| {
        // The first one ends the handshake; the second is answered as if it had been something else.
        let count = if &*request.command() == "PING" {
            is_out_of_step.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        } else {
            0
        };
        if count == 1 { Act::Bytes(b"$5\r\nother\r\n".to_vec()) } else { Act::Bytes(usual_reply(request)) }
    })
    .expect("a port");
    let address = node.address().to_string();
    let args = ["--health-interval", "50ms", "--reconnect-min", "10ms", "--workers", "1"];
    let proxy = Running::start(respool(&["serve", "--listen", "127.0.0.1:0", "--node", &address]).args(args));
    let mut client = proxy.client(0);
    assert_eq!(client.ask("GET a").expect("a reply"), "$10\r\nvalue-of-a\r\n");
    wait_until("the connection was given up", LIMIT, || Ok(node.connections() >= 2)).expect("it was");
    for key in ["b", "c"] {
        wait_until("it is served again", LIMIT, || {
            let reply = client.ask(&format!("GET {key}"))?;
            assert!(reply.starts_with('-') || reply == format!("$10\r\nvalue-of-{key}\r\n"), "{reply}");
            Ok(reply.starts_with('$'))
        })
        .expect("it is");
    }
    proxy.end();
}

#[test]
fn a_node_that_comes_back_is_sent_little_first_all_in_the_end() {
    let node = FakeBackend::start(|request| match request.key() {
        b"die" => Act::Close,
        _ => Act::Bytes(usual_reply(request)),
    })
    .expect("a port");
    let address = node.address().to_string();
    let args = ["--slow-start", "2s", "--reconnect-min", "10ms", "--workers", "1", "--health-interval", "off"];
    let proxy = Running::start(respool(&["serve", "--listen", "127.0.0.1:0", "--node", &address]).args(args));
    let mut client = proxy.client(0);
    // Before it is back, so that no pause of the test counts as one of the proxy.
    let began = Instant::now();
    assert!(client.ask("GET die").expect("a reply").starts_with('-'));
    let is_back = |client: &mut Client| Ok(client.ask("GET a")? == "$10\r\nvalue-of-a\r\n");
    wait_until("it is back", LIMIT, || is_back(&mut client)).expect("it is");

    // More than it may be sent at once; a lone request does not wait for that.
    let value = "v".repeat(10_000);
    let mut busy = proxy.client(0);
    let requests: Vec<u8> = (0..300).flat_map(|_| respool_testkit::request(&["SET", "k", &value])).collect();
    busy.send(&requests).expect("they are taken");
    for _ in 0..300 {
        assert_eq!(busy.reply().expect("a reply"), b"+OK\r\n");
    }
    assert!(began.elapsed() > Duration::from_millis(100), "{:?}", began.elapsed());
    proxy.end();
}
