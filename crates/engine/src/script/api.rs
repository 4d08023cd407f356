//! The table `redis`: what a script may ask of the server.

use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Result, Scope, Table, Value};
use respool_command::words::until_nul;
use sha1::{Digest, Sha1};

use super::arguments::{Given, as_number, to_integer};
use super::cache::{Hash, written};
use super::convert::{Reading, number_argument};
use super::debugger::Debugger;
use super::effort::Effort;
use super::exchange::{Exchange, Order, Report, Way};
use super::library::{Draft, TEXTS_TOO_LONG};
use super::log::{self, ScriptLogLevel};
use super::memory::Unlimited;
use super::raise::{self, throw};
use super::stops;
use super::text;
use crate::limits::{LIBRARY_TEXT_BYTES_MAX, SCRIPT_LOG_BYTES_MAX, SCRIPT_REQUEST_BYTES_MAX};
use crate::number::integer;
use respool_wire::Protocol;

/// The version that scripts are told.
const VERSION: &str = "7.0.15";
const VERSION_NUMBER: u32 = 0x0007_000f;

/// Makes the table.
pub(super) fn table<'s, 'e>(
    lua: &Lua,
    scope: &'s Scope<'s, 'e>,
    way: &'e Way,
    exchange: &'e Rc<Exchange>,
    effort: &Rc<Effort>,
) -> Result<Table> {
    let redis = lua.create_table()?;
    let call = scope.create_function(|lua, values: MultiValue| match command(lua, way, exchange, &values)? {
        Answered::Value(value) => Ok(value),
        Answered::Error(error) => Err(throw(error)),
    })?;
    redis.raw_set("call", call)?;
    let pcall = scope.create_function(|lua, values: MultiValue| match command(lua, way, exchange, &values)? {
        Answered::Value(value) | Answered::Error(value) => Ok(value),
    })?;
    redis.raw_set("pcall", pcall)?;
    let acl_check = scope.create_function(|lua, values: MultiValue| {
        if let Err(text) = fill(exchange, &values) {
            return Err(throw(error_table(lua, text, false)?));
        }
        way.suspend(Report::Look);
        match &exchange.reply.borrow()[..] {
            b"" => Err(throw(error_table(lua, "ERR Invalid command passed to redis.acl_check_cmd()", false)?)),
            answer => Ok(answer == b"1"),
        }
    })?;
    redis.raw_set("acl_check_cmd", acl_check)?;
    let setresp = scope.create_function(|lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        if given.len() != 1 {
            return Err(throw(error_table(lua, "ERR redis.setresp() requires one argument.", false)?));
        }
        let version = number_of(lua, given.get(1))?.map_or(0, to_integer);
        let Some(protocol) = Protocol::from_version(version) else {
            return Err(throw(error_table(lua, "ERR RESP version must be 2 or 3.", false)?));
        };
        exchange.protocol.set(protocol);
        Ok(())
    })?;
    redis.raw_set("setresp", setresp)?;
    redis.raw_set("log", log_function(scope, way)?)?;
    constants(&redis)?;
    plain_functions(lua, &redis, exchange, effort)?;
    Ok(redis)
}

/// Makes the table `os`, of which scripts have the clock alone, as in Valkey and in Redis since 7.4. It goes by milliseconds, and on
/// while the script waits.
pub(super) fn os_table<'s, 'e>(
    lua: &Lua,
    scope: &'s Scope<'s, 'e>,
    way: &'e Way,
    exchange: &'e Rc<Exchange>,
) -> Result<Table> {
    let os = lua.create_table()?;
    let clock = scope.create_function(|_, _: MultiValue| {
        way.suspend(Report::Clock);
        let now_ms = integer::parse(&exchange.reply.borrow()).unwrap_or_default();
        Ok(now_ms as f64 / 1000.0)
    })?;
    os.raw_set("clock", clock)?;
    Ok(os)
}

