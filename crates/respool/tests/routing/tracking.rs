//! Tracking under routes: invalidations by the names that clients have for their keys, with nodes that are down and with replicas.

use super::*;

fn pushed(client: &mut Client) -> String {
    client.reply().expect("a push").escape_ascii().to_string()
}

/// A tracking client is told of keys by the names that it has for them, wherever routes lead it, and of no other keys.
#[test]
fn changed_keys_are_told_by_their_clients_names() {
    let (a, b) = (server(), server());
    let settings = "[users.seven]\nrules = \"on nopass ~* &* +@all\"\n\
                    [users.eight]\nrules = \"on nopass ~* &* +@all\"\n\
                    [[routes]]\nusers = \"seven\"\nto = \"b\"\nadd = \"t7:\"\n\
                    [[routes]]\nusers = \"eight\"\nto = \"b\"\nadd = \"t8:\"\n\
                    [[routes]]\nprefix = [\"a:\", \"aa:\"]\nto = \"a\"\nstrip = true\n";
    let served = Served::with(&[pool("a", &[&a]), pool("b", &[&b]), settings.to_owned()].concat());
    let told = |key: &str| format!(">2\\r\\n$10\\r\\ninvalidate\\r\\n*1\\r\\n${}\\r\\n{key}\\r\\n", key.len());
    let (mut at_a, mut at_b) = (a.client().expect("it accepts"), b.client().expect("it accepts"));
    for mode in ["", " BCAST", " NOLOOP", " BCAST NOLOOP"] {
        let mut plain = served.client();
        let [mut seven, mut eight] = ["seven", "eight"].map(|user| {
            let mut client = served.client();
            ask(&mut client, &format!("HELLO 3 AUTH {user} x"));
            client
        });
        ask(&mut plain, "HELLO 3");
        for client in [&mut plain, &mut seven, &mut eight] {
            assert_eq!(ask(client, &format!("CLIENT TRACKING ON{mode}")), "+OK\r\n", "{mode}");
        }
        // Each has read a key of the same name.
        for client in [&mut plain, &mut seven, &mut eight] {
            ask(client, "GET k");
        }
        ask(&mut plain, "GET a:1");
        ask(&mut at_b, "SET t7:k 1");
        assert_eq!(pushed(&mut seven), told("k"), "{mode}");
        ask(&mut at_b, "SET t8:k 1");
        assert_eq!(pushed(&mut eight), told("k"), "{mode}");
        // No other client was told: its next message is about another key.
        ask(&mut at_b, "SET a:1 1");
        ask(&mut at_a, "SET 1 1");
        let word = pushed(&mut plain);
        if mode.contains("BCAST") {
            assert!(word.contains("$3\\r\\na:1\\r\\n") && word.contains("$4\\r\\naa:1\\r\\n"), "{mode}: {word}");
        } else if mode.is_empty() {
            assert_eq!(word, told("a:1"));
        } else {
            assert!(word.contains("$3\\r\\na:1\\r\\n"), "{mode}: {word}");
        }
        ask(&mut seven, "GET j");
        ask(&mut at_b, "SET t7:j 1");
        assert_eq!(pushed(&mut seven), told("j"), "{mode}");
        for client in [&mut plain, &mut seven, &mut eight] {
            assert_eq!(ask(client, "CLIENT TRACKING OFF"), "+OK\r\n", "{mode}");
        }
    }
}

/// The next push that is not to forget everything.
fn pushed_key(client: &mut Client) -> String {
    loop {
        let push = pushed(client);
        if !push.contains("_\\r\\n") {
            return push;
        }
    }
}

