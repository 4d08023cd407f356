//! The interpreter: made once, with a world in which nothing shared can be changed, and then fed orders.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::debug::DebugEvent;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, Result, Scope, StdLib, Table, Value, VmState};
use respool_command::words::until_nul;
use respool_wire::{Encoder, Protocol};

use super::api;
use super::arguments::Given;
use super::cache::Hash;
use super::chunk::{NO_MEMORY, compile, why};
use super::effort::Effort;
use super::exchange::{Exchange, Order, Raised, Report, Way};
use super::memory::Unlimited;
use super::raise::{self, DEBUGGED_NAME, PRELUDE};
use super::random::Random;
use super::stops::{Frames, Stops};
use super::{bits, cjson, cmsgpack, convert, locals, pattern, stops, structs, text};
use crate::limits::{
    CODE_NAME_BYTES_MAX, SCRIPT_GARBAGE_BYTES, SCRIPT_MEMORY_BYTES_MAX, SCRIPT_SLICE_COROUTINES,
    SCRIPT_SLICE_INSTRUCTIONS, SCRIPT_STRING_BYTES_MAX, UNPACKED_VALUES_MAX,
};

/// Arguments of a script that go by Lua's stack.
const STACKED_ARGUMENTS_MAX: usize = 100;

/// Compiled scripts, and functions, that are found without a look into Lua's table.
const AT_HAND_MAX: usize = 128;

/// What the table of functions takes for each at most: its places, half of which are free behind its growth, and those of the table
/// before, which is there meanwhile.
const NAME_BYTES: usize = 128;

/// The global that a script calls which is debugged.
const DEBUGGER_NAME: &str = "debugger of this script";

/// How scripts are called in errors.
const SCRIPT_NAME: &[u8] = b"@user_script";
/// And libraries of functions.
const FUNCTION_NAME: &[u8] = b"@user_function";

/// Functions of Lua's own that scripts see as they are. What may load bytecode, see other worlds, or reach files is not among
/// them.
const SAFE: [&str; 9] =
    ["assert", "error", "gcinfo", "ipairs", "rawequal", "select", "tonumber", "tostring", "_VERSION"];

/// Runs an interpreter until it is no longer needed.
pub(super) fn serve(way: &Way, exchange: &Rc<Exchange>) {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
    // Lua's own `pcall` and `xpcall`: the binding's would put frames of theirs between an error and its handler.
    let Ok(lua) = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(true)) else { return };
    // What goes wrong here goes wrong before the first script: there is no memory.
    let _: Result<()> = lua.scope(|scope| {
        let pause = scope.create_function(|lua, ()| look(lua, way, exchange))?;
        let effort = Rc::new(Effort::new(pause.clone(), Rc::clone(exchange)));
        let world = World::new(&lua, scope, way, exchange, &effort, &pause)?;
        lua.set_memory_limit(SCRIPT_MEMORY_BYTES_MAX)?;
        set_hook(&lua, &pause, exchange, LOOKS)?;
        world.work(way, exchange);
        lua.remove_global_hook();
        Ok(())
    });
}

/// Has a script asked now and then whether it may go on.
const LOOKS: HookTriggers = HookTriggers::new().every_nth_instruction(SCRIPT_SLICE_INSTRUCTIONS);

/// The same for one that is debugged, each of whose lines takes many times as long.
const DEBUGGED_LOOKS: HookTriggers =
    HookTriggers::new().every_nth_instruction(SCRIPT_SLICE_INSTRUCTIONS / 10).every_line();

/// Has what is triggered looked at from now on: what is not a line is a look.
fn set_hook(lua: &Lua, pause: &Function, exchange: &Rc<Exchange>, triggers: HookTriggers) -> Result<()> {
    let (of_hook, pause) = (Rc::clone(exchange), pause.clone());
    lua.set_global_hook(triggers, move |_, frame| {
        if frame.event() == DebugEvent::Line {
            stops::note_line(&of_hook, frame);
        } else {
            pause.call::<()>(()).inspect_err(|_| of_hook.is_look_due.set(true))?;
        }
        Ok(VmState::Continue)
    })
}

