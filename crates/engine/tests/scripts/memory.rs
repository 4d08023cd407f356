//! The memory of scripts, libraries and their garbage: it is bounded, counted and given back.

use std::time::Instant;

use respool_engine::{Engine, EngineConfig};

use super::hostile::Hostile;

/// Libraries that leave less and less room in the interpreter: the table of names has to grow as well, by more than what some of them
/// leave. Whatever a reply says, one of the two libraries is there, and whole.
#[test]
fn a_library_is_replaced_or_stays_when_memory_is_used_up() {
    let old = b"#!lua name=l\nredis.register_function('old', function() return 'old' end)";
    let (large, small) = ("x".repeat(64 * 1024), "x".repeat(1024));
    let (mut fits, mut too_much, mut refused) = (0, 8 * 1024, String::new());
    while too_much - fits > 512 {
        // A table of names that was once large stays so.
        let mut hostile = Hostile::new();
        let mut ask = |words: &[&[u8]]| hostile.send(1, false, words).1;
        assert_eq!(ask(&[b"FUNCTION", b"LOAD", old]), "$1\r\nl\r\n");
        let count = (fits + too_much) / 2;
        let new = format!(
            "#!lua name=l\nlocal held = {{}}\nfor i = 1, 9000 do\n\
             redis.register_function('f' .. i, function() return #held end)\nend\n\
             for i = 1, 4000 do held[i] = '{large}' .. i end\nfor i = 1, {count} do held[4000 + i] = '{small}' .. i end"
        );
        let said = ask(&[b"FUNCTION", b"LOAD", b"REPLACE", new.as_bytes()]);
        let (is_old, is_new) = (ask(&[b"FCALL", b"old", b"0"]), ask(&[b"FCALL", b"f9000", b"0"]));
        let listed = ask(&[b"FUNCTION", b"LIST"]);
        if said == "$1\r\nl\r\n" {
            assert!(is_old.starts_with("-ERR Function not found"), "{is_old}");
            assert!(is_new == format!(":{}\r\n", 4000 + count));
            assert!(listed.contains("f9000") && !listed.contains("old"), "{count}");
            assert_eq!(ask(&[b"FUNCTION", b"LOAD", b"REPLACE", old]), "$1\r\nl\r\n");
            fits = count;
        } else {
            assert!(said.starts_with("-ERR") && said.contains("not enough memory"), "{said}");
            assert!(is_new.starts_with("-ERR Function not found") && is_old == "$3\r\nold\r\n", "{count}: {said}");
            assert!(listed.contains("old") && !listed.contains("f9000"), "{count}");
            (too_much, refused) = (count, said);
        }
    }
    assert!(fits > 0, "the least of them fits");
    assert_eq!(refused, "-ERR not enough memory for scripts\r\n", "the names of one that has run");
}

#[test]
fn memory_is_bounded() {
    let mut hostile = Hostile::new();
    for script in [
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = 'x' while true do s = s .. s end",
        "return string.rep('x', 1e10)",
        "local t = {} while true do t[#t + 1] = string.rep('x', 1e6) .. #t end",
        "local s = string.rep('x', 1e6) return string.gsub(s, '.', s)",
        "return string.rep('', 1e15) .. string.rep('x', 2 ^ 31 - 1)",
        "return struct.pack('c2147483647', 'x')",
        "local t = {} while true do t[#t + 1] = redis.call('echo', string.rep('x', 60000) .. #t) end",
        "local t, s = {}, '[' .. string.rep('[],', 5000) .. '1]' while true do t[#t + 1] = cjson.decode(s) end",
        "local t = {} while true do t[#t + 1] = redis.call('command', 'info', 'get', 'set') end",
        "local s, t = string.rep('x', 1e6), {} for i = 1, 7900 do t[i] = s end return redis.call('echo', unpack(t))",
        "local s, t = string.rep('x', 1e6), {} for i = 1, 1000 do t[i] = s end return cjson.encode(t)",
        "local s, t = string.rep('x', 1e6), {} for i = 1, 1000 do t[i] = s end return cmsgpack.pack(t)",
        "return #string.gsub(string.rep('a', 1e6), '.*', string.rep('%0', 1e6))",
        "return #string.gsub(string.rep('a', 1e6), '(.*)', string.rep('%1', 1e6))",
        "return #string.gsub('a', '()', string.rep('%1', 6e7) .. string.rep('x', 1e8))",
        "local s, t = string.rep('x', 1e8), {} for i = 1, 20 do t[i] = s end return t",
    ] {
        let reply = hostile.eval(script);
        assert!(reply.starts_with('-'), "{script}: {}", &reply[..reply.len().min(100)]);
        assert_eq!(hostile.eval("return 'still here'"), "$10\r\nstill here\r\n");
    }
    let many = "local s, t = string.rep('x', 1e7), {} for i = 1, 7900 do t[i] = s end redis.log(3, unpack(t)) return 1";
    assert_eq!(hostile.eval(many), ":1\r\n", "no more is taken of it than a line has");
    // What is caught is let go.
    assert_eq!(hostile.eval("return select(2, pcall(string.rep, 'x', 1e10))"), "$17\r\nnot enough memory\r\n");
}

