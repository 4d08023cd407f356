//! Scripts that mean harm: none may end the process, hold others up for good, take memory without bound, or leave anything behind
//! for the scripts of others.
//!
//! Long because each kind of harm is a list of scripts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use respool_command::{Execute, Millis, Outcome, SessionView, WaitId, resolve};
use respool_engine::{Engine, EngineConfig, ScriptLogLevel};
use respool_testkit::reply_length;
use respool_wire::{ArgsBuf, Encoder, Protocol};

use super::subject::Subject;

/// An engine whose clock goes on by a second each time it is asked.
struct Hostile {
    engine: Engine,
}

impl Hostile {
    fn new() -> Self {
        let asked = Arc::new(AtomicU64::new(0));
        let clock = move || asked.fetch_add(1_000, Ordering::Relaxed);
        Self { engine: Engine::new(EngineConfig::default(), [1, 2]).with_script_clock(clock) }
    }

    /// The reply to a request, byte for byte.
    fn send_bytes(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("it has a row");
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, Protocol::Resp2);
        let outcome = self.engine.execute(row, args.as_args(), &mut SessionView::default(), &mut reply);
        assert_eq!(outcome, Outcome::Done);
        out
    }

    fn send(&mut self, client_id: u64, has_waited: bool, words: &[&[u8]]) -> (Outcome, String) {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("it has a row");
        let mut session = SessionView { client_id, has_waited, ..SessionView::default() };
        let mut out = Vec::new();
        let outcome =
            self.engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut out, Protocol::Resp2));
        (outcome, String::from_utf8_lossy(&out).into_owned())
    }

    /// The reply to a script, which may become late on its way.
    fn eval(&mut self, script: &str) -> String {
        let mut asked = self.send(1, false, &[b"EVAL", script.as_bytes(), b"0"]);
        while asked.0 == Outcome::Unfinished {
            asked = self.send(1, true, &[b"EVAL", script.as_bytes(), b"0"]);
        }
        asked.1
    }

    /// Begins a script that is expected to become late.
    fn begin(&mut self, script: &str) {
        let asked = self.send(1, false, &[b"EVAL", script.as_bytes(), b"0"]);
        assert_eq!(asked.0, Outcome::Unfinished, "{script}: {}", asked.1);
    }

    /// Goes on with it until it has ended.
    fn end(&mut self) -> String {
        for _ in 0..50 {
            let asked = self.send(1, true, &[b"EVAL", b"", b"0"]);
            if asked.0 == Outcome::Done {
                return asked.1;
            }
        }
        panic!("a script that is killed ends");
    }
}

