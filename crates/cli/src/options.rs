//! What a command line asks for.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use respool_client::Address;
use respool_connection::{Credentials, Endpoint};
use respool_net::tls::{ClientTls, KeyPair};
use respool_wire::{Protocol, split_words};
use zeroize::Zeroizing;

use crate::limits::ARGUMENT_BYTES_MAX;
use crate::render::Format;
use crate::session::Target;

/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// What the program knows of its surroundings.
pub struct Surroundings {
    /// Standard output is a terminal.
    pub is_output_terminal: bool,
    /// Standard input is a terminal.
    pub is_input_terminal: bool,
    /// The variable `REDISCLI_AUTH`.
    pub password: Option<Zeroizing<String>>,
    /// The file of the history. `None`: no history is kept.
    pub history: Option<PathBuf>,
}

/// What a command line asks for.
#[derive(Debug)]
pub struct Options {
    pub(crate) target: Target,
    pub(crate) format: Format,
    /// Standard output is a terminal, or shall look like one.
    pub(crate) is_output_terminal: bool,
    pub(crate) is_input_terminal: bool,
    pub(crate) shows_pushes: bool,
    /// How often a command is executed; `None` without end.
    pub(crate) repeat: Option<u64>,
    is_repeat_said: bool,
    pub(crate) interval: Option<Duration>,
    pub(crate) has_exit_code: bool,
    pub(crate) task: Task,
    pub(crate) history: Option<PathBuf>,
    /// What the user should know before anything is done.
    pub(crate) warnings: Vec<&'static str>,
}

/// What is done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The prompt, or lines of standard input.
    Shell,
    /// One command.
    Once(Vec<Vec<u8>>),
    /// Figures of the server.
    Stat,
    /// Names of keys.
    Scan(Which),
    /// The largest keys.
    BigKeys(Which),
    /// The largest keys by memory.
    MemoryKeys(Which, Option<u64>),
    /// The most used keys.
    HotKeys(Which),
    /// Round trips.
    Latency,
    /// Round trips, a line for every interval.
    LatencyHistory,
    /// Round trips as a spectrum.
    LatencyDistribution,
    /// Mass insertion.
    Pipe { timeout: Option<Duration> },
    /// Delays of this machine.
    Intrinsic(Duration),
}

/// Which keys a scan names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Which {
    pub(crate) pattern: Option<Vec<u8>>,
    pub(crate) of_type: Option<Vec<u8>>,
    pub(crate) count: Option<u64>,
}

impl Options {
    /// What a parsed command line means. `read` reads files, `stdin` standard input, `ask` a password from the terminal.
    ///
    /// # Errors
    /// In words, what of it makes no sense.
    pub fn of(
        matches: &ArgMatches,
        surroundings: Surroundings,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
        stdin: impl Read,
        ask: impl FnOnce() -> io::Result<Zeroizing<String>>,
    ) -> Result<Self, String> {
        let has = |name: &str| matches.get_flag(name);
        let is_json = has("json") || has("quoted-json");
        let mut warnings = Vec::new();
        let is_in_address = said(matches, "uri").is_some_and(|uri| uri.contains('@'));
        if (said(matches, "password").is_some() || is_in_address) && !has("no-auth-warning") {
            warnings.push(
                "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.",
            );
        }
        let target = Self::target(matches, is_json, surroundings.password, &read, ask)?;
        let is_output_terminal = surroundings.is_output_terminal;
        let shows_pushes = match said(matches, "show-pushes") {
            Some(word) => word.starts_with('y'),
            None => is_output_terminal,
        };
        let seconds = |name: &str| said(matches, name).map(|text| parse_seconds(name, text)).transpose();
        Ok(Self {
            format: format_of(matches, is_output_terminal),
            task: task_of(matches, &read, stdin)?,
            repeat: repeat_of(matches)?,
            is_repeat_said: said(matches, "repeat").is_some(),
            interval: seconds("interval")?,
            has_exit_code: has("exit-code"),
            is_input_terminal: surroundings.is_input_terminal,
            history: surroundings.history,
            target,
            is_output_terminal,
            shows_pushes,
            warnings,
        })
    }

