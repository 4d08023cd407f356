//! Connections over TLS: against a redis-server that speaks it, and against a server that is written here and breaks it.
#![cfg(feature = "tls")]

use bytes::Bytes;
use respool_client::ReconnectTerms;
use respool_client::{Client, Config, ErrorKind, Outcome, Reply, Tls, cmd};
use respool_testkit::{Authority, RedisServer, free_port};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Long enough for a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// A redis-server that shows a certificate for `host`, and its TLS port.
fn redis(authority: &Authority, host: &str, arguments: &[&str]) -> (RedisServer, u16) {
    authority.write("server", &authority.issue(host, "server"));
    let file = |name: &str| authority.path(name).display().to_string();
    let files = [file("server.crt"), file("server.key"), file("ca.crt")];
    let mut failure = None;
    for _ in 0..10 {
        let port = free_port().unwrap();
        let number = port.to_string();
        let tls = ["--tls-port", &number, "--tls-cert-file", &files[0], "--tls-key-file", &files[1]];
        let all = [&tls[..], &["--tls-ca-cert-file", &files[2]], arguments].concat();
        match RedisServer::start_with(&all) {
            Ok(server) => return (server, port),
            Err(error) => failure = Some(error),
        }
    }
    panic!("{failure:?}");
}

fn config(port: u16, tls: Tls) -> Config {
    let quick =
        ReconnectTerms { backoff_min_us: 1000, backoff_max_us: 1000, dials_per_second: 1000, dials_burst: 1000 };
    let config = Config::from_url(&format!("rediss://127.0.0.1:{port}")).unwrap();
    config.connect_limit(PATIENCE).deadline(Some(PATIENCE)).reconnect(quick).tls(tls).unwrap()
}

fn trusting(authority: &Authority) -> Tls {
    Tls::new().ca_file(authority.path("ca.crt")).unwrap()
}

/// Why no connection is made.
#[track_caller]
fn refusal(port: u16, tls: Tls) -> String {
    let error = Client::with_config(config(port, tls)).call::<Reply>(cmd("PING")).wait().unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotSent, "{error}");
    error.to_string()
}

fn value(key: usize) -> Vec<u8> {
    let size = [10, 300, 17_000, 70_000][key % 4];
    (0..size).map(|at| (at * 31 + key * 7) as u8).collect()
}

fn check_thread(client: &Client, first: usize) {
    for round in 0..20 {
        let key = first * 100 + round % 8;
        client.call::<()>(cmd("SET").key(key).arg(value(key))).wait().unwrap();
        let found: Vec<u8> = client.call(cmd("GET").key(key)).wait().unwrap();
        assert!(found == value(key));
    }
}

async fn check_task(client: Client, first: usize) {
    for round in 0..20 {
        let key = first * 100 + round % 8;
        client.call::<()>(cmd("SET").key(key).arg(value(key))).await.unwrap();
        let found: Vec<u8> = client.call(cmd("GET").key(key)).await.unwrap();
        assert!(found == value(key));
    }
}

#[test]
fn threads_and_tasks_share_an_encrypted_connection() {
    let authority = Authority::new();
    let (_server, port) = redis(&authority, "127.0.0.1", &["--tls-auth-clients", "no"]);
    // One connection, which is what is shared here.
    let client = Client::with_config(config(port, trusting(&authority)).large(None));
    check_thread(&client, 0);
    for workers in [1, 2] {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let client = &client;
                scope.spawn(move || check_thread(client, 10 + thread));
            }
            let tasks: Vec<_> = (0..8).map(|task| runtime.spawn(check_task(client.clone(), 20 + task))).collect();
            runtime.block_on(check_task(client.clone(), 40));
            for task in tasks {
                runtime.block_on(task).unwrap();
            }
        });
        // A lone task reads for itself again.
        runtime.block_on(check_task(client.clone(), 50));
    }
    let stats = client.stats();
    assert_eq!((stats.in_flight, stats.callers, stats.connections), (0, 0, 1), "{stats:?}");
}

#[test]
fn large_values_go_both_ways_at_once() {
    check_large_values(None);
    // Some by a second connection.
    check_large_values(Some(64 * 1024));
}

fn check_large_values(large_from: Option<usize>) {
    let authority = Authority::new();
    let (_server, port) = redis(&authority, "127.0.0.1", &["--tls-auth-clients", "no"]);
    let client = Client::with_config(config(port, trusting(&authority)).large(large_from));
    let large =
        Bytes::from((0..1_500_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    let commands = |key: &'static str| {
        [cmd("SET").key(key).arg(&large), cmd("GET").key(key), cmd("SET").key(key).arg(&large), cmd("GET").key(key)]
    };
    let check = |replies: Vec<Result<Reply, respool_client::ServerError>>| {
        for reply in [&replies[1], &replies[3]] {
            assert!(matches!(reply, Ok(Reply::Bulk(found)) if *found == large));
        }
    };
    check(client.batch(commands("thread")).wait().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let many = [client.batch(commands("a")), client.batch(commands("b")), client.batch(commands("c"))];
        let many = many.map(async |batch| check(batch.await.unwrap()));
        let [a, b, c] = many;
        tokio::join!(a, b, c);
    });
    if large_from.is_none() {
        assert_eq!(client.stats().connections, 1);
    }
}

