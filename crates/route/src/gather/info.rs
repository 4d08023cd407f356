//! INFO: what nodes tell of themselves, as one text behind what the proxy tells of itself.
//!
//! Of one node everything is shown, with the proxy's own fields in place of the node's. Of several, figures are added up
//! where a sum makes sense; of the rest only what all nodes agree on is shown, since a figure of some node would be taken
//! for one of all.

use std::collections::BTreeMap;

use respool_command::human_bytes;
use respool_wire::{Encoder, Value};

use crate::limits::FIGURE_DECIMALS_MAX;

/// How the values of a field become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// They are added up.
    Sum,
    /// The greatest: a state that holds if it holds for some node, a ratio, an age.
    Most,
    /// The least: a time of something that is done once the last node has done it.
    Least,
    /// It is shown if all nodes agree.
    Same,
    /// It is about connections, which are ours.
    Hidden,
}

/// Ends of names whose values are no amounts.
const STATES: [&str; 11] = [
    "_in_progress",
    "_scheduled",
    "_enabled",
    "_running",
    "loading",
    "_ratio",
    "_perc",
    "_sec",
    "_seconds",
    "_fork_usec",
    "_clock",
];

fn rule(section: &str, name: &str) -> Rule {
    match (section, name) {
        ("Clients", _) => Rule::Hidden,
        (_, "rdb_last_save_time") => Rule::Least,
        ("Replication", "connected_slaves") => Rule::Sum,
        // Every node is given the same scripts and libraries.
        (_, "number_of_cached_scripts" | "number_of_functions" | "number_of_libraries") => Rule::Most,
        ("Server" | "Replication" | "Cluster" | "Modules", _) => Rule::Same,
        ("Latencystats", _) => Rule::Most,
        _ if STATES.iter().any(|end| name.ends_with(end)) => Rule::Most,
        _ => Rule::Sum,
    }
}

/// The errors of a server whose nodes are engines of it. Other proxies count none.
const ERRORS: &str = "total_error_replies";

/// One section: its fields in order. `None`: nodes do not agree on the value.
#[derive(Debug, Default)]
struct Section {
    name: String,
    fields: Vec<(String, Option<String>)>,
    places: BTreeMap<String, usize>,
    /// So many fields, the first ones, are the proxy's own.
    own: usize,
}

