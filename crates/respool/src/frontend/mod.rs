//! Front ends: other programs' command lines, understood as if Respool were them.
//!
//! Started under the name of rmux or redis-sharding (a link to the binary is enough), as `respool rmux ...`, or with
//! flags that only one of them has, Respool takes that program's flags and files. They become [`RawSettings`]: the same
//! settings, found the same way wrong, and open to the environment as all others. Flags without a meaning here are
//! accepted, and a note for the log says what happens instead.

mod flags;
pub mod redis_server;
mod redis_sharding;
pub mod rmux;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::settings::{Fault, RawSettings};

/// A program whose place Respool takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// rmux, 2013 to 2021.
    Rmux,
    /// redis-sharding in Standard ML or Haskell.
    RedisSharding,
    /// redis-sharding in Perl, which reads hash tags in another way.
    RedisShardingPerl,
}

/// What the other program's command line says.
#[derive(Debug, Default)]
pub struct Translation {
    /// As settings.
    pub said: RawSettings,
    /// What became of flags that mean nothing here.
    pub notes: Vec<String>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

/// Reads a file that a flag names.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

impl Program {
    /// The program that these arguments, with the program's name in front, are meant for, and its arguments. `None` is
    /// Respool itself.
    #[must_use]
    pub fn recognise(args: &[OsString]) -> Option<(Self, Vec<String>)> {
        let text = |arg: &OsString| arg.to_string_lossy().into_owned();
        let name = args.first().and_then(|arg| Path::new(arg).file_name()?.to_str());
        let rest: Vec<String> = args.iter().skip(1).map(text).collect();
        if let Some(program) = name.and_then(Self::named) {
            return Some((program, rest));
        }
        match rest.first()?.as_str() {
            "rmux" => Some((Self::Rmux, rest[1..].to_vec())),
            "redis-sharding" => Some((Self::RedisSharding, rest[1..].to_vec())),
            first if first.starts_with('-') => Some((Self::speaking(&rest)?, rest)),
            _ => None,
        }
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "rmux" => Some(Self::Rmux),
            "redis_sharding.pl" | "redis-sharding.pl" => Some(Self::RedisShardingPerl),
            _ if name.starts_with("redis-sharding") => Some(Self::RedisSharding),
            _ => None,
        }
    }

    /// Whose flags these are, if they can only be one program's.
    fn speaking(args: &[String]) -> Option<Self> {
        let is_any = |has: fn(&str) -> bool| args.iter().any(|arg| has(arg));
        if is_any(redis_sharding::is_own_flag) {
            return Some(Self::RedisSharding);
        }
        is_any(rmux::is_own_flag).then_some(Self::Rmux)
    }

    /// The program's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rmux => "rmux",
            Self::RedisSharding | Self::RedisShardingPerl => "redis-sharding",
        }
    }

    /// Whether these arguments only ask for help.
    #[must_use]
    pub fn is_help_wanted(self, args: &[String]) -> bool {
        args.iter().any(|arg| matches!(flags::name_of(arg), Some("h" | "help")))
    }

    /// Understands the program's arguments.
    #[must_use]
    pub fn translate(self, args: &[String], read_file: ReadFile<'_>) -> Translation {
        match self {
            Self::Rmux => rmux::translate(args, read_file),
            Self::RedisSharding => redis_sharding::translate(args, redis_sharding::Tags::Last),
            Self::RedisShardingPerl => redis_sharding::translate(args, redis_sharding::Tags::First),
        }
    }

    /// The program's flags and what they do here.
    #[must_use]
    pub fn help(self) -> String {
        match self {
            Self::Rmux => flags::help("respool rmux", rmux::FLAGS),
            Self::RedisSharding | Self::RedisShardingPerl => {
                flags::help("respool redis-sharding", redis_sharding::FLAGS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_name_by_subcommand_and_by_flags() {
        for (line, program) in [
            ("/usr/bin/rmux", Some(Program::Rmux)),
            ("rmux -port 7", Some(Program::Rmux)),
            ("redis-sharding-mlton --nodes=a:1", Some(Program::RedisSharding)),
            ("./redis_sharding.pl --nodes=a:1", Some(Program::RedisShardingPerl)),
            ("respool rmux", Some(Program::Rmux)),
            ("respool redis-sharding --nodes=a:1", Some(Program::RedisSharding)),
            ("respool -tcpConnections x", Some(Program::Rmux)),
            ("respool --tcpConnections=x", Some(Program::Rmux)),
            ("respool -host=h -port=1", Some(Program::Rmux)),
            ("respool -config x.json", Some(Program::Rmux)),
            ("respool --host=h --port=1 --nodes=a:1", Some(Program::RedisSharding)),
            ("respool --SO_REUSEPORT=1", Some(Program::RedisSharding)),
            ("respool", None),
            ("respool -h", None),
            ("respool -V", None),
            ("respool --version", None),
            ("respool --config x.toml", None),
            ("respool --host=h --port=1", None),
            ("respool serve --nodes a:1", None),
            ("respool check -socket", None),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(Program::recognise(&args).map(|(program, _)| program), program, "{line}");
        }
    }
}
