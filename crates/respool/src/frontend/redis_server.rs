//! redis-server: its command line and its configuration file, as parameters and settings.
//!
//! Both are one text: the file, what standard input says, and the flags behind it as if they stood in the file. The last directive of a
//! parameter wins. The system is an argument, so that a test can be one.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use respool_command::{glob, words};

use crate::parameters::{Parameters, is_secret};
use crate::settings::raw::{RawUser, Statement, Text, UserKey};
use crate::settings::{Origin, RawSettings, Setting};

/// How deep files may include files.
const INCLUDES_MAX: usize = 16;
/// Bytes of all texts together.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Files that all patterns together may name.
const FILES_MAX: usize = 4_096;

/// Parameters that are settings of the same meaning, in the same words.
const PASSED: [(Setting, &str); 6] = [
    (Setting::Databases, "databases"),
    (Setting::Aclfile, "aclfile"),
    (Setting::AclPubsubDefault, "acl-pubsub-default"),
    (Setting::TlsCertFile, "tls-cert-file"),
    (Setting::TlsKeyFile, "tls-key-file"),
    (Setting::TlsClientCaFile, "tls-ca-cert-file"),
];

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// To show how it is used.
    Help,
    /// To show which version it is.
    Version,
    /// Something that only redis-server itself does.
    Refused(&'static str),
    /// To serve.
    Serve {
        /// The configuration file.
        file: Option<PathBuf>,
        /// Whether standard input has more of it.
        reads_input: bool,
        /// The flags, as directives.
        directives: Vec<u8>,
    },
}

/// What loading needs of the system.
pub trait System {
    /// A file's content.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&mut self, file: &Path) -> io::Result<Vec<u8>>;

    /// The names in a directory; none if it cannot be read.
    fn names(&mut self, directory: &Path) -> Vec<OsString>;

    /// Makes a directory that of the process.
    ///
    /// # Errors
    /// It is not there, or is none.
    fn enter(&mut self, directory: &Path) -> io::Result<()>;

    /// Whether the system has an address, so that it can be listened on.
    fn has_address(&mut self, host: &str) -> bool;
}

/// What was loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The parameters.
    pub parameters: Parameters,
    /// The users, as rules.
    users: Vec<RawUser>,
    password: Option<String>,
    bytes: usize,
    files: usize,
}

/// Why it cannot be loaded.
#[derive(Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The line's number and its text.
    line: Option<(usize, String)>,
    why: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n*** FATAL CONFIG FILE ERROR (Respool {}) ***", env!("CARGO_PKG_VERSION"))?;
        if let Some((number, text)) = &self.line {
            writeln!(f, "Reading the configuration file, at line {number}\n>>> '{text}'")?;
        }
        writeln!(f, "{}", self.why)
    }
}

impl LoadError {
    fn new(why: impl Into<String>) -> Self {
        Self { line: None, why: why.into() }
    }
}

impl CommandLine {
    /// Understands the arguments behind the program's name.
    #[must_use]
    pub fn read(args: &[OsString]) -> Self {
        match args.first().and_then(|arg| arg.to_str()) {
            Some("-v" | "--version") => return Self::Version,
            Some("-h" | "--help") => return Self::Help,
            Some("--test-memory") => return Self::Refused("--test-memory: memory is not tested here; use memtester"),
            Some("--check-system") => return Self::Refused("--check-system: the system is not checked here"),
            _ => {}
        }
        if args.iter().any(|arg| arg.as_bytes().eq_ignore_ascii_case(b"--sentinel")) {
            return Self::Refused("--sentinel: this is no Sentinel");
        }
        let is_file = args.first().is_some_and(|arg| !arg.as_bytes().starts_with(b"-"));
        let file = is_file.then(|| PathBuf::from(&args[0]));
        let first = usize::from(is_file);
        let (mut reads_input, mut directives, mut is_named) = (false, Vec::new(), false);
        for (place, arg) in args.iter().enumerate().skip(first) {
            let arg = arg.as_bytes();
            if arg == b"-" && (place == 0 || place + 1 == args.len()) {
                reads_input = true;
            } else if arg.starts_with(b"--") && !is_named {
                if !directives.is_empty() {
                    directives.push(b'\n');
                }
                directives.extend_from_slice(&arg[2..]);
                directives.push(b' ');
                is_named = words::split(arg).is_some_and(|words| words.len() == 1);
                // `--save` without a value means none, also in front of another flag.
                let is_last = place + 1 == args.len();
                let is_flag_next = args.get(place + 1).is_some_and(|next| next.as_bytes().starts_with(b"--"));
                if arg.eq_ignore_ascii_case(b"--save") && (is_last || is_flag_next) {
                    directives.extend_from_slice(b"\"\"");
                    is_named = false;
                }
            } else {
                directives.extend_from_slice(&words::quoted(arg));
                directives.push(b' ');
                is_named = false;
            }
        }
        Self::Serve { file, reads_input, directives }
    }
}

