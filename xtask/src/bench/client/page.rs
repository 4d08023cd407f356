//! The tables, and the page that has them.

use std::fmt::Write;
use std::io;

use super::bars::Bar;
use super::samples::{Conditions, Samples};
use super::scenario::Scenario;
use super::{OURS, Options};
use crate::command;

/// One scenario: a row for each client.
pub(crate) fn table(scenario: &Scenario, peers: &[&str], samples: &Samples) -> String {
    let mut text = format!("### {}\n\n", scenario.title);
    if let Some(Conditions { rounds, seconds, load }) = samples.conditions(scenario.name) {
        let plural = if rounds == 1 { "" } else { "s" };
        let load = if load.is_nan() { String::new() } else { format!(", load {load:.1} at the end") };
        let _ = write!(text, "{rounds} round{plural} of {seconds} s{load}.\n\n");
    }
    text += "| client |";
    scenario.columns.iter().for_each(|column| text += &format!(" {} |", column.1));
    text += "\n|---|";
    scenario.columns.iter().for_each(|_| text += "---|");
    text.push('\n');
    for peer in peers.iter().filter(|peer| samples.peers(scenario.name).any(|measured| measured == **peer)) {
        let name = if OURS.contains(peer) { format!("**{peer}**") } else { (*peer).to_owned() };
        let _ = write!(text, "| {name} |");
        for column in scenario.columns {
            let figure = samples.median(scenario.name, peer, column.0);
            let figure = figure.map_or("-".to_owned(), |figure| grouped(figure, column.2));
            let _ = write!(text, " {figure} |");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A number with commas between its thousands.
fn grouped(figure: f64, digits: usize) -> String {
    let text = format!("{figure:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut groups = String::new();
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if place > 0 && left.is_multiple_of(3) && !groups.ends_with('-') {
            groups.push(',');
        }
        groups.push(digit);
    }
    groups + rest
}

/// The whole page.
pub(crate) fn page(
    options: &Options,
    scenarios: &[Scenario],
    peers: &[&str],
    samples: &Samples,
    bars: &[Bar],
) -> io::Result<String> {
    let machine = super::report::machine();
    let mut server = std::process::Command::new("redis-server");
    let server = command::capture(server.arg("--version"))?;
    let server = server.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or("of an unknown version");
    let mut text = format!(
        "# The client library beside other clients\n\n\
         Written by `cargo xtask bench client --write`. Medians of rounds in which all clients take turns, of two the higher figure; each\n\
         measurement is a process of its own on a redis-server {server} of its own, over TCP on loopback. Keys of 16 bytes, values of {},\n\
         every value that is read is checked. Runtimes with {}. {}, {} processors, kernel {}{}.\n\n\
         Clients in Rust are built with cargo's release profile, as their users have them. The versions are in the lock files of\n\
         `bench/client`. `TCP_NODELAY` is on for all. Figures of clients in different languages differ in their runtimes, too.{}\n\n\
         ![Operations a second and one caller's time](bench-client.svg)\n\n",
        options.value_bytes,
        if options.workers == 0 { "one thread".to_owned() } else { format!("{} threads", options.workers) },
        machine["processor"].as_str().unwrap_or("unknown processor"),
        machine["cores"],
        machine["kernel"].as_str().unwrap_or("unknown"),
        if options.pin { ", the server on the first, clients on the second" } else { "" },
        samples.notes.iter().map(|note| format!("\n{note}.")).collect::<String>(),
    );
    scenarios.iter().for_each(|scenario| text += &table(scenario, peers, samples));
    text += "### Aims\n\n| what | wanted | reached (lowest to highest round) | |\n|---|---|---|---|\n";
    for bar in bars {
        let mark = if bar.is_reached { "" } else { "**short**" };
        let _ = writeln!(text, "| {} | {} | {} | {mark} |", bar.what, bar.wanted, bar.reached);
    }
    if !samples.failures.is_empty() {
        text += "\n### Not measured\n\n";
        samples.failures.iter().for_each(|failure| text += &format!("* {failure}\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (figure, digits, text) in
            [(1234567.0, 0, "1,234,567"), (999.5, 1, "999.5"), (0.0, 0, "0"), (1000.25, 2, "1,000.25")]
        {
            assert_eq!(grouped(figure, digits), text);
        }
    }
}
