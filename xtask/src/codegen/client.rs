//! The typed commands of the client library, written from the columns of the command table.
//!
//! A file per group, and one of the words that arguments may be. What is written is plain Rust that is committed: it costs no
//! build script and no macro over hundreds of rows, an editor finds its way in it, and a review shows what a row became.

mod plan;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::{io, process};

use respool_command::{GROUP_ORDER, Group, Row, all};

use plan::{Method, Plan};
use types::{Words, camel, rust_type, snake};

const HEAD: &str = "// Written by `cargo xtask codegen` from the command table. Not to be edited.\n";

const ALLOWED: &str = "#![allow(unused_imports, reason = \"each group needs some of them\")]\n\
    #![allow(clippy::type_complexity, clippy::too_many_arguments, reason = \"replies and requests are what they are\")]\n";

/// The generated files: their place in the repository, and what they hold.
pub(super) fn files() -> io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let words = Words::of_all();
    let mut modules = Vec::new();
    for group in GROUP_ORDER {
        let rows: Vec<&Row> = all().filter(|row| row.group == *group && is_typed(row)).collect();
        if rows.is_empty() {
            continue;
        }
        let module = module_name(*group);
        files.push((format!("{FOLDER}/{module}.rs"), formatted(&group_file(*group, &rows, &words))?));
        modules.push(module);
    }
    files.push((format!("{FOLDER}/words.rs"), formatted(&words.file())?));
    let mut list = format!("//! The groups of commands.\n\n{HEAD}\n");
    modules.push("words".into());
    for module in &modules {
        let _ = writeln!(list, "mod {module};");
    }
    for module in &modules {
        let _ = writeln!(list, "pub use {module}::*;");
    }
    files.push((format!("{FOLDER}/mod.rs"), formatted(&list)?));
    Ok(files)
}

const FOLDER: &str = "crates/client/src/commands/table";

/// Whether a client that shares a connection can offer it: not what changes the connection, is no reply, or is for servers.
fn is_typed(row: &Row) -> bool {
    let is_callable = !row.is_container() || row.name == "COMMAND";
    let usage = row.usage();
    is_callable
        && !row.is_ours()
        && !row.is_internal
        && !usage.changes_connection()
        && !row.name.ends_with(" HELP")
        && usage.returns().is_some()
        && Plan::of(row).is_some()
}

fn module_name(group: Group) -> String {
    group.name().replace('-', "_")
}

fn group_file(group: Group, rows: &[&Row], words: &Words) -> String {
    let mut out = format!("//! Commands of the group {}.\n\n{HEAD}{ALLOWED}\n", group.name());
    out.push_str(
        "use super::*;\n\
         use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};\n\
         use crate::{Reply, ToArgs, cmd};\n\
         use bytes::Bytes;\n\
         use std::collections::HashMap;\n",
    );
    for row in rows {
        let plan = Plan::of(row).expect("rows without one were left out");
        out.push_str(&command(row, &plan, words));
    }
    let _ = writeln!(out, "\n/// Commands of the group {}.\nimpl crate::Client {{", group.name());
    rows.iter().for_each(|row| out.push_str(&method(row, words)));
    out + "}\n"
}

/// The method of the client that sends what a function makes.
fn method(row: &Row, words: &Words) -> String {
    let plan = Plan::of(row).expect("rows without one were left out");
    let returns = row.usage().returns().expect("rows without one were left out");
    let usual = rust_type(returns.usual());
    let name = snake(row.name);
    let output = match plan.methods.is_empty() {
        true => format!("Typed<{usual}, &Self>"),
        false => format!("{}<{usual}, &Self>", camel(row.name)),
    };
    let comma = if plan.params.is_empty() { "" } else { ", " };
    let given: Vec<_> = plan.params.iter().map(|param| &*param.name).collect();
    format!(
        "    /// {}\n    ///\n    /// `{}{}`: see [`{name}()`].\n    pub fn {name}(&self{comma}{}) -> {output} {{ {name}({}).on(self) }}\n",
        row.doc,
        row.name,
        plan::shown(row),
        params(&plan.params, words),
        given.join(", "),
    )
}