    /// The server that a command line names, and the user that it is asked as.
    pub(crate) fn target(
        matches: &ArgMatches,
        is_json: bool,
        password: Option<Zeroizing<String>>,
        read: &impl Fn(&Path) -> io::Result<Vec<u8>>,
        ask: impl FnOnce() -> io::Result<Zeroizing<String>>,
    ) -> Result<Target, String> {
        let mut target = target_of(matches, is_json, read)?;
        let named = said(matches, "password").map(|password| Zeroizing::new(password.to_owned()));
        let password = match matches.get_flag("askpass") {
            true => Some(ask().map_err(|error| format!("--askpass: {error}"))?),
            // What the address says is nearer than the environment.
            false if target.credentials.is_some() => named,
            false => named.or(password),
        };
        if let Some(password) = password {
            let username = said(matches, "user").map(str::to_owned);
            let username = username.or_else(|| target.credentials.as_ref().and_then(|it| it.username.clone()));
            target.credentials = Some(Arc::new(Credentials { username, password }));
        } else if said(matches, "user").is_some() && target.credentials.is_none() {
            return Err("--user needs a password: -a, --askpass or REDISCLI_AUTH".to_owned());
        }
        Ok(target)
    }

    /// How many lines a mode prints that goes on without end unless it is told otherwise.
    pub(crate) fn rounds(&self) -> Option<u64> {
        self.repeat.filter(|_| self.is_repeat_said)
    }

    /// Whether it runs until it is told to end, or ends early with something to say.
    #[must_use]
    pub fn wants_signals(&self) -> bool {
        !matches!(self.task, Task::Once(_) | Task::Pipe { .. }) && (self.task != Task::Shell || self.is_input_terminal)
    }
}

fn said<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

fn parse_seconds(name: &str, text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("-{}: {text:?} is no number of seconds", &name[..1]))
}

/// `None`: without end.
fn repeat_of(matches: &ArgMatches) -> Result<Option<u64>, String> {
    match said(matches, "repeat") {
        None => Ok(Some(1)),
        Some("-1") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| format!("-r: {text:?} is no number of times")),
    }
}

fn format_of(matches: &ArgMatches, is_output_terminal: bool) -> Format {
    let has = |name: &str| matches.get_flag(name);
    let delimiter = |name: &str| said(matches, name).unwrap_or("\n").as_bytes().to_vec();
    match () {
        () if has("quoted-json") => Format::QuotedJson,
        () if has("json") => Format::Json,
        () if has("csv") => Format::Csv,
        () if has("no-raw") => Format::Terminal,
        () if has("raw") || !is_output_terminal => {
            Format::Raw { between_elements: delimiter("delimiter"), behind_replies: delimiter("reply-delimiter") }
        }
        () => Format::Terminal,
    }
}

