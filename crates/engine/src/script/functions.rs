//! `FUNCTION` and `FCALL`: the engine's libraries.

use respool_command::words::until_nul;
use respool_command::{ScriptingCommand, glob, text as texts};
use respool_wire::{Args, Encoder};

use super::exchange::{Order, Report};
use super::library::{self, Libraries, Library};
use super::state::Scripts;
use super::text;
use crate::commands::Fault;
use crate::limits::LIBRARY_LOAD_LOOKS_MAX;
use crate::rdb::libraries::{self, Flaw};

/// Runs one subcommand of `FUNCTION`. `None`: there is no such one here.
pub(super) fn execute(
    scripts: &mut Scripts,
    command: ScriptingCommand,
    args: Args<'_>,
    reply: &mut Encoder<'_>,
) -> Option<Result<(), Fault>> {
    Some(match command {
        ScriptingCommand::FunctionLoad => load(scripts, args).map(|name| reply.bulk(&name)),
        ScriptingCommand::FunctionDelete => delete(scripts, args.at(2)).map(|()| reply.simple("OK")),
        ScriptingCommand::FunctionFlush => flush(scripts, args).map(|()| reply.simple("OK")),
        ScriptingCommand::FunctionList => list(&scripts.libraries, args, reply),
        ScriptingCommand::FunctionStats => {
            stats(scripts, reply);
            Ok(())
        }
        ScriptingCommand::FunctionDump => {
            reply.bulk(&libraries::write(scripts.libraries.iter().map(|(_, library)| &*library.text)));
            Ok(())
        }
        ScriptingCommand::FunctionRestore => restore(scripts, args).map(|()| reply.simple("OK")),
        _ => return None,
    })
}

fn wrong_subcommand(name: &str) -> Fault {
    let text = format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP.");
    Fault::Written(text.into_bytes())
}

/// Has the interpreter run a library. Result: what it is.
fn make(scripts: &mut Scripts, text: &[u8], start: usize) -> Result<Library, Fault> {
    let mut order = Order::Load(text[start..].to_vec());
    let mut looks = 0;
    loop {
        match scripts.host()?.resume(order) {
            Some(Report::Compiled(Ok(()))) => break,
            Some(Report::Compiled(Err(why))) => return Err(Fault::Written(why)),
            Some(Report::Paused) => {
                looks += 1;
                order = if looks < LIBRARY_LOAD_LOOKS_MAX { Order::Go } else { Order::Kill };
            }
            Some(Report::Log(level, line)) => {
                scripts.write_log(level, &line);
                order = Order::Go;
            }
            _ => return Err(text::NO_MEMORY.into()),
        }
    }
    let host = scripts.host()?;
    let functions = host.exchange.registered.borrow().functions().to_vec();
    if functions.is_empty() {
        return Err(text::NO_FUNCTIONS.into());
    }
    Ok(Library { text: text.into(), functions })
}

/// What was made last may be called, and these functions no more.
///
/// `others`: how many functions there are beside both.
fn adopt(scripts: &mut Scripts, gone: Vec<Vec<u8>>, others: usize) -> Result<(), Fault> {
    let names = others + scripts.host()?.exchange.registered.borrow().functions().len();
    match scripts.host()?.resume(Order::Adopt { gone, names }) {
        Some(Report::Compiled(Ok(()))) => Ok(()),
        _ => Err(text::NO_MEMORY.into()),
    }
}

fn names_of(library: &Library) -> Vec<Vec<u8>> {
    library.functions.iter().map(|function| function.name.to_ascii_lowercase()).collect()
}

fn load(scripts: &mut Scripts, args: Args<'_>) -> Result<Vec<u8>, Fault> {
    let (options, text) = (args.from(2).first(args.len() - 3), args.at(args.len() - 1));
    let mut replaces = false;
    for option in options.iter() {
        if !option.eq_ignore_ascii_case(b"REPLACE") {
            return Err(Fault::Written([b"ERR Unknown option given: ", until_nul(option)].concat()));
        }
        replaces = true;
    }
    let (name, start) = library::read(text).map_err(Fault::Written)?;
    let before = scripts.libraries.get(&name).cloned();
    if before.is_some() && !replaces {
        return Err(exists(&name));
    }
    let library = make(scripts, text, start)?;
    scripts.libraries.admit(&name, &library).map_err(Fault::Written)?;
    let gone = before.as_ref().map(names_of).unwrap_or_default();
    let others = scripts.libraries.functions().saturating_sub(gone.len());
    adopt(scripts, gone, others)?;
    scripts.libraries.insert(&name, library).map_err(Fault::Written)?;
    Ok(name)
}

fn exists(name: &[u8]) -> Fault {
    Fault::Written([b"ERR Library '", name, b"' already exists"].concat())
}

fn delete(scripts: &mut Scripts, name: &[u8]) -> Result<(), Fault> {
    let gone = scripts.libraries.remove(name).ok_or(Fault::Text(text::LIBRARY_NOT_FOUND))?;
    scripts.host()?.resume(Order::Drop(names_of(&gone)));
    Ok(())
}

fn flush(scripts: &mut Scripts, args: Args<'_>) -> Result<(), Fault> {
    if args.len() > 3 {
        return Err(wrong_subcommand(&String::from_utf8_lossy(args.at(1))));
    }
    let is_mode = |mode: &[u8]| mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC");
    if args.get(2).is_some_and(|mode| !is_mode(mode)) {
        return Err(text::FUNCTION_FLUSH_OPTION.into());
    }
    replace_all(scripts, Libraries::default())
}

