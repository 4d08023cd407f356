//! What nodes say about a cluster, in all three forms, and from nodes that say anything.

use proptest::prelude::*;
use respool_route::SLOTS;
use respool_route::cluster::{Address, Attempt, Ports, Redirect, Refresh, RefreshStep, RefreshTerms, Report, Trigger};
use respool_wire::Value;

/// A shard: host number, replicas, slots.
type ShardShape = (u8, u8, Vec<(u16, u16)>);

fn bulk(text: impl AsRef<[u8]>) -> Value {
    Value::Bulk(text.as_ref().to_vec())
}

fn int(number: impl Into<i64>) -> Value {
    Value::Integer(number.into())
}

fn id(shard: u8, member: u8) -> String {
    format!("{:040x}", u16::from(shard) << 8 | u16::from(member))
}

/// IPv6 for even shards.
fn host(shard: u8, member: u8) -> String {
    if shard.is_multiple_of(2) { format!("2001:db8::{shard:x}:{member:x}") } else { format!("10.0.{shard}.{member}") }
}

fn asked() -> Address {
    Address::new("seed.example", 7_000).unwrap()
}

/// `CLUSTER SLOTS`
fn slots(shards: &[ShardShape]) -> Value {
    let member = |shard: u8, member: u8| {
        Value::Array(vec![bulk(host(shard, member)), int(7_000), bulk(id(shard, member)), Value::Array(vec![])])
    };
    let range = |(shard, replicas, (first, last)): (u8, u8, (u16, u16))| {
        let members = (0..=replicas).map(|number| member(shard, number));
        Value::Array([int(first), int(last)].into_iter().chain(members).collect())
    };
    let ranges =
        shards.iter().flat_map(|(shard, replicas, ranges)| ranges.iter().map(|range| (*shard, *replicas, *range)));
    Value::Array(ranges.map(range).collect())
}

/// `CLUSTER SHARDS`
fn shards_reply(shards: &[ShardShape]) -> Value {
    let member = |shard: u8, member: u8| {
        let role = if member == 0 { "master" } else { "replica" };
        let fields = [
            ("id", bulk(id(shard, member))),
            ("port", int(7_000)),
            ("ip", bulk(host(shard, member))),
            ("endpoint", bulk(host(shard, member))),
            ("role", bulk(role)),
            ("health", bulk("online")),
        ];
        Value::Map(fields.into_iter().map(|(name, value)| (bulk(name), value)).collect())
    };
    let shard = |(shard, replicas, ranges): &ShardShape| {
        let slots = ranges.iter().flat_map(|(first, last)| [int(*first), int(*last)]).collect();
        // Replicas may stand first.
        let nodes = (0..=*replicas).rev().map(|number| member(*shard, number)).collect();
        Value::Array(vec![bulk("slots"), Value::Array(slots), bulk("nodes"), Value::Array(nodes)])
    };
    Value::Array(shards.iter().map(shard).collect())
}

/// `CLUSTER NODES`
fn nodes(shards: &[ShardShape]) -> Value {
    let mut text = String::new();
    for (shard, replicas, ranges) in shards.iter().rev() {
        for member in (0..=*replicas).rev() {
            let (flags, primary) = if member == 0 { ("master", "-".to_owned()) } else { ("slave", id(*shard, 0)) };
            text += &format!(
                "{} {}:7000@17000 {flags} {primary} 0 0 0 connected",
                id(*shard, member),
                host(*shard, member)
            );
            if member == 0 {
                ranges.iter().for_each(|(first, last)| {
                    text += &if first == last { format!(" {first}") } else { format!(" {first}-{last}") }
                });
            }
            text += "\n";
        }
    }
    bulk(text)
}

/// All slots, cut at random into runs that are dealt to some shards.
fn any_shards() -> impl Strategy<Value = Vec<ShardShape>> {
    (1..9u8, prop::collection::btree_set(1..SLOTS, 0..40), any::<u64>()).prop_map(|(count, cuts, salt)| {
        let mut shards: Vec<ShardShape> =
            (0..count).map(|shard| (shard, (salt >> shard) as u8 % 3, Vec::new())).collect();
        let starts: Vec<u16> = std::iter::once(0).chain(cuts.iter().copied()).collect();
        let ends = cuts.iter().copied().chain([SLOTS]).map(|end| end - 1);
        for (number, range) in starts.iter().copied().zip(ends).enumerate() {
            shards[(number as u64).wrapping_mul(salt | 1) as usize % usize::from(count)].2.push(range);
        }
        shards.retain(|(_, _, ranges)| !ranges.is_empty());
        shards
    })
}

