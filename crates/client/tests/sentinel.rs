//! Servers that sentinels know, with real ones: a master that is killed, one that stands still, and sentinels that are gone or wrong.

use respool_client::ReconnectTerms;
use respool_client::{Client, Config, Outcome, Reply, Role, ServerError, cmd};
use respool_testkit::{Address, ClosedPort, RedisSentinel, RedisServer, wait_until};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Long enough for a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a master is silent before the sentinels give it up, in a test that wants them to.
const DOWN_AFTER_MS: u32 = 4_000;

/// The same where no test wants them to: longer than any machine stands still.
const NEVER_DOWN_MS: u32 = 600_000;

/// A master, its replica, and two sentinels that know both.
struct Group {
    master: RedisServer,
    replica: RedisServer,
    sentinels: Vec<RedisSentinel>,
}

impl Group {
    /// Its master is given up after so many milliseconds of silence.
    fn start(down_after_ms: u32) -> Self {
        let master = RedisServer::start().unwrap();
        let port = master.port().to_string();
        let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).unwrap();
        let down_after = Duration::from_millis(down_after_ms.into());
        let sentinel = |_| RedisSentinel::start(master.port(), 2, down_after, |port| format!("port {port}")).unwrap();
        let sentinels: Vec<_> = (0..2).map(sentinel).collect();
        let group = Self { master, replica, sentinels };
        wait_until("all know each other", PATIENCE, || {
            let mut knows = true;
            for port in group.sentinels.iter().map(RedisSentinel::port) {
                let mut client = respool_testkit::Client::connect(&Address::loopback(port))?;
                let replicas = client.ask("SENTINEL REPLICAS main")?;
                let others = client.ask("SENTINEL SENTINELS main")?;
                knows &= replicas.contains(&group.replica.port().to_string());
                knows &= replicas.contains("\r\nok\r\n") && others.contains("\r\nrunid\r\n");
            }
            Ok(knows)
        })
        .unwrap();
        group
    }

    fn places(&self) -> String {
        let places: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        places.join(",")
    }

    fn config(&self) -> Config {
        config(&format!("redis+sentinel://{}/main", self.places()))
    }
}

fn config(url: &str) -> Config {
    let quick =
        ReconnectTerms { backoff_min_us: 1000, backoff_max_us: 20_000, dials_per_second: 1000, dials_burst: 1000 };
    Config::from_url(url).unwrap().reconnect(quick).deadline(Some(PATIENCE)).connect_limit(Duration::from_secs(5))
}

fn server_port(client: &Client) -> String {
    let info: String = client.call(cmd("INFO").arg("server")).wait().unwrap();
    info.lines().find_map(|line| line.strip_prefix("tcp_port:")).unwrap().trim().to_owned()
}

#[test]
fn a_killed_master_loses_nothing_that_was_acknowledged() {
    let mut group = Group::start(DOWN_AFTER_MS);
    let client = Client::with_config(group.config());
    assert_eq!(server_port(&client), group.master.port().to_string());
    let new_port = format!("tcp_port:{}\r", group.replica.port());
    let (is_killed, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    // Before the end of the old master a write counts once the replica has it.
    let acknowledged = Mutex::new((0_u64, 0_u64));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut is_new = false;
            while !is_over.load(Ordering::Acquire) {
                let batch = [cmd("INCR").key("count"), cmd("WAIT").arg(1).arg(500), cmd("INFO").arg("server")];
                let ended: Result<Vec<Result<Reply, ServerError>>, _> = client.batch(batch).dedicated().wait();
                let written = match &ended {
                    Ok(replies) => match &replies[..] {
                        [Ok(Reply::Integer(_)), Ok(Reply::Integer(copies)), Ok(Reply::Bulk(info))] => {
                            Some((*copies, String::from_utf8_lossy(info).contains(&new_port)))
                        }
                        _ => None,
                    },
                    Err(error) => {
                        assert!(is_killed.load(Ordering::Acquire), "before the failover: {error}");
                        assert!(!is_new, "behind the failover: {error}");
                        None
                    }
                };
                let mut acknowledged = acknowledged.lock().unwrap();
                match written {
                    // The new master has no replica yet.
                    Some((_, true)) => {
                        is_new = true;
                        acknowledged.1 += 1;
                    }
                    Some((copies, false)) if copies > 0 => acknowledged.0 += 1,
                    _ => {}
                }
            }
        });
        let count = || *acknowledged.lock().unwrap();
        wait_until("some are written", PATIENCE, || Ok(count().0 >= 50)).unwrap();
        is_killed.store(true, Ordering::Release);
        group.master.kill().unwrap();
        wait_until("some are written again", PATIENCE, || Ok(count().1 >= 5 || writer.is_finished())).unwrap();
        is_over.store(true, Ordering::Release);
        writer.join().unwrap();
    });
    assert_eq!(server_port(&client), group.replica.port().to_string());
    let (before, behind) = *acknowledged.lock().unwrap();
    let found: u64 = client.call(cmd("GET").key("count")).wait().unwrap();
    assert!(found >= before + behind, "{found} of {before} and {behind}");
}

