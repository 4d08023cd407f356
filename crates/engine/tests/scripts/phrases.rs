//! Random but repeatable scripts.
//!
//! A script is a template whose marks are drawn: `@C` a call of a command of any group, `@A` its arguments, `@V` a value of any type, `@Z` one that is no table (an error with a table
//! that has no text ends redis-server), `@T` a
//! table that stands for a reply, `@S` a string, `@N` a number, `@P` an expression over those. Values are written as Lua writes them.

use respool_testkit::Rng;

use super::Request;
use super::generate::Generator;

const TEMPLATES: &[&str] = &[
    "return @C",
    "return @C",
    "return redis.call(@A)",
    "redis.setresp(3) return @C",
    "redis.setresp(3) return {@C, @C}",
    "redis.setresp(3) local r = @C redis.setresp(2) return {r, @C}",
    "return {@C, @C, @C}",
    "local r = @C return {r, r}",
    "local r = @C return type(r)",
    "local r = @C if type(r) == 'table' then return {#r, r.err or 'no', r.ok or 'no', r[1] or 'no'} end return tostring(r)",
    "redis.setresp(3) local r = @C if type(r) == 'table' then local n = {} for k in pairs(r) do n[#n + 1] = tostring(k) end table.sort(n) \
     return n end return {type(r), r}",
    "local ok, e = pcall(redis.call, @A) if type(e) == 'table' then return {tostring(ok), e.err or e.ok or #e} end return {tostring(ok), e}",
    "local ok, e = pcall(function() return redis.call(@A) end) return {tostring(ok), type(e), e}",
    "local ok, e = xpcall(function() return redis.call(@A) end, function(e) return type(e) == 'table' and e.err or e end) \
     return {tostring(ok), e}",
    "local r = @C\nlocal s = @C\nreturn redis.call(@A)",
    "for i = 1, 3 do redis.pcall(@A) end return @C",
    "local t = {} for i = 1, 3 do t[i] = @C end return t",
    "return cjson.encode(@C)",
    "local ok, j = pcall(cjson.encode, @V) return {tostring(ok), j}",
    "return cjson.decode(cjson.encode({@V, @V}))",
    "return cmsgpack.unpack(cmsgpack.pack(@V))",
    "return cmsgpack.pack(@C)",
    "return cmsgpack.unpack(cmsgpack.pack(@C))",
    "return @V",
    "return {@V, @V, {@V, {@V}}}",
    "return @T",
    "redis.setresp(3) return @T",
    "redis.setresp(3) return {@T, @V, @T}",
    "redis.setresp(3) return @V",
    "return redis.call(@S, @N, @S)",
    "return redis.pcall(@V, @V)",
    "return redis.pcall('set', 's0', @N)",
    "redis.call('set', 's0', @N) return redis.call('get', 's0')",
    "return redis.pcall('rpush', 'l0', @V, @V, @V)",
    "return redis.error_reply(@S)",
    "return redis.status_reply(@S)",
    "return redis.sha1hex(@S)",
    "error(@Z)",
    "error({err = @S})",
    "local t = nil\nreturn t.x",
    "local function f(n) if n == 0 then return redis.call(@A) end return (f(n - 1)) end return f(3)",
    "local co = coroutine.create(function() coroutine.yield(@C) return @C end)\nlocal _, a = coroutine.resume(co)\n\
     local _, b = coroutine.resume(co) return {a, b, coroutine.status(co)}",
    "local ok, e = coroutine.resume(coroutine.create(function() return redis.call(@A) end)) return {tostring(ok), e}",
    "return @P",
    "return {@P, @P}",
    "local ok, v = pcall(function() return @P end) return {tostring(ok), type(v), v}",
    "return {KEYS[1], ARGV[1], #KEYS, #ARGV, ARGV[3] or @S}",
    "local t = {@S, @S, @S, @S} table.sort(t) return t",
    "return {math.random(1000), math.random(@N), tostring(math.random())}",
    "math.randomseed(@N) return math.random(1000000)",
    "return redis.setresp(@V)",
    "redis.set_repl(@N) return 1",
    "return redis.log(@V, @S)",
    "return tostring(redis.acl_check_cmd(@A))",
    "x = @V",
    "return _G[@S]",
    "@C",
    "return @S:upper():sub(@N, @N)",
    "return struct.unpack('>I2<i4s', struct.pack('>I2<i4s', @N, @N, @S))",
    "return string.format('%s %5.2f %d %q', @S, @N, @N, @S)",
];

