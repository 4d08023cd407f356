//! What the environment tells features of: connections and clients that have ended.
//!
//! `Env` ends them and puts down what that means to a feature; `Worker::tell_ended` hands it to the feature. So no method of
//! `Env` calls one of a feature, and a feature that closes a connection is not called in the middle of that by another.
//!
//! * Replies do not depend on when this happens: the owners of outstanding replies are told by `Env::end_lane` itself, in the
//!   order of their requests, before anything is put down here.
//! * What is put down has ended altogether: its tickets are gone and its place is retired, so a feature meets nothing that
//!   is half ended. A client is named by its handle, which is void once it has left.
//! * It is handed on in the order in which it was put down, each once; what a feature ends meanwhile comes behind it.
//! * It is handed on behind each request that is not plain, behind the timers, before nodes get other numbers, before the
//!   worker turns to another event of the loop, and before the loop waits. A feature that goes on with what it has just
//!   closed asks for it at once.

use crate::error_reply::ErrorReply;
use crate::ids::{ClientHandle, Handle, LaneHandle, LaneKeyId, NodeId};
use crate::session::marks::SessionSubscriber;
use crate::session::selecting::Selecting;

/// What has ended, as the feature sees it that used it.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The push lane to a node. `is_given_up`: another takes its place, or the node is none any more.
    PushLane { node: NodeId, was_ready: bool, is_given_up: bool, error: ErrorReply },
    /// A shared connection to a node that has fallen silent.
    SilentNode { node: NodeId },
    /// A connection on which a client is told of changed keys. `refusal`: the node did not want to.
    Listener { reader: ClientHandle, node: NodeId, is_listener: bool, was_ready: bool, refusal: Option<ErrorReply> },
    /// A connection that serves one client for good.
    Dedicated { reader: ClientHandle, error: ErrorReply },
    /// A connection that a SELECT waited for.
    Select { selecting: Selecting, class: LaneKeyId, is_certain: bool, error: ErrorReply },
    /// Waiting on a connection: a large reply has begun to come.
    Wait { lane: LaneHandle },
    /// A client with subscriptions, requests that wait at nodes, or connections that served it alone.
    Client { client: ClientHandle, subscriber: Option<Box<dyn SessionSubscriber>>, blocked: Vec<Handle> },
}

impl Ended {
    /// The class that is asked for once more when the feature hears of it.
    pub(crate) fn class(&self) -> Option<LaneKeyId> {
        match self {
            Self::Select { class, .. } => Some(*class),
            _ => None,
        }
    }
}
