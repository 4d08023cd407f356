//! The command line of `respool bench`: the flags of redis-benchmark and those beyond them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use respool_connection::Endpoint;
use respool_net::tls::{ClientTls, KeyPair, TlsClients};

use crate::arrivals::Spacing;
use crate::keys::Spread;
use crate::limits::{
    CONNECTIONS_MAX, DURATION_MAX, KEYS_MAX, PIDS_MAX, PIPELINE_MAX, RATE_MAX, REQUESTS_MAX, ROUNDS_MAX, TARGETS_MAX,
    THREADS_MAX,
};
use crate::plan::{Pace, Plan};
use crate::target::{Session, Target};
use crate::values::Sizes;
use crate::work::{Shape, Work};

/// What a command line asks for.
#[derive(Debug)]
pub struct Options {
    /// How runs go.
    pub plan: Plan,
    /// What is asked, one after the other.
    pub works: Vec<Arc<Work>>,
    /// Where, one after the other in each round.
    pub targets: Vec<Target>,
    /// The targets are clusters.
    pub is_cluster: bool,
    /// How often every test meets every target.
    pub rounds: usize,
    /// Again and again.
    pub is_endless: bool,
    /// How results are shown.
    pub show: Show,
    /// Digits behind the point of a latency.
    pub precision: usize,
    /// Where results go as JSON.
    pub json: Option<PathBuf>,
    /// Where results go as a page.
    pub html: Option<PathBuf>,
    /// A bar on the terminal.
    pub has_bar: bool,
}

/// How results are shown on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// A page for each test.
    Page,
    /// A line for each test.
    Quiet,
    /// CSV.
    Csv,
}

const EXAMPLES: &str = "\
Examples:
  respool bench -t get,set -n 1000000 -r 100000 -P 16 -q
      as redis-benchmark
  respool bench --rate 20000 --duration 30s -t get -r 100000 --html report.html
      an open loop: latencies as users see them, with plots
  respool bench --ratio get=9,set=1 -r 10000 --spread zipf -d 64:9,4096:1 --verify --duration 10s
      a mix in which every value proves which key it belongs to
  respool bench -t get --rounds 5 --target direct=127.0.0.1:6379,pid=812 --target proxy=127.0.0.1:6380,pid=830
      two servers in turns, with ratios and processor time";

