//! A server in the place of redis-server that is told to listen elsewhere while clients are served.

mod support;

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use respool_testkit::Authority;
use respool_testkit::{Address, Client, PATIENCE, Process, RedisServer, TempDir, free_port, proc_stats, wait_until};
use support::encrypted::{Encrypted, config};

const BINARY: &str = env!("CARGO_BIN_EXE_respool");
const READY: &str = "The server is now ready to accept connections at";

/// A running server with a unix socket, which always listens.
struct Server {
    process: Process,
    directory: TempDir,
}

impl Server {
    fn start(flags: &[&str]) -> Self {
        let directory = TempDir::new().expect("there is room");
        let mut command = Command::new(BINARY);
        command.arg("server").env_clear().current_dir(directory.path()).stdin(Stdio::null());
        command.args(["--unixsocket", "s.sock", "--save", ""]).args(flags);
        let process = Process::spawn("respool server", &mut command).expect("the program starts");
        process.wait_for_line(READY, PATIENCE).expect("it becomes ready");
        Self { process, directory }
    }

    fn client(&self) -> Client {
        Client::connect(&Address::Unix(self.directory.path().join("s.sock"))).expect("it accepts")
    }
}

fn ask(client: &mut Client, words: &[&str]) -> String {
    String::from_utf8_lossy(&client.command(words).expect("it answers")).into_owned()
}

fn set(client: &mut Client, pairs: &[&str]) -> String {
    ask(client, &[&["CONFIG", "SET"], pairs].concat())
}

/// Whether a client that connects there is served.
fn is_served(host: &str, port: u16) -> bool {
    // A closed listener refuses at once; one that is open has a queue.
    TcpStream::connect((host, port)).is_ok() && {
        let mut client = Client::connect(&Address::Tcp(format!("{host}:{port}").parse().expect("it is an address")))
            .expect("it accepts");
        ask(&mut client, &["PING"]) == "+PONG\r\n"
    }
}

#[test]
fn another_port_is_listened_on_and_clients_stay() {
    let (first, second) = (free_port().expect("one is free"), free_port().expect("one is free"));
    let server = Server::start(&["--port", &first.to_string(), "--bind", "127.0.0.1"]);
    let mut client = Client::connect(&Address::loopback(first)).expect("it accepts");
    assert_eq!(set(&mut client, &["port", &second.to_string()]), "+OK\r\n");
    assert!(is_served("127.0.0.1", second) && !is_served("127.0.0.1", first));
    assert_eq!(ask(&mut client, &["PING"]), "+PONG\r\n", "who is connected stays");
    assert!(ask(&mut client, &["INFO", "server"]).contains(&format!("\r\ntcp_port:{second}\r\n")));
    assert_eq!(set(&mut client, &["port", &second.to_string()]), "+OK\r\n", "it is no other");
    assert!(is_served("127.0.0.1", second));
    assert_eq!(set(&mut client, &["port", "0"]), "+OK\r\n");
    assert!(!is_served("127.0.0.1", second), "none is listened on");
    assert_eq!(set(&mut client, &["maxmemory", "1gb", "port", &first.to_string()]), "+OK\r\n");
    assert!(is_served("127.0.0.1", first));
    assert_eq!(ask(&mut server.client(), &["PING"]), "+PONG\r\n");
}

