//! A node: what it believes about the others, and the redirects and refusals that follow from it.

use std::collections::{BTreeMap, BTreeSet};

use respool_command::{Flags, KeyPositions, Row, lookup};
use respool_route::Scratch;
use respool_route::cluster::{SlotPlan, plan_slots};
use respool_route::{PlanError, SLOTS};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, Value};

use crate::data::{Data, Effects};

/// The number of a node in its world.
pub type NodeIndex = usize;

/// What a node believes about a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Belief {
    pub(crate) owner: NodeIndex,
    pub(crate) epoch: u64,
}

/// A request of a client that a node has executed or refused.
pub(crate) struct Handled {
    pub(crate) database: u32,
    pub(crate) args: ArgsBuf,
    pub(crate) reply: Vec<u8>,
    pub(crate) is_refused: bool,
}

pub(crate) struct Node {
    pub(crate) index: NodeIndex,
    /// It belongs to a cluster, and is no server that others know of.
    pub(crate) is_cluster: bool,
    pub(crate) data: Data,
    /// What was changed and is not told to replicas yet.
    pub(crate) effects: Effects,
    /// What it was asked for since this was last taken, where that is kept.
    pub(crate) journal: Option<Vec<Handled>>,
    /// For each slot.
    pub(crate) beliefs: Vec<Belief>,
    /// The primary that it copies; `None` if it is one.
    pub(crate) primary: Option<NodeIndex>,
    /// Replicas by primary, as the node believes.
    pub(crate) replicas: BTreeMap<NodeIndex, Vec<NodeIndex>>,
    pub(crate) migrating: BTreeMap<u16, NodeIndex>,
    pub(crate) importing: BTreeMap<u16, NodeIndex>,
    pub(crate) is_loading: bool,
    /// It cannot reach most of the primaries.
    pub(crate) is_minority: bool,
    /// Kept, as it has room for a part of each slot.
    scratch: Scratch,
}

/// Where a node is reached.
pub(crate) fn place(node: NodeIndex) -> (String, u16) {
    // Odd ones have IPv6 addresses.
    let host = if node % 2 == 1 { format!("2001:db8::{node:x}") } else { format!("10.0.0.{node}") };
    (host, 7_000 + node as u16)
}

impl Node {
    pub(crate) fn new(index: NodeIndex, is_cluster: bool, seed: u64) -> Self {
        Self {
            index,
            is_cluster,
            data: Data::new([seed, index as u64]),
            effects: Effects::new(),
            journal: None,
            beliefs: vec![Belief::default(); usize::from(SLOTS)],
            primary: None,
            replicas: BTreeMap::new(),
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            is_loading: false,
            is_minority: false,
            scratch: Scratch::new(),
        }
    }

    /// Forgets its data.
    pub(crate) fn wipe(&mut self, seed: u64) {
        self.data.wipe([seed, self.index as u64]);
    }

