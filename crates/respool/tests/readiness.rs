//! Nodes at the start, and the readiness of a process from its start to its end.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use respool_testkit::{Act, ClosedPort, FakeBackend, Gate, RedisServer, usual_reply, wait_until};
use rustix::process::Signal;
use support::{LIMIT, Running, respool, serve};

/// The address of the HTTP side.
fn admin_of(process: &Running) -> String {
    let line = process.says("metrics at");
    line.trim().trim_start_matches("metrics at http://").trim_end_matches("/metrics").to_owned()
}

/// The status and body of a page.
fn http(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it ends");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// An address at which nothing listens.
fn nowhere() -> ClosedPort {
    ClosedPort::take().expect("a port")
}

const SOME: [&str; 6] = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--workers", "2"];

#[test]
fn each_node_is_dialled_at_the_start_and_the_log_says_so() {
    let node = RedisServer::start().expect("a redis-server");
    let mute = FakeBackend::start(|_| Act::Silence).expect("a port");
    let closed = nowhere();
    let (good, dead) = (format!("{} name=good", node.tcp()), format!("{} name=dead", closed.address()));
    let silent = format!("{} name=silent", mute.address());
    let nodes = ["--node", &good, "--node", &dead, "--node", &silent, "--node", "no-such-host.invalid:6379 name=lost"];
    let proxy = serve(&[&SOME[..], &nodes].concat());
    let reached = proxy.says("node good is reached at ");
    assert!(reached.contains(&format!("{} within ", node.tcp())) && reached.contains("redis 7."), "{reached}");
    assert!(reached.contains("standalone master"), "{reached}");
    proxy.says("node dead is out of use: it could not be reached (");
    proxy.says("node silent is out of use: it could not be reached in time");
    proxy.says("node lost is out of use: it could not be re");
    let shown = proxy.client(0).ask("PROXY SHOW NODES").expect("a reply");
    assert!(shown.contains("redis 7."), "{shown}");
    let lines = proxy.end();
    for name in ["good", "dead", "silent", "lost"] {
        let told = lines.iter().filter(|line| line.contains(&format!("node {name} is "))).count();
        assert_eq!(told, 1, "{name}: {}", lines.join("\n"));
    }
}

#[test]
fn a_process_is_ready_once_a_node_is_and_says_which_is_missing() {
    let gate = Gate::new();
    let node = FakeBackend::start_holding("HELLO", &gate).expect("a port");
    let closed = nowhere();
    let (slow, dead) = (format!("{} name=slow", node.address()), format!("{} name=dead", closed.address()));
    let args = ["--node", &slow, "--node", &dead, "--connect-timeout", "5m"];
    let proxy = serve(&[&SOME[..], &args].concat());
    let admin = admin_of(&proxy);
    let (status, body) = http(&admin, "/readyz");
    assert_eq!((status, body.starts_with("too few nodes: 0 of 2 are reached, 1 are needed\n")), (503, true), "{body}");
    assert!(body.contains("slow is not reached\n") && body.contains("dead is not reached\n"), "{body}");
    // Clients are served before the process is ready.
    assert_eq!(proxy.client(0).ask("PING").expect("a reply"), "+PONG\r\n");
    gate.open();
    wait_until("it is ready", LIMIT, || Ok(http(&admin, "/readyz").0 == 200)).expect("it becomes so");
    assert_eq!(http(&admin, "/readyz").1, "ready\ndead is not reached\n");
    proxy.end();
    let proxy = serve(&[&SOME[..], &["--node", &dead, "--ready-nodes", "0"]].concat());
    assert_eq!(http(&admin_of(&proxy), "/readyz"), (200, "ready\ndead is not reached\n".to_owned()));
    proxy.end();
}

#[test]
fn nodes_that_are_dead_at_the_start_are_named_and_no_other() {
    let backends: Vec<FakeBackend> = (0..54).map(|_| FakeBackend::start(|_| Act::Usual).expect("a port")).collect();
    let living = backends.iter().enumerate().map(|(at, node)| format!("{} name=n{at}.", node.address()));
    let closed: Vec<ClosedPort> = (54..64).map(|_| nowhere()).collect();
    let dead = closed.iter().enumerate().map(|(at, port)| format!("{} name=n{}.", port.address(), 54 + at));
    let nodes: Vec<String> = living.chain(dead).collect();
    let nodes: Vec<&str> = nodes.iter().flat_map(|node| ["--node", node]).collect();
    // 54 of 64 are 84.4 %.
    for (share, status) in [("84", 200), ("85", 503)] {
        let proxy = serve(&[&SOME[..], &nodes, &["--ready-nodes", share]].concat());
        let admin = admin_of(&proxy);
        let all_dead: Vec<String> = (54..64).map(|at| format!("n{at}. is not reached")).collect();
        let mut last = (0, String::new());
        let named = wait_until("the dead are named and no other", LIMIT, || {
            last = http(&admin, "/readyz");
            Ok(last.1.lines().skip(1).eq(all_dead.iter().map(String::as_str)))
        });
        if named.is_err() || last.0 != status {
            panic!("{named:?}: {last:?}\n{}", proxy.end().join("\n"));
        }
        let mut client = proxy.client(0);
        let is_dead = |reply: &str| (54..64).any(|at| reply.starts_with(&format!("-ERR node n{at}. ")));
        for key in 0..200 {
            let reply = client.ask(&format!("GET k{key}")).expect("a reply");
            assert!(reply.contains("value-of-k") || is_dead(&reply), "{reply}");
        }
        proxy.end();
    }
}

/// A proxy with one node that has been reached.
fn before(node: &str) -> Running {
    let proxy = serve(&[&SOME[..], &["--node", node]].concat());
    proxy.says("is reached at");
    proxy
}

fn unfit(proxy: &Running) -> String {
    let shown = proxy.client(0).ask("PROXY SHOW NODES").expect("a reply");
    shown.split("\r\n").skip_while(|word| *word != "unfit").nth(2).unwrap_or_default().to_owned()
}

fn is_unfit_in_metrics(proxy: &Running, name: &str) -> bool {
    let page = http(&admin_of(proxy), "/metrics").1;
    page.lines().any(|line| line == format!("respool_node_unfit{{node=\"{name}\"}} 1"))
}

#[test]
fn replicas_members_and_sentinels_are_named_at_the_start() {
    let primary = RedisServer::start().expect("a redis-server");
    let port = primary.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).expect("a redis-server");
    let member = RedisServer::start_with(&["--cluster-enabled", "yes"]).expect("a redis-server");
    let sentinel = FakeBackend::start(|request| match &*request.command() {
        "HELLO" => Act::Bytes(b"*4\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n".to_vec()),
        _ => Act::Usual,
    })
    .expect("a port");
    for (address, says, name) in [
        (replica.tcp(), "is a replica, which refuses writes with READONLY: name its primary in `nodes`", "replica"),
        (member.tcp(), "is a member of a Redis Cluster, which answers MOVED", "cluster member"),
        (sentinel.address(), "is a Sentinel, which holds no keys", "sentinel"),
    ] {
        let proxy = before(&format!("{address} name=n"));
        proxy.says(&format!("node n {says}"));
        assert_eq!(unfit(&proxy), name);
        assert!(is_unfit_in_metrics(&proxy, "n"), "{name}");
        let lines = proxy.end();
        assert_eq!(lines.iter().filter(|line| line.contains(says)).count(), 1, "{}", lines.join("\n"));
    }
    // A replica that the settings name as one is not reported.
    let (one, copy) = (format!("{} name=n", primary.tcp()), format!("{} name=copy replica_of=n", replica.tcp()));
    let proxy = serve(&[&SOME[..], &["--node", &one, "--node", &copy]].concat());
    proxy.says("node copy is reached at");
    proxy.says("node n is reached at");
    assert_eq!(unfit(&proxy), "");
    let lines = proxy.end();
    assert!(!lines.iter().any(|line| line.contains("is a replica")), "{}", lines.join("\n"));
}

