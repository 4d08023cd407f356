//! Any reply in RESP2: what comes out is one reply of RESP2 types, the same that the value would be written as at once.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use respool_wire::{Encoder, Protocol, ReplyError, Value, to_resp2};

fn is_resp2(value: &Value) -> bool {
    match value {
        Value::Simple(_)
        | Value::Error(_)
        | Value::Integer(_)
        | Value::Bulk(_)
        | Value::NullBulk
        | Value::NullArray => true,
        Value::Array(values) => values.iter().all(is_resp2),
        _ => false,
    }
}

fn written(value: &Value, protocol: Protocol) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut Encoder::new(&mut out, protocol));
    out
}

fn converted(reply: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    to_resp2(reply, &mut out).expect("a whole reply is converted");
    out.split_off(b"before".len())
}

/// Any value but null arrays, which RESP3 cannot tell from nulls.
fn value(source: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let texts = |source: &mut Unstructured<'_>| Vec::<u8>::arbitrary(source);
    let values = |source: &mut Unstructured<'_>| {
        let count = source.int_in_range(0..=if depth > 5 { 0 } else { 4 })?;
        (0..count).map(|_| value(source, depth + 1)).collect::<Result<Vec<_>>>()
    };
    Ok(match source.int_in_range(0..=13)? {
        0 => Value::Simple(texts(source)?),
        1 => Value::Error(texts(source)?),
        2 => Value::Integer(i64::arbitrary(source)?),
        3 => Value::Bulk(texts(source)?),
        4 => Value::Null,
        5 => Value::Double(f64::arbitrary(source)?),
        6 => Value::Boolean(bool::arbitrary(source)?),
        7 => Value::BlobError(texts(source)?),
        8 => Value::Verbatim { format: Arbitrary::arbitrary(source)?, text: texts(source)? },
        9 => Value::BigNumber(i128::arbitrary(source)?.to_string().into_bytes()),
        10 => Value::Set(values(source)?),
        11 => Value::Push(if depth == 0 { values(source)? } else { return Ok(Value::Null) }),
        12 => {
            let keys = values(source)?;
            Value::Map(keys.into_iter().map(|key| Ok((key, value(source, depth + 1)?))).collect::<Result<_>>()?)
        }
        _ => Value::Array(values(source)?),
    })
}

fuzz_target!(|data: &[u8]| {
    // As the bytes of a reply.
    match Value::parse(data) {
        Ok(_) => {
            let out = converted(data);
            assert!(is_resp2(&Value::parse(&out).expect("one whole reply comes out")));
            assert_eq!(converted(&out), out, "RESP2 is left alone");
        }
        // A reply may be deeper than a tree.
        Err(ReplyError::TooDeep) => {}
        Err(error) => {
            let mut out = Vec::new();
            assert_eq!(to_resp2(data, &mut out), Err(error));
            assert!(out.is_empty());
        }
    }
    // As choices that make a value.
    let Ok(value) = value(&mut Unstructured::new(data), 0) else { return };
    let resp3 = written(&value, Protocol::Resp3);
    assert_eq!(written(&Value::parse(&resp3).expect("one whole reply was written"), Protocol::Resp3), resp3);
    assert_eq!(converted(&resp3), written(&value, Protocol::Resp2));
});
