//! What was taken for clients that had left and is on its way back.

use crate::error_reply::ErrorReply;
use crate::ids::{LaneHandle, LaneKeyId, NodeId};
use crate::limits::RETURNS_BYTES_MAX;
use crate::nodes::moves::Moves;
use crate::pool::key_id::LaneKeyUse;
use crate::reply::progress::{LostReply, Progress};
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::disconnect_log::DisconnectLog;
use crate::session::table::Clients;
use respool_wire::{ArgsBuf, ReplyKind};
use std::collections::{BTreeMap, VecDeque};

/// Errors of nodes that will take the request at another time.
const NOT_NOW: [&[u8]; 9] = [
    b"-LOADING",
    b"-BUSY",
    b"-TRYAGAIN",
    b"-MASTERDOWN",
    b"-CLUSTERDOWN",
    b"-READONLY",
    b"-OOM",
    b"-MISCONF",
    b"-NOREPLICAS",
];

/// A request that brings back what was taken.
#[derive(Debug)]
pub(crate) struct Return {
    /// `NodeId::NONE` once it is not among the nodes any more.
    pub(crate) node: NodeId,
    pub(crate) class: LaneKeyUse,
    pub(crate) request: ArgsBuf,
    /// What the account of the process has of it.
    pub(crate) bytes: usize,
    /// The deadline of the retries.
    pub(crate) until_us: u64,
}

/// One that a node has been asked for.
#[derive(Debug)]
pub(crate) struct Returning {
    pub(crate) what: Return,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// No answer yet.
    Asked,
    Back,
    /// Not sent, or refused with an error after which a retry is right.
    NotNow(ErrorReply),
    /// Refused permanently, or of unknown outcome.
    Lost(ErrorReply),
}

impl InternalTask for Returning {
    fn class(&self) -> Option<LaneKeyId> {
        Some(self.what.class.id())
    }

    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        self.outcome = match reply.kind {
            ReplyKind::Integer => Outcome::Back,
            ReplyKind::Error if NOT_NOW.iter().any(|name| reply.bytes.starts_with(name)) => {
                Outcome::NotNow(ErrorReply::of_reply(reply.bytes))
            }
            ReplyKind::Error => Outcome::Lost(ErrorReply::of_reply(reply.bytes)),
            // No node answers so.
            _ => {
                self.outcome = Outcome::Lost("the node's answer does not fit".into());
                return Progress::OutOfStep;
            }
        };
        Progress::Through
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, _: &mut Clients) -> Progress {
        let error = lost.error.clone();
        self.outcome = match lost.loss {
            LostReply::Unsent => Outcome::NotNow(error),
            LostReply::Unknown | LostReply::Late => Outcome::Lost(error),
        };
        Progress::Through
    }

    fn move_to(&mut self, moves: &Moves, _: bool) {
        self.what.move_to(moves);
    }
}

impl Return {
    /// Other nodes are configured. What has not been sent goes to the server that has the node's name now: with that it has its
    /// data.
    fn move_to(&mut self, moves: &Moves) {
        let namesake = moves.namesake_of(self.node).filter(|_| moves.has_left(self.node));
        self.node = namesake.unwrap_or_else(|| moves.place_of(self.node));
    }
}

/// What waits to be brought back, of one worker.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    pub(crate) waiting: VecDeque<Return>,
    /// Bytes of those, and of those that nodes are being asked for.
    pub(crate) bytes: usize,
    /// How many there are of both.
    pub(crate) count: usize,
    /// Received bytes of popped elements whose replies are incomplete, by connection. They count towards [`RETURNS_BYTES_MAX`].
    arriving: BTreeMap<LaneHandle, usize>,
    arriving_bytes: usize,
    pub(crate) again_us: u64,
    pub(crate) lines: DisconnectLog,
}

impl Returns {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// A connection has received `bytes` of an incomplete reply whose element will be put back. Returns whether [`RETURNS_BYTES_MAX`] holds.
    pub(crate) fn note_arriving(&mut self, lane: LaneHandle, bytes: usize) -> bool {
        let before = self.arriving.insert(lane, bytes).unwrap_or(0);
        self.arriving_bytes = self.arriving_bytes - before + bytes;
        self.bytes + self.arriving_bytes <= RETURNS_BYTES_MAX
    }

    /// The reply of a connection is complete or lost.
    pub(crate) fn end_arriving(&mut self, lane: LaneHandle) {
        self.arriving_bytes -= self.arriving.remove(&lane).unwrap_or(0);
    }

    /// Other nodes are configured.
    pub(crate) fn move_to(&mut self, moves: &Moves) {
        self.waiting.iter_mut().for_each(|one| one.move_to(moves));
    }
}
