//! Walks over all keys: their names, the largest, the most used.

use std::collections::HashMap;
use std::io::Write;

use respool_wire::{Part, ReplyKind, elements, encode_request, part};

use crate::console::Console;
use crate::limits::HOT_KEYS;
use crate::options::Which;
use crate::render::{Format, quote};
use crate::session::Failure;

/// A type's name, the command that tells a size, and what that counts.
type Kind = (&'static str, &'static str, &'static str);

/// Types whose sizes are known, how to ask for one, and what it counts. The order is that of the summary.
const TYPES: [Kind; 6] = [
    ("list", "LLEN", "items"),
    ("hash", "HLEN", "fields"),
    ("string", "STRLEN", "bytes"),
    ("stream", "XLEN", "entries"),
    ("set", "SCARD", "members"),
    ("zset", "ZCARD", "members"),
];

/// SCANs behind which a walk pauses, if it is to.
const PAUSE_EVERY: u64 = 100;

/// How large a key is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measure {
    /// By its elements.
    Elements,
    /// By its memory, estimated from so many of its elements.
    Memory(Option<u64>),
}

/// Goes from one part of the keys to the next.
struct Walk {
    request: Vec<Vec<u8>>,
    is_over: bool,
    scans: u64,
}

impl Walk {
    fn new(which: &Which) -> Self {
        let mut request = vec![b"SCAN".to_vec(), b"0".to_vec()];
        let mut option = |name: &str, value: Option<Vec<u8>>| {
            if let Some(value) = value {
                request.extend([name.as_bytes().to_vec(), value]);
            }
        };
        option("MATCH", which.pattern.clone());
        option("COUNT", which.count.map(|count| count.to_string().into_bytes()));
        option("TYPE", which.of_type.clone());
        Self { request, is_over: false, scans: 0 }
    }

    /// The next keys; there may be none. `None` at the end.
    fn next(&mut self, console: &mut Console<'_>, pauses_every: u64) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        if self.is_over || console.session.is_stopped() {
            return Ok(None);
        }
        if self.scans > 0
            && self.scans.is_multiple_of(pauses_every)
            && let Some(interval) = console.options.interval
        {
            console.session.pause(interval);
        }
        self.scans += 1;
        console.connect()?;
        let reply = console.session.ask(&self.request)?;
        let mut halves = elements(&reply).into_iter().flatten();
        let cursor = halves.next().and_then(text_of);
        let Some((cursor, keys)) = cursor.zip(halves.next().and_then(elements)) else {
            return super::refused("SCAN", &reply).map(|_| None);
        };
        self.is_over = cursor == b"0";
        let keys = keys.filter_map(text_of).map(<[u8]>::to_vec).collect();
        self.request[1] = cursor.to_vec();
        Ok(Some(keys))
    }
}

fn text_of(reply: &[u8]) -> Option<&[u8]> {
    match part(reply) {
        Some(Part::Leaf(ReplyKind::Bulk | ReplyKind::Simple, text)) => Some(text),
        _ => None,
    }
}

