//! What a setting is made of: its row, the kind of value it takes, and how a text becomes such a value.
//!
//! A row has one name. Its TOML key is the name (`connect_timeout`), its flag the name with dashes
//! (`--connect-timeout`), its environment variable the name in capitals behind `RESPOOL_` and its CONFIG name the flag,
//! unless Redis has another word for the same thing. Nothing here reads a file, the command line or the environment.

use std::fmt;
use std::time::Duration;

use respool_command::EventClasses;
use zeroize::Zeroizing;

use super::address::{Address, ListenSpec, NodeSpec};
use super::choices::Choice;
use super::suggestion::nearest;
use super::unit;

/// One setting, all of it.
#[derive(Debug)]
pub struct Row {
    /// The TOML key; flag and environment variable are derived from it.
    pub name: &'static str,
    /// A second flag for the same setting, with dashes.
    pub alias: Option<&'static str>,
    /// Redis' CONFIG parameter of the same meaning, where there is one.
    pub redis: Option<&'static str>,
    /// Under which heading it is documented.
    pub group: Group,
    /// Whether each pool may have its own.
    pub scope: Scope,
    /// Whether a reload can change it.
    pub reload: Reload,
    /// Which values it takes.
    pub kind: Kind,
    /// The word that stands for "no value" (`off`, `auto`), if there is one.
    pub absent: Option<&'static str>,
    /// The default, written as a user would; empty means unset.
    pub default: &'static str,
    /// One line: what it does.
    pub doc: &'static str,
    /// More about it: when to change it, what happens at the bound. May be empty.
    pub more: &'static str,
}

/// Headings of the documentation, in reading order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Where clients connect.
    Listening,
    /// What stands behind.
    Nodes,
    /// Encrypted connections, on both sides.
    Tls,
    /// How long things may take.
    Timeouts,
    /// How much memory may be used.
    Budgets,
    /// What a single request may look like.
    Requests,
    /// What clients may hold beyond the shared connections.
    Pooling,
    /// What is looked at and remembered.
    Seeing,
    /// Users and their rights.
    Users,
    /// The embedded server.
    Embedded,
    /// Threads, logs, metrics.
    Process,
}

impl Group {
    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Listening => "Listening",
            Self::Nodes => "Nodes",
            Self::Tls => "TLS",
            Self::Timeouts => "Timeouts",
            Self::Budgets => "Budgets",
            Self::Requests => "Limits of a request",
            Self::Pooling => "Pooling",
            Self::Users => "Users",
            Self::Seeing => "Slow log and samples",
            Self::Embedded => "Embedded server",
            Self::Process => "Process, logs, metrics",
        }
    }
}

/// The levels at which a setting may have a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One value for the whole process.
    Process,
    /// One value per pool; a value outside every `[[pool]]` holds for all of them.
    Pool,
}

/// What a reload (SIGHUP) can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// Takes effect at once.
    Live,
    /// Needs a restart; a reload that finds it changed says so.
    Restart,
}

