//! The local variables of a script that is debugged.
//!
//! The Lua binding does not expose local variables: Lua's own debug library can also change any variable, and more. So a script with a debugger
//! is compiled twice. Its bytecode is dumped, and loaded again with a call of the debugger before each line and after each declaration.
//! The argument of such a call is a closure that returns the variables in scope, which are its upvalues. Nothing else is changed: the order of instructions, their lines and the names of variables
//! stay, so errors and traces are those of the script itself.
//!
//! Nothing but what this interpreter has just written is read here, and it is checked by the interpreter as all code is that it loads.
//!
//! ```text
//!   pc:  3  LOADK  1 ...      GETGLOBAL  m  "debugger"      m: the first register that the function does not use
//!   line 2              -->   CLOSURE    m+1  n             n: return <number>, a, b
//!                             MOVE       0  0               a
//!                             MOVE       0  1               b
//!                             CALL       m  2  1
//!                             LOADK      1 ...
//! ```

use std::ops::Range;

use super::text;
use crate::limits::{DEBUGGER_CODE_BYTES_MAX, DEBUGGER_CODE_WORDS_MAX};

/// Registers of a function at most.
const REGISTERS_MAX: u8 = 250;
/// Registers that a call of the debugger takes.
const REGISTERS_OF_CALL: u8 = 2;
/// Variables that one function may hold, and may have in scope.
const HELD_MAX: usize = 200;
/// How many functions and constants there may be; a jump spans half as many instructions, forward or back.
const OPERANDS: usize = 1 << 18;
/// What stands for a jump that leads to the next instruction.
const NO_SPAN: usize = OPERANDS / 2 - 1;

const MOVE: u32 = 0;
const LOADK: u32 = 1;
const LOADBOOL: u32 = 2;
const GETUPVAL: u32 = 4;
const GETGLOBAL: u32 = 5;
const JMP: u32 = 22;
const EQ: u32 = 23;
const TESTSET: u32 = 27;
const CALL: u32 = 28;
const TAILCALL: u32 = 29;
const RETURN: u32 = 30;
const FORLOOP: u32 = 31;
const FORPREP: u32 = 32;
const TFORLOOP: u32 = 33;
const SETLIST: u32 = 34;
const CLOSURE: u32 = 36;
const VARARG: u32 = 37;

/// The places of a script, by their numbers: which variables are in scope there is found out when it is asked for.
#[derive(Default)]
pub(super) struct Places {
    /// The variables of each function that has calls.
    locals: Vec<Vec<Variable>>,
    /// The function, and the instruction of its own in front of which the place is.
    places: Vec<(u32, u32)>,
    /// Instructions of the largest function, the calls in it included.
    pub(super) instructions_max: usize,
}

/// A variable, and in front of which instructions it is in scope.
struct Variable {
    name: Box<[u8]>,
    scope: Range<u32>,
}

impl Places {
    /// The names of the variables in scope at a place: the first is in the first register.
    pub(super) fn names(&self, place: usize) -> Option<impl Iterator<Item = &[u8]>> {
        let (function, pc) = *self.places.get(place)?;
        let locals = self.locals.get(function as usize)?;
        let in_scope = locals.iter().filter(move |local| local.scope.contains(&pc));
        Some(in_scope.map(|local| &*local.name).take(HELD_MAX))
    }

    /// How many variables the function of a place has: finding those in scope looks at each.
    pub(super) fn variables(&self, place: usize) -> usize {
        let function = self.places.get(place).map(|(function, _)| *function as usize);
        function.and_then(|function| self.locals.get(function)).map_or(0, Vec::len)
    }
}

/// Why a script cannot be debugged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// Its code would be too large with calls in it.
    TooLarge,
    /// One of its functions has no registers left for them.
    TooManyRegisters,
}

impl Unfit {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::TooLarge => text::TOO_LONG_TO_DEBUG,
            Self::TooManyRegisters => text::TOO_MANY_REGISTERS,
        }
    }
}

/// The same code with calls of what the global `debugger` is.
pub(super) fn with_calls(code: &[u8], debugger: &[u8]) -> Result<(Vec<u8>, Places), Unfit> {
    if code.len() > DEBUGGER_CODE_BYTES_MAX {
        return Err(Unfit::TooLarge);
    }
    let mut reader = Reader { rest: code };
    let (head, size_bytes) = reader.head().ok_or(Unfit::TooLarge)?;
    let main = reader.function(size_bytes, 0).filter(|_| reader.rest.is_empty()).ok_or(Unfit::TooLarge)?;
    if main.needs_registers() {
        return Err(Unfit::TooManyRegisters);
    }
    let mut rewriter = Rewriter { debugger, size_bytes, places: Places::default(), words: 0 };
    let mut out = head.to_vec();
    rewriter.write(main, &mut out).ok_or(Unfit::TooLarge)?;
    Ok((out, rewriter.places))
}

