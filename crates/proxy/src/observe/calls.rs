//! How often each command was called and has failed, and the errors that clients received, as INFO shows them of a server that keeps its
//! data itself. What is forwarded to nodes the nodes count.
//!
//! A request is *called* when it is run, *rejected* when it is refused before that (arity, rights, memory), and has *failed* when it
//! was run and its reply is an error. An error within a transaction or a script belongs to the command that replied it; EVAL has
//! failed as well if that error is its own reply.
//!
//! Plain requests cost one count. One in [`TIMED_EVERY`] of each command, the first included, takes the longer way and is timed: the
//! time of all is estimated from those.

use crate::limits::{COUNTED_ERRORS_MAX, ERROR_CODE_BYTES_MAX};
use respool_command::{Command, Flags, Row, ScriptCalls};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Of so many plain requests of a command one is timed.
const TIMED_EVERY: u64 = 1024;

/// The figures of one command.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    calls: u64,
    rejected: u64,
    failed: u64,
    /// Calls that were timed, and what these took.
    timed: u64,
    timed_us: u64,
    /// So many calls are plain ones before the next one is timed.
    timed_next: u64,
}

/// The counts of one worker with an engine.
#[derive(Clone, Debug)]
pub(crate) struct CallCounts {
    /// By the numbers of rows.
    commands: Box<[Counts; Command::COUNT]>,
    errors: BTreeMap<Box<str>, u64>,
    errors_total: u64,
    /// The error that a script replies next was counted with the command that it has called.
    is_counted: bool,
}

impl Default for CallCounts {
    fn default() -> Self {
        Self {
            commands: Box::new([Counts::default(); Command::COUNT]),
            errors: BTreeMap::new(),
            errors_total: 0,
            is_counted: false,
        }
    }
}

impl CallCounts {
    /// Counts a plain request that runs untimed. `false`: its turn has come to be timed, and nothing is counted.
    #[inline]
    pub(crate) fn begin_plain(&mut self, row: &'static Row) -> bool {
        match self.commands.get_mut(usize::from(row.number)) {
            Some(counts) if counts.calls < counts.timed_next => {
                counts.calls += 1;
                true
            }
            _ => false,
        }
    }

    /// A plain request that has begun replies this error.
    #[cold]
    pub(crate) fn fail_plain(&mut self, row: &'static Row, reply: &[u8]) {
        self.note_error(reply);
        if is_without_memory(row, reply) {
            let counts = self.of(row);
            counts.calls -= 1;
            counts.rejected += 1;
        } else {
            self.of(row).failed += 1;
        }
    }

    /// A request was run and has this reply, as far as there is one by now. `None`: it was not timed.
    pub(crate) fn end(&mut self, row: &'static Row, reply: &[u8], us: Option<u64>) {
        if reply.starts_with(b"-") {
            self.note_error(reply);
            if is_without_memory(row, reply) {
                self.of(row).rejected += 1;
                return;
            }
            self.of(row).failed += 1;
        }
        // What a script has counted concerns its own reply, whether that is wanted or not.
        self.is_counted = false;
        let counts = self.of(row);
        counts.calls += 1;
        if let Some(us) = us {
            counts.timed += 1;
            counts.timed_us += us;
        }
        counts.timed_next = counts.calls + TIMED_EVERY - 1;
    }

    /// A request was refused with this reply before it was run. `None`: there is no such command.
    #[cold]
    pub(crate) fn reject(&mut self, row: Option<&'static Row>, reply: &[u8]) {
        if !reply.starts_with(b"-") {
            return;
        }
        self.note_error(reply);
        if let Some(row) = row {
            self.of(row).rejected += 1;
        }
    }

    /// A command has this reply, an error: one that waited, or whose client does not want it. That it was called is counted apart.
    pub(crate) fn fail_waiting(&mut self, row: &'static Row, reply: &[u8]) {
        self.note_error(reply);
        self.of(row).failed += 1;
    }

    /// A script has called commands, and replies `reply`.
    pub(crate) fn note_script(&mut self, calls: &ScriptCalls, reply: &[u8]) {
        for called in &calls.commands {
            let counts = self.of(called.row);
            counts.calls += called.calls;
            counts.rejected += called.rejected;
            counts.failed += called.failed;
        }
        for (code, count) in &calls.errors {
            self.errors_total += count;
            self.count_error(code.as_bytes(), *count);
        }
        let is_of_command = |(code, _): &(String, u64)| {
            let line = reply.strip_prefix(b"-").and_then(|line| line.strip_prefix(code.as_bytes()));
            line.is_some_and(|rest| rest.starts_with(b" "))
        };
        self.is_counted = calls.has_failed_last && calls.errors.iter().any(is_of_command);
    }

    /// Rows that nodes have taught have no place of their own; an engine has none of them.
    fn of(&mut self, row: &'static Row) -> &mut Counts {
        &mut self.commands[usize::from(row.number).min(Command::COUNT - 1)]
    }

    fn note_error(&mut self, line: &[u8]) {
        // The error of a script's command is among those of its code already.
        let count = u64::from(!std::mem::take(&mut self.is_counted));
        self.errors_total += count;
        let line = line.strip_prefix(b"-").unwrap_or(line);
        let begin = &line[..line.len().min(ERROR_CODE_BYTES_MAX)];
        let code = begin.iter().position(|byte| *byte == b' ').map_or(&b"ERR"[..], |end| &begin[..end]);
        self.count_error(code, count);
    }

