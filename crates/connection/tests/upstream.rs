//! A connection to a node as a client library uses it: with tickets of its own, and with pushes.

use respool_connection::{
    BufferPool, Copied, Event, Fault, FlushPolicy, Identity, Outbox, Pushes, Segments, Shake, Upstream,
};
use respool_wire::{Protocol, ReplyLimits};
use std::io::Write;
use std::sync::Arc;

struct Node {
    up: Upstream<Option<String>>,
    pool: BufferPool,
    now_us: u64,
}

impl Node {
    fn ready(protocol: Protocol) -> Self {
        let identity = Identity { protocol, ..Identity::default() };
        let mut this = Self { up: Upstream::new(identity, FlushPolicy::EachTurn), pool: BufferPool::new(), now_us: 1 };
        this.up.begin_dial();
        this.up.handle_connected(this.now_us, &mut this.pool);
        let answers: &[&[u8]] = if protocol == Protocol::Resp3 { &[b"%0\r\n", b"+PONG\r\n"] } else { &[b"+PONG\r\n"] };
        for answer in answers {
            this.write();
            let shaken = this.up.shake(answer, &ReplyLimits::default(), this.now_us, &mut this.pool);
            assert!(shaken.is_ok());
        }
        assert!(this.up.is_ready());
        this
    }

    fn write(&mut self) -> Vec<u8> {
        let bytes = self.up.output().to_vec();
        self.up.handle_written(bytes.len(), self.now_us, &mut self.pool);
        bytes
    }

    fn ask(&mut self, ticket: &str) {
        let write = |out: &mut Vec<u8>| out.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
        self.up.send(Some(ticket.to_owned()), self.now_us, &mut self.pool, write);
    }

    /// What comes of `bytes`, one line an event.
    fn read(&mut self, bytes: &[u8]) -> Result<Vec<String>, Fault> {
        let (mut rest, mut seen) = (bytes, Vec::new());
        while let Some(event) = self.up.next_event(&mut rest, &ReplyLimits::default(), self.now_us)? {
            seen.push(match event {
                Event::Reply { ticket, bytes, kind } => {
                    format!("{} {kind:?} {}", ticket.as_deref().unwrap_or("-"), bytes.escape_ascii())
                }
                Event::Piece { ticket, bytes } => format!("{} {}", ticket.as_deref().unwrap_or("-"), bytes.len()),
                Event::Push { bytes, kind } => format!("push {kind:?} {}", bytes.escape_ascii()),
            });
        }
        Ok(seen)
    }
}

#[test]
fn replies_come_with_the_callers_tickets_in_order() {
    let mut node = Node::ready(Protocol::Resp2);
    node.ask("first");
    node.ask("second");
    assert_eq!(node.write().len(), 28);
    assert_eq!(node.read(b"+O"), Ok(vec![]));
    let seen = node.read(b"K\r\n:7\r\n").unwrap();
    assert_eq!(seen, [r"first Simple +OK\r\n", r"second Integer :7\r\n"]);
    assert_eq!(node.read(b"+OK\r\n"), Err(Fault::Unsolicited));
}

#[test]
fn the_reply_to_a_request_that_expired_is_discarded() {
    let mut node = Node::ready(Protocol::Resp2);
    node.ask("late");
    node.write();
    node.now_us = 10;
    node.ask("next");
    node.write();
    let mut expired = Vec::new();
    node.up.expire(5, |ticket| {
        expired.extend(ticket);
        None
    });
    assert_eq!(expired, ["late"]);
    assert_eq!(node.read(b"+A\r\n+B\r\n").unwrap(), [r"- Simple +A\r\n", r"next Simple +B\r\n"]);
}

