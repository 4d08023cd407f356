//! What `ACL` answers of users, commands and rules alone.

use respool_command::{Categories, KeyPositions, Renames, text as texts};
use respool_wire::{Args, Encoder};

use crate::commands::of_category;
use crate::file::line;
use crate::limits::GENPASS_BITS_MAX;
use crate::selector::Selector;
use crate::users::Users;
use crate::verdict::Denial;
use respool_command::words::until_nul;

/// `ACL LIST`: every user as a line of the ACL file.
pub fn list(users: &Users, reply: &mut Encoder<'_>) {
    reply.array(users.len());
    users.iter().for_each(|user| reply.bulk(&line(user)));
}

/// `ACL USERS`: every user's name.
pub fn names(users: &Users, reply: &mut Encoder<'_>) {
    reply.array(users.len());
    users.iter().for_each(|user| reply.bulk(user.name()));
}

/// `ACL GETUSER name`.
pub fn user(users: &Users, name: &[u8], reply: &mut Encoder<'_>) {
    let Some(user) = users.user(name) else { return reply.null() };
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(user.flags().count());
    user.flags().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords.len());
    for password in &user.passwords {
        let mut digits = Vec::new();
        password.write(&mut digits);
        reply.bulk(&digits);
    }
    selector(&user.root, reply);
    reply.bulk(b"selectors");
    reply.array(user.selectors.len());
    for further in &user.selectors {
        reply.map(3);
        selector(further, reply);
    }
}

/// Three fields of a map.
fn selector(selector: &Selector, reply: &mut Encoder<'_>) {
    let mut commands = Vec::new();
    selector.write_commands(&mut commands);
    let mut keys = Vec::new();
    if selector.is_all_keys {
        keys.extend_from_slice(b"~*");
    }
    for (at, pattern) in selector.keys.iter().enumerate() {
        if at > 0 {
            keys.push(b' ');
        }
        pattern.write(&mut keys);
    }
    let mut channels = Vec::new();
    if selector.is_all_channels {
        channels.extend_from_slice(b"&*");
    }
    for (at, channel) in selector.channels.iter().enumerate() {
        channels.extend_from_slice(if at > 0 { b" &" } else { b"&" });
        channels.extend_from_slice(channel);
    }
    for (name, value) in [("commands", commands), ("keys", keys), ("channels", channels)] {
        reply.bulk(name.as_bytes());
        reply.bulk(&value);
    }
}

/// `ACL CAT`: all categories, or the commands of one.
pub fn categories(category: Option<&[u8]>, reply: &mut Encoder<'_>) {
    let Some(name) = category else {
        reply.array(Categories::ALL.len());
        return Categories::ALL.iter().for_each(|(_, name)| reply.bulk(name.as_bytes()));
    };
    let name = until_nul(name);
    match Categories::named(name) {
        Some(category) => {
            // As where all commands are listed, the console's are left out: no server has them.
            let listed = || of_category(category).filter(|row| !row.is_ours());
            reply.array(listed().count());
            listed().for_each(|row| reply.bulk(row.full_name().as_bytes()));
        }
        None => {
            let shown = name.get(..128).unwrap_or(name);
            reply.error(&[b"ERR Unknown category '", shown, b"'"].concat());
        }
    }
}

/// `ACL DRYRUN name command argument ...`: whether a user might make a request. `request` begins with the command, as it is
/// called.
pub fn dry_run(users: &Users, name: &[u8], request: Args<'_>, renames: &Renames, reply: &mut Encoder<'_>) {
    let Some(user) = users.user(name) else {
        return reply.error(&[b"ERR User '", until_nul(name), b"' not found"].concat());
    };
    let Ok(row) = renames.resolve(request) else {
        return reply.error(&[b"ERR Command '", until_nul(request.name()), b"' not found"].concat());
    };
    if !row.accepts(request.len()) {
        let words = format!("ERR wrong number of arguments for '{}' command", row.full_name());
        return reply.error(words.as_bytes());
    }
    let shown = |at: u32| until_nul(request.get(at as usize).unwrap_or_default());
    let words = match user.check(row, request, &mut KeyPositions::new()) {
        Ok(()) => return reply.raw(respool_wire::replies::OK),
        Err(Denial::Command) => {
            [b"This user has no permissions to run the '", row.full_name().as_bytes(), b"' command"].concat()
        }
        Err(Denial::Key(at)) => [b"This user has no permissions to access the '", shown(at), b"' key"].concat(),
        Err(Denial::Channel(at)) => [b"This user has no permissions to access the '", shown(at), b"' channel"].concat(),
    };
    reply.bulk(&words);
}

/// `ACL GENPASS`: how many hexadecimal digits are asked for, or the text of the error.
///
/// # Errors
/// The text, without the leading `-`.
pub fn password_digits(bits: Option<&[u8]>) -> Result<usize, Vec<u8>> {
    let Some(bits) = bits else { return Ok(64) };
    let bits: i64 = std::str::from_utf8(bits)
        .ok()
        .filter(|text| {
            let digits = text.strip_prefix('-').unwrap_or(text);
            *text == "0"
                || (!digits.starts_with('0') && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        })
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| texts::NOT_AN_INTEGER.as_bytes().to_vec())?;
    match usize::try_from(bits) {
        Ok(bits @ 1..=GENPASS_BITS_MAX) => Ok(bits.div_ceil(4)),
        _ => Err(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
             {GENPASS_BITS_MAX}"
        )
        .into_bytes()),
    }
}

/// `ACL HELP`.
pub fn help(reply: &mut Encoder<'_>) {
    const LINES: &[&str] = &[
        "ACL <subcommand> [<argument> ...]. Subcommands are:",
        "CAT [<category>]",
        "    The categories of commands, or the commands of one.",
        "DELUSER <name> [<name> ...]",
        "    Remove users and close their connections.",
        "DRYRUN <name> <command> [<argument> ...]",
        "    Whether a user may make a request. Nothing is executed.",
        "GENPASS [<bits>]",
        "    A random password of 256 bits, or of as many as are said.",
        "GETUSER <name>",
        "    What a user may do.",
        "LIST",
        "    Every user as a line of the ACL file.",
        "LOAD",
        "    Take the users from the ACL file.",
        "LOG [<count>|RESET]",
        "    The latest denials; or forget them.",
        "SAVE",
        "    Write the users to the ACL file.",
        "SETUSER <name> [<rule> ...]",
        "    Make a user or change what it may do.",
        "USERS",
        "    Every user's name.",
        "WHOAMI",
        "    The name of this connection's user.",
        "HELP",
        "    These lines.",
    ];
    reply.array(LINES.len());
    LINES.iter().for_each(|line| reply.simple(line));
}