/// Clients come while the port is another one every few milliseconds: each that has come in is served and stays, and no listener or
/// connection is left behind.
#[test]
fn a_thousand_clients_come_while_the_port_changes() {
    const THREADS: usize = 8;
    const CLIENTS: usize = 125;
    let ports = [free_port().expect("one is free"), free_port().expect("one is free")];
    let texts = ports.map(|port| port.to_string());
    let server = Server::start(&["--port", &texts[0], "--bind", "127.0.0.1"]);
    let mut operator = server.client();
    assert_eq!(ask(&mut operator, &["PING"]), "+PONG\r\n", "it has been accepted");
    let before = proc_stats::open_files(server.process.pid()).expect("it runs");
    let is_over = AtomicBool::new(false);
    let come = |first: usize| {
        let (mut all, mut number) = (Vec::new(), 0);
        while all.len() < CLIENTS {
            number += 1;
            // The one or the other is not listened on just then, and refuses.
            let Ok(mut client) = Client::connect(&Address::loopback(ports[(first + number) % 2])) else { continue };
            // What was in the queue of a listener that is closed is reset, as by a redis-server, before it was served.
            let Ok(reply) = client.command(&["ECHO", &format!("{first}:{number}")]) else { continue };
            let echo = format!("{first}:{number}");
            assert_eq!(reply, format!("${}\r\n{echo}\r\n", echo.len()).as_bytes());
            all.push(client);
        }
        all
    };
    let (mut clients, changes) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| {
                scope.spawn({
                    let come = &come;
                    move || come(first)
                })
            })
            .collect();
        let changer = scope.spawn(|| {
            let mut changes = 0;
            while !is_over.load(Ordering::SeqCst) {
                changes += 1;
                assert_eq!(set(&mut operator, &["port", &texts[changes % 2]]), "+OK\r\n", "change {changes}");
                let host = if changes % 3 == 0 { "127.0.0.1 -192.0.2.1" } else { "127.0.0.1" };
                assert_eq!(set(&mut operator, &["bind", host]), "+OK\r\n", "change {changes}");
            }
            changes
        });
        let clients: Vec<Client> =
            threads.into_iter().flat_map(|thread| thread.join().expect("all are served")).collect();
        is_over.store(true, Ordering::SeqCst);
        (clients, changer.join().expect("all are answered"))
    });
    assert_eq!(clients.len(), THREADS * CLIENTS);
    assert!(changes > 10, "{changes} changes");
    clients.iter_mut().for_each(|client| assert_eq!(ask(client, &["PING"]), "+PONG\r\n", "who has come in stays"));
    assert_eq!(set(&mut operator, &["port", &texts[0], "bind", "127.0.0.1"]), "+OK\r\n");
    assert!(is_served("127.0.0.1", ports[0]) && !is_served("127.0.0.1", ports[1]));
    drop((clients, operator));
    wait_until("nothing is left open", PATIENCE, || Ok(proc_stats::open_files(server.process.pid())? <= before))
        .expect("as many files are open as before");
}