/// What is called.
#[derive(Clone, Copy)]
enum WayIn {
    Script,
    Function,
}

/// Asks whether the script may go on.
fn look(lua: &Lua, way: &Way, exchange: &Exchange) -> Result<()> {
    exchange.collector.mind(lua, lua.used_memory());
    exchange.vm_bytes.set(lua.used_memory());
    // One that is being ended asks as well: others have to be served until it is.
    if matches!(way.suspend(Report::Paused), Order::Kill | Order::End) {
        exchange.end(text::KILLED);
    }
    if exchange.debugger.borrow().as_ref().is_some_and(|debugger| debugger.is_overdue()) {
        exchange.end(text::DESERTED);
    }
    exchange.ended.get().map_or(Ok(()), |why| Err(raise::throw_text(lua, why)))
}

/// What scripts live in.
struct World<'l> {
    lua: &'l Lua,
    /// The environment of scripts.
    of_eval: Table,
    run: Function,
    /// The same for no key, one, two.
    runs: Vec<Function>,
    /// The environment of functions.
    of_functions: Table,
    load_library: Function,
    call_function: Function,
    /// The same for no key, one, two.
    calls: Vec<Function>,
    /// Functions by their names in small letters: those that may be called, and those that a library has just registered.
    functions: Table,
    registered: Table,
    /// By their hashes. A table of Lua's: the binding can hold some thousands of values, not of scripts.
    compiled: Table,
    /// Some of them.
    at_hand: RefCell<BTreeMap<Hash, Function>>,
    functions_at_hand: RefCell<BTreeMap<Vec<u8>, Function>>,
    tags: convert::Tags,
    effort: Rc<Effort>,
    /// Bytes that were left by the last full collection.
    needed_bytes: Cell<usize>,
    /// Asks whether a script may go on.
    pause: Function,
    /// What a script calls that is debugged, and what is known of its functions.
    reach: Function,
    frames: Rc<RefCell<Frames>>,
}

impl<'l> World<'l> {
    fn new<'s, 'e>(
        lua: &'l Lua,
        scope: &'s Scope<'s, 'e>,
        way: &'e Way,
        exchange: &'e Rc<Exchange>,
        effort: &Rc<Effort>,
        pause: &Function,
    ) -> Result<Self> {
        let host = lua.create_table()?;
        let redis = api::table(lua, scope, way, exchange, effort)?;
        host.raw_set("redis", &redis)?;
        host.raw_set("os", api::os_table(lua, scope, way, exchange)?)?;
        let unwrap = scope.create_function(|lua, error: Value| {
            if let Some(why) = exchange.ended.get() {
                return Err(raise::throw_text(lua, why));
            }
            // Calls were nested too deep for a look: here, where what that raised is caught, there is room for one.
            if exchange.is_look_due.replace(false) {
                look(lua, way, exchange)?;
            }
            match &error {
                Value::Error(error) => raise::unwrap(lua, error),
                _ => Ok(error),
            }
        })?;
        host.raw_set("unwrap", unwrap)?;
        let note_coroutine = scope.create_function(|lua, values: MultiValue| {
            if !matches!(values.front(), Some(Value::Function(_))) {
                return Err(raise::bad_argument(lua, 1, "Lua function expected"));
            }
            let made = exchange.coroutines.get() + 1;
            exchange.coroutines.set(made % SCRIPT_SLICE_COROUTINES);
            if made == SCRIPT_SLICE_COROUTINES { look(lua, way, exchange) } else { Ok(()) }
        })?;
        host.raw_set("note_coroutine", note_coroutine)?;
        errors(lua, &host)?;
        insert_place(lua, &host)?;
        let registered = lua.create_table()?;
        host.raw_set("library", api::library_table(lua, &redis, exchange, &registered, effort)?)?;
        let globals = lua.create_table()?;
        for (name, library) in [
            ("bit", bits::library(lua)?),
            ("cjson", cjson::library(lua, effort)?),
            ("cmsgpack", cmsgpack::library(lua, effort)?),
            ("struct", structs::library(lua, effort)?),
        ] {
            globals.raw_set(name, library)?;
        }
        basics(lua, &globals, effort)?;
        let slot = WorldSlot::default();
        loaders(lua, &globals, &slot, effort)?;
        host.raw_set("globals", &globals)?;
        let strings = lua.create_table()?;
        pattern::register(lua, &strings, effort)?;
        host.raw_set("string", strings)?;
        let math = lua.create_table()?;
        Random::new().register(lua, &math)?;
        host.raw_set("math", math)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name(PRELUDE);
        let names = lua.create_sequence_from(SAFE)?;
        type Made = (Table, Function, Vec<Function>, Table, Function, Function, Vec<Function>, Table);
        let (of_eval, run, runs, of_functions, load_library, call_function, calls, real): Made =
            prelude.call((host, names))?;
        *slot.borrow_mut() = Some(of_eval.clone());
        let frames = Rc::new(RefCell::new(Frames::default()));
        let (of_stops, effort_of_stops) = (Rc::clone(&frames), Rc::clone(effort));
        let stops = Stops { way, exchange, frames: of_stops, world: Rc::clone(&slot), effort: effort_of_stops, real };
        let reach = scope.create_function(move |lua, variables: Function| stops.reach(lua, variables))?;
        let (compiled, functions) = (lua.create_table()?, lua.create_table()?);
        Ok(Self {
            lua,
            of_eval,
            run,
            runs,
            of_functions,
            load_library,
            call_function,
            calls,
            functions,
            registered,
            compiled,
            tags: convert::Tags::new(lua)?,
            effort: Rc::clone(effort),
            at_hand: RefCell::default(),
            functions_at_hand: RefCell::default(),
            needed_bytes: Cell::new(lua.used_memory()),
            pause: pause.clone(),
            reach,
            frames,
        })
    }