#[test]
fn scripts_without_end_are_killed_wherever_they_are() {
    for script in [
        "while true do end",
        // Where calls are nested too deep for a look.
        "local function spin() while true do end end \
         local function nest() pcall(nest) while true do pcall(spin) end end nest()",
        "local function nest() pcall(nest) while true do pcall(string.rep, 'x', 6e6) end end nest()",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function(e) while true do end end) end",
        "table.sort({3,2,1}, function() while true do end end)",
        "string.gsub('a', 'a', function() while true do end end)",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "while true do coroutine.wrap(function() for i=1,50000 do end end)() end",
        "while true do coroutine.resume(coroutine.create(function() pcall(error) end)) end",
        "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
        "while true do redis.call('get', 'x') end",
        "while true do redis.pcall('nosuch') end",
        "load(function() while true do end end)",
        "string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40) .. 'b')",
        "while true do loadstring('return 1')() end",
        "while true do pcall(string.rep, 'x', 1e9) end",
        // One call takes as long as it likes, or many that take long each are few instructions.
        "table.insert({}, -2^31, 1)",
        "table.insert({}, 1e15, 1)",
        "string.find(string.rep('(', 1e6), '%b()')",
        "string.find(string.rep('a', 1e6), '[' .. string.rep('b', 1e6) .. ']')",
        "string.find(string.rep('a', 1e7), string.rep('a', 5e6) .. 'b', 1, true)",
        "string.find(string.rep('a', 1e6), '(' .. string.rep('a', 9e5) .. ')%1')",
        "local s = string.rep('a', 1e5) while true do s:find('b') end",
        "local s = string.rep('a', 1e5) while true do s:gsub('b', '') end",
        "while true do string.rep('x', 1e7) end",
        "local t = {} for i = 1, 16 do t = {t, t, t, t, t, t, t, t} end while true do pcall(cmsgpack.pack, t) end",
        "local t = {} for i = 1, 100 do t = {t, t, t} end while true do pcall(cjson.encode, t) end",
        "local s = '[' .. string.rep('1,', 1e5) .. '1]' while true do cjson.decode(s) end",
        "local s = string.rep('\\1', 7000) while true do cmsgpack.unpack(s) end",
        "local s = '\"' .. string.rep('a', 1e7) .. '\"' while true do cjson.decode(s) end",
        "local t = {} for i = 1, 1e5 do t[i * 20] = 1 end while true do pcall(cjson.encode, t) end",
        "local s, r = string.rep('a', 10), string.rep('x', 1.2e7) while true do s:gsub('a', r) end",
        "local p = string.rep('a', 1e7) .. '%a' while true do string.find('', p) end",
        "local f, s = string.rep('x', 1e6), string.rep('a', 1e6) while true do struct.unpack(f, s) end",
        "local s = string.rep('a', 1e7) while true do redis.sha1hex(s) end",
        "local s = 'return 1' .. string.rep(' ', 1e6) while true do loadstring(s) end",
        "local t, s = {}, string.rep('a', 1e5) for i = 1, 1e4 do t[i] = {} end while true do collectgarbage() end",
        // What one match is replaced by may be made of many copies of it.
        "return #string.gsub(string.rep('a', 1e5), '.*', string.rep('%0', 1200))",
        "return #string.gsub(string.rep('a', 1e5), '(.*)', string.rep('%1', 1200))",
        // The script itself is through, and its reply is still to be written.
        "local t = {} for i = 1, 16 do t = {t, t, t, t, t, t, t, t} end return t",
        "local t = {} for i = 1, 16 do t = {[t] = t} end for i = 1, 24 do t = {map = {a = t, b = t}} end return t",
        "local s, t = string.rep('x', 1e6), {} for i = 1, 900 do t[i] = s end return t",
    ] {
        let mut hostile = Hostile::new();
        hostile.begin(script);
        let (_, busy) = hostile.send(2, false, &[b"GET", b"x"]);
        assert!(busy.starts_with("-BUSY "), "{script}: {busy}");
        // The one that waits is no exception for what else it asks.
        assert!(hostile.send(1, false, &[b"GET", b"x"]).1.starts_with("-BUSY "));
        assert_eq!(hostile.send(2, false, &[b"SCRIPT", b"KILL"]).1, "+OK\r\n");
        let ended = hostile.end();
        assert!(ended.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{script}: {ended}");
        assert_eq!(hostile.send(2, false, &[b"GET", b"x"]).1, "$-1\r\n");
        assert!(hostile.send(2, false, &[b"SCRIPT", b"KILL"]).1.starts_with("-NOTBUSY "));
        assert_eq!(hostile.eval("return 1"), ":1\r\n");
    }
}

#[test]
fn a_script_that_has_written_is_not_killed() {
    let mut hostile = Hostile::new();
    hostile.begin("redis.call('set', 'k', 'v') for i = 1, 3000000 do end return redis.call('get', 'k')");
    assert!(hostile.send(2, false, &[b"SCRIPT", b"KILL"]).1.starts_with("-UNKILLABLE "));
    assert!(hostile.send(2, false, &[b"EVAL", b"return 1", b"0"]).1.starts_with("-BUSY "));
    assert_eq!(hostile.end(), "$1\r\nv\r\n");
}

