//! The library `struct`: values as the bytes of C's structures.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Result, Table, Value};
use respool_command::words::until_nul;

use super::arguments::{Given, to_integer};
use super::effort::Effort;
use super::raise;
use crate::limits::SCRIPT_STRING_BYTES_MAX;

/// Bytes of the largest integer that a format may ask for.
const INTEGER_BYTES_MAX: usize = 32;

/// Makes the library.
pub(super) fn library(lua: &Lua, effort: &Rc<Effort>) -> Result<Table> {
    type Verb = fn(&Given<'_>, &Effort) -> Result<MultiValue>;
    let verbs: [(&str, Verb); 3] = [("pack", pack), ("unpack", unpack), ("size", size)];
    let library = lua.create_table()?;
    for (name, verb) in verbs {
        let effort = Rc::clone(effort);
        let function = move |lua: &Lua, values: MultiValue| verb(&Given::new(lua, &values), &effort);
        library.raw_set(name, lua.create_function(function)?)?;
    }
    Ok(library)
}

/// A format on its way, and how its numbers lie.
struct Format<'a> {
    lua: &'a Lua,
    effort: &'a Effort,
    rest: &'a [u8],
    is_little: bool,
    align: usize,
}

impl<'a> Format<'a> {
    /// A format is a text of C's.
    fn new(lua: &'a Lua, format: &'a [u8], effort: &'a Effort) -> Self {
        Self { lua, effort, rest: until_nul(format), is_little: true, align: 1 }
    }

    fn next(&mut self) -> Result<Option<u8>> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        self.effort.step()?;
        self.rest = rest;
        Ok(Some(*first))
    }

    fn count(&mut self, default: usize) -> Result<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<i32>().ok());
        number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| raise::fail(self.lua, "integral size overflow"))
    }

    fn size(&mut self, option: u8) -> Result<usize> {
        Ok(match option {
            b'B' | b'b' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'x' => 1,
            b'c' => self.count(1)?,
            b'i' | b'I' => {
                let size = self.count(4)?;
                if size > INTEGER_BYTES_MAX {
                    let text = format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(raise::fail(self.lua, text));
                }
                size
            }
            _ => 0,
        })
    }

    /// How many bytes are left out in front of an option, so that it lies where C would put it.
    fn padding(&self, length: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let align = size.min(self.align);
        if align > 1 { (align - (length & (align - 1))) & (align - 1) } else { 0 }
    }

    /// Options that take no value.
    fn control(&mut self, option: u8) -> Result<()> {
        match option {
            b' ' => {}
            b'>' => self.is_little = false,
            b'<' => self.is_little = true,
            b'!' => {
                let align = self.count(8)?;
                if align == 0 || !align.is_power_of_two() {
                    return Err(raise::fail(self.lua, format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            other => {
                return Err(raise::bad_argument(
                    self.lua,
                    1,
                    [b"invalid format option '", &[other][..], b"'"].concat(),
                ));
            }
        }
        Ok(())
    }
}

fn pack(given: &Given<'_>, effort: &Effort) -> Result<MultiValue> {
    let lua = given.lua;
    let text = given.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text, effort);
    let mut out: Vec<u8> = Vec::new();
    let mut number = 1;
    while let Some(option) = format.next()? {
        let size = format.size(option)?;
        if out.len().saturating_add(size) > SCRIPT_STRING_BYTES_MAX {
            return Err(raise::throw_text(lua, "not enough memory"));
        }
        out.resize(out.len() + format.padding(out.len(), option, size), 0);
        let mut next = || {
            number += 1;
            number
        };
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = number_at(given, next())?;
                let bits = to_bits(value);
                let bytes = (0..size).map(|place| if place < 8 { (bits >> (8 * place)) as u8 } else { 0 });
                if format.is_little { out.extend(bytes) } else { out.extend(bytes.rev()) }
            }
            b'x' => out.push(0),
            b'f' => {
                let value = number_at(given, next())? as f32;
                out.extend(if format.is_little { value.to_le_bytes() } else { value.to_be_bytes() });
            }
            b'd' => {
                let value = number_at(given, next())?;
                out.extend(if format.is_little { value.to_le_bytes() } else { value.to_be_bytes() });
            }
            b'c' | b's' => {
                let number = next();
                let value = given.string(number)?;
                let value = value.as_bytes();
                let size = if size == 0 { value.len() } else { size };
                if value.len() < size {
                    // Redis has counted on before it looks.
                    return Err(raise::bad_argument(lua, number + 1, "string too short"));
                }
                out.extend_from_slice(&value[..size]);
                effort.note_copied(size);
                if option == b's' {
                    out.push(0);
                }
            }
            other => format.control(other)?,
        }
    }
    Ok(MultiValue::from_iter([Value::String(lua.create_string(out)?)]))
}

