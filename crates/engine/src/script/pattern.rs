//! Patterns of strings: `find`, `match`, `gmatch`, `gsub` as Lua 5.1 has them, with two bounds that it lacks.
//!
//! In Lua's own library a pattern of twenty letters can take years, where nothing can interrupt it, and a long one ends the
//! process at the end of its stack. Here every step counts as the script's, and depth has a limit.

use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Result, Table, Value};
use respool_command::words::until_nul;

use super::arguments::{Given, to_integer};
use super::effort::Effort;
use super::raise;
use crate::limits::{PATTERN_DEPTH_MAX, SCRIPT_STRING_BYTES_MAX};
use crate::number::integer::IntegerText;

/// Captures of one pattern, as in Lua.
const CAPTURES_MAX: usize = 32;

/// Puts the functions into the library of strings.
pub(super) fn register(lua: &Lua, strings: &Table, effort: &Rc<Effort>) -> Result<()> {
    let of_call = Rc::clone(effort);
    let function = move |lua: &Lua, values: MultiValue| find(&Given::new(lua, &values), &of_call, true);
    strings.raw_set("find", lua.create_function(function)?)?;
    let of_call = Rc::clone(effort);
    let function = move |lua: &Lua, values: MultiValue| find(&Given::new(lua, &values), &of_call, false);
    strings.raw_set("match", lua.create_function(function)?)?;
    let of_call = Rc::clone(effort);
    let protected = Protected {
        call: lua.globals().raw_get("pcall")?,
        index: lua.load("local table, key = ... return table[key]").set_name(raise::PRELUDE).into_function()?,
    };
    let function = move |lua: &Lua, values: MultiValue| gsub(&Given::new(lua, &values), &of_call, &protected);
    strings.raw_set("gsub", lua.create_function(function)?)?;
    let of_call = Rc::clone(effort);
    strings.raw_set("rep", lua.create_function(move |lua, values: MultiValue| repeat(lua, values, &of_call))?)?;
    // What an iterator calls: text, pattern, where to go on; gives the next place and the captures.
    let of_call = Rc::clone(effort);
    let step = lua.create_function(move |lua, (text, pattern, at): (LuaString, LuaString, usize)| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let mut matching = Matching::new(lua, &of_call, &text, &pattern);
        for start in at..=text.len() {
            if let Some(end) = matching.run(start, 0)? {
                let next = if end == start { end + 1 } else { end };
                let mut values = matching.captures(Some((start, end)))?;
                values.push_front(Value::Integer(next as i64));
                return Ok(values);
            }
        }
        Ok(MultiValue::new())
    })?;
    let gmatch = lua.create_function(|lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let (text, pattern) = (given.string(1)?, given.string(2)?);
        Ok((text, pattern))
    })?;
    // The iterator is a closure of Lua's: one of Rust's that held the text could not be collected with it.
    let make = lua
        .load(
            "local step, read = ...\nlocal function rest(state, next, ...)\nstate[1] = next\nreturn ...\nend\n\
             return function(...)\nlocal text, pattern = read(...)\nlocal state = {0}\n\
             return function()\nif state[1] then return rest(state, step(text, pattern, state[1])) end\nend\nend",
        )
        .set_name(raise::PRELUDE);
    let gmatch: Function = make.call((step, gmatch))?;
    strings.raw_set("gmatch", &gmatch)?;
    strings.raw_set("gfind", gmatch)
}

/// One capture: where it begins and how long it is.
#[derive(Clone, Copy)]
struct Capture {
    start: usize,
    length: Length,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Unfinished,
    Position,
    Of(usize),
}

/// What a capture stands for.
enum Captured<'m> {
    Text(&'m [u8]),
    /// Counted from one.
    Position(i64),
}

struct Matching<'m> {
    lua: &'m Lua,
    effort: &'m Effort,
    text: &'m [u8],
    pattern: &'m [u8],
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    depth: usize,
}

impl<'m> Matching<'m> {
    /// A pattern is a text of C's.
    fn new(lua: &'m Lua, effort: &'m Effort, text: &'m [u8], pattern: &'m [u8]) -> Self {
        let pattern = until_nul(pattern);
        let captures = [Capture { start: 0, length: Length::Unfinished }; CAPTURES_MAX];
        Self { lua, effort, text, pattern, captures, level: 0, depth: 0 }
    }

