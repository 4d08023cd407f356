//! Sessions with the debugger of scripts, which have to go as with redis-server 7.0's, word for word.

mod effort;

use respool_command::{Execute, Millis, Outcome, Renames, Row, SessionView, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_testkit::{RedisServer, reply_length};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// A session: the script with its arguments, and what its client says then until it ends, commands between bars.
struct Session {
    script: &'static str,
    args: &'static [&'static str],
    says: &'static str,
}

const fn session(script: &'static str, args: &'static [&'static str], says: &'static str) -> Session {
    Session { script, args, says }
}

const WALK: &str = "local a = 1\nlocal b = {1,2,x='y',{3}}\nlocal f = function(n)\n  local m = n + 1\n  return m\nend\na = f(a)\n\
    redis.call('set',KEYS[1],ARGV[1])\nlocal r = redis.call('get',KEYS[1])\nfor i=1,3 do\n  a = a + i\nend\n\
    return {a, r, KEYS[1]}\n";
const LOOPS: &str = "local t = {}\nfor k, v in pairs({a=1}) do\n  t[#t+1] = k\nend\nlocal n = 0\nwhile n < 2 do\n  n = n + 1\nend\n\
    repeat\n  local q = n\n  n = n - 1\nuntil q < 2\nif n == 0 then\n  n = 5\nelse\n  n = 6\nend\nreturn t";
const CALLS: &str = "local function f(...)\n  local a, b = ...\n  return a\nend\nlocal x = f(1, 2)\nlocal y = f(\n  3,\n  4\n)\n\
    return x + y";
const DEEP: &str =
    "local function f(n)\n  if n == 0 then\n    return 0\n  end\n  return f(n - 1) + 1\nend\nreturn f(2)";
const COROUTINES: &str = "local co = coroutine.wrap(function(a)\n  local b = a\n  coroutine.yield(b)\n  return 2\nend)\nlocal x = co(1)\n\
    local y = co()\nreturn {x,y}";
const REPLIES: &str = "redis.setresp(3)\nredis.call('hset','h','a','1')\nlocal h = redis.call('hgetall','h')\n\
    local s = redis.call('zadd','z','1.5','m')\nlocal z = redis.call('zscore','z','m')\nlocal n = redis.call('get','none')\n\
    redis.call('sadd','s','x')\nlocal m=redis.call('smembers','s')\nlocal q=redis.call('zrange','z',0,-1,'withscores')\nreturn 1";
const ERRORS: &str = "local r = redis.pcall('lpush','a')\nlocal q = redis.pcall('nosuch')\nlocal z=redis.pcall()\n\
    local e = redis.error_reply('My err')\nreturn {r,q,e}";
const TYPES: &str = "local a,b,c,d,e = 1.5,1e20,true,nil,'\\0\\n\\255\"'\nlocal t = {{},{1},{a={}},[3]=1}\nlocal u = {} u.u = u\n\
    local i = 100000000\nlocal v=2^53\nreturn 1";
const TAILS: &str = "local function g(n)\n  local z = n\n  redis.breakpoint()\n  z = z + 1\n  return z\nend\nlocal function f()\n  \
    local w = 5\n  return g(w)\nend\nlocal v = f()\nreturn f()";
const SHADOWS: &str = "local a = 1\nlocal g = function(p, q)\n  local a = p\n  do local a = q; a = a + 1 end\n  local function h()\n    \
    return a + q\n  end\n  return h()\nend\nlocal z = a and g(1, 2) or 3\nlocal s = ''\nfor w in string.gmatch('a b', '%a') do \
    s = s .. w end\nlocal m = {g(1, 2), g(3,\n  4)}\ntable.sort(m, function(x, y)\n  return x < y\nend)\nif not s then return end\n\
    return {z, s, unpack(m)}";

const SESSIONS: &[Session] = &[
    session(
        WALK,
        &["1", "k", "v"],
        "s|step|n|next|list|l 3|list 3 1|whole|p|print|p a|print nosuch|p KEYS|p ARGV|t|step|step|t|s|p m|b|b 9|break 100|b 0|b -9|\
         b 9 10 11|b 0|foo|e 1+1|eval return a|eval return 1,2|e error('x')|e x=1|e {1,2,{3,'x'}}|r set foo bar|redis get foo|\
         r nosuchcmd|r|m|m 10|maxlen 0|maxlen 5|maxlen -1|e string.rep('x',300)|p b|c",
    ),
    session("return +", &["0"], ""),
    session("return 1", &["x"], ""),
    session("return 1", &["3", "a"], ""),
    session("", &["0"], "s"),
    session("return 1\n\n\r\n", &["0"], "w|s"),
    session("local a = nil\nreturn a.x\n", &["0"], "s"),
    session("redis.call('set','a','b')\nredis.call('lpush','a',1)\nreturn 1", &["0"], "s|s"),
    session("redis.call('set','a','b')\nredis.call('lpush','a',1)\nreturn 1", &["0"], "c"),
    session(ERRORS, &["0"], "s|s|s|p|s|p|s"),
    session("local a = 1\nlocal b = 2\nreturn a", &["0"], "s|a"),
    session("local a = pcall(function()\n local x = 1\n return x end)\nlocal b = 2\nreturn a", &["0"], "s|abort"),
    session(
        "redis.debug('a',1,1.5,nil,true,{1,{a='b'}})\nredis.debug()\nlocal b = redis.breakpoint()\nlocal c = 2\nreturn b",
        &["0"],
        "c|p|c",
    ),
    session(
        "local a = 0\nfor i = 1, 3 do\n  a = a + i\nend\nreturn a",
        &["0"],
        "b 3|c|p|c|p|b|b -3|b abc|b 3 5|b|c|c|c",
    ),
    session(LOOPS, &["0"], "p|s|p|s|p|s|p|s|p|s|p|s|s|s|s|s|s|p|s|s|s|s|s|s|s|s"),
    session("for i=1,3 do local x = i end return 7", &["0"], "s|p|s|p|s|p|s"),
    session(CALLS, &["0"], "s|s|s|p|t|s|p|s|s|p|s|s|s|s|s"),
    session(DEEP, &["0"], "s|s|s|s|s|t|p|p n|s|t|s|s"),
    session(COROUTINES, &["0"], "s|s|p|t|p x|p b|s|s|s|s|p|s|s|s|s"),
    session(REPLIES, &["0"], "s|s|s|s|s|s|s|s|s|c"),
    session(
        "local n = redis.call('get','none')\nlocal m = redis.call('mget','a','none')\nlocal l = redis.call('lrange','none',0,-1)\n\
         return 1",
        &["0"],
        "s|s|s|c",
    ),
    session("redis.call('mset',1,2,3,4,5,6,7,8,9,10,11,12)\nreturn 1", &["0"], "s|c"),
    session(
        "local s = string.rep('a', 400)\nredis.call('set','k',s)\nlocal r = redis.call('get','k')\nlocal t = {string.rep('b', 400)}\n\
         return 1",
        &["0"],
        "s|s|s|p s|p r|s|p t|m 0|p t|c",
    ),
    session(TYPES, &["0"], "s|s|s|s|s|p|e nil|e false|e KEYS|c"),
    session("local a = 5\nreturn a", &["0"], "LIST|Print|HELPX|list abc|list 1 -1|l 0 0|p a b|s x y|c"),
    session(
        "local a = 5\nreturn a",
        &["0"],
        "e|e redis.call('ping')|e redis.debug(3)|e local x|e a b c|r ping|R PING|E 1|c",
    ),
    session(TAILS, &["0"], "c|p w|p z|p|t|s|s|p w|s|s"),
    session("local a = 5\nreturn a", &["0"], "r xread block 0 streams a 0|r xread block x streams a 0|c"),
    session("return redis.error_reply('ERR x')", &["0"], "s"),
    session("#!lua flags=no-writes\nlocal x = 1\nreturn redis.call('set','a',x)", &["0"], "l|s|s"),
    session("#!lua\n\nlocal x = redis.call('set','a',1)\nreturn x", &["0"], "w|s|s"),
    session("local a = cjson.decode('[1,null]')\nlocal b = cjson.null\nreturn 1", &["0"], "s|s|p|c"),
    session("local function f(n)\n  return n\nend\nlocal a = f(1)\nreturn a", &["0"], "s|e f(7)|s|s|p n|c"),
    session(
        SHADOWS,
        &["0"],
        "s|s|p|s|p|s|p|p a|s|p|t|s|p|s|p|p a|t|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|t|s|p|s|p|s|s|s|s|s|s|s|s|s|s|s|s|s\
         |s|s|s|s|s|s|s|s|s|c",
    ),
];

/// After which time a script is late, in slices.
const LATE_AFTER_MS: u64 = 20;

/// No script here takes nearly as many slices.
const SLICES_MAX: usize = 100_000;

/// The engine's side of a session.
struct Debuggee {
    engine: Engine,
    session: SessionView,
}

impl Debuggee {
    fn new() -> Self {
        Self::with(EngineConfig { script_busy_after_ms: LATE_AFTER_MS, ..EngineConfig::default() })
    }

    fn with(config: EngineConfig) -> Self {
        let session = SessionView { now: Millis(1_600_000_000_000), client_id: 7, ..SessionView::default() };
        Self { engine: Engine::new(config, [1, 2]), session }
    }

    /// Its client has left.
    fn leave(&mut self) -> (Outcome, Vec<u8>) {
        (self.session.debugs, self.session.has_waited) = (false, true);
        self.send(&ArgsBuf::default())
    }

    /// What a client without a debugger asks.
    fn ask(&mut self, words: &[&str]) -> String {
        let before = self.session;
        self.session = SessionView { debugs: false, has_waited: false, client_id: 8, ..before };
        let row = resolve(words.iter().collect::<ArgsBuf>().as_args()).expect("it has a row");
        let (_, reply) = self.send_as(row, &words.iter().collect());
        self.session = before;
        shown(&reply)
    }

    fn eval(&mut self, script: &str, args: &[&str]) -> (Outcome, Vec<u8>) {
        let request: ArgsBuf = ["EVAL", script].iter().chain(args).collect();
        self.session = SessionView { debugs: true, has_waited: false, ..self.session };
        self.send(&request)
    }

    fn must_stop(&mut self, script: &str, args: &[&str]) {
        assert_eq!(self.eval(script, args).0, Outcome::Stopped);
    }

    fn say(&mut self, words: &[&str]) -> (Outcome, Vec<u8>) {
        self.session.has_waited = true;
        self.send(&words.iter().collect())
    }

    /// Says something, and counts how often others may be served before the script stops again or ends.
    fn slices(&mut self, words: &[&str]) -> (usize, Outcome, Vec<u8>) {
        self.session.has_waited = true;
        let mut words: ArgsBuf = words.iter().collect();
        for slices in 0..SLICES_MAX {
            let (outcome, reply) = self.send_once(&words);
            if outcome != Outcome::Unfinished {
                return (slices, outcome, reply);
            }
            words = ArgsBuf::default();
        }
        panic!("a script has no end");
    }

    /// Says something that takes long. Another client has the script killed meanwhile, which ends it then.
    fn must_be_killed_amid(&mut self, words: &[&str]) {
        self.session.has_waited = true;
        assert_eq!(self.send_once(&words.iter().collect()).0, Outcome::Unfinished);
        assert_eq!(self.ask(&["SCRIPT", "KILL"]), "+OK\\r\\n");
        let (outcome, reply) = self.send_once(&ArgsBuf::default());
        let told = shown(&reply);
        assert!(outcome == Outcome::Done && told.contains("-ERR Script killed by user with SCRIPT KILL"), "{told}");
    }

    /// One slice.
    fn send_once(&mut self, args: &ArgsBuf) -> (Outcome, Vec<u8>) {
        let eval: ArgsBuf = ["EVAL"].into_iter().collect();
        let row = resolve(eval.as_args()).expect("it has a row");
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
        (self.engine.execute(row, args.as_args(), &mut self.session, &mut encoder), reply)
    }

    fn send(&mut self, args: &ArgsBuf) -> (Outcome, Vec<u8>) {
        let eval: ArgsBuf = ["EVAL"].into_iter().collect();
        let row = resolve(eval.as_args()).expect("it has a row");
        self.send_as(row, args)
    }

    fn send_as(&mut self, row: &'static Row, args: &ArgsBuf) -> (Outcome, Vec<u8>) {
        let mut reply = Vec::new();
        for _ in 0..SLICES_MAX {
            let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
            let outcome = self.engine.execute(row, args.as_args(), &mut self.session, &mut encoder);
            if !matches!(outcome, Outcome::Unfinished | Outcome::Asks) {
                return (outcome, reply);
            }
            self.session.has_waited = true;
        }
        panic!("a script has no end");
    }
}

/// Without the addresses of functions, which differ.
fn without_addresses(text: &str) -> String {
    let mut shown = String::new();
    for (place, part) in text.split("@0x").enumerate() {
        let rest = part.trim_start_matches(|digit: char| place > 0 && digit.is_ascii_hexdigit());
        shown += if place > 0 { "@" } else { "" };
        shown += rest;
    }
    shown
}

fn of_engine(session: &Session) -> String {
    let mut debuggee = Debuggee::new();
    let (mut outcome, reply) = debuggee.eval(session.script, session.args);
    let mut told = vec![shown(&reply)];
    for line in session.says.split('|').filter(|line| !line.is_empty()) {
        if outcome != Outcome::Stopped {
            break;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let (next, reply) = debuggee.say(&words);
        told.push(format!("{line} -> {}", shown(&reply)));
        outcome = next;
    }
    told.push(format!("{outcome:?}"));
    without_addresses(&told.join("\n"))
}

fn shown(reply: &[u8]) -> String {
    reply.escape_ascii().to_string()
}

fn of_redis(server: &RedisServer, session: &Session) -> String {
    let mut client = server.client().expect("the server answers");
    client.ask("FLUSHALL").expect("the server answers");
    assert_eq!(client.ask("SCRIPT DEBUG YES").expect("the server answers"), "+OK\r\n");
    let request: Vec<&str> = ["EVAL", session.script].iter().chain(session.args).copied().collect();
    let mut reply = client.command(&request).expect("the server answers");
    let ends = |reply: &[u8]| reply.ends_with(b"+<endsession>\r\n");
    let mut told = Vec::new();
    let mut lines = session.says.split('|').filter(|line| !line.is_empty());
    let mut head = String::new();
    loop {
        if ends(&reply) {
            reply.extend(client.reply().expect("what the script has come to"));
            told.push(format!("{head}{}\nDone", shown(&reply)));
            break;
        }
        told.push(format!("{head}{}", shown(&reply)));
        let Some(line) = lines.next() else {
            told.push("Stopped".into());
            break;
        };
        head = format!("{line} -> ");
        let words: Vec<&str> = line.split(' ').collect();
        reply = client.command(&words).expect("the server answers");
    }
    without_addresses(&told.join("\n"))
}

#[test]
fn sessions_of_the_debugger_go_as_with_redis() {
    if std::env::var("RESPOOL_TEST_REDIS").is_ok_and(|value| value == "off") {
        return eprintln!("left out: RESPOOL_TEST_REDIS=off");
    }
    let server = RedisServer::start().expect("a redis-server; RESPOOL_TEST_REDIS=off leaves this out");
    for session in SESSIONS {
        let expected = of_redis(&server, session);
        let seen = of_engine(session);
        let differs = expected.lines().zip(seen.lines()).find(|(expected, seen)| expected != seen);
        assert!(expected == seen, "{}\nfirst: {differs:#?}\nexpected\n{expected}\nseen\n{seen}", session.script);
    }
}

#[test]
fn a_session_whose_client_leaves_runs_to_its_end() {
    let mut debuggee = Debuggee::new();
    let script = "redis.call('set', 'k', 1)\nredis.breakpoint()\nredis.call('incr', 'k')\nreturn 1";
    assert_eq!(debuggee.eval(script, &["0"]).0, Outcome::Stopped);
    // That it asks for the debugger has no effect.
    assert_eq!(debuggee.leave().0, Outcome::Done);
    debuggee.session.debugs = false;
    let request: ArgsBuf = ["EVAL", "return redis.call('get', 'k')", "0"].iter().collect();
    debuggee.session.has_waited = false;
    assert_eq!(debuggee.send(&request).1, b"$1\r\n2\r\n");
}

/// A session may stand for hours, which costs next to nothing.
#[test]
fn an_engine_rests_while_a_debugger_waits() {
    let mut debuggee = Debuggee::new();
    let now = debuggee.session.now;
    debuggee.must_stop("local a = 1\nreturn a", &["0"]);
    assert!(debuggee.engine.tick(now).is_some_and(|next| next.0 >= now.0 + 1000));
    assert_eq!(debuggee.say(&["c"]).0, Outcome::Done);
}

#[test]
fn a_loop_without_end_is_stopped_and_can_be_left() {
    let mut debuggee = Debuggee::new();
    debuggee.must_stop("local n = 0\nwhile true do\n  n = n + 1\nend", &["0"]);
    let (outcome, reply) = debuggee.say(&["c"]);
    let said = String::from_utf8_lossy(&reply);
    assert!(outcome == Outcome::Stopped && said.contains("stop reason = timeout reached, infinite loop?"), "{said}");
    let (outcome, reply) = debuggee.say(&["abort"]);
    let said = String::from_utf8_lossy(&reply);
    assert!(outcome == Outcome::Done && said.contains("-ERR script aborted for user request script: "), "{said}");
}

#[test]
fn a_debugger_leaves_the_world_as_it_was() {
    let mut debuggee = Debuggee::new();
    let script = "local n = {}\nfor k in pairs(_G) do n[#n + 1] = k end\ntable.sort(n)\nreturn table.concat(n, ' ')";
    let request: ArgsBuf = ["EVAL", script, "0"].iter().collect();
    let before = debuggee.send(&request).1;
    assert_eq!(debuggee.eval(script, &["0"]).0, Outcome::Stopped);
    let (outcome, reply) = debuggee.say(&["c"]);
    assert!(outcome == Outcome::Done && reply.ends_with(&before), "{}", shown(&reply));
    debuggee.session = SessionView { debugs: false, has_waited: false, ..debuggee.session };
    assert_eq!(debuggee.send(&request).1, before);
    assert_eq!(reply_length(&before).expect("it is RESP"), Some(before.len()));
}

/// Values that hold themselves, lines of many bytes and variables without number: what is said stays within bounds.
#[test]
fn what_a_debugger_says_is_bounded() {
    let mut debuggee = Debuggee::new();
    let many: String = (0..199).map(|number| format!("local v{number} = {number}\n")).collect();
    let script = format!("{many}local f = function() return v0 + v50 + v100 end\nreturn f()");
    let script: &str = &script;
    debuggee.must_stop(&script.replace("local v198 = 198\n", ""), &["0"]);
    for _ in 0..199 {
        assert_eq!(debuggee.say(&["s"]).0, Outcome::Stopped);
    }
    let (_, reply) = debuggee.say(&["p", "v100"]);
    assert!(shown(&reply).contains("<value> 100"), "{}", shown(&reply));
    let mut debuggee = Debuggee::new();
    let wide = "local t = {}\nfor i = 1, 9 do\n local u = {}\n for j = 1, 9 do u[j] = t end\n t = u\nend\n\
        for i = 1, 1e3 do redis.debug(t) end\nreturn 1";
    debuggee.must_stop(wide, &["0"]);
    assert_eq!(debuggee.say(&["m", "0"]).0, Outcome::Stopped);
    let (outcome, reply) = debuggee.say(&["c"]);
    assert!(reply.len() < 2 << 20, "{outcome:?} {}", reply.len());
}

/// A script that does not end, in whichever code, ends some time after its client has left.
#[test]
fn a_script_whose_debugger_has_left_ends_when_it_is_late() {
    const LOOP: &str = "while true do\n  local x = 1\nend";
    for (script, says) in [
        (LOOP, &["s"][..]),
        (LOOP, &["c"]),
        ("while true do\n redis.breakpoint()\nend", &["s", "c"]),
        ("while true do\n pcall(error)\nend", &["s"]),
        ("while true do\n redis.call('incr', 'n')\nend", &["s", "s"]),
        ("local f = loadstring('while true do\\n local x = 1\\nend', '@user_script')\nf()", &["s"]),
        ("local f = loadstring('while true do end')\nf()", &["s"]),
        ("local f = coroutine.wrap(function()\n while true do end\nend)\nf()", &["s"]),
    ] {
        let mut debuggee = Debuggee::new();
        debuggee.must_stop(script, &["0"]);
        for word in says {
            assert_eq!(debuggee.say(&[word]).0, Outcome::Stopped, "{script} {word}");
        }
        let (outcome, reply) = debuggee.leave();
        let ended = shown(&reply).contains("-ERR timeout during Lua debugging with client closing connection");
        assert!(outcome == Outcome::Done && ended, "{script}: {}", shown(&reply));
        assert_eq!(debuggee.ask(&["EVAL", "return 7", "0"]), ":7\\r\\n");
    }
}

/// The client waits for code that does not end; leaving ends that too.
#[test]
fn code_of_a_client_that_leaves_ends_too() {
    for (line, is_running) in [("e while true do end", true), ("e pcall(error)", false)] {
        let mut debuggee = Debuggee::new();
        debuggee.must_stop("local a = 1\nreturn a", &["0"]);
        debuggee.session.has_waited = true;
        let words: ArgsBuf = line.split(' ').collect();
        let eval: ArgsBuf = ["EVAL"].into_iter().collect();
        let row = resolve(eval.as_args()).expect("it has a row");
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
        let outcome = debuggee.engine.execute(row, words.as_args(), &mut debuggee.session, &mut encoder);
        assert_eq!(outcome == Outcome::Unfinished, is_running);
        assert_eq!(debuggee.leave().0, Outcome::Done);
        assert_eq!(debuggee.ask(&["EVAL", "return 7", "0"]), ":7\\r\\n");
    }
}

#[test]
fn a_script_that_is_stopped_can_be_killed() {
    let mut debuggee = Debuggee::new();
    debuggee.must_stop("local a = 1\nreturn pcall(error)", &["0"]);
    assert_eq!(
        debuggee.ask(&["GET", "k"]),
        shown(b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n")
    );
    debuggee.session.has_waited = true;
    assert_eq!(debuggee.send(&ArgsBuf::default()), (Outcome::Stopped, Vec::new()), "nothing was said");
    assert_eq!(debuggee.ask(&["SCRIPT", "KILL"]), "+OK\\r\\n");
    let (outcome, reply) = debuggee.send(&ArgsBuf::default());
    assert!(
        outcome == Outcome::Done && shown(&reply).contains("-ERR Script killed by user with SCRIPT KILL..."),
        "{}",
        shown(&reply)
    );
    assert_eq!(debuggee.ask(&["EVAL", "return 7", "0"]), ":7\\r\\n");
}

/// What is not the script's own is not stopped in, and costs nothing however long it runs.
#[test]
fn code_that_takes_the_name_of_the_script_is_not_the_script() {
    let mut debuggee = Debuggee::new();
    let script =
        "local f = loadstring('local i = 0\\nwhile i < 1e6 do\\n i = i + 1\\nend\\nreturn i', NAME)\nreturn f()";
    for name in ["'@user_script'", "'=user_script'"] {
        debuggee.must_stop(&script.replace("NAME", name), &["0"]);
        assert_eq!(debuggee.say(&["s"]).0, Outcome::Stopped);
        let (outcome, reply) = debuggee.say(&["s"]);
        assert!(outcome == Outcome::Done && reply.ends_with(b":1000000\r\n"), "{name}: {}", shown(&reply));
    }
}

/// Scripts whose calls would be many or long: they are refused before they run, and soon.
#[test]
fn a_script_that_is_too_large_for_a_debugger_does_not_run() {
    let names: Vec<String> = (0..200).map(|number| format!("v{number}_{}", "x".repeat(2000))).collect();
    let names = names.join(",");
    let arguments = |count: usize| vec!["1"; count].join(",");
    let too_long = "-ERR the script is too long to be debugged\\r\\n";
    let many =
        "-ERR the script cannot be debugged: one of its functions has too many variables or arguments at once\\r\\n";
    for (script, refused) in [
        (format!("redis.call('set', 'k', 1)\nlocal {names}\n{}", "KEYS=1\n".repeat(50_000)), too_long),
        (format!("redis.call('set', 'k', 1)\n{}", "\n".repeat(1 << 20)), too_long),
        (format!("redis.call('set', 'k', 1)\nprint({})", arguments(248)), many),
        (format!("redis.call('set', 'k', 1)\nlocal function f()\n return print({})\nend", arguments(248)), many),
    ] {
        let mut debuggee = Debuggee::new();
        let (outcome, reply) = debuggee.eval(&script, &["0"]);
        assert_eq!((outcome, shown(&reply)), (Outcome::Done, format!("*1\\r\\n+<endsession>\\r\\n{refused}")));
        assert_eq!(debuggee.ask(&["EXISTS", "k"]), ":0\\r\\n");
    }
    // What fits has its variables.
    let mut debuggee = Debuggee::new();
    debuggee.must_stop(&format!("local {names}\n{}return 1", "KEYS[1]=1\n".repeat(500)), &["0"]);
    assert_eq!(debuggee.say(&["s"]).0, Outcome::Stopped);
    let name = names.split(',').nth(199).expect("there are so many");
    assert!(shown(&debuggee.say(&["p", name]).1).contains("+<value> nil"));
    // Many lines with and without variables; a jump over more than it may span.
    let few: String = (0..30).map(|number| format!("local v{number} = {number}\n")).collect();
    let lines = |count: usize| "KEYS[1]=1\n".repeat(count);
    for (script, refused) in [
        (format!("{few}{}return v29", lines(10_000)), None),
        (format!("{}return 29", lines(40_000)), None),
        (format!("while KEYS[1] do\n{}end\nreturn 29", lines(15_000)), None),
        (format!("while KEYS[1] do\n{}end\nreturn 29", lines(30_000)), Some(too_long)),
    ] {
        let mut debuggee = Debuggee::with(EngineConfig::default());
        let (outcome, reply) = debuggee.eval(&script, &["0"]);
        if let Some(refused) = refused {
            assert!(outcome == Outcome::Done && shown(&reply).ends_with(refused), "{}", shown(&reply));
            continue;
        }
        assert_eq!(outcome, Outcome::Stopped, "{}", shown(&reply));
        let mut said = (outcome, reply);
        while said.0 == Outcome::Stopped {
            said = debuggee.say(&["c"]);
        }
        assert!(said.1.ends_with(b":29\r\n"), "{}", shown(&said.1));
    }
    let blocks = format!("{}local b = 5\nreturn b", "do local a end\n".repeat(30_000));
    debuggee = Debuggee::new();
    debuggee.must_stop(&blocks, &["0"]);
    assert_eq!(debuggee.say(&["b", "30002"]).0, Outcome::Stopped);
    assert_eq!(debuggee.say(&["c"]).0, Outcome::Stopped);
    assert!(shown(&debuggee.say(&["p"]).1).contains("+<value> b = 5"));
}

/// The code of each function repeats the names of what functions within it use of those around it.
#[test]
fn a_script_whose_names_repeat_too_often_does_not_run() {
    let script = |bytes: usize| {
        let names: Vec<String> = (0..59).map(|number| format!("v{number}{}", "n".repeat(bytes))).collect();
        let (names, within) = (names.join(","), 55);
        let functions = "return function() ".repeat(within);
        format!(
            "local {names} = 7\nlocal f = function() {functions}return {names} {} end\nreturn f",
            "end ".repeat(within)
        )
    };
    let mut debuggee = Debuggee::with(EngineConfig::default());
    let (outcome, reply) = debuggee.eval(&script(8000), &["0"]);
    let told = shown(&reply);
    assert!(
        outcome == Outcome::Done && told.contains("-ERR the script is too long to be debugged"),
        "{} {}",
        reply.len(),
        &told[..told.len().min(200)]
    );
    debuggee.must_stop(&script(100), &["0"]);
}

/// As many functions are under way as Lua nests: their variables take no values of the binding, which has some thousands.
#[test]
fn deep_recursion_is_debugged_as_it_runs_without() {
    let mut debuggee = Debuggee::with(EngineConfig::default());
    let script = "local function f(n)\n if n == 0 then\n  redis.breakpoint()\n  return 0\n end\n return f(n - 1) + 1\nend\nlocal sum = f(9000)\nreturn sum";
    debuggee.must_stop(script, &["0"]);
    assert_eq!(debuggee.say(&["c"]).0, Outcome::Stopped);
    let told = shown(&debuggee.say(&["p", "n"]).1);
    assert!(told.contains("+<value> 0"), "{told}");
    assert!(shown(&debuggee.say(&["p", "f"]).1).contains("function@"));
    assert!(shown(&debuggee.say(&["p", "nosuch"]).1).contains("No such variable."));
    assert!(debuggee.say(&["t"]).1.len() < 2 << 20);
    let (outcome, reply) = debuggee.say(&["c"]);
    assert!(outcome == Outcome::Done && reply.ends_with(b":9000\r\n"), "{}", shown(&reply));
}

/// Without a debugger Lua nests some thousands of calls more than there is room for a look; calls without end have the error of the script.
#[test]
fn recursion_without_end_has_its_own_error() {
    let script = |depth: u32| {
        format!("local function f(n)\n if n == 0 then return 0 end\n return f(n - 1) + 1\nend\nreturn f({depth})")
    };
    for depth in [16_300, 16_380, 16_384, 16_400, 17_000, 19_900, 19_980] {
        let mut debuggee = Debuggee::with(EngineConfig::default());
        debuggee.must_stop(&script(depth), &["0"]);
        let (outcome, reply) = debuggee.say(&["c"]);
        let wanted = format!(":{depth}\r\n");
        assert!(outcome == Outcome::Done && reply.ends_with(wanted.as_bytes()), "{depth}: {}", shown(&reply));
    }
    let mut debuggee = Debuggee::with(EngineConfig::default());
    debuggee.must_stop(&script(25_000), &["0"]);
    let (outcome, reply) = debuggee.say(&["c"]);
    let said = shown(&reply);
    assert!(outcome == Outcome::Done && said.contains("-ERR user_script:"), "{said}");
    assert!(said.contains(": stack overflow script: ") && said.contains(", on @user_script:"), "{said}");
    assert!(!said.contains("traceback") && !said.contains("debugger of"), "{said}");
    // What catches it goes on.
    let caught = script(25_000).replace("return f(25000)", "return tostring(pcall(f, 25000))");
    let mut debuggee = Debuggee::with(EngineConfig::default());
    debuggee.must_stop(&caught, &["0"]);
    let (outcome, reply) = debuggee.say(&["c"]);
    assert!(outcome == Outcome::Done && reply.ends_with(b"$5\r\nfalse\r\n"), "{}", shown(&reply));
}

/// Calls through functions of C have a bound of their own: a script comes to the same with a debugger, wherever that stops it and whatever its
/// client says there.
#[test]
fn calls_through_c_are_nested_as_deep_as_without() {
    for depth in 190..=202 {
        let script = format!(
            "local function f(n)\n if n == 0 then\n  return 'end'\n end\n local ok, v = pcall(f, n - 1)\n return v\nend\n\
            local r = f({depth})\nreturn tostring(r)"
        );
        let mut debuggee = Debuggee::with(EngineConfig::default());
        let plain = debuggee.ask(&["EVAL", &script, "0"]);
        for (says, stops_min) in
            [(&["c"][..], 0), (&["s"], 500), (&["t", "p v", "p", "e 1", "e f(1)", "r get k", "s"], 500)]
        {
            let mut debuggee = Debuggee::with(EngineConfig::default());
            debuggee.must_stop(&script, &["0"]);
            let mut stops = 0;
            let told = 'session: loop {
                for line in says {
                    let words: Vec<&str> = line.split(' ').collect();
                    let (outcome, reply) = debuggee.say(&words);
                    if outcome == Outcome::Done {
                        break 'session shown(&reply);
                    }
                }
                stops += 1;
            };
            assert!(told.ends_with(&format!("+<endsession>\\r\\n{plain}")), "{depth} {says:?}: {told}, not {plain}");
            assert!(stops >= stops_min, "{depth} {says:?}: {stops}");
        }
    }
}

/// What a client has asked for fails, and its script goes on.
#[test]
fn what_a_command_fails_for_is_no_error_of_the_script() {
    let mut debuggee = Debuggee::with(EngineConfig::default());
    let script =
        "local s, t = string.rep('s', 1.2e8), string.rep('t', 1.2e8)\nredis.breakpoint()\nlocal n = #s + #t\nreturn n";
    debuggee.must_stop(script, &["0"]);
    assert_eq!(debuggee.say(&["c"]).0, Outcome::Stopped);
    let (outcome, reply) = debuggee.say(&["r", "echo", &"x".repeat(40 << 20)]);
    let told = shown(&reply);
    assert!(
        outcome == Outcome::Stopped && told.contains("+<error> not enough memory"),
        "{}",
        &told[..told.len().min(200)]
    );
    let (outcome, reply) = debuggee.say(&["c"]);
    assert!(outcome == Outcome::Done && reply.ends_with(b":240000000\r\n"), "{}", shown(&reply));
}

/// What a function held goes with it when another takes its place, as without a debugger; without end, too.
#[test]
fn variables_go_with_their_functions() {
    let script = "local function f(n)\n local s = string.rep('x', 100000) .. n\n if n == 0 then return #s end\n return f(n - 1)\nend\n\
        return f(5000)";
    let mut debuggee = Debuggee::with(EngineConfig::default());
    debuggee.must_stop(script, &["0"]);
    let mut said = debuggee.say(&["c"]);
    while said.0 == Outcome::Stopped {
        said = debuggee.say(&["c"]);
    }
    assert!(said.1.ends_with(b":100001\r\n"), "{}", shown(&said.1));
}

/// A coroutine may be where one was before that has ended.
#[test]
fn variables_of_coroutines_that_have_ended_are_not_shown() {
    let mut debuggee = Debuggee::with(EngineConfig::default());
    let script = "for i = 1, 20 do\n local a = coroutine.wrap(function()\n  local x = 'dead'\n  return #x\n end)\n a()\nend\n\
        collectgarbage()\nfor i = 1, 20 do\n local b = coroutine.wrap(pcall)\n b(function()\n  local y = 1\n  redis.breakpoint()\n  \
        return y\n end)\nend\nreturn 7";
    debuggee.must_stop(script, &["0"]);
    for _ in 0..20 {
        assert_eq!(debuggee.say(&["c"]).0, Outcome::Stopped);
        assert!(shown(&debuggee.say(&["p", "y"]).1).contains("<value> 1"));
        let told = shown(&debuggee.say(&["p", "x"]).1);
        assert!(told.contains("No such variable."), "{told}");
    }
    let (outcome, reply) = debuggee.say(&["c"]);
    assert!(outcome == Outcome::Done && reply.ends_with(b":7\r\n"), "{}", shown(&reply));
}

/// Many coroutines, each of which is left in a function.
#[test]
fn coroutines_without_number_are_debugged_in_bounded_memory() {
    let mut debuggee = Debuggee::with(EngineConfig::default());
    let script = "local all = {}\nfor i = 1, 500 do\n local co = coroutine.wrap(function(a)\n  local b = a\n  coroutine.yield(b)\n  \
        local c = b\n  return c\n end)\n all[i] = co\n co(i)\nend\nlocal n = 0\nfor i = 1, 500 do\n n = n + all[i]()\nend\nreturn n";
    debuggee.must_stop(script, &["0"]);
    assert_eq!(debuggee.say(&["b", "7"]).0, Outcome::Stopped);
    for number in [1, 2, 3] {
        assert_eq!(debuggee.say(&["c"]).0, Outcome::Stopped);
        let told = shown(&debuggee.say(&["p", "c"]).1);
        assert!(told.contains(&format!("+<value> {number}")), "{number}: {told}");
    }
    assert_eq!(debuggee.say(&["b", "0"]).0, Outcome::Stopped);
    let (outcome, reply) = debuggee.say(&["c"]);
    assert!(outcome == Outcome::Done && reply.ends_with(b":125250\r\n"), "{}", shown(&reply));
}

/// Tables that all scripts share are shown, though scripts cannot reach them.
#[test]
fn shared_tables_are_shown() {
    let mut debuggee = Debuggee::new();
    debuggee.must_stop("local a = 1\nreturn a", &["0"]);
    assert_eq!(debuggee.say(&["m", "0"]).0, Outcome::Stopped);
    for (line, part) in
        [("e redis", "[\"call\"]=\"function@"), ("e _G", "[\"redis\"]={"), ("p redis", "No such variable")]
    {
        let words: Vec<&str> = line.split(' ').collect();
        let told = shown(&debuggee.say(&words).1).replace("\\\"", "\"");
        assert!(told.contains(part), "{line}: {told}");
    }
}

/// A copy of the keys is not a way around the bound on memory.
#[test]
fn a_copy_for_a_debugger_has_a_bound_of_its_own() {
    let fill =
        "local s = string.rep('x', 1000000)\nfor i = 1, 500 do redis.call('set', 'k' .. i, s .. i) end\nreturn 1";
    for maxmemory in ["0", "20971520", "1"] {
        let mut debuggee = Debuggee::with(EngineConfig::default());
        debuggee.ask(&["SET", "k", "v"]);
        assert_eq!(debuggee.ask(&["CONFIG", "SET", "maxmemory", maxmemory]), "+OK\\r\\n");
        debuggee.engine = debuggee.engine.copy_for_debugging(debuggee.session.now).expect("there is little to copy");
        debuggee.must_stop(fill, &["0"]);
        let (outcome, reply) = debuggee.say(&["c"]);
        let told = String::from_utf8_lossy(&reply);
        let is_full = told.contains("-OOM command not allowed when used memory > 'maxmemory'.");
        assert!(outcome == Outcome::Done && is_full, "{maxmemory}: {told}");
        assert!(debuggee.engine.used_bytes() < 70 << 20, "{}", debuggee.engine.used_bytes());
    }
}

/// No client is served while keys are copied: it is what is made anew that takes time, in many keys or in one.
#[test]
fn a_copy_for_a_debugger_has_a_bound_on_elements() {
    let mut debuggee = Debuggee::with(EngineConfig::default());
    let mut add = |command: &str, value: &str| {
        for first in (0..500_000).step_by(50_000) {
            let members: Vec<String> = (first..first + 50_000).map(|number| format!("m{number}")).collect();
            let mut words = vec![command, "k"];
            members.iter().for_each(|member| words.extend([&**member, value].iter().filter(|word| !word.is_empty())));
            debuggee.ask(&words);
        }
        let now = debuggee.session.now;
        let copied = debuggee.engine.copy_for_debugging(now).map(|copy| copy.keyspace_size(0).keys);
        debuggee.ask(&["DEL", "k"]);
        copied
    };
    let too_many = Err("there are more keys and elements than may be copied; SCRIPT DEBUG SYNC needs no copy");
    assert_eq!(add("SADD", ""), too_many);
    assert_eq!(add("HSET", "v"), too_many);
    assert_eq!(add("RPUSH", ""), Ok(1), "it is held in few parts");
}

/// Its client knows the time and how much memory is used, and must not choose keys by them that collide.
#[test]
fn the_order_of_keys_in_a_copy_cannot_be_told() {
    let orders = [[1, 2], [3, 4]].map(|seed| {
        let mut debuggee = Debuggee::with(EngineConfig::default());
        debuggee.engine = Engine::new(EngineConfig::default(), seed);
        let now = debuggee.session.now;
        debuggee.engine = debuggee.engine.copy_for_debugging(now).expect("there is nothing to copy");
        for number in 0..100 {
            debuggee.ask(&["SET", &number.to_string(), "v"]);
        }
        debuggee.ask(&["SCAN", "0", "COUNT", "1000"])
    });
    assert_ne!(orders[0], orders[1]);
}

/// Commands that the server calls otherwise are called otherwise in a copy too.
#[test]
fn a_copy_for_a_debugger_calls_commands_by_their_names() {
    let mut renames = Renames::default();
    for (from, to) in [("set", "put"), ("flushall", "")] {
        renames.rename(from.as_bytes(), to.as_bytes()).expect("it may be renamed");
    }
    let config = EngineConfig::default();
    let mut debuggee = Debuggee::with(config);
    debuggee.engine = Engine::new(config, [1, 2]).with_renames(std::sync::Arc::new(renames));
    let now = debuggee.session.now;
    debuggee.engine = debuggee.engine.copy_for_debugging(now).expect("there is little to copy");
    debuggee.must_stop("local a = 1\nreturn a", &["0"]);
    for (line, told) in [("r put k v", "+<reply> \"+OK\""), ("r set k v", "+<error>"), ("r flushall", "+<error>")] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = String::from_utf8_lossy(&debuggee.say(&words).1).into_owned();
        assert!(said.contains(told), "{line}: {said}");
    }
}
