//! What the vm and the engine say to each other, and the buffers that go with it.

use std::cell::{Cell, RefCell};

use corosensei::Yielder;
use respool_wire::{ArgsBuf, Protocol};

use super::cache::Hash;
use super::collector::Collector;
use super::debugger::Debugger;
use super::library::Registered;
use super::log::ScriptLogLevel;

/// The way from the script's stack to the engine's.
pub(super) type Way = Yielder<Order, Report>;

/// What the vm is to do next.
pub(super) enum Order {
    /// Compile a text and keep it under its hash. It may take `spare` bytes beyond the limit.
    Compile { hash: Hash, text: Vec<u8>, spare: usize },
    /// Run what is kept under a hash.
    Run { hash: Hash, keys: usize, protocol: Protocol },
    /// Run a text under [`Exchange::debugger`], unless that cannot be.
    Debug { text: Vec<u8>, keys: usize, protocol: Protocol },
    /// Forget what is kept under a hash.
    Forget(Hash),
    /// Forget all scripts.
    ForgetAll,
    /// Collect all garbage.
    Collect,
    /// Run the text of a library, which registers its functions.
    Load(Vec<u8>),
    /// What was registered last may be called from now on, and these functions no more. There are so many `names` then.
    Adopt { gone: Vec<Vec<u8>>, names: usize },
    /// These functions may be called no more.
    Drop(Vec<Vec<u8>>),
    /// Call the function of this name in small letters.
    Call { name: Vec<u8>, keys: usize, protocol: Protocol },
    /// Go on.
    Go,
    /// Go on, and end the script as soon as it has the word: it is killed.
    Kill,
    /// The vm is no longer needed.
    End,
}

/// Where the vm stands.
pub(super) enum Report {
    /// It waits for an order.
    Ready,
    /// A text has been compiled, or this is why not; or a library has been run, which has registered [`Exchange::registered`].
    Compiled(Result<(), Vec<u8>>),
    /// The script wants a command run: it is in [`Exchange::request`], and its reply belongs into [`Exchange::reply`].
    Call,
    /// The script wants to know whether the user may run a command: it is in [`Exchange::request`].
    Look,
    /// The script wants to know the time, in milliseconds as a text that belongs into [`Exchange::reply`].
    Clock,
    /// The script writes a line to the log.
    Log(ScriptLogLevel, Vec<u8>),
    /// The script has run for a while, and asks whether it may go on.
    Paused,
    /// The debugger has stopped the script, and what it says is in [`Exchange::debugger`]. The next command belongs into
    /// [`Exchange::request`].
    Stopped,
    /// The script has run through; its reply is in [`Exchange::answer`].
    Done(Result<(), Raised>),
}

/// An error that has ended a script.
#[derive(Debug)]
pub(super) struct Raised {
    /// Its text, the code first.
    pub(super) text: Vec<u8>,
    /// Where: the chunk and the line.
    pub(super) place: Option<(String, i64)>,
}

/// Bytes that a buffer may keep from one script to the next.
pub(super) const BUFFER_BYTES_KEPT: usize = 64 * 1024;

/// Buffers between the vm and the engine, which never use them at once.
#[derive(Default)]
pub(super) struct Exchange {
    /// The command that a script wants run; before that, the keys and arguments of a script.
    pub(super) request: RefCell<ArgsBuf>,
    /// The reply to a command, in the script's dialect.
    pub(super) reply: RefCell<Vec<u8>>,
    /// The reply of a script, in the client's dialect.
    pub(super) answer: RefCell<Vec<u8>>,
    /// The dialect in which a script reads replies.
    pub(super) protocol: Cell<Protocol>,
    /// Why the script that runs is being ended.
    pub(super) ended: Cell<Option<&'static str>>,
    /// What debugs the script that runs.
    pub(super) debugger: RefCell<Option<Box<Debugger>>>,
    /// The command that was called last was not run, as scripts may not call it so.
    pub(super) is_refused: Cell<bool>,
    /// The script's time slice is over, and its calls were nested too deep to interrupt it. It is interrupted as soon as they are not.
    pub(super) is_look_due: Cell<bool>,
    /// The text of a library runs, which may register functions.
    pub(super) is_loading: Cell<bool>,
    /// The functions that a library has registered.
    pub(super) registered: RefCell<Registered>,
    /// Bytes that the interpreter held when it last left its stack.
    pub(super) vm_bytes: Cell<usize>,
    pub(super) collector: Collector,
    /// Bytes that the script takes which has been compiled last, or that it had taken when there was no more memory.
    pub(super) compiled_bytes: Cell<usize>,
    /// Coroutines that it has made since the last look.
    pub(super) coroutines: Cell<u32>,
}

impl Exchange {
    /// The script that runs is to end.
    pub(super) fn end(&self, why: &'static str) {
        if self.ended.get().is_none() {
            self.ended.set(Some(why));
        }
    }

    pub(super) fn with_debugger(&self, tell: impl FnOnce(&mut Debugger)) {
        if let Some(debugger) = self.debugger.borrow_mut().as_mut() {
            tell(debugger);
        }
    }

    /// Gives back what large commands and replies have left, once a script has ended.
    pub(super) fn give_memory_back(&self) {
        let mut request = self.request.borrow_mut();
        if request.capacity() > BUFFER_BYTES_KEPT {
            *request = ArgsBuf::default();
        }
        for buffer in [&self.reply, &self.answer] {
            let mut buffer = buffer.borrow_mut();
            if buffer.capacity() > BUFFER_BYTES_KEPT {
                *buffer = Vec::new();
            }
        }
    }
}