/// The function that makes a request of a row, and its options.
fn command(row: &Row, plan: &Plan, words: &Words) -> String {
    let returns = row.usage().returns().expect("rows without one were left out");
    let usual = rust_type(returns.usual());
    let about = about(row);
    let (name, kind) = (snake(row.name), camel(row.name));
    let has_options = !plan.methods.is_empty();
    let output = if has_options { kind.clone() } else { format!("Typed<{usual}>") };
    let mut out = String::new();
    let _ = write!(out, "\n{about}pub fn {name}({}) -> {output} {{\n", params(&plan.params, words));
    let _ =
        writeln!(out, "    let {}request = cmd(\"{}\");", if plan.steps.is_empty() { "" } else { "mut " }, row.name);
    for (at, step) in plan.steps.iter().enumerate() {
        if plan.gap == Some(at) && has_options {
            out.push_str("    let place = request.place();\n");
        }
        let _ = writeln!(out, "    {}", step.replace("COMMAND", "&mut request").replace("CMD", "request"));
    }
    let is_behind = plan.gap.is_none_or(|gap| gap >= plan.steps.len());
    if !has_options {
        out.push_str("    Typed::new(request)\n}\n");
        return out;
    }
    out.push_str(if is_behind { "    let place = request.place();\n" } else { "" });
    let _ = writeln!(out, "    {kind}::new(request, place)\n}}");
    let _ = writeln!(out, "\nbuilder! {{\n    /// A request of [`{name}()`] and its options.\n    {kind}, {usual}\n}}");
    options(row, plan, &kind, words, &mut out);
    out
}

/// The methods of a builder: those that leave the type of the reply as it is, and those that change it, by what it was.
fn options(row: &Row, plan: &Plan, kind: &str, words: &Words, out: &mut String) {
    let returns = row.usage().returns().expect("rows without one were left out");
    let mut states = vec![rust_type(returns.usual())];
    states.extend(returns.cases().map(|(_, reply)| rust_type(reply)));
    let mut plain = String::new();
    let mut typed: BTreeMap<usize, String> = BTreeMap::new();
    for method in &plan.methods {
        let case = returns
            .cases()
            .enumerate()
            .filter_map(|(at, (names, _))| method.is_named_by(names.collect()).then_some(at + 1))
            .last();
        let Some(case) = case.filter(|_| states.iter().any(|state| *state != states[0])) else {
            plain.push_str(&option(method, "Self", words, false));
            continue;
        };
        for (state, before) in states.iter().enumerate() {
            // Of several states with one type the last one is the type's: what it becomes is decided by types alone.
            if states[state + 1..].contains(before) {
                continue;
            }
            let after = &states[state.max(case)];
            let is_same = after == before;
            let becomes = if is_same { "Self".to_owned() } else { format!("{kind}<{after}, S>") };
            typed.entry(state).or_default().push_str(&option(method, &becomes, words, !is_same));
        }
    }
    if !plain.is_empty() {
        let _ = writeln!(out, "\nimpl<T, S> {kind}<T, S> {{\n{plain}}}");
    }
    for (state, methods) in typed {
        let _ = writeln!(out, "\nimpl<S> {kind}<{}, S> {{\n{methods}}}", states[state]);
    }
}

fn option(method: &Method, output: &str, words: &Words, is_retyped: bool) -> String {
    let mut out = format!("    /// {}\n", method.about);
    let params = params(&method.params, words);
    let comma = if params.is_empty() { "" } else { ", " };
    let _ = writeln!(out, "    pub fn {}(self{comma}{params}) -> {output} {{", method.name);
    let steps: Vec<_> =
        method.steps.iter().map(|step| step.replace("COMMAND", "request").replace("CMD", "request")).collect();
    let _ = writeln!(
        out,
        "        self.with(|request| {{ {} }}){}\n    }}",
        steps.join(" "),
        if is_retyped { ".retyped()" } else { "" }
    );
    out
}

fn params(params: &[plan::Param], words: &Words) -> String {
    let all: Vec<_> = params.iter().map(|param| format!("{}: {}", param.name, param.rust(words))).collect();
    all.join(", ")
}

/// The documentation of a command.
fn about(row: &Row) -> String {
    let mut out = format!("/// {}\n///\n/// ```text\n/// {}{}\n/// ```\n///\n", row.doc, row.name, plan::shown(row));
    let usage = row.usage();
    let mut facts = format!("Since {}.", row.since);
    if let Some(deprecation) = row.deprecation {
        let _ = write!(facts, " Deprecated since {}: use {}.", deprecation.since, deprecation.replaced_by);
    }
    if !usage.complexity.is_empty() {
        let _ = write!(facts, " Takes {}.", usage.complexity.replace('*', "·"));
    }
    let categories: Vec<_> = row.categories.names().map(|name| format!("@{name}")).collect();
    let _ = write!(facts, " ACL: {}.", categories.join(" "));
    let _ = writeln!(out, "/// {facts}");
    let page = row.name.to_ascii_lowercase().replace(' ', "-");
    let _ = writeln!(
        out,
        "/// See [Redis](https://redis.io/docs/latest/commands/{page}/) and [Valkey](https://valkey.io/commands/{page}/)."
    );
    out
}

/// Source text in the form that the rest of the sources have.
fn formatted(text: &str) -> io::Result<String> {
    let mut child = process::Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=120,use_small_heuristics=Max"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().expect("it is piped");
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("writing does not panic")?;
    if !output.status.success() {
        return Err(io::Error::other("rustfmt refuses what was generated"));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