/// Expressions of values alone.
const EXPRESSIONS: &[&str] = &[
    "@S .. @N",
    "@S .. @S",
    "@N + @N",
    "@N * @N",
    "@N / @N",
    "@N % @N",
    "@N ^ 2",
    "#@S",
    "tonumber(@S)",
    "tonumber(@N)",
    "tostring(@N)",
    "@S + @N",
    "@S < @S",
    "@N == @S",
    "not @V",
    "math.floor(@N)",
    "select('#', @V, @V)",
    "string.rep(@S, 3)",
    "string.byte(@S, 1, 3)",
    "string.find(@S, @S, 1, true)",
    "(string.gsub(@S, '%w', '[%0]'))",
    "string.format('%.14g', @N)",
    "bit.band(@N, @N)",
    "bit.tohex(@N)",
    "bit.lshift(@N, 3)",
    "redis.sha1hex(@N)",
    "table.concat({@S, @N, @S}, ',')",
    "type(@V)",
    "unpack({@V, @V})",
    "math.max(@N, @N)",
    "cjson.encode(@N)",
    "cjson.encode({@S, @N})",
    "redis[@S]",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "10",
    "3.7",
    "-3.7",
    "0.1",
    "1e10",
    "1e15",
    "123456789012",
    "9007199254740993",
    "1e17",
    "-1e300",
    "2^31",
    "2^32",
    "-2^63",
    "2^63",
    "1/3",
    "-0",
    "100",
    "1e-7",
    "0x10",
    "255",
    "5e-324",
];
const STRINGS: &[&str] = &[
    "''",
    "'a'",
    "'ok'",
    "'err'",
    "'hello'",
    "'10'",
    "'3.5'",
    "' 12 '",
    "'0x1F'",
    "'GET'",
    "'s0'",
    "'-ERR x'",
    "'-CODE with words'",
    "'ERR done'",
    "'two\\r\\nlines'",
    "'\\0nul'",
    "'\\255\\254'",
    "'quote\"d'",
    "'back\\\\slash'",
    "'%d'",
    "'call'",
    "'h\\195\\169'",
    "'LOG_DEBUG'",
    "'1e3'",
    "'nil'",
];
const TABLES: &[&str] = &[
    "{ok = @S}",
    "{err = @S}",
    "{ok = @V, @V}",
    "{double = @N}",
    "{double = @V}",
    "{map = {[@V] = @V}}",
    "{map = {a = {@V}}}",
    "{set = {[@S] = true}}",
    "{set = {@V}}",
    "{big_number = @S}",
    "{big_number = '12345678901234567890'}",
    "{verbatim_string = {format = 'txt', string = @S}}",
    "{verbatim_string = {format = @S, string = @S}}",
    "{verbatim_string = @V}",
    "{map = @V}",
    "{{ok = @S}, {err = @S}}",
    "{@V, nil, @V}",
    "{[1] = @V, [3] = @V}",
    "{a = @V}",
];

