//! `SORT` and `SORT_RO`: the elements of a list, set or sorted set in another order, or what they point to.

use std::cmp::Ordering;

use respool_command::text;

use super::super::{Answer, Call, Fault};
use crate::keyspace::{Expiry, Found, Kind, events};
use crate::limits::REPLY_BYTES_MAX;
use crate::number::double;
use crate::store::listpack::Element;
use crate::store::quick_list::{End, QuickList};
use crate::values::Object;

/// Elements that are equal point to the same value, and so do patterns: a request of a few bytes could otherwise ask for any
/// amount of memory.
const TOO_LARGE: &str = "ERR what is to be sorted or stored exceeds what one request may hold";
/// What an element takes beside its bytes, at least.
const ELEMENT_COST: usize = 2;

const NOT_NUMBERS: &str = "ERR One or more scores can't be converted into double";

/// What is asked for.
struct Wanted<'c> {
    by: Option<&'c [u8]>,
    /// The elements stay in the order in which the value keeps them.
    leaves_order: bool,
    gets: Vec<&'c [u8]>,
    limit: (i64, i64),
    is_descending: bool,
    is_alphabetical: bool,
    store: Option<&'c [u8]>,
}

/// What an element is sorted by.
enum Weight {
    Number(f64),
    Text(Option<Vec<u8>>),
    Itself,
}

struct Item {
    element: Vec<u8>,
    weight: Weight,
}

fn wanted<'c>(call: &Call<'c, '_>, may_store: bool) -> Result<Wanted<'c>, Fault> {
    let mut wanted = Wanted {
        by: None,
        leaves_order: false,
        gets: Vec::new(),
        limit: (0, -1),
        is_descending: false,
        is_alphabetical: false,
        store: None,
    };
    let mut index = 2;
    while index < call.args.len() {
        let left = call.args.len() - 1 - index;
        if call.is_word(index, "ASC") {
            wanted.is_descending = false;
        } else if call.is_word(index, "DESC") {
            wanted.is_descending = true;
        } else if call.is_word(index, "ALPHA") {
            wanted.is_alphabetical = true;
        } else if call.is_word(index, "LIMIT") && left >= 2 {
            wanted.limit = (call.integer(index + 1)?, call.integer(index + 2)?);
            index += 2;
        } else if call.is_word(index, "STORE") && left >= 1 && may_store {
            wanted.store = Some(call.arg(index + 1));
            index += 1;
        } else if call.is_word(index, "BY") && left >= 1 {
            // One pattern without a star is enough, wherever it stands.
            wanted.leaves_order |= !call.arg(index + 1).contains(&b'*');
            wanted.by = Some(call.arg(index + 1));
            index += 1;
        } else if call.is_word(index, "GET") && left >= 1 {
            wanted.gets.push(call.arg(index + 1));
            index += 1;
        } else {
            return Err(text::SYNTAX.into());
        }
        index += 1;
    }
    Ok(wanted)
}

pub(super) fn sort(call: &mut Call<'_, '_>, may_store: bool) -> Answer {
    let mut wanted = wanted(call, may_store)?;
    let found = call.keyspace.read(call.at, call.arg(1));
    let kind = found.map(|found| call.keyspace.kind(found));
    if kind.is_some_and(|kind| !matches!(kind, Kind::List | Kind::Set | Kind::SortedSet)) {
        return Err(text::WRONGTYPE.into());
    }
    let mut is_sorted = wanted.leaves_order;
    if is_sorted && kind == Some(Kind::Set) && (wanted.store.is_some() || call.session.is_in_script) {
        // A set has no order to leave alone, and what is stored, or a script sees, must not depend on chance.
        is_sorted = false;
        wanted.is_alphabetical = true;
        wanted.by = None;
    }
    let mut elements = found.map_or_else(Vec::new, |found| elements(call, found));
    if is_sorted && wanted.is_descending && kind != Some(Kind::Set) {
        elements.reverse();
    }
    let (start, end) = bounds(wanted.limit, elements.len());
    let mut items: Vec<Item> = elements.into_iter().map(|element| Item { element, weight: Weight::Itself }).collect();
    if !is_sorted {
        weigh(call, &wanted, &mut items, REPLY_BYTES_MAX)?;
        items.sort_by(|a, b| {
            let order = compare(a, b);
            if wanted.is_descending { order.reverse() } else { order }
        });
    }
    let shown = items.get(start..end).unwrap_or_default();
    match wanted.store {
        Some(key) => store(call, &wanted.gets, shown, key, REPLY_BYTES_MAX),
        None => reply(call, &wanted.gets, shown),
    }
}

