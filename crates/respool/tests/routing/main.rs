//! Routes and the console, end to end: real servers, a real process and its settings file.

mod tracking;

use std::path::Path;
use std::time::Duration;

use respool_testkit::{Act, Client, FakeBackend, Gate, PATIENCE, RedisServer, Respool, TempDir};

fn server() -> RedisServer {
    RedisServer::start_with(&["--enable-debug-command", "yes"]).expect("a redis-server")
}

/// Serves with two servers of its own and whatever else the settings file says.
struct Served {
    own: [RedisServer; 2],
    directory: TempDir,
    respool: Respool,
}

impl Served {
    fn with(settings: &str) -> Self {
        let own = [server(), server()];
        let directory = TempDir::new().expect("a directory");
        let file = directory.join("respool.toml");
        let respool = {
            write(&file, &own, settings);
            let file = file.to_str().expect("a path in UTF-8");
            Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &["--config", file]).expect("it serves")
        };
        Self { own, directory, respool }
    }

    fn client(&self) -> Client {
        self.respool.client().expect("it accepts")
    }
}

fn write(file: &Path, own: &[RedisServer], settings: &str) {
    let nodes: Vec<String> =
        own.iter().enumerate().map(|(n, node)| format!("\"{} name=own-{n}\"", node.tcp())).collect();
    std::fs::write(file, format!("nodes = [{}]\nadmin_commands = \"allow\"\n{settings}", nodes.join(", ")))
        .expect("the file can be written");
}

fn pool(name: &str, nodes: &[&RedisServer]) -> String {
    let nodes: Vec<String> =
        nodes.iter().enumerate().map(|(n, node)| format!("\"{} name={name}-{n}\"", node.tcp())).collect();
    format!("[pools.{name}]\nnodes = [{}]\n", nodes.join(", "))
}

fn ask(client: &mut Client, words: &str) -> String {
    client.ask(words).expect("a reply")
}

/// Waits until something is so.
fn until(mut is_so: impl FnMut() -> bool) -> std::io::Result<()> {
    respool_testkit::wait_until("it", PATIENCE, || Ok(is_so()))
}

fn held_by(server: &RedisServer) -> String {
    ask(&mut server.client().expect("it accepts"), "KEYS *")
}

#[test]
fn keys_go_where_their_prefix_says_under_the_name_it_gives() {
    let (a, b) = (server(), server());
    let routes = "[[routes]]\nname = \"a\"\nprefix = \"a:\"\nto = \"a\"\n\
                  [[routes]]\nname = \"b\"\nprefix = [\"b:\", \"a:b:\"]\nto = \"b\"\nstrip = true\nadd = \"n:\"\n";
    let served = Served::with(&[pool("a", &[&a]), pool("b", &[&b]), routes.to_owned()].concat());
    let mut client = served.client();
    assert_eq!(ask(&mut client, "MSET a:1 1 b:1 2 a:b:1 3 k 4"), "+OK\r\n");
    assert_eq!(ask(&mut client, "MGET k b:1 a:1"), "*3\r\n$1\r\n4\r\n$1\r\n3\r\n$1\r\n1\r\n");
    assert_eq!(held_by(&a), "*1\r\n$3\r\na:1\r\n");
    assert_eq!(held_by(&b), "*1\r\n$3\r\nn:1\r\n");
    // Both names of the route mean the same key there: the last value of the MSET stays.
    assert_eq!(ask(&mut client, "GET a:b:1"), ask(&mut client, "GET b:1"));
    assert_eq!(ask(&mut client, "EXISTS a:1 b:1 k nothing"), ":3\r\n");
    assert!(ask(&mut client, "RENAME a:1 b:2").starts_with("-CROSSSLOT "));
    assert!(ask(&mut client, "LMPOP 1 b:1 LEFT").starts_with("-ERR 'lmpop' is not supported under route 'b'"));
    assert_eq!(ask(&mut client, "DEL a:1 b:1 k"), ":3\r\n");
    assert_eq!([held_by(&a), held_by(&b)], ["*0\r\n", "*0\r\n"]);

    let explained = ask(&mut client, "PROXY EXPLAIN MGET a:1 b:1");
    for part in ["split", "\r\na-0\r\n", "\r\nb-0\r\n", "\r\nn:1\r\n", "shared", "allowed"] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    assert!(ask(&mut client, "PROXY EXPLAIN RENAME a:1 b:1").contains("CROSSSLOT"));
    assert!(ask(&mut client, "PROXY EXPLAIN NOPE").starts_with("-ERR unknown command"));
    let routes = ask(&mut client, "PROXY SHOW ROUTES");
    assert!(routes.contains("prefix=a:b:") && routes.contains("default"), "{routes}");
}