/// The grammar of `respool bench`.
#[must_use]
pub fn grammar() -> Command {
    let basic = "Options of redis-benchmark";
    let more = "Further options";
    Command::new("bench")
        .about("Measure a server: the flags of redis-benchmark, open loops, mixes, verification, reports")
        .long_about(
            "Sends requests and measures how they are answered. It takes the command lines of redis-benchmark and prints what \
             that prints; further options ask for what that cannot do. Latencies of an open loop (--rate) count from the \
             time at which a request was due.",
        )
        .after_help(EXAMPLES)
        .subcommand(crate::pubsub::cli::grammar())
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .next_help_heading(basic)
        .arg(text("host", "HOST", "Server host name").short('h').default_value("127.0.0.1"))
        .arg(number("port", "Server port", 65_535).short('p').default_value("6379"))
        .arg(text("socket", "PATH", "Server socket (overrides host and port)").short('s'))
        .arg(text("password", "PASSWORD", "Password for AUTH").short('a').allow_hyphen_values(true))
        .arg(text("user", "NAME", "User for AUTH; needs a password").long("user").requires("password"))
        .arg(number("connections", "Parallel connections", CONNECTIONS_MAX as u64).short('c').default_value("50"))
        .arg(number("requests", "Requests in all [default: 100000, or as many as --duration allows]", REQUESTS_MAX).short('n'))
        .arg(text("size", "BYTES", "Size of values; 64:9,4096:1 is a mix of sizes with weights [default: 3, verified: 64]").short('d'))
        .arg(number("database", "Select this database", 1 << 20).long("dbnum").default_value("0"))
        .arg(switch("resp3", "Speak RESP3").short('3'))
        .arg(number("threads", "Threads, each with its share of the connections", THREADS_MAX as u64).long("threads").default_value("1"))
        .arg(switch("cluster", "The server is a node of a cluster: spread connections over its masters. Keys of a command given here need {tag}").long("cluster"))
        .arg(switch("tracking", "Send CLIENT TRACKING ON on every connection").long("enable-tracking"))
        .arg(number("keep", "1: keep connections; 0: a new connection for every batch", 1).short('k').default_value("1"))
        .arg(number("keys", "Random keys: __rand_int__ in an argument becomes a number of twelve digits below this", KEYS_MAX).short('r'))
        .arg(number("pipeline", "Requests that are written together", PIPELINE_MAX as u64).short('P').default_value("1"))
        .arg(switch("quiet", "One line for each test").short('q'))
        .arg(number("precision", "Digits behind the point of latencies", 9).long("precision").default_value("3"))
        .arg(switch("csv", "Print CSV, with the columns of redis-benchmark").long("csv").conflicts_with("quiet"))
        .arg(switch("endless", "Run the tests again and again").short('l'))
        .arg(text("tests", "TESTS", "Only these tests, separated by commas").short('t'))
        .arg(switch("stdin", "Read the last argument of the command from standard input").short('x'))
        .arg(switch("tls", "Speak TLS").long("tls"))
        .arg(text("sni", "NAME", "Name that the server's certificate must have [default: the host]").long("sni"))
        .arg(file("cacert", "Authorities of the server's certificate (PEM)").long("cacert"))
        .arg(switch("insecure", "Do not check the server's certificate").long("insecure").conflicts_with("cacert"))
        .arg(file("cert", "Certificate to show (PEM)").long("cert").requires("key"))
        .arg(file("key", "Its private key (PEM)").long("key").requires("cert"))
        .arg(Arg::new("help").long("help").action(ArgAction::Help).help("Print help"))
        .next_help_heading(more)
        .arg(text("rate", "PER SECOND", "An open loop: so many requests a second, whether others are answered or not").long("rate"))
        .arg(word("arrivals", ["poisson", "even"], "How an open loop's requests lie in time").long("arrivals").default_value("poisson"))
        .arg(switch("no-spin", "Sleep between requests of an open loop; latencies become less exact, and a core stays free").long("no-spin"))
        .arg(word("spread", ["uniform", "zipf", "sequence"], "How often each key is named").long("spread").default_value("uniform"))
        .arg(text("zipf", "EXPONENT", "Exponent of --spread zipf").long("zipf").default_value("0.99"))
        .arg(text("ratio", "MIX", "A mix of tests with weights, such as get=9,set=1").long("ratio").conflicts_with("tests"))
        .arg(switch("verify", "Values prove their keys, and every GET is checked").long("verify"))
        .arg(text("duration", "TIME", "Send for so long (10s, 500ms, 2m), the warm-up not counted").long("duration"))
        .arg(text("warm-up", "TIME", "Do not count the beginning").long("warm-up"))
        .arg(text("ramp", "TIME", "Let the rate, or the number of connections in use, grow for so long").long("ramp"))
        .arg(text("target", "NAME=ADDR[,pid=N]", "One of several servers that are measured in turns: host:port or a socket's path").long("target").action(ArgAction::Append))
        .arg(number("rounds", "How often every test meets every target", ROUNDS_MAX as u64).long("rounds").default_value("1"))
        .arg(number("pid", "Process of the server: its processor time and memory are part of the result", u64::from(u32::MAX)).long("pid").action(ArgAction::Append))
        .arg(file("json", "Write results as JSON; - is standard output").long("json"))
        .arg(file("html", "Write results as a page with plots").long("html"))
        .arg(number("seed", "What all chance follows from", u64::MAX).long("seed").default_value("1"))
        .arg(switch("keep-going", "Go on after error replies and lost connections, and count them").long("keep-going"))
        .arg(switch("no-progress", "No bar on the terminal").long("no-progress"))
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(std::ffi::OsString))
                .conflicts_with("ratio")
                .help("A command instead of tests; __rand_int__ and {tag} in it are replaced, and __data__ is a value"),
        )
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(value).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).action(ArgAction::SetTrue).help(help)
}

fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .value_hint(clap::ValueHint::FilePath)
        .help(help)
}

fn number(name: &'static str, help: &'static str, most: u64) -> Arg {
    let range = value_parser!(u64).range(..=most);
    Arg::new(name).value_name("N").value_parser(range).help(help)
}

fn word<const N: usize>(name: &'static str, words: [&'static str; N], help: &'static str) -> Arg {
    Arg::new(name).value_name("WORD").value_parser(PossibleValuesParser::new(words)).help(help)
}

impl Options {
    /// What a parsed command line means. `read` reads files and `stdin` standard input.
    ///
    /// # Errors
    /// In words, what of it makes no sense.
    pub fn of(
        matches: &ArgMatches,
        read: impl Fn(&PathBuf) -> std::io::Result<Vec<u8>>,
        stdin: impl FnOnce() -> std::io::Result<Vec<u8>>,
    ) -> Result<Self, String> {
        let has = |name: &str| matches.get_flag(name);
        let is_cluster = has("cluster");
        let shape = shape_of(matches, is_cluster)?;
        let plan = plan_of(matches)?;
        let works = works_of(matches, &shape, stdin)?;
        let identity = session_of(matches).identity();
        let tls = tls_of(matches, &read)?;
        let mut targets = targets_of(matches)?;
        for target in &mut targets {
            (target.identity, target.tls) = (identity.clone(), Arc::clone(&tls));
        }
        let show = match (has("csv"), has("quiet")) {
            (true, _) => Show::Csv,
            (_, true) => Show::Quiet,
            _ => Show::Page,
        };
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        Ok(Self {
            plan,
            works: works.into_iter().map(Arc::new).collect(),
            targets,
            is_cluster,
            rounds: (count(matches, "rounds") as usize).max(1),
            is_endless: has("endless"),
            show,
            precision: count(matches, "precision") as usize,
            json: path("json"),
            html: path("html"),
            has_bar: !has("no-progress") && !has("endless"),
        })
    }
}

fn count(matches: &ArgMatches, name: &str) -> u64 {
    matches.get_one::<u64>(name).copied().unwrap_or_default()
}

fn said<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

fn time(matches: &ArgMatches, name: &str) -> Result<Option<Duration>, String> {
    said(matches, name).map(|text| parse_time(text).map_err(|why| format!("--{name}: {why}"))).transpose()
}

/// Reads `500ms`, `10s`, `2m`, or seconds without a unit.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, scale) = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .unwrap_or((text, 1.0));
    let seconds = number.parse::<f64>().ok().map(|number| number * scale);
    match seconds.filter(|seconds| (0.0..=DURATION_MAX.as_secs_f64()).contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err(format!("{text:?} is no time (write 500ms, 10s or 2m, a week at most)")),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= RATE_MAX);
    rate.ok_or_else(|| format!("--rate: {text:?} is no rate (write requests a second, at most {RATE_MAX})"))
}

fn plan_of(matches: &ArgMatches) -> Result<Plan, String> {
    let spacing = if said(matches, "arrivals") == Some("even") { Spacing::Even } else { Spacing::Poisson };
    let rate = said(matches, "rate").map(parse_rate).transpose()?;
    let duration = time(matches, "duration")?;
    let requests = matches.get_one::<u64>("requests").copied();
    let connections = (count(matches, "connections") as usize).max(1);
    let pipeline = (count(matches, "pipeline") as usize).max(1);
    let is_kept = count(matches, "keep") == 1;
    if rate.is_some() && (pipeline > 1 || !is_kept) {
        return Err(
            "an open loop (--rate) sends single requests on connections that are kept: leave -P and -k out".to_owned()
        );
    }
    let threads = (count(matches, "threads") as usize).max(1);
    if threads > connections {
        return Err(format!("{threads} threads need as many connections at least (-c)"));
    }
    Ok(Plan {
        connections,
        threads,
        pipeline,
        is_kept,
        pace: rate.map_or(Pace::Closed, |rate| Pace::Open { rate, spacing }),
        requests: requests.or(if duration.is_some() { None } else { Some(100_000) }),
        duration,
        warm_up: time(matches, "warm-up")?.unwrap_or_default(),
        ramp: time(matches, "ramp")?.unwrap_or_default(),
        seed: count(matches, "seed"),
        goes_on: matches.get_flag("keep-going"),
        spins: !matches.get_flag("no-spin"),
        ..Plan::default()
    })
}

