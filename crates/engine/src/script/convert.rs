//! Replies as Lua values, and Lua values as replies: Redis's conversion rules, both ways.

use mlua::{Either, Lua, LuaString, Result, Table, Value};
use respool_command::words::until_nul;
use respool_wire::{DoubleText, Encoder, Protocol};

use super::arguments::to_integer;
use super::effort::Effort;
use super::text;
use crate::limits::{REPLY_BYTES_MAX, SCRIPT_REPLY_DEPTH_MAX};
use crate::number::integer::{self, IntegerText};

/// Reads replies that the engine has written, one after the other.
pub(super) struct Reading<'a> {
    pub(super) lua: &'a Lua,
    pub(super) rest: &'a [u8],
}

impl<'a> Reading<'a> {
    fn line(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| byte == b'\r').unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 2..).unwrap_or_default();
        line
    }

    fn text(&mut self, length: usize) -> &'a [u8] {
        let length = length.min(self.rest.len());
        let text = &self.rest[..length];
        self.rest = self.rest.get(length + 2..).unwrap_or_default();
        text
    }

    /// The next reply. How deep it is the engine's own commands decide, which nest a few levels.
    pub(super) fn value(&mut self) -> Result<Value> {
        let line = self.line();
        let (kind, head) = line.split_first().map_or((b'_', line), |(kind, head)| (*kind, head));
        let number = || integer::parse(head);
        let length = || number().and_then(|length| usize::try_from(length).ok());
        match kind {
            b'+' => self.tagged("ok", head),
            b'-' => self.tagged("err", head),
            b':' => Ok(Value::Number(number().unwrap_or_default() as f64)),
            b'$' => match length() {
                Some(length) => self.lua.create_string(self.text(length)).map(Value::String),
                None => Ok(Value::Boolean(false)),
            },
            b'*' | b'>' => match length() {
                Some(length) => self.array(length),
                None => Ok(Value::Boolean(false)),
            },
            b'%' => {
                let (lua, count) = (self.lua, length().unwrap_or_default());
                let map = whole(|error| {
                    let pairs = (0..count).map(|_| Ok((self.item()?, self.item()?)));
                    lua.create_table_from(UntilError { items: pairs, error })
                })?;
                self.wrapped("map", Value::Table(map))
            }
            b'~' => {
                let (lua, count) = (self.lua, length().unwrap_or_default());
                let set = whole(|error| {
                    let members = (0..count).map(|_| Ok((self.item()?, true)));
                    lua.create_table_from(UntilError { items: members, error })
                })?;
                self.wrapped("set", Value::Table(set))
            }
            b'#' => Ok(Value::Boolean(head == b"t")),
            b',' => self.wrapped("double", Value::Number(double(head))),
            b'(' => self.tagged("big_number", head),
            b'=' => {
                let text = self.text(length().unwrap_or_default());
                let (format, string) = text.split_at(text.len().min(4));
                let verbatim = self.lua.create_table()?;
                verbatim.raw_set("format", self.lua.create_string(&format[..format.len().min(3)])?)?;
                verbatim.raw_set("string", self.lua.create_string(string)?)?;
                self.wrapped("verbatim_string", Value::Table(verbatim))
            }
            b'!' => {
                let text = self.text(length().unwrap_or_default());
                self.tagged("err", text)
            }
            // An attribute, which Lua has no place for, and what it belongs to.
            b'|' => {
                for _ in 0..2 * length().unwrap_or_default() {
                    self.value()?;
                }
                self.value()
            }
            _ => Ok(Value::Nil),
        }
    }

    fn array(&mut self, length: usize) -> Result<Value> {
        let lua = self.lua;
        let array = whole(|error| {
            let items = (0..length).map(|_| self.item());
            lua.create_sequence_from(UntilError { items, error })
        })?;
        Ok(Value::Table(array))
    }

    /// The next reply, to be put into a table.
    fn item(&mut self) -> Result<Item<'a>> {
        match self.string() {
            Some(text) => item(self.lua, text),
            None => self.value().map(Either::Right),
        }
    }

    /// The next reply, if it is a string.
    fn string(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest;
        if rest.first() == Some(&b'$') {
            if let Some(length) = integer::parse(&self.line()[1..]).and_then(|length| usize::try_from(length).ok()) {
                return Some(self.text(length));
            }
            self.rest = rest;
        }
        None
    }

    fn tagged(&self, tag: &str, text: &[u8]) -> Result<Value> {
        match std::str::from_utf8(text) {
            Ok(text) => self.lua.create_table_from([(tag, text)]).map(Value::Table),
            Err(_) => self.wrapped(tag, Value::String(self.lua.create_string(text)?)),
        }
    }

    fn wrapped(&self, tag: &str, value: Value) -> Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(tag, value)?;
        Ok(Value::Table(table))
    }
}