    /// Carries orders out until the last.
    fn work(&self, way: &Way, exchange: &Rc<Exchange>) {
        let mut order = way.suspend(Report::Ready);
        loop {
            let report = match order {
                Order::Compile { hash, text, spare } => {
                    let _unlimited = (spare > 0).then(|| Unlimited::with_spare(self.lua, spare));
                    Report::Compiled(self.compile(exchange, hash, &text))
                }
                Order::Run { hash, keys, protocol } => {
                    let function = self.compiled(hash);
                    Report::Done(self.run(exchange, WayIn::Script, function, keys, protocol))
                }
                Order::Debug { text, keys, protocol } => Report::Done(self.debug(exchange, &text, keys, protocol)),
                Order::Call { name, keys, protocol } => {
                    let function = self.function(name);
                    Report::Done(self.run(exchange, WayIn::Function, function, keys, protocol))
                }
                Order::Load(text) => Report::Compiled(self.load(exchange, &text)),
                Order::Adopt { gone, names } => {
                    Report::Compiled(self.adopt(exchange, gone, names).map_err(|error| why(&error)))
                }
                Order::Drop(names) => {
                    self.functions_at_hand.borrow_mut().clear();
                    for name in names {
                        let _: Result<()> =
                            self.lua.create_string(name).and_then(|name| self.functions.raw_set(name, Value::Nil));
                    }
                    Report::Ready
                }
                Order::ForgetAll => {
                    self.at_hand.borrow_mut().clear();
                    let _: Result<()> = self.compiled.clear().and_then(|()| self.collect(exchange));
                    Report::Ready
                }
                Order::Forget(hash) => {
                    // More than the limit may be held until it is forgotten.
                    let _unlimited = Unlimited::in_any_case(self.lua);
                    self.at_hand.borrow_mut().remove(&hash);
                    // What is not forgotten takes room, and does nothing.
                    let _: Result<()> =
                        self.lua.create_string(hash).and_then(|hash| self.compiled.raw_set(hash, Value::Nil));
                    Report::Ready
                }
                Order::Collect => {
                    // A collection that fails leaves what it has not collected.
                    let _: Result<()> = self.collect(exchange);
                    Report::Ready
                }
                Order::Go | Order::Kill => Report::Ready,
                Order::End => return,
            };
            self.collect_garbage(exchange);
            exchange.vm_bytes.set(self.lua.used_memory());
            order = way.suspend(report);
        }
    }

