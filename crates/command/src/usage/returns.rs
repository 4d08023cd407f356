//! The notation of replies.

use std::fmt;

use respool_wire::{Args, Protocol, Value};

use super::arguments::{end_of_parts, split};

/// A reply in a row's notation: the usual one, and behind `;` what it is instead if certain arguments are given. They are
/// named by their token if they have one, else by their name; of several cases the last that holds is the one.
///
/// `ok; condition -> ok?; GET -> bulk?` is the reply of `SET`.
///
/// | notation | RESP3 | RESP2, if it differs |
/// |---|---|---|
/// | `ok` | the simple string `OK` | |
/// | `simple` | a simple string | |
/// | `int`, `flag` | an integer; one that is 0 or 1 | |
/// | `double` | a double | a bulk string |
/// | `bulk`, `float`, `digits` | a bulk string; one that holds a number; one that holds an integer | |
/// | `text` | a verbatim string | a bulk string |
/// | `any` | as the arguments or the data have it | |
/// | `push` | messages rather than a reply | an array |
/// | `[T]` | an array | |
/// | `(T U)` | an array of these | |
/// | `{T}` | a set | an array |
/// | `map<T>` | a map of strings to this | an array, names and values in turn |
/// | `flat<T>` | an array, names and values in turn | |
/// | `pairs<T>` | an array of arrays, of a name and a value | an array, names and values in turn |
/// | `entries<T>` | a map of strings to this | an array of arrays, of a name and a value |
/// | `T?` | this, or a null | |
#[derive(Clone, Copy)]
pub struct Returns {
    text: &'static str,
}

/// How large a reply may be, as far as the row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplySize {
    /// It is `OK`, another simple string, a number or a null, whatever the arguments.
    Short,
    /// So it is unless certain arguments are given.
    ShortUnless,
    /// As large as what is stored or asked for.
    Any,
}

/// What a reply or a part of it is.
#[derive(Clone, Copy)]
pub struct ReplyType {
    /// Its form.
    pub form: ReplyForm,
    /// Whether it may be a null instead.
    pub is_nullable: bool,
}

/// The form of a reply, null apart. See [`Returns`] for what each is in the two dialects.
#[derive(Clone, Copy)]
pub enum ReplyForm {
    /// The simple string `OK`.
    Ok,
    /// A simple string.
    Simple,
    /// An integer.
    Integer,
    /// An integer that is 0 or 1.
    Flag,
    /// A double.
    Double,
    /// A bulk string that holds a number.
    Float,
    /// A bulk string that holds an integer.
    Digits,
    /// A bulk string.
    Bulk,
    /// Text for people.
    Text,
    /// Not said.
    Any,
    /// Messages rather than a reply.
    Push,
    /// An array of elements of one type.
    Array(ReplyTypes),
    /// A set.
    Set(ReplyTypes),
    /// A map of strings.
    Map(ReplyTypes),
    /// Names and values in turn.
    Flat(ReplyTypes),
    /// Pairs; in turn in RESP2.
    Pairs(ReplyTypes),
    /// A map; pairs in RESP2.
    Entries(ReplyTypes),
    /// An array of elements, each of its type.
    Tuple(ReplyTypes),
}

/// The types of the parts of a reply; but for those of a tuple there is one.
#[derive(Clone, Copy)]
pub struct ReplyTypes {
    rest: &'static str,
}

impl Returns {
    pub(crate) const fn of(text: &'static str) -> Self {
        Self { text }
    }

    /// How large the reply may be. Computed when the table is compiled.
    pub(crate) const fn size(self) -> ReplySize {
        let text = self.text.as_bytes();
        let mut end = 0;
        while end < text.len() && text[end] != b';' {
            end += 1;
        }
        if !is_short(text, 0, end) {
            return ReplySize::Any;
        }
        while end < text.len() {
            // A case begins behind the arrow.
            let mut start = end;
            while text[start] != b'>' {
                start += 1;
            }
            end = start;
            while end < text.len() && text[end] != b';' {
                end += 1;
            }
            if !is_short(text, start + 2, end) {
                return ReplySize::ShortUnless;
            }
        }
        ReplySize::Short
    }

