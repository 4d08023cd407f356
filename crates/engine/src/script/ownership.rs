//! What a script may reach where this engine is one of several that share the keys of a server.
//!
//! The planner sends a request to the engine that holds the keys which the request names. A script may go on to name any other
//! key, which the planner does not see: it would be created here, where no other request ever looks for it. So a command that
//! a script calls is refused if it names a key or a channel of another engine, or is about the keys of all engines.

use respool_command::{Categories, Command, KeyPositions, PubsubCommand, Row, ServerCommand, Way};
use respool_wire::Args;

use super::text;
use crate::commands::Fault;

/// Whether a key, or a channel, is this engine's.
pub(crate) type Owns = Box<dyn Fn(&[u8]) -> bool + Send>;

/// The share of an engine in the keys of a server.
#[derive(Default)]
pub(super) struct Ownership {
    /// `None`: there is no other engine.
    owns: Option<Owns>,
    /// Kept for its memory.
    positions: KeyPositions,
}

impl Ownership {
    pub(super) fn set(&mut self, owns: Owns) {
        self.owns = Some(owns);
    }

    /// Whether a script may call a command that it may call if there is one engine.
    pub(super) fn check(&mut self, row: &'static Row, args: Args<'_>) -> Result<(), Fault> {
        let Some(owns) = &self.owns else { return Ok(()) };
        if matches!(row.command, Command::Pubsub(PubsubCommand::Publish | PubsubCommand::Spublish)) {
            return if owns(args.at(1)) { Ok(()) } else { Err(text::CHANNEL_ELSEWHERE.into()) };
        }
        if row.keys.is_none() {
            return match row.way(args) {
                Some(Way::KeysFrom(first)) if args.from(first).iter().all(owns) => Ok(()),
                Some(Way::KeysFrom(_)) => Err(text::KEY_ELSEWHERE.into()),
                Some(Way::AllNodes) => Err(text::ALL_ENGINES.into()),
                None if is_about_all(row) => Err(text::ALL_ENGINES.into()),
                None => Ok(()),
            };
        }
        self.positions.clear();
        // A request whose keys cannot be found is refused by the command itself.
        if row.keys.positions(args, &mut self.positions).is_err() {
            return Ok(());
        }
        if self.positions.has_unnamed() {
            return Err(text::UNNAMED_KEYS.into());
        }
        let is_elsewhere = |index: u32| args.get(index as usize).is_some_and(|key| !owns(key));
        match self.positions.iter().any(|position| is_elsewhere(position.index)) {
            true => Err(text::KEY_ELSEWHERE.into()),
            false => Ok(()),
        }
    }
}

/// Whether a command without keys is about what is in all engines: keys, subscriptions, what `DEBUG` shows and switches. Others that
/// all engines are asked, such as `PING`, are answered by any of them.
fn is_about_all(row: &Row) -> bool {
    let is_about_all = row.categories.has(Categories::KEYSPACE)
        || matches!(row.command, Command::Pubsub(_) | Command::Server(ServerCommand::Debug));
    is_about_all && row.word() != "HELP"
}

#[cfg(test)]
mod tests {
    use crate::Engine;
    use respool_command::{Command, Execute, Flags, KeyPositions, Millis, Outcome, Row, SessionView, all, resolve};
    use respool_wire::{Args, ArgsBuf, Encoder, Protocol};

    /// An engine that owns what does not begin with `o`.
    fn engine() -> Engine {
        Engine::new(crate::EngineConfig::default(), [1, 2]).with_key_owner(|name| !name.starts_with(b"o"))
    }

    fn ask(engine: &mut Engine, words: &[&str]) -> String {
        let args: ArgsBuf = words.iter().copied().collect();
        let row = resolve(args.as_args()).expect("it is a command");
        let mut view = SessionView { now: Millis(1_000), ..SessionView::default() };
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
        let outcome = engine.execute(row, args.as_args(), &mut view, &mut encoder);
        assert_eq!(outcome, Outcome::Done, "{words:?}");
        String::from_utf8_lossy(&reply).into_owned()
    }

    #[test]
    fn a_script_reaches_keys_of_its_engine_alone() {
        let mut engine = engine();
        assert_eq!(ask(&mut engine, &["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"]), "+OK\r\n");
        for (script, refusal) in [
            ("return redis.call('set', 'mine', 1)", None),
            ("return redis.call('mget', 'mine', 'mine2')", None),
            ("return redis.call('set', 'other', 1)", Some("another engine")),
            ("return redis.call('mget', 'mine', 'other')", Some("another engine")),
            ("return redis.call('rename', 'mine', 'other')", Some("another engine")),
            ("return redis.call('sort', 'mine', 'by', '*', 'get', '#')", Some("pattern")),
            ("return redis.call('publish', 'other', 'x')", Some("another engine")),
            ("return redis.call('dbsize')", Some("all engines")),
            ("return redis.call('flushall')", Some("all engines")),
            ("return redis.call('scan', 0)", Some("all engines")),
            ("return redis.call('randomkey')", Some("all engines")),
            ("return redis.call('keys', '*')", Some("all engines")),
            ("return redis.call('swapdb', 0, 1)", Some("all engines")),
            ("return redis.call('pubsub', 'channels')", Some("all engines")),
            ("return redis.call('pubsub', 'numsub', 'mine')", Some("all engines")),
            ("return redis.call('debug', 'populate', 10)", Some("all engines")),
            ("return redis.call('debug', 'set-active-expire', 0)", Some("all engines")),
            ("return redis.call('debug', 'digest')", Some("all engines")),
            ("return redis.call('debug', 'digest-value', 'mine', 'other')", Some("another engine")),
            ("return redis.call('debug', 'digest-value', 'mine', 'mine2')", None),
            ("return redis.call('object', 'help')", None),
            ("return redis.call('ping')", None),
        ] {
            let reply = ask(&mut engine, &["EVAL", script, "0"]);
            match refusal {
                None => assert!(!reply.starts_with('-'), "{script}: {reply}"),
                Some(words) => assert!(reply.starts_with("-CROSSSLOT ") && reply.contains(words), "{script}: {reply}"),
            }
        }
        assert_eq!(ask(&mut engine, &["DBSIZE"]), ":1\r\n", "what was refused has changed nothing");
    }