impl Section {
    /// What a server and its engines count apart: calls that it answers itself, and those that engines answer. To a proxy, requests to
    /// nodes are requests of its clients, and of others.
    fn is_added(&self, name: &str) -> bool {
        let is_of_server = || self.places.get(ERRORS).is_some_and(|place| *place < self.own);
        match name {
            ERRORS => true,
            "total_commands_processed" => is_of_server(),
            _ => matches!(&*self.name, "Commandstats" | "Errorstats"),
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.places.insert(name.to_owned(), self.fields.len());
        self.fields.push((name.to_owned(), Some(value.to_owned())));
    }

    /// A node tells of a field.
    fn join(&mut self, name: &str, value: &str) {
        let rule = rule(&self.name, name);
        match self.places.get(name).copied() {
            _ if rule == Rule::Hidden => {}
            None => self.set(name, value),
            Some(place) if place < self.own && !self.is_added(name) => {}
            Some(place) => {
                let known = &mut self.fields[place].1;
                *known = known.as_deref().and_then(|known| joined(known, value, rule));
            }
        }
    }

    /// Makes those fields true again that say what others say in other words.
    fn settle(&mut self) {
        for place in 0..self.fields.len() {
            let (name, value) = &self.fields[place];
            let bytes = name.strip_suffix("_human").and_then(|base| self.places.get(base));
            let bytes = bytes.and_then(|base| self.fields[*base].1.as_deref()).and_then(|bytes| bytes.parse().ok());
            let settled = match (bytes, value) {
                (Some(bytes), _) => Some(human_bytes(bytes)),
                (None, Some(value)) if value.contains("usec_per_call=") => Some(with_mean(value)),
                _ => continue,
            };
            self.fields[place].1 = settled;
        }
    }
}

/// Two values of a field as one, if there is one that is true of both.
fn joined(one: &str, other: &str, rule: Rule) -> Option<String> {
    if one.contains('=') && other.contains('=') {
        return Some(joined_parts(one, other, rule));
    }
    if let (Ok(one), Ok(other)) = (one.parse::<i64>(), other.parse::<i64>()) {
        return match rule {
            Rule::Sum => Some(one.saturating_add(other).to_string()),
            Rule::Most => Some(one.max(other).to_string()),
            Rule::Least => Some(one.min(other).to_string()),
            Rule::Same | Rule::Hidden => (one == other).then(|| one.to_string()),
        };
    }
    if let (Ok(a), Ok(b), Some((_, decimals))) = (one.parse::<f64>(), other.parse::<f64>(), one.split_once('.')) {
        let value = match rule {
            Rule::Sum => a + b,
            Rule::Least => a.min(b),
            Rule::Most | Rule::Same | Rule::Hidden => a.max(b),
        };
        return Some(format!("{value:.*}", decimals.len().min(FIGURE_DECIMALS_MAX)));
    }
    match (one, other) {
        _ if one == other => Some(one.to_owned()),
        // One node has failed with what succeeded elsewhere.
        ("ok", word) | (word, "ok") => Some(word.to_owned()),
        _ => None,
    }
}

/// `a=1,b=2` and `a=3,b=4`: each part by itself.
fn joined_parts(one: &str, other: &str, rule: Rule) -> String {
    let parts = |text: &str| -> Vec<(String, String)> {
        let pairs = text.split(',').filter_map(|part| part.split_once('='));
        pairs.map(|(name, value)| (name.trim().to_owned(), value.to_owned())).collect()
    };
    let mut whole = parts(one);
    // A node may tell of as many as it likes.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, (name, _)) in whole.iter().enumerate() {
        places.entry(name.clone()).or_insert(place);
    }
    for (name, value) in parts(other) {
        if let Some(place) = places.get(&name) {
            let known = &mut whole[*place].1;
            *known = joined(known, &value, rule).unwrap_or(value);
        } else {
            places.insert(name.clone(), whole.len());
            whole.push((name, value));
        }
    }
    let whole: Vec<String> = whole.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    whole.join(",")
}

