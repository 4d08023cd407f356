//! What the command table says of a line that is being typed: completions, hints, help. The table is the only list of commands.

use std::fmt::Write;

use respool_command::{Argument, ArgumentKind, Arguments, Repeat, Row, all, lookup};

use crate::limits::HINT_BYTES_MAX;

/// The arguments of a command as documentation writes them: `key value [NX|XX]`.
pub fn syntax(row: &Row) -> String {
    row.usage().arguments().map(|argument| text_of(&argument)).collect::<Vec<_>>().join(" ")
}

fn text_of(argument: &Argument) -> String {
    let mut text = without_brackets(argument);
    match argument.repeat {
        Repeat::Once => {}
        Repeat::Many => {
            let value = value_of(argument);
            let _ = write!(text, " [{value} ...]");
        }
        Repeat::ManyWithToken => text = format!("{text} [{text} ...]"),
    }
    if argument.is_optional { format!("[{text}]") } else { text }
}

fn without_brackets(argument: &Argument) -> String {
    match (argument.kind, argument.token) {
        (ArgumentKind::Token, _) | (_, None) => value_of(argument),
        (_, Some(token)) => format!("{} {}", shown(token), value_of(argument)),
    }
}

fn value_of(argument: &Argument) -> String {
    match argument.kind {
        ArgumentKind::Token => argument.token.map_or_else(|| argument.name.to_owned(), shown),
        ArgumentKind::OneOf(parts) => joined(parts, "|"),
        ArgumentKind::Block(parts) => joined(parts, " "),
        _ => argument.name.to_owned(),
    }
}

fn joined(parts: Arguments, between: &str) -> String {
    parts.map(|part| text_of(&part)).collect::<Vec<_>>().join(between)
}

/// An empty word has to be typed as a pair of quotes.
fn shown(token: &str) -> String {
    if token.is_empty() { "\"\"".to_owned() } else { token.to_owned() }
}

/// The row that the first words name, and how many of them do.
pub(crate) fn row_of<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<(&'static Row, usize)> {
    let row = lookup(words.next()?.as_bytes())?;
    match words.next().and_then(|word| row.subcommand(word.as_bytes())) {
        Some(subcommand) => Some((subcommand, 2)),
        None => Some((row, 1)),
    }
}

/// What may follow the words of a line. `None`: it is no known command, or nothing may follow.
pub fn hint(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // A number in front is how often.
    let words = match words.first() {
        Some(word) if word.parse::<u64>().is_ok() => &words[1..],
        _ => &words[..],
    };
    let (row, names) = row_of(words.iter().copied())?;
    if row.is_container() && row.arity < 0 && words.len() == names && row.usage().arguments().next().is_none() {
        return Some(spaced(line, "subcommand [arg ...]"));
    }
    let mut left = Left::of(row.usage().arguments());
    words[names..].iter().for_each(|word| left.take(word));
    let text = left.text();
    (!text.is_empty()).then(|| spaced(line, &text))
}

fn spaced(line: &str, hint: &str) -> String {
    let end = hint.char_indices().map(|(at, _)| at).find(|at| *at >= HINT_BYTES_MAX).unwrap_or(hint.len());
    let space = if line.ends_with(char::is_whitespace) { "" } else { " " };
    format!("{space}{}", &hint[..end])
}

/// The arguments that have not been typed yet.
struct Left {
    arguments: Vec<(Argument, State)>,
    /// Words that belong to the argument that was begun last.
    pending: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Repeated,
    Done,
}

impl Left {
    fn of(arguments: Arguments) -> Self {
        Self { arguments: arguments.map(|argument| (argument, State::Open)).collect(), pending: 0 }
    }

