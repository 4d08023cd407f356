//! Functions during a pause of writes: those that change nothing run on, and nodes alone know which those are.
//!
//! ```text
//!   FCALL f, writes are held back                          FUNCTION LIST
//!   [client] ---- stays unread ----> [node is asked, once in a pause] ----> `no-writes`: FCALL_RO f --> node
//!                                                          '---- any other, or no answer: waits for the end of the pause
//! ```
//!
//! It is sent as FCALL_RO, which a node refuses for a function that may write: if the function was replaced since it was asked, no
//! write gets through. A function that is new waits like a write.

use crate::client_pause::listing::{Listing, Names, readonly_functions, text};
use crate::env::Env;
use crate::ids::{ClientId, NodeId};
use crate::interfaces::held_back::WaitsAtNodes;
use crate::session::Flow;
use respool_command::{Command, Execute, Millis, Outcome, Row, ScriptingCommand, SessionView, resolve};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, encode_request};
use std::collections::BTreeMap;

/// What nodes have said of their functions since the pause began.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By node the functions that change nothing; `None` while it is being asked.
    by_node: BTreeMap<NodeId, Option<Names>>,
    /// Which of the pauses and settings this is: what was asked before is not heard any more.
    epoch: u64,
}

impl Functions {
    /// A pause has ended, or other nodes are configured.
    pub(crate) fn forget(&mut self) {
        *self = Self { by_node: BTreeMap::new(), epoch: self.epoch + 1 };
    }

    /// A request during a pause of writes, which may be a call of a function.
    pub(crate) fn handle_request(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
    ) -> PausedCall {
        if row.command != Command::Scripting(ScriptingCommand::Fcall) {
            return env.wait_for_pause(index);
        }
        let now = env.engine_now();
        let node = match &mut env.engine {
            Some(engine) => {
                let node = NodeId::nth(0);
                self.by_node.entry(node).or_insert_with(|| Some(functions_of(engine, now)));
                node
            }
            None => match env.target(index, row, args) {
                Ok(target) => target.node,
                Err(_) => return env.wait_for_pause(index),
            },
        };
        match self.by_node.get(&node) {
            Some(Some(readonly)) if readonly.contains(&args.at(1).to_ascii_lowercase()) => {}
            Some(_) => return env.wait_for_pause(index),
            None => {
                self.ask(env, index, node);
                return env.wait_for_pause(index);
            }
        }
        match env.hold_for_operator(index, row, args) {
            Some(flow) => PausedCall::Held(flow),
            None => PausedCall::Runs(std::iter::once(&b"FCALL_RO"[..]).chain(args.from(1).iter()).collect()),
        }
    }

    fn ask<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, node: NodeId) {
        let Some(class) = env.clients.sessions.at(index).map(|session| session.class) else { return };
        self.by_node.insert(node, None);
        let listing = Listing { node, epoch: self.epoch, readonly: Names::new() };
        let task = env.tasks.begin(listing);
        let lane = env.lanes.lane(&env.config, node, class);
        env.send_for_task(task, 0, lane, |out| encode_request(out, [&b"FUNCTION"[..], b"LIST"].into_iter()));
    }

    /// A node has said which functions change nothing, or has not. If there are any, calls that wait for the end of the pause are
    /// looked at again.
    pub(crate) fn handle_reply(
        &mut self,
        env: &mut Env<impl Execute>,
        waits: &mut impl WaitsAtNodes,
        listing: Listing,
    ) {
        if listing.epoch != self.epoch {
            return;
        }
        let is_any = !listing.readonly.is_empty();
        self.by_node.insert(listing.node, Some(listing.readonly));
        if is_any {
            env.settle_holding(waits);
        }
    }
}

/// The functions of the engine in this process that change nothing. It is asked once in a pause, as nodes are: nothing loads any meanwhile.
fn functions_of(engine: &mut impl Execute, now: Millis) -> Names {
    readonly_functions(&answer_of(engine, now, &[b"FUNCTION", b"LIST"])).unwrap_or_default()
}

/// The text of a script of the engine in this process, by its digest.
pub(crate) fn script_of(engine: &mut impl Execute, now: Millis, digest: &[u8]) -> Option<Vec<u8>> {
    text(&answer_of(engine, now, &[b"SCRIPT", b"SHOW", digest]))
}

/// What an engine replies to a question that changes nothing.
fn answer_of(engine: &mut impl Execute, now: Millis, words: &[&[u8]]) -> Vec<u8> {
    let args: ArgsBuf = words.iter().copied().collect();
    let mut reply = Vec::new();
    if let Ok(row) = resolve(args.as_args()) {
        let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
        let mut view = SessionView { now, ..SessionView::default() };
        let _: Outcome = engine.execute(row, args.as_args(), &mut view, &mut encoder);
    }
    reply
}

/// What becomes of a call during a pause of writes.
pub(crate) enum PausedCall {
    /// It is held back: until the pause is over, or until its node has said what the function does, or for another reason as well.
    Held(Flow),
    /// This is done in its place: it changes nothing.
    Runs(ArgsBuf),
}

impl<E: Execute> Env<E> {
    /// A request is read again when a pause is over.
    pub(crate) fn wait_for_pause(&mut self, index: ClientId) -> PausedCall {
        self.clients.mark_held(index);
        PausedCall::Held(Flow::Again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NotedWaits, env_with_node, request};

    fn listing(epoch: u64, names: &[&str]) -> Listing {
        let readonly = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        Listing { node: NodeId::nth(0), epoch, readonly }
    }

    #[test]
    fn only_what_was_asked_in_this_pause_is_heard() {
        let mut env = env_with_node();
        let (mut functions, mut waits) = (Functions::default(), NotedWaits::default());
        functions.forget();
        functions.handle_reply(&mut env, &mut waits, listing(0, &["f"]));
        assert!(functions.by_node.is_empty() && waits.went_on == 0);
        functions.handle_reply(&mut env, &mut waits, listing(1, &[]));
        assert!(functions.by_node.len() == 1 && waits.went_on == 0, "none can go on");
        functions.handle_reply(&mut env, &mut waits, listing(1, &["f"]));
        assert_eq!(waits.went_on, 1);
    }

    #[test]
    fn a_function_that_changes_nothing_is_called_as_such() {
        let mut env = env_with_node();
        let client = env.test_client();
        let mut functions = Functions::default();
        functions.by_node.insert(NodeId::nth(0), Some(listing(0, &["f"]).readonly));
        let mut call = |said: &str| request(said, |row, args| functions.handle_request(&mut env, client, row, args));
        let PausedCall::Runs(args) = call("FCALL F 1 k") else { panic!("it changes nothing") };
        assert_eq!(args.as_args().iter().collect::<Vec<_>>(), [&b"FCALL_RO"[..], b"F", b"1", b"k"]);
        assert!(matches!(call("FCALL g 1 k"), PausedCall::Held(Flow::Again)));
        assert!(matches!(call("SET k v"), PausedCall::Held(Flow::Again)));
        assert!(env.test_session(client).pause.has(crate::session::PauseReasons::HELD));
    }
}