    /// The number of different errors is bounded: scripts choose the codes of theirs.
    fn count_error(&mut self, code: &[u8], count: u64) {
        let code: String = String::from_utf8_lossy(code).chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
        if let Some(known) = self.errors.get_mut(code.as_str()) {
            *known += count;
        } else if self.errors.len() < COUNTED_ERRORS_MAX {
            self.errors.insert(code.into(), count);
        }
    }

    /// The next request of each command is timed: what is looked at may be something else from now on.
    pub(crate) fn time_next(&mut self) {
        self.commands.iter_mut().for_each(|counts| counts.timed_next = 0);
    }

    /// All counts begin anew.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// All calls.
    pub(crate) fn calls_total(&self) -> u64 {
        self.commands.iter().map(|counts| counts.calls).sum()
    }

    /// All errors that clients received.
    pub(crate) fn errors_total(&self) -> u64 {
        self.errors_total
    }

    /// The lines of the section about commands.
    pub(crate) fn write_commands(&self, out: &mut String) {
        for row in respool_command::all() {
            let Counts { calls, rejected, failed, timed, timed_us, .. } = self.commands[usize::from(row.number)];
            if calls == 0 && rejected == 0 {
                continue;
            }
            let per_call = if timed == 0 { 0.0 } else { timed_us as f64 / timed as f64 };
            let _ = write!(
                out,
                "cmdstat_{}:calls={calls},usec={:.0},usec_per_call={per_call:.2},rejected_calls={rejected},\
                 failed_calls={failed}\r\n",
                row.full_name(),
                per_call * calls as f64,
            );
        }
    }

    /// The lines of the section about errors.
    pub(crate) fn write_errors(&self, out: &mut String) {
        for (code, count) in &self.errors {
            let _ = write!(out, "errorstat_{code}:count={count}\r\n");
        }
    }
}

/// Whether an error says that there was no memory for a command, which was not run then.
fn is_without_memory(row: &Row, reply: &[u8]) -> bool {
    row.flags.has(Flags::DENYOOM) && reply.starts_with(b"-OOM ")
}

/// Whether a character may stand in the name of a line, as Redis judges it.
fn is_safe(c: char) -> bool {
    !matches!(c, '#' | ':' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::lookup;

    fn errors(counts: &CallCounts) -> String {
        let mut text = String::new();
        counts.write_errors(&mut text);
        text
    }

    #[test]
    fn codes_of_errors_are_bounded_and_break_no_line() {
        let mut counts = CallCounts::default();
        for number in 0..2 * COUNTED_ERRORS_MAX {
            counts.note_error(format!("-CODE{number} text\r\n").as_bytes());
        }
        counts.note_error(b"-A:B#\r\nC text\r\n");
        counts.note_error(b"-CODE0 again\r\n");
        counts.note_error("-".repeat(1_000).as_bytes());
        let text = errors(&counts);
        assert_eq!(text.lines().count(), COUNTED_ERRORS_MAX);
        assert!(text.contains("errorstat_CODE0:count=2\r\n"), "{text}");
        assert_eq!(counts.errors_total(), 2 * COUNTED_ERRORS_MAX as u64 + 3);
        counts.reset();
        counts.note_error(b"-A:B#\r\nC text\r\n");
        counts.note_error(b"-no_code\r\n");
        assert_eq!(errors(&counts), "errorstat_A_B___C:count=1\r\nerrorstat_ERR:count=1\r\n");
    }

    #[test]
    fn few_plain_requests_are_timed_and_stand_for_all() {
        let row = lookup(b"GET").expect("a known command");
        let mut counts = CallCounts::default();
        let mut timed = 0;
        for _ in 0..3 * TIMED_EVERY {
            if !counts.begin_plain(row) {
                timed += 1;
                counts.end(row, b"$-1\r\n", Some(2));
            }
        }
        assert_eq!(timed, 3);
        let mut text = String::new();
        counts.write_commands(&mut text);
        assert_eq!(text, "cmdstat_get:calls=3072,usec=6144,usec_per_call=2.00,rejected_calls=0,failed_calls=0\r\n");
    }

    #[test]
    fn a_request_refused_for_want_of_memory_was_not_called() {
        let row = lookup(b"SET").expect("a known command");
        let mut counts = CallCounts::default();
        counts.end(row, b"-OOM no\r\n", Some(2));
        counts.end(row, b"+OK\r\n", Some(2));
        assert!(counts.begin_plain(row));
        counts.fail_plain(row, b"-OOM no\r\n");
        let mut text = String::new();
        counts.write_commands(&mut text);
        assert_eq!(text, "cmdstat_set:calls=1,usec=2,usec_per_call=2.00,rejected_calls=2,failed_calls=0\r\n");
    }

    #[test]
    fn what_a_script_has_counted_concerns_no_later_error() {
        let mut counts = CallCounts::default();
        let (eval, get) = (lookup(b"EVAL").expect("a known command"), lookup(b"GET").expect("a known command"));
        let calls = || ScriptCalls {
            errors: vec![("WRONGTYPE".to_owned(), 1)],
            has_failed_last: true,
            ..ScriptCalls::default()
        };
        counts.note_script(&calls(), b"-WRONGTYPE no\r\n");
        counts.end(eval, b"-WRONGTYPE no\r\n", None);
        assert_eq!(counts.errors_total(), 1);
        // Its client does not want the reply.
        counts.note_script(&calls(), b"-WRONGTYPE no\r\n");
        counts.end(eval, b"", None);
        counts.end(get, b"-WRONGTYPE no\r\n", None);
        assert_eq!(counts.errors_total(), 3);
        counts.note_script(&calls(), b"-WRONGTYPE no\r\n");
        counts.fail_waiting(eval, b"-WRONGTYPE no\r\n");
        assert_eq!(counts.errors_total(), 4);
    }
}
