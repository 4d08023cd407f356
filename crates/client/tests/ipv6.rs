//! Servers that are reached by IPv6, as addresses of users and of clusters name them.

use respool_client::{Client, Config, cmd};
use respool_testkit::{RedisServer, wait_until};
use std::time::Duration;

/// Long enough for a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(120);

fn client(url: &str) -> Client {
    Client::with_config(Config::from_url(url).unwrap().deadline(Some(PATIENCE)).connect_limit(PATIENCE))
}

/// A server at the loopback address of both kinds.
fn server(settings: &[&str]) -> RedisServer {
    let bind = ["--bind", "127.0.0.1", "::1"];
    RedisServer::start_with(&[&bind[..], settings].concat()).unwrap()
}

/// The addresses at which a server has taken connections of clients that have made a request.
fn is_used_by_ipv6(server: &RedisServer) -> bool {
    server.client().unwrap().ask("CLIENT LIST").unwrap().contains("laddr=[::1]:")
}

#[test]
fn one_server_is_reached_by_ipv6() {
    let server = server(&[]);
    let client = client(&format!("redis://[::1]:{}", server.port()));
    client.set("k", "v").cast::<()>().wait().unwrap();
    assert_eq!(client.get("k").cast::<String>().wait().unwrap(), "v");
    assert!(is_used_by_ipv6(&server));
}

#[test]
fn shards_are_reached_by_ipv6() {
    let servers = [server(&[]), server(&[])];
    let places: Vec<String> = servers.iter().map(|server| format!("[::1]:{}", server.port())).collect();
    let client = client(&format!("redis+shards://{}?rule=jump", places.join(",")));
    for key in 0..50 {
        client.set(key, key).cast::<()>().wait().unwrap();
        assert_eq!(client.get(key).cast::<usize>().wait().unwrap(), key);
    }
    assert!(servers.iter().all(is_used_by_ipv6));
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_that_names_ipv6_addresses_is_followed() {
    let settings = ["--cluster-enabled", "yes", "--cluster-announce-ip", "::1"];
    let nodes = [server(&settings), server(&settings)];
    let ask = |number: usize, words: &str| nodes[number].client().unwrap().ask(words).unwrap();
    for (number, range) in ["0 8191", "8192 16383"].iter().enumerate() {
        assert_eq!(ask(number, &format!("CLUSTER ADDSLOTSRANGE {range}")), "+OK\r\n");
        assert_eq!(ask(number, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)), "+OK\r\n");
    }
    assert_eq!(ask(1, &format!("CLUSTER MEET ::1 {}", nodes[0].port())), "+OK\r\n");
    wait_until("the nodes are a cluster", PATIENCE, || {
        let is_up = |number| {
            let info = ask(number, "CLUSTER INFO");
            info.contains("cluster_known_nodes:2\r") && info.contains("cluster_state:ok")
        };
        Ok(is_up(0) && is_up(1))
    })
    .unwrap();
    let client = client(&format!("redis+cluster://[::1]:{}", nodes[0].port()));
    let mut at_the_other = None;
    for key in 0..50_usize {
        client.set(key, key).cast::<()>().wait().unwrap();
        assert_eq!(client.get(key).cast::<usize>().wait().unwrap(), key);
        let slot = respool_route::cluster::slot_of(key.to_string().as_bytes());
        at_the_other = at_the_other.or((slot >= 8_192).then_some((key, slot)));
    }
    assert!(nodes.iter().all(is_used_by_ipv6));
    // The redirect names an address of IPv6 as well.
    let (key, slot) = at_the_other.unwrap();
    let id = ask(0, "CLUSTER MYID").split("\r\n").nth(1).unwrap().to_owned();
    client.call::<()>(cmd("DEL").key(key)).wait().unwrap_or(());
    assert!(ask(1, &format!("CLUSTER COUNTKEYSINSLOT {slot}")).starts_with(":0"));
    for number in [0, 1] {
        assert_eq!(ask(number, &format!("CLUSTER SETSLOT {slot} NODE {id}")), "+OK\r\n");
    }
    client.set(key, "there").cast::<()>().wait().unwrap();
    assert_eq!(ask(0, &format!("GET {key}")), "$5\r\nthere\r\n");
}