    fn take(&mut self, word: &str) {
        if self.pending > 0 {
            self.pending -= 1;
            return;
        }
        // Words that stand for themselves may come in any order, once everything in front of the first of them is there.
        for (argument, state) in &mut self.arguments {
            if *state == State::Open
                && let Some(values) = values_behind(argument, word)
            {
                self.pending = values;
                *state = if argument.repeat == Repeat::Once { State::Done } else { State::Repeated };
                return;
            }
            let is_value = starts_with_value(argument) && !argument.is_optional;
            if *state == State::Open && is_value {
                break;
            }
        }
        let open =
            self.arguments.iter_mut().find(|(argument, state)| *state != State::Done && starts_with_value(argument));
        if let Some((argument, state)) = open {
            self.pending = words_of(argument).saturating_sub(1);
            *state = if argument.repeat == Repeat::Once { State::Done } else { State::Repeated };
        }
    }

    fn text(&self) -> String {
        let shown = self.arguments.iter().filter_map(|(argument, state)| match state {
            State::Open => Some(text_of(argument)),
            State::Repeated => Some(format!("[{} ...]", without_brackets(argument))),
            State::Done => None,
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

/// Whether the first word of an argument is a value of the user's.
fn starts_with_value(argument: &Argument) -> bool {
    match (argument.token, argument.kind) {
        (Some(_), _) | (None, ArgumentKind::Token) => false,
        (None, ArgumentKind::Block(mut parts)) => parts.next().is_some_and(|part| starts_with_value(&part)),
        (None, ArgumentKind::OneOf(mut parts)) => parts.any(|part| starts_with_value(&part)),
        (None, _) => true,
    }
}

/// How many words an argument has at least.
fn words_of(argument: &Argument) -> usize {
    let values = match argument.kind {
        ArgumentKind::Token => 0,
        ArgumentKind::Block(parts) => parts.filter(|part| !part.is_optional).map(|part| words_of(&part)).sum(),
        ArgumentKind::OneOf(parts) => parts.map(|part| words_of(&part)).min().unwrap_or(0),
        _ => 1,
    };
    usize::from(argument.token.is_some()) + values
}

/// How many words follow `word`, if an argument can begin with it.
fn values_behind(argument: &Argument, word: &str) -> Option<usize> {
    if let Some(token) = argument.token {
        return token.eq_ignore_ascii_case(word).then(|| words_of(argument) - 1);
    }
    match argument.kind {
        ArgumentKind::OneOf(mut parts) => parts.find_map(|part| values_behind(&part, word)),
        ArgumentKind::Block(parts) => {
            let mut parts = parts.peekable();
            let first = parts.peek().and_then(|first| values_behind(first, word))?;
            Some(first + parts.skip(1).filter(|part| !part.is_optional).map(|part| words_of(&part)).sum::<usize>())
        }
        _ => None,
    }
}

/// What the last word of a line may become, and where that word begins.
pub fn complete(line: &str) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (front, begun) = line.split_at(start);
    let words: Vec<&str> = front.split_whitespace().collect();
    let words = match words.first() {
        Some(word) if word.parse::<u64>().is_ok() || word.eq_ignore_ascii_case("help") => &words[1..],
        _ => &words[..],
    };
    let mut found: Vec<String> = match words {
        [] => all().filter(|row| !row.is_internal && !row.name.contains(' ')).map(|row| row.name.to_owned()).collect(),
        [_, rest @ ..] => match row_of(words.iter().copied()) {
            Some((row, _)) if row.is_container() && rest.is_empty() => {
                row.subcommands.iter().filter(|row| !row.is_internal).map(|row| row.word().to_owned()).collect()
            }
            Some((row, _)) => {
                let mut tokens = Vec::new();
                tokens_of(row.usage().arguments(), &mut tokens);
                tokens
            }
            None => Vec::new(),
        },
    };
    // Without a letter every option would be offered where a value is due.
    if begun.is_empty()
        && !words.is_empty()
        && row_of(words.iter().copied()).is_some_and(|(row, _)| !row.is_container())
    {
        found.clear();
    }
    found.retain(|word| word.get(..begun.len()).is_some_and(|head| head.eq_ignore_ascii_case(begun)));
    if begun.chars().any(|letter| letter.is_ascii_lowercase()) {
        found.iter_mut().for_each(|word| word.make_ascii_lowercase());
    }
    found.sort();
    found.dedup();
    (start, found)
}

fn tokens_of(arguments: Arguments, tokens: &mut Vec<String>) {
    for argument in arguments {
        tokens.extend(argument.token.filter(|token| !token.is_empty()).map(str::to_owned));
        if let ArgumentKind::OneOf(parts) | ArgumentKind::Block(parts) = argument.kind {
            tokens_of(parts, tokens);
        }
    }
}

/// What `HELP` answers about some words.
pub fn help(words: &[&str]) -> String {
    let mut out = String::new();
    match words {
        [] => {
            out.push_str("To get help about Respool's and Redis' commands type:\n");
            out.push_str("      \"help @<group>\" to get a list of commands in <group>\n");
            out.push_str("      \"help <command>\" for help on <command>\n");
            out.push_str("      \"quit\" to exit\n\nGroups:");
            for group in respool_command::GROUP_ORDER {
                let _ = write!(out, " @{}", group.name());
            }
            out.push('\n');
        }
        [group] if group.starts_with('@') => {
            let rows = all().filter(|row| !row.is_internal && row.group.name().eq_ignore_ascii_case(&group[1..]));
            rows.filter(|row| !row.is_container()).for_each(|row| help_of(row, &mut out));
        }
        _ => match row_of(words.iter().copied()) {
            Some((row, names)) if names == words.len().min(2) => {
                help_of(row, &mut out);
                row.subcommands.iter().filter(|row| !row.is_internal).for_each(|row| help_of(row, &mut out));
            }
            _ => {}
        },
    }
    if out.is_empty() {
        out.push_str("There is no such command or group in the table\n");
    }
    out
}

fn help_of(row: &Row, out: &mut String) {
    let _ = write!(
        out,
        "\n  {} {}\n  summary: {}\n  since: {}\n  group: {}\n",
        row.name,
        syntax(row),
        row.doc,
        row.since,
        row.group.name()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(hint(line).as_deref(), expected, "{line:?}");
    }

    #[test]
    fn hints_show_what_is_left() {
        check("get", Some(" key"));
        check("get ", Some("key"));
        check("get k", None);
        check("5 get ", Some("key"));
        check("nosuch ", None);
        check("mget a ", Some("[key ...]"));
        check("client kill ", hint("CLIENT KILL ").as_deref());
        check("client ", Some("subcommand [arg ...]"));
        check("hset k f v ", Some("[field value ...]"));
        let set = hint("set k v ").unwrap();
        assert!(set.starts_with("[NX|XX|IFEQ comparison-value] [GET] [EX seconds|PX "), "{set}");
        let set = hint("set k v ex 10 ").unwrap();
        assert_eq!(set, "[NX|XX|IFEQ comparison-value] [GET]");
        assert_eq!(hint("set k v nx ex ").unwrap(), "[GET]", "the number belongs to EX");
    }

    #[test]
    fn a_hint_of_any_row_and_any_words_is_made() {
        for row in all() {
            for words in 0..12 {
                let line = format!("{} {}", row.name, "x ".repeat(words));
                let _ = hint(&line);
                let _ = complete(&line);
            }
        }
    }

    #[test]
    fn completions_are_rows_subcommands_and_options() {
        let words = |line: &str| complete(line).1;
        assert_eq!(words("geta"), [] as [&str; 0]);
        assert_eq!(words("getr"), ["getrange"]);
        assert_eq!(words("GETR"), ["GETRANGE"]);
        assert_eq!(words("client setn"), ["setname"]);
        assert_eq!(words("help getr"), ["getrange"]);
        assert_eq!(words("3 getr"), ["getrange"]);
        assert!(words("set k v e").contains(&"exat".to_owned()));
        assert!(words("set ").is_empty());
        assert_eq!(complete("client setn").0, 7);
        assert!(words("").len() > 200);
    }

    #[test]
    fn help_is_made_from_the_rows() {
        assert!(help(&["set"]).contains("SET key value [NX|XX"));
        assert!(help(&["client", "id"]).contains("CLIENT ID"));
        assert!(help(&["@string"]).contains("MSETNX"));
        assert!(help(&[]).contains("@sorted-set"));
        assert!(help(&["nosuch"]).contains("no such command"));
    }
}