    /// Collects what a script has left, once it is as much as all that was needed before. Lua itself collects while a script makes
    /// values, and not when it has ended.
    fn collect_garbage(&self, exchange: &Exchange) {
        let needed = self.needed_bytes.get();
        let half_of_rest = SCRIPT_MEMORY_BYTES_MAX.saturating_sub(needed) / 2;
        if self.lua.used_memory() > needed + half_of_rest.min(needed + SCRIPT_GARBAGE_BYTES) {
            // A collection that fails leaves what it has not collected.
            let _: Result<()> = self.collect(exchange);
        }
    }

    fn collect(&self, exchange: &Exchange) -> Result<()> {
        // The binding makes closures for it, and more than the limit may be held until it is done.
        let _unlimited = Unlimited::in_any_case(self.lua);
        exchange.collector.collect(self.lua).map(|needed| self.needed_bytes.set(needed))
    }

    /// What is kept under a hash.
    fn compiled(&self, hash: Hash) -> Result<Function> {
        if let Some(function) = self.at_hand.borrow().get(&hash) {
            return Ok(function.clone());
        }
        let function: Function = self.compiled.raw_get(self.lua.create_string(hash)?)?;
        let mut at_hand = self.at_hand.borrow_mut();
        if at_hand.len() >= AT_HAND_MAX {
            at_hand.clear();
        }
        at_hand.insert(hash, function.clone());
        Ok(function)
    }

    /// The function of this name.
    fn function(&self, name: Vec<u8>) -> Result<Function> {
        if let Some(function) = self.functions_at_hand.borrow().get(&name) {
            return Ok(function.clone());
        }
        let function: Function = self.functions.raw_get(self.lua.create_string(&name)?)?;
        let mut at_hand = self.functions_at_hand.borrow_mut();
        if at_hand.len() >= AT_HAND_MAX {
            at_hand.clear();
        }
        at_hand.insert(name, function.clone());
        Ok(function)
    }

    /// Compiles a script, and says how many bytes that takes.
    fn compile(&self, exchange: &Exchange, hash: Hash, text: &[u8]) -> std::result::Result<(), Vec<u8>> {
        let before = self.lua.used_memory();
        let function = compile(self.lua, text, SCRIPT_NAME, &self.of_eval);
        exchange.compiled_bytes.set(self.lua.used_memory().saturating_sub(before));
        let kept = function.and_then(|function| self.compiled.raw_set(self.lua.create_string(hash)?, function));
        kept.map_err(|error| [b"ERR Error compiling script (new function): ", &why(&error)[..]].concat())
    }

    fn run(
        &self,
        exchange: &Exchange,
        way_in: WayIn,
        function: Result<Function>,
        keys: usize,
        protocol: Protocol,
    ) -> std::result::Result<(), Raised> {
        exchange.ended.set(None);
        exchange.is_look_due.set(false);
        exchange.coroutines.set(0);
        exchange.protocol.set(Protocol::Resp2);
        let ran = function.and_then(|function| self.call(exchange, way_in, &function, keys));
        let written = ran.and_then(|ran| match ran {
            Ok(value) => self.write(exchange, &value, protocol).map(Ok),
            Err(raised) => Ok(Err(raised)),
        });
        written.unwrap_or_else(|error| {
            let why = why(&error);
            let text = if is_end(&why) { why } else { [b"ERR ", &why[..]].concat() };
            Err(Raised { text, place: None })
        })
    }

