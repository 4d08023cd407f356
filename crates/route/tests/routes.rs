//! Requests go to the pool of the first route that fits, under the names that it gives their keys.

use std::sync::Arc;

use respool_command::{Categories, Command, Row, StringCommand, all, resolve};
use respool_route::{
    Commands, DeadNode, Node, NodePlace, Pool, PoolMode, Reads, Rewrite, Route, RouteError, RouteScratch, Routed,
    Routes, RoutesError, Rule, Subject, Topology, When,
};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, Request, RequestDecoder, RequestLimits, Step, Strictness};

fn pool(name: &str, first: usize, nodes: usize) -> Pool {
    let list = (0..nodes).map(|index| Node::new(format!("{name}-{index}"))).collect();
    let topology = Topology::new(Rule::Slots.into(), list).expect("a list that fits");
    Pool { first: NodePlace::new(first), ..Pool::plain(name, Arc::new(topology)) }
}

fn route(name: &str, pool: usize, when: When) -> Route {
    let (rewrite, reads, dead_node) = (Rewrite::default(), Reads::Primary, None);
    Route { name: name.into(), when, pool, rewrite, reads, dead_node, pool_mode: None }
}

fn prefix(prefix: &str) -> When {
    When { prefix: prefix.as_bytes().into(), ..When::default() }
}