#[test]
fn functions_without_end_are_killed_as_functions() {
    let mut hostile = Hostile::new();
    let library = b"#!lua name=l\nredis.register_function('f', function() while true do end end)";
    assert_eq!(hostile.send(1, false, &[b"FUNCTION", b"LOAD", library]).1, "$1\r\nl\r\n");
    assert_eq!(hostile.send(1, false, &[b"FCALL", b"f", b"0"]).0, Outcome::Unfinished);
    for refused in
        [&[&b"GET"[..], b"x"][..], &[b"SCRIPT", b"KILL"], &[b"FUNCTION", b"DELETE", b"l"], &[b"FCALL", b"f", b"0"]]
    {
        let said = hostile.send(2, false, refused).1;
        assert!(said.starts_with("-BUSY ") && said.contains("FUNCTION KILL"), "{said}");
    }
    let stats = hostile.send(2, false, &[b"FUNCTION", b"STATS"]).1;
    assert!(stats.contains("$7\r\ncommand\r\n*3\r\n$5\r\nFCALL\r\n$1\r\nf\r\n$1\r\n0\r\n"), "{stats}");
    assert_eq!(hostile.send(2, false, &[b"FUNCTION", b"KILL"]).1, "+OK\r\n");
    let ended = hostile.end();
    assert_eq!(ended, "-ERR Script killed by user with SCRIPT KILL... script: f, on @user_function:2.\r\n");
    assert_eq!(hostile.eval("return 1"), ":1\r\n");
    // One that is never loaded is given up, and leaves the others alone.
    let endless = hostile.send(1, false, &[b"FUNCTION", b"LOAD", b"#!lua name=e\nwhile true do end"]).1;
    assert_eq!(endless, "-ERR Error registering functions: ERR FUNCTION LOAD timeout\r\n");
    assert!(hostile.send(1, false, &[b"FUNCTION", b"LIST"]).1.starts_with("*1\r\n"));
}

#[test]
fn watches_end_while_a_script_runs() {
    let mut hostile = Hostile::new();
    let keys: ArgsBuf = ["k"].into_iter().collect();
    _ = hostile.send(1, false, &[b"SET", b"k", b"v", b"PX", b"10"]);
    assert!(hostile.engine.watch(2, 0, Millis(0), keys.as_args()) > 0);
    hostile.begin("redis.call('GET', 'k') while true do end");
    assert!(!hostile.engine.is_dirty(2, Millis(20)), "nothing expires amid a script");
    hostile.engine.unwatch(2);
    assert!(!hostile.engine.is_dirty(2, Millis(0)));
}

#[test]
fn an_engine_is_given_up_amid_a_script() {
    let mut hostile = Hostile::new();
    hostile.begin("while true do pcall(function() while true do end end) end");
}

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
    let mut quickest = |functions: usize| {
        let text = format!(
            "#!lua name=l\nlocal f = function() end for i = 1, {functions} do redis.register_function('f' .. i, f) end"
        );
        let time = |_| {
            let begun = Instant::now();
            let said = hostile.send(1, false, &[b"FUNCTION", b"LOAD", b"REPLACE", text.as_bytes()]).1;
            assert_eq!(said, "$1\r\nl\r\n");
            begun.elapsed()
        };
        (0..3).map(time).min().expect("it was measured")
    };
    let (few, many) = (quickest(1_000), quickest(10_000));
    assert!(many < few * 30, "{many:?} for 10,000 functions, {few:?} for 1,000");
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

/// Commands that take long are few before the clock is asked.
#[test]
fn a_script_of_slow_commands_is_late_in_time() {
    let mut hostile = Hostile::new();
    hostile.eval("for i = 1, 1000 do redis.call('RPUSH', 'l', string.rep('x', 100)) end");
    hostile.eval("for i = 1, 1000 do redis.call('SADD', 's', i) end");
    for (times, command) in [
        (10, "'LRANGE', 'l', 0, -1"),
        (10, "'ECHO', string.rep('x', 1e5)"),
        (10, "'SET', 'k', string.rep('x', 1e5)"),
        (100, "'SUNIONSTORE', 'd', 's', 's'"),
    ] {
        hostile.begin(&format!("for i = 1, {times} do redis.call({command}) end return 1"));
        assert_eq!(hostile.end(), ":1\r\n", "{command}");
    }
    assert_eq!(hostile.eval("for i = 1, 100 do redis.call('GET', 'k') end return 1"), ":1\r\n");
}