    /// Runs a text that [`Exchange::debugger`] may stop.
    fn debug(
        &self,
        exchange: &Rc<Exchange>,
        text: &[u8],
        keys: usize,
        protocol: Protocol,
    ) -> std::result::Result<(), Raised> {
        let compiled = compile(self.lua, text, DEBUGGED_NAME.as_bytes(), &self.of_eval);
        let function =
            match compiled.map(|function| locals::with_calls(&function.dump(false), DEBUGGER_NAME.as_bytes())) {
                Ok(Err(unfit)) => return Err(Raised { text: unfit.text().into(), place: None }),
                Ok(Ok((code, places))) => {
                    self.frames.borrow_mut().places = places;
                    self.watched(exchange, code)
                }
                Err(error) => Err(error),
            };
        let ran = self.run(exchange, WayIn::Script, function, keys, protocol);
        self.frames.borrow_mut().clear();
        // What cannot be put back does nothing without a debugger.
        let _: Result<()> = self.of_eval.raw_set(DEBUGGER_NAME, Value::Nil);
        let _: Result<()> = set_hook(self.lua, &self.pause, exchange, LOOKS);
        ran
    }

    /// The function of a script that has calls of its debugger in it, which finds out from now on where it is.
    fn watched(&self, exchange: &Rc<Exchange>, code: Vec<u8>) -> Result<Function> {
        self.lua.gc_stop();
        let code = self.lua.load(code).set_mode(ChunkMode::Binary).set_environment(self.of_eval.clone());
        let function = code.into_function();
        self.lua.gc_restart();
        self.of_eval.raw_set(DEBUGGER_NAME, &self.reach)?;
        set_hook(self.lua, &self.pause, exchange, DEBUGGED_LOOKS)?;
        function
    }

    /// Writes the reply of a script that has run through. Other requests may be executed meanwhile, which do not touch it before that has ended.
    fn write(&self, exchange: &Exchange, value: &Value, protocol: Protocol) -> Result<()> {
        let mut answer = exchange.answer.borrow_mut();
        answer.clear();
        let is_resp3 = exchange.protocol.get() == Protocol::Resp3;
        convert::write(&self.tags, value, is_resp3, &self.effort, &mut Encoder::new(&mut answer, protocol))
    }