fn row(args: Args<'_>) -> &'static Row {
    resolve(args).expect("a known command")
}

fn words(bytes: &[u8]) -> String {
    let mut decoder = RequestDecoder::default();
    match decoder.decode(bytes, &RequestLimits::authenticated(Strictness::Strict)) {
        Ok(Step::Request(request)) => {
            assert_eq!(request.consumed, bytes.len(), "exactly one request");
            request.args.iter().map(|arg| arg.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
        }
        _ => panic!("no request: {}", bytes.escape_ascii()),
    }
}

/// What becomes of a request: `route@node: request` for each part, `all route`, or the error.
fn routed_as(text: &str, user: &str, database: u32, routes: &Routes) -> String {
    let request: ArgsBuf = text.split(' ').collect();
    let args = request.as_args();
    let subject = Subject { user, database, row: row(args) };
    let mut scratch = RouteScratch::default();
    let name = |route: u16| routes.route(route).name.to_string();
    match routes.plan_keys(subject, args, &mut scratch) {
        Ok(Routed::One(place)) => {
            let mut out = Vec::new();
            scratch.encode_one(routes, place.route, args, None, &mut out);
            format!("{}@{}: {}", name(place.route), place.node, words(&out))
        }
        Ok(Routed::Scan(route, _)) => format!("scan {}", name(route)),
        Ok(Routed::All(route)) => format!("all {}", name(route)),
        Ok(Routed::Split) => {
            let part = |(place, part): (respool_route::Place, respool_route::Part<'_>)| {
                let mut out = Vec::new();
                scratch.encode_part(routes, place, part, &Request::made(args), &mut out);
                format!("{}@{}: {}", name(place.route), place.node, words(&out))
            };
            scratch.parts().map(part).collect::<Vec<_>>().join(", ")
        }
        Err(error) => {
            let mut reply = Vec::new();
            error.write(routes, row(args), args, &mut Encoder::new(&mut reply, Protocol::Resp2));
            String::from_utf8(reply).expect("a text").trim_end().to_owned()
        }
    }
}

fn check(routes: &Routes, cases: &[(&str, &str)]) {
    for (request, expected) in cases {
        assert_eq!(routed_as(request, "default", 0, routes), *expected, "{request}");
    }
}

#[test]
fn the_longest_prefix_wins_and_the_rest_goes_to_the_default() {
    let pools = vec![pool("main", 0, 1), pool("a", 1, 1), pool("b", 2, 1)];
    let routes = vec![route("short", 1, prefix("x:")), route("long", 2, prefix("x:y:"))];
    let routes = Routes::new(pools, routes).expect("they fit");
    check(
        &routes,
        &[
            ("GET x:1", "short@1: GET x:1"),
            ("GET x:y:1", "long@2: GET x:y:1"),
            ("GET x", "default@0: GET x"),
            ("PUBLISH x:1 m", "default@0: PUBLISH x:1 m"),
            ("DBSIZE", "default@0: DBSIZE"),
            ("EVAL s 1 x:1", "short@1: EVAL s 1 x:1"),
            ("MGET x:1 x:2", "short@1: MGET x:1 x:2"),
            ("MGET x:1 k x:y:2 x:3", "short@1: MGET x:1 x:3, default@0: MGET k, long@2: MGET x:y:2"),
            ("MSET k 1 x:1 2", "default@0: MSET k 1, short@1: MSET x:1 2"),
            (
                "RENAME k x:1",
                "-CROSSSLOT Keys in request don't hash to the same slot: 'k' and 'x:1' are on different nodes",
            ),
        ],
    );
}

#[test]
fn the_first_route_that_fits_wins() {
    let pools = vec![pool("main", 0, 1), pool("a", 1, 1), pool("b", 2, 1)];
    let users = When { users: ["ann".into(), "bob".into()].into(), ..When::default() };
    let databases = When { databases: [3, 4].into(), ..When::default() };
    let commands = Commands {
        categories: Categories::named(b"set").expect("a category"),
        named: [Command::String(StringCommand::Get)].into(),
    };
    let routes = vec![
        route("who", 1, users),
        route("where", 2, databases),
        route("what", 1, When { commands, ..When::default() }),
    ];
    let routes = Routes::new(pools, routes).expect("they fit");
    for (user, database, request, expected) in [
        ("ann", 3, "GET k", "who@1: GET k"),
        ("bob", 0, "DBSIZE", "who@1: DBSIZE"),
        ("eve", 3, "GET k", "where@2: GET k"),
        ("eve", 0, "GET k", "what@1: GET k"),
        ("eve", 0, "SADD k m", "what@1: SADD k m"),
        ("eve", 0, "SET k v", "default@0: SET k v"),
    ] {
        assert_eq!(routed_as(request, user, database, &routes), expected, "{user} {database} {request}");
    }
}

#[test]
fn keys_get_other_names_wherever_they_stand() {
    let pools = vec![pool("main", 0, 1), pool("a", 1, 1)];
    let rewrite = Rewrite { strip: 2, add: b"new:".as_slice().into() };
    let routes = vec![Route { rewrite, ..route("r", 1, prefix("x:")) }];
    let routes = Routes::new(pools, routes).expect("they fit");
    check(
        &routes,
        &[
            ("GET x:1", "r@1: GET new:1"),
            ("GET x:", "r@1: GET new:"),
            ("EVAL x:s 2 x:1 x:2 x:3", "r@1: EVAL x:s 2 new:1 new:2 x:3"),
            ("SORT x:1 LIMIT 0 1 STORE x:2", "r@1: SORT new:1 LIMIT 0 1 STORE new:2"),
            ("XADD x:1 * x:f x:v", "r@1: XADD new:1 * x:f x:v"),
            ("ZUNIONSTORE x:d 2 x:1 x:2", "r@1: ZUNIONSTORE new:d 2 new:1 new:2"),
            ("MSET x:1 x:v k x:w", "r@1: MSET new:1 x:v, default@0: MSET k x:w"),
            ("DEL x:1 k x:2", "r@1: DEL new:1 new:2, default@0: DEL k"),
            ("OBJECT ENCODING x:1", "r@1: OBJECT ENCODING new:1"),
        ],
    );
    for request in ["XREAD STREAMS x:1 0", "LMPOP 1 x:1 LEFT", "SORT x:1 BY w_*"] {
        let refusal = routed_as(request, "default", 0, &routes);
        assert!(refusal.starts_with("-ERR '") && refusal.contains("route 'r'"), "{request}: {refusal}");
    }
}

#[test]
fn what_means_all_keys_is_refused_where_keys_are_renamed() {
    let pools = vec![pool("main", 0, 2), pool("a", 2, 2)];
    let users = When { users: ["tenant".into()].into(), ..When::default() };
    let rewrite = Rewrite { strip: 0, add: b"t1:".as_slice().into() };
    let routes = Routes::new(pools, vec![Route { rewrite, ..route("r", 1, users) }]).expect("they fit");
    for request in [
        "KEYS *",
        "SCAN 0",
        "RANDOMKEY",
        "DBSIZE",
        "FLUSHALL",
        "FLUSHDB",
        "SWAPDB 0 1",
        "CLUSTER GETKEYSINSLOT 0 10",
        "CLUSTER COUNTKEYSINSLOT 0",
        "SLOWLOG GET",
        "COMMANDLOG GET 10 slow",
    ] {
        let refusal = routed_as(request, "tenant", 0, &routes);
        assert!(refusal.contains("means keys that its arguments do not name"), "{request}: {refusal}");
    }
    assert_eq!(routed_as("DBSIZE", "other", 0, &routes), "all default");
    assert_eq!(routed_as("SCRIPT LOAD s", "tenant", 0, &routes), "all r");
    assert_eq!(routed_as("GET k", "tenant", 0, &routes), format!("r@{}: GET t1:k", node_of(&routes, 1, "t1:k")));
}

/// What is about keys and names none says so in its row, and who adds a row that tells of keys in another way has to say it there.
#[test]
fn rows_say_which_commands_mean_keys_that_they_do_not_name() {
    let mean: Vec<&str> = all().filter(|row| row.means_other_keys).map(|row| row.name).collect();
    let known = [
        "CLUSTER COUNTKEYSINSLOT",
        "CLUSTER GETKEYSINSLOT",
        "COMMANDLOG GET",
        "DBSIZE",
        "FLUSHALL",
        "FLUSHDB",
        "KEYS",
        "RANDOMKEY",
        "SCAN",
        "SLOWLOG GET",
        "SWAPDB",
    ];
    let mut sorted = mean.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, known);
}

/// `SORT` of a key under one route reads keys under others: another tenant's, or none because they are in another pool.
#[test]
fn patterns_reach_no_key_under_another_route() {
    let tenant = |prefix: &str| When { users: ["tenant7".into()].into(), ..self::prefix(prefix) };
    let rewrite = Rewrite { strip: 0, add: b"t7:".as_slice().into() };
    let routes = vec![
        route("shared", 0, tenant("shared:")),
        Route { rewrite, ..route("own", 0, tenant("")) },
        route("weights", 1, prefix("w_")),
        route("same", 0, prefix("same:")),
    ];
    let routes = Routes::new(vec![pool("main", 0, 1), pool("p", 1, 1)], routes).expect("they fit");
    let renamed = |request: &str| {
        let refusal = routed_as(request, "tenant7", 0, &routes);
        assert!(refusal.starts_with("-ERR 'sort") && refusal.contains("route 'own'"), "{request}: {refusal}");
    };
    for request in [
        "SORT shared:l BY nosort GET t8:*",
        "SORT shared:l BY nosort GET t8:*->field",
        "SORT shared:l BY nosort GET # GET *",
        "SORT shared:l BY share* GET #",
        "SORT_RO shared:l BY w_*",
        "SORT shared:l BY nosort GET t8:* STORE shared:m",
        "SORT own BY nosort GET shared:*",
    ] {
        renamed(request);
    }
    assert_eq!(
        routed_as("SORT shared:l BY shared:* GET shared:*->f", "tenant7", 0, &routes),
        "shared@0: SORT shared:l BY shared:* GET shared:*->f"
    );
    for request in ["SORT l BY w_*", "SORT l BY nosort GET w_*", "SORT l BY * STORE d", "SORT same:l BY w* GET #"] {
        assert_eq!(
            routed_as(request, "default", 0, &routes),
            "-ERR 'sort' with a pattern for keys is not supported over several nodes",
            "{request}"
        );
    }
    for request in ["SORT l BY v_* GET v_*", "SORT same:l BY other:*", "SORT l BY same:*", "SORT l BY nosort GET w_1"] {
        assert!(routed_as(request, "default", 0, &routes).ends_with(request), "{request}");
    }
    assert_eq!(routed_as("SORT w_l BY w_*", "default", 0, &routes), "weights@1: SORT w_l BY w_*");
    let many = |count: usize| format!("SORT l{}", " GET v_*".repeat(count));
    assert!(routed_as(&many(256), "default", 0, &routes).ends_with(&many(256)));
    assert!(routed_as(&many(257), "default", 0, &routes).starts_with("-ERR 'sort' with a pattern"));
}

/// Whatever the routes: a request with a pattern goes to a node only if each key that the pattern can mean is there under its own name. If it is
/// refused, one of them is not.
#[test]
fn a_pattern_goes_where_all_its_keys_are_or_nowhere() {
    let names: Vec<String> = {
        let letters = ["", "a", "b"];
        let of = |one: &str| {
            letters.iter().flat_map(|two| letters.map(|three| format!("{one}{two}{three}"))).collect::<Vec<_>>()
        };
        letters.iter().flat_map(|one| of(one)).collect()
    };
    let rewrites = [Rewrite::default(), Rewrite { strip: 0, add: b"x".as_slice().into() }];
    let prefixes = ["", "a", "ab", "b", "abb"];
    let kinds =
        || prefixes.iter().flat_map(|prefix| (0..2).flat_map(move |pool| (0..2).map(move |way| (*prefix, pool, way))));
    let (mut planned, mut refused) = (0, 0);
    for first in kinds() {
        for second in kinds() {
            let made = [first, second].map(|(prefix, pool, way)| Route {
                rewrite: rewrites[way].clone(),
                ..route("r", pool, self::prefix(prefix))
            });
            let routes = Routes::new(vec![pool("main", 0, 1), pool("p", 1, 1)], made.into()).expect("they fit");
            let place = |name: &str| routed_as(&format!("SORT {name}"), "u", 0, &routes);
            let key = "c";
            let there = place(key);
            let node = there.split([':', '@']).nth(1).unwrap();
            for start in ["", "a", "b", "ab", "ba", "abb"] {
                let sent = routed_as(&format!("SORT {key} BY {start}*"), "u", 0, &routes);
                let is_there = |name: &str| {
                    let found = place(name);
                    found.split([':', '@']).nth(1) == Some(node) && found.ends_with(&format!(": SORT {name}"))
                };
                let are_there = names.iter().all(|end| is_there(&format!("{start}{end}")))
                    && there.ends_with(&format!(": SORT {key}"));
                // Of two routes with the same prefix the second leads nothing, and is asked nevertheless.
                let is_sent = !sent.starts_with('-');
                let fits = if first.0 == second.0 { are_there || !is_sent } else { is_sent == are_there };
                assert!(fits, "{first:?} {second:?} {start}: {sent}");
                *(if are_there { &mut planned } else { &mut refused }) += 1;
            }
        }
    }
    assert!(planned > 100 && refused > 100, "{planned} {refused}");
}

fn node_of(routes: &Routes, pool: usize, key: &str) -> NodePlace {
    let pool = &routes.pools()[pool];
    pool.place(pool.topology.place(key.as_bytes()))
}

/// Whatever the command: a route that renames keys either gives every key its new name or refuses, and never sends an old
/// name to the node.
#[test]
fn no_key_keeps_its_name_under_a_route_that_renames() {
    let rewrite = Rewrite { strip: 0, add: b"t1:".as_slice().into() };
    let routes =
        Routes::new(vec![pool("main", 0, 1)], vec![Route { rewrite, ..route("r", 0, When::default()) }]).expect("fits");
    for row in all().filter(|row| !row.keys.is_none() && !row.is_container()) {
        for argc in 2..9 {
            let name = row.name.split(' ').map(str::to_owned);
            let request: ArgsBuf = name.chain((0..argc).map(|_| "1".to_owned())).collect();
            let args = request.as_args();
            let mut positions = respool_command::KeyPositions::new();
            let _ = row.keys.positions(args, &mut positions);
            let mut scratch = RouteScratch::default();
            match routes.plan_keys(Subject { user: "u", database: 0, row }, args, &mut scratch) {
                Ok(Routed::One(place)) => {
                    let mut out = Vec::new();
                    scratch.encode_one(&routes, place.route, args, None, &mut out);
                    let sent: Vec<String> = words(&out).split(' ').map(str::to_owned).collect();
                    for key in positions.iter().filter(|key| key.access.is_key()) {
                        assert_eq!(sent[key.index as usize], "t1:1", "{row:?} {argc}");
                    }
                    let renamed = sent.iter().filter(|word| *word == "t1:1").count();
                    let distinct: std::collections::BTreeSet<u32> =
                        positions.iter().filter(|key| key.access.is_key()).map(|key| key.index).collect();
                    assert_eq!(renamed, distinct.len(), "{row:?} {argc}");
                }
                Ok(routed) => panic!("{row:?}: one node, yet {routed:?}"),
                Err(error) => assert_eq!(error, RouteError::Renamed(0), "{row:?}"),
            }
        }
    }
}

#[test]
fn routes_that_cannot_be_are_refused() {
    let refusal = |routes: Vec<Route>| Routes::new(vec![pool("main", 0, 1)], routes).expect_err("they do not fit");
    assert_eq!(refusal(vec![route("r", 1, When::default())]), RoutesError::UnknownPool(0));
    let rewrite = Rewrite { strip: 3, add: Box::default() };
    assert_eq!(refusal(vec![Route { rewrite, ..route("r", 0, prefix("x:")) }]), RoutesError::StripsMore(0));
    assert_eq!(refusal(vec![route("r", 0, prefix(&"x".repeat(257)))]), RoutesError::LongPrefix(0));
    assert_eq!(refusal((0..257).map(|_| route("r", 0, When::default())).collect()), RoutesError::TooManyRoutes);
    assert_eq!(Routes::new(vec![], vec![]).expect_err("no pool"), RoutesError::NoPool);
}

#[test]
fn a_pool_knows_its_replicas_and_its_policy() {
    let at = NodePlace::new;
    let replicas: Box<[Box<[NodePlace]>]> = [[at(7)].into(), [].into()].into();
    let pool = Pool { replicas, dead_node: DeadNode::Next, ..pool("a", 5, 2) };
    assert_eq!([4, 5, 6].map(|place| pool.replicas_of(at(place))), [&[][..], &[at(7)][..], &[][..]]);
    assert_eq!([4, 5, 6, 7].map(|place| pool.has(at(place))), [false, true, true, false]);
    let routes = vec![Route { dead_node: Some(DeadNode::Replica), ..route("r", 0, prefix("x")) }];
    let routes = Routes::new(vec![pool], routes).expect("they fit");
    assert_eq!((routes.dead_node(0), routes.dead_node(1)), (DeadNode::Replica, DeadNode::Next));
    assert!(!routes.are_plain() && Routes::plain(self::pool("a", 0, 1)).are_plain());
}

#[test]
fn a_route_for_all_that_sets_something_is_not_plain() {
    let all = || route("all", 0, When::default());
    let changes: [Route; 4] = [
        Route { pool_mode: Some(PoolMode::Session), ..all() },
        Route { dead_node: Some(DeadNode::Next), ..all() },
        Route { reads: Reads::Replica, ..all() },
        Route { rewrite: Rewrite { add: b"x".as_slice().into(), ..Rewrite::default() }, ..all() },
    ];
    for route in changes {
        let shown = format!("{route:?}");
        let routes = Routes::new(vec![pool("a", 0, 1)], vec![route]).expect("it is a route");
        assert!(!routes.are_plain(), "{shown}");
    }
    assert!(Routes::new(vec![pool("a", 0, 1)], vec![all()]).expect("it is a route").are_plain());
}

/// Whatever a route makes of a key, it is found again under the name that led there, by clients that the route may lead.
#[test]
fn names_at_nodes_lead_back_to_those_who_know_them() {
    let rewritten = |name: &str, pool: usize, when: When, strip: usize, add: &str| Route {
        rewrite: Rewrite { strip, add: add.as_bytes().into() },
        ..route(name, pool, when)
    };
    let ann = When { users: ["ann".into()].into(), ..When::default() };
    let third = When { databases: [3].into(), ..prefix("a:") };
    let routes = vec![
        rewritten("tenant", 1, ann, 0, "t:"),
        rewritten("third", 1, third, 2, ""),
        rewritten("stripped", 1, prefix("a:"), 2, "n:"),
    ];
    let routes = Routes::new(vec![pool("main", 0, 2), pool("p", 2, 3)], routes).expect("routes that fit");
    for user in ["ann", "bob"] {
        for database in [0, 3] {
            for key in ["k", "a:k", "a:", "t:k", "n:a:k"] {
                let request: ArgsBuf = ["GET", key].into_iter().collect();
                let args = request.as_args();
                let mut scratch = RouteScratch::default();
                let planned = routes.plan_keys(Subject { user, database, row: row(args) }, args, &mut scratch);
                assert!(matches!(planned, Ok(Routed::One(_))));
                let placed = scratch.keys(&routes, args).remove(0);
                let route = placed.place.route;
                assert_eq!(routes.name_before(route, &placed.name).as_deref(), Some(key.as_bytes()));
                assert!(routes.may_lead(route, user, key.as_bytes()), "{user} {key}");
                assert_eq!(routes.pool_at(placed.place.node), Some(routes.route(route).pool));
            }
        }
    }
    assert_eq!(routes.name_before(0, b"k"), None, "the tenant's keys begin otherwise");
    assert!(!routes.may_lead(0, "bob", b"k") && !routes.may_lead(2, "ann", b"a:k"), "another route comes before");
}

/// Channels are led as keys are, and a pattern finds each of them: what nodes are asked for matches it there, and it has one
/// name and one way back.
#[test]
fn patterns_find_channels_wherever_routes_lead_them() {
    let rewrite = |strip: usize, add: &str| Rewrite { strip, add: add.as_bytes().into() };
    let user = |name: &str| When { users: [name.into()].into(), ..When::default() };
    let routes = vec![
        Route { rewrite: rewrite(2, "x*:"), ..route("a", 1, prefix("a:")) },
        Route { rewrite: rewrite(0, "y:"), ..route("ab", 0, prefix("a:b")) },
        Route { rewrite: rewrite(1, ""), ..route("b", 1, prefix("b:")) },
        Route { rewrite: rewrite(0, "t:"), ..route("tenant", 1, user("tenant")) },
    ];
    let routes = Routes::new(vec![pool("main", 0, 2), pool("other", 2, 2)], routes).expect("they fit");
    let row = |words: &str| respool_command::lookup(words.as_bytes()).expect("a known command");
    let matches = respool_command::glob::matches;
    let names = ["a:1", "a:b1", "a:bb", "b:1", "b:", "c", "t:c", "x*:1", "ab", "a:"];
    let patterns = ["*", "a*", "a:*", "a:b*", "?:1", "[ab]:*", "b:?", "*1", "a:b1", "c", "x*", "\\\\a:1", "nothing*"];
    let mut found = 0;
    for user in ["tenant", "other"] {
        let subject = Subject { user, database: 0, row: row("SUBSCRIBE") };
        for name in names {
            let led = routes.channel(subject, name.as_bytes());
            assert_eq!(
                routed_as(&format!("GET {name}"), user, 0, &routes).split('@').next(),
                Some(&*routes.route(led.route).name),
                "as a key"
            );
            let pool = routes.route(led.route).pool;
            assert!(routes.pools_for(subject).contains(&pool));
            for pattern in patterns {
                let asked = routes.pattern(subject, pattern.as_bytes());
                let called = routes.channel_name(subject, pool, &led.name, |name| matches(pattern.as_bytes(), name));
                if !matches(pattern.as_bytes(), name.as_bytes()) {
                    // Another name may lead there that does match.
                    assert!(called.is_none_or(|called| called.name != name.as_bytes()), "{user} {pattern} {name}");
                    continue;
                }
                found += 1;
                let called = called.unwrap_or_else(|| panic!("{user}: {pattern} does not find {name}"));
                assert_eq!(routes.channel(subject, &called.name).name, led.name, "{user} {pattern} {name}");
                let ways = asked.iter().filter(|way| way.route == called.route);
                assert_eq!(ways.filter(|way| matches(&way.name, &led.name)).count(), 1, "{user} {pattern} {name}");
            }
        }
    }
    assert!(found > 50, "{found}");
    let tenant = Subject { user: "tenant", database: 0, row: row("PSUBSCRIBE") };
    let asked: Vec<String> = routes
        .pattern(tenant, b"n[a]*")
        .into_iter()
        .map(|led| format!("{} {}", routes.route(led.route).name, led.name.escape_ascii()))
        .collect();
    assert_eq!(asked, ["tenant t:n[a]*"], "no other tenant's");
    assert!(!routes.keep_channels() && Routes::plain(pool("main", 0, 2)).keep_channels());
}

#[test]
fn a_key_is_put_into_no_database_where_it_could_not_be_found() {
    let pools = vec![pool("main", 0, 1), pool("a", 1, 1)];
    let databases = |databases: &[u32]| When { databases: databases.into(), ..When::default() };
    let rewrite = Rewrite { strip: 0, add: b"t:".as_slice().into() };
    let routes = vec![
        route("other", 1, databases(&[3])),
        Route { rewrite, ..route("named", 0, databases(&[4])) },
        route("same", 0, databases(&[5])),
        route("prefixed", 1, When { prefix: b"x:".as_slice().into(), ..databases(&[6]) }),
    ];
    let routes = Routes::new(pools, routes).expect("they fit");
    let refused = |name: &str, database: u32| {
        format!(
            "-ERR '{name}' into database {database} is not supported for this key: there, routes lead it to another pool or \
             give it another name"
        )
    };
    for (request, database, expected) in [
        ("MOVE k 1", 0, "default@0: MOVE k 1".to_owned()),
        ("MOVE k 5", 0, "default@0: MOVE k 5".to_owned()),
        ("MOVE k 3", 0, refused("move", 3)),
        ("MOVE k 4", 0, refused("move", 4)),
        ("MOVE k 6", 0, "default@0: MOVE k 6".to_owned()),
        ("MOVE x:k 6", 0, refused("move", 6)),
        ("MOVE k 0", 3, refused("move", 0)),
        ("MOVE k 3", 3, "other@1: MOVE k 3".to_owned()),
        ("MOVE k what", 0, "default@0: MOVE k what".to_owned()),
        ("COPY k j", 0, "default@0: COPY k j".to_owned()),
        ("COPY k j DB 5 REPLACE", 0, "default@0: COPY k j DB 5 REPLACE".to_owned()),
        ("COPY k j REPLACE db 3", 0, refused("copy", 3)),
        ("COPY k x:j DB 6", 0, refused("copy", 6)),
        ("COPY x:k j DB 6", 0, "default@0: COPY x:k j DB 6".to_owned()),
        ("COPY k j DB 3 DB 5", 0, refused("copy", 3)),
        ("SWAPDB 0 1", 0, "default@0: SWAPDB 0 1".to_owned()),
        ("SWAPDB 5 5", 0, "default@0: SWAPDB 5 5".to_owned()),
        (
            "SWAPDB 0 3",
            0,
            "-ERR 'swapdb' is not supported for databases 0 and 3: routes lead them to different places".to_owned(),
        ),
    ] {
        assert_eq!(routed_as(request, "default", database, &routes), expected, "{database}: {request}");
    }
}

/// Under a route that renames every key, what is about no key is as it is elsewhere.
#[test]
fn what_is_about_no_key_is_not_refused_because_keys_are_renamed() {
    let rewrite = Rewrite { strip: 0, add: b"t:".as_slice().into() };
    let routes = vec![Route { rewrite, ..route("named", 0, When::default()) }];
    let routes = Routes::new(vec![pool("main", 0, 1)], routes).expect("they fit");
    for request in
        ["OBJECT HELP", "XINFO HELP", "XGROUP HELP", "MEMORY HELP", "SCRIPT HELP", "FUNCTION HELP", "CONFIG HELP"]
    {
        assert!(routed_as(request, "default", 0, &routes).ends_with(request), "{request}");
    }
    for request in ["KEYS *", "RANDOMKEY", "DBSIZE", "FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "SCAN 0"] {
        assert!(routed_as(request, "default", 0, &routes).starts_with("-ERR "), "{request}");
    }
}

#[test]
fn without_routes_both_ways_to_a_plan_agree() {
    let routes = Routes::plain(pool("all", 0, 4));
    assert!(routes.are_plain());
    let requests = [
        "GET a",
        "SET a 1",
        "MGET a b c d e",
        "MGET a a",
        "MSET a 1 b 2 c 3",
        "DEL a b c",
        "RENAME a b",
        "RENAME a{x} b{x}",
        "SUNION a b c",
        "BLPOP a 0",
        "BLPOP a b 0",
        "EVAL x 2 a b",
        "EVAL x 0",
        "SORT a BY b_* GET c_*",
        "SCAN 0",
        "SCAN x",
        "KEYS *",
        "DBSIZE",
        "FLUSHALL",
        "PING",
        "TIME",
        "CONFIG GET x",
        "INFO",
        "RANDOMKEY",
        "SWAPDB 0 1",
        "XREAD STREAMS a b 0 0",
        "XGROUP CREATE a g $",
        "OBJECT ENCODING a",
        "MEMORY USAGE a",
        "SCRIPT LOAD x",
        "COPY a b",
        "COPY a b DB 3",
        "MOVE a 1",
        "GEORADIUS a 1 1 1 m STORE b",
        "ZUNIONSTORE a 2 b c",
        "TOUCH a b c",
        "EXISTS a b",
        "WAIT 1 0",
        "LMPOP 2 a b LEFT",
        "PFCOUNT a b",
        "WATCH a b",
    ];
    for request in requests {
        let args: ArgsBuf = request.split(' ').collect();
        let args = args.as_args();
        let subject = Subject { user: "u", database: 0, row: row(args) };
        let plan = |with_keys: bool| {
            let mut scratch = RouteScratch::default();
            let planned = match with_keys {
                true => routes.plan_keys(subject, args, &mut scratch),
                false => routes.plan(subject, args, &mut scratch),
            };
            let encode = |place, part: respool_route::Part<'_>| {
                let mut out = Vec::new();
                scratch.encode_part(&routes, place, part, &Request::made(args), &mut out);
                (place, words(&out))
            };
            let mut parts: Vec<_> = match planned {
                Ok(Routed::Split) => scratch.parts().map(|(place, part)| encode(place, part)).collect(),
                _ => Vec::new(),
            };
            parts.sort();
            (planned, parts)
        };
        assert_eq!(plan(false), plan(true), "{request}");
    }
}