/// A double as C makes the bits of an integer of it on the processors that Redis runs on.
fn to_bits(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if number >= HALF { to_integer(number - HALF) as u64 ^ 1 << 63 } else { to_integer(number) as u64 }
}

/// A number to be packed. One that is missing is nil to Redis, which has put a mark behind the arguments.
fn number_at(given: &Given<'_>, number: usize) -> Result<f64> {
    match given.get(number) {
        None => Err(raise::bad_type(given.lua, number, "number", Some(&Value::Nil))),
        Some(_) => given.number(number),
    }
}

fn unpack(given: &Given<'_>, effort: &Effort) -> Result<MultiValue> {
    let lua = given.lua;
    let (text, data) = (given.string(1)?, given.string(2)?);
    let (text, data) = (text.as_bytes(), data.as_bytes());
    let mut format = Format::new(lua, &text, effort);
    let place = given.integer_or(3, 1)?;
    if place == 0 {
        return Err(raise::bad_argument(lua, 3, "offset must be 1 or greater"));
    }
    // A negative place is beyond the end of everything.
    let mut at = usize::try_from(place - 1).unwrap_or(usize::MAX / 2);
    let mut values = MultiValue::new();
    while let Some(option) = format.next()? {
        let size = format.size(option)?;
        at = at.saturating_add(format.padding(at, option, size));
        let bytes = at.checked_add(size).and_then(|end| data.get(at..end));
        let Some(bytes) = bytes else { return Err(raise::bad_argument(lua, 2, "data string too short")) };
        if values.len() as i64 >= crate::limits::UNPACKED_VALUES_MAX {
            return Err(raise::fail(lua, "stack overflow (too many results)"));
        }
        let mut used = size;
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                values.push_back(Value::Number(read_integer(bytes, format.is_little, option.is_ascii_lowercase())));
            }
            b'x' => {}
            b'f' => {
                let raw: [u8; 4] = bytes.try_into().unwrap_or_default();
                let value = if format.is_little { f32::from_le_bytes(raw) } else { f32::from_be_bytes(raw) };
                values.push_back(Value::Number(value.into()));
            }
            b'd' => {
                let raw: [u8; 8] = bytes.try_into().unwrap_or_default();
                let value = if format.is_little { f64::from_le_bytes(raw) } else { f64::from_be_bytes(raw) };
                values.push_back(Value::Number(value));
            }
            b'c' => {
                if size == 0 {
                    // As long as the number before it says.
                    let Some(Value::Number(length)) = values.pop_back() else {
                        return Err(raise::fail(lua, "format 'c0' needs a previous size"));
                    };
                    used = usize::try_from(to_bits(length)).unwrap_or(usize::MAX);
                }
                let bytes = at.checked_add(used).and_then(|end| data.get(at..end));
                let Some(bytes) = bytes else { return Err(raise::bad_argument(lua, 2, "data string too short")) };
                effort.note_copied(used);
                values.push_back(Value::String(lua.create_string(bytes)?));
            }
            b's' => {
                let rest = &data[at..];
                let Some(end) = rest.iter().position(|&byte| byte == 0) else {
                    return Err(raise::fail(lua, "unfinished string in data"));
                };
                used = end + 1;
                effort.note_read(used);
                values.push_back(Value::String(lua.create_string(&rest[..end])?));
            }
            other => format.control(other)?,
        }
        at += used;
    }
    values.push_back(Value::Integer(at as i64 + 1));
    Ok(values)
}

/// Of an integer of more than eight bytes the lowest eight count. Its sign is where C's shift by too many bits puts it.
fn read_integer(bytes: &[u8], is_little: bool, is_signed: bool) -> f64 {
    let add = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    let bits = if is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) };
    let signs = u64::MAX << ((8 * bytes.len()).wrapping_sub(1) & 63);
    match is_signed {
        false => bits as f64,
        true if bits & signs != 0 => (bits | signs) as i64 as f64,
        true => bits as i64 as f64,
    }
}

fn size(given: &Given<'_>, effort: &Effort) -> Result<MultiValue> {
    let lua = given.lua;
    let text = given.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text, effort);
    let mut total = 0_usize;
    while let Some(option) = format.next()? {
        let size = format.size(option)?;
        let padding = format.padding(total, option, size);
        if option == b's' {
            return Err(raise::bad_argument(lua, 1, "option 's' has no fixed size"));
        }
        if option == b'c' && size == 0 {
            return Err(raise::bad_argument(lua, 1, "option 'c0' has no fixed size"));
        }
        if !option.is_ascii_alphanumeric() {
            format.control(option)?;
        }
        total = total.saturating_add(padding + size);
    }
    Ok(MultiValue::from_iter([Value::Integer(i64::try_from(total).unwrap_or(i64::MAX))]))
}
