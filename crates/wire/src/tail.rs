//! The rest of a request that is passed on before all of it has come: where it ends, and whether it is one.
//!
//! ```text
//!          length bytes, CR LF          '$' number CRLF
//!   Body --------------------> Head ---------------------> Body      until no argument is left
//! ```
//!
//! The bytes are looked at once and not kept, but for the few of a head that came in two. What is not canonical is refused
//! at its first byte, as by a strict [`RequestDecoder`](crate::RequestDecoder), so what has been passed on is canonical.

use crate::RequestError;
use crate::limits::RequestLimits;
use crate::number::{NumberLine, number_line};

/// Progress within a request of which the command is known and a later argument is arriving.
#[derive(Clone, Debug)]
pub struct RequestTail {
    /// Arguments that have not begun.
    arguments: usize,
    /// Bytes of the current argument that have not come.
    body: usize,
    /// Bytes of the CR LF behind it that have not come.
    crlf: u8,
    /// Bytes of the whole request so far.
    bytes: usize,
    /// The beginning of a head.
    head: Vec<u8>,
}

/// A head is `$`, at most 20 characters and CR LF.
const HEAD_BYTES_MAX: usize = 23;

impl RequestTail {
    /// A request of which `bytes` have come, up to the body of an argument of length `body`; behind it come `arguments`
    /// more.
    pub(crate) fn begin(bytes: usize, body: usize, arguments: usize) -> Self {
        Self { arguments, body, crlf: 2, bytes, head: Vec::new() }
    }

    /// Looks at the next bytes. Gives how many belong to the request, and whether that is all of it.
    pub fn take(&mut self, input: &[u8], limits: &RequestLimits) -> Result<(usize, bool), RequestError> {
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            if self.body > 0 {
                let here = rest.len().min(self.body);
                self.body -= here;
                used += here;
                self.bytes += here;
                if self.body > 0 {
                    return Ok((used, false));
                }
                continue;
            }
            if self.crlf > 0 {
                let Some(byte) = rest.first() else { return Ok((used, false)) };
                if *byte != [b'\n', b'\r'][usize::from(self.crlf - 1)] {
                    return Err(RequestError::UnterminatedBulk);
                }
                self.crlf -= 1;
                used += 1;
                self.bytes += 1;
                continue;
            }
            if self.arguments == 0 {
                return Ok((used, true));
            }
            let Some(byte) = rest.first() else { return Ok((used, false)) };
            used += 1;
            self.take_head(*byte, limits)?;
        }
    }

    /// One byte of the head of an argument.
    fn take_head(&mut self, byte: u8, limits: &RequestLimits) -> Result<(), RequestError> {
        if self.head.is_empty() && byte != b'$' {
            return Err(RequestError::ExpectedDollar(byte));
        }
        self.head.push(byte);
        match number_line(self.head.get(1..).unwrap_or_default()) {
            NumberLine::Incomplete if self.head.len() < HEAD_BYTES_MAX => Ok(()),
            NumberLine::Incomplete | NumberLine::Invalid => Err(RequestError::InvalidBulkLength),
            NumberLine::Whole { value, .. } => {
                let body = usize::try_from(value).map_err(|_| RequestError::InvalidBulkLength)?;
                if body > limits.bulk_bytes_max || body > limits.unauth_bulk_bytes_max {
                    return Err(RequestError::InvalidBulkLength);
                }
                self.bytes += self.head.len();
                if self.bytes + 2 > limits.request_bytes_in_force().saturating_sub(body) {
                    return Err(RequestError::TooBigRequest);
                }
                self.head.clear();
                (self.body, self.crlf) = (body, 2);
                self.arguments -= 1;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestDecoder, encode_request};

    /// Decodes what is known at the first `seen` bytes, then passes the rest on in two pieces.
    fn pass(bytes: &[u8], seen: usize, cut: usize) -> Option<Result<(usize, bool), RequestError>> {
        let limits = RequestLimits::default();
        let mut decoder = RequestDecoder::new();
        assert!(matches!(decoder.decode(&bytes[..seen], &limits), Ok(crate::Step::Incomplete)));
        let begun = decoder.begun(&bytes[..seen], 10)?;
        assert_eq!(begun.args.name(), b"SET");
        let mut tail = begun.tail;
        let from = begun.at;
        let cut = cut.clamp(from, bytes.len());
        let first = tail.take(&bytes[from..cut], &limits);
        Some(match first {
            Ok((used, false)) => {
                assert_eq!(used, cut - from, "all of it belongs to the request");
                tail.take(&bytes[cut..], &limits).map(|(more, is_end)| (from + used + more, is_end))
            }
            Ok((used, true)) => Ok((from + used, true)),
            Err(error) => Err(error),
        })
    }

    #[test]
    fn a_request_ends_where_it_ends_wherever_it_is_cut() {
        let mut bytes = Vec::new();
        encode_request(&mut bytes, [&b"SET"[..], b"key", b"a value of some length", b"EX", b"", b"10"].into_iter());
        let end = bytes.len();
        bytes.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
        let mut passed = 0;
        for seen in 1..end {
            for cut in 0..bytes.len() {
                if let Some(result) = pass(&bytes, seen, cut) {
                    assert_eq!(result, Ok((end, true)), "{seen} {cut}");
                    passed += 1;
                }
            }
        }
        assert!(passed > 100);
    }

    #[test]
    fn what_is_no_request_is_refused_at_its_first_byte() {
        let limits = RequestLimits { bulk_bytes_max: 50, request_bytes_max: 60, ..RequestLimits::default() };
        for (rest, error) in [
            (&b"xxxxx\rx"[..], RequestError::UnterminatedBulk),
            (b"xxxxxx", RequestError::UnterminatedBulk),
            (b"xxxxx\r\n:", RequestError::ExpectedDollar(b':')),
            (b"xxxxx\r\n$-1\r\n", RequestError::InvalidBulkLength),
            (b"xxxxx\r\n$01", RequestError::InvalidBulkLength),
            (b"xxxxx\r\n$51\r\n", RequestError::InvalidBulkLength),
            (b"xxxxx\r\n$40\r\n", RequestError::TooBigRequest),
        ] {
            let mut tail = RequestTail::begin(10, 5, 1);
            let results: Vec<_> = rest.iter().map(|byte| tail.take(&[*byte], &limits)).collect();
            assert_eq!(results.last(), Some(&Err(error)), "{rest:?}");
            assert!(results[..results.len() - 1].iter().all(Result::is_ok), "{rest:?}");
        }
    }
}
