//! A node that moves to another server while clients go on: the procedure of a failover, and what clients are in the middle of.

mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use respool_testkit::{Client, RedisServer, TempDir, request, wait_until};
use rustix::process::Signal;
use support::{LIMIT, Running, respool};

/// For how long a pause is watched.
const PAUSED: Duration = Duration::from_millis(300);

const MODES: [&str; 3] = ["multiplex", "transaction", "session"];

/// A proxy with one node called `a`, which is the first of two servers.
struct Moving {
    old: RedisServer,
    new: RedisServer,
    file: PathBuf,
    respool: Running,
    _directory: TempDir,
}

impl Moving {
    fn start(mode: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let [old, new] = [(); 2].map(|()| RedisServer::start().expect("a redis-server"));
        let file = directory.join("respool.toml");
        write(&file, mode, &old);
        let file_text = file.to_str().expect("UTF-8");
        let respool = Running::start(&mut respool(&["serve", "--config", file_text]));
        Self { old, new, file, respool, _directory: directory }
    }

    fn client(&self) -> Client {
        let client = self.respool.client(0);
        client.set_timeout(LIMIT).expect("a timeout");
        client
    }

    /// The node is the second server from now on.
    fn reload(&self, mode: &str, operator: &mut Client) {
        write(&self.file, mode, &self.new);
        self.respool.process.signal(Signal::HUP).expect("it is there");
        let [old, new] = [&self.old, &self.new].map(|server| format!(":{}\r\n", server.port()));
        wait_until("all workers have taken it over", LIMIT, || {
            let nodes = operator.ask("PROXY SHOW NODES")?;
            Ok(nodes.contains(&new) && !nodes.contains(&old))
        })
        .expect("they have");
    }
}

fn write(file: &std::path::Path, mode: &str, server: &RedisServer) {
    let settings = format!(
        "listen = [\"127.0.0.1:0\"]\nworkers = 2\nlarge_request_bytes = \"16kb\"\nadmin_commands = \"allow\"\npool_mode = \"{mode}\"\nnodes = [\"{} name=a\"]\n",
        server.tcp()
    );
    std::fs::write(file, settings).expect("it is written");
}

fn ask(client: &mut Client, words: &str) -> String {
    client.ask(words).expect("a reply")
}

fn value_at(server: &RedisServer, key: &str) -> u64 {
    let reply = ask(&mut server.client().expect("it accepts"), &format!("GET {key}"));
    reply.lines().nth(1).and_then(|line| line.parse().ok()).unwrap_or(0)
}

/// So many requests more are acknowledged.
fn serves_on(acknowledged: &AtomicU64, requests: u64) {
    let before = acknowledged.load(Ordering::SeqCst);
    let is_served = || Ok(acknowledged.load(Ordering::SeqCst) > before + requests);
    wait_until("the clients are served", LIMIT, is_served).expect("they are");
}

/// The node `a` is paused since `held` requests were acknowledged, and a reload has moved it: nothing more is until it is resumed.
fn resume(mode: &str, operator: &mut Client, acknowledged: &AtomicU64, held: u64) {
    // Long enough for a request that was not held to be answered.
    thread::sleep(PAUSED);
    assert_eq!(acknowledged.load(Ordering::SeqCst), held, "{mode}: the reload ends no pause");
    assert_eq!(ask(operator, "PROXY RESUME a"), "+OK\r\n");
}