/// A function as it is written down.
struct Function<'c> {
    /// Its name; empty for that of the function around it.
    source: &'c [u8],
    first_line: [u8; 4],
    last_line: [u8; 4],
    upvalues: u8,
    parameters: u8,
    is_vararg: u8,
    registers: u8,
    code: Vec<u32>,
    /// Each as it is written.
    constants: Vec<&'c [u8]>,
    functions: Vec<Function<'c>>,
    lines: Vec<u32>,
    locals: Vec<Local<'c>>,
    upvalue_names: Vec<&'c [u8]>,
}

impl Function<'_> {
    /// Whether there is no room for calls in it or in one within it.
    fn needs_registers(&self) -> bool {
        self.registers > REGISTERS_MAX - REGISTERS_OF_CALL || self.functions.iter().any(Self::needs_registers)
    }
}

struct Local<'c> {
    /// With the zero behind it.
    name: &'c [u8],
    start: u32,
    end: u32,
}

struct Reader<'c> {
    rest: &'c [u8],
}

impl<'c> Reader<'c> {
    fn take(&mut self, count: usize) -> Option<&'c [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn four(&mut self) -> Option<[u8; 4]> {
        self.take(4)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u32> {
        self.four().map(u32::from_le_bytes)
    }

    /// As many of something as are said; each takes at least a byte.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()? as usize;
        if count > self.rest.len() {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    /// A text with its length in front and the zero behind it.
    fn text(&mut self, size_bytes: usize) -> Option<&'c [u8]> {
        let mut size = [0; 8];
        size.get_mut(..size_bytes)?.copy_from_slice(self.take(size_bytes)?);
        self.take(usize::try_from(u64::from_le_bytes(size)).ok()?)
    }

    /// What the code begins with, and how many bytes of it are a length.
    fn head(&mut self) -> Option<(&'c [u8], usize)> {
        let head = self.take(12)?;
        // Lua 5.1, in the format of its own; numbers as this machine has them.
        match *head {
            [0x1b, b'L', b'u', b'a', 0x51, 0, 1, 4, size_bytes @ (4 | 8), 4, 8, 0] => Some((head, size_bytes.into())),
            _ => None,
        }
    }

    fn function(&mut self, size_bytes: usize, depth: usize) -> Option<Function<'c>> {
        // Lua itself nests no deeper.
        if depth > 200 {
            return None;
        }
        Some(Function {
            source: self.text(size_bytes)?,
            first_line: self.four()?,
            last_line: self.four()?,
            upvalues: self.byte()?,
            parameters: self.byte()?,
            is_vararg: self.byte()?,
            registers: self.byte()?,
            code: self.list(Self::number)?,
            constants: self.list(|reader| reader.constant(size_bytes))?,
            functions: self.list(|reader| reader.function(size_bytes, depth + 1))?,
            lines: self.list(Self::number)?,
            locals: self.list(|reader| {
                let name = reader.text(size_bytes)?;
                Some(Local { name, start: reader.number()?, end: reader.number()? })
            })?,
            upvalue_names: self.list(|reader| reader.text(size_bytes))?,
        })
    }

    fn constant(&mut self, size_bytes: usize) -> Option<&'c [u8]> {
        let before = self.rest;
        match self.byte()? {
            0 => {}
            1 => _ = self.byte()?,
            3 => _ = self.take(8)?,
            4 => _ = self.text(size_bytes)?,
            _ => return None,
        }
        before.get(..before.len() - self.rest.len())
    }
}

fn opcode(instruction: u32) -> u32 {
    instruction & 0x3f
}

fn a(instruction: u32) -> u32 {
    instruction >> 6 & 0xff
}

fn b(instruction: u32) -> u32 {
    instruction >> 23
}

fn c(instruction: u32) -> u32 {
    instruction >> 14 & 0x1ff
}

fn with_abc(opcode: u32, a: u32, b: u32, c: u32) -> u32 {
    opcode | a << 6 | c << 14 | b << 23
}

fn with_bx(opcode: u32, a: u32, bx: usize) -> u32 {
    opcode | a << 6 | (bx as u32) << 14
}

/// Where a jump at `pc` leads.
fn target(instruction: u32, pc: usize) -> Option<usize> {
    (pc + 1 + (instruction >> 14) as usize).checked_sub(NO_SPAN)
}

