//! From a request to the servers that it goes to, by its row of the command table.

use crate::core::chance;
use crate::fitness::{row_of, with_request};
use crate::{Command, ErrorKind};
use respool_command::lookup;
use respool_route::{Gather, Plan as Routed, PlanError, Scratch, Topology, plan};

/// Where a request goes.
pub(super) enum Plan {
    /// As it is, to this server.
    One(usize),
    /// In parts, in the order in which their replies are counted.
    Parts(Vec<(usize, Command)>, Box<Gather>),
}

fn unfit(why: &'static str) -> ErrorKind {
    ErrorKind::Unfit(why)
}

impl Plan {
    /// # Errors
    ///
    /// Why it goes nowhere.
    pub(super) fn of(command: &Command, topology: &Topology) -> Result<Self, ErrorKind> {
        let Some(row) = lookup(command.name()).map(|row| row_of(row, command)) else {
            return Err(unfit("is not in the command table, so its keys cannot be told: send it by Shards::of_key"));
        };
        if row.runs_scripts && row.keys.is_none() {
            return Err(unfit("may be for any server: send it by Shards::of_key, or to each of Shards::clients"));
        }
        with_request(command, |request| {
            let mut scratch = Scratch::new();
            match plan(row, request.args, topology, &mut scratch) {
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
                    Ok(Self::Parts(parts.ok_or(unfit("cannot be split"))?, gather))
                }
                Ok(Routed::All) => {
                    let mut gather = Box::new(Gather::new());
                    gather.begin_all(row, request.args, topology.node_count(), chance());
                    Ok(Self::Parts((0..topology.node_count()).map(|node| (node, command.clone())).collect(), gather))
                }
                Ok(Routed::Scan(_)) => Err(unfit("goes from server to server: scan each of Shards::clients")),
                Err(PlanError::CrossSlot { .. }) => Err(unfit("has keys of several servers and cannot be split")),
                Err(PlanError::UnnamedKeys) => Err(unfit("reads keys that it does not name, which may be anywhere")),
                Err(PlanError::Unsupported) => {
                    Err(unfit("is for one server: send it by Shards::of_key, or to each of Shards::clients"))
                }
            }
        })
        .unwrap_or(Err(unfit("cannot be read")))
    }
}
