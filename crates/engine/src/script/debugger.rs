//! What a debugger of scripts knows and says: the lines of the script, where it stops, and the lines that go to its client.
//!
//! The words are those of Redis's debugger, which programs read. It knows nothing of the interpreter: see `stops.rs` for that.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use respool_wire::{Args, Encoder};

use crate::limits::{
    DEBUGGER_BREAKPOINTS_MAX, DEBUGGER_LINES_BEGUN_MAX, DEBUGGER_LOG_BYTES_MAX, DEBUGGER_VALUE_BYTES_MAX,
};
use crate::number::integer;

/// Bytes of a value that are shown unless the client says otherwise, and the fewest that it may say.
const SHOWN_BYTES: usize = 256;
const SHOWN_BYTES_MIN: usize = 60;
/// Words of a command that are shown.
const SHOWN_WORDS: usize = 10;
/// Aggregates in each other that are shown of a reply.
const SHOWN_DEPTH: usize = 64;

/// One session.
pub(super) struct Debugger {
    script: Vec<u8>,
    /// Where its lines begin, and one more where the last is over.
    starts: Vec<u32>,
    breakpoints: Vec<usize>,
    /// It stops at the next line, and shows what the script calls until then.
    pub(super) is_stepping: bool,
    /// The script has asked to be stopped.
    pub(super) is_asked: bool,
    /// The script has run for so long that it is stopped.
    pub(super) is_late: bool,
    /// It waits for a command, and what it runs for that is not stopped.
    pub(super) is_stopped: bool,
    /// Its client has left: it stops nowhere, and says nothing.
    is_deserted: bool,
    /// Lines that have begun and at which it has not been asked whether to stop.
    begun: VecDeque<usize>,
    /// The line at which it is.
    pub(super) line: usize,
    /// Bytes of a value that are shown; `None`: all.
    shown: Option<usize>,
    has_hinted: bool,
    said: Vec<Vec<u8>>,
    said_bytes: usize,
}

impl Debugger {
    pub(super) fn new(script: &[u8]) -> Self {
        let end = script.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        let script = script[..end].to_vec();
        let behind = |(place, byte): (usize, &u8)| (*byte == b'\n').then_some(place as u32 + 1);
        let inner = script.iter().enumerate().filter_map(behind);
        let starts = match end {
            0 => Vec::new(),
            _ => std::iter::once(0).chain(inner).chain([end as u32 + 1]).collect(),
        };
        Self {
            script,
            starts,
            breakpoints: Vec::new(),
            is_stepping: true,
            is_asked: false,
            is_late: false,
            is_stopped: false,
            is_deserted: false,
            begun: VecDeque::new(),
            line: 0,
            shown: Some(SHOWN_BYTES),
            has_hinted: false,
            said: Vec::new(),
            said_bytes: 0,
        }
    }