/// Kinds of values. Bounds are inclusive.
#[derive(Debug)]
#[expect(missing_docs, reason = "min and max are what they say")]
pub enum Kind {
    /// A whole number.
    Count { min: u64, max: u64 },
    /// A number of bytes, with or without a unit.
    Bytes { min: u64, max: u64 },
    /// A duration; the unit must be said.
    Duration { min: Duration, max: Duration },
    /// File permissions in octal.
    Mode,
    /// One word of a closed set.
    Word(fn() -> &'static [Choice]),
    /// Any text of one line.
    Text,
    /// Any text of one line that is never shown again.
    Secret,
    /// A file's path.
    Path,
    /// `host:port`, `:port` or `[v6]:port`.
    Tcp,
    /// One or more addresses to listen on.
    Listeners,
    /// Any number of nodes.
    Nodes,
    /// Letters of classes of keyspace events.
    Events,
}

/// A text that is only ever passed on, never printed: neither `Debug` nor `Display` shows it. Overwritten when it is given up.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// A value that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Unset, or the row's word for "no value".
    Absent,
    /// A number or a mode.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// File permissions.
    Mode(u32),
    /// A duration.
    Duration(Duration),
    /// The position in the row's closed set, and the word.
    Word(usize, &'static str),
    /// A text or path.
    Text(String),
    /// A secret.
    Secret(Secret),
    /// One address.
    Tcp(Address),
    /// Addresses to listen on.
    Listeners(Vec<ListenSpec>),
    /// Nodes.
    Nodes(Vec<NodeSpec>),
    /// Classes of keyspace events.
    Events(EventClasses),
}

/// Longest list: as many nodes as a topology may have.
const LIST_MAX: usize = respool_route::limits::NODES_MAX;

/// Why a text is no value of its row.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which of several texts is to blame.
    pub text: usize,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Row {
    /// The flag, without its two dashes.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable.
    #[must_use]
    pub fn env(&self) -> String {
        format!("RESPOOL_{}", self.name.to_ascii_uppercase())
    }

    /// The parameter's name for CONFIG GET and CONFIG SET.
    #[must_use]
    pub fn config(&self) -> String {
        self.redis.map_or_else(|| self.flag(), str::to_owned)
    }

    /// Whether it takes several values.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Listeners | Kind::Nodes)
    }

    /// Whether its value must never be shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }

    /// Which values are allowed, as half a sentence that follows "allowed".
    #[must_use]
    pub fn bounds(&self) -> String {
        let range = match &self.kind {
            Kind::Count { min, max } => format!("{min} to {max}"),
            Kind::Bytes { min, max } => format!("{} to {}", unit::bytes(*min), unit::bytes(*max)),
            Kind::Duration { min, max } => format!("{} to {}", unit::duration(*min), unit::duration(*max)),
            Kind::Mode => "0 to 0777, octal".to_owned(),
            Kind::Word(choices) => choices().iter().map(|c| &*c.name).collect::<Vec<_>>().join(", "),
            Kind::Text => "a text of one line".to_owned(),
            Kind::Secret => "a text of one line, never shown".to_owned(),
            Kind::Path => "a path".to_owned(),
            Kind::Tcp => "host:port, :port, [v6]:port".to_owned(),
            Kind::Events => "any of the letters g$lshzxetdmnKEA".to_owned(),
            Kind::Listeners => {
                "host:port, :port, [v6]:port, unix:/path, /path; tls: in front of a TCP address for TLS".to_owned()
            }
            Kind::Nodes => {
                "host:port, [v6]:port, unix:/path, /path or embedded:, each with name=NAME, weight=N, replica_of=NAME, username=NAME and password_file=FILE \
                 behind it; tls: in front of a TCP address for TLS"
                    .to_owned()
            }
        };
        match self.absent {
            Some(word) => format!("{range}, or {word}"),
            None => range,
        }
    }

    /// Understands what was said.
    ///
    /// # Errors
    /// Names the text that is no value of this row, and what would be.
    pub fn parse(&self, texts: &[&str]) -> Result<Value, Refusal> {
        match self.kind {
            Kind::Listeners => self.list(texts, ListenSpec::parse).map(Value::Listeners),
            Kind::Nodes => self.list(texts, NodeSpec::parse).map(Value::Nodes),
            _ => match texts {
                [text] => self.parse_one(text).map_err(|reason| Refusal { text: 0, reason }),
                _ => Err(Refusal { text: 1, reason: format!("it takes one value: {}", self.bounds()) }),
            },
        }
    }

