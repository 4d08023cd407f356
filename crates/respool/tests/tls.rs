//! TLS as clients and nodes see it: which clients are accepted, which are refused, and what no client may break.

mod support;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, TempDir, request, wait_until};
use respool_testkit::{Authority, Identity};
use rustix::process::Signal;
use rustls::ClientConfig;
use support::encrypted::{Encrypted, config, session};
use support::{LIMIT, Running, respool, serve};

/// An authority, and a server that shows a certificate of it; `words` stand behind its listener's address.
fn server(words: &str, args: &[&str]) -> (Authority, Running) {
    let authority = Authority::new();
    authority.write("server", &authority.issue("127.0.0.1", "server"));
    let listener = authority.listener("server", words);
    let all = ["--listen", &listener, "--listen", "127.0.0.1:0"];
    // A client may be slow here, unless the test is about that.
    let patient: &[&str] = match args.contains(&"--tls-handshake-timeout") {
        true => &[],
        false => &["--tls-handshake-timeout", "60s"],
    };
    (authority, serve(&[&all[..], patient, args].concat()))
}

fn connect(server: &Running, config: &Arc<ClientConfig>) -> Encrypted {
    Encrypted::connect(server.addresses()[0], config).expect("it accepts")
}

/// Whether a client gets as far as a reply.
fn gets_in(server: &Running, config: &Arc<ClientConfig>) -> bool {
    connect(server, config).ask("PING").is_ok_and(|reply| reply == "+PONG\r\n")
}

/// Reads until the peer ends the connection; a reset is an end, and what was said before does not matter.
fn until_the_end(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(LIMIT))?;
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
        _ => Ok(said),
    }
}

#[test]
fn clients_speak_tls_and_large_values_and_pipelines_come_whole() {
    let (authority, server) = server("", &["--workers", "2", "--nodes", "embedded:,embedded:"]);
    let value: Vec<u8> = (0..8_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut client = connect(&server, &config(&authority, None));
    client.send(&request(&[b"SET", b"large".as_slice(), &value])).expect("it is taken");
    assert_eq!(client.reply().expect("a reply"), b"+OK\r\n");
    // Many replies that are larger than a socket's buffer wait for a client that does not read yet.
    client.send(&request(&[b"GET", b"large".as_slice()]).repeat(3)).expect("they are taken");
    for _ in 0..3 {
        let reply = client.reply().expect("a reply");
        assert!(reply.strip_prefix(b"$8000000\r\n").is_some_and(|body| body[..8_000_000] == value[..]));
    }
    let requests: Vec<u8> = (0..20_000).flat_map(|number| format!("ECHO {number}\r\n").into_bytes()).collect();
    client.send(&requests).expect("they are taken");
    for number in 0..20_000 {
        let body = number.to_string();
        assert_eq!(client.reply().expect("a reply"), format!("${}\r\n{body}\r\n", body.len()).into_bytes());
    }
    server.end();
}

/// `respool bench` over TLS, with an authority, a name and a certificate of its own.
#[test]
fn the_load_generator_speaks_tls_and_names_certificate_faults() {
    let (authority, server) = server("clients=required", &["--nodes", "embedded:"]);
    authority.write("client", &authority.issue("client", "client"));
    let port = server.addresses()[0].port().to_string();
    let file = |name: &str| authority.path(name).display().to_string();
    let (ca, cert, key) = (file("ca.crt"), file("client.crt"), file("client.key"));
    let bench = |more: &[&str]| {
        let all = ["bench", "--tls", "-p", &port, "-n", "400", "-c", "4", "-q", "--no-progress"];
        let output = respool(&all).args(more).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    for more in [&["-t", "set,get"][..], &["-k", "0", "-t", "get"], &["-r", "50", "--verify"]] {
        let (code, said) = bench(&[&["--cacert", &ca, "--cert", &cert, "--key", &key][..], more].concat());
        assert_eq!(code, Some(0), "{more:?}: {said}");
        assert!(said.contains("GET: ") && !said.contains("WRONG"), "{said}");
    }
    for (more, code, why) in [
        (&["--cacert", &ca, "-t", "get"][..], 1, "CertificateRequired"),
        (&["--cacert", &ca, "--sni", "wrong.example", "--cert", &cert, "--key", &key, "-t", "get"], 1, "wrong.example"),
        (&["--cacert", &key, "-t", "get"], 2, "--cacert: "),
        (&["--cacert", &ca, "--cert", &cert, "--key", &file("server.key"), "-t", "get"], 2, "--cert and --key: "),
        (&["-t", "get"], 2, "--tls needs --cacert"),
    ] {
        let (was, said) = bench(more);
        assert_eq!(was, Some(code), "{more:?}: {said}");
        assert!(said.contains(why), "{more:?}: {said}");
    }
    server.end();
}

/// A server that waits for the end of a line does not answer a ClientHello.
#[test]
fn the_load_generator_soon_gives_up_a_server_without_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port().to_string();
    let began = Instant::now();
    let all = ["bench", "--tls", "--insecure", "-p", &port, "-n", "10", "-c", "2", "-q", "--no-progress", "-t", "get"];
    let output = respool(&all).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("tls:127.0.0.1:{port}: no TLS handshake was over")), "{said}");
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}

