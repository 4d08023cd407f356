//! A request that is split: which keys go to which node, and the request that each node is sent.
//!
//! The argument vector of such a command is a head, then groups of one key and what belongs to it (nothing for `MGET`, a
//! value for `MSET`), then a tail. Each part repeats head and tail around the groups of its own keys, in their order.
//! Keys are grouped in two passes over flat lists, so a million of them cost no allocation beyond those lists.

use respool_command::{Begin, Find, KeyPosition, KeyPositions, Keys};
use respool_wire::{Args, Request, request_bulk, request_head};

use crate::limits::SCRATCH_KEYS_KEPT;
use crate::node::NodeIndex;
use crate::routes::Rewrite;

/// Working memory for [`plan`](crate::plan::plan), made to be reused: one for each worker. It holds the parts of the
/// latest [`Plan::Split`](crate::Plan::Split).
#[derive(Debug, Default)]
pub struct Scratch {
    keys: KeyPositions,
    groups: Groups,
    /// For each key in order, which part it went to.
    owners: Vec<u16>,
    /// In the order in which the keys name them first.
    parts: Vec<Head>,
    /// The keys' positions, part by part.
    grouped: Vec<u32>,
    /// For each node, its part; [`NO_PART`] between splits.
    part_of_node: Vec<u16>,
}

/// Where a part's keys are in `grouped`.
#[derive(Clone, Copy, Debug)]
struct Head {
    node: NodeIndex,
    /// First behind the keys that were filed already; behind all of them in the end.
    end: usize,
    keys: usize,
}

const NO_PART: u16 = u16::MAX;

/// How arguments hang together: groups of `step` from `first` on, and a tail from `tail` on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Groups {
    first: usize,
    step: usize,
    tail: usize,
}

/// What kind of request the keys make.
pub(crate) enum Layout {
    /// Head, groups and tail: it can be split.
    Even(Groups),
    /// The last group lacks something.
    Incomplete,
    /// The keys lie in another way, or are counted by an argument: it cannot be split.
    Uneven,
}

