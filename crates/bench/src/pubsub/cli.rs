//! The command line of the experiment: the flags of the ancestor, and those beyond them.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use respool_connection::Endpoint;

use super::Output;
use super::message::CLASSES;
use super::plan::Plan;
use crate::cli::parse_time;
use crate::limits::{CONNECTIONS_MAX, RATE_MAX, VALUE_BYTES_MAX};
use crate::target::{Session, Target};

/// The environment variable that says where the server is.
pub const ADDRESS_ENV: &str = "REDIS_HOST_ADDRESS";

const EXAMPLES: &str = "\
Examples:
  REDIS_HOST_ADDRESS=127.0.0.1:6379 respool bench pubsub subscribe -n 1000000 -p 2
      hear a million channels until two publishing processes have ended
  REDIS_HOST_ADDRESS=127.0.0.1:6379 respool bench pubsub publish -n 1000000 -r 20000 -b 8 --duration 30s
      publish to them
  REDIS_HOST_ADDRESS=127.0.0.1:6379 respool bench pubsub both -n 100000 -r 4000 -s 5 --duration 30s
      one of five processes that do both, and begin together";

/// The grammar of `respool bench pubsub`, or of `respool pubsub`.
#[must_use]
pub fn grammar() -> Command {
    let mode = |name: &'static str, about: &'static str| Command::new(name).about(about);
    // In front of the mode, as the ancestor has them, or behind it.
    flags(Command::new("pubsub"))
        .mut_args(|flag| flag.global(true))
        .about("Measure publish/subscribe: many channels, exact rates, latencies, lost and reordered messages")
        .long_about(format!(
            "The experiment with many channels: processes publish to channels that are numbers, and processes hear them. The \
             server's address is in the environment variable {ADDRESS_ENV}, or behind --address."
        ))
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(mode("publish", "Publish; with -s also subscribe, as the ancestor does"))
        .subcommand(mode("subscribe", "Subscribe to all channels, until -p publishing processes have ended"))
        .subcommand(mode("both", "Subscribe to all channels and publish"))
}

fn flags(command: Command) -> Command {
    let number = |name: &'static str, help: &'static str, most: u64| {
        Arg::new(name).value_name("N").value_parser(value_parser!(u64).range(..=most)).help(help)
    };
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let switch = |name: &'static str, help: &'static str| Arg::new(name).action(ArgAction::SetTrue).help(help);
    command
        .arg(text("address", "ADDR", "The server: host:port or a socket's path [env: REDIS_HOST_ADDRESS]"))
        .arg(
            Arg::new("rate")
                .short('r')
                .value_name("PER SECOND")
                .default_value("1000")
                .help("Messages a second that this process publishes; 0: as many as go"),
        )
        .arg(number("channels", "Channels: the numbers below this", 1 << 32).short('n').default_value("1000"))
        .arg(
            number("publishers", "Publishing processes whose end is waited for; 0: until a signal", 1_000_000)
                .short('p')
                .default_value("1"),
        )
        .arg(number("batch", "Messages that are written together; 0 as 1", 100_000).short('b').default_value("1"))
        .arg(number("processes", "Processes that begin together", 1_000_000).short('s').default_value("0"))
        .arg(switch("reset", "Set the counter of processes back first").short('c'))
        .arg(
            number("flush", "Milliseconds that a message waits for others of its batch, at most", 60_000)
                .short('f')
                .default_value("50"),
        )
        .arg(
            number("subscribing", "Connections that subscribe", CLASSES)
                .long("subscribe-connections")
                .default_value("16"),
        )
        .arg(
            number("publishing", "Connections that publish", CONNECTIONS_MAX.min(60_000) as u64)
                .long("publish-connections")
                .default_value("4"),
        )
        .arg(number("chunk", "Channels in one SUBSCRIBE", 100_000).long("chunk").default_value("1000"))
        .arg(number("payload", "Bytes of a message", VALUE_BYTES_MAX as u64).long("payload").default_value("64"))
        .arg(number("messages", "Messages that this process publishes", 1 << 53).long("messages"))
        .arg(text("duration", "TIME", "How long this process publishes (10s, 2m) [default: until a signal]"))
        .arg(switch("sharded", "Sharded channels: SPUBLISH and SSUBSCRIBE").long("sharded"))
        .arg(switch("patterns", "Subscribe by patterns that match the same channels").long("patterns"))
        .arg(switch("resp3", "Speak RESP3").short('3'))
        .arg(Arg::new("password").short('a').value_name("PASSWORD").allow_hyphen_values(true).help("Password for AUTH"))
        .arg(Arg::new("user").long("user").value_name("NAME").requires("password").help("User for AUTH"))
        .arg(number("seed", "What all chance follows from", u64::MAX).long("seed").default_value("1"))
        .arg(switch("json", "Print JSON").long("json"))
        .arg(switch("no-progress", "No line on the terminal meanwhile").long("no-progress"))
}

