//! The example's client against a redis-server: what the crate gives a client library is enough for one.

#[path = "../examples/blocking_client.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example has a `main` of its own")]
mod blocking_client;

use blocking_client::Client;
use respool_testkit::RedisServer;
use respool_wire::Value;

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn message(channel: &str, text: &str) -> Value {
    Value::Push(vec![bulk("message"), bulk(channel), bulk(text)])
}

fn client(server: &RedisServer) -> Client {
    Client::new(&format!("127.0.0.1:{}", server.port()))
}

#[test]
fn requests_of_a_pipeline_are_answered_in_order() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let ok = Value::Simple(b"OK".to_vec());
    let large = "x".repeat(1_000_000);
    let replies = client.pipeline(&[&["SET", "key", &large], &["GET", "key"], &["INCR", "n"], &["GET", "none"]]);
    assert_eq!(replies.unwrap(), [ok, bulk(&large), Value::Integer(1), Value::Null]);
}

#[test]
fn messages_come_between_replies() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    client.subscribe("a").unwrap();
    client.subscribe("b").unwrap();
    let requests: [&[&str]; 3] = [&["PUBLISH", "a", "1"], &["PUBLISH", "b", "2"], &["PING"]];
    let replies = client.pipeline(&requests).unwrap();
    assert_eq!(replies, [Value::Integer(1), Value::Integer(1), Value::Simple(b"PONG".to_vec())]);
    assert_eq!(client.next_push().unwrap(), message("a", "1"));
    assert_eq!(client.next_push().unwrap(), message("b", "2"));
}

#[test]
fn a_refused_subscription_answers_no_other_request() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let restrict: &[&str] = &["ACL", "SETUSER", "default", "resetchannels", "&allowed"];
    assert_eq!(client.pipeline(&[restrict]).unwrap(), [Value::Simple(b"OK".to_vec())]);
    assert!(client.subscribe("forbidden").is_err());
    client.subscribe("allowed").unwrap();
    let replies = client.pipeline(&[&["PUBLISH", "allowed", "1"], &["ECHO", "x"]]).unwrap();
    assert_eq!(replies, [Value::Integer(1), bulk("x")]);
    assert_eq!(client.next_push().unwrap(), message("allowed", "1"));
}

#[test]
fn a_lost_connection_is_made_anew_and_subscribed() {
    let server = RedisServer::start().unwrap();
    let (mut client, mut other) = (client(&server), client(&server));
    client.subscribe("a").unwrap();
    other.pipeline(&[&["CLIENT", "KILL", "TYPE", "pubsub"]]).unwrap();
    assert!(client.pipeline(&[&["PING"]]).is_err(), "it may have been executed");
    assert_eq!(client.pipeline(&[&["PUBLISH", "a", "again"]]).unwrap(), [Value::Integer(1)]);
    assert_eq!(client.next_push().unwrap(), message("a", "again"));
}

#[test]
fn a_server_that_is_away_is_dialled_a_bounded_number_of_times() {
    let mut server = RedisServer::start().unwrap();
    let mut client = client(&server);
    client.pipeline(&[&["PING"]]).unwrap();
    server.kill().unwrap();
    for _ in 0..2 {
        assert!(client.pipeline(&[&["PING"]]).is_err());
    }
    server.restart().unwrap();
    assert_eq!(client.pipeline(&[&["PING"]]).unwrap(), [Value::Simple(b"PONG".to_vec())]);
}