    /// Reads a list; the bound keeps one mistake in a file from costing minutes.
    fn list<T>(&self, texts: &[&str], parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Refusal> {
        if texts.len() > LIST_MAX {
            return Err(Refusal { text: LIST_MAX, reason: format!("there are at most {LIST_MAX}") });
        }
        texts.iter().enumerate().map(|(text, said)| parse(said).map_err(|reason| Refusal { text, reason })).collect()
    }

    fn parse_one(&self, text: &str) -> Result<Value, String> {
        if self.absent == Some(text) {
            return Ok(Value::Absent);
        }
        match &self.kind {
            Kind::Count { min, max } => {
                let count =
                    text.parse().map_err(|_| format!("a whole number is needed; allowed are {}", self.bounds()))?;
                self.bounded(count, *min, *max).map(Value::Count)
            }
            Kind::Bytes { min, max } => {
                let bytes = unit::parse_bytes(text).map_err(|why| format!("{why}; allowed are {}", self.bounds()))?;
                self.bounded(bytes, *min, *max).map(Value::Bytes)
            }
            Kind::Duration { min, max } => {
                let time = unit::parse_duration(text).map_err(|why| format!("{why}; allowed are {}", self.bounds()))?;
                self.bounded(time, *min, *max).map(Value::Duration)
            }
            Kind::Mode => parse_mode(text).map(Value::Mode).ok_or_else(|| format!("allowed are {}", self.bounds())),
            Kind::Word(choices) => self.parse_word(text, choices()),
            Kind::Text => one_line(text).map(|text| text.map_or(Value::Absent, Value::Text)),
            Kind::Path => one_line(text).map(|text| text.map_or(Value::Absent, Value::Text)),
            Kind::Secret => one_line(text).map(|text| text.map_or(Value::Absent, |t| Value::Secret(Secret::new(t)))),
            Kind::Tcp => Address::parse_tcp(text).map(Value::Tcp),
            Kind::Events => {
                let classes = EventClasses::parse(text.as_bytes()).map(Value::Events);
                classes.ok_or_else(|| format!("allowed are {}", self.bounds()))
            }
            Kind::Listeners | Kind::Nodes => unreachable!("parse() takes lists apart before it gets here"),
        }
    }

    fn bounded<T: PartialOrd>(&self, value: T, min: T, max: T) -> Result<T, String> {
        if value < min || value > max {
            return Err(format!("allowed are {}", self.bounds()));
        }
        Ok(value)
    }

    fn parse_word(&self, text: &str, choices: &'static [Choice]) -> Result<Value, String> {
        match choices.iter().position(|choice| choice.name == text) {
            Some(at) => Ok(Value::Word(at, &choices[at].name)),
            None => {
                let names = choices.iter().map(|choice| &*choice.name);
                let near = nearest(text, names).map_or_else(String::new, |name| format!("did you mean {name}? "));
                Err(format!("{near}allowed are {}", self.bounds()))
            }
        }
    }
}

fn one_line(text: &str) -> Result<Option<String>, String> {
    if text.contains(|c: char| c.is_control()) {
        return Err("it must be one line without control characters".to_owned());
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn parse_mode(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let is_octal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let mode = u32::from_str_radix(digits, 8).ok()?;
    (is_octal && mode <= 0o777).then_some(mode)
}

impl Value {
    /// The value as a user would write it in one line; a secret is never shown.
    #[must_use]
    pub fn show(&self, row: &Row) -> String {
        match self {
            Self::Absent => row.absent.unwrap_or("").to_owned(),
            Self::Count(count) => count.to_string(),
            Self::Bytes(bytes) => unit::bytes(*bytes),
            Self::Mode(mode) => format!("{mode:04o}"),
            Self::Duration(time) => unit::duration(*time),
            Self::Word(_, word) => (*word).to_owned(),
            Self::Text(text) => text.clone(),
            Self::Secret(secret) => secret.to_string(),
            Self::Tcp(address) => address.to_string(),
            Self::Listeners(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            Self::Nodes(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            Self::Events(classes) => classes.letters(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_whatever_their_dress() {
        for (text, mode) in [("600", Some(0o600)), ("0660", Some(0o660)), ("0o777", Some(0o777)), ("0", Some(0))] {
            assert_eq!(parse_mode(text), mode, "{text}");
        }
        for text in ["", "0o", "888", "1777", "-1", "+7", "rw"] {
            assert_eq!(parse_mode(text), None, "{text}");
        }
    }

    #[test]
    fn a_secret_never_shows() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Value::Secret(secret.clone())),
            "(hidden) (hidden) Secret((hidden))"
        );
        assert_eq!(secret.reveal(), "hunter2");
    }
}