/// What a library says of its functions is copied, and may be the same long string many times.
#[test]
fn what_a_library_says_of_its_functions_is_bounded() {
    let mut hostile = Hostile::new();
    let load = |hostile: &mut Hostile, text: String| {
        let said = hostile.send(1, false, &[b"FUNCTION", b"LOAD", text.as_bytes()]).1;
        assert!(hostile.send(1, false, &[b"FUNCTION", b"LIST"]).1.starts_with("*0\r\n") || said.starts_with('$'));
        said
    };
    let register = "redis.register_function{function_name = 'f' .. i, callback = function() end, ";
    let flags = "local s, t = ('x'):rep(1e8), {} for i = 1, 10000 do t[i] = s end for i = 1, 10000 do ";
    assert_eq!(
        load(&mut hostile, format!("#!lua name=l\n{flags}{register}flags = t}} end")),
        "-ERR Error registering functions: ERR unknown flag given\r\n"
    );
    let texts = "local s = ('x'):rep(1e8) for i = 1, 10000 do ";
    for field in ["description = s}", "flags = {'no-writes'}, description = ('x'):rep(1e6)}"] {
        assert_eq!(
            load(&mut hostile, format!("#!lua name=l\n{texts}{register}{field} end")),
            "-ERR Error registering functions: ERR the names and descriptions of one library's functions are too long\r\n"
        );
    }
    let names = "local s = ('x'):rep(1e8) for i = 1, 10000 do redis.register_function(s, function() end) end";
    assert_eq!(
        load(&mut hostile, format!("#!lua name=l\n{names}")),
        "-ERR Error registering functions: ERR the names and descriptions of one library's functions are too long\r\n"
    );
    let many = "local t = {} for i = 1, 1000 do t[i] = 'no-writes' end for i = 1, 1000 do ";
    let shown = "flags = t, description = ('x'):rep(1000)} end";
    assert_eq!(load(&mut hostile, format!("#!lua name=l\n{many}{register}{shown}")), "$1\r\nl\r\n");
    let listed = hostile.send(1, false, &[b"FUNCTION", b"LIST"]).1;
    assert_eq!(listed.matches("*1\r\n+no-writes\r\n").count(), 1000);
}

/// What each costs does not depend on how many there are.
#[test]
fn functions_are_registered_without_a_walk_over_the_others() {
    let mut hostile = Hostile::new();
    let mut time = |functions: usize| {
        let text = format!(
            "#!lua name=l\nlocal f = function() end for i = 1, {functions} do redis.register_function('f' .. i, f) end"
        );
        let begun = Instant::now();
        let said = hostile.send(1, false, &[b"FUNCTION", b"LOAD", b"REPLACE", text.as_bytes()]).1;
        assert_eq!(said, "$1\r\nl\r\n");
        begun.elapsed()
    };
    // With a walk it is a hundred times as long, however often it is measured.
    let (mut few, mut many) = (time(1_000), time(10_000));
    for _ in 0..20 {
        if many < few * 30 {
            return;
        }
        (few, many) = (few.min(time(1_000)), many.min(time(10_000)));
    }
    panic!("{many:?} for 10,000 functions, {few:?} for 1,000");
}

