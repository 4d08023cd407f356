//! Routes and the console, end to end: real servers, a real process and its settings file.

use std::path::Path;
use std::time::Duration;

use respool_testkit::{Client, RedisServer, Respool, TempDir};

const LIMIT: Duration = Duration::from_secs(20);

fn server() -> RedisServer {
    RedisServer::start().expect("a redis-server")
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
    std::fs::write(file, format!("nodes = [{}]\n{settings}", nodes.join(", "))).expect("the file can be written");
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
    respool_testkit::wait_until("it", LIMIT, || Ok(is_so()))
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
fn databases_and_commands_choose_a_pool_and_reads_go_to_replicas() {
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
    // Whoever asks first may hear of the loss; from then on the other node answers for all keys.
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