/// The elements in the order in which the value keeps them.
fn elements(call: &mut Call<'_, '_>, found: Found) -> Vec<Vec<u8>> {
    call.keyspace.edit_object(found, |object, heap| {
        if let Object::SortedSet(sorted) = object {
            sorted.unpack(heap);
        }
    });
    let heap = &call.keyspace.heap;
    let mut elements = Vec::new();
    match call.keyspace.object(found) {
        Some(Object::List(list)) => elements.extend(list.iter(End::Head).map(Element::to_vec)),
        Some(Object::Set(set)) => set.each(heap, |member| {
            elements.push(member.to_vec());
            true
        }),
        Some(Object::SortedSet(sorted)) => sorted.each_from(heap, 0, false, |member, _| {
            elements.push(member.to_vec());
            true
        }),
        _ => {}
    }
    elements
}

/// The half-open range that `LIMIT` leaves of `len` elements.
fn bounds((offset, count): (i64, i64), len: usize) -> (usize, usize) {
    let start = usize::try_from(offset.max(0)).unwrap_or(usize::MAX).min(len);
    let end = usize::try_from(count).map_or(len, |count| start.saturating_add(count).min(len));
    (start, end)
}

/// Finds out what every element is sorted by.
fn weigh(call: &mut Call<'_, '_>, wanted: &Wanted<'_>, items: &mut [Item], bytes_max: usize) -> Answer {
    let mut bytes = 0;
    for item in items {
        let by = match wanted.by {
            Some(pattern) => pointed_to(call, pattern, &item.element),
            None => Some(item.element.clone()),
        };
        item.weight = match (wanted.is_alphabetical, by) {
            (true, by) => {
                // What an element weighs by itself is as long as the element.
                bytes += by.as_ref().filter(|_| wanted.by.is_some()).map_or(0, Vec::len);
                if bytes > bytes_max {
                    return Err(TOO_LARGE.into());
                }
                Weight::Text(by)
            }
            (false, None) => Weight::Number(0.0),
            (false, Some(by)) => Weight::Number(double::parse_weight(&by).ok_or(NOT_NUMBERS)?),
        };
    }
    Ok(())
}

fn compare(a: &Item, b: &Item) -> Ordering {
    match (&a.weight, &b.weight) {
        (Weight::Number(x), Weight::Number(y)) => {
            x.partial_cmp(y).unwrap_or(Ordering::Equal).then_with(|| a.element.cmp(&b.element))
        }
        (Weight::Text(x), Weight::Text(y)) => x.cmp(y),
        _ => Ordering::Equal,
    }
}

/// What `pattern` points to for `element`: the string, or the field of a hash, whose name has `element` for the first star.
fn pointed_to(call: &mut Call<'_, '_>, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = pattern.iter().position(|&byte| byte == b'*')?;
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = after.windows(2).position(|pair| pair == b"->").filter(|arrow| arrow + 2 < after.len());
    let (after, field) = match arrow {
        Some(arrow) => (&after[..arrow], Some(&after[arrow + 2..])),
        None => (after, None),
    };
    let key = [before, element, after].concat();
    let found = call.keyspace.read(call.at, &key)?;
    match (field, call.keyspace.object(found)) {
        (Some(field), Some(Object::Hash(hash))) => hash.get(&call.keyspace.heap, field).map(Element::to_vec),
        (None, None) => call.keyspace.text(found).map(Element::to_vec),
        _ => None,
    }
}