/// Counts up its own key, some requests at a time, until it is over. Gives the last number; each was one more than the last.
fn count_up(mut client: Client, name: usize, acknowledged: &AtomicU64, is_over: &AtomicBool) -> u64 {
    let (depth, mut count) = (1 + name * 5, 0);
    let mut outstanding = 0;
    while !is_over.load(Ordering::SeqCst) || outstanding > 0 {
        // One more for each that is answered: the client is never owed nothing.
        if !is_over.load(Ordering::SeqCst) {
            client.send(format!("INCR k{name}\r\n").repeat(depth - outstanding).as_bytes()).expect("it is sent");
            outstanding = depth;
        }
        let reply = client.reply().expect("a reply");
        outstanding -= 1;
        count += 1;
        assert_eq!(String::from_utf8_lossy(&reply), format!(":{count}\r\n"));
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    count
}

#[test]
fn no_write_is_lost_when_a_paused_node_is_moved() {
    const CLIENTS: usize = 6;
    for mode in MODES {
        let moving = Moving::start(mode);
        let mut operator = moving.client();
        let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let start = |name| {
                let (client, acknowledged, is_over) = (moving.client(), &acknowledged, &is_over);
                scope.spawn(move || count_up(client, name, acknowledged, is_over))
            };
            let clients: Vec<_> = (0..CLIENTS).map(start).collect();
            serves_on(&acknowledged, 2_000);
            assert_eq!(ask(&mut operator, "PROXY PAUSE a"), "+OK\r\n");
            // What was under way is answered; the other server gets everything that the first one has.
            let is_quiet = || {
                let nodes = ask(&mut operator, "PROXY SHOW NODES");
                let figure =
                    |name: &str| nodes.split("\r\n").skip_while(|word| *word != name).nth(1).map(str::to_owned);
                Ok(["outstanding", "queued_bytes"].iter().all(|name| figure(name).as_deref() == Some(":0")))
            };
            wait_until("nothing is under way", LIMIT, is_quiet).expect("it ends");
            let at_pause: Vec<u64> = (0..CLIENTS).map(|name| value_at(&moving.old, &format!("k{name}"))).collect();
            let mut to_new = moving.new.client().expect("it accepts");
            for (name, value) in at_pause.iter().enumerate() {
                assert_eq!(ask(&mut to_new, &format!("SET k{name} {value}")), "+OK\r\n");
            }
            let held = acknowledged.load(Ordering::SeqCst);
            moving.reload(mode, &mut operator);
            resume(mode, &mut operator, &acknowledged, held);
            serves_on(&acknowledged, 2_000);
            is_over.store(true, Ordering::SeqCst);
            for (name, client) in clients.into_iter().enumerate() {
                let count = client.join().expect("every number came in its turn");
                assert_eq!(value_at(&moving.new, &format!("k{name}")), count, "{mode}: what was acknowledged is there");
                assert_eq!(value_at(&moving.old, &format!("k{name}")), at_pause[name], "{mode}: the other got no more");
            }
        });
        moving.respool.end();
    }
}

/// What the page on operations says of a pause: it is one of clients, and the server can be paused as well.
#[test]
fn keys_expire_at_a_server_until_it_is_paused_itself() {
    let moving = Moving::start("multiplex");
    let (mut operator, mut server) = (moving.client(), moving.old.client().expect("it accepts"));
    let set = |server: &mut Client| assert_eq!(ask(server, "SET k v PX 50"), "+OK\r\n");
    for order in ["PROXY PAUSE WAIT", "CLIENT PAUSE 60000 ALL"] {
        set(&mut server);
        assert!(ask(&mut operator, order).starts_with("+OK"), "{order}");
        wait_until("it expires", LIMIT, || Ok(server.ask("DBSIZE")? == ":0\r\n")).expect(order);
        let end = if order.starts_with("PROXY") { "PROXY RESUME" } else { "CLIENT UNPAUSE" };
        assert!(ask(&mut operator, end).starts_with("+OK"), "{end}");
    }
    set(&mut server);
    assert_eq!(ask(&mut server, "CLIENT PAUSE 60000 WRITE"), "+OK\r\n");
    thread::sleep(PAUSED);
    assert_eq!(ask(&mut server, "DBSIZE"), ":1\r\n", "it stands still");
    assert_eq!(ask(&mut operator, "GET k"), "$-1\r\n", "and is asked as before");
    let node = ask(&mut operator, "PROXY SHOW NODES");
    assert!(!node.contains("down"), "{node}");
    assert_eq!(ask(&mut server, "CLIENT UNPAUSE"), "+OK\r\n");
}

