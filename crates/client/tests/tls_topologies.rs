//! Clusters, sentinels and shards over TLS, with real servers: each address that a server names is dialled over TLS, and its certificate checked.
#![cfg(all(feature = "tls", feature = "cluster"))]

use respool_client::{Client, Config, cmd};
use respool_testkit::{Authority, RedisSentinel, RedisServer, free_port, wait_until};
use std::collections::BTreeMap;
use std::time::Duration;

/// Long enough for a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a sentinel lets its master be silent: longer than any machine stands still.
const NEVER_DOWN: Duration = Duration::from_secs(600);

/// The keys of a test, which are at several servers.
const KEYS: usize = 200;

/// The settings of TLS of a server that shows a certificate for 127.0.0.1, but for its port.
fn tls_settings(authority: &Authority) -> Vec<String> {
    let file = |name: &str| authority.path(name).display().to_string();
    let words = [
        ("tls-cert-file", file("server.crt")),
        ("tls-key-file", file("server.key")),
        ("tls-ca-cert-file", file("ca.crt")),
        ("tls-auth-clients", "no".to_owned()),
    ];
    words.into_iter().flat_map(|(name, value)| [format!("--{name}"), value]).collect()
}

/// A server, and its port of TLS.
fn server(authority: &Authority, settings: &[&str]) -> (RedisServer, u16) {
    let tls = tls_settings(authority);
    let mut failure = None;
    for _ in 0..10 {
        let port = free_port().unwrap();
        let number = port.to_string();
        let mut all = vec!["--tls-port", &*number];
        all.extend(tls.iter().map(String::as_str));
        all.extend(settings);
        match RedisServer::start_with(&all) {
            Ok(server) => return (server, port),
            Err(error) => failure = Some(error),
        }
    }
    panic!("{failure:?}");
}

fn authority() -> Authority {
    let authority = Authority::new();
    authority.write("server", &authority.issue("127.0.0.1", "server"));
    authority
}

/// A client of an address whose certificates the authority has issued.
fn client(authority: &Authority, url: &str) -> Client {
    let mark = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{mark}ca_file={}", authority.path("ca.crt").display());
    Client::with_config(Config::from_url(&url).unwrap().deadline(Some(PATIENCE)).connect_limit(PATIENCE))
}

/// Writes all keys and reads them again, one by one and at once.
fn use_keys(client: &Client) {
    let keys: Vec<String> = (0..KEYS).map(|key| format!("key:{key}")).collect();
    for (at, key) in keys.iter().enumerate() {
        client.set(key, at).cast::<()>().wait().unwrap();
    }
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(client.get(key).cast::<usize>().wait().unwrap(), at);
    }
    let all: Vec<usize> = client.mget(&keys).cast().wait().unwrap();
    assert!(all.into_iter().eq(0..KEYS));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(client.get(key).cast::<usize>().await.unwrap(), at);
        }
    });
}

fn ask(server: &RedisServer, words: &str) -> String {
    server.client().unwrap().ask(words).unwrap()
}

fn keys_of(server: &RedisServer) -> usize {
    ask(server, "DBSIZE").trim_start_matches(':').trim_end().parse().unwrap()
}

/// What a server has counted of connections that were refused or not encrypted, and of those that it has.
fn plain_clients(server: &RedisServer, plain_port: u16) -> usize {
    let listed = ask(server, "CLIENT LIST TYPE normal");
    listed.matches(&format!("laddr=127.0.0.1:{plain_port} ")).count()
}

