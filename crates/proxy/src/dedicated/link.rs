//! A connection to one node that serves one client for good: what the node's bytes mean.

use crate::ids::{LaneHandle, NodeId};
use crate::limits::MONITOR_LINE_BYTES_MAX;
use respool_route::limits::AGREEMENT_BYTES_MAX;
use respool_wire::replies;

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Monitor,
    Replica,
}

/// A connection to one node.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) node: NodeId,
    pub(super) lane: LaneHandle,
    pub(super) has_agreed: bool,
    /// The beginning of the node's answer, or of a line of MONITOR.
    partial: Vec<u8>,
    /// The rest of the line is left out.
    is_cut: bool,
}

/// What a node's bytes mean.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Nothing yet.
    Nothing,
    /// These are the client's.
    Bytes(Vec<u8>),
    /// The node has agreed; these are the client's.
    Agreed(Vec<u8>),
    /// The node refuses, with this error.
    Refused(Vec<u8>),
    /// The node answers as no node should.
    Nonsense,
}

impl Link {
    pub(super) fn new(node: NodeId, lane: LaneHandle) -> Self {
        Self { node, lane, has_agreed: false, partial: Vec::new(), is_cut: false }
    }

    /// Bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.partial.capacity()
    }

    pub(super) fn take(&mut self, kind: Kind, bytes: &[u8]) -> Parsed {
        if self.has_agreed {
            return match kind {
                Kind::Replica => Parsed::Bytes(bytes.to_vec()),
                Kind::Monitor => self.lines(bytes),
            };
        }
        self.partial.extend_from_slice(bytes);
        let end = self.partial.windows(2).position(|pair| pair == b"\r\n").map(|at| at + 2);
        match (self.partial.first(), kind, end) {
            (None, ..) => Parsed::Nothing,
            (Some(b'-'), _, Some(end)) => {
                let is_all = end == self.partial.len();
                self.partial.truncate(end);
                if is_all { Parsed::Refused(std::mem::take(&mut self.partial)) } else { Parsed::Nonsense }
            }
            (Some(b'-'), _, None) | (Some(_), Kind::Monitor, None) => {
                if self.partial.len() > AGREEMENT_BYTES_MAX {
                    Parsed::Nonsense
                } else {
                    Parsed::Nothing
                }
            }
            // Whatever else begins here: the status of PSYNC, the length of a snapshot, or the empty lines by which the
            // node says that it is still making it.
            (Some(_), Kind::Replica, _) => {
                self.has_agreed = true;
                Parsed::Agreed(std::mem::take(&mut self.partial))
            }
            (Some(_), Kind::Monitor, Some(end)) => {
                if self.partial.get(..end) != Some(replies::OK) {
                    return Parsed::Nonsense;
                }
                self.has_agreed = true;
                let rest = std::mem::take(&mut self.partial).split_off(end);
                match self.lines(&rest) {
                    Parsed::Bytes(lines) => Parsed::Agreed(lines),
                    Parsed::Nonsense => Parsed::Nonsense,
                    _ => Parsed::Agreed(Vec::new()),
                }
            }
        }
    }

    /// Whole lines, each with its end; what is left of the last one is kept. A very long line is cut.
    fn lines(&mut self, bytes: &[u8]) -> Parsed {
        let mut lines = Vec::new();
        let mut rest = bytes;
        let mut is_begun = self.is_cut || !self.partial.is_empty();
        while let Some(first) = rest.first() {
            // What is shown to the client is nothing else, so that no reply of another kind can be made of it.
            if !is_begun && *first != b'+' {
                return Parsed::Nonsense;
            }
            is_begun = false;
            let Some(at) = rest.iter().position(|byte| *byte == b'\n') else { break };
            let (line, behind) = rest.split_at(at + 1);
            rest = behind;
            let start = lines.len();
            lines.append(&mut self.partial);
            match std::mem::take(&mut self.is_cut) {
                true => lines.extend_from_slice(b"...\r\n"),
                false => lines.extend_from_slice(line),
            }
            if !is_line(lines.get(start..).unwrap_or_default()) {
                return Parsed::Nonsense;
            }
        }
        if !self.is_cut {
            let room = MONITOR_LINE_BYTES_MAX.saturating_sub(self.partial.len());
            self.is_cut = rest.len() > room;
            // A line's end may have come in part: without its beginning.
            let rest = rest.strip_suffix(b"\r").filter(|_| self.is_cut).unwrap_or(rest);
            self.partial.extend_from_slice(rest.get(..room).unwrap_or(rest));
        }
        if lines.is_empty() { Parsed::Nothing } else { Parsed::Bytes(lines) }
    }
}