#[test]
fn a_master_that_stands_still_is_left_when_sentinels_say_so() {
    let group = Group::start(DOWN_AFTER_MS);
    let client = Client::with_config(group.config());
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    let copies: i64 = {
        let replies =
            client.batch([cmd("SET").key("k").arg("v"), cmd("WAIT").arg(1).arg(60_000)]).dedicated().wait().unwrap();
        match &replies[1] {
            Ok(Reply::Integer(copies)) => *copies,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(copies, 1);
    group.master.pause().unwrap();
    // Its sockets stay open and are silent: only the word of a sentinel ends the wait.
    let value: String = client.call(cmd("GET").key("k")).wait().unwrap();
    assert_eq!((&*value, server_port(&client)), ("v", group.replica.port().to_string()));
    group.master.resume().unwrap();
    // It comes back as a master for a moment, and no connection is made to it.
    client.call::<()>(cmd("SET").key("k").arg("w")).wait().unwrap();
    assert_eq!(server_port(&client), group.replica.port().to_string());
}

#[test]
fn replicas_are_read_from() {
    let group = Group::start(NEVER_DOWN_MS);
    let replica = Client::with_config(group.config().role(Role::Replica).unwrap());
    assert_eq!(server_port(&replica), group.replica.port().to_string());
    let error = replica.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap_err();
    assert_eq!((error.server().unwrap().code(), error.outcome()), ("READONLY", Outcome::Replied));
    let url = format!("redis+sentinel://{}/main?role=replica", group.places());
    assert_eq!(server_port(&Client::with_config(config(&url))), group.replica.port().to_string());
}

/// A sentinel that names the same server whatever is asked.
fn fake_sentinel(port: u16) -> u16 {
    fake_sentinel_with(port, &[])
}

/// What a sentinel says of a master of this epoch, as far as it is asked for.
fn state(epoch: u64) -> String {
    format!("*2\r\n$12\r\nconfig-epoch\r\n${}\r\n{epoch}\r\n", epoch.to_string().len())
}

/// As [`fake_sentinel`], with these replicas.
fn fake_sentinel_with(port: u16, replicas: &[u16]) -> u16 {
    let entry = |port: &u16| {
        format!("*4\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n${}\r\n{port}\r\n", port.to_string().len())
    };
    let replicas = format!("*{}\r\n{}", replicas.len(), replicas.iter().map(entry).collect::<String>());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let replicas = replicas.clone();
            std::thread::spawn(move || {
                let mut socket = socket.unwrap();
                let mut buffer = [0; 4096];
                while let Ok(bytes @ 1..) = socket.read(&mut buffer) {
                    let said = String::from_utf8_lossy(&buffer[..bytes]).into_owned();
                    let port = port.to_string();
                    let answer = match &said {
                        said if said.contains("PING") => "+PONG\r\n".to_owned(),
                        said if said.contains("GET-MASTER-ADDR") => {
                            format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len())
                        }
                        said if said.contains("SUBSCRIBE") => {
                            "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned()
                        }
                        said if said.contains("REPLICAS") => replicas.clone(),
                        _ => "*0\r\n".to_owned(),
                    };
                    if socket.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    own
}

#[test]
fn large_values_are_read_from_the_replica_of_small_ones() {
    let servers = [RedisServer::start().unwrap(), RedisServer::start().unwrap()];
    for server in &servers {
        let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
        let value = server.port().to_string().repeat(60_000);
        client.call::<()>(cmd("SET").key("big").arg(value.as_str())).wait().unwrap();
    }
    let sentinel = fake_sentinel_with(servers[0].port(), &[servers[0].port(), servers[1].port()]);
    // Which one is chosen is chance.
    for _ in 0..12 {
        let client = Client::with_config(config(&format!("redis+sentinel://127.0.0.1:{sentinel}/main?role=replica")));
        let own = server_port(&client);
        wait_until("a large value is read beside", PATIENCE, || {
            let value: String = client.call(cmd("GET").key("big")).wait().unwrap();
            assert!(value.starts_with(&own) && server_port(&client) == own);
            Ok(client.stats().large > 3)
        })
        .unwrap();
    }
}

#[test]
fn a_server_that_is_no_master_is_not_used() {
    let master = RedisServer::start().unwrap();
    let port = master.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).unwrap();
    let wrong = fake_sentinel(replica.port());
    let client = Client::with_config(config(&format!("redis+sentinel://127.0.0.1:{wrong}/main")).deadline(None));
    let error = client.call::<Reply>(cmd("GET").key("k")).wait().unwrap_err();
    assert!(error.to_string().contains("is no master"), "{error}");
    // It is promoted: the next attempt succeeds.
    replica.client().unwrap().ask("REPLICAOF NO ONE").unwrap();
    client.call::<Reply>(cmd("GET").key("k")).wait().unwrap();
}

#[test]
fn sentinels_that_are_gone_are_passed_over() {
    let server = RedisServer::start().unwrap();
    let closed = ClosedPort::take().unwrap();
    let good = fake_sentinel(server.port());
    let client = Client::with_config(config(&format!("redis+sentinel://{},127.0.0.1:{good}/main", closed.address())));
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    let none = config(&format!("redis+sentinel://{}/main", closed.address())).deadline(None);
    let error = Client::with_config(none).call::<Reply>(cmd("GET").key("k")).wait().unwrap_err();
    assert!(error.to_string().contains("no sentinel tells of master main"), "{error}");
}

#[test]
fn a_server_that_refuses_to_write_is_left() {
    let (old, new) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let port = new.port().to_string();
    let moving = fake_sentinel(old.port());
    let client = Client::with_config(config(&format!("redis+sentinel://127.0.0.1:{moving}/main")));
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    old.client().unwrap().ask(&format!("REPLICAOF 127.0.0.1 {port}")).unwrap();
    let error = client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap_err();
    assert_eq!(error.server().unwrap().code(), "READONLY");
    // The connection is given up, and the sentinel still names the same server, which is no master.
    let error = client.call::<()>(cmd("SET").key("k").arg("v")).deadline(Duration::from_secs(1)).wait().unwrap_err();
    assert_ne!(error.outcome(), Outcome::Replied, "{error}");
    old.client().unwrap().ask("REPLICAOF NO ONE").unwrap();
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    assert_eq!(client.stats().connections, 2);
}

/// A sentinel that a test steers: the port that it names, the connections that listen to it, and how often those have sent PING.
#[derive(Clone)]
struct Steered(Arc<(Mutex<Steer>, Condvar)>);

struct Steer {
    port: u16,
    epoch: u64,
    /// It answers nothing.
    is_down: bool,
    /// It reaches no other sentinel.
    is_cut_off: bool,
    /// The port that it names from the next subscription on.
    at_subscription: Option<u16>,
    holds_subscriptions: bool,
    listening: Vec<TcpStream>,
    pings: u32,
}

impl Steered {
    /// The sentinel, and its own port.
    fn start(port: u16) -> (Self, u16) {
        let listening = Vec::new();
        let steer = Steer {
            port,
            epoch: 0,
            is_down: false,
            is_cut_off: false,
            at_subscription: None,
            holds_subscriptions: false,
            listening,
            pings: 0,
        };
        let steered = Self(Arc::new((Mutex::new(steer), Condvar::new())));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let accepts = steered.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let serves = accepts.clone();
                std::thread::spawn(move || serves.serve(socket.unwrap()));
            }
        });
        (steered, own)
    }

    fn change(&self, change: impl FnOnce(&mut Steer)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn wait(&self, what: &str, mut is_so: impl FnMut(&mut Steer) -> bool) {
        let waited = self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), PATIENCE, |steer| !is_so(steer));
        assert!(!waited.unwrap().1.timed_out(), "{what}");
    }

    fn serve(&self, mut socket: TcpStream) {
        let mut buffer = [0; 4096];
        let mut listens = false;
        while let Ok(bytes @ 1..) = socket.read(&mut buffer) {
            let said = String::from_utf8_lossy(&buffer[..bytes]).into_owned();
            let mut answer = "*0\r\n".to_owned();
            if self.0.0.lock().unwrap().is_down {
                break;
            }
            if said.contains("PING") {
                answer = if listens { "*2\r\n$4\r\npong\r\n$0\r\n\r\n" } else { "+PONG\r\n" }.to_owned();
                self.change(|steer| steer.pings += u32::from(listens));
            } else if said.contains("GET-MASTER-ADDR") {
                let port = self.0.0.lock().unwrap().port.to_string();
                answer = format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len());
            } else if said.contains("CKQUORUM") {
                answer = match self.0.0.lock().unwrap().is_cut_off {
                    true => "-NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the majority\r\n",
                    false => "+OK 3 usable Sentinels. Quorum and failover authorization can be reached\r\n",
                }
                .to_owned();
            } else if said.contains("MASTER") {
                answer = state(self.0.0.lock().unwrap().epoch);
            } else if said.contains("SUBSCRIBE") {
                self.wait("it may subscribe", |steer| !steer.holds_subscriptions);
                answer = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned();
                listens = true;
                self.change(|steer| {
                    steer.port = steer.at_subscription.take().unwrap_or(steer.port);
                    steer.listening.push(socket.try_clone().unwrap());
                });
            }
            if socket.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        if listens {
            let own = socket.peer_addr().ok();
            self.change(|steer| steer.listening.retain(|other| other.peer_addr().ok() != own));
        }
    }

    /// Two more PINGs: between them the client has heard all that was told before.
    fn wait_until_heard(&self) {
        let pings = self.0.0.lock().unwrap().pings;
        self.wait("the client listens", |steer| steer.pings >= pings + 2);
    }
}

