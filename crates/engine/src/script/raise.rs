//! Errors that the host raises in a script.
//!
//! The binding wraps an error of Rust into a value of its own. Scripts must see what Redis raises: strings with a place in
//! front, and tables. So such an error carries the Lua value, and `pcall` and its kin take it out again (`prelude.lua`).

use std::fmt;

use mlua::{Error, Lua, Value};

/// How the prelude is called in Lua's own eyes. Its frames are left out where places are told.
pub(super) const PRELUDE: &str = "=respool";

/// What a script is called that is debugged, and nothing else that is compiled: what has a name like this in the text of a script gets
/// that of a plain script.
pub(super) const DEBUGGED_NAME: &str = "=user_script";

/// A Lua value on its way through Rust.
pub(super) struct Thrown(pub(super) Value);

impl fmt::Debug for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error of a script")
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error of a script")
    }
}

impl std::error::Error for Thrown {}

/// Raises a Lua value as it is.
pub(super) fn throw(value: Value) -> Error {
    Error::external(Thrown(value))
}

/// Raises a text as it is.
pub(super) fn throw_text(lua: &Lua, text: impl AsRef<[u8]>) -> Error {
    match lua.create_string(text) {
        Ok(text) => throw(Value::String(text)),
        Err(error) => error,
    }
}

/// Raises a text with the place of the function that called the host's, as `luaL_error` does.
pub(super) fn fail(lua: &Lua, text: impl AsRef<[u8]>) -> Error {
    let mut placed = place(lua).into_bytes();
    placed.extend_from_slice(text.as_ref());
    throw_text(lua, placed)
}

/// The frame of the function that called the host's, not counting the prelude's.
fn caller(lua: &Lua) -> usize {
    (1..).find(|level| !is_prelude(lua, *level)).unwrap_or(1)
}

fn is_prelude(lua: &Lua, level: usize) -> bool {
    lua.inspect_stack(level, |frame| frame.source().source.as_deref() == Some(PRELUDE)).unwrap_or(false)
}

fn place(lua: &Lua) -> String {
    let place = lua.inspect_stack(caller(lua), |frame| {
        let line = frame.current_line().filter(|line| *line > 0)?;
        Some(format!("{}:{line}: ", frame.source().short_src.unwrap_or_default()))
    });
    place.flatten().unwrap_or_default()
}

/// Raises that an argument is bad, as `luaL_argerror` does.
pub(super) fn bad_argument(lua: &Lua, number: usize, why: impl AsRef<[u8]>) -> Error {
    let names = lua.inspect_stack(caller(lua) - 1, |frame| {
        let names = frame.names();
        (names.name.map(std::borrow::Cow::into_owned), names.name_what == Some("method"))
    });
    let (name, is_method) = names.unwrap_or_default();
    let name = name.unwrap_or_else(|| "?".to_owned());
    let what = match number - usize::from(is_method && number > 0) {
        0 if is_method => format!("calling '{name}' on bad self ("),
        number => format!("bad argument #{number} to '{name}' ("),
    };
    fail(lua, [what.as_bytes(), why.as_ref(), b")"].concat())
}

/// Raises that an argument has the wrong type, as `luaL_typerror` does.
pub(super) fn bad_type(lua: &Lua, number: usize, expected: &str, given: Option<&Value>) -> Error {
    bad_argument(lua, number, format!("{expected} expected, got {}", given.map_or("no value", type_name)))
}

/// What Lua calls the type of a value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// What a script is to see of an error of the host.
pub(super) fn unwrap(lua: &Lua, error: &Error) -> mlua::Result<Value> {
    let mut error = error;
    loop {
        match error {
            Error::CallbackError { cause, .. } => error = cause,
            Error::ExternalError(inner) => {
                return match inner.downcast_ref::<Thrown>() {
                    Some(Thrown(value)) => Ok(value.clone()),
                    None => lua.create_string(inner.to_string()).map(Value::String),
                };
            }
            Error::MemoryError(_) => return lua.create_string("not enough memory").map(Value::String),
            Error::RuntimeError(text) => return lua.create_string(text).map(Value::String),
            other => return lua.create_string(other.to_string()).map(Value::String),
        }
    }
}

/// Where an error has been raised: chunk and line of the first function that is neither the host's nor the prelude's, as
/// Redis's own handler finds it. Asked within a message handler.
pub(super) fn origin(lua: &Lua) -> Option<(String, i64)> {
    let mut is_first = true;
    for level in 1.. {
        let frame = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let line = frame.current_line().map_or(-1, |line| i64::try_from(line).unwrap_or(-1));
            (source.what == "C", source.source.map(std::borrow::Cow::into_owned).unwrap_or_default(), line)
        });
        let (is_c, source, line) = frame?;
        // A tail call has taken the place of the function that made it.
        if source == PRELUDE || source == "=(tail call)" || is_c && std::mem::take(&mut is_first) {
            continue;
        }
        // A script that is debugged is called as any other.
        let source = if source == DEBUGGED_NAME { source.replacen('=', "@", 1) } else { source };
        return Some((source, line));
    }
    None
}
