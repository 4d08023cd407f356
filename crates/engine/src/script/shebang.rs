//! The first line of a script: `#!lua flags=no-writes,allow-oom`.

use respool_command::words::{self, until_nul};

/// What a script says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptFlags {
    /// It begins with such a line. One that does not may do what its commands may.
    pub(super) is_declared: bool,
    pub(super) no_writes: bool,
    pub(super) allow_oom: bool,
}

impl ScriptFlags {
    /// Reads one flag. `None`: there is no such flag.
    pub(super) fn add(&mut self, flag: &[u8]) -> Option<()> {
        match flag {
            b"no-writes" => self.no_writes = true,
            b"allow-oom" => self.allow_oom = true,
            // The engine is neither a replica nor a member of a cluster.
            b"allow-stale" | b"no-cluster" | b"allow-cross-slot-keys" => {}
            _ => return None,
        }
        Some(())
    }
}

/// Parses the first line. Returns its engine and flags, and the offset of the source to compile; its lines are counted from
/// the first one on.
pub(super) fn read(text: &[u8]) -> Result<(ScriptFlags, usize), Vec<u8>> {
    let mut flags = ScriptFlags::default();
    if !text.starts_with(b"#!") {
        return Ok((flags, 0));
    }
    flags.is_declared = true;
    let end = until_nul(text).iter().position(|&byte| byte == b'\n').ok_or("ERR Invalid script shebang")?;
    let words =
        words::split(&text[..end]).filter(|words| !words.is_empty()).ok_or("ERR Invalid engine in script shebang")?;
    let (engine, options) = words.split_first().ok_or("ERR Invalid engine in script shebang")?;
    if until_nul(engine) != b"#!lua" {
        return Err([b"ERR Unexpected engine in script shebang: ", until_nul(engine)].concat());
    }
    for option in options {
        let Some(listed) = option.strip_prefix(b"flags=") else {
            return Err([b"ERR Unknown lua shebang option: ", until_nul(option)].concat());
        };
        for flag in listed.split(|&byte| byte == b',').filter(|_| !listed.is_empty()) {
            let unexpected = || [b"ERR Unexpected flag in script shebang: ", until_nul(flag)].concat();
            flags.add(flag).ok_or_else(unexpected)?;
        }
    }
    Ok((flags, end))
}

/// What is compiled of a text, whose first line has been read before.
pub(super) fn source(text: &[u8]) -> &[u8] {
    let start = read(text).map_or(0, |(_, start)| start);
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_others_refused() {
        let flags = |no_writes, allow_oom| ScriptFlags { is_declared: true, no_writes, allow_oom };
        for (line, expected) in [
            ("return 1", Ok((ScriptFlags::default(), 0))),
            ("#!lua\nx", Ok((flags(false, false), 5))),
            ("#!lua flags=no-writes,allow-oom\n", Ok((flags(true, true), 31))),
            ("#!lua  flags=\"no-writes\" flags=\n", Ok((flags(true, false), 31))),
            ("#!lua flags=no-writes,\n", Err("ERR Unexpected flag in script shebang: ")),
            ("#!lua name=x\n", Err("ERR Unknown lua shebang option: name=x")),
            ("#!lua 'x\n", Err("ERR Invalid engine in script shebang")),
            ("#! lua\n", Err("ERR Unexpected engine in script shebang: #!")),
            ("#!lua", Err("ERR Invalid script shebang")),
        ] {
            assert_eq!(read(line.as_bytes()), expected.map_err(|text: &str| text.as_bytes().to_vec()), "{line}");
        }
    }
}