#[test]
fn a_certificate_that_is_not_right_is_refused_and_why() {
    let authority = Authority::new();
    let (server, port) = redis(&authority, "127.0.0.1", &["--tls-auth-clients", "no"]);
    let other_authority = Authority::new();
    let why = refusal(port, trusting(&other_authority));
    assert!(why.contains("of no authority that is trusted here"), "{why}");
    let why = refusal(port, trusting(&authority).server_name("db.example"));
    assert!(why.contains("is not for db.example: its names are"), "{why}");
    // What speaks no TLS waits for the end of a line, or answers in its own way.
    let silent = config(server.port(), trusting(&authority)).connect_limit(Duration::from_millis(200)).deadline(None);
    let why = Client::with_config(silent).call::<Reply>(cmd("PING")).wait().unwrap_err().to_string();
    assert!(why.contains("the server does not answer the TLS handshake in time"), "{why}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = listener.local_addr().unwrap().port();
    let answers = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"-ERR unknown command\r\n").unwrap();
        socket.read_to_end(&mut Vec::new()).unwrap_or(0)
    });
    let why = refusal(plain, trusting(&authority));
    assert!(why.contains("the server does not speak TLS at this port"), "{why}");
    answers.join().unwrap();
    // What is said explicitly is done.
    for tls in [trusting(&authority), Tls::new().insecure(), trusting(&other_authority).insecure()] {
        Client::with_config(config(port, tls)).call::<()>(cmd("PING")).wait().unwrap();
    }
    let url = format!("rediss://127.0.0.1:{port}?ca_file={}", authority.path("ca.crt").display());
    Client::connect_wait(&url).unwrap();
    Client::connect_wait(&format!("rediss://127.0.0.1:{port}?tls=insecure")).unwrap();
}

#[test]
fn a_certificate_for_a_name_is_taken_for_that_name() {
    let authority = Authority::new();
    let (_server, port) = redis(&authority, "db.example", &["--tls-auth-clients", "no"]);
    let why = refusal(port, trusting(&authority));
    assert!(why.contains("is not for 127.0.0.1"), "{why}");
    let named = trusting(&authority).server_name("db.example");
    Client::with_config(config(port, named)).call::<()>(cmd("PING")).wait().unwrap();
}

#[test]
fn a_server_that_wants_a_certificate_gets_it() {
    let authority = Authority::new();
    let (_server, port) = redis(&authority, "127.0.0.1", &[]);
    authority.write("app", &authority.issue("", "app"));
    let other_authority = Authority::new();
    other_authority.write("app", &other_authority.issue("", "app"));
    let of = |whose: &Authority| trusting(&authority).certificate_files(whose.path("app.crt"), whose.path("app.key"));
    let client = Client::with_config(config(port, of(&authority).unwrap()));
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    let why = refusal(port, trusting(&authority));
    assert!(why.contains("demands a certificate of the client"), "{why}");
    let why = refusal(port, of(&other_authority).unwrap());
    assert!(why.contains("does not trust the client's certificate") || why.contains("alert"), "{why}");
}

#[test]
fn files_that_cannot_be_used_are_told_of_at_once() {
    let authority = Authority::new();
    authority.write("a", &authority.issue("", "a"));
    authority.write("b", &authority.issue("", "b"));
    let pair = |a: &str, b: &str| Tls::new().insecure().certificate_files(authority.path(a), authority.path(b));
    let told = |tls: Tls| Config::from_url("rediss://h").unwrap().tls(tls).unwrap_err().to_string();
    assert!(told(pair("a.crt", "b.key").unwrap()).contains("is not that of its certificate"));
    assert!(told(pair("a.key", "b.key").unwrap()).contains("there is no certificate in it"));
    assert!(told(Tls::new().ca(&b"nonsense"[..])).contains("the authorities: there is no certificate"));
    assert!(pair("a.crt", "none.key").unwrap_err().to_string().contains("cannot be read"));
    let shown = format!("{:?}", pair("a.crt", "a.key").unwrap());
    assert!(shown.contains("has_certificate: true") && !shown.contains("BEGIN"), "{shown}");
    assert!(Config::from_url("redis://h").unwrap().tls(Tls::new().insecure()).is_err());
}