#[test]
fn databases_and_commands_choose_pools_reads_go_to_replicas() {
    let (other, replica) = (server(), server());
    let mut replica_client = replica.client().expect("it accepts");
    assert_eq!(ask(&mut replica_client, &format!("REPLICAOF 127.0.0.1 {}", other.port())), "+OK\r\n");
    until(|| ask(&mut replica_client, "INFO replication").contains("master_link_status:up"))
        .expect("the replica is in step");
    let pools = format!(
        "[pools.p]\nnodes = [\"{} name=first\", \"{} name=copy replica_of=first\"]\n\
         [[routes]]\ndatabases = 3\nto = \"p\"\nreads = \"replica\"\n\
         [[routes]]\ncommands = [\"@hyperloglog\", \"geoadd\"]\nto = \"p\"\n",
        other.tcp(),
        replica.tcp()
    );
    let served = Served::with(&pools);
    let mut client = served.client();
    assert_eq!(ask(&mut client, "PFADD h x"), ":1\r\n");
    assert_eq!(ask(&mut client, "GEOADD g 1 1 x"), ":1\r\n");
    assert_eq!(ask(&mut client, "SET k v"), "+OK\r\n");
    assert_eq!(ask(&mut other.client().expect("it accepts"), "DBSIZE"), ":2\r\n");
    assert_eq!(ask(&mut client, "SELECT 3"), "+OK\r\n");
    assert_eq!(ask(&mut client, "SET there v"), "+OK\r\n");
    until(|| ask(&mut client, "GET there") == "$1\r\nv\r\n").expect("the replica has it");
    assert!(ask(&mut client, "PROXY EXPLAIN GET there").contains("\r\ncopy\r\n"));
    assert!(ask(&mut client, "INFO PROXY").contains("replica_reads:"), "it is counted");
    let nodes = ask(&mut client, "PROXY SHOW NODES");
    assert!(nodes.contains("replica of first"), "{nodes}");
}

#[test]
fn the_next_node_takes_what_a_dead_one_cannot() {
    let mut served = Served::with("dead_node = \"next\"\nreconnect_min = \"1ms\"\nreconnect_max = \"10ms\"\n");
    let mut client = served.client();
    let keys: Vec<String> = (0..50).map(|n| format!("key:{n}")).collect();
    for key in &keys {
        assert_eq!(ask(&mut client, &format!("SET {key} v")), "+OK\r\n");
    }
    served.own[0].kill().expect("it dies");
    // The first request may hear of the loss; from then on the other node answers for all keys.
    until(|| keys.iter().all(|key| ask(&mut client, &format!("SET {key} w")) == "+OK\r\n"))
        .expect("the other node takes over");
    assert_eq!(ask(&mut served.own[1].client().expect("it accepts"), "DBSIZE"), ":50\r\n");
    assert!(ask(&mut client, "PROXY SHOW NODES").contains("\r\ndown\r\n"));
    served.own[0].restart().expect("it comes back");
    until(|| !ask(&mut client, "PROXY SHOW NODES").contains("\r\ndown\r\n")).expect("it is noticed");
    for key in &keys {
        assert_eq!(ask(&mut client, &format!("SET {key} x")), "+OK\r\n");
    }
    assert_ne!(held_by(&served.own[0]), "*0\r\n", "its keys are its own again");
    drop(served.directory);
}

#[test]
fn the_console_shows_clients_pools_and_memory_in_both_protocols() {
    let served = Served::with("workers = 2\n");
    let mut clients: Vec<Client> = (0..8).map(|_| served.client()).collect();
    for client in &mut clients {
        assert_eq!(ask(client, "CLIENT SETNAME someone"), "+OK\r\n");
    }
    let mut client = served.client();
    for (what, part) in [("CLIENTS", "someone"), ("POOLS", "main"), ("MEM", "process_bytes"), ("NODES", "own-1")] {
        let shown = ask(&mut client, &format!("PROXY SHOW {what}"));
        assert!(shown.contains(part), "{what}: {shown}");
    }
    assert_eq!(ask(&mut client, "PROXY SHOW CLIENTS").matches("someone").count(), 8, "of every worker");
    assert!(ask(&mut client, "PROXY SHOW NONSENSE").starts_with("-ERR there is nothing of that name"));
    assert!(ask(&mut client, "PROXY SHOW").starts_with("-ERR wrong number of arguments"));
    assert!(ask(&mut client, "PROXY HELP").contains("EXPLAIN"));
    assert_eq!(ask(&mut client, "PROXY KILL 999999"), ":0\r\n");
    let id = ask(&mut clients[0], "CLIENT ID").trim_start_matches(':').trim().to_owned();
    assert_eq!(ask(&mut client, &format!("PROXY KILL {id}")), ":1\r\n");
    assert!(clients[0].ask("PING").is_err(), "it was disconnected");
    ask(&mut client, "HELLO 3");
    assert!(ask(&mut client, "PROXY SHOW POOLS").starts_with("*1\r\n%"), "maps in RESP3");
}

