//! Every state in which a session holds more than its share of the shared lanes, in one drawing, and how all of them end.
//!
//! ```text
//!                      .---------------------------------------------------------------------------.
//!                      |                                 sharing                                    |
//!                      '---------------------------------------------------------------------------'
//!    MULTI |  WATCH |     BLPOP .. |   1 MB |   session mode |   REPLCONF |  SYNC, MONITOR |   SUBSCRIBE |
//!          v        v              v        v                v            v                v            v
//!     [queueing] [watching]    [waiting] [large]         [owning]   [preparing] ----> [asking]    [subscribed]
//!          |        |              |        |                |            ^   refused      | agreed      |
//!     EXEC |   MULTI, EXEC         |        |                |            '----------------|             |
//!          v        v              |        |                |                             v             |
//!        [executing]               |        |                |                   [following, monitoring]  |
//!          |                       |        |                |                             |             |
//!          '------- reply ---------'  quiet '- other mode ---'        RESET, node's end: closed    count 0
//! ```
//!
//! | state | flag | held in | entry, exit and clean-up |
//! |---|---|---|---|
//! | queueing, executing | `QUEUEING` | `Pins::transaction`, the task | [`crate::transaction`], `transaction::queue`, [`crate::transaction::exec`] |
//! | watching | `PINNED` | `Pins::watches`, `Pins::local_watch` | [`crate::transaction`] |
//! | waiting | none: the client is not read | `Pins::blocked`, the queue of the node | `blocking`, [`crate::blocking::request`] |
//! | scripting | `SCRIPTING` | the session's class of lanes | [`crate::scripts::lanes`] |
//! | large | `LARGE` | `Session::large` | [`crate::pool::large_reply`], [`crate::session::large_request`] |
//! | owning | `UNSETTLED` until it is so | the session's class of lanes | [`crate::pool::session_mode`]; [`crate::tracking::noloop`] for NOLOOP |
//! | preparing, asking, following, monitoring | `DEDICATED` | the mark in `Pins::dedicated` | [`crate::dedicated`] |
//! | subscribed, tracking | `SUBSCRIBED`, `TRACKING` | `Session::subscriber` | [`crate::pubsub`] |
//!
//! Each row has one owner, which alone enters it. What they have in common is here and in [`crate::pool::lease`]: nothing moves between
//! connections while replies are due, a private connection goes to the next client only after an acknowledged clean-up, and
//! whatever the state, RESET and leaving end it in the order below. What users see of it is in `docs/pooling-modes.md`.

use crate::ended::Ended;
use crate::env::Env;
use crate::ids::ClientHandle;
use crate::session::Session;
use respool_command::Execute;

impl<E: Execute> Env<E> {
    /// The client has gone: everything that it held is given back, cleaned or closed. Its own lanes come first, so that what it
    /// watches there is cleaned once.
    pub(crate) fn forget_states(&mut self, client: ClientHandle, session: &mut Session) {
        self.forget_own(session);
        self.forget_noloop(session);
        let is_dedicated = session.dedicated().is_some();
        let blocked = self.forget_pins(session);
        self.forget_large(session);
        let subscriber = session.subscriber.take();
        if is_dedicated || subscriber.is_some() || !blocked.is_empty() {
            self.ended.push_back(Ended::Client { client, subscriber, blocked });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::subscriber::Subscriber;
    use crate::testing::env_with_node;

    #[test]
    fn features_hear_of_a_client_only_if_they_hold_something_of_it() {
        let mut env = env_with_node();
        let [plain, listens] = [(), ()].map(|()| env.test_client());
        for client in [plain, listens] {
            let handle = env.clients.sessions.handle(client).expect("it is there");
            let mut session = env.clients.sessions.retire(client).expect("it is there");
            if client == listens {
                session.subscriber = Some(Box::new(Subscriber::new(3)));
            }
            env.forget_states(handle, &mut session);
            assert!(session.subscriber.is_none());
        }
        let ended: Vec<Ended> = env.ended.into();
        assert!(matches!(&ended[..], [Ended::Client { client, subscriber: Some(_), .. }] if client.index == listens));
    }
}