    fn call(
        &self,
        exchange: &Exchange,
        way_in: WayIn,
        function: &Function,
        keys: usize,
    ) -> Result<std::result::Result<Value, Raised>> {
        let request = exchange.request.borrow();
        let args = request.as_args();
        let unlimited = Unlimited::for_bytes(self.lua, args.iter().map(|argument| argument.len() + 1).sum());
        let (long, short) = match way_in {
            WayIn::Script => (&self.run, self.runs.get(keys)),
            WayIn::Function => (&self.call_function, self.calls.get(keys)),
        };
        // What goes by the stack is bounded by the binding; a script with more arguments has its tables made here.
        let called: (bool, Value) = if args.len() <= STACKED_ARGUMENTS_MAX {
            let mut values = MultiValue::with_capacity(args.len() + 2);
            values.push_back(Value::Function(function.clone()));
            if short.is_none() {
                values.push_back(Value::Integer(keys as i64));
            }
            for text in args.iter() {
                values.push_back(Value::String(self.lua.create_string(text)?));
            }
            drop(request);
            drop(unlimited);
            short.unwrap_or(long).call(values)?
        } else {
            let texts = |args: respool_wire::Args<'_>| {
                let table = self.lua.create_table_with_capacity(args.len(), 0)?;
                for (place, text) in args.iter().enumerate() {
                    table.raw_set(place + 1, self.lua.create_string(text)?)?;
                }
                Result::Ok(table)
            };
            let (keys, arguments) = (texts(args.first(keys))?, texts(args.from(keys))?);
            drop(request);
            drop(unlimited);
            long.call((function, -1, keys, arguments))?
        };
        let (is_done, value) = called;
        Ok(if is_done { Ok(value) } else { Err(self.raised(value)?) })
    }

    /// What was registered last may be called from now on, and these functions no more. Nothing has changed if there is no room for that
    /// among so many names: half of a change would lose the library whose place another takes.
    fn adopt(&self, exchange: &Exchange, gone: Vec<Vec<u8>>, names: usize) -> Result<()> {
        let fits =
            || self.lua.used_memory().saturating_add(names.saturating_mul(NAME_BYTES)) <= SCRIPT_MEMORY_BYTES_MAX;
        if !fits() {
            self.collect(exchange)?;
        }
        if !fits() {
            self.registered.clear()?;
            return Err(mlua::Error::MemoryError(String::new()));
        }
        let _unlimited = Unlimited::in_any_case(self.lua);
        self.functions_at_hand.borrow_mut().clear();
        for name in gone {
            self.functions.raw_set(self.lua.create_string(name)?, Value::Nil)?;
        }
        self.registered.for_each(|name: Value, function: Value| self.functions.raw_set(name, function))?;
        self.registered.clear()
    }

    /// Runs the text of a library, and once more behind a full collection if there is no memory for it: what libraries held that are
    /// gone is room for those that come in their place, and Lua collects nothing for want of memory. Before any library is run a
    /// collection would cost each of many what a large one beside them holds.
    fn load(&self, exchange: &Exchange, text: &[u8]) -> std::result::Result<(), Vec<u8>> {
        let loaded = self.load_once(exchange, text);
        if !loaded.as_ref().is_err_and(|said| said.ends_with(NO_MEMORY)) {
            return loaded;
        }
        let emptied = self.registered.clear().and_then(|()| self.collect(exchange));
        emptied.map_err(|error| [LOAD_FAILED, &why(&error)[..]].concat())?;
        self.load_once(exchange, text)
    }

    fn load_once(&self, exchange: &Exchange, text: &[u8]) -> std::result::Result<(), Vec<u8>> {
        exchange.ended.set(None);
        exchange.is_look_due.set(false);
        exchange.coroutines.set(0);
        exchange.registered.take();
        let said = |error: &mlua::Error| [LOAD_FAILED, &why(error)[..]].concat();
        self.registered.clear().map_err(|error| said(&error))?;
        let function = compile(self.lua, text, FUNCTION_NAME, &self.of_functions).map_err(|error| said(&error))?;
        exchange.is_loading.set(true);
        let loaded = self.load_library.call::<(bool, Value)>(function);
        exchange.is_loading.set(false);
        let raised = match loaded {
            Ok((true, _)) => return Ok(()),
            Ok((false, value)) => self.raised(value).map(|raised| raised.text),
            Err(error) => Ok(why(&error)),
        };
        let text = match exchange.ended.get() {
            Some(_) => text::LOAD_TIMEOUT.into(),
            None => raised.unwrap_or_default(),
        };
        Err([b"ERR Error registering functions: ", &text[..]].concat())
    }

    /// What a script has ended with.
    fn raised(&self, value: Value) -> Result<Raised> {
        let Value::Table(table) = &value else {
            let text = match &value {
                Value::Error(error) => why(error),
                Value::String(text) => text.as_bytes().to_vec(),
                _ => Vec::new(),
            };
            return Ok(Raised { text: [b"ERR ", &text[..]].concat(), place: None });
        };
        let text = match table.raw_get("err")? {
            Value::String(text) => text.as_bytes().to_vec(),
            _ => text::NO_TEXT.to_vec(),
        };
        let place = match (table.raw_get::<Value>("source")?, table.raw_get::<Value>("line")?) {
            (Value::String(source), Value::Integer(line)) => Some((source.to_string_lossy(), line)),
            _ => None,
        };
        Ok(Raised { text, place })
    }
}

/// What the error of a library begins with that does not compile.
const LOAD_FAILED: &[u8] = b"ERR Error compiling function: ";

/// Whether this is what a script is told that is being ended.
fn is_end(text: &[u8]) -> bool {
    [text::KILLED, text::ABORTED, text::DESERTED].iter().any(|end| end.as_bytes() == text)
}