#[test]
fn a_node_turned_replica_is_named_when_it_refuses_a_write() {
    let [primary, node] = [(); 2].map(|()| RedisServer::start().expect("a redis-server"));
    let proxy = before(&format!("{} name=n", node.tcp()));
    let mut client = proxy.client(0);
    assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");
    assert_eq!(unfit(&proxy), "");
    let order = format!("REPLICAOF 127.0.0.1 {}", primary.port());
    assert_eq!(node.client().and_then(|mut direct| direct.ask(&order)).expect("a reply"), "+OK\r\n");
    for _ in 0..3 {
        assert!(client.ask("SET k w").expect("a reply").starts_with("-READONLY"));
    }
    proxy.says("node n is a replica");
    assert_eq!(unfit(&proxy), "replica");
    let lines = proxy.end();
    assert_eq!(lines.iter().filter(|line| line.contains("is a replica")).count(), 1, "{}", lines.join("\n"));
}

#[test]
fn a_node_that_does_not_say_what_it_is_is_used_all_the_same() {
    let reserved = FakeBackend::start(|request| match &*request.command() {
        "HELLO" | "INFO" => Act::Bytes(b"-NOPERM this user has no permissions\r\n".to_vec()),
        _ => Act::Usual,
    })
    .expect("a port");
    let proxy = before(&format!("{} name=n", reserved.address()));
    proxy.says("it does not say what it is");
    assert_eq!(proxy.client(0).ask("SET k v").expect("a reply"), "+OK\r\n");
    proxy.end();
    let old = FakeBackend::start(|request| match &*request.command() {
        "HELLO" => Act::Bytes(b"-ERR unknown command 'HELLO'\r\n".to_vec()),
        "INFO" => Act::Bytes(b"$33\r\nredis_version:4.0.14\r\nrole:master\r\n".to_vec()),
        _ => Act::Usual,
    })
    .expect("a port");
    let proxy = before(&format!("{} name=n", old.address()));
    assert!(proxy.says("is reached at").contains(": redis 4.0.14 master"));
    proxy.end();
    // Some proxies close the connection on an unknown command.
    let strict = FakeBackend::start(|request| match &*request.command() {
        "HELLO" | "INFO" => Act::Close,
        _ => Act::Bytes(usual_reply(request)),
    })
    .expect("a port");
    let proxy = before(&format!("{} name=n", strict.address()));
    assert_eq!(proxy.client(0).ask("GET k").expect("a reply"), "$10\r\nvalue-of-k\r\n");
    let lines = proxy.end();
    assert!(!lines.iter().any(|line| line.contains("out of use")), "{}", lines.join("\n"));
    assert!(strict.connections() <= 3, "{}: it is asked once", strict.connections());
}

