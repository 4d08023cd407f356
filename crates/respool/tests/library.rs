//! Respool in a program of one's own: the example, and what a builder can say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use respool::{Builder, Categories, Event, Server};
use respool_testkit::{Address, Client, PATIENCE, TempDir, free_port, wait_until};

#[path = "../examples/embed.rs"]
mod embed;

fn client_of(server: &Server) -> Client {
    let address = server.addresses()[0].to_string().parse().expect("an address");
    Client::connect(&Address::Tcp(address)).expect("it accepts")
}

#[test]
fn the_example_runs() {
    embed::main().expect("it runs");
}

#[test]
fn hooks_say_who_comes_in_and_what_may_be_done() {
    let (refused, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count_refused, count_asked) = (Arc::clone(&refused), Arc::clone(&asked));
    let is_open = Arc::new(AtomicUsize::new(1));
    let door = Arc::clone(&is_open);
    let server = Builder::new()
        .listen("127.0.0.1:0")
        .node("embedded:")
        .set("workers", 1)
        .user("app", "on >secret ~* +@all -flushall")
        .on_accept(move |peer| peer.address.starts_with("127.0.0.1:") && door.load(Ordering::SeqCst) == 1)
        .on_event(move |event| {
            if let Event::ClientRefused { .. } = event {
                count_refused.fetch_add(1, Ordering::SeqCst);
            }
        })
        .on_request(Categories::WRITE, move |_, row, args| {
            count_asked.fetch_add(1, Ordering::SeqCst);
            match args.get(1) {
                Some(key) if key.starts_with(b"frozen") => Err(format!("ERR {} would change a frozen key", row.name)),
                _ => Ok(()),
            }
        })
        .start()
        .expect("it starts");
    let mut client = client_of(&server);
    assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");
    assert_eq!(client.ask("GET frozen").expect("a reply"), "$-1\r\n");
    assert_eq!(client.ask("SET frozen v").expect("a reply"), "-ERR SET would change a frozen key\r\n");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "reads are not asked about");
    // Within a transaction a refusal spoils the block.
    assert_eq!(client.ask("MULTI").expect("a reply"), "+OK\r\n");
    assert!(client.ask("DEL frozen").expect("a reply").starts_with("-ERR DEL would"));
    assert!(client.ask("EXEC").expect("a reply").starts_with("-EXECABORT"));
    assert_eq!(client.ask("AUTH app secret").expect("a reply"), "+OK\r\n");
    assert!(client.ask("FLUSHALL").expect("a reply").starts_with("-NOPERM"));

    is_open.store(0, Ordering::SeqCst);
    assert_eq!(client_of(&server).read_to_close().expect("an end"), b"-ERR connection refused by policy\r\n");
    wait_until("the refusal is told", PATIENCE, || Ok(refused.load(Ordering::SeqCst) == 1)).expect("it is");
    assert_eq!(client.ask("PING").expect("a reply"), "+PONG\r\n", "a connected client stays");
    assert!(server.metrics().lines().any(|line| line == "respool_clients_refused_total 1"), "{}", server.metrics());
    server.shut_down().expect("it ends well");
    assert_eq!(client.read_to_close().expect("an end"), b"");
}

/// What fails in one worker is not hidden by the others going on.
#[test]
fn a_panic_ends_the_whole_server() {
    let server = Builder::new()
        .listen("127.0.0.1:0")
        .node("embedded:")
        .set("workers", 3)
        .on_request(Categories::WRITE, |_, _, args| {
            assert_ne!(args.get(1), Some(&b"boom"[..]), "this hook is made to fail");
            Ok(())
        })
        .start()
        .expect("it starts");
    // Some of them are at other workers than the one that fails.
    let mut clients: Vec<Client> = (0..12).map(|_| client_of(&server)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");
    }
    clients[0].send(b"SET boom v\r\n").expect("it is connected");
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(server.wait().expect_err("it has failed").to_string()));
    let told = end.recv_timeout(Duration::from_secs(20)).expect("the server ends");
    assert!(told.contains("panicked"), "{told}");
    for client in &mut clients {
        assert_eq!(client.read_to_close().expect("an end"), b"");
    }
}

#[test]
fn wrong_settings_are_told_and_servers_live_side_by_side() {
    let refused = Builder::new().set("conect_timeout", "1s").start().expect_err("there is no such setting");
    assert!(refused.to_string().contains("did you mean connect_timeout?"), "{refused}");
    let refused = Builder::new().set("backlog", 0).start().expect_err("that is no backlog");
    assert!(refused.to_string().contains("allowed are 1 to 65535"), "{refused}");
    let refused = Builder::new().settings("listen = 7").start().expect_err("that is no address");
    assert!(refused.to_string().contains("listen"), "{refused}");

    // No port that the system gives away: it must be closed once the server has ended.
    let port = free_port().expect("a port");
    let server = |port: u16| {
        Builder::new().settings("databases = 3").listen(&format!("127.0.0.1:{port}")).start().expect("it starts")
    };
    let (first, second) = (server(port), server(0));
    assert_eq!(client_of(&first).ask("SET k first").expect("a reply"), "+OK\r\n");
    assert_eq!(client_of(&second).ask("GET k").expect("a reply"), "$-1\r\n");
    assert!(client_of(&second).ask("SELECT 3").expect("a reply").starts_with("-ERR"));
    let taken = first.addresses()[0].to_string();
    assert!(Builder::new().listen(&taken).start().is_err(), "the address is taken");
    let address = first.addresses()[0].to_string();
    drop(first);
    assert!(std::net::TcpStream::connect(address).is_err(), "the listener is closed");
    second.shut_down().expect("it ends well");
}

#[test]
fn a_server_that_has_ended_has_left_its_ports() {
    let (port, metrics) = (free_port().expect("a port"), free_port().expect("another"));
    let server = || {
        let builder =
            Builder::new().listen(&format!("127.0.0.1:{port}")).set("metrics", format!("127.0.0.1:{metrics}"));
        builder.start().expect("the ports are free")
    };
    server().shut_down().expect("it ends well");
    drop(server());
    let mut client = client_of(&server());
    assert_eq!(client.read_to_close().expect("an end"), b"", "who drops the server drops its clients");
}

#[test]
fn a_server_that_has_ended_leaves_no_thread_behind() {
    let directory = TempDir::new().expect("a directory");
    let builder = Builder::new().listen("127.0.0.1:0").set("takeover_socket", directory.join("takeover").display());
    let waits = || -> std::io::Result<bool> {
        let threads = std::fs::read_dir("/proc/self/task")?;
        let mut names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
        Ok(names.any(|name| name.trim() == "takeover"))
    };
    let server = builder.start().expect("it starts");
    wait_until("the process waits for a successor", Duration::from_secs(10), waits).expect("it is so");
    server.shut_down().expect("it ends well");
    wait_until("it waits no more", PATIENCE, || waits().map(|waits| !waits)).expect("it is so");
}
