//! What a parameter of redis.conf is made of: its row, and how a value of each kind is read.

use super::live::Live;

/// One parameter, as redis-server 7.0 has it, and what it does here.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its former name, or Valkey's, which is understood and shown as well.
    pub alias: Option<&'static str>,
    /// Which values it takes.
    pub kind: Kind,
    /// The value without any directive, as `CONFIG GET` shows it.
    pub default: &'static str,
    /// What may be done with it.
    pub flags: u8,
    /// What it does here.
    pub effect: Effect,
}

/// Cannot be changed while the server runs.
pub const IMMUTABLE: u8 = 1;
/// Holds a secret: no message names its value.
pub const SENSITIVE: u8 = 2;
/// Takes several words.
pub const MULTI: u8 = 4;
/// Is changed only where `enable-protected-configs` allows it.
pub const PROTECTED: u8 = 8;
/// Is shown only under its full name.
pub const HIDDEN: u8 = 16;

/// Decides where is listened or what TLS shows there: changed while a server runs whose listeners are said by its parameters.
/// Those of others are settings, which a restart changes.
pub const LISTENING: u8 = 32;
/// Holds for the whole process: is not changed by a client of one pool among several.
pub const PROCESS: u8 = 64;

/// What a parameter does here.
#[derive(Debug)]
pub enum Effect {
    /// It is a setting of the process.
    Setting(Live),
    /// It is a setting of the process that decides at the start only.
    Start,
    /// The engine is told, by `CONFIG SET`.
    Engine,
    /// Both.
    SettingAndEngine(Live),
    /// It is about users.
    Users,
    /// It is a setting of the process, and about users.
    SettingOfUsers(Live),
    /// It is kept, and read by what it is about.
    Kept,
    /// It is kept and shown, and changes nothing. Why.
    Without(&'static str),
    /// Only these values can be had; others are refused. Why.
    Only(&'static [&'static str], &'static str),
}

/// Kinds of values. Bounds are inclusive.
#[derive(Debug)]
#[expect(missing_docs, reason = "min and max are what they say")]
pub enum Kind {
    /// `yes` or `no`.
    Switch,
    /// One word of a closed set.
    Word(&'static [&'static str]),
    /// Some words of a closed set.
    Words(&'static [&'static str]),
    /// A whole number.
    Number { min: i64, max: i64 },
    /// Permissions in octal.
    Octal,
    /// A number of bytes, with or without a unit.
    Memory { min: u64, max: u64 },
    /// The same, or a share of `maxmemory`.
    MemoryOrPercent,
    /// Any text.
    Text,
    /// A file's name without a path; empty where that is allowed.
    FileName { may_be_empty: bool },
    /// A directory that there is.
    Directory,
    /// Pairs of seconds and changes.
    Save,
    /// A class of clients with a hard limit, a soft limit and seconds, any number of times.
    OutputLimits,
    /// Classes of keyspace events.
    Events,
    /// Addresses.
    Bind,
    /// Percentages.
    Percentiles,
    /// Three numbers.
    OomValues,
    /// A host and a port, or `no one`.
    ReplicaOf,
}

impl Parameter {
    /// Whether the parameter has a flag.
    #[must_use]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// By which of its names it is called there.
    #[must_use]
    pub(super) fn name_said(&self, name: &[u8]) -> &'static str {
        match self.alias {
            Some(alias) if alias.as_bytes().eq_ignore_ascii_case(name) => alias,
            _ => self.name,
        }
    }

    /// Whether it goes by that name, in any case.
    #[must_use]
    pub fn is_named(&self, name: &[u8]) -> bool {
        let is_it = |own: &str| own.as_bytes().eq_ignore_ascii_case(name);
        is_it(self.name) || self.alias.is_some_and(is_it)
    }
}
