//! Servers that are no cluster, and what connections to them promise: the ground on which the proxy is tested.

use respool_sim::{ConnectionId, Delivery, Fault, World, WorldTerms};
use respool_wire::ArgsBuf;

const SECOND: u64 = 1_000_000;
const MS: u64 = 1_000;

fn servers() -> World {
    World::new(WorldTerms { is_cluster: false, ..WorldTerms::default() }, 1)
}

fn request(words: &[&str]) -> ArgsBuf {
    words.iter().collect()
}

fn dial(world: &mut World, node: usize) -> ConnectionId {
    let address = world.address(node);
    let connection = world.dial(&address);
    let until_us = world.now_us() + SECOND;
    assert_eq!(world.poll(until_us), Some(Delivery::Connected { connection }));
    connection
}

/// All that comes within some time, by tags.
fn replies(world: &mut World, for_us: u64) -> Vec<(u64, String)> {
    let until_us = world.now_us() + for_us;
    let mut all = Vec::new();
    while let Some(delivery) = world.poll(until_us) {
        match delivery {
            Delivery::Reply { tag, replies, .. } => {
                all.push((tag, String::from_utf8_lossy(&replies.concat()).into_owned()))
            }
            Delivery::Ended { .. } => all.push((0, "ended".to_owned())),
            Delivery::Refused { .. } => all.push((0, "refused".to_owned())),
            Delivery::Lost { .. } | Delivery::Connected { .. } => {}
        }
    }
    all
}

fn ask(world: &mut World, connection: ConnectionId, words: &[&str]) -> String {
    world.send(connection, 1, vec![request(words)]);
    let mut all = replies(world, 10 * MS);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).1
}

#[test]
fn a_replica_has_what_its_primary_has_and_refuses_writes() {
    let mut world = servers();
    let (primary, replica) = (dial(&mut world, 0), dial(&mut world, 3));
    assert_eq!(ask(&mut world, primary, &["RPUSH", "k", "a", "b"]), ":2\r\n");
    let script = "redis.call('rpush', KEYS[1], ARGV[1]) return ARGV[1]";
    assert_eq!(ask(&mut world, primary, &["EVAL", script, "1", "k", "c"]), "$1\r\nc\r\n");
    assert_eq!(ask(&mut world, primary, &["BLPOP", "k", "0"]), "*2\r\n$1\r\nk\r\n$1\r\na\r\n");
    assert_eq!(ask(&mut world, replica, &["LRANGE", "k", "0", "-1"]), "*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
    assert!(ask(&mut world, replica, &["DEL", "k"]).starts_with("-READONLY "));
}

#[test]
fn who_waits_is_served_in_order_and_what_follows_waits_too() {
    let mut world = servers();
    let (first, second, other) = (dial(&mut world, 0), dial(&mut world, 0), dial(&mut world, 0));
    world.send(first, 1, vec![request(&["BLPOP", "k", "0"])]);
    world.send(first, 2, vec![request(&["PING"])]);
    assert_eq!(replies(&mut world, 10 * MS), []);
    world.send(second, 3, vec![request(&["BLPOP", "k", "0.05"])]);
    assert_eq!(replies(&mut world, 10 * MS), []);
    world.send(other, 4, vec![request(&["RPUSH", "k", "v"])]);
    let mut came = replies(&mut world, 10 * MS);
    came.sort();
    let element = "*2\r\n$1\r\nk\r\n$1\r\nv\r\n".to_owned();
    assert_eq!(came, [(1, element), (2, "+PONG\r\n".to_owned()), (4, ":1\r\n".to_owned())]);
    assert_eq!(replies(&mut world, SECOND), [(3, "*-1\r\n".to_owned())]);
}

#[test]
fn a_key_that_was_watched_and_changed_undoes_a_transaction() {
    let mut world = servers();
    let (first, second) = (dial(&mut world, 0), dial(&mut world, 0));
    for (is_changed, expected) in [(false, "*1\r\n+OK\r\n"), (true, "*-1\r\n")] {
        assert_eq!(ask(&mut world, first, &["WATCH", "k"]), "+OK\r\n");
        if is_changed {
            ask(&mut world, second, &["SET", "k", "2"]);
        }
        let block = vec![request(&["MULTI"]), request(&["SET", "k", "1"]), request(&["EXEC"])];
        world.send(first, 1, block);
        assert_eq!(replies(&mut world, 10 * MS), [(1, format!("+OK\r\n+QUEUED\r\n{expected}"))]);
    }
}

#[test]
fn nothing_on_a_connection_is_left_out_or_overtaken() {
    let mut world = servers();
    let connection = dial(&mut world, 0);
    world.inject(Fault::Unreachable(0, 300 * MS));
    world.send(connection, 1, vec![request(&["RPUSH", "k", "a"])]);
    assert_eq!(replies(&mut world, 299 * MS), []);
    // These come before the first is sent again.
    world.send(connection, 2, vec![request(&["RPUSH", "k", "b"])]);
    assert_eq!(replies(&mut world, MS), []);
    world.send(connection, 3, vec![request(&["RPUSH", "k", "c"])]);
    let expected = [(1, ":1\r\n"), (2, ":2\r\n"), (3, ":3\r\n")].map(|(tag, reply)| (tag, reply.to_owned()));
    assert_eq!(replies(&mut world, SECOND), expected);
}

#[test]
fn what_was_sent_before_a_close_comes_or_does_not() {
    for is_closed in [false, true] {
        let mut world = servers();
        let (first, second) = (dial(&mut world, 0), dial(&mut world, 0));
        world.keep_journal();
        world.send(first, 1, vec![request(&["RPUSH", "k", "a"])]);
        if is_closed {
            world.close(first)
        } else {
            world.hang_up(first)
        }
        assert_eq!(replies(&mut world, 10 * MS), [], "no client is told");
        let expected = if is_closed { ":0\r\n" } else { ":1\r\n" };
        assert_eq!(ask(&mut world, second, &["LLEN", "k"]), expected);
        let journal = world.take_journal();
        assert_eq!(journal.len(), 2 - usize::from(is_closed));
        assert!(journal.iter().all(|done| done.node == 0 && !done.is_refused));
    }
}

#[test]
fn a_server_that_returns_is_a_replica_of_its_successor() {
    let mut world = servers();
    let connection = dial(&mut world, 0);
    ask(&mut world, connection, &["RPUSH", "k", "a"]);
    world.inject(Fault::Crash(0, 4 * SECOND));
    assert_eq!(replies(&mut world, SECOND), [(0, "ended".to_owned())]);
    let address = world.address(0);
    world.dial(&address);
    assert_eq!(replies(&mut world, 2 * SECOND), [(0, "refused".to_owned())]);
    assert_eq!((world.owner(0), world.primary_of(3)), (3, 3));
    let next = dial(&mut world, 3);
    assert_eq!(ask(&mut world, next, &["RPUSH", "k", "b"]), ":2\r\n");
    replies(&mut world, 2 * SECOND);
    assert_eq!(world.primary_of(0), 3);
    let back = dial(&mut world, 0);
    assert_eq!(ask(&mut world, back, &["LLEN", "k"]), ":2\r\n");
    assert!(ask(&mut world, back, &["RPUSH", "k", "c"]).starts_with("-READONLY "));
}
