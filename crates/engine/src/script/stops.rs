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
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Result, Table, Thread, Value};
use respool_wire::{Args, ArgsBuf, Encoder};

use super::api::{self, Answered};
use super::chunk;
use super::debugger::{Debugger, shortened, show_text};
use super::effort::Effort;
use super::exchange::{Exchange, Order, Report, Way};
use super::locals::Places;
use super::raise::{self, DEBUGGED_NAME};
use super::text;
use crate::limits::{
    DEBUGGER_FRAMES_MAX, DEBUGGER_SCRIPT_BYTES_MAX, DEBUGGER_THREADS_MAX, DEBUGGER_TRACED_MAX, DEBUGGER_VALUE_BYTES_MAX,
};

/// Tables in each other that are shown.
const SHOWN_DEPTH: usize = 10;
/// What code is called that a client has run.
const EVAL_NAME: &[u8] = b"@ldb_eval";
/// Functions that are looked at to find out how deep calls are nested, for each step that it counts.
const LEVELS_PER_STEP: usize = 4;

/// Pairs of variables that are held at a place, for each step that it counts.
const HELD_PAIRS_PER_STEP: usize = 8;

/// Instructions that Lua goes through to find the name of a function, for each step that it counts.
const SEARCHED_PER_STEP: usize = 8;
/// Variables of a function whose scope is looked at, for each step that it counts.
const VARIABLES_PER_STEP: usize = 8;
/// What an instruction takes, with its line.
const INSTRUCTION_BYTES: usize = 8;

/// Calls that Lua nests before it says for the first time that they are too many.
const CALLS_ONCE_TOO_DEEP: usize = 16_384;
/// Calls that are too many in any case: Lua's bound is 20,000, of which some are the debugger's.
const CALLS_TOO_DEEP: usize = 19_900;

/// The functions of a script that are under way, and their variables.
#[derive(Default)]
pub(super) struct Frames {
    /// Of each coroutine; of those that there is no room for, the one is forgotten that has rested longest.
    threads: Vec<ThreadFrames>,
    pub(super) places: Places,
}

/// The functions of one coroutine, the innermost last.
struct ThreadFrames {
    /// Held, so that no later one is taken for it.
    thread: Thread,
    /// How deep each is in the coroutine.
    depths: VecDeque<usize>,
    /// How many outer ones were forgotten for want of room.
    forgotten: usize,
    /// What returns the variables of each. A table of Lua's: the binding can hold some thousands of values.
    variables: Table,
}

impl ThreadFrames {
    fn slot(&self, place: usize) -> usize {
        (self.forgotten + place) % DEBUGGER_FRAMES_MAX + 1
    }

    /// A function is at a place, which may have taken the place of the one that called it.
    fn enter(&mut self, depth: usize, is_tail_call: bool, variables: Function) -> Result<()> {
        let gone = depth - usize::from(is_tail_call);
        while self.depths.back().is_some_and(|last| *last >= gone) {
            self.depths.pop_back();
            self.variables.raw_set(self.slot(self.depths.len()), Value::Nil)?;
        }
        if self.depths.len() == DEBUGGER_FRAMES_MAX {
            self.depths.pop_front();
            self.forgotten += 1;
        }
        self.variables.raw_set(self.slot(self.depths.len()), variables)?;
        self.depths.push_back(depth);
        Ok(())
    }

    /// The number of the place where one of them is, and the values of its variables.
    fn read(&self, place: usize) -> Option<(usize, MultiValue)> {
        let variables: Function = self.variables.raw_get(self.slot(place)).ok()?;
        let mut values: MultiValue = variables.call(()).ok()?;
        let number = match values.pop_front()? {
            Value::Integer(number) => usize::try_from(number).ok()?,
            Value::Number(number) => number as usize,
            _ => return None,
        };
        Some((number, values))
    }
}