/// A way to a server on which the first ROLE waits: its port, what tells that ROLE is there, and what lets it pass.
fn slow_role(server: u16) -> (u16, Receiver<()>, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let ((tells, told), (lets, passes)) = (channel(), channel::<()>());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut from, mut to) = (socket.unwrap(), TcpStream::connect(("127.0.0.1", server)).unwrap());
            let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut back_from, &mut back_to);
                let _ = back_to.shutdown(Shutdown::Both);
            });
            let mut buffer = [0; 4096];
            while let Ok(bytes @ 1..) = from.read(&mut buffer) {
                if String::from_utf8_lossy(&buffer[..bytes]).contains("ROLE") {
                    let _ = tells.send(());
                    let _ = passes.recv();
                }
                if to.write_all(&buffer[..bytes]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        }
    });
    (own, told, lets)
}

fn two_servers() -> (RedisServer, RedisServer) {
    let (old, new) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    old.client().unwrap().ask("SET k old").unwrap();
    new.client().unwrap().ask("SET k new").unwrap();
    (old, new)
}

#[test]
fn a_switch_while_a_connection_is_made_is_heeded() {
    let (old, new) = two_servers();
    let (slow, told, lets) = slow_role(old.port());
    let (sentinel, port) = Steered::start(slow);
    let settings = config(&format!("redis+sentinel://127.0.0.1:{port}/main")).connect_limit(PATIENCE);
    let client = Client::with_config(settings);
    std::thread::scope(|scope| {
        let value = scope.spawn(|| client.call::<String>(cmd("GET").key("k")).wait());
        told.recv_timeout(PATIENCE).unwrap();
        sentinel.wait_until_heard();
        let text = format!("main 127.0.0.1 {slow} 127.0.0.1 {}", new.port());
        let push = format!("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n${}\r\n{text}\r\n", text.len());
        sentinel.change(|steer| {
            steer.port = new.port();
            steer.listening.iter_mut().for_each(|socket| socket.write_all(push.as_bytes()).unwrap());
        });
        sentinel.wait_until_heard();
        // The old master still says that it is one.
        lets.send(()).unwrap();
        assert_eq!(value.join().unwrap().unwrap(), "new");
    });
}

