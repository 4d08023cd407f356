//! From a request to where it goes: by its row of the command table, or by the key that its caller has marked.

use super::reads::Reads;
use super::unit::Target;
use super::{Cluster, Table};
use crate::core::chance;
use crate::fitness::{is_of_connection, row_of, with_request};
use crate::{Command, ErrorKind};
use respool_command::lookup;
use respool_route::cluster::{SlotPlan, plan_slots, slot_of};
use respool_route::{Gather, PlanError, Scratch};

/// Where a request goes.
pub(super) enum Plan {
    /// As it is, to one place.
    One(Target),
    /// In parts, whose replies are joined. By its keys, or as it is to several nodes.
    Parts(Vec<(Target, Command)>, Box<Gather>, Parts),
    /// Nowhere; why.
    Refused(ErrorKind),
}

/// Why a request has parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// Its keys are in several slots.
    OfKeys,
    /// It is for all nodes, and has no keys.
    OfNodes,
}

/// The target of a request that does not depend on the slot table; `None` if it depends on it.
pub(super) fn target(command: &Command, reads: Reads) -> Option<Target> {
    let Some(row) = lookup(command.name()) else {
        let target = command.marked_key().map(|key| Target::Slot(slot_of(&key), reads.includes(|| false)));
        return Some(target.unwrap_or(Target::Any));
    };
    if row.is_plain && row.keys.single() == Some(1) {
        let key = command.words().1;
        let target = || Target::Slot(slot_of(key), reads.includes(|| row.is_replica_readable));
        // A key that is empty or too long to lie in the request is found below.
        return (!key.is_empty()).then(target);
    }
    None
}

/// The slot of a request's keys, if it is one.
#[cold]
pub(crate) fn slot_of_keys(cluster: &Cluster, command: &Command) -> Option<u16> {
    match plan(command, Reads::Primary, &cluster.table()) {
        Plan::One(target) => target.slot(),
        Plan::Parts(..) | Plan::Refused(_) => None,
    }
}

/// Why a request is not sent among others, or on a connection of one node.
const FOR_SEVERAL: &str = "is for several nodes of the cluster: call it alone";

/// # Errors
///
/// One of these is for several nodes, whatever its keys.
pub(crate) fn refuse_for_all(commands: &[Command]) -> Result<(), ErrorKind> {
    let is_for_all = |command: &Command| {
        let Some(row) = lookup(command.name()).map(|row| row_of(row, command)) else { return false };
        let planned = with_request(command, |request| plan_slots(row, request.args, &mut Scratch::new()));
        matches!(planned, Some(Ok(SlotPlan::AllShards | SlotPlan::AllNodes)))
    };
    let is_refused = commands.iter().any(|command| !is_of_connection(command) && is_for_all(command));
    if is_refused { Err(ErrorKind::Unfit(FOR_SEVERAL)) } else { Ok(()) }
}

/// The slot of all requests, which go to one node; `None` if none of them has keys.
pub(super) fn together(commands: &[Command], table: &Table) -> Result<Option<u16>, ErrorKind> {
    let mut only = None;
    for command in commands.iter().filter(|command| !is_of_connection(command)) {
        match plan(command, Reads::Primary, table) {
            Plan::One(target) => match (target.slot(), only) {
                (Some(slot), Some(other)) if slot != other => return Err(ErrorKind::CrossSlot),
                (slot, other) => only = other.or(slot),
            },
            Plan::Parts(_, _, Parts::OfKeys) => return Err(ErrorKind::CrossSlot),
            Plan::Parts(_, _, Parts::OfNodes) => return Err(ErrorKind::Unfit(FOR_SEVERAL)),
            Plan::Refused(kind) => return Err(kind),
        }
    }
    Ok(only)
}

/// Where a request goes, by this table.
pub(super) fn plan(command: &Command, reads: Reads, table: &Table) -> Plan {
    if let Some(target) = target(command, reads) {
        return Plan::One(target);
    }
    let Some(row) = lookup(command.name()) else { return Plan::One(Target::Any) };
    let row = row_of(row, command);
    let at = |slot| Target::Slot(slot, reads.includes(|| row.is_replica_readable));
    let planned = with_request(command, |request| {
        let mut scratch = Scratch::new();
        let mut gather = Box::new(Gather::new());
        match plan_slots(row, request.args, &mut scratch) {
            Ok(SlotPlan::Any) => Plan::One(command.marked_key().map_or(Target::Any, |key| at(slot_of(&key)))),
            Ok(SlotPlan::One(slot)) => Plan::One(at(slot)),
            Ok(SlotPlan::Split) => {
                gather.begin_split(row, &scratch);
                let mut encoded = Vec::new();
                let mut part = |part: respool_route::Part<'_>| {
                    encoded.clear();
                    part.encode(request, &mut encoded);
                    Some((at(part.node.get() as u16), command.with_encoded(&encoded)?))
                };
                match scratch.parts().map(&mut part).collect() {
                    Some(parts) => Plan::Parts(parts, gather, Parts::OfKeys),
                    None => Plan::Refused(ErrorKind::Unfit("cannot be split")),
                }
            }
            Ok(SlotPlan::AllShards) => {
                let all = |shard: &super::table::Shard| (Target::shard(shard), command.clone());
                let parts: Vec<_> = table.shards().iter().map(all).collect();
                gather.begin_all(row, request.args, parts.len(), chance());
                Plan::Parts(parts, gather, Parts::OfNodes)
            }
            Ok(SlotPlan::AllNodes) => {
                let members = table.shards().iter().flat_map(super::table::Shard::members);
                let parts: Vec<_> = members
                    .map(|(node, is_replica)| (Target::Node(std::sync::Arc::clone(node), is_replica), command.clone()))
                    .collect();
                gather.begin_all(row, request.args, parts.len(), chance());
                Plan::Parts(parts, gather, Parts::OfNodes)
            }
            Ok(SlotPlan::Walk) => {
                Plan::Refused(ErrorKind::Unfit("goes from node to node in a cluster: use Client::scan_keys"))
            }
            Err(PlanError::CrossSlot { .. }) => Plan::Refused(ErrorKind::CrossSlot),
            Err(PlanError::Unsupported | PlanError::UnnamedKeys) => {
                Plan::Refused(ErrorKind::Unfit("is for one node: a cluster has several, see Client::each_shard"))
            }
        }
    });
    planned.unwrap_or(Plan::One(Target::Any))
}