#[test]
fn depth_is_bounded() {
    let mut hostile = Hostile::new();
    for script in [
        "local function f() return f() + 1 end return f()",
        "local function f() return pcall(f) end return f()",
        "local function f() return (string.gsub('a', 'a', f)) end return f()",
        "local t = {} t = setmetatable(t, {__index = function(t, k) return t[k] end}) return t.x",
        "local function f() return coroutine.wrap(f)() end return f()",
        "return loadstring('return ' .. string.rep('(', 100000) .. '1' .. string.rep(')', 100000))()",
        "return loadstring(string.rep('do ', 100000))()",
        "return string.find(string.rep('a', 100000), string.rep('a?', 100000))",
        "return string.find(string.rep('a', 100000), string.rep('a-', 100000) .. 'b')",
        "return cjson.decode(string.rep('[', 100000))",
        "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[', 5000) .. string.rep(']', 5000))",
        "cjson.decode_max_depth(2147483647)
         return cjson.decode(string.rep('{\"a\":', 5000) .. '1' .. string.rep('}', 5000))",
        "cjson.decode_max_depth(1000)
         return #cjson.encode(cjson.decode(string.rep('[{\"a\":', 500) .. '1' .. string.rep('}]', 500)))",
        "cjson.encode_max_depth(2147483647) local t = {} for i = 1, 5000 do t = {t} end return cjson.encode(t)",
        "return cmsgpack.unpack(string.rep('\\145', 100000))",
        "local t = {} t[1] = t return cjson.encode(t)",
        "return table.concat({unpack({}, 1, 8000)})",
    ] {
        // Some are caught on their way, and say so; what counts is that there is an answer.
        let reply = hostile.eval(script);
        assert!(!reply.is_empty(), "{script}");
        assert_eq!(hostile.eval("return 'still here'"), "$10\r\nstill here\r\n", "{script}");
    }
    let nested = hostile.eval("local t = {} t[1] = t return t");
    assert!(nested.ends_with("-ERR reached lua stack limit\r\n") && nested.matches("*1\r\n").count() == 1_000);
}

