//! Transcripts: requests and the replies that must follow, for tests below the code.
//!
//! A line is `request -> reply`. Words of a request are separated by spaces (`''` is an empty one); a reply is what goes
//! over the wire, each end of line written as a space. `@ms` moves the clock on, `#3` and `#2` change the dialect.

use respool_command::{Execute, Millis, SessionView, resolve};
use respool_wire::{ArgsBuf, Encoder, Protocol};

use crate::{Engine, EngineConfig};

/// An engine with a session at a clock of its own.
pub(crate) struct Script {
    pub(crate) engine: Engine,
    pub(crate) session: SessionView,
    protocol: Protocol,
}

impl Script {
    /// A fresh engine, in September 2020.
    pub(crate) fn new() -> Self {
        Self {
            engine: Engine::new(EngineConfig::default(), [1, 2]),
            session: SessionView { now: Millis(1_600_000_000_000), ..SessionView::default() },
            protocol: Protocol::Resp2,
        }
    }

    /// The reply to a request.
    pub(crate) fn send(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("transcripts use commands that exist");
        assert!(row.accepts(words.len()), "{words:?} has the wrong number of arguments");
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, self.protocol);
        _ = self.engine.execute(row, args.as_args(), &mut self.session, &mut reply);
        out
    }

    /// The next parked request that has become ready, and its reply as in [`Script::say`].
    pub(crate) fn served(&mut self) -> Option<(u64, String)> {
        let mut reply = Vec::new();
        let wait = self.engine.poll_ready(self.session.now, &mut reply)?;
        Some((wait.0, String::from_utf8_lossy(&reply).replace("\r\n", " ").trim_end().to_owned()))
    }

    /// The reply to a request written as one line, its line ends as spaces.
    pub(crate) fn say(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(|word| if word == "''" { b"" } else { word.as_bytes() }).collect();
        let reply = self.send(&words);
        String::from_utf8_lossy(&reply).replace("\r\n", " ").trim_end().to_owned()
    }
}

/// Plays a transcript on a fresh engine.
pub(crate) fn play(lines: &str) {
    let mut script = Script::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(millis) = line.strip_prefix('@') {
            script.session.now.0 += millis.parse::<u64>().expect("milliseconds");
        } else if let Some(version) = line.strip_prefix('#') {
            script.protocol = Protocol::from_version(version.parse().expect("a number")).expect("2 or 3");
        } else {
            let (request, expected) = line.split_once(" -> ").expect("a line is request -> reply");
            assert_eq!(script.say(request), expected, "{line}");
        }
    }
}