    /// Whether one of the arguments behind the first `fixed` may be the word of a case in which the reply is not short. Another
    /// argument that happens to be that word counts as well.
    pub(crate) fn may_be_long(self, args: Args<'_>, fixed: usize) -> bool {
        self.cases_as_text().filter(|(_, reply)| !is_short(reply.as_bytes(), 0, reply.len())).any(|(names, _)| {
            // The name of an argument without a word of its own is in small letters: whether it is given is not known.
            names.split(',').any(|name| {
                let is_word = !name.bytes().any(|byte| byte.is_ascii_lowercase());
                !is_word || args.iter().skip(fixed).any(|arg| arg.eq_ignore_ascii_case(name.as_bytes()))
            })
        })
    }

    /// The reply if none of the arguments is given that [`Returns::cases`] names.
    pub fn usual(self) -> ReplyType {
        ReplyType::of(split(self.text, b';').0)
    }

    /// What it is instead: the arguments of which one has to be given, and the reply.
    pub fn cases(self) -> impl Iterator<Item = (impl Iterator<Item = &'static str>, ReplyType)> {
        self.cases_as_text().map(|(names, reply)| (names.split(','), ReplyType::of(reply)))
    }

    fn cases_as_text(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let cases = self.text.split_once("; ").map_or("", |(_, cases)| cases);
        cases.split("; ").filter_map(|case| case.split_once(" -> "))
    }

    /// The reply if these arguments are given, each by its token or name.
    pub fn with(self, given: &[&str]) -> ReplyType {
        let holds =
            self.cases().filter_map(|(mut names, reply)| names.any(|name| given.contains(&name)).then_some(reply));
        holds.last().unwrap_or_else(|| self.usual())
    }
}

impl ReplyTypes {
    /// The one type of the elements. That of a tuple's first element, if it is of a tuple.
    pub fn only(self) -> ReplyType {
        ReplyType::of(split(self.rest, b' ').0)
    }
}

impl Iterator for ReplyTypes {
    type Item = ReplyType;

    fn next(&mut self) -> Option<ReplyType> {
        if self.rest.is_empty() {
            return None;
        }
        let (item, rest) = split(self.rest, b' ');
        self.rest = rest;
        Some(ReplyType::of(item))
    }
}

/// The forms of replies that hold a word or a number.
const SHORT: [&[u8]; 7] = [b"ok", b"simple", b"int", b"flag", b"double", b"float", b"digits"];

/// Whether the reply that stands in `text` from `start` to `end` is of such a form.
const fn is_short(text: &[u8], start: usize, end: usize) -> bool {
    let end = if end > start && text[end - 1] == b'?' { end - 1 } else { end };
    let mut form = 0;
    while form < SHORT.len() {
        let name = SHORT[form];
        let mut at = 0;
        while at < name.len() && start + at < end && name[at] == text[start + at] {
            at += 1;
        }
        if at == name.len() && start + at == end {
            return true;
        }
        form += 1;
    }
    false
}

impl ReplyType {
    fn of(text: &'static str) -> Self {
        let (text, is_nullable) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
        let start = text.find(['<', '[', '(', '{']).map_or(text.len(), |at| at + 1);
        let (head, behind) = text.split_at(start);
        let parts = ReplyTypes { rest: &behind[..end_of_parts(behind)] };
        let form = match head {
            "ok" => ReplyForm::Ok,
            "simple" => ReplyForm::Simple,
            "int" => ReplyForm::Integer,
            "flag" => ReplyForm::Flag,
            "double" => ReplyForm::Double,
            "float" => ReplyForm::Float,
            "digits" => ReplyForm::Digits,
            "bulk" => ReplyForm::Bulk,
            "text" => ReplyForm::Text,
            "push" => ReplyForm::Push,
            "[" => ReplyForm::Array(parts),
            "{" => ReplyForm::Set(parts),
            "(" => ReplyForm::Tuple(parts),
            "map<" => ReplyForm::Map(parts),
            "flat<" => ReplyForm::Flat(parts),
            "pairs<" => ReplyForm::Pairs(parts),
            "entries<" => ReplyForm::Entries(parts),
            _ => ReplyForm::Any,
        };
        Self { form, is_nullable }
    }