    #[test]
    fn a_script_hears_of_a_key_elsewhere_by_pcall() {
        let mut engine = engine();
        let script = "local r = redis.pcall('get', 'other'); return r.err";
        assert!(ask(&mut engine, &["EVAL", script, "0"]).contains("CROSSSLOT"));
        let script = "redis.call('set', 'mine', 1); redis.call('set', 'other', 1)";
        assert!(ask(&mut engine, &["EVAL", script, "1", "mine"]).starts_with("-CROSSSLOT"));
        assert_eq!(ask(&mut engine, &["GET", "mine"]), "$1\r\n1\r\n", "as in Redis, what it has written stays");
    }

    /// Words that make requests of any command, right and wrong ones.
    const WORDS: &[&str] = &[
        "mine",
        "mine2",
        "other",
        "other2",
        "0",
        "1",
        "2",
        "3",
        "-1",
        "+1",
        "01",
        "STORE",
        "STOREDIST",
        "STREAMS",
        "LIMIT",
        "BY",
        "GET",
        "COUNT",
        "GROUP",
        "FIELDS",
        "KEYS",
        "NX",
        "XX",
        "nosort",
        "*",
        "LEFT",
        "RIGHT",
        "MIN",
        "x",
        "$",
        "0-1",
        "km",
        "AND",
        "DB",
    ];

    /// Requests of every command that scripts may call, from this seed.
    fn requests(seed: u64, count: usize) -> impl Iterator<Item = (&'static Row, ArgsBuf)> {
        // Messages are the host's to pass on, which is none here.
        let is_meant = |row: &&Row| {
            !row.is_container() && !row.flags.has(Flags::NOSCRIPT) && !matches!(row.command, Command::Pubsub(_))
        };
        let rows: Vec<&'static Row> = all().filter(is_meant).collect();
        let mut state = seed;
        let mut below = move |bound: usize| {
            // Knuth's multiplier; the low bits are the least random.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        (0..count).map(move |_| {
            let row = rows[below(rows.len())];
            let mut args: ArgsBuf = row.name.split(' ').collect();
            let least = row.arity.unsigned_abs() as usize;
            let more = if row.arity < 0 { below(6) } else { 0 };
            while args.as_args().len() < least + more {
                args.push(WORDS[below(WORDS.len())].as_bytes());
            }
            (row, args)
        })
    }

    fn call(engine: &mut Engine, request: Args<'_>) -> String {
        let words: Vec<&str> = ["EVAL", "return redis.pcall(unpack(ARGV))", "0"]
            .into_iter()
            .chain(request.iter().map(|word| std::str::from_utf8(word).expect("they are texts")))
            .collect();
        ask(engine, &words)
    }

    /// What [`Ownership::check`] lets pass because no key can be found in it.
    #[test]
    fn a_request_without_findable_keys_is_refused_by_its_command() {
        let mut engine = Engine::new(crate::EngineConfig::default(), [1, 2]);
        let (mut positions, mut unfound) = (KeyPositions::default(), 0);
        for (row, request) in requests(7, 40_000) {
            let args = request.as_args();
            if row.keys.is_none() || row.keys.positions(args, &mut positions).is_ok() {
                continue;
            }
            unfound += 1;
            let reply = call(&mut engine, args);
            assert!(reply.starts_with('-'), "{}: {reply}", shown(args));
        }
        assert!(unfound > 1_000, "{unfound} requests with keys that cannot be found");
    }

    fn shown(args: Args<'_>) -> String {
        args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn no_command_of_a_script_reaches_a_key_elsewhere() {
        let mut engine = engine();
        // Requests that no script sends are sent to the right engine already, and are not looked at.
        ask(&mut engine, &["SET", "other", "SECRET"]);
        ask(&mut engine, &["RPUSH", "other2", "SECRET", "3"]);
        let elsewhere = ["DEBUG", "DIGEST-VALUE", "other", "other2"];
        let digest = ask(&mut engine, &elsewhere);
        let mut done = 0;
        for (_, request) in requests(8, 40_000) {
            let reply = call(&mut engine, request.as_args());
            done += usize::from(!reply.starts_with('-'));
            assert!(!reply.contains("SECRET"), "{}: {reply}", shown(request.as_args()));
            let keys = ask(&mut engine, &["KEYS", "o*"]);
            assert!(keys.starts_with("*2"), "{}: {keys}", shown(request.as_args()));
        }
        assert_eq!(ask(&mut engine, &elsewhere), digest);
        assert!(done > 1_000, "{done} requests did something");
    }
}