impl Frames {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The coroutine that runs has come to a place. Gives how deep calls are nested.
    fn enter(&mut self, lua: &Lua, variables: Function) -> Result<usize> {
        let thread = lua.current_thread();
        match self.threads.iter().position(|known| known.thread.to_pointer() == thread.to_pointer()) {
            Some(place) => self.threads[place..].rotate_left(1),
            None => {
                if self.threads.len() == DEBUGGER_THREADS_MAX {
                    self.threads.remove(0);
                }
                let variables = lua.create_table()?;
                self.threads.push(ThreadFrames { thread, depths: VecDeque::new(), forgotten: 0, variables });
            }
        }
        let Some(frames) = self.threads.last_mut() else { return Ok(0) };
        let depth = depth(lua, frames.depths.back().copied().unwrap_or(1));
        // The debugger's own function is at level 0, that of the script at 1.
        let is_tail_call = lua.inspect_stack(2, |frame| frame.source().what == "tail").unwrap_or(false);
        frames.enter(depth, is_tail_call, variables)?;
        Ok(depth)
    }

    /// The place and the variables of each function of a coroutine, the innermost first. They are read one by one.
    fn variables(&self, thread: usize) -> impl Iterator<Item = Option<(usize, MultiValue)>> {
        let of_thread = self.threads.iter().filter(move |known| known.thread.to_pointer() as usize == thread);
        of_thread.flat_map(|known| (0..known.depths.len()).rev().map(|place| known.read(place)))
    }
}

/// Whether a function is of the script that is debugged.
fn is_debugged(frame: &mlua::debug::Debug<'_>) -> bool {
    frame.source().source.is_some_and(|source| source == DEBUGGED_NAME)
}

/// A line begins.
pub(super) fn note_line(exchange: &Exchange, frame: &mlua::debug::Debug<'_>) {
    let Ok(mut debugger) = exchange.debugger.try_borrow_mut() else { return };
    let Some(debugger) = debugger.as_mut().filter(|debugger| debugger.is_watching()) else { return };
    if let Some(line) = frame.current_line().filter(|_| is_debugged(frame)) {
        debugger.note_line(line);
    }
}

/// What a script needs to stop.
pub(super) struct Stops<'e> {
    pub(super) way: &'e Way,
    pub(super) exchange: &'e Rc<Exchange>,
    pub(super) frames: Rc<RefCell<Frames>>,
    /// The environment of scripts.
    pub(super) world: Rc<RefCell<Option<Table>>>,
    pub(super) effort: Rc<Effort>,
    /// The tables that all scripts share, by what stands for them.
    pub(super) real: Table,
}

