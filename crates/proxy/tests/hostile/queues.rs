//! What waits for a node lies in several buffers: it leaves in order, all of it in the turn in which the node takes it, and what does not fit
//! when there is room again.

use crate::bench::{Bench, request};
use crate::support::config;

/// Several buffers' worth.
const SETS: usize = 1_500;

fn sets() -> String {
    let set = |number: usize| request(&["SET", "key", &format!("{number:0>100}")]);
    (0..SETS).flat_map(set).map(char::from).collect()
}

#[test]
fn a_node_that_takes_everything_gets_it_in_one_turn() {
    let (mut bench, client, node) = Bench::connected(config(1, 1));
    let sets = sets();
    bench.send(client, sets.as_bytes());
    assert!(bench.heard(node) == sets, "all, in order");
    bench.send(node, "+OK\r\n".repeat(SETS).as_bytes());
    assert_eq!(bench.heard(client).len(), 5 * SETS);
}

#[test]
fn a_node_that_takes_a_part_gets_the_rest_when_it_has_room() {
    let (mut bench, client, node) = Bench::connected(config(1, 1));
    let sets = sets();
    for room in [0, 1, 65_000, 100_000] {
        bench.read_on(node, room);
        bench.send(client, sets.as_bytes());
        let mut heard = bench.heard(node);
        assert!(sets.starts_with(&heard) && heard.len() <= room, "{} bytes", heard.len());
        bench.turn(|_| ());
        assert_eq!(bench.heard(node), "", "its socket is full");
        bench.read_on(node, 60_000);
        heard.push_str(&bench.heard(node));
        assert_eq!(heard.len(), room + 60_000);
        bench.read_on(node, usize::MAX);
        heard.push_str(&bench.heard(node));
        assert!(heard == sets, "all, in order");
        bench.send(node, "+OK\r\n".repeat(SETS).as_bytes());
        assert_eq!(bench.heard(client).len(), 5 * SETS);
    }
}

#[test]
fn requests_for_a_node_that_is_not_there_leave_when_it_is() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    let sets = sets();
    bench.send(client, sets.as_bytes());
    let node = bench.connect()[0];
    assert!(bench.heard(node) == sets, "all, in order");
}