#[test]
fn a_node_that_lets_in_users_alone_is_in_use_and_makes_ready() {
    let node = RedisServer::start_with(&["--requirepass", "there"]).expect("a redis-server");
    let directory = respool_testkit::TempDir::new().expect("a directory");
    let file = directory.join("r.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"\nworkers = 2\nnodes = [\"{} name=n\"]\n\
         [users.app]\nrules = \"on >secret ~* &* +@all\"\nnode_username = \"default\"\nnode_password = \"there\"\n",
        node.tcp()
    );
    std::fs::write(&file, text).expect("it is written");
    let proxy = Running::start(respool(&["serve", "--config"]).arg(&file));
    let admin = admin_of(&proxy);
    wait_until("it is ready", LIMIT, || Ok(http(&admin, "/readyz").0 == 200)).expect("it becomes so");
    let mut client = proxy.client(0);
    assert_eq!(client.ask("AUTH app secret").expect("a reply"), "+OK\r\n");
    assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");
    let lines = proxy.end();
    assert!(!lines.iter().any(|line| line.contains("out of use")), "{}", lines.join("\n"));
}

#[test]
fn a_process_that_is_to_end_serves_on_for_the_drain_delay() {
    let node = RedisServer::start().expect("a redis-server");
    let address = node.tcp().to_string();
    let start = |delay: &str| {
        let proxy = serve(&[&SOME[..], &["--node", &address, "--drain-delay", delay]].concat());
        let admin = admin_of(&proxy);
        wait_until("it is ready", LIMIT, || Ok(http(&admin, "/readyz").0 == 200)).expect("it becomes so");
        (proxy, admin)
    };
    let (mut proxy, admin) = start("1h");
    let mut before = proxy.client(0);
    assert_eq!(before.ask("SET k v").expect("a reply"), "+OK\r\n");
    proxy.process.signal(Signal::TERM).expect("it is there");
    proxy.says("not ready any more");
    assert_eq!(http(&admin, "/readyz"), (503, "draining\n".to_owned()));
    assert_eq!(http(&admin, "/healthz").0, 200);
    assert_eq!(before.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    let mut after = proxy.client(0);
    assert_eq!(after.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    // A second signal ends the delay, and outstanding requests are still answered.
    after.send(b"BLPOP none 0\r\n").expect("it is taken");
    before.send(b"GET k\r\n").expect("it is taken");
    assert_eq!(before.reply().expect("a reply"), b"$1\r\nv\r\n");
    proxy.process.signal(Signal::TERM).expect("it is there");
    proxy.says("draining: no new clients");
    proxy.await_end();
    assert_eq!(before.read_to_close().expect("a clean end"), b"");

    let (mut proxy, _) = start("50ms");
    let mut client = proxy.client(0);
    assert_eq!(client.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    proxy.process.signal(Signal::TERM).expect("it is there");
    proxy.says("the drain delay is over");
    proxy.await_end();
    assert_eq!(client.read_to_close().expect("a clean end"), b"");
}

#[test]
fn a_successor_takes_over_once_its_nodes_are_reached() {
    let directory = respool_testkit::TempDir::new().expect("a directory");
    let takeover = directory.join("takeover").display().to_string();
    let (gate, server) = (Gate::new(), RedisServer::start().expect("a redis-server"));
    let backend = FakeBackend::start_holding("HELLO", &gate).expect("a port");
    let (node, slow) = (node_at(&server), backend.address().to_string());
    let common = [&SOME[..], &["--takeover-socket", &takeover]].concat();
    let mut old = serve(&[&common[..], &["--node", &node]].concat());
    let mut client = old.client(0);
    assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");

    // A successor without usable nodes fails, and the old process serves on.
    let closed = nowhere();
    let dead = closed.address().to_string();
    let wrong = ["--take-over", &takeover, "--node", &dead, "--connect-timeout", "20ms"].map(str::to_owned);
    let failed = respool(&["serve"]).args(&common).args(&wrong).output().expect("it starts");
    let words = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        !failed.status.success() && words.contains("the listeners are not taken over: too few nodes: 0 of 1"),
        "{words}"
    );
    assert!(words.contains(" is not reached") && words.contains("ready_nodes = 0"), "{words}");
    old.says("did not get them");
    assert_eq!(client.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    assert_eq!(old.client(0).ask("GET k").expect("a reply"), "$1\r\nv\r\n");

    // A successor waits for a slow node, while the old process serves.
    let mut command = respool(&["serve"]);
    command.args(&common).args(["--take-over", &takeover, "--node", &slow, "--connect-timeout", "5m"]);
    let next = respool_testkit::Process::spawn("respool", &mut command).expect("it starts");
    wait_until("the node is asked", LIMIT, || Ok(backend.connections() == 1)).expect("it is");
    assert_eq!(old.client(0).ask("GET k").expect("a reply"), "$1\r\nv\r\n", "new clients are the old one's");
    gate.open();
    next.wait_for_line(support::READY, LIMIT).expect("it becomes ready");
    let next = Running { process: next };
    assert_eq!(next.addresses(), old.addresses());
    wait_until("new clients are the new one's", LIMIT, || Ok(old_or_new(&next) == "$10\r\nvalue-of-k\r\n"))
        .expect("so");
    assert_eq!(client.ask("GET k").expect("a reply"), "$1\r\nv\r\n", "one that was there is served on");
    old.process.signal(Signal::TERM).expect("it is there");
    old.await_end();
    next.end();
}

#[test]
fn a_node_that_an_operator_has_drained_is_not_missed() {
    let directory = respool_testkit::TempDir::new().expect("a directory");
    let takeover = directory.join("takeover").display().to_string();
    let node = RedisServer::start().expect("a redis-server");
    let address = format!("{} name=n", node_at(&node));
    let args = [&SOME[..], &["--takeover-socket", &takeover, "--node", &address, "--admin-commands", "allow"]].concat();
    let mut old = serve(&args);
    let admin = admin_of(&old);
    wait_until("it is ready", LIMIT, || Ok(http(&admin, "/readyz").0 == 200)).expect("it becomes so");
    assert_eq!(old.client(0).ask("PROXY DRAIN n").expect("a reply"), "+OK\r\n");
    let next = serve(&[&args[..], &["--take-over", &takeover]].concat());
    old.process.signal(Signal::TERM).expect("it is there");
    // For a moment the old process may still accept connections on the shared listener, and end with them.
    old.await_end();
    assert_eq!(http(&admin_of(&next), "/readyz"), (200, "ready\n".to_owned()));
    next.end();
}

fn node_at(node: &RedisServer) -> String {
    node.tcp().to_string()
}

fn old_or_new(process: &Running) -> String {
    process.client(0).ask("GET k").expect("a reply")
}
