//! Channels under routes, end to end: real servers, a real process and its settings file.

use std::path::Path;
use std::time::Duration;

use respool_testkit::{Act, Client, FakeBackend, PATIENCE, RedisServer, Respool, TempDir, wait_until};

/// The servers `main-0`, `main-1`, `other-0` and `other-1`, two for each pool.
struct Served {
    servers: [RedisServer; 4],
    directory: TempDir,
    respool: Respool,
}

const USERS: &str =
    "[users.seven]\nrules = \"on nopass ~* &* +@all\"\n[users.eight]\nrules = \"on nopass ~* &* +@all\"\n";

impl Served {
    fn with(workers: &str, routes: &str) -> Self {
        let servers = [(); 4].map(|()| RedisServer::start_with(&[]).expect("a redis-server"));
        let directory = TempDir::new().expect("a directory");
        let file = directory.join("respool.toml");
        write(&file, &servers, routes);
        let file = file.to_str().expect("a path in UTF-8");
        let arguments = ["--workers", workers, "--config", file];
        let respool = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments).expect("it serves");
        Self { servers, directory, respool }
    }

    fn reload(&self, routes: &str) {
        write(&self.directory.join("respool.toml"), &self.servers, routes);
        assert!(ask(&mut self.client(), "PROXY RELOAD").starts_with('+'));
    }

    fn client(&self) -> Client {
        let client = self.respool.client().expect("it accepts");
        client.set_timeout(PATIENCE).expect("it can be set");
        client
    }

    fn as_user(&self, user: &str) -> Client {
        let mut client = self.client();
        assert_eq!(ask(&mut client, &format!("AUTH {user} x")), "+OK\r\n");
        client
    }

    /// What the nodes of a pool are subscribed to, by the words that count it.
    fn held(&self, pool: usize, question: &str) -> Vec<String> {
        let own = self.servers[pool * 2..pool * 2 + 2].iter();
        own.map(|server| ask(&mut server.client().expect("it accepts"), question)).collect()
    }
}

fn write(file: &Path, servers: &[RedisServer; 4], routes: &str) {
    let pool = |name: &str, servers: &[RedisServer]| {
        let nodes: Vec<String> =
            servers.iter().enumerate().map(|(n, node)| format!("\"{} name={name}-{n}\"", node.tcp())).collect();
        format!("nodes = [{}]\n", nodes.join(", "))
    };
    let text = format!(
        "{}admin_commands = \"allow\"\nreconnect_min = \"1ms\"\nreconnect_max = \"10ms\"\n{USERS}[pools.other]\n{}{routes}",
        pool("main", &servers[..2]),
        pool("other", &servers[2..])
    );
    std::fs::write(file, text).expect("the file can be written");
}

fn ask(client: &mut Client, words: &str) -> String {
    client.ask(words).expect("a reply")
}

/// The next thing that a client is told, as words.
fn told(client: &mut Client) -> String {
    let reply = client.reply().expect("something");
    let text = String::from_utf8_lossy(&reply).into_owned();
    text.lines().skip(1).filter(|line| !line.starts_with('$')).collect::<Vec<_>>().join(" ")
}

/// The bulk strings of an array.
fn words(reply: &str) -> Vec<String> {
    let is_word = |line: &&str| !line.starts_with(['*', '$', ':', '>', '~']);
    reply.lines().filter(is_word).map(str::to_owned).collect()
}