/// A node that is down keeps no client from tracking: those that cannot be led there notice nothing, the others are told to
/// forget what they read until it is back.
#[test]
fn tracking_needs_no_node_that_is_down() {
    let (mut a, b) = (server(), server());
    let settings = "reconnect_min = \"1ms\"\nreconnect_max = \"10ms\"\n\
                    [users.seven]\nrules = \"on nopass ~* &* +@all\"\n\
                    [[routes]]\nusers = \"seven\"\nto = \"b\"\n[[routes]]\nprefix = \"a:\"\nto = \"a\"\n";
    let (head, routes) = settings.split_once("[users").expect("users");
    let served = Served::with(&[head, &pool("a", &[&a]), &pool("b", &[&b]), "[users", routes].concat());
    let told = |key: &str| format!(">2\\r\\n$10\\r\\ninvalidate\\r\\n*1\\r\\n${}\\r\\n{key}\\r\\n", key.len());
    let forget = ">2\\r\\n$10\\r\\ninvalidate\\r\\n_\\r\\n";
    let mut at_b = b.client().expect("it accepts");
    for mode in ["", " NOLOOP"] {
        a.kill().expect("it dies");
        let (mut plain, mut seven) = (served.client(), served.client());
        ask(&mut plain, "HELLO 3");
        ask(&mut seven, "HELLO 3 AUTH seven x");
        for client in [&mut plain, &mut seven] {
            client.set_timeout(PATIENCE).expect("it can be set");
            assert_eq!(ask(client, &format!("CLIENT TRACKING ON{mode}")), "+OK\r\n", "{mode}");
        }
        assert_eq!(ask(&mut seven, "GET k"), "_\r\n");
        ask(&mut at_b, "SET k 1");
        assert_eq!(pushed(&mut seven), told("k"), "{mode}: and nothing else");
        ask(&mut at_b, "DEL k");
        assert_eq!(ask(&mut plain, "GET k"), "_\r\n");
        assert_eq!(pushed(&mut plain), forget, "{mode}");
        a.restart().expect("it comes back");
        let mut at_a = a.client().expect("it accepts");
        until(|| {
            plain.send_command(&["GET", "a:1"]).expect("it is sent");
            loop {
                let frame = plain.reply().expect("a frame");
                if !frame.starts_with(b">") {
                    return frame == b"_\r\n";
                }
            }
        })
        .expect("it answers");
        // A client that reads on is not told to forget for ever.
        until(|| {
            ask(&mut at_a, "SET other 1");
            plain.send_command(&["GET", "a:1"]).expect("it is sent");
            while plain.reply().expect("a frame").starts_with(b">") {}
            plain.set_timeout(Duration::from_millis(300)).expect("it can be set");
            let is_quiet = plain.reply().is_err();
            plain.set_timeout(PATIENCE).expect("it can be set");
            is_quiet
        })
        .expect("all nodes tell");
        ask(&mut at_a, "SET a:1 1");
        assert_eq!(pushed_key(&mut plain), told("a:1"), "{mode}");
        // As another user it hears other nodes, so what it has stored is of no use.
        plain.send_command(&["AUTH", "seven", "x"]).expect("it is sent");
        let said: Vec<String> =
            plain.replies(2).expect("both").iter().map(|frame| frame.escape_ascii().to_string()).collect();
        assert!(said.contains(&forget.to_owned()), "{mode}: {said:?}");
        ask(&mut at_a, "FLUSHALL");
    }
}

/// What a replica answers is told of once the replica has it: a client must not keep what the replica had before.
#[test]
fn what_replicas_answer_is_told_of_when_they_know() {
    let (other, replica) = (server(), server());
    let mut copy = replica.client().expect("it accepts");
    assert_eq!(ask(&mut copy, &format!("REPLICAOF 127.0.0.1 {}", other.port())), "+OK\r\n");
    until(|| ask(&mut copy, "INFO replication").contains("master_link_status:up")).expect("the replica is in step");
    let settings = format!(
        "[pools.p]\nnodes = [\"{} name=first\", \"{} name=copy replica_of=first\"]\n\
         [[routes]]\ndatabases = 3\nto = \"p\"\nreads = \"replica\"\n",
        other.tcp(),
        replica.tcp()
    );
    let served = Served::with(&settings);
    let mut client = served.client();
    ask(&mut client, "HELLO 3");
    ask(&mut client, "SELECT 3");
    assert_eq!(ask(&mut client, "CLIENT TRACKING ON"), "+OK\r\n");
    let mut direct = other.client().expect("it accepts");
    ask(&mut direct, "SELECT 3");
    for round in 0..50 {
        ask(&mut direct, &format!("SET k {round}"));
        let mut stored = None;
        until(|| {
            // Invalidations come between replies, from either of the nodes.
            client.send_command(&["GET", "k"]).expect("it is sent");
            loop {
                let frame = client.reply().expect("a frame");
                if !frame.starts_with(b">") {
                    stored = Some(frame);
                    break;
                }
                stored = None;
            }
            stored.as_deref() == Some(format!("${}\r\n{round}\r\n", round.to_string().len()).as_bytes())
        })
        .expect("the replica has it in the end");
    }
}

/// In pool mode `session` a client's own connection is to the replica that it reads from, whichever has its turn.
#[test]
fn in_session_mode_each_client_has_a_connection_to_the_replica() {
    let (other, copies) = (server(), [server(), server()]);
    let settings = format!(
        "[pools.p]\nnodes = [\"{} name=first\", \"{} name=one replica_of=first\", \"{} name=two replica_of=first\"]\n\
         [[routes]]\nprefix = \"k\"\nto = \"p\"\nreads = \"replica\"\npool_mode = \"session\"\n",
        other.tcp(),
        copies[0].tcp(),
        copies[1].tcp()
    );
    let served = Served::with(&settings);
    let mut clients = [served.client(), served.client()];
    for client in &mut clients {
        for _ in 0..5 {
            assert_eq!(ask(client, "GET k"), "$-1\r\n");
            assert_eq!(ask(client, "MGET k k2"), "*2\r\n$-1\r\n$-1\r\n");
            assert_eq!(ask(client, "GET k"), "$-1\r\n");
        }
    }
    let connections = |copy: &RedisServer| copy.client()?.figure("clients", "connected_clients");
    for copy in &copies {
        let all = "each client has one, and so have the proxy and the test";
        until(|| connections(copy).expect("it is told") == 4).expect(all);
    }
}