/// `pools` pools of 1,000 nodes with a prefix each, and an MGET of a key at every one of their nodes.
fn keys_at_every_node_of(pools: usize) -> (Routes, ArgsBuf) {
    const NODES: usize = 1_000;
    let first = pool("0", 0, NODES);
    let mut tag_at = vec![None; NODES];
    let mut tags = (0..).map(|number: u32| format!("{{{number}}}"));
    while tag_at.contains(&None) {
        let tag = tags.next().expect("numbers do not end");
        let node = first.topology.place(tag.as_bytes()).get();
        tag_at[node].get_or_insert(tag);
    }
    let list = (0..pools).map(|at| Pool { first: NodePlace::new(at * NODES), ..first.clone() }).collect();
    let prefixes = (0..pools).map(|at| route(&at.to_string(), at, prefix(&format!("{at}:"))));
    let all = prefixes.chain([route("default", 0, When::default())]).collect();
    let routes = Routes::new(list, all).expect("routes that fit");
    let mut args: ArgsBuf = ["MGET"].into_iter().collect();
    for at in 0..pools {
        tag_at.iter().flatten().for_each(|tag| _ = args.push(format!("{at}:{tag}").as_bytes()));
    }
    (routes, args)
}

#[test]
fn a_request_of_more_parts_than_have_numbers_is_refused() {
    let plan = |pools| {
        let (routes, args) = keys_at_every_node_of(pools);
        let args = args.as_args();
        let subject = Subject { user: "", database: 0, row: row(args) };
        let mut scratch = RouteScratch::default();
        let planned = routes.plan_keys(subject, args, &mut scratch);
        let mut text = Vec::new();
        if let Err(error) = planned {
            error.write(&routes, row(args), args, &mut Encoder::new(&mut text, Protocol::Resp2));
        }
        (planned, scratch.parts().count(), String::from_utf8(text).expect("text"))
    };
    assert!(matches!(plan(65), (Ok(Routed::Split), 65_000, _)), "as many parts as have numbers");
    let (planned, _, text) = plan(66);
    assert_eq!(planned, Err(RouteError::TooManyParts));
    assert_eq!(text, "-ERR 'mget' with keys at more than 65535 nodes\r\n");
}