#[test]
fn an_encrypted_connection_is_made_again() {
    let authority = Authority::new();
    let (mut server, port) = redis(&authority, "127.0.0.1", &["--tls-auth-clients", "no"]);
    let client = Client::with_config(config(port, trusting(&authority)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for round in 1..=3 {
        client.call::<()>(cmd("SET").key("k").arg(round).idempotent()).wait().unwrap();
        assert_eq!(runtime.block_on(client.call::<u32>(cmd("GET").key("k"))).unwrap(), round);
        assert_eq!(client.stats().connections, u64::from(round));
        server.restart().unwrap();
    }
}

/// A server of TLS that does `serve` with each connection, once the handshake of RESP is over.
fn server(authority: &Authority, serve: fn(StreamOwned<ServerConnection, TcpStream>)) -> u16 {
    let identity = authority.issue("127.0.0.1", "server");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain = vec![identity.certificate.clone()];
    let config = builder.with_no_client_auth().with_single_cert(chain, identity.key.clone_key()).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket.unwrap());
            let mut said = Vec::new();
            let mut buffer = [0; 4096];
            // HELLO, SETINFO twice, PING: each is answered when it has come.
            for (name, answer) in [
                ("HELLO", "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n"),
                ("LIB-NAME", "+OK\r\n"),
                ("LIB-VER", "+OK\r\n"),
                ("PING", "+PONG\r\n"),
            ] {
                while !String::from_utf8_lossy(&said).contains(name) {
                    let Ok(bytes @ 1..) = stream.read(&mut buffer) else { return };
                    said.extend_from_slice(&buffer[..bytes]);
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
            stream.flush().unwrap();
            serve(stream);
        }
    });
    port
}

/// Reads until a request has come.
fn await_request(stream: &mut StreamOwned<ServerConnection, TcpStream>) {
    let mut buffer = [0; 4096];
    assert!(stream.read(&mut buffer).unwrap() > 0);
}

#[test]
fn a_server_that_says_goodbye_and_keeps_the_socket_is_lost() {
    let authority = Authority::new();
    let port = server(&authority, |mut stream| {
        await_request(&mut stream);
        // Half of a reply, and its own end of the session; the socket stays open.
        stream.write_all(b"$10\r\nhalf").unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        let mut rest = Vec::new();
        let _ = stream.sock.read_to_end(&mut rest);
    });
    let client = Client::with_config(config(port, trusting(&authority)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let check = |error: respool_client::Error| {
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
        assert_eq!(error.outcome(), Outcome::MaybeExecuted);
    };
    check(client.call::<Reply>(cmd("INCR").key("k")).wait().unwrap_err());
    check(runtime.block_on(client.call::<Reply>(cmd("INCR").key("k"))).unwrap_err());
}

#[test]
fn a_server_that_closes_its_side_of_the_socket_is_lost() {
    let authority = Authority::new();
    let port = server(&authority, |mut stream| {
        await_request(&mut stream);
        stream.sock.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        let _ = stream.sock.read_to_end(&mut rest);
    });
    let client = Client::with_config(config(port, trusting(&authority)));
    let error = client.call::<Reply>(cmd("INCR").key("k")).wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
}

#[test]
fn a_record_that_was_changed_ends_the_connection() {
    let authority = Authority::new();
    let port = server(&authority, |mut stream| {
        await_request(&mut stream);
        // What comes in front of it is still taken.
        stream.write_all(b":1\r\n").unwrap();
        stream.flush().unwrap();
        stream.sock.write_all(&[23, 3, 3, 0, 20]).unwrap();
        stream.sock.write_all(&[7; 20]).unwrap();
        let mut rest = Vec::new();
        let _ = stream.sock.read_to_end(&mut rest);
    });
    let client = Client::with_config(config(port, trusting(&authority)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let counted = runtime.block_on(client.call::<u32>(cmd("INCR").key("k"))).unwrap();
    assert_eq!(counted, 1);
    let error = runtime.block_on(client.batch([cmd("INCR").key("k"), cmd("INCR").key("k")])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
}

#[test]
fn replies_that_come_in_many_records_are_all_seen_by_a_task() {
    let authority = Authority::new();
    let port = server(&authority, |mut stream| {
        await_request(&mut stream);
        // More than a read takes, in records of all sizes, and nothing behind it that would wake a runtime again.
        let mut reply = b"$300000\r\n".to_vec();
        reply.extend((0..300_000).map(|at| at as u8));
        reply.extend_from_slice(b"\r\n:7\r\n");
        let (mut rest, mut size) = (&reply[..], 1);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(size.min(rest.len()));
            stream.write_all(piece).unwrap();
            (rest, size) = (behind, size * 3 % 16_001 + 1);
        }
        stream.flush().unwrap();
        let mut rest = Vec::new();
        let _ = stream.sock.read_to_end(&mut rest);
    });
    let client = Client::with_config(config(port, trusting(&authority)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let replies = runtime.block_on(client.batch([cmd("GET").key("k"), cmd("INCR").key("k")])).unwrap();
    assert!(matches!(&replies[0], Ok(Reply::Bulk(value)) if value.len() == 300_000));
    assert!(matches!(replies[1], Ok(Reply::Integer(7))));
}
