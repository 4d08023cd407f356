//! The library `bit`: operations on 32 bits.

use mlua::{Lua, MultiValue, Result, Table, Value};

use super::arguments::Given;

/// Makes the library.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    let library = lua.create_table()?;
    unary(lua, &library, "tobit", |bits| bits)?;
    unary(lua, &library, "bnot", |bits| !bits)?;
    unary(lua, &library, "bswap", u32::swap_bytes)?;
    fold(lua, &library, "band", |a, b| a & b)?;
    fold(lua, &library, "bor", |a, b| a | b)?;
    fold(lua, &library, "bxor", |a, b| a ^ b)?;
    shift(lua, &library, "lshift", |bits, by| bits << by)?;
    shift(lua, &library, "rshift", |bits, by| bits >> by)?;
    shift(lua, &library, "arshift", |bits, by| (bits as i32 >> by) as u32)?;
    shift(lua, &library, "rol", u32::rotate_left)?;
    shift(lua, &library, "ror", u32::rotate_right)?;
    let tohex = lua.create_function(|lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let bits = bits(&given, 1)?;
        let wanted = if given.is_none(2) { 8 } else { as_signed(self::bits(&given, 2)?) };
        // The smallest number has no opposite: it is cut to eight like all that are too large.
        let digits = wanted.unsigned_abs().min(8) as usize;
        let text = if wanted < 0 { format!("{bits:08X}") } else { format!("{bits:08x}") };
        lua.create_string(&text[8 - digits..])
    })?;
    library.raw_set("tohex", tohex)?;
    Ok(library)
}

fn as_signed(bits: u32) -> i32 {
    bits as i32
}

/// The lowest 32 bits of a number that is rounded to the nearest integer.
fn bits(given: &Given<'_>, number: usize) -> Result<u32> {
    // So large a number has the integer in its lowest bits; the library does it in the same way.
    Ok((given.number(number)? + 6_755_399_441_055_744.0).to_bits() as u32)
}

fn signed(bits: u32) -> Value {
    Value::Number(f64::from(bits as i32))
}

fn unary(lua: &Lua, library: &Table, name: &str, operation: fn(u32) -> u32) -> Result<()> {
    let function =
        lua.create_function(move |lua, values: MultiValue| Ok(signed(operation(bits(&Given::new(lua, &values), 1)?))))?;
    library.raw_set(name, function)
}

fn fold(lua: &Lua, library: &Table, name: &str, operation: fn(u32, u32) -> u32) -> Result<()> {
    let function = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let first = bits(&given, 1)?;
        (2..=given.len()).try_fold(first, |all, number| Ok(operation(all, bits(&given, number)?))).map(signed)
    })?;
    library.raw_set(name, function)
}

fn shift(lua: &Lua, library: &Table, name: &str, operation: fn(u32, u32) -> u32) -> Result<()> {
    let function = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let (value, by) = (bits(&given, 1)?, bits(&given, 2)?);
        Ok(signed(operation(value, by & 31)))
    })?;
    library.raw_set(name, function)
}
