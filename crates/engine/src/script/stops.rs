//! A script under its debugger: what is done where it may stop, and what the commands of its client do there.
//!
//! ```text
//!   line begins (hook) --> noted;   call that `locals` has put in front of it --> stops? --> Report::Stopped
//!                                                     ^                                          |
//!                                                     '---- prints, runs ... <-- a command ------'
//! ```
//!
//! The call has the variables of its function, the hook says which lines begin: each of them exactly where a debugger of Lua's would.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Result, Table, Value};
use respool_wire::{Args, ArgsBuf, Encoder};

use super::api::{self, Answered};
use super::debugger::{Debugger, show_text};
use super::exchange::{Exchange, Order, Report};
use super::locals::Places;
use super::raise;
use super::text;
use super::vm::{self, Way};
use crate::limits::{DEBUGGER_FRAMES_MAX, DEBUGGER_VALUE_BYTES_MAX};

/// Tables in each other that are shown.
const SHOWN_DEPTH: usize = 10;
/// What the sources of scripts are called, and of code that a client has run.
const SOURCE: &str = "user_script";
const EVAL_NAME: &[u8] = b"@ldb_eval";

/// The functions of a script that are under way, and their variables.
#[derive(Default)]
pub(super) struct Frames {
    /// The coroutine, how deep the function is in it, and what returns its variables.
    frames: Vec<(usize, usize, Function)>,
    pub(super) places: Places,
}

impl Frames {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn enter(&mut self, thread: usize, depth: usize, variables: Function) {
        self.frames.retain(|(of, at, _)| *of != thread || *at < depth);
        if self.frames.len() >= DEBUGGER_FRAMES_MAX {
            self.frames.remove(0);
        }
        self.frames.push((thread, depth, variables));
    }

    /// The names and values of the variables of each function of a coroutine, the innermost first.
    fn variables(&self, thread: usize) -> Vec<(Vec<Vec<u8>>, MultiValue)> {
        let of_thread = self.frames.iter().rev().filter(|(of, ..)| *of == thread);
        let read = |(.., variables): &(usize, usize, Function)| {
            let mut values: MultiValue = variables.call(()).ok()?;
            let place = match values.pop_front()? {
                Value::Integer(number) => usize::try_from(number).ok()?,
                Value::Number(number) => number as usize,
                _ => return None,
            };
            Some((self.places.get(place)?.clone(), values))
        };
        of_thread.filter_map(read).collect()
    }
}

/// A line of the script begins.
pub(super) fn note_line(exchange: &Exchange, frame: &mlua::debug::Debug<'_>) {
    let Ok(mut debugger) = exchange.debugger.try_borrow_mut() else { return };
    let Some(debugger) = debugger.as_mut().filter(|debugger| !debugger.is_stopped) else { return };
    let is_script = frame.source().short_src.is_some_and(|source| source == SOURCE);
    if let Some(line) = frame.current_line().filter(|_| is_script) {
        debugger.begun.push(line);
    }
}

/// What a script needs to stop.
pub(super) struct Stops<'e> {
    pub(super) way: &'e Way,
    pub(super) exchange: &'e Rc<Exchange>,
    pub(super) frames: Rc<RefCell<Frames>>,
    /// The environment of scripts.
    pub(super) world: Rc<RefCell<Option<Table>>>,
}

