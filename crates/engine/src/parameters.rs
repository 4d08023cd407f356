//! The parameters that are the engine's own: `CONFIG SET`, `CONFIG GET` and `CONFIG RESETSTAT` of an engine.
//!
//! All parameters of a server are the host's; it tells the engine of those that are listed here. Values have been checked and stand in
//! bytes and whole numbers, but nothing here counts on it: an engine behind a proxy is told by clients.

use respool_command::{Row, ServerCommand, glob, text};
use respool_wire::{Args, Encoder};

use crate::commands::Fault;
use crate::engine::Engine;
use crate::keyspace::EvictionPolicy;
use crate::number::integer;

/// A parameter: its names, how it is read from an engine, and how an engine takes it.
struct Own {
    names: &'static [&'static str],
    /// Its values are words, and are counted by their places here.
    words: &'static [(EvictionPolicy, &'static str)],
    show: fn(&Engine) -> u64,
    take: fn(&mut Engine, u64),
}

impl Own {
    fn read(&self, value: &[u8]) -> Option<u64> {
        if self.words.is_empty() {
            return integer::parse(value).and_then(|value| u64::try_from(value).ok());
        }
        let place = self.words.iter().position(|(_, word)| word.as_bytes().eq_ignore_ascii_case(value));
        place.map(|place| place as u64)
    }

    fn shown(&self, engine: &Engine) -> String {
        let value = (self.show)(engine);
        self.words.get(count(value)).map_or_else(|| value.to_string(), |(_, word)| (*word).to_owned())
    }

    /// The end of the error for a value that cannot be read.
    fn wanted(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|(_, word)| *word).collect();
        match words[..] {
            [] => "argument couldn't be parsed into an integer".to_owned(),
            _ => format!("argument(s) must be one of the following: {}", words.join(", ")),
        }
    }
}

const NUMBER: &[(EvictionPolicy, &str)] = &[];