fn target_of(
    matches: &ArgMatches,
    is_json: bool,
    read: &impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Target, String> {
    let has = |name: &str| matches.get_flag(name);
    let host = said(matches, "host").unwrap_or("127.0.0.1").to_owned();
    let port = matches.get_one::<u16>("port").copied().unwrap_or(6379);
    let mut target = Target {
        endpoint: Endpoint::Tcp { host, port },
        tls: None,
        credentials: None,
        database: 0,
        protocol: None,
        is_cluster: has("cluster"),
    };
    if let Some(uri) = said(matches, "uri") {
        let address = Address::parse(uri).map_err(|error| format!("-u: {error}"))?;
        target.endpoint = address.endpoint;
        target.credentials = address.credentials.map(Arc::new);
        (target.database, target.protocol) = (address.database, address.protocol);
    }
    if let Some(path) = said(matches, "socket") {
        target.endpoint = Endpoint::Unix { path: path.to_owned() };
    }
    if let Some(database) = matches.get_one::<u32>("database") {
        target.database = *database;
    }
    target.protocol = match () {
        () if has("resp2") => Some(Protocol::Resp2),
        () if has("resp3") || is_json => Some(Protocol::Resp3),
        () => target.protocol,
    };
    if has("tls")
        && let Endpoint::Tcp { host, port } = &target.endpoint
    {
        let server_name = String::new();
        target.endpoint = Endpoint::Tls { host: host.clone(), port: *port, server_name, profile: String::new() };
    }
    if let Endpoint::Tls { host, server_name, .. } = &mut target.endpoint {
        *server_name = said(matches, "sni").unwrap_or(host).to_owned();
        target.tls = Some(Arc::new(tls_of(matches, read)?));
    }
    Ok(target)
}

fn tls_of(matches: &ArgMatches, read: &impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<ClientTls, String> {
    let load = |name: &str| {
        let path = matches.get_one::<PathBuf>(name);
        path.map(|path| read(path).map_err(|error| format!("--{name} {}: {error}", path.display()))).transpose()
    };
    let authorities_pem = match load("cacert")? {
        Some(pem) => Some(pem),
        None if matches.get_flag("insecure") => None,
        None => {
            let found = SYSTEM_AUTHORITIES.iter().find_map(|path| read(Path::new(path)).ok());
            Some(found.ok_or("this system has no authorities where they usually are: use --cacert, or --insecure")?)
        }
    };
    let own = match (load("cert")?, load("key")?) {
        (Some(certificate_pem), Some(key_pem)) => Some(KeyPair { certificate_pem, key_pem: key_pem.into() }),
        _ => None,
    };
    Ok(ClientTls { authorities_pem, own })
}

fn task_of(
    matches: &ArgMatches,
    read: &impl Fn(&Path) -> io::Result<Vec<u8>>,
    stdin: impl Read,
) -> Result<Task, String> {
    let has = |name: &str| matches.get_flag(name);
    let count = |name: &str| matches.get_one::<u64>(name).copied();
    let which = || which_of(matches);
    Ok(match () {
        () if has("stat") => Task::Stat,
        () if has("scan") => Task::Scan(which()?),
        () if has("bigkeys") => Task::BigKeys(which()?),
        () if has("memkeys") => Task::MemoryKeys(which()?, count("memkeys-samples")),
        () if has("hotkeys") => Task::HotKeys(which()?),
        () if has("latency") => Task::Latency,
        () if has("latency-history") => Task::LatencyHistory,
        () if has("latency-dist") => Task::LatencyDistribution,
        () if has("pipe") => {
            let timeout = Duration::from_secs(count("pipe-timeout").unwrap_or(30));
            Task::Pipe { timeout: Some(timeout).filter(|timeout| !timeout.is_zero()) }
        }
        () if has("monitor") => Task::Once(vec![b"MONITOR".to_vec()]),
        () => match count("intrinsic") {
            Some(seconds) => Task::Intrinsic(Duration::from_secs(seconds)),
            None => command_of(matches, read, stdin)?,
        },
    })
}

fn command_of(
    matches: &ArgMatches,
    read: &impl Fn(&Path) -> io::Result<Vec<u8>>,
    stdin: impl Read,
) -> Result<Task, String> {
    let words = matches.get_many::<std::ffi::OsString>("command").into_iter().flatten();
    let mut words: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).collect();
    if matches.get_flag("quoted-input") {
        words = words.iter().map(|word| unquoted(word)).collect::<Result<_, _>>()?;
    }
    if let Some(path) = matches.get_one::<PathBuf>("eval") {
        let script = read(path).map_err(|error| format!("--eval {}: {error}", path.display()))?;
        let keys = words.iter().position(|word| word == b",").unwrap_or(words.len());
        let mut request = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
        request.extend(words.into_iter().enumerate().filter(|(place, _)| *place != keys).map(|(_, word)| word));
        words = request;
    }
    let tag = said(matches, "stdin-tag");
    if matches.get_flag("stdin") || tag.is_some() {
        if words.is_empty() {
            return Err("-x and -X need a command".to_owned());
        }
        let place = match tag {
            Some(tag) => words.iter().position(|word| word == tag.as_bytes()),
            None => Some(words.len()),
        };
        let place = place.ok_or("-X: no argument says this tag")?;
        let input = argument_of(stdin, ARGUMENT_BYTES_MAX)?;
        match words.get_mut(place) {
            Some(word) => *word = input,
            None => words.push(input),
        }
    }
    Ok(if words.is_empty() { Task::Shell } else { Task::Once(words) })
}

/// All of standard input as one argument. More than `max` bytes are refused: no server takes them, and a part is not what was meant.
fn argument_of(stdin: impl Read, max: u64) -> Result<Vec<u8>, String> {
    let mut input = Vec::new();
    stdin.take(max + 1).read_to_end(&mut input).map_err(|error| format!("standard input: {error}"))?;
    if input.len() as u64 > max {
        return Err(format!("standard input has more than {max} bytes, the most that an argument may have"));
    }
    Ok(input)
}

fn which_of(matches: &ArgMatches) -> Result<Which, String> {
    let bytes = |name: &str| said(matches, name).map(|text| text.as_bytes().to_vec());
    let quoted = bytes("quoted-pattern").map(|text| unquoted(&text)).transpose()?;
    Ok(Which {
        pattern: quoted.or_else(|| bytes("pattern")),
        of_type: bytes("type"),
        count: matches.get_one::<u64>("count").copied(),
    })
}

/// An argument as it stands at the prompt.
fn unquoted(word: &[u8]) -> Result<Vec<u8>, String> {
    if !matches!(word.first(), Some(b'"' | b'\'')) {
        return Ok(word.to_vec());
    }
    let words = split_words(word).filter(|words| words.as_args().len() == 1);
    let words = words.ok_or_else(|| format!("{} is no quoted string", String::from_utf8_lossy(word)))?;
    Ok(words.as_args().name().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar;

    fn parse_with(line: &str, password: Option<&str>) -> Result<Options, String> {
        let words = std::iter::once("cli").chain(line.split_ascii_whitespace());
        let matches = grammar().try_get_matches_from(words).map_err(|error| error.to_string())?;
        let surroundings = Surroundings {
            is_output_terminal: true,
            is_input_terminal: true,
            password: password.map(|word| Zeroizing::new(word.to_owned())),
            history: None,
        };
        let read = |path: &Path| match path.to_str() {
            Some("script.lua") => Ok(b"return 1".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        Options::of(&matches, surroundings, read, &b"from stdin"[..], || Ok(Zeroizing::new("asked".to_owned())))
    }

    fn parse(line: &str) -> Result<Options, String> {
        parse_with(line, None)
    }

    fn words(task: &Task) -> Vec<String> {
        let Task::Once(words) = task else { panic!("{task:?}") };
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }

    #[test]
    fn flags_of_redis_cli_mean_what_they_mean_there() {
        let options = parse("-h ::1 -p 7 -a pw --user u -n 3 -3 -c -r 5 -i 0.5 -e get key").unwrap();
        assert_eq!(options.target.endpoint.to_string(), "[::1]:7");
        let credentials = options.target.credentials.as_deref().unwrap();
        assert_eq!((credentials.username.as_deref(), credentials.password.as_str()), (Some("u"), "pw"));
        assert_eq!((options.target.database, options.target.protocol), (3, Some(Protocol::Resp3)));
        assert!(options.target.is_cluster && options.has_exit_code && options.warnings.len() == 1);
        assert_eq!((options.repeat, options.interval), (Some(5), Some(Duration::from_millis(500))));
        assert_eq!(words(&options.task), ["get", "key"]);
        let usual = parse("").unwrap();
        assert_eq!((usual.task, usual.format, usual.target.protocol), (Task::Shell, Format::Terminal, None));
    }

    #[test]
    fn a_command_takes_all_that_follows() {
        assert_eq!(words(&parse("-r -1 lpush l -x --csv -1").unwrap().task), ["lpush", "l", "-x", "--csv", "-1"]);
        assert_eq!(words(&parse("-x set key").unwrap().task), ["set", "key", "from stdin"]);
        assert_eq!(words(&parse("-X tag set tag v").unwrap().task), ["set", "from stdin", "v"]);
    }

    #[test]
    fn an_argument_that_is_too_long_is_refused_and_not_cut() {
        assert_eq!(argument_of(&b"1234"[..], 4), Ok(b"1234".to_vec()));
        let refused = argument_of(&b"12345"[..], 4).unwrap_err();
        assert!(refused.contains("more than 4 bytes"), "{refused}");
    }

    #[test]
    fn a_script_has_keys_before_the_comma() {
        let task = parse("--eval script.lua k1 k2 , a1").unwrap().task;
        assert_eq!(words(&task), ["EVAL", "return 1", "2", "k1", "k2", "a1"]);
        assert_eq!(words(&parse("--eval script.lua").unwrap().task), ["EVAL", "return 1", "0"]);
    }

    #[test]
    fn passwords_come_from_where_they_are_safest() {
        let password = |options: Options| options.target.credentials.map(|it| it.password.to_string());
        let of = |line: &str| password(parse_with(line, Some("environment")).unwrap());
        assert_eq!(of("ping").as_deref(), Some("environment"));
        assert_eq!(of("-a flag ping").as_deref(), Some("flag"));
        assert_eq!(of("-a flag --askpass ping").as_deref(), Some("asked"));
        assert_eq!(password(parse("-u redis://u:uri@h ping").unwrap()).as_deref(), Some("uri"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (line, part) in [
            ("-u http://h", "-u: "),
            ("-i x ping", "-i: \"x\" is no number of seconds"),
            ("-r x ping", "-r: \"x\" is no number of times"),
            ("--user u ping", "needs a password"),
            ("-x", "-x and -X need a command"),
            ("-X tag get key", "no argument says this tag"),
            ("--eval nowhere", "--eval nowhere"),
            ("--tls --cacert nowhere ping", "--cacert nowhere"),
            ("--stat --scan", "cannot be used with"),
            ("-2 -3", "cannot be used with"),
        ] {
            match parse(line) {
                Err(why) => assert!(why.contains(part), "{line}: {why}"),
                Ok(options) => panic!("{line}: {options:?}"),
            }
        }
    }
}