/// Whether this is one line, which ends as lines of the protocol do.
fn is_line(line: &[u8]) -> bool {
    line.iter().position(|byte| *byte == b'\r').is_some_and(|at| at + 2 == line.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Handle, LaneTable};

    fn link() -> Link {
        let lane = Handle { index: LaneTable::<()>::default().next_id(), generation: 0 };
        Link::new(NodeId::nth(0), lane)
    }

    /// All that a link makes of bytes, fed in two pieces.
    fn take(kind: Kind, bytes: &[u8], split: usize) -> (Vec<u8>, bool, Vec<Parsed>) {
        let mut link = link();
        let (mut shown, mut ends) = (Vec::new(), Vec::new());
        for piece in [&bytes[..split], &bytes[split..]] {
            if piece.is_empty() || !ends.is_empty() {
                continue;
            }
            match link.take(kind, piece) {
                Parsed::Nothing => {}
                Parsed::Bytes(bytes) | Parsed::Agreed(bytes) => shown.extend(bytes),
                end => ends.push(end),
            }
        }
        (shown, link.has_agreed, ends)
    }

    #[test]
    fn a_snapshot_passes_as_it_comes_however_it_is_cut() {
        for bytes in
            [&b"$5\r\nREDIS*1\r\n$4\r\nPING\r\n"[..], b"\n\n$0\r\n", b"+FULLRESYNC abc 0\r\n$1\r\nx", b"+CONTINUE\r\n"]
        {
            for split in 0..bytes.len() {
                assert_eq!(take(Kind::Replica, bytes, split), (bytes.to_vec(), true, Vec::new()), "split at {split}");
            }
        }
    }

    #[test]
    fn a_refusal_is_told_whole_and_nothing_may_come_behind_it() {
        let error = b"-NOMASTERLINK Can't SYNC while not connected with my master\r\n";
        for kind in [Kind::Replica, Kind::Monitor] {
            for split in 0..error.len() {
                let (shown, has_agreed, ends) = take(kind, error, split);
                assert!(shown.is_empty() && !has_agreed);
                assert_eq!(ends, [Parsed::Refused(error.to_vec())], "split at {split}");
            }
        }
        assert_eq!(take(Kind::Replica, b"-ERR no\r\n$3\r\n", 0).2, [Parsed::Nonsense]);
        assert_eq!(take(Kind::Monitor, b"$3\r\nabc\r\n", 0).2, [Parsed::Nonsense]);
        let endless = [&b"-"[..], &[b'x'; AGREEMENT_BYTES_MAX + 1]].concat();
        assert_eq!(take(Kind::Monitor, &endless, 0).2, [Parsed::Nonsense]);
    }

    #[test]
    fn lines_are_shown_whole() {
        let bytes = b"+OK\r\n+1.0 [0 a:1] \"get\" \"k\"\r\n+1.1 [0 a:1] \"ping\"\r\n+1.2 [0";
        for split in 0..bytes.len() {
            let (shown, has_agreed, ends) = take(Kind::Monitor, bytes, split);
            assert_eq!(shown, b"+1.0 [0 a:1] \"get\" \"k\"\r\n+1.1 [0 a:1] \"ping\"\r\n", "split at {split}");
            assert!(has_agreed && ends.is_empty());
        }
    }

    #[test]
    fn what_is_no_line_is_not_shown() {
        for bytes in [
            &b"+OK\r\n$3\r\nabc\r\n"[..],
            b"+OK\r\n+1 \"get\"\r\n:1\r\n",
            b"+OK\r\n\r\n",
            b"+OK\r\n+1\n",
            b"+OK\r\n+1\r2\r\n",
        ] {
            for split in 0..bytes.len() {
                assert_eq!(take(Kind::Monitor, bytes, split).2, [Parsed::Nonsense], "split at {split}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_cut_and_holds_no_more_than_its_limit() {
        let mut link = link();
        assert_eq!(link.take(Kind::Monitor, b"+OK\r\n+"), Parsed::Agreed(Vec::new()));
        let mut shown = Vec::new();
        for _ in 0..(2 * MONITOR_LINE_BYTES_MAX / 1024) {
            assert_eq!(link.take(Kind::Monitor, &[b'x'; 1024]), Parsed::Nothing);
            assert!(link.partial.len() <= MONITOR_LINE_BYTES_MAX);
        }
        for bytes in [&b"\r"[..], b"\n+next\r\n"] {
            if let Parsed::Bytes(bytes) = link.take(Kind::Monitor, bytes) {
                shown.extend(bytes);
            }
        }
        assert_eq!(shown.len(), MONITOR_LINE_BYTES_MAX + b"...\r\n+next\r\n".len());
        assert!(shown.ends_with(b"x...\r\n+next\r\n"));
    }
}