/// What raises errors for the prelude, and what makes Redis's tables of them.
fn errors(lua: &Lua, host: &Table) -> Result<()> {
    let bad = lua.create_function(|lua, values: MultiValue| -> Result<()> {
        let given = Given::new(lua, &values);
        let number = usize::try_from(given.integer(1)?).unwrap_or(1);
        let expected = given.string(2)?.to_string_lossy();
        Err(match expected.contains(' ') {
            true => raise::bad_argument(lua, number, &expected),
            false => raise::bad_type(lua, number, &expected, given.get(3)),
        })
    })?;
    host.raw_set("bad", bad)?;
    let refuse = |lua: &Lua, _: MultiValue| -> Result<()> { Err(raise::fail(lua, text::READ_ONLY_TABLE)) };
    host.raw_set("refuse", lua.create_function(refuse)?)?;
    let refuse = |lua: &Lua, _: MultiValue| -> Result<()> { Err(raise::throw_text(lua, text::READ_ONLY_TABLE)) };
    host.raw_set("refuse_call", lua.create_function(refuse)?)?;
    let fail = |lua: &Lua, text: mlua::LuaString| -> Result<()> { Err(raise::fail(lua, &*text.as_bytes())) };
    host.raw_set("fail", lua.create_function(fail)?)?;
    let absent = |lua: &Lua, (_, name): (Value, Value)| -> Result<()> {
        let name = lua.coerce_string(name)?.map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        let name = until_nul(&name);
        let text = [b"Script attempted to access nonexistent global variable '", name, b"'"].concat();
        Err(raise::fail(lua, text))
    };
    host.raw_set("absent", lua.create_function(absent)?)?;
    let tostring: Function = lua.globals().raw_get("tostring")?;
    let handle = lua.create_function(move |lua, error: Value| {
        let error = match &error {
            Value::Error(error) => raise::unwrap(lua, error)?,
            _ => error,
        };
        let origin = raise::origin(lua);
        let table = match error {
            Value::Table(table) => table,
            other => {
                let text = match &other {
                    Value::String(text) => text.as_bytes().to_vec(),
                    _ => tostring.call::<mlua::LuaString>(other)?.as_bytes().to_vec(),
                };
                let table = lua.create_table()?;
                let text = if is_end(&text) { text } else { [b"ERR ", &text[..]].concat() };
                table.raw_set("err", lua.create_string(text)?)?;
                table
            }
        };
        if let Some((source, line)) = origin {
            table.raw_set("source", source)?;
            table.raw_set("line", line)?;
        }
        Ok(table)
    })?;
    host.raw_set("handle", handle)
}

/// Functions of Lua's that have a bound here, or a flaw there.
fn basics(lua: &Lua, globals: &Table, effort: &Rc<Effort>) -> Result<()> {
    // In Lua's own the count of values overflows.
    let range = lua.create_function(|lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let table = given.table(1)?;
        // As C's int, which is what Lua reads.
        let first = given.integer_or(2, 1)? as i32;
        let last = if given.is_none(3) {
            i32::try_from(table.raw_len()).unwrap_or(i32::MAX)
        } else {
            given.integer(3)? as i32
        };
        if i64::from(last) - i64::from(first) >= UNPACKED_VALUES_MAX {
            return Err(raise::fail(lua, "too many results to unpack"));
        }
        Ok((first, last))
    })?;
    globals.raw_set("unpack", range)?;
    // A script may have its garbage collected, and may not stop that of others from being.
    let of_call = Rc::clone(effort);
    let collect = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        // A collection looks at all there is.
        of_call.read(lua.used_memory())?;
        let option = if given.is_none(1) { b"collect".to_vec() } else { given.string(1)?.as_bytes().to_vec() };
        match &option[..] {
            b"count" => Ok(Value::Number(lua.used_memory() as f64 / 1024.0)),
            b"collect" => lua.gc_collect().map(|()| Value::Integer(0)),
            b"step" => lua.gc_step().map(Value::Boolean),
            b"stop" | b"restart" => Ok(Value::Integer(0)),
            b"setpause" | b"setstepmul" => Ok(Value::Integer(200)),
            other => {
                let why = format!("invalid option '{}'", String::from_utf8_lossy(other));
                Err(raise::bad_argument(lua, 1, &why))
            }
        }
    })?;
    globals.raw_set("collectgarbage", collect)?;
    Ok(())
}