    /// Whether a reply is of this type. An error never is.
    pub fn fits(self, reply: &Value, protocol: Protocol) -> bool {
        let is_old = protocol == Protocol::Resp2;
        let is_null = match reply {
            Value::Null => !is_old,
            Value::NullBulk | Value::NullArray => is_old,
            _ => false,
        };
        if is_null {
            return self.is_nullable || matches!(self.form, ReplyForm::Any);
        }
        match (self.form, reply) {
            (ReplyForm::Any, _) => !matches!(reply, Value::Error(_) | Value::BlobError(_)),
            (ReplyForm::Ok, Value::Simple(text)) => text == b"OK",
            (ReplyForm::Simple, Value::Simple(_))
            | (ReplyForm::Integer, Value::Integer(_))
            | (ReplyForm::Flag, Value::Integer(0 | 1))
            | (ReplyForm::Bulk, Value::Bulk(_)) => true,
            (ReplyForm::Double, Value::Double(_)) | (ReplyForm::Text, Value::Verbatim { .. }) => !is_old,
            (ReplyForm::Text, Value::Bulk(_)) => is_old,
            (ReplyForm::Double, Value::Bulk(digits)) => is_old && is_number::<f64>(digits),
            (ReplyForm::Float, Value::Bulk(digits)) => is_number::<f64>(digits),
            (ReplyForm::Digits, Value::Bulk(digits)) => is_number::<i128>(digits),
            (ReplyForm::Push, Value::Push(_)) => !is_old,
            (ReplyForm::Push, Value::Array(_)) => is_old,
            (ReplyForm::Array(of), Value::Array(elements)) => of.all_fit(elements, protocol),
            (ReplyForm::Set(of), Value::Set(elements)) => !is_old && of.all_fit(elements, protocol),
            (ReplyForm::Set(of), Value::Array(elements)) => is_old && of.all_fit(elements, protocol),
            (ReplyForm::Tuple(of), Value::Array(elements)) => {
                of.count() == elements.len() && of.zip(elements).all(|(of, element)| of.fits(element, protocol))
            }
            (ReplyForm::Map(of) | ReplyForm::Entries(of), Value::Map(pairs)) => {
                !is_old && pairs.iter().all(|(name, value)| is_name(name) && of.only().fits(value, protocol))
            }
            (ReplyForm::Map(of) | ReplyForm::Pairs(of), Value::Array(flat)) if is_old => of.fit_in_turn(flat, protocol),
            (ReplyForm::Flat(of), Value::Array(flat)) => of.fit_in_turn(flat, protocol),
            (ReplyForm::Pairs(of) | ReplyForm::Entries(of), Value::Array(pairs)) => {
                is_old == matches!(self.form, ReplyForm::Entries(_)) && of.fit_as_pairs(pairs, protocol)
            }
            _ => false,
        }
    }
}

impl ReplyTypes {
    fn all_fit(self, elements: &[Value], protocol: Protocol) -> bool {
        elements.iter().all(|element| self.only().fits(element, protocol))
    }

    fn fit_in_turn(self, elements: &[Value], protocol: Protocol) -> bool {
        let (pairs, rest) = elements.as_chunks::<2>();
        rest.is_empty() && pairs.iter().all(|[name, value]| is_name(name) && self.only().fits(value, protocol))
    }

    fn fit_as_pairs(self, pairs: &[Value], protocol: Protocol) -> bool {
        pairs.iter().all(|pair| {
            let Value::Array(pair) = pair else { return false };
            matches!(&pair[..], [name, value] if is_name(name) && self.only().fits(value, protocol))
        })
    }
}