/// Short texts may compile to a multiple of their length. The oldest are forgotten, and none is refused.
#[test]
fn scripts_that_compile_to_much_leave_room_for_others() {
    let mut hostile = Hostile::new();
    let statements = "a=b<c ".repeat(15_000);
    let mut first = None;
    for number in 0..420 {
        let script = format!("if {number} == KEYS[1] then {statements}end return 'kept'");
        let said = hostile.send(1, false, &[b"SCRIPT", b"LOAD", script.as_bytes()]).1;
        assert!(said.starts_with("$40\r\n"), "{number}: {said}");
        first.get_or_insert(said[5..45].to_owned());
    }
    assert_eq!(hostile.eval("return #string.rep('x', 1e8)"), ":100000000\r\n");
    let held = figure(&mut hostile, "used_memory_lua");
    assert!(held < 100_000_000, "{held}");
    // Beside libraries that leave less than compiled scripts may take.
    for name in ["a", "b"] {
        let said = hostile.send(1, false, &[b"FUNCTION", b"LOAD", large_library(name).as_bytes()]).1;
        assert!(said.starts_with('$'), "{said}");
    }
    for number in 0..80 {
        let script = format!("if {number} == KEYS[1] then {statements}end return 'beside'");
        assert_eq!(hostile.eval(&script), "$6\r\nbeside\r\n", "{number}");
    }
    // One that fits in no case is refused, says why, and takes nothing from the others.
    let held = figure(&mut hostile, "used_memory_lua");
    let script = "a=b<c ".repeat(6_000_000);
    assert!(hostile.eval(&script).starts_with("-ERR Error compiling script (new function): not enough memory"));
    let left = figure(&mut hostile, "used_memory_lua");
    assert!(left > held / 100 * 99, "{left} {held}");
    // What has made room is compiled again.
    let first = first.expect("one was loaded");
    assert_eq!(hostile.send(1, false, &[b"EVALSHA", first.as_bytes(), b"0"]).1, "$4\r\nkept\r\n");
    assert_eq!(hostile.eval("return 'still here'"), "$10\r\nstill here\r\n");
}

#[test]
fn compiled_scripts_make_room_where_that_is_enough() {
    let mut hostile = Hostile::new();
    let statements = "a=b<c ".repeat(15_000);
    for number in 0..100 {
        let script = format!("if {number} == KEYS[1] then {statements}end return 'kept'");
        assert_eq!(hostile.eval(&script), "$4\r\nkept\r\n");
    }
    let held = "#!lua name=l\nlocal held = {}\nfor i = 1, 1300 do held[i] = ('x'):rep(100000 + i) end\n\
                redis.register_function('held', function() return #held end)";
    assert_eq!(hostile.send(1, false, &[b"FUNCTION", b"LOAD", held.as_bytes()]).1, "$1\r\nl\r\n");
    let before = figure(&mut hostile, "used_memory_lua");
    assert!(before > 180_000_000, "{before}");
    let large = |size: usize| format!("do return 'large' end {}", statements.repeat(size));
    assert_eq!(hostile.eval(&large(120)), "$5\r\nlarge\r\n");
    let after = figure(&mut hostile, "used_memory_lua");
    assert!(after < 256 << 20, "{after}");
    assert!(hostile.eval(&large(400)).starts_with("-ERR Error compiling script (new function): not enough memory"));
    assert_eq!(hostile.eval(&large(120)), "$5\r\nlarge\r\n");
    assert_eq!(hostile.send(1, false, &[b"FCALL", b"held", b"0"]).1, ":1300\r\n");
}