#[test]
fn other_programs_speak_tls_with_it() {
    let (authority, server) = server("", &[]);
    let port = server.addresses()[0].port().to_string();
    let ca = authority.path("ca.crt").display().to_string();
    let redis_cli = Command::new("redis-cli").args(["--tls", "--cacert", &ca, "-p", &port, "SET", "k", "v"]).output();
    if let Ok(output) = redis_cli {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "OK\n", "{}", String::from_utf8_lossy(&output.stderr));
    }
    for version in ["-tls1_2", "-tls1_3"] {
        let mut openssl = Command::new("openssl");
        let address = format!("127.0.0.1:{port}");
        openssl.args(["s_client", "-quiet", "-CAfile", &ca, "-verify_return_error", version, "-connect", &address]);
        let piped = std::process::Stdio::piped;
        let Ok(mut child) = openssl.stdin(piped()).stdout(piped()).stderr(piped()).spawn() else { return };
        child.stdin.take().expect("a pipe").write_all(b"PING\r\nQUIT\r\n").expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("+PONG\r\n+OK\r\n"), "{version}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
    // Older versions are not spoken.
    let mut old = Command::new("openssl");
    old.args(["s_client", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-connect", &format!("127.0.0.1:{port}")]);
    let output = old.stdin(std::process::Stdio::null()).output().expect("it was there a moment ago");
    assert!(!output.status.success());
    server.end();
}

#[test]
fn a_certificate_is_asked_for_as_the_listener_says() {
    for (words, without, with, with_foreign) in [
        ("clients=off", true, true, true),
        ("clients=optional", true, true, false),
        ("clients=required", false, true, false),
    ] {
        let (authority, server) = server(words, &[]);
        let own = authority.issue("", "alice");
        let foreign = Authority::new().issue("", "alice");
        assert_eq!(gets_in(&server, &config(&authority, None)), without, "{words}, none");
        assert_eq!(gets_in(&server, &config(&authority, Some(&own))), with, "{words}, own");
        // Where none is asked for, none is shown.
        assert_eq!(gets_in(&server, &config(&authority, Some(&foreign))), with_foreign, "{words}, foreign");
        server.end();
    }
}

#[test]
fn a_certificate_name_that_can_be_misread_is_refused() {
    let (authority, server) = server("clients=optional identity=cn", &[]);
    for (name, is_accepted) in [("admin", true), ("admin\0x", false), ("admin\r\n", false), (" admin", false)] {
        let own = authority.issue("", name);
        assert_eq!(gets_in(&server, &config(&authority, Some(&own))), is_accepted, "{name:?}");
    }
    // A client that shows none has no name, which is no reason to be refused here.
    assert!(gets_in(&server, &config(&authority, None)));
    server.end();
}

#[test]
fn a_certificate_names_a_user_without_a_password() {
    let authority = Authority::new();
    authority.write("server", &authority.issue("127.0.0.1", "server"));
    let file = authority.path("r.toml");
    let listeners = [
        authority.listener("server", "clients=optional identity=cn"),
        authority.listener("server", "clients=required"),
    ];
    let text = format!(
        "listen = {listeners:?}\n[users.alice]\nrules = \"on ~* +@all\"\n[users.default]\nrules = \"on >secret ~* +@all\"\n"
    );
    std::fs::write(&file, text).expect("a file");
    let server = Running::start(respool(&["serve", "--config"]).arg(&file));
    let of = |name: &str| config(&authority, Some(&authority.issue("", name)));
    let who = |client: &mut Encrypted| client.ask("ACL WHOAMI").expect("a reply");

    assert_eq!(who(&mut connect(&server, &of("alice"))), "$5\r\nalice\r\n");
    // A name that is no user's, byte for byte, is refused; so is a certificate where none is mapped to users.
    for mut client in [
        connect(&server, &of("Alice")),
        connect(&server, &of("alice2")),
        connect(&server, &config(&authority, None)),
        Encrypted::connect(server.addresses()[1], &of("alice")).expect("it accepts"),
    ] {
        assert!(who(&mut client).starts_with("-NOAUTH"));
        for password in ["alice", "secret", "\"\""] {
            assert!(client.ask(&format!("AUTH alice {password}")).expect("a reply").starts_with("-WRONGPASS"));
        }
        assert_eq!(client.ask("AUTH secret").expect("a reply"), "+OK\r\n");
        assert_eq!(who(&mut client), "$7\r\ndefault\r\n");
    }
    server.end();
}

#[test]
fn renewed_certificates_hold_for_new_connections_alone() {
    let (authority, server) = server("", &["--nodes", "embedded:,embedded:"]);
    let settings = config(&authority, None);
    let mut old = connect(&server, &settings);
    assert_eq!(old.ask("SET k v").expect("a reply"), "+OK\r\n");
    let shown = |client: &Encrypted| client.stream.conn.peer_certificates().expect("it showed one")[0].clone();
    let renewed = authority.issue("127.0.0.1", "server, renewed");
    authority.write("server", &renewed);
    server.process.signal(Signal::HUP).expect("it is there");
    let renewed_is_shown = || {
        let mut new = connect(&server, &config(&authority, None));
        new.shake().map(|()| shown(&new) == renewed.certificate)
    };
    wait_until("the new certificate is shown", LIMIT, renewed_is_shown).expect("it is");
    assert_eq!(old.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    assert_ne!(shown(&old), renewed.certificate);

    // What cannot be used is told and not taken.
    std::fs::write(authority.path("server.key"), "no key").expect("a file");
    server.process.signal(Signal::HUP).expect("it is there");
    server.says("TLS stays as it was");
    assert!(renewed_is_shown().expect("it accepts"));
    assert_eq!(old.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    server.end();
}

#[test]
fn a_parameter_that_a_client_sets_reads_no_files_of_tls() {
    let (authority, server) = server("", &["--admin-commands", "allow"]);
    let renewed = authority.issue("127.0.0.1", "server, renewed");
    let mut client = server.client(1);
    let mut set = |value: &str| {
        assert_eq!(client.ask(&format!("CONFIG SET timeout {value}")).expect("a reply"), "+OK\r\n");
        let mut new = connect(&server, &config(&authority, None));
        new.shake().expect("it accepts");
        assert_ne!(new.stream.conn.peer_certificates().expect("it showed one")[0], renewed.certificate);
    };
    authority.write("server", &renewed);
    set("500");
    std::fs::write(authority.path("server.key"), "no key").expect("a file");
    set("501");
    assert!(server.end().iter().all(|line| !line.contains("TLS stays")), "nothing was read");
}

#[test]
fn whose_certificate_is_revoked_does_not_get_in_again() {
    let authority = Authority::new();
    authority.write("server", &authority.issue("127.0.0.1", "server"));
    let (alice, bob) = (authority.issue("", "alice"), authority.issue("", "bob"));
    authority.revoke(&[&alice], 2090);
    let listener =
        authority.listener("server", &format!("clients=required crl={}", authority.path("ca.crl").display()));
    let server = Running::start(respool(&["serve", "--listen"]).arg(listener));
    let of = |identity: &Identity| config(&authority, Some(identity));
    assert!(!gets_in(&server, &of(&alice)) && gets_in(&server, &of(&bob)));

    // Sessions cannot be resumed past a new list: the keys of their tickets are gone with the old one.
    let resuming = of(&bob);
    let mut old = connect(&server, &resuming);
    assert_eq!(old.ask("PING").expect("a reply"), "+PONG\r\n");
    authority.revoke(&[&bob], 2090);
    server.process.signal(Signal::HUP).expect("it is there");
    wait_until("the new list holds", LIMIT, || Ok(!gets_in(&server, &resuming))).expect("it does");
    assert!(gets_in(&server, &of(&alice)), "she is not in it any more");
    assert_eq!(old.ask("PING").expect("a reply"), "+PONG\r\n", "who is in stays in");

    // A list that has run out vouches for no certificate; one that cannot be read is not taken.
    authority.revoke(&[], 2025);
    server.process.signal(Signal::HUP).expect("it is there");
    wait_until("the list has run out", LIMIT, || Ok(!gets_in(&server, &of(&alice)))).expect("it has");
    std::fs::write(authority.path("ca.crl"), "no list").expect("a file");
    server.process.signal(Signal::HUP).expect("it is there");
    server.says("there is no list of revoked certificates in it");
    server.end();
}

#[test]
fn files_that_are_no_good_are_named_before_anything_runs() {
    let authority = Authority::new();
    authority.write("server", &authority.issue("127.0.0.1", "server"));
    authority.write("other", &authority.issue("127.0.0.1", "other"));
    std::fs::copy(authority.path("other.key"), authority.path("server.key")).expect("a file");
    let listener = authority.listener("server", "");
    let output = respool(&["serve", "--listen", &listener]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("server.key"), "{said}");

    std::fs::remove_file(authority.path("server.crt")).expect("it was there");
    let file = authority.path("r.toml");
    std::fs::write(&file, format!("listen = {listener:?}\n")).expect("a file");
    let output = respool(&["check"]).arg(&file).output().expect("it starts");
    assert!(String::from_utf8_lossy(&output.stderr).contains("server.crt cannot be read"), "{output:?}");
}

#[test]
fn nodes_are_dialled_with_tls_and_have_to_be_who_they_say() {
    let (authority, node) = server("clients=required", &[]);
    let port = node.addresses()[0].port();
    authority.write("proxy", &authority.issue("", "proxy"));
    let file = |name: &str| authority.path(name).display().to_string();
    let own = format!("cert={} key={}", file("proxy.crt"), file("proxy.key"));
    let ca = format!("ca={}", file("ca.crt"));
    for (words, refusal) in [
        (format!("{own} {ca}"), None),
        (format!("{own} verify=off"), None),
        (format!("{own} {ca} server_name=localhost"), Some("not valid for name")),
        // The authorities of this system know nothing of a test's.
        (own.clone(), Some("UnknownIssuer")),
        (ca.clone(), Some("CertificateRequired")),
    ] {
        let address = format!("tls:127.0.0.1:{port} {words}");
        let proxy = serve(&[
            "--listen",
            "127.0.0.1:0",
            "--node",
            &address,
            "--reconnect-max",
            "50ms",
            "--connect-timeout",
            "10s",
        ]);
        let mut client = proxy.client(0);
        let reply = client.ask("SET k v").expect("a reply");
        match refusal {
            None => {
                assert_eq!(reply, "+OK\r\n", "{words}");
                let value = "v".repeat(3 << 20);
                assert_eq!(client.command(&["SET", "large", &value]).expect("a reply"), b"+OK\r\n");
                let large = client.command(&["GET", "large"]).expect("a reply");
                assert_eq!(large, format!("$3145728\r\n{value}\r\n").into_bytes());
            }
            Some(why) => assert!(reply.starts_with('-') && reply.contains(why), "{words}: {reply}"),
        }
        proxy.end();
    }
    node.end();
}

#[test]
fn a_tls_listener_answers_other_protocols_by_closing() {
    let (authority, server) = server("", &[]);
    for plain in ["PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "\0", "\u{16}PING\r\n"] {
        let mut stream = TcpStream::connect(server.addresses()[0]).expect("it accepts");
        stream.write_all(plain.as_bytes()).expect("it is taken");
        // Something that merely looks like a record may wait for the rest of it.
        stream.shutdown(Shutdown::Write).expect("it is open");
        let said = until_the_end(&mut stream).expect("an end");
        assert!(said.is_empty() || plain.starts_with('\u{16}'), "{plain:?}: {said:?}");
    }
    // The other way round: a ClientHello is no request, and no other client notices.
    let mut hello = session(&config(&authority, None), "127.0.0.1");
    let mut stream = TcpStream::connect(server.addresses()[1]).expect("it accepts");
    hello.write_tls(&mut stream).expect("it is taken");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let said = until_the_end(&mut stream).expect("an end");
    assert!(said.is_empty() || said.starts_with(b"-ERR"), "{said:?}");
    assert!(gets_in(&server, &config(&authority, None)));
    server.end();
}

#[test]
fn a_handshake_may_come_in_any_pieces_and_end_at_any_byte() {
    let (authority, server) = server("", &[]);
    let settings = config(&authority, None);
    let mut hello = Vec::new();
    session(&settings, "127.0.0.1").write_tls(&mut hello).expect("a vector takes it");

    // A ClientHello of one-byte records is as good as any.
    let mut stream = TcpStream::connect(server.addresses()[0]).expect("it accepts");
    let records: Vec<u8> = hello[5..].iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect();
    stream.write_all(&records).expect("it is taken");
    let mut head = [0; 1];
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout can be set");
    stream.read_exact(&mut head).expect("an answer");
    assert_eq!(head, [22], "a ServerHello");

    // Ends at every byte, then close_notify right behind the ClientHello.
    for length in (0..hello.len()).step_by(7) {
        let mut stream = TcpStream::connect(server.addresses()[0]).expect("it accepts");
        stream.write_all(&hello[..length]).expect("it is taken");
        stream.shutdown(Shutdown::Write).expect("it is open");
        until_the_end(&mut stream).expect("an end");
    }
    let mut stream = TcpStream::connect(server.addresses()[0]).expect("it accepts");
    stream.write_all(&[&hello[..], &[21, 3, 3, 0, 2, 1, 0]].concat()).expect("it is taken");
    until_the_end(&mut stream).expect("an end");

    // More than a handshake can need.
    let mut stream = TcpStream::connect(server.addresses()[0]).expect("it accepts");
    let endless = [&[22, 3, 1, 0x40, 0][..], &[1, 0xff, 0xff, 0xff], &[0; 0x4000 - 4]].concat();
    let _ = (0..64).try_for_each(|_| stream.write_all(&endless));
    until_the_end(&mut stream).expect("an end");

    assert!(gets_in(&server, &settings));
    let mut plain = server.client(1);
    let cpu = |client: &mut Client| client.ask("INFO cpu").expect("a reply");
    assert!(cpu(&mut plain).starts_with('$'));
    server.end();
}

#[test]
fn an_unfinished_tls_handshake_times_out() {
    let (authority, server) = server("", &["--tls-handshake-timeout", "300ms"]);
    let silent: Vec<TcpStream> =
        (0..50).map(|_| TcpStream::connect(server.addresses()[0]).expect("it accepts")).collect();
    let began = Instant::now();
    for mut stream in silent {
        until_the_end(&mut stream).expect("an end");
    }
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
    assert!(gets_in(&server, &config(&authority, None)));
    server.end();
}

/// Clients that do not read what they asked for are killed again and again by one of them.
#[test]
fn one_client_can_kill_a_thousand_with_undrained_replies() {
    const CLIENTS: usize = 1000;
    // `RESPOOL_TEST_SCALE=20` is about a minute of it.
    let rounds = std::env::var("RESPOOL_TEST_SCALE").map_or(3, |scale| 3 * scale.parse::<usize>().expect("a number"));
    // What they do not read must not keep the one who kills them out. Nor is any given up that the kernel has no memory to hear.
    let roomy = ["--process-bytes", "4gb", "--tls-handshake-timeout", "60s", "--tcp-user-timeout", "off"];
    let args = [&roomy[..], &["--workers", "2", "--nodes", "embedded:,embedded:"]].concat();
    let (authority, server) = server("", &args);
    let settings = config(&authority, None);
    let value = "v".repeat(100_000);
    assert_eq!(server.client(1).command(&["SET", "k", &value]).expect("a reply"), b"+OK\r\n");
    for round in 0..rounds {
        let part_of_the_crowd = || {
            let connect = |_| {
                let mut client = connect(&server, &settings);
                // The handshake is over for a client before it is over for the server.
                assert_eq!(client.ask("PING").expect("a reply"), "+PONG\r\n");
                // More than the socket takes, and it is not read.
                client.send(b"GET k\r\n".repeat(8).as_slice()).expect("it is taken");
                client
            };
            (0..CLIENTS / 4).map(connect).collect::<Vec<_>>()
        };
        let crowd: Vec<Vec<Encrypted>> = thread::scope(|scope| {
            let parts: Vec<_> = (0..4).map(|_| scope.spawn(part_of_the_crowd)).collect();
            parts.into_iter().map(|part| part.join().expect("it ends well")).collect()
        });
        let mut killer = connect(&server, &settings);
        let there = killer.ask("INFO clients").expect("a reply");
        assert!(
            there.contains(&format!("connected_clients:{}\r\n", CLIENTS + 1)),
            "round {round}: one has gone: {there}"
        );
        let killed = killer.ask("CLIENT KILL TYPE normal SKIPME yes").expect("a reply");
        let said = server.process.output();
        assert_eq!(killed, format!(":{CLIENTS}\r\n"), "round {round}: {}", said.join("\n"));
        let is_alone = || Ok(killer.ask("INFO clients")?.contains("connected_clients:1\r\n"));
        wait_until("all others are gone", LIMIT, is_alone).expect("they go");
        drop(crowd);
    }
    server.end();
}

/// A program that writes and goes without reading resets its connection: it has replies, or tickets of the session, unread.
#[test]
fn requests_before_a_reset_are_executed() {
    const REQUESTS: usize = 200;
    let (authority, server) = server("", &["--workers", "1", "--nodes", "embedded:"]);
    let settings = config(&authority, None);
    let mut observer = server.client(1);
    for round in 1..=3 {
        let mut client = connect(&server, &settings);
        assert_eq!(client.ask("PING").expect("a reply"), "+PONG\r\n");
        server.process.signal(Signal::STOP).expect("it is there");
        client.send(b"INCR n\r\n".repeat(REQUESTS).as_slice()).expect("they are taken");
        rustix::net::sockopt::set_socket_linger(&client.stream.sock, Some(Duration::ZERO)).expect("it is a socket");
        drop(client);
        server.process.signal(Signal::CONT).expect("it is there");
        let executed = format!("{}", round * REQUESTS);
        wait_until("all are executed", LIMIT, || Ok(observer.ask("GET n")?.contains(&executed))).expect("they are");
    }
    server.end();
}

#[test]
fn unix_sockets_and_plain_ports_stand_beside_tls() {
    let directory = TempDir::new().expect("a directory");
    let socket = directory.join("s");
    let (authority, server) = server("", &["--listen", socket.to_str().expect("UTF-8")]);
    assert!(gets_in(&server, &config(&authority, None)));
    assert_eq!(server.client(1).ask("PING").expect("a reply"), "+PONG\r\n");
    assert_eq!(Client::connect(&Address::Unix(socket)).unwrap().ask("PING").expect("a reply"), "+PONG\r\n");
    server.end();
}