/// `redis.log`: the first argument is the level, strings and numbers among the others make the line.
fn log_function<'s, 'e>(scope: &'s Scope<'s, 'e>, way: &'e Way) -> Result<Function> {
    scope.create_function(|lua, values: MultiValue| {
        let refuse = |text: &str| -> Result<()> { Err(throw(error_table(lua, text, false)?)) };
        let given = Given::new(lua, &values);
        if given.len() < 2 {
            return refuse("ERR redis.log() requires two arguments or more.");
        }
        let Some(number) = number_of(lua, given.get(1))? else {
            return refuse("ERR First argument must be a number (log level).");
        };
        let Some(level) = ScriptLogLevel::of(to_integer(number)) else {
            return refuse("ERR Invalid debug level.");
        };
        // No more of each than a line may have, and no more of them: one string may be named thousands of times.
        let mut words = Vec::new();
        for value in values.iter().skip(1).take(SCRIPT_LOG_BYTES_MAX) {
            if let Value::String(_) | Value::Integer(_) | Value::Number(_) = value {
                let word = lua.coerce_string(value.clone())?;
                words.extend(word.map(|word| {
                    let word = word.as_bytes();
                    word[..word.len().min(SCRIPT_LOG_BYTES_MAX)].to_vec()
                }));
            }
        }
        way.suspend(Report::Log(level, log::line(words.iter().map(Vec::as_slice))));
        Ok(())
    })
}

/// Makes the smaller table that a library sees while it is loaded.
pub(super) fn library_table(
    lua: &Lua,
    whole: &Table,
    exchange: &Rc<Exchange>,
    registered: &Table,
    effort: &Rc<Effort>,
) -> Result<Table> {
    let redis = lua.create_table()?;
    let (exchange, functions, of_call) = (Rc::clone(exchange), registered.clone(), Rc::clone(effort));
    let register = lua.create_function(move |lua, values: MultiValue| {
        let refuse = |text: &str| refusal(lua, text);
        if !exchange.is_loading.get() {
            // A function may have kept what its library saw.
            return Err(refuse("ERR redis.register_function can only be called on FUNCTION LOAD command"));
        }
        let (draft, callback) = match values.len() {
            1 => named_arguments(lua, &values[0], &of_call)?,
            2 => placed_arguments(lua, &values, &of_call)?,
            _ => return Err(refuse("ERR wrong number of arguments to redis.register_function")),
        };
        let admitted = exchange.registered.borrow().admit(draft);
        let (function, name) = admitted.map_err(refuse)?;
        functions.raw_set(lua.create_string(&name)?, callback)?;
        exchange.registered.borrow_mut().add(function, name);
        Ok(())
    })?;
    for name in ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING", "REDIS_VERSION", "REDIS_VERSION_NUM", "log"] {
        redis.raw_set(name, whole.raw_get::<Value>(name)?)?;
    }
    redis.raw_set("register_function", register)?;
    Ok(redis)
}

/// An error as a script sees it.
fn refusal(lua: &Lua, text: &str) -> mlua::Error {
    error_table(lua, text, false).map_or_else(|error| error, throw)
}

/// A name or description of a function, which is copied. One text of a script may be that of any number of functions.
fn told(lua: &Lua, text: &LuaString, effort: &Effort) -> Result<Vec<u8>> {
    let text = text.as_bytes();
    if text.len() > LIBRARY_TEXT_BYTES_MAX {
        return Err(refusal(lua, TEXTS_TOO_LONG));
    }
    effort.copy(text.len())?;
    Ok(text.to_vec())
}

/// The arguments of `redis.register_function{function_name=..., callback=...}`.
fn named_arguments(lua: &Lua, value: &Value, effort: &Effort) -> Result<(Draft, Value)> {
    let refuse = |text: &str| Err(refusal(lua, text));
    let Value::Table(table) = value else {
        return refuse(
            "ERR calling redis.register_function with a single argument is only applicable to Lua table \
             (representing named arguments).",
        );
    };
    let mut draft = Draft::default();
    let mut callback = Value::Nil;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|_| refusal(lua, UNKNOWN_ARGUMENT))?;
        let Value::String(key) = key else {
            return refuse("ERR named argument key given to redis.register_function is not a string");
        };
        match (&*key.as_bytes(), value) {
            (b"function_name", Value::String(name)) => draft.name = Some(told(lua, &name, effort)?),
            (b"function_name", _) => {
                return refuse("ERR function_name argument given to redis.register_function must be a string");
            }
            (b"description", Value::String(text)) => draft.description = Some(told(lua, &text, effort)?),
            (b"description", _) => {
                return refuse("ERR description argument given to redis.register_function must be a string");
            }
            (b"callback", function @ Value::Function(_)) => {
                draft.has_callback = true;
                callback = function;
            }
            (b"callback", _) => {
                return refuse("ERR callback argument given to redis.register_function must be a function");
            }
            (b"flags", Value::Table(flags)) => {
                for flag in flags.sequence_values::<Value>() {
                    effort.step()?;
                    match flag {
                        Ok(Value::String(flag)) => draft.flags.add(&flag.as_bytes()),
                        _ => return refuse("ERR unknown flag given"),
                    }
                }
            }
            (b"flags", _) => {
                return refuse(
                    "ERR flags argument to redis.register_function must be a table representing function flags",
                );
            }
            _ => return refuse(UNKNOWN_ARGUMENT),
        }
    }
    Ok((draft, callback))
}

