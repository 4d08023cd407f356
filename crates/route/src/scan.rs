//! SCAN over all nodes: one node after the other, in cursors that say where the walk is.
//!
//! ```text
//!   63                              16 15           0
//!   [ cursor of the node              ][ node's mark ]        0: the beginning, and in a reply the end
//! ```
//!
//! A node's cursor is below the size of its table (Redis counts with the bits reversed), so 48 bits are enough for any
//! table that fits into memory, and while tables have fewer than 2^37 places the whole stays below 2^53, as JavaScript
//! needs it. The mark names the node by its name, not by its place in the list: it is 16 bits of a hash of the name, so
//! that a cursor still means the same node after the list was changed. Nodes are walked in the order of their marks; a
//! cursor whose node has gone goes on with the next one. What Redis promises holds: a key that is there from the
//! beginning to the end of the walk is seen, for as long as keys stay on their nodes.

use respool_command::parse_cursor;
use respool_wire::{Args, Encoder, Value, elements, request_bulk, request_head};

use crate::node::{Node, NodeIndex};

/// Bits of the mark.
const MARK_BITS: u32 = 16;

/// The nodes in the order of a walk.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Marks, ascending and never 0, with their nodes.
    marks: Box<[(u16, NodeIndex)]>,
}

/// One step of a walk: one request to one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanStep {
    /// The node that is asked.
    pub node: NodeIndex,
    /// The node's own cursor.
    cursor: u64,
    mark: u16,
    /// The mark of the node behind this one; 0 behind the last.
    next: u16,
    /// The cursor is behind the last node. The node is asked for its opinion of the options alone.
    is_over: bool,
}

impl Walk {
    /// The walk over `nodes`.
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let mut by_name: Vec<(&str, usize)> =
            nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect();
        by_name.sort_unstable();
        let mut marks: Vec<(u16, NodeIndex)> = Vec::with_capacity(nodes.len());
        for (name, index) in by_name {
            let mut mark = mark_of(name);
            // Two names of one mark are rare; the later name then takes the next free one.
            while mark == 0 || marks.iter().any(|(taken, _)| *taken == mark) {
                mark = mark.wrapping_add(1);
            }
            marks.push((mark, NodeIndex::new(index)));
        }
        marks.sort_unstable();
        Self { marks: marks.into() }
    }

    /// The step that a cursor asks for.
    pub(crate) fn step(&self, cursor: u64) -> ScanStep {
        let mark = cursor as u16;
        let at = self.marks.partition_point(|(other, _)| *other < mark);
        let next = |at: usize| self.marks.get(at + 1).map_or(0, |(mark, _)| *mark);
        match self.marks.get(at) {
            Some(&(own, node)) if own == mark => {
                ScanStep { node, cursor: cursor >> MARK_BITS, mark, next: next(at), is_over: false }
            }
            // The beginning, or the node has gone: the one behind it, from its beginning.
            Some(&(own, node)) => ScanStep { node, cursor: 0, mark: own, next: next(at), is_over: false },
            None => ScanStep { node: self.marks[0].1, is_over: true, ..ScanStep::default() },
        }
    }

    /// The step that a request asks for; `None` if its cursor is none.
    pub(crate) fn step_of(&self, args: Args<'_>) -> Option<ScanStep> {
        args.get(1).and_then(parse_cursor).map(|cursor| self.step(cursor))
    }
}

impl ScanStep {
    /// Appends the request for the node: the same, with the node's own cursor.
    pub fn encode(&self, args: Args<'_>, out: &mut Vec<u8>) {
        request_head(out, args.len());
        request_bulk(out, args.name());
        request_bulk(out, self.cursor.to_string().as_bytes());
        args.from(2).iter().for_each(|argument| request_bulk(out, argument));
    }

    /// Writes the node's reply with a cursor that says where the whole walk is. `false`: it is no reply to SCAN.
    pub(crate) fn write(&self, reply: &[u8], out: &mut Encoder<'_>) -> bool {
        let Some(mut parts) = elements(reply).filter(|parts| parts.declared() == 2) else { return false };
        let (Some(cursor), Some(keys)) = (parts.next(), parts.next()) else { return false };
        let Ok(Value::Bulk(cursor) | Value::Simple(cursor)) = Value::parse(cursor) else { return false };
        let Some(cursor) = parse_cursor(&cursor) else { return false };
        if self.is_over {
            out.array(2);
            out.bulk(b"0");
            out.array(0);
            return true;
        }
        let whole = match cursor {
            0 => u64::from(self.next),
            cursor if cursor >> (u64::BITS - MARK_BITS) == 0 => cursor << MARK_BITS | u64::from(self.mark),
            _ => return false,
        };
        out.array(2);
        out.bulk(whole.to_string().as_bytes());
        out.raw(keys);
        true
    }
}

