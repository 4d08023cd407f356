//! A connection on which nothing arrives for a while, though neither side ends it: what was sent elsewhere meanwhile must not arrive there later.

use super::*;

/// For how long nothing arrives: calls wait for a node for a second before the others are asked.
const STALL: u64 = 8 * SECOND;

impl Run {
    /// A key that is at a node, to which nothing of the client arrives from now on for longer than calls wait for it. Its slot goes to another node
    /// meanwhile, which is given, too.
    fn stall(&mut self) -> (String, u16, usize) {
        let key = self.fresh_keys(0).key("x");
        let slot = slot_of(key.as_bytes());
        self.write(&key, 1);
        let home = self.links.world.owner(slot);
        self.inject(Fault::Stalled(home, STALL));
        self.inject(Fault::Migrate(slot, (home + 1) % PRIMARIES));
        (key, slot, home)
    }

    fn write(&mut self, key: &str, value: u64) {
        let ended = self.call(cmd("SET").key(key).arg(value).idempotent());
        let is_ok =
            matches!(&ended, Ok(ended) if matches!(&ended[..], [Ended::Reply(Reply::Status(ok))] if ok == "OK"));
        assert!(is_ok, "seed {}: {ended:?}", self.seed);
    }
}

#[test]
fn a_write_sent_elsewhere_is_not_executed_where_it_was_first() {
    let mut total = Total::new("a_write_sent_elsewhere_is_not_executed_where_it_was_first");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::Primary);
        let began_us = run.now();
        let (key, slot, home) = run.stall();
        run.write(&key, 2);
        run.write(&key, 3);
        assert_ne!(run.links.world.owner(slot), home, "seed {seed}: both were acknowledged by the other node");
        run.inject(Fault::Migrate(slot, home));
        run.pass(SECOND);
        let (owner, passed_us) = (run.links.world.owner(slot), run.now() - began_us);
        assert!(
            owner == home && passed_us < STALL,
            "seed {seed}: it is back before the first arrives: {owner} {passed_us}"
        );
        run.pass(STALL);
        assert_eq!(run.links.world.value(key.as_bytes()), Some(b"3".to_vec()), "seed {seed}");
        total.figures.add(&run.end().1);
    }
}

#[test]
fn a_read_that_is_sent_elsewhere_ends_no_connection() {
    let mut total = Total::new("a_read_that_is_sent_elsewhere_ends_no_connection");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::Primary);
        let (key, ..) = run.stall();
        let ended = run.call(cmd("GET").key(&key));
        let is_read =
            matches!(&ended, Ok(ended) if matches!(&ended[..], [Ended::Reply(Reply::Bulk(value))] if value == "1"));
        assert!(is_read && run.links.losses == 0, "seed {seed}: {ended:?}");
        total.figures.add(&run.end().1);
    }
}

#[test]
fn a_silent_connection_of_a_replica_delays_few_reads() {
    let mut total = Total::new("a_silent_connection_of_a_replica_delays_few_reads");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::PreferReplicas);
        let key = run.fresh_keys(0).key("x");
        let owner = run.links.world.owner(slot_of(key.as_bytes()));
        let replica = run.links.world.replica_of(owner).expect("each has one");
        run.write(&key, 1);
        run.pass(SECOND);
        let read = |run: &mut Run| {
            let began_us = run.now();
            let ended = run.call(cmd("GET").key(&key));
            let is_read =
                matches!(&ended, Ok(ended) if matches!(&ended[..], [Ended::Reply(Reply::Bulk(value))] if value == "1"));
            assert!(is_read, "seed {seed}: {ended:?}");
            run.now() - began_us
        };
        assert!(read(&mut run) < PROMPT, "seed {seed}");
        run.inject(Fault::HalfOpen(replica));
        let late = (0..8).filter(|_| read(&mut run) > PROMPT).count();
        assert!(late == 1, "seed {seed}: {late} reads were late, and {} connections ended", run.links.losses);
        total.figures.add(&run.end().1);
    }
}