struct Rewriter<'n> {
    debugger: &'n [u8],
    size_bytes: usize,
    places: Places,
    /// Instructions that have been written.
    words: usize,
}

/// The code of a function with calls in it.
struct Rewritten {
    code: Vec<u32>,
    lines: Vec<u32>,
    /// Where each instruction has come to, its call in front of it included.
    starts: Vec<usize>,
    /// The functions that return variables, as they are written.
    returning: Vec<u8>,
    calls: usize,
}

impl Rewriter<'_> {
    /// Writes a function with calls, and those within it.
    fn write(&mut self, function: Function<'_>, out: &mut Vec<u8>) -> Option<()> {
        let mut rewritten = self.rewrite(&function)?;
        move_jumps(&function, &mut rewritten)?;
        let Rewritten { code, lines, starts, returning, calls } = rewritten;
        self.put_text(function.source, out);
        out.extend([function.first_line, function.last_line].concat());
        let registers = function.registers + REGISTERS_OF_CALL;
        out.extend([function.upvalues, function.parameters, function.is_vararg, registers]);
        put_list(&code, out, |instruction, out| out.extend(instruction.to_le_bytes()));
        out.extend((function.constants.len() as u32 + 1).to_le_bytes());
        function.constants.iter().for_each(|constant| out.extend(*constant));
        out.push(4);
        self.put_text(&[self.debugger, b"\0"].concat(), out);
        out.extend(((function.functions.len() + calls) as u32).to_le_bytes());
        drop((code, function.code, function.constants));
        function.functions.into_iter().try_for_each(|inner| self.write(inner, out))?;
        out.extend(returning);
        put_list(&lines, out, |line, out| out.extend(line.to_le_bytes()));
        out.extend((function.locals.len() as u32).to_le_bytes());
        for local in &function.locals {
            self.put_text(local.name, out);
            for pc in [local.start, local.end] {
                out.extend((*starts.get(pc as usize)? as u32).to_le_bytes());
            }
        }
        put_list(&function.upvalue_names, out, |name, out| self.put_text(name, out));
        Some(())
    }

    fn put_text(&self, text: &[u8], out: &mut Vec<u8>) {
        out.extend(&(text.len() as u64).to_le_bytes()[..self.size_bytes]);
        out.extend(text);
    }

    /// Puts calls into the code of a function. Where they make jumps longer, those are still as they were.
    fn rewrite(&mut self, function: &Function<'_>) -> Option<Rewritten> {
        if function.lines.len() != function.code.len() {
            return None;
        }
        let is_place = places(function)?;
        let register = u32::from(function.registers);
        let name = function.constants.len();
        let own = self.places.locals.len() as u32;
        let mut scope = InScope { locals: &function.locals, next: 0, active: Vec::new() };
        let (mut code, mut lines, mut returning, mut calls) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut starts = Vec::with_capacity(function.code.len() + 1);
        for (pc, instruction) in function.code.iter().enumerate() {
            starts.push(code.len());
            let held = scope.held_at(pc as u32);
            if is_place[pc] {
                let held = u8::try_from(held).ok()?;
                code.push(with_bx(GETGLOBAL, register, name));
                code.push(with_bx(CLOSURE, register + 1, function.functions.len() + calls));
                code.extend((0..u32::from(held)).map(|local| with_abc(MOVE, 0, local, 0)));
                code.push(with_abc(CALL, register, 2, 1));
                self.put_returning(function, held, &mut returning);
                self.places.places.push((own, pc as u32));
                // The function that returns them has as many instructions as there are variables, and two.
                self.words += usize::from(held) + 2;
                calls += 1;
            }
            code.push(*instruction);
            lines.resize(code.len(), function.lines[pc]);
            if self.words + code.len() > DEBUGGER_CODE_WORDS_MAX {
                return None;
            }
        }
        starts.push(code.len());
        self.words += code.len();
        self.places.instructions_max = self.places.instructions_max.max(code.len());
        if name.max(function.functions.len() + calls) >= OPERANDS {
            return None;
        }
        self.places.locals.push(function.locals.iter().map(Variable::of).collect());
        Some(Rewritten { code, lines, starts, returning, calls })
    }

    /// Writes a function that returns the number of this place and the variables in its scope.
    fn put_returning(&self, around: &Function<'_>, held: u8, out: &mut Vec<u8>) {
        self.put_text(b"", out);
        out.extend([around.first_line, around.last_line].concat());
        out.extend([held, 0, 0, (held + 1).max(2)]);
        out.extend((u32::from(held) + 2).to_le_bytes());
        out.extend(with_bx(LOADK, 0, 0).to_le_bytes());
        (0..u32::from(held)).for_each(|local| out.extend(with_abc(GETUPVAL, local + 1, local, 0).to_le_bytes()));
        out.extend(with_abc(RETURN, 0, u32::from(held) + 2, 0).to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out.push(3);
        out.extend((self.places.places.len() as f64).to_le_bytes());
        // No functions in it, and nothing that tells of lines and names.
        out.extend([0; 16]);
    }
}

