//! Any bytes as replies, in any pieces: the pieces make no difference, and what the scanner calls a reply can be walked,
//! parsed and encoded again.
#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;

use respool_wire::{Encoder, Protocol, ReplyError, ReplyKind, ReplyLimits, ReplyScanner, Scan, Value, elements};

type Seen = (Vec<(usize, ReplyKind)>, Option<ReplyError>);

fn scan(input: &[u8], ends: &[usize], limits: &ReplyLimits) -> Seen {
    let mut scanner = ReplyScanner::new();
    let mut replies = Vec::new();
    let (mut start, mut length) = (0, 0);
    for &end in ends {
        while start < end {
            match scanner.scan(&input[start..end], limits) {
                Ok(Scan::Partial) => {
                    length += end - start;
                    start = end;
                }
                Ok(Scan::Complete { consumed, kind }) => {
                    assert!(consumed > 0 && consumed <= end - start && scanner.is_idle());
                    replies.push((length + consumed, kind));
                    start += consumed;
                    length = 0;
                }
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    assert_eq!(scanner.is_idle(), length == 0);
    (replies, None)
}

/// Whether two values say the same, NaN included.
fn says_the_same(one: &Value, other: &Value) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

fn look_into(reply: &[u8], kind: ReplyKind) {
    let value = match Value::parse(reply) {
        // A reply may be deeper than a tree.
        Err(ReplyError::TooDeep) => return,
        value => value.expect("a whole reply is parsed"),
    };
    let mut written = Vec::new();
    value.encode(&mut Encoder::new(&mut written, Protocol::Resp3));
    let again = Value::parse(&written).expect("what the encoder writes is parsed");
    let mut rewritten = Vec::new();
    again.encode(&mut Encoder::new(&mut rewritten, Protocol::Resp3));
    assert_eq!(written, rewritten);
    match (elements(reply), &value) {
        (Some(walk), Value::Array(values) | Value::Set(values) | Value::Push(values)) => {
            assert_eq!(walk.kind(), kind);
            assert_eq!(walk.declared(), values.len() as u64);
            let mut count = 0;
            for (element, value) in walk.zip(values) {
                assert!(says_the_same(&Value::parse(element).expect("an element is a reply"), value));
                count += 1;
            }
            assert_eq!(count, values.len());
        }
        (Some(walk), Value::Map(pairs)) => assert_eq!(walk.count(), 2 * pairs.len()),
        (walk, _) => assert!(walk.is_none() && !kind.is_aggregate()),
    }
}

fuzz_target!(|data: &[u8]| {
    let [choice, seed, input @ ..] = data else { return };
    let limits = match choice & 1 {
        0 => ReplyLimits::default(),
        _ => ReplyLimits { bulk_bytes_max: 50, elements_max: 5, depth_max: 3, line_bytes_max: 20 },
    };
    let whole = scan(input, &[input.len()], &limits);
    assert_eq!(whole, scan(input, &pieces::of(input.len(), *seed), &limits));
    let (replies, error) = whole;
    let mut rest = input;
    for (length, kind) in replies {
        let (reply, tail) = rest.split_at(length);
        look_into(reply, kind);
        rest = tail;
    }
    // Code that reads replies must also bear what is none.
    if let Some(walk) = elements(rest) {
        assert!(walk.count() <= rest.len());
    }
    assert!(Value::parse(rest).is_err() || error.is_some());
});