/// The key of each server that holds it, as its clients see it.
fn count(client: &mut Client, keys: &[String]) -> usize {
    keys.iter().filter(|key| ask(client, &format!("GET {key}")).contains('v')).count()
}

#[test]
fn a_reload_of_nodes_and_routes_drops_no_client() {
    let mut served = Served::with("");
    let file = served.directory.join("respool.toml");
    let mut clients: Vec<Client> = (0..4).map(|_| served.client()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        assert_eq!(ask(client, &format!("SET before:{n} v")), "+OK\r\n");
    }
    // One node more, and one prefix to a pool of its own.
    let (third, of_pool) = (server(), server());
    let routes = format!("{}[[routes]]\nprefix = \"p:\"\nto = \"p\"\n", pool("p", &[&of_pool]));
    let nodes: Vec<String> = [&served.own[0], &served.own[1], &third]
        .iter()
        .enumerate()
        .map(|(n, node)| format!("\"{} name=own-{n}\"", node.tcp()))
        .collect();
    std::fs::write(&file, format!("nodes = [{}]\nadmin_commands = \"allow\"\n{routes}", nodes.join(", ")))
        .expect("it can be written");
    assert!(ask(&mut clients[0], "PROXY RELOAD").starts_with("+The settings are being read again"));
    // Every worker takes it over in its own time.
    for client in &mut clients {
        until(|| ask(client, "PROXY EXPLAIN GET p:k").contains("p-0")).expect("it is taken over");
    }
    let keys: Vec<String> = (0..100).map(|n| format!("key:{n}")).collect();
    for key in &keys {
        assert_eq!(ask(&mut clients[1], &format!("SET {key} v")), "+OK\r\n");
        assert_eq!(ask(&mut clients[1], &format!("SET p:{key} v")), "+OK\r\n");
    }
    assert_ne!(held_by(&third), "*0\r\n");
    assert_eq!(ask(&mut of_pool.client().expect("it accepts"), "DBSIZE"), ":100\r\n");
    assert_eq!(count(&mut clients[2], &keys), 100);

    // The node is gone again, under the eyes of clients that ask on.
    write(&file, &served.own, "");
    served.respool.process().signal(rustix::process::Signal::HUP).expect("it is there");
    for client in &mut clients {
        until(|| !ask(client, "PROXY EXPLAIN GET p:k").contains("p-0")).expect("it is taken over");
    }
    for client in &mut clients {
        for key in &keys {
            assert_eq!(ask(client, &format!("SET {key} w")), "+OK\r\n");
        }
    }
    let mut third = third.client().expect("it accepts");
    until(|| ask(&mut third, "INFO clients").contains("connected_clients:1\r\n")).expect("it has no client");
}

/// The node that forgot the script is in another place by the time it says so.
#[test]
fn a_forgotten_script_returns_wherever_its_node_is_now() {
    let gate = Gate::new();
    let held = gate.clone();
    let node = FakeBackend::start(move |request| match &*request.command() {
        "EVALSHA" => {
            held.pass();
            Act::Bytes(b"-NOSCRIPT No matching script. Please use EVAL.\r\n".to_vec())
        }
        "EVAL" => Act::Bytes(b":1\r\n".to_vec()),
        _ => Act::Usual,
    })
    .expect("a node");
    let other = FakeBackend::start(|_| Act::Usual).expect("a node");
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("respool.toml");
    let write = |nodes: &[(&str, &FakeBackend)]| {
        let nodes: Vec<String> =
            nodes.iter().map(|(name, node)| format!("\"{} name={name}\"", node.address())).collect();
        let settings = "admin_commands = \"allow\"\nworkers = 1\n";
        std::fs::write(&file, format!("nodes = [{}]\n{settings}", nodes.join(", "))).expect("it can be written");
    };
    write(&[("other", &other), ("this", &node)]);
    let arguments = ["--config", file.to_str().expect("a path in UTF-8")];
    let respool = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments).expect("it serves");
    let mut client = respool.client().expect("it accepts");
    let mut operator = respool.client().expect("it accepts");
    let places = |client: &mut Client, key: &str| ask(client, &format!("PROXY EXPLAIN GET {key}"));
    let key = (0..100).map(|n| format!("k{n}")).find(|key| places(&mut client, key).contains("\r\nthis")).expect("one");
    client.command(&["EVAL", "return 1", "1", &key]).expect("a reply");
    client.send_command(&["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", &key]).expect("it is sent");
    until(|| node.received().iter().any(|request| request.command() == "EVALSHA")).expect("it is asked");
    write(&[("this", &node)]);
    ask(&mut operator, "PROXY RELOAD");
    until(|| !ask(&mut operator, "PROXY SHOW NODES").contains("other")).expect("it is taken over");
    gate.open();
    assert_eq!(client.reply().expect("a reply"), b":1\r\n");
    assert_eq!(ask(&mut operator, "PING"), "+PONG\r\n");
}