fn count(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

const OWN: &[Own] = &[
    Own {
        names: &["maxmemory"],
        words: NUMBER,
        show: |engine| engine.memory_bytes_max.unwrap_or(0),
        take: |engine, value| engine.bound_memory((value > 0).then_some(value)),
    },
    Own {
        names: &["maxmemory-policy"],
        words: &EvictionPolicy::ALL,
        show: |engine| {
            let (policy, _) = engine.eviction_terms();
            EvictionPolicy::ALL.iter().position(|(known, _)| *known == policy).unwrap_or(0) as u64
        },
        take: |engine, value| {
            if let Some((policy, _)) = EvictionPolicy::ALL.get(count(value)) {
                engine.set_eviction(*policy, engine.eviction_terms().1);
            }
        },
    },
    Own {
        names: &["maxmemory-samples"],
        words: NUMBER,
        show: |engine| engine.eviction_terms().1 as u64,
        take: |engine, value| engine.set_eviction(engine.eviction_terms().0, count(value)),
    },
    Own {
        names: &["maxmemory-eviction-tenacity"],
        words: NUMBER,
        show: |engine| engine.tenacity().into(),
        take: |engine, value| engine.set_tenacity(u8::try_from(value).unwrap_or(u8::MAX)),
    },
    Own {
        names: &["lfu-log-factor"],
        words: NUMBER,
        show: |engine| engine.frequency_terms().log_factor,
        take: |engine, value| engine.frequency_terms_mut().log_factor = value,
    },
    Own {
        names: &["lfu-decay-time"],
        words: NUMBER,
        show: |engine| engine.frequency_terms().decay_minutes.into(),
        take: |engine, value| engine.frequency_terms_mut().decay_minutes = u32::try_from(value).unwrap_or(u32::MAX),
    },
    Own {
        names: &["hash-max-listpack-entries", "hash-max-ziplist-entries"],
        words: NUMBER,
        show: |engine| engine.encodings().hash_entries_max as u64,
        take: |engine, value| engine.encodings_mut().hash_entries_max = count(value),
    },
    Own {
        names: &["hash-max-listpack-value", "hash-max-ziplist-value"],
        words: NUMBER,
        show: |engine| engine.encodings().hash_value_bytes_max as u64,
        take: |engine, value| engine.encodings_mut().hash_value_bytes_max = count(value),
    },
    Own {
        names: &["set-max-intset-entries"],
        words: NUMBER,
        show: |engine| engine.encodings().set_integers_max as u64,
        take: |engine, value| engine.encodings_mut().set_integers_max = count(value),
    },
    Own {
        names: &["zset-max-listpack-entries", "zset-max-ziplist-entries"],
        words: NUMBER,
        show: |engine| engine.encodings().sorted_set_entries_max as u64,
        take: |engine, value| engine.encodings_mut().sorted_set_entries_max = count(value),
    },
    Own {
        names: &["zset-max-listpack-value", "zset-max-ziplist-value"],
        words: NUMBER,
        show: |engine| engine.encodings().sorted_set_value_bytes_max as u64,
        take: |engine, value| engine.encodings_mut().sorted_set_value_bytes_max = count(value),
    },
    Own {
        names: &["hll-sparse-max-bytes"],
        words: NUMBER,
        show: |engine| engine.encodings().hyperloglog_sparse_bytes_max as u64,
        take: |engine, value| engine.encodings_mut().hyperloglog_sparse_bytes_max = count(value),
    },
    Own {
        names: &["stream-node-max-bytes"],
        words: NUMBER,
        show: |engine| engine.encodings().stream_node_bytes_max as u64,
        take: |engine, value| engine.encodings_mut().stream_node_bytes_max = count(value),
    },
    Own {
        names: &["stream-node-max-entries"],
        words: NUMBER,
        show: |engine| engine.encodings().stream_node_entries_max as u64,
        take: |engine, value| engine.encodings_mut().stream_node_entries_max = count(value),
    },
    #[cfg(feature = "scripting")]
    Own {
        names: &["busy-reply-threshold", "lua-time-limit"],
        words: NUMBER,
        show: |engine| engine.scripts().busy_after_ms(),
        take: |engine, value| engine.scripts_mut().set_busy_after_ms(value),
    },
];

/// Runs a request about parameters.
pub(crate) fn run(
    engine: &mut Engine,
    row: &'static Row,
    args: Args<'_>,
    reply: &mut Encoder<'_>,
) -> Result<(), Fault> {
    match row.command {
        respool_command::Command::Server(ServerCommand::ConfigSet) => set(engine, args.from(2), reply),
        respool_command::Command::Server(ServerCommand::ConfigGet) => {
            get(engine, args.from(2), reply);
            Ok(())
        }
        _ => {
            engine.reset_counters();
            reply.raw(respool_wire::replies::OK);
            Ok(())
        }
    }
}

/// All are checked before the first is taken.
fn set(engine: &mut Engine, pairs: Args<'_>, reply: &mut Encoder<'_>) -> Result<(), Fault> {
    if !pairs.len().is_multiple_of(2) {
        return Err(text::SYNTAX.into());
    }
    let mut changes = Vec::new();
    for place in (0..pairs.len()).step_by(2) {
        let (name, value) = (pairs.at(place), pairs.at(place + 1));
        let is_it = |own: &&Own| own.names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
        let Some(own) = OWN.iter().find(is_it) else {
            let words = [b"ERR Unknown option or number of arguments for CONFIG SET - '", name, b"'"].concat();
            return Err(Fault::Written(words));
        };
        let Some(value) = own.read(value) else {
            let why = format!("') - {}", own.wanted());
            let words = [b"ERR CONFIG SET failed (possibly related to argument '", name, why.as_bytes()].concat();
            return Err(Fault::Written(words));
        };
        changes.push((own, value));
    }
    changes.into_iter().for_each(|(own, value)| (own.take)(engine, value));
    reply.raw(respool_wire::replies::OK);
    Ok(())
}

fn get(engine: &Engine, patterns: Args<'_>, reply: &mut Encoder<'_>) {
    let is_wanted = |name: &&str| patterns.iter().any(|pattern| glob::matches_in_any_case(pattern, name.as_bytes()));
    let found: Vec<(&str, String)> = OWN
        .iter()
        .flat_map(|own| own.names.iter().copied().filter(is_wanted).map(|name| (name, own.shown(engine))))
        .collect();
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::Script;

    #[test]
    fn thresholds_of_encodings_hold_at_once() {
        let mut script = Script::new();
        assert_eq!(script.say("CONFIG SET hash-max-ziplist-entries 1 zset-max-listpack-value 2"), "+OK");
        script.say("HSET h a 1 b 2");
        script.say("ZADD z 1 abc");
        assert!(script.say("OBJECT ENCODING h").contains("hashtable"));
        assert!(script.say("OBJECT ENCODING z").contains("skiplist"));
        assert!(script.say("CONFIG GET hash-max-listpack-entries").contains('1'));
    }

    #[test]
    fn a_request_spends_on_room_what_is_said() {
        let left = |tenacity: u32| {
            let mut script = Script::new();
            for number in 0..8_000 {
                script.say(&format!("SET key{number} v"));
            }
            let terms = format!("maxmemory-policy allkeys-random maxmemory-eviction-tenacity {tenacity}");
            script.say(&format!("CONFIG SET maxmemory 1 {terms}"));
            script.say("SET new v");
            let shown = script.say("DBSIZE");
            shown.trim_start_matches(':').parse::<u32>().expect("it is a number")
        };
        let [least, some, usual, more, all] = [0, 5, 10, 20, 100].map(left);
        assert!(
            8_000 > least && least > some && some > usual && usual > more && more > all,
            "{least} {some} {usual} {more}"
        );
        assert_eq!(all, 0);
    }

    #[test]
    fn frequencies_rise_and_fall_as_is_said() {
        let mut script = Script::new();
        // With a factor of zero each use is a step; with one that is large hardly any is.
        assert_eq!(script.say("CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 2"), "+OK");
        script.say("SET k v");
        (0..200).for_each(|_| _ = script.say("GET k"));
        assert_eq!(script.say("OBJECT FREQ k"), ":205");
        script.session.now.0 += 5 * 60_000;
        assert_eq!(script.say("OBJECT FREQ k"), ":203", "two steps in five minutes");
        assert_eq!(script.say("CONFIG SET lfu-decay-time 0"), "+OK");
        assert_eq!(script.say("OBJECT FREQ k"), ":205", "no time costs any");
        assert_eq!(script.say("CONFIG SET lfu-log-factor 2000000000"), "+OK");
        script.say("SET new v");
        (0..200).for_each(|_| _ = script.say("GET new"));
        assert_eq!(script.say("OBJECT FREQ new"), ":6");
        assert!(script.say("CONFIG GET lfu-*").contains("2000000000"));
        // Another policy leaves them as they are.
        script.say("CONFIG SET maxmemory-policy allkeys-lru");
        assert!(script.say("CONFIG GET lfu-log-factor").contains("2000000000"));
    }

    #[test]
    fn nothing_fits_into_less_than_an_empty_engine_takes() {
        let mut script = Script::new();
        script.say("CONFIG SET maxmemory 1");
        for adding in ["SET key value", "FUNCTION LOAD code", "FUNCTION RESTORE payload"] {
            assert!(script.say(adding).starts_with("-OOM command not allowed"), "{adding}");
        }
        assert_eq!(script.say("GET key"), "$-1");
        script.say("CONFIG SET maxmemory 0");
        assert_eq!(script.say("SET key value"), "+OK");
    }

    #[test]
    fn keys_are_evicted_before_what_still_does_not_fit_is_refused() {
        for (policy, left) in [("allkeys-lru", ":0"), ("volatile-ttl", ":20"), ("noeviction", ":40")] {
            // Both are less than an empty engine takes.
            for memory in ["1", "4000"] {
                let mut script = Script::new();
                for number in 0..20 {
                    script.say(&format!("SET volatile{number} v EX 1000"));
                    script.say(&format!("SET lasting{number} v"));
                }
                script.say(&format!("CONFIG SET maxmemory-policy {policy} maxmemory {memory}"));
                assert!(script.say("SET key value").starts_with("-OOM command not allowed"), "{policy}");
                assert_eq!(script.say("DBSIZE"), left, "{policy}, {memory} bytes");
            }
        }
    }

    #[test]
    fn the_policy_of_eviction_is_a_word() {
        let mut script = Script::new();
        assert_eq!(script.say("CONFIG SET maxmemory-policy ALLKEYS-LFU maxmemory-samples 7"), "+OK");
        let shown = script.say("CONFIG GET maxmemory-*");
        assert!(shown.contains("allkeys-lfu") && shown.contains('7'), "{shown}");
        assert!(script.say("CONFIG SET maxmemory-policy lru").contains("noeviction, allkeys-lru"));
        for (said, held) in
            [("0", "1"), ("64", "64"), ("65", "64"), ("2147483647", "64"), ("18446744073709551615", "64")]
        {
            let _ = script.say(&format!("CONFIG SET maxmemory-samples {said}"));
            let shown = script.say("CONFIG GET maxmemory-samples");
            assert!(shown.contains(held) && !shown.contains("2147483647"), "{said}: {shown}");
        }
        script.say("SET key value");
        assert_eq!(script.say("OBJECT FREQ key"), ":5");
    }

    #[test]
    fn several_are_taken_together_or_not_at_all() {
        let mut script = Script::new();
        let before = script.say("CONFIG GET *");
        for wrong in
            ["maxmemory 1 nothing 1", "maxmemory 1 hll-sparse-max-bytes x", "maxmemory 1 hll-sparse-max-bytes -1"]
        {
            assert!(script.say(&format!("CONFIG SET {wrong}")).starts_with("-ERR "), "{wrong}");
        }
        assert_eq!(script.say("CONFIG GET *"), before);
        assert!(script.say("CONFIG SET maxmemory 1 hz").starts_with("-ERR "));
    }
}