#[test]
fn a_watch_does_not_outlive_its_server() {
    for mode in MODES {
        let moving = Moving::start(mode);
        let (mut operator, mut client, mut other) = (moving.client(), moving.client(), moving.client());
        assert_eq!(ask(&mut client, "WATCH k"), "+OK\r\n");
        moving.reload(mode, &mut operator);
        assert_eq!(ask(&mut other, "SET k theirs"), "+OK\r\n");
        for (words, reply) in [("MULTI", "+OK\r\n"), ("SET k mine", "+QUEUED\r\n"), ("EXEC", "*-1\r\n")] {
            assert_eq!(ask(&mut client, words), reply, "{mode}");
        }
        assert_eq!(ask(&mut client, "GET k"), "$6\r\ntheirs\r\n", "{mode}");
        assert_eq!(value_at(&moving.old, "k"), 0);
        assert_eq!(ask(&mut moving.old.client().expect("it accepts"), "EXISTS k"), ":0\r\n", "{mode}");
        // The next one is as any other.
        for (words, reply) in
            [("WATCH k", "+OK\r\n"), ("MULTI", "+OK\r\n"), ("SET k mine", "+QUEUED\r\n"), ("EXEC", "*1\r\n+OK\r\n")]
        {
            assert_eq!(ask(&mut client, words), reply, "{mode}");
        }
        assert_eq!(ask(&mut moving.new.client().expect("it accepts"), "GET k"), "$4\r\nmine\r\n");
        moving.respool.end();
    }
}

#[test]
fn who_waits_is_served_at_the_new_server() {
    for mode in MODES {
        let moving = Moving::start(mode);
        let (mut operator, mut pusher) = (moving.client(), moving.client());
        let waiting = ["BLPOP q1 0", "BLMOVE q2 to LEFT LEFT 0", "XREAD BLOCK 0 STREAMS s1 0", "BZPOPMIN z1 20"];
        let mut clients: Vec<Client> = waiting.iter().map(|_| moving.client()).collect();
        let mut tail = moving.client();
        for (client, words) in clients.iter_mut().zip(waiting) {
            client.send(format!("{words}\r\n").as_bytes()).expect("it is sent");
        }
        tail.send(b"XREAD BLOCK 0 STREAMS s2 $\r\n").expect("it is sent");
        let mut old = moving.old.client().expect("it accepts");
        let mut count_blocked = || old.figure("clients", "blocked_clients");
        wait_until("they wait", LIMIT, || Ok(count_blocked()? == 5)).expect("they do");
        moving.reload(mode, &mut operator);
        wait_until("none waits there", LIMIT, || Ok(count_blocked()? == 0)).expect("none does");
        // What would come after `$` is not known any more.
        let reply = String::from_utf8(tail.reply().expect("a reply")).expect("text");
        assert!(reply.starts_with("-UNBLOCKED "), "{mode}: {reply}");
        for words in ["RPUSH q1 v", "RPUSH q2 v", "XADD s1 1-1 f v", "ZADD z1 1 m"] {
            assert!(!ask(&mut pusher, words).starts_with('-'), "{words}");
        }
        let replies: Vec<String> = clients
            .iter_mut()
            .map(|client| String::from_utf8(client.reply().expect("a reply")).expect("text"))
            .collect();
        assert_eq!(replies[0], "*2\r\n$2\r\nq1\r\n$1\r\nv\r\n", "{mode}");
        assert_eq!(replies[1], "$1\r\nv\r\n", "{mode}");
        assert!(replies[2].contains("1-1"), "{mode}: {}", replies[2]);
        assert_eq!(replies[3], "*3\r\n$2\r\nz1\r\n$1\r\nm\r\n$1\r\n1\r\n", "{mode}");
        moving.respool.end();
    }
}

