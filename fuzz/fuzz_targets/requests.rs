//! Any bytes as requests, in any pieces, in both modes: the pieces make no difference, what is called raw is the canonical
//! form, and what the strict mode accepts the lenient one reads in the same way.
#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;

use respool_wire::{RequestDecoder, RequestError, RequestLimits, Step, Strictness, encode_request};

/// Requests with the bytes that they took, an error if there was one, and where the last request began.
#[derive(Debug, PartialEq)]
struct Seen {
    requests: Vec<(usize, Vec<Vec<u8>>)>,
    error: Option<RequestError>,
    stopped_at: usize,
}

fn decode(input: &[u8], ends: &[usize], limits: &RequestLimits) -> Seen {
    let mut decoder = RequestDecoder::new();
    let mut requests = Vec::new();
    let mut start = 0;
    for &end in ends {
        loop {
            let held = &input[start..end];
            let consumed = match decoder.decode(held, limits) {
                Ok(Step::Incomplete) => {
                    let needed = decoder.needed().unwrap_or_default();
                    assert!(needed == 0 || (needed > held.len() && needed <= limits.request_bytes_max));
                    break;
                }
                Ok(Step::Empty { consumed }) => {
                    requests.push((consumed, Vec::new()));
                    consumed
                }
                Ok(Step::Request(request)) => {
                    if let Some(raw) = request.raw {
                        let mut canonical = Vec::new();
                        encode_request(&mut canonical, request.args.iter());
                        assert_eq!(raw, canonical);
                        assert_eq!(raw.len(), request.consumed);
                    } else {
                        assert!(limits.strictness == Strictness::Lenient || held[0] != b'*');
                    }
                    requests.push((request.consumed, request.args.iter().map(<[u8]>::to_vec).collect()));
                    request.consumed
                }
                Err(error) => return Seen { requests, error: Some(error), stopped_at: start },
            };
            assert!(consumed > 0 && consumed <= held.len());
            assert!(decoder.is_idle());
            start += consumed;
        }
    }
    assert_eq!(decoder.is_idle(), start == input.len());
    Seen { requests, error: None, stopped_at: start }
}

fuzz_target!(|data: &[u8]| {
    let [choice, seed, input @ ..] = data else { return };
    let of = |strictness| {
        let limits = match choice & 1 {
            0 => RequestLimits::authenticated(strictness),
            _ => RequestLimits::unauthenticated(strictness),
        };
        match choice & 2 {
            0 => limits,
            _ => RequestLimits {
                elements_max: 5,
                bulk_bytes_max: 120,
                inline_bytes_max: 40,
                request_bytes_max: 300,
                ..limits
            },
        }
    };
    let ends = pieces::of(input.len(), *seed);
    let strict = decode(input, &[input.len()], &of(Strictness::Strict));
    assert_eq!(strict, decode(input, &ends, &of(Strictness::Strict)));
    let lenient = decode(input, &[input.len()], &of(Strictness::Lenient));
    assert_eq!(lenient, decode(input, &ends, &of(Strictness::Lenient)));
    assert!(lenient.requests.starts_with(&strict.requests));
});