impl Stops<'_> {
    /// The script has come to a place: the debugger stops it if it should.
    pub(super) fn reach(&self, lua: &Lua, variables: Function) -> Result<()> {
        if !self.with(|debugger| debugger.is_watching()) {
            return Ok(());
        }
        match self.enter(lua, variables) {
            Err(error) if is_out_of_stack(&error) && self.exchange.ended.get().is_none() => {
                // It does not stop later at a line that has begun here.
                while self.with(Debugger::next_begun).is_some() {}
                return out_of_stack(lua);
            }
            entered => entered?,
        }
        while let Some(line) = self.with(Debugger::next_begun) {
            if self.with(|debugger| debugger.stops_at(line)) {
                self.with(|debugger| debugger.is_stopped = true);
                let ended = self.serve(lua);
                self.with(|debugger| debugger.is_stopped = false);
                ended?;
            }
        }
        Ok(())
    }

    /// Notes where the script is.
    fn enter(&self, lua: &Lua, variables: Function) -> Result<()> {
        let held = usize::from(variables.info().num_upvalues);
        let depth = self.frames.borrow_mut().enter(lua, variables)?;
        // Calls in place of those that have returned count as nested, and are not looked at. Each variable that is held is looked for among
        // all of them.
        let of_depth = depth.min(DEBUGGER_FRAMES_MAX) / LEVELS_PER_STEP;
        self.effort.note_steps(of_depth + held * held / HELD_PAIRS_PER_STEP);
        self.effort.step()
    }

    fn with<T: Default>(&self, change: impl FnOnce(&mut Debugger) -> T) -> T {
        self.exchange.debugger.borrow_mut().as_mut().map(|debugger| change(debugger)).unwrap_or_default()
    }

    /// Does what the client says until the script is to go on.
    fn serve(&self, lua: &Lua) -> Result<()> {
        let thread = thread(lua);
        loop {
            self.exchange.vm_bytes.set(lua.used_memory());
            if matches!(self.way.suspend(Report::Stopped), Order::Kill | Order::End) {
                return Err(self.end(lua, text::KILLED));
            }
            let words = std::mem::take(&mut *self.exchange.request.borrow_mut());
            let words = words.as_args();
            let is = |word: &str| words.name().eq_ignore_ascii_case(word.as_bytes());
            let is_either = |short: &str, long: &str| is(short) || is(long);
            if self.with(|debugger| debugger.is_deserted()) {
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
                () if is_either("t", "trace") => self.settle(self.trace(lua))?,
                () if is_either("m", "maxlen") => self.with(|debugger| debugger.limit_shown(words)),
                () if is_either("b", "break") => self.with(|debugger| debugger.set_breakpoints(words)),
                () if is_either("l", "list") => self.with(|debugger| debugger.say_list(words)),
                () if is_either("w", "whole") => self.with(Debugger::say_whole),
                () if is_either("e", "eval") => self.settle(self.evaluate(lua, words))?,
                () if is_either("r", "redis") && words.len() > 1 => self.settle(self.run(lua, words))?,
                () if is_either("p", "print") && words.len() == 2 => {
                    self.settle(self.print(lua, thread, words.at(1)))?
                }
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

    /// What a command of the client fails for, such as want of stack, is no error of the script, unless that is to end.
    fn settle(&self, done: Result<()>) -> Result<()> {
        let Err(error) = done else { return Ok(()) };
        if self.exchange.ended.get().is_some() {
            return Err(error);
        }
        let why = chunk::why(&error);
        let first_line = why.split(|byte| *byte == b'\n').next().unwrap_or_default();
        self.with(|debugger| debugger.say([b"<error> ", shortened(first_line)].concat()));
        Ok(())
    }

    /// Others may have a turn between two functions.
    fn trace(&self, lua: &Lua) -> Result<()> {
        // This function itself is the innermost.
        for level in 1..=DEBUGGER_TRACED_MAX {
            let Some(is_script) = lua.inspect_stack(level, is_debugged) else { break };
            if !is_script {
                continue;
            }
            if !self.with(|debugger| debugger.takes_more()) {
                break;
            }
            self.effort.note_steps(self.searched(lua, level + 1) / SEARCHED_PER_STEP);
            self.effort.step()?;
            let seen = lua.inspect_stack(level, |frame| {
                let name = frame.names().name.map_or_else(|| "top level".to_owned(), std::borrow::Cow::into_owned);
                (name, frame.current_line().unwrap_or_default())
            });
            let Some((name, line)) = seen else { break };
            let first = if level == 1 { "In" } else { "From" };
            self.with(|debugger| {
                debugger.say(format!("{first} {name}:"));
                debugger.say_line(line);
            });
        }
        Ok(())
    }

    /// Instructions that Lua goes through at most to find the name of a function that has been called at a level: all in front of the call.
    /// How many code has that is not of the script is not known: no more than there is room for.
    fn searched(&self, lua: &Lua, caller: usize) -> usize {
        let kind = lua.inspect_stack(caller, |frame| (is_debugged(frame), frame.source().what));
        match kind {
            Some((true, _)) => self.frames.borrow().places.instructions_max,
            Some((false, "Lua" | "main")) => lua.used_memory() / INSTRUCTION_BYTES,
            _ => 0,
        }
    }

    fn print(&self, lua: &Lua, thread: usize, name: &[u8]) -> Result<()> {
        let global = || match name {
            b"KEYS" | b"ARGV" => self.world.borrow().as_ref()?.get::<Value>(String::from_utf8_lossy(name)).ok(),
            _ => None,
        };
        match self.find(lua, thread, name)?.or_else(global) {
            Some(value) => self.say_value(b"<value> ", &value),
            None => self.with(|debugger| debugger.say("No such variable.")),
        }
        Ok(())
    }

    /// The variable of a name in the innermost function that has one. Others may have a turn between two functions.
    fn find(&self, lua: &Lua, thread: usize, name: &[u8]) -> Result<Option<Value>> {
        let frames = self.frames.borrow();
        for variables in frames.variables(thread) {
            // What has asked meanwhile whether to go on has not been able to say so.
            if let Some(why) = self.exchange.ended.get() {
                return Err(raise::throw_text(lua, why));
            }
            let Some((place, values)) = variables else { continue };
            let mut compared_bytes = 0;
            let found = frames.places.names(place).and_then(|mut names| {
                names.position(|known| {
                    compared_bytes += if known.len() == name.len() { name.len() } else { 0 };
                    known == name
                })
            });
            if let Some(found) = found {
                return Ok(Some(values.get(found).cloned().unwrap_or(Value::Nil)));
            }
            self.effort.note_steps(frames.places.variables(place) / VARIABLES_PER_STEP);
            self.effort.copy(compared_bytes)?;
        }
        Ok(None)
    }

    fn print_all(&self, thread: usize) {
        let frames = self.frames.borrow();
        let (names, values): (Vec<&[u8]>, MultiValue) = match frames.variables(thread).next().flatten() {
            Some((place, values)) => (frames.places.names(place).map(Iterator::collect).unwrap_or_default(), values),
            None => Default::default(),
        };
        let mut shower = self.shower();
        let mut lines = shower.show_all(&names, &values);
        while self.with(|debugger| debugger.takes_more())
            && let Some(line) = lines.next()
        {
            self.with(|debugger| debugger.say_value(line));
        }
        if names.is_empty() {
            self.with(|debugger| debugger.say("No local variables in the current context."));
        }
    }

    fn say_value(&self, head: &[u8], value: &Value) {
        if !self.with(|debugger| debugger.takes_more()) {
            return;
        }
        let mut line = head.to_vec();
        self.shower().show(&mut line, value, 0);
        self.with(|debugger| debugger.say_value(line));
    }

    fn shower(&self) -> Shower<'_> {
        Shower::new(self.with(|debugger| debugger.value_bytes()), Some(&self.real))
    }

    fn evaluate(&self, lua: &Lua, words: Args<'_>) -> Result<()> {
        let Some(world) = self.world.borrow().clone() else { return Ok(()) };
        let bytes: usize = words.from(1).iter().map(|word| word.len() + 1).sum();
        if bytes > DEBUGGER_SCRIPT_BYTES_MAX {
            self.with(|debugger| debugger.say("<error> the code is too long"));
            return Ok(());
        }
        let code = words.from(1).iter().collect::<Vec<_>>().join(&b' ');
        let expression = [b"return ", &code[..]].concat();
        let compiled = chunk::compile(lua, &expression, EVAL_NAME, &world)
            .or_else(|_| chunk::compile(lua, &code, EVAL_NAME, &world));
        let protected: Function = lua.globals().raw_get("pcall")?;
        let (is_done, value) = match compiled {
            Ok(function) => protected.call::<(bool, Value)>(function)?,
            Err(error) => (false, Value::String(lua.create_string(chunk::why(&error))?)),
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
            Value::String(text) => shortened(&text.as_bytes()).to_vec(),
            Value::Table(table) => match table.raw_get("err")? {
                Value::String(text) => shortened(&text.as_bytes()).to_vec(),
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

/// Calls are nested too deep for what is done at a place. Lua says so once at 16,384 calls and goes on to 20,000 behind that:
/// there the place is passed over. At the end it would go on as well, where the script gets the error without a debugger.
fn out_of_stack(lua: &Lua) -> Result<()> {
    match depth(lua, CALLS_ONCE_TOO_DEEP) < CALLS_TOO_DEEP {
        true => Ok(()),
        false => Err(raise::fail(lua, "stack overflow")),
    }
}

/// Whether calls are nested too deep for one more. Those that go through functions of C, such as `pcall`, have a bound of their own, and what
/// fails behind that is an error without a name.
fn is_out_of_stack(error: &mlua::Error) -> bool {
    const TEXTS: [&str; 3] = ["stack overflow", "C stack overflow", "error in error handling"];
    let why = chunk::why(error);
    matches!(error, mlua::Error::StackError) || TEXTS.iter().any(|text| why.starts_with(text.as_bytes()))
}

/// `redis.debug`: shows values. Gives how many bytes have been looked at for that, at most: a table's free places are among them.
pub(super) fn debug(lua: &Lua, exchange: &Exchange, values: &MultiValue) -> usize {
    let mut debugger = exchange.debugger.borrow_mut();
    let Some(debugger) = debugger.as_mut().filter(|debugger| debugger.takes_more()) else { return 0 };
    let mut line = format!("<debug> line {}: ", debugger.line).into_bytes();
    let mut shower = Shower::new(DEBUGGER_VALUE_BYTES_MAX, None);
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            line.extend(b", ");
        }
        shower.show(&mut line, value, 0);
    }
    let bytes = line.len() + if shower.walks == 0 { 0 } else { lua.used_memory() };
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

/// The command that a stopped script is to hear next.
pub(super) fn hear(exchange: &Exchange, words: Args<'_>) {
    *exchange.request.borrow_mut() = words.iter().collect::<ArgsBuf>();
}

fn thread(lua: &Lua) -> usize {
    lua.current_thread().to_pointer() as usize
}

/// How many functions are under way; `near` is where that is looked for first, since each look takes as long as the calls are deep.
fn depth(lua: &Lua, near: usize) -> usize {
    let is_there = |level: usize| lua.inspect_stack(level, |_| ()).is_some();
    let (mut low, mut high) = (near.saturating_sub(1), near.max(1));
    let mut step = 1;
    if low == 0 || is_there(low) {
        while is_there(high) {
            (low, high) = (high, high + step);
            step *= 2;
        }
    } else {
        (low, high) = (low - 1, low);
        while low > 0 && !is_there(low) {
            (low, high) = (low.saturating_sub(step), low);
            step *= 2;
        }
    }
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        if is_there(middle) { low = middle } else { high = middle }
    }
    high
}

/// Writes values down as they are shown. What goes through a table walks all its free places too, so each table is gone through once for
/// each depth at which it is shown, however often it is named.
struct Shower<'t> {
    /// Little more than so many bytes are written of each value.
    bytes_max: usize,
    /// The tables that are shown for others: see [`Stops::real`].
    real: Option<&'t Table>,
    /// What has been written of tables, by what they are and how deep.
    shown: BTreeMap<(usize, usize), Rc<[u8]>>,
    /// How often a table was gone through.
    walks: usize,
}

impl<'t> Shower<'t> {
    fn new(bytes_max: usize, real: Option<&'t Table>) -> Self {
        Self { bytes_max, real, shown: BTreeMap::new(), walks: 0 }
    }

    /// Variables, one after the other.
    fn show_all<'s>(&'s mut self, names: &'s [&[u8]], values: &'s MultiValue) -> impl Iterator<Item = Vec<u8>> + 's {
        names.iter().enumerate().map(|(place, name)| {
            let mut line = [b"<value> ", *name, b" = "].concat();
            self.show(&mut line, values.get(place).unwrap_or(&Value::Nil), 0);
            line
        })
    }

    fn show(&mut self, out: &mut Vec<u8>, value: &Value, depth: usize) {
        if out.len() > self.bytes_max {
            return;
        }
        if depth == SHOWN_DEPTH {
            return out.extend(b"<max recursion level reached! Nested table?>");
        }
        match value {
            Value::String(text) => {
                let text = text.as_bytes();
                show_text(out, text.get(..self.bytes_max).unwrap_or(&text));
            }
            Value::Boolean(is_true) => out.extend(is_true.to_string().into_bytes()),
            Value::Integer(number) => out.extend(short_number(*number as f64).into_bytes()),
            Value::Number(number) => out.extend(short_number(*number).into_bytes()),
            Value::Nil => out.extend(b"nil"),
            Value::Table(table) => self.show_table(out, table, depth + 1),
            Value::LightUserData(pointer) if pointer.0.is_null() => out.extend(b"\"light-userdata@(nil)\""),
            Value::LightUserData(pointer) => out.extend(format!("\"light-userdata@{:p}\"", pointer.0).into_bytes()),
            other => match self.real.map(|real| real.raw_get(other.clone())) {
                Some(Ok(Value::Table(table))) => self.show_table(out, &table, depth + 1),
                _ => {
                    let kind = raise::type_name(other);
                    out.extend(format!("\"{kind}@{:p}\"", other.to_pointer()).into_bytes());
                }
            },
        }
    }

    fn show_table(&mut self, out: &mut Vec<u8>, table: &Table, depth: usize) {
        let place = (table.to_pointer() as usize, depth);
        let shown = match self.shown.get(&place) {
            Some(shown) => Rc::clone(shown),
            None => {
                let shown: Rc<[u8]> = self.of_table(table, depth).into();
                self.shown.insert(place, Rc::clone(&shown));
                shown
            }
        };
        out.extend_from_slice(&shown);
    }

    /// As a list if its keys are those of one, in the order in which they come.
    fn of_table(&mut self, table: &Table, depth: usize) -> Vec<u8> {
        self.walks += 1;
        let mut out = vec![b'{'];
        let is_list = is_list(table);
        for (place, pair) in table.pairs::<Value, Value>().enumerate() {
            let Ok((key, value)) = pair else { return out };
            if out.len() > self.bytes_max {
                break;
            }
            if place > 0 {
                out.extend(b"; ");
            }
            if !is_list {
                out.push(b'[');
                self.show(&mut out, &key, depth);
                out.extend(b"]=");
            }
            self.show(&mut out, &value, depth);
        }
        out.push(b'}');
        // Nothing behind that is shown, wherever the table is.
        out.truncate(self.bytes_max + 1);
        out
    }
}

