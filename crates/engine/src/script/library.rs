//! Libraries of functions: what they are called, what they hold, and the texts that they are made of.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use respool_command::words::{self, until_nul};

use super::shebang::ScriptFlags;
use crate::limits::{LIBRARY_FUNCTIONS_MAX, LIBRARY_TEXT_BYTES_MAX};

const BAD_NAME: &str =
    "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

pub(super) const TEXTS_TOO_LONG: &str = "ERR the names and descriptions of one library's functions are too long";

/// A function that a library has registered.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: Vec<u8>,
    pub(super) description: Option<Vec<u8>>,
    /// As they are told.
    pub(super) flag_names: Vec<&'static str>,
    pub(super) flags: ScriptFlags,
}

impl Function {
    /// The bytes of its name and description.
    fn text_bytes(&self) -> usize {
        self.name.len() + self.description.as_ref().map_or(0, Vec::len)
    }
}

/// A library.
#[derive(Clone, Debug)]
pub(super) struct Library {
    pub(super) text: Box<[u8]>,
    pub(super) functions: Vec<Function>,
}

impl Library {
    fn bytes(&self, name: &[u8]) -> usize {
        let text = |function: &Function| {
            2 * function.name.len() + function.description.as_ref().map_or(0, Vec::len) + size_of::<Function>()
        };
        2 * name.len() + self.text.len() + self.functions.iter().map(text).sum::<usize>()
    }
}

/// All libraries of an engine.
#[derive(Clone, Debug, Default)]
pub(super) struct Libraries {
    by_name: BTreeMap<Vec<u8>, Library>,
    /// By a function's name in small letters its library.
    owners: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Of their names, texts and functions.
    bytes: usize,
}

impl Libraries {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Library)> {
        self.by_name.iter()
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Library> {
        self.by_name.get(name)
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The bytes of their names, texts and functions.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn functions(&self) -> usize {
        self.owners.len()
    }

    /// A function by its name in any case.
    pub(super) fn function(&self, name: &[u8]) -> Option<&Function> {
        let small = match name.iter().any(u8::is_ascii_uppercase) {
            true => Cow::Owned(name.to_ascii_lowercase()),
            false => Cow::Borrowed(name),
        };
        let library = self.by_name.get(self.owners.get(&*small)?)?;
        library.functions.iter().find(|function| function.name.eq_ignore_ascii_case(name))
    }

    /// Whether a library may be added, in the place of one of that name: not if one of its functions belongs to another.
    pub(super) fn admit(&self, name: &[u8], library: &Library) -> Result<(), Vec<u8>> {
        for function in &library.functions {
            if self.owners.get(&function.name.to_ascii_lowercase()).is_some_and(|owner| owner != name) {
                return Err([b"ERR Function ", &function.name[..], b" already exists"].concat());
            }
        }
        Ok(())
    }

    /// Adds a library, in the place of one of that name. Nothing has changed if it is not admitted.
    pub(super) fn insert(&mut self, name: &[u8], library: Library) -> Result<(), Vec<u8>> {
        self.admit(name, &library)?;
        self.remove(name);
        for function in &library.functions {
            self.owners.insert(function.name.to_ascii_lowercase(), name.to_vec());
        }
        self.bytes += library.bytes(name);
        self.by_name.insert(name.to_vec(), library);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Library> {
        let library = self.by_name.remove(name)?;
        self.bytes -= library.bytes(name);
        self.owners.retain(|_, owner| owner != name);
        Some(library)
    }
}

/// Parses the first line of a library. Returns its name, and the offset of the source to compile.
pub(super) fn read(text: &[u8]) -> Result<(Vec<u8>, usize), Vec<u8>> {
    if !text.starts_with(b"#!") {
        return Err("ERR Missing library metadata".into());
    }
    let invalid = || Vec::from("ERR Invalid library metadata");
    let end = until_nul(text).iter().position(|&byte| byte == b'\n').ok_or_else(invalid)?;
    let words = words::split(&text[..end]).ok_or_else(invalid)?;
    let (engine, options) = words.split_first().ok_or_else(invalid)?;
    let mut name = None;
    for option in options {
        match option.split_at_checked(5) {
            Some((key, value)) if key.eq_ignore_ascii_case(b"name=") => {
                if name.replace(value.to_vec()).is_some() {
                    return Err("ERR Invalid metadata value, name argument was given multiple times".into());
                }
            }
            _ => return Err([b"ERR Invalid metadata value given: ", until_nul(option)].concat()),
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    if !is_name(&name) {
        return Err(BAD_NAME.into());
    }
    if !engine[2..].eq_ignore_ascii_case(b"lua") {
        return Err([b"ERR Engine '", &engine[2..], b"' not found"].concat());
    }
    Ok((name, end))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The functions that a library has registered so far. One more takes no walk over those that there are, and neither does one that is
/// refused: a library may ask for any number.
#[derive(Default)]
pub(super) struct Registered {
    functions: Vec<Function>,
    /// Their names in small letters.
    names: BTreeSet<Vec<u8>>,
    /// Bytes of their names and descriptions.
    bytes: usize,
}

impl Registered {
    pub(super) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// What a draft becomes, and its name in small letters, if it may be added.
    pub(super) fn admit(&self, draft: Draft) -> Result<(Function, Vec<u8>), &'static str> {
        if self.functions.len() >= LIBRARY_FUNCTIONS_MAX {
            return Err("ERR too many functions in one library");
        }
        let function = draft.finish()?;
        let name = function.name.to_ascii_lowercase();
        if self.names.contains(&name) {
            return Err("ERR Function already exists in the library");
        }
        if self.bytes + function.text_bytes() > LIBRARY_TEXT_BYTES_MAX {
            return Err(TEXTS_TOO_LONG);
        }
        Ok((function, name))
    }

    /// Adds what was admitted.
    pub(super) fn add(&mut self, function: Function, name: Vec<u8>) {
        self.bytes += function.text_bytes();
        self.names.insert(name);
        self.functions.push(function);
    }
}

/// What `redis.register_function` is told of a function.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) name: Option<Vec<u8>>,
    pub(super) description: Option<Vec<u8>>,
    pub(super) flags: DraftFlags,
    pub(super) has_callback: bool,
}

/// The flags that are told of a function: each is looked at and none is kept, since a script may name a long text any number of times.
#[derive(Default)]
pub(super) struct DraftFlags {
    flags: ScriptFlags,
    is_given: [bool; FLAGS.len()],
    has_unknown: bool,
}

const FLAGS: [&str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

impl DraftFlags {
    pub(super) fn add(&mut self, flag: &[u8]) {
        self.has_unknown |= self.flags.add(flag).is_none();
        if let Some(given) = FLAGS.iter().position(|known| known.as_bytes() == flag) {
            self.is_given[given] = true;
        }
    }
}

impl Draft {
    /// The function, if nothing is wrong with it.
    fn finish(self) -> Result<Function, &'static str> {
        let name = self.name.ok_or("ERR redis.register_function must get a function name argument")?;
        if !self.has_callback {
            return Err("ERR redis.register_function must get a callback argument");
        }
        let DraftFlags { flags, is_given, has_unknown } = self.flags;
        if has_unknown {
            return Err("ERR unknown flag given");
        }
        if !is_name(&name) {
            return Err(BAD_NAME);
        }
        let flag_names =
            FLAGS.into_iter().zip(is_given).filter_map(|(flag, is_given)| is_given.then_some(flag)).collect();
        let flags = ScriptFlags { is_declared: true, ..flags };
        Ok(Function { name, description: self.description, flag_names, flags })
    }
}
