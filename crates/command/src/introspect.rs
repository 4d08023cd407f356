//! The answers of `COMMAND` and its subcommands: the rows, told in RESP.
//!
//! Names, arity, flags, keys, categories, tips and arguments are those of Redis, in its order and types. Summaries are ours,
//! and of complexities the formula is told; free-text notes and histories are not.

use respool_wire::{Args, Encoder};

use crate::limits::NAMES_ASKED_MAX;
use crate::{
    Argument, ArgumentKind, Arguments, Begin, Categories, Command, Find, Flags, KeyAccess, KeyPositions, KeySpec,
    Renames, Repeat, Row, ServerCommand, all, glob, listed, text,
};

/// Answers a request of the `COMMAND` family and returns true; leaves any other row's request alone and returns false. The
/// caller has checked the arity. `learnt` are rows beyond those of the table.
pub fn answer(row: &Row, args: Args<'_>, learnt: &[&'static Row], renames: &Renames, reply: &mut Encoder<'_>) -> bool {
    let known = Known { learnt, renames };
    let Command::Server(command) = row.command else { return false };
    match command {
        ServerCommand::Command => rows(known, reply),
        ServerCommand::CommandCount => reply.integer((known.listed().count()) as i64),
        ServerCommand::CommandInfo => info(args.from(2), known, reply),
        ServerCommand::CommandDocs => docs(args.from(2), known, reply),
        ServerCommand::CommandList => list(args.from(2), known, reply),
        ServerCommand::CommandGetkeys => keys(args.from(2), known, false, reply),
        ServerCommand::CommandGetkeysandflags => keys(args.from(2), known, true, reply),
        ServerCommand::CommandHelp => help(reply),
        _ => return false,
    }
    true
}

/// Which commands can be asked about.
#[derive(Clone, Copy)]
struct Known<'l> {
    learnt: &'l [&'static Row],
    renames: &'l Renames,
}

impl Known<'_> {
    /// All that are no subcommands.
    fn listed(&self) -> impl Iterator<Item = &'static Row> {
        listed().filter(|row| self.renames.has(row)).chain(self.learnt.iter().copied())
    }
}

fn rows(known: Known<'_>, reply: &mut Encoder<'_>) {
    reply.array(known.listed().count());
    known.listed().for_each(|row| row_info(row, reply));
}

