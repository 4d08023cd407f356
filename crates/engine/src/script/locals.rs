//! The local variables of a script that is debugged.
//!
//! The binding does not show them: what Lua has for that may also change any of them, and more. So a script that is to be debugged is
//! compiled twice. The code that comes of its text is written down, and read again with a call of the debugger in front of each line and
//! behind each declaration. Such a call is handed a function that returns the variables in scope, which it holds as any function
//! holds those of another that it names. Nothing else is changed: the order of instructions, their lines and the names of variables
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

/// Registers of a function at most.
const REGISTERS_MAX: u8 = 250;
/// Variables that one function may hold.
const HELD_MAX: usize = 200;
/// What a jump may span, and how many functions and constants there may be.
const OPERAND_MAX: usize = 1 << 17;
/// Bytes of code that is written down at most.
const CODE_BYTES_MAX: usize = 8 << 20;

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

/// The names of the variables in scope at each place, by its number.
pub(super) type Places = Vec<Vec<Vec<u8>>>;

/// The same code with calls of what the global `debugger` is. `None`: the code is of another kind, or too large.
pub(super) fn with_calls(code: &[u8], debugger: &[u8]) -> Option<(Vec<u8>, Places)> {
    let mut reader = Reader { rest: code };
    let head = reader.take(12)?;
    // Lua 5.1, in the format of its own; numbers as this machine has them.
    let [0x1b, b'L', b'u', b'a', 0x51, 0, 1, 4, size_bytes @ (4 | 8), 4, 8, 0] = *head else { return None };
    let mut rewriter = Rewriter { debugger, size_bytes: size_bytes.into(), places: Vec::new() };
    let main = reader.function(size_bytes.into(), 0)?;
    let mut out = head.to_vec();
    rewriter.write(main, &mut out)?;
    (reader.rest.is_empty() && out.len() <= CODE_BYTES_MAX).then_some((out, rewriter.places))
}

/// A function as it is written down.
struct Function {
    /// Its name, with its length; empty for that of the function around it.
    source: Vec<u8>,
    first_line: [u8; 4],
    last_line: [u8; 4],
    upvalues: u8,
    parameters: u8,
    is_vararg: u8,
    registers: u8,
    code: Vec<u32>,
    /// Each as it is written.
    constants: Vec<Vec<u8>>,
    functions: Vec<Function>,
    lines: Vec<u32>,
    locals: Vec<Local>,
    upvalue_names: Vec<Vec<u8>>,
}

struct Local {
    name: Vec<u8>,
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

    fn function(&mut self, size_bytes: usize, depth: usize) -> Option<Function> {
        // Lua itself nests no deeper.
        if depth > 200 {
            return None;
        }
        Some(Function {
            source: self.text(size_bytes)?.to_vec(),
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
                let name = reader.text(size_bytes)?.strip_suffix(b"\0")?.to_vec();
                Some(Local { name, start: reader.number()?, end: reader.number()? })
            })?,
            upvalue_names: self.list(|reader| reader.text(size_bytes).map(<[u8]>::to_vec))?,
        })
    }

    fn constant(&mut self, size_bytes: usize) -> Option<Vec<u8>> {
        let before = self.rest;
        match self.byte()? {
            0 => {}
            1 => _ = self.byte()?,
            3 => _ = self.take(8)?,
            4 => _ = self.text(size_bytes)?,
            _ => return None,
        }
        Some(before[..before.len() - self.rest.len()].to_vec())
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
    (pc + 1 + (instruction >> 14) as usize).checked_sub(OPERAND_MAX - 1)
}

struct Rewriter<'n> {
    debugger: &'n [u8],
    size_bytes: usize,
    places: Places,
}