#[test]
fn a_switch_in_front_of_the_subscription_is_heeded() {
    let (old, new) = two_servers();
    let (sentinel, port) = Steered::start(old.port());
    sentinel.change(|steer| steer.holds_subscriptions = true);
    let client = Client::with_config(config(&format!("redis+sentinel://127.0.0.1:{port}/main")));
    let get = || client.call::<String>(cmd("GET").key("k")).wait().unwrap();
    assert_eq!(get(), "old");
    sentinel.change(|steer| {
        steer.at_subscription = Some(new.port());
        steer.holds_subscriptions = false;
    });
    wait_until("the new master is used", PATIENCE, || Ok(get() == "new")).unwrap();
}

#[test]
fn a_closed_client_listens_to_no_sentinel() {
    let (old, _new) = two_servers();
    let (sentinel, port) = Steered::start(old.port());
    let settings = config(&format!("redis+sentinel://127.0.0.1:{port}/main"));
    let clients = [Client::with_config(settings.clone()), Client::with_config(settings)];
    let get = |client: &Client| client.call::<String>(cmd("GET").key("k")).wait();
    clients.iter().for_each(|client| assert_eq!(get(client).unwrap(), "old"));
    sentinel.wait("it is listened to", |steer| steer.listening.len() == 1);
    clients[0].close();
    // Another client of the same settings still wants to hear.
    sentinel.wait_until_heard();
    assert_eq!(sentinel.0.0.lock().unwrap().listening.len(), 1);
    clients[1].close();
    sentinel.wait("it is not listened to", |steer| steer.listening.is_empty());
}

