//! The notation of arguments.

use std::fmt;

/// Arguments in a row's notation, one after the other.
///
/// | notation | argument |
/// |---|---|
/// | `member` | a string |
/// | `count:int`, `:double`, `:pattern`, `:time` | of another type; `time` is a Unix time |
/// | `key@0` | a key, which the row's first key specification finds; with a type, `by:pattern@1`, of that type |
/// | `NX`, `change=CH`, `auto_id='*'` | a word that stands for itself; it has a name of its own if one is given |
/// | `EX/seconds:int` | an argument behind a word |
/// | `condition<NX\|XX>` | one of these |
/// | `pair(key value)` | a block of several |
/// | `[..]` | may be left out |
/// | `..+`, `..++` | may be repeated; with two signs its word is repeated too |
/// | `..^6.2.0`, `..~2.8.12` | since this version; deprecated since this version |
#[derive(Clone, Copy)]
pub struct Arguments {
    rest: &'static str,
    separator: u8,
}

/// One argument of a command.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// What it is called. Several may have the same name.
    pub name: &'static str,
    /// What stands there.
    pub kind: ArgumentKind,
    /// The word in front of it, or that it is.
    pub token: Option<&'static str>,
    /// The row's key specification that finds it.
    pub key_spec: Option<u8>,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Whether it may be repeated.
    pub repeat: Repeat,
    /// The version that first had it, if that is a later one than the command's.
    pub since: Option<&'static str>,
    /// The version since when it should not be used.
    pub deprecated_since: Option<&'static str>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A floating point number.
    Double,
    /// A key.
    Key,
    /// A pattern.
    Pattern,
    /// A Unix time.
    UnixTime,
    /// The token itself.
    Token,
    /// One of these.
    OneOf(Arguments),
    /// All of these, one behind the other.
    Block(Arguments),
}

/// Whether an argument may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It stands there once.
    Once,
    /// It may be repeated behind its token.
    Many,
    /// It may be repeated, each time with its token.
    ManyWithToken,
}

impl Arguments {
    pub(crate) const fn of(text: &'static str) -> Self {
        Self { rest: text, separator: b' ' }
    }
}

impl Iterator for Arguments {
    type Item = Argument;

    fn next(&mut self) -> Option<Argument> {
        if self.rest.is_empty() {
            return None;
        }
        let (item, rest) = split(self.rest, self.separator);
        self.rest = rest;
        Some(Argument::of(item))
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, argument) in self.enumerate() {
            if at > 0 {
                write!(f, "{}", char::from(self.separator))?;
            }
            argument.fmt(f)?;
        }
        Ok(())
    }
}

impl Argument {
    fn of(item: &'static str) -> Self {
        let inner = item.strip_prefix('[').and_then(|item| item.strip_suffix(']'));
        let text = inner.unwrap_or(item);
        let (token, text) = match text.split_once('/') {
            Some((token, behind)) if is_token(token) => (Some(token), behind),
            _ => (None, text),
        };
        let mut argument = Self {
            name: text,
            kind: ArgumentKind::String,
            token,
            key_spec: None,
            is_optional: inner.is_some(),
            repeat: Repeat::Once,
            since: None,
            deprecated_since: None,
        };
        let suffixes = match text.find(['<', '(', '=']) {
            Some(at) => argument.take_parts(text, at),
            None => argument.take_simple(text),
        };
        argument.take_suffixes(suffixes);
        argument
    }