fn number_of(reply: &[u8]) -> Option<u64> {
    match part(reply) {
        Some(Part::Leaf(ReplyKind::Integer, text)) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Asks several things with one write. The replies are in the same order.
fn ask_all(console: &mut Console<'_>, requests: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| encode_request(&mut bytes, request.iter().copied()));
    console.session.write_all(&bytes)?;
    requests.iter().map(|_| console.session.reply(None)).collect()
}

/// Prints the names of keys, a line each.
pub(crate) fn names(console: &mut Console<'_>, which: &Which) -> Result<bool, Failure> {
    let mut walk = Walk::new(which);
    while let Some(keys) = walk.next(console, 1)? {
        let mut out = Vec::new();
        for key in keys {
            if console.options.format == Format::Terminal {
                quote(&key, &mut out)
            } else {
                out.extend_from_slice(&key)
            }
            out.push(b'\n');
        }
        console.out.write_all(&out)?;
        console.out.flush()?;
    }
    Ok(true)
}

/// What was found of one type.
#[derive(Debug, Default)]
struct Found {
    keys: u64,
    total: u64,
    largest: Option<(Vec<u8>, u64)>,
}

/// Prints the largest key of each type as it is found, and a summary.
pub(crate) fn largest(console: &mut Console<'_>, which: &Which, measure: &Measure) -> Result<bool, Failure> {
    write!(
        console.out,
        "\n# Scanning the entire keyspace to find biggest keys as well as\n\
         # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
         # per 100 SCAN commands (not usually needed).\n\n"
    )?;
    console.connect()?;
    let total_keys = console.session.ask(&["DBSIZE"]).map(|reply| number_of(&reply).unwrap_or(0))?;
    let samples = match measure {
        Measure::Memory(Some(samples)) => Some(samples.to_string().into_bytes()),
        _ => None,
    };
    let mut found: HashMap<&'static str, Found> = HashMap::new();
    let (mut sampled, mut name_bytes) = (0_u64, 0_u64);
    let mut walk = Walk::new(which);
    while let Some(keys) = walk.next(console, PAUSE_EVERY)? {
        let share = share_of(sampled, total_keys);
        let types: Vec<Vec<&[u8]>> = keys.iter().map(|key| vec![&b"TYPE"[..], key]).collect();
        let types = ask_all(console, &types)?;
        // A key may be gone by now, or of a type of a module's.
        let known: Vec<(&Vec<u8>, Kind)> = keys
            .iter()
            .zip(&types)
            .filter_map(|(key, reply)| {
                let name = text_of(reply)?;
                Some((key, *TYPES.iter().find(|(of_type, ..)| of_type.as_bytes() == name)?))
            })
            .collect();
        let sizes: Vec<Vec<&[u8]>> = known
            .iter()
            .map(|(key, (_, length, _))| match measure {
                Measure::Elements => vec![length.as_bytes(), key],
                Measure::Memory(_) => {
                    let mut request = vec![&b"MEMORY"[..], b"USAGE", key];
                    if let Some(samples) = &samples {
                        request.extend([&b"SAMPLES"[..], samples]);
                    }
                    request
                }
            })
            .collect();
        let sizes = ask_all(console, &sizes)?;
        for ((key, (of_type, _, unit)), reply) in known.into_iter().zip(&sizes) {
            let Some(size) = number_of(reply) else { continue };
            let unit = if matches!(measure, Measure::Memory(_)) { "bytes" } else { unit };
            sampled += 1;
            name_bytes += key.len() as u64;
            let one = found.entry(of_type).or_default();
            one.keys += 1;
            one.total += size;
            if one.largest.as_ref().is_none_or(|(_, most)| size > *most) {
                writeln!(
                    console.out,
                    "[{share}%] Biggest {of_type:<6} found so far '{}' with {size} {unit}",
                    quoted(key)
                )?;
                console.out.flush()?;
                one.largest = Some((key.clone(), size));
            }
        }
    }
    summary(console.out, measure, &found, sampled, name_bytes)?;
    Ok(true)
}

/// A share in per cent as redis-cli writes it.
fn share_of(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    format!("{share:05.2}")
}

fn quoted(key: &[u8]) -> String {
    let mut text = Vec::new();
    quote(key, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn summary(
    out: &mut dyn Write,
    measure: &Measure,
    found: &HashMap<&'static str, Found>,
    sampled: u64,
    name_bytes: u64,
) -> Result<(), Failure> {
    let average = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
    writeln!(out, "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!")?;
    writeln!(out, "Total key length in bytes is {name_bytes} (avg len {:.2})\n", average(name_bytes, sampled))?;
    let none = Found::default();
    let of = |name: &str| found.get(name).unwrap_or(&none);
    let unit_of = |unit: &'static str| if matches!(measure, Measure::Memory(_)) { "bytes" } else { unit };
    for (name, _, unit) in TYPES {
        if let Some((key, size)) = &of(name).largest {
            writeln!(out, "Biggest {name:>6} found '{}' has {size} {}", quoted(key), unit_of(unit))?;
        }
    }
    writeln!(out)?;
    let mut types = TYPES;
    // Those that there are come first.
    types.sort_by_key(|(name, ..)| of(name).keys == 0);
    for (name, _, unit) in types {
        let Found { keys, total, .. } = of(name);
        let share = share_of(*keys, sampled);
        let unit = unit_of(unit);
        writeln!(out, "{keys} {name}s with {total} {unit} ({share}% of keys, avg size {:.2})", average(*total, *keys))?;
    }
    out.flush()?;
    Ok(())
}

/// Prints the most used keys.
pub(crate) fn hottest(console: &mut Console<'_>, which: &Which) -> Result<bool, Failure> {
    write!(
        console.out,
        "\n# Scanning the entire keyspace to find hot keys as well as\n\
         # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
         # per 100 SCAN commands (not usually needed).\n\n"
    )?;
    console.connect()?;
    let total_keys = console.session.ask(&["DBSIZE"]).map(|reply| number_of(&reply).unwrap_or(0))?;
    let mut hottest: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut sampled = 0;
    let mut walk = Walk::new(which);
    while let Some(keys) = walk.next(console, PAUSE_EVERY)? {
        let requests: Vec<Vec<&[u8]>> = keys.iter().map(|key| vec![&b"OBJECT"[..], b"FREQ", key]).collect();
        for (key, reply) in keys.iter().zip(ask_all(console, &requests)?) {
            sampled += 1;
            let Some(uses) = number_of(&reply) else {
                // A key that is gone has none.
                if matches!(part(&reply), Some(Part::Leaf(ReplyKind::Error, _))) {
                    return super::refused("OBJECT FREQ", &reply);
                }
                continue;
            };
            let place = hottest.iter().position(|(other, _)| uses > *other).unwrap_or(hottest.len());
            if uses > 0 && place < HOT_KEYS {
                let share = share_of(sampled - 1, total_keys);
                writeln!(console.out, "[{share}%] Hot key '{}' found so far with counter {uses}", quoted(key))?;
                hottest.insert(place, (uses, key.clone()));
                hottest.truncate(HOT_KEYS);
            }
        }
    }
    writeln!(console.out, "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!")?;
    for (uses, key) in &hottest {
        writeln!(console.out, "hot key found with counter: {uses}\tkeyname: {}", quoted(key))?;
    }
    console.out.flush()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_says_which_keys() {
        let which = Which { pattern: Some(b"a*".to_vec()), of_type: Some(b"hash".to_vec()), count: Some(5) };
        let words: Vec<String> =
            Walk::new(&which).request.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        assert_eq!(words, ["SCAN", "0", "MATCH", "a*", "COUNT", "5", "TYPE", "hash"]);
        assert_eq!(Walk::new(&Which::default()).request.len(), 2);
    }

    #[test]
    fn a_summary_is_written_as_redis_cli_does() {
        let found = HashMap::from([("hash", Found { keys: 2, total: 5, largest: Some((b"h\n".to_vec(), 4)) })]);
        let mut out = Vec::new();
        summary(&mut out, &Measure::Elements, &found, 4, 8).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("Biggest   hash found '\"h\\n\"' has 4 fields\n"), "{text}");
        assert!(text.contains("2 hashs with 5 fields (50.00% of keys, avg size 2.50)\n0 lists with 0 items"), "{text}");
        assert!(text.contains("Total key length in bytes is 8 (avg len 2.00)"), "{text}");
    }
}