    fn fail<T>(&self, text: &str) -> Result<T> {
        Err(raise::fail(self.lua, text))
    }

    /// Matches at one place. Result: where the match ends.
    fn run(&mut self, start: usize, pattern: usize) -> Result<Option<usize>> {
        self.level = 0;
        self.depth = 0;
        self.match_at(start, pattern)
    }

    fn match_at(&mut self, text: usize, pattern: usize) -> Result<Option<usize>> {
        if self.depth >= PATTERN_DEPTH_MAX {
            return self.fail("pattern too complex");
        }
        self.depth += 1;
        let found = self.match_on(text, pattern);
        self.depth -= 1;
        found
    }

    fn match_on(&mut self, mut text: usize, mut pattern: usize) -> Result<Option<usize>> {
        loop {
            self.effort.step()?;
            let Some(&first) = self.pattern.get(pattern) else { return Ok(Some(text)) };
            let second = self.pattern.get(pattern + 1).copied();
            match (first, second) {
                (b'(', Some(b')')) => return self.open(text, pattern + 2, Length::Position),
                (b'(', _) => return self.open(text, pattern + 1, Length::Unfinished),
                (b')', _) => return self.close(text, pattern + 1),
                (b'%', Some(b'b')) => match self.balance(text, pattern + 2)? {
                    Some(end) => {
                        text = end;
                        pattern += 4;
                        continue;
                    }
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => {
                    pattern += 2;
                    if self.pattern.get(pattern) != Some(&b'[') {
                        return self.fail("missing '[' after '%f' in pattern");
                    }
                    let end = self.class_end(pattern)?;
                    let before = if text == 0 { 0 } else { self.text[text - 1] };
                    let here = self.text.get(text).copied().unwrap_or(0);
                    if self.is_in_set(before, pattern, end - 1) || !self.is_in_set(here, pattern, end - 1) {
                        return Ok(None);
                    }
                    pattern = end;
                    continue;
                }
                (b'%', Some(digit @ b'0'..=b'9')) => match self.repeat(text, digit)? {
                    Some(end) => {
                        text = end;
                        pattern += 2;
                        continue;
                    }
                    None => return Ok(None),
                },
                (b'$', None) => return Ok((text == self.text.len()).then_some(text)),
                _ => {}
            }
            let end = self.class_end(pattern)?;
            let is_here = self.is_single(text, pattern, end);
            match self.pattern.get(end) {
                Some(b'?') => {
                    if is_here && let Some(found) = self.match_at(text + 1, end + 1)? {
                        return Ok(Some(found));
                    }
                    pattern = end + 1;
                }
                Some(b'*') => return self.expand_most(text, pattern, end),
                Some(b'+') => return if is_here { self.expand_most(text + 1, pattern, end) } else { Ok(None) },
                Some(b'-') => return self.expand_least(text, pattern, end),
                _ if is_here => {
                    text += 1;
                    pattern = end;
                }
                _ => return Ok(None),
            }
        }
    }

    fn expand_most(&mut self, text: usize, pattern: usize, end: usize) -> Result<Option<usize>> {
        let mut count = 0;
        while self.is_single(text + count, pattern, end) {
            self.effort.step()?;
            count += 1;
        }
        loop {
            if let Some(found) = self.match_at(text + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn expand_least(&mut self, mut text: usize, pattern: usize, end: usize) -> Result<Option<usize>> {
        loop {
            if let Some(found) = self.match_at(text, end + 1)? {
                return Ok(Some(found));
            }
            if !self.is_single(text, pattern, end) {
                return Ok(None);
            }
            text += 1;
        }
    }

    fn open(&mut self, text: usize, pattern: usize, length: Length) -> Result<Option<usize>> {
        if self.level >= CAPTURES_MAX {
            return self.fail("too many captures");
        }
        self.captures[self.level] = Capture { start: text, length };
        self.level += 1;
        let found = self.match_at(text, pattern)?;
        if found.is_none() {
            self.level -= 1;
        }
        Ok(found)
    }

    fn close(&mut self, text: usize, pattern: usize) -> Result<Option<usize>> {
        let open = (0..self.level).rev().find(|at| self.captures[*at].length == Length::Unfinished);
        let Some(open) = open else { return self.fail("invalid pattern capture") };
        self.captures[open].length = Length::Of(text - self.captures[open].start);
        let found = self.match_at(text, pattern)?;
        if found.is_none() {
            self.captures[open].length = Length::Unfinished;
        }
        Ok(found)
    }

    fn balance(&self, text: usize, pattern: usize) -> Result<Option<usize>> {
        let (Some(&open), Some(&close)) = (self.pattern.get(pattern), self.pattern.get(pattern + 1)) else {
            return self.fail("unbalanced pattern");
        };
        if self.text.get(text) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        let mut rest = self.text[text + 1..].iter();
        let is_last = |&byte: &u8| {
            if byte == close {
                depth -= 1;
            } else if byte == open {
                depth += 1;
            }
            depth == 0
        };
        let end = rest.position(is_last).map(|at| text + at + 2);
        self.effort.note_read(end.unwrap_or(self.text.len()) - text);
        Ok(end)
    }

    fn repeat(&self, text: usize, digit: u8) -> Result<Option<usize>> {
        let number = usize::from(digit.wrapping_sub(b'1'));
        let capture = self.captures[..self.level].get(number);
        let Some(&Capture { start, length: Length::Of(length) }) = capture else {
            let is_position = capture.is_some_and(|capture| capture.length == Length::Position);
            return if is_position { Ok(None) } else { self.fail("invalid capture index") };
        };
        let captured = &self.text[start..start + length];
        self.effort.note_copied(length);
        Ok(self.text[text..].starts_with(captured).then_some(text + length))
    }

    /// Where one class of characters ends.
    fn class_end(&self, pattern: usize) -> Result<usize> {
        match self.pattern.get(pattern) {
            Some(b'%') if pattern + 1 >= self.pattern.len() => self.fail("malformed pattern (ends with '%')"),
            Some(b'%') => Ok(pattern + 2),
            Some(b'[') => {
                let mut at = pattern + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // The first one may be a bracket.
                loop {
                    let byte = self.pattern.get(at).copied();
                    at += 1;
                    match byte {
                        None => return self.fail("malformed pattern (missing ']')"),
                        Some(b'%') if at < self.pattern.len() => at += 1,
                        _ => {}
                    }
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(pattern + 1),
        }
    }

    fn is_single(&self, text: usize, pattern: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(text) else { return false };
        match self.pattern[pattern] {
            b'.' => true,
            b'%' => is_in_class(byte, self.pattern[pattern + 1]),
            b'[' => self.is_in_set(byte, pattern, end - 1),
            other => other == byte,
        }
    }

    /// Whether a character is in the set between two brackets.
    fn is_in_set(&self, byte: u8, open: usize, close: usize) -> bool {
        self.effort.note_read(close - open);
        let is_negated = self.pattern.get(open + 1) == Some(&b'^');
        let mut at = open + 1 + usize::from(is_negated);
        while at < close {
            let this = self.pattern[at];
            if this == b'%' {
                at += 1;
                if is_in_class(byte, self.pattern[at]) {
                    return !is_negated;
                }
            } else if self.pattern.get(at + 1) == Some(&b'-') && at + 2 < close {
                if (this..=self.pattern[at + 2]).contains(&byte) {
                    return !is_negated;
                }
                at += 2;
            } else if this == byte {
                return !is_negated;
            }
            at += 1;
        }
        is_negated
    }

    fn capture(&self, number: usize, whole: Option<(usize, usize)>) -> Result<Value> {
        match self.captured(number, whole)? {
            Captured::Text(text) => self.lua.create_string(text).map(Value::String),
            Captured::Position(position) => Ok(Value::Integer(position)),
        }
    }

    fn captured(&self, number: usize, whole: Option<(usize, usize)>) -> Result<Captured<'m>> {
        if number >= self.level {
            return match whole {
                Some((start, end)) if number == 0 => Ok(Captured::Text(&self.text[start..end])),
                _ => self.fail("invalid capture index"),
            };
        }
        let Capture { start, length } = self.captures[number];
        match length {
            Length::Position => Ok(Captured::Position(start as i64 + 1)),
            Length::Of(length) => Ok(Captured::Text(&self.text[start..start + length])),
            Length::Unfinished => self.fail("unfinished capture"),
        }
    }

    /// All captures; the whole match if there are none and it is given.
    fn captures(&self, whole: Option<(usize, usize)>) -> Result<MultiValue> {
        let count = if self.level == 0 && whole.is_some() { 1 } else { self.level };
        (0..count).map(|number| self.capture(number, whole)).collect()
    }
}

fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | 9..=13),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

/// Where to begin, from a number that counts from one, or back from the end.
fn start_of(given: i64, length: usize) -> usize {
    let length = length as i64;
    let start = if given < 0 { (length + given).max(-1) } else { given - 1 };
    start.clamp(0, length) as usize
}

fn find(given: &Given<'_>, effort: &Effort, is_find: bool) -> Result<MultiValue> {
    let (text, pattern) = (given.string(1)?, given.string(2)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let start = start_of(given.integer_or(3, 1)?, text.len());
    effort.read(pattern.len())?;
    let is_plain = !until_nul(&pattern).iter().any(|byte| b"^$*+?.([%-".contains(byte));
    if is_find && (given.is_true(4) || is_plain) {
        let found = position(&text[start..], &pattern, effort)?;
        return Ok(found.map_or_else(nothing, |at| {
            let first = (start + at) as i64;
            MultiValue::from_iter([Value::Integer(first + 1), Value::Integer(first + pattern.len() as i64)])
        }));
    }
    let is_anchored = pattern.first() == Some(&b'^');
    let mut matching = Matching::new(given.lua, effort, &text, &pattern);
    for at in start..=text.len() {
        if let Some(end) = matching.run(at, usize::from(is_anchored))? {
            if !is_find {
                return matching.captures(Some((at, end)));
            }
            let mut values = matching.captures(None)?;
            values.push_front(Value::Integer(end as i64));
            values.push_front(Value::Integer(at as i64 + 1));
            return Ok(values);
        }
        if is_anchored {
            break;
        }
    }
    Ok(nothing())
}

fn nothing() -> MultiValue {
    MultiValue::from_iter([Value::Nil])
}

/// Where a text stands in another. Texts that are made to be slow take the product of their lengths, as in Lua, but can be interrupted.
fn position(text: &[u8], part: &[u8], effort: &Effort) -> Result<Option<usize>> {
    let Some((&first, rest)) = part.split_first() else { return Ok(Some(0)) };
    let mut at = 0;
    loop {
        let searched = text.get(at..).unwrap_or_default();
        let found = searched.iter().position(|&byte| byte == first);
        effort.copy(found.unwrap_or(searched.len()).saturating_add(rest.len()))?;
        let Some(found) = found else { return Ok(None) };
        if text[at + found + 1..].starts_with(rest) {
            return Ok(Some(at + found));
        }
        at += found + 1;
    }
}

fn gsub(given: &Given<'_>, effort: &Effort, protected: &Protected) -> Result<(LuaString, usize)> {
    let lua = given.lua;
    let (text, pattern) = (given.string(1)?, given.string(2)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let replacement = match given.get(3) {
        Some(value @ (Value::Integer(_) | Value::Number(_))) => match lua.coerce_string(value.clone())? {
            Some(text) => Value::String(text),
            None => Value::Nil,
        },
        Some(value @ (Value::String(_) | Value::Table(_) | Value::Function(_))) => value.clone(),
        _ => return Err(raise::bad_argument(lua, 3, "string/function/table expected")),
    };
    // As C's int.
    let most = given.integer_or(4, text.len() as i64 + 1)? as i32;
    effort.read(pattern.len())?;
    let is_anchored = pattern.first() == Some(&b'^');
    let mut matching = Matching::new(lua, effort, &text, &pattern);
    let (mut made, mut at, mut count) = (Vec::with_capacity(text.len()), 0, 0);
    while (count as i64) < i64::from(most) {
        let found = matching.run(at, usize::from(is_anchored))?;
        if let Some(end) = found {
            count += 1;
            replace(&matching, (at, end), &replacement, protected, &mut made)?;
        }
        match found {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                made.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if is_anchored {
            break;
        }
    }
    made.extend_from_slice(&text[at.min(text.len())..]);
    Ok((lua.create_string(made)?, count))
}

/// Lua's own `pcall`, and what reads a table by its metatable: of what a script's functions raise the binding would make a text.
struct Protected {
    call: Function,
    index: Function,
}

impl Protected {
    /// Calls the first of these values with the others. Result: its first value, or what it raises.
    fn call(&self, function_and_arguments: MultiValue) -> Result<Value> {
        let mut given = self.call.call::<MultiValue>(function_and_arguments)?;
        let is_done = given.pop_front();
        let value = given.pop_front().unwrap_or(Value::Nil);
        match value {
            value if is_done != Some(Value::Boolean(false)) => Ok(value),
            Value::Error(error) => Err(*error),
            other => Err(raise::throw(other)),
        }
    }
}

fn replace(
    matching: &Matching<'_>,
    whole: (usize, usize),
    by: &Value,
    protected: &Protected,
    made: &mut Vec<u8>,
) -> Result<()> {
    let value = match by {
        Value::String(text) => return fill_in(matching, whole, &text.as_bytes(), made),
        Value::Table(table) => {
            let key = matching.capture(0, Some(whole))?;
            match table.raw_get(key.clone())? {
                Value::Nil if table.metatable().is_some() => {
                    let arguments = [Value::Function(protected.index.clone()), Value::Table(table.clone()), key];
                    protected.call(MultiValue::from_iter(arguments))?
                }
                value => value,
            }
        }
        Value::Function(function) => {
            let mut arguments = matching.captures(Some(whole))?;
            arguments.push_front(Value::Function(function.clone()));
            protected.call(arguments)?
        }
        _ => Value::Nil,
    };
    match value {
        Value::Nil | Value::Boolean(false) => append(matching, &matching.text[whole.0..whole.1], made),
        value @ (Value::String(_) | Value::Integer(_) | Value::Number(_)) => {
            let text = matching.lua.coerce_string(value)?;
            text.map_or(Ok(()), |text| append(matching, &text.as_bytes(), made))
        }
        other => matching.fail(&format!("invalid replacement value (a {})", raise::type_name(&other))),
    }
}

/// Appends a replacement in which captures are named. A short one may name a long capture any number of times.
fn fill_in(matching: &Matching<'_>, whole: (usize, usize), mut replacement: &[u8], made: &mut Vec<u8>) -> Result<()> {
    while let Some(at) = replacement.iter().position(|&byte| byte == b'%') {
        append(matching, &replacement[..at], made)?;
        match replacement.get(at + 1).copied().unwrap_or(0) {
            b'0' => append(matching, &matching.text[whole.0..whole.1], made)?,
            digit @ b'1'..=b'9' => match matching.captured(usize::from(digit - b'1'), Some(whole))? {
                Captured::Text(text) => append(matching, text, made)?,
                Captured::Position(position) => append(matching, IntegerText::new(position).as_bytes(), made)?,
            },
            other => append(matching, &[other], made)?,
        }
        replacement = replacement.get(at + 2..).unwrap_or_default();
    }
    append(matching, replacement, made)
}

/// Appends a piece of a replacement, which is work of the script and has to fit.
fn append(matching: &Matching<'_>, piece: &[u8], made: &mut Vec<u8>) -> Result<()> {
    if made.len().saturating_add(piece.len()) > SCRIPT_STRING_BYTES_MAX {
        return Err(raise::throw_text(matching.lua, "not enough memory"));
    }
    made.extend_from_slice(piece);
    matching.effort.copy(piece.len())
}

/// `string.rep`, which in Lua's own library can neither be interrupted nor bounded.
fn repeat(lua: &Lua, values: MultiValue, effort: &Effort) -> Result<LuaString> {
    let given = Given::new(lua, &values);
    // The count is C's int.
    let (text, count) = (given.string(1)?, to_integer(given.number(2)?) as i32);
    let text = text.as_bytes();
    let count = usize::try_from(count).unwrap_or(0);
    let length = text.len().checked_mul(count).filter(|length| *length <= SCRIPT_STRING_BYTES_MAX);
    match length {
        Some(_) if text.is_empty() => lua.create_string(""),
        Some(length) => {
            effort.copy(length)?;
            lua.create_string(text.repeat(count))
        }
        None => Err(raise::throw_text(lua, "not enough memory")),
    }
}