#[test]
fn a_moved_node_is_followed_and_reconnecting_loses_nothing() {
    let served = Served::with("workers = 2\n");
    let mut client = served.client();
    assert_eq!(ask(&mut client, "MSET a 1 b 2 c 3 d 4"), "+OK\r\n");
    assert_eq!(ask(&mut client, "PROXY RECONNECT nothing").split('\'').next(), Some("-ERR there is no node or pool "));
    let lanes = |client: &mut Client| ask(client, "INFO PROXY").split("lanes_renewed:").nth(1).map(str::to_owned);
    let before = lanes(&mut client);
    assert!(ask(&mut client, "PROXY RECONNECT").starts_with(':'));
    until(|| {
        assert_eq!(ask(&mut client, "MGET a b c d"), "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n");
        lanes(&mut client) != before
    })
    .expect("connections are replaced");
    // The same data under another address: what follows goes there.
    let file = served.directory.join("respool.toml");
    let nodes: Vec<String> =
        served.own.iter().enumerate().map(|(n, node)| format!("\"{} name=own-{n}\"", node.unix())).collect();
    std::fs::write(&file, format!("nodes = [{}]\nadmin_commands = \"allow\"\nworkers = 2\n", nodes.join(", ")))
        .expect("it can be written");
    ask(&mut client, "PROXY RELOAD");
    until(|| {
        assert_eq!(ask(&mut client, "EXISTS a b c d"), ":4\r\n");
        ask(&mut client, "PROXY SHOW NODES").contains("unix:")
    })
    .expect("it is taken over");
}

#[test]
fn requests_wait_at_a_paused_node_and_leave_a_drained_one() {
    let served = Served::with("workers = 2\ndead_node = \"next\"\n");
    let (mut client, mut operator) = (served.client(), served.client());
    assert_eq!(ask(&mut client, "SET k v"), "+OK\r\n");
    assert_eq!(ask(&mut operator, "PROXY PAUSE"), "+OK\r\n");
    client.send_command(&["GET", "k"]).expect("it goes out");
    until(|| ask(&mut operator, "PROXY SHOW CLIENTS").contains("\r\noperator\r\n")).expect("it waits");
    assert!(ask(&mut operator, "PROXY SHOW NODES").contains("\r\npaused\r\n"));
    assert_eq!(ask(&mut operator, "PROXY RESUME"), "+OK\r\n");
    assert_eq!(client.reply().expect("it was only held"), b"$1\r\nv\r\n");

    // One node alone: the other's keys are served meanwhile.
    let explained = ask(&mut operator, "PROXY EXPLAIN GET k");
    let (own, other) = if explained.contains("own-0") { ("own-0", 1) } else { ("own-1", 0) };
    assert_eq!(ask(&mut operator, &format!("PROXY PAUSE {own}")), "+OK\r\n");
    client.send_command(&["GET", "k"]).expect("it goes out");
    let elsewhere = (0..).map(|n| format!("x{n}"));
    let is_elsewhere =
        |key: &String| ask(&mut operator, &format!("PROXY EXPLAIN GET {key}")).contains(&format!("own-{other}"));
    let key = { elsewhere }.find(is_elsewhere).expect("one of many");
    assert_eq!(ask(&mut served.client(), &format!("SET {key} v")), "+OK\r\n");
    assert_eq!(ask(&mut operator, &format!("PROXY RESUME {own}")), "+OK\r\n");
    assert_eq!(client.reply().expect("it was only held"), b"$1\r\nv\r\n");

    assert_eq!(ask(&mut operator, &format!("PROXY DRAIN {own}")), "+OK\r\n");
    assert!(ask(&mut operator, "PROXY SHOW NODES").contains("\r\ndrained\r\n"));
    assert_eq!(ask(&mut client, "GET k"), "$-1\r\n", "the next node has never heard of it");
    let number = own.trim_start_matches("own-").parse::<usize>().expect("a number");
    let mut node = served.own[number].client().expect("it accepts");
    until(|| ask(&mut node, "INFO clients").contains("connected_clients:1\r\n")).expect("it has no client");
    assert_eq!(ask(&mut operator, "PROXY RESUME main"), "+OK\r\n");
    assert_eq!(ask(&mut client, "GET k"), "$1\r\nv\r\n");
}

