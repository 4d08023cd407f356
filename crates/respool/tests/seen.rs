//! What others see of a running Respool: whether it is ready, and what it sends to a statsd server.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use respool_testkit::{ClosedPort, FakeBackend, RedisServer, wait_until};
use support::{LIMIT, Running, respool};

/// Where a program serves HTTP.
fn admin(proxy: &Running) -> SocketAddr {
    let line = proxy.says("metrics at http://");
    let address = line.trim().trim_start_matches("metrics at http://").trim_end_matches("/metrics").to_owned();
    address.parse().expect("an address")
}

/// The status and the body of `/readyz`.
fn readyz(address: SocketAddr) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    Ok((head.split(' ').nth(1).unwrap_or_default().to_owned(), body.to_owned()))
}

#[test]
fn it_is_ready_while_enough_nodes_are_reached() {
    let mut first = RedisServer::start().expect("redis-server");
    let second = RedisServer::start().expect("redis-server");
    let closed = ClosedPort::take().expect("a port");
    let closed_node = format!("{} name=closed", closed.address());
    let nodes = [format!("{} name=first", first.tcp()), format!("{} name=second", second.tcp()), closed_node];
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--workers", "2", "--metrics", "127.0.0.1:0", "--reconnect-max", "50ms"];
    let nodes: Vec<&str> = nodes.iter().flat_map(|node| ["--node", node]).collect();
    let proxy = Running::start(respool(&args).args(nodes).args(["--ready-nodes", "60"]));
    let address = admin(&proxy);
    let is_so = |status: &str, body: &str| {
        wait_until("it says so", LIMIT, || Ok(readyz(address)? == (status.to_owned(), body.to_owned()))).expect("so");
    };
    // Without any request, nodes are dialled all the same.
    is_so("200", "ready\nclosed is not reached\n");
    first.kill().expect("it ends");
    is_so("503", "too few nodes: 1 of 3 are reached, 2 are needed\nclosed is not reached\nfirst is not reached\n");
    first.restart().expect("it starts");
    is_so("200", "ready\nclosed is not reached\n");
    proxy.end();
}

#[test]
fn a_statsd_server_gets_what_rmux_sent() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    server.set_read_timeout(Some(LIMIT)).expect("it can be set");
    let address = server.local_addr().expect("it has one").to_string();
    let node = FakeBackend::start(|_| respool_testkit::Act::Usual).expect("a port");
    let node_address = node.address().to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--node", &node_address, "--workers", "1", "--statsd", &address];
    let args = [&args[..], &["--statsd-interval", "100ms", "--statsd-prefix", "rmux.test."]].concat();
    let proxy = Running::start(&mut respool(&args));
    let mut lines: Vec<String> = Vec::new();
    let mut client = proxy.client(0);
    for _ in 0..10 {
        assert_eq!(client.ask("GET a").expect("a reply"), "$10\r\nvalue-of-a\r\n");
    }
    drop(client);
    let pool = format!("rmux.test.pools.{}:1|g", node_address.replace(['.', ':'], "-"));
    let has = |lines: &[String], start: &str| lines.iter().any(|line| line.starts_with(start));
    let began = Instant::now();
    let wanted = ["rmux.test.accepted:1|c", "rmux.test.disconnect:1|c", "rmux.test.redis_write:", &pool];
    let mut datagram = [0; 2_000];
    while !wanted.iter().all(|start| has(&lines, start)) {
        assert!(began.elapsed() < LIMIT, "{lines:?}");
        let length = server.recv(&mut datagram).expect("something comes");
        let text = String::from_utf8_lossy(&datagram[..length]).into_owned();
        lines.extend(text.lines().map(str::to_owned));
    }
    let accepted = lines.iter().filter(|line| line.starts_with("rmux.test.accepted")).count();
    assert_eq!(accepted, 1, "{lines:?}");
    // What happened since the last interval is sent at the end.
    let mut late = proxy.client(0);
    assert_eq!(late.ask("GET a").expect("a reply"), "$10\r\nvalue-of-a\r\n");
    proxy.end();
    server.set_read_timeout(Some(Duration::from_millis(300))).expect("it can be set");
    while let Ok(length) = server.recv(&mut datagram) {
        lines.extend(String::from_utf8_lossy(&datagram[..length]).lines().map(str::to_owned));
    }
    let accepted = lines.iter().filter(|line| *line == "rmux.test.accepted:1|c").count();
    assert_eq!(accepted, 2, "{lines:?}");
    let left = lines.iter().filter(|line| *line == "rmux.test.disconnect:1|c").count();
    assert_eq!(left, 2, "the last one leaves with the process: {lines:?}");
}
