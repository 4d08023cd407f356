//! A script of the engine in this process that has become late.

use crate::engines::late::LateMark;
use crate::ids::{Asker, ClientHandle, ClientNumber};
use respool_command::Row;
use respool_wire::ArgsBuf;

/// A script that has become late.
#[derive(Debug)]
pub(crate) struct LateScript {
    /// The place of its reply, and the client that waits for it.
    pub(crate) asker: Asker,
    /// The client, as the engine knows it.
    pub(crate) id: ClientNumber,
    pub(crate) row: &'static Row,
    pub(crate) database: u32,
    /// The request, for the slow log.
    pub(crate) args: ArgsBuf,
    /// What it has taken so far.
    pub(crate) us: u64,
    /// While this is there, no worker changes all engines.
    pub(crate) mark: LateMark,
}

impl LateScript {
    /// Whether a client waits for it.
    pub(crate) fn is_of(&self, client: ClientHandle) -> bool {
        self.asker.session == client
    }

    /// The reply to others.
    pub(crate) fn busy(&self) -> &'static str {
        self.mark.busy
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::env_with_engine;
    use respool_command::text as texts;

    #[test]
    fn others_are_told_whether_a_script_or_a_function_runs() {
        for (said, busy) in [
            ("EVAL s 0", texts::BUSY_SCRIPT),
            ("EVALSHA h 0", texts::BUSY_SCRIPT),
            ("FCALL f 0", texts::BUSY_FUNCTION),
            ("FCALL_RO f 0", texts::BUSY_FUNCTION),
        ] {
            let mut env = env_with_engine();
            let [waits, other] = [(), ()].map(|()| env.test_client());
            let late = env.test_late_script(waits, said);
            assert_eq!(late.busy(), busy, "{said}");
            let handle = |client| env.clients.sessions.handle(client).expect("it is there");
            assert!(late.is_of(handle(waits)) && !late.is_of(handle(other)));
        }
    }
}
