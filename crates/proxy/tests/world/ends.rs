//! What is looked at once a seeded world has ended.

use super::World;
use respool_connection::{ConnId, Machine};

/// Every client has been answered all that it asked.
pub(super) fn none_is_blocked(world: &World, seed: u64) {
    for client in world.clients.values() {
        let first = client.expected.front().map(|expected| {
            let right = expected.right();
            String::from_utf8_lossy(&right[..right.len().min(100)]).into_owned()
        });
        let count = client.expected.len();
        assert!(first.is_none(), "seed {seed}: client {} still waits for {count} replies: {first:?}", client.name);
    }
}

/// All clients leave: nothing is held or counted for any of them.
pub(super) fn all_leave(world: &mut World, seed: u64) {
    for index in world.clients.keys().copied().collect::<Vec<_>>() {
        world.worker.handle_broken(ConnId::client(index), "gone");
    }
    world.clients.clear();
    for _ in 0..60 {
        world.now_us += 20_000;
        world.turn(true);
    }
    assert_eq!(world.shared.ledger.held_bytes(), 0, "seed {seed}");
    assert_eq!(world.shared.ledger.clients(), 0, "seed {seed}");
    assert_eq!(world.shared.counters[0].pinned.value(), 0, "seed {seed}");
    assert_eq!(world.shared.counters[0].blocked_clients.value(), 0, "seed {seed}");
    assert_eq!(world.worker.remains(), [], "seed {seed}");
}
