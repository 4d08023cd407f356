//! Libraries of functions against a real redis-server 7.0: the same requests to both, replies compared byte for byte.

use respool_wire::Protocol;

use super::{both, shown, words};

/// Libraries that are loaded one after the other; not all of them can be.
const LIBRARIES: &[&str] = &[
    "#!lua name=l1\nredis.register_function('f1', function(keys, args) return {keys[1] or 'none', args[1] or 'none'} end)",
    "return 1",
    "#!lua\nreturn 1",
    "#!lua name=a-b\nreturn 1",
    "#!lua name=\nreturn 1",
    "#!js name=x\nreturn 1",
    "#!lua name=x",
    "#!lua name=x foo=bar\nreturn 1",
    "#!lua name=x name=y\nreturn 1",
    "#!lua name=l2\nreturn 1",
    "#!lua name=l2\nfoo bar",
    "#!lua name=l2\nredis.call('get', 'x')",
    "#!lua name=l2\nerror('x')",
    "#!lua name=l1\nredis.register_function('f9', function() end)",
    "#!lua name=l2\nredis.register_function('f1', function() end)",
    "#!lua name=l2\nredis.register_function('f2')",
    "#!lua name=l2\nredis.register_function(1)",
    "#!lua name=l2\nredis.register_function({function_name='f2', callback=function() return 2 end, flags={'no-writes'}, \
     description='d'})",
    "#!lua name=l3\nredis.register_function{function_name='f3', callback=function() end, flags={'bad'}}",
    "#!lua name=l3\nredis.register_function{function_name='f3'}",
    "#!lua name=l3\nredis.register_function{callback=function() end}",
    "#!lua name=l3\nredis.register_function{function_name='f3', callback=1}",
    "#!lua name=l3\nredis.register_function{function_name='f3', callback=function() end, x=1}",
    "#!lua name=l3\nredis.register_function('f 3', function() end)",
    "#!lua name=l3\nredis.register_function()",
    "#!lua name=l3\nredis.register_function(1, 2, 3)",
    "#!lua name=l3\nx = 1",
    "#!lua name=l3\nreturn x",
    "#!lua name=l3\nredis.register_function('f3', function() return redis.nosuch end)\n\
     redis.register_function('f4', function() y = 1 end)\n\
     redis.register_function('f5', function() return KEYS end)\n\
     redis.register_function('f6', function() return redis.call('nosuch') end)\n\
     redis.register_function('f7', function() error('x') end)\n\
     redis.register_function('f8', function() return redis.register_function('z', function() end) end)\n\
     redis.register_function('f9', function(keys, args) return redis.call('set', keys[1], args[1]) end)\n\
     redis.register_function('f10', function() redis.call = nil end)\n\
     redis.register_function('f11', function() return math.floor(2.5) + #cjson.encode({1}) end)\n\
     redis.register_function('f12', function(keys, args) return {#keys, #args, redis.pcall('get')} end)",
    "#!lua name=l4\nredis.register_function('F3', function() end)",
    "#!lua name=l4\nlocal x = math.random()",
    "#!lua name=l4\nredis.setresp(3)",
    "#!lua name=l4\nredis.register_function('g', function() end) redis.register_function('g', function() end)",
    "#!lua name=l4\nredis.x = 1",
    "#!lua name=l6\nlocal kept = redis\n\
     redis.register_function('f13', function() return kept.register_function('f1', function() return 'other' end) end)\n\
     redis.register_function('f14', function() return pcall(kept.register_function, 'f15', function() end) end)",
    "#!LUA NAME=l5 \n redis.log(redis.LOG_WARNING, 'x') redis.register_function('h', function() return redis.REDIS_VERSION end)",
];

