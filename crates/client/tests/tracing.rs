//! The spans that a subscriber sees: one for each call, with the attributes of OpenTelemetry's conventions and no argument of a request.

use respool_client::{Client, Config, cmd};
use respool_testkit::{Act, Address, FakeBackend, RedisServer};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context as In, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

type Fields = BTreeMap<&'static str, String>;

/// The fields of a span, and the name of the span around it.
type Span = (Fields, Option<&'static str>);

/// Spans in the order in which they were closed.
#[derive(Clone, Default)]
struct Closed(Arc<Mutex<Vec<Span>>>);

struct Into<'f>(&'f mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Closed {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: In<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut Into(&mut fields));
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: In<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(&mut Into(span.extensions_mut().get_mut().unwrap()));
    }

    fn on_close(&self, id: Id, context: In<'_, S>) {
        let span = context.span(&id).unwrap();
        let parent = span.parent().map(|parent| parent.name());
        let fields = span.extensions_mut().remove().unwrap();
        self.0.lock().unwrap().push((fields, parent));
    }
}

impl Closed {
    /// The one span that was closed since.
    fn take(&self) -> Fields {
        let mut all = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0).0
    }
}

fn watched(run: impl FnOnce(&Closed)) {
    let closed = Closed::default();
    let subscriber = tracing_subscriber::registry().with(closed.clone());
    tracing::subscriber::with_default(subscriber, || run(&closed));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// What the fields are that are named.
fn pick<'f>(fields: &'f Fields, names: &[&'static str]) -> Vec<&'f str> {
    names.iter().map(|name| fields.get(name).map_or("", String::as_str)).collect()
}

const NAMED: [&str; 5] =
    ["otel.name", "db.operation.name", "db.operation.batch.size", "db.response.status_code", "error.type"];

#[test]
fn each_call_has_a_span_that_says_what_and_where() {
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("redis://127.0.0.1:{}/2", server.port())).unwrap();
    watched(|closed| {
        client.call::<()>(cmd("SET").key("private").arg("secret")).wait().unwrap();
        let span = closed.take();
        let port = server.port().to_string();
        assert_eq!(
            pick(&span, &["db.system.name", "db.namespace", "server.address", "server.port", "otel.kind"]),
            ["redis", "2", "127.0.0.1", &port, "client"]
        );
        assert_eq!(pick(&span, &NAMED), ["SET", "SET", "", "", ""]);
        assert!(!format!("{span:?}").contains("private") && !format!("{span:?}").contains("secret"));

        runtime().block_on(async { client.call::<i64>(cmd("INCR").key("private")).await }).unwrap_err();
        let span = closed.take();
        assert_eq!(pick(&span, &NAMED), ["INCR", "INCR", "", "ERR", "ERR"]);
        assert_eq!(pick(&span, &["otel.status_code", "respool.outcome"]), ["ERROR", "Replied"]);
        // A server repeats the arguments of a command that it does not know.
        client.call::<()>(cmd("NONE").arg("secret")).wait().unwrap_err();
        let span = closed.take();
        assert_eq!(span["otel.status_description"], "ERR");
        assert!(!format!("{span:?}").contains("secret"));

        client.batch([cmd("GET").key("a"), cmd("GET").key("b")]).wait().unwrap();
        assert_eq!(pick(&closed.take(), &NAMED), ["PIPELINE GET", "PIPELINE GET", "2", "", ""]);
        client.transaction([cmd("GET").key("a"), cmd("INCR").key("b")]).wait().unwrap();
        assert_eq!(pick(&closed.take(), &NAMED), ["MULTI", "MULTI", "2", "", ""]);
        client.transaction([cmd("NONE")]).wait().unwrap_err();
        assert_eq!(pick(&closed.take(), &NAMED), ["MULTI NONE", "MULTI NONE", "", "ERR", "ERR"]);
        client.batch([cmd("GET").key("a")]).dedicated().wait().unwrap();
        assert_eq!(pick(&closed.take(), &NAMED), ["GET", "GET", "", "", ""]);
        client.call::<Option<(String, String)>>(cmd("BLPOP").key("none").arg(0.01)).wait().unwrap();
        assert_eq!(pick(&closed.take(), &NAMED), ["BLPOP", "BLPOP", "", "", ""]);
        client.call::<()>(cmd("SELECT").arg(3)).wait().unwrap_err();
        assert!(closed.0.lock().unwrap().iter().all(|(span, _)| span["error.type"] == "unfit"));
    });
}

#[test]
fn a_conflict_is_the_error_of_the_transaction_alone() {
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    watched(|closed| {
        let watched = client.watch("k").wait().unwrap();
        assert_eq!(pick(&closed.take(), &NAMED), ["WATCH", "WATCH", "", "", ""]);
        client.call::<()>(cmd("SET").key("k").arg(1)).wait().unwrap();
        assert_eq!(pick(&closed.take(), &NAMED), ["SET", "SET", "", "", ""]);
        watched.exec([cmd("GET").key("k")]).wait().unwrap_err();
        assert_eq!(pick(&closed.take(), &NAMED), ["MULTI GET", "MULTI GET", "", "", "conflict"]);
    });
}

#[test]
fn a_span_is_within_that_of_its_caller() {
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    watched(|closed| {
        tracing::info_span!("work").in_scope(|| client.call::<()>(cmd("PING")).wait().unwrap());
        let closed = closed.0.lock().unwrap();
        assert_eq!(closed.iter().map(|(_, parent)| *parent).collect::<Vec<_>>(), [Some("work"), None]);
    });
}

#[test]
fn a_call_that_is_dropped_ends_its_span() {
    let node = FakeBackend::start(|request| if request.command() == "GET" { Act::Skip } else { Act::Usual }).unwrap();
    let Address::Tcp(address) = node.address() else { panic!("no TCP") };
    let client = Client::with_config(Config::from_url(&address.to_string()).unwrap());
    watched(|closed| {
        client.call::<()>(cmd("PING")).wait().unwrap();
        closed.take();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(client.call::<()>(cmd("GET").key("k"))).poll(&mut cx).is_pending());
        assert_eq!(pick(&closed.take(), &NAMED), ["GET", "GET", "", "", "cancelled"]);
        // Nothing is begun before it is polled.
        drop(client.call::<()>(cmd("GET").key("k")));
        assert!(closed.0.lock().unwrap().is_empty());
    });
}