fn subscribe(client: &mut Client, words: &str) {
    client.send_command(&words.split(' ').collect::<Vec<_>>()).expect("it is sent");
    for name in words.split(' ').skip(1) {
        let acknowledged = told(client);
        assert!(acknowledged.contains(&format!(" {name} :")), "{words}: {acknowledged}");
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    respool_testkit::wait_until("it", PATIENCE, || Ok(is_so())).expect("in the end");
}

const PREFIXES: &str = "[[routes]]\nname = \"news\"\nprefix = \"news:\"\nto = \"other\"\nstrip = true\nadd = \"n:\"\n";
const TENANTS: &str = "[[routes]]\nusers = \"seven\"\nto = \"other\"\nadd = \"t7:\"\n\
                       [[routes]]\nusers = \"eight\"\nto = \"other\"\nadd = \"t8:\"\n";

#[test]
fn a_channel_is_where_its_prefix_leads_by_its_name_there() {
    let served = Served::with("2", PREFIXES);
    let (mut subscriber, mut publisher) = (served.client(), served.client());
    subscribe(&mut subscriber, "SUBSCRIBE news:1 news:2 plain");
    let (mut second, mut third) = (served.client(), served.client());
    subscribe(&mut second, "SUBSCRIBE news:1");
    subscribe(&mut third, "SSUBSCRIBE news:1");
    let names = |pool: usize, question: &str| {
        let mut names: Vec<String> = served.held(pool, question).iter().flat_map(|held| words(held)).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(0, "PUBSUB CHANNELS"), ["plain"]);
    assert_eq!(names(1, "PUBSUB CHANNELS"), ["n:1", "n:2"]);
    assert_eq!(names(1, "PUBSUB SHARDCHANNELS"), ["n:1"]);
    assert_eq!(ask(&mut publisher, "PUBLISH news:1 hello"), ":2\r\n", "clients, not connections");
    assert_eq!(ask(&mut publisher, "SPUBLISH news:1 shard"), ":1\r\n");
    assert_eq!(ask(&mut publisher, "PUBLISH plain hello"), ":1\r\n");
    for client in [&mut subscriber, &mut second] {
        assert_eq!(told(client), "message news:1 hello");
    }
    assert_eq!(told(&mut subscriber), "message plain hello");
    assert_eq!(told(&mut third), "smessage news:1 shard");
    // A publisher at the node is heard as well.
    let node = served.servers[2..].iter().find(|node| {
        ask(&mut node.client().expect("it accepts"), "PUBSUB NUMSUB n:1").contains("\r\n:1\r\n")
            || ask(&mut node.client().expect("it accepts"), "PUBSUB NUMSUB n:1").contains("\r\n:2\r\n")
    });
    ask(&mut node.expect("one has it").client().expect("it accepts"), "PUBLISH n:1 direct");
    assert_eq!([told(&mut subscriber), told(&mut second)], ["message news:1 direct", "message news:1 direct"]);
    // In a transaction it goes the same way.
    assert_eq!(ask(&mut publisher, "MULTI"), "+OK\r\n");
    assert_eq!(ask(&mut publisher, "SET k v"), "+QUEUED\r\n");
    assert_eq!(ask(&mut publisher, "PUBLISH news:2 queued"), "+QUEUED\r\n");
    assert_eq!(ask(&mut publisher, "EXEC"), "*2\r\n+OK\r\n:1\r\n");
    assert_eq!(told(&mut subscriber), "message news:2 queued");
    // Names are those that clients use.
    let mut channels = words(&ask(&mut publisher, "PUBSUB CHANNELS"));
    channels.sort_unstable();
    assert_eq!(channels, ["news:1", "news:2", "plain"]);
    assert_eq!(words(&ask(&mut publisher, "PUBSUB CHANNELS news*")).len(), 2);
    assert_eq!(words(&ask(&mut publisher, "PUBSUB SHARDCHANNELS")), ["news:1"]);
    assert_eq!(ask(&mut publisher, "PUBSUB NUMSUB news:1 n:1"), "*4\r\n$6\r\nnews:1\r\n:2\r\n$3\r\nn:1\r\n:0\r\n");
    assert_eq!(ask(&mut publisher, "PUBSUB SHARDNUMSUB news:1"), "*2\r\n$6\r\nnews:1\r\n:1\r\n");
    let explained = ask(&mut publisher, "PROXY EXPLAIN SUBSCRIBE news:1 plain");
    for part in ["$8\r\nchannels\r\n*2\r\n", "\r\nn:1\r\n", "\r\nother\r\n", "\r\nother-", "\r\nmain-"] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let explained = ask(&mut publisher, "PROXY EXPLAIN PUBLISH news:1 x");
    assert!(explained.contains("\r\none\r\n") && explained.contains("\r\nn:1\r\n"), "{explained}");
    assert!(ask(&mut publisher, "PROXY SHOW POOLS").contains("subscriptions"));
    // What is given up is given up there.
    for name in ["news:1", "news:2", "plain"] {
        subscribe(&mut subscriber, &format!("UNSUBSCRIBE {name}"));
    }
    subscribe(&mut second, "UNSUBSCRIBE news:1");
    subscribe(&mut third, "SUNSUBSCRIBE news:1");
    until(|| names(1, "PUBSUB CHANNELS").is_empty() && names(1, "PUBSUB SHARDCHANNELS").is_empty());
    assert_eq!(ask(&mut publisher, "PUBLISH news:1 hello"), ":0\r\n");
}

#[test]
fn a_pattern_hears_each_message_once_wherever_its_channel_is() {
    // Channels of `main` under two names at nodes, and of another pool: "*" has to be asked for in three ways.
    let routes = "[[routes]]\nprefix = \"a:\"\nto = \"main\"\nadd = \"x:\"\n";
    let served = Served::with("2", &[PREFIXES, routes].concat());
    let (mut subscriber, mut publisher) = (served.client(), served.client());
    let (mut all, mut news) = (served.client(), served.client());
    subscribe(&mut all, "PSUBSCRIBE *");
    subscribe(&mut news, "PSUBSCRIBE news:[a-c]*");
    subscribe(&mut subscriber, "PSUBSCRIBE a:? news:z*");
    for (channel, receivers) in [("a:1", 2), ("news:b1", 2), ("plain", 1), ("news:zz", 2), ("a:12", 1)] {
        assert_eq!(ask(&mut publisher, &format!("PUBLISH {channel} m")), format!(":{receivers}\r\n"), "{channel}");
        assert_eq!(told(&mut all), format!("pmessage * {channel} m"));
    }
    assert_eq!(told(&mut news), "pmessage news:[a-c]* news:b1 m");
    assert_eq!(told(&mut subscriber), "pmessage a:? a:1 m");
    assert_eq!(told(&mut subscriber), "pmessage news:z* news:zz m");
    assert_eq!(ask(&mut publisher, "PUBSUB NUMPAT"), ":4\r\n");
    // What nodes say of their own keys comes from the nodes of all pools.
    for server in &served.servers {
        ask(&mut server.client().expect("it accepts"), "CONFIG SET notify-keyspace-events KEA");
    }
    let mut keys = served.client();
    subscribe(&mut keys, "SUBSCRIBE __keyevent@0__:set");
    subscribe(&mut keys, "PSUBSCRIBE __keyspace@0__:n*");
    assert_eq!(ask(&mut publisher, "SET k v"), "+OK\r\n");
    assert_eq!(told(&mut keys), "message __keyevent@0__:set k");
    assert_eq!(ask(&mut publisher, "SET news:k v"), "+OK\r\n");
    let mut said = [told(&mut keys), told(&mut keys)];
    said.sort_unstable();
    assert_eq!(said, ["message __keyevent@0__:set n:k", "pmessage __keyspace@0__:n* __keyspace@0__:n:k set"]);
}

#[test]
fn users_hear_what_is_said_to_them_alone() {
    let served = Served::with("2", TENANTS);
    let [mut seven, mut eight] = ["seven", "eight"].map(|user| served.as_user(user));
    let [mut seventh, mut eighth] = ["seven", "eight"].map(|user| served.as_user(user));
    assert!(ask(&mut seven, "HELLO 3").starts_with("%7"), "in RESP3 it may do more than listen");
    for client in [&mut seven, &mut eight] {
        subscribe(client, "SUBSCRIBE c");
        subscribe(client, "PSUBSCRIBE *");
    }
    let mut plain = served.client();
    subscribe(&mut plain, "SUBSCRIBE c t7:c");
    assert_eq!(ask(&mut seventh, "PUBLISH c for-seven"), ":2\r\n");
    assert_eq!(ask(&mut eighth, "PUBLISH c for-eight"), ":2\r\n");
    let mut both = [told(&mut seven), told(&mut seven)];
    both.sort_unstable();
    assert_eq!(both, ["message c for-seven", "pmessage * c for-seven"]);
    let mut both = [told(&mut eight), told(&mut eight)];
    both.sort_unstable();
    assert_eq!(both, ["message c for-eight", "pmessage * c for-eight"]);
    assert_eq!(words(&ask(&mut seventh, "PUBSUB CHANNELS")), ["c"]);
    assert_eq!(ask(&mut seventh, "PUBSUB NUMSUB c"), "*2\r\n$1\r\nc\r\n:1\r\n");
    // A client that becomes another user hears as that from then on, and gives up what it has by its name.
    assert_eq!(ask(&mut seven, "AUTH eight x"), "+OK\r\n");
    subscribe(&mut seven, "SUBSCRIBE d");
    assert_eq!(ask(&mut eighth, "PUBLISH d now-eight"), ":2\r\n");
    assert_eq!(told(&mut seven), "message d now-eight");
    subscribe(&mut seven, "UNSUBSCRIBE c");
    assert_eq!(ask(&mut seventh, "PUBLISH c again"), ":1\r\n", "the pattern is still there");
    assert_eq!(told(&mut seven), "pmessage * c again");
    // Rights are those to the names that clients use.
    let mut admin = served.client();
    assert_eq!(ask(&mut admin, "ACL SETUSER eight resetchannels &c"), "+OK\r\n");
    assert!(ask(&mut eighth, "PUBLISH d no").starts_with("-NOPERM"));
    // Who heard too much is disconnected, and then nodes are told of it.
    until(|| ask(&mut eighth, "PUBLISH c yes") == ":0\r\n");
}

#[test]
fn databases_and_commands_lead_channels_too() {
    let routes = "[[routes]]\ndatabases = 3\ncommands = \"@pubsub\"\nto = \"other\"\n";
    let served = Served::with("1", routes);
    let (mut here, mut there) = (served.client(), served.client());
    assert_eq!(ask(&mut there, "SELECT 3"), "+OK\r\n");
    subscribe(&mut here, "SUBSCRIBE c");
    subscribe(&mut there, "SUBSCRIBE c");
    let mut publisher = served.client();
    assert_eq!(ask(&mut publisher, "PUBLISH c here"), ":1\r\n");
    assert_eq!(ask(&mut publisher, "SELECT 3"), "+OK\r\n");
    assert_eq!(ask(&mut publisher, "PUBLISH c there"), ":1\r\n");
    assert_eq!([told(&mut here), told(&mut there)], ["message c here", "message c there"]);
    assert_eq!(ask(&mut publisher, "SET k v"), "+OK\r\n");
    // Keys of that database are no business of the route.
    let held = served.held(0, "INFO keyspace").concat();
    assert!(held.contains("db3"), "{held}");
}

/// However many clients subscribe, and by whatever names, a node has each channel once for every worker.
#[test]
fn a_node_has_one_subscription_however_many_clients_have_it() {
    let served = Served::with("1", "[[routes]]\nprefix = [\"a:\", \"b:\"]\nto = \"other\"\nstrip = true\n");
    let channels: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let mut clients: Vec<Client> = (0..20).map(|_| served.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let prefix = ["a:", "b:"][number % 2];
        let named: Vec<String> = channels.iter().map(|channel| format!("{prefix}{channel}")).collect();
        subscribe(client, &format!("SUBSCRIBE {}", named.join(" ")));
    }
    let held = served.held(1, "PUBSUB CHANNELS");
    assert_eq!(held.iter().map(|held| words(held).len()).sum::<usize>(), 50);
    for node in &served.servers[2..] {
        let clients = ask(&mut node.client().expect("it accepts"), "CLIENT LIST TYPE pubsub");
        assert_eq!(clients.matches("id=").count(), 1, "{clients}");
    }
    let mut publisher = served.client();
    for name in ["a:7", "b:7"] {
        assert_eq!(ask(&mut publisher, &format!("PUBLISH {name} hello")), ":20\r\n");
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(told(client), format!("message {}7 hello", ["a:", "b:"][number % 2]));
        }
    }
    // Half of them leave: the others lose nothing.
    for client in clients.iter_mut().step_by(2) {
        client.send_command(&["UNSUBSCRIBE"]).expect("it is sent");
        for _ in &channels {
            told(client);
        }
    }
    assert_eq!(ask(&mut publisher, "PUBLISH a:7 hello"), ":10\r\n");
}