impl Loaded {
    /// Loads a file, what standard input said and the flags.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn load(
        file: Option<&Path>,
        input: Option<&[u8]>,
        directives: &[u8],
        system: &mut dyn System,
    ) -> Result<Self, LoadError> {
        let mut loaded = Self::default();
        let mut text = Vec::new();
        if let Some(file) = file {
            text = loaded.read_file(file, system)?;
            end_line(&mut text);
        }
        text.extend_from_slice(input.unwrap_or_default());
        end_line(&mut text);
        text.extend_from_slice(directives);
        loaded.hear(&text, 0, system)?;
        if let Some(file) = file {
            loaded.parameters.set_file(file.to_owned());
        }
        Ok(loaded)
    }

    fn read_file(&mut self, file: &Path, system: &mut dyn System) -> Result<Vec<u8>, LoadError> {
        let fatal =
            |why: String| LoadError::new(format!("Fatal error, can't open config file '{}': {why}", file.display()));
        let text = system.read(file).map_err(|error| fatal(error.to_string()))?;
        self.bytes += text.len();
        match self.bytes > TEXT_BYTES_MAX {
            true => Err(fatal(format!("all files together are larger than {TEXT_BYTES_MAX} bytes"))),
            false => Ok(text),
        }
    }

    fn hear(&mut self, text: &[u8], depth: usize, system: &mut dyn System) -> Result<(), LoadError> {
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.hear_line(line, depth, system).map_err(|error| {
                let here = || (number + 1, hidden(line));
                LoadError { line: error.line.or_else(|| Some(here())), why: error.why }
            })?;
        }
        Ok(())
    }

    fn hear_line(&mut self, line: &[u8], depth: usize, system: &mut dyn System) -> Result<(), LoadError> {
        let words = words::split(line).ok_or_else(|| LoadError::new("Unbalanced quotes in configuration line"))?;
        let Some((name, values)) = words.split_first() else { return Ok(()) };
        let name = name.to_ascii_lowercase();
        if let Some(heard) = self.parameters.hear(&name, values) {
            heard.map_err(LoadError::new)?;
            return self.look_at(&name, values, system);
        }
        match (name.as_slice(), values) {
            // Redis gave them up, and reads over them.
            (b"list-max-ziplist-entries" | b"list-max-ziplist-value" | b"lua-replicate-commands", [_]) => Ok(()),
            (b"include", [pattern]) => self.include(pattern, depth, system),
            (b"user", [user, rules @ ..]) => self.hear_user(user, rules),
            (b"rename-command", [from, to]) => {
                self.parameters.rename(from, to).map_err(|error| LoadError::new(error.to_string()))
            }
            (b"loadmodule", [_, ..]) => Err(LoadError::new("loadmodule cannot be had here: there are no modules")),
            (b"sentinel", [_, ..]) => Err(LoadError::new("sentinel directive while not in sentinel mode")),
            _ => Err(LoadError::new("Bad directive or wrong number of arguments")),
        }
    }

    /// What a parameter does while the file is read.
    fn look_at(&mut self, name: &[u8], values: &[Vec<u8>], system: &mut dyn System) -> Result<(), LoadError> {
        match (name, values) {
            (b"dir", [directory]) => {
                let entered = system.enter(&PathBuf::from(OsString::from_vec(directory.clone())));
                entered.map_err(|error| LoadError::new(error.to_string()))
            }
            (b"requirepass", [password]) => {
                let password = String::from_utf8(password.clone())
                    .map_err(|_| LoadError::new("argument must be text in UTF-8"))?;
                self.password = (!password.is_empty()).then_some(password);
                // It is kept by its hash alone.
                self.parameters.hear(b"requirepass", &[Vec::new()]).unwrap_or(Ok(())).map_err(LoadError::new)
            }
            (b"supervised", [how]) if how.eq_ignore_ascii_case(b"upstart") => {
                Err(LoadError::new("upstart cannot be had here: systemd is told through NOTIFY_SOCKET"))
            }
            _ => Ok(()),
        }
    }

    fn include(&mut self, pattern: &[u8], depth: usize, system: &mut dyn System) -> Result<(), LoadError> {
        if depth >= INCLUDES_MAX {
            return Err(LoadError::new(format!("files include each other more than {INCLUDES_MAX} deep")));
        }
        let is_pattern = pattern.iter().any(|byte| b"*?[".contains(byte));
        let files = match is_pattern {
            true => matching(pattern, system),
            false => vec![PathBuf::from(OsString::from_vec(pattern.to_vec()))],
        };
        self.files += files.len();
        if self.files > FILES_MAX {
            return Err(LoadError::new(format!("more than {FILES_MAX} files are included")));
        }
        // As if they were one file.
        let mut text = Vec::new();
        for file in files {
            text.extend_from_slice(&self.read_file(&file, system)?);
            end_line(&mut text);
        }
        self.hear(&text, depth + 1, system)
    }

    fn hear_user(&mut self, name: &[u8], rules: &[Vec<u8>]) -> Result<(), LoadError> {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .map_err(|_| LoadError::new("names and rules of users must be text in UTF-8"))
        };
        let name = text(name)?;
        if self.users.iter().any(|user| user.name == name) {
            let why =
                format!("Error in user declaration '{name}': Duplicate user found. A user can only be defined once");
            return Err(LoadError::new(why));
        }
        let origin = Origin::Flag { said: format!("user {name} ...") };
        let one = |rule: String| Text { text: rule, origin: origin.clone() };
        // One text alone would be split at its blanks, which are a part of the rule here. An empty rule changes nothing.
        let mut rules = rules.iter().map(|rule| text(rule).map(one)).collect::<Result<Vec<_>, _>>()?;
        rules.insert(0, one(String::new()));
        self.users.push(RawUser { name, origin, keys: vec![(UserKey::Rules, rules)] });
        Ok(())
    }

    /// The settings that are said by the parameters and that decide at the start.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn settings(&mut self, system: &mut dyn System) -> Result<RawSettings, LoadError> {
        let mut said = RawSettings::default();
        let parameters = &self.parameters;
        let origin = |name: &str| Origin::Flag { said: name.to_owned() };
        let addresses = parameters.listen_addresses(&mut |host| system.has_address(host));
        if addresses.is_empty() {
            return Err(LoadError::new("Configured to not listen anywhere, exiting."));
        }
        let as_text = |text: String| Text { text, origin: origin("bind, port, unixsocket") };
        let texts = addresses.into_iter().map(as_text).collect();
        said.top.push(Statement { setting: Setting::Listen, texts, origin: origin("bind, port, unixsocket") });
        let mut say = |setting: Setting, name: &str, value: &str| {
            if !value.is_empty() {
                let text = Text { text: value.to_owned(), origin: origin(name) };
                said.top.push(Statement { setting, texts: vec![text], origin: origin(name) });
            }
        };
        for (setting, name) in PASSED {
            say(setting, name, parameters.value(name));
        }
        if parameters.value("unixsocketperm") != "0" {
            say(Setting::UnixMode, "unixsocketperm", parameters.value("unixsocketperm"));
        }
        say(Setting::AdminCommands, "redis-server", "allow");
        // More entries than are kept anyway are no mistake.
        let bounded =
            |name: &str, max: u64| parameters.value(name).parse().map_or(max, |value: u64| value.min(max)).to_string();
        say(Setting::AcllogMaxLen, "acllog-max-len", &bounded("acllog-max-len", 1_000_000));
        if parameters.value("tcp-backlog") != "0" {
            say(Setting::Backlog, "tcp-backlog", &bounded("tcp-backlog", 65_535));
        }
        if parameters.value("tls-port") != "0" {
            say(Setting::TlsAuthClients, "tls-auth-clients", parameters.tls_clients());
        }
        let has_default = self.users.iter().any(|user| user.name == "default");
        if let Some(password) = self.password.take().filter(|_| !has_default) {
            let origin = origin("requirepass");
            let text = Text { text: password, origin: origin.clone() };
            said.top.push(Statement { setting: Setting::Requirepass, texts: vec![text], origin });
        }
        said.users = std::mem::take(&mut self.users);
        Ok(said)
    }
}