/// Commands whose replies or effects chance, time or the order of a table decide.
const FICKLE: &[&str] = &[
    "KEYS",
    "SMEMBERS",
    "SINTER",
    "SUNION",
    "SDIFF",
    "HKEYS",
    "HVALS",
    "HGETALL",
    "RANDOMKEY",
    "SRANDMEMBER",
    "HRANDFIELD",
    "ZRANDMEMBER",
    "SPOP",
    "SORT",
    "SORT_RO",
    "DUMP",
    "SCAN",
    "HSCAN",
    "SSCAN",
    "ZSCAN",
    "TTL",
    "PTTL",
    "XPENDING",
    "XINFO",
    "OBJECT",
    "EXPIRETIME",
    "PEXPIRETIME",
    "XADD",
    "XCLAIM",
    "XAUTOCLAIM",
    "DBSIZE",
    "XREADGROUP",
    "RESTORE",
];

/// Bytes of a command's argument that a script has room for.
const ARGUMENT_BYTES_MAX: usize = 300;

/// Tables within tables.
const DEPTH_MAX: usize = 3;

/// An endless source of scripts that follows from its seed.
pub(crate) struct Phrases {
    rng: Rng,
    requests: Generator,
}

impl Phrases {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed ^ 0x5c21), requests: Generator::new(seed) }
    }

    /// The next script.
    pub(crate) fn script(&mut self) -> String {
        let template = *self.rng.pick(TEMPLATES);
        self.expand(template, 0)
    }

    /// A request that is no script: it makes what scripts meet.
    pub(crate) fn request(&mut self) -> Request {
        loop {
            let request = self.requests.request();
            let is_fickle = FICKLE.iter().any(|name| request[0].eq_ignore_ascii_case(name.as_bytes()));
            if !is_fickle && request.iter().all(|word| word.len() <= ARGUMENT_BYTES_MAX) && request.len() < 40 {
                return request;
            }
        }
    }

    fn expand(&mut self, template: &str, depth: usize) -> String {
        let mut pieces = template.split('@');
        let mut script = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let drawn = match piece.as_bytes()[0] {
                b'C' => {
                    let arguments = self.arguments();
                    format!("redis.pcall({arguments})")
                }
                b'A' => self.arguments(),
                b'S' => (*self.rng.pick(STRINGS)).to_owned(),
                b'N' => format!("({})", self.rng.pick(NUMBERS)),
                b'T' if depth < DEPTH_MAX => {
                    let table = *self.rng.pick(TABLES);
                    self.expand(table, depth + 1)
                }
                b'P' => {
                    let expression = *self.rng.pick(EXPRESSIONS);
                    self.expand(expression, depth + 1)
                }
                b'Z' => self.value(DEPTH_MAX),
                _ => self.value(depth),
            };
            // A method of a string needs parentheses around it.
            let is_method = piece[1..].starts_with(':');
            script += &if is_method { format!("({drawn})") } else { drawn };
            script += &piece[1..];
        }
        script
    }

    fn value(&mut self, depth: usize) -> String {
        match self.rng.below(if depth < DEPTH_MAX { 10 } else { 7 }) {
            0 | 1 => (*self.rng.pick(STRINGS)).to_owned(),
            2 | 3 => format!("({})", self.rng.pick(NUMBERS)),
            4 => "true".to_owned(),
            5 => "false".to_owned(),
            6 => "nil".to_owned(),
            7 => "{}".to_owned(),
            8 => self.expand("{@V, @V}", depth + 1),
            _ => self.expand("@T", depth + 1),
        }
    }

    /// A command and its arguments as a script writes them; numbers now and then as numbers.
    fn arguments(&mut self) -> String {
        let request = self.request();
        let words: Vec<String> = request.iter().map(|word| self.literal(word)).collect();
        words.join(", ")
    }

    fn literal(&mut self, word: &[u8]) -> String {
        let is_plain_number =
            word.len() < 15 && !word.is_empty() && word.iter().all(u8::is_ascii_digit) && word[0] != b'0';
        if is_plain_number && self.rng.once_in(2) {
            return String::from_utf8_lossy(word).into_owned();
        }
        let byte = |byte: &u8| match byte {
            b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            other => format!("\\{other:03}"),
        };
        format!("'{}'", word.iter().map(byte).collect::<String>())
    }
}
