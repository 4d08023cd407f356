//! The library `cjson`: JSON as lua-cjson 2.1 writes and reads it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Either, Lua, MultiValue, Result, Table, Value};

use super::arguments::{Given, as_number};
use super::convert::{Item, UntilError, item, whole};
use super::effort::Effort;
use super::memory::Unlimited;
use super::raise;
use crate::limits::{JSON_DEPTH_MAX, SCRIPT_STRING_BYTES_MAX};
use crate::script::numbers::{general, read_number};

/// What scripts have set. It stays set for others, as in Redis.
#[derive(Clone, Copy)]
struct Settings {
    sparse_convert: bool,
    sparse_ratio: f64,
    sparse_safe: f64,
    encode_depth: i64,
    decode_depth: i64,
    precision: usize,
    /// Numbers that are none: `Some(true)` as they are, `None` as null.
    encode_invalid: Option<bool>,
    decode_invalid: bool,
    keeps_buffer: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2.0,
            sparse_safe: 10.0,
            encode_depth: 1000,
            decode_depth: 1000,
            precision: 14,
            encode_invalid: Some(false),
            decode_invalid: true,
            keeps_buffer: true,
        }
    }
}

/// Entries of a table that are taken out of it in one go, and how deep in others it may be: twice so many values for each level
/// are held at once.
const FEW_ENTRIES_MAX: usize = 64;
const FEW_ENTRIES_DEPTH_MAX: i64 = 16;

type Shared = Rc<RefCell<Settings>>;
/// One of the two depths that can be set.
type Depth = fn(&mut Settings) -> &mut i64;

/// Makes the library.
pub(super) fn library(lua: &Lua, effort: &Rc<Effort>) -> Result<Table> {
    let settings = Shared::default();
    let library = lua.create_table()?;
    let (shared, of_call) = (Rc::clone(&settings), Rc::clone(effort));
    let encode = lua.create_function(move |lua, values: MultiValue| {
        if values.len() != 1 {
            return Err(raise::bad_argument(lua, 1, "expected 1 argument"));
        }
        let mut writing = Writing { lua, effort: &of_call, settings: *shared.borrow(), out: Vec::new() };
        writing.value(&values[0], 0)?;
        let _unlimited = Unlimited::for_bytes(lua, writing.out.len());
        lua.create_string(writing.out)
    })?;
    library.raw_set("encode", encode)?;
    let (shared, of_call) = (Rc::clone(&settings), Rc::clone(effort));
    let decode = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        if given.len() != 1 {
            return Err(raise::bad_argument(lua, 1, "expected 1 argument"));
        }
        let text = given.string(1)?;
        let text = text.as_bytes();
        if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
            return Err(raise::fail(lua, "JSON parser does not support UTF-16 or UTF-32"));
        }
        of_call.read(text.len())?;
        let _unlimited = Unlimited::for_bytes(lua, text.len());
        let settings = *shared.borrow();
        let mut reading = Reading { lua, effort: &of_call, settings, text: &text, at: 0, depth: 0 };
        let token = reading.next();
        let value = reading.value(token)?;
        let token = reading.next();
        if !matches!(token.kind, Kind::End) {
            return Err(reading.unexpected("the end", &token));
        }
        Ok(value)
    })?;
    library.raw_set("decode", decode)?;
    settings_functions(lua, &library, &settings)?;
    let of_call = Rc::clone(effort);
    library.raw_set("new", lua.create_function(move |lua, ()| self::library(lua, &of_call))?)?;
    library.raw_set("null", Value::NULL)?;
    library.raw_set("_NAME", "cjson")?;
    library.raw_set("_VERSION", "2.1.0")?;
    Ok(library)
}

