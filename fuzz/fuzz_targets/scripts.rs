//! Scripts, libraries and dumps of libraries, told to an engine. Whatever they are, each is answered by one reply, scripts without end
//! can be stopped, and the script that comes afterwards finds the world as it was.
//!
//! The first byte says what the rest is: a script's text, a library's, a dump with or without a checksum that fits, or choices among
//! words of Lua's.
#![no_main]

mod dump;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use respool_command::{Execute, Millis, Outcome, SessionView, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_testkit::reply_length;
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// What choices are made among: a script of some of these is more often one that compiles than random bytes are.
const WORDS: &str = r#"
return |local a = |local b = |a|b|(|)|{|}|[|]|,|;|.|:|..|+|-|*|/|%|^|#|==|~=|<|<=| and | or | not | nil | true |
 false |0|1|-1|2|3.5|1e9|1e308|2^31|2^53|0/0|''|'a'|'k'|'%s'|'%d'|'(a*)'|'[%w]-'|'\0'|'\255\254'|'>I4'|'i8'|'s'|'c0'|
[[x]]|function() |function(x) | end |if a then | else |for i = 1, 9 do |for k, v in pairs(a) do |while true do |
while a do |repeat | until b| break |...|select(|unpack(|pcall(|xpcall(|error(|assert(|tostring(|tonumber(|type(|
next(|pairs(|ipairs(|rawget(|rawset(|rawequal(|setmetatable(|getmetatable(|load(|loadstring(|collectgarbage(|
coroutine.wrap(|coroutine.create(|coroutine.resume(|coroutine.yield(|coroutine.running(|string.rep(|string.format(|
string.find(|string.gsub(|string.gmatch(|string.match(|string.byte(|string.char(|string.sub(|string.dump(|
string.reverse(|string.upper(|table.concat(|table.insert(|table.remove(|table.sort(|table.getn(|math.floor(|
math.random(|math.randomseed(|math.fmod(|math.max(|cjson.encode(|cjson.decode(|cjson.encode_max_depth(|
cjson.encode_sparse_array(|cjson.encode_number_precision(|cjson.new(|cmsgpack.pack(|cmsgpack.unpack(|
cmsgpack.unpack_one(|cmsgpack.unpack_limit(|struct.pack(|struct.unpack(|struct.size(|bit.band(|bit.tohex(|bit.lshift(|
bit.arshift(|bit.bswap(|redis.call(|redis.pcall(|redis.error_reply(|redis.status_reply(|redis.sha1hex(|redis.setresp(|
redis.log(|redis.acl_check_cmd(|redis.set_repl(|redis.register_function(|'set'|'get'|'rpush'|'lrange'|'hset'|
'hgetall'|'xadd'|'eval'|'select'|'sort'|'zadd'|'multi'|'info'|'blpop'|'function'|KEYS|ARGV|KEYS[1]|ARGV[1]|_G|redis|
cjson|cjson.null|__index|__newindex = |__metatable = |__mode = 'k'|__eq = |__lt = |__concat = |__call = |
__tostring = |ok = |err = |double = |map = |set = |big_number = |verbatim_string = |format = |string = |a = |b = |
a[1] = |a[a] = |@|#!lua@|#!lua name=l@|#!lua flags=no-writes@|--[[|]]|'f', |callback = |function_name = 'f'|
flags = {'no-writes'}
"#;

/// The words, `@` in them the end of a line.
static CHOICES: LazyLock<Vec<String>> =
    LazyLock::new(|| WORDS.replace('\n', "").split('|').map(|word| word.replace('@', "\n")).collect());

/// What the script afterwards says, in a world that is as it was.
const WORLD: &[u8] = b"local n = {} for k in pairs(_G) do n[#n + 1] = k end table.sort(n) redis.call('set', 'k', 1) \
    return {#KEYS, redis.sha1hex(table.concat(n)), type(redis.call), ('x'):rep(3), redis.call('incr', 'k'), \
    getmetatable('') ~= nil, pcall(rawset, redis, 'x', 1)}";

struct Subject {
    engine: Engine,
    protocol: Protocol,
}

impl Subject {
    fn new(protocol: Protocol) -> Self {
        let asked = Arc::new(AtomicU64::new(0));
        // A script is late after a few looks.
        let clock = move || asked.fetch_add(1_000, Ordering::Relaxed);
        let config = EngineConfig { memory_bytes_max: Some(1 << 30), ..EngineConfig::default() };
        Self { engine: Engine::new(config, [1, 2]).with_script_clock(clock), protocol }
    }

    fn ask(&mut self, client_id: u64, has_waited: bool, words: &[&[u8]]) -> (Outcome, Vec<u8>) {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("it has a row");
        assert!(row.accepts(args.as_args().len()));
        let now = Millis(1_700_000_000_000);
        let mut session = SessionView { client_id, has_waited, now, ..SessionView::default() };
        let mut out = Vec::new();
        let outcome =
            self.engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut out, self.protocol));
        let is_whole = reply_length(&out).is_ok_and(|length| length == Some(out.len()));
        assert!(
            is_whole || matches!(outcome, Outcome::Unfinished | Outcome::Asks),
            "no single reply: {}",
            out.escape_ascii()
        );
        (outcome, out)
    }

    /// Asks, and has a script stopped that becomes late. `None`: it has written, and cannot be.
    fn say(&mut self, words: &[&[u8]]) -> Option<Vec<u8>> {
        let (mut outcome, mut out) = self.ask(1, false, words);
        let mut turns = 0;
        while matches!(outcome, Outcome::Unfinished | Outcome::Asks) {
            let busy = self.ask(2, false, &[b"GET", b"k"]).1;
            assert!(busy.starts_with(b"-BUSY "));
            let kill: &[u8] = if words[0].starts_with(b"F") { b"FUNCTION" } else { b"SCRIPT" };
            if self.ask(2, false, &[kill, b"KILL"]).1.starts_with(b"-UNKILLABLE") {
                return None;
            }
            turns += 1;
            assert!(turns < 100, "a script that is killed ends");
            (outcome, out) = self.ask(1, true, words);
        }
        Some(out)
    }
}

/// The bytes of a bulk reply.
fn bulk(reply: &[u8]) -> &[u8] {
    let head = reply.iter().position(|&byte| byte == b'\n').expect("a head");
    &reply[head + 1..reply.len() - 2]
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, rest)) = input.split_first() else { return };
    let protocol = if mode & 0x80 == 0 { Protocol::Resp2 } else { Protocol::Resp3 };
    let mut subject = Subject::new(protocol);
    let world = subject.say(&[b"EVAL", WORLD, b"0"]).expect("it ends");
    let chosen = |bytes: &[u8]| -> String {
        bytes.iter().map(|byte| CHOICES[usize::from(*byte) % CHOICES.len()].as_str()).collect()
    };
    let asked = match mode & 0x7f {
        0 => subject.say(&[b"EVAL", rest, b"1", b"k", b"v"]),
        1 => subject.say(&[b"EVAL_RO", rest, b"1", b"k", b"v"]),
        2 => subject.say(&[b"FUNCTION", b"LOAD", rest]),
        3 => subject.say(&[b"FUNCTION", b"RESTORE", rest]),
        4 => subject.say(&[b"FUNCTION", b"RESTORE", &dump::sealed(rest, 10), b"REPLACE"]),
        5 => subject.say(&[b"FUNCTION", b"LOAD", format!("#!lua name=l\n{}", chosen(rest)).as_bytes()]),
        _ => subject.say(&[b"EVAL", chosen(rest).as_bytes(), b"1", b"k", b"v"]),
    };
    let Some(_) = asked else { return };
    let Some(_) = subject.say(&[b"FCALL", b"f", b"1", b"k", b"v"]) else { return };
    // What has been loaded is dumped, and means the same when it is read.
    let listed = subject.say(&[b"FUNCTION", b"LIST", b"WITHCODE"]).expect("it is no script");
    let dumped = subject.say(&[b"FUNCTION", b"DUMP"]).expect("it is no script");
    let restored = subject.say(&[b"FUNCTION", b"RESTORE", bulk(&dumped), b"FLUSH"]).expect("it is no script");
    if restored == b"+OK\r\n" {
        assert_eq!(subject.say(&[b"FUNCTION", b"LIST", b"WITHCODE"]).expect("it is no script"), listed);
    }
    assert_eq!(subject.say(&[b"FLUSHALL"]).expect("it is no script"), b"+OK\r\n");
    let after = subject.say(&[b"EVAL", WORLD, b"0"]).expect("it ends");
    assert_eq!(after.escape_ascii().to_string(), world.escape_ascii().to_string());
});