fn is_name(value: &Value) -> bool {
    matches!(value, Value::Bulk(_) | Value::Simple(_))
}

fn is_number<N: std::str::FromStr>(digits: &[u8]) -> bool {
    std::str::from_utf8(digits).is_ok_and(|digits| digits.parse::<N>().is_ok())
}

/// In the notation that it was read from.
impl fmt::Display for ReplyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            ReplyForm::Ok => f.write_str("ok"),
            ReplyForm::Simple => f.write_str("simple"),
            ReplyForm::Integer => f.write_str("int"),
            ReplyForm::Flag => f.write_str("flag"),
            ReplyForm::Double => f.write_str("double"),
            ReplyForm::Float => f.write_str("float"),
            ReplyForm::Digits => f.write_str("digits"),
            ReplyForm::Bulk => f.write_str("bulk"),
            ReplyForm::Text => f.write_str("text"),
            ReplyForm::Any => f.write_str("any"),
            ReplyForm::Push => f.write_str("push"),
            ReplyForm::Array(parts) => write!(f, "[{parts}]"),
            ReplyForm::Set(parts) => write!(f, "{{{parts}}}"),
            ReplyForm::Tuple(parts) => write!(f, "({parts})"),
            ReplyForm::Map(parts) => write!(f, "map<{parts}>"),
            ReplyForm::Flat(parts) => write!(f, "flat<{parts}>"),
            ReplyForm::Pairs(parts) => write!(f, "pairs<{parts}>"),
            ReplyForm::Entries(parts) => write!(f, "entries<{parts}>"),
        }?;
        f.write_str(if self.is_nullable { "?" } else { "" })
    }
}

impl fmt::Display for ReplyTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            part.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Returns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.usual().fmt(f)?;
        for (names, reply) in self.cases() {
            let names: Vec<_> = names.collect();
            write!(f, "; {} -> {reply}", names.join(","))?;
        }
        Ok(())
    }
}