#[test]
fn a_large_reply_comes_whole_unless_it_is_discarded() {
    let mut node = Node::ready(Protocol::Resp2);
    node.ask("wanted");
    node.ask("abandoned");
    node.write();
    let large = format!("$200000\r\n{}\r\n", "x".repeat(200_000)).into_bytes();
    assert_eq!(node.read(&large[..150_000]), Ok(vec![]));
    let seen = node.read(&large[150_000..]).unwrap();
    assert_eq!((seen.len(), seen[0].len()), (1, large.len() + "wanted Bulk ".len() + 4));
    assert_eq!(node.read(&large[..10]), Ok(vec![]));
    assert_eq!(node.up.abandon_partial(), Some(Some("abandoned".to_owned())));
    assert_eq!(node.read(&large[10..150_000]).unwrap(), ["- 149990"]);
    assert_eq!(node.up.partial_held_bytes(), 0, "nothing is kept of it");
    assert_eq!(node.read(&large[150_000..]).unwrap().len(), 1);
    assert!(node.up.tickets().is_empty());
}

#[test]
fn pushes_are_dropped_unless_they_are_asked_for() {
    let push = b">2\r\n+a\r\n+b\r\n";
    let mut node = Node::ready(Protocol::Resp3);
    node.ask("ping");
    node.write();
    assert_eq!(node.read(push), Ok(vec![]));
    node.up.set_pushes(Pushes::Delivered);
    assert_eq!(node.read(&push[..6]), Ok(vec![]), "it has not ended");
    let seen = node.read(&[&push[6..], b"+PONG\r\n"].concat()).unwrap();
    assert_eq!(seen, [r"push Push >2\r\n+a\r\n+b\r\n", r"ping Simple +PONG\r\n"]);
    assert_eq!(node.read(b"+PONG\r\n"), Err(Fault::Unsolicited));
    let mut node = Node::ready(Protocol::Resp2);
    assert!(node.read(push).is_err(), "RESP2 has none");
}