    fn lines(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn line(&self, number: usize) -> Option<&[u8]> {
        let (start, next) = (self.starts.get(number.checked_sub(1)?)?, self.starts.get(number)?);
        self.script.get(*start as usize..*next as usize - 1)
    }

    /// Its client has left: the script runs to its end, unless that takes too long.
    pub(super) fn desert(&mut self) {
        self.is_deserted = true;
        self.begun.clear();
        self.said.clear();
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.is_deserted
    }

    /// Whether a script has run for too long, and no client waits for it.
    pub(super) fn is_overdue(&self) -> bool {
        self.is_deserted && self.is_late
    }

    /// Whether it may stop the script where that is.
    pub(super) fn is_watching(&self) -> bool {
        !self.is_stopped && !self.is_deserted
    }

    /// A line begins. Between two places at which it is asked whether to stop there are few.
    pub(super) fn note_line(&mut self, line: usize) {
        if self.is_watching() && self.begun.len() < DEBUGGER_LINES_BEGUN_MAX {
            self.begun.push_back(line);
        }
    }

    /// The next of these lines.
    pub(super) fn next_begun(&mut self) -> Option<usize> {
        self.begun.pop_front()
    }

    /// Whether it stops at a line, which it says then.
    pub(super) fn stops_at(&mut self, line: usize) -> bool {
        self.line = line;
        let is_breakpoint = self.breakpoints.contains(&line);
        let reason = match () {
            () if self.is_asked => "redis.breakpoint() called",
            () if is_breakpoint => "break point",
            () if self.is_stepping => "step over",
            () if self.is_late => "timeout reached, infinite loop?",
            () => return false,
        };
        (self.is_stepping, self.is_asked, self.is_late) = (false, false, false);
        self.say(format!("* Stopped at {line}, stop reason = {reason}"));
        self.say_line(line);
        true
    }

    /// Whether no more is said before the client has been given what was.
    pub(super) fn is_full(&self) -> bool {
        self.said_bytes > DEBUGGER_LOG_BYTES_MAX
    }

    /// Whether what is said is kept for a client.
    pub(super) fn takes_more(&self) -> bool {
        !self.is_full() && !self.is_deserted
    }

    /// Says one line. What is too much is left out, which the last line tells.
    pub(super) fn say(&mut self, line: impl Into<Vec<u8>>) {
        let mut line = line.into();
        if !self.takes_more() {
            return;
        }
        self.said_bytes += line.len() + size_of::<Vec<u8>>();
        if self.is_full() {
            line = b"<hint> There was more than can be shown.".to_vec();
        }
        line.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
        self.said.push(line);
    }

    /// Says that the session has ended, however much has been said, and also to a client that has closed its side alone.
    pub(super) fn say_end(&mut self) {
        self.said.push(b"<endsession>".to_vec());
    }

    /// Says one line, of which no more than is wanted is shown.
    pub(super) fn say_value(&mut self, mut line: Vec<u8>) {
        let Some(shown) = self.shown.filter(|shown| line.len() > *shown) else { return self.say(line) };
        line.truncate(shown);
        line.extend(b" ...");
        self.say(line);
        if !std::mem::replace(&mut self.has_hinted, true) {
            self.say("<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming.");
        }
    }

    /// Gives the client what has been said.
    pub(super) fn tell(&mut self, reply: &mut Encoder<'_>) {
        let said = std::mem::take(&mut self.said);
        self.said_bytes = 0;
        reply.array(said.len());
        for line in said {
            reply.raw(b"+");
            reply.raw(&line);
            reply.raw(b"\r\n");
        }
    }

    /// Bytes of a value that are written down to be shown.
    pub(super) fn value_bytes(&self) -> usize {
        self.shown.map_or(DEBUGGER_VALUE_BYTES_MAX, |shown| (shown + 1).min(DEBUGGER_VALUE_BYTES_MAX))
    }

    /// A script calls a command.
    pub(super) fn note_call(&mut self, request: Args<'_>) {
        if !self.is_stepping || self.is_full() {
            return;
        }
        let mut line = b"<redis>".to_vec();
        for (place, word) in request.iter().enumerate() {
            if place == SHOWN_WORDS {
                line.extend(format!(" ... ({} more)", request.len() - place - 1).into_bytes());
                break;
            }
            line.push(b' ');
            line.extend(shortened(word));
        }
        self.say(line);
    }

    /// A script is given an error.
    pub(super) fn note_error(&mut self, text: &[u8]) {
        if self.is_stepping {
            self.say([b"<error> ", shortened(text)].concat());
        }
    }

    /// A script is given the reply to a command.
    pub(super) fn note_reply(&mut self, reply: &[u8]) {
        if self.is_stepping && !self.is_full() {
            let mut line = b"<reply> ".to_vec();
            show_reply(&mut line, reply, (0, self.value_bytes()));
            self.say_value(line);
        }
    }

    pub(super) fn say_line(&mut self, number: usize) {
        let is_breakpoint = self.breakpoints.contains(&number);
        let mark = match (number == self.line, is_breakpoint) {
            (true, true) => "->#",
            (true, false) => "-> ",
            (false, true) => "  #",
            (false, false) => "   ",
        };
        let text = self.line(number).unwrap_or(b"<out of range source code line>");
        self.say([format!("{mark}{number:<3} ").as_bytes(), text].concat());
    }

    /// The lines around one, as far as there are any.
    fn around(&self, line: i64, context: i64) -> RangeInclusive<usize> {
        let place = |number: i64| usize::try_from(number).unwrap_or(0);
        let (first, last) = (line.saturating_sub(context), line.saturating_add(context));
        place(first).max(1)..=place(last).min(self.lines())
    }

    fn list(&mut self, around: i64, context: i64) {
        for number in self.around(around, context) {
            if self.is_full() {
                return;
            }
            self.say_line(number);
        }
    }

    /// `list [line [context]]`
    pub(super) fn say_list(&mut self, words: Args<'_>) {
        let number = |place| words.get(place).map(leading_number);
        let around = number(1).filter(|line| *line > 0).unwrap_or(self.line as i64);
        self.list(around, number(2).unwrap_or(5));
    }

    pub(super) fn say_whole(&mut self) {
        self.list(1, 1_000_000);
    }

    /// `maxlen [bytes]`
    pub(super) fn limit_shown(&mut self, words: Args<'_>) {
        if words.len() == 2 {
            self.has_hinted = true;
            let wanted = leading_number(words.at(1));
            let bytes = usize::try_from(wanted).unwrap_or(0).max(SHOWN_BYTES_MIN);
            self.shown = (wanted != 0).then_some(bytes);
        }
        match self.shown {
            Some(bytes) => self.say(format!("<value> replies are truncated at {bytes} bytes.")),
            None => self.say("<value> replies are unlimited."),
        }
    }

    /// `break [line ...]`
    pub(super) fn set_breakpoints(&mut self, words: Args<'_>) {
        if words.len() == 1 {
            return self.say_breakpoints();
        }
        for word in words.from(1).iter() {
            match integer::parse(word) {
                None => self.say([b"Invalid argument:'", word, b"'"].concat()),
                Some(0) => {
                    self.breakpoints.clear();
                    self.say("All breakpoints removed.");
                }
                Some(line) if line < 0 => self.remove_breakpoint(line.unsigned_abs() as usize),
                Some(line) => self.add_breakpoint(line as usize),
            }
        }
    }

    fn say_breakpoints(&mut self) {
        match self.breakpoints.len() {
            0 => self.say("No breakpoints set. Use 'b <line>' to add one."),
            count => self.say(format!("{count} breakpoints set:")),
        }
        for line in self.breakpoints.clone() {
            self.say_line(line);
        }
    }

    fn add_breakpoint(&mut self, line: usize) {
        if self.breakpoints.len() >= DEBUGGER_BREAKPOINTS_MAX {
            return self.say("Too many breakpoints set.");
        }
        if line > self.lines() {
            return self.say("Wrong line number.");
        }
        if !self.breakpoints.contains(&line) {
            self.breakpoints.push(line);
        }
        self.list(line as i64, 1);
    }

    fn remove_breakpoint(&mut self, line: usize) {
        let before = self.breakpoints.len();
        self.breakpoints.retain(|known| *known != line);
        self.say(match self.breakpoints.len() < before {
            true => "Breakpoint removed.",
            false => "No breakpoint in the specified line.",
        });
    }

    pub(super) fn help(&mut self) {
        for line in HELP {
            self.say(line);
        }
    }
}

const HELP: [&str; 25] = [
    "Commands of the debugger of scripts:",
    "[s]tep               Run this line, and stop at the next one.",
    "[n]ext               The same.",
    "[c]ontinue           Run on, up to a breakpoint.",
    "[l]ist               Show the lines around this one.",
    "[l]ist [line]        Show the lines around that one; 0 stands for this one.",
    "[l]ist [line] [ctx]  Show so many lines before and behind it.",
    "[w]hole              Show all lines.",
    "[p]rint              Show the local variables.",
    "[p]rint <var>        Show this variable, of any function that is under way,",
    "                     or KEYS or ARGV.",
    "[b]reak              Show the breakpoints.",
    "[b]reak <line>       Stop at this line.",
    "[b]reak -<line>      Stop at this line no more.",
    "[b]reak 0            Stop at no line.",
    "[t]race              Show which functions are under way, and where.",
    "[e]val <code>        Run code in a function of its own, and show what it returns.",
    "[r]edis <cmd>        Run a command, and show its reply.",
    "[m]axlen [len]       Show no more than so many bytes of a value; 0 stands for all.",
    "[a]bort              End the script. In sync mode its changes stay.",
    "[h]elp               Show this.",
    "",
    "What a script may call:",
    "redis.debug(...)     Show values.",
    "redis.breakpoint()   Stop at the next line.",
];

/// The number at the beginning of a word, as `atoi` reads it.
fn leading_number(word: &[u8]) -> i64 {
    let (is_negative, digits) = match word.trim_ascii_start() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).take(9);
    let number = digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    if is_negative { -number } else { number }
}

