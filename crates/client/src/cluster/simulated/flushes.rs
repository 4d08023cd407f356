//! `FLUSHALL` while slots are on their way: what was there before is gone when it has succeeded.

use super::*;

/// So many keys, each in a slot of its own.
const KEYS: usize = 24;

impl Run {
    /// A call by a caller that does nothing else.
    pub(super) fn call(&mut self, command: Command) -> Result<Vec<Ended>, Error> {
        let limit = Some(Duration::from_micros(DEADLINE));
        let mut routed = Routed::new(&self.cluster, &[command], Kind::Each, limit);
        let (woken, until_us) = (Flag::new(), self.now() + DEADLINE + MS);
        let waker = Waker::from(Arc::clone(&woken));
        loop {
            if woken.take()
                && let Poll::Ready(result) = routed.poll(&mut Context::from_waker(&waker))
            {
                return result;
            }
            assert!(self.now() < until_us, "seed {}: a call does not end", self.seed);
            self.step_beside(Some(&woken), until_us, false);
        }
    }

    pub(super) fn pass(&mut self, for_us: u64) {
        let until_us = self.now() + for_us;
        while self.now() < until_us {
            self.step(until_us, false);
        }
    }

    /// Keys of all shards, which are set.
    fn set_keys(&mut self) -> Vec<String> {
        let keys: Vec<String> = (0..KEYS).map(|shard| self.fresh_keys(shard).key("x")).collect();
        for key in &keys {
            let ended = self.call(cmd("SET").key(key).arg(1)).expect("no fault");
            assert!(matches!(&ended[..], [Ended::Reply(Reply::Status(_))]), "seed {}: {ended:?}", self.seed);
        }
        keys
    }

    /// Flushes, lets all slots arrive, and looks for the keys that are left.
    fn flush(&mut self, keys: &[String]) -> Vec<String> {
        let ended = self.call(cmd("FLUSHALL"));
        assert!(
            matches!(&ended, Ok(ended) if matches!(&ended[..], [Ended::Reply(Reply::Status(ok))] if ok == "OK")),
            "seed {}: {ended:?}",
            self.seed
        );
        self.pass(2 * SECOND);
        keys.iter().filter(|key| self.links.world.value(key.as_bytes()).is_some()).cloned().collect()
    }
}

#[test]
fn a_flush_deletes_what_moves_meanwhile() {
    let mut total = Total::new("a_flush_deletes_what_moves_meanwhile");
    for seed in total.seeds.clone() {
        let mut rng = Rng::part(seed, 5);
        let (key_us, hold_us) = (rng.between(50, 4_000) as u64, rng.between(50, 20_000) as u64);
        let mut run = Run::within(WorldTerms { key_us, hold_us, ..WorldTerms::default() }, seed, Reads::Primary);
        let keys = run.set_keys();
        // The nodes answer one after the other, and keys go from those that have not yet to those that have.
        for node in 0..PRIMARIES {
            run.inject(Fault::Slow(node, rng.below(3_000) as u64, SECOND));
        }
        for key in &keys {
            let slot = slot_of(key.as_bytes());
            let to = (run.links.world.owner(slot) + 1 + rng.below(PRIMARIES - 1)) % PRIMARIES;
            run.inject(Fault::Migrate(slot, to));
        }
        let left = run.flush(&keys);
        assert!(left.is_empty(), "seed {seed}: {left:?}");
        total.figures.add(&run.end().1);
    }
}

#[test]
fn a_flush_deletes_what_a_node_had_that_has_left_unasked() {
    let mut total = Total::new("a_flush_deletes_what_a_node_had_that_has_left_unasked");
    // A quarter of all slots moves.
    for seed in total.seeds.clone().step_by(4) {
        let terms = WorldTerms { key_us: 2 * MS, hold_us: 5 * MS, ..WorldTerms::default() };
        let mut run = Run::within(terms, seed, Reads::Primary);
        let keys = run.set_keys();
        let (leaving, heir) = ((seed % 4) as usize, (seed as usize + 1) % PRIMARIES);
        // It cannot be asked before all that it has is with another, which has answered by then.
        run.inject(Fault::Disconnect(leaving));
        run.pass(MS);
        run.inject(Fault::Slow(leaving, 2 * SECOND, 2 * SECOND));
        let own: Vec<u16> = (0..16_384).filter(|slot| run.links.world.owner(*slot) == leaving).collect();
        own.iter().for_each(|slot| run.links.inject(Fault::Migrate(*slot, heir)));
        let left = run.flush(&keys);
        assert!(own.iter().all(|slot| run.links.world.owner(*slot) == heir), "seed {seed}");
        assert!(left.is_empty(), "seed {seed}: {left:?}");
        total.figures.add(&run.end().1);
    }
}

#[test]
fn a_flush_that_was_done_once_is_not_told_as_never_sent() {
    let mut run = Run::new(1, Reads::Primary);
    let keys = run.set_keys();
    let limit = Some(Duration::from_micros(SECOND));
    let mut routed = Routed::new(&run.cluster, &[cmd("FLUSHALL")], Kind::Each, limit);
    let mut poll = || routed.poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    // All have done it, and its time is over when its caller looks again.
    run.pass(2 * SECOND);
    let Poll::Ready(Err(error)) = poll() else { panic!("there was no time for the second round") };
    assert_eq!(error.outcome(), Outcome::MaybeExecuted, "{error:?}");
    assert!(keys.iter().all(|key| run.links.world.value(key.as_bytes()).is_none()));
}
