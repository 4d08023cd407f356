//! Generated users and requests: the same verdicts as `ACL DRYRUN` gives.
//!
//! Where the keys of a request are is compared elsewhere, with its own list of differences, all of them requests that Redis
//! refuses to execute or whose keys its own finder gets wrong. A verdict that differs is accepted only for those, and where no
//! keys can be found: Redis allows such a request because it will not execute it, and here it is denied, because other servers
//! might.

use respool_access::{Users, answer};
use respool_command::{KeyPositions, resolve};
use respool_testkit::{Client, Rng};
use respool_wire::{Args, ArgsBuf, Value};

use crate::requests::any;
use crate::{ask_all, redis, reply, request, scale, set_user};

const USERS: usize = 60;
const REQUESTS: usize = 400;

#[test]
fn verdicts_are_those_of_redis() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let mut rng = Rng::new(12);
    let rows = crate::rows_of_redis();
    let (mut compared, mut allowed, mut excused, mut unread) = (0, 0, 0, 0);
    for round in 0..USERS * scale() {
        let users = generous_user(&mut client, &mut rng);
        let inner: Vec<ArgsBuf> = (0..REQUESTS)
            .map(|_| {
                let row = rows[rng.below(rows.len())];
                any(row, &mut rng)
            })
            .collect();
        let asked: Vec<ArgsBuf> = inner
            .iter()
            .map(|inner| request([&b"ACL"[..], b"DRYRUN", b"u"].into_iter().chain(inner.as_args().iter())))
            .collect();
        for (asked, theirs) in asked.iter().zip(ask_all(&mut client, &asked)) {
            let inner = asked.as_args().from(3);
            let ours = reply(|out| answer::dry_run(&users, b"u", inner, &respool_command::Renames::default(), out));
            compared += 1;
            allowed += usize::from(ours.starts_with(b"+"));
            if ours != theirs && is_denied_unread(inner, &ours) {
                unread += 1;
            } else if ours != theirs {
                let found_elsewhere = keys_differ(&mut client, asked);
                let rules = String::from_utf8_lossy(&users.user(b"u").expect("it was made").rules()).into_owned();
                let (ours, theirs) = (ours.escape_ascii(), theirs.escape_ascii());
                assert!(found_elsewhere, "round {round}: {inner:?}\n ours  {ours}\n Redis {theirs}\n {rules}");
                excused += 1;
            }
        }
    }
    eprintln!(
        "{compared} verdicts were compared, {allowed} of them to allow; {excused} are about keys found elsewhere, {unread} about \
         keys that cannot be found"
    );
    assert!(allowed > compared / 10 && allowed < compared * 9 / 10);
    assert!(excused * 100 < compared, "{excused} of {compared}");
}

/// Whether a request is denied because its keys cannot be found.
fn is_denied_unread(inner: Args<'_>, ours: &[u8]) -> bool {
    let row = resolve(inner).expect("the request has a row");
    let is_unread = row.keys.positions(inner, &mut KeyPositions::new()).is_err();
    let object = inner.get(1).unwrap_or_default();
    let denial = [b"This user has no permissions to access the '", object, b"' key"].concat();
    is_unread && matches!(Value::parse(ours), Ok(Value::Bulk(words)) if words == denial)
}

/// Makes the user `u` on both sides with rules that allow about half of what is asked.
fn generous_user(client: &mut Client, rng: &mut Rng) -> Users {
    let mut rules: Vec<Vec<u8>> = vec![b"reset".to_vec()];
    let beginnings: [&[&str]; 5] = [
        &["+@all"],
        &["+@all", "~*"],
        &["+@all", "-@write", "~a*", "%R~key*"],
        &["+@read", "+@write", "%W~*", "%R~a*", "&a*"],
        &["+@all", "~a*", "~key*", "&key*", "&a", "(+@all ~b* &*)"],
    ];
    rules.extend(rng.pick(&beginnings).iter().map(|rule| rule.as_bytes().to_vec()));
    let mut users = Users::new();
    let mut apply = |client: &mut Client, rules: &[Vec<u8>]| {
        let rules: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
        let theirs =
            ask_all(client, &[request([&b"ACL"[..], b"SETUSER", b"u"].into_iter().chain(rules.iter().copied()))]);
        let (ours, next) = set_user(&users, b"u", &rules);
        assert_eq!(ours, theirs[0]);
        users = next;
    };
    apply(client, &rules);
    for _ in 0..rng.below(12) {
        let rule = crate::rules::rule(rng);
        // Those that undo everything leave nothing to ask about.
        if !rule.eq_ignore_ascii_case(b"reset") && !rule.starts_with(b"-@all") && rule != b"nocommands" {
            apply(client, &[rule]);
        }
    }
    users
}

/// Whether Redis finds other keys in the request than are found here.
fn keys_differ(client: &mut Client, asked: &ArgsBuf) -> bool {
    let inner = asked.as_args().from(3);
    let theirs = ask_all(client, &[request([&b"COMMAND"[..], b"GETKEYS"].into_iter().chain(inner.iter()))]).remove(0);
    let theirs: Vec<Vec<u8>> = match Value::parse(&theirs) {
        Ok(Value::Array(keys)) => keys
            .into_iter()
            .map(|key| match key {
                Value::Bulk(key) => key,
                other => panic!("{other:?} is no key"),
            })
            .collect(),
        _ => Vec::new(),
    };
    let mut positions = KeyPositions::new();
    let row = resolve(inner).expect("the request has a row");
    let _ = row.keys.positions(inner, &mut positions);
    let ours: Vec<Vec<u8>> = positions.iter().map(|key| inner[key.index as usize].to_vec()).collect();
    ours != theirs
}