/// What published attacks on Redis's scripts have tried, each written anew.
#[test]
fn published_escapes_lead_nowhere() {
    let mut hostile = Hostile::new();
    let is_refused = |reply: &str| reply.starts_with('-');
    // CVE-2022-0543 (Debian's package library), and what else reaches the system.
    for name in ["package", "require", "io", "debug", "dofile", "loadfile", "print", "module", "newproxy"] {
        assert!(is_refused(&hostile.eval(&format!("return {name}"))), "{name}");
        assert_eq!(hostile.eval(&format!("return rawget(_G, '{name}')")), "$-1\r\n", "{name}");
    }
    // CVE-2022-24735: code that is left behind for other users.
    for script in [
        "redis.call = function() return 'mine' end",
        "function redis.call() return 'mine' end",
        "rawset(redis, 'call', nil)",
        "rawset(_G, 'redis', {})",
        "setmetatable(_G, {__index = function() return 'mine' end})",
        "getmetatable(_G).__index = function() return 'mine' end",
        "getmetatable(redis).__index = {}",
        "for k in pairs(getmetatable(_G)) do rawset(getmetatable(_G), k, nil) end",
        "string.format = nil",
        "table.insert(redis, 'x')",
        "table.sort(redis)",
        "table.remove(_G, 1)",
        "setfenv(1, {})",
        "getfenv().redis = nil",
        "tostring = nil",
        "_G = {}",
        "_G._G.redis = 1",
        "cjson.null = 1",
        "coroutine.wrap(function() redis.call = nil end)()",
        "loadstring('redis = nil')()",
        "load(function() return nil end)() redis = nil",
        // CVE-2025-46818: the metatables of strings and other basic types.
        "getmetatable('').__index = function() return 'mine' end",
        "getmetatable('').__add = function() return 'mine' end",
        "setmetatable(getmetatable(''), {})",
        "rawset(getmetatable(''), '__index', nil)",
        "getmetatable(nil).__index = {}",
        "getmetatable(1).__index = {}",
        "getmetatable(print or next).__index = {}",
        "getmetatable(cjson.null).__index = {}",
    ] {
        assert!(is_refused(&hostile.eval(script)), "{script}");
        assert_eq!(hostile.eval("return redis.call('echo', ('x'):rep(2))"), "$2\r\nxx\r\n", "{script}");
    }
    // What is read through a stand-in is a copy.
    hostile.eval("local f, t = pairs(redis) t.call = function() return 'mine' end");
    hostile.eval("for k, v in pairs(_G) do pcall(rawset, v, 'call', 1) pcall(setmetatable, v, {}) end");
    assert_eq!(hostile.eval("return redis.call('echo', 'x')"), "$1\r\nx\r\n");
    // CVE-2022-24736 and bytecode in general: nothing is loaded but text.
    for script in [
        "return loadstring(string.dump(function() return 1 end))",
        "return loadstring('\\27Lua')",
        "return loadstring('\\27LuaQ\\0\\1\\4\\8\\4\\8\\0')",
        "local sent return load(function() if sent then return nil end sent = 1 return '\\27LuaQ' end)",
    ] {
        assert_eq!(hostile.eval(script), "$-1\r\n", "{script}");
    }
    assert!(is_refused(&hostile.eval("\x1bLuaQ")));
    // CVE-2022-24834: long texts in cjson and cmsgpack.
    hostile.eval("return #cjson.encode(string.rep('\\1', 5e6))");
    hostile.eval("return #cmsgpack.pack(string.rep('x', 5e6))");
    for text in [
        "\\219\\255\\255\\255\\255",
        "\\221\\255\\255\\255\\255",
        "\\223\\255\\255\\255\\255",
        "\\198\\255\\255\\255\\255x",
    ] {
        assert!(is_refused(&hostile.eval(&format!("return cmsgpack.unpack('{text}')"))));
    }
    // CVE-2020-14147 and its kin: sizes in struct.
    for format in ["i99999999999", "c2147483647c2147483647", "!2147483648i4", "Bc0Bc0", "i33", "!0i"] {
        for call in [format!("struct.pack('{format}', 1, 1)"), format!("struct.unpack('{format}', '\\255x')")] {
            assert!(is_refused(&hostile.eval(&format!("return {call}"))), "{call}");
        }
    }
    hostile.eval("return struct.unpack('B', 'abc', -2147483648)");
    hostile.eval("return struct.unpack('I4', 'abcdefgh', 2147483647)");
    // CVE-2024-31449: the smallest number of digits.
    assert_eq!(hostile.eval("return bit.tohex(65535, -2147483648)"), "$8\r\n0000FFFF\r\n");
    // CVE-2024-46981: what is collected while the world ends.
    hostile.eval("local t = setmetatable({}, {__gc = function() redis.call = nil end, __mode = 'k'}) t[t] = t");
    assert_eq!(hostile.send(2, false, &[b"SCRIPT", b"FLUSH"]).1, "+OK\r\n");
    hostile.eval("collectgarbage('stop') collectgarbage('setpause', 0) collectgarbage() return 1");
    // CVE-2025-46817: ranges that overflow.
    for range in ["0, 2147483647", "-2147483648, 2147483647", "-1, 2147483646", "1, 1e8", "-2147483648, -1"] {
        assert!(is_refused(&hostile.eval(&format!("return unpack({{1, 2, 3}}, {range})"))), "{range}");
    }
    hostile.eval("return select(-2147483648, 1, 2)");
    hostile.eval("return ('x'):byte(-2147483648, 2147483647)");
    hostile.eval("return table.concat({}, '', -2147483648, -2147483640)");
    hostile.eval("local t = {} t[2147483647] = 1 t[-2147483648] = 1 return #t");
    // CVE-2025-46819: long brackets.
    for text in ["[====", "--[====", "[==[x]=]", "local x = [=", "a = [[\\n]=]"] {
        assert_eq!(hostile.eval(&format!("return loadstring('{text}')")), "$-1\r\n", "{text}");
    }
    hostile.eval("return loadstring('return [' .. string.rep('=', 1e6) .. '[x]' .. string.rep('=', 1e6) .. ']')()");
    // CVE-2025-49844: what is compiled is collected meanwhile.
    let piecewise = "local n = 0 return load(function() n = n + 1 collectgarbage() if n < 200 then \
                     return 'local a' .. n .. ' = \"' .. string.rep('x', 1000) .. n .. '\" ' end end, string.rep('n', 100)) ~= nil";
    assert_eq!(hostile.eval(piecewise), ":1\r\n");
    hostile.eval("for i = 1, 200 do loadstring('return \"' .. string.rep('x', 1000) .. i .. '\"', 'name' .. i)() end");
    assert_eq!(hostile.eval("return redis.call('echo', 'x')"), "$1\r\nx\r\n");
}

