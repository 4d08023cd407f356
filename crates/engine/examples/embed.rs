//! The data store in a program of one's own, without a socket, a thread or a clock: requests go in as words, replies come out as
//! bytes, and what time it is, is an argument.

use respool_command::{Execute, Millis, Outcome, SessionView, WaitId, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// A store, and the session that asks it.
struct Store {
    engine: Engine,
    session: SessionView,
}

impl Store {
    fn new(now: Millis) -> Self {
        // The seed decides the order of SCAN and what RANDOMKEY answers; a program that others can reach draws it by chance.
        Self {
            engine: Engine::new(EngineConfig::default(), [1, 2]),
            session: SessionView { now, ..SessionView::default() },
        }
    }

    /// The reply, or the number under which a request waits.
    fn ask(&mut self, request: &str) -> Result<String, WaitId> {
        let args: ArgsBuf = request.split(' ').collect();
        let row = resolve(args.as_args()).expect("the command exists");
        assert!(row.accepts(args.as_args().len()), "the caller checks the number of arguments");
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
        match self.engine.execute(row, args.as_args(), &mut self.session, &mut encoder) {
            Outcome::Parked(wait) => Err(wait),
            Outcome::Done => Ok(String::from_utf8_lossy(&reply).into_owned()),
            // Only scripts are left and asked again, and none is run here.
            Outcome::Unfinished | Outcome::Stopped | Outcome::Asks => unreachable!("no script is run"),
        }
    }

    /// Requests that wait and have become ready, with their replies.
    fn served(&mut self) -> Vec<(WaitId, String)> {
        let mut served = Vec::new();
        let mut reply = Vec::new();
        while let Some(wait) = self.engine.poll_ready(self.session.now, &mut reply) {
            served.push((wait, String::from_utf8_lossy(&std::mem::take(&mut reply)).into_owned()));
        }
        served
    }

    /// Time passes. Keys expire when they are looked at, or when the engine is given a moment, which it asks for.
    fn pass(&mut self, ms: u64) -> Option<Millis> {
        self.session.now.0 += ms;
        self.engine.tick(self.session.now)
    }
}

pub(crate) fn main() {
    let mut store = Store::new(Millis(1_700_000_000_000));
    assert_eq!(store.ask("ZADD board 3 ann 5 bob"), Ok(":2\r\n".to_owned()));
    assert_eq!(store.ask("ZRANGE board 0 0 REV"), Ok("*1\r\n$3\r\nbob\r\n".to_owned()));
    assert_eq!(
        store.ask("INCR board"),
        Ok("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n".to_owned())
    );

    // A key with a deadline, and a clock that is a number.
    assert_eq!(store.ask("SET session here PX 1500"), Ok("+OK\r\n".to_owned()));
    assert!(store.pass(1_499).is_some(), "it wants to be called again");
    assert_eq!(store.ask("PTTL session"), Ok(":1\r\n".to_owned()));
    // As in Redis, it is there to the end of the millisecond of its deadline.
    store.pass(2);
    assert_eq!(store.ask("EXISTS session"), Ok(":0\r\n".to_owned()));
    assert_eq!(store.engine.keyspace_size(0).keys, 1, "the sorted set is left");

    // Who waits is parked. When its timeout is over is the caller's business (`Execute::cancel`).
    let wait = store.ask("BLPOP jobs 0").expect_err("there is no job");
    assert_eq!(store.served(), []);
    assert_eq!(store.ask("RPUSH jobs sweep"), Ok(":1\r\n".to_owned()));
    assert_eq!(store.served(), [(wait, "*2\r\n$4\r\njobs\r\n$5\r\nsweep\r\n".to_owned())]);
    println!("{} bytes hold {} keys", store.engine.used_bytes(), store.engine.keyspace_size(0).keys);
}
