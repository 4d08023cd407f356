//! Any line as an inline request: its words are those that a plain reading of the grammar, byte by byte, gives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use respool_wire::{RequestDecoder, RequestError, RequestLimits, Step, Strictness};

/// The grammar once more, one state per byte; `None` for unbalanced quotes.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    enum In {
        Gap,
        Word,
        Double,
        Single,
        Closed,
    }
    let is_space = |byte: u8| byte == b' ' || (9..=13).contains(&byte);
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut state = In::Gap;
    let mut at = 0;
    while at < line.len() {
        let byte = line[at];
        let next = line.get(at + 1).copied();
        at += 1;
        match state {
            In::Closed if !is_space(byte) => return None,
            In::Gap | In::Closed if is_space(byte) => state = In::Gap,
            In::Word if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') => state = In::Gap,
            In::Gap | In::Closed | In::Word => {
                if !matches!(state, In::Word) {
                    words.push(Vec::new());
                }
                state = match byte {
                    b'"' => In::Double,
                    b'\'' => In::Single,
                    _ => {
                        words.last_mut()?.push(byte);
                        In::Word
                    }
                };
            }
            In::Single => match (byte, next) {
                (b'\\', Some(b'\'')) => {
                    words.last_mut()?.push(b'\'');
                    at += 1;
                }
                (b'\'', _) => state = In::Closed,
                _ => words.last_mut()?.push(byte),
            },
            In::Double => match (byte, next) {
                (b'"', _) => state = In::Closed,
                (b'\\', Some(escaped)) => {
                    let digits = line.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
                    let code = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
                    match code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
                        Some(code) if escaped == b'x' => {
                            words.last_mut()?.push(code);
                            at += 3;
                        }
                        _ => {
                            let plain = match escaped {
                                b'n' => b'\n',
                                b'r' => b'\r',
                                b't' => b'\t',
                                b'b' => 8,
                                b'a' => 7,
                                other => other,
                            };
                            words.last_mut()?.push(plain);
                            at += 1;
                        }
                    }
                }
                _ => words.last_mut()?.push(byte),
            },
        }
    }
    if matches!(state, In::Double | In::Single) { None } else { Some(words) }
}

fuzz_target!(|data: &[u8]| {
    if data.len() > 60_000 || data.first() == Some(&b'*') || data.iter().any(|byte| matches!(byte, 0 | b'\n')) {
        return;
    }
    let input = [data, b"\n"].concat();
    let expected = words(data.strip_suffix(b"\r").unwrap_or(data));
    let mut decoder = RequestDecoder::new();
    for strictness in [Strictness::Strict, Strictness::Lenient] {
        match decoder.decode(&input, &RequestLimits::unauthenticated(strictness)) {
            Ok(Step::Request(request)) => {
                assert_eq!(Some(request.args.iter().map(<[u8]>::to_vec).collect()), expected);
                assert_eq!((request.consumed, request.raw), (input.len(), None));
            }
            Ok(Step::Empty { consumed }) => {
                assert_eq!(expected, Some(Vec::new()));
                assert_eq!(consumed, input.len());
            }
            Err(RequestError::UnbalancedQuotes) => assert_eq!(expected, None),
            Err(RequestError::CrossProtocol) => {
                let name = expected.as_ref().expect("it was split")[0].to_ascii_lowercase();
                assert!(name.starts_with(b"post") || name.starts_with(b"host:"));
            }
            other => panic!("{other:?}"),
        }
    }
});
