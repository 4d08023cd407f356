//! What real nodes say, in their own words: reports in all forms and protocols, redirects, slots on their way, errors within scripts.
//!
//! The environment variable `RESPOOL_TEST_REDIS=off` leaves these tests out, for machines without a redis-server.

use respool_route::cluster::{
    Address, Ports, Redirect, Refresh, RefreshStep, RefreshTerms, Report, ReportError, Transfer, of_transaction,
};
use respool_testkit::{Client, RedisServer};
use respool_wire::Value;

/// `foo` is in the second node's half.
const FOO: u16 = 12_182;

fn start(settings: &[&str]) -> Option<RedisServer> {
    if std::env::var("RESPOOL_TEST_REDIS").is_ok_and(|value| value == "off") {
        eprintln!("left out: RESPOOL_TEST_REDIS=off");
        return None;
    }
    Some(RedisServer::start_with(settings).expect("redis-server starts; or set RESPOOL_TEST_REDIS=off"))
}

struct Node {
    server: RedisServer,
    client: Client,
    /// As a client would have dialled it, which is not how the node knows itself.
    asked: Address,
}

impl Node {
    fn start() -> Option<Self> {
        let server = start(&["--cluster-enabled", "yes"])?;
        let client = Client::connect(&server.tcp()).expect("it listens");
        let asked = Address::new("localhost", server.port()).expect("a host");
        Some(Self { server, client, asked })
    }

    fn ask(&mut self, words: &str) -> Value {
        let words: Vec<&str> = words.split(' ').collect();
        Value::parse(&self.client.command(&words).expect("an answer")).expect("a reply")
    }

    fn ok(&mut self, words: &str) {
        assert_eq!(self.ask(words), Value::Simple(b"OK".to_vec()), "{words}");
    }

    fn text(&mut self, words: &str) -> String {
        match self.ask(words) {
            Value::Bulk(text) | Value::Verbatim { text, .. } => String::from_utf8(text).expect("text"),
            other => panic!("{words}: {other:?}"),
        }
    }

    fn error(&mut self, words: &str) -> Vec<u8> {
        match self.ask(words) {
            Value::Error(error) => error,
            other => panic!("{words}: {other:?}"),
        }
    }

    fn redirect(&mut self, words: &str) -> Option<Redirect> {
        let error = self.error(words);
        Redirect::parse(&error, &self.asked)
    }

    fn reports(&mut self) -> [Result<Report, ReportError>; 3] {
        let asked = self.asked.clone();
        [
            Report::from_slots(&self.ask("CLUSTER SLOTS"), &asked),
            Report::from_shards(&self.ask("CLUSTER SHARDS"), &asked, Ports::Plain),
            Report::from_nodes(&self.ask("CLUSTER NODES"), &asked, Ports::Plain),
        ]
    }
}