#[test]
fn many_values_and_scripts_are_no_trouble() {
    let mut hostile = Hostile::new();
    let map = "local t = {} for i = 1, 20000 do t['k' .. i] = 'v' .. i end ";
    assert!(hostile.eval(&format!("{map} return {{map = t}}")).starts_with("*40000\r\n"));
    assert_eq!(hostile.eval(&format!("{map} return #cjson.encode(t) > 20000")), ":1\r\n");
    assert_eq!(hostile.eval(&format!("{map} return #cmsgpack.pack(t) > 20000")), ":1\r\n");
    assert_eq!(
        hostile.eval("local t = {} for i = 1, 7000 do t[i] = 'k' .. i end return redis.call('del', unpack(t))"),
        ":0\r\n"
    );
    for number in 0..9_000 {
        assert_eq!(hostile.eval(&format!("return {number}")), format!(":{number}\r\n"));
    }
}

#[test]
fn a_cached_script_is_shown() {
    let mut hostile = Hostile::new();
    let hash = b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    assert!(hostile.send(1, false, &[b"SCRIPT", b"SHOW", hash]).1.starts_with("-NOSCRIPT "));
    hostile.eval("return 1");
    assert_eq!(hostile.send(1, false, &[b"SCRIPT", b"SHOW", hash]).1, "$8\r\nreturn 1\r\n");
}

#[test]
fn subcommands_that_need_no_script_are_answered() {
    let mut hostile = Hostile::new();
    for container in [&b"SCRIPT"[..], b"FUNCTION"] {
        let help = hostile.send(1, false, &[container, b"HELP"]).1;
        assert!(help.starts_with('*') && help.ends_with("+HELP\r\n+    Print this help.\r\n"), "{help}");
    }
    assert_eq!(hostile.send(1, false, &[b"SCRIPT", b"DEBUG", b"no"]).1, "+OK\r\n");
    assert_eq!(hostile.send(1, false, &[b"SCRIPT", b"DEBUG", b"x"]).1, "-ERR Use SCRIPT DEBUG YES/SYNC/NO\r\n");
    assert!(hostile.send(1, false, &[b"SCRIPT", b"DEBUG", b"YES"]).1.starts_with("-ERR the embedded server has no "));
}

#[test]
fn what_a_script_sets_ends_with_it() {
    let mut hostile = Hostile::new();
    assert_eq!(hostile.eval("local x = 1 KEYS[1] = 'left' ARGV.x = 1 redis.setresp(3) return 1"), ":1\r\n");
    assert_eq!(hostile.eval("return #KEYS + #ARGV"), ":0\r\n");
    assert_eq!(hostile.eval("redis.call('hset', 'h', 'a', 'b') return redis.call('hgetall', 'h')[1]"), "$1\r\na\r\n");
    hostile.eval("redis.call('select', 5) redis.call('set', 'there', 1)");
    assert_eq!(hostile.eval("return redis.call('exists', 'there')"), ":0\r\n");
}