    /// A name with parts, or with a token that differs from it; tells what stands behind.
    fn take_parts(&mut self, text: &'static str, at: usize) -> &'static str {
        self.name = &text[..at];
        let behind = &text[at + 1..];
        let opened = text.as_bytes()[at];
        if opened == b'=' {
            let (token, suffixes) = match behind.strip_prefix('\'').and_then(|quoted| quoted.split_once('\'')) {
                Some(quoted) => quoted,
                None => behind.split_at(behind.find(SUFFIXES).unwrap_or(behind.len())),
            };
            (self.kind, self.token) = (ArgumentKind::Token, Some(token));
            return suffixes;
        }
        let end = end_of_parts(behind);
        let parts = |separator| Arguments { rest: &behind[..end], separator };
        self.kind = if opened == b'<' { ArgumentKind::OneOf(parts(b'|')) } else { ArgumentKind::Block(parts(b' ')) };
        behind.get(end + 1..).unwrap_or_default()
    }

    fn take_simple(&mut self, text: &'static str) -> &'static str {
        let (text, suffixes) = text.split_at(text.find(SUFFIXES).unwrap_or(text.len()));
        if self.token.is_none() && is_token(text) {
            (self.name, self.kind, self.token) = (text, ArgumentKind::Token, Some(text));
            return suffixes;
        }
        let (text, spec) = text.split_once('@').map_or((text, None), |(text, spec)| (text, Some(spec)));
        self.key_spec = spec.and_then(|spec| spec.parse().ok());
        if self.key_spec.is_some() {
            self.kind = ArgumentKind::Key;
        }
        self.name = text;
        if let Some((name, kind)) = text.rsplit_once(':')
            && let Some((_, kind)) = TYPES.iter().find(|(word, _)| *word == kind)
        {
            (self.name, self.kind) = (name, *kind);
        }
        suffixes
    }

    fn take_suffixes(&mut self, mut text: &'static str) {
        if let Some(behind) = text.strip_prefix("++") {
            (self.repeat, text) = (Repeat::ManyWithToken, behind);
        } else if let Some(behind) = text.strip_prefix('+') {
            (self.repeat, text) = (Repeat::Many, behind);
        }
        let (text, deprecated) = text.split_once('~').map_or((text, None), |(text, behind)| (text, Some(behind)));
        self.deprecated_since = deprecated;
        self.since = text.strip_prefix('^');
    }

    /// Its name as clients are told: that of a token alone is the token in small letters, unless it has one of its own.
    pub fn told_name(&self) -> String {
        let is_own = matches!(self.kind, ArgumentKind::Token) && self.token == Some(self.name);
        if is_own { self.name.to_ascii_lowercase() } else { self.name.to_owned() }
    }
}

/// In the notation that it was read from.
impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_optional {
            f.write_str("[")?;
        }
        match (self.kind, self.token) {
            (ArgumentKind::Token, Some(token)) if token == self.name => f.write_str(token)?,
            (ArgumentKind::Token, Some(token)) if is_token(token) => write!(f, "{}={token}", self.name)?,
            (ArgumentKind::Token, Some(token)) => write!(f, "{}='{token}'", self.name)?,
            (_, Some(token)) => write!(f, "{token}/{}", self.name)?,
            (_, None) => f.write_str(self.name)?,
        }
        match self.kind {
            ArgumentKind::OneOf(parts) => write!(f, "<{parts}>")?,
            ArgumentKind::Block(parts) => write!(f, "({parts})")?,
            _ => {}
        }
        let same = |kind: &ArgumentKind| std::mem::discriminant(kind) == std::mem::discriminant(&self.kind);
        if let Some((word, _)) = TYPES.iter().find(|(_, kind)| same(kind)) {
            write!(f, ":{word}")?;
        }
        if let Some(spec) = self.key_spec {
            write!(f, "@{spec}")?;
        }
        f.write_str(match self.repeat {
            Repeat::Once => "",
            Repeat::Many => "+",
            Repeat::ManyWithToken => "++",
        })?;
        for (sign, version) in [('^', self.since), ('~', self.deprecated_since)] {
            if let Some(version) = version {
                write!(f, "{sign}{version}")?;
            }
        }
        if self.is_optional { f.write_str("]") } else { Ok(()) }
    }
}

const SUFFIXES: [char; 3] = ['+', '^', '~'];

const TYPES: [(&str, ArgumentKind); 4] = [
    ("int", ArgumentKind::Integer),
    ("double", ArgumentKind::Double),
    ("pattern", ArgumentKind::Pattern),
    ("time", ArgumentKind::UnixTime),
];

fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    text.bytes().all(is_part) && text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// The text up to the first separator that is not within something, and what follows.
pub(super) fn split(text: &'static str, separator: u8) -> (&'static str, &'static str) {
    let mut depth = 0_usize;
    let mut is_quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && byte == separator => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

/// Where the sign stands that closes what was opened in front of `text`.
pub(super) fn end_of_parts(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut is_quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' if depth == 0 => return at,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all;

    #[test]
    fn what_was_read_is_written_the_same_way() {
        // A slip in the notation of a row is read as something else, which is then not written like this.
        for row in all() {
            assert_eq!(row.usage().arguments().to_string(), row.usage().args, "{row:?}");
        }
    }

    #[test]
    fn names_of_arguments_are_words() {
        fn check(row: &crate::Row, arguments: Arguments) {
            for argument in arguments {
                let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                let is_odd = ["ip:port", "yes/no"].contains(&argument.name);
                let is_name = !argument.name.is_empty() && argument.name.bytes().all(is_part);
                assert!(is_name || is_odd, "{row:?}: {argument:?}");
                if let Some(spec) = argument.key_spec {
                    assert!(usize::from(spec) < row.keys.specs().len(), "{row:?} has no such keys: {argument:?}");
                }
                if let ArgumentKind::OneOf(parts) | ArgumentKind::Block(parts) = argument.kind {
                    assert!(parts.count() > 0, "{row:?}: {argument:?}");
                    check(row, parts);
                }
            }
        }
        all().for_each(|row| check(row, row.usage().arguments()));
    }

    /// The fewest words that an argument stands for.
    fn fewest(argument: &Argument) -> usize {
        let words = usize::from(argument.token.is_some());
        let parts = match argument.kind {
            ArgumentKind::Token => 0,
            ArgumentKind::OneOf(parts) => parts.map(|part| fewest(&part)).min().unwrap_or(0),
            ArgumentKind::Block(parts) => fewest_of(parts),
            _ => 1,
        };
        words + parts
    }

    fn fewest_of(arguments: Arguments) -> usize {
        arguments.filter(|argument| !argument.is_optional).map(|argument| fewest(&argument)).sum()
    }

    /// Those of which Redis itself describes other arguments than it takes.
    const ODD: &[&str] = &["GEOHASH", "GEOPOS", "PFMERGE", "COMMAND GETKEYS", "COMMAND GETKEYSANDFLAGS", "DEBUG"];

    #[test]
    fn arguments_are_as_many_as_the_arity_says() {
        let mut odd = Vec::new();
        for row in all().filter(|row| !row.is_container()) {
            let arguments = row.usage().arguments();
            let fewest = row.name.split(' ').count() + fewest_of(arguments);
            let varies = arguments.into_iter().any(|argument| argument.is_optional || argument.repeat != Repeat::Once);
            if fewest != usize::from(row.arity.unsigned_abs()) || row.arity > 0 && varies {
                odd.push(row.name);
            }
        }
        assert_eq!(odd, ODD);
    }

    #[test]
    fn each_sign_is_read() {
        let mut arguments = Arguments::of("key@0 [sets(EX/time:time^6.2.0 x)++] way<NX|auto='*'|b:pattern@1>+~2.0.0");
        assert!(matches!(arguments.next(), Some(Argument { kind: ArgumentKind::Key, key_spec: Some(0), .. })));
        let sets = arguments.next().expect("a block");
        assert!(sets.is_optional && sets.repeat == Repeat::ManyWithToken);
        let way = arguments.next().expect("one of several");
        assert_eq!((way.repeat, way.deprecated_since), (Repeat::Many, Some("2.0.0")));
        let ArgumentKind::OneOf(ways) = way.kind else { panic!("{way:?}") };
        let told: Vec<_> = ways.map(|way| (way.told_name(), way.token, way.key_spec)).collect();
        assert_eq!(
            told,
            [
                ("nx".to_owned(), Some("NX"), None),
                ("auto".to_owned(), Some("*"), None),
                ("b".to_owned(), None, Some(1))
            ]
        );
        assert!(arguments.next().is_none());
    }
}
