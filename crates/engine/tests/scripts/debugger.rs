//! Sessions with the debugger of scripts, which have to go as with redis-server 7.0's, word for word.

use respool_command::{Execute, Millis, Outcome, SessionView, resolve};
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
    session("return redis.error_reply('ERR x')", &["0"], "s"),
    session(
        SHADOWS,
        &["0"],
        "s|s|p|s|p|s|p|p a|s|p|t|s|p|s|p|p a|t|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|p|s|t|s|p|s|p|s|s|s|s|s|s|s|s|s|s|s|s|s\
         |s|s|s|s|s|s|s|s|s|c",
    ),
];

/// The engine's side of a session.
struct Debuggee {
    engine: Engine,
    session: SessionView,
}

impl Debuggee {
    fn new() -> Self {
        let session = SessionView { now: Millis(1_600_000_000_000), client_id: 7, ..SessionView::default() };
        Self { engine: Engine::new(EngineConfig::default(), [1, 2]), session }
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

    fn send(&mut self, args: &ArgsBuf) -> (Outcome, Vec<u8>) {
        let eval: ArgsBuf = ["EVAL"].into_iter().collect();
        let row = resolve(eval.as_args()).expect("it has a row");
        let mut reply = Vec::new();
        loop {
            let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
            let outcome = self.engine.execute(row, args.as_args(), &mut self.session, &mut encoder);
            if !matches!(outcome, Outcome::Unfinished | Outcome::Asks) {
                return (outcome, reply);
            }
            self.session.has_waited = true;
            self.session.now.0 += 1_000;
        }
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
    let (outcome, _) = debuggee.say(&[]);
    // It asks for it itself, and nobody hears.
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(debuggee.say(&[]).0, Outcome::Done);
    debuggee.session.debugs = false;
    let request: ArgsBuf = ["EVAL", "return redis.call('get', 'k')", "0"].iter().collect();
    debuggee.session.has_waited = false;
    assert_eq!(debuggee.send(&request).1, b"$1\r\n2\r\n");
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
