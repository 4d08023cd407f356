//! An engine with one session, told requests as a redis-server is. Shared by the tests that compare both.

use std::time::{SystemTime, UNIX_EPOCH};

use respool_command::{Execute, Millis, Outcome, SessionView, resolve, text};
use respool_engine::{Engine, EngineConfig};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// Commands between two comparisons of the sum of what is held with a walk over all of it.
const COMMANDS_PER_WALK: usize = 16;

/// One request: its arguments.
pub(crate) type Request = Vec<Vec<u8>>;

/// A number that the environment says.
pub(crate) fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// The time that the server lives in.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    Millis(since.as_millis() as u64)
}

/// A request as readers see it, long words cut.
pub(crate) fn shown(request: &[Vec<u8>]) -> String {
    let words = request.iter().map(|word| match word.len() {
        0 => "''".to_owned(),
        1..=80 => word.escape_ascii().to_string(),
        len => format!("{}...({len} bytes)", word[..20].escape_ascii()),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// An engine with one session, at the time of the wall clock.
pub(crate) struct Subject {
    pub(crate) engine: Engine,
    pub(crate) session: SessionView,
    protocol: Protocol,
    commands: usize,
}

impl Subject {
    pub(crate) fn new(protocol: Protocol) -> Self {
        let engine = Engine::new(EngineConfig::default(), [7, 11]);
        Self { engine, session: SessionView::default(), protocol, commands: 0 }
    }

    /// What is held is what a walk over every key finds.
    fn check_bytes(&mut self, request: &[Vec<u8>]) {
        self.commands += 1;
        #[cfg(debug_assertions)]
        if self.commands.is_multiple_of(COMMANDS_PER_WALK) {
            assert_eq!(self.engine.used_bytes(), self.engine.walked_bytes(), "after {}", shown(request));
        }
    }

    /// The reply to a request.
    pub(crate) fn command(&mut self, request: &[Vec<u8>]) -> Vec<u8> {
        self.session.now = now();
        let args: ArgsBuf = request.iter().collect();
        let args = args.as_args();
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, self.protocol);
        let mut refusal = Vec::new();
        match resolve(args) {
            Ok(row) if row.accepts(args.len()) => {
                // Redis has waited in vain; the engine leaves the waiting to others, who answer so in the end.
                if let Outcome::Parked(wait) = self.engine.execute(row, args, &mut self.session, &mut reply) {
                    self.engine.cancel(wait);
                    reply.truncate(0);
                    reply.null_array();
                }
            }
            Ok(row) => text::wrong_arity(row, &mut refusal),
            Err(unknown) => unknown.write_text(args, &mut refusal),
        }
        if !refusal.is_empty() {
            reply.error(&refusal);
        }
        self.check_bytes(request);
        out
    }
}
