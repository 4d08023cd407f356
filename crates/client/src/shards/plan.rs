//! From a request to the servers that it goes to, by its row of the command table.

use crate::core::chance;
use crate::fitness::{is_of_connection, row_of, with_request};
use crate::{Command, ErrorKind};
use respool_command::{Command as TableCommand, KeyPositions, PubsubCommand, Row, Way, lookup};
use respool_route::{Gather, Plan as Routed, PlanError, Scratch, Topology, plan};
use respool_wire::Args;

/// Where a request goes.
pub(super) enum Plan {
    /// As it is, to this server.
    One(usize),
    /// The same, and any other would do.
    Any(usize),
    /// In parts, in the order in which their replies are counted.
    Parts(Vec<(usize, Command)>, Box<Gather>, Parts),
}

/// Why a request has parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// Its keys are on several servers.
    OfKeys,
    /// It is for all servers, and has no keys.
    OfNodes,
}

fn unfit(why: &'static str) -> ErrorKind {
    ErrorKind::Unfit(why)
}

/// Why a request is not sent among others.
pub(super) const FOR_SEVERAL: &str = "is for several servers: call it alone";

/// The one server that all requests are for; `None` if any will do.
pub(super) fn together(commands: &[Command], topology: &Topology) -> Result<Option<usize>, ErrorKind> {
    let mut only = None;
    for command in commands.iter().filter(|command| !is_of_connection(command)) {
        match Plan::of(command, topology)? {
            Plan::One(place) if only.is_none_or(|only| only == place) => only = Some(place),
            Plan::One(_) | Plan::Parts(_, _, Parts::OfKeys) => return Err(ErrorKind::CrossSlot),
            Plan::Any(_) => {}
            Plan::Parts(_, _, Parts::OfNodes) => return Err(unfit(FOR_SEVERAL)),
        }
    }
    Ok(only)
}

/// Whether a request names keys, which decide where it goes.
fn names_keys(row: &Row, args: Args<'_>) -> bool {
    let mut positions = KeyPositions::new();
    matches!(row.way(args), Some(Way::KeysFrom(_)))
        || row.keys.positions(args, &mut positions).is_ok() && !positions.is_empty()
}

impl Plan {
    /// # Errors
    ///
    /// Why it goes nowhere.
    pub(super) fn of(command: &Command, topology: &Topology) -> Result<Self, ErrorKind> {
        let Some(row) = lookup(command.name()).map(|row| row_of(row, command)) else {
            let marked = command.marked_key().map(|key| Self::One(topology.place(&key).get()));
            return marked.ok_or(unfit("is not in the command table: mark its key by Command::key"));
        };
        if row.runs_scripts && row.keys.is_none() {
            return Err(unfit("may be for any server: send it by Client::server_of, or to each of Client::servers"));
        }
        if row.command == TableCommand::Pubsub(PubsubCommand::Publish) {
            // Where a key of the channel's name is, as the proxy has it.
            return Ok(Self::One(topology.place(command.words().1).get()));
        }
        with_request(command, |request| {
            let mut scratch = Scratch::new();
            match plan(row, request.args, topology, &mut scratch) {
                Ok(Routed::One(node)) if node == topology.default_node() && !names_keys(row, request.args) => {
                    Ok(Self::Any(node.get()))
                }
                Ok(Routed::One(node)) => Ok(Self::One(node.get())),
                Ok(Routed::Split) => {
                    let mut gather = Box::new(Gather::new());
                    gather.begin_split(row, &scratch);
                    let mut bytes = Vec::new();
                    let mut part = |part: respool_route::Part<'_>| {
                        bytes.clear();
                        part.encode(request, &mut bytes);
                        Some((part.node.get(), command.with_encoded(&bytes)?))
                    };
                    let parts: Option<Vec<_>> = scratch.parts().map(&mut part).collect();
                    Ok(Self::Parts(parts.ok_or(unfit("cannot be split"))?, gather, Parts::OfKeys))
                }
                Ok(Routed::All) => {
                    let mut gather = Box::new(Gather::new());
                    gather.begin_all(row, request.args, topology.node_count(), chance());
                    let parts = (0..topology.node_count()).map(|node| (node, command.clone())).collect();
                    Ok(Self::Parts(parts, gather, Parts::OfNodes))
                }
                Ok(Routed::Scan(_)) => Err(unfit("goes from server to server: use Client::scan_keys")),
                Err(PlanError::CrossSlot { .. }) => Err(ErrorKind::CrossSlot),
                Err(PlanError::UnnamedKeys) => Err(unfit("reads keys that it does not name, which may be anywhere")),
                Err(PlanError::Unsupported) => {
                    Err(unfit("is for one server: send it by Client::server_of, or to each of Client::servers"))
                }
            }
        })
        .unwrap_or(Err(unfit("cannot be read")))
    }
}
