//! From a request to the nodes that have to answer it.
//!
//! The row's key specification and policies decide, nothing else: no list of command names is kept here.
//!
//! ```text
//!   one node in all ------------------------------------------------> One (always, whatever the command)
//!   one key, always at the same place --- hash ---------------------> One
//!   no key -------------------------------------- default node -----> One
//!   several keys --- all on one node --------------------------------> One (the request goes as it came)
//!                \-- on several: may be split, and are: by node, in order -> Split (parts in the scratch)
//!                            \-- may not be split ------------------> CROSSSLOT, naming two keys
//!   all shards, all nodes ------------------------------------------> All
//!   a walk over all keys (SCAN) ------------------------------------> Scan (one step, to one node)
//! ```

use respool_command::{Keys, RequestPolicy, ResponsePolicy, Row, Way, text};
use respool_wire::{Args, Encoder};

use crate::limits::KEY_TEXT_BYTES_MAX;
use crate::node::NodeIndex;
use crate::scan::ScanStep;
use crate::split::{Layout, Scratch};
use crate::topology::Topology;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// To this node, unchanged; its reply is the reply.
    One(NodeIndex),
    /// To several nodes, each with its own keys: [`Scratch::parts`] has them until the next plan is made. Their replies
    /// are joined by a [`Gather`](crate::Gather).
    Split,
    /// To every node of the topology, unchanged. Part `i` of the [`Gather`](crate::Gather) is node `i`.
    All,
    /// To one node, with that node's own cursor, as a step of a walk over all of them. Its reply goes through a
    /// [`Gather`](crate::Gather), which puts the walk's cursor in.
    Scan(ScanStep),
}

/// Why a request cannot be sent anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The keys have to be on one node and are not.
    CrossSlot {
        /// Index of the first key among the arguments.
        first: u32,
        /// Index of the first key that is on another node than that.
        second: u32,
    },
    /// The command has rules of its own for several nodes, which are not known here.
    Unsupported,
    /// The command will also read keys that no argument names (`SORT ... BY pattern`), which may be anywhere.
    UnnamedKeys,
}

/// Decides where the request `args` of `row` goes. Neither allocates nor looks at more than the keys, and not even at
/// those if there is only one node.
#[inline]
pub fn plan(row: &Row, args: Args<'_>, topology: &Topology, scratch: &mut Scratch) -> Result<Plan, PlanError> {
    match plan_at_once(row, args, topology) {
        Some(node) => Ok(Plan::One(node)),
        None => plan_by_policy(row, args, topology, scratch),
    }
}

/// The node that a request goes to as it is, if one look at the row says so: there is one node, or the row has one key.
#[inline(always)]
pub fn plan_at_once(row: &Row, args: Args<'_>, topology: &Topology) -> Option<NodeIndex> {
    if topology.is_single() {
        return Some(NodeIndex::FIRST);
    }
    row.keys.single().and_then(|index| args.get(index)).map(|key| topology.place(key))
}

fn plan_by_policy(row: &Row, args: Args<'_>, topology: &Topology, scratch: &mut Scratch) -> Result<Plan, PlanError> {
    match row.way(args) {
        None => {}
        Some(Way::AllNodes) => return Ok(Plan::All),
        Some(Way::KeysFrom(first)) => {
            let node = in_one_place(arguments_from(first, args).map(|(index, key)| (index, topology.place(key))))?;
            return Ok(Plan::One(node.unwrap_or(topology.default_node())));
        }
    }
    match row.request_policy {
        RequestPolicy::AnyNode => Ok(Plan::One(topology.default_node())),
        RequestPolicy::AllShards | RequestPolicy::AllNodes if row.response_policy != ResponsePolicy::Special => {
            Ok(Plan::All)
        }
        // A cursor that is none is refused by any node, in Redis' words.
        RequestPolicy::Special if row.keys.is_none() => {
            Ok(topology.scan_step(args).map_or(Plan::One(topology.default_node()), Plan::Scan))
        }
        RequestPolicy::AllShards | RequestPolicy::AllNodes | RequestPolicy::Special => Err(PlanError::Unsupported),
        RequestPolicy::OneShard | RequestPolicy::SplitByKey if row.keys.is_none() => {
            Ok(Plan::One(topology.default_node()))
        }
        RequestPolicy::OneShard => plan_together(&row.keys, args, topology, scratch),
        RequestPolicy::SplitByKey if !topology.splits() => plan_together(&row.keys, args, topology, scratch),
        RequestPolicy::SplitByKey => plan_split(&row.keys, args, topology, scratch),
    }
}

