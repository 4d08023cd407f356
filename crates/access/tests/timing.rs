//! T-TIMING: how long it takes to find a password wrong says nothing of what is wrong with it.
//!
//! Compared are medians of attempts that take turns, so that whatever else the machine does happens to all of them alike.

#![expect(clippy::disallowed_types, reason = "a test of how long something takes has to look at the clock")]

use std::hint::black_box;
use std::time::Instant;

use respool_access::Users;

/// Attempts of each kind.
const ATTEMPTS: usize = 20_000;
/// How much longer than another one kind may take: what is left to noise. A comparison that ends at the first difference
/// of passwords, or a user that is not looked at, is beyond it.
const SHARE_MAX: f64 = 1.25;

#[test]
fn a_wrong_password_takes_as_long_as_any() {
    let rules: &[&[u8]] = &[b"on", b">correct horse battery staple", b">another one of some length"];
    let users = Users::new().with_rules(b"existing", rules).expect("the rules are valid");
    let kinds: [(&str, &[u8], &[u8]); 5] = [
        ("right", b"existing", b"correct horse battery staple"),
        ("wrong in the first byte", b"existing", b"Xorrect horse battery staple"),
        ("wrong in the last byte", b"existing", b"correct horse battery staplX"),
        ("nothing right", b"existing", b"~~~~~~~~~~~~~~~~~~~~~~~~~~~~"),
        ("no such user", b"missing!", b"correct horse battery staple"),
    ];
    let mut took: [Vec<u64>; 5] = std::array::from_fn(|_| Vec::with_capacity(ATTEMPTS));
    for round in 0..ATTEMPTS {
        for turn in 0..kinds.len() {
            let kind = (round + turn) % kinds.len();
            let (_, name, password) = kinds[kind];
            let started = Instant::now();
            black_box(users.authenticate(black_box(name), black_box(password)).is_some());
            took[kind].push(started.elapsed().as_nanos() as u64);
        }
    }
    let medians: Vec<(&str, u64)> = kinds
        .iter()
        .zip(&mut took)
        .map(|((name, ..), took)| {
            took.sort_unstable();
            (*name, took[ATTEMPTS / 2])
        })
        .collect();
    let least = medians.iter().map(|(_, median)| *median).min().unwrap_or(1).max(1);
    for (name, median) in &medians {
        assert!(*median as f64 <= least as f64 * SHARE_MAX, "{name} takes {median} ns: {medians:?}");
    }
}