fn shape_of(matches: &ArgMatches, is_tagged: bool) -> Result<Shape, String> {
    let exponent = said(matches, "zipf").unwrap_or("0.99");
    let spread = match said(matches, "spread") {
        Some("zipf") => Spread::Zipf {
            exponent: exponent
                .parse()
                .ok()
                .filter(|exponent: &f64| (0.0..=10.0).contains(exponent))
                .ok_or_else(|| format!("--zipf: {exponent:?} is no exponent (write a number from 0 to 10)"))?,
        },
        Some("sequence") => Spread::Sequence,
        _ => Spread::Uniform,
    };
    let is_verified = matches.get_flag("verify");
    let sizes = said(matches, "size").unwrap_or(if is_verified { "64" } else { "3" });
    let sizes = Sizes::parse(sizes).map_err(|why| format!("-d: {why}"))?;
    let keys = matches.get_one::<u64>("keys").copied().filter(|keys| *keys > 0);
    let shape = Shape { keys, spread, sizes, is_verified, is_tagged };
    shape.check()?;
    Ok(shape)
}

fn works_of(
    matches: &ArgMatches,
    shape: &Shape,
    stdin: impl FnOnce() -> std::io::Result<Vec<u8>>,
) -> Result<Vec<Work>, String> {
    use std::os::unix::ffi::OsStrExt;
    let words = matches.get_many::<std::ffi::OsString>("command").into_iter().flatten();
    let mut words: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).collect();
    // What comes from standard input may be anything, and is not shown.
    let title = words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
    if matches.get_flag("stdin") {
        if words.is_empty() {
            return Err("-x needs a command whose last argument it reads".to_owned());
        }
        words.push(stdin().map_err(|error| format!("standard input cannot be read: {error}"))?);
    }
    if !words.is_empty() {
        let work = Work::of_command(title, &words, shape);
        return match shape.is_verified && !work.has_proofs() {
            true => Err("--verify: a command can only be verified if it has __data__ or is GET KEY".to_owned()),
            false => Ok(vec![work]),
        };
    }
    match said(matches, "ratio") {
        Some(mix) => Work::of_mix(mix, shape).map(|work| vec![work]).map_err(|why| format!("--ratio: {why}")),
        None if shape.is_verified && said(matches, "tests").is_none() => Work::of_list(Some("set,get"), shape),
        None => Work::of_list(said(matches, "tests"), shape).map_err(|why| format!("-t: {why}")),
    }
}

fn session_of(matches: &ArgMatches) -> Session {
    Session {
        username: said(matches, "user").map(str::to_owned),
        password: said(matches, "password").map(str::to_owned),
        database: count(matches, "database") as u32,
        is_resp3: matches.get_flag("resp3"),
        is_tracked: matches.get_flag("tracking"),
    }
}

/// The name of the only TLS settings that a run has.
const PROFILE: &str = "bench";

fn tls_of(
    matches: &ArgMatches,
    read: &impl Fn(&PathBuf) -> std::io::Result<Vec<u8>>,
) -> Result<Arc<TlsClients>, String> {
    let clients = TlsClients::default();
    if !matches.get_flag("tls") {
        return Ok(Arc::new(clients));
    }
    let load = |name: &str| {
        let path = matches.get_one::<PathBuf>(name);
        path.map(|path| read(path).map_err(|error| format!("--{name} {}: {error}", path.display()))).transpose()
    };
    let authorities_pem = load("cacert")?;
    if authorities_pem.is_none() && !matches.get_flag("insecure") {
        return Err("--tls needs --cacert with the authorities of the server's certificate, or --insecure".to_owned());
    }
    let own = match (load("cert")?, load("key")?) {
        (Some(certificate_pem), Some(key_pem)) => Some(KeyPair { certificate_pem, key_pem: key_pem.into() }),
        _ => None,
    };
    let authorities = ClientTls { authorities_pem, own: None };
    clients.set(PROFILE, &authorities).map_err(|error| format!("--cacert: {error}"))?;
    if own.is_some() {
        let all = ClientTls { own, ..authorities };
        clients.set(PROFILE, &all).map_err(|error| format!("--cert and --key: {error}"))?;
    }
    Ok(Arc::new(clients))
}

