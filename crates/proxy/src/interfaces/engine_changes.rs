//! What an engine in this process has changed, and to which feature that is handed on.
//!
//! The engine is asked behind each request. What it says concerns those that have subscribed, or track keys; requests that the
//! engine executes are another feature's, which knows nothing of them but this.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use respool_command::{Execute, PubsubCommand, Row, Wanted};
use respool_wire::{Args, Encoder};

/// The feature that tells clients of changes.
pub(crate) trait EngineChanges {
    /// Asks the engine what has changed since, and has it go on noting what is `wanted`. `by`: the client that has changed it.
    fn collect_changes(&mut self, env: &mut Env<impl Execute>, wanted: Wanted, by: Option<ClientHandle>);

    /// Tells clients of what was collected, unless a transaction is under way whose reply comes first.
    fn tell_changes(&mut self, env: &mut Env<impl Execute>);

    /// A client's script is about to begin: the engine keeps what it reads if the client tracks it.
    fn keep_script_reads(&mut self, env: &mut Env<impl Execute>, index: ClientId);

    /// A client's script has ended.
    fn track_script(&mut self, env: &mut Env<impl Execute>, index: ClientId);

    /// A script calls a command about channels.
    fn pubsub_for_script(
        &mut self,
        env: &mut Env<impl Execute>,
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
        reply: &mut Encoder<'_>,
    );
}