const UNKNOWN_ARGUMENT: &str = "ERR unknown argument given to redis.register_function";

/// The arguments of `redis.register_function(name, callback)`.
fn placed_arguments(lua: &Lua, values: &MultiValue, effort: &Effort) -> Result<(Draft, Value)> {
    let Value::String(name) = &values[0] else {
        return Err(refusal(lua, "ERR first argument to redis.register_function must be a string"));
    };
    let Value::Function(_) = &values[1] else {
        return Err(refusal(lua, "ERR second argument to redis.register_function must be a function"));
    };
    let draft = Draft { name: Some(told(lua, name, effort)?), has_callback: true, ..Draft::default() };
    Ok((draft, values[1].clone()))
}

fn constants(redis: &Table) -> Result<()> {
    for (name, value) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
        ("REDIS_VERSION_NUM", VERSION_NUMBER),
    ] {
        redis.raw_set(name, value)?;
    }
    redis.raw_set("REDIS_VERSION", VERSION)
}

fn plain_functions(lua: &Lua, redis: &Table, exchange: &Rc<Exchange>, effort: &Rc<Effort>) -> Result<()> {
    let raise_text = |lua: &Lua, text: &str| -> Result<mlua::Error> { Ok(throw(error_table(lua, text, false)?)) };
    let of_call = Rc::clone(effort);
    let sha1hex = lua.create_function(move |lua, values: MultiValue| {
        if values.len() != 1 {
            return Err(raise_text(lua, "ERR wrong number of arguments")?);
        }
        let text = lua.coerce_string(values[0].clone())?;
        let text = text.as_ref().map(LuaString::as_bytes);
        let text = text.as_deref().unwrap_or_default();
        of_call.read(text.len())?;
        let hash: Hash = Sha1::digest(text).into();
        lua.create_string(written(&hash))
    })?;
    redis.raw_set("sha1hex", sha1hex)?;
    let of_debugger = Rc::clone(exchange);
    let error_reply = lua.create_function(move |lua, values: MultiValue| match single_string(&values) {
        None => error_table(lua, "ERR wrong number or type of arguments", true),
        Some(text) => {
            let text = text.as_bytes();
            let said = [b"-", text.strip_prefix(b"-").unwrap_or(&text)].concat();
            of_debugger.with_debugger(|debugger| debugger.note_error(&said));
            error_reply(lua, &text)
        }
    })?;
    redis.raw_set("error_reply", error_reply)?;
    let status_reply = lua.create_function(|lua, values: MultiValue| match single_string(&values) {
        None => error_table(lua, "ERR wrong number or type of arguments", true),
        Some(text) => {
            let table = lua.create_table()?;
            table.raw_set("ok", text)?;
            Ok(Value::Table(table))
        }
    })?;
    redis.raw_set("status_reply", status_reply)?;
    // Nothing is replicated. What is chosen is checked all the same.
    let set_repl = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        if given.len() != 1 {
            return Err(raise_text(lua, "ERR redis.set_repl() requires two arguments.")?);
        }
        match number_of(lua, given.get(1))?.map_or(0, to_integer) {
            0..=3 => Ok(()),
            _ => {
                let text = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
                Err(raise_text(lua, text)?)
            }
        }
    })?;
    redis.raw_set("set_repl", set_repl)?;
    redis.raw_set("replicate_commands", lua.create_function(|_, _: MultiValue| Ok(true))?)?;
    // Without a debugger both do nothing.
    let of_debugger = Rc::clone(exchange);
    let breakpoint = lua.create_function(move |_, _: MultiValue| Ok(stops::breakpoint(&of_debugger)))?;
    redis.raw_set("breakpoint", breakpoint)?;
    let (of_debugger, of_call) = (Rc::clone(exchange), Rc::clone(effort));
    let debug =
        lua.create_function(move |lua, values: MultiValue| of_call.copy(stops::debug(lua, &of_debugger, &values)))?;
    redis.raw_set("debug", debug)
}

fn number_of(lua: &Lua, value: Option<&Value>) -> Result<Option<f64>> {
    match value {
        Some(value @ (Value::Integer(_) | Value::Number(_) | Value::String(_))) => lua.coerce_number(value.clone()),
        _ => Ok(None),
    }
}

