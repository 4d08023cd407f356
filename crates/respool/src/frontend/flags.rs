//! Flags as Go and the sharding programs read them: `-x v`, `-x=v`, `--x v`, `--x=v`, and switches without a value.

use std::fmt::Write as _;

use crate::settings::{Fault, Origin, nearest};

/// One flag of another program.
#[derive(Debug)]
pub(super) struct Flag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// What stands behind it.
    pub takes: Takes,
    /// What it does here.
    pub doc: &'static str,
}

/// What stands behind a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// A value.
    Value,
    /// Nothing, or `=true` or `=false`.
    Switch,
}

/// A flag as given.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// Its name.
    pub name: &'static str,
    /// Its value; a switch has `true` or `false`.
    pub value: String,
    /// As it was written.
    pub said: String,
}

impl Given {
    /// Where it was said.
    pub(super) fn origin(&self) -> Origin {
        Origin::Flag { said: self.said.clone() }
    }
}

/// The name of the flag that an argument is, whatever its dashes and value.
pub(super) fn name_of(arg: &str) -> Option<&str> {
    let name = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?;
    Some(name.split_once('=').map_or(name, |(name, _)| name)).filter(|name| !name.is_empty())
}

/// Reads arguments by a program's table of flags. What is wrong is returned beside what is right.
pub(super) fn read(args: &[String], table: &'static [Flag]) -> (Vec<Given>, Vec<Fault>) {
    let (mut given, mut faults) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match read_one(arg, &mut args, table) {
            Ok(flag) => given.push(flag),
            Err(fault) => faults.push(fault),
        }
    }
    (given, faults)
}

fn read_one<'a>(
    arg: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    table: &'static [Flag],
) -> Result<Given, Fault> {
    let fault = |message: String| Fault::new(Origin::Flag { said: arg.to_owned() }, message);
    let Some(name) = name_of(arg) else {
        return Err(fault(format!("{arg:.200?} is no flag")));
    };
    let Some(flag) = table.iter().find(|flag| flag.name == name) else {
        let near = nearest(name, table.iter().map(|flag| flag.name));
        let fault = fault(format!("there is no flag {name:.200?}"));
        return Err(match near {
            Some(near) => fault.hint(format!("the nearest is {near}")),
            None => fault.hint("-help lists them all"),
        });
    };
    let value = match (arg.split_once('='), flag.takes) {
        (Some((_, value)), Takes::Value) => value.to_owned(),
        (Some((_, value)), Takes::Switch) => match value {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => "true".to_owned(),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => "false".to_owned(),
            _ => return Err(fault(format!("{name} cannot be {value:.200?}")).hint("it is true or false")),
        },
        (None, Takes::Switch) => "true".to_owned(),
        (None, Takes::Value) => match rest.next() {
            Some(value) => return Ok(Given { name: flag.name, value: value.clone(), said: format!("{arg} {value}") }),
            None => return Err(fault(format!("{name} needs a value"))),
        },
    };
    Ok(Given { name: flag.name, value, said: arg.to_owned() })
}

/// A page about a program's flags.
pub(super) fn help(program: &str, table: &[Flag]) -> String {
    let mut out = format!("Usage: {program} [FLAGS]\n\n");
    for flag in table {
        let value = if flag.takes == Takes::Value { " VALUE" } else { "" };
        let _ = writeln!(out, "  -{}{value}\n        {}", flag.name, flag.doc);
    }
    out.push_str("\nSettings without a flag here can be said in the environment; `respool serve --help` names them.\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: &[Flag] =
        &[Flag { name: "port", takes: Takes::Value, doc: "" }, Flag { name: "debug", takes: Takes::Switch, doc: "" }];

    fn read_line(line: &str) -> (Vec<(&'static str, String)>, Vec<String>) {
        let args: Vec<String> = line.split_terminator(' ').map(str::to_owned).collect();
        let (given, faults) = read(&args, TABLE);
        let given = given.into_iter().map(|flag| (flag.name, flag.value)).collect();
        (
            given,
            faults.into_iter().map(|fault| format!("{}; {}", fault.message, fault.hint.unwrap_or_default())).collect(),
        )
    }

    #[test]
    fn flags_are_read_in_all_their_forms() {
        for line in ["-port 7 -debug", "--port=7 --debug=true", "-port=7 -debug=1"] {
            assert_eq!(
                read_line(line),
                (vec![("port", "7".to_owned()), ("debug", "true".to_owned())], vec![]),
                "{line}"
            );
        }
        assert_eq!(read_line("-debug=false -port -7").0, [("debug", "false".to_owned()), ("port", "-7".to_owned())]);
        assert_eq!(read_line(""), (vec![], vec![]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, fault) in [
            ("-prot 7", "there is no flag \"prot\"; the nearest is port"),
            ("-port", "port needs a value; "),
            ("-debug=maybe", "debug cannot be \"maybe\"; it is true or false"),
            ("x", "\"x\" is no flag; "),
            ("--", "\"--\" is no flag; "),
        ] {
            assert_eq!(read_line(line).1[0], fault, "{line}");
        }
    }
}
