//! One process after another at the same listeners: no connection is refused, no reply lost, no request done twice.

mod support;

use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use respool_testkit::{Address, Client, TempDir, wait_until};
use rustix::process::Signal;
use support::{LIMIT, Running, respool, serve};

/// What one client of the crowd has seen.
#[derive(Default)]
struct Seen {
    requests: AtomicU64,
    connections: AtomicU64,
}

/// Counts up its own key, a few requests at a time, until it is over or told to go. Every reply must be the number that is
/// due: a request that is not answered has not been done, one that is answered has been done once. `due` is what it has
/// come to; the result says whether it was told to go.
fn count_up(mut client: Client, name: usize, due: &mut u64, seen: &Seen, is_over: &AtomicBool) -> io::Result<bool> {
    client.set_timeout(LIMIT)?;
    seen.connections.fetch_add(1, Ordering::SeqCst);
    let depth = 1 + name % 4;
    let request = format!("INCR counter-{name}\r\n").repeat(depth);
    while !is_over.load(Ordering::SeqCst) {
        client.send(request.as_bytes())?;
        for _ in 0..depth {
            match client.reply() {
                Ok(reply) => {
                    *due += 1;
                    let text = String::from_utf8_lossy(&reply).into_owned();
                    if text != format!(":{due}\r\n") {
                        return Err(io::Error::other(format!("client {name}: {text:?} where {due} was due")));
                    }
                    seen.requests.fetch_add(1, Ordering::SeqCst);
                }
                // Between two replies, that is: a close inside of one is told otherwise.
                Err(error) if error.to_string().contains("closed after 0 bytes") => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(false)
}

#[test]
fn two_hundred_busy_clients_notice_nothing_but_a_close() {
    const CLIENTS: usize = 200;
    let directory = TempDir::new().expect("a directory");
    let (door, control) = (directory.join("door"), directory.join("takeover"));
    let (door_text, control_text) = (door.display().to_string(), control.display().to_string());
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let node_address = node.addresses()[0].to_string();
    let args = |workers| {
        let listen = ["serve", "--listen", "127.0.0.1:0", "--listen", &door_text, "--node", &node_address];
        let rest = ["--takeover-socket", &control_text, "--drain-timeout", "700ms", "--metrics", "127.0.0.1:0"];
        [&listen[..], &rest, &["--workers", workers]].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut running = Running::start(respool(&[]).args(args("2")));
    let tcp = Address::Tcp(running.addresses()[0]);
    let unix = Address::Unix(door.clone());
    let (seen, is_over) = (Seen::default(), AtomicBool::new(false));

    thread::scope(|scope| {
        let crowd: Vec<_> = (0..CLIENTS)
            .map(|name| {
                let address = if name % 4 == 3 { &unix } else { &tcp };
                let (seen, is_over) = (&seen, &is_over);
                scope.spawn(move || {
                    let mut due = 0;
                    while count_up(Client::connect(address)?, name, &mut due, seen, is_over)? {}
                    io::Result::Ok(())
                })
            })
            .collect();
        let goes_on = |what: &str| {
            let before = seen.requests.load(Ordering::SeqCst);
            wait_until(what, LIMIT, || Ok(seen.requests.load(Ordering::SeqCst) > before + 20_000))
        };
        let outcome = (|| {
            wait_until("all are connected", LIMIT, || Ok(seen.connections.load(Ordering::SeqCst) as usize >= CLIENTS))?;
            goes_on("they are served")?;
            // More workers than before, and fewer.
            for workers in ["3", "1"] {
                let next = Running::start(respool(&[]).args(args(workers)).args(["--take-over", &control_text]));
                assert_eq!(next.addresses(), running.addresses(), "the same port, though any was asked for");
                goes_on("both serve")?;
                std::mem::replace(&mut running, next).await_end();
                assert!(door.exists() && control.exists(), "the successor's files are there");
                goes_on("the successor serves")?;
            }
            io::Result::Ok(())
        })();
        is_over.store(true, Ordering::SeqCst);
        for client in crowd {
            client.join().expect("it ends").expect("nothing is lost");
        }
        outcome.expect("it goes on");
    });
    let connections = seen.connections.load(Ordering::SeqCst) as usize;
    assert!((CLIENTS..=CLIENTS * 3).contains(&connections), "{connections} connections, one per process and client");
    running.end();
    assert!(!door.exists() && !control.exists(), "the last one leaves nothing behind");
}

#[test]
fn a_successor_that_fails_changes_nothing_and_loses_no_data() {
    let directory = TempDir::new().expect("a directory");
    let control = directory.join("takeover").display().to_string();
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let node_address = node.addresses()[0].to_string();
    let door = directory.join("door");
    let door_text = door.display().to_string();
    let listen = ["--listen", "127.0.0.1:0", "--listen", &door_text];
    let args = [&listen[..], &["--node", &node_address, "--takeover-socket", &control]].concat();
    let proxy = serve(&args);
    let mut client = proxy.client(0);
    assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");

    // It asks for the sockets, and then cannot open one more.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it has an address").to_string();
    let failed = respool(&["serve"]).args(&args).args(["--take-over", &control, "--listen", &address]).output();
    assert!(!failed.expect("it starts").status.success());
    proxy.says("did not get them");
    // Nor when all but one thing is there.
    let failed = respool(&["serve"]).args(&args).args(["--take-over", &control, "--metrics", &address]).output();
    assert!(!failed.expect("it starts").status.success());
    let by_door = || Client::connect(&Address::Unix(door.clone())).expect("the door is there").ask("GET k");
    assert_eq!(by_door().expect("a reply"), "$1\r\nv\r\n");
    assert_eq!(client.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    assert_eq!(proxy.client(0).ask("GET k").expect("a reply"), "$1\r\nv\r\n");

    // An idle client stays until the drain timeout, a signal ends the wait.
    let next = serve(&[&args[..], &["--take-over", &control]].concat());
    let mut proxy = proxy;
    assert_eq!(client.ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    proxy.process.signal(Signal::TERM).expect("it is there");
    assert_eq!(client.read_to_close().expect("a clean end"), b"");
    proxy.await_end();
    assert_eq!(next.client(0).ask("GET k").expect("a reply"), "$1\r\nv\r\n");
    assert_eq!(by_door().expect("a reply"), "$1\r\nv\r\n");
    next.end();
    assert!(!door.exists() && !directory.join("takeover").exists(), "the last listener removes its file");

    let server_control = directory.join("server").display().to_string();
    let server = serve(&["--listen", "127.0.0.1:0", "--takeover-socket", &server_control]);
    let refused = respool(&["serve", "--listen", "127.0.0.1:0", "--take-over", &server_control]).output();
    let said = String::from_utf8_lossy(&refused.expect("it starts").stderr).into_owned();
    assert!(said.contains("it holds data in embedded engines"), "{said}");
    assert_eq!(server.client(0).ask("PING").expect("a reply"), "+PONG\r\n");
    let absent = directory.join("absent").display().to_string();
    let refused = respool(&["serve", "--take-over", &absent]).output().expect("it starts");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot be taken over"));
}

/// `ACL SETUSER` holds until the users are read again, whichever process it is by then.
#[test]
fn users_that_were_changed_and_not_saved_go_over() {
    let directory = TempDir::new().expect("a directory");
    let control = directory.join("takeover").display().to_string();
    let file = directory.join("respool.toml");
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let settings = |more: &str| {
        let users = "[users.gone]\nrules = \"on nopass ~* +@all\"\n[users.kept]\nrules = \"on nopass ~* +@all\"\n";
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\nnodes = [\"{}\"]\ntakeover_socket = \"{control}\"\ndrain_timeout = \"100ms\"\n{users}{more}",
            node.addresses()[0]
        );
        std::fs::write(&file, text).expect("it is written");
    };
    settings("");
    let config = ["serve", "--config", file.to_str().expect("UTF-8")];
    let mut before = Running::start(&mut respool(&config));
    let mut client = before.client(0);
    for words in
        ["ACL SETUSER made on >secret-of-made ~m:* +get (+set ~n:*)", "ACL SETUSER default -del", "ACL DELUSER gone"]
    {
        assert!(!client.ask(words).expect("a reply").starts_with('-'), "{words}");
    }
    // As a line of an ACL file that would be the right to write every key: the first parenthesis would end the selector.
    let odd = ["ACL", "SETUSER", "odd", "on", "nopass", "~*", r#"("~q)" +@write +eval|x)"#, r#"(+set "~'p\"")"#];
    assert_eq!(client.command(&odd).expect("a reply"), b"+OK\r\n");
    // Twice: what was not saved is not saved by going over once.
    settings("[users.more]\nrules = \"on nopass ~* +@all\"\n");
    for _ in 0..2 {
        let next = Running::start(respool(&config).args(["--take-over", &control]));
        before.await_end();
        let mut client = next.client(0);
        assert!(client.ask("DEL k").expect("a reply").starts_with("-NOPERM"));
        assert!(client.ask("AUTH gone x").expect("a reply").starts_with("-WRONGPASS"));
        for user in ["AUTH kept x", "AUTH more x", "AUTH made secret-of-made"] {
            assert_eq!(client.ask(user).expect("a reply"), "+OK\r\n", "{user}");
        }
        assert_eq!(client.ask("GET m:k").expect("a reply"), "$-1\r\n");
        assert_eq!(client.ask("SET n:k v").expect("a reply"), "+OK\r\n");
        assert!(client.ask("SET m:k v").expect("a reply").starts_with("-NOPERM"));
        assert_eq!(client.ask("AUTH odd x").expect("a reply"), "+OK\r\n");
        for (key, is_permitted) in [("'p\"", true), ("q)", true), ("p", false), ("q", false)] {
            let reply = client.command(&["SET", key, "v"]).expect("a reply");
            assert_eq!(reply.starts_with(b"+OK"), is_permitted, "{key} {}", reply.escape_ascii());
        }
        before = next;
    }
    assert!(before.end().iter().all(|line| !line.contains("secret-of-made")));
}

/// Settings of a proxy before one node called `a`, which lets clients steer it, and the arguments to begin with them.
fn steered(directory: &TempDir, node: &Running) -> Vec<String> {
    let file = directory.join("respool.toml");
    let settings = format!(
        "listen = [\"127.0.0.1:0\"]\nnodes = [\"{} name=a\"]\nadmin_commands = \"allow\"\ntakeover_socket = \"{}\"\n\
         drain_timeout = \"30s\"\n[users.kept]\nrules = \"on >secret ~* +@all\"\n",
        node.addresses()[0],
        directory.join("takeover").display(),
    );
    std::fs::write(&file, settings).expect("it is written");
    vec!["serve".to_owned(), "--config".to_owned(), file.display().to_string()]
}

fn takes_over(directory: &TempDir, arguments: &[String]) -> Running {
    Running::start(respool(&[]).args(arguments).arg("--take-over").arg(directory.join("takeover")))
}

#[test]
fn orders_hold_at_the_successor() {
    let directory = TempDir::new().expect("a directory");
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let arguments = steered(&directory, &node);
    let mut before = Running::start(respool(&[]).args(&arguments));
    let mut client = before.client(0);
    assert_eq!(client.ask("PROXY DRAIN a").expect("a reply"), "+OK\r\n");
    assert!(client.ask("SET k 1").expect("a reply").contains("drained by an operator"));
    // Twice: what was handed over is handed over again.
    for _ in 0..2 {
        let next = takes_over(&directory, &arguments);
        let mut client = next.client(0);
        assert!(client.ask("SET k 1").expect("a reply").contains("drained by an operator"));
        let mut old = std::mem::replace(&mut before, next);
        old.process.signal(Signal::TERM).expect("it is there");
        old.await_end();
    }
    let mut operator = before.client(0);
    assert_eq!(operator.ask("PROXY RESUME a").expect("a reply"), "+OK\r\n");
    assert_eq!(operator.ask("SET k 1").expect("a reply"), "+OK\r\n");
    for pause in ["PROXY PAUSE", "PROXY PAUSE a", "CLIENT PAUSE 60000"] {
        assert_eq!(operator.ask(pause).expect("a reply"), "+OK\r\n");
        let next = takes_over(&directory, &arguments);
        let mut client = next.client(0);
        client.send(b"INCR k\r\n").expect("it is sent");
        client.set_timeout(std::time::Duration::from_millis(300)).expect("a timeout");
        assert!(client.reply().is_err(), "{pause}: it is held back");
        client.set_timeout(LIMIT).expect("a timeout");
        operator = next.client(0);
        let resume = if pause.starts_with("CLIENT") { "CLIENT UNPAUSE" } else { "PROXY RESUME" };
        assert_eq!(operator.ask(resume).expect("a reply"), "+OK\r\n");
        assert!(client.reply().expect("a reply").starts_with(b":"), "{pause}");
        let mut old = std::mem::replace(&mut before, next);
        old.process.signal(Signal::TERM).expect("it is there");
        old.await_end();
    }
    before.end();
}

const CHANGES: [&str; 10] = [
    "ACL SETUSER new on nopass",
    "ACL DELUSER kept",
    "CONFIG SET requirepass secret",
    "CONFIG SET acl-pubsub-default allchannels",
    "PROXY PAUSE",
    "PROXY PAUSE a",
    "PROXY DRAIN a",
    "PROXY RESUME",
    "CLIENT PAUSE 1",
    "CLIENT UNPAUSE",
];

#[test]
fn no_change_is_acknowledged_that_the_successor_misses() {
    let directory = TempDir::new().expect("a directory");
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let arguments = steered(&directory, &node);
    let mut before = Running::start(respool(&[]).args(&arguments));
    let mut client = before.client(0);
    let refuses_all = |client: &mut Client| {
        for change in CHANGES {
            let reply = client.ask(change).expect("a reply");
            assert!(reply.starts_with("-ERR another process takes over"), "{change}: {reply}");
        }
    };
    // While a successor opens everything; one that fails has changed nothing.
    let path = directory.join("takeover");
    let (asker, sockets) = respool_net::handover::Successor::ask(&path).expect("it gets them");
    refuses_all(&mut client);
    drop((asker, sockets));
    let is_back = || Ok(client.ask("ACL SETUSER new on nopass ~* +@all")? == "+OK\r\n");
    wait_until("changes are taken again", LIMIT, is_back).expect("they are");
    // And for as long as the process lives that was taken over.
    let next = takes_over(&directory, &arguments);
    refuses_all(&mut client);
    assert_eq!(client.ask("SET k 1").expect("a reply"), "+OK\r\n");
    let mut there = next.client(0);
    assert_eq!(there.ask("AUTH kept secret").expect("a reply"), "+OK\r\n");
    assert_eq!(there.ask("AUTH new any").expect("a reply"), "+OK\r\n");
    before.process.signal(Signal::TERM).expect("it is there");
    before.await_end();
    next.end();
}

#[test]
fn a_successor_that_stands_still_holds_up_no_other() {
    let directory = TempDir::new().expect("a directory");
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let arguments = steered(&directory, &node);
    let mut before = Running::start(respool(&[]).args(&arguments));
    let path = directory.join("takeover");
    // One says nothing at all, another has the sockets and does not become ready.
    let silent = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
    let (stopped, sockets) = respool_net::handover::Successor::ask(&path).expect("it gets them");
    let next = takes_over(&directory, &arguments);
    assert_eq!(next.client(0).ask("SET k 1").expect("a reply"), "+OK\r\n");
    // It may go on later, and must not.
    let farewell = stopped.say_ready().expect("it was told before the other ended");
    assert!(matches!(farewell, respool_net::handover::Farewell::Overruled(_)), "{farewell:?}");
    drop((silent, sockets));
    before.process.signal(Signal::TERM).expect("it is there");
    before.await_end();
    next.end();
}

/// A crowd that counts up, also while it has to connect again, until `meanwhile` has ended. Fails if a request was lost or done twice, or a
/// connection was refused, but for the words with which it may be.
fn assert_nothing_is_lost(address: &Address, words: &str, meanwhile: impl FnOnce(&Seen)) {
    let (seen, is_over) = (Seen::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let crowd: Vec<_> = (0..40)
            .map(|name| {
                let (seen, is_over) = (&seen, &is_over);
                scope.spawn(move || {
                    let mut due = 0;
                    loop {
                        match count_up(Client::connect(address)?, name, &mut due, seen, is_over) {
                            Err(error) if words.is_empty() || !error.to_string().contains(words) => return Err(error),
                            // It stands in the place of a number.
                            Err(_) => due -= 1,
                            Ok(false) => return Ok(()),
                            Ok(true) => {}
                        }
                    }
                })
            })
            .collect();
        let is_served = || Ok(seen.requests.load(Ordering::SeqCst) > 2_000);
        let served = wait_until("they are served", LIMIT, is_served);
        if served.is_ok() {
            meanwhile(&seen);
        }
        is_over.store(true, Ordering::SeqCst);
        for client in crowd {
            client.join().expect("it ends").expect("nothing is lost");
        }
        served.expect("they are");
    });
}

#[test]
fn a_process_that_ends_early_leaves_its_successor_the_listeners() {
    let directory = TempDir::new().expect("a directory");
    let path = |name: &str| directory.join(name).display().to_string();
    let node = serve(&["--listen", "127.0.0.1:0", "--listen", &path("node")]);
    let node_address = node.addresses()[0].to_string();
    let args = |node: &str| {
        let listen = ["serve", "--listen", "127.0.0.1:0", "--listen", &path("door"), "--node", node].map(str::to_owned);
        let rest = ["--takeover-socket", &path("takeover"), "--drain-timeout", "300ms"].map(str::to_owned);
        [listen.to_vec(), rest.to_vec()].concat()
    };
    for is_by_door in [false, true] {
        assert_eq!(node.client(0).ask("FLUSHALL").expect("a reply"), "+OK\r\n");
        let mut before = Running::start(respool(&[]).args(args(&node_address)));
        let tcp = Address::Tcp(before.addresses()[0]);
        let address = if is_by_door { Address::Unix(directory.join("door")) } else { tcp };
        let mut successor = None;
        // Who is accepted in the moment in which it begins to end hears so.
        assert_nothing_is_lost(&address, "-ERR the server is shutting down", |seen| {
            // Its node is not there before the process before has ended.
            let later = args(&path("later"));
            let starts = thread::spawn({
                let takeover = path("takeover");
                move || Running::start(respool(&[]).args(later).args(["--take-over", &takeover]))
            });
            let mut client = before.client(0);
            let has_asked =
                || Ok(client.ask("ACL SETUSER new on nopass ~* +@all")?.starts_with("-ERR another process"));
            wait_until("it has the sockets", LIMIT, has_asked).expect("it has");
            before.process.signal(Signal::TERM).expect("it is there");
            before.await_end();
            assert!(directory.join("door").exists() && directory.join("takeover").exists(), "they are the successor's");
            let mut waiting = Client::connect(&address).expect("the kernel takes it");
            waiting.send(b"PING\r\n").expect("and what it sends");
            let answered = seen.requests.load(Ordering::SeqCst);
            std::os::unix::fs::symlink(path("node"), path("later")).expect("the node comes");
            successor = Some(starts.join().expect("it starts"));
            assert_eq!(waiting.reply().expect("it was not refused"), b"+PONG\r\n");
            let go_on = || Ok(seen.requests.load(Ordering::SeqCst) > answered + 2_000);
            wait_until("the successor serves", LIMIT, go_on).expect("it does");
        });
        successor.expect("it has started").end();
        assert!(!directory.join("door").exists(), "the last one leaves nothing behind");
        std::fs::remove_file(path("later")).expect("it is there");
    }
}

#[test]
fn a_process_that_ends_amid_its_last_clients_loses_nothing() {
    let directory = TempDir::new().expect("a directory");
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let arguments = steered(&directory, &node);
    let mut before = Running::start(respool(&[]).args(&arguments));
    let address = Address::Tcp(before.addresses()[0]);
    let mut successor = None;
    assert_nothing_is_lost(&address, "", |seen| {
        // Its clients would have half a minute.
        let next = takes_over(&directory, &arguments);
        before.process.signal(Signal::TERM).expect("it is there");
        before.await_end();
        let answered = seen.requests.load(Ordering::SeqCst);
        let go_on = || Ok(seen.requests.load(Ordering::SeqCst) > answered + 2_000);
        wait_until("the successor serves", LIMIT, go_on).expect("it does");
        successor = Some(next);
    });
    successor.expect("it has started").end();
}

#[test]
fn a_successor_that_dies_before_it_is_ready_costs_nothing() {
    let directory = TempDir::new().expect("a directory");
    let node = serve(&["--listen", "127.0.0.1:0"]);
    let arguments = steered(&directory, &node);
    let before = Running::start(respool(&[]).args(&arguments));
    assert_nothing_is_lost(&Address::Tcp(before.addresses()[0]), "", |seen| {
        let takeover = directory.join("takeover");
        for micros in (0..20).map(|number| number * 2_000) {
            // A node that never answers keeps it from being ready.
            let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            let silent = silent.local_addr().expect("it has an address").to_string();
            let mut next = respool(&["serve", "--listen", "127.0.0.1:0", "--node", &silent, "--take-over"]);
            let mut next = next.arg(&takeover).stderr(Stdio::null()).spawn().expect("it starts");
            thread::sleep(Duration::from_micros(micros));
            next.kill().expect("it is there");
            next.wait().expect("it ends");
        }
        let answered = seen.requests.load(Ordering::SeqCst);
        let go_on = || Ok(seen.requests.load(Ordering::SeqCst) > answered + 2_000);
        wait_until("it serves on", LIMIT, go_on).expect("it does");
        let is_back = || Ok(before.client(0).ask("ACL SETUSER new on nopass ~* +@all")? == "+OK\r\n");
        wait_until("changes are taken again", LIMIT, is_back).expect("they are");
        assert_eq!(before.client(0).ask("PING").expect("who comes is served"), "+PONG\r\n");
    });
    before.end();
}

#[test]
fn requests_on_their_way_into_a_drain_cost_no_reply() {
    let server = serve(&["--listen", "127.0.0.1:0", "--nodes", "embedded:,embedded:"]);
    let (seen, is_over) = (Seen::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let start = |name| {
            let (client, seen, is_over) = (server.client(0), &seen, &is_over);
            scope.spawn(move || count_up(client, name, &mut 0, seen, is_over))
        };
        let crowd: Vec<_> = (0..20).map(start).collect();
        wait_until("they are served", LIMIT, || Ok(seen.requests.load(Ordering::SeqCst) > 5_000)).expect("they are");
        server.process.signal(Signal::TERM).expect("it is there");
        for client in crowd {
            assert!(client.join().expect("it ends").expect("nothing is lost"), "it was told to go");
        }
    });
}

#[test]
fn sockets_of_a_service_manager_are_listened_on() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    // Who connects before the program runs waits for it.
    let mut early = Client::connect(&Address::Tcp(address)).expect("the kernel accepts");
    early.send(b"PING\r\n").expect("it is taken");
    let directory = TempDir::new().expect("a directory");
    let told = std::os::unix::net::UnixDatagram::bind(directory.join("notify")).expect("a socket");
    told.set_read_timeout(Some(LIMIT)).expect("a timeout can be set");
    let script = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve --listen \"$1\" 3<&0 </dev/null";
    let mut child = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_respool"), &address.to_string()])
        .env("NOTIFY_SOCKET", directory.join("notify"))
        .stdin(std::process::Stdio::from(std::os::fd::OwnedFd::from(listener)))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    assert_eq!(early.reply().expect("a reply"), b"+PONG\r\n");
    let mut message = [0; 256];
    let length = told.recv(&mut message).expect("the manager is told");
    assert_eq!(message[..length], *format!("MAINPID={}\nREADY=1\n", child.id()).as_bytes());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).expect("it is there");
    assert!(child.wait().expect("it ends").success());
}