fn single_string(values: &MultiValue) -> Option<LuaString> {
    match values.front() {
        Some(Value::String(text)) if values.len() == 1 => Some(text.clone()),
        _ => None,
    }
}

/// A table that stands for an error.
pub(super) fn error_table(lua: &Lua, text: impl AsRef<[u8]>, is_replied: bool) -> Result<Value> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", lua.create_string(text)?)?;
    if is_replied {
        table.raw_set("ignore_error_stats_update", true)?;
    }
    Ok(Value::Table(table))
}

/// What `redis.error_reply` makes of a text: `CODE text` as it is, with or without a minus in front, and a single word with `ERR` in
/// front. Line ends become spaces, and go at both ends of what follows the code.
fn error_reply(lua: &Lua, text: &[u8]) -> Result<Value> {
    let text = until_nul(text);
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let trimmed = |text: &[u8]| -> Vec<u8> {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let begin = text.iter().position(|byte| !is_end(byte)).unwrap_or(text.len());
        let end = text.iter().rposition(|byte| !is_end(byte)).map_or(begin, |last| last + 1);
        text[begin..end].iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect()
    };
    let space = text.iter().position(|&byte| byte == b' ');
    let (code, message) = space.map_or((&b"ERR"[..], text), |space| (&text[..space], &text[space + 1..]));
    let made = [code, b" ", &trimmed(message)].concat();
    error_table(lua, made, false)
}

pub(super) enum Answered {
    Value(Value),
    Error(Value),
}

/// Puts arguments into the exchange.
fn fill(exchange: &Exchange, values: &MultiValue) -> std::result::Result<(), &'static str> {
    if values.is_empty() {
        return Err(text::NO_ARGUMENTS);
    }
    let mut request = exchange.request.borrow_mut();
    request.clear();
    let (mut bytes, mut number) = (0, Vec::new());
    for value in values {
        match value {
            Value::String(text) => {
                // The binding takes a reference of its own for this: once is enough.
                let text = text.as_bytes();
                bytes += text.len();
                if bytes > SCRIPT_REQUEST_BYTES_MAX {
                    return Err(text::LARGE_ARGUMENTS);
                }
                request.push(&text);
            }
            Value::Integer(_) | Value::Number(_) => {
                number.clear();
                number_argument(as_number(value), &mut number);
                request.push(&number);
            }
            _ => return Err(text::BAD_ARGUMENTS),
        }
    }
    Ok(())
}

/// Shows what a command has come to. One that was not run has no reply.
fn note_answer(debugger: &mut Debugger, reply: &[u8], is_refused: bool) {
    if let Some(text) = reply.strip_prefix(b"-").map(<[u8]>::trim_ascii_end) {
        match is_refused {
            true => return debugger.note_error(without_code(text)),
            false => debugger.note_error(&[b"-", text].concat()),
        }
    }
    debugger.note_reply(reply);
}

fn without_code(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"ERR ").unwrap_or(text)
}

/// Runs a command: the engine does, while this waits on its own stack.
pub(super) fn command(lua: &Lua, way: &Way, exchange: &Exchange, values: &MultiValue) -> Result<Answered> {
    if let Err(text) = fill(exchange, values) {
        exchange.with_debugger(|debugger| debugger.note_error(without_code(text.as_bytes())));
        return Ok(Answered::Error(error_table(lua, text, false)?));
    }
    exchange.with_debugger(|debugger| debugger.note_call(exchange.request.borrow().as_args()));
    exchange.collector.mind(lua, lua.used_memory());
    // What has just been collected is no reason to refuse a write.
    exchange.vm_bytes.set(lua.used_memory());
    if matches!(way.suspend(Report::Call), Order::Kill | Order::End) {
        exchange.end(text::KILLED);
    }
    if let Some(why) = exchange.ended.get() {
        return Err(raise::throw_text(lua, why));
    }
    let reply = exchange.reply.borrow();
    exchange.with_debugger(|debugger| note_answer(debugger, &reply, exchange.is_refused.get()));
    // A number takes no memory.
    let _unlimited = (reply.first() != Some(&b':')).then(|| Unlimited::for_bytes(lua, reply.len()));
    if let Some(line) = reply.strip_prefix(b"-") {
        let text = line.strip_suffix(b"\r\n").unwrap_or(line);
        return Ok(Answered::Error(error_table(lua, text, true)?));
    }
    Reading { lua, rest: &reply }.value().map(Answered::Value)
}