/// Nodes come back, and routes change: no client has to subscribe again.
#[test]
fn subscriptions_are_there_again_wherever_routes_lead_them_now() {
    let mut served = Served::with("2", PREFIXES);
    let mut subscriber = served.client();
    subscribe(&mut subscriber, "SUBSCRIBE news:1 other:1");
    subscribe(&mut subscriber, "PSUBSCRIBE news:p*");
    subscriber.set_timeout(Duration::from_millis(300)).expect("it can be set");
    let mut publisher = served.client();
    let mut hears = |channels: &[(&str, &str)], publisher: &mut Client| {
        for (channel, by) in channels {
            // What is published while a subscription moves may be missed, so it is said again until it is heard.
            until(|| {
                ask(publisher, &format!("PUBLISH {channel} hello"));
                let wanted = format!("\r\n{channel}\r\n");
                subscriber.reply().is_ok_and(|heard| {
                    let heard = String::from_utf8_lossy(&heard).into_owned();
                    heard.contains(&wanted) && heard.contains(by)
                })
            });
        }
    };
    let all = [("news:1", "message"), ("other:1", "message"), ("news:p1", "pmessage")];
    hears(&all, &mut publisher);
    for _ in 0..5 {
        for server in &mut served.servers[2..] {
            server.restart().expect("it comes back");
        }
        hears(&all, &mut publisher);
    }
    let names = |served: &Served, pool: usize| {
        let held = [served.held(pool, "PUBSUB CHANNELS").concat(), served.held(pool, "PUBSUB NUMPAT").concat()];
        held.concat()
    };
    // The same pools by other routes, none at all, and users' routes.
    served.reload("[[routes]]\nprefix = \"other:\"\nto = \"other\"\nadd = \"o:\"\n");
    hears(&all, &mut publisher);
    until(|| names(&served, 1).contains("o:other:1") && !names(&served, 1).contains("n:1"));
    served.reload("");
    hears(&all, &mut publisher);
    until(|| names(&served, 0).contains("news:1") && !names(&served, 1).contains("other:1"));
    served.reload(PREFIXES);
    hears(&all, &mut publisher);
    until(|| names(&served, 1).contains("n:1") && !names(&served, 0).contains("news:1"));
}