/// Ends the last line, so that what follows is not a part of it.
fn end_line(text: &mut Vec<u8>) {
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(b'\n');
    }
}

/// A line for a message: without what may be a password.
fn hidden(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let name = text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    // The name may stand in quotes, and be misspelled.
    let is_secret = words::split(line).and_then(|words| words.into_iter().next()).is_some_and(|name| is_secret(&name));
    match is_secret || name.contains("pass") || name.contains("auth") || name.contains("user") {
        true => format!("{name} (hidden)"),
        false => text.into_owned(),
    }
}

/// The files that a pattern names, in order. Names that begin with a dot have to be named so.
fn matching(pattern: &[u8], system: &mut dyn System) -> Vec<PathBuf> {
    let mut parts = pattern.split(|byte| *byte == b'/').peekable();
    let mut found = vec![PathBuf::new()];
    if pattern.starts_with(b"/") {
        found = vec![PathBuf::from("/")];
        parts.next();
    }
    for part in parts.filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for directory in &found {
            if !part.iter().any(|byte| b"*?[".contains(byte)) {
                next.push(directory.join(OsString::from_vec(part.to_vec())));
                continue;
            }
            let place = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            let mut names = system.names(place);
            names.sort();
            let is_meant = |name: &&OsString| {
                let name = name.as_bytes();
                (!name.starts_with(b".") || part.starts_with(b".")) && glob::matches(part, name)
            };
            next.extend(names.iter().filter(is_meant).map(|name| directory.join(name)));
            next.truncate(FILES_MAX + 1);
        }
        found = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::resolve;

    /// A system of files in memory; every address but one is there.
    #[derive(Default)]
    struct Fake {
        files: BTreeMap<&'static str, &'static [u8]>,
        entered: Vec<PathBuf>,
    }

    impl System for Fake {
        fn read(&mut self, file: &Path) -> io::Result<Vec<u8>> {
            let found = self.files.get(file.to_str().unwrap_or_default());
            found.map(|text| text.to_vec()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        }

        fn names(&mut self, directory: &Path) -> Vec<OsString> {
            let files = self.files.keys().map(|file| Path::new(*file));
            let within = files.filter(|file| file.parent() == Some(directory));
            within.filter_map(|file| file.file_name().map(OsString::from)).collect()
        }

        fn enter(&mut self, directory: &Path) -> io::Result<()> {
            self.entered.push(directory.to_owned());
            Ok(())
        }

        fn has_address(&mut self, host: &str) -> bool {
            host != "::1"
        }
    }

    fn line(args: &[&str]) -> CommandLine {
        CommandLine::read(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn directives(args: &[&str]) -> String {
        match line(args) {
            CommandLine::Serve { directives, .. } => String::from_utf8(directives).expect("it is text"),
            other => panic!("{other:?}"),
        }
    }

    fn loaded(text: &str, files: &[(&'static str, &'static [u8])]) -> Result<Loaded, LoadError> {
        let mut system = Fake { files: files.iter().copied().collect(), ..Fake::default() };
        Loaded::load(None, Some(text.as_bytes()), b"", &mut system)
    }

    #[test]
    fn flags_become_directives_as_by_redis() {
        for (args, text) in [
            (&["--port", "7000", "--save", ""][..], "port \"7000\" \nsave \"\" "),
            (&["--port 7000", "--hz 7"], "port 7000 \nhz 7 "),
            (&["--save", "--port", "7"], "save \"\"\nport \"7\" "),
            (&["--save"], "save \"\""),
            (&["--save", "900", "1", "--hz", "1"], "save \"900\" \"1\" \nhz \"1\" "),
            (&["--requirepass", "--dashes"], "requirepass \"--dashes\" "),
            (&["x.conf", "--user", "default", "on", "~a b"], "user \"default\" \"on\" \"~a b\" "),
        ] {
            assert_eq!(directives(args), text, "{args:?}");
        }
    }

    #[test]
    fn the_file_comes_first_and_a_dash_reads_standard_input() {
        let read = |args: &[&str]| match line(args) {
            CommandLine::Serve { file, reads_input, .. } => (file, reads_input),
            other => panic!("{other:?}"),
        };
        assert_eq!(read(&[]), (None, false));
        assert_eq!(read(&["-"]), (None, true));
        assert_eq!(read(&["a.conf", "-"]), (Some("a.conf".into()), true));
        assert_eq!(read(&["a.conf", "--hz", "1", "-"]), (Some("a.conf".into()), true));
        assert_eq!(line(&["-v"]), CommandLine::Version);
        assert_eq!(line(&["--help", "x"]), CommandLine::Help);
        assert!(matches!(line(&["a.conf", "--sentinel"]), CommandLine::Refused(_)));
    }

    #[test]
    fn includes_are_read_in_place_and_in_order() {
        let files: &[(&str, &[u8])] = &[
            ("/c/b.conf", b"hz 2\ninclude /c/deep"),
            ("/c/a.conf", b"hz 1\n"),
            ("/c/.d.conf", b"hz 9\n"),
            ("/c/deep", b"timeout 5"),
            ("/c/self", b"include /c/self"),
        ];
        let all = loaded("hz 50\ninclude /c/*.conf\ninclude /none/*", files).expect("it is right");
        assert_eq!((all.parameters.value("hz"), all.parameters.value("timeout")), ("2", "5"));
        let all = loaded("include /c/*.conf\nhz 7", files).expect("it is right");
        assert_eq!(all.parameters.value("hz"), "7");
        assert!(loaded("include /none", files).unwrap_err().why.contains("can't open config file '/none'"));
        assert!(loaded("include /c/self", files).unwrap_err().why.contains("include each other"));
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_no_password() {
        for (text, shown) in [
            ("hz 1\nport x", "at line 2\n>>> 'port x'\nargument couldn't be parsed into an integer"),
            ("a \"b", "at line 1\n>>> 'a \"b'\nUnbalanced quotes in configuration line"),
            ("requirepass canary canary", ">>> 'requirepass (hidden)'\nwrong number of arguments"),
            (
                "user a on >canary\nuser a off >canary",
                ">>> 'user (hidden)'\nError in user declaration 'a': Duplicate user",
            ),
            (
                "tls-key-file-pass canary",
                ">>> 'tls-key-file-pass (hidden)'\nthis value cannot be had here: the key file",
            ),
            ("\"m\\x61steruser\" canary canary", "(hidden)'\nwrong number of arguments"),
            ("\"requirep\\x61ss\" canary canary", "(hidden)'\nwrong number of arguments"),
            ("include a b", "Bad directive or wrong number of arguments"),
            ("supervised upstart", "upstart cannot be had here"),
        ] {
            let error = loaded(text, &[]).unwrap_err().to_string();
            assert!(error.contains(shown) && !error.contains("canary"), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_and_users_become_settings() {
        for (text, expected) in [
            ("port 7", ":7"),
            ("bind 127.0.0.1 -::1\nport 7", "127.0.0.1:7"),
            ("bind 127.0.0.1 ::1\nport 7", "127.0.0.1:7, [::1]:7"),
            ("bind *\nport 7", "0.0.0.0:7"),
            ("bind \"* -::*\"\nport 7\nunixsocket /s", ":7, unix:/s"),
            ("port 0\nunixsocket \"/a b\"", "unix:/a b"),
        ] {
            let mut all = loaded(text, &[]).expect("it is right");
            let said = all.settings(&mut Fake::default()).expect("it listens");
            let process = resolve(&said, &|_| unreachable!("no secret is asked for")).expect("it is right").process;
            let shown: Vec<String> = process.instances[0].net.listen.iter().map(ToString::to_string).collect();
            assert_eq!(shown.join(", "), expected, "{text}");
        }
        let mut all = loaded("requirepass pw\nuser ann on >x ~a:* +@all", &[]).expect("it is right");
        let said = all.settings(&mut Fake::default()).expect("it listens");
        let users = resolve(&said, &|_| unreachable!("no secret is asked for")).expect("it is right").process.users;
        let users = users.users().expect("their rules are right");
        assert!(users.authenticate(b"default", b"pw").is_some() && users.authenticate(b"ann", b"x").is_some());
        assert_eq!(all.parameters.value("requirepass"), "", "only its hash is kept");
    }

    #[test]
    fn a_rule_in_quotes_is_one_rule() {
        let users = |text: &str| {
            let mut all = loaded(text, &[]).expect("it is right");
            let said = all.settings(&mut Fake::default()).expect("it listens");
            resolve(&said, &|_| unreachable!("no secret is asked for")).map(|understood| {
                let users = understood.process.users.users().expect("their rules are right");
                [&b"two words"[..], b"two", b"x"].map(|word| users.authenticate(b"bob", word).is_some())
            })
        };
        assert_eq!(users("user bob on \">two words\"").ok(), Some([true, false, false]));
        assert_eq!(users("user bob on >two \"(~a +get)\" (~b +set)").ok(), Some([false, true, false]));
        assert_eq!(users("user bob \">two words\"").ok(), Some([false; 3]), "it is off");
        for refused in ["user bob on \"~a +@all\"", "user bob \"on >x\"", "user bob on \"&a b\" >x"] {
            assert!(users(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn the_end_of_a_text_is_the_end_of_its_line() {
        let mut system = Fake { files: [("/c", &b"hz 7"[..])].into(), ..Fake::default() };
        let all = Loaded::load(Some(Path::new("/c")), Some(b"timeout 5"), b"maxmemory 1", &mut system);
        let all = all.expect("each is a line");
        assert_eq!(["hz", "timeout", "maxmemory"].map(|name| all.parameters.value(name)), ["7", "5", "1"]);
        let files: &[(&str, &[u8])] = &[("/d/a", b"hz 7"), ("/d/b", b"timeout 5")];
        let all = loaded("include /d/*\nmaxmemory 1", files).expect("each is a line");
        assert_eq!(["hz", "timeout", "maxmemory"].map(|name| all.parameters.value(name)), ["7", "5", "1"]);
    }

    #[test]
    fn no_text_makes_it_panic() {
        let words: [&[u8]; 16] = [
            b"port",
            b"save",
            b"bind",
            b"user",
            b"include",
            b"\"",
            b"'",
            b"\\x",
            b"1",
            b"-1",
            b"* -::*",
            b"\n",
            b"\xff",
            b"#",
            b"\0",
            b"99999999999999999999",
        ];
        let mut seed = 3_u64;
        for _ in 0..3_000 {
            let mut text = Vec::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.extend_from_slice(words[(seed >> 33) as usize % words.len()]);
                text.extend_from_slice(if seed >> 63 == 0 { b" " } else { b"\n" });
            }
            let mut system = Fake::default();
            if let Ok(mut all) = Loaded::load(None, Some(&text), b"", &mut system) {
                let _ = all.settings(&mut system).map(|said| resolve(&said, &|_| Err(io::Error::other("none"))));
            }
        }
    }
}
