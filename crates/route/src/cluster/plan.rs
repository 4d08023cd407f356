//! From a request to the slots that it concerns. Which member has them is not asked here, so the answer holds whatever the map.
//!
//! A member refuses a request whose keys are in several slots, even if it has all of them. So requests that may be split are split by slot, and
//! parts for one member are sent one behind the other.

use respool_command::{RequestPolicy, ResponsePolicy, Row, Way};
use respool_wire::Args;

use crate::hash_tag::TagRule;
use crate::node::NodeIndex;
use crate::placement::{SLOTS, slot};
use crate::plan::{PlanError, arguments_from, in_one_place};
use crate::split::{Layout, Scratch};

/// Which slots a request concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotPlan {
    /// None: any member answers it.
    Any,
    /// This one.
    One(u16),
    /// Several: [`Scratch::parts`] has a part for each, whose `node` is the slot. Their replies are joined by a
    /// [`Gather`](crate::Gather).
    Split,
    /// The primary of each shard answers it. Their replies are joined.
    AllShards,
    /// Every member answers it, replicas as well. Their replies are joined.
    AllNodes,
    /// It is a step of a walk over all keys (`SCAN`), which goes from shard to shard.
    Walk,
}

/// Decides which slots the request `args` of `row` concerns.
pub fn plan_slots(row: &Row, args: Args<'_>, scratch: &mut Scratch) -> Result<SlotPlan, PlanError> {
    if let Some(key) = row.keys.single().and_then(|index| args.get(index)) {
        return Ok(SlotPlan::One(slot_of(key)));
    }
    match row.way(args) {
        None => {}
        Some(Way::AllNodes) => return Ok(SlotPlan::AllShards),
        Some(Way::KeysFrom(first)) => {
            let slot = in_one_place(arguments_from(first, args).map(|(index, key)| (index, slot_of(key))))?;
            return Ok(slot.map_or(SlotPlan::Any, SlotPlan::One));
        }
    }
    let is_joined = row.response_policy != ResponsePolicy::Special;
    match row.request_policy {
        RequestPolicy::AnyNode => Ok(SlotPlan::Any),
        RequestPolicy::AllShards if is_joined => Ok(SlotPlan::AllShards),
        RequestPolicy::AllNodes if is_joined => Ok(SlotPlan::AllNodes),
        RequestPolicy::Special if row.keys.is_none() => Ok(SlotPlan::Walk),
        RequestPolicy::AllShards | RequestPolicy::AllNodes | RequestPolicy::Special => Err(PlanError::Unsupported),
        RequestPolicy::OneShard | RequestPolicy::SplitByKey if row.keys.is_none() => Ok(SlotPlan::Any),
        RequestPolicy::OneShard => plan_together(row, args, scratch),
        RequestPolicy::SplitByKey => plan_split(row, args, scratch),
    }
}

/// The slot of a key.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    slot(TagRule::Cluster.hashed(key))
}

fn plan_together(row: &Row, args: Args<'_>, scratch: &mut Scratch) -> Result<SlotPlan, PlanError> {
    // A pattern for keys is refused by the member as well, unless its slot is the one of the key; it is left to it.
    scratch.find_keys(&row.keys, args);
    same_slot(args, scratch)
}

/// The slot of the keys that were found, or an error that names the first two that are in different ones.
fn same_slot(args: Args<'_>, scratch: &Scratch) -> Result<SlotPlan, PlanError> {
    let place = |index: u32| Some((index, slot_of(args.get(index as usize)?)));
    let slot = in_one_place(scratch.key_indexes().filter_map(place))?;
    Ok(slot.map_or(SlotPlan::Any, SlotPlan::One))
}

fn plan_split(row: &Row, args: Args<'_>, scratch: &mut Scratch) -> Result<SlotPlan, PlanError> {
    if !scratch.find_keys(&row.keys, args) {
        return Ok(SlotPlan::Any);
    }
    match scratch.layout(&row.keys, args.len()) {
        Layout::Even(groups) => {
            let place = |_, key: &[u8]| NodeIndex::new(usize::from(slot_of(key)));
            let only = scratch.split(groups, args, usize::from(SLOTS), place);
            Ok(only.map_or(SlotPlan::Split, |slot| SlotPlan::One(slot.get() as u16)))
        }
        // A value is missing at the end. Any member refuses the whole of it, while parts of it would be executed.
        Layout::Incomplete => Ok(SlotPlan::Any),
        Layout::Uneven => same_slot(args, scratch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::lookup;
    use respool_wire::ArgsBuf;

    fn plan(request: &str, scratch: &mut Scratch) -> Result<SlotPlan, PlanError> {
        let args: ArgsBuf = request.split(' ').map(str::as_bytes).collect();
        let args = args.as_args();
        let row = lookup(args.name()).unwrap();
        let row = args.get(1).and_then(|name| row.subcommand(name)).unwrap_or(row);
        plan_slots(row, args, scratch)
    }

    #[test]
    fn the_slots_follow_from_the_request_alone() {
        let mut scratch = Scratch::new();
        // By CLUSTER KEYSLOT.
        let (foo, bar) = (12_182, 5_061);
        for (request, expected) in [
            ("GET foo", Ok(SlotPlan::One(foo))),
            ("SET {foo}x 1", Ok(SlotPlan::One(foo))),
            ("MGET foo {foo}x", Ok(SlotPlan::One(foo))),
            ("MGET foo bar", Ok(SlotPlan::Split)),
            ("MSET foo 1 bar", Ok(SlotPlan::Any)),
            ("SINTER foo bar", Err(PlanError::CrossSlot { first: 1, second: 2 })),
            ("RENAME bar {bar}2", Ok(SlotPlan::One(bar))),
            ("DEBUG DIGEST-VALUE bar {bar}2", Ok(SlotPlan::One(bar))),
            ("DEBUG DIGEST-VALUE foo bar", Err(PlanError::CrossSlot { first: 2, second: 3 })),
            ("DEBUG DIGEST-VALUE", Ok(SlotPlan::Any)),
            ("EVAL return 2 {bar}1 bar", Ok(SlotPlan::One(bar))),
            ("EVAL return 0", Ok(SlotPlan::Any)),
            ("ECHO foo", Ok(SlotPlan::Any)),
            ("PING", Ok(SlotPlan::AllShards)),
            ("DBSIZE", Ok(SlotPlan::AllShards)),
            ("FLUSHALL", Ok(SlotPlan::AllShards)),
            ("SCAN 0", Ok(SlotPlan::Walk)),
        ] {
            assert_eq!(plan(request, &mut scratch), expected, "{request}");
        }
    }

    #[test]
    fn keys_of_one_member_are_split_if_their_slots_differ() {
        let mut scratch = Scratch::new();
        assert_eq!(plan("DEL foo bar {foo}2", &mut scratch), Ok(SlotPlan::Split));
        let parts: Vec<_> = scratch.parts().map(|part| (part.node.get(), part.keys.to_vec())).collect();
        assert_eq!(parts, [(12_182, vec![1, 3]), (5_061, vec![2])]);
    }
}
