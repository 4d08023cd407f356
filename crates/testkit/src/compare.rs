//! The same script to two servers, reply by reply.

use std::io;

use crate::{Address, Client, Request, Rng, Script, Subset, elements, request};

/// Requests sent in one go at most.
const BATCH_MAX: usize = 40;
/// Requests before a difference that are told of with it.
const HISTORY_MAX: usize = 12;

/// A comparison to be made.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// What both servers can do.
    pub subset: Subset,
    /// The protocol version that both clients ask for: 2 or 3.
    pub protocol: u8,
    /// Requests to send to each.
    pub requests: usize,
    /// What the script follows from.
    pub seed: u64,
}

/// Sends one script to both servers in pipelines and odd pieces; returns how many replies were errors, or fails with
/// the first difference, the requests before it that share a key with it, and the seed.
pub fn compare(expected: &Address, subject: &Address, comparison: &Comparison) -> io::Result<usize> {
    let Comparison { subset, protocol, requests, seed } = *comparison;
    let mut script = Script::new(seed, subset);
    let mut rng = Rng::part(seed, 1);
    let mut clients = [Client::connect(expected)?, Client::connect(subject)?];
    if protocol == 3 {
        for client in &mut clients {
            client.ask("HELLO 3")?;
        }
    }
    let mut history: Vec<Request> = Vec::new();
    let mut errors = 0;
    let mut left = requests;
    while left > 0 {
        let count = rng.between(1, BATCH_MAX).min(left);
        let batch: Vec<Request> = (0..count).map(|_| script.next_request()).collect();
        let bytes: Vec<u8> = batch.iter().flat_map(|one| request(&one.arguments)).collect();
        clients[0].send(&bytes)?;
        let piece = *rng.pick(&[usize::MAX, 5_000, 100]);
        clients[1].send_in_pieces(&bytes, piece.min(bytes.len()))?;
        for sent in batch {
            let said = clients[0].reply()?;
            let heard = clients[1].reply().map_err(|error| {
                let told = tell(&history, &sent);
                io::Error::new(error.kind(), format!("{error} instead of {}; {comparison:?}{told}", shown(&said)))
            })?;
            if said != heard && !(sent.is_unordered && is_same_unordered(&said, &heard)) {
                let told = tell(&history, &sent);
                return Err(io::Error::other(format!(
                    "replies differ, {comparison:?}\nexpected {}\nsubject  {}{told}",
                    shown(&said),
                    shown(&heard)
                )));
            }
            errors += usize::from(said.starts_with(b"-"));
            history.push(sent);
        }
        left -= count;
    }
    Ok(errors)
}

fn is_same_unordered(one: &[u8], other: &[u8]) -> bool {
    let sorted = |reply| {
        let mut elements = elements(reply);
        elements.sort_unstable();
        elements
    };
    one.first() == other.first() && sorted(one) == sorted(other)
}

/// The request that differed and the last ones before it that have an argument in common with it.
fn tell(history: &[Request], last: &Request) -> String {
    let related = |one: &&Request| one.arguments[1..].iter().any(|argument| last.arguments[1..].contains(argument));
    let mut lines: Vec<String> = history.iter().rev().filter(related).take(HISTORY_MAX).map(line).collect();
    lines.reverse();
    lines.push(line(last));
    format!("\nafter\n  {}", lines.join("\n  "))
}

fn line(request: &Request) -> String {
    request.arguments.iter().map(|argument| shown(argument)).collect::<Vec<_>>().join(" ")
}

fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(300)];
    let text = start.escape_ascii().to_string();
    if start.len() < bytes.len() { format!("{text}... ({} bytes)", bytes.len()) } else { text }
}