    /// The error that a node gives before it executes anything of these requests: of one, or of a transaction.
    pub(crate) fn refuse(
        &mut self,
        requests: &[Args<'_>],
        (is_asking, is_readonly): (bool, bool),
        now_us: u64,
    ) -> Option<Vec<u8>> {
        if self.is_loading {
            return Some(b"-LOADING Redis is loading the dataset in memory\r\n".to_vec());
        }
        if self.is_cluster {
            return self.refuse_by_slots(requests, is_asking, is_readonly, now_us);
        }
        let writes = |args: &Args<'_>| row_of(*args).is_some_and(|row| row.flags.has(Flags::WRITE) || row.runs_scripts);
        let is_refused = self.primary.is_some() && requests.iter().any(writes);
        is_refused.then(|| b"-READONLY You can't write against a read only replica.\r\n".to_vec())
    }

    fn refuse_by_slots(
        &mut self,
        requests: &[Args<'_>],
        is_asking: bool,
        is_readonly: bool,
        now_us: u64,
    ) -> Option<Vec<u8>> {
        let cross_slot = || Some(b"-CROSSSLOT Keys in request don't hash to the same slot\r\n".to_vec());
        let (mut slots, mut keys, mut is_read) = (BTreeSet::new(), BTreeSet::new(), true);
        for args in requests {
            let row = row_of(*args)?;
            match plan_slots(row, *args, &mut self.scratch) {
                Ok(SlotPlan::One(slot)) => slots.insert(slot),
                Ok(SlotPlan::Split) | Err(PlanError::CrossSlot { .. }) => return cross_slot(),
                _ => continue,
            };
            let mut positions = KeyPositions::default();
            let _ = row.keys.positions(*args, &mut positions);
            keys.extend(positions.iter().map(|key| args.at(key.index as usize)));
            is_read &= !row.flags.has(Flags::WRITE);
        }
        let slot = *slots.first()?;
        if slots.len() > 1 {
            return cross_slot();
        }
        if self.is_minority {
            return Some(b"-CLUSTERDOWN The cluster is down\r\n".to_vec());
        }
        let missing = keys.iter().filter(|key| !self.data.has(0, key, now_us)).count();
        let owner = self.beliefs[usize::from(slot)].owner;
        let redirect = |code: &str, to: NodeIndex| {
            let (host, port) = place(to);
            Some(format!("-{code} {slot} {host}:{port}\r\n").into_bytes())
        };
        let try_again = || Some(b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n".to_vec());
        if owner == self.index {
            return match self.migrating.get(&slot) {
                Some(to) if missing == keys.len() => redirect("ASK", *to),
                Some(_) if missing > 0 => try_again(),
                _ => None,
            };
        }
        if is_asking && self.importing.contains_key(&slot) {
            return if keys.len() > 1 && missing > 0 { try_again() } else { None };
        }
        if self.primary == Some(owner) && is_readonly && is_read {
            return None;
        }
        redirect("MOVED", owner)
    }

    /// `CLUSTER SLOTS`, `SHARDS` and `NODES`, by what the node believes.
    pub(crate) fn cluster(&self, args: Args<'_>, protocol: Protocol) -> Vec<u8> {
        let bulk = |text: String| Value::Bulk(text.into_bytes());
        let integer = |number: usize| Value::Integer(number as i64);
        let mut runs: Vec<(usize, usize, NodeIndex)> = Vec::new();
        for (slot, belief) in self.beliefs.iter().enumerate() {
            match runs.last_mut() {
                Some((_, last, owner)) if *owner == belief.owner => *last = slot,
                _ => runs.push((slot, slot, belief.owner)),
            }
        }
        let members = |owner: &NodeIndex| {
            let replicas = self.replicas.get(owner).cloned().unwrap_or_default();
            std::iter::once(*owner).chain(replicas)
        };
        let id = |node: NodeIndex| format!("{:040x}", node + 1);
        // A node does not know how it is reached itself.
        let host = |node: NodeIndex| if node == self.index { String::new() } else { place(node).0 };
        let form = args.get(1).unwrap_or_default().to_ascii_uppercase();
        let value = match &form[..] {
            b"SLOTS" => {
                let member = |node| {
                    let port = integer(place(node).1.into());
                    Value::Array(vec![bulk(host(node)), port, bulk(id(node)), Value::Array(Vec::new())])
                };
                let run = |(first, last, owner): &(usize, usize, NodeIndex)| {
                    let ends = [integer(*first), integer(*last)];
                    Value::Array(ends.into_iter().chain(members(owner).map(member)).collect())
                };
                Value::Array(runs.iter().map(run).collect())
            }
            b"SHARDS" => {
                let mut shards: BTreeMap<NodeIndex, Vec<Value>> = BTreeMap::new();
                for (first, last, owner) in &runs {
                    shards.entry(*owner).or_default().extend([integer(*first), integer(*last)]);
                }
                let word = |text: &str| bulk(text.to_owned());
                let member = |owner: NodeIndex, node: NodeIndex| {
                    Value::Map(vec![
                        (word("id"), bulk(id(node))),
                        (word("port"), integer(place(node).1.into())),
                        (word("endpoint"), bulk(host(node))),
                        (word("role"), word(if node == owner { "master" } else { "replica" })),
                        (word("health"), word("online")),
                    ])
                };
                let shard = |(owner, slots): (NodeIndex, Vec<Value>)| {
                    let nodes = members(&owner).map(|node| member(owner, node)).collect();
                    Value::Map(vec![(word("slots"), Value::Array(slots)), (word("nodes"), Value::Array(nodes))])
                };
                Value::Array(shards.into_iter().map(shard).collect())
            }
            b"NODES" => {
                let mut text = String::new();
                let owners: std::collections::BTreeSet<NodeIndex> = runs.iter().map(|run| run.2).collect();
                for owner in owners {
                    let own = || self.beliefs.iter().filter(|belief| belief.owner == owner);
                    let epoch = own().map(|belief| belief.epoch).max().unwrap_or(0);
                    for node in members(&owner) {
                        let (flags, of) = if node == owner { ("master", "-".to_owned()) } else { ("slave", id(owner)) };
                        let port = place(node).1;
                        text += &format!("{} {}:{port}@1 {flags} {of} 0 0 {epoch} connected", id(node), host(node));
                        if node == owner {
                            runs.iter().filter(|run| run.2 == owner).for_each(|(first, last, _)| {
                                text += &format!(" {first}-{last}");
                            });
                        }
                        if node == self.index {
                            self.migrating.iter().for_each(|(slot, to)| text += &format!(" [{slot}->-{}]", id(*to)));
                            self.importing.iter().for_each(|(slot, of)| text += &format!(" [{slot}-<-{}]", id(*of)));
                        }
                        text.push('\n');
                    }
                }
                bulk(text)
            }
            _ => Value::Error(b"ERR unknown subcommand".to_vec()),
        };
        let mut reply = Vec::new();
        value.encode(&mut Encoder::new(&mut reply, protocol));
        reply
    }
}

pub(crate) fn row_of(args: Args<'_>) -> Option<&'static Row> {
    let row = lookup(args.name())?;
    Some(args.get(1).and_then(|name| row.subcommand(name)).unwrap_or(row))
}