impl Rewriter<'_> {
    /// Writes a function and those within it, with calls if there is room for them.
    fn write(&mut self, mut function: Function, out: &mut Vec<u8>) -> Option<()> {
        if out.len() > CODE_BYTES_MAX {
            return None;
        }
        if function.registers <= REGISTERS_MAX - 2 && function.lines.len() == function.code.len() {
            self.add_calls(&mut function)?;
        }
        let Function { source, first_line, last_line, code, constants, functions, lines, locals, .. } = function;
        self.put_text(&source, out);
        out.extend([first_line, last_line].concat());
        out.extend([function.upvalues, function.parameters, function.is_vararg, function.registers]);
        put_list(&code, out, |instruction, out| out.extend(instruction.to_le_bytes()));
        put_list(&constants, out, |constant, out| out.extend(constant));
        out.extend((functions.len() as u32).to_le_bytes());
        functions.into_iter().try_for_each(|inner| self.write(inner, out))?;
        put_list(&lines, out, |line, out| out.extend(line.to_le_bytes()));
        put_list(&locals, out, |local, out| {
            self.put_text(&[&local.name[..], b"\0"].concat(), out);
            out.extend([local.start, local.end].map(u32::to_le_bytes).concat());
        });
        put_list(&function.upvalue_names, out, |name, out| self.put_text(name, out));
        Some(())
    }

    fn put_text(&self, text: &[u8], out: &mut Vec<u8>) {
        out.extend(&(text.len() as u64).to_le_bytes()[..self.size_bytes]);
        out.extend(text);
    }

    fn add_calls(&mut self, function: &mut Function) -> Option<()> {
        let (is_place, is_instruction) = (places(function)?, instructions(function)?);
        let register = u32::from(function.registers);
        let name = function.constants.len();
        let mut text = vec![4];
        self.put_text(&[self.debugger, b"\0"].concat(), &mut text);
        function.constants.push(text);
        let (mut code, mut lines) = (Vec::new(), Vec::new());
        // Where each instruction has come to, its call in front of it included.
        let mut starts = Vec::with_capacity(function.code.len() + 1);
        for (pc, instruction) in function.code.iter().enumerate() {
            starts.push(code.len());
            if is_place[pc] {
                let inner = function.functions.len();
                let scope = scope(&function.locals, pc);
                function.functions.push(self.returning(function, &scope)?);
                code.push(with_bx(GETGLOBAL, register, name));
                code.push(with_bx(CLOSURE, register + 1, inner));
                code.extend((0..scope.len() as u32).map(|local| with_abc(MOVE, 0, local, 0)));
                code.push(with_abc(CALL, register, 2, 1));
                self.places.push(scope);
            }
            code.push(*instruction);
            lines.resize(code.len(), function.lines[pc]);
        }
        starts.push(code.len());
        if code.len().max(name).max(function.functions.len()) >= OPERAND_MAX {
            return None;
        }
        let own = |pc: usize| starts[pc + 1] - 1;
        for (pc, instruction) in function.code.iter().enumerate() {
            if is_instruction[pc] && is_jump(*instruction) {
                let to = starts.get(target(*instruction, pc)?)?;
                let span = (to + OPERAND_MAX - 1).checked_sub(own(pc) + 1)?;
                code[own(pc)] = with_bx(opcode(*instruction), a(*instruction), span);
            }
        }
        for local in &mut function.locals {
            local.start = *starts.get(local.start as usize)? as u32;
            local.end = *starts.get(local.end as usize)? as u32;
        }
        (function.code, function.lines) = (code, lines);
        function.registers += 2;
        Some(())
    }

    /// A function that returns the number of this place and the variables in its scope.
    fn returning(&self, around: &Function, scope: &[Vec<u8>]) -> Option<Function> {
        let count = u8::try_from(scope.len()).ok()?;
        let mut code = vec![with_bx(LOADK, 0, 0)];
        code.extend((0..u32::from(count)).map(|local| with_abc(GETUPVAL, local + 1, local, 0)));
        code.push(with_abc(RETURN, 0, u32::from(count) + 2, 0));
        let number = [&[3][..], &(self.places.len() as f64).to_le_bytes()].concat();
        Some(Function {
            source: Vec::new(),
            first_line: around.first_line,
            last_line: around.last_line,
            upvalues: count,
            parameters: 0,
            is_vararg: 0,
            registers: (count + 1).max(2),
            code,
            constants: vec![number],
            functions: Vec::new(),
            lines: Vec::new(),
            locals: Vec::new(),
            upvalue_names: Vec::new(),
        })
    }
}

fn put_list<T>(list: &[T], out: &mut Vec<u8>, one: impl Fn(&T, &mut Vec<u8>)) {
    out.extend((list.len() as u32).to_le_bytes());
    list.iter().for_each(|element| one(element, out));
}

/// The names of the variables in scope in front of an instruction: the first is in the first register.
fn scope(locals: &[Local], pc: usize) -> Vec<Vec<u8>> {
    let is_active = |local: &&Local| local.start as usize <= pc && pc < local.end as usize;
    locals.iter().filter(is_active).map(|local| local.name.clone()).take(HELD_MAX).collect()
}

fn is_jump(instruction: u32) -> bool {
    matches!(opcode(instruction), JMP | FORLOOP | FORPREP)
}

/// In front of which instructions the debugger is called: where a line begins, where a jump leads, and where the scope has changed. Not
/// within what belongs together.
fn places(function: &Function) -> Option<Vec<bool>> {
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
fn instructions(function: &Function) -> Option<Vec<bool>> {
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