/// FNV-1a, folded to the bits of a mark. Part of what cursors mean: it must not change between versions.
fn mark_of(name: &str) -> u16 {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::Protocol;

    fn nodes(names: &[&str]) -> Vec<Node> {
        names.iter().map(|name| Node::new(*name)).collect()
    }

    /// What the client gets after the node said `cursor`.
    fn after(step: ScanStep, cursor: u64) -> Option<u64> {
        let text = cursor.to_string();
        let reply = format!("*2\r\n${}\r\n{text}\r\n*1\r\n$1\r\nk\r\n", text.len());
        let mut out = Vec::new();
        let is_fit = step.write(reply.as_bytes(), &mut Encoder::new(&mut out, Protocol::Resp2));
        let Ok(Value::Array(parts)) = Value::parse(&out) else { return None };
        let Value::Bulk(cursor) = &parts[0] else { return None };
        is_fit.then(|| parse_cursor(cursor)).flatten()
    }

    #[test]
    fn a_walk_visits_every_node_once_and_ends() {
        let walk = Walk::new(&nodes(&["a:1", "b:2", "c:3", "d:4"]));
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            let step = walk.step(cursor);
            // Each node has two steps: its cursor goes from 0 to 6 and back to 0.
            seen.push((step.node.get(), step.cursor));
            cursor = after(step, if step.cursor == 0 { 6 } else { 0 }).expect("fits");
            assert!(cursor < 1 << 53);
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), 8);
        let mut visited: Vec<_> = seen.iter().step_by(2).map(|(node, _)| *node).collect();
        visited.sort_unstable();
        assert_eq!(visited, [0, 1, 2, 3]);
        assert!(seen.chunks(2).all(|pair| pair[0].0 == pair[1].0 && (pair[0].1, pair[1].1) == (0, 6)), "{seen:?}");
    }

    #[test]
    fn a_cursor_means_the_same_node_after_the_list_has_changed() {
        let before = Walk::new(&nodes(&["a:1", "b:2", "c:3"]));
        let after_reload = Walk::new(&nodes(&["x:9", "c:3", "b:2", "a:1"]));
        for cursor in [0, 5, 1 << 36] {
            for (mark, node) in &before.marks {
                let whole = cursor << MARK_BITS | u64::from(*mark);
                let (old, new) = (before.step(whole), after_reload.step(whole));
                assert_eq!((old.node, old.cursor), (*node, cursor));
                assert_eq!(new.cursor, cursor);
                assert_eq!(["a:1", "b:2", "c:3"][old.node.get()], ["x:9", "c:3", "b:2", "a:1"][new.node.get()]);
            }
        }
        // A node that has gone: the walk goes on with the next one.
        let fewer = Walk::new(&nodes(&["a:1", "c:3"]));
        let gone = before.marks.iter().find(|(_, node)| node.get() == 1).expect("b is in the walk").0;
        assert_eq!(fewer.step(7 << MARK_BITS | u64::from(gone)).cursor, 0);
    }

    #[test]
    fn names_of_one_mark_are_told_apart() {
        let walk = Walk::new(&nodes(&["same", "same", "same"]));
        assert_eq!(walk.marks.len(), 3);
        assert!(walk.marks.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn what_does_not_fit_is_no_cursor() {
        let walk = Walk::new(&nodes(&["a", "b"]));
        let step = walk.step(0);
        assert_eq!(after(step, (1 << 48) - 1).map(|cursor| walk.step(cursor).cursor), Some((1 << 48) - 1));
        assert_eq!(after(step, 1 << 48), None);
        assert_eq!(after(walk.step(0xffff), 0).map(|_| ()), Some(()));
        for reply in ["+OK\r\n", "*2\r\n$1\r\nx\r\n*0\r\n", "*1\r\n$1\r\n0\r\n", "*2\r\n:1\r\n*0\r\n"] {
            let mut out = Vec::new();
            assert!(!step.write(reply.as_bytes(), &mut Encoder::new(&mut out, Protocol::Resp2)), "{reply:?}");
        }
    }
}