impl Scratch {
    /// No memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The parts of the latest [`Plan::Split`](crate::Plan::Split), in the order in which the keys name their nodes
    /// first. This order also numbers them for the [`Gather`](crate::Gather).
    pub fn parts(&self) -> impl ExactSizeIterator<Item = Part<'_>> {
        self.parts.iter().map(|head| Part {
            node: head.node,
            keys: &self.grouped[head.end - head.keys..head.end],
            groups: self.groups,
        })
    }

    /// For each key of the latest split, in order, the number of its part.
    pub(crate) fn owners(&self) -> &[u16] {
        &self.owners
    }

    /// Finds the keys of a request; says whether there are any.
    pub(crate) fn find_keys(&mut self, keys: &Keys, args: Args<'_>) -> bool {
        if self.grouped.capacity().max(self.keys.as_slice().len()) > SCRATCH_KEYS_KEPT {
            *self = Self::default();
        }
        keys.positions(args, &mut self.keys).is_ok() && !self.keys.is_empty()
    }

    pub(crate) fn has_unnamed_keys(&self) -> bool {
        self.keys.has_unnamed()
    }

    /// The positions of patterns for keys that are not named.
    pub(crate) fn patterns(&self) -> impl ExactSizeIterator<Item = u32> {
        self.keys.patterns()
    }

    /// The keys that were found.
    pub(crate) fn keys(&self) -> &[KeyPosition] {
        self.keys.as_slice()
    }

    /// The positions of the keys that were found.
    pub(crate) fn key_indexes(&self) -> impl Iterator<Item = u32> {
        self.keys.iter().map(|key| key.index)
    }

    /// How the keys that were found lie among `argc` arguments.
    pub(crate) fn layout(&self, keys: &Keys, argc: usize) -> Layout {
        let [spec] = keys.specs() else { return Layout::Uneven };
        let (Begin::Index(first), Find::Range { last: ..0, step, limit: 0 | 1 }) = (spec.begin, spec.find) else {
            return Layout::Uneven;
        };
        let (first, step) = (usize::from(first), usize::from(step.max(1)));
        let is_even = |(at, index): (usize, u32)| index as usize == first + at * step;
        if !self.key_indexes().enumerate().all(is_even) {
            return Layout::Uneven;
        }
        let tail = first + self.keys.len() * step;
        if tail > argc { Layout::Incomplete } else { Layout::Even(Groups { first, step, tail }) }
    }

    /// Files the keys that were found by node: `place` says for each, by its number and itself, which of `nodes` nodes has
    /// it. Gives the node if it is the same for all.
    pub(crate) fn split(
        &mut self,
        groups: Groups,
        args: Args<'_>,
        nodes: usize,
        place: impl Fn(usize, &[u8]) -> NodeIndex,
    ) -> Option<NodeIndex> {
        self.clear();
        self.groups = groups;
        self.part_of_node.resize(nodes, NO_PART);
        for (number, key) in self.keys.iter().enumerate() {
            let node = place(number, args.at(key.index as usize));
            let part = &mut self.part_of_node[node.get()];
            if *part == NO_PART {
                *part = self.parts.len() as u16;
                self.parts.push(Head { node, end: 0, keys: 0 });
            }
            self.parts[usize::from(*part)].keys += 1;
            self.owners.push(*part);
        }
        if let [only] = self.parts[..] {
            self.clear();
            return Some(only.node);
        }
        self.file();
        None
    }

    /// Puts each key behind the earlier ones of its part.
    fn file(&mut self) {
        let mut start = 0;
        for part in &mut self.parts {
            part.end = start;
            start += part.keys;
        }
        self.grouped.resize(start, 0);
        for (key, part) in self.keys.iter().zip(&self.owners) {
            let part = &mut self.parts[usize::from(*part)];
            self.grouped[part.end] = key.index;
            part.end += 1;
        }
    }

    fn clear(&mut self) {
        for part in self.parts.drain(..) {
            self.part_of_node[part.node.get()] = NO_PART;
        }
        self.owners.clear();
        self.grouped.clear();
    }
}

/// One node's share of a request that is split.
#[derive(Clone, Copy, Debug)]
pub struct Part<'s> {
    /// The node that it goes to.
    pub node: NodeIndex,
    /// Positions of its keys among the request's arguments, ascending.
    pub keys: &'s [u32],
    groups: Groups,
}

impl Part<'_> {
    /// How many arguments the part's request has, the command's name included.
    fn argc(&self, args: Args<'_>) -> usize {
        self.groups.first + self.keys.len() * self.groups.step + (args.len() - self.groups.tail)
    }

    /// Appends the part's request in canonical form. `request` is the one that the plan was made for.
    pub fn encode(&self, request: &Request<'_>, out: &mut Vec<u8>) {
        let Groups { first, step, tail } = self.groups;
        request_head(out, self.argc(request.args));
        request.copy_arguments(0, first, out);
        self.keys.iter().for_each(|key| request.copy_arguments(*key as usize, *key as usize + step, out));
        request.copy_arguments(tail, request.args.len(), out);
    }

    /// The same with other names for its keys.
    pub fn encode_as(&self, request: &Request<'_>, rewrite: &Rewrite, out: &mut Vec<u8>) {
        if rewrite.is_none() {
            return self.encode(request, out);
        }
        let Groups { first, step, tail } = self.groups;
        let mut name = Vec::new();
        request_head(out, self.argc(request.args));
        request.copy_arguments(0, first, out);
        for key in self.keys.iter().map(|key| *key as usize) {
            rewrite.apply(request.args.at(key), &mut name);
            request_bulk(out, &name);
            request.copy_arguments(key + 1, key + step, out);
        }
        request.copy_arguments(tail, request.args.len(), out);
    }
}
