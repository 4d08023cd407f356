//! Which requests CLIENT PAUSE holds back.

use respool_command::{Command, Flags, PubsubCommand, Row};

/// A pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientPause {
    /// When it ends, on the clock of clients.
    pub(crate) until_us: u64,
    /// Whether reads wait, too.
    pub(crate) is_for_all: bool,
}

impl ClientPause {
    /// Whether commands of this kind are held back.
    pub(crate) fn holds(&self, row: &Row) -> bool {
        self.is_for_all || may_change(row)
    }
}

/// Whether a request may change data, or has replicas told something all the same (PFCOUNT keeps what it computed).
pub(crate) fn may_change(row: &Row) -> bool {
    let is_script = row.runs_scripts && !row.flags.has(Flags::READONLY);
    let is_publish = matches!(row.command, Command::Pubsub(PubsubCommand::Publish | PubsubCommand::Spublish));
    row.flags.has(Flags::WRITE) || is_script || is_publish || row.name == "PFCOUNT"
}

/// Whether a script says in its first line that it writes nothing; the node holds it to that.
pub(crate) fn is_readonly_script(script: &[u8]) -> bool {
    let Some(line) = script.split(|byte| *byte == b'\n').next().and_then(|line| line.strip_prefix(b"#!")) else {
        return false;
    };
    let flags = line.trim_ascii().split(u8::is_ascii_whitespace).filter_map(|word| word.strip_prefix(b"flags="));
    flags.flat_map(|flags| flags.split(|byte| *byte == b',')).any(|flag| flag == b"no-writes")
}

#[cfg(test)]
mod tests {
    use super::{is_readonly_script, may_change};
    use respool_command::{lookup, resolve};
    use respool_wire::ArgsBuf;

    #[test]
    fn what_changes_data_waits_even_if_reads_go_on() {
        for name in ["SET", "DEL", "EVAL", "FCALL", "PUBLISH", "PFCOUNT", "FLUSHALL"] {
            assert!(may_change(lookup(name.as_bytes()).expect("it has a row")), "{name}");
        }
        for name in ["GET", "EVAL_RO", "PING", "SCAN", "INFO", "MULTI", "EXEC"] {
            assert!(!may_change(lookup(name.as_bytes()).expect("it has a row")), "{name}");
        }
        let scripting = |request: &str| {
            let args: ArgsBuf = request.split(' ').collect();
            may_change(resolve(args.as_args()).expect("it has a row"))
        };
        for request in ["SCRIPT LOAD x", "SCRIPT KILL", "SCRIPT EXISTS x", "FUNCTION LIST", "FUNCTION KILL"] {
            assert!(!scripting(request), "{request}: it runs no script");
        }
        for request in ["FUNCTION LOAD x", "FUNCTION FLUSH"] {
            assert!(scripting(request), "{request}: the node's libraries are data");
        }
    }

    #[test]
    fn a_script_that_says_so_changes_nothing() {
        for script in
            ["#!lua flags=no-writes\nreturn 1", "#!lua name=x flags=allow-stale,no-writes", "#!lua flags=no-writes\r\n"]
        {
            assert!(is_readonly_script(script.as_bytes()), "{script}");
        }
        for script in [
            "",
            "return 1",
            "#!lua\nflags=no-writes",
            "#!lua flags=allow-oom\n",
            " #!lua flags=no-writes",
            "-- flags=no-writes",
        ] {
            assert!(!is_readonly_script(script.as_bytes()), "{script}");
        }
    }
}