/// All keys on one node, or an error that names the first two that are not.
fn plan_together(keys: &Keys, args: Args<'_>, topology: &Topology, scratch: &mut Scratch) -> Result<Plan, PlanError> {
    find_keys(keys, args, scratch)?;
    let place = |index: u32| Some((index, topology.place(args.get(index as usize)?)));
    let node = in_one_place(scratch.key_indexes().filter_map(place))?;
    Ok(Plan::One(node.unwrap_or(topology.default_node())))
}

/// Where all of these are, each with the index of its argument, or an error that names the first two that are apart.
pub(crate) fn in_one_place<P: PartialEq>(mut placed: impl Iterator<Item = (u32, P)>) -> Result<Option<P>, PlanError> {
    let Some((first, place)) = placed.next() else { return Ok(None) };
    match placed.find(|(_, other)| *other != place) {
        None => Ok(Some(place)),
        Some((second, _)) => Err(PlanError::CrossSlot { first, second }),
    }
}

/// All arguments from this place on, each with its index.
pub(crate) fn arguments_from<'a>(first: usize, args: Args<'a>) -> impl Iterator<Item = (u32, &'a [u8])> {
    (0u32..).zip(args.iter()).skip(first)
}

/// A part for each node that has some of the keys, unless one node has them all.
fn plan_split(keys: &Keys, args: Args<'_>, topology: &Topology, scratch: &mut Scratch) -> Result<Plan, PlanError> {
    if !find_keys(keys, args, scratch)? {
        return Ok(Plan::One(topology.default_node()));
    }
    match scratch.layout(keys, args.len()) {
        Layout::Even(layout) => {
            let node = scratch.split(layout, args, topology.node_count(), |_, key| topology.place(key));
            Ok(node.map_or(Plan::Split, Plan::One))
        }
        // A value is missing at the end, as in `MSET key value key`. Any node refuses the whole of it, while parts of
        // it would be executed.
        Layout::Incomplete => Ok(Plan::One(topology.default_node())),
        Layout::Uneven => plan_together(keys, args, topology, scratch),
    }
}

/// Puts the keys into the scratch; says whether there are any. A request whose keys cannot be found counts as one
/// without: the node that gets it refuses it, in Redis' words.
fn find_keys(keys: &Keys, args: Args<'_>, scratch: &mut Scratch) -> Result<bool, PlanError> {
    let has_keys = scratch.find_keys(keys, args);
    if scratch.has_unnamed_keys() { Err(PlanError::UnnamedKeys) } else { Ok(has_keys) }
}

impl PlanError {
    /// Writes the error reply for the request that was refused.
    #[cold]
    pub fn write(self, row: &Row, args: Args<'_>, reply: &mut Encoder<'_>) {
        let message = match self {
            Self::CrossSlot { first, second } => format!(
                "{}: '{}' and '{}' are on different nodes",
                text::CROSSSLOT,
                key_text(args, first),
                key_text(args, second)
            ),
            Self::Unsupported => format!("ERR '{}' is not supported over several nodes", row.full_name()),
            Self::UnnamedKeys => {
                format!("ERR '{}' with a pattern for keys is not supported over several nodes", row.full_name())
            }
        };
        reply.error(message.as_bytes());
    }
}

/// A key as an error shows it: printable, and cut where it gets long.
fn key_text(args: Args<'_>, index: u32) -> String {
    let key = args.get(index as usize).unwrap_or_default();
    match key.get(..KEY_TEXT_BYTES_MAX) {
        Some(start) if start.len() < key.len() => format!("{}...", start.escape_ascii()),
        _ => key.escape_ascii().to_string(),
    }
}
