//! What a script may reach where this engine is one of several that share the keys of a server.
//!
//! The planner sends a request to the engine that holds the keys which the request names. A script may go on to name any other
//! key, which the planner does not see: it would be created here, where no other request ever looks for it. So a command that
//! a script calls is refused if it names a key or a channel of another engine, or is about the keys of all engines.

use respool_command::{Categories, Command, KeyPositions, PubsubCommand, Row};
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
            // Others that all engines are asked, such as PING, are answered by any of them.
            let is_about_all = row.categories.has(Categories::KEYSPACE);
            return if is_about_all { Err(text::ALL_KEYS.into()) } else { Ok(()) };
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

#[cfg(test)]
mod tests {
    use crate::Engine;
    use respool_command::{Execute, Millis, Outcome, SessionView, resolve};
    use respool_wire::{ArgsBuf, Encoder, Protocol};

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
}
