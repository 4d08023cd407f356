//! What holds for all bytes, values and pieces.

use proptest::collection::vec;
use proptest::prelude::*;
use respool_wire::{
    Encoder, Protocol, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step, Strictness, Value,
    elements, encode_request, to_resp2,
};

/// Bytes among which those that RESP is made of are frequent.
fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![3 => any::<u8>(), 5 => proptest::sample::select(b"*$+-:0123456789\r\n\r\n\" '\\x\0".as_slice())];
    vec(byte, 0..length)
}

/// A text that Redis would send in a line.
fn line() -> impl Strategy<Value = Vec<u8>> {
    bytes(20).prop_map(|text| text.into_iter().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect())
}

/// Any value that survives being written in RESP3: no NaN, which equals nothing, and none of the nulls of RESP2.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        line().prop_map(Value::Simple),
        line().prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        bytes(40).prop_map(Value::Bulk),
        Just(Value::Null),
        any::<f64>().prop_filter("NaN equals nothing", |value| !value.is_nan()).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        bytes(20).prop_map(Value::BlobError),
        (any::<[u8; 3]>(), bytes(20)).prop_map(|(format, text)| Value::Verbatim { format, text }),
        any::<i128>().prop_map(|number| Value::BigNumber(number.to_string().into_bytes())),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec(inner.clone(), 0..6).prop_map(Value::Set),
            vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
        ]
    })
}

fn written(value: &Value, protocol: Protocol) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut Encoder::new(&mut out, protocol));
    out
}

fn request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_request(&mut out, words.iter().map(Vec::as_slice));
    out
}

/// Ends of pieces of `length` bytes, cut where `cuts` say, the last one at the end.
fn ends(length: usize, cuts: &[prop::sample::Index]) -> Vec<usize> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(length + 1)).chain([length]).collect();
    ends.sort_unstable();
    ends
}

/// All that a decoder makes of `input` in pieces, in words, and what its last answer was.
fn decoded(input: &[u8], ends: &[usize], limits: &RequestLimits) -> Vec<String> {
    let mut decoder = RequestDecoder::new();
    let mut seen = Vec::new();
    let mut start = 0;
    for &end in ends {
        loop {
            match decoder.decode(&input[start..end], limits) {
                Ok(Step::Incomplete) => break,
                Ok(Step::Empty { consumed }) => {
                    seen.push(format!("nothing in {consumed}"));
                    start += consumed;
                }
                Ok(Step::Request(request)) => {
                    seen.push(format!("{:?} in {}", request.args, request.consumed));
                    start += request.consumed;
                }
                Err(error) => {
                    seen.push(format!("{error:?}"));
                    return seen;
                }
            }
        }
    }
    seen.push(format!("{} bytes wait", input.len() - start));
    seen
}

/// All that a scanner makes of `input` in pieces.
fn scanned(input: &[u8], ends: &[usize]) -> Vec<String> {
    let mut scanner = ReplyScanner::new();
    let mut seen = Vec::new();
    let (mut start, mut begin) = (0, 0);
    for &end in ends {
        while start < end {
            match scanner.scan(&input[start..end], &ReplyLimits::default()) {
                Ok(Scan::Partial) => start = end,
                Ok(Scan::Complete { consumed, kind }) => {
                    start += consumed;
                    seen.push(format!("{kind:?} in {}", start - begin));
                    begin = start;
                }
                Err(error) => {
                    seen.push(format!("{error:?}"));
                    return seen;
                }
            }
        }
    }
    seen.push(format!("{} bytes wait", input.len() - begin));
    seen
}