/// Lua begins to collect where twice as much is in use as was left before, which may be beyond what there is.
#[test]
fn garbage_is_collected_before_a_script_is_refused_memory() {
    let mut hostile = Hostile::new();
    let held = "#!lua name=l\nlocal held = {}\nfor i = 1, 1800 do held[i] = ('x'):rep(100000 + i) end\n\
                redis.register_function('held', function() return #held end)";
    assert_eq!(hostile.send(1, false, &[b"FUNCTION", b"LOAD", held.as_bytes()]).1, "$1\r\nl\r\n");
    hostile.eval("redis.call('SET', 's', string.rep('x', 20000))");
    for script in [
        "for i = 1, 20000 do redis.call('APPEND', 's', 'x') redis.call('GET', 's') end return 1",
        "local t = {} for i = 1, 400 do t[i % 5] = string.rep('x', 1e6 + i) end return 1",
        "for i = 1, 1200000 do local t = {i, i} end return 1",
        "for i = 1, 1400000 do local t = 'xxxxxxxxxxxxxxxxxxxxxxxx' .. i end return 1",
    ] {
        assert_eq!(hostile.eval(script), ":1\r\n", "{script}");
        assert_eq!(hostile.send(1, false, &[b"FCALL", b"held", b"0"]).1, ":1800\r\n");
    }
    // What the script itself holds is no different.
    assert_eq!(hostile.send(1, false, &[b"FUNCTION", b"FLUSH"]).1, "+OK\r\n");
    let own = "local t = {} for i = 1, 1500 do t[i] = redis.call('ECHO', string.rep('x', 1e5 + i)) end \
               for i = 1, 10000 do redis.call('ECHO', string.rep('x', 1e4 + i)) end return #t";
    assert_eq!(hostile.eval(own), ":1500\r\n");
    assert_eq!(hostile.eval("return 'still here'"), "$10\r\nstill here\r\n");
}

/// A figure of `INFO memory`.
fn figure(hostile: &mut Hostile, name: &str) -> u64 {
    let told = hostile.send(1, false, &[b"INFO", b"memory"]).1;
    let line = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} in {told}"))
}

#[test]
fn what_scripts_hold_is_told_and_counts_as_memory() {
    let mut hostile = Hostile::new();
    assert_eq!(figure(&mut hostile, "used_memory_vm_total"), 0, "there is no interpreter before the first script");
    let before = hostile.engine.memory_bytes();
    assert_eq!(hostile.eval("return 1"), ":1\r\n");
    let vm = figure(&mut hostile, "used_memory_lua");
    assert!(vm > 10_000 && vm == figure(&mut hostile, "used_memory_vm_eval"), "{vm}");
    assert_eq!(figure(&mut hostile, "number_of_cached_scripts"), 1);
    let cached = figure(&mut hostile, "used_memory_scripts_eval");
    assert!(cached >= 8, "{cached}");
    assert_eq!(hostile.engine.memory_bytes() as u64 - before as u64, vm + cached);
    let library = b"#!lua name=l\nredis.register_function('f', function() return 1 end)";
    _ = hostile.send(1, false, &[b"FUNCTION", b"LOAD", library]);
    let functions = figure(&mut hostile, "used_memory_functions");
    assert!(functions >= library.len() as u64, "{functions}");
    assert_eq!(figure(&mut hostile, "used_memory_scripts"), cached + functions);
    assert_eq!((figure(&mut hostile, "number_of_libraries"), figure(&mut hostile, "number_of_functions")), (1, 1));
    _ = hostile.send(1, false, &[b"FUNCTION", b"FLUSH"]);
    _ = hostile.send(1, false, &[b"SCRIPT", b"FLUSH"]);
    assert_eq!(figure(&mut hostile, "used_memory_scripts"), 0);
}

#[test]
fn what_a_script_has_left_is_not_kept() {
    let mut hostile = Hostile::new();
    hostile.eval("return 1");
    let before = figure(&mut hostile, "used_memory_lua");
    hostile.eval("local t = {} for i = 1, 50 do t[i] = string.rep('x', 1e6) .. i end return #t");
    let after = figure(&mut hostile, "used_memory_lua");
    assert!(after < before + 5_000_000, "{before} {after}");
}

#[test]
fn a_script_may_not_write_once_it_holds_too_much() {
    let config = EngineConfig { memory_bytes_max: Some(8_000_000), ..EngineConfig::default() };
    let mut hostile = Hostile { engine: Engine::new(config, [1, 2]) };
    let script =
        "local t = {} for i = 1, 100 do t[i] = string.rep('x', 1e5) .. i end return redis.call('set', 'k', 'v')";
    assert!(hostile.eval(script).starts_with("-OOM "));
    assert_eq!(hostile.eval("return redis.call('set', 'k', 'v')"), "+OK\r\n");
    assert_eq!(hostile.send(1, false, &[b"SET", b"k", b"w"]).1, "+OK\r\n");
}