/// Two nodes with half of the slots each, which have met.
fn cluster() -> Option<[Node; 2]> {
    let mut nodes = [Node::start()?, Node::start()?];
    for (node, slots) in nodes.iter_mut().zip(["0 8191", "8192 16383"]) {
        node.ok(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
    }
    let port = nodes[1].server.port();
    nodes[0].ok(&format!("CLUSTER MEET 127.0.0.1 {port}"));
    // A minute at most: the node answers this when a replica it does not have has not answered for 10 ms.
    let mut asked = 0;
    while !nodes.iter_mut().all(|node| node.text("CLUSTER INFO").contains("cluster_state:ok")) {
        asked += 1;
        assert!(asked < 6_000, "the nodes have not met");
        nodes[0].ask("WAIT 1 10");
    }
    Some(nodes)
}

/// Ports of the primaries by slot, as a map has them that was made from this report.
fn primaries(report: Report, asked: &Address) -> [u16; 2] {
    let mut refresh = Refresh::new(RefreshTerms::default(), [asked.clone()]);
    let RefreshStep::Ask { number, .. } = refresh.poll(0, 0).step else { panic!("it begins at once") };
    refresh.on_answer(number, Some(report));
    let map = refresh.map().expect("a map");
    assert!(map.is_complete());
    [0, FOO].map(|slot| map.shard_of(slot).expect("complete").primary.address.port())
}

#[test]
fn real_nodes_are_understood_in_every_form() {
    let Some(mut nodes) = cluster() else { return };
    let ports = [nodes[0].server.port(), nodes[1].server.port()];
    for protocol in ["2", "3"] {
        for node in &mut nodes {
            node.ask(&format!("HELLO {protocol}"));
            for report in node.reports() {
                let report = report.expect("a report");
                assert!(report.claims.iter().all(|claim| claim.primary.id.len() == 40), "{report:?}");
                assert_eq!(primaries(report, &node.asked), ports);
            }
        }
    }
    // A node whose address clients do not know by itself says nothing in its place.
    for kind in ["unknown-endpoint", "hostname"] {
        let [first, _] = &mut nodes;
        first.ok(&format!("CONFIG SET cluster-preferred-endpoint-type {kind}"));
        for report in first.reports() {
            assert_eq!(primaries(report.expect("a report"), &first.asked), ports, "{kind}");
        }
        let to = Address::new("localhost", ports[1]).unwrap();
        assert_eq!(first.redirect("GET foo"), Some(Redirect::Moved { slot: FOO, to }), "{kind}");
    }
}

#[test]
fn a_node_that_has_joined_no_cluster_makes_no_map() {
    let Some(mut node) = Node::start() else { return };
    assert!(node.reports().into_iter().all(|report| report == Err(ReportError::Empty)));
    assert_eq!(node.redirect("GET foo"), Some(Redirect::ClusterDown));
    node.ok("CLUSTER ADDSLOTSRANGE 0 16383");
    // It has no address of its own before it has met another one.
    let port = node.server.port();
    for report in node.reports() {
        let report = report.expect("a report");
        assert_eq!(report.claims[0].primary.address, node.asked);
        assert_eq!(primaries(report, &node.asked), [port; 2]);
    }
}

#[test]
fn real_redirects_lead_where_the_slot_is() {
    let Some([mut from, mut to]) = cluster() else { return };
    std::mem::swap(&mut from, &mut to);
    let address = |node: &Node| Address::new("127.0.0.1", node.server.port()).unwrap();
    let moved = Redirect::Moved { slot: FOO, to: address(&from) };
    assert_eq!(to.redirect("GET foo"), Some(moved.clone()));
    // A transaction is refused as a whole.
    let replies = ["MULTI", "SET foo 1", "EXEC"].map(|words| to.ask(words));
    let errors = replies.each_ref().map(|reply| if let Value::Error(error) = reply { Some(&error[..]) } else { None });
    assert_eq!(of_transaction(errors, &to.asked), Some(moved));
    // The slot goes on its way.
    from.ok("SET foo 1");
    let (from_id, to_id) = (from.text("CLUSTER MYID"), to.text("CLUSTER MYID"));
    to.ok(&format!("CLUSTER SETSLOT {FOO} IMPORTING {from_id}"));
    from.ok(&format!("CLUSTER SETSLOT {FOO} MIGRATING {to_id}"));
    assert_eq!(from.ask("GET foo"), Value::Bulk(b"1".to_vec()), "what is here is answered here");
    let ask = Redirect::Ask { slot: FOO, to: address(&to) };
    assert_eq!(from.redirect("GET {foo}2"), Some(ask.clone()));
    assert_eq!(from.redirect("MGET foo {foo}2"), Some(Redirect::TryAgain));
    let marks = |node: &mut Node| node.reports()[2].clone().expect("a report").marks;
    let (leaves, comes) = (marks(&mut from), marks(&mut to));
    assert_eq!((leaves[0].slot, leaves[0].transfer, &*leaves[0].member), (FOO, Transfer::Migrating, &*to_id));
    assert_eq!((comes[0].slot, comes[0].transfer, &*comes[0].member), (FOO, Transfer::Importing, &*from_id));
    // ASKING in front of a transaction counts until EXEC, and no longer.
    let replies = ["MULTI", "SET {foo}2 1", "EXEC"].map(|words| from.ask(words));
    let errors = replies.each_ref().map(|reply| if let Value::Error(error) = reply { Some(&error[..]) } else { None });
    assert_eq!(of_transaction(errors, &from.asked), Some(ask));
    to.ok("ASKING");
    to.ok("MULTI");
    assert_eq!(to.ask("SET {foo}2 1"), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(to.ask("INCR {foo}2"), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(to.ask("EXEC"), Value::Array(vec![Value::Simple(b"OK".to_vec()), Value::Integer(2)]));
    assert!(matches!(to.redirect("GET {foo}2"), Some(Redirect::Moved { .. })));
    // It has arrived, with the key that was left.
    from.ask("DEL foo");
    for node in [&mut to, &mut from] {
        node.ok(&format!("CLUSTER SETSLOT {FOO} NODE {to_id}"));
    }
    assert_eq!(from.redirect("GET foo"), Some(Redirect::Moved { slot: FOO, to: address(&to) }));
    let port = to.server.port();
    for report in from.reports().into_iter().chain(to.reports()) {
        assert_eq!(primaries(report.expect("a report"), &from.asked), [port; 2]);
    }
}

#[test]
fn a_replica_refuses_and_a_script_on_it_is_not_sent_again() {
    let Some(server) = start(&[]) else { return };
    let asked = Address::new("localhost", server.port()).unwrap();
    let mut client = Client::connect(&server.tcp()).expect("it listens");
    let mut error = |words: &[&str]| match Value::parse(&client.command(words).expect("an answer")) {
        Ok(Value::Error(error)) => error,
        other => panic!("{words:?}: {other:?}"),
    };
    let closed = respool_testkit::ClosedPort::take().expect("a port");
    let port = closed.address().port().to_string();
    let mut other = Client::connect(&server.tcp()).expect("it listens");
    other.command(&["REPLICAOF", "127.0.0.1", &port]).expect("an answer");
    assert_eq!(Redirect::parse(&error(&["SET", "k", "v"]), &asked), Some(Redirect::ReadOnly));
    let script = error(&["EVAL", "return redis.call('SET', KEYS[1], 'v')", "1", "k"]);
    assert!(script.starts_with(b"READONLY"), "{}", script.escape_ascii());
    assert_eq!(Redirect::parse(&script, &asked), None);
    other.command(&["CONFIG", "SET", "replica-serve-stale-data", "no"]).expect("an answer");
    assert_eq!(Redirect::parse(&error(&["GET", "k"]), &asked), Some(Redirect::MasterDown));
}
