//! What the engine's reply and Redis's may differ in. Everything that is not listed here has to be equal.

use respool_testkit::elements;

/// What a comparison says.
pub(crate) enum Verdict {
    Same,
    /// Equal as far as chance allows, but the stores now differ: the keys of the request have to go.
    ForgetKeys,
    Different,
}

/// Replies whose elements have no order of their own.
const UNORDERED: &[&[u8]] = &[b"KEYS", b"SMEMBERS", b"SINTER", b"SUNION", b"SDIFF", b"HKEYS", b"HVALS"];
/// Replies that chance decides: only their shape is compared.
const RANDOM: &[&[u8]] = &[b"RANDOMKEY", b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER"];
/// Times that pass between one request and the other.
const TIMES: &[&[u8]] = &[b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME"];
/// Redis asks `strtod` for an error and does not clear the one before, so it refuses to sort numbers after any other
/// command has met one out of range.
const STALE_ERROR: &[u8] = b"-ERR One or more scores can't be converted into double\r\n";
/// If no id is left in a millisecond, Redis checks `errno`, which an earlier call set, and replies the error about large entries.
const ENTRY_TOO_LARGE: &[u8] = b"-ERR Elements are too large to be stored\r\n";
const ID_NOT_GREATER: &[u8] = b"-ERR The ID specified in XADD is equal or smaller than the target stream top item\r\n";
/// How much later the second request may come, in seconds or milliseconds as the command counts.
const LATE_SECONDS: i64 = 3;
const LATE_MILLIS: i64 = 3_000;

/// Compares Redis's reply with the engine's.
pub(crate) fn compare(request: &[Vec<u8>], expected: &[u8], subject: &[u8]) -> Verdict {
    let name = request[0].to_ascii_uppercase();
    let is = |names: &[&[u8]]| names.contains(&name.as_slice());
    if name.starts_with(b"SORT") && expected == STALE_ERROR && !subject.starts_with(b"-ERR") {
        return Verdict::ForgetKeys;
    }
    if name == b"XADD" && expected == ENTRY_TOO_LARGE && subject == ID_NOT_GREATER {
        return Verdict::Same;
    }
    if name == b"XADD" && request.iter().any(|word| word == b"*") && bulk(expected).is_some() {
        // The id is the time, unless the last one was later.
        let is_alike = shape(expected) == shape(subject);
        return match expected == subject {
            true => Verdict::Same,
            false if is_alike => Verdict::ForgetKeys,
            false => Verdict::Different,
        };
    }
    let stores = |word: &Vec<u8>| word.eq_ignore_ascii_case(b"STORE");
    let has_order = !request.iter().any(|word| word.eq_ignore_ascii_case(b"BY"));
    if name == b"SORT" && expected == subject && !has_order && request.iter().any(stores) {
        // What was stored may stand in another order, or be another part.
        return Verdict::ForgetKeys;
    }
    let is_same = if expected == subject {
        // Chance may have made the replies equal; the stores still differ.
        if name == b"SPOP" && !expected.starts_with(b"-") {
            return Verdict::ForgetKeys;
        }
        true
    } else if expected.starts_with(b"-") || subject.starts_with(b"-") {
        false
    } else if is(UNORDERED) {
        sorted(expected, 1) == sorted(subject, 1)
    } else if name == b"HGETALL" {
        sorted(expected, 2) == sorted(subject, 2)
    } else if is(RANDOM) {
        shape(expected) == shape(subject)
    } else if name == b"SPOP" {
        if shape(expected) == shape(subject) {
            return Verdict::ForgetKeys;
        }
        false
    } else if name == b"SORT" || name == b"SORT_RO" {
        // Equal weights come in any order, and a set that is left unsorted has none; a part of that may be any part.
        let has = |wanted: &[u8]| request.iter().skip(2).any(|word| word.eq_ignore_ascii_case(wanted));
        let is_alike = match has(b"LIMIT") {
            true => elements(expected).len() == elements(subject).len(),
            false => sorted(expected, 1) == sorted(subject, 1),
        };
        // Redis compares texts up to their first NUL, so others behind it are equal as well.
        let has_ties = has(b"BY") || (has(b"ALPHA") && expected.contains(&0));
        has_ties && is_alike
    } else if name == b"DUMP" {
        super::dumps::is_alike(expected, subject)
    } else if name.ends_with(b"SCAN") {
        is_same_scan(request, expected, subject)
    } else if is(TIMES) {
        let late = if name.starts_with(b"P") { LATE_MILLIS } else { LATE_SECONDS };
        integer(expected).zip(integer(subject)).is_some_and(|(a, b)| a > 0 && b > 0 && (a - b).abs() <= late)
    } else if name == b"XPENDING" || name == b"XINFO" {
        is_same_but_for_times(expected, subject)
    } else if name == b"OBJECT" && request.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"IDLETIME")) {
        // Small integers are one shared object in Redis, which other keys may have used,
        integer(expected).zip(integer(subject)).is_some()
    } else if name == b"OBJECT" && request.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"REFCOUNT")) {
        // except when COPY has made another of it.
        expected == b":1\r\n" && subject == b":2147483647\r\n"
    } else {
        false
    };
    if is_same { Verdict::Same } else { Verdict::Different }
}