/// Nodes that say they are a cluster of two, each with half of the slots.
fn pair_of_nodes() -> [(FakeBackend, u16); 2] {
    let ports: Arc<Mutex<Vec<u16>>> = Arc::default();
    let nodes = [0, 1].map(|_| {
        let ports = Arc::clone(&ports);
        let node = FakeBackend::start(move |request| match (&*request.command(), request.key()) {
            ("CLUSTER", _) => {
                let ports = ports.lock().unwrap();
                let shard = |(at, port): (usize, &u16)| {
                    let (first, last) = [(0, 8_191), (8_192, 16_383)][at];
                    format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{port:040}\r\n")
                };
                let shards: String = ports.iter().enumerate().map(shard).collect();
                Act::Bytes(format!("*{}\r\n{shards}", ports.len()).into_bytes())
            }
            ("MGET", _) => Act::Bytes(b"*1\r\n$1\r\nv\r\n".to_vec()),
            ("CLIENT", b"ID") => Act::Bytes(b":1\r\n".to_vec()),
            ("GET" | "BLPOP", b"b" | b"bad") => Act::Bytes(b"-WRONGTYPE no\r\n".to_vec()),
            _ => Act::Usual,
        })
        .unwrap();
        let Address::Tcp(address) = node.address() else { panic!("no TCP") };
        (node, address.port())
    });
    ports.lock().unwrap().extend(nodes.iter().map(|(_, port)| port));
    nodes
}

#[test]
fn a_span_says_which_node_of_a_cluster_was_asked() {
    let nodes = pair_of_nodes();
    let slot = |key: &str| respool_route::cluster::slot_of(key.as_bytes());
    // One key of the second node, which is no seed, and one of the first.
    assert!(slot("a") >= 8_192 && slot("b") < 8_192);
    let ports: Vec<String> = nodes.iter().map(|(_, port)| port.to_string()).collect();
    let client = Client::open(&format!("redis+cluster://127.0.0.1:{}", ports[0])).unwrap();
    let place = |span: &Fields| pick(span, &["server.address", "server.port"]).join(":");
    watched(|closed| {
        for _ in 0..2 {
            client.call::<String>(cmd("GET").key("a")).wait().unwrap();
            assert_eq!(place(&closed.take()), format!("127.0.0.1:{}", ports[1]));
            // An error, and one of a call on a connection of its own.
            client.call::<String>(cmd("GET").key("b")).wait().unwrap_err();
            assert_eq!(place(&closed.take()), format!("127.0.0.1:{}", ports[0]));
            client.call::<String>(cmd("BLPOP").key("b").arg(1)).wait().unwrap_err();
            assert_eq!(place(&closed.take()), format!("127.0.0.1:{}", ports[0]));
            // Parts at both.
            client.call::<Vec<String>>(cmd("MGET").key(["a", "b"])).wait().unwrap();
            assert_eq!(place(&closed.take()), ":");
        }
    });
}