/// What a parsed command line means. `address` is what the environment says; `process` is a number of this process alone.
///
/// # Errors
/// In words, what of it makes no sense.
pub fn understand(
    matches: &ArgMatches,
    address: Option<String>,
    process: u32,
) -> Result<(Plan, Target, Output), String> {
    let (mode, matches) = matches.subcommand().ok_or("publish, subscribe or both?")?;
    let number = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let said = |name: &str| matches.get_one::<String>(name).cloned();
    let address = said("address").or(address).filter(|address| !address.is_empty());
    let address =
        address.ok_or_else(|| format!("where is the server? (set {ADDRESS_ENV} to host:port, or say --address)"))?;
    let rate = said("rate").unwrap_or_default();
    let rate = rate.parse::<f64>().ok().filter(|rate| (0.0..=RATE_MAX).contains(rate));
    let rate = rate.ok_or_else(|| format!("-r: a rate is a number of messages a second, at most {RATE_MAX}"))?;
    let duration = said("duration").map(|text| parse_time(&text).map_err(|why| format!("--duration: {why}")));
    let plan = Plan {
        subscribes: mode != "publish" || number("processes") > 0,
        publishes: mode != "subscribe",
        channels: number("channels").max(1),
        rate,
        batch: number("batch").max(1) as usize,
        flush: Duration::from_millis(number("flush")),
        publishers: if mode == "subscribe" || number("processes") == 0 {
            number("publishers")
        } else {
            number("processes").max(number("publishers"))
        },
        processes: number("processes"),
        resets: matches.get_flag("reset"),
        subscribing: number("subscribing").max(1) as usize,
        publishing: number("publishing").max(1) as usize,
        chunk: number("chunk").max(1) as usize,
        payload: number("payload") as usize,
        messages: matches.get_one::<u64>("messages").copied(),
        duration: duration.transpose()?,
        is_sharded: matches.get_flag("sharded"),
        has_patterns: matches.get_flag("patterns"),
        process,
        seed: number("seed"),
    };
    plan.check()?;
    let session = Session {
        username: said("user"),
        password: said("password"),
        is_resp3: matches.get_flag("resp3"),
        ..Session::default()
    };
    let target = Target::one("server", endpoint(&address)?, session.identity());
    let output = Output { is_json: matches.get_flag("json"), has_bar: !matches.get_flag("no-progress") };
    Ok((plan, target, output))
}

fn endpoint(address: &str) -> Result<Endpoint, String> {
    if address.starts_with('/') {
        return Ok(Endpoint::Unix { path: address.to_owned() });
    }
    let form = || format!("{address:?} is no address (write host:port or a socket's path)");
    // A host alone is at the usual port, as with the ancestor's client library.
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| form())?),
        None => (address, 6379),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() { Err(form()) } else { Ok(Endpoint::Tcp { host, port }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, address: Option<&str>) -> Result<(Plan, Target, Output), String> {
        let words = std::iter::once("pubsub").chain(line.split_ascii_whitespace());
        let matches = grammar().try_get_matches_from(words).map_err(|error| error.to_string())?;
        understand(&matches, address.map(str::to_owned), 7)
    }

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }

    #[test]
    fn the_ancestors_flags_mean_what_they_meant() {
        let (plan, target, _) = parse("publish -r 4000 -n 500000 -b 8 -f 20", Some("h:7")).unwrap();
        assert_eq!((plan.rate, plan.channels, plan.batch, plan.flush), (4000.0, 500_000, 8, Duration::from_millis(20)));
        assert!(plan.publishes && !plan.subscribes);
        assert_eq!(target.nodes[0].endpoint.to_string(), "h:7");
        let (plan, ..) = parse("subscribe -n 10 -p 3", Some("h")).unwrap();
        assert!(plan.subscribes && !plan.publishes && plan.publishers == 3);
        let (plan, ..) = parse("-n=10 -p 4 -r 7 subscribe", Some("h")).unwrap();
        assert_eq!((plan.publishes, plan.publishers, plan.channels, plan.rate), (false, 4, 10, 7.0));
        let (plan, ..) = parse("publish -s 5 -c", Some("h")).unwrap();
        assert!(plan.subscribes && plan.publishes && plan.resets && (plan.processes, plan.publishers) == (5, 5));
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (line, address, part) in [
            ("both", None, "REDIS_HOST_ADDRESS"),
            ("both", Some("h:x"), "is no address"),
            ("both -r x", Some("h"), "-r: a rate"),
            ("both --sharded --patterns", Some("h"), "no patterns of sharded"),
            ("both --payload 3", Some("h"), "44 bytes at least"),
            ("both --duration x", Some("h"), "--duration"),
            ("", Some("h"), "requires a subcommand"),
        ] {
            let why = parse(line, address).expect_err(line);
            assert!(why.contains(part) || line.is_empty(), "{line}: {why}");
        }
    }
}