#[test]
fn a_cluster_is_followed_over_tls() {
    let authority = authority();
    let settings = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let nodes = [server(&authority, &settings), server(&authority, &settings)];
    let ranges = ["0 8191", "8192 16383"];
    for (number, (node, _)) in nodes.iter().enumerate() {
        assert_eq!(ask(node, &format!("CLUSTER ADDSLOTSRANGE {}", ranges[number])), "+OK\r\n");
        assert_eq!(ask(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)), "+OK\r\n");
    }
    assert_eq!(ask(&nodes[1].0, &format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].1)), "+OK\r\n");
    wait_until("the nodes are a cluster", PATIENCE, || {
        let is_up = |node: &RedisServer| {
            let info = ask(node, "CLUSTER INFO");
            info.contains("cluster_known_nodes:2\r") && info.contains("cluster_state:ok")
        };
        Ok(nodes.iter().all(|(node, _)| is_up(node)))
    })
    .unwrap();
    // The other node is known by what the first says.
    let client = client(&authority, &format!("rediss+cluster://127.0.0.1:{}", nodes[0].1));
    use_keys(&client);
    let counts = [keys_of(&nodes[0].0), keys_of(&nodes[1].0)];
    assert!(counts[0] + counts[1] == KEYS && counts.iter().all(|count| *count > 0), "{counts:?}");
    // A slot without keys goes to the other node: the redirect names its port of TLS.
    let key = (0..).map(|number| format!("moved:{number}")).find(|key| {
        let slot = respool_route::cluster::slot_of(key.as_bytes());
        slot < 8_192 && ask(&nodes[0].0, &format!("CLUSTER COUNTKEYSINSLOT {slot}")) == ":0\r\n"
    });
    let key = key.unwrap();
    let slot = respool_route::cluster::slot_of(key.as_bytes());
    let id = ask(&nodes[1].0, "CLUSTER MYID").split("\r\n").nth(1).unwrap().to_owned();
    for (node, _) in nodes.iter().rev() {
        assert_eq!(ask(node, &format!("CLUSTER SETSLOT {slot} NODE {id}")), "+OK\r\n");
    }
    client.set(&key, "there").cast::<()>().wait().unwrap();
    assert_eq!(ask(&nodes[1].0, &format!("GET {key}")), "$5\r\nthere\r\n");
    for (node, _) in &nodes {
        assert_eq!(plain_clients(node, node.port()), 0, "a connection is not encrypted");
    }
}

#[test]
fn shards_are_reached_over_tls() {
    let authority = authority();
    let servers = [server(&authority, &[]), server(&authority, &[])];
    let places: Vec<String> = servers.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect();
    let client = client(&authority, &format!("rediss+shards://{}?rule=jump", places.join(",")));
    use_keys(&client);
    let counts = [keys_of(&servers[0].0), keys_of(&servers[1].0)];
    assert!(counts[0] + counts[1] == KEYS && counts.iter().all(|count| *count > 0), "{counts:?}");
    for (server, _) in &servers {
        assert_eq!(plain_clients(server, server.port()), 0, "a connection is not encrypted");
    }
}

/// A sentinel that speaks nothing but TLS.
fn sentinel(authority: &Authority, master: u16) -> RedisSentinel {
    let tls = tls_settings(authority);
    let tls: String = tls.chunks(2).map(|pair| format!("\n{} {}", pair[0].trim_start_matches('-'), pair[1])).collect();
    let listen = |port| format!("port 0\ntls-port {port}\ntls-replication yes{tls}");
    RedisSentinel::start(master, 1, NEVER_DOWN, listen).unwrap()
}

#[test]
fn sentinels_and_their_servers_are_reached_over_tls() {
    let authority = authority();
    let (master, master_port) = server(&authority, &["--tls-replication", "yes"]);
    let number = master_port.to_string();
    let (replica, _) = server(&authority, &["--tls-replication", "yes", "--replicaof", "127.0.0.1", &number]);
    let sentinel = sentinel(&authority, master_port);
    let port = sentinel.port();
    let client_of = |role: &str| client(&authority, &format!("rediss+sentinel://127.0.0.1:{port}/main?role={role}"));
    let of_master = client_of("master");
    of_master.set("k", "v").cast::<()>().wait().unwrap();
    assert_eq!(ask(&master, "GET k"), "$1\r\nv\r\n");
    let told = client(&authority, &format!("rediss://127.0.0.1:{port}"));
    wait_until("the sentinel knows the replica", PATIENCE, || {
        let replicas: Vec<BTreeMap<String, String>> =
            told.call(cmd("SENTINEL").arg("REPLICAS").arg("main")).wait().unwrap();
        let is_up = |replica: &BTreeMap<String, String>| replica["master-link-status"] == "ok";
        Ok(replicas.len() == 1 && replicas.iter().all(is_up))
    })
    .unwrap();
    let role = |client: &Client| {
        let info: String = client.call(cmd("INFO").arg("replication")).wait().unwrap();
        info.lines().find_map(|line| line.strip_prefix("role:")).unwrap().trim().to_owned()
    };
    assert_eq!((role(&of_master), role(&client_of("replica"))), ("master".to_owned(), "slave".to_owned()));
    // The two change places, and the client follows.
    let _: respool_client::Reply = told.call(cmd("SENTINEL").arg("FAILOVER").arg("main")).wait().unwrap();
    wait_until("the client writes to the new master", PATIENCE, || {
        let _ = of_master.set("k", "w").cast::<()>().wait();
        Ok(ask(&replica, "GET k") == "$1\r\nw\r\n" && ask(&replica, "ROLE").contains("master"))
    })
    .unwrap();
    for server in [&master, &replica] {
        assert_eq!(plain_clients(server, server.port()), 0, "a connection is not encrypted");
    }
}
