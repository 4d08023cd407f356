//! Scripts that mean harm: none may end the process, hold others up for good, take memory without bound, or leave anything behind
//! for the scripts of others.
//!
//! Long because each kind of harm is a list of scripts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use respool_command::{Execute, Millis, Outcome, SessionView, WaitId, resolve};
use respool_engine::{Engine, EngineConfig, ScriptLogLevel};
use respool_testkit::reply_length;
use respool_wire::{ArgsBuf, Encoder, Protocol};

use super::subject::Subject;

/// An engine whose clock goes on by a second each time it is asked.
pub(super) struct Hostile {
    pub(super) engine: Engine,
}

impl Hostile {
    pub(super) fn new() -> Self {
        let asked = Arc::new(AtomicU64::new(0));
        let clock = move || asked.fetch_add(1_000, Ordering::Relaxed);
        Self { engine: Engine::new(EngineConfig::default(), [1, 2]).with_script_clock(clock) }
    }

    /// The reply to a request, byte for byte.
    pub(super) fn send_bytes(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("it has a row");
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, Protocol::Resp2);
        let outcome = self.engine.execute(row, args.as_args(), &mut SessionView::default(), &mut reply);
        assert_eq!(outcome, Outcome::Done);
        out
    }

    pub(super) fn send(&mut self, client_id: u64, has_waited: bool, words: &[&[u8]]) -> (Outcome, String) {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("it has a row");
        let mut session = SessionView { client_id, has_waited, ..SessionView::default() };
        let mut out = Vec::new();
        let outcome =
            self.engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut out, Protocol::Resp2));
        (outcome, String::from_utf8_lossy(&out).into_owned())
    }

    /// The reply to a script, which may become late on its way.
    pub(super) fn eval(&mut self, script: &str) -> String {
        let mut asked = self.send(1, false, &[b"EVAL", script.as_bytes(), b"0"]);
        while asked.0 == Outcome::Unfinished {
            asked = self.send(1, true, &[b"EVAL", script.as_bytes(), b"0"]);
        }
        asked.1
    }

    /// Begins a script that is expected to become late.
    pub(super) fn begin(&mut self, script: &str) {
        let asked = self.send(1, false, &[b"EVAL", script.as_bytes(), b"0"]);
        assert_eq!(asked.0, Outcome::Unfinished, "{script}: {}", asked.1);
    }

    /// Goes on with it until it has ended.
    pub(super) fn end(&mut self) -> String {
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
    assert_eq!(hostile.send(1, false, &[b"SCRIPT", b"DEBUG", b"YES"]).1, "+OK\r\n", "its caller knows who debugs");
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
