//! A script that is run by its hash, and brought back if the node has forgotten it.

use crate::nodes::id::NodeId;
use crate::nodes::moves::Moves;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::id::{Asker, ClientHandle};
use crate::session::table::Clients;
use respool_command::{Command, Row, ScriptingCommand};
use respool_wire::{Args, ArgsBuf, request_bulk, request_head};
use std::sync::Arc;

/// A script that is run by its hash.
#[derive(Debug)]
pub(crate) struct EvalshaRetry {
    pub(crate) asker: Asker,
    pub(crate) place: EvalshaRetryPlace,
    pub(crate) row: &'static Row,
    pub(crate) args: ArgsBuf,
    /// Its keys have other names than the client's.
    pub(crate) is_renamed: bool,
    pub(crate) script: Arc<[u8]>,
    /// What the account has of it.
    pub(crate) accounted: usize,
    /// What the node said: that it does not know the script.
    pub(crate) refusal: Vec<u8>,
}

/// Where a script is run that its node did not know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EvalshaRetryPlace {
    /// At this node.
    At(NodeId),
    /// Where its keys are by then.
    AtItsKeys,
    /// Nowhere: what its keys are called is not known any more.
    Nowhere,
}

impl InternalTask for EvalshaRetry {
    /// Other nodes are configured. What the node does not know is sent to the node of that name, or, where keys are placed or
    /// named in another way now (`has_other_ways`), to where they are.
    fn move_to(&mut self, moves: &Moves, has_other_ways: bool) {
        self.place = match self.place {
            EvalshaRetryPlace::At(node) if !has_other_ways => {
                moves.namesake_of(node).map_or(EvalshaRetryPlace::Nowhere, EvalshaRetryPlace::At)
            }
            _ if self.is_renamed => EvalshaRetryPlace::Nowhere,
            _ => EvalshaRetryPlace::AtItsKeys,
        };
    }

    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        if reply.bytes.starts_with(b"-NOSCRIPT") {
            self.refusal = reply.bytes.to_vec();
        } else {
            clients.feed(self.asker.session, self.asker.seq, reply.bytes, true);
        }
        Progress::Through
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, clients: &mut Clients) -> Progress {
        clients.fail(self.asker.session, self.asker.seq, lost.error);
        Progress::Through
    }

    fn asker(&self) -> Option<ClientHandle> {
        Some(self.asker.session)
    }
}

/// Writes the request that runs a script itself in place of one that names it.
pub(crate) fn with_script(row: &Row, args: Args<'_>, script: &[u8], out: &mut Vec<u8>) {
    let is_readonly = row.command == Command::Scripting(ScriptingCommand::EvalshaRo);
    request_head(out, args.len());
    request_bulk(out, if is_readonly { b"EVAL_RO" } else { b"EVAL" });
    request_bulk(out, script);
    args.from(2).iter().for_each(|argument| request_bulk(out, argument));
}