/// Adds a text with quotes, as it could be typed.
pub(super) fn show_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'\\' | b'"' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            7 => out.extend(b"\\a"),
            8 => out.extend(b"\\b"),
            b' '..=b'~' => out.push(*byte),
            _ => out.extend(format!("\\x{byte:02x}").into_bytes()),
        }
    }
    out.push(b'"');
}

/// What is shown at most of a word or an error.
pub(super) fn shortened(text: &[u8]) -> &[u8] {
    text.get(..DEBUGGER_VALUE_BYTES_MAX).unwrap_or(text)
}

/// Adds a reply as it is shown, at some depth in others, and little more than so many bytes. Gives what is behind it, unless it was cut off.
fn show_reply<'r>(out: &mut Vec<u8>, reply: &'r [u8], (depth, bytes_max): (usize, usize)) -> &'r [u8] {
    let Some(end) = reply.windows(2).position(|pair| pair == b"\r\n") else { return &[] };
    let (line, rest) = (&reply[..end], &reply[end + 2..]);
    let (kind, body) = (line.first().copied().unwrap_or_default(), line.get(1..).unwrap_or_default());
    let count = integer::parse(body).and_then(|count| usize::try_from(count).ok());
    match (kind, count) {
        (b'$' | b'*', None) => out.extend(b"NULL"),
        (b'$' | b'=', Some(length)) => {
            let text = rest.get(..length).unwrap_or(rest);
            show_text(out, text.get(..bytes_max).unwrap_or(text));
            return rest.get(length + 2..).unwrap_or_default();
        }
        (b'*' | b'~' | b'%' | b'>', Some(count)) if depth < SHOWN_DEPTH => {
            return show_elements(out, (kind, count), rest, (depth, bytes_max));
        }
        (b':', _) => out.extend(body),
        (b'_', _) => out.extend(b"(null)"),
        (b'#', _) => out.extend(if body == b"t" { &b"#true"[..] } else { b"#false" }),
        (b',', _) => out.extend([b"(double) ", body].concat()),
        _ => show_text(out, line.get(..bytes_max).unwrap_or(line)),
    }
    rest
}

