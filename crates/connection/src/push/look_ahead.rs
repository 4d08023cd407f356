//! Messages that a node has sent, shortly before they are delivered.
//!
//! With very many channels a message is some bytes here and there in tables of tens of megabytes: its name's place in the index, the
//! channel's record, its subscribers, what the node was told. Each is far away, and some are known only by the one before, so
//! that most of what a message costs is waiting for memory. Those of several messages do not depend on each other, and a processor waits
//! for many places at once: they are read together first, and are near when each message is delivered.

use super::frame::{Frame, Kind};
use super::node_ledger::{NodeLedger, Registries};
use crate::limits::{LOOK_AHEAD_CHANNELS_MIN, LOOK_AHEAD_MESSAGES};
use respool_wire::{ReplyKind, split_reply};
use std::hint::black_box;

/// Reads what the first messages in `bytes` need of the tables, and changes nothing. Returns what is behind them; nothing if there
/// are few channels. `bytes` that begin within a push have no messages to be found.
pub fn look_ahead<'a, P: Copy + Ord>(book: &NodeLedger<P>, registries: &Registries, mut bytes: &'a [u8]) -> &'a [u8] {
    let registry = &registries[Kind::Channel as usize];
    if registry.len() < LOOK_AHEAD_CHANNELS_MIN {
        return &[];
    }
    let mut has_more = true;
    let names = [(); LOOK_AHEAD_MESSAGES].map(|()| {
        let whole = if has_more { split_reply(bytes) } else { None };
        has_more = whole.is_some();
        let (push, rest) = whole?;
        bytes = rest;
        let Frame::Message { kind: Kind::Channel, name } = Frame::read(ReplyKind::Push, push) else { return None };
        Some(name)
    });
    let ids = registry.find_all(names.map(Option::unwrap_or_default)).into_iter().flatten();
    ids.for_each(|id| {
        _ = black_box((registry.subscribers(id).next(), book.is_confirmed(registries, Kind::Channel, id)))
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::registry::Registry;

    fn of_channels(count: usize) -> (NodeLedger<u32>, Registries) {
        let mut registries = [1, 2, 3].map(Registry::new);
        for number in 0..count {
            let id = registries[0].intern(number.to_string().as_bytes());
            registries[0].join(id, 1);
        }
        (NodeLedger::default(), registries)
    }

    #[test]
    fn it_looks_ahead_at_a_few_messages_where_channels_are_many() {
        let (book, many) = of_channels(LOOK_AHEAD_CHANNELS_MIN);
        let message = ">3\r\n$7\r\nmessage\r\n$2\r\n17\r\n$1\r\nm\r\n";
        let begun = ">3\r\n$7\r\nmess";
        let bytes = (message.repeat(LOOK_AHEAD_MESSAGES + 2) + begun).into_bytes();
        let behind = look_ahead(&book, &many, &bytes);
        assert_eq!(behind.len(), 2 * message.len() + begun.len());
        assert_eq!(look_ahead(&book, &many, behind), begun.as_bytes(), "what has not come whole waits");
        let within = &bytes[10..];
        assert_eq!(look_ahead(&book, &many, within), within, "no message begins there");
        let other = b">2\r\n$4\r\npong\r\n$0\r\n\r\n+OK\r\n";
        assert!(look_ahead(&book, &many, other).is_empty(), "what is no message is passed over");

        let (book, few) = of_channels(LOOK_AHEAD_CHANNELS_MIN - 1);
        assert!(look_ahead(&book, &few, &bytes).is_empty(), "it is not asked again for these bytes");
    }
}
