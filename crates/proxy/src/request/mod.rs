//! From a decoded request to the node that answers it: the checks it passes, which node has its keys, and what is split.
//!
//! `worker::dispatch` is the way of every request. [`fast_path`] says which requests go without what cannot matter to them;
//! [`filters`] is what becomes of those that a rare state refuses.

use crate::ids::NodeId;
use respool_route::Place;
use respool_wire::{Args, ArgsBuf};

pub(crate) mod client_pause;
pub(crate) mod dispatch;
mod fan_out;
pub(crate) mod fast_path;
pub(crate) mod filters;
pub(crate) mod forward;
pub(crate) mod gathers;
pub(crate) mod held_requests;
pub(crate) mod streamed_request;
pub(crate) mod target;
pub(crate) mod time_slices;
pub(crate) mod unknown_command;

/// The node that answers a request as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) node: NodeId,
    /// The request as the node gets it, if its keys have other names there.
    pub(crate) renamed: Option<ArgsBuf>,
    /// Where its keys are.
    pub(crate) place: Place,
}

impl Target {
    /// The request as the node gets it.
    pub(crate) fn args<'a>(&'a self, said: Args<'a>) -> Args<'a> {
        self.renamed.as_ref().map_or(said, ArgsBuf::as_args)
    }

    /// The node that has the keys, if another is asked in its place.
    pub(crate) fn stands_for(&self) -> Option<NodeId> {
        let home = NodeId::at(self.place.node);
        (home != self.node).then_some(home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_to_the_node_of_its_keys_by_the_names_there() {
        let said: ArgsBuf = ["GET", "k"].iter().collect();
        let place = Place { route: 0, node: NodeId::nth(1).place() };
        let mut target = Target { node: NodeId::nth(1), renamed: None, place };
        assert_eq!((target.args(said.as_args()).at(1), target.stands_for()), (&b"k"[..], None));
        target.renamed = Some(["GET", "p:k"].iter().collect());
        target.node = NodeId::nth(0);
        assert_eq!((target.args(said.as_args()).at(1), target.stands_for()), (&b"p:k"[..], Some(NodeId::nth(1))));
    }
}