/// The connection for subscriptions is not ready yet: that says nothing of the node.
#[test]
fn a_reload_is_the_reason_told_to_a_subscription_that_it_ends() {
    let silent = || {
        FakeBackend::start(|request| match (&*request.command(), request.key()) {
            ("HELLO", b"3") => Act::Silence,
            _ => Act::Usual,
        })
        .expect("a node")
    };
    let nodes = [silent(), silent()];
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("respool.toml");
    let write = |nodes: &[FakeBackend]| {
        let nodes: Vec<String> = nodes.iter().map(|node| format!("\"{}\"", node.address())).collect();
        let settings = "admin_commands = \"allow\"\nconnect_timeout = \"60s\"\nrequest_timeout = \"60s\"\nnode_silence_timeout = \"2m\"\n";
        std::fs::write(&file, format!("nodes = [{}]\n{settings}", nodes.join(", "))).expect("it can be written");
    };
    write(&nodes);
    let arguments = ["--config", file.to_str().expect("a path in UTF-8")];
    let respool = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments).expect("it serves");
    let mut client = respool.client().expect("it accepts");
    let mut operator = respool.client().expect("it accepts");
    client.send_command(&["SUBSCRIBE", "news"]).expect("it is sent");
    wait_until("the connection is made", PATIENCE, || Ok(nodes.iter().any(|node| node.connections() > 1)))
        .expect("it is");
    write(&nodes[..1]);
    operator.ask("PROXY RELOAD").expect("it is told");
    assert_eq!(
        String::from_utf8_lossy(&client.reply().expect("a reply")),
        "-ERR the nodes were changed meanwhile; try again\r\n"
    );
}
