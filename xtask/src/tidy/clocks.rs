//! Where the wall clock is used, and for what.
//!
//! The wall clock is set back and forth: by an operator, by its server, by a machine that was asleep. A pause, a rate or a
//! deadline that hangs on it may then last for hours. So everything that is decided about time goes by the monotonic clock,
//! which is the same for all workers, and each line that names the wall clock is listed here with what it is for.

use std::fs;

use super::text::{lines_of_code, rust_files};
use crate::command;

/// What names the wall clock.
const WORDS: [&str; 5] = ["unix_us", "unix_ms", "SystemTime", "UNIX_EPOCH", "Utc"];

/// A file below `crates`, a part of the line, and the reason.
const ALLOWED: [(&str, &str, &str); 44] = [
    ("net/src/clock.rs", "use std::time::", "where both clocks are read"),
    ("net/src/clock.rs", "SystemTime::now()", "where both clocks are read"),
    ("net/src/clock.rs", "unix_us", "the time of day that tests of other programs set"),
    ("net/src/clock.rs", "SystemTime {", "the time of day that tests of other programs set"),
    ("net/src/clock.rs", "SystemTime)", "the time of day that tests of other programs set"),
    ("net/src/clock.rs", "UNIX_EPOCH)", "the time of day that tests of other programs set"),
    ("connection/src/machine.rs", "unix_us: u64) -> Self", "where both clocks are passed on"),
    ("connection/src/machine.rs", "Self { mono_us, unix_us,", "where both clocks are passed on"),
    ("connection/src/machine.rs", "self.unix_us += us", "behind DEBUG SLEEP it is later by either clock"),
    ("connection/src/machine.rs", "pub unix_us: u64", "where both clocks are passed on"),
    ("access/src/log.rs", "pub unix_ms: u64", "ACL LOG says when a line was written"),
    ("access/src/log.rs", "    unix_ms: u64,", "ACL LOG says when a line was written"),
    ("access/src/log.rs", "unix_ms: denied.unix_ms }", "ACL LOG says when a line was written"),
    (
        "access/src/log.rs",
        "abs_diff(denied.unix_ms) <= ALIKE_MS",
        "lines of ACL LOG that are alike and near are shown as one",
    ),
    ("access/src/log.rs", "count: usize, unix_ms: u64, reply", "ACL LOG says how old a line is"),
    ("access/src/log.rs", "unix_ms.saturating_sub(entry.unix_ms)", "ACL LOG says how old a line is"),
    ("proxy/src/auth/acl_command.rs", "unix_ms", "ACL LOG says how old a line is"),
    ("proxy/src/auth/permissions.rs", "let unix_ms = now.unix_us / 1_000;", "ACL LOG says when a line was written"),
    ("proxy/src/auth/permissions.rs", "client: &client, unix_ms }", "ACL LOG says when a line was written"),
    ("proxy/src/auth/script_rights.rs", "unix_ms", "ACL LOG says when a line was written"),
    ("proxy/src/command_log/mod.rs", "unix_s: self.now.unix_us", "the slow log says when"),
    (
        "proxy/src/blocking/engine/mod.rs",
        "let (seconds, us) = (self.env.now.unix_us / 1_000_000,",
        "LATENCY says when a sample was taken",
    ),
    ("proxy/src/command_log/show.rs", "    unix_us: u64,", "MONITOR says when a command was run"),
    (
        "proxy/src/command_log/show.rs",
        "Self { unix_us: now.unix_us, output_hard",
        "MONITOR says when a command was run",
    ),
    ("proxy/src/command_log/show.rs", "line(terms.unix_us,", "MONITOR says when a command was run"),
    ("proxy/src/command_log/monitors.rs", "unix_us", "MONITOR says when a command was run"),
    ("proxy/src/commands/command_log.rs", "let now_s = self.now.unix_us", "LATENCY GRAPH says how old a sample is"),
    (
        "proxy/src/parameters/server_info.rs",
        "(self.now.unix_us / 1_000_000) & 0x00ff_ffff",
        "INFO shows the clock of LRU",
    ),
    ("respool/src/serve/hooks.rs", "UNIX_EPOCH", "DEBUG CLOCK sets the time that clients see"),
    ("respool/src/test_server/mod.rs", "SystemTime", "tests of other programs set the time that clients see"),
    ("respool/src/test_server/clock.rs", "SystemTime", "tests of other programs set the time that clients see"),
    ("respool/src/test_server/database.rs", "SystemTime", "when a key expires"),
    ("respool/src/test_server/database.rs", "UNIX_EPOCH", "when a key expires"),
    ("respool/src/logging/redis_format.rs", "use std::time::", "lines of the log say when"),
    ("respool/src/logging/redis_format.rs", "SystemTime::now()", "lines of the log say when"),
    ("proxy/src/env.rs", "Millis(self.now.unix_us / 1000)", "keys of the engine expire by the wall clock, as in Redis"),
    (
        "proxy/src/blocking/engine/execute.rs",
        "now: Millis(now.unix_us / 1000)",
        "keys of the engine expire by the wall clock, as in Redis",
    ),
    (
        "proxy/src/dedicated/merged_replication.rs",
        "env.lanes.entropy_of_all(), env.now.unix_us,",
        "a stream's name differs from those of processes before",
    ),
    ("proxy/src/commands/info.rs", "            self.now.unix_us,", "INFO shows the time"),
    ("proxy/src/commands/connection.rs", "unix_us", "TIME answers it"),
    ("proxy/src/admin/slowlog.rs", "unix_us", "the slow log says when"),
    ("proxy/src/observe/slow_log.rs", "pub(crate) unix_us: u64", "the slow log says when"),
    ("proxy/src/observe/sampling.rs", "unix_us: self.now.unix_us", "the slow log says when"),
    ("proxy/src/admin/query.rs", "unix_us", "the slow log says when, and is shown in that order"),
];

pub(super) fn check() -> Vec<String> {
    let mut complaints = Vec::new();
    let mut is_used = [false; ALLOWED.len()];
    let crates = command::root().join("crates");
    for file in rust_files(&crates) {
        let name = file.strip_prefix(&crates).unwrap_or(&file).to_string_lossy().into_owned();
        // Tests say what time it is; what stands outside of `src` is tests and benches.
        if !name.contains("/src/") || name.starts_with("testkit/") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap_or_default();
        for (number, line) in lines_of_code(&text).filter(|(_, line)| names_wall_clock(line)) {
            match ALLOWED.iter().position(|(file, part, _)| *file == name && line.contains(part)) {
                Some(place) => is_used[place] = true,
                None => complaints
                    .push(format!("crates/{name}:{number}: names the wall clock, which may be set at any time")),
            }
        }
    }
    let unused = ALLOWED.iter().zip(is_used).filter(|(_, is_used)| !is_used);
    complaints.extend(unused.map(|((file, part, _), _)| format!("crates/{file} has no `{part}` any more")));
    complaints
}

fn names_wall_clock(line: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.split(|character| !is_part(character)).any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_decided_by_the_wall_clock() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn every_use_has_its_reason() {
        assert!(ALLOWED.iter().all(|(.., reason)| !reason.is_empty()));
        assert!(names_wall_clock("if bucket.take(self.now.unix_us, 5) {") && !names_wall_clock("let unix_mode = 7;"));
    }
}
