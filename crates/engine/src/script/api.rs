//! The table `redis`: what a script may ask of the server.

use std::rc::Rc;

use mlua::{Lua, LuaString, MultiValue, Result, Scope, Table, Value};
use sha1::{Digest, Sha1};

use super::arguments::{Given, as_number, to_integer};
use super::cache::{Hash, written};
use super::convert::{Reading, number_argument};
use super::exchange::{Exchange, Order, Report};
use super::raise::{self, throw};
use super::text;
use super::vm::Way;
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
    constants(&redis)?;
    plain_functions(lua, &redis)?;
    Ok(redis)
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

fn plain_functions(lua: &Lua, redis: &Table) -> Result<()> {
    let raise_text = |lua: &Lua, text: &str| -> Result<mlua::Error> { Ok(throw(error_table(lua, text, false)?)) };
    let sha1hex = lua.create_function(move |lua, values: MultiValue| {
        if values.len() != 1 {
            return Err(raise_text(lua, "ERR wrong number of arguments")?);
        }
        let text = lua.coerce_string(values[0].clone())?;
        let hash: Hash = match text {
            Some(text) => Sha1::digest(&*text.as_bytes()).into(),
            None => Sha1::digest(b"").into(),
        };
        lua.create_string(written(&hash))
    })?;
    redis.raw_set("sha1hex", sha1hex)?;
    let error_reply = lua.create_function(|lua, values: MultiValue| match single_string(&values) {
        None => error_table(lua, "ERR wrong number or type of arguments", true),
        Some(text) => error_reply(lua, &text.as_bytes()),
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
    // The engine has no log: arguments are checked, and nothing is written.
    let log = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        if given.len() < 2 {
            return Err(raise_text(lua, "ERR redis.log() requires two arguments or more.")?);
        }
        match number_of(lua, given.get(1))?.map(to_integer) {
            None => Err(raise_text(lua, "ERR First argument must be a number (log level).")?),
            Some(0..=3) => Ok(()),
            Some(_) => Err(raise_text(lua, "ERR Invalid debug level.")?),
        }
    })?;
    redis.raw_set("log", log)?;
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
    redis.raw_set("breakpoint", lua.create_function(|_, _: MultiValue| Ok(false))?)?;
    redis.raw_set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)
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

/// What `redis.error_reply` makes of a text: `-CODE text` as it is, and anything else with `ERR` in front. Line ends become
/// spaces.
fn error_reply(lua: &Lua, text: &[u8]) -> Result<Value> {
    let trimmed: Vec<u8> =
        text.trim_ascii_end().iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }).collect();
    let made = match trimmed.strip_prefix(b"-") {
        Some(rest) if rest.contains(&b' ') => rest.to_vec(),
        Some(rest) => [b"ERR ", rest].concat(),
        None => [b"ERR ", &trimmed[..]].concat(),
    };
    error_table(lua, made, false)
}

enum Answered {
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
    let mut number = Vec::new();
    for value in values {
        match value {
            Value::String(text) => _ = request.push(&text.as_bytes()),
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

/// Runs a command: the engine does, while this waits on its own stack.
fn command(lua: &Lua, way: &Way, exchange: &Exchange, values: &MultiValue) -> Result<Answered> {
    if let Err(text) = fill(exchange, values) {
        return Ok(Answered::Error(error_table(lua, text, true)?));
    }
    if matches!(way.suspend(Report::Call), Order::Kill | Order::End) {
        exchange.is_killed.set(true);
    }
    if exchange.is_killed.get() {
        return Err(raise::throw_text(lua, text::KILLED));
    }
    let reply = exchange.reply.borrow();
    if let Some(line) = reply.strip_prefix(b"-") {
        let text = line.strip_suffix(b"\r\n").unwrap_or(line);
        return Ok(Answered::Error(error_table(lua, text, true)?));
    }
    Reading { lua, rest: &reply }.value().map(Answered::Value)
}