#[test]
fn who_waits_at_a_server_that_hangs_hears_of_it() {
    let moving = Moving::start("multiplex");
    let (mut operator, mut client) = (moving.client(), moving.client());
    client.send(b"BLPOP q 0\r\n").expect("it is sent");
    let mut old = moving.old.client().expect("it accepts");
    wait_until("it waits", LIMIT, || Ok(old.figure("clients", "blocked_clients")? == 1)).expect("it does");
    moving.old.pause().expect("it is there");
    moving.reload("multiplex", &mut operator);
    // The new server is used at once.
    assert_eq!(ask(&mut operator, "SET k v"), "+OK\r\n");
    let reply = String::from_utf8(client.reply().expect("a reply")).expect("text");
    assert!(reply.starts_with("-ERR node a ") && reply.contains("may or may not have been executed"), "{reply}");
    moving.old.resume().expect("it is there");
    moving.respool.end();
}

/// Adds large elements to its own list, one at a time, each sent in pieces. Gives how many were added: each reply is the length of the list, and
/// one that was not passed on as a whole has added nothing.
fn push_large(mut client: Client, name: usize, acknowledged: &AtomicU64, is_over: &AtomicBool) -> (u64, u64) {
    let (mut count, mut refused) = (0, 0);
    while !is_over.load(Ordering::SeqCst) {
        let bytes = request(&["RPUSH", &format!("l{name}"), &"e".repeat(200_000)]);
        for piece in bytes.chunks(40_000) {
            client.send(piece).expect("it is sent");
            thread::sleep(Duration::from_millis(1));
        }
        let reply = String::from_utf8_lossy(&client.reply().expect("a reply")).into_owned();
        if reply == format!(":{}\r\n", count + 1) {
            count += 1;
            acknowledged.fetch_add(1, Ordering::SeqCst);
        } else {
            assert!(reply.starts_with("-ERR ") && reply.contains("was not sent"), "{reply}");
            refused += 1;
        }
    }
    (count, refused)
}

#[test]
fn no_large_write_is_lost_or_half_done_when_its_node_is_moved() {
    const CLIENTS: usize = 6;
    for mode in MODES {
        let moving = Moving::start(mode);
        let mut operator = moving.client();
        let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let length_at = |server: &RedisServer, name: usize| {
            let reply = ask(&mut server.client().expect("it accepts"), &format!("LLEN l{name}"));
            reply.trim_start_matches(':').trim_end().parse::<u64>().expect("a number")
        };
        thread::scope(|scope| {
            let start = |name| {
                let (client, acknowledged, is_over) = (moving.client(), &acknowledged, &is_over);
                scope.spawn(move || push_large(client, name, acknowledged, is_over))
            };
            let clients: Vec<_> = (0..CLIENTS).map(start).collect();
            serves_on(&acknowledged, 100);
            assert_eq!(ask(&mut operator, "PROXY PAUSE WAIT a"), "+OK\r\n");
            thread::sleep(PAUSED);
            let at_pause: Vec<u64> = (0..CLIENTS).map(|name| length_at(&moving.old, name)).collect();
            let mut to_new = moving.new.client().expect("it accepts");
            for (name, length) in at_pause.iter().enumerate() {
                for _ in 0..*length {
                    ask(&mut to_new, &format!("RPUSH l{name} e"));
                }
            }
            let held = acknowledged.load(Ordering::SeqCst);
            assert_eq!(held, at_pause.iter().sum::<u64>(), "{mode}: what is done is acknowledged");
            moving.reload(mode, &mut operator);
            resume(mode, &mut operator, &acknowledged, held);
            serves_on(&acknowledged, 100);
            is_over.store(true, Ordering::SeqCst);
            let mut refused_in_all = 0;
            for (name, client) in clients.into_iter().enumerate() {
                let (count, refused) = client.join().expect("every length came in its turn");
                assert_eq!(length_at(&moving.new, name), count, "{mode}: what was acknowledged is there, and no more");
                assert_eq!(length_at(&moving.old, name), at_pause[name], "{mode}: the other got no more");
                refused_in_all += refused;
            }
            // One that was on its way when its node moved, of each client at most.
            assert!(refused_in_all <= CLIENTS as u64, "{mode}: {refused_in_all} were refused");
        });
    }
}