/// What is asked before Lua's own `table.insert` moves elements, which nothing interrupts: the place, and the last one behind it.
fn insert_place(lua: &Lua, host: &Table) -> Result<()> {
    let place = lua.create_function(|lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let last = i32::try_from(given.table(1)?.raw_len()).unwrap_or(i32::MAX).saturating_add(1);
        // As C's int, which is what Lua reads.
        let place = given.integer(2)? as i32;
        Ok((place, last.max(place)))
    })?;
    host.raw_set("insert_place", place)
}

/// Steps of one compilation beside those of reading its text: the collector, which stands still meanwhile, goes on behind it.
const COMPILED_STEPS: usize = 100;

/// The world that texts are compiled for, once there is one.
type WorldSlot = Rc<RefCell<Option<Table>>>;

/// `load` and `loadstring`: text alone, and all of it before it is compiled.
fn loaders(lua: &Lua, globals: &Table, world: &WorldSlot, effort: &Rc<Effort>) -> Result<()> {
    let (slot, of_call) = (Rc::clone(world), Rc::clone(effort));
    let loadstring = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let text = given.string(1)?;
        let name = if given.is_none(2) { text.clone() } else { given.string(2)? };
        of_call.note_steps(COMPILED_STEPS);
        of_call.read(text.as_bytes().len())?;
        loaded(lua, &text.as_bytes(), &name.as_bytes(), &slot)
    })?;
    globals.raw_set("loadstring", loadstring)?;
    let (slot, of_call) = (Rc::clone(world), Rc::clone(effort));
    let protected: Function = lua.globals().raw_get("pcall")?;
    let load = lua.create_function(move |lua, values: MultiValue| {
        let given = Given::new(lua, &values);
        let Some(Value::Function(reader)) = given.get(1) else {
            return Err(raise::bad_type(lua, 1, "function", given.get(1)));
        };
        let name = if given.is_none(2) { b"=(load)".to_vec() } else { given.string(2)?.as_bytes().to_vec() };
        let mut text = Vec::new();
        loop {
            let (is_done, piece): (bool, Value) = protected.call(reader)?;
            match piece {
                Value::Error(error) if !is_done => return Err(*error),
                other if !is_done => return Ok((Value::Nil, other)),
                Value::Nil => break,
                piece @ (Value::String(_) | Value::Integer(_) | Value::Number(_)) => {
                    let piece = lua.coerce_string(piece)?;
                    let before = text.len();
                    text.extend_from_slice(&piece.as_ref().map(|piece| piece.as_bytes().to_vec()).unwrap_or_default());
                    if text.len() == before {
                        break;
                    }
                }
                _ => {
                    let why = lua.create_string("reader function must return a string")?;
                    return Ok((Value::Nil, Value::String(why)));
                }
            }
            if text.len() > SCRIPT_STRING_BYTES_MAX {
                return Err(raise::throw_text(lua, "not enough memory"));
            }
        }
        of_call.note_steps(COMPILED_STEPS);
        of_call.read(text.len())?;
        loaded(lua, &text, &name, &slot)
    })?;
    globals.raw_set("load", load)
}

/// The function of a text, or nil and what is wrong with it.
fn loaded(lua: &Lua, text: &[u8], name: &[u8], world: &WorldSlot) -> Result<(Value, Value)> {
    let Some(world) = world.borrow().clone() else { return Ok((Value::Nil, Value::Nil)) };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = if name == DEBUGGED_NAME.as_bytes() { SCRIPT_NAME } else { name };
    match compile(lua, text, &shortened_name(name), &world) {
        Ok(function) => Ok((Value::Function(function), Value::Nil)),
        Err(error) => Ok((Value::Nil, Value::String(lua.create_string(why(&error))?))),
    }
}

/// What is kept of the name of a chunk: of that of a file, which begins with `@`, Lua shows the end.
fn shortened_name(name: &[u8]) -> Vec<u8> {
    match name.split_first() {
        Some((b'@', path)) => [b"@", &path[path.len().saturating_sub(CODE_NAME_BYTES_MAX)..]].concat(),
        _ => name[..name.len().min(CODE_NAME_BYTES_MAX)].to_vec(),
    }
}