fn targets_of(matches: &ArgMatches) -> Result<Vec<Target>, String> {
    let pids: Vec<u32> = matches.get_many::<u64>("pid").into_iter().flatten().map(|pid| *pid as u32).collect();
    if pids.len() > PIDS_MAX {
        return Err(format!("--pid can be given {PIDS_MAX} times at most"));
    }
    let named: Vec<&String> = matches.get_many::<String>("target").into_iter().flatten().collect();
    if named.len() > TARGETS_MAX {
        return Err(format!("--target can be given {TARGETS_MAX} times at most"));
    }
    if named.is_empty() {
        let host = said(matches, "host").unwrap_or("127.0.0.1").to_owned();
        let endpoint = match said(matches, "socket") {
            Some(path) => Endpoint::Unix { path: path.to_owned() },
            None => tcp(matches, host, count(matches, "port") as u16),
        };
        let mut target = Target::one(endpoint.to_string(), endpoint, Session::default().identity());
        target.pids = pids;
        return Ok(vec![target]);
    }
    if !pids.is_empty() {
        return Err("with --target, a server's process is part of it: --target NAME=ADDR,pid=N".to_owned());
    }
    let targets: Result<Vec<Target>, String> = named.iter().map(|text| parse_target(matches, text)).collect();
    let targets = targets?;
    for (place, target) in targets.iter().enumerate() {
        if targets[..place].iter().any(|other| other.name == target.name) {
            return Err(format!("two targets are called {:?}", target.name));
        }
    }
    Ok(targets)
}

fn parse_target(matches: &ArgMatches, text: &str) -> Result<Target, String> {
    let form = || format!("--target: {text:?} is no target (write NAME=HOST:PORT or NAME=/PATH, and ,pid=N behind it)");
    let (name, rest) = text.split_once('=').ok_or_else(form)?;
    let mut words = rest.split(',');
    let address = words.next().filter(|address| !address.is_empty()).ok_or_else(form)?;
    let endpoint = match address.starts_with('/') {
        true => Endpoint::Unix { path: address.to_owned() },
        false => {
            let (host, port) = address.rsplit_once(':').ok_or_else(form)?;
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            tcp(matches, host, port.parse().map_err(|_| form())?)
        }
    };
    let mut target = Target::one(name, endpoint, Session::default().identity());
    for word in words {
        let pid = word.strip_prefix("pid=").and_then(|pid| pid.parse().ok()).ok_or_else(form)?;
        target.pids.push(pid);
    }
    Ok(target)
}

