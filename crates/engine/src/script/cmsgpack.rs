//! The library `cmsgpack`: MessagePack as lua-cmsgpack 0.4 writes and reads it.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Result, Table, Value};

use super::arguments::{Given, to_integer};
use super::effort::Effort;
use super::raise;
use crate::limits::SCRIPT_STRING_BYTES_MAX;

/// How deep values are written; what is deeper becomes nil, as in Redis.
const DEPTH_MAX: usize = 16;

/// How deep values are read. Redis ends at the end of Lua's stack.
const READ_DEPTH_MAX: usize = 1_000;

/// Makes the library.
pub(super) fn library(lua: &Lua, effort: &Rc<Effort>) -> Result<Table> {
    let library = lua.create_table()?;
    let of_call = Rc::clone(effort);
    let pack = lua.create_function(move |lua, values: MultiValue| {
        if values.is_empty() {
            return Err(raise::bad_argument(lua, 0, "MessagePack pack needs input."));
        }
        let mut writing = Writing { effort: &of_call, out: Vec::new() };
        values.iter().try_for_each(|value| writing.value(value, 0))?;
        lua.create_string(writing.out)
    })?;
    library.raw_set("pack", pack)?;
    let of_call = Rc::clone(effort);
    let unpack = move |lua: &Lua, values: MultiValue| unpack(&Given::new(lua, &values), &of_call, Part::All);
    library.raw_set("unpack", lua.create_function(unpack)?)?;
    let of_call = Rc::clone(effort);
    let unpack_one = move |lua: &Lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        self::unpack(&given, &of_call, Part::new(1, given.integer_or(2, 0)?))
    };
    library.raw_set("unpack_one", lua.create_function(unpack_one)?)?;
    let of_call = Rc::clone(effort);
    let unpack_limit = move |lua: &Lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        self::unpack(&given, &of_call, Part::new(given.integer(2)?, given.integer_or(3, 0)?))
    };
    library.raw_set("unpack_limit", lua.create_function(unpack_limit)?)?;
    library.raw_set("_NAME", "cmsgpack")?;
    library.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    library.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    library.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(library)
}

struct Writing<'a> {
    effort: &'a Effort,
    out: Vec<u8>,
}

impl Writing<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        self.effort.step()?;
        let out = &mut self.out;
        // A table may be in itself many times over.
        if out.len() > SCRIPT_STRING_BYTES_MAX {
            return Err(mlua::Error::MemoryError(String::new()));
        }
        match value {
            Value::String(text) => {
                let text = text.as_bytes();
                match text.len() {
                    length @ 0..=31 => out.push(0xa0 | length as u8),
                    length @ 32..=0xff => out.extend([0xd9, length as u8]),
                    length @ 0x100..=0xffff => head(out, 0xda, &(length as u16).to_be_bytes()),
                    length => head(out, 0xdb, &(length as u32).to_be_bytes()),
                }
                out.extend_from_slice(&text);
                self.effort.note_copied(text.len());
            }
            Value::Boolean(value) => out.push(0xc2 | u8::from(*value)),
            Value::Integer(number) => write_integer(*number, out),
            Value::Number(number) if to_integer(*number) as f64 == *number => write_integer(to_integer(*number), out),
            Value::Number(number) if f64::from(*number as f32) == *number => {
                head(out, 0xca, &(*number as f32).to_be_bytes())
            }
            Value::Number(number) => head(out, 0xcb, &number.to_be_bytes()),
            Value::Table(_) if depth >= DEPTH_MAX => out.push(0xc0),
            Value::Table(table) => self.table(table, depth)?,
            _ => out.push(0xc0),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<()> {
        let (mut count, mut most, mut is_array) = (0_usize, 0_usize, true);
        table.for_each::<Value, Value>(|key, _| {
            count += 1;
            match key {
                Value::Integer(place) if place > 0 => most = most.max(usize::try_from(place).unwrap_or(usize::MAX)),
                _ => is_array = false,
            }
            Ok(())
        })?;
        let out = &mut self.out;
        if is_array && most == count {
            match count {
                0..=15 => out.push(0x90 | count as u8),
                16..=0xffff => head(out, 0xdc, &(count as u16).to_be_bytes()),
                _ => head(out, 0xdd, &(count as u32).to_be_bytes()),
            }
            return (1..=count).try_for_each(|place| self.value(&table.raw_get::<Value>(place)?, depth + 1));
        }
        match count {
            0..=15 => out.push(0x80 | count as u8),
            16..=0xffff => head(out, 0xde, &(count as u16).to_be_bytes()),
            _ => head(out, 0xdf, &(count as u32).to_be_bytes()),
        }
        table.for_each::<Value, Value>(|key, value| {
            self.value(&key, depth + 1)?;
            self.value(&value, depth + 1)
        })
    }
}

fn head(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(bytes);
}