proptest! {
    #[test]
    fn requests_are_decoded_to_what_was_encoded(
        requests in vec(vec(bytes(30), 1..12), 1..5),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        prop_assume!(requests.iter().all(|words| !matches!(words[0].first(), Some(b'p' | b'P' | b'h' | b'H'))));
        let input: Vec<u8> = requests.iter().flat_map(|words| request(words)).collect();
        let mut expected: Vec<String> = requests.iter().map(|words| {
            let shown: Vec<String> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
            format!("{shown:?} in {}", request(words).len())
        }).collect();
        expected.push("0 bytes wait".into());
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            let seen = decoded(&input, &ends(input.len(), &cuts), &RequestLimits::authenticated(strictness));
            prop_assert_eq!(&seen, &expected);
        }
    }

    #[test]
    fn pieces_make_no_difference_to_requests(
        words in vec(bytes(10), 1..4),
        noise in bytes(40),
        at in any::<prop::sample::Index>(),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut input = request(&words);
        let place = at.index(input.len());
        input.splice(place..place, noise);
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            for limits in [RequestLimits::authenticated(strictness), RequestLimits::unauthenticated(strictness)] {
                let whole = decoded(&input, &[input.len()], &limits);
                prop_assert_eq!(&whole, &decoded(&input, &ends(input.len(), &cuts), &limits));
                let every_byte: Vec<usize> = (1..=input.len()).collect();
                prop_assert_eq!(&whole, &decoded(&input, &every_byte, &limits));
            }
        }
    }

    #[test]
    fn raw_is_the_canonical_form(
        words in vec(bytes(10), 1..4),
        byte in any::<u8>(),
        at in any::<prop::sample::Index>(),
        is_inserted in any::<bool>(),
    ) {
        let mut input = request(&words);
        let place = at.index(input.len());
        input.splice(place..place + usize::from(!is_inserted), [byte]);
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            let mut decoder = RequestDecoder::new();
            if let Ok(Step::Request(found)) = decoder.decode(&input, &RequestLimits::authenticated(strictness)) {
                let words: Vec<Vec<u8>> = found.args.iter().map(<[u8]>::to_vec).collect();
                match found.raw {
                    Some(raw) => prop_assert_eq!(raw, request(&words)),
                    None => prop_assert!(strictness == Strictness::Lenient || input[0] != b'*'),
                }
            }
        }
    }

    #[test]
    fn values_are_parsed_to_what_was_written(value in value(), cuts in vec(any::<prop::sample::Index>(), 0..8)) {
        let reply = written(&value, Protocol::Resp3);
        prop_assert_eq!(Value::parse(&reply), Ok(value.clone()));
        let twice = [reply.as_slice(), &reply].concat();
        let seen = scanned(&twice, &ends(twice.len(), &cuts));
        prop_assert_eq!(seen.len(), 3);
        prop_assert_eq!(&seen[0], &seen[1]);
        let length = format!(" in {}", reply.len());
        prop_assert!(seen[0].ends_with(&length));
        prop_assert_eq!(&seen[2], "0 bytes wait");
        for cut in 0..reply.len() {
            prop_assert!(Value::parse(&reply[..cut]).is_err());
        }
        if let (Some(walk), Value::Array(values) | Value::Set(values)) = (elements(&reply), &value) {
            let parsed: Vec<Value> = walk.map(|element| Value::parse(element).unwrap()).collect();
            prop_assert_eq!(&parsed, values);
        }
    }

    #[test]
    fn pieces_make_no_difference_to_replies(
        value in value(),
        noise in bytes(40),
        at in any::<prop::sample::Index>(),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut input = written(&value, Protocol::Resp3);
        let place = at.index(input.len());
        input.splice(place..place, noise);
        let whole = scanned(&input, &[input.len()]);
        prop_assert_eq!(&whole, &scanned(&input, &ends(input.len(), &cuts)));
        let every_byte: Vec<usize> = (1..=input.len()).collect();
        prop_assert_eq!(&whole, &scanned(&input, &every_byte));
    }

    #[test]
    fn a_converted_reply_is_what_would_have_been_written(value in value()) {
        let mut out = Vec::new();
        prop_assert_eq!(to_resp2(&written(&value, Protocol::Resp3), &mut out), Ok(()));
        prop_assert_eq!(&out, &written(&value, Protocol::Resp2));
        let mut again = Vec::new();
        prop_assert_eq!(to_resp2(&out, &mut again), Ok(()));
        prop_assert_eq!(again, out);
    }

    #[test]
    fn nothing_that_is_written_is_more_than_one_reply(
        text in bytes(40),
        protocol in prop::sample::select(vec![Protocol::Resp2, Protocol::Resp3]),
    ) {
        type Write = fn(&mut Encoder<'_>, &[u8]);
        let writes: [Write; 6] = [
            |encoder, text| encoder.simple(&String::from_utf8_lossy(text)),
            |encoder, text| encoder.simple_bytes(text),
            |encoder, text| encoder.error(text),
            |encoder, text| encoder.blob_error(text),
            |encoder, text| encoder.bulk(text),
            |encoder, text| encoder.verbatim(&String::from_utf8_lossy(text), text),
        ];
        for write in writes {
            let mut out = Vec::new();
            write(&mut Encoder::new(&mut out, protocol), &text);
            prop_assert_eq!(scanned(&out, &[out.len()]).len(), 2);
            prop_assert!(Value::parse(&out).is_ok());
        }
    }

    #[test]
    fn doubles_are_printed_so_that_they_come_back(value in any::<f64>()) {
        prop_assume!(!value.is_nan());
        let text = respool_wire::DoubleText::new(value);
        let text = std::str::from_utf8(text.as_bytes()).unwrap();
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{}", text);
    }
}
