//! The engine in this process, for features whose requests need more of it than a reply: scripts, and transactions that watch keys.
//!
//! A request for the engine may serve those that wait for a key, and clients hear of what it changes. What does both implements this.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::interfaces::engine_changes::EngineChanges;
use respool_command::{Execute, Outcome, Row, SessionView};
use respool_wire::{Args, Encoder};

/// A request for the engine.
pub(crate) struct EngineCall<'a> {
    /// The client's session as the engine sees it.
    pub(crate) view: SessionView,
    /// The client, if it is still there.
    pub(crate) by: Option<ClientHandle>,
    pub(crate) row: &'static Row,
    pub(crate) args: Args<'a>,
}

/// The engine, and what its calls may concern.
pub(crate) trait EngineCalls {
    type Engine: Execute;
    type Changes: EngineChanges;

    /// The environment that has the engine, and the feature that tells of what is changed.
    fn parts(&mut self) -> (&mut Env<Self::Engine>, &mut Self::Changes);

    fn env(&mut self) -> &mut Env<Self::Engine> {
        self.parts().0
    }

    /// Has the engine execute a request, and answers what a script asks meanwhile. `None`: there is no engine.
    fn execute_as(&mut self, call: EngineCall<'_>, reply: &mut Encoder<'_>) -> Option<Outcome>;

    /// The same in the dialect of the client. `None`: one of them is not there.
    fn run_engine_as(&mut self, call: EngineCall<'_>, reply: &mut Vec<u8>) -> Option<Outcome> {
        let protocol = self.env().clients.sessions.get(call.by?)?.protocol;
        self.execute_as(call, &mut Encoder::new(reply, protocol))
    }

    /// As in Redis, room is made before a request that is no part of a transaction, and clients hear of it before that has its reply.
    fn make_room_before(&mut self, index: ClientId);

    /// A script has been run, or what is part of no request that is being read, for this client if it is there.
    fn note_run_apart(&mut self, index: Option<ClientId>);

    /// The engine has looked at keys for no request, and may have removed expired ones.
    fn collect_expired(&mut self);
}
