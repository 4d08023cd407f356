//! Texts of Lua: what they are compiled to, and what is said of them.

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, Result, Table, Value};

use super::raise;

/// What bytecode begins with.
const BYTECODE: u8 = 0x1b;

/// What Lua says for want of memory.
pub(super) const NO_MEMORY: &[u8] = b"not enough memory";

/// Makes a function of a text, never of bytecode. Nothing is collected meanwhile: Lua 5.1 does not hold on to the name of what
/// it compiles.
pub(super) fn compile(lua: &Lua, text: &[u8], name: &[u8], world: &Table) -> Result<Function> {
    lua.gc_stop();
    let chunk =
        lua.load(text).set_name(String::from_utf8_lossy(name)).set_mode(ChunkMode::Text).set_environment(world.clone());
    let function = chunk.into_function().map_err(|error| in_bytes(lua, text, name, error));
    lua.gc_restart();
    function
}

/// An error of a text that does not compile. The message is a text of Rust by then, in which bytes that are no UTF-8 have been replaced;
/// what Lua itself says of the same text has them. Bytecode is refused in other words than Redis's, which takes it for a text: so does Lua
/// behind a space.
fn in_bytes(lua: &Lua, text: &[u8], name: &[u8], error: mlua::Error) -> mlua::Error {
    let is_replaced = matches!(&error, mlua::Error::SyntaxError { message, .. } if message.contains('\u{fffd}'));
    let is_bytecode = text.first() == Some(&BYTECODE);
    if !is_replaced && !is_bytecode {
        return error;
    }
    let said = || {
        let compile: Function = lua.globals().raw_get("loadstring")?;
        let text = if is_bytecode { lua.create_string([b" ", text].concat())? } else { lua.create_string(text)? };
        compile.call::<(Value, Value)>((text, lua.create_string(name)?))
    };
    match said() {
        Ok((Value::Nil, said @ Value::String(_))) => mlua::Error::external(raise::Thrown(said)),
        _ => error,
    }
}

/// The text of an error.
pub(super) fn why(error: &mlua::Error) -> Vec<u8> {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone().into_bytes(),
        mlua::Error::MemoryError(_) => NO_MEMORY.to_vec(),
        mlua::Error::CallbackError { cause, .. } => why(cause),
        mlua::Error::ExternalError(inner) => match inner.downcast_ref::<raise::Thrown>() {
            Some(raise::Thrown(Value::String(text))) => text.as_bytes().to_vec(),
            _ => inner.to_string().into_bytes(),
        },
        mlua::Error::RuntimeError(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}