impl Variable {
    fn of(local: &Local<'_>) -> Self {
        let name = local.name.strip_suffix(b"\0").unwrap_or(local.name);
        Self { name: name.into(), scope: local.start..local.end }
    }
}

/// The variables in scope, while the instructions of a function are walked through. Lua writes them down in the order in which they come
/// into scope, and those that came last leave it first.
struct InScope<'f> {
    locals: &'f [Local<'f>],
    next: usize,
    /// In front of which instructions they leave it.
    active: Vec<u32>,
}

impl InScope<'_> {
    /// How many are in scope in front of an instruction, and are held.
    fn held_at(&mut self, pc: u32) -> usize {
        loop {
            while self.active.last().is_some_and(|end| *end <= pc) {
                self.active.pop();
            }
            match self.locals.get(self.next).filter(|local| local.start <= pc) {
                Some(local) => self.active.push(local.end),
                None => return self.active.len().min(HELD_MAX),
            }
            self.next += 1;
        }
    }
}

/// Has the jumps of a function lead to where the instructions have come to.
fn move_jumps(function: &Function<'_>, rewritten: &mut Rewritten) -> Option<()> {
    let Rewritten { code, starts, .. } = rewritten;
    let is_instruction = instructions(function)?;
    for (pc, instruction) in function.code.iter().enumerate() {
        if is_instruction[pc] && is_jump(*instruction) {
            let own = starts[pc + 1] - 1;
            let to = starts.get(target(*instruction, pc)?)?;
            let span = (to + NO_SPAN).checked_sub(own + 1).filter(|span| *span < OPERANDS)?;
            code[own] = with_bx(opcode(*instruction), a(*instruction), span);
        }
    }
    Some(())
}

fn put_list<T>(list: &[T], out: &mut Vec<u8>, one: impl Fn(&T, &mut Vec<u8>)) {
    out.extend((list.len() as u32).to_le_bytes());
    list.iter().for_each(|element| one(element, out));
}

fn is_jump(instruction: u32) -> bool {
    matches!(opcode(instruction), JMP | FORLOOP | FORPREP)
}

/// In front of which instructions the debugger is called: where a line begins, where a jump leads, and where the scope has changed. Not
/// within what belongs together.
fn places(function: &Function<'_>) -> Option<Vec<bool>> {
    let code = &function.code;
    let mut is_place: Vec<bool> =
        (0..code.len()).map(|pc| pc == 0 || function.lines[pc] != function.lines[pc - 1]).collect();
    for local in &function.locals {
        for pc in [local.start, local.end] {
            if let Some(place) = is_place.get_mut(pc as usize) {
                *place = true;
            }
        }
    }
    let is_instruction = instructions(function)?;
    for (pc, instruction) in code.iter().enumerate() {
        if is_instruction[pc] && is_jump(*instruction) {
            *is_place.get_mut(target(*instruction, pc)?)? = true;
        }
    }
    for (pc, instruction) in code.iter().enumerate() {
        let is_bound = match opcode(*instruction) {
            // Tests skip the jump behind them, and what gives many values is used by what is behind it.
            EQ..=TESTSET | TFORLOOP => true,
            LOADBOOL | CALL | TAILCALL => c(*instruction) == u32::from(opcode(*instruction) == LOADBOOL),
            VARARG => b(*instruction) == 0,
            _ => false,
        };
        match is_place.get_mut(pc + 1) {
            Some(place) if is_bound && is_instruction[pc] => *place = false,
            _ => {}
        }
        is_place[pc] &= is_instruction[pc];
    }
    Some(is_place)
}

/// Which of the words of a function are instructions. Others belong to the one before them.
fn instructions(function: &Function<'_>) -> Option<Vec<bool>> {
    let mut is_instruction = vec![true; function.code.len()];
    let mut pc = 0;
    while let Some(instruction) = function.code.get(pc) {
        let belonging = match opcode(*instruction) {
            SETLIST => usize::from(c(*instruction) == 0),
            CLOSURE => usize::from(function.functions.get((*instruction >> 14) as usize)?.upvalues),
            _ => 0,
        };
        is_instruction.get_mut(pc + 1..pc + 1 + belonging)?.fill(false);
        pc += 1 + belonging;
    }
    Some(is_instruction)
}