#[test]
fn a_transaction_waits_at_exec_while_its_node_is_paused() {
    let served = Served::with("workers = 2\n");
    let (mut client, mut operator) = (served.client(), served.client());
    assert_eq!(ask(&mut client, "SET k v"), "+OK\r\n");
    let own = if ask(&mut operator, "PROXY EXPLAIN GET k").contains("own-0") { "own-0" } else { "own-1" };
    let mut key_at = |is_there: bool| {
        let is_it = |key: &String| ask(&mut operator, &format!("PROXY EXPLAIN GET {key}")).contains(own) == is_there;
        (0..).map(|n| format!("x{n}")).find(is_it).expect("one of many")
    };
    let (here, elsewhere) = (key_at(true), key_at(false));
    let held = |operator: &mut Client| {
        until(|| ask(operator, "PROXY SHOW CLIENTS").contains("\r\noperator\r\n")).expect("it waits");
    };
    for (pause, words) in [
        (format!("PROXY PAUSE {own}"), "GET k"),
        ("PROXY PAUSE".into(), "GET k"),
        (format!("PROXY PAUSE {own}"), "PING"),
    ] {
        // Keys are watched, or not: that is where a block without keys goes, too.
        let watched = words == "PING";
        if watched {
            assert_eq!(ask(&mut client, &format!("WATCH {here}")), "+OK\r\n");
        }
        assert_eq!(ask(&mut operator, &pause), "+OK\r\n");
        // It is queued at once: nothing of it goes to the node yet.
        assert_eq!(ask(&mut client, "MULTI"), "+OK\r\n");
        assert_eq!(ask(&mut client, words), "+QUEUED\r\n");
        client.send(b"EXEC\r\n").expect("it goes out");
        held(&mut operator);
        // Others are served: what goes elsewhere, what goes nowhere, what would run nothing.
        let mut other = served.client();
        let lines: &[&str] = if pause.contains("own") {
            &[
                "MULTI",
                "GET {elsewhere}",
                "EXEC",
                "MULTI",
                "DISCARD",
                "UNWATCH",
                "MULTI",
                "CLIENT GETNAME",
                "EXEC",
                "MULTI",
                "GET",
                "EXEC",
            ]
        } else {
            &["MULTI", "DISCARD", "UNWATCH", "MULTI", "CLIENT GETNAME", "EXEC", "MULTI", "GET", "EXEC"]
        };
        for line in lines {
            let reply = ask(&mut other, &line.replace("{elsewhere}", &elsewhere));
            let is_refused = reply.starts_with("-ERR wrong number") || reply.starts_with("-EXECABORT");
            assert!(is_refused == (*line == "GET") || is_refused && *line == "EXEC", "{line}: {reply}");
        }
        assert_eq!(ask(&mut operator, "PROXY RESUME"), "+OK\r\n");
        let expected: &[u8] = if watched { b"*1\r\n+PONG\r\n" } else { b"*1\r\n$1\r\nv\r\n" };
        assert_eq!(client.reply().expect("it was only held"), expected);
    }
    // What was watched is watched on while EXEC is held.
    assert_eq!(ask(&mut client, "WATCH k"), "+OK\r\n");
    assert_eq!(ask(&mut operator, &format!("PROXY PAUSE {own}")), "+OK\r\n");
    client.send(b"MULTI\r\nSET k mine\r\nEXEC\r\n").expect("it goes out");
    assert_eq!(client.replies(2).expect("two replies"), [b"+OK\r\n".to_vec(), b"+QUEUED\r\n".to_vec()]);
    held(&mut operator);
    let number = own.trim_start_matches("own-").parse::<usize>().expect("a number");
    assert_eq!(ask(&mut served.own[number].client().expect("it accepts"), "SET k theirs"), "+OK\r\n");
    assert_eq!(ask(&mut operator, "PROXY RESUME"), "+OK\r\n");
    assert_eq!(client.reply().expect("it was only held"), b"*-1\r\n");
    assert_eq!(ask(&mut client, "GET k"), "$6\r\ntheirs\r\n");
}