fn show_elements<'r>(
    out: &mut Vec<u8>,
    (kind, count): (u8, usize),
    reply: &'r [u8],
    (depth, bytes_max): (usize, usize),
) -> &'r [u8] {
    let (open, close) = match kind {
        b'~' => (&b"~("[..], b')'),
        b'%' => (&b"{"[..], b'}'),
        _ => (&b"["[..], b']'),
    };
    out.extend(open);
    let mut rest = reply;
    for place in 0..count {
        if out.len() > bytes_max {
            return &[];
        }
        if place > 0 {
            out.push(b',');
        }
        rest = show_reply(out, rest, (depth + 1, bytes_max));
        if kind == b'%' {
            out.extend(b" => ");
            rest = show_reply(out, rest, (depth + 1, bytes_max));
        }
    }
    out.push(close);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_shown_as_redis_shows_them() {
        for (reply, shown) in [
            ("+OK\r\n", "\"+OK\""),
            ("-ERR a\r\n", "\"-ERR a\""),
            (":5\r\n", "5"),
            ("$-1\r\n", "NULL"),
            ("*-1\r\n", "NULL"),
            ("_\r\n", "(null)"),
            ("#t\r\n", "#true"),
            (",1.5\r\n", "(double) 1.5"),
            ("*2\r\n$1\r\na\r\n*1\r\n$-1\r\n", "[\"a\",[NULL]]"),
            ("%1\r\n$1\r\na\r\n:1\r\n", "{\"a\" => 1}"),
            ("~1\r\n$3\r\na\r\n\r\n", "~(\"a\\r\\n\")"),
            ("*0\r\n", "[]"),
        ] {
            let mut out = Vec::new();
            assert!(show_reply(&mut out, reply.as_bytes(), (0, 1000)).is_empty());
            assert_eq!(out.escape_ascii().to_string(), shown.as_bytes().escape_ascii().to_string());
        }
    }

    #[test]
    fn what_is_said_is_bounded() {
        let mut debugger = Debugger::new(b"return 1\n\n");
        assert_eq!((debugger.lines(), debugger.line(1)), (1, Some(&b"return 1"[..])));
        for _ in 0..100 {
            debugger.say(vec![b'x'; DEBUGGER_LOG_BYTES_MAX / 10]);
        }
        let mut out = Vec::new();
        debugger.tell(&mut Encoder::new(&mut out, respool_wire::Protocol::Resp2));
        assert!(out.len() <= DEBUGGER_LOG_BYTES_MAX + 1024 && out.ends_with(b"more than can be shown.\r\n"));
        for has_left in [false, true] {
            debugger.say(vec![b'x'; 2 * DEBUGGER_LOG_BYTES_MAX]);
            if has_left {
                debugger.desert();
            }
            debugger.say_end();
            out.clear();
            debugger.tell(&mut Encoder::new(&mut out, respool_wire::Protocol::Resp2));
            assert!(out.ends_with(b"+<endsession>\r\n"), "{has_left}");
        }
        debugger.is_deserted = false;
        debugger.say("again");
        assert_eq!(debugger.said, [b"again"]);
    }

    /// Whatever a client asks for, no line is looked at that is not shown: it may ask a million times in one request.
    #[test]
    fn a_list_looks_at_no_line_besides_its_own() {
        let mut debugger = Debugger::new(&[&[b'\n'; 1 << 20][..], b"return 1"].concat());
        let lines = debugger.lines();
        for (line, context, listed) in [
            (1, 1, 1..=2),
            (7, 0, 7..=7),
            (lines as i64, 5, lines - 5..=lines),
            (1, 1_000_000, 1..=1_000_001),
            (i64::MAX, i64::MAX, 1..=lines),
        ] {
            assert_eq!(debugger.around(line, context), listed, "{line} {context}");
        }
        assert!(
            [(999_999_999, 1), (-5, 1), (1, -1)]
                .into_iter()
                .all(|(line, context)| debugger.around(line, context).is_empty())
        );
        let words: respool_wire::ArgsBuf = std::iter::once("b").chain(std::iter::repeat_n("1", 100_000)).collect();
        debugger.set_breakpoints(words.as_args());
        assert_eq!(debugger.breakpoints, [1]);
        assert!(debugger.is_full());
    }

    #[test]
    fn lines_are_those_between_line_feeds() {
        let debugger = Debugger::new(b"\na = 1\r\n\nreturn a\n\r\n");
        let lines: Vec<_> = (0..=5).map(|number| debugger.line(number)).collect();
        assert_eq!(lines, [None, Some(&b""[..]), Some(b"a = 1\r"), Some(b""), Some(b"return a"), None]);
        assert_eq!(Debugger::new(b"\r\n").lines(), 0);
    }

    /// What is shown of a reply is all that is written down of it.
    #[test]
    fn large_replies_and_calls_are_cut_before_they_are_shown() {
        let text = "\x01".repeat(10 << 20);
        let many = "$1\r\n\x01\r\n".repeat(1 << 20);
        for reply in [format!("${}\r\n{text}\r\n", text.len()), format!("*{}\r\n{many}", 1 << 20)] {
            let mut debugger = Debugger::new(b"return 1");
            for shown in ["256", "0"] {
                let words: respool_wire::ArgsBuf = ["maxlen", shown].iter().collect();
                debugger.limit_shown(words.as_args());
                let mut out = Vec::new();
                show_reply(&mut out, reply.as_bytes(), (0, debugger.value_bytes()));
                assert!(out.len() <= 4 * debugger.value_bytes() + 8, "{shown}: {}", out.len());
                debugger.note_reply(reply.as_bytes());
            }
            let call: respool_wire::ArgsBuf = ["set", "k", &text].iter().collect();
            debugger.note_call(call.as_args());
            assert!(debugger.said_bytes <= 2 * DEBUGGER_LOG_BYTES_MAX, "{}", debugger.said_bytes);
        }
    }
}