fn reply(call: &mut Call<'_, '_>, gets: &[&[u8]], items: &[Item]) -> Answer {
    call.reply.array(items.len() * gets.len().max(1));
    for item in items {
        if gets.is_empty() {
            call.reply.bulk(&item.element);
        }
        for pattern in gets {
            match pointed_to(call, pattern, &item.element) {
                Some(value) => call.reply.bulk(&value),
                None => call.reply.null(),
            }
            call.check_reply()?;
        }
    }
    Ok(())
}

fn store(call: &mut Call<'_, '_>, gets: &[&[u8]], items: &[Item], key: &[u8], bytes_max: usize) -> Answer {
    let mut list = QuickList::new();
    let mut bytes = 0;
    for item in items {
        if gets.is_empty() {
            list.push(End::Tail, &item.element);
        }
        for pattern in gets {
            let value = pointed_to(call, pattern, &item.element).unwrap_or_default();
            list.push(End::Tail, &value);
            bytes += value.len() + ELEMENT_COST;
            if bytes > bytes_max {
                return Err(TOO_LARGE.into());
            }
        }
    }
    let len = list.len();
    if len > 0 {
        call.keyspace.set_object(call.at, key, Object::List(Box::new(list)), Expiry::Never);
        call.notify(events::SORTSTORE, key);
    } else {
        call.keyspace.clear(call.at.database, key);
    }
    call.reply_count(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::At;
    use crate::transcript::{Script, play};
    use respool_command::lookup;
    use respool_wire::{ArgsBuf, Encoder, Protocol};

    #[test]
    fn elements_are_sorted_and_stored() {
        play(
            "RPUSH l 3 1 2 -> :3
             MSET w1 c w2 b w3 a -> +OK
             SORT l BY w* ALPHA -> *3 $1 3 $1 2 $1 1
             SORT l GET w* GET # STORE d -> :6
             LRANGE d 0 2 -> *3 $1 c $1 1 $1 b
             SORT l LIMIT 5 5 STORE d -> :0
             EXISTS d -> :0",
        );
    }

    #[test]
    fn what_a_request_may_hold_is_bounded() {
        let mut script = Script::new();
        script.say(&format!("SET wx {}", "y".repeat(1_000)));
        script.say("RPUSH l x x x x x x x x");
        let Script { mut engine, mut session, .. } = script;
        let request: ArgsBuf = ["SORT", "l"].into_iter().collect();
        let mut out = Vec::new();
        let at = At { database: 0, now: session.now.0 as i64 };
        let row = lookup(b"SORT").expect("it exists");
        let mut call = Call {
            keyspace: engine.keyspace_mut(),
            row,
            args: request.as_args(),
            at,
            session: &mut session,
            start: 0,
            reply: &mut Encoder::new(&mut out, Protocol::Resp2),
        };
        let mut wanted = wanted(&call, true).expect("there is nothing to read");
        (wanted.by, wanted.is_alphabetical) = (Some(&b"w*"[..]), true);
        let items = || (0..8).map(|_| Item { element: b"x".to_vec(), weight: Weight::Itself }).collect::<Vec<_>>();
        assert!(weigh(&mut call, &wanted, &mut items(), 8_000).is_ok());
        assert!(weigh(&mut call, &wanted, &mut items(), 7_999).is_err());
        let gets: [&[u8]; 2] = [b"w*", b"#"];
        assert!(store(&mut call, &gets, &items(), b"d", 8_039).is_err());
        assert!(call.keyspace.peek(at, b"d").is_none());
        assert!(store(&mut call, &gets, &items(), b"d", 8_040).is_ok());
    }
}
