//! What a test server has when it is stopped, for the next start.

use respool_wire::Value;

use super::database::{Busy, bytes, keys};
use super::engines::{Engine, databases_of, visit, visit_each};
use crate::builder::Server;

/// The data of each engine, in their order: the next start has as many, and each has the same keys.
#[derive(Debug)]
pub(super) struct Kept(Result<Vec<OfEngine>, Busy>);

impl Default for Kept {
    fn default() -> Self {
        Self(Ok(Vec::new()))
    }
}

#[derive(Debug, Default)]
struct OfEngine {
    functions: Vec<u8>,
    keys: Vec<KeptKey>,
}

#[derive(Debug)]
struct KeptKey {
    database: u32,
    key: Vec<u8>,
    /// When it expires, in milliseconds since the epoch; 0: never.
    deadline_ms: i64,
    payload: Vec<u8>,
}

impl Kept {
    /// What a server has.
    pub(super) fn of(server: &Server) -> Self {
        let databases = databases_of(server);
        let of_engines = visit(server, move |engine| {
            let functions = bytes(engine.look(0, ["FUNCTION", "DUMP"]));
            let keys = (0..databases).map(|database| kept_keys(engine, database)).collect::<Result<Vec<_>, _>>()?;
            Ok(OfEngine { functions, keys: keys.into_iter().flatten().collect() })
        });
        Self(of_engines.into_iter().collect())
    }

    /// Gives it to a server that has just started. `Err`: a script was under way when it was to be kept.
    pub(super) fn give_to(self, server: &Server) -> Result<(), Busy> {
        visit_each(server, self.0?, OfEngine::give_to);
        Ok(())
    }
}

fn kept_keys(engine: &mut Engine<'_>, database: u32) -> Result<Vec<KeptKey>, Busy> {
    let keys = keys(engine, database)?.into_iter();
    let kept = keys.filter_map(|key| {
        let payload = match engine.look(database, [&b"DUMP"[..], &key]) {
            Value::Bulk(payload) => payload,
            _ => return None,
        };
        let deadline_ms = match engine.look(database, [&b"PEXPIRETIME"[..], &key]) {
            Value::Integer(ms) => ms.max(0),
            _ => 0,
        };
        Some(KeptKey { database, key, deadline_ms, payload })
    });
    Ok(kept.collect())
}

impl OfEngine {
    fn give_to(engine: &mut Engine<'_>, this: Self) {
        if !this.functions.is_empty() {
            engine.run(0, [&b"FUNCTION"[..], b"RESTORE", &this.functions]);
        }
        for KeptKey { database, key, deadline_ms, payload } in this.keys {
            let deadline = deadline_ms.to_string();
            let words: [&[u8]; 6] = [b"RESTORE", &key, deadline.as_bytes(), &payload, b"ABSTTL", b"REPLACE"];
            let reply = engine.run(database, words);
            debug_assert_eq!(reply, Value::Simple(b"OK".to_vec()), "what was dumped can be restored");
        }
    }
}