/// Whether the keys of a table are those of a list, as far as it can be shown.
fn is_list(table: &Table) -> bool {
    let mut keys = table.pairs::<Value, Value>().take(DEBUGGER_VALUE_BYTES_MAX).enumerate();
    keys.all(|(place, pair)| matches!(pair, Ok((Value::Integer(number), _)) if number == place as i64 + 1))
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
    use super::{Shower, short_number};
    use mlua::{Lua, MultiValue, Table, Value};

    /// A table is gone through once, however often it is named: its places may be many, and free.
    #[test]
    fn a_table_is_gone_through_once_for_each_depth() {
        let lua = Lua::new();
        let make = "local e = {} for i = 1, 1e5 do e[i] = i end for i = 1, 1e5 do e[i] = nil end\n\
            local t = {} for i = 1, 1e4 do t[i] = e end t[#t + 1] = {e, {e}} return t";
        let table: Table = lua.load(make).eval().expect("it runs");
        let mut shower = Shower::new(1 << 20, None);
        let mut out = Vec::new();
        shower.show(&mut out, &Value::Table(table.clone()), 0);
        assert_eq!(out, format!("{{{}{{{{}}; {{{{}}}}}}}}", "{}; ".repeat(10_000)).into_bytes());
        assert_eq!(shower.walks, 6, "four tables, one of them at three depths");
        // And once for all variables.
        let empty: Value = table.raw_get(1).expect("it is there");
        let values: MultiValue = (0..200).map(|_| empty.clone()).collect();
        let names = [&b"v"[..]; 200];
        let mut shower = Shower::new(1 << 20, None);
        assert!(shower.show_all(&names, &values).all(|line| line == b"<value> v = {}"));
        assert_eq!(shower.walks, 1);
    }

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