#[test]
fn a_connection_that_is_only_pushed_to_owes_no_reply() {
    let mut node = Node::ready(Protocol::Resp2);
    node.up.set_pushes(Pushes::Only);
    node.up.tell(node.now_us, &mut node.pool, |out| out.extend_from_slice(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"));
    node.write();
    let frame = b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    assert_eq!(node.read(&frame[..20]), Ok(vec![]));
    let seen = node.read(&frame[20..]).unwrap();
    assert_eq!(seen, [format!("push Array {}", frame.escape_ascii())]);
    assert_eq!(node.read(b"-ERR no\r\n").unwrap(), [r"push Error -ERR no\r\n"]);
}

#[test]
fn what_was_owed_comes_back_when_the_connection_is_lost() {
    let mut node = Node::ready(Protocol::Resp2);
    node.ask("sent");
    node.write();
    node.ask("queued");
    let owed: Vec<_> = node.up.reset(&mut node.pool).collect();
    assert_eq!(owed, [(Some("sent".to_owned()), true), (Some("queued".to_owned()), false)]);
    node.up.begin_dial();
    node.up.handle_connected(2, &mut node.pool);
    assert_eq!(node.write(), b"*1\r\n$4\r\nPING\r\n");
    assert_eq!(node.up.shake(b"+PONG\r\n", &ReplyLimits::default(), 2, &mut node.pool), Ok(Shake::Ready));
    assert_eq!(node.read(b""), Ok(vec![]));
}

#[test]
fn what_is_taken_to_be_written_counts_as_sent_and_no_more() {
    let mut node = Node::ready(Protocol::Resp2);
    node.ask("a");
    let mut taken = Default::default();
    node.up.swap_output(&mut taken, node.now_us);
    node.ask("b");
    assert_eq!((taken.len(), node.up.queued_bytes(), node.up.tickets().outstanding()), (14, 14, 1));
    assert_eq!(node.read(b"+1\r\n").unwrap(), ["a Simple +1\\r\\n"]);
    assert!(node.read(b"+2\r\n").is_err(), "the other has not been sent");
    node.ask("c");
    let lost: Vec<_> = node.up.reset(&mut node.pool).collect();
    assert_eq!(lost, [(Some("b".to_owned()), false), (Some("c".to_owned()), false)]);
}

#[test]
fn a_large_value_leaves_in_segments_without_a_copy() {
    let mut pool = BufferPool::new();
    let mut up: Upstream<Option<u32>, Segments<Arc<[u8]>>> = Upstream::new(Identity::default(), FlushPolicy::EachTurn);
    let value: Arc<[u8]> = vec![b'x'; 100_000].into();
    up.begin_dial();
    for ticket in 0..2 {
        up.send_with(Some(ticket), 1, |output| {
            output.appender(&mut pool).extend_from_slice(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n");
            output.keep(Arc::clone(&value), &mut pool);
            output.appender(&mut pool).extend_from_slice(b"\r\n");
        });
    }
    up.handle_connected(1, &mut pool);
    let greeting: Vec<u8> = up.output_slices().flat_map(|slice| slice.to_vec()).collect();
    assert_eq!(greeting, b"*1\r\n$4\r\nPING\r\n", "requests wait for the handshake");
    up.handle_written(greeting.len(), 1, &mut pool);
    assert_eq!(up.shake(b"+PONG\r\n", &ReplyLimits::default(), 1, &mut pool), Ok(Shake::Ready));
    assert_eq!(up.output_slices().filter(|slice| slice.as_ptr() == value.as_ptr()).count(), 2);
    let mut seen = Vec::new();
    while up.queued_bytes() > 0 {
        // A socket takes what it takes.
        let mut socket = vec![0; 30_000];
        let written = (&mut socket[..]).write_vectored(&up.output_slices().collect::<Vec<_>>()).unwrap();
        seen.extend_from_slice(&socket[..written]);
        up.handle_written(written, 2, &mut pool);
    }
    let request = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n"[..], &value, b"\r\n"].concat();
    assert!(seen == request.repeat(2));
    assert_eq!(Arc::strong_count(&value), 1, "nothing is kept of what was written");
    let (mut rest, limits) = (&b"+OK\r\n+OK\r\n"[..], ReplyLimits::default());
    for number in 0..2 {
        let event = up.next_event(&mut rest, &limits, 3).unwrap();
        assert!(matches!(event, Some(Event::Reply { ticket: Some(ticket), .. }) if ticket == number));
    }
}

/// The rest of a batch, of which a segment has left, and what comes behind it.
#[test]
fn only_requests_that_left_together_are_kept() {
    let mut pool = BufferPool::new();
    let mut up: Upstream<Option<u32>, Copied> = Upstream::new(Identity::default(), FlushPolicy::EachTurn);
    up.keep_records();
    up.begin_dial();
    up.handle_connected_bare(1);
    let send = |up: &mut Upstream<_, Copied>, pool: &mut BufferPool, ticket: u32| {
        up.send(Some(ticket), 1, pool, |out| out.extend_from_slice(format!("{ticket:0>1000}").as_bytes()));
    };
    (0..100).for_each(|ticket| send(&mut up, &mut pool, ticket));
    let segment = up.output().len();
    assert!(segment < 100_000);
    up.handle_written(segment, 2, &mut pool);
    up.handle_written(0, 3, &mut pool);
    send(&mut up, &mut pool, 100);
    let rest = up.output().len();
    assert_eq!(rest, up.queued_bytes());
    up.handle_written(rest, 4, &mut pool);
    let answer = |up: &mut Upstream<_, Copied>| {
        let mut replies = &b"+OK\r\n"[..];
        up.next_event(&mut replies, &ReplyLimits::default(), 5).unwrap();
    };
    (0..100).for_each(|_| answer(&mut up));
    assert_eq!(up.in_flight().map(|flight| flight.batch), Some(&[][..]), "the rest is others'");
    answer(&mut up);
    send(&mut up, &mut pool, 101);
    up.handle_written(up.output().len(), 6, &mut pool);
    assert_eq!(up.in_flight().map(|flight| flight.batch.len()), Some(1000), "it left alone");
    answer(&mut up);
    up.tell(7, &mut pool, |out| out.extend_from_slice(b"told"));
    send(&mut up, &mut pool, 102);
    up.handle_written(up.output().len(), 8, &mut pool);
    assert_eq!(up.in_flight().map(|flight| flight.batch), Some(&[][..]), "what was told is before it");
}