#[test]
fn steering_is_refused_unless_the_settings_allow_it() {
    let node = server();
    let respool = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[node.tcp()], &[]).expect("it serves");
    let mut client = respool.client().expect("it accepts");
    for words in ["PAUSE", "RESUME", "DRAIN", "RECONNECT", "RELOAD", "KILL 1"] {
        assert!(ask(&mut client, &format!("PROXY {words}")).starts_with("-NOPERM PROXY "), "{words}");
    }
    assert!(ask(&mut client, "PROXY SHOW NODES").starts_with('*'));
}

#[test]
fn an_operator_ends_the_process_once_replies_are_out() {
    let mut served = Served::with("");
    assert!(ask(&mut served.client(), "PROXY DRAIN").starts_with("+Draining"));
    assert!(served.respool.process().wait(PATIENCE).expect("it ends").success());
}

#[test]
fn a_transaction_goes_where_its_keys_do_and_stays_in_one_pool() {
    let a = server();
    let routes = "[[routes]]\nname = \"a\"\nprefix = \"a:\"\nto = \"a\"\nadd = \"n:\"\n";
    let served = Served::with(&[pool("a", &[&a]), routes.to_owned()].concat());
    let (mut client, mut other) = (served.client(), served.client());
    for (request, reply) in [
        ("WATCH a:1", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("SET a:1 v", "+QUEUED\r\n"),
        ("INCR a:2", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n:1\r\n"),
    ] {
        assert_eq!(ask(&mut client, request), reply, "{request}");
    }
    assert!(held_by(&a).contains("n:a:1"), "under its other name");
    assert_eq!(ask(&mut client, "WATCH a:1"), "+OK\r\n");
    assert_eq!(ask(&mut other, "SET a:1 w"), "+OK\r\n");
    assert_eq!(ask(&mut client, "MULTI"), "+OK\r\n");
    assert!(ask(&mut other, "PROXY SHOW PINS").contains("\r\nwatch\r\n"));
    assert_eq!(ask(&mut client, "GET a:1"), "+QUEUED\r\n");
    assert_eq!(ask(&mut client, "EXEC"), "*-1\r\n", "the key was changed");
    assert_eq!(ask(&mut client, "MULTI"), "+OK\r\n");
    assert_eq!(ask(&mut client, "GET a:1"), "+QUEUED\r\n");
    assert!(ask(&mut client, "GET k").starts_with("-ERR a transaction stays in one pool"));
    assert!(ask(&mut client, "EXEC").starts_with("-EXECABORT"));
}

#[test]
fn subscriptions_live_on_when_nodes_come_and_go() {
    let served = Served::with("");
    let file = served.directory.join("respool.toml");
    let mut subscriber = served.client();
    let channels: Vec<String> = (0..20).map(|n| format!("channel:{n}")).collect();
    let mut request = vec!["SUBSCRIBE".to_owned()];
    request.extend(channels.iter().cloned());
    subscriber.send_command(&request).expect("it goes out");
    subscriber.replies(channels.len()).expect("each is acknowledged");
    let third = server();
    let all = [&served.own[0], &served.own[1], &third];
    let nodes: Vec<String> = all.iter().enumerate().map(|(n, node)| format!("\"{} name=n-{n}\"", node.tcp())).collect();
    std::fs::write(&file, format!("nodes = [{}]\nadmin_commands = \"allow\"\n", nodes.join(", ")))
        .expect("it is written");
    let mut publisher = served.client();
    ask(&mut publisher, "PROXY RELOAD");
    subscriber.set_timeout(Duration::from_millis(300)).expect("it can be set");
    for channel in &channels {
        // What is published while a subscription moves may be missed, so it is said again until it is heard.
        until(|| {
            ask(&mut publisher, &format!("PUBLISH {channel} hello"));
            subscriber
                .reply()
                .is_ok_and(|heard| String::from_utf8_lossy(&heard).contains(&format!("\r\n{channel}\r\n")))
        })
        .expect("it is heard");
    }
    drop(third);
}

#[test]
fn scripts_are_brought_back_under_routes_and_in_transactions() {
    let of_pool = server();
    let routes = format!("{}[[routes]]\nprefix = \"p:\"\nto = \"p\"\nstrip = true\n", pool("p", &[&of_pool]));
    for (settings, key) in [(String::new(), "k"), (routes, "p:k")] {
        let served = Served::with(&settings);
        let mut client = served.client();
        let script = "return {redis.call('INCR', KEYS[1]), KEYS[1]}";
        let at_node = key.trim_start_matches("p:");
        let nodes = || served.own.iter().chain([&of_pool]);
        let flush = || nodes().for_each(|node| drop(ask(&mut node.client().expect("it accepts"), "SCRIPT FLUSH")));
        let reply = client.command(&["EVAL", script, "1", key]).expect("a reply");
        assert_eq!(String::from_utf8_lossy(&reply), format!("*2\r\n:1\r\n${}\r\n{at_node}\r\n", at_node.len()));
        let hash = sha1_of(&served.own[0], script);
        let mut count = 1;
        for _ in 0..2 {
            flush();
            count += 1;
            let ran = format!("*2\r\n:{count}\r\n${}\r\n{at_node}\r\n", at_node.len());
            assert_eq!(ask(&mut client, &format!("EVALSHA {hash} 1 {key}")), ran, "{key}");
        }
        // Once they have been flushed by another client it is too late for one transaction, and no more than one.
        for is_flushed in [true, false, true] {
            if is_flushed {
                flush();
            }
            let mut tries = 0;
            loop {
                assert_eq!(ask(&mut client, "MULTI"), "+OK\r\n");
                assert_eq!(ask(&mut client, &format!("EVALSHA {hash} 1 {key}")), "+QUEUED\r\n");
                let reply = ask(&mut client, "EXEC");
                tries += 1;
                if !reply.contains("NOSCRIPT") {
                    count += 1;
                    assert_eq!(reply, format!("*1\r\n*2\r\n:{count}\r\n${}\r\n{at_node}\r\n", at_node.len()));
                    break;
                }
            }
            assert!(tries <= 2, "{tries}");
        }
    }
}

/// The hash by which a server knows a script.
fn sha1_of(node: &RedisServer, script: &str) -> String {
    let mut client = node.client().expect("it accepts");
    let reply = client.command(&["SCRIPT", "LOAD", script]).expect("a reply");
    String::from_utf8_lossy(&reply).lines().nth(1).expect("a bulk").to_owned()
}

#[test]
fn waiting_for_replicas_asks_the_nodes_of_all_pools() {
    let of_pool = server();
    let routes = format!("{}[[routes]]\nprefix = \"p:\"\nto = \"p\"\n", pool("p", &[&of_pool]));
    let served = Served::with(&routes);
    let mut client = served.client();
    assert_eq!(ask(&mut client, "SET p:k v"), "+OK\r\n");
    // Without a time: what is over before a node can be asked would be answered here.
    assert_eq!(ask(&mut client, "WAIT 0 0"), ":0\r\n", "no node has a replica");
    for node in served.own.iter().chain([&of_pool]) {
        let stats = ask(&mut node.client().expect("it accepts"), "INFO commandstats");
        // The first tells the node what the second is about.
        assert!(stats.contains("cmdstat_wait:calls=2,"), "{stats}");
    }
}

#[test]
fn one_node_can_be_asked_about_itself() {
    let served = Served::with("[users.few]\nrules = \"on nopass ~* &* +proxy +info\"\n");
    let mut client = served.client();
    for (number, node) in served.own.iter().enumerate() {
        let info = ask(&mut client, &format!("PROXY NODE own-{number} INFO server"));
        assert!(info.contains(&format!("tcp_port:{}\r\n", node.port())), "{info}");
        assert_eq!(ask(&mut client, &format!("PROXY NODE own-{number} SLOWLOG LEN")), ":0\r\n");
        assert_eq!(ask(&mut client, &format!("PROXY NODE own-{number} LATENCY LATEST")), "*0\r\n");
        assert_eq!(ask(&mut client, &format!("PROXY NODE own-{number} DBSIZE")), ":0\r\n");
    }
    for (words, reply) in [
        ("PROXY NODE missing INFO", "-ERR there is no node 'missing'; PROXY SHOW NODES names them\r\n"),
        ("PROXY NODE own-0 SET k v", "-ERR SET is not for a single node: send it without PROXY NODE\r\n"),
        ("PROXY NODE own-0 SELECT 1", "-ERR SELECT is not for a single node: send it without PROXY NODE\r\n"),
        ("PROXY NODE own-0 BLPOP k 0", "-ERR BLPOP is not for a single node: send it without PROXY NODE\r\n"),
        ("PROXY NODE own-0 GET", "-ERR wrong number of arguments for 'get' command\r\n"),
    ] {
        assert_eq!(ask(&mut client, words), reply, "{words}");
    }
    // In a transaction it is done with the others, and its reply stands in its place.
    for words in ["MULTI", "SET k v", "PROXY NODE own-0 PING"] {
        ask(&mut client, words);
    }
    let reply = ask(&mut client, "EXEC");
    assert!(reply.starts_with("*2\r\n+OK\r\n"), "{reply}");
    assert_eq!(ask(&mut client, "AUTH few x"), "+OK\r\n");
    assert!(ask(&mut client, "PROXY NODE own-0 INFO server").starts_with('$'));
    assert!(ask(&mut client, "PROXY NODE own-0 DBSIZE").starts_with("-NOPERM"));
}

#[test]
fn what_is_slow_often_or_big_is_seen() {
    let served = Served::with("slow_log_threshold = \"20ms\"\nsample_every = 1\nmetrics = \"127.0.0.1:0\"\n");
    let mut client = served.client();
    assert_eq!(ask(&mut client, "CLIENT SETNAME named"), "+OK\r\n");
    let big = "x".repeat(20_000);
    client.command(&["SET", "big", &big]).expect("a reply");
    for n in 0..300 {
        ask(&mut client, "GET hot");
        ask(&mut client, &format!("GET cold:{n}"));
    }
    ask(&mut client, "GET big");
    let explained = ask(&mut client, "PROXY EXPLAIN GET hot");
    let node = &served.own[usize::from(explained.contains("own-1"))];
    // The node stops for a while: the first request that waits for it is slow, and it alone.
    let mut operator = node.client().expect("it accepts");
    operator.send_command(&["DEBUG", "SLEEP", "0.1"]).expect("it goes out");
    until(|| ask(&mut client, "GET hot") == "$-1\r\n" && ask(&mut client, "PROXY SLOWLOG LEN") != ":0\r\n")
        .expect("slow");
    let log = ask(&mut client, "PROXY SLOWLOG GET");
    for part in ["GET hot", "named", "queue_us", "upstream_us", "total_us", "own-"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let hot = ask(&mut client, "PROXY SHOW HOTKEYS");
    assert_eq!(hot.lines().nth(5), Some("hot"), "{hot}");
    let bigkeys = ask(&mut client, "PROXY SHOW BIGKEYS");
    assert_eq!(bigkeys.lines().nth(5), Some("big"), "{bigkeys}");
    let latency = ask(&mut client, "PROXY SHOW LATENCY");
    for part in ["command get", "command set", "node own-0", "node own-1", "p99_us"] {
        assert!(latency.contains(part), "{part}: {latency}");
    }
    assert_eq!(ask(&mut client, "PROXY SLOWLOG RESET"), "+OK\r\n");
    assert_eq!(ask(&mut client, "PROXY SLOWLOG LEN"), ":0\r\n");
    assert!(ask(&mut client, "PROXY SLOWLOG NOPE").starts_with("-ERR syntax"));
}

/// Patterns of SORT, and commands that list keys, tell one tenant nothing of another's keys.
#[test]
fn a_tenant_sorts_by_no_key_of_others() {
    let main = RedisServer::start_with(&["--cluster-enabled", "yes"]).expect("a redis-server");
    let mut direct = main.client().expect("it accepts");
    assert_eq!(ask(&mut direct, "CLUSTER ADDSLOTSRANGE 0 16383"), "+OK\r\n");
    until(|| ask(&mut direct, "CLUSTER INFO").contains("cluster_state:ok")).expect("it serves");
    let settings = format!(
        "{}[users.tenant7]\nrules = \"on nopass ~* &* +@all -@admin -@scripting\"\n\
         [[routes]]\nusers = \"tenant7\"\nprefix = \"shared:\"\nto = \"p\"\n\
         [[routes]]\nusers = \"tenant7\"\nto = \"p\"\nadd = \"t7:\"\n",
        pool("p", &[&main])
    );
    let served = Served::with(&settings);
    let mut client = served.client();
    assert_eq!(ask(&mut direct, "SET t8:{shared:l}secret hunter2"), "+OK\r\n");
    assert_eq!(ask(&mut client, "AUTH tenant7 x"), "+OK\r\n");
    assert_eq!(ask(&mut client, "RPUSH shared:l secret"), ":1\r\n");
    for words in [
        "SORT shared:l BY nosort GET t8:{shared:l}*",
        "SORT shared:l BY t8:*",
        "CLUSTER GETKEYSINSLOT 1 100",
        "CLUSTER COUNTKEYSINSLOT 1",
    ] {
        let reply = ask(&mut client, words);
        assert!(reply.starts_with("-ERR '") && reply.contains("renames keys"), "{words}: {reply}");
    }
    assert_eq!(ask(&mut client, "SORT shared:l ALPHA"), "*1\r\n$6\r\nsecret\r\n");
}
