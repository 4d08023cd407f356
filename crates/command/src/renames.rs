//! Commands under other names, and commands without one (`rename-command`). A row stays what it is: rules of users, categories and
//! statistics are about its own name; only requests are found by the other one.

use std::collections::HashMap;
use std::fmt;

use respool_wire::Args;

use crate::{Row, UnknownCommand, lookup, resolve};

/// Which commands have other names.
#[derive(Debug, Clone, Default)]
pub struct Renames {
    /// By names in small letters: what is found there instead of what the table says.
    rows: HashMap<Vec<u8>, Option<&'static Row>>,
    /// The rows that are found by no name.
    gone: Vec<&'static Row>,
}

/// Why a command cannot have a name, in redis-server's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameError {
    /// There is no such command, or it has another name by now.
    Unknown,
    /// A command is called that.
    Taken,
}

impl fmt::Display for RenameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "No such command in rename-command",
            Self::Taken => "Target command name already exists",
        })
    }
}

impl Renames {
    /// Has the command called `from` be called `to`, or nothing if that is empty.
    ///
    /// # Errors
    /// There is none, or another is called that.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), RenameError> {
        let row = self.lookup(from).filter(|row| !row.is_ours()).ok_or(RenameError::Unknown)?;
        let is_same = from.eq_ignore_ascii_case(to);
        if !is_same && self.lookup(to).is_some() {
            return Err(RenameError::Taken);
        }
        self.rows.insert(from.to_ascii_lowercase(), None);
        match to {
            b"" => self.gone.push(row),
            _ => _ = self.rows.insert(to.to_ascii_lowercase(), Some(row)),
        }
        Ok(())
    }

    /// Whether every command has its own name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of the command called `name`, as [`lookup()`] without other names.
    #[must_use]
    pub fn lookup(&self, name: &[u8]) -> Option<&'static Row> {
        if self.is_empty() {
            return lookup(name);
        }
        self.rows.get(&name.to_ascii_lowercase()).copied().unwrap_or_else(|| lookup(name))
    }

    /// The row of a request, as [`resolve`] without other names.
    ///
    /// # Errors
    /// No command is called that, or it has no such subcommand.
    pub fn resolve(&self, args: Args<'_>) -> Result<&'static Row, UnknownCommand> {
        if self.is_empty() {
            return resolve(args);
        }
        let row = self.lookup(args.name()).ok_or(UnknownCommand::Command)?;
        match args.get(1).filter(|_| row.is_container()) {
            None => Ok(row),
            Some(word) => row.subcommand(word).ok_or(UnknownCommand::Subcommand(row)),
        }
    }

    /// The row called `name` as Redis writes names, `fetch` or `conf|get`.
    pub(crate) fn lookup_full(&self, name: &[u8]) -> Option<&'static Row> {
        let mut words = name.splitn(2, |byte| *byte == b'|');
        let row = self.lookup(words.next()?)?;
        match words.next() {
            None => Some(row),
            Some(word) => row.subcommand(word),
        }
    }

    /// Whether a command, or that whose subcommand it is, can be called.
    #[must_use]
    pub fn has(&self, row: &Row) -> bool {
        let container = row.name.split(' ').next();
        !self.gone.iter().any(|gone| Some(gone.name) == container)
    }

    /// Whether each of certain commands is found by its own name, and by no other that is in the table.
    #[must_use]
    pub fn spares(&self, is_meant: impl Fn(&Row) -> bool) -> bool {
        self.rows.keys().filter_map(|name| lookup(name)).all(|row| !is_meant(row))
    }
}

#[cfg(test)]
mod tests {
    use respool_wire::ArgsBuf;

    use super::*;

    fn renames(pairs: &[(&str, &str)]) -> Result<Renames, RenameError> {
        let mut renames = Renames::default();
        for (from, to) in pairs {
            renames.rename(from.as_bytes(), to.as_bytes())?;
        }
        Ok(renames)
    }

    fn found(renames: &Renames, request: &str) -> Option<&'static str> {
        let args: ArgsBuf = request.split(' ').collect();
        renames.resolve(args.as_args()).ok().map(|row| row.name)
    }

    #[test]
    fn a_command_is_found_by_its_other_name_alone() {
        let renames =
            renames(&[("GET", "Fetch"), ("flushall", ""), ("config", "C"), ("SET", "get")]).expect("names are free");
        for (request, row) in [
            ("fetch k", Some("GET")),
            ("FETCH k", Some("GET")),
            ("get k", Some("SET")),
            ("set k", None),
            ("FLUSHALL", None),
            ("c get x", Some("CONFIG GET")),
            ("c nothing", None),
            ("config get", None),
            ("del k", Some("DEL")),
        ] {
            assert_eq!(found(&renames, request), row, "{request}");
        }
        assert_eq!(renames.lookup_full(b"C|set").map(|row| row.name), Some("CONFIG SET"));
        let row = |name: &[u8]| crate::lookup_full(name).expect("it is a command");
        assert!(renames.has(row(b"get")) && renames.has(row(b"config|get")) && !renames.has(row(b"flushall")));
        assert!(!renames.spares(|row| row.name == "GET") && renames.spares(|row| row.name == "DEL"));
    }

    #[test]
    fn names_that_are_taken_and_commands_that_are_none_are_refused() {
        for (pairs, error) in [
            (&[("nothing", "x")][..], Some(RenameError::Unknown)),
            (&[("", "x")], Some(RenameError::Unknown)),
            (&[("config|get", "x")], Some(RenameError::Unknown)),
            (&[("get", "SET")], Some(RenameError::Taken)),
            (&[("get", "x"), ("get", "y")], Some(RenameError::Unknown)),
            (&[("get", "x"), ("set", "X")], Some(RenameError::Taken)),
            (&[("get", "x"), ("x", "y"), ("set", "x")], None),
            (&[("get", "GET")], None),
        ] {
            assert_eq!(renames(pairs).err(), error, "{pairs:?}");
        }
    }
}