fn part<'a>(figures: &'a str, name: &str) -> Option<&'a str> {
    figures.split(',').find_map(|figure| figure.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The mean of a command's times is that of their sum.
fn with_mean(figures: &str) -> String {
    let figure = |name| part(figures, name).and_then(|digits| digits.parse::<f64>().ok());
    let (Some(calls), Some(usec)) = (figure("calls"), figure("usec")) else { return figures.to_owned() };
    let mean = if calls > 0.0 { usec / calls } else { 0.0 };
    let parts = figures.split(',').map(|part| match part.split_once('=') {
        Some(("usec_per_call", _)) => format!("usec_per_call={mean:.2}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(",")
}

/// What one database holds.
#[derive(Default)]
struct Database {
    keys: u64,
    expires: u64,
    /// Hashes of which some fields have deadlines; those of a node that does not say so are none.
    with_volatile_items: u64,
    /// Times to live, each as often as keys have it, so that the mean is that of all keys.
    ttl_sum: u128,
}

/// The texts of several nodes, behind the proxy's own.
#[derive(Default)]
struct Whole {
    sections: Vec<Section>,
    /// Where each stands among them: a node may tell of as many as it likes.
    places: BTreeMap<String, usize>,
    databases: Option<BTreeMap<u32, Database>>,
}

impl Whole {
    fn section(&mut self, name: &str) -> &mut Section {
        let place = self.places.get(name).copied().unwrap_or_else(|| {
            self.sections.push(Section { name: name.to_owned(), ..Section::default() });
            self.places.insert(name.to_owned(), self.sections.len() - 1);
            self.sections.len() - 1
        });
        &mut self.sections[place]
    }

    fn take_own(&mut self, text: &str) {
        each_field(text, |section, field| {
            let section = self.section(section);
            if let Some((name, value)) = field {
                section.set(name, value);
                section.own = section.fields.len();
            }
        });
    }

    fn take(&mut self, text: &str) {
        each_field(text, |section, field| match (section, field) {
            ("Keyspace", None) => _ = self.databases.get_or_insert_default(),
            ("Keyspace", Some((name, figures))) => self.take_database(name, figures),
            (_, None) => _ = self.section(section),
            (_, Some((name, value))) => self.section(section).join(name, value),
        });
    }

    fn take_database(&mut self, name: &str, figures: &str) {
        let Some(number) = name.strip_prefix("db").and_then(|number| number.parse().ok()) else { return };
        let figure = |name| part(figures, name).and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
        let database = self.databases.get_or_insert_default().entry(number).or_default();
        database.keys = database.keys.saturating_add(figure("keys"));
        database.expires = database.expires.saturating_add(figure("expires"));
        database.with_volatile_items = database.with_volatile_items.saturating_add(figure("keys_with_volatile_items"));
        database.ttl_sum += u128::from(figure("avg_ttl")) * u128::from(figure("expires"));
    }

    fn into_text(mut self) -> String {
        let mut texts = Vec::new();
        for section in &mut self.sections {
            section.settle();
            let mut text = format!("# {}\r\n", section.name);
            for (name, value) in &section.fields {
                if let Some(value) = value {
                    text.extend([name, ":", value, "\r\n"]);
                }
            }
            texts.push(text);
        }
        if let Some(databases) = self.databases {
            let mut text = "# Keyspace\r\n".to_owned();
            for (number, Database { keys, expires, with_volatile_items, ttl_sum }) in databases {
                let avg_ttl = ttl_sum.checked_div(u128::from(expires)).unwrap_or(0);
                text.push_str(&format!("db{number}:keys={keys},expires={expires},avg_ttl={avg_ttl}"));
                if with_volatile_items > 0 {
                    text.push_str(&format!(",keys_with_volatile_items={with_volatile_items}"));
                }
                text.push_str("\r\n");
            }
            texts.push(text);
        }
        texts.join("\r\n")
    }
}

/// Calls `take` with each section's name, and with each of its fields.
fn each_field<'a>(text: &'a str, mut take: impl FnMut(&'a str, Option<(&'a str, &'a str)>)) {
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            section = name.trim_end();
            take(section, None);
        } else if let Some(field) = line.split_once(':') {
            take(section, Some(field));
        }
    }
}

/// One node's text, in which fields of ours take the place of the node's of the same section and name: its clients are
/// our connections to it. All else is passed on as it is: a path need not be UTF-8.
fn overridden(own: &str, text: &[u8]) -> Vec<u8> {
    let mut fields: BTreeMap<(&[u8], &[u8]), &str> = BTreeMap::new();
    each_field(own, |section, field| {
        if let Some((name, value)) = field {
            fields.insert((section.as_bytes(), name.as_bytes()), value);
        }
    });
    let mut out = Vec::with_capacity(text.len());
    let mut section: &[u8] = b"";
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if let Some(name) = line.strip_prefix(b"# ") {
            section = name.trim_ascii_end();
        }
        let name = memchr::memchr(b':', line).and_then(|colon| line.get(..colon));
        match name.and_then(|name| Some((name, fields.get(&(section, name))?))) {
            Some((name, value)) => {
                [name, b":", value.as_bytes(), b"\r\n"].iter().for_each(|part| out.extend_from_slice(part))
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Writes the joint reply to INFO. `false`: the reply of the only node is no text.
pub(crate) fn write(own: &str, replies: &[&[u8]], behind: &str, out: &mut Encoder<'_>) -> bool {
    let text = |reply: &[u8]| match Value::parse(reply) {
        Ok(Value::Bulk(text) | Value::Verbatim { text, .. }) => Some(text),
        _ => None,
    };
    let mut whole = if let [reply] = replies {
        let Some(text) = text(reply) else { return false };
        overridden(own, &text)
    } else {
        let mut whole = Whole::default();
        whole.take_own(own);
        replies.iter().filter_map(|reply| text(reply)).for_each(|text| whole.take(&String::from_utf8_lossy(&text)));
        whole.into_text().into_bytes()
    };
    if !behind.is_empty() {
        whole.extend_from_slice(if whole.is_empty() { b"" } else { b"\r\n" });
        whole.extend_from_slice(behind.as_bytes());
    }
    if replies.iter().any(|reply| reply.starts_with(b"=")) {
        out.verbatim("txt", &whole);
    } else {
        out.bulk(&whole);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::Protocol;

    fn node(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    #[track_caller]
    fn check(own: &str, nodes: &[&str], expected: &str) {
        let replies: Vec<String> = nodes.iter().map(|text| node(text)).collect();
        let replies: Vec<&[u8]> = replies.iter().map(String::as_bytes).collect();
        let mut out = Vec::new();
        assert!(write(own, &replies, "", &mut Encoder::new(&mut out, Protocol::Resp2)));
        assert_eq!(String::from_utf8_lossy(&out), node(expected));
    }

    #[test]
    fn databases_are_summed_behind_the_proxys_own_sections() {
        check(
            "# Server\r\nx:1\r\n",
            &[
                "# Keyspace\r\ndb0:keys=3,expires=1,avg_ttl=100\r\n",
                "# Keyspace\r\ndb0:keys=4,expires=3,avg_ttl=20,keys_with_volatile_items=2,subexpiry=0\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n",
            ],
            "# Server\r\nx:1\r\n\r\n# Keyspace\r\ndb0:keys=7,expires=4,avg_ttl=40,keys_with_volatile_items=2\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n",
        );
        check("# A\r\nx:1\r\n", &["", ""], "# A\r\nx:1\r\n");
    }

    #[test]
    fn our_fields_take_the_place_of_a_single_nodes() {
        check(
            "# Clients\r\nb:9\r\nc:7\r\n",
            &["# Server\r\na:1\r\n\r\n# Clients\r\na:2\r\nb:3\r\n\r\n# Stats\r\nb:4\r\n"],
            "# Server\r\na:1\r\n\r\n# Clients\r\na:2\r\nb:9\r\n\r\n# Stats\r\nb:4\r\n",
        );
    }

    #[test]
    fn a_single_nodes_text_need_not_be_utf_8() {
        for (own, fields, overridden) in [("", "b:3\r\n", "b:3\r\n"), ("# Server\r\nb:9\r\n", "b:3\r\n", "b:9\r\n")] {
            let text = |fields: &str| [b"# Server\r\nconfig_file:/etc/caf\xe9:\xff\r\n", fields.as_bytes()].concat();
            let reply = |text: &[u8]| [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat();
            let mut out = Vec::new();
            assert!(write(own, &[&reply(&text(fields))], "", &mut Encoder::new(&mut out, Protocol::Resp2)));
            assert_eq!(out, reply(&text(overridden)), "{}", out.escape_ascii());
        }
    }

    #[test]
    fn amounts_are_added_and_states_are_not() {
        check(
            "",
            &[
                "# Persistence\r\nloading:0\r\nrdb_changes_since_last_save:3\r\nrdb_last_save_time:7\r\nrdb_last_bgsave_status:ok\r\n",
                "# Persistence\r\nloading:1\r\nrdb_changes_since_last_save:4\r\nrdb_last_save_time:5\r\nrdb_last_bgsave_status:err\r\n",
                "# Persistence\r\nloading:0\r\nrdb_changes_since_last_save:5\r\nrdb_last_save_time:6\r\nrdb_last_bgsave_status:ok\r\n",
            ],
            "# Persistence\r\nloading:1\r\nrdb_changes_since_last_save:12\r\nrdb_last_save_time:5\r\nrdb_last_bgsave_status:err\r\n",
        );
        check(
            "# Memory\r\nheld_bytes:1\r\n",
            &[
                "# Memory\r\nused_memory:1048576\r\nused_memory_human:1.00M\r\nmem_fragmentation_ratio:1.50\r\nmaxmemory_policy:a\r\n\r\n# CPU\r\nused_cpu_sys:0.250000\r\n",
                "# Memory\r\nused_memory:524288\r\nused_memory_human:512.00K\r\nmem_fragmentation_ratio:2.25\r\nmaxmemory_policy:b\r\n\r\n# CPU\r\nused_cpu_sys:1.500000\r\n",
            ],
            "# Memory\r\nheld_bytes:1\r\nused_memory:1572864\r\nused_memory_human:1.50M\r\nmem_fragmentation_ratio:2.25\r\n\r\n# CPU\r\nused_cpu_sys:1.750000\r\n",
        );
    }

    #[test]
    fn scripts_that_all_nodes_have_are_counted_once() {
        let of = |scripts, libraries| {
            format!("# Memory\r\nnumber_of_cached_scripts:{scripts}\r\nnumber_of_libraries:{libraries}\r\n")
        };
        check("", &[&of(100, 2), &of(101, 2), &of(0, 2)], &of(101, 2));
    }

    #[test]
    fn what_is_ours_or_differs_is_not_the_nodes() {
        check(
            "# Server\r\nrun_id:us\r\n\r\n# Clients\r\nconnected_clients:3\r\n",
            &[
                "# Server\r\nrun_id:a\r\nhz:10\r\ntcp_port:1\r\n\r\n# Clients\r\nconnected_clients:1\r\nmaxclients:9\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:1\r\nmaster_replid:a\r\n",
                "# Server\r\nrun_id:b\r\nhz:10\r\ntcp_port:2\r\n\r\n# Clients\r\nconnected_clients:1\r\nmaxclients:9\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmaster_replid:b\r\n",
            ],
            "# Server\r\nrun_id:us\r\nhz:10\r\n\r\n# Clients\r\nconnected_clients:3\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:3\r\n",
        );
    }

    #[test]
    fn commands_are_counted_together() {
        check(
            "",
            &[
                "# Commandstats\r\ncmdstat_get:calls=3,usec=9,usec_per_call=3.00,rejected_calls=0,failed_calls=1\r\n",
                "# Commandstats\r\ncmdstat_get:calls=1,usec=1,usec_per_call=1.00,rejected_calls=2,failed_calls=0\r\ncmdstat_set:calls=1,usec=2,usec_per_call=2.00\r\n\r\n# Errorstats\r\nerrorstat_ERR:count=2\r\n",
                "# Errorstats\r\nerrorstat_ERR:count=3\r\n",
            ],
            "# Commandstats\r\ncmdstat_get:calls=4,usec=10,usec_per_call=2.50,rejected_calls=2,failed_calls=1\r\ncmdstat_set:calls=1,usec=2,usec_per_call=2.00\r\n\r\n# Errorstats\r\nerrorstat_ERR:count=5\r\n",
        );
        check(
            "# Stats\r\nops:5\r\ntotal_error_replies:1\r\n\r\n# Commandstats\r\ncmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=3\r\n",
            &[
                "# Stats\r\nops:2\r\ntotal_error_replies:4\r\n\r\n# Commandstats\r\ncmdstat_get:calls=2,usec=4,usec_per_call=2.00,rejected_calls=1\r\n",
                "# Stats\r\nops:3\r\ntotal_error_replies:2\r\n\r\n# Commandstats\r\ncmdstat_get:calls=2,usec=2,usec_per_call=1.00,rejected_calls=0\r\n",
            ],
            "# Stats\r\nops:5\r\ntotal_error_replies:7\r\n\r\n# Commandstats\r\ncmdstat_get:calls=4,usec=6,usec_per_call=1.50,rejected_calls=4\r\n",
        );
        // Engines count what was run beside what their workers answer themselves. Nodes of a proxy count requests of others too.
        let of_nodes = ["# Stats\r\ntotal_commands_processed:2\r\n", "# Stats\r\ntotal_commands_processed:3\r\n"];
        check(
            "# Stats\r\ntotal_commands_processed:5\r\ntotal_error_replies:1\r\n",
            &of_nodes,
            "# Stats\r\ntotal_commands_processed:10\r\ntotal_error_replies:1\r\n",
        );
        check("# Stats\r\ntotal_commands_processed:5\r\n", &of_nodes, "# Stats\r\ntotal_commands_processed:5\r\n");
        check(
            "",
            &[
                "# Latencystats\r\nlatency_percentiles_usec_get:p50=1.003,p99=2.007\r\n",
                "# Latencystats\r\nlatency_percentiles_usec_get:p50=3.007,p99=1.003\r\n",
            ],
            "# Latencystats\r\nlatency_percentiles_usec_get:p50=3.007,p99=2.007\r\n",
        );
    }

    #[test]
    fn a_figure_may_have_any_number_of_digits() {
        // A precision of more than 16 bits is none to the formatter.
        let digits = "0".repeat(70_000);
        let cpu = |last: u8| format!("# CPU\r\nused_cpu_sys:1.5{digits}{last}\r\n");
        check("", &[&cpu(1), &cpu(2)], "# CPU\r\nused_cpu_sys:3.00000000000000000\r\n");
    }
}
