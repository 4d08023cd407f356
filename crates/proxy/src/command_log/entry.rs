//! What a log keeps of a request: its arguments, shortened as by redis-server, and those that may be secret covered.

use crate::limits::{SLOW_ARG_BYTES_MAX, SLOW_ARGS_MAX};
use respool_command::{Row, is_secret_argument};
use respool_wire::Args;

/// What stands in the place of a secret, as in Redis.
const COVERED: &[u8] = b"(redacted)";

/// One entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Numbers go on when the log is emptied.
    pub(crate) id: u64,
    /// Seconds since the Unix epoch.
    pub(crate) unix_s: u64,
    /// Microseconds, or bytes.
    pub(crate) figure: u64,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) address: String,
    pub(crate) name: String,
}

/// The arguments of a request as a log has them.
pub(crate) fn shortened(row: &Row, args: Args<'_>) -> Vec<Vec<u8>> {
    let is_cut = args.len() > SLOW_ARGS_MAX;
    let kept = if is_cut { SLOW_ARGS_MAX - 1 } else { args.len() };
    let mut arguments: Vec<Vec<u8>> = (0..kept).map(|place| shown(row, args, place)).collect();
    if is_cut {
        arguments.push(format!("... ({} more arguments)", args.len() - kept).into_bytes());
    }
    arguments
}

fn shown(row: &Row, args: Args<'_>, place: usize) -> Vec<u8> {
    let arg = args.at(place);
    if is_secret_argument(row, args, place) {
        return COVERED.to_vec();
    }
    match arg.split_at_checked(SLOW_ARG_BYTES_MAX) {
        Some((start, rest)) if !rest.is_empty() => {
            [start, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
        }
        _ => arg.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::resolve;
    use respool_wire::ArgsBuf;

    fn shown_as(request: &str) -> String {
        let args: ArgsBuf = request.split(' ').collect();
        let row = resolve(args.as_args()).expect("a known command");
        let shown = shortened(row, args.as_args());
        shown.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn secrets_are_covered_and_the_rest_is_as_it_was() {
        for (request, shown) in [
            ("acl setuser u >canary +get", "acl setuser (redacted) (redacted) (redacted)"),
            ("config set masterauth canary", "config set masterauth (redacted)"),
            ("config set hz 7 requirepass canary", "config set hz 7 requirepass (redacted)"),
            ("config set unheard-of canary", "config set unheard-of (redacted)"),
            ("hello 3 AUTH u canary SETNAME n", "hello 3 AUTH (redacted) (redacted) SETNAME n"),
            ("migrate h 1 key 9 5000", "migrate h 1 key 9 5000"),
            ("migrate h 1 key 9 5000 AUTH canary", "migrate h 1 key 9 5000 AUTH (redacted)"),
            ("migrate h 1 key 9 5000 AUTH2 u canary", "migrate h 1 key 9 5000 AUTH2 (redacted) (redacted)"),
            ("auth canary", "auth (redacted)"),
            ("SPOP set 10", "SPOP set 10"),
        ] {
            assert_eq!(shown_as(request), shown);
        }
    }

    #[test]
    fn long_requests_are_shortened_as_redis_does() {
        let members: Vec<String> = (3..=33).map(|number| number.to_string()).collect();
        let request = format!("sadd set {}", members.join(" "));
        let shown = shown_as(&request);
        assert!(shown.ends_with(" 31 ... (2 more arguments)"), "{shown}");
        let long = "A".repeat(129);
        assert_eq!(shown_as(&format!("set k {long}")), format!("set k {}... (1 more bytes)", &long[1..]));
        let just = "A".repeat(128);
        assert_eq!(shown_as(&format!("set k {just}")), format!("set k {just}"));
    }
}