/// What is put into a table: the binding moves a `str` there without a reference of its own.
pub(super) type Item<'a> = Either<&'a str, Value>;

/// A text that is put into a table.
#[inline]
pub(super) fn item<'a>(lua: &Lua, text: &'a [u8]) -> Result<Item<'a>> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(Either::Left(text)),
        Err(_) => lua.create_string(text).map(|text| Either::Right(Value::String(text))),
    }
}

/// What is made of items up to the first error, for a binding that takes no errors from an iterator.
pub(super) struct UntilError<'e, I> {
    pub(super) items: I,
    pub(super) error: &'e mut Option<mlua::Error>,
}

impl<T, I: Iterator<Item = Result<T>>> Iterator for UntilError<'_, I> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match self.items.next()? {
            Ok(item) => Some(item),
            Err(error) => {
                *self.error = Some(error);
                None
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

/// A table whose making has met no error, by itself or in what was given to it.
pub(super) fn whole(make: impl FnOnce(&mut Option<mlua::Error>) -> Result<Table>) -> Result<Table> {
    let mut error = None;
    let made = make(&mut error);
    match error {
        Some(error) => Err(error),
        None => made,
    }
}

fn double(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// A number as an argument of a command.
pub(super) fn number_argument(number: f64, out: &mut Vec<u8>) {
    let whole = number as i64;
    if whole as f64 == number && number.abs() < 1e17 && (whole != 0 || number.is_sign_positive()) {
        out.extend_from_slice(IntegerText::new(whole).as_bytes());
    } else if number.is_nan() && number.is_sign_negative() {
        // What Lua makes of 0/0 is printed with a sign by C.
        out.extend_from_slice(b"-nan");
    } else {
        out.extend_from_slice(DoubleText::new(number).as_bytes());
    }
}

/// The steps of looking for the fields by which a table says what it stands for.
const TABLE_STEPS: usize = 8;

/// The fields by which a table says what it stands for: made once, since each is looked for in every table.
pub(super) struct Tags {
    err: LuaString,
    ok: LuaString,
    double: LuaString,
    map: LuaString,
    set: LuaString,
    big_number: LuaString,
    verbatim_string: LuaString,
}

impl Tags {
    pub(super) fn new(lua: &Lua) -> Result<Self> {
        Ok(Self {
            err: lua.create_string("err")?,
            ok: lua.create_string("ok")?,
            double: lua.create_string("double")?,
            map: lua.create_string("map")?,
            set: lua.create_string("set")?,
            big_number: lua.create_string("big_number")?,
            verbatim_string: lua.create_string("verbatim_string")?,
        })
    }
}

/// Writes a script's value as a reply. `is_resp3` is the dialect that the script has asked for itself.
pub(super) fn write(
    tags: &Tags,
    value: &Value,
    is_resp3: bool,
    effort: &Effort,
    reply: &mut Encoder<'_>,
) -> Result<()> {
    let noted = reply.position();
    Writing { tags, is_resp3, effort, noted, reply }.value(value, 0)
}

struct Writing<'a, 'o> {
    tags: &'a Tags,
    is_resp3: bool,
    /// What is written is work of the script, as all that is done for it.
    effort: &'a Effort,
    /// How far that has been counted.
    noted: usize,
    reply: &'a mut Encoder<'o>,
}

impl Writing<'_, '_> {
    /// A value within another: a table may be in itself many times over.
    fn item(&mut self, value: &Value, depth: usize) -> Result<()> {
        let position = self.reply.position();
        if position > REPLY_BYTES_MAX {
            return Err(mlua::Error::MemoryError(String::new()));
        }
        self.effort.copy(position - self.noted)?;
        self.noted = position;
        self.value(value, depth)
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        match value {
            Value::String(text) => self.reply.bulk(&text.as_bytes()),
            Value::Integer(number) => self.reply.integer(*number),
            Value::Number(number) => self.reply.integer(to_integer(*number)),
            Value::Boolean(is_true) if self.is_resp3 => self.reply.boolean(*is_true),
            Value::Boolean(true) => self.reply.integer(1),
            Value::Table(_) if depth >= SCRIPT_REPLY_DEPTH_MAX => self.reply.error(text::STACK_LIMIT),
            Value::Table(table) => return self.table(table, depth + 1),
            _ => self.reply.null(),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<()> {
        self.effort.note_steps(TABLE_STEPS);
        let tags = self.tags;
        let reply = &mut *self.reply;
        let string = |tag: &LuaString| -> Result<Option<LuaString>> {
            Ok(match table.raw_get::<Value>(tag)? {
                Value::String(text) => Some(text),
                _ => None,
            })
        };
        if let Some(text) = string(&tags.err)? {
            reply.error(until_nul(&text.as_bytes()));
            return Ok(());
        }
        if let Some(text) = string(&tags.ok)? {
            reply.simple_bytes(until_nul(&text.as_bytes()));
            return Ok(());
        }
        match table.raw_get::<Value>(&tags.double)? {
            // What Lua makes of 0/0 is printed with a sign by C.
            Value::Number(number) if number.is_nan() && number.is_sign_negative() => {
                if reply.protocol() == Protocol::Resp3 {
                    reply.raw(b",-nan\r\n")
                } else {
                    reply.bulk(b"-nan")
                }
                return Ok(());
            }
            Value::Number(number) => {
                reply.double(number);
                return Ok(());
            }
            Value::Integer(number) => {
                reply.double(number as f64);
                return Ok(());
            }
            _ => {}
        }
        if let Value::Table(map) = table.raw_get(&tags.map)? {
            return self.pairs(&map, false, depth);
        }
        if let Value::Table(set) = table.raw_get(&tags.set)? {
            return self.pairs(&set, true, depth);
        }
        if let Some(digits) = string(&tags.big_number)? {
            let digits: Vec<u8> =
                digits.as_bytes().iter().map(|&byte| if is_line_end(byte) { b' ' } else { byte }).collect();
            if reply.protocol() == Protocol::Resp3 {
                reply.big_number(&digits)
            } else {
                reply.bulk(&digits)
            }
            return Ok(());
        }
        if let Value::Table(verbatim) = table.raw_get(&tags.verbatim_string)?
            && let (Value::String(format), Value::String(text)) =
                (verbatim.raw_get("format")?, verbatim.raw_get("string")?)
        {
            let mut kind = [b' '; 3];
            kind.iter_mut().zip(until_nul(&format.as_bytes())).for_each(|(kind, byte)| *kind = *byte);
            reply.verbatim_bytes(kind, &text.as_bytes());
            return Ok(());
        }
        // Of values that are counted nothing is asked but whether they are true, for which the binding takes no reference.
        let counted = table.sequence_values::<bool>().try_fold(0, |count, value| value.map(|_| count + 1));
        self.reply.array(counted?);
        for value in table.sequence_values::<Value>() {
            self.item(&value?, depth)?;
        }
        Ok(())
    }

    /// The keys of a table, with their values unless it stands for a set.
    fn pairs(&mut self, table: &Table, is_set: bool, depth: usize) -> Result<()> {
        let mut count = 0;
        table.for_each::<Value, Value>(|_, _| {
            count += 1;
            Ok(())
        })?;
        if is_set {
            self.reply.set(count)
        } else {
            self.reply.map(count)
        }
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            self.item(&key, depth)?;
            if !is_set {
                self.item(&value, depth)?;
            }
        }
        Ok(())
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}