/// A sentinel that names this server, of this epoch.
fn of_epoch(server: &RedisServer, epoch: u64) -> (Steered, u16) {
    let (sentinel, port) = Steered::start(server.port());
    sentinel.change(|steer| steer.epoch = epoch);
    (sentinel, port)
}

#[test]
fn a_sentinel_that_is_behind_the_others_is_not_believed() {
    let (old, new) = two_servers();
    let (stale, stale_port) = of_epoch(&old, 7);
    let (current, current_port) = of_epoch(&new, 8);
    let (third, third_port) = of_epoch(&new, 8);
    let places = format!("127.0.0.1:{stale_port},127.0.0.1:{current_port},127.0.0.1:{third_port}");
    let client = Client::with_config(config(&format!("redis+sentinel://{places}/main")));
    let get = || client.call::<String>(cmd("GET").key("k")).wait().unwrap();
    // The one that is asked first is not followed, nor is it listened to while there are others.
    assert_eq!(get(), "new");
    let is_heard = |sentinel: &Steered| !sentinel.0.0.lock().unwrap().listening.is_empty();
    wait_until("another is listened to", PATIENCE, || Ok(is_heard(&current) || is_heard(&third))).unwrap();
    // Nor is it when the connection is made anew.
    for _ in 0..10 {
        new.client().unwrap().ask("CLIENT KILL TYPE normal SKIPME yes").unwrap();
        assert_eq!(get(), "new");
    }
    wait_until("the first is not listened to", PATIENCE, || Ok(!is_heard(&stale))).unwrap();
}

/// The others cannot be reached, and it cannot reach them either: of the failover it has not heard.
#[test]
fn a_sentinel_that_is_behind_and_cut_off_is_not_believed_alone() {
    let (old, new) = two_servers();
    let (stale, stale_port) = of_epoch(&old, 7);
    let (current, current_port) = of_epoch(&new, 8);
    stale.change(|steer| steer.is_cut_off = true);
    let places = format!("127.0.0.1:{current_port},127.0.0.1:{stale_port}");
    let client = Client::with_config(config(&format!("redis+sentinel://{places}/main")));
    let get = |limit| client.call::<String>(cmd("GET").key("k")).deadline(limit).wait();
    assert_eq!(get(PATIENCE).unwrap(), "new");
    current.change(|steer| steer.is_down = true);
    for _ in 0..3 {
        new.client().unwrap().ask("CLIENT KILL TYPE normal SKIPME yes").unwrap();
        let reply = get(Duration::from_millis(700));
        assert!(reply.as_ref().map_or(true, |value| value == "new"), "{reply:?}");
    }
    current.change(|steer| steer.is_down = false);
    assert_eq!(get(PATIENCE).unwrap(), "new");
}

#[test]
fn sentinels_that_were_set_up_anew_are_believed() {
    let (old, new) = two_servers();
    let (sentinel, port) = of_epoch(&old, 7);
    let client = Client::with_config(config(&format!("redis+sentinel://127.0.0.1:{port}/main")));
    let get = || client.call::<String>(cmd("GET").key("k")).wait().unwrap();
    assert_eq!(get(), "old");
    sentinel.wait_until_heard();
    sentinel.change(|steer| (steer.epoch, steer.port) = (0, new.port()));
    old.client().unwrap().ask("CLIENT KILL TYPE normal SKIPME yes").unwrap();
    wait_until("the new master is used", PATIENCE, || Ok(get() == "new")).unwrap();
    sentinel.wait_until_heard();
}
