//! New credentials for nodes by a reload: established connections stay in use until a node has accepted them.

mod support;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use respool_testkit::{Client, RedisServer, TempDir, wait_until};
use rustix::process::Signal;
use support::{LIMIT, Running, respool};

struct Guarded {
    node: RedisServer,
    file: PathBuf,
    mode: &'static str,
    respool: Running,
    _directory: TempDir,
}

impl Guarded {
    fn start(mode: &'static str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let node = RedisServer::start_with(&["--requirepass", "one"]).expect("a redis-server");
        let file = directory.join("respool.toml");
        write(&file, mode, &node, "one");
        let respool = Running::start(respool(&["serve", "--config"]).arg(&file));
        Self { node, file, mode, respool, _directory: directory }
    }

    fn reload(&self, password: &str) {
        write(&self.file, self.mode, &self.node, password);
        self.respool.process.signal(Signal::HUP).expect("it is there");
    }

    fn client(&self) -> Client {
        let client = self.respool.client(0);
        client.set_timeout(LIMIT).expect("a timeout");
        client
    }

    fn direct(&self, password: &str) -> Client {
        let mut direct = self.node.client().expect("it accepts");
        assert_eq!(ask(&mut direct, &format!("AUTH {password}")), "+OK\r\n");
        direct
    }
}

fn write(file: &Path, mode: &str, node: &RedisServer, password: &str) {
    let settings = format!(
        "listen = [\"127.0.0.1:0\"]\nworkers = 1\npool_mode = \"{mode}\"\nnodes = [\"{} name=a\"]\n\
         node_password = \"{password}\"\nreconnect_max = \"100ms\"\n",
        node.tcp()
    );
    std::fs::write(file, settings).expect("it is written");
}

fn ask(client: &mut Client, words: &str) -> String {
    client.ask(words).expect("a reply")
}

#[test]
fn credentials_that_a_node_refuses_cost_no_connection() {
    for mode in ["multiplex", "transaction", "session"] {
        let guarded = Guarded::start(mode);
        let [mut client, mut listener, mut waiter] = [(); 3].map(|()| guarded.client());
        assert_eq!(ask(&mut client, "SET k 0"), "+OK\r\n");
        assert!(ask(&mut listener, "SUBSCRIBE news").contains("news"));
        waiter.send(b"BLPOP queue 0\r\n").expect("it is taken");
        let mut direct = guarded.direct("one");
        let waits = || Ok(ask(&mut direct, "INFO clients").contains("blocked_clients:1\r\n"));
        wait_until("it waits", LIMIT, waits).expect("it does");

        guarded.reload("wrong");
        guarded.respool.says("node a refuses its new credentials (WRONGPASS");
        for number in 1..50 {
            assert_eq!(ask(&mut client, "INCR k"), format!(":{number}\r\n"), "{mode}");
        }
        assert_eq!(ask(&mut direct, "PUBLISH news hello"), ":1\r\n", "{mode}: it is still told");
        assert!(String::from_utf8_lossy(&listener.reply().expect("a message")).contains("hello"));
        assert_eq!(ask(&mut direct, "RPUSH queue v"), ":1\r\n");
        assert!(String::from_utf8_lossy(&waiter.reply().expect("a reply")).contains("queue"), "{mode}");
        let nodes = ask(&mut client, "PROXY SHOW NODES");
        assert!(nodes.contains("\r\nup\r\n") && nodes.contains("WRONGPASS"), "{nodes}");
        // A request that needs a new connection gets one with the former credentials, also where none is left.
        assert_eq!(ask(&mut guarded.client(), "SELECT 7"), "+OK\r\n", "{mode}");
        assert!(ask(&mut direct, "CLIENT KILL TYPE normal SKIPME yes").starts_with(':'));
        wait_until("the node is connected again", LIMIT, || Ok(ask(&mut guarded.client(), "GET k") == "$2\r\n49\r\n"))
            .expect("so");

        let mut other = guarded.client();
        guarded.reload("one");
        wait_until("new connections are possible", LIMIT, || Ok(ask(&mut other, "WATCH k") == "+OK\r\n")).expect("so");
        assert_eq!(ask(&mut client, "INCR k"), ":50\r\n");
        let lines = guarded.respool.end();
        let told = lines.iter().filter(|line| line.contains("refuses its new credentials")).count();
        assert_eq!(told, 1, "{}", lines.join("\n"));
        assert!(!lines.iter().any(|line| line.contains("out of use")), "{}", lines.join("\n"));
    }
}

/// Increments a key of its own until `is_over`, and checks each number. Returns the last one.
fn count_up(mut client: Client, name: usize, acknowledged: &AtomicU64, is_over: &AtomicBool) -> u64 {
    let mut count = 0;
    while !is_over.load(Ordering::SeqCst) {
        count += 1;
        assert_eq!(ask(&mut client, &format!("INCR k{name}")), format!(":{count}\r\n"));
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    count
}

#[test]
fn a_password_is_changed_without_a_request_that_fails() {
    for mode in ["multiplex", "session"] {
        let guarded = Guarded::start(mode);
        let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut listener = guarded.client();
        assert!(ask(&mut listener, "SUBSCRIBE news").contains("news"));
        thread::scope(|scope| {
            let start = |name| {
                let (client, acknowledged, is_over) = (guarded.client(), &acknowledged, &is_over);
                scope.spawn(move || count_up(client, name, acknowledged, is_over))
            };
            let clients: Vec<_> = (0..4).map(start).collect();
            let goes_on = || {
                let before = acknowledged.load(Ordering::SeqCst);
                wait_until("they are served", LIMIT, || Ok(acknowledged.load(Ordering::SeqCst) > before + 200))
            };
            let outcome = (|| {
                goes_on()?;
                // As in operation: the node accepts both passwords, the proxy gets the new one, then the old one is
                // removed.
                let mut direct = guarded.direct("one");
                assert_eq!(ask(&mut direct, "ACL SETUSER default >two"), "+OK\r\n");
                let last =
                    ask(&mut direct, "CLIENT ID").trim_start_matches(':').trim().parse::<u64>().expect("a number");
                guarded.reload("two");
                goes_on()?;
                wait_until("all connections are new", LIMIT, || {
                    let list = ask(&mut direct, "CLIENT LIST");
                    let ids = list.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next());
                    Ok(ids.filter_map(|id| id.parse().ok()).all(|id: u64| id >= last))
                })?;
                assert_eq!(ask(&mut direct, "ACL SETUSER default <one"), "+OK\r\n");
                goes_on()?;
                wait_until("it is told again", LIMIT, || Ok(ask(&mut direct, "PUBLISH news hello") == ":1\r\n"))
            })();
            is_over.store(true, Ordering::SeqCst);
            for client in clients {
                assert!(client.join().expect("nothing fails") > 0);
            }
            outcome.expect("it goes on");
        });
        assert!(String::from_utf8_lossy(&listener.reply().expect("a message")).contains("hello"));
        guarded.respool.end();
    }
}