#[test]
fn nothing_is_served_before_a_late_script_has_ended() {
    let mut hostile = Hostile::new();
    let asked = hostile.send(2, false, &[b"BLPOP", b"l", b"0"]);
    assert_eq!(asked, (Outcome::Parked(WaitId(1)), String::new()));
    hostile.begin("redis.call('RPUSH', 'l', 'a') local n = 0 while n < 300000 do n = n + 1 end return n");
    let mut reply = Vec::new();
    assert_eq!(hostile.engine.poll_ready(Millis(0), &mut reply), None);
    assert_eq!(hostile.end(), ":300000\r\n");
    assert_eq!(hostile.engine.poll_ready(Millis(0), &mut reply), Some(WaitId(1)));
    assert_eq!(reply, b"*2\r\n$1\r\nl\r\n$1\r\na\r\n");
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

#[test]
fn the_log_is_told_what_scripts_write() {
    let lines: Arc<Mutex<Vec<(ScriptLogLevel, String)>>> = Arc::default();
    let told = Arc::clone(&lines);
    let log = move |level, line: &[u8]| {
        told.lock().expect("one thread").push((level, String::from_utf8_lossy(line).into_owned()));
    };
    let mut hostile = Hostile { engine: Engine::new(EngineConfig::default(), [1, 2]).with_script_log(log) };
    hostile.eval("redis.log(redis.LOG_WARNING, 'a', 1, nil, true, {}, 2.5) redis.log('0', 'b')");
    let library =
        b"#!lua name=l\nredis.log(redis.LOG_NOTICE, 'loaded') redis.register_function('f', function() return 1 end)";
    assert_eq!(hostile.send(1, false, &[b"FUNCTION", b"LOAD", library]).1, "$1\r\nl\r\n");
    hostile.eval("redis.log(redis.LOG_VERBOSE, string.rep('x', 5000), 'y')");
    let expected = [
        (ScriptLogLevel::Warning, "a 1 2.5".to_owned()),
        (ScriptLogLevel::Debug, "b".to_owned()),
        (ScriptLogLevel::Notice, "loaded".to_owned()),
        (ScriptLogLevel::Verbose, "x".repeat(1024)),
    ];
    assert_eq!(*lines.lock().expect("one thread"), expected);
}

#[test]
fn others_are_told_of_a_script_as_soon_as_is_set() {
    let late_after = |busy_after_ms: u64| {
        let asked = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&asked);
        let config = EngineConfig { script_busy_after_ms: busy_after_ms, ..EngineConfig::default() };
        let engine = Engine::new(config, [1, 2]).with_script_clock(move || clock.fetch_add(10, Ordering::Relaxed));
        Hostile { engine }.begin("while true do end");
        asked.load(Ordering::Relaxed)
    };
    // The clock is asked once at the start, and goes on by ten milliseconds with each look.
    assert_eq!(late_after(50), 60);
    assert_eq!(late_after(200), 210);
}