impl Stops<'_> {
    /// The script has come to a place: the debugger stops it if it should.
    pub(super) fn reach(&self, lua: &Lua, variables: Function) -> Result<()> {
        let (thread, depth) = (thread(lua), depth(lua));
        self.frames.borrow_mut().enter(thread, depth, variables);
        loop {
            let line = {
                let mut debugger = self.exchange.debugger.borrow_mut();
                let Some(debugger) = debugger.as_mut().filter(|debugger| !debugger.is_stopped) else { return Ok(()) };
                if debugger.begun.is_empty() {
                    return Ok(());
                }
                debugger.begun.remove(0)
            };
            if self.with(|debugger| debugger.stops_at(line)) {
                self.with(|debugger| debugger.is_stopped = true);
                let ended = self.serve(lua, thread);
                self.with(|debugger| debugger.is_stopped = false);
                ended?;
            }
        }
    }

    fn with<T: Default>(&self, change: impl FnOnce(&mut Debugger) -> T) -> T {
        self.exchange.debugger.borrow_mut().as_mut().map(|debugger| change(debugger)).unwrap_or_default()
    }

    /// Does what the client says until the script is to go on.
    fn serve(&self, lua: &Lua, thread: usize) -> Result<()> {
        loop {
            self.exchange.vm_bytes.set(lua.used_memory());
            if matches!(self.way.suspend(Report::Stopped), Order::Kill | Order::End) {
                return Err(self.end(lua, text::KILLED));
            }
            let words = std::mem::take(&mut *self.exchange.request.borrow_mut());
            let words = words.as_args();
            let is = |word: &str| words.name().eq_ignore_ascii_case(word.as_bytes());
            let is_either = |short: &str, long: &str| is(short) || is(long);
            if words.is_empty() {
                self.with(Debugger::desert);
                return Ok(());
            }
            match () {
                () if is_either("s", "step") || is_either("n", "next") => {
                    self.with(|debugger| debugger.is_stepping = true);
                    return Ok(());
                }
                () if is_either("c", "continue") => return Ok(()),
                () if is_either("a", "abort") => return Err(self.end(lua, text::ABORTED)),
                () if is_either("h", "help") => self.with(Debugger::help),
                () if is_either("t", "trace") => self.trace(lua),
                () if is_either("m", "maxlen") => self.with(|debugger| debugger.limit_shown(words)),
                () if is_either("b", "break") => self.with(|debugger| debugger.set_breakpoints(words)),
                () if is_either("l", "list") => self.with(|debugger| debugger.say_list(words)),
                () if is_either("w", "whole") => self.with(Debugger::say_whole),
                () if is_either("e", "eval") => self.evaluate(lua, words)?,
                () if is_either("r", "redis") && words.len() > 1 => self.run(lua, words)?,
                () if is_either("p", "print") && words.len() == 2 => self.print(thread, words.at(1)),
                () if is_either("p", "print") => self.print_all(thread),
                () => {
                    let unknown = "<error> Unknown Redis Lua debugger command or wrong number of arguments.";
                    self.with(|debugger| debugger.say(unknown));
                }
            }
        }
    }

    /// The script ends, whatever it catches.
    fn end(&self, lua: &Lua, why: &'static str) -> mlua::Error {
        self.exchange.end(why);
        raise::throw_text(lua, why)
    }

    fn trace(&self, lua: &Lua) {
        // This function itself is the innermost.
        for level in 1.. {
            let seen = lua.inspect_stack(level, |frame| {
                let is_script = frame.source().short_src.is_some_and(|source| source == SOURCE);
                let name = frame.names().name.map_or_else(|| "top level".to_owned(), std::borrow::Cow::into_owned);
                (is_script, name, frame.current_line().unwrap_or_default())
            });
            let Some((is_script, name, line)) = seen else { return };
            if is_script {
                let first = if level == 1 { "In" } else { "From" };
                self.with(|debugger| {
                    debugger.say(format!("{first} {name}:"));
                    debugger.say_line(line);
                });
            }
        }
    }

    fn print(&self, thread: usize, name: &[u8]) {
        let variables = self.frames.borrow().variables(thread);
        let found = variables.iter().find_map(|(names, values)| {
            let place = names.iter().position(|known| known == name)?;
            Some(values.get(place).cloned().unwrap_or(Value::Nil))
        });
        let global = || match name {
            b"KEYS" | b"ARGV" => self.world.borrow().as_ref()?.get::<Value>(String::from_utf8_lossy(name)).ok(),
            _ => None,
        };
        match found.or_else(global) {
            Some(value) => self.say_value(b"<value> ", &value),
            None => self.with(|debugger| debugger.say("No such variable.")),
        }
    }

    fn print_all(&self, thread: usize) {
        let variables = self.frames.borrow().variables(thread).into_iter().next();
        let (names, values) = variables.unwrap_or_default();
        for (place, name) in names.iter().enumerate() {
            let head = [b"<value> ", &name[..], b" = "].concat();
            self.say_value(&head, values.get(place).unwrap_or(&Value::Nil));
        }
        if names.is_empty() {
            self.with(|debugger| debugger.say("No local variables in the current context."));
        }
    }

    fn say_value(&self, head: &[u8], value: &Value) {
        let mut line = head.to_vec();
        show(&mut line, value, 0);
        self.with(|debugger| debugger.say_value(line));
    }

    fn evaluate(&self, lua: &Lua, words: Args<'_>) -> Result<()> {
        let Some(world) = self.world.borrow().clone() else { return Ok(()) };
        let code = words.from(1).iter().collect::<Vec<_>>().join(&b' ');
        let expression = [b"return ", &code[..]].concat();
        let compiled =
            vm::compile(lua, &expression, EVAL_NAME, &world).or_else(|_| vm::compile(lua, &code, EVAL_NAME, &world));
        let protected: Function = lua.globals().raw_get("pcall")?;
        let (is_done, value) = match compiled {
            Ok(function) => protected.call::<(bool, Value)>(function)?,
            Err(error) => (false, Value::String(lua.create_string(vm::why(&error))?)),
        };
        if let Some(why) = self.exchange.ended.get() {
            return Err(raise::throw_text(lua, why));
        }
        if is_done {
            self.say_value(b"<retval> ", &value);
            return Ok(());
        }
        let value = match &value {
            Value::Error(error) => raise::unwrap(lua, error)?,
            _ => value,
        };
        let text = match &value {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Table(table) => match table.raw_get("err")? {
                Value::String(text) => text.as_bytes().to_vec(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        self.with(|debugger| debugger.say([b"<error> ", &text[..]].concat()));
        Ok(())
    }

    /// `redis <command>`, as the script would call it.
    fn run(&self, lua: &Lua, words: Args<'_>) -> Result<()> {
        let values = words.from(1).iter().map(|word| lua.create_string(word).map(Value::String));
        let values = values.collect::<Result<MultiValue>>()?;
        self.with(|debugger| debugger.is_stepping = true);
        let answered = api::command(lua, self.way, self.exchange, &values);
        self.with(|debugger| debugger.is_stepping = false);
        answered.map(|_: Answered| ())
    }
}

/// `redis.debug`: shows values. Gives how many bytes that has taken.
pub(super) fn debug(exchange: &Exchange, values: &MultiValue) -> usize {
    let mut debugger = exchange.debugger.borrow_mut();
    let Some(debugger) = debugger.as_mut().filter(|debugger| !debugger.is_full()) else { return 0 };
    let mut line = format!("<debug> line {}: ", debugger.line).into_bytes();
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            line.extend(b", ");
        }
        show(&mut line, value, 0);
    }
    let bytes = line.len();
    debugger.say(line);
    bytes
}

