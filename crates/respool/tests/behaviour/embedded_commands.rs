//! Every command of redis-server 7.0, sent to it and to an embedded server: which are unknown, refused or answered otherwise.
//!
//! The requests are in `tests/data/requests-7.0.txt`, with the reason of each command that stays different. A command of the
//! server without a request fails the test, and so does a reason for a command that does not differ.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use respool_testkit::{Client, Likeness, RedisServer, are_alike, elements};

use super::proxy;

const REQUESTS: &str = include_str!("../data/requests-7.0.txt");

/// One line of the file.
struct Line {
    likeness: Likeness,
    /// The command as `COMMAND LIST` names it: `client|list`.
    name: String,
    arguments: Vec<Vec<u8>>,
    text: &'static str,
}

/// The bytes of a word: `\x20` is a space, `""` an empty word.
fn bytes(word: &str) -> Vec<u8> {
    if word == "\"\"" {
        return Vec::new();
    }
    let mut parts = word.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two digits follow"));
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

fn line(text: &'static str, names: &BTreeSet<String>) -> Line {
    let mut words = text.split(' ');
    let likeness = match words.next() {
        Some("=") => Likeness::Same,
        Some("~") => Likeness::Alike,
        Some("?") => Likeness::Kind,
        Some("!") => Likeness::NotSent,
        _ => panic!("no likeness: {text}"),
    };
    let arguments: Vec<Vec<u8>> = words.map(bytes).collect();
    let word = |at: usize| arguments.get(at).map(|word| String::from_utf8_lossy(word).to_lowercase());
    let first = word(0).expect("a request has a name");
    let full = word(1).map(|second| format!("{first}|{second}")).filter(|full| names.contains(full));
    Line { likeness, name: full.unwrap_or(first), arguments, text }
}

fn bulks(reply: &[u8]) -> Vec<String> {
    let content = |bulk: &[u8]| String::from_utf8_lossy(bulk).split("\r\n").nth(1).map(str::to_owned);
    elements(reply).into_iter().filter_map(content).collect()
}

/// The names of the commands of a server, those of containers that cannot be called themselves left out.
fn names(client: &mut Client) -> io::Result<BTreeSet<String>> {
    let all = bulks(&client.command(&["COMMAND", "LIST"])?);
    let containers: BTreeSet<&str> = all.iter().filter_map(|name| Some(name.split_once('|')?.0)).collect();
    let is_called = |name: &&String| *name == "command" || !containers.contains(name.as_str());
    Ok(all.iter().filter(is_called).cloned().collect())
}

/// The reply, or that the connection was closed.
fn reply(client: &mut Client, arguments: &[Vec<u8>]) -> Vec<u8> {
    client.command(arguments).unwrap_or_else(|error| format!("-({error})\r\n").into_bytes())
}

#[test]
fn every_command_of_redis_7_is_answered_or_has_a_reason() -> io::Result<()> {
    let server = RedisServer::start_with(&["--enable-debug-command", "yes"])?;
    let embedded = proxy(&[], &[])?;
    let [mut direct, mut subject] = [server.client()?, embedded.client()?];
    let names = names(&mut direct)?;
    let lines: Vec<&str> = REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let reasons: BTreeMap<String, &str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("- "))
        .flat_map(|line| {
            let (listed, reason) = line.split_once(": ").expect("a reason follows");
            listed.split(',').map(move |name| (name.trim().to_lowercase().replace(' ', "|"), reason))
        })
        .collect();
    let requests: Vec<Line> = lines.iter().filter(|l| !l.starts_with("- ")).map(|text| line(text, &names)).collect();

    let asked: BTreeSet<String> = requests.iter().map(|line| line.name.clone()).collect();
    let missing: Vec<&String> = names.difference(&asked).collect();
    assert!(missing.is_empty(), "no request is made of {missing:?}");

    let mut different: BTreeMap<String, String> = BTreeMap::new();
    for line in &requests {
        if line.likeness == Likeness::NotSent {
            different.insert(line.name.clone(), line.text.to_owned());
            continue;
        }
        let (said, heard) = (reply(&mut direct, &line.arguments), reply(&mut subject, &line.arguments));
        if !are_alike(line.likeness, &said, &heard) {
            let cut = |reply: &[u8]| reply[..reply.len().min(300)].escape_ascii().to_string();
            let told = format!("{}\n  redis    {}\n  embedded {}", line.text, cut(&said), cut(&heard));
            different.entry(line.name.clone()).or_insert(told);
        }
        if said.starts_with(b"-(") || heard.starts_with(b"-(") {
            [direct, subject] = [server.client()?, embedded.client()?];
        }
    }
    let unexplained: Vec<&String> =
        different.iter().filter(|(name, _)| !reasons.contains_key(*name)).map(|(_, told)| told).collect();
    assert!(
        unexplained.is_empty(),
        "{} differ:\n{}",
        unexplained.len(),
        unexplained.iter().fold(String::new(), |all, one| all + one + "\n")
    );
    let settled: Vec<&String> = reasons.keys().filter(|name| !different.contains_key(*name)).collect();
    assert!(settled.is_empty(), "there is no difference left to explain: {settled:?}");
    Ok(())
}