/// Whether two replies about streams are equal but for when an entry was delivered or a consumer was seen, which may be a little
/// later for one of them.
fn is_same_but_for_times(expected: &[u8], subject: &[u8]) -> bool {
    if expected == subject {
        return true;
    }
    let head = |reply: &[u8]| reply.iter().position(|&byte| byte == b'\n').map(|end| reply[..end].to_vec());
    let (a, b) = (elements(expected), elements(subject));
    let are_aggregates = matches!(expected.first(), Some(b'*' | b'%')) && head(expected) == head(subject);
    let is_alike = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| bulk(a[before]));
        let is_named = before.is_some_and(|name| name == b"idle" || name == b"seen-time");
        let is_bulk = |index: usize| a[index].starts_with(b"$");
        // Of an entry that is pending: id, perhaps the consumer, when it was delivered, how often.
        let is_delivery = match (a.len(), index) {
            (4, 2) => is_bulk(0) && is_bulk(1),
            (3, 1) => is_bulk(0),
            _ => false,
        };
        let is_near = || integer(a[index]).zip(integer(b[index])).is_some_and(|(a, b)| (a - b).abs() <= LATE_MILLIS);
        is_same_but_for_times(a[index], b[index]) || ((is_named || is_delivery) && is_near())
    };
    are_aggregates && a.len() == b.len() && (0..a.len()).all(is_alike)
}

/// The head of an aggregate and its elements, `step` of them taken together, in order of their bytes.
fn sorted(reply: &[u8], step: usize) -> (Option<u8>, Vec<Vec<u8>>) {
    let parts = elements(reply);
    let mut parts: Vec<Vec<u8>> = parts.chunks(step).map(<[&[u8]]>::concat).collect();
    parts.sort_unstable();
    (reply.first().copied(), parts)
}

/// The types of a reply and its elements, without what they say.
fn shape(reply: &[u8]) -> Vec<u8> {
    let is_null = reply.starts_with(b"$-1") || reply.starts_with(b"*-1");
    let parts = elements(reply);
    match reply.first() {
        Some(b'*' | b'~' | b'%') if !is_null => {
            let head = reply.iter().position(|&byte| byte == b'\n').unwrap_or(0);
            let inner = parts.iter().flat_map(|part| shape(part));
            reply[..head].iter().copied().chain(inner).collect()
        }
        _ if is_null => reply.to_vec(),
        first => first.into_iter().copied().collect(),
    }
}

/// The cursor and the elements of a scan's reply.
pub(crate) fn scan_parts(reply: &[u8]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let parts = elements(reply);
    let [cursor, found] = parts.as_slice() else { return None };
    Some((bulk(cursor)?, elements(found).iter().filter_map(|part| bulk(part)).collect()))
}

/// Cursors are each store's own. Only scans that start and finish at once are compared here; whole scans are elsewhere.
fn is_same_scan(request: &[Vec<u8>], expected: &[u8], subject: &[u8]) -> bool {
    let Some((a, b)) = scan_parts(expected).zip(scan_parts(subject)) else { return false };
    let step = if request[0].eq_ignore_ascii_case(b"SSCAN") { 1 } else { 2 };
    let sorted = |elements: &[Vec<u8>]| {
        let mut sorted: Vec<Vec<u8>> = elements.chunks(step).map(<[Vec<u8>]>::concat).collect();
        sorted.sort_unstable();
        sorted
    };
    let is_of_keys = request[0].eq_ignore_ascii_case(b"SCAN");
    let is_whole = !is_of_keys && request[2] == b"0" && a.0 == b"0" && b.0 == b"0";
    !is_whole || sorted(&a.1) == sorted(&b.1)
}

fn bulk(reply: &[u8]) -> Option<Vec<u8>> {
    let head = reply.iter().position(|&byte| byte == b'\n')?;
    Some(reply.get(head + 1..reply.len().checked_sub(2)?)?.to_vec())
}

fn integer(reply: &[u8]) -> Option<i64> {
    std::str::from_utf8(reply).ok()?.strip_prefix(':')?.trim_end().parse().ok()
}