fn settings_functions(lua: &Lua, library: &Table, settings: &Shared) -> Result<()> {
    let at_most = |given: &Given<'_>, most: usize| match given.len() {
        count if count > most => Err(raise::bad_argument(given.lua, most + 1, "found too many arguments")),
        _ => Ok(()),
    };
    let within = |given: &Given<'_>, number: usize, low: i64, high: i64| {
        // As C's int, which is what the library reads.
        let value = i64::from(given.integer(number)? as i32);
        let text = format!("expected integer between {low} and {high}");
        if (low..=high).contains(&value) { Ok(value) } else { Err(raise::bad_argument(given.lua, number, &text)) }
    };
    let flag = |given: &Given<'_>, number: usize| {
        if let Some(Value::Boolean(value)) = given.get(number) {
            return Ok(Some(*value));
        }
        match &*given.string(number)?.as_bytes() {
            b"on" => Ok(Some(true)),
            b"off" => Ok(Some(false)),
            b"null" => Ok(None),
            other => {
                let why = format!("invalid option '{}'", String::from_utf8_lossy(other));
                Err(raise::bad_argument(given.lua, number, &why))
            }
        }
    };
    let shown = |value: Option<bool>| value.map_or(Value::Nil, Value::Boolean);
    let s = Rc::clone(settings);
    let function = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        at_most(&given, 3)?;
        let mut now = s.borrow_mut();
        if !given.is_none(1) {
            now.sparse_convert = flag(&given, 1)?.unwrap_or(false);
        }
        if !given.is_none(2) {
            now.sparse_ratio = within(&given, 2, 0, i64::from(i32::MAX))? as f64;
        }
        if !given.is_none(3) {
            now.sparse_safe = within(&given, 3, 0, i64::from(i32::MAX))? as f64;
        }
        Ok((now.sparse_convert, now.sparse_ratio, now.sparse_safe))
    })?;
    library.raw_set("encode_sparse_array", function)?;
    let depths: [(&str, Depth); 2] = [
        ("encode_max_depth", |settings| &mut settings.encode_depth),
        ("decode_max_depth", |settings| &mut settings.decode_depth),
    ];
    for (name, field) in depths {
        let s = Rc::clone(settings);
        let function = lua.create_function(move |lua, values: MultiValue| {
            let given = Given::new(lua, &values);
            at_most(&given, 1)?;
            if !given.is_none(1) {
                *field(&mut s.borrow_mut()) = within(&given, 1, 1, i64::from(i32::MAX))?;
            }
            Ok(*field(&mut s.borrow_mut()))
        })?;
        library.raw_set(name, function)?;
    }
    let s = Rc::clone(settings);
    let function = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        at_most(&given, 1)?;
        if !given.is_none(1) {
            s.borrow_mut().precision = within(&given, 1, 1, 14)? as usize;
        }
        Ok(s.borrow().precision)
    })?;
    library.raw_set("encode_number_precision", function)?;
    let s = Rc::clone(settings);
    let function = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        at_most(&given, 1)?;
        if !given.is_none(1) {
            s.borrow_mut().keeps_buffer = flag(&given, 1)?.unwrap_or(false);
        }
        Ok(s.borrow().keeps_buffer)
    })?;
    library.raw_set("encode_keep_buffer", function)?;
    let s = Rc::clone(settings);
    let function = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        at_most(&given, 1)?;
        if !given.is_none(1) {
            s.borrow_mut().encode_invalid = flag(&given, 1)?;
        }
        match s.borrow().encode_invalid {
            None => lua.create_string("null").map(Value::String),
            is_allowed => Ok(shown(is_allowed)),
        }
    })?;
    library.raw_set("encode_invalid_numbers", function)?;
    let s = Rc::clone(settings);
    let function = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        at_most(&given, 1)?;
        if !given.is_none(1) {
            s.borrow_mut().decode_invalid = flag(&given, 1)?.unwrap_or(false);
        }
        Ok(s.borrow().decode_invalid)
    })?;
    library.raw_set("decode_invalid_numbers", function)
}

struct Writing<'a> {
    lua: &'a Lua,
    effort: &'a Effort,
    settings: Settings,
    out: Vec<u8>,
}