fn tcp(matches: &ArgMatches, host: String, port: u16) -> Endpoint {
    if !matches.get_flag("tls") {
        return Endpoint::Tcp { host, port };
    }
    let server_name = said(matches, "sni").unwrap_or(&host).to_owned();
    Endpoint::Tls { host, port, server_name, profile: PROFILE.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    fn parse(line: &str) -> Result<Options, String> {
        let words = std::iter::once("bench").chain(line.split_ascii_whitespace());
        let matches = grammar().try_get_matches_from(words).map_err(|error| error.to_string())?;
        Options::of(&matches, |_| Err(std::io::ErrorKind::NotFound.into()), || Ok(b"from stdin".to_vec()))
    }

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }

    #[test]
    fn flags_of_redis_benchmark_mean_what_they_mean_there() {
        let options =
            parse("-h ::1 -p 7 -a pw --user u -c 20 -n 1000 -d 100 --dbnum 3 -3 --threads 2 -k 0 -r 9 -P 4 -q -t get")
                .unwrap();
        let plan = &options.plan;
        assert_eq!((plan.connections, plan.requests, plan.threads, plan.pipeline), (20, Some(1000), 2, 4));
        assert!(!plan.is_kept && plan.pace == Pace::Closed && options.show == Show::Quiet);
        assert_eq!((options.works.len(), options.works[0].shape.keys), (1, Some(9)));
        assert_eq!(options.works[0].shape.sizes.only(), Some(100));
        assert_eq!(options.targets[0].nodes[0].endpoint.to_string(), "[::1]:7");
        assert_eq!(options.targets[0].identity.database, 3);
        assert!(options.targets[0].identity.credentials.is_some());
        let usual = parse("").unwrap();
        assert_eq!((usual.plan.connections, usual.plan.requests, usual.works.len()), (50, Some(100_000), 20));
        assert_eq!(usual.targets[0].name, "127.0.0.1:6379");
    }

    #[test]
    fn a_command_takes_all_that_follows() {
        let options = parse("-r 10 -n 5 lpush mylist __rand_int__ -x --csv").unwrap();
        assert_eq!(options.works[0].title, "lpush mylist __rand_int__ -x --csv");
        let options = parse("-x set key").unwrap();
        assert_eq!(options.works[0].title, "set key", "what is read may be anything");
        let mut request = Vec::new();
        options.works[0].operations[0].template.write(
            &mut request,
            &mut Keys::new(Spread::Uniform, 1, 1, 0, 1),
            0,
            &[],
        );
        assert!(request.ends_with(b"$10\r\nfrom stdin\r\n"), "{}", request.escape_ascii());
    }

    #[test]
    fn further_options_are_understood() {
        let options = parse(
            "--rate 1000 --duration 2s --warm-up 500ms --ramp 1m --ratio get=9,set=1 -r 100 --spread zipf --verify \
             --target a=h:1,pid=5,pid=6 --target b=/s --rounds 3",
        )
        .unwrap();
        assert_eq!(options.plan.pace, Pace::Open { rate: 1000.0, spacing: Spacing::Poisson });
        assert_eq!(options.plan.duration, Some(Duration::from_secs(2)));
        assert_eq!((options.plan.warm_up, options.plan.ramp), (Duration::from_millis(500), Duration::from_secs(60)));
        assert_eq!((options.plan.requests, options.rounds), (None, 3));
        assert_eq!(options.targets[0].pids, [5, 6]);
        assert_eq!(options.targets[1].nodes[0].endpoint.to_string(), "unix:/s");
        assert_eq!(options.works[0].shape.spread, Spread::Zipf { exponent: 0.99 });
        assert_eq!(options.works[0].shape.sizes.only(), Some(64));
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (line, part) in [
            ("-t gte", "there is no test \"gte\""),
            ("-d x", "-d: \"x\" is no size"),
            ("--rate 0", "is no rate"),
            ("--rate x", "is no rate"),
            ("--rate 5 -P 2", "leave -P and -k out"),
            ("--duration x", "--duration: \"x\" is no time"),
            ("--threads 9 -c 3", "9 threads need as many connections"),
            ("--verify", "more than one key (-r)"),
            ("--verify -r 9 -d 3", "32 bytes at least"),
            ("--ratio get", "no error"),
            ("--ratio gte=1", "--ratio: there is no test"),
            ("--target x", "is no target"),
            ("--target a=h:x", "is no target"),
            ("--target a=h:1 --target a=h:2", "two targets are called \"a\""),
            ("--target a=h:1 --pid 5", "pid=N"),
            ("--tls", "--cacert"),
            ("--tls --cacert nowhere", "--cacert nowhere"),
            ("--spread zipf --zipf 11", "is no exponent"),
            ("-x", "-x needs a command"),
            ("--user u", "-a <PASSWORD>"),
            ("-p 70000", "70000 is not in"),
            ("--csv -q", "cannot be used with"),
        ] {
            match parse(line) {
                Err(why) => assert!(why.contains(part), "{line}: {why}"),
                Ok(_) => assert_eq!(part, "no error", "{line}"),
            }
        }
    }
}