impl fmt::Debug for ReplyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Returns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Argument, ArgumentKind, Arguments, all};

    #[test]
    fn every_command_says_what_it_replies() {
        for row in all().filter(|row| !row.is_container() || row.name == "COMMAND") {
            let returns = row.usage().returns().unwrap_or_else(|| panic!("{row:?} has no #[reply = ..]"));
            assert_eq!(returns.to_string(), row.usage().reply, "{row:?}");
        }
    }

    #[test]
    fn cases_name_arguments_of_their_command() {
        fn has(arguments: Arguments, name: &str) -> bool {
            let is_it = |argument: &Argument| argument.token.unwrap_or(argument.name) == name;
            arguments.into_iter().any(|argument| {
                let within = match argument.kind {
                    ArgumentKind::OneOf(parts) | ArgumentKind::Block(parts) => has(parts, name),
                    _ => false,
                };
                within || is_it(&argument)
            })
        }
        for row in all() {
            for (names, _) in row.usage().returns().iter().flat_map(|returns| returns.cases()) {
                for name in names {
                    assert!(has(row.usage().arguments(), name), "{row:?} has no {name}");
                }
            }
        }
    }

    #[test]
    fn the_last_case_that_holds_is_the_reply() {
        let set = Returns::of("ok; condition -> ok?; GET,X -> bulk?");
        let with = |given: &[&str]| set.with(given).to_string();
        assert_eq!((with(&[]), with(&["EX"])), ("ok".to_owned(), "ok".to_owned()));
        assert_eq!((with(&["condition"]), with(&["X"])), ("ok?".to_owned(), "bulk?".to_owned()));
        assert_eq!(with(&["GET", "condition"]), "bulk?");
    }

    #[test]
    fn a_reply_is_short_if_it_is_in_every_case() {
        for (text, size) in [
            ("ok", ReplySize::Short),
            ("int?", ReplySize::Short),
            ("int; INCR -> double?", ReplySize::Short),
            ("int; ip:port -> ok", ReplySize::Short),
            ("ok; condition -> ok?; GET -> bulk?", ReplySize::ShortUnless),
            ("int?; COUNT -> [int]", ReplySize::ShortUnless),
            ("bulk; LEN -> int", ReplySize::Any),
            ("[int]", ReplySize::Any),
            ("(int int)", ReplySize::Any),
            ("okay", ReplySize::Any),
            ("in", ReplySize::Any),
            ("any", ReplySize::Any),
            ("", ReplySize::Any),
        ] {
            assert_eq!(Returns::of(text).size(), size, "{text}");
        }
        // What is computed when the table is compiled and the forms say the same of every row.
        use ReplyForm::{Digits, Double, Flag, Float, Integer, Ok, Simple};
        let has_short_form =
            |reply: ReplyType| matches!(reply.form, Ok | Simple | Integer | Flag | Double | Float | Digits);
        for row in crate::all().filter(|row| !row.is_container()) {
            let Some(returns) = row.usage().returns() else { continue };
            let usual = has_short_form(returns.usual());
            let cases = returns.cases().all(|(_, reply)| has_short_form(reply));
            let expected = match (usual, cases) {
                (true, true) => ReplySize::Short,
                (true, false) => ReplySize::ShortUnless,
                (false, _) => ReplySize::Any,
            };
            assert_eq!(returns.size(), expected, "{row:?}");
        }
    }

    #[track_caller]
    fn check(text: &'static str, resp2: &str, resp3: &str) {
        let reply = ReplyType::of(text);
        let fits = |reply: ReplyType, bytes: &str, protocol| {
            reply.fits(&Value::parse(bytes.as_bytes()).expect("a whole reply"), protocol)
        };
        assert!(fits(reply, resp2, Protocol::Resp2) && fits(reply, resp3, Protocol::Resp3));
        if resp2 != resp3 && !resp2.starts_with("*0") {
            assert!(!fits(reply, resp3, Protocol::Resp2), "RESP3 in RESP2");
            assert!(!fits(reply, resp2, Protocol::Resp3), "RESP2 in RESP3");
        }
        assert!(!fits(reply, "-ERR\r\n", Protocol::Resp2));
        if !reply.is_nullable {
            assert!(!fits(reply, "$-1\r\n", Protocol::Resp2) && !fits(reply, "_\r\n", Protocol::Resp3));
        }
    }

    #[test]
    fn each_type_is_told_from_others_in_both_dialects() {
        check("ok", "+OK\r\n", "+OK\r\n");
        check("flag", ":1\r\n", ":1\r\n");
        check("double", "$3\r\n1.5\r\n", ",1.5\r\n");
        check("double?", "$-1\r\n", "_\r\n");
        check("text", "$1\r\na\r\n", "=5\r\ntxt:a\r\n");
        check("{digits}", "*1\r\n$1\r\n1\r\n", "~1\r\n$1\r\n1\r\n");
        check("map<int>", "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n");
        check("pairs<double>", "*2\r\n$1\r\na\r\n$1\r\n1\r\n", "*1\r\n*2\r\n$1\r\na\r\n,1\r\n");
        check("entries<[int]>", "*1\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "%1\r\n$1\r\na\r\n*1\r\n:1\r\n");
        check("(bulk [double])?", "*2\r\n$1\r\na\r\n*1\r\n$1\r\n1\r\n", "*2\r\n$1\r\na\r\n*1\r\n,1\r\n");
        check("flat<bulk>", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
        for (text, other) in [
            ("ok", "+OKAY\r\n"),
            ("flag", ":2\r\n"),
            ("digits", "$1\r\na\r\n"),
            ("float", "$1\r\na\r\n"),
            ("[int]", "*1\r\n$1\r\na\r\n"),
            ("(int int)", "*1\r\n:1\r\n"),
            ("flat<int>", "*1\r\n$1\r\na\r\n"),
            ("simple", "$1\r\na\r\n"),
        ] {
            let other = Value::parse(other.as_bytes()).expect("a whole reply");
            assert!(!ReplyType::of(text).fits(&other, Protocol::Resp3), "{text}");
        }
    }
}