#[test]
fn functions_answer_as_in_redis() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let Some((_server, mut redis, mut subject)) = both(protocol) else { return };
        let mut requests: Vec<Vec<Vec<u8>>> = Vec::new();
        requests.extend(LIBRARIES.iter().map(|library| words(&["FUNCTION", "LOAD", library])));
        for call in [
            "f1 0",
            "F1 1 a b",
            "f2 0",
            "f3 0",
            "f4 0",
            "f5 0",
            "f6 0",
            "f7 0",
            "f8 0",
            "f9 1 k v",
            "f10 0",
            "f11 0",
            "f12 1 a b c",
            "f13 0",
            "f14 0",
            "f15 0",
            "f1 1 a b",
            "nosuch 0",
            "f1 x",
            "f1 -1",
            "f1 2 a",
            "h 0",
        ] {
            for command in ["FCALL", "FCALL_RO"] {
                let line = format!("{command} {call}");
                requests.push(words(&line.split(' ').collect::<Vec<_>>()));
            }
        }
        for line in [
            "FUNCTION STATS",
            "FUNCTION LIST LIBRARYNAME l2",
            "FUNCTION LIST LIBRARYNAME l2 WITHCODE",
            "FUNCTION LIST WITHCODE LIBRARYNAME L1",
            "FUNCTION LIST LIBRARYNAME nosuch",
            "FUNCTION LIST X",
            "FUNCTION LIST LIBRARYNAME",
            "FUNCTION LIST WITHCODE WITHCODE",
            "FUNCTION KILL",
            "FUNCTION LOAD X y",
            // Redis writes these as texts of C.
            "FUNCTION LOAD X\0Y y",
            "FUNCTION LIST X\0Y",
            "SCRIPT FLUSH",
            "FCALL f1 0",
            "FUNCTION DELETE nosuch",
            "FUNCTION DELETE L2",
            "FUNCTION DELETE l3",
            "FCALL f9 1 k v",
            "FUNCTION DELETE l2",
            "FUNCTION DELETE l5",
            "FUNCTION DELETE l6",
            "FUNCTION DUMP",
            "FUNCTION RESTORE bad",
            "FUNCTION FLUSH X",
            "FUNCTION FLUSH SYNC x",
        ] {
            requests.push(words(&line.split(' ').collect::<Vec<_>>()));
        }
        for line in ["name=l x\0y", "name=l \"x\\x00y\"", "\"flags=x\\x00y\"", "\0"] {
            let text = format!("#!lua {line}\nreturn 1");
            requests.extend([words(&["FUNCTION", "LOAD", &text]), words(&["EVAL", &text, "0"])]);
        }
        requests.push(words(&["EVAL", "#!\"lua\\x00\"\nreturn 1", "0"]));
        let mut differences = Vec::new();
        let mut compare = |request: &[Vec<u8>]| {
            let (expected, said) = (redis.command(request).expect("the server answers"), subject.command(request));
            if expected != said {
                let shown_request: Vec<String> = request.iter().map(|word| shown(word)).collect();
                let (expected, said) = (shown(&expected), shown(&said));
                differences.push(format!("{}\n  redis   {expected}\n  respool {said}", shown_request.join(" ")));
            }
            said
        };
        requests.iter().for_each(|request| _ = compare(request));
        // What was dumped is one library.
        let dumped = compare(&words(&["FUNCTION", "DUMP"]));
        let start = dumped.iter().position(|&byte| byte == b'\n').expect("a head") + 1;
        let dump = &dumped[start..dumped.len() - 2];
        let restore = |policy: &[&str]| -> Vec<Vec<u8>> {
            [words(&["FUNCTION", "RESTORE"]), vec![dump.to_vec()], words(policy)].concat()
        };
        for policy in [&[][..], &["APPEND"], &["REPLACE"], &["FLUSH"], &["X"], &["FLUSH", "x"]] {
            compare(&restore(policy));
            compare(&words(&["FCALL", "f1", "1", "a"]));
        }
        compare(&words(&["FUNCTION", "FLUSH", "ASYNC"]));
        compare(&words(&["FCALL", "f1", "0"]));
        compare(&words(&["FUNCTION", "DUMP"]));
        compare(&restore(&[]));
        let library = "#!lua name=l1\nredis.register_function('f1', function() return 'new' end)";
        compare(&words(&["FUNCTION", "LOAD", "REPLACE", "#!lua name=l1\nfoo bar"]));
        compare(&words(&["FCALL", "f1", "0"]));
        compare(&words(&["FUNCTION", "LOAD", "replace", library]));
        compare(&words(&["FCALL", "f1", "0"]));
        assert!(differences.is_empty(), "{} in {protocol:?}:\n{}", differences.len(), differences.join("\n"));
    }
}

/// The bytes of a bulk string.
fn bulk_of(reply: &[u8]) -> Vec<u8> {
    let start = reply.iter().position(|&byte| byte == b'\n').expect("a head") + 1;
    reply[start..reply.len() - 2].to_vec()
}

#[test]
fn a_function_moves_between_libraries_that_are_replaced() {
    let library = |(name, function): &(&str, &str)| {
        let text = format!("#!lua name={name}\nredis.register_function('{function}', function() return '{name}' end)");
        words(&["FUNCTION", "LOAD", &text])
    };
    let flush = words(&["FUNCTION", "FLUSH"]);
    let Some((_server, mut redis, mut subject)) = both(Protocol::Resp2) else { return };
    for (before, restored) in [
        (&[("b", "f2")][..], &[("a", "f2"), ("b", "f7")][..]),
        (&[("a", "f1"), ("b", "f2")], &[("a", "f2"), ("b", "f1")]),
        (&[("a", "f1"), ("b", "f2")], &[("a", "f2")]),
        (&[("a", "f1"), ("c", "f3")], &[("b", "f3")]),
        (&[("a", "f1")], &[("b", "f2")]),
    ] {
        redis.command(&flush).expect("the server answers");
        restored.iter().for_each(|made| _ = redis.command(&library(made)).expect("the server answers"));
        let payload = bulk_of(&redis.command(&words(&["FUNCTION", "DUMP"])).expect("the server answers"));
        // Of several libraries that are there, APPEND names the first in a hash table whose seed is another at each start.
        let is_there = |made: &&(&str, &str)| before.iter().any(|(name, _)| *name == made.0);
        let several = restored.iter().filter(is_there).count() > 1;
        for policy in ["APPEND", "REPLACE", "FLUSH"].into_iter().skip(usize::from(several)) {
            let restore = [words(&["FUNCTION", "RESTORE"]), vec![payload.clone()], words(&[policy])].concat();
            let called = ["f1", "f2", "f3", "f7"].map(|function| words(&["FCALL", function, "0"]));
            let requests = std::iter::once(flush.clone()).chain(before.iter().map(library));
            for request in requests.chain([restore]).chain(called) {
                let expected = redis.command(&request).expect("the server answers");
                let said = subject.command(&request);
                assert_eq!(shown(&said), shown(&expected), "{before:?} {restored:?} {policy}: {}", shown(&request[1]));
            }
        }
    }
}