impl Writing<'_> {
    fn refuse<T>(&self, value: &Value, why: &str) -> Result<T> {
        Err(raise::fail(self.lua, format!("Cannot serialise {}: {why}", raise::type_name(value))))
    }

    fn value(&mut self, value: &Value, depth: i64) -> Result<()> {
        self.effort.step()?;
        // A table may be in itself many times over.
        if self.out.len() > SCRIPT_STRING_BYTES_MAX {
            return Err(mlua::Error::MemoryError(String::new()));
        }
        match value {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(number) => self.number(value, *number as f64)?,
            Value::Number(number) => self.number(value, *number)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Table(table) => {
                let depth = depth + 1;
                if depth > self.settings.encode_depth.min(JSON_DEPTH_MAX as i64) {
                    return Err(raise::fail(self.lua, format!("Cannot serialise, excessive nesting ({depth})")));
                }
                match entries_of_few(table, depth) {
                    Some(entries) => self.few(table, &entries, depth)?,
                    None => self.many(table, depth)?,
                }
            }
            Value::Nil => self.out.extend_from_slice(b"null"),
            value if value.is_null() => self.out.extend_from_slice(b"null"),
            other => return self.refuse(other, "type not supported"),
        }
        Ok(())
    }

    fn number(&mut self, value: &Value, number: f64) -> Result<()> {
        if !number.is_finite() {
            match self.settings.encode_invalid {
                Some(false) => return self.refuse(value, "must not be NaN or Inf"),
                None => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
                Some(true) if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                Some(true) => {}
            }
        }
        general(number, self.settings.precision, &mut self.out);
        Ok(())
    }

    fn string(&mut self, mut text: &[u8]) {
        self.effort.note_read(text.len());
        self.out.push(b'"');
        loop {
            let plain = text.iter().position(|byte| is_escaped(*byte)).unwrap_or(text.len());
            self.out.extend_from_slice(&text[..plain]);
            let Some(byte) = text.get(plain) else { break };
            text = &text[plain + 1..];
            match byte {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'/' => self.out.extend_from_slice(b"\\/"),
                8 => self.out.extend_from_slice(b"\\b"),
                12 => self.out.extend_from_slice(b"\\f"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                _ => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            }
        }
        self.out.push(b'"');
    }

    /// A table whose entries were taken out of it.
    fn few(&mut self, table: &Table, entries: &[(Value, Value)], depth: i64) -> Result<()> {
        let keys = entries.iter().map(|(key, _)| Ok(number_of(key)));
        match self.array_length(table, keys)? {
            Some(length) if length > 0 => {
                let mut places = 1_usize..;
                let is_in_order =
                    entries.iter().all(|(key, _)| number_of(key) == places.next().map(|place| place as f64));
                if length != entries.len() || !is_in_order {
                    return self.array(table, length, depth);
                }
                for (number, (_, value)) in entries.iter().enumerate() {
                    self.out.push(if number == 0 { b'[' } else { b',' });
                    self.value(value, depth)?;
                }
                self.out.push(b']');
            }
            _ => {
                self.out.push(b'{');
                for (number, (key, value)) in entries.iter().enumerate() {
                    self.pair(number, key, value, depth)?;
                }
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    /// A table that is looked at more than once.
    fn many(&mut self, table: &Table, depth: i64) -> Result<()> {
        // Of values nothing is asked but whether they are true, for which the binding takes no reference.
        let keys = table.pairs::<Value, bool>().map(|pair| pair.map(|(key, _)| number_of(&key)));
        match self.array_length(table, keys)? {
            Some(length) if length > 0 => self.array(table, length, depth),
            _ => self.object(table, depth),
        }
    }

    /// How long an array a table with such keys is. `None`: it is none.
    fn array_length(&self, table: &Table, keys: impl Iterator<Item = Result<Option<f64>>>) -> Result<Option<usize>> {
        // One that does not fit into C's int becomes the smallest there is.
        let as_int = |number: f64| if number <= f64::from(i32::MAX) { number as i32 } else { i32::MIN };
        let (mut most, mut items) = (0_i32, 0.0_f64);
        for key in keys {
            self.effort.step()?;
            let Some(number) = key?.filter(|number| *number >= 1.0 && number.floor() == *number) else {
                return Ok(None);
            };
            if number > f64::from(most) {
                most = as_int(number);
            }
            items += 1.0;
        }
        let settings = &self.settings;
        let length = f64::from(most);
        if settings.sparse_ratio > 0.0 && length > items * settings.sparse_ratio && length > settings.sparse_safe {
            if !settings.sparse_convert {
                return self.refuse(&Value::Table(table.clone()), "excessively sparse array");
            }
            return Ok(None);
        }
        Ok(usize::try_from(most).ok())
    }

    fn array(&mut self, table: &Table, length: usize, depth: i64) -> Result<()> {
        self.out.push(b'[');
        for place in 1..=length {
            if place > 1 {
                self.out.push(b',');
            }
            self.value(&table.raw_get::<Value>(place)?, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> Result<()> {
        self.out.push(b'{');
        for (number, pair) in table.pairs::<Value, Value>().enumerate() {
            let (key, value) = pair?;
            self.pair(number, &key, &value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// A pair behind so many others.
    fn pair(&mut self, number: usize, key: &Value, value: &Value, depth: i64) -> Result<()> {
        if number > 0 {
            self.out.push(b',');
        }
        match key {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.number(key, as_number(key))?;
                self.out.push(b'"');
            }
            other => return self.refuse(other, "table key must be a number or string"),
        }
        self.out.push(b':');
        self.value(value, depth)
    }
}

/// A key that is a number.
fn number_of(key: &Value) -> Option<f64> {
    matches!(key, Value::Integer(_) | Value::Number(_)).then(|| as_number(key))
}

/// The entries of a table, if they are few and it is not deep in others: the binding can hold some thousands of values. It takes
/// them out of a table in one protected call, where it makes one for each if they are asked for one by one.
fn entries_of_few(table: &Table, depth: i64) -> Option<Vec<(Value, Value)>> {
    if depth > FEW_ENTRIES_DEPTH_MAX {
        return None;
    }
    let mut entries = Vec::new();
    let taken = table.for_each(|key: Value, value: Value| {
        if entries.len() == FEW_ENTRIES_MAX {
            return Err(mlua::Error::StackError);
        }
        entries.push((key, value));
        Ok(())
    });
    taken.is_ok().then_some(entries)
}

/// Whether a byte is written otherwise than as it is.
fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | b'/' | 0..=31 | 127)
}

/// A piece of JSON.
struct Token<'t> {
    kind: Kind<'t>,
    /// Where it begins.
    at: usize,
}

enum Kind<'t> {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Cow<'t, [u8]>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Kind<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(text) => text,
        }
    }
}

struct Reading<'a> {
    lua: &'a Lua,
    effort: &'a Effort,
    settings: Settings,
    text: &'a [u8],
    at: usize,
    depth: i64,
}

impl<'a> Reading<'a> {
    fn unexpected(&self, expected: &str, token: &Token<'_>) -> mlua::Error {
        let found = token.kind.name();
        raise::fail(self.lua, format!("Expected {expected} but found {found} at character {}", token.at + 1))
    }

    fn next(&mut self) -> Token<'a> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let at = self.at;
        let mut single = |kind| {
            self.at += 1;
            Token { kind, at }
        };
        match self.text.get(at) {
            None | Some(0) => Token { kind: Kind::End, at },
            Some(b'{') => single(Kind::ObjectBegin),
            Some(b'}') => single(Kind::ObjectEnd),
            Some(b'[') => single(Kind::ArrayBegin),
            Some(b']') => single(Kind::ArrayEnd),
            Some(b',') => single(Kind::Comma),
            Some(b':') => single(Kind::Colon),
            Some(b'"') => self.string(at),
            Some(b'-' | b'0'..=b'9') if self.settings.decode_invalid || self.is_valid_number() => self.number(at),
            Some(b'-' | b'0'..=b'9') => Token { kind: Kind::Error("invalid number"), at },
            Some(_) => self.word(at),
        }
    }

    fn word(&mut self, at: usize) -> Token<'a> {
        let rest = &self.text[at..];
        for (word, kind) in [("true", Kind::Boolean(true)), ("false", Kind::Boolean(false)), ("null", Kind::Null)] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Token { kind, at };
            }
        }
        let is_infinity_or_none =
            rest.len() >= 3 && (rest[..3].eq_ignore_ascii_case(b"inf") || rest[..3].eq_ignore_ascii_case(b"nan"));
        if self.settings.decode_invalid && (is_infinity_or_none || rest[0] == b'+') {
            return self.number(at);
        }
        Token { kind: Kind::Error("invalid token"), at }
    }

    /// Whether what begins here is no number that only C knows. What is no number at all is found when it is read.
    fn is_valid_number(&self) -> bool {
        let rest = &self.text[self.at..];
        let digits = rest.strip_prefix(b"-").unwrap_or(rest);
        let is_word = |word| digits.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(word));
        !matches!(digits, [b'0', b'x' | b'X' | b'0'..=b'9', ..]) && !is_word(b"inf") && !is_word(b"nan")
    }

    fn number(&mut self, at: usize) -> Token<'a> {
        match read_number(&self.text[at..]) {
            Some((number, length)) => {
                self.at += length;
                Token { kind: Kind::Number(number), at }
            }
            None => Token { kind: Kind::Error("invalid number"), at },
        }
    }

    fn string(&mut self, at: usize) -> Token<'a> {
        self.at += 1;
        let rest = &self.text[self.at..];
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0)).unwrap_or(rest.len());
        self.at += plain;
        if rest.get(plain) == Some(&b'"') {
            self.at += 1;
            return Token { kind: Kind::String(Cow::Borrowed(&rest[..plain])), at };
        }
        let mut made = rest[..plain].to_vec();
        loop {
            let error = |text, at| Token { kind: Kind::Error(text), at };
            match self.text.get(self.at) {
                None | Some(0) => return error("unexpected end of string", self.at),
                Some(b'"') => {
                    self.at += 1;
                    return Token { kind: Kind::String(Cow::Owned(made)), at };
                }
                Some(b'\\') => {
                    let plain = match self.text.get(self.at + 1) {
                        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
                        Some(b'b') => 8,
                        Some(b'f') => 12,
                        Some(b'n') => b'\n',
                        Some(b'r') => b'\r',
                        Some(b't') => b'\t',
                        Some(b'u') => match self.unicode() {
                            Some(letter) => {
                                let mut bytes = [0; 4];
                                made.extend_from_slice(encode_utf8(letter, &mut bytes));
                                continue;
                            }
                            None => return error("invalid unicode escape code", self.at),
                        },
                        _ => return error("invalid escape code", self.at),
                    };
                    made.push(plain);
                    self.at += 2;
                }
                Some(byte) => {
                    made.push(*byte);
                    self.at += 1;
                }
            }
        }
    }

    /// Parses an escape of four hexadecimal digits (`\u0041`), or a surrogate pair of two.
    fn unicode(&mut self) -> Option<u32> {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 4)?;
            digits.iter().try_fold(0, |all, &digit| Some(all << 4 | char::from(digit).to_digit(16)?))
        };
        let first = unit(self.at + 2)?;
        if !(0xd800..0xe000).contains(&first) {
            self.at += 6;
            return Some(first);
        }
        if first >= 0xdc00 || self.text.get(self.at + 6..self.at + 8) != Some(b"\\u") {
            return None;
        }
        let second = unit(self.at + 8).filter(|second| (0xdc00..0xe000).contains(second))?;
        self.at += 12;
        Some(0x10000 + ((first & 0x3ff) << 10 | second & 0x3ff))
    }

    fn value(&mut self, token: Token<'a>) -> Result<Value> {
        self.effort.step()?;
        match token.kind {
            Kind::String(text) => self.lua.create_string(text).map(Value::String),
            Kind::Number(number) => Ok(Value::Number(number)),
            Kind::Boolean(value) => Ok(Value::Boolean(value)),
            Kind::Null => Ok(Value::NULL),
            Kind::ObjectBegin => self.deeper(Self::object),
            Kind::ArrayBegin => self.deeper(Self::array),
            _ => Err(self.unexpected("value", &token)),
        }
    }

    /// The value that begins with a token, to be put into a table. A text with escapes is not in the document.
    fn item(&mut self, token: Token<'a>) -> Result<Item<'a>> {
        match token.kind {
            Kind::String(Cow::Borrowed(text)) => {
                self.effort.read(text.len())?;
                item(self.lua, text)
            }
            _ => self.value(token).map(Either::Right),
        }
    }

    /// The text of a key.
    fn key(&self, text: Cow<'a, [u8]>) -> Result<Item<'a>> {
        match text {
            Cow::Borrowed(text) => item(self.lua, text),
            Cow::Owned(text) => self.lua.create_string(text).map(|text| Either::Right(Value::String(text))),
        }
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Result<Value>) -> Result<Value> {
        self.depth += 1;
        if self.depth > self.settings.decode_depth.min(JSON_DEPTH_MAX as i64) {
            let (depth, at) = (self.depth, self.at);
            let text = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(raise::fail(self.lua, text));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value> {
        let lua = self.lua;
        let mut key = Some(self.next()).filter(|first| !matches!(first.kind, Kind::ObjectEnd));
        let pairs = std::iter::from_fn(|| {
            let pair = self.pair(key.take()?);
            Some(pair.map(|(pair, next)| {
                key = next;
                pair
            }))
        });
        whole(|error| lua.create_table_from(UntilError { items: pairs, error })).map(Value::Table)
    }

    /// The pair whose key a token is, and the token that is the next key.
    fn pair(&mut self, key: Token<'a>) -> Result<((Item<'a>, Item<'a>), Option<Token<'a>>)> {
        let Token { kind: Kind::String(text), .. } = key else {
            return Err(self.unexpected("object key string", &key));
        };
        let colon = self.next();
        if !matches!(colon.kind, Kind::Colon) {
            return Err(self.unexpected("colon", &colon));
        }
        let first = self.next();
        let pair = (self.key(text)?, self.item(first)?);
        let next = self.next();
        match next.kind {
            Kind::ObjectEnd => Ok((pair, None)),
            Kind::Comma => Ok((pair, Some(self.next()))),
            _ => Err(self.unexpected("comma or object end", &next)),
        }
    }

    fn array(&mut self) -> Result<Value> {
        let lua = self.lua;
        let mut first = Some(self.next()).filter(|first| !matches!(first.kind, Kind::ArrayEnd));
        let items = std::iter::from_fn(|| {
            let element = self.element(first.take()?);
            Some(element.map(|(element, next)| {
                first = next;
                element
            }))
        });
        whole(|error| lua.create_sequence_from(UntilError { items, error })).map(Value::Table)
    }

    /// The element that begins with a token, and the token that the next one begins with.
    fn element(&mut self, first: Token<'a>) -> Result<(Item<'a>, Option<Token<'a>>)> {
        let element = self.item(first)?;
        let next = self.next();
        match next.kind {
            Kind::ArrayEnd => Ok((element, None)),
            Kind::Comma => Ok((element, Some(self.next()))),
            _ => Err(self.unexpected("comma or array end", &next)),
        }
    }
}

fn encode_utf8(letter: u32, bytes: &mut [u8; 4]) -> &[u8] {
    match char::from_u32(letter) {
        Some(letter) => letter.encode_utf8(bytes).as_bytes(),
        None => b"",
    }
}