#[test]
fn of_the_system_scripts_see_the_clock_alone() {
    let asked = Arc::new(AtomicU64::new(7_000));
    let clock = Arc::clone(&asked);
    let engine = Engine::new(EngineConfig::default(), [1, 2]).with_script_clock(move || clock.load(Ordering::Relaxed));
    let mut hostile = Hostile { engine };
    let names =
        "local names = {} for name, value in pairs(os) do names[#names + 1] = name .. type(value) end return names";
    assert_eq!(hostile.eval(names), "*1\r\n$13\r\nclockfunction\r\n");
    assert_eq!(hostile.eval("return tostring(os.clock())"), "$1\r\n7\r\n");
    asked.store(7_250, Ordering::Relaxed);
    assert_eq!(hostile.eval("return tostring(os.clock())"), "$4\r\n7.25\r\n");
    for name in ["execute", "exit", "getenv", "remove", "rename", "setlocale", "tmpname", "date", "time"] {
        let told = hostile.eval(&format!("return os.{name}()"));
        assert!(told.contains(&format!("attempt to call field '{name}' (a nil value)")), "{told}");
    }
    assert!(hostile.eval("os.clock = nil").contains("Attempt to modify a readonly table"));
    assert!(hostile.eval("os.execute = 1").contains("Attempt to modify a readonly table"));
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

/// Every way of a script to a status or an error, with an end of a line in its text, and what a client reads behind the reply to it: if more
/// than one reply were there, all later ones would be those of other requests.
#[test]
fn no_text_of_a_script_is_more_than_one_reply() {
    let texts = [
        "x\r\n+OK",
        "x\n+OK\r\n",
        "\r\n$5\r\nhello",
        "\r\n",
        "\n",
        "x\r",
        "\0\r\n:1",
        "x\r\n_\r\n#t",
        "\r\n>2\r\n+a\r\n+b",
    ];
    let ways = [
        "return redis.error_reply(ARGV[1])",
        "return redis.error_reply('-' .. ARGV[1])",
        "return redis.status_reply(ARGV[1])",
        "return {err = ARGV[1]}",
        "return {ok = ARGV[1]}",
        "return {err = 'ERR ' .. ARGV[1], source = ARGV[1], line = ARGV[1], ignore_error_stats_update = true}",
        "error(ARGV[1])",
        "error(ARGV[1], 0)",
        "error({err = ARGV[1]})",
        "error({err = ARGV[1], source = ARGV[1], line = ARGV[1]})",
        "error(setmetatable({}, {__tostring = function() return ARGV[1] end}))",
        "local _, why = pcall(error, ARGV[1]) return redis.error_reply(why)",
        "local _, why = pcall(error, {err = ARGV[1]}) return why",
        "local _, why = pcall(error, {err = ARGV[1]}) error(why)",
        "return redis.pcall(ARGV[1])",
        "return redis.call(ARGV[1])",
        "return redis.pcall('set', 'k', 'v', ARGV[1])",
        "return redis.pcall('object', ARGV[1])",
        "return redis.pcall('xgroup', 'create', 'nosuch', ARGV[1], '0')",
        "return redis.pcall('config', 'set', ARGV[1], ARGV[1])",
        "return redis.pcall('eval', ARGV[1], '0')",
        "return {1, {err = ARGV[1]}, {ok = ARGV[1]}, 'last'}",
        "return {map = {[ARGV[1]] = {ok = ARGV[1]}}}",
        "redis.setresp(3) return {map = {[ARGV[1]] = {err = ARGV[1]}}}",
        "redis.setresp(3) return {set = {[ARGV[1]] = true}}",
        "redis.setresp(3) return {big_number = ARGV[1]}",
        "redis.setresp(3) return {verbatim_string = {format = ARGV[1], string = ARGV[1]}}",
        "redis.setresp(3) return {double = ARGV[1]}",
        "return loadstring(ARGV[1])()",
        "return _G[ARGV[1]]",
        "return assert(false, ARGV[1])",
        "return nosuch(ARGV[1])",
    ];
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut subject = Subject::new(protocol);
        for (number, way) in ways.iter().enumerate() {
            let library =
                format!("#!lua name=l{number}\nredis.register_function('f{number}', function(KEYS, ARGV) {way} end)");
            let loaded = subject.command(&[b"FUNCTION".to_vec(), b"LOAD".to_vec(), library.into_bytes()]);
            assert!(loaded.starts_with(b"$"), "{way}: {}", loaded.escape_ascii());
            for text in texts {
                let of_eval = [b"EVAL", way.as_bytes(), b"0", text.as_bytes()].map(<[u8]>::to_vec);
                let name = format!("f{number}");
                let of_function = [b"FCALL", name.as_bytes(), b"0", text.as_bytes()].map(<[u8]>::to_vec);
                for request in [of_eval, of_function] {
                    let reply = subject.command(&request);
                    let length = reply_length(&reply).ok().flatten();
                    assert_eq!(length, Some(reply.len()), "{protocol:?} {way} {text:?}: {}", reply.escape_ascii());
                }
            }
        }
    }
}