/// `redis.breakpoint`: whether there is a debugger, which stops at the next line.
pub(super) fn breakpoint(exchange: &Exchange) -> bool {
    let mut debugger = exchange.debugger.borrow_mut();
    debugger.as_mut().is_some_and(|debugger| {
        debugger.is_asked = true;
        true
    })
}

/// Fills the buffer with what the debugger has said.
pub(super) fn tell(exchange: &Exchange, reply: &mut Encoder<'_>) {
    if let Some(debugger) = exchange.debugger.borrow_mut().as_mut() {
        debugger.tell(reply);
    }
}

/// The command that a stopped script is to hear next; none: its client has left.
pub(super) fn hear(exchange: &Exchange, words: Args<'_>) {
    *exchange.request.borrow_mut() = words.iter().collect::<ArgsBuf>();
}

fn thread(lua: &Lua) -> usize {
    lua.current_thread().to_pointer() as usize
}

/// How many functions are under way.
fn depth(lua: &Lua) -> usize {
    let is_there = |level: usize| lua.inspect_stack(level, |_| ()).is_some();
    let mut step = 1;
    while is_there(step) {
        step *= 2;
    }
    let (mut low, mut high) = (step / 2, step);
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        if is_there(middle) { low = middle } else { high = middle }
    }
    high
}

/// Adds a value as it is shown.
fn show(out: &mut Vec<u8>, value: &Value, depth: usize) {
    if out.len() > DEBUGGER_VALUE_BYTES_MAX {
        return;
    }
    if depth == SHOWN_DEPTH {
        return out.extend(b"<max recursion level reached! Nested table?>");
    }
    match value {
        Value::String(text) => {
            let text = text.as_bytes();
            show_text(out, &text[..text.len().min(DEBUGGER_VALUE_BYTES_MAX)]);
        }
        Value::Boolean(is_true) => out.extend(is_true.to_string().into_bytes()),
        Value::Integer(number) => out.extend(short_number(*number as f64).into_bytes()),
        Value::Number(number) => out.extend(short_number(*number).into_bytes()),
        Value::Nil => out.extend(b"nil"),
        Value::Table(table) => show_table(out, table, depth + 1),
        other => {
            let kind = raise::type_name(other);
            out.extend(format!("\"{kind}@{:p}\"", other.to_pointer()).into_bytes());
        }
    }
}

/// As a list if its keys are those of one, in the order in which they come.
fn show_table(out: &mut Vec<u8>, table: &Table, depth: usize) {
    let start = out.len();
    out.push(b'{');
    let mut is_list = true;
    let mut count = 0;
    for pair in table.pairs::<Value, Value>() {
        let Ok((key, _)) = pair else { return };
        count += 1;
        is_list &= matches!(key, Value::Integer(number) if number == count);
        if !is_list {
            break;
        }
    }
    for (place, pair) in table.pairs::<Value, Value>().enumerate() {
        let Ok((key, value)) = pair else { return };
        if out.len() - start > DEBUGGER_VALUE_BYTES_MAX {
            break;
        }
        if place > 0 {
            out.extend(b"; ");
        }
        if !is_list {
            out.push(b'[');
            show(out, &key, depth);
            out.extend(b"]=");
        }
        show(out, &value, depth);
    }
    out.push(b'}');
}

/// A number with six digits, as C's `%g` writes it.
fn short_number(number: f64) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.into();
    }
    let written = format!("{number:.5e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or_default();
        return trimmed(&format!("{number:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::short_number;

    #[test]
    fn numbers_have_six_digits() {
        for (number, shown) in [
            (0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e20, "1e+20"),
            (1e8, "1e+08"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (9_007_199_254_740_992.0, "9.0072e+15"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (0.1, "0.1"),
            (999_999.9, "1e+06"),
        ] {
            assert_eq!(short_number(number), shown);
        }
    }
}