#[test]
fn what_cannot_be_listened_on_leaves_all_as_it_was() {
    let port = free_port().expect("one is free");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let other = taken.local_addr().expect("it is bound").port().to_string();
    let server = Server::start(&["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    let redis = RedisServer::start_with(&["--bind", "127.0.0.1"]).expect("a redis-server starts");
    let (mut ours, mut theirs) = (server.client(), redis.client().expect("it accepts"));
    for words in [
        &["port", &other][..],
        &["maxmemory", "1gb", "port", &other],
        &["bind", "192.0.2.1"],
        &["bind", "127.0.0.1 192.0.2.1"],
        &["bind", "127.0.0.1 127.0.0.1"],
        &["bind", "127.0.0.1", "port", &other],
        &["port", &other, "bind", "127.0.0.1"],
        &["bind", "no.such.name.invalid"],
    ] {
        let said = set(&mut ours, words);
        assert_eq!(said, set(&mut theirs, words), "{words:?}");
        assert!(said.starts_with("-ERR CONFIG SET failed"), "{words:?}: {said}");
        let shown = ask(&mut ours, &["CONFIG", "GET", "port", "bind", "maxmemory"]);
        assert!(shown.contains(&port.to_string()) && shown.contains("$9\r\n127.0.0.1\r\n"), "{words:?}: {shown}");
        assert!(shown.contains("maxmemory\r\n$1\r\n0\r\n"), "{words:?}: {shown}");
        assert!(is_served("127.0.0.1", port), "{words:?}");
    }
}

#[test]
fn what_was_closed_for_a_change_that_fails_is_open_again() {
    let port = free_port().expect("one is free");
    let server = Server::start(&["--port", &port.to_string()]);
    let mut client = server.client();
    // One of the new addresses can be had once the old one is closed, and the other not at all.
    for bind in ["127.0.0.1 192.0.2.1", "192.0.2.1 127.0.0.1"] {
        assert!(set(&mut client, &["bind", bind]).ends_with("Failed to bind to specified addresses.\r\n"), "{bind}");
        assert!(is_served("127.0.0.1", port), "{bind}");
        assert!(ask(&mut client, &["CONFIG", "GET", "bind"]).ends_with("$6\r\n* -::*\r\n"), "{bind}");
    }
    assert_eq!(set(&mut client, &["bind", "127.0.0.1"]), "+OK\r\n");
    assert!(is_served("127.0.0.1", port));
}

#[test]
fn other_addresses_are_listened_on_at_the_same_port() {
    let port = free_port().expect("one is free");
    let server = Server::start(&["--port", &port.to_string()]);
    let mut client = Client::connect(&Address::loopback(port)).expect("it accepts");
    let is_known = |host: &str| TcpListener::bind((host, 0)).is_ok();
    // All of 127/8 is this machine on Linux, and elsewhere not.
    let second = ["127.0.0.2"].into_iter().find(|host| is_known(host));
    assert_eq!(set(&mut client, &["bind", "127.0.0.1 -192.0.2.1"]), "+OK\r\n", "one that may be missing is");
    assert!(is_served("127.0.0.1", port));
    if let Some(second) = second {
        assert!(!is_served(second, port), "it is not every address any more");
        assert_eq!(set(&mut client, &["bind", "127.0.0.2"]), "+OK\r\n");
        assert!(is_served(second, port) && !is_served("127.0.0.1", port));
    }
    assert_eq!(set(&mut client, &["bind", "* -::*"]), "+OK\r\n");
    assert!(is_served("127.0.0.1", port) && second.is_none_or(|second| is_served(second, port)));
    assert_eq!(set(&mut client, &["bind", ""]), "+OK\r\n");
    assert!(!is_served("127.0.0.1", port));
    assert_eq!(ask(&mut client, &["PING"]), "+PONG\r\n");
    assert_eq!(ask(&mut server.client(), &["PING"]), "+PONG\r\n");
}

#[test]
fn tls_is_spoken_at_a_port_that_is_set() {
    let (authority, other) = (Authority::new(), Authority::new());
    authority.write("server", &authority.issue("127.0.0.1", "server"));
    other.write("server", &other.issue("127.0.0.1", "server"));
    let file = |authority: &Authority, name: &str| authority.path(name).display().to_string();
    let port = free_port().expect("one is free");
    let server = Server::start(&["--port", "0", "--bind", "127.0.0.1", "--tls-auth-clients", "no"]);
    let mut client = server.client();
    let text = port.to_string();
    let is_served = |authority: &Authority| {
        let address = format!("127.0.0.1:{port}").parse().expect("it is an address");
        let session = Encrypted::connect(address, &config(authority, None));
        session.and_then(|mut session| session.ask("PING")).is_ok_and(|reply| reply == "+PONG\r\n")
    };
    let refused = "Unable to update TLS configuration. Check server logs.\r\n";
    assert!(set(&mut client, &["tls-port", &text]).ends_with(refused), "there is no certificate");
    let (cert, key) = (file(&authority, "server.crt"), file(&authority, "server.key"));
    assert_eq!(set(&mut client, &["tls-cert-file", &cert, "tls-key-file", &key, "tls-port", &text]), "+OK\r\n");
    assert!(is_served(&authority) && !is_served(&other));
    let said = set(&mut client, &["tls-cert-file", "/none"]);
    assert_eq!(said, format!("-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - {refused}"));
    assert!(is_served(&authority));
    let (cert, key) = (file(&other, "server.crt"), file(&other, "server.key"));
    assert_eq!(set(&mut client, &["tls-cert-file", &cert, "tls-key-file", &key]), "+OK\r\n");
    assert!(is_served(&other) && !is_served(&authority), "what new clients are shown");
    assert!(set(&mut client, &["tls-auth-clients", "yes"]).ends_with(refused), "there is no authority");
    assert_eq!(set(&mut client, &["tls-auth-clients", "yes", "tls-ca-cert-file", &file(&other, "ca.crt")]), "+OK\r\n");
    assert!(!is_served(&other), "a client has to show a certificate");
    assert_eq!(set(&mut client, &["tls-port", "0"]), "+OK\r\n");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
