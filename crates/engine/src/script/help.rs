//! What `SCRIPT HELP` and `FUNCTION HELP` say.

use respool_wire::Encoder;

pub(super) const SCRIPT: &[&str] = &[
    "SCRIPT <subcommand> [<argument> ...]. Subcommands are:",
    "DEBUG NO",
    "    Change nothing: there is no debugger.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Tell of each script whether it is cached.",
    "FLUSH [ASYNC|SYNC]",
    "    Forget all cached scripts.",
    "KILL",
    "    Stop the script that runs, unless it has written.",
    "LOAD <script>",
    "    Cache a script without running it, and tell its hash.",
    "SHOW <sha1>",
    "    Tell the text of a cached script.",
    "HELP",
    "    Print this help.",
];

pub(super) const FUNCTION: &[&str] = &[
    "FUNCTION <subcommand> [<argument> ...]. Subcommands are:",
    "DELETE <library-name>",
    "    Delete a library with its functions.",
    "DUMP",
    "    Tell all libraries as one serialised value, which FUNCTION RESTORE reads.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all libraries.",
    "KILL",
    "    Stop the function that runs, unless it has written.",
    "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
    "    Tell of the libraries and their functions, and with WITHCODE their texts.",
    "LOAD [REPLACE] <library>",
    "    Make a library of a text.",
    "RESTORE <serialised-value> [FLUSH|APPEND|REPLACE]",
    "    Make the libraries of a serialised value: after all others are deleted, beside others (the default), or in",
    "    the place of others of the same name.",
    "STATS",
    "    Tell which function runs, and how many libraries and functions there are.",
    "HELP",
    "    Print this help.",
];

/// Replies such lines.
pub(super) fn reply(lines: &[&str], reply: &mut Encoder<'_>) {
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}