/// From now on these are all libraries there are. Each of them has been run before, but there may be no room for all at once: then
/// those stay that there were.
fn replace_all(scripts: &mut Scripts, libraries: Libraries) -> Result<(), Fault> {
    let before = std::mem::replace(&mut scripts.libraries, libraries);
    let replaced = bring_in_place_of(scripts, &before);
    if replaced.is_err() {
        let refused = std::mem::replace(&mut scripts.libraries, before);
        if let Err(fault) = bring_in_place_of(scripts, &refused) {
            // The next interpreter, which begins without garbage, is given all of them.
            scripts.host = None;
            return Err(fault);
        }
    }
    replaced
}

/// Has the interpreter forget these libraries and run all that there are.
fn bring_in_place_of(scripts: &mut Scripts, gone: &Libraries) -> Result<(), Fault> {
    let gone: Vec<Vec<u8>> = gone.iter().flat_map(|(_, library)| names_of(library)).collect();
    if !gone.is_empty() {
        scripts.host()?.resume(Order::Drop(gone));
    }
    bring_back(scripts)
}

/// Has the interpreter run all libraries: it is a fresh one, or they have changed.
pub(super) fn bring_back(scripts: &mut Scripts) -> Result<(), Fault> {
    let texts: Vec<Box<[u8]>> = scripts.libraries.iter().map(|(_, library)| library.text.clone()).collect();
    let mut functions = 0;
    for text in texts {
        let (_, start) = library::read(&text).map_err(Fault::Written)?;
        let library = make(scripts, &text, start)?;
        adopt(scripts, Vec::new(), functions)?;
        functions += library.functions.len();
    }
    Ok(())
}

fn list(libraries: &Libraries, args: Args<'_>, reply: &mut Encoder<'_>) -> Result<(), Fault> {
    let (mut pattern, mut has_code) = (None, false);
    let mut options = args.from(2).iter();
    while let Some(option) = options.next() {
        if !has_code && option.eq_ignore_ascii_case(b"WITHCODE") {
            has_code = true;
        } else if pattern.is_none() && option.eq_ignore_ascii_case(b"LIBRARYNAME") {
            pattern = Some(options.next().ok_or(Fault::Text(text::NO_LIBRARY_NAME))?);
        } else {
            return Err(Fault::Written([b"ERR Unknown argument ", until_nul(option)].concat()));
        }
    }
    let is_meant = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches_in_any_case(pattern, name));
    let listed: Vec<_> = libraries.iter().filter(|(name, _)| is_meant(name)).collect();
    reply.array(listed.len());
    for (name, library) in listed {
        reply.map(3 + usize::from(has_code));
        reply.bulk(b"library_name");
        reply.bulk(name);
        reply.bulk(b"engine");
        reply.bulk(b"LUA");
        reply.bulk(b"functions");
        reply.array(library.functions.len());
        for function in &library.functions {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&function.name);
            reply.bulk(b"description");
            match &function.description {
                Some(text) => reply.bulk(text),
                None => reply.null(),
            }
            reply.bulk(b"flags");
            reply.set(function.flag_names.len());
            function.flag_names.iter().for_each(|flag| reply.simple(flag));
        }
        if has_code {
            reply.bulk(b"library_code");
            reply.bulk(&library.text);
        }
    }
    Ok(())
}

pub(super) fn stats(scripts: &mut Scripts, reply: &mut Encoder<'_>) {
    reply.map(2);
    reply.bulk(b"running_script");
    match scripts.called() {
        None => reply.null(),
        Some(called) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(called.name);
            reply.bulk(b"command");
            reply.array(called.command.len());
            called.command.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.integer(i64::try_from(called.duration_ms).unwrap_or(i64::MAX));
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(scripts.libraries.len() as i64);
    reply.bulk(b"functions_count");
    reply.integer(scripts.libraries.functions() as i64);
}

fn restore(scripts: &mut Scripts, args: Args<'_>) -> Result<(), Fault> {
    if args.len() > 4 {
        return Err(wrong_subcommand(&String::from_utf8_lossy(args.at(1))));
    }
    let policy = args.get(3).unwrap_or(b"APPEND");
    let is = |word: &str| policy.eq_ignore_ascii_case(word.as_bytes());
    if !is("FLUSH") && !is("APPEND") && !is("REPLACE") {
        return Err(text::RESTORE_POLICY.into());
    }
    let read = libraries::read(args.at(2)).map_err(|flaw| match flaw {
        Flaw::Payload => Fault::Text(texts::BAD_DUMP),
        Flaw::Content => Fault::Text(text::NOT_LIBRARIES),
    })?;
    let mut restored = Libraries::default();
    for text in read {
        let (name, start) = library::read(&text).map_err(Fault::Written)?;
        if restored.get(&name).is_some() {
            return Err(known_library(&name));
        }
        let library = make(scripts, &text, start)?;
        restored.insert(&name, library).map_err(Fault::Written)?;
    }
    let mut after = if is("FLUSH") { Libraries::default() } else { scripts.libraries.clone() };
    // All that are replaced go first: a function may move from one of them to another.
    for (name, _) in restored.iter() {
        if after.get(name).is_some() && !is("REPLACE") {
            return Err(known_library(name));
        }
        after.remove(name);
    }
    for (name, library) in restored.iter() {
        after.insert(name, library.clone()).map_err(Fault::Written)?;
    }
    replace_all(scripts, after)
}

/// A library of a payload is there already. As Redis says it.
fn known_library(name: &[u8]) -> Fault {
    Fault::Written([b"ERR Library ", name, b" already exists"].concat())
}