fn write_integer(number: i64, out: &mut Vec<u8>) {
    match number {
        0..=127 => out.push(number as u8),
        128..=0xff => out.extend([0xcc, number as u8]),
        0x100..=0xffff => head(out, 0xcd, &(number as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => head(out, 0xce, &(number as u32).to_be_bytes()),
        0x1_0000_0000.. => head(out, 0xcf, &number.to_be_bytes()),
        -32..=-1 => out.push(number as u8),
        -128..=-33 => out.extend([0xd0, number as u8]),
        -0x8000..=-129 => head(out, 0xd1, &(number as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => head(out, 0xd2, &(number as i32).to_be_bytes()),
        _ => head(out, 0xd3, &number.to_be_bytes()),
    }
}

/// Why a text is no MessagePack.
enum Flaw {
    Short,
    Bad,
    Lua(mlua::Error),
}

impl From<mlua::Error> for Flaw {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

struct Reading<'a> {
    lua: &'a Lua,
    effort: &'a Effort,
    rest: &'a [u8],
}

/// What is read of a text.
enum Part {
    All,
    /// So many values from a place on.
    Some {
        limit: i64,
        offset: i64,
    },
}

impl Part {
    fn new(limit: i64, offset: i64) -> Self {
        if (limit, offset) == (0, 0) { Self::All } else { Self::Some { limit, offset } }
    }
}

/// Reads values of a text; unless it is all of them, the place behind them comes first, or -1 at the end.
fn unpack(given: &Given<'_>, effort: &Effort, part: Part) -> Result<MultiValue> {
    let lua = given.lua;
    let text = given.string(1)?;
    let text = text.as_bytes();
    let (limit, offset) = match part {
        Part::All => (i64::MAX, 0),
        Part::Some { limit, offset } => (limit, offset),
    };
    let (Ok(most), Ok(start)) = (usize::try_from(limit), usize::try_from(offset)) else {
        // Redis names the length there, and prints C's int.
        let offset = offset as i32;
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {}.", text.len());
        return Err(raise::fail(lua, text));
    };
    let Some(rest) = text.get(start..) else {
        let offset = offset as i32;
        let text = format!("Start offset {offset} greater than input length {}.", text.len());
        return Err(raise::fail(lua, text));
    };
    let mut reading = Reading { lua, effort, rest };
    let mut values = MultiValue::new();
    while !reading.rest.is_empty() && values.len() < most {
        if values.len() as i64 >= crate::limits::UNPACKED_VALUES_MAX {
            let why = "too many return values at once; use unpack_one or unpack_limit instead.";
            return Err(raise::fail(lua, format!("stack overflow ({why})")));
        }
        match reading.value(0) {
            Ok(value) => values.push_back(value),
            Err(Flaw::Short) => return Err(raise::fail(lua, "Missing bytes in input.")),
            Err(Flaw::Bad) => return Err(raise::fail(lua, "Bad data format in input.")),
            Err(Flaw::Lua(error)) => return Err(error),
        }
    }
    if let Part::Some { .. } = part {
        let next = if reading.rest.is_empty() { -1 } else { (text.len() - reading.rest.len()) as i64 };
        values.push_front(Value::Integer(next));
    }
    Ok(values)
}

impl<'a> Reading<'a> {
    fn take(&mut self, count: usize) -> std::result::Result<&'a [u8], Flaw> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Flaw::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn bytes<const N: usize>(&mut self) -> std::result::Result<[u8; N], Flaw> {
        self.take(N)?.try_into().map_err(|_| Flaw::Short)
    }

    fn length(&mut self, bytes: usize) -> std::result::Result<usize, Flaw> {
        Ok(self.take(bytes)?.iter().fold(0, |all, &byte| all << 8 | usize::from(byte)))
    }

    fn value(&mut self, depth: usize) -> std::result::Result<Value, Flaw> {
        if depth > READ_DEPTH_MAX {
            return Err(Flaw::Bad);
        }
        self.effort.step()?;
        let [kind] = self.bytes()?;
        let number = |value: f64| Ok(Value::Number(value));
        match kind {
            0xcc => number(self.bytes::<1>()?[0].into()),
            0xd0 => number((self.bytes::<1>()?[0] as i8).into()),
            0xcd => number(u16::from_be_bytes(self.bytes()?).into()),
            0xd1 => number(i16::from_be_bytes(self.bytes()?).into()),
            0xce => number(u32::from_be_bytes(self.bytes()?).into()),
            0xd2 => number(i32::from_be_bytes(self.bytes()?).into()),
            // What is too large for a signed integer is none, as in Redis.
            0xcf | 0xd3 => number(i64::from_be_bytes(self.bytes()?) as f64),
            0xc0 => Ok(Value::Nil),
            0xc2 => Ok(Value::Boolean(false)),
            0xc3 => Ok(Value::Boolean(true)),
            0xca => number(f32::from_be_bytes(self.bytes()?).into()),
            0xcb => number(f64::from_be_bytes(self.bytes()?)),
            0xd9..=0xdb => {
                let length = self.length(1 << (kind - 0xd9))?;
                self.string(length)
            }
            0xdc | 0xdd => {
                let length = self.length(2 << (kind - 0xdc))?;
                self.array(length, depth)
            }
            0xde | 0xdf => {
                let length = self.length(2 << (kind - 0xde))?;
                self.map(length, depth)
            }
            0x00..=0x7f => number(kind.into()),
            0xe0..=0xff => number((kind as i8).into()),
            0xa0..=0xbf => self.string(usize::from(kind & 0x1f)),
            0x90..=0x9f => self.array(usize::from(kind & 0xf), depth),
            0x80..=0x8f => self.map(usize::from(kind & 0xf), depth),
            _ => Err(Flaw::Bad),
        }
    }

    fn string(&mut self, length: usize) -> std::result::Result<Value, Flaw> {
        self.effort.note_copied(length.min(self.rest.len()));
        Ok(Value::String(self.lua.create_string(self.take(length)?)?))
    }

    /// The announced length costs nothing: a table grows with what is there.
    fn array(&mut self, length: usize, depth: usize) -> std::result::Result<Value, Flaw> {
        let table = self.lua.create_table()?;
        for place in 1..=length {
            table.raw_set(place, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> std::result::Result<Value, Flaw> {
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let (key, value) = (self.value(depth + 1)?, self.value(depth + 1)?);
            match &key {
                Value::Nil => return Err(raise::fail(self.lua, "table index is nil").into()),
                Value::Number(number) if number.is_nan() => {
                    return Err(raise::fail(self.lua, "table index is NaN").into());
                }
                _ => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}