/// The row called `name`, of the table or learnt.
fn named(name: &[u8], known: Known<'_>) -> Option<&'static Row> {
    let is_it = |row: &&'static Row| row.full_name().as_bytes().eq_ignore_ascii_case(name);
    known.renames.lookup_full(name).or_else(|| known.learnt.iter().copied().find(is_it))
}

fn info(names: Args<'_>, known: Known<'_>, reply: &mut Encoder<'_>) {
    if names.is_empty() {
        return rows(known, reply);
    }
    if names.len() > NAMES_ASKED_MAX {
        return reply.error(text::TOO_MANY_NAMES.as_bytes());
    }
    reply.array(names.len());
    for name in names.iter() {
        match named(name, known) {
            Some(row) => row_info(row, reply),
            None => reply.null(),
        }
    }
}

fn row_info(row: &Row, reply: &mut Encoder<'_>) {
    reply.array(10);
    reply.bulk(row.full_name().as_bytes());
    reply.integer(row.arity.into());
    reply.set(row.flags.len());
    row.flags.names().for_each(|name| reply.simple(name));
    let (first, last, step) = row.keys.first_last_step();
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    reply.set(row.categories.len());
    row.categories.names().for_each(|name| reply.simple(&format!("@{name}")));
    reply.set(row.tips.len());
    row.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(row.keys.specs().len());
    row.keys.specs().iter().for_each(|spec| key_spec(spec, reply));
    if row.is_container() {
        reply.array(row.subcommands.len());
        row.subcommands.iter().for_each(|row| row_info(row, reply));
    } else {
        reply.set(0);
    }
}

fn key_spec(spec: &KeySpec, reply: &mut Encoder<'_>) {
    reply.map(3);
    reply.bulk(b"flags");
    access(spec.access, reply);
    reply.bulk(b"begin_search");
    match spec.begin {
        Begin::Index(index) => {
            search("index", 1, reply);
            field("index", index.into(), reply);
        }
        Begin::Keyword { word, from } => {
            search("keyword", 2, reply);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            field("startfrom", from.into(), reply);
        }
        Begin::Unknown => search("unknown", 0, reply),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        Find::Range { last, step, limit } => {
            search("range", 3, reply);
            field("lastkey", last.into(), reply);
            field("keystep", step.into(), reply);
            field("limit", limit.into(), reply);
        }
        Find::Count { count_at, first, step } => {
            search("keynum", 3, reply);
            field("keynumidx", count_at.into(), reply);
            field("firstkey", first.into(), reply);
            field("keystep", step.into(), reply);
        }
        Find::Unknown => search("unknown", 0, reply),
    }
}

/// Begins one of the two halves of a key specification; `fields` have to follow.
fn search(kind: &str, fields: usize, reply: &mut Encoder<'_>) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields);
}

fn field(name: &str, value: i64, reply: &mut Encoder<'_>) {
    reply.bulk(name.as_bytes());
    reply.integer(value);
}

fn text_field(name: &str, value: &str, reply: &mut Encoder<'_>) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

fn access(access: KeyAccess, reply: &mut Encoder<'_>) {
    reply.set(access.len());
    access.names().for_each(|name| reply.simple(name));
}

fn docs(names: Args<'_>, known: Known<'_>, reply: &mut Encoder<'_>) {
    if names.is_empty() {
        reply.map(known.listed().count());
        return known.listed().for_each(|row| row_docs(row, reply));
    }
    if names.len() > NAMES_ASKED_MAX {
        return reply.error(text::TOO_MANY_NAMES.as_bytes());
    }
    let found = || names.iter().filter_map(|name| named(name, known));
    reply.map(found().count());
    found().for_each(|row| row_docs(row, reply));
}

fn row_docs(row: &Row, reply: &mut Encoder<'_>) {
    reply.bulk(row.full_name().as_bytes());
    let has_flags = row.is_internal || row.deprecation.is_some();
    let usage = row.usage();
    let has_complexity = !usage.complexity.is_empty();
    let arguments = usage.arguments();
    let has_arguments = arguments.clone().next().is_some();
    let fields = 3
        + usize::from(has_complexity)
        + usize::from(has_flags)
        + 2 * usize::from(row.deprecation.is_some())
        + usize::from(has_arguments)
        + usize::from(row.is_container());
    reply.map(fields);
    text_field("summary", row.doc, reply);
    text_field("since", row.since, reply);
    text_field("group", row.group.name(), reply);
    if has_complexity {
        text_field("complexity", usage.complexity, reply);
    }
    if has_flags {
        reply.bulk(b"doc_flags");
        reply.set(usize::from(row.deprecation.is_some()) + usize::from(row.is_internal));
        if row.deprecation.is_some() {
            reply.simple("deprecated");
        }
        if row.is_internal {
            reply.simple("syscmd");
        }
    }
    if let Some(deprecation) = row.deprecation {
        text_field("deprecated_since", deprecation.since, reply);
        text_field("replaced_by", deprecation.replaced_by, reply);
    }
    if has_arguments {
        reply.bulk(b"arguments");
        argument_list(arguments, reply);
    }
    if row.is_container() {
        reply.bulk(b"subcommands");
        reply.map(row.subcommands.len());
        row.subcommands.iter().for_each(|row| row_docs(row, reply));
    }
}

fn argument_list(arguments: Arguments, reply: &mut Encoder<'_>) {
    reply.array(arguments.count());
    arguments.for_each(|argument| argument_docs(&argument, reply));
}

fn argument_docs(argument: &Argument, reply: &mut Encoder<'_>) {
    let texts = [("token", argument.token), ("since", argument.since), ("deprecated_since", argument.deprecated_since)];
    let flags = [
        (argument.is_optional, "optional"),
        (argument.repeat != Repeat::Once, "multiple"),
        (argument.repeat == Repeat::ManyWithToken, "multiple_token"),
    ];
    let flags = flags.iter().filter(|(is_set, _)| *is_set);
    let (kind, parts) = match argument.kind {
        ArgumentKind::String => ("string", None),
        ArgumentKind::Integer => ("integer", None),
        ArgumentKind::Double => ("double", None),
        ArgumentKind::Key => ("key", None),
        ArgumentKind::Pattern => ("pattern", None),
        ArgumentKind::UnixTime => ("unix-time", None),
        ArgumentKind::Token => ("pure-token", None),
        ArgumentKind::OneOf(parts) => ("oneof", Some(parts)),
        ArgumentKind::Block(parts) => ("block", Some(parts)),
    };
    let has_flags = flags.clone().next().is_some();
    let fields = 2
        + usize::from(argument.key_spec.is_some())
        + texts.iter().filter(|(_, text)| text.is_some()).count()
        + usize::from(has_flags)
        + usize::from(parts.is_some());
    reply.map(fields);
    text_field("name", &argument.told_name(), reply);
    text_field("type", kind, reply);
    if let Some(spec) = argument.key_spec {
        field("key_spec_index", spec.into(), reply);
    }
    for (name, text) in texts {
        if let Some(text) = text {
            text_field(name, text, reply);
        }
    }
    if has_flags {
        reply.bulk(b"flags");
        reply.set(flags.clone().count());
        flags.for_each(|(_, name)| reply.simple(name));
    }
    if let Some(parts) = parts {
        reply.bulk(b"arguments");
        argument_list(parts, reply);
    }
}

/// `COMMAND LIST [FILTERBY MODULE name|ACLCAT category|PATTERN pattern]`.
fn list(options: Args<'_>, known: Known<'_>, reply: &mut Encoder<'_>) {
    let is = |index: usize, word: &str| {
        options.get(index).is_some_and(|option| option.eq_ignore_ascii_case(word.as_bytes()))
    };
    if options.is_empty() {
        return names(|_| true, known, reply);
    }
    let (true, 3, Some(wanted)) = (is(0, "FILTERBY"), options.len(), options.get(2)) else {
        return reply.error(text::SYNTAX.as_bytes());
    };
    if is(1, "MODULE") {
        names(|_| false, known, reply);
    } else if is(1, "ACLCAT") {
        let category = Categories::named(wanted);
        names(|row| category.is_some_and(|category| row.categories.has(category)), known, reply);
    } else if is(1, "PATTERN") {
        names(|row| glob::matches_in_any_case(wanted, row.full_name().as_bytes()), known, reply);
    } else {
        reply.error(text::SYNTAX.as_bytes());
    }
}

fn names(is_wanted: impl Fn(&Row) -> bool, known: Known<'_>, reply: &mut Encoder<'_>) {
    let ours = || all().filter(|row| known.renames.has(row));
    let wanted = || ours().chain(known.learnt.iter().copied()).filter(|row| !row.is_ours() && is_wanted(row));
    reply.array(wanted().count());
    wanted().for_each(|row| reply.bulk(row.full_name().as_bytes()));
}

/// `COMMAND GETKEYS` and `COMMAND GETKEYSANDFLAGS` of the request that follows.
fn keys(request: Args<'_>, known: Known<'_>, with_access: bool, reply: &mut Encoder<'_>) {
    let Some(row) = known.renames.resolve(request).ok().or_else(|| named(request.name(), known)) else {
        return reply.error(text::INVALID_COMMAND.as_bytes());
    };
    if !row.keys.specs().iter().any(|spec| spec.access.is_key()) {
        return reply.error(text::NO_KEY_ARGUMENTS.as_bytes());
    }
    if !row.accepts(request.len()) {
        return reply.error(text::INVALID_ARGUMENT_COUNT.as_bytes());
    }
    let mut positions = KeyPositions::new();
    // A request that says wrongly where its keys are has none, which only some commands may.
    let _ = row.keys.positions(request, &mut positions);
    if positions.is_empty() && !row.flags.has(Flags::NO_MANDATORY_KEYS) {
        return reply.error(text::INVALID_ARGUMENTS.as_bytes());
    }
    reply.array(positions.len());
    for key in positions.iter() {
        let name = request.get(key.index as usize).unwrap_or_default();
        if with_access {
            reply.array(2);
            reply.bulk(name);
            access(key.access, reply);
        } else {
            reply.bulk(name);
        }
    }
}

fn help(reply: &mut Encoder<'_>) {
    const LINES: &[&str] = &[
        "COMMAND [<subcommand> [<argument> ...]]. Without a subcommand: every command as INFO describes it.",
        "COUNT",
        "    How many commands there are.",
        "DOCS [<name> ...]",
        "    What the named commands do, or all. A subcommand's name is written container|subcommand.",
        "GETKEYS <command> [<argument> ...]",
        "    The keys of a request.",
        "GETKEYSANDFLAGS <command> [<argument> ...]",
        "    The keys of a request, and how each is used.",
        "INFO [<name> ...]",
        "    Arity, flags, keys, ACL categories, tips and subcommands of the named commands, or of all.",
        "LIST [FILTERBY MODULE <module>|ACLCAT <category>|PATTERN <pattern>]",
        "    The names of all commands, or of some.",
        "HELP",
        "    These lines.",
    ];
    reply.array(LINES.len());
    LINES.iter().for_each(|line| reply.simple(line));
}