/// Any reply, with the words that reports look for.
fn any_reply() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("slots"),
        Just("nodes"),
        Just("role"),
        Just("master"),
        Just("port"),
        Just("ip"),
        Just("id"),
        Just("endpoint"),
        Just("?"),
        Just(""),
        Just("::1"),
        Just("a 1:1@1 master - 0 0 1 connected 0-9 [3->-b]"),
    ];
    let leaf = prop_oneof![
        word.prop_map(bulk),
        (-2..20_000i64).prop_map(Value::Integer),
        any::<Vec<u8>>().prop_map(Value::Bulk),
        Just(Value::NullBulk),
        Just(Value::Null),
        Just(Value::Error(b"ERR x".to_vec())),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((inner.clone(), inner), 0..6).prop_map(Value::Map),
        ]
    })
}

fn map_of(report: Report) -> Refresh {
    let mut refresh = Refresh::new(RefreshTerms::default(), [asked()]);
    let RefreshStep::Ask { number, .. } = refresh.poll(0, 0).step else { panic!("it begins at once") };
    refresh.on_answer(number, Some(report));
    refresh
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The same cluster is the same map, whichever way it is told, and each slot is where it was said to be.
    #[test]
    fn all_three_forms_give_the_same_map(shards in any_shards()) {
        let forms = [
            Report::from_slots(&slots(&shards), &asked()),
            Report::from_shards(&shards_reply(&shards), &asked(), Ports::Plain),
            Report::from_nodes(&nodes(&shards), &asked(), Ports::Plain),
        ];
        let maps = forms.map(|report| map_of(report.expect("a report")).map().expect("a map").clone());
        prop_assert_eq!(&maps[0], &maps[1]);
        prop_assert_eq!(&maps[0], &maps[2]);
        prop_assert!(maps[0].is_complete());
        for (shard, replicas, ranges) in &shards {
            for slot in ranges.iter().flat_map(|(first, last)| [*first, *last]) {
                let found = maps[0].shard_of(slot).expect("complete");
                prop_assert_eq!(&*found.primary.id, &id(*shard, 0));
                prop_assert_eq!(found.replicas.len(), usize::from(*replicas));
            }
        }
    }

    /// Nothing that a node says ends the program or makes the map smaller, and what is refused changes nothing.
    #[test]
    fn no_reply_harms_what_is_known(shards in any_shards(), replies in prop::collection::vec(any_reply(), 1..4)) {
        let mut refresh = map_of(Report::from_slots(&slots(&shards), &asked()).expect("a report"));
        refresh.poll(0, 0);
        let mut now_us = 0;
        for reply in replies {
            now_us += 20_000_000;
            refresh.on_trigger(Trigger::Stuck, now_us, 0);
            while let RefreshStep::Ask { number, .. } = refresh.poll(now_us, 0).step {
                let reports = [
                    Report::from_slots(&reply, &asked()),
                    Report::from_shards(&reply, &asked(), Ports::Tls),
                    Report::from_nodes(&reply, &asked(), Ports::Tls),
                ];
                refresh.on_answer(number, reports.into_iter().find_map(Result::ok));
            }
            // One more step, for the round to end.
            refresh.poll(now_us, 0);
            let map = refresh.map().expect("it was there");
            prop_assert!(map.shards().iter().all(|shard| shard.primary.address.port() != 0));
        }
    }

    /// Any error is read without harm, and what is followed is followed a bounded number of times.
    #[test]
    fn no_error_is_followed_for_ever(error in prop_oneof![
        any::<Vec<u8>>(),
        "(MOVED|ASK|TRYAGAIN|LOADING) ?[0-9]{0,6} ?[a-z:?.%\\[\\]]{0,9}:?[0-9]{0,6}".prop_map(String::into_bytes),
    ]) {
        let Some(redirect) = Redirect::parse(&error, &asked()) else { return Ok(()) };
        let mut attempt = Attempt::new();
        let mut steps = 0;
        while attempt.on_redirect(&redirect, 0, None, 0) != respool_route::cluster::Next::GiveUp {
            steps += 1;
            prop_assert!(steps < 100);
        }
    }
}
