//! Figures of the server, a line for every interval.

use std::time::Duration;

use respool_command::human_bytes;
use respool_wire::{Part, ReplyKind, part};

use crate::console::Console;
use crate::session::Failure;

/// Lines behind which the names of the columns are printed again.
const LINES: u64 = 20;

const HEAD: &str = "\
------- data ------ --------------------- load -------------------- - child -
keys       mem      clients blocked requests            connections          ";

/// Prints lines until there are as many as `-r` says, or without end.
pub(crate) fn run(console: &mut Console<'_>) -> Result<bool, Failure> {
    let interval = console.options.interval.unwrap_or(Duration::from_secs(1));
    let mut requests = None;
    let mut printed = 0;
    let rounds = console.options.rounds();
    while rounds.is_none_or(|rounds| printed < rounds) {
        console.connect()?;
        let reply = console.session.ask(&["INFO"])?;
        let text = match part(&reply) {
            Some(Part::Leaf(ReplyKind::Bulk | ReplyKind::Verbatim, text)) => String::from_utf8_lossy(text).into_owned(),
            _ => return super::refused("INFO", &reply),
        };
        if printed % LINES == 0 {
            writeln!(console.out, "{HEAD}")?;
        }
        let now = number(&text, "total_commands_processed");
        writeln!(console.out, "{}", line(&text, requests.replace(now)))?;
        console.out.flush()?;
        printed += 1;
        if rounds.is_none_or(|rounds| printed < rounds) {
            console.session.pause(interval);
        }
        if console.session.is_stopped() {
            break;
        }
    }
    Ok(true)
}

fn line(info: &str, before: Option<u64>) -> String {
    let requests = number(info, "total_commands_processed");
    let requests = format!("{requests} (+{})", before.map_or(0, |before| requests.saturating_sub(before)));
    let is_on = |name: &str| number(info, name) == 1;
    let child = match (is_on("rdb_bgsave_in_progress"), is_on("aof_rewrite_in_progress")) {
        (true, true) => "SAVE+AOF",
        (true, false) => "SAVE",
        (false, true) => "AOF",
        (false, false) => "",
    };
    format!(
        "{:<11}{:<8} {:<8}{:<8}{:<19} {:<12}{child}",
        keys(info),
        human_bytes(number(info, "used_memory")),
        number(info, "connected_clients"),
        number(info, "blocked_clients"),
        requests,
        number(info, "total_connections_received"),
    )
}

fn fields(info: &str) -> impl Iterator<Item = (&str, &str)> {
    info.lines().filter_map(|line| line.trim_end().split_once(':'))
}

fn number(info: &str, name: &str) -> u64 {
    fields(info).find(|(field, _)| *field == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// The keys of all databases.
fn keys(info: &str) -> u64 {
    let is_database =
        |name: &str| name.strip_prefix("db").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let counts = fields(info).filter(|(name, _)| is_database(name)).filter_map(|(_, value)| {
        let count = value.split(',').find_map(|part| part.strip_prefix("keys="))?;
        count.parse::<u64>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_made_from_what_info_says() {
        let info = "# Stats\r\nused_memory:1048576\r\nconnected_clients:3\r\nblocked_clients:1\r\n\
            total_commands_processed:50\r\ntotal_connections_received:7\r\nrdb_bgsave_in_progress:1\r\n\
            db0:keys=5,expires=0,avg_ttl=0\r\ndb12:keys=2,expires=0\r\ndbx:keys=9\r\n";
        let shown = line(info, Some(40));
        assert_eq!(shown, "7          1.00M    3       1       50 (+10)            7           SAVE");
        assert!(line(info, None).contains("50 (+0)"));
    }
}