/// What is more than half of the interpreter's room is collected at the next call, unless a look was nearer: only what is left counts.
#[test]
fn a_script_may_write_whatever_garbage_it_has_left() {
    for strings in 130..=138 {
        let config = EngineConfig { memory_bytes_max: Some(135_500_000), ..EngineConfig::default() };
        let mut hostile = Hostile { engine: Engine::new(config, [1, 2]) };
        let garbage = format!(
            "local t = {{}} for i = 1, {strings} do t[i] = string.rep('x', 1e6 + i) end t = nil return redis.call('set', 'k', 'v')"
        );
        assert_eq!(hostile.eval(&garbage), "+OK\r\n", "{strings} MB");
    }
}

/// A library that holds 90 MB, with a function of its name that tells of it.
fn large_library(name: &str) -> String {
    format!(
        "#!lua name={name}\nlocal held = ('{name}'):rep(90000000)\n\
         redis.register_function('{name}', function() return #held end)"
    )
}

#[test]
fn libraries_that_do_not_fit_beside_each_other_change_nothing() {
    let (mut from, mut to) = (Hostile::new(), Hostile::new());
    let load = |engine: &mut Hostile, name: &str| {
        let said = engine.send(1, false, &[b"FUNCTION", b"LOAD", large_library(name).as_bytes()]);
        assert_eq!(said.1, format!("$1\r\n{name}\r\n"));
    };
    load(&mut from, "b");
    load(&mut from, "c");
    let dumped = from.send_bytes(&[b"FUNCTION", b"DUMP"]);
    let begin = dumped.iter().position(|byte| *byte == b'\n').expect("a length") + 1;
    let payload = &dumped[begin..dumped.len() - 2];
    drop(from);
    load(&mut to, "a");
    let refused = to.send(1, false, &[b"FUNCTION", b"RESTORE", payload]).1;
    assert!(refused.starts_with('-') && refused.contains("not enough memory"), "{refused}");
    assert_eq!(to.send(1, false, &[b"FCALL", b"a", b"0"]).1, ":90000000\r\n", "what was there is still there");
    for gone in [b"b", b"c"] {
        assert_eq!(to.send(1, false, &[b"FCALL", gone, b"0"]).1, "-ERR Function not found\r\n");
    }
    assert_eq!(
        to.send(1, false, &[b"FUNCTION", b"RESTORE", payload, b"FLUSH"]).1,
        "+OK\r\n",
        "there is room for these"
    );
    assert_eq!(to.send(1, false, &[b"FCALL", b"c", b"0"]).1, ":90000000\r\n");
}

#[test]
fn restoring_libraries_does_not_collect_garbage_for_each() {
    let (mut from, mut to) = (Hostile::new(), Hostile::new());
    for number in 0..100 {
        let text = format!("#!lua name=l{number}\nredis.register_function('f{number}', function() return 1 end)");
        assert!(from.send(1, false, &[b"FUNCTION", b"LOAD", text.as_bytes()]).1.starts_with('$'));
    }
    let dumped = from.send_bytes(&[b"FUNCTION", b"DUMP"]);
    let begin = dumped.iter().position(|byte| *byte == b'\n').expect("a length") + 1;
    // More than half of the room, in so many pieces that one collection takes long.
    let large = "#!lua name=large\nlocal held = {}\nfor i = 1, 1500000 do held[i] = {i} end\n\
                 redis.register_function('large', function() return #held end)";
    let begun = Instant::now();
    assert_eq!(to.send(1, false, &[b"FUNCTION", b"LOAD", large.as_bytes()]).1, "$5\r\nlarge\r\n");
    let loaded = begun.elapsed();
    let begun = Instant::now();
    assert_eq!(to.send(1, false, &[b"FUNCTION", b"RESTORE", &dumped[begin..dumped.len() - 2]]).1, "+OK\r\n");
    let restored = begun.elapsed();
    // The large one is run once more, beside what was held before.
    assert!(restored < loaded * 6, "{restored:?} for a hundred libraries of a line, {loaded:?} for the large one");
    assert_eq!(to.send(1, false, &[b"FCALL", b"large", b"0"]).1, ":1500000\r\n");
    assert_eq!(to.send(1, false, &[b"FCALL", b"f99", b"0"]).1, ":1\r\n");
}
